"""What a server takes, charges and may be sent: asked for less by the field, and remembered."""

import asyncio
import pickle
from collections.abc import Callable

import pytest
from kit import evaluated, finish, refinement
from openai_server import Answer, Failure, ScriptedServer, items_of

from ipyrefine import api, errors
from ipyrefine.core.model import Budget, Limits, Price, StopReason, Usage
from ipyrefine.core.ports import Message, Notice, Reply, Request
from ipyrefine.folders import home
from ipyrefine.providers import servers
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.providers.servers import (
    Capabilities,
    Facts,
    Key,
    facts_about,
    find_refused,
    listed_cost,
    listed_price,
    read_price,
    recall,
    remember_about,
)

OPENAI = "https://api.openai.com/v1"
HERE = "http://127.0.0.1:8123/v1"
OWN = Price(prompt=1, completion=10)
COUNTS = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}


def level_of(body: dict) -> str:
    response_format = body.get("response_format")
    if response_format is None:
        return "prompt"
    strict = response_format.get("json_schema", {}).get("strict", False)
    return "strict" if strict else response_format["type"]


async def run(
    server: ScriptedServer, request: Request, model: str = "m", **options: object
) -> tuple[list[str], Reply]:
    """Return the notices and the reply."""
    items = await items_of(OpenAIModel(model, base_url=server.base_url, **options), request)
    reply = items[-1]
    assert isinstance(reply, Reply)
    return [item.text for item in items if isinstance(item, Notice)], reply


@pytest.fixture
def new_kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(servers, "BY_SERVER", {})


@pytest.fixture
def refusing(server: ScriptedServer, new_kernel: Callable[[], None]) -> Callable[..., None]:
    """Make the server one that nobody has met, and that refuses the requests that are named."""

    def renew(status: int, message: str, when: Callable[[dict], bool], **error: str) -> None:
        new_kernel()
        remember_about(server.base_url, models={})
        server.requests.clear()
        failure = Failure(status, {"error": {"message": message, **error}})
        server.rules[:] = [lambda body: failure if when(body) else None]

    return renew


# --- Fields


@pytest.mark.parametrize("place", range(4))
async def test_json_is_asked_for_as_strictly_as_the_server_takes(server, request_json, place):
    levels = ["strict", "json_schema", "json_object", "prompt"]
    server.default = lambda _: "{}"
    server.rejecting("response_format", lambda body: level_of(body) != levels[place], 422)
    notices, reply = await run(server, request_json)
    assert [level_of(body) for body in server.bodies] == levels[: place + 1]
    assert (reply.text, len(notices)) == ("{}", place)
    first = "The server doesn't take a strict JSON schema. Using a JSON schema instead."
    assert notices[:1] == [first] * bool(place)
    server.requests.clear()
    assert (await run(server, request_json))[0] == []
    assert [level_of(body) for body in server.bodies] == levels[place : place + 1]


async def test_a_schema_of_the_users_own_is_never_asked_for_in_strict_mode(server, request_json):
    server.default = lambda _: "{}"
    own = request_json.model_copy(update={"strict": False, "schema_name": "text"})
    assert (await run(server, own))[0] == []
    assert [level_of(body) for body in server.bodies] == ["json_schema"]


async def test_a_field_the_server_refuses_is_left_out_from_then_on(
    server, request_json, refusing, subtests
):
    server.default = lambda _: "ok"
    fields = ("stream", "stream_options", "temperature", "seed")
    rows = [(name, 400) for name in fields] + [("temperature", n) for n in (403, 404, 415, 422)]
    for field, status in rows:
        with subtests.test(field, status=status):
            refusing(status, "Unsupported.", lambda body, name=field: name in body, param=field)
            notices, _ = await run(server, request_json)
            assert notices == [f"The server doesn't take `{field}`. Asking without it."]
            notices, reply = await run(server, request_json)
            assert (notices, reply.text) == ([], "ok")
            assert [field in body for body in server.bodies] == [True, False, False]


@pytest.mark.parametrize(
    "failure",
    [
        Failure(400, {"error": {"message": "I do not like your tone"}}),
        Failure(401, {"error": {"message": "This key may not set a temperature"}}),
        Failure(403, {"error": {"message": "This key may not use the model m", "param": None}}),
        Failure(500, {"error": {"message": "seed"}}, {"x-should-retry": "false"}),
    ],
    ids=["no field", "no key", "no right", "broken"],
)
async def test_an_error_about_something_else_is_that_error(server, request_json, failure):
    request = request_json.model_copy(update={"temperature": 0})
    server.rules.append(lambda body: failure if "seed" in body else None)
    with pytest.raises(errors.ModelError):
        await run(server, request)
    assert recall(server.base_url, "m") == Capabilities()


NAMES = "too large: stream stream_options temperature seed max_tokens response_format model"
LONG = "This model's maximum context length is 8192 tokens, and your messages hold 9000."


@pytest.mark.parametrize(
    ("status", "words", "said"),
    [
        (400, NAMES, "HTTP 400"),
        (404, NAMES, "doesn't know"),
        (400, LONG, "Shorten the cell"),
        (400, "max_tokens: at most {less}", "HTTP 400"),
    ],
    ids=["every field", "a model", "the prompt", "each limit"],
)
async def test_a_server_that_refuses_whatever_is_sent_is_asked_a_few_times(
    server, request_json, status, words, said
):
    def refuse(body):
        message = words.format(less=body.get("max_tokens", 0) - 1)
        return Failure(status, {"error": {"message": message}})

    server.default = refuse
    with pytest.raises(errors.ModelError, match=said):
        await run(server, request_json.model_copy(update={"max_tokens": 10**6}))
    assert len(server.requests) < 30
    assert recall(server.base_url, "m") == Capabilities(), "only what it took is remembered"


def test_the_field_is_found_in_the_words_of_many_servers(request_json, subtests):
    sent = [*Capabilities().fields(request_json), "reasoning_effort"]
    body = '[{"loc": ["body", "seed"], "input": {"temperature": 0, "max_tokens": 1}}]'
    for complaint, field in (
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "max_tokens"),
        ("'response_format.type' must be 'json_schema' or 'text'", "response_format"),
        ("This model does not support response format `json_schema`.", "response_format"),
        ("Unknown name \"$ref\" at 'generation_config'", "response_format"),
        ("json_validate_failed Failed to generate JSON.", "response_format"),
        ("Unsupported value: 'temperature' does not support 0.0", "temperature"),
        (body, "seed"),
        ("include_usage is not permitted", "stream_options"),
        ("reasoning effort is not supported", "reasoning_effort"),
        ("maximum context length is 8192 tokens", "max_tokens"),
        ("my_seed and max_tokens_total are unknown", None),
        ("logprobs are not supported", None),
    ):
        with subtests.test(complaint):
            assert find_refused(sent, complaint) == field


# --- The limit of tokens


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


# Others are in `server_shapes.toml`.
CAPS = [
    "`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less",
    "Invalid max_tokens value, the valid range of max_tokens is [1, 4,096]",
    "Range of max_tokens should be [1, 4096]",
    "max_tokens (16384) exceeds model's maximum output tokens (4096) for model m",
    "The maximum tokens you requested (max_tokens) exceeds the model limit of 4096",
    "max_tokens must be lower than or equal to 4096",
    "max_tokens must be between 1 and 4096",
    "max_tokens (16384) is above the maximum of 4096",
    "The maximum number of output tokens (max_tokens) for this model is 4096",
    "max_tokens \u53c2\u6570\u975e\u6cd5 [1,4096]",
    "max_tokens: the supported range is from 1 (inclusive) to 4097 (exclusive)",
    '{"detail": [{"loc": ["max_tokens"], "msg": "Input should be less than or equal to 4096"}]}',
]
ROOMS = [
    ("This requires more credits, or fewer max_tokens, but can only afford 3919.", 3_919),
    (
        "This endpoint's maximum context length is 8192 tokens. However, you requested about 17000 "
        "tokens (616 of text input, 16384 in the output).",
        7_576,
    ),
    ("maximum context length is 8,192 tokens, however you requested 17,000 tokens", 7_576),
    (
        "`inputs` tokens + `max_tokens` must be <= 4097. Given: 20 `inputs` tokens and 16384 "
        "`max_tokens`",
        4_077,
    ),
    ("input length and `max_tokens` exceed context limit: 196000 + 16384 > 200000", 4_000),
    (
        "Request too large for model `m` on tokens per minute (TPM): Limit 8000, Requested 16984, "
        "please reduce your message size. Upgrade at https://x/settings/billing",
        7_400,
    ),
]


async def test_as_many_tokens_are_asked_for_as_the_server_says_it_takes(
    server, request_text, new_kernel, refusing, subtests
):
    long = request_text.model_copy(update={"max_tokens": 16_384})
    server.default = lambda _: "ok"
    for status, complaint, limit in (
        *((400, words, 4_096) for words in CAPS),
        *((402 if "afford" in words else 400, words, limit) for words, limit in ROOMS),
        *((status, *ROOMS[-1]) for status in (413, 429)),
    ):
        with subtests.test(complaint, status=status):
            refusing(status, complaint, lambda body, most=limit: body["max_tokens"] > most)
            (notice,), reply = await run(server, long)
            asked = [body["max_tokens"] for body in server.bodies]
            assert (asked, reply.text) == ([16_384, limit], "ok")
            assert f"{limit:,}" in notice
            assert (await run(server, long))[0] == []
            await run(server, request_text.model_copy(update={"max_tokens": 99}))
            assert [body["max_tokens"] for body in server.bodies[2:]] == [limit, 99]
            new_kernel()  # what a prompt, a minute or a credit leaves room for is another one then
            await run(server, long)
            first = limit if complaint in CAPS else 16_384
            assert server.bodies[4]["max_tokens"] == first


async def test_a_small_room_is_that_of_one_prompt(server, request_text):
    long = request_text.model_copy(update={"max_tokens": 16_384})
    complaint = "maximum context length is 8192 tokens and your request has 7792 input tokens"
    server.then(Failure(400, {"error": {"message": complaint}}), "ok", "ok")
    await run(server, long)
    await run(server, long)
    assert [body["max_tokens"] for body in server.bodies] == [16_384, 400, 16_384]


async def test_a_limit_that_is_too_high_is_halved_where_the_server_names_none(
    server, request_text, refusing, subtests
):
    long = request_text.model_copy(update={"max_tokens": 16_384})
    server.default = lambda _: "ok"
    minute = "Request too large for model `m` on tokens per minute (TPM): Limit 5000"
    for status, complaint in (
        (400, "max_tokens is too large for this model"),
        (400, "This model's maximum context length is exceeded"),
        (413, minute),
        (429, minute),
        (400, f"max_tokens is too large: {'9' * 5_000} or {',999' * 2_000}"),
    ):
        with subtests.test(complaint[:70], status=status):
            high = lambda body: body["max_tokens"] > 5_000  # noqa: E731
            refusing(status, complaint, high, code="rate_limit_exceeded")
            notices, _ = await run(server, long)
            assert [body["max_tokens"] for body in server.bodies] == [16_384, 8_192, 4_096]
            assert notices[-1] == "The server allows fewer tokens a reply. Asking for 4,096."
            assert (await run(server, long))[0] == []


# --- System messages


async def test_where_the_system_s_role_is_refused_its_words_go_first_in_the_user_s_message(
    server, request_text, new_kernel, refusing, subtests
):
    turns = (Message(role="system", content="Be brief."), *request_text.messages)
    request = request_text.replace(messages=turns)
    merged = [{"role": "user", "content": "Be brief.\n\nSay hello to the world."}]
    server.default = lambda _: "ok"
    for status, words in (
        *((status, "System role not supported") for status in (400, 422, 500)),
        (400, "system role is not supported for this model"),
        (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (422, "This model does not support system messages."),
        (400, "Only user and assistant roles are supported!"),
        (400, "role 'system' is not supported"),
        (500, "chat template rejected the request: Unexpected message role."),
    ):
        with subtests.test(words, status=status):
            refusing(status, words, lambda body: body["messages"][0]["role"] == "system")
            notices, _ = await run(server, request)
            assert notices == [
                "The server doesn't take system messages. Sending their words as the user's."
            ]
            new_kernel()
            assert (await run(server, request))[0] == []
            assert [body["messages"] for body in server.bodies[1:]] == [merged, merged]


async def test_what_an_error_repeats_of_the_request_is_no_part_of_it(server, request_text):
    echo = "system role is not supported, billing, 9 per day, no credits, context length is 9"
    detail = [{"loc": ["body", "messages", 0, "content"], "msg": "Too odd", "input": echo}]
    server.then(Failure(422, {"detail": detail}))
    turns = (Message(role="system", content=echo), *request_text.messages)
    with pytest.raises(errors.RequestRejected, match=r"HTTP 422\) \(Too odd\)"):
        await run(server, request_text.replace(messages=turns))
    assert len(server.requests) == 1


async def test_without_a_system_message_such_an_error_is_that_error(server, request_text):
    server.then(Failure(400, {"error": {"message": "Conversation roles must alternate"}}))
    with pytest.raises(errors.RequestRejected, match="must alternate"):
        await run(server, request_text)


async def test_a_reply_cut_off_at_the_servers_own_limit_says_so(server, request_text):
    server.default = lambda _: Answer("half a sent", finish="length")
    server.rejecting("max_tokens: at most 1024", lambda body: body["max_tokens"] > 1_024)
    _, reply = await run(server, request_text)
    assert (reply.finish, reply.capped) == ("length", True)
    _, reply = await run(server, request_text.model_copy(update={"max_tokens": 99}))
    assert (reply.finish, reply.capped) == ("length", False)


# --- The user's fields


async def test_extra_fields_are_sent_along_and_replace_ours(server, request_json):
    server.default = lambda _: "{}"
    extra = {"top_k": 20, "temperature": 1, "max_completion_tokens": 9, "options": {"a": [1]}}
    assert (await run(server, request_json, extra=extra))[0] == []
    assert extra.items() <= server.bodies[0].items()
    assert "max_tokens" not in server.bodies[0]


@pytest.mark.parametrize(
    ("extra", "when"),
    [
        ({"reasoning_effort": "low"}, lambda body: "reasoning_effort" in body),
        ({"max_tokens": 10**6}, lambda body: body["max_tokens"] > 4_096),
    ],
)
async def test_an_extra_field_that_is_refused_is_left_out_for_that_run_only(
    server, request_text, extra, when
):
    (field,) = extra
    server.default = lambda _: "ok"
    server.rejecting(field, when, 403)
    for _ in range(2):
        notices, _ = await run(server, request_text, extra=extra)
        assert notices == [f"The server doesn't take `{field}`. Asking without it."]
    assert [body.get(field) == extra[field] for body in server.bodies] == [True, False] * 2
    model = OpenAIModel("m", base_url=server.base_url, extra=extra)
    await asyncio.gather(*(anext(model.stream(request_text)) for _ in range(3)))
    assert facts_about(server.base_url) == Facts(), "nothing is remembered, though calls overlap"


def test_extra_that_cannot_be_sent_is_refused():
    own = ({"model": "x"}, {"messages": []}, {"stream": False})
    for extra in (*own, ["top_k"], {"a": {1}}, {"a": 1e999}):
        with pytest.raises(errors.UsageError, match="extra"):
            OpenAIModel("m", base_url=HERE, extra=extra)


async def test_an_error_never_repeats_a_secret_in_extra(server, request_text):
    secret = "tok-12345"
    message = f"quota of {secret} used up: {secret.upper()}"
    server.default = lambda _: Failure(402, {"error": {"message": message}})
    with pytest.raises(errors.RateLimited) as caught:
        await run(server, request_text, extra={"metadata": {"keys": [secret]}})
    assert secret not in str(caught.value).lower()
    assert server.bodies[0]["metadata"] == {"keys": [secret]}


# --- What is remembered


async def test_a_refusal_is_remembered_by_the_next_kernel_for_that_model_alone(
    server, request_json, new_kernel
):
    server.default = lambda _: "{}"
    await run(server, request_json)
    assert facts_about(server.base_url) == Facts(), "nothing was refused"
    for field in ("temperature", "stream", "max_tokens"):
        server.rejecting(field, lambda body, field=field: field in body)
    server.rejecting("response_format", lambda body: level_of(body) != "json_object")
    notices, _ = await run(server, request_json)
    assert len(notices) == 5
    remember_about(server.base_url, share="structure")
    assert facts_about(server.base_url).share == "structure"
    server.requests.clear()
    new_kernel()
    assert (await run(server, request_json))[0] == []
    assert len(server.requests) == 1
    await run(server, request_json, "other")
    assert {"temperature", "stream", "max_tokens"} <= server.bodies[1].keys()


async def test_a_field_is_tried_again_after_a_month(server, request_text, new_kernel):
    server.default = lambda _: "ok"
    old = Capabilities(refused=frozenset({"temperature"}), since="2020-01-01")
    remember_about(server.base_url, models={"m": old})
    await run(server, request_text)
    assert "temperature" in server.bodies[0]


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


def test_a_damaged_file_says_nothing_and_is_replaced(request_text):
    home().mkdir(parents=True, exist_ok=True)
    limits = '{"refused": ["temperature"], "max_tokens": -1}'
    for content in (
        *("", "{", "[1]", f'{{"{HERE}": 3}}', "[" * 100_000, "\0", f'{{"{HERE}": {{"share": 3}}}}'),
        f'{{"{HERE}": {{"models": {{"m": {limits}}}}}}}',
    ):
        (home() / "servers.json").write_text(content)
        assert facts_about(HERE) == Facts()
        assert "temperature" in recall(HERE, "m").fields(request_text)
        assert remember_about(HERE, share="values")
        assert facts_about(HERE).share == "values"
        assert facts_about("http://127.0.0.1:9/v1").share is None
        servers.BY_SERVER.clear()


def test_a_folder_that_cannot_be_made_is_said(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IPYREFINE_HOME", str(tmp_path / "file"))
    assert not remember_about(HERE, share="values")
    assert facts_about(HERE) == Facts()


# --- The key


def test_a_key_is_hidden_wherever_it_is_printed_but_travels_to_a_worker():
    key = Key(" sk-hush\n")
    assert "hush" not in f"{key} {key!r} {[key]} {vars(OpenAIModel('m', api_key=key))}"
    assert key() == Key(key)() == pickle.loads(pickle.dumps(key))() == "sk-hush"
    assert (bool(Key()), Key()()) == (False, "")


# --- Prices


def test_the_list_knows_a_model_by_its_server_and_name():
    price = listed_price("gpt-4o-mini", OPENAI)
    assert price is not None
    assert 0 < price.prompt < price.completion < 100
    usage = Usage(calls=1, prompt_tokens=1_000_000)
    fresh = listed_cost(usage, "gpt-4o-mini", OPENAI)
    assert fresh == pytest.approx(price.prompt)
    cached = listed_cost(usage.model_copy(update={"cached_tokens": 900_000}), "gpt-4o-mini", OPENAI)
    assert 0 < cached < fresh


def test_a_price_is_never_guessed():
    """A famous name on somebody's own server says nothing about what that server charges."""
    for model, server in (("gpt-4o-mini", HERE), ("no-such-model", OPENAI), ("", OPENAI)):
        assert listed_price(model, server) is None
        assert listed_cost(Usage(calls=1, prompt_tokens=9), model, server) is None


def test_a_price_is_read_as_two_amounts_and_anything_else_refused_with_an_example():
    for text in ("0.15,0.60", "$0.15, $0.60", " 0.15 , 0.6 "):
        assert read_price(text) == Price(prompt=0.15, completion=0.6)
    for text in ("", "cheap", "1", "1,2,3", "-1,2", "nan,1", "inf,1", "1;2"):
        with pytest.raises(errors.UsageError, match=r"0\.15,0\.60"):
            read_price(text)


@pytest.mark.parametrize(
    ("price", "billed", "cost"),
    [(OWN, {}, 0.002), (None, {}, None), (OWN, {"cost": 0.5}, 0.5)],
    ids=["the user's own", "unknown", "what the server bills"],
)
async def test_a_reply_s_cost_is_known_where_the_price_is(
    server, request_text, price, billed, cost
):
    server.then(Answer("hi", usage={**COUNTS, **billed}))
    _, reply = await run(server, request_text, price=price)
    assert reply.usage.cost == pytest.approx(cost)


def test_a_dollar_budget_without_a_price_is_refused_before_the_run(server):
    limits = Limits(budget=Budget(cost=0.05))
    options = {"model": "m", "base_url": server.base_url, "limits": limits}
    with pytest.raises(errors.UsageError, match=r'^m: .*--set price="0.15,0.60"'):
        api.build("Say hello.", **options)
    assert server.requests == []
    api.build("Say hello.", price="0.15,0.60", **options)
    model = OpenAIModel("m", base_url=server.base_url, price=OWN)
    with pytest.raises(errors.UsageError, match=r"^judge: "):
        api.build("Say hello.", model=model, judge=ScriptedModel([], name="judge"), limits=limits)


async def test_a_dollar_budget_is_never_exceeded(server):
    """Each call is bounded by what the money left pays for, before it is made."""

    def spending(body) -> Answer:
        read = sum(len(message["content"]) for message in body["messages"]) // 4
        counts = {"prompt_tokens": read, "completion_tokens": min(100, body["max_tokens"])}
        return Answer("<text>\nHello\n</text>", usage=counts)

    server.default = spending
    loop = evaluated(
        OpenAIModel("m", base_url=server.base_url, price=OWN),
        limits=Limits(budget=Budget(cost=0.0032)),
    )
    await finish(loop)
    assert loop.state.stop_reason is StopReason.BUDGET
    assert 0.001 < loop.state.cost <= 0.0032
    assert "of $0.0032" in loop.state.message
    allowed = [body["max_tokens"] for body in server.bodies]
    assert len(allowed) > 1
    assert allowed[-1] < allowed[0] < 320


async def test_a_price_that_turns_out_unknown_stops_the_run_before_the_next_call():
    loop = refinement(ScriptedModel(["Hello."]), limits=Limits(budget=Budget(cost=1)))
    await finish(loop)
    assert loop.state.stop_reason is StopReason.BUDGET
    assert "price is not known" in loop.state.message
    assert loop.state.text == "Hello."
