"""A run as blocks in reading order; HTML and the terminal draw the same blocks."""

import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Literal, NamedTuple

from ipyrefine.core import model, table
from ipyrefine.core.actions import decision_sentence
from ipyrefine.core.decisions import Accept, Expect, Retract
from ipyrefine.core.effects import sentence
from ipyrefine.core.events import CallEnded, Event, StageStarted, Stopped, TextDelta, Warned
from ipyrefine.core.model import Choice, Clarification, Form, Stage, StopReason
from ipyrefine.core.points import left_open, lost_sections
from ipyrefine.core.policy import estimate_tokens, is_bare_score
from ipyrefine.core.ports import Clock
from ipyrefine.core.rank import has_evaluator, reads, rival_of
from ipyrefine.core.results import (
    example_asked,
    gives_same,
    key_of,
    rivalry,
    row_choices,
    row_key,
    rows,
    unfolded,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import KEPT_HERE
from ipyrefine.core.syntax import try_parse
from ipyrefine.core.table import Cell, Point, Row
from ipyrefine.core.testing import is_critics
from ipyrefine.render import labels, words
from ipyrefine.render.escape import strip_colours
from ipyrefine.render.labels import Label

WRITING = (Stage.DRAFT, Stage.REVISE)  # the stages whose replies are texts for people
SILENCE = 20.0  # seconds without a reply before a line says so
_TAIL = 200  # characters
_CALLS = 9  # recent calls of a model for a stage, whose seconds tell what is usual
# Those of this process, by model and stage.
_RECENT: dict[tuple[str, Stage], deque[float]] = {}
_PRINTED = "Printed"
_HEAD = 5  # rows of a table among the results
_SHORT = 100  # characters of an output that stands in the line of its title
_ASKED, _UNFOLDED = 2, 3  # effects that ask, and those that are told before the rest folds
_SCORE_ALONE = re.compile(
    r"\W*(?:[^\W\d_]+\W+){0,6}\d+(?:\.\d+)?\s*(?:/|of|out of)\s*\d+(?:\.\d+)?\W*"
)
# A number or truth value as NumPy writes it.
_NUMPY = re.compile(r"\bnp\.(?:(?:u?int|float)\d+\(([-+.\w]+)\)|(True|False)_)")
_NEXT_TO = 32  # characters on either side of words that stand in no source
MAX_SCORES = 50  # a panel sends all of them again with each iteration


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


class Item(NamedTuple):
    """One row of a list."""

    name: str = ""  # what it is about
    note: str = ""  # what qualifies the name
    labels: tuple[Label, ...] = ()  # severity, status or result; the first sets the style
    text: str = ""  # what it says
    quote: str = ""  # the words of the text it rests on
    form: Form = "prose"  # how the quote is set
    demand: str = ""  # the words of the task that it goes against
    fix: str = ""  # how to fix it
    detail: str = ""  # program output
    settled: bool = False  # whether it needs no action any more


class Items(NamedTuple):
    """A titled list."""

    title: str
    items: tuple[Item, ...]
    kind: Literal["rows", "findings", "checks"] = "rows"


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


class Result(NamedTuple):
    """What a text gives on one input."""

    key: str  # the name by which a page says which one it means
    call: str  # the input, with the statements that run before it; of a cell, a name it defines
    value: str  # its result: a value, or an exception with its message
    sign: Literal["→", "=", "·", ""] = "→"  # what stands between the two
    before: str = ""  # what the name held before the cell ran
    # What it may give, where that is asked; their order does not say which one the text gives.
    choices: tuple[Choice, ...] = ()
    rivalry: str = ""  # who gives what, where that is asked
    confirmed: bool | None = None  # the user's word on it
    expected: str = ""  # what it should be, where the user says it is something else
    output: tuple["Block", ...] = ()  # a table or a picture that it comes with
    # What the user is asked about it; of a fact, whether to `keep` or to `undo` it.
    asks: Literal["right", "example", "keep", "undo", "open", ""] = "right"
    condition: str = ""  # what it was computed on, where that is less than the real thing
    folded: bool = False  # whether it is seen on a click only
    buttons: tuple[str, ...] = ()  # of a fact: that it is meant, and that it goes

    def __str__(self) -> str:
        value = f"{self.before} → {self.value}" if self.before else self.value
        if self.choices:
            value = f"{' or '.join(one.result for one in self.choices)}?"
            value += f" ({self.rivalry})" if self.rivalry else ""
        call = self.call.replace("\n", "; ")
        if self.asks == "example":
            return f"{call} == ?"
        if self.asks == "open":
            options = " / ".join(one.result for one in self.choices)
            return f"{call} ({options})" if options else call
        line = f"{call} {self.sign} {value}" if self.sign else f"{call}{': ' * bool(value)}{value}"
        return " · ".join(map(str, filter(None, (line, self.condition, self.word))))

    @property
    def word(self) -> Label | None:
        """The user's word on it."""
        if self.confirmed is None:
            return None
        if self.confirmed:
            return Label("✓", "confirmed", "good")
        return Label("✗", f"should be {self.expected}", "bad")


class Results(NamedTuple):
    """What a text gives, for a person to confirm."""

    title: str
    rows: tuple[Result, ...]
    hint: str = ""  # what an answer would settle, where the verdict waits for one
    commands: str = ""  # how to answer without buttons, where numbers don't do
    part: str = "results"  # what `%refine show` calls it


class Section(NamedTuple):
    """Blocks under a heading: name, verdict and what else qualifies it; folded where possible."""

    title: str
    blocks: tuple["Block", ...]
    label: Label | None = None
    marks: tuple[str, ...] = ()
    open: bool = False

    def __str__(self) -> str:
        return " · ".join([self.title, *([str(self.label)] if self.label else []), *self.marks])


Block = Paragraph | Text | Output | Items | Table | Picture | Results | Section


def record(run: Run) -> list[Block]:
    """Return the blocks of a whole run: the outcome first, then how it came about."""
    return [
        summary(run),
        *notices(run),
        *result(run),
        *unfinished(run),
        *((*whole_account(run, run.chosen), *results(run, run.chosen)) if run.chosen else ()),
        *scores(run),
        *usage(run),
        Section("Settings", tuple(settings(run))),
        *(version(run, one, with_outputs=one is not run.chosen) for one in run.iterations),
    ]


def summary(run: Run) -> Paragraph:
    """Return the line at the top: the stage or the verdict, then numbers."""
    said, parts = words.verdict(run, run.chosen), list[str]()
    lead = labels.STAGES[run.stage] if run.stage and labels.running(run) else str(said.label)
    if said.score:
        parts.append(f"score {said.score}")
    if run.chosen is not None:
        accepted = run.best is not None and run.chosen.number != run.best
        name = run.name(run.chosen.number).lower()
        parts.append(f"{'accepted' if accepted else 'best'}: {name}")
        parts.append(f"{run.revisions} of {labels.count(run.allowed_revisions, 'revision')}")
    parts = parts * (not run.setup.is_look) + labels.usage_parts(run.usage, run.seconds)
    if run.stop_reason is not None and not run.setup.is_look:
        parts.append(f"stopped: {labels.STOPS[run.stop_reason]}")
    return Paragraph("".join(f"· {part} " for part in parts), lead=lead)


def notices(run: Run) -> list[Block]:
    """Return why the run stopped, what to clarify, the user's decisions and the warnings."""
    return [
        *([Paragraph(words.stop_sentence(run))] if run.message else []),
        *late(run),
        *rival(run, run.chosen),
        *decisions(run),
        *explanations(run),
        *warnings(run, run.chosen),
    ]


def late(run: Run) -> list[Block]:
    """Return the result of reading the text, and of running it, after it was accepted."""
    ran, amber = words.ran_words(run), words.is_amber(run)
    said = (
        (words.late_sentence(run), amber, "Found after you accepted it:"),
        (ran.sentence, ran.differs, "Differs now that it ran:"),
    )
    return [
        Paragraph(sentence, "flaw", lead)
        if is_flaw
        else Paragraph(f"{sentence[0].upper()}{sentence[1:]}.", "quiet")
        for sentence, is_flaw, lead in said
        if sentence
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


def warnings(run: Run, iteration: Iteration | None) -> list[Paragraph]:
    """Return the warnings that say more than the verdict of a text does."""
    verdict = iteration.verdict if iteration else None
    told = verdict.line if verdict and verdict.outcome is model.Outcome.NOT_JUDGED else ""
    return [
        Paragraph(one, "quiet" if one == KEPT_HERE else "warning")
        for one in run.warnings
        if not told or told not in one
    ]


def history(run: Run, iteration: Iteration | None) -> list[Block]:
    """Return what is only to know of how a run went: decisions, answers, scores and usage."""
    loud = [one.text for one in warnings(run, iteration) if one.kind == "warning"]
    end = [words.stop_sentence(run)] if run.message and run.stop_reason else []
    return [
        *(Paragraph(one, "quiet") for one in run.warnings if one not in loud),
        *decisions(run),
        *explanations(run),
        *(Paragraph(one, "quiet") for one in end),
        *scores(run),
        *usage(run),
    ]


def details(run: Run, iteration: Iteration | None) -> list[Block]:
    """Return how the cell was read, and of a text what stands nowhere else."""
    read = Paragraph(labels.opening(run.setup), "quiet")
    if iteration is None:
        return [read]
    beside = margin(run, iteration)
    return [
        read,
        *reason(run, iteration),
        *claims(run, iteration),
        *findings(run, iteration, (one for one in told(run, iteration) if one not in beside)),
        *notes(iteration),
    ]


def rival(run: Run, iteration: Iteration | None) -> list[Block]:
    """Return that only a critic's tests set a text above another one, and how to take that."""
    found = rival_of(run, iteration) if iteration else None
    if found is None:
        return []
    number = found.iteration.number
    return [
        Paragraph(words.rival_sentence(run, found), lead="To decide:"),
        Paragraph(
            f"%refine accept {run.name(number).lower()} takes {run.mention(number)}.", "quiet"
        ),
    ]


def results(
    run: Run, iteration: Iteration, waiting: Iterable[Expect | Retract] = ()
) -> list[Results]:
    """Return what a text gives on a few inputs; nothing if no row is worth a look."""
    if run.setup.coach:
        return []
    found, asked = rows(run, iteration), questions(run, iteration)
    if not found:
        return [*unsourced(run, iteration), *asked]
    said: dict[tuple[str, str], Clarification | Expect | None] = {
        key_of(one.call, one.setup): one for one in run.task.clarifications
    }
    for decision in waiting:
        key = key_of(decision.call, decision.setup)
        said[key] = decision if isinstance(decision, Expect) else None
    if found[0] == example_asked(iteration, found) and not waiting:
        example = Result(row_key(found[0]), found[0].call, "", asks="example")
        return [Results(labels.FOR_EXAMPLE, (example,), commands=labels.EXAMPLE_COMMAND), *asked]
    first = unfolded(found)
    shown = tuple(
        _row(run, iteration, one, said.get(key_of(one.call, one.setup)))._replace(
            folded=one not in first
        )
        for one in found
    )
    title = "What it did" if all(one.source == "cell" for one in found) else "What it gives"
    answered = any(one.confirmed is not None for one in found)
    return [Results(title, shown, labels.results_hint(run, iteration, answered=answered)), *asked]


def questions(run: Run, iteration: Iteration) -> list[Results]:
    """Return the critic's open questions about the task that no input shows."""
    found = tuple(
        Result(
            one.id,
            one.words,
            "",
            choices=tuple(Choice(result=option) for option in one.options),
            asks="open",
        )
        for one in left_open(run, iteration)
        if not one.call
    )
    id_ = found[0].key if found else ""
    say = f"%refine should {id_} ANSWER answers it; dismiss {id_} drops it."
    return [Results(labels.LEFT_OPEN, found, commands=say)] if found else []


def unsourced(run: Run, iteration: Iteration) -> list[Results]:
    """Return the names, numbers and dates of prose that no source has, to keep or to strike."""
    asked = (cell.point for cell in _facts(run, iteration) if not cell.point.effect)
    found = tuple(
        Result(
            one.id,
            one.place,
            _around(iteration.text, one.place),
            sign="",
            asks="keep",
            buttons=("Keep", "Strike"),
        )
        for one in asked
    )
    id_ = found[0].key if found else ""
    keep = f"%refine dismiss {id_} keeps it; continue {id_} has it struck."
    return [Results("In no source", found, labels.UNSOURCED, keep)] if found else []


def _facts(run: Run, iteration: Iteration) -> list[Cell]:
    return [one for one in run.cells(iteration) if one.asks and one.point.kind == "fact"]


def _around(text: str, words: str) -> str:
    """Return the line that some words stand in, cut to what is next to them."""
    place = max(0, text.find(words))
    start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    before, after = text[start:place], text[place + len(words) : None if end < 0 else end]
    if len(before) > _NEXT_TO:
        before = f"… {before[-_NEXT_TO:].partition(' ')[2]}"
    if len(after) > _NEXT_TO:
        after = f"{after[:_NEXT_TO].rpartition(' ')[0]} …"
    return f"{before}{words}{after}".strip()


def _row(run: Run, text: Iteration, row: Row, said: Clarification | Expect | None) -> Result:
    confirmed = gives_same(said, row) if said else None
    asked = bool(row.rivals) and confirmed is None and not row.conditions
    output = tuple(_result(row.output)) if row.output else ()
    call = key_of(row.call)[0] if "\n" in row.call else row.call  # on one line
    return Result(
        key=row_key(row),
        call="\n".join([*_scenario(row), call]),
        value=f"{row.result}: {row.message}" if row.raises and row.message else row.result,
        sign="→" if row.source != "cell" else "" if row.before else "=",
        before=row.before,
        choices=row_choices(row) if asked else (),
        rivalry=rivalry(run, text, row) if asked else "",
        confirmed=confirmed,
        expected=said.result if said and not confirmed else "",
        output=tuple(
            one._replace(rows=one.rows[:_HEAD]) if isinstance(one, Table) else one for one in output
        ),
        condition=model.on_conditions(row.conditions),
    )


def _scenario(row: Row) -> list[str]:
    """Return the lines before a call, each with its result."""
    setup = row.setup.strip()
    lines, tree = setup.splitlines(), try_parse(setup) if row.steps else None
    for node, gives in zip(tree.body if tree else (), row.steps, strict=False):
        if gives and node.end_lineno:
            lines[node.end_lineno - 1] += f" → {gives}"
    return lines


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
    latest = [(one, one.verdict) for one in run.iterations[-MAX_SCORES:]]
    if sum(verdict is not None for _, verdict in latest) < 2 or not labels.has_scores(run):
        return []
    values = [verdict.score if verdict else None for _, verdict in latest]
    line = f"Scores {labels.sparkline(values)} {' → '.join(map(labels.score, values))}"
    line += f" (target {labels.score(run.limits.target)})"
    if len(latest) < len(run.iterations):
        line += f" Latest {len(latest)} of {len(run.iterations):,} texts."
    return [Paragraph(line, "quiet")]


def usage(run: Run) -> list[Block]:
    """Return calls, tokens, time and cost of each stage."""
    head = ("Stage", "Calls", "Prompt tokens", "Cached", "Completion tokens", "Time", "Cost")
    rows = tuple(
        (
            labels.STAGES.get(stage, stage),
            str(used.calls),
            f"{used.prompt_tokens:,}",
            labels.NONE if used.cached_tokens is None else f"{used.cached_tokens:,}",
            f"{used.completion_tokens:,}",
            labels.seconds(used.seconds),
            labels.cost(used.cost),
        )
        for stage, used in run.spent.items()
    )
    return [Table("Usage by stage", head, rows)] if rows else []


def settings(run: Run) -> list[Block]:
    """Return the task with its criteria, checklist and limits."""
    task = run.task
    if run.setup.is_look:
        return [Paragraph(f"checks {', '.join(run.setup.checks) or '(none)'}", "quiet")]
    return [
        Paragraph(task.text, "words"),
        *_items("Your answers", (Item(text=one.sentence) for one in task.clarifications)),
        *_items(
            "Shown to the model",
            (Item(one.phrase, text=one.text) for one in task.materials if one.phrase),
        ),
        *_items("Criteria", (Item(one.name, text=one.definition) for one in task.criteria)),
        *_items("Checklist", (Item(text=one) for one in task.checklist)),
        Paragraph(" · ".join(labels.settings(run)), "quiet"),
    ]


def version(
    run: Run, iteration: Iteration, *, with_text: bool = True, with_outputs: bool = True
) -> Section:
    """Return an iteration: its verdict, its text, what it rests on and what is left to do."""
    number, parent, said = iteration.number, iteration.parent, words.verdict(run, iteration)
    branched = parent is not None and parent != number - 1
    whole = parent is None and iteration is run.chosen
    read, tried = (
        reading(run, iteration),
        any(is_critics(run.points[id_]) for id_ in iteration.results),
    )
    # The sentence of the stop says why the best text is not judged.
    told = run.stop_reason is StopReason.UNJUDGED and number == run.best
    marks = (
        f"from {run.mention(parent)}" if branched and parent is not None else "",
        said.score,
        labels.BEST if number == run.best else "",
        str(labels.NO_NEW_TEXT) if iteration.failure else "",
    )
    return Section(
        run.name(number),
        (
            *(reason(run, iteration) if not told else ()),
            # The chosen text stands at the top, whole.
            *(writing(run, iteration) if with_text and not whole else ()),
            *checks(run, iteration, suite=not tried),
            *(account(run, iteration, alone=True) if with_outputs else ()),
            *findings(run, iteration),
            *read,
            *notes(iteration),
        ),
        said.label if iteration.verdict else None,
        tuple(filter(None, marks)),
    )


def reason(run: Run, iteration: Iteration) -> list[Block]:
    """Return why the verdict is what it is."""
    sentence = words.verdict(run, iteration).sentence
    return [Paragraph(sentence)] if sentence else []


def writing(run: Run, iteration: Iteration) -> list[Block]:
    """Return a text, or how it differs from its parent, with the changes it claims."""
    if iteration.failure:
        return [failure(iteration), *claims(run, iteration)]
    if iteration.parent is None:
        return [Text(iteration.text, run.task.form, run.task.language, "Text")]
    return [*difference(run, iteration), *claims(run, iteration)]


def difference(run: Run, iteration: Iteration) -> list[Block]:
    """Return how a text differs from its parent, and the sections that it lost."""
    parent, form, language = iteration.parent, run.task.form, run.task.language
    assert parent is not None, "only a revision differs from another text"
    title, old = f"Changes from {run.mention(parent)}", run.iterations[parent].text
    return [Text(iteration.text, form, language, title, old), *lost(run, iteration)]


def lost(run: Run, iteration: Iteration) -> list[Block]:
    """Return the sections of prose that a revision lost or shortened, in one line."""
    sentence = labels.losses_sentence(lost_sections(run, iteration))
    return [Paragraph(sentence, "warning")] if sentence else []


def failure(iteration: Iteration) -> Paragraph:
    """Return why the model gave no usable text."""
    return Paragraph(iteration.failure, "flaw", "No usable text from the model:")


def claims(run: Run, iteration: Iteration) -> list[Block]:
    """Return the changes that a revision claims for each finding."""
    parents = [] if iteration.parent is None else run.cells(run.iterations[iteration.parent])
    problems = {one.id: one.words for one in (*parents, *run.cells(iteration))}
    items = (
        Item(id_, problems.get(id_, ""), text=f"→ {summary or 'no explanation'}")
        for id_, summary in iteration.changes.items()
    )
    return _items("Changes by finding", items)


def checks(run: Run, iteration: Iteration, *, suite: bool = True) -> list[Block]:
    """Return the results of the checks, those that failed first."""
    items = (
        Item(
            note=labels.seconds(one.seconds),
            labels=(labels.check_chip(one),),
            detail=strip_colours(one.detail).strip("\n"),
        )
        for one in sorted(run.evidence(iteration), key=lambda one: not one.failed)
        if one.basis != "none" and (suite or one.basis != "critique") and not one.is_empty
    )
    checked = {one.name for one in iteration.evidence}
    scored = (
        Item(labels=(labels.score_chip(one, iteration.verdict),), detail=one.words)
        for one in run.cells(iteration)
        if one.actionable and one.point.check not in checked and is_bare(one, iteration)
    )
    found = (*items, *scored)
    return [Items("Checks", found, "checks")] if found else []


def whole_account(run: Run, iteration: Iteration) -> list[Block]:
    """Return what a text gives and did to data: what asks first, then the answer."""
    return [*data_questions(run, iteration), *account(run, iteration)]


def account(run: Run, iteration: Iteration, *, alone: bool = False) -> list[Block]:
    """Return what a text gives and did to data, the answer first, without what is asked.

    Args:
        run: the run.
        iteration: the text.
        alone: whether neither what is asked nor its results stand next to it.
    """
    found = outputs(iteration)
    is_long = any(isinstance(one, Output) and not one.is_short for one in found[:1])
    answer = 0 if is_long and found[0].title == _PRINTED else 1
    return [*found[:answer], *_effect_rows(run, iteration, alone=alone), *found[answer:]]


def outputs(iteration: Iteration) -> list[Output | Table | Picture]:
    """Return what a text gives in a check: the answer first, then what else it drew or printed."""
    found: list[Output | Table | Picture] = []
    for evidence in iteration.evidence:
        ran_on = model.on_conditions(evidence.conditions)
        remark = _remark(evidence)
        title = sentence(remark) if remark else "The answer"
        ordered = sorted(evidence.outputs, key=lambda one: _ORDER.index(type(one)))
        if remark and not (ordered and isinstance(ordered[0], model.Value | model.TableValue)):
            found.append(Output(title, condition=ran_on))
            title = ran_on = ""
        for one in ordered:
            found += [block._replace(condition=ran_on) for block in _result(one, title)]
            title = ran_on = ""
    return found


def _remark(evidence: table.Evidence) -> model.Effect | None:
    """Return what is odd about the answer; of a name only where nothing else is the answer."""
    answers = [one for one in evidence.outputs if not isinstance(one, model.Printed)]
    odd = (one for one in evidence.effects if one.kind == "answer")
    return next((one for one in odd if not (one.name and answers)), None)


_ORDER = (model.Value, model.TableValue, model.Figure, model.Printed)


def _result(output: model.Output, title: str = "") -> Sequence[Output | Table | Picture]:
    match output:
        case model.Printed():
            return _output(_PRINTED, output.text)
        case model.Value():
            text = _NUMPY.sub(r"\1\2", output.text)
            # "The answer is nan" says it all.
            said = title.lower().endswith(f" is {text.strip().lower()}")
            return [Output(title)] if said else _output(title, text)
        case model.TableValue():
            rows, columns = len(output.rows), len(output.columns)
            first = f", the first {labels.count(rows, 'row')}" if rows < output.height else ""
            if columns < output.width:
                first = f", the first {rows} × {columns}"
            labelled = zip(output.labels, output.rows, strict=True)
            body = tuple((label, *row) for label, row in labelled)
            title = title and f"{title}: {output.phrase}{first}"
            return [Table(title, (output.index, *output.columns), body)]
        case model.Figure():
            caption = output.phrase.capitalize()
            title = f"{title}: {output.phrase}" if title else caption
            return [Picture(title, output.png, output.size, caption, output.axes)]


def _output(title: str, text: str) -> list[Output]:
    return [Output(title, strip_colours(text))] if text.strip() else []


def _asked_effects(run: Run, iteration: Iteration) -> dict[str, model.Effect]:
    facts = (cell.point for cell in _facts(run, iteration))
    return dict([(one.id, one.effect) for one in facts if one.effect][:_ASKED])


def data_questions(run: Run, iteration: Iteration) -> list[Results]:
    """Return what running a text did to data and no words ask for: at most two rows."""
    every = _effects(iteration)
    found = tuple(
        _effect_row(next((e for e in every if e[0].key == fact.key), (fact, "")), point)
        for point, fact in _asked_effects(run, iteration).items()
    )
    say = (
        f"%refine dismiss {one.key}: “{one.buttons[0]}”; continue {one.key}: “{one.buttons[1]}”."
        for one in found
    )
    return [Results("", found, commands="\n".join(say), part="output")] if found else []


def _effect_rows(run: Run, iteration: Iteration, *, alone: bool) -> list[Results]:
    asked = [] if alone else [one.key for one in _asked_effects(run, iteration).values()]
    changed = () if alone else [one.call for one in rows(run, iteration) if one.before]
    found, keys = list[tuple[model.Effect, str]](), [*asked]
    for seen in _effects(iteration):
        if seen[0].key in keys:
            keys.remove(seen[0].key)  # the first such stands above
        elif seen[0].kind != "changed" or seen[0].name not in changed:
            found.append(seen)
    answered = bool(outputs(iteration))  # which says what it ran on
    most = max(1, _UNFOLDED - len(asked))
    most += len(found) == most + 1  # the line that folds one more is no shorter
    lines = tuple(
        _effect_row((one, "" if answered or number else ran_on))._replace(folded=number >= most)
        for number, (one, ran_on) in enumerate(found)
    )
    return [Results("", lines, part="output")] if lines else []


def _effects(iteration: Iteration) -> list[tuple[model.Effect, str]]:
    """Return what a text did to data, each with what that was seen on."""
    return [
        (one, model.on_conditions(evidence.conditions))
        for evidence in iteration.evidence
        for one in evidence.effects
        if one != _remark(evidence)
    ]


def _effect_row(seen: tuple[model.Effect, str], point: str = "") -> Result:
    one, ran_on = seen
    line = f"line {one.line}" if one.line and one.kind not in ("unchanged", "warning") else ""
    return Result(
        point,
        sentence(one),
        line,
        sign="·" if line else "",
        output=tuple(_result(one.head)) if one.head else (),
        asks="undo" if point else "",
        condition=ran_on,
        buttons=labels.effect_buttons(one) if point else (),
    )


def findings(run: Run, iteration: Iteration, found: Iterable[Cell] | None = None) -> list[Block]:
    """Return what a text misses or has mended in reading order; by default all of it."""
    every = ranked(told(run, iteration) if found is None else found)
    # What only asks the user stands where code has its results.
    shown = (one for one in every if not one.asks and not is_bare(one, iteration))
    items = tuple(finding_item(run, iteration, one) for one in shown)
    return [Items("Findings", items, "findings")] if items else []


def told(run: Run, iteration: Iteration) -> list[Cell]:
    """Return a text's column without the critic's tests, which stand among its claims."""
    return [one for one in run.cells(iteration) if not is_critics(one.point)]


def reading(run: Run, iteration: Iteration) -> list[Block]:
    """Return how the critic's claims about a text ended, with its tests, questions and doubts."""
    results = iteration.results
    tests = [
        _test_item(one, results.get(one.id))
        for one in run.points.values()
        if is_critics(one) and (one.id in results or one.text == iteration.number)
    ]
    ends = Counter(item.labels[0] for item in tests)
    if not has_evaluator(run):
        found = (one for one in run.cells(iteration) if one.point.by_model and not one.asks)
        ends.update(map(labels.standing, found))
    blocks: list[Block] = [Items(labels.claims_title(ends), tuple(tests))] if ends else []
    said = iteration.reading or table.Reading()
    if said.ready is False and said.reason:
        back = " You took that back." if said.taken_back else ""
        blocks.append(Paragraph(f"The critic takes it for not ready: {said.reason}{back}"))
    if said.compared == "worse" and iteration.parent is not None:
        worse = f"The critic calls it worse than {run.mention(iteration.parent)}"
        blocks.append(Paragraph(f"{worse}{f': {said.lost}' if said.lost else '.'}"))
    return blocks


def _test_item(test: Point, result: table.Result | None) -> Item:
    label = labels.test_label(test, result)
    line = result.shows if result else labels.untried_sentence(test, result)
    baseless = f" · not in the task: “{test.quote}”" if test.quote and not test.blocking else ""
    return Item(
        name=test.id,
        labels=(label,),
        text=" ".join(filter(None, (line, labels.contest_sentence(test)))),
        note=test.words + baseless,
        demand=test.quote if test.blocking else "",
        detail=test.code,
        settled=label.kind == "quiet",
    )


def margin(run: Run, iteration: Iteration) -> list[Cell]:
    """Return what stands beside a text; its details list the others."""
    before = [] if iteration.parent is None else run.cells(run.iterations[iteration.parent])
    stood = {one.id for one in before if one.actionable}
    return [
        one
        for one in run.cells(iteration)
        if not is_bare(one, iteration)
        and (one.actionable or (one.is_settled and not one.point.dropped and one.id in stood))
    ]


def still_open(run: Run, iteration: Iteration) -> list[Block]:
    """Return what a text misses in short, without what stands there as a failed check."""
    failed = {one.name for one in iteration.evidence if one.failed}
    cells = (one for one in run.cells(iteration) if one.actionable and not is_critics(one.point))
    found = ranked(one for one in cells if one.point.check not in failed)
    items = (finding_item(run, iteration, one) for one in found)
    return _items(
        "Findings",
        (Item(note=f"{i.name} · {i.note}", labels=i.labels, text=i.text) for i in items),
    )


def is_bare(cell: Cell, iteration: Iteration) -> bool:
    """Return True if a point only states a score, which a chip shows."""
    if is_bare_score(cell) or _SCORE_ALONE.fullmatch(cell.words):
        return not cell.point.fix
    return any(
        one.name == cell.point.check and one.score is not None and not one.points
        for one in iteration.evidence
    )


def ranked(found: Iterable[Cell]) -> list[Cell]:
    """Return cells in reading order: those to act on first, blocking before minor."""
    return sorted(found, key=lambda one: (one.is_settled, not one.weighs))


def finding_item(run: Run, iteration: Iteration, cell: Cell) -> Item:
    """Return what a text misses, or has mended, as an item."""
    passed = bool(iteration.verdict and iteration.verdict.passed)
    point = cell.point
    where = labels.check_name(point.check or point.criterion)
    if is_critics(point):
        where = "critic's tests" + (f" · {point.words}" if cell.result.shows else "")
    return Item(
        name=point.id,
        note=f"{where} · added by you" if point.by_user else where,
        labels=(labels.severity_label(cell, passed=passed), labels.standing(cell)),
        text=" ".join(filter(None, (cell.words, labels.contest_sentence(point)))),
        quote=point.place,
        form=run.task.form,
        demand=point.quote,
        fix=point.fix,
        settled=cell.is_settled,
    )


def notes(iteration: Iteration) -> list[Block]:
    """Return the model's notes before the text, and the iteration's usage."""
    parts = labels.usage_parts(iteration.usage)
    return [
        *_output("Model notes", iteration.thoughts),
        *([Paragraph(" · ".join(parts), "quiet")] if parts else []),
    ]


def _items(title: str, items: Iterable[Item]) -> list[Block]:
    found = tuple(items)
    return [Items(title, found)] if found else []


# While a user waits


def _caller(run: Run, stage: Stage) -> tuple[str, Stage]:
    writes = stage in WRITING or (stage is Stage.CRITIQUE and not reads(run))
    return (run.setup.model if writes else run.setup.judge), stage


def seconds_of(model: str) -> float:
    """Return the median seconds of a model's recent calls in this process; 0 before any."""
    recent = [one for (name, _), calls in _RECENT.items() if name == model for one in calls]
    return median(recent) if recent else 0.0


class Progress:
    """Counts the seconds and the tokens of the stage under way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stage: StageStarted | None = None
        self._heard: float | None = None  # when the awaited reply last grew
        self._kind = ""  # what is written, ``thinking`` or ``text``
        self._first: float | None = None  # when that began
        self._began = clock()
        self._tokens = self._characters = self._streamed = 0
        self._tail = ""

    def take(self, event: Event, run: Run) -> None:
        """Count an event of a run."""
        now = self._clock()
        match event:
            case StageStarted():
                self._stage, self._began, self._first = event, now, None
                self._heard = None if event.stage is Stage.CHECK else now
                self._tokens = self._characters = self._streamed = 0
                self._tail = ""
            case TextDelta():
                self._heard = now
                if self._first is None or event.kind != self._kind:
                    self._kind, self._first, self._streamed = event.kind, now, 0
                self._characters += len(event.text)
                self._streamed += len(event.text)
                if event.stage in WRITING:
                    self._tail = (self._tail + event.text)[-_TAIL:]
            case CallEnded():
                # The reply's own count replaces the estimate.
                self._tokens += event.usage.completion_tokens
                self._characters = 0
                if event.finish == "stop":
                    recent = _RECENT.setdefault(_caller(run, event.stage), deque(maxlen=_CALLS))
                    recent.append(event.usage.seconds)
                # Other drafts may still be under way.
                self._heard = now if event.stage is Stage.DRAFT else None
            case Warned() if self._stage and self._stage.stage is not Stage.CHECK:
                self._heard = now  # it is asked again
            case Stopped():
                self._stage = self._heard = None

    @property
    def tokens(self) -> int:
        """Tokens the model wrote in this stage; of a reply that streams, an estimate."""
        return self._tokens + estimate_tokens(self._characters)

    @property
    def rate(self) -> int:
        """Tokens a second since the text or the thinking began, an estimate; 0 at first."""
        span = 0.0 if self._first is None else self._clock() - self._first
        return 0 if span < 1.0 else round(estimate_tokens(self._streamed) / span)

    @property
    def silence(self) -> float | None:
        """Seconds since the awaited reply last grew; None while none is awaited."""
        return None if self._heard is None else self._clock() - self._heard

    def usual(self, run: Run) -> float:
        """Return the median seconds of the model's recent calls for this stage; 0 before any."""
        recent = _RECENT.get(_caller(run, self._stage.stage)) if self._stage else None
        return median(recent) if recent else 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the stage began; 0 where none is under way."""
        return self._clock() - self._began if self._stage else 0.0

    def line(self, run: Run) -> str:
        """Return stage, seconds and tokens, like ``Evaluating · draft · 3 s · 6 tokens``.

        While a text is written, its latest line follows; while nothing comes, for how long. It is
        empty when no stage is under way.
        """
        if self._stage is None:
            return ""
        stage = labels.STAGES[self._stage.stage]
        parts = [
            stage,
            labels.under_way(run, self._stage.iteration),
            f"{self.seconds:.0f} s" + labels.usually(self.usual(run)),
        ]
        parts += [labels.count(self.tokens, "token")] if self.tokens else []
        if (self.silence or 0.0) >= SILENCE:
            parts.append(f"no reply for {self.silence:.0f} s · Ctrl-C stops it")
        written = [line.strip() for line in self._tail.splitlines() if line.strip()]
        return " · ".join(parts + written[-1:])
