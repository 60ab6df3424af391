"""The check ``results``: what a text gives on a few inputs, for the user to confirm."""

import ast
import re

from ipyrefine.checks.evaluation import Evaluation
from ipyrefine.checks.inputs import first_calls, natural_inputs, own_calls
from ipyrefine.checks.undefined import OnCopies
from ipyrefine.core.model import RESULTS, RowSource, Task, bare
from ipyrefine.core.stated import Example, own_examples, read_examples, stated_examples
from ipyrefine.core.syntax import (
    DEFINITION,
    has_steps,
    try_parse,
)
from ipyrefine.core.table import Result
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.variables import Copies

_MOST = 12  # inputs; a run shows fewer, and prefers those on which drafts differ
_LONG = 80  # characters of a call or a result; longer ones are not confirmed at a glance
_LACKS = "FileNotFoundError ModuleNotFoundError"  # what an example needs and is not here
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")


class Results(OnCopies):
    """What the text gives on varied inputs; it passes and fails nothing."""

    def __init__(self, *, seconds: float = 2.5, copies: Copies | None = None) -> None:
        super().__init__(copies)
        self.name, self._seconds = RESULTS, seconds

    async def __call__(self, text: str, task: Task) -> Result:
        """Run the text on every input twice, in one sandbox; without inputs nothing runs.

        Where the task suggests no arguments, the text does, and one that it gives something on.
        """
        code = python_part(text).code
        tree = None if task.is_foreign else try_parse(code)
        inputs = (
            self.inputs(task)
            if tree and any(isinstance(one, DEFINITION | ast.Assign) for one in tree.body)
            else {}
        )
        shown = [one.replace(gives="", kind="equals") for one in own_examples(code)]
        answered = task.clarifications and not read_examples(task.text)
        unknown = tree and not (has_steps(tree) or answered or "input" in inputs.values())
        calls = [*shown, *(own_calls(code, task.text) if unknown else ())]
        if calls and await self._copies.may_run():  # nobody named such a call
            inputs = {**dict.fromkeys(calls, "own"), **inputs}
        if not inputs:
            return Result(name=self.name, counts=False, basis="none")
        evaluation = Evaluation(text, seconds=self._seconds, copies=self._copies)
        first, half = await evaluation.results((*inputs, *inputs)), len(inputs)
        found = [*filter(None, map(_row, inputs.values(), first, first[half:]))]
        odd = (
            _odd(one, f"{task.request} {_LACKS}", named=source != "own" or call in shown)
            for one, (call, source) in zip(first, inputs.items(), strict=False)
        )
        own = [one for one in found if one.source == "own" and not one.raises]
        rows = [one for one in found if one.source != "own"]
        rows += sorted(own, key=lambda one: one.gives == "None")[:1]
        return Result(
            name=self.name,
            counts=False,
            basis="none",
            shows=next(filter(None, odd), ""),
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
        found = dict.fromkeys([*(() if stated else seeds[:1]), *natural_inputs(seeds)])
        short = [one for one in found if len(one.call) <= _LONG][:_MOST]
        inputs: dict[Example, RowSource] = dict.fromkeys(short, "input")
        calls = {one.call for one in found}
        return inputs | dict.fromkeys([one for one in named if one.call not in calls], "example")


def _odd(one: Result, asked: str, *, named: bool) -> str:
    """Return that an input has no end, or raises what the task does not name, in a sentence.

    For a call that nobody `named`, only a missing end is reported. What a call's own line raises
    is never reported.
    """
    kind = one.raises
    if one.not_run or one.conditions or not one.broken:
        return ""
    if not kind or kind == "RecursionError":
        return f"`{one.call}` {'calls itself without end' if kind else one.shows}."
    told = named and one.faults[0].line and kind not in asked
    return f"`{one.call}` raises {kind}, which the task does not name." if told else ""


def _row(source: RowSource, one: Result, again: Result) -> Result | None:
    """Return a row where both times it gives one short value, or one exception."""
    name = bare(one.gives)
    message = one.shows.removeprefix(f"{name}:").strip()[: 2 * _LONG]
    if one.gives != again.gives or not name or len(name) > _LONG or _ADDRESS.search(name + message):
        return None
    steps = tuple(step if len(step) <= _LONG else "" for step in one.steps)
    return one.on_input(source=source, shows=message, steps=steps, conditions=one.conditions)
