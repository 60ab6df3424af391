"""Files that somebody changed: nothing in them runs, and each is read or refused in a sentence."""

import itertools
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import golden
import pytest
from kit import finished
from mutations import mutations
from shells import error_of, scripted_shell

from ipyrefine import api
from ipyrefine.core.decisions import Accept
from ipyrefine.core.model import Material, Setup, StopReason, Task
from ipyrefine.core.policy import forecast, next_step
from ipyrefine.core.run import Run
from ipyrefine.errors import InternalError, UsageError
from ipyrefine.journal.writer import default_path
from ipyrefine.kernel import variables
from ipyrefine.providers.replay import read_recording
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.terminal import record_text
from ipyrefine.session.export import export, suite_source
from ipyrefine.session.history import agreement
from ipyrefine.session.record import MIME, as_json, bundle, load, load_whole

PER_RECORD = 3


def saved(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def refused(use: Callable[[Path], Any], path: Path) -> Any:
    """Return what using a file gives; None where it is refused, in one sentence."""
    try:
        return use(path)
    except UsageError as error:
        sentence = str(error)
    assert "\n" not in sentence
    return None


# What a record says is never run


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    return scripted_shell(monkeypatch, ["<text>\nHello\n</text>"] * 9)


def hostile_run(draft: str, *checks: str, **setup: Any) -> Run:
    """A run that has a draft and waits for its checks."""
    task = Task(text="Write code.", form="code", profile="code")
    return Run.begin(
        Setup(task=task, model="m", judge="m", checks=checks, draft=draft).model_copy(update=setup)
    )


@pytest.mark.parametrize(
    "name", ["getoutput", "eval", "tests:secret.py", "schema:note", "run seconds=86400"]
)
def test_a_record_cannot_choose_what_is_called_or_read(shell, tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    taken: list[Any] = []
    shell.user_ns |= dict.fromkeys(("note", "getoutput", "system"), taken.append)
    saved(tmp_path / "secret.py", "def test_x():\n    raise SystemExit('secret')\n")
    path = saved(tmp_path / "x.json", as_json(hostile_run("touch owned", name)))
    error = error_of(shell, f"%refine resume {path}")
    assert isinstance(error, UsageError)
    assert "\n" not in str(error)
    assert taken == []
    assert not (tmp_path / "owned").exists()


def test_a_file_s_run_gets_nothing_of_the_reader_s_namespace(shell, tmp_path, monkeypatch):
    monkeypatch.setattr(variables, "sandbox_is_closed", lambda: True)
    shell.user_ns["plans"] = ["Zwolle-7731-qx"]
    taken = Material(kind="variable", name="plans", phrase="plans", text="plans (list)")
    run = hostile_run("print(plans)\nmade = list(plans)", "run")
    setup = run.setup.replace(task=run.setup.task.replace(materials=(taken,)))
    path = saved(tmp_path / "x.json", as_json(Run.begin(setup)))
    for command in (f"%refine resume {path}", "%refine resume", "%refine continue"):
        error_of(shell, command)
        refined = shell.user_ns["refined_run"]
        assert refined.iterations
        assert "Zwolle" not in refined.model_dump_json(), command


def journal_of(shell: Any, settings: dict[str, Any]) -> None:
    """Run a cell, and change what the journal says that it was started with."""
    error_of(shell, "%%refine -p prose --criteria tone --set as=task\nWrite a greeting.")
    with closing(sqlite3.connect(default_path())) as connection, connection:
        connection.execute("UPDATE runs SET settings = ?", (json.dumps(settings),))


@pytest.mark.parametrize(("settings", "option"), [
    ({"var": ["secret"]}, "--var secret"),
    ({"base_url": "http://evil.test/v1"}, "--base-url http://evil.test/v1"),
    ({"base_url": "http://evil.test/v1'; x"}, "--base-url"),
])  # fmt: skip
def test_a_journal_cannot_choose_data_or_a_server(shell, settings, option, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    shell.user_ns["secret"] = "the secret"
    journal_of(shell, settings)
    error = error_of(shell, "%refine resume")
    assert isinstance(error, UsageError)
    assert f"To resume, add {option}" in str(error)


@pytest.mark.parametrize("name", ["print", "used", 7])
def test_a_journal_cannot_hide_what_the_notebook_uses(shell, name):
    shell.user_ns["used"] = used = len
    journal_of(shell, {"output": name, "apply": "replace; rm", "check": 7, "var": "x"})
    before = shell.user_ns.get(name) if isinstance(name, str) else None
    assert not isinstance(error_of(shell, "%refine resume"), TypeError)
    assert shell.user_ns["refined"] == "Hello"
    assert shell.user_ns["used"] is used
    assert not isinstance(name, str) or shell.user_ns.get(name) is before


def test_a_record_cannot_choose_a_file_to_read_replies_from(tmp_path):
    run = hostile_run("x = 1", model="recorded:/a/b")
    path = saved(tmp_path / "x.json", as_json(run))
    with pytest.raises(UsageError, match="the recording /a/b"):
        api.resume(load_whole(path))


# What a record holds is valid


def wrong_in_one_place(run: Run) -> dict[str, dict[str, Any]]:
    """Return what to change of a record to make it wrong in one place, by that place."""
    record = as_json(run)
    (first, second), call = record["iterations"], record["calls"][0]
    accepted = run.model_copy(update={"stop_reason": StopReason.ACCEPTED})
    return {
        "number": {"iterations": [first, second | {"number": 5}]},
        "same number": {"iterations": [first, first]},
        "a later parent": {"iterations": [first | {"parent": 1}, second]},
        "best": {"best": 2},
        "best without a verdict": {"iterations": [first | {"verdict": None}, second], "best": 0},
        "head": {"head": 9},
        "a decision": {"decisions": [Accept(iteration=4).model_dump(mode="json")]},
        "accepted by nobody": as_json(accepted),
        "infinite seconds": {"seconds": 1e400},
        "a negative count": {"repairs": -2},
        "an unknown stop": {"stop_reason": "<img src=x>"},
        "markup for a stage": {"calls": [call | {"stage": "<img src=x onerror=alert(1)>"}]},
        "infinite cost": {"calls": [call | {"usage": call["usage"] | {"cost": float("inf")}}]},
        "a version": {"version": True},
        "many iterations": {"iterations": [first | {"number": n} for n in range(2_001)]},
    }


async def test_a_record_that_contradicts_itself_is_refused(tmp_path):
    run = await finished()
    assert load(saved(tmp_path / "good.json", as_json(run))) == [run]
    taken = [
        name
        for name, change in wrong_in_one_place(run).items()
        if refused(load, saved(tmp_path / "x.json", as_json(run) | change)) is not None
    ]
    assert taken == []


FILES: dict[str, str] = {
    "nothing": "",
    "no JSON": "{",
    "deep": "[" * 100_000 + "]" * 100_000,
    "deep record": '{"version": 3, "setup": ' + "[" * 50_000 + "]" * 50_000 + "}",
    "not UTF-8": "\udcff",
    "outputs of a text": '{"cells": [{"outputs": "x"}]}',
    "a record of pairs": f'{{"cells": [{{"outputs": [{{"data": {{"{MIME}": ["ab"]}}}}]}}]}}',
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
@pytest.mark.parametrize("ending", ["json", "ipynb"])
def test_a_file_that_is_none_is_refused_in_a_sentence(tmp_path, content, ending):
    path = tmp_path / f"x.{ending}"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    for use in (load, load_whole, read_recording):
        assert refused(use, path) in (None, [])


@pytest.mark.parametrize("use", [load, read_recording])
def test_a_file_that_is_too_large_is_not_read(tmp_path, use):
    with (tmp_path / "x.ipynb").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UsageError, match="larger than 128 MB"):
        use(tmp_path / "x.ipynb")


async def uses(run: Run, path: Path) -> None:
    """Do with a run what a reader does, up to resuming it."""
    bundle(run)
    export(run, path.with_suffix(".json"), force=True)
    next_step(run)
    forecast(run)
    agreement([run])
    refused(suite_source, run)
    model = ScriptedModel(itertools.repeat("<text>\nHello\n</text>"))
    try:
        again = api.Refinement(run, model=model, clock=itertools.count().__next__)
    except UsageError:
        return
    events = itertools.count()

    def consume(*_: Any) -> None:
        if next(events) > 100:
            raise UsageError("That is enough.")

    await again.run(consume)
    assert not isinstance(again.error, InternalError), again.error


async def test_damaged_records_are_read_or_refused_and_never_break_their_reader(tmp_path):
    tried = count = 0
    for seed, path in enumerate(golden.SCENARIOS):
        played = await golden.play(golden.read(path))
        for content in mutations(as_json(played.run) | {"cell": "c"}, seed, PER_RECORD):
            tried += 1
            runs = refused(load, saved(tmp_path / "x.json", content))
            count += runs is None
            for run in runs or ():
                await uses(run, tmp_path / "out.json")
    assert tried >= 100
    assert 0 < count < tried


async def test_lone_surrogates_anywhere_in_a_record_can_be_written_again(tmp_path):
    content = as_json(await finished())
    content["setup"]["checks"] = ["\ud800"]
    content["setup"]["prompts"] = {"\udfff": "\ud800"}
    content["warnings"] = ["\ud800x"]
    [run] = load(saved(tmp_path / "x.json", content))
    assert record_text(run).encode("utf-8")
    assert json.dumps(as_json(run), ensure_ascii=False).encode("utf-8")
