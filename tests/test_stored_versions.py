"""What older versions of the stores wrote is read as it was meant, and can be resumed."""

import json
import shutil
from pathlib import Path
from typing import Any

import golden
import pytest
import stored

from ipyrefine.core.run import Run
from ipyrefine.core.upcasters import VERSION
from ipyrefine.journal.store import Journal
from ipyrefine.providers.replay import read_recording
from ipyrefine.session.record import load

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = ("v1", "v2")
EXPECTED = {version: golden.read(FIXTURES / version / "expected.json") for version in VERSIONS}
RUNS: dict[str, dict[str, Any]] = {
    f"{version}/{name}": run
    for version, expected in EXPECTED.items()
    for name, run in expected["runs"].items()
}
RESUMABLE = [name for name, run in RUNS.items() if "resume" in run]
RECORDINGS = {
    f"{version}/{name}": replay
    for version, expected in EXPECTED.items()
    for name, replay in expected["recordings"].items()
}


def open_copy(version: str, folder: Path) -> Journal:
    """A version's journal in a folder of its own, as opening it puts files beside it."""
    path = folder / version / "runs.db"
    path.parent.mkdir()
    shutil.copyfile(FIXTURES / version / "journal.db", path)
    return Journal(path)


def facts(name: str) -> dict[str, Any]:
    return {k: v for k, v in RUNS[name].items() if k not in ("settings", "resume")}


def path_of(name: str, kind: str) -> Path:
    version, _, stem = name.partition("/")
    return FIXTURES / version / kind / f"{stem}.json"


def record(name: str) -> Run:
    [run] = load(path_of(name, "records"))
    return run


@pytest.mark.parametrize("version", VERSIONS)
def test_the_journal_lists_its_runs(version: str, tmp_path: Path) -> None:
    runs = EXPECTED[version]["runs"]
    listed = {line.name: line for line in open_copy(version, tmp_path).runs()}
    assert list(listed) == list(reversed(runs))
    for name, told in runs.items():
        line, usage = listed[name], told["usage"]
        tokens = usage["prompt_tokens"] + usage["completion_tokens"]
        assert (line.iterations, line.tokens, line.cost) == (
            told["iterations"],
            tokens,
            usage["cost"],
        )
        assert (line.stop_reason, line.title) == (told["stop_reason"], told["task"])


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_read_from_the_journal(name: str, tmp_path: Path) -> None:
    version, _, stem = name.partition("/")
    kept = open_copy(version, tmp_path).get(stem)
    assert stored.facts(kept.run) == facts(name)
    assert kept.settings == RUNS[name]["settings"]


@pytest.mark.parametrize("name", RUNS)
def test_a_record_is_read(name: str) -> None:
    assert stored.facts(record(name)) == facts(name)


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith("v2/")])
def test_the_events_of_a_run_fold_to_its_record(name: str, tmp_path: Path) -> None:
    version, _, stem = name.partition("/")
    run = open_copy(version, tmp_path).get(stem).run
    # An older record does not hold what an override overruled; its events do.
    known = tuple(i.model_copy(update={"overruled": None}) for i in run.iterations)
    assert run.model_copy(update={"iterations": known}) == record(name)


@pytest.mark.parametrize("file", EXPECTED["v1"]["notebooks"])
def test_the_records_of_a_notebook_are_read(file: str) -> None:
    names = EXPECTED["v1"]["notebooks"][file]
    read = [stored.facts(run) for run in load(FIXTURES / "v1" / file)]
    assert read == [facts(f"v1/{name}") for name in names]


@pytest.mark.parametrize("name", RESUMABLE)
async def test_a_run_of_the_journal_is_resumed(name: str, tmp_path: Path) -> None:
    version, _, stem = name.partition("/")
    journal = open_copy(version, tmp_path)
    how, kept = RUNS[name]["resume"], journal.get(stem)
    came_to = await stored.resumed(kept.run, how, journal.recorder(kept))
    assert came_to == how["expected"]
    calls = came_to.pop("calls")
    again = journal.get(stem).run
    assert stored.outcome(again) == came_to
    assert again.usage.calls == RUNS[name]["usage"]["calls"] + calls


@pytest.mark.parametrize("name", RESUMABLE)
async def test_a_record_is_resumed(name: str) -> None:
    how = RUNS[name]["resume"]
    assert await stored.resumed(record(name), how) == how["expected"]


@pytest.mark.parametrize("name", RECORDINGS)
async def test_a_recording_is_replayed(name: str) -> None:
    """Up to a reply of the built-in judge, who is asked in another shape since version 3."""
    assert await stored.replayed(record(name), path_of(name, "recordings")) == RECORDINGS[name]


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_keeps_every_call(name: str) -> None:
    path = path_of(name, "recordings")
    calls = json.loads(path.read_text("utf-8"))["calls"]
    read = read_recording(path)
    assert read.format == VERSION
    assert [call.key for call in read.calls] == [call["key"] for call in calls]
    assert {call.probabilities for call in read.calls} == {()}
