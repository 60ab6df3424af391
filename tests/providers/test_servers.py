"""What a server takes, charges and may be sent: asked for less by the field, and remembered."""

import pickle
from collections.abc import Callable

import pytest
from kit import evaluated, finish, refinement
from openai_server import Answer, Failure, ScriptedServer, items_of

from ipyrefine import api, errors
from ipyrefine.core.model import Budget, Limits, Price, StopReason, Usage
from ipyrefine.core.ports import Message, Notice, Reply, Request
from ipyrefine.folders import home
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.providers.servers import (
    LIMITS,
    Capabilities,
    Facts,
    Key,
    facts_about,
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


async def run(
    server: ScriptedServer, request: Request, model: str = "m", **options: object
) -> tuple[list[str], Reply]:
    """Return the notices and the reply."""
    items = await items_of(OpenAIModel(model, base_url=server.base_url, **options), request)
    reply = items[-1]
    assert isinstance(reply, Reply)
    return [item.text for item in items if isinstance(item, Notice)], reply


# --- Fields
AS_USER = "The server doesn't take system messages. Sending their words as the user's."


def has(name: str) -> Callable[[dict], bool]:
    return lambda body: name in body


async def test_a_model_that_thinks_aloud_is_not_held_to_a_grammar(
    server, request_json, request_text
):
    server.default = lambda _: "<think>t</think>{}"
    for request in (request_json, request_text, request_json):
        assert (await run(server, request))[0] == []
    assert ["response_format" in body for body in server.bodies] == [True, False, False]


# --- The limit of tokens


@pytest.mark.parametrize(
    ("status", "words", "most", "names"),
    [
        (400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", None, "b"),
        (400, "max_tokens is too large: 16,384. This model supports at most 4096", 4_096, "ab"),
        (402, "You requested up to 16384 max_tokens, but can only afford 2666.", 2_048, "ab"),
        (422, "Range of max_tokens should be [1, 4096]", 4_096, "a"),
    ],
)
async def test_a_limit_is_renamed_or_lowered_and_never_dropped(
    server, request_text, status, words, most, names
):
    """The server knows the old name (a), the new one (b), or both."""
    known = [LIMITS["ab".index(name)] for name in names]

    def answer(body: dict) -> str | Failure:
        (limit,) = [name for name in LIMITS if name in body]
        takes = limit in known and body[limit] <= (most or 10**9)
        return "ok" if takes else Failure(status, {"error": {"message": words}})

    long = request_text.replace(max_tokens=16_384)
    server.default = answer
    notices, _ = await run(server, long)
    assert [f"Asking for {most}." in one.replace(",", "") for one in notices] == [True] * bool(most)
    last = server.bodies[-1]
    (limit,) = [name for name in LIMITS if name in last]
    assert last[limit] == (most or 16_384)
    assert (await run(server, long))[0] == []
    assert server.bodies[-1] == last
    await run(server, request_text.replace(max_tokens=99))
    assert server.bodies[-1][limit] == 99


async def test_a_limit_that_cannot_be_met_is_the_servers_error_and_nothing_is_learnt(
    server, request_json
):
    words = "too large: stream stream_options temperature seed max_tokens response_format"
    server.default = lambda _: Failure(400, {"error": words})
    with pytest.raises(errors.RequestRejected, match=words):
        await run(server, request_json)
    assert len(server.requests) <= 12
    assert recall(server.base_url, "m", "{}") == Capabilities()


async def test_a_reply_cut_off_at_the_servers_own_limit_says_so(server, request_text):
    server.default = lambda _: Answer("half a sent", finish="length")
    server.rejecting("max_tokens: 2048", lambda body: body["max_tokens"] > 1_024)
    _, reply = await run(server, request_text)
    assert (reply.finish, reply.capped) == ("length", True)
    _, reply = await run(server, request_text.model_copy(update={"max_tokens": 99}))
    assert (reply.finish, reply.capped) == ("length", False)


# --- System messages


async def test_where_the_system_s_role_is_refused_its_words_go_first_in_the_user_s_message(
    server, request_text
):
    turns = (Message(role="system", content="Be brief."), *request_text.messages)
    server.default = lambda _: "ok"
    server.rejecting("messages[0].role", lambda body: body["messages"][0]["role"] == "system")
    assert (await run(server, request_text.replace(messages=turns)))[0] == [AS_USER]
    merged = [{"role": "user", "content": "Be brief.\n\nSay hello to the world."}]
    assert server.bodies[-1]["messages"] == merged
    assert server.bodies[-1]["stream"]


# --- The user's fields


async def test_extra_fields_are_sent_along_and_replace_ours(server, request_json):
    server.default = lambda _: "{}"
    extra = {"top_k": 20, "temperature": 1, "options": {"a": [1]}}
    assert (await run(server, request_json, extra=extra))[0] == []
    assert extra.items() <= server.bodies[0].items()


def test_extra_that_cannot_be_sent_is_refused():
    own = ({"model": "x"}, {"messages": []}, {"max_completion_tokens": 9})
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


def test_a_damaged_file_says_nothing_and_is_replaced():
    home().mkdir(parents=True, exist_ok=True)
    for content in (
        *("", "{", "[1]", f'{{"{HERE}": 3}}', "[" * 100_000, "\0", f'{{"{HERE}": {{"share": 3}}}}'),
    ):
        (home() / "servers.json").write_text(content)
        assert facts_about(HERE) == Facts()
        assert remember_about(HERE, share="all")
        assert facts_about(HERE).share == "all"
        assert facts_about("http://127.0.0.1:9/v1").share is None


def test_a_folder_that_cannot_be_made_is_said(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("IPYREFINE_HOME", str(tmp_path / "file"))
    assert not remember_about(HERE, share="all")
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
