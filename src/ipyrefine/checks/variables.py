"""The user's variables in a task and in the sandbox: described for a model, pickled for code."""

import difflib
import pickle
import reprlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ipyrefine.errors import UsageError

_MOST_BYTES = 64 * 2**20
_MOST_TEXT = 4_000  # characters of a text, which is likely the material itself
_MOST_SHOWN = 800  # characters of any other value
_MOST_LINES = 12
_PROGRAM = Path(__file__).parent / "programs" / "variables.py"


def gather(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Take the named variables out of a namespace.

    Raises:
        UsageError: there is no such variable.
    """
    chosen = {}
    for name in names:
        if name not in namespace:
            near = difflib.get_close_matches(name, [n for n in namespace if n[:1] != "_"], n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(f"There is no variable {name!r} to pass on.{hint}")
        chosen[name] = namespace[name]
    return chosen


def described(variables: Mapping[str, Any]) -> str:
    """Tell a model what the variables are, each within 800 characters (a text within 4,000)."""
    return "\n".join(
        f"{name} ({_kind(value)}):\n{_shown(value)}" for name, value in variables.items()
    )


def furnished(variables: Mapping[str, Any]) -> dict[str, bytes]:
    """The files that bring the variables into a sandbox; none for no variables.

    Raises:
        UsageError: a variable cannot be pickled, or is larger than 64 MB.
    """
    if not variables:
        return {}
    contents = {name: _pickled(name, value) for name, value in variables.items()}
    return {
        "variables_program.py": _PROGRAM.read_bytes(),
        "variables.pickle": pickle.dumps(contents),
    }


def _pickled(name: str, value: Any) -> bytes:
    import cloudpickle

    own = _own_module(value)
    if own:
        cloudpickle.register_pickle_by_value(own)
    try:
        content: bytes = cloudpickle.dumps(value)
    except Exception as error:  # whatever an object's own pickling raises
        raise UsageError(
            f"The variable {name} cannot be passed to the code of a check: {_line(error)}."
        ) from None
    finally:
        if own:
            cloudpickle.unregister_pickle_by_value(own)
    if len(content) > _MOST_BYTES:
        size = len(content) / 2**20
        raise UsageError(
            f"The variable {name} is too large for the code of a check: {size:.0f} MB pickled, "
            f"and {_MOST_BYTES // 2**20} MB are allowed. Pass a part of it."
        )
    return content


def _own_module(value: Any) -> ModuleType | None:
    """The module of the value's type, if it lies beside the notebook, where no sandbox looks."""
    module = sys.modules.get(type(value).__module__)
    file = getattr(module, "__file__", None)
    installed = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    return None if file is None or file.startswith(installed) else module


def _line(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200].rstrip(".")


def _kind(value: Any) -> str:
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{kind} of shape {shape}"
    if isinstance(value, str | bytes | list | tuple | dict | set | frozenset):
        return f"{kind} of length {len(value)}"
    return kind


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else value[: _MOST_TEXT - 1] + "…"
    short = reprlib.Repr()
    short.maxdict = short.maxlist = short.maxtuple = short.maxset = 10
    short.maxstring = short.maxlong = 80
    short.maxother = _MOST_SHOWN * 2  # it would cut out the middle; we cut the end
    try:
        # What comes from a library (tables, arrays) bounds its own repr.
        lines = short.repr(value).splitlines()
    except Exception:
        return "(it cannot be shown)"
    text = "\n".join([*lines[:_MOST_LINES], *(["…"] if len(lines) > _MOST_LINES else [])])
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"
