"""The pieces an iteration is shown as in HTML: findings, changes, evidence and scores.

They are lists and paragraphs first, so they read well where a viewer drops all style.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ipyrefine.core.records import Answer, Change, CriterionScore, Evidence, Finding, Status
from ipyrefine.render import labels as words
from ipyrefine.render import verified
from ipyrefine.render.escape import html_prose, html_text, without_colours
from ipyrefine.render.highlight import highlight

Form = Literal["code", "prose"]
_FULL_PANE = 40  # lines


def badge(label: words.Label) -> str:
    """A verdict: symbol and word."""
    return f'<strong class="rf-badge rf-{label.kind}">{label}</strong>'


def chip(label: words.Label) -> str:
    """A small label: symbol and word."""
    return f'<span class="rf-chip rf-{label.kind}">{label}</span>'


def head(title: str) -> str:
    """A heading of ours; no ``<h*>``, which would fill a notebook's table of contents."""
    return f'<p class="rf-head"><strong>{title}</strong></p>'


def more(summary: str, body: str, *, open: bool = False) -> str:  # noqa: A002 - HTML's own word
    """A foldable part."""
    state = " open" if open else ""
    return f'<details class="rf-more"{state}><summary>{summary}</summary>{body}</details>'


def long(text: str) -> str:
    """The class of a pane that is sure to fill its height, so that it is drawn only in view."""
    return " rf-long" if text.count("\n") > _FULL_PANE else ""


def text_html(text: str, form: Form) -> str:
    """An artifact: highlighted code, or prose with its line breaks; its markup shows literally."""
    if not text.strip():
        return '<p class="rf-quiet">The text is empty.</p>'
    if form == "prose":
        shown = f'<div class="rf-text rf-prose{long(text)}">{html_prose(text)}</div>'
    else:
        body = highlight(text, words.language(text, form))
        # <code> between <pre> and the text: a parser drops a newline that directly follows <pre>.
        shown = f'<pre class="rf-text rf-code{long(text)}" tabindex="0"><code>{body}</code></pre>'
    # The button shows itself where the front-end half of the package is there to act on it.
    return f'<div class="rf-held">{shown}<button type="button" class="rf-copy">Copy</button></div>'


def output_html(text: str) -> str:
    """What a program wrote: wrapped, in fixed width, its colour codes dropped."""
    shown = html_text(without_colours(text))
    return f'<pre class="rf-text rf-wrap" tabindex="0"><code>{shown}</code></pre>'


def findings_html(findings: tuple[Finding, ...], form: Form, text: str = "") -> str:
    """Findings in reading order, each with its quote, its place in the text, problem and fix."""
    if not findings:
        return ""
    rows = "".join(
        f'<li class="rf-finding{_done(finding)}">{finding_html(finding, form, text)}</li>'
        for finding in words.ranked(findings)
    )
    return f'{head("Findings")}<ul class="rf-rows">{rows}</ul>'


def _done(finding: Finding) -> str:
    return " rf-done" if finding.status in (Status.RESOLVED, Status.DISMISSED) else ""


def finding_html(finding: Finding, form: Form, text: str = "") -> str:
    """One finding; what is settled is kept to its line and its problem.

    Args:
        finding: the finding.
        form: how its text is written.
        text: the text it is about, to show the quoted words in their place.
    """
    labels = [
        chip(words.severity_label(finding.severity)),
        f"<strong>{html_prose(finding.id)}</strong>",
        f"<em>{html_prose(finding.criterion)}</em>",
        chip(words.status_label(finding.status)),
    ]
    if finding.author != "model":
        labels.append(f'<span class="rf-quiet">{words.FINDERS[finding.author]}</span>')
    if not finding.grounded:
        labels.append(chip(words.UNGROUNDED))
    body = f'<div class="rf-line">{" ".join(labels)}</div><p>{html_prose(finding.problem)}</p>'
    if finding.quote:
        quote = _quote(finding.quote, form)
        shown = f'<div class="rf-quoted">{quote}{_place(finding.quote, text)}</div>'
        body += more("quote", quote) if _done(finding) else shown
    if finding.fix:
        body += f"<p><strong>Fix:</strong> {html_prose(finding.fix)}</p>"
    return body


def _place(quote: str, text: str) -> str:
    """The quoted words marked among the lines around them; folded, and shown while pointed at."""
    start = text.find(quote)
    if start < 0:
        return ""
    before, after = text[:start].split("\n"), text[start + len(quote) :].split("\n")
    around = [html_text("\n".join(lines)) for lines in (before[-2:], after[:2])]
    shown = f"<mark>{html_text(quote)}</mark>".join(around)
    body = f'<pre class="rf-text rf-wrap" tabindex="0"><code>{shown}</code></pre>'
    return f'<div class="rf-place">{more(f"in the text, line {len(before)}", body)}</div>'


def _quote(quote: str, form: Form) -> str:
    """The words of the text a finding is about."""
    if form == "code":
        return f'<pre class="rf-quote"><code>{html_text(quote)}</code></pre>'
    return f'<blockquote class="rf-quote">{html_prose(quote)}</blockquote>'


def changes_html(changes: tuple[Change, ...], problems: Mapping[str, str]) -> str:
    """What a revision says it did for each finding.

    Args:
        changes: the revision's claims.
        problems: problem by finding id, to show what each claim answers.
    """
    if not changes:
        return ""
    rows = "".join(_change(change, problems.get(change.finding, "")) for change in changes)
    return f'{head("Changed for each finding")}<ul class="rf-rows">{rows}</ul>'


def _change(change: Change, problem: str) -> str:
    """One claim of a revision, marked when the text does not bear it out."""
    about = f' <span class="rf-quiet">{html_prose(problem)}</span>' if problem else ""
    mark = "" if change.confirmed else f"<p>{chip(words.UNCONFIRMED)}</p>"
    said = html_prose(change.summary) or '<span class="rf-quiet">nothing said</span>'
    return f"<li><strong>{html_prose(change.finding)}</strong>{about}<p>→ {said}</p>{mark}</li>"


def evidence_html(evidence: tuple[Evidence, ...]) -> str:
    """The checks' results; what failed is open."""
    if not evidence:
        return ""
    rows = "".join(_evidence(one) for one in evidence)
    return f'{head("Checks")}<ul class="rf-rows">{rows}</ul>'


def _evidence(evidence: Evidence) -> str:
    """One check's result with its detail."""
    notes = verified.evidence_notes(evidence)
    line = (
        f'<div class="rf-line">{chip(verified.evidence_label(evidence))} '
        f"<strong>{html_prose(evidence.name)}</strong> "
        f'<span class="rf-quiet">{" · ".join(notes)}</span></div>'
    )
    detail = evidence.detail.strip("\n")
    if not detail.strip():
        return f"<li>{line}</li>"
    return f"<li>{line}{more('detail', output_html(detail), open=evidence.passed is False)}</li>"


def criteria_html(scores: Iterable[CriterionScore], form: Form = "prose") -> str:
    """The judge's score per criterion, with a meter, the reason and its quote."""
    rows = "".join(
        f'<li><div class="rf-line"><strong>{html_prose(one.name)}</strong> '
        f'<span class="rf-meter" aria-hidden="true"><span style="width:{one.score:.0%}"></span>'
        f'</span> <span class="rf-number">{words.score(one.score)}</span></div>'
        + _rests_on(one, form)
        + "</li>"
        for one in scores
    )
    return f'{head("Criteria")}<ul class="rf-rows">{rows}</ul>' if rows else ""


def _rests_on(score: CriterionScore, form: Form) -> str:
    """Why a score is what it is, and the words of the text it rests on; folded if they are many."""
    said = [html_prose(score.reason)] if score.reason else []
    long = len(score.quote) > verified.CITED or "\n" in score.quote.strip()
    if score.quote and not long:
        said.append(f'<span class="rf-quiet">“{html_prose(score.quote)}”</span>')
    if not score.grounded:
        said.append(chip(words.UNGROUNDED))
    quote = more("quote", _quote(score.quote, form)) if long else ""
    return (f"<p>{' '.join(said)}</p>" if said else "") + quote


def checklist_html(answers: Sequence[Answer]) -> str:
    """The judge's answers to the checklist, those with no first; folded when all is met."""
    if not answers:
        return ""
    rows = "".join(
        f'<li class="rf-line">{chip(verified.answer_label(one.yes))} '
        f"<span>{html_prose(one.question)}</span></li>"
        for one in sorted(answers, key=lambda one: one.yes)
    )
    title, listed = f"Checklist: {verified.met(answers)}", f'<ul class="rf-answers">{rows}</ul>'
    return more(title, listed) if all(one.yes for one in answers) else head(title) + listed
