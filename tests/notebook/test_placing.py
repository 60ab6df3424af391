"""The ladder by which a text gets into a cell, and what is said of the rung that was used."""

from typing import Any

import pytest

from ipyrefine.core.records import Task
from ipyrefine.core.runs import Run
from ipyrefine.notebook import cell_target as cells
from ipyrefine.notebook.cell_target import Placed
from ipyrefine.notebook.placing import Home, Where

PROSE = Run(task=Task(text="Greet.", form="prose"))


class Front:
    """A kernel's shell and the front-end before it; the source cell is ``home``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, placed: Placed) -> None:
        self.asked: list[dict[str, Any]] = []
        self.payloads: list[tuple[str, bool]] = []
        self.running = "home"
        self.hears = True
        self._placed = placed
        monkeypatch.setattr(cells, "source_cell_id", lambda: self.running)
        monkeypatch.setattr(cells, "source_cell_text", lambda: "%%refine")
        monkeypatch.setattr(cells, "answered_while_running", lambda: self.hears)
        monkeypatch.setattr(cells, "put_text", self._put_text)

    async def _put_text(self, text: str, **asked: Any) -> Placed:
        self.asked.append(asked)
        return self._placed

    def set_next_input(self, s: str, replace: bool = False) -> None:
        self.payloads.append((s, replace))

    async def put(self, where: Where, *, executing: bool, running: str = "home") -> str:
        self.running = "home"
        home = Home(self, "refined", where)
        self.running = running
        return await home.put("Hello", PROSE, executing=executing)


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


@pytest.mark.parametrize(("running", "replaces"), [("home", True), ("later", False)])
async def test_without_an_answer_the_running_cells_reply_carries_it(
    monkeypatch: pytest.MonkeyPatch, running: str, replaces: bool
) -> None:
    front = Front(monkeypatch, CLOSED)
    said = await front.put("replace", executing=True, running=running)
    assert front.payloads == [("Hello", replaces)]
    assert said == ("The text replaces the cell." if replaces else "The text is in the next cell.")


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
    said = await front.put("replace", executing=executing)
    assert said.startswith("The cell has changed since, so it was left as it is.")
    assert "`%refine apply insert`" in said
    assert front.payloads == []


async def test_after_the_cell_an_absent_front_end_leaves_it_in_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    front = Front(monkeypatch, CLOSED)
    said = await front.put("insert", executing=False)
    assert said.startswith("The text is in `refined`; run `%refine apply insert`")
    assert front.payloads == []


async def test_into_the_variable_only_touches_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    front = Front(monkeypatch, CLOSED)
    assert await front.put("none", executing=True) == "The text is in `refined`."
    assert (front.asked, front.payloads) == ([], [])
