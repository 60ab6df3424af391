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

OUTPUT = Path(__file__).parents[1] / "output"

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


@pytest_asyncio.fixture(loop_scope="session")
async def lab(server: Server, browser: Any, request: pytest.FixtureRequest) -> AsyncIterator[Lab]:
    """Opens notebooks; a test that fails leaves a picture of its last page in tests/output."""
    opened = Lab(server, browser)
    yield opened
    if request.node.stash.get(_FAILED, False) and opened.page:
        name = re.sub(r"[^\w-]+", "-", request.node.name)
        await opened.screenshot(OUTPUT / f"{name}.png")
    await opened.close()
