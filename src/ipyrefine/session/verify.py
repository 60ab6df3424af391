"""Run the suites that a notebook's records carry again: in the sandbox, and without a model."""

import builtins
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from ipyrefine.checks.evaluation import Evaluation
from ipyrefine.checks.suite import Suite
from ipyrefine.core.decisions import Override
from ipyrefine.core.model import Outcome
from ipyrefine.core.readers import OWN
from ipyrefine.core.run import Run
from ipyrefine.core.stored import OtherVersion
from ipyrefine.core.syntax import names_at_top, names_used, tree_of
from ipyrefine.core.table import Result
from ipyrefine.errors import CheckNotRun, UsageError
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.variables import Copies
from ipyrefine.render import say
from ipyrefine.render.escape import plain
from ipyrefine.session.export import Kept, kept_suite
from ipyrefine.session.record import Recorded, holds_text, read_content, read_one, stored_records

State = Literal["holds", "fails", "not confirmed", "not run", "no tests"]
_NO_MODULE = re.compile(r"No module named '[\w.]+'")
_NOUNS = {"examples": "example", "confirmed": "result"}


class Verified(NamedTuple):
    """The result for one record.

    Attributes:
        cell: the number of the cell that shows it, from 1; 0 for none.
        task: the task's first line.
        state: of its suite; ``not confirmed`` where it holds, but the verdict rests on something
            else; ``fails`` for a record that is damaged, too.
        why: how much holds, the first failing call, or why nothing was run.
        note: what the sandbox did not protect, for people; empty for nothing.
    """

    cell: int
    task: str
    state: State
    why: str
    note: str = ""

    def __str__(self) -> str:
        place = f"cell {self.cell}" if self.cell else "run"
        parts = filter(None, [f"{place}: {self.state} ({self.why})", self.task])
        return " ".join(plain(" · ".join(parts)).split())


async def verify(path: Path) -> list[Verified]:
    """Run the suite of each record in a file again, on what an accepted text's cell holds now.

    Raises:
        UsageError: the file cannot be read.
    """
    found = []
    for stored in stored_records(read_content(path)):
        try:
            one = read_one(stored, path)
        except UsageError as error:
            damaged = not isinstance(error.__context__, OtherVersion)
            found.append(Verified(stored.cell, "", "fails" if damaged else "not run", str(error)))
        else:
            found.append(await _verify(one))
    return found


async def _verify(one: Recorded) -> Verified:
    run, suite, note = one.run, kept_suite(one.run), ""
    changed = one.now is not None and not holds_text(one.now, run.text)
    state: State = "not run"
    if not any(suite):
        state, why = "no tests", "no examples, confirmed results or critic's tests"
        if lacking := _unrepeated(run, ()):
            state, why = "not confirmed", lacking
    elif not one.whole or not run.text:
        why = "its texts were cut to fit the notebook" if run.text else "it has no text"
    else:
        text = one.now if changed and one.now else run.text
        state, why, note = await _try(run, suite, text)
        why += "; its cell has changed since" if changed else ""
    return Verified(one.cell, run.setup.subject.partition("\n")[0], state, why, note)


async def _try(run: Run, suite: Kept, text: str) -> tuple[State, str, str]:
    """Return a suite's state on a text, how much holds, and what was not protected."""
    why = "no variables of the notebook are here"
    copies = Copies(absent=dict.fromkeys(_needed(run, suite), why))
    evaluation = Evaluation(text, seconds=10, copies=copies)
    tried: list[Result] = []
    try:
        examples = (*suite.stated, *suite.confirmed)
        results = await evaluation.results(examples)
    except CheckNotRun as error:
        return "not run", str(error), ""
    for number, one in enumerate(results):
        noun = "example" if number < len(suite.stated) else "result"
        absence = evaluation.absence if one.not_run else _missing_module(one.shows)
        passed = one.passed or (None if absence else False)
        line = absence or evaluation.load_error or one.shows
        tried.append(Result(name=noun, passed=passed, shows=line))
    of_tests = await Suite(copies)(suite.tests, text, run.task)
    for name, result in of_tests.items():
        lack = "" if result.passed else _missing_module(result.shows)
        line = lack or (result.shows if result.passed is None else f"{name}: {result.shows}")
        tried.append(Result(name="test", passed=None if lack else result.passed, shows=line))
    tallies = ", ".join(_tallies(tried))
    failed = next((one.shows for one in tried if one.passed is False), "")
    left = next((one.shows for one in tried if one.passed is None), "")
    left = left.removeprefix("Not run: ").rstrip(".")
    note = evaluation.protection_note
    if failed:
        return "fails", f"{failed}; {tallies}", note
    if not tallies:
        return "not run", left, note
    if left:
        return "not confirmed", f"{tallies}; others not run: {left}", note
    if lacking := _unrepeated(run, {one.name for one in tried}):
        return "not confirmed", f"{tallies}; {lacking}", note
    by_user = run.verdict and run.verdict.passed and run.verdict.basis == "user"
    return "holds", tallies + "; PASS is the user's word" * bool(by_user), note


def _unrepeated(run: Run, tried: Collection[str]) -> str:
    """Return what the verdict rests on and was not run again; empty for nothing.

    In `tried` are the nouns of what was run again, and holds.
    """
    verdict = run.verdict
    said = (d for d in run.decisions if isinstance(d, Override) and d.outcome is Outcome.PASS)
    if verdict is None or (verdict.basis == "user" and (any(said) or not verdict.passed)):
        return ""
    # What a check of the user's own decided, or could not be run to decide.
    deciding = [
        one
        for one in (run.chosen.evidence if run.chosen else ())
        if (
            one.decisive and one.basis in OWN
            if one.passed
            else one.counts
            and (one.passed is False or one.not_run)
            and not (one.by_examples or one.basis == "run")
        )
    ]
    names = [say.check_name(one.name) for one in deciding]
    again = {_NOUNS.get(verdict.basis)} & {*tried} or verdict.basis in {e.basis for e in deciding}
    if verdict.passed and not again:
        names.append(say.SOURCES.get(verdict.basis, f"`{verdict.basis}`"))
    found = " and ".join(names)
    return f"the verdict rests on {found}, which can't be run from this file" if found else ""


def _tallies(tried: list[Result]) -> Iterator[str]:
    for noun in ("example", "result", "test"):
        ran = [one.passed for one in tried if one.name == noun and one.passed is not None]
        if ran:
            source = " confirmed in this file" if noun == "result" else ""
            yield f"{sum(ran)} of {say.count(len(ran), noun)}{source}"


def _missing_module(error: str) -> str:
    missing = _NO_MODULE.search(error)
    return missing[0] if missing else ""


def _needed(run: Run, suite: Kept) -> set[str]:
    """Return the notebook's names that a suite needs, as the recorded text lacks them."""
    examples = [one.code for one in (*suite.stated, *suite.confirmed)]
    text = tree_of(python_part(run.text).code)
    trees = [text, *map(tree_of, [*examples, *(one.code for one in suite.tests)])]
    used, own = set[str]().union(*map(names_used, trees)), names_at_top(text.body)
    return (used | {one.name for one in run.task.materials}) - own - {*dir(builtins)}
