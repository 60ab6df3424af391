"""How tests make IPython shells, and the notebook before one."""

import asyncio
import atexit
from collections.abc import Iterable
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from ipyrefine import api
from ipyrefine.notebook import cell_target
from ipyrefine.notebook.cell_target import Placed
from ipyrefine.providers.scripted import ScriptedModel

# The history is a file in a test's home: it would be gone when the shell closes it at exit.
NO_HISTORY = Config({"HistoryManager": {"enabled": False}})


def new_shell() -> Any:
    """Return a shell with the extension loaded, in place of any other."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=NO_HISTORY)
    # At exit each of hundreds would be emptied, which takes a collection of all garbage.
    atexit.unregister(shell.atexit_operations)
    shell.history_manager.outputs.clear()  # all managers have one
    shell.extension_manager.load_extension("ipyrefine")
    return shell


def loaded_shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a shell with the extension loaded, at which nobody types."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    return new_shell()


def scripted_shell(monkeypatch: pytest.MonkeyPatch, replies: Iterable[Any]) -> Any:
    """Return a shell with the extension loaded, whose models give these replies, later ones too."""
    replies = replies if isinstance(replies, list) else list(replies)
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: ScriptedModel(replies))
    return loaded_shell(monkeypatch)


def run_cell(shell: Any, cell: str) -> Any:
    """Run a cell as a kernel does, and return IPython's result."""

    async def go() -> Any:
        return await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))

    return asyncio.run(go())


def error_of(shell: Any, cell: str) -> BaseException | None:
    """Run a cell and return its error."""
    error: BaseException | None = run_cell(shell, cell).error_in_exec
    return error


def change_model(shell: Any, *words: str) -> None:
    """Have another model continue the latest run, as the panel's button does, to its end."""

    async def go() -> None:
        latest = shell.magics_manager.registry["Refine"].latest
        latest.act("model", dict(zip(("model", "words"), words, strict=False)))
        await latest.session.settle()

    asyncio.run(go())


class Front:
    """A shell in a kernel, and the notebook before it, which takes every text that it is sent.

    Args:
        monkeypatch: pytest's.
        replies: what each model that is chosen answers.

    Attributes:
        puts: the texts that it was asked to put, with all that was said of them.
        shown: what the last cell displayed.
        headless: whether nobody sits before it, and it names no cells.
    """

    headless = False

    def __init__(self, monkeypatch: pytest.MonkeyPatch, replies: Iterable[Any] = ()) -> None:
        self.shell = new_shell()
        self.shell.run_line_magic("xmode", "Minimal")  # a coloured traceback takes 0.5 s
        self.puts: list[dict[str, Any]] = []
        self.shown = ""
        monkeypatch.setattr(api, "choose_model", lambda *_, **__: ScriptedModel(replies))
        monkeypatch.setattr(cell_target, "put_text", self._put_text)
        monkeypatch.setattr(cell_target, "hears_comms_while_running", lambda: True)
        monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    async def _put_text(self, text: str, **request: Any) -> Placed:
        self.puts.append({"text": text, **request})
        how = "replaced" if request["op"] == "replace" else "inserted"
        return Placed(how=how, cell_id=request["cell_id"])  # type: ignore[arg-type]

    def enter(self, cell: str, cell_id: str | None, **metadata: Any) -> None:
        """Make the shell that of a kernel which works on a cell."""
        self.shell.kernel = object()
        self.shell.run_line_magic("config", "Refine.ui = 'plain'")
        metadata |= {} if cell_id is None else {"cellId": cell_id}
        content = {"code": cell, "allow_stdin": not self.headless}
        self.shell.get_parent = lambda: {"metadata": metadata, "content": content}

    def attempt(
        self, cell: str, cell_id: str | None = None, **metadata: Any
    ) -> BaseException | None:
        """Run a cell and return what it raised."""
        self.enter(cell, cell_id, **metadata)
        with capture_output() as captured:
            result = self.shell.run_cell(cell, cell_id=cell_id)
        html = [output.data.get("text/html", "") for output in captured.outputs]
        self.shown = "\n".join([captured.stdout, *html])
        error: BaseException | None = result.error_before_exec or result.error_in_exec
        return error

    def run(self, cell: str, cell_id: str | None = None, **metadata: Any) -> str:
        """Run a cell and return what it displayed."""
        if error := self.attempt(cell, cell_id, **metadata):
            raise error
        return self.shown

    @property
    def magics(self) -> Any:
        return self.shell.magics_manager.registry["Refine"]

    @property
    def last(self) -> Any:
        return self.shell.user_ns["refined_run"]
