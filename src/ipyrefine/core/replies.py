"""Model text → the text it holds, apart from the thoughts around it."""

import ast
import json
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Literal, NamedTuple

from ipyrefine.core import edits
from ipyrefine.core.fields import NAMES, as_text, json_objects, labelled, plain_name
from ipyrefine.core.model import Form, Record, Task
from ipyrefine.core.syntax import (
    NO_CODE,
    free_names,
    has_steps,
    names_bound,
    names_used,
    pygments_name,
    try_parse,
)
from ipyrefine.errors import ReplyError

# Texts

_OPEN, _CLOSE = (rf"^[^\S\n]*<{tag}>[^\S\n]*$" for tag in ("text", "/text"))
_TAGGED = re.compile(
    rf"{_OPEN}\n(?P<text>.*?)(?:(?P<end>{_CLOSE})|(?={_OPEN})|\Z)", re.MULTILINE | re.DOTALL
)
_ASSIGNS = re.compile(r"[%!]+\w|[\w.\[\]'\"]+ [-+*/|&]?= ")  # or is a magic
_OPENING = re.compile(r"^[ \t]*<text(?:\s+(?:kind=)?[\"']?(?P<kind>\w*)[^>\n]*)?>", re.MULTILINE)
_EXPLAINS = 240  # bytes before a fence that may be a quotation
_FENCES = 40  # of a reply that are compared
_PARAGRAPHS = 20  # before code that nothing marks, at most
_CLOSING_TAG = re.compile(r"</text>\s*\Z")
_MARK = re.compile(r"^(?P<indent>[ \t]*)(?P<marks>`{3,}|~{3,})(?P<tag>[^`\n]*)$", re.MULTILINE)
_IN_MARKDOWN = re.compile(r"\s*(?:`{3,}|~{3,})(?:markdown|md)[^\S\n]*\n", re.IGNORECASE)
_ENVELOPE = re.compile(  # JSON, of a tool call too
    r"\s*(?:<\w+>\s*|```(?:json)?\s+)?(?:[\[{]\s*)+(?:\}|[\"'“][^\"'”\n]{0,60}[\"'”]\s*:)"
)
_DEFINES = re.compile(
    r"\b(?:class|interface|struct|enum|record|trait|type|func(?:tion)?|fn|fun|def|sub|proc|const"
    r"|let|va[lr])\s+(\w+)|^[^\S\n]*(?:[\w<>\[\],*&]+[^\S\n]+){1,4}(\w+)\s*\([^;{}\n]*\)[^;\n]{0,40}\{",
    re.MULTILINE,
)


class Fence(NamedTuple):
    """A fenced block: its lines without the fence's indentation, and where it stands."""

    tag: str
    text: str
    start: int
    end: int
    closed: bool


def read_fences(reply: str) -> list[Fence]:
    """Return the fenced blocks of a reply, with any number of ``` or ~~~ from three on.

    Each ends at as many of the marks or more, indented no deeper. One that nothing closes goes on
    to the end.
    """
    found, opened = list[Fence](), None
    for mark in [*_MARK.finditer(reply), None]:
        if opened and (mark is None or _closes(opened, mark)):
            stop = mark.start() if mark else len(reply)
            lines = reply[opened.end() + 1 : stop].split("\n")
            margin = opened["indent"]
            text = "\n".join(line.removeprefix(margin) for line in lines)
            if not mark:
                text = _CLOSING_TAG.sub("", text)
            tag = opened["tag"].strip().split(" ")[0].split("{")[0].split(":")[0]
            end = mark.end() if mark else len(reply)
            closed = bool(mark) or text.rstrip().endswith(opened["marks"])  # beside its last line
            text = text if mark or not closed else text.rstrip()[: -len(opened["marks"])]
            found.append(Fence(tag, text, opened.start(), end, closed))
            opened = None
        elif not opened:
            opened = mark
    return found


def _closes(opened: re.Match[str], mark: re.Match[str]) -> bool:
    deeper = len(mark["indent"]) > len(opened["indent"])
    return mark["marks"].startswith(opened["marks"]) and not (mark["tag"].strip() or deeper)


class WrittenText(Record):
    """A text as a writer gave it, apart from the thoughts before it."""

    text: str
    thoughts: str = ""
    missed: int = 0  # how many of its edits could not be made
    edits: int = 0  # how many edits it was given as; 0 for a whole text
    form: Form | None = None  # what it chose, where it might
    kind: str = ""  # of words, as it named it
    language: str = ""  # what its fence names, where that is another than was asked for


def parse_text(
    reply: str,
    form: Form,
    *,
    cut: bool = False,
    language: str = "python",
    own: bool = False,
    task: Task | None = None,
    base: str = "",
) -> WrittenText:
    """Tell the text of a reply from the thoughts before it.

    It may be JSON or a tool call with ``thoughts`` and ``response``, or have these words, in any
    of several languages, as tags, labels or headings; the following then holds for the response.
    Code is in a fence (`choose_code` says in which), or the whole reply if that is Python. Prose
    stands between lines with ``<text>`` and ``</text>``, the last such text counts; or it is the
    whole reply.

    Of a reply that was `cut` off only a text with its end marked is whole. One to the user's `own`
    prompt need not be marked, and its parts may have other names. The task's words name what the
    code defines, and say if it is to be JSON. `base` is the text that it is a revision of.

    Raises:
        ReplyError: there is no text in it, no whole one, or what looks like an envelope is none.
    """
    if form == "prose":  # a kind is for the first reply alone
        reply = _OPENING.sub("<text>", reply, count=1)
    data = _wants_data(task, base, form, language)
    whole = _is_whole(reply, form, language) and not _STARTS.match(reply)
    if not whole and (response := _unwrap(reply, own, data)):
        try:
            inner = parse_text(
                response.text, form, cut=cut, language=language, own=own, task=task, base=base
            )
        except ReplyError:
            if cut or not response.text.strip() or (form == "code" and language == "python"):
                raise
            return response
        thoughts = "\n\n".join(filter(None, (response.thoughts, inner.thoughts)))
        return WrittenText(text=inner.text, thoughts=thoughts)
    if form == "code":
        fences = read_fences(reply)
    else:
        blocks = _TAGGED.finditer(reply)
        fences = [Fence("", _body(one), *one.span(), bool(one["end"])) for one in blocks]
    filled = [one for one in fences if one.text.strip()]
    if cut and not (fences and fences[-1].closed):
        raise ReplyError("it breaks off before the end of the text")
    if filled and form == "prose":
        text, thoughts = filled[-1].text.strip("\n"), reply[: filled[0].start].strip()
        bare, beside = _unfenced(text, base, data)
        if not (beside or text.startswith("```\n")):
            text = bare
    elif filled:
        code, chosen = choose_code(filled, language, task, base)
        text, around = code.strip("\n"), (reply[: filled[0].start], reply[chosen.end :])
        if pygments_name(chosen.tag) in NO_CODE and read_fences(text):
            return parse_text(text, form, language=language, own=own, task=task, base=base)
        thoughts = "\n\n".join(filter(None, map(str.strip, around)))
    elif fences:
        raise ReplyError("it holds no text")
    elif form == "prose":
        text, thoughts = _inline_text(reply.strip())
        if not thoughts:
            text, thoughts = _unfenced(text, base, data)
        if not data and _ENVELOPE.match(text):
            raise ReplyError("it is JSON without a text")
    elif own or _is_whole(reply, form, language):
        text, thoughts = reply.strip(), ""
        starts = [0, *(m.end() for m in islice(re.finditer(r"\n\s*\n", reply), _PARAGRAPHS))]
        for start in starts if language == "python" else ():
            if _is_whole(reply[start:], form, language):
                text, thoughts = reply[start:].strip(), reply[:start].strip()
                break
        if not data and _ENVELOPE.match(text) and not _is_whole(text, form, language):
            raise ReplyError("it holds no code block")
    else:
        raise ReplyError("it holds no code block")
    if not text.strip():
        raise ReplyError("it holds no text")
    if form == "code" and language == "python" and _is_wrapped(text):
        raise ReplyError("its code holds marks or labels that are not Python")
    return WrittenText(text=text, thoughts=thoughts)


def _wants_data(task: Task | None, base: str, form: Form, language: str) -> bool:
    asked = task.request if task else ""
    named = re.search(r"\b(?:json|yaml|schema|dict\w*)\b", asked, re.IGNORECASE)
    data = form == "prose" and bool(named)
    return data or language in ("json", "yaml") or base.lstrip()[:1] in ("{", "[")


def _is_wrapped(text: str) -> bool:
    """Return True if what should be Python is still in an envelope, or holds fences or labels."""
    if try_parse(text):
        return False
    marked = any(not one["indent"] for one in _MARK.finditer(text))
    before, labels = labelled(text[:200].lstrip(), (*_SAID, "solution", "answer"))
    tagged = re.match(r"\s*</?[a-zA-Z_ ]+>", text)
    return marked or bool(_ENVELOPE.match(text) or tagged or (labels and not before))


def choose_code(
    fences: Sequence[Fence], language: str, task: Task | None, base: str
) -> tuple[str, Fence]:
    """Return the code of a reply with several fences, and the last fence that it stands in.

    What is fenced as another language is left out, and so is the text that is revised. Of the
    others it is the one that defines most of what the task or that text names, the last of these,
    as writers correct themselves, with those that define what else is named; else the first. Of
    Python, fences that define what it uses go before it, and where no definition is named, those
    follow that go on with its variables.
    """
    own = [one for one in fences if pygments_name(one.tag) == language]
    own = own or [one for one in fences if pygments_name(one.tag) not in NO_CODE] or [*fences]
    words = base.split()
    own = ([one for one in own if one.text.split() != words] or own)[:_FENCES]
    if len(own) == 1:
        return own[0].text, own[0]
    asked = set(re.findall(r"\w+", task.request.lower() if task else ""))
    asked |= {name.lower() for name in _defined(base, language)}
    given = {one.name for one in task.materials} if task else set[str]()
    for variables in (False, True):
        found = [{*map(str.lower, _defined(one.text, language, variables) - given)} for one in own]
        named = [len(names & asked) for names in found]
        if best := max(named):
            chosen = {len(named) - 1 - named[::-1].index(best)}
            break
    else:
        chosen, variables = {0}, True
    for n in range(len(own) - 1, -1, -1) if not variables else ():  # further ones that are named
        covered = set[str]().union(*(found[one] for one in chosen))
        if found[n] & asked and not found[n] & covered:
            chosen.add(n)
    parts = sorted(chosen)
    if language == "python":
        parts = _parts(own, chosen, given, go_on=variables)
    return "\n\n".join(own[n].text.strip("\n") for n in parts), own[max(parts)]


def _defined(code: str, language: str, variables: bool = False) -> set[str]:
    tree = try_parse(code) if language == "python" else None
    if variables:
        return {name for node in tree.body for name in names_bound(node)} if tree else set()
    if tree is None:
        return {name for pair in _DEFINES.findall(code) for name in pair if name}
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def _parts(
    fences: Sequence[Fence], chosen: Collection[int], given: Collection[str], go_on: bool
) -> list[int]:
    """Return which fences make one program with the chosen ones, in their order."""
    trees = [try_parse(one.text) or ast.Module([], []) for one in fences]
    bound = [{n for node in tree.body for n in names_bound(node)} for tree in trees]
    own = set[str]().union(*(bound[n] for n in chosen))
    needed = set[str]().union(*(free_names(trees[n]) for n in chosen)) - own
    first, parts = min(chosen), list[int]()
    for n in [*range(first - 1, -1, -1), *range(first + 1, len(fences))]:
        beside = n not in chosen and not (bound[n] | names_used(trees[n])) & own
        if beside and bound[n] & needed - {*given}:
            parts.append(n)
            needed |= free_names(trees[n]) - bound[n]
    parts = sorted(parts) + sorted(chosen)
    steps = has_steps(trees[first]) or not _defined(fences[first].text, "python")
    state = own if steps else set[str]()
    for n in range(first + 1, len(fences)) if go_on else ():
        if n not in parts and free_names(trees[n]) & state:
            parts.append(n)
            state = state | bound[n]
    return parts


def parse_form(reply: str) -> Form:
    """Read the form that a task wants; whatever is not "words" means code."""
    return "prose" if reply.strip(" \n\"*`'").lower().startswith("words") else "code"


def parse_choice(
    reply: str,
    *,
    cut: bool = False,
    language: str = "python",
    own: bool = False,
    task: Task | None = None,
) -> WrittenText:
    """Read the reply of a writer that chooses between code and words, as `parse_text` does.

    Words stand between lines with ``<text>``, perhaps with their kind, and ``</text>``. Where
    these are missing, code is what is in a fence or Python as a whole, and all else is words. So is
    a fence that a much longer explanation quotes. In doubt it is code, which the user can switch.

    Raises:
        ReplyError: as for `parse_text`; or it is broken code, without a mark.
    """
    tagged = _OPENING.search(reply)
    options: dict[str, Any] = {"cut": cut, "language": language, "task": task}
    data = _wants_data(task, "", "code", language)
    if not tagged and (inner := _unwrap(reply, own, data)):
        try:
            written = parse_choice(inner.text, own=own, **options)
        except ReplyError:
            if cut or not inner.text.strip():
                raise
            written = inner.replace(form="code")
        return written.replace(thoughts=inner.thoughts)
    if not (tagged or cut) and _IN_MARKDOWN.match(reply) and _unfenced(reply, "", data)[0] != reply:
        return parse_text(reply, "prose", own=own, task=task).replace(form="prose")
    blocks = [block for block in read_fences(reply) if block.text.strip()][:_FENCES]
    if tagged and not any(block.start < tagged.start() for block in blocks):
        written = parse_text(reply, "prose", own=own, **options)
        return written.replace(form="prose", kind=tagged["kind"] or "")
    code = [block for block in blocks if _is_code_block(block, language)]
    longest = max(code or blocks, key=lambda block: len(block.text), default=None)
    below = not (cut or blocks) and language == "python" and _ends_with_code(reply)
    if not (cut or below) and _has_words(reply, blocks, longest, language, code=bool(code)):
        return parse_text(reply, "prose", own=own, task=task).replace(form="prose")
    written = parse_text(reply, "code", own=own or below, **options)
    named = pygments_name(choose_code(code, language, task, "")[1].tag) if code else ""
    other = named if named not in ("", language, "pycon", "jupyter") else ""
    return written.replace(form="code", language=other)


def _ends_with_code(reply: str) -> bool:
    tails = (reply[m.end() :] for m in islice(re.finditer(r"\n\s*\n", reply), _PARAGRAPHS))
    tails = (tail for tail in tails if _is_statement(tail.partition("\n")[0]))
    return any(_is_whole(tail, "code", "python") for tail in tails)


def _has_words(
    reply: str, blocks: Sequence[Fence], block: Fence | None, language: str, *, code: bool
) -> bool:
    if block and code:
        around = len(reply.encode()) - sum(len(reply[b.start : b.end].encode()) for b in blocks)
        long = len(reply[: block.start].encode()) > _EXPLAINS
        return long and around > 3 * len(block.text.encode())
    inner = _unwrap(reply, True, False)
    if (wraps := inner is not None and _is_whole(inner.text, "code", language)) or block:
        return not wraps
    lines = [*filter(None, map(str.strip, reply.splitlines()))]
    broken = 2 * sum(map(_is_statement, lines)) >= len(lines)
    broken = broken or any(line.startswith(("```", "~~~")) for line in lines)
    broken = broken or bool(_ENVELOPE.match(reply))
    return not (broken or language != "python" or _is_whole(reply, "code", language))


def _is_code_block(block: Fence, language: str) -> bool:
    tag, body = pygments_name(block.tag), block.text
    looks = language != "python" or _is_whole(body, "code", language)
    return tag not in NO_CODE and bool(tag or looks or any(map(_is_statement, body.splitlines())))


def _is_statement(line: str) -> bool:
    """Return True for an import, an assignment, a call or a magic, which is no sentence."""
    line = line.strip()
    if _ASSIGNS.match(line):
        return True
    tree = try_parse(f"{line}\n    pass" if line.endswith(":") else line)
    node = tree.body[0] if tree and tree.body else None
    value = node.value if isinstance(node, ast.Expr) else None
    calls = isinstance(value, ast.Call | ast.Subscript | ast.Attribute)
    # "Subject: delay" is an annotation.
    return calls or not (node is None or isinstance(node, ast.Expr | ast.AnnAssign))


def parse_edits(
    reply: str,
    base: str,
    form: Form,
    *,
    language: str = "python",
    lenient: bool = False,
    task: Task | None = None,
) -> WrittenText:
    """Return a text with the edits of a reply made; a reply without edits may be the whole text.

    If `lenient`, some of the edits are enough.

    Raises:
        ReplyError: an edit could not be made, with the lines that are most like what it looks for;
            or there is neither an edit nor a whole text.
    """
    found, thoughts = edits.read_edits(reply)
    if not found:
        if form == "prose" and not _TAGGED.search(reply):
            raise ReplyError("it holds no edit")
        return parse_text(reply, form, language=language, task=task, base=base)
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
    """Return True if a reply goes round in circles: its end compresses to next to nothing.

    Of the embedded model's kept replies that holds for 45 of 56 that ran into the token limit, and
    for 1 of 1,249 others (under 1 %).
    """
    end = reply[-2_000:].encode("utf-8", "replace")
    return len(zlib.compress(end)) < 0.15 * len(end)


_THOUGHTS, _RESPONSE = NAMES["thoughts"], NAMES["response"]
# As labels in words only some of the English ones, as the others are usual in texts.
_SAID_FIRST = ("thoughts", "thinking", "reasoning", *_THOUGHTS[_THOUGHTS.index("gedanken") :])
_SAID = (*_SAID_FIRST, "response", *_RESPONSE[_RESPONSE.index("antwort") :])
_STARTS = re.compile(rf"\W*(?:{'|'.join(_SAID_FIRST)})\b", re.IGNORECASE)
_LINE = re.compile(
    rf"\A(\W*(?:{'|'.join(_SAID)})\s?[:：][^\n]*?[.!?。！？\s])\s*"  # noqa: RUF001
    rf"(?=(?:{'|'.join(_RESPONSE)})\s?[:：])",  # noqa: RUF001
    re.IGNORECASE,
)


def _unwrap(reply: str, own: bool, data: bool) -> WrittenText | None:
    """Return the response and thoughts of a reply that has them as JSON, in tags or under labels.

    In a reply to the user's own prompt, other names count too, and so does a part by itself. JSON
    that is fenced as code, or asked for, is the text itself.
    """
    start = reply.find("{")
    fence = next((one for one in read_fences(reply) if one.start < start < one.end), None)
    inside = bool(fence and fence.text.lstrip()[:1] not in ("{", "["))
    coded = bool(fence and pygments_name(fence.tag) not in ("", "json"))
    for place, fields in json_objects(reply):
        if inside or reply[start:place].strip("{ \n"):  # an object of the code's own
            break
        named = {re.split(r"[_\W]", plain_name(key))[-1]: key for key in fields}
        response = next((named[name] for name in _RESPONSE if name in named), None)
        alone = fields.keys() <= {"response", "thoughts"} and response == "response"
        said = {name for name in named if name in _THOUGHTS or name in _RESPONSE}
        both = response is not None and any(name in named for name in _THOUGHTS)
        if response is None or not (own or alone or (not data and said == named.keys())):
            continue
        if coded and not both:
            break
        notes = (as_text(fields[named[name]]) for name in _THOUGHTS if name in named)
        value = fields[response]
        if isinstance(value, dict) and len(value) == 1:
            [value] = value.values()
        text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
        return WrittenText(text=text, thoughts="\n\n".join(notes))
    reply = _LINE.sub(r"\1\n", reply)
    tags = "<response>" in reply.lower() or re.search(rf"(?i)<({'|'.join(_THOUGHTS)})>", reply)
    before, parts = labelled(reply, (*_THOUGHTS, *_RESPONSE) if tags and own else _SAID)
    if "```" in before or "~~~" in before or "<text>" in before:  # words in the text itself
        return None
    thoughts = "\n\n".join(text for name, text in parts if name in _THOUGHTS)
    responses = [text for name, text in parts if name in _RESPONSE]
    if responses and (thoughts or (own and not before)):
        return WrittenText(text=responses[0].strip("\n"), thoughts=thoughts)
    if tags and own and thoughts:
        left = reply.rpartition("</")[2].partition(">")[2]
        return WrittenText(text=left.strip("\n"), thoughts=thoughts) if left.strip() else None
    return None


def _unfenced(reply: str, base: str, data: bool) -> tuple[str, str]:
    """Return words without a fence around them, and what stands beside it: a line or two.

    One of Markdown may hold others. It stays where the text that is revised begins with one.
    """
    marks = [] if base.lstrip()[:3] in ("```", "~~~") else [*_MARK.finditer(reply)]
    if len(marks) < 2 or marks[0]["marks"] != marks[-1]["marks"] or marks[-1]["tag"].strip():
        return reply, ""
    opened, *inner, closed = marks
    text, tag = reply[opened.end() : closed.start()].strip("\n"), opened["tag"].strip().lower()
    around = reply[: opened.start()].strip(), reply[closed.end() :].strip()
    named = tag in (NO_CODE | {"json", "yaml"} if data else NO_CODE) or not (tag or any(around))
    nested = tag in ("markdown", "md") and not any(one["tag"].strip() for one in inner[1::2])
    holds = not inner or (nested and len(inner) % 2 == 0)
    beside = len("".join(around)) <= len(text) and not any("\n" in one for one in around)
    if not (named and holds and beside and text.strip()):
        return reply, ""
    return text, "\n\n".join(filter(None, around))


def _body(block: re.Match[str]) -> str:
    return block["text"] if block["end"] else _CLOSING_TAG.sub("", block["text"])


def _inline_text(reply: str) -> tuple[str, str]:
    """Return text and thoughts of a reply whose tags, if any, are not on lines of their own."""
    if not reply.endswith("</text>"):
        return reply, ""
    thoughts, _, text = reply.removesuffix("</text>").rpartition("<text>")
    return text.strip(), thoughts.strip()


@lru_cache(maxsize=64)  # of tails of a reply too, several times each
def _is_whole(reply: str, form: Form, language: str) -> bool:
    tree = try_parse(reply) if form == "code" and language == "python" else None
    match tree.body if tree else []:
        case []:
            return False
        case [ast.Expr(value=ast.Dict() | ast.List() | ast.Set() | ast.Constant())]:
            return False  # a lone literal is data: a JSON reply that happens to be an expression
    return True


class Splitter:
    """Tells text from thoughts while a reply streams, line by line.

    A reply may begin `inside` the text; one that `chooses` may be words in place of code, which its
    first line says.
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
                    opens = bool(_OPENING.fullmatch(self._line.strip()))
                    self._inside = not self._inside if self._mark == "```" else opens
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
        if self._mark == "```":
            return any(line.startswith(mark) or mark.startswith(line) for mark in ("```", "~~~"))
        if line[0] != self._mark[0]:
            return False
        return line.startswith("<text ") or any(t.startswith(line) for t in ("<text>", "</text>"))
