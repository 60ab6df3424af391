"""For every test: no network beyond this machine, and none of the user's own files or settings."""

import functools
import ipaddress
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

HOMES = ("HOME", "USERPROFILE")
FOLDERS = (
    "APPDATA",
    "IPYREFINE_HOME",
    "IPYREFINE_MODEL_DIR",
    "IPYTHONDIR",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_DATA_DIR",
    "JUPYTER_RUNTIME_DIR",
    "LOCALAPPDATA",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
)
SETTINGS = ("OPENAI_", "IPYREFINE_")
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class NetworkBlocked(BaseException):
    """A test reached beyond this machine; not an `Exception`, so that no retry swallows it."""


def is_local(host: object) -> bool:
    """Whether a host is this machine itself; None and "" are, as the resolver takes them."""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(str(name).partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


class Guard:
    """Stands before the socket calls that name a host."""

    def __init__(self) -> None:
        self.patches = pytest.MonkeyPatch()
        self.open = False

    def install(self) -> None:
        for name in ("connect", "connect_ex"):
            self.patches.setattr(socket.socket, name, self._connecting(name))
        resolve = socket.getaddrinfo

        def getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
            self._check(host)
            return resolve(host, *rest, **options)

        self.patches.setattr(socket, "getaddrinfo", getaddrinfo)

    def _connecting(self, name: str) -> Any:
        call = getattr(socket.socket, name)

        def guarded(sock: socket.socket, address: Any) -> Any:
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                self._check(address[0])
            return call(sock, address)

        return guarded

    def _check(self, host: object) -> None:
        if not self.open and not is_local(host):
            raise NetworkBlocked(f"A test tried to reach {host!r}; tests use loopback only.")


GUARD = Guard()


def pytest_configure() -> None:
    # For the whole session, so that wider fixtures and threads left behind are guarded too.
    GUARD.install()


def pytest_unconfigure() -> None:
    GUARD.patches.undo()


def pytest_xdist_auto_num_workers() -> int:
    """Run one worker more than there are cores, as many tests wait for a process or a clock."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    GUARD.open = item.get_closest_marker("model") is not None
    try:
        return (yield)
    finally:
        GUARD.open = False


@pytest.fixture(autouse=True, scope="session")
def one_tls_context() -> Iterator[None]:
    """The certificates of this machine, read once, as that takes 25 ms for each model."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr("httpx2.create_ssl_context", functools.cache(httpx2.create_ssl_context))
        yield


@pytest.fixture(scope="session")
def warm() -> Iterator[Any]:
    """What forks sandboxed runs from a process with packages loaded."""
    from warm import Warm

    server = Warm()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def warm_runs(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, warm: object
) -> None:
    """Sandboxed runs are forked; the sandbox's own tests start each as a user does."""
    fresh = "sandbox" in request.path.parts or request.node.get_closest_marker("fresh")
    if sys.platform == "linux" and not fresh:
        monkeypatch.setattr("ipyrefine.sandbox.sandbox.subprocess", warm)


@pytest.fixture(autouse=True)
def own_world(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path | None]:
    """The user's settings gone and, by default, an empty home; the home, where there is one.

    It is in memory where that can be, as a journal waits for its disk at every event. ``model`` and
    ``browser`` tests keep the home and the model directory they were given.
    """
    given = any(request.node.get_closest_marker(name) for name in ("model", "browser"))
    for name in list(os.environ):
        if name.startswith(SETTINGS) and not (given and name == "IPYREFINE_MODEL_DIR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    if given:
        yield None
        return
    with tempfile.TemporaryDirectory(dir=MEMORY, ignore_cleanup_errors=True) as home:
        for name in HOMES:
            monkeypatch.setenv(name, home)
        for name in FOLDERS:
            monkeypatch.setenv(name, os.path.join(home, name.lower()))
        yield Path(home)
    if IPython := sys.modules.get("IPython"):
        IPython.InteractiveShell.clear_instance()


@pytest.fixture
def warm_kernels(own_world: Path, warm: Any) -> None:
    """Kernels fork their sandboxed runs, too."""
    if sys.platform == "linux":
        folder = own_world / "ipythondir" / "profile_default" / "startup"
        folder.mkdir(parents=True)
        (folder / "warm.py").write_text(warm.line)
