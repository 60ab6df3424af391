"""Files beside the notebook that code names, and what of them code in the sandbox gets."""

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
from ipyrefine.kernel.folder import files_beside, is_in_part, names_files
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


def test_what_code_names_below_the_folder_is_copied(book: Path, subtests: pytest.Subtests) -> None:
    data, all_data = {"data/", "data/x1.csv"}, {"data/", "data/x1.csv", "data/x2.csv"}
    tools = {"tools/__init__.py", "tools/more.py", "tools/most.py"}
    rows: dict[str, set[str]] = {
        "pd.read_csv('bikes.csv')": {"bikes.csv"},
        "pd.read_csv('./bikes.csv')": {"bikes.csv"},
        "NAME = 'bikes.csv'\nopen(NAME)": {"bikes.csv"},
        "open('data/x1.csv')": data,
        "open('HERE/data/x1.csv')": data,
        "HOME = Path('HERE')\n(HOME / 'data').joinpath('x1.csv')": data,
        "Path('data') / 'x1.csv'": data,
        "FOLDER = Path('data')\nFOLDER / 'x1.csv'": data,
        "Path.cwd().joinpath('data', 'x1.csv')": data,
        "os.path.join('data', 'x1.csv')": data,
        "D = 'data'\nopen(f'{D}/x1.csv')": data,
        "D = 'data'\nopen(D + '/x1.csv')": data,
        "pl.read_csv('data/*.csv')": all_data,
        "[open(f'data/x{n}.csv') for n in ns]": all_data,
        "[open(f'HERE/data/x{n}.csv') for n in ns]": all_data,
        "[open(f'{n}') for n in ns]": set(),
        "[open(f'HERE/../{n}.csv') for n in ns]": set(),
        "[open(f'/etc/{n}.conf') for n in ns]": set(),
        "open('out/new.csv', 'w')": {"out/"},
        "open('new.csv', 'w')": set(),
        "import helper": {"helper.py", "bikes.csv", *tools},
        "from tools import more": tools,
        "def f():\n    return open('bikes.csv')": {"bikes.csv"},
        "open('data/../bikes.csv')": {"bikes.csv"},
        "not Python": set(),
    }
    for text, files in rows.items():
        with subtests.test(text):
            found = files_beside(text.replace("HERE", str(book)))
            assert files == found.keys() - {folder.MARKER}


def test_what_is_not_to_be_copied_is_left_out(book: Path) -> None:
    os.mkfifo(book / "pipe")
    with (book / "big.csv").open("wb") as file:
        file.truncate(200 * 2**20)
    door = socket.socket(socket.AF_UNIX)
    door.bind("door")
    door.close()
    for name in (
        *(".env", ".hidden/a.csv", "link.csv", "inner.csv", "up/outside.csv", "password.csv"),
        *("secrets/a.csv", "id_rsa", "ca.pem", "config.ini", "late.csv", "main.py", "pipe"),
        *("door", "big.csv", "../outside.csv", "/etc/passwd", "/"),
    ):
        assert files_beside(f"import main\nopen('{name}')", f"open('{book}/{name}')") == {}, name


def test_a_folder_is_listed_in_full_or_by_a_pattern() -> None:
    for text, in_part in {
        "os.listdir('data')": True,
        "glob.glob('data/*.csv')": False,
        "[*Path('data').glob('*.csv')]": False,
        "[*Path('data').rglob('*.csv')]": True,
        "glob.glob('data/**/*.csv', recursive=True)": True,
        "glob.glob('data/*.txt')": True,
        "glob.glob('data/*')": True,
        "open('data/x1.csv'), open('data/x2.csv'), open('data/notes.txt')": True,
    }.items():
        assert is_in_part("data", ["x1.csv", "x2.csv"], text) == in_part, text
        whole = ["x1.csv", "x2.csv", "notes.txt"]
        assert not is_in_part("data", whole, text.replace("rglob", "glob"))
        assert not is_in_part("nowhere", [], text)


@pytest.mark.parametrize("where", ["home", "/"])
def test_nothing_is_copied_from_the_home_folder_and_the_root(
    book: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "home":
        monkeypatch.setenv("HOME", str(book))
    else:
        monkeypatch.chdir("/")
    text = f"open('bikes.csv'), open('{book}/bikes.csv'), open('etc/hostname')"
    assert files_beside(text) == {}
    assert not names_files(text)


def test_files_together_stay_below_the_bound(book: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MAX_BYTES", 12)
    found = files_beside("open('data/x1.csv'), open('data/x2.csv')")
    assert [name for name in found if name.endswith(".csv")] == ["data/x1.csv"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("open('bikes.csv').read()", "'a,b\\n1,2\\n'"),
        ("import pandas\nint(pandas.read_csv('bikes.csv').b.sum())", "2"),
        ("open('HERE/data/x1.csv').read()", "'a,b\\n1,2\\n'"),
        ("from pathlib import Path\nlen((Path('HERE') / 'bikes.csv').read_text())", "8"),
        ("import glob\nsorted(glob.glob('data/*.csv'))", "['data/x1.csv', 'data/x2.csv']"),
        ("from pathlib import Path\nlen([*Path('data').glob('*.csv')])", "2"),
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
async def test_a_cell_reads_the_files_that_it_names(book: Path, text: str, shown: str) -> None:
    evidence = await run(text.replace("HERE", str(book)))
    assert evidence.passed is True, evidence.shows
    assert evidence.outputs[-1].text == shown  # type: ignore[union-attr]
    assert evidence.computed
    assert (book / "bikes.csv").read_text() == "a,b\n1,2\n"
    assert not (book / "new.txt").exists()
    assert [*(book / "out").iterdir()] == []


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_a_database_is_read_and_written_as_a_copy(book: Path, mode: str) -> None:
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
    assert "x.db" in files_beside("create_engine('sqlite:///x.db')")
    database.close()


async def test_examples_and_tests_read_the_files_that_the_text_names() -> None:
    text = "import helper\ndef f():\n    return open('bikes.csv').read()[0], helper.f()"
    task = Task(text="`f() == ('a', 4)`", form="code")
    space: dict[str, Any] = {"suite": "def test_f():\n    assert f() == ('a', 4)"}
    for check in resolve(["examples", "tests:suite"], space):
        evidence = await check(text, task)
        assert evidence.passed is True, evidence.shows
        assert evidence.computed


async def test_tests_of_a_module_beside_the_notebook_try_the_text_in_its_place() -> None:
    space = {"suite": "from helper import f\ndef test_f():\n    assert f() == 5"}
    (check,) = resolve(["tests:suite"], space)
    assert (await check("def f(): return 5", TASK)).passed is True


def test_a_result_counts_as_computed_where_only_a_module_reads_the_file() -> None:
    assert Copies().may_compute("import helper\nx = helper.f()")
    assert not Copies().may_compute("import json\nx = 'nothing.csv'")
