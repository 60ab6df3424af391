"""What the texts of a run still wait for: pure functions of the run."""

from collections.abc import Iterator
from itertools import takewhile

from ipyrefine.core.records import Outcome
from ipyrefine.core.runs import Iteration, Run


def undrafted(run: Run) -> tuple[int, ...]:
    """The first texts to write at once now, by number; none once the checks have settled it.

    With checks, only as many are written as it takes: one (two where a check compares them), then
    up to three, five, and so on, so that of an odd number most can agree (Adaptive-Consistency,
    arXiv 2305.11860). Without checks nothing can settle it, and all are written at once.
    """
    wanted = 1 if run.draft is not None else run.limits.candidates
    begun = len(run.iterations) + run.lost
    if run.revisions or begun >= wanted:
        return ()
    first = (2 if run.compares else 1) if run.checks else wanted
    if begun < first:
        return tuple(range(begun, min(first, wanted)))
    complete = begun == first or begun % 2 == 1  # a run may have been cut short in between
    if complete and (unchecked(run) or any(i.verdict or proven(i) for i in run.iterations)):
        return ()
    return tuple(range(begun, min(begun + 1 + begun % 2, wanted)))


def unverified(run: Run) -> Iteration | None:
    """The first iteration without a verdict, or with one from before the rubric changed."""
    return next(_waiting(run), None)


def unchecked(run: Run) -> Iteration | None:
    """The first iteration without a verdict that checks have still to run on."""
    return next((i for i in _waiting(run) if needs_checking(run, i)), None)


def needs_checking(run: Run, iteration: Iteration) -> bool:
    """Whether checks have still to run on an iteration; not on a text that was there before."""
    return len(iteration.evidence) < len(run.checks) and twin(run, iteration) is None


def twin(run: Run, iteration: Iteration) -> Iteration | None:
    """The earlier iteration with the same text, if any: nothing new is there to verify."""
    if iteration.flaw and iteration.parent is not None:
        return run.iterations[iteration.parent]
    text, key = iteration.text, hash(iteration.text)
    # A text remembers its hash, so that only one that is the same is read to its end.
    alike = (i for i in run.iterations[: iteration.number] if hash(i.text) == key)
    return next((i for i in alike if i.text == text), None)


def proven(iteration: Iteration) -> bool:
    """Whether the checks settle that a text passes, so that no judge is asked."""
    telling = iteration.telling
    return bool(telling) and all(e.decisive and (e.passed or not e.required) for e in telling)


def unproven(run: Run, iteration: Iteration) -> bool:
    """Whether a PASS rests on a judge's word alone, on a first text nobody criticised yet.

    Judges of a model's own family pass nearly everything (arXiv 2402.11436), so that without
    a passed check the first text is criticised once before it may pass.
    """
    verdict = iteration.verdict
    return (
        verdict is not None
        and verdict.outcome is Outcome.PASS
        and verdict.author == "model"
        and iteration.parent is None
        and not iteration.critiqued
        and run.limits.min_findings > 0
        and not any(evidence.passed for evidence in iteration.evidence)
    )


def _waiting(run: Run) -> Iterator[Iteration]:
    if run.stale:
        return (i for i in run.iterations if i.verdict is None or i.number in run.stale)
    # Texts are verified in their order: a long run need not be gone through from its start.
    latest = list(takewhile(lambda i: i.verdict is None, reversed(run.iterations)))
    return reversed(latest)
