"""Text into a cell: the comm to a scripted front-end, the ways there are, and what is reported."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ipyrefine.core.decisions import Destination
from ipyrefine.core.typed import Place
from ipyrefine.notebook import cell_target
from ipyrefine.notebook.cell_target import (
    CellTarget,
    Origin,
    Placed,
    put_text,
)

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


async def played(comm: ScriptedComm, call: Coroutine[Any, Any, Any], *play: object) -> Any:
    """What a call gives while the front-end answers so; a wait for its timeout fails the test."""
    comm.listening.clear()
    task = asyncio.create_task(call)
    await comm.listening.wait()
    for answer in play:
        comm.answer(answer)
    return await asyncio.wait_for(task, 5)


def put(**options: Any) -> Coroutine[Any, Any, Placed]:
    return put_text("x = 1", cell_id="home", **options)


REFUSED = Placed(how="refused", reason="error")


@pytest.mark.parametrize(
    ("answer", "placed"),
    [
        *((ACK | {"how": how}, Placed(how=how, cell_id="new"))
          for how in ("inserted", "replaced", "already")),
        (ACK | {"how": "refused", "cell_id": None, "reason": "changed"},
         Placed(how="refused", reason="changed")),
        (None, REFUSED),
        ({}, REFUSED),
        (ACK | {"how": "sideways"}, REFUSED),
        (ACK | {"cell_id": "a1 --base-url x"}, REFUSED),
    ],
)  # fmt: skip
async def test_the_front_ends_answer_is_the_result_and_an_unreadable_one_a_refusal(
    comm, answer, placed
):
    assert await played(comm, put(), answer) == placed
    assert placed.ok is (placed.how != "refused")
    assert comm.closed == 1


async def test_an_answer_on_another_thread_counts_and_so_does_the_first_of_two_pages(comm):
    class Threaded(ScriptedComm):
        def answer(self, data: Any) -> None:
            thread = threading.Thread(target=comm.answer, args=(data,))
            thread.start()
            thread.join()

    inserted = Placed(how="inserted", cell_id="new")
    other = Threaded()
    other.listening = comm.listening
    assert await played(other, put(), ACK) == inserted
    assert await played(comm, put(), ACK, ACK | {"how": "already", "cell_id": "other"}) == inserted


async def test_a_front_end_that_cannot_do_it_is_a_result(comm, monkeypatch):
    comm.answer = lambda _: comm.hang_up()  # type: ignore[method-assign]
    assert await played(comm, put(), None) == Placed(how="unavailable", reason="closed")
    monkeypatch.setattr(cell_target, "TIMEOUT", 0.01)
    assert await put() == Placed(how="unavailable", reason="timeout")
    assert comm.closed == 2


async def test_without_a_kernel_it_is_unavailable_at_once():
    placed = await asyncio.wait_for(put(), 5)
    assert placed == Placed(how="unavailable", reason="no-kernel")


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
def test_the_running_cell_is_known_where_the_front_end_names_it(monkeypatch, shell, cell_id, text):
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


INSERTED = Placed(how="inserted", cell_id="new")
REPLACED = Placed(how="replaced", cell_id="home")
RAN = Placed(how="replaced", cell_id="home", reason="ran")
ABSENT = Placed(how="unavailable", reason="closed")
CHANGED = Placed(how="refused", reason="changed")
FAILED = Origin("failed", "1 / 0", "%%time\n")
INSERT, REPLACE = ("insert", "home"), ("replace", "home")


@pytest.mark.parametrize(
    ("place", "options", "answer", "asked", "payloads", "sentence"),
    [
        ("insert", {}, INSERTED, [INSERT], [], "The text is in a new cell below."),
        ("insert", {"running": "later"}, INSERTED, [("insert", "later")], [],
         "The text is in a new cell below."),
        ("replace", {"running": "later"}, REPLACED, [REPLACE], [],
         "The text replaced the cell's source; undo brings it back."),
        ("insert", {"destination": "replace"}, REPLACED, [REPLACE], [],
         "The text replaced the cell's source; undo brings it back."),
        ("replace", {"destination": "none"}, REPLACED, [], [], "The text is in `refined`."),
        ("replace", {"destination": "run", "origin": Origin("home", "\nHello\n")}, RAN, [REPLACE],
         [], "The cell runs now."),
        ("replace", {}, ABSENT, [REPLACE], [("Hello", True)], "The text replaces the cell."),
        ("replace", {"running": "later"}, ABSENT, [REPLACE], [("Hello", False)],
         "The text is in the next cell."),
        ("insert", {"executing": False}, ABSENT, [INSERT], [],
         "The text is in `refined`; run `%refine accept insert`"),
        ("replace", {}, CHANGED, [REPLACE], [],
         "The cell has changed since, so it was left as it is."),
        ("replace", {"executing": False}, CHANGED, [REPLACE], [],
         "The cell has changed since, so it was left as it is."),
    ],
    ids=["inserted", "inserted below the running cell", "source replaced from another cell",
         "replaced as the user says", "its own text", "nowhere as the user says",
         "by the cell's reply", "by another cell's reply", "absent after the cell", "changed",
         "changed after the cell"],
)  # fmt: skip
async def test_a_text_goes_where_the_front_end_the_place_and_the_user_let_it(
    front, place, options, answer, asked, payloads, sentence
):
    front.answer = answer
    assert (await front.put(place, **options)).startswith(sentence)
    assert [(one["op"], one["cell_id"]) for one in front.asked] == asked
    assert front.payloads == payloads
    for one in front.asked:
        assert one["cell_type"] == "markdown"
        source = options["origin"].source if "origin" in options else "%%refine"
        assert one.get("expected_source") == (source if one["op"] == "replace" else None)
        assert one["text"] == (source if "origin" in options else "Hello")


async def test_a_second_text_takes_the_place_of_the_first_in_the_cell_added_for_it(front):
    target = CellTarget(front, "refined")
    puts: list[tuple[str, Any, str]] = [
        ("one", None, "inserted"), ("two", None, "replaced"), ("three", None, "replaced"),
        ("four", "insert", "inserted"),
    ]  # fmt: skip
    for text, destination, how in puts:
        front.answer = Placed(how=how, cell_id="new")  # type: ignore[arg-type]
        await target.put(text, form="code", executing=False, destination=destination)
    asked = [(one["op"], one["cell_id"], one.get("expected_source")) for one in front.asked]
    assert asked == [
        ("insert", "home", None),
        ("replace", "new", "one"),
        ("replace", "new", "two"),
        ("insert", "home", None),
    ]


async def test_a_mail_in_a_new_cell_keeps_its_line_breaks_and_is_read_back_without(
    front, monkeypatch
):
    mail, cells = "Best regards,\nAnn", list[Placed]()

    async def read(_: str) -> Placed:
        return cells[-1]

    monkeypatch.setattr(cell_target, "read_cell", read)
    front.answer = INSERTED
    target = CellTarget(front, "refined")
    await target.put(mail, form="prose", executing=True)
    assert front.asked[0]["text"] == "Best regards,  \nAnn"
    for source, text in ((front.asked[0]["text"], mail), ("Hi,  \nAnn", "Hi,\nAnn")):
        cells.append(Placed(how="read", text=source))
        assert await target.read_back() == text
    target = CellTarget(front, "refined", origin=Origin("home", "Regards,\nAnn"))
    await target.put(mail, form="prose", executing=True)
    assert front.asked[1]["text"] == mail, "a cell of the user's own stays as it is written"


async def test_a_text_that_is_to_run_runs_in_the_cell_that_it_replaces_below_its_head(front):
    front.answer = Placed(how="replaced", cell_id="failed", reason="ran")
    sentence = await front.put("insert", executing=False, origin=FAILED, destination="run")
    assert sentence == (
        "The text replaced the cell's source, and the cell runs now; undo brings it back."
    )
    [asked] = front.asked
    assert (asked["op"], asked["cell_id"], asked["run"]) == ("replace", "failed", True)
    assert asked["text"] == "%%time\nHello"
