"""The records of a refinement: frozen values with one word for one thing."""

import base64
import re
import struct
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from ipyrefine.core.languages import language_name
from ipyrefine.errors import UsageError

# Numbers are bounded, so that sums of what a file holds stay finite and can be written out.
_MOST = 10**15
Score = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=_MOST)]
Amount = Annotated[float, Field(ge=0.0, le=_MOST, allow_inf_nan=False)]  # of seconds or US dollars
Author = Literal["model", "user"]
Form = Literal["code", "prose"]
# What suggests the input of a row: the task or the user, a critic's test, mere variety, the text
# itself, a cell of the notebook, or what the task leaves open.
RowSource = Literal["example", "critic", "input", "own", "cell", "open"]
Finish = Literal["stop", "length", "refused", "filtered", "incomplete"]
# What a verdict rests on.
Basis = Literal[
    "tests",
    "function",
    "schema",
    "confirmed",  # by the user, result by result
    "examples",
    "constraints",
    "critique",  # of tests that a critic wrote, and of its word
    "tested",  # of these tests alone, where they show each finding on the text that it read
    "evaluator",  # the user's own prompt
    "user",
    "run",  # of code that ran or failed to; nothing passes on it
    "none",
]

RESULTS = "results"  # the name of the check that has rows for the user
MAX_ITERATIONS = 2_000  # of a run
# Of what checked code printed, returned and drew.
MAX_OUTPUTS = 6  # of one check
MAX_OUTPUT = 4_000  # characters of a text
MAX_ROWS, MAX_COLUMNS, MAX_CELL = 10, 20, 80  # of a table; characters of a cell
MAX_PNG, MAX_SIDE = 270_000, 2_000  # characters and pixels of a picture
MAX_AXES, MAX_AXES_LINE = 4, 160  # of a figure; characters on each
_PNG_START, _PNG_END = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\0\0\0\0IEND\xaeB`\x82"


class Record(BaseModel):
    """Base of all records: immutable, strict about unknown fields, always writable as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _replace_lone_surrogates(cls, value: Any) -> Any:
        # A model's JSON may hold half of a surrogate pair, which no UTF-8 file can store.
        return _storable(value)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values in some fields; these are not validated."""
        assert changes.keys() <= type(self).model_fields.keys(), "it has all of these fields"
        return self.model_copy(update=changes)


class Tagged(Record):
    """Base of records of several classes that one field may hold.

    The field `tag` of each is its class's name as it is stored: ``draft_ready`` of `DraftReady`.
    """

    tag: ClassVar[str] = "kind"

    def __init_subclass__(cls, **config: Any) -> None:
        super().__init_subclass__(**config)
        if not cls.__name__.startswith("_"):
            name = re.sub("(?<=.)(?=[A-Z])", "_", cls.__name__).lower()
            cls.__annotations__[cls.tag] = Literal[name]
            setattr(cls, cls.tag, name)


class Sparse(Record):
    """Base of records of which there are many: they are stored without what is as by default."""

    @model_serializer(mode="wrap")
    def _leave_out_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        return {n: v for n, v in write(self).items() if getattr(self, n) != fields[n].default}


def count(number: int, noun: str) -> str:
    """Format a number with its noun, like ``1,204 tokens``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def one_line(text: str) -> str:
    """Return a text in one line, with single spaces."""
    return " ".join(text.split())


def cut(text: str, width: int, mark: str = "…") -> str:
    """Return a text, or its start with a mark, so that it has so many characters at most."""
    return text if len(text) <= width else text[: width - len(mark)] + mark


def _storable(value: Any) -> Any:
    """Return a field's value with each lone surrogate replaced, in texts at any place of it."""
    if type(value) is str:
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if type(value) is tuple:
        return tuple(map(_storable, value))
    if type(value) is dict:
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value


def refused(error: ValidationError, whole: str, spell: Callable[[str], str] = str) -> UsageError:
    """Return the sentence that says which of some values can't be used; `spell` writes its name."""
    first = error.errors()[0]
    name, *rest = map(str, first["loc"] or [whole])
    place, kind = ".".join([spell(name), *rest]), first["type"]
    if kind == "extra_forbidden":
        return UsageError(f"{whole} has no {place!r}.")
    if kind == "missing":
        return UsageError(f"{place} is missing.")
    must = "must be a dict" if kind == "model_type" else first["msg"].lower()
    return UsageError(f"{place}: {must}, not {first['input']!r:.200}.")


class Typed(Record):
    """Base of records that users make: a value that can't be used is a `UsageError`."""

    if not TYPE_CHECKING:  # else their arguments were not

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise refused(error, type(self).__name__) from None

        __init__.__pydantic_base_init__ = True  # records are read without it


class Stage(StrEnum):
    """A stage of the loop; a model call carries it as its purpose."""

    CHOOSE = "choose"  # between code and words, asked of a weak writer before it drafts
    DRAFT = "draft"
    CHECK = "check"
    JUDGE = "judge"
    CRITIQUE = "critique"
    REVISE = "revise"
    EXPLAIN = "explain"  # outside the loop: the user asks about a text


class StopReason(StrEnum):
    """Why a run stopped; one word each, never a boolean."""

    PASSED = "passed"
    ANSWERED = "answered"
    PLATEAU = "plateau"
    REVISIONS = "revisions"
    BUDGET = "budget"
    UNJUDGED = "unjudged"
    CANCELLED = "cancelled"
    FAILED = "failed"
    ACCEPTED = "accepted"
    OVERRIDDEN = "overridden"
    PAUSED = "paused"


class Criterion(Record):
    """One named quality that a text is read for."""

    name: str
    definition: str  # what it means, in one sentence


def named_criteria(names: Iterable[str], glossary: Iterable[Criterion]) -> tuple[Criterion, ...]:
    """Return criteria by name, each once; a name nobody defined describes itself."""
    defined = {criterion.name: criterion for criterion in glossary}
    return tuple(
        defined.get(name) or Criterion(name=name, definition=f"How well it does on {name}.")
        for name in dict.fromkeys(names)
    )


class Called(Record):
    """An input with what it gives, or what somebody expects that it gives."""

    call: str  # as Python
    setup: str = ""  # statements to run before it
    # A value as Python, or ``raises`` with the name of an exception; empty if neither is known.
    gives: str = ""

    @property
    def code(self) -> str:
        """The call below what runs before it."""
        return f"{self.setup}\n{self.call}".strip("\n")

    @property
    def raises(self) -> str:
        """The name of the exception that it gives; empty for a value."""
        name = bare(self.gives)
        return "" if name == self.gives else name


def bare(gives: str) -> str:
    """Return a result without the word that says that it is an exception."""
    return gives.removeprefix("raises ")


class Clarification(Called):
    """A result that the user expects: one more example that the task states."""

    leading: bool = False  # whether it was the first of the rows when the user answered it
    computed: bool = False  # whether code that got copies of variables gave the result

    @property
    def sentence(self) -> str:
        """The example in words: ``median([]) raises ValueError``."""
        return f"{self.call} {self.gives if self.raises else f'returns {self.gives}'}"


class Attempt(Called):
    """A call on which a student's code fails: what they predict that it gives, and what it does."""

    expected: str  # what the task wants
    quote: str = ""  # the task's words that ask for it; empty for one of the task's examples
    predicted: str = ""  # empty before they said so


class Shape(Record):
    """A value's type and size, without the value."""

    type: str
    items: tuple[str, ...] = ()  # the types of its items; of a dict, of its keys and its values
    size: tuple[Count, ...] = ()

    def __str__(self) -> str:
        if len(self.size) > 1:
            return f"{self.type} ({', '.join(map(str, self.size))})"
        inner = f"[{', '.join(self.items)}]" if self.items else ""
        return f"{self.type}{inner}" + (f" of length {self.size[0]}" if self.size else "")


class Fault(Record):
    """How a text failed, as data: what a server may be told of a result that was computed."""

    about: str = ""  # the test or the example that failed; empty for the text itself
    raised: str = ""  # the exception's type
    line: Count = 0  # the line of the text; 0 where none is known
    compared: tuple[Shape, ...] = ()  # the two values that a test compared
    words: str = ""  # how it ended, in words of ours that no value is put into


class WrittenText(Record):
    """A text as a writer gave it, apart from the thoughts around it."""

    text: str
    thoughts: str = ""
    missed: int = 0  # how many of its edits could not be made
    edits: int = 0  # how many edits it was given as; 0 for a whole text
    form: Form | None = None  # what it chose, where it might
    kind: str = ""  # of words, as it named it
    language: str = ""  # what its fence names, where that is another than was asked for


class Delta(Record):
    """A piece of a reply as it streams; thinking is shown but is never part of the text."""

    kind: Literal["text", "thinking"] = "text"
    text: str


class Material(Record):
    """What a task is about besides its words."""

    # A variable of the notebook; cells above, or what one raised; cells that define what the cell
    # uses, for a model that reads well; a file of standing wishes; further names in a line each.
    kind: Literal["variable", "cells", "definitions", "rules", "names"]
    name: str  # the variable's name, or what the others are called
    phrase: str  # what the first line says is seen: ``df (1,204 × 8)``; empty where it is kept here
    text: str  # what the prompts show of it, in a fence
    # Whether code computed it from the notebook's variables or files, or it shows what a variable
    # holds that the user did not name.
    computed: bool = False
    structure: str = ""  # what a server is sent in place of what was computed, or of other cells


class Aims(Record):
    """What texts of a kind are written and read by."""

    form: Form = "prose"
    criteria: tuple[Criterion, ...] = (
        Criterion(name="correctness", definition="It does what the task asks, without errors."),
    )
    categories: tuple[str, ...] = ()
    checklist: tuple[str, ...] = ()
    plan: bool = True


class Task(Typed, Aims):
    """What is asked; it stands unchanged at the head of every prompt.

    Attributes:
        text: the request in the user's words.
        profile: name of the profile that the criteria come from.
        form: ``code`` (answers in a fenced block) or ``prose`` (answers between text tags).
        criteria: what it is read for; at least one.
        categories: what a critique looks at and files its findings under; the criteria if empty.
        checklist: yes/no questions that a finished text answers with yes.
        plan: whether prose is planned in a few lines before it is written; code never is.
        language: the language of code, as pygments names it: ``python``, ``java``, …; empty while
            the writer may still choose it.
        clarifications: results that the user expects.
        materials: what it is about besides its words.
        feedback: what the user said of earlier texts and nobody has closed; for their functions.
    """

    text: str
    profile: str = "prose"
    language: str = "python"
    clarifications: tuple[Clarification, ...] = ()
    materials: tuple[Material, ...] = ()
    feedback: tuple[str, ...] = Field(default=(), exclude=True)

    @property
    def confirmed(self) -> bool:
        """Whether the user answered the first row, or two: a verdict may rest on it."""
        answers = self.clarifications
        return len(answers) > 1 or any(one.leading for one in answers)

    @property
    def request(self) -> str:
        """The request with the results that the user expects."""
        if not self.clarifications:
            return self.text
        answers = "\n".join(f"- {one.sentence}" for one in self.clarifications)
        return f"{self.text}\n\nIn particular:\n{answers}"

    @property
    def language_name(self) -> str:
        """The language of code as people write it: ``Java``, ``C++``."""
        return language_name(self.language)

    @property
    def variables(self) -> list[str]:
        """The notebook's names that a model is shown."""
        return [one.name for one in self.materials if one.kind == "variable"]

    @property
    def is_foreign(self) -> bool:
        """Whether it asks for code in another language than Python, which cannot be run here."""
        return self.form == "code" and self.language not in ("", "python")

    @property
    def is_python(self) -> bool:
        """Whether it asks for code that can be run here, as far as is known: for Python."""
        return self.form == "code" and not self.is_foreign


OutputText = Annotated[str, StringConstraints(max_length=MAX_OUTPUT)]
Cell = Annotated[str, StringConstraints(max_length=MAX_CELL)]
AxesLine = Annotated[str, StringConstraints(max_length=MAX_AXES_LINE)]
Cells = Annotated[tuple[Cell, ...], Field(max_length=MAX_COLUMNS)]


class _Words(Tagged):
    text: OutputText  # the start of them


class Printed(_Words):
    """What code printed."""


class Value(_Words):
    """The value of code's last expression; or, without one, what its last print printed."""


class Table(Tagged):
    """The value of code's last expression where that is a table."""

    columns: Cells  # the names of its first columns
    index: Cell = ""  # what the labels of its rows are called; empty for nothing
    labels: Annotated[tuple[Cell, ...], Field(max_length=MAX_ROWS)]  # a label for each row
    rows: Annotated[tuple[Cells, ...], Field(max_length=MAX_ROWS)]
    height: Count
    width: Count
    is_series: bool = False  # whether it is one column that stands for itself

    @model_validator(mode="after")
    def _check_shape(self) -> "Table":
        uneven = any(len(row) != len(self.columns) for row in self.rows)
        if uneven or len(self.labels) != len(self.rows):
            raise ValueError("a table has a label for each row, and a cell for each column")
        if self.height < len(self.rows) or self.width < len(self.columns):
            raise ValueError("a table has at least the rows and columns that it lists")
        return self

    @property
    def phrase(self) -> str:
        """It in words: ``a table of 1,204 rows × 8 columns``, or ``a column of 3 values``."""
        if self.is_series:
            return f"a column of {count(self.height, 'value')}"
        return f"a table of {count(self.height, 'row')} × {count(self.width, 'column')}"


class Figure(Tagged):
    """A figure that code drew."""

    png: Annotated[str, StringConstraints(max_length=MAX_PNG)]  # as base64
    # Of each of its first axes, how many of the given points are drawn, and the ranges.
    axes: Annotated[tuple[AxesLine, ...], Field(max_length=MAX_AXES)] = ()

    @field_validator("png")
    @classmethod
    def _check_picture(cls, png: str) -> str:
        data = base64.b64decode(png, validate=True)
        if not data.startswith(_PNG_START) or not data.endswith(_PNG_END):
            raise ValueError("the picture is not a whole PNG")
        if not all(0 < side <= MAX_SIDE for side in struct.unpack_from(">2I", data, 16)):
            raise ValueError(f"a picture's sides take 1 to {MAX_SIDE:,} pixels")
        return base64.b64encode(data).decode()

    @property
    def size(self) -> tuple[int, int]:
        """Its width and height in pixels."""
        width, height = struct.unpack_from(">2I", base64.b64decode(self.png), 16)
        return width, height

    @property
    def phrase(self) -> str:
        """The figure in words: ``a figure of 640 × 480 pixels``."""
        width, height = self.size
        return f"a figure of {width} × {height} pixels"


Output = Annotated[Printed | Value | Table | Figure, Field(discriminator="kind")]
EffectKind = Literal[
    # Rows of a table, or items of a list or dict, that are not in what was made of it; that are
    # there more than once; that are in another order; parts that together are the whole.
    "gone", "repeated", "reordered", "split",
    # Values: missing ones that are there now, known ones that are others, new missing ones; those
    # that are not what another table has for the same key.
    "filled", "overwritten", "missing", "differs",
    # A column's type, its sum before and after, numbers that are text, a time zone, its columns.
    "type", "total", "text", "zone", "columns",
    # A name that is new, holds something else, or was stored into and is as it was.
    "new", "changed", "unchanged",
    # What the last expression gives: ``nan``, ``none``, ``empty``, ``missing``, ``nothing``.
    "answer",
    # Beside the values: warnings, exceptions that it caught, what a reader of files left out.
    "warning", "caught", "read",
    # That what it gives is another value in each run.
    "chance",
    # What it was given and did not look after; what could not be followed.
    "input", "unfollowed",
    # What it did to a file of the folder: ``write``, ``overwrite``, ``delete``. Counted are bytes.
    "file",
]  # fmt: skip


class Effect(Record):
    """One thing that running a text did to data, or what is odd about what it gives.

    `ipyrefine.core.effects` words it. Names and columns are as code writes them.
    """

    kind: EffectKind
    name: str = ""  # of what the text left; empty for a value without a name
    of: str = ""  # of what that was made of
    column: str = ""
    count: Count = 0  # how many rows, items or values it is about …
    total: Count = 0  # … of how many
    values: Cells = ()  # the first of them
    # Why, in a word. Of what is gone or missing: ``unmatched`` (in `other`), ``spelled`` (there in
    # another way), ``unused`` (by what was made), ``missing`` (the column's value), ``repeats``,
    # ``groups``, ``kept`` (the others are, as they were), ``new`` (computed), ``read`` (from none
    # of the data). Of what differs: the key. Of an answer: what it is. Of a warning: its category.
    # Of columns: ``gone``, if they are no longer there. Of what is new: ``replaced``, if
    # the notebook has another of that name. Of an exception that was caught: ``import``.
    cause: str = ""
    other: str = ""  # the other table that this is because of
    before: OutputText = ""
    after: OutputText = ""
    line: Count = 0  # of the text; 0 where none is known
    head: Table | None = None  # the start of a table that is new

    @property
    def key(self) -> tuple[str, ...]:
        """What it has in common with the same effect of another text."""
        return (self.kind, self.of or self.name, self.column, self.cause, self.other)


class Held(Record):
    """What our code reads of a value that running a text left; `reading.read` makes it.

    So it reads columns; an array or a list of numbers has one without a name.
    """

    name: str = ""  # empty for the answer
    type: str
    shape: tuple[Count, ...] = ()  # rows and columns, or how many items
    columns: tuple["Held", ...] = ()
    text: OutputText = ""  # the start of the value, of a column, or of a table's labels
    total: str = ""  # empty for what has no sum
    missing: Count | None = None  # None where they are too many to be looked at

    @property
    def tells(self) -> bool:
        """Whether more than its type is known."""
        return bool(self.shape or self.text or self.columns) and self.type != "NoneType"


class Difference(Record):
    """Where what a cell really gave differs from what was shown."""

    kind: Literal[
        "raised", "type", "size", "columns", "dtype", "total", "missing", "head", "value",
        "order", "file", "new",
    ]  # fmt: skip
    name: str = ""  # empty for the answer
    column: str = ""
    shown: OutputText = ""
    now: OutputText = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What it has in common with the same difference in another run."""
        return (self.kind, self.name, self.column)


class Ran(Record):
    """What came of an accepted text once its cell had run for the first time.

    Attributes:
        iteration: which text.
        how: whether it gave what was shown; ``varies`` from run to run, too, where that differs
            each time; ``moved``: other cells ran, or files changed, in between; ``first``: it ran
            nowhere before.
        results: how many were compared.
        differences: where they differ; of a first run, from what there was before.
        raised: the exception, in words; empty where it raised none.
        back: names that it bound anew, whose earlier values can be put back.
        restored: those that were.
        files: those that changed in between.
    """

    iteration: Count
    how: Literal["same", "differs", "varies", "moved", "first"]
    results: Count = 0
    differences: tuple[Difference, ...] = ()
    raised: OutputText = ""
    back: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class FirstRows(Tagged):
    """Only the first rows of a variable were there."""

    name: str
    rows: Count
    of: Count

    def __str__(self) -> str:
        name = one_line(self.name)[:MAX_CELL]  # a file may hold any
        return f"the first {self.rows:,} of {self.of:,} rows of {name}"


# What makes a result less than the real thing. Such a result carries it. It passes and fails
# nothing, and is no example: it cannot be confirmed, expected or exported.
Condition = FirstRows


def on_conditions(conditions: Iterable[Condition]) -> str:
    """Return the data that results rest on: ``on the first 5 of 9 rows of df``; or nothing."""
    phrases = list(map(str, dict.fromkeys(conditions)))
    return f"on {' and '.join(phrases)}" if phrases else ""


class Outcome(StrEnum):
    """The outcomes of a verification."""

    PASS = "PASS"
    NEEDS_IMPROVEMENT = "NEEDS_IMPROVEMENT"
    FAIL = "FAIL"
    NOT_JUDGED = "NOT_JUDGED"


# What decided on a text: what a rule of `core.rank.verdict` found, or why nothing decides on it.
Why = Literal[
    "",  # it is not known, as in a record that was cut
    "user",
    # Their evaluator, by a score alone or in words.
    "scored", "said",
    # A missed point: of a check, a critic's test, or a remark, perhaps one that only blocks what
    # the evaluator's score lets pass.
    "failed", "test_failed", "open", "open_over_score",
    # Nothing passes over these: critic and reviser disagree about a claim; the critic takes the
    # text for not ready; a check or a critic's test could not run.
    "disputed", "not_ready", "not_run", "not_tried",
    "checks_passed", "nothing_found", "tests_pass",
    # A sample has no end, or raises what the task does not name, and nobody read the text.
    "raised",
    # Nobody checked what the code gives; no critic was asked, or only a weak one is there; its
    # reply could not be read; or the text is left to the user.
    "only_ran", "no_critic", "weak_critic", "unreadable", "plain",
    # It is the text of an earlier iteration, or of the one that it was made from.
    "repeats", "unchanged",
]  # fmt: skip


class Verdict(Record):
    """What verification concluded; computed by code, never taken on a model's word."""

    outcome: Outcome
    score: Score | None  # 0..1; None when the text could not be scored
    basis: Basis = "none"  # what it rests on
    why: Why = ""  # what decided; `render` words it
    # The id of the row that did, a check's name or that of who read the text; empty for none.
    point: str = ""
    line: str = ""  # what its cell showed at that moment

    @property
    def passed(self) -> bool:
        """Whether the outcome is PASS, whoever gave it."""
        return self.outcome is Outcome.PASS

    @property
    def by_critic(self) -> bool:
        """Whether it passes by a critic's word or tests alone."""
        return self.passed and self.basis in ("critique", "tested")

    @property
    def only_ran(self) -> bool:
        """Whether the code runs, and nothing says if what it gives is right."""
        return self.outcome is Outcome.NOT_JUDGED and self.basis == "run"


_SUMMED = ("calls", "prompt_tokens", "completion_tokens", "seconds", "for_another")


class Usage(Record):
    """What model calls consumed."""

    calls: Count = 0
    prompt_tokens: Count = 0  # tokens read by the model
    cached_tokens: Count | None = None  # of those, from a prefix cache; None where not known
    completion_tokens: Count = 0  # tokens written by the model
    seconds: Amount = 0.0  # wall time spent in the calls
    cost: Amount | None = None  # US dollars; None when the price is not known
    for_another: Count = 0  # calls that a reply written by hand for another request answered

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        """Sum two usages."""
        return Usage.total((self, other))

    @classmethod
    def total(cls, parts: Iterable["Usage"]) -> "Usage":
        """Sum usages; an unknown part stays unknown unless that side made no calls."""
        every = [*parts]
        summed = {one: min(_MOST, sum(getattr(part, one) for part in every)) for one in _SUMMED}
        for one in ("cached_tokens", "cost"):
            known = [getattr(part, one) for part in every if part.calls]
            if known and None not in known:
                summed[one] = min(_MOST, sum(known))
        return cls(**summed)


class Price(Record):
    """What a model charges, in US dollars per million tokens."""

    prompt: Amount  # for tokens it reads
    completion: Amount  # for tokens it writes

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of some tokens in US dollars."""
        dollars = self.prompt * prompt_tokens + self.completion * completion_tokens
        return dollars / 1_000_000


class Budget(Typed):
    """Upper bounds on what a run may consume; None means unbounded.

    Attributes:
        tokens: prompt and completion tokens together.
        prompt_tokens: tokens the model reads.
        completion_tokens: tokens the model writes.
        calls: model requests.
        cost: US dollars.
        seconds: wall time since the run started.
    """

    tokens: int | None = Field(default=None, gt=0, le=_MOST)
    prompt_tokens: int | None = Field(default=None, gt=0, le=_MOST)
    completion_tokens: int | None = Field(default=None, gt=0, le=_MOST)
    calls: int | None = Field(default=None, gt=0, le=_MOST)
    cost: float | None = Field(default=None, gt=0, le=1e15)
    seconds: float | None = Field(default=None, gt=0, le=1e15)


class Limits(Typed):
    """When a run stops and how its calls are made.

    Attributes:
        max_revisions: revisions allowed after the draft (0: one draft, one verdict).
        target: score 0..1 that a passing text must reach.
        patience: revisions in a row without progress before the run stops; None for any number.
            Progress is a step up the order of texts: a PASS, fewer failed checks, fewer findings
            that block, a higher score; where nothing gives a score, any new text that is no worse.
        base: what a revision continues from: the ``latest`` text; the ``best``; or ``auto``, the
            latest unless that ranks strictly below the best.
        critique: when a critic reads a text: ``auto``, before it passes, unless the user's own
            tests, function or evaluator decide, it is microcopy, a plot or a mere display, or it
            changes under five lines of a text that was read and its tests pass; ``always``;
            ``never``.
        revise: how a text that misses a check is revised: ``edit`` shows it with what is wrong,
            ``sample`` asks for another draft with what was wrong; ``auto`` samples where the
            writer was measured too weak to edit. A text, a function or a prompt that the user
            wrote is always edited.
        min_findings: findings a critique must name.
        verify_drafts: whether drafts are verified, or only revisions, as in a pasted template.
        max_tokens: completion tokens allowed per call; None for 16,384 or three times the text,
            and four times that after a reply that was cut off, as hidden reasoning counts too.
        temperature: sampling temperature of drafts and revisions. Without one none is sent, so a
            server uses its own; the embedded model and weak writers then use 0 for first drafts.
        seed: sampling seed passed to the server, or None.
        delta: gain in score, 0..1, up to which a better text still counts as no progress.
        max_eval_chars: characters of a text that an evaluator is sent; the rest is cut.
        step: whether to pause for the user after every verdict.
        memory: whether a reviser sees the best text and what failed from it, or all attempts.
        budget: upper bounds on consumption.
    """

    max_revisions: int = Field(default=4, ge=0, le=MAX_ITERATIONS)
    target: Score = 0.8
    patience: int | None = Field(default=2, ge=1, le=_MOST)
    base: Literal["auto", "latest", "best"] = "auto"
    critique: Literal["auto", "always", "never"] = "auto"
    revise: Literal["auto", "edit", "sample"] = "auto"
    min_findings: int = Field(default=0, ge=0, le=1_000)
    verify_drafts: bool = True
    max_tokens: int | None = Field(default=2_048, gt=0, le=_MOST)
    temperature: float | None = Field(default=None, ge=0, le=2)
    seed: int | None = Field(default=None, ge=-_MOST, le=_MOST)
    delta: Score = 0.0
    max_eval_chars: int = Field(default=32_768, gt=0, le=_MOST)
    step: bool = False
    memory: Literal["best", "all"] = "best"
    budget: Budget = Budget()


class Words(Record):
    """What a run is for once its writer answers a task for code with words."""

    tasks: tuple[Task, ...]  # one for each kind of words, the usual one first
    checks: tuple[str, ...] = ()  # those that only words have
    demands: tuple[str, ...] = ()  # as in the setup


# The task of a draft that comes without words.
IMPROVE = {
    "code": "Improve this code: make it correct, efficient and clear; keep what it is for.",
    "prose": "Improve this text: make it clear and correct; keep what it says.",
}


class Setup(Record):
    """What a run starts from, as one value."""

    task: Task
    words: Words | None = None  # set while the writer may still choose between code and words
    limits: Limits = Limits()
    model: str = ""  # the writer's name
    judge: str = ""  # the name of the critic or evaluator
    checks: tuple[str, ...] = ()  # names of the checks, in their order
    own: tuple[str, ...] = ()  # those of the user's, which hold for words and any language
    demands: tuple[str, ...] = ()  # what the task states: ``3 examples``, or a check's name
    draft: str | None = None  # the user's own text that it starts from, or None
    wish: str = ""  # what the user wants changed in that text; a finding on it from the start
    prompts: dict[str, str] = Field(default_factory=dict)  # the user's own prompts by stage
    price: Price | None = None  # what the dearest of its models charges; None: not known
    weak_critic: bool = False  # whether its critic was measured too weak for such texts
    weak_editor: bool = False  # whether its writer was measured too weak to edit texts
    # What a student predicted in earlier runs of the task, for whom nothing is written; None where
    # the text is not a student's.
    attempts: tuple[Attempt, ...] | None = None
    is_look: bool = False  # whether a cell is only looked at: no model writes or reads

    @property
    def is_bare(self) -> bool:
        """Whether a draft comes without a task's words."""
        return self.task.text.startswith(IMPROVE[self.task.form])

    @property
    def subject(self) -> str:
        """What it is about: the task's words, or a draft that comes without any."""
        return ((self.is_bare and self.draft) or self.task.text).strip()

    @property
    def coach(self) -> bool:
        """Whether a student learns from it, so that nothing is written for them."""
        return self.attempts is not None
