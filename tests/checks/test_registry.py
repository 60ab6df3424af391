"""The table of built-in checks: names, settings, help; and what hostile code cannot do to them."""

import asyncio

import pytest

from ipyrefine.api import choose_profile
from ipyrefine.checks import BUILTIN, from_record, resolve
from ipyrefine.core.model import Task
from ipyrefine.errors import UsageError

TASK = Task(text="Write inc.\n\n>>> inc(1)\n2\n\ninc(2) == 3")


def tone(text: str) -> bool:
    return len(text) < 10


SPACE = {"tone": tone, "suite": "def test_inc(): assert inc(1) == 2", "ten": {"const": 10}}
INC, SAME = "def inc(n): return n + 1", "def inc(n): return n"
# By the check: a text that passes, one that does not, what both verdicts rest on, and whether the
# user can have a pass settle the verdict.
TEXTS = {
    "examples": (INC, SAME, "examples", True),
    "run": (INC, "1 / 0", "run", False),
    "tests:suite": (INC, SAME, "tests", True),
    "schema:ten": ("10", "11", "schema", True),
    "tone": ("Hi.", "Hi, how are you?", "function", True),
    "json": ("[1]", "{1}", "constraints", False),
    "length:<=3 words": ("Hi Ann.", "Hi Ann, how are you?", "constraints", False),
}


def test_every_built_in_check_is_made_by_its_line_of_the_table():
    arguments = {"tests:": "suite", "schema:": "ten", "length:": "1 word"}
    names = [
        f"{prefix}{arguments.get(prefix, 'x' if prefix[-1] == ':' else '')}" for prefix in BUILTIN
    ]
    checks = resolve(names, SPACE)
    assert [check.name for check in checks] == names


@pytest.mark.parametrize("name", TEXTS)
async def test_a_check_says_what_it_rests_on_and_the_user_whether_that_settles_the_verdict(
    name,
):
    good, bad, basis, settles = TEXTS[name]
    asked = f"{name} decisive" if settles else name
    (check,) = resolve([asked], SPACE)
    passed, failed = await check(good, TASK), await check(bad, TASK)
    assert (passed.passed, passed.basis, passed.decisive) == (True, basis, settles), passed.shows
    assert (failed.passed, failed.basis, failed.name) == (False, basis, asked), failed.shows
    if settles:
        (check,) = resolve([f"{name} decisive=no"], SPACE)
        opened = await check(good, TASK)
        assert (opened.passed, opened.decisive) == (True, False)


async def test_that_code_runs_settles_nothing_whatever_the_user_says():
    (check,) = resolve(["run decisive"], SPACE)
    evidence = await check(INC, TASK)
    assert (check.name, evidence.passed, evidence.grounds) == ("run decisive", True, False)


@pytest.mark.parametrize("name", ["examples", "run", "tests:suite"])
async def test_a_check_of_python_says_of_another_language_that_it_is_not_run(name):
    (check,) = resolve([name], SPACE)
    task = Task(text="Write f. f(1) == 2", form="code", language="java")
    evidence = await check("class A {}", task)
    assert (evidence.name, evidence.passed, evidence.score) == (name, None, None)
    assert evidence.shows == "This check runs Python, and the text is Java."


SLOW = "while True:\n    pass\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tests:suite decisive seconds=0.5", "did not end within 0.5 seconds"),
        ("slow seconds=0.5", "check slow did not end within 0.5 s"),
    ],
)
async def test_the_user_says_how_long_a_check_may_take(name, message):
    async def slow(text: str) -> None:
        await asyncio.sleep(9)

    (check,) = resolve([name], {**SPACE, "slow": slow})
    evidence = await check(SLOW, TASK)
    assert (evidence.name, evidence.passed) == (name, False)
    assert message in evidence.shows


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
        ("run decisive=maybe", "needs decisive, decisive=yes or decisive=no, not 'maybe'"),
        ("exampels seconds=3", "Did you mean examples?"),
        ("tests: decisive", "lacks what follows the colon"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_sentence(name, message):
    with pytest.raises(UsageError) as raised:
        resolve([name], SPACE)
    assert message in str(raised.value)


def test_settings_leave_a_check_what_it_is_for():
    name = "run seconds=2"
    assert choose_profile(None, checks=[name]).form == "code"
    with pytest.raises(UsageError, match="is for Python code"):
        choose_profile("email", checks=[name])
    assert choose_profile(None, checks=["schema:ten decisive"]).name == "data"


@pytest.mark.parametrize("name", ["run seconds=600", "examples seconds=21 decisive"])
def test_a_record_raises_no_limit_unless_its_reader_does(name):
    with pytest.raises(UsageError, match=r"raise a limit.*seconds"):
        from_record([name])
    assert [check.name for check in from_record([name], resolve([name], {}))] == [name]
    assert from_record(["run seconds=5"])
