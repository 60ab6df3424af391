"""Keep the keys of servers: in the system's keyring where it works, else in this process's memory.

A key goes to the address that it was given for, and to no other. No file of ours ever holds one.
"""

from collections.abc import Callable
from typing import Any

from ipyrefine.providers.servers import Key, facts_about, remember_about
from ipyrefine.providers.within import within

_SERVICE = "ipyrefine"
# Backends that keep nothing, write files (some of them in clear), or ask for a password in a cell.
_NO_KEYRINGS = ("keyring.backends.fail", "keyring.backends.null", "keyrings.")
_SECONDS = 20.0  # a locked keyring asks the user for its password first

_memory: dict[str, Key] = {}
_hung: list[bool] = []  # not empty once a keyring did not answer: it is not asked again


def find_key(base_url: str) -> str:
    """Return the key that was kept for a server's address; empty for none."""
    if base_url in _memory:
        return _memory[base_url]()
    if not facts_about(base_url).in_keyring:
        return ""  # else a locked keyring would ask for its password, for nothing
    return str(_ask(lambda keyring: keyring.get_password(_SERVICE, base_url)) or "")


def keep_key(base_url: str, key: Key) -> bool:
    """Keep a server's key, in place of an earlier one; return whether the keyring holds it."""

    def store(keyring: Any) -> bool:
        keyring.set_password(_SERVICE, base_url, key())
        return bool(keyring.get_password(_SERVICE, base_url) == key())

    if _ask(store) and remember_about(base_url, in_keyring=True):
        _memory.pop(base_url, None)
        return True
    _memory[base_url] = key
    return False


def has_keyring() -> bool:
    """Return True if keys go into a keyring, as far as that is known without asking it."""
    return bool(_ask(lambda _: True))


def _ask(action: Callable[[Any], Any]) -> Any:
    """Return what an action on the keyring gives; None without one, or where it fails or hangs."""
    if _hung:
        return None

    def ask() -> Any:
        keyring = _find_keyring()
        return None if keyring is None else action(keyring)

    try:
        return within(_SECONDS, ask)
    except TimeoutError:
        _hung.append(True)
    except Exception:  # whatever a backend raises; its words may hold the key
        pass
    return None


def _find_keyring() -> Any:
    """Return the first backend that is a keyring of the system; None where there is none."""
    try:
        import keyring
    except ImportError:
        return None
    # The library's own choice may be several of which each is tried, files among them.
    chosen = keyring.get_keyring() if hasattr(keyring, "get_keyring") else keyring
    for backend in getattr(chosen, "backends", [chosen]):
        modules = [kind.__module__ for kind in type(backend).__mro__]
        if not any(name.startswith(_NO_KEYRINGS) for name in modules):
            return backend
    return None
