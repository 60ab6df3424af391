"""The check ``agreement``: independent drafts give the same results on the same inputs.

Stated examples are few, and a wrong text often meets them all. Texts written independently from the
task rarely make the same mistake: where most of them give one result, that result is probably right
(CodeT, arXiv 2207.10397; MBR-Exec, arXiv 2204.11454). A text that misses a stated example is known
to be wrong, so its results on other inputs do not count. Where the drafts disagree, the input on
which they differ most is a question to the user.
"""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from copy import copy
from time import monotonic
from typing import Any, NamedTuple, Self, TypeVar

from ipyrefine.checks.context import Context
from ipyrefine.checks.evaluation import (
    Evaluation,
    Outcome,
    format_error,
    group_outcomes,
    raised_type,
    result_source,
    shorten,
)
from ipyrefine.checks.examples import Examples
from ipyrefine.checks.functions import not_python
from ipyrefine.checks.inputs import first_calls, further_inputs, is_edge_case
from ipyrefine.core.model import Choice, Evidence, Question, Tally, Task
from ipyrefine.core.stated import Example, read_examples, stated_examples
from ipyrefine.errors import CheckNotRun
from ipyrefine.kernel.variables import may_compute

# Stated examples that vouch for a draft without a second one. Drafts of a 1.5B model for HumanEval
# 0 to 81, two a task, were wrong although the first k examples hold (the others hidden): 12 of 125
# for k = 1, 9 of 97 for 2, 5 of 47 for 3, 3 of 30 for 4, 1 of 21 for 5. Of the greedy ones alone it
# were 5 of 63, 3 of 49, 2 of 25, 1 of 15 and none of 10; of those that agreement passes, 0 of 50.
ENOUGH_EXAMPLES = 5

_MIN_CONCLUSIVE = 5  # inputs with a clear majority before agreement settles a verdict
_CONCLUSIVE_PER_OPEN = 8  # and so many for each input that leaves open what is right
_MIN_DRAFTS = 3  # drafts that must give a result where no stated example vouches for any of them
_DETAIL_LINES = 3
_MAX_CHOICES = 4
_MAX_RESULT = 200  # characters of a result that a question shows
_CACHE_SIZE = 64  # texts whose results are remembered

K = TypeVar("K")
V = TypeVar("V")


class Agreement:
    """The task's examples hold, and on further inputs most drafts give what the text gives.

    The inputs are the calls of the examples with other arguments, and only drafts that meet the
    examples are compared. Where no example is stated, the inputs are made from the annotated types
    of the function whose head the task gives, and at least three drafts must give one result.

    An input is conclusive where one result has more than half of the texts behind it and is no
    error. Other inputs tell nothing of a text; they show that something is wrong, unless they are
    edge cases (`is_edge_case`). The drafts have a quorum with at least five conclusive inputs and
    eight for each of the others that is not an edge case; where they never differ, fewer inputs do.
    Then an edge case on which the drafts differ is its question, which the user may answer. Drafts
    of one model share its misreadings (10 of 26 such passes were wrong on MBPP+), so agreement
    passes nothing. Stated examples that hold can; where none is stated, the user is asked whether
    a result that most drafts give is right. Without a quorum it is contested:
    neither passed nor failed, with a question about the input that separates the drafts best.

    Where no draft can be compared (none is there yet, none meets the examples, or no further input
    can be made), the stated examples decide, and the evidence has their basis. A pass settles the
    verdict where no comparison can follow, or where five hold for the first draft
    (`ENOUGH_EXAMPLES`).

    The score is the share of the conclusive inputs on which the text agrees; where these are too
    few, the share of the drafts that give the text's results.

    Args:
        seconds: processor time for all inputs of one text.
        decisive: whether a pass settles the verdict; None to let the rules above
            decide.
        files: files to put next to the text, such as `kernel.variables.Variables.files`.
        others: the other drafts.
        left: how many more drafts may still be written.
    """

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        decisive: bool | None = None,
        files: Mapping[str, bytes] | None = None,
        others: Sequence[str] = (),
        left: int = 0,
    ) -> None:
        self.name = "agreement"
        self._seconds, self._decisive = seconds, decisive
        self._files, self._others, self._left = dict(files or {}), tuple(others), left
        self._outcome_cache: dict[tuple[str, tuple[Example, ...]], list[Outcome] | CheckNotRun] = {}
        self._example_cache: dict[tuple[str, tuple[Example, ...]], Evidence | CheckNotRun] = {}

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check ``agreement``, which takes no argument."""
        return cls(files=context.files, **settings)

    def beside(self, others: Sequence[str], left: int = 0) -> "Agreement":
        """Return the same check, with the drafts to compare a text with.

        Args:
            others: the other drafts.
            left: how many more may still be written.
        """
        check = copy(self)  # it shares the caches
        check._others, check._left = tuple(others), left
        return check

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the stated examples, then the further inputs with every draft."""
        if task.is_foreign:
            return not_python(self.name, task)
        start = monotonic()
        in_text, stated = read_examples(task.text), stated_examples(task)
        seeds = in_text or first_calls(task.text)
        # An answer does not tell what an edge case is, but its call is not asked about again.
        inputs = further_inputs((*seeds, *stated[len(in_text) :]))
        examples = _require(await self._check_examples(text, task))
        others = await self._valid_drafts(task) if inputs and examples.passed is not False else []
        results = [await self._outcomes(draft, inputs) for draft in others]
        outcomes = [result for result in results if not isinstance(result, CheckNotRun)]
        if not outcomes:
            evidence = self._by_examples(examples, len(stated), can_compare=bool(inputs))
        else:
            outcomes.insert(0, _require(await self._outcomes(text, inputs)))
            comparisons = [
                _compare(example, results, is_edge=is_edge_case(example, seeds))
                for example, *results in zip(inputs, *outcomes, strict=True)
            ]
            if any(map(_expects_error, stated)):  # drafts that fail alike may then be right to
                comparisons = [c for c in comparisons if not c.is_usual_error]
            evidence = self._by_comparison(examples, comparisons, len(outcomes))
        sources = [one.source for one in inputs]
        update: dict[str, Any] = {"name": self.name, "seconds": monotonic() - start}
        update["computed"] = examples.computed or may_compute(self._files, text, *others, *sources)
        return evidence.model_copy(update=update)

    def _by_examples(self, examples: Evidence, count: int, *, can_compare: bool) -> Evidence:
        """Return the evidence of a text that no draft can be compared with."""
        # Among many tries one may meet many examples by chance, so they vouch for the first alone.
        vouched = count >= ENOUGH_EXAMPLES and not self._others
        decisive = not can_compare or self._left == 0 or vouched
        if self._decisive is not None:
            decisive = self._decisive
        final = self._left == 0 or (examples.passed is None and not can_compare)
        drafts = "agree" if final else "open"
        update = {"decisive": decisive and bool(examples.passed), "drafts": drafts}
        return examples.model_copy(update=update)

    def _by_comparison(
        self, examples: Evidence, comparisons: Sequence["_Comparison"], drafts: int
    ) -> Evidence:
        """Return the evidence of a text whose results were compared with those of other drafts."""
        least = _MIN_DRAFTS if examples.passed is None else 1
        majority = max(drafts // 2 + 1, least)
        conclusive = [c for c in comparisons if c.value_votes >= majority]
        doubts = _doubts(comparisons, conclusive)
        enough = _has_quorum(len(conclusive), comparisons, doubts, least)
        against = [c for c in conclusive if not c.agrees]
        if enough:
            open_edges = [c for c in comparisons if c.is_edge and c not in conclusive]
            question = None if against else _question(open_edges, alike=False)
            if not against and examples.passed is None:
                question = _question([c for c in conclusive if not c.is_edge], alone=True)
            detail = _format(conclusive, against, drafts - 1, question)
        else:
            question = _question(comparisons)
            detail = _format_contested(question, drafts)
        final = _is_final(comparisons, drafts, self._left, least, enough=enough)
        held = len(conclusive) - len(against)
        compared = [Tally(held=held, of=len(conclusive), noun="further input")] if enough else []
        return Evidence(
            name=self.name,
            passed=not against if enough else None,
            score=1 - len(against) / len(conclusive) if enough else _support(comparisons),
            detail=f"{detail}\n{examples.detail}",
            tallies=(*examples.tallies, *compared),
            decisive=enough and self._decisive is not False,
            basis="examples" if enough and not against and examples.passed else "agreement",
            drafts=("agree" if enough else "differ") if final else "open",
            question=question,
        )

    async def _valid_drafts(self, task: Task) -> list[str]:
        """Return the other drafts, except those that miss a stated example or did not run."""
        results = [await self._check_examples(other, task) for other in self._others]
        return [
            other
            for other, result in zip(self._others, results, strict=True)
            if isinstance(result, Evidence) and result.passed is not False
        ]

    async def _check_examples(self, text: str, task: Task) -> Evidence | CheckNotRun:
        check = Examples(seconds=self._seconds, files=self._files)
        key = (text, stated_examples(task))
        return await _cached(self._example_cache, key, lambda: check(text, task))

    async def _outcomes(
        self, text: str, inputs: tuple[Example, ...]
    ) -> list[Outcome] | CheckNotRun:
        evaluation = Evaluation(text, seconds=self._seconds, files=self._files)
        return await _cached(
            self._outcome_cache, (text, inputs), lambda: evaluation.outcomes(inputs)
        )


async def _cached(
    cache: dict[K, V | CheckNotRun], key: K, compute: Callable[[], Awaitable[V]]
) -> V | CheckNotRun:
    """Return a cached value, or compute it and drop the oldest ones.

    What could not be run is not tried again, as it would take as long.
    """
    if key not in cache:
        while len(cache) >= _CACHE_SIZE:
            del cache[next(iter(cache))]
        try:
            cache[key] = await compute()
        except CheckNotRun as error:
            cache[key] = error
    return cache[key]


def _require(value: V | CheckNotRun) -> V:
    if isinstance(value, CheckNotRun):
        raise value
    return value


class _Comparison(NamedTuple):
    """The results of all texts for one input, the checked text's first."""

    example: Example
    outcomes: tuple[Outcome, ...]
    groups: tuple[int, ...]  # for each text, the place of the first that gives the same
    is_edge: bool

    @property
    def votes(self) -> tuple[int, ...]:
        """For each text, how many give what it gives."""
        sizes = Counter(self.groups)
        return tuple(sizes[group] for group in self.groups)

    @property
    def usual(self) -> int:
        """The place of the first text that gives the most frequent result."""
        return self.votes.index(max(self.votes))

    @property
    def agrees(self) -> bool:
        """Whether the checked text gives the most frequent result."""
        return self.groups[0] == self.groups[self.usual]

    @property
    def is_error(self) -> bool:
        """Whether the most frequent result is an error."""
        return "error" in self.outcomes[self.usual]

    @property
    def is_usual_error(self) -> bool:
        """Whether more than half of the texts fail."""
        return self.is_error and 2 * max(self.votes) > len(self.votes)

    @property
    def value_votes(self) -> int:
        """How many texts give the most frequent result that is not an error."""
        return max((n for n, _ in self._values()), default=0)

    @property
    def other_votes(self) -> int:
        """How many texts give the most frequent of the values that the checked text does not."""
        return max((n for n, group in self._values() if group != self.groups[0]), default=0)

    def _values(self) -> Iterator[tuple[int, int]]:
        """Yield the votes and the group of each text that gives a value."""
        for votes, group, outcome in zip(self.votes, self.groups, self.outcomes, strict=True):
            if "error" not in outcome:
                yield votes, group


def _expects_error(example: Example) -> bool:
    """Return whether an example says that a call raises."""
    return example.kind == "raises" or example.expected.startswith("Traceback")


def _compare(example: Example, outcomes: Sequence[Outcome], *, is_edge: bool) -> _Comparison:
    return _Comparison(example, tuple(outcomes), group_outcomes(outcomes), is_edge)


def _has_quorum(settled: int, comparisons: Sequence[_Comparison], doubts: int, least: int) -> bool:
    """Return whether so many conclusive inputs outweigh those that leave open what is right.

    A function of few values has few inputs, which count where an example vouches for the text.
    """
    few = len(comparisons) < _MIN_CONCLUSIVE and least < _MIN_DRAFTS
    return settled >= max(1 if few else _MIN_CONCLUSIVE, _CONCLUSIVE_PER_OPEN * doubts)


def _doubts(comparisons: Sequence[_Comparison], conclusive: Sequence[_Comparison]) -> int:
    """Count the inputs that leave open what is right, except edge cases."""
    return sum(not c.is_edge for c in comparisons) - sum(not c.is_edge for c in conclusive)


def _is_final(
    comparisons: Sequence[_Comparison], drafts: int, left: int, least: int, *, enough: bool
) -> bool:
    """Return whether no further draft could change the outcome (arXiv 2305.11860).

    Without a quorum: no group of drafts can reach one any more, even if all that are left join the
    largest. With one: the drafts that are left can neither undo it nor change what it says of the
    text, even if all of them are against it.
    """
    quorum = max((drafts + left) // 2 + 1, least)

    def has_quorum(votes: int) -> bool:
        sure = [c for c in comparisons if c.value_votes + votes >= quorum]
        return _has_quorum(len(sure), comparisons, _doubts(comparisons, sure), least)

    if not enough:
        return not has_quorum(left)
    fails = any(c.value_votes >= quorum and not c.agrees for c in comparisons)
    safe = all(c.other_votes + left < quorum for c in comparisons)
    return has_quorum(0) and (fails or safe)


def _support(comparisons: Sequence[_Comparison]) -> float:
    """Return the share of the drafts, 0..1, that give a text's results, where most do not fail.

    Where agreement settles nothing, the text with the most support is the likeliest to be right.
    """
    shares = [c.votes[0] / len(c.votes) for c in comparisons if not c.is_error]
    return sum(shares) / len(shares) if shares else 1.0


def _format_result(outcome: Outcome) -> str:
    if "error" in outcome:
        return f"raised {shorten(format_error(outcome))}"
    return f"gives {shorten(str(outcome.get('repr', '')))}"


def _format(
    conclusive: Sequence[_Comparison],
    against: Sequence[_Comparison],
    others: int,
    question: Question | None,
) -> str:
    if not against:
        drafts = (
            "the other draft gives" if others == 1 else f"most of the {others} other drafts give"
        )
        agreed = f"It gives what {drafts} on all of {len(conclusive)} further inputs."
        return f"{agreed}\nOpen: {_format_question(question)}" if question else agreed
    lines = [
        f"{shorten(c.example.source)}: {_format_result(c.outcomes[0])}, where {max(c.votes)} of "
        f"{others + 1} drafts agree: {_format_result(c.outcomes[c.usual])}"
        for c in against[:_DETAIL_LINES]
    ]
    lines[0] = f"{lines[0]} ({len(against)} of {len(conclusive)} inputs differ)"
    return "\n".join(lines)


def _format_contested(question: Question | None, drafts: int) -> str:
    summary = f"{drafts} drafts were compared, without a quorum."
    if question is None:
        return summary
    return f"{_format_question(question)}\n{summary}"


def _format_question(question: Question) -> str:
    results = [
        f"{'raises ' if c.raises else ''}{shorten(c.result)} ({c.votes})" for c in question.choices
    ]
    return f"{shorten(question.call)}: the drafts differ: {', '.join(results)}"


# The question.


def _question(
    comparisons: Sequence[_Comparison], *, alike: bool = True, alone: bool = False
) -> Question | None:
    """Return the input that separates the drafts best, the shortest of several; None without one.

    That is the most even split into results that can be written down. Edge cases come last, as
    right drafts differ there too.

    Args:
        comparisons: the inputs to choose from.
        alike: whether to ask about an exception that all drafts raise.
        alone: whether to ask about a result that all drafts give.
    """
    asked = [(c, choices) for c in comparisons if (choices := _choices(c))]
    able = [
        (c, found) for c, found in asked if len(found) > 1 or alone or (alike and found[0].raises)
    ]

    def order(pair: tuple[_Comparison, list[Choice]]) -> tuple[bool, bool, float, int, str]:
        comparison, choices = pair
        source, is_edge = comparison.example.source, comparison.is_edge
        return (len(choices) < 2, is_edge, -round(_entropy(choices), 9), len(source), source)

    if not able:
        return None
    comparison, choices = min(able, key=order)
    example = comparison.example
    return Question(call=example.source, choices=tuple(choices[:_MAX_CHOICES]), setup=example.setup)


def _choices(comparison: _Comparison) -> list[Choice]:
    """Return the results that a user can be asked about, the most frequent first.

    These are exceptions and literals of at most 200 characters, but no timeouts or objects.
    """
    votes = Counter[tuple[int, str]]()
    for group, outcome in zip(comparison.groups, comparison.outcomes, strict=True):
        votes[group, raised_type(outcome)] += 1
    choices = []
    for (group, raised), count in votes.items():
        result = raised or result_source(comparison.outcomes[group])
        if result and len(result) <= _MAX_RESULT and (not raised or raised.isidentifier()):
            choices.append(Choice(result=result, raises=bool(raised), votes=count))
    return sorted(choices, key=lambda c: (-c.votes, c.raises, len(c.result), c.result))


def _entropy(choices: Sequence[Choice]) -> float:
    """Return how much an answer tells of the drafts, in bits."""
    total = sum(choice.votes for choice in choices)
    shares = [choice.votes / total for choice in choices]
    return -sum(share * math.log2(share) for share in shares)
