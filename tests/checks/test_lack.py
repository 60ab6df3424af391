"""`run` on code that needs what only the notebook has: not run, and never a pass or a fault."""

from pathlib import Path

import pytest

from ipyrefine.checks import resolve
from ipyrefine.core.model import Evidence, Task
from ipyrefine.kernel.variables import Variables, find
from ipyrefine.sandbox.sandbox import run_python

TASK = Task(text="Run it.", form="code")


async def run(text: str, variables: Variables | None = None) -> Evidence:
    (check,) = resolve(["run seconds=60 decisive"], {}, variables=variables)
    return await check(text, TASK)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The notebook's folder, with data, a helper and a place for results."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("price\n1\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "helper_here.py").write_text("RATE = 2\n")


WANTS = {
    "open('data.csv').read()": "it reads data.csv",
    "import pandas\npandas.read_csv('data.csv')": "it reads data.csv",
    "from pathlib import Path\n(Path.cwd() / 'data.csv').read_text()": "it reads data.csv",
    "import os\nos.listdir('out')": "it uses out",
    "open('out/x.csv', 'w')": "it writes out/x.csv",
    "import helper_here": "it imports helper_here from your folder",
}


LACKS = {
    **{text: f"{wants}, which checked code cannot reach" for text, wants in WANTS.items()},
    "name = input('Name? ')": "it asks for input, which checked code cannot get",
    "get_ipython().system('ls')": "it uses IPython itself, which checked code does not have",
    "import asyncio\nawait asyncio.sleep(0)": (
        "it awaits outside a function, which only a notebook does"
    ),
    "files = !ls\nlen(files)": "it needs files, which only a line for IPython gives",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", LACKS)
async def test_code_that_needs_a_file_of_the_notebook_or_the_notebook_itself_is_not_judged(
    text: str,
) -> None:
    evidence = await run(text)
    assert (evidence.passed, evidence.detail) == (None, f"Not run: {LACKS[text]}.")


FAULTS = {
    "open('date.csv').read()": "FileNotFoundError",
    "import helper_her": "ModuleNotFoundError",
    "raise FileNotFoundError('there is no e.g. here')": "FileNotFoundError",
    "raise EOFError('Ran out of input')": "EOFError",
    "print('socket.gaierror: [Errno -3] Temporary failure in name resolution')\n1 / 0": (
        "ZeroDivisionError"
    ),
    "def f():\n    await g()": "SyntaxError",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("text", FAULTS)
async def test_a_fault_of_the_codes_own_stays_one(text: str) -> None:
    evidence = await run(text)
    assert evidence.passed is False
    assert FAULTS[text] in evidence.detail


@pytest.mark.parametrize(
    "text",
    [
        "import urllib.request\nurllib.request.urlopen('http://example.com')",
        "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=3)",
    ],
)
async def test_code_that_needs_the_network_is_not_judged_where_there_is_none(text: str) -> None:
    if not (await run_python("")).protection.network:
        pytest.skip("the sandbox has a network here")
    evidence = await run(text)
    assert evidence.passed is None
    assert evidence.detail == "Not run: it uses the network, which checked code cannot reach."


async def test_code_that_needs_a_secret_is_not_judged() -> None:
    used = find({"api_key": "abc", "n": 1}, draft="send(api_key)")
    evidence = await run("print(api_key)", used)
    assert evidence.passed is None
    assert evidence.detail == "Not run: the code needs api_key, and it looks like a secret."
    assert "api_key" in used.left_out
    assert used.copies.notes == ()


async def test_a_pass_says_on_copies_of_what_it_ran() -> None:
    space = {"xs": [1, 2], "math": __import__("math"), "other": 3}
    named = Variables(space)
    assert (await run("print(1)", named)).detail.startswith("It runs without an error.")
    evidence = await run("xs.append(math.pi)\nprint(other)", named)
    assert evidence.detail.splitlines()[0] == "It runs on copies of xs and other."
    assert space["xs"] == [1, 2]
