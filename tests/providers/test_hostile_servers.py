"""No server, hostile or broken, ends a run in any other way than with `Stopped` and a sentence."""

import asyncio
import gzip
import json
import logging
import random
import re
import time
import traceback
from collections.abc import Sequence

import httpx2
import pytest
from faulty import Trial
from mutations import mutations
from openai_server import Answer, Behaviour, Failure, ScriptedServer, reply_of

from ipyrefine.core.events import Event, Stopped
from ipyrefine.core.model import Limits, StopReason
from ipyrefine.errors import AccessDenied, ModelError, RequestRejected, Unreachable
from ipyrefine.providers import servers
from ipyrefine.providers.openai import OpenAIModel

_LEAKS = re.compile(r"Traceback|\b\w+(?:Error|Exception)\b|\bNone\b|ipyrefine broke|object at 0x")
ONCE = Limits(max_revisions=0)


async def no_wait(seconds: float) -> None:
    assert 0 <= seconds <= 60


def event(data: str) -> bytes:
    return b"data: " + data.encode() + b"\n\n"


def chunk(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    return event(json.dumps({"choices": [choice]}))


KEY = "sk-very-secret-0123456789"
DIGITS = "9" * 5_000
OVER = f'{{"error": {{"code": %s, "message": "over {KEY}"}}}}'
CHUNK = {
    "choices": [
        {"delta": {"reasoning": "", "content": "no", "refusal": None}, "finish_reason": None},
    ],
    "usage": {"prompt_tokens": 5, "cost": 0.25, "prompt_tokens_details": {"cached_tokens": 1}},
    "error": None,
}
DONE = b"data: [DONE]\n\n"
GOOD_BODY = chunk("no no no") + chunk(" no no no") + chunk("", "stop") + DONE
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
# What no honest server sends: whole bodies, error answers, odd headers, and hardly HTTP.
BODIES = (
    *(b"", DONE, chunk("no") + b"data: \xff\xfe\xfa\n\n" + DONE),
    random.Random(1).randbytes(10_000),
    GOOD_BODY.replace(b"\n", b"\r"),
    GOOD_BODY.replace(b"no no", "no\u2028no\x85no".encode()),
    *(event(OVER % code) for code in (DIGITS, "401", "599", '"٤٠٠"')),
    event('{"choices":' + '{"a":' * 100_000 + "1" + "}" * 100_001),
)
FAILURES = (
    *(Failure(status, (OVER % status).encode()) for status in (204, 299, 304, 418, 600, 999)),
    *(Failure(400, (OVER % code).encode()) for code in (DIGITS, "NaN", "{}", '"\\ud83d"')),
    Failure(500, b"x" * 8 * 2**20),
    Failure(500, b"\xff\xfe" * 1_000),
    *(
        Failure(429, b"", {"Retry-After": value})
        for value in ("", "-1e999", "nan", DIGITS, "soon", "Fri, 31 Dec 9999 23:59:59 -2359")
    ),
    *(
        Failure(307, "", {"Location": value})
        for value in ("", "http://[::1", f"http://h:{DIGITS}/", f"http://user:{KEY}@other.test/v1")
    ),
)
HEADERS = ({"Content-Encoding": "rot13"}, {"X-Key": KEY, "X-Odd": "\xff\x80"})
WIRE = (
    *(b"", random.Random(2).randbytes(1_000), OK + b"broken " + KEY.encode() + b"\r\n\r\n"),
    OK + b"Content-Length: 9\r\n\r\n" + GOOD_BODY,
)
CORPORA: dict[str, Sequence[Behaviour]] = {
    "chunks": [
        Answer(raw=chunk("no no") + event(json.dumps(one)) + chunk(" no", "stop") + DONE)
        for one in mutations(CHUNK, seed=1, count=40)
    ],
    "streams": [Answer(raw=body) for body in BODIES],
    "answers": [*FAILURES, *(Answer(raw=GOOD_BODY, headers=one) for one in HEADERS)],
    "wire": [Answer(wire=sent) for sent in WIRE],
}


@pytest.mark.parametrize("corpus", CORPORA)
async def test_whatever_a_server_sends_the_run_stops_with_a_sentence(
    server, corpus, caplog, subtests
):
    caplog.set_level(logging.DEBUG)
    model = OpenAIModel("m", base_url=server.base_url, api_key=KEY, timeout=2, sleep=no_wait)
    for number, behaviour in enumerate(CORPORA[corpus]):
        with subtests.test(number=number):
            servers.BY_SERVER.clear()
            trial = Trial(server, "judge", behaviour)
            events: list[Event] = []

            def consume(event: Event, _: object) -> None:
                event.model_dump_json().encode()  # what every display and the journal do with it
                events.append(event)  # noqa: B023

            loop = trial.refinement(model=model, limits=ONCE)
            run = await loop.run(consume)
            error, last = loop.error, events[-1]
            assert isinstance(last, Stopped)
            assert isinstance(error, ModelError | None)
            assert run.text == "Hello", "the draft was lost"
            assert 0 < len(last.message.strip()) <= 700
            assert "\n" not in last.message
            assert not _LEAKS.search(last.message), "a word for programmers"
            assert error is None or KEY not in _with_variables(error) + str(error)
            assert not any(KEY in e.model_dump_json() for e in events if e.type != "text_delta")
            assert 0 <= run.usage.tokens < 10**15
            assert (run.usage.cost or 0) < 10**9
    assert f"Bearer {KEY}" not in caplog.text  # a server may repeat the key in its headers


# --- silence

_BEATS = {
    "comments": b": still here\n\n",
    "usage": b'data: {"choices": [], "usage": {"completion_tokens": 1}}\n\n',
    "repeated ends": chunk("", "stop"),
}


@pytest.mark.parametrize(("beat", "seconds"), [*((b, 0.05) for b in _BEATS), ("usage", 0.0)])
async def test_signs_of_life_do_not_count_as_a_reply(server, request_text, beat, seconds):
    finish = "stop" if beat == "repeated ends" else None
    beats = _BEATS[beat] * (1 if seconds else 20)
    server.then(Answer("Hi", finish=finish, usage=None, beat=beats, beat_seconds=seconds))
    model = OpenAIModel("m", base_url=server.base_url, timeout=0.3)
    async with asyncio.timeout(30):
        with pytest.raises(Unreachable, match="sent nothing new for too long"):
            await reply_of(model, request_text)


async def test_what_follows_the_end_mark_is_not_waited_for(server, request_text):
    server.then(Answer(raw=chunk("Hello", "stop") + DONE, beat=b": more\n\n"))
    async with asyncio.timeout(30):
        reply = await reply_of(OpenAIModel("m", base_url=server.base_url), request_text)
    assert (reply.text, reply.finish) == ("Hello", "stop")


# --- size

_BOMB = gzip.compress(bytes(10**8))
_LARGE: tuple[tuple[Behaviour, str], ...] = (
    (Answer(raw=_BOMB, headers={"Content-Encoding": "gzip"}), "protocol"),
    (Failure(400, _BOMB, {"Content-Encoding": "gzip, gzip"}), "(HTTP 400)"),
    (Answer(raw=b"data: " + b"x" * 17 * 2**20), "more than 16 MB"),
    (Answer(raw=b"data: {%s}\n\n" % (b" " * 1_000) * 17_000), "more than 16 MB"),
    (Answer(raw=b":\n\n" * 2**18), ""),
)


async def test_no_body_is_unpacked_and_a_long_one_ends_and_leaves_the_event_loop_to_others(
    server, subtests
):
    longest, before = 0.0, time.monotonic()

    async def tick() -> None:
        nonlocal longest, before
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            longest, before = max(longest, now - before), now

    ticking = asyncio.create_task(tick())
    for body, words in _LARGE:
        with subtests.test(words):
            longest = 0.0
            async with asyncio.timeout(60):
                idle = 15 if words else 1  # on a busy machine a large body takes its time
                run = await Trial(server, "judge", body).run(idle=idle, limits=ONCE)
            assert (run.stop_reason, run.text) == (StopReason.FAILED, "Hello")
            assert words in run.message
            assert longest < 10
    ticking.cancel()
    assert {seen.headers["accept-encoding"] for seen in server.requests} == {"identity"}


async def test_an_error_whose_body_never_comes_keeps_its_status(server, request_text, monkeypatch):
    monkeypatch.setattr("ipyrefine.providers.openai._ERROR_SECONDS", 0.5)
    head = b"HTTP/1.1 404 No\r\nContent-Length: 1000\r\n\r\nnothing "
    server.then(Answer(wire=head, beat=b" "))
    model = OpenAIModel("m", base_url=server.base_url, timeout=60)
    async with asyncio.timeout(30):
        with pytest.raises(ModelError, match="doesn't know the model 'm'"):
            await anext(model.stream(request_text))


# --- the key


async def test_a_redirect_takes_neither_the_key_nor_the_task_along(server, request_text):
    with ScriptedServer(lambda _: "caught") as other:
        target = other.base_url.replace("127.0.0.1", "localhost")
        fields = {"Location": f"{target}/chat/completions", "Refresh": f"0; url={target}"}
        server.then(Failure(307, "", fields))
        model = OpenAIModel("m", base_url=server.base_url, api_key=KEY)
        with pytest.raises(RequestRejected, match="redirects to another address"):
            await anext(model.stream(request_text))
        assert other.requests == []
    assert len(server.requests) == 1


def _with_variables(error: BaseException) -> str:
    """Return a traceback with the variables of every frame but the test's own, causes included."""
    own = error.__traceback__.tb_next if error.__traceback__ else None
    formatted = traceback.TracebackException(type(error), error, own, capture_locals=True)
    return "".join(formatted.format())


@pytest.mark.parametrize(
    "raised",
    [ValueError(KEY), httpx2.ReadError("lost"), KeyboardInterrupt()],
    ids=lambda raised: type(raised).__name__,
)
async def test_no_frame_of_any_exception_shows_the_key(server, request_text, raised, monkeypatch):
    async def send(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("httpcore2.AsyncConnectionPool.handle_async_request", send)
    model = OpenAIModel("m", base_url=server.base_url, api_key=KEY, max_retries=0)
    with pytest.raises((ModelError, KeyboardInterrupt)) as caught:
        await anext(model.stream(request_text))
    assert KEY not in _with_variables(caught.value)
    link: BaseException | None = caught.value.__context__
    while link is not None:  # nor would a debugger find one
        assert link.__traceback__ is None
        link = link.__context__


async def test_a_cancelled_request_shows_no_key(server, request_text):
    server.then(Answer(hold=True))
    model = OpenAIModel("m", base_url=server.base_url, api_key=KEY)
    asking = asyncio.ensure_future(anext(model.stream(request_text)))
    assert await asyncio.to_thread(server.asked.wait, 20)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await asking
    assert KEY not in _with_variables(caught.value)


@pytest.mark.parametrize("key", ["sk-ü-secret-0123", "sk-\n-secret-0123"])
async def test_a_key_that_no_header_can_hold_is_refused_and_in_no_frame(server, request_text, key):
    model = OpenAIModel("m", base_url=server.base_url, api_key=lambda: key)
    with pytest.raises(AccessDenied) as caught:
        await anext(model.stream(request_text))
    assert "secret-0123" not in _with_variables(caught.value) + str(caught.value) + repr(model)
    assert server.requests == []
