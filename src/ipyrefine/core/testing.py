"""The tests that a critic wrote, which every text of the run is tried on."""

import ast
import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import takewhile
from typing import Any, NamedTuple, TypeGuard

from ipyrefine.core.quotes import QUOTED
from ipyrefine.core.syntax import ERRORS, names_bound, names_used, parse, try_parse, unparse
from ipyrefine.core.table import MAX_CODE, Cell, Evidence, Point, Result, Tally

_TEST = re.compile(r"^[^\S\n]*(?:async\s+)?def\s+(test\w*)", re.MULTILINE)
_CLAIM = re.compile(r"^\s*(?:assert\b|>>> )", re.MULTILINE)
_QUOTED_TESTS = 3  # of those that fail, as code
MAX_OF_CRITIQUE = 12
MAX_OF_RUN = 40


def read_tests(source: str, beside: Iterable[str] = (), text: str = "") -> list[Point]:
    """Return the tests of a piece of Python, each with its module.

    They are functions named ``test…``, such methods of classes, functions without arguments that
    assert something, and assertions outside of functions. A source that is not Python, or asserts
    what nothing can run, is one test, which cannot be tried.

    `beside` are other pieces of the reply, for what this one does not define; copies of what `text`
    defines are left out.
    """
    names = _TEST.findall(source) or ["test_block"] * bool(_CLAIM.search(source))
    try:
        return _read_tests(parse(source), source, beside, try_parse(text) or ast.Module([], []))
    except SyntaxError as error:
        reason = f"It is not Python. Line {error.lineno}: {error.msg}."
        return [_broken(name, source, reason) for name in names[:1]]
    except ERRORS:
        return [_broken(name, "", "It is nested too deeply.") for name in names[:1]]


def _read_tests(
    tree: ast.Module, source: str, beside: Iterable[str], text: ast.Module
) -> list[Point]:
    own, whole = set[str]().union(*map(names_bound, text.body)), set[str]()
    with suppress(RecursionError):  # nobody copies what is so deep
        whole = {*map(unparse, text.body)}
    body = [
        one
        for one in tree.body
        if not (_is_definition(one) and one.name in own) and unparse(one) not in whole
    ]
    units, others = _split(body, source.splitlines())
    units = units[:MAX_OF_RUN]
    if not units:
        asserts = body == tree.body and any(map(_asserts, body))
        reason = "Nothing in it can be run as a test."
        return [_broken("test_block", source, reason)] if asserts else []
    known = own.union(*map(names_bound, body))
    pieces = (try_parse(piece) or ast.Module([], []) for piece in beside)
    further = [one for piece in pieces for one in _split(piece.body, ())[1]]
    further = [one for one in further if not names_bound(one) & known]
    here = [*others, *(unit.node for unit in units)]
    others = [*needed(here, further)[: -len(here)], *others]
    module, tests = "\n\n".join(map(unparse, others)), list[Point]()
    for name, node, quote in units:
        code = "\n\n".join(map(unparse, needed([node], others)))
        test = Point(kind="test", words=name, code=code[:MAX_CODE], quote=quote)
        if len(code) > MAX_CODE:
            test = test.replace(dropped="long")
        elif len(module) <= MAX_CODE:
            test = test.replace(module=module)
        tests.append(test)
    return tests


def _broken(name: str, source: str, reason: str) -> Point:
    code = source[:MAX_CODE]
    return Point(kind="test", words=name, code=code, dropped="broken", reason=reason)


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _is_definition(node: ast.AST) -> TypeGuard[_Function | ast.ClassDef]:
    return isinstance(node, _Function | ast.ClassDef)


def _is_test(node: ast.AST) -> TypeGuard[_Function]:
    return isinstance(node, _Function) and node.name.startswith("test") and not _is_fixture(node)


def _is_fixture(node: _Function) -> bool:
    return any("fixture" in unparse(one) for one in node.decorator_list)


def _asserts(node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Assert)
        or (isinstance(one, ast.Call) and unparse(one.func).endswith(("raises", ".fail")))
        for one in ast.walk(node)
    )


class _Unit(NamedTuple):
    """A test as one statement: a function, or a class with a single one of its tests."""

    name: str
    node: ast.stmt
    quote: str


def _split(body: Sequence[ast.stmt], lines: Sequence[str]) -> tuple[list[_Unit], list[ast.stmt]]:
    """Return the tests of a module, and its other statements."""
    units, others, loose = list[_Unit](), list[ast.stmt](), list[ast.stmt]()
    uses = Counter(name for one in body if _is_definition(one) for name in names_used(one))
    main = list[ast.stmt]()
    for node in body:
        if isinstance(node, ast.ClassDef) and (tests := [*filter(_is_test, node.body)]):
            rest = [one for one in node.body if one not in tests]
            for test in tests:
                alone = copy(node)
                alone.body = [*rest, test]
                quote = _quote(test, lines) or _quote(node, lines)
                units.append(_Unit(test.name, alone, quote))
        elif _is_test(node) or (_is_check(node) and not uses[node.name]):
            units.append(_Unit(node.name, node, _quote(node, lines)))
        elif _is_definition(node) or isinstance(node, ast.Import | ast.ImportFrom):
            others.append(node)
        elif isinstance(node, ast.If) and "__name__" in names_used(node.test):
            main += node.body
        else:
            loose.append(node)
    checks = {one.name for one in others if isinstance(one, _Function) and _asserts(one)}
    if any(_is_claim(one, checks) for one in main):
        loose += main
    claims = [one for one in loose if _is_claim(one, checks)]
    rest = [one for one in loose if not _is_claim(one, checks)]
    if all(isinstance(one, ast.Assign | ast.AnnAssign) for one in rest):
        units += [_as_test([one], lines) for one in claims]
        others += rest
    elif claims:  # what stands between them may change what they are about
        units.append(_as_test(loose, lines))
    else:
        others += rest
    return units, sorted(others, key=lambda one: one.lineno)


def _is_check(node: ast.stmt) -> TypeGuard[_Function]:
    """Return True if a function asserts something and needs no argument."""
    if not isinstance(node, _Function) or _is_fixture(node) or not _asserts(node):
        return False
    return bool(node.decorator_list) or len(node.args.args) <= len(node.args.defaults)


def _is_claim(node: ast.stmt, checks: Collection[str]) -> bool:
    """Return True if a statement outside of functions asserts something."""
    match node:
        case ast.Expr(value=ast.Compare()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in checks:
            return True
    return _asserts(node)


def _as_test(nodes: Sequence[ast.stmt], lines: Sequence[str]) -> _Unit:
    """Return statements as a test, which is named after what it calls."""
    parts = [part for node in nodes for part in ast.walk(node)]
    called = (one.func for one in parts if isinstance(one, ast.Call))
    names = (one.id for one in called if isinstance(one, ast.Name))
    name = f"test_{next((one for one in names if not hasattr(builtins, one)), 'claim')}"
    waits = any(isinstance(one, ast.Await | ast.AsyncFor | ast.AsyncWith) for one in parts)
    test: Any = parse(f"{'async ' * waits}def {name}(): pass").body[0]
    test.body = [
        ast.Assert(one.value) if isinstance(one, ast.Expr) and isinstance(one.value, ast.Compare)
        else one
        for one in nodes
    ]  # fmt: skip
    return _Unit(name, test, " / ".join(filter(None, (_quote(one, lines) for one in nodes))))


def _quote(node: ast.stmt, lines: Sequence[str]) -> str:
    """Return the words behind a test: its docstring or message, else the comments at it."""
    words = ""
    if _is_definition(node):
        words = ast.get_docstring(node) or ""
    elif isinstance(node, ast.Assert) and isinstance(node.msg, ast.Constant):
        words = str(node.msg.value)
    if not words:
        top = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))]) - 1
        above = [*takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[:top]))]
        end = node.body[0].lineno - 1 if _is_definition(node) else node.end_lineno or top
        inside = [line[line.find("#") :] for line in lines[top:end] if "#" in line]
        words = "\n".join(line.strip("# ") for line in (*reversed(above), *inside))
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n|\n\s*[-*•]\s", words))
    quote = " / ".join(filter(None, parts))
    whole = QUOTED.fullmatch(quote)
    return next(filter(None, whole.groups())) if whole else quote


def needed(nodes: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return pieces of code after the statements that bind what they read, and what these read.

    A piece that is itself among the others keeps its place there.
    """
    wanted, found = set[str]().union(*map(_names_read, nodes)), list[ast.stmt]()
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
    names = names_used(node) | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    fixtures = (one for one in calls if re.search("fixtures?$|value$", unparse(one.func)))
    return names.union(*map(_words, fixtures))


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
        code = test.code if name == test.words else _renamed(test.code, name)
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


def _renamed(code: str, new: str) -> str:
    tree = try_parse(code)
    if tree is None or not (test := _function(tree)):  # it is not tried
        return code
    test.name = new
    return unparse(tree)


def _function(tree: ast.Module) -> _Function | None:
    """Return the function of a test, which stands last, also in a class."""
    last: ast.AST | None = tree.body[-1] if tree.body else None
    last = last.body[-1] if isinstance(last, ast.ClassDef) else last
    return last if isinstance(last, _Function) else None


def suite_evidence(points: Mapping[str, Point], results: Mapping[str, Result]) -> Evidence | None:
    """Return what a text shows of a critic's tests, together; None where it was tried on none.

    It fails where a test fails that counts. It says nothing where none of those could be tried. A
    pass that an empty text shares does not count.
    """
    found = [Cell(points[id_], one) for id_, one in results.items() if is_critics(points[id_])]
    found = [one for one in found if not one.point.dropped]
    if not found:
        return None
    tried = [p for p in found if p.result.passed is not None and p.result.counts and p.point.counts]
    failing = [one for one in tried if not one.result.passed]
    held = len(tried) - len(failing)
    lines = [f"{test.words} (“{test.quote}”): {one.shows}" for test, one in failing]
    lines += [one.point.code for one in failing[:_QUOTED_TESTS]]
    lines += [f"{held} of {len(tried)} tests of the critic's pass."] if tried else []
    conditions = dict.fromkeys(c for one in found for c in one.result.conditions)
    return Evidence(
        name="critic's tests",
        passed=held == len(tried) if tried else None,
        score=held / len(tried) if tried else None,
        tallies=(Tally(held=held, of=len(tried), noun="test"),) if tried else (),
        shows="\n".join(lines),
        basis="critique",
        computed=any(one.result.computed for one in found),
        conditions=tuple(conditions),
    )


def is_critics(point: Point) -> bool:
    """Return True if a point is a test that a critic wrote."""
    return point.kind == "test" and point.source == "critic"
