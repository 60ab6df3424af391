"""What a text gives on a few inputs, for the user to confirm: the most informative rows first."""

import ast
import builtins
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice, zip_longest
from zlib import crc32

from ipyrefine.core.decisions import Expect
from ipyrefine.core.model import Called, Outcome, bare
from ipyrefine.core.points import left_open
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stated import read_examples
from ipyrefine.core.syntax import (
    NO_VALUE,
    equal_values,
    is_literal,
    read_literal,
    try_parse,
    try_parse_expression,
    unparse,
)
from ipyrefine.core.table import Point, Result
from ipyrefine.core.testing import is_critics, needed
from ipyrefine.errors import UsageError

MAX_SHOWN = 5  # rows of a text
# Whatever a text gives, it does not pass for that.
_BARS = ("disputed", "not_ready", "not_run", "not_tried")
_MAX_ASKED = 2  # of them; the others are folded
# Exceptions that say that a text is broken; nobody has to say whether they are right.
_FAULTS = tuple(
    f"raises {name}Error" for name in ("Name", "UnboundLocal", "Import", "ModuleNotFound", "Syntax")
)
_MOST_OF_CRITIC = 2  # rows without a rival
_SETUP_LINES = 6
_EXCEPTION = re.compile(r"(?:raises?\s+)?([A-Za-z_][\w.]*)", re.IGNORECASE)

Key = tuple[str, str]  # an input: the call and what runs before it


def rows(run: Run, iteration: Iteration | None) -> tuple[Result, ...]:
    """Return what a text gives on at most five inputs, the most informative first.

    First come results with a rival: where only a critic's test sets a revision above another text,
    and where a critic expects another result. Then the inputs that the user named, a critic's tests
    that pass, and varied inputs. What the task states is left out.
    While an example fails, or the text does not run, only what the user answered is there.
    """
    if iteration is None:
        return ()
    found: dict[Key, Result] = {}
    stated = {*map(key_of, read_examples(run.task.text))}
    every = (
        one.replace(rivals=tuple(rival for rival in one.rivals if rival not in _FAULTS))
        for one in (
            *_changed(run, iteration),
            *_left_open(run, iteration),
            *_by_critic(run, iteration),
            *_checked(iteration),
        )
    )
    answers = {key_of(one): one for one in run.task.clarifications}
    fails = any(
        one.failed and (one.by_examples or one.basis == "run") for one in iteration.evidence
    )
    for row in sorted(every, key=lambda row: not row.rivals):
        key = key_of(row)
        if key in answers or not (fails or key in stated or row.gives in _FAULTS):
            found.setdefault(key, row)
    # What is answered is not asked again.
    said = {
        key: row.replace(passed=gives_same(answers[key].gives, row.gives), rivals=())
        for key, row in found.items()
        if key in answers
    }
    return tuple((found | said)[key] for key in _shown(found, answers))


def unfolded(shown: Sequence[Result]) -> list[Result]:
    """Return the rows to see at once: at most two that ask, the user's, and what a cell did."""
    asked = [one for one in shown if one.rivals][:_MAX_ASKED]
    called = [one for one in shown if one.source != "cell"]
    first = sorted(called, key=lambda one: bool(one.conditions))[:_MAX_ASKED]
    return [
        one
        for one in shown
        if one.source == "cell" or one.passed is not None or one in asked or one in first
    ]


def example_asked(iteration: Iteration, shown: Sequence[Result]) -> Result | None:
    """Return the call of a function of which the user is asked for the result, if any.

    It is one where nothing says what a text should give, and no other result asks.
    """
    said = iteration.verdict
    undecided = said and said.outcome is Outcome.NOT_JUDGED and said.why not in _BARS
    if not undecided or len(shown) != 1:
        return None
    asked = shown[0]
    known = asked.setup or asked.rivals or asked.conditions or asked.passed is not None
    return asked if asked.source == "own" and not known else None


def given(run: Run, iteration: Iteration) -> dict[Key, str]:
    """Return what a text gives, by input: in checks, and in a critic's tests."""
    found = list[Result]()
    for test, result in run.cells(iteration):
        if is_critics(test):
            found += claims(test) if result.passed else [result] * bool(result.gives)
    return {key_of(one): one.gives for one in (*found, *_checked(iteration))}


def key_of(one: Called) -> Key:
    """Return what two inputs have in common that are the same, however they are laid out."""
    return laid_out(one.call), one.setup.strip()


@lru_cache(maxsize=1024)  # tables ask for the same few inputs of each text
def laid_out(call: str) -> str:
    """Return a call on one line, or as it stands where it is no Python."""
    tree = try_parse_expression(call)
    return unparse(tree) if tree else call.strip()


def gives_same(one: str, other: str) -> bool:
    """Return True if two results are the same value or exception."""
    value, other_value = read_literal(one), read_literal(other)
    if value is NO_VALUE or other_value is NO_VALUE:
        return one == other
    return one == other or equal_values(value, other_value)


def claims(test: Point) -> tuple[Result, ...]:
    """Return what a critic's test expects as calls with their results; none where it does more.

    Each of its lines is then ``assert f(x) == literal``, or a call under ``pytest.raises``; or the
    last one alone is, below a few lines that set it up. ``parametrize`` makes several of one.
    """
    try:
        return _claims(test.code)
    except RecursionError:  # it is nested too deeply to be looked at
        return ()


@lru_cache(maxsize=128)
def _claims(code: str) -> tuple[Result, ...]:
    tree = try_parse(code)
    function = tree.body[-1] if tree and tree.body else None
    if tree is None or not isinstance(function, ast.FunctionDef):
        return ()
    above = needed([function], tree.body[:-1])[:-1]
    if function.decorator_list or function.args.args:  # it has cases or fixtures
        return ()
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    read = [_read(one) for one in body]
    start = 0 if all(read) else len(read) - 1
    # What is imported from the text itself, or is pytest, is there anyway.
    before = [
        one
        for one in (*above, *body[:start])
        if unparse(one) != "import pytest"
        and not (
            isinstance(one, ast.ImportFrom)
            and (one.module or "").split(".")[0] not in sys.stdlib_module_names
        )
    ]
    setup = unparse(ast.Module(before, []))
    tests = any(isinstance(one, ast.Assert | ast.With) for one in before)
    if tests or not (body and read[-1]) or len(setup.splitlines()) > _SETUP_LINES:
        return ()
    return tuple(row.replace(setup=setup) for row in read[start:] if row)


def _read(node: ast.stmt) -> Result | None:
    match node:
        case ast.Assert(
            test=ast.Compare(left=call, ops=[ast.Eq() | ast.Is()], comparators=[value])
        ) if is_literal(result := unparse(value)) and not is_literal(unparse(call)):
            return Result(call=unparse(call), gives=result, source="critic")
        case ast.With(
            items=[
                ast.withitem(
                    context_expr=ast.Call(
                        func=ast.Attribute(attr="raises") | ast.Name(id="raises"), args=a
                    )
                )
            ],
            body=[ast.Expr(value=call)],
        ) if len(a) == 1 and isinstance(a[0], ast.Name | ast.Attribute):
            name = unparse(a[0]).rpartition(".")[2]
            return Result(call=unparse(call), gives=f"raises {name}", source="critic")
    return None


def _changed(run: Run, iteration: Iteration) -> Iterator[Result]:
    """Yield the results that only a critic's test speaks for, against another text's."""
    held = {id_ for id_, one in iteration.results.items() if one.passed}
    for other in run.iterations[: iteration.number]:
        wrong = any(one.failed for one in other.evidence)
        for test, one in run.cells(other):
            asks = is_critics(test) and test.id in held and not (wrong or test.dropped)
            if asks and one.gives:
                yield one.on_input(gives=one.expected, rivals=(one.gives,), source="critic")


def _left_open(run: Run, iteration: Iteration) -> Iterator[Result]:
    """Yield the inputs on which the answers to a critic's questions differ."""
    given = {key_of(row): row for row in _checked(iteration)}
    for question in left_open(run, iteration):
        if question.call:
            row = given.get(key_of(Called(call=question.call))) or Result()
            rivals = (
                one for one in results_among(question.options) if not gives_same(one, row.gives)
            )
            yield row.replace(call=question.call, source="open", rivals=tuple(rivals))


def _by_critic(run: Run, iteration: Iteration) -> list[Result]:
    """Return what a critic's tests claim: what the text misses, then the first of each test."""
    missed, held = [], []
    for test, result in run.cells(iteration):
        if not is_critics(test) or test.dropped:
            continue
        if result.passed:
            held.append(claims(test))
        elif result.gives:
            missed.append(result.on_input(source="critic"))
    return [*missed, *filter(None, chain.from_iterable(zip_longest(*held)))]


def _checked(iteration: Iteration) -> Iterator[Result]:
    return (row for evidence in iteration.evidence for row in evidence.rows)


def _shown(found: Mapping[Key, Result], answered: Container[Key]) -> list[Key]:
    """Return which rows to show: five with few of one kind, among them what the user answered."""
    shown = [key for key, row in found.items() if row.gives or row.rivals]
    by_critic = (key for key in shown if found[key].source == "critic" and not found[key].rivals)
    late = {*islice(by_critic, _MOST_OF_CRITIC, None)}  # variety is what finds faults
    order = sorted(shown, key=late.__contains__)  # an answer moves no row
    said = [key for key in order if key in answered]
    kept = {*said, *[key for key in order if key not in answered][: max(0, MAX_SHOWN - len(said))]}
    return [key for key in order if key in kept]


def row_key(row: Result) -> str:
    """Return the name by which a page says which result it means."""
    return f"{crc32(repr((row.setup, row.call)).encode()):x}"


def row_choices(row: Result) -> tuple[str, ...]:
    """Return the possible results of a row, in an order that does not give away the text's own."""
    results = filter(None, {row.gives, *row.rivals})
    return tuple(sorted(results, key=lambda one: (bare(one), bare(one) != one)))


# What the user expects


def expect(row: Called, words: str | None = None) -> Expect:
    """Return the decision that a row's input gives a result; by default the row's own.

    Raises:
        UsageError: the words are neither a value as Python nor the name of an exception.
    """
    gives = row.gives if words is None else read_result(words)
    if not gives:
        raise UsageError("This result can't be written as Python. Say what it should be.")
    return Expect(call=row.call, gives=gives, setup=row.setup)


def read_expectation(words: str) -> Expect:
    """Read what an input should give: ``f([]) == 0``, or ``f(-1) raises ValueError``.

    Raises:
        UsageError: it is neither, or what it should give is not a result.
    """
    call, raises, name = words.partition(" raises ")
    match try_parse_expression(words):
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[value]):
            call, name = unparse(left), unparse(value)
        case _ if not raises:
            raise UsageError('Use %refine should 2 "VALUE", or %refine should "f(x) == VALUE".')
    return expect(Called(call=call.strip()), name)


def read_result(words: str) -> str:
    """Read a result in the user's words: ``[1, 2]``, ``ValueError`` or ``raises ValueError``.

    Raises:
        UsageError: it is neither a value nor the name of an exception.
    """
    match = _EXCEPTION.fullmatch(words.strip())
    name = match[1].rpartition(".")[2] if match else ""
    if is_exception(name):
        return f"raises {name}"
    if not is_literal(words.strip()):
        raise UsageError(
            "A result is a value as Python, such as [1, 2], or the name of an exception, such as "
            "ValueError."
        )
    return words.strip()


def results_among(options: Iterable[str]) -> list[str]:
    """Return those of some answers that are results."""
    found = []
    for option in options:
        with suppress(UsageError):
            found.append(read_result(option))
    return found


def is_exception(name: str) -> bool:
    """Return True if a name is an exception's, by what Python has or by how it ends."""
    kind = getattr(builtins, name, None)
    builtin = isinstance(kind, type) and issubclass(kind, Exception)
    return name.isidentifier() and (builtin or name.endswith(("Error", "Exception")))
