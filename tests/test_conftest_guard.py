"""The guard around all tests does its work."""

import os
import socket
from pathlib import Path

import pytest

# TEST-NET-1 and a reserved top-level domain: they belong to nobody, should the guard ever fail.
NOWHERE = "192.0.2.1"


def blocked() -> type[BaseException]:
    with pytest.raises(BaseException, match="loopback only") as caught:
        socket.getaddrinfo("host.invalid", 80)
    return caught.type


def test_neither_a_name_nor_an_address_outside_is_reached_and_no_except_clause_hides_it():
    kind = blocked()
    assert not issubclass(kind, Exception)
    for call in ("connect", "connect_ex"):
        with socket.socket() as sock, pytest.raises(kind):
            getattr(sock, call)((NOWHERE, 80))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_works(host):
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection((host, server.getsockname()[1]), 5) as client,
    ):
        assert client.getpeername()[1] == server.getsockname()[1]


def test_a_test_sees_an_empty_home_and_none_of_the_users_settings(own_world):
    import platformdirs

    assert Path.home() == own_world
    assert Path(platformdirs.user_cache_dir("ipyrefine")).is_relative_to(own_world)
    assert Path(os.environ["IPYTHONDIR"]).is_relative_to(own_world)
    kept = {name for name in os.environ if name.startswith(("OPENAI_", "IPYREFINE_"))}
    assert kept == {"IPYREFINE_HOME", "IPYREFINE_MODEL_DIR"}
