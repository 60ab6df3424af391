"""The check ``agreement``: whether independent drafts give the same results on the same inputs.

Stated examples are few, and a wrong text often meets them all. Where drafts that were written
independently of each other differ, at least one is wrong, or the task leaves something open
(CodeT, arXiv 2207.10397; MBR-Exec, arXiv 2204.11454): the input on which they differ most is a
question to the user. Drafts of one model share its misreadings (10 of 26 that agreed were wrong on
MBPP+), so that agreement finds questions and passes nothing.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from time import monotonic
from typing import Any, NamedTuple, Self

from ipyrefine.checks import Context
from ipyrefine.checks.evaluation import (
    Evaluation,
    Examples,
    Outcome,
    format_error,
    group_outcomes,
    raised_type,
    result_source,
    shorten,
)
from ipyrefine.checks.functions import not_python
from ipyrefine.checks.inputs import first_calls, further_inputs, is_edge_case
from ipyrefine.core.model import Choice, Evidence, Question, Tally, Task
from ipyrefine.core.stated import Example, read_examples, stated_examples
from ipyrefine.errors import CheckNotRun
from ipyrefine.kernel.variables import may_compute

_SETTLED_PER_OPEN = 8  # inputs on which most drafts agree, for each on which they do not
_MIN_DRAFTS = 3  # drafts that must give a result where no stated example vouches for any of them
_DETAIL_LINES = 3
_MAX_CHOICES = 4
_MAX_RESULT = 200  # characters of a result that a question shows
_CACHE_SIZE = 128  # results of texts that are remembered


class Agreement:
    """The task's examples hold, and on further inputs most drafts give what the text gives.

    The inputs are the calls of the examples with other arguments, and only drafts that meet the
    examples are compared. Where no example is stated, the inputs are made from the annotated types
    of the function whose head the task gives, and at least three drafts must give one result.

    An input is settled where more than half of the drafts give one value. Inputs that are not are
    doubts, unless they are edge cases (`is_edge_case`). With more than one doubt for eight settled
    inputs the drafts differ: neither passed nor failed, with a question about the input that
    separates them best. Else a text that differs from most drafts on a settled input has
    failed. One that does not passes on its examples; the question is then about an edge case on
    which the drafts differ, or, where no example is stated, whether a result of theirs is right.

    Where no draft can be compared (none is there yet, none meets the examples, or no further input
    can be made), the stated examples decide; their pass settles the verdict where no comparison can
    follow.

    The score is the share of the drafts that give the text's results.

    Args:
        seconds: processor time for all inputs of one text.
        decisive: whether a pass settles the verdict; None to let the rules above decide.
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
        self._cache: dict[Any, Any] = {}

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check ``agreement``, which takes no argument."""
        return cls(files=context.files, **settings)

    def among(self, others: Sequence[str], left: int = 0) -> "Agreement":
        """Return the same check, with the drafts to compare a text with.

        Args:
            others: the other drafts.
            left: how many more may still be written.
        """
        check = copy(self)  # it shares the cache
        check._others, check._left = tuple(others), left
        return check

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the stated examples, then the further inputs with every draft."""
        if task.is_foreign:
            return not_python(self.name, task)
        start = monotonic()
        in_text, stated = read_examples(task.text), stated_examples(task)
        seeds = in_text or first_calls(task.text)
        # An answer does not say what an edge case is, but its call is not asked about again.
        inputs = further_inputs((*seeds, *stated[len(in_text) :]))
        examples = await self._check_examples(text, task)
        others, outcomes = list[str](), list[list[Outcome]]()
        for other in self._others if inputs and examples.passed is not False else ():
            try:
                if (await self._check_examples(other, task)).passed is not False:
                    outcomes.append(await self._outcomes(other, inputs))
                    others.append(other)
            except CheckNotRun:
                continue
        if outcomes:
            outcomes.insert(0, await self._outcomes(text, inputs))
            comparisons = [
                _Comparison(example, results, group_outcomes(results), is_edge_case(example, seeds))
                for example, *results in zip(inputs, *outcomes, strict=True)
            ]
            if any(map(_expects_error, stated)):  # drafts that fail alike may then be right to
                comparisons = [c for c in comparisons if not c.is_error]
            evidence = self._by_comparison(examples, comparisons, len(outcomes))
        else:
            decisive = self._left == 0 or not inputs
            decisive = decisive if self._decisive is None else self._decisive
            final = self._left == 0 or (examples.passed is None and not inputs)
            update: dict[str, Any] = {"decisive": decisive and bool(examples.passed)}
            update["drafts"] = "agree" if final else "open"
            evidence = examples.model_copy(update=update)
        sources = [one.source for one in inputs]
        update = {"name": self.name, "seconds": monotonic() - start}
        update["computed"] = examples.computed or may_compute(self._files, text, *others, *sources)
        return evidence.model_copy(update=update)

    def _by_comparison(
        self, examples: Evidence, comparisons: Sequence["_Comparison"], drafts: int
    ) -> Evidence:
        """Return the evidence of a text whose results were compared with those of other drafts."""
        least = _MIN_DRAFTS if examples.passed is None else 1
        settled = _settled(comparisons, max(drafts // 2 + 1, least))
        against = [c for c in settled if not c.agrees]
        if not settled:
            question = _question(comparisons)
            summary = f"{drafts} drafts were compared, without a quorum."
            detail = f"{_format_question(question)}\n{summary}" if question else summary
        elif against:
            question, detail = None, _format_against(against, len(settled))
        else:
            if examples.passed is None:
                question = _question([c for c in settled if not c.is_edge], alone=True)
            else:
                edges = [c for c in comparisons if c.is_edge and c not in settled]
                question = _question([c for c in edges if len(set(c.groups)) > 1])
            others = f"most of the {drafts - 1} other drafts give"
            others = "the other draft gives" if drafts == 2 else others
            detail = f"It gives what {others} on all of {len(settled)} further inputs."
            detail += f"\nOpen: {_format_question(question)}" if question else ""
        held, noun = len(settled) - len(against), "further input"
        compared = [Tally(held=held, of=len(settled), noun=noun)] if settled else []
        shares = [c.votes[0] / drafts for c in comparisons if not c.is_error]
        passed = not against if settled else None
        # Whether the drafts that are left could not undo it (arXiv 2305.11860).
        most = max((drafts + self._left) // 2 + 1, least)
        final = self._left == 0 or bool(_settled(comparisons, most))
        return Evidence(
            name=self.name,
            passed=passed,
            score=1.0 if passed or not shares else sum(shares) / len(shares),
            detail=f"{detail}\n{examples.detail}",
            tallies=(*examples.tallies, *compared),
            decisive=bool(settled) and self._decisive is not False,
            basis="examples" if passed and examples.passed else "agreement",
            drafts=("agree" if settled else "differ") if final else "open",
            question=question,
        )

    async def _check_examples(self, text: str, task: Task) -> Evidence:
        check = Examples(seconds=self._seconds, files=self._files)
        evidence: Evidence = await self._cached(
            (text, stated_examples(task)), lambda: check(text, task)
        )
        return evidence

    async def _outcomes(self, text: str, inputs: tuple[Example, ...]) -> list[Outcome]:
        evaluation = Evaluation(text, seconds=self._seconds, files=self._files)
        found: list[Outcome] = await self._cached(
            (text, inputs), lambda: evaluation.outcomes(inputs)
        )
        return found

    async def _cached(self, key: Any, compute: Callable[[], Awaitable[Any]]) -> Any:
        """Return what was computed before, or compute it; what could not run is not tried again."""
        if key not in self._cache:
            while len(self._cache) >= _CACHE_SIZE:
                del self._cache[next(iter(self._cache))]
            try:
                self._cache[key] = await compute()
            except CheckNotRun as error:
                self._cache[key] = error
        found = self._cache[key]
        if isinstance(found, CheckNotRun):
            raise found
        return found


class _Comparison(NamedTuple):
    """The results of all texts for one input, the checked text's first."""

    example: Example
    outcomes: Sequence[Outcome]
    groups: tuple[int, ...]  # for each text, the place of the first that gives the same
    is_edge: bool

    @property
    def votes(self) -> list[int]:
        """For each text, how many give what it gives."""
        sizes = Counter(self.groups)
        return [sizes[group] for group in self.groups]

    @property
    def usual(self) -> Outcome:
        """The most frequent result."""
        return self.outcomes[self.votes.index(max(self.votes))]

    @property
    def agrees(self) -> bool:
        """Whether the checked text gives a most frequent result."""
        return self.votes[0] == max(self.votes)

    @property
    def is_error(self) -> bool:
        """Whether the most frequent result is an error."""
        return "error" in self.usual

    @property
    def value_votes(self) -> int:
        """How many texts give the most frequent result that is not an error."""
        votes = zip(self.votes, self.outcomes, strict=True)
        return max((n for n, outcome in votes if "error" not in outcome), default=0)


def _settled(comparisons: Sequence[_Comparison], majority: int) -> list[_Comparison]:
    """Return the inputs that most drafts agree on; none where there are too many doubts."""
    settled = [c for c in comparisons if c.value_votes >= majority]
    doubts = sum(not c.is_edge for c in comparisons if c not in settled)
    return settled if len(settled) >= _SETTLED_PER_OPEN * doubts else []


def _expects_error(example: Example) -> bool:
    return example.kind == "raises" or example.expected.startswith("Traceback")


def _format_against(against: Sequence[_Comparison], settled: int) -> str:
    lines = [
        f"{shorten(c.example.source)}: {_format_result(c.outcomes[0])}, where {max(c.votes)} of "
        f"{len(c.groups)} drafts agree: {_format_result(c.usual)}"
        for c in against[:_DETAIL_LINES]
    ]
    lines[0] += f" ({len(against)} of {settled} inputs differ)"
    return "\n".join(lines)


def _format_result(outcome: Outcome) -> str:
    if "error" in outcome:
        return f"raised {shorten(format_error(outcome))}"
    return f"gives {shorten(str(outcome.get('repr', '')))}"


def _format_question(question: Question) -> str:
    results = [
        f"{'raises ' if c.raises else ''}{shorten(c.result)} ({c.votes})" for c in question.choices
    ]
    return f"{shorten(question.call)}: the drafts differ: {', '.join(results)}"


def _question(comparisons: Sequence[_Comparison], *, alone: bool = False) -> Question | None:
    """Return the input that separates the drafts best, the shortest of several; None without one.

    That is the most even split into results that can be written down. Edge cases come last, as
    right drafts differ there too. An exception that all drafts raise is asked about too.

    Args:
        comparisons: the inputs to choose from.
        alone: whether to ask about a result that all drafts give.
    """
    able = [
        (len(choices) < 2, c.is_edge, choices[0].votes, -len(choices), len(source), source, choices)
        for c in comparisons
        for source, choices in [(c.example.source, _choices(c))]
        if len(choices) > 1 or (choices and (alone or choices[0].raises))
    ]
    if not able:
        return None
    *_, source, choices = min(able, key=lambda one: one[:-1])
    setup = next(c.example.setup for c in comparisons if c.example.source == source)
    return Question(call=source, choices=tuple(choices[:_MAX_CHOICES]), setup=setup)


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
