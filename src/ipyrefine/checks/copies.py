"""Copy variables for the sandbox: what can be pickled, is no secret, and is not too large."""

import io
import json
import os
import pickle
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple

from ipyrefine.checks.redaction import has_known_form, is_environment, is_secret_name
from ipyrefine.checks.sandbox import import_path, load_program
from ipyrefine.checks.structure import columns_of, is_frame, is_named, stored_attributes

MAX_BYTES = 50 * 2**20  # of all copies together
_MAX_NODES = 20_000  # objects that are looked at in one variable
_PROGRAM, _CONTENTS, _ABSENT = "variables_program.py", "variables.pickle", "variables_absent.json"
_SIZED = (str, bytes, bytearray, int, float, list, tuple, dict, set, frozenset)
UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")
_UNREADABLE = re.compile(r"^ipyrefine: the variable (\w+) cannot be read here", re.MULTILINE)


class Copies(NamedTuple):
    """Copies of variables for the sandbox.

    Attributes:
        files: the files that bring them there, by name.
        absent: why each of the others could not be copied, by name.
        samples: how many first rows were copied of a large frame, by name.
    """

    files: Mapping[str, bytes]
    absent: Mapping[str, str]
    samples: Mapping[str, int]

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for people on each reason why variables have no copy."""
        names: dict[str, list[str]] = {}
        for name, reason in self.absent.items():
            names.setdefault(reason, []).append(name)
        return tuple(
            f"Checks run without {', '.join(those)}: {reason}." for reason, those in names.items()
        )


def explain_absence(files: Mapping[str, str | bytes], error: str, stderr: str = "") -> str:
    """Return why code cannot be judged that failed for want of a variable; empty if it can be.

    Args:
        files: the files that brought the variables into the sandbox.
        error: how the code failed.
        stderr: what the sandbox's process wrote there.
    """
    missing = UNDEFINED.search(error)
    if missing is None or _ABSENT not in files:
        return ""
    name = missing[1]
    absent = json.loads(files[_ABSENT])
    if name in absent:
        return f"Not run: the code needs {name}, and {absent[name]}."
    if name in _UNREADABLE.findall(stderr):
        return f"Not run: the code needs {name}, which cannot be read in the sandbox."
    return ""


def copy_variables(
    named: Mapping[str, Any],
    found: Mapping[str, Any],
    *,
    closed: bool = True,
    secrets: Iterable[str] = (),
) -> Copies:
    """Return copies of variables for the sandbox, 50 MB of them at most.

    Args:
        named: those that the user named; code of theirs that pickles them may run.
        found: those that the cell uses.
        closed: whether the sandbox is closed, so that found ones may be copied.
        secrets: names of those that are left out, so that code which needs one is not judged.
    """
    hidden = dict.fromkeys(secrets, "it looks like a secret")
    if not named and not found and not hidden:
        return Copies({}, {}, {})
    contents, absent, samples = dict[str, bytes](), dict[str, str](), dict[str, int]()
    room = MAX_BYTES
    with _modules_by_value():
        for name, value in {**named, **found}.items():
            if name in found and not closed:
                absent[name] = "code is not cut off from the network here, so -v must name it"
                continue
            try:
                rows = _sample_rows(value, room)
                if rows is not None:
                    value, samples[name] = value.head(rows), rows
                contents[name] = _pickle(value, room, foreign_code=name in named)
                room -= len(contents[name])
            except _NoCopy as error:
                samples.pop(name, None)
                absent[name] = str(error)
    files = {
        _PROGRAM: load_program("variables").encode(),
        _CONTENTS: pickle.dumps({"path": import_path(), "variables": contents}),
        _ABSENT: json.dumps({**absent, **hidden}).encode(),
    }
    return Copies(files, absent, samples)


class _NoCopy(Exception):
    """A variable cannot be copied; the message says why."""


class _Buffer(io.BytesIO):
    """A file in memory that refuses to grow beyond a bound."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def write(self, data: Any) -> int:
        """Append data.

        Raises:
            _NoCopy: the file would be too large.
        """
        if self.tell() + memoryview(data).nbytes > self._limit:
            raise _NoCopy("it is too large to copy")
        return super().write(data)


def _pickle(value: Any, limit: int, *, foreign_code: bool) -> bytes:
    """Return a pickled variable.

    Args:
        value: the variable.
        limit: bytes it may take.
        foreign_code: whether code of the user's that pickles an object may be called.

    Raises:
        _NoCopy: it cannot be pickled, is too large, or holds a secret.
    """
    import cloudpickle

    if _estimate_size(value) > limit:
        raise _NoCopy("it is too large to copy")
    if _holds_secret(value):
        raise _NoCopy("it holds what looks like a secret")

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            kind = type(obj)
            if not foreign_code and _pickles_itself(kind):
                raise _NoCopy(f"{kind.__name__} pickles itself with code of its own")
            return super().reducer_override(obj)

    buffer = _Buffer(limit)
    try:
        Pickler(buffer).dump(value)
    except _NoCopy:
        raise
    except Exception as error:  # whatever an object's own pickling raises
        raise _NoCopy(f"it cannot be copied ({_first_words(error)})") from None
    content = buffer.getvalue()
    if has_known_form(content):
        raise _NoCopy("it holds what looks like a secret")
    return content


def _pickles_itself(kind: type) -> bool:
    """Return whether a type of the notebook's says itself how it is pickled."""
    own = ("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__")
    for one in type.__dict__["__mro__"].__get__(kind):
        names = type.__dict__["__dict__"].__get__(one)
        if names.get("__module__") == "__main__" and any(name in names for name in own):
            return True
    return False


@contextmanager
def _modules_by_value() -> Iterator[None]:
    """Pickle by value the modules in the working folder, as helpers of a notebook are.

    The sandbox does not import from there. All others are imported.
    """
    import cloudpickle

    modules = [module for module in list(sys.modules.values()) if _lies_here(module)]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _lies_here(module: object) -> bool:
    names = vars(module) if type(module) is ModuleType else {}
    file, name = names.get("__file__"), names.get("__name__")
    if type(file) is not str or type(name) is not str or name == "__main__":
        return False
    top = os.path.join(os.getcwd(), name.partition(".")[0])
    return os.path.abspath(file).startswith((f"{top}.", f"{top}{os.sep}"))


def _first_words(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200].rstrip(".")


def _sample_rows(value: Any, room: int) -> int | None:
    """Return how many first rows of a frame fit; None for all, or for anything else."""
    if not is_frame(value) or (size := _frame_size(value)) <= room // 2:
        return None
    rows: int = value.shape[0]
    return int(rows * (room // 4) / size)


def _frame_size(value: Any) -> int:
    """Estimate the bytes of a frame, its strings by the first of them."""
    rows: int = value.shape[0]
    if is_named(value, "polars", "DataFrame", "Series"):
        return int(value.estimated_size())
    fixed = value.memory_usage(deep=False)
    fixed = int(fixed if isinstance(fixed, int) else fixed.sum())
    head = value.head(1_000)
    deep = head.memory_usage(deep=True)
    deep = int(deep if isinstance(deep, int) else deep.sum())
    return max(fixed, int(deep * rows // max(1, int(head.shape[0]))))


def _estimate_size(value: Any) -> int:
    """Estimate the bytes of a variable from its first objects."""
    total = nodes = 0
    for _, held in _walk(value):
        nodes += 1
        total += _own_size(held)
    if nodes >= _MAX_NODES and type(value) in (list, tuple, dict, set, frozenset):
        total = total * len(value) // _MAX_NODES
    return total


def _own_size(value: Any) -> int:
    if is_named(value, "numpy", "ndarray"):
        return int(value.nbytes)
    if is_frame(value):
        return _frame_size(value)
    return sys.getsizeof(value) if type(value) in _SIZED else object.__sizeof__(value)


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a variable and what it holds, each with its name there, a bounded number of them."""
    left: list[tuple[str, Any]] = [("", value)]
    seen = set[int]()
    while left and len(seen) < _MAX_NODES:
        name, one = left.pop()
        if id(one) in seen and type(one) not in (str, bytes):
            continue
        seen.add(id(one))
        yield name, one
        left += islice(_held(one), _MAX_NODES - len(seen))


def _held(value: Any) -> Iterator[tuple[str, Any]]:
    kind: type = type(value)
    if kind in (str, bytes, int, float, bool, type(None)):
        return
    if kind is ModuleType:
        yield from vars(value).items() if _lies_here(value) else ()
        return
    if issubclass(kind, dict):
        for key, held in dict.items(value):
            yield "", key
            yield (key if type(key) is str else ""), held
    for one in (list, tuple, set, frozenset):
        if issubclass(kind, one):
            yield from (("", held) for held in one.__iter__(value))
    if kind is types.FunctionType:
        yield from _held_by_function(value)
    elif issubclass(kind, type):
        yield from _held_by_class(value)
    elif issubclass(kind, staticmethod | classmethod):
        yield "", value.__func__
    elif issubclass(kind, property):
        yield from (("", part) for part in (value.fget, value.fset, value.fdel))
    elif not is_frame(value):
        yield "", kind  # a class of the notebook's is pickled with its objects
        yield from stored_attributes(value)


def _held_by_class(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield what is pickled with a class of the notebook's."""
    names = type.__dict__["__dict__"].__get__(kind)
    module = names.get("__module__")
    if module == "__main__" or _lies_here(sys.modules.get(module)):
        yield from names.items()


def _held_by_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what is pickled with a function: its defaults, its closure, the globals it uses."""
    code, defaults = function.__code__, function.__defaults__ or ()
    with_default = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    yield from zip(with_default, defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it is empty
            continue
    module = sys.modules.get(function.__module__ or "")
    if module is not None and module.__name__ != "__main__" and not _lies_here(module):
        return  # it is imported
    codes = [code]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        yield from (("", c) for c in code.co_consts if type(c) in (str, bytes))
        for name in code.co_names:
            if name in function.__globals__:
                yield name, function.__globals__[name]


def _holds_secret(value: Any) -> bool:
    """Return whether something inside a variable has a secret's name or a known form of one."""
    return any(
        is_environment(held)
        or any(is_secret_name(column, "" if text else 0) for column, text in columns_of(held))
        or (type(held) is str and has_known_form(held[:100_000]))
        or (bool(name) and type(held) in (str, bytes) and held and is_secret_name(name, held))
        for name, held in _walk(value)
    )
