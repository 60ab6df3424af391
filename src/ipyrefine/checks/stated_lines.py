"""What a line of prose states as examples: ``f(1) == 2``, ``f(1) -> 2``, ``f(1) returns 2``."""

import ast
import re
from collections.abc import Iterator

from ipyrefine.checks.claims import (
    Example,
    Session,
    calls_the_text,
    closed,
    expression,
    in_module,
    literal,
    parse,
)

_LONGEST = 1_000
_SENTENCE_END = re.compile(r"(?<=\))\.\s+")
_BULLET = re.compile(r"^\s*(?:[#>*•+-]+\s+|\d+[.)]\s+)*")
_MARK = re.compile(
    r"\s*(?:#\s*)?(?:={1,2}>|-{1,2}>|==|(?<![=<>!:+*/%-])=(?!=)|→|➞|⇒"
    r"|\b(?:(?:should|must|will|shall)\s+return|returns?)\b)\s*"
)
_KEYWORD = re.compile(r"^(?:async|class|def|elif|for|if|return|while|with|yield)\b")
_OTHER_CASE = {"true": "True", "false": "False", "null": "None", "none": "None"}
_CHAIN = (ast.Call, ast.Attribute, ast.Subscript)
_SUM = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)


def in_line(line: str) -> Iterator[Example]:
    """Find the examples that one line of prose or code states."""
    text = _BULLET.sub("", line).strip()
    if len(text) > _LONGEST:
        return
    for whole in (text, text.replace("`", " ").strip(" .,;")):
        tree = parse(whole)
        if tree and len(tree.body) == 1 and isinstance(tree.body[0], ast.Assert | ast.Expr):
            claimed = list(in_module(tree, Session()))
            yield from claimed
            if claimed or "#" not in whole:  # a comment may say what the call returns
                return
    if not _KEYWORD.match(text):
        yield from _in_prose(text.replace("`", " "))


def _in_prose(text: str) -> Iterator[Example]:
    marks, start = list(_MARK.finditer(text)), 0
    for mark in marks:
        source = _left(text[start : mark.start()])
        expected = value(text[mark.end() :], last=mark is marks[-1]) if source else ""
        if source and expected and not (expected == "None" and source.endswith("()")):
            yield Example(source=source, expected=expected, kind="equals")
            start = mark.end()


def _left(text: str) -> str:
    """The longest end of the text that is a call, or something of what a call returned."""
    # A sentence may end in a call: what follows its full stop is no attribute.
    text = _SENTENCE_END.split(text)[-1].rstrip(" :,")
    for start in re.finditer(r"(?<![\w.])[A-Za-z_]", text):
        node = expression(f"({text[start.start() :]})")  # in which no comment can end it
        if isinstance(node, _CHAIN) and calls_the_text(node, set()):
            return ast.unparse(node)
    return ""


def value(text: str, *, last: bool) -> str:
    """What a text gives as a value; empty if that is none.

    Args:
        text: what stands behind a mark: an expression, or one that prose goes on from.
        last: whether nothing else is stated in it, so that all of it may be an expression.

    Returns:
        The text as an expression, or else the longest start of it that is a literal or a sum.
    """
    whole = text.strip().rstrip(".;,:! ")
    if whole in _OTHER_CASE:
        return _OTHER_CASE[whole]
    node = expression(whole)
    last = last or (literal(whole) and not isinstance(node, ast.Tuple))
    if last and node and closed(node, set()) and not isinstance(node, ast.Compare | ast.BoolOp):
        return ast.unparse(node)
    for end in reversed([m.start() for m in re.finditer(r"[\s,;.:!?)]", whole)]):
        start = whole[:end].rstrip(" ,;.:")
        node = expression(start)
        bare = isinstance(node, ast.Tuple) and not start.startswith("(")
        if (literal(start) or _is_sum(node)) and not bare:
            return start
    return ""


def _is_sum(node: ast.expr | None) -> bool:
    """Whether it is arithmetic of plain numbers, as in ``f(3) -> 1 + 2 = 3``."""
    return node is not None and all(isinstance(part, _SUM) for part in ast.walk(node))
