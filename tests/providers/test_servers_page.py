"""The page on servers: its Python runs, and a model that it shows stands before another."""

import re
from pathlib import Path
from typing import Any

import ipyrefine
from ipyrefine.notebook.options import parse
from ipyrefine.providers.scripted import ScriptedModel

PAGE = (Path(__file__).parents[2] / "docs/servers.md").read_text("utf-8")


async def test_its_python_runs_and_its_model_writes():
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.+?)```", PAGE, re.DOTALL):
        exec(block, space)
    assert "http://localhost:11434/v1" in repr(space["local"])
    assert "key" not in repr(space["azure"])
    loud = space["Loud"](ScriptedModel(["<text>\nCome in. Read.\n</text>"]))
    once = ipyrefine.Limits(max_revisions=0, critique="never")
    run = await ipyrefine.refine("Two sentences.", model=loud, limits=once, journal=False)
    assert run.text == "Come in! Read!"


def test_its_cells_have_options_that_exist():
    [line] = re.findall(r"^%%refine (.+)$", PAGE, re.MULTILINE)
    assert parse(line).judge == "gpt-5"
