"""A cell whose server fails after the draft: a short message, and the draft in its variable."""

from collections.abc import Iterator
from typing import Any

import pytest
from bombs import bombs
from faulty import Trial
from hostile_wire import DEEP, DIGITS, DONE, KEY, chunk, event
from openai_server import Answer, Behaviour, Failure, ScriptedServer
from shells import loaded_shell, run_cell

from ipyrefine.providers import servers

CELL = (
    "%%refine -p prose --target 0.8 --critique always --set as=task -n 0 --plain\nWrite a greeting."
)
FAULTS: dict[str, Behaviour] = {
    "a number of 5,000 digits": Answer(
        raw=event('{"error": {"code": "' + "9" * DIGITS + '"}}') + DONE
    ),
    "JSON 100,000 deep": Answer(raw=chunk("yes") + event("[" * DEEP)),
    "an endless wait": Failure(429, {}, {"Retry-After": f"Fri, 31 Dec 2026 23:59:59 +{'9' * 400}"}),
    "a malformed location": Failure(307, "", {"Location": "http://[x]:y/"}),
    "the key in a location": Failure(307, "", {"Location": f"http://other.test/{KEY}"}),
    "a charset that is none": Failure(400, {}, {"Content-Type": "text/html; charset=zlib"}),
    "a bomb": Answer(raw=bombs(50)["gzip"], headers={"Content-Encoding": "gzip"}),
    "a header of 1 MB": Answer(wire=b"HTTP/1.1 200 OK\r\nX: " + b"x" * 2**20 + b"\r\n\r\n"),
    "a page of 100 MB": Failure(500, b"<html>" * 2**24),
    "an unknown status": Failure(777, b""),
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
