"""Pickle what code needs of the notebook: which names, how much of each, and nothing secret.

A value is pickled with what its functions and classes use of the notebook, as values of their own
names; in the sandbox these functions then share the namespace of the code, as in the notebook.
"""

import copyreg
import functools
import os
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dis import get_instructions
from itertools import islice
from time import monotonic
from types import ModuleType
from typing import IO, Any

from ipyrefine.core.model import Amount, Count, Record, one_line
from ipyrefine.kernel.describe import class_name, is_array, is_connection, is_frame, is_named
from ipyrefine.kernel.redaction import has_known_form, is_environment, is_secret, is_secret_name
from ipyrefine.sandbox.programs.reading import mro
from ipyrefine.sandbox.sandbox import working_folder

TOO_LARGE = "it is too large to copy"
TOO_SLOW = "copying it takes too long"
IS_SECRET = "it looks like a secret"
_HOLDS_SECRET = "it holds what looks like a secret"
_CHUNK = 2**15  # bytes that are searched at once; other threads have their turn between
_LONGEST_FORM = 1_000  # bytes by which a token of a known form is known
_MAX_KEYS = 20_000  # of a dict, looked at for names of secrets
_OVERHEAD = 64  # bytes of an object in memory, besides its content
_HEAD = 1_000  # rows by which the size of a row is told
CODE = (type, ModuleType, types.FunctionType, types.BuiltinFunctionType)
_ATOMS = frozenset({str, bytes, int, float, bool, type(None)})
_CACHED: Any = functools._lru_cache_wrapper  # the type of functions that remember results
_EXACT = frozenset({"numpy", "pandas", "polars", "pyarrow", "dateutil", "pytz", "cloudpickle"})
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})


# Whether tokens in a table go along: the sandbox that gets the copies is closed.
TOKENS_STAY = ContextVar("ipyrefine_tokens_stay", default=False)


class Copy(Record):
    """A name's copy: where its pickle begins and ends in the file, both 0 where there is none.

    Attributes:
        module: the module that it is, which is imported instead.
        rows: how many first rows were copied, out of `of`; None for all.
        reason: why it could not be copied; empty where it was.
        uses: the names that its functions use.
        room: bytes of memory that it takes once it is read.
        seconds: how long pickling it took.
    """

    name: str
    start: Count = 0
    stop: Count = 0
    module: str = ""
    rows: Count | None = None
    of: Count = 0
    reason: str = ""
    uses: tuple[str, ...] = ()
    room: Count = 0
    seconds: Amount = 0.0


class NoCopy(Exception):
    """A value cannot be copied; the message says why."""


class _TooMuch(NoCopy):
    """There is no room, or no time, for all of a value."""


class Output:
    """Where pickles go: a file that refuses to grow beyond a size or after a time.

    Args:
        file: the file.
        limit: its bytes at most.
        deadline: until when, by the monotonic clock.
        memory: returns bytes of memory used besides, which count as well.
    """

    def __init__(
        self,
        file: IO[bytes],
        limit: int,
        deadline: float,
        memory: Callable[[], int] = lambda: 0,
    ) -> None:
        self.limit, self.deadline, self._memory = limit, deadline, memory
        self.numeric = set[int]()  # sizes of arrays of numbers, in which no token stands
        self.is_data = False  # what may hold tokens
        self._file, self._size, self._tail = file, 0, b""

    def write(self, data: Any) -> int:
        """Write bytes, in which no token may stand."""
        view = memoryview(data).cast("B")
        self.ask_for(view.nbytes + self._memory())
        plain = self.is_data or view.nbytes in self.numeric
        self.numeric.discard(view.nbytes)
        for start in range(0, 0 if plain else view.nbytes, _CHUNK):
            chunk = self._tail + bytes(view[start : start + _CHUNK])
            self.ask_for(0)
            if has_known_form(chunk):
                raise NoCopy(_HOLDS_SECRET)
            self._tail = chunk[-_LONGEST_FORM:]
        left = view
        while left:
            left = left[self._file.write(left) :]
        self._size += view.nbytes
        return view.nbytes

    def ask_for(self, size: int) -> None:
        """Refuse to go on if so many bytes do not fit, or no time is left."""
        if self._size + size > self.limit:
            raise _TooMuch(TOO_LARGE)
        if monotonic() > self.deadline:
            raise _TooMuch(TOO_SLOW)

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self._size

    def cut(self, size: int) -> None:
        """Forget what was written beyond a size."""
        self._file.seek(size)
        self._file.truncate()
        self._size, self._tail = size, b""


def copy_names(
    names: Iterable[str],
    namespace: Mapping[str, Any],
    output: Output,
    *,
    exact: bool,
) -> Iterator[Copy]:
    """Write copies of some names, and of those that their functions use; yield the result of each.

    With `exact`, only values of exactly known types are copied, which runs none of their code.
    """
    with _modules_by_value() as here:
        queue = [name for name in dict.fromkeys(names) if name in namespace]
        places = dict[int, Copy]()  # two names of one object stay so
        for name in queue:
            value = namespace[name]
            if type(value) is ModuleType:
                yield Copy(name=name, module=str(vars(value).get("__name__", "")))
            elif looks_secret(name, value):
                yield Copy(name=name, reason=IS_SECRET)
            else:
                done = places.get(id(value)) or _copy(value, output, here, exact=exact)
                places[id(value)] = done
                queue += [one for one in done.uses if one in namespace and one not in queue]
                yield done.replace(name=name)


def _copy(value: Any, output: Output, here: Collection[str], *, exact: bool) -> Copy:
    """Write a value, or as many of its first rows as there is room and time for."""
    began, start, (limit, deadline) = monotonic(), output.tell(), (output.limit, output.deadline)
    is_table = is_frame(value) or is_named(value, "pyarrow", "Table")
    output.is_data = is_table and TOKENS_STAY.get()
    has_rows = (is_frame(value) or is_array(value)) and value.shape
    rows = int(value.shape[0]) if has_rows else 0
    try:
        if rows:  # what is left then is for its first rows
            output.limit = start + (limit - start) // 2
            output.deadline = began + (deadline - began) * 2 / 3
        try:
            pickler, some = _pickle(value, output, here, exact=exact), None
        except _TooMuch:
            if rows < 2:
                raise
            output.cut(start)
            output.limit, output.deadline, some = limit, deadline, min(_HEAD, rows - 1)
            before = monotonic()
            _pickle(value[:some], output, here, exact=exact)
            room = (limit - start) / (output.tell() - start)
            room = min(room, (deadline - monotonic()) / (monotonic() - before))
            output.cut(start)
            some = max(1, min(rows - 1, int(some * room / 4)))
            pickler = _pickle(value[:some], output, here, exact=exact)
    except NoCopy as error:
        output.cut(start)
        return Copy(name="", reason=str(error))
    finally:
        output.limit, output.deadline = limit, deadline
    stop = output.tell()
    return Copy(
        name="",
        start=start,
        stop=stop,
        rows=some,
        of=rows,
        uses=tuple(pickler.uses),
        room=stop - start + _OVERHEAD * pickler.count,
        seconds=round(monotonic() - began, 3),
    )


def _pickle(value: Any, output: Output, here: Collection[str], *, exact: bool) -> Any:
    try:
        pickler = _pickler()(output, here, exact)
        pickler.dump(value)
    except NoCopy:
        raise
    except MemoryError:
        raise _TooMuch(TOO_LARGE) from None
    except Exception as error:  # whatever cannot be pickled raises
        words = (one_line(str(error)) or type(error).__name__)[:200].rstrip(".")
        raise NoCopy(f"it cannot be copied ({words})") from None
    return pickler


@functools.cache
def _pickler() -> Any:
    """Return the class of picklers; importing what it is derived from takes a while."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def __init__(self, output: Output, here: Collection[str], exact: bool) -> None:
            super().__init__(output)
            self._output, self._here, self._exact = output, here, exact
            self._states: dict[int, Any] = {}  # of objects; their names are no user's
            self._rows = set[int]()  # dicts of a list that have the same keys, which are columns
            self.uses: dict[str, None] = {}
            self.count = 0

        def persistent_id(self, obj: Any) -> None:  # called for each object before it is pickled
            self.count += 1
            kind = type(obj)
            if type(kind) is type and kind in _ATOMS:  # looking up another may run its code
                return
            if self._exact and not _is_exact(kind, self._here):
                raise NoCopy(f"objects of type {class_name(kind)} are not copied")
            # An array's bytes are copied only once there is room for them.
            sized = _module(kind).partition(".")[0] in _EXACT
            size = getattr(obj, "nbytes", 0) if sized else 0
            self._output.ask_for(size if type(size) is int else 0)
            rows = [one for one in obj if type(one) is dict] if kind is list else []
            texts = {tuple(one) if {*map(type, one)} == {str} else () for one in rows}
            self._rows |= {*map(id, rows)} if len(rows) > 1 and len(texts) == 1 else set()
            is_row = id(obj) in self._rows
            if not is_row and _names_a_secret(obj, self._states.get(id(obj)) is not obj):
                raise NoCopy(_HOLDS_SECRET)
            if is_array(obj) and obj.dtype.kind in "biufcmM":
                self._output.numeric.add(obj.nbytes)

        def reducer_override(self, obj: Any) -> Any:
            if type(obj) is types.FunctionType and obj.__globals__.get("__name__") == "__main__":
                self.uses |= dict.fromkeys(_globals_of(obj.__code__))
                return super().reducer_override(_without_globals(obj))
            if type(obj) is _CACHED and vars(obj).get("__module__") in self._here:
                known = {n: v for n, v in vars(obj).items() if n != "cache_parameters"}
                size = _CACHED.cache_info(obj).maxsize
                return _CACHED, (known.get("__wrapped__"), size, False, functools._CacheInfo), known
            if type(obj) is functools.cached_property:  # until Python 3.12 it holds a lock
                return type(obj), (obj.func,), {"attrname": obj.attrname, "__doc__": obj.__doc__}
            if is_connection(obj) and obj.row_factory is None and obj.text_factory is str:
                path = obj.execute("PRAGMA database_list").fetchone()[2]
                if not path:
                    setter = type(obj).deserialize
                    return type(obj), (":memory:",), obj.serialize(), None, None, setter
                if not obj.in_transaction:  # its file is in the folder as checked code has it
                    return type(obj), (path,)
            reduced = super().reducer_override(obj)
            if reduced is NotImplemented and not (
                issubclass(type(obj), CODE) or type(obj) in self.dispatch_table
            ):
                reduced = obj.__reduce_ex__(5)
                if isinstance(reduced, tuple) and len(reduced) > 2:
                    self._states[id(reduced[2])] = reduced[2]
            return reduced

    return Pickler


def _without_globals(function: types.FunctionType) -> types.FunctionType:
    space = {"__name__": "__main__", "__builtins__": function.__globals__.get("__builtins__")}
    code, name = function.__code__, function.__name__
    other = types.FunctionType(code, space, name, function.__defaults__, function.__closure__)
    for attribute in ("__kwdefaults__", "__qualname__", "__doc__", "__module__", "__annotations__"):
        setattr(other, attribute, getattr(function, attribute))
    other.__dict__.update(function.__dict__)
    return other


def _globals_of(code: types.CodeType) -> Iterator[str]:
    codes = [code]
    for one in codes:
        codes += [inner for inner in one.co_consts if isinstance(inner, types.CodeType)]
        yield from (step.argval for step in get_instructions(one) if step.opname in _GLOBALS)


def _module(kind: type) -> str:
    module = type.__dict__["__module__"].__get__(kind)
    # Cython's functions have a slot of that name.
    return "builtins" if type(module) is types.MemberDescriptorType else str(module)


def _is_exact(kind: type, here: Collection[str]) -> bool:
    """Return True if objects of a type are pickled by known code only."""
    if _module(type(kind)) in here:  # looking it up would run its code
        return False
    known = sys.stdlib_module_names | _EXACT
    reducer = copyreg.dispatch_table.get(kind, len)  # which a user may have registered
    modules = [*map(_module, mro(kind)), str(getattr(reducer, "__module__", "__main__"))]
    return all(
        one not in here and (one.partition(".")[0] in known or one.startswith("_cython_"))
        for one in modules
    )


def looks_secret(name: str, value: Any) -> bool:
    """Return True if a variable is a secret itself, by its name or its looks."""
    if issubclass(type(value), CODE) or is_frame(value) or is_array(value):
        return False
    if is_environment(value):
        return True
    short = type(value) is str and len(value) <= 200 and " " not in value.strip()
    return is_secret_name(name, value) or (short and is_secret(value))


def _names_a_secret(value: Any, is_users: bool) -> bool:
    """Return True if something in a value has a secret's name.

    Only users name secrets so (`is_users`): a library's ``token_pattern`` is none.
    """
    if is_environment(value):
        return True
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
        type(name) is str
        and type(one) in (str, bytes)
        and one
        and is_secret_name(name, one if is_users else 0)
        for name, one in held
    )


def _cell_contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def is_only_code(value: Any, seen: set[int] | None = None) -> bool:
    """Return True if a value is a function that takes nothing but code with it."""
    seen = set() if seen is None else seen
    if type(value) is ModuleType:
        return not lies_here(value)
    if type(value) is types.BuiltinFunctionType:
        return value.__self__ is None or type(value.__self__) is ModuleType
    if type(value) is not types.FunctionType:
        return False
    if value.__dict__ or value.__closure__ or value.__defaults__ or value.__kwdefaults__:
        return False
    seen.add(id(value))
    names = {*_globals_of(value.__code__)}
    used = [value.__globals__[name] for name in names if name in value.__globals__]
    return all(id(one) in seen or is_only_code(one, seen) for one in used)


@contextmanager
def _modules_by_value() -> Iterator[frozenset[str]]:
    """Pickle by value the modules in the working folder; yield the names of the notebook's own.

    The sandbox does not import from there. All others are imported.
    """
    import cloudpickle

    modules = [module for module in list(sys.modules.values()) if lies_here(module)]
    added = [m for m in modules if m.__name__ not in cloudpickle.list_registry_pickle_by_value()]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield frozenset({"__main__", *(module.__name__ for module in modules)})
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def lies_here(module: object) -> bool:
    """Return True if something is a module whose file lies beside the notebook."""
    names = vars(module) if type(module) is ModuleType else {}
    file, name = names.get("__file__"), names.get("__name__")
    if type(file) is not str or type(name) is not str or name == "__main__":
        return False
    top = os.path.join(working_folder(), name.partition(".")[0])
    return os.path.abspath(file).startswith((f"{top}.", f"{top}{os.sep}"))
