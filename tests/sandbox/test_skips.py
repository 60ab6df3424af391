"""`tests:NAME`: whose skips count, what ends a run early, and what tests may do themselves."""

import pytest

from ipyrefine.checks.tests import Tests
from ipyrefine.core.model import Task
from ipyrefine.core.table import Evidence

TASK = Task(text="Write it.")
INC = "def inc(n): return n + 1\n"
WRONG = "def inc(n): return n\n"
SUITE = "def test_inc(): assert inc(1) == 2\ndef test_two(): assert inc(2) == 3\n"


async def outcome(source: str, code: str) -> Evidence:
    return await Tests(source, seconds=60)(code, TASK)


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
async def test_a_text_does_not_pass_tests_that_it_ends_or_replaces(deed: str) -> None:
    evidence = await outcome(SUITE, NO_PASS[deed])
    assert evidence.passed is False, evidence.detail
    assert evidence.detail.strip()


async def test_a_test_that_the_text_replaces_is_missed() -> None:
    evidence = await outcome(f"{SUITE}from candidate import test_inc\n", f"{WRONG}test_inc = None")
    assert evidence.passed is False
    assert "test_inc: disappeared." in evidence.detail


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


async def test_the_users_own_skips_are_counted_apart_and_shown() -> None:
    evidence = await outcome(OWN, INC)
    assert evidence.passed, evidence.detail
    assert evidence.score == 1.0
    lines = evidence.detail.splitlines()
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


async def test_what_tests_do_themselves_is_no_tampering() -> None:
    evidence = await outcome(HONEST, HONEST_TEXT)
    assert evidence.passed, evidence.detail
    assert "9 of 9 tests pass." in evidence.detail


@pytest.mark.parametrize(
    "source",
    [
        "import pytest\n@pytest.mark.skip(reason='later')\ndef test_it(): pass",
        "import pytest\npytest.skip('later', allow_module_level=True)\ndef test_it(): pass",
        "def test_it(): pytest.skip('later')",
    ],
)
async def test_where_all_tests_are_skipped_nothing_was_run(source: str) -> None:
    evidence = await outcome(source, INC)
    assert (evidence.passed, evidence.score) == (None, None)
    assert "All tests are skipped" in evidence.detail
    assert "later" in evidence.detail
