"""What texts are worth: the verdict of each and their order, computed from their columns.

Nothing here reads a verdict. What is stored of one is what was shown at that moment.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ipyrefine.core.decisions import Override
from ipyrefine.core.model import Basis, Outcome, Verdict, Why
from ipyrefine.core.novelty import is_new
from ipyrefine.core.points import (
    Column,
    ask_alone,
    checked,
    first_line,
    is_feedback,
    take_word,
    up_for_review,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import is_display
from ipyrefine.core.table import BASES, BY_BASIS, Cell, Evidence, Point, Result
from ipyrefine.core.testing import is_critics

FAIL_BELOW = 0.2  # under this score of the evaluator's a text misses the task
OWN: tuple[Basis, ...] = ("tests", "function")  # the user's, which decide by themselves
_STRONGEST_FIRST: tuple[Basis, ...] = (*OWN, "confirmed", "examples")
_CRITICS_WORD = ("critic", "reading")
_LONGEST_DISPLAY = 10_000  # characters of code that only shows something


class Ruling(NamedTuple):
    """A verdict, with the text's column as it then is and the points that are new with it."""

    verdict: Verdict
    results: dict[str, Result]
    points: tuple[Point, ...]


def verdict(run: Run, text: Iteration) -> Verdict:
    """Return a text's verdict, as `rule` does, without its column."""
    return rule(run, text).verdict


def rule(run: Run, text: Iteration) -> Ruling:
    """Return a text's verdict, by the first of these that holds, and its column.

    1. The user's ruling stands.
    2. The user's evaluator does not pass it: the verdict is its own.
    3. A blocking point is missed: NEEDS IMPROVEMENT, for that point.
    4. Nothing passes over a No: a claim is disputed, the critic takes the text for not ready, or
       something blocking could not be tried or read: NOT JUDGED.
    5. Something is met that a verdict may rest on: PASS, on the strongest of these.
    6. A critic takes it for ready, or all that it named is a test that passes now: PASS.
    7. NOT JUDGED: nobody checked what it gives.

    A text that repeats an earlier one has that one's verdict.
    """
    if earlier := find_duplicate(run, text):
        ruling = _inherited(run, text, earlier)
    else:
        column = _settled(run, text, checked(run, text))
        new = (one for id_, one in column.points.items() if run.points.get(id_) is not one)
        ruling = Ruling(_computed(run, text, column), column.results, tuple(new))
    if text.override:
        return ruling._replace(verdict=overridden(ruling.verdict, text.override))
    return ruling


def overridden(verdict: Verdict, by: Override) -> Verdict:
    """Return a verdict with the user's own in its place."""
    return verdict.replace(outcome=by.outcome, basis="user", why="user", point="", line="")


def _inherited(run: Run, text: Iteration, earlier: Iteration) -> Ruling:
    before = rule(run, earlier)
    why: Why = "unchanged" if earlier.number == text.parent else "repeats"
    return before._replace(verdict=before.verdict.replace(why=why, point="", line=""))


class _Decision(NamedTuple):
    """What decides on a text; the fields are as those of a verdict."""

    outcome: Outcome
    basis: Basis
    why: Why
    point: str = ""
    line: str = ""


def held_to(run: Run, text: Iteration, column: Column) -> list[Cell]:
    """Return what a verdict on a text may rest on, in the order in which it was said.

    These are the results of checks as wholes, of a critic's tests, and what readers and the user
    say; a test that the text was not tried on yet has no cell.
    """
    cells = [one for one in column.cells if not one.point.dropped]
    tests = [one for one in cells if is_critics(one.point)]
    return [
        *map(_checked, text.evidence),
        *(Cell(p.replace(blocking=False) if p.let_go else p, one) for p, one in tests),
        *(one for one in cells if _is_remark(one.point)),
    ]


def _is_remark(point: Point) -> bool:
    """Return True if a reader or the user says it; others are what a result or a reading shows."""
    said = point.said and point.source != "evaluator" and point.kind != "reading"
    return said or point.kind == "fact"


def _checked(evidence: Evidence) -> Cell:
    source, kind = BY_BASIS.get(evidence.basis, ("run", "result"))
    if evidence.evaluates:
        source, kind = "evaluator", "reading"
    name = evidence.name
    # A check that found nothing to try holds a text to nothing.
    blocking = evidence.required and (evidence.passed is not None or evidence.not_run)
    return Cell(
        Point(source=source, kind=kind, words=name, check=name, blocking=blocking),
        Result(passed=evidence.passed, shows=evidence.shows, says=evidence.says),
    )


def _computed(run: Run, text: Iteration, column: Column) -> Verdict:
    decision, evidence = _decide(run, text, column), run.evidence(text)
    failed = any(one.failed for one in evidence)
    score = None
    if text.judgement and decision.outcome is not Outcome.NOT_JUDGED:
        score = text.judgement.score
    elif decision.outcome is not Outcome.NOT_JUDGED and (failed or basis_of(text) != "none"):
        score = score_by_evidence(text, evidence)
    return Verdict(**decision._asdict(), score=score, required_passed=not failed)


def _decide(run: Run, text: Iteration, column: Column) -> _Decision:
    cells, basis = held_to(run, text, column), basis_of(text)
    missed = sorted((one for one in cells if one.missed), key=_weight)
    word = _word(run, text)
    if word not in (None, Outcome.PASS):
        said = _in_words(text, word, column)
        if missed:
            said = _missed(run, text, missed[0])
        return said._replace(outcome=word, basis="evaluator")
    unread = text.reading.failure if text.reading else ""
    if unread and missed and all(one.point.by_model for one in missed):
        # What a critic said of an earlier text is none of its words on one that nobody read.
        return _Decision(Outcome.NOT_JUDGED, "none", "unreadable", line=unread)
    if missed:
        return _missed(run, text, missed[0])
    if objection := _objection(run, text, cells):
        return objection
    if word:
        return _in_words(text, word, column)
    if _is_unread(run, text):
        return _undecided(run, text)
    if basis != "none":
        return _Decision(Outcome.PASS, basis, "checks_passed")
    if is_tested(run, text):
        return _Decision(Outcome.PASS, "tested", "tests_pass", run.setup.judge)
    reason = text.reading.reason if text.reading and text.reading.ready else ""
    return _Decision(Outcome.PASS, "critique", "nothing_found", run.setup.judge, reason)


def _weight(cell: Cell) -> tuple[bool, bool, bool]:
    """Order missed points: what functions and runs show, then what the user says, then the rest."""
    return not _is_run(cell.point), cell.point.kind != "reading", not cell.point.by_user


def _is_run(point: Point) -> bool:
    return bool(point.check) or is_critics(point)


def _missed(run: Run, text: Iteration, cell: Cell) -> _Decision:
    point, result = cell
    if _is_run(point):
        outcome = result.says or Outcome.NEEDS_IMPROVEMENT
        why: Why = "test_failed" if is_critics(point) else "failed"
        basis = BASES[point.source, point.kind]
        return _Decision(outcome, basis, why, point.id or point.check, first_line(result.shows))
    basis = "evaluator" if text.judgement else basis_of(text)
    basis = "critique" if basis == "none" and is_read(run, text) else basis
    why = "open_over_score" if _word(run, text) is Outcome.PASS else "open"
    return _Decision(Outcome.NEEDS_IMPROVEMENT, basis, why, point.id, cell.words)


def _word(run: Run, text: Iteration) -> Outcome | None:
    """Return what the user's evaluator says of a text; None where it has not been asked."""
    said = text.judgement
    if said is None:
        return None
    if said.says or said.score is None:
        return said.says
    if said.score >= run.limits.target:
        return Outcome.PASS
    return Outcome.FAIL if said.score < FAIL_BELOW else Outcome.NEEDS_IMPROVEMENT


def _settled(run: Run, text: Iteration, column: Column) -> Column:
    """Return a text's column as it stands with its evidence and what is said of it."""
    judgement, word = text.judgement, _word(run, text)
    read = text.reading is not None and not text.reading.failure
    # What a critic said of an earlier text is a suggestion where evidence or the evaluator decides
    # on this one. What the user said is not.
    due = has_evaluator(run) or is_read(run, text) or is_to_read(run, text)
    by_evidence = basis_of(text) != "none" and not due
    if by_evidence or (word is Outcome.PASS and not read):
        for one in column.cells:
            if one.blocks and one.point.by_model:
                column.results[one.id] = one.result.replace(counts=False)
    if judgement:
        feedback = any(one.actionable and is_feedback(one) for one in column.cells)
        bare = ""
        if word is not Outcome.PASS and not feedback:
            bare = f"The evaluator says {judgement.says}."
            if not judgement.says:
                bare = f"It scored {judgement.score or 0:.2f} of {run.limits.target:.2f}."
        take_word(column, "evaluator", bare)
    elif has_evaluator(run):
        return column
    elif is_read(run, text):
        take_word(column, "critic", _unexplained_refusal(run, text, column))
    elif is_tested(run, text):
        for one in up_for_review(run, text):
            column.results[one.id] = one.result.replace(passed=True)
    elif run.setup.model and not (run.setup.coach or is_to_read(run, text)):
        ask_alone(column, text)
    return column


def _unexplained_refusal(run: Run, text: Iteration, column: Column) -> str:
    """Return the critic's No where nothing new says what is to be changed."""
    refusal = _refusal(run, text)
    parent = None if text.parent is None else run.iterations[text.parent]
    cells = [one for one in column.cells if one.is_open and not one.asks]
    own = [one for one in cells if (one.point.source, one.point.kind) == _CRITICS_WORD]
    named = [one for one in cells if one not in own]
    heard = parent and parent.reading and parent.reading.reason == refusal
    if parent and (not heard or any(one.words == refusal for one in own)):
        known = {id_ for id_, one in parent.results.items() if not one.passed}
        named = [one for one in named if one.point.disputed or one.id not in known]
    if refusal is None or named:
        return ""
    return refusal or "The critic says that it isn't ready, without a reason."


def _refusal(run: Run, text: Iteration) -> str | None:
    """Return the sentence of the critic's No on a text; None where there is no No.

    Where the text was to be read and could not be, a No on the one before it stands.
    """
    if not reads(run):
        return None
    if (read := reading_of(run, text)) and (said := read.reading):
        return said.reason if said.ready is False and not said.taken_back else None
    if text.parent is None or not is_to_read(run, text) or is_tested(run, text):
        return None
    return _refusal(run, run.iterations[text.parent])


def _dropped_test(run: Run, text: Iteration) -> Point | None:
    """Return a test that was dropped after its critic called a text ready as if it passed."""
    reading = reading_of(run, text) if reads(run) else None
    if reading is None:
        return None
    passed = {id_ for id_, one in text.results.items() if one.passed}
    dropped = (
        one
        for one in run.points.values()
        if is_critics(one)
        and one.text == reading.number
        and (one.dropped == "broken" or (one.upheld is False and one.id not in passed))
    )
    return next(dropped, None)


def _objection(run: Run, text: Iteration, cells: list[Cell]) -> _Decision | None:
    """Return what no PASS may pass over, if anything: a dispute, a No, or what was not tried."""

    def bars(why: Why, point: str, line: str) -> _Decision:
        return _Decision(Outcome.NOT_JUDGED, "none", why, point, line)

    for cell in cells:
        point = cell.point
        weighs = point.blocking or (point.disputed and not is_critics(point))
        if weighs and (point.disputed or point.unanswered) and cell.result.passed is False:
            return bars("disputed", cell.id, cell.words)
    if (refusal := _refusal(run, text)) is not None:
        unread = text.unread
        return bars("unreadable", "", unread) if unread else bars("not_ready", "", refusal)
    if dropped := _dropped_test(run, text):
        return bars("test_dropped", dropped.id, dropped.reason)
    for point, result in cells:
        if point.blocking and result.passed is None and point.kind != "question":
            if is_critics(point):
                return bars("not_tried", point.id, result.shows)
            return bars("not_run", point.check, first_line(result.shows))
    return None


def _in_words(text: Iteration, word: Outcome, column: Column) -> _Decision:
    """Return what the user's evaluator said, in its own words where it gave any."""
    judgement = text.judgement
    assert judgement is not None, "it was asked"
    said = (one for one in column.cells if one.actionable and is_feedback(one))
    feedback = next((one.words for one in said), "")
    alone = judgement.score is not None and judgement.says is None and not feedback
    return _Decision(word, "evaluator", "scored" if alone else "said", line=feedback)


def _undecided(run: Run, text: Iteration) -> _Decision:
    """Return why nothing decides on a text."""
    unread = text.unread if has_evaluator(run) or needs_reading(run, text) else ""
    evidence = run.evidence(text)
    why: Why
    if unread:
        why = "unreadable"
    elif _only_ran(evidence):
        why = "only_ran"
    elif run.limits.critique == "never" or not run.setup.judge:
        why = "no_critic"
    elif reads(run) and is_plain(run, text):
        why = "plain"
    elif not needs_reading(run, text):
        why = "weak_critic"
    else:
        why = "not_read" if any(one.reading for one in run.iterations) else "no_critic"
    return _Decision(Outcome.NOT_JUDGED, "run" if _only_ran(evidence) else "none", why, line=unread)


def _is_unread(run: Run, text: Iteration) -> bool:
    """Return True if a text lacks the reading without which it cannot pass."""
    if has_evaluator(run):
        return bool(text.unread) or asks_evaluator(run, text) or basis_of(text) == "none"
    basis = basis_of(text)
    known = is_read(run, text) or is_tested(run, text)
    return not known and (basis == "none" or needs_reading(run, text))


def _only_ran(evidence: Iterable[Evidence]) -> bool:
    """Return True if all that the checks say of a text is that it runs."""
    found = [e for e in evidence if e.passed is not None]
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
    waits = text.evaluation is None and not decided
    return has_evaluator(run) and waits and find_duplicate(run, text) is None


def has_evaluator(run: Run) -> bool:
    """Return True if the user's own prompt evaluates the texts."""
    return "judge" in run.setup.prompts


def reads(run: Run) -> bool:
    """Return True if a critic is there whose word counts."""
    return not run.setup.weak_critic and not has_evaluator(run)


def is_read(run: Run, text: Iteration) -> bool:
    """Return True if a critic read a text and its word decides.

    It does not while the critic has still to answer a reviser.
    """
    return reads(run) and not awaits_answer(run, text) and reading_of(run, text) is not None


def reading_of(run: Run, text: Iteration) -> Iteration | None:
    """Return the text that holds the latest reading of a text: it, or the same one."""
    read = (i for i in reversed(run.iterations) if i.reading and not i.reading.failure)
    return next((i for i in read if i.text == text.text), None)


def awaits_answer(run: Run, text: Iteration) -> bool:
    """Return True if the critic has still to answer a reviser about a point that a text misses."""
    return any(one.is_open and one.point.unanswered for one in run.cells(text))


def is_tested(run: Run, text: Iteration) -> bool:
    """Return True if all that a critic named of the text that it read is a test that passes now.

    So it is not asked again, unless the text contests something, has something new, or the user
    says something of it. A No that rests on nothing that is tried stands.
    """
    read = _read_before(run, text)
    if read is None or text.reading or text.contested or not is_to_read(run, text):
        return False
    if run.limits.critique != "auto" or "critique" in run.setup.prompts:
        return False
    own = [one for one in run.points.values() if is_critics(one) and one.text == read.number]
    missed = {one.id for one in run.cells(read) if one.missed}
    names = {one.words for one in own if one.id in missed}
    passed = {id_ for id_, one in text.results.items() if one.passed}
    return (
        bool(names)
        and all(one.dropped in ("", "you") for one in own)
        and all(one.id in passed and not one.unanswered for one in run.tests if not one.let_go)
        and all(one.point.test in names for one in up_for_review(run, text))
        and not is_new(text, read)
    )


def _read_before(run: Run, text: Iteration) -> Iteration | None:
    """Return the last of the texts that one was made from that a critic read; None for none.

    What the user says of one in between, only a reader can answer.
    """
    if text.parent is None or text.sampled:
        return None
    parent = run.iterations[text.parent]
    if parent.override or (parent.reading and parent.reading.failure):
        return None
    return parent if parent.reading else _read_before(run, parent)


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
    return text.parent is None and any(draft.reading for draft in others)


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
    cells: tuple[Cell, ...]


def rival_of(run: Run, text: Iteration) -> Rival | None:
    """Return the first text before a passing revision that only a critic's tests fail, if any.

    There is none once the user has decided. A test that a model wrote may be wrong, and the
    revision bent to it: so the user can take the other text back (self-written tests mislead,
    arXiv 2501.12793).
    """
    if run.ruling or text.verdict is None or text.override or not verdict(run, text).passed:
        return None
    passes, found = {id_ for id_, one in text.results.items() if one.passed}, None
    while text.parent is not None:
        text = run.iterations[text.parent]
        failed = {e.basis for e in run.evidence(text) if e.failed}
        cells = run.cells(text)
        if failed == {"critique"} and not any(c.blocks and c.point.said for c in cells):
            tests = (c for c in cells if is_critics(c.point) and not c.point.dropped)
            missed = (c for c in tests if c.result.passed is False and c.id in passes)
            found = Rival(text, tuple(missed))
    return found if found and found.cells else None


DECIDED = 6  # parts of a standing; the others settle ties


def standing(run: Run, text: Iteration) -> tuple[float, ...] | None:
    """Return where a text stands in the order of texts, the higher the better.

    First comes a PASS; then that fewer required checks failed, unless the user's evaluator scores;
    that nothing the user found wrong still stands; that no finding blocks it; that its critic does
    not call it worse than the text it was made from; its score. A text that the user passed is
    above its checks and findings. Of ties, one that only fails some checks is better than one that
    misses the task, and the first is the best, but for a new revision that nothing gives a score:
    it answers the feedback on those before it. A text that repeats another, on which the checks
    ran, stands where that one does.

    Returns:
        A number for each of these; None before its verdict.
    """
    earlier = find_duplicate(run, text)
    if earlier and not text.override:
        return standing(run, earlier)
    if text.verdict is None:
        return None
    now, evidence = verdict(run, text), run.evidence(text)
    by_user, undecided = now.basis == "user" and now.passed, now.outcome is Outcome.NOT_JUDGED
    scores = has_evaluator(run) or bool(evaluations(text))
    scored = scores and now.score is not None
    failed = 0 if by_user or scored else sum(one.failed for one in evidence)
    cells = run.cells(text)
    users = any(one.actionable and one.point.by_user for one in cells)
    blocks = any(one.blocks and one.point.said for one in cells) and reads(run) and not by_user
    if not scores and not undecided:
        scored = any(None not in (e.score, e.passed) for e in evidence) or bool(text.override)
    answers = text.parent is not None and not earlier and not scored
    if text.parent is not None and (error := _run_error(text)):
        answers &= error != _run_error(run.iterations[text.parent])
    return (
        now.passed,
        -failed,
        by_user or not users,
        not blocks,
        not (text.reading and text.reading.compared == "worse"),
        -1.0 if now.score is None else now.score,
        mean_score(evidence) if undecided else -1.0,
        now.outcome is not Outcome.FAIL,
        text.number if answers else -1,
    )


def _run_error(text: Iteration) -> str:
    failed = (e for e in text.evidence if e.failed and e.basis == "run")
    return next((e.shows.partition("\n")[0] for e in failed), "")


def mean_score(evidence: Iterable[Evidence]) -> float:
    """Return the mean of what counts for a verdict, 0..1; -1 where nothing does."""
    scores = [float(bool(e.passed)) if e.score is None else e.score for e in evidence if e.grounds]
    return sum(scores) / len(scores) if scores else -1.0


def score_by_evidence(text: Iteration, evidence: Sequence[Evidence]) -> float | None:
    """Return the score that a text's evidence gives it; the user's evaluators give it alone."""
    if own := evaluations(text):
        scores = [e.score for e in own if e.score is not None]
        return sum(scores) / len(scores) if scores else None
    score = mean_score(evidence)
    return None if score < 0 else score


def best_of(run: Run) -> int | None:
    """Return the number of the verified iteration that stands highest.

    Texts from before the latest one that the user wrote no longer compete: it is the best,
    whatever it scores, until one that follows it stands higher.
    """
    first = run.latest_edit.number if run.latest_edit else 0
    places = {i.number: place for i in run.iterations[first:] if (place := standing(run, i))}
    return max(places, key=places.__getitem__, default=None)
