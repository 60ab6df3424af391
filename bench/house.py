"""Count what a cell's way through the house touches, and in how many files each mode stands.

``python bench/house.py`` runs the shortest cell (a task, one draft with nothing to check, and a
critic that finds nothing) in an IPython shell with a scripted model, then accepts it. It prints the
files and functions of this package that each part enters, until the verdict and from it on, and for
each mode the files whose code (names, attributes, arguments, no text) speaks of it.
"""

import ast
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import ipyrefine
from ipyrefine import api
from ipyrefine.providers.scripted import ScriptedModel

HOUSE = Path(ipyrefine.__file__).parent
MODES = {
    "background": "background",
    "replay": "replay|recording",
    "coach": "coach",
    "share": "sharing|consent|withhold|withheld",
    "step": "steps?|stepwise",
}
READY = '```json\n{"findings": [], "ready": true}\n```'


def entered(act: Callable[[], object]) -> tuple[int, int, int]:
    """Do that, and return how many files and functions of the house it entered, and calls."""
    functions = set[tuple[str, int]]()
    calls = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(HOUSE)) and code.co_name[0] != "<":
            functions.add((code.co_filename, code.co_firstlineno))
            calls += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len({file for file, _ in functions}), len(functions), calls


def names(path: Path) -> set[str]:
    """Return the names in a file's code, split into their words."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        for field in ("id", "attr", "arg", "name", "module"):
            if isinstance(word := getattr(node, field, None), str):
                found |= {*re.split(r"[._]", word.lower())}
    return found


def modes() -> dict[str, list[str]]:
    """Return the files whose code speaks of each mode."""
    words = {path.relative_to(HOUSE).as_posix(): names(path) for path in HOUSE.rglob("*.py")}
    return {
        mode: sorted(
            file for file, all_ in words.items() if any(map(re.compile(like).fullmatch, all_))
        )
        for mode, like in MODES.items()
    }


def main() -> None:
    """Print both tables."""
    config = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=config)
    shell.extension_manager.load_extension("ipyrefine")
    draft = "```python\ndef add(a, b):\n    return a + b\n```"
    api.choose_model = lambda *_, **__: ScriptedModel([draft, READY])  # type: ignore[assignment]
    print("| the shortest cell | files | functions | calls |\n|---|---|---|---|")
    for part, cell in {
        "until its verdict": "%%refine\nWrite add(a, b).",
        "Accept": "%refine accept",
    }.items():
        with capture_output():
            counts = entered(lambda cell=cell: shell.run_cell(cell))  # type: ignore[misc]
        print(f"| {part} | {' | '.join(f'{one:,}' for one in counts)} |")
    print("\n| mode | files |\n|---|---|")
    for mode, files in modes().items():
        print(f"| {mode} | {len(files)}: {', '.join(files)} |")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        import os

        os.environ["IPYREFINE_HOME"] = home
        main()
