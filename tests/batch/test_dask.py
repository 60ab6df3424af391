"""On a Dask cluster of two processes, one of which is killed: nothing lost, nothing paid twice."""

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from distributed import Client, LocalCluster
from greetings import CALLS, Greeter, options, tasks
from openai_server import ScriptedServer

import ipyrefine
from ipyrefine.journal.store import Journal

TASKS = 8
BEFORE = 13  # replies given before the cluster is stopped for the kill


@pytest.fixture
def client(own_world: object) -> Iterator[Any]:
    """Two workers of one thread each; they inherit this test's environment."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX's")
async def test_a_killed_worker_loses_nothing_and_nothing_is_paid_twice(client: Any) -> None:
    greeter, wanted = Greeter(hold_after=BEFORE), tasks(TASKS)
    with ScriptedServer(greeter) as server:
        batch = asyncio.ensure_future(
            ipyrefine.refine_many(
                wanted, executor=client, name="cluster", **options(server.base_url), progress=False
            )
        )
        assert await asyncio.to_thread(greeter.wait_for_held, 2, 60)
        ended = [run for run in Journal().runs() if run.stop_reason]
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
