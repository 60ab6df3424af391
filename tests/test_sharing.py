"""What leaves for a model's server of what code computed from the notebook's variables."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any

import pandas
import pytest
from kit import written

from ipyrefine import api
from ipyrefine.checks import resolve
from ipyrefine.core.decisions import Continue, Expect
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Budget, Limits, Stage
from ipyrefine.core.ports import Request
from ipyrefine.core.results import rows
from ipyrefine.core.run import Run
from ipyrefine.kernel import variables
from ipyrefine.kernel.variables import find
from ipyrefine.providers.choose import choose_sharing, remember_sharing
from ipyrefine.providers.replay import RecordedModel
from ipyrefine.providers.scripted import ScriptedModel

SECRET, AMOUNT = "Zwolle-7731-qx", 827450917
ASKED = "Total `revenue` of `rows` per region."
FINE = "total = sum(row['revenue'] for row in rows)\ntotal"
# Ways in which code gives back what a variable holds.
LEAKS = [
    "raise ValueError(repr(rows))",
    "raise ValueError(' '.join(row['region'] for row in rows))",
    "assert not rows, rows",
    "raise KeyError(repr(rows).encode().hex())",
    "raise KeyError(str(rows)[::-1])",
    "raise KeyError(' '.join(rows[0]['region']))",
    "print(rows); 1 / 0",
    "str(rows)",
    "rows",
    "raise type(rows[0]['region'].replace('-', '_'), (Exception,), {})()",
    "raise SystemExit(rows[0]['region'])",
    "globals()[rows[0]['region'].replace('-', '_')] = [*rows]\nnothing",
    "error = ValueError(1)\nerror.add_note(rows[0]['region'])\nraise error",
    "try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError(rows[0]['region']) from e",
    "raise type('test' + rows[0]['region'].replace('-', '_'), (Exception,), {})('x')",
    "name = rows[0]['region'].split('-')[0]\n"
    "raise ValueError(f'The truth value of a {name} is ambiguous')",
    "raise ValueError('line 1, in ' + rows[0]['region'].split('-')[0] + ': x')",
    "open(rows[0]['region'] + '.csv')",
    "import warnings\nwarnings.warn(rows[0]['region'])\n1 / 0",
    "rows[0]['region'].encode().nothing[rows[0]['region']]",
    "getattr(rows, rows[0]['region'])",
    "import importlib\nimportlib.import_module(rows[0]['region'])",
    "class Odd(KeyError):\n    def __str__(self):\n        return str(rows)\nraise Odd(1)",
    "raise ExceptionGroup(rows[0]['region'], [ValueError(str(rows[0]['revenue']))])",
    "import threading\nt = threading.Thread(target=lambda: {}[rows[0]['region']])\n"
    "t.start()\nt.join()",
    "async def late():\n    raise KeyError(rows[0]['region'])\nawait late()",
    "import sys\nprint('Traceback (most recent call last):\\n  File \"candidate.py\", line 1\\n'\n"
    "      f'KeyError: {rows[0][\"region\"]}', file=sys.stderr)\nsys.exit(1)",
    "raise type(rows[0]['region'].split('-')[0], (KeyError,), {'__module__': 'builtins'})(1)",
    "exec(compile('1 / 0', rows[0]['region'], 'exec'))",
    "{rows[0]['region']: [type(rows[0]['region'], (), {})()]}",
    "range(rows[0]['revenue'])",
]
# What the user is not shown of it either.
UNSEEN = re.compile(
    r"globals|raise (?:SystemExit|ExceptionGroup)|import (?:warnings|sys)|exec|.*nothing\["
)
FRAMES = [
    "df",
    "df.pivot_table(columns='region', values='revenue')",
    "raise KeyError(df.to_csv())",
    "wide = df.assign(**{df.region[0]: 1})\nwide.astype({df.region[0]: str})",
    "df.rename_axis(df.region[0])\ndf[df.region[0]]",
]


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
        return "\n".join(request.model_dump_json() for request in self.requests)


def notebook() -> dict[str, Any]:
    return {"rows": [{"region": SECRET, "revenue": AMOUNT}, {"region": "Oss", "revenue": 3}]}


def frames() -> dict[str, Any]:
    """The same as a table, which takes the sandbox a second to load."""
    return {"df": pandas.DataFrame(notebook()["rows"]), "pd": pandas}


def encodings(text: str) -> Iterator[str]:
    yield from (text, text[::-1], text.encode().hex(), " ".join(text), text.replace("-", "_"))


def leaked(sent: str) -> list[str]:
    """The values of the notebook that stand in a text, whichever way they are written."""
    values = [SECRET, *SECRET.split("-")[:2], str(AMOUNT), "Oss"]
    return [one for value in values for one in encodings(value) if one in sent]


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


# What a server elsewhere is sent


@pytest.mark.parametrize(
    ("leaks", "space", "task"),
    [(LEAKS, notebook, ASKED), (FRAMES, frames, "Total `revenue` of `df` per region.")],
    ids=["rows", "frames"],
)
async def test_no_value_that_code_gives_reaches_a_server_elsewhere(leaks, space, task):
    model = Server(*leaks, "total = 0\ntotal")
    limits = {"memory": "all", "max_revisions": len(leaks), "budget": Budget(calls=999)}
    run = await refinement(model, task, namespace=space(), limits=limits).run()
    assert [one.text for one in run.iterations[:-1]] == leaks
    assert {one.purpose for one in model.requests} >= {Stage.DRAFT, Stage.CRITIQUE, Stage.REVISE}
    assert leaked(model.sent) == []
    unseen = [one.text for one in run.iterations[:-1] if not leaked(one.model_dump_json())]
    assert {code for code in unseen if not UNSEEN.match(code)} == set(), "by the user"


async def test_nor_does_it_by_the_users_draft_and_tests():
    tests = (
        "import pytest\n@pytest.mark.parametrize('name', [row['region'] for row in rows])\n"
        "def test_short(name):\n    assert len(shorten(name)) == 1, shorten(name)\n"
    )
    task = "Write `shorten(name)`, the first region of `rows`.\n\nshorten(1) == 2"
    draft, *codes = (f"def shorten(name):\n    return rows[0]['region'][{n}:]" for n in range(4))
    model = Server(*codes)
    space = notebook() | {"suite": tests}
    loop = refinement(model, task, draft=draft, checks=["tests:suite"], namespace=space)
    run = await loop.run()
    assert leaked(run.model_dump_json())
    assert leaked(model.sent) == []


async def test_nor_is_it_sent_as_the_answer_to_what_drafts_differ_on():
    task = "The first region of `rows`:\n```python\ndef first(n: int) -> str:\n    ...\n```"
    bodies = ["rows[0]", "rows[1]", "rows[0] * 2", "rows[0].upper()"]
    space = {"rows": [SECRET, "Oss"]}
    model = Server(*(f"def first(n: int) -> str:\n    return {one}" for one in bodies))
    limits = {"candidates": 4, "critique": "auto"}
    loop = refinement(model, task, namespace=space, limits=limits)
    run = await loop.run()
    row = next(one for one in rows(run, run.chosen) if one.rivals)
    choice = next(one for one in (row.gives, *row.rivals) if SECRET in one)
    loop.decide(Expect(call=row.call, gives=choice, setup=row.setup))
    await loop.run()
    loop.decide(Continue(guidance="Shorter."))
    run = await loop.run()
    assert leaked(run.task.request)
    assert len(model.requests) > len(run.drafts)
    assert leaked(model.sent) == []


async def test_nor_does_a_run_that_is_resumed_send_it():
    loop = refinement(Server(LEAKS[1]), limits={"max_revisions": 0})
    stored = Run.model_validate_json((await loop.run()).model_dump_json())
    model = Server(FINE)
    resumed = api.resume(stored, model=model, checks=loop.checks)
    resumed.decide(Continue())
    await resumed.run()
    assert model.requests
    assert leaked(model.sent) == []


FRAME: dict[str, Any] = {"task": "Share of `revenue` in `df`.", "space": frames}
HEADS = (
    "Write `heads(n)`: the first `n` rows of `df`.\n\n"
    "```python\nassert heads(1) == [1, 2]\nassert heads(0) == 3\n```"
)
# What a server elsewhere is sent all the same: the code, what it is sent of it, what it is not.
SENT: dict[str, tuple[list[str], str, dict[str, Any]]] = {
    "an error's type and line": (
        ["shares = df['revenues'] / df['revenue']\nshares", FINE],
        "KeyError in line 1: shares = df['revenues'] / df['revenue']", FRAME,
    ),
    "the line in a text of several": (
        ["kept = df[df.revenue > 5]\nprint(kept)\nint(str(kept.region[0]))", FINE],
        "ValueError in line 3: int(str(kept.region[0]))", FRAME,
    ),
    "a result's shape": (
        ["kept = df[df.revenue > 5]\nkept", FINE], "a table of 1 row × 2 columns", FRAME
    ),
    "the size of what a frame should be": (
        ["def heads(n):\n    return df", "def heads(n):\n    return df.region[n]"],
        "heads(1): DataFrame (2, 2) compared with list[int] of length 2", FRAME | {"task": HEADS},
    ),
    "what code gave on literals": (
        ["def mean(xs):\n    return 'forty-two'", "def mean(xs):\n    return 1.5"],
        "got 'forty-two'", {"task": "Write `mean(xs)`.\n\nmean([1, 2]) == 1.5"},
    ),
    "an error, but no line that the text does not have": (
        ["far = '\\n' * (rows[0]['revenue'] // 100_000) + '1 / 0'\n"
         "exec(compile(far, 'candidate.py', 'exec'))"],
        "ZeroDivisionError", {"never": "8275"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "sent", "options"), SENT.values(), ids=SENT)
async def test_what_tells_no_value_is_sent(texts, sent, options):
    model, space = Server(*texts), options.get("space", notebook)()
    await refinement(model, options.get("task", ASKED), namespace=space).run()
    assert sent in model.sent
    assert leaked(model.sent) == []
    assert options.get("never", SECRET) not in model.sent


TOTALS = "Write `totals(rows)`: the total `revenue` of `rows` per region, as a number."
BY_REGION = "def totals(rows):\n    return {row['region']: str(row['revenue']) for row in rows}"
# What a critic's test does, and how its failure is told. Each quotes the task.
OUTCOMES = {
    "assert totals(rows) == {'a': 1}": (
        "AssertionError: dict[str, str] of length 2 compared with dict[str, int] of length 1"
    ),
    "assert len(totals(rows)) == 4": "AssertionError: int compared with int",
    "assert [*totals(rows)] == [1]": (
        "AssertionError: list[str] of length 2 compared with list[int] of length 1"
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


@pytest.mark.parametrize("bodies", [[*OUTCOMES][:6], [*OUTCOMES][6:]])
async def test_a_critics_tests_and_how_many_pass_are_sent_whole_but_no_value_that_they_show(bodies):
    tests = module_of(["assert totals([]) == {}", *bodies, "assert isinstance(totals(rows), dict)"])
    model = Server(BY_REGION, tests=tests)
    run = await refinement(model, TOTALS, limits={"max_revisions": 1}).run()
    failing = next(e for e in run.evidence(run.iterations[0]) if e.basis == "critique")
    assert leaked(failing.shows), "the user sees it"
    assert leaked(model.sent) == []
    revise = next(one for one in model.requests if one.purpose == Stage.REVISE)
    prompt = revise.messages[-1].content
    count = len(bodies)
    held, of = failing.tallies["test"]
    assert f"{held} of {of} tests of the critic's pass." in prompt
    assert of - held == count
    for expected in written(run)[1:4]:
        assert expected.code.partition("def ")[2] in prompt, "three of those that fail"
    for number, body in enumerate(bodies, start=1):
        assert re.search(rf"test_{number}\b.*: {re.escape(OUTCOMES[body])}", prompt), body


async def test_a_critics_test_with_parameters_from_a_variable_sends_none_of_them():
    test = (
        "import pytest\n\n@pytest.mark.parametrize('name', [row['region'] for row in rows])\n"
        'def test_short(name):\n    """per region, as a number"""\n'
        "    assert totals(rows)[name] == 1\n"
    )
    model = Server(BY_REGION, tests=test)
    run = await refinement(model, TOTALS, limits={"max_revisions": 1}).run()
    assert leaked(run.iterations[0].model_dump_json())
    assert leaked(model.sent) == []
    assert "str of length 9 compared with int" in model.sent


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
    loop = refinement(near, TOTALS, share="outputs", limits={"max_revisions": 0})
    stored = Run.model_validate_json((await loop.run()).model_dump_json())
    assert leaked(" ".join(one.words for text in stored.iterations for one in stored.cells(text)))
    assert written(stored)
    model = Server(FINE)
    resumed = api.resume(stored, model=model, checks=loop.checks)
    resumed.decide(Continue(revisions=1))
    await resumed.run()
    assert model.requests
    assert leaked(model.sent) == []


async def test_what_the_user_says_is_sent():
    model = Server(FINE)
    loop = refinement(model, limits={"max_revisions": 0})
    await loop.run()
    loop.decide(Continue(guidance=f"Leave out {SECRET}."))
    await loop.run()
    assert f"Leave out {SECRET}." in model.sent


async def test_messages_and_outputs_are_sent_from_the_moment_the_user_says_so():
    model = Server("raise KeyError(rows[0]['region'])", "print(rows[0]['region'])\n1 / 0", FINE)
    loop = refinement(model, limits={"max_revisions": 0})
    await loop.run()
    assert leaked(model.sent) == []
    loop.sharing = loop.sharing._replace(level="outputs")
    loop.decide(Continue(revisions=2))
    await loop.run()
    assert f"KeyError: '{SECRET}'" in model.sent
    assert f"It printed:\\n{SECRET}" in model.sent


async def test_values_of_the_variables_are_sent_where_the_user_says_so():
    model = Server(FINE)
    await refinement(model, share="values", limits={"max_revisions": 0}).run()
    assert str(AMOUNT) in model.requests[0].messages[0].content


# Which level holds


def other(url: str) -> ScriptedModel:
    """A model at an address."""
    model: Any = ScriptedModel([], name="other")
    model.base_url = url
    return model  # type: ignore[no-any-return]


HERE, THERE = "http://127.0.0.1:8080/v1", "https://models.example.com/v1"


@pytest.mark.parametrize(("urls", "level", "asks"), [
    ([HERE], "values", False),
    (["http://[::1]:8080/v1"], "values", False),
    (["http://127.0.0.1.example.com/v1"], "structure", True),
    ([THERE], "structure", True),
    ([""], "structure", True),
    ([HERE, THERE], "structure", True),
])  # fmt: skip
def test_servers_elsewhere_get_structure_and_this_machine_gets_values(urls, level, asks):
    sharing = choose_sharing(map(other, urls))
    assert (sharing.level, sharing.asks) == (level, asks)
    assert choose_sharing(map(other, urls), "outputs")[::2] == ("outputs", False)


@pytest.mark.parametrize(("writer", "judge"), [(HERE, HERE), (HERE, THERE)])
def test_a_prompt_holds_values_where_all_who_read_it_are_on_this_machine(writer, judge):
    used = find({"xs": [1234]}, text="Describe `xs`.")
    models = {"model": other(writer), "judge": other(judge)}
    task = api.build("Describe `xs`.", **models, variables=used).state.task
    assert ("1234" in task.materials[0].text) is (writer == judge == HERE)


def test_what_the_user_said_of_a_server_is_remembered_for_it_alone():
    far = "https://other.example.com/v1"
    assert remember_sharing([THERE], "outputs")
    assert choose_sharing([other(THERE)])[::2] == ("outputs", False)
    assert choose_sharing([other(far)])[::2] == ("structure", True)
    assert choose_sharing([other(THERE), other(far)])[::2] == ("structure", True)
    assert remember_sharing([far], "structure")
    assert choose_sharing([other(THERE), other(far)])[::2] == ("structure", False)


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


# Modules of the notebook
