"""`group`: submissions to one task, grouped by what they do, so that a ruling counts for many."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

from ipyrefine import api
from ipyrefine.batch.pools import run_all
from ipyrefine.batch.refine_many import Item, column_texts, items_frame, refine_many
from ipyrefine.checks.evaluation import Evaluation, format_result, group_outcomes, raised_type
from ipyrefine.checks.evaluation import Outcome as Result
from ipyrefine.checks.inputs import first_calls, further_inputs, is_edge_case
from ipyrefine.core.decisions import Override
from ipyrefine.core.model import Outcome, Task
from ipyrefine.core.stated import stated_examples
from ipyrefine.errors import CheckNotRun, UsageError
from ipyrefine.journal.store import Journal
from ipyrefine.journal.writer import open_journal
from ipyrefine.kernel.variables import Variables
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render import document, labels
from ipyrefine.render.html import blocks_html
from ipyrefine.render.terminal import blocks_text

if TYPE_CHECKING:
    from pandas import DataFrame

_RULINGS = {"pass": Outcome.PASS, "fail": Outcome.NEEDS_IMPROVEMENT}
_MOST_INPUTS = 3  # that a group shows
_WITHOUT_MODEL: dict[str, Any] = {
    "model": ScriptedModel((), name="none"),
    "profile": "code",
    "critique": "never",
    "max_revisions": 0,
}


async def group(
    submissions: Iterable[str],
    task: str,
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
        submissions: texts, such as a list or a pandas column.
        task: what was asked.
        seconds: processor time for all inputs of one submission.
        variables: what the task is about besides its text, as for `refine`.
        at_once: how many run at a time.
        progress: whether to show a progress bar.
        **options: as for `refine_many`: ``name`` keeps the rulings under it in the journal, and
            ``checks`` adds checks.

    Raises:
        UsageError: the task gives nothing to call, or no submission has code; or as for
            `refine_many`.
    """
    column: Any = submissions
    texts = column_texts(column) if hasattr(column, "isna") else [*column]
    index = [*column.index] if hasattr(column, "isna") else [*range(len(texts))]
    if not any(text.strip() for text in texts):
        raise UsageError("There is no submission with any code to group.")
    known = stated_examples(Task(text=task, form="code"))
    stated = [one for one in known if one.kind != "table"]
    if not (calls := stated or first_calls(task)):
        raise UsageError(
            "The task gives nothing to call. State an example such as `f(1) == 2`, or the head of "
            "the function with plain annotated types."
        )
    options = _WITHOUT_MODEL | {"variables": variables} | options
    tasks = [{"text": task, "draft": text} for text in texts]
    items = await refine_many(tasks, at_once=at_once, progress=progress, **options)
    empty = UsageError("The submission is empty.")
    items = [
        item if text.strip() else item._replace(error=empty)
        for item, text in zip(items, texts, strict=True)
    ]
    texts = [item.run.iterations[0].text if item.run else "" for item in items]  # without fences
    bare = [one.replace(expected="", kind="equals", prints=False) for one in calls]
    found = dict.fromkeys([*bare, *further_inputs(calls, texts)])
    edges = {one: is_edge_case(one, calls) for one in found}
    inputs = tuple(sorted(found, key=edges.__getitem__))  # edge cases last
    copies = Variables.of(variables).copies

    async def run(text: str) -> tuple[str, _Behaviour]:
        evaluation = Evaluation(text, seconds=seconds, copies=copies)
        try:
            results = await evaluation.outcomes(inputs)
        except CheckNotRun as error:
            return text, _Behaviour([], str(error))
        load_error = evaluation.load_error
        return text, _Behaviour([] if load_error else results, load_error)

    async with aclosing(run_all(dict.fromkeys(texts), at_once, run)) as done:
        behaviours = {text: behaviour async for text, behaviour in done}
    found_keys = _keys([*behaviours.values()], [edges[one] for one in inputs])
    keys = dict(zip(behaviours, found_keys, strict=True))
    alike: dict[Any, list[int]] = {}
    for place, (item, text) in enumerate(zip(items, texts, strict=True)):
        evidence = item.run.iterations[0].evidence if item.run else ()
        checks = frozenset((one.name, one.passed) for one in evidence)
        alike.setdefault((keys[text], checks), []).append(place)
    groups = []
    for number, members in enumerate(sorted(alike.values(), key=len, reverse=True), 1):
        shortest = min(members, key=lambda place: len(texts[place]))
        text, (results, failure) = texts[shortest], behaviours[texts[shortest]]
        words = tuple(map(format_result, results)) if text else ()
        failure = failure if text else str(items[shortest].error)
        groups.append(Group(number, tuple(members), shortest, text, words, failure))
    return Groups(items, groups, [one.source for one in inputs], index)


class _Behaviour(NamedTuple):
    """What a text gives on each input, or why it gives nothing."""

    results: list[Result]
    failure: str = ""


def _keys(behaviours: Sequence[_Behaviour], edges: Sequence[bool]) -> Iterator[Any]:
    """Yield for each text what those of its group share: input by input, or its kind of failure.

    That is the value, the type of the exception (on an edge case any), or what was printed where
    the value is None.
    """
    columns = zip(*(one.results for one in behaviours if one.results), strict=True)
    shared = [
        [
            (place, "" if edge else raised_type(result))
            for place, result in zip(group_outcomes(column), column, strict=True)
        ]
        for column, edge in zip(columns, edges, strict=False)
    ]
    rows = zip(*shared, strict=True)
    for one in behaviours:
        yield next(rows) if one.results else tuple(one.failure.split(":")[:2])


class Group(NamedTuple):
    """Submissions that do the same.

    Attributes:
        number: its number, from 1; the largest group comes first.
        members: the places of its submissions among all, from 0.
        representative: the place of its shortest submission.
        text: the code of that one; empty where there is none.
        results: what it does on each input, in words; empty where it could not be run.
        failure: why it could not; empty where it was run.
    """

    number: int
    members: tuple[int, ...]
    representative: int
    text: str
    results: tuple[str, ...]
    failure: str


class Groups:
    """Submissions in groups, the largest first; iterating over it yields each `Group`.

    In a notebook it shows for each group a representative, and the inputs that tell it from the
    largest other group.

    Attributes:
        items: the submissions, in their order, with the rulings so far.
        inputs: the calls that they were compared on, as Python.
    """

    def __init__(
        self,
        items: Sequence[Item],
        groups: Sequence[Group],
        inputs: Sequence[str],
        index: Sequence[Any],
    ) -> None:
        self.items, self.inputs = list(items), tuple(inputs)
        self._groups, self._index = groups, index

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
        if not 1 <= number <= len(self._groups):
            raise UsageError(f"There is no group {number}. There are 1 to {len(self._groups)}.")
        group = self._groups[number - 1]
        if ruling not in _RULINGS:
            raise UsageError(f'A ruling is "pass" or "fail", not {ruling!r}.')
        if not group.text:
            raise UsageError(f"Group {number} has no code to rule on.")
        same = "same error" if group.failure else f"same results on {len(self.inputs)} inputs"
        # A place names nobody.
        spread = f"{reason} (spread from submission {group.representative}: {same})".strip()
        for place in group.members:
            words = reason if place == group.representative else spread
            decision = Override(iteration=0, outcome=_RULINGS[ruling], reason=words)
            item, recorder = self.items[place], None
            run = item.run
            if item.name and open_journal() is not None and (stored := Journal().find(item.name)):
                run, recorder = stored.run, Journal().recorder(stored)
            assert run is not None, "only a text has a verdict"
            self.items[place] = item._replace(run=await api.decide(run, decision, recorder))
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

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def __repr__(self) -> str:
        return blocks_text(self._blocks())

    def _repr_html_(self) -> str:
        return blocks_html(self._blocks())

    def _blocks(self) -> list[document.Block]:
        count = labels.count
        words = (
            f"{count(len(self.items), 'submission')} in {count(len(self), 'group')}, "
            f"by what they do on {count(len(self.inputs), 'input')}."
        )
        return [document.Paragraph(words), *map(self._section, self)]

    def _section(self, group: Group) -> document.Section:
        size = len(group.members)
        names = ", ".join(str(self._index[place]) for place in group.members)
        names = f"Submission{'s' * (size > 1)} {names}"
        if size > 1:
            names += f"; the shortest is {self._index[group.representative]}"
        blocks: list[document.Block] = [document.Paragraph(names, "quiet")]
        folded, label = False, None
        if run := self.items[group.representative].run:
            draft = run.iterations[0]
            folded, label = bool(draft.override), labels.iteration_label(draft)
            blocks += document.reason(run, draft) if folded else []
            blocks.append(document.Text(group.text, "code"))
        if group.failure:
            blocks.append(document.Paragraph(group.failure, "flaw"))
        if group.results:
            blocks.append(self._results(group))
        name = f"Group {group.number}: {labels.count(size, 'submission')}"
        return document.Section(name, tuple(blocks), label, open=not folded)

    def _results(self, group: Group) -> document.Items:
        """Return what tells a group from the largest other one, or else what it does."""
        places, title = [*range(len(self.inputs))], "Results"
        if other := next((one for one in self if one is not group and one.results), None):
            places = [n for n in places if group.results[n] != other.results[n]]
            count = f"{len(places)} of {len(self.inputs)} inputs"
            title = f"Differs from group {other.number} on {count}"
            title += "" if places else ", but the checks differ"
        rows = []
        for place in places[:_MOST_INPUTS]:
            rival = f"; group {other.number} {other.results[place]}" if other else ""
            rows.append(document.Item(self.inputs[place], f"{group.results[place]}{rival}"))
        return document.Items(title, tuple(rows))
