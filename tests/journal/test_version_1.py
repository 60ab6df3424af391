"""A journal that version 1 wrote: read as it is, continued in the new version, never rewritten."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from refining import judged, text

from ipyrefine import api
from ipyrefine.core.upcasters import VERSION
from ipyrefine.errors import JournalError
from ipyrefine.journal import schema
from ipyrefine.journal.store import Journal
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.record import load

V1 = Path(__file__).parents[1] / "fixtures" / "v1"
FIXED = judged(10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A copy of the journal, in a folder of its own as opening it puts files beside it."""
    path = tmp_path / "journal" / "runs.db"
    path.parent.mkdir()
    shutil.copyfile(V1 / "journal.db", path)
    return path


def rows(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_it_is_migrated_once_and_its_events_stay_as_they_are(path: Path) -> None:
    events = "SELECT run, sequence, body FROM events ORDER BY run, sequence"
    outcomes = rows(path, "SELECT outcome FROM runs ORDER BY id")
    before = rows(path, events)
    assert rows(path, "PRAGMA user_version") == [(1,)]
    Journal(path).runs()
    assert rows(path, "PRAGMA user_version") == [(len(schema.MIGRATIONS),)]
    assert rows(path, events) == before
    assert rows(path, "SELECT DISTINCT version FROM events") == [(1,)]
    assert rows(path, "SELECT outcome FROM runs ORDER BY id") == outcomes
    assert rows(path, "SELECT DISTINCT basis FROM runs") == [(None,)]


def test_every_run_in_it_is_the_run_in_its_record(path: Path) -> None:
    journal = Journal(path)
    runs = journal.runs()
    assert len(runs) == len(list((V1 / "records").glob("*.json")))
    for line in runs:
        [record] = load(V1 / "records" / f"{line.name}.json")
        run = journal.get(line.name).run
        # An older record does not hold what an override overruled; its events do.
        known = tuple(i.model_copy(update={"overruled": None}) for i in run.iterations)
        assert run.model_copy(update={"iterations": known}) == record, line.name


def test_stop_reasons_are_found_by_their_new_names(path: Path) -> None:
    found = {line.name for line in Journal(path).runs(verdict="revisions")}
    assert {"branched", "gated", "rubric"} <= found
    assert Journal(path).runs(verdict="rounds") == []


async def test_a_run_is_continued_and_its_new_events_have_the_new_version(path: Path) -> None:
    stored = Journal(path).get("failed")
    model = ScriptedModel([text("Hello, dear friend."), FIXED])
    refinement = api.resume(stored.run, model=model)
    run = await api.finish(refinement, Journal(path).recorder(stored))
    assert run.stop_reason == "passed"
    [line] = Journal(path).runs("failed")
    assert (line.outcome, line.basis) == ("PASS", "judge")
    again = Journal(path).get("failed")
    assert again.run.iterations == run.iterations
    query = f"SELECT version FROM events WHERE run = {stored.number} ORDER BY sequence"
    versions = [version for (version,) in rows(path, query)]
    assert versions == [1] * stored.sequence + [VERSION] * (again.sequence - stored.sequence)
    assert again.sequence > stored.sequence


def test_a_kernel_of_version_1_that_has_it_open_still_writes_events_that_are_read(
    path: Path,
) -> None:
    """It knows no version of events; what it appends after the migration is read as its own."""
    with closing(sqlite3.connect(path)) as old:
        [(run, sequence)] = old.execute(
            "SELECT r.id, max(e.sequence) FROM runs r JOIN events e ON e.run = r.id "
            "WHERE r.name = 'cut-before-draft'"
        )
        Journal(path).runs()
        event = '{"type": "warned", "at": 9.0, "message": "From an older kernel."}'
        insert = "INSERT INTO events (run, sequence, body) VALUES (?, ?, ?)"
        old.execute(insert, (run, sequence + 1, event))
        old.commit()
    assert Journal(path).get("cut-before-draft").run.warnings[-1] == "From an older kernel."


def test_version_1_refuses_a_journal_that_was_migrated(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal(path).runs()
    before = path.read_bytes()
    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
    with pytest.raises(JournalError, match="newer ipyrefine"):
        Journal(path).runs()
    assert path.read_bytes() == before
