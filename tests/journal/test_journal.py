"""The journal as a store: what was written is there, in order, private, and can be forgotten."""

import asyncio
import gc
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kit import greeting as refinement
from kit import stored_events as events_of

from ipyrefine.core.events import Event, TextDelta
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.core.stored import OLDEST
from ipyrefine.errors import JournalError, UsageError
from ipyrefine.journal import writer
from ipyrefine.journal.store import Journal, UnreadableRun
from ipyrefine.journal.writer import Recorder, default_path

WRITERS = """
import asyncio, os, sys
from pathlib import Path
from kit import greeting as refinement
from ipyrefine.journal.writer import Recorder

async def write(path, name):
    for turn in range(3):
        await refinement(f"{name} {turn}").run(journal=Recorder(Path(path), name=name))

for name in ("kernel1", "kernel2", "kernel3"):
    if not os.fork():
        asyncio.run(write(sys.argv[1], name))
        os._exit(0)
sys.exit(any(os.wait()[1] for _ in range(3)))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "runs.db"


async def record(path: Path, task: str = "Write a greeting.", **options: Any) -> Run:
    name = options.pop("name", "")
    return await refinement(task, **options).run(journal=Recorder(path, name=name))


async def test_an_event_is_on_disk_before_the_recorder_returns(path):
    seen: list[Event] = []

    def compare(event: Event, run: Run) -> None:
        if not isinstance(event, TextDelta):
            seen.append(event)
        assert Journal(path).get().run == replay(seen) == run

    loop = refinement()
    await loop.run(compare, journal=Recorder(path))
    assert loop.error is None


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX's")
def test_only_the_user_can_read_it_while_it_is_open_too(path):
    path.parent.mkdir(mode=0o755)
    path.touch(0o644)

    def compare(event: Event, run: Run) -> None:
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert set(modes.values()) == {0o600}, modes

    loop = refinement()
    asyncio.run(loop.run(compare, journal=Recorder(path)))
    assert loop.error is None
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="fork is POSIX's")
def test_several_processes_write_at_once_and_nothing_is_lost(path):
    """They also create it at once, which is when SQLite is least patient."""
    support = Path(__file__).parents[1] / "support"
    paths = os.pathsep.join([str(support), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", WRITERS, path], env=environment, check=True, timeout=60)
    runs = Journal(path).runs()
    assert len(runs) == 9
    for run in runs:
        assert Journal(path).get(str(run.number)).run.stop_reason == "passed"


async def test_a_run_that_is_forgotten_as_it_waits_leaves_no_file_open(path, monkeypatch):
    opened, connect = list[sqlite3.Connection](), writer.connect

    def remember(*arguments: Any, **options: Any) -> sqlite3.Connection:
        opened.append(connect(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(writer, "connect", remember)
    seen: list[Any] = []
    await refinement().run(lambda event, run: seen.append((event, run)))
    recorder = Recorder(path)
    await recorder(*seen[0])
    opened[-1].execute("SELECT 1")
    del recorder
    gc.collect()
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError):
            connection.execute("SELECT 1")


def test_it_opens_while_another_program_keeps_it_from_changing_its_mode(path):
    def opened() -> str:
        with closing(writer.connect(path, patience=0)) as connection:
            return connection.execute("PRAGMA journal_mode").fetchone()[0]

    opened()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN")
        other.execute("SELECT * FROM runs").fetchall()
        assert opened() == "delete"
    assert opened() == "wal"


async def test_a_run_continued_in_two_kernels_ends_in_the_slower_one(path):
    loop, here = refinement(), Recorder(path)
    events = await events_of(loop)
    await here(events[0], replay(events[:1]))
    there = Journal(path).get().journal
    await there(events[1], replay(events[:2]))
    with pytest.raises(JournalError, match="Another kernel"):
        await here(events[1], replay(events[:2]))
    here.close()
    there.close()


async def test_what_could_not_be_written_is_written_with_the_next_event(path, monkeypatch):
    loop, recorder = refinement(), Recorder(path)
    events = await events_of(loop)
    await recorder(events[0], replay(events[:1]))
    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.05)
    blocker = writer.connect(path)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(JournalError, match=r"in use.*--set journal=no"):
        await recorder(events[1], replay(events[:2]))
    blocker.execute("ROLLBACK")
    blocker.close()
    for number, event in enumerate(events[2:], start=3):
        await recorder(event, replay(events[:number]))
    assert Journal(path).get().run == loop.state


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a journal of three runs."""
    path = tmp_path_factory.mktemp("journal") / "runs.db"
    asyncio.run(record(path, "Write a limerick about tides.", name="tides"))
    asyncio.run(record(path, "Explain 100% of it.", name="percent", scores=(5,), model="big-one"))
    asyncio.run(record(path, "Name it.", name="under_score"))
    return path.read_bytes()


@pytest.fixture
def filled(path: Path, three_runs: bytes) -> Path:
    path.parent.mkdir()
    path.write_bytes(three_runs)
    return path


@pytest.mark.parametrize(("search", "expected"), [
    ({"search": "limerick"}, ["tides"]),
    ({"search": "TIDES about"}, ["tides"]),
    ({"search": "100%"}, ["percent"]),
    ({"search": "_"}, ["under_score"]),
    ({"limit": 1}, ["under_score"]),
    ({"search": "nothing of the kind"}, []),
])  # fmt: skip
def test_history_is_searched(filled, search, expected):
    assert [run.name for run in Journal(filled).runs(**search)] == expected


async def test_a_name_stands_for_the_latest_run_of_that_name_and_its_like_is_asked_about(path):
    for task in ("one", "two"):
        await record(path, task, name="again")
    stored = Journal(path).get("again")
    assert stored.run.task.text == "two"
    assert Journal(path).get(str(stored.journal.number - 1)).run.task.text == "one"
    for name, sentence in (("agian", "Did you mean again"), ("9" * 40, "no run")):
        with pytest.raises(UsageError, match=sentence):
            Journal(path).get(name)


@pytest.mark.parametrize(
    "name", ["../up", "/etc/passwd", "a/b", "-rf", "12", "x.ipynb", "a\nb", "x" * 65]
)
def test_a_name_that_could_be_taken_for_something_else_is_refused(path, name):
    with pytest.raises(UsageError, match="cannot name a run"):
        Recorder(path, name=name)


async def test_what_is_forgotten_is_nowhere_in_the_files(path):
    await record(path, "Mention zanzibar.", name="secret")
    await record(path, "Keep me.", name="kept")
    assert Journal(path).forget("secret") == 1
    assert [run.name for run in Journal(path).runs()] == ["kept"]
    assert not [f for f in path.parent.iterdir() if b"zanzibar" in f.read_bytes()]
    assert Journal(path).forget_all() == 1
    assert Journal(path).runs() == []


async def test_a_run_erased_while_it_goes_on_says_so(path):
    loop, recorder = refinement(), Recorder(path)
    events = await events_of(loop)
    await recorder(events[0], replay(events[:1]))
    Journal(path).forget_all()
    with pytest.raises(JournalError, match="erased"):
        await recorder(events[1], replay(events[:2]))
    recorder.close()


@pytest.mark.parametrize("version", [1, writer.TABLES_VERSION + 1], ids=["older", "newer"])
def test_a_journal_of_another_version_is_refused_and_left_as_it_is(path, version):
    run = asyncio.run(record(path))
    set_version(path, version)
    before = path.read_bytes()
    with pytest.raises(JournalError, match="another version of ipyrefine"):
        Journal(path).runs()
    loop = refinement()
    asyncio.run(loop.run(journal=Recorder(path)))
    assert isinstance(loop.error, JournalError)
    assert path.read_bytes() == before
    set_version(path, writer.TABLES_VERSION)
    assert [Journal(path).get(one.name).run for one in Journal(path).runs()] == [run]


def set_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def test_a_run_of_another_version_is_listed_and_refused_as_such(path, monkeypatch):
    monkeypatch.setattr(writer, "VERSION", OLDEST - 1)
    await record(path, name="older")
    monkeypatch.undo()
    run = await record(path, name="today")
    assert [one.name for one in Journal(path).runs()] == ["today", "older"]
    with pytest.raises(JournalError, match="another version of ipyrefine"):
        Journal(path).get("older")
    assert Journal(path).get("today").run == run


@pytest.mark.parametrize("damage", [
    lambda content: b"This is not a database.\n" * 99,
    lambda content: content[: len(content) // 2],
    lambda content: content[:4096] + bytes(4096) + content[8192:],
], ids=["a text", "cut to half", "a page zeroed"])  # fmt: skip
def test_a_damaged_journal_is_refused_in_one_sentence_and_nothing_is_lost(filled, damage):
    damaged = damage(filled.read_bytes())
    filled.write_bytes(damaged)
    with pytest.raises(JournalError, match=r"^The journal .* is damaged .* to begin a new one"):
        Journal(filled).runs()
    loop = refinement()
    asyncio.run(loop.run(journal=Recorder(filled)))
    assert isinstance(loop.error, JournalError)
    # Opening it may have noted the kind of its log in the header, at 18, and nothing else.
    kept = filled.read_bytes()
    assert (kept[:18], kept[20:24], kept[100:]) == (damaged[:18], damaged[20:24], damaged[100:])


@pytest.mark.parametrize("change", ["DROP TABLE runs", "ALTER TABLE runs RENAME title TO head"])
def test_so_is_a_journal_whose_tables_were_changed(filled, change):
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute(change)
    with pytest.raises(JournalError, match=r"^The journal .* is damaged .* to begin a new one"):
        Journal(filled).runs()


@pytest.mark.parametrize("change", [
    "body = '{' WHERE run = 2 AND sequence = 2",
    "body = x'ff00ff' WHERE run = 2",
    "body = json_set(body, '$.iteration', 999) WHERE run = 2",
    "sequence = 99 WHERE run = 2 AND sequence = 0",
])  # fmt: skip
def test_a_damaged_row_concerns_its_run_alone(filled, change):
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute(f"UPDATE events SET {change}")
    with pytest.raises(UnreadableRun, match=r"Run 2 in the journal .* is damaged"):
        Journal(filled).get("percent")
    assert [one.name for one in Journal(filled).runs()] == ["under_score", "percent", "tides"]
    assert Journal(filled).get("under_score").run.task.text == "Name it."


@pytest.mark.parametrize("change", [
    "name = x'ff'",
    "updated = 'soon'",
    "outcome = 'MAYBE'",
    "iterations = 'many'",
])  # fmt: skip
def test_a_row_of_the_list_that_was_changed_by_hand_hides_no_other(filled, change):
    with closing(sqlite3.connect(filled)) as connection, connection:
        connection.execute(f"UPDATE runs SET {change} WHERE id = 2")
    assert [one.name for one in Journal(filled).runs()] == ["under_score", "tides"]


def test_a_place_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="IPYREFINE_HOME"):
        Journal(tmp_path / "file" / "runs.db").runs()


def test_a_second_connection_leaves_the_first_its_locks(path):
    """Else another process that closes the journal removes what the first still writes to."""
    reads = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); [*c.execute('{}')]; c.close()"
    with closing(writer.connect(path)) as first:
        first.execute("SELECT * FROM runs").fetchall()
        writer.connect(path).close()
        code = reads.format("SELECT * FROM runs")
        subprocess.run([sys.executable, "-c", code, path], check=True)
        assert Path(f"{path}-wal").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_in_the_place_of_the_journal_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "runs.db")
    with pytest.raises(JournalError, match="not a plain file"):
        Journal(tmp_path / "runs.db").runs()


def test_it_lies_where_the_user_says_and_a_home_that_does_not_exist_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("IPYREFINE_HOME", str(tmp_path / "mine"))
    assert default_path().is_relative_to(tmp_path / "mine")
    monkeypatch.setenv("IPYREFINE_HOME", "~nobody_of_this_name/kept")
    with pytest.raises(UsageError, match="Set IPYREFINE_HOME"):
        default_path()
