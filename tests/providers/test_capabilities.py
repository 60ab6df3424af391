"""Asking a server for less, one field at a time, and only for what its error names."""

import pytest
from openai_server import Failure, ScriptedServer, answer_line

from ipyrefine import errors
from ipyrefine.core.ports import Notice, Reply, Request
from ipyrefine.providers.capabilities import Capabilities, fall_back, recall
from ipyrefine.providers.openai import OpenAIModel


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


@pytest.mark.parametrize("field", ["stream_options", "temperature", "seed"])
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


@pytest.mark.parametrize("named", ["logprobs", "top_logprobs"])
@pytest.mark.parametrize(("most", "asked"), [(20, [20]), (5, [20, 5]), (0, [20, 5, None])], ids=str)
async def test_fewer_log_probabilities_are_asked_for_where_the_server_gives_fewer(
    server, request_answers, named, most, asked
):
    server.default = lambda _: answer_line(0.75, 0.25, 0.5)
    server.rejecting(named, lambda body: body.get("top_logprobs", 0) > most)
    notices, text = await run(server, request_answers)
    assert text == "yes no yes"
    assert [body.get("top_logprobs") for body in server.bodies] == asked
    assert len(notices) == len(asked) - 1
    server.requests.clear()
    assert await run(server, request_answers) == ([], "yes no yes")
    assert [body.get("top_logprobs") for body in server.bodies] == asked[-1:]
    assert ["logprobs" in body for body in server.bodies] == [asked[-1] is not None]


@pytest.mark.parametrize(
    "complaint",
    [
        "Invalid value for 'top_logprobs': must be less than or equal to 5.",
        "Requested sample logprobs of 20, which is greater than max allowed: 5",
        "You are not allowed to request logprobs from this model.",
        "'logprobs' is not supported with this model",
        "Logprobs is not enabled for models/gemini",
        '[{"type": "extra_forbidden", "loc": ["body", "logprobs"]}]',
    ],
)
def test_log_probabilities_are_found_in_the_words_of_many_servers(request_answers, complaint):
    before = Capabilities()
    fallback = fall_back(before, before.optional_fields(request_answers), complaint)
    assert fallback is not None
    assert fallback.capabilities.optional_fields(request_answers)["top_logprobs"] == 5


async def test_a_grammar_the_server_rejects_is_left_out_from_then_on(server, request_answers):
    server.default = lambda _: "yes no yes"
    server.rejecting("grammar", lambda body: "grammar" in body)
    model = OpenAIModel("m", base_url=server.base_url, grammar=True)
    for _ in range(2):
        assert [item async for item in model.stream(request_answers)][-1].text == "yes no yes"
    assert ["grammar" in body for body in server.bodies] == [True, False, False]
