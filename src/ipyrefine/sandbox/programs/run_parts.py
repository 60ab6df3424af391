"""Load the user's variables and ``candidate.py``, and run what ``request.json`` asks for.

That is one of three: ``examples`` (each evaluated in the text's namespace), ``tests`` (pytest on
the request's modules) or ``cell`` (the text as the main script). Lines of JSON, each with the
request's token, go to the file that the request names: the result of each part, as plain data that
is compared outside, and last that the end was reached, which a process that was left early never
says.
"""

import _thread
import ast
import atexit
import builtins
import contextlib
import ctypes
import errno
import faulthandler
import functools
import gc
import importlib
import importlib.util
import inspect
import io
import itertools
import json
import linecache
import mmap
import numbers
import opcode
import os
import pickle
import re
import runpy
import signal
import site
import struct
import sys
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any

_TEXT = "candidate.py"
_VARIABLES, _COPIES, _LIBRARIES = "variables.json", "variables.pickle", "libraries.json"
_OUTPUTS, _ACCOUNT, _READING = (f"{one}-program.pyc" for one in ("capture", "account", "reading"))
_FOLDER = "folder.txt"  # the plan of the notebook's folder, where it is shown
_VALUE = "value of the last expression"  # a name that no text can have
_MAX_OUTPUT, _MAX_DATA = 20_000, 20_000  # characters of standard output, of a value as a literal
_MAX_REPR, _MAX_NAME, _ROWS = 2_000, 100, 5_000
_SIZED = (list, tuple, set, frozenset, dict, str, bytes)
_MOST = 20  # errors of a chain, paths, and frames
_NAP, _IDLE = 0.1, 0.05  # seconds; the share of them that a process which waits may run
_CASES = 1_000  # of a critic's test with parameters
_UNSAFE = 77  # the exit status of a process that cannot be forked
_LOADING = 3  # times the seconds of a test that the text and the tests may wait as they load
_BUILTINS = dict(vars(builtins))  # before the text can replace any
# What the sandbox refuses, or has no room for; and what libraries and databases make of it.
_REFUSED = (
    errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENETUNREACH, errno.EROFS, errno.EXDEV,
    errno.EBUSY, errno.ENOSPC, errno.EFBIG, errno.EOVERFLOW,
)  # fmt: skip
_COMPLAINT = re.compile(
    r"(?i)permission denied|read-?only (?:file system|database)|no space left|disk I/O error|"
    r"unable to open database|database (?:or disk )?is (?:full|locked)|malformed"
)
_RAISE = opcode.opmap["RAISE_VARARGS"]
_LOOPBACK = ("", "0.0.0.0", "127.0.0.1", "::", "::1", "localhost")
_AWAITS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

Request = dict[str, Any]


def main() -> None:
    """Do what the request asks for."""
    request = json.loads(_read_ours("request.json"))
    os.remove("request.json")
    sys.modules["__main__"] = types.ModuleType("__main__")  # the text finds no harness there
    request["report"] = os.open(request["report"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    request["process"] = os.getpid()
    _enter()
    dumps, write = json.dumps, os.write

    def write_event(**fields: Any) -> None:
        if os.getpid() == request["process"]:  # a fork of the text's has no say
            line = dumps({**fields, "token": request["token"]}).encode("ascii")
            write(request["report"], line + b"\n")

    _PARTS[request["kind"]](request, write_event)


def _read_ours(name: str) -> bytes:
    """Return a file beside this program; nothing where there is none."""
    with contextlib.suppress(FileNotFoundError), open(os.path.join(_START, name), "rb") as file:
        return file.read()
    return b""


# Processor time, and waiting


class _Clock:
    """A timer on this process's processor time, exact on a busy machine; wall time on Windows.

    It ends the process without the code or Python's lock. The sandbox's own limit counts children.
    """

    def __init__(self) -> None:
        self._timer, self._errors = ctypes.c_void_p(), os.fdopen(os.dup(2), "w")
        self._set: Any = None
        with contextlib.suppress(AttributeError, OSError, TypeError):
            system = ctypes.CDLL(None)
            event = struct.pack("Pii48x", 0, signal.SIGPROF, 0)
            clock = time.CLOCK_PROCESS_CPUTIME_ID
            # macOS and Windows have no such timers.
            if system.timer_create(clock, event, ctypes.byref(self._timer)) == 0:
                self._set = system.timer_settime

    def limit(self, seconds: float) -> float:
        """Send SIGPROF after some seconds, 0 for never; return what was left of those before."""
        if self._set:
            old = ctypes.create_string_buffer(32)
            new = struct.pack("4l", 0, 0, int(seconds), int(seconds % 1 * 1e9))
            self._set(self._timer, 0, new, old)
            _, _, whole, part = struct.unpack("4l", old.raw)
            return float(whole + part / 1e9)
        if hasattr(signal, "setitimer"):
            return signal.setitimer(signal.ITIMER_PROF, seconds)[0]
        faulthandler.dump_traceback_later(seconds, exit=True, file=self._errors)
        return 0.0


class _Watch:
    """Ends the process, and says where, once the text or a test has waited for some seconds.

    On a busy machine its own thread is late as well: what counts are its naps in which nothing ran.
    """

    def __init__(self, seconds: float, write: Callable[..., None]) -> None:
        self._seconds, self._write, self._waited = seconds, write, -_LOADING * seconds
        self._sleep, self._used = time.sleep, time.process_time  # a test may replace them
        self._main = threading.get_ident()
        if seconds:  # no thread that `threading` knows: a test may count those
            _thread.start_new_thread(self._run, ())

    def begin(self) -> None:
        self._waited = 0.0

    def end(self) -> None:
        self._seconds = float("inf")

    def _run(self) -> None:
        used = self._used()
        while self._waited < self._seconds:
            self._sleep(_NAP)
            before, used = used, self._used()
            self._waited += _NAP if used - before < _IDLE * _NAP else 0.0
        stack = traceback.walk_stack(sys._current_frames()[self._main])
        frames = [(frame.f_code, frame.f_lasti) for frame, _ in stack]
        self._write(waited=True, frames=_places(reversed(frames)))
        os._exit(1)


# The user's variables, and the text


def _load_variables(space: dict[str, Any]) -> dict[str, Any]:
    """Put the user's variables, and the notebook's modules, into a namespace; return them.

    Those that cannot be read here are left out, and standard error says which and why.
    """
    if not (ours := _read_ours(_VARIABLES)):
        return {}
    listed = json.loads(ours)
    for folder in listed["path"]:
        if os.path.basename(folder) in ("site-packages", "dist-packages"):
            site.addsitedir(folder)  # which reads its .pth files, as at the start of Python
    sys.path[:] = dict.fromkeys([*listed["path"], *sys.path])
    load, content = importlib.import_module, _open_copies(listed)
    loaded, read = {}, {}
    for name in [*listed["modules"], *listed["variables"]]:
        try:
            if name in listed["modules"]:
                loaded[name] = load(listed["modules"][name])
                continue
            start, stop = listed["variables"][name]
            if start not in read:  # two names of one object stay so
                read[start] = _Unpickler(io.BytesIO(content[start:stop]), space).load()
            loaded[name] = read[start]
        except Exception as error:
            why = f"the variable {name} cannot be read here ({type(error).__name__}: {error})"
            print(f"ipyrefine: {why}", file=sys.stderr)
    content.close()
    for path in listed["submodules"]:
        with contextlib.suppress(Exception):  # the code that uses it fails, and says so
            load(path)
    space.update(loaded)
    return loaded


def _open_copies(listed: dict[str, Any]) -> mmap.mmap:
    """Return the pickles: of a file here, or of one in memory that was passed on."""
    descriptor = listed["descriptor"]
    if descriptor is None:
        descriptor = os.open(os.path.join(_START, _COPIES), os.O_RDONLY)
    if os.fstat(descriptor).st_size == 0:
        return mmap.mmap(-1, 1)
    return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)


class _Unpickler(pickle.Unpickler):
    """Reads a copy; the notebook's functions get a namespace in common with the text."""

    def __init__(self, file: Any, space: dict[str, Any]) -> None:
        super().__init__(file)
        self._space = space

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if name != "_make_function" or not module.startswith("cloudpickle"):
            return found

        def make(code: Any, space: dict[str, Any], *more: Any) -> Any:
            is_notebooks = space.get("__name__") == "__main__"
            return found(code, self._space if is_notebooks else space, *more)

        return make


def _load_text(aliases: Callable[[], set[str]] = set) -> types.ModuleType:
    """Load the variables and the text as a module, with its last value as a cell's: ``answer``.

    It also has the names that `aliases` returns once the folders to import from are known.
    """
    module = types.ModuleType("candidate")
    _load_variables(vars(module))
    source = _read_text()
    for name in {"candidate", *aliases()}:  # where dataclasses and pickle look for it
        sys.modules[name] = module
    code = compile(source, _TEXT, "exec", dont_inherit=True)
    with contextlib.suppress(RecursionError, MemoryError):  # some texts are too deep for a tree
        code = compile(_keep_value(ast.parse(source, _TEXT)), _TEXT, "exec", dont_inherit=True)
    space = vars(module)
    exec(code, space)
    if (value := space.pop(_VALUE, None)) is not None:
        given = {"answer": value, "_": value, "Out": [value]}
        space |= {name: one for name, one in given.items() if not callable(space.get(name))}
    return module


def _read_text() -> bytes:
    source = _read_ours(_TEXT)
    lines = source.decode("utf-8", "replace").splitlines(keepends=True)
    linecache.cache[_TEXT] = len(source), None, lines, _TEXT
    return source


def _error_text(error: BaseException, limit: int | None = None) -> str:
    text = _message(error)[:limit]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _message(error: BaseException) -> str:
    with contextlib.suppress(BaseException):
        if isinstance(error, SyntaxError) and error.filename == _TEXT:
            return str(error.msg)  # without the place, as `_line` gives it
        return str(error)
    return ""


def _lines(error: BaseException) -> list[int]:
    """Return the lines of the text that an exception went through."""
    frames = traceback.walk_tb(error.__traceback__)
    return [line for frame, line in frames if frame.f_code.co_filename == _TEXT]


def _line(error: BaseException) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == _TEXT:
        return error.lineno
    return next(reversed(_lines(error)), None)


def _raised(error: BaseException) -> dict[str, Any]:
    return {"raised": type(error).__name__[:_MAX_NAME], "line": _line(error)}


# Examples


def _run_examples(request: Request, write_event: Callable[..., None]) -> None:
    loaded = []
    clock, watch = _Clock(), _Watch(request.get("waits", 0.0), write_event)
    error = _catch(lambda: loaded.append(_load_text()))
    write_event(event="loaded", **error)
    for example in [] if error else request["examples"]:
        clock.limit(request["seconds"])
        watch.begin()
        outcome = _evaluate_example(example, dict(vars(loaded[0])))
        write_event(event="done", index=example["index"], **outcome)
    os._exit(0)  # threads of the text must not keep the process alive


def _catch(action: Callable[[], None]) -> dict[str, Any]:
    _seen.clear()
    try:
        action()
    except BaseException as error:  # SystemExit is an outcome too
        names = [kind.__name__[:_MAX_NAME] for kind in type(error).__mro__[:-1]]
        said = {"error": _error_text(error, _MAX_REPR), "line": _line(error), "raised": names}
        return {**said, "tried": _tried(error)}
    return {}


class _Stdout(io.StringIO):
    """Standard output that keeps only its start."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, _MAX_OUTPUT - self.tell())])
        return len(text)


def _evaluate_example(example: dict[str, Any], space: dict[str, Any]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"steps": []}
    stdout = _Stdout()

    def steps() -> None:
        with contextlib.redirect_stdout(_Stdout()):
            for node in ast.parse(example["setup"]).body:
                value = _evaluate([node], space)
                outcome["steps"].append("" if value is None else _data(value))
        with contextlib.redirect_stdout(stdout):
            value = _evaluate(ast.parse(example["source"].strip()).body, space)
            value = bool(value) if example["holds"] else value
            outcome.update(_describe(value))
        if example["expected"] is not None:
            body = ast.parse(example["expected"].strip()).body
            expected = _evaluate(body, {**space, **_BUILTINS})
            outcome["expected"] = _describe(expected)
            outcome["equal"] = bool(value == expected)

    error = _catch(steps)
    return {"tried": _tried(), **outcome, **error, "stdout": stdout.getvalue()}


def _evaluate(body: list[ast.stmt], space: dict[str, Any]) -> Any:
    """Run statements as at a prompt, but return the last value instead of printing it."""
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    for node in body:  # their values are printed, unless None
        exec(compile(ast.Interactive([node]), "example", "single", dont_inherit=True), space)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "example", "eval", dont_inherit=True), space)


def _describe(value: Any) -> dict[str, Any]:
    """Return a value for people, and as a literal if it consists of plain data only."""
    description = {
        "repr": repr(value)[:_MAX_REPR],
        "none": value is None,
        "type": type(value).__name__,
    }
    return {**description, "data": _data(value), "shape": _shape(value)}


def _shape(value: Any) -> dict[str, Any]:
    """Return the type and size of a value, and the types of its items."""
    kind = type(value)
    shape: dict[str, Any] = {"type": kind.__name__[:_MAX_NAME]}
    with contextlib.suppress(Exception):
        if kind in _SIZED:
            parts = [value.keys(), value.values()] if kind is dict else [value]
            held = [{type(x).__name__ for x in itertools.islice(p, _ROWS)} for p in parts]
            inner = [] if kind in (str, bytes) else [" | ".join(sorted(x)) for x in held if x]
            shape |= {"size": [len(value)], "items": [x[:_MAX_NAME] for x in inner]}
        elif kind.__module__.partition(".")[0] in ("numpy", "pandas", "polars"):
            shape["size"] = [int(length) for length in value.shape]
    return shape


def _compared(error: BaseException) -> list[Any]:
    """Return the two values that a library's function compared, as `assert_frame_equal` does."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        library = str(frame.f_globals.get("__name__")).partition(".")[0]
        if library in ("numpy", "pandas", "polars") and "assert" in frame.f_code.co_name:
            return [*frame.f_locals.values()][:2]
    return []


def _data(value: Any) -> str:
    """Return plain data as a literal; empty for anything else, and for what is too long."""
    with contextlib.suppress(ValueError, TypeError, OverflowError, RecursionError):
        if len(data := _literal(value)) <= _MAX_DATA:
            return data
    return ""


def _literal(value: Any) -> str:
    """Return plain data as Python; a subclass counts as its base class, whatever it claims.

    Raises:
        TypeError: it contains something that is not plain data.
    """
    for kind, write in _WRITERS.items():
        if isinstance(value, kind) and kind in type(value).__mro__:
            return write(value)
    if value is None or value is ...:
        return "None" if value is None else "..."
    # Numbers of libraries, also as arrays without dimensions.
    if getattr(value, "shape", None) == () and hasattr(value, "tolist"):
        return _literal(value.tolist())
    if isinstance(value, numbers.Number):
        return _literal(int(value) if value == int(value) else float(value))  # type: ignore[call-overload,arg-type]
    raise TypeError(type(value))


def _join(kind: type, value: Any) -> str:
    items = map(_literal, kind.__iter__(value))  # type: ignore[attr-defined]
    return ", ".join(sorted(items) if kind in (set, frozenset) else items)


def _write_dict(value: Any) -> str:
    return ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in dict.items(value))


_WRITERS: dict[type, Callable[[Any], str]] = {
    **{kind: kind.__repr__ for kind in (bool, int, float, complex, str, bytes)},
    list: lambda value: f"[{_join(list, value)}]",
    tuple: lambda value: f"({_join(tuple, value)}{',' * (tuple.__len__(value) == 1)})",
    set: lambda value: f"{{{_join(set, value)}}}" if set.__len__(value) else "set()",
    frozenset: lambda value: _literal(set(frozenset.__iter__(value))),
    dict: lambda value: f"{{{_write_dict(value)}}}",
}


# Tests


def _run_tests(request: Request, write_event: Callable[..., None]) -> None:
    """Run modules of tests, on request apart: on Linux each in a forked child that has the text.

    What a test replaces, ends or reports is its own affair. A text that has started threads
    cannot be forked. Those of its libraries are there before it once these are imported here; where
    it has more, each child loads it.
    """
    sources = {name: _read_ours(name) for name in request["modules"]}
    import pytest

    hook = pytest.hookimpl(wrapper=True, tryfirst=True)
    hook(_Reporter.pytest_runtest_makereport)
    hook(_Reporter.pytest_make_collect_report)

    def load() -> dict[str, Any]:
        return _load_for_tests(request, write_event, sources)

    def test(names: dict[str, Any], name: str) -> None:
        names, write = names or load(), functools.partial(write_event, module=name)
        path, ini_path = (os.path.join(_START, one) for one in (name, "pytest.ini"))
        with open(path, "wb") as file:  # the text, or another test, may have written to it
            file.write(sources[name])
        with open(ini_path, "w", encoding="utf-8") as ini:
            ini.write(f"[pytest]\npython_functions = test* {' '.join(request['functions'])}\n")
            ini.write(f"python_classes = Test {' '.join(request['names'])}\n")
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        options = ["-q", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--noconftest"]
        options += ["--import-mode=importlib", "-c", ini_path, f"--rootdir={_START}"]
        options += ["--continue-on-collection-errors", *["--runxfail"] * request["apart"]]
        pytest.main([*options, path], plugins=[_Reporter(request, write, names)])

    def test_all(names: dict[str, Any], *, forks: bool = True) -> None:
        for name in sources:
            write_event(module=name)
            lines, status = list[bytes](), 0
            if forks:
                lines, status = _run_in_child(functools.partial(test, names, name), request)
            else:
                test(names, name)
            for line in lines:
                with contextlib.suppress(ValueError, TypeError, RecursionError):
                    write_event(**{**json.loads(line), "module": name})
            write_event(module=name, status=status)

    if not request["apart"] or sys.platform != "linux":
        test_all(load(), forks=False)
        os._exit(0)  # threads of the text must not keep the process alive
    status = _UNSAFE
    for _ in range(2):
        threads, loader = _count_threads(), os.fork()
        if loader == 0:
            request["process"] = os.getpid()
            loaded = load()
            if _count_threads() > threads + 1:  # that of the watch
                with open(os.path.join(_START, _LIBRARIES), "w", encoding="utf-8") as listed:
                    json.dump([*_libraries()], listed)
                os._exit(_UNSAFE)
            gc.freeze()
            test_all(loaded)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(loader, 0)[1])
        if status != _UNSAFE:
            break
        for name in json.loads(_read_ours(_LIBRARIES)):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    if status == _UNSAFE:
        test_all({})
    elif status < 0:
        os.kill(os.getpid(), -status)
    os._exit(max(0, status) % _UNSAFE)


def _count_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _libraries() -> Iterable[str]:
    for name, module in sys.modules.items():
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.startswith(_START):
            yield name


def _run_in_child(action: Callable[[], None], request: Request) -> tuple[list[bytes], int]:
    """Do something in a forked child; return the lines of its own report, and its exit status."""
    import tempfile

    ignored = warnings.catch_warnings(action="ignore", category=DeprecationWarning)
    with tempfile.TemporaryFile(dir=_START) as report, ignored:
        child = os.fork()  # Python 3.12 warns of the watch's thread
        if child == 0:
            try:
                os.setpgid(0, 0)
                os.dup2(report.fileno(), request["report"])
                request.update(process=os.getpid(), token="")
                action()
            finally:
                os._exit(0)
        while os.WIFSTOPPED(status := os.waitpid(child, os.WUNTRACED)[1]):
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGCONT)  # nobody else would
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        report.seek(0)
        return report.read().splitlines(), os.waitstatus_to_exitcode(status)


def _load_for_tests(
    request: Request, write_event: Callable[..., None], sources: dict[str, bytes]
) -> dict[str, Any]:
    """Load the text; return the names that tests find, as those that were written in a notebook."""
    import pytest

    watch = _Watch(request.get("waits", 0.0), write_event)
    try:
        text = _load_text(lambda: set().union(*map(_missing_modules, sources.values())))
    except BaseException as error:  # SystemExit is an outcome too
        place = f" (line {line})" if (line := _line(error)) else ""
        fault = f"The code does not load: {_error_text(error)}{place}"
        write_event(fault=fault, tried=_tried(error), **_raised(error))
        os._exit(1)
    watch.end()
    if any(b"hypothesis" in source for source in sources.values()):
        _settle_hypothesis()
    names = {**_BUILTINS, "pytest": pytest}
    if any(re.search(rb"\bbefore\b", source) for source in sources.values()):
        names["before"] = types.SimpleNamespace(**_load_variables({}))  # read once more
    return names | {name: one for name, one in vars(text).items() if name[:2] != "__"}


def _settle_hypothesis() -> None:
    """Have Hypothesis try the same inputs in each run, however slow the machine is."""
    with contextlib.suppress(ImportError):
        from hypothesis import settings

        settings.register_profile("sandbox", deadline=None, derandomize=True, database=None)
        settings.load_profile("sandbox")


class _Reporter:
    """A pytest plugin that reports the tests and their results; it decides nothing."""

    def __init__(
        self, request: Request, write: Callable[..., None], builtins: dict[str, Any]
    ) -> None:
        self._seconds, self._names = request["seconds"], set(request["names"])
        self._write, self._builtins, self._end = write, builtins, ""
        self._clock, self._watch = _Clock(), _Watch(request.get("waits", 0.0), write)
        self._apart, self._used = request["apart"], time.process_time
        self._folder, self._compared = os.getcwd(), list[Any]()
        self._clock.limit(self._seconds)

    def pytest_sessionstart(self, session: Any) -> None:
        """Have each module of tests find the text's names as if they were built into Python."""

        def create_module(spec: Any) -> types.ModuleType:
            module = types.ModuleType(spec.name)
            vars(module)["__builtins__"] = {**self._builtins}
            return module

        session.config.pluginmanager.rewrite_hook.create_module = create_module

    def pytest_assertrepr_compare(self, left: Any, right: Any) -> None:
        """Note the values that an assertion compares in vain; pytest words it."""
        self._compared = [_shape(left), _shape(right)]

    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        """Report that tests themselves do not load, or are skipped as a whole."""
        report = yield
        if report.failed:
            error = report.call.excinfo.value
            if type(error).__name__ == "CollectError":
                error = error.__cause__ or error
            why = f"The tests do not load: {self._plain(_last_line(report.longreprtext))}"
            module = report.nodeid.partition("::")[0]
            self._write(fault=why, module=module, **_describe_error(error))
        elif report.skipped:
            why = str(report.longrepr[2]).removeprefix("Skipped: ")
            self._write(test=_name(report.nodeid), outcome="skipped", why=why)
        return report

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out tests that the text brought along."""
        items[:] = [i for i in items if re.split(r"::|\[", _name(i.nodeid))[0] in self._names]
        most = _CASES if self._apart else len(items)
        self._write(collected=[_name(item.nodeid) for item in items[: most + 1]])
        del items[most:]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._clock.limit(self._seconds)
        self._watch.begin()
        self._compared = []
        _seen.clear()

    def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool | None:
        """Run a test that is a coroutine function; pytest alone cannot."""
        import asyncio
        import inspect

        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        names = pyfuncitem._fixtureinfo.argnames
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
        return True

    def pytest_runtest_makereport(self, item: Any, call: Any) -> Generator[None, Any, Any]:
        report = yield
        crash = getattr(report.longrepr, "reprcrash", None)
        outcome, why = report.outcome, crash.message if crash else _last_line(report.longreprtext)
        why = why.replace("Use -v to get more diff", "").strip()
        if isinstance(report.longrepr, tuple):  # of a skip: file, line and reason
            why = str(report.longrepr[2]).removeprefix("Skipped: ")
        if report.when == "call" or outcome != "passed":
            why = getattr(report, "wasxfail", "") or why
            error = call.excinfo and call.excinfo.value
            if missing := getattr(error, "argname", ""):
                why = f"There is no fixture {missing!r}."
            said = _describe_error(error) if outcome == "failed" and error else {}
            if outcome == "passed" and "closed" in _seen:
                outcome, why, said = (
                    "failed",
                    "It uses a file that it cannot read.",
                    {"tried": _tried()},
                )
            if isinstance(error, AssertionError):
                said["compared"] = self._compared or [*map(_shape, _compared(error))]
            test, line = _name(report.nodeid), _test_line(report)
            self._write(test=test, outcome=outcome, why=self._plain(why), line=line, **said)
        if self._apart and self._used() > 2 * self._seconds:
            item.session.shouldfail = "no time is left for further cases"
        return report

    def pytest_keyboard_interrupt(self, excinfo: Any) -> None:
        self._end = _error_text(excinfo.value)

    def pytest_sessionfinish(self) -> None:
        self._clock.limit(0)
        self._watch.end()
        self._write(end=self._end)

    def _plain(self, text: str) -> str:
        """Return words without the folders of this machine."""
        folders = {self._folder, _START, *filter(None, sys.path)}
        for folder in sorted(folders, key=len, reverse=True):
            text = text.replace(folder + os.sep, "")
        return text


def _describe_error(error: BaseException) -> dict[str, Any]:
    lacks = None
    if isinstance(error, ImportError):
        found = re.match(r"cannot import name '(\w+)'", _message(error))
        lacks = found[1] if found else error.name
    elif isinstance(error, NameError | AttributeError):
        owner = getattr(error, "obj", None)
        kind = owner if isinstance(owner, type) else type(owner)
        named = isinstance(owner, types.ModuleType) or kind.__module__ == _TEXT.removesuffix(".py")
        lacks = error.name if named or isinstance(error, NameError) else None
    elif isinstance(error, FileNotFoundError):
        lacks = os.path.basename(next(iter(_paths(error)), ""))
    return {
        "raised": type(error).__name__[:_MAX_NAME],
        "origin": type(error).__module__.partition(".")[0][:_MAX_NAME],
        "lacks": str(lacks or "")[:_MAX_NAME],
        "frames": _places(_steps(error))[-_MOST:],
        "tried": _tried(error),
    }


def _steps(error: BaseException) -> list[tuple[types.CodeType, int]]:
    steps, trace = [], error.__traceback__
    while trace:
        steps.append((trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    return steps


def _places(frames: Iterable[tuple[types.CodeType, int]]) -> list[list[Any]]:
    """Return where frames are in the text and the tests: a file, ranges of lines and of columns."""
    found = []
    for code, instruction in frames:
        name = os.path.basename(code.co_filename)
        if name == _TEXT or name.startswith("test_"):
            places = itertools.islice(code.co_positions(), instruction // 2, None)
            found.append([name, *next(places, ())])
    return found


def _missing_modules(tests: bytes) -> set[str]:
    found = set()
    with contextlib.suppress(SyntaxError, ValueError):  # pytest says so
        for node in ast.walk(ast.parse(tests)):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    missing = found & {"__main__"}
    for name in found - missing:
        parts = name.split(".")
        spec = importlib.util.find_spec(parts[0])
        beside = spec is not None and str(spec.origin).startswith(os.getcwd() + os.sep)
        if spec is None or (beside and parts[0].encode() not in _read_ours(_TEXT)):
            missing |= {".".join(parts[: end + 1]) for end in range(len(parts))}
    return missing


def _name(nodeid: str) -> str:
    return nodeid.partition("::")[2] or nodeid


def _last_line(text: str) -> str:
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def _test_line(report: Any) -> int | None:
    """Return the last line of the tests that the failure went through."""
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
    places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None)]
    lines = [place.lineno for place in places if os.path.basename(place.path).startswith("test_")]
    return lines[-1] if lines else None


# The cell


def _run_cell(request: Request, write_event: Callable[..., None]) -> None:
    """Run the text as the main script.

    Reported are which of the request's names it defined, what names
    hold that it binds or changed, what it did to data, its last value and its first figure, and how
    it and its threads ended. The packages that it imports are imported before its time starts to
    count.
    """

    def report_failure(failure: Any) -> None:
        error = failure.exc_value
        if not isinstance(error, SystemExit):  # it ends a thread, and nothing else
            write_event(failure=_error_text(error), **_raised(error))

    # The first handler is called last: after the threads, and the text's own handlers.
    atexit.register(write_event, end=True)
    threading.excepthook = report_failure
    programs = (os.path.join(_START, one) for one in (_OUTPUTS, _READING, _ACCOUNT))
    outputs, reading, account_of = map(runpy.run_path, programs)
    clock = _Clock()
    watch = _Watch(request["waits"], write_event)
    space, value = vars(sys.modules["__main__"]), None
    ours = set(space)
    variables, source = _load_variables(space), _read_text()
    account = account_of["Account"](variables, outputs, clock.limit)
    shown = outputs["show"](variables)
    earlier = {name: reading["read"](one) for name, one in variables.items()}
    shows = _Shows()
    vars(builtins).update(display=shows.display, print=shows.print)
    for module, names in request["imports"]:
        with contextlib.suppress(BaseException):  # it fails again where the text imports it
            __import__(module, fromlist=names)
    if hasattr(signal, "setitimer"):
        clock.limit(request["seconds"])
    watch.begin()
    reached = [*_seen.get("written", ()), *_seen.get("hosts", ())]
    states = _random_states()
    try:
        after = _execute(source, request["nested"], account)
        value = after.pop(_VALUE, None)
        write_event(defined=[name for name in request["names"] if name in after])
        own = {n: v for n, v in after.items() if n in variables or n not in ours}
        lasting = {*variables, *request["binds"]}  # what a loop leaves is no result
        held = outputs["show"]({n: v for n, v in own.items() if n in lasting}).items()
        changes = [(call, shown.get(call, ""), now) for call, now in held if now != shown.get(call)]
        write_event(changes=changes[:_MOST])
        odd = reached == [*_seen.get("written", ()), *_seen.get("hosts", ())]
        write_event(effects=account.report(own, value, odd=odd))
        write_event(held=reading["changed"](earlier, after, request["binds"], value))
    except SystemExit as error:
        lines = _lines(error)
        if error.code or not _is_end(source, lines):
            status = error.code if isinstance(error.code, int) else int(bool(error.code))
            write_event(exit=status, **_raised(error))
            sys.exit(1)
    except Exception as error:
        write_event(tried=_tried(error), **_raised(error))
        if request["looks"]:
            left = {n: v for n, v in space.items() if n in variables or n not in ours}
            write_event(effects=account.report(left, None, odd=False))
        # That it left a coroutine is said after the error, and would be taken for a part of it.
        warnings.simplefilter("ignore")
        raise
    write_event(tried=_tried(), draws=b"random" in source or states != _random_states())
    shown, printed = shows.last()
    write_event(outputs=outputs["collect"](shown if value is None else value, printed, clock.limit))


def _random_states() -> list[bytes]:
    calls = {"random": "getstate", "numpy.random": "get_state"}
    known = calls.keys() & sys.modules.keys()
    return [pickle.dumps(getattr(sys.modules[name], calls[name])()) for name in sorted(known)]


def _execute(source: bytes, nested: str, account: Any) -> dict[str, Any]:
    """Run the text as a cell; return the main module's names, with its last expression's value.

    As in a notebook, a semicolon at its end keeps that back, and an event loop is running.
    """
    import asyncio

    space = vars(sys.modules["__main__"])
    space.update(__file__=_TEXT)
    sys.argv[:] = [_TEXT]
    code = compile(source, _TEXT, "exec", _AWAITS, dont_inherit=True)
    for watched in (False, True):
        with contextlib.suppress(*([Exception] if watched else [RecursionError, MemoryError])):
            tree = ast.parse(source, _TEXT)  # which some texts are too deep for
            if watched:
                account.watch(tree, _TEXT)
            tree = tree if source.rstrip().endswith(b";") else _keep_value(tree)
            code = compile(tree, _TEXT, "exec", _AWAITS, dont_inherit=True)

    async def run() -> None:
        result = eval(code, space)
        if code.co_flags & inspect.CO_COROUTINE:
            await result

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # tasks that are left, say nothing
    asyncio.set_event_loop(loop)
    if nested:
        with contextlib.suppress(ImportError):
            importlib.import_module(nested).apply(loop)
    loop.run_until_complete(run())
    return space.copy()


def _keep_value(tree: ast.Module) -> ast.Module:
    last = tree.body[-1] if tree.body else None
    if isinstance(last, ast.Expr):
        name = ast.copy_location(ast.Name(_VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([name], last.value), last)
    return tree


def _is_end(source: bytes, lines: list[int]) -> bool:
    """Return True if an exit on some lines is a script's last statement: ``sys.exit(main())``."""
    last = ast.parse(source).body[-1]
    if isinstance(last, ast.If):  # __name__ == "__main__"
        last = last.body[-1]
    return isinstance(last, ast.Expr | ast.Raise) and len(lines) == 1 and lines[0] >= last.lineno


class _Shows:
    """Prints, and displays as IPython does without a front-end; knows what was shown last."""

    _shown = None
    _start = _end = 0

    def print(self, *values: Any, **options: Any) -> None:
        start = _written()
        _print(*values, **options)
        end = _written()
        if end > start + 1:  # it may go elsewhere, or be an empty line
            self._start, self._shown = start, None
        self._end = end if end > start else self._end

    def display(self, *objects: Any, **_: Any) -> None:
        for one in objects:
            self.print(repr(one))
            self._shown = one

    def last(self) -> tuple[Any, str]:
        """Return the object that was displayed last, and what was printed last, from its line on.

        What was written otherwise counts as one print.
        """
        end = _written()
        os.lseek(1, 0, os.SEEK_SET)
        text = os.read(1, end)
        start = self._start if end == self._end else self._end
        last = text[text.rfind(b"\n", 0, start) + 1 :].decode("utf-8", "replace")
        return self._shown if end == self._end else None, last


def _written() -> int:
    if sys.__stdout__:
        sys.__stdout__.flush()
    return os.lseek(1, 0, os.SEEK_CUR)


# What is not here

_START = os.getcwd()
_print = print
_open, _lstat, _exists = os.open, os.lstat, functools.partial(os.access, mode=os.F_OK)
_PYTHON = (*(f"{one}{os.sep}" for one in (sys.prefix, sys.base_prefix)), "/usr/", "/dev/", "/proc/")
_PATHS = ("closed", "lacking", "large")
_LARGE = 64 * 2**20  # bytes of a file that can only be read; links lead to such files
_folder: dict[str, Any] = {}  # the plan of the notebook's folder
_seen: dict[str, dict[str, None]] = {}  # what the text tried to reach: some errors do not say it


def _enter() -> None:
    """Go where the notebook works, and have paths be noted from now on."""
    sys.dont_write_bytecode = True
    if plan := _read_ours(_FOLDER):
        _folder.update(ast.literal_eval(plan.decode()))
        os.chdir(os.path.join(_folder["place"], _folder["here"]))
        sys.path.insert(0, os.getcwd())
        os.environ["HOME"] = os.environ["USERPROFILE"] = _folder["home"]
    for call in (os.stat, os.lstat, os.access):  # which no event tells of
        noting = _noting(call)
        setattr(os, call.__name__, noting)
        for known in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
            known |= {noting} if call in known else set()
    sys.addaudithook(_note)


def _noting(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def noting(path: Any, *args: Any, dir_fd: Any = None, **options: Any) -> Any:
        if dir_fd is None:
            _note_path(path)
        return call(path, *args, dir_fd=dir_fd, **options)

    return noting


def _note(event: str, args: tuple[Any, ...]) -> None:
    match event, args:
        case "open", (path, _, int(flags)):
            _note_path(path, "written" if flags & (os.O_WRONLY | os.O_RDWR) else "opened")
        case (("os.listdir" | "os.scandir" | "os.chdir" | "sqlite3.connect"), (path, *_)):
            _note_path("." if path is None else path, "opened")
        case (("os.mkdir" | "os.rename" | "os.truncate"), (path, *_)):
            _note_path(path, "written")
        case (("os.remove" | "os.rmdir"), (path, *_)):
            _note_path(path, "deleted")
        case "socket.connect", (_, (host, *_)):
            _seen.setdefault("hosts", {})[str(host)] = None
        case "socket.getaddrinfo", (host, *_):
            _seen.setdefault("hosts", {})[os.fsdecode(host or "")] = None
        case "builtins.input", _:
            _seen["input"] = {}


def _note_path(path: Any, how: str = "") -> None:
    """Note what is written, and what cannot be read here, though it may be in the notebook."""
    if isinstance(path, int) or "quiet" in _seen:
        return
    with contextlib.suppress(Exception):  # of a path that is none
        path = os.fsdecode(path)
        full = os.path.abspath(path)
        if how in ("written", "deleted"):
            _seen.setdefault("written", {})[path] = None
            full = full if _exists(full) else os.path.dirname(full)
        real = full.removeprefix(_folder.get("base", ""))
        if inside := _below(real, _folder.get("root", "")):
            below = os.path.relpath(inside, _folder["here"])
            if _is_closed(inside, how):
                _seen.setdefault("closed", {})[below] = None
            elif how == "written" and (os.path.islink(full) or _size(full) > _LARGE):
                _seen.setdefault("large", {})[below] = None
        elif not (
            full.startswith(_PYTHON)
            or (_can_read(full) if how else _exists(full))
            or _imports(how)  # last, as it reads the stack
        ):
            if below := _below(real, _START):  # which is its home as well
                real = below if not _folder and not os.path.isabs(path) else f"~{os.sep}{below}"
            _seen.setdefault("lacking", {})[real] = None


def _imports(how: str) -> bool:
    """Return True if Python's import is at work, or a library looks around as it is imported."""
    stack = itertools.islice(traceback.walk_stack(sys._getframe(3)), 1 if how else None)
    return any("importlib" in frame.f_code.co_filename for frame, _ in stack)


def _size(path: str) -> int:
    return _lstat(path).st_size if _exists(path) else 0


def _below(path: str, folder: str) -> str:
    """Return a path from a folder that it is in, or is; empty for any other."""
    inside = folder and f"{path}{os.sep}".startswith(f"{folder}{os.sep}")
    return os.path.relpath(path, folder) if inside else ""


def _is_closed(path: str, how: str) -> bool:
    closed, folder = _folder["closed"], path
    while folder := os.path.dirname(folder):
        if closed.get(folder) in ("unread", "link"):
            return True
    return bool(how) and closed.get(path, "folder") != "folder"


def _can_read(path: str) -> bool:
    _seen["quiet"] = {}
    try:
        os.close(_open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    finally:
        del _seen["quiet"]
    return True


def _tried(error: BaseException | None = None) -> dict[str, Any]:
    """Return what was tried, and what an exception, or one that led to it, wanted."""
    for one in _chain(error):
        for path in _paths(one):
            _note_path(path, "written" if path in _seen.get("written", ()) else "opened")
    hosts, *paths = ([*_seen.get(kind, ())] for kind in ("hosts", *_PATHS))
    tried: dict[str, Any] = {
        "input": "input" in _seen or "/dev/tty" in _seen.get("written", ()),  # for a password
        "host": next((host for host in hosts[::-1] if host not in _LOOPBACK), ""),
        **{kind: some[-_MOST:] for kind, some in zip(_PATHS, paths, strict=True)},
        "refused": False,
    }
    for one in _chain(error):
        for code, instruction in _steps(one)[-1:]:
            called = code.co_code[instruction] != _RAISE  # a statement is the code's own doing
            refused = getattr(one, "errno", None) in _REFUSED or _COMPLAINT.search(
                _message(one)[:2_000]
            )
            tried["refused"] |= called and bool(refused)
        match one:
            case ModuleNotFoundError(name=str(name)):
                tried["module"] = name.partition(".")[0]
            case KeyError(args=(name,)) if any(
                frame.f_globals is vars(os) for frame, _ in traceback.walk_tb(one.__traceback__)
            ):
                tried["variable"] = str(name)
            case object(cmd=command, returncode=_):  # a CalledProcessError
                words = command if isinstance(command, list) else str(command).split()
                tried["command"] = str(*words[:1])
    return tried


def _chain(error: BaseException | None) -> list[BaseException]:
    chain: list[BaseException] = []
    while error is not None and error not in chain and len(chain) < _MOST:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return chain


def _paths(error: BaseException) -> list[str]:
    """Return the paths that an error is about; some libraries name them in its message only."""
    named = [getattr(error, name, None) for name in ("filename", "filename2")]
    paths = [os.fsdecode(one) for one in named if isinstance(one, (str, bytes, os.PathLike))]
    words = [word.strip(".,:;()") for word in re.split(r"[\s'\"]+", _message(error)[:2_000])]
    # A division in an assertion's message is none.
    words = [word for word in words if word.strip("./") and ("." in word or "/" in word)]
    return (paths or words)[:_MOST]


_PARTS = {"examples": _run_examples, "tests": _run_tests, "cell": _run_cell}

if __name__ == "__main__":
    main()
