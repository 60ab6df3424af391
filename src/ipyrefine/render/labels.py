"""The words and number formats that every surface shares."""

from typing import NamedTuple

from ipyrefine.core.preflight import forecast
from ipyrefine.core.records import Finding, Outcome, Severity, Status, Verdict
from ipyrefine.core.runs import Decision, Iteration, Run, StopReason
from ipyrefine.core.usage import Usage

NONE = "\N{EN DASH}"
STAGES = {
    "draft": "Writing",
    "check": "Checking",
    "judge": "Judging",
    "critique": "Critiquing",
    "revise": "Revising",
    "gate": "Comparing",
}
STOPS = {
    StopReason.PASSED: "passed",
    StopReason.PLATEAU: "no more progress",
    StopReason.ROUNDS: "all revisions used",
    StopReason.BUDGET: "budget used up",
    StopReason.CANCELLED: "interrupted",
    StopReason.FAILED: "the model failed",
    StopReason.ACCEPTED: "accepted by you",
    StopReason.OVERRIDDEN: "verdict overridden by you",
    StopReason.PAUSED: "waiting for you",
}
STOP_SENTENCES = {
    StopReason.PASSED: "The text passes and reaches the target.",
    StopReason.PLATEAU: "The latest revisions brought nothing better; the best text was kept.",
    StopReason.ROUNDS: "All allowed revisions are used and the text does not pass yet; "
    "perhaps the requirements are the problem, not the execution.",
    StopReason.BUDGET: "The budget does not allow another call; the best text so far was kept.",
    StopReason.CANCELLED: "You interrupted the run; the best text so far was kept.",
    StopReason.FAILED: "The model or its server failed; the best text so far was kept.",
    StopReason.ACCEPTED: "You accepted the text.",
    StopReason.OVERRIDDEN: "You overrode the verdict.",
    StopReason.PAUSED: "It waits for you: go on, change something, or accept.",
}


class Label(NamedTuple):
    """A word with a symbol, so that its meaning never rests on colour; `kind` names its style."""

    symbol: str
    word: str
    kind: str

    def __str__(self) -> str:
        """Symbol and word, as text shows them."""
        return f"{self.symbol} {self.word}"


UNGROUNDED = Label("⚠", "quote not found in the text", "warn")
UNCONFIRMED = Label("⚠", "unconfirmed: the text near the quote did not change", "warn")
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
    Status.REGRESSED: Label("↩", "back again", "bad"),
}


def verdict_label(verdict: Verdict | None) -> Label:
    """Symbol and word of a verdict; one that rests on nothing is never shown as an outcome."""
    if verdict is None or not verdict.verified:
        return Label("?", "NOT VERIFIED", "quiet")
    return _OUTCOMES[verdict.outcome]


def severity_label(severity: Severity) -> Label:
    """Symbol and word of a severity."""
    if severity is Severity.BLOCKING:
        return Label("■", "blocking", "bad")
    return Label("□", "minor", "quiet")


def status_label(status: Status) -> Label:
    """Symbol and word of a finding's status."""
    return _STATUSES[status]


def score(value: float | None) -> str:
    """A score with two decimals, or a dash."""
    return NONE if value is None else f"{value:.2f}"


def count(number: int, noun: str) -> str:
    """A number with thousands separators and its noun, in the plural unless it is one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """A duration: ``0.3 s``, ``12 s``, ``1 min 05 s`` or ``1 h 02 min``."""
    if value < 0.95:
        return "< 0.1 s" if value < 0.05 else f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def cost(dollars: float | None) -> str:
    """US dollars: four decimals below one dollar, two from there on; a dash when unknown."""
    if dollars is None:
        return NONE
    if 0 < dollars < 0.00005:
        return "< $0.0001"
    return f"${dollars:.4f}" if dollars < 1 else f"${dollars:,.2f}"


def usage_parts(usage: Usage, wall: float | None = None) -> list[str]:
    """Tokens, seconds and cost of a usage, each as one phrase; unknown ones are left out.

    Args:
        usage: what was consumed.
        wall: wall time in seconds to show instead of the time spent in calls.
    """
    parts = [count(usage.tokens, "token")] if usage.calls else []
    spent = usage.seconds if wall is None else wall
    parts += [seconds(spent)] if spent else []
    return parts + ([cost(usage.cost)] if usage.cost is not None and usage.calls else [])


def budget_left(run: Run) -> str:
    """What is left of each bound of the budget, like ``3,400 tokens left``; empty if unbounded."""
    budget, used = run.limits.budget, run.usage
    counted = (
        (budget.tokens, used.tokens, "token"),
        (budget.prompt_tokens, used.prompt_tokens, "prompt token"),
        (budget.completion_tokens, used.completion_tokens, "completion token"),
        (budget.calls, used.calls, "call"),
    )
    parts = [count(max(0, most - spent), noun) for most, spent, noun in counted if most is not None]
    if budget.cost is not None and used.cost is not None:
        parts.append(cost(max(0.0, budget.cost - used.cost)))
    if budget.seconds is not None:
        parts.append(seconds(max(0.0, budget.seconds - run.seconds)))
    return ", ".join(parts) + " left" if parts else ""


def stage_name(stage: str, iteration: int, allowed: int) -> str:
    """What is running, like ``Revising · iteration 2 of 4``."""
    name = STAGES.get(stage, stage)
    return f"{name} · iteration {iteration} of {allowed}" if iteration else f"{name} · first text"


def iteration_name(iteration: Iteration) -> str:
    """An iteration's name, with whose text it is when that is not a revision of the one before."""
    name = f"Iteration {iteration.number}"
    if iteration.author == "user":
        return f"{name} (your text)"
    if iteration.parent is None:
        return f"{name} (draft)"
    branched = iteration.parent != iteration.number - 1
    return f"{name} (from {iteration.parent})" if branched else name


def summary_parts(run: Run) -> list[str]:
    """The run in one line, without its verdict: score, best, revisions, usage and stop."""
    parts = [] if run.score is None else [f"score {score(run.score)}"]
    if run.chosen is not None:
        accepted = run.best is not None and run.chosen.number != run.best
        parts.append(f"{'accepted' if accepted else 'best'}: iteration {run.chosen.number}")
        parts.append(f"{run.revisions} of {count(run.allowed, 'revision')}")
    parts += usage_parts(run.usage, run.seconds)
    if run.stop_reason is not None:
        parts.append(f"stopped: {STOPS[run.stop_reason]}")
    return parts


def summary_text(run: Run) -> str:
    """The run in one line of plain text: verdict or stage, score, best, usage and stop."""
    head = STAGES.get(run.stage, run.stage) if running(run) else str(verdict_label(run.verdict))
    return " · ".join([head, *summary_parts(run)])


def running(run: Run) -> bool:
    """Whether a stage is under way."""
    return bool(run.stage) and run.stop_reason is None


def stop_sentence(run: Run) -> str:
    """What the stop means: the engine's sentence, else the reason's; empty while it runs."""
    if run.stop_reason is None:
        return run.message
    return run.message or STOP_SENTENCES[run.stop_reason]


def ranked(findings: tuple[Finding, ...]) -> list[Finding]:
    """Findings in reading order: those to act on first, blocking before minor."""
    return sorted(
        findings,
        key=lambda f: (
            f.status not in (Status.OPEN, Status.REGRESSED),
            not f.grounded,
            f.severity is not Severity.BLOCKING,
        ),
    )


def decision_sentence(decision: Decision) -> str:
    """What the user did, in one sentence; their own words are quoted as they are."""
    which = "the best text" if decision.iteration is None else f"iteration {decision.iteration}"
    words = f": {decision.text}" if decision.text else "."
    match decision.kind:
        case "accept":
            return f"You accepted {which}{words}"
        case "override":
            outcome = _OUTCOMES[decision.outcome].word if decision.outcome else "another verdict"
            return f"You overrode the verdict on {which} to {outcome}{words}"
        case "continue":
            return f"You allowed {count(decision.rounds, 'more revision')}{words}"
        case "branch":
            return f"You went on from {which}{words}"
        case "select":
            return f"You chose {', '.join(decision.findings)} to act on{words}"
        case "guide":
            return f"You gave guidance{words}"
        case "edit":
            return f"You edited {which} by hand."
        case "dismiss":
            return f"You dismissed {', '.join(decision.findings)}{words}"
        case "add":
            return f"You added a finding: {decision.finding.problem if decision.finding else ''}"
        case "rubric":
            return _rubric_sentence(decision)


def _rubric_sentence(decision: Decision) -> str:
    changes = [f"criteria {', '.join(c.name for c in decision.criteria)}"]
    changes = changes if decision.criteria else []
    changes += [] if decision.target is None else [f"target {score(decision.target)}"]
    return f"You changed the rubric: {'; '.join(changes)}."


def language(text: str, form: str) -> str:
    """The language a text is highlighted as: ``python`` or ``json`` for code, empty for prose."""
    if form != "code":
        return ""
    head, tail = text.lstrip()[:1], text.rstrip()[-1:]
    return "json" if (head, tail) in (("{", "}"), ("[", "]")) else "python"


def problems(run: Run, iteration: Iteration) -> dict[str, str]:
    """Problem by finding id, from the iteration and the one it was revised from."""
    parents = () if iteration.parent is None else run.iterations[iteration.parent].findings
    return {finding.id: finding.problem for finding in (*parents, *iteration.findings)}


def rules(run: Run) -> list[str]:
    """Under which rules it runs: profile, models, checks, revisions, target."""
    parts = [f"profile {run.task.profile}"] if run.task else []
    parts += [f"model {run.model}"] if run.model else []
    parts += [f"judge {run.judge}"] if run.judge and run.judge != run.model else []
    parts += [f"checks {', '.join(run.checks)}"] if run.checks else []
    parts.append(f"up to {count(run.limits.max_iterations, 'revision')}")
    return [*parts, f"target {score(run.limits.target)}", *foreseen(run)]


def foreseen(run: Run) -> list[str]:
    """What it may come to: the most that it can take, and what one more revision takes."""
    most = forecast(run)
    money = "price not known" if most.cost is None else f"{cost(most.cost)} at most"
    if most.cost == 0:
        money = "free of charge"
    more = f"one more revision ≈ {count(_rough(most.revision), 'token')}"
    if most.revision_cost:
        more += f" ({cost(most.revision_cost)})"
    calls = f"at most {count(most.calls, 'call')} and {count(_rough(most.tokens), 'token')}"
    return [calls, money, more]


def _rough(number: int) -> int:
    """A number with two telling digits: an estimate should not look like a count."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step
