"""Labels, phrases and number formats that every surface shares."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from ipyrefine.core.edits import Loss
from ipyrefine.core.effects import remedy
from ipyrefine.core.model import (
    Effect,
    Form,
    Price,
    Setup,
    Stage,
    StopReason,
    Task,
    Usage,
)
from ipyrefine.core.policy import forecast
from ipyrefine.core.readers import has_evaluator
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import Sharing
from ipyrefine.core.table import Point

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


def has_scores(run: Run) -> bool:
    """Return True if an evaluator or a user's function scores the texts of a run."""
    said = [one.judgement for one in run.iterations if one.judgement]
    scores = has_evaluator(run) and (not said or any(one.score is not None for one in said))
    return scores or any(e.basis == "function" for one in run.iterations for e in one.evidence)


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


def with_contest(said: str, point: Point) -> str:
    """Add to words why a reviser contests a point, if one does, and what the critic answered."""
    if not point.contests:
        return said
    answers = {True: "The critic stands by it.", False: "The critic lets it go.", None: ""}
    contest = f"The writer contests it: {point.contests[-1]}"
    parts = filter(None, (said, contest, answers[point.upheld]))
    return " ".join(one if one[-1] in ".!?…:" else f"{one}." for one in parts)


FOR_EXAMPLE = "For example"  # above a call whose result nobody has said


def effect_buttons(effect: Effect) -> tuple[str, str]:
    """Return what a user may say to what running a text did: that it is right, and what not."""
    right = {"gone": "It should go" if effect.count == 1 else "They should go"}
    return right.get(effect.kind, "Right"), remedy(effect)


# Numbers


def score(value: float | None) -> str:
    """Format a score with two decimals; None as a dash."""
    return NONE if value is None else f"{value:.2f}"


def count(number: int, noun: str) -> str:
    """Format a number with its noun, like ``1,204 tokens``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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


# What a budget bounds by tokens.
_TOKENS = {
    "tokens": "token",
    "prompt_tokens": "prompt token",
    "completion_tokens": "completion token",
}


def budget_left(run: Run) -> str:
    """Return the rest of the budget, like ``3,400 tokens left``; empty without a budget."""
    budget, used = run.limits.budget, run.usage
    bounds = {**_TOKENS, "calls": "call"}
    parts = [
        count(max(0, most - getattr(used, name)), noun)
        for name, noun in bounds.items()
        if (most := getattr(budget, name)) is not None
    ]
    if budget.cost is not None and used.cost is not None:
        parts.append(_dollars(max(0.0, budget.cost - used.cost)))
    if budget.seconds is not None:
        parts.append(seconds(max(0.0, budget.seconds - run.seconds)))
    return ", ".join(parts) + " left" if parts else ""


# The run


def running(run: Run) -> bool:
    """Return True while a stage is under way."""
    return bool(run.stage) and run.stop_reason is None


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
    setup = run.setup
    parts = [f"profile {run.task.profile}"]
    parts += [f"language {run.task.language_name}"] if run.task.is_foreign else []
    parts += [model_name(setup.model)] if setup.model else []
    other = setup.judge and setup.judge != setup.model
    parts += [f"read by {model_name(setup.judge, '')}"] if other else []
    parts += ["evaluated by its writer"] if lenient_evaluator(run) else []
    parts += [f"checks {', '.join(setup.checks)}"] if setup.checks else []
    parts += [f"target {score(run.limits.target)}"] if has_scores(run) else []
    parts += [bounds(run)]
    return [*parts, f"≈ {count(_round_up(forecast(run).revision), 'token')} per further revision"]


def bounds(run: Run) -> str:
    """Return the most that a run can take: its calls, and the tokens and dollars of its budget."""
    most, budget = forecast(run), run.limits.budget
    parts = [count(run.limits.max_revisions, "revision"), count(most.calls - most.repairs, "call")]
    if most.repairs:
        parts[-1] += f" (+ {most.repairs} if replies can't be read)"
    tokens = ((getattr(budget, name), noun) for name, noun in _TOKENS.items())
    parts += [count(number, noun) for number, noun in tokens if number is not None]
    parts += [cost(budget.cost)] if budget.cost is not None else []
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
