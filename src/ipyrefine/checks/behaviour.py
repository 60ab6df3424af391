"""Group texts by what they do: those that give the same on the same inputs are one group."""

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from ipyrefine.checks.evaluation import (
    Evaluation,
    Example,
    Outcome,
    group_outcomes,
    raised_type,
    shorten,
)
from ipyrefine.checks.examples import stated_examples
from ipyrefine.checks.inputs import constant_inputs, first_calls, further_inputs, is_edge_case
from ipyrefine.core.model import Task
from ipyrefine.errors import CheckNotRun, UsageError

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")

NO_INPUTS = (
    "The task gives nothing to call. State an example such as `f(1) == 2`, or the head of the "
    "function with plain annotated types."
)


class Inputs(NamedTuple):
    """What texts are compared on.

    Attributes:
        examples: the stated calls first; what they should give is left out.
        stated: how many of them the task states.
        edges: for each, whether it is an edge case that the task may leave open.
    """

    examples: tuple[Example, ...]
    stated: int
    edges: tuple[bool, ...]


class Behaviour(NamedTuple):
    """What one text does.

    Attributes:
        outcomes: one for each input; none where it could not be compared.
        failure: why it could not, as a sentence; empty where it was.
        kind: of the failure; texts whose failure has the same kind are one group, and one without
            a kind is alone.
    """

    outcomes: tuple[Outcome, ...] = ()
    failure: str = ""
    kind: str = ""


def comparison_inputs(task: Task, texts: Sequence[str] = ()) -> Inputs:
    """Return the calls that the task states, or else has the types for, and others like them.

    Args:
        task: the task.
        texts: what will be compared; constants of its code are put into calls, too.

    Raises:
        UsageError: it gives nothing to call, or asks for code in another language than Python.
    """
    if not task.is_python:
        raise UsageError("Only Python code can be compared by what it does. Name a task for code.")
    stated = stated_examples(task)
    calls = stated or first_calls(task.text)
    if not calls:
        raise UsageError(NO_INPUTS)
    bare = [Example(source=e.source, expected="", kind="equals", setup=e.setup) for e in calls]
    further = [*further_inputs(calls), *constant_inputs(calls, texts)]
    examples = tuple(dict.fromkeys([*bare, *further]))
    edges = tuple(is_edge_case(example, calls) for example in examples)
    return Inputs(examples, len(set(bare)) if stated else 0, edges)


async def observe(
    text: str,
    inputs: Inputs,
    *,
    seconds: float = 10.0,
    files: Mapping[str, bytes] | None = None,
) -> Behaviour:
    """Run a text on the inputs in the sandbox and return what it does.

    Args:
        text: the code.
        inputs: what to call.
        seconds: processor time for all inputs; one may take a quarter of it.
        files: files to put beside it, such as `checks.variables.Variables.files`.
    """
    evaluation = Evaluation(text, seconds=seconds, files=files or {})
    try:
        outcomes = await evaluation.outcomes(inputs.examples)
    except CheckNotRun as error:
        return Behaviour(failure=str(error))
    if evaluation.load_error:
        kind = str(outcomes[0]["error"]).partition(":")[0]
        return Behaviour(failure=evaluation.load_error, kind=kind)
    if not any(map(_is_comparable, outcomes)):
        return Behaviour(failure="It gives objects that can't be compared with others.")
    return Behaviour(tuple(outcomes))


def group_behaviours(behaviours: Sequence[Behaviour], inputs: Inputs) -> list[tuple[Hashable, ...]]:
    """Return for each behaviour a key that those of one group share.

    A result is a value, the type of an exception, or what was printed where the value is None. On
    an edge case all exceptions are alike. An object without a `repr` of its own counts by its type.
    Texts that gave no answer on an input are alike there.

    Args:
        behaviours: what texts did on the inputs.
        inputs: the inputs.

    Returns:
        For a text that was run, one entry for each input, so that keys differ where results do.
    """
    ran = [place for place, one in enumerate(behaviours) if not one.failure]
    columns = zip(*(map(_without_address, behaviours[n].outcomes) for n in ran), strict=True)
    signatures = [
        [
            _signature(one, place, edge)
            for one, place in zip(column, group_outcomes(column), strict=True)
        ]
        for column, edge in zip(columns, inputs.edges, strict=bool(ran))
    ]
    keys = dict(zip(ran, zip(*signatures, strict=True), strict=True))
    return [
        keys.get(place) or ("failed", one.kind or place) for place, one in enumerate(behaviours)
    ]


def describe(outcome: Outcome) -> str:
    """Return what an outcome is, in one line: ``gives 2``, ``raises ValueError``."""
    if raised := raised_type(outcome):
        return f"raises {shorten(raised)}"
    if "error" in outcome:
        return f"gives no result (it {shorten(str(outcome['error']))})"
    if outcome.get("none") and outcome.get("stdout"):
        return f"prints {shorten(repr(outcome['stdout']))}"
    return f"gives {shorten(str(outcome.get('repr', '')))}"


def _is_comparable(outcome: Outcome) -> bool:
    return "error" in outcome or "data" in outcome or not _ADDRESS.search(str(outcome.get("repr")))


def _without_address(outcome: Outcome) -> Outcome:
    return {**outcome, "repr": _ADDRESS.sub("", str(outcome.get("repr", "")))}


def _signature(outcome: Outcome, place: int, is_edge: bool) -> tuple[Hashable, ...]:
    """Return what tells an outcome from others of its input: its value's place among them."""
    printed = outcome.get("stdout", "") if outcome.get("none") else ""
    return place, "" if is_edge else raised_type(outcome), printed
