"""Copy variables for the sandbox: what can be pickled, is not a secret, and is not too large.

A run gets the copies that its code names, and imports the modules of the notebook that it uses.
"""

import ast
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

from ipyrefine.core.syntax import try_parse
from ipyrefine.kernel.describe import columns_of, is_frame, is_named, stored_attributes
from ipyrefine.kernel.redaction import has_known_form, is_environment, is_secret_name
from ipyrefine.sandbox.sandbox import import_path, load_program

MAX_BYTES = 50 * 2**20  # of all copies together
_MAX_NODES = 20_000  # objects that are looked at in one variable
_PROGRAM, _CONTENTS, _ABSENT = "variables_program.py", "variables.pickle", "variables_absent.json"
_SIZED = (str, bytes, bytearray, int, float, list, tuple, dict, set, frozenset)
UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")
_UNREADABLE = re.compile(r"^ipyrefine: the variable (\w+) cannot be read here", re.MULTILINE)
_IN_FOLDER = "it lies in your folder, which checked code cannot reach"
# Words of code that may read a file, the environment or an answer of a server.
_READS = re.compile(
    r"\b(?:open|Path|exec|eval|FileIO|memmap|imread|loadtxt|genfromtxt|fromfile|load)\s*\(|"
    r"\b(?:os|pathlib|glob|fileinput|linecache|subprocess|socket|urllib|requests|httpx|sqlite3|"
    r"importlib|ctypes|builtins|__import__|__builtins__)\b|\b(?:read|scan)_\w+\s*\("
)


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


def may_compute(files: Mapping[str, str | bytes], *sources: str) -> bool:
    """Return whether what some code gives may come from the user's variables or files.

    Args:
        files: the files that bring the copies into the sandbox.
        *sources: the code, and what calls it.
    """
    words = {word for source in sources for word in re.findall(r"\w+", source)}
    return bool(words & _contents(files)["data"]) or any(map(_READS.search, sources))


def files_for(files: Mapping[str, str | bytes], *sources: str) -> dict[str, str | bytes]:
    """Return the files for a run of some code, with what it names of the notebook.

    Arguments as for `may_compute`.
    """
    if _CONTENTS not in files:
        return dict(files)
    contents = _contents(files)
    words = {word for source in sources for word in re.findall(r"\w+", source)}
    variables = {n: content for n, content in contents["variables"].items() if n in words}
    modules, submodules = _modules_in(contents["modules"], sources)
    others = {n: content for n, content in files.items() if n not in (_PROGRAM, _CONTENTS, _ABSENT)}
    if not variables and not modules:
        return others
    named = {"variables": variables, "modules": modules, "submodules": submodules}
    needed = {"path": contents["path"], **named}
    return {**others, _PROGRAM: files[_PROGRAM], _CONTENTS: pickle.dumps(needed)}


def _contents(files: Mapping[str, str | bytes]) -> dict[str, Any]:
    content = files.get(_CONTENTS)
    if not isinstance(content, bytes):
        return {"path": [], "variables": {}, "modules": {}, "data": set()}
    contents: dict[str, Any] = pickle.loads(content)  # our own
    return contents


def _modules_in(
    modules: Mapping[str, str], sources: Iterable[str]
) -> tuple[dict[str, str], list[str]]:
    """Return those modules that code uses by their names, and what it uses below them."""
    nodes = [n for source in sources for n in ast.walk(try_parse(source) or ast.Module([], []))]
    used = {n.id: modules[n.id] for n in nodes if isinstance(n, ast.Name) and n.id in modules}
    below = set[str]()
    for node in nodes if used else ():
        if isinstance(node, ast.Attribute):
            name, _, rest = ast.unparse(node).partition(".")
            if name in used and (path := f"{used[name]}.{rest}") in sys.modules:
                below.add(path)
    return used, sorted(below)


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
    modules: Mapping[str, ModuleType] | None = None,
) -> Copies:
    """Return copies of variables for the sandbox, 50 MB of them at most.

    Args:
        named: those that the user named; code of theirs that pickles them may run.
        found: those that the cell uses.
        closed: whether the sandbox is closed, so that found ones may be copied.
        secrets: names of those that are left out, so that code which needs one is not judged.
        modules: those that the notebook has imported, by the names that they have there.
    """
    values = {**named, **found}
    imports = {**(modules or {}), **{n: v for n, v in values.items() if type(v) is ModuleType}}
    hidden = dict.fromkeys(secrets, "it looks like a secret")
    hidden |= {n: _IN_FOLDER for n, v in imports.items() if _lies_here(v) and n not in values}
    imports = {n: v for n, v in imports.items() if not _lies_here(v)}
    if not values and not hidden and not imports:
        return Copies({}, {}, {})
    contents, absent, samples = dict[str, bytes](), dict[str, str](), dict[str, int]()
    room = MAX_BYTES
    with _modules_by_value():
        for name, value in values.items():
            if name in imports:
                continue
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
        _PROGRAM: load_program("load_variables").encode(),
        _CONTENTS: pickle.dumps(
            {
                "path": import_path(),
                "variables": contents,
                "modules": {n: str(vars(v)["__name__"]) for n, v in imports.items()},
                "data": {n for n in contents if not _is_plain_function(values[n])},
            }
        ),
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
        foreign_code: whether the user's own code for pickling may be called.

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


def _is_plain_function(value: Any) -> bool:
    """Return whether a value is a function that takes nothing but code with it."""
    left, seen = [value], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if type(one) is types.FunctionType and not one.__dict__:
            left += [held for name, held in _held_by_function(one) if name]
        elif type(one) is types.BuiltinFunctionType:
            left += [] if one.__self__ is None else [one.__self__]
        elif type(one) is not ModuleType or _lies_here(one):
            return False
    return True


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
