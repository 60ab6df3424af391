"""What a hostile or broken server may send, as named cases in a fixed order.

`chunks` yields values at every place of a chunk, `streams` whole bodies, `error_answers` error
answers, `headers` headers of both, and `wire` bytes that are hardly HTTP. `random_bodies` damages a
good body.
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
    "minus one": "-1",
    "5,000 digits": "9" * DIGITS,
    "1e999": "1e999",
    "NaN": "NaN",
    "string": '"no"',
    "half a pair": '"\\ud83d"',
    "NUL and escapes": '"\\u0000\\u001b[2J\\u0007\\u202e"',
    "long string": json.dumps("x" * 100_000),
    "the key": json.dumps(KEY),
    "object": "{}",
    "object with error": '{"error": {"message": [1], "code": NaN}}',
    "wide": "[" + "0," * 50_000 + "0]",
    "100,000 deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
}
"""JSON texts that no honest server has at most places."""

_DELTA = dict.fromkeys(("role", "reasoning_content", "reasoning"), "") | {"content": "no"}
_CHUNK: dict[str, Any] = {
    "id": "chatcmpl-1",
    "choices": [
        {"delta": {**_DELTA, "refusal": None, "tool_calls": None}, "finish_reason": None},
    ],
    "usage": {
        **{"prompt_tokens": 5, "completion_tokens": 3, "cost": 0.25},
        "prompt_tokens_details": {"cached_tokens": 1},
    },
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
        "only heartbeats": b"data: {}\n\n" * 1_000,
        "think tags": chunk("<think>") + chunk("</think>" * 1_000) + chunk("no " * 6, "stop"),
        "many line ends": b"\n" * 2**18,
    }
    for code in ("9" * DIGITS, "-1", "401", "429", "599", "٤٠٠", "²²²", "x"):
        body = {"error": {"code": code, "message": f"over {KEY}"}}
        bodies[f"an error with code {code[:9]}"] = event(json.dumps(body))
    for name, body in bodies.items():
        yield name, Answer(raw=body)


STATUSES = (204, 299, 304, 418, 501, 599, 600, 999)


def error_answers() -> Iterator[tuple[str, Behaviour]]:
    """Yield error answers: odd statuses, and bodies of every shape."""
    for status in STATUSES:
        yield f"status {status}", Failure(status, {"error": {"message": f"over {KEY}"}})
        yield f"status {status} with nothing", Failure(status, b"")
    fields = ("message", "code", "type", "param", "detail", "error")
    for number, (name, value) in enumerate(VALUES.items()):
        template = json.dumps({"error": {"message": "over", fields[number % len(fields)]: _HOLE}})
        yield f"400 with {name}", Failure(400, template.replace(json.dumps(_HOLE), value).encode())
        yield f"429 with {name} as error", Failure(429, b'{"error": %s}' % value.encode())
    half = b'{"error": {"message": "\\ud83d"}}'
    for body in (b"x" * 8 * 2**20, b"\xff\xfe" * 1_000, b"\x1b[2J\x07\x00", half):
        yield f"500: {body[:40]!r}", Failure(500, body)


NUMBERS = (
    *("", "-1e999", "1e999", "nan", "inf", "9" * DIGITS, "1_0", "٣", "1e308", "soon", "é"),
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Fri, 31 Feb 2026 25:61:61 GMT",
    "Fri, 31 Dec 2026 23:59:59 +" + "9" * 400,
    "Fri, " + "9" * DIGITS + " Dec 2026 23:59:59 GMT",
)
LOCATIONS = (
    *("", "//", "http://", "https://:", "http://[::1", "http://h:x/", f"http://h:{'9' * DIGITS}/"),
    *("http://\u00e9.test/", "http://xn--/", "http://a..b/", "javascript:alert(1)", "http:other"),
    f"http://user:{KEY}@other.test/v1",
    f"http://other.test/{KEY}",
    f"http://{KEY}.test/",
    "http://other.test/" + "x" * 30_000,
)


def headers() -> Iterator[tuple[str, Behaviour]]:
    """Yield error answers and streams with hostile headers."""

    def latin(value: str) -> str:
        return value.encode("utf-8").decode("latin-1")

    for value in NUMBERS:
        made = Failure(429, {"error": {"message": "later"}}, {"Retry-After": latin(value)})
        yield f"429 with Retry-After: {value[:40]!r}", made
    for value in LOCATIONS:
        yield f"307 to {value[:40]!r}", Failure(307, "", {"Location": latin(value)})
    odd = {
        "an unknown coding": {"Content-Encoding": "rot13"},
        "a key in a header": {"X-Key": KEY},
        "bytes": {"X-Odd": "\xff\x80"},
        "an unknown charset": {"Content-Type": "application/json; charset=\xff"},
    }
    for name, fields in odd.items():
        yield f"a stream with {name}", Answer(raw=GOOD_BODY, headers=fields)
        yield f"400 with {name}", Failure(400, {"error": {"message": f"over {KEY}"}}, fields)


def wire() -> Iterator[tuple[str, Behaviour]]:
    """Yield bytes that are hardly HTTP."""
    ok = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    chunked = ok + b"Transfer-Encoding: chunked\r\n\r\n"
    cases = {
        "nothing": b"",
        "random bytes": random.Random(2).randbytes(1_000),
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "a status of 5,000 digits": b"HTTP/1.1 " + b"9" * DIGITS + b" OK\r\n\r\n",
        "many 100s": b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000,
        "a header with the key": ok + b"broken " + KEY.encode() + b"\r\n\r\n",
        "a length of 5,000 digits": ok + b"Content-Length: " + b"9" * DIGITS + b"\r\n\r\nx",
        "a length that is too short": ok + b"Content-Length: 9\r\n\r\n" + GOOD_BODY,
        "a chunk of 5,000 digits": chunked + b"F" * DIGITS + b"\r\nx",
        "a body without an end": ok + b"\r\n" + GOOD_BODY,
    }
    for name, sent in cases.items():
        yield name, Answer(wire=sent)


def random_bodies(count: int, seed: int = 7) -> Iterator[tuple[str, Behaviour]]:
    """Yield good bodies with damage: bytes changed, cut, doubled, moved."""
    dice = random.Random(seed)
    whole = event(json.dumps(_CHUNK)) + GOOD_BODY
    tokens = [b"null", b"NaN", b"-1e999", b"[", b"}", b'"', b"\\ud800", b"\n\n", b"\x00", b"\xff"]
    for number in range(count):
        body = bytearray(whole)
        for _ in range(dice.randint(1, 6)):
            at = dice.randrange(len(body) + 1)
            end = min(len(body), at + dice.randint(0, 30))
            match dice.randrange(4):
                case 0:
                    body[at:end] = dice.choice(tokens)
                case 1:
                    del body[at:end]
                case 2:
                    body[at:at] = body[at:end] * dice.randint(1, 3)
                case _:
                    body[at:end] = dice.randbytes(end - at)
        yield f"damage {number}", Answer(raw=bytes(body))
