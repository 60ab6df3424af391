"""Read the text of a notebook cell as a task or a draft, and say what goes back into the cell."""

import ast
import re
from typing import Any, NamedTuple

from ipyrefine.core.syntax import ERRORS, parse
from ipyrefine.errors import UsageError
from ipyrefine.profiles.recognise import pygments_name

# Cell magics whose body is Python.
_PYTHON_MAGICS = frozenset({"capture", "debug", "prun", "time", "timeit"})
_MAGIC = re.compile(r"\s*%%(?P<name>\w+)[^\n]*(?:\n|\Z)")
# As a sentence begins: a capital and a second word, or three words.
_WORDS = re.compile(r"[A-Z][a-z'-]*,? [\w'`\"(]|[A-Za-z][\w'-]*(?:,? [\w'`\"(-]+){2,}")
_CODE_START = re.compile(
    r"\s*(?:(?:def|class|from|import|return|if|elif|else|for|while|with|try|except|async|await|"
    r"lambda|assert|raise|del|global|yield|print)\b|[@%!)\]}]|[\w.\[\]'\"]+\s*(?:[-+*/|&]?=|\())"
)


class SourceCell(NamedTuple):
    """What a code cell means to a run.

    Attributes:
        text: the task, or the draft.
        is_draft: which of them it is.
        head: what stays above the refined text in the cell: its magic's line, or its comments.
        language: the language of its code, as pygments names it; None for Python.
    """

    text: str
    is_draft: bool
    head: str = ""
    language: str | None = None


def read_code_cell(source: str, shell: Any) -> SourceCell:
    """Read a code cell: comments and words are a task, everything else is a draft.

    Args:
        source: the cell's text.
        shell: the IPython shell, which knows its syntax.

    Raises:
        UsageError: it starts with a cell magic whose body is not code.
    """
    magic = _MAGIC.match(source)
    if magic:
        head, body = magic[0], source[magic.end() :]
        return SourceCell(body, True, head, _language(magic["name"]))
    task = _comments(source)
    if task:
        return SourceCell(task, False, f"{source.rstrip()}\n\n")
    if _is_words(source, shell):
        return SourceCell(source.strip(), False)
    return SourceCell(source, True)


def _language(magic: str) -> str | None:
    """Return the language of a magic's body; None for Python.

    Raises:
        UsageError: it is the language of none.
    """
    from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

    if magic in _PYTHON_MAGICS:
        return None
    name = pygments_name(magic)
    if name in {alias for _, aliases, *_ in get_all_lexers() for alias in aliases}:
        return None if name == "python" else name
    raise UsageError(f"A %%{magic} cell can't be refined. Copy its text into a cell of its own.")


def _comments(source: str) -> str:
    """Return the words of a cell that holds only comments; empty for any other cell."""
    lines = [line.strip() for line in source.strip().splitlines()]
    if not all(line.startswith("#") for line in lines if line):
        return ""
    return "\n".join(line.lstrip("#").removeprefix(" ") for line in lines).strip()


def _is_words(source: str, shell: Any) -> bool:
    """Return whether a cell is a request in words rather than code, which may be broken code."""
    try:
        body = parse(shell.transform_cell(source)).body
    except ERRORS:
        pass
    else:
        return all(isinstance(_constant(statement), str) for statement in body)
    first = next(line for line in source.splitlines() if line.strip())
    return bool(_WORDS.match(first.strip())) and not _CODE_START.match(first)


def _constant(statement: ast.stmt) -> Any:
    """Return the value of a statement that is nothing but a constant."""
    match statement:
        case ast.Expr(value=ast.Constant(value=value)):
            return value
    return None
