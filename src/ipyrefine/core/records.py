"""The records a refinement is made of: frozen values, each word of the design once."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Score = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
Author = Literal["model", "check", "user"]
Finish = Literal["stop", "length", "refused", "filtered", "incomplete"]


class Record(BaseModel):
    """Base of all records: immutable, strict about unknown fields, always writable as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @field_validator("*")
    @classmethod
    def _no_lone_surrogates(cls, value: Any) -> Any:
        # A model's JSON may hold half of a pair, which no UTF-8 file can.
        if isinstance(value, str) and not value.isascii():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value


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
        categories: what a critique looks at and files its findings under; the criteria if empty.
        checklist: yes/no questions a finished text answers with yes.
        plan: whether prose is planned in a few lines before it is written; code never is.
    """

    text: str
    profile: str = "prose"
    form: Literal["code", "prose"] = "prose"
    criteria: tuple[Criterion, ...] = (
        Criterion(name="correctness", definition="It does what the task asks, without errors."),
    )
    categories: tuple[str, ...] = ()
    checklist: tuple[str, ...] = ()
    plan: bool = True


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
        check: name of the check that found it; empty when somebody else did.
        grounded: False when the quote is not in the text; such a finding is not acted on.
        reason: why it was dismissed, in the user's words.
    """

    id: str
    criterion: str
    severity: Severity
    quote: str = ""
    problem: str
    fix: str = ""
    status: Status = Status.OPEN
    author: Author = "model"
    check: str = ""
    grounded: bool = True
    reason: str = ""

    @property
    def found_by(self) -> str:
        """The check it comes from; empty when somebody else found it."""
        # Runs written before checks told faults apart name the check as the criterion.
        return (self.check or self.criterion) if self.author == "check" else ""

    @property
    def binding(self) -> bool:
        """Whether a check's failure rests on it, so that it cannot be dismissed by itself."""
        return self.author == "check" and self.severity is Severity.BLOCKING

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
        findings: each fault by itself, where the check tells them apart.
        comparing: whether it compares the text with the other first texts, and so holds only as
            long as there are no more of them.
    """

    name: str
    passed: bool | None
    score: Score | None = None
    detail: str = ""
    seconds: float = 0.0
    required: bool = True
    decisive: bool = False
    findings: tuple[Finding, ...] = ()
    comparing: bool = False


class CriterionScore(Record):
    """The judge's score for one criterion.

    Attributes:
        name: the criterion.
        score: 0..1.
        reason: one sentence.
        quote: the words of the text it rests on, verbatim; empty for something missing.
        grounded: False when the quote is not in the text; a PASS never rests on such a score.
    """

    name: str
    score: Score
    reason: str = ""
    quote: str = ""
    grounded: bool = True


class Answer(Record):
    """The judge's answer to one question of the checklist."""

    question: str
    yes: bool


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
        checklist: its answers to the task's checklist.
        unresolved: ids of the findings that still stand.
        why: one sentence for people.
        author: who it rests on: the checks, the model as judge, or the user who overrode it.
        verified: False when no evidence could be had (an unreadable judge); never with PASS.
        required_passed: whether every required check passed.
        user_met: whether none of the user's own findings still stands.
        overruled: why the judge's scores, which reach the target, were not followed; else empty.
    """

    outcome: Outcome
    score: Score | None
    criteria: tuple[CriterionScore, ...] = ()
    checklist: tuple[Answer, ...] = ()
    unresolved: tuple[str, ...] = ()
    why: str = ""
    author: Literal["check", "model", "user"] = "model"
    verified: bool = True
    required_passed: bool = True
    user_met: bool = True
    overruled: str = ""

    @property
    def rank(self) -> tuple[bool, bool, bool, float]:
        """Order of candidates, higher is better.

        Required checks first, then the user's own findings, then PASS (a text with a known
        blocking weakness never beats one without), then the score. A text the user passed has
        all but the score.
        """
        score = -1.0 if self.score is None else self.score
        passed = self.outcome is Outcome.PASS
        ruled = passed and self.author == "user"
        return (self.required_passed or ruled, self.user_met or ruled, passed, score)
