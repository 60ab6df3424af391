"""Checks that nobody named: those that the task's own words ask for."""

from typing import Any

import pytest

from ipyrefine import api
from ipyrefine.checks import from_record, resolve
from ipyrefine.checks.demands import find_demands
from ipyrefine.checks.python import RunOnCopies
from ipyrefine.core.model import Form, Material, Task
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError
from ipyrefine.kernel.variables import Variables
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import say

EXAMPLES = "Write inc(n).\n\n>>> inc(1)\n2\n\ninc(4) == 5"
PROSE = 'Describe the sea in at most 50 words, with the word "salt" in it.'


def task(text: str, form: Form = "code", **fields: Any) -> Task:
    return Task(text=text, form=form, **fields)


NOTHING = ((), ())  # of checks, and of demands in words


def names(checks: Any) -> list[str]:
    return [check.name for check in checks]


def build(text: str, **options: Any) -> Any:
    return api.build(text, model=ScriptedModel([]), **options)


@pytest.mark.parametrize(
    ("stated", "checks"),
    [
        (task("Write inc(n)."), ["examples", "results"]),
        (task("Describe the sea, briefly.", "prose"), []),
        (task("", "prose"), []),
        (task(EXAMPLES, "prose"), []),
        (task(PROSE), ["examples", "results"]),
        (task(EXAMPLES, language="java"), []),
    ],
    ids=["code", "prose", "nothing", "examples in prose", "words in code", "another language"],
)
def test_what_a_task_states_is_checked_and_results_of_code_can_be_confirmed(stated, checks):
    found = find_demands(stated, ())
    assert names(found[0]) == checks
    assert checks or found == NOTHING


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sandbox keeps code from the network, keys and processes, as far as anybody asks."""
    monkeypatch.setattr("ipyrefine.kernel.variables.sandbox_is_closed", lambda: True)


@pytest.mark.usefixtures("closed")
def test_code_that_uses_variables_is_run_on_their_copies_and_the_first_line_says_so():
    setup = build(
        "Sort `xs`.\n\n>>> f()\n3\n", variables={"xs": [2, 1]}, profile="code"
    ).state.setup
    assert setup.checks == ("examples", "results", "run on copies")
    assert setup.demands == ("1 example", "values stay here")
    shown = say.opening(setup)
    assert shown.startswith("Interpreted as: task (code), 1 example, values stay here. Sees")


@pytest.mark.usefixtures("closed")
@pytest.mark.parametrize(
    "options",
    [
        {"no_checks": ["run"]},
        {"no_checks": ["all"]},
        {"variables": {}},
        {"profile": "prose"},
        {"language": "java"},
    ],
    ids=["run", "all", "no variables", "prose", "another language"],
)
def test_code_is_not_run_unasked_where_that_is_switched_off_or_there_is_nothing_to_run(options):
    given = {"profile": "code", "variables": {"xs": [1]}, **options}
    setup = build("Do it.", **given).state.setup
    assert set(setup.checks) <= {"examples", "results"}
    assert set(setup.demands) <= {"values stay here"}


def variable(name: str) -> Material:
    return Material(kind="variable", name=name, phrase=name, text=name)


async def run_on_copies(text: str) -> Result:
    """The check's evidence on a text that may use `xs` and, without a copy, `ys`."""
    used = task("Use `xs`.", materials=(variable("xs"), variable("ys")))
    *_, check = find_demands(used, (), copies=Variables({"xs": [1]}).copies, runs=True)[0]
    return await check(text, used)


@pytest.mark.parametrize(
    "text",
    [
        "input()",
        "x = bytearray(10**10)",
        "ys",
    ],
)
async def test_what_only_the_sandbox_is_the_reason_for_is_no_failure(text):
    evidence = await run_on_copies(text)
    assert evidence.passed is None, evidence.shows
    assert evidence.shows.startswith(("Nothing can be said in the sandbox: ", "Not run: it "))


async def test_what_the_notebook_does_not_have_either_is_the_texts_own_fault():
    assert (await run_on_copies("zs")).failed


def test_a_run_that_is_resumed_has_it_again_by_its_name():
    (check,) = from_record(["run on copies"], variables={"xs": [1]})
    assert (type(check), check.name) == (RunOnCopies, "run on copies")
    with pytest.raises(UsageError):
        from_record(["run on copies decisive"])


# What the user says about them


@pytest.mark.parametrize(
    ("stated", "named", "added"),
    [
        (task(EXAMPLES), "examples", ["results"]),
        (task(EXAMPLES), "examples seconds=3 decisive=no", ["results"]),
        (task(PROSE, "prose"), "length:<=50 words", []),
    ],
)
def test_a_check_that_the_user_named_is_not_added_once_more(stated, named, added):
    assert names(find_demands(stated, resolve([named], {}))[0]) == added


@pytest.mark.parametrize(
    ("stated", "without"),
    [
        (task(EXAMPLES), ("examples",)),
        (task(EXAMPLES), ("all",)),
        (task(PROSE, "prose"), ("constraints",)),
        (task(PROSE, "prose"), ("all",)),
    ],
)
def test_what_the_words_ask_for_may_be_switched_off(stated, without):
    assert find_demands(stated, (), without=(*without, "results")) == NOTHING


def test_a_wrong_name_gets_a_sentence_with_the_right_ones():
    with pytest.raises(UsageError) as raised:
        find_demands(task(EXAMPLES), (), without=("example",))
    message = str(raised.value)
    assert "examples, results, run, constraints or all, not 'example'." in message
    assert message.endswith("Did you mean examples?")


# In a whole refinement


def documented(n: int) -> int:
    """Double a number, in at most 3 words.

    >>> documented(2)
    4
    """
    return 2 * n


@pytest.mark.parametrize("profile", ["code", "prose"])
def test_what_a_variable_says_of_itself_is_no_demand_of_the_task(profile):
    used = {"documented": documented}
    without = ["run", "results"]
    setup = build("Use it well.", variables=used, profile=profile, no_checks=without).state.setup
    assert (setup.checks, setup.demands) == ((), ())
