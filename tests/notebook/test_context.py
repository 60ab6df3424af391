"""What a model sees of the notebook by default: what the cells before used, and their code."""

import re
from collections.abc import Iterator
from typing import Any

import pandas
import pytest
from shells import loaded_shell

from ipyrefine import api
from ipyrefine.core.model import Setup
from ipyrefine.core.run import Run
from ipyrefine.errors import Unreachable
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import say

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


def seen(setup: Setup) -> list[str]:
    """What is described, and what only has a line."""
    lines = "".join(one.text for one in setup.task.materials if one.kind == "names")
    return [*setup.task.variables, *re.findall(r"^(\w+) \((?!module)", lines, re.MULTILINE)]


def test_a_request_that_names_no_data_sees_what_the_last_cell_used_and_names_of_others(
    shell, model
):
    setup = setup_of(shell)
    assert setup.task.variables == ["stock"]
    assert seen(setup) == ["stock", "gross", "orders", "rate"]
    assert say.opening(setup).endswith("Sees stock (1), names of 3 more, names and calls of 1 cell")
    text = sent(model)
    assert "stock (dict of length 1):\ndict[str, int]" in text
    assert "orders (pandas DataFrame, 1 rows × 3 columns): customer str, eur float64" in text
    assert "pd (module pandas)" in text
    assert "Zwolle" not in text


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("Which customers paid most?", ["orders"]),
        ("What is the mean Gross?", ["orders"]),
        ("Write second_largest(xs).", []),
        ("Write a short mail to my landlord about the heating.", []),
        ("Implement a Java class Stack with push.", []),
        ("Write a mail to each customer.", ["orders"]),
    ],
)
def test_a_column_names_its_frame_and_what_is_written_anew_sees_nothing_unnamed(
    shell, model, task, names
):
    setup = setup_of(shell, task=task)
    assert setup.task.variables == names
    assert bool(names) is any(one.kind == "names" for one in setup.task.materials)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("--context 1", ["stock"]),
        ("--context 0", []),
        ("--no-var orders", ["stock"]),
        ("--no-var all", []),
        ("-v rate --context 1", ["rate", "stock"]),
        ("-p prose", []),  # a task in words
        ("--model recorded:some.json", []),  # which is asked what it was asked
    ],
)
def test_a_user_says_how_much_of_it_is_seen(shell, model, options, names):
    assert setup_of(shell, options).task.variables == names


RUBRIC = "RUBRIC = 'Right, planted.'"
GRADE = "def grade(text):\n    return 'planted' not in text"
TRIED = ["print(grade('planted'))", "assert not grade('planted')\nRUBRIC"]
CALLS = "def grade(text):\n    return {}"
# Of each: the cells that a run is judged by, and the options that say so.
JUDGES = {
    "a function": ([GRADE], "-c grade"),
    "a lambda, then a function": (["grade = lambda text: 'planted' in text", GRADE], "-c grade"),
    "what a function calls": (
        [RUBRIC, "def lint(text):\n    return RUBRIC in text", CALLS.format("lint(text)")],
        "-c grade",
    ),
    "a partial function": (
        ["KEY = 'planted'", "def has(key, text):\n    return key in text",
         "grade = partial(has, KEY)"],
        "-c grade",
    ),
    "an instance": (
        [RUBRIC, "class Grader:\n    def __call__(self, text):\n        return RUBRIC in text",
         "grade = Grader()\ngrade.key = 'planted'"],
        "-c grade",
    ),
    "a list of tests": (
        ["TESTS = []", "def planted():\n    return 7", "def test_a():\n    planted()",
         "TESTS.append(test_a)"],
        "-c tests:TESTS",
    ),
    "a text of tests": (
        ["def answer():\n    return 'planted'", "TESTS = 'def test_a(): assert f() == answer()'"],
        "-c 'tests:TESTS seconds=9'",
    ),
    "the right values": (
        ["EXPECTED = pd.DataFrame({'planted': [1]})", CALLS.format("EXPECTED.size"), "EXPECTED"],
        "-c grade",
    ),
    "a number made of data": (
        ["TOTAL = orders['eur'].sum()", CALLS.format("f'planted {TOTAL}' in text")], "-c grade",
    ),
    "what cells try": ([RUBRIC, CALLS.format("RUBRIC in text"), *TRIED], "-c grade"),
    "prompts": (
        [RUBRIC, "JUDGE = f'PASS or FAIL? {RUBRIC}'", "mine = {}", "mine['judge'] = JUDGE",
         "print(JUDGE)"],
        "--prompts mine",
    ),
    "an alias": (
        ["mine = {'judge': (JUDGE := 'PASS, planted')}", "OLD = JUDGE", "OLD"], "--prompts mine",
    ),
    "a profile": (
        ["planted = 'Warm.'", "kind = {'criteria': {'tone': planted}, 'form': 'code'}"], "-p kind",
    ),
    "what the task has a word of": (["total = ['planted']", CALLS.format("total")], "-c grade"),
}  # fmt: skip


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("more", ["--share all", "--context 9"])
def test_nobody_is_shown_what_a_run_is_judged_by(shell, model, judge, more):
    cells, options = JUDGES[judge]
    shell.run_cell("from functools import partial", store_history=True)
    before = {*shell.user_ns}
    for cell in (*cells, "orders['net'] = orders['eur'] / rate"):
        shell.run_cell(cell, store_history=True).raise_error()
    made = {*shell.user_ns} - before
    run = run_of(shell, f"{options} {more}", "What is the total? It has to pass grade().")
    shown = {*seen(run.setup)}
    assert "planted" not in sent(model).lower()
    assert not made & shown
    assert {"orders", "rate"} <= shown


def test_of_a_cell_that_defines_more_the_rest_is_shown(shell, model):
    model.base_url = "http://127.0.0.1:8080/v1"
    shell.run_cell(f"{GRADE}\nfee = 3  # of each\nfees = [fee]\ngrade('x')", store_history=True)
    assert seen(setup_of(shell, "-c grade --context 1")) == ["fees", "fee"]
    assert "[code cell]\nfee = 3\nfees = [fee]" in sent(model)
    assert "grade" not in sent(model)


@pytest.mark.parametrize(
    ("cells", "options", "task", "name"),
    [
        (["def net(x): ...", CALLS.format("net(text)")], "-c grade", "Call net().", "net"),
        ([CALLS.format("orders")], "-c grade", "How many rows has `orders`?", "orders"),
        ([CALLS.format("orders"), "big = orders[orders.eur > 9]"], "-c grade", "Go on.", "orders"),
        (["def net(x): ...", "a = net(orders)", CALLS.format("net(text)")], "-c grade", "Go.", "a"),
        (["words = ['a']", CALLS.format("words")], "-c grade -v words", "Go on.", "words"),
        ([GRADE], "-c grade -v grade", "Go on.", "grade"),
        (["data = orders * 2"], "-p data", "What does `data` hold?", "data"),
        (["tests = [1]", "T = 'def test_a(): pass'"], "-c tests:T", "Sum `tests`.", "tests"),
    ],
    ids=["a helper by its name", "data by their name", "data of both", "what it makes", "by -v",
          "the judge by -v", "named like a profile", "named like a check"],
)  # fmt: skip
def test_what_the_user_names_or_makes_data_of_is_shown(shell, model, cells, options, task, name):
    for cell in cells:
        shell.run_cell(cell, store_history=True)
    assert name in seen(run_of(shell, options, task).setup)


JAVA = "Implement a Java class Stack with push."


@pytest.mark.parametrize(
    ("options", "task", "asked"),
    [
        ("", JAVA, ""),
        ("--set language=java", JAVA, "java"),
        ("--set language=python", "Sort `orders`.", "python"),
        ("--set language=python", "Write a function that sorts.", "python"),
    ],
)
def test_only_python_about_names_of_the_notebook_is_asked_for_as_the_next_cell(
    shell, model, options, task, asked
):
    run_of(shell, options, task)
    assert (f"```{asked or 'python'}" in sent(model)) is bool(asked)
    assert ("Give the notebook's next cell" in sent(model)) is ("orders" in task)
    assert ("the name of its language" in sent(model)) is not asked


def test_what_the_request_names_comes_first_however_old_it_is(shell, model):
    setup = setup_of(shell, "--context 1", "Plot `orders` with gross().")
    assert seen(setup) == ["orders", "gross", "stock"]


def test_what_is_seen_stays_within_its_room(shell, model):
    wide = pandas.DataFrame({f"a_long_column_name_{n}": [n] for n in range(400)})
    shell.user_ns.update({f"wide{n}": wide for n in range(15)})
    shell.run_cell("; ".join(f"wide{n}.size" for n in range(15)), store_history=True)
    setup = setup_of(shell)
    texts = [len(one.text) for one in setup.task.materials if one.kind == "variable"]
    assert max(texts) <= 1_500
    assert sum(texts) < 7_500


def test_a_model_on_this_machine_sees_the_code_as_it_is(shell, model):
    model.base_url = "http://127.0.0.1:8080/v1"
    setup = setup_of(shell)
    assert "stock = {'Zwolle-7731': 3}" in sent(model)
    assert say.opening(setup).endswith(", names of 3 more, the code of 1 cell")


SENT_AS = {
    "x = 'Zwolle'": "x = ...",
    "x = [1, 2, 'Zwolle']": "x = ...",
    "x = f'Zwolle {y}'": "x = ...",
    "x = (1, y)": "x = (..., y)",
    "df['eur'] = df['kg'] * 3": "df[...] = df[...] * ...",
    "f(x=g('Zwolle'), y=h)": "f(x=g(...), y=h)",
    "def f(x='Zwolle'):\n    'Zwolle'\n    return x  # Zwolle": (
        "def f(x=...):\n    ...\n    return x"
    ),
    "match x:\n    case 'Zwolle':\n        y()": "match x:\n    case ...:\n        y()",
    "!echo Zwolle": "",
    "Zwolle ist eine Stadt": "",
}


def test_of_other_cells_names_and_calls_are_sent(shell, model):
    cells = [f"orders = orders\n{code}" for code in SENT_AS]
    shell.history_manager.input_hist_raw[:] = ["", *cells, ""]
    shell.run_line_magic("config", "Refine.context = 50")
    setup_of(shell, "--share structure", "Sort `orders`.")
    text = sent(model)
    assert [one for one in SENT_AS.values() if one not in text] == []
    assert "Zwolle" not in text


def test_a_function_that_is_named_as_the_evaluator_is_a_check(shell, model):
    shell.run_cell(GRADE, store_history=True)
    setup = setup_of(shell, "--evaluator grade", "Write a mail.")
    assert (setup.own, setup.judge) == (("grade",), setup.model)
