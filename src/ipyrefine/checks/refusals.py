"""Explain why code could not be judged in the sandbox, by what it tried to reach there."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ipyrefine.kernel.folder import is_in_part
from ipyrefine.kernel.redaction import redact

_LONGEST = 200  # characters of a path in a sentence
_NO_SERVER = re.compile(r"ConnectionRefusedError|\[Errno \d+\] Connection refused")
_NO_SHELL = re.compile(r"NameError: name 'get_ipython'|AttributeError: 'NoneType'")


def explain_refusal(tried: Any, fault: str, *sources: str, offline: bool = True) -> str:
    """Return why code that needs something only the notebook has cannot be judged.

    It is empty if the fault is the code's own. `tried` is what the code tried to reach, as the
    sandbox's program says; `sources` are the code and its callers.
    """
    if not isinstance(tried, Mapping):  # the code tampered with the report
        return ""
    host, variable, module, command = (
        str(tried.get(one, "")) for one in ("host", "variable", "module", "command")
    )
    if tried.get("input"):
        return "Not run: it asks for input, which checked code cannot get."
    if host and offline:
        return _unreached(f"uses the network ({_name(host)})")
    if offline and _NO_SERVER.search(fault):  # the sandbox has a loopback of its own
        return _unreached("uses a server on this machine")
    if _NO_SHELL.match(fault) and any("get_ipython" in one for one in sources):
        return "Not run: it uses IPython itself, which checked code does not have."
    if variable in os.environ:
        return f"Not run: it reads {_name(variable)}, an environment variable of the kernel."
    if shutil.which(command):
        return f"Not run: it runs {_name(command)}, which can do something else in the notebook."
    if module.isidentifier() and (os.path.exists(f"{module}.py") or os.path.exists(module)):
        return _unreached(f"imports {module} from your folder")
    for path in tried.get("paths") or ():
        match path:
            case [str(path), bool(written)] if use := _use_of(path, written=written):
                return _unreached(use)
    if tried.get("refused"):
        return f"Not run: the sandbox refused a system call. {fault}".partition("\n")[0]
    return explain_listing(tried, *sources)


def explain_listing(tried: Any, *sources: str) -> str:
    """Return why code cannot be judged that lists a folder; empty where it is there in full."""
    listed = tried.get("listed") if isinstance(tried, Mapping) else None
    for folder, names in listed.items() if isinstance(listed, Mapping) else ():
        if isinstance(names, list) and is_in_part(folder, names, *sources):
            return (
                f"Not run: it lists {'your folder' if folder == '.' else _name(folder)}, of which "
                "checked code has only the files that it names."
            )
    return ""


def _unreached(use: str) -> str:
    return f"Not run: it {use}, which checked code cannot reach."


def _name(text: str) -> str:
    return redact(" ".join(text.split())[:_LONGEST])


def _use_of(path: str, *, written: bool) -> str:
    """Return how the notebook could use a path that the sandbox lacks; empty if it could not.

    The sandbox's folder, which is its home as well, begins with ``~/``.
    """
    with suppress(ValueError, OSError):  # it is not a path
        inside = path.removeprefix("~/")
        place = inside if os.path.exists(inside) else os.path.expanduser(path)
        if os.access(place, os.R_OK):
            verb = "uses" if os.path.isdir(place) else "writes" if written else "reads"
            return f"{verb} {_name(place)}"
        if "/" not in path and shutil.which(path):
            return f"runs {_name(path)}"
        folder = os.path.dirname(place)
        if folder and written and os.access(folder, os.W_OK):
            return f"writes {_name(place)}"
    return ""
