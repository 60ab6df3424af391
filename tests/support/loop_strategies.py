"""Hypothesis strategies: models that say anything, checks that find anything, runs in any state."""

import json
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, get_args

from hypothesis import strategies as st
from loop_scripts import criticised, judged, text

from ipyrefine.core.ports import Reply, Request
from ipyrefine.core.records import Criterion, Evidence, Finding, Outcome, Severity, Task, Verdict
from ipyrefine.core.runs import Budget, Decision, Iteration, Limits, Run
from ipyrefine.core.usage import Usage
from ipyrefine.errors import Unreachable

KINDS = get_args(Decision.model_fields["kind"].annotation)
words = st.one_of(st.text(max_size=12), st.sampled_from(["Hi", "Hallo", "Dear Sir", "\ud800"]))
rates = st.floats(min_value=0, max_value=1)
usages = st.builds(
    Usage,
    calls=st.integers(0, 3),
    prompt_tokens=st.integers(0, 4_000),
    cached_tokens=st.none() | st.integers(0, 400),
    completion_tokens=st.integers(0, 900),
    cost=st.none() | st.floats(min_value=0, max_value=0.01),
)
spent = usages.map(lambda usage: usage.model_copy(update={"calls": 1}))
findings = st.fixed_dictionaries(
    {
        "criterion": st.just("tone"),
        "quote": st.sampled_from(["", "Hi", "not there"]),
        "problem": words,
        "fix": words,
        "severity": st.sampled_from(["blocking", "minor", "fatal"]),
    }
)
flawed = st.sampled_from(["length", "refused", "filtered", "incomplete"])


@st.composite
def turns(draw: Callable[..., Any]) -> Callable[[Request], str | Reply]:
    """One turn of a model: what was asked for, something else, a cut-off reply, or a fault."""
    kind = draw(st.sampled_from(["good", "good", "good", "good", "noise", "cut", "fault"]))
    score = draw(st.integers(0, 10) | st.sampled_from([-1, 11, 7.5]))
    found = draw(st.lists(findings, max_size=3))
    fixed = tuple(draw(st.sets(st.sampled_from(["f1", "f2", "f9"]))))
    said, usage = draw(words), draw(spent)

    def turn(request: Request) -> str | Reply:
        if kind == "fault":
            raise Unreachable("No server.")
        if kind == "noise":
            return Reply(text=said, usage=usage)
        if request.schema_name == "critique":
            body = criticised(*found)
        elif request.schema_name == "preference":
            better = ("first", "second", "same")[int(score) % 3]
            body = json.dumps({"reason": said, "better": better})
        elif request.schema_name == "judgement":
            body = judged(score, *found, fixed=fixed, names=("tone", "warmth"))
        else:
            body = text(said, "f1: changed it")
        if kind == "cut":
            return Reply(text=body[:-3], finish=draw_flaw, usage=usage)
        return Reply(text=body, usage=usage)

    draw_flaw = draw(flawed)
    return turn


# A short script over and over: no loop outlives its own rules, so its length never matters.
scripts = st.lists(turns(), min_size=1, max_size=7).map(cycle)


class Anything:
    """A check that gives the results it was told, over and over."""

    name = "anything"

    def __init__(self, results: Sequence[Evidence]) -> None:
        self._results = cycle(results)

    async def __call__(self, text: str, task: Task) -> Evidence:
        return next(self._results)


evidence = st.builds(
    Evidence,
    name=st.just("anything"),
    passed=st.none() | st.booleans(),
    score=st.none() | rates,
    detail=st.text(max_size=8),
    required=st.booleans(),
    decisive=st.booleans(),
)
checks = st.lists(evidence, min_size=1, max_size=4).map(lambda e: [Anything(e)]) | st.just([])
budgets = st.builds(
    Budget,
    tokens=st.none() | st.integers(1, 20_000),
    calls=st.none() | st.integers(1, 8),
    cost=st.none() | st.floats(min_value=0.0001, max_value=0.05),
    seconds=st.none() | st.floats(min_value=0.001, max_value=1),
)
limits = st.builds(
    Limits,
    max_iterations=st.integers(0, 4),
    target=rates,
    patience=st.integers(1, 3),
    min_findings=st.integers(0, 3),
    delta=st.sampled_from([0.0, 0.1]),
    gate=st.booleans(),
    candidates=st.sampled_from([1, 1, 3]),
    critics=st.sampled_from([1, 1, 2]),
    memory=st.sampled_from(["best", "all"]),
    every_critique=st.booleans(),
    budget=st.just(Budget()) | budgets,
)
verdicts = st.builds(
    Verdict,
    outcome=st.sampled_from(Outcome),
    score=st.none() | rates,
    author=st.sampled_from(["check", "model"]),
    required_passed=st.booleans(),
    user_met=st.booleans(),
)


@st.composite
def runs(draw: Callable[..., Any]) -> Run:
    """A run in any state that has iterations; the latest may be unverified."""
    given = draw(st.lists(verdicts, min_size=1, max_size=5))
    iterations = [
        Iteration(
            number=number,
            parent=None if number == 0 else draw(st.integers(0, number - 1)),
            text=draw(words),
            verdict=verdict,
            critiqued=draw(st.booleans()),
        )
        for number, verdict in enumerate(given)
    ]
    ranks = [verdict.rank for verdict in given]
    best: int | None = ranks.index(max(ranks))
    if draw(st.booleans()):
        last = iterations[-1].model_copy(update={"verdict": None})
        iterations[-1] = last
        earlier = ranks[:-1]
        best = earlier.index(max(earlier)) if earlier else None
    bounds = draw(limits)
    return Run(
        task=Task(text="Greet."),
        limits=bounds,
        lost=bounds.candidates - 1,
        iterations=tuple(iterations),
        best=best,
        allowed=draw(st.integers(0, 6)),
        plateau_from=draw(st.integers(0, len(iterations) - 1)),
        usage=draw(usages),
    )


WISH = Finding(id="", criterion="tone", severity=Severity.MINOR, problem="Name the reader.")
RUBRIC = (Criterion(name="warmth", definition="Warm."), Criterion(name="tone", definition="Kind."))


@st.composite
def decisions(draw: Callable[..., Any]) -> Decision:
    """Something a user may do; some of it is impossible on the run at hand."""
    kind = draw(st.sampled_from(KINDS))
    return Decision(
        kind=kind,
        iteration=draw(st.none() | st.integers(0, 2)),
        outcome=draw(st.sampled_from(Outcome)) if kind == "override" else None,
        rounds=draw(st.integers(0, 2)),
        text=draw(st.sampled_from(["", "in German", "shorter"])),
        findings=draw(st.sampled_from([(), ("f1",), ("f1", "f3")])),
        finding=draw(st.none() | st.just(WISH)),
        criteria=draw(st.sampled_from([(), RUBRIC])),
        target=draw(st.none() | rates),
    )
