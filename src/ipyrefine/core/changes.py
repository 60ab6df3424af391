"""What the user's decisions change in a run; `actions` says which of them does what."""

from collections.abc import Callable, Iterable
from typing import Any

from ipyrefine.core import decisions
from ipyrefine.core.model import Called, Clarification, Verdict
from ipyrefine.core.points import with_ids
from ipyrefine.core.quotes import contains_quote
from ipyrefine.core.rank import overridden
from ipyrefine.core.results import Key, claims, gives_same, key_of, rows
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Point, Result, Source
from ipyrefine.core.testing import is_critics


def override(run: Run, decision: decisions.Override, number: int) -> Run:
    """Put the user's verdict in place of a text's own."""
    before = run.iterations[number].verdict
    verdict = overridden(before or Verdict(outcome=decision.outcome, score=None), decision)
    run = amend(run, number, verdict=verdict, override=decision)
    return run if decision.settles else ask_for(run, decision.reason)


def add_edit(run: Run, edit: decisions.Edit, parent: int) -> Run:
    """Add the user's own text."""
    edited = Iteration(
        number=len(run.iterations),
        parent=parent,
        text=edit.text,
        author="user",
        results=handed_on(run, parent),
    )
    return append(run, edited).replace(
        allowed_revisions=run.allowed_revisions + 1,  # the user's own costs none of them
        patience_from=edited.number,
        head=edited.number,
    )


def handed_on(run: Run, parent: int) -> dict[str, Result]:
    """Return what holds of a text's revision, too, until somebody looks.

    Tests are run again, and what the task wants changed in a draft its readers know from the task.
    """
    points = ((id_, one, run.points[id_]) for id_, one in run.iterations[parent].results.items())
    return {
        id_: one
        for id_, one, point in points
        if not is_critics(point) and (point.source, point.kind) != ("task", "remark")
    }


def change_points(run: Run, ids: Iterable[str], change: Callable[[Point], Point]) -> Run:
    """Return the run with some of its points changed."""
    changed = {id_: change(run.points[id_]) for id_ in ids if id_ in run.points}
    return run.replace(points=run.points | changed) if changed else run


def select(run: Run, decision: decisions.Continue, _: int) -> Run:
    """Have the next revision act on some points only; a fact among them is struck from then on."""
    if not decision.points:
        return run
    facts = [id_ for id_ in decision.points if run.points[id_].kind == "fact"]
    run = change_points(run, facts, lambda one: one.replace(blocking=True))
    return run.replace(selected=decision.points)


def dismiss(run: Run, decision: decisions.Dismiss, _: int) -> Run:
    """Set points aside; a critic's "not ready" that rests on them is taken back.

    A critic's test that blocks only asks from then on: it may still be right, but not by the task.
    """
    drop, before = _dropper(decision.reason), run
    run = change_points(
        run,
        decision.points,
        lambda one: one.replace(blocking=False) if is_critics(one) and one.blocking else drop(one),
    )
    for text in run.iterations:
        gone = [c for c in before.cells(text) if c.is_open and c.id in decision.points]
        left = [c for c in run.cells(text) if c.is_open and c.id not in decision.points]
        if any(one.weighs for one in gone):  # also what waits for the user, as it is disputed
            left = [one for one in left if one.weighs]
        said = text.reading
        if said and said.ready is False and gone and not left:
            run = amend(run, text.number, reading=said.replace(taken_back=True))
    return run


def _dropper(reason: str) -> Callable[[Point], Point]:
    return lambda one: one.replace(dropped="you", reason=reason)


def drop_demand(run: Run, decision: decisions.Drop, _: int) -> Run:
    """Go on as if a demand had never been made; only an evaluator's verdicts stay."""
    name = decision.demand
    found = [one.id for one in run.points.values() if one.check == name]
    run = change_points(run, found, _dropper("You dropped it."))
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


def add_remark(run: Run, decision: decisions.Add, _: int) -> Run:
    """Put a remark on every text that holds its place, instead of the point with its id."""
    point = decision.point
    if point.id not in run.points:
        (point,) = with_ids(run.points, (point,))
    point = point.replace(source="you", kind="remark", check="", dropped="", reason="")
    run, place = run.replace(points=run.points | {point.id: point}), point.place
    return mark(run, (point.id,), lambda text, _: contains_quote(text.text, place))


def change_criteria(run: Run, decision: decisions.Criteria, _: int) -> Run:
    """Judge by other criteria from now on, and judge every text again."""
    task, limits = run.task, run.limits
    if decision.target is not None:
        limits = limits.replace(target=decision.target)
    if decision.criteria:
        dropped = {c.name for c in task.criteria} - {c.name for c in decision.criteria}
        task = task.replace(criteria=decision.criteria)
        said = (p for p in run.points.values() if p.source == "critic" and p.kind == "remark")
        filed = [one.id for one in said if one.criterion in dropped]
        run = change_points(run, filed, _dropper("Its criterion was dropped."))
        run = run.replace(
            iterations=tuple(i.replace(reading=None, evaluation=None) for i in run.iterations),
            stale=tuple(i.number for i in run.iterations if i.verdict),
        )
    if (words := run.setup.words) and decision.criteria:
        tasks = (one.replace(criteria=decision.criteria) for one in words.tasks)
        words = words.replace(tasks=tuple(tasks))
    return run.replace(setup=run.setup.replace(task=task, limits=limits, words=words))


def expect(run: Run, expected: decisions.Expect, _: int) -> Run:
    """Make a result an example of the task; a critic's test that says otherwise is dismissed."""
    key = key_of(expected)
    shown = rows(run, run.chosen)
    row = next((one for one in shown if key_of(one) == key), None)
    example = Clarification(
        **expected.model_dump(include=set(Called.model_fields)),
        leading=row is next((one for one in shown if not one.conditions), None),
        computed=_is_computed(run, expected),
    )
    against = [
        test.id
        for test in run.tests
        if any(
            key_of(claim) == key and not gives_same(expected.gives, claim.gives)
            for claim in claims(test)
        )
    ]
    run = change_points(run, against, _dropper(""))
    run = _change_examples(run, key, example)
    if row is not None and gives_same(expected.gives, row.gives):
        return run
    allowed = max(run.allowed_revisions, run.revisions + 1)
    return run.replace(allowed_revisions=allowed, patience_from=len(run.iterations) - 1)


def retract(run: Run, decision: decisions.Retract, _: int) -> Run:
    """Take back what an input should give."""
    return _change_examples(run, key_of(decision))


def _is_computed(run: Run, expected: decisions.Expect) -> bool:
    """Return True if code that got copies of variables gave a result."""
    found = list[Result]()
    for text in run.iterations:
        found += (row for one in text.evidence if one.computed for row in one.rows)
        found += (one for one in text.results.values() if one.computed and one.gives)
    return any(gives_same(expected.gives, one.gives) for one in found)


def _change_examples(run: Run, key: Key, example: Clarification | None = None) -> Run:
    """Put an example in place of the user's on an input, and have every text checked again."""
    others = (o for o in run.task.clarifications if key_of(o) != key)
    task = run.task.replace(clarifications=(*others, *([example] if example else ())))

    def outdate(evidence: Result) -> Result:
        unknown = example is not None and key not in map(key_of, evidence.rows)
        outdated = unknown if evidence.basis == "none" else evidence.by_examples
        return evidence.replace(outdated=outdated or evidence.outdated)

    run = run.replace(setup=run.setup.replace(task=task))
    for text in run.iterations:
        if text.verdict and text.judgement is None:
            run = amend(run, text.number, evidence=tuple(map(outdate, text.evidence)))
            run = run.replace(stale=tuple(sorted({*run.stale, text.number})))
    return run


def ask_for(run: Run, guidance: str, source: Source = "you") -> Run:
    """Make the user's words a blocking remark on every text, until a reader or they close it."""
    if not guidance.strip():
        return run
    (point,) = with_ids(run.points, [Point(source=source, criterion="guidance", words=guidance)])
    run = run.replace(points=run.points | {point.id: point})
    if run.selected:
        run = run.replace(selected=(*run.selected, point.id))
    return mark(run, (point.id,), lambda *_: True)


def append(run: Run, iteration: Iteration) -> Run:
    """Add an iteration."""
    return run.without_replies().replace(iterations=(*run.iterations, iteration))


def amend(run: Run, number: int, **changes: Any) -> Run:
    """Return the run with other values in some fields of a text."""
    iterations = list(run.iterations)
    iterations[number] = iterations[number].replace(**changes)
    return run.replace(iterations=tuple(iterations))


def mark(
    run: Run,
    ids: Iterable[str],
    wanted: Callable[[Iteration, str], bool],
    *,
    passed: bool = False,
) -> Run:
    """Return the run with points as missed, or as mended, on the texts where that is wanted."""
    texts, ids = [], tuple(ids)
    for text in run.iterations:
        new = {id_: Result(passed=passed) for id_ in ids if wanted(text, id_)}
        texts.append(text.replace(results=text.results | new) if new else text)
    return run.replace(iterations=tuple(texts))
