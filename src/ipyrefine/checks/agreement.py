"""The check ``agreement``: several drafts of one task give the same results on the same inputs.

Stated examples are few, and a wrong text often meets them all. Texts that were written from the
task on their own rarely make the same mistake: where most of them give one result, that result is
probably right (CodeT, arXiv 2207.10397; MBR-Exec, arXiv 2204.11454). A text that misses a stated
example is known to be wrong, so that what it gives on others counts for nothing.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from time import monotonic
from typing import NamedTuple, TypeVar

from ipyrefine.checks import comparing
from ipyrefine.checks.evaluating import Evaluation, Outcome, failed, short
from ipyrefine.checks.examples import Examples
from ipyrefine.checks.inputs import at_the_edge, further
from ipyrefine.checks.signatures import first_calls
from ipyrefine.checks.stated import Example, extract
from ipyrefine.core.records import Evidence, Task

_LEAST = 5  # inputs that have to tell something before agreement settles a verdict
_SURE = 8  # and so many for each that leaves it open what is right
_ALIKE = 3  # drafts that have to give a result where no stated example vouches for any of them
_SHOWN = 3
_KEPT = 64  # texts whose results are remembered

K = TypeVar("K")
V = TypeVar("V")


class Agreement:
    """The task's examples hold, and on further inputs most drafts give what the text gives.

    The inputs are the examples' own with their arguments changed, and the drafts those that meet
    the examples. Where none is stated, the inputs are made for the annotated types of the function
    that the task gives the head of, and three drafts at least have to give one result.

    An input on which no result has more than half of the texts behind it, or most of them fail,
    tells nothing of a text. It says that something is wrong, unless it is at the edge of what the
    task states (`ipyrefine.checks.inputs.at_the_edge`): where more than one such comes on eight
    inputs that tell something, no verdict is settled.

    The score is the share of the inputs that tell something on which the text agrees; where they
    are too few, the share of the drafts that give its results.

    Args:
        seconds: wall time for all inputs of one text.
        files: put beside it; the user's variables (`ipyrefine.checks.variables.furnished`).
        others: the other drafts.
    """

    name = "agreement"

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        files: Mapping[str, bytes] | None = None,
        others: Sequence[str] = (),
    ) -> None:
        self._seconds, self._files, self._others = seconds, dict(files or {}), tuple(others)
        self._known: dict[tuple[str, tuple[Example, ...]], list[Outcome]] = {}
        self._held: dict[tuple[str, str], Evidence] = {}

    def beside(self, others: Sequence[str]) -> "Agreement":
        """The same check, with the drafts that a text is compared with."""
        check = copy(self)  # with what is known of all drafts so far
        check._others = tuple(others)
        return check

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the stated examples, then the further inputs with every draft."""
        began = monotonic()
        stated = extract(task.text) or first_calls(task.text)
        inputs = further(stated)
        held = await self._examples(text, task)
        others = await self._met(task) if inputs and held.passed is not False else []
        if not others:
            update = {"name": self.name, "seconds": monotonic() - began}
            return held.model_copy(update=update)
        mine = await self._outcomes(text, inputs)
        theirs = [await self._outcomes(other, inputs) for other in others]
        every = [[outcomes[n] for outcomes in (mine, *theirs)] for n in range(len(inputs))]
        compared = [_point(e, o) for e, o in zip(inputs, every, strict=True)]
        drafts = len(theirs) + 1
        most = drafts // 2 + 1
        least = max(most, _ALIKE) if held.passed is None else most
        points = [p for p in compared if p.behind >= least and not p.fails]
        against = [point for point in points if not point.agrees]
        unclear = [i for i, p in zip(inputs, compared, strict=True) if p.fails or p.behind < most]
        unsure = len([i for i in unclear if not at_the_edge(i, stated)])
        telling = len(points) >= max(_LEAST, _SURE * unsure)
        return Evidence(
            name=self.name,
            passed=None if held.passed is None and not points else not against,
            score=1 - len(against) / len(points) if telling else _support(compared, drafts),
            detail=f"{_told(points, against, len(others))}\n{held.detail}",
            seconds=monotonic() - began,
            decisive=telling,
        )

    async def _met(self, task: Task) -> list[str]:
        """The other drafts, but for those that are known to be wrong."""
        held = [await self._examples(other, task) for other in self._others]
        return [o for o, h in zip(self._others, held, strict=True) if h.passed is not False]

    async def _examples(self, text: str, task: Task) -> Evidence:
        """What the stated examples say of a text."""
        check = Examples(seconds=self._seconds, files=self._files)
        return await _recall(self._held, (text, task.text), lambda: check(text, task))

    async def _outcomes(self, text: str, inputs: tuple[Example, ...]) -> list[Outcome]:
        run = Evaluation(text, seconds=self._seconds, files=self._files)
        return await _recall(self._known, (text, inputs), lambda: run.outcomes(inputs))


async def _recall(known: dict[K, V], key: K, learn: Callable[[], Awaitable[V]]) -> V:
    """What is known of a text, or is learned now; what was learned first is forgotten."""
    if key not in known:
        while len(known) >= _KEPT:
            del known[next(iter(known))]
        known[key] = await learn()
    return known[key]


class _Point(NamedTuple):
    """What the texts give for one input."""

    source: str
    agrees: bool
    mine: int  # texts that give what the first one gives
    got: str
    usual: str
    behind: int  # texts that give the usual result
    fails: bool  # whether that is an error


def _point(example: Example, outcomes: Sequence[Outcome]) -> _Point:
    """Compare the first text's result on one input with the result that most texts give."""
    behind = [sum(_alike(one, other) for other in outcomes) for one in outcomes]
    mine, usual = outcomes[0], outcomes[behind.index(max(behind))]
    return _Point(
        source=example.source,
        agrees=_alike(mine, usual),
        mine=behind[0],
        got=_shown(mine),
        usual=_shown(usual),
        behind=max(behind),
        fails="error" in usual,
    )


def _support(points: Sequence[_Point], drafts: int) -> float:
    """The share of the drafts, 0..1, that give what a text gives, where not most of them fail.

    Where agreement settles nothing, the text with the most support is the likeliest to be right.
    """
    shares = [point.mine / drafts for point in points if not point.fails]
    return sum(shares) / len(shares) if shares else 1.0


def _alike(one: Outcome, other: Outcome) -> bool:
    if "error" in one or "error" in other:
        return "error" in one and "error" in other
    if "data" in one and "data" in other:
        # Only the loops' own programs make these, so that both are plain data.
        return comparing.same(comparing.data(one), comparing.data(other))
    return (one.get("shown"), one.get("type")) == (other.get("shown"), other.get("type"))


def _shown(outcome: Outcome) -> str:
    if "error" in outcome:
        return f"raised {short(failed(outcome))}"
    return f"gives {short(str(outcome.get('shown', '')))}"


def _told(points: Sequence[_Point], against: Sequence[_Point], others: int) -> str:
    if not points:
        return "On no further input do most of the drafts give one result."
    if not against:
        drafts = (
            "the other draft gives" if others == 1 else f"most of the {others} other drafts give"
        )
        return f"It gives what {drafts} on all of {len(points)} further inputs."
    lines = [
        f"{short(p.source)}: {p.got}, where {p.behind} of {others + 1} drafts agree: {p.usual}"
        for p in against[:_SHOWN]
    ]
    lines[0] = f"{lines[0]} ({len(against)} of {len(points)} inputs differ)"
    return "\n".join(lines)
