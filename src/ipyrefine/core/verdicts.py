"""Evidence, judgement and findings → verdict with its basis: computed, never a model's word."""

from collections.abc import Iterable
from typing import NamedTuple

from ipyrefine.core import findings as ledger
from ipyrefine.core.events import VerdictReached
from ipyrefine.core.model import (
    Answer,
    Basis,
    CriterionScore,
    Evidence,
    Finding,
    Judgement,
    Outcome,
    Severity,
    Status,
    Verdict,
)
from ipyrefine.core.policy import find_duplicate, judge_available, settled
from ipyrefine.core.run import Iteration, Run

FAIL_BELOW = 0.2  # under this number of the judge's a text misses the task
# From the strongest; a verdict names the first that its evidence has.
_STRENGTH: tuple[Basis, ...] = (
    "tests",
    "function",
    "schema",
    "agreement",
    "examples",
    "constraints",
)


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
        return _compute(run, iteration, findings, score=score, basis=failed[0].basis, reason=reason)
    if settled(iteration):
        if not judge_available(run):
            findings = _trust_revision(findings, iteration)
        if _user_findings_met(findings):
            return _settle(run, iteration, findings)
    elif contested := [e for e in iteration.evidence if e.contested]:
        reason = ledger.first_line(contested[0].detail)
        return _compute(
            run,
            iteration,
            findings,
            score=contested[0].score,
            basis="agreement",
            reason=reason,
        )
    if ahead := _better_draft(run, iteration):
        return not_judged(
            run, iteration, f"{run.mention(ahead.number).capitalize()} does better on the checks."
        )
    return None


def _settle(run: Run, iteration: Iteration, findings: tuple[Finding, ...]) -> Ruling:
    """Return the verdict of evidence that settles a text; other findings are suggestions."""
    findings = tuple(
        f.model_copy(update={"severity": Severity.MINOR}) if f.blocks and f.author == "model" else f
        for f in findings
    )
    reason = f"{', '.join(e.name for e in iteration.conclusive if e.grounds)} passed."
    score = _mean(iteration.conclusive)
    return _compute(run, iteration, findings, score=score, basis=basis_of(iteration), reason=reason)


def _trust_revision(findings: tuple[Finding, ...], iteration: Iteration) -> tuple[Finding, ...]:
    """Return the findings, those of the user's that the text was written for as resolved.

    Nobody but the user could say more, and the text is shown to them.
    """
    return tuple(
        f.model_copy(update={"status": Status.RESOLVED})
        if f.author == "user" and f.actionable and f.id in iteration.acted_on
        else f
        for f in findings
    )


def basis_of(iteration: Iteration) -> Basis:
    """Return the strongest basis among the checks that a text passed; ``none`` without any."""
    passed = {evidence.basis for evidence in iteration.evidence if evidence.passed}
    return next((basis for basis in _STRENGTH if basis in passed), "none")


def from_judgement(run: Run, iteration: Iteration, judgement: Judgement) -> Ruling:
    """Return the verdict of a judgement beside the evidence, with the findings it updates.

    Where the evidence settles the text, the judge's number lowers nothing.
    """
    findings = ledger.update_from_checks(run, iteration)
    if judgement.stated or not judgement.criteria:
        return _from_own_judge(run, iteration, findings, judgement)
    findings = ledger.resolve(findings, judgement.fixed)
    criteria, checklist = judgement.criteria, judgement.checklist
    number = judgement.score
    assert number is not None, "the built-in judge's answers come with their average"
    if settled(iteration) or not judge_available(run):
        if settled(iteration):
            ruling = _settle(run, iteration, findings)
        else:
            ruling = not_judged(run, iteration, undecided(run, iteration), findings)
        answers = {"criteria": criteria, "checklist": checklist, "opinion": number}
        return Ruling(ruling.verdict.model_copy(update=answers), ruling.findings)
    findings, unmet = ledger.apply_checklist(findings, checklist)
    findings += ledger.number(run, ledger.drop_known(run, unmet, findings), findings)
    target = run.limits.target
    # A text that reaches the target as a whole needs no finding for one score below it.
    findings, low = ledger.apply_scores(findings, criteria, target if number < target else 0.0)
    findings += ledger.number(run, low, findings)
    lowest = min(criteria, key=lambda c: c.score)
    return _compute(
        run,
        iteration,
        findings,
        score=number,
        basis="judge",
        reason=f"{lowest.name} {lowest.score:.2f}, target {target:.2f}.",
        criteria=criteria,
        checklist=checklist,
        opinion=number,
    )


def undecided(run: Run, iteration: Iteration) -> str:
    """Return why neither the evidence nor a judge decides on a text."""
    if reason := _not_run(iteration):
        return reason
    if _only_ran(iteration):
        return "Runs; nobody checked what it gives."
    if run.limits.opinion == "never":
        return "No judge was asked."
    return "The judge is too unreliable on such texts to decide."


def _not_run(iteration: Iteration) -> str:
    """Return why a check could not run a text; empty if none says so."""
    details = [ledger.first_line(e.detail) for e in iteration.evidence if e.passed is None]
    return next((detail for detail in details if detail.startswith("Not run")), "")


def _only_ran(iteration: Iteration) -> bool:
    """Return whether all that the checks say of a text is that it runs."""
    found = iteration.conclusive
    return all(e.passed and e.basis == "run" for e in found) and bool(found)


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
    if passes:  # it has no way to say that the user's wish is met
        findings = _trust_revision(findings, iteration)
    findings = ledger.apply_bare_verdict(run, findings, "" if feedback or passes else reason)
    return _compute(
        run,
        iteration,
        findings,
        score=judgement.score,
        basis="judge",
        reason=reason,
        stated=stated,
    )


def not_judged(
    run: Run, iteration: Iteration, reason: str, findings: tuple[Finding, ...] | None = None
) -> Ruling:
    """Return the verdict of a text that nothing decides on.

    Args:
        run: the run.
        iteration: the text.
        reason: why, as a sentence.
        findings: its findings; by default those of the checks beside the ones it has.
    """
    findings = ledger.update_from_checks(run, iteration) if findings is None else findings
    ran = _only_ran(iteration) and not _not_run(iteration)
    passed = [] if ran else [e for e in iteration.conclusive if e.passed]
    beside = f" Passed: {', '.join(e.name for e in passed)}." if passed else ""
    verdict = Verdict(
        outcome=Outcome.NOT_JUDGED,
        score=None,
        basis="run" if ran else "none",
        unresolved=tuple(f.id for f in findings if f.actionable),
        reason=reason + beside,
        user_findings_met=_user_findings_met(findings),
    )
    return Ruling(verdict, findings)


def recompute(run: Run, iteration: Iteration) -> Ruling:
    """Return a verdict again, from the scores it had and the findings and limits of now."""
    before = iteration.verdict
    assert before is not None, "only an existing verdict can be computed again"
    if find_duplicate(run, iteration) is not None:
        return _inherit(run, iteration)
    if before.outcome is Outcome.NOT_JUDGED:
        unresolved = tuple(f.id for f in iteration.findings if f.actionable)
        met = _user_findings_met(iteration.findings)
        now = before.model_copy(update={"unresolved": unresolved, "user_findings_met": met})
        return Ruling(now, iteration.findings)
    ruling = _compute(
        run,
        iteration,
        _findings_of_now(run, iteration, before),
        score=before.score,
        basis="judge" if before.is_opinion else before.basis,
        reason="",
        criteria=before.criteria,
        checklist=before.checklist,
        opinion=before.opinion,
        stated=before.stated,
    )
    now = ruling.verdict
    unchanged = (now.outcome, now.unresolved) == (before.outcome, before.unresolved)
    if unchanged or not now.reason:
        freed = now.passed and not before.passed
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


def _compute(
    run: Run,
    iteration: Iteration,
    findings: tuple[Finding, ...],
    *,
    score: float | None,
    basis: Basis,
    reason: str,
    criteria: tuple[CriterionScore, ...] = (),
    checklist: tuple[Answer, ...] = (),
    opinion: float | None = None,
    stated: Outcome | None = None,
) -> Ruling:
    """Apply the rule itself: what a PASS needs, and what makes a FAIL."""
    required_passed = not any(e.failed for e in iteration.evidence)
    blocking = [f for f in findings if f.blocks]
    reached = _reaches_target(run, stated, score)
    if reached:  # the word or score of a judge of the user's stands, whatever it remarks beside it
        blocking = [f for f in blocking if f.criterion != ledger.FEEDBACK]
    contested = basis == "agreement" and any(e.contested for e in iteration.evidence)
    outcome = Outcome.NEEDS_IMPROVEMENT
    misses = score is not None and score < FAIL_BELOW and basis == "judge"
    if stated is Outcome.FAIL or (stated is None and misses):
        outcome = Outcome.FAIL
    elif reached and required_passed and not blocking and not contested:
        outcome = Outcome.PASS
        if basis == "judge" and basis_of(iteration) == "constraints":
            basis = "constraints"
    if blocking and required_passed:
        reason = f"{blocking[0].criterion}: {blocking[0].problem}"
        if reached and basis == "judge":
            reason = f"The judge's score passes, but {blocking[0].id} still blocks. {reason}"
    if override := iteration.override:
        outcome, basis = override.outcome, "user"
        reason = override.verdict_reason
    verdict = Verdict(
        outcome=outcome,
        score=score,
        basis=basis,
        criteria=criteria,
        checklist=checklist,
        opinion=opinion,
        unresolved=tuple(f.id for f in findings if f.actionable),
        reason=reason,
        required_passed=required_passed,
        user_findings_met=_user_findings_met(findings),
        stated=stated,
    )
    return Ruling(verdict, findings)


def _reaches_target(run: Run, stated: Outcome | None, score: float | None) -> bool:
    """Return whether a judge's word says so, or else its score."""
    if stated:
        return stated is Outcome.PASS
    return score is not None and score >= run.limits.target


def _inherit(run: Run, iteration: Iteration) -> Ruling:
    """Return the verdict of the earlier iteration with the same text."""
    earlier = find_duplicate(run, iteration)
    assert earlier is not None, "only a repeated text inherits its verdict"
    before = earlier.verdict or Verdict(outcome=Outcome.NOT_JUDGED, score=None)
    from_parent = earlier.number == iteration.parent
    reason = (
        "The revision changed nothing."
        if from_parent
        else f"The same text as {run.mention(earlier.number)}."
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
    return _mean(iteration.conclusive) if any(e.grounds for e in iteration.conclusive) else -1.0


def _mean(evidence: Iterable[Evidence]) -> float:
    scores = [
        float(e.passed) if e.score is None else e.score
        for e in evidence
        if e.passed is not None and e.grounds
    ]
    return sum(scores) / len(scores)
