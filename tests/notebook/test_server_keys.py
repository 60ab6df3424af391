"""Which key goes to a server that a cell or a setting names."""

from collections.abc import Iterator
from typing import Any

import pytest
from faulty import Trial
from openai_server import Answer, ScriptedServer
from shells import change_model, loaded_shell
from shells import error_of as run

from ipyrefine.errors import UsageError
from ipyrefine.journal.store import Journal
from ipyrefine.providers import servers

KEY, OTHER_KEY = "sk-of-the-environment", "sk-of-the-other"
CELL = "%%refine -p prose --target 0.8 --set as=task -n 0 {}\nGreet me."


def good_server() -> ScriptedServer:
    server = ScriptedServer()
    Trial(server, "none", Answer())
    return server


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """The server that the environment names, with its key."""
    monkeypatch.setattr(servers, "BY_SERVER", {})
    with good_server() as running:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("IPYREFINE_MODEL", "m")
        yield running


@pytest.fixture
def other() -> Iterator[ScriptedServer]:
    """A server that something else names."""
    with good_server() as running:
        yield running


@pytest.fixture
def shell(home: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("OTHER_KEY", OTHER_KEY)
    return loaded_shell(monkeypatch)


def keys(server: ScriptedServer) -> set[str]:
    """Return the keys that a server got since it was asked last."""
    found = {
        seen.headers.get("authorization", "none").removeprefix("Bearer ")
        for seen in server.requests
    }
    server.requests.clear()
    return found


@pytest.mark.parametrize("options", ["", "--judge another"])
def test_a_server_that_a_cell_names_gets_the_key_that_the_cell_names_too(
    shell, home, other, options
):
    options = f"--base-url {other.base_url} {options}"
    assert run(shell, CELL.format(options)) is None
    assert keys(other) == {"none"}
    assert run(shell, CELL.format(f"{options} --set api_key_env=OTHER_KEY")) is None
    assert keys(other) == {OTHER_KEY}
    assert home.requests == []


def test_a_recordings_live_model_on_another_server_gets_no_key(shell, other, monkeypatch, tmp_path):
    options = f"--base-url {other.base_url} -m recorded:{tmp_path / 'none.json'}"
    assert run(shell, CELL.format(options)) is None
    assert keys(other) == {"none"}


def test_the_settings_name_a_server_with_its_key_which_no_other_server_gets(shell, other):
    magics = shell.magics_manager.registry["Refine"]
    magics.base_url = other.base_url
    for name, key in (("", "none"), ("OTHER_KEY", OTHER_KEY)):
        magics.api_key_env = name
        assert run(shell, CELL.format("")) is None
        assert keys(other) == {key}
    with good_server() as third:
        assert run(shell, CELL.format(f"--base-url {third.base_url}")) is None
        assert keys(third) == {"none"}


def test_another_model_for_a_run_keeps_the_runs_server_and_its_key(shell, other):
    assert (
        run(shell, CELL.format(f"--base-url {other.base_url} --set api_key_env=OTHER_KEY")) is None
    )
    keys(other)
    change_model(shell, "better", "warmer")
    assert keys(other) == {OTHER_KEY}


def test_a_resumed_run_gets_the_key_of_its_server_only_where_that_is_named_again(shell, other):
    options = f"--base-url {other.base_url} --set api_key_env=OTHER_KEY --set name=hi"
    assert run(shell, CELL.format(options)) is None
    assert isinstance(run(shell, "%refine resume hi"), UsageError)
    keys(other)
    for named, key in (("", "none"), (" --set api_key_env=OTHER_KEY", OTHER_KEY)):
        assert run(shell, f"%refine resume hi --base-url {other.base_url}{named}") is None
        assert run(shell, "%refine continue 1 warmer") is None
        assert keys(other) == {key}


@pytest.mark.parametrize("name", ["NOT_SET_HERE", "sk-an-actual-key", "gsk_an_actual_key"])
def test_a_variable_that_holds_no_key_is_refused_without_quoting_what_may_be_one(shell, home, name):
    error = run(shell, CELL.format(f"--set api_key_env={name}"))
    assert isinstance(error, UsageError)
    assert name not in str(error)
    assert home.requests == []


@pytest.mark.parametrize("cell", ["a1 --base-url http://h", "a/b", "a\n", "", "x" * 65, "é"])
def test_what_is_not_a_cells_id_is_refused(shell, home, cell):
    assert isinstance(run(shell, CELL.format(f"--set cell={cell!r}")), UsageError)
    assert isinstance(run(shell, f"%refine fix --set cell={cell!r}"), UsageError)
    assert home.requests == []


def test_an_id_in_the_journal_that_is_not_a_cells_is_not_followed(shell, home, monkeypatch):
    assert run(shell, CELL.format("--set name=hi --set cell=a1")) is None
    find = Journal.get

    def altered(self: Journal, *args: Any) -> Any:
        stored = find(self, *args)
        return stored._replace(settings={**stored.settings, "cell": "a1 --base-url http://h"})

    monkeypatch.setattr(Journal, "get", altered)
    assert run(shell, "%refine resume hi") is None
    resumed = shell.magics_manager.registry["Refine"].latest
    assert resumed.cell_target.place_to_run == "insert"
