"""The user's variables in a task and in the sandbox."""

import threading
from typing import Any

import pytest

from ipyrefine.checks import resolve
from ipyrefine.checks.variables import describe, gather, sandbox_files
from ipyrefine.core.model import Task
from ipyrefine.errors import UsageError

TASK = Task(text="Write total(). total() == 6")


class Table:
    shape = (3, 2)

    def __init__(self) -> None:
        self.rows = [1, 2, 3]

    def __repr__(self) -> str:
        return "row\n" * 1_000


class Shy:
    def __repr__(self) -> str:
        raise ValueError


class OnlyHere:
    def __reduce__(self) -> Any:
        return (__import__, ("module_that_is_not_there",))


@pytest.mark.parametrize("name", ["examples", "run", "tests:check"])
async def test_code_of_the_checks_has_the_variables(name: str) -> None:
    space = {"check": "def test_it(): assert total() == 6 and df.rows[0] == 1"}
    text = "assert df.rows\ndef total():\n    return sum(df.rows)\n"
    (check,) = resolve([name], space, variables={"df": Table()})
    assert (await check(text, TASK)).passed
    (without,) = resolve([name], space)
    evidence = await without(text, TASK)
    assert evidence.passed is False
    assert "NameError: name 'df' is not defined (line 1)" in evidence.detail


async def test_functions_and_classes_of_the_notebook_go_along() -> None:
    space: dict[str, Any] = {}
    exec("def double(x): return 2 * x", space)
    (check,) = resolve(["run"], {}, variables={"double": space["double"]})
    assert (await check("assert double(2) == 4", TASK)).passed


async def test_an_object_of_a_module_that_only_the_notebook_finds_goes_along() -> None:
    # This file is such a module.
    (check,) = resolve(["run"], {}, variables={"df": Table()})
    assert (await check("assert df.rows == [1, 2, 3]", TASK)).passed


async def test_a_variable_that_cannot_be_read_in_the_sandbox_is_named() -> None:
    (check,) = resolve(["run"], {}, variables={"x": OnlyHere()})
    evidence = await check("x", TASK)
    assert evidence.passed is False
    assert "the variable x cannot be read here (ModuleNotFoundError" in evidence.detail


def test_a_description_is_short_whatever_the_value() -> None:
    values = {
        "df": Table(),
        "many": list(range(10**6)),
        "shy": Shy(),
        "n": 10**5000,
        "s": "é" * 9999,
    }
    text = describe(values)
    assert len(text) < 6_500
    assert "df (Table of shape (3, 2)):\nrow\n" in text
    assert "many (list of length 1000000):\n[0, 1, 2" in text
    assert "shy (Shy):\n<Shy instance at" in text


def test_a_text_is_shown_as_it_is() -> None:
    assert describe({"mail": 'Dear "A",\nhi'}).endswith(':\nDear "A",\nhi')


def test_an_unknown_variable_gets_a_near_match() -> None:
    with pytest.raises(UsageError, match="Did you mean prices"):
        gather(["price"], {"prices": 1})


@pytest.mark.parametrize(
    ("value", "message"),
    [(threading.Lock(), "cannot be passed to the code"), (bytes(65 * 2**20), "too large")],
)
def test_what_cannot_be_passed_is_refused_before_anything_runs(value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"variable x .*{message}"):
        sandbox_files({"x": value})
