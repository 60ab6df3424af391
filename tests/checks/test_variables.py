"""The user's variables: which are found, what a model is shown, what checked code gets."""

from pathlib import Path
from typing import Any

import pandas
import pytest

from ipyrefine.api import build
from ipyrefine.checks import resolve
from ipyrefine.checks.suite import Suite
from ipyrefine.core.expectations import read_tests
from ipyrefine.core.model import Task
from ipyrefine.errors import UsageError
from ipyrefine.kernel import copies, variables
from ipyrefine.kernel.variables import find, gather, sandbox_is_closed
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.sandbox import sandbox
from ipyrefine.sandbox.sandbox import run_python

TASK = Task(text="Write total(). total() == 6", form="code")


class Table:
    def __init__(self) -> None:
        self.rows = [1, 2, 3]


class OnlyHere:
    def __reduce__(self) -> Any:
        return (__import__, ("module_that_is_not_there",))


class Local(ScriptedModel):
    """A scripted model at a loopback address."""

    base_url = "http://127.0.0.1:8080/v1"


def frame(rows: int = 1_204) -> pandas.DataFrame:
    return pandas.DataFrame({"city": ["Oslo"] * rows, "price": [1.5] * rows})


def notebook(source: str) -> dict[str, Any]:
    """The namespace of a notebook after a cell."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)
    return {name: value for name, value in space.items() if name[:2] != "__"}


@pytest.fixture
def open_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "sandbox_is_closed", lambda: False)


@pytest.fixture
def closed_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "sandbox_is_closed", lambda: True)


# What is found


def test_the_names_that_code_reads_are_found_and_those_it_defines_are_not() -> None:
    space = {"df": frame(), "clean": len, "out": 1, "unused": 2}
    found = find(space, draft="out = clean(df)\nprint(out)").found
    assert list(found) == ["clean", "df"]


def test_in_words_only_marked_names_are_found() -> None:
    space = {"price": 1, "df": 2, "clean": 3, "order": 4}
    found = find(space, text="Put the order of `df` right by price with clean(x).").found
    assert list(found) == ["df", "clean"]


def test_a_request_for_code_names_data_without_backticks() -> None:
    space = {"df": pandas.DataFrame({"region": ["n"]}), "region": "a word", "xs": [1]}
    found = find(space, text="Group df by region.", bare=True).found
    assert list(found) == ["df"]


def test_a_name_is_left_out_on_request() -> None:
    space = {"df": 1, "xs": 2}
    assert list(find(space, draft="df + xs", without=["df"]).found) == ["xs"]
    assert not find(space, draft="df + xs", without=["all"]).found
    assert list(find(space, draft="df + xs", named=["df"], without=["all"]).named) == ["df"]
    with pytest.raises(UsageError, match="contradict each other"):
        find(space, named=["df"], without=["df"])


def test_an_unknown_variable_gets_a_near_match() -> None:
    with pytest.raises(UsageError, match="Did you mean prices"):
        gather(["price"], {"prices": 1})


def test_what_looks_like_a_secret_is_left_out_and_said() -> None:
    space = {"api_key": "abc", "x": "sk-abcdefghijklmnop", "y": 1}
    used = find(space, draft="print(api_key, x, y)")
    assert list(used.found) == ["y"]
    assert used.left_out == "api_key, x left out: looks like a secret."
    with pytest.raises(UsageError, match="api_key looks like a secret"):
        find(space, named=["api_key"])


# What a model is shown


def test_a_found_variable_is_shown_by_its_structure_and_a_named_one_with_its_value() -> None:
    space = {"xs": [1234, 5678], "ys": [8765]}
    used = find(space, draft="xs + ys", named=["ys"])
    (named, found) = used.materials(values=False)
    assert (named.phrase, named.text) == ("ys (1)", "ys (list of length 1):\n[8765]")
    assert (found.phrase, found.text) == ("xs (2)", "xs (list of length 2):\nlist[int]")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:8080/v1", True),
        ("http://[::1]:8080/v1", True),
        ("http://127.0.0.1.example.com/v1", False),
    ],
)
def test_a_model_is_on_this_machine_by_its_address(url: str, shown: bool) -> None:
    model = Local([])
    model.base_url = url
    used = find({"xs": [1234]}, text="Describe `xs`.")
    task = build("Describe `xs`.", model=model, variables=used).state.task
    assert ("1234" in task.materials[0].text) is shown
    # The judge reads the same prompts.
    task = build("Describe `xs`.", model=Local([]), judge=model, variables=used).state.task
    assert ("1234" in task.materials[0].text) is shown


def test_many_or_large_variables_add_a_bounded_number_of_characters() -> None:
    wide = pandas.DataFrame({f"a_long_column_name_{n}": [n] for n in range(99)})
    space = {f"df{n}": wide for n in range(25)}
    shown = find(space, draft=" + ".join(space)).materials(values=False)
    assert len(shown) == 20
    assert sum(len(one.text) for one in shown) < 7_500


# What checked code gets


@pytest.mark.parametrize("name", ["examples", "run", "tests:check"])
async def test_code_of_the_checks_has_the_variables(name: str) -> None:
    space = {"check": "def test_it(): assert total() == 6 and df.rows[0] == 1"}
    text = "assert df.rows\ndef total():\n    return sum(df.rows)\n"
    (check,) = resolve([name], space, variables={"df": Table()})
    assert (await check(text, TASK)).passed
    (without,) = resolve([name], space)
    evidence = await without(text, TASK)
    assert evidence.passed is False
    assert "NameError: name 'df' is not defined (line 1)" in evidence.detail


@pytest.mark.parametrize("name", ["examples", "run", "tests:check"])
async def test_code_that_needs_what_has_no_copy_is_not_judged(
    open_sandbox: None, name: str
) -> None:
    space = {"check": "def test_it(): assert total() == 6"}
    used = find({"xs": [1, 2, 3]}, draft="sum(xs)")
    (check,) = resolve([name], space, variables=used)
    evidence = await check("def total():\n    return sum(xs)\n", TASK)
    if name != "run":  # it only defines the function
        assert evidence.passed is None
        assert evidence.detail == (
            "Not run: the code needs xs, and code is not cut off from the network here, so -v "
            "must name it."
        )
    wrong = await check("def total():\n    return 1 / 0\n1 / 0", TASK)
    assert wrong.passed is False, "another error is one"


async def test_whether_the_sandbox_is_closed_is_what_a_run_reports() -> None:
    protection = (await run_python("")).protection
    closed = protection.network and protection.keys and protection.processes
    assert sandbox_is_closed() is closed


async def test_a_helper_beside_the_notebook_goes_along_by_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "helpers_here.py").write_text("RATE = 3\ndef triple(x):\n    return RATE * x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    import helpers_here  # type: ignore[import-not-found]

    (check,) = resolve(["run"], {}, variables={"triple": helpers_here.triple})
    (tmp_path / "helpers_here.py").unlink()
    assert (await check("assert triple(2) == 6", TASK)).passed


async def test_a_helper_module_that_holds_a_secret_has_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, closed_sandbox: None
) -> None:
    (tmp_path / "helpers_with_key.py").write_text("API_KEY = 'abc'\ndef f():\n    return API_KEY\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    import helpers_with_key  # type: ignore[import-not-found]

    space = {"m": helpers_with_key, "f": helpers_with_key.f}
    reason = "it holds what looks like a secret"
    assert find(space, draft="m.f(f)").copies.absent == {"m": reason, "f": reason}


PACKAGE = """
import datetime, threading
_CAPSULE = datetime.datetime_CAPI  # cannot be pickled, as much in compiled packages
_LOCK = threading.Lock()

class Money:
    def __init__(self, amount):
        self.amount = amount
    def double(self):
        with _LOCK:
            return _CAPSULE and 2 * self.amount
"""


async def test_a_package_outside_the_prefix_is_imported_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with PYTHONPATH, or `pip install --user`."""
    (tmp_path / "outside_package").mkdir()
    (tmp_path / "outside_package" / "__init__.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import outside_package  # type: ignore[import-not-found]

    assert any(folder.endswith(tmp_path.name) for folder in sandbox.import_folders())
    given = {"m": outside_package.Money(2), "outside_package": outside_package}
    for name in ("run", "tests:check"):
        space = {"check": "import outside_package\ndef test_it(): assert outside_package.Money"}
        (check,) = resolve([name], space, variables=given)
        evidence = await check("assert m.double() == 4 and outside_package.Money(3)", TASK)
        assert evidence.passed, evidence.detail


async def test_a_variable_that_cannot_be_read_in_the_sandbox_is_named() -> None:
    (check,) = resolve(["run"], {}, variables={"x": OnlyHere(), "y": 1})
    assert (await check("assert y == 1", TASK)).passed
    evidence = await check("x", TASK)
    assert evidence.passed is None
    assert evidence.detail == "Not run: the code needs x, which cannot be read in the sandbox."


def test_a_large_frame_goes_as_its_first_rows_and_this_is_said(
    monkeypatch: pytest.MonkeyPatch, closed_sandbox: None
) -> None:
    monkeypatch.setattr(copies, "MAX_BYTES", 100_000)
    used = find({"df": frame(20_000)}, draft="df")
    (shown,) = used.materials(values=False, copied=True)
    rows = used.copies.samples["df"]
    assert 100 < rows < 20_000
    assert shown.phrase == f"df (20,000 × 2), checks get its first {rows:,} rows"
    assert not used.copies.absent


SECRETIVE = {
    "a dict": "x = {'api_key': 'abc'}",
    "deep inside": "x = [{'a': [{'db_password': 'abc'}]}]",
    "a value": "x = ['sk-abcdefghijklmnop']",
    "an attribute": "class C: pass\nx = C()\nx.auth_token = 'abc'",
    "a class": "class C:\n    password = 'abc'\nx = C()",
    "a global of a function": "API_KEY = 'abc'\ndef x(): return API_KEY",
    "a global of a function of a function": "API_KEY = 'a'\ndef f(): return API_KEY\ndef x(): f()",
    "a default": "def x(token='abc'): pass",
    "a closure": "def f(secret):\n    return lambda: secret\nx = f('abc')",
    "a literal in a function": "def x(): return 'ghp_abcdefghijklmnop'",
    "the environment": "import os\nx = [os.environ]",
    "a copy of the environment": "x = [dict(PATH='/', HOME='/root', USER='me')]",
    "a column": "import pandas\nx = pandas.DataFrame({'password': ['a']})",
    "a cell": "import pandas\nx = pandas.DataFrame({'a': ['xoxb-abcdefghijkl']})",
    "a frame in a list": "import pandas\nx = [pandas.Series(['a'], name='secret')]",
}


@pytest.mark.parametrize("source", SECRETIVE.values(), ids=SECRETIVE)
def test_nothing_that_holds_a_secret_is_copied(source: str, closed_sandbox: None) -> None:
    used = find(notebook(source), draft="x")
    assert used.copies.absent == {"x": "it holds what looks like a secret"}
    assert all(b"abc" not in content for content in used.files.values())


def test_a_found_object_is_not_pickled_by_code_of_the_notebook(closed_sandbox: None) -> None:
    source = "class C:\n    def __reduce__(self):\n        while True: pass\nx = [C()]"
    reasons = find(notebook(source), draft="x").copies.absent
    assert reasons == {"x": "C pickles itself with code of its own"}


async def test_a_critics_test_is_not_tried_on_code_that_needs_what_has_no_copy(
    open_sandbox: None,
) -> None:
    files = find({"xs": [1]}, draft="xs").files
    tests = read_tests("def test_two():\n    assert f() == 2\n")
    needs = await Suite(files)(tests, "def f():\n    return xs[0]", TASK)
    assert needs.results[0].passed is None
    own = await Suite(files)(tests, "def f():\n    return 1", TASK)
    assert own.results[0].passed is False
