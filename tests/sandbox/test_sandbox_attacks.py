"""What code in the sandbox can do to the machine, in every kind of place where it runs.

The places: this process's user, an ordinary user, and a container whose seccomp profile forbids
namespaces, with this user's rights and with none over others. Where the sandbox cannot protect
something, it has to say so.
"""

import ast
import ctypes
import importlib.util
import json
import os
import platform
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
PLACES = {
    "this user": ("--namespaces",),
    "ordinary user": ("--nobody", "--namespaces"),
    "container": (),
    "bare container": ("--bare",),
}
OLD = {"bare container of an old system": ("--bare", "--no-landlock")}
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
        options = (PLACES | OLD)[name]
        user = NOBODY if "--nobody" in options else os.getuid()
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
        helper = [sys.executable, str(SUPPORT / "container.py"), *options]
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
    "shared memory of others": (
        """
from multiprocessing.shared_memory import SharedMemory
for read in (lambda: open(f"/dev/shm/{PLANTED}", "rb").read(), lambda: SharedMemory(PLANTED).buf):
    with suppress(OSError):
        print(bytes(read()))
print(os.listdir("/dev/shm"))
""",
        ("", "[]"),
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
import json, pydantic, tempfile
tempfile.TemporaryFile().close()
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
    shared = Path(f"/dev/shm/planted-{os.getpid()}")  # as SharedMemory(name=…) finds it
    shared.write_text(KEY)
    given |= {"PLANTED": shared.name}
    given |= {"KEY": KEY[:10], "LOOKS": {name: source for name, (source, _) in LOOKS.items()}}
    source = "import sys\n" + "".join(f"{name} = {value!r}\n" for name, value in given.items())
    ran = place.run(source + LOOK, memory_mb=300, seconds=30)
    shared.unlink()
    found = dict(one.partition("\n")[::2] for one in ran.stdout.split("== ")[1:])
    assert found.keys() == LOOKS.keys(), ran.stderr
    if not ran.protection.files:
        del found["files of the user's"]
    if not place.has_keys:  # this system has no keyrings
        del found["keys of a keyring"]
    wrong = {n: said for n, said in found.items() if said.strip() not in LOOKS[n][1]}
    assert wrong == {}


# What reaches others: the call, its numbers on x86-64 and ARM, its arguments. PID is another
# process, FD a pidfd of it; WORDS points to numbers, which a colon follows.
REACH = """
prlimit64 302 261 PID 0 WORDS 0 : 1 0 1 0
prlimit64 302 261 HIGH 0 WORDS 0 : 1 0 1 0
setpriority 141 140 0 PID 19
setpriority 141 140 1 0 19
setpriority 141 140 2 0 0
ioprio_set 251 30 1 PID 24576
ioprio_set 251 30 2 0 24576
ioprio_set 251 30 3 0 0
sched_setparam 142 118 PID WORDS : 0
sched_setscheduler 144 119 PID 5 WORDS : 0
sched_setaffinity 203 122 PID 8 WORDS : 1
sched_setattr 314 274 PID WORDS 0 : 48 0 0 0 0 19 0 0 0 0 0 0
prctl 157 167 62 1 PID 0 0
capset 126 91 WORDS 0 : 537396514 PID
setpgid 109 154 PID 0
kill 62 129 PID 9
kill 62 129 PID 19
kill 62 129 HIGH 9
tkill 200 130 PID 9
tgkill 234 131 PID PID 9
rt_sigqueueinfo 129 138 PID 9 WORDS : 9 0 -1 0
rt_tgsigqueueinfo 297 240 PID PID 9 WORDS : 9 0 -1 0
pidfd_send_signal 424 424 FD 9 0 0
fcntl 72 25 PIPE 8 PID
fcntl 72 25 PIPE 10 9
fcntl 72 25 PIPE 15 WORDS : 1 PID
ioctl 16 29 SOCKET 35073 WORDS : PID
ioctl 16 29 SOCKET 35074 WORDS : PID
ioctl 16 29 0 21522 WORDS : 65
ioctl 16 29 0 21520 WORDS : PID
ptrace 101 117 16 PID 0 0
ptrace 101 117 16902 PID 0 0
process_vm_readv 310 270 PID WORDS 0 WORDS 0 0 : 0
process_vm_writev 311 271 PID WORDS 0 WORDS 0 0 : 0
process_madvise 440 440 FD WORDS 0 20 0 : 0
process_mrelease 448 448 FD 0
pidfd_getfd 438 438 FD 0 0
kcmp 312 272 PID PID 1 0 0
get_robust_list 274 100 PID WORDS WORDS : 0 0
move_pages 279 239 PID 0 0 0 0 0
migrate_pages 256 238 PID 8 WORDS WORDS : 1 0
perf_event_open 298 241 WORDS PID -1 -1 0 : 1 112
setns 308 268 FD 536870912
unshare 272 97 268435456
clone 56 220 268435473 0 0 0 0
clone 56 220 536870929 0 0 0 0
clone3 435 435 WORDS 64 : 268435456
waitid 247 95 1 PID WORDS 4 0 : 0
wait4 61 260 PID 0 1 0
shmat 30 196 0 0 0
shmctl 31 195 0 0 0
semget 64 190 0 1 1023
semctl 66 191 0 0 0 0
semop 65 193 0 WORDS 1 : 0
msgget 68 186 0 1023
msgrcv 70 188 0 WORDS 4 0 2048 : 0 0 0 0
msgctl 71 187 0 0 0
mq_open 240 180 WORDS 64 511 0 : 113
socket 41 198 40 1 0
socket 41 198 17 3 0
socket 41 198 38 5 0
socketpair 53 199 40 1 0 WORDS : 0 0
unknown 1000 1000 0
"""
REACHING = """
import errno, signal, socket, struct, sys
def pidfd(pid):
    with suppress(OSError):
        return os.pidfd_open(pid)
    return -1
calls, answers, column = ctypes.CDLL(None, use_errno=True).syscall, set(), MACHINE
given = {"PIPE": os.pipe()[0], "SOCKET": socket.socketpair()[0].fileno()}
for row in REACH.strip().splitlines():
    for pid in {KERNEL, os.getppid()}:
        name, *numbers = row.partition(":")[0].split()
        given |= {"PID": pid, "HIGH": pid + 2**32, "FD": pidfd(pid)}
        words = [int(given.get(one, one)) for one in row.partition(":")[2].split()]
        words = ctypes.create_string_buffer(struct.pack(f"{len(words)}i", *words), 256)
        given["WORDS"] = ctypes.addressof(words)
        values = [ctypes.c_long(int(given.get(one, one))) for one in numbers[2:]]
        if calls(ctypes.c_long(int(numbers[column])), *values) < 0:
            answers.add((row.split(" : ")[0], errno.errorcode[ctypes.get_errno()]))
        else:
            answers.add((row.split(" : ")[0], "reached"))
print(sorted(answers))
"""


@pytest.mark.parametrize("place", [*PLACES, *OLD], indirect=True)
def test_no_call_reaches_what_watches_the_code_nor_the_kernel(place):
    column = ["x86_64", "aarch64"].index(platform.machine())
    given = f"KERNEL, MACHINE, REACH = {place.kernel}, {column}, {REACH!r}\n"
    ran = place.run(given + REACHING, seconds=30)
    assert (ran.exit_code, ran.limit, ran.stderr) == (0, None, "")
    answers = dict.fromkeys(ast.literal_eval(ran.stdout))
    # Of its own processes the kernel says that they are no children of the script, or not there.
    out_of_reach = {"EPERM", "ENOSYS", "ENETUNREACH", "ESRCH", "ECHILD"}
    reached = [one for one in answers if one[1] not in out_of_reach]
    if ran.protection.disk:  # a namespace: its first process takes no signal from inside
        signals = ("kill", "tkill", "tgkill", "rt_", "pidfd_send")
        reached = [one for one in reached if not one[0].startswith(signals)]
    assert reached == []
    assert len(answers) >= len(REACH.strip().splitlines())
    assert place.run("print(1)").stdout == "1\n", "the kernel is limited or dead"


LIBRARIES = {
    "pandas": """
import pandas
pandas.DataFrame({"a": [1, 2]}).to_csv("a.csv")
assert pandas.read_csv("a.csv").groupby("a").size().sum() == 2
""",
    "pyarrow": """
import pyarrow, pyarrow.dataset, pyarrow.parquet
pyarrow.parquet.write_table(pyarrow.table({"a": range(100_000)}), "a.parquet")
assert pyarrow.dataset.dataset("a.parquet").to_table().num_rows == 100_000
""",
    "polars": """
import polars
polars.DataFrame({"a": [1, 2]}).write_parquet("p.parquet")
assert polars.scan_parquet("p.parquet").filter(polars.col("a") > 1).collect().height == 1
""",
    "sklearn": """
import warnings
warnings.simplefilter("ignore")  # without a namespace, that it runs serially
from sklearn.ensemble import RandomForestClassifier
forest = RandomForestClassifier(4, n_jobs=2).fit([[0], [1]] * 9, [0, 1] * 9)
assert forest.score([[0], [1]], [0, 1]) == 1
""",
    "matplotlib": """
from matplotlib import pyplot
pyplot.plot([1, 2])
pyplot.savefig("a.png")
""",
    "duckdb": """
import duckdb
duckdb.connect("d.db").sql("create table t as select range as a from range(9)")
assert duckdb.sql("select 1").fetchall() == [(1,)]
""",
    "sqlite3": """
import sqlite3
connection = sqlite3.connect("s.db")
connection.execute("pragma journal_mode = wal")
connection.execute("create table t as select 1 as a")
connection.commit()
connection.backup(sqlite3.connect("b.db"))
""",
    "asyncio": """
import asyncio, sys
async def main():
    started = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(5)", stdout=-1)
    assert (await started.communicate())[0] == b"5\\n"
    assert await asyncio.to_thread(lambda: 1) == 1
asyncio.run(main())
""",
    "subprocess": """
import signal, subprocess
assert subprocess.run("ls | sort | wc -l; cp main.py x; rm x", shell=True).returncode == 0
started = subprocess.Popen(["sleep", "60"], start_new_session=True)
started.terminate()
assert started.wait() == -signal.SIGTERM
""",
    "threading": """
import resource, socket, threading
tids, ended = [], threading.Event()
threads = [threading.Thread(target=lambda: (tids.append(threading.get_native_id()), ended.wait()))]
threads[0].start()
while not tids: pass
assert os.sched_getaffinity(tids[0]) == os.sched_getaffinity(0)
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
resource.prlimit(0, resource.RLIMIT_NOFILE, (99, 99))
socket.socketpair()
ended.set()
""",
    "multiprocessing": """
import multiprocessing
def work(end): end.send(4)
ours, theirs = multiprocessing.Pipe()
worker = multiprocessing.Process(target=work, args=(theirs,))
worker.start()
assert ours.recv() == 4
worker.join()
""",
}


USE = """
for name, source in LIBRARIES.items():
    exec(source, globals())
    print(name, flush=True)
"""


def test_libraries_run_as_outside(place):
    there = {n: source for n, source in LIBRARIES.items() if importlib.util.find_spec(n)}
    ran = place.run(f"LIBRARIES = {there!r}\n{USE}", memory_mb=4_000, seconds=LOADED_S)
    assert (ran.stderr, [n for n in ran.stdout.split() if n in there]) == ("", [*there])


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
