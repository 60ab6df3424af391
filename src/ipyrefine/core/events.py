"""What happens in a run, one class per event; everything shown or stored is made from these."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, TypeAdapter

from ipyrefine.core.decisions import Decision
from ipyrefine.core.model import (
    Amount,
    Author,
    Count,
    Delta,
    Form,
    Ran,
    Setup,
    Stage,
    StopReason,
    Tagged,
    Verdict,
    WrittenText,
)
from ipyrefine.core.run import Call, Explanation, Iteration
from ipyrefine.core.table import Critique, Point, Result


class _Event(Tagged):
    tag = "type"
    type: ClassVar[str]
    at: Amount = 0.0  # seconds since the run started


class _OfText(_Event):
    iteration: Count


class RunStarted(_Event):
    """A run begins."""

    setup: Setup


class StageStarted(_OfText):
    """A stage of an iteration begins."""

    stage: Stage


class TextDelta(_OfText, Delta):
    """A piece of a reply as it streams; never journalled."""

    stage: Stage


class FormChosen(_Event):
    """A weak writer was asked whether the task wants code or words."""

    form: Form


class DraftReady(_Event, WrittenText):
    """A draft is there: the user's own, or the model's."""

    author: Author = "model"


class VerdictReached(_OfText):
    """An iteration was verified."""

    verdict: Verdict
    points: tuple[Point, ...] = ()  # that are new or changed
    results: dict[str, Result] = Field(default_factory=dict)  # its column, by the ids of points


class CritiqueReady(_OfText):
    """A reader was asked about an iteration's text."""

    by: Literal["critic", "evaluator"] = "critic"
    critique: Critique  # an evaluator's feedback are remarks without ids
    regressed: tuple[str, ...] = ()  # ids of mended points that a critic names again


class RevisionReady(_Event):
    """A revision was written."""

    revision: Iteration  # with the parent's text when the model gave none


class ExplanationReady(_Event, Explanation):
    """A question of the user's about a text was answered; the text is as before."""


class EvidenceReady(_OfText):
    """One check has finished on an iteration's text."""

    evidence: Result


class TestsRun(_OfText):
    """A critic's tests were run on an iteration's text."""

    __test__ = False

    results: dict[str, Result]  # by the ids of points


class BestChanged(_OfText):
    """Another iteration is now the best."""


class CallEnded(_Event, Call):
    """A model call ended.

    Its reply comes with it, so that what was paid for is never asked for again, whatever
    happens next.
    """


class Warned(_Event):
    """Something the user should know, though the run goes on."""

    message: str


class Decided(_Event):
    """The user decided something."""

    decision: Decision


class CellRan(_Event):
    """The accepted text ran in its cell for the first time, or what that replaced was put back."""

    ran: Ran


class Stopped(_Event):
    """The run stopped; a later decision may let it go on."""

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
EVENT = TypeAdapter(Event)
