"""What a verdict that rests on each built-in check is said to rest on."""

from typing import Any

import pytest

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task

CODE = Task(text="Write inc(n).\n\n>>> inc(1)\n2\n", form="code")
PROSE = Task(text="Write a greeting in at most 3 words.", form="prose")
RIGHT = "def inc(n):\n    return n + 1\n"
SUITE = "from text import *\n\ndef test_inc():\n    assert inc(1) == 2\n"
SCHEMA = {"type": "object", "required": ["name"]}

# By the check: the task, a text that passes, one that does not, and the basis of both.
CHECKS = {
    "examples": (CODE, RIGHT, "def inc(n):\n    return n\n", "examples"),
    "run": (CODE, RIGHT, "1 / 0", "run"),
    "lint": (CODE, RIGHT, "import os\nprint(x)\n", "tests"),
    "tests:suite": (CODE, RIGHT, "def inc(n):\n    return n\n", "tests"),
    "schema:schema": (PROSE, '{"name": "Ann"}', "{}", "schema"),
    "json": (PROSE, "[1]", "{1}", "constraints"),
    "with:Ann": (PROSE, "Hi ann.", "Hi.", "constraints"),
    "without:Ann": (PROSE, "Hi Anna.", "Hi Ann.", "constraints"),
    "length:<=3 words": (PROSE, "Hi Ann.", "Hi Ann, how are you?", "constraints"),
    "contains:Ann": (PROSE, "Hi Ann.", "Hi.", "constraints"),
    "matches:^Hi": (PROSE, "Hi Ann.", "Dear Ann.", "constraints"),
    "short": (PROSE, "Hi Ann.", "Hi Ann, how are you?", "function"),
}


def short(text: str) -> bool:
    return len(text) < 10


@pytest.mark.parametrize("name", CHECKS)
async def test_the_evidence_of_a_check_says_its_basis_whether_it_passes_or_not(name: str) -> None:
    if name == "lint":
        pytest.importorskip("ruff")
    task, good, bad, basis = CHECKS[name]
    namespace: dict[str, Any] = {"suite": SUITE, "schema": SCHEMA, "short": short}
    (check,) = resolve([name], namespace)
    passed, failed = await check(good, task), await check(bad, task)
    assert (passed.passed, passed.basis) == (True, basis), passed.detail
    assert (failed.passed, failed.basis) == (False, basis), failed.detail
