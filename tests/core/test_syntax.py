"""What is read of Python that may be no Python, and what is not said about it."""

import ast
import sys

import pytest

import ipyrefine
from ipyrefine.checks.outputs import imports_of
from ipyrefine.core.languages import is_python
from ipyrefine.core.model import StopReason
from ipyrefine.core.stated import read_examples
from ipyrefine.core.syntax import ERRORS, compile_cell, is_literal, parse, try_parse, unparse
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.names import names_in_code, names_in_draft
from ipyrefine.providers.scripted import ScriptedModel

WARNS = 'pattern = "\\d+"\nsame = pattern is "\\d"\n'  # an unknown escape, and `is` with a literal
TOO_DEEP = "x = " + "(" * 5_000 + ")" * 5_000


DEEP = {
    "a long sum": "x = " + " + ".join(["1"] * 900) + "\nx",
    "a function of one": "def f(a):\n    return " + " + ".join(["a"] * 900),
    "a chain of calls": "y = df" + ".head()" * 400,
    "many signs": "a = -" + "- " * 900 + "1",
}


@pytest.mark.parametrize("source", ["def f(", "x = \0", TOO_DEEP, "return = 1"])
def test_what_is_no_python_has_no_tree_and_no_code(source):
    assert try_parse(source) is None
    with pytest.raises(ERRORS):
        parse(source)
    with pytest.raises(ERRORS):
        compile_cell(source)


def test_a_parse_that_another_thread_disturbed_is_made_again(monkeypatch):
    """Before 3.11.8, Python counts the depth of all threads' trees together."""
    errors = iter([SystemError("AST constructor recursion depth mismatch (before=39, after=188)")])
    real = ast.parse

    def disturbed(source: str, **options: str) -> ast.AST:
        for error in errors:
            raise error
        return real(source, **options)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert ast.unparse(parse("x = 1")) == "x = 1"


def test_warnings_about_code_that_a_model_wrote_are_not_shown_to_the_user():
    """Tests turn warnings into errors, so each of these would fail if one got out."""
    assert is_python(WARNS)
    assert names_in_code(WARNS) == []
    assert {"pattern", "same", "x"} <= {*names_in_draft(WARNS + "x +")}
    assert imports_of("import pandas\n" + WARNS) == [("pandas", [])]
    assert python_part("%time\n" + WARNS).lines == ("%time",)
    assert is_literal('"\\d"')
    assert [e.call for e in read_examples('f("\\d") == 1')] == ["f('\\\\d')"]


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP)
async def test_code_that_nests_deeper_than_python_calls_is_written_out_and_refined(source):
    limit = sys.getrecursionlimit()
    assert "".join(unparse(parse(source)).split()) == "".join(source.split())
    assert sys.getrecursionlimit() == limit
    model = ScriptedModel([f"```python\n{source}\n```"])
    run = await ipyrefine.refine(
        "Compute it.", model=model, profile="code", critique="never", max_revisions=0, journal=False
    )
    assert run.text == source
    assert run.stop_reason is not StopReason.FAILED
