"""The record in a notebook: read back as it was, small, and honest about what it leaves out."""

import json
from pathlib import Path
from typing import Any

import pytest
from kit import READY, finished
from notebooks import NOTEBOOKS
from pydantic import BaseModel
from shells import Front

import ipyrefine
from ipyrefine.core.stored import VERSION, read_record
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError
from ipyrefine.session.record import LIMIT, MIME, NOTEBOOK, bundle, load_whole, saved_run


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
    [short] = ipyrefine.load(saved(tmp_path / "x.ipynb", data))
    assert len(short.iterations) == count
    assert short.text == run.text
    with pytest.raises(UsageError, match="was cut"):
        load_whole(tmp_path / "x.ipynb")
    assert short.score_history == run.score_history


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_record_repeats_neither_style_nor_fields_nor_words(notebook):
    for run in ipyrefine.load(notebook):
        data = bundle(run)
        own = len(run.model_dump_json(exclude_defaults=True))
        assert len(json.dumps(data, ensure_ascii=False)) < 3 * own + 1_500
        assert len(data["text/html"].partition("</style>")[0]) < 2_200
        assert read_record(data[MIME]) == run


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


def fields(record: type[BaseModel]) -> set[str]:
    """Return the fields of a record but those that are written only where they say something."""
    return {name for name, field in record.model_fields.items() if field.exclude_if is None}


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


def test_the_cell_that_a_text_was_put_into_is_in_the_record(monkeypatch):
    front = Front(monkeypatch, ["```python\nx = 1\n```", READY])
    shown: list[dict[str, Any]] = []
    monkeypatch.setattr(
        "ipyrefine.session.record.RecordDisplay.show",
        lambda _, run, **options: shown.append(bundle(run, **options)[MIME]),
    )
    for cell in ("%%refine -p code --set as=task\nSet x.", "%refine accept 0 replace"):
        front.run(cell, "home")
    assert "cell" not in shown[0]
    assert shown[-1]["cell"] == "home"
