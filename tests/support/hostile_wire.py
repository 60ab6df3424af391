"""What a hostile or broken server may send, as named cases in a fixed order.

`chunks` yields values at every place of a chunk, `streams` whole bodies, `answers` error answers
and odd headers, and `wire` bytes that are hardly HTTP.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

from openai_server import Answer, Behaviour, Failure

KEY = "sk-very-secret-0123456789"
DEEP = 100_000
DIGITS = 5_000

VALUES: dict[str, str] = {
    "null": "null",
    "5,000 digits": "9" * DIGITS,
    "NaN": "NaN",
    "string": '"no"',
    "half a pair": '"\\ud83d"',
    "the key": json.dumps(KEY),
    "object": "{}",
    "object with error": '{"error": {"message": [1], "code": NaN}}',
    "wide": "[" + "0," * 50_000 + "0]",
    "100,000 deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
}
"""JSON texts that no honest server has at most places."""

_CHUNK: dict[str, Any] = {
    "choices": [
        {"delta": {"reasoning": "", "content": "no", "refusal": None}, "finish_reason": None},
    ],
    "usage": {"prompt_tokens": 5, "cost": 0.25, "prompt_tokens_details": {"cached_tokens": 1}},
    "error": None,
}
_HOLE = "\u0001hole\u0001"


def _with_a_hole(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each place of a value, and the value with a hole there."""
    yield path or "the top", _HOLE
    if isinstance(value, dict | list):
        for name, part in [*(value.items() if isinstance(value, dict) else enumerate(value))]:
            for place, holed in _with_a_hole(part, f"{path}.{name}".strip(".")):
                whole: Any = value.copy()
                whole[name] = holed
                yield place, whole


def event(data: str) -> bytes:
    return b"data: " + data.encode() + b"\n\n"


def chunk(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return event(json.dumps({"choices": [choice]}))


DONE = b"data: [DONE]\n\n"
GOOD_BODY = chunk("no no no") + chunk(" no no no") + chunk("", "stop") + DONE


def chunks(every: int) -> Iterator[tuple[str, Behaviour]]:
    """Yield a stream for one of so many values in turn at every place of a chunk."""
    for number, (place, holed) in enumerate(_with_a_hole(_CHUNK)):
        for turn, (name, value) in enumerate(VALUES.items(), number):
            if turn % every or (name == "the key" and place.endswith((".content", ".refusal"))):
                continue  # a model may write what it likes
            data = json.dumps(holed).replace(json.dumps(_HOLE), value)
            body = chunk("no no no") + event(data) + chunk(" no no no", "stop") + DONE
            yield f"{name} at {place}", Answer(raw=body)


def streams() -> Iterator[tuple[str, Behaviour]]:
    """Yield whole bodies."""
    bodies = {
        "nothing": b"",
        "only DONE": DONE,
        "invalid UTF-8": chunk("no") + b"data: \xff\xfe\xfa\n\n" + DONE,
        "random bytes": random.Random(1).randbytes(10_000),
        "CR line ends": GOOD_BODY.replace(b"\n", b"\r"),
        "line separators": GOOD_BODY.replace(b"no no", "no\u2028no\x85no".encode()),
        "an error event": b'event: error\ndata: {"error": "over"}\n\n' + GOOD_BODY,
    }
    for code in ("9" * DIGITS, "-1", "401", "429", "599", "٤٠٠", "²²²", "x"):
        body = {"error": {"code": code, "message": f"over {KEY}"}}
        bodies[f"an error with code {code[:9]}"] = event(json.dumps(body))
    for name, body in bodies.items():
        yield name, Answer(raw=body)


NUMBERS = (
    *("", "-1e999", "1e999", "nan", "9" * DIGITS, "1_0", "٣", "soon", "é"),
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Fri, 31 Dec 2026 23:59:59 +" + "9" * 400,
)
LOCATIONS = (
    *("", "//", "http://", "http://[::1", "http://h:x/", f"http://h:{'9' * DIGITS}/"),
    *("http://\u00e9.test/", "http://a..b/", "javascript:alert(1)"),
    *(f"http://user:{KEY}@other.test/v1", f"http://{KEY}.test/", "http://h/" + "x" * 30_000),
)


def answers() -> Iterator[tuple[str, Behaviour]]:
    """Yield error answers with odd statuses, bodies and headers."""
    for status in (204, 299, 304, 418, 599, 600, 999):
        yield f"status {status}", Failure(status, {"error": {"message": f"over {KEY}"}})
    fields = ("message", "code", "type", "param", "detail", "error")
    for number, (name, value) in enumerate(VALUES.items()):
        template = json.dumps({"error": {"message": "over", fields[number % len(fields)]: _HOLE}})
        yield f"400 with {name}", Failure(400, template.replace(json.dumps(_HOLE), value).encode())
    for body in (b"x" * 8 * 2**20, b"\xff\xfe" * 1_000, b'{"error": {"message": "\\ud83d"}}'):
        yield f"500: {body[:40]!r}", Failure(500, body)
    for value in NUMBERS:
        later = {"Retry-After": value.encode("utf-8").decode("latin-1")}
        yield f"429 with Retry-After: {value[:40]!r}", Failure(429, b"", later)
    for value in LOCATIONS:
        elsewhere = {"Location": value.encode("utf-8").decode("latin-1")}
        yield f"307 to {value[:40]!r}", Failure(307, "", elsewhere)
    for odd in (
        {"Content-Encoding": "rot13"},
        {"X-Key": KEY, "X-Odd": "\xff\x80"},
        {"Content-Type": "application/json; charset=\xff"},
    ):
        yield f"a stream with {odd}", Answer(raw=GOOD_BODY, headers=odd)


def wire() -> Iterator[tuple[str, Behaviour]]:
    """Yield bytes that are hardly HTTP."""
    ok = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    cases = {
        "nothing": b"",
        "random bytes": random.Random(2).randbytes(1_000),
        "a header with the key": ok + b"broken " + KEY.encode() + b"\r\n\r\n",
        "a length that is too short": ok + b"Content-Length: 9\r\n\r\n" + GOOD_BODY,
        "a body without an end": ok + b"\r\n" + GOOD_BODY,
    }
    for name, sent in cases.items():
        yield name, Answer(wire=sent)
