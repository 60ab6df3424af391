"""Checked code runs without the secrets in it: nothing that it makes of one reaches a server."""

import base64
import json
from collections.abc import Iterator
from itertools import repeat

import pytest

from ipyrefine import api
from ipyrefine.checks import resolve
from ipyrefine.core.model import Limits, Stage
from ipyrefine.core.ports import Request
from ipyrefine.core.run import Run
from ipyrefine.core.table import Result
from ipyrefine.providers.scripted import ScriptedModel

SECRETS = {  # a cell that holds one, and the secret
    "password": ('password = "corr-ect7horses"', "corr-ect7horses"),
    "word": ('password = "Rumpelstilz"', "Rumpelstilz"),
    "token": ('key = "sk-proj-Zq81xYw7Qm3vT9"', "sk-proj-Zq81xYw7Qm3vT9"),
    "number": ("PIN = 80417263", "80417263"),
    "login": ('url = "postgres://ada:Zq81xYw@db.example.com/x"', "ada:Zq81xYw"),
}
# What a model writes below such a cell of its secret S, and how it gets it out.
WAYS = {
    "hex": "raise ValueError(str(S).encode().hex())",
    "reversed": "raise KeyError(str(S)[::-1])",
    "base64": "import base64\nprint(base64.b64encode(str(S).encode()))\n1 / 0",
    "length": "raise ValueError(f'LENGTH={len(str(S))}=')",
    "letters": "raise ValueError(' '.join(str(S)))",
    "codes": "raise ValueError([ord(c) for c in str(S)])",
    "value": "str(S)[::-1]",
    "exit": "raise SystemExit(str(S)[::-1])",
    "name": "x = type(str(S)[::-1], (Exception,), {})\nraise x()",
    "thread": "import threading\ndef f(): raise KeyError(str(S)[::-1])\n"
    "t = threading.Thread(target=f)\nt.start()\nt.join()",
    "bits": "assert bin(int(str(S).encode().hex(), 16)) == ''",
    "in a word": "raise ValueError('xSx'[::-1])",
    "source": "raise ValueError(open('candidate.py').read()[::-1])  # S",
    "names": "def f(a): return a\nraise ValueError(str(f.__code__.co_consts) + repr(S)[::-1])",
}


def encodings(secret: str) -> Iterator[str]:
    data = secret.encode()
    yield from (secret, secret[::-1], data.hex(), " ".join(secret), str([*data]))
    yield from (bin(int.from_bytes(data)), f"LENGTH={len(secret)}=")
    yield base64.b64encode(data).decode()


class Elsewhere(ScriptedModel):
    """A model of a server that writes some texts of what it was sent.

    Args:
        *ways: what it writes below the line of the cell that has the secret, with S for that.
        tests: what it writes as a critic.
    """

    cell = ""  # with the mask of its secret

    base_url = "https://models.example.com/v1"

    def __init__(self, *ways: str, tests: str = "") -> None:
        self._ways, self._tests = list(ways), tests
        super().__init__(repeat(self._reply), name="gpt")

    def _reply(self, request: Request) -> str:
        assert any("MASKED_SECRET_1" in one.content for one in request.messages)
        if request.purpose == Stage.CRITIQUE:
            why = f"{len(self.requests)} replies were not enough."
            said = json.dumps({"findings": [], "ready": False, "because": why})
            return f"```python\n{self._tests}\n```\n```json\n{said}\n```" if self._tests else said
        way = self._ways.pop(0) if len(self._ways) > 1 else self._ways[0]
        return f"f1: mended\n```python\n{self.cell}\n{placeheld(way, self.cell)}\n```"

    @property
    def sent(self) -> str:
        return "\n".join(one.content for request in self.requests for one in request.messages)


def placeheld(code: str, cell: str) -> str:
    """Return code with the name of a secret, or within words with its mask."""
    name = cell.partition(" = ")[0]
    return (
        code.replace("xSx", "xMASKED_SECRET_1x")
        .replace("(S)", f"({name})")
        .replace("# S", "# MASKED_SECRET_1")
    )


@pytest.mark.parametrize("kind", SECRETS)
async def test_nothing_that_code_makes_of_a_secret_reaches_a_server(kind):
    ways = WAYS if kind == "password" else ("hex", "reversed", "length", "in a word")
    model = Elsewhere(*(WAYS[way] for way in ways), "x = 1")
    limits = Limits(max_revisions=len(ways) + 1, patience=None, critique="always")
    run = await improved(model, kind, limits)
    assert len(run.iterations) > len(ways)
    assert SECRETS[kind][1] in run.iterations[1].text, "the text itself has the secret"


@pytest.mark.parametrize("kind", ["password", "number"])
async def test_nothing_that_a_test_makes_of_a_secret_reaches_a_server(kind):
    tests = "\n".join(
        f"def test_{n}():\n    '''Improve this cell'''\n    raise ValueError(str(S){way})"
        for n, way in enumerate(("[::-1]", ".encode().hex()", "[0]"))
    )
    model = Elsewhere("x = 1", tests=placeheld(tests, SECRETS[kind][0]))
    run = await improved(model, kind, Limits(max_revisions=1, critique="always"))
    assert any("\n    raise ValueError" in one.code for one in run.points.values())


async def improved(model: Elsewhere, kind: str, limits: Limits) -> Run:
    """A run on a cell with a secret, of which nothing is sent."""
    cell, secret = SECRETS[kind]
    model.cell = cell.replace(secret, "MASKED_SECRET_1")
    run = await built("Improve this cell.\n\nx == 2", model, f"{cell}\nx = 1", ["run"], limits)
    assert [one for one in encodings(secret) if one in model.sent] == []
    return run


async def built(
    task: str, model: ScriptedModel, draft: str, checks: list[str], limits: Limits
) -> Run:
    return await api.build(
        task,
        model=model,
        profile="code",
        draft=draft,
        checks=resolve(checks, {}),
        limits=limits,
    ).run()


async def checked(code: str, task: str = "Improve it.", *names: str) -> Result:
    limits = Limits(max_revisions=0, critique="never")
    run = await built(task, ScriptedModel([]), code, [*names], limits)
    return run.iterations[0].evidence[0]


KEY = 'KEY = "sk-live-0a1b2c3d4e5f6a7b"\n'


@pytest.mark.parametrize(
    ("code", "passed"),
    [
        (KEY + "print(1)", True),
        (KEY + "1 / 0", False),
        (KEY + "raise KeyError('price')", False),
        (KEY + "def f(x): return x\nf(2)", True),
        (KEY + "assert KEY.startswith('sk-')", None),
        (KEY + "def f(x): return x[KEY]\nf({'MASKED_SECRET_1': 1})", None),
        (KEY + "assert len(KEY) == 24", False),
        ('assert "MASKED_SECRET_1".startswith("MASK")', None),
        ('import json\njson.loads("MASKED_SECRET_1" + "}")', None),
        ('print("MASKED_SECRET_1")', True),
        (KEY + "raise ValueError(KEY)", False),
        ('import uuid\npassword = "6f1c2a3b4d5e6f708192a3b4c5d6e7f8"\nuuid.UUID(password)', None),
        ("import os\nPASSWORD = os.environ.get('DB')", True),
        ("PIN = 4711\nassert 1000 <= PIN <= 9999", None),
        ("PIN = 4711\n[1, 2][PIN % 2]", True),
        ('PASSWORD = """two\nlines"""\nraise KeyError("x")', False),
        ('password = "test"\ndef test(data): return data["latest"]\ntest({"latest": 1})', True),
    ],
)
async def test_a_cell_with_a_secret_fails_for_what_is_wrong_with_it_only(code, passed):
    evidence = await checked(code, "Improve it.", "run")
    assert evidence.passed is passed, evidence.shows
    if passed is None:
        assert evidence.shows == (
            "Not run: it depends on a secret, which checked code does not get."
        )
    if "ValueError(KEY)" in code:
        assert evidence.shows == "ValueError: [secret] (line 2)"
    if "two\nlines" in code:
        assert evidence.shows == "KeyError: 'x' (line 3)"


SIGN = """
import hashlib, hmac
KEY = "sk-live-0a1b2c3d4e5f6a7b"
def sign(text):
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()[:4]
def key():
    return KEY
def double(x):
    return 2 * x
"""


@pytest.mark.parametrize(
    ("example", "passed"),
    [
        ("double(2) == 4", True),
        ("double(2) == 5", False),
        ("sign('a') == '12ab'", None),
        ("key() == 'sk-live-0a1b2c3d4e5f6a7b'", None),
    ],
)
async def test_an_example_whose_result_rests_on_a_secret_is_not_tried(example, passed):
    evidence = await checked(SIGN, f"Improve it.\n\n{example}")
    assert (evidence.name, evidence.passed) == ("examples", passed), evidence.shows
