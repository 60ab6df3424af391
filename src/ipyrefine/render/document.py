"""A run as blocks in reading order; HTML, Markdown and the terminal each draw the same blocks."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from ipyrefine.core import model
from ipyrefine.core.model import (
    Answer,
    Change,
    CriterionScore,
    Evidence,
    Finding,
    Form,
    Question,
    Severity,
    Status,
    Usage,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import KEPT_HERE
from ipyrefine.render import labels
from ipyrefine.render.escape import strip_colours
from ipyrefine.render.labels import Label

MAX_SCORES = 50  # a panel sends all of them again with each iteration
DOUBTFUL = "Doubtful"  # title of the findings that did not hold when they were tried
SETTLED = (Status.RESOLVED, Status.DISMISSED)
# What the warnings begin with that nobody needs to be warned of.
_REMARKS = ("A replay of ", KEPT_HERE)


class Summary(NamedTuple):
    """The line at the top.

    Attributes:
        stage: what is running; empty when nothing is.
        label: the verdict so far.
        parts: score, best iteration, usage, stop reason.
    """

    stage: str
    label: Label
    parts: tuple[str, ...]

    def __str__(self) -> str:
        """Return the line as plain text."""
        return " · ".join([self.stage or str(self.label), *self.parts])


class Paragraph(NamedTuple):
    """A few sentences, after a lead that stands out; ``words`` are the user's own, set apart."""

    text: str
    kind: Literal["plain", "message", "words", "warning", "flaw", "quiet"] = "plain"
    lead: str = ""


class Text(NamedTuple):
    """A draft or revision in full."""

    text: str
    form: Form
    title: str = ""
    language: str = "python"


class Difference(NamedTuple):
    """What changed from another iteration's text."""

    other: int
    old: str
    new: str
    form: Form
    language: str = "python"


class Output(NamedTuple):
    """Text of a program or a model that is not the result, folded where possible."""

    title: str
    text: str


class Item(NamedTuple):
    """One row of a list.

    Attributes:
        name: what it is about.
        note: what qualifies the name.
        labels: severity, status or result; the first sets the style.
        score: 0..1, drawn as a bar.
        text: what it says.
        quote: the words of the text it rests on.
        form: how the quote is set.
        source: the text to show the quote in; empty for none.
        doubt: why it is doubtful; empty where it is not.
        example: an input that shows it, with what that should give.
        fix: how to fix it.
        detail: program output.
        settled: whether it needs no action any more.
    """

    name: str = ""
    note: str = ""
    labels: tuple[Label, ...] = ()
    score: float | None = None
    text: str = ""
    quote: str = ""
    form: Form = "prose"
    source: str = ""
    doubt: str = ""
    example: tuple[str, str] = ("", "")
    fix: str = ""
    detail: str = ""
    settled: bool = False


class Items(NamedTuple):
    """A titled list; `folded` where nothing in it asks for action."""

    title: str
    items: tuple[Item, ...]
    folded: bool = False


class Table(NamedTuple):
    """A titled table; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Picture(NamedTuple):
    """A picture.

    Attributes:
        png: it, as base64 of a PNG.
        size: its width and height in pixels.
        caption: what it is, in words.
    """

    png: str
    size: tuple[int, int]
    caption: str


class Scores(NamedTuple):
    """The latest scores of a run."""

    iterations: tuple[Iteration, ...]
    target: float
    best: int | None
    total: int

    @property
    def values(self) -> list[float | None]:
        """Return the score of each iteration, None where there is none."""
        return [_score(one) for one in self.iterations]

    @property
    def omission(self) -> str:
        """Return a sentence about omitted iterations; empty when there are none."""
        listed = len(self.iterations)
        return f"Latest {listed} of {self.total:,} iterations." if listed < self.total else ""

    def __str__(self) -> str:
        """Return them in one line: ``Scores ▄█ 0.42 → 0.91 (target 0.80)``."""
        values = " → ".join(labels.score(value) for value in self.values)
        target = f"(target {labels.score(self.target)})"
        return f"Scores {labels.sparkline(self.values)} {values} {target} {self.omission}".rstrip()


class Section(NamedTuple):
    """Blocks under a title, folded where possible."""

    title: str
    blocks: tuple["Block", ...]


class Version(NamedTuple):
    """One iteration, or one of several groups of texts; `open` where it starts unfolded."""

    name: str
    label: Label | None
    score: str
    best: bool
    flawed: bool
    blocks: tuple["Block", ...]
    open: bool = False

    def __str__(self) -> str:
        """Return the heading as plain text."""
        parts = [self.name]
        parts += [str(self.label)] if self.label else []
        parts += [self.score] if self.score else []
        parts += [labels.BEST] if self.best else []
        return " · ".join([*parts, *([str(labels.NO_NEW_TEXT)] if self.flawed else [])])


Block = (
    Summary | Paragraph | Text | Difference | Output | Items | Table | Picture | Scores | Section
    | Version
)  # fmt: skip


def record(run: Run, note: str = "") -> list[Block]:
    """Return the blocks of a whole run: the outcome first, then how it came about.

    Args:
        run: the run.
        note: a sentence to put below the summary.
    """
    return [
        summary(run),
        *([Paragraph(note, "message")] if note else []),
        *notices(run),
        *result(run),
        *scores(run),
        *usage(run),
        *settings(run),
        *(version(run, iteration) for iteration in run.iterations),
    ]


def summary(run: Run) -> Summary:
    """Return the summary line."""
    stage = labels.STAGES[run.stage] if run.stage and labels.running(run) else ""
    return Summary(stage, labels.iteration_label(run.chosen), tuple(labels.summary_parts(run)))


def notices(run: Run) -> list[Block]:
    """Return why the run stopped, what to clarify, the user's decisions and the warnings."""
    decisions = [labels.decision_sentence(run, one) for one in run.decisions]
    return [
        *([Paragraph(run.message, "message")] if run.message else []),
        *(question(run.question) if run.question else []),
        *(Paragraph(one) for one in decisions if one != run.message),
        *(Paragraph(one, "quiet" if is_remark(one) else "warning") for one in run.warnings),
    ]


def is_remark(warning: str) -> bool:
    """Return whether a warning is only something to know, like that the run is a replay."""
    return warning.startswith(_REMARKS)


def question(asked: Question) -> list[Block]:
    """Return a question with the results that the drafts give, numbered, and how to answer it."""
    choices = tuple(
        Item(
            name=str(number),
            note=f"{labels.choice_text(choice)} ({labels.count(choice.votes, 'draft')})",
        )
        for number, choice in enumerate(asked.choices, start=1)
    )
    return [
        Paragraph(labels.question_title(asked), lead="To clarify:"),
        *([Output("Before it runs", asked.setup)] if asked.setup.strip() else []),
        *_items("Answers", choices),
        Paragraph('%refine answer 1, or your own: %refine answer "ValueError"', "quiet"),
    ]


def result(run: Run) -> list[Block]:
    """Return the chosen text."""
    return [Text(run.text, run.task.form, language=run.task.language)] if run.chosen else []


def scores(run: Run) -> list[Block]:
    """Return the scores, and those of each criterion, from the second verdict on."""
    latest = run.iterations[-MAX_SCORES:]
    if sum(one.verdict is not None for one in latest) < 2:
        return []
    blocks: list[Block] = [Scores(latest, run.limits.target, run.best, len(run.iterations))]
    judged = [
        (str(one.number), {c.name: c.score for c in one.verdict.criteria})
        for one in latest
        if one.verdict and one.verdict.criteria
    ]
    if len(judged) > 1:
        rows = []
        for criterion in run.task.criteria:
            values = [by_name.get(criterion.name) for _, by_name in judged]
            rows.append((criterion.name, *map(labels.score, values), labels.sparkline(values)))
        head = ("Iteration", *(number for number, _ in judged), "")
        blocks.append(Table("Scores by criterion", head, tuple(rows)))
    return blocks


def usage(run: Run) -> list[Block]:
    """Return calls, tokens, time and cost of each stage."""
    head = ("Stage", "Calls", "Prompt tokens", "Cached", "Completion tokens", "Time", "Cost")
    rows = tuple(_stage_usage(stage, used) for stage, used in run.spent.items())
    return [Table("Usage by stage", head, rows)] if rows else []


def _stage_usage(stage: str, used: Usage) -> tuple[str, ...]:
    """Return a row of the usage table."""
    cached = labels.NONE if used.cached_tokens is None else f"{used.cached_tokens:,}"
    return (
        labels.STAGES.get(stage, stage),
        str(used.calls),
        f"{used.prompt_tokens:,}",
        cached,
        f"{used.completion_tokens:,}",
        labels.seconds(used.seconds),
        labels.cost(used.cost),
    )


def settings(run: Run) -> list[Block]:
    """Return the task with its criteria, checklist and limits."""
    criteria = tuple(Item(name=one.name, text=one.definition) for one in run.task.criteria)
    questions = tuple(Item(text=one) for one in run.task.checklist)
    answers = tuple(Item(text=one.sentence) for one in run.task.clarifications)
    materials = tuple(Item(name=one.phrase, text=one.text) for one in run.task.materials)
    return [
        Section(
            "Settings",
            (
                Paragraph(run.task.text, "words"),
                *_items("Your answers", answers),
                *_items("Shown to the model", materials),
                *_items("Criteria", criteria),
                *_items("Checklist", questions),
                Paragraph(" · ".join(labels.settings(run)), "quiet"),
            ),
        )
    ]


def version(
    run: Run, iteration: Iteration, other: int | None = None, *, with_outputs: bool = True
) -> Version:
    """Return an iteration: its verdict, its text, what it rests on and what is left to do.

    Args:
        run: the run.
        iteration: one of its iterations.
        other: the iteration to compare the text with; its parent by default.
        with_outputs: whether its outputs are not shown elsewhere.
    """
    return Version(
        labels.iteration_name(iteration),
        labels.iteration_label(iteration) if iteration.verdict else None,
        labels.score_beside(iteration.verdict),
        iteration.number == run.best,
        bool(iteration.failure),
        (
            *reason(iteration),
            *writing(run, iteration, other),
            *checks(iteration),
            *(outputs(iteration) if with_outputs else ()),
            *judgement(iteration),
            *findings(iteration, run.task.form),
            *notes(iteration),
        ),
    )


def reason(iteration: Iteration) -> list[Block]:
    """Return why the verdict is what it is."""
    verdict, override = iteration.verdict, iteration.override
    if override is not None:
        mark = f"Marked {labels.outcome_label(override.outcome).word} by you"
        if not override.reason:
            return [Paragraph("", lead=f"{mark}.")]
        return [Paragraph(override.reason, lead=f"{mark}:")]
    return [Paragraph(verdict.reason)] if verdict and verdict.reason else []


def writing(run: Run, iteration: Iteration, other: int | None = None) -> list[Block]:
    """Return an iteration's text, or how it differs from another, with the changes it claims."""
    compared = iteration.parent if other is None else other
    form, language = run.task.form, run.task.language
    blocks: list[Block] = [failure(iteration.failure)] if iteration.failure else []
    if compared is None:
        blocks.append(Text(iteration.text, form, "Text", language))
    elif not iteration.failure:
        old = run.iterations[compared].text
        blocks.append(Difference(compared, old, iteration.text, form, language))
    return blocks + claims(run, iteration)


def claims(run: Run, iteration: Iteration) -> list[Block]:
    """Return what a revision claims to have done for each finding."""
    parents = () if iteration.parent is None else run.iterations[iteration.parent].findings
    return changes(iteration.changes, (*parents, *iteration.findings))


def failure(reason: str) -> Paragraph:
    """Return why the model gave no usable text."""
    return Paragraph(reason, "flaw", "No usable text from the model:")


def changes(claims: Iterable[Change], answered: Iterable[Finding]) -> list[Block]:
    """Return what a revision claims to have done.

    Args:
        claims: the revision's claims.
        answered: the findings that the claims may be about.
    """
    problems = {finding.id: finding.problem for finding in answered}
    items = tuple(
        Item(
            name=one.finding,
            note=problems.get(one.finding, ""),
            text=f"→ {one.summary or 'no explanation'}",
        )
        for one in claims
    )
    return _items("Changes by finding", items)


def checks(iteration: Iteration) -> list[Block]:
    """Return the results of the checks."""
    return _items("Checks", tuple(map(evidence_item, iteration.evidence)))


def evidence_item(evidence: Evidence) -> Item:
    """Return one check's result."""
    notes = [] if evidence.score is None else [f"score {labels.score(evidence.score)}"]
    notes += [] if evidence.required else ["advisory"]
    return Item(
        name=evidence.name,
        note=" · ".join([*notes, labels.seconds(evidence.seconds)]),
        labels=(labels.evidence_label(evidence),),
        detail=strip_colours(evidence.detail).strip("\n"),
    )


def outputs(iteration: Iteration) -> list[Block]:
    """Return what a text printed, returned and drew when a check ran it."""
    return [_output(one) for evidence in iteration.evidence for one in evidence.outputs]


def _output(output: model.Output) -> Block:
    match output:
        case model.Printed():
            return Output("Printed", output.text)
        case model.Value():
            return Output("Value", output.text)
        case model.TableValue():
            rows, columns = len(output.rows), len(output.columns)
            size = f"{labels.count(output.height, 'row')} × {labels.count(output.width, 'column')}"
            first = f", the first {labels.count(rows, 'row')}" if rows < output.height else ""
            if columns < output.width:
                first = f", the first {rows} × {columns}"
            labelled = zip(output.labels, output.rows, strict=True)
            return Table(
                f"Table: {size}{first}",
                (output.index, *output.columns),
                tuple((label, *row) for label, row in labelled),
            )
        case model.Figure():
            return Picture(output.png, output.size, output.phrase.capitalize())


def judgement(iteration: Iteration) -> list[Block]:
    """Return the judge's opinion where it decides nothing, and its answers, "no" first."""
    verdict = iteration.verdict
    if verdict is None:
        return []
    criteria = tuple(map(_criterion_item, verdict.criteria))
    items = answers(verdict)
    met = sum(one.yes for one in verdict.checklist)
    title = f"Checklist: {met} of {len(items)} met"
    opinion, ignored = verdict.opinion, list[Block]()
    if opinion is not None and verdict.basis not in ("judge", "constraints", "none", "user"):
        sentence = f"Judge's opinion, {labels.score(opinion)}. It doesn't change the verdict."
        ignored.append(Paragraph(sentence, "quiet"))
    return [
        *ignored,
        *_items("Criteria", criteria),
        *_items(title, items, folded=met == len(items)),
    ]


def answers(verdict: Verdict) -> tuple[Item, ...]:
    """Return the judge's answers to the checklist, "no" first."""
    return tuple(map(_answer_item, sorted(verdict.checklist, key=lambda one: one.yes)))


def _criterion_item(one: CriterionScore) -> Item:
    """Return a criterion's score, with the reason if the judge gave one."""
    return Item(name=one.name, score=one.score, text=one.reason)


def _answer_item(one: Answer) -> Item:
    """Return an answer to a checklist question."""
    return Item(labels=(labels.answer_label(one.yes),), text=one.question, score=one.score)


def findings(
    iteration: Iteration, form: Form, found: Iterable[Finding] | None = None
) -> list[Block]:
    """Return findings in reading order; the doubtful ones folded, below the others.

    Args:
        iteration: the text they are about.
        form: how it is written.
        found: the findings; all of the iteration's by default.
    """
    passed = iteration.verdict is not None and iteration.verdict.passed
    every = ranked(iteration.findings if found is None else found)
    rows = [(one.doubtful, finding_item(one, form, iteration.text, passed=passed)) for one in every]
    return [
        *_items("Findings", tuple(item for doubtful, item in rows if not doubtful)),
        *_items(DOUBTFUL, tuple(item for doubtful, item in rows if doubtful), folded=True),
    ]


def ranked(found: Iterable[Finding]) -> list[Finding]:
    """Return findings in reading order: those to act on first, blocking before minor."""
    return sorted(found, key=_urgency)


def _urgency(finding: Finding) -> tuple[bool, bool, bool]:
    """Return the sort key of a finding."""
    minor = finding.severity is not Severity.BLOCKING
    return finding.status in SETTLED, finding.doubtful, minor


def finding_item(finding: Finding, form: Form, source: str = "", *, passed: bool = False) -> Item:
    """Return one finding.

    Args:
        finding: the finding.
        form: how its text is written.
        source: the text it is about, to show its quote in context.
        passed: whether that text passes, so that a minor finding is a suggestion.
    """
    by = [] if finding.author == "model" else [labels.FINDERS[finding.author]]
    severity = labels.severity_label(finding.severity, passed=passed)
    return Item(
        name=finding.id,
        note=" · ".join([labels.check_name(finding.criterion), *by]),
        labels=(severity, labels.status_label(finding.status)),
        text=finding.problem,
        quote=finding.quote,
        form=form,
        source=source,
        doubt=labels.doubt(finding, source),
        example=(finding.input, finding.expected),
        fix=finding.fix,
        settled=finding.status in SETTLED,
    )


def notes(iteration: Iteration) -> list[Block]:
    """Return what the model wrote before the text, and what the iteration consumed."""
    parts = labels.usage_parts(iteration.usage)
    return [
        *([Output("Model notes", iteration.thoughts)] if iteration.thoughts.strip() else []),
        *([Paragraph(" · ".join(parts), "quiet")] if parts else []),
    ]


def _items(title: str, items: tuple[Item, ...], *, folded: bool = False) -> list[Block]:
    """Return a list, or nothing when it is empty."""
    return [Items(title, items, folded)] if items else []


def _score(iteration: Iteration) -> float | None:
    """Return an iteration's score."""
    return iteration.verdict.score if iteration.verdict else None
