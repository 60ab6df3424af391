"""What a terminal shows for each event of a run."""

from ipyrefine.core.events import (
    BestChanged,
    BudgetUsed,
    Compared,
    CritiqueReady,
    Decided,
    DraftLost,
    DraftReady,
    Event,
    EvidenceReady,
    RevisionReady,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
    VerdictReached,
    Warned,
)
from ipyrefine.core.runs import Run
from ipyrefine.render import labels as words
from ipyrefine.render import text
from ipyrefine.render.chart import sparkline
from ipyrefine.render.diff import text_diff, unified
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import clip, paint, rule, wrap

_DIFF_LINES = 60


def event_text(event: Event, run: Run, *, columns: int = 80, colour: bool = False) -> str | None:
    """The lines a terminal shows for an event, or None when it shows nothing.

    Args:
        event: what happened. The text while it streams (`TextDelta`) is the caller's to print.
        run: the run with the event already applied.
        columns: width of the terminal; no line is wider (at least 20 are assumed).
        colour: whether to add ANSI colours; without, the result holds no escape at all.
    """
    lines = _lines(event, run, columns, colour)
    return "\n".join(lines) if lines else None


def _lines(event: Event, run: Run, columns: int, colour: bool) -> list[str]:
    """The lines of one event."""
    match event:
        case TextDelta() | DraftLost():  # the loss is told by a warning
            return []
        case RunStarted():
            return _started(event, run, columns, colour)
        case StageStarted():
            name = words.stage_name(event.stage, event.iteration, run.allowed)
            return [paint(rule(name, columns), "head", colour)]
        case DraftReady():
            whose = "Your text" if event.author == "user" else "Draft"
            return wrap(f"{whose}: {_size(event.text)}", columns)
        case CritiqueReady():
            found = event.critique.findings
            title = wrap(words.count(len(found), "finding"), columns)
            rows = [text.finding_lines(f, columns, colour) for f in words.ranked(found)]
            return title + [line for row in rows for line in row]
        case RevisionReady():
            return _revised(event, run, columns, colour)
        case EvidenceReady():
            return text.evidence_lines(event.evidence, columns, colour)
        case VerdictReached():
            return _verdict(event, run, columns, colour)
        case BestChanged():
            best = wrap(f"★ Best so far: iteration {event.iteration}", columns)
            return [paint(line, "bold", colour) for line in best]
        case Compared():
            return wrap(_comparison(event), columns)
        case BudgetUsed():
            parts = [*words.usage_parts(event.usage), words.budget_left(run)]
            used = wrap(" · ".join(part for part in parts if part), columns)
            return [paint(line, "quiet", colour) for line in used if line]
        case Warned():
            warning = wrap(f"⚠ {event.message}", columns, hang="  ")
            return [paint(line, "warn", colour) for line in warning]
        case Decided():
            return wrap(words.decision_sentence(event.decision), columns)
        case Stopped():
            return _stopped(event, run, columns, colour)


def _comparison(event: Compared) -> str:
    """What the gate came to."""
    won = "is the better one" if event.won else "is no better, whatever the scores"
    why = f": {event.why}" if event.why else "."
    return f"Compared with iteration {event.against}, iteration {event.iteration} {won}{why}"


def _size(artifact: str) -> str:
    """How long a text is."""
    return words.count(len(plain(artifact).splitlines()), "line")


def _started(event: RunStarted, run: Run, columns: int, colour: bool) -> list[str]:
    """What is asked, of whom, under which rules."""
    given = event.draft is not None
    kind = "Improving your text" if given else f"Writing {event.task.form} for your task"
    title = [paint(line, "bold", colour) for line in wrap(kind, columns)]
    asked = wrap(event.task.text, columns, "│ ")
    return title + asked + wrap(" · ".join(words.rules(run)), columns)


def _revised(event: RevisionReady, run: Run, columns: int, colour: bool) -> list[str]:
    """What a revision changed, as it says and as the texts show."""
    if event.flaw:
        return text.flaw_lines(event.flaw, columns, colour)
    parent = run.iterations[event.parent]
    problems = {finding.id: finding.problem for finding in parent.findings}
    rows = [text.change_lines(c, problems, columns, colour) for c in event.changes]
    lines = [line for row in rows for line in row]
    form = run.task.form if run.task else "prose"
    if plain(parent.text) == plain(event.text):
        return lines + wrap("No change to the text.", columns)
    return lines + _difference(parent.text, event.text, form == "code", columns, colour)


def _difference(old: str, new: str, code: bool, columns: int, colour: bool) -> list[str]:
    """The differing lines, cut to the width; prose by word, wrapped."""
    if code:
        kinds = {"+": "good", "-": "bad", "@": "quiet"}
        lines = []
        for part in unified(old, new):
            sign = "⋯" if part.tag == "@" else part.tag
            shown = clip(f"{sign} {part.line}", columns)
            lines.append(paint(shown.rstrip(), kinds.get(part.tag, ""), colour))
    else:
        lines = wrap(text_diff(old, new, form="prose"), columns)
    hidden = len(lines) - _DIFF_LINES
    if hidden <= 0:
        return lines
    return lines[:_DIFF_LINES] + wrap(f"⋯ {words.count(hidden, 'more line')}", columns)


def _verdict(event: VerdictReached, run: Run, columns: int, colour: bool) -> list[str]:
    """The verdict with the scores so far, and the findings that are new or still open."""
    verdict = event.verdict
    label = words.verdict_label(verdict)
    line = sparkline(run.score_history)
    target = words.score(run.limits.target)
    title = f"{label} · score {words.score(verdict.score)} {line} (target {target})"
    lines = [paint(part, label.kind, colour) for part in wrap(title, columns)]
    lines += wrap(verdict.why, columns) if verdict.why else []
    lines += text.criteria_lines(verdict, columns)
    before = {f.id for i in run.iterations[: event.iteration] for f in i.findings}
    for finding in words.ranked(event.findings):
        if finding.id not in before:
            lines += text.finding_lines(finding, columns, colour)
        else:
            status = words.status_label(finding.status)
            again = f"{finding.id} {status}: {finding.problem}"
            lines += [paint(p, status.kind, colour) for p in wrap(again, columns, hang="   ")]
    return lines


def _stopped(event: Stopped, run: Run, columns: int, colour: bool) -> list[str]:
    """How the run ended."""
    kind = words.verdict_label(run.verdict).kind
    lines = [paint(rule("Done", columns), "head", colour)]
    summary = wrap(words.summary_text(run), columns)
    lines += [paint(line, kind, colour) for line in summary]
    return lines + wrap(event.message or words.STOP_SENTENCES[event.reason], columns)
