"""`%refine` words → a decision: the same decisions as the panel's buttons, typed."""

import re
from collections.abc import Callable

from ipyrefine.core.records import Finding, Outcome, Severity
from ipyrefine.core.runs import Decision, Run
from ipyrefine.errors import UsageError
from ipyrefine.notebook.options import parts
from ipyrefine.profiles import named_criteria

_FINDING = re.compile(r"f\d+,?")


def decision(run: Run, name: str, words: list[str]) -> Decision:
    """Read a command's words.

    Args:
        run: the run it is about.
        name: one of `DECISIONS`.
        words: what stands after it.

    Raises:
        UsageError: a word is missing or means nothing here.
    """
    return DECISIONS[name](run, list(words))


def iteration(run: Run, words: list[str]) -> int | None:
    """Read the number of an iteration from the first word, and take it off; None without one.

    Raises:
        UsageError: there is no such iteration.
    """
    if not words:
        return None
    last = len(run.iterations) - 1
    word = words.pop(0)
    if not word.isdigit() or int(word) > last:
        raise UsageError(f"There is no iteration {word!r}; there are 0 to {last}.")
    return int(word)


def _accept(run: Run, words: list[str]) -> Decision:
    number = iteration(run, words)
    if number is None and run.chosen:
        number = run.chosen.number
    return Decision(kind="accept", iteration=number)


def _override(run: Run, words: list[str]) -> Decision:
    given = words.pop(0) if words else ""
    if given not in ("pass", "fail"):
        raise UsageError('Say which: %refine override pass "reason", or override fail "reason".')
    outcome = Outcome.PASS if given == "pass" else Outcome.NEEDS_IMPROVEMENT
    number = iteration(run, words) if words and words[0].isdigit() else None
    return Decision(kind="override", iteration=number, outcome=outcome, text=" ".join(words))


def _continue(run: Run, words: list[str]) -> Decision:
    return Decision(kind="continue", rounds=_rounds(words), text=" ".join(words))


def _branch(run: Run, words: list[str]) -> Decision:
    number, rounds = iteration(run, words), _rounds(words)
    return Decision(kind="branch", iteration=number, rounds=rounds, text=" ".join(words))


def _rounds(words: list[str]) -> int:
    return int(words.pop(0)) if words and words[0].isdigit() else 1


def _select(run: Run, words: list[str]) -> Decision:
    findings, said = _findings(words)
    return Decision(kind="select", findings=findings, text=said)


def _dismiss(run: Run, words: list[str]) -> Decision:
    findings, said = _findings(words)
    return Decision(kind="dismiss", findings=findings, text=said)


def _add(run: Run, words: list[str]) -> Decision:
    """Read a new finding, or other words for the one whose id comes first."""
    named, _ = _findings(words[:1])
    known = {f.id: f for i in run.iterations for f in i.findings if f.id in named}
    before = next(iter(known.values()), None)
    if named and not before:
        raise UsageError(f"There is no finding {named[0]!r} in this run.")
    words = words[len(named) :]
    severity = before.severity if before else Severity.BLOCKING
    if words and words[0] in tuple(Severity):
        severity = Severity(words.pop(0))
    if not 1 <= len(words) <= 3:
        raise UsageError(
            'Put the finding in quotes: %refine add "the problem" ["words of the text"] ["the fix"]'
            ', or %refine add f2 "…" to say f2 in other words.'
        )
    problem, quote, fix = [*words, *_rest(before, len(words))]
    criterion = before.criterion if before else "yours"
    own = own_finding(
        problem, id="".join(named), criterion=criterion, quote=quote, fix=fix, severity=severity
    )
    return Decision(kind="add", finding=own)


def _rest(before: Finding | None, given: int) -> list[str]:
    """What is not said of a finding's problem, quote and fix stays as it was."""
    return ["", before.quote if before else "", before.fix if before else ""][given:]


def _guide(run: Run, words: list[str]) -> Decision:
    return Decision(kind="guide", text=" ".join(words))


def _rubric(run: Run, words: list[str]) -> Decision:
    target = None
    if words and re.fullmatch(r"[01]?\.?\d+", words[-1]):
        target = float(words.pop())
    return rubric(run, " ".join(words), target)


def own_finding(
    problem: str,
    *,
    id: str = "",  # noqa: A002 - the record's own word
    criterion: str = "yours",
    quote: str = "",
    fix: str = "",
    severity: Severity = Severity.BLOCKING,
) -> Finding:
    """A finding of the user's; its id is given when it is taken up, unless it replaces one."""
    return Finding(
        id=id,
        criterion=criterion,
        severity=severity,
        quote=quote,
        problem=problem,
        fix=fix,
        author="user",
    )


def rubric(run: Run, names: str, target: float | None) -> Decision:
    """A change of what is judged: criteria as ``a, b, c``, and the score that passes.

    Raises:
        UsageError: the target is no score.
    """
    if target is not None and not 0 <= target <= 1:
        raise UsageError(f"The target is a score from 0 to 1, not {target:g}.")
    return Decision(
        kind="rubric",
        criteria=named_criteria(parts(names), run.task.criteria if run.task else ()),
        target=target,
    )


def _findings(words: list[str]) -> tuple[tuple[str, ...], str]:
    """The findings named first, and the words after them."""
    named = []
    while words and _FINDING.fullmatch(words[0]):
        named.append(words.pop(0).rstrip(","))
    return tuple(named), " ".join(words)


DECISIONS: dict[str, Callable[[Run, list[str]], Decision]] = {
    "accept": _accept,
    "add": _add,
    "branch": _branch,
    "continue": _continue,
    "dismiss": _dismiss,
    "guide": _guide,
    "override": _override,
    "rubric": _rubric,
    "select": _select,
}
