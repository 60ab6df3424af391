"""A run as plain text: the record every front-end can show, and the pieces a terminal prints."""

from collections.abc import Iterable

from ipyrefine.core.records import Change, Evidence, Finding, Verdict
from ipyrefine.core.runs import Iteration, Run
from ipyrefine.render import labels as words
from ipyrefine.render import verified
from ipyrefine.render.chart import sparkline
from ipyrefine.render.escape import plain, without_colours
from ipyrefine.render.terminal import paint, rule, wrap
from ipyrefine.render.tree import tree_lines


def record_text(run: Run, columns: int = 80, *, colour: bool = False) -> str:
    """The whole run as text: summary, the chosen text as it is, then every iteration.

    Args:
        run: the run.
        columns: width to wrap at; lines of the chosen text stay whole, so it can be copied.
        colour: whether to add ANSI colours.
    """
    lines = wrap(words.summary_text(run), columns)
    sentence = words.stop_sentence(run)
    lines += wrap(sentence, columns) if sentence else []
    if len(run.iterations) > 1:
        lines += [*wrap(scores_text(run), columns), *tree_lines(run)]
    for warning in run.warnings:
        lines += wrap(f"⚠ {warning}", columns, hang="  ")
    for decision in run.decisions:
        lines += wrap(words.decision_sentence(decision), columns)
    if run.chosen is not None:
        lines += ["", plain(run.text).rstrip("\n")]
    for iteration in run.iterations:
        lines += ["", paint(rule(_heading(run, iteration), columns), "head", colour)]
        lines += _iteration(run, iteration, columns, colour)
    return "\n".join(lines)


def scores_text(run: Run) -> str:
    """The scores as blocks and numbers, with the target."""
    scores = [i.verdict.score if i.verdict else None for i in run.iterations]
    numbers = " → ".join(words.score(value) for value in scores)
    return f"Scores {sparkline(scores)} {numbers} (target {words.score(run.limits.target)})"


def _heading(run: Run, iteration: Iteration) -> str:
    """An iteration in one line."""
    items = [words.iteration_name(iteration)]
    if iteration.verdict is not None:
        items.append(str(words.verdict_label(iteration.verdict)))
        items.append(words.score(iteration.verdict.score))
    return " · ".join(items + (["★ best"] if iteration.number == run.best else []))


def _iteration(run: Run, iteration: Iteration, columns: int, colour: bool) -> Iterable[str]:
    """The lines of one iteration."""
    verdict = iteration.verdict
    if iteration.flaw:
        yield from flaw_lines(iteration.flaw, columns, colour)
    if verdict is not None and verdict.why:
        yield from wrap(verdict.why, columns)
    problems = words.problems(run, iteration)
    for change in iteration.changes:
        yield from change_lines(change, problems, columns, colour)
    for evidence in iteration.evidence:
        yield from evidence_lines(evidence, columns, colour)
    if verdict is not None:
        yield from criteria_lines(verdict, columns)
    for finding in words.ranked(iteration.findings):
        yield from finding_lines(finding, columns, colour)
    used = " · ".join(words.usage_parts(iteration.usage))
    if used:
        yield from (paint(line, "quiet", colour) for line in wrap(used, columns))


def flaw_lines(flaw: str, columns: int, colour: bool) -> list[str]:
    """Why there is no new text."""
    lines = wrap(f"⚠ The model gave no usable text: {flaw}", columns, hang="  ")
    return [paint(line, "bad", colour) for line in lines]


def finding_lines(finding: Finding, columns: int, colour: bool) -> list[str]:
    """One finding: what it is, the quote, the problem and the fix."""
    severity = words.severity_label(finding.severity)
    status = words.status_label(finding.status)
    notes = [str(severity), str(status)] if status.kind != "open" else [str(severity)]
    notes += [] if finding.author == "model" else [words.FINDERS[finding.author]]
    title = f"{finding.id} {finding.criterion} · {' · '.join(notes)}"
    lines = [paint(line, severity.kind, colour) for line in wrap(title, columns, hang="   ")]
    if not finding.grounded:
        marked = wrap(str(words.UNGROUNDED), columns, "   ")
        lines += [paint(line, "warn", colour) for line in marked]
    if finding.quote:
        quote = wrap(finding.quote, columns, "   │ ")
        lines += [paint(line, "quiet", colour) for line in quote]
    lines += wrap(finding.problem, columns, "   ")
    return lines + (wrap(f"Fix: {finding.fix}", columns, "   ") if finding.fix else [])


def change_lines(change: Change, problems: dict[str, str], columns: int, colour: bool) -> list[str]:
    """One claim of a revision, with the problem it answers."""
    lines = wrap(f"{change.finding} → {change.summary}", columns, hang="   ")
    problem = problems.get(change.finding, "")
    if problem:
        about = wrap(problem, columns, "   ")
        lines += [paint(line, "quiet", colour) for line in about]
    if not change.confirmed:
        marked = wrap(str(words.UNCONFIRMED), columns, "   ")
        lines += [paint(line, "warn", colour) for line in marked]
    return lines


def evidence_lines(evidence: Evidence, columns: int, colour: bool) -> list[str]:
    """One check's result; its detail unless it passed."""
    label = verified.evidence_label(evidence)
    notes = " · ".join([f"{label}: {evidence.name}", *verified.evidence_notes(evidence)])
    lines = [paint(line, label.kind, colour) for line in wrap(notes, columns, hang="  ")]
    detail = without_colours(evidence.detail).strip("\n")
    if evidence.passed or not detail:
        return lines
    return lines + wrap(detail, columns, "  │ ")


def criteria_lines(verdict: Verdict, columns: int) -> Iterable[str]:
    """The judge's score per criterion, each with a bar and its quote, and its checklist."""
    for one in verdict.criteria:
        bar = "█" * round(one.score * 10)
        yield from wrap(f"{bar:░<10} {words.score(one.score)} {one.name}", columns, hang="  ")
        if one.reason:
            yield from wrap(one.reason, columns, "  ")
        if quote := verified.cited(one.quote):
            unfound = "" if one.grounded else f" {words.UNGROUNDED}"
            yield from wrap(f"{quote}{unfound}", columns, "  │ ")
    if verdict.checklist:
        yield from wrap(f"Checklist: {verified.met(verdict.checklist)}", columns)
    for answer in sorted(verdict.checklist, key=lambda one: one.yes):
        said = f"{verified.answer_label(answer.yes)}: {answer.question}"
        yield from wrap(said, columns, "  ", hang="  ")
