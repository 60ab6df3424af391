"""The check ``examples``: the examples that the task states hold for the text.

`core.stated` reads them from the task, `checks.evaluation` runs and compares them.
"""

from collections.abc import Mapping
from time import monotonic
from typing import Any, Self

from ipyrefine.checks import Context
from ipyrefine.checks.evaluation import (
    Evaluation,
    Outcome,
    format_error,
    holds,
    prompt_output,
    shorten,
)
from ipyrefine.checks.functions import not_python
from ipyrefine.core.model import Evidence, Tally, Task
from ipyrefine.core.stated import Example, stated_examples

_MAX_LISTED = 20  # examples in a detail


class Examples:
    """The examples that the task states hold.

    Args:
        seconds: processor time for all examples together; one may take a quarter of it.
        decisive: whether a pass settles the verdict.
        files: files to put next to the text, such as `kernel.variables.Variables.files`.
    """

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        decisive: bool = True,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.name = "examples"
        self._seconds, self._decisive, self._files = seconds, decisive, dict(files or {})

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check ``examples``, which takes no argument."""
        return cls(files=context.files, **settings)

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the text and every example in the sandbox."""
        if task.is_foreign:
            return not_python(self.name, task)
        examples = stated_examples(task)
        if not examples:
            detail = "The task states no examples."
            return Evidence(name=self.name, passed=None, detail=detail, basis="examples")
        start = monotonic()
        evaluation = Evaluation(text, seconds=self._seconds, files=self._files)
        outcomes = await evaluation.outcomes(examples, required=True)
        results = [(holds(e, o), _format(e, o)) for e, o in zip(examples, outcomes, strict=True)]
        missed = [o for (good, _), o in zip(results, outcomes, strict=True) if not good]
        failing = [line for good, line in results if not good]
        passing = [line for good, line in results if good]
        lines = [*failing, *passing]
        if len(lines) > _MAX_LISTED:
            lines[_MAX_LISTED:] = [f"… and {len(lines) - _MAX_LISTED} more."]
        lines = [evaluation.load_error] if evaluation.load_error else lines
        if evaluation.absence and all(o.get("absence", evaluation.load_error) for o in missed):
            return Evidence(
                name=self.name,
                passed=None,
                not_run=True,
                detail=evaluation.absence,
                seconds=monotonic() - start,
                basis="examples",
                computed=evaluation.computed,
            )
        summary = f"{len(passing)} of {len(examples)} stated examples hold."
        return Evidence(
            name=self.name,
            passed=not failing,
            score=len(passing) / len(examples),
            detail="\n".join([*lines, summary, evaluation.protection_note]).rstrip(),
            tallies=(Tally(held=len(passing), of=len(examples), noun="example"),),
            seconds=monotonic() - start,
            decisive=self._decisive,
            basis="examples",
            computed=evaluation.computed,
        )


def _format(example: Example, outcome: Outcome) -> str:
    source = shorten(example.source)
    claim = f"{source}: expected {shorten(example.expected)}"
    if example.kind == "raises" and holds(example, outcome):
        return f"{source}: raised {shorten(format_error(outcome))}, as expected"
    if "error" in outcome:
        # The program reports an exception; the other errors already are the end of a sentence.
        raised = "raised " if "event" in outcome else ""
        return f"{claim}, {raised}{shorten(format_error(outcome))}"
    result = prompt_output(outcome) if example.kind == "doctest" else outcome.get("repr", "")
    text = shorten(str(result).strip()) or "nothing"
    if holds(example, outcome):
        return f"{source}: {text}, as expected"
    if text == shorten(example.expected):
        # Its repr claims to be what it is not.
        text += f" as the repr of another value, of type {shorten(str(outcome.get('type')))}"
    return f"{claim}, got {text}"
