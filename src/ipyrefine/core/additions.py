"""What a revision adds that nobody asked for, where code can decide it.

It is kept to what is hard to defend: a public function, class or method that nothing else in the
text uses, a package from outside the standard library, or statements that run on import, none of
them named in the task or in a finding that was acted on; of prose, a text that more than doubles
while no finding asks for more.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from ipyrefine.core.records import Finding, Severity, Status
from ipyrefine.core.schemas import SCOPE

GROWTH = 2.0  # a text this many times as long as the one before is another text
_LEAST_WORDS = 40  # what is shorter than this is an outline, which may grow
_WORD = re.compile(r"[^\W\d_]+|\d+")
_RUNNING = frozenset({"main", "demo", "example", "examples", "print", "prints", "script", "usage"})
_MORE = re.compile(
    r"\b(?:(?:add|expand|elaborat|more|missing|lack|omit|long|detail|explain|includ|mention|describ|"
    r"giv|stat)\w*|no)\b",
    re.IGNORECASE,
)
_BOUND = frozenset({"property", "staticmethod", "classmethod"})

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class _Addition(NamedTuple):
    """Something new in a program: the names by which it could have been asked for, and where."""

    names: frozenset[str]
    what: str
    line: int


def additions(
    task: str, findings: Sequence[Finding], old: str, new: str, form: Literal["code", "prose"]
) -> tuple[Finding, ...]:
    """Name what a revision of a program adds beyond the task and the findings.

    Args:
        task: what is asked.
        findings: what the revision was to act on.
        old: the text before.
        new: the revision.
        form: of prose nothing is named, see `outgrown`.
    """
    before, after = (_program(text) if form == "code" else None for text in (old, new))
    if before is None or after is None:
        return ()
    asked = _words([task, *(part for f in findings for part in (f.problem, f.fix, f.quote))])
    lines = new.splitlines()
    return tuple(
        Finding(
            id="f0",
            criterion=SCOPE,
            severity=Severity.MINOR,
            quote=lines[added.line - 1].strip(),
            problem=f"It adds {added.what}, which nothing asks for.",
            fix="Leave it out.",
            author="check",
            check=SCOPE,
        )
        for added in _added(before, after)
        if not any(_words([name]) <= asked for name in added.names)
    )


def removed(finding: Finding, text: str) -> Finding:
    """An addition as it stands in a later text: resolved when its line is gone."""
    gone = finding.check == SCOPE and finding.actionable and finding.quote not in text
    return finding.model_copy(update={"status": Status.RESOLVED}) if gone else finding


def outgrown(task: str, findings: Iterable[Finding], old: str, new: str) -> float | None:
    """How many times as long a revised text is, when it outgrew what was asked; else None."""
    before, after = len(old.split()), len(new.split())
    if before < _LEAST_WORDS or after <= GROWTH * before:
        return None
    wanted = any(not f.quote or _MORE.search(f"{f.problem} {f.fix}") for f in findings)
    return None if wanted or _MORE.search(task) else after / before


def _added(before: ast.Module, after: ast.Module) -> Iterator[_Addition]:
    had, used = {name for name, _ in _defined(before)}, _used(after)
    for name, node in _defined(after):
        parent, _, own = name.rpartition(".")
        inside_new = bool(parent) and parent not in had  # its class is named already
        if not (name in had or own in used or own.startswith("_") or inside_new):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            yield _Addition(frozenset([own]), f"the {kind} {name}", node.lineno)
    packages = {name for name, _ in _imported(before)}
    for name, line in _imported(after):
        if name not in packages and name not in sys.stdlib_module_names:
            yield _Addition(frozenset([name]), f"the package {name}", line)
    running = _running(after)
    if running and not _running(before):
        yield _Addition(_RUNNING, "statements that run when it is imported", running[0])


def _defined(tree: ast.Module) -> Iterator[tuple[str, _Definition]]:
    """The functions and classes of a program, and the methods of its classes.

    Left out is what others may reach by another way than its name: what a decorator takes in, and
    the methods of a subclass, which its base may call.
    """
    for node in tree.body:
        if isinstance(node, _Definition) and not node.decorator_list:
            yield node.name, node
        if isinstance(node, ast.ClassDef) and not node.bases:
            for inner in node.body:
                if isinstance(inner, _Definition) and _in_reach(inner):
                    yield f"{node.name}.{inner.name}", inner


def _in_reach(method: _Definition) -> bool:
    return all(isinstance(d, ast.Name) and d.id in _BOUND for d in method.decorator_list)


def _used(tree: ast.Module) -> set[str]:
    """Every name that is read, looked up as an attribute or exported somewhere."""
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.add(node.value)
    return used


def _imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node.lineno


def _running(tree: ast.Module) -> list[int]:
    """The lines of calls and of ``if __name__ == …`` at the top of a program."""
    return [
        node.lineno
        for node in tree.body
        if (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.If) and "__name__" in ast.dump(node.test))
    ]


def _program(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _words(texts: Iterable[str]) -> set[str]:
    """The words of texts in lower case; a name's parts are words too (get_min, getMin)."""
    split = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text) for text in texts)
    return {word.lower() for text in split for word in _WORD.findall(text)}
