"""Finding the examples that a task states, in doctests and in lines such as ``f(1) == 2``."""

import ast
import builtins
import re
import textwrap
import warnings
from collections.abc import Iterator
from typing import Literal, TypeGuard

from ipyrefine.loop.records import Record

MOST = 20
_LONGEST = 1_000
_PROMPT = re.compile(r"^[\s#]*>>>(?: |$|(?=\S))(?P<source>.*)$")
_MORE = re.compile(r"^[\s#]*\.\.\.(?: |$)(?P<source>.*)$")
_END = re.compile(r"^\s*(?:$|```|~~~|\"\"\"|''')")
_SENTENCE_END = re.compile(r"(?<=\))\.\s+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BULLET = re.compile(r"^\s*(?:[#>*•+-]+\s+|\d+[.)]\s+)*")
_MARK = re.compile(
    r"\s*(?:#\s*)?(?:==|->|=>|→|➞|⇒|\b(?:(?:should|must|will|shall)\s+return|returns?)\b)\s*"
)
_KEYWORD = re.compile(r"^(?:async|class|def|elif|for|if|return|while|with|yield)\b")
_OTHER_CASE = {"true": "True", "false": "False", "null": "None", "none": "None"}
_CHAIN = (ast.Call, ast.Attribute, ast.Subscript)


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


def extract(task_text: str) -> tuple[Example, ...]:
    """Find the examples a task states, at most 20, in their order.

    It reads doctests (``>>>``), also inside docstrings, comments and fences; asserts and
    comparisons in fenced Python, with the statements before them; and lines such as
    ``f(1) == 2``, ``assert f(1) == 2``, ``f(1) -> 2``, ``f(1) => 2``, ``f(1) returns 2``.
    """
    session = _Session()
    found: dict[Example, None] = {}
    for fenced, lines in _sections(task_text):
        tested, rest = _doctests(lines, session)
        tree = _parse("\n".join(rest)) if fenced and not tested else None
        stated = _in_module(tree, session) if tree else (e for x in rest for e in in_line(x))
        found.update(dict.fromkeys([*tested, *stated]))
    return tuple(found)[:MOST]


class _Session:
    """The statements seen so far, replayed for the examples that use what they bind."""

    def __init__(self) -> None:
        self._statements: list[str] = []
        self.bound: set[str] = set()

    def before(self, tree: ast.AST) -> str:
        return "\n".join(self._statements) if _names(tree) & self.bound else ""

    def keep(self, source: str, tree: ast.AST) -> None:
        binds = {n.id for n in ast.walk(tree) if _is_name(n, ast.Store)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                binds |= {(a.asname or a.name).partition(".")[0] for a in node.names}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                binds.add(node.name)
        if binds or _names(tree) & self.bound:
            self._statements.append(source)
            self.bound |= binds


def _sections(text: str) -> Iterator[tuple[bool, list[str]]]:
    fenced, lines = False, list[str]()
    for line in textwrap.dedent(text).splitlines():
        if _FENCE.match(line):
            yield fenced, lines
            fenced, lines = not fenced, []
        else:
            lines.append(line)
    yield fenced, lines


def _doctests(lines: list[str], session: _Session) -> tuple[list[Example], list[str]]:
    found, rest, at = list[Example](), list[str](), 0
    while at < len(lines):
        match, start = _PROMPT.match(lines[at]), at
        at += 1
        if not match:
            rest.append(lines[start])
            continue
        indent = lines[start].index(">>>")
        source = [match["source"]]
        while at < len(lines) and (more := _MORE.match(lines[at])):
            source.append(more["source"])
            at += 1
        want = []
        while at < len(lines) and not _END.match(lines[at]) and not _PROMPT.match(lines[at]):
            prefix, line = lines[at][:indent], lines[at][indent:]
            if prefix.strip(" #\t"):  # not indented as its prompt is
                line = lines[at]
            elif not line.strip():
                break
            want.append(re.sub(r"(\"\"\"|''')\s*$", "", line).rstrip())
            at += 1
        code = "\n".join(source)
        tree = _parse(code)
        if tree and want:
            before = session.before(tree)
            expected = _shown(code, want)
            found.append(Example(source=code, expected=expected, kind="doctest", setup=before))
        if tree:
            session.keep(code, tree)
    return found, rest


def _shown(code: str, want: list[str]) -> str:
    """Cut off prose that follows a value without an empty line; several values are no prose."""
    single = _expression(code) and not code.startswith("print(")
    if single and not _literal("\n".join(want)):
        for end in range(len(want) - 1, 0, -1):
            if _literal("\n".join(want[:end])):
                return "\n".join(want[:end])
    return "\n".join(want)


def _in_module(tree: ast.Module, session: _Session) -> Iterator[Example]:
    for node in tree.body:
        if isinstance(node, ast.Assert):
            yield from _claims(node.test, session, asserted=True)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare | ast.BoolOp):
            yield from _claims(node.value, session, asserted=False)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # A definition here is what the text has to replace.
            session.keep(ast.unparse(node), node)


def _claims(test: ast.expr, session: _Session, *, asserted: bool) -> Iterator[Example]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _claims(value, session, asserted=asserted)
        return
    if not _calls_the_text(test, session.bound):
        return
    before = session.before(test)
    if isinstance(test, ast.Compare) and [type(op) for op in test.ops] == [ast.Eq]:
        left, right = test.left, test.comparators[0]
        if not _calls_the_text(left, session.bound):
            left, right = right, left
        source, expected = ast.unparse(left), ast.unparse(right)
        yield Example(source=source, expected=expected, kind="equals", setup=before)
    elif asserted:
        yield Example(source=ast.unparse(test), expected="True", kind="holds", setup=before)


def in_line(line: str) -> Iterator[Example]:
    """Find the examples that one line of prose or code states."""
    text = _BULLET.sub("", line).strip()
    if len(text) > _LONGEST:
        return
    for whole in (text, text.replace("`", " ").strip(" .,;")):
        tree = _parse(whole)
        if tree and len(tree.body) == 1 and isinstance(tree.body[0], ast.Assert | ast.Expr):
            yield from _in_module(tree, _Session())
            return
    if not _KEYWORD.match(text):
        yield from _in_prose(text.replace("`", " "))


def _in_prose(text: str) -> Iterator[Example]:
    marks, start = list(_MARK.finditer(text)), 0
    for mark in marks:
        source = _left(text[start : mark.start()])
        expected = _right(text[mark.end() :], last=mark is marks[-1]) if source else ""
        if source and expected and not (expected == "None" and source.endswith("()")):
            yield Example(source=source, expected=expected, kind="equals")
            start = mark.end()


def _left(text: str) -> str:
    """The longest end of the text that is a call, or something of what a call returned."""
    # A sentence may end in a call: what follows its full stop is no attribute.
    text = _SENTENCE_END.split(text)[-1].rstrip(" :,")
    for start in re.finditer(r"(?<![\w.])[A-Za-z_]", text):
        node = _expression(text[start.start() :])
        if isinstance(node, _CHAIN) and _calls_the_text(node, set()):
            return ast.unparse(node)
    return ""


def _right(text: str, *, last: bool) -> str:
    """The text as an expression, or else the longest start of it that is a literal."""
    whole = text.strip().rstrip(".;,:! ")
    if whole in _OTHER_CASE:
        return _OTHER_CASE[whole]
    node = _expression(whole)
    last = last or (_literal(whole) and not isinstance(node, ast.Tuple))
    if last and node and _closed(node, set()) and not isinstance(node, ast.Compare | ast.BoolOp):
        return ast.unparse(node)
    for end in reversed([m.start() for m in re.finditer(r"[\s,;.:!?)]", whole)]):
        start = whole[:end].rstrip(" ,;.:")
        node = _expression(start)
        if _literal(start) and (not isinstance(node, ast.Tuple) or start.startswith("(")):
            return start
    return ""


def _calls_the_text(tree: ast.AST, bound: set[str]) -> bool:
    own = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and _is_name(n.func)}
    own -= set(dir(builtins))
    uses = any(isinstance(n, ast.Call) for n in ast.walk(tree)) and _names(tree) & bound
    return bool(own or uses) and _closed(tree, bound | set(dir(builtins)))


def _closed(tree: ast.AST, bound: set[str]) -> bool:
    """Whether it uses only known names, and others only by calling them."""
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    free = {n.id for n in ast.walk(tree) if _is_name(n, ast.Load) and id(n) not in called}
    return not free & _names(tree) - bound


def _names(tree: ast.AST) -> set[str]:
    stored = {n.id for n in ast.walk(tree) if _is_name(n, ast.Store)}
    stored |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    return {n.id for n in ast.walk(tree) if _is_name(n, ast.Load)} - stored


def _is_name(node: ast.AST, context: type[ast.expr_context] = ast.Load) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, context)


def _parse(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(textwrap.dedent(source).strip())
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None


def _expression(source: str) -> ast.expr | None:
    tree = _parse(source)
    first = tree.body[0] if tree and len(tree.body) == 1 else None
    return first.value if isinstance(first, ast.Expr) else None


def _literal(source: str) -> bool:
    try:
        ast.literal_eval(source.strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return False
    return True
