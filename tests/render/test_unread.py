"""A text that was run is there to be used while a critic reads it."""

from ipyrefine import refine
from ipyrefine.core.events import CallEnded, Event, StageStarted
from ipyrefine.core.model import Stage, Usage
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.html import View, panel_parts
from ipyrefine.render.progress import Progress

TASK = "Write `twice(n)`, which returns 2 * n.\n\ntwice(2) == 4"
DRAFT = "```python\ndef twice(n):\n    return 2 * n\n```"
READY = '```json\n{"findings": [], "questions": [], "ready": true, "because": "It does."}\n```'


async def run_while_it_is_read() -> Run:
    """Return a run as it stands when its critic begins to read the draft."""
    found: list[Run] = []

    def watch(event: Event, run: Run) -> None:
        if isinstance(event, StageStarted) and event.stage is Stage.CRITIQUE:
            found.append(run)

    await refine(TASK, model=ScriptedModel([DRAFT, READY]), journal=False, on_event=watch)
    return found[0]


async def test_it_is_labelled_by_what_ran_and_its_accept_button_comes_first() -> None:
    run = await run_while_it_is_read()
    parts = panel_parts(run, View(stage_seconds=18, usual=40))
    assert "RUNS" in parts["top"]
    assert "not read yet" in parts["top"]
    assert "1 of 1 example" in parts["top"]
    assert "is reading" in parts["top"]
    assert "usually 40 s" in parts["top"]
    assert parts["top"].index("Accept") < parts["top"].index("Stop")
    assert "return" in parts["text"]


async def test_what_a_call_usually_takes_is_the_median_of_the_models_recent_ones() -> None:
    run = await run_while_it_is_read()
    run = run.replace(setup=run.setup.replace(judge="a critic of its own"))
    progress = Progress(lambda: 0.0)
    started = StageStarted(stage=Stage.CRITIQUE, iteration=0)
    progress.take(started, run)
    assert progress.usual(run) == 0.0
    for seconds in (10, 40, 400):
        usage = Usage(calls=1, seconds=seconds)
        ended = CallEnded(stage=Stage.CRITIQUE, iteration=0, usage=usage, finish="stop")
        progress.take(ended, run)
    assert progress.usual(run) == 40
    assert progress.line(run).startswith("Critiquing · draft · 0 s, usually 40 s")
