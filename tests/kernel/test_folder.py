"""The notebook's folder as code in the sandbox finds it."""

import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.core.table import Result
from ipyrefine.kernel import folder
from ipyrefine.kernel.folder import Folder, look
from ipyrefine.kernel.variables import Copies

TASK = Task(text="Run it.", form="code")
WORD = "hunter2" + "xx7"


async def run(text: str) -> Result:
    (check,) = resolve(["run seconds=60"], {})
    return await check(text, TASK)


@pytest.fixture(autouse=True)
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The notebook's folder."""
    book = tmp_path / "book"
    for name in ("data", "out", ".hidden", "secrets", "tools"):
        (book / name).mkdir(parents=True)
    monkeypatch.chdir(book)
    for name in ("bikes.csv", "data/x1.csv", "data/x2.csv", "data/notes.txt", ".hidden/a.csv"):
        (book / name).write_text("a,b\n1,2\n")
    for name in (".env", "../outside.csv", "secrets/a.csv", "password.csv", "id_rsa", "ca.pem"):
        (book / name).write_text("a\n")
    (book / "config.ini").write_text(f"[db]\npassword = {WORD}\n")
    (book / "late.csv").write_bytes(
        b"a,b\n" * 500_000 + b"sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56\n"
    )
    (book / "link.csv").symlink_to("/etc/passwd")
    (book / "inner.csv").symlink_to("bikes.csv")
    (book / "up").symlink_to(tmp_path)
    (book / "helper.py").write_text("import tools.more\nNAME = 'bikes.csv'\ndef f(): return 4\n")
    (book / "tools" / "__init__.py").write_text("")
    (book / "tools" / "more.py").write_text("from . import most\n")
    (book / "tools" / "most.py").write_text("")
    (book / "main.py").write_text("")
    return book


CLOSED = {
    *(".env", ".hidden", ".hidden/a.csv", "password.csv", "secrets", "secrets/a.csv"),
    *("id_rsa", "ca.pem", "config.ini", "link.csv", "up"),
}


def test_what_is_hidden_or_secret_or_leads_out_is_closed(book):
    os.mkfifo(book / "pipe")
    door = socket.socket(socket.AF_UNIX)
    door.bind("door")
    door.close()
    (book / "other.txt").hardlink_to(book / ".env")
    found = look()
    assert found.closed.keys() == CLOSED | {"pipe", "door", "other.txt"}
    assert found.states.keys() == {
        *("bikes.csv", "data/x1.csv", "data/x2.csv", "data/notes.txt", "late.csv", "helper.py"),
        *("tools/__init__.py", "tools/more.py", "tools/most.py", "main.py"),
    }
    assert found.changed() == []
    (book / "bikes.csv").write_text("a\n")
    (book / "data" / "x1.csv").unlink()
    assert found.changed() == ["bikes.csv", "data/x1.csv"]


def test_what_python_runs_from_is_open_though_it_is_hidden(book, monkeypatch):
    for name in (".local/lib/more", ".venv/lib"):
        (book / name).mkdir(parents=True)
        (book / name / "a.py").write_text("")
    (book / ".local/share").write_text("")
    monkeypatch.syspath_prepend(str(book / ".local/lib"))
    monkeypatch.setattr("sys.prefix", str(book / ".venv"))
    found = look()
    assert {*found.own} == {".local/lib", ".venv"}
    assert found.closed.keys() == CLOSED | {".local/share"}


def test_a_folder_with_too_much_in_it_is_closed(book, monkeypatch):
    monkeypatch.setattr(folder, "_MOST", len(os.listdir()) + 1)
    found = look()
    assert [path for path, kind in found.closed.items() if kind == "unread"] == [
        "data",
        "out",
        "tools",
    ]
    monkeypatch.setattr(folder, "_MOST", 5)
    assert look() == Folder()


def test_nothing_is_shown_of_the_root(monkeypatch):
    monkeypatch.chdir("/")
    assert look() == Folder()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("open('bikes.csv').read()", "'a,b\\n1,2\\n'"),
        ("import pandas\nint(pandas.read_csv('bikes.csv').b.sum())", "2"),
        ("open('HERE/data/x1.csv').read()", "'a,b\\n1,2\\n'"),
        ("from pathlib import Path\nlen((Path('HERE') / 'bikes.csv').read_text())", "8"),
        ("import glob\nsorted(glob.glob('data/*.csv'))", "['data/x1.csv', 'data/x2.csv']"),
        ("from pathlib import Path\nlen([*Path('data').glob('*.csv')])", "2"),
        (
            "from pathlib import Path\nsorted(one.name for one in Path().rglob('x*.csv'))",
            "['x1.csv', 'x2.csv']",
        ),
        ("import os\nos.path.getsize('.env'), os.path.exists('.hidden/b.csv')", "(2, False)"),
        ("import os\nsorted(os.listdir('data'))", "['notes.txt', 'x1.csv', 'x2.csv']"),
        ("import os\nos.chdir('data')\nlen(open('x1.csv').read())", "8"),
        ("import os\nos.chdir('HERE/data')\nlen(open('HERE/bikes.csv').read())", "8"),
        (
            "import importlib.metadata as m\nlen(open('bikes.csv').read()), m.version('pip') > ''",
            "(8, True)",
        ),
        ("import os\nos.path.exists('bikes.csv')", "True"),
        ("import helper\nhelper.f()", "4"),
        ("from helper import f\nf()", "4"),
        ("open('out/a.txt', 'w').write('abc')\nopen('out/a.txt').read()", "'abc'"),
        ("from pathlib import Path\nPath('new.txt').write_text('abc')", "3"),
        ("open('bikes.csv', 'w').write('gone')\nopen('bikes.csv').read()", "'gone'"),
    ],
)
async def test_a_cell_finds_the_folder_and_changes_nothing_in_it(book, text, shown):
    evidence = await run(text.replace("HERE", str(book)))
    assert evidence.passed is True, evidence.shows
    assert evidence.outputs[-1].text == shown  # type: ignore[union-attr]
    assert evidence.computed
    assert (book / "bikes.csv").read_text() == "a,b\n1,2\n"
    assert not (book / "new.txt").exists()
    assert [*(book / "out").iterdir()] == []


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_a_database_is_read_and_written_as_a_copy(book, mode):
    database = sqlite3.connect("x.db")
    database.execute(f"pragma journal_mode={mode}")
    database.execute("create table t (a)")
    database.execute("insert into t values (1)")
    database.commit()
    evidence = await run(
        "import sqlite3\nc = sqlite3.connect('x.db')\nc.execute('insert into t values (2)')\n"
        "c.commit()\nc.execute('select a from t').fetchall()"
    )
    assert evidence.outputs[-1].text == "[(1,), (2,)]"  # type: ignore[union-attr]
    assert database.execute("select a from t").fetchall() == [(1,)]
    database.close()


async def test_examples_and_tests_read_files():
    text = "import helper\ndef f():\n    return open('bikes.csv').read()[0], helper.f()"
    task = Task(text="`f() == ('a', 4)`", form="code")
    space: dict[str, Any] = {"suite": "def test_f():\n    assert f() == ('a', 4)"}
    for check in resolve(["examples", "tests:suite"], space):
        evidence = await check(text, task)
        assert evidence.passed is True, evidence.shows
        assert evidence.computed


async def test_tests_of_a_module_beside_the_notebook_try_the_text_in_its_place():
    space = {"suite": "from helper import f\ndef test_f():\n    assert f() == 5"}
    (check,) = resolve(["tests:suite"], space)
    assert (await check("def f(): return 5", TASK)).passed is True


def test_a_result_counts_as_computed_where_only_a_module_reads_the_file():
    assert Copies().may_compute("import helper\nx = helper.f()")
    assert not Copies().may_compute("import json\nx = 'nothing.csv'")
