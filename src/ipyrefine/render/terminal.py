"""A run in a terminal: the record, a line or more per event, widths and colours."""

import re
from collections.abc import Iterable, Iterator

from wcwidth import wcwidth

from ipyrefine.core.events import (
    BestChanged,
    CallEnded,
    Compared,
    CritiqueReady,
    Decided,
    DraftFailed,
    DraftReady,
    Event,
    EvidenceReady,
    QuestionAsked,
    RevisionReady,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
    VerdictReached,
    Warned,
)
from ipyrefine.core.model import Finding, Form
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import document, labels
from ipyrefine.render.chart import sparkline
from ipyrefine.render.diff import text_diff, text_sign, unified
from ipyrefine.render.escape import plain, strip_colours

MIN_COLUMNS = 20
COLOURS = {
    "good": "32",
    "warn": "33",
    "bad": "31",
    "opinion": "36",
    "yours": "36",
    "quiet": "2",
    "head": "1;36",
    "bold": "1",
}
_DIFF_LINES = 60
_DIFF_KINDS = {"+": "good", "-": "bad", "@": "quiet"}
_PARAGRAPH_KINDS = {"warning": "warn", "flaw": "bad", "quiet": "quiet"}


def record_text(run: Run, columns: int = 80, *, colour: bool = False) -> str:
    """Return the whole run as text.

    Args:
        run: the run.
        columns: width to wrap at; lines of a draft or revision stay whole, so they can be copied.
        colour: whether to add ANSI colours.
    """
    blocks = []
    for block in document.record(run):
        if isinstance(block, document.Version):
            # Nothing folds here, so the chosen draft is not printed twice.
            others = [one for one in block.blocks if not _is_text(one, run.text)]
            block = block._replace(blocks=tuple(others))
        blocks.append(block)
    return "\n".join(_Printer(columns, colour).blocks(blocks)).rstrip("\n")


def _is_text(block: document.Block, text: str) -> bool:
    """Return whether a block is a text in full."""
    return isinstance(block, document.Text) and block.text == text


def event_text(event: Event, run: Run, *, columns: int = 80, colour: bool = False) -> str | None:
    """Return the lines that a terminal prints for an event, or None for none.

    Args:
        event: the event. Streamed text (`TextDelta`) is the caller's to print.
        run: the run with the event applied.
        columns: width of the terminal, at least `MIN_COLUMNS`; no line is wider.
        colour: whether to add ANSI colours.
    """
    lines = _Printer(columns, colour).event(event, run)
    return "\n".join(lines) if lines else None


class _Printer:
    """Turns blocks and events into lines.

    Args:
        columns: width of the terminal.
        colour: whether to add ANSI colours.
    """

    def __init__(self, columns: int, colour: bool) -> None:
        self._columns, self._colour = columns, colour

    def wrap(
        self, text: str, kind: str = "", indent: str = "", hang: str | None = None
    ) -> list[str]:
        """Return wrapped lines in the colour of a kind; arguments as for `wrap`."""
        lines = wrap(text, self._columns, indent, hang)
        return [paint(line, kind, self._colour) for line in lines]

    def heading(self, title: str) -> str:
        """Return a heading across the terminal."""
        return paint(rule(title, self._columns), "head", self._colour)

    def blocks(self, blocks: Iterable[document.Block]) -> list[str]:
        """Return blocks as lines."""
        return [line for block in blocks for line in self.block(block)]

    def block(self, block: document.Block) -> list[str]:
        """Return one block as lines."""
        match block:
            case document.Summary():
                return self.wrap(str(block))
            case document.Paragraph(kind="words"):
                return self.wrap(block.text, indent="│ ")
            case document.Paragraph():
                text = f"{block.lead} {block.text}".strip()
                marked = block.kind in ("warning", "flaw")
                text, hang = (f"⚠ {text}", "  ") if marked else (text, "")
                return self.wrap(text, _PARAGRAPH_KINDS.get(block.kind, ""), hang=hang)
            case document.Text():
                return ["", plain(block.text).rstrip("\n"), ""]
            case document.Difference():
                return self.difference(block)
            case document.Output():
                text = strip_colours(block.text).strip("\n")
                return [*self.wrap(block.title), *self.wrap(text, "quiet", "  │ ")]
            case document.Items():
                return [*self.wrap(block.title, "bold"), *self.items(block.items)]
            case document.Table():
                return [*self.wrap(block.title, "bold"), *self.table(block)]
            case document.Scores():
                values = " → ".join(labels.score(value) for value in block.values)
                target = f"(target {labels.score(block.target)})"
                line = f"Scores {sparkline(block.values)} {values} {target} {block.omission}"
                return self.wrap(line.rstrip())
            case document.Tree():
                return [*self.wrap(block.title, "bold"), *block.lines]
            case document.Section():
                return ["", self.heading(block.title), *self.blocks(block.blocks)]
            case document.Version():
                return ["", self.heading(str(block)), *self.blocks(block.blocks)]

    def items(self, items: Iterable[document.Item]) -> list[str]:
        """Return the rows of a list."""
        return [line for item in items for line in self.item(item)]

    def item(self, item: document.Item) -> list[str]:
        """Return one row: its title, then what it says; the detail only unless it passed."""
        kind = "quiet" if item.settled else item.labels[0].kind if item.labels else ""
        marks = ", ".join(str(label) for label in item.labels if label.kind != "open")
        bar = "" if item.score is None else f"{_bar(item.score)} {labels.score(item.score)} "
        title = " · ".join(part for part in (f"{bar}{item.name}", item.note) if part)
        parts = (marks, title, "" if item.name else item.text)
        lines = self.wrap(": ".join(part for part in parts if part), kind, hang="  ")
        lines += self.wrap(item.text, indent="  ") if item.name and item.text else []
        lines += self.wrap(item.quote, "quiet", "  │ ") if item.quote else []
        lines += self.wrap(str(labels.doubtful(item.doubt)), "warn", "  ") if item.doubt else []
        call, expected = item.example
        if call.strip():
            result = f", expected {expected}" if expected else ""
            lines += self.wrap(f"Shown by: {call}{result}", indent="  ")
        lines += self.wrap(f"Fix: {item.fix}", indent="  ") if item.fix else []
        detail = item.detail if kind != "good" else ""
        return lines + (self.wrap(detail, indent="  │ ") if detail.strip() else [])

    def table(self, table: document.Table) -> list[str]:
        """Return a table with aligned columns, cut at the terminal's width."""
        rows = [
            [plain(cell).replace("\n", " ") for cell in row] for row in (table.head, *table.rows)
        ]
        widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
        lines = []
        for first, *others in rows:
            line = first + " " * (widths[0] - cells(first))
            for cell, width in zip(others, widths[1:], strict=True):
                line += "  " + " " * (width - cells(cell)) + cell
            lines.append(clip(line.rstrip(), self._columns))
        return lines

    def difference(self, block: document.Difference) -> list[str]:
        """Return what changed: lines of code cut at the width, prose by word and wrapped."""
        if plain(block.old) == plain(block.new):
            return self.wrap("No change to the text.")
        if block.form == "code":
            lines = []
            for part in unified(block.old, block.new):
                line = clip(f"{text_sign(part.tag)} {part.line}", self._columns).rstrip()
                lines.append(paint(line, _DIFF_KINDS.get(part.tag, ""), self._colour))
        else:
            lines = self.wrap(text_diff(block.old, block.new, form="prose"))
        hidden = len(lines) - _DIFF_LINES
        if hidden <= 0:
            return lines
        return lines[:_DIFF_LINES] + self.wrap(f"⋯ {labels.count(hidden, 'more line')}")

    def event(self, event: Event, run: Run) -> list[str]:
        """Return the lines of an event."""
        form = run.task.form
        match event:
            case TextDelta() | DraftFailed():  # a warning follows the loss
                return []
            case RunStarted():
                title = self.wrap(f"Interpreted as: {labels.interpretation(event.setup)}", "bold")
                words = self.wrap(event.setup.task.text, indent="│ ")
                return [*title, *words, *self.wrap(" · ".join(labels.settings(run)))]
            case StageStarted():
                return [
                    self.heading(
                        labels.stage_name(event.stage, event.iteration, run.allowed_revisions)
                    )
                ]
            case DraftReady():
                size = labels.count(len(plain(event.text).splitlines()), "line")
                if event.author == "user":
                    return self.wrap(f"Your text: {size}")
                # A single draft was printed as it streamed.
                several = run.limits.candidates > 1
                return self.wrap(f"Draft {event.candidate}: {size}") if several else []
            case CritiqueReady():
                found = event.critique.findings
                blocks = document.findings(run.iterations[event.iteration], form, found)
                return self.blocks(blocks) or self.wrap("No findings.")
            case RevisionReady():
                return self.revision(event, run)
            case EvidenceReady():
                return self.item(document.evidence_item(event.evidence))
            case VerdictReached():
                return self.verdict(event, run)
            case QuestionAsked():
                return [self.heading("Question"), *self.blocks(document.question(event.question))]
            case BestChanged():
                # The only draft is the best without saying.
                line = f"★ Best so far: iteration {event.iteration}"
                return self.wrap(line, "bold") if len(run.iterations) > 1 else []
            case Compared():
                won = "is better than" if event.won else "is no better than"
                why = f": {event.reason}" if event.reason else "."
                line = f"Iteration {event.iteration} {won} iteration {event.against}{why}"
                return self.wrap(line)
            case CallEnded():
                parts = [*labels.usage_parts(event.usage), labels.budget_left(run)]
                used = " · ".join(part for part in parts if part)
                return self.wrap(used, "quiet") if used else []
            case Warned():
                return self.block(document.Paragraph(event.message, "warning"))
            case Decided():
                return self.wrap(event.decision.sentence())
            case Stopped():
                summary = str(document.summary(run))
                lines = [self.heading("Done")]
                lines += self.wrap(summary, labels.iteration_label(run.chosen).kind)
                return lines + self.wrap(event.message or labels.STOP_SENTENCES[event.reason])

    def revision(self, event: RevisionReady, run: Run) -> list[str]:
        """Return what a revision claims and what it changed."""
        if event.failure:
            return self.block(document.failure(event.failure))
        parent = run.iterations[event.parent]
        claims = document.changes(event.changes, parent.findings)
        form = run.task.form
        return self.blocks(
            [*claims, document.Difference(event.parent, parent.text, event.text, form)]
        )

    def verdict(self, event: VerdictReached, run: Run) -> list[str]:
        """Return the verdict, the scores so far, new findings in full and known ones in a line."""
        verdict = event.verdict
        iteration = run.iterations[event.iteration]
        label = labels.verdict_label(verdict, iteration.evidence)
        line = str(label)
        if verdict.score is not None:
            number = labels.score_beside(verdict)
            target = f"(target {labels.score(run.limits.target)})"
            score = f"score {number}" if number else "scores"
            line = f"{line} · {score} {sparkline(run.score_history)} {target}"
        form = run.task.form
        lines = self.wrap(line, label.kind)
        lines += self.wrap(verdict.reason) if verdict.reason else []
        lines += self.blocks(document.judgement(run, iteration))
        earlier = {f.id for i in run.iterations[: event.iteration] for f in i.findings}
        return lines + [
            line
            for finding in document.ranked(event.findings)
            for line in self.finding(finding, iteration, form, finding.id in earlier)
        ]

    def finding(self, finding: Finding, text: Iteration, form: Form, known: bool) -> list[str]:
        """Return a finding in full, or one line for one that was printed before."""
        if not known:
            passed = text.verdict is not None and text.verdict.passed
            return self.item(document.finding_item(finding, form, text.text, passed=passed))
        status = labels.status_label(finding.status)
        return self.wrap(f"{status}: {finding.id} · {finding.problem}", status.kind, hang="  ")


def paint(text: str, kind: str, colour: bool) -> str:
    """Return text in the ANSI colour of a kind, or unchanged for an unknown kind."""
    code = COLOURS.get(kind)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code and text else text


def cells(text: str) -> int:
    """Return how many columns of a terminal a text takes at most."""
    # Character by character, not `wcswidth`: it joins emoji at U+200D as few terminals do, so that
    # a long line could pass for a short one.
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(character: str) -> int:
    """Return the columns of one character."""
    return max(0, wcwidth(character))


def wrap(text: str, columns: int, indent: str = "", hang: str | None = None) -> list[str]:
    """Break text into lines no wider than the terminal; its own line breaks stay.

    Args:
        text: any text; controls are made visible.
        columns: width of the terminal, at least `MIN_COLUMNS`.
        indent: start of the first line.
        hang: start of the other lines; the indent by default.
    """
    width = max(columns, MIN_COLUMNS)
    rest = indent if hang is None else hang
    lines: list[str] = []
    for line in plain(text).expandtabs(4).split("\n"):
        lines += _wrap_line(line, width, rest if lines else indent, rest)
    return lines


def _wrap_line(line: str, width: int, lead: str, rest: str) -> Iterator[str]:
    """Yield the pieces of one line."""
    current, used = lead, cells(lead)
    empty = True
    for token in re.findall(r"\s+|\S+", line):
        for piece in _pieces(token, max(2, width - cells(rest))):
            size = cells(piece)
            if used + size > width and not empty:
                yield current.rstrip()
                current, used, empty = rest, cells(rest), True
                if piece.isspace():
                    continue
            current, used, empty = current + piece, used + size, False
    yield current.rstrip()


def _pieces(token: str, width: int) -> Iterator[str]:
    """Yield a word in pieces that fit a line."""
    piece, used = "", 0
    for character in token:
        size = _cell(character)
        if used + size > width:
            yield piece
            piece, used = "", 0
        piece, used = piece + character, used + size
    yield piece


def clip(line: str, columns: int) -> str:
    """Cut a line at the terminal's width, with an ellipsis where it was cut."""
    return _cut(line, max(columns, MIN_COLUMNS))


def _cut(line: str, width: int) -> str:
    """Cut a line at a width in cells."""
    text = plain(line).expandtabs(4)
    return text if cells(text) <= width else f"{next(_pieces(text, width - 1))}…"


def rule(title: str, columns: int) -> str:
    """Return a heading drawn across the terminal."""
    width = max(columns, MIN_COLUMNS)
    text = _cut(title, width - 4)
    return f"── {text} ".ljust(width + len(text) - cells(text), "─") if text else "─" * width


def _bar(score: float) -> str:
    """Return a score as a bar of ten blocks."""
    return f"{'█' * round(score * 10):░<10}"
