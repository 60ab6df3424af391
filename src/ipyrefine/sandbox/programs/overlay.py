"""Show a script the notebook's folder, and tell what it did there.

Where the system can mount, `confine` lays an overlay over the folder at its own path. Elsewhere the
script gets a folder of its own: copies of small files, links to larger ones. What it must not read
is there by its name and holds nothing, and changes to it are refused.

A plan is a dict: ``root``, the folder; ``here``, the path in it to work in; ``home``, the home
folder; ``own``, paths in the folder that Python runs from; and ``closed``, by path, what must not
be read: the size and time of a file, a ``folder`` whose content is closed by further paths, an
``unread`` folder, or a ``link`` to one elsewhere. Parents come before what they hold.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Plan = dict[str, Any]
    Change = tuple[str, int | None, int | None]

# Beside the script: the plan, and what stands for the root of the file system, with the home
# folder, which libraries may write to.
FILE, BASE = "folder.txt", "base"
_COPIED = 64 * 2**20  # bytes
_COPIES = 5_000
_COMPANIONS = ("-wal", "-shm", "-journal")  # of a database
_MOST = 1_000  # changes


def read_plan(folder: str) -> Plan:
    """Return the plan in a script's folder; an empty one where it is shown none."""
    try:
        with open(os.path.join(folder, FILE), encoding="utf-8") as file:
            return dict(eval(file.read(), {}))
    except FileNotFoundError:
        return {}


def show(plan: Plan, folder: str) -> list[str]:
    """Copy, where no overlay is in place; write the plan for the script, with where it finds all.

    Return what is there in the place of what is closed, and can be opened.
    """
    found = []
    plan["base"] = base = os.path.join(folder, BASE)
    place, home = (base + os.path.splitdrive(plan[name])[1] for name in ("root", "home"))
    os.makedirs(os.path.dirname(place))
    if "place" in plan:
        os.symlink(plan["place"], place)  # from the home folder
    else:
        os.mkdir(place)
        plan |= {"place": place, "old": plan["root"], "layer": place}
        copy(plan)
        found = stand_in(plan, place)
    os.makedirs(home, exist_ok=True)
    for way in (
        os.path.dirname(place),
        *[home] * (not f"{home}{os.sep}".startswith(f"{place}{os.sep}")),
    ):
        while way != folder:
            os.chmod(way, 0o333)  # there is more in it in the notebook
            way = os.path.dirname(way)
    plan["home"] = home
    with open(os.path.join(folder, FILE), "w", encoding="utf-8") as file:
        file.write(ascii(plan))
    return found


def closed_tops(plan: Plan) -> list[str]:
    """Return what is closed, without what lies in something closed, and without links.

    What is mounted on a link is mounted on what it leads to, which may be Python itself.
    """
    tops = (one for one in plan["closed"] if os.path.dirname(one) not in plan["closed"])
    return [one for one in tops if not os.path.islink(os.path.join(plan["root"], one))]


def stand_in(plan: Plan, place: str) -> list[str]:
    """Put nothing in the place of what is closed; return what is there that can be opened."""
    found, folders = [], []
    for path, kind in plan["closed"].items():
        full = os.path.join(place, path)
        with suppress(OSError):  # its folder may be gone since
            if isinstance(kind, str):
                other = full
                if kind == "link":  # nor does what walks along it go in
                    other = f"{place}.other"
                    os.symlink(other, full)
                os.makedirs(other, exist_ok=True)
                folders.append(other)
                found += [other] * (kind != "folder")
                continue
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.truncate(kind[0])
            os.utime(full, ns=(kind[1], kind[1]))
            os.chmod(full, 0o444)
            found.append(full)
    for one in folders:
        os.chmod(one, 0o555)
    return found


def copy(plan: Plan) -> None:
    """Fill the script's folder with copies of small files and links to the larger ones."""
    place = plan["place"]
    groups: dict[str, list[tuple[str, os.stat_result]]] = {}
    for path, state in _files(plan, place):
        base = path
        for one in _COMPANIONS:
            base = base.removesuffix(one)
        groups.setdefault(base, []).append((path, state))
    room, left = _COPIED, _COPIES
    for files in sorted(groups.values(), key=lambda some: sum(s.st_size for _, s in some)):
        room, left = room - sum(state.st_size for _, state in files), left - len(files)
        for path, state in files:
            old, new = os.path.join(plan["root"], path), os.path.join(place, path)
            try:
                if room < 0 or left < 0:
                    os.symlink(old, new)
                    continue
                with open(old, "rb") as file, open(new, "wb") as other:
                    other.write(file.read())
                os.chmod(new, stat.S_IMODE(state.st_mode))
                os.utime(new, ns=(state.st_atime_ns, state.st_mtime_ns))
            except OSError:  # it is gone, or this user cannot read it, or no link can be made
                plan["closed"].setdefault(path, (state.st_size, state.st_mtime_ns))
                with suppress(OSError):
                    os.remove(new)

    for folder, _, _ in os.walk(place, topdown=False):
        with suppress(OSError):
            os.chmod(folder, mode_of(plan["root"] + folder.removeprefix(place)))


def mode_of(folder: str) -> int:
    """Return a folder's mode as its owner's, with no right to write where this user has none."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    mounted = os.statvfs(folder).f_flag & os.ST_RDONLY if hasattr(os, "statvfs") else 0
    return mode if mounted or os.access(folder, os.W_OK) else mode & ~0o222


def _files(plan: Plan, place: str) -> Iterator[tuple[str, os.stat_result]]:
    """Make the folders and the links inside of the folder; yield its plain files."""
    root, closed = plan["root"], plan["closed"]
    for folder, folders, names in os.walk(root):
        below = os.path.relpath(folder, root)
        for name in [*folders, *names]:
            path, full = os.path.normpath(os.path.join(below, name)), os.path.join(folder, name)
            if path in closed or full == place or path in plan["own"] or os.path.islink(full):
                if name in folders:
                    folders.remove(name)
                if path not in closed and full != place:
                    inside = os.path.relpath(os.path.realpath(full), folder)
                    target = full if path in plan["own"] else inside
                    with suppress(OSError):
                        os.symlink(target, os.path.join(place, path))
            elif name in folders:
                os.mkdir(os.path.join(place, path))
            elif stat.S_ISREG((state := os.lstat(full)).st_mode):
                yield path, state
            else:
                closed[path] = 0, 0


def readable(plan: Plan) -> list[str]:
    """Return what may be read of the folder at its own path: all that is not closed."""
    ways = {""}  # folders that hold something closed
    for path in plan["closed"]:
        while path := os.path.dirname(path):
            ways.add(path)
    found = []
    for way in ways - plan["closed"].keys():
        folder = os.path.join(plan["root"], way)
        with suppress(OSError):
            for name in os.listdir(folder):
                path, full = os.path.join(way, name), os.path.join(folder, name)
                if not (path in plan["closed"] or path in ways or os.path.islink(full)):
                    found.append(full)
    return found


def changes(plan: Plan) -> list[Change]:
    """Return what a script did to files: a path, and the bytes before and after; None for nothing.

    The plan also has ``place``, where the script found the folder; ``old``, where it is as it was;
    and ``layer``, where what changed lies.
    """
    found: list[Change] = []
    for folder, folders, names in os.walk(plan["layer"]):
        below = os.path.relpath(folder, plan["layer"])
        before, after = (_names(os.path.join(plan[one], below)) for one in ("old", "place"))
        for name in sorted({*names, *(before - after)}):
            path = os.path.normpath(os.path.join(below, name))
            told = os.path.relpath(path, plan["here"])
            was, now = os.path.join(plan["old"], path), os.path.join(folder, name)
            if path in plan["closed"]:
                continue
            if name not in after:
                found.append((told + "/" * os.path.isdir(was), _size(was), None))
            elif not _is_plain(now):
                continue
            elif name not in before:
                found.append((told, None, _size(now)))
            elif not _is_same(was, now):
                found.append((told, _size(was), _size(now)))
        folders[:] = [o for o in folders if os.path.normpath(f"{below}/{o}") not in plan["closed"]]
        if len(found) > _MOST:
            break
    return found[:_MOST]


def _names(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _is_plain(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(os.lstat(path).st_mode)
    return False


def _is_same(one: str, other: str) -> bool:
    import filecmp

    with suppress(OSError):
        return filecmp.cmp(one, other, shallow=False)
    return False
