"""Words and number formats that every surface shares."""

from typing import NamedTuple

from ipyrefine.core.model import (
    Evidence,
    Outcome,
    Severity,
    Status,
    StopReason,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.policy import forecast
from ipyrefine.core.run import Iteration, Run

NONE = "\N{EN DASH}"
STAGES = {
    "draft": "Writing",
    "check": "Checking",
    "judge": "Judging",
    "critique": "Critiquing",
    "revise": "Revising",
    "compare": "Comparing",
}
STOPS = {
    StopReason.PASSED: "passed",
    StopReason.PLATEAU: "no improvement",
    StopReason.REVISIONS: "all revisions used",
    StopReason.BUDGET: "budget used up",
    StopReason.CANCELLED: "interrupted",
    StopReason.FAILED: "an error",
    StopReason.ACCEPTED: "accepted by you",
    StopReason.OVERRIDDEN: "marked PASS by you",
    StopReason.PAUSED: "waiting for you",
}
STOP_SENTENCES = {
    StopReason.PASSED: "The text passed and reached the target score.",
    StopReason.PLATEAU: "The latest revisions brought no improvement. Kept the best text.",
    StopReason.REVISIONS: "All revisions are used and the text doesn't pass yet. "
    "Continue, or relax the requirements.",
    StopReason.BUDGET: "The budget doesn't cover another call. Kept the best text so far.",
    StopReason.CANCELLED: "You interrupted the run. Kept the best text so far.",
    StopReason.FAILED: "The model or its server failed. Kept the best text so far.",
    StopReason.ACCEPTED: "You accepted the text.",
    StopReason.OVERRIDDEN: "You marked the text PASS.",
    StopReason.PAUSED: "Waiting for you: continue, make a change, or accept.",
}


class Label(NamedTuple):
    """A word with a symbol, so that its meaning never rests on colour alone.

    Attributes:
        symbol: one character.
        word: one or a few words.
        kind: the style: ``good``, ``warn``, ``bad``, ``quiet`` or ``open``.
    """

    symbol: str
    word: str
    kind: str

    def __str__(self) -> str:
        """Return symbol and word."""
        return f"{self.symbol} {self.word}"


UNVERIFIED_QUOTE = Label("⚠", "unverified quote", "warn")
NO_NEW_TEXT = Label("⚠", "no new text", "bad")
BEST = "★ best"
FINDERS = {"model": "found by the model", "check": "found by a check", "user": "added by you"}
_OUTCOMES = {
    Outcome.PASS: Label("✓", "PASS", "good"),
    Outcome.NEEDS_IMPROVEMENT: Label("✎", "NEEDS IMPROVEMENT", "warn"),
    Outcome.FAIL: Label("✗", "FAIL", "bad"),
}
_STATUSES = {
    Status.OPEN: Label("○", "open", "open"),
    Status.RESOLVED: Label("✓", "resolved", "good"),
    Status.DISMISSED: Label(NONE, "dismissed", "quiet"),
    Status.REGRESSED: Label("↩", "regressed", "bad"),
}


def outcome_label(outcome: Outcome) -> Label:
    """Return the label of an outcome."""
    return _OUTCOMES[outcome]


def verdict_label(verdict: Verdict | None) -> Label:
    """Return the label of a verdict; one without evidence never reads as an outcome."""
    if verdict is None or not verdict.verified:
        return Label("?", "NOT VERIFIED", "quiet")
    return _OUTCOMES[verdict.outcome]


def severity_label(severity: Severity) -> Label:
    """Return the label of a severity."""
    if severity is Severity.BLOCKING:
        return Label("■", "blocking", "bad")
    return Label("□", "minor", "quiet")


def status_label(status: Status) -> Label:
    """Return the label of a finding's status."""
    return _STATUSES[status]


def evidence_label(evidence: Evidence) -> Label:
    """Return the label of a check's result."""
    if evidence.passed is None:
        return Label("?", "nothing to check", "quiet")
    return Label("✓", "passed", "good") if evidence.passed else Label("✗", "failed", "bad")


def answer_label(yes: bool) -> Label:
    """Return the label of an answer to a checklist question."""
    return Label("✓", "yes", "good") if yes else Label("✗", "no", "bad")


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
    """Format US dollars: four decimals below one dollar, two from there on."""
    if 0 < amount < 0.00005:
        return "< $0.0001"
    return f"${amount:.4f}" if amount < 1 else f"${amount:,.2f}"


def usage_parts(usage: Usage, wall: float | None = None) -> list[str]:
    """Return tokens, seconds and cost as phrases, without what is unknown or zero.

    Args:
        usage: the consumption.
        wall: wall time in seconds; the time spent in calls by default.
    """
    parts = [count(usage.tokens, "token")] if usage.calls else []
    duration = usage.seconds if wall is None else wall
    parts += [seconds(duration)] if duration else []
    return parts + ([_dollars(usage.cost)] if usage.cost and usage.calls else [])


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


def stage_name(stage: str, iteration: int, allowed: int) -> str:
    """Return the stage under way, like ``Revising · iteration 2 of 4``."""
    name = STAGES.get(stage, stage)
    return f"{name} · iteration {iteration} of {allowed}" if iteration else f"{name} · draft"


def iteration_name(iteration: Iteration) -> str:
    """Return an iteration's name, with its origin unless it revises the one before."""
    name = f"Iteration {iteration.number}"
    if iteration.author == "user":
        return f"{name} (your text)"
    if iteration.parent is None:
        return f"{name} (draft)"
    branched = iteration.parent != iteration.number - 1
    return f"{name} (from {iteration.parent})" if branched else name


def summary_parts(run: Run) -> list[str]:
    """Return a run's score, best iteration, revisions, usage and stop reason as phrases."""
    parts = [] if run.score is None else [f"score {score(run.score)}"]
    if run.chosen is not None:
        accepted = run.best is not None and run.chosen.number != run.best
        parts.append(f"{'accepted' if accepted else 'best'}: iteration {run.chosen.number}")
        parts.append(f"{run.revisions} of {count(run.allowed_revisions, 'revision')}")
    parts += usage_parts(run.usage, run.seconds)
    if run.stop_reason is not None:
        parts.append(f"stopped: {STOPS[run.stop_reason]}")
    return parts


def running(run: Run) -> bool:
    """Return whether a stage is under way."""
    return bool(run.stage) and run.stop_reason is None


def stop_sentence(run: Run) -> str:
    """Return what the stop means: the engine's sentence, else the reason's; empty while running."""
    if run.stop_reason is None:
        return run.message
    return run.message or STOP_SENTENCES[run.stop_reason]


def language(text: str, form: str, language: str = "python") -> str:
    """Return the language to highlight, as pygments names it; empty for prose.

    Args:
        text: the text.
        form: how it is written.
        language: the task's language; data that a task without one asks for is ``json``.
    """
    if form != "code":
        return ""
    if language != "python":
        return language
    head, tail = text.lstrip()[:1], text.rstrip()[-1:]
    return "json" if (head, tail) in (("{", "}"), ("[", "]")) else "python"


def form_name(task: Task) -> str:
    """Return what a task asks for: ``prose``, ``code``, or ``Java code``."""
    return f"{task.language_name} code" if task.is_foreign else task.form


def settings(run: Run) -> list[str]:
    """Return a run's profile, models, checks, limits and forecast as phrases."""
    setup = run.setup
    parts = [f"profile {run.task.profile}"]
    parts += [f"language {run.task.language_name}"] if run.task.is_foreign else []
    parts += [f"model {setup.model}"] if setup.model else []
    parts += [f"judge {setup.judge}"] if setup.judge and setup.judge != setup.model else []
    parts += [f"checks {', '.join(setup.checks)}"] if setup.checks else []
    parts.append(f"up to {count(run.limits.max_revisions, 'revision')}")
    return [*parts, f"target {score(run.limits.target)}", *_forecast(run)]


def _forecast(run: Run) -> list[str]:
    """Return the most a run can consume, and the estimate for one more revision."""
    most = forecast(run)
    limit = f"at most {count(most.calls, 'call')}, {count(_round_up(most.tokens), 'token')}"
    if most.cost is None:
        limit += ", price unknown"
    else:
        limit += f", {cost(most.cost)}"
    estimate = f"≈ {count(_round_up(most.revision), 'token')} per further revision"
    if most.revision_cost:
        estimate += f" ({cost(most.revision_cost)})"
    return [limit, estimate]


def _round_up(number: int) -> int:
    """Round up to two significant digits: an estimate should not look like a count."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step
