"""Explain why code could not be judged in the sandbox, by what it tried to reach there."""

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ipyrefine.core.model import one_line
from ipyrefine.core.points import first_line
from ipyrefine.kernel.folder import CLOSED, why_not
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
    if why := explain_paths(tried):
        return why
    if tried.get("refused"):
        return first_line(f"Not run: the sandbox refused a system call. {fault}")
    return ""


def explain_paths(tried: Any) -> str:
    """Return why results say nothing that rest on files which code does not have; else nothing."""
    if not isinstance(tried, Mapping):
        return ""
    for kind in ("closed", "lacking"):
        paths = tried.get(kind)
        for path in paths if isinstance(paths, list) else ():
            with suppress(ValueError, OSError, TypeError):  # the code tampered with the report
                if why := why_not(path, closed=kind == "closed"):
                    return f"Not run: it uses {redact(one_line(why))}."
    for path in tried.get("large", ()):
        return f"Not run: it writes to {_name(str(path))}, which is too large to be copied."
    if tried.get("opened"):
        return f"Not run: it opens a file that checked code cannot read: {CLOSED}."
    return ""


def _unreached(use: str) -> str:
    return f"Not run: it {use}, which checked code cannot reach."


def _name(text: str) -> str:
    return redact(one_line(text)[:_LONGEST])
