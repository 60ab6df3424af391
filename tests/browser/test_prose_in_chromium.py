"""A long text is read by its changes, in a real browser."""

from pathlib import Path
from typing import Any

import ipyrefine
from ipyrefine.core.events import (
    BestChanged,
    DraftReady,
    Event,
    RevisionReady,
    RunStarted,
    Stopped,
    VerdictReached,
)
from ipyrefine.core.model import Outcome, Setup, StopReason, Task, Verdict
from ipyrefine.core.reducer import replay
from ipyrefine.render.html import View, panel_html, panel_parts, style

SCREEN = 900  # pixels
CSS = Path(ipyrefine.__file__).with_name("notebook") / "panel.css"
PAGE = "<!doctype html><meta charset=utf-8><style>{}</style><body style='margin:0;width:1010px'>{}"
SENTENCE = "In paragraph {} the council of our town thinks for the {}th time about its bridge."


async def test_1600_words_with_twelve_changes_are_read_in_a_screen_and_a_half(browser: Any) -> None:
    paragraphs = [[SENTENCE.format(n, k) for k in range(7)] for n in range(14)]
    old = "\n\n".join(map(" ".join, paragraphs))
    for change in range(12):
        paragraphs[change + 1][change % 7] += " Nobody asked why."
    new = "\n\n".join(map(" ".join, paragraphs))
    assert 1_550 < len(new.split()) < 1_650
    events: list[Event] = [
        RunStarted(setup=Setup(task=Task(text="Polish it.", form="prose"), draft=old)),
        DraftReady(text=old, author="user"),
        RevisionReady(iteration=1, parent=0, text=new),
        VerdictReached(iteration=1, verdict=Verdict(outcome=Outcome.PASS, score=None)),
        BestChanged(iteration=1),
        Stopped(reason=StopReason.PASSED, message=""),
    ]
    panel = panel_html(panel_parts(replay(events), View()), "id")
    page = await browser.new_page(viewport={"width": 1440, "height": SCREEN})
    await page.set_content(PAGE.format(style() + CSS.read_text("utf-8"), panel))
    assert await page.locator("ins").count() == 12
    assert (await page.locator("section.rf").bounding_box())["height"] < 1.5 * SCREEN
    await page.close()
