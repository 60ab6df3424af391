"""Evidence, criterion scores and findings → Verdict: computed here, never taken on a word."""

from collections.abc import Iterable
from typing import NamedTuple

from ipyrefine.core import ledger
from ipyrefine.core.check_findings import from_checks
from ipyrefine.core.deciding import quotes
from ipyrefine.core.events import VerdictReached
from ipyrefine.core.pending import proven, twin
from ipyrefine.core.records import (
    Answer,
    CriterionScore,
    Evidence,
    Finding,
    Outcome,
    Record,
    Severity,
    Status,
    Task,
    Verdict,
)
from ipyrefine.core.runs import Iteration, Run

FAIL_BELOW = 0.2  # under this score a text misses the task rather than needing improvement


class Judgement(Record):
    """A judge's reading of one text, before code turns it into a verdict.

    Attributes:
        criteria: one score per criterion.
        checklist: its answers to the task's checklist.
        fixed: ids of earlier findings the judge no longer sees.
        findings: weaknesses it names, with ids still to be given.
    """

    criteria: tuple[CriterionScore, ...]
    checklist: tuple[Answer, ...] = ()
    fixed: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class Settled(NamedTuple):
    """A verdict with the findings that bear on the text."""

    verdict: Verdict
    findings: tuple[Finding, ...]

    def reached(self, iteration: int) -> VerdictReached:
        """The event that an iteration got this verdict."""
        return VerdictReached(iteration=iteration, verdict=self.verdict, findings=self.findings)


def settle(run: Run, iteration: Iteration) -> Settled | None:
    """Derive a verdict without a judge; None when the evidence leaves it open."""
    if twin(run, iteration) is not None:
        return _inherit(run, iteration)
    findings = from_checks(run, iteration)
    failed = [e for e in iteration.evidence if e.required and e.passed is False]
    if failed:
        why = f"{failed[0].name} failed: {ledger.first_line(failed[0].detail)}"
        score = _mean(iteration.evidence)
        return _derive(run, iteration, findings, score=score, author="check", why=why)
    asked = any(f.author == "user" and f.actionable for f in findings)
    if proven(iteration) and not asked:
        findings = tuple(
            f.model_copy(update={"status": Status.RESOLVED}) if f.actionable and not f.check else f
            for f in findings
        )
        why = f"{', '.join(e.name for e in iteration.telling)} passed."
        score = _mean(iteration.telling)
        return _derive(run, iteration, findings, score=score, author="check", why=why)
    if ahead := _ahead(run, iteration):
        why = f"its checks say less for it than for iteration {ahead.number}"
        return unreadable(run, iteration, why)
    return None


def judge(run: Run, iteration: Iteration, judgement: Judgement) -> Settled:
    """Derive a verdict from a judgement beside the evidence, and update the findings."""
    findings = from_checks(run, iteration)
    findings = ledger.reviewed(iteration, findings, judgement.fixed)
    named = ledger.ground(judgement.findings, iteration.text)
    findings = tuple(ledger.back_again(finding, named) for finding in findings)
    findings, unmet = ledger.from_checklist(findings, judgement.checklist)
    new = (*ledger.unlisted(run, named, findings), *unmet)
    findings += ledger.number(run, new, findings)
    criteria = tuple(
        c.model_copy(update={"grounded": quotes(iteration.text, c.quote)})
        for c in judgement.criteria
    )
    score = weighted(run.task or Task(text=""), criteria)
    lowest = min(criteria, key=lambda c: c.score)
    why = f"{lowest.name} {lowest.score:.2f}: {lowest.reason}".rstrip(": ")
    return _derive(
        run,
        iteration,
        findings,
        score=score,
        author="model",
        why=why,
        criteria=criteria,
        checklist=judgement.checklist,
    )


def unreadable(run: Run, iteration: Iteration, why: str) -> Settled:
    """Derive the verdict of a text whose judge could not be read: not verified, never PASS."""
    findings = from_checks(run, iteration)
    verdict = Verdict(
        outcome=Outcome.NEEDS_IMPROVEMENT,
        score=None,
        unresolved=tuple(f.id for f in findings if f.actionable),
        why=f"Not verified: {why}",
        verified=False,
        user_met=_user_met(findings),
    )
    return Settled(verdict, findings)


def rederive(run: Run, iteration: Iteration) -> Settled:
    """Derive a verdict anew from the scores it had, and the findings and limits there are now."""
    before = iteration.verdict
    assert before is not None, "only a verdict there is can be derived anew"
    if twin(run, iteration) is not None:
        return _inherit(run, iteration)
    settled = _derive(
        run,
        iteration,
        iteration.findings,
        score=before.score,
        author=before.author,
        why="",
        criteria=before.criteria,
        checklist=before.checklist,
    )
    now = settled.verdict.model_copy(update={"verified": before.verified})
    if (now.outcome, now.unresolved) == (before.outcome, before.unresolved) or not now.why:
        freed = now.outcome is Outcome.PASS and before.outcome is not Outcome.PASS
        why = "Nothing that was named blocks it any more." if freed else before.why
        now = now.model_copy(update={"why": why})
    return Settled(now, settled.findings)


def weighted(task: Task, scores: Iterable[CriterionScore]) -> float:
    """Average criterion scores by the task's weights, 0..1."""
    weights = {criterion.name: criterion.weight for criterion in task.criteria}
    pairs = [(weights.get(s.name, 1.0), s.score) for s in scores]
    return sum(w * s for w, s in pairs) / sum(w for w, _ in pairs)


def _derive(
    run: Run,
    iteration: Iteration,
    findings: tuple[Finding, ...],
    *,
    score: float | None,
    author: str,
    why: str,
    criteria: tuple[CriterionScore, ...] = (),
    checklist: tuple[Answer, ...] = (),
) -> Settled:
    """The rule itself: what has to hold for PASS, and what makes a FAIL."""
    required = all(e.passed is not False for e in iteration.evidence if e.required)
    blocking = [f for f in findings if f.actionable and f.severity is Severity.BLOCKING]
    reached = score is not None and score >= run.limits.target
    overruled = (
        _overruled(score or 0.0, blocking, criteria) if reached and author == "model" else ""
    )
    outcome = Outcome.NEEDS_IMPROVEMENT
    if score is not None and score < FAIL_BELOW and author == "model":
        outcome = Outcome.FAIL
    elif reached and required and not blocking and not overruled:
        outcome = Outcome.PASS
    if blocking and required and author != "user":
        why = f"{blocking[0].criterion}: {blocking[0].problem}"
    if ruling := iteration.overridden:
        overruled = ""
        outcome, author = ruling.outcome or outcome, "user"
        why = ruling.text or "Your decision."
    verdict = Verdict.model_validate(
        {
            "outcome": outcome,
            "score": score,
            "criteria": criteria,
            "checklist": checklist,
            "unresolved": tuple(f.id for f in findings if f.actionable),
            "why": overruled or why,
            "author": author,
            "required_passed": required,
            "user_met": _user_met(findings),
            "overruled": overruled,
        }
    )
    return Settled(verdict, findings)


def _overruled(score: float, blocking: list[Finding], criteria: tuple[CriterionScore, ...]) -> str:
    """Say why a judge's passing score is not followed; empty if it is."""
    head = f"The judge's {score:.2f} is not followed"
    if blocking:
        return f"{head}, as {blocking[0].id} stands: {blocking[0].problem}"
    if false := [c for c in criteria if not c.grounded]:
        quote = false[0].quote.rstrip(" .")  # the sentence has a full stop of its own
        return f'{head}: it scores {false[0].name} on words that are not there, "{quote}".'
    return ""


def _inherit(run: Run, iteration: Iteration) -> Settled:
    """Carry the verdict of an earlier iteration over to a text that is the same."""
    earlier = twin(run, iteration)
    assert earlier is not None, "only a text that was there before inherits its verdict"
    again = f"The same text as iteration {earlier.number}."
    changed = "The revision changed nothing." if earlier.number == iteration.parent else again
    before = earlier.verdict or Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=None)
    return Settled(
        before.model_copy(update={"why": iteration.flaw or changed}),
        earlier.findings if earlier.number != iteration.parent else iteration.findings,
    )


def _user_met(findings: tuple[Finding, ...]) -> bool:
    return not any(f.author == "user" and f.actionable for f in findings)


def _ahead(run: Run, draft: Iteration) -> Iteration | None:
    """Another first text that the checks say more for, which makes judging this one needless."""
    if draft.parent is not None or draft.number in run.stale:
        return None
    met = [d for d in run.drafts if all(e.passed is not False for e in d.evidence if e.required)]
    best = max(met, key=_standing, default=draft)
    return best if _standing(best) > _standing(draft) else None


def _standing(iteration: Iteration) -> float:
    return _mean(iteration.telling) if iteration.telling else -1.0


def _mean(evidence: Iterable[Evidence]) -> float:
    scores = [
        float(e.passed) if e.score is None else e.score for e in evidence if e.passed is not None
    ]
    return sum(scores) / len(scores)
