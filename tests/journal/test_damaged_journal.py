"""A damaged journal is set aside with all that is in it, in one sentence, and a new one begins."""

import argparse
import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from refining import refinement

from ipyrefine.errors import JournalError, UsageError
from ipyrefine.journal import tables
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import Recorder
from ipyrefine.session import history

Edit = Callable[[Path], object]
PAGE = 4096


def cut(size: int) -> Edit:
    return lambda path: os.truncate(path, size)


def written(at: int, content: bytes) -> Edit:
    def edit(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(at if at >= 0 else path.stat().st_size + at)
            file.write(content)

    return edit


def sql(*statements: str) -> Edit:
    def edit(path: Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return edit


def events(change: str) -> Edit:
    return sql("DROP TRIGGER events_are_never_changed", f"UPDATE events SET {change}")


def replaced(*statements: str) -> Edit:
    def edit(path: Path) -> None:
        path.unlink()
        sql(*statements)(path)

    return edit


# The database itself is of no use any more.
DAMAGE: dict[str, Edit] = {
    "cut to 10 bytes": cut(10),
    "cut within its header": cut(99),
    "cut to its header": cut(100),
    "cut to a page": cut(PAGE),
    "cut to half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a text": lambda path: path.write_text("This is no database.\n" * 99),
    "noise": lambda path: path.write_bytes(random.Random(1).randbytes(5_000)),
    "all zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "header zeroed": written(0, bytes(100)),
    "page 2 zeroed": written(PAGE, bytes(PAGE)),
    "page 3 zeroed": written(2 * PAGE, bytes(PAGE)),
    "last page zeroed": written(-PAGE, bytes(PAGE)),
    "page 4 all ones": written(3 * PAGE, b"\xff" * PAGE),
    "page size": written(16, b"\x03\xe7"),
    "file format": written(18, b"\x09\x09"),
    "no events": sql("DROP TABLE events"),
    "no runs": sql("DROP TABLE runs"),
    "no column": sql("ALTER TABLE runs DROP COLUMN basis"),
    "endless view": sql(
        "DROP TABLE runs",
        "CREATE VIEW runs AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
        "SELECT x AS id FROM c",
    ),
    "other tables": replaced("CREATE TABLE x (a)", "PRAGMA user_version = 3"),
    "other runs": replaced("CREATE TABLE runs (a)"),
    "version 0": sql("PRAGMA user_version = 0"),
    "version -5": sql("PRAGMA user_version = -5"),
    "schema": sql("UPDATE sqlite_master SET sql = 'nonsense' WHERE name = 'runs'"),
}
# One or all of its rows are not what a journal writes; the others are.
ROWS: dict[str, Edit] = {
    "cut JSON": events("body = '{' WHERE sequence = 2"),
    "a list": events("body = '[1]'"),
    "deep JSON": events(f"body = '{'[' * 100_000}'"),
    "bytes": events("body = x'ff00ff'"),
    "no UTF-8": events("body = CAST(x'ff00ff' AS TEXT)"),
    "infinity": events('body = replace(body, \'"at":\', \'"at":Infinity, "x":\')'),
    "iteration 999": events("body = json_set(body, '$.iteration', 999)"),
    "iteration -1": events("body = json_set(body, '$.iteration', -1)"),
    "huge number": events("body = json_set(body, '$.iteration', 1e300)"),
    "no first event": sql("DELETE FROM events WHERE sequence = 0"),
    "no event": sql("DELETE FROM events"),
    "version of an event": events("version = 'abc'"),
    "later version of an event": events("version = 99"),
    "settings": sql("UPDATE runs SET settings = '{'"),
    "listed settings": sql("UPDATE runs SET settings = '[1]'"),
    "origin": sql("UPDATE runs SET origin = '{}'"),
    "texts for numbers": sql("UPDATE runs SET updated = 'x', iterations = 'y', tokens = 'z'"),
    "infinite numbers": sql("UPDATE runs SET updated = 9e999, score = 9e999, tokens = -9e999"),
    "unknown words": sql("UPDATE runs SET stop_reason = 'x', outcome = x'00ff', basis = 7"),
    "escapes": sql("UPDATE runs SET stop_reason = char(27), outcome = char(27), basis = char(27)"),
    "bytes for texts": sql("UPDATE runs SET name = x'00ff', title = 3, model = 4, task = x'00'"),
    "a trigger that deletes": sql(
        "CREATE TRIGGER x AFTER INSERT ON events BEGIN DELETE FROM events; END"
    ),
}


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal of three runs, to be copied."""
    path = tmp_path_factory.mktemp("journal") / "runs.db"

    async def fill() -> None:
        for number in range(3):
            await refinement(f"Task {number}.").run(journal=Recorder(path, name=f"run{number}"))

    asyncio.run(fill())
    return path


@pytest.fixture
def path(journal: Path) -> Path:
    """The user's journal, with the three runs."""
    path = tables.default_path()
    path.parent.mkdir(parents=True)
    shutil.copyfile(journal, path)
    return path


def listed() -> str:
    parser = argparse.ArgumentParser()
    history.add_arguments(parser)
    return history.history(parser.parse_args([]))


def recorded() -> None:
    async def run() -> None:
        loop = refinement("Another task.")
        await loop.run(journal=Recorder(tables.default_path(), name="another"))
        if loop.error:
            raise loop.error

    asyncio.run(run())


USES: dict[str, Callable[[], Any]] = {
    "list": listed,
    "resume": lambda: Journal().get("run1"),
    "stats": history.stats,
    "record": recorded,
    "forget": lambda: Journal().forget("run0"),
}


@pytest.mark.parametrize("edit", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("first", ["list", "record"])
def test_damage_is_one_sentence_and_nothing_is_lost(path: Path, edit: Edit, first: str) -> None:
    edit(path)
    damaged = path.read_bytes()
    sentences = []
    for use in (first, *USES, "record"):
        try:
            USES[use]()
        except JournalError as error:
            sentences.append(str(error))
        except UsageError:  # the run of that name is in the journal that was set aside
            pass
    aside = [file for file in path.parent.glob("*.db") if file != path]
    assert len(sentences) == len(aside) == 1
    assert aside[0].name in sentences[0]
    assert "a new one begins" in sentences[0]
    # Opening it may have noted the kind of its log in the header, at 18, and nothing else.
    kept = aside[0].read_bytes()
    assert (kept[:18], kept[20:24], kept[100:]) == (damaged[:18], damaged[20:24], damaged[100:])
    assert {one.name for one in Journal().runs()} == {"another"}


@pytest.mark.parametrize("edit", ROWS.values(), ids=ROWS)
def test_a_damaged_row_concerns_its_run_alone(path: Path, edit: Edit) -> None:
    edit(path)
    for use in USES.values():
        try:
            said = use()
        except (JournalError, UsageError) as error:
            said = str(error)
            assert "\n" not in said
        assert "\x1b" not in str(said)
    assert list(path.parent.glob("*damaged*")) == []
    assert "Another task." in listed() or "trigger" in str(edit)


def test_an_emptied_file_begins_anew(path: Path) -> None:
    os.truncate(path, 0)
    assert listed() == "The journal is empty."


def test_a_second_damage_is_set_aside_beside_the_first(path: Path) -> None:
    for _ in range(3):
        path.write_text("This is no database.")
        with pytest.raises(JournalError, match="a new one begins"):
            Journal().runs()
    assert len(list(path.parent.glob("*damaged*"))) == 3


@pytest.mark.parametrize("content", ["", "This is no database."])
def test_the_log_beside_a_damaged_journal_goes_with_it(path: Path, content: str) -> None:
    path.write_text(content)
    Path(f"{path}-wal").write_bytes(b"a log")
    with pytest.raises(JournalError, match="a new one begins"):
        Journal().runs()
    [log] = path.parent.glob("*damaged*-wal")
    assert log.read_bytes() == b"a log"
    assert Journal().runs() == []


def test_a_journal_that_another_process_has_replaced_is_left_alone(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both saw the damage; the one that comes second finds a good journal."""
    assert "being replaced" in tables._set_aside(path)
    assert len(Journal().runs()) == 3


def test_damage_while_a_run_goes_on_ends_it_with_its_text(path: Path) -> None:
    async def run() -> Any:
        loop = refinement("Another task.")

        def damage(event: Any, _: Any) -> None:
            if event.type == "verdict_reached":
                for file in path.parent.iterdir():
                    file.unlink()
                path.write_text("This is no database.")
                recorder.close()

        recorder = Recorder(path, name="another")
        await loop.run(damage, journal=recorder)
        return loop

    loop = asyncio.run(run())
    assert isinstance(loop.error, JournalError)
    assert loop.state.text == "Version 0"
    assert "a new one begins" in loop.state.message


@pytest.mark.parametrize("place", ["a folder", "locked"])
def test_what_is_no_damage_is_not_set_aside(
    path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    if place == "a folder":
        path.unlink()
        path.mkdir()
    else:
        other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(JournalError, match="--no-journal"):
        recorded()
    other.close()
    assert list(path.parent.glob("*damaged*")) == []
