"""Closing the tab while a cell refines: the run goes on in the kernel and is found there again."""

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from lab_driver import Lab
from openai_server import Answer, ScriptedServer
from stack_task import CONSTANT, STACK, reply

REFINE = f"%%refine --check examples -n 2\n{STACK}"


class Gated(NamedTuple):
    """A server that holds the revision back until it may go on."""

    server: ScriptedServer
    asked: threading.Event
    go_on: threading.Event


@pytest.fixture
def gated() -> Iterator[Gated]:
    asked, go_on = threading.Event(), threading.Event()

    def answer(body: dict[str, Any]) -> Answer:
        if reply(body) is CONSTANT:
            asked.set()
            go_on.wait(60)
        return Answer(reply(body))

    with ScriptedServer(answer) as server:
        yield Gated(server, asked, go_on)
        go_on.set()


async def test_a_run_whose_tab_is_closed_goes_on_and_its_best_text_is_found_again(
    lab: Lab, gated: Gated
) -> None:
    after = ("%refine show", "print(refined_run.stop_reason.value)")
    page = await lab.start(gated.server, REFINE, *after, wait=False, height=1400)
    await lab.panel('[data-action="accept"]').wait_for()
    assert gated.asked.wait(10)
    await page.close()
    gated.server.left.clear()
    gated.go_on.set()
    await lab.open_again()
    assert not gated.server.left.is_set(), "the run was given up with the tab"
    await lab.run_and_wait(2)
    assert "least = min" in await lab.outputs_text(2)
    await lab.run_and_wait(3)
    assert "passed" in await lab.outputs_text(3)
