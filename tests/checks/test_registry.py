"""The table of built-in checks: names, settings, help; and what hostile code cannot do to them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ipyrefine.api import choose_profile
from ipyrefine.checks import BUILTIN, help_table, option_help, resolve
from ipyrefine.checks.agreement import Agreement
from ipyrefine.checks.examples import Examples
from ipyrefine.checks.functions import CallableCheck
from ipyrefine.checks.python import Lint, RunsCleanly, find_ruff
from ipyrefine.checks.schema import Schema
from ipyrefine.checks.tests import Tests
from ipyrefine.checks.text import Contains, Length, Matches
from ipyrefine.core.model import Task
from ipyrefine.errors import UsageError

TASK = Task(text="Write inc.\n\n>>> inc(1)\n2\n\ninc(2) == 3")


async def test_an_example_that_fails_is_told_with_input_expected_and_got() -> None:
    evidence = await Examples()("def inc(n): return 7", TASK)
    assert (evidence.passed, evidence.score) == (False, 0.0)
    assert "inc(1): expected 2, got 7" in evidence.detail


async def test_examples_that_hold_pass() -> None:
    evidence = await Examples()("def inc(n): return n + 1", TASK)
    assert (evidence.passed, evidence.score) == (True, 1.0)


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import os; os._exit(0)",
        "raise SystemExit(0)",
        "def inc(n):\n    while True: pass",
        "x = 'a' * 10**12",
        "import sys; sys.stdout.write('x' * 10**8)",
        "import builtins; builtins.repr = lambda x: '2'",
        "def inc(n): return inc(n)",
        "class inc:\n    def __init__(self, n): pass\n    def __eq__(self, o): return True",
        "this is not python",
        "input()",
    ],
)
async def test_hostile_code_is_evidence_against_itself(code: str) -> None:
    evidence = await Examples(seconds=2)(code, TASK)
    assert evidence.passed is False


@pytest.mark.parametrize(
    ("code", "passed", "message"),
    [
        ("x = 1", True, "runs"),
        ("1 / 0", False, "ZeroDivisionError"),
        ("x = (", False, "SyntaxError"),
    ],
)
async def test_run_says_whether_the_code_runs(code: str, passed: bool, message: str) -> None:
    evidence = await RunsCleanly()(code, TASK)
    assert evidence.passed is passed
    assert message in evidence.detail


@pytest.mark.parametrize("name", ["exampels", "number"])
def test_an_unknown_check_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(UsageError, match=r"check"):
        resolve([name], {"number": 3})


def tone(text: str) -> bool:
    return True


SPACE = {
    "tone": tone,
    "suite": "def test_inc(): assert inc(1) == 2",
    "ten": {"const": 10},
}
INC = "def inc(n): return n + 1"
RUNS = {
    "examples": INC,
    "agreement": INC,
    "run": "x = 1",
    "lint": "x = 1",
    "tests:suite": INC,
    "schema:ten": "10",
    "tone": "a",
}


def test_every_built_in_check_is_made_by_its_line_of_the_table() -> None:
    arguments = {"tests:": "suite", "schema:": "ten", "length:": "1 word"}
    names = [
        f"{prefix}{arguments.get(prefix, 'x' if prefix[-1] == ':' else '')}" for prefix in BUILTIN
    ]
    checks = resolve(names, SPACE)
    assert [check.name for check in checks] == names


def test_spaces_around_a_name_are_no_part_of_it() -> None:
    assert [check.name for check in resolve([" run ", " tone decisive "], SPACE)] == [
        "run",
        "tone decisive",
    ]


def test_the_help_of_the_option_lists_the_table() -> None:
    assert all(kind.usage in option_help() for kind in BUILTIN.values())
    assert all(kind.help in help_table() for kind in BUILTIN.values())
    assert "seconds=30" in option_help()


async def test_that_code_runs_settles_nothing_whatever_the_user_says() -> None:
    (check,) = resolve(["run decisive"], SPACE)
    evidence = await check(RUNS["run"], TASK)
    assert (check.name, evidence.passed, evidence.grounds) == ("run decisive", True, False)


@pytest.mark.parametrize("name", [n for n in RUNS if n != "run" and (n != "lint" or find_ruff())])
async def test_the_user_says_whether_a_check_settles_the_verdict(name: str) -> None:
    yes, no = resolve([f"{name} decisive", f"{name} decisive=no"], SPACE)
    settled, opened = await yes(RUNS[name], TASK), await no(RUNS[name], TASK)
    assert (settled.passed, settled.decisive) == (True, True)
    assert (opened.passed, opened.decisive) == (True, False)
    assert settled.name == f"{name} decisive"


SLOW = "while True:\n    pass\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("run seconds=0.5", "did not end within 0.5 seconds"),
        ("examples  seconds=0.5", "gave no answer within 0.5 s"),
        ("agreement seconds=0.5 decisive=no", "gave no answer within 0.5 s"),
        ("tests:suite decisive seconds=0.5", "did not end within 0.5 seconds"),
        ("slow seconds=0.5", "check slow did not end within 0.5 s"),
    ],
)
async def test_the_user_says_how_long_a_check_may_take(name: str, message: str) -> None:
    async def slow(text: str) -> None:
        await asyncio.sleep(9)

    (check,) = resolve([name], {**SPACE, "slow": slow})
    evidence = await check(SLOW, TASK)
    assert (evidence.name, evidence.passed) == (name, False)
    assert message in evidence.detail


@pytest.mark.parametrize(
    "name",
    [
        "tests:suite seconds=30 decisive",
        "run seconds=2",
        "tone decisive=no",
        "tests: suite seconds=3",
    ],
)
def test_a_check_with_settings_is_made_again_by_its_name(name: str) -> None:
    (check,) = resolve([name], SPACE)
    assert check.name == name
    (again,) = resolve([check.name], SPACE)
    assert (again.name, type(again)) == (name, type(check))


async def test_a_finding_about_the_whole_text_is_filed_under_the_name_with_its_settings() -> None:
    space = {**SPACE, "dull": lambda text: ["dull"]}
    for name in ("dull seconds=3", "schema:ten decisive"):
        (check,) = resolve([name], space)
        evidence = await check("no JSON", TASK)
        assert [finding.criterion for finding in evidence.findings] == [name]


@pytest.mark.parametrize("name", ["contains:done seconds=3", "matches:x decisive"])
async def test_free_text_is_never_taken_for_settings(name: str) -> None:
    (check,) = resolve([name], SPACE)
    assert (await check("It is done seconds=3, x decisive.", TASK)).passed
    assert not (await check("It is done, x.", TASK)).passed


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "run second=3",
            "no setting 'second=3', only seconds=NUMBER and decisive. Did you mean sec",
        ),
        ("tests:suite decsive", "no setting 'decsive', only seconds=NUMBER and decisive. Did you"),
        ("tests:suite timeout=3", "no setting 'timeout=3', only seconds=NUMBER and decisive."),
        ("run fast", "The check 'run' has no setting 'fast'"),
        ("tone 3", "The check 'tone' has no setting '3'"),
        ("length:<=3 words seconds=3", "no setting 'seconds=3': a pass settles nothing by itself."),
        ("length:<=3 words decisive", "no setting 'decisive': a pass settles nothing by itself."),
        ("json decisive", "no setting 'decisive': a pass settles nothing by itself."),
        ("run seconds", "a number of seconds above 0"),
        ("run seconds=soon", "a number of seconds above 0"),
        ("run seconds=0", "a number of seconds above 0"),
        ("run seconds=nan", "a number of seconds above 0"),
        ("run seconds=inf", "a number of seconds above 0"),
        ("run seconds=1 seconds=2", "sets seconds twice"),
        ("run decisive=maybe", "needs decisive, decisive=yes or decisive=no, not 'maybe'"),
        ("exampels seconds=3", "Did you mean examples?"),
        ("tests: decisive", "lacks what follows the colon"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_sentence(name: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        resolve([name], SPACE)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda **settings: CallableCheck(tone, **settings),
        Examples,
        Agreement,
        RunsCleanly,
        Lint,
        lambda **settings: Tests("def test_it(): pass", **settings),
        lambda **settings: Schema({}, **settings),
    ],
)
def test_the_settings_are_keywords_in_python(make: Callable[..., Any]) -> None:
    check = make(seconds=3, decisive=True)
    assert resolve([check], {}) == (check,)


@pytest.mark.parametrize("check", [Length("1 word"), Contains("a"), Matches("a")])
async def test_a_check_of_a_text_s_form_settles_no_verdict(check: Any) -> None:
    evidence = await check("a", TASK)
    assert (evidence.passed, evidence.decisive) == (True, False)
    with pytest.raises(TypeError, match="decisive"):
        type(check)("a", decisive=True)


@pytest.mark.parametrize("name", ["run seconds=2", "lint decisive", "tests:suite seconds=3"])
def test_settings_leave_a_check_what_it_is_for(name: str) -> None:
    assert choose_profile(None, "Do it.", checks=[name]).form == "code"
    with pytest.raises(UsageError, match="is for Python code"):
        choose_profile("email", "Do it.", checks=[name])
    assert choose_profile(None, "Do it.", checks=["schema:ten decisive"]).name == "data"
