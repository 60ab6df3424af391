"""Read the examples that a task states: doctests, asserts, and lines such as ``f(1) == 2``."""

import ast
import builtins
import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Literal

from ipyrefine.core.model import Called, Task
from ipyrefine.core.syntax import (
    DEFINITION,
    free_names,
    is_literal,
    names_bound,
    try_parse,
    try_parse_expression,
    unparse,
)

_LONG = 1_000  # characters of a line
_MAX_MARKS, _MAX_STARTS = 500, 20  # of one line: signs for "returns", and calls before one

_Definition = ast.FunctionDef | ast.ClassDef  # an async function returns no value yet


class Example(Called):
    """An input with what it has to give: an output, too, or the expression of a value.

    That is empty where it is only asked what the input gives.
    """

    kind: Literal["doctest", "equals", "holds"] = "equals"  # output, value, or a call that is true
    prints: bool = False  # whether the task speaks of printing, so that a result may be printed

    @property
    def raises(self) -> str:
        """The name of the exception that it raises; an output is none."""
        return "" if self.kind == "doctest" else super().raises


def stated_examples(task: Task) -> tuple[Example, ...]:
    """Return the examples of a task: those its text states, then the user's clarifications."""
    return (*read_examples(task.text), *map(as_example, task.clarifications))


def as_example(one: Called) -> Example:
    """Return a call with its result as an example."""
    return Example(call=one.call, setup=one.setup, gives=one.gives)


@lru_cache(maxsize=8)
def read_examples(task_text: str) -> tuple[Example, ...]:
    """Return the examples a task states, in their order.

    These are read:

    - doctests (``>>>``), also inside docstrings, comments and fences;
    - asserts and comparisons in fenced Python, with the statements before them;
    - lines such as ``f(1) == 2``, ``f(1) is None``, ``assert f(1) == 2``, ``f(1) -> 2``,
      ``f(1) => 2``, ``f(1) = 2``, ``f(1) returns 2``;
    - in docstrings and comments of fenced Python, such lines if they call what it defines.
    """
    session = _Session(prints=re.search(r"\bprint|-> None:", task_text, re.IGNORECASE) is not None)
    examples = {}
    for fenced, lines in _sections(task_text):
        found, rest = _read_doctests(lines, session)
        tree = _parse("\n".join(rest)) if fenced and not found else None
        found += _read_module(tree, session) if tree else ()
        defined = (
            {node.name for node in ast.walk(tree) if isinstance(node, _Definition)}
            if tree
            else None
        )
        stated = (example for line in rest for example in _read_line(line))
        found += (e for e in stated if defined is None or _called_names(_parse(e.call)) & defined)
        examples.update(dict.fromkeys(found))
    return tuple(examples)


def own_examples(code: str) -> tuple[Example, ...]:
    """Return the doctests that code brings along."""
    return tuple(one for one in read_examples(code) if one.kind == "doctest")


def fenced_python(text: str) -> Iterator[ast.Module]:
    """Yield the syntax tree of each fenced block of a text that is valid Python."""
    return filter(None, (_parse("\n".join(lines)) for fenced, lines in _sections(text) if fenced))


_FENCE = re.compile(r"^\s*(?:```|~~~)")


def _sections(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield the lines outside and inside of fences, with whether they are inside."""
    fenced, lines = False, list[str]()
    for line in textwrap.dedent(text).splitlines():
        if _FENCE.match(line):
            yield fenced, lines
            fenced, lines = not fenced, []
        else:
            lines.append(line)
    yield fenced, lines


class _Session:
    """The statements so far, which are run before the examples that use the names they bind."""

    def __init__(self, *, prints: bool = False) -> None:
        self._statements: list[str] = []
        self.names: set[str] = set()
        self.prints = prints

    def setup(self, tree: ast.AST) -> str:
        """Return the statements that a piece of Python needs; empty for none."""
        return "\n".join(self._statements) if free_names(tree) & self.names else ""

    def add(self, source: str, tree: ast.AST) -> None:
        """Keep a statement if a later example may need it."""
        bound = names_bound(tree)
        if bound or free_names(tree) & self.names:
            self._statements.append(source)
            self.names |= bound


# Doctests.

_PROMPT = re.compile(r"^[\s#]*(?P<prompt>>>>) ?(?P<source>.*)$")
_CONTINUATION = re.compile(r"^[\s#]*\.\.\.(?: (?P<source>.*))?$")
_QUOTES_START = re.compile(r"^\s*(?:\"\"\"|''')")
_QUOTES_END = re.compile(r"(?:\"\"\"|''')\s*$")


def _read_doctests(lines: list[str], session: _Session) -> tuple[list[Example], list[str]]:
    """Return the doctests with their output, and the lines that belong to no doctest.

    A prompt may stand in a comment, and output need not be indented as its prompt is.
    """
    found, rest = list[tuple[list[str], list[str]]](), list[str]()
    margin = None  # of the latest prompt, as long as its output may go on
    for line in lines:
        said = line if line[:margin].strip(" #\t") else line[margin:]
        if prompt := _PROMPT.match(line):
            margin = prompt.start("prompt")
            found.append(([prompt["source"]], []))
        elif margin is not None and said.strip() and not _QUOTES_START.match(line):
            source, output = found[-1]
            more = None if output else _CONTINUATION.match(line)
            (source if more else output).append(
                (more["source"] or "") if more else _QUOTES_END.sub("", said)
            )
        else:
            margin = None
            rest.append(line)
    return [*_as_doctests(found, session)], rest


def _as_doctests(
    found: Iterable[tuple[list[str], list[str]]], session: _Session
) -> Iterator[Example]:
    for lines, output in found:
        source = "\n".join(lines)
        if tree := _parse(source):
            # Prose may follow a value; several values are not prose.
            single = try_parse_expression(source) and not source.startswith("print(")
            wants = ("\n".join(output[:n]).rstrip() for n in range(len(output), 0, -1))
            want = next(filter(is_literal, wants), "") if single else ""
            if expected := want or "\n".join(output).rstrip():
                setup, prints = session.setup(tree), session.prints
                kind = "doctest"
                yield Example(call=source, gives=expected, kind=kind, setup=setup, prints=prints)
            session.add(source, tree)


# Fenced Python.


def _read_module(tree: ast.Module, session: _Session) -> Iterator[Example]:
    """Yield what the asserts and comparisons of a module state."""
    for node in tree.body:
        if isinstance(node, ast.Assert):
            yield from _read_test(node.test, session, asserted=True)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare | ast.BoolOp):
            yield from _read_test(node.value, session, asserted=False)
        elif not isinstance(node, DEFINITION):
            # A definition here is what the text has to replace.
            session.add(unparse(node), node)


def _read_test(test: ast.expr, session: _Session, *, asserted: bool) -> Iterator[Example]:
    both = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    for one in test.values if isinstance(test, ast.BoolOp) and both else [test]:
        call, expected, setup = one, "", session.setup(one)
        match one:
            case ast.Compare(left, [ast.Eq()], [right]):
                call, value = (left, right) if _calls_text(left, session.names) else (right, left)
                expected = unparse(value)
            case ast.Compare(left, [ast.Is()], [ast.Constant(None)]):
                call, expected = left, "None"
            case ast.Compare(_, [ast.Is()], [ast.Constant(bool())]):
                asserted = True
        if _calls_text(one, session.names) and (expected or asserted):
            source = unparse(call)
            kind = "equals" if expected else "holds"
            yield Example(call=source, gives=expected or "True", kind=kind, setup=setup)
            session.add(source, call)  # it may have changed what a later one looks at


# Lines of prose.

_BULLET = re.compile(r"^\s*(?:[#>*•+-]+\s+|\d+[.)]\s+)*")
_SENTENCE_END = re.compile(r"(?<=\))\.\s+")
_MARK = re.compile(
    r"(?<!\s)\s*(?:#\s*)?(?:={1,2}>|-{1,2}>|==|(?<![=<>!:+*/%-])=(?!=)|→|➞|⇒"
    r"|\b(?:(?:should|must|will|shall)\s+return|returns?)\b)\s*"
)
_KEYWORD = re.compile(r"^(?:async|class|def|elif|for|if|return|while|with|yield)\b")
_END = "。！？；，：、）」』”“»"  # noqa: RUF001 - of a sentence or of what holds it
_CONSTANTS = {"true": "True", "false": "False", "null": "None", "none": "None"}
# What a call, an attribute or an item starts with: a name, or a string with a prefix.
# It may touch a word of a language that is written without spaces.
_CALL_START = re.compile(r"(?<!\.)(?<![^\W\u3040-\u9fff\uac00-\ud7af])[A-Za-z_]\w*(?=[.(\['\"])")
_CALL_CHAIN = (ast.Call, ast.Attribute, ast.Subscript)
_ARITHMETIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


def _read_line(line: str) -> Iterator[Example]:
    text = _BULLET.sub("", line).strip()
    for code in (text, text.replace("`", " ").strip(" .,;")):
        tree = _parse(code)
        if tree and len(tree.body) == 1 and isinstance(tree.body[0], ast.Assert | ast.Expr):
            examples = list(_read_module(tree, _Session()))
            yield from examples
            if examples or "#" not in code:  # a comment may say what the call returns
                return
    if not _KEYWORD.match(text):
        yield from _read_prose(text.replace("`", " "))


def _read_prose(text: str) -> Iterator[Example]:
    marks, start = list(islice(_MARK.finditer(text), _MAX_MARKS)), 0
    for mark, after in zip_longest(marks, marks[1:]):
        source, expected = _read_call(text[start : mark.start()]), ""
        if source and after and len(text) > _LONG:  # a value seldom has a mark in it
            expected = _read_value(text[mark.end() : after.start()], to_end=False)
        elif source:
            expected = _read_value(text[mark.end() :], to_end=after is None)
        if source and expected and not (expected == "None" and source.endswith("()")):
            yield Example(call=source, gives=expected)
            start = mark.end()


def _read_call(text: str) -> str:
    """Return the longest end of a text that is a call, or a part of what a call returned."""
    # A sentence may end in a call: what follows its full stop is not an attribute.
    text = _SENTENCE_END.split(text)[-1].rstrip(" :,")
    for start in list(_CALL_START.finditer(text))[-_MAX_STARTS:]:
        node = try_parse_expression(f"({text[start.start() :]})")  # where no comment can end it
        if isinstance(node, _CALL_CHAIN) and _calls_text(node, set()):
            return unparse(node)
    return ""


def _read_value(text: str, *, to_end: bool) -> str:
    """Return the expression of a value that a text starts with; empty if there is none.

    That is the whole text, unless something else is stated in it, else its longest start that is a
    literal or arithmetic.
    """
    whole = text.strip().rstrip(f".;,:! {_END}")
    if whole in _CONSTANTS:
        return _CONSTANTS[whole]
    ends = [m.start() for m in re.finditer(rf"[\s,;.:!?){_END}]", whole)]
    for end in (len(whole), *reversed(ends)):
        start = whole[:end].rstrip(f" ,;.:{_END}")
        node = try_parse_expression(start)
        bare = isinstance(node, ast.Tuple) and not start.startswith("(")
        # As in ``f(3) -> 1 + 2 = 3``.
        sums = node and all(isinstance(part, _ARITHMETIC) for part in ast.walk(node))
        plain = (is_literal(start) or sums) and not bare
        states = end == len(whole) and to_end and not isinstance(node, ast.Compare | ast.BoolOp)
        if node and (plain or (states and _is_closed(node, set()))):
            return unparse(node) if end == len(whole) else start
    return ""


# Syntax.


def _parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a source, which may be indented; None if it is not Python."""
    return try_parse(textwrap.dedent(source).strip())


def _calls_text(tree: ast.AST, bound: set[str]) -> bool:
    """Return True if it calls what only the text can define, or uses the result of a call."""
    names = set(dir(builtins))
    calls = _called_names(tree) - names
    uses = any(isinstance(n, ast.Call) for n in ast.walk(tree)) and free_names(tree) & bound
    return bool(calls or uses) and _is_closed(tree, bound | names)


def _called_names(tree: ast.AST | None) -> set[str]:
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)] if tree else []
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def _is_closed(tree: ast.AST, names: set[str]) -> bool:
    """Return True if it uses only these names, and others only by calling them."""
    callees = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    named = [n for n in ast.walk(tree) if isinstance(n, ast.Name)]
    loaded = {n.id for n in named if isinstance(n.ctx, ast.Load) and id(n) not in callees}
    return not loaded & free_names(tree) - names
