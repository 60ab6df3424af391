"""Let a model tell tasks for code from tasks for words, by the product's own prompt and reader.

``python bench/code_or_words.py [--model NAME] [--dseval FILE] [--tasks A-B] [--ask]`` (needs
the extras ``local`` and ``bench``). ``code_or_words.jsonl`` holds 60 tasks in five languages, as
people write them in a notebook: half of them want code, half want words, and most name variables.
They were written before the prompts were.

A weak model is asked in one word before it writes; any other decides by its first draft, which is
read as the loop reads it. ``--dseval`` asks the questions of a file of sessions in their place, all
of which want code. Every reply is kept at once, so a bench that was stopped goes on where it was.
"""

import argparse
import asyncio
import json
import re
from pathlib import Path
from typing import NamedTuple

import measure
import numpy
import pandas
from measure import Replies

from ipyrefine.api import build
from ipyrefine.core.events import Event
from ipyrefine.core.model import Limits
from ipyrefine.core.run import Run
from ipyrefine.kernel.variables import find

_HERE = Path(__file__).parent
_QUESTION = re.compile(r"^question: (?:\|-?\n)?(.*?)(?=^\w+:|^\"\"\")", re.MULTILINE | re.DOTALL)
_MAX_TOKENS = 1_024
# The notebook that the tasks are asked in.
_ORDERS = {
    "order_id": [1, 2, 3],
    "customer_id": [11, 12, 11],
    "city": ["Lyon", "Bonn", "Lyon"],
    "date": pandas.to_datetime(["2026-01-05", "2026-02-11", "2026-02-12"]),
    "quantity": [2, 1, 5],
    "price": [9.5, 20.0, 3.25],
    "status": ["open", "cancelled", "shipped"],
}
_CUSTOMERS = {
    "customer_id": [11, 12, 13],
    "name": ["Ana Ruiz", "Bo Lind", "Cem Kaya"],
    "country": ["Spain", "Sweden", "Germany"],
    "age": [34, 51, 42],
}
_NOTEBOOK = {
    "orders": pandas.DataFrame(_ORDERS),
    "customers": pandas.DataFrame(_CUSTOMERS),
    "df": pandas.DataFrame({"x": [0.5, 1.5, None], "y": [1.0, 2.0, 4.0], "group": ["a", "b", "a"]}),
    "a": numpy.array([[1, 2, 3], [4, 0, 6]]),
    "prices": [9.5, 20.0, 3.25],
    "scores": {"Ana": 7, "Bo": 9},
    "log": "10:02 start\n10:05 loaded 3 files\n10:09 done",
}


class Task(NamedTuple):
    """A task, and what it wants."""

    name: str
    kind: str
    task: str


class Row(NamedTuple):
    """A task, and what the model took it for."""

    task: Task
    taken: str

    @property
    def is_right(self) -> bool:
        """Whether it was taken for what it is."""
        return self.taken == self.task.kind


async def choose(task: Task, model: Replies) -> Row:
    """Return what a model takes a task for: code or words; ``none`` where it gave no draft."""
    refinement = build(
        task.task,
        model=model,
        variables=find(_NOTEBOOK, text=task.task, bare=True),
        limits=Limits(max_revisions=0, critique="never", max_tokens=_MAX_TOKENS),
        no_checks=["all"],
    )

    def stop(event: Event, run: Run) -> None:
        if run.setup.words is None:
            running.cancel()

    running = asyncio.ensure_future(refinement.run(stop))
    await asyncio.wait([running])
    if refinement.state.setup.words:
        return Row(task, "none")
    return Row(task, "words" if refinement.state.task.form == "prose" else "code")


def load_tasks(dseval: Path | None) -> list[Task]:
    """Return the tasks of our own, or the questions of DSEval."""
    if dseval is None:
        lines = (_HERE / "code_or_words.jsonl").read_text("utf-8").splitlines()
        return [Task(**json.loads(line)) for line in lines]
    sessions = [json.loads(line) for line in dseval.read_text("utf-8").splitlines()]
    return [
        Task(f"{one['name']}-{number}", "code", " ".join(question.split()))
        for one in sessions
        for number, question in enumerate(_QUESTION.findall(one["source"]))
    ]


def main() -> None:
    """Ask, and print a table."""
    options = measure.parser(__doc__)
    options.add_argument("--dseval", type=Path, metavar="FILE", help="sessions.jsonl")
    options.add_argument("--names", default="", help="which tasks, by name, with commas")
    args: argparse.Namespace = options.parse_args()
    tasks, names = load_tasks(args.dseval), args.names.split(",")
    tasks = [task for task in tasks if not args.names or task.name in names]
    places = measure.task_range(args.tasks, f"0-{len(tasks) - 1}", len(tasks) - 1)
    tasks = [tasks[place] for place in places]
    path = args.replies or _HERE / "kept" / f"code_or_words-{args.model}.jsonl"
    model = Replies(args.model, path, ask=args.ask)
    rows = measure.collect(
        "tasks",
        tasks,
        model,
        lambda task: choose(task, model),
        lambda done: f"right {sum(row.is_right for row in done)}",
    )
    print(f"\n| {args.model} | code | words |\n|---|---|---|")
    languages = dict.fromkeys(row.task.name.partition("-")[0] for row in rows)
    for language in [] if args.dseval else languages:
        own = [row for row in rows if row.task.name.startswith(f"{language}-")]
        print(f"| {language} | {_right(own, 'code')} | {_right(own, 'words')} |")
    print(f"| all | {_right(rows, 'code')} | {_right(rows, 'words')} |")
    print(f"\nRight: {measure.share(rows, lambda row: row.is_right)}")
    for row in rows:
        if not row.is_right:
            print(f"{row.task.name} taken for {row.taken}: {row.task.task[:90]}")
    if model.missing:
        raise SystemExit(f"Missing: {model.missing}. Add --ask.")


def _right(rows: list[Row], kind: str) -> str:
    of = [row for row in rows if row.task.kind == kind]
    return f"{sum(row.is_right for row in of)} of {len(of)}"


if __name__ == "__main__":
    main()
