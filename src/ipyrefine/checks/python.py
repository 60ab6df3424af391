"""The check ``run``: the text is Python that runs without an exception."""

import re
from collections.abc import Mapping
from pathlib import Path

from ipyrefine.checks.sandbox import Ran, run_python
from ipyrefine.core.records import Evidence, Task

_PROGRAM = Path(__file__).parent / "programs" / "run.py"
_WIDTH = 500


class RunsCleanly:
    """The text is Python that compiles and runs to its end without an exception.

    Args:
        seconds: wall time it may take.
        files: put beside it; the user's variables (`ipyrefine.checks.variables.furnished`).
    """

    name = "run"

    def __init__(self, *, seconds: float = 10.0, files: Mapping[str, bytes] | None = None) -> None:
        self._seconds, self._files = seconds, dict(files or {})

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the text as a script in a process of its own."""
        files: dict[str, str | bytes] = {**self._files, "candidate.py": text}
        ran = await run_python(_PROGRAM.read_text("utf-8"), seconds=self._seconds, files=files)
        passed = ran.exit_code == 0
        said = "It runs without an error." if passed else failure(ran, self._seconds)
        return Evidence(
            name=self.name,
            passed=passed,
            score=float(passed),
            detail=f"{said}\n{ran.reach}".rstrip(),
            seconds=ran.seconds,
        )


def failure(ran: Ran, seconds: float) -> str:
    """Say in a line why a script did not end well, with the line of the text it was at."""
    if ran.timed_out:
        return f"It did not end within {seconds:.3g} seconds."
    if ran.stopped == "output":
        return "It was stopped, because it printed without end."
    if ran.stopped == "processes":
        return "It was stopped, because it started too many processes."
    if ran.exit_code is not None and ran.exit_code < 0:
        return f"It was killed by signal {-ran.exit_code}."
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    if not lines:
        return f"It ended with exit status {ran.exit_code} and no message."
    places = re.findall(r'candidate\.py", line (\d+)|candidate\.py on line (\d+)', ran.stderr)
    where = f" (line {places[-1][0] or places[-1][1]})" if places else ""
    return lines[-1].strip()[:_WIDTH] + where
