"""When a run stops and what it does next: pure functions of the run."""

from typing import Literal, NamedTuple

from ipyrefine.core.pending import twin, unchecked, undrafted, unproven, unverified
from ipyrefine.core.records import Finding, Outcome
from ipyrefine.core.runs import Iteration, Run, StopReason

UNPRICED = (
    "The model's price is not known, so a budget in dollars cannot be kept: give it as "
    '--price "0.15,0.60" (dollars per million prompt and completion tokens), or bound the tokens '
    "instead."
)

Step = Literal["draft", "check", "judge", "critique", "revise", "gate"]


class Stop(NamedTuple):
    """A decision to stop, with its sentence for the user."""

    reason: StopReason
    message: str


def next_step(run: Run) -> Step | Stop:
    """Say what a run does next: its next stage, or why it stops."""
    if decided := _decided(run):
        return decided
    if undrafted(run):
        return "draft"
    if unverified(run):
        return "check" if unchecked(run) else "judge"
    if run.base is None:
        return "judge"
    if contender(run):
        return "gate"
    if unproven(run, run.base) and not run.held:
        return "critique"
    if stop := finished(run):
        return stop
    if run.waiting:
        return Stop(StopReason.PAUSED, "Waiting for you: go on, change something, or accept.")
    if not run.base.critiqued and (run.limits.every_critique or not to_act_on(run, run.base)):
        return "critique"
    return "revise"


def to_act_on(run: Run, base: Iteration) -> tuple[Finding, ...]:
    """The findings a revision of a text acts on: those the user chose, else all that stand."""
    chosen = tuple(f for f in base.findings if f.id in run.selected)
    return chosen or base.actionable


def best_of(run: Run) -> int | None:
    """The number of the best verified iteration: the first of those that rank highest."""
    verified = [i for i in run.iterations if i.verdict and not i.barred]
    best = max(verified, key=lambda i: i.verdict.rank if i.verdict else (), default=None)
    return None if best is None else best.number


def contender(run: Run) -> Iteration | None:
    """With ``gate``, the text that would replace the best and has not won both ways yet.

    Evidence needs no second opinion: what the checks or the user settle is not compared.
    """
    if not run.limits.gate or run.best is None or run.stale:
        return None
    number = best_of(run)
    if number in (None, run.best):
        return None
    candidate, best = run.iterations[number or 0], run.iterations[run.best]
    if candidate.compared > 1 or not candidate.verdict or not best.verdict:
        return None
    judged = (candidate.verdict.author, best.verdict.author) == ("model", "model")
    settled = candidate.verdict.rank[:2] != best.verdict.rank[:2]
    return candidate if judged and not settled else None


def finished(run: Run) -> Stop | None:
    """Say whether a run with a verified latest text has reached one of its own stops."""
    best = run.iterations[run.best or 0]
    if best.verdict and best.verdict.outcome is Outcome.PASS and not run.revise_asked:
        return Stop(StopReason.PASSED, f"Iteration {best.number} passes.")
    if stop := _going_round(run):
        return stop
    if stalled(run) >= run.limits.patience:
        rounds = _revisions(run.limits.patience)
        return Stop(StopReason.PLATEAU, f"{rounds} in a row brought nothing better. {_unmet(best)}")
    if run.revisions >= run.allowed:
        asked = (
            " When passes like these do not help, the requirements may be the problem, "
            "not the writing: say what you need more exactly, or continue with guidance."
        )
        used = f"{_revisions(run.revisions)} allowed and used. {_unmet(best)}{asked}"
        none = f"No revisions were allowed. {_unmet(best)}"
        return Stop(StopReason.ROUNDS, used if run.revisions else none)
    return None


def stalled(run: Run) -> int:
    """Count the latest revisions without progress, from where the user last went on.

    Progress is a text that ranks above all before it, and not by ``delta`` in score alone.
    """
    count, top = 0, None
    for iteration in run.iterations:
        rank = None if iteration.barred or not iteration.verdict else iteration.verdict.rank
        progress = False
        if rank is not None and (top is None or rank > top):
            progress = top is None or rank[:-1] != top[:-1] or rank[-1] - top[-1] > run.limits.delta
            top = rank
        first = iteration.parent is None or iteration.number <= run.plateau_from
        count = 0 if progress or first else count + 1
    return count


def over_budget(run: Run, seconds: float, estimate: int, calls: int = 1) -> Stop | None:
    """Say whether the budget forbids a model call, or several at once.

    Args:
        run: the run so far.
        seconds: wall time since the run started.
        estimate: prompt tokens that they are expected to read together.
        calls: how many calls.
    """
    budget, usage = run.limits.budget, run.usage
    if budget.calls is not None and usage.calls + calls > budget.calls:
        return _spent(f"{usage.calls} of {budget.calls} calls")
    if budget.tokens is not None and usage.tokens + estimate >= budget.tokens:
        return _spent(f"{usage.tokens:,} of {budget.tokens:,} tokens")
    if budget.prompt_tokens is not None and usage.prompt_tokens + estimate > budget.prompt_tokens:
        return _spent(f"{usage.prompt_tokens:,} of {budget.prompt_tokens:,} prompt tokens")
    written = usage.completion_tokens
    if budget.completion_tokens is not None and written >= budget.completion_tokens:
        return _spent(f"{written:,} of {budget.completion_tokens:,} completion tokens")
    if _cost_unknown(run):
        return Stop(StopReason.BUDGET, UNPRICED)
    if budget.cost is not None and _dollars(run, estimate, 1) >= budget.cost:
        return _spent(f"${usage.cost or 0:.4f} of ${budget.cost:.4f}")
    return over_time(run, seconds)


def completion_allowance(run: Run, estimate: int, calls: int = 1) -> int:
    """Completion tokens a call may write: the limit's, or its share of what the budget holds.

    Args:
        run: the run so far.
        estimate: prompt tokens that all the calls are expected to read together.
        calls: how many calls share the budget at once.
    """
    budget, left = run.limits.budget, [calls * run.limits.max_tokens]
    if budget.tokens is not None:
        left.append(budget.tokens - run.usage.tokens - estimate)
    if budget.completion_tokens is not None:
        left.append(budget.completion_tokens - run.usage.completion_tokens)
    if budget.cost is not None and run.price and run.price.completion:
        dollars = budget.cost - _dollars(run, estimate, 0)
        left.append(int(dollars * 1_000_000 / run.price.completion))
    return max(1, min(left) // calls)


def over_time(run: Run, seconds: float, wait: float = 0.0) -> Stop | None:
    """Say whether the budget's seconds are over, or would be after a wait.

    Args:
        run: the run so far.
        seconds: wall time since the run started.
        wait: seconds that the server wants to be left alone.
    """
    limit = run.limits.budget.seconds
    if limit is None or seconds + wait < limit:
        return None
    asked = f", and the server asks to wait {wait:.0f} more" if seconds < limit else ""
    return _spent(f"{seconds:.0f} of {limit:.0f} seconds{asked}")


def estimate_tokens(characters: int) -> int:
    """Estimate the tokens of a text: four characters each, the usual rule of thumb."""
    return characters // 4


def _cost_unknown(run: Run) -> bool:
    """Whether a cost budget is set that cannot be kept, as the model's price is not known."""
    return run.limits.budget.cost is not None and run.usage.calls > 0 and run.usage.cost is None


def _dollars(run: Run, prompt_tokens: int, completion_tokens: int) -> float:
    """Dollars spent after one more call of so many tokens; its price counts where it is known."""
    more = run.price.cost(prompt_tokens, completion_tokens) if run.price else 0.0
    return (run.usage.cost or 0.0) + more


def _decided(run: Run) -> Stop | None:
    ruling = run.ruling
    if ruling is None or not ruling.settles or run.chosen is None:
        return None
    if ruling.kind == "accept":
        return Stop(StopReason.ACCEPTED, f"You accepted iteration {run.chosen.number}.")
    return Stop(StopReason.OVERRIDDEN, f"You passed iteration {run.chosen.number}.")


def _going_round(run: Run) -> Stop | None:
    """Stop when the latest revision is an earlier text over again, not just its parent's."""
    latest = run.iterations[-1]
    earlier = twin(run, latest)
    if earlier is None or latest.flaw or latest.author == "user" or latest.parent is None:
        return None
    if latest.number <= run.plateau_from or latest.text == run.iterations[latest.parent].text:
        return None
    best = run.iterations[run.best or 0]
    return Stop(
        StopReason.PLATEAU,
        f"It goes back and forth: iteration {latest.number} is iteration {earlier.number} "
        f"over again. {_unmet(best)}",
    )


def _spent(what: str) -> Stop:
    return Stop(
        StopReason.BUDGET,
        f"The budget is used up ({what}); the best text so far is kept. "
        "A larger --budget or Continue lets it go on.",
    )


def _unmet(best: Iteration) -> str:
    return f"Unmet in the best text: {best.verdict.why}" if best.verdict else ""


def _revisions(count: int) -> str:
    return f"{count} revision" if count == 1 else f"{count} revisions"
