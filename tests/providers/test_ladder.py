"""Asking a server for less, one step at a time, and only for what it named."""

import pytest
from openai_server import Failure, ScriptedServer

from ipyrefine import errors
from ipyrefine.core.ports import Notice, Reply, Request
from ipyrefine.providers.capabilities import Dialect, recall, step_down
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.retries import pause


def rung_of(body: dict) -> str:
    wanted = body.get("response_format")
    if wanted is None:
        return "prompt"
    strict = wanted.get("json_schema", {}).get("strict", False)
    return "strict" if strict else wanted["type"]


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
    ("accepted", "asked"),
    [
        ("strict", ["strict"]),
        ("json_schema", ["strict", "json_schema"]),
        ("json_object", ["strict", "json_schema", "json_object"]),
        ("prompt", ["strict", "json_schema", "json_object", "prompt"]),
    ],
)
async def test_steps_down_to_what_the_server_takes_and_remembers_it(
    server, request_json, accepted, asked, status
):
    server.default = lambda _: "{}"
    server.rejecting("response_format", lambda body: rung_of(body) != accepted, status)
    notices, text = await run(server, request_json)
    assert [rung_of(body) for body in server.bodies] == asked
    assert text == "{}"
    assert len(notices) == len(asked) - 1
    server.requests.clear()
    assert await run(server, request_json) == ([], "{}")
    assert [rung_of(body) for body in server.bodies] == [accepted]


async def test_a_notice_says_what_is_used_instead(server, request_json):
    server.default = lambda _: "{}"
    server.rejecting("response_format", lambda body: rung_of(body) == "strict")
    notices, _ = await run(server, request_json)
    told = "The server does not take a strict JSON schema; using a JSON schema instead."
    assert notices == [told]


async def test_another_model_on_the_same_server_starts_at_the_top(server, request_json):
    server.default = lambda _: "{}"
    server.rejecting(
        "response_format", lambda body: body["model"] == "old" and rung_of(body) != "prompt"
    )
    await run(server, request_json, "old")
    server.requests.clear()
    await run(server, request_json, "new")
    assert [rung_of(body) for body in server.bodies] == ["strict"]


async def test_a_400_that_names_no_field_is_not_a_step(server, request_json):
    server.default = lambda _: Failure(400, {"error": {"message": "I do not like your tone"}})
    with pytest.raises(errors.RequestRejected, match="your tone"):
        await run(server, request_json)
    assert len(server.requests) == 1


async def test_a_500_that_names_the_field_is_not_a_step(server, request_json):
    failure = Failure(500, {"error": {"message": "response_format"}}, {"x-should-retry": "false"})
    server.default = lambda _: failure
    with pytest.raises(errors.ServerFailed):
        await run(server, request_json)
    assert len(server.requests) == 1


async def test_nothing_is_remembered_of_a_call_that_never_succeeds(server, request_json):
    server.default = lambda _: Failure(400, {"error": {"message": "response_format is evil"}})
    with pytest.raises(errors.RequestRejected):
        await run(server, request_json)
    assert [rung_of(b) for b in server.bodies] == ["strict", "json_schema", "json_object", "prompt"]
    assert recall(server.base_url, "m") == Dialect()


async def test_the_other_name_of_the_token_limit_is_tried_once(server, request_text):
    server.default = lambda _: "ok"
    server.rejecting("max_tokens", lambda body: "max_tokens" in body)
    notices, _ = await run(server, request_text)
    told = "The server does not take `max_tokens`; using `max_completion_tokens` instead."
    assert notices == [told]
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 2048]
    server.rejecting("max_completion_tokens", lambda body: "max_completion_tokens" in body)
    with pytest.raises(errors.RequestRejected, match="max_completion_tokens"):
        await run(server, request_text)
    assert len(server.requests) == 3


@pytest.mark.parametrize("field", ["stream_options", "temperature", "seed"])
async def test_a_field_the_server_does_not_know_is_left_out_from_then_on(
    server, request_json, field
):
    server.default = lambda _: "ok"
    server.rejecting(field, lambda body: field in body)
    notices, _ = await run(server, request_json)
    assert notices == [f"The server does not take `{field}`; asking without it."]
    assert await run(server, request_json) == ([], "ok")
    assert [field in body for body in server.bodies] == [True, False, False]


async def test_a_server_that_takes_almost_nothing_is_still_answered_by(server, request_json):
    server.default = lambda _: "ok"
    for field in ("stream_options", "temperature", "seed", "max_tokens", "response_format"):
        server.rejecting(field, lambda body, field=field: field in body)
    notices, text = await run(server, request_json)
    assert (len(notices), text) == (7, "ok")
    assert set(server.bodies[-1]) == {"model", "messages", "stream", "max_completion_tokens"}


def test_openai_is_asked_by_the_new_name_of_the_limit_first(request_text):
    assert "max_completion_tokens" in recall("https://api.openai.com/v1", "o").arguments(
        request_text
    )
    assert "max_tokens" in recall("https://openai.com.example/v1", "o").arguments(request_text)


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
        ("maximum context length is 8192 tokens", None),
        ("my_seed and max_tokens_total are unknown", None),
    ],
)
def test_the_field_is_found_in_the_words_of_many_servers(request_json, complaint, field):
    before = Dialect()
    sent = before.arguments(request_json)
    step = step_down(before, sent, complaint)
    if field is None:
        assert step is None
    else:
        assert step is not None
        after = step.dialect.arguments(request_json)
        assert {name for name in sent if after.get(name) != sent[name]} == {field}


def test_a_field_that_was_not_sent_is_no_reason_to_step(request_text):
    sent = Dialect().arguments(request_text)
    assert step_down(Dialect(), sent, "response_format and seed are not supported") is None


@pytest.mark.parametrize("attempt", range(8))
def test_backoff_has_full_jitter_and_a_ceiling(attempt):
    waits = [pause(attempt, {}) for _ in range(200)]
    ceiling = min(8.0, 0.5 * 2**attempt)
    assert all(wait is not None and 0 <= wait <= ceiling for wait in waits)
    assert max(w for w in waits if w is not None) > ceiling / 2
    assert len(set(waits)) > 100


@pytest.mark.parametrize(
    ("value", "expected"),
    [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("61", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)
def test_retry_after_is_a_number_or_a_date_of_at_most_a_minute(value, expected):
    assert pause(0, {"retry-after": value}) == expected


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf"])
def test_an_unusable_retry_after_never_makes_for_an_endless_wait(value):
    wait = pause(0, {"retry-after": value})
    assert wait is None or 0 <= wait <= 0.5
