"""What a text gives on a few inputs, for the user to confirm: the most informative rows first."""

import ast
import builtins
import re
import sys
from collections import Counter
from collections.abc import Container, Iterator, Mapping

from ipyrefine.core.decisions import Expect
from ipyrefine.core.expectations import Expectation, in_force
from ipyrefine.core.model import Choice, Clarification, Row
from ipyrefine.core.policy import rival_of
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stated import read_examples
from ipyrefine.core.syntax import (
    NO_VALUE,
    equal_values,
    is_literal,
    read_literal,
    try_parse,
    try_parse_expression,
)
from ipyrefine.errors import UsageError

MAX_SHOWN = 5  # rows of a text
_MOST = {"critic": 2, "edge": 2}  # of rows without a rival, as variety is what finds faults
_SETUP_LINES = 6
_EXCEPTION = re.compile(r"(?:raises?\s+)?([A-Za-z_][\w.]*)", re.IGNORECASE)

_Key = tuple[str, str]  # an input: the call and what runs before it


def rows(run: Run, iteration: Iteration) -> tuple[Row, ...]:
    """Return what a text gives on at most five inputs, the most informative first.

    First come results with a rival: where only a critic's test sets a revision above another text,
    where a critic expects another result, where drafts differ. Then the inputs that the user named,
    a critic's tests that pass, edge cases, and varied inputs. What the task states is left out.
    """
    found: dict[_Key, Row] = {}
    stated = {key_of(one.source, one.setup) for one in read_examples(run.task.text)}
    for row in (
        *_changed(run, iteration),
        *_asked(iteration),
        *_by_critic(run, iteration),
        *_by_check(run, iteration),
    ):
        key = key_of(row.call, row.setup)
        before = found.get(key)
        if key not in stated and (before is None or (row.rivals and not before.rivals)):
            found[key] = row
    answers = {key_of(one.call, one.setup): one for one in run.task.clarifications}
    return tuple(_marked(found[key], answers.get(key)) for key in _shown(found, answers))


def key_of(call: str, setup: str = "") -> _Key:
    """Return what two inputs have in common that are the same, however they are laid out."""
    tree = try_parse_expression(call)
    return (ast.unparse(tree) if tree else call.strip(), setup.strip())


def gives_same(one: Row | Choice | Clarification | Expect, other: Row | Choice) -> bool:
    """Return whether two results are the same value or exception."""
    if one.raises or other.raises:
        return one.raises == other.raises and one.result == other.result
    value, other_value = read_literal(one.result), read_literal(other.result)
    if value is NO_VALUE or other_value is NO_VALUE:
        return one.result == other.result
    return equal_values(value, other_value)


def plain_form(test: Expectation) -> Row | None:
    """Return what a critic's test expects as a call and its result; None where it does more.

    It then ends in ``assert f(x) == literal``, or in one call under ``pytest.raises``.
    """
    tree = try_parse(test.code)
    function = tree.body[-1] if tree and tree.body else None
    if not isinstance(function, ast.FunctionDef) or function.args.args or function.decorator_list:
        return None
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body or not (found := _read(body[-1])):
        return None
    assert tree is not None, "the function is from it"
    before = [one for one in (*tree.body[:-1], *body[:-1]) if not _is_own_import(one)]
    setup = ast.unparse(ast.Module(before, []))
    tests = any(isinstance(one, ast.Assert | ast.With) for one in before)
    if tests or len(setup.splitlines()) > _SETUP_LINES:
        return None
    return found.replace(setup=setup)


def _read(node: ast.stmt) -> Row | None:
    match node:
        case ast.Assert(
            test=ast.Compare(left=call, ops=[ast.Eq() | ast.Is()], comparators=[value])
        ) if is_literal(result := ast.unparse(value)) and not is_literal(ast.unparse(call)):
            return Row(call=ast.unparse(call), result=result, source="critic")
        case ast.With(
            items=[ast.withitem(context_expr=ast.Call(func=ast.Attribute(attr="raises"), args=a))],
            body=[ast.Expr(value=call)],
        ) if len(a) == 1 and isinstance(a[0], ast.Name | ast.Attribute):
            name = ast.unparse(a[0]).rpartition(".")[2]
            return Row(call=ast.unparse(call), result=name, raises=True, source="critic")
    return None


def _is_own_import(node: ast.stmt) -> bool:
    """Return whether a statement imports what the text itself, or pytest, has."""
    if isinstance(node, ast.Import):
        return all(one.name == "pytest" for one in node.names)
    standard = sys.stdlib_module_names
    return isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] not in standard


def _changed(run: Run, iteration: Iteration) -> Iterator[Row]:
    """Yield the results that only a critic's test speaks for, against another text's."""
    rival = rival_of(run, iteration)
    tests = {one.name: one for one in run.expectations}
    for result in rival.results if rival else ():
        if (row := plain_form(tests[result.name])) and result.gives:
            yield row.replace(rivals=(result.gives,))


def _asked(iteration: Iteration) -> Iterator[Row]:
    for question in filter(None, (one.question for one in iteration.evidence)):
        own = question.own or Choice(result="")
        yield Row(
            call=question.call,
            result=own.result,
            raises=own.raises,
            setup=question.setup,
            source="drafts",
            rivals=tuple(one for one in question.choices if one != question.own),
        )


def _by_critic(run: Run, iteration: Iteration) -> list[Row]:
    """Return a critic's tests in their plain form; first those of which the text fails."""
    results = {one.name: one for one in iteration.tests}
    found = []
    for test in in_force(run.expectations):
        result, row = results.get(test.name), plain_form(test)
        if row is None or result is None or result.passed is None:
            continue
        if result.passed:
            found.append(row)
        elif gives := result.gives:
            rival = Choice(result=row.result, raises=row.raises)
            found.append(row.replace(result=gives.result, raises=gives.raises, rivals=(rival,)))
    return sorted(found, key=lambda row: not row.rivals)


def _by_check(run: Run, iteration: Iteration) -> list[Row]:
    """Return what the check on inputs found, with what other drafts give; differences first."""
    others = [
        {key_of(row.call, row.setup): row for row in _checked(draft)}
        for draft in run.drafts
        if draft.number != iteration.number and not any(e.failed for e in draft.evidence)
    ]
    found = []
    for row in _checked(iteration):
        key, votes = key_of(row.call, row.setup), Counter[tuple[str, bool]]()
        for other in filter(None, (one.get(key) for one in others)):
            if not gives_same(row, other):
                votes[other.result, other.raises] += 1
        rivals = tuple(Choice(result=r, raises=e, votes=n) for (r, e), n in votes.most_common())
        found.append(row.replace(rivals=rivals, source="drafts") if rivals else row)
    return sorted(found, key=lambda row: not row.rivals)


def _checked(iteration: Iteration) -> Iterator[Row]:
    return (row for evidence in iteration.evidence for row in evidence.rows)


def _marked(row: Row, answer: Clarification | None) -> Row:
    """Return a row with the user's word on it; what is answered is not asked again."""
    if answer is None:
        return row
    return row.replace(confirmed=gives_same(answer, row), rivals=())


def _shown(found: Mapping[_Key, Row], answered: Container[_Key]) -> list[_Key]:
    """Return which rows to show: five with few of one kind, among them what the user answered."""
    first, rest, counts = list[_Key](), list[_Key](), Counter[str]()
    for key, row in found.items():
        counts[row.source] += not row.rivals
        few = row.rivals or counts[row.source] <= _MOST.get(row.source, MAX_SHOWN)
        if row.result or row.rivals:
            (first if few else rest).append(key)
    order = [*first, *rest]  # an answer moves no row
    said = [key for key in order if key in answered]
    others = [key for key in order if key not in answered]
    kept = {*said, *others[: max(0, MAX_SHOWN - len(said))]}
    return [key for key in order if key in kept]


# What the user expects


def expect(row: Row, words: str | None = None) -> Expect:
    """Return the decision that a row's input gives a result; by default the row's own.

    Args:
        row: the input.
        words: the result: a value as Python, or the name of an exception.

    Raises:
        UsageError: the words are neither.
    """
    result = row if words is None else read_result(words)
    if not result.result:
        raise UsageError("This result can't be written as Python. Say what it should be.")
    return Expect(call=row.call, result=result.result, raises=result.raises, setup=row.setup)


def read_expectation(words: str) -> Expect:
    """Read what an input should give: ``f([]) == 0``, or ``f(-1) raises ValueError``.

    Raises:
        UsageError: it is neither, or what it should give is not a result.
    """
    call, raises, name = words.partition(" raises ")
    match try_parse_expression(words):
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[value]):
            call, name = ast.unparse(left), ast.unparse(value)
        case _ if not raises:
            raise UsageError('Use %refine expect 2 "VALUE", or %refine expect "f(x) == VALUE".')
    return expect(Row(call=call.strip(), result=""), name)


def read_result(words: str) -> Choice:
    """Read a result in the user's words: ``[1, 2]``, ``ValueError`` or ``raises ValueError``.

    Raises:
        UsageError: it is neither a value nor the name of an exception.
    """
    match = _EXCEPTION.fullmatch(words.strip())
    name = match[1].rpartition(".")[2] if match else ""
    if is_exception(name):
        return Choice(result=name, raises=True)
    if not is_literal(words.strip()):
        raise UsageError(
            "A result is a value as Python, such as [1, 2], or the name of an exception, such as "
            "ValueError."
        )
    return Choice(result=words.strip())


def is_exception(name: str) -> bool:
    """Return whether a name is an exception's, by what Python has or by how it ends."""
    kind = getattr(builtins, name, None)
    builtin = isinstance(kind, type) and issubclass(kind, Exception)
    return name.isidentifier() and (builtin or name.endswith(("Error", "Exception")))
