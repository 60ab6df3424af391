"""Runs outlive their kernel: the journal behind `%%refine`, and the commands that use it."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kit import finished, text
from kit import greeting as refinement
from kit import judgement as judged
from openai_server import Answer, Failure, ScriptedServer
from shells import error_of, new_shell, scripted_shell

from ipyrefine import api
from ipyrefine.core.decisions import Continue, Guide
from ipyrefine.core.events import Event, VerdictReached
from ipyrefine.core.model import Limits
from ipyrefine.core.run import Run
from ipyrefine.errors import JournalError, RefineError, Unreachable, UsageError
from ipyrefine.journal import writer
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import Recorder, default_path
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.record import bundle
from ipyrefine.session.session import Session

OPTIONS = "-p prose --criteria tone --min-findings 0 -n 2"
GONE = Unreachable("gone")


@pytest.fixture
def replies() -> list[Any]:
    """What the model answers next, whichever shell asks."""
    return []


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, replies: list[Any]) -> Iterator[Any]:
    with scripted_shell(monkeypatch, replies) as shell:
        yield shell


def refined(shell: Any, replies: list[Any], *items: Any, options: str = "") -> Any:
    replies[:] = items
    return error_of(shell, f"%%refine {OPTIONS} {options}\nWrite a greeting.")


def test_a_new_kernel_continues_where_the_old_one_stopped(shell: Any, replies: list[Any]) -> None:
    refined(shell, replies, text("Hello"), GONE, options="--name hi -o greeting")
    later = new_shell()
    replies[:] = [judged(4), text("Hello there"), judged(10)]
    assert error_of(later, "%refine resume hi") is None
    assert later.user_ns["greeting"] == "Hello there"
    assert later.user_ns["refined_run"].stop_reason == "passed"
    assert [one.name for one in Journal().runs()] == ["hi"]
    assert Journal().get("hi").run == later.user_ns["refined_run"]


def test_a_run_that_is_not_over_is_not_resumed_a_second_time(
    shell: Any, replies: list[Any]
) -> None:
    refined(shell, replies, text("Hello"), GONE)
    session = shell.magics_manager.registry["Refine"].latest.session
    replies[:] = [lambda _: judged(10) + " " * 10_000]  # many pieces, a while to come

    async def both() -> Any:
        session.start()
        await asyncio.sleep(0)
        cell = "%refine resume"
        result = await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))
        session.stop()
        await session.go()
        return result.error_in_exec

    error = asyncio.run(both())
    assert isinstance(error, UsageError)
    assert "not over" in str(error)


def test_a_check_of_the_notebook_has_to_be_there_and_named_again(
    shell: Any, replies: list[Any]
) -> None:
    shell.user_ns["polite"] = lambda text: True
    refined(shell, replies, GONE, options="-c polite")
    later = new_shell()
    error = error_of(later, "%refine resume --check polite")
    assert isinstance(error, UsageError)
    assert "no check 'polite'" in str(error)
    later.user_ns["polite"] = lambda text: True
    replies[:] = [text("Hello"), judged(10)]
    assert str(error_of(later, "%refine resume")).endswith("To resume, add --check polite.")
    error_of(later, "%refine resume --check polite")
    assert later.user_ns["refined"] == "Hello"


@pytest.mark.parametrize(("words", "sentence"), [
    ("resume nobody", "no run 'nobody'"),
    ("resume -n 3", "--max-revisions was settled"),
    ("resume none.ipynb", "cannot be read"),
    ("export", "Name a file"),
    ("history --verdct pass", "no option --verdct. Did you mean --verdict?"),
])  # fmt: skip
def test_a_command_that_cannot_be_carried_out_says_why(
    shell: Any, replies: list[Any], words: str, sentence: str
) -> None:
    refined(shell, replies, text("Hello"), judged(10))
    error = error_of(shell, f"%refine {words}")
    assert isinstance(error, UsageError)
    assert sentence in str(error)


def test_history_lists_finds_and_forgets(
    shell: Any, replies: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def output(command: str) -> str:
        capsys.readouterr()
        error_of(shell, f"%refine {command}")
        return capsys.readouterr().out

    refined(shell, replies, text("Hello"), judged(10), options="--name first")
    refined(shell, replies, text("Hello"), GONE, options="--name second")
    second, its_task, first, task = output("history greeting").split("\n")[1:5]
    assert second.startswith("2    today ")
    assert second.split()[3:] == ["an", "error", "1"]
    assert "  second · Write" in its_task
    assert "○ NOTHING FOUND" in first
    assert "  first · Write" in task
    assert "There are more: -n 5 lists them." in output("history -n 1")
    assert "second" not in output("history --verdict pass")
    assert "1 run erased" in output("forget first")
    output("forget --all")
    assert "journal is empty" in output("history")


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_run_can_be_kept_out_of_the_journal(
    shell: Any, replies: list[Any], how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "environment":
        monkeypatch.setenv("IPYREFINE_JOURNAL", "off")
    option = "--no-journal" if how == "option" else ""
    refined(shell, replies, text("Hello"), judged(10), options=option)
    assert shell.user_ns["refined"] == "Hello"
    assert not default_path().exists()


def test_a_journal_that_cannot_be_opened_stops_before_anything_is_paid(
    shell: Any, replies: list[Any]
) -> None:
    default_path().parent.mkdir(parents=True)
    default_path().mkdir()
    error = refined(shell, replies, text("Hello"), judged(10))
    assert isinstance(error, JournalError)
    assert "--no-journal" in str(error)
    assert len(replies) == 2


async def test_a_full_disk_ends_the_run_with_its_best_text_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Continuing once there is room again writes what was missed."""
    opened, connect, full = list[sqlite3.Connection](), writer.connect, [False]

    def fill() -> None:
        if full[0]:
            pages = opened[-1].execute("PRAGMA page_count").fetchone()[0]
            opened[-1].execute(f"PRAGMA max_page_count = {pages}")

    def connect_to_full(path: Path, patience: float) -> sqlite3.Connection:
        opened.append(connect(path, patience))
        fill()
        return opened[-1]

    monkeypatch.setattr(writer, "connect", connect_to_full)
    displayed: list[tuple[Event, Run]] = []

    def display(event: Event, run: Run) -> None:
        displayed.append((event, run))
        if isinstance(event, VerdictReached) and not run.decisions:
            full[0] = True
            fill()
            session.decide(Guide(guidance="x" * 10_000))

    session = Session(refinement(), [display], Recorder(tmp_path / "runs.db"))
    await session.go()
    event, run = displayed[-1]
    assert event.type == "stopped"
    assert run.stop_reason == "failed"
    assert "full" in run.message
    assert "--no-journal" in run.message
    assert run.text == "Version 0"
    assert isinstance(session.refinement.error, JournalError)
    full[0] = False
    session.decide(Continue())
    await session.go()
    assert session.refinement.error is None
    assert Journal(tmp_path / "runs.db").get().run == session.run


async def test_refine_in_python_is_journalled_too_unless_told_otherwise() -> None:
    model = ScriptedModel([text("Hello"), judged(10)] * 2)
    options: dict[str, Any] = {"model": model, "profile": "prose", "criteria": ["tone"]}
    limits = Limits(critique="never")
    kept = await api.refine("Greet.", name="kept", limits=limits, **options)
    await api.refine("Greet.", journal=False, limits=limits, **options)
    assert [one.name for one in Journal().runs()] == ["kept"]
    assert Journal().get().run == kept


def test_a_run_in_a_notebook_from_another_machine_is_resumed_here(
    shell: Any, replies: list[Any], tmp_path: Path
) -> None:
    stopped = asyncio.run(finished("Greet me.", scores=(4,)))
    other = asyncio.run(finished("Something else.", scores=(10,)))
    v4: Any = nbformat.v4
    outputs = [v4.new_output("display_data", data=bundle(one)) for one in (stopped, other)]
    cells = [v4.new_code_cell("%%refine\nx", outputs=[one]) for one in outputs]
    path = tmp_path / "theirs.ipynb"
    nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell("Hello"), *cells]), path)
    replies[:] = [text("Hello there"), judged(10)]
    assert error_of(shell, f"%refine resume {path} 0") is None
    error_of(shell, "%refine continue 1 warmer")
    assert shell.user_ns["refined"] == "Hello there"
    later = new_shell()
    assert error_of(later, "%refine resume greet-me") is None
    assert later.user_ns["refined_run"].iterations == shell.user_ns["refined_run"].iterations
    assert isinstance(error_of(shell, f"%refine resume {path} 2"), UsageError)


def test_no_key_is_in_the_journal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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
    for ending in ("json", "ipynb", "md"):
        error_of(shell, f"%refine export {tmp_path / f'run.{ending}'}")
    shell.clear_instance()
    files = [*default_path().parent.iterdir(), *tmp_path.iterdir()]
    assert len(files) >= 4
    for file in files:
        assert key.encode() not in file.read_bytes()
        assert password.encode() not in file.read_bytes()
    assert json.loads((tmp_path / "run.json").read_text())["iterations"]
