"""`group`: submissions to one task, grouped by what they do, so that a ruling counts for many."""

import asyncio
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from ipyrefine import api
from ipyrefine.batch.frame import column_texts, items_frame
from ipyrefine.batch.pools import run_all
from ipyrefine.batch.refine_many import Item, refine_many
from ipyrefine.checks.behaviour import (
    Behaviour,
    Inputs,
    comparison_inputs,
    describe,
    group_behaviours,
    observe,
)
from ipyrefine.checks.variables import Variables
from ipyrefine.core.decisions import Override
from ipyrefine.core.model import Outcome, Task
from ipyrefine.core.run import Iteration
from ipyrefine.errors import UsageError
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import open_journal
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import document, labels
from ipyrefine.render.blocks import blocks_html
from ipyrefine.render.html import styled
from ipyrefine.render.terminal import blocks_text

if TYPE_CHECKING:
    from pandas import DataFrame

RULINGS = {"pass": Outcome.PASS, "fail": Outcome.NEEDS_IMPROVEMENT}
_MOST_INPUTS = 3  # that a group shows
_MOST_MEMBERS = 40  # that a group lists


async def group(
    submissions: Iterable[str | Item],
    task: str = "",
    *,
    seconds: float = 10.0,
    variables: Variables | Mapping[str, Any] | None = None,
    at_once: int = 4,
    progress: bool = True,
    **options: Any,
) -> "Groups":
    """Group submissions to one task by what they do; no model is asked.

    Each is run in the sandbox on the examples that the task states, or else on calls made from the
    annotated types of the function whose head it gives; and on further inputs, made from those and
    from the constants in the submissions. Those with the same results on all inputs, and the same
    results of the checks, are one group. What does not load is grouped by its error.

    Args:
        submissions: texts, such as a list or a pandas column, or items of `refine_many`.
        task: what was asked; not needed beside items.
        seconds: processor time for all inputs of one submission.
        variables: what the task is about besides its text, as for `refine`.
        at_once: how many run at a time.
        progress: whether to show progress bars.
        **options: as for `refine_many`: ``name`` keeps the rulings under it in the journal, and
            ``checks`` adds checks.

    Raises:
        UsageError: the task gives nothing to call or is not for Python code, or the items have
            different tasks; or as for `refine_many`.
    """
    column: Any = submissions
    index = [*column.index] if hasattr(column, "isna") else None
    given = [*column] if index is None else column_texts(column)
    items = [one for one in given if isinstance(one, Item)]
    if len(items) < len(given):
        comparison_inputs(Task(text=task, form="code"))  # so that nothing is run in vain
        tasks = [{"text": task, "draft": text} for text in given]
        options = _WITHOUT_MODEL | {"variables": variables} | options
        items = await refine_many(tasks, at_once=at_once, progress=progress, **options)
        empty = UsageError("The submission is empty.")
        items = [
            item if text.strip() else item._replace(error=empty)
            for item, text in zip(items, given, strict=True)
        ]
    texts = dict.fromkeys(text for item in items if (text := _text_of(item)))
    inputs = comparison_inputs(_common_task(items), [*texts])
    files = Variables.of(variables).files

    async def run(text: str) -> tuple[str, Behaviour]:
        return text, await observe(text, inputs, seconds=seconds, files=files)

    from tqdm.auto import tqdm

    known: dict[str, Behaviour] = {}
    with tqdm(total=len(texts), unit="text", desc="Comparing", disable=not progress) as bar:
        async with aclosing(run_all(texts, at_once, run)) as results:
            async for text, behaviour in results:
                known[text] = behaviour
                bar.update()
    behaviours = [
        known.get(_text_of(item)) or Behaviour(failure=str(item.error), kind=str(item.error))
        for item in items
    ]
    return Groups(items, behaviours, inputs, index)


_WITHOUT_MODEL: dict[str, Any] = {
    "model": ScriptedModel((), name="none"),
    "profile": "code",
    "opinion": "never",
    "critique": "never",
    "max_revisions": 0,
}


def _text_of(item: Item) -> str:
    """Return the text that a run chose; empty where there is none."""
    return item.run.text if item.run else ""


def _common_task(items: Sequence[Item]) -> Task:
    """Return the task of all items; the shortest, as it may name a submission's IPython lines.

    Raises:
        UsageError: they have none, or different ones.
    """
    tasks = [item.run.task for item in items if item.run]
    if not tasks:
        raise UsageError("There is no submission with any code to group.")
    common = min(tasks, key=lambda task: len(task.text))
    if not all(task.text.startswith(common.text) for task in tasks):
        raise UsageError("The items have different tasks. Group those of one task at a time.")
    return common


class Group(NamedTuple):
    """Submissions that do the same.

    Attributes:
        number: its number, from 1; the largest group comes first.
        members: the places of its submissions among all, from 0.
        representative: the place of its shortest submission.
        text: the code of that one; empty where there is none.
        results: what it does on each input, in words; empty where it could not be run.
        failure: why it could not be run, or else why it has no results; empty where it has.
    """

    number: int
    members: tuple[int, ...]
    representative: int
    text: str
    results: tuple[str, ...]
    failure: str = ""


class Groups:
    """Submissions in groups, the largest first; iterating over it yields each `Group`.

    In a notebook it shows for each group a representative, and the inputs that tell it from the
    largest other group.

    Args:
        items: the submissions with their runs.
        behaviours: what each of them does.
        inputs: on what.
        index: what the submissions are called; their places, from 0, by default.

    Attributes:
        items: the submissions, in their order, with the rulings so far.
        inputs: the calls that they were compared on, as Python.
    """

    def __init__(
        self,
        items: Sequence[Item],
        behaviours: Sequence[Behaviour],
        inputs: Inputs,
        index: Sequence[Any] | None = None,
    ) -> None:
        self.items = list(items)
        self.inputs = tuple(example.source for example in inputs.examples)
        self._inputs = inputs
        self._index = list(range(len(self.items))) if index is None else list(index)
        self._keys = group_behaviours(behaviours, inputs)
        places: dict[Hashable, list[int]] = {}
        for place, item in enumerate(self.items):
            evidence = _chosen(item).evidence if _text_of(item) else ()
            checks = frozenset((one.name, one.passed) for one in evidence)
            places.setdefault((self._keys[place], checks), []).append(place)
        self._groups = [
            self._group(number, members, behaviours)
            for number, members in enumerate(sorted(places.values(), key=len, reverse=True), 1)
        ]

    def _group(self, number: int, members: Sequence[int], behaviours: Sequence[Behaviour]) -> Group:
        texts = {place: _text_of(self.items[place]) for place in members}
        shortest = min(members, key=lambda place: len(texts[place]))
        found = behaviours[shortest]
        return Group(
            number,
            tuple(members),
            shortest,
            texts[shortest],
            tuple(map(describe, found.outcomes)),
            found.failure,
        )

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def differences(self, number: int) -> tuple[str, ...]:
        """Return the inputs that tell a group from the largest other one, stated ones first.

        Args:
            number: the group's number, from 1.

        Raises:
            UsageError: there is no such group.
        """
        group = self._find(number)
        return tuple(self.inputs[place] for place in self._differences(group, self._other(group)))

    async def rule(self, number: int, ruling: str, reason: str = "") -> int:
        """Give a verdict of your own to every submission of a group.

        It overrides the verdict of each run, and its record and the journal say so; those of the
        others also say which submission you looked at.

        Args:
            number: the group's number, from 1.
            ruling: ``pass`` or ``fail``.
            reason: why, in your words; each submission's record shows it.

        Returns:
            How many submissions have the verdict now.

        Raises:
            UsageError: there is no such group, it has no code, or the ruling is another word.
            JournalError: a ruling could not be stored.
        """
        group = self._find(number)
        if ruling not in RULINGS:
            raise UsageError(f'A ruling is "pass" or "fail", not {ruling!r}.')
        if not group.text:
            raise UsageError(f"Group {number} has no code to rule on.")
        same = f"same results on {labels.count(len(self.inputs), 'input')}"
        same = "same error" if group.failure else same
        source = f"(spread from submission {group.representative}: {same})"  # a place names nobody
        runs = []
        for place in group.members:
            own = place == group.representative
            words = reason if own else f"{reason} {source}".strip()
            runs.append(_override(self.items[place], RULINGS[ruling], words))
        for place, item in zip(group.members, await asyncio.gather(*runs), strict=True):
            self.items[place] = item
        return len(group.members)

    def frame(self) -> "DataFrame":
        """Return the submissions as a table, as `refine_frame` does, with the number of the group.

        Raises:
            UsageError: pandas is missing.
        """
        numbers = {place: group.number for group in self for place in group.members}
        frame = items_frame(self.items, self._index)
        frame.insert(0, "group", [numbers[place] for place in range(len(self.items))])
        return frame

    def __repr__(self) -> str:
        return blocks_text(self._blocks())

    def _repr_html_(self) -> str:
        return styled(blocks_html(self._blocks()))

    def _find(self, number: int) -> Group:
        if not 1 <= number <= len(self._groups):
            raise UsageError(f"There is no group {number}. There are 1 to {len(self._groups)}.")
        return self._groups[number - 1]

    def _other(self, group: Group) -> Group | None:
        """Return the largest other group that was run, if this one was."""
        others = (one for one in self if one.number != group.number and one.results)
        return next(others, None) if group.results else None

    def _differences(self, group: Group, other: Group | None) -> list[int]:
        """Return the places of the inputs that tell two groups apart.

        Stated ones come first and edge cases last; of others the short ones come first.
        """
        if other is None:
            return []
        pairs = zip(self._keys[group.representative], self._keys[other.representative], strict=True)
        places = [place for place, (mine, theirs) in enumerate(pairs) if mine != theirs]
        stated, edges = self._inputs.stated, self._inputs.edges
        return sorted(places, key=lambda n: (n >= stated, edges[n], len(self.inputs[n])))

    # What it shows

    def _blocks(self) -> list[document.Block]:
        further = len(self.inputs) - self._inputs.stated
        parts = [labels.count(self._inputs.stated, "stated example")] if self._inputs.stated else []
        parts += [labels.count(further, "further input")] if further else []
        counted = labels.count(len(self.items), "submission")
        summary = f"{counted} in {labels.count(len(self), 'group')}, by {' and '.join(parts)}."
        ruled = [group for group in self if self._is_ruled(group)]
        blocks: list[document.Block] = [document.Paragraph(summary)]
        if not further:
            note = "No further inputs could be made: only calls with plain values are varied."
            blocks.append(document.Paragraph(note, "quiet"))
        if ruled:
            many = sum(len(group.members) for group in ruled)
            note = f"You ruled on {len(ruled)} of the groups, {labels.count(many, 'submission')}."
            blocks.append(document.Paragraph(note, "quiet"))
        return [*blocks, *map(self._version, self)]

    def _version(self, group: Group) -> document.Version:
        name = f"Group {group.number}: {labels.count(len(group.members), 'submission')}"
        item, ruled = self.items[group.representative], self._is_ruled(group)
        blocks: list[document.Block] = []
        if ruled:
            blocks += document.reason(_chosen(item))
        blocks.append(document.Paragraph(self._names(group), "quiet"))
        if group.text:
            language = item.run.task.language if item.run else ""
            blocks.append(document.Text(group.text, "code", language=language))
        blocks += self._results(group)
        label = labels.iteration_label(_chosen(item)) if _text_of(item) else None
        return document.Version(name, label, "", False, False, tuple(blocks), open=not ruled)

    def _names(self, group: Group) -> str:
        """Return which submissions a group has, and which of them is shown."""
        names = [str(self._index[place]) for place in group.members]
        listed = ", ".join(names[:_MOST_MEMBERS])
        listed += f" and {len(names) - _MOST_MEMBERS} more" * (len(names) > _MOST_MEMBERS)
        if len(names) == 1:
            return f"Submission {listed}"
        return f"Submissions {listed}; the shortest is {self._index[group.representative]}"

    def _results(self, group: Group) -> list[document.Block]:
        """Return what tells a group apart, or else why it was not run."""
        if group.failure:
            return [document.Paragraph(group.failure, "flaw")]
        other = self._other(group)
        places = self._differences(group, other)
        if other and not places:
            differs = f"Same results as group {other.number}, but the checks differ."
            checks = document.checks(_chosen(self.items[group.representative]))
            return [document.Paragraph(differs), *checks]
        title = "Results"
        if other:
            counted = f"{len(places)} of {len(self.inputs)} inputs"
            title = f"Differs from group {other.number} on {counted}"
        rows = []
        for place in (places or range(len(self.inputs)))[:_MOST_INPUTS]:
            setup = "; ".join(self._inputs.examples[place].setup.splitlines())
            parts = [f"after {setup}"] if setup else []
            parts.append(group.results[place])
            parts += [f"group {other.number} {other.results[place]}"] if other else []
            rows.append(document.Item(name=self.inputs[place], note="; ".join(parts)))
        return [document.Items(title, tuple(rows))]

    def _is_ruled(self, group: Group) -> bool:
        """Return whether every submission of a group has a ruling."""
        items = [self.items[place] for place in group.members]
        return all(_text_of(item) and _chosen(item).override for item in items)


def _chosen(item: Item) -> Iteration:
    chosen = item.run.chosen if item.run else None
    assert chosen is not None, "only a text has a verdict"
    return chosen


async def _override(item: Item, outcome: Outcome, reason: str) -> Item:
    """Return an item whose verdict is the user's; its run in the journal continues."""
    run, number, recorder = item.run, _chosen(item).number, None
    assert run is not None, "only a text has a verdict"
    if item.name and open_journal() is not None and (stored := Journal().find(item.name)):
        run, recorder = stored.run, Journal().recorder(stored)
    decision = Override(iteration=number, outcome=outcome, reason=reason)
    return item._replace(run=await api.decide(run, decision, recorder))
