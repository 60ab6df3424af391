# ruff: noqa: RUF001
"""The findings of a run: ids, grounding, duplicates, and which are new, gone or back."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from ipyrefine.core.decisions import OWN, Select
from ipyrefine.core.edits import Loss, losses
from ipyrefine.core.expectations import contains_quote
from ipyrefine.core.model import (
    FEEDBACK,
    LEFT_OPEN,
    LOW_SCORE,
    NO_SOURCE,
    NOT_READY,
    Author,
    Change,
    Evidence,
    Finding,
    Form,
    Severity,
    Status,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.unsourced import find_unsourced
from ipyrefine.errors import UsageError

SCOPE = "scope"  # criterion of findings about something that nobody asked for
VERDICT = "verdict"  # criterion of the finding for an evaluator's verdict without feedback
_ALIKE = 0.7  # share of words in common from which two problems are one
_KEEP = re.compile(r"[*_]*KEEP[*_]*\s*[:,.：–—-][*_]*\s*")
_BELOW, _MANY = 400, 60  # characters below a heading; findings that one note is of
_ID = r"[*_`\[(]{0,3}[fq]\d{1,4}[*_`\])]{0,3}"
_AND = r"(?:,|;|/|&|\+|、|and|und|et|y|e|и|和|to|bis|[-–])(?:\s+and)?"
# A note: the findings that it is of, a mark or brackets, and its words, on the next line at last.
_NOTE = re.compile(
    r"^[^\S\n]*(?P<head>(?:[-*+•>|]{1,3}[^\S\n]*|#{1,6}[^\S\n]*|\(?\d+[.):][^\S\n]+"
    r"|\[[ xX]\][^\S\n]+){0,5})"
    r"(?:(?:finding|note|fix|change)[^\S\n]+(?:for[^\S\n]+|on[^\S\n]+)?)?"
    rf"(?P<ids>{_ID}(?:[^\S\n]?{_AND}[^\S\n]?{_ID}(?!\w))*)(?!\w)"
    r"(?P<mark>(?:[^\S\n]+\([^()\n]*\)|[^\S\n]+[\"“][^\n\"”]*[\"”])?[*_]{0,2}[^\S\n]*"
    r"(?:[:：|=→⇒–—.]|-(?=[\s>])|(?=KEEP)|(?:[^\S\n]?[\w'-]{1,20}){1,3}:)[->=]*[*_]{0,2})?"
    r"[^\S\n]*(?P<words>[^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)


def ground(findings: Iterable[Finding], text: str) -> tuple[Finding, ...]:
    """Return findings, those whose quote is not in the text without a place."""
    return tuple(
        finding if contains_quote(text, finding.quote) else finding.replace(quote="")
        for finding in findings
    )


def weigh(
    findings: Iterable[Finding], parent: Iteration | None, *, by_evidence: bool
) -> tuple[Finding, ...]:
    """Return a critic's findings; on a text that passes on evidence they are suggestions.

    So are those about words that the text has from its parent, all of them: they were there to be
    named before, and critics have to finish. Only a test can still show one of them.
    """
    return tuple(
        _minor(f)
        if by_evidence or (parent and f.quote and contains_quote(parent.text, f.quote, near=False))
        else f
        for f in findings
    )


def _minor(finding: Finding) -> Finding:
    return finding.replace(severity=Severity.MINOR)


def with_ids(
    run: Run, findings: Iterable[Finding], others: Iterable[Finding] = ()
) -> tuple[Finding, ...]:
    """Give findings the next ids that neither the run nor the findings next to them have.

    Questions have ids of their own: q1, q2, ….
    """
    findings = tuple(findings)
    taken = {finding.id for finding in (*run.findings, *others)} if findings else ()
    numbers = Counter(one[:1] for one in taken)
    named = list[Finding]()
    for finding in findings:
        letter = "q" if finding.check == LEFT_OPEN else "f"
        numbers[letter] += 1
        named.append(finding.replace(id=f"{letter}{numbers[letter]}"))
    return tuple(named)


def dismissed(run: Run) -> tuple[Finding, ...]:
    """Return the findings that the user set aside."""
    if not run.decisions:
        return ()
    return tuple(f for f in run.findings if f.status is Status.DISMISSED)


def drop_known(run: Run, new: Iterable[Finding], earlier: Iterable[Finding]) -> tuple[Finding, ...]:
    """Drop new findings that repeat one another, an earlier one, or one the user dismissed."""
    seen = [*earlier, *dismissed(run)]
    fresh: list[Finding] = []
    for finding in new:
        if not any(same(finding, other) for other in (*seen, *fresh)):
            fresh.append(finding)
    return tuple(fresh)


def same(one: Finding, other: Finding) -> bool:
    """Return True if two findings name one weakness: in similar words, or at the same place."""
    if one.check == other.check == NO_SOURCE:
        return one.quote == other.quote
    ours, theirs = _words(one.problem), _words(other.problem)
    if one.quote and (one.quote, one.criterion) == (other.quote, other.criterion):
        return len(ours & theirs) >= _ALIKE * min(len(ours), len(theirs))
    return len(ours & theirs) >= _ALIKE * len(ours | theirs)


@lru_cache(maxsize=512)
def _words(problem: str) -> frozenset[str]:
    """Return a problem's words of four letters and more, which tell it from another."""
    words = re.findall(r"\w+", problem.lower())
    return frozenset([word for word in words if len(word) > 3] or words or [problem])


# What a critic says of earlier findings


def up_for_review(iteration: Iteration) -> tuple[Finding, ...]:
    """Return the findings a critic is asked about.

    Checks and the user's evaluator close their own. No rewording closes one: a reader does.
    """
    return tuple(
        f
        for f in iteration.findings
        if f.is_open and f.author != "check" and f.check != FEEDBACK and not f.asks
    )


def answer(question: Finding, words: str) -> Finding:
    """Return a revision's instruction after the user answered a critic's question.

    Raises:
        UsageError: it asks nothing that is left open.
    """
    if not (question.asks and question.check == LEFT_OPEN):
        raise UsageError(f"{question.id} is no open question.")
    problem = f"{question.problem} {words}"
    return Finding(id=question.id, criterion=OWN, severity=Severity.BLOCKING, problem=problem)


def resolve(findings: Iterable[Finding], fixed: Iterable[str]) -> tuple[Finding, ...]:
    """Resolve the findings that the critic no longer sees."""
    gone = set(fixed)
    return tuple(_resolved(f) if f.id in gone and f.author != "check" else f for f in findings)


def regress(finding: Finding, named: Iterable[Finding]) -> Finding:
    """Mark a resolved weakness as regressed when it is named again."""
    if finding.status is not Status.RESOLVED or finding.author == "check":
        return finding
    if not any(same(finding, other) for other in named):
        return finding
    return finding.replace(status=Status.REGRESSED)


def replace_feedback(
    run: Run, findings: Iterable[Finding], feedback: Sequence[Finding]
) -> tuple[Finding, ...]:
    """Return findings, with the evaluator's latest feedback in place of what it said before.

    All of it is kept, in its order, except what the user dismissed. What it no longer names is
    resolved.
    """
    findings = tuple(findings)
    old = [finding for finding in findings if finding.check == FEEDBACK]
    followed, fresh = _follow(findings, old, feedback, (_equal,))
    updated = [f if f.check == FEEDBACK else regress(f, feedback) for f in followed]
    settled = dismissed(run)
    fresh = [one for one in fresh if not any(same(one, other) for other in settled)]
    updated += with_ids(run, fresh, updated)
    places = [n for n, f in enumerate(updated) if f.check == FEEDBACK and f.actionable]
    order = {finding.problem: n for n, finding in reversed([*enumerate(feedback)])}
    named = sorted((updated[n] for n in places), key=lambda f: order.get(f.problem, 0))
    for place, finding in zip(places, named, strict=True):
        updated[place] = finding
    return tuple(updated)


def apply_bare_verdict(
    run: Run, findings: Iterable[Finding], problem: str, source: str = LOW_SCORE
) -> tuple[Finding, ...]:
    """Return findings with the one for a verdict that comes without feedback.

    The problem is empty if there is feedback, or the text passes; the source is ``LOW_SCORE`` or
    ``NOT_READY``.
    """
    author: Author = "model" if source == NOT_READY else "check"
    fault = Finding(
        criterion=VERDICT, severity=Severity.MINOR, problem=problem, author=author, check=source
    )
    findings = tuple(findings)
    old = [finding for finding in findings if finding.check == source]
    rules = (lambda one, other: True,)
    followed, fresh = _follow(findings, old, [fault] if problem else [], rules)
    return followed + with_ids(run, fresh, followed)


# What checks found


def update_from_checks(run: Run, iteration: Iteration) -> tuple[Finding, ...]:
    """Update an iteration's findings from its evidence.

    A check that names its faults gives a finding for each; any other gives one when it fails. From
    text to text a fault keeps its finding's id: the one in the same words first, then the only
    one under its criterion (a test's name), then one in similar words.
    """
    findings = iteration.findings
    for evidence in iteration.evidence:
        # No result of the critic's tests may mean that none counts any more.
        tried = any(result.passed is not None for result in evidence.results)
        if evidence.passed is not None or tried or _gets_further(run, evidence):
            findings = _update_from_check(run, findings, evidence, iteration.text)
    return _update_unsourced(run, findings, iteration.text)


def _gets_further(run: Run, evidence: Evidence) -> bool:
    """Return True if a check found nothing to try on a text, but earlier ones did not run."""
    every = (one for iteration in run.iterations for one in iteration.evidence)
    earlier = (one for one in every if one.name == evidence.name and one.basis == "run")
    ran = evidence.basis != "run" and not evidence.not_run
    return ran and any(one.failed for one in earlier)


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
    # Faults under the check's own name share that with all its others, unless it stands for itself.
    named = [
        f.criterion for f in (*old, *faults) if f.criterion != f.check or not evidence.findings
    ]

    def only_one(one: Finding, other: Finding) -> bool:
        return one.criterion == other.criterion and named.count(one.criterion) == 2

    followed, fresh = _follow(findings, old, faults, (_equal, only_one, same))
    return followed + with_ids(run, fresh, findings)


def _update_unsourced(run: Run, findings: tuple[Finding, ...], text: str) -> tuple[Finding, ...]:
    """Return findings with a question for each fact in no source that a critic of any text named.

    What the user keeps is never asked about again. What they strike blocks every text that has it.
    """
    old = [finding for finding in findings if finding.check == NO_SOURCE]
    named = dict.fromkeys(f.quote for f in (*run.findings, *old) if f.check == NO_SOURCE)
    faults = [no_source(words) for words in find_unsourced(run, text, named)]
    followed, fresh = _follow(findings, old, faults, (_equal,))
    kept = {f.quote for f in dismissed(run) if f.check == NO_SOURCE}
    chosen = {id_ for one in run.decisions if isinstance(one, Select) for id_ in one.findings}
    struck = {f.quote for f in run.findings if f.check == NO_SOURCE and f.id in chosen}

    def answered(finding: Finding) -> Finding:
        if not finding.asks or finding.quote not in kept | struck:
            return finding
        if finding.quote in kept:
            return finding.replace(status=Status.DISMISSED)
        return finding.replace(severity=Severity.BLOCKING)

    return tuple(map(answered, followed + with_ids(run, fresh, followed)))


def no_source(words: str) -> Finding:
    """Return the question about words of a text that stand in no source."""
    return Finding(
        criterion=NO_SOURCE,
        severity=Severity.MINOR,
        quote=words,
        problem=f"“{words}” stands in no source.",
        fix="Take it out.",
        author="check",
        check=NO_SOURCE,
    )


def _faults(evidence: Evidence, text: str) -> list[Finding]:
    if evidence.findings:
        return [_own(finding, evidence, text) for finding in evidence.findings]
    if not evidence.failed:
        return []
    problem = first_line(evidence.detail) or f"The check {evidence.name} failed."
    finding = Finding(criterion=evidence.name, severity=Severity.BLOCKING, problem=problem)
    fault = next(iter(evidence.faults), None)
    return [
        finding.replace(
            author="check", check=evidence.name, computed=evidence.computed, fault=fault
        )
    ]


def _own(finding: Finding, evidence: Evidence, text: str) -> Finding:
    """Return a check's fault as its finding; words that are not in the text do not quote it."""
    finding = finding.replace(
        author="check", check=evidence.name, status=Status.OPEN, computed=evidence.computed
    )
    if not contains_quote(text, finding.quote):
        problem = f'{finding.problem} (at "{finding.quote}")'
        finding = finding.replace(quote="", problem=problem)
    return finding if evidence.required else _minor(finding)


def _follow(
    findings: Iterable[Finding],
    old: Sequence[Finding],
    faults: Sequence[Finding],
    rules: Iterable[Callable[[Finding, Finding], bool]],
) -> tuple[tuple[Finding, ...], list[Finding]]:
    """Return findings with earlier ones continued or resolved, and the faults that are new.

    Only findings in `old` may be continued, each fault continues at most one, and `rules` say what
    makes two of them one, the strictest first.
    """
    now = {finding.id: _resolved(finding) for finding in old}
    left, fresh = list(old), list(faults)
    for rule in rules:
        for fault in list(fresh):
            if match := next((one for one in left if rule(one, fault)), None):
                left.remove(match)
                fresh.remove(fault)
                status = Status.REGRESSED if match.status is Status.RESOLVED else match.status
                now[match.id] = fault.replace(id=match.id, status=status, reason=match.reason)
    return tuple(now.get(finding.id, finding) for finding in findings), fresh


def _equal(one: Finding, other: Finding) -> bool:
    return (one.problem, one.quote, one.criterion) == (other.problem, other.quote, other.criterion)


def _resolved(finding: Finding) -> Finding:
    if finding.status is Status.DISMISSED:
        return finding
    return finding.replace(status=Status.RESOLVED)


# What a revision says and does


def changes(thoughts: str, findings: Iterable[Finding]) -> tuple[Change, ...]:
    """Read the notes that a reviser writes: ``f1: shorter``, or ``f1: KEEP: as asked``.

    They may be in a list, in brackets, in a table, below a heading, or for several findings.
    """
    known = {finding.id for finding in findings}
    notes = dict[str, str]()
    for match in _NOTE.finditer(thoughts):
        head, ids, words = match["head"], match["ids"], match["words"].strip(" |*_\t")
        marked = match["mark"] or ids[0] in "[(*`_" or head.endswith("**") or "#" in head
        if marked and not words:  # it is a heading
            below = thoughts[match.end() : match.end() + _BELOW].strip().partition("\n")[0]
            words = "" if _NOTE.match(below) else below.strip(" |*_-\t")
        if marked and words:
            notes |= dict.fromkeys((one for one in _ids(ids) if one in known), words)
    return tuple(
        Change(finding=id_, summary=_KEEP.sub("", words), keeps=bool(_KEEP.match(words)))
        for id_, words in notes.items()
    )


def _ids(words: str) -> list[str]:
    found = re.findall(r"[fq]\d+", words.lower())[:_MANY]
    if len(found) == 2 and re.search(r"\d\W*(?:[-–]|to|bis)\W*f", words, re.IGNORECASE):
        first, last = (int(one[1:]) for one in found)
        found = [f"f{number}" for number in range(first, min(last, first + _MANY) + 1)]
    return found


def lost_sections(run: Run, iteration: Iteration) -> tuple[Loss, ...]:
    """Return the sections of prose that a revision lost or shortened without being asked to.

    It was asked to where it acted on a finding about something out of scope, or on one of the
    user's, that names the section or a place in it.
    """
    if run.task.form != "prose" or iteration.parent is None or iteration.failure:
        return ()
    parent = run.iterations[iteration.parent]
    task = run.task
    named = SCOPE in (*task.categories, *(one.name for one in task.criteria))  # another's
    asked = [
        f
        for f in parent.findings
        if f.id in iteration.acted_on
        and ((f.criterion == SCOPE and not named) or f.author == "user")
    ]
    names = [f"{f.problem} {f.fix} {f.quote}".lower() for f in asked]
    found = losses(parent.text, iteration.text)
    return tuple(one for one in found if not any(one.name.lower() in name for name in names))


def left_open(run: Run, iteration: Iteration) -> list[Finding]:
    """Return the critic's questions about the task that the user has not answered."""
    answered = {one.call for one in run.task.clarifications}
    asked = (f for f in iteration.findings if f.asks and f.check == LEFT_OPEN)
    return [f for f in asked if not f.call or f.call not in answered]


def is_cosmetic(old: str, new: str, form: Form) -> bool:
    """Return True if texts differ in spacing only; of prose, also in case and punctuation."""
    if form == "code":
        return old != new and old.split() == new.split()
    return old != new and re.findall(r"\w+", old.lower()) == re.findall(r"\w+", new.lower())
