"""The form that sets up a model: a look without one, the embedded one, or a server with its key.

It is part of a run's panel, stands alone in the output of a cell that found no model, or in a line
of the page that opened a comm for it. A key goes into the system's keyring or stays in this process
(`providers.keys`); no message to the page holds one.
"""

import asyncio
import contextvars
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from ipyrefine.core.actions import Fields
from ipyrefine.core.model import one_line
from ipyrefine.core.ports import Message, Reply, Request
from ipyrefine.errors import (
    AccessDenied,
    ModelError,
    NoModel,
    NoModelYet,
    RefineError,
    UsageError,
    WeightsError,
)
from ipyrefine.kernel.redaction import has_known_form
from ipyrefine.notebook.cell_target import keep_settings, source_cell_id
from ipyrefine.notebook.panel import Host, Panel, page_code
from ipyrefine.notebook.waiting import Placeholder, running_loop
from ipyrefine.providers import weights
from ipyrefine.providers.choose import NO_MODEL, is_recording
from ipyrefine.providers.faults import LEAST_SECRET, safe_url
from ipyrefine.providers.keys import find_key, has_keyring, keep_key
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.servers import Key
from ipyrefine.render.formatting import sentence_html

_OPENAI = "https://api.openai.com/v1"
_SECONDS = 30.0  # of silence after which a test ends
_WORDS = 40  # characters of a test's reply that are shown
_NO_LIST = (404, 405, 501)  # what servers answer that list no models


class Setup(Host):
    """The form's state, as its template reads it, and what its buttons do.

    Args:
        magics: the configured magics.
        changed: has the form drawn anew.
        finish: goes on once the form is done (``use``), left (``close``), or a look is wanted.
        looks: whether the user can look at a cell instead.
        word: the button's that sets up.
        why: why the form is shown.
        url: the server that its field names first; the configured one by default.
        model: the same of the model.

    Attributes:
        closed: whether it is over.
    """

    def __init__(
        self,
        magics: Any,
        *,
        changed: Callable[[], None],
        finish: Callable[[Literal["look", "use", "close"]], Awaitable[None] | None],
        looks: bool = False,
        word: str = "Use it",
        why: str = "",
        url: str = "",
        model: str = "",
    ) -> None:
        self._magics, self._changed, self._finish = magics, changed, finish
        self.looks, self.word, self.why = looks, word, why
        self.id, self.stamp = uuid.uuid4().hex, 0
        environment = os.environ.get("OPENAI_BASE_URL") or ""
        # By what the form shows of them: they may hold a password.
        self._addresses = {_shown(one): one for one in (magics.base_url, environment) if one}
        self._fill(url or magics.base_url or environment, model or magics.model)
        magics.forms.add(self)
        self.names: list[str] = []
        self.note, self.kind = "", "quiet"
        self.closed = self.in_keyring = self.has_key = False
        self._key, self._tested = Key(), ""  # what was entered when it last worked
        self._work: asyncio.Future[str] | None = None
        if running_loop():  # else nobody would wait for it
            self._looking = asyncio.ensure_future(self._look_for_key())

    def _fill(self, url: str, model: str) -> None:
        """Put a server and a model into the fields, whatever they hold."""
        model = model or os.environ.get("IPYREFINE_MODEL", "")
        other = model in weights.WEIGHTS or is_recording(model)
        self.url, self.model = _shown(url) or _OPENAI, "" if other else model
        self.stamp += 1

    @property
    def size(self) -> str:
        """How much the embedded model has still to fetch; empty for nothing."""
        if _weights_file().is_file():
            return ""
        return f"{weights.WEIGHTS[weights.DEFAULT].size / 1e9:.1f} GB"

    def offers(self, form: str) -> dict[str, Any]:
        """Return the form as a field of the panel's view."""
        return {"setup": self}

    def act(self, action: str, fields: Fields) -> str | Awaitable[str | None]:
        """Do what one of the buttons says; another one ends it."""
        if action != "setup":
            return ""
        step = str(fields.get("step", ""))
        url, self.model = (one_line(str(fields.get(name, ""))) for name in ("url", "model"))
        self.url, self._key = url.rstrip("/") or _OPENAI, Key(str(fields.get("key", "")))
        if self._work:
            self._work.cancel()
        self._work = asyncio.ensure_future(self._do(step))
        return self._work

    async def _do(self, step: str) -> str:
        steps = {"models": self._list, "test": self._test, "use": self._use}
        try:
            match step:
                case "look" | "close":
                    await self._end(step)
                case "local":
                    if find_spec("xllamacpp") is None:
                        raise NoModel(
                            'The local model needs a package. Run %pip install "ipyrefine[local]", '
                            "then press the button again."
                        )
                    if self.size:
                        await self._pull()
                    await asyncio.to_thread(weights.find, weights.DEFAULT)  # or it is damaged
                    await self._set(weights.DEFAULT, "")
                case _ if step in steps:
                    self._check()
                    await steps[step]()
        except RefineError as error:
            said = str(error)
            if isinstance(error, AccessDenied) and error.status in (0, 401):
                said = f"{self.url} needs a key. Paste it into the form."
                if self._key() or self.has_key:
                    said = f"{self.url} doesn't accept the key. Paste another one."
            self._say(said, "bad")
        return ""

    def _say(self, note: str, kind: str = "quiet") -> None:
        self.note, self.kind = note, kind
        self._changed()

    async def _look_for_key(self) -> None:
        """Learn whether there is a keyring, and a key of the server in it."""
        url = self.url
        self.in_keyring = await asyncio.to_thread(has_keyring)
        self.has_key = bool(await asyncio.to_thread(find_key, url))
        self._changed()

    async def _end(self, how: Literal["look", "use", "close"]) -> None:
        if waits := self._finish(how):
            await waits
        self.closed = True
        self._magics.forms.discard(self)

    # The embedded model

    async def _pull(self) -> None:
        """Fetch the weights in a process of its own, which ends with this task."""
        file, total = _weights_file(), weights.WEIGHTS[weights.DEFAULT].size
        folder = file.with_name(f"{file.name}.download")
        command = [sys.executable, "-P", "-m", "ipyrefine", "pull", weights.DEFAULT]
        start = partial(subprocess.Popen, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        with tempfile.TemporaryFile() as said:
            process = start(command, stdout=said)
            try:
                while process.poll() is None:
                    with suppress(OSError):  # a file that was there a moment ago
                        fetched = sum(one.stat().st_size for one in folder.rglob("*"))
                        percent = min(99, 100 * fetched // total)
                        self._say(f"Fetching the model: {percent} % of {self.size}.")
                    await asyncio.sleep(1)
            finally:
                if process.poll() is None:
                    process.terminate()
            said.seek(0)
            lines = said.read().decode("utf-8", "replace").strip().splitlines()
        if process.returncode:
            last = (lines or ["no reason was given"])[-1].rpartition("\r")[2]
            raise WeightsError(f"The model could not be fetched. {last[:400]}")

    # A server

    def _check(self) -> None:
        """Refuse what stands in a field where it does not belong; take a key as it is sent."""
        if "@" in self.url:
            raise UsageError("Leave user and password out of the address: it is shown and kept.")
        if has_known_form(self.model):
            raise UsageError("The model's name looks like a key. Put the key into its own field.")
        self._key = Key(self._key().removeprefix("Bearer ").strip())
        if re.search(r"[^!-~]", self._key()):
            raise UsageError("The key holds spaces or characters that no key has. Paste it again.")

    def _connect(self) -> OpenAIModel:
        address = self._addresses.get(self.url, self.url)
        configured = self._magics.api_key_env if address == self._magics.base_url else ""
        return OpenAIModel(
            self.model,
            base_url=address,
            api_key=self._key if self._key() else lambda: os.environ.get(configured, ""),
            timeout=_SECONDS,
            max_retries=0,
        )

    async def _list(self) -> None:
        server, typed, self.names = self._connect(), self.model.lower(), []
        self._say(f"Asking {server.base_url} for its models…")
        try:
            self.names = await server.list_models()
        except ModelError as error:
            if error.status not in _NO_LIST:
                raise
        match self.names:
            case []:
                self._say(f"{server.base_url} lists no models. Type the model's name.")
            case [name]:
                self._fill(self.url, name)
                self._say(f"It has one model, {name}.")
            case names:
                if not any(typed in name.lower() for name in names):
                    self._fill(self.url, "")  # the page would offer none of them
                self._say(f"{len(names):,} models. Choose one.")

    async def _test(self) -> None:
        if not self.model:
            await self._list()
        if not self.model:
            return
        server, start = self._connect(), time.monotonic()
        self._say(f"Asking {self.model}…")
        question = Message(role="user", content="Answer with one word: OK")
        words = ""
        async for item in server.stream(Request(messages=(question,), max_tokens=64)):
            if isinstance(item, Reply):
                words = one_line(item.text)
        if len(self._key()) >= LEAST_SECRET:
            words = words.replace(self._key(), "…")
        said = f"“{words[:_WORDS]}”" if words else "without words"
        self._tested = self._entered
        self._say(f"{self.model} answered {said} in {time.monotonic() - start:.1f} s.", "good")

    @property
    def _entered(self) -> str:
        """What the fields hold, so that it can be compared and not be read."""
        entered = "\n".join((self.url, self.model, self._key()))
        return hashlib.sha256(entered.encode()).hexdigest()

    async def _use(self) -> None:
        if self._tested != self._entered:
            self._tested = ""
            await self._test()
        if not self._tested:  # it listed the models to choose from
            return
        if self._key():
            await asyncio.to_thread(keep_key, self._connect().base_url, self._key)
            self._magics.api_key_env = ""  # it would win
        await self._set(self.model, self.url)

    async def _set(self, model: str, url: str) -> None:
        """Have this kernel use a model, and JupyterLab remember it for later ones."""
        magics, address = self._magics, self._addresses.get(url, url)
        if address == os.environ.get("OPENAI_BASE_URL"):
            address = ""  # as it is by itself
        chosen = {"model": model, "server": address}
        if address != magics.base_url:
            chosen["critic"] = ""  # it was one of the other server's
            magics.api_key_env = ""
        magics.set_up(chosen)
        for form in magics.forms - {self}:
            form._fill(url, model)
            form._looking = asyncio.ensure_future(form._look_for_key())
        if address in ("", url):  # else it may hold a password
            self._keeping = asyncio.ensure_future(keep_settings(chosen))
        await self._end("use")


def _shown(address: str) -> str:
    try:
        return safe_url(address) if address else ""
    except ValueError:  # no address
        return ""


def _weights_file() -> Path:
    return weights.model_dir() / weights.WEIGHTS[weights.DEFAULT].file


# The form alone


class Form(Setup):
    """The form in a cell's output, or in a line of the page; the host of its panel.

    Args:
        magics: the configured magics.
        go_on: starts what waits for a model (with True: what shows a cell without one); None where
            nothing waits.
        widget: stands for a widget, where the page has none.
        on_end: is told what was done: that a model is set up; ``look``; or nothing.
        **more: as for `Setup`.
    """

    def __init__(
        self,
        magics: Any,
        go_on: Callable[[bool], Coroutine[Any, Any, None]] | None = None,
        *,
        widget: Any = None,
        on_end: Callable[[str], None] = lambda _: None,
        **more: Any,
    ) -> None:
        self._go_on, self._on_end = go_on, on_end
        self.panel = Panel(self, widget=widget)
        super().__init__(magics, changed=self.panel.draw, finish=self._go, **more)

    async def _go(self, how: str) -> None:
        if how != "close" and self._go_on:
            await self._go_on(how == "look")
        name = self._magics.model
        self._on_end({"use": f"{name} is set up.", "look": "look"}.get(how, ""))
        self.panel.close()


def show_form(
    magics: Any,
    placeholder: Placeholder,
    error: NoModel,
    go_on: Callable[[bool], Coroutine[Any, Any, None]],
) -> None:
    """Show the form in the output of the running cell.

    Below it stands what a page without a kernel shows: the error's sentence. What waits for a model
    is started as if by the same cell.

    Raises:
        NoModel: the error, where no form can be shown.
    """
    from IPython.display import display

    reason = str(error).rpartition("\n")[2]
    below, context = uuid.uuid4().hex, contextvars.copy_context()

    def say(text: str, panel: str = "", *, update: bool = True) -> None:
        words = f"<p>{sentence_html(text)}</p>"
        html = f'<div class="ipyrefine rf-record" data-panel="{panel}">{words}</div>'
        data = {"text/html": html if text else "", "text/plain": text}
        display(data, raw=True, display_id=below, update=update)

    async def start(look: bool) -> None:
        await asyncio.get_running_loop().create_task(go_on(look), context=context)

    def end(said: str) -> None:
        if said:  # the run's panel has taken its place
            say("")
        else:
            placeholder.clear()
            say(reason)

    try:
        form = Form(
            magics,
            start,
            on_end=end,
            looks=isinstance(error, NoModelYet),
            word="Use it and go on",
            why="" if reason == NO_MODEL else reason,
        )
    except ImportError:
        raise error from None
    magics.waiting[source_cell_id()] = form
    placeholder.fill(form.panel.widget)
    placeholder.before = form.panel.close
    say(reason, form.panel.id, update=False)


class _Channel:
    """Stands for a panel's widget on a comm that the page opened."""

    def __init__(self, comm: Any) -> None:
        self._comm, self.layout = comm, self

    def on_msg(self, take: Callable[[Any, Any, Any], None]) -> None:
        """Have messages of the page handled."""
        self._comm.on_msg(lambda message: take(self, message["content"]["data"], None))

    def send(self, message: Any) -> None:
        """Send a message to the page."""
        self._comm.send(message)

    def close(self) -> None:
        """Close the comm, after which the page takes the form away."""
        self._comm.close()


def open_form(magics: Any, channel: Any, message: Any) -> None:
    """Show the form to a page that opened a comm for it: first its code, then as a panel does.

    The last message says what was done: ``{said}``, which is ``look`` where the user wants that.
    """
    script, style = page_code()
    channel.send({"script": script, "style": style})
    form = Form(
        magics,
        widget=_Channel(channel),
        on_end=lambda said: channel.send({"said": said}),
        looks=bool(message["content"]["data"].get("looks")),
    )
    channel.on_close(lambda _: form.panel.close())
