"""`run` on code that needs what only the notebook has: not run, and never a pass or a fault."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.core.table import Result
from ipyrefine.kernel.variables import Variables, find
from ipyrefine.sandbox.sandbox import run_python

TASK = Task(text="Run it.", form="code")


async def run(text: str, variables: Variables | None = None) -> Result:
    (check,) = resolve(["run seconds=60 decisive"], {}, variables=variables)
    return await check(text, TASK)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebook's folder, beside a file that lies outside of it."""
    book = tmp_path / "book"
    book.mkdir()
    monkeypatch.chdir(book)
    monkeypatch.setenv("SETTING_HERE", "5")
    (tmp_path / "outside.csv").write_text("price\n1\n")
    (tmp_path / "outside").mkdir()
    with closing(sqlite3.connect(tmp_path / "outside.db")) as database:
        database.execute("create table t (a)")
    (book / "data").mkdir()
    (book / "data" / "a.csv").write_text("price\n1\n")
    (book / "data" / "b.csv").write_text("price\n1\n")
    (tmp_path / "of_home.csv").write_text("price\n1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    (book / "secret.txt").write_text("word")
    (book / "maker_here.py").write_text("api_key = 'sk-proj-Ab12Cd34Ef56Gh78Ij90Kl12Mn34'\n")


ABOVE = "above this folder. --set above=1 lets checked code read there"
CLOSED = "it is hidden, holds a secret, or leads out of the folder"
IPYTHON = "which checked code does not have"
LACKS = {
    ABOVE: {
        "open('../outside.csv').read()": "it uses ../outside.csv",
        "import pandas\npandas.read_csv('../outside.csv')": "it uses ../outside.csv",
        "try:\n    open('../outside.csv')\nexcept OSError:\n    print(0)": "it uses ../outside.csv",
        "open('../outside/x.csv', 'w')": "it uses ../outside,",
        "import sqlite3\nsqlite3.connect('../outside.db').execute('select a from t')": (
            "it uses ../outside.db"
        ),
        "from pathlib import Path\n(Path.home() / 'of_home.csv').read_text()": (
            "it uses ../of_home.csv"
        ),
    },
    CLOSED: {
        "import os\nopen(os.path.abspath('secret.txt'))": "it uses secret.txt",
        "import maker_here": "it uses maker_here.py",
    },
    IPYTHON: {
        "get_ipython().system('ls')": "it uses IPython itself",
        "%%bash\nls": "its first line is for IPython",
    },
    "which checked code cannot get": {
        "name = input('Name? ')": "it asks for input",
    },
    "which only a line for IPython gives": {"files = !ls\nlen(files)": "it needs files"},
    "which only IPython runs": {
        "!pip install foo_there\nimport foo_there": "it may need what !pip install foo_there does",
        "!wget -q https://a.example/b.csv\nopen('b.csv')": "it may need what !wget",
        "%run setup.py\nprint(made)": "it may need what %run setup.py does",
        "%pip install foo\nraise ImportError('no foo')": "it may need what %pip install foo does",
        "%env MODE_HERE=x\nimport os\nos.environ['MODE_HERE']": "it may need what %env MODE_HERE=x",
        "%cd data\nopen('a1.csv')": "it may need what %cd data does",
    },
    "environment variable": {"import os\nos.environ['SETTING_HERE']": "it reads SETTING_HERE"},
    "which can do something else in the notebook": {
        "import subprocess\nsubprocess.run(['sh', '-c', 'exit 3'], check=True)": "it runs sh",
    },
}
EACH = [(text, lacks, why) for why, rows in LACKS.items() for text, lacks in rows.items()]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("text", "lacks", "why"), EACH)
async def test_code_that_needs_what_only_the_notebook_has_is_not_judged(text, lacks, why):
    evidence = await run(text)
    assert (evidence.passed, evidence.not_run, evidence.rows) == (None, True, ())
    said = evidence.shows.replace(os.environ["HOME"], "HOME")
    assert said.startswith(f"Not run: {lacks}")
    assert why in said


async def test_a_path_outside_of_the_folder_is_never_said_to_be_missing(folder):
    # It can be seen where Python itself is in a folder above, which stays in sight.
    evidence = await run("import os\nassert os.path.exists('../outside.csv')")
    assert evidence.passed is not False


FAULTS = {
    "open('date.csv').read()": "FileNotFoundError",
    "import pandas\npandas.read_csv('data/c.csv')": "FileNotFoundError",
    "raise FileNotFoundError('there is no e.g. here')": "FileNotFoundError",
    "print('socket.gaierror: [Errno -3] Temporary failure in name resolution')\n1 / 0": (
        "ZeroDivisionError"
    ),
    "def f():\n    await g()": "SyntaxError",
    "import os\nos.environ['SETTING_NOWHERE']": "KeyError",
    "import subprocess\nsubprocess.run(['no-such-command'])": "FileNotFoundError",
    "import sqlite3\nsqlite3.connect('new.db').execute('select a from t')": "OperationalError",
    "%%time\nprint(nobody)": "NameError",
    "!ls\n1 / 0": "ZeroDivisionError",
    "if True: !ls": "SyntaxError",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", FAULTS)
async def test_a_fault_of_the_codes_own_stays_one(text):
    evidence = await run(text)
    assert evidence.passed is False
    assert FAULTS[text] in evidence.shows


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("import httpx2\nhttpx2.get('https://a.example/b').json()", "a.example"),
        ("import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=3)", "192.0.2.1"),
        (
            "import urllib.request\npage = ''\ntry:\n"
            "    page = urllib.request.urlopen('http://a.example').read()\n"
            "except OSError:\n    pass\npage[0]",
            "a.example",
        ),
    ],
)
async def test_code_that_needs_the_network_is_not_judged_where_there_is_none(text, host):
    if not (await run_python("")).protection.network:
        pytest.skip("the sandbox has a network here")
    evidence = await run(text)
    said = f"Not run: it uses the network ({host}), which checked code cannot reach."
    assert (evidence.passed, evidence.shows) == (None, said)


# A cell is run as the notebook runs it

SLOW = "import asyncio\nasync def slow(n=0):\n    await asyncio.sleep(n)\n    return n\n"
AWAITS = f"""
{SLOW}
import threading
async def twice():
    yield 1
    yield 2
async for n in twice():
    pass
lock = asyncio.Lock()
async with lock:
    held = lock.locked()
many = twice()
found = []
thread = threading.Thread(target=lambda: found.append(asyncio.run(slow())))
thread.start()
thread.join()
task = asyncio.create_task(slow(100))
shown = [await asyncio.sleep(0, 7), n, [n async for n in many], held, found]
shown += [await slow(), await asyncio.gather(slow(), slow(0.01))]
shown + [asyncio.get_running_loop().is_running(), asyncio.get_event_loop().is_running()]
"""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (AWAITS, "[7, 2, [1, 2], True, [0], 0, [0, 0.01], True, True]"),
        ("import asyncio\nasyncio.get_event_loop().is_running()", "True"),
        ("%time x = 5\nx + 1", "6"),
        ("%%time\nx = 5\nx", "5"),
    ],
)
async def test_a_cell_runs_inside_a_loop_and_may_await(text, shown):
    evidence = await run(text)
    assert evidence.passed is True, evidence.shows
    assert evidence.outputs[-1].text == shown  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "start",
    [
        "asyncio.run(slow())",
        "asyncio.get_event_loop().run_until_complete(slow())",
    ],
)
async def test_a_second_loop_fails_as_in_a_notebook(start):
    evidence = await run(f"{SLOW}{start}")
    assert evidence.passed is False
    assert "RuntimeError: " in evidence.shows
    assert "never awaited" not in evidence.shows


async def test_a_second_loop_runs_where_the_kernel_lets_loops_nest(
    monkeypatch,
):
    pytest.importorskip("nest_asyncio2")
    monkeypatch.setattr("asyncio._nest_patched", True, raising=False)
    evidence = await run(f"{SLOW}asyncio.run(slow())")
    assert evidence.passed is True, evidence.shows


@pytest.mark.parametrize(
    "text",
    ["while True: pass", "import time\ntime.sleep(60)", "import asyncio\nawait asyncio.sleep(60)"],
    ids=["it runs", "it waits", "it awaits"],
)
async def test_a_cell_that_does_not_end_is_stopped_and_no_later_text_is_tried(text):
    (check,) = resolve(["run seconds=0.5"], {})
    stopped, later = await check(text, TASK), await check("1 / 0", TASK)
    assert (stopped.passed, stopped.not_run) == (None, True)
    assert stopped.shows == (
        "Stopped: it did not end in 0.5 seconds. To allow more: -c 'run seconds=2'."
    )
    assert (later.passed, later.not_run) == (None, True)
    assert later.shows.startswith("Not run: an earlier draft did not end in 0.5 seconds.")
    (anew,) = resolve(["run"], {})
    assert (await anew("1 / 0", TASK)).passed is False


NEEDS = {
    "open('../outside.csv').read()": "it uses ../outside.csv",
    "input()": "it asks for input",
    "__import__('os').environ['SETTING_HERE']": "it reads SETTING_HERE",
    "__import__('httpx2').get('http://a.example').text": "it uses the network",
    # What a text misses without the notebook is missed.
    "n or input()": "",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["examples", "tests:suite"])
@pytest.mark.parametrize("body", NEEDS)
async def test_examples_and_tests_of_what_only_the_notebook_has_are_not_judged(name, body):
    (check,) = resolve([name], {"suite": "def test_f():\n    assert f(1) == 'x'"})
    evidence = await check(f"def f(n):\n    return {body}", Task(text="`f(1) == 'x'`", form="code"))
    assert evidence.passed is (None if NEEDS[body] else False)
    assert evidence.shows.startswith(f"Not run: {NEEDS[body]}" if NEEDS[body] else "")


async def test_code_that_needs_a_secret_is_not_judged():
    used = find({"api_key": "abc", "n": 1}, draft="send(api_key)")
    evidence = await run("print(api_key)", used)
    assert evidence.passed is None
    assert evidence.shows == "Not run: the code needs api_key, and it looks like a secret."
    assert "api_key" in used.left_out


async def test_a_pass_says_on_copies_of_what_it_ran():
    space = {"xs": [1, 2], "math": __import__("math"), "other": 3}
    named = Variables(space)
    assert (await run("print(1)", named)).shows.startswith("It runs without an error.")
    evidence = await run("xs.append(math.pi)\nprint(other)", named)
    assert evidence.shows.splitlines()[0] == "It runs on copies of xs, other."
    assert space["xs"] == [1, 2]


async def test_copies_that_leave_too_little_memory_are_no_fault_of_the_code():
    text = "y = bytearray(4 * 10**9)\nx"
    assert (await run(text)).failed
    evidence = await run(text, Variables({"x": [1]}))
    assert evidence.passed is None
    assert evidence.shows.startswith("Nothing can be said in the sandbox: MemoryError")


async def test_a_library_that_aborts_for_want_of_memory_is_no_fault_of_the_code():
    text = "import os\nos.write(2, b'memory allocation of 64 bytes failed')\nos.abort()\nx"
    assert (await run(text.replace("memory", "the"), Variables({"x": [1]}))).failed
    evidence = await run(text, Variables({"x": [1]}))
    assert evidence.passed is None
    assert evidence.shows == "Nothing can be said in the sandbox: It was killed by signal 6."
