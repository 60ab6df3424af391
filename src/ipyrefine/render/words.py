"""What is said of a text's verdict and of a run's end; each surface shows some of it."""

from typing import NamedTuple

from ipyrefine.core.after import Said
from ipyrefine.core.after import words as words_after
from ipyrefine.core.model import Basis, Outcome, Stage, StopReason, Verdict, bare, on_conditions
from ipyrefine.core.points import to_check
from ipyrefine.core.readers import find_duplicate
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Cell, Result
from ipyrefine.render.labels import Label, check_name, count, quoted, running, score, seconds

Phrases = list[tuple[str, str]]  # what stands out, and what follows it

OUTCOMES = {
    Outcome.PASS: Label("✓", "PASS", "good"),
    Outcome.NEEDS_IMPROVEMENT: Label("✎", "NEEDS IMPROVEMENT", "warn"),
    Outcome.FAIL: Label("✗", "FAIL", "bad"),
    Outcome.NOT_JUDGED: Label("?", "NOT JUDGED", "quiet"),
}
# Of a text that no model wrote or reads: what became of it.
_LOOKS = {
    Outcome.NEEDS_IMPROVEMENT: Label("✗", "FAILS", "bad"),
    Outcome.NOT_JUDGED: Label("·", "NOT RUN", "quiet"),
}
_ANSWERED = Label("»", "ANSWERED", "quiet")
_RUNS = Label("▷", "RUNS", "quiet")
_TO_RUN = "To run it here: %refine accept."


class _Basis(NamedTuple):
    passed: str  # what a PASS rests on
    failed: str = ""  # of a text that does not pass, what it failed
    source: str = ""  # whose it is, where it can't be repeated from a file


_BASES: dict[Basis, _Basis] = {
    "tests": _Basis("tests", "tests failed", "your tests"),
    "function": _Basis("checks", "a check failed", "your function"),
    "schema": _Basis("schema", "schema failed"),
    "confirmed": _Basis("results confirmed", "examples failed", "confirmed results"),
    "examples": _Basis("examples", "examples failed", "examples"),
    "constraints": _Basis("constraints", "constraints failed"),
    "critique": _Basis("", "critic's tests failed", "a critic's reading"),
    "tested": _Basis("", source="a critic's tests"),
    "evaluator": _Basis("evaluator", "evaluator", "your evaluator"),
    "user": _Basis(""),
    "run": _Basis("runs", "run failed"),
    "none": _Basis(""),
}
_VERBS = {"example": "hold", "result": "that you expect hold", "test": "pass"}
_WHY = {
    "only_ran": "Runs; nobody checked what it gives.",
    "no_critic": "Nobody was asked to read it.",
    "weak_critic": "This model was measured too weak to criticise.",
    "disputed": "Yours to decide: critic and writer disagree about a claim. {claim}",
    "not_ready": "The critic says that it isn't ready: {reason}",
    "not_tried": "{test} was not tried: {line}",
    "not_run": "{line}",
    "unreadable": "Its reader gave no verdict: {line}.",
    "scored": "Scored {score}, target {target}.",
    "not_read": "Another draft was read instead.",
    "plain": "Yours to judge: no critic reads plots, displays and microcopy (--critique always).",
    "unchanged": "The revision changed nothing.",
}
STATED = ("constraints", "schema")  # what a passed check of these holds to is its name
_FAILED = ("failed", "test_failed")
_POINTED = (*_FAILED, "open", "open_over_score", "said")  # what is missed says it
# Of these, what passed all the same is said too.
_ALL_THE_SAME = ("no_critic", "weak_critic", "unreadable", "not_read", "plain", "not_run")


class Words(NamedTuple):
    """What is said of a verdict."""

    title: Label  # the outcome alone
    label: Label  # the outcome with what it rests on, like ``✓ PASS · 3 examples``
    phrases: Phrases  # what it rests on, counted: ``3 of 3 examples`` and ``hold``
    sentence: str = ""  # why it is what it is, in a sentence or two; empty where nothing says so
    line: str = ""  # of that sentence, what a failed check shows
    score: str = ""  # what to show next to the label, where that does not have it


def verdict(run: Run, text: Iteration | None) -> Words:
    """Return what is said of a text's verdict; without any text, of the run."""
    if text is None and run.stop_reason:
        label = Label("✗", "STOPPED", "bad")
        if run.stop_reason is StopReason.CANCELLED:
            label = Label("■", "STOPPED", "quiet")
        return Words(label, label, [("", run.message)])
    if run.stop_reason is StopReason.ANSWERED:
        return Words(_ANSWERED, _ANSWERED, [("", "the text stays as it was")])
    found = text.verdict if text else None
    accepted = run.stop_reason is StopReason.ACCEPTED and text is run.chosen
    if text and found is None and (accepted or awaits_reading(run, text)):
        return _unread(run, text)
    by_user = found and (found.basis == "user" or found.why == "open")
    if text and found and run.setup.is_look and found.outcome in _LOOKS and not by_user:
        return _look(run, text, found)
    title = _title(found)
    if text is None or found is None:
        return Words(title, title, [])
    asked = to_check(run, text) if found.by_critic else []
    if asked:
        title = Label("!", f"{len(asked)} TO CHECK", "warn")
    over = f"{title.word}, over a failed check" if found.over_failed_check else title.word
    ran_on = on_conditions(text.conditions)
    label = title._replace(word=" · ".join(filter(None, (over, _basis(run, text, found), ran_on))))
    sentence = _sentence(run, text, found)
    phrases = [("", asked[0].words)] if asked else _phrases(run, text, found, sentence)
    if ran_on and not any(ran_on in rest for _, rest in phrases):
        phrases = [*((first, rest.rstrip(".")) for first, rest in phrases), ("", ran_on)]
    if found.over_failed_check:
        title = title._replace(symbol="⚠", kind="warn")
    alone = found.basis == "function" and found.score is not None
    line = _failing_line(run, found) if found.why in _FAILED else ""
    return Words(title, label, phrases, sentence, line, score(found.score) if alone else "")


def _look(run: Run, text: Iteration, verdict: Verdict) -> Words:
    """Return what is said of a text that is only looked at and does not pass."""
    ran_on, line = on_conditions(text.conditions), _failing_line(run, verdict)
    label, sentence = _LOOKS[verdict.outcome], line or _sentence(run, text, verdict)
    if verdict.outcome is Outcome.NOT_JUDGED and verdict.why != "not_run":
        if verdict.only_ran or any(one.rows for one in text.evidence):
            unread = [("", "nobody read it")]
            sentence = f"Runs{f' {ran_on}' if ran_on else ''}; nobody read it."
            return Words(_RUNS, _RUNS, [*([("", ran_on)] if ran_on else []), *unread], sentence)
        if run.task.form == "prose":
            sentence = "This is text, not code: there is nothing to run."
        elif run.task.is_foreign:
            sentence = f"This is {run.task.language_name} code, and only Python is run."
        else:
            sentence = "There is no Python in it, and only Python is run."
    first = sentence.partition("\n")[0].removeprefix("Not run: ")
    return Words(label, label, [("", first)], sentence, line)


def awaits_reading(run: Run, text: Iteration | None) -> bool:
    """Return True if a critic is reading a text that has no verdict yet, and may be used."""
    reading = running(run) and run.stage is Stage.CRITIQUE
    return reading and text is not None and text.verdict is None


def _unread(run: Run, text: Iteration) -> Words:
    """Return what is known of a text that a critic has still to read, or never will."""
    passed = [one for one in run.evidence(text) if one.passed]
    ran = any(one.basis not in ("constraints", "schema") for one in passed)
    label = Label("…", "RUNS" if ran else "DRAFTED", "quiet")
    phrases = [said for one in passed if one.counts and one.grounds for said in _counted(one)]
    ran_on = [("", words)] if (words := on_conditions(text.conditions)) else []
    rest = "accepted before it had a verdict" if run.stop_reason else "not read yet"
    return Words(label, label, [*phrases, *ran_on, ("", rest)])


def _title(verdict: Verdict | None) -> Label:
    # Only evidence is drawn in full green. An evaluator's or the user's verdict has a symbol of
    # its own, so that nobody needs colour to see the difference.
    if verdict is None:
        return Label("?", "NOT VERIFIED", "quiet")
    label = OUTCOMES[verdict.outcome]
    if verdict.basis == "user":
        label = label._replace(word=f"{label.word} (yours)")
        return label._replace(symbol="☑", kind="yours") if verdict.passed else label
    if verdict.by_critic:
        word = "NOTHING FOUND" if verdict.basis == "critique" else "CRITIC'S TESTS PASS"
        return Label("○", word, "opinion", hollow=True)
    if verdict.basis == "evaluator" and verdict.passed:
        return label._replace(symbol="○", kind="opinion", hollow=True)
    return label._replace(hollow=verdict.basis == "evaluator" or verdict.only_ran)


def kept_label(verdict: Verdict) -> str:
    """Return the label of a verdict whose text is not at hand, with what it rests on."""
    return " · ".join(filter(None, (str(_title(verdict)), _BASES[verdict.basis].passed)))


def source(verdict: Verdict) -> str:
    """Return what a PASS rests on, where that can't be repeated from a file."""
    return _BASES[verdict.basis].source or f"`{verdict.basis}`"


def _basis(run: Run, text: Iteration, verdict: Verdict) -> str:
    passed, failed, _ = _BASES[verdict.basis]
    if verdict.basis == "user":
        return ""
    if verdict.outcome is Outcome.NOT_JUDGED:
        return passed if verdict.only_ran else ""
    if verdict.required_passed and verdict.outcome is Outcome.NEEDS_IMPROVEMENT:
        blocking, said = sum(one.blocks for one in run.cells(text)), text.judgement
        if blocking and (said is None or said.says in (None, Outcome.PASS)):
            return count(blocking, "open finding")
    if verdict.basis == "evaluator":
        return passed if verdict.score is None else f"{passed}, {score(verdict.score)}"
    if not verdict.passed:
        return passed if verdict.required_passed else failed
    if verdict.basis in ("examples", "confirmed"):
        found = (e.tallies for e in text.evidence if e.basis == verdict.basis)
        held = [count(one[0], noun) for e in found for noun, one in e.items()]
        if held:
            return f"{', '.join(held)} confirmed" if verdict.basis == "confirmed" else held[0]
    return passed


def _phrases(run: Run, text: Iteration, verdict: Verdict, sentence: str) -> Phrases:
    first = sentence.partition("\n")[0]
    if verdict.basis == "user":
        failed = [f"{e.name} failed" for e in run.evidence(text) if e.failed]
        over = f", though {', '.join(failed)}" if verdict.over_failed_check else ""
        words = text.override.reason if text.override else ""
        return [("", f"marked by you{over}{f': {words}' if words else ''}")]
    if verdict.outcome is Outcome.NOT_JUDGED or verdict.by_critic:
        return [("", first)]
    if not verdict.passed and verdict.why in _POINTED and verdict.line:
        return [("", missed_line(run, text, verdict).partition("\n")[0])]
    found = Phrases()
    if verdict.basis != "evaluator":
        of_it = (e for e in run.evidence(text) if e.passed == verdict.passed and e.counts)
        found = [phrase for e in of_it if e.grounds for phrase in _counted(e)]
        if not found and not verdict.passed and first:
            found = [("", first)]
    unread = [("", "nobody read it")] if verdict.passed and text.unread else []
    return [*(found or [("", _basis(run, text, verdict))]), *unread]


def counted(evidence: Result) -> str:
    """Return what to write beside a check's mark: ``3 of 4 examples hold``, ``at most 9 words``."""
    if evidence.passed is None:
        return f"{check_name(evidence.name)}: no result"
    if evidence.passed and evidence.basis in STATED:
        return check_name(evidence.name)
    said = ", ".join(f"{bold} {rest}" for bold, rest in _counted(evidence))
    if evidence.basis == "function" and evidence.score not in (None, 0, 1):
        said += f": {score(evidence.score)}"
    return said if evidence.counts or evidence.passed else f"{said}, which does not block"


def _counted(evidence: Result) -> Phrases:
    found = []
    for noun, (held, of) in evidence.tallies.items():
        if evidence.passed and noun == "result":
            found.append((count(of, noun), "confirmed by you"))
        elif evidence.passed or held < of:
            every = count(of, noun) if of != 1 else f"1 {noun}s"
            found.append((f"{held} of {every}", _VERBS[noun]))
    return found or [(check_name(evidence.name), "passed" if evidence.passed else "failed")]


def _sentence(run: Run, text: Iteration, verdict: Verdict) -> str:
    sentence = _reason(run, text, verdict)
    passed = ", ".join(one.name for one in run.evidence(text) if one.passed)
    told = passed and verdict.why in _ALL_THE_SAME
    return f"{sentence} Passed: {passed}." if told else sentence


def _reason(run: Run, text: Iteration, verdict: Verdict) -> str:
    point, line = verdict.point, verdict.line
    match verdict.why:
        case "checks_passed":
            found = (one for one in run.evidence(text) if one.passed and one.grounds)
            passed = ", ".join(one.name for one in found)
            return f"{passed} passed." if passed else ""  # they are being run again
        case "nothing_found":
            held = (text.results.get(one.id) for one in run.tests)
            tests = sum(bool(one and one.passed and one.counts) for one in held)
            if not tests:
                return f"{point} read it and names nothing that blocks it."
            return f"{point} wrote {count(tests, 'test')}, all pass; none confirmed."
        case "tests_pass":
            return f"Every finding's test passes; {point} did not read it again."
        case "failed":
            return f"{check_name(point)} failed{f': {line}' if line else '.'}"
        case "test_failed":
            return f"critic's tests failed: {_failing_line(run, verdict)}"
        case "said":
            return line or f"The evaluator says {verdict.outcome}."
        case "open" | "open_over_score":
            over = verdict.why == "open_over_score"
            but = f"The evaluator passes it, but {point} still blocks. " if over else ""
            filed = run.points[point].criterion if point in run.points else ""
            said = f"{but}{filed}{': ' if filed else ''}{line}"
            if point not in run.points or run.points[point].source != "you":
                return said
            return f"{said.rstrip('.')}. Accept the text if that is done, or dismiss {point}."
        case "repeats" | "unchanged" if text.failure:
            return text.failure
        case "repeats":
            earlier = find_duplicate(run, text)
            return f"The same text as {run.mention(earlier.number)}." if earlier else ""
        case "user":
            words = text.override.reason if text.override else ""
            return f"Marked {OUTCOMES[verdict.outcome].word} by you{f': {words}' if words else '.'}"
    said = _WHY.get(verdict.why, "").format(
        line=line,
        reason=line or "no reason given.",
        claim=_rival_results(run, text, point) or f"{point}: {line}",
        test=run.points[point].words if point in run.points else point,
        score=score(verdict.score),
        target=score(run.limits.target),
    )
    return said.strip()


def missed_line(run: Run, text: Iteration, verdict: Verdict) -> str:
    """Return what the point that decides shows; of a test of one call, the call with its result."""
    result = text.results.get(verdict.point)
    if verdict.why == "test_failed" and verdict.point in run.points and result and result.gives:
        cell = Cell(run.points[verdict.point], result)
        return call_line(cell)
    return verdict.line


def _failing_line(run: Run, verdict: Verdict) -> str:
    """Return what a failed point shows; of a critic's test, with the words that it rests on."""
    test = run.points.get(verdict.point) if verdict.why == "test_failed" else None
    return f"{test.words} ({quoted(test.quote)}): {verdict.line}" if test else verdict.line


def _rival_results(run: Run, text: Iteration, point: str) -> str:
    """Return what a disputed test expects and what the text gives; empty where that isn't known."""
    result = text.results.get(point) if point in run.points else None
    if result is None or not result.gives:
        return ""
    expected, gives = bare(result.expected), bare(result.gives)
    return f"{result.call}: the critic expects {expected}, the text gives {gives}."


# The end of a run


def stop_sentence(run: Run) -> str:
    """Return why a run stopped, with what its best text lacks; empty while it goes on."""
    best = run.iterations[run.best] if run.best is not None else None
    if best is None:
        return run.message
    said = verdict(run, best)
    if run.setup.is_look:
        runs = said.title is _RUNS or said.title.kind == "good"
        return " ".join(filter(None, [said.sentence, _TO_RUN * runs]))
    found = best.verdict if said.sentence else None
    match run.stop_reason:
        case StopReason.UNJUDGED if found:
            whole = found.why in ("only_ran", "not_run", "not_tried")
            return f"{'' if whole else 'Not judged: '}{said.sentence} {run.message}"
        case StopReason.PLATEAU | StopReason.REVISIONS if found and not found.passed:
            still = "failing" if found.why in _FAILED else "open"
            return f"{run.message} Still {still}: {said.line or said.sentence}"
    return run.message


def receipt(run: Run) -> Words:
    """Return what is said of a decided run: its text's verdict, and what came of its cell."""
    text, ran = run.chosen, ran_words(run)
    said = verdict(run, text)
    label, phrases = said.title, said.phrases
    judged = text is not None and text.verdict is not None
    taken = run.stop_reason is StopReason.ACCEPTED and judged and not run.setup.is_look
    ends = ["accepted"] if taken else []
    if ran.differs:
        label, phrases = Label("⚠", "DIFFERS NOW THAT IT RAN", "warn"), []
        ends.insert(0, ran.sentence)
    elif ran.sentence:
        ends.append(ran.sentence)
        # What it gave says more than that nobody found anything.
        phrases = [] if said.title.hollow else phrases
    ends += [seconds(run.seconds)] if run.seconds else []
    told = [(first, rest.rstrip(".")) for first, rest in [*phrases, *(("", one) for one in ends)]]
    return said._replace(title=label, phrases=told)


def ran_words(run: Run) -> Said:
    """Return what is said of the accepted text's run in its cell; no sentence before it ran."""
    text = run.chosen if run.stop_reason is StopReason.ACCEPTED else None
    if run.ran is None or text is None or text.number != run.ran.iteration:
        return Said("", False)
    return words_after(run.ran)


def call_line(cell: Cell) -> str:
    """Return what a failing test shows as its call with the result, else by its name."""
    one = cell.result
    if not one.gives:
        return f"`{cell.point.words}`: {one.shows}"
    return f"`{one.call}` → `{bare(one.gives)}`, expected `{bare(one.expected)}`"
