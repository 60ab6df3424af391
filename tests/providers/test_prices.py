"""Prices: what a call costs, where the price comes from, and what follows without one."""

import subprocess
import sys

import pytest
from kit import EVALUATED
from openai_server import Answer

from ipyrefine import api
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Budget, Limits, Price, StopReason, Task, Usage
from ipyrefine.core.ports import Reply
from ipyrefine.errors import UsageError
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.prices import cost_of, listed, read_price
from ipyrefine.providers.scripted import ScriptedModel

OPENAI = "https://api.openai.com/v1"
OWN = Price(prompt=1, completion=10)
COUNTS = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}


def test_the_list_knows_a_model_by_its_server_and_name():
    price = listed("gpt-4o-mini", OPENAI)
    assert price is not None
    assert 0 < price.prompt < price.completion < 100
    usage = Usage(calls=1, prompt_tokens=1_000_000)
    assert cost_of(usage, "gpt-4o-mini", OPENAI) == pytest.approx(price.prompt)


def test_cached_prompt_tokens_cost_less():
    fresh = Usage(calls=1, prompt_tokens=1_000)
    cached = fresh.model_copy(update={"cached_tokens": 900})
    cheap, dear = (cost_of(usage, "gpt-4o-mini", OPENAI) for usage in (cached, fresh))
    assert cheap is not None
    assert dear is not None
    assert 0 < cheap < dear


@pytest.mark.parametrize(
    ("model", "server"),
    [("gpt-4o-mini", "http://127.0.0.1:8000/v1"), ("no-such-model", OPENAI), ("", OPENAI)],
)
def test_a_price_is_never_guessed(model, server):
    """A well-known name on somebody's own server says nothing about what that server charges."""
    assert listed(model, server) is None
    assert cost_of(Usage(calls=1, prompt_tokens=9), model, server) is None


def test_the_user_s_own_price_wins_over_the_list():
    usage = Usage(calls=1, prompt_tokens=2_000_000, completion_tokens=100_000)
    assert cost_of(usage, "gpt-4o-mini", OPENAI, OWN) == 3.0


@pytest.mark.parametrize("text", ["0.15,0.60", "$0.15, $0.60", " 0.15 , 0.6 "])
def test_a_price_is_read_as_two_amounts(text):
    assert read_price(text) == Price(prompt=0.15, completion=0.6)


@pytest.mark.parametrize("text", ["", "cheap", "1", "1,2,3", "-1,2", "nan,1", "inf,1", "1;2"])
def test_what_is_no_price_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match=r"0\.15,0\.60"):
        read_price(text)


async def reply_of(model, request) -> Reply:
    return [item async for item in model.stream(request)][-1]


async def test_a_reply_s_cost_is_known_where_the_price_is(server, request_text):
    server.then(Answer("hi", usage=COUNTS), Answer("hi", usage=COUNTS))
    priced = OpenAIModel("m", base_url=server.base_url, price=OWN)
    assert (await reply_of(priced, request_text)).usage.cost == pytest.approx(0.002)
    unknown = OpenAIModel("m", base_url=server.base_url)
    assert (await reply_of(unknown, request_text)).usage.cost is None


async def test_what_the_server_bills_wins_over_any_price(server, request_text):
    server.then(Answer("hi", usage={**COUNTS, "cost": 0.5}))
    model = OpenAIModel("m", base_url=server.base_url, price=OWN)
    assert (await reply_of(model, request_text)).usage.cost == 0.5


def test_a_dollar_budget_without_a_price_is_refused_before_the_run(server):
    limits = Limits(budget=Budget(cost=0.05))
    options = {"model": "m", "base_url": server.base_url, "limits": limits}
    with pytest.raises(UsageError, match=r'^m: .*--price "0.15,0.60"') as caught:
        api.build("Say hello.", **options)
    assert "\n" not in str(caught.value)
    assert server.requests == []
    api.build("Say hello.", price="0.15,0.60", **options)


def test_a_judge_without_a_price_is_refused_likewise(server):
    limits = Limits(budget=Budget(cost=0.05))
    model = OpenAIModel("m", base_url=server.base_url, price=OWN)
    judge = ScriptedModel([], name="judge")
    with pytest.raises(UsageError, match=r"^judge: "):
        api.build("Say hello.", model=model, judge=judge, limits=limits)


async def test_a_dollar_budget_is_never_exceeded(server):
    """Each call is bounded by what the money left pays for, before it is made."""

    def spending(body) -> Answer:
        read = sum(len(message["content"]) for message in body["messages"]) // 4
        counts = {"prompt_tokens": read, "completion_tokens": min(100, body["max_tokens"])}
        return Answer("<text>\nHello\n</text>", usage=counts)

    server.default = spending
    model = OpenAIModel("m", base_url=server.base_url, price=OWN)
    loop = Refinement(
        Task(text="Say hello."),
        model=model,
        clock=lambda: 0.0,
        limits=Limits(budget=Budget(cost=0.0032)),
        prompts=EVALUATED,
    )
    await loop.run()
    assert loop.state.stop_reason is StopReason.BUDGET
    assert 0.001 < loop.state.cost <= 0.0032
    assert "of $0.0032" in loop.state.message
    allowed = [body["max_tokens"] for body in server.bodies]
    assert len(allowed) > 1
    assert allowed[-1] < allowed[0] < 320


async def test_a_price_that_turns_out_unknown_stops_the_run_before_the_next_call():
    loop = Refinement(
        Task(text="Say hello."), model=ScriptedModel(["Hello."]), clock=lambda: 0.0,
        limits=Limits(budget=Budget(cost=1)),
    )  # fmt: skip
    await loop.run()
    assert loop.state.stop_reason is StopReason.BUDGET
    assert "price is not known" in loop.state.message
    assert loop.state.text == "Hello."


def test_no_price_list_is_loaded_before_a_price_is_asked_for():
    code = (
        "import sys, ipyrefine.api, ipyrefine.providers.openai\n"
        "assert 'genai_prices' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
