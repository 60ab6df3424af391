"""A cell whose server fails after the draft: a short message, and the draft in its variable."""

from collections.abc import Iterator
from typing import Any

import pytest
from faulty import Trial
from hostile_wire import DEEP, KEY, chunk, event
from openai_server import Answer, Behaviour, Failure, ScriptedServer
from shells import loaded_shell, run_cell

from ipyrefine.providers import servers

CELL = (
    "%%refine -p prose --target 0.8 --critique always --set as=task -n 0 --plain\nWrite a greeting."
)
# What else a server may send ends a run in the same way: tests/providers/test_hostile_servers.py.
FAULTS: dict[str, Behaviour] = {
    "JSON 100,000 deep": Answer(raw=chunk("yes") + event("[" * DEEP)),
    "the key in a location": Failure(307, "", {"Location": f"http://other.test/{KEY}"}),
    "a page of 100 MB": Failure(500, b"<html>" * 2**24),
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setattr(servers, "BY_SERVER", {})
    monkeypatch.setattr("ipyrefine.providers.openai._FIRST_DELAY", 0.0)
    with ScriptedServer() as running:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("IPYREFINE_MODEL", "m")
        yield running


@pytest.fixture
def shell(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    return loaded_shell(monkeypatch)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wire_error_leaves_the_draft_and_a_short_message(server, shell, capsys, fault):
    Trial(server, "judge", FAULTS[fault])
    result = run_cell(shell, CELL)
    assert shell.user_ns["refined"] == "Hello"
    run = shell.user_ns["refined_run"]
    assert (run.stop_reason, run.text) == ("failed", "Hello")
    assert result.error_in_exec is not None
    assert str(result.error_in_exec) == run.message
    assert server.base_url in run.message
    assert len(run.message) < 300
    assert run.message.count(". ") <= 1
    printed = "".join(capsys.readouterr())
    assert "Traceback" not in printed
    assert KEY not in printed
