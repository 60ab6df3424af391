"""Read what running a text did to data: within bounds, without secrets."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from ipyrefine.core.model import MAX_CELL, Condition, Effect, Output
from ipyrefine.core.syntax import read_literal
from ipyrefine.kernel.redaction import HIDDEN, clean, is_secret_name, tidy
from ipyrefine.sandbox.sandbox import Change, Event, field_of

_MOST = 10
_SIDES = {"before", "after"}
# What these are said of gives and changes nothing that can be seen.
_UNSEEN = ("nothing", "none")


def read_effects(
    events: Iterable[Event],
    outputs: Sequence[Output] = (),
    conditions: Sequence[Condition] = (),
    files: Iterable[Change] = (),
) -> tuple[Effect, ...]:
    """Return what a report says that a text did, the most telling first.

    Sums of first rows are left out, and so is that a text gives nothing if it shows something.
    """
    reported = field_of(events, "effects")
    found = []
    for one in reported[:_MOST] if isinstance(reported, list) else ():
        try:
            effect = Effect.model_validate(_tidy(one))
        except (ValidationError, TypeError, AttributeError, KeyError, RecursionError):
            continue  # only the text can have written that
        unseen = effect.kind == "answer" and effect.cause in _UNSEEN
        if not (unseen and outputs) and not (effect.kind == "total" and conditions):
            found.append(effect)
    of_files = [
        Effect(
            kind="file",
            name=clean(path, MAX_CELL),
            cause="delete" if after is None else "write" if before is None else "overwrite",
            count=after or 0,
            total=before or 0,
        )
        for path, before, after in files
    ]
    of_files.sort(key=lambda one: one.cause == "write")  # first what is lost
    return (*dict.fromkeys(found), *of_files[:_MOST])


def find_lost_store(effects: Iterable[Effect]) -> Effect | None:
    """Return the first effect that says that pandas left what the text stores into as it was."""
    return next((one for one in effects if one.kind == "unchanged" and one.cause), None)


def find_unwanted(effects: Iterable[Effect]) -> Effect | None:
    """Return a fact that no task can want: all values of the answer are missing.

    Those of one column may be, as the deviations in groups of one row.
    """
    odd = (one for one in effects if one.kind == "answer" and not one.column)
    return next((one for one in odd if one.cause == "missing"), None)


def _tidy(effect: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = tidy(effect)
    # Of a column the values decide; else a name does, or a key of a dict.
    names = () if effect.get("column") else (effect.get("name", ""), *effect.get("values", ()))
    for side in told.keys() & _SIDES:
        value = read_literal(effect[side])
        told[side] = HIDDEN if any(is_secret_name(x, value) for x in names) else told[side]
    return told
