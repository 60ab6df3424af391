"""What a run does next, when it stops, and what it may cost: pure functions of the run."""

from typing import Any

from ipyrefine.core import rank, readers
from ipyrefine.core.decisions import Accept, Expect, Retract
from ipyrefine.core.events import Stopped
from ipyrefine.core.model import Outcome, Price, Stage, StopReason, count
from ipyrefine.core.points import is_bare_no, up_for_review
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Cell

PRICE_UNKNOWN = (
    "The model's price is not known, so a budget in dollars cannot be kept. Give the price with "
    '--set price="0.15,0.60" (dollars per million tokens in and out), or limit the tokens.'
)
EVIDENCE_CHARACTERS = 1_500  # of a check's detail that a prompt holds
REPAIR_CHARACTERS = 4_000  # of an unreadable reply that are quoted back to the model
LIMIT_FACTOR = 4  # for a reply that was cut off where nobody set the limit
MAX_REPAIRS = 2  # of replies that cannot be used, in a run
_LEAST_LIMIT = 16_384  # tokens; hidden reasoning takes thousands of them


WAITING = Stopped(
    reason=StopReason.PAUSED, message="Waiting for you: continue, change something, or accept."
)
_NOT_JUDGED = Stopped(
    reason=StopReason.UNJUDGED, message="Accept the text, or say what you need and continue."
)


def next_step(run: Run) -> Stage | Stopped:
    """Return the next stage of a run, or why it stops."""
    answered = run.stale and isinstance(run.decisions[-1], Expect | Retract)
    if run.ruling and run.ruling.settles and run.chosen and not answered:
        accepted = isinstance(run.ruling, Accept)
        return Stopped(
            reason=StopReason.ACCEPTED if accepted else StopReason.OVERRIDDEN,
            message=f"You {'accepted' if accepted else 'passed'} {run.mention(run.chosen.number)}.",
        )
    if run.answered:
        return Stopped(
            reason=StopReason.ANSWERED,
            message="The question is answered. The text stays as it was.",
        )
    if not run.iterations:
        return Stage.CHOOSE if run.setup.words and run.setup.weak_editor else Stage.DRAFT
    if to_check(run):
        return Stage.CHECK
    if waiting := unverified(run):
        return Stage.CRITIQUE if _wants_reading(run, waiting) else Stage.JUDGE
    base = base_of(run)
    if base is None:  # such as in a record that was cut by hand
        return WAITING
    if stop := finished(run):
        return stop
    best = run.iterations[run.best or 0]
    failed = (e.tallies["result"] for e in best.evidence if e.failed and "result" in e.tallies)
    # Where the best text fails a result that the user has just said they expect, it goes on.
    said = run.decisions and isinstance(run.decisions[-1], Expect)
    if run.waiting and not (said and any(held < of for held, of in failed)):
        return WAITING
    feedback = to_act_on(run, base)
    explained = any(not is_bare_no(one, "evaluator") for one in feedback)
    critique = run.limits.critique
    useless = run.setup.weak_critic or readers.is_plain(run, base)
    unexplained = critique == "auto" and not explained and not useless
    if not base.reading and (critique == "always" or unexplained):
        return Stage.CRITIQUE
    if feedback:
        return Stage.REVISE
    verdict = best.verdict  # the base may stand below it
    if verdict is None or verdict.outcome is Outcome.NOT_JUDGED:
        return _NOT_JUDGED
    return Stopped(
        reason=StopReason.PASSED if verdict.passed else StopReason.PLATEAU,
        message=f"Nothing says what to change in {run.mention(base.number)}. Give guidance, add a "
        "finding, or accept it.",
    )


def may_answer(run: Run) -> bool:
    """Return True if the next call may answer in words what the user asks about their own text.

    That is the first one, which may read the text or revise it. Whoever sets up how texts are read
    or written wants them read or written.
    """
    setup, texts = run.setup, run.iterations
    first = len(texts) == 1 and texts[0].author == "user" and not texts[0].reading
    usual = not (setup.prompts or setup.coach or run.limits.critique == "never")
    return first and usual and not (setup.is_bare or setup.weak_editor) and not run.decisions


# What texts wait for


def unverified(run: Run) -> Iteration | None:
    """Return the first iteration without a verdict, or whose verdict used other criteria."""
    return next(iter(_unverified(run)), None)


def _unverified(run: Run) -> list[Iteration]:
    waiting = [i for i in run.iterations if i.verdict is None or i.number in run.stale]
    if run.limits.verify_drafts or run.setup.checks or run.allowed_revisions == 0:
        return waiting
    return [i for i in waiting if i.parent is not None]


def to_check(run: Run) -> Iteration | None:
    """Return the first text that checks, or new tests of the critic's, have still to run on."""
    texts = _unverified(run) or (run.iterations if run.tests else ())
    for text in texts:
        waits = sum(not one.outdated for one in text.evidence) < len(run.setup.checks)
        waits = waits or any(one.id not in text.results for one in run.tests)
        if waits and readers.find_duplicate(run, text) is None:
            return text
    return None


# Readers


def _wants_reading(run: Run, iteration: Iteration) -> bool:
    """Return True if a critic reads a text now, before its verdict; a failure decides by itself."""
    if iteration.reading or not readers.reads(run) or iteration.override:
        return False
    if iteration.parent is None and run.setup.wish:
        return False  # it is to be changed, whatever a critic says of it
    if any(evidence.failed for evidence in run.evidence(iteration)):
        return False
    if run.ruling and run.ruling.settles:
        return False
    if readers.find_duplicate(run, iteration):  # what its writer contests is the critic's
        waits = any(one.unanswered for one in run.tests) or readers.awaits_answer(run, iteration)
        return waits and bool(iteration.contested)
    state = readers.state_of(run, iteration)
    return state == "waits" or (state == "own" and run.limits.critique == "always")


# What is revised


def base_of(run: Run) -> Iteration | None:
    """Return the iteration that the next revision continues from; None before any verdict.

    That is the user's choice; else the latest text that does not stand below the best. A text that
    repeats an earlier one, or that the model failed to write, does not count.
    """
    if run.head is not None:
        return run.iterations[run.head]
    if run.best is None:  # drafts that are not judged
        return None if unverified(run) or not run.iterations else run.iterations[-1]
    best = run.iterations[run.best]
    if run.limits.base == "best" or not run.revisions:
        return best
    top = rank.merit(run, best) or ()
    for iteration in reversed(run.iterations):
        worth = rank.merit(run, iteration)
        new = worth is not None and readers.find_duplicate(run, iteration) is None
        if new and worth and (worth >= top or run.limits.base == "latest"):
            return iteration
    return best


def to_act_on(run: Run, base: Iteration) -> tuple[Cell, ...]:
    """Return what a revision acts on: what the user selected, else all that is missed.

    A bare score below the target adds nothing to a remark that says what is wrong.
    """
    cells = run.cells(base)
    selected = tuple(one for one in cells if one.id in run.selected)
    actionable = tuple(one for one in cells if one.actionable)
    explained = tuple(one for one in actionable if not is_bare_no(one, "evaluator"))
    return selected or explained or actionable


# Stops


def finished(run: Run) -> Stopped | None:
    """Return one of a run's own stops, once its latest text is verified."""
    best, revisions = run.iterations[run.best or 0], run.revisions
    verdict = best.verdict or rank.verdict(run, best)
    if not run.revision_requested and verdict.passed:
        passes = f"{run.mention(best.number).capitalize()} passes."
        if verdict.basis == "critique":
            passes = f"The critic found nothing that blocks {run.mention(best.number)}."
        elif verdict.basis == "tested":
            passes = f"Every finding's test passes on {run.mention(best.number)}."
        return Stopped(reason=StopReason.PASSED, message=passes)
    if stop := _repeats(run):
        return stop
    spent = revisions >= run.allowed_revisions
    tried = len(run.iterations) - 1 > run.patience_from and revisions > 0
    undecided = verdict.outcome is Outcome.NOT_JUDGED
    # What is acted on: a critic's No, and words of an evaluator that say nothing clear.
    refused = verdict.why == "not_ready" or (best.evaluation and best.evaluation.said)
    if undecided and not run.revision_requested and ((tried and not refused) or spent):
        return _NOT_JUDGED
    patience = run.limits.patience
    if patience is not None and revisions_without_improvement(run) >= patience:
        return Stopped(
            reason=StopReason.PLATEAU, message=f"No improvement in {count(patience, 'revision')}."
        )
    if not spent:
        return None
    message = "No revisions were allowed."
    if revisions:
        message = (
            f"{count(revisions, 'revision')} used. If more passes do not help, say what you need "
            "more exactly, or continue with guidance."
        )
    return Stopped(reason=StopReason.REVISIONS, message=message)


def revisions_without_improvement(run: Run) -> int:
    """Count the latest revisions without progress, from where the user last continued.

    Progress is a text that stands above all before it. Where the user's evaluator scores, it is a
    score that differs from the one before by more than ``delta``.
    """
    idle, top, before = 0, None, None
    for iteration in run.iterations:
        place, now = rank.standing(run, iteration), iteration.verdict
        score = now.score if now and rank.is_scored(run, iteration) else None
        progress = place is not None and (top is None or place > top)
        if score is not None and before is not None:
            progress = round(abs(score - before), 9) > run.limits.delta
        elif progress:
            top = place
        before = score
        exempt = iteration.parent is None or iteration.number <= run.patience_from
        idle = 0 if progress or exempt else idle + 1
    return idle


def _repeats(run: Run) -> Stopped | None:
    """Return a stop where the latest revision repeats a text or closes nothing that was open.

    It does where everything open was open before, is for a critic or the user to close, and was
    acted on; and where running it shows what it showed before.
    """
    latest = run.iterations[-1]
    if latest.failure or latest.unread or latest.author == "user" or latest.parent is None:
        return None
    parent = run.iterations[latest.parent]
    if latest.number <= run.patience_from or latest.text == parent.text:
        return None
    name, left = run.mention(latest.number).capitalize(), _left(run, latest)
    if earlier := readers.find_duplicate(run, latest):
        return Stopped(
            reason=StopReason.PLATEAU, message=f"{name} repeats {run.mention(earlier.number)}."
        )
    asked = {one.id for one in up_for_review(run, latest)} & {*latest.acted_on}
    users = any(run.points[id_].by_user for id_ in left)  # who is told how to close it
    more = users or run.revisions < run.allowed_revisions
    same = left == _left(run, parent) and _shown(run, latest) == _shown(run, parent)
    if more and left and same and left.keys() <= asked:
        return Stopped(reason=StopReason.PLATEAU, message=f"{name} closed no open finding.")
    return None


def _left(run: Run, text: Iteration) -> dict[str, str]:
    return {one.id: one.words for one in run.cells(text) if one.actionable}


def _shown(run: Run, text: Iteration) -> list[Any]:
    return [(one.name, one.shows, one.outputs, one.effects) for one in run.evidence(text)]


# The budget


def dearest(first: Price | None, second: Price | None) -> Price | None:
    """Return the price that no call of two models exceeds; None when one is not known."""
    if first is None or second is None:
        return None
    prompt = max(first.prompt, second.prompt)
    return Price(prompt=prompt, completion=max(first.completion, second.completion))


def over_budget(run: Run, seconds: float, prompt_tokens: int) -> Stopped | None:
    """Return a stop when the budget forbids a model call.

    Args:
        run: the run so far.
        seconds: wall time since the run started.
        prompt_tokens: tokens that the call is expected to read.
    """
    budget, usage = run.limits.budget, run.usage
    reply = max(_typical_text(run), _TYPICAL_CRITIQUE)
    for limit, used, least, noun, need in (
        (budget.calls, usage.calls, 1, "calls", 0),
        (budget.tokens, usage.tokens, prompt_tokens + 1, "tokens", prompt_tokens + reply),
        (budget.prompt_tokens, usage.prompt_tokens, prompt_tokens, "prompt tokens", prompt_tokens),
        (budget.completion_tokens, usage.completion_tokens, 1, "completion tokens", reply),
    ):
        if limit is not None and used + least > limit:
            return _used_up(f"{used:,} of {limit:,} {noun}", f"{need:,}" if need else "")
    if budget.cost is not None:
        if usage.calls > 0 and usage.cost is None:
            return Stopped(reason=StopReason.BUDGET, message=PRICE_UNKNOWN)
        if _dollars(run, prompt_tokens, 1) >= budget.cost:
            return _used_up(f"${usage.cost or 0:.4f} of ${budget.cost:.4f}")
    return over_time(run, seconds)


def over_time(run: Run, seconds: float, wait: float = 0.0) -> Stopped | None:
    """Return a stop when the budget's seconds are over, or would be after a wait.

    Args:
        run: the run so far.
        seconds: wall time since the run started.
        wait: seconds that the server asks to be left alone.
    """
    limit = run.limits.budget.seconds
    if limit is None or seconds + wait < limit:
        return None
    asked = f", and the server asks to wait {wait:.0f} more" if seconds < limit else ""
    return _used_up(f"{seconds:.0f} of {limit:.0f} seconds{asked}")


def token_limit(run: Run) -> int:
    """Return the completion tokens that a call may write as far as the limits go."""
    if run.limits.max_tokens is not None:
        return run.limits.max_tokens
    longest = max((len(i.text) for i in run.iterations), default=len(run.setup.draft or ""))
    return max(_LEAST_LIMIT, 3 * estimate_tokens(longest))


def completion_allowance(run: Run, prompt_tokens: int, limit: int) -> int:
    """Return the completion tokens a call may write: its limit, or what the budget leaves.

    Args:
        run: the run so far.
        prompt_tokens: tokens that the call is expected to read.
        limit: completion tokens that the call may write without a budget.
    """
    budget, left = run.limits.budget, [limit]
    if budget.tokens is not None:
        left.append(budget.tokens - run.usage.tokens - prompt_tokens)
    if budget.completion_tokens is not None:
        left.append(budget.completion_tokens - run.usage.completion_tokens)
    price = run.setup.price
    if budget.cost is not None and price and price.completion:
        dollars = budget.cost - _dollars(run, prompt_tokens, 0)
        left.append(int(dollars * 1_000_000 / price.completion))
    return max(1, min(left))


def estimate_tokens(characters: int) -> int:
    """Estimate the tokens of a text: four characters each, the usual rule of thumb."""
    return characters // 4


def _used_up(spent: str, need: str = "") -> Stopped:
    more = f"; the next call needs about {need}" if need else ""
    return Stopped(
        reason=StopReason.BUDGET,
        message=f"The budget is used up ({spent}{more}). The best text so far is kept; a larger "
        "--budget or Continue goes on.",
    )


def _dollars(run: Run, prompt_tokens: int, completion_tokens: int) -> float:
    price = run.setup.price
    more = price.cost(prompt_tokens, completion_tokens) if price else 0.0
    return (run.usage.cost or 0.0) + more


_INSTRUCTIONS = 700  # tokens of a stage's own instructions, at most
_TYPICAL_TEXT = 400  # tokens of a text that nobody has written yet
_TYPICAL_CRITIQUE = 300


def forecast(run: Run) -> tuple[int, int, int]:
    """Return the most calls of a run, how many of them repair, and tokens of one more revision.

    At most every stage runs, and some replies have to be asked for again. A revision is estimated
    from those before it, or from the text at hand.
    """
    limits, setup = run.limits, run.setup
    reading = limits.critique != "never" and not setup.weak_critic
    stages = (setup.draft is None) + limits.max_revisions
    stages += bool(setup.words and setup.weak_editor)
    stages += (reading + readers.has_evaluator(run)) * (1 + limits.max_revisions)
    calls = stages + MAX_REPAIRS * bool(stages)
    calls = calls if limits.budget.calls is None else min(calls, limits.budget.calls)
    revised = (one.number for one in run.iterations if one.parent is not None)
    if past := [used for number in revised if (used := run.usage_of(number)).calls]:
        revision = sum(usage.tokens for usage in past) // len(past)
    else:
        prompt = _INSTRUCTIONS + estimate_tokens(len(run.task.model_dump_json()))
        evidence = estimate_tokens(EVIDENCE_CHARACTERS * len(setup.checks))
        revision = 2 * prompt + evidence + 3 * _typical_text(run) + _TYPICAL_CRITIQUE
    return calls, max(0, calls - stages), revision


def _typical_text(run: Run) -> int:
    text = run.text or run.setup.draft
    return estimate_tokens(len(text)) if text else _TYPICAL_TEXT
