"""What code in the sandbox can do to the machine, in every kind of place where it runs.

The places: this process's user, an ordinary user, and both in a container whose seccomp profile
forbids namespaces. Where the sandbox cannot protect something, it has to say so.
"""

import ctypes
import json
import os
import shutil
import signal
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
        self.process = self.serve()
        if not self.run("print(1)", optional=True):
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

    def run(self, source: str, *, optional: bool = False, **arguments: object) -> SimpleNamespace:
        try:
            self.process.stdin.write(json.dumps({"source": source, **arguments}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            assert optional, "the server has died"
        line = self.process.stdout.readline()
        if not line and optional:
            return None
        answer = SimpleNamespace(**json.loads(line))
        if hasattr(answer, "protection"):
            answer.protection = Protection(**answer.protection)
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
    allowed = subprocess.run(
        [*place.start[:-2], "unshare", "-Urnpfm", "--mount-proc", "true"],
        capture_output=True,
        cwd="/",
        check=False,
    )
    assert ran.protection.network
    assert ran.protection.keys
    if place.in_container or allowed.returncode != 0:
        assert not ran.protection.disk
        assert "fill the disk" in ran.note
    else:
        assert ran.note == ""
    assert ("read your files" in ran.note) is not ran.protection.files
    assert ("read your keys" in ran.note) is not ran.protection.keys


def test_code_does_not_enter_the_kernels_namespaces(place):
    ran = place.run(f"""
import ctypes, os, socket
for name in ("user", "net", "mnt", "pid", "ipc"):
    for process in ({place.kernel}, os.getppid(), 1):
        try:
            file = os.open(f"/proc/{{process}}/ns/{{name}}", os.O_RDONLY)
        except OSError:
            continue
        if os.path.samestat(os.fstat(file), os.stat(f"/proc/self/ns/{{name}}")):
            continue
        if ctypes.CDLL(None).setns(file, 0) == 0:
            print("entered", name, process)
try:
    print(sorted(name for _, name in socket.if_nameindex()))
except OSError as error:
    print(error.strerror)
""")
    assert ran.stdout in ("['lo']\n", "Network is unreachable\n")


def test_code_has_no_capabilities_and_gets_none(place):
    ran = place.run("""
import ctypes, os
lines = open("/proc/self/status").read().splitlines()
kinds = ("CapInh", "CapPrm", "CapEff", "CapAmb")
print(*{line.split()[1].strip("0") or "none" for line in lines if line.startswith(kinds)})
print([line.split()[1] for line in lines if line.startswith("NoNewPrivs")])
libc = ctypes.CDLL(None)
print(libc.mount(b"none", b"/", None, 0x44000, None), libc.umount2(b"/tmp", 2))
print(libc.unshare(0x10000000 | 0x20000))
""")
    capabilities, new, mounts, unshared = ran.stdout.splitlines()
    assert capabilities == "none"
    assert new == "['1']"
    assert mounts == "-1 -1"
    assert unshared == "-1"


def test_code_reads_neither_environment_nor_memory_of_another_process(place):
    ran = place.run(f"""
import ctypes, os
pids = {{int(name) for name in os.listdir("/proc") if name.isdigit()}}
pids |= {{{place.kernel}, os.getppid()}}
for pid in pids - {{os.getpid()}}:
    for name in ("environ", "mem"):
        try:
            with open(f"/proc/{{pid}}/{{name}}", "rb") as file:
                if name == "mem" or b"{KEY[:10]}" in file.read():
                    print(name, pid)
        except OSError:
            pass
    if ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0:
        print("attached", pid)
""")
    if ran.protection.keys:
        assert ran.stdout == ""
    else:
        assert "read your keys" in ran.note


def test_code_reads_no_key_of_a_keyring(place):
    calls = ctypes.CDLL(None, use_errno=True).syscall
    if calls(248, b"user", b"planted", KEY.encode(), len(KEY), -3) < 0:  # add_key, the session's
        pytest.skip("this system has no keyrings")
    doomed = place.process
    place.process = place.serve()  # a kernel of the session with that key
    ran = place.run("""
import ctypes
calls, found = ctypes.CDLL(None).syscall, ctypes.create_string_buffer(100)
for keyring in (-1, -2, -3, -4, -5):
    calls(250, 11, calls(250, 10, keyring, b"user", b"planted", 0), found, 100)
calls(250, 11, calls(249, b"user", b"planted", None, 0), found, 100)
print(found.value, calls(248, b"user", b"mine", b"x", 1, -4))
""")
    doomed.kill()
    doomed.communicate()
    assert ran.stdout == "b'' -1\n"


MEMORY = {
    "memfd": "open(os.memfd_create('x'), 'wb').write(bytes(50_000_000))",
    "shared memory of System V": "assert libc.shmget(0, 50_000_000, 0o1600) >= 0",
    "anonymous": "held.append(b'x' * 50_000_000)",
    "/dev/shm": "open(f'/dev/shm/x{len(held)}', 'wb').write(bytes(50_000_000)); held.append(0)",
}


@pytest.mark.parametrize("kind", MEMORY)
def test_no_kind_of_memory_is_without_a_limit(place, kind):
    ran = place.run(f"""
import ctypes, os
libc, held = ctypes.CDLL(None), []
for number in range(30):
    file = os.dup(1)
    {MEMORY[kind]}
print("1,500 MB")
""", memory_mb=300)  # fmt: skip
    if kind == "/dev/shm" and "fill the memory" in ran.note:
        for path in Path("/dev/shm").glob("x*"):
            path.unlink()
        pytest.skip("the evidence says so")
    assert "1,500 MB" not in ran.stdout


def test_code_reads_nothing_in_the_home_folder_and_writes_nowhere_else(place):
    ran = place.run(f"""
import os
for path in ("{place.home}/key", "/root/.ssh/id", "{place.home}/../home/key"):
    try:
        print(open(path).read())
    except OSError as error:
        pass
for folder in ("{place.home}", "/tmp", "/var/tmp", "{place.temporary}", "/etc", "/proc/sys/kernel"):
    try:
        with open(f"{{folder}}/written", "w"):
            print("wrote", folder)
    except OSError:
        pass
for folder in ("/var", "/opt", "/srv", "/home"):
    try:
        print(os.listdir(folder))
    except OSError:
        pass
open("own", "w").write("x")
import json, pydantic, tempfile, multiprocessing
tempfile.TemporaryFile().close()
multiprocessing.Lock()
print("imported")
""")
    assert ran.exit_code == 0, ran.stderr
    if ran.protection.files:
        assert ran.stdout == "imported\n"
    else:
        assert "read your files" in ran.note
        assert ran.stdout.endswith("imported\n")


@pytest.mark.parametrize("environment", ["", "env={}"])
def test_a_daemon_does_not_outlive_its_check(place, environment):
    marker = f"61.{os.getpid()}{time.monotonic_ns()}"
    ran = place.run(f"""
import os, subprocess, time
def command(process):
    try:
        return open(f"/proc/{{process}}/cmdline", "rb").read()
    except OSError:  # it has ended
        return b""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        for number in range(3):
            os.close(number)
        subprocess.Popen(["/bin/sleep", "{marker}"], start_new_session=True, {environment})
        time.sleep(60)
    os._exit(0)
os.wait()
while not any(b"{marker}" in command(name) for name in os.listdir("/proc") if name.isdigit()):
    pass
print("there")
""")
    assert ran.stdout == "there\n", ran.stderr
    assert not is_running(marker)


def test_code_cannot_forge_what_was_in_force_nor_its_end(place):
    honest = place.run("pass")
    forged = json.dumps({"protection": dict.fromkeys(Protection.model_fields, True), "status": 0})
    ran = place.run(f"""
import glob, os, sys
open(".offline", "w").close()
files = [f"/proc/self/fd/{{number}}" for number in range(3, 100)]
files += glob.glob("/proc/1/fd/*") + glob.glob(f"/proc/{{os.getppid()}}/fd/*")
for number in range(3, 100):
    try:
        os.write(number, b'''\\n{forged}\\n''')
        print("wrote", number)
    except OSError:
        pass
for path in files:
    try:
        with open(path, "ab") as file:
            file.write(b'''\\n{forged}\\n''')
        print("wrote", path)
    except OSError:
        pass
sys.exit(3)
""")
    assert (ran.stdout, ran.exit_code) == ("", 3)
    assert ran.protection == honest.protection


def test_code_cannot_stop_what_watches_it(place):
    ran = place.run(f"""
import os, signal
for pid in (os.getppid(), {place.kernel}):
    for number in (signal.SIGSTOP, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except OSError:
            pass
while True:
    pass
""", seconds=1)  # fmt: skip
    if ran.protection.processes:
        assert ran.limit == "time"


def test_folders_4000_deep_are_removed(place):
    ran = place.run("""
import os
for number in range(4000):
    os.mkdir("d")
    os.chdir("d")
os.chmod(".", 0)
print("deep")
""")
    assert ran.stdout == "deep\n", ran.stderr


def test_60000_files_are_refused_or_removed(place):
    ran = place.run("""
import os
try:
    for number in range(60_000):
        os.close(os.open(f"f{number}", os.O_CREAT))
except OSError as error:
    print(error.strerror)
print("done")
""", seconds=60)  # fmt: skip
    assert ran.stdout.endswith("done\n"), (ran.stderr, ran.limit)


def test_a_fork_bomb_is_stopped(place):
    ran = place.run("import os\nwhile True: os.fork()", seconds=20)
    assert ran.limit == "processes"


def test_a_fork_bomb_in_sessions_of_its_own_is_stopped(place):
    marker = f"62.{os.getpid()}{time.monotonic_ns()}"
    source = f"""
import subprocess
while True:
    subprocess.Popen(["/bin/sleep", "{marker}"], start_new_session=True, env={{}})
"""
    assert place.run(source, seconds=20).limit == "processes"
    assert not is_running(marker)


def test_processor_time_counts_over_all_processes_and_wall_time_does_not(place):
    source = """
import os, time
for _ in range(3):
    if os.fork() == 0:
        end = time.process_time() + 1.2
        while time.process_time() < end: pass
        os._exit(0)
for _ in range(3):
    os.wait()
"""
    assert place.run(source, seconds=2).limit == "time"
    ran = place.run("import time; time.sleep(1.5)", seconds=1)
    assert (ran.exit_code, ran.limit) == (0, None)


def test_memory_is_limited_for_all_processes_together(place):
    source = """
import os, time
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


def test_code_that_only_waits_is_not_run_to_its_end_and_counts_as_nothing(place):
    answer = place.run("import time; time.sleep(600)", seconds=0.2, wall_factor=1, wall_floor=2)
    assert "it waits, or the machine is busy" in answer.not_run


def test_required_protections_that_are_missing_keep_the_code_from_running(place):
    marker = f"63.{os.getpid()}{time.monotonic_ns()}"
    source = f"import subprocess; print(subprocess.Popen(['/bin/sleep', '{marker}']).pid)"
    note = place.run("pass").note
    answer = place.run(source, mode="required")
    if note:
        assert "a complete sandbox is required" in answer.not_run
        assert not hasattr(answer, "stdout")
    else:
        assert answer.stdout


def test_the_report_of_a_script_comes_back(place):
    assert place.run("open('r', 'w').write('é' * 9)", report="r").report == "é" * 9
    assert place.run("import os; os.symlink('/etc/passwd', 'r')", report="r").report == ""
    assert place.run("import os; os.mkfifo('r')", report="r").report == ""


def test_nothing_stays_behind_when_the_kernel_is_killed(place):
    marker = f"64.{os.getpid()}{time.monotonic_ns()}"
    doomed = place.serve()
    source = f"import subprocess; subprocess.run(['/bin/sleep', '{marker}'])"
    doomed.stdin.write(json.dumps({"source": source}) + "\n")
    doomed.stdin.flush()
    until(lambda: is_running(marker))
    doomed.send_signal(signal.SIGKILL)
    doomed.wait()
    until(lambda: not is_running(marker))
    doomed.stdin.close()
    doomed.stdout.close()
    for left in os.listdir(place.temporary):
        shutil.rmtree(os.path.join(place.temporary, left))


def until(condition) -> None:
    deadline = time.monotonic() + LOADED_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
