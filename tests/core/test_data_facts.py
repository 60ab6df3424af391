"""What running a text did to data turns amber where a critic finds no words that ask for it."""

import json
from typing import Any

import pytest
from kit import Finds, code, decide, ended

from ipyrefine.core import actions, decisions
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Effect, Limits, StopReason, Task
from ipyrefine.core.points import to_check
from ipyrefine.core.policy import next_step
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import Sharing, visible
from ipyrefine.core.table import Result
from ipyrefine.render import say
from ipyrefine.render.html import View, panel_parts
from ipyrefine.render.terminal import record_text

TASK = Task(text="Merge orders and customers, without orders that have no town.", form="code")
LOST = Effect(
    kind="gone", name="merged", of="orders", column="customer", cause="unmatched",
    other="customers", count=17, total=1204, values=("88", "91"),
)  # fmt: skip
NEW = Effect(kind="new", name="merged", after="1,187 rows × 6 columns")
TOTAL = Effect(kind="total", name="merged", of="orders", column="amount", before="9", after="8")
SAID = (
    "17 of 1,204 rows of `orders` are gone in `merged`: "
    "their `customer` (88, 91) is not in `customers`"
)


TOWN = "without orders that have no town"


def reading(data: Any, **more: Any) -> str:
    answers = {} if data is ... else {"data": data}
    return json.dumps({"findings": [], **answers, "ready": True, "because": "So."} | more)


def ran(*effects: Effect) -> Result:
    return Result(name="run", passed=True, basis="run", effects=effects, computed=True)


async def read(*replies: str, checks: Finds | None = None, revisions: int = 0) -> Refinement:
    loop = await ended(
        [code("merged = orders.merge(customers)"), *replies],
        TASK,
        checks=[checks or Finds(ran(LOST, NEW, TOTAL))],
        limits=Limits(max_revisions=revisions, critique="always"),
        sharing=Sharing("all"),
    )
    return loop


def asked(run: Run, number: int = 0) -> list[str]:
    return [one.words for one in to_check(run, run.iterations[number])]


@pytest.mark.parametrize(
    ("data", "asks"),
    [
        ({"d1": ""}, True),
        ({"d1": "", "d2": "", "d3": "", "d4": "", "e1": ""}, True),
        ({"d1": "every order"}, True),  # the task does not say so
        ({"d1": TOWN}, False),
        ({"d1": TOWN, "d2": ""}, False),  # a table that is new is nothing to ask about
        # An answer that is missing is none.
        *((one, True) for one in (..., None, {}, {"d7": TOWN}, {"d1": " "})),
    ],
)
async def test_only_what_no_words_of_the_task_ask_for_is_asked(data, asks):
    run = (await read(reading(data))).state
    assert asked(run) == [SAID] * asks
    said = say.verdict(run, run.iterations[0])
    assert str(said.label) == ("! 1 TO CHECK" if asks else "○ NOTHING FOUND")
    assert not asks or said.sentence == "Your task doesn't ask for it."


async def test_a_critic_is_told_what_happened_and_asked_about_what_somebody_has_to_want():
    prompt = (await read(reading({}))).model.requests[1].messages[-1].content  # type: ignore[attr-defined]
    assert f"d1: {SAID}." in prompt
    assert "d3: sum of `amount`: 9 in `orders`, 8 in `merged`." in prompt
    assert '"data": an object with each of d1, what' in prompt


async def test_what_the_user_wants_gone_is_not_asked_about_again():
    loop = await read(reading({"d1": ""}), code("merged = 2"), reading({"d1": ""}))
    await decide(loop, decisions.Dismiss(points=("f1",)))
    await decide(loop, decisions.Continue(guidance="Shorter."))
    assert asked(loop.state, 0) == asked(loop.state, 1) == []


async def test_rows_that_the_user_wants_to_keep_block_every_text_that_loses_them():
    fewer = LOST.replace(count=3, values=("88",))
    loop = await read(
        reading({"d1": ""}),
        *(code("merged = 2"), reading({"d1": ""})),
        *(code("merged = 3"), reading({})),
        checks=Finds(ran(LOST), ran(fewer), ran(NEW)),
    )
    await decide(loop, decisions.Continue(points=("f1",)))
    run = loop.state
    assert "Keep all 1,204." in loop.model.requests[2].messages[-1].content  # type: ignore[attr-defined]
    assert run.iterations[1].results["f1"].shows.startswith("3 of 1,204 rows")
    assert not run.iterations[1].verdict.passed  # type: ignore[union-attr]
    await decide(loop, decisions.Continue())
    assert loop.state.iterations[2].results["f1"].passed is True
    assert loop.state.iterations[2].verdict.passed  # type: ignore[union-attr]


async def test_a_server_is_told_counts_and_known_names_alone():
    odd = NEW.replace(kind="columns", values=("Zwolle", "merged"), name="")
    typed = NEW.replace(kind="type", column="Zwolle", before="Enum(['Zwolle'])", after="object")
    warned = NEW.replace(kind="warning", cause="Zwolle", after="Zwolle")
    key = NEW.replace(kind="differs", column="amount", cause="Zwolle", count=1, total=2)
    zone = NEW.replace(kind="zone", column="amount", after="Zwolle/Oss")
    found = Finds(ran(LOST, TOTAL, odd, typed, warned, key, zone))
    loop = await read(reading({"d1": ""}), checks=found)
    kept = visible(loop.state, "structure").model_dump_json()
    assert "17 of 1,204 rows of `orders` are gone in `merged`" in kept
    assert not any(one in kept for one in ("(88", "Zwolle", '"9"', '"8"'))
    assert "(88" in visible(loop.state, "all").model_dump_json()


KEPT = LOST.replace(cause="kept")


@pytest.mark.parametrize(
    ("effects", "offers"),
    [
        ((TOTAL, LOST, LOST.replace(of="towns")), [LOST]),  # one a run, though others are lost
        ((KEPT, NEW, TOTAL), []),
        ((), []),
    ],
)
async def test_rows_may_be_asked_about_where_nobody_reads_and_that_colours_nothing(effects, offers):
    loop = await ended(
        [code("merged = orders.merge(customers)")],
        TASK,
        checks=[Finds(ran(*effects))],
        limits=Limits(max_revisions=0, critique="never"),
    )
    run = loop.state
    facts = [one for one in run.points.values() if one.kind == "fact"]
    assert [one.effect for one in facts] == offers
    assert asked(run) == []
    page, told = panel_parts(run, View()), record_text(run)
    assert "rf-amber" not in page["results"]
    assert "rf-check" not in page["top"]
    assert ('data-action="act"' in page["results"]) is bool(offers)
    assert ("%refine dismiss f1: “" in told) is bool(offers)
    assert "TO CHECK" not in told
    if offers:
        kept = actions.decide(run, decisions.Dismiss(points=("f1",)))
        assert 'data-action="act"' not in panel_parts(kept, View())["results"]
    assert next_step(actions.decide(run, decisions.Accept())).reason is StopReason.ACCEPTED
