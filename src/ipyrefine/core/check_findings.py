"""The checks' own findings: which are there, which are gone, and which are back.

A check that names its faults gives a finding for each; any other gives one when it fails. From
text to text a fault keeps its finding's id: the one in the same words first, then the only one
under its criterion (a test's name), then one in much the same words.
"""

from collections.abc import Callable, Sequence

from ipyrefine.core.additions import removed
from ipyrefine.core.deciding import quotes
from ipyrefine.core.ledger import first_line, number, reopened, same
from ipyrefine.core.records import Evidence, Finding, Severity, Status
from ipyrefine.core.runs import Iteration, Run

Rule = Callable[[Finding, Finding], bool]


def from_checks(run: Run, iteration: Iteration) -> tuple[Finding, ...]:
    """Bring what the checks found up to date with the evidence on a text."""
    findings = tuple(removed(finding, iteration.text) for finding in iteration.findings)
    for evidence in iteration.evidence:
        if evidence.passed is not None:
            findings = _updated(run, findings, evidence, iteration.text)
    return findings


def _updated(
    run: Run, findings: tuple[Finding, ...], evidence: Evidence, text: str
) -> tuple[Finding, ...]:
    """Findings with those of one check as its evidence has them now."""
    named = _named(evidence, text)
    if evidence.passed is False and not named:
        return findings
    old = [finding for finding in findings if finding.found_by == evidence.name]
    pairs = _paired(old, named, by_name=not evidence.findings)
    now = {one.id: _resolved(one) for one in old}
    now |= {one.id: _again(one, named[place]) for place, one in pairs.items()}
    fresh = [finding for place, finding in enumerate(named) if place not in pairs]
    return (*(now.get(f.id, f) for f in findings), *number(run, fresh, findings))


def _named(evidence: Evidence, text: str) -> list[Finding]:
    """The faults that a check names, or the one it stands for itself when it failed."""
    if evidence.findings:
        return [_own(finding, evidence, text) for finding in evidence.findings]
    if evidence.passed or not evidence.required:
        return []
    said = first_line(evidence.detail) or f"The check {evidence.name} failed."
    one = Finding(id="f0", criterion=evidence.name, severity=Severity.BLOCKING, problem=said)
    return [one.model_copy(update={"author": "check", "check": evidence.name})]


def _own(finding: Finding, evidence: Evidence, text: str) -> Finding:
    """A check's fault as its finding; words that are not in the text are no quote of it."""
    own = {"author": "check", "check": evidence.name, "status": Status.OPEN, "grounded": True}
    if not evidence.required:
        own["severity"] = Severity.MINOR
    if not quotes(text, finding.quote):
        own |= {"quote": "", "problem": f'{finding.problem} (at "{finding.quote}")'}
    return finding.model_copy(update=own)


def _paired(
    old: Sequence[Finding], named: Sequence[Finding], *, by_name: bool
) -> dict[int, Finding]:
    """Which earlier finding each fault continues, by the fault's place; each at most once."""
    pairs: dict[int, Finding] = {}
    for rule in (_equal, _only(old, named, by_name=by_name), same):
        for place, fault in enumerate(named):
            taken = {one.id for one in pairs.values()}
            if place not in pairs:
                match = next((one for one in old if one.id not in taken and rule(one, fault)), None)
                pairs |= {place: match} if match else {}
    return pairs


def _equal(one: Finding, other: Finding) -> bool:
    return (one.problem, one.quote, one.criterion) == (other.problem, other.quote, other.criterion)


def _only(old: Sequence[Finding], named: Sequence[Finding], *, by_name: bool) -> Rule:
    """Whether two findings are the only ones under one criterion, be their words as they may.

    Faults under the check's own name have that in common with all its others, unless the check
    stands for itself.
    """
    before, now = [one.criterion for one in old], [one.criterion for one in named]

    def rule(one: Finding, other: Finding) -> bool:
        told_apart = by_name or one.criterion != one.found_by
        single = before.count(one.criterion) == now.count(one.criterion) == 1
        return told_apart and single and one.criterion == other.criterion

    return rule


def _again(old: Finding, fault: Finding) -> Finding:
    return fault.model_copy(
        update={"id": old.id, "status": reopened(old.status), "reason": old.reason}
    )


def _resolved(finding: Finding) -> Finding:
    if finding.status is Status.DISMISSED:
        return finding
    return finding.model_copy(update={"status": Status.RESOLVED})
