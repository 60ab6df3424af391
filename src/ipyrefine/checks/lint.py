"""The check ``lint``: ruff finds no fault in the text."""

import json
import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ipyrefine.checks.faults import MOST, fault
from ipyrefine.checks.python import failure
from ipyrefine.checks.sandbox import run_python
from ipyrefine.core.records import Evidence, Finding, Task

_SECONDS = 10.0
_MISSING = "ruff is not installed, so the text was not linted: `pip install ruff`."
_RUN = "import subprocess, sys\nsys.exit(subprocess.run({command!r}).returncode)\n"
_REPORT = "report.json"


class Lint:
    """Ruff, with its default rules and no configuration, finds no fault in the text.

    Args:
        builtins: names that exist beside Python's own.
    """

    name = "lint"

    def __init__(self, *, builtins: Iterable[str] = ()) -> None:
        self._builtins = list(builtins)

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Lint it in a process of its own; nothing of it is run."""
        ruff = _ruff()
        if ruff is None:
            return Evidence(name=self.name, passed=None, detail=_MISSING)
        names = f"builtins = {json.dumps(self._builtins)}"
        command = [ruff, "check", "--isolated", "--no-cache", "--config", names]
        command += ["--output-format", "json", "--output-file", _REPORT, "candidate.py"]
        ran = await run_python(
            _RUN.format(command=command),
            seconds=_SECONDS,
            files={"candidate.py": text},
            collect=_REPORT,
        )
        if ran.exit_code not in (0, 1):
            detail = f"ruff could not be run: {failure(ran, _SECONDS)}"
            return Evidence(name=self.name, passed=None, detail=detail, seconds=ran.seconds)
        faults = json.loads(ran.collected or "[]")
        return Evidence(
            name=self.name,
            passed=not faults,
            score=1 / (1 + len(faults)),
            detail="\n".join(map(_told, faults[:MOST])) or "ruff finds no fault.",
            seconds=ran.seconds,
            findings=tuple(_finding(one, text.splitlines()) for one in faults[:MOST]),
        )


def _ruff() -> str | None:
    """The path of ruff: this Python's own, else the one on PATH."""
    name = "ruff.exe" if sys.platform == "win32" else "ruff"
    beside = Path(sys.executable).with_name(name)
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("ruff")


def _told(fault: dict[str, Any]) -> str:
    line = (fault.get("location") or {}).get("row")
    return f"{fault.get('code') or 'syntax'}: {fault['message']}" + (
        f" (line {line})" if line else ""
    )


def _finding(told: dict[str, Any], lines: list[str]) -> Finding:
    row = (told.get("location") or {}).get("row") or 0
    quote = lines[row - 1].strip() if 0 < row <= len(lines) else ""
    return fault(told.get("code") or "syntax", told["message"], quote)
