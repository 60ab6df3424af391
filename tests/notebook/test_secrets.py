"""A planted key is found nowhere but in the request that needs it."""

import base64
import io
import json
import logging
import pickle
import re
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from faulty import Trial
from openai_server import Answer, Failure, ScriptedServer
from shells import loaded_shell, run_cell, scripted_shell

from ipyrefine.api import build, refine
from ipyrefine.core.events import Event
from ipyrefine.core.model import Limits
from ipyrefine.errors import RefineError
from ipyrefine.providers import servers
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.html import View, panel_parts
from ipyrefine.render.terminal import record_text
from ipyrefine.session.record import bundle

KEY = "sk-planted-5ecret-key"
USER, PASSWORD = "planted-user", "planted-pa55word"
ENCODED_WHOLE = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
ENCODED = ENCODED_WHOLE[:16]
SECRETS = (KEY, PASSWORD, ENCODED)
CELL = (
    "%%refine -p prose --target 0.8 --critique always --set as=task -n 1 --plain\nWrite a greeting."
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setattr(servers, "BY_SERVER", {})
    with ScriptedServer() as running:
        Trial(running, "none", Answer())
        yield running


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that any logger says, at its most talkative."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG)  # not by its attribute: each logger remembers what it lets through
    root.addHandler(handler)
    yield said
    root.removeHandler(handler)
    root.setLevel(level)


def with_login(url: str) -> str:
    return url.replace("http://", f"http://{USER}:{PASSWORD}@")


def clean(*texts: Any) -> None:
    for text in texts:
        shown = text if isinstance(text, str) else repr(text)
        assert not [secret for secret in SECRETS if secret in shown]


@pytest.mark.parametrize("way", ["environment", "callable", "argument", "address"])
async def test_no_repr_record_or_log_of_a_run_holds_the_key(server, monkeypatch, logged, way):
    url = with_login(server.base_url) if way == "address" else server.base_url
    if way == "environment":
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    options = {"callable": {"api_key": lambda: KEY}, "argument": {"api_key": KEY}}.get(way, {})
    refinement = build("Write a greeting.", model="m", base_url=url, **options)
    events: list[Event] = []
    await refinement.run(lambda event, run: events.append(event))
    sent = server.requests[0].headers["authorization"]
    assert sent.startswith(f"Basic {ENCODED}" if way == "address" else f"Bearer {KEY}")
    clean(refinement.model, refinement, refinement.state, events, str(server.bodies))
    clean(refinement.state.model_dump_json(), *(event.model_dump_json() for event in events))
    clean(json.dumps(bundle(refinement.state)), logged.getvalue())
    assert "127.0.0.1" in logged.getvalue()  # the loggers did speak
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(refinement.model)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, None])
@pytest.mark.parametrize("way", ["argument", "address"])
async def test_no_error_holds_the_key_though_the_server_repeats_it(server, logged, way, status):
    login = f" of {USER}:{PASSWORD} ({ENCODED_WHOLE})" if way == "address" else ""
    echo = {"error": {"message": f"bad key {KEY}{login}"}}
    headers = {"x-should-retry": "false"}
    server.default = lambda _: Failure(status, echo, headers) if status else Answer(drop_after=1)
    url = with_login(server.base_url) if way == "address" else server.base_url
    with pytest.raises(RefineError) as caught:
        await refine("Write.", model="m", base_url=url, api_key=KEY)
    error = caught.value
    clean(str(error), error, *error._render_traceback_(), error.run, logged.getvalue())
    clean("".join(traceback.format_exception(error)))
    assert error.__cause__ is None


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, server: ScriptedServer) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("IPYREFINE_MODEL", "m")
    return loaded_shell(monkeypatch)


async def test_traits_namespace_and_output_of_a_cell_hold_no_key(shell, server, logged, capsys):
    result = await shell.run_cell_async(CELL, transformed_cell=shell.transform_cell(CELL))
    shell.run_line_magic("config", "Refine")
    assert result.error_in_exec is None
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    magics = shell.magics_manager.registry["Refine"]
    clean(str(magics.trait_values()), str(magics.trait_defaults()), str(magics.config))
    ours = {name: value for name, value in shell.user_ns.items() if name.startswith("refined")}
    clean(ours, *capsys.readouterr(), logged.getvalue(), vars(magics.latest))
    assert [name for name in magics.trait_names() if "key" in name] == ["api_key_env"]


def test_a_password_in_the_cell_is_masked_for_the_model_and_is_in_the_text(monkeypatch, capsys):
    asked: list[str] = []

    def answer(request: Any) -> str:
        asked.append("\n".join(message.content for message in request.messages))
        masked = re.search(r"mysql://\S+@db/shop", asked[-1])
        assert masked
        return f"engine = create_engine('{masked[0]}')"

    cell = "%%refine -p prose --set as=task --critique never -n 0 --plain\nWrite a line for "
    shell = scripted_shell(monkeypatch, [answer])
    run_cell(shell, f"{cell}mysql://etl:{PASSWORD}@db/shop.")
    assert PASSWORD in shell.user_ns["refined"]
    assert "1 secret masked" in capsys.readouterr().out
    clean(*asked)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("![](http://h/?MASKED_SECRET_1)", ["New addresses in it: h.", "Left masked: MASKED_SECR"]),
        ("urlopen('http://h/')", ["New addresses in it: h."]),
        ("Dear https://a.example/x", []),
    ],
)
def test_new_addresses_and_masks_that_stayed_are_told(monkeypatch, capsys, reply, told):
    cell = (
        "%%refine -p prose --set as=task --critique never -n 0 --plain\nWrite to https://a.example"
    )
    shell = scripted_shell(monkeypatch, [reply])
    run_cell(shell, f"{cell}: the password is {PASSWORD}.")
    run = shell.user_ns["refined_run"]
    assert run.text == reply
    for shown in (capsys.readouterr().out, record_text(run), panel_parts(run, View())["notices"]):
        assert re.findall(r"New addresses in it: h\.|Left masked: MASKED_SECR", shown) == told


@pytest.mark.parametrize(
    ("find", "replace", "line"),
    [
        ("x = 1", "x = 2", f'password = "{PASSWORD}"'),
        ("password = ", "f('http://h/?' + ", "f('http://h/?' + \"MASKED_SECRET_1\""),
        ('"MASKED_SECRET_1"', 'f("http://h/?MASKED_SECRET_1")',
         'password = f("http://h/?MASKED_SECRET_1")'),
    ],
    ids=["beside it", "around it, without its mask", "of its mask"],
)  # fmt: skip
async def test_an_edit_keeps_a_secret_only_where_it_stood(find, replace, line):
    finding = {"criterion": "clarity", "place": "x = 1", "problem": "It is 1.", "blocks": True}
    critique = json.dumps({"findings": [finding], "ready": False, "because": "It is 1."})
    edits = f"f1: done\n<find>{find}</find>\n<replace>{replace}</replace>"
    run = await build(
        "Improve it.",
        model=ScriptedModel([critique, edits, critique]),
        draft=f'password = "{PASSWORD}"\nx = 1',
        profile="code",
        limits=Limits(max_revisions=1, critique="always"),
    ).run()
    assert run.iterations[1].text.startswith(f"{line}\nx = ")


WRAPPED = """
import ipyrefine
try:
    await ipyrefine.{call}
except ipyrefine.RefineError as error:
    raise RuntimeError("mine") from error
"""


@pytest.mark.parametrize("fault", ["status", "client", "key"])
@pytest.mark.parametrize(
    "cell",
    [
        CELL,
        WRAPPED.format(call="refine('Write.')"),
        WRAPPED.format(call="refine('Write.', api_key=keyring())"),
        WRAPPED.format(call="refine_many(['Write.'], api_key=keyring(), patience=-1)"),
        WRAPPED.format(call="refine('Write.', api_key=keyring(), frobnicate=1)"),
    ],
    ids=["magic", "environment", "argument", "batch", "option"],
)
async def test_a_verbose_traceback_shows_no_key(shell, server, monkeypatch, capsys, fault, cell):
    shell.user_ns["keyring"] = lambda: KEY
    if fault == "status":
        server.default = lambda _: Failure(400, {"error": {"message": f"bad key {KEY}"}})
    elif fault == "client":
        monkeypatch.setattr("httpx2.AsyncHTTPTransport.handle_async_request", _break)
    else:
        monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}-ü")
        shell.user_ns["keyring"] = lambda: f"{KEY}-ü"
    shell.run_line_magic("xmode", "Verbose")
    result = await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))
    assert result.error_in_exec is not None
    shown = re.sub(r"\x1b\[[0-9;]*m", "", "".join(capsys.readouterr()))
    assert cell == CELL or "RuntimeError: mine" in shown
    clean(shown)


async def _break(*_: Any) -> None:
    raise RecursionError
