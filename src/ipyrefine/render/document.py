"""A run as blocks in reading order; HTML and the terminal draw the same blocks."""

import re
from collections import Counter
from collections.abc import Iterable

from ipyrefine.core import model, table
from ipyrefine.core.actions import decision_sentence
from ipyrefine.core.decisions import Accept
from ipyrefine.core.model import StopReason
from ipyrefine.core.points import lost_sections
from ipyrefine.core.policy import is_bare_score
from ipyrefine.core.rank import has_evaluator, rival_of
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import KEPT_HERE
from ipyrefine.core.table import Cell, Point
from ipyrefine.core.testing import is_critics
from ipyrefine.render import gives, labels, words
from ipyrefine.render.blocks import Block, Item, Items, Paragraph, Section, Table, Text
from ipyrefine.render.escape import strip_colours

_SCORE_ALONE = re.compile(
    r"\W*(?:[^\W\d_]+\W+){0,6}\d+(?:\.\d+)?\s*(?:/|of|out of)\s*\d+(?:\.\d+)?\W*"
)
MAX_SCORES = 50  # a panel sends all of them again with each iteration


def record(run: Run) -> list[Block]:
    """Return the blocks of a whole run: the outcome first, then how it came about."""
    return [
        summary(run),
        *notices(run),
        *result(run),
        *unfinished(run),
        *(
            (*gives.whole_account(run, run.chosen), *gives.results(run, run.chosen))
            if run.chosen
            else ()
        ),
        *scores(run),
        *usage(run),
        Section("Settings", tuple(settings(run))),
        *(version(run, one, with_outputs=one is not run.chosen) for one in run.iterations),
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
        *late(run),
        *rival(run, run.chosen),
        *decisions(run),
        *explanations(run),
        *warnings(run, run.chosen),
    ]


def late(run: Run) -> list[Block]:
    """Return the result of reading the text, and of running it, after it was accepted."""
    ran, amber = words.ran_words(run), words.is_amber(run)
    said = (
        (words.late_sentence(run), amber, "Found after you accepted it:"),
        (ran.sentence, ran.differs, "Differs now that it ran:"),
    )
    return [
        Paragraph(sentence, "flaw", lead)
        if is_flaw
        else Paragraph(f"{sentence[0].upper()}{sentence[1:]}.", "quiet")
        for sentence, is_flaw, lead in said
        if sentence
    ]


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
    told = verdict.line if verdict and verdict.outcome is model.Outcome.NOT_JUDGED else ""
    return [
        Paragraph(one, "quiet" if one == KEPT_HERE else "warning")
        for one in run.warnings
        if not told or told not in one
    ]


def history(run: Run, iteration: Iteration | None) -> list[Block]:
    """Return what is only to know of how a run went: decisions, answers, scores and usage."""
    loud = [one.text for one in warnings(run, iteration) if one.kind == "warning"]
    end = [words.stop_sentence(run)] if run.message and run.stop_reason else []
    return [
        *(Paragraph(one, "quiet") for one in run.warnings if one not in loud),
        *decisions(run),
        *explanations(run),
        *(Paragraph(one, "quiet") for one in end),
        *scores(run),
        *usage(run),
    ]


def details(run: Run, iteration: Iteration | None) -> list[Block]:
    """Return how the cell was read, and of a text what stands nowhere else."""
    read = Paragraph(labels.opening(run.setup), "quiet")
    if iteration is None:
        return [read]
    beside = margin(run, iteration)
    return [
        read,
        *reason(run, iteration),
        *claims(run, iteration),
        *findings(run, iteration, (one for one in told(run, iteration) if one not in beside)),
        *notes(iteration),
    ]


def rival(run: Run, iteration: Iteration | None) -> list[Block]:
    """Return that only a critic's tests set a text above another one, and how to take that."""
    found = rival_of(run, iteration) if iteration else None
    if found is None:
        return []
    number = found.iteration.number
    return [
        Paragraph(words.rival_sentence(run, found), lead="To decide:"),
        Paragraph(
            f"%refine accept {run.name(number).lower()} takes {run.mention(number)}.", "quiet"
        ),
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


def version(
    run: Run, iteration: Iteration, *, with_text: bool = True, with_outputs: bool = True
) -> Section:
    """Return an iteration: its verdict, its text, what it rests on and what is left to do."""
    number, parent, said = iteration.number, iteration.parent, words.verdict(run, iteration)
    branched = parent is not None and parent != number - 1
    whole = parent is None and iteration is run.chosen
    read, tried = (
        reading(run, iteration),
        any(is_critics(run.points[id_]) for id_ in iteration.results),
    )
    # The sentence of the stop says why the best text is not judged.
    told = run.stop_reason is StopReason.UNJUDGED and number == run.best
    marks = (
        f"from {run.mention(parent)}" if branched and parent is not None else "",
        said.score,
        labels.BEST if number == run.best else "",
        str(labels.NO_NEW_TEXT) if iteration.failure else "",
    )
    return Section(
        run.name(number),
        (
            *(reason(run, iteration) if not told else ()),
            # The chosen text stands at the top, whole.
            *(writing(run, iteration) if with_text and not whole else ()),
            *checks(run, iteration, suite=not tried),
            *(gives.account(run, iteration, alone=True) if with_outputs else ()),
            *findings(run, iteration),
            *read,
            *notes(iteration),
        ),
        said.label if iteration.verdict else None,
        tuple(filter(None, marks)),
    )


def reason(run: Run, iteration: Iteration) -> list[Block]:
    """Return why the verdict is what it is."""
    sentence = words.verdict(run, iteration).sentence
    return [Paragraph(sentence)] if sentence else []


def writing(run: Run, iteration: Iteration) -> list[Block]:
    """Return a text, or how it differs from its parent, with the changes it claims."""
    if iteration.failure:
        return [failure(iteration), *claims(run, iteration)]
    if iteration.parent is None:
        return [Text(iteration.text, run.task.form, run.task.language, "Text")]
    return [*difference(run, iteration), *claims(run, iteration)]


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


def claims(run: Run, iteration: Iteration) -> list[Block]:
    """Return the changes that a revision claims for each finding."""
    parents = [] if iteration.parent is None else run.cells(run.iterations[iteration.parent])
    problems = {one.id: one.words for one in (*parents, *run.cells(iteration))}
    items = (
        Item(id_, problems.get(id_, ""), text=f"→ {summary or 'no explanation'}")
        for id_, summary in iteration.changes.items()
    )
    return _items("Changes by finding", items)


def checks(run: Run, iteration: Iteration, *, suite: bool = True) -> list[Block]:
    """Return the results of the checks, those that failed first."""
    items = (
        Item(
            note=labels.seconds(one.seconds),
            labels=(labels.check_chip(one),),
            detail=strip_colours(one.detail).strip("\n"),
        )
        for one in sorted(run.evidence(iteration), key=lambda one: not one.failed)
        if one.basis != "none" and (suite or one.basis != "critique") and not one.is_empty
    )
    checked = {one.name for one in iteration.evidence}
    scored = (
        Item(labels=(labels.score_chip(one, iteration.verdict),), detail=one.words)
        for one in run.cells(iteration)
        if one.actionable and one.point.check not in checked and is_bare(one, iteration)
    )
    found = (*items, *scored)
    return [Items("Checks", found, "checks")] if found else []


def findings(run: Run, iteration: Iteration, found: Iterable[Cell] | None = None) -> list[Block]:
    """Return what a text misses or has mended in reading order; by default all of it."""
    every = ranked(told(run, iteration) if found is None else found)
    # What only asks the user stands where code has its results.
    shown = (one for one in every if not one.asks and not is_bare(one, iteration))
    items = tuple(finding_item(run, iteration, one) for one in shown)
    return [Items("Findings", items, "findings")] if items else []


def told(run: Run, iteration: Iteration) -> list[Cell]:
    """Return a text's column without the critic's tests, which stand among its claims."""
    return [one for one in run.cells(iteration) if not is_critics(one.point)]


def reading(run: Run, iteration: Iteration) -> list[Block]:
    """Return how the critic's claims about a text ended, with its tests, questions and doubts."""
    results = iteration.results
    tests = [
        _test_item(one, results.get(one.id))
        for one in run.points.values()
        if is_critics(one) and (one.id in results or one.text == iteration.number)
    ]
    ends = Counter(item.labels[0] for item in tests)
    if not has_evaluator(run):
        found = (one for one in run.cells(iteration) if one.point.by_model and not one.asks)
        ends.update(map(labels.standing, found))
    blocks: list[Block] = [Items(labels.claims_title(ends), tuple(tests))] if ends else []
    said = iteration.reading or table.Reading()
    if said.ready is False and said.reason:
        back = " You took that back." if said.taken_back else ""
        blocks.append(Paragraph(f"The critic takes it for not ready: {said.reason}{back}"))
    if said.compared == "worse" and iteration.parent is not None:
        worse = f"The critic calls it worse than {run.mention(iteration.parent)}"
        blocks.append(Paragraph(f"{worse}{f': {said.lost}' if said.lost else '.'}"))
    return blocks


def _test_item(test: Point, result: table.Result | None) -> Item:
    label = labels.test_label(test, result)
    line = result.shows if result else labels.untried_sentence(test, result)
    baseless = f" · not in the task: “{test.quote}”" if test.quote and not test.blocking else ""
    return Item(
        name=test.id,
        labels=(label,),
        text=" ".join(filter(None, (line, labels.contest_sentence(test)))),
        note=test.words + baseless,
        demand=test.quote if test.blocking else "",
        detail=test.code,
        settled=label.kind == "quiet",
    )


def margin(run: Run, iteration: Iteration) -> list[Cell]:
    """Return what stands beside a text; its details list the others."""
    before = [] if iteration.parent is None else run.cells(run.iterations[iteration.parent])
    stood = {one.id for one in before if one.actionable}
    return [
        one
        for one in run.cells(iteration)
        if not is_bare(one, iteration)
        and (one.actionable or (one.is_settled and not one.point.dropped and one.id in stood))
    ]


def still_open(run: Run, iteration: Iteration) -> list[Block]:
    """Return what a text misses in short, without what stands there as a failed check."""
    failed = {one.name for one in iteration.evidence if one.failed}
    cells = (one for one in run.cells(iteration) if one.actionable and not is_critics(one.point))
    found = ranked(one for one in cells if one.point.check not in failed)
    items = (finding_item(run, iteration, one) for one in found)
    return _items(
        "Findings",
        (Item(note=f"{i.name} · {i.note}", labels=i.labels, text=i.text) for i in items),
    )


def is_bare(cell: Cell, iteration: Iteration) -> bool:
    """Return True if a point only states a score, which a chip shows."""
    if is_bare_score(cell) or _SCORE_ALONE.fullmatch(cell.words):
        return not cell.point.fix
    return any(
        one.name == cell.point.check and one.score is not None and not one.points
        for one in iteration.evidence
    )


def ranked(found: Iterable[Cell]) -> list[Cell]:
    """Return cells in reading order: those to act on first, blocking before minor."""
    return sorted(found, key=lambda one: (one.is_settled, not one.weighs))


def finding_item(run: Run, iteration: Iteration, cell: Cell) -> Item:
    """Return what a text misses, or has mended, as an item."""
    passed = bool(iteration.verdict and iteration.verdict.passed)
    point = cell.point
    where = labels.check_name(point.check or point.criterion)
    if is_critics(point):
        where = "critic's tests" + (f" · {point.words}" if cell.result.shows else "")
    return Item(
        name=point.id,
        note=f"{where} · added by you" if point.by_user else where,
        labels=(labels.severity_label(cell, passed=passed), labels.standing(cell)),
        text=" ".join(filter(None, (cell.words, labels.contest_sentence(point)))),
        quote=point.place,
        form=run.task.form,
        demand=point.quote,
        fix=point.fix,
        settled=cell.is_settled,
    )


def notes(iteration: Iteration) -> list[Block]:
    """Return the model's notes before the text, and the iteration's usage."""
    parts = labels.usage_parts(iteration.usage)
    return [
        *gives.printed("Model notes", iteration.thoughts),
        *([Paragraph(" · ".join(parts), "quiet")] if parts else []),
    ]


def _items(title: str, items: Iterable[Item]) -> list[Block]:
    found = tuple(items)
    return [Items(title, found)] if found else []


# While a user waits
