"""Starts what the browser tests need: a notebook server on loopback, and Chromium."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from lab_driver import Server

START_SECONDS = 90
EXTENSION = Path(__file__).parents[2] / "src/ipyrefine/notebook/labextension"
STYLES = Path(__file__).parents[2] / "src/ipyrefine/render/run.css"


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    """A notebook server for JupyterLab and Notebook 7, with all that it keeps under `home`."""
    (home / "notebooks").mkdir()
    # The front-end half as it stands in this tree, whatever version of it is installed.
    installed = home / "share/labextensions/ipyrefine"
    shutil.copytree(EXTENSION, installed)
    shutil.copy(STYLES, installed / "static")
    quiet = home / "settings/@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    quiet.parent.mkdir(parents=True)
    quiet.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    port, token = _free_port(), secrets.token_hex(16)
    with (home / "server.log").open("wb") as log:
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


@asynccontextmanager
async def browsing() -> AsyncIterator[Any]:
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
        "JUPYTER_PATH": "share",
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


def _await_server(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            server.request("GET", "api/status")
        except OSError:
            time.sleep(0.2)
        else:
            return
    said = (server.home / "server.log").read_text()[-4000:]
    raise RuntimeError(f"No notebook server:\n{said}")
