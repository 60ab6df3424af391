"""Run cells that use the notebook's folder as checked code, and compare with the notebook.

``python bench/folder.py table|readers|hostile --out DIR [--setting TEXT] [--only TEXT] [--all]``
needs no model, but Linux, pandas, Polars, duckdb and pyarrow. Each cell of ``folder.toml`` is run
in a folder that is made anew each time: by plain Python, which gives the truth, and by the check
``run on copies``. What the check gives is

- run: what plain Python gives, an exception included;
- condition: the cell is not run or not judged, and a sentence says why;
- wrong: anything else, also a secret that is shown, a closed file that is read, and a folder that
  has changed: in content, modes, owners, times, links or attributes.

``table`` has readers by ways to name a file by kinds of folder, ``readers`` the readers that the
packages document, and ``hostile`` actions that change a folder by ways to reach it.

The kernel has no right over others, unless ``--root`` leaves it the user's. Its settings: with
namespaces; without; without Landlock as well, there also with the consent ``unconfined``.

``cost --before SRC --after SRC [--rounds 15]`` measures a check with one source tree and with
another, in turns. Each result is a line of DIR/folder.jsonl, so a bench that was stopped goes on
where it was; another tree (``--src``) needs another DIR.
"""

import argparse
import ast
import asyncio
import ctypes
import hashlib
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CONTAINER = ROOT / "tests" / "support" / "container.py"
DATA = tomllib.loads((Path(__file__).parent / "folder.toml").read_text("utf-8"))
SETTINGS = {
    "namespaces": ("--namespaces",),
    "no namespaces": ("--bare",),
    "neither": ("--bare", "--no-landlock"),
    "neither, consent": ("--bare", "--no-landlock"),
}
TRUTH, CONSENT = "plain Python", "neither, consent"
SECRET = "hunter2" + "xx7"
OUTCOMES = ("run", "condition", "wrong")
_CHUNK, _EACH_S = 8, 60  # cells for a kernel, and seconds for each
_OUTLIVES, _OUTLIVES_S = ("fork", "Popen"), 1.5  # what may change the folder after its cell
_NOT_PLAIN = (
    "setns",
    "unshare",
    "/proc/[0-9]*",
)  # what reaches beyond the folder where nothing holds it
_MODULES = {
    **{"pd": "pandas", "pl": "polars", "np": "numpy", "pa": "pyarrow", "pds": "pyarrow.dataset"},
    **{"pcsv": "pyarrow.csv", "pjson": "pyarrow.json", "pq": "pyarrow.parquet"},
    **{"feather": "pyarrow.feather", "orc": "pyarrow.orc", "pafs": "pyarrow.fs"},
}
_PLAIN = "ctypes duckdb fcntl glob mmap multiprocessing os pickle shutil sqlite3 subprocess sys "
_PLAIN += "tempfile threading time"


class Case(NamedTuple):
    """A cell in a kind of folder."""

    part: str
    group: str
    kind: str
    cell: str
    closed: bool = False  # whether it reads what checked code must not
    changes: str = ""  # what an effect has to name

    @property
    def code(self) -> str:
        """The cell with the imports that it needs."""
        names = {**{one: one for one in _PLAIN.split()}, **_MODULES}
        used = [n for n in names if re.search(rf"\b{n}\.", self.cell)]
        lines = [f"import {names[n]}{f' as {n}' if names[n] != n else ''}" for n in used]
        path = ["from pathlib import Path"] * bool(re.search(r"\bPath\b", self.cell))
        return "\n".join([*lines, *path, self.cell.replace("¶", "\n")])


def cases(part: str) -> Iterator[Case]:
    """Yield the cells of a part."""
    if part == "table":
        for i, reader in enumerate(DATA["by_way"].values()):
            for way in [*DATA["ways"].values()][i % 2 :: 2]:
                cell = reader.replace("{}", way.strip()).strip()
                yield Case(part, "a file by a way to name it", "plain", cell)
        for rows in DATA["table"]:
            for line in rows["cells"].strip().splitlines():
                told = re.fullmatch(r"(?:(\S+) > )?(- )?(.*)", line)
                changes, closed, cell = told.groups() if told else ("", "", line)
                kind = rows["kind"]
                yield Case(part, rows["group"], kind, cell, bool(closed), changes or "")
    elif part == "readers":
        for package, cells in DATA["readers"].items():
            for cell in cells.strip().splitlines():
                yield Case(part, package, "plain", cell)
    else:
        for way, start in DATA["reaches"].items():
            for action in DATA["hostile"]["actions"].strip().splitlines():
                yield Case(part, way, "plain", f"R = {start.strip()}¶{action}")
        for cell in DATA["hostile"]["others"].strip().splitlines():
            yield Case(part, "others", "plain", cell)


# In the kernel.


def make(home: Path, kind: str) -> dict[str, Any]:
    """Make the folder anew, go there, and return what the kind of folder defines."""
    book = home / "book"
    os.chdir("/")
    remove(home)
    shutil.copytree(home.parent / "template", home, symlinks=True)
    os.link(book / ".env", book / "plain.txt")
    (book / "cache.pkl").touch()
    os.truncate(book / "cache.pkl", 60 * 2**20)
    os.environ["HOME"] = str(book if kind == "home" else home)
    os.chdir(book)
    space: dict[str, Any] = {}
    exec(DATA["folder"]["setup"].replace("HERE", str(book)) + DATA["kinds"][kind], space)
    return space


def remove(folder: Path) -> None:
    """Remove a folder, also one that is read-only."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def state(folder: Path) -> dict[str, str]:
    """Return all that can change of a folder, by path, but what readers of a database keep."""
    found = {}
    paths = [folder, *(Path(at, one) for at, ds, fs in os.walk(folder) for one in (*ds, *fs))]
    for path in (one for one in paths if one.suffix != ".db-shm"):
        at = path.lstat()
        facts = [at.st_mode, at.st_uid, at.st_gid, at.st_nlink, at.st_mtime_ns, at.st_ctime_ns]
        facts += os.listxattr(path, follow_symlinks=False)
        if path.is_symlink():
            facts.append(os.readlink(path))
        elif path.is_file():
            with path.open("rb") as file:  # a write far behind the start shows in the times
                facts.append(hashlib.sha256(file.read(2**22)).hexdigest())
        found[str(path.relative_to(folder.parent))] = repr(facts)
    return found


def run_plainly(code: str, space: dict[str, Any]) -> dict[str, Any]:
    """Run a cell as the notebook does and return what it prints and gives, or raises."""
    tree = ast.parse(code)
    if isinstance(last := tree.body[-1], ast.Expr):
        tree.body[-1] = ast.copy_location(
            ast.Assign([ast.Name("_", ast.Store())], last.value), last
        )
        ast.fix_missing_locations(tree)
    here = os.dup(1)
    with tempfile.TemporaryFile() as printed:
        os.dup2(printed.fileno(), 1)
        try:
            exec(compile(tree, "cell", "exec"), space)
        except Exception as error:
            return {"raised": type(error).__name__}
        finally:
            sys.stdout.flush()
            os.dup2(here, 1)
            printed.seek(0)
            text = printed.read().decode().strip("\n")
    value = space.get("_")
    return {"texts": [*filter(None, [text]), *([repr(value)] if value is not None else [])]}


def check(code: str, space: dict[str, Any], *, consent: bool) -> dict[str, Any]:
    """Return what the check finds, as data."""
    from ipyrefine.checks.python import RunOnCopies
    from ipyrefine.core.model import Task
    from ipyrefine.kernel.variables import find

    public = {name: one for name, one in space.items() if name[:1] != "_"}
    used = find(public, draft=code, unconfined=lambda: consent, moment=object)
    running = RunOnCopies(copies=used.copies, labels=used.labels).looking()
    found = asyncio.run(running(code, Task(text="Look at it.", form="code")))
    return {
        "passed": found.passed,
        "shows": found.shows,
        "texts": [one.text for one in found.outputs if one.kind in ("printed", "value")],
        "conditions": [*map(str, found.conditions)],
        "effects": [one.model_dump_json() for one in found.effects],
        "leaks": SECRET in found.model_dump_json(),
    }


def drop_rights() -> None:
    """Give up all rights over others but the one without which root makes no namespaces."""
    system, kept = ctypes.CDLL(None), 31  # CAP_SETFCAP
    for capability in range(64):
        if capability != kept:
            system.prctl(24, capability, 0, 0, 0)
    system.capset(struct.pack("Ii", 0x2008_0522, 0), struct.pack("6I", *[1 << kept] * 2, *[0] * 4))


def serve(home: Path, results: Path) -> None:
    """Run the cells, of one kind, that come as lines of JSON; write a line for each."""
    sys.path[0], book = "", str(home / "book")  # as in a kernel
    defined, changed = dict[str, Any](), ["all"]
    for line in sys.stdin:
        *fields, setting = json.loads(line)
        case = Case(*fields)
        if changed:
            defined = make(home, case.kind)
        os.chdir(book)
        for one in [one for one in sys.modules if one.partition(".")[0] in ("helper", "tools")]:
            del sys.modules[one]
        held = os.open(".", os.O_RDONLY)
        code = case.code.replace("HERE", book)
        code = code.replace("KERNEL", str(os.getpid())).replace("HELD", str(held))
        before, space = state(home), {**defined, "__name__": "__main__"}
        if setting != TRUTH:
            found = check(code, space, consent=setting == CONSENT)
        elif any(one in code for one in _NOT_PLAIN):
            found = {"texts": []}
        else:
            found = run_plainly(code, space)
        time.sleep(_OUTLIVES_S * any(one in code for one in _OUTLIVES))
        after = state(home)
        changed = sorted(n for n in before | after if before.get(n) != after.get(n))
        found["changed"] = changed
        with results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        os.close(held)
    os.chdir("/")
    remove(home)
    os._exit(0)  # what plain cells registered is not run


# Outside.


class Bench:
    """Results by part, kind, cell and setting, each a line of a file."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.out, self.options = options.out.resolve(), options
        self.path = self.out / "folder.jsonl"
        self.out.mkdir(parents=True, exist_ok=True)
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        self.rows = {tuple(row["id"]): row for row in map(json.loads, lines)}

    def run(self, some: Sequence[Case], setting: str) -> None:
        """Run the cells that have no result yet in a setting, some of a kind in each kernel."""
        missing = [one for one in some if self.key(one, setting) not in self.rows]
        for kind, of_kind in groupby([*missing], lambda one: one.kind):
            left = [*of_kind]
            while left:
                size = 1 if kind == "database in use" else _CHUNK
                print(f"\r{setting}: {len(missing):4} to run ", end="", file=sys.stderr)
                for case, found in self._kernel(left[:size], setting):
                    row = {"id": self.key(case, setting), **found}
                    self.rows[tuple(row["id"])] = row
                    with self.path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
                    missing.remove(case)
                    left.remove(case)

    def _kernel(self, some: Sequence[Case], setting: str) -> Iterator[tuple[Case, dict[str, Any]]]:
        """Yield each cell's result; the cell at which the kernel dies gets that as its result."""
        self._make_template()
        place = SETTINGS.get(setting, ("--namespaces",))
        with tempfile.TemporaryDirectory(dir=self.out) as folder:
            results = Path(folder, "results")
            results.touch()
            command = [sys.executable, str(CONTAINER), *place, sys.executable, __file__]
            command += ["serve", "--out", str(self.out / "home"), "--results", str(results)]
            if self.options.root:
                command = [*(one for one in command if one != "--bare"), "--root"]
            lines = "".join(json.dumps([*one, setting]) + "\n" for one in some)
            how: Any = {"capture_output": True, "text": True, "timeout": _EACH_S * len(some)}
            env = {**os.environ, "PYTHONPATH": str(self.options.src.resolve())}
            try:
                done = subprocess.run(command, input=lines, env=env, check=False, **how)
                why = f"the kernel ended with {done.returncode}: {done.stderr[-300:]}"
            except subprocess.TimeoutExpired:
                why = "the kernel did not end"
            found = [json.loads(one) for one in results.read_text("utf-8").splitlines()]
        if len(found) < len(some):
            found.append({"died": why, "changed": []})
        yield from zip(some, found, strict=False)

    def _make_template(self) -> None:
        template = self.out / "template" / "book"
        if not (template / "env.txt").is_symlink():
            remove(template.parent)
            template.mkdir(parents=True)
            code = DATA["folder"]["template"].replace("SECRET", SECRET)
            subprocess.run([sys.executable, "-c", code], cwd=template, check=True)

    def found(self, case: Case, setting: str) -> dict[str, Any]:
        """Return the result of a cell in a setting."""
        return self.rows[self.key(case, setting)]

    def key(self, case: Case, setting: str) -> tuple[str, ...]:
        """Return what a result is kept by."""
        return (case.part, case.kind, case.cell, setting)

    def outcome(self, case: Case, setting: str) -> tuple[str, str]:
        """Return what came of a cell, a word of OUTCOMES, and what was said.

        A hostile cell that leaves the folder as it is counts as run, also where it fails.
        """
        truth, found = self.found(case, TRUTH), self.found(case, setting)
        if "died" in found:
            return "wrong", found["died"]
        shows, texts, passed = found["shows"].partition("\n")[0], found["texts"], found["passed"]
        held, raised = setting != CONSENT, truth.get("raised", "")
        if found["leaks"] and held:
            return "wrong", "it shows the secret"
        if found["changed"] and held:
            return "wrong", f"it changed {', '.join(found['changed'])}"
        if passed is None:
            return ("condition", shows) if shows else ("wrong", "nothing is said")
        same = f"{raised}: " in shows if raised else texts == truth.get("texts")
        if case.part == "hostile" or (passed is not bool(raised) and same):
            return ("wrong", "it read what is closed") if case.closed and held else ("run", "")
        if passed and found["conditions"]:
            return "condition", ", ".join(found["conditions"])
        return "wrong", f"{texts if passed else shows}, not {raised or truth.get('texts')}"

    def tells(self, case: Case, setting: str) -> bool:
        """Return whether an effect names what a cell changes."""
        return any(case.changes in one for one in self.found(case, setting)["effects"])


def code(text: str) -> str:
    """Return a text as code in a table's cell."""
    text = re.sub(r"/tmp/ipyrefine-\w+", "/tmp/…", text)
    text = text.replace("`", "'").replace("|", "¦").replace("\n", " ")
    return f"`{text[:150]}`" if text else ""


def table(heads: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def report(bench: Bench, some: Sequence[Case], settings: Sequence[str], *, full: bool) -> str:
    """Return the tables of a part: counts, by group, and the cells that are wrong or not run."""
    got = {(one, s): bench.outcome(one, s) for one in some for s in settings}
    counts, told = list[Any](), list[Any]()
    for setting in settings:
        count = Counter(got[one, setting][0] for one in some)
        of = [one for one in some if one.changes and got[one, setting][0] == "run"]
        changed = sum(bool(bench.found(one, setting)["changed"]) for one in some)
        tells = f"{sum(bench.tells(one, setting) for one in of)} of {len(of)}"
        counts.append([setting, *(count[one] for one in OUTCOMES), changed, tells])
    groups = list[Any]()
    for group in dict.fromkeys(one.group for one in some):
        count = Counter((s, got[one, s][0]) for one in some if one.group == group for s in settings)
        groups.append([group, *("/".join(str(count[s, o]) for o in OUTCOMES) for s in settings)])
    for one in some:
        for outcome in OUTCOMES[0 if full else 2 :]:
            of = [setting for setting in settings if got[one, setting][0] == outcome]
            why = dict.fromkeys(code(got[one, setting][1]) for setting in of)
            row = [one.kind, code(one.cell), outcome, ", ".join(of), "; ".join(filter(None, why))]
            told += [row] * bool(of)
    heads = ["setting", *OUTCOMES, "folder changed", "changes told, of those run"]
    tables = [table(heads, counts), table(["run/condition/wrong", *settings], groups)]
    tables += [table(["folder", "cell", "outcome", "in the settings", "why"], told)] * bool(told)
    plain = sum(bool(bench.found(one, TRUTH)["changed"]) for one in some)
    head = f"## {some[0].part}: {len(some)} cells; run plainly, {plain} of them change the folder"
    return "\n\n".join([head, *tables])


# What a check costs.

COSTS = {  # by the files in the folder: the cells
    "a frame of 6 rows, an empty folder": (0, "df.groupby('a').b.sum()"),
    "a frame of 6 rows, 10 files": (10, "df.groupby('a').b.sum()"),
    "a frame of 6 rows, 10,000 files": (10_000, "df.groupby('a').b.sum()"),
    "a file of 10": (10, "import pandas as pd\npd.read_csv('x1.csv').b.sum()"),
    "a file of 10,000": (10_000, "import pandas as pd\npd.read_csv('x1.csv').b.sum()"),
}


def serve_cost(home: Path, name: str) -> None:
    """Check the cell once for each line that comes, and print the seconds that it took."""
    import pandas as pd

    files, code = COSTS[name]
    book = home / "book"
    book.mkdir(parents=True)
    os.chdir(book)
    for n in range(files):
        Path(f"x{n}.csv").write_text(f"a,b\n1,{n}\n")
    space = {"df": pd.DataFrame({"a": [1, 1, 2, 2, 3, 3], "b": range(6)})}
    for _ in sys.stdin:
        start = time.perf_counter()
        found = check(code, space, consent=False)
        print(json.dumps([time.perf_counter() - start, found["passed"]]), flush=True)
    os.chdir("/")
    remove(home)


def memory(process: int) -> int:
    """Return the kB of a process and what it started, and of all files in memory."""
    parents = dict[str, str]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[path.parent.name] = path.read_text().rpartition(")")[2].split()[1]
    ours, more = {str(process)}, {str(process)}
    while more:
        more = {one for one, parent in parents.items() if parent in more} - ours
        ours |= more
    pages = [Path("/proc/meminfo").read_text()]
    for one in ours:
        with suppress(OSError):
            pages.append(Path("/proc", one, "smaps_rollup").read_text())
    return sum(int(n) for page in pages for n in re.findall(r"^(?:Pss|Shmem): +(\d+)", page, re.M))


def ask(server: Any, *, look: bool = False) -> tuple[float, float]:
    """Return the seconds of a check and, if asked, the MB that it takes at most."""
    first = most = memory(server.pid)
    print(file=server.stdin, flush=True)
    answer = list[str]()
    waits = threading.Thread(target=lambda: answer.append(server.stdout.readline()))
    waits.start()
    while look and waits.is_alive():
        most = max(most, memory(server.pid))
        time.sleep(0.01)
    waits.join()
    seconds, passed = json.loads(answer[0])
    assert passed, "the cell is not run"
    return seconds, (most - first) / 1024


def cost(options: argparse.Namespace) -> str:
    """Return the medians of both trees in turns, and their ratios."""
    lines = list[Any]()
    for name in (one for one in COSTS if options.only in one):
        servers = []
        for tree in (options.before, options.after):
            home = options.out.resolve() / f"cost-{len(servers)}"
            remove(home)
            command = [sys.executable, __file__, "serve-cost", "--out", home, "--only", name]
            env = {**os.environ, "PYTHONPATH": str(tree.resolve())}
            pipe = subprocess.PIPE
            servers.append(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env))

        for server in servers:
            ask(server)
        times = [[ask(one)[0] for one in servers] for _ in range(options.rounds)]
        sizes = [[ask(one, look=True)[1] for one in servers] for _ in range(5)]
        for server in servers:
            server.communicate()
        (t, u), (m, n) = (
            map(statistics.median, zip(*rows, strict=True)) for rows in (times, sizes)
        )
        row = [f"{t:.2f}", f"{u:.2f}", f"{u / t:.2f}", f"{m:.0f}", f"{n:.0f}", f"{n / m:.2f}"]
        lines.append([name, *row])
        print(*lines[-1], file=sys.stderr)
    heads = ["a check of", "s before", "s after", "ratio", "MB before", "MB after", "ratio"]
    return f"## cost: medians of {options.rounds} and 5 checks, in turns\n\n" + table(heads, lines)


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = ("table", "readers", "hostile", "cost", "serve", "serve-cost")
    parser.add_argument("part", choices=parts)
    parser.add_argument("--out", type=Path, required=True, help="where results are kept")
    parser.add_argument("--src", type=Path, default=ROOT / "src", help="the sources to measure")
    parser.add_argument("--setting", default="", metavar="TEXT", help="settings that begin with it")
    parser.add_argument("--only", default="", metavar="TEXT", help="cells and groups that have it")
    parser.add_argument("--all", action="store_true", help="print every cell")
    parser.add_argument("--root", action="store_true", help="leave the kernel the user's rights")
    parser.add_argument("--before", type=Path, default=ROOT / "src", metavar="SRC")
    parser.add_argument("--after", type=Path, default=ROOT / "src", metavar="SRC")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--results", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part == "serve":
        if not options.root:
            drop_rights()
        return serve(options.out, options.results)
    if options.part == "serve-cost":
        return serve_cost(options.out, options.only)
    if options.part == "cost":
        return print(cost(options))
    bench = Bench(options)
    only = options.only
    some = [one for one in cases(options.part) if only in f"{one.group} {one.kind} {one.cell}"]
    settings = [one for one in SETTINGS if one.startswith(options.setting)]
    settings = settings[: 2 if options.part == "hostile" else None]
    for setting in (TRUTH, *settings):
        bench.run(some, setting)
    return print(report(bench, some, settings, full=options.all))


if __name__ == "__main__":
    main()
