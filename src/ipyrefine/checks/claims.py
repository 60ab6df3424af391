"""What a piece of Python states as examples, and the syntax that reading them takes."""

import ast
import builtins
import textwrap
import warnings
from collections.abc import Iterator
from typing import Literal, TypeGuard

from ipyrefine.core.records import Record


class Example(Record):
    """One example a task states.

    Attributes:
        source: what to evaluate.
        expected: for ``doctest`` the text shown, else the expression of the value.
        kind: ``doctest`` (shown text), ``equals`` (a value), ``holds`` (true of the source).
        setup: statements that come before it, empty for none.
    """

    source: str
    expected: str
    kind: Literal["doctest", "equals", "holds"]
    setup: str = ""


class Session:
    """The statements seen so far, replayed for the examples that use what they bind."""

    def __init__(self) -> None:
        self._statements: list[str] = []
        self.bound: set[str] = set()

    def before(self, tree: ast.AST) -> str:
        """The statements that a piece of Python needs; empty for none."""
        return "\n".join(self._statements) if names(tree) & self.bound else ""

    def keep(self, source: str, tree: ast.AST) -> None:
        """Remember a statement, if anything that comes later may need it."""
        binds = {n.id for n in ast.walk(tree) if is_name(n, ast.Store)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                binds |= {(a.asname or a.name).partition(".")[0] for a in node.names}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                binds.add(node.name)
        if binds or names(tree) & self.bound:
            self._statements.append(source)
            self.bound |= binds


def in_module(tree: ast.Module, session: Session) -> Iterator[Example]:
    """What the asserts and comparisons of a module state."""
    for node in tree.body:
        if isinstance(node, ast.Assert):
            yield from _claims(node.test, session, asserted=True)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare | ast.BoolOp):
            yield from _claims(node.value, session, asserted=False)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # A definition here is what the text has to replace.
            session.keep(ast.unparse(node), node)


def _claims(test: ast.expr, session: Session, *, asserted: bool) -> Iterator[Example]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _claims(value, session, asserted=asserted)
        return
    if not calls_the_text(test, session.bound):
        return
    before = session.before(test)
    if isinstance(test, ast.Compare) and [type(op) for op in test.ops] == [ast.Eq]:
        left, right = test.left, test.comparators[0]
        if not calls_the_text(left, session.bound):
            left, right = right, left
        source, expected = ast.unparse(left), ast.unparse(right)
        yield Example(source=source, expected=expected, kind="equals", setup=before)
    elif asserted:
        yield Example(source=ast.unparse(test), expected="True", kind="holds", setup=before)


def calls_the_text(tree: ast.AST, bound: set[str]) -> bool:
    """Whether it calls something that only the text can define, or uses what such a call gave."""
    own = called(tree) - set(dir(builtins))
    uses = any(isinstance(n, ast.Call) for n in ast.walk(tree)) and names(tree) & bound
    return bool(own or uses) and closed(tree, bound | set(dir(builtins)))


def called(tree: ast.AST | None) -> set[str]:
    """The names that it calls."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree else []
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def closed(tree: ast.AST, bound: set[str]) -> bool:
    """Whether it uses only known names, and others only by calling them."""
    callees = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    free = {n.id for n in ast.walk(tree) if is_name(n, ast.Load) and id(n) not in callees}
    return not free & names(tree) - bound


def names(tree: ast.AST) -> set[str]:
    """The names that it reads and does not bind itself."""
    stored = {n.id for n in ast.walk(tree) if is_name(n, ast.Store)}
    stored |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    return {n.id for n in ast.walk(tree) if is_name(n, ast.Load)} - stored


def is_name(node: ast.AST, context: type[ast.expr_context] = ast.Load) -> TypeGuard[ast.Name]:
    """Whether a node is a name that is read, or bound."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, context)


def parse(source: str) -> ast.Module | None:
    """The syntax tree of a piece of Python; None where it is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(textwrap.dedent(source).strip())
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None


def expression(source: str) -> ast.expr | None:
    """The syntax tree of an expression; None where it is none."""
    tree = parse(source)
    first = tree.body[0] if tree and len(tree.body) == 1 else None
    return first.value if isinstance(first, ast.Expr) else None


def literal(source: str) -> bool:
    """Whether it is a literal, also of lists and the like."""
    try:
        ast.literal_eval(source.strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return False
    return True
