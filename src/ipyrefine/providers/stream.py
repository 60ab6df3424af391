"""Read replies of chat completion servers, streamed or whole: thoughts, answer, finish, usage."""

import re
from collections.abc import Iterator
from typing import Any, Literal

from ipyrefine.core.model import Finish
from ipyrefine.core.ports import Delta, Reply, Request, estimate_usage

_MAX_COUNT = 10**12
_MAX_DOLLARS = 10_000  # for one call; more is a mistake
_COUNTS = ("prompt_tokens", "completion_tokens")

# Every other reason a server gives (``eos``, ``tool_calls``, …) is a reply that ended by itself.
_FINISHES: dict[str, Finish] = {
    **dict.fromkeys(("length", "max_tokens", "model_length"), "length"),
    **dict.fromkeys(("content_filter", "safety", "recitation"), "filtered"),
    "refusal": "refused",
    **dict.fromkeys(("error", "abort", "insufficient_system_resource"), "incomplete"),
}
_Kind = Literal["text", "thinking", "refusal"]
# A server often sends the same thoughts in two of these: the first that holds any counts.
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")
_PART_FIELDS = ("text", "thinking", "reasoning", "summary", "refusal", "content", "value")
_THOUGHT_TYPE = re.compile(r"think|thought|reason|summary", re.IGNORECASE)

# How models mark thoughts in their text: tags, Mistral's tokens, and channels (gpt-oss,
# Gemma), of which the final one ends the thoughts before it. `<thoughts>` is left to prompts, which
# ask for it as a part of the answer.
_NAME = r"(?:think(?:ing)?|thought|reasoning)"
_CHANNEL = r"(?:<\|start\|>\w*)?<\|channel\|>\s*"
_MESSAGE = r"[^<]{0,99}(?:<\|constrain\|>[^<]{0,99})?<\|message\|>"
_OPEN = (
    rf"(?:<\s?{_NAME}(?:\s[^<>]{{0,99}})?(?<!/)>|(?-i:\[THINK\])"
    rf"|<\|channel>\s?thought\b|{_CHANNEL}(?!final){_MESSAGE})"
)
_CLOSE = rf"(?:<\s?/\s?{_NAME}\s?>|(?-i:\[/THINK\])|<channel\|>|{_CHANNEL}final{_MESSAGE})"
_START = re.compile(rf"\s*(?:(?P<open>{_OPEN})|{_CLOSE})", re.IGNORECASE)
_TOKENS = re.compile(r"(?:\s*<[|\uff5c][\w/▁]{1,40}[|\uff5c]>)+\s*\Z")  # that may end a reply
_MOST_TOKENS = 200  # characters
_CLOSING = re.compile(rf"(?<![\"'`]){_CLOSE}|{_CLOSE}(?![\"'`])", re.IGNORECASE)
# It ends a word, a sentence, or stands on a line of its own; else a text is about it.
_LONE = re.compile(
    rf"(?:(?<![\s\"'`(\[{{\\])|^[ \t]*|(?<=[.!?…。\uff01\uff1f][ \t])){_CLOSE}"
    rf"(?![ \t]*[\"'`.,;:!?)\]}}\\])|{_CLOSE}(?=[ \t]*\n[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_OPENING = re.compile(_OPEN, re.IGNORECASE)
_LONGEST_MARK = 120
_UNFINISHED = re.compile(r"\s*(?:\Z|[<\[](?:[^<>\]]*\Z|\|))")


def split_thoughts(content: str) -> tuple[str, str]:
    """Return the thoughts and the answer in the content of a reply, without control tokens.

    Thoughts are what is marked as such at the start, or what precedes a closing mark without an
    opening one, as the chat template may have opened it. Elsewhere marks are part of the answer,
    which may well be about them.
    """
    thoughts, start = [], 0
    while mark := _START.match(content, start):
        start = mark.end()
        if mark["open"]:
            closing = _CLOSING.search(content, start)
            thoughts.append(content[start : closing.start() if closing else None])
            start = closing.end() if closing else len(content)
    lone = None if thoughts else _LONE.search(content, start)
    if lone and not (
        content.lstrip()[:1] in ("{", "[")  # JSON, in which it is quoted
        or _ANY_OPENING.search(content, start, lone.start())
        or content.count("```", start, lone.start()) % 2
        or content.count("<text", start, lone.start())
        > content.count("</text", start, lone.start())
    ):
        thoughts, start = [content[start : lone.start()]], lone.end()
    answer = content[start:].lstrip() if start else content
    return "\n".join(filter(None, map(_without_tokens, thoughts))), _without_tokens(answer)


def _without_tokens(text: str) -> str:
    """Return a text without the control tokens at its end."""
    return text[:-_MOST_TOKENS] + _TOKENS.sub("", text[-_MOST_TOKENS:])


class _Content:
    """The content of a reply under way: what is shown of it is a guess until it has ended."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._buffer = ""
        self._kind: Literal["start", "text", "thinking", "after"] = "start"

    def feed(self, chunk: str) -> Iterator[Delta]:
        self.pieces.append(chunk)
        self._buffer += chunk
        while self._buffer:
            if self._kind == "text":
                text, self._buffer = self._buffer, ""
                yield Delta(text=text)
            elif self._kind == "thinking":
                closing = _CLOSING.search(self._buffer)
                # An end that may begin a mark is held back.
                marks = (self._buffer.rfind(mark, -_LONGEST_MARK) for mark in "<[")
                cut = min((at for at in marks if at >= 0), default=len(self._buffer))
                start, end = closing.span() if closing else (cut, cut)
                if start:
                    yield Delta(kind="thinking", text=self._buffer[:start])
                self._buffer = self._buffer[end:]
                if not closing:
                    return
                self._kind = "after"
            elif mark := _START.match(self._buffer):
                self._kind = "thinking" if mark["open"] else "after"
                self._buffer = self._buffer[mark.end() :]
            elif len(self._buffer) < _LONGEST_MARK and _UNFINISHED.match(self._buffer):
                return
            else:
                self._buffer = self._buffer.lstrip() if self._kind == "after" else self._buffer
                self._kind = "text"


class Assembly:
    """A reply under construction; it accepts whatever JSON objects a server sends as chunks.

    Attributes:
        progress: grows with every chunk that adds to the reply or ends it, and with no other.
        has_begun: whether anything of the reply itself came.
        thinks_aloud: whether thoughts stand in the content of the reply that has ended.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._content = _Content()
        self._thoughts: list[str] = []  # from fields and parts of their own
        self._refused = False
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self.progress = 0
        self.has_begun = False
        self.thinks_aloud = False

    def feed(self, chunk: dict[str, Any]) -> list[Delta]:
        """Take one chunk and return what it seems to add; the reply at the end is what counts."""
        usage = _object(chunk.get("usage")) or _object(_object(chunk.get("x_groq")).get("usage"))
        self._usage = usage or self._usage
        if reading := _reading(_object(chunk.get("prompt_progress"))):
            self.progress += 1
            return [Delta(kind="thinking", text=f"{reading}\n")]  # no part of the reply
        choices = chunk.get("choices")
        # Azure's first chunk and every final usage chunk hold no choice.
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        delta = _object(choice.get("delta"))
        if not delta and not self.has_begun:
            delta = _object(choice.get("message"))  # a whole reply, which some repeat at the end
        reason = _string(choice.get("finish_reason"))
        # A model may think in any field, and a role says nothing.
        held = (value for name, value in delta.items() if name != "role")
        adds = any(one.strip() if isinstance(one, str) else one for one in held)
        self.progress += adds or bool(reason and self._reason is None)
        self._reason = reason or self._reason
        fields = ("".join(text for _, text in _parts(delta.get(f))) for f in _THOUGHT_FIELDS)
        thoughts = next(filter(None, fields), "")
        refusal = _parts(_string(delta.get("refusal")), "refusal")
        deltas: list[Delta] = []
        for kind, text in (("thinking", thoughts), *_parts(delta.get("content")), *refusal):
            self.has_begun |= bool(text)
            if kind != "thinking":
                self._refused |= kind == "refusal"
                deltas += self._content.feed(text)
            elif text:
                self._thoughts.append(text)
                deltas.append(Delta(kind="thinking", text=text))
        return deltas

    def reply(self, seconds: float) -> Reply:
        """Return the finished reply; tokens the server did not count are estimated."""
        marked, text = split_thoughts("".join(self._content.pieces))
        self.thinks_aloud = bool(marked)
        thinking = "".join((*self._thoughts, marked))
        estimate = estimate_usage(self._request, len(thinking) + len(text))
        counts = {name: _count(self._usage.get(name)) for name in _COUNTS}
        details = _object(self._usage.get("prompt_tokens_details"))
        usage = {
            **{name: count for name, count in counts.items() if count is not None},
            "cached_tokens": _count(details.get("cached_tokens")),
            "seconds": seconds,
            "cost": _dollars(self._usage.get("cost")),
        }
        return Reply(
            text=text,
            thinking=thinking.strip(),
            finish="refused"
            if self._refused
            else "incomplete"
            if self._reason is None
            else _FINISHES.get(self._reason.lower().split(":")[0], "stop"),
            usage=estimate.model_copy(update=usage),
        )


def _reading(progress: dict[str, Any]) -> str:
    """Return how far llama.cpp has read a prompt, in words; empty where it says nothing of it."""
    done, total = (_count(progress.get(name)) for name in ("processed", "total"))
    if done is None or total is None or done >= total:
        return ""
    return f"Reading the prompt: {done:,} of {total:,} tokens"


def _parts(value: object, kind: _Kind = "text") -> Iterator[tuple[_Kind, str]]:
    """Yield what a field holds: text, or parts of several types, perhaps within each other."""
    if isinstance(value, str) and value:
        yield kind, value
    elif isinstance(value, list):
        for part in value:
            yield from _parts(part, kind)
    elif isinstance(value, dict):
        name = _string(value.get("type"))
        if _THOUGHT_TYPE.search(name) or value.get("thought") is True:
            kind = "thinking"
        elif "refusal" in name:
            kind = "refusal"
        yield from _parts(next((value[f] for f in _PART_FIELDS if value.get(f)), None), kind)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    # Whatever a server sends, a count stays a number that can be added and shown.
    return value if type(value) is int and 0 <= value < _MAX_COUNT else None


def _dollars(value: object) -> float | None:
    """Return the price of the call if the server bills it itself (OpenRouter's ``usage.cost``)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _MAX_DOLLARS else None  # nor is NaN
