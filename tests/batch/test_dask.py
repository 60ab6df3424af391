"""On a Dask cluster of two processes, one of which is killed: nothing lost, nothing paid twice."""

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from greetings import CALLS, Greeter, options, tasks
from openai_server import ScriptedServer

import ipyrefine
from ipyrefine.journal.store import Journal

TASKS = 8
BEFORE = 13  # replies given before the cluster is stopped for the kill


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """Two workers of one thread each, and the folder of their journal."""
    distributed = pytest.importorskip("distributed")  # here, as it takes long to import
    folder = str(tmp_path_factory.mktemp("journal"))
    with pytest.MonkeyPatch.context() as patches:
        for name in ("HOME", "IPYREFINE_HOME"):  # which the workers inherit
            patches.setenv(name, folder)
        made = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
    with made, distributed.Client(made) as connected:
        yield connected, folder


@pytest.fixture
def client(cluster: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The cluster, which writes into the journal that this test reads."""
    connected, folder = cluster
    monkeypatch.setenv("IPYREFINE_HOME", folder)
    return connected


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
async def test_a_killed_worker_loses_nothing_and_nothing_is_paid_twice(client):
    greeter, wanted = Greeter(hold_after=BEFORE), tasks(TASKS)
    with ScriptedServer(greeter) as server:
        batch = asyncio.ensure_future(
            ipyrefine.refine_many(
                wanted, executor=client, name="cluster", **options(server.base_url), progress=False
            )
        )
        assert await asyncio.to_thread(greeter.wait_for_held, 2, 60)
        ended = [run for run in Journal().runs() if run.stop_reason and "cluster" in run.name]
        assert ended, "some runs should be in the dead worker's memory"
        victim = next(iter(client.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)
        greeter.go.set()
        items = await batch
    assert [item.task for item in items] == wanted
    assert all(item.passed and item.error is None for item in items)
    assert len(greeter.asked) == TASKS * CALLS
    # The dead worker's one request was never answered; it alone is made again.
    assert greeter.asked.total() == TASKS * CALLS + 1
    assert [item.run and item.run.usage.calls for item in items] == [CALLS] * TASKS
