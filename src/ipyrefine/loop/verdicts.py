"""Evidence, criterion scores and findings → Verdict: computed here, never taken on a word."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ipyrefine.loop.deciding import new_id, quotes
from ipyrefine.loop.records import (
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
from ipyrefine.loop.runs import Iteration, Run
from ipyrefine.loop.stopping import unchanged

ALIKE = 0.7  # share of words in common from which two problems are one
FAIL_BELOW = 0.2  # under this score a text misses the task rather than needing improvement


class Judgement(Record):
    """A judge's reading of one text, before code turns it into a verdict.

    Attributes:
        criteria: one score per criterion.
        fixed: ids of earlier findings the judge no longer sees.
        findings: weaknesses it names, with ids still to be given.
    """

    criteria: tuple[CriterionScore, ...]
    fixed: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


class Settled(NamedTuple):
    """A verdict with the findings that bear on the text."""

    verdict: Verdict
    findings: tuple[Finding, ...]


def settle(run: Run, iteration: Iteration) -> Settled | None:
    """Derive a verdict without a judge; None when the evidence leaves it open."""
    if unchanged(run, iteration):
        return _inherit(run, iteration)
    findings = check_findings(run, iteration)
    failed = [e for e in iteration.evidence if e.required and e.passed is False]
    if failed:
        why = f"{failed[0].name} failed: {first_line(failed[0].detail)}"
        return _derive(run, iteration, findings, _mean(iteration.evidence), (), "check", why)
    telling = [e for e in iteration.evidence if e.passed is not None]
    asked = any(f.author == "user" and f.actionable for f in findings)
    if telling and all(e.decisive for e in telling) and not asked:
        findings = tuple(
            f.model_copy(update={"status": Status.RESOLVED}) if f.actionable else f
            for f in findings
        )
        why = f"{', '.join(e.name for e in telling)} passed."
        return _derive(run, iteration, findings, _mean(telling), (), "check", why)
    return None


def judge(run: Run, iteration: Iteration, judgement: Judgement) -> Settled:
    """Derive a verdict from a judgement beside the evidence, and update the findings."""
    findings = _review(check_findings(run, iteration), judgement.fixed)
    named = ground(judgement.findings, iteration.text)
    findings = tuple(_back_again(finding, named) for finding in findings)
    findings += number(run, unlisted(run, named, findings), findings)
    score = weighted(run.task or Task(text=""), judgement.criteria)
    lowest = min(judgement.criteria, key=lambda c: c.score)
    why = f"{lowest.name} {lowest.score:.2f}: {lowest.reason}".rstrip(": ")
    return _derive(run, iteration, findings, score, judgement.criteria, "model", why)


def unreadable(run: Run, iteration: Iteration, why: str) -> Settled:
    """Derive the verdict of a text whose judge could not be read: not verified, never PASS."""
    findings = check_findings(run, iteration)
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
    if unchanged(run, iteration):
        return _inherit(run, iteration)
    settled = _derive(
        run, iteration, iteration.findings, before.score, before.criteria, before.author, ""
    )
    now = settled.verdict.model_copy(update={"verified": before.verified})
    if (now.outcome, now.unresolved) == (before.outcome, before.unresolved) or not now.why:
        freed = now.outcome is Outcome.PASS and before.outcome is not Outcome.PASS
        why = "Nothing that was named blocks it any more." if freed else before.why
        now = now.model_copy(update={"why": why})
    return Settled(now, settled.findings)


def ground(findings: Iterable[Finding], text: str) -> tuple[Finding, ...]:
    """Mark each finding whose quote is not in the text; white space is compared loosely."""
    return tuple(
        finding.model_copy(update={"grounded": quotes(text, finding.quote)}) for finding in findings
    )


def number(
    run: Run, findings: Iterable[Finding], beside: Iterable[Finding] = ()
) -> tuple[Finding, ...]:
    """Give findings the next ids that neither the run nor the findings beside them have."""
    taken = {finding.id for finding in (*every_finding(run), *beside)}
    return tuple(
        finding.model_copy(update={"id": f"f{len(taken) + offset}"})
        for offset, finding in enumerate(findings, start=1)
    )


def check_findings(run: Run, iteration: Iteration) -> tuple[Finding, ...]:
    """Bring the checks' own findings up to date: one per failed required check."""
    by_check = {f.criterion: f for f in iteration.findings if f.author == "check"}
    findings = {f.id: f for f in iteration.findings}
    for evidence in iteration.evidence:
        old = by_check.get(evidence.name)
        if evidence.passed is False and evidence.required:
            finding = _failed(evidence, old, new_id(run, len(findings) - len(iteration.findings)))
            findings[finding.id] = finding
        elif old and evidence.passed:
            findings[old.id] = old.model_copy(update={"status": Status.RESOLVED})
    return tuple(findings.values())


def weighted(task: Task, scores: Iterable[CriterionScore]) -> float:
    """Average criterion scores by the task's weights, 0..1."""
    weights = {criterion.name: criterion.weight for criterion in task.criteria}
    pairs = [(weights.get(s.name, 1.0), s.score) for s in scores]
    return sum(w * s for w, s in pairs) / sum(w for w, _ in pairs)


def unlisted(run: Run, new: Iterable[Finding], known: Iterable[Finding]) -> tuple[Finding, ...]:
    """Drop new findings that repeat one another, a known one, or one the user dismissed."""
    dismissed = [f for f in every_finding(run) if f.status is Status.DISMISSED]
    seen = [*known, *dismissed]
    fresh: list[Finding] = []
    for finding in new:
        if not any(same(finding, other) for other in (*seen, *fresh)):
            fresh.append(finding)
    return tuple(fresh)


def same(one: Finding, other: Finding) -> bool:
    """Whether two findings name one weakness: in much the same words, or at the same place."""
    ours, theirs = _words(one), _words(other)
    if one.quote and (one.quote, one.criterion) == (other.quote, other.criterion):
        return len(ours & theirs) >= ALIKE * min(len(ours), len(theirs))
    return len(ours & theirs) >= ALIKE * len(ours | theirs)


def every_finding(run: Run) -> tuple[Finding, ...]:
    """Each finding of a run once, as it stands on the latest text that has it."""
    return tuple({f.id: f for iteration in run.iterations for f in iteration.findings}.values())


def first_line(detail: str) -> str:
    """Give the first line of a check's detail, for a sentence."""
    return detail.strip().partition("\n")[0]


def _words(finding: Finding) -> frozenset[str]:
    """The words that tell a problem from another one: those of four letters and more."""
    words = re.findall(r"\w+", finding.problem.lower())
    return frozenset([word for word in words if len(word) > 3] or words or [finding.problem])


def _failed(evidence: Evidence, old: Finding | None, fresh: str) -> Finding:
    status = old.status if old else Status.OPEN
    if status is Status.RESOLVED:
        status = Status.REGRESSED
    return Finding(
        id=old.id if old else fresh,
        criterion=evidence.name,
        severity=Severity.BLOCKING,
        problem=first_line(evidence.detail) or f"The check {evidence.name} failed.",
        author="check",
        status=status,
    )


def _derive(
    run: Run,
    iteration: Iteration,
    findings: tuple[Finding, ...],
    score: float | None,
    criteria: tuple[CriterionScore, ...],
    author: str,
    why: str,
) -> Settled:
    """The rule itself: what has to hold for PASS, and what makes a FAIL."""
    required = all(e.passed is not False for e in iteration.evidence if e.required)
    blocking = _blocking(findings)
    user_met = _user_met(findings)
    outcome = Outcome.NEEDS_IMPROVEMENT
    if score is not None and score < FAIL_BELOW and author == "model":
        outcome = Outcome.FAIL
    elif score is not None and score >= run.limits.target and required and not blocking:
        outcome = Outcome.PASS
    if blocking and required and author != "user":
        why = f"{blocking[0].criterion}: {blocking[0].problem}"
    if ruling := iteration.overridden:
        outcome, author = ruling.outcome or outcome, "user"
        why = ruling.text or "Your decision."
    verdict = Verdict.model_validate(
        {
            "outcome": outcome,
            "score": score,
            "criteria": criteria,
            "unresolved": tuple(f.id for f in findings if f.actionable),
            "why": why,
            "author": author,
            "required_passed": required,
            "user_met": user_met,
        }
    )
    return Settled(verdict, findings)


def _inherit(run: Run, iteration: Iteration) -> Settled:
    """Carry a parent's verdict over to a text that is the same."""
    assert iteration.parent is not None
    parent = run.iterations[iteration.parent]
    why = iteration.flaw or "The revision changed nothing."
    before = parent.verdict or Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=None)
    outcome = before.outcome
    return Settled(before.model_copy(update={"why": why, "outcome": outcome}), iteration.findings)


def _review(findings: tuple[Finding, ...], fixed: tuple[str, ...]) -> tuple[Finding, ...]:
    """Mark the findings the judge no longer sees as resolved; a check closes its own."""
    return tuple(
        f.model_copy(update={"status": Status.RESOLVED})
        if f.id in fixed and f.actionable and f.author != "check"
        else f
        for f in findings
    )


def _back_again(finding: Finding, named: Iterable[Finding]) -> Finding:
    """A weakness that was resolved and is named once more has come back."""
    if finding.status is not Status.RESOLVED or finding.author == "check":
        return finding
    if not any(other.grounded and same(finding, other) for other in named):
        return finding
    return finding.model_copy(update={"status": Status.REGRESSED})


def _blocking(findings: tuple[Finding, ...]) -> list[Finding]:
    return [f for f in findings if f.actionable and f.severity is Severity.BLOCKING]


def _user_met(findings: tuple[Finding, ...]) -> bool:
    return not any(f.author == "user" and f.actionable for f in findings)


def _mean(evidence: Iterable[Evidence]) -> float:
    scores = [
        float(e.passed) if e.score is None else e.score for e in evidence if e.passed is not None
    ]
    return sum(scores) / len(scores)
