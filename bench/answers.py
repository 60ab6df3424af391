"""Let a simulated person confirm or correct results after the loop, and print what that is worth.

``python bench/answers.py humaneval|mbpp [--tasks A-B] [--order shown|random] [--slips N]
[--ask]`` (needs the extras ``local`` and ``bench``). After the loop of ``code_tasks.py`` the person
looks at one result after another, five at most, and says what the reference gives: that confirms
the result, or makes the loop go on until a text gives it. They pass over a result where the
reference gives none. Nothing else is known of the text.

- humaneval: tasks 0 to 81; of its stated examples all but the first are hidden. The reference is
  its solution.
- mbpp: the first 37 of MBPP+; results are those on its hidden cases, as it has no solution.

``--order random`` takes results in a random order in place of ours. With ``--slips N`` the person
is wrong once in N answers: they confirm a wrong result, or call a right one wrong. ``--ask`` and
the kept replies are as for ``code_tasks.py``.
"""

import random
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import arms
import code_tasks
import measure
from measure import Meter

from ipyrefine.checks.rows import Results
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import RowSource, StopReason, Task
from ipyrefine.core.ports import Model
from ipyrefine.core.results import expect, gives_same, rows
from ipyrefine.core.stated import Example, read_examples
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError

_MOST = 5  # answers
_CASES = 12  # hidden cases of MBPP+ whose results are shown
_DOCTEST = re.compile(r"^[ \t]*>>> .*\n(?:[ \t]*(?!>>>|'''|\"\"\")\S.*\n)*", re.MULTILINE)


class OfCases(Results):
    """Results on hidden cases of MBPP+, in place of inputs that are made."""

    def __init__(self, case: code_tasks.Mbpp) -> None:
        super().__init__(seconds=10.0)
        self._case = case

    def inputs(self, task: Task) -> dict[Example, RowSource]:
        stated = {one.call for one in read_examples(task.text)}
        calls = (self._case.call(place) for place in range(len(self._case)))
        fresh = (one for one in calls if one not in stated and len(one) <= 80)
        found = (Example(call=one) for one in islice(fresh, _CASES))
        return dict.fromkeys(found, "input")


class State(NamedTuple):
    """What a task came to after some answers."""

    solved: bool
    accepted: bool
    calls: int
    tokens: int  # completion tokens
    answers: int


async def run_case(case: Any, model: Model, order: str, slips: int, plan: arms.Plan) -> list[State]:
    """Return what a task came to with 0, 1, … answers."""
    meter, chance = Meter(model), random.Random(case.name)
    loop = arms.refinement(case, meter, plan)
    if isinstance(case, code_tasks.Mbpp):
        loop.checks = tuple(OfCases(case) if isinstance(c, Results) else c for c in loop.checks)
    await arms.run_loop(loop)
    states, seen, count = [await _state(case, loop, meter, 0)], set[str](), 0
    while count < _MOST and (row := _next_row(loop, seen, order, chance)):
        seen.add(row.call)
        said = await case.answer(row)
        try:
            decision = expect(row, said) if said is not None else None
        except UsageError:  # what the reference gives can't be written down
            decision = None
        if decision is None:
            continue
        if slips and chance.randrange(slips) == 0:
            right = gives_same(decision.gives, row.gives)
            wrong = row.expected or ("0" if row.gives == "None" else "None")
            decision = expect(row, wrong if right else row.gives)
        loop.decide(decision)
        await arms.run_loop(loop)
        count += 1
        states.append(await _state(case, loop, meter, count))
    return states + [states[-1]] * (_MOST + 1 - len(states))


def _next_row(loop: Refinement, seen: set[str], order: str, chance: random.Random) -> Result | None:
    """Return the next result to look at: ours in its order, or any of those that were found."""
    run = loop.state
    if run.chosen is None:
        return None
    found: Sequence[Result] = rows(run, run.chosen)
    if order == "random":
        found = [row for e in run.chosen.evidence for row in e.rows if row.gives]
        chance.shuffle(found)
    return next((row for row in found if row.call not in seen and row.gives), None)


async def _state(case: arms.Case, loop: Refinement, meter: Meter, count: int) -> State:
    run, usage = loop.state, meter.usage
    solved = bool(run.iterations) and await case.solves(run.text)
    accepted = run.stop_reason is StopReason.PASSED
    return State(solved, accepted, usage.calls, usage.completion_tokens, count)


def hide_examples(case: code_tasks.HumanEval) -> None:
    """Leave only the first example in a task."""
    found = [*_DOCTEST.finditer(case.text)]
    for match in reversed(found[1:]):
        case.text = case.text[: match.start()] + case.text[match.end() :]


def report(found: Sequence[Sequence[State]], what: str) -> str:
    """Return a table of what answers are worth."""
    lines = []
    for count in range(_MOST + 1):
        states = [one[count] for one in found]
        accepted = [one for one in states if one.accepted]
        lines.append(
            (
                count,
                f"{sum(one.answers for one in states) / len(states):.1f}",
                measure.share(states, lambda one: one.solved),
                len(accepted),
                measure.share(accepted, lambda one: not one.solved),
                f"{sum(one.calls for one in states):,}",
                f"{sum(one.tokens for one in states):,}",
            )
        )
    heads = ["answers at most", "given", "solved", "accepted", "wrong among accepted"]
    pairs = [
        f"{count}: "
        + measure.paired(found, lambda one, n=count: one[n].solved, lambda one: one[0].solved)
        for count in (1, 3, 5)
    ]
    return "\n\n".join(
        [
            f"## {what}, {len(found)} tasks, simulated answers",
            measure.table([*heads, "calls", "completion tokens"], lines),
            f"Solved in pairs, against none: {'; '.join(pairs)}. Intervals: 95 %, exact.",
        ]
    )


def main() -> None:
    """Run a set and print its table."""
    parser = measure.parser(__doc__)
    parser.add_argument("set", choices=["humaneval", "mbpp"])
    parser.add_argument("--order", choices=["shown", "random"], default="shown")
    parser.add_argument("--slips", type=int, default=0, help="one answer of so many is wrong")
    arms.add_options(parser)
    options = parser.parse_args()
    default = {"humaneval": "0-81", "mbpp": "0-36"}[options.set]
    cases = code_tasks.load(options.set, options.data, options.tasks or default)
    for case in cases:
        if isinstance(case, code_tasks.HumanEval):
            hide_examples(case)
    replies = measure.kept_replies(options.set, options)
    plan = arms.plan(options)

    async def run_one(case: Any) -> list[State]:
        return await run_case(case, replies, options.order, options.slips, plan)

    found = measure.collect(
        options.set, cases, replies, run_one, lambda f: f"{sum(s[3].solved for s in f)} solved"
    )
    if not found:
        parser.error("no replies are kept for these tasks; --ask asks the model")
    slips = f", one answer of {options.slips} wrong" if options.slips else ""
    print(report(found, f"{code_tasks.SETS[options.set]}, {options.order} order{slips}"))
    measure.stop(replies, len(found), len(cases))


if __name__ == "__main__":
    main()
