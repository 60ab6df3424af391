"""The user's variables: which of them a task uses, shown to a model, and copied for the sandbox.

Checked code gets copies. One that a user named is copied wherever code is run; one that was found
in the cell only where the sandbox is closed, so that nothing can leave it. What looks like a secret
is never shown nor copied.
"""

import asyncio
import re
import sys
import types
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from itertools import islice
from typing import Any

from ipyrefine.core.model import Material
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.kernel.copies import Copies, copy_variables
from ipyrefine.kernel.describe import columns_of, describe, is_frame, is_named, label
from ipyrefine.kernel.names import names_in_draft, names_in_prose
from ipyrefine.kernel.redaction import is_environment, is_secret, is_secret_name
from ipyrefine.sandbox.sandbox import run_python

_MAX_FOUND = 20  # names
_MAX_CHARACTERS = 6_000  # of what the found names add to every prompt
_COLLECTIONS = (dict, frozenset, list, set, tuple)
_CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


class Variables:
    """Variables that a task is about.

    Args:
        named: those that the user named, by name; shown with their values.
        found: those that the cell uses, by name.
        modules: those that the notebook has imported, by name; checked code has them, too.

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
        modules: Mapping[str, types.ModuleType] | None = None,
    ) -> None:
        self.named, self._modules = dict(named or {}), dict(modules or {})
        for name, value in self.named.items():
            if _is_secret(name, value):
                raise UsageError(f"{name} looks like a secret, so no model is shown it.")
        others = {n: v for n, v in (found or {}).items() if n not in self.named}
        self._secrets = [name for name, value in others.items() if _is_secret(name, value)]
        self.found = {name: value for name, value in others.items() if name not in self._secrets}
        names = ", ".join(self._secrets)
        self.left_out = f"{names} left out: looks like a secret." if names else ""

    @classmethod
    def of(cls, variables: "Variables | Mapping[str, Any] | None") -> "Variables":
        """Return variables as they are, or those of a dict as named ones."""
        return variables if isinstance(variables, cls) else cls(variables)  # type: ignore[arg-type]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all of them."""
        return (*self.named, *self.found)

    def materials(self, *, values: bool, copied: bool = False) -> tuple[Material, ...]:
        """Return what a model is shown of them.

        Args:
            values: whether that is the values of the found ones, too.
            copied: whether checks get copies; a phrase says then what they get of a large frame.
        """
        samples = self.copies.samples if copied else {}
        shown = {name: describe(name, value, values=True) for name, value in self.named.items()}
        room = _MAX_CHARACTERS
        for name, value in self.found.items():
            text = describe(name, value, values=values)
            shown[name] = text if len(text) <= room else text.partition("\n")[0]
            room -= len(shown[name])
        every = {**self.named, **self.found}
        return tuple(
            Material(
                kind="variable",
                name=name,
                phrase=label(name, every[name]) + _sample_note(samples.get(name)),
                text=text,
            )
            for name, text in shown.items()
        )

    @cached_property
    def copies(self) -> "Copies":
        """The copies for the sandbox."""
        closed = not self.found or sandbox_is_closed()
        return copy_variables(
            self.named, self.found, closed=closed, secrets=self._secrets, modules=self._modules
        )

    @property
    def labels(self) -> Mapping[str, str]:
        """What people call those that have a copy, by name; a module needs none."""
        return {
            name: label(name, value).partition(" (")[0]
            for name, value in {**self.named, **self.found}.items()
            if not issubclass(type(value), types.ModuleType) and name not in self.copies.absent
        }

    @property
    def lets_run(self) -> bool:
        """Whether code may be run on the copies unasked: there are some, and nothing can leave.

        A module is not a copy of anything.
        """
        values = {**self.named, **self.found}
        used = [n for n, v in values.items() if not issubclass(type(v), types.ModuleType)]
        return bool(used) and sandbox_is_closed() and any(n not in self.copies.absent for n in used)

    @property
    def files(self) -> Mapping[str, bytes]:
        """The files that bring the copies into a sandbox; none for no variables."""
        return self.copies.files


def gather(names: Iterable[str], namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named variables of a namespace.

    Raises:
        UsageError: a variable does not exist.
    """
    variables = {}
    for name in names:
        if name not in namespace:
            hint = did_you_mean(name, [n for n in namespace if n[:1] != "_"], n=2)
            raise UsageError(f"No variable named {name!r}.{hint}")
        variables[name] = namespace[name]
    return variables


def find(
    namespace: Mapping[str, Any],
    *,
    text: str = "",
    bare: bool = False,
    draft: str = "",
    named: Iterable[str] = (),
    without: Iterable[str] = (),
    more: Iterable[str] = (),
) -> Variables:
    """Return the variables that a cell is about.

    Args:
        namespace: the user's variables, without IPython's own.
        text: the cell's request in words.
        bare: whether data are meant without backticks, too, as in a request for code.
        draft: the cell's code.
        named: names that the user gave; they must exist.
        without: names to leave out of what is found; ``all`` for all.
        more: further names that it may be about.

    Raises:
        UsageError: a named variable does not exist or looks like a secret, or a name to leave out
            is also given.
    """
    named, without = dict.fromkeys(named), set(without)
    if both := without & named.keys():
        raise UsageError(f"-v {min(both)} and --no-var {min(both)} contradict each other.")
    chosen, found = gather(named, namespace), dict[str, Any]()
    if "all" not in without:
        words = [w for w in re.findall(r"\w+", text) if bare and _is_data(w, namespace.get(w))]
        for name in dict.fromkeys([*names_in_draft(draft), *names_in_prose(text), *words, *more]):
            if name in namespace and name not in without and name[:1] != "_":
                found[name] = namespace[name]
    modules = {n: v for n, v in namespace.items() if type(v) is types.ModuleType and n[:1] != "_"}
    return Variables(chosen, dict(islice(found.items(), _MAX_FOUND)), modules=modules)


def data_names(namespace: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the data in a namespace and of its columns, in lower case.

    Data are frames, arrays and collections. A string is rather a text to work on.
    """
    names = set[str]()
    for name, value in namespace.items():
        if _is_data(name, value):
            names |= {name.lower(), *(column.lower() for column, _ in columns_of(value))}
    return frozenset(names)


def _is_data(name: str, value: Any) -> bool:
    is_data = is_frame(value) or is_named(value, "numpy", "ndarray") or type(value) in _COLLECTIONS
    return len(name) > 1 and name[0] != "_" and is_data


@cache
def sandbox_is_closed() -> bool:
    """Return whether the sandbox keeps code from the network, keys and other processes here.

    It is run once to find out.
    """
    if sys.platform == "emscripten":
        return False
    with ThreadPoolExecutor(1) as pool:  # a loop may be running in this thread
        protection = pool.submit(lambda: asyncio.run(run_python(""))).result().protection
    return protection.network and protection.keys and protection.processes


def _is_secret(name: str, value: Any) -> bool:
    """Return whether a variable is a secret itself, by its name or its looks."""
    if issubclass(type(value), _CODE):
        return False
    if is_environment(value):
        return True
    if is_frame(value) or is_named(value, "numpy", "ndarray"):
        return is_secret_name(name, 0)
    short = type(value) is str and len(value) <= 200 and " " not in value.strip()
    return is_secret_name(name, value) or (short and is_secret(value))


def _sample_note(rows: int | None) -> str:
    return "" if rows is None else f", checks get its first {rows:,} rows"
