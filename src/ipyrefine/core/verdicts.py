"""Evidence, a reader's word and findings → verdict with its basis: computed, never just taken."""

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
    Because,
    BetterDraft,
    ByUser,
    CheckFailed,
    ChecksPassed,
    DraftsDiffer,
    Evidence,
    Finding,
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
from ipyrefine.core.policy import (
    OWN,
    basis_of,
    find_duplicate,
    has_evaluator,
    is_read,
    needs_reading,
)
from ipyrefine.core.run import Iteration, Run

FAIL_BELOW = 0.2  # under this score of the evaluator's a text misses the task


class Ruling(NamedTuple):
    """A verdict with the findings that bear on the text."""

    verdict: Verdict
    findings: tuple[Finding, ...]

    def event(self, iteration: int) -> VerdictReached:
        """Return the event that gives an iteration this verdict."""
        return VerdictReached(iteration=iteration, verdict=self.verdict, findings=self.findings)


def verify(run: Run, iteration: Iteration, said: Judgement | None = None) -> Ruling | None:
    """Return a text's verdict, by the first of these that holds.

    The user's word stands. A required check failed; a finding blocks; drafts differ. The user's
    evaluator decides. Nothing that a PASS may rest on was seen, or nobody read the text. Else it
    passes, on the strongest basis that it has.

    Args:
        run: the run.
        iteration: the text.
        said: what the user's evaluator says of it.

    Returns:
        The verdict with the findings of now; None where the evaluator has still to be asked.
    """
    if find_duplicate(run, iteration) is not None:
        return _inherit(run, iteration)
    basis, read = basis_of(iteration), is_read(run, iteration)
    word = _word(run, said)
    findings = _findings(run, iteration, said, word)
    untried = {e.name for e in iteration.evidence if e.not_run}  # what they found is not known now
    blocking = [f for f in findings if f.blocks and f.check not in untried]
    if word is Outcome.PASS:
        blocking = [f for f in blocking if f.criterion != FEEDBACK]
    failed = next((e for e in iteration.evidence if e.failed), None)
    differ = next((e for e in iteration.evidence if e.drafts == "differ"), None)
    score = _mean(iteration.conclusive) if basis != "none" else None
    outcome = Outcome.NEEDS_IMPROVEMENT
    because: Because
    if failed:
        basis, score = failed.basis, _mean(iteration.evidence)
        because = CheckFailed(name=failed.name, line=first_line(failed.detail))
    elif has_evaluator(run) and said is None and basis not in OWN and not differ:
        if basis == "none" and (ahead := _better_draft(run, iteration)):
            return _not_judged(iteration, findings, BetterDraft(iteration=ahead.number))
        return None
    elif said and word:
        outcome, score = word, said.score
        basis = basis if basis in OWN else "evaluator"
        because = _still_open(blocking, word) if blocking else _said(run, findings, said)
        if blocking and word is Outcome.PASS:
            outcome = Outcome.NEEDS_IMPROVEMENT
    elif blocking:
        basis = "critique" if read and basis == "none" else basis
        because = _still_open(blocking)
    elif differ and basis not in OWN:
        basis, score = "agreement", differ.score
        because = DraftsDiffer(line=first_line(differ.detail))
    elif read and basis == "none":
        outcome, basis = Outcome.PASS, "critique"
        held = sum(bool(r.passed) for e in iteration.evidence for r in e.results)
        reason = iteration.reason if iteration.ready else ""
        because = NothingFound(critic=run.setup.judge, tests=held, reason=reason)
    elif basis == "none" and (ahead := _better_draft(run, iteration)):
        return _not_judged(iteration, findings, BetterDraft(iteration=ahead.number))
    elif basis == "none" or (needs_reading(run, iteration) and not read):
        return _not_judged(iteration, findings, _undecided(run, iteration))
    else:
        outcome = Outcome.PASS
        passed = (e.name for e in iteration.evidence if e.passed and e.grounds)
        because = ChecksPassed(names=tuple(passed))
    if override := iteration.override:
        outcome, basis, because = override.outcome, "user", ByUser(words=override.reason)
    verdict = Verdict(
        outcome=outcome,
        score=score,
        basis=basis,
        unresolved=tuple(f.id for f in findings if f.actionable),
        because=because,
        required_passed=failed is None,
        user_findings_met=_user_findings_met(findings),
        blocking=len(blocking) if read else 0,
        stated=said.stated if said else None,
    )
    return Ruling(verdict, findings)


def evaluated(run: Run, iteration: Iteration, said: Judgement) -> Ruling:
    """Return the verdict of a text on which the user's evaluator has just given its word."""
    feedback = ground(said.findings, iteration.text)
    findings = replace_feedback(run, iteration.findings, feedback)
    ruling = verify(run, iteration.model_copy(update={"findings": findings}), said)
    assert ruling is not None, "the evaluator was asked"
    return ruling


def unreadable(run: Run, iteration: Iteration, failure: str) -> Ruling:
    """Return the verdict of a text whose evaluator gave a reply that cannot be read."""
    findings = update_from_checks(run, iteration)
    return _not_judged(iteration, findings, Undecided(why="unreadable", detail=failure))


def recompute(run: Run, iteration: Iteration) -> Ruling:
    """Return a verdict again, from what was said of the text, and the findings of now."""
    before = iteration.verdict
    assert before is not None, "only an existing verdict can be computed again"
    spoke = before.required_passed and (before.stated or before.score is not None)
    said = Judgement(stated=before.stated, score=before.score) if spoke else None
    ruling = verify(run, iteration, said if has_evaluator(run) else None)
    if ruling is None:
        findings = update_from_checks(run, iteration)
        unresolved = tuple(f.id for f in findings if f.actionable)
        met = _user_findings_met(findings)
        now = before.model_copy(update={"unresolved": unresolved, "user_findings_met": met})
        return Ruling(now, findings)
    now = ruling.verdict
    if (now.outcome, now.unresolved) == (before.outcome, before.unresolved):
        now = now.model_copy(update={"because": before.because})
    return Ruling(now, ruling.findings)


def _word(run: Run, said: Judgement | None) -> Outcome | None:
    """Return what the user's evaluator makes of a text, by its word or else its score."""
    if said is None:
        return None
    if said.stated or said.score is None:
        return said.stated
    if said.score >= run.limits.target:
        return Outcome.PASS
    return Outcome.FAIL if said.score < FAIL_BELOW else Outcome.NEEDS_IMPROVEMENT


def _findings(
    run: Run, iteration: Iteration, said: Judgement | None, word: Outcome | None
) -> tuple[Finding, ...]:
    """Return the findings of a text as they stand beside its evidence and what is said of it."""
    findings = update_from_checks(run, iteration)
    if said:
        if word is Outcome.PASS:  # it has no way to say that a finding is mended
            findings = _trust_revision(findings, iteration)
        told = any(f.actionable and f.criterion == FEEDBACK for f in findings)
        bare = "" if told or word is Outcome.PASS else _bare_word(run, said)
        return apply_bare_verdict(run, findings, bare)
    if is_read(run, iteration) or has_evaluator(run):
        return findings
    findings = _trust_revision(findings, iteration)
    if basis_of(iteration) == "none":
        return findings
    minor = {"severity": Severity.MINOR}  # evidence settles it, so that these are suggestions
    return tuple(
        f.model_copy(update=minor) if f.blocks and f.author == "model" else f for f in findings
    )


def _trust_revision(findings: tuple[Finding, ...], iteration: Iteration) -> tuple[Finding, ...]:
    """Return findings, as resolved those that the text was written for, but for a check's.

    Nobody asked could say more, and the text is shown to the user.
    """
    return tuple(
        f.model_copy(update={"status": Status.RESOLVED})
        if f.author != "check" and f.actionable and f.id in iteration.acted_on
        else f
        for f in findings
    )


def _still_open(blocking: list[Finding], word: Outcome | None = None) -> StillOpen:
    first = blocking[0]
    return StillOpen(
        finding=first.id,
        criterion=first.criterion,
        problem=first.problem,
        over_score=word is Outcome.PASS,
    )


def _said(run: Run, findings: Iterable[Finding], said: Judgement) -> Because:
    """Return what the user's evaluator said, in its own words where it gave any."""
    feedback = next((f.problem for f in findings if f.criterion == FEEDBACK and f.actionable), "")
    if said.score is not None and said.stated is None and not feedback:
        return Scored(score=said.score, target=run.limits.target)
    return Said(outcome=said.stated, feedback=feedback)


def _bare_word(run: Run, said: Judgement) -> str:
    """Return what an evaluator without feedback leaves for the reviser to go by."""
    if said.stated:
        return f"The evaluator says {said.stated}."
    return "" if said.score is None else f"It scored {said.score:.2f} of {run.limits.target:.2f}."


def _undecided(run: Run, iteration: Iteration) -> Undecided:
    """Return why nothing decides on a text."""
    if iteration.critiqued and needs_reading(run, iteration):
        return Undecided(why="unreadable", detail=iteration.unread)
    if unable := next((e for e in iteration.evidence if e.not_run), None):
        return Undecided(why="not_run", detail=first_line(unable.detail))
    if _only_ran(iteration):
        return Undecided(why="only_ran")
    if run.limits.critique == "never":
        return Undecided(why="no_critic")
    return Undecided(why="not_read" if needs_reading(run, iteration) else "weak_critic")


def _only_ran(iteration: Iteration) -> bool:
    """Return whether all that the checks say of a text is that it runs."""
    found = iteration.conclusive
    return all(e.passed and e.basis == "run" for e in found) and bool(found)


def _not_judged(iteration: Iteration, findings: tuple[Finding, ...], because: Because) -> Ruling:
    """Return the verdict of a text that nothing decides on."""
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
    if override := iteration.override:
        given = {"outcome": override.outcome, "basis": "user"}
        verdict = verdict.model_copy(update={**given, "because": ByUser(words=override.reason)})
    return Ruling(verdict, findings)


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
