"""Runs untrusted Python in a subprocess: bounded in time, memory and output, killed whole.

What is not isolated: the network and files the user can read. The environment is emptied, so
that no key reaches the code, and it starts in a temporary directory of its own.
"""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from pathlib import Path
from time import monotonic

from ipyrefine.loop.records import Record

_LIMITS = """\
import resource as _r
def _limit(what, value):
    try:
        _r.setrlimit(what, (value, value))
    except (ValueError, OSError):
        pass
_limit(_r.RLIMIT_AS, {memory})
_limit(_r.RLIMIT_CPU, {seconds})
_limit(_r.RLIMIT_FSIZE, 16_000_000)
_limit(_r.RLIMIT_CORE, 0)
del _r, _limit
"""


class Ran(Record):
    """What came of running code.

    Attributes:
        stdout: its output, up to the limit.
        stderr: its error output, up to the limit.
        exit_code: exit status; negative for a signal, None when it was timed out.
        seconds: wall time.
        timed_out: whether it was killed for running too long.
        report: what it wrote to the file named by its first argument.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    seconds: float
    timed_out: bool = False
    report: str = ""


async def run_python(
    source: str, *, seconds: float = 10.0, memory_mb: int = 1024, output_limit: int = 64_000
) -> Ran:
    """Run Python source in a fresh process.

    Args:
        source: the program.
        seconds: wall time it may take.
        memory_mb: megabytes of address space (POSIX only).
        output_limit: bytes kept of each output stream; the rest is read and dropped.
    """
    with tempfile.TemporaryDirectory(prefix="ipyrefine-", ignore_cleanup_errors=True) as folder:
        program = Path(folder, "program.py")
        report = Path(folder, "report")
        _write(program, _limited(source, memory_mb, seconds))
        began = monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(program),
            str(report),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env=_environment(folder),
            start_new_session=True,
        )
        timed_out = False
        out, err = bytearray(), bytearray()
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(
                    _drain(process.stdout, out, output_limit),
                    _drain(process.stderr, err, output_limit),
                    process.wait(),
                )
        except TimeoutError:
            timed_out = True
        finally:
            _kill(process.pid)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            # Pipes that an orphan still holds, or that are paused, would keep wait() waiting.
            process._transport.close()  # type: ignore[attr-defined]
            await asyncio.shield(process.wait())
        said = _head(report, output_limit)
        return Ran(
            stdout=out.decode(errors="replace"),
            stderr=err.decode(errors="replace"),
            exit_code=None if timed_out else process.returncode,
            seconds=monotonic() - began,
            timed_out=timed_out,
            report=said.decode(errors="replace"),
        )


def _limited(source: str, memory_mb: int, seconds: float) -> str:
    if sys.platform == "win32":
        return source
    head = _LIMITS.format(memory=memory_mb * 1_000_000, seconds=int(seconds) + 1)
    return f"exec({head!r})\n{source}"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _head(path: Path, limit: int) -> bytes:
    """Read what was reported, bounded: the code could have written there too."""
    if not path.exists():
        return b""
    with path.open("rb") as file:
        return file.read(limit)


def _environment(folder: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT") if name in os.environ}
    return kept | {"HOME": folder, "TMPDIR": folder, "TEMP": folder, "PYTHONIOENCODING": "utf-8"}


async def _drain(stream: asyncio.StreamReader, into: bytearray, limit: int) -> None:
    """Read to the end, so that a flood neither blocks the program nor fills our memory."""
    while chunk := await stream.read(65_536):
        into += chunk[: max(0, limit - len(into))]
        await asyncio.sleep(0)  # a flood is always ready to read: let the time limit be seen


def _kill(group: int) -> None:
    """Kill a process with all its children."""
    if sys.platform != "win32":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
