"""What every surface draws a run from: blocks, without any markup, and how a run becomes them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ipyrefine.core import model, table
from ipyrefine.core.actions import decision_sentence
from ipyrefine.core.addresses import MASK, find_addresses
from ipyrefine.core.coach import open_puzzle, predictions, unmet
from ipyrefine.core.decisions import Accept, Expect, Retract
from ipyrefine.core.effects import sentence
from ipyrefine.core.model import Called, Figure, Form, StopReason, bare, cut
from ipyrefine.core.points import first_line, follows, is_bare_no, left_open, lost_sections
from ipyrefine.core.readers import has_evaluator, state_of
from ipyrefine.core.results import (
    Key,
    claims,
    example_asked,
    given,
    gives_same,
    key_of,
    laid_out,
    row_choices,
    row_key,
    rows,
    unfolded,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import try_parse
from ipyrefine.core.table import Cell, Point
from ipyrefine.core.testing import is_critics
from ipyrefine.core.unsourced import own_words
from ipyrefine.render import say
from ipyrefine.render.escape import strip_colours
from ipyrefine.render.say import Label

_SHORT = 100  # characters of an output that stands in the line of its title
Kind = Literal["plain", "words", "warning", "flaw", "quiet"]


class Paragraph(NamedTuple):
    """A few sentences, after a lead that stands out; ``words`` are the user's own, set apart."""

    text: str
    kind: Kind = "plain"
    lead: str = ""


class Text(NamedTuple):
    """A draft or revision in full, or, with the text before it, what changed."""

    text: str
    form: Form
    language: str = "python"
    title: str = ""
    old: str | None = None


class Output(NamedTuple):
    """What a program or a model gave beside its text: words, a table with its head, or a figure."""

    title: str
    shown: str | tuple[tuple[str, ...], ...] | Figure = ""
    condition: str = ""  # what its code ran on, where that is less than the real thing

    @property
    def is_short(self) -> bool:
        """Whether it fits on one line."""
        text = self.shown.strip("\n") if isinstance(self.shown, str) else "\n"
        return "\n" not in text and len(text) <= _SHORT


class Line(NamedTuple):
    """What texts are held to, or what one gives or did to data."""

    text: str  # what it says; of an input its call, below the statements that run before it
    key: str = ""  # what it is about: the name by which an answer says which one it means
    # What qualifies it: the task's words, how to fix it, who gives what, what it was computed on.
    notes: tuple[str, ...] = ()
    # Of the shown text and of each text with a column, and who says it.
    mark: Label = Label("", "", "quiet")
    marks: tuple[Label, ...] = ()
    source: str = ""
    number: str = ""  # what is typed to answer it; empty where it can't be answered
    folded: bool = False  # whether it is seen on a click only
    place: str = ""  # the words of the text that it is about
    detail: str = ""  # code, or what a program printed
    dismiss: str = ""  # the button that sets it aside; empty where that can't be done by itself
    drop: str = ""  # the demand that a click leaves out, by its name
    # What is asked about what a text gives or did; of a fact, whether to `keep` or to `undo` it. Of
    # what a person `may` say they need not.
    asks: Literal["right", "example", "keep", "undo", "may", "open", ""] = ""
    value: str = ""  # the result of an input
    sign: str = "→"  # what stands between the two
    # The answers; of results, their order does not say which one the text gives. Of a fact, that it
    # is meant, and that it goes.
    choices: tuple[str, ...] = ()
    output: tuple["Block", ...] = ()  # of an effect, a table that it comes with

    @property
    def word(self) -> Label | None:
        """The user's word on a result, which is its mark."""
        return self.mark if self.asks == "right" and self.source == "you" else None

    def __str__(self) -> str:
        """It in one line."""
        said = self.text.replace("\n", "; ")
        if self.asks == "open" and self.choices:
            said += f" ({' / '.join(self.choices)})"
        elif self.asks == "right" and self.choices:
            said += f" {self.sign} {' or '.join(self.choices)}?"
        elif self.value:
            said += f" {self.sign} {self.value}"
        place = say.quoted(self.place)
        return " · ".join(map(str, filter(None, (said, place, *self.notes, self.word))))


class Head(NamedTuple):
    """The head of a text's column in the table of checks."""

    name: str  # a short one: ``Draft``, ``1``, ``2 ★``
    number: int  # the text's
    title: str  # its name with what it came to, for a reader who doesn't see the marks
    shown: bool  # whether it is the text above the table


class Lines(NamedTuple):
    """The table of what texts are held to, with its heads; or, untitled, what one did to data."""

    lines: tuple[Line, ...]
    heads: tuple[Head, ...] = ()  # none for a single text
    title: str = ""
    commands: str = ""  # how to answer without buttons

    @property
    def more(self) -> str:
        """How many lines are folded: ``2 more missed · 6 more``."""
        seen = [one.mark.symbol for one in self.lines if not one.folded]
        folded = [one.mark.symbol for one in self.lines if one.folded]
        missed, hold = map(folded.count, "✗✓")
        counts = {
            "more missed": missed,
            "more hold" if "✓" in seen else "hold": hold,
            "more": len(folded) - missed - hold,
        }
        return " · ".join(f"{number} {word}" for word, number in counts.items() if number)


class Section(NamedTuple):
    """Blocks under a heading, folded where possible; or all of a text below its line."""

    title: str
    blocks: tuple["Block", ...]
    open: bool = False
    said: str = ""  # of a text: what it missed, and what was said of it
    number: int | None = None  # the text's
    shown: bool = False  # whether it is the text above


Block = Paragraph | Text | Output | Lines | Section


# What a text gives, and what it does to data


_NAMED = 25  # characters of a result that is said again
_PRINTED = "Printed"
_ASKED, _UNFOLDED = 2, 3  # effects that ask, and those that are told before the rest folds
# A number or truth value as NumPy writes it.
_NUMPY = re.compile(r"\bnp\.(?:(?:u?int|float)\d+\(([-+.\w]+)\)|(True|False)_)")
_ORDER = (model.Value, model.Table, Figure, model.Printed)


def results(
    run: Run,
    text: Iteration,
    waiting: Iterable[Expect | Retract] = (),
    texts: Sequence[Iteration] = (),
) -> list[Line]:
    """Return what a text gives on a few inputs, and what else is asked about it.

    Of each of some texts a mark says what it gives there; `waiting` is what the user said of
    results and the run has not taken up yet.
    """
    if run.setup.coach:
        return []
    waiting, found = [*waiting], rows(run, text)
    said: dict[Key, Called | None] = {
        key_of(one): None if isinstance(one, Retract) else one
        for one in (*run.task.clarifications, *waiting)
    }
    values, tested, first = [given(run, one) for one in texts], _tested(run, text), unfolded(found)
    asks = found and found[0] == example_asked(text, found) and not run.setup.is_look
    blank = found[:1] if asks and not waiting else []
    lines = []
    for number, row in enumerate(blank or found, start=1):
        expected = said.get(key_of(row))
        line = _row(run, row, expected)._replace(folded=row not in first)
        if blank:
            line = Line(row.call, row_key(row), mark=_BLANK, asks="example", value="?", sign="==")
        tests, right = tested[row_key(row)][1], expected.gives if expected else row.gives
        gives = (value.get(key_of(row)) for value in values)
        marks = [
            _NONE if v is None else _GIVEN[gives_same(v, right), bool(expected)] for v in gives
        ]
        if tests and not expected:
            marks = [_mark(one, tests[0]) for one in texts]
            quoted = [say.quoted(tests[0].quote)] * tests[0].blocking
            line = line._replace(
                mark=_mark(text, tests[0]), source="its test", notes=(*line.notes, *quoted)
            )
        lines.append(line._replace(marks=tuple(marks), number=str(number) * (not row.conditions)))
    told: list[tuple[str, Point, tuple[str, ...]]] = [
        (f"“{one.place}” stands in no source", one, ("Keep", "Delete"))
        for one in (() if found else _facts(run, text))
        if not one.effect  # words of prose
    ]
    told += [(one.words, one, one.options) for one in left_open(run, text) if not one.call]
    for words, one, choices in told:
        near = re.search(rf"(?<!\S).{{0,32}}{re.escape(one.place)}.{{0,32}}(?!\S)", text.text)
        is_fact = one.kind == "fact"
        lines.append(
            Line(
                words,
                one.id,
                notes=(near[0].strip(),) if near and is_fact else (),
                mark=_ASKS,
                marks=(_NONE,) * len(texts),
                source="critic",
                number=one.id,
                asks="keep" if is_fact else "open",
                choices=choices,
            )
        )
    return lines


def _facts(run: Run, text: Iteration) -> list[Point]:
    return [one.point for one in run.cells(text) if one.asks and one.point.kind == "fact"]


def rivalry(run: Run, row: table.Result) -> str:
    """Return who gives which of the possible results: ``the draft: 2, draft 2 and the critic: 3``.

    The start of a long one stands for it.
    """
    key, told = key_of(row), []
    tests = (one for one in run.tests if not one.dropped)
    claimed = [one.gives for test in tests for one in claims(test) if key_of(one) == key]
    given_by = [given(run, one).get(key) for one in run.iterations]
    for choice in row_choices(row):
        who = [run.mention(n) for n, one in enumerate(given_by) if one and gives_same(one, choice)]
        if len(given_by) == 1:
            who = ["this text"] * len(who)
        if len(who) > 2:
            who[1:] = [f"{len(who) - 1} more"]
        who += ["the critic"] * any(gives_same(one, choice) for one in claimed)
        told += [f"{' and '.join(who)}: {cut(bare(choice), _NAMED)}"] * bool(who)
    return ", ".join(["the task leaves it open"] * (row.source == "open") + told)


def _row(run: Run, row: table.Result, said: Called | None) -> Line:
    right = bool(said and gives_same(said.gives, row.gives))
    asked = row.rivals and not row.conditions and not right
    mark = _ASKS if asked else Label("", "to confirm", "quiet")
    if said:
        mark = Label("✓", "confirmed", "good")
        mark = mark if right else Label("✗", f"should be {bare(said.gives)}", "bad")
    value = f"{bare(row.gives)}: {row.shows}" if row.shows else bare(row.gives)
    call = laid_out(row.call) if "\n" in row.call else row.call
    notes = rivalry(run, row) if asked else "", model.on_conditions(row.conditions)
    return Line(
        "\n".join([*_scenario(row), call]),
        row_key(row),
        notes=tuple(filter(None, notes)),
        mark=mark,
        source="you" if said else "",
        asks="right",
        value=f"{row.before} → {value}" if row.before else value,
        sign="→" if row.source != "cell" else ":" if row.before else "=",
        choices=tuple(map(bare, row_choices(row))) if asked else (),
    )


def _scenario(row: table.Result) -> list[str]:
    """Return the lines before a call, each with its result."""
    setup = row.setup.strip()
    lines, tree = setup.splitlines(), try_parse(setup) if row.steps else None
    for node, gives in zip(tree.body if tree else (), row.steps, strict=False):
        if gives and node.end_lineno:
            lines[node.end_lineno - 1] += f" → {gives}"
    return lines


def outputs(evidence: Iterable[table.Result]) -> list[Output]:
    """Return what a text gives in checks: the answer first, then what else it drew or printed."""
    found = []
    for result in evidence:
        ran_on = model.on_conditions(result.conditions)
        remark = _remark(result)
        title = sentence(remark) if remark else "The answer"
        ordered = sorted(result.outputs, key=lambda one: _ORDER.index(type(one)))
        if remark and not isinstance(next(iter(ordered), None), _ORDER[:2]):
            found.append(Output(title, condition=ran_on))
            title = ran_on = ""
        for one in ordered:
            found += [block._replace(condition=ran_on) for block in _output(one, title)]
            title = ran_on = ""
    return found


def _remark(evidence: table.Result) -> model.Effect | None:
    """Return what is odd about the answer; of a name only where nothing else is the answer."""
    answers = any(not isinstance(one, model.Printed) for one in evidence.outputs)
    odd = (one for one in evidence.effects if one.kind == "answer")
    return next((one for one in odd if not (one.name and answers)), None)


def _output(output: model.Output, title: str = "") -> list[Output]:
    match output:
        case model.Printed():
            return printed(_PRINTED, output.text)
        case model.Value():
            text = _NUMPY.sub(r"\1\2", output.text)
            # "The answer is nan" says it all.
            said = title.lower().endswith(f" is {text.strip().lower()}")
            return [Output(title)] if said else printed(title, text)
        case model.Table():
            height, width = len(output.rows), len(output.columns)
            size = f"{height}" if output.is_series else say.count(height, "row")
            size = f"{height} × {width}" if width < output.width else size
            cut = height < output.height or width < output.width
            title += f": {output.phrase}, the first {size}" if title and cut else ""
            head, rows_ = output.columns, output.rows
            plain = (*map(str, range(height)),) == output.labels and not output.index
            if output.is_series or not plain:  # else they count the rows
                head = (output.index, *head)
                rows_ = tuple((n, *row) for n, row in zip(output.labels, rows_, strict=True))
            return [Output(title, (head, *rows_))]
        case Figure():
            title = f"{title}: {output.phrase}" if title else output.phrase.capitalize()
            return [Output(title, output)]


def printed(title: str, text: str) -> list[Output]:
    """Return what a program or a model wrote beside its text; nothing where that is empty."""
    return [Output(title, strip_colours(text))] if text.strip() else []


def whole_account(run: Run, text: Iteration) -> list[Block]:
    """Return what a text gives and did to data: what asks first, then the answer."""
    return [*data_questions(run, text), *account(run, text)]


def account(run: Run, text: Iteration, *, alone: bool = False, new: bool = True) -> list[Block]:
    """Return what a text gives and did to data, the answer first, without what is asked.

    Args:
        run: the run.
        text: the text.
        alone: whether neither what is asked nor its results stand next to it.
        new: whether beside an answer what is new is told, too; else it is among the details.
    """
    found = outputs(text.evidence)
    is_long = found and not found[0].is_short
    answer, told = 0 if is_long else 1, _effects_told(run, text, alone=alone, new=new)[1]
    return [*found[:answer], *_lines(told), *found[answer:]]


def data_questions(run: Run, text: Iteration) -> list[Lines]:
    """Return what running a text did to data and no words ask for: at most two rows."""
    return _lines(_effects_told(run, text)[0])


def _effects_told(
    run: Run, text: Iteration, *, alone: bool = False, new: bool = True
) -> tuple[list[Line], list[Line]]:
    """Return what happened to data and is asked, and what is only told.

    Of the latter, what is more than three lines with what is asked is folded.
    """
    facts = [] if alone else [one for one in _facts(run, text) if one.effect]
    points = {one.effect.key: one for one in reversed(facts) if one.effect}
    asking = [one.id for one in facts if one.source != "run"][:_ASKED]
    asked, told = list[Line](), list[Line]()
    changed = () if alone else [one.call for one in rows(run, text) if one.before]
    has_answer, may_say = bool(outputs(text.evidence)), state_of(run, text) != "read"
    because = {} if alone else follows(run, text)
    for evidence in text.evidence:
        ran_on, remark = model.on_conditions(evidence.conditions), _remark(evidence)
        for one in evidence.effects:
            point = None if one == remark else points.pop(one.key, None)
            if point and point.id in asking:
                asked.append(_effect(one, ran_on, point.id, "undo"))
            elif one.kind == "new" and has_answer and not new:
                pass
            elif one != remark and (one.kind != "changed" or one.name not in changed):
                may = point.id if point and point.source == "run" and may_say else ""
                line = _effect(one, "" if has_answer or told else ran_on, may, "may")
                why = (f"follows from {because[one.key]}",) if one.key in because else ()
                told.append(line._replace(notes=(*why, *line.notes)))
    asked.sort(key=lambda line: asking.index(line.key))
    most = max(1, _UNFOLDED - 2 * len(asked))
    most += len(told) == most + 1  # folding a single line saves none
    return asked, [one._replace(folded=number >= most) for number, one in enumerate(told)]


def _effect(one: model.Effect, ran_on: str, point: str, asks: Literal["undo", "may"]) -> Line:
    line = f"line {one.line}" if one.line and one.kind not in ("unchanged", "warning") else ""
    return Line(
        sentence(one),
        point,
        notes=tuple(filter(None, (line, ran_on))),
        mark=_ASKS if point and asks == "undo" else Label("\N{EN DASH}", "", "quiet"),
        number=point,
        output=tuple(_output(one.head)) if one.head else (),
        asks=asks if point else "",
        choices=say.effect_buttons(one) if point else (),
    )


def _lines(found: Sequence[Line]) -> list[Lines]:
    how = "%refine dismiss {0.key}: “{0.choices[0]}”; continue {0.key}: “{0.choices[1]}”."
    commands = [how.format(one) for one in found if one.choices]
    return [Lines(tuple(found), commands="\n".join(commands))] if found else []


# The table of a run: a line for each thing that texts are held to, a column for each text


_MOST_LINES = 7  # of the table, before it folds
LAST_TEXTS = 4  # texts whose lines are there at once
_LAST, _LAST_OF_ALL = 3, 9  # texts whose columns stay, beside the first and the best
_TALLY = re.compile(r"\n?\d+ of \d+ [\w ]+ hold\.\Z")
_SENTENCE = re.compile(r"(?<=[.!?…。])\s")
_HOLDS, _MISSES = Label("✓", "passes", "good"), Label("✗", "misses it", "bad")
_MINOR = Label("✗", "misses it, which does not block", "quiet")
_NONE = Label("·", "not tried", "quiet")
_ASKS = Label("?", "to check", "warn")
_BLANK = Label("?", "to fill in", "quiet")
_UNTRIED = Label("?", "could not be tried", "quiet")
_GIVEN = {  # of a result: whether a text gives it, and whether it is the one that is expected
    (True, False): Label("·", "gives the same", "quiet"),
    (False, False): Label("≠", "gives something else", "warn"),
    (True, True): _HOLDS,
    (False, True): _MISSES,
}
_COMMANDS = {  # how the first question of each kind is answered without buttons
    "example": '%refine should 1 "VALUE" says what it should give.',
    "keep": "%refine dismiss {0} keeps it; continue {0} has it struck.",
    "open": "%refine should {0} ANSWER answers it; dismiss {0} drops it.",
}
_DROPPED = {
    "you": "You set it aside.",
    "broken": "It is not Python.",
    "long": "It is too long to be run.",
    "many": "A run takes 12 tests of a critique, and 40 in all.",
    "no_suite": "Nothing here can run it.",
}
_BY: dict[model.Basis, str] = {
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
) -> list[Lines]:
    """Return the table of what texts are held to, as one of them is shown; none without a line.

    What asks stands first, then what is missed, then what holds. What an evaluator says is never
    folded.

    Args:
        run: the run.
        text: the text that is shown.
        waiting: what the user said of results and the run has not taken up yet.
        every: whether more texts have their columns than fit beside each other.
    """
    total, last = len(run.iterations), _LAST_OF_ALL if every else _LAST
    shown = {0, run.best, text.number, *range(total - last, total)}
    texts = [one for one in run.iterations if total > 1 and one.number in shown]
    asked, tested = results(run, text, waiting, texts), _tested(run, text)
    lines = [
        *asked,
        *([_evaluator(run, text, texts)] if has_evaluator(run) else ()),
        *_held_to(run, text, texts, tested),
    ]
    unfolded, found = 0, []
    for line in sorted(lines, key=_order):
        # What every text holds is no news.
        holds = line.mark.symbol == "✓" and not line.word and {*line.marks} <= {_HOLDS}
        folded = line.folded or holds or unfolded >= _MOST_LINES
        folded = folded and line.source != "evaluator"
        unfolded += not folded
        found.append(line._replace(folded=folded))
    first = {one.asks: one.key for one in reversed(asked)}
    commands = [how.format(first[one]) for one, how in _COMMANDS.items() if one in first]
    commands *= not run.setup.is_look
    table = Lines(
        tuple(found),
        tuple(_head(run, one, text) for one in texts),
        "Checks",
        "\n".join(commands),
    )
    return [table] if found else []


def _missed(run: Run, text: Iteration) -> list[Line]:
    """Return what a text misses, what blocks it first, but what asks."""
    lines = sorted(_held_to(run, text, [], _tested(run, text)), key=_order)
    return [one for one in lines if one.mark.symbol == "✗"]


def _order(line: Line) -> int:
    if line.asks:  # an answer moves no line
        return 0
    if line.mark.symbol == "✗":
        return 2 if line.mark.kind == "quiet" else 1
    return {"?": 3, "✓": 4}.get(line.mark.symbol, 5)


def _head(run: Run, one: Iteration, text: Iteration) -> Head:
    name, star = run.name(one.number), " ★" * (one.number == run.best)
    title = f"{name}: {say.verdict(run, one).label.word}"
    return Head(name.removeprefix("Revision ") + star, one.number, title, one is text)


# By their names, the results that are shown, and the tests that claim nothing but one of these.
_Tested = dict[str, tuple[table.Result, list[Point]]]


def _tested(run: Run, text: Iteration) -> _Tested:
    claimed = [(test, [key_of(one) for one in claims(test)]) for test in run.tests]
    return {
        row_key(one): (one, [t for t, keys in claimed if keys == [key_of(one)]])
        for one in (() if run.setup.coach else rows(run, text))
    }


def _held_to(
    run: Run, text: Iteration, texts: Sequence[Iteration], tested: _Tested
) -> Iterator[Line]:
    """Yield everything else that texts are held to: tests, remarks, rules and checks."""
    told = {test.id for _, tests in tested.values() for test in tests}
    by_points = set()
    for point in run.points.values():
        result = text.results.get(point.id)
        tried = any(point.id in one.results for one in texts)
        untried = is_critics(point) and (tried or point.text == text.number)
        if point.id in told or not (result or untried):
            continue
        cell = Cell(point, result) if result else None
        # The evaluator's line shows what only states a score.
        only_score = cell and (
            is_bare_no(cell, "evaluator")
            or any(
                one.name == point.check and one.score is not None and not one.points
                for one in text.evidence
            )
        )
        if not only_score:
            by_points.add(point.check)
        answered = point.dropped == "you" and point.kind in ("fact", "question")
        answered = answered or bool(point.effect and result and result.passed)
        if answered or only_score or (cell and cell.asks):
            continue
        marks = tuple(_mark(one, point) for one in texts)
        yield point_line(text, point)._replace(source=_source(run, point), marks=marks)
    for evidence in text.evidence:
        empty = evidence.passed is None and not evidence.not_run and not evidence.shows
        # What the user confirmed has lines of its own.
        quiet = evidence.basis in ("none", "confirmed") or evidence.is_empty or empty
        ran = evidence.basis == "run" and evidence.passed
        told_by = evidence.passed is False and evidence.name in by_points
        if not (quiet or ran or told_by):
            marks = tuple(
                next((evidence_mark(e) for e in one.evidence if e.name == evidence.name), _NONE)
                for one in texts
            )
            yield _check(run, evidence)._replace(marks=marks)


def _check(run: Run, evidence: table.Result) -> Line:
    """Return what a check came to, with what it showed that the line does not say."""
    line, detail, short = say.check(evidence), strip_colours(evidence.shows).strip("\n"), ""
    if evidence.by_examples:  # the line says it
        detail = _TALLY.sub("", detail)
    if evidence.passed and evidence.basis in say.STATED and "\n" not in detail:
        short, detail = detail * (line not in detail), ""
    return Line(
        line,
        notes=tuple(filter(None, (short, model.on_conditions(evidence.conditions)))),
        mark=evidence_mark(evidence),
        source=_BY.get(evidence.basis, ""),
        detail=detail,
        drop=evidence.name if evidence.name in run.demands else "",
    )


def point_line(text: Iteration, point: Point) -> Line:
    """Return a point as a text misses, holds or has mended it, in words."""
    tried, test = text.results.get(point.id), is_critics(point)
    result = tried or table.Result()
    stated = "task" if point.blocking or not test else "not in the task"
    quote = f"{stated}: {say.quoted(point.quote)}" if point.quote else ""
    settled = result.passed or (tried and point.dropped)
    fix = f"Fix: {point.fix}" if point.fix and not settled else ""
    if test:
        untried = result.shows * (result.passed is None) if tried else "It came after this text."
        if point.dropped:
            untried = point.reason or _DROPPED[point.dropped]
        notes = [quote, untried]
        dismiss = "Doesn't follow" if point.blocking else "Dismiss"
    else:
        # The words of an error, or of what became of data, stand there once it is mended, too.
        mended = (point.check or point.kind == "fact") and result.passed
        weighs = point.blocking and result.counts
        again = "back again" * result.again
        notes = [quote, "suggestion" * (not weighs), again, "no longer" if mended else ""]
        dismiss = (
            "It is ready"
            if point.kind == "reading"
            else "Dismiss" * (not point.check or not point.blocking)
        )
    return Line(
        say.with_contest(say.point_line(point, tried), point),
        point.id,
        notes=tuple(filter(None, (*notes, fix))),
        mark=_mark(text, point),
        place=point.place,
        detail=point.code,
        dismiss=dismiss,
    )


def _source(run: Run, point: Point) -> str:
    if is_critics(point):
        return "its test"
    if point.check:
        every = (one for text in run.iterations for one in text.evidence)
        basis = next((_BY.get(one.basis, "") for one in every if one.name == point.check), "")
        return basis or say.check_name(point.check)
    return "your tests" if point.source == "tests" else point.source


def _evaluator(run: Run, text: Iteration, texts: Sequence[Iteration]) -> Line:
    """Return the line of the user's evaluator, with the score or the word of each text."""
    said = [one.evaluation for one in run.iterations if one.evaluation]
    scores = ", ".join(say.score(one.score) for one in said if one.score is not None)
    target = f": {scores} (target {say.score(run.limits.target)})" if scores else ""
    mark, *marks = (_reader_mark(run, one) for one in (text, *texts))
    return Line(f"your evaluator{target}", mark=mark, source="you", marks=tuple(marks))


def _reader_mark(run: Run, text: Iteration) -> Label:
    said = text.evaluation
    if said is None:
        return _NONE
    if said.failure:
        return _UNTRIED._replace(word="could not be read")
    passed = said.says is model.Outcome.PASS
    if said.says is None and said.score is not None:
        passed = said.score >= run.limits.target
    return _HOLDS if passed else _MISSES


def _mark(text: Iteration, point: Point) -> Label:
    result = text.results.get(point.id)
    if result is None:
        return _NONE
    if point.dropped:
        return _NONE._replace(word="set aside")
    if result.passed is None:
        return _UNTRIED
    if result.passed:
        return _HOLDS
    cell = Cell(point, result)
    if cell.asks or point.disputed or (is_critics(point) and not point.counts):
        return _ASKS
    return _MISSES if cell.weighs else _MINOR


def evidence_mark(evidence: table.Result) -> Label:
    """Return the mark of a check that ran on a text."""
    if evidence.passed is None:
        return _UNTRIED
    return _HOLDS if evidence.passed else _MISSES if evidence.counts else _MINOR


# The texts, a line each


def texts(
    run: Run,
    shown: Iteration | None = None,
    *,
    whole: bool = True,
) -> list[Section]:
    """Return a line for each text: what it missed and what was said of it; none for a single one.

    A single text of which somebody said something as a whole has its line, too.

    Args:
        run: the run.
        shown: the text that is shown above.
        whole: whether all of each text is below its line, and not only what was said of that one.
    """
    found, is_told = [], len(run.iterations) > 1
    for text in run.iterations:
        feedback_, missed = feedback(run, text), told(run, text)
        is_told = is_told or bool(
            text.evaluation or [one for one in feedback_ if one.lead != "Ready:"]
        )
        first = first_line(next((one.text for one in feedback_), ""))
        first = _SENTENCE.split(first, maxsplit=1)[0]
        if first and not text.override:
            missed = say.quoted(first)
        elif text is shown and not whole and not feedback_:
            missed = ""  # the header says it
        below: list[Block] = [*feedback_] if text is shown else []
        if whole:
            below = version(run, text, shown)
        elif "".join(one.text for one in feedback_) == first:
            below = []
        name, number = run.name(text.number), text.number
        found.append(Section(name, tuple(below), said=missed, number=number, shown=text is shown))
    return found if is_told else []


def told(run: Run, text: Iteration) -> str:
    """Return a text's verdict in one line."""
    if text.failure:
        return say.NO_NEW_TEXT.word
    if text.verdict is None:
        return "not read yet" if say.running(run) else "not read"
    return say.verdict(run, text).line


def feedback(run: Run, text: Iteration) -> list[Paragraph]:
    """Return what a critic or an evaluator said of a text as a whole."""
    said, found = text.reading, []
    if said and said.said:
        found.append(Paragraph(said.said, lead="The reply, as it came:"))
    if said and said.reason:
        lead = "" if said.ready is None else "Ready:" if said.ready else "Not ready:"
        back = " You took that back." if said.taken_back else ""
        found.append(Paragraph(f"{said.reason}{back}", lead=lead))
    if said and said.compared == "worse" and text.parent is not None:
        worse = f"The critic calls it worse than {run.mention(text.parent)}"
        found.append(Paragraph(f"{worse}{f': {said.lost}' if said.lost else '.'}"))
    return found


def version(run: Run, text: Iteration, shown: Iteration | None = None) -> list[Block]:
    """Return all of a text: what was written, what it misses and gives, and what was said of it.

    What stands above is left out: of the text that is shown there, and of what it is held to.
    """
    found = writing(run, text) if text is not shown or text.parent is not None else []
    if text is not shown:
        above = shown.results if shown else {}
        if missed := [one for one in _missed(run, text) if one.key not in above]:
            found.append(Lines(tuple(missed), title="Missed"))
        found += account(run, text, alone=True)
    why = say.verdict(run, text).sentence
    return [
        *found,
        *(one for one in feedback(run, text) if one.text not in why),
        *claims_of(run, text),
        *printed("Model notes", text.thoughts),
    ]


def claims_of(run: Run, text: Iteration) -> list[Paragraph]:
    """Return the changes that a revision claims for what it was written for."""
    items = (
        f"{run.points[id_].words if id_ in run.points else id_} → "
        f"{'left as it is: ' if id_ in text.contested else ''}{summary}"
        for id_, summary in text.changes.items()
        if summary
    )
    return _listed("What it says it changed", items)


def writing(run: Run, text: Iteration) -> list[Block]:
    """Return a text, or how it differs from its parent, with the sections that it lost."""
    form, language = run.task.form, run.task.language
    if text.failure:
        return [failure(text)]
    if text.parent is None:
        return [Text(text.text, form, language, "Text")]
    title, old = f"Changes from {run.mention(text.parent)}", run.iterations[text.parent].text
    return [Text(text.text, form, language, title, old), *lost(run, text)]


def lost(run: Run, text: Iteration) -> list[Block]:
    """Return the sections of prose that a revision lost or shortened, in one line."""
    line = say.losses_sentence(lost_sections(run, text))
    return [Paragraph(line, "warning")] if line else []


def failure(text: Iteration) -> Paragraph:
    """Return why the model gave no usable text."""
    return Paragraph(text.failure, "flaw", "No usable text from the model:")


def _listed(title: str, items: Iterable[str]) -> list[Paragraph]:
    text = "".join(f"\n\N{EN DASH} {one}" for one in items)
    return [Paragraph(text, lead=title)] if text else []


# A whole run


_EXITS: dict[str, Callable[[str], list[str]]] = {
    "New addresses in it: {}.": find_addresses,
    "Left masked: {}. No secret stood there before, so fill it in yourself.": MASK.findall,
}


def record(run: Run, *, brief: bool = False) -> list[Block]:
    """Return the blocks of a whole run below its verdict: the outcome, then how it came about.

    With `brief`, neither numbers of stages nor settings are said.
    """
    text = run.chosen
    if run.setup.coach:
        own = [Text(text.text, "code", title="Your code")] if text else []
        return [*puzzle(run), *predicted(run), *own]
    return [
        *map(Paragraph, filter(None, (say.stop_message(run),))),
        *warnings(run, text),
        *(whole_account(run, text) if text else ()),
        *result(run),
        *unfinished(run),
        *(checks(run, text) if text else ()),
        *(texts(run, text) if text else ()),
        Section("Details", tuple(details(run, text, brief=brief))),
    ]


def summary(run: Run) -> str:
    """Return in a line what the run took, and why it stopped."""
    parts = say.usage_parts(run.usage, run.seconds)
    if run.stop_reason and not run.setup.is_look:
        parts.append(f"stopped: {say.STOPS[run.stop_reason]}")
    return " · ".join(parts)


def details(run: Run, text: Iteration | None, *, brief: bool = False) -> list[Block]:
    """Return what stands nowhere else: how the cell was read, what was decided, what it took."""
    ran = (one for one in (text.evidence if text else ()) if one.basis == "run" and one.passed)
    why = say.verdict(run, text).sentence if text else ""
    loud = [one.text for one in warnings(run, text) if one.kind == "warning"]
    effects = text.effects.values() if text else ()
    new = [_effect(one, "", "", "may") for one in effects if one.kind == "new"]
    said = [
        "" if run.setup.coach else summary(run),
        say.opening(run.setup),
        why if "\n" in why else "",  # else the header says it
        *(strip_colours(one.shows).strip() for one in ran),
        *(one for one in run.warnings if one not in loud),
    ]
    return [
        *(Paragraph(one, "quiet") for one in said if one),
        *(_lines(new) if text and outputs(text.evidence) else ()),
        *decisions(run),
        *explanations(run),
        *([] if brief else [*usage(run), *settings(run)]),
    ]


def decisions(run: Run) -> list[Block]:
    """Return the user's decisions, without those that the stop names."""
    accepted = run.ruling if run.stop_reason is StopReason.ACCEPTED else None
    left_out = accepted if isinstance(accepted, Accept) and not accepted.reason else None
    return [Paragraph(decision_sentence(run, one)) for one in run.decisions if one is not left_out]


def explanations(run: Run) -> list[Block]:
    """Return the user's questions about texts, with the answers."""
    return [
        Paragraph(f"{one.answer} ({run.name(one.iteration)})", lead=f"You asked: {one.question}")
        for one in run.explanations
    ]


def warnings(run: Run, text: Iteration | None) -> list[Paragraph]:
    """Return the warnings that say more than a text's verdict, and what to see before Accept."""
    verdict = text.verdict if text else None
    told = verdict.line if verdict and verdict.outcome is model.Outcome.NOT_JUDGED else ""
    said = [Paragraph(one, "warning") for one in run.warnings if not told or told not in one]
    return [*said, *(exits(run, text) if text else ())]


def exits(run: Run, text: Iteration) -> list[Paragraph]:
    """Return what to see of a text before it is accepted: new addresses, and masks for secrets."""
    own = "\n".join(own_words(run))
    return [
        Paragraph(sentence.format(", ".join(new)), "warning")
        for sentence, find in _EXITS.items()
        if (new := [one for one in dict.fromkeys(find(text.text)) if one not in find(own)])
    ]


def result(run: Run) -> list[Block]:
    """Return the chosen text."""
    return [Text(run.text, run.task.form, run.task.language)] if run.chosen else []


def unfinished(run: Run) -> list[Block]:
    """Return the start of a text whose call ended early."""
    if run.stop_reason is None or not run.unfinished.strip():
        return []
    return [Text(run.unfinished, run.task.form, run.task.language, "Written before it stopped")]


def usage(run: Run) -> list[Block]:
    """Return calls, tokens, time and cost of each stage."""
    head = ("Stage", "Calls", "Prompt tokens", "Cached", "Completion tokens", "Time", "Cost")
    found = (
        (
            say.STAGES.get(stage, stage),
            str(used.calls),
            f"{used.prompt_tokens:,}",
            say.NONE if used.cached_tokens is None else f"{used.cached_tokens:,}",
            f"{used.completion_tokens:,}",
            say.seconds(used.seconds),
            say.cost(used.cost),
        )
        for stage, used in run.spent.items()
    )
    return [Output("Usage by stage", (head, *found))] if run.spent else []


def settings(run: Run) -> list[Block]:
    """Return the task with its criteria, checklist and limits."""
    task = run.task
    if run.setup.is_look:
        return [Paragraph(f"checks {', '.join(run.setup.checks) or '(none)'}", "quiet")]
    return [
        Paragraph(task.text, "words"),
        *_listed("Your answers", (one.sentence for one in task.clarifications)),
        *(
            Paragraph(one.text, lead=f"Shown to the model: {one.phrase}")
            for one in task.materials
            if one.phrase
        ),
        *_listed("Criteria", (f"{one.name}: {one.definition}" for one in task.criteria)),
        *_listed("Checklist", task.checklist),
        Paragraph(" · ".join(say.settings(run)), "quiet"),
    ]


# What a student sees of a run on their own code


_PREDICT = "What does it give? Predict it: a value as Python, or the name of an exception."


def puzzle(run: Run) -> list[Block]:
    """Return the input whose result a student is to predict; nothing where none is left."""
    found = open_puzzle(run)
    lead = "Your code misses the task on one input."
    return [Paragraph(_PREDICT, lead=lead), Text(found.code, "code")] if found else []


def predicted(run: Run) -> list[Block]:
    """Return what a student predicted, and once nothing is left to predict, what else is said."""
    blocks, also = [], []
    if run.chosen and open_puzzle(run) is None:
        change = predictions(run) and run.verdict and not run.verdict.passed
        reason = say.verdict(run, run.chosen).sentence
        blocks.append(Paragraph("Change your code, and run the cell again." if change else reason))
        left = [one for one in run.cells(run.chosen) if one.actionable and one.point.by_model]
        left = [one for one in left if change or one.words not in reason]
        also = [f"“{quote}”" for quote in unmet(run)]
        also += [one.words for one in sorted(left, key=lambda one: not one.weighs)]
    made = (
        f"{one.code}: {_prediction(one)}".replace("\n", "; ")
        for one in run.attempts
        if one.predicted
    )
    return [*blocks, *_listed("Look at this too", also), *_listed("Your predictions", made)]


def _prediction(attempt: model.Attempt) -> str:
    right = gives_same(attempt.predicted, attempt.gives)
    gives = ", and so it is" if right else f"; it gives {bare(attempt.gives)}"
    quote = f": “{attempt.quote}”" if attempt.quote else "."
    wanted = f"The task wants {bare(attempt.expected)}{quote}"
    return f"You predicted {bare(attempt.predicted)}{gives}. {wanted}"
