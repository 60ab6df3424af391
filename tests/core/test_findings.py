"""What a check tells apart is followed fault by fault, from text to text."""

from collections.abc import Callable
from typing import Any

import pytest
from kit import READY, Finds, ended, finish, status, text, told

from ipyrefine.checks.functions import CallableCheck
from ipyrefine.core.decisions import Dismiss
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, StopReason
from ipyrefine.core.table import Point, Result
from ipyrefine.errors import UsageError

Check = Callable[[str], Any]


def by_text(**results: Any) -> Check:
    """A user's check that says something else of every text."""

    def style(text: str) -> Any:
        return results[text]

    return style


async def checked(function: Check, *texts: str, **limits: Any) -> Refinement:
    loop = await ended(
        map(text, texts),
        checks=[CallableCheck(function)],
        limits=Limits(max_revisions=len(texts) - 1, patience=9, **limits),
    )
    return loop


def standing(loop: Refinement, number: int) -> dict[str, tuple[str, str]]:
    found = told(loop.state, number)
    return {one.id: (one.words, status(one)) for one in found}


async def test_each_fault_is_a_finding_with_its_quote_criterion_severity_and_fix():
    said = [
        {"problem": "no greeting", "fix": "greet her", "criterion": "tone"},
        {"problem": "shouting", "quote": "BUY", "severity": "minor"},
    ]
    loop = await checked(by_text(BUY=said), "BUY")
    first, second = told(loop.state, 0)
    assert (first.id, first.point.criterion, first.point.fix) == ("f1", "tone", "greet her")
    assert (second.id, second.point.place, second.point.blocking) == ("f2", "BUY", False)
    assert {one.point.check for one in (first, second)} == {"style"}


# What is said of the texts a, b and c, and the standing of each finding at the last of them.
FOLLOWED: dict[str, tuple[list[Any], dict[str, tuple[str, str]]]] = {
    "a fault that is gone is resolved": (
        [["too long", "no name"], ["no name"]],
        {"f1": ("too long", "resolved"), "f2": ("no name", "open")},
    ),
    "a fault that returns has regressed": (
        [["too long", "no name"], ["no name"], ["no date", "no name", "too long"]],
        {"f1": ("too long", "regressed"), "f2": ("no name", "open"), "f3": ("no date", "open")},
    ),
    "feedback in one string is a fault like any other": (
        ["too long", "no name", ""],
        {"f1": ("too long", "resolved"), "f2": ("no name", "resolved")},
    ),
}


@pytest.mark.parametrize("case", FOLLOWED)
async def test_a_fault_keeps_its_id_from_text_to_text(case):
    said, last = FOLLOWED[case]
    texts = "abc"[: len(said)]
    loop = await checked(by_text(**dict(zip(texts, said, strict=True))), *texts)
    assert standing(loop, len(said) - 1) == last
    assert (loop.state.stop_reason is StopReason.PASSED) is (not said[-1])


async def test_a_check_that_only_fails_has_one_finding_whatever_it_says():
    def style(text: str) -> None:
        assert text == "c", {"a": "too long", "b": "no name"}[text]

    loop = await checked(style, "a", "b", "c")
    assert standing(loop, 1) == {"f1": ("no name", "open")}
    assert standing(loop, 2) == {"f1": ("no name", "resolved")}


async def test_a_minor_fault_can_be_dismissed_and_stays_so_but_a_blocking_one_cannot():
    said = [{"problem": "a comma", "severity": "minor"}, "no name"]
    loop = await checked(by_text(a=said, b=said), "a")
    with pytest.raises(UsageError, match="f1 comes from the check style"):
        loop.decide(Dismiss(points=("f1",)))
    loop.decide(Dismiss(points=("f2",)))
    await finish(loop)
    assert standing(loop, 0)["f2"] == ("a comma", "dismissed")
    loop = await checked(by_text(a=said, b=said), "a", "b")
    loop.decide(Dismiss(points=("f2",)))
    await finish(loop)
    assert {standing(loop, n)["f2"][1] for n in (0, 1)} == {"dismissed"}


async def test_words_that_are_not_in_the_text_are_told_but_are_no_quote():
    loop = await checked(by_text(a=[{"problem": "odd", "quote": "elsewhere"}]), "a")
    finding = told(loop.state, 0)[0]
    assert (finding.point.place, finding.words) == ("", 'odd (at "elsewhere")')
    assert finding.actionable


async def test_what_an_advisory_check_finds_is_minor():
    fault = Point(criterion="x", blocking=True, words="dull")
    advice = Result(name="advice", passed=False, counts=False, points=(fault,))
    loop = await ended([text("Hi"), READY], checks=[Finds(advice)])
    assert not told(loop.state, 0)[0].point.blocking
    assert loop.state.stop_reason is StopReason.PASSED
