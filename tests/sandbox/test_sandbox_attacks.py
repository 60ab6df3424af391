"""What code in the sandbox can do to the machine, in every kind of place where it runs.

The places: this process's user, an ordinary user, and both in a container whose seccomp profile
forbids namespaces. Where the sandbox cannot protect something, it has to say so.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

import ipyrefine
from ipyrefine.sandbox.sandbox import Protection

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces are Linux's")

SUPPORT = Path(__file__).parents[1] / "support"
NO_SOURCE = str(Path(ipyrefine.__file__).parents[1])
NOBODY = 65534
PLACES = ["this user", "ordinary user", "container", "ordinary user in a container"]
KEY = "sk-planted-5ecret"
PRELUDE = """
import ctypes, glob, os, time
from contextlib import suppress
libc = ctypes.CDLL(None)
"""
LOADED_S = 60  # what takes longer has hung, even on a busy machine


class Place:
    """A process of some user in some place, which runs scripts in the sandbox."""

    def __init__(self, name: str) -> None:
        self.name, self.in_container = name, "container" in name
        user = NOBODY if "ordinary" in name else os.getuid()
        if user != os.getuid() and os.getuid() != 0:
            pytest.skip("only an administrator can become another user")
        self.folder = tempfile.mkdtemp(dir="/tmp", prefix="place-")
        self.home = os.path.join(self.folder, "home")
        self.temporary = os.path.join(self.folder, "temporary")
        for path in (self.home, self.temporary):
            os.mkdir(path)
            os.chown(path, user, -1)
        os.chmod(self.folder, 0o755)
        Path(self.home, "key").write_text(KEY)
        os.chown(Path(self.home, "key"), user, -1)
        helper = [sys.executable, str(SUPPORT / "container.py")]
        helper += ["--user", str(user)] if user != os.getuid() else []
        helper += [] if self.in_container else ["--namespaces"]
        self.start = [*helper, sys.executable, str(SUPPORT / "sandbox_server.py")]
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": self.home,
            "TMPDIR": self.temporary,
            "PYTHONPATH": NO_SOURCE,
            "PYTHONDONTWRITEBYTECODE": "1",
            "API_KEY": KEY,
        }
        calls = ctypes.CDLL(None, use_errno=True).syscall
        # A key of the session that the kernel is of: add_key.
        self.has_keys = calls(248, b"user", b"planted", KEY.encode(), len(KEY), -3) >= 0
        self.process = self.serve()
        try:
            self.run("print(1)")
        except (BrokenPipeError, json.JSONDecodeError):
            self.close()
            pytest.skip(f"{name}: Python or the sources cannot be read, or seccomp is missing")

    def serve(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.start,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.env,
            cwd=self.home,
        )

    @property
    def kernel(self) -> int:
        """The process whose sandbox it is, as a kernel is in a notebook."""
        return self.process.pid

    def run(self, source: str, **arguments: object) -> SimpleNamespace:
        request = {"source": PRELUDE + source, **arguments}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = SimpleNamespace(**json.loads(self.process.stdout.readline()))
        answer.protection = Protection(**getattr(answer, "protection", {}))
        assert os.listdir(self.temporary) == [], "the folder is left behind"
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        with suppress(BrokenPipeError):  # of what it died before reading
            self.process.stdin.close()
        self.process.stdout.close()
        shutil.rmtree(self.folder)


@pytest.fixture(scope="module", params=PLACES)
def place(request):
    made = Place(request.param)
    yield made
    made.close()


def new_marker() -> str:
    """Seconds to sleep, by which one process is told from all others."""
    return f"61.{os.getpid()}{time.monotonic_ns()}"


def is_running(marker: str) -> bool:
    """Whether a process has a word in its command."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in path.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_the_sandbox_is_complete_where_namespaces_are_allowed_and_else_says_what_is_open(place):
    ran = place.run("print('ran')")
    assert ran.stdout == "ran\n"
    unshare = [*place.start[:-2], "unshare", "-Urnpfm", "--mount-proc", "true"]
    allowed = subprocess.run(unshare, capture_output=True, cwd="/", check=False).returncode == 0
    assert ran.protection.network
    assert ran.protection.keys
    assert "read your keys" not in ran.note
    if place.in_container or not allowed:
        assert not ran.protection.disk
        assert "fill the disk" in ran.note
    else:
        assert ran.note == ""
    assert ("read your files" in ran.note) is not ran.protection.files


# What code looks for, each in a process of its own, and what it finds.
LOOKS = {
    "namespaces of others": (
        """
import socket
for name in ("user", "net", "mnt", "pid", "ipc"):
    for process in (KERNEL, os.getppid(), 1):
        with suppress(OSError):
            file = os.open(f"/proc/{process}/ns/{name}", os.O_RDONLY)
            own = os.path.samestat(os.fstat(file), os.stat(f"/proc/self/ns/{name}"))
            if not own and libc.setns(file, 0) == 0:
                print("entered", name, process)
try:
    print(sorted(name for _, name in socket.if_nameindex()))
except OSError as error:
    print(error.strerror)
""",
        ("['lo']", "Network is unreachable"),
    ),
    "capabilities": (
        """
lines = open("/proc/self/status").read().splitlines()
kinds = ("CapInh", "CapPrm", "CapEff", "CapAmb")
print(*{line.split()[1].strip("0") or "none" for line in lines if line.startswith(kinds)})
print([line.split()[1] for line in lines if line.startswith("NoNewPrivs")])
print(libc.mount(b"none", b"/", None, 0x44000, None), libc.umount2(b"/tmp", 2))
print(libc.unshare(0x10000000 | 0x20000))
""",
        ("none\n['1']\n-1 -1\n-1",),
    ),
    "environment and memory of other processes": (
        """
pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
for pid in (pids | {KERNEL, os.getppid(), SCRIPT}) - {os.getpid(), SCRIPT}:
    for name in ("environ", "mem"):
        with suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
            if name == "mem" or KEY.encode() in file.read():
                print(name, pid)
    if libc.ptrace(16, pid, 0, 0) == 0:
        print("attached", pid)
""",
        ("",),
    ),
    "keys of a keyring": (
        """
calls, found = libc.syscall, ctypes.create_string_buffer(100)
for keyring in (-1, -2, -3, -4, -5):
    calls(250, 11, calls(250, 10, keyring, b"user", b"planted", 0), found, 100)
calls(250, 11, calls(249, b"user", b"planted", None, 0), found, 100)
print(found.value, calls(248, b"user", b"mine", b"x", 1, -4))
""",
        ("b'' -1",),
    ),
    "files of the user's": (
        """
for path in (f"{HOME}/key", "/root/.ssh/id", f"{HOME}/../home/key"):
    with suppress(OSError):
        print(open(path).read())
for folder in (HOME, "/tmp", "/var/tmp", TEMPORARY, "/etc", "/proc/sys/kernel"):
    with suppress(OSError), open(f"{folder}/written", "w"):
        print("wrote", folder)
for folder in ("/var", "/opt", "/srv", "/home"):
    with suppress(OSError):
        print(os.listdir(folder))
open("own", "w").write("x")
import json, pydantic, tempfile, multiprocessing
tempfile.TemporaryFile().close()
multiprocessing.Lock()
print("imported")
""",
        ("imported",),
    ),
}
# Each would take 1,500 MB.
MEMORY = {
    "memfd": "open(os.memfd_create('x'), 'wb').write(bytes(50_000_000))",
    "shared memory of System V": "assert libc.shmget(0, 50_000_000, 0o1600) >= 0",
    "anonymous": "held.append(b'x' * 50_000_000)",
    "/dev/shm": "open(f'/dev/shm/x{len(held)}', 'wb').write(bytes(50_000_000)); held.append(0)",
}
LOOKS |= {
    name: (
        f"held = []\nfor _ in range(30):\n    file = os.dup(1)\n    {take}\nprint('took')",
        ("",),
    )
    for name, take in MEMORY.items()
}
LOOK = """
SCRIPT = os.getpid()
for name, source in LOOKS.items():
    print("==", name, flush=True)
    if os.fork() == 0:
        try:
            exec(source)
        except BaseException:
            pass
        sys.stdout.flush()
        os._exit(0)
    os.wait()
"""


def test_code_finds_nothing_of_others_and_takes_no_more_memory_than_it_may(place):
    given = {"KERNEL": place.kernel, "HOME": place.home, "TEMPORARY": place.temporary}
    given |= {"KEY": KEY[:10], "LOOKS": {name: source for name, (source, _) in LOOKS.items()}}
    source = "import sys\n" + "".join(f"{name} = {value!r}\n" for name, value in given.items())
    ran = place.run(source + LOOK, memory_mb=300, seconds=30)
    found = dict(one.partition("\n")[::2] for one in ran.stdout.split("== ")[1:])
    assert found.keys() == LOOKS.keys(), ran.stderr
    if not ran.protection.files:
        del found["files of the user's"]
    if not place.has_keys:  # this system has no keyrings
        del found["keys of a keyring"]
    if "fill the memory" in ran.note:
        del found["/dev/shm"]
        for path in Path("/dev/shm").glob("x*"):
            path.unlink()
    wrong = {n: said for n, said in found.items() if said.strip() not in LOOKS[n][1]}
    assert wrong == {}


def test_a_daemon_does_not_outlive_its_check(place):
    marker = new_marker()
    ran = place.run(f"""
import subprocess
def are_there(number):
    found = 0
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with suppress(OSError), open(path, "rb") as file:
            found += b"{marker}" in file.read()
    return found == number
for environment in (None, {{}}):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            for number in range(3):
                os.close(number)
            command = ["/bin/sleep", "{marker}"]
            subprocess.Popen(command, start_new_session=True, env=environment)
            time.sleep(60)
        os._exit(0)
    os.wait()
while not are_there(2): pass
print("there")
""")
    assert ran.stdout == "there\n", ran.stderr
    assert not is_running(marker)


def test_code_cannot_forge_what_was_in_force_nor_its_end(place):
    honest = place.run("pass")
    forged = json.dumps({"protection": dict.fromkeys(Protection.model_fields, True), "status": 0})
    ran = place.run(f"""
open(".offline", "w").close()
for number in range(3, 100):
    with suppress(OSError):
        os.write(number, b'''\\n{forged}\\n''')
        print("wrote", number)
files = [f"/proc/self/fd/{{number}}" for number in range(3, 100)]
for path in files + glob.glob("/proc/1/fd/*") + glob.glob(f"/proc/{{os.getppid()}}/fd/*"):
    with suppress(OSError), open(path, "ab") as file:
        file.write(b'''\\n{forged}\\n''')
        print("wrote", path)
os._exit(3)
""")
    assert (ran.stdout, ran.exit_code) == ("", 3)
    assert ran.protection == honest.protection


def test_code_cannot_stop_what_watches_it(place):
    ran = place.run(f"""
import signal
for pid in (os.getppid(), {place.kernel}):
    for number in (signal.SIGSTOP, signal.SIGKILL):
        with suppress(OSError):
            os.kill(pid, number)
while True: pass
""", seconds=0.5)  # fmt: skip
    if ran.protection.processes:
        assert ran.limit == "time"


def test_folders_however_deep_or_full_are_removed(place):
    ran = place.run("""
for number in range(5_000):
    os.close(os.open(f"f{number}", os.O_CREAT))
for number in range(1_500):
    os.mkdir("d")
    os.chdir("d")
os.chmod(".", 0)
print("made")
""", seconds=60)  # fmt: skip
    assert ran.stdout == "made\n", (ran.stderr, ran.limit)


BOMBS = {
    "forks": "while True: os.fork()",
    "sessions of their own": (
        "while True: subprocess.Popen(['/bin/sleep', '{}'], start_new_session=True, env={{}})"
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_fork_bomb_is_stopped(place, bomb):
    marker = new_marker()
    source = f"import subprocess\n{BOMBS[bomb].format(marker)}"
    assert place.run(source, seconds=20).limit == "processes"
    assert not is_running(marker)


def test_processor_time_counts_over_all_processes_and_wall_time_does_not(place):
    source = """
for _ in range(3):
    if os.fork() == 0:
        while time.process_time() < 0.6: pass
        os._exit(0)
for _ in range(3):
    os.wait()
"""
    assert place.run(source, seconds=1).limit == "time"
    ran = place.run("time.sleep(0.8)", seconds=0.5)
    assert (ran.exit_code, ran.limit) == (0, None)
    assert ran.seconds > 0.8 > 0.5 > ran.processor_seconds
    answer = place.run("time.sleep(600)", seconds=0.2, wall_factor=1, wall_floor=0.5)
    assert "it waits, or the machine is busy" in answer.not_run


def test_memory_is_limited_for_all_processes_together(place):
    source = """
for _ in range(4):
    if os.fork() == 0:
        held = b"x" * 90_000_000
        time.sleep(50)
time.sleep(50)
"""
    assert place.run(source, memory_mb=200).limit == "memory"


def test_disk_is_limited_for_all_files_together(place):
    ran = place.run("""
try:
    for number in range(9):
        with open(f"f{number}", "wb") as file:
            for _ in range(50):
                file.write(bytes(1_000_000))
except OSError as error:
    print(error.errno)
""")
    assert (ran.stdout == "28\n") is ran.protection.disk
    assert ("fill the disk" in ran.note) is not ran.protection.disk


def test_nothing_stays_behind_when_the_kernel_is_killed(place):
    marker = new_marker()
    doomed = place.serve()
    source = f"import subprocess; subprocess.run(['/bin/sleep', '{marker}'])"
    print(json.dumps({"source": source}), file=doomed.stdin, flush=True)
    until(lambda: is_running(marker))
    doomed.kill()
    doomed.communicate()
    until(lambda: not is_running(marker))
    for left in os.listdir(place.temporary):
        shutil.rmtree(os.path.join(place.temporary, left))


def until(condition) -> None:
    deadline = time.monotonic() + LOADED_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
