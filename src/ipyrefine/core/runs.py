"""A run as a value: its limits, its iterations, what the user decided, and how it stopped."""

from enum import StrEnum
from itertools import takewhile
from typing import Literal

from pydantic import Field

from ipyrefine.core.limits import Budget as Budget
from ipyrefine.core.limits import Limits as Limits
from ipyrefine.core.records import (
    Author,
    Change,
    Criterion,
    Evidence,
    Finding,
    Finish,
    Outcome,
    Record,
    Score,
    Task,
    Verdict,
)
from ipyrefine.core.usage import Price, Usage


class StopReason(StrEnum):
    """Why a run stopped; one word each, never one boolean."""

    PASSED = "passed"
    PLATEAU = "plateau"
    ROUNDS = "rounds"
    BUDGET = "budget"
    CANCELLED = "cancelled"
    FAILED = "failed"
    ACCEPTED = "accepted"
    OVERRIDDEN = "overridden"
    PAUSED = "paused"


class Decision(Record):
    """What a user did.

    ``accept`` a text or ``override`` its verdict; ``continue`` for more revisions, from a chosen
    text with ``branch``, acting on chosen findings with ``select``; ``edit`` a text by hand;
    ``guide`` the next revision; ``add`` a finding (one with a known id replaces that one) or
    ``dismiss`` some; change the ``rubric``.

    Attributes:
        kind: what it is.
        iteration: the iteration it is about; None for the chosen one.
        outcome: for ``override``, the verdict the user gives instead.
        rounds: how many more revisions are allowed, for the kinds that ask for one.
        text: the edited text, or the reason or guidance in the user's words.
        findings: for ``select`` and ``dismiss``, ids of the findings.
        finding: for ``add``, the finding; its author and status are the user's and open.
        criteria: for ``rubric``, the new criteria; empty keeps those there are.
        target: for ``rubric``, the new target score; None keeps the one there is.
    """

    kind: Literal[
        "accept",
        "override",
        "continue",
        "guide",
        "edit",
        "dismiss",
        "add",
        "select",
        "branch",
        "rubric",
    ]
    iteration: int | None = None
    outcome: Outcome | None = None
    rounds: int = Field(default=0, ge=0)
    text: str = ""
    findings: tuple[str, ...] = ()
    finding: Finding | None = None
    criteria: tuple[Criterion, ...] = ()
    target: Score | None = None

    @property
    def settles(self) -> bool:
        """Whether it ends the run: a text was accepted, or passed against its verdict."""
        return self.kind == "accept" or (self.kind == "override" and self.outcome is Outcome.PASS)


class Iteration(Record):
    """One text and everything known about it.

    Attributes:
        number: 0 for the first text, then 1, 2, …
        parent: the iteration it was revised from; None for the first.
        text: the artifact.
        author: who wrote it.
        thoughts: what the writer wrote before the text; shown, never judged.
        flaw: why the model gave no usable text here (cut off, refused, unreadable), else empty;
            ``text`` is then the parent's.
        findings: every finding that bears on this text, with its status here.
        critiqued: whether a critique of this text was made.
        changes: what the revision says it changed, per finding.
        evidence: the checks' results.
        verdict: None until it was verified.
        overridden: the decision that overrode its verdict, or None.
        compared: how often the gate compared it with the best.
        barred: whether it lost there, so that it cannot be the best.
        usage: what writing and verifying it consumed.
    """

    number: int
    parent: int | None = None
    text: str
    author: Author = "model"
    thoughts: str = ""
    flaw: str = ""
    findings: tuple[Finding, ...] = ()
    critiqued: bool = False
    changes: tuple[Change, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    verdict: Verdict | None = None
    overridden: Decision | None = None
    compared: int = 0
    barred: bool = False
    usage: Usage = Usage()

    @property
    def actionable(self) -> tuple[Finding, ...]:
        """The findings a revision of this text should act on."""
        return tuple(finding for finding in self.findings if finding.actionable)

    @property
    def telling(self) -> tuple[Evidence, ...]:
        """What the checks found that had something to check."""
        return tuple(evidence for evidence in self.evidence if evidence.passed is not None)


class Heard(Record):
    """A reply of the stage under way, kept until that stage has made something of it.

    Attributes:
        stage: the stage that asked.
        iteration: the iteration it is about.
        text: the reply.
        finish: how it ended.
        warnings: how many warnings the run held when it came.
        critic: which of the critics it is from.
    """

    stage: str
    iteration: int
    text: str
    finish: Finish
    warnings: int
    critic: int = 0


class Run(Record):
    """A refinement as far as it got: the fold of its events.

    Attributes:
        task: what is asked; None before the run started.
        limits: when it stops.
        model: the writer's name.
        judge: the judge's name.
        checks: names of the checks.
        compares: whether one of them compares the first texts with each other.
        draft: the user's own text the run started from, or None.
        prompts: the user's own prompts, by stage.
        price: what its dearest model charges; None when that is not known.
        iterations: the texts, in order of writing.
        best: number of the best iteration; None before the first verdict.
        stage: what is running now, empty between stages and after the end.
        usage: everything consumed.
        warnings: what the user was told along the way.
        decisions: what the user did.
        allowed: revisions allowed in all (``max_iterations`` and every ``continue``).
        plateau_from: iteration number from which ``patience`` counts.
        head: the iteration to revise next; None for the best.
        selected: ids of the findings the next revision acts on; empty for all that stand.
        held: whether a remark on the stopped run left it waiting for the user.
        stepped: with ``step``, how many iterations the user has let go by.
        stale: iterations whose verdict the rubric has changed under, still to be judged again.
        revise_asked: whether the user asked for a revision that has not been written yet.
        lost: how many of the first texts asked for could not be had.
        unassigned: consumption of calls whose text is not there yet, by the number it is to have.
        heard: replies of the stage under way that it has not made anything of yet.
        stop_reason: None while the run can go on.
        message: what the stop means, in one or two sentences.
        seconds: wall time at the latest event, from the start.
        spent: what each stage consumed, by its name.
    """

    task: Task | None = None
    limits: Limits = Limits()
    model: str = ""
    judge: str = ""
    checks: tuple[str, ...] = ()
    compares: bool = False
    draft: str | None = None
    prompts: dict[str, str] = Field(default_factory=dict)
    price: Price | None = None
    iterations: tuple[Iteration, ...] = ()
    best: int | None = None
    stage: str = ""
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    allowed: int = 0
    plateau_from: int = 0
    head: int | None = None
    selected: tuple[str, ...] = ()
    held: bool = False
    stepped: int = 0
    stale: tuple[int, ...] = ()
    revise_asked: bool = False
    lost: int = 0
    unassigned: dict[int, Usage] = Field(default_factory=dict)
    heard: tuple[Heard, ...] = ()
    stop_reason: StopReason | None = None
    message: str = ""
    seconds: float = 0.0
    spent: dict[str, Usage] = Field(default_factory=dict)

    @property
    def drafts(self) -> tuple[Iteration, ...]:
        """The first texts, each written from the task alone; all others come after them."""
        return tuple(takewhile(lambda i: i.parent is None, self.iterations))

    @property
    def revisions(self) -> int:
        """How many texts came after the first ones."""
        return len(self.iterations) - len(self.drafts)

    @property
    def ruling(self) -> Decision | None:
        """The decision the run stands under: the latest that is not a remark beside it."""
        remarks = ("guide", "add", "dismiss")
        return next((d for d in reversed(self.decisions) if d.kind not in remarks), None)

    @property
    def waiting(self) -> bool:
        """Whether it goes on only when the user says so."""
        return self.held or (self.limits.step and len(self.iterations) > self.stepped)

    @property
    def chosen(self) -> Iteration | None:
        """The iteration the user settled on, else the best; else the latest, or the first draft."""
        ruling = self.ruling
        if ruling and ruling.settles and ruling.iteration is not None:
            return self.iterations[ruling.iteration]
        if self.best is not None:
            return self.iterations[self.best]
        if self.revisions:
            return self.iterations[-1]
        return self.iterations[0] if self.iterations else None

    @property
    def base(self) -> Iteration | None:
        """The iteration the next revision starts from: the user's choice, else the best."""
        number = self.best if self.head is None else self.head
        return None if number is None else self.iterations[number]

    @property
    def text(self) -> str:
        """The chosen iteration's text; empty before any text."""
        return self.chosen.text if self.chosen else ""

    @property
    def verdict(self) -> Verdict | None:
        """The chosen iteration's verdict."""
        return self.chosen.verdict if self.chosen else None

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
        """Whether it stopped because a text passed, by its checks and judge or by the user."""
        return self.stop_reason in (
            StopReason.PASSED,
            StopReason.ACCEPTED,
            StopReason.OVERRIDDEN,
        )

    @property
    def cost(self) -> float | None:
        """US dollars spent; None when a price is not known."""
        return self.usage.cost
