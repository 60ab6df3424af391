"""Evidence, a reader's word and findings → verdict with its basis: computed, never just taken."""

from typing import NamedTuple

from ipyrefine.core import policy
from ipyrefine.core.events import VerdictReached
from ipyrefine.core.expectations import is_open_claim
from ipyrefine.core.findings import (
    apply_bare_verdict,
    first_line,
    ground,
    replace_feedback,
    update_from_checks,
)
from ipyrefine.core.model import (
    FEEDBACK,
    NOT_READY,
    Because,
    ByUser,
    CheckFailed,
    ChecksPassed,
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
from ipyrefine.core.run import Iteration, Run

FAIL_BELOW = 0.2  # under this score of the evaluator's a text misses the task


class Ruling(NamedTuple):
    """A verdict with the findings that bear on the text."""

    verdict: Verdict
    findings: tuple[Finding, ...]

    def event(self, iteration: int) -> VerdictReached:
        """Return the event that gives an iteration this verdict."""
        return VerdictReached(iteration=iteration, verdict=self.verdict, findings=self.findings)


def verify(
    run: Run, iteration: Iteration, judgement: Judgement | None = None, unread: str = ""
) -> Ruling | None:
    """Return a text's verdict; None where the user's evaluator has still to be asked.

    It is the first of these that holds. The user's word stands. The user's evaluator does not pass
    it: the verdict is its own. A required check failed; a finding blocks. Nothing
    passes over a No: a claim is disputed, the critic takes the text for not ready, or something
    could not be tried. Nothing that a PASS may rest on was seen, or nobody read the text. Else it
    passes, on the strongest basis that it has.

    `unread` is why the evaluator's reply could not be read.
    """
    if earlier := policy.find_duplicate(run, iteration):
        return _inherit(iteration, earlier)
    iteration = iteration.replace(findings=update_from_checks(run, iteration))
    basis, read = policy.basis_of(iteration), policy.is_read(run, iteration)
    word = _word(run, judgement)
    findings = _findings(run, iteration, judgement, word)
    untried = {e.name for e in iteration.evidence if e.not_run}  # what they found may be gone
    blocking = [f for f in findings if f.blocks and f.check not in untried]
    if word is Outcome.PASS:
        blocking = [f for f in blocking if f.check != FEEDBACK]
    fails = [e for e in iteration.evidence if e.failed]
    # What the user's own function says comes before what the task states.
    failed = next((e for e in [*policy.evaluations(iteration), *fails] if e.failed), None)
    objection = _objection(run, iteration, findings)
    score = policy.score_by_evidence(iteration) if failed or basis != "none" else None
    decided = basis in policy.OWN or any(e.basis in policy.OWN for e in fails)
    outcome = Outcome.NEEDS_IMPROVEMENT
    because: Because
    if judgement:
        score = judgement.score
    elif policy.has_evaluator(run) and not decided and not unread:
        return None
    if failed and word in (None, Outcome.PASS):
        outcome, basis = failed.stated or outcome, failed.basis
        because = CheckFailed(name=failed.name, line=first_line(failed.detail))
    elif judgement and word and (blocking or word is not Outcome.PASS or not objection):
        outcome = Outcome.NEEDS_IMPROVEMENT if blocking and word is Outcome.PASS else word
        basis = "evaluator"
        because = _still_open(blocking, word) if blocking else _in_words(run, findings, judgement)
    elif blocking and not unread:
        basis = "critique" if read and basis == "none" else basis
        because = _still_open(blocking)
    elif (
        objection
        or unread
        or (not read and (basis == "none" or policy.needs_reading(run, iteration)))
    ):
        because = objection or _undecided(run, iteration, unread)
        outcome, score = Outcome.NOT_JUDGED, None
        basis = "run" if not objection and _only_ran(iteration) else "none"
    elif basis == "none":
        outcome, basis = Outcome.PASS, "critique"
        held = sum(bool(r.passed and r.counts) for r in iteration.tests)
        reason = iteration.reason if iteration.ready else ""
        because = NothingFound(critic=run.setup.judge, tests=held, reason=reason)
    else:
        outcome = Outcome.PASS
        because = ChecksPassed(
            names=tuple(e.name for e in iteration.evidence if e.passed and e.grounds)
        )
    if override := iteration.override:
        outcome, basis, because = override.outcome, "user", ByUser(words=override.reason)
    verdict = Verdict(
        outcome=outcome,
        score=score,
        basis=basis,
        unresolved=tuple(f.id for f in findings if f.is_open),
        because=because,
        required_passed=failed is None,
        stated=judgement.stated if judgement else None,
    )
    return Ruling(verdict, findings)


def evaluated(
    run: Run, iteration: Iteration, judgement: Judgement | None, failure: str = ""
) -> Ruling:
    """Return a text's verdict after the user's evaluator was asked.

    Without a judgement its reply cannot be read, and `failure` says why.
    """
    if judgement:
        feedback = ground(judgement.findings, iteration.text)
        findings = replace_feedback(run, iteration.findings, feedback)
        iteration = iteration.replace(findings=findings)
    ruling = verify(run, iteration, judgement, "" if judgement else failure)
    assert ruling is not None, "the evaluator was asked"
    return ruling


def recompute(run: Run, iteration: Iteration) -> Ruling:
    """Recompute a verdict from the stored words on the text and its current findings."""
    before = iteration.verdict
    assert before is not None, "only an existing verdict can be computed again"
    ruling = verify(run, iteration, policy.judgement_of(run, iteration))
    if ruling is None:
        findings = update_from_checks(run, iteration)
        unresolved = tuple(f.id for f in findings if f.is_open)
        return Ruling(before.replace(unresolved=unresolved), findings)
    now = ruling.verdict
    if (now.outcome, now.unresolved) == (before.outcome, before.unresolved):
        now = now.replace(because=before.because)
    return Ruling(now, ruling.findings)


def _word(run: Run, judgement: Judgement | None) -> Outcome | None:
    if judgement is None:
        return None
    if judgement.stated or judgement.score is None:
        return judgement.stated
    if judgement.score >= run.limits.target:
        return Outcome.PASS
    return Outcome.FAIL if judgement.score < FAIL_BELOW else Outcome.NEEDS_IMPROVEMENT


def _findings(
    run: Run, iteration: Iteration, judgement: Judgement | None, word: Outcome | None
) -> tuple[Finding, ...]:
    findings = iteration.findings
    if judgement:
        if word is Outcome.PASS:  # it has no way to say that a finding is mended
            findings = _trust_revision(findings, iteration)
        feedback = any(f.actionable and f.check == FEEDBACK for f in findings)
        bare = ""
        if word is not Outcome.PASS and not feedback:
            bare = f"The evaluator says {judgement.stated}."
            if not judgement.stated:
                bare = f"It scored {judgement.score or 0:.2f} of {run.limits.target:.2f}."
        return apply_bare_verdict(run, findings, bare)
    if policy.has_evaluator(run):
        return findings
    if policy.is_read(run, iteration):
        return _with_refusal(run, iteration, findings)
    findings = _trust_revision(findings, iteration)
    if policy.basis_of(iteration) == "none":
        return findings
    return tuple(  # evidence settles it, so that these are suggestions
        f.replace(severity=Severity.MINOR) if f.blocks and f.author == "model" else f
        for f in findings
    )


def _with_refusal(
    run: Run, iteration: Iteration, findings: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """Return findings with the critic's No, if nothing else says what is to be changed."""
    refusal, said = _refusal(run, iteration), ""
    told = any((f.actionable or f.disputed) and f.is_open for f in findings if f.check != NOT_READY)
    if refusal is not None and not told:
        said = refusal or "The critic says that it isn't ready, without a reason."
    return apply_bare_verdict(run, findings, said, NOT_READY)


def _refusal(run: Run, iteration: Iteration) -> str | None:
    """Return the sentence of the critic's No on a text; None where there is no No.

    Where the text was to be read and could not be, a No on the one before it stands.
    """
    if not policy.reads(run):
        return None
    if reading := policy.reading_of(run, iteration):
        return reading.reason if reading.ready is False and not reading.taken_back else None
    if iteration.parent is None or not policy.is_to_read(run, iteration):
        return None
    parent = run.iterations[iteration.parent]
    blocking = (f.problem for f in parent.findings if f.blocks and f.author == "model")
    return next(blocking, None) or _refusal(run, parent)


def _dropped_test(run: Run, iteration: Iteration) -> str:
    """Return a test that was dropped after its critic called a text ready as if it passed."""
    reading = policy.reading_of(run, iteration) if policy.reads(run) else None
    if reading is None:
        return ""
    passed = {one.name for one in iteration.tests if one.passed}
    dropped = (
        f"{one.name}. {one.reason}".strip()
        for one in run.expectations
        if one.iteration == reading.number
        and (one.untried == "broken" or (one.upheld is False and one.name not in passed))
    )
    return next(dropped, "")


def _objection(run: Run, iteration: Iteration, findings: tuple[Finding, ...]) -> Undecided | None:
    """Return what a PASS may not pass over, if anything: a dispute, a No, or a part not tried."""
    if disputed := next((f for f in findings if f.is_open and f.disputed), None):
        problem = f"{disputed.id}: {disputed.problem}"
        return Undecided(why="disputed", detail=problem, finding=disputed.id)
    if (refusal := _refusal(run, iteration)) is not None:
        return Undecided(why="not_ready", detail=refusal)
    if dropped := _dropped_test(run, iteration):
        return Undecided(why="test_dropped", detail=dropped)
    passed = tuple(e.name for e in iteration.evidence if e.passed)
    if unable := next((e for e in iteration.evidence if e.not_run and e.required), None):
        return Undecided(why="not_run", detail=first_line(unable.detail), passed=passed)
    tests = {one.name for one in run.expectations if is_open_claim(one)}
    for result in iteration.tests:
        if result.name in tests and result.passed is None:
            line = f"{result.name} was not tried: {result.line}"
            return Undecided(why="not_run", detail=line)
    return None


def _trust_revision(findings: tuple[Finding, ...], iteration: Iteration) -> tuple[Finding, ...]:
    """Resolve the findings that the text was written for, except a check's.

    Nobody asked could say more, and the text is shown to the user.
    """
    return tuple(
        f.replace(status=Status.RESOLVED)
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


def _in_words(run: Run, findings: tuple[Finding, ...], judgement: Judgement) -> Because:
    feedback = next((f.problem for f in findings if f.check == FEEDBACK and f.actionable), "")
    if judgement.score is not None and judgement.stated is None and not feedback:
        return Scored(score=judgement.score, target=run.limits.target)
    return Said(outcome=judgement.stated, feedback=feedback)


def _undecided(run: Run, iteration: Iteration, unread: str) -> Undecided:
    """Return why nothing decides on a text, and what passed all the same."""
    unread = unread or (iteration.unread if policy.needs_reading(run, iteration) else "")
    if not unread and _only_ran(iteration):
        return Undecided(why="only_ran")
    passed = tuple(e.name for e in iteration.evidence if e.passed)
    if unread:
        return Undecided(why="unreadable", detail=unread, passed=passed)
    if run.limits.critique == "never":
        return Undecided(why="no_critic", passed=passed)
    if policy.reads(run) and policy.is_plain(run, iteration):
        return Undecided(why="plain", passed=passed)
    why = "not_read" if policy.needs_reading(run, iteration) else "weak_critic"
    return Undecided(why=why, passed=passed)


def _only_ran(iteration: Iteration) -> bool:
    found = [e for e in iteration.evidence if e.passed is not None]
    return all(e.passed and e.basis == "run" for e in found) and bool(found)


def _inherit(iteration: Iteration, earlier: Iteration) -> Ruling:
    before = earlier.verdict or Verdict(outcome=Outcome.NOT_JUDGED, score=None)
    from_parent = earlier.number == iteration.parent
    repeats = Repeats(iteration=earlier.number, of_parent=from_parent, failure=iteration.failure)
    if not from_parent:
        return Ruling(before.replace(because=repeats), earlier.findings)
    checked = {f.id: f for f in earlier.findings if f.author == "check"}
    findings = tuple(checked.get(f.id, f) for f in iteration.findings)
    return Ruling(before.replace(because=repeats), findings)
