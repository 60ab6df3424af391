"""Run the embedded model: llama.cpp in a process of its own, which only this process can reach."""

import asyncio
import atexit
import json
import os
import secrets
import subprocess
import sys
import threading
from contextlib import aclosing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ipyrefine.core.model import Price
from ipyrefine.core.ports import Delta, Model, Request, Stream
from ipyrefine.errors import NoModel, WeightsError
from ipyrefine.providers.servers import Key, is_loopback

if TYPE_CHECKING:  # it takes a second to import, and recordings don't need it
    from ipyrefine.providers.openai import OpenAIModel

PROGRAM = Path(__file__).with_name("llama_server.py")
STOP_SECONDS = 2.0
_SPIN_COUNT = "1000"  # rounds in which a thread looks for the others before it sleeps


class LocalModel:
    """A language model run by llama.cpp on this machine, on a verified GGUF file.

    The model is loaded at the first request, once per process and file. It listens on a free
    loopback port with a key that only this process has, and ends with this process.
    """

    price = Price(prompt=0, completion=0)

    def __init__(self, path: Path, *, name: str) -> None:
        self._path = path
        self._name = name

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self._name

    async def stream(self, request: Request) -> Stream:
        """Answer a request at no cost; the first one loads the model.

        Raises:
            NoModel: the package that runs models is not installed.
            WeightsError: the file is missing or damaged.
            ModelError: the request failed.
        """
        server = server_for(self._path)
        if not server.is_running:
            yield Delta(kind="thinking", text=f"Loading the model {self._name} …\n")
        model = await asyncio.to_thread(server.start)
        greedy = request.replace(temperature=request.temperature or 0.0)
        async with aclosing(model.stream(greedy)) as items:
            async for item in items:
                yield item


class LlamaServer:
    """The llama.cpp process for one file."""

    def __init__(self, path: Path) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._path = path
        self._lock = threading.Lock()
        self._model: OpenAIModel | None = None

    @property
    def is_running(self) -> bool:
        """Whether the model is loaded and its process alive."""
        alive = self.process is not None and self.process.poll() is None
        return self._model is not None and alive

    def start(self) -> "OpenAIModel":
        """Return the model, loading it if it is not running; any thread may call this.

        Raises:
            NoModel: the package that runs models is not installed.
            WeightsError: the file is missing or damaged.
        """
        from ipyrefine.providers.openai import OpenAIModel

        with self._lock:
            if self._model is None or not self.is_running:
                self.stop()
                key = Key(secrets.token_urlsafe(32))
                self.process = _spawn()
                self._model = OpenAIModel(
                    self._path.stem,
                    base_url=f"{_load(self.process, self._path, key)}/v1",
                    api_key=key,
                    price=LocalModel.price,
                    extra={"return_progress": True},
                )
            return self._model

    def stop(self) -> None:
        """End the process, within seconds."""
        process, self.process, self._model = self.process, None, None
        if process is None:
            return
        try:
            process.communicate(timeout=STOP_SECONDS)  # closes its input, which ends it
        except subprocess.TimeoutExpired:
            process.kill()  # it may still be loading
            process.communicate()


SERVERS: dict[Path, LlamaServer] = {}
"""The servers of this process, by file."""


def server_for(path: Path) -> LlamaServer:
    """Return this process's one server for a file."""
    return SERVERS.setdefault(path.resolve(), LlamaServer(path))


@atexit.register
def stop_servers() -> None:
    """End every server of this process."""
    for server in SERVERS.values():
        server.stop()
    SERVERS.clear()


def is_local(model: Model) -> bool:
    """Return True if a model runs on this machine: embedded, or on a server at a loopback address.

    A recording does not count, as another model may answer what it does not hold.
    """
    return isinstance(model, LocalModel) or is_loopback(str(getattr(model, "base_url", "")))


def allowed_processors(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int | None:
    """Return how many processors a container (Linux, cgroup v2) allows this process.

    None is for no limit: llama.cpp then chooses the best number itself.
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


def _spawn() -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    if "OMP_WAIT_POLICY" not in environment:
        # While OpenMP's threads spin for longer, one other busy program on a small machine makes
        # the model several times as slow; if they never spin, it writes a third slower when idle.
        environment.setdefault("GOMP_SPINCOUNT", _SPIN_COUNT)
    return subprocess.Popen(
        # -P: neither the user's folder nor ours may stand in for a module it imports.
        [sys.executable, "-P", str(PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        # Interrupting a cell signals the kernel's whole process group.
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0)
        | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
    )


def _load(process: subprocess.Popen[bytes], path: Path, key: Key) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    settings = {"path": str(path), "threads": allowed_processors()}
    with suppress(BrokenPipeError):  # it may have died by now, and then answers nothing
        process.stdin.write(json.dumps({**settings, "key": key()}).encode() + b"\n")
        process.stdin.flush()
    answer = json.loads(process.stdout.readline() or b"{}")  # a crash writes nothing
    if answer.get("error") == "package":
        raise NoModel(
            "The embedded model needs the package xllamacpp. Install it with "
            '`pip install "ipyrefine[local]"`.'
        )
    if "address" not in answer:
        raise WeightsError(
            f"The embedded model's file {path} could not be loaded. Close other programs if "
            "memory is short, else delete it and fetch it again with `ipyrefine pull`."
        )
    return str(answer["address"])
