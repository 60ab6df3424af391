"""Stand in for the notebook inside the sandbox, and tell what an exception wanted of it."""

import errno
import os
import re
from typing import Any

_NETWORK = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ECONNREFUSED)
_FILES = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EROFS)
_MOST = 20  # errors of a chain, and paths


def display(*objects: Any, **_: Any) -> None:
    """Print objects, as IPython's function of that name does without a front-end."""
    for one in objects:
        print(repr(one))


def find_lack(error: BaseException) -> dict[str, Any]:
    """Return what an exception, or one that led to it, wanted: network, input, module, paths."""
    lack: dict[str, Any] = {}
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain and len(chain) < _MOST:
        chain.append(cause)
        hidden = cause.__suppress_context__
        cause = cause.__cause__ or (None if hidden else cause.__context__)
    for one in chain:
        number = getattr(one, "errno", None)
        if isinstance(one, EOFError) and _message(one) == "EOF when reading a line":
            lack["input"] = True
        elif isinstance(one, ModuleNotFoundError) and isinstance(one.name, str):
            lack["module"] = one.name.partition(".")[0]
        elif isinstance(one, OSError) and (type(one).__name__ == "gaierror" or number in _NETWORK):
            lack["network"] = True
        elif isinstance(one, OSError) and (number in _FILES or number is None):
            lack.setdefault("paths", []).extend(_paths(one))
    return lack


def _paths(error: OSError) -> list[str]:
    """Return the paths that an error is about; some libraries name them in its message only."""
    named = [error.filename, error.filename2]
    paths = [os.fsdecode(one) for one in named if isinstance(one, (str, bytes, os.PathLike))]
    words = [word.strip(".,:;()") for word in re.split(r"[\s'\"]+", _message(error)[:2_000])]
    return (paths or [word for word in words if "." in word or "/" in word])[:_MOST]


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return ""
