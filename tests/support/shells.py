"""How tests make IPython shells."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from ipyrefine import api
from ipyrefine.providers.scripted import ScriptedModel

# The history is a file in a test's home: it would be gone when the shell closes it at exit.
NO_HISTORY = Config({"HistoryManager": {"enabled": False}})


@contextmanager
def scripted_shell(monkeypatch: pytest.MonkeyPatch, replies: Iterable[str]) -> Iterator[Any]:
    """A shell with the extension loaded, whose every model gives these replies."""
    given = list(replies)
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=NO_HISTORY)
    shell.extension_manager.load_extension("ipyrefine")
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: ScriptedModel(given))
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    yield shell
    InteractiveShell.clear_instance()
