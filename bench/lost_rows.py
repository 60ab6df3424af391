"""Look at cells that lose or change data, without a model, and print what one is told of it.

``python bench/lost_rows.py --out DIR [--only TEXT]`` needs no model, but pandas and Polars.
``lost_rows.jsonl`` holds 50 cells as a data assistant writes them, each with the task and what the
notebook holds: 25 wrong ones (rows dropped, repeated, joined wrongly or reordered, values
overwritten, a category without rows, keys that are missing, numbers as text, time zones, chained
assignment) and 25 right ones that change as much, as the task asks for it. They were written before
the code that says what happened to data; one half, ``dev``, was looked at while it was written, the
other, ``kept``, was run once at its end.

Each is the draft of a run that asks nobody, as in ``%%refine --draft -n 0``, and is taken for code
whatever it looks like; the table also says how many would be taken for words, and so not be run.

A wrong one says which facts would let a reader notice (any one of its ``tells``), so whether it is
told is not judged by words. The lines are the answer, where there is one, and then each fact.
Nothing is coloured where nobody reads, so for the right ones the table says how many are stopped,
that is, fail a check that a text must pass, and how many show a fact about rows or values that a
reader may take for a fault.

Each result is a line of DIR/lost_rows.jsonl, so a bench that was stopped goes on where it was.
``--validate`` runs the cells here instead: a right one must give what its reference gives, and a
wrong one must not.
"""

import ast
import asyncio
import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import facts
import measure
import sessions
from facts import lines_of, meets
from sessions import Results, share
from tqdm import tqdm

from ipyrefine import api
from ipyrefine.core.run import Run
from ipyrefine.kernel.variables import find
from ipyrefine.providers.choose import NoWriter

HALVES = ("dev", "kept")
_CELLS = Path(__file__).parent / "lost_rows.jsonl"
_FIRST = 3  # lines that everybody reads


def run_cell(code: str, space: dict[str, Any]) -> None:
    """Run code as a cell does: the value of its last expression is ``_``."""
    tree = ast.parse(code)
    if isinstance(last := tree.body[-1], ast.Expr):
        name = ast.copy_location(ast.Name("_", ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([name], last.value), last)
    exec(compile(tree, "cell", "exec"), space)


def validate(cell: Mapping[str, Any]) -> bool:
    """Return whether a cell gives what its reference gives just if it is right."""
    found = []
    for code in (cell["code"], cell["reference"]):
        space = dict[str, Any]()
        run_cell(cell["setup"], space)
        run_cell(code, space)
        found.append(eval(cell.get("result", "_"), space))
    return _equal(*found) is cell["right"]


def _equal(one: Any, other: Any) -> bool:
    import pandas

    try:
        if isinstance(one, pandas.DataFrame):
            pandas.testing.assert_frame_equal(one, other, check_dtype=False)
        elif isinstance(one, pandas.Series):
            loose = {"check_index_type": False, "check_categorical": False, "check_names": False}
            pandas.testing.assert_series_equal(one, other, check_dtype=False, **loose)
        elif hasattr(one, "equals"):
            return bool(one.equals(other))
        else:
            return math.isclose(one, other) if isinstance(one, float) else bool(one == other)
    except AssertionError:
        return False
    return True


# What a cell's run says.


def look(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return what became of a cell as a draft at which nobody is asked to look."""
    space = dict[str, Any]()
    run_cell(cell["setup"], space)
    space = {name: value for name, value in space.items() if not name.startswith("__")}
    found = find(space, text=cell["task"], bare=True, draft=cell["code"])
    run = asyncio.run(
        api.refine(
            cell["task"],
            draft=cell["code"],
            model=NoWriter(),
            max_revisions=0,
            profile="code",
            variables=found,
            journal=False,
        )
    )
    return {"form": api.choose_profile(None, draft=cell["code"]).form, **said(run)}


def said(run: Run) -> dict[str, Any]:
    """Return what a run says of its first text: the checks it fails, its answer, its facts."""
    evidence = run.iterations[0].evidence
    return {
        "checks": {one.name: one.passed for one in evidence},
        "stopped": [one.name for one in evidence if one.failed],
        "shows": "\n".join(one.shows for one in evidence if one.failed),
        **facts.facts_of([one.model_dump(mode="json") for one in evidence]),
        "seconds": round(run.seconds, 1),
    }


def told(row: Mapping[str, Any], lines: int | None = None) -> bool:
    """Return whether one of the first lines, or of all, tells what is wrong."""
    some = lines_of(row)[:lines]
    return any(meets(effect, tell) for _, effect in some for tell in row.get("tells", ()))


def looks_wrong(row: Mapping[str, Any]) -> bool:
    """Return whether one of the first lines tells of rows or values that are lost or changed."""
    return facts.doubted(row, _FIRST)


# Tables.


def report(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rates of both, and every cell with its first lines."""
    wrong, right = ([row for row in rows if row["right"] is which] for which in (False, True))

    def line(
        name: str, some: Sequence[dict[str, Any]], holds: Callable[[Any], object]
    ) -> list[str]:
        halves = [[row for row in some if row["half"] == half] for half in HALVES]
        return [name, *(share(part, holds) for part in (*halves, some))]

    def told_first(row: Mapping[str, Any]) -> bool:
        return told(row, _FIRST)

    rates = [
        line("wrong ones told in the first three lines", wrong, told_first),
        line("wrong ones told anywhere", wrong, told),
        line("wrong ones stopped", wrong, lambda row: row["stopped"]),
        line("wrong ones told in three lines, or stopped", wrong, _noticed),
        line("wrong ones with a fact on rows or values in three lines", wrong, looks_wrong),
        line("wrong ones that count as words without a profile", wrong, _as_words),
        line("right ones stopped", right, lambda row: row["stopped"]),
        line("right ones with a fact on rows or values in three lines", right, looks_wrong),
        line("right ones that count as words without a profile", right, _as_words),
    ]
    by_kind = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        one, other = ([row for row in some if row["kind"] == kind] for some in (wrong, right))
        noticed, doubts = sum(map(told_first, one)), sum(map(looks_wrong, other))
        by_kind.append([kind, f"{noticed} of {len(one)}", f"{doubts} of {len(other)}"])
    heads = ["kind", "wrong ones told in three lines", "right ones with a fact on rows or values"]
    return "\n\n".join(
        [
            f"## Lost rows: {len(rows)} cells, {sum(row['seconds'] for row in rows):.0f} s",
            measure.table(["", *HALVES, "both"], rates),
            measure.table(heads, by_kind),
            *map(_listed, sorted(rows, key=lambda row: (row["right"], row["half"], row["id"]))),
        ]
    )


def _noticed(row: Mapping[str, Any]) -> bool:
    return bool(row["stopped"]) or told(row, _FIRST)


def _as_words(row: Mapping[str, Any]) -> bool:
    return row["form"] != "code"


def _listed(row: Mapping[str, Any]) -> str:
    lines = [text for text, _ in lines_of(row)]
    where = "in three" if told(row, _FIRST) else "further down" if told(row) else "not told"
    state = "a fact on rows or values" if looks_wrong(row) else "no fact on rows or values"
    parts = [row["id"], row["half"], state if row["right"] else where]
    if row["stopped"]:
        parts.append(f"stopped by {', '.join(row['stopped'])}: {measure.short(row['shows'])}")
    more = [f"  … {len(lines) - _FIRST} more"] if len(lines) > _FIRST else []
    head = [f"### {' · '.join(parts)}", f"  {row['task']}"]
    head += [f"  Wrong: {row['words']}"] if "words" in row else []
    return "\n".join([*head, *(f"  {n}. {one}" for n, one in enumerate(lines[:_FIRST], 1)), *more])


def load_cells(only: str = "") -> list[dict[str, Any]]:
    """Return the cells whose half and name, like ``dev/w-zone-1``, has a text."""
    cells = [json.loads(line) for line in _CELLS.read_text("utf-8").splitlines()]
    return [cell for cell in cells if only in f"{cell['half']}/{cell['id']}"]


def main() -> None:
    """Run what is missing and print the tables."""
    parser = sessions.options(__doc__)
    parser.add_argument("--validate", action="store_true", help="test the cells, run nothing else")
    options = parser.parse_args()
    cells = load_cells(options.only)
    if options.validate:
        warnings.simplefilter("ignore")  # a wrong one may warn
        odd = [cell["id"] for cell in cells if not validate(cell)]
        raise SystemExit(f"Not as they say: {', '.join(odd)}" if odd else None)
    results = Results(options.out.resolve() / "lost_rows.jsonl")
    if not options.table:
        for cell in tqdm([one for one in cells if one["id"] not in results.rows], unit="cell"):
            results.add({"id": cell["id"], **look(cell)})
    # What a cell says of itself is taken from its file, so that a tell can be mended later.
    rows = [cell | results.rows[cell["id"]] for cell in cells if cell["id"] in results.rows]
    print(report(rows))


if __name__ == "__main__":
    main()
