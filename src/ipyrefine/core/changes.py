"""What the user's decisions change in a run; `actions` says which of them does what."""

from collections.abc import Callable, Iterable
from typing import Any

from ipyrefine.core import decisions
from ipyrefine.core.expectations import Expectation, contains_quote, in_force, suite_evidence
from ipyrefine.core.findings import with_ids
from ipyrefine.core.model import (
    GUIDANCE,
    RESULTS,
    SUITE,
    Choice,
    Clarification,
    Evidence,
    Finding,
    Row,
    Severity,
    Status,
    Usage,
    Verdict,
)
from ipyrefine.core.rank import overridden
from ipyrefine.core.results import claims, gives_same, key_of, rows
from ipyrefine.core.run import Iteration, Run

Findings = Iterable[Finding]


def override(run: Run, decision: decisions.Override, number: int) -> Run:
    """Put the user's verdict in place of a text's own."""
    before = run.iterations[number].verdict
    verdict = overridden(before or Verdict(outcome=decision.outcome, score=None), decision)
    overruled = run.iterations[number].overruled or (before.outcome if before else None)
    run = amend(run, number, verdict=verdict, override=decision, overruled=overruled)
    return run if decision.settles else ask_for(run, decision.reason)


def add_edit(run: Run, edit: decisions.Edit, parent: int) -> Run:
    """Add the user's own text."""
    edited = Iteration(
        number=len(run.iterations),
        parent=parent,
        text=edit.text,
        author="user",
        findings=run.iterations[parent].findings,
    )
    return append(run, edited).replace(
        allowed_revisions=run.allowed_revisions + 1,  # the user's own costs none of them
        patience_from=edited.number,
        head=edited.number,
    )


def change_tests(
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
        run = amend(run, iteration.number, evidence=evidence)
    return run.replace(expectations=expectations)


def dismiss(run: Run, decision: decisions.Dismiss, _: int) -> Run:
    """Set findings aside; a critic's "not ready" that rests on them is taken back."""
    tests = {f.criterion for f in run.findings if f.id in decision.findings and f.check == SUITE}
    before = run.iterations
    run = change_tests(run, tests, lambda test: test.replace(status=Status.DISMISSED))
    run = _dismiss_all(run, decision.reason, lambda finding: finding.id in decision.findings)
    for old, new in zip(before, run.iterations, strict=True):
        gone = [f for f in old.findings if f.is_open and f.id in decision.findings]
        left = [f for f in new.findings if f.is_open and f.id not in decision.findings]
        if any(f.blocks for f in gone):
            left = [f for f in left if f.blocks]
        if new.ready is False and gone and not left:
            run = amend(run, new.number, taken_back=True)
    return run


def _dismiss_all(run: Run, reason: str, wanted: Callable[[Finding], bool]) -> Run:
    return map_findings(
        run,
        lambda iteration: (
            f.replace(status=Status.DISMISSED, reason=reason) if wanted(f) else f
            for f in iteration.findings
        ),
    )


def drop_demand(run: Run, decision: decisions.Drop, _: int) -> Run:
    """Go on as if a demand had never been made; only an evaluator's verdicts stay."""
    name = decision.demand
    run = _dismiss_all(run, "You dropped it.", lambda finding: finding.check == name)
    for iteration in run.iterations:
        evidence = tuple(one for one in iteration.evidence if one.name != name)
        run = amend(run, iteration.number, evidence=evidence)
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


def add_finding(run: Run, decision: decisions.Add, _: int) -> Run:
    """Put a finding on every text that holds its quote, in place of one with its id."""
    finding = decision.finding
    if finding.id not in {one.id for one in run.findings}:
        (finding,) = with_ids(run, (finding,))
    finding = finding.replace(author="user", status=Status.OPEN, reason="")

    def findings(iteration: Iteration) -> Findings:
        if not contains_quote(iteration.text, finding.quote):
            return iteration.findings
        replaced = tuple(finding if f.id == finding.id else f for f in iteration.findings)
        return replaced if finding in replaced else (*replaced, finding)

    return map_findings(run, findings)


def change_criteria(run: Run, decision: decisions.Criteria, _: int) -> Run:
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


def expect(run: Run, expected: decisions.Expect, _: int) -> Run:
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
    run = change_tests(run, against, lambda test: test.replace(status=Status.DISMISSED))
    run = _change_examples(run, key, example)
    if row is not None and gives_same(expected, row):
        return run
    allowed = max(run.allowed_revisions, run.revisions + 1)
    return run.replace(allowed_revisions=allowed, patience_from=len(run.iterations) - 1)


def retract(run: Run, decision: decisions.Retract, _: int) -> Run:
    """Take back what an input should give."""
    return _change_examples(run, key_of(decision.call, decision.setup))


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


def ask_for(run: Run, guidance: str) -> Run:
    """Make the user's words a blocking finding on every text, until one is judged to meet it."""
    if not guidance.strip():
        return run
    finding = Finding(
        criterion=GUIDANCE, severity=Severity.BLOCKING, problem=guidance, author="user"
    )
    (finding,) = with_ids(run, (finding,))
    if run.selected:
        run = run.replace(selected=(*run.selected, finding.id))
    return map_findings(run, lambda iteration: (*iteration.findings, finding))


def append(run: Run, iteration: Iteration, asked_as: int | None = None) -> Run:
    """Add an iteration, with what was consumed by the number that it was asked for under."""
    asked = iteration.number if asked_as is None else asked_as
    usage = run.pending_usage.get(asked, Usage())
    return run.replace(
        iterations=(*run.iterations, iteration.replace(usage=usage)),
        pending_usage={n: used for n, used in run.pending_usage.items() if n != asked},
        unconsumed_replies=tuple(r for r in run.unconsumed_replies if r.iteration != asked),
    )


def amend(run: Run, number: int, **changes: Any) -> Run:
    """Return the run with other values in some fields of a text."""
    iterations = list(run.iterations)
    iterations[number] = iterations[number].replace(**changes)
    return run.replace(iterations=tuple(iterations))


def map_findings(run: Run, findings: Callable[[Iteration], Findings]) -> Run:
    """Return the run with other findings on its texts; one whose findings are the same is kept."""

    def changed(iteration: Iteration) -> Iteration:
        found = tuple(findings(iteration))
        return iteration if found == iteration.findings else iteration.replace(findings=found)

    return run.replace(iterations=tuple(map(changed, run.iterations)))
