"""Checks that run Python leave other languages alone."""

import pytest

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task

CHECKS = ["examples", "agreement", "run", "lint", "tests:suite"]
SUITE = "def test_it():\n    assert f(1) == 2"


@pytest.mark.parametrize("name", CHECKS)
async def test_a_check_that_runs_python_says_so_and_runs_nothing(name, monkeypatch):
    async def run_python(*args, **kwargs):
        raise AssertionError("nothing is run")

    for place in ("sandbox.sandbox", "checks.python"):
        monkeypatch.setattr(f"ipyrefine.{place}.run_python", run_python)
    (check,) = resolve([name], {"suite": SUITE})
    task = Task(text="Write f. f(1) == 2", form="code", language="java")
    evidence = await check("class A {}", task)
    assert (evidence.name, evidence.passed, evidence.score) == (name, None, None)
    assert evidence.detail == "This check runs Python, and the text is Java."


async def test_a_function_of_the_users_reads_any_language():
    (check,) = resolve([lambda text: "class" in text], {})
    assert (await check("class A {}", Task(text="t", form="code", language="java"))).passed
