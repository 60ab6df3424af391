"""What happens in a run, one class per event; everything shown or stored is made from these."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from ipyrefine.core.decisions import Decision
from ipyrefine.core.expectations import Critique
from ipyrefine.core.model import (
    Amount,
    Author,
    Change,
    Count,
    Evidence,
    Finding,
    Finish,
    Question,
    Record,
    Setup,
    Stage,
    StopReason,
    Usage,
    Verdict,
)


class _Event(Record):
    """Base of all events.

    Attributes:
        at: seconds since the run started.
    """

    at: Amount = 0.0


class RunStarted(_Event):
    """A run begins.

    Attributes:
        setup: what it starts from.
    """

    type: Literal["run_started"] = "run_started"
    setup: Setup


class StageStarted(_Event):
    """A stage of an iteration begins.

    Attributes:
        stage: which one.
        iteration: the iteration it is about.
    """

    type: Literal["stage_started"] = "stage_started"
    stage: Stage
    iteration: Count


class TextDelta(_Event):
    """A piece of a reply as it streams; never journalled.

    Attributes:
        stage: the stage that asked.
        iteration: the iteration it is about.
        kind: whether it belongs to the text or to the thinking before it.
        text: the piece.
    """

    type: Literal["text_delta"] = "text_delta"
    stage: Stage
    iteration: Count
    kind: Literal["text", "thinking"] = "text"
    text: str


class DraftReady(_Event):
    """A draft is there: the user's own, or one of the candidates that the model writes.

    Attributes:
        text: the draft.
        thoughts: what the model wrote before it.
        author: who wrote it.
        candidate: under which number it was asked for.
    """

    type: Literal["draft_ready"] = "draft_ready"
    text: str
    thoughts: str = ""
    author: Author = "model"
    candidate: Count = 0


class DraftFailed(_Event):
    """One of several drafts could not be written; the run goes on with the others.

    Attributes:
        candidate: under which number it was asked for.
        reason: why there is none.
    """

    type: Literal["draft_failed"] = "draft_failed"
    candidate: Count
    reason: str


class VerdictReached(_Event):
    """An iteration was verified.

    Attributes:
        iteration: which one.
        verdict: its verdict.
        findings: all findings that bear on it, with their status.
    """

    type: Literal["verdict_reached"] = "verdict_reached"
    iteration: Count
    verdict: Verdict
    findings: tuple[Finding, ...] = ()


class CritiqueReady(_Event):
    """An iteration's text was criticised.

    Attributes:
        iteration: which one.
        critique: the new findings.
        regressed: ids of resolved findings that it names again.
    """

    type: Literal["critique_ready"] = "critique_ready"
    iteration: Count
    critique: Critique
    regressed: tuple[str, ...] = ()


class RevisionReady(_Event):
    """A revision was written.

    Attributes:
        iteration: its number.
        parent: the iteration it was revised from.
        text: the revision; the parent's text when the model gave none.
        thoughts: what the model wrote before it.
        changes: what it says it changed, per finding.
        acted_on: ids of the findings that it was written for.
        failure: why the model gave no text; else empty.
    """

    type: Literal["revision_ready"] = "revision_ready"
    iteration: Count
    parent: Count
    text: str
    thoughts: str = ""
    changes: tuple[Change, ...] = ()
    acted_on: tuple[str, ...] = ()
    failure: str = ""


class EvidenceReady(_Event):
    """One check has finished on an iteration's text.

    Attributes:
        iteration: which one.
        evidence: the result.
    """

    type: Literal["evidence_ready"] = "evidence_ready"
    iteration: Count
    evidence: Evidence


class QuestionAsked(_Event):
    """Drafts disagree on an input that the task leaves open; the user may answer.

    Attributes:
        question: the input, and what the drafts give.
    """

    type: Literal["question_asked"] = "question_asked"
    question: Question


class BestChanged(_Event):
    """Another iteration is now the best.

    Attributes:
        iteration: which one.
    """

    type: Literal["best_changed"] = "best_changed"
    iteration: Count


class CallEnded(_Event):
    """A model call ended.

    Its reply comes with it, so that what was paid for is never asked for again, whatever
    happens next.

    Attributes:
        stage: the stage that asked.
        iteration: the iteration it is about.
        usage: what it consumed.
        text: the reply.
        finish: how the reply ended; None without a reply.
    """

    type: Literal["call_ended"] = "call_ended"
    stage: Stage
    iteration: Count
    usage: Usage
    text: str = ""
    finish: Finish | None = None


class Warned(_Event):
    """Something the user should know, though the run goes on.

    Attributes:
        message: one or two sentences.
    """

    type: Literal["warned"] = "warned"
    message: str


class Decided(_Event):
    """The user decided something.

    Attributes:
        decision: what.
    """

    type: Literal["decided"] = "decided"
    decision: Decision


class Stopped(_Event):
    """The run stopped; a later decision may let it go on.

    Attributes:
        reason: why, in one word.
        message: what it means, in one or two sentences.
    """

    type: Literal["stopped"] = "stopped"
    reason: StopReason
    message: str


Event = Annotated[
    RunStarted
    | StageStarted
    | TextDelta
    | DraftReady
    | DraftFailed
    | CritiqueReady
    | RevisionReady
    | EvidenceReady
    | VerdictReached
    | QuestionAsked
    | BestChanged
    | CallEnded
    | Warned
    | Decided
    | Stopped,
    Field(discriminator="type"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
