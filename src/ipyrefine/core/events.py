"""What happens in a run, one class per event; everything shown or stored is made from these."""

from typing import Annotated, Literal

from pydantic import Field

from ipyrefine.core.records import (
    Author,
    Change,
    Critique,
    Evidence,
    Finding,
    Finish,
    Record,
    Task,
    Verdict,
)
from ipyrefine.core.runs import Decision, Limits, StopReason
from ipyrefine.core.usage import Price, Usage

Stage = Literal["draft", "check", "judge", "critique", "revise", "gate"]


class _Event(Record):
    """Base of all events; ``at`` is seconds since the run started."""

    at: float = 0.0


class RunStarted(_Event):
    """A run begins.

    `compares` says whether a check compares first texts with each other; `draft` is the user's own
    text, `price` the dearest model's, where known; `prompts` are the user's own, by stage.
    """

    type: Literal["run_started"] = "run_started"
    task: Task
    limits: Limits
    model: str
    judge: str
    checks: tuple[str, ...] = ()
    compares: bool = False
    draft: str | None = None
    price: Price | None = None
    prompts: dict[str, str] = Field(default_factory=dict)


class StageStarted(_Event):
    """A stage of an iteration begins."""

    type: Literal["stage_started"] = "stage_started"
    stage: Stage
    iteration: int


class TextDelta(_Event):
    """A piece of a reply as it is written; never journalled."""

    type: Literal["text_delta"] = "text_delta"
    stage: Stage
    iteration: int
    kind: Literal["text", "thinking"] = "text"
    text: str


class DraftReady(_Event):
    """A first text is there: the user's own, or one of the candidates that the model writes."""

    type: Literal["draft_ready"] = "draft_ready"
    text: str
    thoughts: str = ""
    author: Author = "model"
    candidate: int = 0


class DraftLost(_Event):
    """One of several first texts could not be had; the run goes on with the others."""

    type: Literal["draft_lost"] = "draft_lost"
    candidate: int
    why: str


class CritiqueReady(_Event):
    """A critique of an iteration's text was made.

    `reached` is the verdict that a critique which could not be read brings about; it comes with
    it, so that a run cut short here does not take the text for passed.
    """

    type: Literal["critique_ready"] = "critique_ready"
    iteration: int
    critique: Critique
    reached: "VerdictReached | None" = None


class RevisionReady(_Event):
    """A revision was written; with a `flaw`, the model gave none and `text` is the parent's.

    `findings` are what it adds beyond what was asked for.
    """

    type: Literal["revision_ready"] = "revision_ready"
    iteration: int
    parent: int
    text: str
    thoughts: str = ""
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()
    flaw: str = ""


class EvidenceReady(_Event):
    """One check has finished on an iteration's text."""

    type: Literal["evidence_ready"] = "evidence_ready"
    iteration: int
    evidence: Evidence


class VerdictReached(_Event):
    """An iteration was verified; `findings` are all that bear on it, with their status."""

    type: Literal["verdict_reached"] = "verdict_reached"
    iteration: int
    verdict: Verdict
    findings: tuple[Finding, ...] = ()


class Compared(_Event):
    """The judge compared a candidate with the best text; the second time the other way round."""

    type: Literal["compared"] = "compared"
    iteration: int
    against: int
    won: bool
    why: str = ""


class BestChanged(_Event):
    """Another iteration is now the best."""

    type: Literal["best_changed"] = "best_changed"
    iteration: int


class BudgetUsed(_Event):
    """A model call ended and consumed this much.

    Its reply comes with it, `text` and how it ended (`finish`, None without a reply), so that
    one which was paid for is never asked for again, whatever happens next; `critic` tells apart
    those who criticise a text at once.
    """

    type: Literal["budget_used"] = "budget_used"
    stage: Stage
    iteration: int
    usage: Usage
    text: str = ""
    finish: Finish | None = None
    critic: int = 0


class Warned(_Event):
    """Something the user should know, though the run goes on."""

    type: Literal["warned"] = "warned"
    message: str


class Decided(_Event):
    """The user decided something."""

    type: Literal["decided"] = "decided"
    decision: Decision


class Stopped(_Event):
    """The run stopped; a later decision may let it go on."""

    type: Literal["stopped"] = "stopped"
    reason: StopReason
    message: str


Event = Annotated[
    RunStarted
    | StageStarted
    | TextDelta
    | DraftReady
    | DraftLost
    | CritiqueReady
    | RevisionReady
    | EvidenceReady
    | VerdictReached
    | BestChanged
    | Compared
    | BudgetUsed
    | Warned
    | Decided
    | Stopped,
    Field(discriminator="type"),
]
