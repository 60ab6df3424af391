"""The suite of a run outlives it: as a file for pytest, and as a cell below the text."""

import re
import subprocess
import sys
from typing import Any

import pytest
from kit import READY
from shells import Front

from ipyrefine.core.model import Clarification, Setup, Task
from ipyrefine.core.points import with_ids
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.table import Point
from ipyrefine.core.testing import read_tests
from ipyrefine.errors import UsageError
from ipyrefine.session.export import export, suite_source

TASK = """\
Return the mean of some numbers. None is left out.

mean([1, 3]) == 2
mean([0.1, 0.2]) returns 0.15
assert mean([5])

```
>>> print(mean([2]))
2.0
>>> data = [4, None]
>>> mean(data)
4.0
>>> mean([])
Traceback (most recent call last):
    ...
ValueError: nothing to average
```
"""
TEXT = """\
%%time
class NothingHere(ValueError):
    pass


def mean(numbers):
    if not numbers:
        raise ValueError("nothing to average")
    known = [n for n in numbers if n is not None]
    if not known:
        raise NothingHere
    return sum(known) / len(known)
"""
CONFIRMED = (
    Clarification(call="mean([None])", gives="raises NothingHere"),
    Clarification(call="mean(['a'])", gives="raises TypeError"),
    Clarification(call="mean(big)", gives="2", setup="big = [2] * 9"),
)
TESTS = '''
import pytest
from solution import mean
import math

@pytest.mark.parametrize("n", [1, 2])
def test_one(n):
    """None is left out."""
    assert mean([n, None]) == n

@pytest.mark.asyncio
async def test_later():
    """Return the mean of some numbers."""
    assert math.isclose(mean([1, 2]), 1.5)

def test_open():
    """Nobody said this."""
    assert mean([True]) is True

def test_dropped():
    """Return the mean of some numbers."""
    assert mean([0]) == 1
'''


MODULE = '''
import pytest
CASES = [1, 2]

@pytest.fixture
def known():
    return [1, 3]

@pytest.mark.parametrize("n", CASES)
def test_one(n):
    """None is left out."""
    assert mean([n, None]) == n

def test_known(known):
    """Return the mean of some numbers."""
    assert mean(known) == 2
'''


def rows(*tests: Point) -> dict[str, Point]:
    return {one.id: one for one in with_ids((), tests)}


def kept(text: str = TEXT, confirmed: tuple[Clarification, ...] = CONFIRMED, **task: Any) -> Run:
    first, later, open_one, dropped = read_tests(TESTS)
    open_one, dropped = open_one.replace(blocking=False), dropped.replace(dropped="you")
    asked = Task(**{"text": TASK, "form": "code", "clarifications": confirmed, **task})
    setup = Setup(task=asked, model="m", judge="gpt-5\n# x")
    points = rows(first, later, open_one, dropped)
    return Run(setup=setup, iterations=(Iteration(number=0, text=text),), points=points)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What pytest says of the files of four runs, by file and by the tests that fail."""
    folder = tmp_path_factory.mktemp("suites")
    right = export(kept(), folder / "test_right.py").read_text()
    (folder / "test_wrong.py").write_text(right.replace("/ len(known)", "/ len(numbers)"))
    export(kept().replace(points=rows(*read_tests(MODULE))), folder / "test_whole_module.py")
    text = right[right.index("class NothingHere") : right.index("import pytest")]
    (folder / "stats.py").write_text(text)
    [line] = [one for one in right.splitlines() if "from MODULE import" in one]
    import_line = line[line.index("from MODULE") :].replace("MODULE", "stats")
    imported = right.replace(text, import_line + "\n\n\n").replace(line + "\n", "")
    (folder / "test_imported.py").write_text(imported)
    command = [sys.executable, "-m", "pytest", "-qrA", "--tb=no", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    outcome = r"(?m)^(PASSED|FAILED|ERROR) (\w+)\.py(?:::([\w.:]+))?"
    found = re.findall(outcome, done.stdout)
    assert found, done.stdout
    return found


@pytest.mark.parametrize(("file", "passed"), [
    ("right", 12),  # six stated, three confirmed, three of the critic's
    ("imported", 12),
    ("whole_module", 12),  # with three of the critic's: fixtures and constants come along
])  # fmt: skip
def test_the_file_passes_under_pytest_on_the_text_and_where_it_is_imported(outcomes, file, passed):
    assert [how for how, name, _ in outcomes if name == f"test_{file}"] == ["PASSED"] * passed


def test_the_file_fails_on_another_text(outcomes):
    failed = {test for how, name, test in outcomes if name == "test_wrong" and how != "PASSED"}
    assert {"test_stated_5", "test_one"} <= failed


def test_each_test_names_its_source_in_a_comment_that_stays_one():
    code = suite_source(kept(), "file")
    sources = [one for one in code.splitlines() if one.startswith("# ")]
    assert sources == [
        "# The text. To test a module instead, write: from MODULE import NothingHere, mean",
        *["# Stated in the task"] * 6,
        *["# Confirmed by you"] * 3,
        *["# Written by gpt-5 # x from the task's words"] * 2,
    ]
    assert "solution" not in code
    assert "test_open" not in code
    assert "test_dropped" not in code


def test_the_cell_asserts_in_the_notebook_and_leaves_its_variables_alone():
    code = suite_source(kept(), "cell")
    assert "assert mean([1, 3]) == 2\n" in code
    namespace: dict[str, Any] = {"big": "mine"}
    exec(kept().text.removeprefix("%%time\n"), namespace)
    exec(code, namespace)
    assert namespace["big"] == "mine"
    namespace["mean"] = lambda numbers: 2
    with pytest.raises(AssertionError):
        exec(code, namespace)


def test_a_run_without_a_suite_says_so():
    for run in (kept(text=""), kept(language="java")):
        with pytest.raises(UsageError, match="no examples"):
            suite_source(run)


REPLY = "```python\n{}\n```"
CELL = "%%refine -p code --set as=task\nWrite f. f(1) == 2"
BELOW = "# Stated in the task\ndef test_stated_1():\n    assert f(1) == 2\n\n\ntest_stated_1()\n"


def test_the_cell_says_what_only_pytest_can_run():
    cell = suite_source(kept().replace(points=rows(*read_tests(MODULE))), "cell")
    assert "Only pytest can run test_one" in cell
    assert "CASES" not in cell


@pytest.mark.parametrize("form", ["cell", "file"])
def test_a_test_of_what_a_cell_ends_in_is_named_and_left_to_checks_of_ours(form):
    test = read_tests("def test_it():\n    assert answer == 3")
    source = suite_source(kept().replace(points=rows(*test)), form)
    assert "# Only a check of ours can run test_it:" in source
    assert "answer ==" not in source


def test_a_command_puts_them_into_a_cell_below(monkeypatch):
    front = Front(monkeypatch, [REPLY.format("def f(x): return x + 1"), READY])
    front.run(CELL, "home")
    assert "in a new cell below the text" in front.run("%refine tests below", "later")
    [put] = front.puts
    assert (put["cell_id"], put["op"]) == ("home", "insert")
    assert put["text"] == BELOW
