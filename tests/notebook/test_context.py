"""What a model sees of the notebook by default: what the cells before used, and their code."""

from collections.abc import Iterator
from typing import Any

import pandas
import pytest
from shells import loaded_shell

from ipyrefine import api
from ipyrefine.core.model import Setup
from ipyrefine.core.plain_code import without_data
from ipyrefine.core.run import Run
from ipyrefine.errors import Unreachable
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import labels

CELLS = (
    "import pandas as pd",
    "orders = pd.DataFrame({'customer': ['Zwolle-7731'], 'eur': [12.5]})  # of Zwolle-7731",
    "rate = 1.19",
    "def gross(x):\n    return x * rate",
    "orders['gross'] = gross(orders['eur'])",
    "print('nothing of the notebook')",
    "stock = {'Zwolle-7731': 3}",
)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    shell = loaded_shell(monkeypatch)
    shell.history_manager.input_hist_raw[:] = [""]
    for cell in CELLS:
        shell.run_cell(cell, store_history=True)
    return shell


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    def nothing() -> Iterator[Unreachable]:
        while True:
            yield Unreachable("There is no model.")

    scripted = ScriptedModel(nothing(), name="gpt")
    scripted.base_url = "https://models.example.com/v1"  # type: ignore[attr-defined]
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: scripted)
    return scripted


def run_of(shell: Any, options: str = "", task: str = "What is the total?") -> Run:
    shell.run_cell(f"%%refine --set quiet=yes -p code {options}\n{task}", store_history=True)
    run: Run = shell.user_ns["refined_run"]
    return run


def setup_of(shell: Any, options: str = "", task: str = "What is the total?") -> Setup:
    return run_of(shell, options, task).setup


def sent(model: ScriptedModel) -> str:
    return "\n".join(one.content for one in model.requests[-1].messages)


def test_the_model_sees_what_the_latest_cells_used_the_last_one_first(shell, model):
    setup = setup_of(shell)
    assert setup.task.variables == ["stock", "gross", "orders", "rate"]
    said = labels.opening(setup)
    assert said.endswith("Sees stock (1), gross(), orders (1 × 3), rate")
    text = sent(model)
    assert "stock (dict of length 1, used in In [7]):" in text
    assert "orders (pandas DataFrame, 1 rows × 3 columns, used in In [5]):" in text
    assert "customer str, eur float64, gross float64" in text
    assert "Zwolle" not in text


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("--context 1", ["stock"]),
        ("--context 0", []),
        ("--no-var orders", ["stock", "rate", "gross"]),
        ("--no-var all", []),
        ("-v rate --context 1", ["rate", "stock"]),
        ("-p prose", []),  # a task in words
        ("--model recorded:some.json", []),  # which is asked what it was asked
    ],
)
def test_a_user_says_how_much_of_it_is_seen(shell, model, options, names):
    assert setup_of(shell, options).task.variables == names


def test_a_setting_says_of_how_many_cells(shell, model):
    shell.run_line_magic("config", "Refine.context = 0")
    assert setup_of(shell).task.variables == []
    assert setup_of(shell, "--context 1").task.variables == ["stock"]


def test_what_the_request_names_comes_first_however_old_it_is(shell, model):
    setup = setup_of(shell, "--context 1", "Plot `orders` with gross().")
    assert setup.task.variables == ["orders", "gross", "stock"]


def test_what_is_seen_stays_within_its_room(shell, model):
    wide = pandas.DataFrame({f"a_long_column_name_{n}": [n] for n in range(400)})
    shell.user_ns.update({f"wide{n}": wide for n in range(15)})
    shell.run_cell("; ".join(f"wide{n}.size" for n in range(15)), store_history=True)
    setup = setup_of(shell)
    texts = [len(one.text) for one in setup.task.materials if one.kind == "variable"]
    assert max(texts) <= 1_500
    assert sum(texts) < 7_500


def test_of_long_cells_the_last_ones_are_seen(shell, model):
    for name in "abcd":
        shell.run_cell(f"{name} = [{'1, ' * 900}]", store_history=True)
    model.base_url = "http://127.0.0.1:8080/v1"
    shell.run_line_magic("config", "Refine.context = 4")
    run = run_of(shell)
    assert labels.opening(run.setup).endswith(", the code of the last 2 cells")
    text = sent(model)
    assert ("d = [1" in text, "c = [1" in text, "b = [1" in text) == (True, True, False)
    assert "\n[code cell]\nc = [1" in text


@pytest.mark.parametrize(
    ("level", "has", "lacks"),
    [
        ("structure", (), ("[code cell]", "Zwolle", "x * rate")),
        ("code", ("x * rate", "stock = dict[int | str]", "orders['gross']"), ("Zwolle", "12.5")),
        ("outputs", ("x * rate", "rate = float"), ("Zwolle", "12.5")),
        ("values", ("x * rate", "rate = 1.19", "# of Zwolle-7731"), ()),
    ],
)
def test_the_code_of_those_cells_is_sent_as_far_as_the_user_said(shell, model, level, has, lacks):
    setup_of(shell, f"--share {level}")
    text = sent(model)
    assert [one for one in has if one not in text] == []
    assert [one for one in lacks if one in text] == []


def test_a_model_on_this_machine_sees_the_code_as_it_is(shell, model):
    model.base_url = "http://127.0.0.1:8080/v1"
    setup_of(shell)
    assert "stock = {'Zwolle-7731': 3}" in sent(model)
    run = shell.user_ns["refined_run"]
    assert labels.opening(run.setup).endswith(", rate, the code of 5 cells")


def test_an_answer_lets_a_server_see_the_code(shell, model, capsys):
    setup_of(shell)
    capsys.readouterr()
    shell.run_line_magic("refine", "share")
    shown = capsys.readouterr().out
    assert "stock = dict[int | str]" in shown
    assert "Zwolle" not in shown
    shell.run_line_magic("refine", "share always")
    said = capsys.readouterr().out
    assert "The code of the cells above is always sent to models.example.com." in said
    setup_of(shell)
    assert "stock = dict[int | str]" in sent(model)


SENT_AS = {
    "x = 'Zwolle'": "x = str",
    "x = b'Zwolle'": "x = bytes",
    "x = 7731.5": "x = float",
    "x = [1, 2, 'Zwolle']": "x = list[int | str]",
    "x = {'Zwolle': 1}": "x = dict[int | str]",
    "x = f'Zwolle {y}'": "x = str",
    "x = (1, y)": "x = (int, y)",
    "x = True if y else None": "x = True if y else None",
    "df['eur'] = df['kg'] * 3": "df['eur'] = df['kg'] * int",
    "df[['eur', 'kg']]": "df[['eur', 'kg']]",
    "df.merge(b, on='eur', how='left')": "df.merge(b, on='eur', how='left')",
    "f(x=g('Zwolle'))": "f(x=g(str))",
    "df.rename({'eur': 'kg'})": "df.rename({'eur': str})",
    "df.query('eur > 3')": "df.query(str)",
    "def f(x='Zwolle'):\n    'Zwolle'\n    return x  # Zwolle": "def f(x=str):\n    return x",
    "match x:\n    case 'Zwolle':\n        y()": "match x:\n    case str:\n        y()",
    "'''Zwolle'''": "",
    "!echo Zwolle": "",
    "%load_ext Zwolle\nx = 1": "",
    "Zwolle ist eine Stadt": "",
    "x\n\n[its output]\nZwolle\n\n[code cell]\ny": "x\n\n[code cell]\ny",
}


@pytest.mark.parametrize(("code", "plain"), SENT_AS.items())
def test_data_in_code_become_their_types(code, plain):
    expected = f"[code cell]\n{plain}" if plain else ""
    assert without_data(f"[code cell]\n{code}", "df (…):\neur float64") == expected


def test_code_that_cannot_be_shut_in_is_run_once_the_user_says_so(shell, monkeypatch):
    monkeypatch.setattr("ipyrefine.kernel.variables.sandbox_is_closed", lambda: False)
    texts = iter(["```python\norders.size\n```"] * 2)
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: ScriptedModel(texts, name="gpt"))
    (evidence,) = [
        one for one in run_of(shell).iterations[0].evidence if one.name == "run on copies"
    ]
    assert evidence.passed is None
    assert evidence.shows.startswith("Not run: this system can't shut code in.")
    shell.run_line_magic("config", "Refine.set = {'unconfined': True}")
    assert any(one.passed for one in run_of(shell).iterations[0].evidence)
