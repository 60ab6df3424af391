"""`%refine COMMAND`: the decisions of the panel, for every front-end."""

from typing import Any

from ipyrefine.errors import UsageError
from ipyrefine.loop.records import Outcome
from ipyrefine.loop.runs import Decision

COMMANDS = ("accept", "apply", "continue", "models", "override", "profiles", "show")


async def command(magics: Any, words: list[str]) -> None:
    """Carry out one command on the latest run.

    Raises:
        UsageError: there is no such command, no run yet, or no such iteration.
    """
    name, *rest = words or [""]
    if name not in COMMANDS:
        raise UsageError(f"%refine knows {', '.join(COMMANDS)}; {name or 'nothing'!r} is not one.")
    if name == "profiles":
        from ipyrefine.notebook.listing import show_profiles

        show_profiles()
        return
    if name == "models":
        from ipyrefine.providers.weights import WEIGHTS, find

        for model in WEIGHTS:
            print(f"{model}: {'here' if find(model) else f'ipyrefine pull {model}'}")
        return
    cell = magics.latest
    if cell is None or not cell.session.run.iterations:
        raise UsageError("There is no run yet: start one with a %%refine cell.")
    await _steer(cell, name, rest)


async def _steer(cell: Any, name: str, rest: list[str]) -> None:
    if name == "show":
        from ipyrefine.render.text import record_text

        number = _number(cell, rest)
        run = cell.session.run
        print(record_text(run) if number is None else run.iterations[number].text)
    elif name == "apply":
        print(await cell.apply(_number(cell, rest)))
    else:
        await cell.steer(_decision(cell, name, rest))


def _decision(cell: Any, name: str, rest: list[str]) -> Decision:
    if name == "accept":
        number = _number(cell, rest)
        if number is None and cell.session.run.chosen:
            number = cell.session.run.chosen.number
        return Decision(kind="accept", iteration=number)
    if name == "continue":
        rounds = int(rest.pop(0)) if rest and rest[0].isdigit() else 1
        return Decision(kind="continue", rounds=rounds, text=" ".join(rest))
    if not rest or rest[0] not in ("pass", "fail"):
        raise UsageError('Say which: %refine override pass "reason", or override fail "reason".')
    outcome = Outcome.PASS if rest[0] == "pass" else Outcome.NEEDS_IMPROVEMENT
    return Decision(kind="override", outcome=outcome, text=" ".join(rest[1:]))


def _number(cell: Any, rest: list[str]) -> int | None:
    if not rest:
        return None
    last = len(cell.session.run.iterations) - 1
    if not rest[0].isdigit() or int(rest[0]) > last:
        raise UsageError(f"There is no iteration {rest[0]!r}; there are 0 to {last}.")
    return int(rest[0])
