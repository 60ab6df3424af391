"""`%%refine --set cell`, `--lines` and `--again` in a shell whose front-end names its cells."""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from shells import Front, change_model

from ipyrefine import api
from ipyrefine.errors import NoModel, UsageError
from ipyrefine.journal import writer
from ipyrefine.journal.store import Journal

CODE = "def inc(n):\n    return n + 1"
WRONG = CODE.replace("+ 1", "+ 2")
TWO = f"{WRONG}\n\n\ndef dec(n):\n    return n - 2"
REPLY = f"```python\n{CODE}\n```"
ALREADY = "Already decided."


class Cells(Front):
    """A shell before a notebook, whose model counts how often it was asked.

    Attributes:
        replies: what the model answers; the last one for ever.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch, self._reply())
        self.monkeypatch, self.replies, self.asked = monkeypatch, [REPLY], 0
        self._cells: list[str] = []
        self.shell.user_ns["changed"] = lambda text: not any(text in cell for cell in self._cells)

    def _reply(self) -> Iterator[str]:
        while True:
            self.asked += 1
            yield self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def run(self, cell: str, cell_id: str | None = "refining", **metadata: Any) -> str:
        self._cells.append(cell)
        return super().run(cell, cell_id, **metadata)

    def accept(self, *words: str) -> None:
        """Accept a text from another cell."""
        self.run(" ".join(["%refine accept", *words]), "later")

    def resume(self) -> None:
        """Lose the run, as a kernel that restarts does, and resume it by its name."""
        self.magics.latest = None
        self.run("%refine resume mine --check changed", "later")

    def without_a_model(self) -> "Cells":
        """Return a fresh kernel that finds no model."""
        fresh = Cells(self.monkeypatch)

        def no_model(*_: Any, **__: Any) -> Any:
            raise NoModel("There is no model.")

        self.monkeypatch.setattr(api, "choose_model", no_model)
        return fresh


@pytest.fixture
def front(monkeypatch: pytest.MonkeyPatch) -> Cells:
    return Cells(monkeypatch)


REFINE = "%%refine --set cell=home -c changed -n 1"


@pytest.mark.parametrize(
    "cell",
    [
        f'%%refine --set cell=home --goal "Why two?"\n{WRONG}',
        f'%%refine --set cell=home --change "Why two?"\n{WRONG}',
        f"%%refine\nWhy two?\n\n{WRONG}",
    ],
    ids=["goal", "change", "in the cell"],
)
def test_a_question_about_code_is_answered_below_it_and_leaves_it_as_it_is(front, cell):
    front.replies = ['<text kind="answer">\nIt adds two.\n</text>']
    shown = front.run(cell)
    run = front.last
    assert (run.stop_reason, run.usage.calls, run.text) == ("answered", 1, WRONG)
    assert run.explanations[0].answer == "It adds two."
    assert front.puts == []
    assert "It adds two." in shown


FENCED = "```python\nx = 1\n```"
EMAIL = "Write a sales email to a dentist."


@pytest.mark.parametrize(
    ("options_", "source", "draft", "reply", "put"),
    [
        ("", WRONG, WRONG, REPLY, CODE),
        ("", "# Write inc(n).", None, REPLY, f"# Write inc(n).\n\n{CODE}"),
        ("", EMAIL, None, REPLY, CODE),
        ("", f"%%time\n{WRONG}", WRONG, REPLY, f"%%time\n{CODE}"),
        ("", "%%bash\nls", "ls", "```bash\nls -la\n```", "%%bash\nls -la"),
        (
            " --draft -p prose",
            FENCED,
            FENCED,
            f"<text>\nSee:\n{FENCED}\n</text>",
            f"See:\n{FENCED}",
        ),
    ],
    ids=["code", "comments", "words", "magic", "another language", "markdown"],
)
def test_accepting_replaces_the_cell_that_the_text_is_from_below_its_head(
    front, options_, source, draft, reply, put
):
    front.replies = [reply]
    front.run(f"{REFINE}{options_}\n{source}")
    assert front.last.setup.draft == draft
    assert front.last.task.profile == ("prose" if options_ else "code")
    front.accept()
    [request] = front.puts
    assert (request["op"], request["cell_id"], request["text"]) == ("replace", "home", put)
    assert request["expected_source"] == source


@pytest.mark.parametrize(("lines", "head"), [("1-2", ""), ("1-3", "%%time\n")])
def test_only_the_named_lines_change_counted_from_the_top_of_the_cell(front, lines, head):
    front.replies = [f"```python\n{TWO.replace('2', '1')}\n```"]
    front.run(f"{REFINE} --lines {lines}\n{head}{TWO}")
    assert front.last.text == TWO.replace("+ 2", "+ 1")
    assert "Change only lines 1 to 2 (from 'def inc(n):' to 'return n + 2')" in front.last.task.text
    assert front.last.setup.demands == ()


@pytest.mark.parametrize("resumed", [True, False], ids=["resumed", "with another model"])
def test_a_run_that_goes_on_keeps_to_its_lines_and_its_cell(front, resumed):
    front.replies = ["no code", "no code", f"```python\n{TWO.replace('2', '1')}\n```"]
    front.run(f"{REFINE} --lines 1-2 --set name=mine\n{TWO}")
    assert front.last.text == TWO
    if resumed:
        front.resume()
        front.run("%refine continue 1", "later")
    else:
        change_model(front.shell, "other")
    assert front.last.text == TWO.replace("+ 2", "+ 1")
    front.accept()
    [put] = front.puts
    assert (put["op"], put["cell_id"], put["expected_source"]) == ("replace", "home", TWO)


@pytest.mark.parametrize(
    ("options_", "body", "sentence"),
    [
        ("--lines 2-9", WRONG, "There are no lines 2-9. The draft has 2."),
        ("--lines x", WRONG, "'x' is not a range of lines like 3-7"),
        ("--lines 1-2 --set as=task", WRONG, "--lines and --set as=task contradict each other"),
        ("--lines 1", "# Write inc(n).", "Only lines of a draft can be selected"),
    ],
)
def test_what_cannot_be_refined_gets_a_sentence(front, options_, body, sentence):
    with pytest.raises(UsageError, match=sentence.replace("(", r"\(")):
        front.run(f"{REFINE} {options_}\n{body}")
    assert front.asked == 0


# Running a decided cell again

CELL = f"%%refine -c changed -n 1 --no-check all\n{WRONG}"


@pytest.mark.parametrize("decision", ["accept", "override pass"])
@pytest.mark.parametrize("journal", ["", " --set journal=no"])
def test_a_decided_cell_shows_its_record_instead_of_asking_anew(front, decision, journal):
    cell = CELL.replace("-n 1", f"-n 1{journal}")
    front.run(cell)
    front.run(f"%refine {decision}", "later")
    asked, text = front.asked, front.last.text
    front.shell.user_ns.pop("refined")
    assert ALREADY in front.run(cell)
    assert (front.asked, front.shell.user_ns["refined"]) == (asked, text)


@pytest.mark.parametrize(
    ("cell", "cell_id", "decided"),
    [
        (CELL.replace("-n 1", "-n 1 --again"), "refining", True),
        (CELL.replace("-n 1", "-n 2"), "refining", True),
        (CELL.replace("n + 2", "n + 3"), "refining", True),
        (CELL, "another", True),
        (CELL, None, True),
        (CELL, "refining", False),
    ],
    ids=["again", "other options", "another text", "another cell", "no named cell", "undecided"],
)
def test_a_cell_that_is_not_a_decided_one_asks(front, cell, cell_id, decided):
    front.run(CELL, cell_id and "refining")
    if decided:
        front.accept()
    asked = front.asked
    front.run(cell, cell_id)
    assert front.asked > asked


def test_each_press_of_the_button_asks_and_its_cell_is_known_by_it(front):
    front.run(CELL, ipyrefine={"press": "1"})
    front.accept()
    asked = front.asked
    assert ALREADY in front.run(CELL, ipyrefine={"press": "1"})
    assert front.asked == asked
    front.run(CELL, ipyrefine={"press": "2"})
    assert front.asked > asked


def test_a_fresh_kernel_knows_it_from_the_journal_and_can_go_on(front):
    front.run(CELL)
    front.accept()
    fresh = Cells(front.monkeypatch)
    assert ALREADY in fresh.run(CELL)
    assert fresh.asked == 0
    assert fresh.last.stop_reason == "accepted"
    fresh.run("%refine continue 1 'Say more.'", "later")
    assert fresh.asked > 0


def test_without_its_model_the_record_is_shown_and_replaces_nothing_that_the_journal_names(front):
    front.run(CELL)
    front.accept()
    with contextlib.closing(sqlite3.connect(writer.default_path())) as database, database:
        database.execute("UPDATE runs SET settings = json_set(settings, '$.output', 'print')")
    fresh = front.without_a_model()
    assert ALREADY in fresh.run(CELL)
    assert CODE in fresh.shell.user_ns["refined"]
    assert "print" not in fresh.shell.user_ns
    fresh.run("%refine accept", "later")
    assert fresh.last.text == CODE


MINE = CODE.replace("n + 1", "1 + n")


@pytest.mark.parametrize(
    ("cells", "decisions", "again", "text"),
    [
        (["a"], ["accept"], CELL, CODE),
        (["a"], ["override pass"], CELL, CODE),
        (["a"], ["override fail"], CELL, ""),
        (["a"], ["edit mine", "accept"], CELL, MINE),
        (["a", "b"], ["accept"], CELL, CODE),
        (["a"], ["close"], CELL, ""),
        (["a"], ["accept"], CELL.replace("-n 1", "-n 1 --again"), ""),
        (["a"], ["accept"], CELL.replace("n + 2", "n + 3"), ""),
        (["a"], ["accept"], CELL.replace("-n 1", "-n 1 --set journal=no"), ""),
    ],
)
def test_headless_a_cell_is_known_by_its_task_and_options(front, cells, decisions, again, text):
    front.shell.user_ns["mine"] = MINE
    for cell_id in cells:
        front.run(CELL, cell_id)
        for decision in decisions:
            front.run(f"%refine {decision}", "later")
    fresh = Cells(front.monkeypatch)
    fresh.headless = True
    assert (ALREADY in fresh.run(again, None), fresh.asked == 0) == (bool(text), bool(text))
    assert fresh.shell.user_ns["refined"] == (text or CODE)
    fresh.run("%refine accept", None)
    assert fresh.last.stop_reason == "accepted"


def test_headless_a_task_that_two_cells_decided_differently_is_asked(front, monkeypatch):
    for cell_id, text in (("a", "1"), ("b", "0")):
        front.run(CELL, cell_id)
        front.accept(text)
    front.headless, asked = True, front.asked
    front.run(CELL, None)
    assert front.asked > asked
    front.headless = False
    front.run(CELL, "a")
    front.accept("0")
    front.headless, asked = True, front.asked
    assert ALREADY in front.run(CELL, None)
    monkeypatch.setenv("IPYREFINE_RECORD", "1")
    front.run(CELL, None)
    assert front.asked > asked


# Starting again as code or as prose

KIND = "%%refine -n 0 -c changed --set seed=7 --set name=mine{}\nDouble the number of items."


def test_a_run_starts_again_as_the_other_kind_with_the_same_options(front):
    front.run(KIND.format(""))
    before = front.last
    front.replies = ["<text>\nTwice as many.\n</text>"]
    front.run("%refine continue as prose", "later")
    run = front.last
    assert (before.task.form, run.task.form, run.text) == ("code", "prose", "Twice as many.")
    assert (run.task.text, run.setup.checks) == (before.task.text, before.setup.checks[:1])
    assert (run.limits.seed, run.limits.max_revisions) == (7, 0)
    assert [one.run.task.form for one in map(Journal().get, ("1", "2"))] == ["code", "prose"]


def test_a_switched_text_does_not_take_the_place_of_the_cell_that_asked_for_the_other_kind(front):
    front.run(f"{REFINE}\n# Write inc(n).")
    front.replies = ["<text>\nIt adds one.\n</text>", REPLY]
    for kind in ("prose", "code"):
        front.run(f"%refine continue as {kind}", "later")
        front.accept()
    puts = [(put["op"], put["cell_type"]) for put in front.puts]
    assert puts == [("insert", "markdown"), ("replace", "code")]
