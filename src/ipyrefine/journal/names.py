"""Names of runs: what the user calls them, or the first words of their task."""

import re

from ipyrefine.errors import UsageError

_NAME = re.compile(r"(?!\d+$)\w[\w.-]{0,63}")
_FILE = re.compile(r".*\.(ipynb|json|md)", re.IGNORECASE)
_WORDS = 5


def checked(name: str) -> str:
    """Return a name given by a user.

    Raises:
        UsageError: it could be taken for something else: a number, an option, a path, a file.
    """
    if not _NAME.fullmatch(name) or _FILE.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} cannot name a run: use up to 64 letters, digits, dots and dashes, "
            "starting with a letter, and no file's ending."
        )
    return name


def made_from(task: str) -> str:
    """Make a name of a task's first words."""
    words = re.findall(r"\w+", task.lower())[:_WORDS]
    name = "-".join(words)[:40].rstrip("-")
    return name if _NAME.fullmatch(name) else f"run-{name}".rstrip("-")
