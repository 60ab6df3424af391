"""Evidence, judgement and findings → verdict with its basis: computed, never a model's word."""

from collections.abc import Iterable
from typing import NamedTuple

from ipyrefine.core.events import VerdictReached
from ipyrefine.core.findings import (
    FEEDBACK,
    apply_bare_verdict,
    first_line,
    ground,
    replace_feedback,
    update_from_checks,
)
from ipyrefine.core.model import (
    Author,
    Basis,
    Because,
    BetterDraft,
    ByUser,
    CheckFailed,
    ChecksPassed,
    DraftsDiffer,
    Evidence,
    Finding,
    Freed,
    Judgement,
    NothingFound,
    Outcome,
    Repeats,
    Said,
    Scored,
    Severity,
    Status,
    StillOpen,
    Undecided,
    Verdict,
)
from ipyrefine.core.policy import find_duplicate, has_evaluator, reads, settled
from ipyrefine.core.run import Iteration, Run

FAIL_BELOW = 0.2  # under this score of the evaluator's a text misses the task
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
    """Return a text's verdict; None where the user's evaluator has the word."""
    if find_duplicate(run, iteration) is not None:
        return _inherit(run, iteration)
    findings = update_from_checks(run, iteration)
    failed = [e for e in iteration.evidence if e.failed]
    if failed:
        first = failed[0]
        because = CheckFailed(name=first.name, line=first_line(first.detail))
        score = _mean(iteration.evidence)
        return _compute(run, iteration, findings, because, score=score, basis=first.basis)
    if is_read(run, iteration):
        return _from_reading(run, iteration, findings)
    if iteration.critiqued and reads(run):
        unreadable = Undecided(why="unreadable", detail=iteration.unread)
        return not_judged(run, iteration, unreadable, findings)
    if settled(iteration):
        if not has_evaluator(run):
            findings = _trust_revision(findings, iteration, "user")
        if _user_findings_met(findings):
            return _settle(run, iteration, findings)
    elif contested := [e for e in iteration.evidence if e.contested]:
        differ = DraftsDiffer(line=first_line(contested[0].detail))
        return _compute(
            run, iteration, findings, differ, score=contested[0].score, basis="agreement"
        )
    if ahead := _better_draft(run, iteration):
        return not_judged(run, iteration, BetterDraft(iteration=ahead.number))
    if has_evaluator(run):
        return None
    return not_judged(run, iteration, _undecided(run, iteration))


def is_read(run: Run, iteration: Iteration) -> bool:
    """Return whether a critic read a text whose verdict that decides."""
    return iteration.critiqued and not iteration.unread and reads(run)


def _from_reading(run: Run, iteration: Iteration, findings: tuple[Finding, ...]) -> Ruling:
    """Return the verdict of a text that failed nothing and was read by a critic."""
    basis = basis_of(iteration)
    if basis not in ("tests", "function", "examples"):
        basis = "critique"
    held = sum(bool(r.passed) for e in iteration.evidence for r in e.results)
    because: Because = NothingFound(
        critic=run.setup.judge, tests=held, reason=iteration.reason if iteration.ready else ""
    )
    if basis != "critique":
        passed = (e.name for e in iteration.conclusive if e.passed and e.basis == basis)
        because = ChecksPassed(names=tuple(passed))
    score = _mean(iteration.conclusive) if basis != "critique" else None
    return _compute(run, iteration, findings, because, score=score, basis=basis, read=True)


def _settle(run: Run, iteration: Iteration, findings: tuple[Finding, ...]) -> Ruling:
    """Return the verdict of evidence that settles a text; other findings are suggestions."""
    findings = tuple(
        f.model_copy(update={"severity": Severity.MINOR}) if f.blocks and f.author == "model" else f
        for f in findings
    )
    passed = ChecksPassed(names=tuple(e.name for e in iteration.conclusive if e.grounds))
    score = _mean(iteration.conclusive)
    return _compute(run, iteration, findings, passed, score=score, basis=basis_of(iteration))


def _trust_revision(
    findings: tuple[Finding, ...], iteration: Iteration, *authors: Author
) -> tuple[Finding, ...]:
    """Return findings, those of some authors as resolved where the text was written for them.

    Nobody asked could say more, and the text is shown to the user.
    """
    return tuple(
        f.model_copy(update={"status": Status.RESOLVED})
        if f.author in authors and f.actionable and f.id in iteration.acted_on
        else f
        for f in findings
    )


def basis_of(iteration: Iteration) -> Basis:
    """Return the strongest basis among the checks that a text passed; ``none`` without any."""
    passed = {evidence.basis for evidence in iteration.evidence if evidence.passed}
    return next((basis for basis in _STRENGTH if basis in passed), "none")


def from_judgement(run: Run, iteration: Iteration, judgement: Judgement) -> Ruling:
    """Return the verdict of the user's evaluator, in the shape of its replies."""
    findings = update_from_checks(run, iteration)
    feedback = ground(judgement.findings, iteration.text)
    findings = replace_feedback(run, findings, feedback)
    stated, score = judgement.stated, judgement.score
    said: Because = Said(outcome=stated, feedback=feedback[0].problem if feedback else "")
    if not feedback and stated is None and score is not None:
        said = Scored(score=score, target=run.limits.target)
    passes = _reaches_target(run, stated, score)
    if passes:  # it has no way to say that a finding is mended
        findings = _trust_revision(findings, iteration, "user", "model")
    bare = "" if feedback or passes else _bare_verdict(stated, score, run.limits.target)
    findings = apply_bare_verdict(run, findings, bare)
    return _compute(run, iteration, findings, said, score=score, basis="evaluator", stated=stated)


def _undecided(run: Run, iteration: Iteration) -> Undecided:
    """Return why nothing decides on a text."""
    if unable := next((e for e in iteration.evidence if e.not_run), None):
        return Undecided(why="not_run", detail=first_line(unable.detail))
    if _only_ran(iteration):
        return Undecided(why="only_ran")
    if run.limits.critique == "never":
        return Undecided(why="no_critic")
    return Undecided(why="not_read" if reads(run) else "weak_critic")


def _only_ran(iteration: Iteration) -> bool:
    """Return whether all that the checks say of a text is that it runs."""
    found = iteration.conclusive
    return all(e.passed and e.basis == "run" for e in found) and bool(found)


def _bare_verdict(stated: Outcome | None, score: float | None, target: float) -> str:
    """Return what an evaluator without feedback leaves for the reviser to go by."""
    if stated:
        return f"The evaluator says {stated}."
    return "" if score is None else f"It scored {score:.2f} of {target:.2f}."


def not_judged(
    run: Run, iteration: Iteration, because: Because, findings: tuple[Finding, ...] | None = None
) -> Ruling:
    """Return the verdict of a text that nothing decides on.

    Args:
        run: the run.
        iteration: the text.
        because: why.
        findings: its findings; by default those of the checks and the ones it has.
    """
    findings = update_from_checks(run, iteration) if findings is None else findings
    ran = _only_ran(iteration) and not any(e.not_run for e in iteration.evidence)
    if isinstance(because, Undecided) and not ran:
        passed = tuple(e.name for e in iteration.conclusive if e.passed)
        because = because.model_copy(update={"passed": passed})
    verdict = Verdict(
        outcome=Outcome.NOT_JUDGED,
        score=None,
        basis="run" if ran else "none",
        unresolved=tuple(f.id for f in findings if f.actionable),
        because=because,
        user_findings_met=_user_findings_met(findings),
    )
    return Ruling(verdict, findings)


def recompute(run: Run, iteration: Iteration) -> Ruling:
    """Return a verdict again, from the scores it had and the findings and limits of now."""
    before = iteration.verdict
    assert before is not None, "only an existing verdict can be computed again"
    if find_duplicate(run, iteration) is not None:
        return _inherit(run, iteration)
    iteration = iteration.model_copy(update={"findings": update_from_checks(run, iteration)})
    failed = next((e for e in iteration.evidence if e.failed), None)
    if is_read(run, iteration) and failed is None:
        return _from_reading(run, iteration, iteration.findings)
    if before.outcome is Outcome.NOT_JUDGED and failed is None:
        unresolved = tuple(f.id for f in iteration.findings if f.actionable)
        met = _user_findings_met(iteration.findings)
        now = before.model_copy(update={"unresolved": unresolved, "user_findings_met": met})
        return Ruling(now, iteration.findings)
    findings = iteration.findings
    if before.basis == "evaluator":
        passes = _reaches_target(run, before.stated, before.score)
        said = passes or any(f.actionable and f.criterion == FEEDBACK for f in findings)
        bare = "" if said else _bare_verdict(before.stated, before.score, run.limits.target)
        findings = apply_bare_verdict(run, findings, bare)
    ruling = _compute(
        run,
        iteration,
        findings,
        CheckFailed(name=failed.name, line=first_line(failed.detail)) if failed else None,
        score=before.score,
        basis=before.basis,
        stated=before.stated,
    )
    now = ruling.verdict
    unchanged = (now.outcome, now.unresolved) == (before.outcome, before.unresolved)
    if unchanged or now.because is None:
        freed = now.passed and not before.passed
        now = now.model_copy(update={"because": Freed() if freed else before.because})
    return Ruling(now, ruling.findings)


def _compute(
    run: Run,
    iteration: Iteration,
    findings: tuple[Finding, ...],
    because: Because | None,
    *,
    score: float | None,
    basis: Basis,
    stated: Outcome | None = None,
    read: bool = False,
) -> Ruling:
    """Apply the rule itself: what a PASS needs, and what makes a FAIL."""
    required_passed = not any(e.failed for e in iteration.evidence)
    blocking = [f for f in findings if f.blocks]
    reached = read or _reaches_target(run, stated, score)
    if reached and not read:  # the evaluator's word or score stands, whatever else it remarks
        blocking = [f for f in blocking if f.criterion != FEEDBACK]
    contested = basis == "agreement" and any(e.contested for e in iteration.evidence)
    outcome = Outcome.NEEDS_IMPROVEMENT
    misses = score is not None and score < FAIL_BELOW and basis == "evaluator"
    if stated is Outcome.FAIL or (stated is None and misses):
        outcome = Outcome.FAIL
    elif reached and required_passed and not blocking and not contested:
        outcome = Outcome.PASS
    if blocking and required_passed:
        first = blocking[0]
        because = StillOpen(
            finding=first.id,
            criterion=first.criterion,
            problem=first.problem,
            over_score=reached and basis == "evaluator",
        )
    if override := iteration.override:
        outcome, basis, because = override.outcome, "user", ByUser(words=override.reason)
    verdict = Verdict(
        outcome=outcome,
        score=score,
        basis=basis,
        unresolved=tuple(f.id for f in findings if f.actionable),
        because=because,
        required_passed=required_passed,
        user_findings_met=_user_findings_met(findings),
        blocking=len(blocking) if read else 0,
        stated=stated,
    )
    return Ruling(verdict, findings)


def _reaches_target(run: Run, stated: Outcome | None, score: float | None) -> bool:
    """Return whether the evaluator's word says so, or else its score."""
    if stated:
        return stated is Outcome.PASS
    return score is not None and score >= run.limits.target


def _inherit(run: Run, iteration: Iteration) -> Ruling:
    """Return the verdict of the earlier iteration with the same text."""
    earlier = find_duplicate(run, iteration)
    assert earlier is not None, "only a repeated text inherits its verdict"
    before = earlier.verdict or Verdict(outcome=Outcome.NOT_JUDGED, score=None)
    from_parent = earlier.number == iteration.parent
    repeats = Repeats(iteration=earlier.number, of_parent=from_parent, failure=iteration.failure)
    return Ruling(
        before.model_copy(update={"because": repeats}),
        iteration.findings if from_parent else earlier.findings,
    )


def _user_findings_met(findings: tuple[Finding, ...]) -> bool:
    return not any(f.author == "user" and f.actionable for f in findings)


def _better_draft(run: Run, draft: Iteration) -> Iteration | None:
    """Return another draft that does better on the checks, so that this one needs no evaluator."""
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
