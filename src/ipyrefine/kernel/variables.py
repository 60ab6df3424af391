"""The user's variables: which of them a task uses, shown to a model, and copied for the sandbox.

Checked code gets copies. One that a user named is copied wherever code is run; one that was found
in the cell only where the sandbox is closed, so that nothing can leave it. Where a task is about
data, code may use everything else in the notebook too, but no model is shown it. What looks like a
secret is never shown nor copied.

Copying runs none of an object's own code and ends at a size and a time. Copied are values of the
standard library, NumPy, pandas, polars and Arrow; functions; and objects of the notebook's own
classes, unless these say themselves how they are pickled. A helper from the working folder counts
as the notebook's own. Everything else is absent, and code that needs it is not judged.
"""

import ast
import asyncio
import copyreg
import functools
import io
import json
import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property
from itertools import islice
from time import monotonic
from types import ModuleType
from typing import Any, NamedTuple

from ipyrefine.core.model import FirstRows, Material
from ipyrefine.core.scopes import names_needed
from ipyrefine.core.syntax import try_parse
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.kernel.describe import (
    class_dict,
    class_name,
    columns_of,
    describe,
    is_frame,
    is_named,
    label,
    mro,
)
from ipyrefine.kernel.names import names_in_draft, names_in_prose
from ipyrefine.kernel.redaction import has_known_form, is_environment, is_secret, is_secret_name
from ipyrefine.sandbox.sandbox import import_path, run_python

MAX_BYTES = 50 * 2**20  # of all copies together
_COPY_SECONDS = 5.0  # for all of them
_CHUNK = 2**15  # bytes of a copy that are searched at once; other threads have their turn between
_LONGEST_FORM = 1_000  # bytes by which a token of a known form is known
_MAX_FOUND = 20  # names
_MAX_CHARACTERS = 6_000  # of what the found names add to every prompt
_MAX_KEYS = 20_000  # of a dict, looked at for names of secrets
_COLLECTIONS = (dict, frozenset, list, set, tuple)
_CODE = (type, ModuleType, types.FunctionType, types.BuiltinFunctionType)
_ATOMS = frozenset({str, bytes, int, float, bool, type(None)})
_CACHED: Any = functools._lru_cache_wrapper  # the type of functions that remember results
_COPIED = frozenset({"numpy", "pandas", "polars", "pyarrow", "dateutil", "pytz", "cloudpickle"})
# Methods by which a class has code of its own run while its objects are pickled.
_OWN_CODE = frozenset(
    {
        *("__reduce__", "__reduce_ex__", "__getstate__", "__getnewargs__", "__getnewargs_ex__"),
        *("__getattribute__", "__getattr__", "__class__"),
    }
)
_OWN_CODE_OF_COLLECTIONS = frozenset({"__iter__", "items"})
_WITHOUT_DATA = frozenset({"abc", "collections.abc", "typing"})  # modules of such base classes
_OWN_CODE_OF_CLASSES = frozenset({"__eq__", "__hash__", "__instancecheck__", "__subclasscheck__"})

_CONTENTS, _ABSENT = "variables.json", "variables_absent.json"
_COPY = "variable_{}.pickle"
UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")
_UNREADABLE = re.compile(r"^ipyrefine: the variable (\w+) cannot be read here", re.MULTILINE)
_IN_FOLDER = "it lies in your folder, which checked code cannot reach"
_SECRET = "it holds what looks like a secret"
NEEDS_SECRET = "It depends on a secret"  # how code failed, or a result that it gives
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
    samples: Mapping[str, FirstRows]

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for people on each reason why variables have no copy."""
        names: dict[str, list[str]] = {}
        for name, reason in self.absent.items():
            names.setdefault(reason, []).append(name)
        return tuple(
            f"Checks run without {', '.join(those)}: {reason}." for reason, those in names.items()
        )


class Variables:
    """Variables that a task is about.

    Args:
        named: those that the user named, by name; shown with their values.
        found: those that the cell uses, by name.
        others: what else is there, by name; no model is shown it, but code may need it.
        modules: those that the notebook has imported, by name; checked code has them, too.

    Attributes:
        left_out: a sentence on the found ones that look like a secret, for which they are not
            there; empty for none.

    Raises:
        UsageError: a named one looks like a secret.
    """

    def __init__(
        self,
        named: Mapping[str, Any] | None = None,
        found: Mapping[str, Any] | None = None,
        *,
        others: Mapping[str, Any] | None = None,
        modules: Mapping[str, ModuleType] | None = None,
    ) -> None:
        self.named, self._modules = dict(named or {}), dict(modules or {})
        for name, value in self.named.items():
            if _is_secret(name, value):
                raise UsageError(f"{name} looks like a secret, so no model is shown it.")
        used = {n: v for n, v in (found or {}).items() if n not in self.named}
        self._secrets = [name for name, value in used.items() if _is_secret(name, value)]
        self.found = {name: value for name, value in used.items() if name not in self._secrets}
        self._all = {**self.named, **self.found}
        self._others = {n: v for n, v in (others or {}).items() if n not in self._all}
        names = ", ".join(self._secrets)
        self.left_out = f"{names} left out: looks like a secret." if names else ""

    @classmethod
    def of(cls, variables: "Variables | Mapping[str, Any] | None") -> "Variables":
        """Return variables as they are, or those of a dict as named ones."""
        return variables if isinstance(variables, cls) else cls(variables)  # type: ignore[arg-type]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple(self._all)

    def materials(self, *, values: bool, copied: bool = False) -> tuple[Material, ...]:
        """Return what a model is shown of them.

        Args:
            values: whether that is the values of the found ones, too.
            copied: whether checks get copies; a phrase says then what they get of a large frame.
        """
        samples = self.copies.samples if copied else {}
        texts = {name: describe(name, value, values=True) for name, value in self.named.items()}
        room = _MAX_CHARACTERS
        for name, value in self.found.items():
            text = describe(name, value, values=values)
            texts[name] = text if len(text) <= room else text.partition("\n")[0]
            room -= len(texts[name])
        notes = {one.name: f", checks get its first {one.rows:,} rows" for one in samples.values()}
        return tuple(
            Material(
                kind="variable",
                name=name,
                phrase=label(name, self._all[name]) + notes.get(name, ""),
                text=text,
                computed=values and name in self.found,
            )
            for name, text in texts.items()
        )

    async def copy(self) -> None:
        """Make the copies in a thread, so that the event loop can do other things meanwhile."""
        if sys.platform != "emscripten":
            await asyncio.to_thread(getattr, self, "copies")

    @cached_property
    def copies(self) -> Copies:
        """The copies for the sandbox, 50 MB of them at most."""
        imports = {n: v for n, v in self._all.items() if type(v) is ModuleType}
        imports = {**self._modules, **imports}
        absent = dict.fromkeys(self._secrets, "it looks like a secret")
        absent |= {n: _IN_FOLDER for n, v in imports.items() if lies_here(v)}
        imports = {n: v for n, v in imports.items() if not lies_here(v) and _is_importable(v)}
        values = {n: v for n, v in self._all.items() if n not in imports}
        if not values and not absent and not imports:
            return Copies({}, {}, {})
        others, self._others = self._others, {}  # what the notebook drops, a run does not keep
        values |= others
        closed = not (self.found or others) or sandbox_is_closed()
        contents, failed, samples = dict[str, bytes](), dict[str, str](), dict[str, FirstRows]()
        room, deadline = MAX_BYTES, monotonic() + _COPY_SECONDS
        with _modules_by_value() as here:
            for name, value in values.items():
                if name in others and _is_secret(name, value):
                    continue
                if name not in self.named and not closed:
                    failed[name] = "code is not cut off from the network here, so -v must name it"
                    continue
                try:
                    contents[name], rows = _copy(value, room, deadline, here)
                except _NoCopy as error:
                    failed[name] = str(error)
                    continue
                room -= len(contents[name])
                if rows is not None:
                    samples[name] = FirstRows(name=name, rows=rows, of=value.shape[0])
        # The task does not name the others, so the user is not told of one that has no copy.
        told = {name: reason for name, reason in failed.items() if name not in others}
        listed = {
            "path": import_path(),
            "variables": [*contents],
            "modules": {n: vars(v)["__name__"] for n, v in imports.items()},
            "data": [n for n in contents if not _is_only_code(values[n], set())],
            "first_rows": {name: (one.rows, one.of) for name, one in samples.items()},
        }
        files = {
            _CONTENTS: json.dumps(listed).encode(),
            _ABSENT: json.dumps({**absent, **failed}).encode(),
            **{_COPY.format(name): content for name, content in contents.items()},
        }
        return Copies(files, told, samples)

    @property
    def labels(self) -> Mapping[str, str]:
        """What people call those that have a copy, by name; a module needs none."""
        return {name: label(name, self._all[name]).partition(" (")[0] for name in self._copied}

    @property
    def lets_run(self) -> bool:
        """Whether code may be run on the copies unasked: there are some, and nothing can leave."""
        return sandbox_is_closed() and bool(self._copied)

    @property
    def _copied(self) -> list[str]:
        values = {n for n, v in self._all.items() if not issubclass(type(v), ModuleType)}
        return [n for n in self._all if n in values and n not in self.copies.absent]

    @property
    def files(self) -> Mapping[str, bytes]:
        """The files that bring the copies into a sandbox; none for no variables."""
        return self.copies.files


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


def find(
    namespace: Mapping[str, Any],
    *,
    text: str = "",
    bare: bool = False,
    draft: str = "",
    named: Iterable[str] = (),
    without: Iterable[str] = (),
    more: Iterable[str] = (),
) -> Variables:
    """Return the variables that a cell is about.

    Args:
        namespace: the user's variables, without IPython's own.
        text: the cell's request in words.
        bare: whether data are meant without backticks, too, as in a request for code.
        draft: the cell's code.
        named: names that the user gave; they must exist.
        without: names to leave out of what is found; ``all`` for all.
        more: further names that it may be about.

    Raises:
        UsageError: a named variable does not exist or looks like a secret, or a name to leave out
            is also given.
    """
    named, without = dict.fromkeys(named), set(without)
    if both := without & named.keys():
        raise UsageError(f"-v {min(both)} and --no-var {min(both)} contradict each other.")
    chosen, found = gather(named, namespace), dict[str, Any]()
    if "all" not in without:
        words = [w for w in re.findall(r"\w+", text) if bare and _is_data(w, namespace.get(w))]
        for name in dict.fromkeys([*names_in_draft(draft), *names_in_prose(text), *words, *more]):
            if name in namespace and name not in without and name[:1] != "_":
                found[name] = namespace[name]
    found = dict(islice(found.items(), _MAX_FOUND))
    modules = {n: v for n, v in namespace.items() if type(v) is ModuleType and n[:1] != "_"}
    others = dict[str, Any]()
    about_data = any(_is_data(name, value) for name, value in {**chosen, **found}.items())
    if about_data and "all" not in without:
        left_out = without | modules.keys()
        others = {n: v for n, v in namespace.items() if n[:1] != "_" and n not in left_out}
    return Variables(chosen, found, others=others, modules=modules)


def data_names(namespace: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the data in a namespace and of its columns, in lower case.

    Data are frames, arrays and collections. A string is rather a text to work on.
    """
    names = set[str]()
    for name, value in namespace.items():
        if _is_data(name, value):
            names |= {name.lower(), *(column.lower() for column, _ in columns_of(value))}
    return frozenset(names)


def _is_data(name: str, value: Any) -> bool:
    is_data = is_frame(value) or is_named(value, "numpy", "ndarray") or type(value) in _COLLECTIONS
    return len(name) > 1 and name[0] != "_" and is_data


@cache
def sandbox_is_closed() -> bool:
    """Return whether the sandbox keeps code from the network, keys and other processes here.

    It is run once to find out.
    """
    if sys.platform == "emscripten":
        return False
    with ThreadPoolExecutor(1) as pool:  # a loop may be running in this thread
        protection = pool.submit(lambda: asyncio.run(run_python(""))).result().protection
    return protection.network and protection.keys and protection.processes


def _is_secret(name: str, value: Any) -> bool:
    """Return whether a variable is a secret itself, by its name or its looks."""
    if issubclass(type(value), _CODE):
        return False
    if is_environment(value):
        return True
    if is_frame(value) or is_named(value, "numpy", "ndarray"):
        return is_secret_name(name, 0)
    short = type(value) is str and len(value) <= 200 and " " not in value.strip()
    return is_secret_name(name, value) or (short and is_secret(value))


# What a run gets of the copies


def may_compute(files: Mapping[str, str | bytes], *sources: str) -> bool:
    """Return whether what some code gives may come from the user's variables or files.

    Args:
        files: the files that bring the copies into the sandbox.
        *sources: the code, and what calls it.
    """
    data = json.loads(files[_CONTENTS])["data"] if _CONTENTS in files else ()
    return not _words(sources).isdisjoint(data) or any(map(may_read, sources))


def may_read(source: str) -> bool:
    """Return whether code may read a file, the environment or an answer of a server."""
    return _READS.search(source) is not None


def holds_data(files: Mapping[str, str | bytes]) -> bool:
    """Return whether files bring data into a sandbox that nothing can leave."""
    return bool(json.loads(files.get(_CONTENTS, "{}")).get("data")) and sandbox_is_closed()


def names_brought(files: Mapping[str, str | bytes]) -> set[str]:
    """Return the names of variables and modules that files bring, and of those without a copy."""
    listed = json.loads(files.get(_CONTENTS, "{}"))
    absent = json.loads(files.get(_ABSENT, "{}"))
    return {*listed.get("variables", ()), *listed.get("modules", ()), *absent}


def conditions(files: Mapping[str, str | bytes], code: str, *calls: str) -> tuple[FirstRows, ...]:
    """Return of which variables that some code needs only the first rows are there.

    Args:
        files: the files that bring the copies into the sandbox.
        code: the code.
        *calls: what is evaluated below it, if only what that depends on is asked about.
    """
    listed = json.loads(files.get(_CONTENTS, "{}"))
    cut = listed.get("first_rows")
    if not cut:
        return ()
    imports = "".join(f"import {name}\n" for name in listed["modules"])
    needed = names_needed(imports + code, *calls)
    return tuple(
        FirstRows(name=name, rows=rows, of=of) for name, (rows, of) in cut.items() if name in needed
    )


def wants_rows(error: str) -> bool:
    """Return whether code may have failed only as further rows of a frame are not there."""
    return re.match(r"(?:AssertionError|IndexError)\b", error) is not None


def files_for(files: Mapping[str, str | bytes], *sources: str) -> dict[str, str | bytes]:
    """Return the files for a run of some code, with what it names of the notebook.

    First rows are left out where the code does not say that it needs them: what it gave would not
    be known to come from them.

    Arguments as for `may_compute`.
    """
    if _CONTENTS not in files:
        return dict(files)
    listed = json.loads(files[_CONTENTS])
    needed = _words(sources).intersection(listed["variables"])
    if cut := needed.intersection(listed["first_rows"]):
        needed -= cut.difference(*map(names_needed, sources))
    modules, submodules = _modules_in(listed["modules"], sources)
    unused = {_COPY.format(name) for name in listed["variables"] if name not in needed}
    chosen = {n: content for n, content in files.items() if n not in {_CONTENTS, _ABSENT, *unused}}
    if not needed and not modules:
        return chosen
    named = {"variables": sorted(needed), "modules": modules, "submodules": submodules}
    return {**chosen, _CONTENTS: json.dumps({"path": listed["path"], **named})}


def _words(sources: Iterable[str]) -> set[str]:
    return {word for source in sources for word in re.findall(r"\w+", source)}


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
    if NEEDS_SECRET in error:
        return "Not run: it depends on a secret, which checked code does not get."
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


def absent_files(names: Iterable[str], reason: str) -> dict[str, bytes]:
    """Return the files for code whose variables are not there, so that it is not judged.

    Args:
        names: the names of the variables.
        reason: why they are not there, as a clause.
    """
    return {_ABSENT: json.dumps(dict.fromkeys(names, reason)).encode()}


# Copying


class _NoCopy(Exception):
    """A variable cannot be copied; the message says why."""


class _TooLarge(_NoCopy):
    def __init__(self) -> None:
        super().__init__("it is too large to copy")


class _Buffer(io.BytesIO):
    """A file in memory that refuses to grow beyond a size or after a time."""

    def __init__(self, limit: int, deadline: float) -> None:
        super().__init__()
        self.limit, self._deadline = limit, deadline

    def write(self, data: Any) -> int:
        self.ask_for(memoryview(data).nbytes)
        return super().write(data)

    def ask_for(self, size: int) -> None:
        """Refuse to go on if so many bytes do not fit, or no time is left."""
        if self.tell() + size > self.limit:
            raise _TooLarge
        if monotonic() > self._deadline:
            raise _NoCopy("copying it takes too long")


def _copy(value: Any, room: int, deadline: float, here: frozenset[str]) -> tuple[bytes, int | None]:
    """Return a pickled variable, and how many first rows of a large frame it has.

    Args:
        value: the variable.
        room: bytes it may take.
        deadline: when to give up.
        here: the modules that count as the notebook's own.

    Raises:
        _NoCopy: it is not of a kind that is copied, or too large, or holds a secret.
    """
    if not is_frame(value):
        return _pickle(value, _Buffer(room, deadline), here), None
    try:
        return _pickle(value, _Buffer(room // 2, deadline), here), None
    except _TooLarge:
        some = min(1_000, value.shape[0])
        size = len(_pickle(value.head(some), _Buffer(room // 2, deadline), here))
        rows = min(value.shape[0] - 1, some * (room // 4) // size)
        return _pickle(value.head(rows), _Buffer(room // 2, deadline), here), rows


def _pickle(value: Any, buffer: _Buffer, here: frozenset[str]) -> bytes:
    import cloudpickle

    allowed: Callable[[type, frozenset[str]], bool] = cache(_is_copied)
    states = set[int]()  # the attributes of a library's objects, whose names are no user's

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, obj: Any) -> None:  # called for each object before it is pickled
            kind = type(obj)
            meta = type(kind)  # looking up a class may run its code
            if meta is type and kind in _ATOMS:
                return
            if type(meta) is not type or not allowed(meta, here) or not allowed(kind, here):
                raise _NoCopy(f"objects of type {class_name(kind)} are not copied")
            buffer.ask_for(_least_size(obj))
            if id(obj) not in states and _names_a_secret(obj):
                raise _NoCopy(_SECRET)
            if _is_copied_library(kind):
                states.add(id(getattr(obj, "__dict__", None)))

        def reducer_override(self, obj: Any) -> Any:
            if type(obj) is _CACHED and vars(obj).get("__module__") in here:
                known = {n: v for n, v in vars(obj).items() if n != "cache_parameters"}
                size = _CACHED.cache_info(obj).maxsize
                return _CACHED, (known.get("__wrapped__"), size, False, functools._CacheInfo), known
            if type(obj) is functools.cached_property:  # until Python 3.12 it holds a lock
                return type(obj), (obj.func,), {"attrname": obj.attrname, "__doc__": obj.__doc__}
            return super().reducer_override(obj)

    try:
        Pickler(buffer).dump(value)
    except _NoCopy:
        raise
    except Exception as error:  # whatever cannot be pickled raises
        words = (" ".join(str(error).split()) or type(error).__name__)[:200].rstrip(".")
        raise _NoCopy(f"it cannot be copied ({words})") from None
    content = buffer.getvalue()
    for start in range(0, len(content), _CHUNK):
        buffer.ask_for(0)
        if has_known_form(content[start : start + _CHUNK + _LONGEST_FORM]):
            raise _NoCopy(_SECRET)
    return content


def _module(kind: type) -> str:
    module = type.__dict__["__module__"].__get__(kind)
    # Cython's functions have a slot of that name.
    return "builtins" if type(module) is types.MemberDescriptorType else str(module)


def _is_copied(kind: type, here: frozenset[str]) -> bool:
    """Return whether objects of a type may be pickled: that runs no code of the notebook's."""
    reducer: Any = copyreg.dispatch_table.get(kind)
    if reducer and (type(reducer) not in _CODE or {reducer.__module__, _module(kind)} & here):
        return False
    for base in mro(kind):
        module = _module(base)
        if module in here:
            names = _OWN_CODE
            if issubclass(kind, type):
                names |= _OWN_CODE_OF_CLASSES
            elif any(_module(one) not in here | _WITHOUT_DATA for one in mro(kind)[:-1]):
                names |= _OWN_CODE_OF_COLLECTIONS
            own = [one for name, one in class_dict(base).items() if name in names]
            makers = [getattr(one, "__globals__", {}).get("__name__") for one in own]
            if not all(maker in ("collections", "dataclasses") for maker in makers):
                return False
        elif module.partition(".")[0] not in sys.stdlib_module_names | _COPIED:
            return issubclass(kind, type)  # a class of a package is imported, by its name
    return class_name(kind) != "LazyFrame"


def _is_copied_library(kind: type) -> bool:
    return _module(kind).partition(".")[0] in _COPIED


def _least_size(value: Any) -> int:
    """Return bytes that a pickled value takes at least, as far as it says so at once."""
    if type(value) in _COLLECTIONS:
        return len(value)
    if is_named(value, "polars", "DataFrame", "Series"):
        return int(value.estimated_size())
    if _is_copied_library(type(value)):
        size = getattr(value, "nbytes", 0)
        return int(size) if type(size) is int else 0
    return 0


def _names_a_secret(value: Any) -> bool:
    """Return whether something that a value holds has the name of a secret."""
    if is_environment(value):
        return True
    if is_frame(value):
        return any(is_secret_name(one, "" if text else 1_000) for one, text in columns_of(value))
    if issubclass(type(value), dict):
        held: Iterable[tuple[Any, Any]] = islice(dict.items(value), _MAX_KEYS)
    elif type(value) is types.FunctionType:
        code, cells = value.__code__, map(_cell_contents, value.__closure__ or ())
        last_first = zip(
            code.co_varnames[code.co_argcount - 1 :: -1],
            (value.__defaults__ or ())[::-1],
            strict=False,
        )
        held = [*last_first, *zip(code.co_freevars, cells, strict=True)]
    else:
        return False
    return any(
        type(name) is str and type(one) in (str, bytes) and one and is_secret_name(name, one)
        for name, one in held
    )


def _cell_contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _is_only_code(value: Any, seen: set[int]) -> bool:
    """Return whether a value is a function that takes nothing but code with it."""
    if type(value) is ModuleType:
        return not lies_here(value)
    if type(value) is types.BuiltinFunctionType:
        return value.__self__ is None or type(value.__self__) is ModuleType
    if type(value) is not types.FunctionType:
        return False
    if value.__dict__ or value.__closure__ or value.__defaults__ or value.__kwdefaults__:
        return False
    seen.add(id(value))
    codes, names = [value.__code__], set[str]()
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        names.update(code.co_names)
    used = [value.__globals__[name] for name in names if name in value.__globals__]
    return all(id(one) in seen or _is_only_code(one, seen) for one in used)


@contextmanager
def _modules_by_value() -> Iterator[frozenset[str]]:
    """Pickle by value the modules in the working folder; yield the names of the notebook's own.

    The sandbox does not import from there. All others are imported.
    """
    import cloudpickle

    modules = [module for module in list(sys.modules.values()) if lies_here(module)]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield frozenset({"__main__", *(module.__name__ for module in modules)})
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def _is_importable(module: ModuleType) -> bool:
    return type(vars(module).get("__name__")) is str


def lies_here(module: object) -> bool:
    """Return whether something is a module whose file lies beside the notebook."""
    names = vars(module) if type(module) is ModuleType else {}
    file, name = names.get("__file__"), names.get("__name__")
    if type(file) is not str or type(name) is not str or name == "__main__":
        return False
    top = os.path.join(os.getcwd(), name.partition(".")[0])
    return os.path.abspath(file).startswith((f"{top}.", f"{top}{os.sep}"))
