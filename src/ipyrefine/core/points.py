# ruff: noqa: RUF001
"""The points of a run: ids, grounding, duplicates, and which are new, gone or back on a text."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from ipyrefine.core.decisions import OWN
from ipyrefine.core.edits import Loss, losses
from ipyrefine.core.effects import has_to_be_wanted, remedy, sentence
from ipyrefine.core.model import Effect, Form
from ipyrefine.core.quotes import contains_quote
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import BY_BASIS, Cell, Point, Result, Source
from ipyrefine.core.testing import is_critics
from ipyrefine.core.unsourced import find_unsourced, guidance
from ipyrefine.errors import UsageError

_TO_GO = ("kept", "repeats", "groups", "unused")  # causes for which a line says that rows go
SCOPE = "scope"  # criterion of remarks about something that nobody asked for
_KEEP = re.compile(
    r"[*_\"“`]*(?:KEEP\b|Keep(?=[*_\"”`]*\s*[:：]))[*_\"”`]*\s*"
    r"(?:[:：,.|–—-][*_]*\s*|(?=[(\"“„«]|(?:because|since|as)\b))"
)
_ID = r"[fqt]\d{1,4}\b"
# A note: the points that it is of below the marks of a list, one more mark, and its words.
_NOTE = re.compile(
    rf"^[^\w\n]*(?:\d+[.)][^\w\n]*)?(?P<ids>{_ID}(?:(?:[^\w\n]|and\b)+{_ID})*)"
    r"(?:[^\S\n]\([^()\n]*\))?[^\w\n]*?(?:[:：=→|\])–—.]|-(?=[\s>])|(?=KEEP\b))[\s>*_|]*"
    rf"(?P<words>(?!{_ID})[^\s|][^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)


class Column(NamedTuple):
    """The rows of a run, and what they show of a text, while they are brought up to date."""

    points: dict[str, Point]
    results: dict[str, Result]

    @property
    def cells(self) -> list[Cell]:
        """Return the results with their points, in the order in which they were said."""
        return [Cell(self.points[id_], one) for id_, one in self.results.items()]

    def add(self, points: Iterable[Point]) -> None:
        """Add points that the text misses, each under the next free id."""
        for point in with_ids(self.points, points):
            self.points[point.id] = point
            self.results[point.id] = _missing(point)


def _missing(point: Point) -> Result:
    return Result(passed=False, shows=point.words, faults=(point.fault,) if point.fault else ())


def _column_of(run: Run, text: Iteration) -> Column:
    """Return a text's column, to be changed."""
    return Column(dict(run.points), dict(text.results))


def ground(points: Iterable[Point], text: str) -> tuple[Point, ...]:
    """Return points, those whose place is not in the text without one."""
    return tuple(
        one if contains_quote(text, one.place) else one.replace(place="") for one in points
    )


def weigh(
    points: Iterable[Point], parent: Iteration | None, *, by_evidence: bool
) -> tuple[Point, ...]:
    """Return a critic's remarks; on a text that passes on evidence they are suggestions.

    So are those about words that a text taken for ready has from its parent, all of them: they were
    there to be named before, and critics have to finish. Only a test can still show one of them.
    """
    known = parent.text if parent else ""
    return tuple(
        one.replace(blocking=False)
        if by_evidence or (known and one.place and contains_quote(known, one.place))
        else one
        for one in points
    )


def with_ids(points: Iterable[str], new: Iterable[Point]) -> tuple[Point, ...]:
    """Give points the next ids after those that there are: q1 of a question, t1 of a test, f1."""
    numbers, named = Counter(one[:1] for one in points), []
    for one in new:
        letter = "q" if one.kind == "question" else "t" if is_critics(one) else "f"
        numbers[letter] += 1
        named.append(one.replace(id=f"{letter}{numbers[letter]}"))
    return tuple(named)


def dismissed(run: Run) -> list[Point]:
    """Return what the user set aside."""
    return [one for one in run.points.values() if one.dropped == "you"]


def drop_known(run: Run, new: Iterable[Point], earlier: Iterable[Cell]) -> tuple[Point, ...]:
    """Drop new points that repeat one another, an earlier one, or one the user dismissed.

    Of those that the user dismissed, no other words at the same place are taken either.
    """
    settled = dismissed(run)
    seen, fresh = [*map(as_shown, earlier), *settled], list[Point]()
    places = {(one.place, one.criterion) for one in settled if one.place}
    for point in new:
        known = any(same(point, other) for other in (*seen, *fresh))
        if not known and (point.place, point.criterion) not in places:
            fresh.append(point)
    return tuple(fresh)


def as_shown(cell: Cell) -> Point:
    """Return a point in the words that were shown of it last."""
    return cell.point.replace(words=cell.words)


def same(one: Point, other: Point) -> bool:
    """Return True if two points say one thing: in the same words, or of the same data."""
    if one.kind == other.kind == "fact":
        keys = [point.effect and point.effect.key for point in (one, other)]
        return one.place == other.place and keys[0] == keys[1]
    ours, theirs = one.words.lower().split(), other.words.lower().split()
    return ours == (theirs[: len(ours)] if one.kind == "question" else theirs)  # its answer follows


# What a reader says of earlier points


def up_for_review(run: Run, text: Iteration) -> list[Cell]:
    """Return what a critic is asked about.

    Checks and the user's evaluator close their own. No rewording closes one: a reader does.
    """
    return [
        one
        for one in run.cells(text)
        if one.is_open
        and not one.asks
        and (one.point.by_user or (one.point.by_model and one.point.source == "critic"))
    ]


def answer(question: Cell | None, words: str) -> Point:
    """Return a revision's instruction after the user answered a critic's question.

    Raises:
        UsageError: it asks nothing that is left open.
    """
    if question is None or not question.asks or question.point.kind != "question":
        raise UsageError("That is no open question. Its answer can't be taken.")
    problem = f"{question.point.words} {words}"
    return Point(id=question.id, source="you", criterion=OWN, words=problem)


def take_feedback(run: Run, text: Iteration, feedback: Sequence[Point]) -> Column:
    """Return a text's column with the evaluator's latest feedback in place of what it said before.

    All of it is kept, in its order, except what the user dismissed. What it no longer names is
    resolved.
    """
    column = _column_of(run, text)
    fresh = _follow(column, is_feedback, feedback, (same,))
    settled = dismissed(run)
    column.add(one for one in fresh if not any(same(one, other) for other in settled))
    order = {one.words: n for n, one in reversed([*enumerate(feedback)])}
    named = [one for one in column.cells if is_feedback(one) and one.actionable]
    left = iter(sorted(named, key=lambda one: order.get(one.words, 0)))
    places = {one.id for one in named}
    cells = [next(left) if one.id in places else one for one in column.cells]
    return column._replace(results={one.id: one.result for one in cells})


def is_feedback(cell: Cell) -> bool:
    """Return True if the user's evaluator wants it changed, in its own words."""
    return (cell.point.source, cell.point.kind) == ("evaluator", "remark")


def bare_no(source: Source, said: str) -> Point:
    """Return a reader's No that comes without a remark."""
    return Point(source=source, kind="reading", criterion="verdict", words=said, blocking=False)


def is_bare_no(cell: Cell, source: Source) -> bool:
    """Return True if a cell holds a reader's No that came without a remark."""
    return (cell.point.source, cell.point.kind) == (source, "reading")


def take_word(column: Column, said: str) -> None:
    """Put an evaluator's No without a remark into a column; nothing said takes it back."""
    named = [bare_no("evaluator", said)] * bool(said)
    own = partial(is_bare_no, source="evaluator")
    column.add(_follow(column, own, named, (lambda one, other: True,)))


# What checks found


def checked(run: Run, text: Iteration) -> Column:
    """Return a text's column with what its evidence shows.

    A check that names its faults gives a point for each; any other gives one when it fails. From
    text to text a fault keeps its point: the one in the same words, else the first under its
    criterion (a test's name).
    """
    column = _column_of(run, text)
    every = [one for iteration in run.iterations for one in iteration.evidence if one.failed]
    stopped = {one.name for one in every if one.basis == "run"}  # of what earlier did not run
    for evidence in text.evidence:
        tried = evidence.passed is not None
        if tried or (evidence.name in stopped and evidence.basis != "run" and not evidence.not_run):
            _take_check(column, evidence, text.text)
    _look_up_facts(run, column, text)
    return column


def first_line(detail: str) -> str:
    """Return the first line of a check's detail, for a sentence."""
    return detail.strip().partition("\n")[0]


def _take_check(column: Column, evidence: Result, text: str) -> None:
    faults = _faults(evidence, text)
    if evidence.passed is False and not faults:
        return

    def is_one(one: Point, other: Point) -> bool:
        # Faults under the check's own name share that with all its others, unless it has only one.
        apart = other.criterion != evidence.name or not evidence.points
        return apart and one.criterion == other.criterion

    rules = (same, is_one)
    column.add(_follow(column, lambda one: one.point.check == evidence.name, faults, rules))


def _look_up_facts(run: Run, column: Column, text: Iteration) -> None:
    """Ask about each fact that a critic of any text named, where a text has it too.

    What the user keeps is never asked about again. What they strike blocks every text that has it.
    """
    every = [one for one in column.points.values() if one.kind == "fact"]
    if not every:
        return
    found = find_unsourced(run, text.text, [one.place for one in every if not one.effect])
    done = {one.key: one for one in text.effects.values()}
    for point in every:
        before, effect = column.results.get(point.id), point.effect and done.get(point.effect.key)
        if effect or (point.place in found and not point.effect):
            again = bool(before and (before.passed is True or before.again))
            shows = sentence(effect) if effect else point.words
            column.results[point.id] = Result(passed=False, shows=shows, again=again)
        elif before:
            column.results[point.id] = before.replace(passed=True)


def unasked(run: Run, text: Iteration, said: Iterable[Point]) -> list[Point]:
    """Return the questions about what running a text did to data, where no words ask for it.

    Args:
        run: whose task, answers and guidance are looked at.
        text: the text.
        said: what a critic quotes, by the names of `Iteration.effects`. Of an effect that it does
            not name, or quotes different words for, it has said nothing.
    """
    asked = "\n".join([run.task.request, run.setup.wish, *guidance(run)])
    computed, quotes = any(one.computed for one in text.evidence), defaultdict[str, set[str]](set)
    for one in said:
        quotes[one.words].add(one.quote)
    wanted = {
        name
        for name, said_of_it in quotes.items()
        if len(said_of_it) == 1 and all(one and contains_quote(asked, one) for one in said_of_it)
    }
    told = follows(run, text)
    return [
        no_words(effect, computed=computed)
        for name, effect in text.effects.items()
        if has_to_be_wanted(effect) and name not in wanted and effect.key not in told
    ]


def follows(run: Run, text: Iteration) -> dict[tuple[str, ...], str]:
    """Return the effects that follow from what the user had kept, and from what: ``keeping all 8``.

    Rows that are kept though nothing matches them have nothing in the columns of the other table.
    """
    acted = [run.points[id_] for one in run.iterations for id_ in one.acted_on if id_ in run.points]
    kept = {
        (one.effect.name, one.effect.count): f"keeping all {one.effect.total:,}"
        for one in acted
        if one.effect and one.effect.kind == "gone"
    }
    missing = [one for one in text.effects.values() if one.kind == "missing"]
    columns = {
        one.column: kept[one.name, one.count] for one in missing if (one.name, one.count) in kept
    }
    return {one.key: columns[one.column] for one in missing if one.column in columns}


def ask_alone(column: Column, text: Iteration) -> None:
    """Ask about the first rows that a text loses, once a run, where nobody reads it."""
    if any(one.effect for one in column.points.values()):
        return
    for one in text.evidence:
        for lost in () if one.conditions else one.effects:
            if lost.kind == "gone" and lost.cause not in _TO_GO:
                column.add([no_words(lost, computed=one.computed).replace(source="run")])
                return


def no_words(effect: Effect, *, computed: bool) -> Point:
    """Return the question about what running did to data, which nobody asked for."""
    said, fix = sentence(effect), f"{remedy(effect)}."
    fields = {"kind": "fact", "criterion": "data", "blocking": False, "computed": computed}
    return Point(words=said, fix=fix, effect=effect, **fields)


def no_source(words: str) -> Point:
    """Return the question about words of a text that stand in no source."""
    said, fix = f"“{words}” stands in no source.", "Take it out."
    fields = {"kind": "fact", "criterion": "no source", "blocking": False}
    return Point(words=said, place=words, fix=fix, **fields)


def _faults(evidence: Result, text: str) -> list[Point]:
    if evidence.points:
        return [_own(point, evidence, text) for point in evidence.points]
    if not evidence.failed:
        return []
    words = first_line(evidence.shows) or f"The check {evidence.name} failed."
    fault = next(iter(evidence.faults), None)
    return [_own(Point(words=words, criterion=evidence.name, fault=fault), evidence, text)]


def _own(point: Point, evidence: Result, text: str) -> Point:
    """Return a check's fault as its point; words that are not in the text have no place there."""
    source, kind = BY_BASIS.get(evidence.basis, ("run", "result"))
    point = point.replace(
        source=source, kind=kind, check=evidence.name, dropped="", computed=evidence.computed
    )
    if not contains_quote(text, point.place):
        point = point.replace(place="", words=f'{point.words} (at "{point.place}")')
    return point if evidence.counts else point.replace(blocking=False)


def _follow(
    column: Column,
    own: Callable[[Cell], bool],
    faults: Sequence[Point],
    rules: Iterable[Callable[[Point, Point], bool]],
) -> list[Point]:
    """Bring a column's cells up to date with an author's faults; return those that are new.

    Only the author's `own` may be continued, each fault continues at most one, and `rules` say what
    makes two of them one, the strictest first. What no fault continues is mended.
    """
    left, fresh = [one for one in column.cells if own(one)], list(faults)
    missed = [one for one in left if one.result.passed is not True]
    column.results.update({one.id: one.result.replace(passed=True) for one in missed})
    for rule in rules:
        for fault in list(fresh):
            alike = (one for one in left if _settings(one.point) == _settings(fault))
            if match := next((one for one in alike if rule(as_shown(one), fault)), None):
                left.remove(match)
                fresh.remove(fault)
                before = match.result
                again = before.passed is True or before.again
                column.results[match.id] = _missing(fault).replace(again=again)
    return fresh


def _settings(point: Point) -> tuple[object, ...]:
    """Return what a point keeps on every text; the words of a result may differ."""
    return point.blocking, point.place, point.fix


# What a revision says and does


def read_notes(thoughts: str, points: Iterable[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return a reviser's notes by their points, and which of these it contests.

    It writes ``f1: shorter``, or ``f1: KEEP: as asked``.

    A note may be an item of a list, a table's row, below a heading, or for several points, and its
    words on the next line; `points` are the ids that it may name.
    """
    known, notes = set(points), dict[str, str]()
    headed = re.sub(r"(?m)^(#+ [^\n]*\w)\s*\n", r"\1: ", thoughts)
    for match in _NOTE.finditer(headed):
        ids = re.findall(_ID, match["ids"].lower())
        notes |= dict.fromkeys((one for one in ids if one in known), match["words"].strip(" |*_\t"))
    kept = {id_: words[m.end() :] for id_, words in notes.items() if (m := _KEEP.match(words))}
    return notes | kept, tuple(kept)


def lost_sections(run: Run, text: Iteration) -> tuple[Loss, ...]:
    """Return the sections of prose that a revision lost or shortened without being asked to.

    It was asked to where it acted on a remark about something out of scope, or on one of the
    user's, that names the section or a place in it.
    """
    if run.task.form != "prose" or text.parent is None or text.failure:
        return ()
    parent = run.iterations[text.parent]
    task = run.task
    named = SCOPE in (*task.categories, *(one.name for one in task.criteria))  # another's
    points = (run.points[id_] for id_ in text.acted_on if id_ in parent.results)
    asked = [p for p in points if (p.criterion == SCOPE and not named) or p.by_user]
    names = [f"{one.words} {one.fix} {one.place}".lower() for one in asked]
    found = losses(parent.text, text.text)
    return tuple(one for one in found if not any(one.name.lower() in name for name in names))


def left_open(run: Run, text: Iteration) -> list[Point]:
    """Return the critic's questions about the task that the user has not answered."""
    answered = [one.call for one in run.task.clarifications]
    asked = (one.point for one in run.cells(text) if one.asks and one.point.kind == "question")
    return [
        one
        for one in asked
        if not (one.call in answered if one.call else any(call in one.words for call in answered))
    ]


def to_check(run: Run, text: Iteration) -> list[Point]:
    """Return what only the user can settle, and has not yet: facts and questions."""
    cells = [one for one in run.cells(text) if one.asks and one.point.source != "run"]
    facts = [one.point for one in cells if one.point.kind == "fact"]
    return [*facts, *left_open(run, text)]


def is_cosmetic(old: str, new: str, form: Form) -> bool:
    """Return True if texts differ in spacing only; of prose, also in case and punctuation."""
    if form == "code":
        return old != new and old.split() == new.split()
    return old != new and re.findall(r"\w+", old.lower()) == re.findall(r"\w+", new.lower())
