"""A critic's tests are run on a text as ordinary pytest, in their modules."""

import re
import sys
from collections.abc import Mapping, Sequence
from textwrap import dedent

import pytest

from ipyrefine.checks import suite as suite_module
from ipyrefine.checks.suite import Suite
from ipyrefine.core.critiques import read_tests_of
from ipyrefine.core.model import Task
from ipyrefine.core.points import with_ids
from ipyrefine.core.table import Point, Result
from ipyrefine.core.testing import name_apart, read_tests, suite_evidence
from ipyrefine.kernel.variables import Variables

TASK = Task(text="Write it.", form="code")


async def run(text: str, source: str, **variables: object) -> dict[str, Result]:
    return await Suite(Variables.of(variables).copies)(read_tests(source), text, TASK)


def together(tests: Sequence[Point], results: Mapping[str, Result]) -> Result:
    """What a text shows of tests, as a whole."""
    points = {one.id: one for one in with_ids((), tests)}
    evidence = suite_evidence(points, {id_: results[one.words] for id_, one in points.items()})
    assert evidence is not None
    return evidence


def ends(results: Mapping[str, Result]) -> dict[str, bool | None]:
    """How each test ended."""
    return {name: one.passed for name, one in results.items()}


FORMS = """
import pytest

def test_state():
    stack = Stack()
    stack.push(1)
    assert stack.pop() == 1

async def test_async():
    assert await later(2) == 4

def test_exception():
    with pytest.raises(ValueError, match="negative"):
        root(-1)

def test_float():
    assert third(1) == pytest.approx(0.3333, abs=1e-3)

def test_mutated():
    items = [3, 1]
    assert order(items) is None and items == [1, 3]

def test_printed(capsys):
    greet("Ann")
    assert capsys.readouterr().out == "Hello, Ann\\n"

@pytest.mark.parametrize("n", [1, 2])
def test_parameters(n):
    assert third(3 * n) == n
"""
RIGHT = """
import asyncio
class Stack:
    def __init__(self): self.items = []
    def push(self, one): self.items.append(one)
    def pop(self): return self.items.pop()
async def later(n):
    await asyncio.sleep(0)
    return n * 2
def root(x):
    if x < 0: raise ValueError("x is negative")
def third(x): return x / 3
def order(items): items.sort()
def greet(name): print(f"Hello, {name}")
"""


async def test_each_natural_way_to_show_a_bug_is_run():
    right = await run(RIGHT, FORMS)
    assert [one for one in right.values() if not one.passed] == []
    assert len(right) == 7
    wrong = await run(RIGHT.replace("n * 2", "n").replace("negative", "odd"), FORMS)
    failing = {name: one.shows for name, one in wrong.items() if not one.passed}
    assert set(failing) == {"test_async", "test_exception"}
    assert "2 == 4" in failing["test_async"]


async def test_a_failing_test_says_what_came_out_and_quotes_the_task():
    source = 'def test_nine():\n    """The square of 3."""\n    assert f(3) == 9\n'
    results = await run("def f(x): return x + x", source)
    evidence = together(read_tests(source), results)
    assert evidence.failed
    assert "6 == 9" in results["test_nine"].shows
    assert evidence.shows.startswith("test_nine (“The square of 3.”): ")


async def test_a_text_that_does_not_load_fails_all_of_them():
    source = "def test_a():\n    assert f(1)\n"
    assert together(read_tests(source), await run("def f(:", source)).failed


# By the name of a list or a frame: what changes it, and what is so only then.
IN_PLACE = {
    "a": ("a['net'] = a['gross'] * 2", "'net' in a"),
    "b": ("b.columns = ['net']", "'net' in b"),
    "c": ("del c['gross']", "'gross' not in c"),
    "d": ("d.dropna(inplace=True)", "len(d) == 1"),
    "e": ("e.append(3)", "e == [1, 2, 3]"),
    "f": ("f += [3]", "f == [1, 2, 3]"),
    "g": ("for n in (3, 4):\n    g.append(n)", "g == [1, 2, 3, 4]"),
}


@pytest.mark.parametrize("beside", ["", "def double(value):\n    return value * 2\n\n"])
async def test_a_test_of_what_a_text_changes_in_place_says_something_of_it(beside):
    import pandas as pd

    frames = {name: pd.DataFrame({"gross": [1.0, None]}) for name in "abcd"}
    lists = {name: [1, 2] for name in "efg"}
    text = beside + "\n".join(change for change, _ in IN_PLACE.values())
    source = "".join(
        f"def test_{name}():\n    assert {only}\n" for name, (_, only) in IN_PLACE.items()
    )
    source += "def test_kept():\n    assert e[:2] == [1, 2]\n"
    source += "def test_missed():\n    assert e == a['net'][0]\n"
    suite, tests = Suite(Variables.of(frames | lists).copies), read_tests(source)
    ran = ends(await suite(tests, text, TASK))
    assert {name for name, passed in ran.items() if not passed} == {"test_missed"}


CHANGES = {
    "in place": "xs.append(3)\nbills.drop(index=0, inplace=True)",
    "by another": "xs = [1, 2, 3]\nbills = bills.iloc[1:]",
    "within a cell": "xs += [3]\nbills['net'] = 1\nbills = bills[1:]",
}


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES)
async def test_a_test_sees_a_variable_as_it_was_before_the_text(text):
    import pandas as pd

    bills = pd.DataFrame({"gross": [1.0, 2.0]})
    source = (
        "def test_rows():\n    assert len(before.bills) == len(bills) + 1 == 2\n"
        "def test_more():\n    assert xs == before.xs + [3]\n"
    )
    results = await run(text, source, bills=bills, xs=[1, 2])
    assert ends(results) == {"test_rows": True, "test_more": True}
    assert len(bills) == 2


ANSWERS = {
    "a value": ("xs.append(3)\nsum(xs)", "answer == _ == Out[-1] == 6", True),
    "its own answer": ("answer = sum(xs)", "answer == 3", True),
    "its own function": ("def answer(n):\n    return n\nanswer(3)", "answer(4) == 4", True),
    "another value than its own answer": ("answer = 3\n[answer]", "answer == [3]", True),
    "a wrong value": ("len(xs)", "answer == 3", False),
    "no value": ("total = sum(xs)", "answer == 3", None),
}


@pytest.mark.parametrize(("text", "claim", "passed"), ANSWERS.values(), ids=ANSWERS)
async def test_a_test_sees_the_value_that_a_cell_ends_in(text, claim, passed):
    result = (await run(text, f"def test_it():\n    assert {claim}\n", xs=[1, 2]))["test_it"]
    assert (result.passed, result.broken) == (passed, passed is None)
    if passed is False:
        assert result.gives == "2"


async def test_a_text_s_own_name_before_is_what_its_tests_see():
    source = "def test_own():\n    assert before(3) == 2\n"
    results = await run("def before(n):\n    return n - 1", source, xs=[1])
    assert ends(results) == {"test_own": True}


async def test_of_several_results_the_first_that_is_missed_is_known():
    source = (
        "import pytest\ndef test_lines():\n    assert f(1) == 1\n    assert f(2) == 4\n"
        "def test_raises():\n    with pytest.raises(ZeroDivisionError):\n        1 / f(1)\n"
    )
    results = (await run("def f(x):\n    return x", source)).values()
    assert [(one.call, one.gives) for one in results] == [("f(2)", "2"), ("1 / f(1)", "1.0")]


ADD = "def add(a, b):\n    return a + b\n"
ADDS = Task(text="Write add(a, b), which adds two numbers.", form="code")
MODULES = {
    "constants above parameters": """
        import pytest
        CASES = [(1, 3), (2, 4)]
        @pytest.mark.parametrize("n, want", CASES)
        def test_a(n, want):
            assert add(n, 2) == want
    """,
    "fixtures": """
        import pytest
        pytestmark = pytest.mark.usefixtures("ready")
        @pytest.fixture
        def ready():
            SEEN.append(1)
        SEEN = []
        @pytest.fixture
        def pair():
            return 1, 2
        def test_a(pair):
            assert add(*pair) == 3 and SEEN
    """,
    "hypothesis": """
        from hypothesis import given, strategies as st
        @given(st.integers(), st.integers())
        def test_a(a, b):
            assert add(a, b) == a + b
    """,
    "statements that define nothing": """
        import random
        random.seed(3)
        CASES = []
        for n in range(3):
            CASES.append((n, random.random()))
        def test_a():
            assert CASES and all(add(*case) == sum(case) for case in CASES)
    """,
    "what the text gives, above": "THREE = add(1, 2)\ndef test_a():\n    assert THREE == 3\n",
    "its own module": "from __main__ import add as plus\nimport solution\n"
    "def test_a():\n    assert plus(1, 2) == solution.add(1, 2) == 3\n",
    "a copy of the text": "def add(a, b):\n    return a * b\n"
    "def test_a():\n    assert add(1, 2) == 3\n",
    "a test that is expected to fail, marked": """
        import pytest
        @pytest.mark.xfail(reason="it subtracts")
        def test_a():
            assert add(1, 2) == 3
    """,
}


def written(source: str, text: str = ADD) -> list[Point]:
    return read_tests_of(f"```python\n{dedent(source)}\n```", text)


def apart(sources: Mapping[str, str], text: str = ADD) -> dict[str, list[Point]]:
    """The tests of several critiques, which run at once: those of each, by its name."""
    tests: dict[str, list[Point]] = {}
    for number, (name, source) in enumerate(sources.items()):
        before = [one for of_one in tests.values() for one in of_one]
        tests[name] = [*name_apart(written(source, text), before, number)]
    return tests


async def results(tests: Mapping[str, list[Point]], text: str) -> dict[str, list[Result]]:
    """The results of the tests of several critiques on a text, by the name of each."""
    of = await Suite()([one for of_one in tests.values() for one in of_one], text, ADDS)
    return {name: [of[one.words] for one in of_one] for name, of_one in tests.items()}


async def test_tests_are_run_in_the_module_that_they_were_written_in():
    tests = apart(MODULES)
    for name, (one,) in (await results(tests, ADD)).items():
        assert (one.passed, one.shows) == (True, ""), name
    for name, (one,) in (await results(tests, "def add(a, b):\n    return 0.5\n")).items():
        assert (one.passed, one.broken) == (False, False), name


async def test_a_name_that_stands_in_two_critiques_is_looked_up_in_the_module_of_each():
    source = "N = {}\ndef test_a():\n    assert add(N, 0) == {}\n"
    first = name_apart(written(source.format(1, 1)), (), 0)
    both = [*first, *name_apart(written(source.format(2, 2)), first, 1)]
    assert ends(await Suite()(both, ADD, ADDS)) == {"test_a": True, "test_a_2": True}


async def test_results_beside_tests_that_wait_count(monkeypatch):
    monkeypatch.setattr(suite_module, "_WAITS", 0.5)
    text = "import time\ndef add(a, b):\n    if a == 50: time.sleep(500)\n    return a - b\n"
    cases = ["add(1, 2) == 3", "add(50, 1) == 51", "add(2, 0) == 2"]
    tests = written("".join(f"def test_{n}():\n    assert {one}\n" for n, one in enumerate(cases)))
    results = await Suite()(tests, text, ADDS)
    assert [one.passed for one in results.values()] == [False, None, True]
    assert "did not end within 0.5 seconds" in results["test_1"].shows
    assert together(tests, results).failed


async def test_a_test_that_runs_on_or_ends_the_process_fails_alone(
    monkeypatch,
):
    monkeypatch.setattr(suite_module, "_SECONDS", 2.0)
    source = """
        def test_first(): assert add(1, 2) == 4
        def test_runs_on(): assert add(50, 50) == 100
        def test_ends(): assert add(60, 50) == 110
        def test_exits(): assert add(70, 50) == 120
        def test_last(): assert add(2, 0) == 2
    """
    text = """
import os
def add(a, b):
    while a == 50: pass
    if a == 60: os._exit(0)
    if a == 70: raise SystemExit
    return a + b
"""
    found = ends(await Suite()(written(source), text, ADDS))
    assert [name for name, passed in found.items() if passed] == ["test_last"]
    assert [*found.values()].count(False) == 4


async def test_of_several_parameters_one_that_ends_the_process_fails_the_test():
    source = """
        import pytest
        @pytest.mark.parametrize("n", [1, 50])
        def test_a(n):
            assert add(n, 0) == n
        def test_b():
            assert add(1, 0) == 1
    """
    text = "import os\ndef add(a, b):\n    return os._exit(1) if a > 40 else a\n"
    assert ends(await Suite()(written(source), text, ADDS)) == {"test_a": False, "test_b": True}


# What a test does before others, and what these then claim of a text that adds nothing.
TAMPERS = {
    "what is built in": ("import builtins; builtins.add = lambda a, b: a + b", "add(1, 2) == 3"),
    "the text": ("import candidate; candidate.add = lambda a, b: a + b", "add(1, 2) == 3"),
    "a module": ("import math; math.sqrt = lambda x: 3", "root(4) == 2"),
    "a tool": ("pytest.approx = lambda x: add(1, 2)", "add(1, 2) == pytest.approx(3)"),
    "a type of the text": ("P.__eq__ = lambda a, b: True", "P() == P()"),
    "code": ("add.__code__ = (lambda a, b: a + b).__code__", "add(1, 2) == 3"),
    "modules": ("import sys; sys.modules['candidate'] = sys", "add(1, 2) == 3"),
    "the report": (
        "import os, gc; [f(test='test_b', outcome='passed') for f in gc.get_objects()"
        " if getattr(f, '__name__', '') == 'write_event']; os._exit(0)",
        "add(1, 2) == 3",
    ),
    "the report by number": (
        "import os, json; a = json.dumps({'test': 1, 'outcome': 'passed'}).encode() + bytes([10])"
        "; [os.write(n, a) for n in range(3, 9) if os.path.exists(f'/proc/self/fd/{n}')]",
        "add(1, 2) == 3",
    ),
    "the end": ("import atexit, os; atexit.register(os._exit, 0)", "add(1, 2) == 3"),
}


@pytest.mark.parametrize("tamper", TAMPERS)
async def test_a_test_changes_nothing_for_others(tamper):
    does, claim = TAMPERS[tamper]
    text = "import math\nclass P: pass\ndef add(a, b): return 0\ndef root(x): return math.sqrt(0)\n"
    source = f"import pytest\ndef test_a():\n    {does}\ndef test_b():\n    assert {claim}\n"
    assert ends(await run(text, source))["test_b"] is False


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere tests share a process")
@pytest.mark.parametrize(
    ("does", "passes"),
    [
        ("import os\n    while True: os.fork()", False),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", True),
    ],
)
async def test_a_test_that_forks_without_end_or_stops_itself_ends_alone(does, passes):
    source = f"def test_a():\n    {does}\ndef test_b():\n    assert add(1, 2) == 3\n"
    text = "def add(a, b): return a + b\n"
    assert ends(await run(text, source)) == {"test_a": passes, "test_b": True}


async def test_a_patch_of_a_fixture_reaches_the_text():
    source = """
        def test_a(monkeypatch):
            monkeypatch.setattr("builtins.input", lambda *_: "3")
            assert ask() == 3
        def test_b(monkeypatch):
            monkeypatch.setattr("candidate.one", lambda: 2)
            assert two() == 4
    """
    text = "def ask(): return int(input())\ndef one(): return 1\ndef two(): return 2 * one()\n"
    assert set(ends(await run(text, dedent(source))).values()) == {True}


async def test_of_a_test_with_endless_parameters_only_the_first_are_run():
    source = (
        "import pytest\n@pytest.mark.parametrize('n', range(3000))\n"
        "def test_a(n):\n    assert add(n, 0) == n\n"
    )
    [result] = (await run(ADD, source)).values()
    assert (result.passed, result.shows) == (None, "Only 1,000 of its cases could be run.")


BESIDE = "\ndef test_b():\n    assert add({0}, 2) == {0} + 2\n"
OWN_FAULTS = {
    "a fixture of a plugin": "def test_a(mocker):\n    assert add(1, 2) == 3",
    "self outside of a class": "def test_a(self):\n    assert add(1, 2) == 3",
    "an unknown name": "def test_a():\n    assert add(1, 2) == expected",
    "a parameter of the text": "def test_a():\n    assert add(a, 2) == 3",
    "a name that is bound later": "def test_a():\n    assert add(n, 2) == 3\n    n = 1",
    "an unknown name above": "CASES = [THREE]\n"
    "def test_a():\n    for case in CASES:\n        assert add(1, 2) == case",
    "an unknown decorator": "@slow\ndef test_a():\n    assert add(1, 2) == 3",
    "a missing module": "import freezer\n"
    "@freezer.at(2020)\ndef test_a():\n    assert add(1, 2) == 3",
    "a name that a module lacks": "from math import added\n"
    "def test_a():\n    assert added(add(1, 2))",
    "the text's name in another module": "from code import add as plus\n"
    "def test_a():\n    assert plus(1, 2) == 3",
    "a slip in a tool's name": "import pytest\n"
    "def test_a():\n    with pytest.rais(ValueError):\n        add(1, 2)",
    "parameters that fit no argument": "import pytest\n"
    "@pytest.mark.parametrize('m', [1])\ndef test_a(n):\n    assert add(n, 2) == 3",
    "a value of its own": "import datetime\n"
    "def test_a():\n    assert add(1, 2) == datetime.date(2024, 2, 30)",
    "an own key beside the call": "WANT = {}\ndef test_a():\n    assert add(1, 2) == WANT['x']",
    "a helper called wrongly": "def check(n, want):\n    assert add(n, 2) == want\n"
    "def test_a():\n    check(1)",
    "a fixture that is called": "import pytest\n@pytest.fixture\ndef one():\n    return 1\n"
    "def test_a():\n    assert add(one(), 2) == 3",
    "a skip": "import pytest\ndef test_a():\n    pytest.skip('no network')",
    "strategies that give nothing": "from hypothesis import given, strategies as st\n"
    "@given(st.integers(5, 1))\ndef test_a(n):\n    assert add(n, 0) == n",
    "a slip in what the text calls": "def test_a():\n    def job():\n        return nothing\n"
    "    assert add(job(), 2) == 3",
    "a helper that a later text no longer has": "def test_a():\n    assert _digits(12) == [1, 2]",
    "a file that nobody asked for": "def test_a():\n"
    "    assert add(1, 2) == len(open('rows.csv').read())",
}


async def test_a_fault_of_a_tests_own_lines_is_no_miss_of_the_text():
    sources = [source + BESIDE.format(n) for n, source in enumerate(OWN_FAULTS.values())]
    tests = apart(dict(zip(OWN_FAULTS, sources, strict=True)))
    found = await results(tests, ADD)
    for name, (own, beside) in found.items():
        assert (own.passed, own.broken) == (None, True), name
        assert own.shows, name
        assert not re.search(r"(^|[ '(])/\w|ipyrefine-", own.shows), "no folder is named"
        assert beside.passed, name
    both = tests["an unknown name"]
    shown = zip((one.words for one in both), found["an unknown name"], strict=True)
    assert not together(both, dict(shown)).failed


MISSES = {
    "a value without items": ("None", "def test_a():\n    assert add(1, 2)[0] == 3"),
    "a value in a helper": (
        "None",
        "def first(xs):\n    return xs[0]\ndef test_a():\n    assert first(add(1, 2)) == 3",
    ),
    "a value by another name": (
        "None",
        "def test_a():\n    found = add(1, 2)\n    again = found\n    assert again + 1 == 4",
    ),
    "nothing raised": (
        "None",
        "import pytest\ndef test_a():\n    with pytest.raises(ValueError):\n        add(1, 2)",
    ),
    "said to fail": (
        "None",
        "import pytest\ndef test_a():\n    if add(1, 2) is None:\n        pytest.fail('None')",
    ),
    "an unknown name in the text": ("c", "def test_a():\n    assert add(1, 2) == 3"),
    "an error above the tests": ("a[0]", "N = add(1, 2)\ndef test_a():\n    assert N == 3"),
    "an error in a fixture": (
        "a[0]",
        "import pytest\n@pytest.fixture\ndef three():\n    return add(1, 2)\n"
        "def test_a(three):\n    assert three == 3",
    ),
    "an error in what the test hands over": (
        "a(b)",
        "def test_a():\n    assert add(lambda n: n[0], 2) == 3",
    ),
    "two errors that Hypothesis finds": (
        "{0: 1}[a] if a < 9 else [][a]",
        "from hypothesis import given, strategies as st\n"
        "@given(st.integers())\ndef test_a(n):\n    assert add(n, 0) == n",
    ),
}


@pytest.mark.parametrize("gives", sorted({gives for gives, _ in MISSES.values()}))
async def test_what_the_text_gives_or_raises_is_its_own(gives):
    text = f"def add(a, b):\n    return {gives}\n"
    sources = {name: source for name, (given, source) in MISSES.items() if given == gives}
    for name, (one,) in (await results(apart(sources, text), text)).items():
        assert (one.passed, one.broken) == (False, False), name


async def test_a_text_misses_a_name_that_the_task_writes():
    sources = {
        "by name": "def test_a():\n    assert add(1, 2) == 3\n",
        "module": "import solution\ndef test_a():\n    assert solution.add(1, 2) == 3\n",
        "import": "from solution import add as added\ndef test_a():\n    assert added(1, 2) == 3\n",
    }
    plus = "def plus(a, b):\n    return a + b\n"
    for name, [result] in (await results(apart(sources), plus)).items():
        assert result.passed is False, name


async def test_a_text_misses_a_method_only_if_the_task_writes_it():
    task = Task(text="Write a class Stack with push and pop.", form="code")
    source = "".join(
        f"def test_{n}():\n    assert Stack().{n}() is None\n" for n in ("pop", "size")
    )
    pop, size = (await Suite()(written(source), "class Stack:\n    pass\n", task)).values()
    assert (pop.passed, pop.broken) == (False, False)
    assert (size.passed, size.broken) == (None, True)


async def test_a_text_misses_a_file_that_the_task_writes():
    task = Task(text="Save the sum as sum.txt.", form="code")
    source = "def test_a():\n    assert open('sum.txt').read() == '3'\n"
    [result] = (await Suite()(written(source), ADD, task)).values()
    assert result.passed is False


async def test_a_text_may_call_something_like_what_is_built_into_python():
    source = "def test_a():\n    assert sum([1, 2]) == 9\n"
    [result] = (await Suite()(written(source), "def sum(xs):\n    return 9\n", ADDS)).values()
    assert result.passed
