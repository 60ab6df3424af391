"""Decisions → Run: what a user may decide, and what each decision changes."""

from collections.abc import Callable, Iterable
from typing import Any

from ipyrefine.core.records import Finding, Outcome, Severity, Status, Verdict
from ipyrefine.core.runs import Decision, Iteration, Run
from ipyrefine.core.usage import Usage
from ipyrefine.errors import UsageError


def require_valid(run: Run, decision: Decision) -> None:
    """Refuse a decision that cannot be carried out on a run.

    Raises:
        UsageError: there is no such text or finding, or a part of the decision is missing.
    """
    if decision.kind == "rubric":
        if not decision.criteria and decision.target is None:
            raise UsageError("A new rubric needs criteria or a target.")
        return
    if not run.iterations:
        if decision.kind == "continue" and decision.iteration is None and not decision.text:
            return  # the first text is still to be written
        raise UsageError("There is no text yet that you could decide on: continue first.")
    last = len(run.iterations) - 1
    if decision.iteration is not None and not 0 <= decision.iteration <= last:
        raise UsageError(f"There is no iteration {decision.iteration}; there are 0 to {last}.")
    if decision.kind == "branch" and decision.iteration is None:
        raise UsageError("Say which iteration to branch from.")
    if decision.kind == "override" and decision.outcome is None:
        raise UsageError("Say which verdict you give instead.")
    if decision.kind in ("edit", "guide") and not decision.text.strip():
        raise UsageError(f"There is no text to {decision.kind} with.")
    if decision.kind in ("select", "dismiss"):
        _require_findings(run, decision)
    if decision.kind == "add":
        _require_finding(run, decision)


def decide(run: Run, decision: Decision) -> Run:
    """Apply a decision: what it changes, beside being on record."""
    stopped = run.stop_reason is not None
    number = decision.iteration
    if number is None:
        number = run.chosen.number if run.chosen else 0
    if decision.settles:
        decision = decision.model_copy(update={"iteration": number})
    run = run.model_copy(
        update={
            "decisions": (*run.decisions, decision),
            "stop_reason": None,
            "message": "",
            "heard": (),  # what is asked next may be another question
        }
    )
    if decision.kind == "rubric":
        run = _change_rubric(run, decision)
    if not run.iterations or decision.kind == "accept":
        return run
    if change := _CHANGES.get(decision.kind):
        run = change(run, number, decision)
    if decision.settles:
        return run
    if decision.kind in _REMARKS:
        return run.model_copy(update={"held": run.held or stopped})
    return _go_on(run, decision, number, stopped)


def append(run: Run, iteration: Iteration, number: int | None = None) -> Run:
    """Add an iteration, with what was consumed before its text was there.

    Args:
        run: the run.
        iteration: the iteration, the last by its number.
        number: under which number it was asked for, when that is another one.
    """
    asked = iteration.number if number is None else number
    consumed = run.unassigned.get(asked, Usage())
    return run.model_copy(
        update={
            "iterations": (*run.iterations, iteration.model_copy(update={"usage": consumed})),
            "unassigned": {n: usage for n, usage in run.unassigned.items() if n != asked},
            "heard": tuple(heard for heard in run.heard if heard.iteration != asked),
        }
    )


def amend(run: Run, number: int, **changes: Any) -> Run:
    """Change fields of one iteration."""
    iterations = list(run.iterations)
    iterations[number] = iterations[number].model_copy(update=changes)
    return run.model_copy(update={"iterations": tuple(iterations)})


def new_id(run: Run, taken: int = 0) -> str:
    """The next free finding id of a run, ``taken`` more being in use already."""
    known = {finding.id for iteration in run.iterations for finding in iteration.findings}
    return f"f{len(known) + taken + 1}"


def quotes(text: str, quote: str) -> bool:
    """Whether a text holds a quote; white space, and marks around the quote, are let pass."""
    flat = " ".join(text.split())
    words = " ".join(quote.split())
    return words in flat or words.strip("\"'`\N{HORIZONTAL ELLIPSIS}. ") in flat


def _require_findings(run: Run, decision: Decision) -> None:
    known = {f.id: f for iteration in run.iterations for f in iteration.findings}
    if not decision.findings:
        raise UsageError(f"Say which findings to {decision.kind}.")
    for id_ in decision.findings:
        if id_ not in known:
            raise UsageError(f"There is no finding {id_!r} in this run.")
        if decision.kind == "dismiss" and known[id_].binding:
            raise UsageError(
                f"{id_} comes from the check {known[id_].found_by}, which cannot be dismissed: "
                "override the verdict instead."
            )


def _require_finding(run: Run, decision: Decision) -> None:
    finding, chosen = decision.finding, run.chosen
    if finding is None or not finding.problem.strip():
        raise UsageError("A finding needs a problem in words.")
    if decision.iteration is not None:
        chosen = run.iterations[decision.iteration]
    if chosen and not quotes(chosen.text, finding.quote):
        raise UsageError(f"The quoted words are not in iteration {chosen.number}.")


def _override(run: Run, number: int, decision: Decision) -> Run:
    before = run.iterations[number].verdict
    outcome = decision.outcome or Outcome.NEEDS_IMPROVEMENT
    verdict = (before or Verdict(outcome=outcome, score=None)).model_copy(
        update={"outcome": outcome, "author": "user", "why": decision.text or "Your decision."}
    )
    run = amend(run, number, verdict=verdict, overridden=decision)
    return run if decision.settles else _require(run, number, decision)


def _require(run: Run, number: int, decision: Decision) -> Run:
    """Make the user's words a blocking finding on every text, until one is judged to meet it."""
    if not decision.text.strip():
        return run
    finding = Finding(
        id=new_id(run),
        criterion="guidance",
        severity=Severity.BLOCKING,
        problem=decision.text,
        author="user",
    )
    if run.selected:
        run = run.model_copy(update={"selected": (*run.selected, finding.id)})
    return _each(run, lambda iteration: (*iteration.findings, finding))


def _select(run: Run, number: int, decision: Decision) -> Run:
    run = run.model_copy(update={"selected": decision.findings})
    return _require(run, number, decision)


def _edit(run: Run, number: int, decision: Decision) -> Run:
    """The user's own text is one more iteration, and costs none of those allowed."""
    edited = Iteration(
        number=len(run.iterations),
        parent=number,
        text=decision.text,
        author="user",
        findings=run.iterations[number].findings,
    )
    update = {"allowed": run.allowed + 1, "plateau_from": edited.number, "head": edited.number}
    return append(run, edited).model_copy(update=update)


def _dismiss(run: Run, number: int, decision: Decision) -> Run:
    change = {"status": Status.DISMISSED, "reason": decision.text}
    return _each(
        run,
        lambda iteration: (
            f.model_copy(update=change) if f.id in decision.findings else f
            for f in iteration.findings
        ),
    )


def _add(run: Run, number: int, decision: Decision) -> Run:
    """Put a finding on every text that holds its quote, in place of one with its id."""
    assert decision.finding is not None, "a finding is added only after it was found valid"
    known = {f.id for iteration in run.iterations for f in iteration.findings}
    given = decision.finding.id
    own = {"author": "user", "status": Status.OPEN, "grounded": True, "reason": ""}
    own["id"] = given if given in known else new_id(run)
    finding = decision.finding.model_copy(update=own)

    def findings(iteration: Iteration) -> Iterable[Finding]:
        if not quotes(iteration.text, finding.quote):
            return iteration.findings
        kept = tuple(finding if f.id == finding.id else f for f in iteration.findings)
        return kept if finding in kept else (*kept, finding)

    return _each(run, findings)


def _change_rubric(run: Run, decision: Decision) -> Run:
    """Judge by other criteria from now on, and every text there is once more."""
    task, limits = run.task, run.limits
    if decision.target is not None:
        limits = limits.model_copy(update={"target": decision.target})
    run = run.model_copy(update={"limits": limits})
    if task is None or not decision.criteria:
        return run
    names = {criterion.name for criterion in decision.criteria}
    gone = {criterion.name for criterion in task.criteria} - names
    dropped = {"status": Status.DISMISSED, "reason": "Its criterion was dropped."}
    run = _each(
        run,
        lambda iteration: (
            f.model_copy(update=dropped) if f.author == "model" and f.criterion in gone else f
            for f in iteration.findings
        ),
    )
    task = task.model_copy(update={"criteria": decision.criteria})
    run = run.model_copy(
        update={"iterations": tuple(i.model_copy(update=_UNCOMPARED) for i in run.iterations)}
    )
    judged = tuple(i.number for i in run.iterations if i.verdict)
    return run.model_copy(update={"task": task, "stale": judged})


def _each(run: Run, findings: Callable[[Iteration], Iterable[Finding]]) -> Run:
    """Change the findings of every iteration."""
    iterations = tuple(
        iteration.model_copy(update={"findings": tuple(findings(iteration))})
        for iteration in run.iterations
    )
    return run.model_copy(update={"iterations": iterations})


def _go_on(run: Run, decision: Decision, number: int, stopped: bool) -> Run:
    """Allow more revisions: as many as were asked for, beyond those a running loop has left."""
    rounds = max(1, decision.rounds)
    allowed = run.allowed + rounds
    if stopped:
        allowed = max(run.allowed if run.limits.step else 0, run.revisions + rounds)
    # A running loop may be about to find something better than what is the best now.
    pinned = stopped or decision.iteration is not None
    return run.model_copy(
        update={
            "allowed": allowed,
            "plateau_from": len(run.iterations) - 1,
            "head": number if pinned else run.head,
            "held": False,
            "stepped": len(run.iterations),
            "revise_asked": True,
        }
    )


_UNCOMPARED = {"compared": 0, "barred": False}
_REMARKS = ("guide", "dismiss", "add", "edit", "rubric")
_CHANGES: dict[str, Callable[[Run, int, Decision], Run]] = {
    "override": _override,
    "continue": _require,
    "branch": _require,
    "guide": _require,
    "select": _select,
    "edit": _edit,
    "dismiss": _dismiss,
    "add": _add,
}
