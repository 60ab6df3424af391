"""Find the names that a cell uses but does not define: in code by its syntax, in prose by marks."""

import ast
import builtins
import dis
import re
import types
from collections.abc import Iterable, Iterator

from ipyrefine.core.stated import fenced_python, read_examples
from ipyrefine.core.syntax import ERRORS, compile_cell, names_bound, parse, try_parse
from ipyrefine.kernel.magics import python_part

_MAX_SOURCE = 200_000  # characters of code that are read
_BUILTINS = frozenset(dir(builtins))
_LOADS = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
_STORES = frozenset({"STORE_NAME", "STORE_GLOBAL"})
_BACKTICKS = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w{0,100})\((?!e?s\))")  # not the plural of "file(s)"
# What a request asks to write is not there yet; an older one of that name must not stand in for it.
_ASKED = re.compile(
    r"\b(?:write|implement|define|create|build|develop|(?:function|class|method)\s+(?:called|named))"
    r"\s+(?:(?:an?|the|me|us|new|python|function|class|method|called|named)\s+){0,5}"
    r"`?([A-Za-z_]\w{0,100})",
    re.IGNORECASE,
)


def names_in_code(source: str) -> list[str]:
    """Return the names that code reads before it binds them, in their order; no built-in ones."""
    part = python_part(source[:_MAX_SOURCE])
    try:
        names = _free_names(parse(part.code))
    except ERRORS:
        return []
    return [name for name in dict.fromkeys(names) if name not in _BUILTINS | part.names]


def names_in_draft(source: str) -> list[str]:
    """Return the names that a draft is about, also where it is not Python yet.

    They are those that it reads, and those that its lines for IPython bind, which no check runs.
    """
    part = python_part(source[:_MAX_SOURCE])
    names = names_in_code(source) if try_parse(part.code) else _names_in_broken_code(part.code)
    return list(dict.fromkeys([*names, *sorted(part.names)]))


def _names_in_broken_code(source: str) -> Iterator[str]:
    from pygments.lexers import PythonLexer  # type: ignore[import-untyped]

    before = ""
    for kind, text in PythonLexer().get_tokens(source):
        if text.isidentifier() and kind[:1] == ("Name",) and before != ".":
            yield text
        before = text if text.strip() else before


def names_defined(source: str) -> list[str]:
    """Return the names that code leaves to what comes below it; none if it is not Python.

    They are those of its functions and classes, and those that its own statements assign. Loops,
    imports, what it deletes, and names that start with an underscore do not count.
    """
    tree = try_parse(python_part(source[:_MAX_SOURCE]).code) or ast.Module([], [])
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    deleted = {node.id for node in nodes if isinstance(node.ctx, ast.Del)}
    names = dict.fromkeys([*_defined(tree), *_assigned(tree)])
    return [name for name in names if name[:1] != "_" and name not in deleted]


def names_in_prose(text: str) -> list[str]:
    """Return the names that a request in words is about, in their order.

    They stand in backticks, before a parenthesis, or in its doctests and fenced Python. What the
    request asks to write is none of them: what is named after "write", "implement" or the like,
    what its examples call, and what its fenced Python defines.
    """
    examples = read_examples(text)
    fenced = [ast.unparse(tree) for tree in fenced_python(text)]
    prose = re.sub(r"```.*?```|^\s*>>>.*$", "", text, flags=re.DOTALL | re.MULTILINE)
    names = [
        *(name for part in _BACKTICKS.findall(prose) for name in _names_in_span(part)),
        *_CALLED.findall(prose),
        *(name for example in examples for name in names_in_code(_source(example))),
        *(name for source in fenced for name in names_in_code(source)),
    ]
    asked = {
        *_ASKED.findall(prose),
        *(name for example in examples for name in _called(example.source)),
        *(name for source in fenced for name in _defined(parse(source))),
    }
    return [n for n in dict.fromkeys(names) if n not in asked and n not in _BUILTINS]


def _free_names(tree: ast.Module) -> list[str]:
    """Return the names that a module reads and has not bound before, as Python compiles them."""
    try:
        code = compile_cell(tree)
    except SyntaxError:  # such as `return` outside of a function
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        stored = {node.id for node in nodes if not isinstance(node.ctx, ast.Load)}
        return [node.id for node in nodes if node.id not in stored]
    free, bound, codes = list[str](), set[str](), [code]
    for code in codes:  # functions run later, when everything is bound
        own = bound if code is codes[0] else set[str]()
        for instruction in dis.get_instructions(code):
            if instruction.opname in _LOADS and instruction.argval not in bound | own:
                free.append(instruction.argval)
            elif instruction.opname in _STORES:
                own.add(instruction.argval)
            elif isinstance(instruction.argval, types.CodeType):
                codes.append(instruction.argval)
    return [name for name in free if name[:2] != "__"]


def _names_in_span(span: str) -> Iterable[str]:
    """Return the names of what stands in backticks: an expression, or words that start with one."""
    if names := names_in_code(span):
        return names
    start = re.match(r"[A-Za-z_]\w*", span)
    return [start[0]] if start and not try_parse(span) else []


def _source(example: object) -> str:
    return f"{getattr(example, 'setup', '')}\n{getattr(example, 'source', '')}"


def _called(source: str) -> Iterator[str]:
    for node in ast.walk(try_parse(source.strip()) or ast.Module([], [])):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _assigned(tree: ast.Module) -> Iterator[str]:
    """Return the names that a module's own statements assign; an annotation alone assigns none."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from sorted(names_bound(target))
