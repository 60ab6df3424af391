"""Asking a server for less, one field at a time, and only for what its error names."""

import asyncio
import dataclasses
import datetime
from collections.abc import Callable

import pytest
from openai_server import Answer, Failure, ScriptedServer

from ipyrefine import errors
from ipyrefine.core.ports import Notice, Reply, Request
from ipyrefine.providers import capabilities
from ipyrefine.providers.capabilities import Capabilities, fall_back, recall
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.servers import facts_about, remember_about


def level_of(body: dict) -> str:
    response_format = body.get("response_format")
    if response_format is None:
        return "prompt"
    strict = response_format.get("json_schema", {}).get("strict", False)
    return "strict" if strict else response_format["type"]


async def run(server: ScriptedServer, request: Request, model: str = "m") -> tuple[list[str], str]:
    notices, text = [], ""
    async for item in OpenAIModel(model, base_url=server.base_url).stream(request):
        if isinstance(item, Notice):
            notices.append(item.text)
        elif isinstance(item, Reply):
            text = item.text
    return notices, text


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(
    ("accepted", "levels"),
    [
        ("strict", ["strict"]),
        ("json_schema", ["strict", "json_schema"]),
        ("json_object", ["strict", "json_schema", "json_object"]),
        ("prompt", ["strict", "json_schema", "json_object", "prompt"]),
    ],
)
async def test_it_falls_back_to_what_the_server_takes_and_remembers_it(
    server, request_json, accepted, levels, status
):
    server.default = lambda _: "{}"
    server.rejecting("response_format", lambda body: level_of(body) != accepted, status)
    notices, text = await run(server, request_json)
    assert [level_of(body) for body in server.bodies] == levels
    assert text == "{}"
    assert len(notices) == len(levels) - 1
    server.requests.clear()
    assert await run(server, request_json) == ([], "{}")
    assert [level_of(body) for body in server.bodies] == [accepted]


async def test_a_schema_of_the_users_own_is_never_asked_for_in_strict_mode(server, request_json):
    server.default = lambda _: "{}"
    own = request_json.model_copy(update={"strict": False, "schema_name": "text"})
    assert await run(server, own) == ([], "{}")
    assert [level_of(body) for body in server.bodies] == ["json_schema"]


async def test_a_notice_says_what_is_used_instead(server, request_json):
    server.default = lambda _: "{}"
    server.rejecting("response_format", lambda body: level_of(body) == "strict")
    notices, _ = await run(server, request_json)
    expected = "The server doesn't take a strict JSON schema. Using a JSON schema instead."
    assert notices == [expected]


async def test_another_model_on_the_same_server_starts_at_the_strictest_level(server, request_json):
    server.default = lambda _: "{}"
    server.rejecting(
        "response_format", lambda body: body["model"] == "old" and level_of(body) != "prompt"
    )
    await run(server, request_json, "old")
    server.requests.clear()
    await run(server, request_json, "new")
    assert [level_of(body) for body in server.bodies] == ["strict"]


async def test_a_400_that_names_no_field_is_no_reason_to_fall_back(server, request_json):
    server.default = lambda _: Failure(400, {"error": {"message": "I do not like your tone"}})
    with pytest.raises(errors.RequestRejected, match="your tone"):
        await run(server, request_json)
    assert len(server.requests) == 1


async def test_a_500_that_names_the_field_is_no_reason_to_fall_back(server, request_json):
    failure = Failure(500, {"error": {"message": "response_format"}}, {"x-should-retry": "false"})
    server.default = lambda _: failure
    with pytest.raises(errors.ServerFailed):
        await run(server, request_json)
    assert len(server.requests) == 1


async def test_nothing_is_remembered_of_a_call_that_never_succeeds(server, request_json):
    server.default = lambda _: Failure(400, {"error": {"message": "response_format is evil"}})
    with pytest.raises(errors.RequestRejected):
        await run(server, request_json)
    assert [level_of(b) for b in server.bodies] == [
        "strict",
        "json_schema",
        "json_object",
        "prompt",
    ]
    assert recall(server.base_url, "m") == Capabilities()


async def test_the_other_name_of_the_token_limit_is_tried_once(server, request_text):
    server.default = lambda _: "ok"
    server.rejecting("max_tokens", lambda body: "max_tokens" in body)
    notices, _ = await run(server, request_text)
    expected = "The server doesn't take `max_tokens`. Using `max_completion_tokens` instead."
    assert notices == [expected]
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 2048]
    server.rejecting("max_completion_tokens", lambda body: "max_completion_tokens" in body)
    with pytest.raises(errors.RequestRejected, match="max_completion_tokens"):
        await run(server, request_text)
    assert len(server.requests) == 3


@pytest.mark.parametrize("field", ["stream", "stream_options", "temperature", "seed"])
async def test_a_field_the_server_does_not_know_is_left_out_from_then_on(
    server, request_json, field
):
    server.default = lambda _: "ok"
    server.rejecting(field, lambda body: field in body)
    notices, _ = await run(server, request_json)
    assert notices == [f"The server doesn't take `{field}`. Asking without it."]
    assert await run(server, request_json) == ([], "ok")
    assert [field in body for body in server.bodies] == [True, False, False]


async def test_a_server_that_takes_almost_nothing_is_still_answered_by(server, request_json):
    server.default = lambda _: "ok"
    for field in ("stream_options", "temperature", "seed", "max_tokens", "response_format"):
        server.rejecting(field, lambda body, field=field: field in body)
    notices, text = await run(server, request_json)
    assert (len(notices), text) == (7, "ok")
    assert set(server.bodies[-1]) == {"model", "messages", "stream", "max_completion_tokens"}


@pytest.mark.parametrize("status", [400, 403, 404, 415, 422])
async def test_any_error_of_the_request_that_names_a_field_is_a_step_down_for_that_field(
    server, request_text, status
):
    server.default = lambda _: Answer("fine")
    refusal = {"message": "You are not allowed to set a temperature for this model"}
    server.rules.append(
        lambda body: Failure(status, {"error": refusal}) if "temperature" in body else None
    )
    notices, text = await run(server, request_text)
    assert notices == ["The server doesn't take `temperature`. Asking without it."]
    assert text == "fine"
    assert ["temperature" in body for body in server.bodies] == [True, False]


@pytest.mark.parametrize("status", [401, 403])
async def test_a_denied_key_stays_denied(server, request_text, status):
    denied = {"error": {"message": "This key may not use the model m", "param": None}}
    server.default = lambda _: Failure(status, denied)
    with pytest.raises(errors.AccessDenied):
        await run(server, request_text)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_a_server_that_names_every_field_whatever_is_sent_is_asked_a_few_times(
    server, request_json, status
):
    names = "stream stream_options temperature seed max_tokens response_format model"
    server.default = lambda _: Failure(status, {"error": {"message": f"too large: {names}"}})
    with pytest.raises(errors.ModelError):
        await run(server, request_json.model_copy(update={"max_tokens": 10**6}))
    assert len(server.requests) < 30
    assert recall(server.base_url, "m") == Capabilities()


# --- What is remembered


@pytest.fixture
def new_kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(capabilities, "BY_SERVER", {})


async def test_a_refusal_is_remembered_by_the_next_kernel_and_announced_once(
    server, request_json, new_kernel
):
    server.default = lambda _: "{}"
    for field in ("temperature", "stream", "max_tokens"):
        server.rejecting(field, lambda body, field=field: field in body)
    server.rejecting("response_format", lambda body: level_of(body) != "json_object")
    notices, _ = await run(server, request_json)
    assert len(notices) == 5
    server.requests.clear()
    new_kernel()
    assert await run(server, request_json) == ([], "{}")
    assert len(server.requests) == 1


async def test_only_what_was_refused_is_stored(server, request_text, new_kernel):
    server.default = lambda _: "ok"
    await run(server, request_text)
    assert facts_about(server.base_url) == {}
    server.rejecting("temperature", lambda body: "temperature" in body)
    await run(server, request_text)
    remember_about(server.base_url, share="never")
    facts = facts_about(server.base_url)
    assert facts["share"] == "never"
    assert set(facts["models"]["m"]) == {"rejected_fields", "since"}
    new_kernel()
    await run(server, request_text, "other")
    assert "temperature" in server.bodies[-2]  # it may take what m does not


async def test_a_field_is_tried_again_after_a_month_without_another_notice(
    server, request_text, new_kernel
):
    server.default = lambda _: "ok"
    server.rejecting("temperature", lambda body: "temperature" in body)
    await run(server, request_text)
    models = facts_about(server.base_url)["models"]
    remember_about(server.base_url, models={"m": {**models["m"], "since": "2020-01-01"}})
    new_kernel()
    server.requests.clear()
    assert await run(server, request_text) == ([], "ok")
    assert ["temperature" in body for body in server.bodies] == [True, False]
    server.rules.clear()
    remember_about(server.base_url, models={"m": {**models["m"], "since": "2020-01-01"}})
    new_kernel()
    await run(server, request_text)
    assert "temperature" in server.bodies[-1]


@pytest.mark.parametrize(
    "fact",
    [
        *(3, [], {"since": 3}, {"since": "x"}, {"rejected_fields": 3}, {"max_tokens": -1}),
        *({"response_format_level": 9}, {"table_size": "x"}, {"token_limit_fields": []}),
        *({"token_limit_fields": ["messages"]}, {"unheard_of": 1}, {"rejected_fields": ["model"]}),
    ],
)
async def test_a_damaged_fact_says_nothing(server, request_text, fact):
    server.default = lambda _: "ok"
    if isinstance(fact, dict):
        fact = {"since": datetime.date.today().isoformat(), **fact}
    remember_about(server.base_url, models={"m": fact})
    assert await run(server, request_text) == ([], "ok")
    assert {"model", "messages", "max_tokens", "temperature"} <= set(server.bodies[0])


async def test_what_two_calls_at_once_learn_is_kept_and_announced_once(
    server, request_json, request_text, new_kernel
):
    seeded = request_text.model_copy(update={"seed": 7})
    server.default = lambda body: "{}"
    server.rejecting("temperature", lambda body: "temperature" in body)
    server.rejecting("seed", lambda body: "seed" in body)
    server.rejecting("response_format", lambda body: level_of(body) == "strict")
    model = OpenAIModel("m", base_url=server.base_url)

    async def notices_of(request: Request) -> list[str]:
        return [i.text async for i in model.stream(request) if isinstance(i, Notice)]

    requests = (request_json, seeded, request_json, seeded)
    notices = [notice for one in await asyncio.gather(*map(notices_of, requests)) for notice in one]
    assert len(notices) == len(set(notices)) == 3
    new_kernel()
    assert (await run(server, request_json))[0] == []
    assert (await run(server, seeded))[0] == []


# --- Token limits


@pytest.mark.parametrize(
    ("complaint", "asked"),
    [
        ("max_tokens is too large: 16384. This model supports at most 4096 completion tokens, "
         "whereas you provided 16384.", [16384, 4096]),
        ("max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens for "
         "claude-3-haiku-20240307", [16384, 4096]),
        ("`max_tokens` must be less than or equal to `4096`", [16384, 4096]),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 4,096]", [16384, 4096]),
        ("This model's maximum context length is 8192 tokens. However, you requested 17000 tokens "
         "(616 in the messages, 16384 in the completion).", [16384, 8192, 4096]),
        ("'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum "
         "context length is 8192 tokens and your request has 616.", [16384, 8192, 4096]),
    ],
)  # fmt: skip
async def test_a_limit_that_is_too_high_is_lowered_and_remembered(
    server, request_text, new_kernel, complaint, asked
):
    long = request_text.model_copy(update={"max_tokens": 16_384})
    server.default = lambda _: "ok"
    failure = Failure(400, {"error": {"message": complaint}})
    server.rules.append(lambda body: failure if body["max_tokens"] > 4_096 else None)
    notices, _ = await run(server, long)
    assert [body["max_tokens"] for body in server.bodies] == asked
    assert len(notices) == len(asked) - 1
    assert notices[-1] == "The server allows fewer tokens a reply. Asking for 4,096."
    new_kernel()
    server.requests.clear()
    assert await run(server, long) == ([], "ok")
    short = request_text.model_copy(update={"max_tokens": 99})
    await run(server, short)
    assert [body["max_tokens"] for body in server.bodies] == [4_096, 99]


async def test_a_number_that_is_too_long_to_be_a_limit_is_passed_over(server, request_text):
    server.default = lambda _: "ok"
    words = f"max_tokens is too large: {'9' * 5_000} or {',999' * 2_000}"
    failure = Failure(400, {"error": {"message": words}})
    server.rules.append(lambda body: failure if body["max_tokens"] > 8_192 else None)
    _, text = await run(server, request_text.model_copy(update={"max_tokens": 16_384}))
    assert text == "ok"


@pytest.mark.parametrize("status", [413, 429])
async def test_fewer_tokens_are_asked_for_where_a_minute_allows_fewer(server, request_text, status):
    server.default = lambda _: "ok"
    error = {
        "message": "Request too large for model `m` on tokens per minute (TPM): Limit 12000, "
        "Requested 17100, please reduce your message size and try again.",
        "code": "rate_limit_exceeded",
    }
    failure = Failure(status, {"error": error})
    server.rules.append(lambda body: failure if body["max_tokens"] > 11_300 else None)
    _, text = await run(server, request_text.model_copy(update={"max_tokens": 16_384}))
    assert text == "ok"
    assert [body["max_tokens"] for body in server.bodies] == [16_384, 12_000, 6_000]


async def test_a_prompt_that_is_too_long_by_itself_is_an_error_in_a_few_requests(
    server, request_text
):
    words = "This model's maximum context length is 8192 tokens, and your messages hold 9000."
    server.default = lambda _: Failure(400, {"error": {"message": words}})
    with pytest.raises(errors.RequestRejected, match="Shorten the cell"):
        await run(server, request_text.model_copy(update={"max_tokens": 16_384}))
    assert len(server.requests) < 5


async def test_a_reply_cut_off_at_the_servers_own_limit_says_so(server, request_text):
    server.default = lambda _: Answer("half a sent", finish="length")
    server.rejecting("max_tokens: at most 1024", lambda body: body["max_tokens"] > 1_024)
    model = OpenAIModel("m", base_url=server.base_url)
    *_, reply = [item async for item in model.stream(request_text)]
    assert (reply.finish, reply.capped) == ("length", True)
    short = request_text.model_copy(update={"max_tokens": 99})
    *_, reply = [item async for item in model.stream(short)]
    assert (reply.finish, reply.capped) == ("length", False)


# --- Without streaming


@pytest.fixture(params=["refused", "ignored"])
def unstreamed(request, server) -> None:
    """A server that refuses to stream, or that answers JSON whatever is asked for."""
    if request.param == "refused":
        server.rejecting("stream", lambda body: "stream" in body)


async def test_a_reply_that_is_not_streamed_is_whole(server, request_text, unstreamed):
    counts = {"prompt_tokens": 9, "completion_tokens": 500, "total_tokens": 509}
    details = {"completion_tokens_details": {"reasoning_tokens": 480}, "cost": 0.0125}
    answer = Answer("Hello", reasoning="a friend", usage={**counts, **details}, whole=True)
    server.then(answer)
    model = OpenAIModel("m", base_url=server.base_url)
    items = [i async for i in model.stream(request_text) if not isinstance(i, Notice)]
    assert [(i.kind, i.text) for i in items[:-1]] == [("thinking", "a friend"), ("text", "Hello")]
    reply = items[-1]
    assert (reply.text, reply.thinking, reply.finish) == ("Hello", "a friend", "stop")
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost) == (9, 500, 0.0125)


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        (Answer("half a sent", finish="length"), "length"),
        (Answer("", finish="content_filter"), "filtered"),
        (Answer("", refusal="I can't."), "refused"),
        (Answer("half a sent", finish=None), "incomplete"),
    ],
)
async def test_each_way_to_finish_is_kept_without_streaming(server, request_text, answer, finish):
    server.then(dataclasses.replace(answer, whole=True))
    model = OpenAIModel("m", base_url=server.base_url)
    *_, reply = [item async for item in model.stream(request_text)]
    assert reply.finish == finish


async def test_an_error_in_a_whole_reply_is_that_error(server, request_text):
    body = b'{"error": {"code": 429, "message": "slow down"}}'
    server.then(Answer(raw=body, content_type="application/json"))
    with pytest.raises(errors.RateLimited, match="slow down"):
        await run(server, request_text)


async def test_a_whole_reply_without_end_is_given_up(server, request_text):
    server.then(Answer(raw=b'{"choices": ["', beat=b"x" * 2**20, beat_seconds=0,
                       content_type="application/json"))  # fmt: skip
    with pytest.raises(errors.ServerFailed, match="more than 16 MB"):
        await run(server, request_text)


async def test_cancelling_the_wait_for_a_whole_reply_closes_the_connection(server, request_text):
    server.rejecting("stream", lambda body: "stream" in body)
    server.then(Answer(hold=True))
    task = asyncio.create_task(run(server, request_text))
    assert await asyncio.to_thread(server.held.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(server.left.wait, 5)


# --- Fields of the user's own


async def notices_with(server: ScriptedServer, request: Request, **extra: object) -> list[str]:
    model = OpenAIModel("m", base_url=server.base_url, extra=extra)
    return [item.text async for item in model.stream(request) if isinstance(item, Notice)]


async def test_extra_fields_are_sent_along_and_replace_ours(server, request_json):
    server.default = lambda _: "{}"
    extra = {"top_k": 20, "temperature": 1, "max_completion_tokens": 9, "options": {"a": [1]}}
    assert await notices_with(server, request_json, **extra) == []
    assert extra.items() <= server.bodies[0].items()
    assert "max_tokens" not in server.bodies[0]


async def test_an_extra_field_that_is_refused_is_left_out_for_that_run_only(server, request_text):
    server.default = lambda _: "ok"
    server.rejecting("reasoning_effort", lambda body: "reasoning_effort" in body, 403)
    notice = ["The server doesn't take `reasoning_effort`. Asking without it."]
    assert await notices_with(server, request_text, reasoning_effort="low") == notice
    assert await notices_with(server, request_text, reasoning_effort="medium") == notice
    sent = [body.get("reasoning_effort") for body in server.bodies]
    assert sent == ["low", None, "medium", None]
    assert facts_about(server.base_url) == {}


async def test_an_extra_limit_that_is_too_high_is_left_out_too(server, request_text):
    server.default = lambda _: "ok"
    server.rejecting("max_tokens: at most 4096", lambda body: body["max_tokens"] > 4_096)
    assert len(await notices_with(server, request_text, max_tokens=10**6)) == 1
    assert [body["max_tokens"] for body in server.bodies] == [10**6, 2_048]


@pytest.mark.parametrize("name", ["model", "messages", "stream"])
def test_extra_cannot_set_what_every_request_sets(name):
    with pytest.raises(errors.UsageError, match=f"can't set `{name}`"):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1", extra={name: "x"})


@pytest.mark.parametrize("extra", [["top_k"], "top_k", {"a": {1}}, {"a": float("nan")}], ids=str)
def test_extra_that_json_cannot_hold_is_refused(extra):
    with pytest.raises(errors.UsageError, match="extra"):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1", extra=extra)


async def test_an_error_never_repeats_a_secret_in_extra(server, request_text):
    secret = "tok-12345"
    message = f"quota of {secret} used up: {secret.upper()}"
    server.default = lambda _: Failure(402, {"error": {"message": message}})
    with pytest.raises(errors.RateLimited) as caught:
        await notices_with(server, request_text, metadata={"keys": [secret]})
    assert secret not in str(caught.value).lower()
    assert server.bodies[0]["metadata"] == {"keys": [secret]}


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_timeout_that_is_not_a_positive_number_is_refused(timeout):
    with pytest.raises(errors.UsageError, match="timeout"):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1", timeout=timeout)


def test_openai_is_asked_by_the_new_name_of_the_limit_first(request_text):
    assert "max_completion_tokens" in recall("https://api.openai.com/v1", "o").optional_fields(
        request_text
    )
    assert "max_tokens" in recall("https://openai.com.example/v1", "o").optional_fields(
        request_text
    )


@pytest.mark.parametrize(
    ("complaint", "field"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        ("'response_format.type' must be 'json_schema' or 'text'", "response_format"),
        ("This model does not support response format `json_schema`.", "response_format"),
        ("Unknown name \"$ref\" at 'generation_config'", "response_format"),
        ("json_validate_failed Failed to generate JSON.", "response_format"),
        ("Unsupported value: 'temperature' does not support 0.0 with this model.", "temperature"),
        ('[{"loc": ["body", "seed"], "input": {"temperature": 0, "max_tokens": 1}}]', "seed"),
        ("include_usage is not permitted", "stream_options"),
    ],
)
def test_the_field_is_found_in_the_words_of_many_servers(request_json, complaint, field):
    before = Capabilities()
    sent = before.optional_fields(request_json)
    fallback = fall_back(before, sent, complaint)
    assert fallback is not None
    after = fallback.capabilities.optional_fields(request_json)
    assert {name for name in sent if after.get(name) != sent[name]} == {field}


@pytest.mark.parametrize(
    "complaint",
    ["maximum context length is 8192 tokens", "my_seed and max_tokens_total are unknown"],
)
def test_an_error_that_names_no_sent_field_changes_nothing(request_json, complaint):
    sent = Capabilities().optional_fields(request_json)
    assert fall_back(Capabilities(), sent, complaint) is None


def test_a_field_that_was_not_sent_is_no_reason_to_fall_back(request_text):
    sent = Capabilities().optional_fields(request_text)
    assert fall_back(Capabilities(), sent, "response_format and seed are not supported") is None
