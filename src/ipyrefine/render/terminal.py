"""A run in a terminal: the record, a line or more per event, widths and colours."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from wcwidth import wcwidth

from ipyrefine.core.events import (
    Decided,
    Event,
    RunStarted,
    StageStarted,
    Stopped,
    Warned,
)
from ipyrefine.core.model import Stage, StopReason
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import document, labels
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
_MIN_TEXT_LINES = 8  # of the kept text, however small the terminal is
_DETAIL_LINES = 3  # of a failed check on the closing screen
_OUTPUT_LINES = 6  # of one output on the screen of a stopped run
_FINDINGS = 3  # on the closing screen
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


def blocks_text(blocks: Iterable[document.Block], columns: int = 80) -> str:
    """Return blocks as text, wrapped at a width; lines of code stay whole."""
    return "\n".join(_Printer(columns, colour=False).blocks(blocks)).strip("\n")


def _is_text(block: document.Block, text: str) -> bool:
    """Return whether a block is a text in full."""
    return isinstance(block, document.Text) and block.text == text


def event_text(
    event: Event, run: Run, *, columns: int = 80, rows: int = 24, colour: bool = False
) -> str | None:
    """Return the lines that a terminal prints for an event, or None for none.

    A run prints what it is about, a line or two for each text it leaves behind, and at its stop
    one screen about the text it keeps.

    Args:
        event: the event.
        run: the run with the event applied.
        columns: width of the terminal, at least `MIN_COLUMNS`; no line is wider.
        rows: how many lines the stop may take; a long text is cut, but not below a few lines.
        colour: whether to add ANSI colours.
    """
    lines = _Printer(columns, colour).event(event, run, rows)
    return "\n".join(lines) if lines else None


DETAILS: dict[str, Callable[[Run, Iteration], list[document.Block]]] = {
    "text": lambda run, _: document.result(run),
    "diff": lambda run, one: document.writing(run, one),
    "checks": lambda run, one: document.checks(one),
    "output": lambda run, one: document.outputs(one),
    "judge": lambda run, one: document.judgement(one),
    "findings": lambda run, one: document.findings(one, run.task.form),
    "scores": lambda run, _: document.scores(run),
    "usage": lambda run, _: document.usage(run),
    "settings": lambda run, _: document.settings(run),
}
"""What can be shown of a run by itself."""


def details_text(run: Run, what: str, columns: int = 80, *, colour: bool = False) -> str:
    """Return one part of a run with a text: of its chosen text, or of the run as a whole.

    Args:
        run: the run.
        what: a key of `DETAILS`.
        columns: width of the terminal.
        colour: whether to add ANSI colours.
    """
    assert run.chosen is not None, "only a run with a text has details"
    blocks = DETAILS[what](run, run.chosen)
    text = "\n".join(_Printer(columns, colour).blocks(blocks)).strip("\n")
    return text or f"This run has no {what} to show."


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
            case document.Picture():
                return self.wrap(f"{block.caption}.")
            case document.Scores():
                return self.wrap(str(block))
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
        return align([table.head, *table.rows], self._columns, right=True)

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

    def event(self, event: Event, run: Run, rows: int) -> list[str]:
        """Return the lines of an event."""
        match event:
            case RunStarted():
                return self.opening(run)
            case StageStarted(stage=Stage.REVISE):
                return self.left_behind(run.iterations[: event.iteration])
            case Warned():
                return self.block(document.Paragraph(event.message, "warning"))
            case Decided():
                return self.wrap(labels.decision_sentence(run, event.decision))
            case Stopped():
                return self.closing(run, rows)
        return []

    def opening(self, run: Run) -> list[str]:
        """Return what a run is about: how its cell was read, the task's first line, its limits."""
        first, *more = plain(run.task.text).strip().split("\n")
        task = clip(f"│ {first}{' ⋯' if any(more) else ''}", self._columns)
        return [
            *self.wrap(f"Interpreted as: {labels.interpretation(run.setup)}", "bold"),
            task,
            *self.wrap(f"{labels.model_name(run.setup.model)} · {labels.bounds(run)}", "quiet"),
        ]

    def left_behind(self, texts: Sequence[Iteration], kept: Iteration | None = None) -> list[str]:
        """Return a line and the reason for the latest text, and for each draft beside it.

        Args:
            texts: the texts so far.
            kept: the one that is shown in full elsewhere.
        """
        latest = texts[-1:] if texts and texts[-1].parent is not None else texts
        lines = []
        for one in latest:
            if one is kept:
                continue
            label = labels.NO_NEW_TEXT if one.failure else labels.iteration_label(one)
            lines += self.wrap(f"{labels.iteration_name(one)}: {label}", label.kind, hang="  ")
            reason = one.verdict.reason if one.verdict and not one.failure else ""
            if failed := [e for e in one.evidence if e.failed]:  # the label says that it failed
                reason = reason.removeprefix(f"{failed[0].name} failed: ")
            lines += [clip(f"  {reason.splitlines()[0]}", self._columns)] if reason else []
        return lines

    def closing(self, run: Run, rows: int) -> list[str]:
        """Return the screen of a stopped run: verdict, difference, evidence, what is open."""
        chosen = run.chosen
        if chosen is None:
            return self.wrap(run.message) if _tells(run) else []
        label = labels.iteration_label(chosen)
        title = f"{labels.iteration_name(chosen)}: {label}"
        heading = paint(rule(title, self._columns), label.kind, self._colour)
        if run.stop_reason in (StopReason.ACCEPTED, StopReason.OVERRIDDEN):
            return [heading]
        above = [*self.left_behind(run.iterations, chosen), heading]
        below = [*self.evidence(chosen), *self.outputs(chosen), *self.open_findings(run, chosen)]
        if run.question:
            below += self.blocks(document.question(run.question))
        below += self.wrap(" · ".join(labels.usage_parts(run.usage, run.seconds)), "quiet")
        if _tells(run):
            # What is still open stands above.
            reason = chosen.verdict.reason if chosen.verdict else ""
            sentence = run.message.replace(f" Still open: {reason}", "")
            below += self.wrap(sentence)
        room = max(_MIN_TEXT_LINES, rows - len(above) - len(below))
        return [*above, *self.kept_text(run, chosen, room), *below]

    def kept_text(self, run: Run, chosen: Iteration, room: int) -> list[str]:
        """Return how a text differs from the one it revises, or all of a draft, cut to the room."""
        if chosen.parent is None:
            what, rows = "text", plain(chosen.text).strip("\n").split("\n")
            if run.task.form == "code":
                lines = [clip(row, self._columns) for row in rows]
            else:
                lines = [line for row in rows for line in self.wrap(row)]
        else:
            parent, form = run.iterations[chosen.parent], run.task.form
            name = labels.iteration_name(parent).lower()
            change = document.Difference(chosen.parent, parent.text, chosen.text, form)
            what, lines = "diff", [f"Changes from {name}:", *self.difference(change)]
        hidden = len(lines) - room + 1
        if hidden <= 1:
            return lines
        more = f"⋯ {labels.count(hidden, 'more line')}: show {what}"
        return [*lines[:-hidden], *self.wrap(more, "quiet")]

    def evidence(self, text: Iteration) -> list[str]:
        """Return the checks in one line, and below it what each failure is about."""
        line = self.wrap(" · ".join(map(labels.evidence_chip, text.evidence)))
        line = line if text.evidence else []
        failed = [one for one in text.evidence if one.failed or one.contested]
        details = [strip_colours(one.detail).strip("\n") for one in failed]
        return line + [
            clip(f"  │ {row}", self._columns)
            for detail in details
            for row in detail.split("\n")[:_DETAIL_LINES]
            if row.strip()
        ]

    def outputs(self, text: Iteration) -> list[str]:
        """Return the first lines of what a text's code printed, returned and drew."""
        found = [self.block(block) for block in document.outputs(text)]
        lines = [line for one in found for line in one[:_OUTPUT_LINES]]
        if any(len(one) > _OUTPUT_LINES for one in found):
            lines += self.wrap("⋯ more: show output", "quiet")
        return lines

    def open_findings(self, run: Run, text: Iteration) -> list[str]:
        """Return a line for each finding to act on beside the failed checks; few of many."""
        failed = {one.name for one in text.evidence if one.failed}
        ranked = document.ranked(text.findings)
        found = [one for one in ranked if one.actionable and one.check not in failed]
        lines = []
        for one in found[:_FINDINGS]:
            passed = text.verdict is not None and text.verdict.passed
            label = labels.severity_label(one.severity, passed=passed)
            line = f"{label} {one.id} · {labels.check_name(one.criterion)}: {one.problem}"
            cut = clip(plain(line).replace("\n", " "), self._columns)
            lines.append(paint(cut, label.kind, self._colour))
        if len(found) > _FINDINGS:
            more = labels.count(len(found) - _FINDINGS, "more finding")
            lines += self.wrap(f"⋯ {more}: show findings", "quiet")
        return lines


def _tells(run: Run) -> bool:
    """Return whether the stop says something that no error and no verdict says already."""
    silent = (StopReason.FAILED, StopReason.CANCELLED, StopReason.PASSED)
    return run.stop_reason not in silent


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


def align(rows: Sequence[Sequence[str]], columns: int = 80, *, right: bool = False) -> list[str]:
    """Return rows as lines with aligned columns, cut at the terminal's width.

    Args:
        rows: the cells of each row, as many in each.
        columns: width of the terminal.
        right: whether all columns but the first are aligned to the right.
    """
    flat = [[plain(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*flat, strict=True)]
    lines = []
    for row in flat:
        padding = (" " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True))
        placed = [
            blank + cell if right and place else cell + blank
            for place, (cell, blank) in enumerate(zip(row, padding, strict=True))
        ]
        lines.append(clip("  ".join(placed).rstrip(), columns))
    return lines


def rule(title: str, columns: int) -> str:
    """Return a heading drawn across the terminal."""
    width = max(columns, MIN_COLUMNS)
    text = _cut(title, width - 4)
    return f"── {text} ".ljust(width + len(text) - cells(text), "─") if text else "─" * width


def _bar(score: float) -> str:
    """Return a score as a bar of ten blocks."""
    return f"{'█' * round(score * 10):░<10}"
