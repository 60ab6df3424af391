"""What an accepted text gave once its cell ran, compared with what was shown of it."""

from typing import Any

import pytest
from shells import loaded_shell

from ipyrefine import api
from ipyrefine.core.effects import sentence
from ipyrefine.core.run import Run
from ipyrefine.core.stored import read_record
from ipyrefine.journal.store import Journal
from ipyrefine.kernel import snapshot, variables
from ipyrefine.kernel.variables import sandbox_is_closed
from ipyrefine.notebook.cell_target import CellTarget
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import say
from ipyrefine.render.html import record_html
from ipyrefine.render.terminal import record_text
from ipyrefine.session.record import as_json

pytestmark = pytest.mark.skipif(not sandbox_is_closed(), reason="code can't be shut in here")

ORDERS = (
    "import pandas as pd\norders = pd.DataFrame({'id': [1, 2, 3], 'amount': [10.0, 20.5, 3.25]})"
)


class Notebook:
    """A shell, and a model whose draft is a given text; its cells share one event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patches = monkeypatch
        self.shell = loaded_shell(monkeypatch)
        self.shell.history_manager.input_hist_raw[:] = [""]
        self.shell.run_line_magic("config", "Refine.journal = False")

    async def run(self, cell: str) -> Any:
        transformed = self.shell.transform_cell(cell)
        result = await self.shell.run_cell_async(
            cell, store_history=True, transformed_cell=transformed
        )
        self.shell.events.trigger("post_run_cell", result)  # as a kernel does
        for one in self.shell.magics_manager.registry["Refine"].accepted:
            if task := getattr(one, "_again", None):
                await task
        latest = self.shell.magics_manager.registry["Refine"].latest
        if latest and latest._telling:
            await latest._telling
        return result

    async def accept(self, text: str, options: str = "", task: str = "Do it.") -> None:
        """Have a text written, and accept it."""
        await self.write(text, options, task)
        (await self.run("%refine accept none")).raise_error()

    async def write(self, text: str, options: str = "", task: str = "Do it.") -> None:
        """Have a text written."""
        reply = f"```python\n{text}\n```"
        self._patches.setattr(api, "choose_model", lambda *_, **__: ScriptedModel([reply]))
        cell = f"%%refine --plain -p code --critique never {options}\n{task}"
        (await self.run(cell)).raise_error()

    @property
    def last(self) -> Run:
        run: Run = self.shell.magics_manager.registry["Refine"].latest.session.run
        return run

    @property
    def said(self) -> str:
        return say.ran_words(self.last)[0]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    return Notebook(monkeypatch)


TEXT = "total = orders['amount'].sum()\nbig = orders[orders['amount'] > 5]\nbig"
ALL = "ran: both results as shown"


async def test_what_the_cell_gave_as_shown_is_counted_at_its_first_run_and_kept(notebook):
    notebook.shell.run_line_magic("config", "Refine.journal = True")
    await notebook.run(ORDERS)
    await notebook.accept(TEXT)
    assert notebook.said == ""
    await notebook.run(TEXT)
    assert ALL in record_text(notebook.last)
    assert ALL in record_html(notebook.last)
    assert read_record(as_json(notebook.last)).ran == notebook.last.ran
    stored = Journal().get().run
    assert stored.ran == notebook.last.ran
    assert (stored.stop_reason, say.ran_words(stored)[0]) == ("accepted", ALL)
    await notebook.run("orders.loc[0, 'amount'] = 0")
    await notebook.run(TEXT)
    assert notebook.said == ALL


async def test_another_cell_in_between_moves_the_notebook_on(notebook):
    await notebook.run(ORDERS)
    await notebook.accept(TEXT)
    await notebook.run("%refine show sent")
    await notebook.run("orders = orders.head(1)")
    await notebook.run(TEXT)
    assert notebook.said == "ran: the notebook has moved on since it was checked"


async def test_files_that_changed_until_it_was_accepted_are_named(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("1")
    await notebook.run("n = 1")
    text = "from pathlib import Path\nword = Path('a.txt').read_text()\nword"
    await notebook.write(text)
    (tmp_path / "a.txt").write_text("2")
    (await notebook.run("%refine accept none")).raise_error()
    assert notebook.said == "`a.txt` has changed since it was checked"
    await notebook.run(text)
    assert notebook.said == "`word`: shown '1', now '2'"


async def test_what_it_did_to_files_is_compared(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.txt").write_text("1")
    text = "import os\nfrom pathlib import Path\n"
    text += "Path('new.txt').write_text('ab')\nos.remove('old.txt')"
    await notebook.run("n = 1")
    await notebook.accept(text)
    (shown,) = (one for one in notebook.last.chosen.evidence if one.basis == "run")
    assert [*map(sentence, shown.effects)] == [
        "would delete `old.txt` (1 byte)",
        "would write `new.txt` (2 bytes)",
    ]
    monkeypatch.setattr("os.remove", lambda _: None)
    await notebook.run(text)
    assert notebook.said == "`old.txt`: shown gone, now 1 byte"


async def test_a_file_that_changed_in_between_turns_it_amber(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write = (tmp_path / "sales.csv").write_text
    write("id,amount\n1,46655.1\n")
    await notebook.run("import pandas as pd")
    text = "sales = pd.read_csv('sales.csv')\nsales"
    await notebook.accept(text)
    write("id,amount\n1,48210.4\n")
    await notebook.run(text)
    assert notebook.said == "sum of `amount` in `sales`: shown 46,655.10, now 48,210.40"
    assert notebook.said in " ".join(record_text(notebook.last).split())
    receipt = say.receipt(notebook.last)
    assert (receipt.label.word, receipt.label.kind) == ("DIFFERS NOW THAT IT RAN", "warn")


@pytest.mark.parametrize(
    "text",
    ["import time\nt = time.time_ns()", "import random\nx = random.random()\nx",
     "import numpy as np\nxs = np.random.rand(50)", "x = object()\nhash(x)",
     "import datetime\ndatetime.datetime.now()"],
)  # fmt: skip
async def test_what_changes_from_run_to_run_does_not_turn_it_amber(notebook, text):
    await notebook.run(ORDERS)
    await notebook.accept(f"n = len(orders)\n{text}")
    await notebook.run(f"n = len(orders)\n{text}")
    assert "from run to run" in notebook.said
    assert say.receipt(notebook.last).label.kind != "warn"


@pytest.mark.parametrize(
    ("head", "said"),
    [("%%time\n", "ran: both results as shown"), ("%%capture\n", "ran: the result is as shown"),
     ("%%timeit -n 1 -r 1\n", "")],
)  # fmt: skip
async def test_what_stands_above_the_text_belongs_to_it(notebook, monkeypatch, head, said):
    monkeypatch.setattr(CellTarget, "head", lambda *_: head)
    await notebook.run(ORDERS)
    text = "total = orders['amount'].sum()\ntotal + 1"
    await notebook.accept(text)
    await notebook.run(f"{head}{text}")
    assert notebook.said == said


HOSTILE = """
class Hostile:
    def __getattribute__(self, name):
        raise SystemError(name)
    __eq__ = __ne__ = __len__ = __repr__ = __str__ = __hash__ = __bool__ = __iter__ = None
class Meta(type):
    def __getattribute__(cls, name):
        raise SystemError(name)
class Odd(metaclass=Meta):
    pass
"""
ONE_AS_SHOWN = "ran: the result is as shown"
UNCHECKED = "--no-check all"


@pytest.mark.parametrize(
    ("before", "text", "options", "said", "back"),
    [
        ("", "import random\nrandom.seed(len(orders))\nrandom.random()", "", ONE_AS_SHOWN, ()),
        ("", "%precision 3\ntotal = orders['amount'].sum()\n!true", "", ONE_AS_SHOWN, ()),
        ("pd.DataFrame.total = lambda self: 1", "total = orders.total()", "-n 0",
         "it ran; shown: it raised AttributeError", ()),
        ("", f"{HOSTILE}\nn = len(orders)\nh = Hostile()\nodd = Odd()\nmany = [h, odd]", "",
         ALL, ()),
        ("", "orders = orders[orders['amount'] > 5]\nn = len(orders)", UNCHECKED,
         "ran: `orders`: 3 × 2 → 2 × 2; `n` is new: 2", ("orders",)),
        (f"{HOSTILE}\nh = Hostile()\nodd = Odd()", "(h, odd, more) = (Hostile(), h, {1: odd})",
         UNCHECKED, "ran: `odd`: Odd → Hostile; `more` is new: {1: Odd}; 1 more", ("h", "odd")),
        ("", "stop = True\nraise KeyboardInterrupt", UNCHECKED, "ran: `stop` is new: True", ()),
    ],
    ids=["a seed", "lines for IPython", "it raised", "nothing of an object is called",
         "what a first run did", "of hostile objects only the type", "a cell that was stopped"],
)  # fmt: skip
async def test_what_it_gave_is_told(notebook, before, text, options, said, back):
    await notebook.run(f"{ORDERS}\n{before}")
    await notebook.accept(text, options)
    await notebook.run(text)
    assert notebook.said == said
    assert notebook.last.ran.back == back


# What is put back


async def test_what_was_shown_of_first_rows_is_not_compared(notebook, monkeypatch):
    monkeypatch.setattr(snapshot, "_MAX_BYTES", 100_000)
    monkeypatch.setattr(snapshot, "_MAX_BYTES_IN_KERNEL", 100_000)
    monkeypatch.setattr(snapshot, "_memory_of_its_own", lambda: 0)
    await notebook.run("import pandas as pd\nbig = pd.DataFrame({'a': [1.5] * 20_000})")
    text = "big = big[:15_000]\nrows = len(big)\nrows"
    await notebook.accept(text)
    assert notebook.last.chosen.conditions
    await notebook.run(text)
    assert notebook.said == "ran: `big`: 20,000 × 1 → 15,000 × 1; `rows` is new: 15000"


async def test_where_nothing_can_be_shut_in_it_is_said_afterwards(notebook, monkeypatch):
    monkeypatch.setattr(variables, "sandbox_is_closed", lambda: False)
    await notebook.run(ORDERS)
    text = "orders['amount'] = orders['amount'].astype(int)"
    await notebook.accept(text)
    await notebook.run(text)
    assert "type of `amount` in `orders`: float64 → int64" in notebook.said
    assert notebook.last.ran.back == ()


async def test_only_what_was_bound_anew_is_put_back_until_the_next_cell(notebook):
    await notebook.run(f"{ORDERS}\nxs = [1]\nn = 1")
    text = "n = n + 1\nxs.append(2)\norders = orders.head(1)"
    await notebook.accept(text, UNCHECKED)
    await notebook.run(text)
    cell = notebook.shell.magics_manager.registry["Refine"].latest
    assert cell.offers("")["back"] == ("n", "orders")
    cell.act("back", {})
    await cell._telling
    assert (notebook.shell.user_ns["n"], len(notebook.shell.user_ns["orders"])) == (1, 3)
    assert notebook.shell.user_ns["xs"] == [1, 2]
    assert notebook.said.endswith("; `n`, `orders` put back")
    assert cell.offers("")["back"] == ()


async def test_after_the_next_cell_nothing_is_put_back(notebook):
    await notebook.run("n = 1")
    await notebook.accept("n = 2", UNCHECKED)
    await notebook.run("n = 2")
    cell = notebook.shell.magics_manager.registry["Refine"].latest
    await notebook.run("%refine show results")
    assert cell.offers("")["back"] == ("n",)
    await notebook.run("pass")
    assert cell.offers("")["back"] == ()
    assert notebook.said == "ran: `n`: 1 → 2"
