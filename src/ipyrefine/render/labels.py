"""Words and number formats that every surface shares."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from ipyrefine.core.edits import Loss
from ipyrefine.core.expectations import Expectation, counts
from ipyrefine.core.model import (
    LOW_SCORE,
    SUITE,
    Basis,
    Budget,
    ByUser,
    CheckFailed,
    ChecksPassed,
    Claim,
    Evidence,
    Finding,
    Form,
    NothingFound,
    Outcome,
    Price,
    Repeats,
    Said,
    Scored,
    Setup,
    Severity,
    Stage,
    Status,
    StillOpen,
    StopReason,
    Task,
    TestResult,
    Undecided,
    Usage,
    Verdict,
    on_conditions,
)
from ipyrefine.core.policy import forecast
from ipyrefine.core.rank import Rival, has_evaluator, is_another_read, is_to_read
from ipyrefine.core.results import missed_claim, rows
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Sharing
from ipyrefine.core.stated import read_examples

NONE = "\N{EN DASH}"
STAGES = {
    "choose": "Reading the task",
    "draft": "Writing",
    "check": "Checking",
    "judge": "Evaluating",
    "critique": "Critiquing",
    "revise": "Revising",
    "explain": "Answering",
}
STOPS = {
    StopReason.PASSED: "passed",
    StopReason.PLATEAU: "no improvement",
    StopReason.REVISIONS: "all revisions used",
    StopReason.BUDGET: "budget used up",
    StopReason.UNJUDGED: "not judged",
    StopReason.CANCELLED: "interrupted",
    StopReason.FAILED: "an error",
    StopReason.ACCEPTED: "accepted by you",
    StopReason.OVERRIDDEN: "marked PASS by you",
    StopReason.PAUSED: "waiting for you",
}


class Label(NamedTuple):
    """A word with a symbol, so that its meaning never rests on colour alone."""

    symbol: str  # one character, or none
    word: str  # one or a few words
    # the style: `good`, `warn`, `bad`, `quiet`, `open`, `opinion` (a PASS that a model gave) or
    # `yours` (one that the user gave)
    kind: str
    # whether it is drawn as an outline, as no evidence says that the text is right
    hollow: bool = False

    def __str__(self) -> str:
        return f"{self.symbol} {self.word}".strip()


NO_NEW_TEXT = Label("⚠", "no new text", "bad")
BEST = "★ best"
OUTCOMES = {
    Outcome.PASS: Label("✓", "PASS", "good"),
    Outcome.NEEDS_IMPROVEMENT: Label("✎", "NEEDS IMPROVEMENT", "warn"),
    Outcome.FAIL: Label("✗", "FAIL", "bad"),
    Outcome.NOT_JUDGED: Label("?", "NOT JUDGED", "quiet"),
}
STATUSES = {
    Status.OPEN: Label("○", "open", "open"),
    Status.RESOLVED: Label("✓", "resolved", "good"),
    Status.DISMISSED: Label("", "dismissed by you", "quiet"),
    Status.REGRESSED: Label("↩", "back again", "bad"),
}
# What a PASS rests on; of a text that does not pass, what it failed.
BASES: dict[Basis, tuple[str, str]] = {
    "tests": ("tests", "tests failed"),
    "function": ("checks", "a check failed"),
    "schema": ("schema", "schema failed"),
    "confirmed": ("results confirmed", "examples failed"),
    "examples": ("examples", "examples failed"),
    "constraints": ("constraints", "constraints failed"),
    "critique": ("", "critic's tests failed"),
    "evaluator": ("evaluator", "evaluator"),
    "user": ("yours", "yours"),
    "run": ("runs", "run failed"),
    "none": ("", ""),
}
_VERBS = {
    "example": "hold",
    "result": "that you expect hold",
    "test": "pass",
}

_CHIPS = {"example": "examples", "result": "results"}


# Verdicts


def outcome_label(verdict: Verdict | None) -> Label:
    """Return the label of a verdict, without what it rests on.

    Only evidence is drawn in full green. An evaluator's or the user's verdict has a symbol of
    its own, so that nobody needs colour to see the difference.
    """
    if verdict is None:
        return Label("?", "NOT VERIFIED", "quiet")
    label = OUTCOMES[verdict.outcome]
    if verdict.basis == "user":
        label = label._replace(word=f"{label.word} (yours)")
        return label._replace(symbol="☑", kind="yours") if verdict.passed else label
    if verdict.passed and verdict.basis == "critique":
        return Label("○", "NOTHING FOUND", "opinion", hollow=True)
    if verdict.basis == "evaluator" and verdict.passed:
        return label._replace(symbol="○", kind="opinion", hollow=True)
    return label._replace(hollow=verdict.basis == "evaluator" or verdict.only_ran)


def iteration_label(iteration: Iteration | None) -> Label:
    """Return the label of a text's verdict with what it rests on, like ``✓ PASS · 3 examples``."""
    verdict = iteration.verdict if iteration else None
    label = outcome_label(verdict)
    if iteration is None or verdict is None:
        return label
    if verdict.over_failed_check:
        label = label._replace(word=f"{label.word}, over a failed check")
    basis = "" if verdict.basis == "user" else _basis(iteration, verdict)
    parts = (label.word, basis, on_conditions(iteration.conditions))
    return label._replace(word=" · ".join(filter(None, parts)))


def _basis(iteration: Iteration, verdict: Verdict) -> str:
    passed, failed = BASES[verdict.basis]
    if verdict.outcome is Outcome.NOT_JUDGED:
        return passed if verdict.only_ran else ""
    if verdict.required_passed and verdict.outcome is Outcome.NEEDS_IMPROVEMENT:
        blocking, said = sum(f.blocks for f in iteration.findings), iteration.judgement
        if blocking and (said is None or said.stated in (None, Outcome.PASS)):
            return count(blocking, "open finding")
    if verdict.basis == "evaluator":
        return passed if verdict.score is None else f"{passed}, {score(verdict.score)}"
    if not verdict.passed and verdict.required_passed:
        return passed
    if verdict.passed and verdict.basis in ("examples", "confirmed"):
        tallies = [t for e in iteration.evidence if e.basis == verdict.basis for t in e.tallies]
        held = [count(t.held, t.noun) for t in tallies if t.noun in ("example", "result")]
        if held:
            return f"{', '.join(held)} confirmed" if verdict.basis == "confirmed" else held[0]
        return passed
    return passed if verdict.passed else failed


def basis_phrases(run: Run, iteration: Iteration) -> list[tuple[str, str]]:
    """Return what a verdict rests on as phrases: what stands out, and what follows it."""
    if iteration.verdict is None:
        return []
    phrases, ran_on = _basis_phrases(run, iteration, iteration.verdict), _ran_on(iteration)
    told = any(words in phrase for _, phrase in phrases for _, words in ran_on)
    if told or not ran_on:
        return phrases
    return [*((first, rest.rstrip(".")) for first, rest in phrases), *ran_on]


def _ran_on(iteration: Iteration) -> list[tuple[str, str]]:
    """Return a phrase for a text that ran on less than the real thing; else none."""
    return [("", words)] if (words := on_conditions(iteration.conditions)) else []


def _basis_phrases(run: Run, iteration: Iteration, verdict: Verdict) -> list[tuple[str, str]]:
    reason = because_sentence(run, verdict).partition("\n")[0]
    if verdict.basis == "user":
        failed = [f"{e.name} failed" for e in iteration.evidence if e.failed]
        over = f", though {', '.join(failed)}" if verdict.over_failed_check else ""
        words = iteration.override.reason if iteration.override else ""
        return [("", f"marked by you{over}{f': {words}' if words else ''}")]
    if verdict.outcome is Outcome.NOT_JUDGED or (verdict.passed and verdict.basis == "critique"):
        return [("", reason)]
    phrases = []
    for one in iteration.evidence if verdict.basis != "evaluator" else ():
        if one.passed == verdict.passed and one.required and one.grounds:
            phrases += _evidence_phrases(one)
    if not phrases and not verdict.passed and reason and verdict.basis != "evaluator":
        phrases = [("", reason)]
    phrases = phrases or [("", _basis(iteration, verdict))]
    return [*phrases, ("", "nobody read it")] if verdict.passed and iteration.unread else phrases


def _evidence_phrases(evidence: Evidence) -> list[tuple[str, str]]:
    """Return a check's result in words: ``3 of 3 examples`` and ``hold``."""
    found = []
    for tally in evidence.tallies:
        if evidence.passed and tally.noun == "result":
            found.append((count(tally.of, "result"), "confirmed by you"))
        elif evidence.passed or tally.held < tally.of:
            noun = count(tally.of, tally.noun) if tally.of != 1 else f"1 {tally.noun}s"
            found.append((f"{tally.held} of {noun}", _VERBS[tally.noun]))
    return found or [(check_name(evidence.name), "passed" if evidence.passed else "failed")]


def score_beside(verdict: Verdict | None) -> str:
    """Return the score to show next to a verdict's label; empty where the label has it, or none."""
    if verdict is None or verdict.basis != "function" or verdict.score is None:
        return ""
    return score(verdict.score)


def has_scores(run: Run) -> bool:
    """Return True if an evaluator or a user's function scores the texts of a run."""
    found = (e for i in run.iterations for e in i.evidence)
    return has_evaluator(run) or any(e.basis == "function" for e in found)


def lenient_evaluator(run: Run) -> str:
    """Return a caution where the writer alone evaluates its own texts; else nothing."""
    setup = run.setup
    if not has_evaluator(run) or setup.judge != setup.model or setup.checks:
        return ""
    return (
        f"Writer and evaluator are the same model ({setup.model}); such evaluators are lenient. "
        "Name another with --judge, or add a check."
    )


# Checks and findings


def check_name(name: str) -> str:
    """Return a check's name for people: ``tests:suite``, ``at most 120 words``."""
    name = name.removesuffix(" decisive")
    kind, colon, argument = name.partition(":")
    if colon and kind == "length":
        return argument.replace("<=", "at most ").replace(">=", "at least ")
    return name


def check_chip(evidence: Evidence) -> Label:
    """Return a check's result in a few words: ``✓ examples 4/4``, ``✗ lint (advisory)``."""
    name = check_name(evidence.name)
    counts = [
        f"{_CHIPS.get(tally.noun, name)} {tally.held}/{tally.of}" for tally in evidence.tallies
    ]
    words = ", ".join(counts) or name
    if evidence.basis == "function" and evidence.score not in (None, 0, 1):
        words += f" {score(evidence.score)}"
    words += "" if evidence.required or evidence.passed else " (advisory)"
    words += " · first rows only" if evidence.conditions else ""
    if evidence.passed is None:
        return Label("?", f"{words}: no result", "quiet")
    if evidence.passed:
        return Label("✓", words, "good")
    return Label("✗", words, "bad" if evidence.required else "quiet")


def score_chip(finding: Finding, verdict: Verdict | None) -> Label:
    """Return a finding that only states a score as a chip."""
    number = "" if verdict is None or verdict.score is None else f" {score(verdict.score)}"
    words = f"evaluator{number}" if finding.check == LOW_SCORE else finding.problem.strip(" .")
    return Label("✗", words, "bad" if finding.blocks else "quiet")


def severity_label(severity: Severity, *, passed: bool = False) -> Label:
    """Return the label of a severity; on a text that passes, minor findings are suggestions."""
    if severity is Severity.BLOCKING:
        return Label("■", "blocking", "bad")
    return Label("□", "suggestion" if passed else "minor", "quiet")


QUESTION = Label("?", "question", "warn")
LEFT_OPEN = "The task leaves open"


def test_label(test: Expectation, result: TestResult | None) -> Label:
    """Return how a test of the critic's ended on a text."""
    if test.status is Status.DISMISSED:
        return STATUSES[Status.DISMISSED]
    if result is None or result.passed is None:
        return Label("?", "not tried", "quiet")
    if result.passed and not result.counts:
        return Label("·", "holds for an empty text, too", "quiet")
    if result.passed:
        return Label("✓", "passes", "good")
    return Label("✗", "fails", "bad") if counts(test) else QUESTION


def finding_status(finding: Finding) -> Label:
    """Return where a finding stands; one that critic and writer disagree about is a question."""
    return QUESTION if finding.is_open and finding.disputed else STATUSES[finding.status]


def contest_sentence(claim: Claim) -> str:
    """Return why a reviser contests a claim and what the critic answered; empty where none does."""
    if not claim.contest:
        return ""
    answers = {True: " The critic stands by it.", False: " The critic lets it go.", None: ""}
    return f"The writer contests it: {claim.contest}{answers[claim.upheld]}"


def untried_sentence(test: Expectation, result: TestResult | None) -> str:
    """Return why a test of the critic's was not tried on a text; empty where it was."""
    if test.untried:
        return test.reason or _UNTRIED[test.untried]
    return "" if result else "It came after this text."


_UNTRIED = {
    "broken": "It is not Python.",
    "long": "It is too long to be run.",
    "many": "A run takes 12 tests of a critique, and 40 in all.",
    "no_suite": "Nothing here can run it.",
}


def claims_title(ends: Mapping[Label, int]) -> str:
    """Return how many of the critic's claims ended how, the ones to act on first."""
    plural = {"passes": "pass", "fails": "fail", "question": "questions"}
    order = ("bad", "open", "warn", "quiet", "good")
    counted = [
        f"{n} {one.word if n == 1 else plural.get(one.word, one.word)}"
        for one, n in sorted(ends.items(), key=lambda end: order.index(end[0].kind))
    ]
    return "Critic's claims: " + ", ".join(counted)


UNSOURCED = "did you mean to say this?"  # of words that stand in no source


def results_hint(run: Run, iteration: Iteration, *, answered: bool) -> str:
    """Return what to do about results if much rests on the user's word; else nothing."""
    verdict = iteration.verdict
    if verdict is None or all(one.conditions for one in rows(run, iteration)):
        return ""
    if isinstance(verdict.because, Undecided) and verdict.because.stands:
        return ""
    if verdict.outcome is Outcome.NOT_JUDGED:
        unread = is_to_read(run, iteration) and not iteration.critiqued
        unread = unread and not is_another_read(run, iteration)
        then = "a critic reads the text too" if unread else "the text passes"
        return f"Confirm the first, or any two{'; ' if unread else ', and '}{then}."
    few = verdict.basis == "examples" and len(read_examples(run.task.text)) < 2
    alone = verdict.outcome is Outcome.PASS and few and run.setup.weak_critic and not answered
    return "It passes on one example of the task. Is the first result right?" if alone else ""


# Numbers


def score(value: float | None) -> str:
    """Format a score with two decimals; None as a dash."""
    return NONE if value is None else f"{value:.2f}"


def count(number: int, noun: str) -> str:
    """Format a number with its noun, like ``1,204 tokens``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """Format a duration: ``0.3 s``, ``12 s``, ``1 min 05 s`` or ``1 h 02 min``."""
    if value < 0.95:
        return "< 0.1 s" if value < 0.05 else f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def cost(dollars: float | None) -> str:
    """Format a cost in US dollars; zero as ``free``, None as a dash."""
    if dollars is None:
        return NONE
    return _dollars(dollars) if dollars else "free"


def _dollars(amount: float) -> str:
    if amount < 0.00005:
        return "< $0.0001" if amount > 0 else "$0"
    return f"${amount:.4f}" if amount < 1 else f"${amount:,.2f}"


def sparkline(scores: Iterable[float | None]) -> str:
    """Return one block per iteration, as high as its score 0..1; a dot for a missing score.

    >>> sparkline([0.4, None, 0.7, 1.0])
    '▄·▆█'
    """
    return "".join("·" if s is None else "▁▂▃▄▅▆▇█"[min(7, int(s * 8))] for s in scores)


def usage_parts(usage: Usage, wall: float | None = None) -> list[str]:
    """Return tokens, seconds, cost and borrowed replies as phrases, without unknown or zero ones.

    Seconds are those of `wall`, by default those spent in calls.
    """
    parts = [count(usage.tokens, "token")] if usage.calls else []
    duration = usage.seconds if wall is None else wall
    parts += [seconds(duration)] if duration else []
    parts += [_dollars(usage.cost)] if usage.cost and usage.calls else []
    number, noun = usage.for_another, "reply" if usage.for_another == 1 else "replies"
    return parts + ([f"{number} {noun} written for another request"] if number else [])


def budget_left(run: Run) -> str:
    """Return the rest of the budget, like ``3,400 tokens left``; empty without a budget."""
    budget, used = run.limits.budget, run.usage
    bounds = (
        (budget.tokens, used.tokens, "token"),
        (budget.prompt_tokens, used.prompt_tokens, "prompt token"),
        (budget.completion_tokens, used.completion_tokens, "completion token"),
        (budget.calls, used.calls, "call"),
    )
    parts = [count(max(0, most - spent), noun) for most, spent, noun in bounds if most is not None]
    if budget.cost is not None and used.cost is not None:
        parts.append(_dollars(max(0.0, budget.cost - used.cost)))
    if budget.seconds is not None:
        parts.append(seconds(max(0.0, budget.seconds - run.seconds)))
    return ", ".join(parts) + " left" if parts else ""


# The run


def running(run: Run) -> bool:
    """Return True while a stage is under way."""
    return bool(run.stage) and run.stop_reason is None


def rival_sentence(run: Run, rival: Rival) -> str:
    """Return on whose word alone a text stands above another one."""
    first, other = rival.results[0], run.mention(rival.iteration.number)
    tests = {one.name: one for one in run.expectations}
    asked = missed_claim(tests[first.name], first)  # a row below has both results
    said = first.name if asked else f"{first.name}: {first.line.partition(' + where ')[0]}"
    more = f" (and {count(len(rival.results) - 1, 'more test')})" if rival.results[1:] else ""
    return (
        f"{other.capitalize()} fails only tests that {run.setup.judge} wrote: "
        f"{said}{more}. If that is wrong, take {other}."
    )


def awaits_reading(run: Run, iteration: Iteration | None) -> bool:
    """Return True if a critic is reading a text that has no verdict yet, and may be used."""
    reading = running(run) and run.stage is Stage.CRITIQUE
    return reading and iteration is not None and iteration.verdict is None


def unread_label(iteration: Iteration) -> Label:
    """Return the label of a text that a critic has still to read, by whether code of it ran."""
    ran = any(e.passed and e.basis not in ("constraints", "schema") for e in iteration.evidence)
    return Label("…", "RUNS" if ran else "DRAFTED", "quiet")


def unread_phrases(iteration: Iteration) -> list[tuple[str, str]]:
    """Return what is known of a text that a critic has still to read."""
    passed = (e for e in iteration.evidence if e.passed and e.required and e.grounds)
    phrases = [phrase for e in passed for phrase in _evidence_phrases(e)]
    return [*phrases, *_ran_on(iteration), ("", "not read yet")]


def is_amber(run: Run) -> bool:
    """Return True if a critic found what blocks a text only after the user had accepted it."""
    text = run.chosen
    late = run.stop_reason is StopReason.ACCEPTED and text is not None and text.read_late
    return bool(late and text and text.verdict) and _blocks(text)


def _blocks(iteration: Iteration | None) -> bool:
    verdict = iteration.verdict if iteration else None
    return verdict is not None and not verdict.passed and verdict.outcome is not Outcome.NOT_JUDGED


def receipt_label(run: Run) -> Label:
    """Return the label of a decided run's text."""
    text = run.chosen
    if text is None or text.verdict is None:
        return unread_label(text) if text else outcome_label(None)
    if is_amber(run):
        failed = isinstance(text.verdict.because, CheckFailed)
        return Label("⚠", "FAILS A TEST" if failed else "STILL OPEN", "warn")
    label = outcome_label(text.verdict)
    over = text.verdict.over_failed_check
    return label._replace(symbol="⚠", kind="warn") if over else label


def receipt_phrases(run: Run, *, reading: bool = False) -> list[tuple[str, str]]:
    """Return a decided run's result as phrases: what stands out, and what follows it."""
    text = run.chosen
    accepted = run.stop_reason is StopReason.ACCEPTED
    phrases: list[tuple[str, str]] = []
    if text and text.verdict is None:
        phrases = unread_phrases(text)[:-1]
    elif text and text.verdict and not is_amber(run):
        phrases = basis_phrases(run, text) if not text.unread else []
    if accepted and is_amber(run):
        phrases.append(("", late_sentence(run)))
    phrases += [("", "accepted")] if accepted else []
    if accepted and text and text.verdict is None:
        phrases.append(("", f"{run.setup.judge} is reading it" if reading else "not read"))
    elif accepted and not is_amber(run) and (late := late_sentence(run)):
        phrases.append(("", late))
    return [*phrases, *([("", seconds(run.seconds))] if run.seconds else [])]


def late_sentence(run: Run) -> str:
    """Return what reading the text came to after it was accepted; empty where it was read before.

    Of a test that it fails it is the call with its result.
    """
    text = run.chosen
    verdict = text.verdict if text else None
    if text is None or verdict is None or not text.read_late:
        return ""
    if _blocks(text):
        tests = {one.name: one for one in run.expectations if counts(one)}
        failing = (r for r in text.tests if r.passed is False and r.name in tests)
        first = next(failing, None)
        return _call_line(tests[first.name], first) if first else because_sentence(run, verdict)
    if text.unread:
        return f"could not be read afterwards: {text.unread}"
    if any(finding.is_open for finding in text.findings):
        return "read afterwards: nothing that blocks it"
    return "read afterwards: nothing found"


def _call_line(test: Expectation, result: TestResult) -> str:
    """Return what a failing test shows as ``call → result``, else by its name."""
    row, gives = missed_claim(test, result), result.gives
    if row is None or gives is None:
        return f"{test.name}: {result.line}"
    return f"{row.call} → {gives.result}, expected {row.result}"


def model_facts(duration: float, price: Price | None) -> str:
    """Return what is known of a model: ``4 s a call · $0.25 and $2 per million tokens``."""
    time = f"{seconds(duration)} a call" if duration else ""
    free = price is not None and not (price.prompt or price.completion)
    amounts = f"${price.prompt:g} and ${price.completion:g} per million tokens" if price else ""
    return " · ".join(filter(None, (time, "free" if free else amounts)))


def usually(duration: float) -> str:
    """Return how long such a call usually takes: ``, usually 40 s``; empty where unknown."""
    return f", usually {seconds(duration)}" if duration >= 1 else ""


def under_way(run: Run, number: int) -> str:
    """Return the text that a stage is about: ``draft``, ``revision 2 of 4``."""
    name, revised = run.name(number).lower(), run.stage is Stage.REVISE
    if number < len(run.iterations):
        iteration = run.iterations[number]
        revised = iteration.parent is not None and iteration.author == "model"
    # Numbers count all texts: with several drafts a revision's is not one of those allowed.
    if not revised or len(run.drafts) > 1:
        return name
    return f"{name} of {max(run.allowed_revisions, number)}"


def summary_parts(run: Run) -> list[str]:
    """Return a run's score, best iteration, revisions, usage and stop reason as phrases."""
    number = score_beside(run.verdict)
    parts = [f"score {number}"] if number else []
    if run.chosen is not None:
        accepted = run.best is not None and run.chosen.number != run.best
        name = run.name(run.chosen.number).lower()
        parts.append(f"{'accepted' if accepted else 'best'}: {name}")
        parts.append(f"{run.revisions} of {count(run.allowed_revisions, 'revision')}")
    parts += usage_parts(run.usage, run.seconds)
    if run.stop_reason is not None:
        parts.append(f"stopped: {STOPS[run.stop_reason]}")
    return parts


def language(text: str, form: Form, language: str = "python") -> str:
    """Return the language to highlight, as pygments names it; empty for prose.

    Data that a task without a language asks for is ``json``.
    """
    if form != "code" or language != "python":
        return language if form == "code" else ""
    ends = text.lstrip()[:1] + text.rstrip()[-1:]
    return "json" if ends in ("{}", "[]") else "python"


def form_name(task: Task) -> str:
    """Return what a task asks for: ``prose``, ``code``, ``Java code`` or ``data``."""
    form = "data" if task.profile == "data" else task.form
    return f"{task.language_name} code" if task.is_foreign else form


def other_form(task: Task) -> Form:
    """Return the kind of text that a task does not ask for."""
    return "code" if task.form == "prose" else "prose"


def switch_hint(task: Task) -> str:
    """Return how to start again as the other kind of text, for a terminal."""
    other = other_form(task)
    return (
        f"Not {form_name(task)}? Use %refine continue as {other}, or next time %%refine -p {other}."
    )


def interpretation(setup: Setup) -> str:
    """Return how a cell was read: ``task (code), 3 examples. Sees df (1,204 × 8), clean()``."""
    kind = "draft to improve" if setup.draft is not None else "task"
    materials = setup.task.materials
    phrases = ", ".join(one.phrase for one in materials if one.phrase)
    sees = f". Sees {phrases}" if phrases else ""
    kind += "" if setup.words else f" ({form_name(setup.task)})"
    return ", ".join([kind, *map(check_name, setup.demands)]) + sees


def sees(names: Sequence[str]) -> str:
    """Return what a model is shown of the notebook, in short: ``sees orders, customers``."""
    if not names:
        return "sees nothing here"
    more = f" +{len(names) - 2}" if len(names) > 3 else ""
    return f"sees {', '.join(names[: 2 if more else 3])}{more}"


def settings(run: Run) -> list[str]:
    """Return a run's profile, models, checks, limits and forecast as phrases."""
    setup, most = run.setup, forecast(run)
    parts = [f"profile {run.task.profile}"]
    parts += [f"language {run.task.language_name}"] if run.task.is_foreign else []
    parts += [model_name(setup.model)] if setup.model else []
    other = setup.judge and setup.judge != setup.model
    parts += [f"read by {model_name(setup.judge, '')}"] if other else []
    parts += ["evaluated by its writer"] if lenient_evaluator(run) else []
    parts += [f"checks {', '.join(setup.checks)}"] if setup.checks else []
    parts += [f"target {score(run.limits.target)}"] if has_scores(run) else []
    parts += [bounds(run)]
    estimate = f"≈ {count(_round_up(most.revision), 'token')} per further revision"
    return [*parts, f"{estimate} ({cost(most.revision_cost)})" if most.revision_cost else estimate]


def bounds(run: Run) -> str:
    """Return the most that a run can consume; tokens and dollars where a budget limits them."""
    most, budget = forecast(run), run.limits.budget
    parts = [count(run.limits.max_revisions, "revision"), count(most.calls - most.repairs, "call")]
    if most.repairs:
        parts[-1] += f" (+ {most.repairs} if replies can't be read)"
    if budget.replace(calls=None, seconds=None) != Budget():
        parts.append(count(_round_up(most.tokens), "token"))
    if budget.cost is not None:
        parts.append("price unknown" if most.cost is None else cost(most.cost))
    return f"at most {', '.join(parts)}"


def _round_up(number: int) -> int:
    """Round up to two significant digits: an estimate should not look like a count."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


def sharing_phrase(sharing: Sharing) -> str:
    """Return what servers elsewhere are sent of what code computed; empty where there are none."""
    words = {"outputs": "are sent", "values": "and values are sent"}
    return f"outputs {words.get(sharing.level, 'stay here')}" if sharing.servers else ""


def server_names(servers: Iterable[str]) -> str:
    """Return the hosts of servers' addresses, or what the user's own models are called."""
    return " and ".join(urlsplit(server).hostname or server for server in servers)


def sharing_sentence(answer: str, servers: Iterable[str], level: str, *, stored: bool) -> str:
    """Return the meaning of an answer on sharing: ``once``, ``always`` or ``never``.

    It is `stored` if it could be kept for later runs.
    """
    what = "The code of the cells above is" if level == "code" else "Outputs are"
    if answer == "once":
        return f"{what} sent to {server_names(servers)} for the rest of this run."
    later = "" if stored else " This could not be stored, so it holds for this run only."
    return f"{what} {answer} sent to {server_names(servers)}.{later}"


def model_name(name: str, kind: str = "model ") -> str:
    """Return a model's name for people, after its kind; of a recording, its file."""
    if not name.startswith("recorded:"):
        return f"{kind}{name}"
    file = name.removeprefix("recorded:").replace("\\", "/").rpartition("/")[2]
    return f"replay of {file}"


_UNDECIDED = {
    "only_ran": "Runs; nobody checked what it gives.",
    "no_critic": "Nobody was asked to read it.",
    "weak_critic": "This model was measured too weak to criticise.",
    "disputed": "Yours to decide: critic and writer disagree about a claim.",
    "not_ready": "The critic says that it isn't ready:",
    "test_dropped": "The critic called it ready once its tests pass, and one of them was dropped:",
    "not_read": "Another draft was read instead.",
    "plain": "Yours to judge: no critic reads plots, displays and microcopy (--critique always).",
}


def because_sentence(run: Run, verdict: Verdict | None) -> str:
    """Return why a verdict is what it is, in a sentence or two; empty where nothing says so."""
    match verdict and verdict.because:
        case ChecksPassed(names=names):
            return f"{', '.join(names)} passed."
        case NothingFound(critic=critic, tests=0):
            return f"{critic} read it and names nothing that blocks it."
        case NothingFound(critic=critic, tests=tests):
            return f"{critic} wrote {count(tests, 'test')}, all pass; none confirmed."
        case CheckFailed(name=name, line=line):
            return f"{check_name(name)} failed{f': {line}' if line else '.'}"
        case Scored(score=value, target=target):
            return f"Scored {score(value)}, target {score(target)}."
        case Said(outcome=outcome, feedback=feedback):
            return feedback or (f"The evaluator says {outcome}." if outcome else "")
        case StillOpen(finding=id_, criterion=criterion, problem=problem, over_score=over):
            but = f"The evaluator's score passes, but {id_} still blocks. " if over else ""
            return f"{but}{criterion}: {problem}"
        case Undecided(why="disputed", detail=detail, finding=id_):
            return f"{_UNDECIDED['disputed']} {_rival_results(run, id_) or detail}"
        case Undecided(why=why, detail=detail, passed=passed):
            sentence = f"Couldn't read the critique: {detail}." if why == "unreadable" else detail
            sentence = _UNDECIDED.get(why, sentence)
            if why in ("not_ready", "test_dropped"):
                sentence = f"{sentence} {detail or 'no reason given.'}"
            return f"{sentence} Passed: {', '.join(passed)}." if passed else sentence
        case Repeats(failure=failure) if failure:
            return failure
        case Repeats(iteration=number, of_parent=unchanged):
            same = f"The same text as {run.mention(number)}."
            return "The revision changed nothing." if unchanged else same
        case ByUser(words=words) if verdict:
            return f"Marked {OUTCOMES[verdict.outcome].word} by you{f': {words}' if words else '.'}"
    return ""


def _rival_results(run: Run, id_: str) -> str:
    """Return what a disputed test expects and what the text gives; empty where that isn't known."""
    name = next((f.criterion for f in run.findings if f.id == id_ and f.check == SUITE), "")
    test = next((one for one in run.expectations if one.name == name), None)
    results = (r for i in reversed(run.iterations) for r in i.tests if r.name == name)
    result = next((one for one in results if one.passed is False), None)
    row = missed_claim(test, result) if test and result else None
    if row is None or result is None or result.gives is None:
        return ""
    return f"{row.call}: the critic expects {row.result}, the text gives {result.gives.result}."


def stop_sentence(run: Run) -> str:
    """Return why a run stopped, with what its best text lacks; empty while it goes on."""
    best = run.iterations[run.best] if run.best is not None else None
    verdict = best.verdict if best else None
    reason = because_sentence(run, verdict)
    match run.stop_reason:
        case StopReason.UNJUDGED if verdict and reason:
            because = verdict.because
            whole = isinstance(because, Undecided) and because.why in ("only_ran", "not_run")
            return f"{'' if whole else 'Not judged: '}{reason} {run.message}"
        case StopReason.PLATEAU | StopReason.REVISIONS if verdict and reason and not verdict.passed:
            if isinstance(verdict.because, CheckFailed):
                return f"{run.message} Still failing: {verdict.because.line or reason}"
            return f"{run.message} Still open: {reason}"
    return run.message


_LOSSES = 4  # that a line names


def losses_sentence(found: Sequence[Loss]) -> str:
    """Return the sections that a revision lost or shortened, in a line; empty without any."""
    parts = [
        f"shortened: “{one.name}” {one.before:,} → {count(one.after, 'word')}"
        if one.after
        else f"lost: section “{one.name}”"
        for one in sorted(found, key=lambda one: one.after > 0)[:_LOSSES]
    ]
    more = [f"{len(found) - _LOSSES} more"] if len(found) > _LOSSES else []
    line = "; ".join(parts + more)
    return line[:1].upper() + line[1:]
