"""An action is one row of a table: its command, completion, message, button and decision follow."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from kit import text, told
from shells import error_of, scripted_shell

from ipyrefine.core.actions import ACTIONS, Action, decision, decision_sentence, require_possible
from ipyrefine.core.decisions import Guide
from ipyrefine.core.model import Setup, Task
from ipyrefine.core.run import Iteration, Run
from ipyrefine.errors import UsageError
from ipyrefine.notebook.completion import complete
from ipyrefine.notebook.panel import Panel
from ipyrefine.render.html import _templates
from ipyrefine.session.commands import usage

PRAISE = Action(
    "WORDS",
    "say what is good",
    button="Praise",
    title="Say what is good about it.",
    key="+",
    record=Guide,
    read=lambda run, words: Guide(guidance=f"keep {' '.join(words)}"),
    needs=lambda run, d: "Praise something." if d.guidance == "keep " else "",
    done=lambda run, d, text: f"praised {text}",
)
RUN = Run(
    setup=Setup(task=Task(text="Greet."), model="m"), iterations=(Iteration(number=0, text="Hi"),)
)


@pytest.fixture(autouse=True)
def one_more_row() -> Iterator[None]:
    rows = dict(ACTIONS)
    ACTIONS.clear()
    ACTIONS.update({"praise": PRAISE, **rows})  # the first that a `Guide` is
    yield
    ACTIONS.clear()
    ACTIONS.update(rows)


def test_a_row_is_a_command_with_help_and_a_completion(monkeypatch, capsys):
    assert "  praise WORDS                      say what is good" in usage().splitlines()
    shell = scripted_shell(monkeypatch, [text("Hi"), text("Hi")])
    assert complete(shell, "%refine pr") == ("pr", ["praise"])
    assert "Did you mean %refine praise?" in str(error_of(shell, "%refine prais"))
    assert error_of(shell, "%%refine -p prose --critique never -n 0\nGreet.") is None
    assert str(error_of(shell, "%refine praise")) == "Praise something."
    assert error_of(shell, "%refine praise the tone") is None
    [said] = shell.user_ns["refined_run"].decisions
    assert said == Guide(guidance="keep the tone")
    assert [one.words for one in told(shell.user_ns["refined_run"])] == ["keep the tone"]


def test_a_row_is_a_message_of_the_panel_and_a_decision_in_python():
    said = Guide(guidance="keep it")
    assert decision(RUN, "praise", {"guidance": "keep it"}) == said
    taken: list[Guide] = []
    host = SimpleNamespace(decide=taken.append, offers=lambda form: {})
    panel = Panel(host)
    try:
        panel._run = RUN
        message = {"action": "praise", "fields": {"words": " keep it\n", "revisions": 2}}
        panel.widget._handle_custom_msg(message, [])
    finally:
        panel.close()
    assert taken == [said]
    assert decision_sentence(RUN, said) == "You praised the best text: keep it"
    with pytest.raises(UsageError, match=r"^Praise something\.$"):
        require_possible(RUN, Guide(guidance="keep "))


def test_a_row_is_a_button_with_its_title_and_its_key():
    controls = _templates().get_template("controls.html").module
    assert controls.act("praise", keyed=True) == (
        '<button type="button" class="rf-b " data-action="praise" '
        'title="Say what is good about it. (+)" data-hotkey="+">Praise</button>'
    )


def test_no_two_rows_have_the_same_key_and_each_decision_has_one_row():
    del ACTIONS["praise"]
    keys = [row.key for row in ACTIONS.values() if row.key]
    assert len({*keys}) == len(keys)
    records = [row.record for row in ACTIONS.values() if row.done]
    assert len({*records}) == len(records) == 12
