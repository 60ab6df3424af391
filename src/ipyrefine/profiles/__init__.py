"""Profiles: criteria, checklists and defaults, as data."""

import ast
import re

from ipyrefine.errors import UsageError
from ipyrefine.loop.records import Criterion, Task

CODE = Task(
    text="",
    profile="code",
    form="code",
    criteria=(
        Criterion(
            name="correctness",
            definition="It does what the task asks, in the edge cases too.",
            weight=2.0,
        ),
        Criterion(
            name="efficiency",
            definition="It meets the complexity the task asks for and wastes no work.",
        ),
        Criterion(name="clarity", definition="Names, structure and docstrings read at once."),
    ),
)

PROSE = Task(
    text="",
    profile="prose",
    form="prose",
    criteria=(
        Criterion(
            name="task",
            definition="It does everything the task asks, and nothing else.",
            weight=2.0,
        ),
        Criterion(name="clarity", definition="A reader understands each sentence at once."),
        Criterion(name="style", definition="Voice, length and format fit the reader and task."),
    ),
)

PROFILES = {"code": CODE, "prose": PROSE}

_CALL = re.compile(r"\b[A-Za-z_]\w*\([^)\n]*\)")  # no space before it: prose sets one
_CODE_WORDS = frozenset(
    [
        "algorithm",
        "async",
        "class",
        "code",
        "def",
        "doctest",
        "function",
        "implement",
        "iterator",
        "method",
        "module",
        "o(1)",
        "o(n)",
        "python",
        "recursive",
        "refactor",
        "regex",
        "script",
        "stack",
    ]
)


def task(text: str, *, profile: str | None = None, criteria: tuple[str, ...] = ()) -> Task:
    """Make a task from a request in the user's words.

    Args:
        text: the request.
        profile: a name of `PROFILES`; by default the one the request's words suggest.
        criteria: the criteria to judge on, instead of the profile's: names of its criteria, or
            short descriptions of other ones.

    Raises:
        UsageError: there is no such profile.
    """
    name = profile or ("code" if looks_like_code(text) else "prose")
    if name not in PROFILES:
        raise UsageError(f"There is no profile {name!r}; there are {', '.join(PROFILES)}.")
    base = PROFILES[name]
    changes: dict[str, object] = {"text": text}
    if criteria:
        known = {criterion.name: criterion for criterion in base.criteria}
        changes["criteria"] = tuple(
            known.get(c) or Criterion(name=c, definition=f"How well it does on {c}.")
            for c in criteria
        )
    return base.model_copy(update=changes)


def looks_like_code(text: str) -> bool:
    """Whether a request asks for Python code: by doctests, calls, or the trade's words."""
    words = {word.strip(".,:;!?\"'`") for word in text.lower().split()}
    return ">>>" in text or bool(_CALL.search(text)) or bool(words & _CODE_WORDS)


def is_python(text: str) -> bool:
    """Whether a text is Python with a statement beyond bare expressions and names."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(not isinstance(node, ast.Expr) for node in body)
