"""Look at the notebook's folder, for checked code to find it as it is.

It can read all but dot files, files that hold a secret by their name or their first 4 kB, and links
that lead out. Those are there and hold nothing, and code that opens one is not judged. Python may
run from a folder that is hidden: that can be read.
"""

import os
import re
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from ipyrefine.kernel.redaction import find_secrets, has_known_form, is_secret_name
from ipyrefine.sandbox.sandbox import import_path, working_folder

_MOST, _MOST_HIDDEN = 20_000, 500  # entries that are looked at; a folder beyond them is closed
_START = 4_096  # bytes of a file
_MOST_ABOVE = 3  # folders
_KEY_FILE = re.compile(r"(?i)id_(?:rsa|dsa|ecdsa|ed25519)\b.*|.*\.(?:pem|key|p12|pfx|jks|kdbx|ppk)")
_KEPT = 50_000  # names, and files, of which it is known whether they are secret

_ABOVE = "above this folder. --set above={} lets checked code read there"
CLOSED = "it is hidden, holds a secret, or leads out of the folder"

State = tuple[int, int, int]  # of a file: bytes, time, inode


class Folder(NamedTuple):
    """The notebook's folder as checked code finds it, or one above.

    Attributes:
        root: its path; empty where there is nothing to find.
        here: where the notebook works, as a path in it.
        own: paths in it that Python runs from.
        closed: what is in it that can't be read, by path, and the kind of stand-in for it.
        states: the files that can be read.
    """

    root: str = ""
    here: str = ""
    own: tuple[str, ...] = ()
    closed: Mapping[str, State | str] = {}
    states: Mapping[str, State] = {}

    @property
    def plan(self) -> str:
        """What `sandbox.programs.overlay` has to know, as a literal."""
        plan = {name: getattr(self, name) for name in ("root", "here", "own", "closed")}
        return ascii({**plan, "home": os.path.realpath(os.path.expanduser("~"))})

    def changed(self) -> list[str]:
        """Return the files that are not as they were; notebooks apart, which are saved."""
        paths = (path for path in self.states if not path.endswith(".ipynb"))
        full = {path: os.path.join(self.root, path) for path in paths}
        found = [path for path, one in full.items() if _state(one) != self.states[path]]
        return [os.path.relpath(path, self.here or ".") for path in found]


def look(above: int = 0) -> Folder:
    """Look at the folder that the notebook works in, or at the one so many above it."""
    root = here = os.path.realpath(working_folder())
    for _ in range(above):
        root = os.path.dirname(root)
    if root == os.path.dirname(root) or sys.platform == "emscripten":
        return Folder()
    python = (sys.prefix, sys.base_prefix, *import_path())
    own = {os.path.relpath(one, root) for one in map(os.path.realpath, python)} - {"."}
    own = {one for one in own if one.partition(os.sep)[0] != ".."}
    looked = _Look(root, own)
    looked.walk()
    if "" in looked.closed:  # there is too much in it
        return Folder()
    return Folder(root, os.path.relpath(here, root), (*own,), looked.closed, looked.states)


class _Look:
    """One look at a folder, level by level; at what is hidden last."""

    def __init__(self, root: str, own: set[str]) -> None:
        self.closed, self.states = dict[str, State | str](), dict[str, State]()
        self._root, self._own, self._inodes = root, own, set[int]()
        self._hidden: list[str] = []

    def walk(self) -> None:
        self._read([""], _MOST, is_hidden=False)
        self._read(self._hidden, _MOST_HIDDEN, is_hidden=True)
        for path in [path for path, one in self.states.items() if one[2] in self._inodes]:
            self.closed[path] = self.states.pop(path)  # another name of something hidden

    def _read(self, folders: list[str], left: int, *, is_hidden: bool) -> None:
        for folder in folders:  # it grows
            try:
                with os.scandir(os.path.join(self._root, folder)) as found:
                    entries = sorted(found, key=lambda one: one.name) if left > 0 else []
            except OSError:
                entries = []
            left -= len(entries)
            if left <= 0:
                self.closed[folder] = "unread"
                continue
            for entry in entries:
                path = os.path.join(folder, entry.name)
                if path not in self._own:
                    with suppress(OSError):  # it is gone
                        self._add(path, entry, folders, is_hidden=is_hidden)

    def _add(
        self, path: str, entry: "os.DirEntry[str]", folders: list[str], *, is_hidden: bool
    ) -> None:
        state = entry.stat(follow_symlinks=False)
        is_hidden = is_hidden or _is_hidden(entry.name)
        inside = os.path.realpath(entry.path).startswith(f"{self._root}{os.sep}")
        leads_out = entry.is_symlink() and not inside
        if entry.is_dir(follow_symlinks=False):
            if is_hidden and not any(one.startswith(f"{path}{os.sep}") for one in self._own):
                self.closed[path] = "folder"
            (self._hidden if is_hidden else folders).append(path)
        elif entry.is_symlink() and not (is_hidden or leads_out):
            pass
        elif is_hidden or leads_out or not stat.S_ISREG(state.st_mode):
            self.closed[path] = "link" if leads_out and entry.is_dir() else _state_of(state)
            self._inodes |= {state.st_ino} if state.st_nlink > 1 else set()
        elif _holds_secret(entry.path, state.st_dev, _state_of(state)):
            self.closed[path] = _state_of(state)
        else:
            self.states[path] = _state_of(state)


def why_not(path: str, *, closed: bool) -> str:
    """Return which path checked code lacks, and why, as the rest of a sentence after "it uses".

    It is empty where the notebook lacks it, too. What is `closed` is in the folder.
    """
    if closed:
        return f"{path}, which checked code cannot read: {CLOSED}"
    full = os.path.abspath(os.path.expanduser(path))
    if not os.path.lexists(full):
        return ""
    below = os.path.relpath(full, working_folder())
    parts = below.split(os.sep)
    if 0 < (above := parts.count("..")) <= _MOST_ABOVE and not any(map(_is_hidden, parts[above:])):
        return f"{below}, {_ABOVE.format(above)}"
    return f"{path}, which checked code cannot reach"


def above_of(sentence: str) -> int:
    """Return how many folders above the notebook's code would have to read; 0 for none."""
    found = re.search(_ABOVE.format(r"(\d)"), sentence)
    return int(found[1]) if found else 0


@lru_cache(_KEPT)
def _is_hidden(name: str) -> bool:
    stem = name.partition(".")[0]
    return name.startswith(".") or bool(_KEY_FILE.fullmatch(name)) or is_secret_name(stem)


@lru_cache(_KEPT)
def _holds_secret(path: str, *_: object) -> bool:
    try:
        with open(path, "rb") as file:
            start = file.read(_START)
    except OSError:
        return True
    return has_known_form(start) or bool(
        b"\0" not in start and find_secrets(start.decode(errors="ignore"))
    )


def _state(path: str) -> State | None:
    with suppress(OSError):
        return _state_of(os.lstat(path))
    return None


def _state_of(stat: os.stat_result) -> State:
    return stat.st_size, stat.st_mtime_ns, stat.st_ino
