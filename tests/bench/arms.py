"""Three ways to do a task from the same greedy draft, and the table that compares them.

- draft: that draft alone.
- resampling: samples at temperature 0.8 until one meets what the task states (the examples of
  code, the constraints of prose), while it has consumed fewer tokens than the loop did on the
  task, and `Plan.drafts` at most; where none does, the draft.
  It accepts a text that nothing stated contradicts.
- loop: ours; it accepts a text when it stops with PASS.

Each arm is charged for all that it uses, as if it ran alone: replies that two arms share count in
both.
"""

import argparse
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import measure
from measure import Meter, Replies

from ipyrefine.api import build
from ipyrefine.checks import resolve
from ipyrefine.checks.evaluation import Examples
from ipyrefine.core import replies
from ipyrefine.core.decisions import Answer
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Question, StopReason, Task, Usage
from ipyrefine.core.ports import Check, Message, Model, Reply, Request
from ipyrefine.core.prompts import Prompts, Requests, make_nonce
from ipyrefine.core.run import Run
from ipyrefine.errors import ModelError, ReplyError

SAMPLED = 0.8  # temperature of resampling
_MAX_TOKENS = 1_024  # completion tokens a reply may take

_BARE = """\
Evaluate this code for the task. Reply with JSON: evaluation, PASS if it is correct and all its \
requirements are met, else NEEDS_IMPROVEMENT or FAIL; and feedback, one sentence."""
_BARE_SCHEMA = {
    "type": "object",
    "properties": {
        "evaluation": {"type": "string", "enum": ["PASS", "NEEDS_IMPROVEMENT", "FAIL"]},
        "feedback": {"type": "string", "maxLength": 300},
    },
    "required": ["evaluation", "feedback"],
    "additionalProperties": False,
}


class Case(Protocol):
    """One task with its hidden test."""

    name: str
    text: str
    profile: str | None

    async def solves(self, text: str) -> bool:
        """Return whether a text passes the hidden test."""

    async def answer(self, question: Question) -> str | None:
        """Return the right answer to a question, as Python; None if unknown."""


class Plan(NamedTuple):
    """How the arms are run."""

    checks: tuple[str, ...] = ()  # the loop's, next to those it adds by itself
    limits: Limits = Limits()  # the loop's
    drafts: int = 16  # samples that resampling may take
    answer: bool = False  # whether the loop's questions are answered
    judge: bool = False  # whether a bare judge says PASS or not about the draft
    loop: bool = True  # without it, `drafts` alone bounds resampling


class Outcome(NamedTuple):
    """What an arm came to on a task; `accepted` is None where nothing decides on it."""

    solved: bool
    accepted: bool | None
    usage: Usage
    text: str = ""


class Draft(NamedTuple):
    """The greedy first draft."""

    task: Task  # that the loop makes of the case
    request: Request  # by which the loop asks for it
    text: str
    missed: bool  # whether it misses something that the task states
    stated: Sequence[Check]  # the checks of what the task states


class Asked(NamedTuple):
    """What came of a question of the loop's."""

    right: bool  # whether a right draft is among those it compares
    answered: bool | None  # whether there was an answer; None where it was not to be given
    solved: bool  # whether the run ended solved after it


class Row(NamedTuple):
    """What came of one task."""

    draft: Outcome
    resampling: Outcome
    loop: Outcome | None
    visible: bool  # whether something that the task states shows that the draft is wrong
    ended: str  # how the loop stopped, and what its verdict rests on
    asked: Asked | None


# The arms.


def refinement(case: Case, model: Model, plan: Plan) -> Refinement:
    """Return the loop on a case, as a user would start it."""
    limits = {"max_tokens": _MAX_TOKENS, "seed": 0, **plan.limits.model_dump(exclude_unset=True)}
    return build(
        case.text,
        model=model,
        profile=case.profile,
        checks=resolve(plan.checks, {}, target=Limits.model_validate(limits).target),
        limits=Limits.model_validate(limits),
    )


async def write_draft(case: Case, model: Model, plan: Plan) -> Draft:
    """Return the greedy first draft, which all arms start from."""
    loop = refinement(case, model, plan)
    task = loop.state.task
    stated = [Examples()] if task.form == "code" else list(loop.checks)
    request = Requests(Prompts(), make_nonce(b"")).draft(loop.state)
    text = read_text(await measure.complete(model, request), task.form)
    return Draft(task, request, text, await _misses(text, task, stated), stated)


async def run_case(case: Case, model: Model, plan: Plan) -> Row:
    """Run one case in all arms."""
    loop_meter, meter = Meter(model), Meter(model)
    first = await write_draft(case, meter, plan)
    text, task = first.text, first.task
    draft = Outcome(await case.solves(text), None, meter.usage, text)
    looped, ended, asked, most = None, "", None, math.inf
    if plan.loop:
        loop = refinement(case, loop_meter, plan)
        run = await _run(loop)
        solved = await case.solves(run.text) if run.iterations else False
        passed = run.stop_reason is StopReason.PASSED
        looped = Outcome(solved, passed, loop_meter.usage, run.text)
        basis = run.verdict.basis if passed and run.verdict else ""
        ended = f"{run.stop_reason or 'no stop'}{f', {basis}' if basis else ''}"
        asked, most = await _ask(case, loop, plan), looped.usage.tokens
    found, failing, number = text, first.missed, 0
    while failing and number < plan.drafts and meter.usage.tokens < most:
        number += 1
        # What the loop asks too is answered by the same sample: chance then favours neither.
        sample = await measure.complete(meter, _sampled(first.request, number))
        found = read_text(sample, task.form)
        failing = await _misses(found, task, first.stated)
    found = text if failing else found
    accepted = not failing if first.stated else None
    resampled = Outcome(await case.solves(found), accepted, meter.usage, found)
    # A text without the imports that the hidden test adds misses the examples and is right there.
    visible = first.missed and not draft.solved
    if plan.judge:
        draft = await _judge_bare(case, text, draft, Meter(model))
    return Row(draft, resampled, looped, visible, ended, asked)


async def _misses(text: str, task: Task, stated: Sequence[Check]) -> bool:
    return any([(await check(text, task)).passed is False for check in stated])


async def _run(loop: Refinement) -> Run:
    run = await loop.run()
    if loop.error and not isinstance(loop.error, ModelError):
        raise loop.error
    return run


def _sampled(request: Request, number: int) -> Request:
    """Return the request for one more sample of a draft, numbered from 1."""
    seed = None if request.seed is None else request.seed + number
    return request.model_copy(update={"temperature": SAMPLED, "seed": seed})


def read_text(reply: Reply, form: Any) -> str:
    """Return the text in a reply; empty where it cannot be read."""
    try:
        return replies.parse_text(reply.text, form, cut=reply.finish != "stop").text
    except ReplyError:
        return ""


async def _judge_bare(case: Case, text: str, draft: Outcome, meter: Meter) -> Outcome:
    """Return the draft's outcome with a judge that has nothing else to go by."""
    prompt = f"Task:\n{case.text}\n\nCode:\n```python\n{text}\n```\n\n{_BARE}"
    request = Request(
        messages=(Message(role="user", content=prompt),),
        json_schema=_BARE_SCHEMA,
        schema_name="evaluation",
        max_tokens=200,
    )
    accepted = '"PASS"' in (await measure.complete(meter, request)).text
    return draft._replace(accepted=accepted, usage=draft.usage + meter.usage)


# The loop's questions.


async def _ask(case: Case, loop: Refinement, plan: Plan) -> Asked | None:
    run = loop.state
    if run.stop_reason is not StopReason.QUESTION:
        return None
    question = run.question
    right = any([await case.solves(draft.text) for draft in run.drafts])
    if not plan.answer or question is None:
        return Asked(right, None, False)
    result = await case.answer(question)
    if result is None:
        return Asked(right, False, False)
    loop.decide(Answer(result=result))
    run = await _run(loop)
    return Asked(right, True, await case.solves(run.text))


# The tables.


def report(rows: Sequence[Row], what: str) -> str:
    """Return all tables on some rows."""
    judged = all(row.draft.accepted is not None for row in rows)
    arms: dict[str, Callable[[Row], Outcome]] = {
        "draft, bare judge" if judged else "draft": lambda row: row.draft,
        "resampling": lambda row: row.resampling,
    }
    with_loop = all(row.loop for row in rows)
    if with_loop:
        arms["loop"] = _loop

    def count(holds: Callable[[Row], bool]) -> str:
        return f"{sum(map(holds, rows))} of {len(rows)}"

    def accepted(arm: Callable[[Row], Outcome]) -> str:
        decides = any(arm(row).accepted is not None for row in rows)
        return count(lambda row: bool(arm(row).accepted)) if decides else "-"

    def false(arm: Callable[[Row], Outcome]) -> str:
        taken = [row for row in rows if arm(row).accepted]
        return measure.share(taken, lambda row: not arm(row).solved) if taken else "-"

    def used(arm: Callable[[Row], Outcome], read: Callable[[Usage], float | None]) -> str:
        return f"{sum(read(arm(row).usage) or 0 for row in rows):,.0f}"

    wrong = sum(not row.draft.solved for row in rows)
    seen = sum(row.visible for row in rows)
    right = len(rows) - wrong

    def of(total: int, holds: Callable[[Row], bool]) -> str:
        return f"{sum(map(holds, rows))} of {total}"

    lines: list[tuple[str, Callable[[Callable[[Row], Outcome]], str]]] = [
        ("solved", lambda arm: measure.share(rows, lambda row: arm(row).solved)),
        ("rescued (draft wrong, answer right)",
         lambda arm: of(wrong, lambda row: arm(row).solved and not row.draft.solved)),
        ("rescued where the task's own words show it",
         lambda arm: of(seen, lambda row: row.visible and arm(row).solved)),
        ("broken (draft right, answer wrong)",
         lambda arm: of(right, lambda row: row.draft.solved and not arm(row).solved)),
        ("accepted", accepted),
        ("wrong among accepted", false),
        ("calls", lambda arm: used(arm, lambda usage: usage.calls)),
        ("prompt tokens", lambda arm: used(arm, lambda usage: usage.prompt_tokens)),
        ("cached among them", lambda arm: used(arm, lambda usage: usage.cached_tokens)),
        ("completion tokens", lambda arm: used(arm, lambda usage: usage.completion_tokens)),
        ("seconds", lambda arm: used(arm, lambda usage: usage.seconds)),
    ]  # fmt: skip
    cells = [(name, *map(cell, arms.values())) for name, cell in lines]
    parts = [f"## {what}, {len(rows)} tasks", measure.table(["", *arms], cells)]
    if with_loop:
        parts += [
            f"Loop minus resampling, points: {measure.interval(rows, _ahead)}. "
            f"Loop minus draft: {measure.interval(rows, _gain)}. Completion tokens, loop / "
            f"resampling: {measure.interval(rows, _ratio, 2)}. All intervals: 95 %, bootstrap.",
            _endings(rows),
            _questions([row.asked for row in rows if row.asked]),
        ]
    return "\n\n".join(filter(None, parts))


def _loop(row: Row) -> Outcome:
    assert row.loop, "the loop did not run"
    return row.loop


def _ahead(rows: Sequence[Row]) -> float:
    return 100 * sum(_loop(row).solved - row.resampling.solved for row in rows) / len(rows)


def _gain(rows: Sequence[Row]) -> float:
    return 100 * sum(_loop(row).solved - row.draft.solved for row in rows) / len(rows)


def _ratio(rows: Sequence[Row]) -> float:
    ours, theirs = (
        sum(outcome.usage.completion_tokens for outcome in outcomes)
        for outcomes in ([_loop(row) for row in rows], [row.resampling for row in rows])
    )
    return ours / max(1, theirs)


def _endings(rows: Sequence[Row]) -> str:
    """Return a table of how the loop stopped."""
    kinds = Counter(row.ended for row in rows)
    lines = []
    for kind, _ in kinds.most_common():
        some = [row for row in rows if row.ended == kind]
        tokens = sum(_loop(row).usage.completion_tokens for row in some)
        seconds = sum(_loop(row).usage.seconds for row in some)
        solved = sum(_loop(row).solved for row in some)
        lines.append(
            (kind, len(some), f"{solved} of {len(some)}", f"{tokens:,}", f"{seconds:,.0f}")
        )
    heads = ["loop stopped", "tasks", "solved", "completion tokens", "seconds"]
    return measure.table(heads, lines)


def _questions(asked: Sequence[Asked]) -> str:
    """Return a table of the loop's questions; empty where it asked none."""
    if not asked:
        return ""
    right = [one for one in asked if one.right]
    answered = [one for one in right if one.answered]
    lines: list[tuple[str, str]] = [
        ("questions with a right draft among the groups", f"{len(right)} of {len(asked)}")
    ]
    if any(one.answered is not None for one in asked):
        lines += [
            ("answered, of those with a right draft", f"{len(answered)} of {len(right)}"),
            ("solved, of those answered", measure.share(answered, lambda one: one.solved)),
        ]
    return measure.table(["questions", ""], lines)


# Running.


def add_options(
    parser: argparse.ArgumentParser, *, checks: str, candidates: int, revisions: int
) -> None:
    """Add the options of the arms, with the loop's checks and limits by default."""
    parser.add_argument("--check", default=checks, help=f"the loop's checks ({checks or 'none'})")
    parser.add_argument("--candidates", type=int, default=candidates)
    parser.add_argument("-n", "--max-revisions", type=int, default=revisions)
    parser.add_argument(
        "--limit", action="append", default=[], metavar="NAME=VALUE", help="any further limit"
    )
    parser.add_argument("--no-loop", action="store_true", help="draft and resampling alone")
    parser.add_argument("--drafts", type=int, default=16, help="most samples of resampling (16)")


def plan(options: argparse.Namespace, **more: bool) -> Plan:
    """Return the plan that the options make."""
    limits: dict[str, Any] = dict(one.partition("=")[::2] for one in options.limit)
    unknown = sorted(limits.keys() - Limits.model_fields.keys())
    if unknown:
        raise SystemExit(f"There is no limit {unknown[0]!r}.")
    limits |= {"candidates": options.candidates, "max_revisions": options.max_revisions}
    checks = tuple(filter(None, options.check.split(",")))
    loop_limits = Limits.model_validate(limits)
    return Plan(checks, loop_limits, options.drafts, loop=not options.no_loop, **more)


def run(what: str, cases: Sequence[Case], model: Replies, plan: Plan) -> list[Row]:
    """Run cases in all arms, print the tables, and return the rows.

    A stop (Ctrl-C, or a replay that lacks a reply) prints what there is.
    """

    def note(rows: Sequence[Row]) -> str:
        return f"solved {sum((row.loop or row.resampling).solved for row in rows)} of {len(rows)}"

    rows = measure.collect(what, cases, model, lambda case: run_case(case, model, plan), note)
    if rows:
        print(f"\n{report(rows, f'{what}, {model.name}')}\n")
    return rows
