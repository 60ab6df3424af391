"""Let the model write the next cell of a notebook, with and without knowing its variables.

``python tests/bench/frames.py own|puzzles [--tasks A-B] [--ask]`` (needs the extras ``local`` and
``bench``). Both arms write the draft that the loop starts from, in one greedy call:

- with: the prompt describes the variables that the task names, as `%%refine` does by itself
  (their type, shape, columns, dtypes, signatures; no values).
- without: as with ``%config Refine.variables = "none"``.

A draft is then run in the sandbox after the cell that makes the variables, and what it leaves in
the name that the task says is compared with what the reference solution leaves there (`equality`
says how). The sets:

- own: ``frames.jsonl``, tasks on frames and other variables with names that nobody can guess.
- puzzles: 100-pandas-puzzles, which mostly say the names of the columns. `LEFT_OUT` says which of
  them cannot be used.

Every reply is kept at once, so that a bench that was stopped goes on where it was. Without
``--ask`` no model is asked: a reply that is missing ends the bench. ``--validate`` tests the cases
instead: the solutions must give the right results, and the variables must be described.
"""

import argparse
import ast
import asyncio
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import arms
import measure
from measure import Meter
from notebook_cells import run_cells
from tqdm import tqdm

from ipyrefine.core.model import Usage
from ipyrefine.core.ports import Model
from ipyrefine.kernel import variables

_HERE = Path(__file__).parent
_PLAN = arms.Plan()
_EQUALITY = (_HERE / "equality.py").read_text("utf-8")

_ANIMALS = """\
df = pd.DataFrame(
    {
        "animal": ["dog", "cat", "snake", "cat", "dog", "snake", "cat", "dog", "cat", "dog"],
        "age": [3.5, 2, 1, np.nan, 4, 2.5, np.nan, 6, 9, 2],
        "visits": [2, 1, 1, 3, 2, 1, 2, 3, 1, 2],
        "priority": ["no", "yes", "no", "yes", "no", "no", "yes", "no", "yes", "no"],
    },
    index=list("abcdefghij"),
)
"""
_DAYS = """\
days = pd.bdate_range("2015-01-01", "2015-12-31")
s = pd.Series(np.random.rand(len(days)), index=days)
"""
_ROUTES = """\
df = pd.DataFrame(
    {
        "From_To": ["oslo_BERGEN", "Rome_milan", "LyoN_Nice", "Graz_wien"],
        "Flight": [1012, np.nan, 1032, np.nan],
        "Carrier": ["Nordic ", "<Alfa>", "(Aero Sud)", "42 Air"],
    }
)
"""
# Drawing the same numbers again gives the same frame: a draft may repeat the line that made it.
_HEAD, _SEED = "import numpy as np\nimport pandas as pd\n", "np.random.seed(0)\n"


class Puzzle(NamedTuple):
    """What a puzzle needs besides its question.

    Attributes:
        setup: the code that makes its frame; empty where the solution starts with that.
        words: what the question does not say: the names of the frame and of the result.
        result: the name that holds the result.
        ordered: whether the order of rows counts.
    """

    setup: str = ""
    words: str = "Assign the result to `result`."
    result: str = "result"
    ordered: bool = False


_OF_DF = "The DataFrame is `df`. Assign the result to `result`."
PUZZLES = {
    8: Puzzle(_ANIMALS, _OF_DF),
    10: Puzzle(_ANIMALS, _OF_DF),
    12: Puzzle(_ANIMALS, _OF_DF),
    13: Puzzle(_ANIMALS, "The DataFrame is `df`.", result="df"),
    14: Puzzle(_ANIMALS),
    15: Puzzle(_ANIMALS),
    18: Puzzle(_ANIMALS, ordered=True),
    20: Puzzle(_ANIMALS, "The DataFrame is `df`.", result="df"),
    22: Puzzle(),
    23: Puzzle(words=_OF_DF),
    25: Puzzle(words=_OF_DF),
    26: Puzzle(),
    30: Puzzle(words=_OF_DF),
    32: Puzzle(),
    34: Puzzle(_DAYS),
    37: Puzzle(),
    39: Puzzle(_ROUTES, "The DataFrame is `df`.", result="temp"),
}
_NO_VARIABLES = {"puzzle 37"}  # dates alone, so both arms send the same prompt
LEFT_OUT = {
    27: "its solution needs Series.sum(level=0), which pandas 2 removed",
    36: "its solution needs the frequency 4M, which pandas 3 removed",
    45: "its solution needs MultiIndex.is_lexsorted(), which pandas 2 removed",
    56: "a plot, which no value can be compared with",
    59: "its frame comes from a function that the set does not hold",
    60: "a plot, of that frame",
}


class Case(NamedTuple):
    """A task in a notebook.

    Attributes:
        name: for messages and tables.
        text: the task in words.
        setup: the code of the cells above.
        solution: the reference solution.
        result: the name that holds the result.
        ordered: whether the order of rows counts.
    """

    name: str
    text: str
    setup: str
    solution: str
    result: str
    ordered: bool

    profile = "code"  # as for a code cell whose button starts the loop

    @property
    def namespace(self) -> dict[str, Any]:
        """The notebook's variables."""
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(self.setup, names)
        return names

    async def run(self, text: str) -> "Result":
        """Return what comes of a cell below the setup."""
        expected = (self.setup, self.solution, self.result)
        words = ", ".join([self.result, *map(repr, expected), f"ordered={self.ordered}"])
        compare = f"import equality as _equality\n_equality.require_result({words})"
        files = {"equality.py": _EQUALITY}
        done, error = await run_cells([self.setup, text, compare], files)
        return Result(bool(text.strip()) and done >= 2, done == 3, error)


class Result(NamedTuple):
    """What came of a cell.

    Attributes:
        runs: whether it ran to its end.
        right: whether it gives what the solution gives.
        error: what ended it, or what it gives instead.
    """

    runs: bool
    right: bool
    error: str


class Arm(NamedTuple):
    """What one arm came to on a task."""

    result: Result
    usage: Usage


class Row(NamedTuple):
    """What came of one task."""

    name: str
    without: Arm
    known: Arm


async def run_case(case: Case, model: Model) -> Row:
    """Let the model write the cell in both arms, and run what it writes."""
    return Row(case.name, await _write(case, model, ["all"]), await _write(case, model))


def find_variables(case: Case, without: Iterable[str] = ()) -> variables.Variables:
    """Return the notebook's variables that the task is about, as `%%refine` finds them."""
    return variables.find(case.namespace, text=case.text, without=without)


async def _write(case: Case, model: Model, without: Iterable[str] = ()) -> Arm:
    meter = Meter(model)
    draft = await arms.write_draft(case, meter, _PLAN, find_variables(case, without))
    return Arm(await case.run(draft.text), meter.usage)


# The cases.


def load(name: str, folder: Path) -> list[Case]:
    """Return the cases of a set.

    Raises:
        SystemExit: its file is not there.
    """
    if name == "own":
        return [_own_case(fields) for fields in measure.load_cases(_HERE, "frames")]
    puzzles = [_puzzle_case(fields) for fields in measure.load_cases(folder, "pandas_puzzles")]
    return [puzzle for puzzle in puzzles if puzzle]


def _own_case(fields: Mapping[str, Any]) -> Case:
    return Case(text=fields["task"], **{n: fields[n] for n in Case._fields if n != "text"})


def _puzzle_case(fields: Mapping[str, str]) -> Case | None:
    """Return a puzzle as a case; None for one that is left out."""
    number, question = _read_question(fields["question"])
    if number in LEFT_OUT:
        return None
    puzzle = PUZZLES[number]
    frame, solution = _split_solution(fields["solution"])
    return Case(
        name=f"puzzle {number}",
        text=f"{question}\n\n{puzzle.words}",
        setup=f"{_HEAD}{_SEED}{puzzle.setup or frame}{_SEED}",
        solution=solution,
        result=puzzle.result,
        ordered=puzzle.ordered,
    )


def _read_question(question: str) -> tuple[int, str]:
    """Return a puzzle's number, and its question without what stands before that."""
    _, number, text = re.split(r"\*\*(\d+)\.\*\* ", question)
    return int(number), text.strip()


def _split_solution(solution: str) -> tuple[str, str]:
    """Return the part of a solution that makes its frame, and the rest.

    The first expression of the rest is its result: the others are further ways to the same one.
    """
    body = ast.parse(solution).body
    starts = [n for n, node in enumerate(body, start=1) if _makes_frame(node)]
    start = max(starts, default=0)
    rest = list[ast.stmt]()
    for node in body[start:]:
        if isinstance(node, ast.Expr):
            target = [ast.Name("result", ast.Store())]
            rest.append(ast.Assign(target, node.value, lineno=node.lineno))
            break
        rest.append(node)
    frame, solution = (ast.unparse(ast.Module(part, [])) + "\n" for part in (body[:start], rest))
    return frame.lstrip("\n"), solution


def _makes_frame(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "df"


async def validate(cases: Sequence[Case]) -> None:
    """Run the solutions and a cell that does nothing, and look for what is known of variables."""
    faults = []
    for case in tqdm(cases, unit="task"):
        solved = await case.run(case.solution)
        if not solved.right:
            faults.append(f"{case.name}: the solution fails, {solved.error}")
        if (await case.run("pass")).right:
            faults.append(f"{case.name}: a cell that does nothing passes")
        if not find_variables(case).found and case.name not in _NO_VARIABLES:
            faults.append(f"{case.name}: it names no variable")
    print("\n".join([*faults, f"{len(cases)} tasks validated, {len(faults)} faults."]))
    sys.exit(bool(faults))


# The tables.


def report(rows: Sequence[Row], what: str) -> str:
    """Return the tables on some rows.

    Args:
        rows: what came of the tasks.
        what: the title.
    """

    def counted(name: str, holds: Callable[[Arm], bool]) -> tuple[str, ...]:
        def without(row: Row) -> bool:
            return holds(row.without)

        def known(row: Row) -> bool:
            return holds(row.known)

        gain = measure.gain(rows, known, without)
        return name, measure.share(rows, without), measure.share(rows, known), gain

    def used(name: str, read: Callable[[Usage], float | None]) -> tuple[str, ...]:
        both = ([row.without for row in rows], [row.known for row in rows])
        return name, *(f"{sum(read(arm.usage) or 0 for arm in some):,.0f}" for some in both), ""

    lines = [
        counted("runs", lambda arm: arm.result.runs),
        counted("gives what the solution gives", lambda arm: arm.result.right),
        used("prompt tokens", lambda usage: usage.prompt_tokens),
        used("completion tokens", lambda usage: usage.completion_tokens),
        used("seconds", lambda usage: usage.seconds),
    ]
    heads = ["", "without", "with", "with minus without, points"]
    cells = [(row.name, _outcome(row.without), _outcome(row.known)) for row in rows]
    return "\n\n".join(
        [
            f"## {what}, {len(rows)} tasks",
            measure.table(heads, lines),
            "All intervals: 95 %, bootstrap over tasks.",
            measure.table(["task", "without", "with"], cells),
        ]
    )


def _outcome(arm: Arm) -> str:
    runs, right, error = arm.result
    if right:
        return "right"
    return f"{'runs, ' if runs else ''}{measure.short(error)}"


_SETS = {"own": "Tasks on own frames", "puzzles": "100-pandas-puzzles"}


def main() -> None:
    """Run a set and print its tables."""
    parser = measure.parser(__doc__)
    parser.add_argument("set", choices=_SETS)
    parser.add_argument("--validate", action="store_true", help="test the cases instead")
    options: argparse.Namespace = parser.parse_args()
    cases = load(options.set, options.data)
    places = measure.task_range(options.tasks, f"0-{len(cases) - 1}", len(cases) - 1)
    cases = [cases[place] for place in places]
    if options.set == "puzzles":
        print("\n".join(f"Left out: puzzle {number}, {why}." for number, why in LEFT_OUT.items()))
    if options.validate:
        asyncio.run(validate(cases))
    path = measure.replies_path(f"frames-{options.set}", options.model, options.replies)
    replies = measure.Replies(options.model, path, ask=options.ask)

    def note(rows: Sequence[Row]) -> str:
        without, known = (sum(arm.result.right for arm in some) for some in _columns(rows))
        return f"right {without} without and {known} with, of {len(rows)}"

    rows = measure.collect(
        _SETS[options.set], cases, replies, lambda case: run_case(case, replies), note
    )
    if rows:
        print(f"\n{report(rows, f'{_SETS[options.set]}, {options.model}')}\n")
    measure.stop(replies, len(rows), len(cases))


def _columns(rows: Sequence[Row]) -> tuple[list[Arm], list[Arm]]:
    return [row.without for row in rows], [row.known for row in rows]


if __name__ == "__main__":
    main()
