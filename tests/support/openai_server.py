"""A scripted server that speaks chat completions over a real loopback socket."""

import json
import select
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """A streamed reply; each fault a server may have on the way is one field."""

    text: str = ""
    chunk: int = 8  # characters per piece
    delay: float = 0.0  # seconds before each piece
    finish: str | None = "stop"
    usage: Mapping[str, Any] | Literal["counted"] | None = "counted"
    reasoning: str = ""
    refusal: str = ""
    first: tuple[Any, ...] = ()  # whole chunks before the reply's own
    drop_after: int | None = None  # pieces sent before the connection is reset
    stall_after: int | None = None  # pieces sent before it falls silent until the reader leaves
    hold: bool = False  # not even a status line before the reader leaves
    raw: bytes | None = None  # the whole body, instead of all that
    wire: bytes | None = None  # all it sends, from the status line on, instead of all that
    beat: bytes = b""  # sent over and over after the pieces, until the reader leaves
    beat_seconds: float = 0.05  # seconds between two beats
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "text/event-stream"
    whole: bool = False  # one JSON object, though a stream was asked for


@dataclass(frozen=True)
class Failure:
    """An error status with its JSON, or other, body; bytes are sent as they are."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Body


async def items_of(model: Any, request: Any) -> list[Any]:
    """Return all that a model streams."""
    return [item async for item in model.stream(request)]


async def reply_of(model: Any, request: Any) -> Any:
    """Return the reply at the end of what a model streams."""
    return (await items_of(model, request))[-1]


Behaviour = Answer | Failure
Rule = Callable[[Body], Failure | None]


class ScriptedServer:
    """Answers requests from a queue, then from `default`; `rules` may reject any of them first.

    Use it as a context manager; it records `requests`, sets `asked` at the first, and `left`
    when a reader goes away (`left_at`, in seconds of `time.monotonic`).
    """

    def __init__(
        self,
        default: Callable[[Body], str | Behaviour] | None = None,
        *,
        port: int = 0,
        certificate: Path | None = None,
    ) -> None:
        self.queue: deque[Behaviour] = deque()
        self.rules: list[Rule] = []
        self.default = default
        self.requests: list[Seen] = []
        self.models: list[str] | Failure = Failure(404)  # what it lists
        self.listed: list[Seen] = []  # who asked for that
        self.asked = threading.Event()
        self.left = threading.Event()
        self.left_at = 0.0
        self.closing = threading.Event()
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(
                self._http.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def base_url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http.server_port}/v1"

    @property
    def bodies(self) -> list[Body]:
        return [seen.body for seen in self.requests]

    def then(self, *behaviours: str | Behaviour) -> Self:
        """Queue what the next requests get."""
        self.queue.extend(Answer(b) if isinstance(b, str) else b for b in behaviours)
        return self

    def rejecting(self, named: str, when: Callable[[Body], bool], status: int = 400) -> Self:
        """Reject every request for which `when` holds, with an error that names a field."""
        failure = Failure(status, {"error": {"message": f"Unsupported: {named}", "param": named}})
        self.rules.append(lambda body: failure if when(body) else None)
        return self

    def next(self, body: Body) -> Behaviour:
        for rule in self.rules:
            if failure := rule(body):
                return failure
        if self.queue:
            return self.queue.popleft()
        if self.default is None:
            return Failure(500, {"error": {"message": "the test queued no further reply"}})
        made = self.default(body)
        return Answer(made) if isinstance(made, str) else made

    def start(self) -> Self:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Http(ThreadingHTTPServer):
    owner: ScriptedServer
    daemon_threads = True
    request_queue_size = 128  # else a crowd of connections waits a second for its second try

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a reader that goes away is what several tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: _Http
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner.requests.append(Seen(self.path, headers, body))
        owner.asked.set()
        behaviour = owner.next(body)
        self.close_connection = True
        try:
            if isinstance(behaviour, Failure):
                self._fail(behaviour)
            else:
                self._stream(behaviour, body)
        except OSError:
            self._gone()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.owner.listed.append(Seen(self.path, headers, {}))
        models = self.server.owner.models
        self.close_connection = True
        if isinstance(models, list):
            models = Failure(200, {"object": "list", "data": [{"id": one} for one in models]})
        self._fail(models)

    def _gone(self) -> None:
        self.server.owner.left_at = time.monotonic()
        self.server.owner.left.set()

    def _fail(self, failure: Failure) -> None:
        data, text = failure.body, isinstance(failure.body, str)
        if not isinstance(data, bytes):
            data = (data if text else json.dumps(data)).encode()
        kind = "text/html" if text else "application/json"
        self._send(failure.status, data, {"Content-Type": kind, **failure.headers})

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Connection": "close", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        self._begin(status, {"Content-Length": str(len(data)), **headers})
        self.wfile.write(data)

    def _stream(self, answer: Answer, body: Body) -> None:
        if answer.hold:
            return self._wait_for_reader_to_leave()
        if answer.wire is not None:
            self.wfile.write(answer.wire)
            return self._beat(answer, self.wfile.write)
        if answer.raw is None and (answer.whole or not body.get("stream")):
            data = json.dumps(_completion(answer, body)).encode()
            return self._send(200, data, {"Content-Type": "application/json"})
        chunked = {"Content-Type": answer.content_type, "Transfer-Encoding": "chunked"}
        self._begin(200, {**chunked, **answer.headers})
        pieces, end = _pieces(answer, body), b"data: [DONE]\n\n"
        if answer.raw is not None:
            pieces, end = [answer.raw], b""
        for number, piece in enumerate(pieces):
            if number == answer.drop_after:
                return self._reset()
            if number == answer.stall_after:
                return self._wait_for_reader_to_leave()
            time.sleep(answer.delay)
            self._write(piece)
        self._beat(answer, self._write)
        self._write(end)
        self.wfile.write(b"0\r\n\r\n")

    def _beat(self, answer: Answer, write: Callable[[bytes], Any]) -> None:
        while answer.beat and not self.server.owner.closing.is_set():
            write(answer.beat)
            time.sleep(answer.beat_seconds)

    def _write(self, data: bytes) -> None:
        if data:  # else it would end the body
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _wait_for_reader_to_leave(self) -> None:
        while not self.server.owner.closing.is_set():
            ready, _, _ = select.select([self.connection], [], [], 0.02)
            if ready and not self.connection.recv(1):
                return self._gone()


def _pieces(answer: Answer, body: Body) -> list[bytes]:
    def chunk(delta: Body, finish: str | None = None) -> Body:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"choices": [choice]}

    pieces: list[Any] = [*answer.first, chunk({"role": "assistant", "content": ""})]
    for key, text in (
        ("reasoning_content", answer.reasoning),
        ("content", answer.text),
        ("refusal", answer.refusal),
    ):
        cuts = range(0, len(text), answer.chunk)
        pieces += [chunk({key: text[cut : cut + answer.chunk]}) for cut in cuts]
    if answer.finish is not None:
        pieces.append(chunk({}, answer.finish))
    wanted = (body.get("stream_options") or {}).get("include_usage")
    if answer.usage is not None and wanted:
        usage = _counted(answer, body) if answer.usage == "counted" else answer.usage
        pieces.append({"choices": [], "usage": usage})
    return [b"data: %s\n\n" % json.dumps(piece).encode() for piece in pieces]


def _completion(answer: Answer, body: Body) -> Body:
    message = {"content": answer.text, "refusal": answer.refusal or None}
    message["reasoning_content"] = answer.reasoning
    choice: Body = {"index": 0, "message": message, "finish_reason": answer.finish}
    usage = _counted(answer, body) if answer.usage == "counted" else answer.usage
    return {"choices": [choice], "usage": usage}


def _counted(answer: Answer, body: Body) -> Body:
    """Count a token per word, as good as any for a fake."""
    prompt = sum(len(message["content"].split()) for message in body["messages"])
    completion = len((answer.text + " " + answer.reasoning).split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
