"""Events → Run: the one place that says what each event means for the state of a run."""

from collections.abc import Iterable
from functools import reduce, singledispatch
from typing import Any

from ipyrefine.loop.events import (
    BestChanged,
    BudgetUsed,
    CritiqueReady,
    Decided,
    DraftReady,
    Event,
    EvidenceReady,
    RevisionReady,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
    VerdictReached,
    Warned,
)
from ipyrefine.loop.records import Finding, Outcome, Severity, Usage, Verdict
from ipyrefine.loop.runs import Decision, Iteration, Run


def fold(events: Iterable[Event], run: Run | None = None) -> Run:
    """Apply events in order to a run (a new one by default)."""
    return reduce(apply, events, run or Run())


def apply(run: Run, event: Event) -> Run:
    """Apply one event; its time becomes the run's."""
    return _apply(event, run).model_copy(update={"seconds": max(run.seconds, event.at)})


@singledispatch
def _apply(event: object, run: Run) -> Run:
    raise TypeError(f"{type(event).__name__} is not an event")


@_apply.register
def _(event: RunStarted, run: Run) -> Run:
    return Run(
        task=event.task,
        limits=event.limits,
        model=event.model,
        judge=event.judge,
        checks=event.checks,
        draft=event.draft,
        allowed=event.limits.max_iterations,
    )


@_apply.register
def _(event: StageStarted, run: Run) -> Run:
    return run.model_copy(update={"stage": event.stage})


@_apply.register
def _(event: TextDelta, run: Run) -> Run:
    return run


@_apply.register
def _(event: DraftReady, run: Run) -> Run:
    return _append(
        run, Iteration(number=0, text=event.text, thoughts=event.thoughts, author=event.author)
    )


@_apply.register
def _(event: RevisionReady, run: Run) -> Run:
    revision = Iteration(
        number=event.iteration,
        parent=event.parent,
        text=event.text,
        thoughts=event.thoughts,
        changes=event.changes,
        flaw=event.flaw,
        findings=run.iterations[event.parent].findings,
    )
    return _append(run, revision).model_copy(update={"head": None, "revise_asked": False})


@_apply.register
def _(event: CritiqueReady, run: Run) -> Run:
    iteration = run.iterations[event.iteration]
    findings = iteration.findings + event.critique.findings
    return _amend(run, event.iteration, findings=findings, critiqued=True)


@_apply.register
def _(event: EvidenceReady, run: Run) -> Run:
    evidence = (*run.iterations[event.iteration].evidence, event.evidence)
    return _amend(run, event.iteration, evidence=evidence)


@_apply.register
def _(event: VerdictReached, run: Run) -> Run:
    return _amend(run, event.iteration, verdict=event.verdict, findings=event.findings)


@_apply.register
def _(event: BestChanged, run: Run) -> Run:
    return run.model_copy(update={"best": event.iteration})


@_apply.register
def _(event: BudgetUsed, run: Run) -> Run:
    run = run.model_copy(update={"usage": run.usage + event.usage})
    if event.iteration >= len(run.iterations):
        return run.model_copy(update={"unassigned": run.unassigned + event.usage})
    usage = run.iterations[event.iteration].usage + event.usage
    return _amend(run, event.iteration, usage=usage)


@_apply.register
def _(event: Warned, run: Run) -> Run:
    return run.model_copy(update={"warnings": (*run.warnings, event.message)})


@_apply.register
def _(event: Decided, run: Run) -> Run:
    allowed = run.allowed if run.stop_reason is None else max(0, len(run.iterations) - 1)
    run = run.model_copy(
        update={
            "decisions": (*run.decisions, event.decision),
            "allowed": allowed,
            "stop_reason": None,
            "message": "",
        }
    )
    return _decide(run, event.decision)


@_apply.register
def _(event: Stopped, run: Run) -> Run:
    return run.model_copy(
        update={"stop_reason": event.reason, "message": event.message, "stage": ""}
    )


def _append(run: Run, iteration: Iteration) -> Run:
    iteration = iteration.model_copy(update={"usage": run.unassigned})
    return run.model_copy(
        update={"iterations": (*run.iterations, iteration), "unassigned": Usage()}
    )


def _amend(run: Run, number: int, **changes: Any) -> Run:
    iterations = list(run.iterations)
    iterations[number] = iterations[number].model_copy(update=changes)
    return run.model_copy(update={"iterations": tuple(iterations)})


def _decide(run: Run, decision: Decision) -> Run:
    """What the user's decision changes besides being on record."""
    if decision.kind == "accept" or not run.iterations:
        return run
    number = decision.iteration
    if number is None:
        number = run.chosen.number if run.chosen else 0
    if decision.outcome is Outcome.PASS:
        return _overrule(run, number, decision).model_copy(update={"best": number})
    if decision.kind == "override":
        run = _overrule(run, number, decision)
    if decision.text:
        run = _blame(run, number, decision.text)
    if decision.kind == "guide":
        return run
    return _go_on(run, number, max(1, decision.rounds))


def _overrule(run: Run, number: int, decision: Decision) -> Run:
    before = run.iterations[number].verdict
    outcome = decision.outcome or Outcome.NEEDS_IMPROVEMENT
    verdict = (before or Verdict(outcome=outcome, score=None)).model_copy(
        update={"outcome": outcome, "author": "user", "why": decision.text or "Your decision."}
    )
    return _amend(run, number, verdict=verdict)


def _blame(run: Run, number: int, problem: str) -> Run:
    """Put the user's words on the iteration as a blocking finding of theirs."""
    iteration = run.iterations[number]
    finding = Finding(
        id=new_id(run),
        criterion="guidance",
        severity=Severity.BLOCKING,
        problem=problem,
        author="user",
    )
    changes: dict[str, Any] = {"findings": (*iteration.findings, finding)}
    if iteration.verdict:
        changes["verdict"] = iteration.verdict.model_copy(
            update={
                "unresolved": (*iteration.verdict.unresolved, finding.id),
                "user_met": False,
                "outcome": Outcome.NEEDS_IMPROVEMENT,
            }
        )
    return _amend(run, number, **changes)


def _go_on(run: Run, number: int, rounds: int) -> Run:
    return run.model_copy(
        update={
            "allowed": run.allowed + rounds,
            "plateau_from": len(run.iterations) - 1,
            "head": number,
            "revise_asked": True,
        }
    )


def new_id(run: Run, taken: int = 0) -> str:
    """The next free finding id of a run, ``taken`` more being in use already."""
    known = {finding.id for iteration in run.iterations for finding in iteration.findings}
    return f"f{len(known) + taken + 1}"
