"""What version 1 of the stores wrote is read as it was meant, and can be resumed."""

import shutil
from pathlib import Path
from typing import Any

import golden
import pytest
import stored

from ipyrefine.core.run import Run
from ipyrefine.journal.store import Journal
from ipyrefine.session.record import load

V1 = Path(__file__).parent / "fixtures" / "v1"
EXPECTED = golden.read(V1 / "expected.json")
RUNS: dict[str, dict[str, Any]] = EXPECTED["runs"]
RESUMABLE = [name for name, run in RUNS.items() if "resume" in run]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """The journal in a folder of its own, as opening it puts files beside it."""
    path = tmp_path / "journal" / "runs.db"
    path.parent.mkdir()
    shutil.copyfile(V1 / "journal.db", path)
    return Journal(path)


def facts(name: str) -> dict[str, Any]:
    return {k: v for k, v in RUNS[name].items() if k not in ("settings", "resume")}


def record(name: str) -> Run:
    [run] = load(V1 / "records" / f"{name}.json")
    return run


def test_the_journal_lists_its_runs(journal: Journal) -> None:
    listed = {line.name: line for line in journal.runs()}
    assert list(listed) == list(reversed(RUNS))
    for name, told in RUNS.items():
        line, usage = listed[name], told["usage"]
        tokens = usage["prompt_tokens"] + usage["completion_tokens"]
        assert (line.iterations, line.tokens, line.cost) == (
            told["iterations"],
            tokens,
            usage["cost"],
        )
        assert (line.stop_reason, line.title) == (told["stop_reason"], told["task"])


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_read_from_the_journal(journal: Journal, name: str) -> None:
    kept = journal.get(name)
    assert stored.facts(kept.run) == facts(name)
    assert kept.settings == RUNS[name]["settings"]


@pytest.mark.parametrize("name", RUNS)
def test_a_record_is_read(name: str) -> None:
    assert stored.facts(record(name)) == facts(name)


@pytest.mark.parametrize("file", EXPECTED["notebooks"])
def test_the_records_of_a_notebook_are_read(file: str) -> None:
    names = EXPECTED["notebooks"][file]
    assert [stored.facts(run) for run in load(V1 / file)] == [facts(name) for name in names]


@pytest.mark.parametrize("name", RESUMABLE)
async def test_a_run_of_the_journal_is_resumed(journal: Journal, name: str) -> None:
    how, kept = RUNS[name]["resume"], journal.get(name)
    came_to = await stored.resumed(kept.run, how, journal.recorder(kept))
    assert came_to == how["expected"]
    calls = came_to.pop("calls")
    again = journal.get(name).run
    assert stored.outcome(again) == came_to
    assert again.usage.calls == RUNS[name]["usage"]["calls"] + calls


@pytest.mark.parametrize("name", RESUMABLE)
async def test_a_record_is_resumed(name: str) -> None:
    how = RUNS[name]["resume"]
    assert await stored.resumed(record(name), how) == how["expected"]


@pytest.mark.parametrize("name", EXPECTED["recordings"])
async def test_a_recording_is_replayed(name: str) -> None:
    path = V1 / "recordings" / f"{name}.json"
    told = {key: RUNS[name][key] for key in stored.outcome(record(name))}
    assert await stored.replayed(record(name), path) == told
