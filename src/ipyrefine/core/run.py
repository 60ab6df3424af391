"""A run as a value: its setup, its texts, what the user decided, and how it stopped."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from ipyrefine.core.decisions import RULINGS, Accept, Decision, Override
from ipyrefine.core.model import (
    MAX_ITERATIONS,
    Amount,
    Attempt,
    Author,
    Condition,
    Count,
    Effect,
    Finish,
    Limits,
    Ran,
    Record,
    Setup,
    Sparse,
    Stage,
    StopReason,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.table import Cell, Point, Reading, Result
from ipyrefine.core.testing import is_critics, suite_evidence


class Iteration(Sparse):
    """One text, a draft or a revision, and everything known about it."""

    number: Count  # 0 for the first draft, then 1, 2, …
    parent: Count | None = None  # the iteration it was revised from; None for a draft
    text: str
    author: Author = "model"
    thoughts: str = ""  # what the writer wrote before the text; shown, never judged
    # Why the model gave no usable text (cut off, refused, unreadable): it is then the parent's.
    failure: str = ""
    results: dict[str, Result] = Field(default={})  # its column: by the ids of points
    acted_on: tuple[str, ...] = ()  # ids of the points that this revision was written for
    sampled: bool = False  # whether it is another draft, written from the task, not its parent
    reading: Reading | None = None  # a critic's; None until one read it
    evaluation: Reading | None = None  # the user's evaluator's
    # What the revision says it changed, by the ids of points, and those of them that it contests.
    changes: dict[str, str] = Field(default={})
    contested: tuple[str, ...] = ()
    evidence: tuple[Result, ...] = ()
    verdict: Verdict | None = None  # as it was shown last; None until it was verified
    override: Override | None = None

    @property
    def judgement(self) -> Reading | None:
        """What the user's evaluator says of it; None where its reply could not be read."""
        said = self.evaluation
        return said if said and not said.failure else None

    @property
    def unread(self) -> str:
        """Why its reader's reply could not be read; empty where it could."""
        found = (one.failure for one in (self.evaluation, self.reading) if one)
        return next(filter(None, found), "")

    @property
    def effects(self) -> dict[str, Effect]:
        """What running it did to data, by the names that a critic knows it by: d1, d2 and so on."""
        found = (effect for one in self.evidence for effect in one.effects)
        return {f"d{number}": one for number, one in enumerate(found, start=1)}

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What makes some results of this text less than the real thing."""
        found = (*self.evidence, *self.results.values())
        return tuple(dict.fromkeys(c for one in found for c in one.conditions))


class Explanation(Record):
    """What the model answered to a question about a text."""

    iteration: Count
    question: str
    answer: str
    ends: bool = False  # whether it is what the run was for


class Call(Record):
    """A model call that ended; its reply is kept until its stage has made something of it."""

    stage: Stage
    iteration: Count
    usage: Usage = Usage()
    text: str = ""  # the reply; of one that broke off, what there was of its text
    finish: Finish | None = None  # how the reply ended; None where it broke off or was used


class Run(Record):
    """A refinement so far: the fold of its events."""

    setup: Setup
    # The texts, in the order of writing.
    iterations: Annotated[tuple[Iteration, ...], Field(max_length=MAX_ITERATIONS)] = ()
    best: Count | None = None  # number of the best iteration; None before the first verdict
    stage: Stage | None = None  # what is running now; None between stages and after the end
    calls: tuple[Call, ...] = ()  # those that ended, in their order
    warnings: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    # Revisions allowed in all (the limit's, and those of every ``continue``).
    allowed_revisions: Count = 0
    patience_from: Count = 0  # iteration number from which ``patience`` counts
    # The iteration that the user wants revised next; None leaves it to the limits.
    head: Count | None = None
    # Ids of the points that the next revision acts on; empty for all that are missed.
    selected: tuple[str, ...] = ()
    awaits_user: bool = False  # whether a remark on the stopped run left it waiting for the user
    released: Count = 0  # with ``step``, how many iterations the user has let go by
    stale: tuple[Count, ...] = ()  # iterations whose verdict is from before the criteria changed
    # Whether the user asked for a revision that is not written yet.
    revision_requested: bool = False
    points: dict[str, Point] = Field(default_factory=dict)  # the rows, by their ids
    # What a student predicted of their code, with that of earlier runs of the task.
    attempts: tuple[Attempt, ...] = ()
    ran: Ran | None = None  # what came of the accepted text once its cell had run
    explanations: tuple[Explanation, ...] = ()  # what the user asked about texts
    repairs: Count = 0  # how many replies had to be asked for again since the user last continued
    stop_reason: StopReason | None = None  # None while the run can go on
    message: str = ""  # what the stop means, in one or two sentences
    seconds: Amount = 0.0  # wall time of the latest event, from the start

    @model_validator(mode="after")
    def _require_consistent(self) -> Self:
        # The loop builds a run from events and needs none of this; what a file holds does.
        require_consistent(self)
        return self

    @classmethod
    def begin(cls, setup: Setup) -> "Run":
        """Return a run that has not done anything yet."""
        allowed = setup.limits.max_revisions
        return cls(setup=setup, allowed_revisions=allowed, attempts=setup.attempts or ())

    @property
    def task(self) -> Task:
        """What is asked."""
        return self.setup.task

    @property
    def limits(self) -> Limits:
        """When it stops."""
        return self.setup.limits

    @property
    def usage(self) -> Usage:
        """What all calls consumed."""
        return Usage.total(one.usage for one in self.calls)

    def usage_of(self, number: int) -> Usage:
        """Return what the calls about an iteration consumed."""
        return Usage.total(one.usage for one in self.calls if one.iteration == number)

    @property
    def spent(self) -> dict[Stage, Usage]:
        """What each stage consumed."""
        return {
            stage: Usage.total(one.usage for one in self.calls if one.stage is stage)
            for stage in dict.fromkeys(one.stage for one in self.calls)
        }

    @property
    def replies(self) -> tuple[Call, ...]:
        """The calls whose replies nothing was made of yet."""
        return tuple(one for one in self.calls if one.finish)

    def without_replies(self) -> "Run":
        """Return the run once something was made of its replies."""
        return self.replace(
            calls=tuple(c.replace(text="", finish=None) if c.finish else c for c in self.calls)
        )

    @property
    def unfinished(self) -> str:
        """What there is of a text whose call ended early, until the next stage."""
        last = self.calls[-1] if self.calls else None
        broke_off = last and not last.finish and last.stage in (Stage.DRAFT, Stage.REVISE)
        return last.text if last and broke_off else ""

    @property
    def revisions(self) -> int:
        """How many texts came after the draft."""
        return max(0, len(self.iterations) - 1)

    @property
    def tests(self) -> list[Point]:
        """The tests that critics wrote and that texts are tried on."""
        return [one for one in self.points.values() if is_critics(one) and not one.dropped]

    def cells(self, text: Iteration) -> list[Cell]:
        """Return a text's column, in the order in which it was said."""
        return [Cell(self.points[id_], one) for id_, one in text.results.items()]

    def latest(self, point: str) -> Cell | None:
        """Return what the latest text that was held to a point shows of it; None for no such."""
        found = (one.results[point] for one in reversed(self.iterations) if point in one.results)
        return next((Cell(self.points[point], one) for one in found), None)

    def evidence(self, text: Iteration) -> tuple[Result, ...]:
        """Return what the checks show of a text, and the critic's tests together."""
        suite = suite_evidence(self.points, text.results)
        return (*text.evidence, suite) if suite else text.evidence

    @property
    def demands(self) -> tuple[str, ...]:
        """The checks of a text's form that have run, by name; the user may drop any of them."""
        names = {e.name for i in self.iterations for e in i.evidence if e.basis == "constraints"}
        return tuple(name for name in self.setup.checks if name in names)

    @property
    def ruling(self) -> Decision | None:
        """The decision the run stands under: the latest that is not a remark."""
        return next((d for d in reversed(self.decisions) if isinstance(d, RULINGS)), None)

    @property
    def waiting(self) -> bool:
        """Whether it goes on only when the user says so."""
        return self.awaits_user or (self.limits.step and len(self.iterations) > self.released)

    @property
    def latest_edit(self) -> Iteration | None:
        """The latest text that the user edited, apart from their own draft."""
        own = (i for i in reversed(self.iterations) if i.author == "user")
        return next((i for i in own if i.parent is not None), None)

    @property
    def chosen(self) -> Iteration | None:
        """The iteration the user settled on, else the best, else the latest.

        The user's own edit is chosen at once, before it was verified.
        """
        ruling = self.ruling
        number = ruling.iteration if isinstance(ruling, Accept | Override) else None
        if ruling and ruling.settles and number is not None:
            return self.iterations[number]
        if (edit := self.latest_edit) and (self.best is None or self.best < edit.number):
            return edit
        if self.best is not None:
            return self.iterations[self.best]
        return self.iterations[-1] if self.iterations else None

    @property
    def text(self) -> str:
        """The chosen iteration's text; empty before any text."""
        return self.chosen.text if self.chosen else ""

    @property
    def verdict(self) -> Verdict | None:
        """The chosen iteration's verdict."""
        return self.chosen.verdict if self.chosen else None

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        # All fields fill pages, which a cell that ends in a run would show.
        yield "verdict", self.verdict.outcome.value if self.verdict else None
        yield "stop_reason", self.stop_reason.value if self.stop_reason else None
        yield "iterations", len(self.iterations)
        yield "text", self.text

    @property
    def score(self) -> float | None:
        """The chosen iteration's score, 0..1."""
        return self.verdict.score if self.verdict else None

    @property
    def score_history(self) -> tuple[float | None, ...]:
        """The score of every verified iteration, in order."""
        return tuple(i.verdict.score for i in self.iterations if i.verdict)

    @property
    def converged(self) -> bool:
        """Whether it stopped because a text passed, by its verdict or the user's, or an answer."""
        passed = (StopReason.PASSED, StopReason.ACCEPTED, StopReason.OVERRIDDEN)
        return self.stop_reason in (*passed, StopReason.ANSWERED)

    @property
    def answered(self) -> bool:
        """Whether its request only asked something, which a model has answered in words."""
        return any(one.ends for one in self.explanations) and not self.decisions

    def name(self, number: int) -> str:
        """Return an iteration's name, also of one that is being written: ``Revision 2``.

        Drafts, revisions and the user's edits are counted separately.
        """
        kind = self._kind(number)
        count = 1 + sum(self._kind(one.number) == kind for one in self.iterations[:number])
        return kind if count == 1 and kind != "Revision" else f"{kind} {count}"

    def _kind(self, number: int) -> str:
        if number >= len(self.iterations):
            weak = self.limits.revise == "auto" and self.setup.weak_editor
            sampled = weak or self.limits.revise == "sample"
            sampled = sampled and not any(one.author == "user" for one in self.iterations)
            revised = bool(self.iterations) and self.stage is Stage.REVISE and not sampled
        else:
            one = self.iterations[number]
            if one.author == "user":
                return "Your text" if one.parent is None else "Your edit"
            revised = one.parent is not None and not one.sampled
        return "Revision" if revised else "Draft"

    def mention(self, number: int) -> str:
        """Return an iteration's name inside a sentence: ``the draft``, ``revision 2``."""
        name = self.name(number).lower()
        return "the draft" if name == "draft" else name

    @property
    def cost(self) -> float | None:
        """US dollars spent; None when a price is not known."""
        return self.usage.cost


def require_consistent(run: Run) -> None:
    """Refuse a run whose parts contradict each other, so that nothing that reads it has to.

    Iterations are numbered in order and come from earlier ones, so that no descent has a circle;
    every number of an iteration that the run names is the number of one it has.

    Raises:
        ValueError: the run is not consistent; it says where.
    """
    count = len(run.iterations)
    for number, iteration in enumerate(run.iterations):
        if iteration.number != number:
            raise ValueError(f"iteration {number} has the number {iteration.number}")
        if iteration.parent is not None and iteration.parent >= number:
            raise ValueError(f"iteration {number} comes from iteration {iteration.parent}")
    overrides = [i.override for i in run.iterations if i.override]
    decided = [getattr(one, "iteration", None) for one in (*run.decisions, *overrides)]
    for named in (run.best, run.head, run.ran.iteration if run.ran else None, *run.stale, *decided):
        if named is not None and named >= count:
            raise ValueError(f"it names iteration {named} of {count}")
    if any(one.results.keys() - run.points.keys() for one in run.iterations):
        raise ValueError("a text has a result on a point that is not there")
    if any(id_ != one.id for id_, one in run.points.items()):
        raise ValueError("a point has another id than its own")
    if run.best is not None and run.iterations[run.best].verdict is None:
        raise ValueError(f"the best iteration, {run.best}, has no verdict")
    if run.stop_reason is StopReason.ACCEPTED and not isinstance(run.ruling, Accept):
        raise ValueError("it was accepted without a decision")
