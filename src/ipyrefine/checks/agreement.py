"""The check ``agreement``: whether independent drafts give the same results on the same inputs.

Stated examples are few, and a wrong text often meets them all. Where drafts that were written
independently of each other differ, at least one is wrong, or the task leaves something open
(CodeT, arXiv 2207.10397; MBR-Exec, arXiv 2204.11454): the input on which they differ most is a
question to the user. Drafts of one model share its misreadings (10 of 26 that agreed were wrong on
MBPP+), so that agreement finds questions and passes nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from time import monotonic
from typing import Any, Self

from ipyrefine.checks import Context
from ipyrefine.checks.evaluation import (
    Evaluation,
    Examples,
    Outcome,
    format_error,
    group_outcomes,
    raised_type,
    read_choice,
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

    Only drafts that meet the examples are compared. An input is settled where more than half of
    them give one value, and at least three where no example is stated. Others are doubts, unless
    they are edge cases. With more than one doubt for eight settled inputs the drafts differ:
    neither passed nor failed, with a question about the input that separates them best. Else a
    text that differs from most drafts on a settled input has failed. One that does not has passed
    on its examples; the question is then about an edge case on which the drafts differ, or, where
    no example is stated, whether a result of theirs is right.

    Where there is nothing to compare, the stated examples decide; their pass settles the verdict
    where no comparison can follow. The score is the share of drafts that give the text's results.

    Args:
        seconds: processor time for all inputs of one text.
        decisive: whether a pass settles the verdict; None to let the rules above decide.
        files: files to put next to the text, such as `kernel.variables.Variables.files`.
    """

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        decisive: bool | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.name = "agreement"
        self._seconds, self._decisive, self._files = seconds, decisive, dict(files or {})
        self._others, self._left = tuple[str, ...](), 0
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
        examples, outcomes = await self._examples(text, task), list[list[Outcome]]()
        for other in self._others if inputs and examples.passed is not False else ():
            with suppress(CheckNotRun):
                if (await self._examples(other, task)).passed is not False:
                    outcomes.append(await self._outcomes(other, inputs))
        if outcomes:
            outcomes.insert(0, await self._outcomes(text, inputs))
            comparisons = [
                _Comparison(example, results, is_edge_case(example, seeds))
                for example, *results in zip(inputs, *outcomes, strict=True)
            ]
            if any(map(_expects_error, stated)):  # drafts that fail alike may then be right to
                comparisons = [c for c in comparisons if not c.is_error]
            evidence = self._compare(examples, comparisons, len(outcomes))
        else:
            decisive = not (self._left and inputs) if self._decisive is None else self._decisive
            final = self._left == 0 or (examples.passed is None and not inputs)
            update: dict[str, Any] = {"drafts": "agree" if final else "open"}
            update["decisive"] = decisive and bool(examples.passed)
            evidence = examples.model_copy(update=update)
        sources = [text, *self._others, *(one.source for one in inputs)]
        update = {"name": self.name, "seconds": monotonic() - start}
        update["computed"] = examples.computed or may_compute(self._files, *sources)
        return evidence.model_copy(update=update)

    def _compare(
        self, examples: Evidence, comparisons: Sequence["_Comparison"], drafts: int
    ) -> Evidence:
        least = _MIN_DRAFTS if examples.passed is None else 1
        settled = _settled(comparisons, max(drafts // 2 + 1, least))
        against = [c for c in settled if c.own < c.most]
        question = None
        if not settled:
            question = _question(comparisons)
            lines = [_asked(question), f"{drafts} drafts were compared, without a quorum."]
        elif against:
            lines = _differences(against, len(settled))
        else:
            if examples.passed is None:
                question = _question([c for c in settled if not c.is_edge], alone=True)
            else:
                edges = [c for c in comparisons if c.is_edge and c not in settled]
                question = _question([c for c in edges if c.own < drafts])
            others = f"most of the {drafts - 1} other drafts give"
            others = "the other draft gives" if drafts == 2 else others
            lines = [f"It gives what {others} on all of {len(settled)} further inputs."]
            lines.append(_asked(question, "Open: "))
        compared = Tally(held=len(settled) - len(against), of=len(settled), noun="further input")
        shares = [c.own / drafts for c in comparisons if not c.is_error]
        passed = not against if settled else None
        # Whether the drafts that are left could not undo it (arXiv 2305.11860).
        most = max((drafts + self._left) // 2 + 1, least)
        final = self._left == 0 or bool(_settled(comparisons, most))
        return Evidence(
            name=self.name,
            passed=passed,
            score=1.0 if passed or not shares else sum(shares) / len(shares),
            detail="\n".join(filter(None, [*lines, examples.detail])),
            tallies=(*examples.tallies, compared) if settled else examples.tallies,
            decisive=bool(settled) and self._decisive is not False,
            basis=examples.basis if passed and examples.passed else "agreement",
            drafts=("agree" if settled else "differ") if final else "open",
            question=question,
        )

    async def _examples(self, text: str, task: Task) -> Evidence:
        check = Examples(seconds=self._seconds, files=self._files)
        found: Evidence = await self._once(text, stated_examples(task), lambda: check(text, task))
        return found

    async def _outcomes(self, text: str, inputs: tuple[Example, ...]) -> list[Outcome]:
        run = Evaluation(text, seconds=self._seconds, files=self._files).outcomes
        found: list[Outcome] = await self._once(text, inputs, lambda: run(inputs))
        return found

    async def _once(self, text: str, examples: tuple[Example, ...], run: Any) -> Any:
        """Return what was computed before, or compute it; what could not run is not tried again."""
        if (key := (text, examples)) not in self._cache:
            while len(self._cache) >= _CACHE_SIZE:
                del self._cache[next(iter(self._cache))]
            try:
                self._cache[key] = await run()
            except CheckNotRun as error:
                self._cache[key] = error
        found = self._cache[key]
        if isinstance(found, CheckNotRun):
            raise found
        return found


class _Comparison:
    """The results of all texts for one input, the checked text's first."""

    def __init__(self, example: Example, outcomes: Sequence[Outcome], is_edge: bool) -> None:
        self.example, self.outcomes, self.is_edge = example, outcomes, is_edge
        self.groups = group_outcomes(outcomes)
        sizes = Counter(self.groups)
        place, self.most = sizes.most_common(1)[0]
        self.usual = outcomes[place]
        self.own = sizes[0]  # how many give what the checked text gives
        self.is_error = "error" in self.usual


def _settled(comparisons: Sequence[_Comparison], majority: int) -> list[_Comparison]:
    """Return the inputs that most drafts agree on; none where there are too many doubts."""
    settled = [c for c in comparisons if c.most >= majority and not c.is_error]
    doubts = sum(not c.is_edge for c in comparisons if c not in settled)
    return settled if len(settled) >= _SETTLED_PER_OPEN * doubts else []


def _expects_error(example: Example) -> bool:
    return example.kind == "raises" or example.expected.startswith("Traceback")


def _differences(against: Sequence[_Comparison], settled: int) -> list[str]:
    lines = [
        f"{shorten(c.example.source)}: {_format_result(c.outcomes[0])}, where {c.most} of "
        f"{len(c.groups)} drafts agree: {_format_result(c.usual)}"
        for c in against[:_DETAIL_LINES]
    ]
    lines[0] += f" ({len(against)} of {settled} inputs differ)"
    return lines


def _format_result(outcome: Outcome) -> str:
    if "error" in outcome:
        return f"raised {shorten(format_error(outcome))}"
    return f"gives {shorten(str(outcome.get('repr', '')))}"


def _asked(question: Question | None, prefix: str = "") -> str:
    if question is None:
        return ""
    results = [
        f"{'raises ' if c.raises else ''}{shorten(c.result)} ({c.votes})" for c in question.choices
    ]
    return f"{prefix}{shorten(question.call)}: the drafts differ: {', '.join(results)}"


def _question(comparisons: Sequence[_Comparison], *, alone: bool = False) -> Question | None:
    """Return the input that separates the drafts best, the shortest of several; None without one.

    That is the most even split into results that can be written down. Edge cases come last, as
    right drafts differ there too. An exception that all drafts raise is asked about too.

    Args:
        comparisons: the inputs to choose from.
        alone: whether to ask about a result that all drafts give.
    """
    able = list[tuple[Any, Question]]()
    for c in comparisons:
        call, choices = c.example.source, _choices(c)
        if len(choices) > 1 or (choices and (alone or choices[0].raises)):
            split = (len(choices) < 2, c.is_edge, choices[0].votes, -len(choices))
            kept = tuple(choices[:_MAX_CHOICES])
            own = read_choice(c.outcomes[0])
            question = Question(call=call, choices=kept, setup=c.example.setup, own=own)
            able.append(((*split, len(call), call), question))
    return min(able, key=lambda one: one[0])[1] if able else None


def _choices(comparison: _Comparison) -> list[Choice]:
    """Return the results that a user can be asked about, the most frequent first.

    These are exceptions and literals of at most 200 characters, but no timeouts or objects.
    """
    votes = Counter[tuple[int, str]]()
    for group, outcome in zip(comparison.groups, comparison.outcomes, strict=True):
        votes[group, raised_type(outcome)] += 1
    choices = []
    for (group, _), count in votes.items():
        choice = read_choice(comparison.outcomes[group])
        if choice and len(choice.result) <= _MAX_RESULT:
            choices.append(choice.replace(votes=count))
    return sorted(choices, key=lambda c: (-c.votes, c.raises, len(c.result), c.result))
