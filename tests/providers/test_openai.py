"""OpenAIModel against a real socket: what it streams, what it retries, and its errors."""

import asyncio
import json
import threading
from typing import Any

import pytest
from openai_server import Answer, Failure, ScriptedServer

from ipyrefine import errors
from ipyrefine.core.ports import Delta, Notice, Reply, Request
from ipyrefine.providers.openai import OpenAIModel, backoff

KEY = "sk-very-secret"


class Waits:
    """Stand in for sleeping, and keep the seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def model(server: ScriptedServer, waits: Waits) -> OpenAIModel:
    return OpenAIModel("m", base_url=server.base_url, api_key=KEY, timeout=5, sleep=waits)


async def items_of(model: OpenAIModel, request: Request) -> list[Delta | Notice | Reply]:
    return [item async for item in model.stream(request)]


async def reply_of(model: OpenAIModel, request: Request) -> Reply:
    reply = (await items_of(model, request))[-1]
    assert isinstance(reply, Reply)
    return reply


def text_of(items: list[Delta | Notice | Reply], kind: str) -> str:
    return "".join(i.text for i in items if isinstance(i, Delta) and i.kind == kind)


async def test_streams_the_text_and_ends_with_one_reply(server, model, request_text):
    server.then(Answer("Hello, wörld: 你好!", chunk=4))
    items = await items_of(model, request_text)
    deltas = items[:-1]
    assert len(deltas) > 3
    assert all(isinstance(item, Delta) for item in deltas)
    assert text_of(items, "text") == "Hello, wörld: 你好!"
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish) == ("Hello, wörld: 你好!", "stop")
    usage = reply.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 5, 3)
    assert usage.cached_tokens == 0
    assert usage.cost is None
    assert 0 < usage.seconds < 5


async def test_sends_the_request_as_it_was_asked(server, model, request_json):
    server.then("{}")
    await reply_of(model, request_json)
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


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", "stop"),
        ("tool_calls", "stop"),
        ("length", "length"),
        ("content_filter", "filtered"),
        ("refusal", "refused"),
        (None, "incomplete"),
    ],
)
async def test_each_way_to_finish_is_its_own_state(server, model, request_text, finish, expected):
    server.then(Answer("half a sent", finish=finish))
    reply = await reply_of(model, request_text)
    assert (reply.finish, reply.text) == (expected, "half a sent")


async def test_a_refusal_is_refused_and_says_why(server, model, request_text):
    server.then(Answer(refusal="I can't help with that."))
    reply = await reply_of(model, request_text)
    assert (reply.finish, reply.text) == ("refused", "I can't help with that.")


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_thinking_and_never_text(server, model, request_text, field):
    server.then(Answer("42", reasoning="six times seven", reasoning_field=field))
    items = await items_of(model, request_text)
    assert text_of(items, "thinking") == "six times seven"
    assert text_of(items, "text") == "42"
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.thinking) == ("42", "six times seven")


@pytest.mark.parametrize("chunk", range(1, 20))
async def test_a_think_block_is_told_apart_wherever_it_is_cut(server, model, request_text, chunk):
    server.then(Answer("\n<think>a < b</th</think>\n\nx = '<think>'", chunk=chunk))
    items = await items_of(model, request_text)
    assert text_of(items, "thinking") == "a < b</th"
    assert text_of(items, "text") == "x = '<think>'"


async def test_a_think_block_cut_off_leaves_no_text(server, model, request_text):
    server.then(Answer("<think>still thinking </thi", finish="length"))
    reply = await reply_of(model, request_text)
    assert (reply.text, reply.thinking, reply.finish) == ("", "still thinking </thi", "length")


async def test_tokens_are_estimated_when_the_server_does_not_count(server, model, request_text):
    server.then(Answer("x" * 41, usage=None))
    usage = (await reply_of(model, request_text)).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (6, 10)  # 23 and 41 characters
    assert usage.cached_tokens is None


async def test_a_missing_cache_count_is_unknown_and_a_given_one_is_kept(
    server, model, request_text
):
    counts = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    cached = {**counts, "prompt_tokens_details": {"cached_tokens": 8}, "cost": 0.0125}
    server.then(Answer("a", usage=counts), Answer("a", usage=cached))
    usage = (await reply_of(model, request_text)).usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.cost) == (9, None, None)
    usage = (await reply_of(model, request_text)).usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.cost) == (9, 8, 0.0125)


async def test_chunks_without_choices_or_of_odd_shape_are_passed_over(server, model, request_text):
    azure = {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}
    odd = {"choices": [{"index": 0, "delta": None, "finish_reason": None}], "usage": "none yet"}
    server.then(Answer("fine", first=(azure, odd, {"choices": None}, {})))
    reply = await reply_of(model, request_text)
    assert (reply.text, reply.finish) == ("fine", "stop")


@pytest.mark.parametrize(
    ("raw", "content_type"),
    [
        (b"data: {not json\n\n", "text/event-stream"),
        (b'data: "a string"\n\n', "text/event-stream"),
        (b"data: [1, 2]\n\n", "text/event-stream"),
        (b"data: {}\xff\xfe\n\n", "text/event-stream"),
        (b"<html><body>Welcome</body></html>", "text/html"),
        (b'{"message": {"content": "not a completion"}}', "application/json"),
        (b'["choices"]', "application/json"),
        (b'{"choices": [{"message"', "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"", "application/json"),
        (b"", "text/event-stream"),
    ],
)
async def test_what_is_not_the_protocol_is_a_server_failure(
    server, model, request_text, raw, content_type
):
    server.then(Answer(raw=raw, content_type=content_type))
    with pytest.raises(errors.ServerFailed, match=r"protocol\. Check the base URL"):
        await reply_of(model, request_text)


async def test_an_error_sent_in_place_of_a_chunk_is_that_error(server, model, request_text):
    def body(error: dict[str, Any]) -> bytes:
        return b'data: {"choices": []}\n\ndata: ' + json.dumps({"error": error}).encode() + b"\n\n"

    server.then(
        Answer(raw=body({"code": 429, "message": "slow down"})),
        Answer(raw=body({"code": "oops", "message": "the GPU fell over"})),
    )
    with pytest.raises(errors.RateLimited, match="slow down"):
        await reply_of(model, request_text)
    with pytest.raises(errors.ServerFailed, match="the GPU fell over"):
        await reply_of(model, request_text)


async def test_a_connection_lost_in_a_reply_is_not_retried(server, model, request_text, waits):
    server.then(Answer("one two three four", drop_after=2), "never asked for")
    stream = model.stream(request_text)
    assert await anext(stream) == Delta(text="one two ")
    with pytest.raises(errors.Unreachable, match=r"No connection to http://127\.0\.0\.1:\d+/v1"):
        await anext(stream)
    assert len(server.requests) == 1
    assert waits.seconds == []


async def test_a_server_that_falls_silent_times_out(server, request_text):
    server.then(Answer("one two three four", stall_after=1))
    model = OpenAIModel("m", base_url=server.base_url, timeout=0.1)
    with pytest.raises(errors.Unreachable, match="sent nothing new for too long"):
        await reply_of(model, request_text)
    assert server.left.wait(2)
    assert len(server.requests) == 1


async def test_a_busy_server_is_asked_again_with_a_notice(server, model, request_text, waits):
    server.then(
        Failure(429, {"error": {"message": "later"}}, {"Retry-After": "2"}),
        Failure(502, "<html>Bad gateway</html>"),
        "at last",
    )
    items = await items_of(model, request_text)
    notices = [item.text for item in items if isinstance(item, Notice)]
    assert notices[0] == "The server is busy; trying again in 2 s (1 of 2)."
    assert notices[1] == "The server failed (HTTP 502); trying again in 1 s (2 of 2)."
    assert waits.seconds[0] == 2.0
    assert 0 <= waits.seconds[1] <= 1.0
    assert text_of(items, "text") == "at last"
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_retries_are_bounded(server, model, request_text, status):
    server.default = lambda _: Failure(status, {"error": {"message": "no"}})
    with pytest.raises(errors.ModelError):
        await reply_of(model, request_text)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("failure", "expected", "message"),
    [
        (Failure(400, {"error": {"message": "bad word"}}), errors.RequestRejected, "bad word"),
        (Failure(401, {"error": {"message": f"bad: {KEY}"}}), errors.AccessDenied, "OPENAI_API_K"),
        (Failure(402, {"error": {"message": "pay"}}), errors.RateLimited, "no credit left"),
        (Failure(403, {"error": {"message": f"{KEY} may not"}}), errors.AccessDenied, "… may not"),
        (Failure(404, {"error": "model 'm' not found"}), errors.ModelNotFound, "model 'm' not fo"),
        (Failure(404, "<html>nginx</html>"), errors.ModelNotFound, "the base URL"),
        (Failure(413, {"detail": "too big"}), errors.RequestRejected, "too big"),
        (
            Failure(400, {"error": {"code": "context_length_exceeded", "message": "9 > 8"}}),
            errors.RequestRejected,
            "Shorten the cell",
        ),
        (
            Failure(429, {"error": {"code": "insufficient_quota", "message": "over"}}),
            errors.RateLimited,
            "no credit left",
        ),
        (Failure(429, {}, {"Retry-After": "3600"}), errors.RateLimited, "Wait a little"),
        (Failure(500, {}, {"x-should-retry": "false"}), errors.ServerFailed, "HTTP 500"),
    ],
)
async def test_an_error_that_waiting_does_not_mend_is_raised_at_once(
    server, model, request_text, waits, failure, expected, message
):
    server.then(failure)
    with pytest.raises(expected) as caught:
        await reply_of(model, request_text)
    assert type(caught.value) is expected
    assert message in str(caught.value)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (len(server.requests), waits.seconds) == (1, [])


async def test_a_server_that_is_not_there_is_unreachable_after_the_retries(
    server, request_text, waits
):
    with ScriptedServer() as gone:
        url = gone.base_url.replace("http://", "http://me:pass@")
    model = OpenAIModel("m", base_url=url, sleep=waits)
    stream = model.stream(request_text)
    items: list[Any] = [await anext(stream), await anext(stream)]
    with pytest.raises(errors.Unreachable, match="Check the address") as caught:
        await anext(stream)
    assert [item.text for item in items] == ["", ""]  # the error says it once
    assert all(0 <= s <= 1 for s in waits.seconds)
    assert len(waits.seconds) == 2
    assert "pass" not in str(caught.value) + repr(model)


async def test_closing_the_stream_closes_the_connection_at_once(server, model, request_text):
    server.then(Answer("one two three four", stall_after=2))
    stream = model.stream(request_text)
    await anext(stream)
    await stream.aclose()
    assert await asyncio.to_thread(server.left.wait, 2)


@pytest.mark.parametrize("pieces", [0, 2])
async def test_cancelling_the_reader_closes_the_connection_at_once(
    server, model, request_text, pieces
):
    server.then(Answer("one two three four", stall_after=pieces))
    task = asyncio.create_task(reply_of(model, request_text))
    assert await asyncio.to_thread(server.asked.wait, 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.left.wait, 2)


async def test_a_closed_model_can_be_used_again(server, model, request_text):
    server.then("one", "two")
    assert (await reply_of(model, request_text)).text == "one"
    await model.aclose()
    await model.aclose()
    assert (await reply_of(model, request_text)).text == "two"


def test_a_model_works_on_one_event_loop_after_another(server, model, request_text):
    server.then("one", "two")
    assert asyncio.run(reply_of(model, request_text)).text == "one"
    assert asyncio.run(reply_of(model, request_text)).text == "two"


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


async def test_a_server_of_ones_own_needs_no_key_but_openai_does(
    server, request_text, monkeypatch: pytest.MonkeyPatch
):
    server.then("a", "b")
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    await reply_of(OpenAIModel("m"), request_text)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await reply_of(OpenAIModel("m"), request_text)
    assert [s.headers["authorization"] for s in server.requests] == ["Bearer none", f"Bearer {KEY}"]
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(errors.AccessDenied, match=r"api\.openai\.com/v1 needs a key"):
        await reply_of(OpenAIModel("m"), request_text)


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
    server, request_text, monkeypatch: pytest.MonkeyPatch, configured, sent
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
    server, request_text, monkeypatch: pytest.MonkeyPatch
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
    server, request_text, monkeypatch: pytest.MonkeyPatch, status
):
    server.default = lambda _: Failure(status, {"error": {"message": "no key"}})
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(errors.AccessDenied, match=r"got no key\..* --api-key-env NAME"):
        await reply_of(OpenAIModel("m", base_url=server.base_url), request_text)
    with pytest.raises(errors.AccessDenied, match=r"this key|the key"):
        await reply_of(OpenAIModel("m", base_url=server.base_url, api_key="own"), request_text)


async def test_openai_itself_gets_no_key_of_another_server(
    server, request_text, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(errors.AccessDenied, match=r"openai\.com/v1 got no key"):
        await reply_of(OpenAIModel("m", base_url="https://api.openai.com/v1"), request_text)


async def test_a_key_that_no_header_can_hold_is_refused_unseen(server, request_text):
    model = OpenAIModel("m", base_url=server.base_url, api_key="sk-sécret")
    with pytest.raises(errors.AccessDenied) as caught:
        await reply_of(model, request_text)
    assert "cret" not in str(caught.value) + repr(model)
    assert server.requests == []


@pytest.mark.parametrize("end", ["?token=t0ken", "#t0ken"])
def test_a_base_url_with_more_than_a_path_is_refused_without_quoting_it(end):
    with pytest.raises(errors.UsageError, match="Leave out what follows") as caught:
        OpenAIModel("m", base_url=f"http://h/v1{end}")
    assert "t0ken" not in str(caught.value)


@pytest.mark.parametrize("url", ["localhost:1234/v1", "ftp://host/v1", "http://", "http://h:x/v1"])
def test_a_base_url_that_is_no_address_is_refused(url):
    with pytest.raises(errors.UsageError, match="http://HOST:PORT/v1"):
        OpenAIModel("m", base_url=url)


async def test_a_proxy_is_not_asked_for_a_server_on_this_machine(
    server, model, request_text, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server.then("direct")
    assert (await reply_of(model, request_text)).text == "direct"


async def test_waiting_for_the_server_does_not_hold_up_the_event_loop(server, model, request_text):
    gate = threading.Event()
    server.then(Answer("slow but steady", gate=gate))
    task = asyncio.create_task(reply_of(model, request_text))
    await asyncio.to_thread(server.asked.wait, 10)
    assert not task.done(), "the server answers only when it may, and until then others have a turn"
    gate.set()
    assert (await task).text == "slow but steady"


@pytest.mark.parametrize("attempt", range(8))
def test_backoff_has_full_jitter_and_a_ceiling(attempt):
    waits = [backoff(attempt, {}) for _ in range(200)]
    ceiling = min(8.0, 0.5 * 2**attempt)
    assert all(wait is not None and 0 <= wait <= ceiling for wait in waits)
    assert max(w for w in waits if w is not None) > ceiling / 2
    assert len(set(waits)) > 100


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("61", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_retry_after_is_a_number_or_a_date_of_at_most_a_minute(value, expected):
    assert backoff(0, {"retry-after": value}) == expected


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf"])
def test_an_unusable_retry_after_never_makes_an_endless_wait(value):
    wait = backoff(0, {"retry-after": value})
    assert wait is None or 0 <= wait <= 0.5


def test_the_repr_shows_where_requests_go_without_the_secret():
    model = OpenAIModel("m", base_url="http://me:pass@127.0.0.1:1/v1", api_key=KEY)
    assert repr(model) == "OpenAIModel('m', base_url='http://127.0.0.1:1/v1')"


async def test_a_chunk_nested_too_deep_is_a_server_failure(server, model, request_text):
    server.then(Answer(raw=b"data: " + b"[" * 100_000 + b"\n\n"))
    with pytest.raises(errors.ServerFailed, match="doesn't answer in the chat completions"):
        await reply_of(model, request_text)
