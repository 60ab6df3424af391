"""The tests that a critic wrote, which every text of the run is tried on."""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from ipyrefine.core.model import one_line
from ipyrefine.core.syntax import (
    ERRORS,
    FUNCTION,
    names_at_top,
    names_bound,
    names_used,
    parse,
    tree_of,
    try_parse,
    unparse,
)
from ipyrefine.core.table import MAX_CODE, Cell, Point, Result

_TEST = re.compile(r"^[^\S\n]*(?:async\s+)?def\s+(test\w*)", re.MULTILINE)
_CLAIM = re.compile(r"^\s*(?:assert\b|>>> )", re.MULTILINE)
_PARTS = re.compile(r"\n\s*\n|\n\s*[-*•]\s")  # where one passage of a docstring ends
_DOES = (ast.If, ast.Expr, ast.Assert)  # statements that do something and bind no name
_QUOTED_TESTS = 3  # of those that fail, as code
MAX_OF_CRITIQUE = 12
MAX_OF_RUN = 40


def read_tests(source: str, text: str = "") -> list[Point]:
    """Return the tests of a piece of Python, each with its module: functions named ``test_…``.

    A source that is not Python, or asserts something and has no test, is one test, which cannot be
    tried. Copies of what `text` defines are left out.
    """
    names = _TEST.findall(source) or ["test_block"] * bool(_CLAIM.search(source))
    try:
        return _read_tests(parse(source), source, tree_of(text))
    except SyntaxError as error:
        reason = f"It is not Python. Line {error.lineno}: {error.msg}."
        return [_broken(name, source, reason) for name in names[:1]]
    except ERRORS:
        return [_broken(name, "", "It is nested too deeply.") for name in names[:1]]


def _read_tests(tree: ast.Module, source: str, text: ast.Module) -> list[Point]:
    own, whole = names_at_top(text.body), set()
    with suppress(RecursionError):  # nobody copies what is so deep
        whole = {*map(unparse, text.body)}
    body = [
        one
        for one in tree.body
        if getattr(one, "name", "") not in own and unparse(one) not in whole
    ]
    found = [one for one in body if isinstance(one, FUNCTION) and one.name.startswith("test_")]
    if not found and body == tree.body and _CLAIM.search(source):
        return [_broken("test_block", source, "It has no function whose name starts with test_.")]
    others = [one for one in body if one not in found and not isinstance(one, _DOES)]
    module, tests = "\n\n".join(map(unparse, others)), []
    for one in found[:MAX_OF_RUN]:
        code = "\n\n".join(map(unparse, needed([one], others)))
        test = Point(kind="test", words=one.name, code=code[:MAX_CODE], quote=_quote(one))
        if len(code) > MAX_CODE:
            test = test.replace(dropped="long")
        elif len(module) <= MAX_CODE:
            test = test.replace(module=module)
        tests.append(test)
    return tests


def _broken(name: str, source: str, reason: str) -> Point:
    return Point(kind="test", words=name, code=source[:MAX_CODE], dropped="broken", reason=reason)


def _quote(test: FUNCTION) -> str:
    """Return the words behind a test: its docstring."""
    parts = map(one_line, _PARTS.split(ast.get_docstring(test) or ""))
    quote = " / ".join(filter(None, parts))
    whole = re.fullmatch(r'"([^"]+)"', quote)
    return whole[1] if whole else quote


def needed(nodes: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return pieces of code after the statements that bind what they read, and what these read.

    A piece that is itself among the others keeps its place there.
    """
    wanted, found = set[str]().union(*map(_names_read, nodes)), []
    growing = True
    while growing:
        growing = False
        for other in others:
            binds = names_bound(other) & wanted or "pytestmark" in names_bound(other)
            if other not in found and (binds or other in nodes or "autouse" in _words(other)):
                found.append(other)
                wanted |= _names_read(other)
                growing = True
    return [one for one in others if one in found] + [one for one in nodes if one not in others]


def _names_read(node: ast.stmt) -> set[str]:
    return names_used(node) | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}


def _words(node: ast.AST) -> set[str]:
    """Return the strings of a piece of code, and the names of its keyword arguments."""
    parts = [*ast.walk(node)]
    words = {str(one.value) for one in parts if isinstance(one, ast.Constant)}
    return words | {one.arg for one in parts if isinstance(one, ast.keyword) and one.arg}


def name_apart(tests: Iterable[Point], earlier: Iterable[Point], number: int) -> tuple[Point, ...]:
    """Rename new tests that have an earlier one's name; leave out those that say the same.

    They are written for the text of that number. Texts are tried on at most 12 tests of a critique,
    and on 40 of a run.
    """
    earlier, able = list(earlier), ("", "you")
    taken, codes = {one.words for one in earlier}, {_body(one.code) for one in earlier}
    room = min(MAX_OF_CRITIQUE, MAX_OF_RUN - sum(one.dropped in able for one in earlier))
    fresh: list[Point] = []
    for test in tests:
        if _body(test.code) in codes:
            continue
        if not test.dropped and sum(not one.dropped for one in fresh) >= room:
            test = test.replace(dropped="many")
        name, again = test.words, 2
        while name in taken:
            name, again = f"{test.words}_{again}", again + 1
        code, tree = test.code, try_parse(test.code) if name != test.words else None
        if tree and (function := _function(tree)):  # else it is not tried
            function.name = name
            code = unparse(tree)
        taken.add(name)
        codes.add(_body(test.code))
        fresh.append(test.replace(words=name, code=code, text=number))
    return tuple(fresh)


def _body(code: str) -> str:
    tree = try_parse(code)
    if tree is None or not (test := _function(tree)):
        return code
    if ast.get_docstring(test):
        test.body = test.body[1:] or [ast.Pass()]
    test.name = "test"
    return unparse(tree)


def _function(tree: ast.Module) -> FUNCTION | None:
    """Return the function of a test, which stands last."""
    last = tree.body[-1] if tree.body else None
    return last if isinstance(last, FUNCTION) else None


def suite_evidence(points: Mapping[str, Point], results: Mapping[str, Result]) -> Result | None:
    """Return what a text shows of a critic's tests, together; None where it was tried on none.

    It fails where a test fails that counts. It says nothing where none of those could be tried.
    """
    found = [Cell(points[id_], one) for id_, one in results.items() if is_critics(points[id_])]
    found = [one for one in found if not one.point.dropped]
    if not found:
        return None
    tried = [p for p in found if p.result.passed is not None and p.point.counts]
    failing = [one for one in tried if not one.result.passed]
    held = len(tried) - len(failing)
    lines = [f"{test.words} (“{test.quote}”): {one.shows}" for test, one in failing]
    lines += [one.point.code for one in failing[:_QUOTED_TESTS]]
    lines += [f"{held} of {len(tried)} tests of the critic's pass."] if tried else []
    conditions = dict.fromkeys(c for one in found for c in one.result.conditions)
    return Result(
        name="critic's tests",
        passed=held == len(tried) if tried else None,
        score=held / len(tried) if tried else None,
        tallies={"test": (held, len(tried))} if tried else {},
        shows="\n".join(lines),
        basis="critique",
        computed=any(one.result.computed for one in found),
        conditions=tuple(conditions),
    )


def is_critics(point: Point) -> bool:
    """Return True if a point is a test that a critic wrote."""
    return point.kind == "test" and point.source == "critic"
