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

distributed = pytest.importorskip("distributed")

TASKS = 8
BEFORE = 13  # replies given before the cluster is stopped for the kill


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """Two workers of one thread each, and the folder of their journal."""
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


async def test_a_cluster_does_each_run_whole_and_gives_it_back(client: Any) -> None:
    def elsewhere(text: str) -> bool:  # no importable name leads to it
        return os.getpid() != here

    here, wanted = os.getpid(), tasks(3)
    with ScriptedServer(Greeter()) as server:
        args = {**options(server.base_url), "checks": [elsewhere], "progress": False}
        executor = client.get_executor()
        items = await ipyrefine.refine_many(wanted, executor=executor, **args)
    assert [item.task for item in items] == wanted
    assert [item.error for item in items] == [None] * 3
    assert all(item.run and item.run.iterations[0].evidence[0].passed for item in items)
    assert [Journal().get(item.name).run for item in items] == [item.run for item in items]


async def test_a_failed_run_is_resumed_by_its_name_on_the_same_cluster(client: Any) -> None:
    """Dask would give the first result of a call that looks the same."""
    wanted, greeter = tasks(2), Greeter()
    greeter.broken = {wanted[1]}
    with ScriptedServer(greeter) as server:
        args = {**options(server.base_url), "name": "again", "progress": False}
        executor = client.get_executor()
        first = await ipyrefine.refine_many(wanted, executor=executor, **args)
        greeter.broken = set()
        second = await ipyrefine.refine_many(wanted, executor=executor, **args)
    assert [item.passed for item in first] == [True, False]
    assert [item.passed for item in second] == [True, True]
    assert greeter.asked.total() == 2 * CALLS + 1


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
