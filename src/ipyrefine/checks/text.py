"""Checks of a text's form: its length, what it contains, and what it matches."""

import json
import re
from collections.abc import Callable
from pathlib import Path

from ipyrefine.checks.python import failure
from ipyrefine.checks.sandbox import run_python
from ipyrefine.core.records import Evidence, Task
from ipyrefine.errors import UsageError

_PROGRAM = Path(__file__).parent / "programs" / "matches.py"
_SECONDS = 3.0
_UNITS: dict[str, Callable[[str], int]] = {
    "word": lambda text: len(text.split()),
    "char": len,
    "character": len,
    "line": lambda text: len(text.splitlines()),
    "paragraph": lambda text: len([part for part in re.split(r"\n\s*\n", text) if part.strip()]),
}
_NUMBER = r"(\d[\d_,]*)"
_LENGTH = re.compile(
    rf"(?:(?P<sign><=?|>=?|≤|≥|=|==)?\s*{_NUMBER}|{_NUMBER}\s*(?:-|–|\.\.|to)\s*{_NUMBER})"  # noqa: RUF001
    rf"\s*(?P<unit>{'|'.join(_UNITS)})s?"
)


class Length:
    """The text's length is within bounds.

    Args:
        bounds: like ``<=120 words``, ``200-400 chars``, ``>3 lines`` or ``2 paragraphs``.

    Raises:
        UsageError: the bounds cannot be read, or contradict each other.
    """

    def __init__(self, bounds: str) -> None:
        self.name = f"length:{bounds}"
        match = _LENGTH.fullmatch(" ".join(bounds.lower().split()))
        if not match:
            raise UsageError(
                f'The check {self.name!r} needs bounds like "length:<=120 words" or '
                '"length:200-400 chars"; the units are words, chars, lines and paragraphs.'
            )
        one, *two = (int(re.sub("[_,]", "", n)) if n else 0 for n in match.groups()[1:4])
        least, most = _bounds(match["sign"], one) if match[2] else two
        if most is not None and least > most:
            raise UsageError(f"The check {self.name!r} allows no length at all.")
        self._least, self._most = least, most
        self._unit = {"char": "character"}.get(match["unit"], match["unit"])
        self.requirement = f"Its length must be {self._allowed()}."

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Count."""
        count = _UNITS[self._unit](text.strip())
        missing, over = self._least - count, count - (count if self._most is None else self._most)
        off = max(missing, over, 0)
        wrong = f"{off} too {'few' if missing > 0 else 'many'}"
        return Evidence(
            name=self.name,
            passed=not off,
            score=max(0.0, 1 - off / max(count, self._least, 1)),
            detail=f"It has {_plural(count, self._unit)}"
            + (f": {wrong}, as {self._allowed()} are asked for." if off else "."),
        )

    def _allowed(self) -> str:
        if self._most is None:
            return f"at least {_plural(self._least, self._unit)}"
        if self._least == self._most:
            return f"exactly {_plural(self._most, self._unit)}"
        if not self._least:
            return f"at most {_plural(self._most, self._unit)}"
        return f"{self._least} to {_plural(self._most, self._unit)}"


class Contains:
    """The text contains some words, letter for letter.

    Args:
        wanted: the words.
    """

    def __init__(self, wanted: str) -> None:
        self.name = f"contains:{wanted}"
        self._wanted = wanted
        self.requirement = f"It must contain, letter for letter: {wanted}"

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Look for them."""
        found = self._wanted in text
        said = "It contains" if found else "It does not contain"
        if not found and self._wanted.casefold() in text.casefold():
            said = "It has, but not in these capital and small letters,"
        return Evidence(
            name=self.name,
            passed=found,
            score=float(found),
            detail=f"{said} {self._wanted!r}.",
        )


class Matches:
    """A regular expression is found in the text; it may run for 3 seconds.

    Args:
        pattern: the expression, as `re` has it; ``^`` and ``$`` stand for ends of lines.

    Raises:
        UsageError: it is not a regular expression.
    """

    def __init__(self, pattern: str) -> None:
        self.name = f"matches:{pattern}"
        self._pattern = pattern
        self.requirement = f"It must match the regular expression: {pattern}"
        try:
            re.compile(pattern, re.MULTILINE)
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(
                f"The check {self.name!r} is not a regular expression: {error}."
            ) from None

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Search in a process of its own, as some expressions take years on some texts."""
        request = json.dumps({"pattern": self._pattern, "text": text})
        ran = await run_python(
            _PROGRAM.read_text("utf-8"), seconds=_SECONDS, files={"request.json": request}
        )
        found = ran.exit_code == 0 and ran.stdout.startswith("found")
        detail = "It matches." if found else "It does not match the regular expression."
        if ran.exit_code != 0:
            detail = f"The search failed: {failure(ran, _SECONDS)}"
        return Evidence(
            name=self.name,
            passed=found,
            score=float(found),
            detail=detail,
            seconds=ran.seconds,
        )


def _bounds(sign: str | None, number: int) -> tuple[int, int | None]:
    match sign:
        case "<":
            return 0, number - 1
        case "<=" | "≤":
            return 0, number
        case ">":
            return number + 1, None
        case ">=" | "≥":
            return number, None
    return number, number


def _plural(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"
