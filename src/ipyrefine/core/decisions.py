"""What a user can decide, as plain data.

`reducer` says what a decision needs and what it changes; `session.commands` reads it from words;
`render.labels` puts it into a sentence.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from ipyrefine.core.model import (
    MAX_ITERATIONS,
    Count,
    Criterion,
    Finding,
    Outcome,
    Record,
    Score,
)

# Where an accepted text goes: into a new cell, in place of its own cell (and run there), or into
# the variable only.
Destination = Literal["insert", "replace", "run", "none"]


class _Decision(Record):
    """Base of all decisions.

    Attributes:
        is_remark: whether an earlier decision to accept or pass a text stays in force.
        asks_for_revision: whether it asks for one more revision, unless it ends the run.
    """

    is_remark: ClassVar[bool] = False
    asks_for_revision: ClassVar[bool] = False

    @property
    def settles(self) -> bool:
        """Whether it ends the run: a text was accepted, or passed against its verdict."""
        return False

    @property
    def revision_requested(self) -> bool:
        """Whether this very decision asks for one more revision."""
        return self.asks_for_revision and not self.settles


class Accept(_Decision):
    """Take a text as the result.

    Attributes:
        iteration: which text; None for the chosen one.
        reason: why, in the user's words.
        destination: where the text goes; None leaves it to the cell.
    """

    kind: Literal["accept"] = "accept"
    iteration: Count | None = None
    reason: str = ""
    destination: Destination | None = Field(default=None, exclude_if=lambda where: where is None)

    @property
    def settles(self) -> bool:
        """It always ends the run."""
        return True


class Override(_Decision):
    """Replace a verdict by the user's own; other than PASS asks for a revision.

    Attributes:
        iteration: which text; None for the chosen one.
        outcome: the new verdict.
        reason: why; other than PASS, it becomes a blocking finding.
    """

    asks_for_revision: ClassVar[bool] = True
    kind: Literal["override"] = "override"
    iteration: Count | None = None
    outcome: Outcome
    reason: str = ""

    @property
    def settles(self) -> bool:
        """Whether the text was passed."""
        return self.outcome is Outcome.PASS


class Continue(_Decision):
    """Allow more revisions.

    Attributes:
        revisions: how many more.
        guidance: what the next revision should do.
    """

    asks_for_revision: ClassVar[bool] = True
    kind: Literal["continue"] = "continue"
    revisions: int = Field(default=1, ge=1, le=MAX_ITERATIONS)
    guidance: str = ""


class Branch(_Decision):
    """Continue from a chosen text.

    Attributes:
        iteration: the text to revise next.
        revisions: how many more revisions are allowed.
        guidance: what the next revision should do.
    """

    asks_for_revision: ClassVar[bool] = True
    kind: Literal["branch"] = "branch"
    iteration: Count
    revisions: int = Field(default=1, ge=1, le=MAX_ITERATIONS)
    guidance: str = ""


class Select(_Decision):
    """Have the next revision act on chosen findings only.

    Attributes:
        findings: their ids.
        iteration: the text to revise; None for the chosen one.
        guidance: what else the revision should do.
    """

    asks_for_revision: ClassVar[bool] = True
    kind: Literal["select"] = "select"
    findings: tuple[str, ...]
    iteration: Count | None = None
    guidance: str = ""


class Guide(_Decision):
    """Say what the next revision should do; it becomes a blocking finding.

    Attributes:
        guidance: the user's words.
    """

    is_remark: ClassVar[bool] = True
    kind: Literal["guide"] = "guide"
    guidance: str


class Edit(_Decision):
    """Add the user's own text, to be verified like any other.

    Attributes:
        iteration: the text it was made from; None for the chosen one.
        text: the edited text.
    """

    kind: Literal["edit"] = "edit"
    iteration: Count | None = None
    text: str


class Dismiss(_Decision):
    """Set findings aside for good.

    Attributes:
        findings: their ids.
        reason: why, in the user's words.
    """

    is_remark: ClassVar[bool] = True
    kind: Literal["dismiss"] = "dismiss"
    findings: tuple[str, ...]
    reason: str = ""


class Drop(_Decision):
    """Leave out a demand on a text's form that was read wrongly; no text is held to it any more.

    Attributes:
        demand: the name of its check: ``length:<=120 words``.
    """

    kind: Literal["drop"] = "drop"
    demand: str


class Add(_Decision):
    """Add a finding; one with the id of another replaces that one.

    Attributes:
        finding: the finding; its author and status are set when it is taken up.
        iteration: the text that its quote must be in; None for the chosen one.
    """

    is_remark: ClassVar[bool] = True
    kind: Literal["add"] = "add"
    finding: Finding
    iteration: Count | None = None


class Rubric(_Decision):
    """Change what texts are judged on; all of them are judged again.

    Attributes:
        criteria: the new criteria; empty keeps the present ones.
        target: the new target score; None keeps the present one.
    """

    kind: Literal["rubric"] = "rubric"
    criteria: tuple[Criterion, ...] = ()
    target: Score | None = None


class Answer(_Decision):
    """Answer the question that the drafts disagree about; it becomes an example of the task.

    Attributes:
        choice: which of the results, from 1; None for the user's own.
        result: the user's own: a value as Python, or the name of an exception.
    """

    kind: Literal["answer"] = "answer"
    choice: int | None = Field(default=None, ge=1, le=MAX_ITERATIONS)
    result: str = ""


Decision = Annotated[
    Accept
    | Answer
    | Override
    | Continue
    | Branch
    | Select
    | Guide
    | Edit
    | Dismiss
    | Drop
    | Add
    | Rubric,
    Field(discriminator="kind"),
]
DECISION: TypeAdapter[Decision] = TypeAdapter(Decision)

OWN = "yours"  # criterion of a finding that the user filed under none
