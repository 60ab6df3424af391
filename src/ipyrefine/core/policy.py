"""What a run does next, when it stops, and what it may cost: pure functions of the run."""

from collections.abc import Iterator
from itertools import islice, takewhile
from typing import NamedTuple

from ipyrefine.core.decisions import Accept
from ipyrefine.core.expectations import in_force
from ipyrefine.core.model import (
    LOW_SCORE,
    SUITE,
    Basis,
    Finding,
    Outcome,
    Price,
    Question,
    Stage,
    StopReason,
)
from ipyrefine.core.run import Iteration, Run

PRICE_UNKNOWN = (
    "The model's price is not known, so a budget in dollars cannot be kept. Give the price with "
    '--price "0.15,0.60" (dollars per million prompt and completion tokens), or limit the tokens.'
)
EVIDENCE_CHARACTERS = 1_500  # of a check's detail that a prompt holds
REPAIR_CHARACTERS = 4_000  # of an unreadable reply that are quoted back to the model
LIMIT_FACTOR = 4  # for a reply that was cut off where nobody set the limit
_LEAST_LIMIT = 16_384  # tokens; hidden reasoning takes thousands of them


class Stop(NamedTuple):
    """A stop, with its sentence for the user."""

    reason: StopReason
    message: str


_BASES: tuple[Basis, ...] = ("tests", "function", "examples")  # the strongest first
OWN: tuple[Basis, ...] = ("tests", "function")  # the user's, which decide by themselves
WAITING = Stop(StopReason.PAUSED, "Waiting for you: continue, change something, or accept.")


def next_step(run: Run) -> Stage | Stop:
    """Return the next stage of a run, or why it stops."""
    if stop := _settled_by_user(run):
        return stop
    if missing_drafts(run):
        return Stage.DRAFT
    if waiting := unverified(run):
        if unchecked(run):
            return Stage.CHECK
        return Stage.CRITIQUE if wants_reading(run, waiting) else Stage.JUDGE
    if untested(run):
        return Stage.CHECK
    base = base_of(run)
    if base is None:  # such as in a record that was cut by hand
        return WAITING
    if stop := finished(run):
        return stop
    if run.waiting:
        return WAITING
    feedback = to_act_on(run, base)
    explained = any(finding.check != LOW_SCORE for finding in feedback)
    critique = run.limits.critique
    if not base.critiqued and (critique == "always" or (critique == "auto" and not explained)):
        return Stage.CRITIQUE
    if not feedback:
        return _nothing_to_act_on(run, base)
    return Stage.REVISE


# What texts wait for


def missing_drafts(run: Run) -> tuple[int, ...]:
    """Return the numbers of the drafts to write at once now; none once the checks settle it.

    With checks, only as many are written as it takes: one, then (two where a check compares them)
    up to three, five, and so on, so that of an odd number most can agree. They end once a draft is
    settled, or a comparison says that further drafts could not change it (Adaptive-Consistency,
    arXiv 2305.11860), or nothing can tell drafts apart. Without checks nothing can settle it, and
    all are written at once.
    """
    wanted = 1 if run.setup.draft is not None else run.limits.candidates
    asked = len(run.iterations) + run.failed_drafts
    if run.revisions or asked >= wanted:
        return ()
    if not run.setup.checks:
        return tuple(range(asked, wanted))
    pair = run.setup.compares_drafts and asked < 3
    complete = pair or asked % 2 == 1  # a run may have been cut short in between
    if complete and (
        unchecked(run) or any(i.verdict or settled(i) or _is_final(run, i) for i in run.iterations)
    ):
        return ()
    step = 1 if pair or asked % 2 == 0 else 2
    return tuple(range(asked, min(asked + step, wanted)))


def _is_final(run: Run, iteration: Iteration) -> bool:
    """Return whether further drafts could not change a comparison that a text did not fail.

    A comparison without a result, as of a task without examples, leaves the choice to other checks
    or the evaluator. Where there are none, drafts would be written for nothing.
    """
    others = has_evaluator(run) or any(e.passed is not None for e in iteration.evidence)
    return any(
        e.drafts == "differ" or (e.drafts == "agree" and not e.failed and (e.passed or not others))
        for e in iteration.evidence
    )


def drafts_left(run: Run, iteration: Iteration) -> int:
    """Return how many drafts may still come to be compared with a text.

    None do for a revision, or once the user has answered what the drafts disagreed about.
    """
    if iteration.parent is not None or run.revisions or run.task.clarifications:
        return 0
    return max(0, run.limits.candidates - len(run.drafts) - run.failed_drafts)


def unverified(run: Run) -> Iteration | None:
    """Return the first iteration without a verdict, or with one from before the rubric changed."""
    return next(_unverified(run), None)


def unchecked(run: Run) -> Iteration | None:
    """Return the first unverified iteration that checks have still to run on."""
    return next((i for i in _unverified(run) if needs_checks(run, i)), None)


def needs_checks(run: Run, iteration: Iteration) -> bool:
    """Return whether checks have still to run on an iteration; never on a repeated text."""
    ran = sum(evidence.name != SUITE for evidence in iteration.evidence)
    waits = ran < len(run.setup.checks) or lacks_tests(run, iteration)
    return waits and find_duplicate(run, iteration) is None


def lacks_tests(run: Run, iteration: Iteration) -> bool:
    """Return whether the critic's tests, or some of them, have still to be run on a text."""
    wanted = {one.name for one in in_force(run.expectations)}
    if not wanted:
        return False
    return not wanted <= {r.name for e in iteration.evidence for r in e.results}


def wants_reading(run: Run, iteration: Iteration) -> bool:
    """Return whether a critic reads a text now, before its verdict; of several drafts one is read.

    A failure decides by itself, and so do drafts that differ.
    """
    if iteration.critiqued or not reads(run) or iteration.override:
        return False
    if find_duplicate(run, iteration) is not None:
        return False
    others = (draft for draft in run.drafts if draft.number != iteration.number)
    if iteration.parent is None and any(draft.critiqued for draft in others):
        return False
    if any(evidence.failed or evidence.drafts == "differ" for evidence in iteration.evidence):
        return False
    return run.limits.critique == "always" or needs_reading(run, iteration)


def needs_reading(run: Run, iteration: Iteration) -> bool:
    """Return whether a text passes only if a critic read it.

    That is so where a critic is there, unless the user's own tests or functions decide.
    """
    asked = reads(run) and run.limits.critique != "never"
    return asked and basis_of(iteration) not in OWN


def is_read(run: Run, iteration: Iteration) -> bool:
    """Return whether a critic read a text, and what it says decides."""
    return iteration.critiqued and not iteration.unread and reads(run)


def reads(run: Run) -> bool:
    """Return whether a critic is there whose word counts."""
    return not run.setup.weak_critic and not has_evaluator(run)


def has_evaluator(run: Run) -> bool:
    """Return whether the user's own prompt evaluates the texts."""
    return "judge" in run.setup.prompts


def untested(run: Run) -> Iteration | None:
    """Return the first text with a verdict that new tests of the critic's have to be run on."""
    if not run.expectations:
        return None
    return next((i for i in run.iterations if i.verdict and needs_checks(run, i)), None)


def find_duplicate(run: Run, iteration: Iteration) -> Iteration | None:
    """Return the earlier iteration with the same text, if any."""
    if iteration.failure and iteration.parent is not None:
        return run.iterations[iteration.parent]
    text, key = iteration.text, hash(iteration.text)
    # A string caches its hash, so that only an equal text is compared to its end.
    same_hash = (i for i in run.iterations[: iteration.number] if hash(i.text) == key)
    return next((i for i in same_hash if i.text == text), None)


def basis_of(iteration: Iteration) -> Basis:
    """Return the strongest basis for a PASS that a text's evidence gives; ``none`` without any.

    Running, following a schema, having the right form and agreeing with other drafts are not
    enough: a wrong text can do all of that.
    """
    passed = {e.basis for e in iteration.evidence if e.passed and e.decisive}
    return next((basis for basis in _BASES if basis in passed), "none")


def settled(iteration: Iteration) -> bool:
    """Return whether a text's evidence is enough for a PASS, unless a critic has to read it first.

    Drafts that disagree leave it open, but for the user's own tests and functions.
    """
    if any(e.failed for e in iteration.evidence):
        return False
    basis, differ = basis_of(iteration), any(e.drafts == "differ" for e in iteration.evidence)
    return basis in OWN or (basis != "none" and not differ)


def _unverified(run: Run) -> Iterator[Iteration]:
    return (i for i in _without_verdict(run) if _wants_verdict(run, i))


def _wants_verdict(run: Run, iteration: Iteration) -> bool:
    """Return whether a text is verified; a draft that is revised in any case needs no verdict."""
    if run.limits.verify_drafts or iteration.parent is not None or run.allowed_revisions == 0:
        return True
    failed = any(evidence.failed for evidence in iteration.evidence)
    return failed or settled(iteration) or needs_checks(run, iteration)


def _without_verdict(run: Run) -> Iterator[Iteration]:
    if run.stale:
        return (i for i in run.iterations if i.verdict is None or i.number in run.stale)
    # Texts are verified in order: a long run need not be read from its start.
    latest = list(takewhile(lambda i: i.verdict is None, reversed(run.iterations)))
    return reversed(latest)


# Which text is the best, and what is revised


def to_act_on(run: Run, base: Iteration) -> tuple[Finding, ...]:
    """Return the findings a revision acts on: those the user selected, else all that stand.

    A bare score below the target adds nothing to a finding that says what is wrong.
    """
    selected = tuple(f for f in base.findings if f.id in run.selected)
    explained = tuple(f for f in base.actionable if f.check != LOW_SCORE)
    return selected or explained or base.actionable


def base_of(run: Run) -> Iteration | None:
    """Return the iteration that the next revision continues from; None before any verdict.

    That is the user's choice; else the latest text that does not rank below the best. A text that
    repeats an earlier one, or that the model failed to write, does not count.
    """
    if run.head is not None:
        return run.iterations[run.head]
    best = None if run.best is None else run.iterations[run.best]
    if best is None:  # drafts that are not judged
        return None if unverified(run) or not run.iterations else run.iterations[-1]
    if run.limits.base == "best" or not run.revisions:
        return best
    assert best.verdict is not None, "the best text has a verdict"
    for iteration in reversed(run.iterations):
        if iteration.verdict is None or find_duplicate(run, iteration) is not None:
            continue
        worse = iteration.verdict.rank < best.verdict.rank
        if not worse or run.limits.base == "latest":
            return iteration
    return best


def best_of(run: Run) -> int | None:
    """Return the number of the best verified iteration: the first of those that rank highest.

    Where nothing gives a score, that is the latest revision: only its feedback tells texts apart,
    and it answers the feedback on those before it. One that fails comes after those that nearly
    pass. Texts from before the latest one that the user wrote no longer compete: it is the best,
    whatever it scores, until one that follows it ranks higher.
    """
    first = run.latest_edit.number if run.latest_edit else 0
    verified = [i for i in run.iterations[first:] if i.verdict]
    best = max(verified, key=lambda i: i.verdict.rank if i.verdict else (), default=None)
    if best is None or best.verdict is None:
        return None
    for later in verified[verified.index(best) + 1 :]:
        if later.verdict is None or best.verdict is None:
            continue
        tied = later.verdict.rank == best.verdict.rank
        fails = later.verdict.outcome is Outcome.FAIL and best.verdict.outcome is not Outcome.FAIL
        if tied and not fails and _is_unscored_revision(run, later):
            best = later
    return best.number


def _is_unscored_revision(run: Run, iteration: Iteration) -> bool:
    """Return whether a text is a new revision that nothing gave a score."""
    new = iteration.parent is not None and find_duplicate(run, iteration) is None
    return new and not is_scored(iteration)


# Stops


def finished(run: Run) -> Stop | None:
    """Return one of a run's own stops, once its latest text is verified."""
    best = run.iterations[run.best or 0]
    if best.verdict and best.verdict.passed and not run.revision_requested:
        passes = f"{run.mention(best.number).capitalize()} passes."
        if best.verdict.basis == "critique":
            passes = f"The critic found nothing that blocks {run.mention(best.number)}."
        return Stop(StopReason.PASSED, passes)
    if not run.revision_requested and (question := question_of(best)):
        return Stop(StopReason.QUESTION, _asked(question))
    if stop := _repeats(run) or _unjudged(run, best):
        return stop
    patience = run.limits.patience
    if patience is not None and revisions_without_improvement(run) >= patience:
        count = _count_revisions(patience)
        return Stop(StopReason.PLATEAU, f"No improvement in {count}.")
    if run.revisions >= run.allowed_revisions:
        message = "No revisions were allowed."
        if run.revisions:
            message = (
                f"{_count_revisions(run.revisions)} used. If more passes do not help, say what "
                "you need more exactly, or continue with guidance."
            )
        return Stop(StopReason.REVISIONS, message)
    return None


def _asked(question: Question) -> str:
    again = "Answer the question, and every draft is checked again."
    if len(question.choices) == 1:
        choice = question.choices[0]
        gives = f"{'raises' if choice.raises else 'returns'} {choice.result}"
        return f"The drafts agree that {question.call} {gives}, and no example says so. {again}"
    return (
        f"The drafts disagree about {question.call}, and the task doesn't say which is right. "
        f"{again}"
    )


def revisions_without_improvement(run: Run) -> int:
    """Count the latest revisions without progress, from where the user last continued.

    Progress is a text that ranks above all before it, and not by ``delta`` in score alone, or code
    that fails with another error than its parent, or at another line. Any other text that nothing
    gives a score counts only if it repeats an earlier one.
    """
    count, top = 0, None
    for iteration in run.iterations:
        rank = iteration.verdict.rank if iteration.verdict else None
        progress = False
        if rank is not None and (top is None or rank > top):
            progress = top is None or rank[:-1] != top[:-1] or rank[-1] - top[-1] > run.limits.delta
            top = rank
        exempt = iteration.parent is None or iteration.number <= run.patience_from
        if find_duplicate(run, iteration) is None:
            error = _run_error(iteration)
            parent = None if iteration.parent is None else run.iterations[iteration.parent]
            if error:
                progress = progress or parent is None or error != _run_error(parent)
            else:
                progress = progress or not is_scored(iteration)
        count = 0 if progress or exempt else count + 1
    return count


def _run_error(iteration: Iteration) -> str:
    """Return the error, with its line, with which a text failed to run; empty where it did not."""
    failed = (e for e in iteration.evidence if e.failed and e.basis == "run")
    return next((e.detail.partition("\n")[0] for e in failed), "")


def is_scored(iteration: Iteration) -> bool:
    """Return whether something gave a text a score, rather than a bare pass or fail."""
    verdict = iteration.verdict
    if verdict is None or verdict.basis == "user":
        return True
    if verdict.basis == "evaluator" or verdict.outcome is Outcome.NOT_JUDGED:
        return verdict.score is not None
    return any(evidence.score is not None for evidence in iteration.conclusive)


def question_of(iteration: Iteration) -> Question | None:
    """Return the question that an iteration's evidence leaves to the user, if any."""
    verdict = iteration.verdict
    if verdict is None or not verdict.required_passed:
        return None
    return next((e.question for e in iteration.evidence if e.question), None)


def _unjudged(run: Run, best: Iteration) -> Stop | None:
    """Stop when nothing decides on a text after one critique and one revision."""
    verdict = best.verdict
    if verdict is None or verdict.outcome is not Outcome.NOT_JUDGED:
        return None
    tried = len(run.iterations) - 1 > run.patience_from and run.revisions > 0
    if run.revision_requested or not (tried or run.revisions >= run.allowed_revisions):
        return None
    return _not_judged()


def _not_judged() -> Stop:
    return Stop(StopReason.UNJUDGED, "Accept the text, or say what you need and continue.")


def _nothing_to_act_on(run: Run, base: Iteration) -> Stop:
    verdict = run.iterations[run.best or 0].verdict  # the base may rank below the best
    if verdict and verdict.outcome is Outcome.NOT_JUDGED:
        return _not_judged()
    passed = verdict is not None and verdict.passed
    return Stop(
        StopReason.PASSED if passed else StopReason.PLATEAU,
        f"Nothing says what to change in {run.mention(base.number)}. Give guidance, add a "
        "finding, or accept it.",
    )


def _settled_by_user(run: Run) -> Stop | None:
    ruling = run.ruling
    if ruling is None or not ruling.settles or run.chosen is None:
        return None
    if isinstance(ruling, Accept):
        return Stop(StopReason.ACCEPTED, f"You accepted {run.mention(run.chosen.number)}.")
    return Stop(StopReason.OVERRIDDEN, f"You passed {run.mention(run.chosen.number)}.")


def _repeats(run: Run) -> Stop | None:
    """Stop when the latest revision repeats an earlier text other than its parent's."""
    latest = run.iterations[-1]
    earlier = find_duplicate(run, latest)
    if earlier is None or latest.failure or latest.author == "user" or latest.parent is None:
        return None
    if latest.number <= run.patience_from or latest.text == run.iterations[latest.parent].text:
        return None
    repeated = run.mention(earlier.number)
    return Stop(
        StopReason.PLATEAU, f"{run.mention(latest.number).capitalize()} repeats {repeated}."
    )


def _count_revisions(count: int) -> str:
    return f"{count} revision" if count == 1 else f"{count} revisions"


# The budget


def over_budget(run: Run, seconds: float, prompt_tokens: int, calls: int = 1) -> Stop | None:
    """Return a stop when the budget forbids a model call, or several at once.

    Args:
        run: the run so far.
        seconds: wall time since the run started.
        prompt_tokens: tokens that the calls are expected to read together.
        calls: how many calls.
    """
    budget, usage = run.limits.budget, run.usage
    reply = calls * _typical_reply(run)
    if budget.calls is not None and usage.calls + calls > budget.calls:
        return _used_up(f"{usage.calls} of {budget.calls} calls", calls, "")
    if budget.tokens is not None and usage.tokens + prompt_tokens >= budget.tokens:
        need = f"{prompt_tokens + reply:,}"
        return _used_up(f"{usage.tokens:,} of {budget.tokens:,} tokens", calls, need)
    read = usage.prompt_tokens
    if budget.prompt_tokens is not None and read + prompt_tokens > budget.prompt_tokens:
        spent = f"{read:,} of {budget.prompt_tokens:,} prompt tokens"
        return _used_up(spent, calls, f"{prompt_tokens:,}")
    written = usage.completion_tokens
    if budget.completion_tokens is not None and written >= budget.completion_tokens:
        spent = f"{written:,} of {budget.completion_tokens:,} completion tokens"
        return _used_up(spent, calls, f"{reply:,}")
    if budget.cost is not None:
        if usage.calls > 0 and usage.cost is None:
            return Stop(StopReason.BUDGET, PRICE_UNKNOWN)
        if _dollars(run, prompt_tokens, 1) >= budget.cost:
            dollars = _dollars(run, prompt_tokens, reply) - (usage.cost or 0.0)
            spent = f"${usage.cost or 0:.4f} of ${budget.cost:.4f}"
            # Without a price nothing is known of the next call.
            return _used_up(spent, calls, f"${dollars:.4f}" if dollars else "")
    return over_time(run, seconds)


def over_time(run: Run, seconds: float, wait: float = 0.0) -> Stop | None:
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


def completion_allowance(run: Run, prompt_tokens: int, limit: int, calls: int = 1) -> int:
    """Return the completion tokens a call may write: its limit, or its share of the budget.

    Args:
        run: the run so far.
        prompt_tokens: tokens that all the calls are expected to read together.
        limit: completion tokens that the call may write without a budget.
        calls: how many calls share the budget at once.
    """
    budget, left = run.limits.budget, [calls * limit]
    if budget.tokens is not None:
        left.append(budget.tokens - run.usage.tokens - prompt_tokens)
    if budget.completion_tokens is not None:
        left.append(budget.completion_tokens - run.usage.completion_tokens)
    price = run.setup.price
    if budget.cost is not None and price and price.completion:
        dollars = budget.cost - _dollars(run, prompt_tokens, 0)
        left.append(int(dollars * 1_000_000 / price.completion))
    return max(1, min(left) // calls)


def estimate_tokens(characters: int) -> int:
    """Estimate the tokens of a text: four characters each, the usual rule of thumb."""
    return characters // 4


def _used_up(spent: str, calls: int = 1, need: str = "") -> Stop:
    """Return the stop of a used-up budget.

    Args:
        spent: what was used of the bound.
        calls: how many calls were to be made at once.
        need: what they would have needed, roughly; empty where the bound says it.
    """
    subject = "the next call needs" if calls == 1 else f"the next {calls} calls need"
    more = f"; {subject} about {need}" if need else ""
    return Stop(
        StopReason.BUDGET,
        f"The budget is used up ({spent}{more}). The best text so far is kept; a larger --budget "
        "or Continue goes on.",
    )


def _typical_reply(run: Run) -> int:
    """Estimate the tokens of a reply: the text at hand once more, or a critique."""
    known = run.text or run.setup.draft
    text = estimate_tokens(len(known)) if known else _TYPICAL_TEXT
    return max(text, _TYPICAL_CRITIQUE)


def _dollars(run: Run, prompt_tokens: int, completion_tokens: int) -> float:
    """Return the dollars spent after one more call; its price counts where it is known."""
    price = run.setup.price
    more = price.cost(prompt_tokens, completion_tokens) if price else 0.0
    return (run.usage.cost or 0.0) + more


# The forecast

_ATTEMPTS = 2  # a reply that cannot be read is asked for once more
_INSTRUCTIONS = 700  # tokens of a stage's own instructions and its schema, at most
_TYPICAL_TEXT = 400  # tokens of a text that nobody has written yet
_TYPICAL_CRITIQUE = 300
_LATEST = 8  # revisions that the next one is estimated from


class Forecast(NamedTuple):
    """What a run may cost.

    Attributes:
        calls: model requests, at most.
        tokens: prompt and completion tokens, at most.
        cost: US dollars, at most; None when a price is not known.
        revision: tokens that one more revision takes, roughly.
        revision_cost: the same in US dollars; None when a price is not known.
    """

    calls: int
    tokens: int
    cost: float | None
    revision: int
    revision_cost: float | None


def dearest(first: Price | None, second: Price | None) -> Price | None:
    """Return the price that no call of two models exceeds; None when one is not known."""
    if first is None or second is None:
        return None
    return Price(
        prompt=max(first.prompt, second.prompt),
        completion=max(first.completion, second.completion),
    )


def forecast(run: Run) -> Forecast:
    """Estimate what a run may cost, within its limits and its budget.

    The worst case assumes that every stage runs, that every reply is as long as it may be, and
    that every reply has to be asked for twice, a cut one with a higher limit. The next revision is
    estimated from the latest ones, or from the texts at hand.
    """
    budget, price = run.limits.budget, run.setup.price
    calls = _at_most(_worst_calls(run), budget.calls)
    prompt = _at_most(calls * _longest_prompt(run), budget.prompt_tokens)
    raised = LIMIT_FACTOR if run.limits.max_tokens is None else 1
    written = calls * token_limit(run) * (1 + raised) // _ATTEMPTS
    completion = _at_most(written, budget.completion_tokens)
    cost = price.cost(prompt, completion) if price else None
    tokens = _at_most(prompt + completion, budget.tokens)
    if cost is not None and budget.cost is not None:
        cost = min(cost, budget.cost)
    read, written = _next_revision(run)
    more = price.cost(read, written) if price else None
    return Forecast(calls, tokens, cost, read + written, more)


def _at_most(estimate: int, bound: int | None) -> int:
    return estimate if bound is None else min(estimate, bound)


def _worst_calls(run: Run) -> int:
    """Count each text's writing, and its readings by a critic and by the user's evaluator."""
    drafts = 1 if run.setup.draft is not None else run.limits.candidates
    written = 0 if run.setup.draft is not None else drafts
    read = run.limits.critique != "never" and not run.setup.weak_critic
    readers = read + has_evaluator(run)
    revisions = run.limits.max_revisions
    return _ATTEMPTS * (written + revisions + readers * (drafts + revisions))


def _longest_prompt(run: Run) -> int:
    """Estimate the tokens of the longest prompt: system, text, evidence, findings, repair."""
    text = max(4 * token_limit(run), len(run.setup.draft or ""))
    # Beside the text: two attempts that failed, or all that were written.
    attempts = token_limit(run)
    if run.limits.memory == "all":
        attempts *= max(1, run.limits.max_revisions)
    evidence = EVIDENCE_CHARACTERS * len(run.setup.checks)
    characters = text + evidence + REPAIR_CHARACTERS
    return _system_tokens(run) + _INSTRUCTIONS + estimate_tokens(characters) + 2 * attempts


def _next_revision(run: Run) -> tuple[int, int]:
    """Estimate the tokens read and written for one more revision and its verification."""
    revised = (i.usage for i in reversed(run.iterations) if i.parent is not None and i.usage.calls)
    if latest := [*islice(revised, _LATEST)]:
        count = len(latest)
        read = sum(usage.prompt_tokens for usage in latest)
        return read // count, sum(usage.completion_tokens for usage in latest) // count
    known = run.text or run.setup.draft
    text = estimate_tokens(len(known)) if known else _TYPICAL_TEXT
    evidence = estimate_tokens(EVIDENCE_CHARACTERS) * len(run.setup.checks)
    read = 2 * (_system_tokens(run) + _INSTRUCTIONS // 2 + text) + evidence
    return read, text + text // 4 + _TYPICAL_CRITIQUE


def _system_tokens(run: Run) -> int:
    """Estimate the tokens of the part that every prompt starts with."""
    criteria = sum(len(c.name) + len(c.definition) for c in run.task.criteria)
    checklist = sum(map(len, run.task.checklist))
    materials = sum(len(material.text) for material in run.task.materials)
    return 100 + estimate_tokens(len(run.task.text) + materials + criteria + checklist)
