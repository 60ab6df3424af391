"""A draft is looked at where no model is set up: checked, run, and shown with what it gives."""

import asyncio
import re
from typing import Any

import pytest
from IPython.utils.capture import capture_output
from kit import READY, text
from shells import Front, error_of, loaded_shell

from ipyrefine import api
from ipyrefine.core.model import Outcome
from ipyrefine.errors import NoModel, NoModelYet, UsageError
from ipyrefine.notebook.cell_target import Placed
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.html import NOTHING, View, panel_parts
from ipyrefine.render.say import receipt

FRAME = 'import pandas as pd\ndf = pd.DataFrame({"city": ["a", "b", None], "n": [1, 2, 3]})'
INC = "Write inc(x). inc(1) == 2\n\ndef inc(x):\n    return x + {}"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    return loaded_shell(monkeypatch)


def look(shell: Any, cell: str) -> str:
    with capture_output() as captured:
        error = error_of(shell, cell)
    assert error is None
    return captured.stdout


def test_a_draft_about_a_frame_is_run_and_shown_with_what_became_of_it(shell):
    shell.run_cell(FRAME)
    shown = look(shell, "%%look\nclean = df.dropna()\nprint(len(clean))")
    for words in ("◉ LOOKED AT", "The answer: 2", "without a model. Uses df (3 × 2)"):
        assert words in shown
    assert "Nothing has run in your notebook" in shown
    assert not re.search("Improve this|draft to improve|Accept the text|continue|NOT JUDGED", shown)
    assert not {"refined", "refined_run"} & {*shell.user_ns}
    assert "There is no run yet" in str(error_of(shell, "%refine show"))


@pytest.mark.parametrize(
    ("options", "added", "outcome", "said"),
    [
        ("-n 0", 1, Outcome.PASS, "PASS"),
        ("-n 0", 2, Outcome.NEEDS_IMPROVEMENT, "inc(1): expected 2, got 3"),
        ("--coach", 2, Outcome.NEEDS_IMPROVEMENT, "What does it give?"),
        ("-n 0 --change shorter", 2, Outcome.NEEDS_IMPROVEMENT, "expected 2, got 3"),
    ],
)
def test_a_task_with_a_draft_below_it_has_its_examples(shell, options, added, outcome, said):
    assert said in look(shell, f"%%refine {options}\n{INC.format(added)}")
    assert shell.user_ns["refined_run"].verdict.outcome is outcome


@pytest.mark.parametrize("command", ["continue", 'continue "shorter"', "continue from 0"])
def test_to_continue_says_how_to_set_up_a_model_and_changes_nothing(shell, command):
    look(shell, "%%refine --draft -n 0\nx = 1")
    before = shell.user_ns["refined_run"]
    error = error_of(shell, f"%refine {command}")
    assert isinstance(error, UsageError)
    assert "No model is set up" in str(error)
    assert "%refine resume -m NAME" in str(error)
    assert shell.user_ns["refined_run"] == before


@pytest.mark.parametrize(
    ("cell", "command", "label"),
    [
        ("--draft -n 0\nx = 1", "override fail", "FAIL (yours)"),
        ("--draft -n 0\nx = 1", 'override improve "a name"', "NEEDS IMPROVEMENT (yours)"),
        ("--draft -n 0\nx = 1", 'add blocking "a name"', "NEEDS IMPROVEMENT"),
        (f"-n 0\n{INC.format(1)}", 'add minor "take None"', "PASS · 1 of 1 examples hold"),
        (f"-n 0\n{INC.format(2)}", 'add blocking "take None"', "FAILS"),
    ],
)
def test_what_the_user_says_of_a_look_needs_no_model(shell, cell, command, label):
    look(shell, f"%%refine {cell}")
    assert label in look(shell, f"%refine {command}").partition("────")[0]
    assert shell.user_ns["refined_run"].usage.calls == 0


LATE, SHORT = "The parcel is late.", "It is late."


@pytest.mark.parametrize(
    ("command", "replies", "kept"),
    [
        ("continue", [READY], LATE),
        ("continue shorter", [READY, text(SHORT), READY], SHORT),
    ],
)
def test_once_there_is_a_model_it_reads_the_draft_and_goes_on(
    shell, monkeypatch, command, replies, kept
):
    look(shell, f"%%refine --draft -n 0\n{LATE}")
    assert error_of(shell, "%refine resume") is None
    model = ScriptedModel(replies, name="new")
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: model)
    look(shell, "%refine resume -m new")
    assert shell.user_ns["refined_run"].verdict.why == "no_critic"
    look(shell, f"%refine {command}")
    run = shell.user_ns["refined_run"]
    assert run.setup.model == run.setup.judge == "new"
    assert (run.text, run.verdict.outcome) == (kept, Outcome.PASS)


@pytest.mark.parametrize(
    ("source", "label", "sentence"),
    [
        ("df.n.sum()", "◉ LOOKED AT", "The answer: 6"),
        ("df", "◉ LOOKED AT", "The answer"),
        ("x = 1", "◉ LOOKED AT", "x = 1"),
        ('{"a": 1}', "◉ LOOKED AT", "{'a': 1}"),
        ("def inc(x):\n    return x + 1", "◉ LOOKED AT", "Nothing has run in your notebook"),
        (
            "class Stack:\n    def __init__(self):\n        self.items = []",
            "◉ LOOKED AT",
            "Nothing has run",
        ),
        ("!ls\n%time y = 2\ny + 1", "◉ LOOKED AT", "The answer: 3"),
        ("%%time\ndf.n.max()", "◉ LOOKED AT", "never run by checks: %%time"),
        ("```python\n1 + 1\n```", "◉ LOOKED AT", "The answer: 2"),
        ("rows = open('bikes.csv').read()\nlen(rows)", "◉ LOOKED AT", "The answer: 4"),
        ("df['m'].sum()", "✗ FAILS", "KeyError: 'm' (line 1)"),
        ("absent + 1", "✗ FAILS", "NameError: name 'absent' is not defined"),
        ("open('absent.csv').read()", "✗ FAILS", "FileNotFoundError"),
        ("x = (1 +", "✗ FAILS", "SyntaxError"),
        ("input()", "· NOT RUN", "it asks for input"),
        ("import urllib.request as u\nu.urlopen('http://example.com')", "· NOT RUN", "the network"),
        ("import urllib.request as u\nu.urlopen('http://localhost:9')", "· NOT RUN", "a server on"),
        ("!ls", "· NOT RUN", "There is no Python in it, and only Python is run"),
        ("%%bash\nls", "· NOT RUN", "This is Bash code, and only Python is run"),
        *[
            (words, "· NOT RUN", "This is text, not code: there is nothing to run")
            for words in (
                "The parcel is late.",
                "What is the total amount per town?",
                "写一首诗",
            )
        ],
    ],
)
def test_any_cell_is_looked_at_as_what_it_is(shell, monkeypatch, tmp_path, source, label, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bikes.csv").write_text("a,b\n")
    shell.run_cell(FRAME)
    shown = look(shell, f"%%look\n{source}")
    assert f"Your text: {label} " in shown
    assert sentence in " ".join(shown.split())
    assert ("To run it, run the cell" in shown) == (label == "◉ LOOKED AT")


UNREAD = "%%refine --draft -n 0 --critique never"


@pytest.mark.parametrize(
    ("magic", "defaults"),
    [
        (UNREAD, {}),
        (f"{UNREAD} -m gpt-9", {}),
        ("%%look", {"critique": "always", "target": 0.8}),
        ("# A note\n%%look", {"as": "task", "check": "unknown"}),
        ("%%time\n%%look", {"coach": True, "change": "shorter"}),
    ],
)
def test_what_is_never_read_nor_revised_loads_and_names_no_model(
    shell, monkeypatch, magic, defaults
):
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: pytest.fail("no model is needed"))
    monkeypatch.setenv("IPYREFINE_MODEL", "gpt-9")
    shell.magics_manager.registry["Refine"].set = defaults
    shown = look(shell, f"{magic}\n1 + 1")
    assert "◉ LOOKED AT" in shown
    assert "gpt" not in shown


def test_a_system_that_cannot_shut_code_in_is_said_in_a_sentence(shell, monkeypatch):
    monkeypatch.setattr("ipyrefine.kernel.variables.sandbox_is_closed", lambda: False)
    shown = " ".join(look(shell, "%%refine --draft -n 0\n1 + 1").split())
    assert "this system can't shut code in. --set unconfined=yes runs it." in shown
    magics = shell.magics_manager.registry["Refine"]
    assert magics.latest.offers("")["asks_to_run"]

    async def agree() -> None:
        await magics.latest.act("unconfined", {"name": "yes"})
        await magics.latest.session.settle()

    with capture_output():
        asyncio.run(agree())
    assert magics.latest.session.run.verdict.only_ran


def test_a_folder_above_is_read_once_that_is_allowed(shell, tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "rows.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path / "book")
    shown = " ".join(look(shell, "%%look\nopen('../rows.csv').read()").split())
    assert "it uses ../rows.csv, above this folder. --set above=1 lets checked code" in shown
    magics = shell.magics_manager.registry["Refine"]
    assert magics.runs[None].offers("")["asks_above"] == 1

    async def agree() -> None:
        await magics.runs[None].act("above", {"name": "1"})
        await magics.runs[None].session.settle()

    with capture_output():
        asyncio.run(agree())
    assert magics.runs[None].session.run.verdict.only_ran
    assert "'a\\n1\\n'" in look(shell, "%%look\nopen('../rows.csv').read()")


def read_panel(run: Any, **view: Any) -> str:
    parts = panel_parts(run, View(**view))
    return " ".join(re.sub(r"<[^>]+>", " ", "".join(parts.values())).split())


def test_a_panel_has_the_words_of_looking_and_runs_the_cell_itself(shell):
    shell.run_cell(FRAME)
    look(shell, "%%refine --draft -n 0\ndf.n.sum()")
    run = shell.user_ns["refined_run"]
    shown = read_panel(run)
    assert shown.startswith("◉ LOOKED AT No row lost, no value missing, no file touched Run cell ⋯")
    html = "".join(panel_parts(run, View(offers={**NOTHING, "place_to_run": "replace"})).values())
    assert (
        'data-action="accept" data-iteration="0" data-place="run" title="Run the cell itself.'
        in html
    )
    refining = "Accept|Mark as|[Nn]eeds work|more revision|Improve|say what you need|criteria"
    assert not re.search(refining, re.sub(r"<style.*?</style>", "", html))
    assert not re.search('data-action="(continue|expect)"', html)


def test_the_receipt_of_a_look_says_what_was_seen(shell):
    look(shell, "%%refine --draft -n 0\n1 + 1")
    look(shell, "%refine accept none")
    said = receipt(shell.user_ns["refined_run"])
    assert str(said).startswith("◉ LOOKED AT · No row lost, no value missing")
    assert "accepted" not in str(said)


def test_a_cell_is_looked_at_again_after_it_ran(monkeypatch):
    front = Front(monkeypatch)
    cell = "%%refine --draft -n 0 --critique never --set cell=home\nn = 1 + 1\nn"
    for total in (2, 3):
        shown = front.run(cell.replace("1 + 1", f"{total - 1} + 1"), "below")
        assert "No row lost" in shown
        front.run("%refine accept", "later")
        assert "Already decided" not in front.run(cell, "below")
    assert front.puts[0]["text"] == front.puts[0]["expected_source"] == "n = 1 + 1\nn"


@pytest.mark.parametrize(
    ("cell", "offered"),
    [
        ("%%refine\ndf = 1\ndf", True),
        ("%%refine\ndf.groupby('n').sum()", True),
        ("%%refine\nWrite inc(x).\n\ndef inc(x):\n    return x + 2", True),
        ("%%refine\nWrite a poem.", False),
        ("%%refine\nWhat is the total amount per town?", False),
        ("%%refine\n# Write inc(n).", False),
    ],
)
def test_code_is_offered_a_look_where_no_model_is_set_up(shell, cell, offered):
    error = error_of(shell, cell)
    assert type(error) is (NoModelYet if offered else NoModel)
    first = "Look before you run: %%look shows"
    assert str(error).startswith(first) == offered
    assert "No model is configured. Run `pip install" in str(error)


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        ("%%look -n 3\nx = 1", "%%look takes no options. For any, start the cell with %%refine."),
        ("%%look  # mine\nx = 1", "%%look takes no options."),
        ("%%look", "The cell is empty."),
        ("%%look\n  \n", "The cell is empty."),
    ],
)
def test_a_look_that_cannot_begin_says_so(shell, cell, sentence):
    error = error_of(shell, cell)
    assert isinstance(error, UsageError)
    assert str(error).startswith(sentence)


def test_a_name_that_another_cell_defines_is_told_with_that_cell(monkeypatch):
    async def read(_: str) -> Placed:
        return Placed(how="read", cells=("", "%pylab\nimport math as rates", "x = rates + y"))

    front = Front(monkeypatch)
    monkeypatch.setattr("ipyrefine.notebook.cell_target.read_cell", read)
    assert ". Cell 2 defines it: run that first" in front.run("%%look\nx = rates", "here")


def test_a_look_s_help_is_its_own(shell):
    assert look(shell, "%%look?").startswith("Show what a cell gives and does to your data")


def test_windows_line_ends_are_ends_of_lines(shell):
    look(shell, "%%refine --draft -n 0\r\ndouble = 2\r\n\r\ndouble + 1\r\n")
    assert shell.user_ns["refined"] == "double = 2\n\ndouble + 1"
