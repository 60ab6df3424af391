"""The user's variables: which are found, what a model is shown, what checked code gets."""

import os
import sqlite3
import sys
from types import ModuleType
from typing import Any

import pandas
import pytest

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError
from ipyrefine.kernel import snapshot, variables
from ipyrefine.kernel.variables import Copies, Variables, find, gather

in_a_child = pytest.mark.skipif(bool(snapshot._why_no_fork()), reason="no child can be forked")
TASK = Task(text="Write total(). total() == 6", form="code")


def frame(rows: int = 1_204) -> pandas.DataFrame:
    return pandas.DataFrame({"city": ["Oslo"] * rows, "price": [1.5] * rows})


def notebook(source: str, **names: Any) -> dict[str, Any]:
    """The namespace of a notebook after a cell."""
    space: dict[str, Any] = {"__name__": "__main__", **names}
    exec(source, space)
    return {name: value for name, value in space.items() if name[:2] != "__"}


def each(sources: dict[str, str]) -> dict[str, Any]:
    """What the cells call x, by new names; what each cell is about is in the name."""
    return {name.replace(" ", "_"): notebook(code)["x"] for name, code in sources.items()}


@pytest.fixture(params=["in a child", "in the kernel"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are made in either way."""
    monkeypatch.setenv("IPYREFINE_NO_FORK", str(int(request.param == "in the kernel")))


@pytest.fixture
def open_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "sandbox_is_closed", lambda: False)


@pytest.fixture
def closed_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variables, "sandbox_is_closed", lambda: True)


async def why_absent(copies: Copies, *names: str) -> list[str]:
    """Why code has no copy of each name; empty where it has one."""
    await copies.files(" + ".join(names))
    return [copies._copies[name].reason for name in names]


async def run(code: str, used: Variables | dict[str, Any]) -> Result:
    """The evidence of `run` on code that has these variables."""
    (check,) = resolve(["run"], {}, variables=used)
    return await check(code, TASK)


# What is found


def test_a_request_for_code_names_data_without_backticks():
    space = {"df": pandas.DataFrame({"region": ["n"]}), "region": "a word", "xs": [1]}
    found = find(space, text="Group df by region.", bare=True).found
    assert list(found) == ["df"]


def test_a_name_is_left_out_on_request():
    space = {"df": 1, "xs": 2}
    assert list(find(space, draft="df + xs", without=["df"]).found) == ["xs"]
    assert not find(space, draft="df + xs", without=["all"]).found
    assert list(find(space, draft="df + xs", named=["df"], without=["all"]).named) == ["df"]
    with pytest.raises(UsageError, match="contradict each other"):
        find(space, named=["df"], without=["df"])


async def test_code_about_data_may_use_what_the_task_does_not_name(closed_sandbox):
    space = notebook(
        "import pandas\norders = pandas.DataFrame({'who': ['ann'], 'eur': [2]})\n"
        "people = pandas.DataFrame({'who': ['ann'], 'city': ['Oss']})\n"
        "api_key = 'sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c'\ndef clean(df): return df.dropna()"
    )
    used = find(space, text="Add the city to `orders`.")
    assert [one.name for one in used.materials(6_000)] == ["orders"]
    evidence = await run("clean(orders.merge(people))", used)
    assert evidence.passed, evidence.shows
    evidence = await run("orders.assign(k=api_key)", used)
    assert evidence.shows == "Not run: the code needs api_key, and it looks like a secret."
    alone = find(space, text="Add the city to `orders`.", without=["all"])
    evidence = await run("orders", alone)
    assert evidence.shows == "Not run: the code needs orders, and --no-var leaves it out."


async def test_what_code_has_is_what_the_notebook_holds_as_it_runs(closed_sandbox):
    space: dict[str, Any] = {"x": 1}
    ran = [1]
    used = find(lambda: space, moment=lambda: len(ran))
    assert (await run("assert x == 1", used)).passed
    space["x"] = 2
    ran.append(1)
    assert (await run("assert x == 2", used)).passed


async def test_what_a_text_was_run_on_is_kept_until_it_is_released(closed_sandbox, monkeypatch):
    space: dict[str, Any] = {"x": 1, "long": "a" * 100_000}
    copies = find(lambda: space, moment=lambda: space["x"]).copies
    monkeypatch.setattr(variables, "_MAX_TAKEN", 90_000)
    files = await copies.files("x + 1")
    taken = copies.taken("x + 1")
    assert taken
    assert (taken.moment, taken.files) == (1, files)
    await copies.files("len(long)")
    large = copies.taken("len(long)")
    assert large
    assert large.files is None, "it is too large"
    variables.release_copies(but=copies)
    assert copies.taken("x + 1") == taken
    space["x"] = 2
    variables.release_copies()
    assert copies.taken("x + 1") == taken._replace(files=None)
    assert copies.taken("x") is None


async def test_a_query_on_a_connection_runs_on_a_copy(closed_sandbox):
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE orders (id INTEGER)")
    evidence = await run(
        "con.execute('INSERT INTO orders VALUES (1)')\n"
        "assert con.execute('SELECT count(*) FROM orders').fetchone() == (1,)",
        find({"con": con}),
    )
    assert evidence.passed, evidence.shows
    assert con.execute("SELECT count(*) FROM orders").fetchone() == (0,)
    con.close()


def test_an_unknown_variable_gets_a_near_match():
    with pytest.raises(UsageError, match="Did you mean prices"):
        gather(["price"], {"prices": 1})


# What a model is shown


def test_a_found_variable_is_shown_by_its_structure_and_a_named_one_with_its_value():
    space = {"xs": [1234, 5678], "ys": [8765]}
    used = find(space, draft="xs + ys", named=["ys"])
    (named, found) = used.materials(6_000)
    assert (named.phrase, named.text) == ("ys (1)", "ys (list of length 1):\n[8765]")
    assert (found.phrase, found.structure) == ("xs (2)", "xs (list of length 2):\nlist[int]")


# What checked code gets


@pytest.mark.parametrize("name", ["examples", "run", "tests:check"])
async def test_code_of_the_checks_has_the_variables(name):
    space = {"check": "def test_it(): assert total() == 6 and df.rows[0] == 1"}
    text = "assert df.rows\ndef total():\n    return sum(df.rows)\n"
    table = notebook("class Table: pass\ndf = Table()\ndf.rows = [1, 2, 3]")
    (check,) = resolve([name], space, variables=table)
    assert (await check(text, TASK)).passed
    (without,) = resolve([name], space)
    evidence = await without(text, TASK)
    assert evidence.passed is False
    assert "NameError: name 'df' is not defined (line 1)" in evidence.shows


@pytest.mark.parametrize("name", ["examples", "run", "tests:check"])
async def test_code_that_needs_what_has_no_copy_is_not_judged(open_sandbox, name):
    space = {"check": "def test_it(): assert total() == 6"}
    used = find({"xs": [1, 2, 3]}, draft="sum(xs)")
    (check,) = resolve([name], space, variables=used)
    evidence = await check("def total():\n    return sum(xs)\ntotal()", TASK)
    assert evidence.passed is None
    assert evidence.shows == (
        "Not run: the code needs xs, and code is not cut off from the network here, so -v "
        "must name it."
    )
    wrong = await check("def total():\n    return 1 / 0\n1 / 0", TASK)
    assert wrong.passed is False, "another error is one"


HELPERS = """
RATE = 3
def triple(x): return RATE * x
def reads_key(): return API_KEY
"""


async def test_a_module_beside_the_notebook_goes_along_by_value_if_it_holds_no_secret(
    tmp_path, monkeypatch, closed_sandbox
):
    """It is there by the name that the notebook knows."""
    (tmp_path / "helpers_here.py").write_text(HELPERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    import helpers_here  # type: ignore[import-not-found]

    (check,) = resolve(["run"], {}, variables={"triple": helpers_here.triple})
    evidence = await check("assert triple(2) == 6", TASK)
    assert evidence.passed, evidence.shows
    evidence = await run("assert h.triple(2) == 6", find({"h": helpers_here}))
    assert evidence.passed, evidence.shows
    helpers_here.API_KEY = "abc"
    used = find({"f": helpers_here.reads_key}, draft="f")
    assert await why_absent(used.copies, "f") == ["it holds what looks like a secret"]


async def test_what_a_named_function_uses_does_not_go_where_nothing_is_shut_in(
    open_sandbox,
):
    space = notebook("rows = ['private']\ndef f(): return rows")
    used = find(space, named=["f"])
    await used.copies.files("f()")
    assert not used.copies._copies["rows"].stop
    evidence = await run("f()", used)
    assert evidence.shows.startswith("Not run: the code needs rows, and code is not cut off")


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


async def test_a_package_outside_the_prefix_is_imported_by_name(tmp_path, monkeypatch):
    """As with PYTHONPATH, or `pip install --user`."""
    (tmp_path / "outside_package").mkdir()
    (tmp_path / "outside_package" / "__init__.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    import outside_package  # type: ignore[import-not-found]

    money = outside_package.Money
    used = find({"p": outside_package, "M": money, "m": money(2)}, draft="", named=["p", "M", "m"])
    for name in ("run", "tests:check"):
        space = {"check": "def test_it(): assert p.Money is M"}
        (check,) = resolve([name], space, variables=used)
        evidence = await check("assert p.Money(3) and M(2).double() == 4", TASK)
        assert evidence.passed, evidence.shows


async def test_a_variable_that_cannot_be_read_in_the_sandbox_is_named(
    monkeypatch,
):
    module = ModuleType("only_here")
    exec("def f(): pass", vars(module))
    monkeypatch.setitem(sys.modules, "only_here", module)
    used = {"x": module.f, "y": 1}
    assert (await run("assert y == 1", used)).passed
    evidence = await run("x", used)
    assert evidence.passed is None
    assert evidence.shows == "Not run: the code needs x, which cannot be read in the sandbox."


SECRETIVE = {
    "deep inside": "x = [{'a': [{'db_password': 'abc'}]}]",
    "a value": "x = ['sk-abcdefghijklmnop']",
    "an attribute": "class C: pass\nx = C()\nx.auth_token = 'abc'",
    "a class": "class C:\n    password = 'abc'\nx = C()",
    "a default": "def x(token='abc'): pass",
    "a closure": "def f(secret):\n    return lambda: secret\nx = f('abc')",
    "a literal in a function": "def x(): return 'ghp_abcdefghijklmnop'",
    "the environment": "import os\nx = [os.environ]",
    "a copy of the environment": "x = [dict(PATH='/', HOME='/root', USER='me')]",
    "one row": "x = [{'password': 'abc'}]",
}


async def test_nothing_that_holds_a_secret_is_copied(way, closed_sandbox):
    space = each(SECRETIVE)
    used = find(space, draft=" + ".join(space))
    for name, reason in zip(space, await why_absent(used.copies, *space), strict=True):
        assert reason in (
            "it holds what looks like a secret",
            "objects of type C are not copied",
        ), name
    content: Any = (await used.copies.files(" + ".join(space)))["variables.pickle"]
    whole = os.pread(content.descriptor, 10**6, 0) if content.descriptor else content.content
    assert b"abc" not in whole


async def test_tokens_in_a_frame_are_not_copied_where_code_could_send_them(
    open_sandbox,
):
    used = find(notebook(COPIED["tokens in a frame"]), named=["x"])
    assert await why_absent(used.copies, "x") == ["it holds what looks like a secret"]


async def test_a_function_does_not_bring_a_secret_that_it_reads(way, closed_sandbox):
    used = find(notebook("API_KEY = 'a'\ndef f(): return API_KEY\ndef x(): return f()"), draft="x")
    evidence = await run("x()", used)
    assert evidence.shows == "Not run: the code needs API_KEY, and it looks like a secret."


COPIED = {
    "nested values": "x = {'a': [(1, 2.5), {3}, b'b', None, ...]}",
    "the standard library": (
        "import collections, datetime, decimal, pathlib, re\n"
        "x = [collections.Counter('ab'), datetime.date(2024, 1, 1), decimal.Decimal(1),\n"
        "     pathlib.PurePosixPath('a'), re.compile('a'), collections.deque([1])]"
    ),
    "arrays": "import numpy\nx = [numpy.arange(3), numpy.float32(1), numpy.random.default_rng(1)]",
    "frames": (
        "import pandas as pd\ndf = pd.DataFrame({'a': ['x', None], 'c': pd.Categorical([1, 2])})\n"
        "x = [df, df.set_index(['a', 'c']), df.a, pd.Timestamp(0), pd.date_range(0, periods=2)]"
    ),
    "named columns": (
        "import pandas as pd\ni = pd.Index([1], name='pin')\n"
        "x = [pd.DataFrame({'password': ['a']}, i), pd.Series(['a'], name='secret'),\n"
        "[{'token': 'abc', 'n': 1}, {'token': 'b', 'n': 2}]]"
    ),
    "tokens in a frame": "import pandas\nx = pandas.DataFrame({'a': ['xoxb-abcdefghijkl']})",
    "groups of a frame": "import pandas\nx = pandas.DataFrame({'a': [1]}).groupby('a')",
    "functions": "n = 2\ndef f(a): return a * n\ndef x(a, b=1): return [f(c) + b for c in a]",
}


async def test_values_of_well_known_kinds_are_copied(way, closed_sandbox):
    space = each(COPIED)
    assert not any(await why_absent(find(space, draft=" + ".join(space)).copies, *space))


OBJECTS = {
    "an object": "class C: pass\nx = C()\nx.a = [C()]",
    "a data class": "import dataclasses\n@dataclasses.dataclass(frozen=True, slots=True)\n"
    "class C:\n    a: list[int]\nx = C([1])",
    "a named tuple": "import typing\nclass C(typing.NamedTuple):\n    a: int\nx = C(1)",
    "an enumeration": "import enum\nclass C(enum.Enum):\n    A = 1\nx = [C.A, C]",
    "an object with methods of a collection": (
        "class C:\n    def __init__(self): self.a = [1]\n    def __iter__(self): return boom()\n"
        "    def __len__(self): return boom()\nx = C()"
    ),
    "an object that remembers an attribute": (
        "import functools\nclass C:\n    @functools.cached_property\n    def a(self): return boom\n"
        "x = C()"
    ),
}


@in_a_child
async def test_objects_of_the_notebooks_classes_are_copied_in_a_child(closed_sandbox):
    space = each(OBJECTS)
    assert not any(await why_absent(find(space, draft=" + ".join(space)).copies, *space))


OWN_CODE = {
    "is pickled by code of its own": "class C:\n    def __reduce__(self): boom()\nx = [C()]",
    "has a state of its own": "class C:\n    def __getstate__(self): boom()\nx = {'a': C()}",
    "answers for each attribute": "class C:\n    def __getattr__(self, name): boom()\nx = C()",
    "is a list that counts itself": "class C(list):\n    def __iter__(self): boom()\nx = C([1])",
    "is a queue that counts itself": (
        "from collections import deque\nclass C(deque):\n    def __iter__(self): boom()\nx = C([1])"
    ),
    "is in a frame": (
        "import pandas as pd\nclass C:\n    def __reduce__(self): boom()\n"
        "x = pd.DataFrame({'a': [C()]})"
    ),
    "is of a class that answers for its attributes": (
        "class M(type):\n    def __getattribute__(self, name): boom()\n"
        "class C(metaclass=M): pass\nx = object.__new__(C)"
    ),
    "is of a class that counts as others": (
        "class M(type):\n    __hash__ = __eq__ = __instancecheck__ = boom\n"
        "class C(metaclass=M): pass\nx = [C(), 1]"
    ),
    "is pickled by a function": "import copyreg\nclass C: pass\ncopyreg.pickle(C, boom)\nx = C()",
    "is used by a function": "class C:\n    __reduce__ = boom\nc = C()\ndef x(): return c",
}


@pytest.mark.parametrize("by", ["found", "named"])
async def test_no_code_of_the_objects_runs_in_the_kernel(way, by, closed_sandbox):
    called, space = list[str](), dict[str, Any]()
    for name, source in OWN_CODE.items():
        boom = lambda *_, name=name: called.append(name)  # noqa: E731
        space[name.replace(" ", "_")] = notebook(source, boom=boom)["x"]
    code = " + ".join(space)
    used = find(space, draft=code) if by == "found" else find(space, named=[*space])
    assert used.found if by == "found" else used.named
    await used.copies.files(code)
    assert called == []


async def test_a_function_that_remembers_its_results_is_copied_with_what_it_calls():
    source = "import functools\n@functools.lru_cache(maxsize=None)\ndef fib(n):\n"
    space = notebook(f"{source}    return n if n < 2 else fib(n - 1) + fib(n - 2)\n")
    code = "assert fib(90) == 2880067194370816120\nfib.cache_clear()"
    evidence = await run(code, find(space, named=["fib"]))
    assert evidence.passed, evidence.shows


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("x = {'a': [[0] * 2 * 10**6]}", "it is too large to copy"),
        ("x = [object() for _ in range(10**6)]", "copying it takes too long"),
        ("x = []\nfor _ in range(10**5): x = [x]", "it cannot be copied"),
        ("import threading\nx = threading.Lock()", "it cannot be copied"),
    ],
)
async def test_copying_ends_at_a_size_and_a_time(way, source, reason, monkeypatch, closed_sandbox):
    for name in "_MAX_BYTES", "_MAX_BYTES_IN_KERNEL":
        monkeypatch.setattr(snapshot, name, 1_000_000)
    if "too long" in reason:
        for name in "_MAX_BYTES", "_MAX_BYTES_IN_KERNEL":
            monkeypatch.setattr(snapshot, name, 10**9)
        for name in "_SECONDS", "_SECONDS_IN_KERNEL":
            monkeypatch.setattr(snapshot, name, 0.1)
    assert reason in (await why_absent(find(notebook(source), draft="x").copies, "x"))[0]
