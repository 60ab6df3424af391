"""The check ``run``: the text is Python that runs without an exception."""

import re

from ipyrefine.checks.sandbox import Ran, run_python
from ipyrefine.loop.records import Evidence, Task


class RunsCleanly:
    """The code compiles and runs to its end."""

    name = "run"

    def __init__(self, *, seconds: float = 10.0) -> None:
        self._seconds = seconds

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the text in a subprocess."""
        ran = await run_python(wrapped(text), seconds=self._seconds)
        passed = ran.exit_code == 0
        return Evidence(
            name=self.name,
            passed=passed,
            score=float(passed),
            detail="It runs without an error." if passed else failure(ran),
            seconds=ran.seconds,
        )


def wrapped(text: str) -> str:
    """Give a program that runs a text under its own line numbers."""
    return f"exec(compile({text!r}, 'text', 'exec'), {{'__name__': '__main__'}})"


def failure(ran: Ran) -> str:
    """Say in a line or two why a program did not end well."""
    if ran.timed_out:
        return f"It did not end within {ran.seconds:.0f} seconds."
    lines = [line for line in ran.stderr.strip().splitlines() if line.strip()]
    if not lines:
        return f"It ended with exit status {ran.exit_code} and no message."
    places = re.findall(r'File "text", line (\d+)', ran.stderr)
    where = f" (line {places[-1]})" if places else ""
    return f"{lines[-1][:500]}{where}"
