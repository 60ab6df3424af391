"""Evidence, criterion scores and findings → Verdict: computed here, never a model's word."""

from collections.abc import Iterable
from typing import NamedTuple

from ipyrefine.core import findings as ledger
from ipyrefine.core.decisions import contains_quote
from ipyrefine.core.events import VerdictReached
from ipyrefine.core.model import (
    Answer,
    Author,
    CriterionScore,
    Evidence,
    Finding,
    Judgement,
    Outcome,
    Status,
    Task,
    Verdict,
)
from ipyrefine.core.policy import find_duplicate, settled
from ipyrefine.core.run import Iteration, Run

FAIL_BELOW = 0.2  # under this score a text misses the task rather than needing improvement


class Ruling(NamedTuple):
    """A verdict with the findings that bear on the text."""

    verdict: Verdict
    findings: tuple[Finding, ...]

    def event(self, iteration: int) -> VerdictReached:
        """Return the event that gives an iteration this verdict."""
        return VerdictReached(iteration=iteration, verdict=self.verdict, findings=self.findings)


def from_evidence(run: Run, iteration: Iteration) -> Ruling | None:
    """Return the verdict that needs no judge; None when the evidence leaves it open."""
    if find_duplicate(run, iteration) is not None:
        return _inherit(run, iteration)
    findings = ledger.update_from_checks(run, iteration)
    failed = [e for e in iteration.evidence if e.failed]
    if failed:
        reason = f"{failed[0].name} failed: {ledger.first_line(failed[0].detail)}"
        score = _mean(iteration.evidence)
        return _compute(run, iteration, findings, score=score, author="check", reason=reason)
    user_asks = any(f.author == "user" and f.actionable for f in findings)
    if settled(iteration) and not user_asks:
        findings = tuple(
            f.model_copy(update={"status": Status.RESOLVED}) if f.actionable and not f.check else f
            for f in findings
        )
        reason = f"{', '.join(e.name for e in iteration.conclusive)} passed."
        score = _mean(iteration.conclusive)
        return _compute(run, iteration, findings, score=score, author="check", reason=reason)
    if ahead := _better_draft(run, iteration):
        return not_verified(run, iteration, f"iteration {ahead.number} does better on the checks")
    return None


def from_judgement(run: Run, iteration: Iteration, judgement: Judgement) -> Ruling:
    """Return the verdict of a judgement beside the evidence, with the findings it updates."""
    findings = ledger.update_from_checks(run, iteration)
    if judgement.stated or not judgement.criteria:
        return _from_own_judge(run, iteration, findings, judgement)
    findings = ledger.resolve(findings, judgement.fixed)
    named = ledger.ground(judgement.findings, iteration.text)
    findings = tuple(ledger.regress(finding, named) for finding in findings)
    findings, unmet = ledger.apply_checklist(findings, judgement.checklist)
    new = (*ledger.drop_known(run, named, findings), *unmet)
    findings += ledger.number(run, new, findings)
    criteria = tuple(
        c.model_copy(update={"grounded": contains_quote(iteration.text, c.quote)})
        for c in judgement.criteria
    )
    score = weighted_score(run.task, criteria)
    target = run.limits.target
    # A text that reaches the target as a whole needs no finding for one score below it.
    findings, low = ledger.apply_scores(findings, criteria, target if score < target else 0.0)
    findings += ledger.number(run, low, findings)
    lowest = min(criteria, key=lambda c: c.score)
    return _compute(
        run,
        iteration,
        findings,
        score=score,
        author="model",
        reason=f"{lowest.name} {lowest.score:.2f}: {lowest.reason}".rstrip(": "),
        criteria=criteria,
        checklist=judgement.checklist,
    )


def _from_own_judge(
    run: Run, iteration: Iteration, findings: tuple[Finding, ...], judgement: Judgement
) -> Ruling:
    """Return the verdict of a judge prompt of the user's, in the shape that it replies in."""
    feedback = ledger.ground(judgement.findings, iteration.text)
    findings = ledger.replace_feedback(run, findings, feedback)
    stated = judgement.stated
    reason = feedback[0].problem if feedback else f"The judge says {stated}." if stated else ""
    if not reason and judgement.score is not None:
        reason = f"It scored {judgement.score:.2f} of {run.limits.target:.2f}."
    passes = _reaches_target(run, stated, judgement.score)
    findings = ledger.apply_bare_verdict(run, findings, "" if feedback or passes else reason)
    return _compute(
        run,
        iteration,
        findings,
        score=judgement.score,
        author="model",
        reason=reason,
        stated=stated,
    )


def not_verified(run: Run, iteration: Iteration, why: str) -> Ruling:
    """Return the verdict of a text that could not be judged: not verified, never PASS.

    Args:
        run: the run.
        iteration: the text.
        why: a clause that says why, without a full stop.
    """
    findings = ledger.update_from_checks(run, iteration)
    verdict = Verdict(
        outcome=Outcome.NEEDS_IMPROVEMENT,
        score=None,
        unresolved=tuple(f.id for f in findings if f.actionable),
        reason=f"Couldn't verify: {why}.",
        verified=False,
        user_findings_met=_user_findings_met(findings),
    )
    return Ruling(verdict, findings)


def recompute(run: Run, iteration: Iteration) -> Ruling:
    """Return a verdict again, from the scores it had and the findings and limits of now."""
    before = iteration.verdict
    assert before is not None, "only an existing verdict can be computed again"
    if find_duplicate(run, iteration) is not None:
        return _inherit(run, iteration)
    ruling = _compute(
        run,
        iteration,
        _findings_of_now(run, iteration, before),
        score=before.score,
        author=before.author,
        reason="",
        criteria=before.criteria,
        checklist=before.checklist,
        stated=before.stated,
    )
    now = ruling.verdict.model_copy(update={"verified": before.verified})
    unchanged = (now.outcome, now.unresolved) == (before.outcome, before.unresolved)
    if unchanged or not now.reason:
        freed = now.outcome is Outcome.PASS and before.outcome is not Outcome.PASS
        now = now.model_copy(update={"reason": _FREED if freed else before.reason})
    return Ruling(now, ruling.findings)


_FREED = "Nothing blocks it any more."


def _findings_of_now(run: Run, iteration: Iteration, before: Verdict) -> tuple[Finding, ...]:
    """Return the findings of a text, those about its scores by the target of now."""
    target = run.limits.target
    low = before.score is not None and before.score < target and not iteration.override
    known, new = ledger.apply_scores(iteration.findings, before.criteria, target if low else 0.0)
    settled_by_user = {f.criterion for f in known if f.status is Status.DISMISSED}
    new = tuple(finding for finding in new if finding.criterion not in settled_by_user)
    return known + ledger.number(run, new, known)


def weighted_score(task: Task, scores: Iterable[CriterionScore]) -> float:
    """Return the average of criterion scores by the task's weights, 0..1."""
    weights = {criterion.name: criterion.weight for criterion in task.criteria}
    pairs = [(weights.get(s.name, 1.0), s.score) for s in scores]
    return sum(w * s for w, s in pairs) / sum(w for w, _ in pairs)


def _compute(
    run: Run,
    iteration: Iteration,
    findings: tuple[Finding, ...],
    *,
    score: float | None,
    author: Author,
    reason: str,
    criteria: tuple[CriterionScore, ...] = (),
    checklist: tuple[Answer, ...] = (),
    stated: Outcome | None = None,
) -> Ruling:
    """Apply the rule itself: what a PASS needs, and what makes a FAIL."""
    required_passed = not any(e.failed for e in iteration.evidence)
    blocking = [f for f in findings if f.blocks]
    reached = _reaches_target(run, stated, score)
    if reached:  # the word or score of a judge of the user's stands, whatever it remarks beside it
        blocking = [f for f in blocking if f.criterion != ledger.FEEDBACK]
    overruled = _overruled(blocking, criteria) if reached and author == "model" else ""
    outcome = Outcome.NEEDS_IMPROVEMENT
    misses = score is not None and score < FAIL_BELOW and author == "model"
    if stated is Outcome.FAIL or (stated is None and misses):
        outcome = Outcome.FAIL
    elif reached and required_passed and not blocking and not overruled:
        outcome = Outcome.PASS
    if blocking and required_passed and author != "user":
        reason = f"{blocking[0].criterion}: {blocking[0].problem}"
    if override := iteration.override:
        outcome, author, overruled = override.outcome, "user", ""
        reason = override.verdict_reason
    verdict = Verdict(
        outcome=outcome,
        score=score,
        criteria=criteria,
        checklist=checklist,
        unresolved=tuple(f.id for f in findings if f.actionable),
        reason=overruled or reason,
        author=author,
        required_passed=required_passed,
        user_findings_met=_user_findings_met(findings),
        overruled=overruled,
        stated=stated,
    )
    return Ruling(verdict, findings)


def _reaches_target(run: Run, stated: Outcome | None, score: float | None) -> bool:
    """Return whether a judge's word says so, or else its score."""
    if stated:
        return stated is Outcome.PASS
    return score is not None and score >= run.limits.target


def _overruled(blocking: list[Finding], criteria: tuple[CriterionScore, ...]) -> str:
    """Return why a judge's passing score does not count; empty if it does."""
    if blocking:
        return f"The judge's score passes, but {blocking[0].id} still blocks: {blocking[0].problem}"
    if false := [c for c in criteria if not c.grounded]:
        quote = false[0].quote.rstrip(" .")  # the sentence has a full stop of its own
        return (
            f'Judge unreliable here: its quote for {false[0].name} isn\'t in the text, "{quote}".'
        )
    return ""


def _inherit(run: Run, iteration: Iteration) -> Ruling:
    """Return the verdict of the earlier iteration with the same text."""
    earlier = find_duplicate(run, iteration)
    assert earlier is not None, "only a repeated text inherits its verdict"
    before = earlier.verdict or Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=None)
    from_parent = earlier.number == iteration.parent
    reason = (
        "The revision changed nothing."
        if from_parent
        else f"The same text as iteration {earlier.number}."
    )
    return Ruling(
        before.model_copy(update={"reason": iteration.failure or reason}),
        iteration.findings if from_parent else earlier.findings,
    )


def _user_findings_met(findings: tuple[Finding, ...]) -> bool:
    return not any(f.author == "user" and f.actionable for f in findings)


def _better_draft(run: Run, draft: Iteration) -> Iteration | None:
    """Return another draft that does better on the checks, so that this one needs no judge."""
    if draft.parent is not None or draft.number in run.stale:
        return None
    met = [d for d in run.drafts if not any(e.failed for e in d.evidence)]
    best = max(met, key=_check_score, default=draft)
    return best if _check_score(best) > _check_score(draft) else None


def _check_score(iteration: Iteration) -> float:
    return _mean(iteration.conclusive) if iteration.conclusive else -1.0


def _mean(evidence: Iterable[Evidence]) -> float:
    scores = [
        float(e.passed) if e.score is None else e.score for e in evidence if e.passed is not None
    ]
    return sum(scores) / len(scores)
