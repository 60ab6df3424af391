"""Events → Run: the one place that says what each event means for a run."""

from collections.abc import Iterable
from functools import reduce

from ipyrefine.core import events
from ipyrefine.core.actions import decide
from ipyrefine.core.changes import amend, append, ask_for, change_points, handed_on, mark
from ipyrefine.core.events import Event
from ipyrefine.core.model import Form, Stage, StopReason
from ipyrefine.core.points import ground, take_feedback
from ipyrefine.core.run import Call, Explanation, Iteration, Run
from ipyrefine.core.table import Point, Result
from ipyrefine.core.testing import is_critics


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
            # What a call that broke off wrote is not shown any longer.
            calls = (one if one.finish else one.replace(text="") for one in run.calls)
            return run.replace(stage=event.stage, calls=tuple(calls), stop_reason=None, message="")
        case events.TextDelta():
            return run
        case events.FormChosen():
            return _settle_form(run.without_replies(), event.form)
        case events.DraftReady():
            return _add_draft(run, event)
        case events.RevisionReady():
            return _add_revision(run, event)
        case events.CritiqueReady(by="evaluator"):
            return _add_evaluation(run, event)
        case events.CritiqueReady():
            return _add_critique(run, event)
        case events.EvidenceReady():
            return _add_evidence(run, event)
        case events.TestsRun():
            results = run.iterations[event.iteration].results | event.results
            return amend(run, event.iteration, results=results)
        case events.ExplanationReady():
            found = Explanation(**event.model_dump(include=set(Explanation.model_fields)))
            run = run.replace(explanations=(*run.explanations, found))
            if event.ends:  # what was the user's wish only asked something
                left = {id_: one for id_, one in run.points.items() if not one.by_user}
                for text in run.iterations:
                    results = {id_: one for id_, one in text.results.items() if id_ in left}
                    run = amend(run, text.number, results=results)
                run = run.without_replies().replace(points=left)
            return run
        case events.VerdictReached(iteration=number):
            if event.points:
                run = run.replace(points=run.points | {one.id: one for one in event.points})
            run = amend(run, number, verdict=event.verdict, results=event.results)
            stale = tuple(other for other in run.stale if other != number)
            return run.without_replies().replace(stale=stale)
        case events.BestChanged():
            return run.replace(best=event.iteration)
        case events.CallEnded():
            return _add_call(run, event)
        case events.Warned():
            return run.replace(warnings=(*run.warnings, event.message))
        case events.Decided():
            return decide(run, event.decision)
        case events.CellRan():
            return run.replace(ran=event.ran)
        case events.Stopped():
            return _stop(run, event)


def _add_draft(run: Run, event: events.DraftReady) -> Run:
    run = _settle_form(run, event.form, event.kind, event.language)
    draft = Iteration(
        number=len(run.iterations), text=event.text, thoughts=event.thoughts, author=event.author
    )
    run = append(run, draft)
    return ask_for(run, run.setup.wish, "task") if event.author == "user" else run


def _settle_form(run: Run, form: Form | None, kind: str = "", language: str = "") -> Run:
    setup, words = run.setup, run.setup.words
    if words and form == "prose":
        task = next((one for one in words.tasks if one.profile == kind), words.tasks[0])
        task = task.replace(materials=run.task.materials)
        checks = (*setup.own, *words.checks)
        setup = setup.replace(task=task, checks=checks, demands=words.demands, words=None)
    elif words and form:
        checks = tuple(name for name in setup.checks if name not in words.checks)
        setup = setup.replace(checks=checks, words=None)
    if setup.task.form == "code" and language and not setup.task.language:
        setup = setup.replace(task=setup.task.replace(language=language))
        if setup.task.is_foreign:  # nothing runs it here
            setup = setup.replace(checks=setup.own, demands=())
    return run.replace(setup=setup)


def _add_revision(run: Run, event: events.RevisionReady) -> Run:
    text = event.revision
    assert text.parent is not None, "it was made from one"
    run = append(run, text.replace(results=handed_on(run, text.parent))).replace(
        head=None, selected=(), revision_requested=False, awaits_user=False
    )
    # Feedback of the user's evaluator is not contested: it is asked anew.
    points = (run.points[id_] for id_ in text.contested if id_ in run.points)
    claims = (p.id for p in points if p.source == "critic" and p.kind != "fact")

    def contest(one: Point) -> Point:
        return one.replace(contests=(*one.contests, text.changes[one.id]), upheld=None)

    return change_points(run, claims, contest)


def _add_critique(run: Run, event: events.CritiqueReady) -> Run:
    critique, text = event.critique, run.iterations[event.iteration]
    results = text.results | {
        id_: text.results[id_].replace(passed=False, again=True) for id_ in event.regressed
    }
    mended = (id_ for id_ in critique.fixed if id_ in results and run.points[id_].said)
    results |= {id_: results[id_].replace(passed=True) for id_ in mended}
    results |= {one.id: Result(passed=False) for one in critique.remarks}
    run = amend(run, event.iteration, results=results, reading=critique.reading)
    new = {one.id: one for one in (*critique.remarks, *critique.tests)}
    run = run.without_replies().replace(points=run.points | new)
    if critique.reading.failure:
        return run

    kept, let_go = critique.upheld or (), critique.dropped
    run = change_points(run, kept + let_go, lambda one: one.replace(upheld=one.id in kept))
    said = [id_ for id_ in let_go if not is_critics(run.points[id_])]  # a test's result stands
    return mark(run, said, lambda text, id_: id_ in text.results, passed=True)


def _add_evaluation(run: Run, event: events.CritiqueReady) -> Run:
    text, said = run.iterations[event.iteration], event.critique
    if said.remarks or not said.reading.failure:
        column = take_feedback(run, text, ground(said.remarks, text.text))
        mended = {id_: column.results[id_].replace(passed=True) for id_ in said.fixed}
        run = amend(run.replace(points=column.points), text.number, results=column.results | mended)
    return amend(run, text.number, evaluation=said.reading).without_replies()


def _add_evidence(run: Run, event: events.EvidenceReady) -> Run:
    # In the order of the checks, whichever ended first.
    places = {name: place for place, name in reversed([*enumerate(run.setup.checks)])}
    earlier, name = run.iterations[event.iteration].evidence, event.evidence.name
    found = (*(one for one in earlier if one.name != name or not one.outdated), event.evidence)
    evidence = sorted(found, key=lambda one: places.get(one.name, len(places)))
    return amend(run, event.iteration, evidence=tuple(evidence))


def _add_call(run: Run, event: events.CallEnded) -> Run:
    about = (event.stage, event.iteration)
    again = any((one.stage, one.iteration) == about for one in run.replies)
    call = Call(**{name: getattr(event, name) for name in Call.model_fields})
    if event.stage is Stage.EXPLAIN:  # its answer comes at once
        call = call.replace(text="", finish=None)
    return run.replace(calls=(*run.calls, call), repairs=run.repairs + again)


def _stop(run: Run, event: events.Stopped) -> Run:
    useless = len(run.replies) > 1 or any(one.finish != "stop" for one in run.replies)
    if event.reason is StopReason.FAILED and useless and run.stage is Stage.DRAFT:
        run = run.without_replies()  # no draft could be made of them: it has to be asked for again
    return run.replace(stop_reason=event.reason, message=event.message, stage=None)
