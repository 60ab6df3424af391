"""What a check tells apart is followed fault by fault, from text to text."""

from collections.abc import Callable
from typing import Any

import pytest
from kit import READY, finish, refinement, text

from ipyrefine.checks.functions import CallableCheck
from ipyrefine.core.decisions import Dismiss
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Evidence, Finding, Limits, Severity, StopReason, Task
from ipyrefine.errors import UsageError

Result = Callable[[str], Any]


def by_text(**results: Any) -> Result:
    """A user's check that says something else of every text."""

    def style(text: str) -> Any:
        return results[text]

    return style


async def checked(function: Result, *texts: str, **limits: Any) -> Refinement:
    loop = refinement(
        map(text, texts),
        checks=[CallableCheck(function)],
        limits=Limits(max_revisions=len(texts) - 1, patience=9, **limits),
    )
    await finish(loop)
    return loop


def standing(loop: Refinement, number: int) -> dict[str, tuple[str, str]]:
    found = loop.state.iterations[number].findings
    return {f.id: (f.problem, f.status.value) for f in found}


async def test_each_fault_is_a_finding_with_its_quote_criterion_severity_and_fix() -> None:
    said = [
        {"problem": "no greeting", "fix": "greet her", "criterion": "tone"},
        {"problem": "shouting", "quote": "BUY", "severity": "minor"},
    ]
    loop = await checked(by_text(BUY=said), "BUY")
    first, second = loop.state.iterations[0].findings
    assert (first.id, first.criterion, first.fix) == ("f1", "tone", "greet her")
    assert (second.id, second.quote, second.severity) == ("f2", "BUY", Severity.MINOR)
    assert {f.author for f in (first, second)} == {"check"}
    assert {f.check for f in (first, second)} == {"style"}


async def test_a_fault_keeps_its_id_is_resolved_when_gone_and_back_again_when_it_returns() -> None:
    loop = await checked(
        by_text(a=["too long", "no name"], b=["no name"], c=["no date", "no name", "too long"]),
        "a",
        "b",
        "c",
    )
    assert standing(loop, 0) == {"f1": ("too long", "open"), "f2": ("no name", "open")}
    assert standing(loop, 1) == {"f1": ("too long", "resolved"), "f2": ("no name", "open")}
    assert standing(loop, 2) == {
        "f1": ("too long", "regressed"),
        "f2": ("no name", "open"),
        "f3": ("no date", "open"),
    }


async def test_faults_in_much_the_same_words_are_told_apart_within_one_text() -> None:
    lines = ["line 3 is longer than eighty", "line 9 is longer than eighty"]
    loop = await checked(by_text(a=lines, b=lines[1:]), "a", "b")
    assert standing(loop, 1) == {"f1": (lines[0], "resolved"), "f2": (lines[1], "open")}


async def test_a_number_that_moves_does_not_make_another_fault() -> None:
    loop = await checked(by_text(a=["130 words, too many"], b=["125 words, too many"]), "a", "b")
    assert standing(loop, 1) == {"f1": ("125 words, too many", "open")}


async def test_feedback_in_one_string_is_a_fault_like_any_other() -> None:
    loop = await checked(by_text(a="too long", b="no name", c=""), "a", "b", "c")
    assert standing(loop, 1) == {"f1": ("too long", "resolved"), "f2": ("no name", "open")}
    assert standing(loop, 2)["f2"] == ("no name", "resolved")
    assert loop.state.stop_reason is StopReason.PASSED


async def test_a_check_that_only_fails_has_one_finding_whatever_it_says() -> None:
    def style(text: str) -> None:
        assert text == "c", {"a": "too long", "b": "no name"}[text]

    loop = await checked(style, "a", "b", "c")
    assert standing(loop, 1) == {"f1": ("no name", "open")}
    assert standing(loop, 2) == {"f1": ("no name", "resolved")}


async def test_a_minor_fault_can_be_dismissed_and_stays_so_but_a_blocking_one_cannot() -> None:
    said = [{"problem": "a comma", "severity": "minor"}, "no name"]
    loop = await checked(by_text(a=said, b=said), "a")
    with pytest.raises(UsageError, match="f1 comes from the check style"):
        loop.decide(Dismiss(findings=("f1",)))
    loop.decide(Dismiss(findings=("f2",)))
    await finish(loop)
    assert standing(loop, 0)["f2"] == ("a comma", "dismissed")
    loop = await checked(by_text(a=said, b=said), "a", "b")
    loop.decide(Dismiss(findings=("f2",)))
    await finish(loop)
    assert {standing(loop, n)["f2"][1] for n in (0, 1)} == {"dismissed"}


async def test_words_that_are_not_in_the_text_are_told_but_are_no_quote() -> None:
    loop = await checked(by_text(a=[{"problem": "odd", "quote": "elsewhere"}]), "a")
    finding = loop.state.iterations[0].findings[0]
    assert (finding.quote, finding.problem) == ("", 'odd (at "elsewhere")')
    assert finding.actionable


class Advisory:
    """A check that only advises: its faults never block."""

    name = "advice"

    async def __call__(self, text: str, task: Task) -> Evidence:
        fault = Finding(criterion="x", severity=Severity.BLOCKING, problem="dull")
        return Evidence(name=self.name, passed=False, required=False, findings=(fault,))


async def test_what_an_advisory_check_finds_is_minor() -> None:
    loop = refinement([text("Hi"), READY], checks=[Advisory()])
    await finish(loop)
    assert loop.state.iterations[0].findings[0].severity is Severity.MINOR
    assert loop.state.stop_reason is StopReason.PASSED
