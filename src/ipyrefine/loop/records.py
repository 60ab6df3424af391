"""The records a refinement is made of: frozen values, each word of the design once."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Score = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Author = Literal["model", "check", "user"]


class Record(BaseModel):
    """Base of all records: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Criterion(Record):
    """One named quality the text is judged on, with a one-sentence definition."""

    name: str
    definition: str
    weight: float = Field(default=1.0, gt=0)


class Task(Record):
    """What is asked; it stands unchanged at the head of every prompt.

    Attributes:
        text: the request in the user's words.
        profile: name of the profile the criteria come from.
        form: ``code`` (answers in a fenced block) or ``prose`` (answers between text marks).
        criteria: what the judge scores, at least one.
        checklist: yes/no questions a finished text answers with yes.
    """

    text: str
    profile: str = "prose"
    form: Literal["code", "prose"] = "prose"
    criteria: tuple[Criterion, ...] = (
        Criterion(name="correctness", definition="It does what the task asks, without errors."),
    )
    checklist: tuple[str, ...] = ()


class Usage(Record):
    """What model calls consumed.

    Attributes:
        calls: number of requests.
        prompt_tokens: tokens read by the model.
        cached_tokens: those of them served from a prefix cache; None when the server did not say.
        completion_tokens: tokens written by the model.
        seconds: wall time spent in the calls.
        cost: US dollars; None when the price is not known.
    """

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int | None = None
    completion_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        """Sum two usages; an unknown part stays unknown unless the other side counted none."""
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=_sum_known(self, other, "cached_tokens"),
            completion_tokens=self.completion_tokens + other.completion_tokens,
            seconds=self.seconds + other.seconds,
            cost=_sum_known(self, other, "cost"),
        )


def _sum_known(a: Usage, b: Usage, field: str) -> "int | float | None":
    """Sum a field of two usages: None as soon as a side that made calls does not know it."""
    parts = [getattr(side, field) for side in (a, b) if side.calls]
    if any(part is None for part in parts):
        return None
    return sum(parts) if parts else None


class Severity(StrEnum):
    """How much a finding weighs: a blocking one keeps the text from passing."""

    BLOCKING = "blocking"
    MINOR = "minor"


class Status(StrEnum):
    """Where a finding stands in the text it is listed for."""

    OPEN = "open"
    RESOLVED = "resolved"
    DISMISSED = "dismissed"
    REGRESSED = "regressed"


class Finding(Record):
    """One weakness of a text.

    Attributes:
        id: name within the run, ``f1``, ``f2``, …
        criterion: the criterion it falls under.
        severity: blocking or minor.
        quote: the words of the text it is about, verbatim; empty for something missing.
        problem: what is wrong.
        fix: what would mend it.
        status: open, resolved, dismissed, or regressed (resolved once and back again).
        author: who found it.
        grounded: False when the quote is not in the text; such a finding is not acted on.
    """

    id: str
    criterion: str
    severity: Severity
    quote: str = ""
    problem: str
    fix: str = ""
    status: Status = Status.OPEN
    author: Author = "model"
    grounded: bool = True

    @property
    def actionable(self) -> bool:
        """Whether a revision should act on it: unresolved, not dismissed, and grounded."""
        return self.grounded and self.status in (Status.OPEN, Status.REGRESSED)


class Critique(Record):
    """The findings one reading of one text produced."""

    findings: tuple[Finding, ...] = ()


class Change(Record):
    """What a revision says it did for one finding.

    Attributes:
        finding: the finding's id.
        summary: the reviser's words.
        confirmed: False when the text near the finding's quote did not change.
    """

    finding: str
    summary: str
    confirmed: bool = True


class Evidence(Record):
    """One check's result on one text.

    Attributes:
        name: the check's name.
        passed: whether it passed; None when it found nothing it could check.
        score: 0..1, or None when it does not apply.
        detail: what was tried and what came out (input, expected, got), for people and prompts.
        seconds: wall time it took.
        required: whether failing it keeps the text from passing.
        decisive: whether passing it settles the verdict, so that no judge is asked.
    """

    name: str
    passed: bool | None
    score: Score | None = None
    detail: str = ""
    seconds: float = 0.0
    required: bool = True
    decisive: bool = False


class CriterionScore(Record):
    """The judge's score for one criterion, 0..1, with its reason."""

    name: str
    score: Score
    reason: str = ""


class Outcome(StrEnum):
    """The three outcomes of a verification."""

    PASS = "PASS"
    NEEDS_IMPROVEMENT = "NEEDS_IMPROVEMENT"
    FAIL = "FAIL"


class Verdict(Record):
    """What verification came to; derived by code, never taken from a model's word.

    Attributes:
        outcome: PASS, NEEDS_IMPROVEMENT or FAIL.
        score: 0..1; None when the text could not be scored.
        criteria: the judge's scores, empty when no judge was asked.
        unresolved: ids of the findings that still stand.
        why: one sentence for people.
        author: who it rests on: the checks, the model as judge, or the user who overrode it.
        verified: False when no evidence could be had (an unreadable judge); never with PASS.
        required_passed: whether every required check passed.
        user_met: whether none of the user's own findings still stands.
    """

    outcome: Outcome
    score: Score | None
    criteria: tuple[CriterionScore, ...] = ()
    unresolved: tuple[str, ...] = ()
    why: str = ""
    author: Literal["check", "model", "user"] = "model"
    verified: bool = True
    required_passed: bool = True
    user_met: bool = True

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """Order of candidates, higher is better.

        Required checks first, then the user's own findings, then PASS (a text with a known
        blocking weakness never beats one without), then the score.
        """
        score = -1.0 if self.score is None else self.score
        return (self.required_passed, self.user_met, self.outcome is Outcome.PASS, score)


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


class Decision(Record):
    """What a user did.

    Attributes:
        kind: accept or override a verdict, continue for more rounds, or guide the next revision.
        iteration: the iteration it is about; None for the best one.
        outcome: for ``override``, the verdict the user gives instead.
        rounds: for ``continue``, how many more revisions are allowed.
        text: the reason or the guidance in the user's words.
    """

    kind: Literal["accept", "override", "continue", "guide"]
    iteration: int | None = None
    outcome: Outcome | None = None
    rounds: int = Field(default=0, ge=0)
    text: str = ""


class Budget(Record):
    """Upper bounds on what a run may consume; None means unbounded.

    Attributes:
        tokens: prompt and completion tokens.
        calls: model requests.
        cost: US dollars.
        seconds: wall time since the run started.
    """

    tokens: int | None = Field(default=None, gt=0)
    calls: int | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)


class Limits(Record):
    """When a run stops and how its calls are made.

    Attributes:
        max_iterations: revisions allowed after the first text (0: one text, one verdict).
        target: score 0..1 a passing text must reach.
        patience: revisions in a row without a better best before the run stops.
        min_findings: findings a critique must name.
        max_eval_chars: characters of the text the judge sees.
        max_tokens: completion tokens allowed per call.
        temperature: sampling temperature of drafts and revisions; critique and judge use 0.
        seed: sampling seed passed to the server, or None.
        budget: upper bounds on consumption.
    """

    max_iterations: int = Field(default=4, ge=0)
    target: Score = 0.8
    patience: int = Field(default=2, ge=1)
    min_findings: int = Field(default=3, ge=0)
    max_eval_chars: int = Field(default=32_768, gt=0)
    max_tokens: int = Field(default=2_048, gt=0)
    temperature: float = Field(default=0.0, ge=0, le=2)
    seed: int | None = None
    budget: Budget = Budget()


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
    usage: Usage = Usage()

    @property
    def actionable(self) -> tuple[Finding, ...]:
        """The findings a revision of this text should act on."""
        return tuple(finding for finding in self.findings if finding.actionable)


class Run(Record):
    """A refinement as far as it got: the fold of its events.

    Attributes:
        task: what is asked; None before the run started.
        limits: when it stops.
        model: the writer's name.
        judge: the judge's name.
        checks: names of the checks.
        draft: the user's own text the run started from, or None.
        iterations: the texts, in order of writing.
        best: number of the best iteration; None before the first verdict.
        stage: what is running now, empty between stages and after the end.
        usage: everything consumed.
        warnings: what the user was told along the way.
        decisions: what the user did.
        allowed: revisions allowed in all (``max_iterations`` and every ``continue``).
        plateau_from: iteration number from which ``patience`` counts.
        head: the iteration to revise next; None for the best.
        revise_asked: whether the user asked for a revision that has not been written yet.
        unassigned: consumption of calls whose text is not there yet.
        stop_reason: None while the run can go on.
        message: what the stop means, in one or two sentences.
        seconds: wall time at the latest event, from the start.
    """

    task: Task | None = None
    limits: Limits = Limits()
    model: str = ""
    judge: str = ""
    checks: tuple[str, ...] = ()
    draft: str | None = None
    iterations: tuple[Iteration, ...] = ()
    best: int | None = None
    stage: str = ""
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()
    decisions: tuple[Decision, ...] = ()
    allowed: int = 0
    plateau_from: int = 0
    head: int | None = None
    revise_asked: bool = False
    unassigned: Usage = Usage()
    stop_reason: StopReason | None = None
    message: str = ""
    seconds: float = 0.0

    @property
    def chosen(self) -> Iteration | None:
        """The accepted iteration, else the best, else the latest; None before any text."""
        last = self.decisions[-1] if self.decisions else None
        if last and last.kind == "accept" and last.iteration is not None:
            return self.iterations[last.iteration]
        if self.best is not None:
            return self.iterations[self.best]
        return self.iterations[-1] if self.iterations else None

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
