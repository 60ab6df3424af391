"""What every surface draws a run from: blocks, without any markup, and how a run becomes them."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ipyrefine.core import model, table
from ipyrefine.core.actions import decision_sentence
from ipyrefine.core.addresses import MASK, find_addresses
from ipyrefine.core.coach import open_puzzle, predictions, unmet
from ipyrefine.core.decisions import Accept, Expect, Retract
from ipyrefine.core.effects import sentence
from ipyrefine.core.model import Called, Form, StopReason, bare
from ipyrefine.core.points import left_open, lost_sections
from ipyrefine.core.policy import is_bare_score
from ipyrefine.core.readers import has_evaluator, is_read, is_to_read
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
from ipyrefine.core.stated import read_examples
from ipyrefine.core.syntax import try_parse
from ipyrefine.core.table import Cell, Point
from ipyrefine.core.testing import is_critics
from ipyrefine.core.unsourced import own_words
from ipyrefine.render import say
from ipyrefine.render.escape import strip_colours
from ipyrefine.render.say import Label

_SHORT = 100  # characters of an output that stands in the line of its title


class Paragraph(NamedTuple):
    """A few sentences, after a lead that stands out; ``words`` are the user's own, set apart."""

    text: str
    kind: Literal["plain", "words", "warning", "flaw", "quiet"] = "plain"
    lead: str = ""


class Text(NamedTuple):
    """A draft or revision in full, or, with the text before it, what changed."""

    text: str
    form: Form
    language: str = "python"
    title: str = ""
    old: str | None = None


class Output(NamedTuple):
    """Text of a program or a model that is not the result; in the line of its title if short."""

    title: str
    text: str = ""
    condition: str = ""  # what its code ran on, where that is less than the real thing

    @property
    def is_short(self) -> bool:
        """Whether it fits on one line."""
        text = self.text.strip("\n")
        return "\n" not in text and len(text) <= _SHORT


class Line(NamedTuple):
    """What texts are held to, or what one gives or did: a row of a list or of the table."""

    text: str = ""  # what it says; of an input its call, below the statements that run before it
    key: str = ""  # what it is about: the name by which an answer says which one it means
    note: str = ""  # what qualifies it, such as the task's words behind it
    # In the table: of the shown text and of each head, who says it, and the name to type.
    mark: Label = Label("", "", "quiet")
    source: str = ""
    marks: tuple[Label, ...] = ()
    number: str = ""  # empty where nothing is asked
    folded: bool = False  # whether it is seen on a click only
    # What texts are held to.
    quote: str = ""  # the words of the text it rests on
    form: Form = "prose"  # how the quote is set
    demand: str = ""  # the words of the task that it goes against
    fix: str = ""  # how to fix it
    detail: str = ""  # program output
    settled: bool = False  # whether it needs no action any more
    dismiss: str = ""  # the button that sets it aside; empty where that can't be done by itself
    drop: str = ""  # the demand that a click leaves out, by its name
    # What is asked about what a text gives or did; of a fact, whether to `keep` or to `undo` it. Of
    # what a person `may` say they need not.
    asks: Literal["right", "example", "keep", "undo", "may", "open", ""] = ""
    value: str = ""  # the result of an input: a value, or an exception with its message
    sign: Literal["→", "=", "·", ""] = "→"  # what stands between the two
    before: str = ""  # what the name held before the cell ran
    # What it may give, where that is asked; their order does not say which one the text gives.
    choices: tuple[str, ...] = ()
    rivalry: str = ""  # who gives what, where that is asked
    confirmed: bool | None = None  # the user's word on it
    expected: str = ""  # what it should be, where the user says it is something else
    output: tuple["Block", ...] = ()  # of an effect, a table that it comes with
    condition: str = ""  # what it was computed on, where that is less than the real thing
    buttons: tuple[str, ...] = ()  # of a fact: that it is meant, and that it goes

    def __str__(self) -> str:
        """What a text gives or did, in one line."""
        value = f"{self.before} → {self.value}" if self.before else self.value
        if self.choices:
            value = f"{' or '.join(self.choices)}?"
            value += f" ({self.rivalry})" if self.rivalry else ""
        call = self.text.replace("\n", "; ")
        if self.asks == "example":
            return f"{call} == ?"
        if self.asks == "keep":
            return f"“{call}” stands in no source: {value}"
        if self.asks == "open":
            options = " / ".join(self.choices)
            return f"{call} ({options})" if options else call
        line = f"{call} {self.sign} {value}" if self.sign else f"{call}{': ' * bool(value)}{value}"
        return " · ".join(map(str, filter(None, (line, self.condition, self.word))))

    @property
    def word(self) -> Label | None:
        """The user's word on what a text gives."""
        if self.expected:
            return Label("✗", f"should be {bare(self.expected)}", "bad")
        return None if self.confirmed is None else Label("✓", "confirmed", "good")


class Items(NamedTuple):
    """A titled list."""

    title: str
    items: tuple[Line, ...]


class Table(NamedTuple):
    """A titled table; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    condition: str = ""  # what its code ran on, where that is less than the real thing


class Picture(NamedTuple):
    """A PNG in base64, its width and height in pixels, and what it is in words."""

    title: str
    png: str
    size: tuple[int, int]
    caption: str
    axes: tuple[str, ...] = ()  # what is drawn on each of its axes
    condition: str = ""  # what its code ran on, where that is less than the real thing


class Results(NamedTuple):
    """What running a text did to data, for a person to allow."""

    rows: tuple[Line, ...]

    @property
    def commands(self) -> str:
        """How to answer without buttons."""
        return "\n".join(
            f"%refine dismiss {one.key}: “{one.buttons[0]}”; "
            f"continue {one.key}: “{one.buttons[1]}”."
            for one in self.rows
            if one.buttons
        )


class Head(NamedTuple):
    """The head of a text's column in the table of checks; of those left out, how many there are."""

    name: str  # a short one: ``Draft``, ``1``, ``2 ★``
    number: int | None = None  # the text's; None where some are left out
    title: str = ""  # its name with what it came to, for a reader who doesn't see the marks
    shown: bool = False  # whether it is the text above the table


class Checks(NamedTuple):
    """What texts are held to: a line for each thing, and a column for each text."""

    heads: tuple[Head, ...]  # none for a single text
    lines: tuple[Line, ...]
    hint: str = ""  # what an answer would settle
    commands: str = ""  # how to answer without buttons

    @property
    def more(self) -> str:
        """How many lines are folded: ``2 more missed · 6 more``."""
        folded = [one.mark.symbol for one in self.lines if one.folded]
        missed = folded.count("✗")
        counts = {"more missed": missed, "more": len(folded) - missed}
        return " · ".join(f"{number} {word}" for word, number in counts.items() if number)


class Told(NamedTuple):
    """A text in one line: what it missed, and what was said of it."""

    number: int
    name: str
    missed: str
    said: str = ""
    blocks: tuple["Block", ...] = ()  # all of it
    shown: bool = False  # whether it is the text above


class Texts(NamedTuple):
    """The texts of a run in their order, a line each."""

    lines: tuple[Told, ...]


class Section(NamedTuple):
    """Blocks under a heading: a name, perhaps a verdict; folded where possible."""

    title: str
    blocks: tuple["Block", ...]
    label: Label | None = None
    open: bool = False

    def __str__(self) -> str:
        return f"{self.title} · {self.label}" if self.label else self.title


Block = Paragraph | Text | Output | Items | Table | Picture | Results | Checks | Texts | Section


# What a text gives, and what it does to data


_NAMED = 24  # characters of a result that is said again
_PLACES = ("the first", "the second", "the third")
_PRINTED = "Printed"
_ASKED, _UNFOLDED = 2, 3  # effects that ask, and those that are told before the rest folds
# A number or truth value as NumPy writes it.
_NUMPY = re.compile(r"\bnp\.(?:(?:u?int|float)\d+\(([-+.\w]+)\)|(True|False)_)")
_ORDER = (model.Value, model.TableValue, model.Figure, model.Printed)


def results(run: Run, text: Iteration, waiting: Iterable[Expect | Retract] = ()) -> list[Line]:
    """Return what a text gives on a few inputs, and what else is asked about it."""
    if run.setup.coach:
        return []
    found = rows(run, text)
    said: dict[Key, Called | None] = {
        key_of(one): None if isinstance(one, Retract) else one
        for one in (*run.task.clarifications, *waiting)
    }
    first = unfolded(found)
    shown = [
        _row(run, text, one, said.get(key_of(one)))._replace(folded=one not in first)
        for one in found
    ]
    if found and found[0] == example_asked(text, found) and not waiting:
        shown = [Line(found[0].call, row_key(found[0]), asks="example")]
    unsourced = [
        Line(
            one.place,
            one.id,
            value=_around(text.text, one.place),
            asks="keep",
            buttons=("Keep", "Delete"),
        )
        for one in _facts(run, text)
        if not one.effect
    ]
    questions = (
        Line(one.words, one.id, choices=one.options, asks="open")
        for one in left_open(run, text)
        if not one.call
    )
    return [*(shown or unsourced), *questions]


def _hint(run: Run, text: Iteration, found: Sequence[table.Result]) -> str:
    """Return what to do about results if much rests on the user's word; else nothing."""
    verdict, looks = text.verdict, run.setup.is_look
    if verdict is None or verdict.barred or looks or all(one.conditions for one in found):
        return ""
    if verdict.outcome is model.Outcome.NOT_JUDGED:
        unread = is_to_read(run, text) and not text.reading
        then = "; a critic reads the text too" if unread else ", and the text passes"
        return f"Confirm {'the first, or any two' if len(found) > 1 else 'it'}{then}."
    few = verdict.basis == "examples" and len(read_examples(run.task.text)) < 2
    asks = verdict.passed and few and run.setup.weak_critic
    if not asks or any(one.passed is not None for one in found):
        return ""
    return "It passes on one example of the task. Is the first result right?"


def _facts(run: Run, text: Iteration) -> list[Point]:
    return [one.point for one in run.cells(text) if one.asks and one.point.kind == "fact"]


def _around(text: str, words: str) -> str:
    """Return the line that some words stand in, cut to what is next to them."""
    near = re.search(rf"(?<!\S)[^\n]{{0,32}}{re.escape(words)}[^\n]{{0,32}}(?!\S)", text)
    if near is None:
        return words
    start, end = near.span()
    before = "… " if start and text[start - 1] != "\n" else ""
    after = " …" if text[end : end + 1].strip("\n") else ""
    return f"{before}{near[0].strip()}{after}"


def rivalry(run: Run, row: table.Result) -> str:
    """Return who gives which of the possible results: ``the draft gives 2, draft 2 gives 3``.

    Long ones are counted, as they stand beside it: ``the draft gives the first``.
    """
    key, told = key_of(row), list[str]()
    tests = (one for one in run.tests if not one.dropped)
    claimed = [one.gives for test in tests for one in claims(test) if key_of(one) == key]
    given_by = [given(run, one).get(key) for one in run.iterations]
    for place, choice in enumerate(row_choices(row)):
        long = len(bare(choice)) > _NAMED and place < len(_PLACES)
        value = _PLACES[place] if long else bare(choice)
        expected = any(gives_same(one, choice) for one in claimed)
        who = [run.mention(n) for n, one in enumerate(given_by) if one and gives_same(one, choice)]
        if len(given_by) == 1:
            who = ["this text"] * len(who)
        if len(who) > 2:
            who[1:] = [f"{len(who) - 1} more"]
        if who:
            verb = ("raise" if bare(choice) != choice else "give") + "s" * (len(who) == 1)
            end = ", as the critic expects" if expected else ""
            told.append(f"{' and '.join(who)} {verb} {value}{end}")
        elif expected:
            told.append(f"the critic expects {value}")
    opens = "the task leaves it open" if row.source == "open" else ""
    return "; ".join(filter(None, (opens, ", ".join(told))))


def _row(run: Run, text: Iteration, row: table.Result, said: Called | None) -> Line:
    confirmed = gives_same(said.gives, row.gives) if said else None
    asked = bool(row.rivals) and confirmed is None and not row.conditions
    value = bare(row.gives)
    call = laid_out(row.call) if "\n" in row.call else row.call
    return Line(
        "\n".join([*_scenario(row), call]),
        row_key(row),
        asks="right",
        value=f"{value}: {row.shows}" if row.shows else value,
        sign="→" if row.source != "cell" else "" if row.before else "=",
        before=row.before,
        choices=tuple(map(bare, row_choices(row))) if asked else (),
        rivalry=rivalry(run, row) if asked else "",
        confirmed=confirmed,
        expected=said.gives if said and not confirmed else "",
        condition=model.on_conditions(row.conditions),
    )


def _scenario(row: table.Result) -> list[str]:
    """Return the lines before a call, each with its result."""
    setup = row.setup.strip()
    lines, tree = setup.splitlines(), try_parse(setup) if row.steps else None
    for node, gives in zip(tree.body if tree else (), row.steps, strict=False):
        if gives and node.end_lineno:
            lines[node.end_lineno - 1] += f" → {gives}"
    return lines


def outputs(text: Iteration) -> list[Output | Table | Picture]:
    """Return what a text gives in a check: the answer first, then what else it drew or printed."""
    found: list[Output | Table | Picture] = []
    for evidence in text.evidence:
        ran_on = model.on_conditions(evidence.conditions)
        remark = _remark(evidence)
        title = sentence(remark) if remark else "The answer"
        ordered = sorted(evidence.outputs, key=lambda one: _ORDER.index(type(one)))
        if remark and not isinstance(next(iter(ordered), None), _ORDER[:2]):
            found.append(Output(title, condition=ran_on))
            title = ran_on = ""
        for one in ordered:
            found += [block._replace(condition=ran_on) for block in _blocks(one, title)]
            title = ran_on = ""
    return found


def _remark(evidence: table.Result) -> model.Effect | None:
    """Return what is odd about the answer; of a name only where nothing else is the answer."""
    answers = any(not isinstance(one, model.Printed) for one in evidence.outputs)
    odd = (one for one in evidence.effects if one.kind == "answer")
    return next((one for one in odd if not (one.name and answers)), None)


def _blocks(output: model.Output, title: str = "") -> Sequence[Output | Table | Picture]:
    match output:
        case model.Printed():
            return printed(_PRINTED, output.text)
        case model.Value():
            text = _NUMPY.sub(r"\1\2", output.text)
            # "The answer is nan" says it all.
            said = title.lower().endswith(f" is {text.strip().lower()}")
            return [Output(title)] if said else printed(title, text)
        case model.TableValue():
            height, width = len(output.rows), len(output.columns)
            size = f"{height}" if output.is_series else say.count(height, "row")
            size = f"{height} × {width}" if width < output.width else size
            cut = height < output.height or width < output.width
            title = title and f"{title}: {output.phrase}{f', the first {size}' if cut else ''}"
            body = tuple((n, *row) for n, row in zip(output.labels, output.rows, strict=True))
            return [Table(title, (output.index, *output.columns), body)]
        case model.Figure():
            caption = output.phrase.capitalize()
            title = f"{title}: {output.phrase}" if title else caption
            return [Picture(title, output.png, output.size, caption, output.axes)]


def printed(title: str, text: str) -> list[Output]:
    """Return what a program or a model wrote beside its text; nothing where that is empty."""
    return [Output(title, strip_colours(text))] if text.strip() else []


def whole_account(run: Run, text: Iteration) -> list[Block]:
    """Return what a text gives and did to data: what asks first, then the answer."""
    return [*data_questions(run, text), *account(run, text)]


def account(run: Run, text: Iteration, *, alone: bool = False) -> list[Block]:
    """Return what a text gives and did to data, the answer first, without what is asked.

    Args:
        run: the run.
        text: the text.
        alone: whether neither what is asked nor its results stand next to it.
    """
    found = outputs(text)
    is_long = any(isinstance(one, Output) and not one.is_short for one in found[:1])
    answer = 0 if is_long and found[0].title == _PRINTED else 1
    told = _as_block(_effects_told(run, text, alone=alone)[1])
    return [*found[:answer], *told, *found[answer:]]


def data_questions(run: Run, text: Iteration) -> list[Results]:
    """Return what running a text did to data and no words ask for: at most two rows."""
    return _as_block(_effects_told(run, text)[0])


def _effects_told(
    run: Run, text: Iteration, *, alone: bool = False
) -> tuple[list[Line], list[Line]]:
    """Return what happened to data and is asked, and what is only told.

    Of the latter, what is more than three lines with what is asked is folded.
    """
    facts = [] if alone else [(one, one.effect.key) for one in _facts(run, text) if one.effect]
    points = {key: one for one, key in reversed(facts)}
    asking = [one.id for one, _ in facts if one.source != "run"][:_ASKED]
    asked, told = list[Line](), list[Line]()
    changed = () if alone else [one.call for one in rows(run, text) if one.before]
    has_answer = bool(outputs(text))
    for one, ran_on in _effects(text):
        point = points.pop(one.key, None)
        if point and point.id in asking:
            asked.append(_effect(one, ran_on, point.id))
        elif one.kind != "changed" or one.name not in changed:
            may = point.id if point and point.source == "run" and not is_read(run, text) else ""
            told.append(_effect(one, "" if has_answer or told else ran_on, may, asks="may"))
    asked.sort(key=lambda line: asking.index(line.key))
    most = max(1, _UNFOLDED - len(asked))
    most += len(told) == most + 1  # folding a single line saves none
    return asked, [one._replace(folded=number >= most) for number, one in enumerate(told)]


def _effects(text: Iteration) -> list[tuple[model.Effect, str]]:
    """Return what a text did to data, each with what that was seen on."""
    return [
        (one, model.on_conditions(evidence.conditions))
        for evidence in text.evidence
        for one in evidence.effects
        if one != _remark(evidence)
    ]


def _effect(
    one: model.Effect, ran_on: str, point: str = "", *, asks: Literal["undo", "may"] = "undo"
) -> Line:
    line = f"line {one.line}" if one.line and one.kind not in ("unchanged", "warning") else ""
    return Line(
        sentence(one),
        point,
        value=line,
        sign="·" if line else "",
        output=tuple(_blocks(one.head)) if one.head else (),
        asks=asks if point else "",
        condition=ran_on,
        buttons=say.effect_buttons(one) if point else (),
    )


def _as_block(found: Sequence[Line]) -> list[Results]:
    return [Results(tuple(found))] if found else []


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
_UNTRIED = Label("?", "could not be tried", "quiet")
_VACUOUS = Label("·", "holds for an empty text, too", "quiet")
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
_Columns = Sequence[Iteration | None]


def checks(
    run: Run,
    text: Iteration,
    waiting: Iterable[Expect | Retract] = (),
    *,
    every: bool = False,
) -> list[Checks]:
    """Return the table of what texts are held to, as one of them is shown; none without a line.

    What asks stands first, then what is missed, then what holds. What an evaluator says is never
    folded.

    Args:
        run: the run.
        text: the text that is shown.
        waiting: what the user said of results and the run has not taken up yet.
        every: whether more texts have their columns than fit beside each other.
    """
    heads = _heads(run, text, every=every)
    texts = [None if one.number is None else run.iterations[one.number] for one in heads]
    asked, tested = results(run, text, waiting), _tested(run, text)
    lines = [
        *_asked_lines(run, text, asked, texts, tested),
        *([_evaluator(run, text, texts)] if has_evaluator(run) else ()),
        *_held_to(run, text, texts, tested),
    ]
    shown, found = 0, list[Line]()
    for line in sorted(lines, key=_order):
        folded = line.folded or (shown >= _MOST_LINES and line.source != "evaluator")
        shown += not folded
        found.append(line._replace(folded=folded))
    first = {one.asks: one.key for one in reversed(asked)}
    commands = [how.format(first[one]) for one, how in _COMMANDS.items() if one in first]
    hint = "" if "example" in first else _hint(run, text, [row for row, _ in tested.values()])
    return [Checks(tuple(heads), tuple(found), hint, "\n".join(commands))] if found else []


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


def _heads(run: Run, text: Iteration, *, every: bool) -> list[Head]:
    total, last = len(run.iterations), _LAST_OF_ALL if every else _LAST
    kept = {0, run.best, text.number, *range(total - last, total)}
    found, left_out = list[Head](), 0
    for one in run.iterations if total > 1 else ():
        if total > last + 2 and one.number not in kept:
            left_out += 1
            continue
        if left_out:
            found.append(Head(f"+{left_out}", title=say.count(left_out, "more text")))
            left_out = 0
        name, star = run.name(one.number), " ★" * (one.number == run.best)
        title = f"{name}: {say.verdict(run, one).label.word}"
        found.append(Head(name.removeprefix("Revision ") + star, one.number, title, one is text))
    return found


# By their names, the results that are shown, and the tests that claim nothing but one of these.
_Tested = dict[str, tuple[table.Result, list[Point]]]


def _tested(run: Run, text: Iteration) -> _Tested:
    claimed = [(test, [key_of(one) for one in claims(test)]) for test in run.tests]
    return {
        row_key(one): (one, [t for t, keys in claimed if keys == [key_of(one)]])
        for one in (() if run.setup.coach else rows(run, text))
    }


def _asked_lines(
    run: Run, text: Iteration, asked: Iterable[Line], texts: _Columns, tested: _Tested
) -> Iterator[Line]:
    """Yield what a text gives where somebody may say whether that is right."""
    values = [given(run, one) if one else {} for one in texts]
    for place, one in enumerate(asked, start=1):
        row, tests = tested.get(one.key, (None, []))
        mark, source, note, marks = _ASKS, "" if row else "critic", "", [_NONE for _ in texts]
        if row:
            found = (value.get(key_of(row)) for value in values)
            said, wanted = one.confirmed is not None, one.expected or row.gives
            marks = [_NONE if v is None else _GIVEN[gives_same(v, wanted), said] for v in found]
        if one.confirmed is not None:
            mark, source = _HOLDS if one.confirmed else _MISSES, "you"
        elif tests:
            mark, source = _mark(text, tests[0]), "its test"
            note = say.quoted(tests[0].quote) if tests[0].blocking else ""
            marks = [_mark(column, tests[0]) for column in texts]
        elif one.asks == "right" and not one.choices:
            mark = Label("", "to confirm", "quiet")
        number = "" if one.condition else str(place) if row else one.key
        yield one._replace(mark=mark, source=source, note=note, marks=tuple(marks), number=number)


def _held_to(run: Run, text: Iteration, texts: _Columns, tested: _Tested) -> Iterator[Line]:
    """Yield everything else that texts are held to: tests, remarks, rules and checks."""
    told = {test.id for _, tests in tested.values() for test in tests}
    by_points = set[str]()
    for point in run.points.values():
        result = text.results.get(point.id)
        tried = any(one and point.id in one.results for one in texts)
        untried = is_critics(point) and (tried or point.text == text.number)
        if point.id in told or not (result or untried):
            continue
        cell = Cell(point, result) if result else None
        # The evaluator's line shows what only states a score.
        only_score = cell and (
            is_bare_score(cell)
            or any(
                one.name == point.check and one.score is not None and not one.points
                for one in text.evidence
            )
        )
        if not only_score:
            by_points.add(point.check)
        answered = point.dropped == "you" and point.kind in ("fact", "question")
        if answered or only_score or (cell and cell.asks):
            continue
        marks = tuple(_mark(one, point) for one in texts)
        line, mark = item(run, point, result), _mark(text, point)
        yield line._replace(mark=mark, source=_source(run, point), marks=marks)
    for evidence in text.evidence:
        empty = evidence.passed is None and not evidence.not_run and not evidence.shows
        # What the user confirmed has lines of its own.
        quiet = evidence.basis in ("none", "confirmed") or evidence.is_empty or empty
        ran = evidence.basis == "run" and evidence.passed
        told_by = evidence.passed is False and evidence.name in by_points
        if not (quiet or ran or told_by):
            of_texts = ((one.evidence if one else ()) for one in texts)
            marks = tuple(
                next((evidence_mark(one) for one in every if one.name == evidence.name), _NONE)
                for every in of_texts
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
        mark=evidence_mark(evidence),
        source=_BY.get(evidence.basis, ""),
        note=" · ".join(filter(None, (short, model.on_conditions(evidence.conditions)))),
        detail=detail,
        drop=evidence.name if evidence.name in run.demands else "",
    )


def item(run: Run, point: Point, result: table.Result | None) -> Line:
    """Return a point as a text misses, holds or has mended it, in words."""
    cell, test, dismiss = Cell(point, result) if result else None, is_critics(point), "Dismiss"
    settled = bool(cell and (cell.result.passed or cell.point.dropped))
    notes = []
    if test:
        untried = "" if cell else "It came after this text."
        if point.dropped:
            untried = point.reason or _DROPPED[point.dropped]
        elif result and result.passed is None:
            untried = result.shows
        quote = say.quoted(point.quote)
        baseless = f"not in the task: {quote}" if quote and not point.blocking else ""
        notes = [untried, _VACUOUS.word if result and not result.counts else "", baseless]
        dismiss = "Doesn't follow" if point.blocking else dismiss
    elif cell:
        # The words of an error, or of what became of data, stand there once it is mended, too.
        mended = (point.check or point.kind == "fact") and cell.result.passed is True
        notes = ["suggestion" * (not cell.weighs), "back again" * cell.result.again]
        notes.append("no longer" if mended else "")
        dismiss = "" if point.binding else "It is ready" if point.kind == "reading" else dismiss
    return Line(
        say.with_contest(say.point_line(point, result), point),
        point.id,
        note=" · ".join(filter(None, notes)),
        quote=point.place,
        form=run.task.form,
        demand=point.quote if point.blocking or not test else "",
        fix="" if settled else point.fix,
        detail=point.code,
        settled=settled,
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


def _evaluator(run: Run, text: Iteration, texts: _Columns) -> Line:
    """Return the line of the user's evaluator, with the score or the word of each text."""
    said = [one.evaluation for one in run.iterations if one.evaluation]
    scores = ", ".join(say.score(one.score) for one in said if one.score is not None)
    target = f": {scores} (target {say.score(run.limits.target)})" if scores else ""
    marks = tuple(_reader_mark(run, one) for one in texts)
    mark = _reader_mark(run, text)
    return Line(f"your evaluator{target}", mark=mark, source="you", marks=marks)


def _reader_mark(run: Run, text: Iteration | None) -> Label:
    said = text.evaluation if text else None
    if said is None:
        return _NONE
    if said.failure:
        return _UNTRIED._replace(word="could not be read")
    passed = said.says is model.Outcome.PASS
    if said.says is None and said.score is not None:
        passed = said.score >= run.limits.target
    return _HOLDS if passed else _MISSES


def _mark(text: Iteration | None, point: Point) -> Label:
    result = text.results.get(point.id) if text else None
    if result is None:
        return _NONE
    if point.dropped:
        return _NONE._replace(word="set aside")
    if result.passed is None:
        return _UNTRIED
    if result.passed:
        return _HOLDS if result.counts else _VACUOUS
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
    apart: Container[int] = (),
) -> list[Texts]:
    """Return a line for each text: what it missed and what was said of it; none for a single one.

    A single text of which somebody said something as a whole has its line, too.

    Args:
        run: the run.
        shown: the text that is shown above.
        whole: whether all of each text is below its line, and not only what was said of that one.
        apart: the texts by number whose outputs stand elsewhere.
    """
    found = list[Told]()
    for text in run.iterations:
        line, said = told(run, text), feedback(run, text)
        if whole:
            below = version(run, text, shown, with_outputs=text.number not in apart)
        else:
            says_more = text is shown and "".join(one.text for one in said) != line.said
            below = [*said] if says_more else []
        found.append(line._replace(blocks=tuple(below), shown=text is shown))
    is_told = any(one.number or one.judgement or feedback(run, one) for one in run.iterations)
    return [Texts(tuple(found))] if is_told else []


def told(run: Run, text: Iteration) -> Told:
    """Return a text in one line: how many points it missed, its verdict, and what was said."""
    missed = say.verdict(run, text).line
    if text.failure:
        missed = say.NO_NEW_TEXT.word
    elif text.verdict is None:
        missed = "not read yet" if say.running(run) else "not read"
    elif not text.override and text.verdict.why != "scored":  # a score is of them all
        cells = [one for one in run.cells(text) if one.blocks]
        by_points = {one.point.check for one in cells}
        failed = [one for one in text.evidence if one.failed and one.name not in by_points]
        if number := len(failed) + len(cells):
            missed = f"missed {number}: {missed}"
    first = next((one.text for one in feedback(run, text)), "").strip().partition("\n")[0]
    first = _SENTENCE.split(first, maxsplit=1)[0]
    return Told(
        text.number, run.name(text.number), missed, "" if first.rstrip(".") in missed else first
    )


def feedback(run: Run, text: Iteration) -> list[Paragraph]:
    """Return what a critic or an evaluator said of a text as a whole."""
    said, found = text.reading, list[Paragraph]()
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


def version(
    run: Run, text: Iteration, shown: Iteration | None = None, *, with_outputs: bool = True
) -> list[Block]:
    """Return all of a text: what was written, what it misses and gives, and what was said of it.

    What stands elsewhere of the text that is shown there is left out.
    """
    found = writing(run, text) if text is not shown or text.parent is not None else []
    if text is not shown:
        found += _items("Missed", _missed(run, text))
        found += account(run, text, alone=True) if with_outputs else []
    usage, why = say.usage_parts(text.usage), say.verdict(run, text).sentence
    return [
        *found,
        *(one for one in feedback(run, text) if one.text not in why),
        *claims_of(run, text),
        *printed("Model notes", text.thoughts),
        *([Paragraph(" · ".join(usage), "quiet")] if usage else []),
    ]


def claims_of(run: Run, text: Iteration) -> list[Block]:
    """Return the changes that a revision claims for what it was written for."""
    items = (
        Line(
            f"{run.points[id_].words if id_ in run.points else id_} → "
            f"{'left as it is: ' if id_ in text.contested else ''}{summary}"
        )
        for id_, summary in text.changes.items()
        if summary
    )
    return _items("What it says it changed", items)


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


def _items(title: str, items: Iterable[Line]) -> list[Block]:
    found = tuple(items)
    return [Items(title, found)] if found else []


# A whole run


_EXITS: dict[str, Callable[[str], list[str]]] = {
    "New addresses in it: {}.": find_addresses,
    "Left masked: {}. No secret stood there before, so fill it in yourself.": MASK.findall,
}
_MOST_SCORES = 50  # a panel sends all of them again with each iteration


def record(run: Run) -> list[Block]:
    """Return the blocks of a whole run: the outcome first, then how it came about."""
    text = run.chosen
    if run.setup.coach:
        own = [Text(text.text, "code", title="Your code")] if text else []
        return [Paragraph("", lead=str(say.verdict(run, text).label)), *coached(run), *own]
    return [
        summary(run),
        *map(Paragraph, filter(None, (say.stop_message(run),))),
        *after_run(run),
        *warnings(run, text),
        *result(run),
        *unfinished(run),
        *(whole_account(run, text) if text else ()),
        *(checks(run, text) if text else ()),
        *(texts(run, text) if text else ()),
        Section("Details", tuple(details(run, text))),
    ]


def summary(run: Run) -> Paragraph:
    """Return the line at the top: the stage or the verdict, then numbers."""
    said, text, parts = say.verdict(run, run.chosen), run.chosen, list[str]()
    if text and not run.setup.is_look:
        kind = "best" if run.best in (None, text.number) else "accepted"
        revisions = say.count(run.allowed_revisions, "revision")
        parts = [f"{kind}: {run.name(text.number).lower()}", f"{run.revisions} of {revisions}"]
    parts += say.usage_parts(run.usage, run.seconds)
    if run.stop_reason and not run.setup.is_look:
        parts.append(f"stopped: {say.STOPS[run.stop_reason]}")
    line = "".join(f"· {part} " for part in parts)
    return Paragraph(
        line, lead=say.STAGES[run.stage] if run.stage and say.running(run) else str(said)
    )


def details(run: Run, text: Iteration | None) -> list[Block]:
    """Return what stands nowhere else: how the cell was read, what was decided, what it took."""
    ran = (one for one in (text.evidence if text else ()) if one.basis == "run" and one.passed)
    why = say.verdict(run, text).sentence if text else ""
    loud = [one.text for one in warnings(run, text) if one.kind == "warning"]
    said = [
        say.opening(run.setup),
        why if "\n" in why else "",  # else the header says it
        *(strip_colours(one.shows).strip() for one in ran),
        *(one for one in run.warnings if one not in loud),
    ]
    return [
        *(Paragraph(one, "quiet") for one in said if one),
        *decisions(run),
        *explanations(run),
        *scores(run),
        *usage(run),
        *settings(run),
    ]


def after_run(run: Run) -> list[Block]:
    """Return what came of the accepted text in its cell."""
    ran = say.ran_words(run)
    if ran.differs:
        return [Paragraph(ran.sentence, "flaw", "Differs now that it ran:")]
    said = f"{ran.sentence[:1].upper()}{ran.sentence[1:]}."
    return [Paragraph(said, "quiet")] if ran.sentence else []


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


def scores(run: Run) -> list[Block]:
    """Return the scores from the second verdict on."""
    latest = (one.verdict for one in run.iterations[-_MOST_SCORES:])
    values = [one.score if one else None for one in latest]
    if sum(one.verdict is not None for one in run.iterations) < 2 or not say.has_scores(run):
        return []
    line = f"Scores {say.sparkline(values)} {' → '.join(map(say.score, values))}"
    line += f" (target {say.score(run.limits.target)})"
    return [Paragraph(line, "quiet")]


def usage(run: Run) -> list[Block]:
    """Return calls, tokens, time and cost of each stage."""
    head = ("Stage", "Calls", "Prompt tokens", "Cached", "Completion tokens", "Time", "Cost")
    found = tuple(
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
    return [Table("Usage by stage", head, found)] if found else []


def settings(run: Run) -> list[Block]:
    """Return the task with its criteria, checklist and limits."""
    task = run.task
    if run.setup.is_look:
        return [Paragraph(f"checks {', '.join(run.setup.checks) or '(none)'}", "quiet")]
    listed = {
        "Your answers": [Line(one.sentence) for one in task.clarifications],
        "Shown to the model": [Line(one.text, one.phrase) for one in task.materials if one.phrase],
        "Criteria": [Line(one.definition, one.name) for one in task.criteria],
        "Checklist": [*map(Line, task.checklist)],
    }
    return [
        Paragraph(task.text, "words"),
        *(block for title, found in listed.items() for block in _items(title, found)),
        Paragraph(" · ".join(say.settings(run)), "quiet"),
    ]


# What a student sees of a run on their own code


_PREDICT = "What does it give? Predict it: a value as Python, or the name of an exception."


def coached(run: Run) -> list[Block]:
    """Return the input whose result a student is to predict, and what they predicted."""
    return [*puzzle(run), *predicted(run)]


def puzzle(run: Run) -> list[Block]:
    """Return the input whose result a student is to predict; nothing where none is left."""
    found = open_puzzle(run)
    lead = "Your code misses the task on one input."
    return [Paragraph(_PREDICT, lead=lead), Text(found.code, "code")] if found else []


def predicted(run: Run) -> list[Block]:
    """Return what a student predicted, and once nothing is left to predict, what else is said."""
    blocks, also = list[Block](), list[str]()
    if run.chosen and open_puzzle(run) is None:
        change = predictions(run) and run.verdict and not run.verdict.passed
        reason = say.verdict(run, run.chosen).sentence
        blocks.append(Paragraph("Change your code, and run the cell again." if change else reason))
        left = [one for one in run.cells(run.chosen) if one.actionable and one.point.by_model]
        left = [one for one in left if change or one.words not in reason]
        also = [f"“{quote}”" for quote in unmet(run)]
        also += [one.words for one in sorted(left, key=lambda one: not one.weighs)]
    made = (
        Line(_prediction(one), one.code.replace("\n", "; "))
        for one in run.attempts
        if one.predicted
    )
    return [
        *blocks,
        *_items("Look at this too", map(Line, also)),
        *_items("Your predictions", made),
    ]


def _prediction(attempt: model.Attempt) -> str:
    right = gives_same(attempt.predicted, attempt.gives)
    gives = ", and so it is" if right else f"; it gives {bare(attempt.gives)}"
    quote = f": “{attempt.quote}”" if attempt.quote else "."
    wanted = f"The task wants {bare(attempt.expected)}{quote}"
    return f"You predicted {bare(attempt.predicted)}{gives}. {wanted}"
