"""Text into a cell: the comm to a scripted front-end, the ways there are, and what is reported."""

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ipyrefine.core.decisions import Destination
from ipyrefine.errors import UsageError
from ipyrefine.notebook import cell_target
from ipyrefine.notebook.cell_target import (
    CellTarget,
    Origin,
    Placed,
    put_text,
    read_cell,
    read_cells_above,
)
from ipyrefine.session.commands import Place

ACK = {"op_id": "1", "ok": True, "how": "inserted", "cell_id": "new", "reason": ""}

Callback = Callable[[dict[str, Any]], None]


class ScriptedComm:
    """A comm that records what is opened, and lets a test play the front-end."""

    def __init__(self) -> None:
        self.target_name = ""
        self.data: dict[str, Any] = {}
        self.closed = 0
        self.listening = asyncio.Event()
        self._on_msg: Callback = print
        self._on_close: Callback = print

    def create(self, *, target_name: str, data: dict[str, Any]) -> "ScriptedComm":
        self.target_name, self.data = target_name, data
        return self

    def on_msg(self, callback: Callback) -> None:
        self._on_msg = callback

    def on_close(self, callback: Callback) -> None:
        self._on_close = callback
        self.listening.set()

    def close(self) -> None:
        self.closed += 1

    def answer(self, data: Any) -> None:
        self._on_msg({"content": {"data": data}})

    def hang_up(self) -> None:
        self._on_close({"content": {"data": {}}})


@pytest.fixture
def comm(monkeypatch: pytest.MonkeyPatch) -> ScriptedComm:
    scripted = ScriptedComm()
    monkeypatch.setattr("comm.create_comm", scripted.create)
    monkeypatch.setattr(cell_target, "hears_comms_while_running", lambda: True)
    return scripted


async def ask(comm: ScriptedComm, play: Callable[[], object], **options: Any) -> Placed:
    """Put a text while the front-end plays its part; a wait for the timeout fails the test."""
    options = {"cell_id": "home", "timeout": 30, **options}
    comm.listening.clear()
    task = asyncio.create_task(put_text("x = 1", **options))
    await comm.listening.wait()
    play()
    return await asyncio.wait_for(task, 5)


async def test_an_insertion_sends_everything_the_front_end_needs(comm: ScriptedComm) -> None:
    await ask(comm, lambda: comm.answer(ACK), op_id="1", cell_type="markdown")
    assert comm.target_name == "ipyrefine.cells"
    assert json.loads(json.dumps(comm.data)) == {
        "op": "insert",
        "op_id": "1",
        "cell_id": "home",
        "text": "x = 1",
        "cell_type": "markdown",
        "expected_source": None,
        "run": False,
    }


@pytest.mark.parametrize(
    ("answer", "placed", "ok"),
    [
        (ACK, Placed(how="inserted", cell_id="new"), True),
        ({**ACK, "how": "replaced"}, Placed(how="replaced", cell_id="new"), True),
        ({**ACK, "how": "already"}, Placed(how="already", cell_id="new"), True),
        (
            {**ACK, "how": "refused", "cell_id": None, "reason": "changed"},
            Placed(how="refused", reason="changed"),
            False,
        ),
        (None, Placed(how="refused", reason="error"), False),
        ({}, Placed(how="refused", reason="error"), False),
        ({**ACK, "how": "sideways"}, Placed(how="refused", reason="error"), False),
        ({**ACK, "cell_id": "a1 --base-url x"}, Placed(how="refused", reason="error"), False),
        ({"how": "inserted"}, Placed(how="refused", reason="error"), False),
    ],
)
async def test_the_front_ends_answer_is_the_result_and_an_unreadable_one_a_refusal(
    comm: ScriptedComm, answer: Any, placed: Placed, ok: bool
) -> None:
    assert await ask(comm, lambda: comm.answer(answer)) == placed
    assert placed.ok is ok
    assert comm.closed == 1


async def test_an_answer_on_another_thread_is_handed_to_the_loop(comm: ScriptedComm) -> None:
    thread = threading.Thread(target=comm.answer, args=(ACK,))
    placed = await ask(comm, thread.start)
    thread.join()
    assert placed == Placed(how="inserted", cell_id="new")


async def test_the_first_of_two_open_pages_that_answer_counts(comm: ScriptedComm) -> None:
    def play() -> None:
        comm.answer(ACK)
        comm.answer({**ACK, "how": "already", "cell_id": "other"})

    assert await ask(comm, play) == Placed(how="inserted", cell_id="new")


async def test_a_front_end_that_cannot_do_it_is_a_result(comm: ScriptedComm) -> None:
    assert await ask(comm, comm.hang_up) == Placed(how="unavailable", reason="closed")
    silent = await put_text("x", cell_id="home", timeout=0.01)
    assert silent == Placed(how="unavailable", reason="timeout")
    assert comm.closed == 2


async def test_without_a_kernel_it_is_unavailable_at_once() -> None:
    placed = await asyncio.wait_for(put_text("x", cell_id="home", timeout=30), 5)
    assert placed == Placed(how="unavailable", reason="no-kernel")


async def test_a_cancelled_request_closes_its_comm(comm: ScriptedComm) -> None:
    task = asyncio.create_task(put_text("x", cell_id="home", timeout=30))
    await comm.listening.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert comm.closed == 1


@pytest.mark.parametrize("cell_id", [None, "home"])
async def test_a_replacement_must_name_the_cell_and_its_text(
    comm: ScriptedComm, cell_id: str | None
) -> None:
    with pytest.raises(UsageError, match="expected to hold"):
        await put_text("x", op="replace", cell_id=cell_id)
    assert comm.target_name == ""


READ = {**ACK, "how": "read", "cell_id": "home", "text": "1 / 0"}
ERROR = {"output_type": "error", "ename": "E", "evalue": "x"}


@pytest.mark.parametrize(
    ("answer", "cell"),
    [
        ({**READ, "cells": [{"outputs": [ERROR, 3]}]}, {"source": "1 / 0", "outputs": [ERROR]}),
        ({**READ, "cells": "x"}, {"source": "1 / 0", "outputs": []}),
        ({**READ, "cells": [3]}, {"source": "1 / 0", "outputs": []}),
        ({**READ, "text": None}, None),
        ({**ACK, "how": "refused", "cell_id": None, "reason": "no-cell"}, None),
    ],
)
async def test_a_cell_is_read_with_its_outputs(
    comm: ScriptedComm, answer: dict[str, Any], cell: Any
) -> None:
    task = asyncio.create_task(read_cell("home"))
    await comm.listening.wait()
    comm.answer(answer)
    assert await asyncio.wait_for(task, 5) == cell
    assert (comm.data["op"], comm.data["cell_id"]) == ("read", "home")


async def test_the_cells_above_are_asked_for(comm: ScriptedComm) -> None:
    task = asyncio.create_task(read_cells_above("home", 2))
    await comm.listening.wait()
    comm.answer({**READ, "cells": [{"source": "x"}]})
    assert await asyncio.wait_for(task, 5) == [{"source": "x"}]
    assert (comm.data["op"], comm.data["cell_id"], comm.data["count"]) == ("above", "home", 2)


class Kernel:
    """A shell inside a kernel that works on one request."""

    def __init__(self, parent: dict[str, Any]) -> None:
        self.get_parent = lambda: parent


@pytest.mark.parametrize(
    ("shell", "cell_id", "text"),
    [
        (Kernel({"metadata": {"cellId": "a-1_B"}, "content": {"code": "x"}}), "a-1_B", "x"),
        (Kernel({"metadata": {"cellId": "vscode-notebook-cell:/a#b"}, "content": {}}), None, None),
        (Kernel({"metadata": {}, "content": {"code": "x"}}), None, "x"),
        (Kernel({}), None, None),
        (object(), None, None),
        (None, None, None),
    ],
    ids=["jupyterlab", "vscode", "nbclient", "idle", "terminal", "script"],
)
def test_the_running_cell_is_known_where_the_front_end_names_it(
    monkeypatch: pytest.MonkeyPatch, shell: object, cell_id: str | None, text: str | None
) -> None:
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    assert cell_target.source_cell_id() == cell_id
    assert cell_target.source_cell_text() == text


class Front:
    """A kernel's shell and the front-end before it; the source cell is ``home``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[dict[str, Any]] = []
        self.payloads: list[tuple[str, bool]] = []
        self.running = "home"
        self.hears = True
        self.answer = Placed(how="unavailable", reason="closed")
        monkeypatch.setattr(cell_target, "source_cell_id", lambda: self.running)
        monkeypatch.setattr(cell_target, "source_cell_text", lambda: "%%refine")
        monkeypatch.setattr(cell_target, "hears_comms_while_running", lambda: self.hears)
        monkeypatch.setattr(cell_target, "put_text", self._put_text)

    async def _put_text(self, text: str, **asked: Any) -> Placed:
        self.asked.append({"text": text, **asked})
        return self.answer

    def set_next_input(self, s: str, replace: bool = False) -> None:
        self.payloads.append((s, replace))

    async def put(
        self,
        place: Place,
        *,
        executing: bool = True,
        running: str = "home",
        origin: Origin | None = None,
        destination: Destination | None = None,
    ) -> str:
        self.running = "home"
        target = CellTarget(self, "refined", place, origin)
        self.running = running
        return await target.put("Hello", form="prose", executing=executing, destination=destination)


@pytest.fixture
def front(monkeypatch: pytest.MonkeyPatch) -> Front:
    return Front(monkeypatch)


async def test_while_the_cell_runs_the_front_end_is_asked_first_and_says_that_it_did(
    front: Front,
) -> None:
    front.answer = Placed(how="inserted", cell_id="new")
    assert await front.put("insert") == "The text is in a new cell below."
    assert front.payloads == []
    assert (front.asked[0]["cell_id"], front.asked[0]["cell_type"]) == ("home", "markdown")


async def test_a_second_text_takes_the_place_of_the_first_in_the_cell_added_for_it(
    front: Front,
) -> None:
    target = CellTarget(front, "refined")
    front.answer = Placed(how="inserted", cell_id="new")
    await target.put("one", form="code", executing=False)
    front.answer = Placed(how="replaced", cell_id="new")
    said = await target.put("two", form="code", executing=False)
    assert said == "The text replaced the cell's source; undo brings it back."
    await target.put("three", form="code", executing=False)
    front.answer = Placed(how="inserted", cell_id="newer")
    await target.put("four", form="code", executing=False, destination="insert")
    asked = [(one["op"], one["cell_id"], one.get("expected_source")) for one in front.asked]
    assert asked == [
        ("insert", "home", None),
        ("replace", "new", "one"),
        ("replace", "new", "two"),
        ("insert", "home", None),
    ]


async def test_from_another_cell_it_is_inserted_there_but_replaces_the_source(front: Front) -> None:
    front.answer = Placed(how="inserted", cell_id="new")
    await front.put("insert", running="later")
    front.answer = Placed(how="replaced", cell_id="home")
    await front.put("replace", running="later")
    assert [asked["cell_id"] for asked in front.asked] == ["later", "home"]
    assert front.asked[1]["expected_source"] == "%%refine"


async def test_the_users_destination_goes_before_the_default_one(front: Front) -> None:
    front.answer = Placed(how="replaced", cell_id="home")
    await front.put("insert", destination="replace")
    assert await front.put("replace", destination="none") == "The text is in `refined`."
    assert [asked["op"] for asked in front.asked] == ["replace"]


async def test_a_text_that_is_to_run_runs_in_the_cell_that_it_replaces_below_its_head(
    front: Front,
) -> None:
    front.answer = Placed(how="replaced", cell_id="failed", reason="ran")
    origin = Origin("failed", "1 / 0", "%%time\n")
    sentence = await front.put("insert", executing=False, origin=origin, destination="run")
    assert sentence == (
        "The text replaced the cell's source, and the cell runs now; undo brings it back."
    )
    [asked] = front.asked
    assert (asked["op"], asked["cell_id"], asked["run"]) == ("replace", "failed", True)
    assert asked["text"] == "%%time\nHello"


@pytest.mark.parametrize(("running", "replaces"), [("home", True), ("later", False)])
async def test_without_an_answer_the_running_cells_reply_carries_it(
    front: Front, running: str, replaces: bool
) -> None:
    sentence = await front.put("replace", running=running)
    assert front.payloads == [("Hello", replaces)]
    assert sentence == f"The text {'replaces the' if replaces else 'is in the next'} cell."


async def test_a_kernel_that_hears_nothing_while_it_runs_asks_nothing(front: Front) -> None:
    front.hears = False
    await front.put("insert")
    assert (front.asked, front.payloads) == ([], [("Hello", False)])


@pytest.mark.parametrize("executing", [True, False])
async def test_a_cell_that_changed_is_left_alone_and_inserting_is_offered(
    front: Front, executing: bool
) -> None:
    front.answer = Placed(how="refused", reason="changed")
    sentence = await front.put("replace", executing=executing)
    assert sentence.startswith("The cell has changed since, so it was left as it is.")
    assert "`%refine apply insert`" in sentence
    assert front.payloads == []


async def test_after_the_cell_an_absent_front_end_leaves_it_in_the_variable(front: Front) -> None:
    sentence = await front.put("insert", executing=False)
    assert sentence.startswith("The text is in `refined`; run `%refine apply insert`")
    assert front.payloads == []
