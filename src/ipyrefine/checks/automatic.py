"""Find the checks that a task's own words ask for; nobody has to name them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ipyrefine.core.model import Task
from ipyrefine.core.ports import Check
from ipyrefine.errors import UsageError, did_you_mean

_NAMES = ("examples", "agreement", "run", "constraints")


class Demands(NamedTuple):
    """What a task demands of its text.

    Attributes:
        checks: the checks to add.
        phrases: what was found, for people: ``3 examples``, or the name of a check.
    """

    checks: tuple[Check, ...] = ()
    phrases: tuple[str, ...] = ()


NOTHING = Demands()


def find_demands(
    task: Task,
    checks: Sequence[Check],
    *,
    several: bool = False,
    without: Sequence[str] = (),
    files: Mapping[str, bytes] | None = None,
    runs: bool = False,
) -> Demands:
    """Return the checks of what a task states, in addition to the present ones.

    Args:
        task: the task.
        checks: the checks that the user named; none of them is added once more.
        several: whether several drafts are written, so that they can be compared.
        without: names of checks to leave out; ``all`` for all of them.
        files: files to put next to checked code, such as `kernel.variables.Variables.files`.
        runs: whether the text is run on these files' copies of variables.

    Raises:
        UsageError: a name to leave out is not one of these checks.
    """
    check_names(without)
    if "all" in without or task.is_foreign:
        return NOTHING
    named = {check.name for check in checks}
    if task.form == "code":
        named = {name.split()[0] for name in named if name}
        checks, phrases = _of_code(task, named, set(without), several, files or {})
        if runs and "run" not in named | set(without):
            from ipyrefine.checks.python import RunOnCopies

            checks, phrases = (*checks, RunOnCopies(files=files)), (*phrases, "a run on copies")
        return Demands(checks, phrases)
    if "constraints" in without:
        return NOTHING
    from ipyrefine.checks.demands import read_demands
    from ipyrefine.checks.registry import resolve

    stated = tuple(name for name in read_demands(task.text) if name not in named)
    return Demands(resolve(stated, {}), stated)


def check_names(names: Sequence[str]) -> None:
    """Refuse a name that is none of the checks that a task's demands may add.

    Raises:
        UsageError: there is such a name.
    """
    for name in names:
        if name not in (*_NAMES, "all"):
            known = ", ".join(_NAMES)
            hint = did_you_mean(name, _NAMES)
            raise UsageError(f"--no-check takes {known} or all, not {name!r}.{hint}")


def _of_code(
    task: Task, named: set[str], without: set[str], several: bool, files: Mapping[str, bytes]
) -> Demands:
    from ipyrefine.checks.agreement import Agreement
    from ipyrefine.checks.examples import Examples
    from ipyrefine.core.stated import stated_examples

    count = len(stated_examples(task))
    phrases = (f"{count} example{'' if count == 1 else 's'}",) if count else ()
    if several and "agreement" not in named and not {"agreement", "examples"} & without:
        return Demands((Agreement(files=files),), phrases)  # it runs the examples, too
    if not count or "examples" in without:
        return NOTHING
    if {"agreement", "examples"} & named:
        return Demands((), phrases)
    return Demands((Examples(files=files),), phrases)
