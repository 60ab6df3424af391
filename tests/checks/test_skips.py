"""`tests:NAME` against texts that skip, lie or tamper: what is no pass, and what is the user's."""

from typing import Literal

import pytest
from kit import finish, judgement, refinement, text

from ipyrefine.checks.tests import Tests
from ipyrefine.core.model import Evidence, Limits, Task

TASK = Task(text="Write it.")
CALL = "def test_{name}(): assert {name}(1) == 1"


async def outcome(source: str, code: str) -> Evidence:
    return await Tests(source, seconds=60)(code, TASK)


HELPERS = """
import unittest, pytest
class Late:
    def __eq__(self, other): raise unittest.SkipTest("x")
    __iter__ = __len__ = __bool__ = __eq__ = __ne__ = __eq__
def generate():
    raise unittest.SkipTest("x")
    yield
"""
# What the text raises or returns in a test: its body, and the test where that is not the call.
IN_A_TEST = {
    "unittest_skip": ("raise unittest.SkipTest('x')", ""),
    "pytest_skip": ("pytest.skip('x')", ""),
    "skip_exception": ("raise pytest.skip.Exception('x')", ""),
    "pytest_xfail": ("pytest.xfail('x')", ""),
    "xfail_exception": ("raise pytest.xfail.Exception('x')", ""),
    "importorskip": ("pytest.importorskip('no_such_module')", ""),
    "a_kind_of_skip": ("raise type('S', (unittest.SkipTest,), {})('x')", ""),
    "a_kind_of_pytest_skip": ("raise type('S', (pytest.skip.Exception,), {})('x')", ""),
    "a_group_of_skips": ("raise BaseExceptionGroup('g', [pytest.skip.Exception('x')])", ""),
    "a_skip_after_a_fault": ("try: 1 / 0\n    except ZeroDivisionError: pytest.skip('x')", ""),
    "code_of_another_file": ("exec(compile('pytest.skip()', 'np.py', 'exec'), globals())", ""),
    "code_of_pytest": (
        "exec('import pytest\\npytest.skip()', {'__name__': '_pytest.skipping'})",
        "",
    ),
    "code_of_the_tests": (
        "exec(compile('\\n' * 999 + 'pytest.skip()', 'test_text.py', 'exec'), globals())",
        "",
    ),
    "a_generator": ("return next(generate())", ""),
    "a_callback": ("return max([1], key=pytest.skip)", ""),
    "an_object_that_skips": ("return Late()", ""),
    "the_length_of_an_object": ("return Late()", "def test_{name}(): assert len({name}(1)) == 1"),
    "the_truth_of_an_object": ("return Late()", "def test_{name}(): assert {name}(1)"),
    "an_iterator_that_skips": ("return generate()", "def test_{name}(): assert list({name}(1))"),
    "system_exit": ("raise SystemExit(0)", ""),
    "system_exit_by_name": ("import sys; sys.exit()", ""),
    "stop_iteration": ("raise StopIteration", ""),
    "generator_exit": ("raise GeneratorExit", ""),
    "cancelled": ("import asyncio; raise asyncio.CancelledError", ""),
    "base_exception": ("raise BaseException('x')", ""),
    "a_warning": ("raise UserWarning('x')", ""),
    "skip_itself": ("", "from candidate import skip_itself\n" + CALL),
    "xfail_itself": ("", "from candidate import xfail_itself\n" + CALL),
    "a_skip_in_a_subtest": (
        "raise unittest.SkipTest('x')",
        "class test_{name}(unittest.TestCase):\n"
        "    def test_it(self):\n        with self.subTest('x'): self.assertEqual({name}(), 1)",
    ),
    "a_skip_in_a_test_case": (
        "raise unittest.SkipTest('x')",
        "class test_{name}(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual({name}(), 1)",
    ),
    "a_skip_in_a_set_up": (
        "raise unittest.SkipTest('x')",
        "class test_{name}(unittest.TestCase):\n"
        "    def setUp(self): {name}()\n    def test_it(self): pass",
    ),
    "a_skip_in_a_class_set_up": (
        "raise unittest.SkipTest('x')",
        "class test_{name}(unittest.TestCase):\n"
        "    @classmethod\n    def setUpClass(cls): {name}()\n    def test_it(self): pass",
    ),
    "a_skip_in_a_fixture": (
        "pytest.skip('x')",
        "@pytest.fixture\ndef made(): return a_skip_in_a_fixture()\n"
        "def test_{name}(made): assert made == 1",
    ),
    "a_skip_in_a_teardown": (
        "pytest.skip('x')",
        "@pytest.fixture\ndef used():\n    yield\n    a_skip_in_a_teardown()\n"
        "def test_{name}(used): pass",
    ),
    "a_skip_beside_an_unmet_mark": (
        "pytest.skip('x')",
        "@pytest.mark.skipif(False, reason='x')\n" + CALL,
    ),
    "a_skip_where_another_failure_is_expected": (
        "raise unittest.SkipTest('x')",
        "@pytest.mark.xfail(raises=ZeroDivisionError)\n" + CALL,
    ),
    "a_skip_beside_an_own_one": (
        "pytest.skip('x')",
        "def test_{name}():\n    if not callable({name}):\n        pytest.skip('never')\n"
        "    assert {name}(1) == 1",
    ),
    "a_base_that_is_skipped": (
        "class a_base_that_is_skipped(unittest.TestCase):\n"
        "    __unittest_skip__, __unittest_skip_why__ = True, 'x'",
        "from candidate import {name}\nclass test_{name}({name}):\n"
        "    def test_it(self): self.assertEqual(1, 2)",
    ),
    "a_base_with_a_mark": (
        "class a_base_with_a_mark:\n    pytestmark = pytest.mark.skip",
        "from candidate import {name}\nclass Test_{name}({name}):\n"
        "    def test_it(self): assert False",
    ),
    "a_base_with_an_expectation": (
        "class a_base_with_an_expectation:\n    pytestmark = pytest.mark.xfail",
        "from candidate import {name}\nclass Test_{name}({name}):\n"
        "    def test_it(self): assert False",
    ),
    "a_decorator_that_skips": (
        "return unittest.skip('x')",
        "from candidate import {name}\n@{name}('x')\ndef test_{name}(): assert False",
    ),
    "a_decorator_that_marks": (
        "return pytest.mark.xfail",
        "from candidate import {name}\n@{name}('x')\ndef test_{name}(): assert False",
    ),
}


def _define(name: str) -> str:
    body, _ = IN_A_TEST[name]
    if not body:
        return f"{name} = pytest.{name.removesuffix('_itself')}\n"
    return f"{body}\n" if body.startswith("class") else f"def {name}(*a):\n    {body}\n"


def _test(name: str) -> str:
    return (IN_A_TEST[name][1] or CALL).format(name=name) + "\n"


_NAMES = tuple(IN_A_TEST)
BATCHES = {name: _NAMES[n - n % 15 : n - n % 15 + 15] for n, name in enumerate(_NAMES)}
_kept: dict[tuple[str, ...], Evidence] = {}


@pytest.mark.parametrize("name", IN_A_TEST)
async def test_what_a_text_does_in_a_test_to_be_skipped_is_a_failure(name: str) -> None:
    batch = BATCHES[name]
    if batch not in _kept:  # they do not disturb one another, so one process serves several
        tests = "import unittest, pytest\n" + "".join(map(_test, batch))
        _kept[batch] = await outcome(tests, HELPERS + "".join(map(_define, batch)))
    evidence = _kept[batch]
    assert evidence.passed is False
    failing = {f.criterion.partition("::")[0].lower() for f in evidence.findings}
    assert f"test_{name}" in failing, evidence.detail


@pytest.mark.parametrize("opinion", ["auto", "always", "never"])
async def test_a_text_that_skips_its_tests_does_not_pass_whatever_the_judge_says(
    opinion: Literal["auto", "always", "never"],
) -> None:
    loop = refinement(
        [text("import unittest\ndef inc(n): raise unittest.SkipTest('x')"), judgement(9)],
        checks=[Tests(SUITE, seconds=60)],
        limits=Limits(max_revisions=0, critique="never", opinion=opinion),
    )
    await finish(loop)
    verdict = loop.state.verdict
    assert verdict is not None
    assert not verdict.passed
    assert not verdict.required_passed


INC = "def inc(n): return n + 1\n"
WRONG = "def inc(n): return n\n"
SUITE = "def test_inc(): assert inc(1) == 2\ndef test_two(): assert inc(2) == 3\n"
# Texts that give wrong results and tamper with their tests, when loaded or when called.
TAMPERING = {
    "exits": "import os; os._exit(0)",
    "exits when called": "def inc(n):\n    import os; os._exit(0)",
    "pytest.exit": "def inc(n):\n    import pytest; pytest.exit('x', returncode=0)",
    "pytest.exit when loaded": "import pytest; pytest.exit('x')",
    "skips when loaded": "import pytest; pytest.skip('x', allow_module_level=True)",
    "interrupts": "def inc(n): raise KeyboardInterrupt",
    "skips when imported": (
        "import pytest\ndef __getattr__(name): pytest.skip('x', allow_module_level=True)"
    ),
    "replaces a builtin": f"import builtins; builtins.isinstance = lambda *a: True\n{WRONG}",
    "replaces AssertionError": f"import builtins; builtins.AssertionError = Warning\n{WRONG}",
    "replaces AssertionError when called": (
        "def inc(n):\n    import builtins, unittest\n"
        "    builtins.AssertionError = type('S', (unittest.SkipTest,), {})"
    ),
    "replaces pytest's outcome": (
        "from _pytest.reports import TestReport\n"
        f"TestReport.outcome = property(lambda s: 'passed', lambda s, v: None)\n{WRONG}"
    ),
    "replaces a report when called": (
        "def inc(n):\n    from _pytest.reports import TestReport\n"
        "    TestReport.from_item_and_call = classmethod(lambda cls, item, call: cls(\n"
        "        item.nodeid, item.location, {}, 'passed', None, call.when))"
    ),
    "replaces the call of a test": (
        f"import _pytest.python as p\np.Function.runtest = lambda self: None\n{WRONG}"
    ),
    "replaces the call of a test when called": (
        "def inc(n):\n    import _pytest.python as p\n    p.Function.runtest = lambda self: None"
    ),
    "replaces pytest": f"import sys, types; sys.modules['pytest'] = types.ModuleType('x')\n{WRONG}",
    "replaces pytest.raises when called": (
        "def inc(n):\n    import pytest; pytest.raises = lambda *a: None\n    return n + 1"
    ),
    "ends the run after the last test that counts": (
        "def inc(n):\n    import pytest, _pytest.runner as r\n    if n == 2:\n"
        "        kept = r.call_and_report\n"
        "        def report(item, when, **kw):\n"
        "            if len(item.name) == 13: pytest.exit('x')\n"
        "            return kept(item, when, **kw)\n"
        "        report.__module__ = 'x'; r.call_and_report = report\n    return n + 1"
    ),
    "runs pytest itself": f"import pytest; pytest.main = lambda *a, **k: 0\n{WRONG}",
    "removes pytest's modules": (
        f"import sys\nfor m in [*sys.modules]:\n    if 'pytest' in m: del sys.modules[m]\n{WRONG}"
    ),
    "rewrites the tests": f"open('test_text.py', 'w').write('def test_inc(): pass')\n{WRONG}",
    "removes the tests": f"import os; os.remove('test_text.py')\n{WRONG}",
    "writes a conftest": (
        "open('conftest.py', 'w').write('def pytest_collection_modifyitems(items): items.clear()')"
        f"\n{WRONG}"
    ),
    "writes settings": f"open('pytest.ini', 'w').write('[pytest]\\naddopts = -k nothing')\n{WRONG}",
    "sets options": f"import os; os.environ['PYTEST_ADDOPTS'] = '-k nothing'\n{WRONG}",
    "sets plugins": f"import os; os.environ['PYTEST_PLUGINS'] = 'candidate'\n{WRONG}",
    "traces": f"import sys; sys.settrace(lambda *a: None)\n{WRONG}",
    "jumps over the test": (
        "def inc(n):\n    import sys\n    frame = sys._getframe(1)\n"
        "    def trace(f, *a): return trace\n"
        "    sys.settrace(trace); frame.f_trace = trace\n    return 0"
    ),
    "a hook at the exit": f"import atexit, os; atexit.register(os._exit, 0)\n{WRONG}",
    "a thread that exits": (
        "import os, threading\nthreading.Timer(0.05, os._exit, [0]).start()\n"
        "def inc(n):\n    while True: pass"
    ),
    "a fork that goes on": f"import os\nif os.fork() == 0: os._exit(0)\n{WRONG}",
    "writes a report": (
        "import glob\nfor name in glob.glob('*'):\n"
        "    if len(name) == 32: open(name, 'a').write('{\"test\": \"test_inc\"}\\n')\n"
        f"{WRONG}"
    ),
    "empties the report": (
        f"import glob\nfor n in glob.glob('*'):\n    if len(n) == 32: open(n, 'w')\n{WRONG}"
    ),
    "replaces the harness": (
        "import __main__\nfor name in ('_last_line', '_name', 'Reporter', '_origin', '_run'):\n"
        f"    setattr(__main__, name, lambda *a: 'passed')\n{WRONG}"
    ),
    "names of the harness": f"_run = Reporter = main = write_event = print\n{WRONG}",
    "is called pytest": (
        "class pytest:\n    class mark: skip = xfail = lambda f: f\n"
        "    raises = lambda *a: __import__('contextlib').nullcontext()\n" + WRONG
    ),
    "brings its own tests": "def test_inc(): pass\ndef test_more(): pass\n" + WRONG,
    "writes and truncates": f"import json; json.dumps = lambda *a, **k: '{{}}'\n{WRONG}",
    "closes every file": "import os\nos.closerange(3, 100)\n" + WRONG,
    "is not there": "",
}


@pytest.mark.parametrize("deed", TAMPERING)
async def test_a_wrong_text_passes_by_no_tampering(deed: str) -> None:
    evidence = await outcome(SUITE, TAMPERING[deed])
    assert evidence.passed is False, evidence.detail
    assert evidence.detail.strip()


async def test_tests_that_the_text_brings_along_do_not_count() -> None:
    source = f"from candidate import *\n{SUITE}"
    code = f"{INC}def test_mine(): pass\nclass TestMine:\n    def test_it(self): pass\n"
    evidence = await outcome(source, code)
    assert evidence.passed
    assert "test_mine" not in evidence.detail
    assert evidence.detail.splitlines()[2] == "2 of 2 tests pass."


async def test_a_test_that_the_text_replaces_is_missed() -> None:
    evidence = await outcome(f"{SUITE}from candidate import test_inc\n", f"{WRONG}test_inc = None")
    assert evidence.passed is False
    assert "test_inc: disappeared." in evidence.detail


async def test_what_ended_the_run_is_said() -> None:
    evidence = await outcome(SUITE, TAMPERING["pytest.exit"])
    assert "test_two: was not reached. Exit: x ended the run." in evidence.detail
    evidence = await outcome(SUITE, TAMPERING["replaces a builtin"])
    assert "interferes with the tests: builtins.isinstance was replaced" in evidence.detail


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
        "import pytest\npytestmark = pytest.mark.skip(reason='later')\ndef test_it(): pass",
        "import pytest\npytest.skip('later', allow_module_level=True)\ndef test_it(): pass",
        "import unittest\nraise unittest.SkipTest('later')\ndef test_it(): pass",
        "def test_it(): pytest.skip('later')",
    ],
)
async def test_where_all_tests_are_skipped_nothing_was_run(source: str) -> None:
    evidence = await outcome(source, INC)
    assert (evidence.passed, evidence.score) == (None, None)
    assert "All tests are skipped" in evidence.detail
    assert "later" in evidence.detail
