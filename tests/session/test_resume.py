"""Runs outlive their kernel: the journal behind `%%refine`, and the commands that use it."""

import asyncio
import json
from typing import Any

import nbformat
import pytest
from kit import finished, text
from kit import judgement as judged
from openai_server import Answer, Failure, ScriptedServer
from shells import error_of, new_shell

from ipyrefine import api
from ipyrefine.core.model import Limits
from ipyrefine.errors import JournalError, RefineError, Unreachable, UsageError
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import default_path
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.record import bundle

OPTIONS = "-p prose --criteria tone --min-findings 0 -n 2"
GONE = Unreachable("gone")


class Shell:
    """A shell whose models give the replies that the last cell was run with.

    A later kernel on the same journal takes its place.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.replies: list[Any] = []
        self.model = ScriptedModel(self.replies)
        monkeypatch.setattr(api, "choose_model", self._choose)
        self.restart()

    def _choose(self, *_: Any, **__: Any) -> ScriptedModel:
        self.model = ScriptedModel(self.replies)
        return self.model

    def restart(self) -> None:
        self.shell = new_shell()
        self.names = self.shell.user_ns

    def run(self, cell: str, *replies: Any) -> BaseException | None:
        """Run a cell and return its error."""
        self.replies[:] = replies
        return error_of(self.shell, cell)

    def refine(self, *replies: Any, options: str = "") -> BaseException | None:
        return self.run(f"%%refine {OPTIONS} {options}\nWrite a greeting.", *replies)


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    return Shell(monkeypatch)


def test_a_new_kernel_continues_where_the_old_one_stopped(book):
    book.refine(text("Hello"), GONE, options="--set name=hi -o greeting")
    book.restart()
    assert book.run("%refine resume hi", judged(4), text("Hello there"), judged(10)) is None
    assert book.names["greeting"] == "Hello there"
    assert book.names["refined_run"].stop_reason == "passed"
    assert [one.name for one in Journal().runs()] == ["hi"]
    assert Journal().get("hi").run == book.names["refined_run"]


def test_a_run_that_is_not_over_is_not_resumed_a_second_time(book):
    book.refine(text("Hello"), GONE)
    session = book.shell.magics_manager.registry["Refine"].latest.session
    book.replies[:] = [lambda _: judged(10) + " " * 10_000]  # many pieces, a while to come

    async def both() -> Any:
        session.start()
        await asyncio.sleep(0)
        cell = "%refine resume"
        line = book.shell.transform_cell(cell)
        result = await book.shell.run_cell_async(cell, transformed_cell=line)
        session.stop()
        await session.go()
        return result.error_in_exec

    error = asyncio.run(both())
    assert isinstance(error, UsageError)
    assert "not over" in str(error)


def test_a_check_of_the_notebook_has_to_be_there_and_named_again(book):
    book.names["polite"] = lambda text: True
    book.refine(GONE, options="-c polite")
    book.restart()
    assert "no check 'polite'" in str(book.run("%refine resume --check polite"))
    book.names["polite"] = lambda text: True
    assert str(book.run("%refine resume")).endswith("To resume, add --check polite.")
    book.run("%refine resume --check polite", text("Hello"), judged(10))
    assert book.names["refined"] == "Hello"
    assert [one.name for one in book.names["refined_run"].chosen.evidence] == ["<lambda>"]


def test_history_lists_finds_and_forgets(book, capsys):
    def output(command: str) -> str:
        capsys.readouterr()
        book.run(f"%refine {command}")
        return capsys.readouterr().out

    book.refine(text("Hello"), judged(10), options="--set name=first")
    book.refine(text("Hello"), GONE, options="--set name=second")
    second, its_task, first, task = output("history greeting").split("\n")[1:5]
    assert second.startswith("2    20")
    assert second.split()[3:] == ["an", "error", "1"]
    assert "  second · Write" in its_task
    assert "○ NOTHING FOUND" in first
    assert "  first · Write" in task
    assert "second" not in output("history first")
    assert "1 run erased" in output("forget first")
    output("forget --all")
    assert "journal is empty" in output("history")


@pytest.mark.parametrize(("setting", "option"), [("", "--set journal=no"), ("off", "")])
def test_a_run_can_be_kept_out_of_the_journal(book, setting, option, monkeypatch):
    monkeypatch.setenv("IPYREFINE_JOURNAL", setting)
    book.refine(text("Hello"), judged(10), options=option)
    assert book.names["refined"] == "Hello"
    assert not default_path().exists()


def test_a_journal_that_cannot_be_opened_stops_before_anything_is_paid(book):
    default_path().mkdir(parents=True)
    error = book.refine(text("Hello"), judged(10))
    assert isinstance(error, JournalError)
    assert "--set journal=no" in str(error)
    assert book.model.requests == []


async def test_refine_in_python_is_journalled_too_unless_told_otherwise():
    model = ScriptedModel([text("Hello"), judged(10)] * 2)
    options: dict[str, Any] = {"model": model, "profile": "prose", "criteria": ["tone"]}
    limits = Limits(critique="never")
    kept = await api.refine("Greet.", name="kept", limits=limits, **options)
    await api.refine("Greet.", journal=False, limits=limits, **options)
    assert [one.name for one in Journal().runs()] == ["kept"]
    assert Journal().get().run == kept


def test_a_run_in_a_notebook_from_another_machine_is_resumed_here(book, tmp_path):
    stopped = asyncio.run(finished("Greet me.", scores=(4,)))
    other = asyncio.run(finished("Something else.", scores=(10,)))
    v4: Any = nbformat.v4
    outputs = [v4.new_output("display_data", data=bundle(one)) for one in (stopped, other)]
    cells = [v4.new_code_cell("%%refine\nx", outputs=[one]) for one in outputs]
    path = tmp_path / "theirs.ipynb"
    nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell("Hello"), *cells]), path)
    replies = [text("Hello there"), judged(10)]
    assert book.run(f"%refine resume {path} 0", *replies) is None
    book.run("%refine continue 1 warmer", *replies)
    assert book.names["refined"] == "Hello there"
    resumed = book.names["refined_run"]
    book.restart()
    assert book.run("%refine resume greet-me") is None
    assert book.names["refined_run"].iterations == resumed.iterations
    assert isinstance(book.run(f"%refine resume {path} 2"), UsageError)


def test_no_key_is_in_the_journal(monkeypatch, tmp_path):
    """Not from the environment, an address, or a server that repeats it."""
    key, password = "sk-planted-7431", "hunter2-planted"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    shell = new_shell()
    with ScriptedServer() as server:
        echoed = {"error": {"message": f"Incorrect API key provided: {key}"}}
        server.then(Answer(text("Hello")), Failure(401, echoed))
        address = server.base_url.replace("http://", f"http://user:{password}@")
        error = error_of(shell, f"%%refine {OPTIONS} -m scripted --base-url {address}\nGreet.")
        assert isinstance(error, RefineError)
        assert server.requests
    error_of(shell, f"%refine export {tmp_path / 'run.json'}")
    shell.clear_instance()
    files = [*default_path().parent.iterdir(), *tmp_path.iterdir()]
    assert len(files) >= 2
    for file in files:
        assert key.encode() not in file.read_bytes()
        assert password.encode() not in file.read_bytes()
    assert json.loads((tmp_path / "run.json").read_text())["iterations"]
