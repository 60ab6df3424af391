"""One form for each who answers: how it is asked for, how it is read, what is told if it is missed.

A reply that misses its form is asked for once more; then the user is told, with the reply.
"""

import ast
import json
import re
import tomllib
import zlib
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from ipyrefine.core.critiques import read_critique
from ipyrefine.core.edits import apply, read_edits
from ipyrefine.core.evaluations import read_evaluation, read_score
from ipyrefine.core.fences import CLOSING_TAG, Fence, read_fences, read_objects
from ipyrefine.core.languages import NO_CODE, code_language, pygments_name
from ipyrefine.core.model import Form, Task, WrittenText
from ipyrefine.core.syntax import (
    DEFINITION,
    IMPORT,
    has_steps,
    names_at_top,
    names_used,
    tree_of,
    try_parse,
)
from ipyrefine.errors import ReplyError

_OPENING = re.compile(r"^[ \t]*<text(?:\s+(?:kind=)?[\"']?(?P<kind>\w*)[^>\n]*)?>", re.MULTILINE)
_OPEN, _CLOSE = (rf"^[^\S\n]*<{tag}>[^\S\n]*$" for tag in ("text", "/text"))
_TAGGED = re.compile(
    rf"{_OPEN}\n(?P<text>.*?)(?:(?P<end>{_CLOSE})|(?={_OPEN})|\Z)", re.MULTILINE | re.DOTALL
)
_NOTES = re.compile(r"\A\s*(?:[fqt]\d{1,4}\b[^\n]*:[^\n]*\n+)+")  # of a revision, by findings
# Of a reply to the user's own prompt: what marks its thoughts, and where the response follows.
_LABEL = r"^[ \t#*_\d.]*{}[*_]*(?::[*_]*|[^\S\n]*$)"
_THOUGHTS, _RESPONSE = (
    re.compile(f"{tags}|{_LABEL.format(label)}", re.IGNORECASE | re.MULTILINE)
    for tags, label in (
        ("</?(?:thoughts|thinking)>", "thoughts"),
        ("<response>|</(?:thoughts|thinking)>", "response"),
    )
)


class Asked(NamedTuple):
    """What a writer was asked for.

    Attributes:
        task: the task, with its form and language.
        base: the text to revise.
        wishes: what the revision is to act on, which may name what it is to define.
        chooses: whether the writer may answer in words.
        cut: whether the reply was cut off.
        last: whether it is not asked for again.
    """

    task: Task
    base: str = ""
    wishes: str = ""
    chooses: bool = False
    cut: bool = False
    last: bool = False


# What a writer writes


def read_text(reply: str, asked: Asked) -> WrittenText:
    """Read a whole text, or edits of the text that is to be revised.

    Raises:
        ReplyError: it is neither.
    """
    if asked.base and not asked.cut and read_edits(reply)[0]:
        return read_changes(reply, asked)
    return (read_code if asked.task.form == "code" else read_words)(reply, asked)


def read_code(reply: str, asked: Asked, *, own: bool = False) -> WrittenText:
    """Read a reply with one block of code, or one that is code as a whole.

    Raises:
        ReplyError: it is neither; or no revision of the text that was to be revised.
    """
    fences, known = read_fences(reply), asked.task.language
    language = known or (not fences and code_language(reply)) or "python"
    if asked.cut and not (fences and fences[-1].closed):
        raise ReplyError("it breaks off before the end of the text")
    text, around, named = reply.strip(), ("", ""), language
    if fences:
        chosen = _choose(fences, asked)
        text, around = chosen.text.strip("\n"), (reply[: fences[0].start], reply[chosen.end :])
        named = pygments_name(chosen.tag)
        coded = asked.chooses or named == language or not _is_data(text, language)
    else:
        coded = _is_python(text) if language == "python" else not _is_data(text, language)
    if not (own or coded):
        raise ReplyError("it holds no code block")
    if not text.strip():
        raise ReplyError("it holds no text")
    if language == "python" and not _is_revision(text, asked):
        raise ReplyError("its code has nothing of the text that was to be revised")
    thoughts = "\n\n".join(filter(None, map(str.strip, around)))
    other = (asked.chooses or not known) and named not in ("", known, "pycon", "jupyter")
    found = "" if known else code_language(text) or "python"
    return WrittenText(text=text, thoughts=thoughts, language=named if other else found)


def _choose(fences: Sequence[Fence], asked: Asked) -> Fence:
    """Return the block that is the text: the last that defines all that the task or base names."""
    filled = [one for one in fences if one.text.strip()] or [*fences]
    language = asked.task.language or "python"
    known = [one for one in filled if pygments_name(one.tag) == language]
    known = known or [one for one in filled if pygments_name(one.tag) not in NO_CODE] or filled
    base = asked.base.split()
    known = [one for one in known if one.text.split() != base] or known
    if len(known) > 1:
        wanted = _names(asked.base) | _words(asked.task.request)
        wanted -= {one.name.lower() for one in asked.task.materials}
        every = set[str]().union(*(_names(one.text) for one in known)) & wanted
        known = [one for one in known if every and every <= _names(one.text)][-1:] or known
    if len(known) > 1 and not asked.last:
        raise ReplyError("it holds several blocks")
    return next((one for one in known if try_parse(one.text)), known[0])


def _names(code: str) -> set[str]:
    """Return what Python defines anywhere or binds outside of functions, in lower case."""
    tree = tree_of(code)
    names = (node.name for node in ast.walk(tree) if isinstance(node, DEFINITION))
    bind = (node for node in tree.body if not isinstance(node, IMPORT))
    return {*map(str.lower, {*names} | names_at_top(bind))}


def _words(text: str) -> set[str]:
    return {*re.findall(r"\w+", text.lower())}


def _is_revision(code: str, asked: Asked) -> bool:
    """Return False for code that has nothing of what it is to revise, as tests of it have not.

    In place of definitions, it has to bind one of their names, or one that the task or a finding
    names. A cell may be done by other steps.
    """
    old, new = try_parse(asked.base), try_parse(code)
    if not (old and new and names_used(old) | _names(asked.base)):
        return True
    defines = any(isinstance(one, DEFINITION) for one in old.body)
    acts = any(not isinstance(one, DEFINITION | IMPORT) for one in new.body)
    known = _names(asked.base) | _words(f"{asked.task.request} {asked.wishes}")
    goes_on = not defines and bool(names_used(old) & names_used(new))
    done = acts and (has_steps(old) or not defines)
    return goes_on or done or bool(_names(code) & known)


def _is_python(reply: str) -> bool:
    match tree_of(reply).body:
        case [] | [ast.Expr(value=ast.Dict() | ast.List() | ast.Set() | ast.Constant())]:
            return False  # a lone literal is data: JSON that happens to be an expression
    return True


def _is_data(reply: str, language: str = "") -> bool:
    opens = reply.lstrip().startswith("{") and language not in ("json", "yaml")
    return opens and bool(read_objects(reply))


def read_words(reply: str, asked: Asked, *, data: bool = False) -> WrittenText:
    """Read words between lines with ``<text>`` and ``</text>``, or a reply of words as a whole.

    Raises:
        ReplyError: there are none, or their end is missing, or it is JSON.
    """
    reply = _OPENING.sub("<text>", reply, count=1)
    blocks = [*_TAGGED.finditer(reply)]
    if asked.cut and not (blocks and blocks[-1]["end"]):
        raise ReplyError("it breaks off before the end of the text")
    if filled := [one for one in blocks if one["text"].strip()]:
        text, thoughts = filled[-1]["text"], reply[: filled[0].start()]
        text = (text if filled[-1]["end"] else CLOSING_TAG.sub("", text)).strip("\n")
    else:
        text, thoughts = reply.strip(), ""
        if text.endswith("</text>"):  # on the line of its first or last words
            thoughts, _, text = text.removesuffix("</text>").rpartition("<text>")
        noted = "".join(_NOTES.findall(text))
        thoughts, text = thoughts + noted, text[len(noted) :].strip()
    if not text or (blocks and not filled):
        raise ReplyError("it holds no text")
    if not (blocks or data) and _is_data(text):
        raise ReplyError("it is JSON without a text")
    return WrittenText(text=text, thoughts=thoughts.strip())


def read_either(reply: str, asked: Asked) -> WrittenText:
    """Read the reply of a writer that chooses: what is neither marked nor Python is words.

    Raises:
        ReplyError: as for the one or the other.
    """
    opening = _OPENING.search(reply)
    fences = [one for one in read_fences(reply) if pygments_name(one.tag) not in NO_CODE]
    if opening and not any(one.start < opening.start() for one in fences):
        return read_words(reply, asked).replace(form="prose", kind=opening["kind"] or "")
    language = asked.task.language or code_language(reply) or "python"
    if fences or asked.cut or language != "python" or _is_python(reply):
        return read_code(reply, asked).replace(form="code")
    return read_words(reply, asked).replace(form="prose")


def read_changes(reply: str, asked: Asked) -> WrittenText:
    """Read edits and make them; a reply without edits may be the whole text.

    Of the last reply some of the edits are enough.

    Raises:
        ReplyError: an edit could not be made, with the lines that are most like what it looks for;
            or there is neither an edit nor a whole text.
    """
    found, thoughts = read_edits(reply)
    if not found:
        if asked.task.form == "prose" and not _TAGGED.search(reply):
            raise ReplyError("it holds no edit")
        return read_text(reply, asked)
    text, misses = apply(asked.base, found)
    if misses and not (asked.last and len(misses) < len(found)):
        raise ReplyError("; ".join(misses))
    return WrittenText(text=text, thoughts=thoughts, missed=len(misses), edits=len(found))


def read_own(reply: str, asked: Asked) -> WrittenText:
    """Read a reply to the user's own prompt: its response if it names one, else all of it.

    Raises:
        ReplyError: there is no text in it, or no whole one.
    """
    response, thoughts = _response(reply)
    if asked.chooses:
        written = read_either(response, asked)
    elif asked.task.form == "code":
        written = read_code(response, asked, own=True)
    else:
        written = read_words(response, asked, data=True)
    return written.replace(thoughts="\n\n".join(filter(None, (thoughts, written.thoughts))))


def _response(reply: str) -> tuple[str, str]:
    """Return the response and the thoughts of JSON, tags or labels with these names."""
    reply = reply.strip()
    first = next(iter(read_fences(reply)), None)
    coded = first and first.tag.lower() not in ("", "json") and reply.find("{") > first.start
    for fields in () if coded else read_objects(reply):
        named = {key.lower(): value for key, value in fields.items()}
        if (value := named.get("response")) is not None:
            text = (
                value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
            )
            return text, str(named.get("thoughts") or "")
    if _is_python(reply) and not _THOUGHTS.match(reply):
        return reply, ""
    found = _RESPONSE.search(reply)
    before = reply[: found.end()] if found else ""
    if found and not read_fences(before) and (_THOUGHTS.search(before) or not found.start()):
        response = reply[found.end() :].strip().removeprefix("<response>")
        thoughts = _THOUGHTS.sub("", reply[: found.start()]).strip()
        return response.removesuffix("</response>").strip("\n"), thoughts
    if _THOUGHTS.match(reply) and not read_fences(reply):
        raise ReplyError("it holds thoughts and no response")
    return reply, ""


def read_data(reply: str, asked: Asked) -> WrittenText:
    """Read what a server was held to by a schema, where it takes one: words, or the JSON alone.

    Raises:
        ReplyError: as for words.
    """
    fences = read_fences(reply)
    return read_words(fences[0].text if len(fences) == 1 else reply, asked, data=True)


def parse_form(reply: str) -> Form:
    """Read the form that a task wants; whatever is not "words" means code."""
    return "prose" if reply.strip(" \n\"*`'").lower().startswith("words") else "code"


# The table


class ReplyForm(NamedTuple):
    """What a reply has to be.

    Attributes:
        shape: its form, in the words that ask for it once more.
        read: reads it, or raises `ReplyError`.
        told: what the user is told where it is missed.
    """

    shape: str
    read: Callable[..., Any]
    told: str


_SHAPES: dict[str, str] = tomllib.loads(
    (files("ipyrefine.core") / "prompts.toml").read_text("utf-8")
)["shapes"]
_READERS: dict[str, tuple[Callable[..., Any], str]] = {
    "code": (read_text, "its reply is not the code that was asked for"),
    "words": (read_text, "its reply is not the text that was asked for"),
    "either": (read_either, "its reply is neither code nor a text"),
    "edits": (read_changes, "its edits do not fit the text"),
    "data": (read_data, "its reply is not the JSON that was asked for"),
    "own": (read_own, "its reply to your prompt has no text"),
    "critic": (read_critique, "its reply is not the critique that was asked for"),
    "evaluator": (read_evaluation, "its reply is no verdict"),
    "score": (lambda reply, _: read_score(reply), "its reply is no score"),
}
FORMS = {name: ReplyForm(_SHAPES[name], *row) for name, row in _READERS.items()}


def repeats_itself(reply: str) -> bool:
    """Return True if a reply goes round in circles: its end compresses to next to nothing.

    Of the embedded model's kept replies that holds for 45 of 56 that ran into the token limit, and
    for 1 of 1,249 others (under 1 %).
    """
    end = reply[-2_000:].encode("utf-8", "replace")
    return len(zlib.compress(end)) < 0.15 * len(end)


class Splitter:
    """Tells text from thoughts while a reply streams, line by line; all of it may be `inside`."""

    def __init__(self, form: Form, *, inside: bool = False) -> None:
        self._fences = ("```", "~~~") if form == "code" else ()
        self._ends = "\n" if inside else ""  # the mark that ends the text
        self._line = ""
        self._passing = False

    def feed(self, chunk: str) -> Iterator[tuple[Literal["text", "thinking"], str]]:
        """Yield the pieces of a chunk with their kind; a line that may be a mark is held back."""
        for piece in chunk.splitlines(keepends=True):
            self._line += piece
            line, ended = self._line.strip(), self._line.endswith("\n")
            if not (ended or self._passing) and line[:1] in ("", "`", "~", "<"):
                continue
            whole = ended and not self._passing
            fence = line[:3] if line[:3] in self._fences else ""
            if whole and not self._ends and (fence or _OPENING.fullmatch(line)):
                self._ends = fence or "</text>"
            elif whole and self._ends and self._ends in (fence, line):
                self._ends = ""
            else:
                yield "text" if self._ends else "thinking", piece if self._passing else self._line
            self._passing = not ended
            self._line = "" if ended else self._line
