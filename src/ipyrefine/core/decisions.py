"""What a user can decide, as plain data; `actions` says what each decision needs and changes."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from ipyrefine.core.model import (
    MAX_ITERATIONS,
    Called,
    Count,
    Criterion,
    Outcome,
    Score,
    Tagged,
)
from ipyrefine.core.table import Point

# Where an accepted text goes: into a new cell, in place of its own cell (and run there), or into
# the variable only.
Destination = Literal["insert", "replace", "run", "none"]


class _Decision(Tagged):
    kind: ClassVar[str]

    @property
    def settles(self) -> bool:
        """Whether it ends the run: a text was accepted, or passed against its verdict."""
        passed = isinstance(self, Override) and self.outcome is Outcome.PASS
        return passed or isinstance(self, Accept)


class _OfText(_Decision):
    iteration: Count | None = None  # the text that it is about; None for the chosen one


class _Ruling(_OfText):
    reason: str = ""  # why, in the user's words; of an override, perhaps a blocking remark


class Accept(_Ruling):
    """Take a text as the result."""

    destination: Destination | None = None  # None leaves it to the cell


class Override(_Ruling):
    """Replace a verdict by the user's own; other than PASS asks for a revision."""

    outcome: Outcome


class Continue(_OfText):
    """Allow more revisions, the next one of this text."""

    points: tuple[str, ...] = ()  # ids of those that alone are acted on; empty for all
    revisions: int = Field(default=1, ge=1, le=MAX_ITERATIONS)
    guidance: str = ""  # what the next revision should do


class Guide(_Decision):
    """Say what the next revision should do; it becomes a blocking remark."""

    guidance: str


class Edit(_OfText):
    """Add the user's own text, made from this one, to be verified like any other."""

    text: str


class Dismiss(_Decision):
    """Set points aside for good."""

    points: tuple[str, ...]  # their ids
    reason: str = ""  # why, in the user's words


class Drop(_Decision):
    """Leave out a demand on a text's form that was read wrongly; no text is held to it any more."""

    demand: str  # the name of its check: ``length:<=120 words``


class Add(_OfText):
    """Add a remark at a place of the text; one with the id of another point replaces that one."""

    point: Point  # the remark; that it is the user's is set when it is taken up


class Criteria(_Decision):
    """Change what texts are judged on; all of them are judged again."""

    criteria: tuple[Criterion, ...] = ()  # the new criteria; empty keeps the present ones
    target: Score | None = None  # the new target score; None keeps the present one


class Expect(_Decision, Called):
    """Expect a result: it becomes an example of the task, and every text is tried on it.

    A later one for the same input takes its place.
    """


class Retract(_Decision, Called):
    """Take back a result that the user expects."""


class Predict(_Decision):
    """Say what one's own code gives on an input on which it fails, before it is shown."""

    gives: str  # as of `Called`


# fmt: off
Decision = Annotated[
    Accept | Expect | Retract | Predict | Override | Continue | Guide | Edit | Dismiss | Drop | Add
    | Criteria,
    Field(discriminator="kind"),
]
# fmt: on
DECISION = TypeAdapter(Decision)

# After the others an earlier decision to accept or pass stays in force.
RULINGS = (Accept, Override, Continue, Edit, Drop, Criteria)
OWN = "yours"  # criterion of a remark that the user filed under none
