"""Write a run to a file of its own, or its suite as tests for pytest."""

import ast
import builtins
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, Literal

from ipyrefine.checks.evaluation import shorten
from ipyrefine.checks.suite import as_function
from ipyrefine.core.coach import open_puzzle
from ipyrefine.core.model import one_line
from ipyrefine.core.run import Run
from ipyrefine.core.stated import Example, read_examples, stated_examples
from ipyrefine.core.syntax import (
    DEFINITION,
    NO_VALUE,
    names_at_top,
    names_used,
    read_literal,
    tree_of,
    try_parse_expression,
    unparse,
)
from ipyrefine.core.table import Point
from ipyrefine.errors import UsageError
from ipyrefine.kernel.magics import python_part
from ipyrefine.render.escape import plain
from ipyrefine.session.record import as_json, write_file


def export(run: Run, path: str | Path, *, force: bool = False) -> Path:
    """Write a run to a file (``.json``; ``.py`` for tests) and return its path.

    Raises:
        UsageError: the ending is none of these, the file exists or cannot be written, or there are
            no tests.
    """
    path = Path(path).expanduser()
    match path.suffix.lower():
        case ".json":
            text = json.dumps(as_json(run), indent=2, ensure_ascii=False) + "\n"
        case ".py":
            text = suite_source(run)
        case _:
            raise UsageError("The file's ending decides the format. Use .json, or .py for tests.")
    try:
        write_file(path, text, replace=force)
    except FileExistsError:
        raise UsageError(
            f"{path} exists. Choose another name, or replace it with --force."
        ) from None
    return path


# The suite as tests


def kept_suite(run: Run) -> tuple[Sequence[Example], Sequence[Point]]:
    """Return the examples of a run, the task's and then the user's, and its critics' tests.

    There are none where the text is not Python; tests are those that can fail a text.
    """
    if not run.task.is_python:
        return (), ()
    results = run.chosen.results if run.chosen else {}
    partial = {id_ for id_, one in results.items() if one.conditions}
    tests = [one for one in run.tests if one.counts and one.id not in partial]
    return stated_examples(run.task), tests


def suite_source(run: Run, form: Literal["file", "cell"] = "file") -> str:
    """Return the suite of a run as Python; each test names its source in a comment.

    It is a file for pytest, with the text above, or a cell that calls them, to run below the one
    with the text.

    Raises:
        UsageError: there is nothing to test, or a student has still to predict what it would tell.
    """
    if open_puzzle(run):
        raise UsageError("The tests would tell what you are asked. Predict it first.")
    (examples, tests), text = kept_suite(run), python_part(run.text).code
    if not (examples or tests) or not text:
        raise UsageError("This run has no examples, confirmed results or critic's tests yet.")
    tree = tree_of(text)
    own = names_at_top(tree.body)
    critic = one_line(plain(run.setup.judge)) or "the critic"
    taken, prints = own | {one.words for one in tests}, "print" in names_used(tree)
    pieces, calls, count = [], [], len(read_examples(run.task.text))
    for name, source, some in (
        ("stated", "Stated in the task", examples[:count]),
        ("confirmed", "Confirmed by you", examples[count:]),
    ):
        for number, example in enumerate(some, start=1):
            test = f"test_{name}_{number}"
            while test in taken:
                test += "_"
            body = indent("\n".join(_assertion(example, own, prints=prints)), "    ")
            pieces.append(f"# {source}\ndef {test}():\n{body}")
            calls.append(f"{test}()")
    for one in tests:
        body = _called(one, own, form)
        pieces.append(f"# Written by {critic} from the task's words\n{body}")
        calls += [f"{one.words}()"] * (body[:1] != "#")
    if "_check_doctest" in (code := "\n\n\n".join(pieces)):
        code = f"{_DOCTEST}\n\n\n{code}"
    code = "import pytest\n\n" * ("pytest" in names_used(tree_of(code))) + code
    if form == "cell":
        return "\n".join([code, "\n", *calls, ""])
    title = shorten(plain(run.task.text), 60).replace("\\", "").replace('"', "'")
    names = ", ".join(sorted({n.name for n in tree.body if isinstance(n, DEFINITION)}))
    above = f"# The text. To test a module instead, write: from MODULE import {names or '…'}"
    return f'"""Tests of: {title}"""\n\n{above}\n{text.strip()}\n\n\n{code}\n'


_DOCTEST = """\
def _check_doctest(example):
    import doctest

    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(example, globals(), "example", None, None)
    failures = []
    doctest.DocTestRunner(optionflags=flags).run(test, out=failures.append)
    assert not failures, "".join(failures)"""


def _called(test: Point, own: set[str], form: str) -> str:
    tree = tree_of(test.code)
    if {"answer", "before"} & names_used(tree) - own:  # which are there in the sandbox
        return f"# Only a check of ours can run {test.words}: it reads `answer` or `before`."
    last: Any = tree.body[-1]
    if form == "cell" and (last.decorator_list or unparse(last.args)):
        return f"# Only pytest can run {test.words}: save the tests to a file."
    return as_function(test, own)


def _assertion(example: Example, own: set[str], *, prints: bool) -> Iterator[str]:
    literal, call = read_literal(example.gives), try_parse_expression(example.call)
    printed = literal is NO_VALUE or call is None or prints or "print" in names_used(call)
    setup = tree_of(example.setup).body
    if example.kind == "doctest" and printed:
        quiet = (f"_ = {unparse(s)}" if isinstance(s, ast.Expr) else unparse(s) for s in setup)
        prompts = [f">>> {one}".replace("\n", "\n... ") for one in (*quiet, example.call)]
        yield f"_check_doctest({chr(10).join([*prompts, example.gives])!r})"
        return
    yield from map(unparse, setup)
    if example.raises:
        name = example.raises.strip().rpartition(".")[2]
        known = name in own or hasattr(builtins, name)
        head = f"pytest.raises({name})" if known else "pytest.raises(Exception) as error"
        yield f"with {head}:\n{indent(example.call, '    ')}"
        if not known:
            yield f"assert {name!r} in [kind.__name__ for kind in error.type.__mro__]"
    elif example.kind == "holds":
        yield f"assert {example.call}"
    elif literal is None:
        yield f"assert {_enclosed(example.call)} is None"
    else:
        expected = _enclosed(example.gives)
        if _has_float(literal):
            expected = f"pytest.approx({example.gives.strip()}, rel=1e-9, abs=1e-9)"
        yield f"assert {_enclosed(example.call)} == {expected}"


def _enclosed(source: str) -> str:
    """Return an expression in one line that an operator can follow."""
    node = try_parse_expression(source)
    if node is None:
        return source
    loose = ast.BoolOp | ast.Compare | ast.IfExp | ast.Lambda | ast.UnaryOp
    return f"({unparse(node)})" if isinstance(node, loose) else unparse(node)


def _has_float(value: Any) -> bool:
    """Return True for a float or a flat collection with one, whose result may be near."""
    flat = [*value.values()] if isinstance(value, dict) else value
    if isinstance(flat, list | tuple):
        nested = any(isinstance(one, list | tuple | dict | set) for one in flat)
        return not nested and any(isinstance(one, float) for one in flat)
    return isinstance(value, float)
