"""A folder that a script is shown: all can be read but what is closed, and nothing changes."""

import hashlib
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ipyrefine.kernel.folder import look
from ipyrefine.sandbox import sandbox
from ipyrefine.sandbox.programs import overlay
from ipyrefine.sandbox.sandbox import ProcessResult, run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts are Linux's")
WORD = "hunter2" + "xx7"
ENTER = """
import ast, ctypes, fcntl, mmap, os, shutil, sqlite3, subprocess, sys, threading
from contextlib import suppress
plan = ast.literal_eval(open("folder.txt").read())
os.chdir(plan["place"])
sh = lambda line: subprocess.run(line, shell=True, capture_output=True, text=True)
"""
WITHOUT = {
    "an overlay": ("", ""),
    "copies": ("_LIBC.unshare(", "(lambda _: -1)("),
    "copies in namespaces": ('_mount_at(place, "overlay"', '_mount_at(place, "no such"'),
}


@pytest.fixture(params=WITHOUT)
def folder(request, tmp_path, tmp_path_factory, monkeypatch) -> Path:
    """A notebook's folder, where the system can lay an overlay over it, and where it can't."""
    folder = tmp_path / "note, book: 1"
    (folder / "data").mkdir(parents=True)
    for name in ("a.csv", "data/b.csv", "../up.csv"):
        (folder / name).write_text("a\n1\n")
    (folder / ".env").write_text(WORD)
    (folder / "more.txt").hardlink_to(folder / ".env")
    (folder / "out.csv").symlink_to("../up.csv")
    (folder / "python").symlink_to(Path(sys.executable).resolve())  # as in a virtual environment
    with (folder / "big.bin").open("wb") as file:
        file.truncate(overlay._COPIED + 1)
    monkeypatch.chdir(folder)
    source = Path(sandbox.LIMITER).read_text("utf-8").replace(*WITHOUT[request.param])
    limiter = tmp_path_factory.mktemp("programs") / "limiter.py"
    limiter.write_text(source)
    shutil.copy(overlay.__file__, limiter.parent)
    monkeypatch.setattr(sandbox, "LIMITER", limiter)
    return folder


async def run(code: str) -> ProcessResult:
    return await run_python(ENTER + code, files={"folder.txt": look().plan})


def state(folder: Path) -> dict[str, Any]:
    found = {}
    for one in sorted(folder.rglob("*")):
        kept = one.lstat()
        content = hashlib.sha256(one.read_bytes()).hexdigest() if one.is_file() else ""
        found[str(one)] = (kept.st_mode, kept.st_uid, kept.st_mtime_ns, kept.st_nlink, content)
    return found


APART = 8
HOSTILE = [
    "open('a.csv', 'w').write('x')", "open(ROOT + '/a.csv', 'a').write('x')",
    "os.truncate('a.csv', 0)", "os.remove('a.csv')", "os.remove(ROOT + '/data/b.csv')",
    "os.rename('a.csv', 'z.csv')", "os.replace('data/b.csv', 'a.csv')", "os.mkdir('new')",
    "os.symlink('a.csv', 'l')", "os.mkfifo('pipe')",
    "os.chmod('a.csv', 0)", "os.chmod('big.bin', 0)", "os.chmod(ROOT + '/a.csv', 0)",
    "os.utime('big.bin', (1, 1))", "os.utime(ROOT + '/big.bin', (1, 1))", "os.chown('a.csv', 1, 1)",
    "os.setxattr('a.csv', 'user.x', b'1')", "os.link('big.bin', 'l'); open('l', 'r+b').write(b'x')",
    "open('big.bin', 'r+b').write(b'x')", "open(ROOT + '/big.bin', 'r+b').write(b'x')",
    "os.open('.', os.O_TMPFILE | os.O_RDWR)",
    "f = open('a.csv', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'x'; m.flush()",
    "c = sqlite3.connect(ROOT + '/a.db'); c.execute('create table t (a)'); c.commit()",
    "os.chdir('/'); open(ROOT[1:] + '/a.csv', 'w').write('x')",
    "d = os.open(ROOT, os.O_RDONLY); os.unlink('a.csv', dir_fd=d)",
    "open('/proc/self/cwd/a.csv', 'w').write('x')",
    "open(f'/proc/{os.getppid()}/root{ROOT}/a.csv', 'w')",
    "[open(f'/proc/{p}/fd/{n}/a.csv', 'w') for p in (1, os.getppid()) for n in range(3, 20)]",
    "ctypes.CDLL(None).umount2(ROOT.encode(), 2); open(ROOT + '/a.csv', 'w').write('x')",
    "t = threading.Thread(target=lambda: os.remove(ROOT + '/a.csv')); t.start(); t.join()",
    "os.fork() or (os.setsid(), os.remove(ROOT + '/a.csv'))", "open('.env', 'w').write('x')",
    "os.remove('.env')", "os.remove('out.csv')", "open('out.csv', 'w').write('x')",
    "shutil.rmtree('data')", "sh('rm -rf *; echo x > a.csv; touch -d @1 .env')",
    "shutil.rmtree(ROOT)",
]  # fmt: skip


async def test_nothing_that_a_script_does_changes_the_folder(folder):
    before = state(folder.parent)
    lines = [f"with suppress(BaseException):\n    {line}\n" for line in HOSTILE]
    for apart in range(APART):  # one does not hide another that is like it
        ran = await run(f"ROOT = {str(folder)!r}\n" + "".join(lines[apart::APART]))
        assert state(folder.parent) == before
        assert ran.exit_code == 0, ran.stderr


async def test_what_is_written_overwritten_and_deleted_is_told(folder):
    ran = await run(
        "os.remove('a.csv')\nopen('data/b.csv', 'w').write('abc')\nos.makedirs('x/y')\n"
        "open('x/y/new', 'w').write('abcd')\nopen('big.bin').close()\n"
        "with suppress(OSError):\n    os.rename('data', 'other')\nos.listdir('data')\n"
    )
    told = {("a.csv", 4, None), ("data/b.csv", 4, 3), ("x/y/new", None, 4)}
    renamed = {("data/", 4096, None), ("other/b.csv", None, 3)}  # which an overlay cannot do
    assert {*ran.files} in (told, {*told, *renamed} - {("data/b.csv", 4, 3)})


@pytest.mark.parametrize(
    "code",
    [
        "print(open('.env').read())", "print(open('more.txt').read())", "print(sh('cat .env'))",
        "print(open('out.csv').read())", "print(sh('cat .e* more.txt').stdout)",
        "os.link('.env', 'x'); print(sh('cat x').stdout)",
        "print(mmap.mmap(open('.env').fileno(), 0, access=mmap.ACCESS_READ)[:])",
    ],
)  # fmt: skip
async def test_what_is_closed_holds_nothing_and_it_is_told_that_it_was_opened(folder, code):
    ran = await run(code)
    assert WORD not in ran.stdout + ran.stderr
    assert "1" not in ran.stdout.replace("returncode=1", "")
    assert ran.opened or ran.exit_code or "Permission denied" in ran.stdout


async def test_a_folder_that_cannot_be_written_to_is_so(folder):
    folder.chmod(0o555)
    ran = await run("open('new', 'w')")
    folder.chmod(0o755)
    assert "PermissionError" in ran.stderr
