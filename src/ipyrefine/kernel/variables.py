"""The notebook's variables: which of them a model is shown, and copies of them for checked code.

Checked code gets copies of the names that it uses, made when it is run. One that a user named is
copied wherever code is run; the others only where the sandbox is closed, so that nothing can leave
it. What looks like a secret is never shown nor copied.
"""

import ast
import asyncio
import json
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain, islice
from types import ModuleType
from typing import Any, NamedTuple
from weakref import WeakSet

from ipyrefine.core.model import FirstRows, Material
from ipyrefine.core.points import first_line
from ipyrefine.core.scopes import names_needed
from ipyrefine.core.syntax import try_parse
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.kernel.cells import UNDEFINED, explain
from ipyrefine.kernel.copying import TOKENS_STAY, Copy, is_only_code, looks_secret
from ipyrefine.kernel.describe import (
    describe,
    is_array,
    is_connection,
    is_frame,
    label,
    with_columns,
)
from ipyrefine.kernel.folder import Folder, look
from ipyrefine.kernel.names import IPYTHON, names_in_draft, names_in_prose, writes_anew
from ipyrefine.kernel.snapshot import Snapshot, take
from ipyrefine.sandbox.programs.overlay import FILE
from ipyrefine.sandbox.sandbox import FileContent, SharedBytes, import_path, run_python

_MAX_FOUND = 20  # names
_COLLECTIONS = (dict, frozenset, list, set, tuple)
_LISTED, _COPIES = "variables.json", "variables.pickle"  # as the sandbox's program knows them
_KEPT = 2  # snapshots
_MAX_TAKEN = 64 * 2**20  # bytes of what texts were run on
_UNREADABLE = re.compile(r"^ipyrefine: the variable (\w+) cannot be read here", re.MULTILINE)
_NOT_CLOSED = "code is not cut off from the network here, so -v must name it"
NOT_RUN_HERE = "Not run: this system can't shut code in. --set unconfined=yes runs it."
NEEDS_SECRET = "It depends on a secret"  # how code failed, or a result that it gives
# Words of code that may read a file, the environment or an answer of a server.
_READS = re.compile(
    r"\b(?:open|Path|exec|eval|FileIO|memmap|imread|\w*sql|\w*load\w*|genfromtxt|fromfile)\s*\(|"
    r"\b(?:os|pathlib|glob|fileinput|linecache|subprocess|socket|urllib|requests|httpx2?|sqlite3|"
    r"duckdb|pyarrow|importlib|ctypes|builtins|__import__|__builtins__)\b|"
    r"\b(?:read|scan)_\w+\s*\("
)
_IMPORTED = re.compile(r"^\s*(?:from|import)\s+(\w+)", re.MULTILINE)
_ALIVE: "WeakSet[Copies]" = WeakSet()


async def _no_cells() -> Sequence[str]:
    return ()


def release_copies(but: "Copies | None" = None) -> None:
    """Release all copies that no check is using; they are made again where they are needed.

    Those that some copies' texts were run on last stay, as these may be run on them once more.
    """
    for one in _ALIVE:
        one.release(keep=one is but)


class Taken(NamedTuple):
    """What brought a run of some code what it uses of the notebook, and when that was."""

    moment: Any
    folder: Folder
    files: Mapping[str, FileContent] | None  # None: they are not kept


def _bytes_of(content: FileContent) -> int:
    if isinstance(content, SharedBytes):
        here = content.descriptor
        return len(content.content) if here is None else os.fstat(here).st_size
    return len(content)


class Copies:
    """Copies of the notebook's variables for checked code, made as it is run.

    Args:
        namespace: returns what the notebook holds now, by name.
        named: those of which a copy goes anywhere.
        absent: why there is no copy of some names, as a clause, by name.
        moment: returns something else once a cell has run, so that what was copied is outdated.
        unconfined: returns whether the user lets code run on copies where it can't be shut in.
        above: returns how many folders above the notebook's code may read, too.
        notebook: returns what the notebook's cells hold, in their order, where that is known.
    """

    def __init__(
        self,
        namespace: Callable[[], Mapping[str, Any]] = dict,
        *,
        named: Iterable[str] = (),
        absent: Mapping[str, str] | None = None,
        moment: Callable[[], Any] = lambda: None,
        unconfined: Callable[[], bool] = bool,
        above: Callable[[], int] = int,
        notebook: Callable[[], Awaitable[Sequence[str]]] = _no_cells,
    ) -> None:
        self._namespace, self._named, self._moment = namespace, {*named}, moment
        self._notebook = notebook
        self._unconfined, self._above, self._folder = unconfined, above, Folder()
        _ALIVE.add(self)
        self._given = dict(absent or {})
        self._snapshots: OrderedDict[Any, Snapshot] = OrderedDict()
        self._taken: dict[str, Taken] = {}  # by the code
        self._copies: dict[str, Copy] = {}  # the latest of each name

    @property
    def are_there(self) -> bool:
        """Whether there is anything of which code may get a copy."""
        return not all(name in self._given for name in filter(_is_users, self._namespace()))

    @property
    def names(self) -> set[str]:
        """The names of the notebook, with or without a copy."""
        return {*filter(_is_users, self._namespace()), *self._given}

    def copied(self, names: Iterable[str]) -> list[str]:
        """Return those of the names that code got a copy of."""
        return [name for name in names if name in self._copies and self._copies[name].stop]

    async def may_run(self) -> bool:
        """Return True if code may be run unasked: nothing can leave, or the user lets it."""
        return self._unconfined() or await asyncio.to_thread(sandbox_is_closed)

    async def files(self, *sources: str) -> dict[str, FileContent]:
        """Return the files that bring a run of some code what it uses of the notebook."""
        moment = self._moment()
        files = await self._files(*sources)
        if len(sources) == 1:
            self._taken.pop(sources[0], None)
            self._taken[sources[0]] = Taken(moment, self._folder, files)
            self._keep_few()
        return files

    def taken(self, source: str) -> Taken | None:
        """Return what the latest run of some code was given; None where it was never run."""
        return self._taken.get(source)

    def _keep_few(self) -> None:
        """Keep the files of the latest runs, as far as there is room for them."""
        kept = dict[int, int]()  # bytes of contents, which several may share
        for source, one in reversed([*self._taken.items()]):
            more = kept | {id(c): _bytes_of(c) for c in (one.files or {}).values()}
            if sum(more.values()) > _MAX_TAKEN:
                self._taken[source] = one._replace(files=None)
            else:
                kept = more

    async def _files(self, *sources: str) -> dict[str, FileContent]:
        whole = self._namespace()
        space = {n: whole[n] for n in whole if _is_users(n) and n not in self._given}
        closed = await self.may_run()
        TOKENS_STAY.set(await asyncio.to_thread(sandbox_is_closed))
        if not closed:  # nor what a function uses may go along
            kept = {n for n, one in space.items() if n in self._named or type(one) is ModuleType}
            self._copies |= {n: Copy(name=n, reason=_NOT_CLOSED) for n in space.keys() - kept}
            space = {n: one for n, one in space.items() if n in kept}
        needed = sorted(set[str]().union(*map(names_needed, sources)) & space.keys())
        beside: dict[str, FileContent] = {}
        if closed:
            self._folder = await asyncio.to_thread(look, self._above())
            beside |= {FILE: self._folder.plan} if self._folder.root else {}
        if not needed:
            return beside
        snapshot = await self._take(needed, space)
        found = {one.name: one for one in snapshot.copies}
        self._copies |= found
        imports = {n: one.module for n, one in found.items() if one.module}
        listed = {
            "path": import_path(),
            "descriptor": snapshot.content.descriptor,
            "variables": {n: (one.start, one.stop) for n, one in found.items() if one.stop},
            "modules": imports,
            "submodules": _submodules(imports, sources),
        }
        return {**beside, _LISTED: json.dumps(listed), _COPIES: snapshot.content}

    async def _take(self, needed: list[str], space: Mapping[str, Any]) -> Snapshot:
        key = (self._moment(), *needed)
        if key not in self._snapshots:
            self._snapshots[key] = await take(needed, space)
        self._snapshots.move_to_end(key)
        while len(self._snapshots) > _KEPT:
            self._snapshots.popitem(last=False)
        return self._snapshots[key]

    def release(self, *, keep: bool = False) -> None:
        """Let go of the copies; on request, without those of the latest runs."""
        self._snapshots.clear()
        if not keep:
            self._taken = {n: one._replace(files=None) for n, one in self._taken.items()}

    def conditions(self, code: str, *calls: str) -> tuple[FirstRows, ...]:
        """Return the frames that some code needs and of which only the first rows were there.

        With calls, only what these depend on counts.
        """
        cut = {name: one for name, one in self._copies.items() if one.rows is not None}
        if not cut:
            return ()
        modules = [n for n, one in self._copies.items() if one.module]
        imports = "".join(f"import {name}\n" for name in modules)
        needed = [*names_needed(imports + code, *calls)]
        for name in needed:  # what its functions use
            uses = self._copies[name].uses if name in self._copies else ()
            needed += [one for one in uses if one not in needed]
        return tuple(
            FirstRows(name=name, rows=one.rows or 0, of=one.of)
            for name, one in cut.items()
            if name in needed
        )

    def may_compute(self, *sources: str) -> bool:
        """Return True if code's results may come from the user's variables or files."""
        space = self._namespace()
        words = {word for source in sources for word in re.findall(r"\w+", source)}
        data = (n for n in words if n in space and _is_users(n) and not is_only_code(space[n]))
        imported = {name for source in sources for name in _IMPORTED.findall(source)}
        of_folder = any(os.path.exists(one) or os.path.exists(f"{one}.py") for one in imported)
        return of_folder or any(True for _ in data) or any(map(_READS.search, sources))

    async def explain(self, fault: str, code: str) -> str:
        """Return why code fails; of a name that is not defined, with the cell that defines it."""
        cells = await self._notebook() if UNDEFINED.search(fault) else ()
        return explain(fault, ["" if code.strip() in one else one for one in cells])

    def explain_absence(self, error: str, stderr: str) -> str:
        """Return why code that lacks a variable cannot be judged; empty for other errors."""
        if NEEDS_SECRET in error:
            return "Not run: it depends on a secret, which checked code does not get."
        missing = UNDEFINED.search(error)
        if missing is None:
            return ""
        name, space = missing[1], self._namespace()
        copy = self._copies.get(name)
        reason = self._given.get(name) or (copy.reason if copy else "")
        if reason:
            return f"Not run: the code needs {name}, and {reason}."
        if name in _UNREADABLE.findall(stderr) or (name in space and _is_users(name)):
            return f"Not run: the code needs {name}, which cannot be read in the sandbox."
        return ""


def _is_users(name: str) -> bool:
    return not IPYTHON.fullmatch(name)


def _submodules(modules: Mapping[str, str], sources: Iterable[str]) -> list[str]:
    """Return the modules imported here below those that code uses, if it may use them too."""
    packages = {name.partition(".")[0] for name in modules.values()}
    trees = [tree for source in sources if modules and (tree := try_parse(source))]
    used = {n.attr for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return sorted(
        name
        for name in sys.modules
        if name.partition(".")[0] in packages and name.rpartition(".")[2] in used
    )


class Variables:
    """Variables that a task is about.

    Args:
        named: those that the user named, by name; shown with their values.
        found: those that the cell and the cells before it use, by name.
        copies: copies for checked code; by default of these.

    Attributes:
        left_out: a sentence on the found ones that look like a secret, for which they are not
            there; empty for none.

    Raises:
        UsageError: a named one looks like a secret.
    """

    def __init__(
        self,
        named: Mapping[str, Any] | None = None,
        found: Mapping[str, Any] | None = None,
        *,
        copies: Copies | None = None,
    ) -> None:
        self.named = dict(named or {})
        for name, value in self.named.items():
            if looks_secret(name, value):
                raise UsageError(f"{name} looks like a secret, so no model is shown it.")
        used = {n: v for n, v in (found or {}).items() if n not in self.named}
        secrets = [name for name, value in used.items() if looks_secret(name, value)]
        self.found = {name: value for name, value in used.items() if name not in secrets}
        self._all = {**self.named, **self.found}
        names = ", ".join(secrets)
        self.left_out = f"{names} left out: looks like a secret." if names else ""
        everything = {**self._all, **used}
        self.copies = copies or Copies(lambda: everything, named=self.named)

    @classmethod
    def of(cls, variables: "Variables | Mapping[str, Any] | None") -> "Variables":
        """Return variables as they are, or those of a dict as named ones."""
        return variables if isinstance(variables, cls) else cls(variables)  # type: ignore[arg-type]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return tuple(self._all)

    def materials(self, room: int) -> tuple[Material, ...]:
        """Return what a model is shown of them; `room` is for the found ones only."""
        whole, structure = (self._texts(values=values, room=room) for values in (True, False))
        whole |= {name: describe(name, one, values=True) for name, one in self.named.items()}
        return tuple(
            Material(
                kind="variable",
                name=name,
                phrase=label(name, value),
                text=whole[name],
                computed=name in self.found,
                structure=structure[name] if name in self.found else "",
            )
            for name, value in self._all.items()
        )

    def _texts(self, *, values: bool, room: int) -> dict[str, str]:
        texts = {}
        for name, value in self.found.items():
            text = describe(name, value, values=values)
            texts[name] = text if len(text) <= room else first_line(text)
            room -= len(texts[name])
        return texts

    @property
    def hold_data(self) -> bool:
        """Whether there are data among them."""
        return any(map(_is_data, self._all.values()))


def gather(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named variables of a namespace.

    Raises:
        UsageError: a variable does not exist.
    """
    variables = {}
    for name in names:
        if name not in namespace:
            raise UsageError(f"No variable named {name!r}.{did_you_mean(name, namespace, n=2)}")
        variables[name] = namespace[name]
    return variables


def find(
    namespace: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    *,
    text: str = "",
    bare: bool = False,
    draft: str = "",
    named: Iterable[str] = (),
    without: Iterable[str] = (),
    more: Iterable[str] = (),
    cells: Sequence[Sequence[str]] = (),
    hidden: Collection[str] = (),
    **how: Any,
) -> Variables:
    """Return the variables that a cell is about.

    Args:
        namespace: the user's variables, without IPython's own, or what returns them.
        text: the cell's request in words.
        bare: whether data are meant without backticks, too, as in a request for code.
        draft: the cell's code.
        named: names that the user gave; they must exist.
        without: names to leave out; ``all`` for all.
        more: further names that it may be about.
        cells: names that each of the latest cells used, in their order; the last cell first.
        hidden: names that no model may be shown, but which checked code gets; one of `named` is
            shown all the same.
        **how: ``moment``, ``unconfined``, ``above`` and ``notebook``, as for `Copies`.

    Raises:
        UsageError: a named variable does not exist or looks like a secret, or a name to leave out
            is also given.
    """
    holds = namespace if callable(namespace) else lambda: namespace
    space, named, without = holds(), dict.fromkeys(named), set(without)
    if both := without & named.keys():
        raise UsageError(f"-v {min(both)} and --no-var {min(both)} contradict each other.")
    chosen = gather(named, space)
    words = [w for w in re.findall(r"\w+", text) if bare and w[1:] and _is_data(space.get(w))]
    asked = dict.fromkeys([*names_in_draft(draft), *names_in_prose(text), *words, *more])
    closed = {*space} if "all" in without else {*without, *hidden}
    seen = {n: value for n, value in space.items() if n not in closed and n[:1] != "_"}
    data = [name for name in seen if _is_data(seen[name])]
    shown = [name for name in asked if name in seen]
    if cells and bare:
        near = dict.fromkeys([*chain(*cells), *reversed(data)])
        shown += with_columns(text, {n: seen[n] for n in near if is_frame(seen.get(n))}, shown)
    if not (draft or writes_anew(text) or {*shown, *chosen} & {*data}):
        used = ([name for name in cell if name in data] for cell in cells)
        latest = next(filter(None, used), [])
        shown += latest if len(latest) < 3 else (latest[0], latest[-1])
    found = {name: seen[name] for name in islice(dict.fromkeys(shown), _MAX_FOUND)}
    left_out = dict.fromkeys(space if "all" in without else without, "--no-var leaves it out")
    absent = {name: reason for name, reason in left_out.items() if name not in chosen}
    return Variables(chosen, found, copies=Copies(holds, named=chosen, absent=absent, **how))


def _is_data(value: Any) -> bool:
    is_data = is_frame(value) or is_array(value) or is_connection(value)
    return is_data or type(value) in _COLLECTIONS


@cache
def sandbox_is_closed() -> bool:
    """Return True if the sandbox keeps code from the network, keys, files and other processes here.

    It is run once to find out.
    """
    if sys.platform == "emscripten":
        return False
    with ThreadPoolExecutor(1) as pool:  # a loop may be running in this thread
        protection = pool.submit(lambda: asyncio.run(run_python(""))).result().protection
    return all((protection.network, protection.keys, protection.files, protection.processes))


def wants_rows(error: str) -> bool:
    """Return True if code may have failed only as further rows of a frame are not there."""
    return re.match(r"(?:AssertionError|IndexError)\b", error) is not None
