"""Read replies of chat completion servers, streamed or whole: thoughts, answer, finish, usage."""

import json
import re
from collections.abc import Iterator
from typing import Any, Literal

from ipyrefine.core.model import Finish, Usage
from ipyrefine.core.ports import Delta, Reply, Request
from ipyrefine.providers.faults import NotCompletions, decode

_MAX_COUNT = 10**12
_MAX_DOLLARS = 10_000  # for one call; more is a mistake
_MAX_DEPTH = 5  # of parts within parts
_CHARS_PER_TOKEN = 4
_COUNTS = ("prompt_tokens", "completion_tokens")

# Every other reason a server gives (``eos``, ``tool_calls``, …) is a reply that ended by itself.
_FINISHES: dict[str, Finish] = {
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "model_context_window_exceeded": "length",
    **dict.fromkeys(("content_filter", "safety", "recitation", "sensitive"), "filtered"),
    **dict.fromkeys(("blocklist", "prohibited_content", "spii", "language"), "filtered"),
    "refusal": "refused",
    **dict.fromkeys(("error", "abort", "network_error", "other"), "incomplete"),
    **dict.fromkeys(("insufficient_system_resource", "malformed_function_call"), "incomplete"),
}
_Kind = Literal["text", "thinking", "refusal"]
# A server often sends the same thoughts in two of these: the first that holds any counts.
_THOUGHT_FIELDS = (
    *("reasoning_content", "reasoning", "thinking", "reasoning_text", "reasoning_details"),
    *("thinking_blocks", "thoughts"),
)
_PART_FIELDS = ("text", "thinking", "reasoning", "summary", "refusal", "content", "value")
_THOUGHT_TYPE = re.compile(r"think|thought|reason|summary", re.IGNORECASE)

# How models mark thoughts in their text: tags, Kimi's, Mistral's and Cohere's tokens, channels
# (gpt-oss, Gemma), of which the final one ends the thoughts before it. `<thoughts>` is left to
# prompts, which ask for it as a part of the answer.
_NAME = r"(?:seed:)?(?:think(?:ing)?|thought|reasoning)"
_CHANNEL = r"(?:<\|start\|>\w*)?<\|channel\|>\s*"
_MESSAGE = r"[^<]{0,99}(?:<\|constrain\|>[^<]{0,99})?<\|message\|>"
_OPEN = (
    rf"(?:<\s?{_NAME}(?:\s[^<>]{{0,99}})?(?<!/)>|(?-i:\[THINK\])|◁think▷|<\|channel>\s?thought\b"
    rf"|<\|(?:START_THINKING|inner_prefix|think)\|>|{_CHANNEL}(?!final){_MESSAGE})"
)
_CLOSE = (
    rf"(?:<\s?/\s?{_NAME}\s?>|(?-i:\[/THINK\])|◁/think▷|<channel\|>"
    rf"|<\|(?:END_THINKING|inner_suffix|/think)\|>|{_CHANNEL}final{_MESSAGE})"
)
_OPENING = re.compile(rf"\s*{_OPEN}", re.IGNORECASE)
_CLOSING = re.compile(_CLOSE, re.IGNORECASE)
_NOTHING = re.compile(  # what may precede a reply and is no part of it
    rf"\s*(?:{_CLOSE}|<{_NAME}\s?/>|<\|begin_of_(?:text|box)\|>|<bos>|<\uff5cbegin▁of▁sentence\uff5c>"
    r"|<\|im_start\|>assistant\b|<\|start_header_id\|>assistant<\|end_header_id\|>"
    r"|<\|assistant\|>|<\uff5cAssistant\uff5c>|<\|START_RESPONSE\|>)",
    re.IGNORECASE,
)
_BARE_CHANNELS = re.compile(  # a server dropped the tokens around the channels' names
    r"\s*analysis(.*?)assistantfinal", re.DOTALL
)
_LONGEST_MARK = 120
_UNFINISHED = re.compile(r"\Z|[<\[◁](?:[^<>\]▷]*\Z|\|)")
_LAST_TOKEN = re.compile(
    r"(?:<[|\uff5c][\w/▁]{1,40}[|\uff5c]>|<\|im_start\|>\w{1,9}|</s>|<eos>|<end_of_turn>|<turn\|>)\Z"
)
# Tags are mentioned in code, in quotes and in our own marks of a text, where none ends thoughts.
_SCAN = re.compile(
    r"^[ \t]*(?P<fence>```|~~~)[`~]*[^\n`]*\n"
    r"(?:(?![ \t]*(?P=fence)[`~]*[^\s`~])[^\n]*\n)*?[ \t]*(?P=fence)[`~]*[ \t]*$"
    r"|^[ \t]*<text[^<>\n]{0,99}>[ \t]*\n(?:(?![ \t]*<text)[^\n]*\n)*?[ \t]*</text>"
    r"|(?P<quote>`{1,3}|(?:(?<!\w)|(?<=\b[bfru]))[\"'])[^\n]{0,99}?(?P=quote)(?!\w)"
    rf"|(?P<open>{_OPEN})"
    # It ends a word, a sentence, or stands on a line of its own.
    rf"|(?P<lone>(?:(?<![\s\"'`(\[{{\\])|^[ \t]*|(?<=[.!?…。\uff01\uff1f][ \t])){_CLOSE}"
    rf"(?![ \t]*[.,;:!?)\]}}\\])|{_CLOSE}(?=[ \t]*\n[ \t]*$))"
    rf"|(?P<close>{_CLOSE})",
    re.IGNORECASE | re.MULTILINE,
)


def split_thoughts(content: str) -> tuple[str, str]:
    """Return the thoughts and the answer in the content of a reply, without control tokens.

    Thoughts are what is marked as such at the start, and what precedes a closing mark without an
    opening one, as the chat template may have opened it. Elsewhere marks are part of the answer,
    which may well be about them.
    """
    thoughts: list[str] = []
    start, lone, told_from_code = 0, True, True
    if bare := _BARE_CHANNELS.match(content):
        thoughts, start = [bare[1]], bare.end()
    while start < len(content):
        if skipped := _NOTHING.match(content, start):
            start = skipped.end()
            continue
        if opening := _OPENING.match(content, start):
            start = opening.end()
            closing = _find_closing(content, start) if told_from_code else None
            told_from_code = closing is not None
            closing = closing or _CLOSING.search(content, start)
        elif lone and (closing := _find_lone(content, start)):
            lone = False
        else:
            break
        thoughts.append(content[start : closing.start() if closing else None])
        start = closing.end() if closing else len(content)
    answer = content[start:].lstrip() if start else content
    thinking = "\n".join(filter(None, map(_without_last_tokens, thoughts)))
    return thinking, _without_last_tokens(answer)


def _find_closing(content: str, start: int) -> re.Match[str] | None:
    marks = _SCAN.finditer(content, start)
    return next((mark for mark in marks if mark.lastgroup in ("lone", "close")), None)


def _find_lone(content: str, start: int) -> re.Match[str] | None:
    """Return the first closing mark that ends thoughts which nothing opened."""
    depth = 0
    for mark in _SCAN.finditer(content, start) if _CLOSING.search(content, start) else ():
        if mark.lastgroup == "open":
            depth += 1
        elif mark.lastgroup == "lone" and depth == 0:
            return None if _is_json(content) else mark
        elif mark.lastgroup in ("lone", "close"):
            depth = max(0, depth - 1)
    return None


def _is_json(content: str) -> bool:
    try:
        return content.lstrip()[:1] in ("{", "[") and decode(content) is not None
    except NotCompletions:
        return False


def _without_last_tokens(text: str) -> str:
    end, found, has_html = len(text), False, "<s>" in text
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        last = _LAST_TOKEN.search(text, max(0, end - 50), end)
        if last is None or (last[0] == "</s>" and has_html):
            return text if not found else text[:end]
        found, end = True, last.start()


class _Content:
    """The content of a reply under way: what is shown of it is a guess until it has ended."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._buffer = ""
        self._state: Literal["start", "after", "thinking", "text"] = "start"

    def feed(self, chunk: str) -> list[Delta]:
        self._pieces.append(chunk)
        self._buffer += chunk
        deltas: list[Delta] = []
        left = -1
        while self._buffer and left != len(self._buffer):  # each step takes some, or waits
            left = len(self._buffer)
            deltas += self._thinking() if self._state == "thinking" else self._text()
        return deltas

    def split(self) -> tuple[str, str]:
        return split_thoughts("".join(self._pieces))

    def _thinking(self) -> list[Delta]:
        if closing := _CLOSING.search(self._buffer):
            thinking = self._buffer[: closing.start()]
            self._state, self._buffer = "after", self._buffer[closing.end() :]
            return _deltas("thinking", thinking)
        # An end that may begin a mark is held back.
        marks = (self._buffer.rfind(mark, -_LONGEST_MARK) for mark in "<[◁")
        cut = min((at for at in marks if at >= 0), default=len(self._buffer))
        thinking, self._buffer = self._buffer[:cut], self._buffer[cut:]
        return _deltas("thinking", thinking)

    def _text(self) -> list[Delta]:
        if self._state != "text":
            if match := _NOTHING.match(self._buffer) or _OPENING.match(self._buffer):
                self._state = "thinking" if match.re is _OPENING else "after"
                self._buffer = self._buffer[match.end() :]
                return []
            stripped = self._buffer.lstrip()
            if len(self._buffer) < _LONGEST_MARK and _UNFINISHED.match(stripped):
                return []
            if self._state == "after":
                self._buffer = stripped
            self._state = "text"
        text, self._buffer = self._buffer, ""
        return _deltas("text", text)


class Assembly:
    """A reply under construction; it accepts whatever JSON objects a server sends as chunks.

    Attributes:
        progress: grows with every chunk that adds to the reply or ends it, and with no other.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self._content = _Content()
        self._shown: dict[str, list[str]] = {"text": [], "thinking": []}
        self._ended: dict[Literal["text", "thinking"], str] = {"text": "", "thinking": ""}
        self._thoughts: list[str] = []  # from fields and parts of their own
        self._calls: dict[int, list[str]] = {}
        self._refused = False
        self._reason: str | None = None
        self._usage: dict[str, Any] = {}
        self.progress = 0

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
        self.progress += _adds(delta) or bool(reason and self._reason is None)
        self._reason = reason or self._reason
        self._read_calls(delta)
        fields = ("".join(text for _, text in _parts(delta.get(f))) for f in _THOUGHT_FIELDS)
        thoughts = next(filter(None, fields), "")
        refusal = _parts(_string(delta.get("refusal")), "refusal")
        deltas: list[Delta] = []
        for kind, text in (("thinking", thoughts), *_parts(delta.get("content")), *refusal):
            if kind == "thinking":
                self._thoughts.append(text)
                deltas += _deltas("thinking", text)
            else:
                self._refused |= kind == "refusal"
                deltas += self._content.feed(text)
        for delta_ in deltas:
            self._shown[delta_.kind].append(delta_.text)
        return deltas

    @property
    def has_begun(self) -> bool:
        """Whether anything of the reply itself came."""
        return any(self._shown.values()) or bool(self._calls)

    def close(self) -> list[Delta]:
        """End the stream and return what was not shown yet, unless it turned out otherwise."""
        thoughts, text = self._content.split()
        if not text.strip():  # a model that was offered no tool may call one all the same
            calls = map("".join, self._calls.values())
            text = "\n".join(call for call in calls if call.strip(" {}"))
        self._ended = {"thinking": "".join((*self._thoughts, thoughts)), "text": text}
        deltas: list[Delta] = []
        for kind, whole in self._ended.items():
            shown = "".join(self._shown[kind])
            if whole.startswith(shown):
                deltas += _deltas(kind, whole.removeprefix(shown))
        return deltas

    def reply(self, seconds: float) -> Reply:
        """Return the finished reply; tokens the server did not count are estimated."""
        estimate = estimate_usage(self._request, sum(map(len, self._ended.values())))
        counts = {name: _count(self._usage.get(name)) for name in _COUNTS}
        details = _object(self._usage.get("prompt_tokens_details"))
        usage = {
            **{name: count for name, count in counts.items() if count is not None},
            "cached_tokens": _count(details.get("cached_tokens")),
            "seconds": seconds,
            "cost": _dollars(self._usage.get("cost")),
        }
        return Reply(
            text=self._ended["text"],
            thinking=self._ended["thinking"].strip(),
            finish=self._finish(),
            usage=estimate.model_copy(update=usage),
        )

    def _read_calls(self, delta: dict[str, Any]) -> None:
        calls = delta.get("tool_calls")
        for place, call in enumerate(calls if isinstance(calls, list) else [delta]):
            call = _object(call)
            function = _object(call.get("function")) or _object(call.get("function_call"))
            arguments = function.get("arguments")
            if isinstance(arguments, dict):
                arguments = json.dumps(arguments, ensure_ascii=False)
            index = call.get("index")
            index = index if isinstance(index, int) else place
            if text := _string(arguments):
                self._calls.setdefault(index, []).append(text)

    def _finish(self) -> Finish:
        if self._refused:
            return "refused"
        if self._reason is None:
            return "incomplete"
        return _FINISHES.get(self._reason.lower().split(":")[0], "stop")


def estimate_usage(request: Request, chars: int) -> Usage:
    """Return the usage of a call whose tokens nobody counted: a quarter of the characters."""
    prompt = sum(len(message.content) for message in request.messages)
    tokens = (max(1, round(count / _CHARS_PER_TOKEN)) for count in (prompt, chars))
    return Usage(calls=1, **dict(zip(_COUNTS, tokens, strict=True)))


def _reading(progress: dict[str, Any]) -> str:
    """Return how far llama.cpp has read a prompt, in words; empty where it says nothing of it."""
    done, total = (_count(progress.get(name)) for name in ("processed", "total"))
    if done is None or total is None or done >= total:
        return ""
    return f"Reading the prompt: {done:,} of {total:,} tokens"


def _parts(value: object, kind: _Kind = "text", depth: int = 0) -> Iterator[tuple[_Kind, str]]:
    """Yield what a field holds: text, or parts of several types, perhaps within each other."""
    if isinstance(value, str) and value:
        yield kind, value
    elif isinstance(value, list) and depth < _MAX_DEPTH:
        for part in value:
            yield from _parts(part, kind, depth + 1)
    elif isinstance(value, dict) and depth < _MAX_DEPTH:
        name = _string(value.get("type"))
        if _THOUGHT_TYPE.search(name) or value.get("thought") is True:
            kind = "thinking"
        elif "refusal" in name:
            kind = "refusal"
        content = next((value[f] for f in _PART_FIELDS if value.get(f)), None)
        yield from _parts(content, kind, depth + 1)


def _deltas(kind: Literal["text", "thinking"], text: str) -> list[Delta]:
    return [Delta(kind=kind, text=text)] if text else []


def _adds(delta: dict[str, Any]) -> bool:
    """Return True if a delta holds more than its role; a model may think in any field."""
    return any(
        value.strip() if isinstance(value, str) else value
        for name, value in delta.items()
        if name != "role" and isinstance(value, str | list | dict)
    )


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
