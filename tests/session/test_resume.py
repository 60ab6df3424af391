"""Runs outlive their kernel: the journal behind `%%refine`, and the commands that use it."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from openai_server import Answer, Failure, ScriptedServer
from refining import finished, judged, refinement, text
from shells import NO_HISTORY

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


class Replies:
    """What the model answers next, whichever shell asks."""

    def __init__(self) -> None:
        self.next: list[Any] = []

    def model(self, *_: Any, **__: Any) -> ScriptedModel:
        return ScriptedModel(self.next)


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Replies:
    replies = Replies()
    monkeypatch.setattr(api, "choose_model", replies.model)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    return replies


def new_shell() -> Any:
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=NO_HISTORY)
    shell.extension_manager.load_extension("ipyrefine")
    return shell


@pytest.fixture
def shell(replies: Replies) -> Iterator[Any]:
    yield new_shell()
    InteractiveShell.clear_instance()


def run(shell: Any, cell: str) -> Any:
    async def go() -> Any:
        return await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))

    return asyncio.run(go())


def refined(shell: Any, replies: Replies, *items: Any, options: str = "") -> Any:
    replies.next = list(items)
    return run(shell, f"%%refine {OPTIONS} {options}\nWrite a greeting.")


def test_a_new_kernel_continues_where_the_old_one_stopped(shell: Any, replies: Replies) -> None:
    refined(shell, replies, text("Hello"), Unreachable("gone"), options="--name hi -o greeting")
    later = new_shell()
    replies.next = [judged(4), text("Hello there"), judged(10)]
    assert run(later, "%refine resume hi").error_in_exec is None
    assert later.user_ns["greeting"] == "Hello there"
    assert later.user_ns["refined_run"].stop_reason == "passed"
    assert [one.name for one in Journal().runs()] == ["hi"]
    assert Journal().get("hi").run == later.user_ns["refined_run"]


def test_a_resumed_run_takes_the_same_decisions(shell: Any, replies: Replies) -> None:
    refined(shell, replies, text("Hello"), judged(10))
    later = new_shell()
    run(later, "%refine resume")
    run(later, "%refine accept 0")
    assert later.user_ns["refined_run"].stop_reason == "accepted"
    assert Journal().get().run.stop_reason == "accepted"


def test_a_run_that_is_not_over_is_not_resumed_beside_itself(shell: Any, replies: Replies) -> None:
    refined(shell, replies, text("Hello"), Unreachable("gone"))
    session = shell.magics_manager.registry["Refine"].latest.session
    replies.next.append(lambda _: judged(10) + " " * 10_000)  # many pieces, a while to come

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
    shell: Any, replies: Replies
) -> None:
    shell.user_ns["polite"] = lambda text: True
    refined(shell, replies, Unreachable("gone"), options="-c polite")
    later = new_shell()
    error = run(later, "%refine resume --check polite").error_in_exec
    assert isinstance(error, UsageError)
    assert "no check 'polite'" in str(error)
    later.user_ns["polite"] = lambda text: True
    replies.next = [text("Hello"), judged(10)]
    error = run(later, "%refine resume").error_in_exec
    assert isinstance(error, UsageError)
    assert str(error).endswith("To resume, add --check polite.")
    run(later, "%refine resume --check polite")
    assert later.user_ns["refined"] == "Hello"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("resume nobody", "no run 'nobody'"),
        ("resume -n 3", "--max-revisions was settled"),
        ("resume none.ipynb", "cannot be read"),
        ("export", "Name a file"),
        ("history --verdct pass", "no option --verdct. Did you mean --verdict?"),
    ],
)
def test_a_command_that_cannot_be_carried_out_says_why(
    shell: Any, replies: Replies, words: str, sentence: str
) -> None:
    refined(shell, replies, text("Hello"), judged(10))
    error = run(shell, f"%refine {words}").error_in_exec
    assert isinstance(error, UsageError)
    assert sentence in str(error)


def test_history_lists_finds_and_forgets(
    shell: Any, replies: Replies, capsys: pytest.CaptureFixture[str]
) -> None:
    refined(shell, replies, text("Hello"), judged(10), options="--name first")
    refined(shell, replies, text("Hello"), Unreachable("gone"), options="--name second")
    capsys.readouterr()
    run(shell, "%refine history greeting")
    listed = capsys.readouterr().out
    first, second = listed.split("\n")[2], listed.split("\n")[1]
    assert second.startswith("2    today ")
    assert second.split()[3:8] == ["an", "error", "1", "second", "·"]
    assert "○ NOTHING FOUND" in first
    assert "  first · Write" in first
    run(shell, "%refine history -n 1")
    assert "There are more: -n 5 lists them." in capsys.readouterr().out
    run(shell, "%refine history --verdict pass")
    assert "second" not in capsys.readouterr().out
    run(shell, "%refine forget first")
    assert "1 run erased" in capsys.readouterr().out
    run(shell, "%refine forget --all")
    run(shell, "%refine history")
    assert "journal is empty" in capsys.readouterr().out


@pytest.mark.parametrize("how", ["option", "environment"])
def test_a_run_can_be_kept_out_of_the_journal(
    shell: Any, replies: Replies, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "config":
        run(shell, "%config Refine.journal = False")
    if how == "environment":
        monkeypatch.setenv("IPYREFINE_JOURNAL", "off")
    option = "--no-journal" if how == "option" else ""
    refined(shell, replies, text("Hello"), judged(10), options=option)
    assert shell.user_ns["refined"] == "Hello"
    assert not default_path().exists()


def test_a_journal_that_cannot_be_opened_stops_before_anything_is_paid(
    shell: Any, replies: Replies
) -> None:
    default_path().parent.mkdir(parents=True)
    default_path().mkdir()
    result = refined(shell, replies, text("Hello"), judged(10))
    assert isinstance(result.error_in_exec, JournalError)
    assert "--no-journal" in str(result.error_in_exec)
    assert len(list(replies.next)) == 2


class Disk:
    """The disk of a journal, which can be full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self._connect, self._connections = writer.connect, list[sqlite3.Connection]()
        monkeypatch.setattr(writer, "connect", self._open)

    def _open(self, path: Path, patience: float) -> sqlite3.Connection:
        self._connections.append(self._connect(path, patience))
        if self.full:
            self.fill()
        return self._connections[-1]

    def fill(self) -> None:
        self.full = True
        connection = self._connections[-1]
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")


async def test_a_full_disk_ends_the_run_with_its_best_text_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Continuing once there is room again writes what was missed."""
    disk, journal = Disk(monkeypatch), Recorder(tmp_path / "runs.db")
    displayed: list[tuple[Event, Run]] = []

    def fill(event: Event, run: Run) -> None:
        if isinstance(event, VerdictReached) and not run.decisions:
            disk.fill()
            session.decide(Guide(guidance="x" * 10_000))

    session = Session(
        refinement(), [lambda event, run: displayed.append((event, run)), fill], journal
    )
    await session.go()
    event, run = displayed[-1]
    assert event.type == "stopped"
    assert run.stop_reason == "failed"
    assert "full" in run.message
    assert "--no-journal" in run.message
    assert run.text == "Version 0"
    assert isinstance(session.refinement.error, JournalError)
    disk.full = False
    session.decide(Continue())
    await session.go()
    assert session.refinement.error is None
    stored = Journal(tmp_path / "runs.db").get().run
    assert stored == session.run


async def test_refine_in_python_is_journalled_too_unless_told_otherwise() -> None:
    model = ScriptedModel([text("Hello"), judged(10)] * 2)
    options: dict[str, Any] = {"model": model, "profile": "prose", "criteria": ["tone"]}
    limits = Limits(critique="never")
    kept = await api.refine("Greet.", name="kept", limits=limits, **options)
    await api.refine("Greet.", journal=False, limits=limits, **options)
    assert [one.name for one in Journal().runs()] == ["kept"]
    assert Journal().get().run == kept


async def notebook_with(path: Path, *runs: Run) -> Path:
    v4: Any = nbformat.v4
    cells = [
        v4.new_code_cell("%%refine\nx", outputs=[v4.new_output("display_data", data=bundle(one))])
        for one in runs
    ]
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell("Hello"), *cells])
    nbformat.validate(notebook)
    nbformat.write(notebook, path)
    return path


def test_a_run_in_a_notebook_from_another_machine_is_resumed_here(
    shell: Any, replies: Replies, tmp_path: Path
) -> None:
    stopped = asyncio.run(finished("Greet me.", scores=(4,)))
    other = asyncio.run(finished("Something else.", scores=(10,)))
    path = asyncio.run(notebook_with(tmp_path / "theirs.ipynb", stopped, other))
    replies.next = [text("Hello there"), judged(10)]
    assert run(shell, f"%refine resume {path} 0").error_in_exec is None
    run(shell, "%refine continue 1 warmer")
    assert shell.user_ns["refined"] == "Hello there"
    later = new_shell()
    assert run(later, "%refine resume greet-me").error_in_exec is None
    assert later.user_ns["refined_run"].iterations == shell.user_ns["refined_run"].iterations
    assert isinstance(run(shell, f"%refine resume {path} 2").error_in_exec, UsageError)


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
        error = run(
            shell, f"%%refine {OPTIONS} -m scripted --base-url {address}\nGreet."
        ).error_in_exec
        assert isinstance(error, RefineError)
        assert server.requests
    run(shell, f"%refine export {tmp_path / 'run.json'}")
    run(shell, f"%refine export {tmp_path / 'run.ipynb'}")
    run(shell, f"%refine export {tmp_path / 'run.md'}")
    InteractiveShell.clear_instance()
    files = [*default_path().parent.iterdir(), *tmp_path.iterdir()]
    assert len(files) >= 4
    for file in files:
        assert key.encode() not in file.read_bytes()
        assert password.encode() not in file.read_bytes()
    assert json.loads((tmp_path / "run.json").read_text())["iterations"]
