"""What a run may come to, known before its first call: pure functions of the run.

The worst case assumes that every stage runs, that every reply is as long as it may be, and that
every reply has to be asked for twice. The next revision is estimated from the latest ones before
it, or from the texts at hand.
"""

from itertools import islice
from typing import NamedTuple

from ipyrefine.core.prompts import CUT_DETAIL, CUT_REPLY
from ipyrefine.core.runs import Run
from ipyrefine.core.stopping import estimate_tokens
from ipyrefine.core.usage import Price

_ASKS = 2  # a reply that cannot be read is asked for once more
_RULES = 700  # tokens of a stage's own instructions and its schema, at most
_TYPICAL_TEXT = 400  # tokens of a text nobody has written yet
_TYPICAL_JUDGEMENT = 300
_LATEST = 8  # revisions that the next one is estimated from


class Forecast(NamedTuple):
    """What a run may come to.

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
    """The price that no call of two models exceeds; None when one of them is not known."""
    if first is None or second is None:
        return None
    return Price(
        prompt=max(first.prompt, second.prompt),
        completion=max(first.completion, second.completion),
    )


def forecast(run: Run) -> Forecast:
    """Foresee what a run may come to, within its limits and its budget."""
    budget = run.limits.budget
    calls = _least(_worst_calls(run), budget.calls)
    prompt = _least(calls * _longest_prompt(run), budget.prompt_tokens)
    completion = _least(calls * run.limits.max_tokens, budget.completion_tokens)
    cost = run.price.cost(prompt, completion) if run.price else None
    tokens = _least(prompt + completion, budget.tokens)
    if cost is not None and budget.cost is not None:
        cost = min(cost, budget.cost)
    read, written = _revision(run)
    more = run.price.cost(read, written) if run.price else None
    return Forecast(calls, tokens, cost, read + written, more)


def _least(foreseen: int, bound: int | None) -> int:
    return foreseen if bound is None else min(foreseen, bound)


def _worst_calls(run: Run) -> int:
    """Drafts with a judge each, critique of the best, then critique, revise and judge per revision.

    A critique is a call for each critic. With the gate, two comparisons more for each revision.
    """
    revisions = run.limits.max_iterations
    drafts = 1 if run.draft is not None else run.limits.candidates
    first = 0 if run.draft is not None else drafts
    critiques = run.limits.critics * max(revisions, 1 if run.limits.min_findings else 0)
    compared = 2 * revisions if run.limits.gate else 0
    return _ASKS * (first + critiques + revisions + (revisions + drafts) + compared)


def _longest_prompt(run: Run) -> int:
    """Tokens of the longest prompt: system, text, evidence, findings, and the reply to repair."""
    text = max(4 * run.limits.max_tokens, len(run.draft or ""))
    shown = min(text, run.limits.max_eval_chars)
    # Beside the text: two that failed, or all that were written.
    rejected = run.limits.max_tokens
    if run.limits.memory == "all":
        rejected *= max(1, run.limits.max_iterations)
    evidence = CUT_DETAIL * len(run.checks)
    characters = shown + evidence + CUT_REPLY
    more = (run.limits.critics - 1) * run.limits.max_tokens  # what the other critics name
    return _system(run) + _RULES + estimate_tokens(characters) + 2 * rejected + more


def _revision(run: Run) -> tuple[int, int]:
    """Tokens read and written for one more revision and its verification."""
    revised = (i.usage for i in reversed(run.iterations) if i.parent is not None and i.usage.calls)
    if written := [*islice(revised, _LATEST)]:
        count = len(written)
        read = sum(usage.prompt_tokens for usage in written)
        return read // count, sum(usage.completion_tokens for usage in written) // count
    known = run.text or run.draft
    text = estimate_tokens(len(known)) if known else _TYPICAL_TEXT
    read = 2 * (_system(run) + _RULES // 2 + text) + estimate_tokens(CUT_DETAIL) * len(run.checks)
    return read, text + text // 4 + _TYPICAL_JUDGEMENT


def _system(run: Run) -> int:
    """Tokens of the part that every prompt starts with."""
    if run.task is None:
        return 0
    named = sum(len(c.name) + len(c.definition) for c in run.task.criteria)
    return 100 + estimate_tokens(len(run.task.text) + named + sum(map(len, run.task.checklist)))
