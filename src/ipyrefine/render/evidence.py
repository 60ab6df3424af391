"""Evidence on a text as HTML: a row of chips that open in place, and phrases for the header."""

from ipyrefine.core.model import Evidence, Tally
from ipyrefine.core.run import Run
from ipyrefine.render import document, labels
from ipyrefine.render.blocks import head, item_html, output, picture, table
from ipyrefine.render.controls import button
from ipyrefine.render.escape import html_prose, html_text

_CROSS = '<span aria-hidden="true">×</span>'
_MOST_COLUMNS = 3  # of outputs that differ


def chips_html(run: Run, number: int, *, live: bool) -> str:
    """Return the checks and the judge's answers as a row of chips that open in place.

    In a live panel, a click drops a demand that was read wrongly.
    """
    iteration = run.iterations[number]
    chips = []
    for evidence in sorted(iteration.evidence, key=lambda e: not e.failed):
        drops = live and evidence.name in run.demands
        chips += _chips(evidence, _drop_button(evidence.name) if drops else "")
    verdict = iteration.verdict
    if verdict:
        for criterion in verdict.criteria:
            name = f"{html_prose(criterion.name)} {labels.score(criterion.score)}"
            reason = f"<p>{html_prose(criterion.reason)}</p>" if criterion.reason else ""
            chips.append(_chip(name, "opinion", reason))
        if verdict.checklist:
            met = sum(answer.yes for answer in verdict.checklist)
            items = document.answers(verdict)
            body = "".join(item_html(item) for item in items)
            name = f"checklist {met}/{len(verdict.checklist)}"
            chips.append(_chip(name, "opinion", body))
    return f'<div class="rf-chips">{"".join(chips)}</div>' if chips else ""


def differing_outputs(run: Run, number: int, other: int | None) -> dict[int, list[document.Block]]:
    """Return a text's outputs, beside those of others that differ, each by its iteration.

    Args:
        run: the run.
        number: the iteration.
        other: the one that its text is compared with; None compares a draft with the other drafts.
    """
    own = document.outputs(run.iterations[number])
    if not own:
        return {}
    if other is not None:
        before = document.outputs(run.iterations[other])
        return {number: own} if before in ([], own) else {other: before, number: own}
    found = {number: own}
    for draft in run.drafts:
        outputs = document.outputs(draft)
        if outputs and outputs not in found.values() and len(found) < _MOST_COLUMNS:
            found[draft.number] = outputs
    return found


def outputs_html(run: Run, number: int, other: int | None) -> str:
    """Return `differing_outputs` side by side, or one below the other where there is no room."""
    found = differing_outputs(run, number, other)
    if not found:
        return ""
    body = "".join(
        f"<div>{_name(run, one) if len(found) > 1 else ''}{''.join(map(_output, outputs))}</div>"
        for one, outputs in found.items()
    )
    same = other is not None and document.outputs(run.iterations[other]) == found[number]
    note = f"Same output as {run.mention(other)}." if same and other is not None else ""
    said = f'<p class="rf-quiet rf-empty">{html_text(note)}</p>' if note else ""
    return f'<div class="rf-outputs">{body}</div>{said}'


def _name(run: Run, number: int) -> str:
    return f'<p class="rf-side"><strong>{html_text(run.name(number))}</strong></p>'


def _output(block: document.Block) -> str:
    """Return one output under its name, unfolded."""
    match block:
        case document.Output():
            return head(block.title) + output(block.text)
        case document.Table():
            return head(block.title) + table(block)
        case document.Picture():
            return head("Figure") + picture(block)
    raise TypeError(block)


def _drop_button(demand: str) -> str:
    title = "Leave this demand out: no text is held to it any more."
    return " " + button("", "drop", kind="rf-drop", title=title, body=_CROSS, name=demand)


def _chips(evidence: Evidence, end: str = "") -> list[str]:
    """Return a check as a chip, or as one for each thing that it counted."""
    label = labels.evidence_label(evidence)
    detail = document.evidence_item(evidence).detail
    body = output(detail) if detail.strip() else ""
    tallies = evidence.tallies
    name = html_text(labels.check_name(evidence.name))
    if evidence.passed is None or evidence.contested:
        held = [_chip(f"✓ {_count(evidence, t)}", "good", "") for t in tallies if t.held == t.of]
        return [*held, _chip(f"{label.symbol} {name}: {label.word}", label.kind, body)]
    if not evidence.passed and not evidence.required:
        return [_chip(f"{label.symbol} {name} (advisory){end}", "quiet", body)]
    names = [_count(evidence, tally) for tally in tallies] or [name]
    return [_chip(f"{label.symbol} {one}{end}", label.kind, body) for one in names]


def _count(evidence: Evidence, tally: Tally) -> str:
    name = labels.tally_name(evidence, tally)
    return f"{html_text(name)} {tally.held}/{tally.of}"


def _chip(name: str, kind: str, body: str) -> str:
    if not body:
        return f'<span class="rf-chip rf-{kind}">{name}</span>'
    return (
        f'<details class="rf-ev"><summary class="rf-chip rf-{kind}">{name}</summary>'
        f'<div class="rf-ev-body">{body}</div></details>'
    )


_VERBS = {"example": "hold", "further input": "agree", "test": "pass"}


def phrase(evidence: Evidence) -> str:
    """Return a check's result in words: ``<b>3 of 3 examples</b> hold``."""
    if not evidence.tallies:
        word = "passed" if evidence.passed else "failed"
        return f"<b>{html_text(labels.check_name(evidence.name))}</b> {word}"
    phrases = []
    for tally in evidence.tallies:
        if evidence.passed or tally.held < tally.of:
            verb = _VERBS[tally.noun]
            verb += ("es" if verb == "pass" else "s") if tally.of == 1 else ""
            number = f"{tally.held} of {labels.count(tally.of, tally.noun)}"
            phrases.append(f"{'' if evidence.passed else 'only '}<b>{number}</b> {verb}")
    return ", ".join(phrases) or f"<b>{html_text(evidence.name)}</b> failed"
