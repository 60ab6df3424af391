"""The embedded model: llama.cpp in a process of its own, reachable from this process alone."""

import asyncio
import atexit
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path

from ipyrefine.core.ports import Delta, Notice, Reply, Request
from ipyrefine.core.usage import Price
from ipyrefine.errors import NoModel, WeightsError
from ipyrefine.providers.openai import OpenAIModel

_PROGRAM = Path(__file__).with_name("llama_server.py")
_CONTEXT_TOKENS = 8_192
_BATCH_TOKENS = 512  # an interrupt is heard between batches of the prompt
_KEPT_MIB = 512  # of prompts read before; a thousand tokens of the default model take 28
_SPINS = "1000"  # rounds of looking whether the other threads are there yet
_TIMEOUT_S = 600.0  # a long prompt takes a slow processor minutes before the first token
_LEAVE_S = 2.0
_MAGIC = b"GGUF"


class LocalModel:
    """A language model run by llama.cpp on this machine, on a verified GGUF file.

    The model is loaded at the first request, once per process and file. It answers on a free
    loopback port that only this process has the key to, and ends with this process.

    Args:
        path: the weights, a GGUF file.
        name: name for people and records.
    """

    def __init__(self, path: Path, *, name: str) -> None:
        self._path = path
        self._name = name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self._name

    @property
    def price(self) -> Price:
        """Nothing: it runs on this machine."""
        return Price(prompt=0, completion=0)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Answer a request, loading the model first if need be; it costs nothing.

        Raises:
            NoModel: the package that runs models is not installed.
            WeightsError: the file is missing or damaged.
            ModelError: the request failed.
        """
        engine = _engine(self._path)
        if not engine.running:
            yield Delta(kind="thinking", text=f"Loading the model {self._name} …\n")
        model = await asyncio.to_thread(engine.load)
        async with aclosing(model.stream(request)) as items:
            async for item in items:
                yield _free(item) if isinstance(item, Reply) else item


class _Engine:
    """One file's llama.cpp process; `load` may be called from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._model: OpenAIModel | None = None

    @property
    def running(self) -> bool:
        return self._model is not None and self._alive()

    def load(self) -> OpenAIModel:
        with self._lock:
            if self._model is None or not self._alive():
                self.stop()
                _check(self._path)
                key = secrets.token_urlsafe(32)
                self._process = _spawn()
                self._model = OpenAIModel(
                    self._path.stem,
                    base_url=f"{_start(self._process, self._path, key)}/v1",
                    api_key=key,
                    timeout=_TIMEOUT_S,
                )
            return self._model

    def stop(self) -> None:
        process, self._process, self._model = self._process, None, None
        if process is None:
            return
        try:
            process.communicate(timeout=_LEAVE_S)  # closes its input, at which it ends
        except subprocess.TimeoutExpired:
            process.kill()  # it may still be loading
            process.communicate()

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None


_ENGINES: dict[Path, _Engine] = {}


def _engine(path: Path) -> _Engine:
    """Return the one engine for a file in this process."""
    return _ENGINES.setdefault(path.resolve(), _Engine(path))


@atexit.register
def _stop_all() -> None:
    for engine in _ENGINES.values():
        engine.stop()
    _ENGINES.clear()


def _check(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise WeightsError(
            f"The embedded model's file {path} cannot be read ({error.strerror}): fetch it with "
            "`ipyrefine pull`."
        ) from None
    if magic != _MAGIC:
        raise WeightsError(
            f"The embedded model's file {path} is damaged or is no model: delete it and fetch it "
            "again with `ipyrefine pull`."
        )


def _spawn() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        # -P: neither the user's folder nor ours may stand in for a module it imports.
        [sys.executable, "-P", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_with_short_waits(os.environ),
        # Interrupting a cell signals the kernel's whole process group.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0)
        | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _with_short_waits(user: Mapping[str, str]) -> dict[str, str]:
    """The user's environment, in which OpenMP's threads wait awake for some microseconds.

    Awake for longer, one other busy program on a small machine (a browser, a test run) makes the
    model several times as slow; asleep at once, it writes a third slower on an idle machine.
    """
    chosen = "OMP_WAIT_POLICY" in user or "GOMP_SPINCOUNT" in user
    return dict(user) if chosen else {**user, "GOMP_SPINCOUNT": _SPINS}


def _start(process: subprocess.Popen[bytes], path: Path, key: str) -> str:
    """Load the weights and return the server's address; takes seconds."""
    assert process.stdin is not None
    assert process.stdout is not None
    wanted = {
        "path": str(path),
        "key": key,
        "context": _CONTEXT_TOKENS,
        "batch": _BATCH_TOKENS,
        "kept": _KEPT_MIB,
        "threads": _fewer_threads(),
    }
    process.stdin.write(json.dumps(wanted).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline() or b"{}")  # nothing at all after a crash
    if answer.get("fault") == "package":
        raise NoModel(
            "The embedded model needs the package xllamacpp: install it with "
            '`pip install "ipyrefine[local]"`.'
        )
    if "address" not in answer:
        raise WeightsError(
            f"The embedded model's file {path} could not be loaded: close other programs if "
            "memory is short, else delete it and fetch it again with `ipyrefine pull`."
        )
    return str(answer["address"])


def _fewer_threads(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int | None:
    """Processors this process is held to, as in many containers.

    Returns:
        The number, or None when it may use them all: llama.cpp then knows best how many.
    """
    machine = os.cpu_count() or 1
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else machine
    try:
        allowed, period = quota.read_text().split()
        count = max(1, min(count, int(allowed) // int(period)))
    except (OSError, ValueError):
        pass  # no such limits on this system, or none set ("max")
    return count if count < machine else None


def _free(reply: Reply) -> Reply:
    return reply.model_copy(update={"usage": reply.usage.model_copy(update={"cost": 0.0})})
