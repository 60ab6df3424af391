"""What texts are worth: the verdict of each and their order, computed from their columns.

Nothing here reads a verdict. What is stored of one is what was shown at that moment.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from ipyrefine.core.alignment import changed_lines
from ipyrefine.core.decisions import Override
from ipyrefine.core.expectations import contested
from ipyrefine.core.findings import (
    apply_bare_verdict,
    first_line,
    up_for_review,
    update_from_checks,
)
from ipyrefine.core.model import (
    FEEDBACK,
    NOT_READY,
    SUITE,
    Basis,
    Because,
    ByUser,
    CheckFailed,
    ChecksPassed,
    Evidence,
    Finding,
    NothingFound,
    Outcome,
    Repeats,
    Said,
    Scored,
    Severity,
    Status,
    StillOpen,
    TestResult,
    Undecided,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import is_display
from ipyrefine.core.table import BASES, Cell, column

T = TypeVar("T")
FAIL_BELOW = 0.2  # under this score of the evaluator's a text misses the task
OWN: tuple[Basis, ...] = ("tests", "function")  # the user's, which decide by themselves
_STRONGEST_FIRST: tuple[Basis, ...] = (*OWN, "confirmed", "examples")
_LONGEST_DISPLAY = 10_000  # characters of code that only shows something
_SMALL = 5  # changed lines from which an edit is read


class Ruling(NamedTuple):
    """A verdict, with the findings that bear on the text."""

    verdict: Verdict
    findings: tuple[Finding, ...]


def verdict(run: Run, text: Iteration) -> Verdict:
    """Return a text's verdict, as `rule` does, without its findings."""
    return rule(run, text).verdict


def rule(run: Run, text: Iteration) -> Ruling:
    """Return a text's verdict, by the first of these that holds, and its current findings.

    1. The user's ruling stands.
    2. The user's evaluator does not pass it: the verdict is its own.
    3. A blocking point is missed: NEEDS IMPROVEMENT, for that point.
    4. Nothing passes over a No: a claim is disputed, the critic takes the text for not ready, or
       something blocking could not be tried or read: NOT JUDGED.
    5. Something is met that a verdict may rest on: PASS, on the strongest of these.
    6. A critic takes it for ready: PASS.
    7. NOT JUDGED: nobody checked what it gives.

    A text that repeats an earlier one has that one's verdict.
    """
    return _once(run, text, _known(run).rulings, _rule)


class _Known(NamedTuple):
    """What is known of a run's texts, to fill: a long run needs it often."""

    run: Run
    rulings: dict[int, Ruling]
    standings: dict[int, tuple[float, ...] | None]
    blocking: list[tuple[int, str, str]]  # a text, and the id and the quote of what blocks it


_LAST: list[_Known] = []  # of the run that was ruled on last


def _known(run: Run) -> _Known:
    """Return what is known of a run's texts.

    A ruling depends on its text, on those that the text was made from or repeats, and on the setup,
    the critics' tests and the decisions. Where none of these changed, the last run's are kept.
    """
    last = _LAST[0] if _LAST else None
    if last and last.run is run:
        return last
    fixed = ("setup", "expectations", "decisions")
    rulings = dict[int, Ruling]()
    if last and all(getattr(last.run, one) is getattr(run, one) for one in fixed):
        was, changed, texts = last.run.iterations, set[int](), set[str]()
        for one in run.iterations:
            new = one.number >= len(was) or was[one.number] is not one
            if new:
                texts.add(one.text)
            if new or one.parent in changed:
                changed.add(one.number)
        rulings = {
            number: ruling
            for number, ruling in last.rulings.items()
            if number < len(run.iterations)
            and number not in changed
            and run.iterations[number].text not in texts
        }
    blocking = [
        (one.number, f.id, f.quote)
        for one in run.iterations
        for f in one.findings
        if f.author != "check" and f.blocks
    ]
    known = _Known(run, rulings, {}, blocking)
    _LAST[:] = [known]
    return known


def _once(run: Run, text: Iteration, known: dict[int, T], compute: Callable[..., T]) -> T:
    """Compute something of a run's text where it is not known yet."""
    if text.number >= len(run.iterations) or run.iterations[text.number] is not text:
        return compute(run, text)  # it is none of the run's
    if text.number not in known:
        known[text.number] = compute(run, text)
    return known[text.number]


def _rule(run: Run, text: Iteration) -> Ruling:
    if earlier := find_duplicate(run, text):
        ruling = _inherited(run, text, earlier)
    else:
        text = text.replace(findings=update_from_checks(run, text))
        findings = _findings(run, text)
        ruling = _computed(run, text, findings)
    if text.override:
        return ruling._replace(verdict=overridden(ruling.verdict, text.override))
    return ruling


def overridden(verdict: Verdict, by: Override) -> Verdict:
    """Return a verdict with the user's own in its place."""
    because = ByUser(words=by.reason)
    return verdict.replace(outcome=by.outcome, basis="user", because=because)


def _inherited(run: Run, text: Iteration, earlier: Iteration) -> Ruling:
    before, from_parent = rule(run, earlier), earlier.number == text.parent
    repeats = Repeats(iteration=earlier.number, of_parent=from_parent, failure=text.failure)
    findings = before.findings
    if from_parent:
        checked = {f.id: f for f in findings if f.author == "check"}
        findings = tuple(checked.get(f.id, f) for f in text.findings)
    return Ruling(before.verdict.replace(because=repeats), findings)


def _computed(run: Run, text: Iteration, findings: tuple[Finding, ...]) -> Ruling:
    cells, basis = column(run, text, findings), basis_of(text)
    missed = sorted((one for one in cells if one.missed), key=_weight)
    word = _word(run, text)
    outcome: Outcome
    because: Because
    if word not in (None, Outcome.PASS):
        outcome, basis, because = word, "evaluator", _in_words(run, text, findings)
        if missed:
            because = _missed(run, text, missed[0], findings)[-1]
    elif missed:
        outcome, basis, because = _missed(run, text, missed[0], findings)
    elif objection := _objection(run, text, cells):
        outcome, basis, because = Outcome.NOT_JUDGED, "none", objection
    elif word:
        outcome, basis, because = Outcome.PASS, "evaluator", _in_words(run, text, findings)
    elif _is_unread(run, text):
        outcome, because = Outcome.NOT_JUDGED, _undecided(run, text)
        basis = "run" if _only_ran(text) else "none"
    elif basis != "none":
        outcome = Outcome.PASS
        names = (one.name for one in text.evidence if one.passed and one.grounds)
        because = ChecksPassed(names=tuple(names))
    else:
        outcome, basis = Outcome.PASS, "critique"
        tests = (r for p, r in cells if (p.source, p.kind) == ("critic", "test"))
        held = sum(bool(one.passed and one.counts) for one in tests)
        reason = text.reason if text.ready else ""
        because = NothingFound(critic=run.setup.judge, tests=held, reason=reason)
    failed = any(one.failed for one in text.evidence)
    score = None
    if text.judgement and outcome is not Outcome.NOT_JUDGED:
        score = text.judgement.score
    elif outcome is not Outcome.NOT_JUDGED and (failed or basis_of(text) != "none"):
        score = score_by_evidence(text)
    found = Verdict(
        outcome=outcome,
        score=score,
        basis=basis,
        unresolved=tuple(f.id for f in findings if f.is_open),
        because=because,
        required_passed=not failed,
    )
    return Ruling(found, findings)


def _weight(cell: Cell) -> tuple[bool, bool]:
    """Order missed points: what the user's functions say, then what ran, then remarks."""
    return cell.point.kind == "remark", cell.point.kind != "reading"


def _missed(
    run: Run, text: Iteration, cell: Cell, findings: tuple[Finding, ...]
) -> tuple[Outcome, Basis, Because]:
    point, result = cell
    if point.kind != "remark":
        name, line = point.id, first_line(result.shows)
        if point.source == "critic":
            name, line = SUITE, f"{point.words} (“{point.quote}”): {line}"
        because = CheckFailed(name=name, line=line)
        basis = BASES[point.source, point.kind]
        return result.says or Outcome.NEEDS_IMPROVEMENT, basis, because
    basis = basis_of(text)
    if text.judgement:
        basis = "evaluator"
    elif basis == "none" and is_read(run, text):
        basis = "critique"
    finding = next(one for one in findings if one.id == point.id)
    return (
        Outcome.NEEDS_IMPROVEMENT,
        basis,
        StillOpen(
            finding=finding.id,
            criterion=finding.criterion,
            problem=finding.problem,
            over_score=_word(run, text) is Outcome.PASS,
        ),
    )


def _word(run: Run, text: Iteration) -> Outcome | None:
    """Return what the user's evaluator says of a text; None where it has not been asked."""
    said = text.judgement
    if said is None:
        return None
    if said.stated or said.score is None:
        return said.stated
    if said.score >= run.limits.target:
        return Outcome.PASS
    return Outcome.FAIL if said.score < FAIL_BELOW else Outcome.NEEDS_IMPROVEMENT


def _findings(run: Run, text: Iteration) -> tuple[Finding, ...]:
    """Return the findings of a text as they stand with its evidence and what is said of it."""
    findings, judgement, word = text.findings, text.judgement, _word(run, text)
    if judgement:
        if word is Outcome.PASS:  # it has no way to say that a finding is mended
            findings = _trust_revision(findings, text)
        feedback = any(f.actionable and f.check == FEEDBACK for f in findings)
        bare = ""
        if word is not Outcome.PASS and not feedback:
            bare = f"The evaluator says {judgement.stated}."
            if not judgement.stated:
                bare = f"It scored {judgement.score or 0:.2f} of {run.limits.target:.2f}."
        return apply_bare_verdict(run, findings, bare)
    if has_evaluator(run):
        return findings
    if is_read(run, text):
        return _with_refusal(run, text, findings)
    findings = _trust_revision(findings, text)
    if basis_of(text) == "none":
        return findings
    return tuple(  # evidence settles it, so that these are suggestions
        f.replace(severity=Severity.MINOR) if f.blocks and f.author == "model" else f
        for f in findings
    )


def _with_refusal(run: Run, text: Iteration, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return findings with the critic's No, where nothing else says what is to be changed."""
    refusal, said = _refusal(run, text), ""
    told = any((f.actionable or f.disputed) and f.is_open for f in findings if f.check != NOT_READY)
    if refusal is not None and not told:
        said = refusal or "The critic says that it isn't ready, without a reason."
    return apply_bare_verdict(run, findings, said, NOT_READY)


def _refusal(run: Run, text: Iteration) -> str | None:
    """Return the sentence of the critic's No on a text; None where there is no No.

    Where the text was to be read and could not be, a No on the one before it stands.
    """
    if not reads(run):
        return None
    if reading := reading_of(run, text):
        return reading.reason if reading.ready is False and not reading.taken_back else None
    if text.parent is None or not is_to_read(run, text):
        return None
    parent = run.iterations[text.parent]
    blocking = (f.problem for f in parent.findings if f.blocks and f.author == "model")
    return next(blocking, None) or _refusal(run, parent)


def _dropped_test(run: Run, text: Iteration) -> str:
    """Return a test that was dropped after its critic called a text ready as if it passed."""
    reading = reading_of(run, text) if reads(run) else None
    if reading is None:
        return ""
    passed = {one.name for one in text.tests if one.passed}
    dropped = (
        f"{one.name}. {one.reason}".strip()
        for one in run.expectations
        if one.iteration == reading.number
        and (one.untried == "broken" or (one.upheld is False and one.name not in passed))
    )
    return next(dropped, "")


def _objection(run: Run, text: Iteration, cells: list[Cell]) -> Undecided | None:
    """Return what no PASS may pass over, if anything: a dispute, a No, or what was not tried."""
    for point, result in cells:
        if point.disputed and result.passed is False:
            detail = f"{point.id}: {result.shows}"
            return Undecided(why="disputed", detail=detail, finding=point.id)
    if (refusal := _refusal(run, text)) is not None:
        return Undecided(why="not_ready", detail=refusal)
    if dropped := _dropped_test(run, text):
        return Undecided(why="test_dropped", detail=dropped)
    for point, result in cells:
        if point.blocking and result.passed is None and point.kind != "question":
            if point.source == "critic":
                line = f"{point.words} was not tried: {result.shows}"
                return Undecided(why="not_run", detail=line)
            passed = tuple(e.name for e in text.evidence if e.passed)
            return Undecided(why="not_run", detail=first_line(result.shows), passed=passed)
    return None


def _trust_revision(findings: tuple[Finding, ...], text: Iteration) -> tuple[Finding, ...]:
    """Return findings, as resolved those that the text was written for, but for a check's.

    Nobody asked could say more, and the text is shown to the user.
    """
    return tuple(
        f.replace(status=Status.RESOLVED)
        if f.author != "check" and f.actionable and f.id in text.acted_on
        else f
        for f in findings
    )


def _in_words(run: Run, text: Iteration, findings: tuple[Finding, ...]) -> Because:
    """Return what the user's evaluator said, in its own words where it gave any."""
    judgement = text.judgement
    assert judgement is not None, "it was asked"
    feedback = next((f.problem for f in findings if f.check == FEEDBACK and f.actionable), "")
    if judgement.score is not None and judgement.stated is None and not feedback:
        return Scored(score=judgement.score, target=run.limits.target)
    return Said(outcome=judgement.stated, feedback=feedback)


def _undecided(run: Run, text: Iteration) -> Undecided:
    """Return why nothing decides on a text, and what passed all the same."""
    unread = text.unread if has_evaluator(run) or needs_reading(run, text) else ""
    if not unread and _only_ran(text):
        return Undecided(why="only_ran")
    passed = tuple(e.name for e in text.evidence if e.passed)
    if unread:
        return Undecided(why="unreadable", detail=unread, passed=passed)
    if run.limits.critique == "never" or not run.setup.judge:
        return Undecided(why="no_critic", passed=passed)
    if reads(run) and is_plain(run, text):
        return Undecided(why="plain", passed=passed)
    if not needs_reading(run, text):
        return Undecided(why="weak_critic", passed=passed)
    why = "not_read" if any(one.critiqued for one in run.iterations) else "no_critic"
    return Undecided(why=why, passed=passed)


def _is_unread(run: Run, text: Iteration) -> bool:
    """Return True if a text lacks the reading without which it cannot pass."""
    if has_evaluator(run):
        return bool(text.unread) or asks_evaluator(run, text) or basis_of(text) == "none"
    basis = basis_of(text)
    return not is_read(run, text) and (basis == "none" or needs_reading(run, text))


def _only_ran(text: Iteration) -> bool:
    """Return True if all that the checks say of a text is that it runs."""
    found = [e for e in text.evidence if e.passed is not None]
    return all(e.passed and e.basis == "run" for e in found) and bool(found)


def find_duplicate(run: Run, text: Iteration) -> Iteration | None:
    """Return the earlier iteration with the same text, if any."""
    if text.failure and text.parent is not None:
        return run.iterations[text.parent]
    return next((i for i in run.iterations[: text.number] if i.text == text.text), None)


def basis_of(text: Iteration) -> Basis:
    """Return the strongest basis for a PASS that a text's evidence gives; ``none`` without any.

    Running, following a schema and having the right form are not enough: a wrong text can do all
    of that.
    """
    passed = {e.basis for e in text.evidence if e.passed and e.decisive}
    return next((basis for basis in _STRONGEST_FIRST if basis in passed), "none")


def evaluations(text: Iteration) -> list[Evidence]:
    """Return what the user's functions say of a text by a score or a verdict, as evaluators do."""
    return [one for one in text.evidence if one.evaluates]


def evaluator_score(run: Run, text: Iteration) -> float | None:
    """Return the score that the user's evaluator gave a text, if any."""
    spoke = has_evaluator(run) or evaluations(text)
    return verdict(run, text).score if spoke and text.verdict else None


def asks_evaluator(run: Run, text: Iteration) -> bool:
    """Return True if the user's evaluator has still to say what it makes of a text.

    It is not asked where the user's own tests or functions decide.
    """
    decided = any(e.basis in OWN and (e.failed or (e.passed and e.decisive)) for e in text.evidence)
    waits = not (text.judgement or text.unread or decided)
    return has_evaluator(run) and waits and find_duplicate(run, text) is None


def has_evaluator(run: Run) -> bool:
    """Return True if the user's own prompt evaluates the texts."""
    return "judge" in run.setup.prompts


def reads(run: Run) -> bool:
    """Return True if a critic is there whose word counts."""
    return not run.setup.weak_critic and not has_evaluator(run)


def is_read(run: Run, text: Iteration) -> bool:
    """Return True if a critic read a text, or all but a small edit of it, and its word decides.

    It does not while the critic has still to answer a reviser.
    """
    return reads(run) and not awaits_answer(text) and reading_of(run, text) is not None


def reading_of(run: Run, text: Iteration) -> Iteration | None:
    """Return the text that holds the latest reading of a text: it, the same one, or its parent.

    It is the parent where the text is a small edit of one that its critic takes for ready.
    """
    read = (i for i in reversed(run.iterations) if i.critiqued and not i.unread)
    if found := next((i for i in read if i.text == text.text), None):
        return found
    if not _is_small_edit(run, text) or text.parent is None:
        return None
    return reading_of(run, run.iterations[text.parent])


def awaits_answer(text: Iteration) -> bool:
    """Return True if the critic has still to answer a reviser about a claim that a text misses."""
    return any(f.is_open and f.unanswered for f in text.findings)


def _is_small_edit(run: Run, text: Iteration) -> bool:
    """Return True if a text is a small edit of one read as ready, and the critic's tests pass.

    Nothing that the critic named, and no test that a reviser contests, waits for its answer.
    """
    if text.parent is None or text.critiqued or run.limits.critique != "auto":
        return False
    parent = run.iterations[text.parent]
    suite = next((e for e in text.evidence if e.name == SUITE), None)
    passes = suite and suite.passed and all(r.passed is not False for r in suite.results)
    yes = parent.critiqued and (parent.ready or parent.taken_back)
    if not passes or not yes or contested(run.expectations):
        return False
    return not up_for_review(text) and changed_lines(parent.text, text.text) < _SMALL


def needs_reading(run: Run, text: Iteration) -> bool:
    """Return True if a text passes only if a critic read it; not where the user confirmed it."""
    return is_to_read(run, text) and basis_of(text) != "confirmed"


def is_to_read(run: Run, text: Iteration) -> bool:
    """Return True if a critic is to read a text, by `needs_reading` or to say more than a result.

    That is so where a critic is there, unless the user's own tests or functions decide, or the user
    sees what it is.
    """
    if not reads(run) or run.limits.critique == "never" or is_plain(run, text):
        return False
    return basis_of(text) not in OWN


def is_another_read(run: Run, text: Iteration) -> bool:
    """Return True if this is a draft and a critic read another one; of several it reads one."""
    others = (draft for draft in run.drafts if draft.number != text.number)
    return text.parent is None and any(draft.critiqued for draft in others)


def is_plain(run: Run, text: Iteration) -> bool:
    """Return True if a text is left to the user unread: microcopy, or a mere display."""
    if run.limits.critique != "auto":
        return False
    if run.task.profile == "microcopy":
        return True
    short = len(text.text) <= _LONGEST_DISPLAY
    return run.task.is_python and short and is_display(text.text)


class Rival(NamedTuple):
    """A text that only tests of a critic's set below another one, with what they show of it."""

    iteration: Iteration
    results: tuple[TestResult, ...]


def rival_of(run: Run, text: Iteration) -> Rival | None:
    """Return the first text before a passing revision that only a critic's tests fail, if any.

    There is none once the user has decided. A test that a model wrote may be wrong, and the
    revision bent to it: so the user can take the other text back (self-written tests mislead,
    arXiv 2501.12793).
    """
    if run.ruling or text.verdict is None or text.override or not verdict(run, text).passed:
        return None
    passes = {r.name for r in text.tests if r.passed}
    found = None
    while text.parent is not None:
        text = run.iterations[text.parent]
        failed = {e.name for e in text.evidence if e.failed}
        if failed == {SUITE} and not text.blocking_claims:
            missed = (r for r in text.tests if r.passed is False and r.name in passes)
            found = Rival(text, tuple(missed))
    return found if found and found.results else None


DECIDED = 6  # parts of a standing; the others settle ties


def standing(run: Run, text: Iteration) -> tuple[float, ...] | None:
    """Return where a text stands in the order of texts, the higher the better.

    First comes a PASS; then that fewer required checks failed, unless the user's evaluator scores;
    that nothing the user found wrong still stands; that fewer findings block it; that its critic
    does not call it worse than the text it was made from; its score. A text that the user passed is
    above its checks and findings. Of ties, one that only fails some checks is better than one that
    misses the task, and the first is the best, but for a new revision that nothing gives a score:
    it answers the feedback on those before it. A text that repeats another, on which the checks
    ran, stands where that one does.

    Returns:
        A number for each of these; None before its verdict.
    """
    return _once(run, text, _known(run).standings, _standing)


def _standing(run: Run, text: Iteration) -> tuple[float, ...] | None:
    if not text.override and (earlier := find_duplicate(run, text)):
        return standing(run, earlier)
    if text.verdict is None:
        return None
    now = verdict(run, text)
    by_user = now.passed and now.basis == "user"
    settled = by_user or evaluator_score(run, text) is not None
    failed = 0 if settled else sum(e.failed for e in text.evidence)
    users = any(f.actionable and f.author == "user" for f in text.findings)
    blocking = 0
    if reads(run) and not by_user:
        blocking = text.blocking_claims + _named_later(run, text)
    undecided = now.outcome is Outcome.NOT_JUDGED
    return (
        now.passed,
        -failed,
        by_user or not users,
        -blocking,
        text.compared != "worse",
        -1.0 if now.score is None else now.score,
        mean_score(text.evidence) if undecided else -1.0,
        now.outcome is not Outcome.FAIL,
        text.number if _answers_feedback(run, text) else -1,
    )


def _named_later(run: Run, text: Iteration) -> int:
    """Count what blocks a later text and holds of this one: it lacks it as well, or has its words.

    A critic that names a weakness once more in other words so counts against both texts.
    """
    later = {id_: quote for number, id_, quote in _known(run).blocking if number > text.number}
    own = {f.id for f in text.findings}
    return sum(quote in text.text for id_, quote in later.items() if id_ not in own)


def _answers_feedback(run: Run, text: Iteration) -> bool:
    """Return True if a text is a new revision without a score that does not fail as its parent."""
    if text.parent is None or find_duplicate(run, text) is not None:
        return False
    if has_evaluator(run) or evaluations(text):
        scored = evaluator_score(run, text) is not None
    elif verdict(run, text).outcome is Outcome.NOT_JUDGED:
        scored = False
    else:
        scored = any(None not in (e.score, e.passed) for e in text.evidence) or bool(text.override)
    error = _run_error(text)
    return not scored and not (error and error == _run_error(run.iterations[text.parent]))


def _run_error(text: Iteration) -> str:
    failed = (e for e in text.evidence if e.failed and e.basis == "run")
    return next((e.detail.partition("\n")[0] for e in failed), "")


def mean_score(evidence: Iterable[Evidence]) -> float:
    """Return the mean of what counts for a verdict, 0..1; -1 where nothing does."""
    scores = [float(bool(e.passed)) if e.score is None else e.score for e in evidence if e.grounds]
    return sum(scores) / len(scores) if scores else -1.0


def score_by_evidence(text: Iteration) -> float | None:
    """Return the score that a text's evidence gives it; the user's evaluators give it alone."""
    if own := evaluations(text):
        scores = [e.score for e in own if e.score is not None]
        return sum(scores) / len(scores) if scores else None
    score = mean_score(text.evidence)
    return None if score < 0 else score


def best_of(run: Run) -> int | None:
    """Return the number of the verified iteration that stands highest.

    Texts from before the latest one that the user wrote no longer compete: it is the best,
    whatever it scores, until one that follows it stands higher.
    """
    first = run.latest_edit.number if run.latest_edit else 0
    places = {i.number: place for i in run.iterations[first:] if (place := standing(run, i))}
    return max(places, key=places.__getitem__, default=None)
