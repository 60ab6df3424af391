"""A run as blocks in reading order; HTML and the terminal draw the same blocks."""

from collections.abc import Callable, Container, Iterable

from ipyrefine.core.actions import decision_sentence
from ipyrefine.core.addresses import MASK, find_addresses
from ipyrefine.core.decisions import Accept
from ipyrefine.core.model import Outcome, StopReason
from ipyrefine.core.points import lost_sections
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import KEPT_HERE
from ipyrefine.core.unsourced import own_words
from ipyrefine.render import gives, grid, labels, words
from ipyrefine.render.blocks import Block, Item, Items, Paragraph, Section, Table, Text, Texts, Told
from ipyrefine.render.escape import strip_colours

_EXITS: dict[str, Callable[[str], list[str]]] = {
    "New addresses in it: {}.": find_addresses,
    "Left masked: {}. No secret stood there before, so fill it in yourself.": MASK.findall,
}
MAX_SCORES = 50  # a panel sends all of them again with each iteration


def record(run: Run) -> list[Block]:
    """Return the blocks of a whole run: the outcome first, then how it came about."""
    return [
        summary(run),
        *notices(run),
        *result(run),
        *unfinished(run),
        *(gives.whole_account(run, run.chosen) if run.chosen else ()),
        *(grid.checks(run, run.chosen) if run.chosen else ()),
        *(texts(run, run.chosen) if run.chosen else ()),
        *scores(run),
        *usage(run),
        Section("Settings", tuple(settings(run))),
    ]


def texts(
    run: Run,
    shown: Iteration | None,
    *,
    whole: bool = True,
    every: bool = True,
    apart: Container[int] = (),
) -> list[Texts]:
    """Return a line for each text; with `whole`, all of each, and else what was said of one.

    Without `every`, the first of many have none. What the texts give whose numbers are `apart`
    stands elsewhere.
    """

    def below(line: Told) -> tuple[Block, ...]:
        text = run.iterations[line.number]
        if whole:
            outputs = text.number not in apart
            return tuple(version(run, text, shown, with_outputs=outputs))
        said = grid.feedback(run, text) if line.shown else []
        return () if "".join(one.text for one in said) == line.said else tuple(said)

    found = grid.texts(run, shown, every=every)
    lines = (tuple(one._replace(blocks=below(one)) for one in block.lines) for block in found)
    return [block._replace(lines=told) for block, told in zip(found, lines, strict=True)]


def version(
    run: Run, text: Iteration, shown: Iteration | None = None, *, with_outputs: bool = True
) -> list[Block]:
    """Return all of a text: what was written, what it misses and gives, and what was said of it.

    What stands elsewhere of the text that is shown there is left out, and what its verdict says.
    """
    why = reason(run, text)
    sentence = "".join(one.text for one in why)
    missed = [
        one
        for one in grid.missed(run, text)
        if one.text not in sentence or one.quote or one.demand or one.fix or one.detail
    ]
    said = [one for one in grid.feedback(run, text) if one.text not in sentence]
    return [
        *why,
        *(writing(run, text) if text is not shown or text.parent is not None else ()),
        *_items("Missed", missed if text is not shown else ()),
        *(gives.account(run, text, alone=True) if with_outputs and text is not shown else ()),
        *said,
        *claims(run, text),
        *notes(text),
    ]


def claims(run: Run, text: Iteration) -> list[Block]:
    """Return the changes that a revision claims for what it was written for."""
    items = (
        Item(
            text=f"{run.points[id_].words if id_ in run.points else id_} → "
            f"{'left as it is: ' if id_ in text.contested else ''}{summary}"
        )
        for id_, summary in text.changes.items()
        if summary
    )
    return _items("What it says it changed", items)


def notes(text: Iteration) -> list[Block]:
    """Return the model's notes before the text, and what writing and reading it took."""
    parts = labels.usage_parts(text.usage)
    return [
        *gives.printed("Model notes", text.thoughts),
        *([Paragraph(" · ".join(parts), "quiet")] if parts else []),
    ]


def details(run: Run, text: Iteration | None) -> list[Block]:
    """Return what stands nowhere else: how the cell was read, what was decided, what it took."""
    loud = [one.text for one in warnings(run, text) if one.kind == "warning"]
    end = [words.stop_sentence(run)] if run.message and run.stop_reason else []
    ran = (
        one
        for one in (text.evidence if text else ())
        if one.basis == "run" and one.passed and one.shows
    )
    return [
        Paragraph(labels.opening(run.setup), "quiet"),
        *(reason(run, text) if text else ()),
        *(Paragraph(strip_colours(one.shows).strip(), "quiet") for one in ran),
        *(Paragraph(one, "quiet") for one in run.warnings if one not in loud),
        *decisions(run),
        *explanations(run),
        *(Paragraph(one, "quiet") for one in end),
        *scores(run),
        *usage(run),
        *settings(run),
    ]


def summary(run: Run) -> Paragraph:
    """Return the line at the top: the stage or the verdict, then numbers."""
    said, parts = words.verdict(run, run.chosen), list[str]()
    lead = labels.STAGES[run.stage] if run.stage and labels.running(run) else str(said.label)
    if said.score:
        parts.append(f"score {said.score}")
    if run.chosen is not None:
        accepted = run.best is not None and run.chosen.number != run.best
        name = run.name(run.chosen.number).lower()
        parts.append(f"{'accepted' if accepted else 'best'}: {name}")
        parts.append(f"{run.revisions} of {labels.count(run.allowed_revisions, 'revision')}")
    parts = parts * (not run.setup.is_look) + labels.usage_parts(run.usage, run.seconds)
    if run.stop_reason is not None and not run.setup.is_look:
        parts.append(f"stopped: {labels.STOPS[run.stop_reason]}")
    return Paragraph("".join(f"· {part} " for part in parts), lead=lead)


def notices(run: Run) -> list[Block]:
    """Return why the run stopped, what to clarify, the user's decisions and the warnings."""
    return [
        *([Paragraph(words.stop_sentence(run))] if run.message else []),
        *after_run(run),
        *decisions(run),
        *explanations(run),
        *warnings(run, run.chosen),
    ]


def after_run(run: Run) -> list[Block]:
    """Return what came of the accepted text in its cell."""
    ran = words.ran_words(run)
    if ran.differs:
        return [Paragraph(ran.sentence, "flaw", "Differs now that it ran:")]
    said = f"{ran.sentence[:1].upper()}{ran.sentence[1:]}."
    return [Paragraph(said, "quiet")] if ran.sentence else []


def decisions(run: Run) -> list[Block]:
    """Return the user's decisions, without those that the stop names."""
    accepted = run.ruling if run.stop_reason is StopReason.ACCEPTED else None
    left_out = accepted if isinstance(accepted, Accept) and not accepted.reason else None
    return [Paragraph(decision_sentence(run, one)) for one in run.decisions if one is not left_out]


def explanations(run: Run) -> list[Block]:
    """Return the user's questions about texts, with the answers."""
    return [
        Paragraph(f"{one.answer} ({run.name(one.iteration)})", lead=f"You asked: {one.question}")
        for one in run.explanations
    ]


def warnings(run: Run, iteration: Iteration | None) -> list[Paragraph]:
    """Return the warnings that say more than the verdict of a text does."""
    verdict = iteration.verdict if iteration else None
    told = verdict.line if verdict and verdict.outcome is Outcome.NOT_JUDGED else ""
    said = [
        Paragraph(one, "quiet" if one == KEPT_HERE else "warning")
        for one in run.warnings
        if not told or told not in one
    ]
    return [*said, *(exits(run, iteration) if iteration else ())]


def exits(run: Run, iteration: Iteration) -> list[Paragraph]:
    """Return what to see of a text before it is accepted: new addresses, and masks for secrets."""
    own = "\n".join(own_words(run))
    return [
        Paragraph(sentence.format(", ".join(new)), "warning")
        for sentence, find in _EXITS.items()
        if (new := [one for one in dict.fromkeys(find(iteration.text)) if one not in find(own)])
    ]


def result(run: Run) -> list[Block]:
    """Return the chosen text."""
    return [Text(run.text, run.task.form, run.task.language)] if run.chosen else []


def unfinished(run: Run) -> list[Block]:
    """Return the start of a text whose call ended early."""
    if run.stop_reason is None or not run.unfinished.strip():
        return []
    return [Text(run.unfinished, run.task.form, run.task.language, "Written before it stopped")]


def scores(run: Run) -> list[Block]:
    """Return the scores from the second verdict on."""
    latest = [(one, one.verdict) for one in run.iterations[-MAX_SCORES:]]
    if sum(verdict is not None for _, verdict in latest) < 2 or not labels.has_scores(run):
        return []
    values = [verdict.score if verdict else None for _, verdict in latest]
    line = f"Scores {labels.sparkline(values)} {' → '.join(map(labels.score, values))}"
    line += f" (target {labels.score(run.limits.target)})"
    if len(latest) < len(run.iterations):
        line += f" Latest {len(latest)} of {len(run.iterations):,} texts."
    return [Paragraph(line, "quiet")]


def usage(run: Run) -> list[Block]:
    """Return calls, tokens, time and cost of each stage."""
    head = ("Stage", "Calls", "Prompt tokens", "Cached", "Completion tokens", "Time", "Cost")
    rows = tuple(
        (
            labels.STAGES.get(stage, stage),
            str(used.calls),
            f"{used.prompt_tokens:,}",
            labels.NONE if used.cached_tokens is None else f"{used.cached_tokens:,}",
            f"{used.completion_tokens:,}",
            labels.seconds(used.seconds),
            labels.cost(used.cost),
        )
        for stage, used in run.spent.items()
    )
    return [Table("Usage by stage", head, rows)] if rows else []


def settings(run: Run) -> list[Block]:
    """Return the task with its criteria, checklist and limits."""
    task = run.task
    if run.setup.is_look:
        return [Paragraph(f"checks {', '.join(run.setup.checks) or '(none)'}", "quiet")]
    return [
        Paragraph(task.text, "words"),
        *_items("Your answers", (Item(text=one.sentence) for one in task.clarifications)),
        *_items(
            "Shown to the model",
            (Item(one.phrase, text=one.text) for one in task.materials if one.phrase),
        ),
        *_items("Criteria", (Item(one.name, text=one.definition) for one in task.criteria)),
        *_items("Checklist", (Item(text=one) for one in task.checklist)),
        Paragraph(" · ".join(labels.settings(run)), "quiet"),
    ]


def reason(run: Run, iteration: Iteration) -> list[Paragraph]:
    """Return why the verdict is what it is."""
    sentence = words.verdict(run, iteration).sentence
    return [Paragraph(sentence)] if sentence else []


def writing(run: Run, iteration: Iteration) -> list[Block]:
    """Return a text, or how it differs from its parent, with the changes it claims."""
    if iteration.failure:
        return [failure(iteration)]
    if iteration.parent is None:
        return [Text(iteration.text, run.task.form, run.task.language, "Text")]
    return difference(run, iteration)


def difference(run: Run, iteration: Iteration) -> list[Block]:
    """Return how a text differs from its parent, and the sections that it lost."""
    parent, form, language = iteration.parent, run.task.form, run.task.language
    assert parent is not None, "only a revision differs from another text"
    title, old = f"Changes from {run.mention(parent)}", run.iterations[parent].text
    return [Text(iteration.text, form, language, title, old), *lost(run, iteration)]


def lost(run: Run, iteration: Iteration) -> list[Block]:
    """Return the sections of prose that a revision lost or shortened, in one line."""
    sentence = labels.losses_sentence(lost_sections(run, iteration))
    return [Paragraph(sentence, "warning")] if sentence else []


def failure(iteration: Iteration) -> Paragraph:
    """Return why the model gave no usable text."""
    return Paragraph(iteration.failure, "flaw", "No usable text from the model:")


def _items(title: str, items: Iterable[Item]) -> list[Block]:
    found = tuple(items)
    return [Items(title, found)] if found else []
