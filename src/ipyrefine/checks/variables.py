"""The user's variables: described to a model, and pickled for the sandbox."""

import pickle
import reprlib
import sys
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from ipyrefine.checks.sandbox import load_program
from ipyrefine.errors import UsageError, did_you_mean

_MAX_BYTES = 64 * 2**20
_STRING_WIDTH = 4_000  # characters of a string, which is likely what the task is about
_VALUE_WIDTH = 800  # characters of any other value
_MAX_LINES = 12


def gather(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named variables of a namespace.

    Raises:
        UsageError: a variable does not exist.
    """
    variables = {}
    for name in names:
        if name not in namespace:
            hint = did_you_mean(name, [n for n in namespace if n[:1] != "_"], n=2)
            raise UsageError(f"No variable named {name!r}.{hint}")
        variables[name] = namespace[name]
    return variables


def describe(variables: Mapping[str, Any]) -> str:
    """Return a description for a model: 800 characters a variable at most, 4,000 of a string."""
    return "\n".join(
        f"{name} ({_type_text(value)}):\n{_value_text(value)}" for name, value in variables.items()
    )


def sandbox_files(variables: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that bring variables into a sandbox, by name; none for no variables.

    Raises:
        UsageError: a variable cannot be pickled, or is larger than 64 MB.
    """
    if not variables:
        return {}
    contents = {name: _pickle(name, value) for name, value in variables.items()}
    return {
        "variables_program.py": load_program("variables").encode(),
        "variables.pickle": pickle.dumps(contents),
    }


def _pickle(name: str, value: Any) -> bytes:
    import cloudpickle

    module = _notebook_module(value)
    if module:
        cloudpickle.register_pickle_by_value(module)
    try:
        content: bytes = cloudpickle.dumps(value)
    except Exception as error:  # whatever an object's own pickling raises
        raise UsageError(
            f"The variable {name} cannot be passed to the code of a check: {_first_words(error)}."
        ) from None
    finally:
        if module:
            cloudpickle.unregister_pickle_by_value(module)
    if len(content) > _MAX_BYTES:
        size = len(content) / 2**20
        raise UsageError(
            f"The variable {name} is too large for the code of a check: {size:.0f} MB pickled, "
            f"and {_MAX_BYTES // 2**20} MB are allowed. Pass a part of it."
        )
    return content


def _notebook_module(value: Any) -> ModuleType | None:
    """Return the module of the value's type if it lies beside the notebook, not in a library."""
    module = sys.modules.get(type(value).__module__)
    file = getattr(module, "__file__", None)
    libraries = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    return None if file is None or file.startswith(libraries) else module


def _first_words(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200].rstrip(".")


def _type_text(value: Any) -> str:
    name = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{name} of shape {shape}"
    if isinstance(value, str | bytes | list | tuple | dict | set | frozenset):
        return f"{name} of length {len(value)}"
    return name


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return value if len(value) <= _STRING_WIDTH else value[: _STRING_WIDTH - 1] + "…"
    short = reprlib.Repr()
    short.maxdict = short.maxlist = short.maxtuple = short.maxset = 10
    short.maxstring = short.maxlong = 80
    short.maxother = _VALUE_WIDTH * 2  # it would cut out the middle; we cut the end
    try:
        # Objects of libraries (tables, arrays) bound their own repr.
        lines = short.repr(value).splitlines()
    except Exception:
        return "(it cannot be shown)"
    text = "\n".join([*lines[:_MAX_LINES], *(["…"] if len(lines) > _MAX_LINES else [])])
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 1] + "…"
