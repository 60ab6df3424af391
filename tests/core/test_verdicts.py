"""What a verdict rests on: evidence first, then a reader's word, else nothing."""

from typing import Any

import pytest
from kit import (
    EVALUATED,
    READY,
    Finds,
    ended,
    judgement,
    prompts,
    text,
    turns,
)
from png import PNG

from ipyrefine.core.model import Basis, Figure, Limits, Outcome, StopReason, Task
from ipyrefine.core.table import Result
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import say

ONCE = Limits(max_revisions=0, critique="never")
PASS, NEEDS, NOT_JUDGED = Outcome.PASS, Outcome.NEEDS_IMPROVEMENT, Outcome.NOT_JUDGED


def found(basis: Basis, passed: bool | None = True, **fields: Any) -> Result:
    """Result of a check named as its basis; one that passes settles the verdict."""
    fields = {"name": basis, "decisive": bool(passed), "shows": f"{basis} ran", **fields}
    return Result(basis=basis, passed=passed, **fields)


RAN = found("run", name="run on copies")
DRAWN = RAN.replace(outputs=(Figure(png=PNG),))
FAILED_RUN = RAN.replace(passed=False, shows="KeyError: 'a' (line 1)")
ABSENT = found("tests", None, not_run=True, shows="Not run: it needs the network.")
CONFIRMED = found("confirmed", name="examples")
BY_EVALUATOR = {"replies": [judgement(3)], "prompts": EVALUATED}
Expected = tuple[list[Result], dict[str, Any], dict[str, Any]]
# What checks find of a text, options with a reader's replies, and what the verdict says.
ROWS: dict[str, Expected] = {
    **{
        f"{basis} that hold": (
            [found(basis)], {},
            {"outcome": PASS, "basis": basis, "score": 1.0, "why": "checks_passed"},
        )
        for basis in ("tests", "function", "examples")
    },
    **{
        f"{basis} that fail": (
            [found(basis, passed=False, shows="2 of 3\nmore")], {},
            {"outcome": NEEDS, "basis": basis, "why": "failed",
             "point": basis, "line": "2 of 3"},
        )
        for basis in ("tests", "function", "schema", "examples", "constraints")
    },
    **{
        f"{basis} alone, which may hold of a wrong text": (
            [found(basis)], {}, {"outcome": NOT_JUDGED}
        )
        for basis in ("schema", "constraints", "run")
    },
    **{
        f"{basis} and a critic": (
            [found(basis)], {"replies": [READY], "limits": Limits()},
            {"outcome": PASS, "basis": "critique"},
        )
        for basis in ("schema", "constraints", "run")
    },
    "a critic that was measured too weak": (
        [], {"weak_critic": True, "limits": Limits(max_revisions=0)},
        {"outcome": NOT_JUDGED, "basis": "none", "why": "weak_critic", "point": "", "line": ""},
    ),
    "code that only runs": (
        [RAN], {}, {"outcome": NOT_JUDGED, "basis": "run", "score": None, "why": "only_ran"}
    ),
    "code that only draws": ([DRAWN], {}, {"outcome": NOT_JUDGED, "why": "only_ran"}),
    "code that runs, and an evaluator": (
        [RAN], BY_EVALUATOR, {"outcome": NEEDS, "basis": "evaluator"}
    ),
    "code that draws, and an evaluator": (
        [DRAWN], BY_EVALUATOR, {"outcome": NEEDS, "basis": "evaluator"}
    ),
    "code that runs, and tests that did not": (
        [RAN, ABSENT], {}, {"outcome": NOT_JUDGED, "basis": "none", "line": ABSENT.shows}
    ),
    "examples and a critic, and tests that did not run": (
        [found("examples"), ABSENT], {"replies": [READY], "limits": Limits()},
        {"outcome": NOT_JUDGED, "why": "not_run"},
    ),
    "what the user confirmed, and a critic": (
        [CONFIRMED], {"replies": [READY], "limits": Limits()},
        {"outcome": PASS, "basis": "confirmed"},
    ),
    "what the user confirmed, and a critic that cannot be read": (
        [CONFIRMED], {"replies": ["hm", "hm"], "limits": Limits()},
        {"outcome": PASS, "basis": "confirmed"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
async def test_a_verdict_says_what_it_rests_on(row):
    evidence, options, said = ROWS[row]
    options = {"limits": ONCE, "replies": [], **options}
    replies = [text("Hi"), *options.pop("replies")]
    loop = await ended(replies, checks=[Finds(one) for one in evidence], **options)
    assert len(loop.model.requests) == len(replies)
    assert {name: getattr(loop.state.verdict, name) for name in said} == said
    line = say.verdict(loop.state, loop.state.chosen).line
    assert ("nobody read it" in line) is ("hm" in replies)


@pytest.mark.parametrize("decisive", [True, False])
async def test_a_text_that_nobody_judged_says_what_holds_of_it(decisive):
    holds = Finds(found("constraints", name="length", decisive=decisive))
    loop = await ended([text("Hi")], checks=[holds], limits=ONCE)
    verdict = loop.state.verdict
    assert (verdict.outcome, verdict.basis, verdict.why) == (NOT_JUDGED, "none", "no_critic")
    said = say.verdict(loop.state, loop.state.chosen).sentence
    assert said == "Nobody was asked to read it."


async def test_the_evaluator_is_asked_after_the_slowest_check_and_told_what_it_found():
    model = ScriptedModel([text("Hi there"), judgement(9)])

    class Slow(Finds):
        async def __call__(self, text: str, task: Task) -> Result:
            await turns()
            assert len(model.requests) == 1
            return await super().__call__(text, task)

    check = Slow(Result(name="links", passed=True, shows="all 17 links work"))
    loop = await ended(model, checks=[check], limits=ONCE, prompts=EVALUATED)
    assert loop.error is None
    assert "links: passed. all 17 links work" in prompts(loop)[-1]


async def test_code_that_runs_is_better_than_code_that_fails_whatever_came_later():
    loop = await ended(
        [text("Hi 0"), text("Hi 1")],
        checks=[Finds(FAILED_RUN, RAN)],
        limits=Limits(critique="never"),
    )
    assert (loop.state.text, loop.state.stop_reason) == ("Hi 1", StopReason.UNJUDGED)
    assert loop.state.verdict.why == "only_ran"


# What a critic said
