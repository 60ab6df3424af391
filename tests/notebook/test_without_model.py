"""A draft is looked at where no model is set up: checked, run, and shown with what it gives."""

import re
from typing import Any

import pytest
from IPython.utils.capture import capture_output
from kit import READY, text
from shells import change_model, error_of, loaded_shell

from ipyrefine import api
from ipyrefine.core.model import Outcome
from ipyrefine.errors import NoModel, UsageError
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.html import View, panel_parts

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
    shown = look(shell, "%%refine --draft -n 0\nclean = df.dropna()\nprint(len(clean))")
    for words in ("NOT JUDGED", "✓ run on copies", "│ 2", "clean.shape = (2, 2)", "no model"):
        assert words in shown
    assert "Runs; nobody" in shown
    run = shell.user_ns["refined_run"]
    assert (run.usage.calls, run.warnings, run.setup.model) == (0, (), "")


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
    assert shell.user_ns["refined_run"].setup.model == ""
    model = ScriptedModel(replies, name="new")
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: model)
    look(shell, "%refine resume -m new")
    assert shell.user_ns["refined_run"].verdict.why == "no_critic"
    look(shell, f"%refine {command}")
    run = shell.user_ns["refined_run"]
    assert run.setup.model == run.setup.judge == "new"
    assert (run.text, run.verdict.outcome) == (kept, Outcome.PASS)


def test_another_model_goes_on_from_the_panel_and_reads(shell, monkeypatch):
    look(shell, f"%%refine --draft -n 0\n{LATE}")
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: ScriptedModel([READY], name="new"))
    change_model(shell, "new")
    assert shell.user_ns["refined_run"].verdict.outcome is Outcome.PASS


def test_a_panel_names_no_model_and_offers_those_at_hand(shell):
    look(shell, "%%refine --draft -n 0\nx = 1")
    magics = shell.magics_manager.registry["Refine"]
    offers = magics.latest.offers("model")
    shown = "".join(panel_parts(magics.latest.session.run, View(**offers)).values())
    assert "no model ▾" in re.sub(r"<[^>]+>", "", shown)
    assert "" not in offers["models"]


def test_a_failed_cell_is_looked_at_too(shell):
    shell.run_cell("total = 0\ntotals + 1")
    assert "NEEDS IMPROVEMENT" in look(shell, "%refine fix -n 0")


@pytest.mark.parametrize(
    "cell",
    [
        "%%refine -n 0\nWrite a poem.",
        "%%refine --draft\nx = 1",
        "%%refine --draft -n 0 --critique always\nx = 1",
        "%%refine --draft -n 0 -m gpt-9\nx = 1",
    ],
)
def test_what_asks_a_model_still_needs_one(shell, cell):
    assert isinstance(error_of(shell, cell), NoModel)
