"""The table of a run: a line for each thing that texts are held to, a column for each text."""

import re
from collections.abc import Container, Iterable, Iterator

from ipyrefine.core import table
from ipyrefine.core.decisions import Expect, Retract
from ipyrefine.core.model import Basis, Outcome, bare, on_conditions
from ipyrefine.core.policy import is_bare_score
from ipyrefine.core.readers import has_evaluator
from ipyrefine.core.results import claims, given, gives_same, key_of, row_key, rows
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Cell, Point
from ipyrefine.core.testing import is_critics
from ipyrefine.render import gives, labels, words
from ipyrefine.render.blocks import (
    Checks,
    Head,
    Item,
    Line,
    Paragraph,
    Result,
    Results,
    Texts,
    Told,
)
from ipyrefine.render.escape import strip_colours
from ipyrefine.render.labels import Label

_READY, _DISMISS = "It is ready", "Dismiss"
MOST_LINES = 7  # of the table, before it folds
LAST_TEXTS = 4  # texts whose lines are there at once
_LAST, _LAST_OF_ALL = 3, 9  # texts whose columns stay, beside the first and the best
_TALLY = re.compile(r"\n?\d+ of \d+ [\w ]+ hold\.\Z")
_SENTENCE = re.compile(r"(?<=[.!?…。])\s")
_HOLDS, _MISSES = Label("✓", "passes", "good"), Label("✗", "misses it", "bad")
_MINOR = Label("✗", "misses it, which does not block", "quiet")
_NONE = Label("·", "not tried", "quiet")
_ASKS = Label("?", "to check", "warn")
_UNTRIED = Label("?", "could not be tried", "quiet")
_DIFFERS = Label("≠", "gives something else", "warn")
_SAME = Label("·", "gives the same", "quiet")
_VACUOUS = Label("·", "holds for an empty text, too", "quiet")
_DROPPED = {
    "you": "You set it aside.",
    "broken": "It is not Python.",
    "long": "It is too long to be run.",
    "many": "A run takes 12 tests of a critique, and 40 in all.",
    "no_suite": "Nothing here can run it.",
}
_BY: dict[Basis, str] = {
    "tests": "your tests",
    "function": "your check",
    "schema": "your schema",
    "constraints": "task, counted",
    "confirmed": "you",
    "examples": "task",
    "critique": "its tests",
    "run": "run",
}


def checks(
    run: Run,
    text: Iteration,
    waiting: Iterable[Expect | Retract] = (),
    *,
    every: bool = False,
) -> list[Checks]:
    """Return the table of what texts are held to, as one of them is shown; none without a line.

    What asks stands first, then what is missed, then what holds.

    Args:
        run: the run.
        text: the text that is shown.
        waiting: what the user said of results and the run has not taken up yet.
        every: whether more texts have their columns than fit beside each other.
    """
    heads = _heads(run, text, every=every)
    texts = [None if one.number is None else run.iterations[one.number] for one in heads]
    asked = gives.results(run, text, waiting)
    tested = _tested(run, text, {one.key for block in asked for one in block.rows})
    lines = [
        *_asked(run, text, asked, texts, tested),
        *([_evaluated(run, text, texts)] if has_evaluator(run) else ()),
        *_held_to(run, text, texts, tested),
    ]
    shown = 0
    found = list[Line]()
    for line in sorted(lines, key=_order):
        folded = line.folded or shown >= MOST_LINES
        shown += not folded
        found.append(line._replace(folded=folded))
    hint = next((one.hint for one in asked if one.hint), "")
    commands = "\n".join(one.commands for one in asked if one.commands)
    return [Checks(tuple(heads), tuple(found), hint, commands)] if found else []


def missed(run: Run, text: Iteration) -> list[Item]:
    """Return what a text misses, what blocks it first, but what asks and its evaluator."""
    # Of each row, who gives what is not asked here: that is a question to every text.
    results = () if run.setup.coach else rows(run, text)
    tested = _tested(run, text, set(map(row_key, results)))
    lines = sorted(_held_to(run, text, [], tested), key=_order)
    return [one.body for one in lines if one.mark.symbol == "✗" and isinstance(one.body, Item)]


def _order(line: Line) -> int:
    if isinstance(line.body, Result):  # an answer moves no line
        return 0
    if line.mark.symbol == "✗":
        return 2 if line.mark.kind == "quiet" else 1
    return {"?": 3, "✓": 4}.get(line.mark.symbol, 5)


def _heads(run: Run, text: Iteration, *, every: bool) -> list[Head]:
    total = len(run.iterations)
    if total < 2:
        return []
    last = _LAST_OF_ALL if every else _LAST
    kept = {0, run.best, text.number, *range(total - last, total)}
    found, left_out = list[Head](), 0
    for one in run.iterations:
        if total > last + 2 and one.number not in kept:
            left_out += 1
            continue
        if left_out:
            found.append(Head(f"+{left_out}", title=labels.count(left_out, "more text")))
            left_out = 0
        star = " ★" * (one.number == run.best)
        verdict = words.verdict(run, one).title.word if one.verdict else "not verified"
        found.append(
            Head(
                run.name(one.number).removeprefix("Revision ") + star,
                one.number,
                f"{run.name(one.number)}: {verdict}",
                shown=one is text,
            )
        )
    return found


_Columns = list[Iteration | None]
# By their names, the results that are shown, and the tests that claim nothing but one of these.
_Tested = dict[str, tuple[table.Result, list[Point]]]


def _tested(run: Run, text: Iteration, shown: Container[str]) -> _Tested:
    claimed = [(test, [key_of(one) for one in claims(test)]) for test in run.tests]
    return {
        row_key(one): (one, [t for t, keys in claimed if keys == [key_of(one)]])
        for one in rows(run, text)
        if row_key(one) in shown
    }


def _asked(
    run: Run, text: Iteration, asked: Iterable[Results], texts: _Columns, tested: _Tested
) -> Iterator[Line]:
    """Yield what a text gives where somebody may say whether that is right."""
    values = [given(run, one) if one else {} for one in texts]
    for block in asked:
        for place, one in enumerate(block.rows, start=1):
            row, tests = tested.get(one.key, (None, []))
            marks = [_NONE for _ in texts]
            if row:
                key = key_of(row)
                marks = [_given_mark(value.get(key), row, one) for value in values]
            mark, source, note = _ASKS, "critic" if one.asks in ("keep", "open") else "", ""
            if one.confirmed is not None:
                mark, source = _HOLDS if one.confirmed else _MISSES, "you"
            elif tests:
                mark, source = _cell_mark(text, tests[0]), "its test"
                note = labels.quoted(tests[0].quote) if tests[0].blocking else ""
                marks = [_cell_mark(column, tests[0]) for column in texts]
            elif one.asks == "right" and not one.choices:
                mark = Label("", "to confirm", "quiet")
            number = str(place) if one.asks in ("right", "example") else one.key
            number = number if one.asks and not one.condition else ""
            yield Line(one, mark, source, note, tuple(marks), number, one.folded)


def _given_mark(value: str | None, row: table.Result, shown: Result) -> Label:
    if value is None:
        return _NONE
    same = gives_same(value, shown.expected or row.gives)
    if shown.confirmed is None:
        return _SAME if same else _DIFFERS
    return _HOLDS if same else _MISSES


def _held_to(run: Run, text: Iteration, texts: _Columns, tested: _Tested) -> Iterator[Line]:
    """Yield everything else that texts are held to: checks, tests, remarks and rules."""
    told = {test.id for _, tests in tested.values() for test in tests}
    points = [
        one
        for one in run.points.values()
        if one.id not in told
        and one.source != "evaluator"  # its words stand in the text's line
        and (one.id in text.results or _is_untried(one, text, texts))
    ]
    for point in points:
        cell = Cell(point, text.results[point.id]) if point.id in text.results else None
        answered = point.dropped == "you" and point.kind in ("fact", "question")
        if answered or (cell and (cell.asks or is_bare(cell, text))):
            continue
        # Only a test may wait for a result.
        said = item(run, cell) if cell and not is_critics(point) else _test(point, cell)
        mark = _cell_mark(text, point)
        marks = tuple(_cell_mark(one, point) for one in texts)
        yield Line(said, mark, _source(run, point), marks=marks)
    cells = (Cell(one, text.results[one.id]) for one in points if one.id in text.results)
    by_points = {one.point.check for one in cells if not is_bare(one, text)}
    for evidence in text.evidence:
        empty = evidence.passed is None and not evidence.not_run and not evidence.shows
        # What the user confirmed has lines of its own.
        quiet = evidence.basis in ("none", "confirmed") or evidence.is_empty or empty
        if quiet or (evidence.basis == "run" and evidence.passed):
            continue
        if evidence.passed is False and evidence.name in by_points:
            continue
        line, detail = words.counted(evidence), strip_colours(evidence.shows).strip("\n")
        if evidence.by_examples:  # the line says it
            detail = _TALLY.sub("", detail)
        short = ""
        if evidence.passed and evidence.basis in words.STATED and "\n" not in detail:
            short, detail = detail * (line not in detail), ""
        said = Item(
            text=line,
            note=" · ".join(filter(None, (short, on_conditions(evidence.conditions)))),
            detail=detail,
            drop=evidence.name if evidence.name in run.demands else "",
        )
        marks = tuple(_check_mark(one, evidence.name) for one in texts)
        yield Line(said, evidence_mark(evidence), _BY.get(evidence.basis, ""), marks=marks)


def _is_untried(point: Point, text: Iteration, texts: _Columns) -> bool:
    """Return whether a test that a text has no result on is worth a line there."""
    written = point.text == text.number or any(one and point.id in one.results for one in texts)
    return is_critics(point) and written


def item(run: Run, cell: Cell) -> Item:
    """Return what a text misses, or has mended, in words."""
    point, note = cell.point, ["suggestion"] * (not cell.weighs)
    note += ["back again"] * cell.result.again
    # The words of an error, or of what became of data, stand there once it is mended, too.
    found = bool(point.check) or point.kind == "fact"
    note += ["no longer"] * (found and cell.result.passed is True)
    return Item(
        name=point.id,
        text=labels.with_contest(cell.words, point),
        note=" · ".join(note),
        quote=point.place,
        form=run.task.form,
        demand=point.quote,
        fix="" if cell.is_settled else point.fix,
        settled=cell.is_settled,
        dismiss="" if point.binding else _READY if point.kind == "reading" else _DISMISS,
    )


def _test(test: Point, cell: Cell | None) -> Item:
    """Return a critic's test by the call that it makes, or by its name where it does more."""
    expected, said = claims(test), f"`{test.words}`"
    if cell and cell.result.passed is False:
        said = words.call_line(cell)
    elif len(expected) == 1:
        said = f"`{expected[0].call}` → `{bare(expected[0].gives)}`"
    untried = "" if cell else "It came after this text."
    if test.dropped:
        untried = test.reason or _DROPPED[test.dropped]
    elif cell and cell.result.passed is None:
        untried = cell.result.shows
    vacuous = _VACUOUS.word if cell and not cell.result.counts else ""
    quote = labels.quoted(test.quote)
    baseless = f"not in the task: {quote}" if quote and not test.blocking else ""
    return Item(
        name=test.id,
        text=labels.with_contest(said, test),
        note=" · ".join(filter(None, (untried, vacuous, baseless))),
        demand=test.quote if test.blocking else "",
        detail=test.code,
        dismiss="Doesn't follow" if test.blocking else _DISMISS,
    )


def _source(run: Run, point: Point) -> str:
    if is_critics(point):
        return "its test"
    if point.check:
        every = (one for text in run.iterations for one in text.evidence)
        basis = next((_BY.get(one.basis, "") for one in every if one.name == point.check), "")
        return basis or labels.check_name(point.check)
    return "your tests" if point.source == "tests" else point.source


def _evaluated(run: Run, text: Iteration, texts: _Columns) -> Line:
    """Return the line of the user's evaluator, with the score or the word of each text."""
    said = [one.evaluation for one in run.iterations if one.evaluation]
    scores = ", ".join(labels.score(one.score) for one in said if one.score is not None)
    target = f" (target {labels.score(run.limits.target)})" if scores else ""
    said_of = Item(text=f"your evaluator{': ' if scores else ''}{scores}{target}")
    marks = tuple(_reader_mark(run, one) for one in texts)
    return Line(said_of, _reader_mark(run, text), "you", marks=marks)


def _reader_mark(run: Run, text: Iteration | None) -> Label:
    said = text.evaluation if text else None
    if said is None:
        return _NONE
    if said.failure:
        return Label("?", "could not be read", "quiet")
    passed = said.says is Outcome.PASS
    if said.says is None and said.score is not None:
        passed = said.score >= run.limits.target
    return _HOLDS if passed else _MISSES


def _cell_mark(text: Iteration | None, point: Point) -> Label:
    result = text.results.get(point.id) if text else None
    if result is None:
        return _NONE
    cell = Cell(point, result)
    if point.dropped:
        return Label("·", "set aside", "quiet")
    if result.passed is None:
        return _UNTRIED
    if result.passed:
        return _HOLDS if result.counts else _VACUOUS
    if cell.asks or point.disputed or (is_critics(point) and not point.counts):
        return _ASKS
    return _MISSES if cell.weighs else _MINOR


def _check_mark(text: Iteration | None, name: str) -> Label:
    found = (one for one in text.evidence if one.name == name) if text else ()
    evidence = next(iter(found), None)
    return evidence_mark(evidence) if evidence else _NONE


def evidence_mark(evidence: table.Result) -> Label:
    """Return the mark of a check that ran on a text."""
    if evidence.passed is None:
        return _UNTRIED
    return _HOLDS if evidence.passed else _MISSES if evidence.counts else _MINOR


def is_bare(cell: Cell, text: Iteration) -> bool:
    """Return True if a point only states a score, which the evaluator's line shows."""
    return is_bare_score(cell) or any(
        one.name == cell.point.check and one.score is not None and not one.points
        for one in text.evidence
    )


# A line for each text


def texts(run: Run, shown: Iteration | None = None, *, every: bool = True) -> list[Texts]:
    """Return a line for each text, what it missed and what was said of it; none for a single one.

    A single text of which somebody said something as a whole has its line, too. Without `every`,
    of many texts the last ones have their lines, and the one that is shown.
    """
    total = len(run.iterations)
    earlier = total - LAST_TEXTS if total > LAST_TEXTS + 1 and not every else 0
    lines = tuple(
        told(run, one)._replace(shown=one is shown)
        for one in run.iterations
        if one.number >= earlier or one is shown
    )
    read = [one.reading for one in run.iterations if one.reading]
    said = any(one.reason or one.said for one in read) or any(i.judgement for i in run.iterations)
    return [Texts(lines, earlier)] if total > 1 or said else []


def told(run: Run, text: Iteration) -> Told:
    """Return a text in one line: what it missed, in that check's words, and what was said."""
    full = feedback(run, text)
    first = next((one.text for one in full if one.text.strip()), "")
    first = _SENTENCE.split(first.strip().partition("\n")[0], maxsplit=1)[0]
    missed = _missed(run, text)
    return Told(text.number, run.name(text.number), missed, first if first not in missed else "")


def _missed(run: Run, text: Iteration) -> str:
    if text.failure:
        return labels.NO_NEW_TEXT.word
    if text.verdict is None:
        return "not read yet" if labels.running(run) else "not read"
    said = words.verdict(run, text)
    if text.override:  # what it missed stands in the table
        return said.sentence
    if text.verdict.why == "unreadable":
        return said.title.word.lower()
    judged = text.judgement
    if judged and judged.score is not None:
        return labels.score(judged.score)
    told = {one.point.check for one in run.cells(text) if one.blocks}
    failed = [one for one in text.evidence if one.failed and one.name not in told]
    number = len(failed) + sum(one.blocks for one in run.cells(text))
    line = words.missed_line(run, text, text.verdict) or said.sentence
    line = line.strip().partition("\n")[0]
    if number:
        return f"missed {number}: {line}" if line else f"missed {number}"
    return "missed none" if text.verdict.passed else line or said.title.word.lower()


def feedback(run: Run, text: Iteration) -> list[Paragraph]:
    """Return what a critic or an evaluator said of a text, whole."""
    cells = run.cells(text) if text.verdict else []  # until then they are those of its parent
    found = [
        Paragraph(one.point.words)
        for one in cells
        if one.point.source == "evaluator" and not one.result.passed and not is_bare(one, text)
    ]
    said = text.reading
    if said and said.said:
        found.append(Paragraph(said.said, lead="The reply, as it came:"))
    if said and said.reason:
        lead = "" if said.ready is None else "Ready:" if said.ready else "Not ready:"
        back = " You took that back." if said.taken_back else ""
        found.append(Paragraph(f"{said.reason}{back}", lead=lead))
    if said and said.compared == "worse" and text.parent is not None:
        worse = f"The critic calls it worse than {run.mention(text.parent)}"
        found.append(Paragraph(f"{worse}{f': {said.lost}' if said.lost else '.'}"))
    if not found:
        remarks = (one for one in cells if one.point.by_model and one.is_open and not one.asks)
        found = [Paragraph(one.words) for one in remarks]
    return found
