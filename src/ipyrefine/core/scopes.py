"""Tell which names of a module code reads and binds, as Python itself compiles it."""

import ast
import builtins
import dis
import re
import types
from collections.abc import Iterator
from typing import NamedTuple

from ipyrefine.core.syntax import (
    ERRORS,
    FUNCTION,
    IMPORT,
    compile_cell,
    names_used,
    tree_of,
    try_parse,
    unparse,
)

_READS = (
    "LOAD_NAME",
    "LOAD_GLOBAL",
    "LOAD_FROM_DICT_OR_GLOBALS",
    "DELETE_NAME",
    "DELETE_GLOBAL",
)
_BINDS = ("STORE_NAME", "STORE_GLOBAL")
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
# Part of the code around them, or called by nothing.
_NO_FUNCTIONS = (*_COMPREHENSIONS, "__annotate__")
_FIXED = FUNCTION | IMPORT
# Statements that have bound their names once they ran.
_SURE = _FIXED | ast.ClassDef | ast.Assign | ast.AnnAssign
# With one of these words an attribute may be a name of the module.
_REFLECTS = re.compile(r"\b(?:__main__|__name__|modules)\b")


class Read(NamedTuple):
    """A place where code reads a name of its module, or a built-in one."""

    name: str
    line: int
    column: int
    inside: bool  # whether a function or a class does, which may be later
    bound: bool  # whether the module may have bound it above, or at all where it is read inside


def module_names(source: str | ast.Module) -> tuple[list[Read], frozenset[str]]:
    """Return where code reads names of its module, as it runs, and which it binds.

    A class's own are none of them.

    Raises:
        SyntaxError: it cannot be compiled; other faults raise another of `syntax.ERRORS`.
    """
    codes = [([*_instructions(compile_cell(source))], set[str]())]
    for code, own in codes:
        for inner in (one.argval for one in code if isinstance(one.argval, types.CodeType)):
            if inner.co_name not in _NO_FUNCTIONS:
                steps = [*_instructions(inner)]
                # Only a class stores by name; its functions' types may be what it stores.
                stored = {one.argval for one in steps if one.opname == "STORE_NAME"}
                codes.append((steps, stored or own))
    (top, _), *later = codes
    # Names that functions bind may be bound from the start.
    bound = {one.argval for code, _ in later for one in code if one.opname == "STORE_GLOBAL"}
    reads = []
    for code, own in codes:  # functions run later, when everything is bound
        for one in code:
            if one.opname in _READS and (one.opname == "LOAD_GLOBAL" or one.argval not in own):
                line, _, column, _ = one.positions  # type: ignore[misc]
                where = line or 0, column or 0, code is not top
                reads.append(Read(one.argval, *where, bound=one.argval in bound))
            elif one.opname in _BINDS and one.argval not in own:
                bound.add(one.argval)
    return reads, frozenset(bound)


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of code and, in place, of its comprehensions, as of Python 3.12."""
    for one in dis.get_instructions(code):
        yield one
        if isinstance(one.argval, types.CodeType) and one.argval.co_name in _COMPREHENSIONS:
            yield from _instructions(one.argval)


def names_needed(source: str, *calls: str) -> set[str]:
    """Return the names that some code may read before it binds them.

    With calls, only what these depend on counts.

    Names in its strings count too, as ``eval`` and queries read them; docstrings do not. Of what is
    not Python every word counts.
    """
    tree = try_parse(source)
    if tree is None:
        return set(re.findall(r"\w+", f"{source} {' '.join(calls)}"))
    reflects, parts, sure = bool(_REFLECTS.search(source)), list[_Part](), set[str]()
    for node in tree.body:
        part = _part(node, reflects=reflects)
        parts.append(part._replace(free=part.reads - sure))
        sure |= part.binds if isinstance(node, _SURE) else frozenset()
    if not calls:
        return set[str]().union(*(part.free for part in parts))
    wanted = set[str]().union(*map(names_needed, calls), *map(_imported, calls))
    return (wanted - sure).union(*(part.free for part in _behind(parts, wanted)))


def _imported(source: str) -> set[str]:
    """Return the names that tests import from the code's module, which may be any."""
    nodes = [*ast.walk(tree_of(source))]
    names = {one.name for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}
    if any(isinstance(one, ast.Import) for one in nodes):
        names |= {one.attr for one in nodes if isinstance(one, ast.Attribute)}
    return names


class _Part(NamedTuple):
    node: ast.stmt
    reads: frozenset[str]
    binds: frozenset[str]
    changes: frozenset[str]  # these, and those of which it assigns an attribute or an item
    free: frozenset[str] = frozenset()  # what it reads that nothing above is sure to have bound


def _part(node: ast.stmt, *, reflects: bool) -> _Part:
    # Docstrings, and others that stand alone, say nothing.
    alone = {id(one.value) for one in ast.walk(node) if isinstance(one, ast.Expr)}
    values = (o for o in ast.walk(node) if isinstance(o, ast.Constant) and id(o) not in alone)
    texts = (one.value for one in values if isinstance(one.value, str))
    words = {word for text in texts for word in re.findall(r"\w+", text)}
    if reflects:
        words |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    try:
        reads, binds = module_names(ast.Module([node], []))
    except ERRORS:  # such as `return` outside of a function
        every = frozenset(re.findall(r"\w+", unparse(node)))
        return _Part(node, every, every, every)
    places = (one for one in ast.walk(node) if isinstance(one, ast.Attribute | ast.Subscript))
    stored = {
        name for one in places if isinstance(one.ctx, ast.Store) for name in names_used(one.value)
    }
    read = {one.name for one in reads if one.inside or not one.bound}
    return _Part(node, frozenset(words | read), binds, binds | stored)


def _behind(parts: list[_Part], wanted: set[str]) -> list[_Part]:
    """Return the statements that bind some names, or may change what these hold.

    Functions, imports and constants stay as they are, so that a call of one changes only what the
    function itself reads.
    """
    bodies = dict.fromkeys(dir(builtins), frozenset[str]())
    bodies |= {name: one.reads for one in parts if _is_fixed(one.node) for name in one.binds}
    for name in (name for one in parts if not _is_fixed(one.node) for name in one.changes):
        bodies.pop(name, None)

    def reached(part: _Part) -> set[str]:
        names = [*part.reads]
        for name in names:
            names += bodies.get(name, frozenset()) - {*names}
        return {*names} - bodies.keys()

    found, left, growing = list[_Part](), [(one, reached(one) | one.changes) for one in parts], True
    while growing:
        now = [one for one, names in left if not names.isdisjoint(wanted)]
        found, left = found + now, [one for one in left if one[0] not in now]
        wanted, growing = wanted.union(*(one.reads for one in now)), bool(now)
    return found


def _is_fixed(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name()], value=ast.Constant()):
            return True
    return isinstance(node, _FIXED)
