"""`table`: texts that are already there, side by side; a ruling counts for all that do the same."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ipyrefine import api
from ipyrefine.batch.refine_many import refine_many
from ipyrefine.checks import evaluation, inputs
from ipyrefine.core import model
from ipyrefine.core.decisions import Override
from ipyrefine.core.model import bare, on_conditions
from ipyrefine.core.run import Run
from ipyrefine.core.stated import Example, stated_examples
from ipyrefine.errors import CheckNotRun, UsageError
from ipyrefine.kernel.variables import Variables
from ipyrefine.profiles import name_by_draft
from ipyrefine.providers.choose import NoWriter
from ipyrefine.render import blocks, say
from ipyrefine.render.html import blocks_html
from ipyrefine.render.terminal import blocks_text

_RULINGS = {"pass": model.Outcome.PASS, "fail": model.Outcome.NEEDS_IMPROVEMENT}
_AT_ONCE = 4
_INPUTS = 60  # beside those of the examples
_SECONDS = 10.0  # processor time for all inputs of one text
_CELL, _LINE = 28, 120  # characters
_FEW = 3  # rows where nothing differs


class Cell(NamedTuple):
    """What one text gives at one point."""

    key: Any  # what texts that do the same share
    words: str


async def table(
    task: str,
    texts: Iterable[str] | Mapping[Any, str],
    checks: Sequence[api.CheckLike] = (),
    *,
    variables: Variables | Mapping[str, Any] | None = None,
    progress: bool = True,
) -> "Table":
    """Put texts that are already there into one table; no model is asked.

    Its rows are what the texts are tried on: the checks; of functions also the examples that the
    task states (or calls made from a head with annotated types), and inputs made from these and
    from the constants in the texts. Texts with equal columns are one group.

    Args:
        task: what was asked.
        texts: a list, or texts by name, such as a dict or a pandas column.
        checks: further checks, as for `refine`.
        variables: what the task is about besides its text, as for `refine`.
        progress: whether to show a progress bar.

    Raises:
        UsageError: there is no text, nothing to try it on, or a check cannot be used.
    """
    if not isinstance(texts, Iterable):
        raise UsageError(f"The texts are a list, or texts by name, not {texts!r}.")
    pairs = [*(texts.items() if hasattr(texts, "items") else enumerate(texts))]
    if twice := [name for name, uses in Counter(name for name, _ in pairs).items() if uses > 1]:
        raise UsageError(f"Two texts have the name {twice[0]!r}. Give each a name of its own.")
    written = {name: text for name, text in pairs if isinstance(text, str) and text.strip()}
    if isinstance(texts, str) or not written:
        raise UsageError("There is no text for the table. Give a list, or texts by name.")
    examples = stated_examples(model.Task(text=task, form="code"))
    calls = list(examples) or inputs.first_calls(task)
    form = Counter(map(name_by_draft, written.values())).most_common(1)[0][0]
    items = await refine_many(
        [{"text": task, "draft": text} for text in written.values()],
        at_once=_AT_ONCE,
        progress=progress,
        journal=False,
        model=NoWriter(),
        profile="code" if examples or calls else form,
        checks=checks,
        variables=variables,
        max_revisions=0,
    )
    runs, columns = {}, {name: dict[str, Cell]() for name, _ in pairs}
    for name, item in zip(written, items, strict=True):
        if item.run is None:
            raise item.error or AssertionError
        runs[name] = item.run
        if item.error:
            columns[name]["error"] = Cell(str(item.error), str(item.error))
    shown = [one for run in runs.values() for one in run.iterations[0].evidence]
    # An input that a text suggests itself is none that all are tried on.
    tried = any(row.source != "own" for one in shown for row in one.rows)
    tried = tried or any(one.grounds or one.outputs for one in shown)
    if not (calls or checks or tried):
        raise UsageError(
            "There is nothing to try the texts on. State an example such as `f(1) == 2`, or the "
            "head of the function with plain annotated types, or give checks."
        )
    if calls:
        await _add_inputs(columns, runs, calls, Variables.of(variables))
    for name, run in runs.items():
        columns[name] |= _check_cells(run, whole=not calls)
    return Table(runs, columns)


def _check_cells(run: Run, *, whole: bool) -> dict[str, Cell]:
    """Return the checks' cells for a text; with `whole`, also what it shows and does."""
    draft, cells = run.iterations[0], {}
    for one in draft.evidence:
        if one.basis != "none" and not one.is_empty:
            said = f"{blocks.evidence_mark(one).symbol} {say.check(one)}"
            said = " · ".join(filter(None, (said, on_conditions(one.conditions))))
            cells[one.name] = Cell((one.passed, one.score), said)
        if whole and one.outputs:
            cells["what it shows"] = Cell(one.outputs, blocks_text(blocks.outputs(draft.evidence)))
        for row in one.rows if whole and not one.outputs else ():
            cells[row.call] = Cell(row.gives, bare(row.gives))
    return cells


async def _add_inputs(
    columns: Mapping[Any, dict[str, Cell]],
    runs: Mapping[Any, Run],
    calls: Sequence[Example],
    variables: Variables,
) -> None:
    code = {name: run.iterations[0].text for name, run in runs.items()}  # without fences
    bare = [one.replace(gives="", kind="equals", prints=False) for one in calls]
    tried = (*dict.fromkeys([*bare, *inputs.natural_inputs(calls)[:_INPUTS]]),)
    free = asyncio.Semaphore(_AT_ONCE)

    async def run(text: str) -> list[evaluation.Outcome] | str | CheckNotRun:
        evaluated = evaluation.Evaluation(text, seconds=_SECONDS, copies=variables.copies)
        try:
            async with free:
                outcomes = await evaluated.outcomes(tried)
        except CheckNotRun as error:
            return error
        return evaluated.load_error or outcomes

    results = dict(zip(code, await asyncio.gather(*map(run, code.values())), strict=True))
    loaded = {name: given for name, given in results.items() if isinstance(given, list)}
    for number, one in enumerate(tried):
        outcomes = [given[number] for given in loaded.values()]
        places = evaluation.group_outcomes(outcomes)
        for name, outcome, place in zip(loaded, outcomes, places, strict=True):
            raised = evaluation.raised_type(outcome)
            words = evaluation.format_result(outcome).removeprefix("gives ")
            # The task may leave open what is raised; a missing name tells texts apart.
            error = words if raised == "NameError" else bool(raised)
            columns[name][one.call] = Cell((place, error), words)
    for name in results.keys() - loaded:
        failure = str(results[name])
        # What does not load is alike by its error; of what could not be run nobody knows.
        key = name if isinstance(results[name], CheckNotRun) else failure.split(":")[1]
        columns[name] |= {one.call: Cell((key,), failure) for one in tried}


class Table:
    """Texts side by side, in groups with equal columns, the largest first.

    It shows the fewest rows that tell all groups apart, and the shortest text of each group.

    Attributes:
        runs: each text's run by its name, with the rulings so far.
        groups: the names of each group's texts.
        points: what the texts were tried on.
    """

    def __init__(self, runs: Mapping[Any, Run], columns: Mapping[Any, Mapping[str, Cell]]) -> None:
        self.runs = dict(runs)
        self.points = tuple(dict.fromkeys(one for column in columns.values() for one in column))
        none = Cell(None, "")
        self._columns = {n: [c.get(one, none) for one in self.points] for n, c in columns.items()}
        alike: dict[Any, list[Any]] = {}
        for name, column in self._columns.items():
            alike.setdefault(tuple(cell.key for cell in column), []).append(name)
        self.groups = sorted(map(tuple, alike.values()), key=len, reverse=True)

    async def rule(self, group: int, ruling: str, reason: str = "") -> int:
        """Give a verdict of your own to every text of a group, and return how many have it now.

        It overrides the verdict of each run, and its record says so, and for how many.

        Args:
            group: its number, from 1.
            ruling: ``pass`` or ``fail``.
            reason: why, in your words.

        Raises:
            UsageError: there is no such group, its texts are empty, or the ruling is neither word.
        """
        if group not in range(1, len(self.groups) + 1):
            raise UsageError(f"There is no group {group!r}. There are 1 to {len(self.groups)}.")
        if ruling not in (*_RULINGS,):
            raise UsageError(f'A ruling is "pass" or "fail", not {ruling!r}.')
        api.require_kinds(reason=reason)
        names = self.groups[group - 1]
        if names[0] not in self.runs:
            raise UsageError(f"Group {group} has no text to rule on.")
        if len(names) > 1:
            same = f"the same {say.count(len(self.points), 'result')}"
            reason = f"{reason} (one ruling for {len(names)} texts with {same})".strip()
        decision = Override(iteration=0, outcome=_RULINGS[ruling], reason=reason)
        for name in names:
            self.runs[name] = await api.decide(self.runs[name], decision)
        return len(names)

    def rows(self) -> list[dict[str, Any]]:
        """Return a dict for each text, as for pandas: its group, its verdict, and every result."""
        rows = []
        for name, column in self._columns.items():
            run = self.runs.get(name)
            verdict = run.verdict if run else None
            row = {
                "name": name,
                "group": next(n for n, names in enumerate(self.groups, 1) if name in names),
                "verdict": verdict.outcome.value if verdict else "",
                "basis": verdict.basis if verdict else "",
                "because": say.verdict(run, run.chosen).sentence if run else "The text is empty.",
            }
            shown = (cell.words for cell in column)
            rows.append(row | dict(zip(self.points, shown, strict=True)) | row)
        return rows

    def __repr__(self) -> str:
        return blocks_text(self._blocks(), _LINE, whole=True)

    def _repr_html_(self) -> str:
        return blocks_html(self._blocks())

    def _blocks(self) -> list[blocks.Block]:
        counts = (len(self._columns), "text"), (len(self.groups), "group")
        sizes = " in ".join(say.count(*one) for one in counts)
        columns = [self._columns[names[0]] for names in self.groups]
        rows = [
            (self.points[place], *(one[place].words for one in columns))
            for place in _tell_apart(columns) or range(min(_FEW, len(self.points)))
        ]
        cells = [[evaluation.shorten(cell, _CELL) for cell in row] for row in rows]
        head = ("Group", *map(str, range(1, len(columns) + 1)))
        return [
            blocks.Paragraph(f"{sizes}, by {say.count(len(self.points), 'result')}."),
            blocks.Output("", (head, *map(tuple, cells))),
            *(self._section(*numbered) for numbered in enumerate(self.groups, 1)),
        ]

    def _section(self, number: int, names: Sequence[Any]) -> blocks.Section:
        title, listed = f"Group {number}: {say.count(len(names), 'text')}", map(str, names)
        drafts = {name: self.runs[name].iterations[0] for name in names if name in self.runs}
        if not drafts:
            empty = blocks.Paragraph(f"{', '.join(listed)}: empty", "flaw")
            return blocks.Section(title, (empty,), open=True)
        shown = min(drafts, key=lambda name: len(drafts[name].text))
        note = f"; the shortest is {shown}" if len(names) > 1 else ""
        run, draft = self.runs[shown], drafts[shown]
        said = say.verdict(run, draft)
        found = (
            blocks.Paragraph(f"{', '.join(listed)}{note}", "quiet"),
            *([] if draft.verdict else [blocks.Paragraph(run.message, "flaw")]),
            *([blocks.Paragraph(said.sentence)] if draft.override else blocks.checks(run, draft)),
            blocks.Text(draft.text, run.task.form),
        )
        return blocks.Section(f"{title} · {said.label}", found, open=not draft.override)


def _tell_apart(columns: Sequence[Sequence[Cell]]) -> list[int]:
    """Return a few points that tell all columns apart."""
    places, seen = [], list[tuple[Any, ...]]([()] * len(columns))
    while len({*seen}) < len(columns):
        told = [
            [(*before, one[place].key) for before, one in zip(seen, columns, strict=True)]
            for place in range(len(columns[0]))
        ]
        places.append(max(range(len(told)), key=lambda place: len({*told[place]})))
        seen = told[places[-1]]
    return sorted(places)
