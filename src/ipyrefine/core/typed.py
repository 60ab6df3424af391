"""What is typed after ``%refine`` as decisions; `actions` says which words are read by what.

Each reader takes the run and the words behind the command, which it consumes, and raises a
`UsageError` where a word is missing or means nothing here.
"""

import re
from typing import Literal, get_args

from ipyrefine.core import decisions
from ipyrefine.core.model import MAX_ITERATIONS, Outcome, named_criteria
from ipyrefine.core.points import answer
from ipyrefine.core.results import example_asked, expect, read_expectation, read_result, rows
from ipyrefine.core.run import Run
from ipyrefine.core.table import Point, Result
from ipyrefine.errors import UsageError

Place = Literal["insert", "replace", "none"]
PLACES: tuple[Place, ...] = get_args(Place)
NO_TEXT = "There is no text yet. Continue the run first."
_POINT_ID = re.compile(r"[fqt]\d+,?")
_TARGET = re.compile(r"[01]?\.?\d+")
# How the name of a text begins.
TEXT = re.compile(r"\d+|(?:your-)?(?:draft|revision|edit)(?:-\d+)?|your", re.IGNORECASE)


def accept(run: Run, words: list[str]) -> decisions.Accept:
    """Read ``[k] [insert|replace|none]``."""
    place = next((place for place in PLACES if words[-1:] == [place]), None)
    words = words[:-1] if place else [*words]
    number = parse_iteration(run, words)
    require_end("accept", words)
    if number is None and run.chosen:
        number = run.chosen.number
    return decisions.Accept(iteration=number, destination=place)


def require_end(command: str, words: list[str]) -> None:
    """Raise a UsageError for words that a command would leave unread."""
    if words:
        left = " ".join(words)[:40]
        raise UsageError(f"%refine {command} takes no {left!r}. %refine lists what it takes.")


_RULINGS = {"pass": Outcome.PASS, "improve": Outcome.NEEDS_IMPROVEMENT, "fail": Outcome.FAIL}


def override(run: Run, words: list[str]) -> decisions.Override:
    """Read ``pass|improve|fail [k] [reason]``; a number that names no text may begin a reason."""
    outcome = _RULINGS.get(words.pop(0) if words else "")
    if outcome is None:
        raise UsageError('Say which: %refine override pass "reason", or override fail "reason".')
    number = _leading_text(run, words)
    return decisions.Override(iteration=number, outcome=outcome, reason=" ".join(words))


def go_on(run: Run, words: list[str]) -> decisions.Decision:
    """Read ``[from k] [n] [guidance]``, or ``f1 f2 [guidance]``."""
    if words == ["from"]:
        raise UsageError("Say which text: %refine continue from 0.")
    if words[:1] == ["from"] and (number := _leading_text(run, rest := words[1:])) is not None:
        return decisions.Continue(iteration=number, revisions=_count(rest), guidance=" ".join(rest))
    ids = _ids(rest := [*words])
    if run.points.keys() & {*ids} or (ids and not rest):
        return decisions.Continue(points=ids, guidance=" ".join(rest))
    if words and not words[0].isdecimal() and run.stop_reason is None:
        return decisions.Guide(guidance=" ".join(words))
    return decisions.Continue(revisions=_count(words), guidance=" ".join(words))


def dismiss(_: Run, words: list[str]) -> decisions.Decision:
    """Read ``f1 [reason]``, or the name of a demand."""
    if words and not _POINT_ID.fullmatch(words[0]):
        return decisions.Drop(demand=" ".join(words))
    return decisions.Dismiss(points=_ids(words), reason=" ".join(words))


def add(run: Run, words: list[str]) -> decisions.Add:
    """Read ``[f1] [blocking|minor] "problem" ["quote"] ["fix"]``; f1 is reworded."""
    ids = _ids(words, most=1)
    if ids and ids[0] not in run.points:
        raise UsageError(f"There is no finding {ids[0]!r} in this run.")
    before = run.points.get("".join(ids)) or Point(words="", criterion=decisions.OWN)
    blocking = before.blocking
    if words and words[0] in ("blocking", "minor"):
        blocking = words.pop(0) == "blocking"
    if not 1 <= len(words) <= 3:
        raise UsageError(
            'Put the finding in quotes: %refine add "the problem" ["words of the text"] '
            '["the fix"], or %refine add f2 "…" to reword f2.'
        )
    said = {"place": before.place, "fix": before.fix}
    said |= dict(zip(("words", "place", "fix"), words, strict=False))
    filed = {"id": "".join(ids), "source": "you", "criterion": before.criterion}
    return decisions.Add(point=Point.model_validate({**filed, **said, "blocking": blocking}))


def criteria(run: Run, words: list[str]) -> decisions.Criteria:
    """Read ``criteria a, b [target]``."""
    target = float(words.pop()) if _TARGET.fullmatch(words[-1]) else None
    return change_criteria(run, " ".join(words[1:]), target)


def change_criteria(run: Run, names: str, target: float | None) -> decisions.Criteria:
    """Return the change to criteria written as ``a, b, c`` and the score that passes."""
    if target is not None and not 0 <= target <= 1:
        raise UsageError(f"The target is a score from 0 to 1, not {target:g}.")
    listed = [name.strip() for name in names.split(",") if name.strip()]
    return decisions.Criteria(criteria=named_criteria(listed, run.task.criteria), target=target)


def should(run: Run, words: list[str]) -> decisions.Decision:
    """Read ``2 VALUE``, ``2 ?``, ``f(x) == y``, or a question's id and the answer.

    A student is asked about one input only, so what they type is what their code gives there.
    """
    if len(words) > 1 and words[0] in run.points:
        return decisions.Add(point=answer(run.latest(words[0]), " ".join(words[1:])))
    if run.setup.coach:
        return decisions.Predict(gives=read_result(" ".join(words)))
    if len(words) > 1 and words[0].isdecimal():
        row, result = _numbered_row(run, words[0]), " ".join(words[1:])
        if result == "?":
            return decisions.Retract(call=row.call, setup=row.setup)
        return expect(row, result)
    return read_expectation(" ".join(words))


def confirmations(run: Run, words: list[str]) -> list[decisions.Expect]:
    """Return the decisions that some results, by their numbers, are right."""
    if run.setup.coach:
        raise UsageError("Here you predict a result: %refine should VALUE.")
    found = [_numbered_row(run, word) for word in words]
    if not found:
        raise UsageError("Say which results are right: %refine right 1 3.")
    for word, row in zip(words, found, strict=True):
        if run.chosen and example_asked(run.chosen, [row]):
            raise UsageError('Say what it should give: %refine should 1 "VALUE".')
        if row.rivals:
            raise UsageError(
                f"Of result {word} several are possible. Say which is right: "
                f'%refine should {word} "VALUE".'
            )
    return [expect(row) for row in found]


def _numbered_row(run: Run, word: str) -> Result:
    shown = rows(run, run.chosen)
    if word.isdecimal() and 1 <= int(word[:9]) <= len(shown):
        return shown[int(word) - 1]
    known = f"has results 1 to {len(shown)}" if shown else "shows no results to confirm"
    raise UsageError(f"There is no result {word[:40]}: this run {known}.")


def _leading_text(run: Run, words: list[str]) -> int | None:
    """Read and remove a text's name; a number that names none may begin a sentence."""
    rest = [*words]
    if words and TEXT.fullmatch(words[0]):
        try:
            number = parse_iteration(run, rest)
        except UsageError:
            if words[0].isdecimal() and len(words) <= 2:
                raise
        else:
            words[:] = rest
            return number
    return None


def parse_iteration(run: Run, words: list[str]) -> int | None:
    """Read an iteration's name from the first words and remove it; None without a word.

    ``draft 2``, ``revision-1`` and ``your edit`` are names; ``0`` is the first text, and another
    number alone names the one iteration that has it in its name.

    Raises:
        UsageError: there is no such iteration, or the number names several.
    """
    if not words:
        return None
    word = words.pop(0).lower().removeprefix("your-")
    if word == "your" and words:
        word = words.pop(0).lower()
    if word in ("draft", "revision", "edit") and words and words[0].isdecimal():
        word += f"-{words.pop(0)}"
    names = [
        run.name(one.number).lower().replace(" ", "-").removeprefix("your-")
        for one in run.iterations
    ]
    found = [
        number
        for number, name in enumerate(names)
        if word in (name, name.rpartition("-")[2]) or (word == "0" and not number)
    ]
    if len(found) == 1:
        return found[0]
    if not names:
        raise UsageError(NO_TEXT)
    among = ", ".join(names[number] for number in found or range(len(names)))
    raise UsageError(
        f"{word} is more than one text: say which of {among}."
        if found
        else f"There is no text {word[:40] if word.isdecimal() else repr(word[:40])}. "
        f"This run has {among}."
    )


def _ids(words: list[str], most: int | None = None) -> tuple[str, ...]:
    ids: list[str] = []
    while words and len(ids) != most and _POINT_ID.fullmatch(words[0]):
        ids.append(words.pop(0).rstrip(","))
    return tuple(ids)


def _count(words: list[str]) -> int:
    if not (words and words[0].isdecimal()):
        return 1
    return min(max(1, int(words.pop(0)[:9])), MAX_ITERATIONS)
