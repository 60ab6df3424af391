"""A run in a terminal: the record, a line or more per event, widths and colours."""

import re
from collections.abc import Callable, Iterable, Sequence

import wcwidth

from ipyrefine.core.actions import decision_sentence
from ipyrefine.core.events import (
    Decided,
    DraftReady,
    Event,
    FormChosen,
    RunStarted,
    StageStarted,
    Stopped,
    Warned,
)
from ipyrefine.core.model import Figure, Stage, StopReason
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import blocks as build
from ipyrefine.render import say
from ipyrefine.render.blocks import Block, Lines, Output, Paragraph, Section, Text
from ipyrefine.render.diff import text_diff
from ipyrefine.render.escape import plain

MIN_COLUMNS = 20
_PIECE = 20  # lines that are broken at once
_COLOURS = {
    "good": "32", "warn": "33", "bad": "31", "opinion": "36", "yours": "36", "quiet": "2",
    "head": "1;36", "bold": "1", "warning": "33", "flaw": "31", "+": "32", "-": "31", "⋯": "2",
}  # fmt: skip
_DIFF_LINES = 60
_MIN_TEXT_LINES = 8  # of the kept text, however small the terminal is
_PART_LINES = 6  # of the checks, the outputs and the findings on the screen of a stopped run
_DETAIL_LINES = 4  # of the program's output below a line
_NAME = 10  # columns of a text's name
_WIDE = 64  # columns of a terminal from which marks stand beside the checks
# Stops that the error or the verdict already explains.
_SILENT = (StopReason.FAILED, StopReason.CANCELLED, StopReason.PASSED, StopReason.ANSWERED)

DETAILS: dict[str, Callable[[Run, Iteration], Sequence[Block]]] = {
    "text": lambda run, _: build.result(run),
    "diff": build.writing,
    "checks": lambda run, one: build.checks(run, one, every=True),
    "output": build.whole_account,
    "texts": lambda run, one: build.texts(run, None),
    "usage": lambda run, _: build.usage(run),
    "settings": lambda run, _: build.settings(run),
}
"""What can be shown of a run by itself."""
_TELLS_NO_RESULT = ("text", "usage", "settings")


def record_text(run: Run, columns: int = 80) -> str:
    """Return the whole run as text; lines of a draft or revision stay whole, to be copied."""
    said = say.receipt(run) if run.ran else say.verdict(run, run.chosen)
    verdict = str(said.label if run.setup.coach else said)
    if run.stage and say.running(run):
        verdict = say.STAGES[run.stage]
    return blocks_text([Paragraph("", lead=verdict), *build.record(run)], columns)


def blocks_text(blocks: Iterable[Block], columns: int = 80, *, whole: bool = False) -> str:
    """Return blocks as text, wrapped at a width; lines of code stay whole.

    With `whole`, what others fold is there, too.
    """
    return "\n".join(_Printer(columns, whole=whole).blocks(blocks)).strip("\n")


def details_text(run: Run, what: str, columns: int = 80) -> str:
    """Return one part, a key of `DETAILS`, of a run's chosen text or of the run as a whole.

    What would give a result away that a student has still to predict is answered with the question.
    """
    assert run.chosen is not None, "only a run with a text has details"
    if what not in _TELLS_NO_RESULT and (asked := build.puzzle(run)):
        return blocks_text(asked, columns)
    text = blocks_text(DETAILS[what](run, run.chosen), columns, whole=True)
    return text or f"This run has no {what} to show."


def event_text(
    event: Event, run: Run, *, columns: int = 80, rows: int = 24, colour: bool = False
) -> str | None:
    """Return the lines that a terminal prints for an event, or None for none.

    A run prints what it is about, a line or two for each text it leaves behind, and at its stop
    one screen about the text it keeps.

    The stop takes at most `rows` lines, but a long text is never cut below a few.
    """
    printer = _Printer(columns, colour=colour)
    lines = []
    match event:
        case RunStarted():
            lines = printer.opening(run)
        case FormChosen() | DraftReady(form="code" | "prose") if len(run.iterations) < 2:
            lines = printer.wrap(f"Interpreted as: {say.form_name(run.task)}", "bold")
        case StageStarted(stage=Stage.DRAFT | Stage.REVISE):
            for text in run.iterations[: event.iteration][-1:]:  # that is left behind
                one = say.Words(say.NO_NEW_TEXT) if text.failure else say.verdict(run, text)
                lines = [printer.clip(f"{run.name(text.number)}: {one}", one.label.kind)]
        case Warned():
            lines = printer.blocks([Paragraph(event.message, "warning")])
        case Decided():
            lines = printer.wrap(decision_sentence(run, event.decision))
        case Stopped():
            lines = printer.closing(run, rows)
    return "\n".join(lines) or None


class _Printer:
    """Turns blocks and events into lines."""

    def __init__(self, columns: int, *, colour: bool = False, whole: bool = False) -> None:
        self._columns, self._colour, self._whole = columns, colour, whole

    def paint(self, text: str, kind: str) -> str:
        code = _COLOURS.get(kind)
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and code and text else text

    def wrap(
        self, text: str, kind: str = "", indent: str = "", hang: str | None = None
    ) -> list[str]:
        return [self.paint(line, kind) for line in wrap(text, self._columns, indent, hang)]

    def clip(self, text: str, kind: str = "") -> str:
        return self.paint(clip(text.replace("\n", " "), self._columns), kind)

    def heading(self, title: str, kind: str = "head") -> str:
        width = max(self._columns, MIN_COLUMNS)
        text = clip(title, width - 4)
        return self.paint(f"── {text} {'─' * (width - 4 - cells(text))}", kind)

    def blocks(self, blocks: Iterable[Block]) -> list[str]:
        return [line for block in blocks for line in self.block(block)]

    def block(self, block: Block) -> list[str]:
        match block:
            case Paragraph(kind="words"):
                return self.wrap(block.text, indent="│ ")
            case Paragraph():
                text = f"{block.lead} {block.text}".strip()
                marked = block.kind in ("warning", "flaw")
                text, hang = (f"⚠ {text}", "  ") if marked else (text, "")
                return self.wrap(text, block.kind, hang=hang)
            case Text(old=None):
                return ["", plain(block.text).rstrip("\n"), ""]
            case Text():
                return [*self.wrap(f"{block.title}:"), *self.difference(block)]
            case Output(shown=str(text)) if block.is_short:
                line = ": ".join(filter(None, (block.title, text.strip("\n"))))
                return self.wrap(", ".join(filter(None, (line, block.condition))), hang="  ")
            case Output():
                title = ", ".join(filter(None, (block.title, block.condition)))
                return [*(self.wrap(title, "bold") if title else ()), *self.shown(block.shown)]
            case Lines():
                return self.lines(block)
            case Section(number=None):
                return ["", self.heading(block.title), *self.blocks(block.blocks)]
            case Section():
                name = f"  {wcwidth.ljust(block.title, _NAME)}  "
                return [
                    *self.wrap(block.said, "", name, " " * (_NAME + 4)),
                    *self.blocks(block.blocks),
                ]

    def shown(self, shown: str | tuple[tuple[str, ...], ...] | Figure) -> list[str]:
        if isinstance(shown, str):
            return self.wrap(shown.strip("\n"), "quiet", "  │ ")
        if isinstance(shown, Figure):
            return [line for one in shown.axes for line in self.wrap(one, "quiet", "  ")]
        return align(shown, self._columns, right=True)

    def lines(self, block: Lines) -> list[str]:
        wide = self._columns >= _WIDE
        heads, found = block.heads if wide else (), list[str]()
        source = max((cells(one.source) for one in block.lines), default=0) * wide
        widths = [source, *(cells(head.name) for head in heads)]
        room = self._columns - sum(width + 2 for width in widths if width)

        def row(left: list[str], parts: Sequence[str], kind: str = "") -> None:
            pairs = [(left[0], room), *zip(parts, widths, strict=False)]
            first = "  ".join(wcwidth.ljust(part, width) for part, width in pairs if width)
            found.extend(self.paint(line, kind) for line in (first.rstrip(), *left[1:]))

        if heads:
            row([""], ["", *(head.name for head in heads)], "quiet")
        for one in block.lines if self._whole else [one for one in block.lines if not one.folded]:
            mark = f"{one.number}{one.mark.symbol}" if one.number else one.mark.symbol or "·"
            lead = f"  {wcwidth.ljust(mark, 2)} "
            left = wrap(str(one), room, lead, " " * cells(lead))
            marks = [mark.symbol for mark in one.marks]
            row(left, [one.source, *marks], one.mark.kind if one.mark.symbol != "✓" else "")
            if one.detail and (self._whole or one.mark.symbol == "✗"):
                lines = self.wrap(one.detail, "quiet", "     │ ")
                most = len(lines) if self._whole else _DETAIL_LINES
                found += self.cut(lines, most, ": show checks")
            # The heads of tables that are new are folded.
            found += self.blocks(one.output if self._whole else ())
        what = "checks" if block.title else "output"
        more = "" if self._whole or not block.more else f"     {block.more}: %refine show {what}"
        notes = (more, block.commands)
        return [*found, *(line for one in notes if one for line in self.wrap(one, "quiet"))]

    def difference(self, block: Text) -> list[str]:
        old = block.old or ""
        if plain(old) == plain(block.text):
            return self.wrap("No change to the text.")
        diff = text_diff(old, block.text, block.form)
        if block.form == "prose":
            lines = self.wrap(diff)
        else:
            lines = [self.clip(line.rstrip(), line[:1]) for line in diff.split("\n")]
        return self.cut(lines, _DIFF_LINES)

    def output(self, block: Block) -> list[str]:
        lines = self.block(block)
        # What is too much of a table is folded.
        return lines if isinstance(block, Lines) else self.cut(lines, _PART_LINES, ": show output")

    def cut(self, lines: list[str], most: int, hint: str = "") -> list[str]:
        hidden = len(lines) - most + 1
        if hidden <= 1:
            return lines
        return [*lines[:-hidden], self.clip(f"⋯ {hidden:,} more lines{hint}", "quiet")]

    # Events

    def opening(self, run: Run) -> list[str]:
        read = self.wrap(say.opening(run.setup), "bold")
        if run.setup.is_look:
            return read
        first, *more = plain(run.task.text).strip().split("\n")
        model = run.setup.model
        asked = f"{say.model_name(model)} · {say.bounds(run)}" if model else "no model"
        return [
            *read,
            self.clip(f"│ {first}{' ⋯' if any(more) else ''}"),
            *self.wrap(asked, "quiet"),
        ]

    def closing(self, run: Run, rows: int) -> list[str]:
        if run.setup.coach:
            return self.blocks(build.record(run))
        chosen = run.chosen
        message = [] if run.stop_reason in _SILENT else self.wrap(say.stop_message(run))
        if chosen is None:
            return message
        said, name = say.verdict(run, chosen), run.name(chosen.number)
        heading = self.heading(f"{name}: {said}", said.label.kind)
        if run.stop_reason in (StopReason.ACCEPTED, StopReason.OVERRIDDEN):
            return [heading]
        if cells(f"{name}: {said}") > self._columns - 4 or "\n" in said.sentence:
            heading = self.heading(f"{name}: {said.label}", said.label.kind)
            message = [*self.wrap(said.sentence), *message]
        if run.stop_reason is StopReason.ANSWERED:
            return [heading, *self.blocks(build.explanations(run))]
        below = [
            *self.blocks(build.data_questions(run, chosen)),
            *(line for one in build.account(run, chosen) for line in self.output(one)),
            *self.blocks(build.checks(run, chosen)),
            *self.blocks(build.texts(run, whole=False)),
            *self.blocks(build.exits(run, chosen)),
            *self.wrap(" · ".join(say.usage_parts(run.usage, run.seconds)), "quiet"),
            *message,
        ]
        room = max(_MIN_TEXT_LINES, rows - 1 - len(below))
        what, text = self.kept_text(run, chosen)
        return [heading, *self.cut(text, room, f": show {what}"), *below]

    def kept_text(self, run: Run, chosen: Iteration) -> tuple[str, list[str]]:
        """Return ``diff`` with how a text differs from its parent, or ``text`` with all of it."""
        if chosen.parent is not None:
            return "diff", self.blocks(build.writing(run, chosen))
        text = plain(chosen.text).strip("\n")
        prose = run.task.form == "prose"
        return "text", self.wrap(text) if prose else [*map(self.clip, text.split("\n"))]


# Widths


def cells(text: str) -> int:
    """Return a text's width in columns of a terminal."""
    return int(wcwidth.width(text))


def wrap(text: str, columns: int, indent: str = "", hang: str | None = None) -> list[str]:
    """Break text into lines no wider than the terminal; its own line breaks stay.

    The first line starts with `indent`, the others with `hang`, which is the indent by default.
    """
    rest = indent if hang is None else hang
    width, lines = max(columns, MIN_COLUMNS), list[str]()
    # The time for a word, or a gap, grows with the square of its length.
    long = rf"(\S{{{_PIECE * width}}}|[^\S\n]{{{_PIECE * width}}})(?=.)"
    pieces = re.sub(long, r"\1\n", plain(text)).split("\n")
    for piece in pieces:
        start = rest if lines else indent
        broken = wcwidth.wrap(
            piece, width, tabsize=4, replace_whitespace=False,
            break_on_hyphens=False, initial_indent=start, subsequent_indent=rest,
        )  # fmt: skip
        lines += broken or [start.rstrip()]
    return lines


def clip(line: str, columns: int) -> str:
    """Cut a line at the terminal's width, with an ellipsis where it was cut."""
    width = max(columns, MIN_COLUMNS - 4)
    text = plain(line).expandtabs(4)
    return text if cells(text) <= width else f"{wcwidth.clip(text, 0, width - 1)}…"


def align(rows: Sequence[Sequence[str]], columns: int, *, right: bool = False) -> list[str]:
    """Return rows as lines with aligned columns, cut at the terminal's width."""
    flat = [[plain(cell).replace("\n", " ") for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(*flat, strict=True)]
    lines = []
    for row in flat:
        placed = [
            (wcwidth.rjust if right and place else wcwidth.ljust)(cell, width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(clip("  ".join(placed).rstrip(), columns))
    return lines
