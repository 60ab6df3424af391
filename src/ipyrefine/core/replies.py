"""Model text → records. One pydantic model per reply gives both its JSON schema and its parser."""

import ast
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any, Literal

from ipyrefine.core import edits
from ipyrefine.core.findings import FEEDBACK
from ipyrefine.core.model import (
    Finding,
    Form,
    Judgement,
    Outcome,
    Record,
    Severity,
)
from ipyrefine.core.syntax import try_parse
from ipyrefine.errors import ReplyError

# Texts

_FENCE = re.compile(r"^```[^\n`]*\n(?P<text>.*?)(?:(?P<end>^```\s*$)|\Z)", re.MULTILINE | re.DOTALL)
_OPEN, _CLOSE = (rf"^[^\S\n]*<{tag}>[^\S\n]*$" for tag in ("text", "/text"))
_TAGGED = re.compile(
    rf"{_OPEN}\n(?P<text>.*?)(?:(?P<end>{_CLOSE})|(?={_OPEN})|\Z)", re.MULTILINE | re.DOTALL
)
_CLOSING_TAG = re.compile(r"</text>\s*\Z")


class WrittenText(Record):
    """A text as a writer gave it, apart from the thoughts before it."""

    text: str
    thoughts: str = ""
    missed: int = 0  # how many of its edits could not be made
    edits: int = 0  # how many edits it was given as; 0 for a whole text


def parse_text(
    reply: str, form: Form, *, cut: bool = False, language: str = "python"
) -> WrittenText:
    """Tell the text of a reply from the thoughts before it.

    A reply to the user's own prompt may be JSON with ``thoughts`` and ``response``, or have these
    words as headings; the following then holds for the response. Code is the longest fenced
    block, or the whole reply if that is Python. Prose stands between lines with ``<text>`` and
    ``</text>``, the last such text counts; or it is the whole reply.

    Args:
        reply: what the model wrote.
        form: how the text is marked.
        cut: whether the reply was cut off, so that only a text with its end marked is whole.
        language: the language of code.

    Raises:
        ReplyError: there is no text in it, or no whole one.
    """
    if response := _unwrap(reply):
        try:
            inner = parse_text(response.text, form, cut=cut, language=language)
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
    elif language == "python" and _is_python(reply):
        text, thoughts = reply.strip(), ""
    else:
        raise ReplyError("it holds no code block")
    if not text.strip():
        raise ReplyError("it holds no text")
    return WrittenText(text=text, thoughts=thoughts)


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
    for 1 of 1,249 others.
    """
    end = reply[-2_000:].encode("utf-8", "replace")
    return len(zlib.compress(end)) < 0.15 * len(end)


_HEADING = r"[ \t*_#]*{}[ \t*_]*:[*_]*"
_HEADINGS = re.compile(
    rf"\A\s*{_HEADING.format('thoughts')}(?P<thoughts>.*?)"
    rf"^{_HEADING.format('response')}(?P<response>.*)\Z",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)


def _unwrap(reply: str) -> WrittenText | None:
    """Return the response and thoughts of a reply that has them as headings or as JSON."""
    if headed := _HEADINGS.match(reply):
        return WrittenText(text=headed["response"].strip(), thoughts=headed["thoughts"].strip())
    if not reply.strip().startswith(("{", "```")) or '"response"' not in reply:
        return None
    try:
        fields = _json_object(reply)
    except ReplyError:
        return None
    response, thoughts = fields.get("response"), fields.get("thoughts", "")
    if not isinstance(response, str) or not fields.keys() <= {"response", "thoughts"}:
        return None
    return WrittenText(text=response, thoughts=str(thoughts))


def _body(block: re.Match[str]) -> str:
    return block["text"] if block["end"] else _CLOSING_TAG.sub("", block["text"])


def _inline_text(reply: str) -> tuple[str, str]:
    """Return text and thoughts of a reply whose tags, if any, do not stand on their own lines."""
    if not reply.endswith("</text>"):
        return reply, ""
    thoughts, _, text = reply.removesuffix("</text>").rpartition("<text>")
    return text.strip(), thoughts.strip()


def _is_python(reply: str) -> bool:
    tree = try_parse(reply)
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
    """

    def __init__(self, form: Form, *, inside: bool = False) -> None:
        self._mark = "```" if form == "code" else "<"
        self._inside = inside
        self._line = ""
        self._passing = False

    def feed(self, chunk: str) -> Iterator[tuple[Literal["text", "thinking"], str]]:
        """Yield the pieces of a chunk with their kind; a line that may be a mark is held back."""
        for piece in chunk.splitlines(keepends=True):
            self._line += piece
            ended = self._line.endswith("\n")
            if not self._passing and self._may_be_mark():
                if ended:
                    self._inside = self._opens()
                    self._line = ""
                continue
            yield ("text" if self._inside else "thinking"), piece if self._passing else self._line
            self._passing = not ended
            if ended:
                self._line = ""

    def _opens(self) -> bool:
        """Return whether a text begins after the line."""
        return not self._inside if self._mark == "```" else self._line.strip() == "<text>"

    def _may_be_mark(self) -> bool:
        line = self._line.strip()
        if not line:
            return not self._line.endswith("\n")
        if line[0] != self._mark[0]:
            return False
        if self._mark == "```":
            return line.startswith("```") or "```".startswith(line)
        return any(tag.startswith(line) for tag in ("<text>", "</text>"))


# An evaluator's replies

_VERDICT = re.compile(
    r"\A\W*(?:(?:evaluation|verdict)\W*)?(?P<outcome>PASS|NEEDS[_ ]IMPROVEMENT|FAIL)\b\W*"
    r"(?P<rest>.*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_JSON_START = re.compile(r"\A\s*(?:```\w*\s*)?\{")
_NUMBER = re.compile(
    r"\A\W*(?:score\W*)?(?<!-)(?P<score>\d+(?:\.\d+)?)\s*(?:/\s*(?P<of>[1-9]\d*))?\W*\Z",
    re.IGNORECASE,
)


def parse_evaluation(reply: str) -> Judgement:
    """Read the reply of the user's evaluator, in any of the usual shapes.

    These are JSON with ``evaluation`` (PASS, NEEDS_IMPROVEMENT or FAIL), ``done`` or ``score``,
    each with ``feedback`` as a text or a list; the words alone, with feedback after them; and a
    number. Scores above 1 are out of 10, above 10 out of 100.

    Args:
        reply: what it wrote.

    Raises:
        ReplyError: it has none of these shapes.
    """
    in_words = not _JSON_START.match(reply)
    if in_words and (match := _VERDICT.match(reply)):
        return _evaluation(match["outcome"], None, match["rest"].strip())
    if in_words and (match := _NUMBER.match(reply)):
        number = float(match["score"])
        return _evaluation(None, number / float(match["of"]) if match["of"] else number, "")
    fields = _json_object(reply)
    outcome, score = fields.get("evaluation", fields.get("verdict")), fields.get("score")
    if outcome is None and isinstance(fields.get("done"), bool):
        outcome = "PASS" if fields["done"] else "NEEDS_IMPROVEMENT"
    if isinstance(score, bool) or not isinstance(score, int | float | None):
        raise ReplyError(f"its score {score!r:.40} is not a number")
    if outcome is None and score is None:
        raise ReplyError("it has no evaluation, done or score")
    return _evaluation(outcome, score, fields.get("feedback", ""))


def _evaluation(outcome: Any, score: float | None, feedback: Any) -> Judgement:
    stated = None
    if outcome is not None:
        stated = Outcome.read(str(outcome))
        if stated is None:
            raise ReplyError(
                f"its evaluation {outcome!r:.40} is not PASS, NEEDS_IMPROVEMENT or FAIL"
            )
    if score is not None:
        score = score / next((limit for limit in (1, 10, 100) if score <= limit), 1)
        if not 0 <= score <= 1:
            raise ReplyError(f"its score {score:g} is out of range")
    items = feedback if isinstance(feedback, list) else [feedback]
    passed = stated is Outcome.PASS
    findings = tuple(
        Finding(
            criterion=FEEDBACK,
            severity=Severity.MINOR if passed else Severity.BLOCKING,
            problem=str(item).strip(),
        )
        for item in items
        if str(item or "").strip()
    )
    return Judgement(stated=stated, score=score, findings=findings)


def _json_object(reply: str) -> dict[str, Any]:
    """Return the JSON object in a reply that may have prose or a fence around it."""
    start = reply.find("{")
    if start < 0:
        raise ReplyError("it holds no JSON object")
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(reply, start)
    except (ValueError, RecursionError):
        raise ReplyError("its JSON is broken") from None
    if not isinstance(value, dict):
        raise ReplyError("its JSON is not an object")
    return value
