"""Hypothesis strategies: models that say anything, checks that find anything, runs in any state."""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from hypothesis import strategies as st
from kit import TASK, judgement, text

from ipyrefine.core.decisions import (
    Accept,
    Add,
    Continue,
    Criteria,
    Decision,
    Dismiss,
    Drop,
    Edit,
    Expect,
    Guide,
    Override,
    Retract,
)
from ipyrefine.core.model import (
    Budget,
    Criterion,
    Limits,
    Outcome,
    Setup,
    Stage,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.ports import Reply, Request
from ipyrefine.core.rank import best_of
from ipyrefine.core.run import Call, Iteration, Run
from ipyrefine.core.table import Point, Reading, Result
from ipyrefine.errors import Unreachable

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
        "place": st.sampled_from(["", "Hi", "not there"]),
        "problem": words,
        "fix": words,
        "blocks": st.booleans(),
    }
)
broken_finishes = st.sampled_from(["length", "refused", "filtered", "incomplete"])


@st.composite
def turns(draw: Callable[..., Any]) -> Callable[[Request], str | Reply]:
    """One turn of a model: what was asked for, something else, a cut-off reply, or a fault."""
    kind = draw(st.sampled_from(["good", "good", "good", "good", "noise", "cut", "fault"]))
    score = draw(st.integers(0, 10) | st.just(7.5))
    weak = draw(st.lists(findings, max_size=3))
    fixed = tuple(draw(st.sets(st.sampled_from(["f1", "f2", "f9"]))))
    noise, usage, finish = draw(words), draw(spent), draw(broken_finishes)

    def turn(request: Request) -> str | Reply:
        if kind == "fault":
            raise Unreachable("No server.")
        if kind == "noise":
            return Reply(text=noise, usage=usage)
        match request.purpose:
            case Stage.CRITIQUE | Stage.JUDGE:
                body = judgement(score, *weak, fixed=fixed)(request)
            case _:
                body = text(noise, "f1: changed it")
        if kind == "cut":
            return Reply(text=body[:-3], finish=finish, usage=usage)
        return Reply(text=body, usage=usage)

    return turn


# A short script over and over: no loop outlives its own rules, so its length never matters.
scripts = st.lists(turns(), min_size=1, max_size=7).map(cycle)


class Anything:
    """A check that gives the results it was told, over and over."""

    name = "anything"

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = cycle(results)

    async def __call__(self, text: str, task: Task) -> Result:
        return next(self._results)


evidence = st.builds(
    Result,
    name=st.just("anything"),
    passed=st.none() | st.booleans(),
    score=st.none() | rates,
    shows=st.text(max_size=8),
    counts=st.booleans(),
    decisive=st.booleans(),
    basis=st.sampled_from(["tests", "function", "examples", "constraints"]),
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
    max_revisions=st.integers(0, 4),
    target=rates,
    patience=st.none() | st.integers(1, 3),
    min_findings=st.integers(0, 3),
    delta=st.sampled_from([0.0, 0.1]),
    memory=st.sampled_from(["best", "all"]),
    critique=st.sampled_from(["auto", "always", "never"]),
    base=st.sampled_from(["auto", "latest", "best"]),
    verify_drafts=st.booleans(),
    budget=st.just(Budget()) | budgets,
)
verdicts = st.builds(
    Verdict,
    outcome=st.sampled_from(Outcome),
    score=st.none() | rates,
    basis=st.sampled_from(["function", "examples", "evaluator", "critique", "none"]),
)


@st.composite
def runs(draw: Callable[..., Any]) -> Run:
    """A run in any state that has iterations; the latest may be unverified."""
    results = draw(st.lists(verdicts, min_size=1, max_size=5))
    iterations = [
        Iteration(
            number=number,
            parent=None if number == 0 else draw(st.integers(0, number - 1)),
            text=draw(words),
            verdict=verdict,
            reading=draw(st.sampled_from([None, Reading()])),
        )
        for number, verdict in enumerate(results)
    ]
    if draw(st.booleans()):
        iterations[-1] = iterations[-1].model_copy(update={"verdict": None})
    bounds = draw(limits)
    run = Run.begin(Setup(task=TASK, limits=bounds)).model_copy(
        update={
            "iterations": tuple(iterations),
            "allowed_revisions": draw(st.integers(0, 6)),
            "patience_from": draw(st.integers(0, len(iterations) - 1)),
            "calls": (Call(stage=Stage.DRAFT, iteration=0, usage=draw(usages)),),
        }
    )
    return run.model_copy(update={"best": best_of(run)})


WISH = Point(criterion="tone", blocking=False, words="Name the reader.")
CRITERIA = (
    Criterion(name="warmth", definition="Warm."),
    Criterion(name="tone", definition="Kind."),
)

numbers = st.none() | st.integers(0, 2)
guidance = st.sampled_from(["", "in German", "shorter"])
revisions = st.integers(1, 2)
ids = st.sampled_from([(), ("f1",), ("f1", "f3")])

calls = st.sampled_from(["f(0)", "f([])", "f("])

# Something a user may do; some of it is impossible on the run at hand.
decisions: st.SearchStrategy[Decision] = st.one_of(
    st.builds(Accept, iteration=numbers),
    st.builds(Override, iteration=numbers, outcome=st.sampled_from(Outcome), reason=guidance),
    st.builds(Continue, revisions=revisions, guidance=guidance),
    st.builds(Continue, iteration=st.integers(0, 2), revisions=revisions, guidance=guidance),
    st.builds(Continue, points=ids, iteration=numbers, guidance=guidance),
    st.builds(Guide, guidance=guidance),
    st.builds(Edit, iteration=numbers, text=guidance),
    st.builds(Dismiss, points=ids, reason=guidance),
    st.builds(Drop, demand=st.just("anything")),
    st.builds(Add, point=st.just(WISH), iteration=numbers),
    st.builds(Expect, call=calls, gives=st.sampled_from(["", "0", "[1]"])),
    st.builds(Retract, call=calls),
    st.builds(Criteria, criteria=st.sampled_from([(), CRITERIA]), target=st.none() | rates),
)
