"""Read the examples that a task states: doctests, asserts, and lines such as ``f(1) == 2``."""

import ast
import builtins
import doctest
import re
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Literal

from ipyrefine.core.model import Called, Input, Task
from ipyrefine.core.syntax import (
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


class Example(Input):
    """An input with what it has to give."""

    # An output, the name of an exception, or the expression of a value; empty where it is only
    # asked what the input gives.
    expected: str = ""
    # The output is compared, the value is, the call is true, or it raises such an exception.
    kind: Literal["doctest", "equals", "holds", "raises"] = "equals"
    prints: bool = False  # whether the task speaks of printing, so that a result may be printed


def stated_examples(task: Task) -> tuple[Example, ...]:
    """Return the examples of a task: those its text states, then the user's clarifications."""
    return (*read_examples(task.text), *map(as_example, task.clarifications))


def as_example(one: Called) -> Example:
    """Return a call with its result as an example."""
    kind: Literal["raises", "equals"] = "raises" if one.raises else "equals"
    return Example(call=one.call, expected=one.result, kind=kind, setup=one.setup)


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
    examples: dict[Example, None] = {}
    for fenced, lines in _sections(task_text):
        doctests, rest = _read_doctests(lines, session)
        source = "\n".join(rest)
        tree = _parse(source) if fenced and not doctests else None
        if tree:
            others = [*_read_module(tree, session), *_read_docstrings(tree, source)]
        else:
            others = [example for line in rest for example in _read_line(line)]
        examples.update(dict.fromkeys([*doctests, *others]))
    return tuple(examples)


def fenced_python(text: str) -> Iterator[ast.Module]:
    """Yield the syntax tree of each fenced block of a text that is valid Python."""
    for fenced, lines in _sections(text):
        if fenced and (tree := _parse("\n".join(lines))):
            yield tree


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
_PARSER = doctest.DocTestParser()


def _read_doctests(lines: list[str], session: _Session) -> tuple[list[Example], list[str]]:
    """Return the doctests with their output, and the lines that belong to no doctest."""
    chunks, rest = _split_doctests(lines)
    examples = []
    for chunk in chunks:
        with suppress(ValueError):  # a prompt without a space, or an unknown option
            for parsed in _PARSER.get_examples("\n".join(chunk)):
                source, output = parsed.source.rstrip("\n"), parsed.want.rstrip()
                tree = _parse(source)
                if tree and output:
                    expected = _without_prose(source, output.splitlines())
                    setup = session.setup(tree)
                    example = Example(call=source, expected=expected, kind="doctest", setup=setup)
                    examples.append(example.model_copy(update={"prints": session.prints}))
                if tree:
                    session.add(source, tree)
    return examples, rest


def _split_doctests(lines: list[str]) -> tuple[list[list[str]], list[str]]:
    """Return one list of lines a prompt, without comment marks and indentation, and the rest.

    doctest refuses what people write in tasks: prompts in comments, and output that is not
    indented as its prompt is.
    """
    chunks, rest = list[list[str]](), list[str]()
    margin: int | None = None  # of the latest prompt, as long as its output may go on
    for line in lines:
        if prompt := _PROMPT.match(line):
            margin = prompt.start("prompt")
            chunks.append([f">>> {prompt['source']}"])
            continue
        if margin is not None:
            output = line if line[:margin].strip(" #\t") else line[margin:]
            if output.strip() and not _QUOTES_START.match(line):
                more = _CONTINUATION.match(line)
                output = f"... {more['source'] or ''}" if more else output
                chunks[-1].append(_QUOTES_END.sub("", output))
                continue
        margin = None
        rest.append(line)
    return chunks, rest


def _without_prose(source: str, output: list[str]) -> str:
    """Return the output without prose that follows a value; several values are not prose."""
    single = try_parse_expression(source) and not source.startswith("print(")
    if single and not is_literal("\n".join(output)):
        for end in range(len(output) - 1, 0, -1):
            if is_literal("\n".join(output[:end])):
                return "\n".join(output[:end])
    return "\n".join(output)


# Fenced Python.


def _read_module(tree: ast.Module, session: _Session) -> Iterator[Example]:
    """Yield what the asserts and comparisons of a module state."""
    for node in tree.body:
        if isinstance(node, ast.Assert):
            yield from _read_test(node.test, session, asserted=True)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare | ast.BoolOp):
            yield from _read_test(node.value, session, asserted=False)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            # A definition here is what the text has to replace.
            session.add(unparse(node), node)


def _read_test(test: ast.expr, session: _Session, *, asserted: bool) -> Iterator[Example]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _read_test(value, session, asserted=asserted)
        return
    if not _calls_text(test, session.names):
        return
    setup = session.setup(test)
    operator = expected = ""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        operator = type(test.ops[0]).__name__
        left, right = test.left, test.comparators[0]
        expected = unparse(right)
    if operator == "Eq" or (operator, expected) == ("Is", "None"):
        if not _calls_text(left, session.names):
            left, right = right, left
        source, expected = unparse(left), unparse(right)
        yield Example(call=source, expected=expected, kind="equals", setup=setup)
        session.add(source, left)  # it may have changed what a later one looks at
    elif asserted or (operator == "Is" and expected in ("True", "False")):
        yield Example(call=unparse(test), expected="True", kind="holds", setup=setup)
        session.add(unparse(test), test)


def _read_docstrings(tree: ast.Module, source: str) -> Iterator[Example]:
    """Yield the examples in a module's docstrings and comments, of its own definitions."""
    defined = {node.name for node in ast.walk(tree) if isinstance(node, _Definition)}
    lines = [line for line in source.splitlines() if line.lstrip().startswith("#")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | _Definition):
            lines += (ast.get_docstring(node) or "").splitlines()
    for line in lines:
        for example in _read_line(line):
            if _called_names(_parse(example.call)) & defined:
                yield example


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
            yield Example(call=source, expected=expected, kind="equals")
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
    node = try_parse_expression(whole)
    to_end = to_end or (is_literal(whole) and not isinstance(node, ast.Tuple))
    compares = isinstance(node, ast.Compare | ast.BoolOp)
    if to_end and node and not compares and _is_closed(node, set()):
        return unparse(node)
    for end in reversed([m.start() for m in re.finditer(rf"[\s,;.:!?){_END}]", whole)]):
        start = whole[:end].rstrip(f" ,;.:{_END}")
        node = try_parse_expression(start)
        if node is None:
            continue
        bare = isinstance(node, ast.Tuple) and not start.startswith("(")
        if (is_literal(start) or _is_arithmetic(node)) and not bare:
            return start
    return ""


# Syntax.


def _parse(source: str) -> ast.Module | None:
    """Return the syntax tree of a source, which may be indented; None if it is not Python."""
    return try_parse(textwrap.dedent(source).strip())


def _is_arithmetic(node: ast.expr | None) -> bool:
    """Return True if it is arithmetic of plain numbers, as in ``f(3) -> 1 + 2 = 3``."""
    return node is not None and all(isinstance(part, _ARITHMETIC) for part in ast.walk(node))


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
