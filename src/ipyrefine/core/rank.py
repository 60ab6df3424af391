"""What texts are worth: the verdict of each, computed from its column, and their order.

The verdict reads no earlier one; what is stored of it is what was shown at that moment. The order
rests on the stored ones.
"""

from collections.abc import Sequence

from ipyrefine.core.decisions import Override
from ipyrefine.core.model import RESULTS, Basis, Outcome, Verdict, Why
from ipyrefine.core.points import (
    Column,
    ask_alone,
    checked,
    first_line,
    is_feedback,
    take_word,
    up_for_review,
)
from ipyrefine.core.readers import (
    OWN,
    basis_of,
    find_duplicate,
    has_evaluator,
    reading_of,
    reads,
    state_of,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Cell
from ipyrefine.core.testing import is_critics

FAIL_BELOW = 0.2  # under this score of the evaluator's a text misses the task
_PASS, _NOT_JUDGED, _NEEDS = Outcome.PASS, Outcome.NOT_JUDGED, Outcome.NEEDS_IMPROVEMENT


# The rule


def verdict(run: Run, text: Iteration, column: Column | None = None) -> Verdict:
    """Return a text's verdict, by the first of these that holds.

    1. The user's ruling stands.
    2. The user's evaluator does not pass it: the verdict is its own.
    3. A blocking point is missed: NEEDS IMPROVEMENT, for that point.
    4. Nothing passes over a No: a claim is disputed, the critic takes the text for not ready, or
       something blocking could not be tried or read: NOT JUDGED.
    5. Something is met that a verdict may rest on: PASS, on the strongest of these.
    6. A critic takes it for ready, or all that it named is a test that passes now: PASS.
    7. NOT JUDGED: nobody checked what it gives.

    A text that repeats an earlier one has that one's verdict.

    Args:
        run: the run.
        text: one of its texts.
        column: the text's column as it stands, where that is known.
    """
    if earlier := find_duplicate(run, text):
        why = "unchanged" if earlier.number == text.parent else "repeats"
        found = verdict(run, earlier).replace(why=why, point="", line="")
    else:
        found = _rule(run, text, column or settle(run, text))
        found = found.replace(score=_score(run, text, found))
    return overridden(found, text.override) if text.override else found


def overridden(verdict: Verdict, by: Override) -> Verdict:
    """Return a verdict with the user's own in its place."""
    return verdict.replace(outcome=by.outcome, basis="user", why="user", point="", line="")


def _rule(run: Run, text: Iteration, column: Column) -> Verdict:
    # What checks found counts by their evidence, and what evaluators and bare Noes say by the word.
    cells = [
        cell
        for cell in column.cells
        if not (one := cell.point).dropped
        and (
            (one.said and one.source != "evaluator" and one.kind != "reading")
            or one.kind == "fact"
            or is_critics(one)
        )
    ]
    word, missed = _word(run, text), _missed(run, text, cells)
    if word not in (None, _PASS):
        return (missed or _said(text, word, column)).replace(outcome=word, basis="evaluator")
    if missed or (missed := _barred(run, text, cells)):
        return missed
    return _said(text, word, column) if word else _passed(run, text)


def _missed(run: Run, text: Iteration, cells: Sequence[Cell]) -> Verdict | None:
    """Return the verdict for a point that is missed: what runs show, the user says, or a critic."""
    if failed := [one for one in text.evidence if one.failed]:
        found = min(failed, key=lambda one: not one.evaluates)
        shown = first_line(found.shows)
        return _decided(found.says or _NEEDS, found.basis, "failed", found.name, shown)
    missed = [one for one in cells if one.blocks]
    for point, result in missed:
        if is_critics(point):
            shown = first_line(result.shows)
            return _decided(_NEEDS, "critique", "test_failed", point.id, shown)
    if not missed:
        return None
    unread = text.reading.failure if text.reading and not text.judgement else ""
    if unread and all(one.point.by_model for one in missed):
        # What a critic said of an earlier text is none of its words on one that nobody read.
        return _decided(_NOT_JUDGED, "none", "unreadable", line=unread)
    basis = "evaluator" if text.judgement else basis_of(text)
    basis = "critique" if basis == "none" and state_of(run, text) == "read" else basis
    why: Why = "open_over_score" if _word(run, text) is _PASS else "open"
    first = min(missed, key=lambda one: not one.point.by_user)
    return _decided(_NEEDS, basis, why, first.id, first.words)


def _barred(run: Run, text: Iteration, cells: Sequence[Cell]) -> Verdict | None:
    """Return what no PASS may pass over, if anything: a dispute, a No, or what was not tried."""

    def bars(why: Why, point: str = "", line: str = "") -> Verdict:
        return _decided(_NOT_JUDGED, "none", why, point, line)

    for cell in cells:
        point = cell.point
        weighs = point.blocking or (point.disputed and not is_critics(point))
        if weighs and (point.disputed or point.unanswered) and cell.result.passed is False:
            return bars("disputed", cell.id, cell.words)
    if (no := _refusal(run, text)) is not None:
        return bars("unreadable" if text.unread else "not_ready", line=text.unread or no)
    for one in text.evidence:
        if one.counts and one.not_run:
            return bars("not_run", one.name, first_line(one.shows))
    for point, result in cells:
        waits = point.blocking and not point.let_go and result.passed is None
        if is_critics(point) and waits:
            return bars("not_tried", point.id, result.shows)
    same = {one.number for one in run.iterations if one.text == text.text} if reads(run) else {}
    for point in run.points.values():
        if point.dropped == "broken" and point.text in same:
            return bars("not_tried", point.id, point.reason)
    return None


def _passed(run: Run, text: Iteration) -> Verdict:
    """Return the verdict on a text that misses nothing: by evidence, by a critic, or none."""
    basis, judge, state = basis_of(text), run.setup.judge, state_of(run, text)
    wanted = state in ("tested", "waits") and basis != "confirmed"
    if has_evaluator(run):
        enough = text.evaluation is None and basis in OWN
    else:
        enough = state in ("read", "tested") or (basis != "none" and not wanted)
    odd = next((one.shows for one in text.evidence if one.name == RESULTS), "")
    enough = enough and not (odd and basis == "examples" and state in ("none", "plain"))
    if enough and basis != "none":
        return _decided(_PASS, basis, "checks_passed")
    if enough and state == "tested":
        return _decided(_PASS, "tested", "tests_pass", judge)
    if enough:
        reason = text.reading.reason if text.reading and text.reading.ready else ""
        return _decided(_PASS, "critique", "nothing_found", judge, reason)
    found = [one for one in run.evidence(text) if one.passed is not None]
    only_ran = bool(found) and all(one.passed and one.basis == "run" for one in found)
    unread = text.unread if has_evaluator(run) or wanted else ""
    why: Why = "no_critic"
    if unread:
        why = "unreadable"
    elif odd:
        why = "raised"
    elif only_ran:
        why = "only_ran"
    elif run.limits.critique != "never" and judge:
        if state == "plain":
            why = "plain"
        elif not wanted:
            why = "weak_critic"
    return _decided(_NOT_JUDGED, "run" if only_ran else "none", why, line=unread or odd)


def _decided(outcome: Outcome, basis: Basis, why: Why, point: str = "", line: str = "") -> Verdict:
    return Verdict(outcome=outcome, score=None, basis=basis, why=why, point=point, line=line)


def _word(run: Run, text: Iteration) -> Outcome | None:
    """Return what the user's evaluator says of a text; None where it has not been asked."""
    said = text.judgement
    if said is None:
        return None
    if said.says or said.score is None:
        return said.says
    if said.score >= run.limits.target:
        return _PASS
    return Outcome.FAIL if said.score < FAIL_BELOW else _NEEDS


def _said(text: Iteration, word: Outcome, column: Column) -> Verdict:
    """Return what the user's evaluator said, in its own words where it gave any."""
    assert text.judgement is not None, "it was asked"
    said = (one.words for one in column.cells if one.actionable and is_feedback(one))
    feedback = next(said, "")
    alone = text.judgement.says is None and not feedback
    return _decided(word, "evaluator", "scored" if alone else "said", line=feedback)


def _score(run: Run, text: Iteration, found: Verdict) -> float | None:
    """Return a text's score: its evaluators' alone, else what part of its evidence holds."""
    if found.outcome is _NOT_JUDGED:
        return None
    if text.judgement:
        return text.judgement.score
    evidence = run.evidence(text)
    if basis_of(text) == "none" and not any(one.failed for one in evidence):
        return None
    if own := [one for one in text.evidence if one.evaluates]:
        scores = [one.score for one in own if one.score is not None]
    else:
        counted = (one for one in evidence if one.grounds)
        scores = [float(bool(e.passed)) if e.score is None else e.score for e in counted]
    return sum(scores) / len(scores) if scores else None


# The column


def settle(run: Run, text: Iteration) -> Column:
    """Return a text's column as it stands with its evidence and what is said of it."""
    if earlier := find_duplicate(run, text):
        return settle(run, earlier)
    column, word = checked(run, text), _word(run, text)
    state = state_of(run, text)
    by_evidence = not has_evaluator(run) and state in ("none", "plain", "own")
    unread = text.reading is None or bool(text.reading.failure)
    if (by_evidence and basis_of(text) != "none") or (word is _PASS and unread):
        # What a critic said of an earlier text is a suggestion where evidence or the evaluator
        # decides on this one. What the user said is not.
        for one in column.cells:
            if one.blocks and one.point.by_model:
                column.results[one.id] = one.result.replace(counts=False)
    judgement = text.judgement
    if judgement:
        feedback = any(one.actionable and is_feedback(one) for one in column.cells)
        bare = f"It scored {judgement.score or 0:.2f} of {run.limits.target:.2f}."
        if judgement.says:
            bare = f"The evaluator says {judgement.says}."
        take_word(column, "" if word is _PASS or feedback else bare)
    elif state == "tested":
        for one in up_for_review(run, text):
            column.results[one.id] = one.result.replace(passed=True)
    elif by_evidence and run.setup.model and not run.setup.coach:
        ask_alone(column, text)
    return column


def _refusal(run: Run, text: Iteration) -> str | None:
    """Return the sentence of the critic's No on a text; None where there is no No.

    Where the text was to be read and could not be, a No on the one before it stands.
    """
    if not reads(run):
        return None
    if (read := reading_of(run, text)) and (said := read.reading):
        return said.reason if said.ready is False and not said.taken_back else None
    if text.parent is None or state_of(run, text) != "waits":
        return None
    return _refusal(run, run.iterations[text.parent])


# The order

Place = tuple[float, ...]  # the higher the better


def merit(run: Run, text: Iteration) -> Place | None:
    """Return how good a text is by what is known of it; None before its verdict.

    First comes a PASS, the user's before others; then that fewer required checks failed, unless the
    user's evaluator scores; that nothing the user found wrong still stands; that no finding blocks
    it; that its critic does not call it worse than the text it was made from; its score. A text
    that the user passed is above its checks and findings, and one that repeats another is worth as
    much as that.
    """
    text = (not text.override and find_duplicate(run, text)) or text
    if (now := text.verdict) is None:
        return None
    cells, by_user = run.cells(text), now.basis == "user" and now.passed
    counts = not by_user and not is_scored(run, text)
    failed = sum(one.failed for one in run.evidence(text)) if counts else 0
    blocks = reads(run) and any(one.blocks and one.point.said for one in cells)
    return (
        now.passed,
        by_user,
        -failed,
        by_user or not any(one.actionable and one.point.by_user for one in cells),
        by_user or not blocks,
        not (text.reading and text.reading.compared == "worse"),
        -1.0 if now.score is None else now.score,
    )


def _run_error(text: Iteration) -> str:
    failed = (one for one in text.evidence if one.failed and one.basis == "run")
    return next((first_line(one.shows) for one in failed), "")


def standing(run: Run, text: Iteration) -> tuple[Place, bool, int] | None:
    """Return where a text stands in the order of texts, the higher the better; None as `merit`.

    Of ties, one that only fails some checks is better than one that misses the task, and the first
    is the best, but for a new revision that nothing gives a score: it answers the feedback on those
    before it, unless it fails with the same error as the text it was made from.
    """
    place, now = merit(run, text), text.verdict
    if place is None or now is None:
        return None
    scores = (None not in (one.score, one.passed) for one in run.evidence(text))
    scored = now.score is not None and (is_scored(run, text) or any(scores))
    new = text.parent is not None and find_duplicate(run, text) is None
    if text.parent is not None and (error := _run_error(text)):
        new &= error != _run_error(run.iterations[text.parent])
    return place, now.outcome is not Outcome.FAIL, text.number if new and not scored else -1


def is_scored(run: Run, text: Iteration) -> bool:
    """Return True if the user's evaluator, a prompt or a function, gave a text its score."""
    own = has_evaluator(run) or any(one.evaluates for one in text.evidence)
    return own and text.verdict is not None and text.verdict.score is not None


def best_of(run: Run) -> int | None:
    """Return the number of the verified iteration that stands highest.

    Texts from before the latest one that the user wrote no longer compete: it is the best,
    whatever it scores, until one that follows it stands higher.
    """
    first = run.latest_edit.number if run.latest_edit else 0
    places = {i.number: place for i in run.iterations[first:] if (place := standing(run, i))}
    return max(places, key=places.__getitem__, default=None)
