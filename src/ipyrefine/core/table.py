"""A run as one table: a row for each thing that texts are held to, a column for each text."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from ipyrefine.core.model import (
    MAX_OUTPUTS,
    Basis,
    Called,
    Condition,
    Count,
    Effect,
    Fault,
    Held,
    Outcome,
    Output,
    Record,
    RowSource,
    Score,
    Sparse,
)

MAX_CODE = 10_000  # characters of a test
# Who says it; `run`: that code ran, which may block and proves nothing.
Source = Literal["you", "tests", "task", "critic", "evaluator", "run"]
# A fact is words of a text that no source has.
Kind = Literal["example", "test", "rule", "remark", "question", "fact", "reading", "result"]
BY_BASIS: dict[Basis, tuple[Source, Kind]] = {
    "tests": ("tests", "test"),
    "function": ("you", "test"),
    "schema": ("you", "rule"),
    "constraints": ("task", "rule"),
    "confirmed": ("you", "example"),
    "examples": ("task", "example"),
    "critique": ("critic", "test"),
    "run": ("run", "result"),
}
_USERS: tuple[Source, ...] = ("you", "task")
Noun = Literal["example", "result", "test"]  # what a check counts


class Point(Sparse):
    """One thing that texts are held to: a row.

    A reviser may contest what a critic says, with a reason from the task. The next critique then
    stands by it or lets it go; contested twice, it is left to the user.
    """

    id: str = ""  # its name within the run; empty until the run gives it one
    source: Source = "critic"
    kind: Kind = "remark"
    # What it says, as its author wrote it; of a test the function's name, once in the run.
    words: str
    blocking: bool = True  # False: it only asks, or only suggests
    criterion: str = ""  # what a remark is filed under
    check: str = ""  # the name of the check that found it
    quote: str = ""  # the task's words behind it; empty if none were given
    place: str = ""  # the words of the text it is about; empty for something missing
    fix: str = ""
    test: str = ""  # of a critic's remark, the name of its test that shows it
    options: tuple[str, ...] = ()  # the answers that a question names
    call: str = ""  # an input on which these differ, as Python
    code: str = Field(default="", max_length=MAX_CODE)  # of a test, with what it needs before it
    # The module that it is run in, where that has more than `code`; else empty.
    module: str = Field(default="", max_length=MAX_CODE)
    text: Count = 0  # the number of the text that a test was written for
    contests: tuple[str, ...] = ()  # the reasons for which revisers said that it is wrong
    upheld: bool | None = None  # whether the critic stands by it; None before it said so
    # Whether it comes of what code computed from variables or files, or its critic saw that.
    computed: bool = False
    fault: Fault | None = None  # what it says, as data
    effect: Effect | None = None  # what running did to data, where it asks about that
    # Why no text is held to it: the user set it aside, or the test cannot be run.
    dropped: Literal["", "you", "broken", "long", "many", "no_suite"] = ""
    reason: str = ""  # the same in words

    @property
    def unanswered(self) -> bool:
        """Whether the critic has still to answer a reviser."""
        return len(self.contests) == 1 and self.upheld is None

    @property
    def disputed(self) -> bool:
        """Whether critic and reviser could not agree, so that the user decides."""
        return len(self.contests) > 1

    @property
    def let_go(self) -> bool:
        """Whether the critic let it go when a reviser contested it."""
        return len(self.contests) == 1 and self.upheld is False

    @property
    def counts(self) -> bool:
        """Whether a text that misses it cannot pass; a disputed one waits for the user."""
        return self.blocking and not (self.unanswered or self.disputed or self.let_go)

    @property
    def by_model(self) -> bool:
        """Whether a reader says it of a text, and no code."""
        said = self.kind in ("remark", "question", "rule")
        refusal = (self.source, self.kind) == ("critic", "reading")
        return not self.check and self.source not in _USERS and (said or refusal)

    @property
    def by_user(self) -> bool:
        """Whether the user says it of a text, or in the task of their draft."""
        return not self.check and self.source in _USERS and self.kind == "remark"

    @property
    def said(self) -> bool:
        """Whether somebody says it, and no code."""
        return self.by_model or self.by_user


class Result(Sparse, Called):
    """What a text shows on a point, on a check as a whole, or on an input: a cell."""

    # None: it could not be tried, or there is nothing to pass. On an input it is the user's word.
    passed: bool | None = None
    # For people and prompts: what was tried and came out, how it is missed, why it was not tried;
    # of an exception on an input, its message.
    shows: str = ""
    says: Outcome | None = None  # the verdict that a function of the user's gave
    conditions: tuple[Condition, ...] = ()
    computed: bool = False  # whether code that got copies of variables, or read files, gave it
    # False: it decides nothing, as evidence settles what a remark says, or as failing the check
    # keeps no text from passing.
    counts: bool = True
    again: bool = False  # whether it is missed once more, after an earlier text had mended it
    broken: bool = False  # whether a test could not be tried because of its own lines
    faults: tuple[Fault, ...] = ()  # how the text failed, as data

    # On an input.

    call: str = ""  # of a cell of the notebook, the name that it defines or changes
    # What each statement before the call gives as Python; empty for None or no data.
    steps: tuple[str, ...] = ()
    source: RowSource = "input"  # what suggests the input
    rivals: tuple[str, ...] = ()  # other results, such as a critic expects
    before: str = ""  # what the name was before the cell ran

    # Of a check as a whole.

    name: str = ""
    outdated: bool = False  # whether the user has since changed the examples it was tried on
    not_run: bool = False  # where it has not passed or failed: whether it could not run
    score: Score | None = None  # 0..1, or None when it does not apply
    held: tuple[Held, ...] = ()  # what the names that it bound or changed held then, and its answer
    tallies: dict[Noun, tuple[Count, Count]] = Field(default={}, max_length=3)  # how many, of all
    decisive: bool = False  # whether passing it settles the verdict
    points: tuple[Point, ...] = ()  # each fault by itself, where the check tells them apart
    basis: Basis = "function"  # what a verdict that rests on it is said to rest on
    # What the text printed, returned and drew when it ran.
    outputs: Annotated[tuple[Output, ...], Field(max_length=MAX_OUTPUTS)] = ()
    effects: tuple[Effect, ...] = ()  # what running it did to data, the most telling first
    rows: tuple["Result", ...] = ()  # what the text gives on inputs that the user may confirm

    @property
    def expected(self) -> str:
        """The result that the task, or a critic, wants in place of its own; empty for none."""
        return next(iter(self.rivals), "")

    def on_input(self, **changes: Any) -> "Result":
        """Return what it gives on its input, for the user to confirm."""
        kept = {name: getattr(self, name) for name in ("call", "setup", "gives", "rivals")}
        return Result(**kept | changes)

    @property
    def failed(self) -> bool:
        """Whether it keeps the text from passing."""
        return self.counts and self.passed is False

    @property
    def evaluates(self) -> bool:
        """Whether a function of the user's gave a score or a verdict, as evaluators do."""
        scores = self.score is not None and self.passed is not None
        return self.basis == "function" and (self.says is not None or scores)

    @property
    def by_examples(self) -> bool:
        """Whether it depends on the task's examples, with what the user expects."""
        return self.basis in ("examples", "confirmed")

    @property
    def is_empty(self) -> bool:
        """Whether it found no example to try a text on."""
        return self.passed is None and not self.not_run and self.basis == "examples"

    @property
    def grounds(self) -> bool:
        """Whether it counts for a verdict: it failed, or a verdict may rest on its pass."""
        return self.passed is False or (
            self.passed is True and self.basis not in ("run", "none", "critique")
        )


class Cell(NamedTuple):
    """A result with its point."""

    point: Point
    result: Result

    @property
    def id(self) -> str:
        """The point's name."""
        return self.point.id

    @property
    def words(self) -> str:
        """What is missed, in words."""
        return self.result.shows or self.point.words

    @property
    def weighs(self) -> bool:
        """Whether it is more than a suggestion."""
        return self.point.blocking and self.result.counts

    @property
    def is_open(self) -> bool:
        """Whether it still has to be mended, answered or decided."""
        one = self.point
        bears = one.kind != "test" or bool(one.check) or (one.blocking and not one.let_go)
        return self.result.passed is False and not one.dropped and bears

    @property
    def blocks(self) -> bool:
        """Whether it is open and keeps the text from passing."""
        return self.is_open and self.point.counts and self.result.counts

    @property
    def asks(self) -> bool:
        """Whether it only asks the user, about a fact or what the task leaves open."""
        asks = self.point.kind in ("question", "fact") and not self.point.blocking
        return asks and self.is_open

    @property
    def actionable(self) -> bool:
        """Whether a revision should act on it: it is open, and not left to the user."""
        return self.is_open and not self.point.disputed and not self.asks


Comparison = Literal["better", "same", "worse"]


class Reading(Record):
    """What a reader, a critic or the user's evaluator, says of a text as a whole."""

    ready: bool | None = None  # whether a critic takes it for finished; None where it doesn't say
    reason: str = ""  # what that rests on, in a sentence
    says: Outcome | None = None  # the outcome that an evaluator gave; None for a score alone
    score: Score | None = None  # 0..1; None where an evaluator gave only a word
    # A revision next to the text that it was made from, as a whole, and what was lost with it.
    compared: Comparison | None = None
    lost: str = ""
    failure: str = ""  # why the reply could not be read; empty where it could
    said: str = ""  # the reply itself, where it could not be read
    taken_back: bool = False  # whether the user took a critic's No back


class Critique(Record):
    """What a reader says of a text, a critic or the user's evaluator."""

    # The weaknesses that no run can show, the worst first; what the task leaves open; facts.
    remarks: tuple[Point, ...] = ()
    tests: tuple[Point, ...] = ()
    reading: Reading = Reading()
    # The ids or names of contested points that it stands by; None where it doesn't say.
    upheld: tuple[str, ...] | None = ()
    dropped: tuple[str, ...] = ()  # ids of the contested points that it lets go
    fixed: tuple[str, ...] = ()  # ids of earlier points that the text no longer misses

    @property
    def weaknesses(self) -> list[Point]:
        """Its remarks, without what only asks."""
        return [one for one in self.remarks if one.blocking or one.kind == "remark"]
