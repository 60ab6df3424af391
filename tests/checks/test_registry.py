"""The table of built-in checks: names, settings, help; and what hostile code cannot do to them."""

import asyncio
from typing import Any

import pytest

from ipyrefine.api import choose_profile
from ipyrefine.checks import BUILTIN, from_record, resolve
from ipyrefine.checks.python import find_ruff
from ipyrefine.checks.text import Contains, Length, Matches
from ipyrefine.core.model import Task
from ipyrefine.errors import UsageError

TASK = Task(text="Write inc.\n\n>>> inc(1)\n2\n\ninc(2) == 3")


def tone(text: str) -> bool:
    return True


SPACE = {"tone": tone, "suite": "def test_inc(): assert inc(1) == 2", "ten": {"const": 10}}
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
    ("name", "message"),
    [
        (
            "run second=3",
            "no setting 'second=3', only seconds=NUMBER and decisive. Did you mean sec",
        ),
        ("tests:suite timeout=3", "no setting 'timeout=3', only seconds=NUMBER and decisive."),
        ("length:<=3 words seconds=3", "no setting 'seconds=3': a pass settles nothing by itself."),
        ("json decisive", "no setting 'decisive': a pass settles nothing by itself."),
        ("run seconds", "a number of seconds above 0"),
        ("run seconds=soon", "a number of seconds above 0"),
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


@pytest.mark.parametrize("check", [Length("1 word"), Contains("a"), Matches("a")])
async def test_a_check_of_a_text_s_form_settles_no_verdict(check: Any) -> None:
    evidence = await check("a", TASK)
    assert (evidence.passed, evidence.decisive) == (True, False)
    with pytest.raises(TypeError, match="decisive"):
        type(check)("a", decisive=True)


def test_settings_leave_a_check_what_it_is_for() -> None:
    name = "run seconds=2"
    assert choose_profile(None, "Do it.", checks=[name]).form == "code"
    with pytest.raises(UsageError, match="is for Python code"):
        choose_profile("email", "Do it.", checks=[name])
    assert choose_profile(None, "Do it.", checks=["schema:ten decisive"]).name == "data"


@pytest.mark.parametrize("name", ["run seconds=600", "examples seconds=21 decisive"])
def test_a_record_raises_no_limit_unless_its_reader_does(name: str) -> None:
    with pytest.raises(UsageError, match=r"raise a limit.*seconds"):
        from_record([name])
    assert [check.name for check in from_record([name], resolve([name], {}))] == [name]
    assert from_record(["run seconds=5"])
