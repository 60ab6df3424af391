"""Events → Run: the one place that says what each event and decision means for a run."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from ipyrefine.core import decisions, events
from ipyrefine.core.coaching import open_puzzle
from ipyrefine.core.decisions import Decision
from ipyrefine.core.events import Event
from ipyrefine.core.expectations import (
    Expectation,
    contains_quote,
    contested,
    in_force,
    suite_evidence,
)
from ipyrefine.core.findings import ground, replace_feedback, resolve, with_ids
from ipyrefine.core.model import (
    FEEDBACK,
    GUIDANCE,
    RESULTS,
    SUITE,
    ByUser,
    Choice,
    Clarification,
    Evidence,
    Finding,
    Form,
    Row,
    Severity,
    Stage,
    Status,
    StopReason,
    Usage,
    Verdict,
    on_conditions,
)
from ipyrefine.core.results import claims, gives_same, is_exception, key_of, rows
from ipyrefine.core.run import Explanation, Iteration, Run, UnconsumedReply
from ipyrefine.core.scopes import names_needed
from ipyrefine.core.syntax import is_literal, try_parse_expression
from ipyrefine.errors import UsageError

Findings = Iterable[Finding]


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
            run = _amend(
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
            return _decide(run, event.decision)
        case events.Stopped():
            return _stop(run, event)


def _add_draft(run: Run, event: events.DraftReady) -> Run:
    run = _settle_form(run, event.form, event.kind, event.language)
    draft = Iteration(
        number=len(run.iterations), text=event.text, thoughts=event.thoughts, author=event.author
    )
    run = _append(run, draft, event.candidate)
    return _require(run, run.setup.wish) if event.author == "user" else run


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
        run = _amend(run, last.number, usage=last.usage + consumed)
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
    run = _append(run, revision).replace(
        head=None, selected=(), revision_requested=False, awaits_user=False
    )
    kept = {change.finding: change.summary for change in event.changes if change.keeps}
    contested_tests = (f for f in revision.findings if f.id in kept and f.check == SUITE)
    reasons = {f.criterion: kept[f.id] for f in contested_tests}
    run = _change_tests(run, reasons, lambda test: test.contested_for(reasons[test.name]))
    return _map_findings(
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
    run = _amend(
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
    run = _change_tests(run, asked, lambda test: test.replace(upheld=test.name in critique.upheld))

    def answered(finding: Finding) -> Finding:
        if finding.id in critique.dropped:
            return finding.replace(upheld=False, status=Status.RESOLVED)
        stands_by = finding.unanswered and finding.id in critique.upheld
        return finding.replace(upheld=True) if stands_by else finding

    return _map_findings(run, lambda iteration: map(answered, iteration.findings))


def _add_evaluation(run: Run, event: events.EvaluationReady) -> Run:
    text, judgement = run.iterations[event.iteration], event.judgement
    changes: dict[str, Any] = {"judgement": judgement, "unread": event.failure}
    if judgement:
        feedback = ground(judgement.findings, text.text)
        changes["findings"] = replace_feedback(run, text.findings, feedback)
    return _amend(run, event.iteration, **changes).replace(unconsumed_replies=())


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
    return _amend(run, event.iteration, evidence=tuple(evidence))


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
        return _amend(run, number, usage=run.iterations[number].usage + event.usage)
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


# Decisions: what each needs


def require_possible(run: Run, decision: Decision) -> None:
    """Refuse a decision that cannot be carried out on a run.

    Raises:
        UsageError: there is no such text or finding, or a part is missing.
    """
    first = isinstance(decision, decisions.Continue) and not (run.iterations or decision.guidance)
    if not first and not isinstance(decision, decisions.Criteria):
        if not run.iterations:
            raise UsageError("There is no text yet. Continue the run first.")
        number = getattr(decision, "iteration", None)
        if number is not None:
            require_iteration(run, number)
    match decision:
        case decisions.Select(findings=ids):
            _require_findings(run, ids, "select")
        case decisions.Dismiss(findings=ids):
            _require_findings(run, ids, "dismiss")
            for finding in run.findings:
                if finding.id in ids and finding.binding:
                    raise UsageError(
                        f"{finding.id} comes from the check {finding.check} and cannot be "
                        "dismissed. Override the verdict instead."
                    )
        case decisions.Guide(guidance=words) if not words.strip():
            raise UsageError('The guidance is empty: %refine continue "shorter, please".')
        case decisions.Edit(text=text) if not text.strip():
            raise UsageError("The edited text is empty.")
        case decisions.Drop(demand=demand) if demand not in run.demands:
            names = ", ".join(run.demands) or "none"
            raise UsageError(f"There is no demand {demand!r}. This run has: {names}.")
        case decisions.Add(finding=finding, iteration=number):
            if not finding.problem.strip():
                raise UsageError("A finding needs a problem in words.")
            about = run.chosen if number is None else run.iterations[number]
            if about and not contains_quote(about.text, finding.quote):
                raise UsageError(f"The quoted words are not in {run.mention(about.number)}.")
        case decisions.Criteria(criteria=(), target=None):
            raise UsageError("Name the new criteria, a target, or both.")
        case decisions.Predict() if not (run.setup.coach and open_puzzle(run)):
            raise UsageError("There is no result to predict.")
        case decisions.Predict(result=result, raises=raises):
            _require_value(result, raises=raises)
        case _ if run.setup.coach and (
            decision.asks_for_revision or isinstance(decision, decisions.Expect)
        ):
            raise UsageError("Nothing is written for you here. Change your cell, and run it again.")
        case decisions.Expect():
            _require_result(run, decision)
        case decisions.Retract(call=call, setup=setup):
            expected = {key_of(one.call, one.setup) for one in run.task.clarifications}
            if key_of(call, setup) not in expected:
                raise UsageError(f"You expect no result of {call[:80]}.")


def require_iteration(run: Run, number: int) -> None:
    """Raise a UsageError for a number that no iteration has."""
    if not 0 <= number < len(run.iterations):
        last = len(run.iterations) - 1
        raise UsageError(f"There is no text {number}. This run has texts 0 to {last}.")


def _require_findings(run: Run, ids: tuple[str, ...], verb: str) -> None:
    if not ids:
        raise UsageError(f"Say which findings to {verb}.")
    if missing := [id_ for id_ in ids if id_ not in {finding.id for finding in run.findings}]:
        raise UsageError(f"There is no finding {missing[0]!r} in this run.")


def _require_result(run: Run, expected: decisions.Expect) -> None:
    if not run.task.is_python:
        raise UsageError("Only what Python code gives can be expected; say it as guidance.")
    if try_parse_expression(expected.call) is None:
        raise UsageError(f"{expected.call[:80]!r} is not a Python expression.")
    _require_value(expected.result, raises=expected.raises)
    lacks = {
        one
        for iteration in run.iterations
        for one in iteration.conditions
        if one.name in names_needed(iteration.text, f"{expected.setup}\n{expected.call}")
    }
    if lacks:
        raise UsageError(
            f"This was computed {on_conditions(sorted(lacks, key=str))}, so it can't become an "
            "example. Accept the text and run it to see what all rows give."
        )


def _require_value(result: str, *, raises: bool) -> None:
    if not (is_exception(result) if raises else is_literal(result)):
        raise UsageError(f"{result[:80]!r} is neither a value as Python nor an exception's name.")


# Decisions: what each changes


def _decide(run: Run, decision: Decision) -> Run:
    stopped = run.stop_reason is not None
    number = getattr(decision, "iteration", None)
    if number is None:
        number = run.chosen.number if run.chosen else 0
    if decision.settles:
        decision = decision.replace(iteration=number)
    run = run.replace(
        decisions=(*run.decisions, decision),
        stop_reason=None,
        message="",
        unconsumed_replies=(),  # the next question may be another one
    )
    if run.iterations or isinstance(decision, decisions.Criteria):
        run = _effect(run, decision, number)
    if not run.iterations or decision.settles:
        return run
    if decision.asks_for_revision:
        return _allow_revision(run, decision, number, stopped)
    return run.replace(awaits_user=run.awaits_user or stopped)


def _effect(run: Run, decision: Decision, number: int) -> Run:
    """Return the run with what a decision changes by itself; ``number`` is its iteration."""
    match decision:
        case decisions.Override():
            return _override(run, decision, number)
        case decisions.Continue() | decisions.Branch() | decisions.Guide():
            return _require(run, decision.guidance)
        case decisions.Select():
            return _require(run.replace(selected=decision.findings), decision.guidance)
        case decisions.Edit():
            return _add_edit(run, decision.text, number)
        case decisions.Dismiss():
            return _dismiss(run, decision)
        case decisions.Drop():
            return _drop_demand(run, decision.demand)
        case decisions.Add():
            return _add_finding(run, decision.finding)
        case decisions.Criteria():
            return _change_criteria(run, decision)
        case decisions.Expect():
            return _expect(run, decision)
        case decisions.Predict(result=result, raises=raises):
            puzzle = open_puzzle(run)
            assert puzzle is not None, "it was looked for before the decision was taken"
            attempt = puzzle.attempt(Choice(result=result, raises=raises))
            return run.replace(attempts=(*run.attempts, attempt))
        case decisions.Retract(call=call, setup=setup):
            return _change_examples(run, key_of(call, setup))
    return run


def _override(run: Run, decision: decisions.Override, number: int) -> Run:
    before = run.iterations[number].verdict
    verdict = (before or Verdict(outcome=decision.outcome, score=None)).replace(
        outcome=decision.outcome, basis="user", because=ByUser(words=decision.reason)
    )
    overruled = run.iterations[number].overruled or (before.outcome if before else None)
    run = _amend(run, number, verdict=verdict, override=decision, overruled=overruled)
    return run if decision.settles else _require(run, decision.reason)


def _add_edit(run: Run, text: str, parent: int) -> Run:
    edited = Iteration(
        number=len(run.iterations),
        parent=parent,
        text=text,
        author="user",
        findings=run.iterations[parent].findings,
    )
    return _append(run, edited).replace(
        allowed_revisions=run.allowed_revisions + 1,  # the user's own costs none of them
        patience_from=edited.number,
        head=edited.number,
    )


def _change_tests(
    run: Run, names: Iterable[str], change: Callable[[Expectation], Expectation]
) -> Run:
    """Return the run with some of its critic's tests changed, and what they show of each text."""
    names = set(names)
    if not names:
        return run
    expectations = tuple(change(one) if one.name in names else one for one in run.expectations)
    counted = {one.name for one in in_force(expectations)}
    for iteration in run.iterations:
        evidence = tuple(
            suite_evidence(
                expectations, [r for r in one.results if r.name in counted], one.seconds
            ).replace(computed=one.computed)
            if one.name == SUITE
            else one
            for one in iteration.evidence
        )
        run = _amend(run, iteration.number, evidence=evidence)
    return run.replace(expectations=expectations)


def _dismiss(run: Run, decision: decisions.Dismiss) -> Run:
    tests = {f.criterion for f in run.findings if f.id in decision.findings and f.check == SUITE}
    before = run.iterations
    run = _change_tests(run, tests, lambda test: test.replace(status=Status.DISMISSED))
    run = _dismiss_all(run, decision.reason, lambda finding: finding.id in decision.findings)
    for old, new in zip(before, run.iterations, strict=True):
        gone = [f for f in old.findings if f.is_open and f.id in decision.findings]
        left = [f for f in new.findings if f.is_open and f.id not in decision.findings]
        if any(f.blocks for f in gone):
            left = [f for f in left if f.blocks]
        if new.ready is False and gone and not left:
            run = _amend(run, new.number, taken_back=True)
    return run


def _dismiss_all(run: Run, reason: str, wanted: Callable[[Finding], bool]) -> Run:
    return _map_findings(
        run,
        lambda iteration: (
            f.replace(status=Status.DISMISSED, reason=reason) if wanted(f) else f
            for f in iteration.findings
        ),
    )


def _drop_demand(run: Run, name: str) -> Run:
    """Go on as if a demand had never been made; only an evaluator's verdicts stay."""
    run = _dismiss_all(run, "You dropped it.", lambda finding: finding.check == name)
    for iteration in run.iterations:
        evidence = tuple(one for one in iteration.evidence if one.name != name)
        run = _amend(run, iteration.number, evidence=evidence)
    stale = {
        i.number for i in run.iterations if i.verdict and not i.override and i.judgement is None
    }
    setup = run.setup
    return run.replace(
        setup=setup.replace(
            checks=tuple(one for one in setup.checks if one != name),
            demands=tuple(one for one in setup.demands if one != name),
        ),
        stale=tuple(sorted({*run.stale, *stale})),
        patience_from=len(run.iterations) - 1,
    )


def _add_finding(run: Run, finding: Finding) -> Run:
    """Put a finding on every text that holds its quote, in place of one with its id."""
    if finding.id not in {one.id for one in run.findings}:
        (finding,) = with_ids(run, (finding,))
    finding = finding.replace(author="user", status=Status.OPEN, reason="")

    def findings(iteration: Iteration) -> Findings:
        if not contains_quote(iteration.text, finding.quote):
            return iteration.findings
        replaced = tuple(finding if f.id == finding.id else f for f in iteration.findings)
        return replaced if finding in replaced else (*replaced, finding)

    return _map_findings(run, findings)


def _change_criteria(run: Run, decision: decisions.Criteria) -> Run:
    """Judge by other criteria from now on, and judge every text again."""
    task, limits = run.task, run.limits
    if decision.target is not None:
        limits = limits.replace(target=decision.target)
    if decision.criteria:
        dropped = {c.name for c in task.criteria} - {c.name for c in decision.criteria}
        task = task.replace(criteria=decision.criteria)
        run = _dismiss_all(
            run,
            "Its criterion was dropped.",
            lambda finding: (
                finding.author == "model" and not finding.check and finding.criterion in dropped
            ),
        )
        run = run.replace(
            iterations=tuple(
                i.replace(critiqued=False, judgement=None, unread="") for i in run.iterations
            ),
            stale=tuple(i.number for i in run.iterations if i.verdict),
        )
    if (words := run.setup.words) and decision.criteria:
        tasks = (one.replace(criteria=decision.criteria) for one in words.tasks)
        words = words.replace(tasks=tuple(tasks))
    return run.replace(setup=run.setup.replace(task=task, limits=limits, words=words))


def _expect(run: Run, expected: decisions.Expect) -> Run:
    """Make a result an example of the task; a critic's test that says otherwise is dismissed."""
    key = key_of(expected.call, expected.setup)
    shown = rows(run, run.chosen) if run.chosen else ()
    row = next((one for one in shown if key_of(one.call, one.setup) == key), None)
    example = Clarification(
        call=expected.call,
        result=expected.result,
        raises=expected.raises,
        setup=expected.setup,
        leading=row is next((one for one in shown if not one.conditions), None),
        computed=_is_computed(run, expected),
    )
    against = [
        test.name
        for test in run.expectations
        if any(
            key_of(claim.call, claim.setup) == key and not gives_same(expected, claim)
            for claim in claims(test)
        )
    ]
    run = _change_tests(run, against, lambda test: test.replace(status=Status.DISMISSED))
    run = _change_examples(run, key, example)
    if row is not None and gives_same(expected, row):
        return run
    allowed = max(run.allowed_revisions, run.revisions + 1)
    return run.replace(allowed_revisions=allowed, patience_from=len(run.iterations) - 1)


def _is_computed(run: Run, expected: decisions.Expect) -> bool:
    """Return True if code that got copies of variables gave a result."""
    for evidence in (e for i in run.iterations for e in i.evidence if e.computed):
        given = (one.gives for one in evidence.results if one.gives)
        found: list[Row | Choice] = [*evidence.rows, *given]
        if any(gives_same(expected, one) for one in found):
            return True
    return False


def _change_examples(run: Run, key: tuple[str, str], example: Clarification | None = None) -> Run:
    """Put an example in place of the user's on an input, and have every text checked again."""
    others = (o for o in run.task.clarifications if key_of(o.call, o.setup) != key)
    task = run.task.replace(clarifications=(*others, *([example] if example else ())))

    def is_outdated(evidence: Evidence) -> bool:
        if evidence.name != RESULTS:
            return evidence.by_examples
        known = {key_of(row.call, row.setup) for row in evidence.rows}
        return example is not None and key not in known

    stale = {i.number for i in run.iterations if i.verdict and i.judgement is None}
    return run.replace(
        setup=run.setup.replace(task=task),
        iterations=tuple(
            i.replace(
                evidence=tuple(e.replace(outdated=e.outdated or is_outdated(e)) for e in i.evidence)
            )
            for i in run.iterations
        ),
        stale=tuple(sorted({*run.stale, *stale})),
    )


def _require(run: Run, guidance: str) -> Run:
    """Make the user's words a blocking finding on every text, until one is judged to meet it."""
    if not guidance.strip():
        return run
    finding = Finding(
        criterion=GUIDANCE, severity=Severity.BLOCKING, problem=guidance, author="user"
    )
    (finding,) = with_ids(run, (finding,))
    if run.selected:
        run = run.replace(selected=(*run.selected, finding.id))
    return _map_findings(run, lambda iteration: (*iteration.findings, finding))


def _allow_revision(run: Run, decision: Decision, number: int, stopped: bool) -> Run:
    """Allow the revisions that were asked for, beyond those a running loop has left."""
    more = getattr(decision, "revisions", 1)
    allowed = run.allowed_revisions + more
    if stopped:
        floor = run.allowed_revisions if run.limits.step else 0
        allowed = max(floor, run.revisions + more)
    # A running loop may be about to find something better than the best it has now.
    pinned = stopped or getattr(decision, "iteration", None) is not None
    return run.replace(
        allowed_revisions=allowed,
        patience_from=len(run.iterations) - 1,
        repairs=0,
        head=number if pinned else run.head,
        awaits_user=False,
        released=len(run.iterations),
        revision_requested=True,
    )


def _append(run: Run, iteration: Iteration, asked_as: int | None = None) -> Run:
    """Add an iteration, with what was consumed by the number that it was asked for under."""
    asked = iteration.number if asked_as is None else asked_as
    usage = run.pending_usage.get(asked, Usage())
    return run.replace(
        iterations=(*run.iterations, iteration.replace(usage=usage)),
        pending_usage={n: used for n, used in run.pending_usage.items() if n != asked},
        unconsumed_replies=tuple(r for r in run.unconsumed_replies if r.iteration != asked),
    )


def _amend(run: Run, number: int, **changes: Any) -> Run:
    iterations = list(run.iterations)
    iterations[number] = iterations[number].replace(**changes)
    return run.replace(iterations=tuple(iterations))


def _map_findings(run: Run, findings: Callable[[Iteration], Findings]) -> Run:
    def changed(iteration: Iteration) -> Iteration:
        found = tuple(findings(iteration))
        return iteration if found == iteration.findings else iteration.replace(findings=found)

    return run.replace(iterations=tuple(map(changed, run.iterations)))
