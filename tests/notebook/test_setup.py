"""The form that sets up a model: what it asks of a server, what it says, and what it keeps."""

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from kernel import Kernel, until
from openai_server import Answer, Failure, ScriptedServer
from shells import loaded_shell

from ipyrefine.notebook import setup
from ipyrefine.notebook.magic import Refine
from ipyrefine.notebook.setup import Form
from ipyrefine.providers import keys, weights

SECRET = "sk-the-secret-itself"


def reply(body: dict[str, Any]) -> str:
    if "one word: OK" in body["messages"][-1]["content"]:
        return "OK"
    return "```python\ndef inc(n):\n    return n + 1\n```"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    monkeypatch.setattr(keys, "_memory", {})
    monkeypatch.setitem(sys.modules, "keyring", None)
    with ScriptedServer(reply) as running:
        running.models = ["small", "large"]
        yield running


@pytest.fixture
def magics(monkeypatch: pytest.MonkeyPatch) -> Refine:
    found: Refine = loaded_shell(monkeypatch).magics_manager.registry["Refine"]
    return found


class Page:
    """A page with the form, which sends what is pressed and keeps what it is sent."""

    def __init__(self, magics: Any, **more: Any) -> None:
        self.sent: list[Any] = []
        self.ended: list[str] = []
        self.kept: list[Any] = []
        widget: Any = SimpleNamespace(
            send=self.sent.append, on_msg=lambda _: None, close=lambda: None
        )
        widget.layout = widget
        self.form = Form(magics, widget=widget, on_end=self.ended.append, **more)
        self.form.panel._take({"action": "hello"})

    async def press(self, step: str, **fields: str) -> str:
        """Press a button, wait for its end and return what the form says then."""
        self.form.panel._take({"action": "setup", "fields": {"step": step, **fields}})
        work = self.setup._work
        await asyncio.wait([work])
        assert not work.exception()
        if keeping := getattr(self.setup, "_keeping", None):
            await asyncio.wait([keeping])
        return self.setup.note

    @property
    def setup(self) -> Any:
        return self.form


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What JupyterLab was asked to keep."""
    found: list[Any] = []

    async def keep(values: Any) -> bool:
        found.append(dict(values))
        return True

    monkeypatch.setattr(setup, "keep_settings", keep)
    return found


async def test_a_server_is_listed_tested_and_used(magics, server, kept):
    page = Page(magics)
    fields = {"url": server.base_url, "key": f" {SECRET} \n"}
    assert await page.press("models", **fields) == "2 models. Choose one."
    assert page.setup.names == ["large", "small"]
    said = await page.press("test", **fields, model="small")
    assert re.fullmatch(r"small answered “OK” in \d+\.\d s\.", said)
    assert keys.find_key(server.base_url) == ""  # nothing is kept by a test
    await page.press("use", **fields, model="small")
    assert len(server.requests) == 1  # what was tested is not tested again
    assert {seen.headers["authorization"] for seen in (*server.requests, *server.listed)} == {
        f"Bearer {SECRET}"
    }
    assert (magics.model, magics.base_url) == ("small", server.base_url)
    assert keys.find_key(server.base_url) == SECRET
    assert page.ended == ["small is set up."]
    assert kept == [{"model": "small", "server": server.base_url, "critic": ""}]
    assert SECRET not in str([page.sent, kept, magics.trait_values(), vars(page.setup)])


@pytest.mark.parametrize(
    ("models", "said"),
    [
        (Failure(401, {"error": {"message": f"{SECRET} is wrong"}}), "doesn't accept the key."),
        (Failure(403, {"error": {"message": f"{SECRET} may not"}}), "doesn't allow this key"),
        (Failure(404, "<html>no such page</html>"), "lists no models. Type the model's"),
        (Failure(200, "<html>hello</html>"), "doesn't answer in the chat completions protocol."),
        (Failure(200, {"data": None}), "lists no models."),
        (Failure(302, "", {"Location": "https://elsewhere.example/v1"}), "redirects to another"),
        (Failure(500, f"{SECRET} broke it"), "failed (HTTP 500)"),
        ([], "lists no models."),
        ([f"m{n}" for n in range(5_000)], "5,000 models. Choose one."),
        (["only"], "It has one model, only."),
    ],
)
async def test_each_answer_to_the_list_of_models_is_one_sentence(magics, server, models, said):
    server.models = models
    page = Page(magics)
    shown = await page.press("models", url=server.base_url, key=SECRET)
    assert said in shown
    assert SECRET not in str(page.sent)
    assert len(re.findall(r"[.?] ", f"{shown} ")) <= 3
    assert page.setup.model == ("only" if models == ["only"] else "")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": "api.openai.com/v1"}, "The base URL is not an address. Write it as http://"),
        ({"url": "http://host:port/v1"}, "The base URL is not an address."),
        ({"url": "https://me:pass@host.example/v1"}, "Leave user and password out of the address"),
        ({"url": "https://host.example/v1?key=abc"}, "goes on after its path"),
        ({"key": "two words"}, "The key holds spaces or characters that no key has."),
        ({"key": "sk-abc\ndef"}, "The key holds spaces or characters that no key has."),
        ({"key": "sk-“quoted”"}, "The key holds spaces or characters that no key has."),
        ({"model": SECRET}, "The model's name looks like a key."),
        ({"url": "", "model": "m", "key": ""}, "https://api.openai.com/v1 needs a key."),
    ],
)
async def test_what_stands_in_the_wrong_place_is_told_before_anything_is_asked(
    magics, server, fields, said
):
    page = Page(magics)
    shown = await page.press("use", **{"url": server.base_url, "model": "m", **fields})
    assert said in shown
    assert "pass@" not in shown
    assert [*server.requests, *server.listed] == []
    assert (magics.model, page.ended) == ("", [])


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (Failure(401, {"error": {"message": SECRET}}), "doesn't accept the key. Paste another"),
        (Failure(404, {"error": {"message": "no model"}}), "doesn't know the model 'm'"),
        (Failure(429, {"error": {"message": "slow down"}}), "accepts no more requests for now"),
        (Answer(raw=b"<html>hi</html>", content_type="text/html"), "chat completions protocol"),
    ],
)
async def test_a_test_that_fails_says_why_and_sets_nothing_up(magics, server, failure, said):
    server.default = lambda _: failure
    page = Page(magics)
    for step in ("test", "use"):
        shown = await page.press(step, url=server.base_url, model="m", key=SECRET)
        assert said in shown
    assert SECRET not in str(page.sent)
    assert (magics.model, keys.find_key(server.base_url), page.ended) == ("", "", [])


async def test_a_server_that_repeats_the_key_does_not_have_it_shown(magics, server):
    server.default = lambda _: Answer(f"Your key is {SECRET}")
    page = Page(magics)
    assert "“Your key is …”" in await page.press(
        "test", url=server.base_url, model="m", key=f"Bearer {SECRET}"
    )
    assert SECRET not in str(page.sent)


async def test_the_kept_key_is_used_where_none_is_typed_and_goes_nowhere_else(magics, server, kept):
    keys.keep_key(server.base_url, keys.Key(SECRET))
    await Page(magics).press("test", url=server.base_url, model="m")
    assert server.requests[-1].headers["authorization"] == f"Bearer {SECRET}"
    with ScriptedServer(reply) as other:
        await Page(magics).press("test", url=other.base_url, model="m")
        assert SECRET not in str(other.requests)


async def test_a_new_server_loses_the_old_ones_variable_and_critic(
    magics, server, kept, monkeypatch
):
    monkeypatch.setenv("OLD_KEY", "sk-of-the-old-server")
    magics.base_url, magics.api_key_env, magics.judge = "https://old.example/v1", "OLD_KEY", "old"
    await Page(magics).press("use", url=server.base_url, model="m")
    assert (magics.api_key_env, magics.judge) == ("", "")
    assert "sk-of-the-old-server" not in str(server.requests)


async def test_the_environments_server_keeps_what_the_form_does_not_show(
    magics, server, kept, monkeypatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url.replace("//", "//me:pass-word@"))
    page = Page(magics)
    assert page.setup.url == server.base_url
    await page.press("use", url=server.base_url, model="m")
    assert server.requests[-1].headers["authorization"].startswith("Basic ")
    assert (magics.base_url, kept[0]["server"]) == ("", "")
    assert "pass-word" not in str([page.sent, kept])


@pytest.mark.parametrize(("installed", "said"), [(False, "needs a package"), (True, "set up")])
async def test_the_local_model_is_used_or_says_what_it_needs(
    magics, kept, monkeypatch, tmp_path, installed, said
):
    monkeypatch.setattr(setup, "find_spec", lambda _: object() if installed else None)
    monkeypatch.setattr(weights, "find", lambda _: tmp_path)
    monkeypatch.setenv("IPYREFINE_MODEL_DIR", str(tmp_path))
    page = Page(magics)
    assert page.setup.size == "1.1 GB"
    (tmp_path / weights.WEIGHTS[weights.DEFAULT].file).touch()
    assert page.setup.size == ""
    note = await page.press("local")
    assert said in (note or page.ended[0])
    assert magics.model == (weights.DEFAULT if installed else "")


async def test_weights_that_cannot_be_fetched_are_one_sentence(magics, monkeypatch, tmp_path):
    monkeypatch.setattr(setup, "find_spec", lambda _: object())
    monkeypatch.setenv("IPYREFINE_MODEL_DIR", str(tmp_path / "file"))
    (tmp_path / "file").write_text("in the way")
    note = await Page(magics).press("local")
    assert note.startswith("The model could not be fetched. ")
    assert "Traceback" not in note


# The settings of JupyterLab


def settings(**more: Any) -> dict[str, Any]:
    names = ("model", "critic", "server", "share", "context", "revisions")
    return {**dict.fromkeys(names), "context": 3, **more}


def test_settings_are_defaults_and_what_was_configured_here_wins(magics):
    magics.model = "mine"
    magics.take_settings(settings(model="theirs", critic="c", share="all", revisions=2))
    assert (magics.model, magics.judge, magics.share) == ("mine", "c", "all")
    assert magics.set == {"max_revisions": 2}
    magics.take_settings(settings(context=0, server="http://h/v1"))
    assert (magics.model, magics.judge, magics.share) == ("mine", "", None)
    assert (magics.set, magics.context, magics.base_url) == ({}, 0, "http://h/v1")
    magics.judge, magics.set = "my own", {"max_revisions": 5, "timeout": 9}
    magics.take_settings(settings(critic="c", revisions=1))
    assert (magics.judge, magics.set) == ("my own", {"max_revisions": 5, "timeout": 9})


def test_a_setting_that_cannot_be_used_is_left_and_an_unknown_one_too(magics):
    magics.take_settings(settings(share="everything", context="many", revisions=-3, api_key="x"))
    assert (magics.share, magics.context, magics.set) == (None, 3, {})
    magics.take_settings(settings(model="good"))
    assert magics.model == "good"
    magics.api_key_env = "WORK_KEY"  # a key that a variable holds for another server
    magics.take_settings(settings(server="http://elsewhere.example/v1"))
    assert magics.base_url == ""


async def test_what_the_form_set_up_outlives_older_settings_and_follows_newer_ones(
    magics, server, kept
):
    magics.take_settings(settings())
    await Page(magics).press("use", url=server.base_url, model="m")
    magics.take_settings(settings())  # the page has not kept it yet
    assert (magics.model, magics.base_url) == ("m", server.base_url)
    magics.take_settings(settings(model="m", server=server.base_url))
    magics.take_settings(settings(model="newer", server=server.base_url))
    assert magics.model == "newer"


# In a kernel

LATEST = "get_ipython().magics_manager.registry['Refine'].latest"
PRESS = """import gc, asyncio
from ipyrefine.notebook.panel import Panel
panel = [one for one in gc.get_objects() if type(one) is Panel and not one._closed][-1]
panel._take({{"action": "setup", "fields": {}}})
await asyncio.sleep(0.2)
"""


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., Kernel]]:
    with ExitStack() as kernels:

        def started(**env: str) -> Kernel:
            kernel = kernels.enter_context(Kernel({"IPYREFINE_MODEL_DIR": str(tmp_path), **env}))
            kernel.run("%load_ext ipyrefine\n%config Refine.ui = 'widgets'")
            return kernel

        yield started


def wait_for_text(kernel: Kernel) -> None:
    run = f"{LATEST}.session.run"
    until(
        lambda: kernel.value(f"bool({LATEST} and {run}.stop_reason and {run}.iterations)") == "True"
    )


def test_a_key_that_is_refused_opens_the_form_and_the_run_goes_on_with_another(start, server):
    server.then(Failure(401, {"error": {"message": "bad"}}))
    kernel = start(OPENAI_BASE_URL=server.base_url, IPYREFINE_MODEL="m", OPENAI_API_KEY="sk-wrong")
    assert kernel.run("%%refine --critique never\nWrite inc(n).")["status"] == "ok"
    assert "Use it and try again" in kernel.value(f"{LATEST}.panel._render()['form']")
    fields = {"step": "use", "url": server.base_url, "key": SECRET, "model": "small"}
    kernel.run(PRESS.format(json.dumps(fields)))
    wait_for_text(kernel)
    assert "def inc(n)" in kernel.value("refined")
    assert kernel.value(f"{LATEST}.panel._render()['form']") == "''"
    assert server.requests[-1].headers["authorization"] == f"Bearer {SECRET}"
