"""Whoever has a public set can make the files that the benches read."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def convert(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The converter, with `USED` for a test to fill: a set's cases and the hashes measured."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "bench")
    import convert

    monkeypatch.setattr(convert, "USED", {})
    return convert


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def mbpp_task(number: int, body: str, *inputs: Any) -> dict[str, Any]:
    return {
        "task_id": f"Mbpp/{number}",
        "prompt": '"""\nWrite twice.\nassert twice(2) == 4\n"""\n',
        "entry_point": "twice",
        "canonical_solution": f"\ndef twice(x):\n    {body}\n",
        "base_input": [[2]],
        "plus_input": list(inputs),
        "contract": "",
        "assertion": "",
        "atol": 0,
    }


def test_mbpp_gets_results_of_its_reference_for_forty_inputs_and_runs_no_other(convert, tmp_path):
    """Sets and tuples become lists, an input that the reference changes stays as it was."""
    body = "x = x if isinstance(x, list) else [x]; x.append(1); return {*x}, (1,)"
    kept = mbpp_task(3, body, [[2, 3]], *([n] for n in range(50)))
    original = tmp_path / "MbppPlus.jsonl"
    original.write_text(f"{json.dumps(mbpp_task(2, '1 / 0'))}\n{json.dumps(kept)}\n", "utf-8")
    convert.USED["mbpp"] = {"Mbpp/3": "other"}
    assert convert.convert("mbpp", original, tmp_path / "data") == ["Mbpp/3"]
    [row] = rows(tmp_path / "data/mbpp_plus.jsonl")
    cases = row.pop("cases")
    assert cases[:2] == [[[2], [[1, 2], [1]]], [[[2, 3]], [[1, 2, 3], [1]]]]
    assert len(cases) == 40
    same = ("task_id", "prompt", "entry_point", "atol")
    assert row == {name: kept[name] for name in same}
    original.write_text(json.dumps(mbpp_task(3, "return 1 / 0")), "utf-8")
    with pytest.raises(SystemExit, match="Mbpp/3: the reference fails"):
        convert.convert("mbpp", original, tmp_path)
