"""`ipyrefine.Panel`: a run as a widget in a layout of the notebook's own."""

from typing import Any

import ipywidgets as widgets
from kit import READY, text

import ipyrefine
from ipyrefine.core.decisions import Accept
from ipyrefine.core.model import StopReason
from ipyrefine.providers.scripted import ScriptedModel

PROSE: dict[str, Any] = {"profile": "prose", "journal": False}


def panel(*replies: str, **options: Any) -> ipyrefine.Panel:
    return ipyrefine.Panel("Greet.", model=ScriptedModel([*replies]), **PROSE, **options)


def click(shown: ipyrefine.Panel, action: str, **fields: Any) -> list[dict[str, Any]]:
    """What the page of the panel is sent after a click."""
    (inner,) = shown.children
    sent: list[dict[str, Any]] = []
    inner.send = sent.append
    inner._handle_custom_msg({"action": action, "fields": fields}, [])
    return sent


async def test_it_stands_in_a_box_beside_other_widgets_and_hands_on_what_is_accepted():
    taken: list[str] = []
    shown = panel(text("Hello, you."), READY, on_accept=taken.append)
    box = widgets.VBox([widgets.HTML("Your greeting"), shown])
    assert box.children[1] is shown
    shown.start()
    run = await shown.wait()
    assert (run.text, taken) == ("Hello, you.", [])
    [page] = click(shown, "hello")
    assert "Hello, you." in page["page"]
    click(shown, "accept")
    run = await shown.wait()
    assert (run.stop_reason, taken) == (StopReason.ACCEPTED, ["Hello, you."])


async def test_what_only_a_cell_can_do_says_so():
    shown = panel(text("Hello."), READY)
    shown.start()
    await shown.wait()
    click(shown, "hello")
    [sent] = click(shown, "tests")
    assert "in a %%refine cell only" in str(sent)


async def test_a_callback_that_fails_is_a_note():
    shown = panel(text("Hello."), READY, on_accept=lambda text: 1 / 0)
    shown.start()
    await shown.wait()
    shown.decide(Accept())
    run = await shown.wait()
    assert run.stop_reason is StopReason.ACCEPTED
    assert "division by zero" in click(shown, "hello")[0]["page"]


async def test_closing_it_stops_the_loop():
    shown = panel(text("Hello."), READY)
    shown.start()
    shown.close()
    run = await shown.wait()
    assert run.stop_reason is not StopReason.PASSED
    shown.close()
