"""Model text → records. One pydantic model per reply gives both its JSON schema and its parser."""

import ast
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Literal

from ipyrefine.core import edits
from ipyrefine.core.model import Form, Record
from ipyrefine.core.syntax import NO_CODE, pygments_name, try_parse, try_parse_expression
from ipyrefine.errors import ReplyError

# Texts

_FENCE = re.compile(
    r"^```[ \t]*(?P<tag>[\w+#.-]*)[^\n`]*\n(?P<text>.*?)(?:(?P<end>^```\s*$)|\Z)",
    re.MULTILINE | re.DOTALL,
)
_OPEN, _CLOSE = (rf"^[^\S\n]*<{tag}>[^\S\n]*$" for tag in ("text", "/text"))
_TAGGED = re.compile(
    rf"{_OPEN}\n(?P<text>.*?)(?:(?P<end>{_CLOSE})|(?={_OPEN})|\Z)", re.MULTILINE | re.DOTALL
)
_ASSIGNS = re.compile(r"[%!]+\w|[\w.\[\]'\"]+ [-+*/|&]?= ")  # or is a magic
_OPENING = re.compile(r"^[ \t]*<text(?:\s+(?:kind=)?[\"']?(?P<kind>\w*)[^>\n]*)?>", re.MULTILINE)
_EXPLAINS = 240  # bytes before a fence that may be a quotation
_PARAGRAPHS = 20  # before code that nothing marks, at most
_CLOSING_TAG = re.compile(r"</text>\s*\Z")


class WrittenText(Record):
    """A text as a writer gave it, apart from the thoughts before it."""

    text: str
    thoughts: str = ""
    missed: int = 0  # how many of its edits could not be made
    edits: int = 0  # how many edits it was given as; 0 for a whole text
    look: str = ""  # the expression that the writer wants to see before it gives a text
    form: Form | None = None  # what it chose, where it might
    kind: str = ""  # of words, as it named it
    language: str = ""  # what its fence names, where that is another than was asked for


def parse_text(
    reply: str, form: Form, *, cut: bool = False, language: str = "python", own: bool = False
) -> WrittenText:
    """Tell the text of a reply from the thoughts before it.

    It may be JSON with ``thoughts`` and ``response``, or have these words as tags, labels or
    headings; the following then holds for the response. Code is the longest fenced
    block, or the whole reply if that is Python. Prose stands between lines with ``<text>`` and
    ``</text>``, the last such text counts; or it is the whole reply.

    Args:
        reply: what the model wrote.
        form: how the text is marked.
        cut: whether the reply was cut off, so that only a text with its end marked is whole.
        language: the language of code.
        own: whether the user's prompt asked for it: it then need not be marked, and its parts may
            have other names.

    Raises:
        ReplyError: there is no text in it, or no whole one.
    """
    if form == "prose":  # a kind is for the first reply alone
        reply = _OPENING.sub("<text>", reply, count=1)
    if not _is_whole(reply, form, language) and (response := _unwrap(reply, own)):
        try:
            inner = parse_text(response.text, form, cut=cut, language=language, own=own)
        except ReplyError:
            if cut or not response.text.strip():
                raise
            return response
        thoughts = "\n\n".join(filter(None, (response.thoughts, inner.thoughts)))
        return WrittenText(text=inner.text, thoughts=thoughts)
    blocks = list((_FENCE if form == "code" else _TAGGED).finditer(reply))
    if cut and not (blocks and blocks[-1]["end"]):
        raise ReplyError("it breaks off before the end of the text")
    filled = [block for block in blocks if _body(block).strip()]
    if filled:
        block = max(filled, key=lambda m: len(m["text"])) if form == "code" else filled[-1]
        text, thoughts = _body(block).strip("\n"), reply[: filled[0].start()].strip()
    elif blocks:
        raise ReplyError("it holds no text")
    elif form == "prose":
        text, thoughts = _inline_text(reply.strip())
    elif own or _is_whole(reply, form, language):
        text, thoughts = reply.strip(), ""
        starts = [0, *(m.end() for m in islice(re.finditer(r"\n\s*\n", reply), _PARAGRAPHS))]
        for start in starts if language == "python" else ():
            if _is_whole(reply[start:], form, language):
                text, thoughts = reply[start:].strip(), reply[:start].strip()
                break
    else:
        raise ReplyError("it holds no code block")
    if not text.strip():
        raise ReplyError("it holds no text")
    return WrittenText(text=text, thoughts=thoughts)


def parse_form(reply: str) -> Form:
    """Read whether a task wants code or words; whatever else is said means code."""
    return "prose" if reply.strip(" \n\"*`'").lower().startswith("words") else "code"


def parse_choice(
    reply: str, *, cut: bool = False, language: str = "python", own: bool = False
) -> WrittenText:
    """Read the reply of a writer that chooses between code and words, as `parse_text` does.

    Words stand between lines with ``<text>``, perhaps with their kind, and ``</text>``. Where
    these are missing, code is what is in a fence or Python as a whole, and all else is words. So is
    a fence that a much longer explanation quotes. In doubt it is code, which the user can switch.

    Raises:
        ReplyError: as for `parse_text`; or it is broken code, without a mark.
    """
    tagged = _OPENING.search(reply)
    if not tagged and (inner := _unwrap(reply, own)):
        try:
            written = parse_choice(inner.text, cut=cut, language=language, own=own)
        except ReplyError:
            if cut or not inner.text.strip():
                raise
            written = inner.replace(form="code")
        return written.replace(thoughts=inner.thoughts)
    blocks = [block for block in _FENCE.finditer(reply) if _body(block).strip()]
    if tagged and not any(block.start() < tagged.start() for block in blocks):
        written = parse_text(reply, "prose", cut=cut, own=own)
        return written.replace(form="prose", kind=tagged["kind"] or "")
    code = [block for block in blocks if _is_code_block(block, language)]
    longest = max(code or blocks, key=lambda block: len(block["text"]), default=None)
    below = not (cut or blocks) and language == "python" and _ends_with_code(reply)
    if not (cut or below) and _has_words(reply, longest, language, code=bool(code)):
        words = _body(blocks[0]) if blocks and not code else reply
        return parse_text(words.strip(), "prose", own=own).replace(form="prose")
    written = parse_text(reply, "code", cut=cut, language=language, own=own or below)
    named = pygments_name(longest["tag"]) if longest and code else ""
    other = named if named not in ("", language, "pycon", "jupyter") else ""
    return written.replace(form="code", language=other)


def _ends_with_code(reply: str) -> bool:
    tails = (reply[m.end() :] for m in islice(re.finditer(r"\n\s*\n", reply), _PARAGRAPHS))
    return any(_is_whole(t, "code", "python") and _is_statement(t.split("\n")[0]) for t in tails)


def _has_words(reply: str, block: re.Match[str] | None, language: str, *, code: bool) -> bool:
    if block and code:
        around = len(_FENCE.sub("", reply).encode())
        long = len(reply[: block.start()].encode()) > _EXPLAINS
        return long and around > 3 * len(block["text"].encode())
    inner = _unwrap(reply, own=True)
    if (wraps := inner is not None and _is_whole(inner.text, "code", language)) or block:
        return not wraps
    lines = [*filter(None, map(str.strip, reply.splitlines()))]
    broken = 2 * sum(map(_is_statement, lines)) >= len(lines)
    broken = broken or any(line.startswith(("```", "~~~")) for line in lines)
    return not (broken or language != "python" or _is_whole(reply, "code", language))


def _is_code_block(block: re.Match[str], language: str) -> bool:
    tag, body = pygments_name(block["tag"]), _body(block)
    looks = language != "python" or _is_whole(body, "code", language)
    return tag not in NO_CODE and bool(tag or looks or any(map(_is_statement, body.splitlines())))


def _is_statement(line: str) -> bool:
    """Return whether a line can hardly be a sentence: an import, an assignment, a call, a magic."""
    line = line.strip()
    if _ASSIGNS.match(line):
        return True
    tree = try_parse(f"{line}\n    pass" if line.endswith(":") else line)
    node = tree.body[0] if tree and tree.body else None
    value = node.value if isinstance(node, ast.Expr) else None
    calls = isinstance(value, ast.Call | ast.Subscript | ast.Attribute)
    # "Subject: delay" is an annotation.
    return calls or not (node is None or isinstance(node, ast.Expr | ast.AnnAssign))


_AROUND_LOOK = " \t\r\n`"


def read_look(reply: str) -> str:
    """Return the expression that a reply asks to see in place of giving a text; empty for none.

    Raises:
        ReplyError: it asks for more than one expression.
    """
    asked = reply.rstrip(_AROUND_LOOK)
    before, tag, expression = asked.removesuffix("</look>").rpartition("<look>")
    expression = expression.strip(_AROUND_LOOK)
    several = "<look>" in before.rpartition("`")[2]  # but for one that is only mentioned
    if not (tag and expression and asked.endswith("</look>")) or "`" in expression:
        return ""
    if several or _FENCE.search(before):
        return ""
    if try_parse_expression(expression) is None:
        raise ReplyError("a look is one Python expression")
    return expression


def parse_edits(
    reply: str, base: str, form: Form, *, language: str = "python", lenient: bool = False
) -> WrittenText:
    """Return a text with the edits of a reply made; a reply without edits may be the whole text.

    Args:
        reply: what the model wrote.
        base: the text that the edits are for.
        form: how a whole text would be marked.
        language: the language of code.
        lenient: whether some of the edits are enough.

    Raises:
        ReplyError: an edit could not be made, with the lines that are most like what it looks for;
            or there is neither an edit nor a whole text.
    """
    found, thoughts = edits.read_edits(reply)
    if not found:
        if form == "prose" and not _TAGGED.search(reply):
            raise ReplyError("it holds no edit")
        return parse_text(reply, form, language=language)
    text, misses = edits.apply(base, found)
    if misses and not (lenient and len(misses) < len(found)):
        raise ReplyError("; ".join(map(_describe_miss, misses)))
    return WrittenText(text=text, thoughts=thoughts, missed=len(misses), edits=len(found))


def _describe_miss(miss: edits.Miss) -> str:
    if miss.times:
        return f"what edit {miss.number} finds stands in the text {miss.times} times: add to it"
    near = f" The nearest lines of the text are:\n{miss.nearest}\n" if miss.nearest else ""
    return f"what edit {miss.number} finds does not stand in the text.{near}"


def repeats_itself(reply: str) -> bool:
    """Return whether a reply goes round in circles: its end compresses to next to nothing.

    Of the embedded model's kept replies that holds for 45 of 56 that ran into the token limit, and
    for 1 of 1,249 others (under 1 %).
    """
    end = reply[-2_000:].encode("utf-8", "replace")
    return len(zlib.compress(end)) < 0.15 * len(end)


# What writers call the two parts of a reply to the user's own prompt.
_THOUGHTS = (
    "thoughts", "thought", "thinking", "reasoning", "analysis", "plan", "reflection", "explanation",
    "rationale", "notes",
)  # fmt: skip
_RESPONSE = (
    "response", "solution", "answer", "code", "output", "text", "result", "implementation",
)  # fmt: skip
_SAID = ("thoughts", "thinking", "reasoning", "response")  # as labels in words, which are rarer


def _unwrap(reply: str, own: bool) -> WrittenText | None:
    """Return the response and thoughts of a reply that has them as JSON, in tags or under labels.

    In a reply to the user's own prompt, other names count too, and so does a part by itself.
    """
    start = reply.find("{")
    code = _FENCE.search(reply)
    inside = code is not None and bool(reply[code.start("text") : start].strip())
    for place, fields in json_objects(reply):
        if inside or place != start:  # an object of the code's own
            break
        named = {re.split(r"[_\W]", str(key).lower())[-1]: key for key in fields}
        response = next((named[name] for name in _RESPONSE if name in named), None)
        alone = fields.keys() <= {"response", "thoughts"}
        if response is None or not (own or (alone and response == "response")):
            continue
        value = fields[response]
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        notes = (str(fields[named[name]]) for name in _THOUGHTS if name in named)
        return WrittenText(text=text, thoughts="\n\n".join(notes))
    tags = "<response>" in reply.lower() or re.search(rf"(?i)<({'|'.join(_THOUGHTS)})>", reply)
    before, parts = labelled(reply, (*_THOUGHTS, *_RESPONSE) if tags and own else _SAID)
    if "```" in before or "<text>" in before:  # words in the text itself
        return None
    thoughts = "\n\n".join(text for name, text in parts if name in _THOUGHTS)
    responses = [text for name, text in parts if name in _RESPONSE]
    if responses and (thoughts or (own and not before)):
        return WrittenText(text=responses[0].strip("\n"), thoughts=thoughts)
    if tags and own and thoughts:
        left = reply.rpartition("</")[2].partition(">")[2]
        return WrittenText(text=left.strip("\n"), thoughts=thoughts) if left.strip() else None
    return None


def _body(block: re.Match[str]) -> str:
    return block["text"] if block["end"] else _CLOSING_TAG.sub("", block["text"])


def _inline_text(reply: str) -> tuple[str, str]:
    """Return text and thoughts of a reply whose tags, if any, do not stand on their own lines."""
    if not reply.endswith("</text>"):
        return reply, ""
    thoughts, _, text = reply.removesuffix("</text>").rpartition("<text>")
    return text.strip(), thoughts.strip()


def _is_whole(reply: str, form: Form, language: str) -> bool:
    tree = try_parse(reply) if form == "code" and language == "python" else None
    body = tree.body if tree else []
    # A lone literal is data: a JSON reply that happens to be an expression.
    return bool(body) and not (
        len(body) == 1
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Dict | ast.List | ast.Set | ast.Constant)
    )


class Splitter:
    """Tells text from thoughts while a reply streams, line by line.

    Args:
        form: how the text is marked, as in `parse_text`.
        inside: whether it begins with the text.
        chooses: whether it may be words in place of code, which the first line says.
    """

    def __init__(self, form: Form, *, inside: bool = False, chooses: bool = False) -> None:
        self._mark = "```" if form == "code" else "<"
        self._inside, self._chooses = inside, chooses
        self._line = ""
        self._passing = False

    def feed(self, chunk: str) -> Iterator[tuple[Literal["text", "thinking"], str]]:
        """Yield the pieces of a chunk with their kind; a line that may be a mark is held back."""
        for piece in chunk.splitlines(keepends=True):
            self._line += piece
            ended = self._line.endswith("\n")
            if self._chooses and ended and self._line.strip():
                self._chooses = False
                self._mark = "<" if _OPENING.fullmatch(self._line.strip()) else self._mark
            if not self._passing and self._may_be_mark():
                if ended:
                    opens = (
                        not self._inside
                        if self._mark == "```"
                        else bool(_OPENING.fullmatch(self._line.strip()))
                    )
                    self._inside = opens
                    self._line = ""
                continue
            yield ("text" if self._inside else "thinking"), piece if self._passing else self._line
            self._passing = not ended
            if ended:
                self._line = ""

    def _may_be_mark(self) -> bool:
        line = self._line.strip()
        if not line:
            return not self._line.endswith("\n")
        if self._chooses and ("<text>".startswith(line) or line.startswith("<text ")):
            return True
        if line[0] != self._mark[0]:
            return False
        if self._mark == "```":
            return line.startswith("```") or "```".startswith(line)
        return line.startswith("<text ") or any(t.startswith(line) for t in ("<text>", "</text>"))


# Several things in one reply: JSON, tags, labelled lines

_OBJECT = re.compile(r"\{(?=\s*[\"}])")
_TRAILING = re.compile(r",(?=\s*[}\]])")
_OBJECTS, _IN_VAIN = 400, 10  # that are tried, at most; times that a reply is read in vain


def json_objects(reply: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield where JSON objects start in a reply, and those.

    Raw line breaks, and commas after the last item, are forgiven.
    """
    decoder, left = json.JSONDecoder(strict=False), _IN_VAIN * len(reply)
    sources, end = (reply, _TRAILING.sub(" ", reply)), 0
    while left >= 0 and (found := _OBJECT.search(reply, end)):
        start, end = found.start(), found.end()
        left -= _IN_VAIN * len(reply) // _OBJECTS
        for source in sources:
            try:
                value, length = decoder.raw_decode(source[start:])
            except json.JSONDecodeError as error:
                left -= error.pos
            except RecursionError:  # nothing of ours is that deep
                return
            else:
                yield start, value
                end = start + length
                break


def labelled(reply: str, names: Iterable[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return what stands before the named parts of a reply, and those, each with its name.

    Args:
        reply: what a model wrote.
        names: names in lower case that count, in any case: as a tag ``<name>``; else as a label
            ``Name:`` or a heading ``## Name`` at the start of a line.
    """
    choice = "|".join(name.replace(" ", "[ _-]") for name in names)
    tags = [*re.finditer(rf"<(?P<end>/?)(?P<name>{choice})>", reply, re.IGNORECASE)]
    closed = {tag["name"].lower(): tag.start() for tag in tags if tag["end"]}  # the last of each
    found, texts = list[re.Match[str]](), list[str]()
    for tag in tags:
        name, opened = tag["name"].lower(), len(found) > len(texts)
        if opened and tag["end"] and name == found[-1]["name"].lower():
            texts.append(reply[found[-1].end() : tag.start()])
        elif not opened and not tag["end"] and closed.get(name, 0) > tag.start():
            found.append(tag)
    if not found:
        marks = r"[^\S\n]*(?P<marks>(?:#{1,6}[^\S\n]+|\d+[.)][^\S\n]+|[*_])*)"
        ends = r"(?:\([^)\n]*\))?(?:(?P<colon>:)[*_]*[^\S\n]*|$)"
        label = rf"^{marks}(?P<name>{choice})[*_]*[^\S\n]*{ends}"
        labels = re.compile(label, re.IGNORECASE | re.MULTILINE)
        lines = (labels.match(reply, line.start()) for line in re.finditer(r"[^\n]+", reply))
        found = [match for match in lines if match and (match["colon"] or match["marks"])]
        starts = [*(match.start() for match in found[1:]), len(reply)][: len(found)]
        texts = [reply[match.end() : end] for match, end in zip(found, starts, strict=True)]
    before = reply[: found[0].start()].strip() if found else reply
    called = (re.sub(r"[_-]", " ", match["name"].lower()) for match in found)
    return before, list(zip(called, map(str.strip, texts), strict=True))
