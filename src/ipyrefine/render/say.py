"""What is said of a run, its texts, their verdicts and points: the words of every surface."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from ipyrefine.core import after
from ipyrefine.core.edits import Loss
from ipyrefine.core.effects import remedy
from ipyrefine.core.model import (
    Basis,
    Effect,
    Form,
    Outcome,
    Price,
    Setup,
    Stage,
    StopReason,
    Task,
    Usage,
    Verdict,
    bare,
    on_conditions,
)
from ipyrefine.core.model import count as count
from ipyrefine.core.points import first_line, to_check
from ipyrefine.core.policy import forecast
from ipyrefine.core.readers import find_duplicate, has_evaluator
from ipyrefine.core.results import claims
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Sharing
from ipyrefine.core.table import Point, Result
from ipyrefine.core.testing import is_critics

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
    StopReason.ANSWERED: "answered",
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

# A verdict

OUTCOMES = {
    Outcome.PASS: Label("✓", "PASS", "good"),
    Outcome.NEEDS_IMPROVEMENT: Label("✎", "NEEDS IMPROVEMENT", "warn"),
    Outcome.FAIL: Label("✗", "FAIL", "bad"),
    Outcome.NOT_JUDGED: Label("?", "NOT JUDGED", "quiet"),
}
# Of a text that no model wrote or reads: what became of it.
_FAILS, _NOT_RUN = Label("✗", "FAILS", "bad"), Label("·", "NOT RUN", "quiet")
_LOOKED_AT = Label("◉", "LOOKED AT", "quiet")
# What a PASS rests on.
SOURCES: dict[Basis, str] = {
    "tests": "your tests",
    "function": "your function",
    "confirmed": "confirmed results",
    "examples": "examples",
    "critique": "a critic's reading",
    "tested": "a critic's tests",
    "evaluator": "your evaluator",
}
_WHY = {
    "only_ran": "Runs; nobody checked what it gives.",
    "raised": "{line}",
    "no_critic": "Nobody was asked to read it.",
    "weak_critic": "This model was measured too weak to criticise.",
    "disputed": "Yours to decide: critic and writer disagree about a claim. {said}",
    "not_ready": "The critic says that it isn't ready: {line}",
    "not_tried": "{test} was not tried: {line}",
    "not_run": "{line}",
    "unreadable": "Its reader gave no verdict: {line}.",
    "said": "{line}",
    "scored": "Scored {score}, target {target}.",
    "plain": "Yours to judge: no critic reads plots, displays and microcopy (--critique always).",
    "unchanged": "The revision changed nothing.",
    "nothing_found": "{point} read it and names nothing that blocks it.",
    "tests_pass": "Every finding's test passes; {point} did not read it again.",
    "failed": "{line}",
    "test_failed": "{said}",
    "open": "{line}",
    "open_over_score": "The evaluator passes it, but {point} still blocks. {line}",
}


class Words(NamedTuple):
    """What is said of a verdict: its label, and why in a sentence or two."""

    label: Label
    sentence: str = ""

    @property
    def line(self) -> str:
        """The first line of the sentence, to stand behind the label."""
        return first_line(self.sentence).removesuffix(".")

    def __str__(self) -> str:
        return " · ".join(filter(None, (str(self.label), self.line)))


UNFINISHED = Words(Label("■", "STOPPED", "quiet"), "It was not finished. %refine resume goes on.")


def verdict(run: Run, text: Iteration | None) -> Words:
    """Return what is said of a text's verdict; without any text, of the run."""
    if text is None:
        kind = ("■", "quiet") if run.stop_reason is StopReason.CANCELLED else ("✗", "bad")
        stopped = Label(kind[0], "STOPPED", kind[1])
        return Words(stopped if run.stop_reason else label_of(None), run.message)
    if run.stop_reason is StopReason.ANSWERED:
        return Words(Label("»", "ANSWER", "busy-pill"), "The text stays as it was.")
    found = text.verdict
    accepted = run.stop_reason is StopReason.ACCEPTED and text is run.chosen
    if found is None:
        waits = accepted or awaits_reading(run, text)
        return _unread(run, text) if waits else Words(label_of(None))
    by_user = found.basis == "user" or found.why == "open"
    if run.setup.is_look and not found.passed and not by_user:
        return _look(run, text, found)
    label, sentence = label_of(found), _reason(run, text, found)
    if label.kind == "yours" and any(one.failed for one in run.evidence(text)):
        label = label._replace(symbol="⚠", kind="warn")
    waits = found.basis != "user" and (found.passed or found.only_ran)
    if waits and (asked := to_check(run, text)):
        label, sentence = Label("!", f"{len(asked)} TO CHECK", "warn"), _why_asked(asked)
    ran_on = on_conditions(text.conditions)
    more = [ran_on] if ran_on not in sentence else []
    more += ["nobody read it"] if found.passed and text.unread and found.why != "user" else []
    return Words(label, _join(sentence, *more))


def _why_asked(asked: Sequence[Point]) -> str:
    """Return what in the task makes a text ask, or that nothing there answers it."""
    quote = next((one.quote for one in asked if one.quote), "")
    if quote:
        return f"Your task says {quoted(quote.rstrip('.'))}."
    fact = asked[0].kind == "fact" and (
        "Your task doesn't ask for it." if asked[0].effect else "Not in your request."
    )
    return fact or "Your task doesn't say."


def _join(sentence: str, *more: str) -> str:
    """Return a sentence with a few words more in its first line."""
    first, *others = sentence.split("\n")
    return "\n".join(
        [", ".join(filter(None, (first.removesuffix("." * bool(more)), *more))), *others]
    )


def _look(run: Run, text: Iteration, verdict: Verdict) -> Words:
    """Return what is said of a text that is only looked at and does not pass."""
    line, ran_on = verdict.line.removeprefix("Not run: "), on_conditions(text.conditions)
    if verdict.outcome is not Outcome.NOT_JUDGED:
        return Words(_FAILS, line or _reason(run, text, verdict))
    if verdict.why == "not_run":
        return Words(_NOT_RUN, line)
    if verdict.only_ran or any(one.rows for one in text.evidence):
        label, sentence = _LOOKED_AT, "Nothing has run in your notebook."
        if files := sum(one.kind == "file" for one in text.effects.values()):
            label = Label("!", f"TOUCHES {count(files, 'FILE')}", "warn")
            sentence = "Nothing has been written or deleted yet."
        elif any(one.outputs for one in text.evidence) and not ran_on and not text.effects:
            sentence = "No row lost, no value missing, no file touched."
        sentence = line if verdict.why == "raised" else sentence
        return Words(label, _join(sentence, ran_on and f"and it ran {ran_on}"))
    if run.task.form == "prose":
        return Words(_NOT_RUN, "This is text, not code: there is nothing to run.")
    what = (
        f"This is {run.task.language_name} code"
        if run.task.is_foreign
        else "There is no Python in it"
    )
    return Words(_NOT_RUN, f"{what}, and only Python is run.")


def awaits_reading(run: Run, text: Iteration | None) -> bool:
    """Return True if a critic is reading a text that has no verdict yet, and may be used."""
    reading = running(run) and run.stage is Stage.CRITIQUE
    return reading and text is not None and text.verdict is None


def _unread(run: Run, text: Iteration) -> Words:
    """Return what is known of a text that a critic has still to read, or never will."""
    ran = any(one.passed and one.basis not in STATED for one in run.evidence(text))
    rest = "accepted before it had a verdict" if run.stop_reason else "not read yet"
    known = (_counts(run, text, passed=True), on_conditions(text.conditions), rest)
    return Words(Label("…", "RUNS" if ran else "DRAFTED", "quiet"), ", ".join(filter(None, known)))


def label_of(verdict: Verdict | None) -> Label:
    """Return the label of a verdict; only evidence is drawn in full green.

    An evaluator's or the user's verdict has a symbol of its own, so that nobody needs colour to
    see the difference.
    """
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


def _reason(run: Run, text: Iteration, verdict: Verdict) -> str:
    name, line, point = verdict.point, verdict.line, run.points.get(verdict.point)
    match verdict.why:
        case "user":
            failed = ", ".join(one.name for one in run.evidence(text) if one.failed)
            over = f", though {failed} failed" if failed and verdict.passed else ""
            words = text.override.reason if text.override else ""
            marked = f"Marked {OUTCOMES[verdict.outcome].word} by you{over}"
            return f"{marked}: {words}" if words else f"{marked}."
        case "repeats" | "unchanged" if text.failure:
            return text.failure
        case "repeats":
            earlier = find_duplicate(run, text)
            return f"The same text as {run.mention(earlier.number)}." if earlier else ""
        case "nothing_found":
            held = (text.results.get(one.id) for one in run.tests)
            if tests := sum(bool(one and one.passed) for one in held):
                return f"{name} wrote {count(tests, 'test')}, all pass; none confirmed."
        case "said" if not line:
            return f"Your evaluator says {OUTCOMES[verdict.outcome].word}."
        case "open" if point and point.source == "you":
            said = ": ".join(filter(None, (point.criterion, line.rstrip("."))))
            return f"{said}. Accept the text if that is done, or dismiss {name}."
    result = text.results.get(name)
    return _WHY.get(verdict.why, "").format(
        said=point_line(point, result) if point and result else f"`{name}`: {line}",
        line=line,
        point=name,
        test=point.words if point else name,
        score=score(verdict.score),
        target=score(run.limits.target),
    ) or _counts(run, text, passed=verdict.passed)


def _counts(run: Run, text: Iteration, *, passed: bool) -> str:
    """Return what a text's checks came to, of those that count."""
    found = [one for one in run.evidence(text) if one.passed is passed and one.counts]
    return ", ".join(check(one) for one in found if one.grounds)


# The end of a run


def stop_message(run: Run) -> str:
    """Return why a run stopped and what to do then; of a look, how to run the cell itself."""
    if not run.setup.is_look or run.chosen is None:
        return run.message
    runs = verdict(run, run.chosen).label.symbol in "◉!✓"
    return "To run it, run the cell without its first line." if runs else ""


def receipt(run: Run) -> Words:
    """Return what is said of a decided run: its text's verdict, and what came of its cell."""
    text, said, (ran, differs) = run.chosen, verdict(run, run.chosen), ran_words(run)
    judged = text is not None and text.verdict is not None
    taken = run.stop_reason is StopReason.ACCEPTED and judged and not run.setup.is_look
    # What it gave says more than that nobody found anything.
    line = said.line * (not (ran and (said.label.hollow or run.setup.is_look)))
    parts = [ran, "accepted" * taken] if differs else [line, "accepted" * taken, ran]
    label = Label("⚠", "DIFFERS NOW THAT IT RAN", "warn") if differs else said.label
    return Words(label, " · ".join(filter(None, parts)))


def ran_words(run: Run) -> tuple[str, bool]:
    """Return what came of the accepted text in its cell, and whether that has to be looked at."""
    text = run.chosen if run.stop_reason is StopReason.ACCEPTED else None
    if run.ran is None or text is None or text.number != run.ran.iteration:
        return "", False
    return after.words(run.ran), run.ran.how == "differs"


# Checks and points

STATED = ("constraints", "schema")  # what a passed check of these holds to is its name
_VERBS = {"example": "hold", "result": "that you expect hold", "test": "pass"}


def check(evidence: Result) -> str:
    """Return what a check came to: ``3 of 4 examples hold``, ``at most 9 words``."""
    name, passed = check_name(evidence.name), evidence.passed
    if passed is None:
        return f"{name}: no result"
    if passed and evidence.basis in STATED:
        return name
    tallies = [
        f"{count(of, 'result')} confirmed by you"
        if passed and noun == "result"
        else f"{held} of {of:,} {noun}s {_VERBS[noun]}"
        for noun, (held, of) in evidence.tallies.items()
        if passed or held < of
    ]
    said = ", ".join(tallies) or f"{name} {'passed' if passed else 'failed'}"
    if evidence.basis == "function" and evidence.score not in (None, 0, 1):
        said += f": {score(evidence.score)}"
    return said if evidence.counts or passed else f"{said}, which does not block"


def check_name(name: str) -> str:
    """Return a check's name for people: ``tests:suite``, ``at most 120 words``."""
    name = name.removesuffix(" decisive")
    length = name.removeprefix("length:")
    return length.replace("<=", "at most ").replace(">=", "at least ") if length != name else name


def point_line(point: Point, result: Result | None = None) -> str:
    """Return what a text misses on a point; of a critic's test, its call with the result."""
    if not is_critics(point):
        return (result and result.shows) or point.words
    if result and result.passed is False:
        if result.gives:
            gives, expected = bare(result.gives), bare(result.expected)
            return f"`{result.call}` → `{gives}`, expected `{expected}`"
        return f"`{point.words}`: {result.shows}"
    claimed = claims(point)
    one = claimed[0] if len(claimed) == 1 else None
    return f"`{one.call}` → `{bare(one.gives)}`" if one else f"`{point.words}`"


def with_contest(said: str, point: Point) -> str:
    """Add to words why a reviser contests a point, if one does, and what the critic answered."""
    if not point.contests:
        return said
    answers = {True: "The critic stands by it.", False: "The critic lets it go.", None: ""}
    parts = (said, f"The writer contests it: {point.contests[-1]}", answers[point.upheld])
    return " ".join(one if one[-1] in ".!?…:" else f"{one}." for one in parts if one)


def run_button(text: Iteration) -> str:
    """Return what running a text that was looked at does: the worst of it."""
    files = [one.cause for one in text.effects.values() if one.kind == "file"]
    worst = next((one for one in ("delete", "overwrite") if one in files), "")
    return f"Run and {worst} {count(files.count(worst), 'file')}" if worst else "Run cell"


def effect_buttons(effect: Effect) -> tuple[str, str]:
    """Return what a user may say to what running a text did: that it is right, and what not."""
    they = "It" if effect.count == 1 else "They"
    return f"{they} should go" if effect.kind == "gone" else "Right", remedy(effect)


# Numbers


def score(value: float | None) -> str:
    """Format a score with two decimals; None as a dash."""
    return NONE if value is None else f"{value:.2f}"


def quoted(words: str) -> str:
    """Put words between quotation marks, unless they begin with one of their own."""
    return words if words[:1] in ("", *'"“„«') else f"“{words}”"


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


# What a budget bounds by number.
_TOKENS = {
    "tokens": "token",
    "prompt_tokens": "prompt token",
    "completion_tokens": "completion token",
}


# The run


def running(run: Run) -> bool:
    """Return True while a stage is under way."""
    return bool(run.stage) and run.stop_reason is None


def price(found: Price | None) -> str:
    """Return what a model costs: ``$0.25 and $2 per million tokens``; empty where unknown."""
    if found is None:
        return ""
    costs = found.prompt or found.completion
    return f"${found.prompt:g} and ${found.completion:g} per million tokens" if costs else "free"


def under_way(run: Run, number: int) -> str:
    """Return the text that a stage is about: ``draft``, ``revision 2 of 4``."""
    name, revised = run.name(number).lower(), run.stage is Stage.REVISE
    if number < len(run.iterations):
        iteration = run.iterations[number]
        revised = iteration.parent is not None and iteration.author == "model"
    return f"{name} of {max(run.allowed_revisions, number)}" if revised else name


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


def opening(setup: Setup) -> str:
    """Return what a run says first: how a cell was read, or that it is only looked at.

    ``Interpreted as: task (code), 3 examples. Sees df (1,204 × 8), clean()``
    """
    kind = "draft to improve" if setup.draft is not None else "task"
    kind += "" if setup.words else f" ({form_name(setup.task)})"
    kind = "your own code" if setup.coach else kind
    lead, verb = f"Interpreted as: {kind}", "Sees"
    shown = [one for one in setup.task.materials if one.phrase]
    if setup.is_look:
        lead, verb = "Looked at without a model", "Uses"
        shown = [one for one in shown if one.kind == "variable"]
    names = ", ".join(one.phrase for one in shown)
    read = ", ".join([lead, *map(check_name, setup.demands)])
    return f"{read}. {verb} {names}" if names else read


def sees(names: Sequence[str]) -> str:
    """Return what a model is shown of the notebook, in short: ``sees orders, customers``."""
    if not names:
        return "sees nothing here"
    more = f" +{len(names) - 2}" if len(names) > 3 else ""
    return f"sees {', '.join(names[: 2 if more else 3])}{more}"


def settings(run: Run) -> list[str]:
    """Return a run's profile, models, checks, limits and forecast as phrases."""
    setup, judged = run.setup, [one.judgement for one in run.iterations if one.judgement]
    scores = has_evaluator(run) and (not judged or any(one.score is not None for one in judged))
    scores = scores or any(e.basis == "function" for one in run.iterations for e in one.evidence)
    parts = [f"profile {run.task.profile}"]
    parts += [f"language {run.task.language_name}"] if run.task.is_foreign else []
    parts += [model_name(setup.model)] if setup.model else []
    other = setup.judge and setup.judge != setup.model
    alone = has_evaluator(run) and setup.judge == setup.model
    parts += [f"read by {model_name(setup.judge, '')}"] if other else []
    parts += ["evaluated by its writer"] if alone and not setup.checks else []
    parts += [f"checks {', '.join(setup.checks)}"] if setup.checks else []
    parts += [f"target {score(run.limits.target)}"] if scores else []
    parts += [bounds(run)]
    *_, revision = forecast(run)
    step = 10 ** max(0, len(str(revision)) - 2)  # an estimate should not look like a count
    return [*parts, f"≈ {count(-(-revision // step) * step, 'token')} per further revision"]


def bounds(run: Run) -> str:
    """Return the most that a run can take: its calls, and the tokens and dollars of its budget."""
    (calls, repairs, _), budget = forecast(run), run.limits.budget
    parts = [count(run.limits.max_revisions, "revision"), count(calls - repairs, "call")]
    if repairs:
        parts[-1] += f" (+ {repairs} if replies can't be read)"
    tokens = ((getattr(budget, name), noun) for name, noun in _TOKENS.items())
    parts += [count(number, noun) for number, noun in tokens if number is not None]
    parts += [cost(budget.cost)] if budget.cost is not None else []
    return f"at most {', '.join(parts)}"


def sharing_phrase(sharing: Sharing) -> str:
    """Return what servers elsewhere are sent of values; empty where there are none."""
    words = "are sent" if sharing.level == "all" else "stay here"
    return f"values {words}" if sharing.servers else ""


def server_names(servers: Iterable[str]) -> str:
    """Return the hosts of servers' addresses, or what the user's own models are called."""
    return " and ".join(urlsplit(server).hostname or server for server in servers)


def sharing_sentence(answer: str, servers: Iterable[str], *, stored: bool) -> str:
    """Return the meaning of an answer on sharing: ``once``, ``always`` or ``never``.

    It is `stored` if it could be kept for later runs.
    """
    what, names = "Values, outputs and the code of other cells are", server_names(servers)
    if answer == "once":
        return f"{what} sent to {names} for the rest of this run."
    later = "" if stored else " This could not be stored, so it holds for this run only."
    return f"{what} {answer} sent to {names}.{later}"


def model_name(name: str, kind: str = "model ") -> str:
    """Return a model's name for people, after its kind; of a recording, its file."""
    if not name.startswith("recorded:"):
        return f"{kind}{name}"
    file = name.removeprefix("recorded:").replace("\\", "/").rpartition("/")[2]
    return f"replay of {file}"


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
