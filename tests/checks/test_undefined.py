"""A text that reads a name which nothing defines fails, whether or not anything can be run."""

import sys
from types import ModuleType
from typing import Any

import pytest
from kit import READY, code
from shells import run_cell, scripted_shell

from ipyrefine import refine
from ipyrefine.checks import resolve
from ipyrefine.core.model import Outcome, Task
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel

CELL = "import numpy as np\n\nresult = df.price.mean()"
FUNCTION = "def mean_price():\n    return df.price.mean()"
MENDED = "def mean_price(df):\n    return df.price.mean()"
ERROR = "NameError: name 'df' is not defined (line {})"


@pytest.fixture(autouse=True)
def main(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The namespace of the program that runs, in which nothing is defined."""
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    return vars(module)


async def refined(*replies: Any, **options: Any) -> Run:
    model = ScriptedModel(replies, name="gpt")
    words = "The mean price of df, as code."
    return await refine(words, **{"model": model, "profile": "code", "journal": False} | options)


def outcome(run: Run) -> Outcome | None:
    return run.iterations[0].verdict.outcome if run.iterations[0].verdict else None


def failure(run: Run) -> str:
    return "".join(one.shows for one in run.iterations[0].evidence if one.failed)


@pytest.mark.parametrize(("text", "line"), [(CELL, 3), (FUNCTION, 2)], ids=["cell", "function"])
async def test_a_text_that_reads_what_nothing_defines_is_revised_and_its_writer_told(text, line):
    model = ScriptedModel([code(text), code(MENDED, "f1: it takes df"), READY], name="gpt")
    run = await refined(model=model)
    first, second = run.iterations
    assert outcome(run) is Outcome.NEEDS_IMPROVEMENT
    assert failure(run) == ERROR.format(line)
    assert {one.basis for one in first.evidence if one.failed} == {"run"}
    assert ERROR.format(line) in model.requests[1].messages[-1].content
    assert (second.text, run.converged) == (MENDED, True)


def provides(text: str) -> bool:
    space: dict[str, Any] = {"df": [1]}
    exec(text, space)
    return True


async def test_a_name_that_a_users_check_may_give_to_the_text_is_defined():
    run = await refined(code(FUNCTION), checks=[provides])
    assert (outcome(run), failure(run)) == (Outcome.PASS, "")


async def test_code_that_runs_may_have_got_its_names_from_a_helper():
    def bring() -> None:
        sys._getframe(1).f_globals["df"] = [1]

    (check,) = resolve(["run"], {}, variables={"bring": bring})
    task = Task(text="Do it.", form="code")
    assert (await check("bring()\nprint(df)", task)).passed
    evidence = await check("bring()\nprint(df)\ndef f(): return other", task)
    assert evidence.shows == "NameError: name 'other' is not defined (line 3)"


def test_in_a_kernel_its_names_are_defined_also_those_that_came_meanwhile(
    monkeypatch,
):
    shell = scripted_shell(monkeypatch, [code("def f(): return clean(df)"), READY])
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    cell = "%%refine --set quiet=yes -n 0 --apply none -p code\nWrite f, which cleans df."
    run_cell(shell, cell)
    assert "NameError: name 'clean' is not defined (line 1)" in failure(
        shell.user_ns["refined_run"]
    )
    shell = scripted_shell(monkeypatch, [code("def f(): return clean(df)"), READY])
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    run_cell(shell, "def clean(xs): return xs\ndf = [1]")
    run_cell(shell, cell)
    assert failure(shell.user_ns["refined_run"]) == ""
