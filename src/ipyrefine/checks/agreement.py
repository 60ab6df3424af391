"""The check ``agreement``: whether independent drafts give the same results on the same inputs.

Stated examples are few, and a wrong text often meets them all. Where drafts that were written
independently of each other differ, at least one is wrong, or the task leaves something open
(CodeT, arXiv 2207.10397; MBR-Exec, arXiv 2204.11454): the input on which they differ most is a
question to the user. Drafts of one model share its misreadings (of MBPP+, 10 of 26 that agreed
were wrong: 20 to 59 %), so that agreement finds questions and passes nothing.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from copy import copy
from time import monotonic
from typing import Any, Self

from ipyrefine.checks import Context
from ipyrefine.checks.evaluation import (
    Evaluation,
    Examples,
    Outcome,
    format_result,
    group_outcomes,
    read_choice,
    shorten,
)
from ipyrefine.checks.functions import not_python
from ipyrefine.checks.inputs import first_calls, further_inputs, is_edge_case
from ipyrefine.checks.undefined import NameReader
from ipyrefine.core.model import Evidence, Question, Tally, Task
from ipyrefine.core.stated import Example, read_examples, stated_examples
from ipyrefine.errors import CheckNotRun
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.variables import Copies

_SETTLED_PER_OPEN = 8  # inputs on which most drafts agree, for each on which they do not
_MIN_DRAFTS = 3  # drafts that must give a result where no stated example vouches for any of them
_DETAIL_LINES = 3
_MAX_CHOICES = 4
_MAX_RESULT = 200  # characters of a result that a question shows


class Agreement(NameReader):
    """The task's examples hold, and on further inputs most drafts give what the text gives.

    Only drafts that meet the examples are compared. An input is settled where more than half of
    them give one value, and at least three where no example is stated. Others are doubts, unless
    they are edge cases. With more than one doubt for eight settled inputs the drafts differ:
    neither passed nor failed, with a question about the input that separates them best. Else a
    text that differs from most drafts on a settled input has failed. One that does not has passed
    on its examples; the question is then about an edge case on which the drafts differ.

    Where there is nothing to compare, the stated examples decide; their pass settles the verdict
    where no comparison can follow. The score is the share of drafts that give the text's results.

    Args:
        seconds: processor time for all inputs of one text.
        decisive: whether a pass settles the verdict; None to let the rules above decide.
        copies: copies of the notebook's variables for it.
    """

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        decisive: bool | None = None,
        copies: Copies | None = None,
    ) -> None:
        super().__init__(copies)
        self.name = "agreement"
        self._seconds, self._decisive, self._given = seconds, decisive, None
        self._others, self._left = tuple[str, ...](), 0
        self._cache: dict[Any, Any] = {}

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check ``agreement``, which takes no argument."""
        return cls(copies=context.copies, **settings)

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
        return await self.or_undefined(await self._try(text, task), text, task)

    async def _try(self, text: str, task: Task) -> Evidence:
        if task.is_foreign:
            return not_python(self.name, task)
        start = monotonic()
        in_text, stated = read_examples(task.text), stated_examples(task)
        seeds = in_text or first_calls(task.text)
        # An answer does not say what an edge case is, but its call is not asked about again.
        inputs = further_inputs((*seeds, *stated[len(in_text) :]))
        examples, outcomes = await self._examples(text, task), list[list[Outcome]]()
        inputs = tuple(one for one in inputs if not self._lacks(text, one))
        compares = inputs and examples.passed is not False and not examples.conditions
        for other in self._others if compares else ():
            with suppress(CheckNotRun):
                if (await self._examples(other, task)).passed is not False:
                    outcomes.append(await self._outcomes(other, inputs))
        if outcomes:
            outcomes.insert(0, await self._outcomes(text, inputs))
            votes = [
                _Vote(example, results, is_edge=is_edge_case(example, seeds))
                for example, *results in zip(inputs, *outcomes, strict=True)
            ]
            if any(map(_expects_error, stated)):  # drafts that fail alike may then be right to
                votes = [vote for vote in votes if not vote.is_error]
            evidence = self._count(examples, votes, len(outcomes))
        else:
            decisive = not (self._left and inputs) if self._decisive is None else self._decisive
            final = self._left == 0 or (examples.passed is None and not inputs)
            evidence = examples.replace(
                drafts="agree" if final else "open", decisive=decisive and bool(examples.passed)
            )
        sources = [text, *self._others, *(one.source for one in inputs)]
        return evidence.replace(
            name=self.name,
            seconds=monotonic() - start,
            computed=examples.computed or self._copies.may_compute(*sources),
        )

    def _lacks(self, text: str, example: Example) -> bool:
        """Return whether what any draft gives on an input comes of first rows only."""
        texts = (text, *self._others)
        return any(self._copies.conditions(python_part(t).code, example.source) for t in texts)

    def _count(self, examples: Evidence, votes: Sequence["_Vote"], drafts: int) -> Evidence:
        """Return what the votes say of the text."""
        least = _MIN_DRAFTS if examples.passed is None else 1
        settled = _settled(votes, max(drafts // 2 + 1, least))
        against = [vote for vote in settled if vote.own < vote.most]
        asked = [] if against else [vote for vote in votes if vote not in settled]
        if settled:
            asked = [vote for vote in asked if vote.is_edge and vote.own < drafts]
        question = _question(asked)
        if against:
            lines = [_difference(vote) for vote in against[:_DETAIL_LINES]]
            lines[0] += f" ({len(against)} of {len(settled)} inputs differ)"
        elif settled:
            others = f"most of the {drafts - 1} other drafts give"
            others = "the other draft gives" if drafts == 2 else others
            lines = [f"It gives what {others} on all of {len(settled)} further inputs."]
            lines += [f"Open: {_asked(question)}"] if question else []
        else:
            lines = [_asked(question)] if question else []
            lines.append(f"{drafts} drafts were compared, without a quorum.")
        compared = Tally(held=len(settled) - len(against), of=len(settled), noun="further input")
        shares = [vote.own / drafts for vote in votes if not vote.is_error]
        passed = not against if settled else None
        # Whether the drafts that are left could not undo it (arXiv 2305.11860).
        final = self._left == 0 or bool(_settled(votes, max((drafts + self._left) // 2 + 1, least)))
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
        check = Examples(seconds=self._seconds, copies=self._copies)
        key = text, stated_examples(task)
        found: Evidence = await self._once(key, lambda: check(text, task))
        return found

    async def _outcomes(self, text: str, inputs: tuple[Example, ...]) -> list[Outcome]:
        run = Evaluation(text, seconds=self._seconds, copies=self._copies).outcomes
        found: list[Outcome] = await self._once((text, inputs), lambda: run(inputs))
        return found

    async def _once(self, key: Any, run: Callable[[], Awaitable[Any]]) -> Any:
        """Return what was computed before, or compute it; what could not run is not tried again."""
        if key not in self._cache:
            try:
                self._cache[key] = await run()
            except CheckNotRun as error:
                self._cache[key] = error
        if isinstance(found := self._cache[key], CheckNotRun):
            raise found
        return found


class _Vote:
    """What all texts give on one input, the checked text first."""

    def __init__(self, example: Example, outcomes: Sequence[Outcome], *, is_edge: bool) -> None:
        self.example, self.outcomes, self.is_edge = example, outcomes, is_edge
        self._places = group_outcomes(outcomes)
        sizes = Counter(self._places)
        place, self.most = sizes.most_common(1)[0]
        self.usual = outcomes[place]
        self.own = sizes[0]  # how many give what the checked text gives
        self.is_error = "error" in self.usual

    def question(self) -> Question | None:
        """Return a question where the texts give several results, or all one exception.

        It offers exceptions and literals of at most 200 characters, but no timeouts or objects.
        """
        likes = (self.outcomes[place] for place in self._places)
        results = (
            o if "error" in o else like for o, like in zip(self.outcomes, likes, strict=True)
        )
        counts = Counter(choice for choice in map(read_choice, results) if choice)
        choices = [
            choice.replace(votes=count)
            for choice, count in counts.items()
            if len(choice.result) <= _MAX_RESULT
        ]
        choices.sort(key=lambda c: (-c.votes, c.raises, len(c.result), c.result))
        if not choices or (len(choices) < 2 and not choices[0].raises):
            return None
        own, setup = read_choice(self.outcomes[0]), self.example.setup
        shown = tuple(choices[:_MAX_CHOICES])
        return Question(call=self.example.source, choices=shown, setup=setup, own=own)


def _settled(votes: Sequence[_Vote], majority: int) -> list[_Vote]:
    """Return the inputs that most drafts agree on; none where there are too many doubts."""
    settled = [vote for vote in votes if vote.most >= majority and not vote.is_error]
    doubts = sum(not vote.is_edge for vote in votes if vote not in settled)
    return settled if len(settled) >= _SETTLED_PER_OPEN * doubts else []


def _question(votes: Sequence[_Vote]) -> Question | None:
    """Return the input that separates the drafts most evenly, the shortest of several.

    Edge cases come behind others, as right drafts differ there too, and last an exception that all
    drafts raise.
    """

    def rank(one: tuple[_Vote, Question]) -> Any:
        vote, (call, choices) = one[0], (one[1].call, one[1].choices)
        return len(choices) < 2, vote.is_edge, choices[0].votes, -len(choices), len(call), call

    able = [(vote, question) for vote in votes if (question := vote.question())]
    return min(able, key=rank)[1] if able else None


def _expects_error(example: Example) -> bool:
    return example.kind == "raises" or example.expected.startswith("Traceback")


def _difference(vote: _Vote) -> str:
    own, usual = map(format_result, (vote.outcomes[0], vote.usual))
    agree = f"{vote.most} of {len(vote.outcomes)} drafts agree"
    return f"{shorten(vote.example.source)}: {own}, where {agree}: {usual}"


def _asked(question: Question) -> str:
    results = [
        f"{'raises ' if c.raises else ''}{shorten(c.result)} ({c.votes})" for c in question.choices
    ]
    return f"{shorten(question.call)}: the drafts differ: {', '.join(results)}"
