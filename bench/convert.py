"""Convert a public set to the file that the benches read.

``python bench/convert.py mbpp|exercism|ifeval ORIGINAL [--data DIR]`` reads what you
downloaded and writes ``DIR/mbpp_plus.jsonl``, ``exercism.jsonl`` or ``ifeval.jsonl``. It fetches
nothing, and keeps only the cases of ``cases.json``, which are those that the benches use.

- mbpp: ``MbppPlus.jsonl``, also as ``.gz``, of github.com/evalplus/mbppplus_release, version 0.2.0.
- exercism: a checkout of github.com/exercism/python.
- ifeval: ``input_data.jsonl`` of github.com/google-research/google-research, in
  ``instruction_following_eval/data``. Copy the folder ``instruction_following_eval`` beside the
  result: its checkers decide what is solved.

Beside each case ``cases.json`` has the hash of what was measured. A set may have changed since, so
cases with another hash are named; kept replies fit those whose prompt is the same.
"""

import argparse
import asyncio
import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import measure

from ipyrefine.sandbox.sandbox import describe_failure, run_python

USED: dict[str, dict[str, str]] = json.loads(
    (Path(__file__).parent / "cases.json").read_text("utf-8")
)
_FILES = {"mbpp": "mbpp_plus"}  # where it isn't the set's name
_INPUTS = 40  # the first ones of an MBPP+ task
_PAGES = ("introduction", "instructions", "instructions.append")  # of an exercise
_SECONDS = 60.0  # processor time of all its inputs

# Writes what the reference gives on each input, as JSON has it.
_ANSWER = """\
import copy, json

def plain(value):
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value

with open("task.json") as file:
    task = json.load(file)
names = {}
exec(task["reference"], names)
function = names[task["entry_point"]]
cases = [[args, plain(function(*copy.deepcopy(args)))] for args in task["inputs"]]
with open("cases", "w") as file:
    json.dump(cases, file)
"""


def mbpp(original: Path, used: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield MBPP+ tasks: the first inputs, with what the reference gives on them.

    Raises:
        SystemExit: a reference fails.
    """
    open_text = gzip.open if original.suffix == ".gz" else open
    with open_text(original, "rt", encoding="utf-8") as file:
        tasks = {task["task_id"]: task for task in map(json.loads, file) if task["task_id"] in used}
    for name in used:
        task = tasks[name]
        names = ("task_id", "prompt", "entry_point", "atol")
        yield {**{one: task[one] for one in names}, "cases": asyncio.run(_answers(task))}


async def _answers(task: Mapping[str, Any]) -> list[Any]:
    sent = {
        "reference": task["prompt"] + task["canonical_solution"],
        "entry_point": task["entry_point"],
        "inputs": [*task["base_input"], *task["plus_input"]][:_INPUTS],
    }
    result = await run_python(
        _ANSWER, seconds=_SECONDS, files={"task.json": json.dumps(sent)}, report="cases"
    )
    if not result.report:
        failure = describe_failure(result, _SECONDS)
        raise SystemExit(f"{task['task_id']}: the reference fails. {failure}")
    return list(json.loads(result.report))


def exercism(original: Path, used: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield exercises: pages, stub, unit tests, and the example solution."""
    for slug in used:
        folder = original / "exercises" / "practice" / slug
        names = json.loads((folder / ".meta" / "config.json").read_text("utf-8"))["files"]
        read = {kind: (folder / some[0]).read_text("utf-8") for kind, some in names.items()}
        pages = (folder / ".docs" / f"{page}.md" for page in _PAGES)
        yield {
            "slug": slug,
            "instructions": "\n\n".join(one.read_text("utf-8") for one in pages if one.exists()),
            "stub": read["solution"],
            "tests": read["test"],
            "module": Path(names["solution"][0]).stem,
            "solution": read["example"],
        }


def ifeval(original: Path, used: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield IFEval's requests, whose fields are the same."""
    with original.open(encoding="utf-8") as file:
        rows = {str(row["key"]): row for row in map(json.loads, file)}
    yield from (rows[key] for key in used)


SETS = {"mbpp": mbpp, "exercism": exercism, "ifeval": ifeval}


def convert(name: str, original: Path, data: Path) -> list[str]:
    """Write a set's file; return the cases that are not as they were measured."""
    rows = dict(zip(USED[name], SETS[name](original, USED[name]), strict=True))
    data.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{json.dumps(row)}\n" for row in rows.values())
    (data / f"{_FILES.get(name, name)}.jsonl").write_text(lines, "utf-8")
    return [case for case, row in rows.items() if digest(row) != USED[name][case]]


def digest(row: Mapping[str, Any]) -> str:
    """Return the hash of a case as it stands in `cases.json`."""
    return hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()[:8]


def main() -> None:
    """Convert a set, and name the cases that have changed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("set", choices=SETS)
    parser.add_argument("original", type=Path, help="the file, or of exercism the checkout")
    parser.add_argument("--data", type=Path, default=measure.DATA, help=f"({measure.DATA})")
    options = parser.parse_args()
    changed = convert(options.set, options.original, options.data)
    print(f"{len(USED[options.set])} cases written to {options.data}.")
    if changed:
        print(f"{len(changed)} are not as they were measured: {', '.join(changed)}")


if __name__ == "__main__":
    main()
