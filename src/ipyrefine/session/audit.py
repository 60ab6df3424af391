"""Recompute the verdicts of recorded runs from their texts and evidence, without a model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from ipyrefine import checks
from ipyrefine.core.model import RULES, Evidence, Outcome, StopReason
from ipyrefine.core.policy import best_of, drafts_left, find_duplicate
from ipyrefine.core.ports import Check, ComparingCheck
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.verdicts import contradiction
from ipyrefine.errors import RefineError
from ipyrefine.render import labels
from ipyrefine.render.escape import plain
from ipyrefine.session.record import OMITTED, Recorded

MAX_TEXTS = 100  # of a run whose checks are run again
_ROUNDING = 0.005
# How a task's text named its variables before version 4.
_AT_HAND = (
    "These variables exist already; the code may use them by name:",
    "The task is about these:",
)
_TIMED, _SECONDS = ("examples", "agreement", "run", "lint"), 60
_VARIES = "lint"  # the check whose results depend on the version of a program
_CHANGED = "agreement"  # the check that worked otherwise under the rules of version 2


class Result(StrEnum):
    """What an audit says of a run."""

    HOLDS = "holds"
    OPINION = "opinion, not asked again"
    UNKNOWN = "cannot be recomputed"
    DIFFERS = "differs"


class Audit(NamedTuple):
    """What came of recomputing a verdict, or all verdicts of a run.

    Attributes:
        result: the outcome.
        reason: why, as a clause; empty where there is nothing to add.
    """

    result: Result
    reason: str = ""

    def __str__(self) -> str:
        """Return it in words: ``differs (iteration 1: …)``."""
        return f"{self.result} ({self.reason})" if self.reason else str(self.result)


def code_to_run(runs: Iterable[Run]) -> int:
    """Return how many recorded texts an audit would run built-in checks on."""
    return sum(1 for run in runs for one in run.iterations if list(_repeatable(run, one)))


async def audit(recorded: Recorded, *, run_checks: bool = True) -> Audit:
    """Recompute all verdicts of a run: from its evidence, and that from its texts.

    The built-in checks that need nothing of the notebook's run again in the sandbox. An older run
    is judged by the rules of its version.

    Args:
        recorded: the run, as it was read from a file.
        run_checks: whether its texts may be run.

    Returns:
        How the run's own verdict, that of its chosen text, came out; where any verdict or the stop
        differs from what it should be, that.
    """
    run = recorded.run
    if not recorded.whole:
        return Audit(Result.UNKNOWN, "its texts were cut to fit the notebook")
    if problem := _wrong_stop(run):
        return Audit(Result.DIFFERS, problem)
    audits = {}
    for iteration in run.iterations:
        if iteration.verdict is not None:
            audits[iteration.number] = await _audit_text(run, iteration, run_checks=run_checks)
            if audits[iteration.number].result is Result.DIFFERS:
                reason = f"iteration {iteration.number}: {audits[iteration.number].reason}"
                return Audit(Result.DIFFERS, reason)
    if run.chosen is None or run.chosen.number not in audits:
        return Audit(Result.UNKNOWN, "it has no verdict")
    return audits[run.chosen.number]


def summarize(audits: Sequence[Audit]) -> str:
    """Return how many runs came out how, in one line."""
    counts = Counter(one.result for one in audits)
    parts = [
        f"{counts[result]} {words if counts[result] > 1 else result.partition(',')[0]}"
        for result, words in _PLURALS.items()
        if counts[result]
    ]
    return f"{labels.count(len(audits), 'run')}: {', '.join(parts)}."


_PLURALS = {
    Result.HOLDS: "hold",
    Result.OPINION: "opinions",
    Result.UNKNOWN: "cannot be recomputed",
    Result.DIFFERS: "differ",
}


def line(number: int, run: Run, result: Audit) -> str:
    """Return one run's verdict with what its audit says, in one line."""
    label = f"{labels.iteration_label(run.chosen)} {labels.score_beside(run.verdict)}".rstrip()
    return " ".join(plain(f"{number}: {label}: {result}").split())


def _wrong_stop(run: Run) -> str:
    """Return why a run cannot have stopped as it says, or kept the text it says."""
    ruling = run.ruling
    if run.stop_reason is StopReason.OVERRIDDEN and not (ruling and ruling.settles):
        return "it says that you passed it, but no decision of yours is recorded"
    if run.stop_reason is StopReason.PASSED and not (run.verdict and run.verdict.passed):
        return "it stopped as passed, but its verdict is no PASS"
    unordered = run.limits.pairwise or run.stale or run.rules < RULES or run.stop_reason is None
    if unordered or any(one.text == OMITTED for one in run.iterations):
        return ""
    best = best_of(run)
    return f"iteration {best} ranks above the best, {run.best}" if best != run.best else ""


async def _audit_text(run: Run, iteration: Iteration, *, run_checks: bool) -> Audit:
    """Recompute the verdict of one text."""
    verdict = iteration.verdict
    assert verdict is not None, "only a verdict is recomputed"
    if iteration.text == OMITTED:
        return Audit(Result.UNKNOWN, "its text is left out of the record")
    if iteration.number in run.stale:
        return Audit(Result.UNKNOWN, "the rubric changed after it")
    repeated = find_duplicate(run, iteration) is not None
    missing = [] if repeated else _missing(run, iteration)
    outlined = any(one.text == OMITTED for one in run.iterations)
    if missing and outlined:  # the text it repeats may be one of those
        return Audit(Result.UNKNOWN, "texts are left out of the record")
    if missing:
        return Audit(Result.DIFFERS, f"it has no result of the check {missing[0]}")
    if problem := contradiction(run, iteration):
        if run.stop_reason is None:  # cut short between a critique and what follows from it
            return Audit(Result.UNKNOWN, "the run was cut short")
        return Audit(Result.DIFFERS, problem)
    unknown = "" if repeated else _not_repeatable(run, iteration)
    if not repeated and list(_repeatable(run, iteration)):
        if not run_checks:
            unknown = unknown or "its checks were not run again"
        elif iteration.number >= MAX_TEXTS:
            unknown = unknown or f"only the checks of {MAX_TEXTS} texts are run again"
        else:
            again = await _run_again(run, iteration)
            if again.result is Result.DIFFERS:
                return again
            unknown = unknown or again.reason
    if verdict.basis == "user":
        return Audit(Result.UNKNOWN, "it is your own verdict")
    if verdict.is_opinion:
        return Audit(Result.OPINION)
    if unknown and verdict.outcome is not Outcome.NOT_JUDGED:
        return Audit(Result.UNKNOWN, unknown)
    return Audit(Result.HOLDS)


def _missing(run: Run, iteration: Iteration) -> list[str]:
    """Return the checks of a run that a verified text has no result of."""
    expected = Counter(run.setup.checks)
    return list((expected - Counter(one.name for one in iteration.evidence)).elements())


def _repeatable(run: Run, iteration: Iteration) -> Iterator[Evidence]:
    """Yield the evidence that can be made again from the record alone."""
    variables = _uses_variables(run)
    for evidence in iteration.evidence:
        changed = run.rules < RULES and evidence.name.startswith(_CHANGED)
        missing = variables and evidence.basis != "constraints"
        if checks.is_self_contained(evidence.name) and not changed and not missing:
            yield evidence


def _uses_variables(run: Run) -> bool:
    """Return whether the task is about variables, which a record does not hold."""
    described = any(words in run.task.text for words in _AT_HAND)
    return described or any(one.kind == "variable" for one in run.task.materials)


def _not_repeatable(run: Run, iteration: Iteration) -> str:
    """Return which evidence cannot be made again, and why; empty where all can."""
    again = [evidence.name for evidence in _repeatable(run, iteration)]
    for evidence in iteration.evidence:
        if evidence.name in again:
            continue
        if not checks.is_self_contained(evidence.name):
            return f"the check {evidence.name} is not in the record"
        if _uses_variables(run):
            return "its code uses variables that are not in the record"
        return f"the check {evidence.name} worked otherwise in version {run.rules}"
    return ""


async def _run_again(run: Run, iteration: Iteration) -> Audit:
    """Compare the evidence of a text with what its checks come to now."""
    unknown = ""
    for before in _repeatable(run, iteration):
        try:
            [check] = checks.from_record([_patient(before)])
            now = await _evidence(run, iteration, check)
        except RefineError as error:
            unknown = unknown or f"the check {before.name} cannot be run here: {error}"
            continue
        if problem := _difference(before, now):
            if run.rules < RULES and now.passed is None:
                unknown = unknown or f"{before.name} read tasks otherwise in version {run.rules}"
            elif before.name.startswith(_VARIES):
                unknown = unknown or f"what {before.name} finds depends on its version"
            elif (needs := "ModuleNotFoundError") in now.detail and needs not in before.detail:
                unknown = unknown or "its code needs a module that is not installed here"
            else:
                return Audit(Result.DIFFERS, problem)
    return Audit(Result.UNKNOWN, unknown) if unknown else Audit(Result.HOLDS)


def _patient(evidence: Evidence) -> str:
    """Return the name of a check, with more time where it passed: this machine may be busier."""
    name = evidence.name
    timed = name.startswith(_TIMED) and "seconds=" not in name
    return f"{name} seconds={_SECONDS}" if timed and evidence.passed else name


async def _evidence(run: Run, iteration: Iteration, check: Check) -> Evidence:
    """Run a check on a text, beside the drafts it was compared with."""
    if isinstance(check, ComparingCheck):
        others = [one.text for one in run.drafts if one.number != iteration.number]
        check = check.beside(others, drafts_left(run, iteration))
    return await check(iteration.text, run.task)


def _difference(before: Evidence, now: Evidence) -> str:
    """Return how a result differs from the recorded one; empty if it does not."""
    name = before.name
    if before.passed is not now.passed:
        words = {True: "passes", False: "fails", None: "checks nothing"}
        recorded, found = words[before.passed], words[now.passed]
        first = now.detail.strip().partition("\n")[0]
        return f"{name} {found} now, recorded is that it {recorded}. {first}".rstrip(" .")
    fields = ("decisive", "required", "basis", "contested")
    for field in fields:
        if getattr(before, field) != getattr(now, field):
            return f"{name} is recorded with another {field}"
    if abs((before.score or 0.0) - (now.score or 0.0)) > _ROUNDING:
        return f"{name} scores {now.score or 0:.2f} now, recorded is {before.score or 0:.2f}"
    return ""
