"""What leaves for a model's server at each level: a canary stands wherever a value can be."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any

import pandas
import pytest
from kit import written
from shells import loaded_shell, run_cell

from ipyrefine import api
from ipyrefine.checks import resolve
from ipyrefine.core.decisions import Continue
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Budget, Limits, Stage
from ipyrefine.core.ports import Request
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import LEVELS
from ipyrefine.folders import home
from ipyrefine.kernel import variables
from ipyrefine.kernel.variables import find
from ipyrefine.notebook import cell_source
from ipyrefine.providers.choose import choose_sharing
from ipyrefine.providers.replay import RecordedModel
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.providers.servers import facts_about, remember_about

# Where a constant may be in another cell: none leaves at `structure`, and all do at `all`.
CELLS = {
    "a docstring": "def b():\n    '@'\n    return 1",
    "the docstring of a class": "class Named:\n    '@'",
    "a text": "c = '@'",
    "bytes": "d = b'@'",
    "a number": "e = §",
    "a negative number": "f = -§.5",
    "an f-string": "g = f'@ {c}'",
    "its format": "h = f'{c:@}' if False else c",
    "a default": "def i(x='@'): return x",
    "an item of a list": "j = ['x', '@']",
    "an item of a tuple or a set": "k = (1, '@'), {'@'}",
    "a key": "l = {'@': c}",
    "a value": "m = {'x': [c, '@']}",
    "a comparison": "n = frame[frame['town'] == '@']",
    "a label": "o = frame.set_index('town').loc['@']",
    "a column": "p = frame.rename(columns={'town': '@'})['@']",
    "a query": "q = frame.query('town == \"@\"')",
    "labels of rows": "r = pd.Series([1, 2], index=['@', 'B'])",
    "a keyword": "s = dict(region='@')",
    "a pattern": "match c:\n    case '@' | {'@': 1}:\n        t = 1\n    case _:\n        t = 2",
    "a type": "from typing import Literal\nu: Literal['@'] = c",
    "a path": "v = open if c else open('/home/@/data.csv')",
    "a message": "assert c, 'not @'",
    "a lambda": "w = lambda x='@': x or '@'",
    "a comment": "y = c  # @",
    "a magic": "%env TOWN=@\nx = c",
}
# Where a value may be in the notebook's names. The last few are in no description.
VALUES = {
    "a text": "'@'",
    "a number": "§",
    "an item": "['@']",
    "a key": "{'@': 1}",
    "a value": "{'town': {'name': '@'}}",
    "a path": "Path('/home/@')",
    "a date": "timedelta(days=§)",
    "an object's field": "Town('@')",
    "an array": "numpy.array(['@'])",
    "cells of a frame": "pd.DataFrame({'town': ['@']})",
    "values of a column": "pd.DataFrame({'town': ['@'] * 9})",
    "many columns": "pd.DataFrame({f'@{n}': [n] for n in range(31)})",
    "columns that are no text": "pd.DataFrame({§: [1]})",
    "columns of a table of counts": "pd.DataFrame({('town', '@'): [1]})",
    "a docstring": "noted(lambda x: x, '@')",
    "a default": "lambda x='@': x",
    "a category": "pd.Series(pd.Categorical(['x'], categories=['@', 'x']))",
    "a label": "pd.Series({'@': 1})",
    "the name of a column": "pd.Series([1], name=('@', 1))",
}
NOT_DESCRIBED = ("a category", "a default", "a label")
# How a text may give a value V back; at `all`, that is sent as it was shown.
TEXTS = {
    "an exception's message": "raise ValueError(V)",
    "a key": "{}[V]",
    "a message of an assertion": "assert not V, V",
    "encoded": "raise KeyError(V.encode().hex())",
    "backwards": "raise KeyError(V[::-1])",
    "letter by letter": "raise KeyError(' '.join(V))",
    "printed": "print(V); 1 / 0",
    "the last value": "V",
    "an item of it": "[1, {V: 2}]",
    "an exception's type": "raise type(V, (Exception,), {})()",
    "a type that says it is built in": "raise type(V, (KeyError,), {'__module__': 'builtins'})(1)",
    "the type of an item": "{V: [type(V, (), {})()]}",
    "a note": "error = ValueError(1)\nerror.add_note(V)\nraise error",
    "the cause": "try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError(V) from e",
    "words of the sandbox": "raise ValueError(f'The truth value of a {V} is ambiguous')",
    "what looks like a line": "raise ValueError('line 1, in ' + V + ': x')",
    "a path": "open(V + '.csv')",
    "a name": "globals()[V] = 1\nnothing",
    "an attribute": "getattr(rows, V)",
    "a module": "import importlib\nimportlib.import_module(V)",
    "an exit": "raise SystemExit(V)",
    "a group": "raise ExceptionGroup(V, [ValueError(V)])",
    "a warning": "import warnings\nwarnings.warn(V)\n1 / 0",
    "a text of its own": "class Odd(KeyError):\n    __str__ = lambda self: V\nraise Odd(1)",
    "a thread": "import threading\nt = threading.Thread(target=lambda: {}[V])\nt.start()\nt.join()",
    "a coroutine": "async def late():\n    raise KeyError(V)\nawait late()",
    "a traceback": "import sys\nprint('Traceback (most recent call last):\\n  File '\n"
    "      f'\"candidate.py\", line 1\\nKeyError: {V}', file=sys.stderr)\nsys.exit(1)",
    "the name of a file": "exec(compile('1 / 0', V, 'exec'))",
    "the head of a table": "df.assign(town=V)",
    "its columns": "df.assign(**{V: 1})",
    "its labels": "df.set_axis([V, 'x'])",
    "the name of its labels": "df.rename_axis(V)",
    "a pivot": "df.assign(town=V).pivot_table(columns='town', values='n')",
    "a step that fails": "wide = df.assign(**{V: 1})\nwide.astype({V: str})",
    "a renamed column": "df.columns = [V]\ndf",
    "a type of values": "df['n'] = pd.Categorical([V, 'x'])\ndf",
    "a name that is new": "made = pd.DataFrame({V: [V]})\nmade",
}  # fmt: skip
# What the user is not shown either.
UNSEEN = {
    *("a name", "an exit", "a group", "a type of values", "a traceback", "the cause"),
    *("a note", "what looks like a line", "a warning", "the name of a file"),
    "words of the sandbox",
}


class Server(ScriptedModel):
    """A model of a server elsewhere that gives every stage its own kind of reply.

    Args:
        *texts: what it writes, in order; the last one again and again.
        tests: what it writes as a critic, once.
        **said: what it says as a critic, if not that the text is not there yet.
    """

    base_url = "https://models.example.com/v1"

    def __init__(self, *texts: str, tests: str = "", **said: Any) -> None:
        self._texts, self._tests = [*texts], tests
        self._said = {"findings": [], "ready": False, "because": "It is not there yet.", **said}
        super().__init__(repeat(self._reply), name="gpt")

    def _reply(self, request: Request) -> str:
        if request.purpose == Stage.CRITIQUE:
            tests, self._tests = self._tests, ""
            block = f"```python\n{tests}\n```\n" if tests else ""
            return f"{block}```json\n{json.dumps(self._said)}\n```"
        text = self._texts.pop(0) if len(self._texts) > 1 else self._texts[0]
        return f"f1: mended\n```python\n{text}\n```"

    @property
    def sent(self) -> str:
        """All that it was asked, in every field."""
        sent = "\n".join(request.model_dump_json() for request in self.requests)
        return re.sub(r"material-\w+", "material", sent)  # a tag may have any digits


def canary(kind: str) -> str:
    """A word that stands for a kind of place."""
    return f"Zwolle{[*CELLS, *VALUES, *TEXTS].index(kind)}oss"


def number(kind: str) -> str:
    return str(int(canary(kind)[6:-3]) * 1013 + 70_003)


def planted(code: str, kind: str) -> str:
    return code.replace("@", canary(kind)).replace("§", number(kind))


def encodings(text: str) -> Iterator[str]:
    yield from (text, text[::-1], text.encode().hex(), " ".join(text))


def told(sent: str, kinds: Mapping[str, str]) -> set[str]:
    """The kinds of places of which a canary stands in a text, whichever way it is written."""
    words = {kind: [*encodings(canary(kind)), number(kind)] for kind in kinds}
    return {kind for kind, written in words.items() if any(one in sent for one in written)}


def notebook() -> dict[str, Any]:
    return {"rows": [{"region": SECRET, "revenue": AMOUNT}, {"region": "Oss", "revenue": 3}]}


def leaked(sent: str) -> list[str]:
    """The values of `notebook` that stand in a text, whichever way they are written."""
    values = [SECRET, *SECRET.split("-")[:2], str(AMOUNT)]
    return [one for value in values for one in encodings(value) if one in sent]


SECRET, AMOUNT = "Zwolle-7731-qx", 827450917
ASKED = "Total `revenue` of `rows` per region."
FINE = "total = sum(row['revenue'] for row in rows)\ntotal"


def refinement(model: Any, task: str = ASKED, **options: Any) -> Refinement:
    space = options.pop("namespace", None) or notebook()
    used = find(space, text=task, draft=options.get("draft") or "")
    names = options.pop("checks", ())
    limits = {"max_revisions": 2, "patience": None, "critique": "always"}
    return api.build(
        task,
        model=model,
        profile="code",
        variables=used,
        checks=resolve(names, space, variables=used),
        limits=Limits.model_validate({**limits, **options.pop("limits", {})}),
        **options,
    )


@pytest.fixture(autouse=True)
def closed_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    if not variables.sandbox_is_closed():
        pytest.skip("code is not run on copies unasked in an open sandbox")


@pytest.fixture(autouse=True)
def nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipyrefine.providers.choose._asked", set())
    monkeypatch.setattr("ipyrefine.providers.choose._told", set())


# What leaves


def expected(level: str, kinds: Iterable[str], but: Iterable[str] = ()) -> set[str]:
    return set() if level == "structure" else {*kinds}.difference(but)


@pytest.mark.parametrize("level", LEVELS)
def test_of_other_cells_names_and_calls_leave_and_at_all_their_constants(monkeypatch, level):
    shell, model = loaded_shell(monkeypatch), Server(FINE)
    monkeypatch.setattr(api, "choose_model", lambda *_, **__: model)
    cells = [f"frame = frame\n{planted(code, kind)}" for kind, code in CELLS.items()]
    monkeypatch.setattr(cell_source, "_TOTAL", 20_000)
    shell.run_line_magic("config", "Refine.context = 50")
    shell.user_ns |= dict.fromkeys("abcdefghijklmnopqrstuvwxy", 1) | {"Named": int, "frame": 1}
    cell = f"%%refine --set quiet=yes -n 0 -p code --share {level}\nWhat is `frame`?"
    monkeypatch.setattr(shell.history_manager, "input_hist_raw", ["", *cells, cell])
    run_cell(shell, cell)
    assert told(model.sent, CELLS) == expected(level, CELLS)
    assert "frame.set_index(" in model.sent


@pytest.mark.parametrize("level", LEVELS)
async def test_of_variables_their_structure_leaves_and_at_all_their_values(level):
    names = {kind: f"name{n}" for n, kind in enumerate(VALUES)}
    setup = "import numpy, pandas as pd\nfrom pathlib import Path\nfrom datetime import timedelta\n"
    setup += "class Town:\n    def __init__(self, name):\n        self.name = name\n"
    setup += "def noted(f, doc):\n    f.__doc__ = doc\n    return f\n"
    space: dict[str, Any] = {}
    exec(setup, space)
    space |= {names[kind]: eval(planted(code, kind), space) for kind, code in VALUES.items()}
    task = "Use " + ", ".join(f"`{name}`" for name in names.values())
    model = Server("x = 1")
    limits = {"max_revisions": 0, "critique": "never"}
    await refinement(model, task, namespace=space, share=level, limits=limits).run()
    assert told(model.sent, VALUES) == expected(level, VALUES, NOT_DESCRIBED)
    assert "town" in model.sent
    assert "31 columns of int64" in model.sent or level == "all"


@pytest.mark.parametrize("level", LEVELS)
async def test_nothing_that_a_text_gives_back_leaves_and_at_all_what_it_shows(level):
    texts = [code.replace("V", f"rows[{n}]") for n, code in enumerate(TEXTS.values())]
    model = Server(*texts, "total = 0\ntotal")
    space = {"rows": [*map(canary, TEXTS)], "df": pandas.DataFrame({"n": [1, 2]}), "pd": pandas}
    limits = {"memory": "all", "max_revisions": len(texts), "budget": Budget(calls=999)}
    options: dict[str, Any] = {"namespace": space, "limits": limits, "share": level}
    run = await refinement(model, "Total `n` of `df` by `rows`.", **options).run()
    assert [one.text for one in run.iterations[:-1]] == texts
    assert {one.purpose for one in model.requests} >= {Stage.DRAFT, Stage.CRITIQUE, Stage.REVISE}
    sent = told(model.sent, TEXTS)
    assert sent == set() if level == "structure" else sent >= {*TEXTS} - UNSEEN
    assert told(run.model_dump_json(), TEXTS) >= {*TEXTS} - UNSEEN, "the user is shown it"


# What is sent all the same: of a text for a task, this.
SENT = [
    (ASKED, "x = 1\nrows[0]['revenues']", "KeyError in line 2: rows[0]['revenues']"),
    (ASKED, "[one['revenue'] for one in rows]", "a list[int] of length 2"),
    (ASKED, "far = '\\n' * (rows[0]['revenue'] // 100_000)\n"
     "exec(compile(far + '1 / 0', 'candidate.py', 'exec'))", "ZeroDivisionError"),
    ("Write `mean(xs)`.\n\nmean([1, 2]) == 1.5", "def mean(xs):\n    return 'forty-two'",
     "got 'forty-two'"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "text", "sent"), SENT)
async def test_what_tells_no_value_is_sent(task, text, sent):
    model = Server(text)
    await refinement(model, task).run()
    assert sent in model.sent
    assert [one for one in ("8275", "8274", *leaked(model.sent)) if one in model.sent] == []


TOTALS = "Write `totals(rows)`: the total `revenue` of `rows` per region, as a number."
BY_REGION = "def totals(rows):\n    return {row['region']: str(row['revenue']) for row in rows}"
# What a critic's test does, and how its failure is told. Each quotes the task.
OUTCOMES = {
    "assert totals(rows) == {'a': 1}": (
        "AssertionError: dict[str, str] of length 2 compared with dict[str, int] of length 1"
    ),
    "assert totals(rows)['Nowhere']": "KeyError",
    "raise KeyError([*totals(rows)][0][::-1])": "KeyError",
    "assert not rows, [*totals(rows)]": "AssertionError",
    "assert not totals(rows)": "AssertionError",
    "got = [*totals(rows)][0]\n    assert got == 'x', f'it is {got}'": (
        "AssertionError: str of length 14 compared with str of length 1"
    ),
    "pytest.fail([*totals(rows)][0])": "Failed",
    "with pytest.raises(ValueError):\n        totals(rows)": "Failed",
    "raise type([*totals(rows)][0][:6], (Exception,), {})": "An exception",
}


def module_of(bodies: Iterable[str]) -> str:
    quote = "the total `revenue` of `rows` per region"
    return "import pytest\n\n" + "\n\n".join(
        f'def test_{n}():\n    """{quote}"""\n    {body}' for n, body in enumerate(bodies)
    )


@pytest.mark.parametrize("bodies", [[*OUTCOMES][:5], [*OUTCOMES][5:]])
async def test_how_a_critics_tests_fail_is_sent_without_the_values_that_they_show(bodies):
    tests = module_of(["assert totals([]) == {}", *bodies, "assert isinstance(totals(rows), dict)"])
    model = Server(BY_REGION, tests=tests)
    run = await refinement(model, TOTALS, limits={"max_revisions": 1}).run()
    failing = next(e for e in run.evidence(run.iterations[0]) if e.basis == "critique")
    assert leaked(failing.shows), "the user sees it"
    assert leaked(model.sent) == []
    revise = next(one for one in model.requests if one.purpose == Stage.REVISE)
    prompt = revise.messages[-1].content
    assert "tests of the critic's pass." in prompt
    for number, body in enumerate(bodies, start=1):
        assert re.search(rf"test_{number}\b.*: {re.escape(OUTCOMES[body])}", prompt), body


# Tests of a critic's that tell a value in a way of their own: by what runs before them, by their
# module, by a type, or by a fault in their own lines, which the critic is asked to mend.
TELLING = [
    "    raise KeyError(rows[0]['region'])",
    "    pytest.skip(rows[0]['region'])",
    "    pytest.xfail(rows[0]['region'])",
    "    assert type([*totals(rows)][0][:6], (), {})() == 1",
    "    assert {type([*totals(rows)][0][:6], (), {})(): 1} == [*totals(rows)]",
    "    warnings.warn([*totals(rows)][0])\n    assert not totals(rows)",
    "    assert totals(rows) == pytest.approx(rows[0]['revenue'])",
    "    try:\n        assert not totals(rows)\n"
    "    except AssertionError as e:\n        raise RuntimeError(repr(totals(rows))) from e",
    "    assert range(rows[0]['revenue']) == totals(rows)",
]
FIRST_LINES = [
    "",
    "@pytest.fixture(autouse=True)\ndef first():\n    raise KeyError(rows[0]['region'])",
    "rows[0]['region'].nothing",
    "assert not rows, rows",
]


@pytest.mark.parametrize("head", FIRST_LINES)
async def test_no_test_of_a_critics_tells_a_value(head):
    telling = TELLING if head in FIRST_LINES[:2] else TELLING[:1]  # of the others no test runs
    bodies = "\n\n".join(
        f'def test_{n}():\n    """the total `revenue` of `rows` per region"""\n{body}'
        for n, body in enumerate(telling)
    )
    tests = f"import pytest, warnings\n{head}\n\n{bodies}"
    model = Server(BY_REGION, tests=tests)
    await refinement(model, TOTALS, limits={"max_revisions": 1}).run()
    assert {one.purpose for one in model.requests} >= {Stage.CRITIQUE, Stage.REVISE}
    assert leaked(model.sent) == []


async def test_no_test_of_the_users_tells_a_value_by_its_name_or_message():
    tests = (
        "import pytest\n\nclass TestAll:\n    def test_one(self):\n"
        "        assert totals(rows) == 1\n\n"
        "setattr(TestAll, 'test_' + rows[0]['region'].split('-')[0], lambda self: 1 / 0)\n\n"
        "def test_two():\n    pytest.fail(rows[0]['region'])\n\n"
        "def test_three():\n    raise type(rows[0]['region'], (Exception,), {})\n"
    )
    model = Server(BY_REGION)
    space = notebook() | {"suite": tests}
    run = await refinement(model, TOTALS, checks=["tests:suite"], namespace=space).run()
    assert leaked(run.model_dump_json())
    assert leaked(model.sent) == []
    assert "TestAll::test_one: AssertionError: dict[str, str] of length 2 compared with int" in (
        model.requests[1].messages[-1].content
    )


async def test_what_a_critic_wrote_who_saw_the_outputs_is_kept_from_another_server():
    quote = "the total `revenue` of `rows` per region"
    test = f'def test_it():\n    """{quote}"""\n    assert totals(rows) == {SECRET!r}'
    finding = {"problem": f"It holds {SECRET}.", "place": SECRET}
    said = {"tests": test, "findings": [finding], "because": SECRET, "lost": SECRET}
    near = Server(f"{BY_REGION}\ntotals(rows)", **said)
    loop = refinement(near, TOTALS, share="all", limits={"max_revisions": 0})
    stored = Run.model_validate_json((await loop.run()).model_dump_json())
    assert leaked(" ".join(one.words for text in stored.iterations for one in stored.cells(text)))
    assert written(stored)
    model = Server(FINE)
    resumed = api.resume(stored, model=model, checks=loop.checks)
    resumed.decide(Continue(revisions=1))
    await resumed.run()
    assert model.requests
    assert leaked(model.sent) == []


# Which level holds


def other(url: str) -> ScriptedModel:
    """A model at an address."""
    model: Any = ScriptedModel([], name="other")
    model.base_url = url
    return model  # type: ignore[no-any-return]


HERE, THERE = "http://127.0.0.1:8080/v1", "https://models.example.com/v1"


@pytest.mark.parametrize(("urls", "level", "asks"), [
    ([HERE], "all", False),
    (["http://[::1]:8080/v1"], "all", False),
    (["http://127.0.0.1.example.com/v1"], "structure", True),
    ([THERE], "structure", True),
    ([""], "structure", True),
    ([HERE, THERE], "structure", True),
])  # fmt: skip
def test_servers_elsewhere_get_structure_and_this_machine_gets_all(urls, level, asks):
    sharing = choose_sharing(map(other, urls))
    assert (sharing.level, sharing.asks) == (level, asks)
    assert choose_sharing(map(other, urls), "all")[::2] == ("all", False)


def test_what_the_user_said_of_a_server_is_remembered_for_it_alone():
    far = "https://other.example.com/v1"
    assert remember_about(THERE, share="all")
    assert choose_sharing([other(THERE)])[::2] == ("all", False)
    assert choose_sharing([other(far)])[::2] == ("structure", True)
    assert choose_sharing([other(THERE), other(far)])[::2] == ("structure", True)
    assert remember_about(far, share="structure")
    assert choose_sharing([other(THERE), other(far)])[::2] == ("structure", False)


def test_levels_of_older_versions_mean_no_more_than_they_did_which_is_said_once():
    said = "share=outputs is now share=structure. %%refine? sharing says what leaves."
    found = [choose_sharing([other(THERE)], level) for level in ("outputs", "outputs", "code")]
    assert [one.level for one in found] == ["structure"] * 3
    assert [one.notice for one in found][:2] == [said, ""]
    assert choose_sharing([other(THERE)], "values").level == "all"
    home().mkdir(parents=True, exist_ok=True)
    for old, share in (("outputs", None), ("values", None), ("structure", "structure")):
        (home() / "servers.json").write_text(f'{{"{THERE}": {{"share": "{old}"}}}}')
        assert facts_about(THERE).share == share


# Recordings


async def test_a_recording_is_asked_as_ever_and_a_live_server_in_its_place_is_not_sent_values(
    tmp_path,
):
    def recorded(live: ScriptedModel, *, record: bool = False) -> RecordedModel:
        return RecordedModel(tmp_path / "run.json", live=lambda: live, record=record)

    local = Server("raise ValueError(rows[0]['region'])", FINE)
    local.base_url = HERE  # type: ignore[misc]
    limits = {"max_revisions": 1, "critique": "never"}
    first = await refinement(recorded(local, record=True), limits=limits).run()
    assert f"ValueError: {SECRET}" in local.sent
    remote = Server(FINE)
    again = await refinement(recorded(remote), limits=limits).run()
    assert again.text == first.text
    assert not remote.requests, "the recording holds it all"
    loop = refinement(recorded(remote), limits=limits)
    await loop.run()
    loop.decide(Continue(guidance="Sort them."))
    await loop.run()
    assert remote.requests, "this is not in the recording"
    messages = [m.content for request in remote.requests for m in request.messages]
    assert leaked("\n".join(messages)) == []
