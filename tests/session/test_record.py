"""The record in a notebook: read back as it was, small, and honest about what it leaves out."""

import json
from pathlib import Path
from typing import Any

import pytest
from kit import finished, greeting
from pydantic import BaseModel

import ipyrefine
from ipyrefine.core.model import Setup
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stored import VERSION
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError
from ipyrefine.kernel.masking import Masked, Secrets
from ipyrefine.session.record import LIMIT, MIME, NOTEBOOK, bundle, load_whole, read, saved_run
from ipyrefine.session.session import sent_prompts


def saved(path: Path, *outputs: dict[str, Any]) -> Path:
    """A notebook with these outputs, each of a cell of its own."""
    cells = [{"cell_type": "code", "outputs": [{"data": data}]} for data in outputs]
    content = {"cells": [{"cell_type": "markdown"}, *cells], "metadata": {}}
    path.write_text(json.dumps(content), "utf-8")
    return path


async def test_a_long_run_is_shortened_says_so_and_is_never_resumed_without_its_texts(tmp_path):
    count, run = 40, await finished(scores=(4, 5))
    looks = Result(name="looks", passed=True, shows="looked " * 300)
    changes = {"text": "word " * 4_000, "evidence": (looks,), "thoughts": "I think " * 100}
    more = tuple(
        run.iterations[-1].model_copy(update={"number": n, "parent": n - 1, **changes})
        for n in range(len(run.iterations), count)
    )
    run = run.model_copy(update={"iterations": (*run.iterations, *more)})
    data = bundle(run)
    assert len(json.dumps(data[MIME], separators=(",", ":"))) <= LIMIT * 1.05
    for mime in ("text/plain", "text/html"):
        assert len(data[mime]) < 5 * LIMIT, mime
        assert "shortened to fit the notebook" in data[mime]
    (record,) = read(saved(tmp_path / "x.ipynb", data))
    assert not record.whole
    assert len(record.run.iterations) == count
    assert record.run.text == run.text
    with pytest.raises(UsageError, match="was cut"):
        load_whole(tmp_path / "x.ipynb")
    assert record.run.score_history == run.score_history


@pytest.mark.parametrize(("content", "sentence"), [
    ("not json", "neither"),
    ("{}", "neither"),
    (f'{{"version": {VERSION}, "setup": {{"task": {{"text": "x"}}}}, "more": 1}}', "damaged"),
])  # fmt: skip
def test_a_file_that_holds_no_run_is_named(tmp_path, content, sentence):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match=sentence):
        ipyrefine.load(tmp_path / "x.json")
    with pytest.raises(UsageError, match="cannot be read"):
        ipyrefine.load(tmp_path / "none.ipynb")
    with pytest.raises(UsageError, match="takes the path of a notebook"):
        ipyrefine.load(3)


async def test_a_record_names_its_version_and_what_is_there_once_with_every_field():
    """So that what it rests on depends on no default; of texts and results it has what differs."""
    run = await finished()
    record = bundle(run)[MIME]
    assert record["version"] == VERSION
    assert set(record) == {"version", *fields(Run)}
    assert set(record["setup"]) == set(Setup.model_fields)
    assert set(record["setup"]["limits"]["budget"]) >= {"calls", "tokens", "cost", "seconds"}
    assert {"number", "text", "verdict"} <= set(record["iterations"][0]) < fields(Iteration)


def fields(record: type[BaseModel]) -> set[str]:
    """Return the fields of a record but those that are written only where they say something."""
    return {name for name, field in record.model_fields.items() if field.exclude_if is None}


async def test_a_record_of_another_version_is_refused_as_such(tmp_path):
    data = bundle(await finished())
    data[MIME]["version"] = VERSION - 1
    with pytest.raises(UsageError, match="another version of ipyrefine"):
        load_whole(saved(tmp_path / "x.ipynb", data))


async def test_a_cell_s_own_output_gives_the_run_of_its_task_if_that_is_whole(
    tmp_path, monkeypatch
):
    hi, other, cut, damaged = [
        bundle(await finished(scores=(score,)), asked=asked)
        for score, asked in ((10, "task"), (9, "another"), (8, "task"), (7, "task"))
    ]
    cut[MIME]["cut"], damaged[MIME]["iterations"] = True, 7
    path = saved(tmp_path / "x.ipynb", hi, other, cut, damaged, {MIME: "task"}, {}, hi)
    monkeypatch.setenv(NOTEBOOK, str(path))
    found = [saved_run("task", "", place) for place in range(10)]
    assert [place for place, run in enumerate(found) if run] == [2, 8]
    assert saved_run("task", "another cell", 1) is None
    monkeypatch.setenv(NOTEBOOK, str(tmp_path))
    assert saved_run("task", "", 2) is None


async def test_one_run_of_a_file_is_chosen_by_its_place(tmp_path):
    first, second = await finished("one"), await finished("two")
    path = saved(tmp_path / "x.ipynb", bundle(first), bundle(second))
    assert load_whole(path) == second
    assert load_whole(path, "0") == first
    with pytest.raises(UsageError, match="no run '2'"):
        load_whole(path, "2")
    with pytest.raises(UsageError, match="no record"):
        load_whole(saved(tmp_path / "y.ipynb", {"text/plain": "2"}))


async def test_every_request_is_kept_with_its_stage_and_model_in_order():
    loop = greeting("Write to Ann.", model="m")
    loop.model = loop.judge = Masked(loop.model, Secrets())
    run = await loop.run()
    sent = sent_prompts(loop.model)
    titles = [title for title, _ in sent]
    assert titles[:2] == ["1 · Writing · m", "2 · Evaluating · m"]
    assert len(titles) == run.usage.calls
    assert all("Write to Ann." in text for _, text in sent)
    assert loop.model.name == "m"
