"""What happens in a run, one class per event; everything shown or stored is made from these."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from ipyrefine.core.decisions import Decision
from ipyrefine.core.model import (
    Amount,
    Author,
    Count,
    Form,
    Ran,
    Record,
    Setup,
    Stage,
    StopReason,
    Verdict,
    WrittenText,
)
from ipyrefine.core.run import Call, Explanation, Iteration
from ipyrefine.core.table import Critique, Point, Result


class _Event(Record):
    at: Amount = 0.0  # seconds since the run started


class RunStarted(_Event):
    """A run begins."""

    type: Literal["run_started"] = "run_started"
    setup: Setup


class StageStarted(_Event):
    """A stage of an iteration begins."""

    type: Literal["stage_started"] = "stage_started"
    stage: Stage
    iteration: Count


class TextDelta(_Event):
    """A piece of a reply as it streams; never journalled."""

    type: Literal["text_delta"] = "text_delta"
    stage: Stage
    iteration: Count
    # Whether it belongs to the text or to the thinking before it.
    kind: Literal["text", "thinking"] = "text"
    text: str


class FormChosen(_Event):
    """A weak writer was asked whether the task wants code or words."""

    type: Literal["form_chosen"] = "form_chosen"
    form: Form


class DraftReady(_Event, WrittenText):
    """A draft is there: the user's own, or the model's."""

    type: Literal["draft_ready"] = "draft_ready"
    author: Author = "model"


class VerdictReached(_Event):
    """An iteration was verified."""

    type: Literal["verdict_reached"] = "verdict_reached"
    iteration: Count
    verdict: Verdict
    points: tuple[Point, ...] = ()  # that are new or changed
    results: dict[str, Result] = Field(default_factory=dict)  # its column, by the ids of points


class CritiqueReady(_Event):
    """A reader was asked about an iteration's text."""

    type: Literal["critique_ready"] = "critique_ready"
    iteration: Count
    by: Literal["critic", "evaluator"] = "critic"
    critique: Critique  # an evaluator's feedback are remarks without ids
    regressed: tuple[str, ...] = ()  # ids of mended points that a critic names again


class RevisionReady(_Event):
    """A revision was written."""

    type: Literal["revision_ready"] = "revision_ready"
    revision: Iteration  # with the parent's text when the model gave none


class ExplanationReady(_Event, Explanation):
    """A question of the user's about a text was answered; the text is as before."""

    type: Literal["explanation_ready"] = "explanation_ready"


class EvidenceReady(_Event):
    """One check has finished on an iteration's text."""

    type: Literal["evidence_ready"] = "evidence_ready"
    iteration: Count
    evidence: Result


class TestsRun(_Event):
    """A critic's tests were run on an iteration's text."""

    __test__ = False

    type: Literal["tests_run"] = "tests_run"
    iteration: Count
    results: dict[str, Result]  # by the ids of points


class BestChanged(_Event):
    """Another iteration is now the best."""

    type: Literal["best_changed"] = "best_changed"
    iteration: Count


class CallEnded(_Event, Call):
    """A model call ended.

    Its reply comes with it, so that what was paid for is never asked for again, whatever
    happens next.
    """

    type: Literal["call_ended"] = "call_ended"


class Warned(_Event):
    """Something the user should know, though the run goes on."""

    type: Literal["warned"] = "warned"
    message: str


class Decided(_Event):
    """The user decided something."""

    type: Literal["decided"] = "decided"
    decision: Decision


class CellRan(_Event):
    """The accepted text ran in its cell for the first time, or what that replaced was put back."""

    type: Literal["cell_ran"] = "cell_ran"
    ran: Ran


class Stopped(_Event):
    """The run stopped; a later decision may let it go on."""

    type: Literal["stopped"] = "stopped"
    reason: StopReason
    message: str


Event = Annotated[
    RunStarted
    | StageStarted
    | TextDelta
    | FormChosen
    | DraftReady
    | CritiqueReady
    | RevisionReady
    | EvidenceReady
    | TestsRun
    | ExplanationReady
    | VerdictReached
    | BestChanged
    | CallEnded
    | Warned
    | Decided
    | CellRan
    | Stopped,
    Field(discriminator="type"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
