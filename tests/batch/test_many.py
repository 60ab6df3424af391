"""Many tasks at once: each comes to its own end, and what was paid for is never asked again."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from greetings import CALLS, Greeter, options, tasks
from openai_server import ScriptedServer
from refining import judged, text

import ipyrefine
from ipyrefine import errors
from ipyrefine.journal.store import Journal
from ipyrefine.providers.scripted import ScriptedModel


@pytest.fixture
def greeter() -> Greeter:
    return Greeter()


@pytest.fixture
def server(greeter: Greeter) -> Iterator[ScriptedServer]:
    with ScriptedServer(greeter) as running:
        yield running


async def test_items_come_back_in_the_order_of_the_tasks(server: ScriptedServer) -> None:
    asked = tasks(5)
    items = await ipyrefine.refine_many(asked, **options(server.base_url), progress=False)
    assert [item.task for item in items] == asked
    assert [item.run.task.text for item in items if item.run.task] == asked
    assert all(item.passed and item.error is None for item in items)


async def test_no_more_run_at_a_time_than_allowed() -> None:
    greeter = Greeter(hold_after=0)
    with ScriptedServer(greeter) as server:
        greeter.go.set()
        running, most = set[str](), 0

        def watch(event: object, run: ipyrefine.Run) -> None:
            nonlocal most
            if run.task:
                (running.discard if run.stop_reason else running.add)(run.task.text)
            most = max(most, len(running))

        given = options(server.base_url) | {"on_event": watch}
        await ipyrefine.refine_many(tasks(7), at_once=3, **given, progress=False)
    assert most == 3


async def test_an_error_ends_its_own_task_only_and_is_kept(
    server: ScriptedServer, greeter: Greeter
) -> None:
    asked = tasks(3)
    greeter.broken = {asked[1]}
    items = await ipyrefine.refine_many([*asked, "  "], **options(server.base_url), progress=False)
    assert [item.passed for item in items] == [True, False, True, False]
    assert isinstance(items[1].error, errors.AccessDenied)
    assert isinstance(items[3].error, errors.UsageError)


async def test_the_same_name_again_asks_only_for_what_is_missing(
    server: ScriptedServer, greeter: Greeter
) -> None:
    asked = tasks(4)
    greeter.broken = {asked[2]}
    given = {**options(server.base_url), "name": "greetings", "progress": False}
    await ipyrefine.refine_many(asked[:3], **given)
    greeter.broken = set()
    before = greeter.asked.copy()
    items = await ipyrefine.refine_many(list(reversed(asked)), **given)
    assert all(item.passed for item in items)
    assert [item.task for item in items] == list(reversed(asked))
    assert (greeter.asked - before).total() == 2 * CALLS


async def test_the_same_task_twice_is_done_twice(server: ScriptedServer, greeter: Greeter) -> None:
    given = options(server.base_url)
    items = await ipyrefine.refine_many(["Greet.", "Greet."], name="two", **given, progress=False)
    assert all(item.passed for item in items)
    assert greeter.asked.total() == 2 * CALLS


async def test_a_task_may_bring_its_own_options_and_model_objects_are_taken() -> None:
    model = ScriptedModel([judged(10)])
    own = {"text": "Greet.", "draft": "Hello there"}
    given = {"profile": "prose", "criteria": ["tone"], "limits": ipyrefine.Limits(min_findings=0)}
    (item,) = await ipyrefine.refine_many([own], model=model, **given, progress=False)
    assert item.run.text == "Hello there"
    assert item.run.draft == "Hello there"


async def test_an_empty_list_brings_an_empty_list() -> None:
    model = ScriptedModel([text("never")])
    assert await ipyrefine.refine_many([], model=model, progress=False) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"at_once": 0}, "at_once"),
        ({"name": "1"}, "letter"),
        ({"executor": 4}, "submit"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_what_cannot_be_used_is_told_before_anything_runs(
    given: dict[str, object], told: str
) -> None:
    model = ScriptedModel([])
    with pytest.raises(errors.UsageError, match=told):
        await ipyrefine.refine_many(["Greet."], model=model, **given, progress=False)
    assert model.requests == []


async def test_a_task_without_a_text_is_named() -> None:
    with pytest.raises(errors.UsageError, match="Task 1 has no text"):
        await ipyrefine.refine_many(["Greet.", {}], model=ScriptedModel([]), progress=False)


async def test_threads_do_the_same(server: ScriptedServer) -> None:
    with ThreadPoolExecutor(2) as pool:
        items = await ipyrefine.refine_many(
            tasks(3), executor=pool, **options(server.base_url), progress=False
        )
    assert [item.error for item in items] == [None] * 3
    assert all(item.passed for item in items)


async def test_processes_take_functions_of_the_notebook_and_share_the_journal(
    server: ScriptedServer,
) -> None:
    here = os.getpid()

    def elsewhere(text: str) -> bool:  # no importable name leads to it
        return os.getpid() != here

    given = {**options(server.base_url), "checks": [elsewhere], "name": "far"}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        items = await ipyrefine.refine_many(["Greet."], executor=pool, **given, progress=False)
    assert [item.error for item in items] == [None]
    assert items[0].run.iterations[0].evidence[0].passed
    assert [run.name.split(".")[0] for run in Journal().runs()] == ["far"]


async def test_a_task_that_cannot_travel_says_so() -> None:
    model = ScriptedModel(text(word) for word in "ab")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        (item,) = await ipyrefine.refine_many(
            ["Greet."], executor=pool, model=model, progress=False
        )
    assert isinstance(item.error, errors.PoolError)
    assert "generator" in str(item.error)


async def test_the_progress_bar_counts_what_passed_and_what_failed(
    server: ScriptedServer, greeter: Greeter, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tasks(3)
    greeter.broken = {asked[0]}
    await ipyrefine.refine_many(asked, **options(server.base_url))
    last = capsys.readouterr().err.split("\r")[-1]
    assert "3/3" in last
    assert "passed=2" in last
    assert "errors=1" in last


async def test_without_a_journal_nothing_is_kept(
    server: ScriptedServer, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYREFINE_JOURNAL", "off")
    items = await ipyrefine.refine_many(["Greet."], **options(server.base_url), progress=False)
    assert items[0].passed
    assert Journal().runs() == []
