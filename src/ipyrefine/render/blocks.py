"""What every surface draws a run from: blocks, without any markup."""

from typing import Literal, NamedTuple

from ipyrefine.core.model import Form, bare
from ipyrefine.render.labels import Label

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


class Item(NamedTuple):
    """One row of a list."""

    name: str = ""  # what it is about
    note: str = ""  # what qualifies the name
    text: str = ""  # what it says
    quote: str = ""  # the words of the text it rests on
    form: Form = "prose"  # how the quote is set
    demand: str = ""  # the words of the task that it goes against
    fix: str = ""  # how to fix it
    detail: str = ""  # program output
    settled: bool = False  # whether it needs no action any more
    dismiss: str = ""  # the button that sets it aside; empty where that can't be done by itself
    drop: str = ""  # the demand that a click leaves out, by its name


class Items(NamedTuple):
    """A titled list."""

    title: str
    items: tuple[Item, ...]


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
    choices: tuple[str, ...] = ()
    rivalry: str = ""  # who gives what, where that is asked
    confirmed: bool | None = None  # the user's word on it
    expected: str = ""  # what it should be, where the user says it is something else
    output: tuple["Block", ...] = ()  # a table or a picture that it comes with
    # What the user is asked about it; of a fact, whether to `keep` or to `undo` it. Of what they
    # `may` say they need not.
    asks: Literal["right", "example", "keep", "undo", "may", "open", ""] = "right"
    condition: str = ""  # what it was computed on, where that is less than the real thing
    folded: bool = False  # whether it is seen on a click only
    buttons: tuple[str, ...] = ()  # of a fact: that it is meant, and that it goes

    def __str__(self) -> str:
        value = f"{self.before} → {self.value}" if self.before else self.value
        if self.choices:
            value = f"{' or '.join(self.choices)}?"
            value += f" ({self.rivalry})" if self.rivalry else ""
        call = self.call.replace("\n", "; ")
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
        """The user's word on it."""
        if self.expected:
            return Label("✗", f"should be {bare(self.expected)}", "bad")
        return None if self.confirmed is None else Label("✓", "confirmed", "good")


class Results(NamedTuple):
    """What a text gives, for a person to confirm."""

    rows: tuple[Result, ...]
    hint: str = ""  # what an answer would settle, where the verdict waits for one
    commands: str = ""  # how to answer without buttons, where numbers don't do


class Head(NamedTuple):
    """The head of a text's column in the table of checks; of those left out, how many there are."""

    name: str  # a short one: ``Draft``, ``1``, ``2 ★``
    number: int | None = None  # the text's; None where some are left out
    title: str = ""  # its name with what it came to, for a reader who doesn't see the marks
    shown: bool = False  # whether it is the text above the table


class Line(NamedTuple):
    """What texts are held to, with what the shown text gives, and a mark for each text."""

    body: "Result | Item"
    mark: Label  # of the shown text
    source: str = ""  # who says it
    note: str = ""  # what else there is to say, such as the task's words behind it
    marks: tuple[Label, ...] = ()  # of each head
    number: str = ""  # what an answer that is typed calls it; empty where nothing is asked
    folded: bool = False  # whether it is seen on a click only


class Checks(NamedTuple):
    """What texts are held to: a line for each thing, and a column for each text."""

    heads: tuple[Head, ...]  # none for a single text
    lines: tuple[Line, ...]
    hint: str = ""  # what an answer would settle
    commands: str = ""  # how to answer without buttons

    @property
    def more(self) -> str:
        """How many lines are folded, by what came of them: ``2 more missed · 6 more hold``."""
        ends = [one.mark.symbol for one in self.lines if one.folded]
        missed, holds = ends.count("✗"), ends.count("✓")
        rest = len(ends) - missed - holds
        other = "other" if rest == 1 else "others"
        counts = (
            (missed, "more missed"),
            (holds, "more holds" if holds == 1 else "more hold"),
            (rest, other if missed or holds else "more"),
        )
        return " · ".join(f"{number} {word}" for number, word in counts if number)


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
    earlier: int = 0  # how many of the first have no line, but for the shown one


class Section(NamedTuple):
    """Blocks under a heading: a name, perhaps a verdict; folded where possible."""

    title: str
    blocks: tuple["Block", ...]
    label: Label | None = None
    open: bool = False

    def __str__(self) -> str:
        return f"{self.title} · {self.label}" if self.label else self.title


Block = Paragraph | Text | Output | Items | Table | Picture | Results | Checks | Texts | Section
