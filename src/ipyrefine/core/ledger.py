"""The findings ledger: which weaknesses are known, which are new, and which came back."""

import re
from collections.abc import Iterable

from ipyrefine.core.deciding import quotes
from ipyrefine.core.records import Answer, Finding, Severity, Status
from ipyrefine.core.runs import Iteration, Run

ALIKE = 0.7  # share of words in common from which two problems are one
CHECKLIST = "checklist"  # the criterion of findings that are unmet checklist items


def ground(findings: Iterable[Finding], text: str) -> tuple[Finding, ...]:
    """Mark each finding whose quote is not in the text; white space is compared loosely."""
    return tuple(
        finding.model_copy(update={"grounded": quotes(text, finding.quote)}) for finding in findings
    )


def number(
    run: Run, findings: Iterable[Finding], beside: Iterable[Finding] = ()
) -> tuple[Finding, ...]:
    """Give findings the next ids that neither the run nor the findings beside them have."""
    findings = tuple(findings)
    if not findings:
        return ()
    taken = {finding.id for finding in (*every_finding(run), *beside)}
    return tuple(
        finding.model_copy(update={"id": f"f{len(taken) + offset}"})
        for offset, finding in enumerate(findings, start=1)
    )


def every_finding(run: Run) -> tuple[Finding, ...]:
    """Each finding of a run once, as it stands on the latest text that has it."""
    return tuple({f.id: f for iteration in run.iterations for f in iteration.findings}.values())


def dismissed(run: Run) -> tuple[Finding, ...]:
    """The findings that the user set aside; without a decision there are none."""
    if not run.decisions:
        return ()
    return tuple(f for f in every_finding(run) if f.status is Status.DISMISSED)


def unlisted(run: Run, new: Iterable[Finding], known: Iterable[Finding]) -> tuple[Finding, ...]:
    """Drop new findings that repeat one another, a known one, or one the user dismissed."""
    seen = [*known, *dismissed(run)]
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


def from_checklist(
    findings: Iterable[Finding], answers: Iterable[Answer]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Bring the findings of unmet checklist items up to date; give the known and the new ones."""
    known, new = list(findings), []
    places = {f.problem: n for n, f in enumerate(known) if f.criterion == CHECKLIST}
    for answer in answers:
        problem = f"Not met: {answer.question}"
        place = places.get(problem)
        if place is not None:
            old = known[place]
            status = Status.RESOLVED if answer.yes else reopened(old.status)
            known[place] = old.model_copy(update={"status": status})
        elif not answer.yes:
            new.append(
                Finding(id="f0", criterion=CHECKLIST, severity=Severity.BLOCKING, problem=problem)
            )
    return tuple(known), tuple(new)


def reviewed(
    iteration: Iteration, findings: Iterable[Finding], fixed: Iterable[str]
) -> tuple[Finding, ...]:
    """Resolve what the judge no longer sees, unless the claim to have mended it was empty."""
    empty = {change.finding for change in iteration.changes if not change.confirmed}
    gone = set(fixed) - empty
    return tuple(
        f.model_copy(update={"status": Status.RESOLVED})
        if f.id in gone and f.actionable and f.author != "check"
        else f
        for f in findings
    )


def back_again(finding: Finding, named: Iterable[Finding]) -> Finding:
    """A weakness that was resolved and is named once more has come back."""
    if finding.status is not Status.RESOLVED or finding.author == "check":
        return finding
    if not any(other.grounded and same(finding, other) for other in named):
        return finding
    return finding.model_copy(update={"status": Status.REGRESSED})


def first_line(detail: str) -> str:
    """Give the first line of a check's detail, for a sentence."""
    return detail.strip().partition("\n")[0]


def _words(finding: Finding) -> frozenset[str]:
    """The words that tell a problem from another one: those of four letters and more."""
    words = re.findall(r"\w+", finding.problem.lower())
    return frozenset([word for word in words if len(word) > 3] or words or [finding.problem])


def reopened(status: Status) -> Status:
    """The status of a weakness that is there again."""
    return Status.REGRESSED if status is Status.RESOLVED else status
