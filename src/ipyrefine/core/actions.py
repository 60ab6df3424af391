"""What a user can do, as one table: an action is a row of `ACTIONS`.

The commands after ``%refine``, the panel's buttons and keys, the terminal and Python read it. The
data of decisions are in `decisions`; what decides nothing is done where the run is shown.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from ipyrefine.core import changes, coach, decisions, policy, typed
from ipyrefine.core.changes import ask_for
from ipyrefine.core.decisions import Decision
from ipyrefine.core.model import Outcome, Record, Stage, StopReason, bare, count, on_conditions
from ipyrefine.core.points import answer
from ipyrefine.core.quotes import contains_quote
from ipyrefine.core.results import (
    expect,
    is_exception,
    key_of,
    read_result,
    row_choices,
    row_key,
    rows,
)
from ipyrefine.core.run import Run
from ipyrefine.core.scopes import names_needed
from ipyrefine.core.syntax import is_literal, try_parse_expression
from ipyrefine.core.table import Point, Result
from ipyrefine.errors import UsageError

_Record = TypeVar("_Record", bound=Record)
Fields = Mapping[str, Any]  # what a page sends with an action, by the names of its controls


class Action(NamedTuple):
    """A row: what is left out, the action does not have."""

    usage: str = ""  # what may follow it after `%refine`
    help: str = ""  # what it does, on one line of a screen; only with it, it is a command
    typed: str = ""  # how it is typed where it is no command of its own
    button: str = ""
    title: str = ""  # what the button does
    key: str = ""  # the key that presses it
    record: Any = None  # the decision that it is
    read: Callable[[Run, list[str]], Decision] | None = None  # the decision in words
    take: Callable[[Run, Fields], Decision] | None = None  # in fields, where `fill` can't say it
    early: bool = False  # whether a run without a text can be told so
    revises: bool = False  # whether it asks for a revision, unless it ends the run
    needs: Callable[[Run, Any], str] | None = None  # why it can't be done; empty where it can
    changes: Callable[[Run, Any, int], Run] | None = None  # the run after it; it is about a text
    done: Callable[[Run, Any, str], str] | None = None  # what the user did, after "You"


# What a decision needs


def _points(run: Run, ids: tuple[str, ...], verb: str) -> str:
    if not ids:
        return f"Say which findings to {verb}."
    missing = [id_ for id_ in ids if id_ not in run.points]
    return f"There is no finding {missing[0]!r} in this run." if missing else ""


def _dismissable(run: Run, decision: decisions.Dismiss) -> str:
    named = (one for one in run.points.values() if one.id in decision.points)
    bound = [one for one in named if one.check and one.blocking]  # the check's failure rests on it
    return _points(run, decision.points, "dismiss") or "".join(
        f"{one.id} comes from the check {one.check} and cannot be dismissed. Override the verdict "
        "instead."
        for one in bound[:1]
    )


def _remark(run: Run, decision: decisions.Add) -> str:
    if not decision.point.words.strip():
        return "A finding needs a problem in words."
    about = run.chosen if decision.iteration is None else run.iterations[decision.iteration]
    if about and not contains_quote(about.text, decision.point.place):
        return f"The quoted words are not in {run.mention(about.number)}."
    return ""


def _result(run: Run, expected: decisions.Expect) -> str:
    if not run.task.is_python:
        return "Only what Python code gives can be expected; say it as guidance."
    if try_parse_expression(expected.call) is None:
        return f"{expected.call[:80]!r} is not a Python expression."
    if wrong := _value(expected):
        return wrong
    lacks = {
        one
        for iteration in run.iterations
        for one in iteration.conditions
        if one.name in names_needed(iteration.text, expected.code)
    }
    sentence = (
        f"This was computed {on_conditions(sorted(lacks, key=str))}, so it can't become an "
        "example. Accept the text and run it to see what all rows give."
    )
    return sentence if lacks else ""


def _to_do(run: Run, decision: decisions.Continue) -> str:
    if decision.points:
        return _points(run, decision.points, "select")
    if decision.guidance:
        return "" if run.iterations else typed.NO_TEXT
    if run.stop_reason is not StopReason.PASSED or decision.iteration is not None:
        return ""
    step = policy.next_step(decide(run, decision))
    return "" if isinstance(step, Stage) else step.message


def _value(said: decisions.Expect | decisions.Predict) -> str:
    name = bare(said.gives)
    right = is_literal(name) if name == said.gives else is_exception(name)
    return "" if right else f"{name[:80]!r} is neither a value as Python nor an exception's name."


# A decision in the fields of a page


def _ruling(outcome: Outcome) -> Callable[[Run, Fields], Decision]:
    return lambda _, fields: fill(decisions.Override, {**fields, "outcome": outcome})


def _go_on(_: Run, fields: Fields) -> Decision:
    revisions = max(1, int(fields.get("revisions", 1)))
    return fill(decisions.Continue, {**fields, "revisions": revisions})


def _select(_: Run, fields: Fields) -> Decision:
    if not fields.get("points"):
        raise UsageError("Say which findings to select.")
    return fill(decisions.Continue, fields)


def _answer(run: Run, fields: Fields) -> Decision:
    question = run.latest(fields["finding"])
    options = question.point.options if question else ()
    words = options[int(fields.get("choice", 1)) - 1] if options else ""
    return decisions.Add(point=answer(question, words))


def _add(_: Run, fields: Fields) -> Decision:
    said, fix = (fields.get(name, "").strip() for name in ("problem", "fix"))
    point = Point(
        id=fields.get("finding", ""),
        source="you",
        criterion=fields.get("criterion", ""),
        blocking=fields.get("severity", "blocking") == "blocking",
        words=said,
        place=fields.get("quote", ""),
        fix=fix,
    )
    return decisions.Add(iteration=fields.get("iteration"), point=point)


def _expect(run: Run, fields: Fields) -> Decision:
    row, choice = _row(run, fields), fields.get("choice")
    if choice is None:
        return expect(row, fields.get("result", ""))
    return expect(row, row_choices(row)[int(choice) - 1] if int(choice) else None)


def _row(run: Run, fields: Fields) -> Result:
    """Return the result, of the text that is shown, that a page means."""
    for row in rows(run, run.iterations[fields["shown"]]) if run.iterations else ():
        if row_key(row) == fields.get("row"):
            return row
    raise UsageError("This result is not shown any more.")


# What a user did, in words


def _about(run: Run, ids: Iterable[str], verb: str, wish: str, otherwise: str) -> str:
    """Return what was done to some points, or to the facts that they are about."""
    about = [run.points[id_] for id_ in ids if id_ in run.points]
    if data := ", ".join(one.words for one in about if one.effect):
        return f"{wish}: {data}"
    facts = ", ".join(f"“{one.place}”" for one in about if one.kind == "fact")
    return f"{verb} {facts}" if facts else otherwise


def _went_on(run: Run, decision: decisions.Continue, text: str) -> str:
    if decision.points:
        chosen = f"chose {', '.join(decision.points)} to act on"
        return _about(run, decision.points, "struck", "want this undone", chosen)
    if decision.iteration is not None:
        return f"continued from {text}"
    return f"allowed {count(decision.revisions, 'more revision')}"


def _added(id_: str) -> str:
    return f"{'answered' if id_.startswith('q') else 'changed'} {id_}" if id_ else "added a finding"


def _changed(_: Run, decision: decisions.Criteria, __: str) -> str:
    names = ", ".join(one.name for one in decision.criteria)
    target = "" if decision.target is None else f"target {decision.target:.2f}"
    return f"changed the criteria: {'; '.join(filter(None, (names, target)))}"


# The table

_NO_WRITER = (
    "No model is set up to write. Run `ipyrefine pull` or set OPENAI_API_KEY, then "
    "%refine resume -m NAME."
)
# fmt: off
ACTIONS = {
    "accept": Action(
        "[k] [insert|replace|none]", "take the best text, or text k",
        button="Accept", title="Take this text as the result.", key="a",
        record=decisions.Accept, read=typed.accept,
        done=lambda run, d, text: f"accepted {text}"),
    "override": Action(
        "pass|improve|fail [k] [reason]", "give the verdict yourself",
        record=decisions.Override, read=typed.override, revises=True, changes=changes.override,
        done=lambda run, d, text: f"marked {text} {d.outcome.value.replace('_', ' ')}"),
    "pass": Action(
        typed="override pass", button="Pass",
        title="Override the verdict: the text is good enough.",
        record=decisions.Override, take=_ruling(Outcome.PASS)),
    "needs-work": Action(
        typed="override improve", button="Needs improvement",
        title="Override the verdict; a model revises the text for the reason.",
        record=decisions.Override, take=_ruling(Outcome.NEEDS_IMPROVEMENT)),
    "fail": Action(
        typed="override fail", button="Fail",
        title="Override the verdict: the text is wrong; a model revises it for the reason.",
        record=decisions.Override, take=_ruling(Outcome.FAIL)),
    "continue": Action(
        "[from k] [n] [guidance]", "revise again; f1 f2 only; as code|prose",
        button="Continue", title="Write one more revision, with the guidance below.", key="c",
        record=decisions.Continue, read=typed.go_on, take=_go_on, early=True, revises=True,
        needs=_to_do, changes=changes.select, done=_went_on),
    "branch": Action(
        typed="continue from 0", title="Branch: revise %s next, with the guidance below.",
        record=decisions.Continue),
    "select": Action(
        typed="continue f1", button="Choose findings to act on…", key="r",
        record=decisions.Continue, take=_select),
    "act": Action(
        button="Act on it", title="Revise the text for this finding alone.",
        record=decisions.Continue),
    "guide": Action(
        typed='continue "guidance"',
        button="Add guidance", title="The next revision takes it into account.",
        record=decisions.Guide,
        needs=lambda run, d: "" if d.guidance.strip() else
            'The guidance is empty: %refine continue "shorter, please".',
        done=lambda run, d, _: "gave guidance"),
    "ask": Action(),
    "switch": Action(typed="continue as prose"),
    "model": Action(button="Continue with another model…", title="Continue with another model"),
    "setup": Action(button="Set up…", title="Choose a model, its server and the key"),
    "see": Action(title="What the model is shown of the notebook"),
    "unconfined": Action(),
    "above": Action(),
    "right": Action("1 3", "say that these results are right"),
    "should": Action('2 "VALUE"', 'what a result should be; "f(x) == y"; q1 …', read=typed.should),
    "expect": Action(
        typed='should 1 "VALUE"', button="✓", title="Right: every text must give this (y)",
        record=decisions.Expect, take=_expect,
        needs=_result, changes=changes.expect,
        done=lambda run, d, _:
            f"expect {d.call} to {f'raise {d.raises}' if d.raises else f'give {d.gives}'}"),
    "retract": Action(
        title="Take this back", record=decisions.Retract,
        take=lambda run, fields: fill(
            decisions.Retract, _row(run, fields).model_dump(include={"call", "setup"})),
        needs=lambda run, d: "" if key_of(d) in map(key_of, run.task.clarifications) else
            f"You expect no result of {d.call[:80]}.",
        changes=changes.retract,
        done=lambda run, d, _: f"took back what {d.call} should give"),
    "predict": Action(
        typed="should VALUE", button="Predict", record=decisions.Predict,
        take=lambda _, fields: decisions.Predict(gives=read_result(fields.get("result", ""))),
        needs=lambda _, d: _value(d), changes=coach.predict,
        done=lambda run, d, _: f"predicted {'that it ' * (bare(d.gives) != d.gives)}{d.gives}"),
    "dismiss": Action(
        "f1 [reason]", "drop a finding, or a demand by its name", button="Dismiss",
        record=decisions.Dismiss, read=typed.dismiss, needs=_dismissable, changes=changes.dismiss,
        done=lambda run, d, _: _about(
            run, d.points, "kept", "said that this is right", f"dismissed {', '.join(d.points)}")),
    "drop": Action(
        typed="dismiss CHECK",
        button="×", title="Leave this demand out: no text is held to it any more.",
        record=decisions.Drop,
        needs=lambda run, d: "" if d.demand in run.demands else
            f"There is no demand {d.demand!r}. This run has: {', '.join(run.demands) or 'none'}.",
        changes=changes.drop_demand,
        done=lambda run, d, _: f"dropped the demand {d.demand}"),
    "add": Action(
        '"problem" ["quote"] ["fix"]', "add a finding; add f1 … changes one",
        button="Add a finding…",
        record=decisions.Add, read=typed.add, take=_add, needs=_remark,
        changes=changes.add_remark, done=lambda run, d, _: _added(d.point.id)),
    "answer": Action(record=decisions.Add, take=_answer),
    "edit": Action(
        "[VARIABLE|criteria a,b]", "put in your own text, or other criteria",
        button="Edit the text…", key="e",
        record=decisions.Edit, read=typed.criteria, changes=changes.add_edit,
        needs=lambda run, d: "" if d.text.strip() else "The edited text is empty.",
        done=lambda run, d, text: f"edited {text}"),
    "criteria": Action(
        typed="edit criteria", button="Change the criteria…",
        record=decisions.Criteria, early=True,
        take=lambda run, fields: typed.change_criteria(
            run, fields.get("criteria", ""), fields.get("target")),
        needs=lambda run, d: "" if d.criteria or d.target is not None else
            "Name the new criteria, a target, or both.",
        changes=changes.change_criteria, done=_changed),
    "fix": Action("[OPTIONS]", "fix the cell that failed, as %%refine would"),
    "show": Action("[k|PART]", "print the run, a text or a part of it"),
    "diff": Action("[i j]", "print what changed between two texts"),
    "tests": Action(
        "[below]", "print the run's tests, or put them below",
        button="Add tests below",
        title="Put the examples and tests of this run into a cell below."),
    "export": Action("[tests] FILE [NAME]", "write a run, or its tests, into a file"),
    "history": Action("[search]", "list earlier runs"),
    "resume": Action("[NAME | FILE.ipynb [k]]", "continue an earlier run"),
    "forget": Action("NAME|--all", "erase runs from the journal"),
    "share": Action("[once|always|never]", "show what no server is sent, or send it"),
    "back": Action(button="Put back", title="Give %s the values from before the cell ran."),
    "stop": Action(
        "", "stop the run and keep the best text",
        button="Stop", title="Stop now and keep the best text so far.", key="s"),
    "close": Action(
        "", "stop the run and close its panel",
        button="Close", title="Close the panel; the record stays."),
}
# fmt: on
# A decision's field, and where a page has it; what a page calls like the field comes first.
_CONTROLS = {"reason": "words", "guidance": "words", "destination": "place", "demand": "name"}


def commands() -> dict[str, Action]:
    """Return the actions that are typed by their own name."""
    return {name: row for name, row in ACTIONS.items() if row.help}


def row_of(decision: Decision) -> Action:
    """Return the action that a decision is; of several, the one that says what it changes."""
    return next(row for row in ACTIONS.values() if row.done and isinstance(decision, row.record))


def parse_decision(run: Run, name: str, words: list[str]) -> Decision:
    """Read a decision from the words after ``%refine NAME``; the list is consumed.

    Raises:
        UsageError: a word is missing or means nothing here.
    """
    read = ACTIONS[name].read
    if read is None:
        raise ValueError(f"{name} decides nothing")
    return read(run, words)


def decision(run: Run, name: str, fields: Fields) -> Decision:
    """Return the decision that an action is; the fields are its own, or a page's controls.

    Raises:
        UsageError: what was typed means nothing here.
        ValueError: it decides nothing, or a field is missing or of another type.
    """
    row = ACTIONS.get(name, Action())
    if row.take:
        return row.take(run, fields)
    if row.record is None:
        raise ValueError(f"{name} decides nothing")
    found: Decision = fill(row.record, fields)
    return found


def fill(record: type[_Record], fields: Fields) -> _Record:
    """Return a record with those of some fields that it has."""
    found = {}
    for name in record.model_fields:
        value = fields.get(name, fields.get(_CONTROLS.get(name, "")))
        if value is not None:
            found[name] = value.strip() if name in ("reason", "guidance") else value
    if "points" in record.model_fields and "finding" in fields:
        found["points"] = (fields["finding"],)
    return record.model_validate(found)


def require_possible(run: Run, decision: Decision) -> None:
    """Refuse a decision that cannot be carried out on a run.

    Raises:
        UsageError: there is no such text or finding, or a part is missing.
    """
    row, number = row_of(decision), getattr(decision, "iteration", None)
    if not run.iterations and (number is not None or not row.early):
        raise UsageError(typed.NO_TEXT)
    if number is not None:
        require_iteration(run, number)
    if sentence := coach.refuse(run, decision, revises=row.revises):
        raise UsageError(sentence)
    if row.revises and not (run.setup.model or isinstance(decision, decisions.Override)):
        raise UsageError(_NO_WRITER)
    if row.needs and (sentence := row.needs(run, decision)):
        raise UsageError(sentence)


def require_iteration(run: Run, number: int) -> None:
    """Raise a UsageError for a number that no iteration has."""
    if not 0 <= number < len(run.iterations):
        last = len(run.iterations) - 1
        raise UsageError(f"There is no text {number}. This run has texts 0 to {last}.")


def decide(run: Run, decision: Decision) -> Run:
    """Return the run after a decision."""
    row, stopped = row_of(decision), run.stop_reason is not None
    number = getattr(decision, "iteration", None)
    if number is None:
        number = run.chosen.number if run.chosen else 0
    if decision.settles:
        decision = decision.replace(iteration=number)
    run = run.replace(
        decisions=(*run.decisions, decision),
        stop_reason=None,
        message="",
    ).without_replies()  # the next question may be another one
    if row.changes and (run.iterations or row.early):
        run = row.changes(run, decision, number)
    if run.iterations:
        run = ask_for(run, getattr(decision, "guidance", ""))
    if not run.iterations or decision.settles:
        return run
    if row.revises:
        run = _allow_revision(run, decision, number, stopped)
        return run.replace(awaits_user=not run.setup.model)  # who would write it
    return run.replace(awaits_user=run.awaits_user or stopped)


def _allow_revision(run: Run, decision: Decision, number: int, stopped: bool) -> Run:
    """Allow the revisions that were asked for, beyond those a running loop has left."""
    more = getattr(decision, "revisions", 1)
    allowed = run.allowed_revisions + more
    if stopped:
        floor = run.allowed_revisions if run.limits.step else 0
        allowed = max(floor, run.revisions + more)
    # A running loop may be about to find something better than the best it has now.
    pinned = stopped or getattr(decision, "iteration", None) is not None
    return run.replace(
        allowed_revisions=allowed,
        patience_from=len(run.iterations) - 1,
        repairs=0,
        head=number if pinned else run.head,
        released=len(run.iterations),
        revision_requested=True,
    )


def decision_sentence(run: Run, decision: Decision) -> str:
    """Return what a user did, in one sentence; their own words are quoted as they are."""
    did, words = decision_words(run, decision)
    return f"You {did}{f': {words}' if words else '.'}"


def decision_words(run: Run, decision: Decision) -> tuple[str, str]:
    """Return what a user did, and why or how in their own words."""
    number, row = getattr(decision, "iteration", None), row_of(decision)
    text = run.mention(number) if number is not None else "the best text"
    words = getattr(decision, "reason", "") or getattr(decision, "guidance", "")
    if isinstance(decision, decisions.Add):
        words = decision.point.words
    assert row.done is not None, "`row_of` finds only such"
    return row.done(run, decision, text), words
