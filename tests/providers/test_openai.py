"""OpenAIModel against a real socket: what it streams, what it retries, and where its key goes."""

import asyncio
import dataclasses
import json

import pytest
from openai_server import Answer, Failure, ScriptedServer, items_of, reply_of

from ipyrefine import errors
from ipyrefine.core.ports import Delta, Notice, Reply
from ipyrefine.providers.openai import OpenAIModel, backoff

BUSY = {"error": {"message": "later"}}
KEY = "sk-very-secret"


@pytest.fixture
def waits() -> list[float]:
    """The seconds that were waited, without waiting."""
    return []


@pytest.fixture
def model(server: ScriptedServer, waits: list[float]) -> OpenAIModel:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return OpenAIModel("m", base_url=server.base_url, api_key=KEY, timeout=5, sleep=sleep)


def text_of(items: list[Delta | Notice | Reply], kind: str) -> str:
    return "".join(i.text for i in items if isinstance(i, Delta) and i.kind == kind)


# --- A reply


async def test_streams_the_text_and_ends_with_one_reply(server, model, request_text):
    server.then(Answer("Hello, wörld: 你好!", chunk=4))
    *deltas, reply = await items_of(model, request_text)
    assert len(deltas) > 3
    assert all(isinstance(item, Delta) for item in deltas)
    assert text_of(deltas, "text") == "Hello, wörld: 你好!"
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish) == ("Hello, wörld: 你好!", "stop")
    usage = reply.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 5, 3)
    assert (usage.cached_tokens, usage.cost) == (0, None)
    assert 0 < usage.seconds < 5


async def test_sends_the_request_as_it_was_asked(server, model, request_json):
    server.then("{}", "{}")
    await reply_of(model, request_json)
    await reply_of(model, request_json.replace(temperature=None))
    assert "temperature" not in server.bodies[1], "the server uses its own"
    seen = server.requests[0]
    assert seen.path == "/v1/chat/completions"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert seen.body == {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": "Say hello to the world."}],
        "max_tokens": 2048,
        "temperature": 0.0,
        "seed": 7,
        "stream_options": {"include_usage": True},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": request_json.json_schema, "strict": True},
        },
    }


async def test_the_first_text_arrives_before_the_server_has_finished(server, model, request_text):
    server.then(Answer("some words", stall_after=2))
    stream = model.stream(request_text)
    first = await asyncio.wait_for(anext(stream), 2)
    assert first == Delta(text="some wor")
    await stream.aclose()
    assert await asyncio.to_thread(server.left.wait, 2), "closing it closes the connection"


async def test_each_way_to_finish_is_its_own_state(server, model, request_text, subtests):
    said = "half a sent"
    for answer, finish in (
        (Answer(said, finish="stop"), "stop"),
        (Answer(said, finish="tool_calls"), "stop"),
        (Answer(said, finish="length"), "length"),
        (Answer(said, finish="content_filter"), "filtered"),
        (Answer(said, finish="refusal"), "refused"),
        (Answer(refusal=said), "refused"),
        (Answer(said, finish=None), "incomplete"),
    ):
        for whole in (False, True):
            with subtests.test(finish=answer.finish, whole=whole):
                server.then(dataclasses.replace(answer, whole=whole))
                reply = await reply_of(model, request_text)
                assert (reply.finish, reply.text) == (finish, said)


async def test_while_llama_cpp_reads_the_prompt_it_is_said_how_far_it_is(
    server, model, request_text
):
    read = ({"prompt_progress": {"processed": n, "total": 1_913, "cache": 0}} for n in (512, 1_913))
    server.then(Answer("Hi", first=tuple(read)))
    items = await items_of(model, request_text)
    assert items[0] == Delta(kind="thinking", text="Reading the prompt: 512 of 1,913 tokens\n")
    assert (text_of(items, "thinking"), items[-1].thinking) == (items[0].text, "")


_COUNTS = {"prompt_tokens": 9, "completion_tokens": 500, "total_tokens": 509}


async def test_tokens_that_the_server_does_not_count_are_estimated(
    server, model, request_text, subtests
):
    estimate = (6, 10, None, None)  # 23 and 41 characters
    for usage, counted in (
        (None, estimate),
        (_COUNTS, (9, 500, None, None)),
        ({**_COUNTS, "prompt_tokens_details": {"cached_tokens": 8}}, (9, 500, 8, None)),
        ({**_COUNTS, "cost": 0.0125}, (9, 500, None, 0.0125)),
        ({"prompt_tokens": -5, "completion_tokens": "7", "cost": 1e308}, estimate),
        ({"prompt_tokens": 10**4_000, "completion_tokens": True, "cost": True}, estimate),
    ):
        with subtests.test(counted=counted):
            server.then(Answer("x" * 41, usage=usage))
            used = (await reply_of(model, request_text)).usage
            counts = (used.prompt_tokens, used.completion_tokens, used.cached_tokens, used.cost)
            assert counts == counted


@pytest.mark.parametrize("way", ["refused", "ignored"])
async def test_a_server_that_does_not_stream_is_read_all_the_same(server, model, request_text, way):
    if way == "refused":
        server.rejecting("stream", lambda body: "stream" in body)
    server.then(Answer("Hello", reasoning="a friend", usage=_COUNTS, whole=True))
    items = [i for i in await items_of(model, request_text) if not isinstance(i, Notice)]
    assert [(i.kind, i.text) for i in items[:-1]] == [("thinking", "a friend"), ("text", "Hello")]
    reply = items[-1]
    assert (reply.text, reply.thinking, reply.finish) == ("Hello", "a friend", "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (9, 500)


# --- What goes wrong


def sent_in_a_reply(error: dict, *, stream: bool = True, **beside: object) -> Answer:
    body = json.dumps({"error": error, **beside}).encode()
    if not stream:
        return Answer(raw=body, content_type="application/json")
    role = b'data: {"choices": [{"delta": {"role": "assistant", "content": ""}}]}\n\n'
    return Answer(raw=b": hi\n\n" + role + b"data: : PROCESSING\n\ndata: " + body + b"\n\n")


def failure(words: str, status: int = 400, **error: str) -> Failure:
    return Failure(status, {"error": {"message": words, **error}})


IN_PLACE = (
    (errors.RateLimited, {"code": 402, "message": "Insufficient Balance"}),
    (errors.AccessDenied, {"code": "403", "message": "not for this key"}),
    (errors.RequestRejected, {"code": 422, "message": "the prompt is too long"}),
)
AT_ONCE: dict[type, list[tuple[Answer | Failure, str]]] = {
    errors.ServerFailed: [
        *(
            (Answer(raw=raw, content_type=kind), "protocol. Check the base URL")
            for raw, kind in (
                (b"data: {not json\n\n", "text/event-stream"),
                (b'data: "a string"\n\n', "text/event-stream"),
                (b"data: " + b"[" * 100_000 + b"\n\n", "text/event-stream"),
                (b"", "text/event-stream"),
                (b"<html><body>Welcome</body></html>", "text/html"),
                (b'{"message": {"content": "not a completion"}}', "application/json"),
                (b'{"choices": [{"message"', "application/json"),
            )
        ),
        (Failure(500, BUSY, {"x-should-retry": "false"}), "HTTP 500"),
    ],
    errors.AccessDenied: [(Failure(403, BUSY), "Check what the key may do")],
    errors.RequestRejected: [
        (failure(f"bad word, {KEY}"), " (bad word, …)."),
        (Failure(400, {"error": "bad word"}), " (bad word)."),
        (Failure(400, [{"error": {"message": "bad word"}}]), " (bad word)."),
        (Failure(400, {"detail": [{"loc": ["body"], "msg": "bad word"}]}), " (bad word)."),
        (Failure(400, {"message": '{"detail": [{"msg": "bad word"}]}'}), " (bad word)."),
        (Failure(400, "<html>bad word</html>"), " (HTTP 400)."),
        (Failure(400, "bad\nword"), " (bad word)."),
        (Failure(400, b""), " (HTTP 400)."),
        (Failure(400, b"over " * 2**20), " (over over "),
        (Failure(413, BUSY), "Shorten the cell"),
    ],
    errors.RateLimited: [
        (Failure(402, BUSY), "Top it up"),
        (Failure(429, "", {"Retry-After": "61"}), "Wait 2 minutes and run"),
        (Failure(429, BUSY, {"Retry-After": "3600"}), "for now (later). Wait 1 hour and run"),
    ],
}


async def test_what_waiting_does_not_mend_ends_a_request_at_once_in_a_line_without_the_key(
    server, model, request_text, waits, subtests
):
    for kind, sent, words in (
        *((kind, *row) for kind, rows in AT_ONCE.items() for row in rows),
        *((kind, sent_in_a_reply(one), one["message"]) for kind, one in IN_PLACE),
        *((kind, sent_in_a_reply(one, stream=False), one["message"]) for kind, one in IN_PLACE),
    ):
        with subtests.test(str(sent)[:200]):
            server.requests.clear()
            server.default = lambda _, one=sent: one
            with pytest.raises(errors.ModelError) as caught:
                await reply_of(model, request_text.replace(max_tokens=16_384))
            assert type(caught.value) is kind
            message = str(caught.value)
            assert words in message
            assert KEY not in message
            assert len(message.splitlines()) == 1
            assert len(message) < 500
            # Without all that is optional, and with a limit of 16,384 halved down to 1,024.
            more = {400: 1, 422: 1, 413: 4}.get(caught.value.status, 0)
            assert (len(server.requests), waits) == (1 + more, [])


WAITED = [
    *(
        (sent_in_a_reply(error, stream=stream, **beside), None)
        for error, beside in (
            ({"code": 429, "message": "slow down"}, {}),
            ({"type": "overloaded_error", "message": "Overloaded"}, {"type": "error"}),
            ({"code": 502, "message": "bad gateway"}, {"choices": [{"finish_reason": "error"}]}),
        )
        for stream in (True, False)
    ),
    (sent_in_a_reply({"code": 429, "details": [{"retryDelay": "3s"}]}), 3.0),
    *(
        (Failure(429, "", headers), expected)
        for headers, expected in (
            ({"Retry-After": "3"}, 3.0),
            ({"Retry-After": "0.5"}, 0.5),
            ({"Retry-After": "-1"}, 0.0),
            ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
            ({"retry-after-ms": "251", "Retry-After": "1"}, 0.251),
        )
    ),
    (Failure(429, {"message": "slow down", "retry_after": 4}), 4.0),
    (Failure(402, BUSY, {"Retry-After": "2"}), 2.0),
    (Failure(429, [{"error": {"details": [{}, {"retryDelay": "3.5s"}]}}]), 3.5),
    (Failure(429, {"error": {"metadata": {"headers": {"Retry-After": "7"}}}}), 7.0),
]


async def test_a_passing_failure_is_waited_for_as_long_as_the_server_says_wherever_it_does(
    server, model, request_text, waits, subtests
):
    for sent, seconds in WAITED:
        with subtests.test(str(sent)[:200]):
            waits.clear()
            server.queue.clear()
            server.then(sent, "at last")
            notice, *_, reply = await items_of(model, request_text)
            assert (reply.text, "trying again in" in notice.text) == ("at last", True)
            (waited,) = waits
            assert waited == seconds if seconds is not None else 0 <= waited <= 0.5


async def test_a_field_refused_within_a_reply_is_left_out_and_remembered(
    server, model, request_text
):
    error = {"type": "invalid_request_error", "message": "no", "param": "temperature"}
    server.then(sent_in_a_reply(error), "ok", "ok")
    await reply_of(model, request_text)
    await reply_of(model, request_text)
    assert ["temperature" in body for body in server.bodies] == [True, False, False]


BROKEN = b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\ndata: '


@pytest.mark.parametrize(
    ("answer", "words", "again"),
    [
        (Answer(raw=BROKEN + b'{"error": {"code": 502, "message": "is gone"}}\n\n'), "gone", True),
        (Answer(raw=BROKEN + b'{"choices": [{"de\n\n'), "protocol", True),
        (Answer("Hello", chunk=2, drop_after=2), "No connection to", True),
        (Answer(raw=b"data: {not json\n\n"), "protocol", False),
        (Answer(raw=BROKEN + b'{"error": {"code": 400, "message": "is long"}}\n\n'), "long", False),
        (Answer("Hello", chunk=2, stall_after=2), "nothing new for too long", False),
    ],
)
async def test_a_broken_stream_says_whether_asking_again_may_help(
    server, request_text, waits, answer, words, again
):
    server.then(answer)
    model = OpenAIModel("m", base_url=server.base_url, timeout=0.3)
    with pytest.raises(errors.ModelError, match=words) as caught:
        await reply_of(model, request_text)
    assert (caught.value.broke_off, len(server.requests)) == (again, 1)


async def test_a_server_here_that_is_not_ready_is_waited_for_with_one_notice(
    server, model, request_text, waits
):
    server.then(*[failure("Loading model", 503)] * 6, "at last")
    items = await items_of(model, request_text)
    notices = [item.text for item in items if isinstance(item, Notice)]
    assert notices == ["The server isn't ready yet. Waiting up to 5 minutes.", *[""] * 5]
    assert (items[-1].text, len(waits)) == ("at last", 6)


async def test_a_server_that_never_gets_ready_ends_the_run_after_minutes(
    server, model, request_text, waits
):
    server.default = lambda _: failure("Loading model", 503)
    with pytest.raises(errors.ServerFailed, match=r"\(Loading model\)\. Run the cell again"):
        await reply_of(model, request_text)
    assert 250 < sum(waits) <= 300


@pytest.mark.parametrize(
    "answer",
    [Answer(hold=True), Answer("one two three four", stall_after=2)],
    ids=["held", "begun"],
)
async def test_cancelling_the_reader_closes_the_connection_at_once(
    server, model, request_text, answer
):
    server.then(answer)
    task = asyncio.create_task(reply_of(model, request_text))
    assert await asyncio.to_thread(server.asked.wait, 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.left.wait, 2)


def test_backoff_has_full_jitter_and_a_ceiling():
    for attempt, ceiling in enumerate((0.5, 1, 2, 4, 8, 8)):
        waits = [backoff(attempt) for _ in range(100)]
        assert 0 <= min(waits) < ceiling / 2 < max(waits) <= ceiling
        assert len(set(waits)) > 50


# --- The key


async def test_a_callable_key_is_asked_before_every_call(server, request_text):
    keys = iter(["first\n", "second"])
    server.then("a", "b")
    model = OpenAIModel("m", base_url=server.base_url, api_key=lambda: next(keys))
    await reply_of(model, request_text)
    await reply_of(model, request_text)
    sent = [seen.headers["authorization"] for seen in server.requests]
    assert sent == ["Bearer first", "Bearer second"]
    with pytest.raises(errors.AccessDenied, match="StopIteration"):
        await reply_of(model, request_text)


@pytest.mark.parametrize(
    ("configured", "sent"),
    [
        ("{}", KEY),
        ("http://127.0.0.1:{port}/another/path/", KEY),
        ("", "none"),
        ("https://127.0.0.1:{port}/v1", "none"),
        ("http://localhost:{port}/v1", "none"),
        ("http://127.0.0.1:1/v1", "none"),
        ("http://127.0.0.1:x/v1", "none"),
    ],
)
async def test_the_environments_key_goes_to_the_server_that_the_environment_names_only(
    server, request_text, monkeypatch, configured, sent
):
    server.then("a", "b")
    port = server.base_url.split(":")[2].removesuffix("/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", configured.format(server.base_url, port=port))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await reply_of(OpenAIModel("m", base_url=server.base_url), request_text)
    await reply_of(OpenAIModel("m", base_url=server.base_url, api_key="own"), request_text)
    keys = [seen.headers["authorization"] for seen in server.requests]
    assert keys == [f"Bearer {sent}", "Bearer own"]


async def test_no_other_secret_of_the_environment_goes_to_another_server(
    server, request_text, monkeypatch
):
    server.then("a", "b")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Api-Key: {KEY}")
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    await reply_of(OpenAIModel("m", base_url=server.base_url), request_text)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    await reply_of(OpenAIModel("m"), request_text)
    other, configured = (seen.headers for seen in server.requests)
    assert KEY not in str(other)
    assert configured["x-api-key"] == KEY
    assert server.bodies[0] == server.bodies[1]


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_wants_a_key_and_got_none_says_how_to_name_it(
    server, request_text, monkeypatch, status
):
    server.default = lambda _: Failure(status, {"error": {"message": "no key"}})
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(errors.AccessDenied, match=r"got no key\..* --set api_key_env=NAME"):
        await reply_of(OpenAIModel("m", base_url=server.base_url), request_text)
    with pytest.raises(errors.AccessDenied, match=r"this key|the key"):
        await reply_of(OpenAIModel("m", base_url=server.base_url, api_key="own"), request_text)


async def test_openai_needs_a_key_and_gets_none_of_another_server(
    server, request_text, monkeypatch
):
    with pytest.raises(errors.AccessDenied, match=r"got no key\. Set OPENAI_API_KEY"):
        await reply_of(OpenAIModel("m"), request_text)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(
        errors.AccessDenied, match=r"openai\.com/v1 got no key\. .*--set api_key_env"
    ):
        await reply_of(OpenAIModel("m", base_url="https://api.openai.com/v1"), request_text)


# --- Address and settings


def test_a_base_url_that_is_no_address_or_more_is_refused_without_quoting_it():
    azure = "http://h/openai?api-version"
    more = ("http://h/v1?token=t0ken", "http://h/v1#t0ken", f"{azure}=2024-10-21&api-key=t0ken")
    for advice, urls in {
        "Leave out what follows": (*more, f"{azure}=t0ken/../"),
        "http://HOST:PORT/v1": ("localhost:1/v1", "ftp://h/v1", "http://h:x/v1"),
    }.items():
        for url in urls:
            with pytest.raises(errors.UsageError, match=advice) as caught:
                OpenAIModel("m", base_url=url)
            assert "t0ken" not in str(caught.value)


def test_the_repr_shows_where_requests_go_without_the_secret():
    model = OpenAIModel("m", base_url="http://me:pass@127.0.0.1:1/v1", api_key=KEY)
    assert repr(model) == "OpenAIModel('m', base_url='http://127.0.0.1:1/v1')"


AZURE = "/openai/deployments/mine?api-version=2024-10-21"


@pytest.mark.parametrize("ending", ["", "/chat/completions"])
async def test_azure_s_classic_address_is_sent_its_version_and_the_key_in_its_header(
    server, request_text, ending
):
    server.then("Hello")
    address = server.base_url.removesuffix("/v1") + AZURE.replace("?", f"{ending}?")
    model = OpenAIModel("m", base_url=address, api_key=KEY)
    assert (await reply_of(model, request_text)).text == "Hello"
    (seen,) = server.requests
    assert seen.path == AZURE.replace("?", "/chat/completions?")
    assert (seen.headers["api-key"], seen.headers["authorization"]) == (KEY, f"Bearer {KEY}")
    assert "2024" not in f"{model!r} {model.base_url}"


async def test_another_server_gets_no_header_for_azure(server, model, request_text, monkeypatch):
    server.then("Hello")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "api-key: of-somebody")
    await reply_of(model, request_text)
    assert "api-key" not in server.requests[0].headers


async def test_letters_of_an_error_that_a_short_key_has_too_are_kept(server, request_text):
    words = "You exceeded what sk-1 has: none of an EMPTY x-box"
    server.default = lambda _: failure(words)
    for key in ("x", "none", "EMPTY", "sk-1"):
        with pytest.raises(errors.RequestRejected, match=words):
            await reply_of(OpenAIModel("m", base_url=server.base_url, api_key=key), request_text)


async def test_a_proxy_is_not_asked_for_a_server_on_this_machine(
    server, model, request_text, monkeypatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    server.then("direct")
    assert (await reply_of(model, request_text)).text == "direct"
