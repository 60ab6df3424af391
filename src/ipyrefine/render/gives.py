"""What a text gives and did to data, and what is asked about it, as blocks."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from ipyrefine.core import model, table
from ipyrefine.core.decisions import Expect, Retract
from ipyrefine.core.effects import sentence
from ipyrefine.core.model import Called, bare
from ipyrefine.core.points import left_open
from ipyrefine.core.readers import is_another_read, is_read, is_to_read
from ipyrefine.core.results import (
    Key,
    claims,
    example_asked,
    given,
    gives_same,
    key_of,
    laid_out,
    row_choices,
    row_key,
    rows,
    unfolded,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stated import read_examples
from ipyrefine.core.syntax import try_parse
from ipyrefine.core.table import Cell
from ipyrefine.render import labels
from ipyrefine.render.blocks import Block, Output, Picture, Result, Results, Table
from ipyrefine.render.escape import strip_colours

_MAX_NAMED = 24  # characters of a result that is said again
_PLACES = ("the first", "the second", "the third")
_PRINTED = "Printed"
_ASKED, _UNFOLDED = 2, 3  # effects that ask, and those that are told before the rest folds
# A number or truth value as NumPy writes it.
_NUMPY = re.compile(r"\bnp\.(?:(?:u?int|float)\d+\(([-+.\w]+)\)|(True|False)_)")
_NEXT_TO = 32  # characters on either side of words that stand in no source


def results(
    run: Run, iteration: Iteration, waiting: Iterable[Expect | Retract] = ()
) -> list[Results]:
    """Return what a text gives on a few inputs; nothing if no row is worth a look."""
    if run.setup.coach:
        return []
    found, asked = rows(run, iteration), questions(run, iteration)
    if not found:
        return [*unsourced(run, iteration), *asked]
    said: dict[Key, Called | None] = {key_of(one): one for one in run.task.clarifications}
    for decision in waiting:
        key = key_of(decision)
        said[key] = decision if isinstance(decision, Expect) else None
    if found[0] == example_asked(iteration, found) and not waiting:
        example = Result(row_key(found[0]), found[0].call, "", asks="example")
        say = '%refine should 1 "VALUE" says what it should give.'
        return [Results((example,), commands=say), *asked]
    first = unfolded(found)
    shown = tuple(
        _row(run, iteration, one, said.get(key_of(one)))._replace(folded=one not in first)
        for one in found
    )
    return [Results(shown, _hint(run, iteration, found)), *asked]


def _hint(run: Run, iteration: Iteration, found: Sequence[table.Result]) -> str:
    """Return what to do about results if much rests on the user's word; else nothing."""
    verdict = iteration.verdict
    looks, lacking = run.setup.is_look, all(one.conditions for one in found)
    if verdict is None or verdict.barred or looks or lacking:
        return ""
    if verdict.outcome is model.Outcome.NOT_JUDGED:
        unread = is_to_read(run, iteration) and not iteration.reading
        unread = unread and not is_another_read(run, iteration)
        then = "; a critic reads the text too" if unread else ", and the text passes"
        return f"Confirm {'the first, or any two' if len(found) > 1 else 'it'}{then}."
    few = verdict.basis == "examples" and len(read_examples(run.task.text)) < 2
    answered = any(one.passed is not None for one in found)
    alone = verdict.passed and few and run.setup.weak_critic and not answered
    return "It passes on one example of the task. Is the first result right?" if alone else ""


def questions(run: Run, iteration: Iteration) -> list[Results]:
    """Return the critic's open questions about the task that no input shows."""
    found = tuple(
        Result(
            one.id,
            one.words,
            "",
            choices=one.options,
            asks="open",
        )
        for one in left_open(run, iteration)
        if not one.call
    )
    return _asking(found, "%refine should {0} ANSWER answers it; dismiss {0} drops it.")


def _asking(found: tuple[Result, ...], commands: str) -> list[Results]:
    return [Results(found, commands=commands.format(found[0].key))] if found else []


def unsourced(run: Run, iteration: Iteration) -> list[Results]:
    """Return the names, numbers and dates of prose that no source has, to keep or to strike."""
    asked = (cell.point for cell in _facts(run, iteration) if not cell.point.effect)
    found = tuple(
        Result(
            one.id,
            one.place,
            _around(iteration.text, one.place),
            sign="",
            asks="keep",
            buttons=("Keep", "Delete"),
        )
        for one in asked
    )
    return _asking(found, "%refine dismiss {0} keeps it; continue {0} has it struck.")


def _facts(run: Run, iteration: Iteration) -> list[Cell]:
    return [one for one in run.cells(iteration) if one.asks and one.point.kind == "fact"]


def _around(text: str, words: str) -> str:
    """Return the line that some words stand in, cut to what is next to them."""
    place = max(0, text.find(words))
    start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    before, after = text[start:place], text[place + len(words) : None if end < 0 else end]
    if len(before) > _NEXT_TO:
        before = f"… {before[-_NEXT_TO:].partition(' ')[2]}"
    if len(after) > _NEXT_TO:
        after = f"{after[:_NEXT_TO].rpartition(' ')[0]} …"
    return f"{before}{words}{after}".strip()


def rivalry(run: Run, text: Iteration, row: table.Result) -> str:
    """Return who gives which of the possible results: ``the draft gives 2, draft 2 gives 3``.

    Long ones are counted, as they stand beside it: ``the draft gives the first``.
    """
    key = key_of(row)
    tests = (one for one in run.tests if not one.dropped)
    claimed = [one for test in tests for one in claims(test) if key_of(one) == key]
    by_text = {one.number: given(run, one).get(key) for one in run.iterations}
    choices, told = row_choices(row), list[str]()
    givers = [
        [number for number, one in by_text.items() if one and gives_same(one, choice)]
        for choice in choices
    ]
    alone = {number for who in givers for number in who} == {text.number}
    longest = max((len(bare(one)) for one in choices), default=0)
    long = longest > _MAX_NAMED and len(choices) <= len(_PLACES)
    for place, (choice, who) in enumerate(zip(choices, givers, strict=True)):
        value = _PLACES[place] if long else bare(choice)
        expected = any(gives_same(one.gives, choice) for one in claimed)
        names = ["this text" if alone else run.mention(n) for n in who[: 1 + (len(who) == 2)]]
        names += [f"{len(who) - 1} more"] * (len(who) > 2)
        verb = ("raise" if bare(choice) != choice else "give") + "s" * (len(names) == 1)
        if who:
            end = ", as the critic expects" * expected
            told.append(f"{' and '.join(names)} {verb} {value}{end}")
        elif expected:
            told.append(f"the critic expects {value}")
    opens = "the task leaves it open" if row.source == "open" else ""
    return "; ".join(filter(None, (opens, ", ".join(told))))


def _row(run: Run, text: Iteration, row: table.Result, said: Called | None) -> Result:
    confirmed = gives_same(said.gives, row.gives) if said else None
    asked = bool(row.rivals) and confirmed is None and not row.conditions
    value = bare(row.gives)
    call = laid_out(row.call) if "\n" in row.call else row.call
    return Result(
        key=row_key(row),
        call="\n".join([*_scenario(row), call]),
        value=f"{value}: {row.shows}" if row.shows else value,
        sign="→" if row.source != "cell" else "" if row.before else "=",
        before=row.before,
        choices=tuple(map(bare, row_choices(row))) if asked else (),
        rivalry=rivalry(run, text, row) if asked else "",
        confirmed=confirmed,
        expected=said.gives if said and not confirmed else "",
        condition=model.on_conditions(row.conditions),
    )


def _scenario(row: table.Result) -> list[str]:
    """Return the lines before a call, each with its result."""
    setup = row.setup.strip()
    lines, tree = setup.splitlines(), try_parse(setup) if row.steps else None
    for node, gives in zip(tree.body if tree else (), row.steps, strict=False):
        if gives and node.end_lineno:
            lines[node.end_lineno - 1] += f" → {gives}"
    return lines


def whole_account(run: Run, iteration: Iteration) -> list[Block]:
    """Return what a text gives and did to data: what asks first, then the answer."""
    return [*data_questions(run, iteration), *account(run, iteration)]


def account(run: Run, iteration: Iteration, *, alone: bool = False) -> list[Block]:
    """Return what a text gives and did to data, the answer first, without what is asked.

    Args:
        run: the run.
        iteration: the text.
        alone: whether neither what is asked nor its results stand next to it.
    """
    found = outputs(iteration)
    is_long = any(isinstance(one, Output) and not one.is_short for one in found[:1])
    answer = 0 if is_long and found[0].title == _PRINTED else 1
    return [*found[:answer], *_effect_rows(run, iteration, alone=alone), *found[answer:]]


def outputs(iteration: Iteration) -> list[Output | Table | Picture]:
    """Return what a text gives in a check: the answer first, then what else it drew or printed."""
    found: list[Output | Table | Picture] = []
    for evidence in iteration.evidence:
        ran_on = model.on_conditions(evidence.conditions)
        remark = _remark(evidence)
        title = sentence(remark) if remark else "The answer"
        ordered = sorted(evidence.outputs, key=lambda one: _ORDER.index(type(one)))
        if remark and not (ordered and isinstance(ordered[0], model.Value | model.TableValue)):
            found.append(Output(title, condition=ran_on))
            title = ran_on = ""
        for one in ordered:
            found += [block._replace(condition=ran_on) for block in _result(one, title)]
            title = ran_on = ""
    return found


def _remark(evidence: table.Result) -> model.Effect | None:
    """Return what is odd about the answer; of a name only where nothing else is the answer."""
    answers = [one for one in evidence.outputs if not isinstance(one, model.Printed)]
    odd = (one for one in evidence.effects if one.kind == "answer")
    return next((one for one in odd if not (one.name and answers)), None)


_ORDER = (model.Value, model.TableValue, model.Figure, model.Printed)


def _result(output: model.Output, title: str = "") -> Sequence[Output | Table | Picture]:
    match output:
        case model.Printed():
            return printed(_PRINTED, output.text)
        case model.Value():
            text = _NUMPY.sub(r"\1\2", output.text)
            # "The answer is nan" says it all.
            said = title.lower().endswith(f" is {text.strip().lower()}")
            return [Output(title)] if said else printed(title, text)
        case model.TableValue():
            rows, columns = len(output.rows), len(output.columns)
            size = f"{rows}" if output.is_series else labels.count(rows, "row")
            first = f", the first {size}" if rows < output.height else ""
            if columns < output.width:
                first = f", the first {rows} × {columns}"
            labelled = zip(output.labels, output.rows, strict=True)
            body = tuple((label, *row) for label, row in labelled)
            title = title and f"{title}: {output.phrase}{first}"
            return [Table(title, (output.index, *output.columns), body)]
        case model.Figure():
            caption = output.phrase.capitalize()
            title = f"{title}: {output.phrase}" if title else caption
            return [Picture(title, output.png, output.size, caption, output.axes)]


def printed(title: str, text: str) -> list[Output]:
    """Return what a program or a model wrote beside its text; nothing where that is empty."""
    return [Output(title, strip_colours(text))] if text.strip() else []


def _asked_effects(
    run: Run, iteration: Iteration, *, alone: bool = False
) -> dict[str, model.Effect]:
    """Return what is asked by a reader, or else what nobody has read."""
    facts = [one.point for one in _facts(run, iteration) if (one.point.source == "run") is alone]
    return dict([(one.id, one.effect) for one in facts if one.effect][:_ASKED])


def data_questions(run: Run, iteration: Iteration) -> list[Results]:
    """Return what running a text did to data and no words ask for: at most two rows."""
    every = _effects(iteration)
    found = tuple(
        _effect_row(next((e for e in every if e[0].key == fact.key), (fact, "")), point)
        for point, fact in _asked_effects(run, iteration).items()
    )
    return [Results(found, commands=_how_to_answer(found))] if found else []


def _how_to_answer(found: Iterable[Result]) -> str:
    return "\n".join(
        f"%refine dismiss {one.key}: “{one.buttons[0]}”; continue {one.key}: “{one.buttons[1]}”."
        for one in found
        if one.buttons
    )


def _effect_rows(run: Run, iteration: Iteration, *, alone: bool) -> list[Results]:
    asked = [] if alone else [one.key for one in _asked_effects(run, iteration).values()]
    changed = () if alone else [one.call for one in rows(run, iteration) if one.before]
    found, keys = list[tuple[model.Effect, str]](), [*asked]
    for seen in _effects(iteration):
        if seen[0].key in keys:
            keys.remove(seen[0].key)  # the first such stands above
        elif seen[0].kind != "changed" or seen[0].name not in changed:
            found.append(seen)
    answered = bool(outputs(iteration))  # which says what it ran on
    may = {} if alone else _asked_effects(run, iteration, alone=True)
    names = {effect.key: id_ for id_, effect in may.items() if not is_read(run, iteration)}
    most = max(1, _UNFOLDED - len(asked))
    most += len(found) == most + 1  # the line that folds one more is no shorter
    lines = tuple(
        _effect_row(
            (one, "" if answered or number else ran_on), names.pop(one.key, ""), asks="may"
        )._replace(folded=number >= most)
        for number, (one, ran_on) in enumerate(found)
    )
    return [Results(lines, commands=_how_to_answer(lines))] if lines else []


def _effects(iteration: Iteration) -> list[tuple[model.Effect, str]]:
    """Return what a text did to data, each with what that was seen on."""
    return [
        (one, model.on_conditions(evidence.conditions))
        for evidence in iteration.evidence
        for one in evidence.effects
        if one != _remark(evidence)
    ]


def _effect_row(
    seen: tuple[model.Effect, str], point: str = "", *, asks: Literal["undo", "may"] = "undo"
) -> Result:
    one, ran_on = seen
    line = f"line {one.line}" if one.line and one.kind not in ("unchanged", "warning") else ""
    return Result(
        point,
        sentence(one),
        line,
        sign="·" if line else "",
        output=tuple(_result(one.head)) if one.head else (),
        asks=asks if point else "",
        condition=ran_on,
        buttons=labels.effect_buttons(one) if point else (),
    )
