"""Ways to do a task from the same greedy draft, and the tables that compare them.

- draft: that draft alone.
- draft + its examples: that draft, accepted where what the task states is met (the examples of
  code, the constraints of prose).
- vote of seven, for code: that draft and six samples at temperature 0.8 are run on inputs made
  from the task, as the loop makes them, and the result of most is taken (MBR-Exec, arXiv
  2204.11454). It accepts a text where four of the seven give the same results; where no four do,
  or there are no inputs, it is the draft. No sample is taken that could not change that.
- resampling: such samples until one meets what the task states, while it has consumed fewer tokens
  than the loop did on the task, and 16 at most; where none does, the draft. It accepts a text that
  nothing stated contradicts.
- loop: ours; it accepts a text when it stops with PASS.

Each arm is charged for all that it uses, as if it ran alone: replies that two arms share count in
both.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import measure
from measure import Meter, Replies
from varied import varied_inputs

from ipyrefine.api import build
from ipyrefine.checks.evaluation import Evaluation, Examples, group_outcomes
from ipyrefine.checks.inputs import first_calls
from ipyrefine.core import forms
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Stage, StopReason, Task, Usage
from ipyrefine.core.ports import Check, Model, Reply, Request
from ipyrefine.core.prompts import Prompts, Requests, make_nonce
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.stated import read_examples
from ipyrefine.core.table import Result
from ipyrefine.errors import CheckNotRun, ModelError, ReplyError
from ipyrefine.kernel.variables import Variables

SAMPLED = 0.8  # temperature of resampling
_MAX_TOKENS = 1_024  # completion tokens a reply may take
_SAMPLES = 16  # most of resampling
_VOTERS = 7
_CRITIQUES = "of which critiques"


class Case(Protocol):
    """One task with its hidden test."""

    name: str
    text: str
    profile: str | None

    async def solves(self, text: str) -> bool:
        """Return whether a text passes the hidden test."""

    async def answer(self, row: Result) -> str | None:
        """Return the right result on a row's input, as Python; None if unknown."""


class Plan(NamedTuple):
    """How the arms are run."""

    limits: Limits = Limits()  # the loop's
    vote: bool = False  # whether seven drafts of code vote


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
    met: bool | None  # whether it meets what the task states; None where that is nothing
    stated: Sequence[Check]  # the checks of what the task states


class TaskRow(NamedTuple):
    """What came of one task."""

    arms: Mapping[str, Outcome]  # the draft's first, the loop's last
    ended: str  # how the loop stopped, and what its verdict rests on
    source: str  # what the loop's final text is
    spent: Mapping[str, int]  # completion tokens of the loop, by what they were for

    @property
    def draft(self) -> Outcome:
        """The first draft alone."""
        return self.arms["draft"]

    @property
    def loop(self) -> Outcome:
        """Ours."""
        return self.arms["loop"]


# The arms.


def refinement(case: Case, model: Model, plan: Plan) -> Refinement:
    """Return the loop on a case, as a user would start it."""
    limits = {"max_tokens": _MAX_TOKENS, "seed": 0, **plan.limits.model_dump(exclude_unset=True)}
    return build(case.text, model=model, profile=case.profile, limits=Limits.model_validate(limits))


async def write_draft(case: Case, model: Model, plan: Plan) -> Draft:
    """Return the greedy first draft, which all arms start from."""
    loop = refinement(case, model, plan)
    task = loop.state.task
    stated = [Examples()] if task.form == "code" else list(loop.checks)
    request = Requests(Prompts(), make_nonce(b"")).draft(loop.state)
    text = read_text(await measure.complete(model, request), task)
    return Draft(task, request, text, await _meets(text, task, stated), stated)


async def run_case(case: Case, model: Model, plan: Plan) -> TaskRow:
    """Run one case in all arms."""
    meter = Meter(model)
    first = await write_draft(case, meter, plan)
    draft = Outcome(await case.solves(first.text), None, meter.usage, first.text)
    arms = {"draft": draft}
    arms["draft + its examples"] = draft._replace(accepted=bool(first.met))
    if plan.vote:
        arms["vote of seven"] = await _vote(case, first, draft, model)
    loop_meter = Meter(model)
    loop = refinement(case, loop_meter, plan)
    run = await run_loop(loop)
    usage, passed = loop_meter.usage, run.stop_reason is StopReason.PASSED
    solved = await case.solves(run.text) if run.iterations else False
    arms["resampling"] = await _resample(case, first, draft, model, usage.tokens)
    arms["loop"] = Outcome(solved, passed, usage, run.text)
    basis = run.verdict.basis if passed and run.verdict else ""
    ended = f"{run.stop_reason or 'no stop'}{f', {basis}' if basis else ''}"
    source, spent = _source(run), _spent(run, usage)
    return TaskRow(arms, ended, source, spent)


async def _meets(text: str, task: Task, stated: Sequence[Check]) -> bool | None:
    results = {(await check(text, task)).passed for check in stated} - {None}
    return results == {True} if results else None


async def _resample(case: Case, first: Draft, draft: Outcome, model: Model, most: int) -> Outcome:
    found, met, number, usage = first.text, first.met, 0, draft.usage
    while met is False and number < _SAMPLES and usage.tokens < most:
        number += 1
        found, used = await _sample(first, number, model)
        met, usage = await _meets(found, first.task, first.stated), usage + used
    if met is False:
        return Outcome(draft.solved, False, usage, first.text)
    return Outcome(await case.solves(found), True if first.stated else None, usage, found)


async def _vote(case: Case, first: Draft, draft: Outcome, model: Model) -> Outcome:
    seeds = read_examples(first.task.text) or first_calls(first.task.text)
    inputs, usage = varied_inputs(seeds), draft.usage
    texts, results = [first.text], list[list[dict[str, Any]]]()
    while inputs:
        evaluation = Evaluation(texts[-1], seconds=10.0, copies=Variables().copies)
        try:
            results.append(await evaluation.outcomes(inputs))
        except CheckNotRun:
            results.append([{"error": "was not run"}] * len(inputs))
        groups = [*zip(*map(group_outcomes, zip(*results, strict=True)), strict=True)]
        ran = [g for g, r in zip(groups, results, strict=True) if any("error" not in o for o in r)]
        group, votes = (Counter(ran).most_common(1) or [((), 0)])[0]
        if votes > _VOTERS // 2:
            found = texts[groups.index(group)]
            return Outcome(await case.solves(found), True, usage, found)
        if votes + _VOTERS - len(texts) <= _VOTERS // 2:
            break
        sample, used = await _sample(first, len(texts), model)
        texts.append(sample)
        usage += used
    return Outcome(draft.solved, False, usage, first.text)


async def _sample(first: Draft, number: int, model: Model) -> tuple[str, Usage]:
    """Return one more sample of a draft, numbered from 1, and what it took.

    What the loop asks too is answered by the same sample: chance then favours neither.
    """
    seed = None if first.request.seed is None else first.request.seed + number
    request = first.request.model_copy(update={"temperature": SAMPLED, "seed": seed})
    reply = await measure.complete(model, request)
    return read_text(reply, first.task), reply.usage


async def run_loop(loop: Refinement) -> Run:
    """Run a loop to its next stop; an error of the model's ends it, any other is raised."""
    run = await loop.run()
    if loop.error and not isinstance(loop.error, ModelError):
        raise loop.error
    return run


def read_text(reply: Reply, task: Task) -> str:
    """Return the text in a reply; empty where it cannot be read."""
    try:
        return forms.read_text(reply.text, forms.Asked(task, cut=reply.finish != "stop")).text
    except ReplyError:
        return ""


# What the loop does.


def _source(run: Run) -> str:
    """Return what the final text is: a draft or an edit, and what led to it."""
    same = (one for one in run.iterations if one.text == run.text)
    return _written(run, next(same)) if run.iterations else "no text"


def _written(run: Run, one: Iteration) -> str:
    if one.number == 0:
        return "first draft"
    if one.parent is None or one.sampled:
        return "further drafts"
    by_model = {one.id for one in run.points.values() if one.by_model}
    return "edits after a critique" if by_model & {*one.acted_on} else "edits after a check"


def _spent(run: Run, usage: Usage) -> Mapping[str, int]:
    """Return the completion tokens by the text they were for, and those of critiques of it."""
    spent = Counter[str]()
    for one in run.iterations:
        spent[_written(run, one)] += run.usage_of(one.number).completion_tokens
    spent["no text"] = usage.completion_tokens - spent.total()
    spent[_CRITIQUES] = run.spent.get(Stage.CRITIQUE, Usage()).completion_tokens
    return spent


# The tables.


def report(rows: Sequence[TaskRow], what: str) -> str:
    """Return all tables on some rows."""
    arms = [*rows[0].arms]
    wrong = sum(not row.draft.solved for row in rows)

    def of(total: int, holds: Callable[[TaskRow], bool]) -> str:
        return f"{sum(map(holds, rows))} of {total}"

    def false(arm: str) -> str:
        taken = [row for row in rows if row.arms[arm].accepted]
        return measure.share(taken, lambda row: not row.arms[arm].solved) if taken else "-"

    def used(arm: str, read: Callable[[Usage], float | None]) -> str:
        return f"{sum(read(row.arms[arm].usage) or 0 for row in rows):,.0f}"

    lines: list[tuple[str, Callable[[str], str]]] = [
        ("solved", lambda arm: measure.share(rows, lambda row: row.arms[arm].solved)),
        ("rescued (draft wrong, answer right)",
         lambda arm: of(wrong, lambda row: row.arms[arm].solved and not row.draft.solved)),
        ("broken (draft right, answer wrong)",
         lambda arm: of(len(rows) - wrong,
                        lambda row: row.draft.solved and not row.arms[arm].solved)),
        ("accepted", lambda arm: of(len(rows), lambda row: bool(row.arms[arm].accepted))),
        ("wrong among accepted", false),
        ("calls", lambda arm: used(arm, lambda usage: usage.calls)),
        ("prompt tokens", lambda arm: used(arm, lambda usage: usage.prompt_tokens)),
        ("cached among them", lambda arm: used(arm, lambda usage: usage.cached_tokens)),
        ("completion tokens", lambda arm: used(arm, lambda usage: usage.completion_tokens)),
        ("seconds", lambda arm: used(arm, lambda usage: usage.seconds)),
    ]  # fmt: skip
    cells = [(name, *map(cell, arms)) for name, cell in lines]
    solved = [
        f"the loop solves, against {arm}, "
        + measure.paired(rows, lambda r: r.loop.solved, lambda r, arm=arm: r.arms[arm].solved)
        for arm in arms[:-1]
        if arm in ("draft", "vote of seven", "resampling")
    ]
    return "\n\n".join(
        filter(
            None,
            [
                f"## {what}, {len(rows)} tasks",
                measure.table(["", *arms], cells),
                f"In pairs: {'; '.join(solved)}. Intervals: 95 %, exact.",
                _endings(rows),
                _stages(rows),
            ],
        )
    )


def _endings(rows: Sequence[TaskRow]) -> str:
    """Return a table of how the loop stopped."""
    kinds = Counter(row.ended for row in rows)
    lines = []
    for kind, _ in kinds.most_common():
        some = [row for row in rows if row.ended == kind]
        tokens = sum(row.loop.usage.completion_tokens for row in some)
        seconds = sum(row.loop.usage.seconds for row in some)
        solved = sum(row.loop.solved for row in some)
        lines.append(
            (kind, len(some), f"{solved} of {len(some)}", f"{tokens:,}", f"{seconds:,.0f}")
        )
    heads = ["loop stopped", "tasks", "solved", "completion tokens", "seconds"]
    return measure.table(heads, lines)


def _stages(rows: Sequence[TaskRow]) -> str:
    """Return a table of what the loop's final texts are, and of what its tokens were for."""
    finals, tokens = Counter(row.source for row in rows), Counter[str]()
    for row in rows:
        tokens.update(row.spent)
    lines = []
    for source in tokens | finals:
        solved = sum(row.loop.solved for row in rows if row.source == source)
        lines.append((source, finals[source], solved, f"{tokens[source]:,}"))
    return measure.table(["loop", "final texts", "solved", "completion tokens"], lines)


# Running.


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the loop, which is by default as a user gets it."""
    parser.add_argument(
        "--limit", action="append", default=[], metavar="NAME=VALUE", help="any further limit"
    )


def plan(options: argparse.Namespace, **more: bool) -> Plan:
    """Return the plan that the options make."""
    limits = dict(one.partition("=")[::2] for one in options.limit)
    return Plan(Limits.model_validate(limits), **more)


def run(what: str, cases: Sequence[Case], model: Replies, plan: Plan) -> list[TaskRow]:
    """Run cases in all arms, print the tables, and return the rows.

    A stop (Ctrl-C, or a replay that lacks a reply) prints what there is.
    """

    def note(rows: Sequence[TaskRow]) -> str:
        return f"solved {sum(row.loop.solved for row in rows)} of {len(rows)}"

    rows = measure.collect(what, cases, model, lambda case: run_case(case, model, plan), note)
    if rows:
        print(f"\n{report(rows, f'{what}, {model.name}')}\n")
    return rows
