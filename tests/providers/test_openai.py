"""OpenAIModel against a real socket: what it streams, how long it waits, and where its key goes."""

import asyncio
import dataclasses

import pytest
from openai_server import Answer, Failure, ScriptedServer, items_of, reply_of

from ipyrefine import errors
from ipyrefine.core.ports import Delta, Notice
from ipyrefine.providers.openai import OpenAIModel, backoff

KEY = "sk-very-secret"
_COUNTS = {"prompt_tokens": 9, "completion_tokens": 500, "total_tokens": 509}


@pytest.fixture
def model(server: ScriptedServer, waits: list[float]) -> OpenAIModel:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return OpenAIModel("m", base_url=server.base_url, api_key=KEY, timeout=5, sleep=sleep)


# --- A reply


async def test_sends_the_request_as_it_was_asked_and_streams_the_text(server, model, request_json):
    server.then(Answer("Hello, wörld: 你好!", chunk=4), "{}")
    *deltas, reply = await items_of(model, request_json)
    assert len(deltas) > 3
    assert "".join(delta.text for delta in deltas) == reply.text == "Hello, wörld: 你好!"
    await reply_of(model, request_json.replace(temperature=None))
    usage = reply.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 5, 3)
    assert (usage.cached_tokens, usage.cost) == (0, None)
    seen = server.requests[0]
    assert (seen.path, seen.headers["authorization"]) == ("/v1/chat/completions", f"Bearer {KEY}")
    schema = {"name": "reply", "schema": request_json.json_schema}
    assert seen.body == {
        "model": "m",
        "stream": True,
        "messages": [{"role": "user", "content": "Say hello to the world."}],
        "max_tokens": 2048,
        "temperature": 0.0,
        "seed": 7,
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    assert "temperature" not in server.bodies[1], "the server uses its own"
    assert server.bodies[1]["response_format"]["json_schema"] == schema


async def test_the_first_text_arrives_before_the_server_has_finished(server, model, request_text):
    server.then(Answer("some words", stall_after=2))
    stream = model.stream(request_text)
    assert await asyncio.wait_for(anext(stream), 2) == Delta(text="some wor")
    await stream.aclose()
    assert await asyncio.to_thread(server.left.wait, 2), "closing it closes the connection"


async def test_each_way_to_finish_is_its_own_state(server, model, request_text, subtests):
    said = "half a sent"
    for answer, finish in (
        (Answer(said, finish="tool_calls"), "stop"),
        (Answer(said, finish="length"), "length"),
        (Answer(said, finish="content_filter"), "filtered"),
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
    first, *rest = await items_of(model, request_text)
    assert first == Delta(kind="thinking", text="Reading the prompt: 512 of 1,913 tokens\n")
    assert not any(isinstance(one, Delta) and one.kind == "thinking" for one in rest)
    assert rest[-1].thinking == ""


async def test_tokens_that_the_server_does_not_count_are_estimated(
    server, model, request_text, subtests
):
    estimate = (6, 10, None, None)  # 23 and 41 characters
    for usage, counted in (
        (None, estimate),
        ({**_COUNTS, "prompt_tokens_details": {"cached_tokens": 8}}, (9, 500, 8, None)),
        ({**_COUNTS, "cost": 0.0125}, (9, 500, None, 0.0125)),
        ({"prompt_tokens": 10**4_000, "completion_tokens": "7", "cost": 1e308}, estimate),
    ):
        with subtests.test(counted=counted):
            server.then(Answer("x" * 41, usage=usage))
            used = (await reply_of(model, request_text)).usage
            counts = (used.prompt_tokens, used.completion_tokens, used.cached_tokens, used.cost)
            assert counts == counted


async def test_a_server_that_does_not_stream_is_read_all_the_same(server, model, request_text):
    server.then(Answer("Hello", reasoning="a friend", usage=_COUNTS, whole=True))
    *deltas, reply = await items_of(model, request_text)
    assert [(i.kind, i.text) for i in deltas] == [("thinking", "a friend"), ("text", "Hello")]
    assert (reply.text, reply.thinking, reply.finish) == ("Hello", "a friend", "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (9, 500)


# --- Waits


async def test_a_server_here_that_is_not_ready_is_waited_for_with_one_notice_for_five_minutes(
    server, model, request_text, waits
):
    loading = Failure(503, {"error": {"message": "Loading model"}})
    server.then(*[loading] * 6, "at last")
    items = await items_of(model, request_text)
    notices = [item.text for item in items if isinstance(item, Notice)]
    assert notices == ["The server isn't ready yet. Waiting up to 5 minutes.", *[""] * 5]
    assert (items[-1].text, len(waits)) == ("at last", 6)
    waits.clear()
    server.default = lambda _: loading
    with pytest.raises(errors.ServerFailed, match=r"\(Loading model\)\. Run the cell again"):
        await reply_of(model, request_text)
    assert 250 < sum(waits) <= 302


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
        ("http://127.0.0.1:{port}/another/path/", True),
        ("", False),
        ("https://127.0.0.1:{port}/v1", False),
        ("http://localhost:{port}/v1", False),
        ("http://127.0.0.1:1/v1", False),
        ("http://127.0.0.1:x/v1", False),
    ],
)
async def test_the_environments_key_goes_to_the_server_that_the_environment_names_only(
    server, request_text, monkeypatch, configured, sent
):
    server.then("a")
    port = server.base_url.split(":")[2].removesuffix("/v1")
    monkeypatch.setenv("OPENAI_BASE_URL", configured.format(port=port))
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID"):
        monkeypatch.setenv(name, KEY)
    await reply_of(OpenAIModel("m", base_url=server.base_url), request_text)
    headers = server.requests[0].headers
    assert headers.get("authorization") == (f"Bearer {KEY}" if sent else None)
    assert (KEY in str(headers)) == sent


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
    advice = r"openai\.com/v1 got no key\. .*--set api_key_env"
    with pytest.raises(errors.AccessDenied, match=advice):
        await reply_of(OpenAIModel("m", base_url="https://api.openai.com/v1"), request_text)


async def test_letters_of_an_error_that_a_short_key_has_too_are_kept(server, request_text):
    words = "You exceeded what sk-1 has: none of an EMPTY x-box"
    server.default = lambda _: Failure(402, {"error": words})
    for key in ("x", "EMPTY", "sk-1"):
        with pytest.raises(errors.RateLimited, match=words):
            await reply_of(OpenAIModel("m", base_url=server.base_url, api_key=key), request_text)


# --- Address


def test_a_base_url_that_is_no_address_or_more_is_refused_without_quoting_it():
    for advice, urls in {
        "Leave out what follows": ("http://h/v1?token=t0ken", "http://h/v1#t0ken"),
        "http://HOST:PORT/v1": ("localhost:1/v1", "ftp://h/v1", "http://h:x/v1", "http://h:99999"),
    }.items():
        for url in urls:
            with pytest.raises(errors.UsageError, match=advice) as caught:
                OpenAIModel("m", base_url=url)
            assert "t0ken" not in str(caught.value)


async def test_a_login_in_the_address_is_sent_and_shown_nowhere(server, request_text, caplog):
    caplog.set_level("DEBUG")
    address = server.base_url.replace("//", "//me:pass%40word@") + "/chat/completions"
    model = OpenAIModel("m", base_url=address, api_key=KEY)
    assert repr(model) == f"OpenAIModel('m', base_url={server.base_url!r})"
    server.then(Failure(402, {"error": "pass@word has no credit"}))
    with pytest.raises(errors.RateLimited, match=r"\(… has no credit\)"):
        await reply_of(model, request_text)
    assert server.requests[0].headers["authorization"] == "Basic bWU6cGFzc0B3b3Jk"
    assert "pass" not in caplog.text.replace("bypass", "")


async def test_a_proxy_is_not_asked_for_a_server_on_this_machine(
    server, model, request_text, monkeypatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    server.then("direct")
    assert (await reply_of(model, request_text)).text == "direct"
