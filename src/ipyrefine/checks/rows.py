"""The check ``results``: what a text gives on a few inputs, for the user to confirm."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, islice, pairwise
from typing import Any, Self

from ipyrefine.checks import Context
from ipyrefine.checks.evaluation import Evaluation
from ipyrefine.checks.inputs import first_calls, natural_inputs, own_calls
from ipyrefine.core.model import RESULTS, RowSource, Task, bare
from ipyrefine.core.stated import Example, read_examples, stated_examples
from ipyrefine.core.syntax import (
    DEFINITION,
    has_steps,
    names_bound,
    try_parse,
    try_parse_expression,
)
from ipyrefine.core.table import Result
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.variables import Copies

_MOST = 12  # inputs; a run shows fewer, and prefers those on which drafts differ
_SCENARIO = 5  # lines of a scenario before its last call
_LONG = 80  # characters of a call or a result; longer ones are not confirmed at a glance
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")


class Results:
    """What the text gives on varied inputs; it passes and fails nothing."""

    def __init__(self, *, seconds: float = 2.5, copies: Copies | None = None) -> None:
        self.name = RESULTS
        self._seconds, self._copies = seconds, Copies() if copies is None else copies

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check ``results``, which takes no argument."""
        return cls(copies=context.copies, **settings)

    async def __call__(self, text: str, task: Task) -> Result:
        """Run the text on every input twice, in one sandbox; without inputs nothing runs.

        Where the task suggests no arguments, the text does, and one that it gives something on.
        """
        code = python_part(text).code
        tree = None if task.is_foreign else try_parse(code)
        inputs = self.inputs(task) if tree and any(map(_defines, tree.body)) else {}
        unknown = tree and not has_steps(tree) and _suggests_none(task, inputs)
        if unknown and await self._copies.may_run():  # nobody named such a call
            inputs |= dict.fromkeys(own_calls(code, task.text), "own")
        if not inputs:
            return Result(name=self.name, counts=False, basis="none")
        evaluation = Evaluation(text, seconds=self._seconds, copies=self._copies)
        first, half = await evaluation.results((*inputs, *inputs)), len(inputs)
        found = [*filter(None, map(_row, inputs.values(), first, first[half:]))]
        own = [one for one in found if one.source == "own" and not one.raises]
        rows = [one for one in found if one.source != "own"]
        if not stated_examples(task) and all(one.raises for one in rows):
            rows = []  # the text is broken: none says more
        rows = [*_once(rows), *sorted(own, key=lambda one: one.gives == "None")[:1]]
        return Result(
            name=self.name,
            counts=False,
            basis="none",
            rows=tuple(rows),
            computed=evaluation.computed,
            conditions=tuple(dict.fromkeys(c for row in rows for c in row.conditions)),
        )

    def inputs(self, task: Task) -> dict[Example, RowSource]:
        """Return inputs, the same for every text: the task's, then others that the user named."""
        stated = read_examples(task.text)
        seeds = stated or first_calls(task.text)
        named = [one.replace(gives="") for one in stated_examples(task)[len(stated) :]]
        # Calls by annotated types are inputs themselves.
        found = dict.fromkeys([*(() if stated else seeds[:1]), *natural_inputs(seeds, task.text)])
        short = [one for one in found if len(one.call) <= _LONG][:_MOST]
        kinds: tuple[tuple[Sequence[Example], RowSource], ...] = (
            (_steps(stated), "input"),
            (short, "input"),
            ([one for one in named if one.call not in {e.call for e in found}], "example"),
        )
        return {one: source for inputs, source in kinds for one in inputs}


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, DEFINITION | ast.Assign)


def _suggests_none(task: Task, inputs: Mapping[Example, RowSource]) -> bool:
    """Return True if all inputs are steps of a scenario or the user's, or the task states none."""
    if task.clarifications and not read_examples(task.text):
        return False
    return all(source == "example" or _ends_in_method(one) for one, source in inputs.items())


def _once(rows: Iterable[Result]) -> Iterator[Result]:
    """Yield rows without the later steps of a scenario that give the same."""
    seen = set[tuple[str, str]]()
    for one in rows:
        key = (one.call, one.gives)
        if not (one.setup and one.source == "input" and key in seen):
            yield one
        seen.add(key)


def _steps(stated: Sequence[Example]) -> list[Example]:
    """Return the further steps of a scenario that the task states: its calls, made again in turn.

    A scenario makes an object and calls its methods. What it gives after its end is what a stateful
    class gets wrong most easily.
    """
    scenarios: dict[str, list[Example]] = {}
    for one in filter(_ends_in_method, stated):
        scenarios.setdefault(one.setup.partition("\n")[0], []).append(one)
    found = []
    for calls in scenarios.values():
        last, every = calls[-1], [*dict.fromkeys(one.call for one in calls)]
        setup = last.setup.splitlines()
        turns = islice(cycle(every), every.index(last.call), None)
        for done, source in islice(pairwise(turns), max(0, _SCENARIO - len(setup))):
            setup.append(done)
            step = last.replace(call=source, gives="", kind="equals")
            found.append(step.replace(setup="\n".join(setup)))
    return found[:_MOST]


def _ends_in_method(one: Example) -> bool:
    match try_parse_expression(one.call):
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            return name in names_bound(ast.parse(one.setup))
    return False


def _row(source: RowSource, one: Result, again: Result) -> Result | None:
    """Return a row where both times it gives one short value, or one exception."""
    name = bare(one.gives)
    message = one.shows.removeprefix(f"{name}:").strip()[: 2 * _LONG]
    if one.gives != again.gives or not name or len(name) > _LONG or _ADDRESS.search(name + message):
        return None
    steps = tuple(step if len(step) <= _LONG else "" for step in one.steps)
    return one.on_input(source=source, shows=message, steps=steps, conditions=one.conditions)
