"""Many tasks at once: each comes to its own end, and what was paid for is never asked again."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from greetings import CALLS, Greeter, options, tasks
from kit import READY, text
from openai_server import ScriptedServer

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


async def test_items_come_back_in_their_order_and_no_more_run_at_a_time_than_allowed(server):
    running, most = set[str](), 0

    def watch(event: object, run: ipyrefine.Run) -> None:
        nonlocal most
        (running.discard if run.stop_reason else running.add)(run.task.text)
        most = max(most, len(running))

    wanted, args = tasks(5), options(server.base_url) | {"on_event": watch}
    items = await ipyrefine.refine_many(wanted, at_once=3, **args, progress=False)
    assert [item.task for item in items] == wanted
    assert [item.run and item.run.task.text for item in items] == wanted
    assert all(item.passed and item.error is None for item in items)
    assert most == 3


async def test_an_error_ends_its_own_task_only_and_the_progress_bar_counts_it(
    server, greeter, capsys
):
    wanted = tasks(3)
    greeter.broken = {wanted[1]}
    items = await ipyrefine.refine_many([*wanted, "  "], **options(server.base_url))
    assert [item.passed for item in items] == [True, False, True, False]
    assert isinstance(items[1].error, errors.AccessDenied)
    assert isinstance(items[3].error, errors.UsageError)
    assert items[1].run is not None
    assert items[3].run is None
    last = capsys.readouterr().err.split("\r")[-1]
    assert all(part in last for part in ("4/4", "passed=2", "errors=2"))


async def test_the_same_name_again_asks_only_for_what_is_missing(server, greeter):
    wanted = tasks(4)
    greeter.broken = {wanted[2]}
    args = {**options(server.base_url), "name": "greetings", "progress": False}
    await ipyrefine.refine_many(wanted[:3], **args)
    greeter.broken = set()
    before = greeter.asked.copy()
    items = await ipyrefine.refine_many(list(reversed(wanted)), **args)
    assert all(item.passed for item in items)
    assert [item.task for item in items] == list(reversed(wanted))
    assert (greeter.asked - before).total() == 2 * CALLS


@pytest.mark.parametrize(("args", "sentence"), [
    ({"at_once": 0}, "at_once"),
    ({"name": "1"}, "letter"),
    ({"tarfet": 0.9}, "Did you mean target?"),
])  # fmt: skip
async def test_what_cannot_be_used_is_refused_before_anything_runs(args, sentence):
    model = ScriptedModel([])
    with pytest.raises(errors.UsageError, match=re.escape(sentence)):
        await ipyrefine.refine_many(["Greet."], model=model, **args, progress=False)
    assert model.requests == []


async def test_an_error_while_items_come_in_cancels_the_other_tasks(server):
    seen = []

    def stop(item: ipyrefine.Item) -> None:
        seen.append(item)
        raise KeyError("mine")

    args = {**options(server.base_url), "on_item": stop, "progress": False}
    with pytest.raises(KeyError, match="mine"):
        await ipyrefine.refine_many(tasks(5), at_once=1, **args)
    assert len(seen) == 1
    assert len(Journal().runs()) <= 2


async def test_a_hundred_runs_at_once_are_each_whole_in_the_journal_and_paid_for_once():
    models = [ScriptedModel([text(f"Greeting {n}"), READY]) for n in range(100)]
    args: dict[str, Any] = {"profile": "prose", "critique": "always"}
    runs = await asyncio.gather(
        *(
            ipyrefine.refine(f"Write greeting {n}.", model=model, name=f"r{n}", **args)
            for n, model in enumerate(models)
        )
    )
    assert [run.text for run in runs] == [f"Greeting {n}" for n in range(100)]
    assert {run.usage.calls for run in runs} == {2} == {len(model.requests) for model in models}
    assert [Journal().get(f"r{n}").run for n in range(100)] == runs
