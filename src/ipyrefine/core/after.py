"""Say what an accepted text gave in its cell, next to what was shown of it."""

from ipyrefine.core.model import Difference, Ran

_MOST, _WIDTH = 2, 60  # sentences, and characters of a value in one


def words(ran: Ran) -> str:
    """Return what came of running an accepted text; empty where there is nothing to say."""
    match ran.how:
        case "moved" if ran.files:
            changed = _list([f"`{one}`" for one in ran.files]).replace(";", ",")
            have = "has" if len(ran.files) == 1 else "have"
            sentence = f"{changed} {have} changed since it was checked"
        case "moved":
            sentence = "ran: the notebook has moved on since it was checked"
        case "same" if ran.raised:
            sentence = f"ran: it raised {ran.raised}, as shown"
        case "same":
            order = _list([f"{_subject(one)} in another order" for one in ran.differences])
            number = "both" if ran.results == 2 else f"all {ran.results}"
            results = f"{number} results" if ran.results > 1 else "the result is"
            said = ", ".join(filter(None, [f"ran: {results} as shown", order]))
            sentence = said if ran.results else ""
        case "varies" if len(ran.differences) == 1:
            sentence = f"ran: {_subject(ran.differences[0])} changes from run to run"
        case "varies":
            sentence = f"ran: {len(ran.differences)} results change from run to run"
        case "differs":
            sentence = _list([_difference_sentence(one) for one in ran.differences])
        case _:
            raised = [f"it raised {ran.raised}"] if ran.raised else []
            done = [*map(_change_sentence, ran.differences)]
            sentence = f"ran: {_list([*raised, *done])}" if raised or done else ""
    restored = ", ".join(f"`{name}`" for name in ran.restored)
    return f"{sentence}; {restored} put back" if restored else sentence


def _list(sentences: list[str]) -> str:
    more = len(sentences) - _MOST
    return "; ".join([*sentences[:_MOST], *([f"{more} more"] if more > 0 else [])])


def _subject(one: Difference) -> str:
    name = f"`{one.name}`" if one.name else "the answer"
    column = f"`{one.column}`" if one.column else ""
    inside = f"{column} in {name}" if column and one.name else column or name
    match one.kind:
        case "total":
            return f"sum of {inside}"
        case "missing":
            return f"missing values of {inside}"
        case "dtype":
            return f"type of {inside}"
        case "columns":
            return f"columns of {name}"
        case "head":
            return f"the start of {inside}"
    return name


def _difference_sentence(one: Difference) -> str:
    if one.kind == "raised":
        shown, now = (f"it raised {w}" if w else "it ran" for w in (one.shown, one.now))
        return f"{now}; shown: {shown}"
    both = f": shown {one.shown}, now {one.now}" if _is_short(one) else ""
    return f"{_subject(one)}{both or (' differ' if one.kind == 'columns' else ' differs')}"


def _change_sentence(one: Difference) -> str:
    if one.kind == "new":
        return f"`{one.name}` is new: {one.now}"
    both = f"{_subject(one)}: {one.shown} → {one.now}"
    return both if _is_short(one) and one.now else f"`{one.name}` is changed"


def _is_short(one: Difference) -> bool:
    """Return whether both values can be told in a sentence."""
    return one.kind not in ("head", "columns") and max(len(one.shown), len(one.now)) <= _WIDTH
