"""`tests:NAME`: pytest tests of the user's, run on the text; what they and it may do."""

from typing import Any

import pytest

from ipyrefine.checks import resolve
from ipyrefine.checks.tests import Tests
from ipyrefine.core.model import Task
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError

TASK = Task(text="Write inc.")
INC = "def inc(n):\n    return n + 1\n"
WRONG = "def inc(n): return n\n"
SUITE = "def test_inc(): assert inc(1) == 2\ndef test_two(): assert inc(2) == 3\n"
SOURCE = """
import unittest
from inc_module import inc as imported


@pytest.mark.parametrize("n", [1, 2])
def test_up(n):
    assert inc(n) == imported(n) == n + 1


def test_type():
    assert isinstance(inc(1), float)


@pytest.mark.skip
def test_later():
    assert False


class MoreTests(unittest.TestCase):
    def test_it(self): self.assertEqual(inc(1), 3)
"""


def check_inc():
    assert inc(1) == 2, "one up"  # type: ignore[name-defined]  # noqa: F821


async def outcome(source: Any, text: str = INC, seconds: float = 20) -> Result:
    return await Tests(source, seconds=seconds)(text, TASK)


async def test_every_test_is_listed_with_its_line_and_the_score_is_the_part_that_passes():
    evidence = await outcome(SOURCE)
    assert (evidence.passed, evidence.score) == (False, 2 / 4)
    first, *others = evidence.shows.splitlines()
    assert first.startswith("test_type: assert False")
    assert "isinstance(2, float)" in first
    assert "(line 12 of the tests)" in first
    assert "test_up[1]: passed" in others
    assert "test_later: skipped, unconditional skip" in others
    assert "MoreTests::test_it: AssertionError: 2 != 3 (line 21 of the tests)" in others
    assert others[-1] == "2 of 4 tests pass. 1 skipped."


@pytest.mark.parametrize("name", ["text", "function", "functions", "file"])
async def test_tests_come_from_a_text_a_function_functions_or_a_file(name, tmp_path):
    file = tmp_path / "test_inc.py"
    file.write_text("import shop.inc\nfrom shop.inc import inc\ndef test_it(): assert inc(1) == 2")
    space = {
        "text": "def test_it(): assert inc(1) == 2",
        "function": check_inc,
        "functions": [check_inc],
    }
    (check,) = resolve([f"tests:{file if name == 'file' else name}"], space)
    assert (await check(INC, TASK)).score == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def inc(n): return n +", "The code does not load: SyntaxError: invalid syntax (line 1)"),
        ("1 / 0", "The code does not load: ZeroDivisionError: division by zero (line 1)"),
        ("def inc(n):\n    while True: pass", "was not reached. A test did not end within 0.5"),
        ("def inc(n):\n    import os; os.kill(os.getpid(), 11)", "killed by signal 11"),
        ("def inc(n): return [0] * 10**12", "MemoryError"),
    ],
)
async def test_a_text_that_breaks_is_evidence_against_itself(text, message):
    evidence = await outcome("def test_it(): assert inc(1) == 2", text, seconds=2)
    assert evidence.passed is False
    assert message in evidence.shows


BARE = """\
# Check the small ones
values = [1, 2]
assert inc(1) == 2, "one"
### BEGIN HIDDEN TESTS
assert inc(2) == 9
stack = Stack()
stack.push(1)
assert stack.pop() == 1
stack.push(inc(2))
assert stack.pop() == 3
for value in values:
    assert inc(value) == value + 1
assert_equal(inc(3), 4)
with pytest.raises(TypeError):
    inc("a")
### END HIDDEN TESTS
"""
STACK = """\
class Stack(list):
    push = list.append

def inc(n): return n + 1

def assert_equal(a, b): assert a == b
"""


async def test_statements_that_assert_are_a_test_each_and_run_in_their_order():
    evidence = await outcome(BARE, STACK)
    assert evidence.passed is False
    assert evidence.tallies == {"test": (6, 7)}
    assert evidence.shows.splitlines()[0] == "test_line_5: assert 3 == 9 + where 3 = inc(2)"
    assert "test_line_8: passed" in evidence.shows


@pytest.mark.parametrize("source", ["assert inc(1) == 2", "check = 2\nassert inc(1) == check"])
async def test_a_text_that_breaks_bare_asserts_misses_all_of_them(source):
    evidence = await outcome(source, "def dec(n): return n - 1")
    assert evidence.passed is False
    assert "NameError" in evidence.shows


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "no variable and no readable file"),
        ("number", "not a int"),
        ("empty", "holds no test"),
        ("broken", r"is not Python: .* \(line 1\)"),
    ],
)
def test_what_holds_no_tests_is_refused_before_anything_runs(name, message):
    space = {"number": 3, "empty": "x = 1", "broken": "def test(:"}
    with pytest.raises(UsageError, match=message):
        resolve([f"tests:{name}"], space)


# Whose skips count, and what ends a run early


# What a text does that is no pass, whatever it gives elsewhere.
NO_PASS = {
    "skips when loaded": "import pytest; pytest.skip('x', allow_module_level=True)",
    "exits at the last test": (
        "import os\ndef inc(n):\n    if n == 2: os._exit(0)\n    return n + 1"
    ),
    "exits in a thread": (
        "import os, threading\nthreading.Timer(0.05, os._exit, [0]).start()\n"
        "def inc(n):\n    while True: pass"
    ),
    "rewrites the tests": f"open('test_text.py', 'w').write('def test_inc(): pass')\n{WRONG}",
    "writes a report": (
        "import glob\nfor name in glob.glob('*'):\n"
        "    if len(name) == 32: open(name, 'a').write('{\"test\": \"test_inc\"}\\n')\n"
        f"{WRONG}"
    ),
    "brings its own tests": "def test_inc(): pass\ndef test_more(): pass\n" + WRONG,
}


@pytest.mark.parametrize("deed", NO_PASS)
async def test_a_text_does_not_pass_tests_that_it_ends_or_replaces(deed):
    evidence = await outcome(SUITE, NO_PASS[deed])
    assert evidence.passed is False, evidence.shows
    assert evidence.shows.strip()


async def test_a_test_that_the_text_replaces_is_missed():
    evidence = await outcome(f"{SUITE}from candidate import test_inc\n", f"{WRONG}test_inc = None")
    assert evidence.passed is False
    assert "test_inc: disappeared." in evidence.shows


OWN = """
import sys
import unittest
from unittest import skip as leave_out, SkipTest
import pytest as pt

slow = pt.mark.skipif(True, reason="slow")
CASES = [1, pt.param(2, marks=pt.mark.skip(reason="not yet"))]

def test_right(): assert inc(1) == 2
@pytest.mark.skip
def test_mark(): assert False
@pytest.mark.skipif(True, reason="here")
def test_condition(): assert False
@slow
def test_name_of_a_mark(): assert False
@pytest.mark.parametrize("n", CASES)
def test_case(n): assert inc(n) == 2
def test_call():
    pytest.skip("later")
def test_call_in_a_condition():
    if inc(1) == 2: pytest.skip(
        "later"
    )
def test_module(): pytest.importorskip("no_such_module")
def test_raise(): raise SkipTest("later")
def test_handler():
    try:
        inc("1")
    except TypeError:
        pytest.skip("no strings")
@leave_out("later")
def test_unittest(): assert False
@pytest.fixture
def database(): pytest.skip("no database")
def test_fixture(database): assert False
def helper(): pytest.skip("later")
def test_helper(): helper()
@pytest.mark.xfail
def test_expected_failure(): assert inc(1) == 3
def test_expected_by_a_call(): pytest.xfail("known")
class TestMarked:
    pytestmark = pytest.mark.skip
    def test_it(self): assert False
@unittest.skip("later")
class MoreTests(unittest.TestCase):
    def test_it(self): self.fail()
class OtherTests(unittest.TestCase):
    def test_it(self): self.skipTest("later")
    @unittest.expectedFailure
    def test_expected(self): self.assertEqual(inc(1), 3)
    @unittest.skipIf(True, "later")
    def test_if(self): self.fail()
    def setUp(self):
        if "set_up" in self.id(): raise unittest.SkipTest("later")
    def test_set_up(self): self.fail()
"""


async def test_the_users_own_skips_are_counted_apart_and_shown():
    evidence = await outcome(OWN)
    assert evidence.passed, evidence.shows
    assert evidence.score == 1.0
    lines = evidence.shows.splitlines()
    assert "2 of 2 tests pass. 20 skipped." in lines
    assert "test_condition: skipped, here" in lines
    assert "test_handler: skipped, no strings" in lines


HONEST = """
import builtins, contextlib, io, sys
from unittest import mock
import pytest
from solution import ask, Odd, once, inc

def test_input(monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *a: "3")
    assert ask() == 3
def test_mock():
    with mock.patch("builtins.input", return_value="4"), mock.patch("solution.inc", ask):
        assert ask() == 4
builtins.input = lambda *a: "5"
def test_assignment(): assert ask() == 5
def test_raises():
    with pytest.raises(Odd, match="odd"): inc(None)
    with pytest.raises(SystemExit): inc("exit")
def test_output(capsys):
    print(inc(1))
    assert capsys.readouterr().out == "2\\n"
@once
def test_a_decorator_of_the_text(): assert inc(1) == 2
@pytest.fixture
def test_data(): return 1
def test_fixture(test_data): assert inc(test_data) == 2
class TestState:
    seen = []
    @pytest.fixture(autouse=True)
    def start(self): self.seen.append(1)
    def test_it(self): assert inc(len(self.seen)) == 2
if sys.version_info > (3,):
    def test_version(): assert inc(1) == 2
"""
HONEST_TEXT = """
class Odd(ValueError): pass
def ask(): return int(input("n"))
def once(function): return lambda: function()
def inc(n):
    if n is None: raise Odd("odd")
    if n == "exit": raise SystemExit(0)
    return n + 1
"""


async def test_what_tests_do_themselves_is_no_tampering():
    evidence = await outcome(HONEST, HONEST_TEXT)
    assert evidence.passed, evidence.shows
    assert "9 of 9 tests pass." in evidence.shows


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\n@pytest.mark.skip(reason='later')\ndef test_it(): pass",
        "import pytest\npytest.skip('later', allow_module_level=True)\ndef test_it(): pass",
    ],
)
async def test_where_all_tests_are_skipped_nothing_was_run(source):
    evidence = await outcome(source)
    assert (evidence.passed, evidence.score) == (None, None)
    assert "All tests are skipped" in evidence.shows
    assert "later" in evidence.shows
