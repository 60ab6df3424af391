"""Events → Run: the one place that says what each event means for the state of a run."""

from collections.abc import Iterable
from functools import reduce, singledispatch

from ipyrefine.core.deciding import amend, append, decide
from ipyrefine.core.events import (
    BestChanged,
    BudgetUsed,
    Compared,
    CritiqueReady,
    Decided,
    DraftLost,
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
from ipyrefine.core.runs import Heard, Iteration, Run, StopReason
from ipyrefine.core.usage import Usage


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
        compares=event.compares,
        draft=event.draft,
        prompts=event.prompts,
        price=event.price,
        allowed=event.limits.max_iterations,
    )


@_apply.register
def _(event: StageStarted, run: Run) -> Run:
    return run.model_copy(update={"stage": event.stage, "stop_reason": None, "message": ""})


@_apply.register
def _(event: TextDelta, run: Run) -> Run:
    return run


@_apply.register
def _(event: DraftReady, run: Run) -> Run:
    for earlier in run.iterations:  # what compared them has to look at one more now
        kept = tuple(evidence for evidence in earlier.evidence if not evidence.comparing)
        run = amend(run, earlier.number, evidence=kept)
    draft = Iteration(
        number=len(run.iterations), text=event.text, thoughts=event.thoughts, author=event.author
    )
    return append(run, draft, event.candidate)


@_apply.register
def _(event: DraftLost, run: Run) -> Run:
    heard = tuple(heard for heard in run.heard if heard.iteration != event.candidate)
    unassigned = dict(run.unassigned)
    consumed = unassigned.pop(event.candidate, Usage())
    if run.iterations:  # somebody has to bear it: the text before, or else the one after
        last = run.iterations[-1]
        run = amend(run, last.number, usage=last.usage + consumed)
    else:
        following = event.candidate + 1
        unassigned[following] = unassigned.get(following, Usage()) + consumed
    return run.model_copy(update={"lost": run.lost + 1, "heard": heard, "unassigned": unassigned})


@_apply.register
def _(event: RevisionReady, run: Run) -> Run:
    revision = Iteration(
        number=event.iteration,
        parent=event.parent,
        text=event.text,
        thoughts=event.thoughts,
        changes=event.changes,
        flaw=event.flaw,
        findings=run.iterations[event.parent].findings + event.findings,
    )
    return append(run, revision).model_copy(
        update={"head": None, "selected": (), "revise_asked": False}
    )


@_apply.register
def _(event: CritiqueReady, run: Run) -> Run:
    iteration = run.iterations[event.iteration]
    findings = iteration.findings + event.critique.findings
    run = amend(run, event.iteration, findings=findings, critiqued=True)
    run = run.model_copy(update={"heard": ()})
    return _apply(event.reached, run) if event.reached else run


@_apply.register
def _(event: EvidenceReady, run: Run) -> Run:
    evidence = (*run.iterations[event.iteration].evidence, event.evidence)
    return amend(run, event.iteration, evidence=evidence)


@_apply.register
def _(event: VerdictReached, run: Run) -> Run:
    run = amend(run, event.iteration, verdict=event.verdict, findings=event.findings)
    stale = tuple(number for number in run.stale if number != event.iteration)
    return run.model_copy(update={"stale": stale, "heard": ()})


@_apply.register
def _(event: Compared, run: Run) -> Run:
    compared = run.iterations[event.iteration].compared + 1
    run = amend(run, event.iteration, compared=compared, barred=not event.won)
    return run.model_copy(update={"heard": ()})


@_apply.register
def _(event: BestChanged, run: Run) -> Run:
    return run.model_copy(update={"best": event.iteration})


@_apply.register
def _(event: BudgetUsed, run: Run) -> Run:
    spent = run.spent | {event.stage: run.spent.get(event.stage, Usage()) + event.usage}
    usage = run.usage + event.usage
    run = _hear(run, event).model_copy(update={"usage": usage, "spent": spent})
    if event.iteration >= len(run.iterations):
        usage = run.unassigned.get(event.iteration, Usage()) + event.usage
        return run.model_copy(update={"unassigned": run.unassigned | {event.iteration: usage}})
    usage = run.iterations[event.iteration].usage + event.usage
    return amend(run, event.iteration, usage=usage)


@_apply.register
def _(event: Warned, run: Run) -> Run:
    return run.model_copy(update={"warnings": (*run.warnings, event.message)})


@_apply.register
def _(event: Decided, run: Run) -> Run:
    return decide(run, event.decision)


@_apply.register
def _(event: Stopped, run: Run) -> Run:
    heard = run.heard
    useless = len(heard) > 1 or any(reply.finish != "stop" for reply in heard)
    if event.reason is StopReason.FAILED and useless and run.stage == "draft":
        heard = ()  # no first text could be made of them: it has to be asked for anew
    stopped = {"stop_reason": event.reason, "message": event.message, "stage": "", "heard": heard}
    lost = run.lost if run.iterations else 0  # going on asks for them anew
    return run.model_copy(update={**stopped, "lost": lost})


def _hear(run: Run, event: BudgetUsed) -> Run:
    if event.finish is None:
        return run
    heard = Heard(
        stage=event.stage,
        iteration=event.iteration,
        text=event.text,
        finish=event.finish,
        warnings=len(run.warnings),
        critic=event.critic,
    )
    return run.model_copy(update={"heard": (*run.heard, heard)})
