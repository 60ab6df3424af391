"""Events → Run: the one place that says what each event means for a run."""

from collections.abc import Iterable
from functools import reduce
from typing import Any

from ipyrefine.core import events
from ipyrefine.core.actions import decide
from ipyrefine.core.changes import amend, append, ask_for, change_tests, map_findings
from ipyrefine.core.events import Event
from ipyrefine.core.expectations import contested
from ipyrefine.core.findings import ground, replace_feedback, resolve
from ipyrefine.core.model import FEEDBACK, SUITE, Finding, Form, Stage, Status, StopReason, Usage
from ipyrefine.core.run import Explanation, Iteration, Run, UnconsumedReply


def replay(history: Iterable[Event], run: Run | None = None) -> Run:
    """Return the run that events lead to: from `RunStarted`, or of a run that they continue.

    Raises:
        ValueError: there is nothing to begin with.
    """
    iterator = iter(history)
    if run is None:
        first = next(iterator, None)
        if not isinstance(first, events.RunStarted):
            raise ValueError("a run begins with run_started")
        run = apply(Run.begin(first.setup), first)
    return reduce(apply, iterator, run)


def apply(run: Run, event: Event) -> Run:
    """Return the run after one event; the event's time becomes the run's."""
    return _apply(run, event).replace(seconds=max(run.seconds, event.at))


def _apply(run: Run, event: Event) -> Run:
    match event:
        case events.RunStarted():
            return Run.begin(event.setup)
        case events.StageStarted():
            return run.replace(stage=event.stage, stop_reason=None, message="", unfinished="")
        case events.TextDelta():
            return run
        case events.FormChosen():
            return _settle_form(run, event.form).replace(unconsumed_replies=())
        case events.DraftReady():
            return _add_draft(run, event)
        case events.DraftFailed():
            return _drop_draft(run, event.candidate)
        case events.RevisionReady():
            return _add_revision(run, event)
        case events.CritiqueReady():
            return _add_critique(run, event)
        case events.EvaluationReady():
            return _add_evaluation(run, event)
        case events.EvidenceReady():
            return _add_evidence(run, event)
        case events.ExplanationReady():
            found = Explanation(
                iteration=event.iteration, question=event.question, answer=event.answer
            )
            return run.replace(explanations=(*run.explanations, found))
        case events.VerdictReached(iteration=number):
            late = run.stop_reason is StopReason.ACCEPTED and run.iterations[number].verdict is None
            run = amend(
                run,
                number,
                verdict=event.verdict,
                findings=event.findings,
                read_late=late or run.iterations[number].read_late,
            )
            stale = tuple(other for other in run.stale if other != number)
            return run.replace(stale=stale, unconsumed_replies=())
        case events.BestChanged():
            return run.replace(best=event.iteration)
        case events.CallEnded():
            return _add_call(run, event)
        case events.Warned():
            return run.replace(warnings=(*run.warnings, event.message))
        case events.Decided():
            return decide(run, event.decision)
        case events.Stopped():
            return _stop(run, event)


def _add_draft(run: Run, event: events.DraftReady) -> Run:
    run = _settle_form(run, event.form, event.kind, event.language)
    draft = Iteration(
        number=len(run.iterations), text=event.text, thoughts=event.thoughts, author=event.author
    )
    run = append(run, draft, event.candidate)
    return ask_for(run, run.setup.wish) if event.author == "user" else run


def _settle_form(run: Run, form: Form | None, kind: str = "", language: str = "") -> Run:
    setup, words = run.setup, run.setup.words
    if words is None or form is None:
        return run
    if form == "prose":
        task = next((one for one in words.tasks if one.profile == kind), words.tasks[0])
        task = task.replace(materials=run.task.materials)
        checks = (*words.own, *words.checks)
        setup = setup.replace(task=task, checks=checks, demands=words.demands)
    elif language:  # nothing runs it here
        task = setup.task.replace(language=language)
        setup = setup.replace(task=task, checks=words.own, demands=())
    else:
        checks = tuple(name for name in setup.checks if name not in words.checks)
        setup = setup.replace(checks=checks)
    return run.replace(setup=setup.replace(words=None))


def _drop_draft(run: Run, candidate: int) -> Run:
    pending = dict(run.pending_usage)
    consumed = pending.pop(candidate, Usage())
    if run.iterations:  # its cost goes to the text before it, or else to the one after
        last = run.iterations[-1]
        run = amend(run, last.number, usage=last.usage + consumed)
    else:
        pending[candidate + 1] = pending.get(candidate + 1, Usage()) + consumed
    return run.replace(
        failed_drafts=run.failed_drafts + 1,
        unconsumed_replies=tuple(r for r in run.unconsumed_replies if r.iteration != candidate),
        pending_usage=pending,
    )


def _add_revision(run: Run, event: events.RevisionReady) -> Run:
    revision = Iteration(
        number=event.iteration,
        parent=event.parent,
        text=event.text,
        thoughts=event.thoughts,
        changes=event.changes,
        failure=event.failure,
        findings=run.iterations[event.parent].findings,
        acted_on=event.acted_on,
        sampled=event.sampled,
    )
    run = append(run, revision).replace(
        head=None, selected=(), revision_requested=False, awaits_user=False
    )
    kept = {change.finding: change.summary for change in event.changes if change.keeps}
    contested_tests = (f for f in revision.findings if f.id in kept and f.check == SUITE)
    reasons = {f.criterion: kept[f.id] for f in contested_tests}
    run = change_tests(run, reasons, lambda test: test.contested_for(reasons[test.name]))
    return map_findings(
        run,
        lambda iteration: (
            f.contested_for(kept[f.id])
            if f.id in kept and f.author == "model" and f.check != FEEDBACK
            else f
            for f in iteration.findings
        ),
    )


def _add_critique(run: Run, event: events.CritiqueReady) -> Run:
    critique = event.critique
    earlier = (
        f.replace(status=Status.REGRESSED) if f.id in event.regressed else f
        for f in run.iterations[event.iteration].findings
    )
    run = amend(
        run,
        event.iteration,
        findings=resolve(earlier, critique.fixed) + critique.findings,
        critiqued=True,
        ready=critique.ready,
        reason=critique.reason,
        taken_back=False,
        compared=critique.compared,
        lost=critique.lost,
        unread=critique.failure,
    )
    expectations = (*run.expectations, *critique.expectations)
    run = run.replace(unconsumed_replies=(), expectations=expectations)
    if critique.failure:
        return run
    asked = {one.name for one in contested(expectations)}
    run = change_tests(run, asked, lambda test: test.replace(upheld=test.name in critique.upheld))

    def answered(finding: Finding) -> Finding:
        if finding.id in critique.dropped:
            return finding.replace(upheld=False, status=Status.RESOLVED)
        stands_by = finding.unanswered and finding.id in critique.upheld
        return finding.replace(upheld=True) if stands_by else finding

    return map_findings(run, lambda iteration: map(answered, iteration.findings))


def _add_evaluation(run: Run, event: events.EvaluationReady) -> Run:
    text, judgement = run.iterations[event.iteration], event.judgement
    changes: dict[str, Any] = {"judgement": judgement, "unread": event.failure}
    if judgement:
        feedback = ground(judgement.findings, text.text)
        changes["findings"] = replace_feedback(run, text.findings, feedback)
    return amend(run, event.iteration, **changes).replace(unconsumed_replies=())


def _add_evidence(run: Run, event: events.EvidenceReady) -> Run:
    earlier = run.iterations[event.iteration].evidence
    name = event.evidence.name
    again = next((one for one in earlier if one.name == name and one.outdated), None)
    if name == SUITE:  # it grew, and was run once more
        again = next((one for one in earlier if one.name == SUITE), None)
    earlier = tuple(one for one in earlier if one is not again)
    # In the order of the checks, whichever ended first.
    places = {name: place for place, name in reversed([*enumerate(run.setup.checks)])}
    found = (*earlier, event.evidence)
    evidence = sorted(found, key=lambda one: places.get(one.name, len(places)))
    return amend(run, event.iteration, evidence=tuple(evidence))


def _add_call(run: Run, event: events.CallEnded) -> Run:
    number, replies = event.iteration, run.unconsumed_replies
    again = any((one.stage, one.iteration) == (event.stage, number) for one in replies)
    if event.finish is not None and event.stage is not Stage.EXPLAIN:
        reply = UnconsumedReply(
            stage=event.stage,
            iteration=number,
            text=event.text,
            finish=event.finish,
            warnings=len(run.warnings),
            usage=event.usage,
        )
        replies = (*replies, reply)
    if event.finish is None and event.stage in (Stage.DRAFT, Stage.REVISE):
        run = run.replace(unfinished=event.text)
    run = run.replace(
        usage=run.usage + event.usage,
        repairs=run.repairs + again,
        spent=run.spent | {event.stage: run.spent.get(event.stage, Usage()) + event.usage},
        unconsumed_replies=replies,
    )
    if number < len(run.iterations):
        return amend(run, number, usage=run.iterations[number].usage + event.usage)
    pending = run.pending_usage.get(number, Usage()) + event.usage
    return run.replace(pending_usage=run.pending_usage | {number: pending})


def _stop(run: Run, event: events.Stopped) -> Run:
    replies = run.unconsumed_replies
    useless = len(replies) > 1 or any(reply.finish != "stop" for reply in replies)
    if event.reason is StopReason.FAILED and useless and run.stage is Stage.DRAFT:
        replies = ()  # no draft could be made of them: it has to be asked for again
    return run.replace(
        stop_reason=event.reason,
        message=event.message,
        stage=None,
        unconsumed_replies=replies,
        # Without any draft, continuing asks for all of them again.
        failed_drafts=run.failed_drafts if run.iterations else 0,
    )
