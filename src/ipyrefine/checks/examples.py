"""The check ``examples``: what the task states as examples holds for the text."""

from collections.abc import Mapping
from time import monotonic

from ipyrefine.checks import comparing
from ipyrefine.checks.evaluating import Evaluation, Outcome, failed, short
from ipyrefine.checks.stated import Example, extract
from ipyrefine.core.records import Evidence, Task

__all__ = ["Example", "Examples", "extract"]


class Examples:
    """The examples that the task states hold.

    Args:
        seconds: wall time for all examples together; one may take a quarter of it.
        files: put beside it; the user's variables (`ipyrefine.checks.variables.furnished`).
    """

    name = "examples"

    def __init__(self, *, seconds: float = 10.0, files: Mapping[str, bytes] | None = None) -> None:
        self._seconds, self._files = seconds, dict(files or {})

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the text, and every example with it, in a process of its own."""
        examples = extract(task.text)
        if not examples:
            return Evidence(name=self.name, passed=None, detail="The task states no examples.")
        began = monotonic()
        run = Evaluation(text, seconds=self._seconds, files=self._files)
        outcomes = await run.outcomes(examples)
        held = [comparing.meets(e, o) for e, o in zip(examples, outcomes, strict=True)]
        told = [_told(e, o) for e, o in zip(examples, outcomes, strict=True)]
        failing = [line for line, good in zip(told, held, strict=True) if not good]
        passing = [line for line, good in zip(told, held, strict=True) if good]
        summary = f"{len(passing)} of {len(examples)} stated examples hold."
        lines = [run.fault] if run.fault else [*failing, *passing]
        return Evidence(
            name=self.name,
            passed=not failing,
            score=len(passing) / len(examples),
            detail="\n".join([*lines, summary, run.reach]).rstrip(),
            seconds=monotonic() - began,
        )


def _told(example: Example, outcome: Outcome) -> str:
    source = short(example.source)
    asked = f"{source}: expected {short(example.expected)}"
    if "error" in outcome:
        # An outcome of the program is an exception; the others already are a sentence's end.
        raised = "raised " if "event" in outcome else ""
        return f"{asked}, {raised}{short(failed(outcome))}"
    got = comparing.shown(outcome) if example.kind == "doctest" else outcome.get("shown", "")
    text = short(str(got).strip()) or "nothing"
    if comparing.meets(example, outcome):
        return f"{source}: {text}, as expected"
    if text == short(example.expected):
        # Its repr claims to be what it is not.
        text += f" as the repr of another value, of type {short(str(outcome.get('type')))}"
    return f"{asked}, got {text}"
