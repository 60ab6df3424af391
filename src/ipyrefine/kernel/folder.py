"""Copy files beside the notebook that code names, for the sandbox.

Only ordinary files below the working folder, 50 MB together: nothing hidden, no link, and nothing
that looks like a secret. There is nothing where that folder is the home folder or the root.
"""

import ast
import fnmatch
import glob
import os
import re
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice

from ipyrefine.core.syntax import tree_of
from ipyrefine.kernel.redaction import find_secrets, has_known_form, is_secret_name
from ipyrefine.sandbox.sandbox import working_folder

MAX_BYTES = 50 * 2**20
MARKER = "folder.txt"  # says in the sandbox which folder of the notebook it stands for
_MOST, _LONGEST = 500, 500  # files of a pattern or a package; characters of a path
_SCANNED = 2**20  # bytes at the start of a text that are searched for passwords
_CHUNK, _LONGEST_FORM = 2**20, 1_000
_TAKEN = re.compile(  # by the files of checks
    r"(?:main|candidate)\.py|\w+-program\.pyc|(?:request|variables)\.json|folder\.txt|pytest\.ini|"
    r"variables\.pickle"
)
_KEY_FILE = re.compile(r"(?i)id_(?:rsa|dsa|ecdsa|ed25519)\b.*|.*\.(?:pem|key|p12|pfx|jks|kdbx|ppk)")
_DATABASE = b"SQLite format 3\0"
_URL = re.compile(r"^(?:sqlite:///|file:(?://(?=/))?)|\?\w+=.*$")  # around the path of a database
_SUFFIX = re.compile(r".*[\w*]\.\w+$")  # a pattern from an f-string says what kind of file it is
_DEEP = re.compile(r"\*\*|\brglob\b|\bwalk\b")


def names_files(*sources: str) -> bool:
    """Return True if code names a file below the notebook's folder."""
    return any(os.path.isfile(name) for name in _named(sources))


def files_beside(*sources: str) -> dict[str, bytes]:
    """Return copies, by path, of the files that code names and of the modules that it imports.

    Only the first source's imports bring modules. A path that ends in a slash is a folder. There is
    one more file for the sandbox's program.
    """
    files, room = dict[str, bytes](), MAX_BYTES
    names = [*_named(sources)]
    for name in names:  # it grows
        if os.path.isdir(name):
            files[f"{name}/"] = b""
        elif name not in files and (content := _read(name, room)) is not None:
            files[name] = content
            room -= len(content)
            if content.startswith(_DATABASE):
                names += [f"{name}-wal", f"{name}-journal"]
            elif name.endswith(".py"):
                names += _named([content.decode("utf-8", "replace")])
    return {**files, MARKER: os.fsencode(working_folder())} if files else {}


def is_in_part(folder: str, names: Collection[str], *sources: str) -> bool:
    """Return True if a folder has more than code saw there, and than a pattern of it asks for.

    Args:
        folder: the folder.
        names: what the code saw.
        *sources: the code, and what calls it.
    """
    missing = [name for name in glob.glob("*", root_dir=folder) if name not in names]
    asked = {os.path.basename(one) for one in _patterns(sources) if glob.has_magic(one)}
    seen, lacks = (any(fnmatch.filter(some, one) for one in asked) for some in (names, missing))
    return bool(missing) and (lacks or not seen or any(map(_DEEP.search, sources)))


def _named(sources: Collection[str]) -> Iterator[str]:
    """Yield the paths that code names and may have: files, and folders that lead to them."""
    here = os.path.realpath(working_folder())
    nowhere = {os.path.realpath(os.path.expanduser("~")), os.path.abspath(os.sep)}
    if here in nowhere or sys.platform == "emscripten":
        return
    patterns, folders = [*_patterns(sources)], [""]
    for folder in folders:  # it grows
        for pattern in patterns + _modules(*sources) * (not folder):
            found = glob.iglob(os.path.join(glob.escape(folder), pattern), recursive=True)
            for name in islice(found, _MOST):
                parts = name.split(os.sep)
                if (
                    os.path.realpath(name) != f"{here}{os.sep}{name}"
                    or any(one.startswith(".") or _KEY_FILE.fullmatch(one) for one in parts)
                    or any(is_secret_name(one.partition(".")[0]) for one in parts)
                    or _TAKEN.fullmatch(name)
                ):
                    continue
                yield name
                if name not in folders and os.path.isdir(name) and not glob.has_magic(pattern):
                    folders.append(name)


def _modules(source: str = "", *_: str) -> list[str]:
    """Return patterns of the modules below the folder that code may import."""
    names = list[str]()
    for node in ast.walk(tree_of(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append(node.module or "")
    tops = sorted({name.partition(".")[0] for name in names} - sys.stdlib_module_names)
    return [path for top in tops for path in (f"{top}.py", f"{top}/**/*.py")]


def _patterns(sources: Collection[str]) -> dict[str, None]:
    """Return code's strings as paths in the folder, or in one below it that is named, too."""
    nodes = [n for one in sources for n in ast.walk(tree_of(one))]
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    for values in (node.values for node in nodes if isinstance(node, ast.JoinedStr)):
        parts = (str(n.value) if isinstance(n, ast.Constant) else "*" for n in values)
        texts += _SUFFIX.findall("".join(parts).replace("**", "*"))
    found: dict[str, None] = {}
    for text in texts:
        if len(text) <= _LONGEST and text.isprintable() and "**" not in text:
            path = _URL.sub("", text).removeprefix(working_folder()).lstrip("/")
            folder, name = os.path.split(os.path.normpath(path))
            if not glob.has_magic(folder):
                found[folder] = None
            found[os.path.join(folder, name)] = None
    return found


def _read(name: str, room: int) -> bytes | None:
    flags = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    with suppress(OSError), open(os.open(name, os.O_RDONLY | flags), "rb") as file:
        state = os.fstat(file.fileno())
        if stat.S_ISREG(state.st_mode) and state.st_size <= room:
            content = file.read(room)
            return None if _holds_secret(content) else content
    return None


def _holds_secret(content: bytes) -> bool:
    start = content[:_SCANNED]
    if b"\0" not in start and find_secrets(start.decode("utf-8", "ignore")):
        return True
    pieces = range(0, len(content), _CHUNK)
    return any(has_known_form(content[n : n + _CHUNK + _LONGEST_FORM]) for n in pieces)
