"""Runs inside Pyodide: the pure parts import, and a recorded run replays into the same text."""

import sys
from pathlib import Path

from greeting import greeting

from ipyrefine.providers.replay import RecordedModel
from ipyrefine.render.html import record_html
from ipyrefine.render.terminal import record_text

loop = greeting(RecordedModel(Path("/tmp/greeting.json")))
run = await loop.run()  # noqa: F704 - Pyodide awaits at the top level
assert loop.error is None, loop.error
assert run.text == "Hello, you."
for render in (record_text, record_html):
    assert "Hello, you." in render(run)
absent = {"openai", "IPython", "ipywidgets", "sqlite3"} & set(sys.modules)
assert not absent, absent
print(f"{sys.platform}: replayed, stopped as {run.stop_reason}")
