"""Text into a cell: the comm to a scripted front-end, the ways there are, and what is reported."""

import asyncio
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipyrefine.errors import UsageError
from ipyrefine.notebook import cell_target
from ipyrefine.notebook.cell_target import (
    CellTarget,
    Origin,
    Placed,
    insert_with_reply,
    put_text,
    read_cell,
)
from ipyrefine.session.commands import Place

PROJECT = Path(__file__).parents[2]
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

    def __call__(self, *, target_name: str, data: dict[str, Any]) -> "ScriptedComm":
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


async def ask(comm: ScriptedComm, play: Callable[[], object], **options: Any) -> Placed:
    """Put a text while the front-end plays its part; a wait for the timeout fails the test."""
    options = {"cell_id": "home", "timeout": 30, **options}
    task = asyncio.create_task(put_text("x = 1", comm_factory=comm, **options))
    await comm.listening.wait()
    play()
    return await asyncio.wait_for(task, 5)


async def test_an_insertion_sends_everything_the_front_end_needs():
    comm = ScriptedComm()
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


async def test_every_request_has_its_own_op_id_unless_one_is_given():
    first, second = ScriptedComm(), ScriptedComm()
    await ask(first, lambda: first.answer(ACK))
    await ask(second, lambda: second.answer(ACK))
    assert first.data["op_id"] != second.data["op_id"]


@pytest.mark.parametrize(
    ("how", "reason", "ok"),
    [
        ("inserted", "", True),
        ("replaced", "", True),
        ("already", "", True),
        ("refused", "changed", False),
    ],
)
async def test_the_front_ends_answer_is_the_result(how: str, reason: str, ok: bool):
    comm = ScriptedComm()
    cell_id = "new" if ok else None
    answer = {"op_id": "1", "ok": ok, "how": how, "cell_id": cell_id, "reason": reason}
    placed = await ask(comm, lambda: comm.answer(answer))
    assert placed == Placed(how=how, cell_id=cell_id, reason=reason)  # type: ignore[arg-type]
    assert placed.ok is ok
    assert comm.closed == 1


async def test_an_answer_on_another_thread_is_handed_to_the_loop():
    comm = ScriptedComm()
    thread = threading.Thread(target=comm.answer, args=(ACK,))
    placed = await ask(comm, thread.start)
    thread.join()
    assert placed == Placed(how="inserted", cell_id="new")


async def test_the_first_of_two_open_pages_that_answer_counts():
    comm = ScriptedComm()

    def play() -> None:
        comm.answer(ACK)
        comm.answer({**ACK, "how": "already", "cell_id": "other"})

    assert await ask(comm, play) == Placed(how="inserted", cell_id="new")


async def test_a_front_end_without_the_extension_is_unavailable_at_once():
    comm = ScriptedComm()
    placed = await ask(comm, comm.hang_up)
    assert placed == Placed(how="unavailable", reason="closed")
    assert not placed.ok


async def test_a_silent_front_end_is_unavailable_after_the_timeout():
    comm = ScriptedComm()
    placed = await put_text("x", cell_id="home", timeout=0.01, comm_factory=comm)
    assert placed == Placed(how="unavailable", reason="timeout")
    assert comm.closed == 1


async def test_without_a_kernel_it_is_unavailable_at_once():
    put = put_text("x", cell_id="home", timeout=30)
    placed = await asyncio.wait_for(put, 5)
    assert placed == Placed(how="unavailable", reason="no-kernel")


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
async def test_a_cell_is_read_with_its_outputs(answer: dict[str, Any], cell: Any):
    comm = ScriptedComm()
    task = asyncio.create_task(read_cell("home", timeout=30, comm_factory=comm))
    await comm.listening.wait()
    comm.answer(answer)
    assert await asyncio.wait_for(task, 5) == cell
    assert (comm.data["op"], comm.data["cell_id"]) == ("read", "home")


@pytest.mark.parametrize(
    "data",
    [
        None,
        {},
        {**ACK, "how": "sideways"},
        {**ACK, "cell_id": "a1 --base-url x"},
        {"how": "inserted"},
    ],
)
async def test_an_answer_that_cannot_be_read_is_a_refusal(data: Any):
    comm = ScriptedComm()
    placed = await ask(comm, lambda: comm.answer(data))
    assert placed == Placed(how="refused", reason="error")


async def test_a_cancelled_request_closes_its_comm():
    comm = ScriptedComm()
    task = asyncio.create_task(put_text("x", cell_id="home", timeout=30, comm_factory=comm))
    await comm.listening.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert comm.closed == 1


@pytest.mark.parametrize("cell", [{"cell_id": None}, {"cell_id": "home"}])
async def test_a_replacement_must_name_the_cell_and_its_text(cell: dict[str, Any]):
    comm = ScriptedComm()
    with pytest.raises(UsageError, match="expected to hold"):
        await put_text("x", op="replace", comm_factory=comm, **cell)
    assert comm.target_name == ""


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
):
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    assert cell_target.source_cell_id() == cell_id
    assert cell_target.source_cell_text() == text


@pytest.mark.parametrize("replace", [False, True])
def test_the_payload_is_ipythons_own(replace: bool):
    from IPython.core.interactiveshell import InteractiveShell
    from shells import NO_HISTORY

    shell = InteractiveShell(config=NO_HISTORY)
    insert_with_reply(shell, "x = 1", replace=replace)
    assert shell.rl_next_input == "x = 1"  # what a terminal shell makes of the payload


def test_the_extension_is_installed_where_jupyterlab_looks_and_has_the_projects_version():
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    [(source, target)] = project["tool"]["hatch"]["build"]["targets"]["wheel"][
        "shared-data"
    ].items()
    package = json.loads((PROJECT / source / "package.json").read_text())
    assert target == f"share/jupyter/labextensions/{package['name']}"
    assert package["version"] == project["project"]["version"]
    entry = PROJECT / source / package["jupyterlab"]["_build"]["load"]
    beside = re.findall(r'"(\w+\.js)"', entry.read_text())
    assert beside
    assert all((entry.parent / name).is_file() for name in beside)


class Front:
    """A kernel's shell and the front-end before it; the source cell is ``home``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, placed: Placed) -> None:
        self.asked: list[dict[str, Any]] = []
        self.payloads: list[tuple[str, bool]] = []
        self.running = "home"
        self.hears = True
        self._placed = placed
        monkeypatch.setattr(cell_target, "source_cell_id", lambda: self.running)
        monkeypatch.setattr(cell_target, "source_cell_text", lambda: "%%refine")
        monkeypatch.setattr(cell_target, "hears_comms_while_running", lambda: self.hears)
        monkeypatch.setattr(cell_target, "put_text", self._put_text)

    async def _put_text(self, text: str, **asked: Any) -> Placed:
        self.asked.append(asked)
        return self._placed

    def set_next_input(self, s: str, replace: bool = False) -> None:
        self.payloads.append((s, replace))

    async def put(self, where: Place, *, executing: bool, running: str = "home") -> str:
        self.running = "home"
        target = CellTarget(self, "refined", where)
        self.running = running
        return await target.put("Hello", form="prose", executing=executing)


CLOSED = Placed(how="unavailable", reason="closed")


async def test_while_the_cell_runs_the_front_end_is_asked_first_and_says_that_it_did(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = Front(monkeypatch, Placed(how="inserted", cell_id="new"))
    assert await front.put("insert", executing=True) == "The text is in a new cell below."
    assert front.payloads == []
    assert (front.asked[0]["cell_id"], front.asked[0]["cell_type"]) == ("home", "markdown")


async def test_from_another_cell_it_is_inserted_there_but_replaces_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = Front(monkeypatch, Placed(how="inserted", cell_id="new"))
    await front.put("insert", executing=True, running="later")
    await front.put("replace", executing=True, running="later")
    assert [asked["cell_id"] for asked in front.asked] == ["later", "home"]
    assert front.asked[1]["expected_source"] == "%%refine"


async def test_a_text_that_is_to_run_runs_in_the_cell_that_it_replaces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = Front(monkeypatch, Placed(how="replaced", cell_id="failed", reason="ran"))
    target = CellTarget(front, "refined", origin=Origin("failed", "1 / 0", "%%time\n"))
    target.where, target.run_after = target.place_to_run, True
    sentence = await target.put("1 / 1", form="code", executing=False)
    assert sentence == (
        "The text replaced the cell's source, and the cell runs now; undo brings it back."
    )
    [asked] = front.asked
    assert (asked["op"], asked["cell_id"], asked["run"]) == ("replace", "failed", True)


@pytest.mark.parametrize(("running", "replaces"), [("home", True), ("later", False)])
async def test_without_an_answer_the_running_cells_reply_carries_it(
    monkeypatch: pytest.MonkeyPatch, running: str, replaces: bool
) -> None:
    front = Front(monkeypatch, CLOSED)
    sentence = await front.put("replace", executing=True, running=running)
    assert front.payloads == [("Hello", replaces)]
    assert sentence == (
        "The text replaces the cell." if replaces else "The text is in the next cell."
    )


async def test_a_kernel_that_hears_nothing_while_it_runs_asks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = Front(monkeypatch, CLOSED)
    front.hears = False
    await front.put("insert", executing=True)
    assert (front.asked, front.payloads) == ([], [("Hello", False)])


@pytest.mark.parametrize("executing", [True, False])
async def test_a_cell_that_changed_is_left_alone_and_inserting_is_offered(
    monkeypatch: pytest.MonkeyPatch, executing: bool
) -> None:
    front = Front(monkeypatch, Placed(how="refused", reason="changed"))
    sentence = await front.put("replace", executing=executing)
    assert sentence.startswith("The cell has changed since, so it was left as it is.")
    assert "`%refine apply insert`" in sentence
    assert front.payloads == []


async def test_after_the_cell_an_absent_front_end_leaves_it_in_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = Front(monkeypatch, CLOSED)
    sentence = await front.put("insert", executing=False)
    assert sentence.startswith("The text is in `refined`; run `%refine apply insert`")
    assert front.payloads == []


async def test_into_the_variable_only_touches_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    front = Front(monkeypatch, CLOSED)
    assert await front.put("none", executing=True) == "The text is in `refined`."
    assert (front.asked, front.payloads) == ([], [])
