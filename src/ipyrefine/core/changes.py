"""What a revision really changed: its claims against the two texts, and whether it did anything."""

import ast
import difflib
import re
from typing import Literal

from ipyrefine.core.records import Change, Finding

_CHANGE = re.compile(r"^[\s*\-]*(f\d+)\W*:\W*(.+?)\s*$", re.MULTILINE)
_EXACT_LINES = 1_000
_NEAR = 3  # lines around a quote within which a change counts as touching it


def changes(
    thoughts: str, findings: tuple[Finding, ...], old: str, new: str, form: Literal["code", "prose"]
) -> tuple[Change, ...]:
    """Read what a revision says it changed, and confirm each claim against the two texts.

    A claim is confirmed when something changed near the words its finding quotes, and the
    change is more than spacing and punctuation.
    """
    by_id = {finding.id: finding for finding in findings}
    claims = {m.group(1): m.group(2) for m in _CHANGE.finditer(thoughts) if m.group(1) in by_id}
    if not claims:
        return ()
    touched = set() if cosmetic(old, new, form) else _touched_lines(old, new)
    return tuple(
        Change(finding=id_, summary=summary, confirmed=_near(by_id[id_].quote, old, touched))
        for id_, summary in claims.items()
    )


def cosmetic(old: str, new: str, form: Literal["code", "prose"]) -> bool:
    """Whether two texts differ in nothing but spacing, punctuation or letter case.

    Of code: whether both are the same program with the same comments.
    """
    if form == "prose":
        before, after = _apart(old.splitlines(), new.splitlines())
        return _words(before) == _words(after)
    try:
        same = ast.dump(ast.parse(old)) == ast.dump(ast.parse(new))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return old.split() == new.split()
    return same and _comments(old) == _comments(new)


def _apart(a: list[str], b: list[str]) -> tuple[list[str], list[str]]:
    """Leave out the lines at both ends of two texts that are the same in both."""
    start = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    start = min(len(a), len(b)) if start is None else start
    a, b = a[start:], b[start:]
    while a and b and a[-1] == b[-1]:
        del a[-1], b[-1]
    return a, b


def _words(lines: list[str]) -> list[str]:
    return re.findall(r"\w+", "\n".join(lines).lower())


def _comments(code: str) -> list[str]:
    """Whatever follows a hash sign: comments, and the odd string, which is the same in both."""
    return ["".join(line.partition("#")[2].split()) for line in code.splitlines() if "#" in line]


def _touched_lines(old: str, new: str) -> set[int]:
    """Number the lines of the old text that a new one changed, or changed next to."""
    a, b = old.splitlines(), new.splitlines()
    # The exact comparison of thousands of equal lines would hold up the kernel for seconds.
    matcher = difflib.SequenceMatcher(a=a, b=b, autojunk=max(len(a), len(b)) > _EXACT_LINES)
    return {
        line
        for tag, start, end, _, _ in matcher.get_opcodes()
        if tag != "equal"
        for line in range(start, max(end, start + 1))
    }


def _near(quote: str, old: str, touched: set[int]) -> bool:
    """Whether a change lies near a quoted place; without a quote any change will do."""
    at = old.find(quote)
    if not quote or at < 0:
        return bool(touched)
    first = old.count("\n", 0, at)
    last = first + quote.count("\n")
    return any(first - _NEAR <= line <= last + _NEAR for line in touched)
