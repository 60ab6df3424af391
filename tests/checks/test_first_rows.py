"""What is computed on the first rows of a large frame says so, and is not taken for the result."""

from random import Random
from typing import Any

import pandas
import pytest
from kit import READY, code, finish

from ipyrefine import api
from ipyrefine.checks import resolve
from ipyrefine.checks.evaluation import Examples
from ipyrefine.checks.suite import Suite
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import FirstRows, Task
from ipyrefine.core.points import with_ids
from ipyrefine.core.results import expect, read_expectation, rows
from ipyrefine.core.sharing import visible
from ipyrefine.core.table import Result
from ipyrefine.core.testing import read_tests, suite_evidence
from ipyrefine.core.typed import confirmations
from ipyrefine.errors import UsageError
from ipyrefine.kernel import snapshot, variables
from ipyrefine.kernel.variables import Variables, find
from ipyrefine.providers.scripted import ScriptedModel

SIZE = 20_000
TASK = Task(text="Do it.", form="code")
STATED = "Count.\n>>> f([1])\n1\n>>> len(df)\n20000\n"
F = "def f(xs): return len(xs)"
TOTAL = "total = float(df.price.sum())\nn = 3\ntotal"


@pytest.fixture(autouse=True)
def small_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_MAX_BYTES", 100_000)
    monkeypatch.setattr(snapshot, "_MAX_BYTES_IN_KERNEL", 100_000)
    monkeypatch.setattr(snapshot, "_memory_of_its_own", lambda: 0)
    monkeypatch.setattr(variables, "sandbox_is_closed", lambda: True)


def notebook(**more: Any) -> Variables:
    df = pandas.DataFrame({"city": ["Oslo"] * SIZE, "price": [1.5] * SIZE})
    return find({"df": df, "pd": pandas, **more}, text="`df`")


async def lack(used: Variables, name: str = "df") -> FirstRows:
    await used.copies.files(name)
    (found,) = used.copies.conditions(name)
    return found


async def ran(text: str, used: Variables, check: str = "run", **space: str) -> Result:
    (made,) = resolve([check], space, variables=used)
    return await made(text, TASK)


async def refined(*replies: Any, **options: Any) -> Refinement:
    model = ScriptedModel(replies, name="gpt")
    used = notebook()
    loop = api.build("Total `df`.", model=model, profile="code", variables=used, **options)
    await finish(loop)
    return loop


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("kind", ["DataFrame", "Series"])
async def test_a_count_of_first_rows_is_known_to_be_one(library, kind):
    make = getattr(pytest.importorskip(library), kind)
    values = Random(0).sample(range(10**12), SIZE)  # that take the same bytes however they are kept
    used = find({"df": make({"a": values} if kind == "DataFrame" else values)}, text="`df`")
    evidence = await ran("len(df)", used)
    (found,) = evidence.conditions
    assert (found.name, found.of) == ("df", SIZE)
    assert evidence.outputs[0].text == str(found.rows)  # type: ignore[union-attr]
    assert found.rows < SIZE


@pytest.mark.parametrize(
    ("source", "value"), [("len(xs)", [1.5] * SIZE), ("xs.sum()", bytearray(200_000))]
)
async def test_what_is_not_cut_and_too_large_is_not_run(source, value):
    evidence = await ran(source, notebook(xs=value))
    assert (evidence.passed, evidence.conditions) == (None, ())
    assert evidence.shows == "Not run: the code needs xs, and it is too large to copy."


async def test_only_names_that_depend_on_a_cut_frame_carry_it():
    evidence = await ran(TOTAL, used := notebook())
    assert {row.call: row.conditions for row in evidence.rows} == {
        "total": (await lack(used),),
        "n": (),
    }
    assert evidence.shows.splitlines()[0] == f"It runs on {await lack(used)}."


@pytest.mark.parametrize(
    "text", ["def clean(df): return df.dropna()", "df = pd.DataFrame({'a': [1]})\ndf"]
)
async def test_code_that_needs_no_cut_frame_carries_nothing(text):
    evidence = await ran(text, notebook())
    assert (evidence.passed, evidence.conditions) == (True, ())


@pytest.mark.parametrize(
    ("text", "passed", "start"),
    [
        ("df.iloc[19_999]", None, "Not tried on all rows: IndexError: "),
        ("assert len(df) == 20_000", None, "Not tried on all rows: AssertionError"),
        ("df['cost']", False, "KeyError: 'cost' (line 1), on "),
        ("df.total()", False, "AttributeError: "),
    ],
)
async def test_code_fails_on_first_rows_unless_further_ones_may_be_what_it_wants(
    text, passed, start
):
    evidence = await ran(text, used := notebook())
    assert evidence.passed is passed
    first = evidence.shows.splitlines()[0]
    assert first.startswith(start)
    assert first.endswith(f"on {await lack(used)}.")


@pytest.mark.parametrize(
    ("text", "passed", "tallies"),
    [(F, None, {}), (F + " + 1", False, {"example": (0, 1)})],
)
async def test_examples_on_first_rows_are_neither_met_nor_missed(text, passed, tallies):
    used = notebook()
    evidence = await Examples(copies=used.copies)(text, TASK.replace(text=STATED))
    assert (evidence.passed, evidence.not_run) == (passed, passed is None)
    assert evidence.conditions == (await lack(used),)
    assert f"Not tried on all rows: 1 of 2 examples ran on {await lack(used)}." in evidence.shows
    assert evidence.tallies == tallies


@pytest.mark.parametrize(
    "source",
    [
        "def test_it(): assert len(df) == 20_000",
        "import pytest\n@pytest.fixture\ndef d(): return df\ndef test_it(d): assert len(d) > 1",
    ],
)
async def test_the_users_tests_on_first_rows_are_not_tried(source):
    used, text = notebook(), f"{F}\ndef total(): return len(df)"
    evidence = await ran(text, used, "tests:mine", mine=source)
    assert (evidence.passed, evidence.not_run, evidence.points) == (None, True, ())
    assert evidence.shows.startswith(
        f"Not tried on all rows: tests:mine ran on {await lack(used)}."
    )


async def test_tests_of_the_users_that_use_no_frame_are_tried():
    text = f"{F}\ndef total(): return len(df)"
    mine = "def test_it(): assert f([1]) == 1"
    evidence = await ran(text, notebook(), "tests:mine", mine=mine)
    assert (evidence.passed, evidence.conditions) == (True, ())


async def test_a_critics_test_on_first_rows_is_not_tried_and_its_number_is_no_row():
    used, text = notebook(), f"{F}\ndef total(): return len(df)"
    tests = read_tests(
        'def test_all():\n    """Count."""\n    assert total() == 20_000\n\n'
        'def test_few():\n    """Count."""\n    assert f([1]) == 2\n'
    )
    every, few = (await Suite(used.copies)(tests, text, TASK)).values()
    assert (every.passed, every.gives, every.conditions) == (None, "", (await lack(used),))
    assert every.shows.startswith(f"Not tried on all rows: it ran on {await lack(used)}.")
    assert (few.passed, few.conditions) == (False, ())
    points = {one.id: one for one in with_ids((), tests)}
    evidence = suite_evidence(points, {"t1": every, "t2": few})
    assert evidence is not None
    assert (evidence.passed, evidence.conditions) == (False, (await lack(used),))


async def test_a_result_of_first_rows_is_no_example():
    loop = await refined(code(TOTAL), READY)
    shown = rows(loop.state, loop.state.chosen)  # type: ignore[arg-type]
    (found,) = (row for row in shown if row.call == "total")
    words = ("total == 30000.0", "round(total) == 30000", "len(df) == 20000")
    for decision in (
        *confirmations(loop.state, [str(shown.index(found) + 1)]),
        expect(found, "30000.0"),
        *map(read_expectation, words),
    ):
        with pytest.raises(UsageError, match=r"computed on the first [\d,]+ of 20,000 rows of df"):
            loop.decide(decision)
    loop.decide(read_expectation("n == 3"))


async def test_models_are_told_of_first_rows_at_every_level():
    loop = await refined(code(TOTAL), READY)
    assert loop.state.chosen
    said = str(loop.state.chosen.conditions[0])
    assert said in loop.model.requests[-1].messages[-1].content  # type: ignore[attr-defined]
    (evidence,) = (e for e in visible(loop.state, "structure").iterations[0].evidence if e.computed)
    assert said in evidence.shows
    assert not evidence.outputs
