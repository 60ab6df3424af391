"""The process that sandboxed runs are forked from: ``warm_server.py SOCKET LIMITER``.

It loads packages and hides them: a run finds what it imports loaded already, and no more. As a fork
takes twice as long where large ones are loaded, these are in a second process, at `SOCKET-large`,
for the runs that name one. A request has the argument of the supervisor, the working folder, the
environment and the numbers of the descriptors that come along, the last of which stays open while
the run goes on. The answer is the run's process id.
"""

import array
import ast
import atexit
import ctypes  # noqa: F401
import fcntl
import gc
import importlib
import importlib.machinery
import importlib.util
import os
import random  # noqa: F401 - each fork seeds it
import resource  # noqa: F401 - the supervisor needs it
import select
import signal
import socket
import sys
import threading
import types
from contextlib import suppress
from typing import Any

# What each needs of those before it.
PACKAGES: dict[str, tuple[str, ...]] = {"asyncio": (), "pkgutil": (), "pytest": ()}
LARGE = {"numpy": (), "pandas": ("numpy",), "matplotlib.pyplot": ("numpy",)}
_HIGH = 500  # above every descriptor that a run is given


confine: Any = None  # the module of the supervisor


class Become(BaseException):
    """Raised where a run's process would become Python."""


class Hidden:
    """Finds modules that are loaded already; with a package all that its import loads."""

    def __init__(self, packages: dict[str, tuple[str, ...]]) -> None:
        self._sets: dict[str, dict[str, types.ModuleType]] = {}
        self._modules: dict[str, types.ModuleType] = {}
        visible = set(sys.modules)
        for package, needs in packages.items():
            before = set(sys.modules)
            importlib.import_module(package)
            if package == "pytest":  # with what each of its sessions loads
                for one in sys.modules["_pytest.config"].default_plugins:
                    importlib.import_module(f"_pytest.{one}")
            loaded = {name: sys.modules[name] for name in set(sys.modules) - before}
            for one in needs:
                loaded |= self._sets[one]
            self._sets[package] = loaded
            self._modules |= loaded
        self._specs = {name: one.__spec__ for name, one in self._modules.items()}
        for name in set(sys.modules) - visible:
            del sys.modules[name]

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._modules:
            return None
        known = self._specs[name]
        spec = importlib.machinery.ModuleSpec(name, self, origin=known and known.origin)
        spec.submodule_search_locations = known and known.submodule_search_locations
        return spec

    def create_module(self, spec: Any) -> types.ModuleType:
        return self._modules[spec.name]

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        module.__spec__ = self._specs.get(name)
        for package, loaded in self._sets.items():
            if name == package:
                sys.modules.update({n: one for n, one in loaded.items() if n not in sys.modules})
        if name == "numpy":
            sys.modules["numpy"].random.seed()


def in_child(function: Any, *arguments: Any) -> None:
    """Stands for the supervisor's own: a run's process comes back out of it."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        function(*arguments)
    except Become:
        raise
    except BaseException as error:
        with suppress(BaseException):
            confine._write(arguments[0], error=f"{type(error).__name__}: {error}")
    os._exit(1)


def become(program: str, command: list[str]) -> None:
    raise Become(command[-1])


def load(path: str) -> Any:
    name = os.path.basename(path).removesuffix(".py")
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def receive(connection: socket.socket) -> dict[str, Any]:
    numbers = array.array("i")
    data, rights, _, _ = connection.recvmsg(1 << 20, socket.CMSG_SPACE(64 * numbers.itemsize))
    if not data:  # it only asked whether there is a server
        return {}
    request: dict[str, Any] = ast.literal_eval(data.decode())
    numbers.frombytes(b"".join(content for _, _, content in rights))
    request["came"] = numbers.tolist()
    return request


def prepare(request: dict[str, Any]) -> None:
    """Make this process what `subprocess` would start."""
    os.setsid()
    came = [fcntl.fcntl(one, fcntl.F_DUPFD, _HIGH) for one in request["came"]]
    os.closerange(0, _HIGH)
    for one, number in zip(came, request["numbers"], strict=False):
        os.dup2(one, number)
        os.close(one)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    asked = eval(request["argument"], {})
    sys.argv = ["confine.py", ascii({**asked, "kernel": os.getppid()})]
    os.execv = become


def run_script(path: str, keep: list[int]) -> int:
    for number in range(3, _HIGH + 100):
        if number not in keep:
            with suppress(OSError):
                os.close(number)
    sys.argv = [path]
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        with open(path, "rb") as file:
            source = file.read()
        exec(code if source == program else compile(source, path, "exec"), vars(main))
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        trace = error.__traceback__
        sys.excepthook(type(error), error, trace and trace.tb_next)
        return 1
    return 0


def end(status: int) -> None:
    for last in (threading._shutdown, atexit._run_exitfuncs):
        with suppress(BaseException):
            last()
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    os._exit(status & 0xFF)


listeners = []
for path in (sys.argv[1], f"{sys.argv[1]}-large"):
    listeners.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    listeners[-1].bind(path)
    listeners[-1].listen(64)
if os.fork():  # no child of the tests, which look for theirs
    os._exit(0)
confine = load(sys.argv[2])
confine.overlay = load(os.path.join(os.path.dirname(sys.argv[2]), "overlay.py"))
confine._in_child = in_child
with open(os.path.join(os.path.dirname(sys.argv[2]), "run_parts.py"), "rb") as file:
    program = file.read()  # what most runs are of
code = compile(program, "main.py", "exec")
large = os.fork() == 0
listener = listeners.pop(large)
listeners.pop().close()
sys.meta_path.insert(0, Hidden(PACKAGES | (LARGE if large else {})))
gc.collect()
gc.freeze()
execv, child = os.execv, 1
while listener in select.select([listener, 0], [], [])[0]:
    connection, _ = listener.accept()
    if not (request := receive(connection)):
        continue
    child = os.fork()
    if child == 0:
        break
    connection.send(b"%d" % child)
    connection.close()
    for number in request["came"]:
        os.close(number)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
if child:  # the tests are over
    os._exit(0)

try:
    prepare(request)
    confine.main()
    os._exit(0)
except Become as last:
    script = str(last)
except BaseException:
    os._exit(0)
os.execv = execv
del connection, listener, child
end(run_script(script, request["numbers"][4:]))
