"""A real notebook server and a real Chromium; `lab` opens notebooks in them.

The tests here are coroutines on one event loop for the session, because the browser lives on it.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lab_driver import Lab, Server

OUTPUT = Path(__file__).parents[1] / "output"
START_SECONDS = 90

_FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.stash[_FAILED] = report.failed
    return report


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _environment(home: Path) -> dict[str, str]:
    """This process's environment, with everything Jupyter keeps for a user under `home`."""
    own = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    return {**os.environ, **{name: str(home / folder) for name, folder in own.items()}}


def _command(port: int, token: str, root: Path) -> list[str]:
    # Notebook's server shows the same files at /lab and at /notebooks.
    return [
        *(sys.executable, "-m", "notebook", "--no-browser", "--allow-root"),
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={root}",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        "--LabApp.expose_app_in_browser=True",
        # No page or server of these tests asks anything of a host that is not this one.
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A notebook server that serves JupyterLab and Notebook 7 on loopback."""
    home = tmp_path_factory.mktemp("jupyter")
    (home / "notebooks").mkdir()
    port, token = _free_port(), secrets.token_hex(16)
    log = (home / "server.log").open("wb")
    process = subprocess.Popen(
        _command(port, token, home / "notebooks"),
        env=_environment(home),
        cwd=home,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    running = Server(f"http://127.0.0.1:{port}", token, home)
    try:
        _await_server(running, process)
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
        log.close()


def _await_server(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            server.request("GET", "api/status")
        except OSError:
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"No notebook server:\n{(server.home / 'server.log').read_text()[-4000:]}")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Any]:
    """Chromium without a window."""
    from playwright.async_api import async_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    flags = ["disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"]
    flags += ["no-sandbox", "disable-component-update", "disable-sync"]
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(
            executable_path=path, args=[f"--{flag}" for flag in flags]
        )
        yield chromium
        await chromium.close()


@pytest_asyncio.fixture(loop_scope="session")
async def lab(server: Server, browser: Any, request: pytest.FixtureRequest) -> AsyncIterator[Lab]:
    """Opens notebooks; a test that fails leaves a picture of its last page in tests/output."""
    opened = Lab(server, browser)
    yield opened
    if request.node.stash.get(_FAILED, False) and opened.page:
        name = re.sub(r"[^\w-]+", "-", request.node.name)
        await opened.screenshot(OUTPUT / f"{name}.png")
    await opened.close()
