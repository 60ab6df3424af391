"""What a hostile or broken server may send, as named cases in a fixed order.

`CHUNKS` are values at every place of a chunk, `STREAMS` whole bodies, `ERRORS` error answers,
`HEADERS` headers of both, `WIRE` bytes that are hardly HTTP. `random_bodies` damages a good body.
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
    "true": "true",
    "zero": "0",
    "minus one": "-1",
    "5,000 digits": "9" * DIGITS,
    "minus 5,000 digits": "-" + "9" * DIGITS,
    "a float of 5,000 digits": "0." + "9" * DIGITS,
    "1e308": "1e308",
    "1e999": "1e999",
    "-1e999": "-1e999",
    "1e-999": "1e-999",
    "an exponent of 5,000 digits": "1e" + "9" * DIGITS,
    "NaN": "NaN",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "empty string": '""',
    "string": '"no"',
    "digits in a string": json.dumps("9" * DIGITS),
    "half a pair": '"\\ud83d"',
    "the other half": '"\\ude00 \\udfff"',
    "NUL and escapes": '"\\u0000\\u001b[2J\\u0007\\u202e"',
    "long string": json.dumps("x" * 100_000),
    "markup": '"<script>alert(1)</script>"',
    "the key": json.dumps(KEY),
    "list": "[]",
    "list of lists": "[[[]]]",
    "object": "{}",
    "object with error": '{"error": {"message": [1], "code": NaN}}',
    "wide": "[" + "0," * 50_000 + "0]",
    "900 deep": "[" * 900 + "]" * 900,
    "100,000 deep": "[" * DEEP + "]" * DEEP,
    "100,000 deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
}
"""JSON texts that no honest server has at most places."""

_CHUNK: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "delta": {
                "role": "assistant",
                "content": "no",
                "reasoning_content": "",
                "reasoning": "",
                "refusal": None,
                "tool_calls": None,
            },
            "finish_reason": None,
            "logprobs": {
                "content": [
                    {
                        "token": "no",
                        "logprob": -0.1,
                        "bytes": [110],
                        "top_logprobs": [
                            {"token": "no", "logprob": -0.1},
                            {"token": "yes", "logprob": -3.0},
                        ],
                    }
                ]
            },
        }
    ],
    "usage": {
        "prompt_tokens": 5,
        "completion_tokens": 3,
        "total_tokens": 8,
        "cost": 0.25,
        "prompt_tokens_details": {"cached_tokens": 1},
    },
    "error": None,
}
_HOLE = "\u0001hole\u0001"


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _paths(part, (*path, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _paths(part, (*path, number))


def _with_hole(path: tuple[Any, ...]) -> str:
    """Return the chunk's JSON with a hole at a path."""
    if not path:
        return json.dumps(_HOLE)
    copy = json.loads(json.dumps(_CHUNK))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = _HOLE
    return json.dumps(copy)


def event(data: str) -> bytes:
    return b"data: " + data.encode() + b"\n\n"


def chunk(content: str, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return event(json.dumps({"choices": [choice], **more}))


DONE = b"data: [DONE]\n\n"
GOOD_BODY = chunk("no no no") + chunk(" no no no") + chunk("", "stop") + DONE


def chunks(every: int = 1) -> Iterator[tuple[str, Behaviour]]:
    """Yield a stream for every value at every place of a chunk, or for one of so many in turn."""
    for number, path in enumerate(_paths(_CHUNK)):
        template = _with_hole(path)
        for turn, (name, value) in enumerate(VALUES.items(), number):
            if turn % every or (name == "the key" and path[-1:] in (("content",), ("refusal",))):
                continue  # a model may write what it likes
            data = template.replace(json.dumps(_HOLE), value)
            body = chunk("no no no") + event(data) + chunk(" no no no", "stop") + DONE
            yield f"{name} at {'.'.join(map(str, path)) or 'the top'}", Answer(raw=body)


def streams() -> Iterator[tuple[str, Behaviour]]:
    """Yield whole bodies."""
    bodies = {
        "nothing": b"",
        "only DONE": DONE,
        "DONE and more": chunk("no " * 6, "stop") + DONE + b"x" * 10**6,
        "two ends": chunk("no " * 6, "stop") + chunk("", "length") + chunk("", "stop") + DONE,
        "an end before the text": chunk("", "stop") + chunk("no " * 6) + DONE,
        "no DONE": chunk("no " * 6, "stop"),
        "two bodies": GOOD_BODY + GOOD_BODY,
        "choices out of order": event('{"choices":[{"index":7,"delta":{"content":"no"}}]}') + DONE,
        "invalid UTF-8": chunk("no") + b"data: \xff\xfe\xfa\n\n" + DONE,
        "half a character": b'data: {"choices":[{"delta":{"content":"\xe4\xbd\n\n"}}]}' + DONE,
        "UTF-16": GOOD_BODY.decode().encode("utf-16"),
        "a byte order mark": b"\xef\xbb\xbf" + GOOD_BODY,
        "NUL bytes": b"\x00" * 10_000,
        "random bytes": random.Random(1).randbytes(10_000),
        "truncated JSON": chunk("no") + b'data: {"choices": [{"del',
        "JSON over two data lines": b'data: {"choices":\ndata: []}\n\n' + GOOD_BODY,
        "CR line ends": GOOD_BODY.replace(b"\n", b"\r"),
        "CRLF line ends": GOOD_BODY.replace(b"\n", b"\r\n"),
        "line separators": GOOD_BODY.replace(b"no no", "no\u2028no\x85no".encode()),
        "a retry of 5,000 digits": b"retry: " + b"9" * DIGITS + b"\n\n" + GOOD_BODY,
        "an id with NUL": b"id: a\x00b\n\n" + GOOD_BODY,
        "an assistants event": b"event: thread.run\ndata: {}\n\n" + GOOD_BODY,
        "an error event": b'event: error\ndata: {"error": "over"}\n\n' + GOOD_BODY,
        "a thread error": b'event: thread.x\ndata: {"error": {"message": 5}}\n\n' + GOOD_BODY,
        "an event name of 1 MB": b"event: " + b"x" * 2**20 + b"\ndata: {}\n\n" + GOOD_BODY,
        "only comments": b": still here\n\n" * 1_000,
        "only heartbeats": b"data: {}\n\n" * 1_000,
        "empty data": b"data:\n\n" + GOOD_BODY,
        "a list": event("[]") + DONE,
        "a string": event('"no"') + DONE,
        "a completion instead of a stream": json.dumps(
            {"choices": [{"message": {"content": "no"}, "finish_reason": "stop"}]}
        ).encode(),
        "think tags": chunk("<think>") + chunk("</think>" * 1_000) + chunk("no " * 6, "stop"),
        "an open think tag": chunk("<think>" + "no " * 100, "stop") + DONE,
        "17 MB": chunk("x" * 2**20) * 17,
        "17 MB of line ends": b"\n" * 17 * 2**20,
        "17 MB in one line": b"data: " + b"x" * 17 * 2**20,
    }
    for code in ("9" * DIGITS, "-1", "400", "401", "429", "500", "599", "٤٠٠", "²²²", "x"):
        body = {"error": {"code": code, "message": f"over {KEY}"}}
        bodies[f"an error with code {code[:9]}"] = event(json.dumps(body))
    for name, value in VALUES.items():
        for field in ("message", "code", "type", "param"):
            template = json.dumps({"error": {"message": "over", field: _HOLE}})
            data = template.replace(json.dumps(_HOLE), value)
            bodies[f"an error with {name} as {field}"] = event(data)
    for name, body in bodies.items():
        yield name, Answer(raw=body)


STATUSES = (
    *(201, 204, 205, 206, 207, 226, 299, 300, 301, 302, 303, 304, 305, 307, 308, 399),
    *(400, 401, 402, 403, 404, 408, 409, 413, 418, 422, 429, 451, 499),
    *(500, 501, 502, 503, 504, 511, 520, 529, 599, 600, 777, 999),
)


def error_answers(every: int = 1) -> Iterator[tuple[str, Behaviour]]:
    """Yield error answers: every status, and bodies of every shape, or one of so many in turn."""
    for status in STATUSES:
        yield f"status {status}", Failure(status, {"error": {"message": f"over {KEY}"}})
        yield f"status {status} with a page", Failure(status, "<!doctype html><html>over</html>")
        yield f"status {status} with nothing", Failure(status, b"")
    fields = ("message", "code", "type", "param", "detail", "error")
    for number, (name, value) in enumerate(VALUES.items()):
        for field in fields[number % every :: every]:
            template = json.dumps({"error": {"message": "over", field: _HOLE}})
            body = template.replace(json.dumps(_HOLE), value).encode()
            yield f"400 with {name} as {field}", Failure(400, body)
        yield f"500 with {name}", Failure(500, value.encode())
        yield f"429 with {name} as error", Failure(429, b'{"error": %s}' % value.encode())
    bodies = {
        "100 MB": b"x" * 100 * 2**20,
        "100 MB of JSON": b'{"error": {"message": "' + b"x" * 100 * 2**20 + b'"}}',
        "invalid UTF-8": b"\xff\xfe" * 1_000,
        "a page with the key": f"<HTML>{KEY}</HTML>".encode(),
        "text with the key": f"no such key: {KEY}".encode(),
        "escapes": b"\x1b[2J\x07\x00",
        "bidi": "\u202eover\u2028over".encode(),
        "a lone half": b'{"error": {"message": "\\ud83d"}}',
        "a list of errors": b'[{"error": {"message": "over"}}]',
        "a field by name": b'{"error": {"message": "temperature max_tokens stream_options"}}',
    }
    for status in (400, 401, 404, 429, 500):
        for name, body in bodies.items():
            if len(body) < 10**6 or status in (400, 500):
                yield f"{status}: {name}", Failure(status, body)


NUMBERS = (
    *("", "0", "-1", "-1e999", "1e999", "nan", "inf", "-inf", "9" * DIGITS, "-" + "9" * DIGITS),
    *("1_0", "٣", "0x10", "1e308", "1e-999", "soon", "1;2", "1,2", " ", "\xa0", "é"),
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Fri, 31 Dec 99999 23:59:59 GMT",
    "Fri, 31 Feb 2026 25:61:61 GMT",
    "Fri, 31 Dec 2026 23:59:59 +9999",
    "Fri, 31 Dec 2026 23:59:59 +" + "9" * 400,
    "Fri, " + "9" * DIGITS + " Dec 2026 23:59:59 GMT",
    "Fri, 01 Jan " + "9" * 30 + " 00:00:00 GMT",
    "Fri, 01 Jan -5 00:00:00 GMT",
)
LOCATIONS = (
    *("", "/", "//", "///", "http://", "https://:", "http://[", "http://[::1", "http://[x]/"),
    *("http://h:x/", "http://h:99999999/", "http://h:-1/", f"http://h:{'9' * DIGITS}/"),
    *("http://\u00e9.test/", "http://xn--/", "http://" + "a" * 300 + "/", "http://a..b/"),
    *("javascript:alert(1)", "file:///etc/passwd", "http://h/\x7f", "http://h/%", "?", "#", " "),
    f"http://user:{KEY}@other.test/v1",
    f"http://other.test/{KEY}",
    f"http://other.test/?key={KEY}",
    f"http://{KEY}.test/",
    "http://other.test/" + "x" * 30_000,
    "http://\u2100.test/",
    "http:other",
    "httpx",
)


def headers() -> Iterator[tuple[str, Behaviour]]:
    """Yield error answers and streams with hostile headers."""

    def latin(value: str) -> str:
        return value.encode("utf-8").decode("latin-1")

    for value in NUMBERS:
        for status in (429, 503):
            made = Failure(status, {"error": {"message": "later"}}, {"Retry-After": latin(value)})
            yield f"{status} with Retry-After: {value[:40]!r}", made
    for value in LOCATIONS:
        for status in (301, 307):
            yield f"{status} to {value[:40]!r}", Failure(status, "", {"Location": latin(value)})
    odd = {
        "an unknown coding": {"Content-Encoding": "rot13"},
        "ten codings": {"Content-Encoding": ", ".join(["gzip"] * 10)},
        "a coding that is not used": {"Content-Encoding": "gzip"},
        "deflate that is not used": {"Content-Encoding": "deflate"},
        "br": {"Content-Encoding": "br"},
        "zstd": {"Content-Encoding": "zstd"},
        "identity": {"Content-Encoding": "identity"},
        "cookies": {"Set-Cookie": "a=b; Domain=.test; Expires=" + "9" * DIGITS},
        "a header of 60 KB": {"X-Long": "x" * 60_000},
        "a key in a header": {"X-Key": KEY},
        "no retry": {"x-should-retry": "perhaps"},
        "bytes": {"X-Odd": "\xff\x80"},
        "authenticate": {"WWW-Authenticate": 'Basic realm="' + "x" * 1_000},
    }
    for charset in ("utf-16", "hex", "zlib", "bz2", "idna", "punycode", "undefined", "x", "\xff"):
        odd[f"the charset {charset}"] = {"X-Charset": charset}
    for name, fields in odd.items():
        charset = fields.pop("X-Charset", None)
        kind = f"application/json; charset={charset}" if charset else "text/event-stream"
        yield f"a stream with {name}", Answer(raw=GOOD_BODY, headers=fields, content_type=kind)
        for status in (307, 400, 500):
            more = {**fields, **({"Content-Type": kind} if charset else {})}
            body = {"error": {"message": f"over {KEY}"}}
            yield f"{status} with {name}", Failure(status, body, more)


def wire() -> Iterator[tuple[str, Behaviour]]:
    """Yield bytes that are hardly HTTP."""
    ok = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    cases = {
        "nothing": b"",
        "no HTTP": b"SSH-2.0-OpenSSH\r\n",
        "random bytes": random.Random(2).randbytes(1_000),
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "HTTP/9": b"HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\n" + GOOD_BODY,
        "a status of 5,000 digits": b"HTTP/1.1 " + b"9" * DIGITS + b" OK\r\n\r\n",
        "status 000": b"HTTP/1.1 000 OK\r\n\r\n",
        "status 099": b"HTTP/1.1 099 OK\r\n\r\n",
        "status -1": b"HTTP/1.1 -1 OK\r\n\r\n",
        "status 101": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "many 100s": b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000,
        "a reason of bytes": b"HTTP/1.1 500 \xff\xfe\r\nContent-Length: 0\r\n\r\n",
        "a header without a colon": ok + b"broken\r\n\r\n" + GOOD_BODY,
        "a header with the key": ok + b"broken " + KEY.encode() + b"\r\n\r\n",
        "a header of 1 MB": ok + b"X: " + b"x" * 2**20 + b"\r\n\r\n" + GOOD_BODY,
        "1 MB of headers": ok + b"X: xxxxxxxxxxxxxxxxxxxxxxx\r\n" * 40_000 + b"\r\n",
        "a length of 5,000 digits": ok + b"Content-Length: " + b"9" * DIGITS + b"\r\n\r\nx",
        "a length of 19 digits": ok + b"Content-Length: " + b"9" * 19 + b"\r\n\r\n" + GOOD_BODY,
        "a negative length": ok + b"Content-Length: -5\r\n\r\n" + GOOD_BODY,
        "two lengths": ok + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + GOOD_BODY,
        "a length that is too short": ok + b"Content-Length: 9\r\n\r\n" + GOOD_BODY,
        "a chunk of 5,000 digits": ok
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + b"F" * DIGITS
        + b"\r\nx",
        "a chunk size that is none": ok + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        "a negative chunk": ok + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        "an unknown transfer coding": ok + b"Transfer-Encoding: gzip\r\n\r\n" + GOOD_BODY,
        "a body without an end": ok + b"\r\n" + GOOD_BODY,
        "two answers": (ok + b"Content-Length: %d\r\n\r\n" % len(GOOD_BODY) + GOOD_BODY) * 2,
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
