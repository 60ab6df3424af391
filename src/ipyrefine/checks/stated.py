"""Finding the examples that a task states, in doctests and in lines such as ``f(1) == 2``."""

import ast
import re
import textwrap
from collections.abc import Iterator

from ipyrefine.checks.claims import Example as Example
from ipyrefine.checks.claims import Session, called, closed, expression, in_module, literal, parse
from ipyrefine.checks.stated_lines import in_line, value

MOST = 20
_PROMPT = re.compile(r"^[\s#]*>>>(?: |$|(?=\S))(?P<source>.*)$")
_MORE = re.compile(r"^[\s#]*\.\.\.(?: |$)(?P<source>.*)$")
_END = re.compile(r"^\s*(?:$|```|~~~|\"\"\"|''')")
_QUOTED = re.compile(r"[rRuU]?(?P<q>\'\'\'|\"\"\"|\'|\")(?P<said>.*)(?P=q)", re.DOTALL)
_PAIR = re.compile(
    r"^\W*input\b[^:\n]{0,4}:[ \t]*(?P<given>[^\n]+?)[ \t]*\n?[ \t]*output\b[^:\n]{0,4}:"
    r"[ \t]*(?P<got>[^\n]+)",
    re.IGNORECASE | re.MULTILINE,
)
_DEFINITIONS = ast.FunctionDef | ast.ClassDef  # what an async function gives is no value yet
_FENCE = re.compile(r"^\s*(?:```|~~~)")


def extract(task_text: str) -> tuple[Example, ...]:
    """Find the examples a task states, at most 20, in their order.

    It reads doctests (``>>>``), also inside docstrings, comments and fences; asserts and
    comparisons in fenced Python, with the statements before them; and lines such as
    ``f(1) == 2``, ``assert f(1) == 2``, ``f(1) -> 2``, ``f(1) => 2``, ``f(1) = 2``,
    ``f(1) returns 2``. In the docstrings and comments of fenced Python, such lines count where
    they call what it defines, and in the docstring of a function ``Input: 1`` with
    ``Output: 2`` counts too.
    """
    session = Session()
    found: dict[Example, None] = {}
    for fenced, lines in _sections(task_text):
        tested, rest = _doctests(lines, session)
        tree = parse("\n".join(rest)) if fenced and not tested else None
        if tree:
            stated = [*in_module(tree, session), *_in_stub(tree, "\n".join(rest))]
        else:
            stated = [example for line in rest for example in in_line(line)]
        found.update(dict.fromkeys([*tested, *stated]))
    return tuple(found)[:MOST]


def fenced_python(text: str) -> Iterator[ast.Module]:
    """The pieces of Python in a text's fences, as far as they can be read."""
    for fenced, lines in _sections(text):
        if fenced and (tree := parse("\n".join(lines))):
            yield tree


def _in_stub(tree: ast.Module, source: str) -> Iterator[Example]:
    """What the docstrings and comments of a piece of Python state of what it defines."""
    defined = {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
    lines = [line for line in source.splitlines() if line.lstrip().startswith("#")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | _DEFINITIONS):
            said = _docstring(node, source)
            lines += said.splitlines()
            if isinstance(node, ast.FunctionDef):
                yield from _pairs(node.name, said)
    for line in lines:
        for example in in_line(line):
            if called(parse(example.source)) & defined:
                yield example


def _docstring(node: ast.Module | ast.FunctionDef | ast.ClassDef, source: str) -> str:
    """A docstring as it is written: an escape in it is no line's end yet."""
    first = node.body[0] if ast.get_docstring(node) else None
    written = ast.get_source_segment(source, first) if first else None
    quoted = _QUOTED.fullmatch(written or "")
    return textwrap.dedent(quoted["said"]) if quoted else ""


def _pairs(name: str, said: str) -> Iterator[Example]:
    """The pairs of lines that give the input of a function, and its output."""
    for pair in _PAIR.finditer(said):
        call = f"{name}({pair['given']})"
        node, expected = expression(call), value(pair["got"], last=True)
        if expected and isinstance(node, ast.Call) and closed(node, set()):
            yield Example(source=ast.unparse(node), expected=expected, kind="equals")


def _sections(text: str) -> Iterator[tuple[bool, list[str]]]:
    fenced, lines = False, list[str]()
    for line in textwrap.dedent(text).splitlines():
        if _FENCE.match(line):
            yield fenced, lines
            fenced, lines = not fenced, []
        else:
            lines.append(line)
    yield fenced, lines


def _doctests(lines: list[str], session: Session) -> tuple[list[Example], list[str]]:
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
        tree = parse(code)
        if tree and want:
            before = session.before(tree)
            expected = _shown(code, want)
            found.append(Example(source=code, expected=expected, kind="doctest", setup=before))
        if tree:
            session.keep(code, tree)
    return found, rest


def _shown(code: str, want: list[str]) -> str:
    """Cut off prose that follows a value without an empty line; several values are no prose."""
    single = expression(code) and not code.startswith("print(")
    if single and not literal("\n".join(want)):
        for end in range(len(want) - 1, 0, -1):
            if literal("\n".join(want[:end])):
                return "\n".join(want[:end])
    return "\n".join(want)
