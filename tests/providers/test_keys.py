"""Where the keys of servers are kept: in a keyring that works, else in this process."""

import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from ipyrefine.folders import home
from ipyrefine.providers import keys
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.servers import Key, remember_about

SERVER, OTHER = "https://one.example/v1", "https://two.example/v1"
SECRET = "sk-the-secret-itself"


class Backend:
    """A keyring in memory."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, name: str) -> str | None:
        return self.held.get((service, name))

    def set_password(self, service: str, name: str, value: str) -> None:
        self.held[service, name] = value


class Broken(Backend):
    def set_password(self, service: str, name: str, value: str) -> None:
        raise RuntimeError(f"cannot store {value}")

    get_password = set_password  # type: ignore[assignment]


class Forgets(Backend):
    def set_password(self, service: str, name: str, value: str) -> None:
        """Store nothing, as the null backend does."""


class InAFile(Backend):
    """A backend of a package that writes files."""


InAFile.__module__ = "keyrings.alt.file"


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, and no keyring library either."""
    monkeypatch.setattr(keys, "_memory", {})
    monkeypatch.setattr(keys, "_hung", [])
    monkeypatch.setitem(sys.modules, "keyring", None)  # not installed


def install(monkeypatch: pytest.MonkeyPatch, backend: Any) -> Any:
    module = ModuleType("keyring")
    module.get_keyring = lambda: backend  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)
    return backend


def test_a_keyring_gets_the_key_and_this_process_keeps_none(monkeypatch):
    backend = install(monkeypatch, Backend())
    assert keys.has_keyring()
    assert keys.keep_key(SERVER, Key(SECRET))
    assert backend.held == {("ipyrefine", SERVER): SECRET}
    assert keys._memory == {}
    assert (keys.find_key(SERVER), keys.find_key(OTHER)) == (SECRET, "")
    backend.held.clear()
    assert keys.find_key(SERVER) == ""


@pytest.mark.parametrize(
    "backend",
    [
        *(None, Broken(), Forgets(), InAFile(), SimpleNamespace()),
        *(SimpleNamespace(backends=[]), SimpleNamespace(backends=[InAFile()])),
    ],
)
def test_where_no_keyring_works_the_key_stays_in_this_process(monkeypatch, backend):
    if backend is None:
        assert not keys.has_keyring(), "it is not installed"
    else:
        install(monkeypatch, backend)
    assert not keys.keep_key(SERVER, Key(SECRET))
    assert keys.find_key(SERVER) == SECRET
    assert keys.find_key(OTHER) == ""
    assert getattr(backend, "held", {}) == {}
    assert SECRET not in repr(keys._memory)


def test_a_keyring_is_asked_for_no_key_that_it_was_not_given(monkeypatch):
    backend = install(monkeypatch, Backend())
    backend.set_password("ipyrefine", SERVER, "somebody else's")
    assert keys.find_key(SERVER) == ""
    keys.keep_key(SERVER, Key(SECRET))
    assert SECRET not in (home() / "servers.json").read_text()


def test_of_several_backends_a_file_is_passed_over(monkeypatch):
    good = Backend()
    install(monkeypatch, SimpleNamespace(backends=[InAFile(), good]))
    assert keys.keep_key(SERVER, Key(SECRET))
    assert list(good.held.values()) == [SECRET]


def test_a_keyring_that_hangs_is_asked_once(monkeypatch):
    waits, asked = threading.Event(), []

    class Locked(Backend):
        def get_password(self, service: str, name: str) -> str | None:
            asked.append(name)
            waits.wait(20)
            return None

    install(monkeypatch, Locked())
    remember_about(SERVER, in_keyring=True)
    monkeypatch.setattr(keys, "_SECONDS", 0.05)
    assert keys.find_key(SERVER) == keys.find_key(SERVER) == ""
    assert asked == [SERVER]
    waits.set()


def test_a_kept_key_goes_before_the_environments_and_behind_one_that_is_given(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", SERVER)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")

    def key(**options: Any) -> str:
        return OpenAIModel("m", **options)._current_key()()

    assert key() == "sk-of-the-environment"
    keys.keep_key(SERVER, Key(SECRET))
    assert key() == SECRET
    assert key(api_key="given") == "given"
    assert key(base_url=OTHER) == ""
