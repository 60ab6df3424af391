"""The findings of a run: ids, grounding, duplicates, and which are new, gone or back."""

import ast
import re
from collections.abc import Callable, Iterable, Sequence

from ipyrefine.core.model import (
    LOW_SCORE,
    Change,
    Evidence,
    Finding,
    Form,
    Severity,
    Status,
)
from ipyrefine.core.quotes import contains_quote
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import ERRORS, parse

SCOPE = "scope"  # criterion of findings about something that nobody asked for
FEEDBACK = "feedback"  # criterion of findings from the user's evaluator
VERDICT = "verdict"  # criterion of the finding for an evaluator's verdict without feedback
_ALIKE = 0.7  # share of words in common from which two problems are one
_KEEP = re.compile(r"[*_]*KEEP[*_]*\s*[:,.-]\s*")
_NOTE = re.compile(r"^[\s*\-]*(f\d+)\W*:\W*(.+?)\s*$", re.MULTILINE)


def ground(findings: Iterable[Finding], text: str) -> tuple[Finding, ...]:
    """Return findings, those whose quote is not in the text without a place."""
    return tuple(
        finding if contains_quote(text, finding.quote) else finding.model_copy(update={"quote": ""})
        for finding in findings
    )


def weigh(findings: Iterable[Finding], iteration: Iteration) -> tuple[Finding, ...]:
    """Return a critic's findings; on a text that passes on evidence they are suggestions."""
    verdict = iteration.verdict
    if verdict is None or not verdict.passed or verdict.basis == "evaluator":
        return tuple(findings)
    return tuple(f.model_copy(update={"severity": Severity.MINOR}) for f in findings)


def weigh_late(findings: Iterable[Finding], parent: Iteration) -> tuple[Finding, ...]:
    """Return a critic's findings on a revision; those about words that it kept are suggestions.

    They were there to be named before. Only a test can still show one of them, so critics finish.
    """
    return tuple(
        f.model_copy(update={"severity": Severity.MINOR})
        if f.quote and contains_quote(parent.text, f.quote)
        else f
        for f in findings
    )


def bare_word(reason: str) -> Finding:
    """Return the finding of a critic who takes a text for not ready and names nothing in it."""
    problem = reason or "The critic takes the text for not ready, and doesn't say why."
    return Finding(criterion=VERDICT, severity=Severity.BLOCKING, problem=problem)


def with_ids(
    run: Run, findings: Iterable[Finding], beside: Iterable[Finding] = ()
) -> tuple[Finding, ...]:
    """Give findings the next ids that neither the run nor the findings next to them have."""
    findings = tuple(findings)
    if not findings:
        return ()
    taken = {finding.id for finding in (*run.findings, *beside)}
    return tuple(
        finding.model_copy(update={"id": f"f{len(taken) + offset}"})
        for offset, finding in enumerate(findings, start=1)
    )


def dismissed(run: Run) -> tuple[Finding, ...]:
    """Return the findings that the user set aside."""
    if not run.decisions:
        return ()
    return tuple(f for f in run.findings if f.status is Status.DISMISSED)


def drop_known(run: Run, new: Iterable[Finding], known: Iterable[Finding]) -> tuple[Finding, ...]:
    """Drop new findings that repeat one another, a known one, or one the user dismissed."""
    seen = [*known, *dismissed(run)]
    fresh: list[Finding] = []
    for finding in new:
        if not any(same(finding, other) for other in (*seen, *fresh)):
            fresh.append(finding)
    return tuple(fresh)


def same(one: Finding, other: Finding) -> bool:
    """Return whether two findings name one weakness: in similar words, or at the same place."""
    ours, theirs = _words(one), _words(other)
    if one.quote and (one.quote, one.criterion) == (other.quote, other.criterion):
        return len(ours & theirs) >= _ALIKE * min(len(ours), len(theirs))
    return len(ours & theirs) >= _ALIKE * len(ours | theirs)


def _words(finding: Finding) -> frozenset[str]:
    """Return the words that tell one problem from another: those of four letters and more."""
    words = re.findall(r"\w+", finding.problem.lower())
    return frozenset([word for word in words if len(word) > 3] or words or [finding.problem])


# What a critic says of earlier findings


def up_for_review(iteration: Iteration) -> tuple[Finding, ...]:
    """Return the findings a critic is asked about.

    Checks and the user's evaluator close their own. No rewording closes one: a reader does.
    """
    return tuple(f for f in iteration.actionable if f.author != "check" and f.criterion != FEEDBACK)


def resolve(findings: Iterable[Finding], fixed: Iterable[str]) -> tuple[Finding, ...]:
    """Resolve the findings that the critic no longer sees."""
    gone = set(fixed)
    return tuple(
        f.model_copy(update={"status": Status.RESOLVED})
        if f.id in gone and f.actionable and f.author != "check"
        else f
        for f in findings
    )


def regress(finding: Finding, named: Iterable[Finding]) -> Finding:
    """Mark a resolved weakness as regressed when it is named again."""
    if finding.status is not Status.RESOLVED or finding.author == "check":
        return finding
    if not any(same(finding, other) for other in named):
        return finding
    return finding.model_copy(update={"status": Status.REGRESSED})


def replace_feedback(
    run: Run, findings: Iterable[Finding], feedback: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Return findings, with the evaluator's latest feedback in place of what it said before.

    What it no longer names is resolved.
    """
    old = [finding for finding in findings if finding.criterion == FEEDBACK]
    pairs = _pair(old, feedback, (_equal, same))
    now = {finding.id: _resolved(finding) for finding in old}
    now |= {finding.id: _continued(finding, feedback[place]) for place, finding in pairs.items()}
    known = tuple(now.get(f.id) or regress(f, feedback) for f in findings)
    fresh = [finding for place, finding in enumerate(feedback) if place not in pairs]
    return known + with_ids(run, drop_known(run, fresh, known), known)


def apply_bare_verdict(run: Run, findings: Iterable[Finding], problem: str) -> tuple[Finding, ...]:
    """Return findings with the one for a verdict that comes without feedback.

    Args:
        run: the run.
        findings: the findings of the text.
        problem: what the verdict says; empty if there is feedback, or the text passes.
    """
    findings = tuple(findings)
    fault = Finding(
        criterion=VERDICT,
        severity=Severity.MINOR,
        problem=problem,
        author="check",
        check=LOW_SCORE,
    )
    if problem and not any(f.check == LOW_SCORE for f in findings):
        return findings + with_ids(run, (fault,), findings)
    return tuple(
        f if f.check != LOW_SCORE else _continued(f, fault) if problem else _resolved(f)
        for f in findings
    )


def _reopened(status: Status) -> Status:
    return Status.REGRESSED if status is Status.RESOLVED else status


# What checks found


def update_from_checks(run: Run, iteration: Iteration) -> tuple[Finding, ...]:
    """Return an iteration's findings with those of the checks as its evidence has them.

    A check that names its faults gives a finding for each; any other gives one when it fails. From
    text to text a fault keeps its finding's id: the one in the same words first, then the only
    one under its criterion (a test's name), then one in similar words.
    """
    findings = iteration.findings
    for evidence in iteration.evidence:
        if evidence.passed is not None:
            findings = _update_from_check(run, findings, evidence, iteration.text)
    return findings


def first_line(detail: str) -> str:
    """Return the first line of a check's detail, for a sentence."""
    return detail.strip().partition("\n")[0]


def _update_from_check(
    run: Run, findings: tuple[Finding, ...], evidence: Evidence, text: str
) -> tuple[Finding, ...]:
    faults = _faults(evidence, text)
    if evidence.passed is False and not faults:
        return findings
    old = [finding for finding in findings if finding.check == evidence.name]
    only_one = _only_one(old, faults, by_name=not evidence.findings)
    pairs = _pair(old, faults, (_equal, only_one, same))
    now = {finding.id: _resolved(finding) for finding in old}
    now |= {finding.id: _continued(finding, faults[place]) for place, finding in pairs.items()}
    fresh = [fault for place, fault in enumerate(faults) if place not in pairs]
    return (*(now.get(f.id, f) for f in findings), *with_ids(run, fresh, findings))


def _faults(evidence: Evidence, text: str) -> list[Finding]:
    """Return the faults that a check names, or the one it stands for itself when it failed."""
    if evidence.findings:
        return [_own(finding, evidence, text) for finding in evidence.findings]
    if not evidence.failed:
        return []
    problem = first_line(evidence.detail) or f"The check {evidence.name} failed."
    return [
        Finding(
            criterion=evidence.name,
            severity=Severity.BLOCKING,
            problem=problem,
            author="check",
            check=evidence.name,
        )
    ]


def _own(finding: Finding, evidence: Evidence, text: str) -> Finding:
    """Return a check's fault as its finding; words that are not in the text do not quote it."""
    own: dict[str, object] = {
        "author": "check",
        "check": evidence.name,
        "status": Status.OPEN,
    }
    if not evidence.required:
        own["severity"] = Severity.MINOR
    if not contains_quote(text, finding.quote):
        own |= {"quote": "", "problem": f'{finding.problem} (at "{finding.quote}")'}
    return finding.model_copy(update=own)


def _pair(
    old: Sequence[Finding],
    faults: Sequence[Finding],
    rules: Iterable[Callable[[Finding, Finding], bool]],
) -> dict[int, Finding]:
    """Return the earlier finding that each fault continues, by place; each at most once.

    Args:
        old: the earlier findings.
        faults: those of now.
        rules: what makes two of them one, the strictest first.
    """
    pairs: dict[int, Finding] = {}
    for rule in rules:
        for place, fault in enumerate(faults):
            taken = {finding.id for finding in pairs.values()}
            if place not in pairs:
                match = next((f for f in old if f.id not in taken and rule(f, fault)), None)
                pairs |= {place: match} if match else {}
    return pairs


def _equal(one: Finding, other: Finding) -> bool:
    return (one.problem, one.quote, one.criterion) == (other.problem, other.quote, other.criterion)


def _only_one(
    old: Sequence[Finding], faults: Sequence[Finding], *, by_name: bool
) -> Callable[[Finding, Finding], bool]:
    """Return a rule that pairs two findings which are the only ones under their criterion.

    Faults under the check's own name share that with all its others, unless the check stands for
    itself.
    """
    before, now = [one.criterion for one in old], [one.criterion for one in faults]

    def rule(one: Finding, other: Finding) -> bool:
        distinct = by_name or one.criterion != one.check
        single = before.count(one.criterion) == now.count(one.criterion) == 1
        return distinct and single and one.criterion == other.criterion

    return rule


def _continued(old: Finding, fault: Finding) -> Finding:
    return fault.model_copy(
        update={"id": old.id, "status": _reopened(old.status), "reason": old.reason}
    )


def _resolved(finding: Finding) -> Finding:
    if finding.status is Status.DISMISSED:
        return finding
    return finding.model_copy(update={"status": Status.RESOLVED})


# What a revision says and does


def changes(thoughts: str, findings: Iterable[Finding]) -> tuple[Change, ...]:
    """Read the note a reviser writes per finding: ``f1: shorter``, or ``f1: KEEP: as asked``."""
    ids = {finding.id for finding in findings}
    notes = {m.group(1): m.group(2) for m in _NOTE.finditer(thoughts) if m.group(1) in ids}
    return tuple(
        Change(finding=id_, summary=_KEEP.sub("", words), keeps=bool(_KEEP.match(words)))
        for id_, words in notes.items()
    )


def is_cosmetic(old: str, new: str, form: Form, language: str = "python") -> bool:
    """Return whether two texts differ in spacing, punctuation or letter case only.

    Of Python: whether both are the same program with the same comments. Of other code: whether
    they differ in white space only.
    """
    if form == "prose":
        before, after = _strip_common_lines(old.splitlines(), new.splitlines())
        return _all_words(before) == _all_words(after)
    if language != "python":
        return old.split() == new.split()
    try:
        same_program = ast.dump(parse(old)) == ast.dump(parse(new))
    except ERRORS:
        return old.split() == new.split()
    return same_program and _comments(old) == _comments(new)


def _strip_common_lines(a: list[str], b: list[str]) -> tuple[list[str], list[str]]:
    """Leave out the lines at both ends that are the same in both texts."""
    start = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    start = min(len(a), len(b)) if start is None else start
    a, b = a[start:], b[start:]
    while a and b and a[-1] == b[-1]:
        del a[-1], b[-1]
    return a, b


def _all_words(lines: list[str]) -> list[str]:
    return re.findall(r"\w+", "\n".join(lines).lower())


def _comments(code: str) -> list[str]:
    """Return what follows a hash sign: comments, and the odd string, which is equal in both."""
    return ["".join(line.partition("#")[2].split()) for line in code.splitlines() if "#" in line]
