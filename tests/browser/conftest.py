"""A real notebook server and a real Chromium; `lab` opens notebooks in them.

The tests here are coroutines on one event loop for the session, because the browser lives on it.
"""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from lab_driver import Lab, Server
from lab_server import browsing, serving
from openai_server import ScriptedServer

OUTPUT = Path(__file__).parents[1] / "output"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A notebook server that serves JupyterLab and Notebook 7 on loopback."""
    with serving(tmp_path_factory.mktemp("jupyter")) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Any]:
    """Chromium without a window."""
    async with browsing() as chromium:
        yield chromium


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    """A server that answers with the `reply` of the test's module, where it has one."""
    with ScriptedServer(getattr(request.module, "reply", None)) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def windows(server: Server, browser: Any) -> AsyncIterator[Lab]:
    """The applications' windows, which tests hand on to each other."""
    opened = Lab(server, browser)
    yield opened
    await opened.close()


@pytest_asyncio.fixture(loop_scope="session")
async def lab(windows: Lab, request: pytest.FixtureRequest) -> AsyncIterator[Lab]:
    """Opens notebooks; each test leaves a picture of its last page in tests/output."""
    yield windows
    if windows.page and not windows.page.is_closed():
        name = re.sub(r"[^\w-]+", "-", request.node.name)
        await windows.screenshot(OUTPUT / f"{name}.png")
    await windows.clear()
