"""`%%refine` in terminal IPython, typed into a pseudo-terminal."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from kit import READY
from openai_server import ScriptedServer

pexpect = pytest.importorskip("pexpect")


def reply(body: dict[str, Any]) -> str:
    """Mend the mistake when asked for a better text; find nothing wrong with it."""
    if '"ready"' in body["messages"][-1]["content"]:
        return READY
    n = 1 if "n + 2" in body["messages"][-1]["content"] else 2
    return f"```python\ndef inc(n):\n    return n + {n}\n```"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as server:
        yield server


@pytest.fixture
def terminal(server: ScriptedServer) -> Iterator[Any]:
    env = {
        **os.environ,
        "OPENAI_BASE_URL": server.base_url,
        "IPYREFINE_MODEL": "scripted",
        "PROMPT_TOOLKIT_NO_CPR": "1",  # nobody answers where the cursor is
        "TERM": "xterm",
    }
    options = ["--no-banner", "--colors=nocolor", "--no-confirm-exit"]
    spawned = pexpect.spawn(
        sys.executable,
        ["-m", "IPython", *options, "--ext=ipyrefine"],
        env=env,
        dimensions=(60, 100),
        timeout=60,
        encoding="utf-8",
    )
    spawned.expect(r"In \[")
    yield spawned
    spawned.sendeof()
    spawned.close(force=True)


def refine(terminal: Any, options: str, check: str = "-c examples") -> None:
    terminal.send(f"%%refine {check} {options}\r")
    terminal.expect(r"\.\.\.:")
    terminal.send("Write inc(n). inc(1) == 2\r\r\r")


def test_every_stage_is_printed_guidance_reaches_the_writer_and_accepting_fills_the_next_input(
    terminal, server
):
    refine(terminal, "-n 0")
    for output in ("Writing", "expected 2, got 3", "leave it:"):
        terminal.expect(output)
    terminal.send("c Add one, not two.\r")
    for output in ("Add one, not two.", "Revising", "Revision 1", "PASS", "Changes", "leave it:"):
        terminal.expect(output)
    assert "Add one, not two." in server.bodies[1]["messages"][-1]["content"]
    terminal.send("a\r")
    terminal.expect("You accepted")
    terminal.expect(r"In \[")
    terminal.expect("return")  # filled in, for the user to run or change
    terminal.expect(r"n \+ 1")


def test_the_first_lines_say_what_a_cell_was_taken_for_and_once_how_to_switch(terminal):
    """And no line of the question breaks a word."""
    terminal.setwinsize(60, 80)
    refine(terminal, "-n 0", check="")
    for output in ("as: task", "as: code", "Not code[?] Use %refine continue as prose"):
        terminal.expect(output)
    terminal.expect("leave it:")
    terminal.send("\r")
    terminal.expect(r"In \[")
    refine(terminal, "-n 1", check="")
    terminal.expect("Interpreted as: code")
    terminal.expect("leave it:")
    assert "Not code?" not in terminal.before
    said = terminal.before.rpartition("1 to 4 if")[2] + "leave it:"
    assert all(len(line) < 80 for line in said.splitlines()), said
    assert "[n]eeds work" in said
    terminal.send("\r")
    terminal.expect(r"In \[")
    terminal.send("%refine continue as prose\r")
    for output in (r"as: task \(prose\)", "Not prose[?] Use %refine continue as code", "── Draft"):
        terminal.expect(output)
