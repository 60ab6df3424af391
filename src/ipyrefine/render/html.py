"""A run as HTML: the parts of a panel, and the record, which is the same without controls."""

import re
from typing import NamedTuple

from ipyrefine.core.decisions import OWN
from ipyrefine.core.model import Finding, Question, Severity, Status, StopReason
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import document, labels
from ipyrefine.render.blocks import badge, blocks_html, fold, head, output
from ipyrefine.render.controls import (
    button,
    continue_button,
    field,
    form_html,
    open_button,
    share_choice,
)
from ipyrefine.render.diff import rows
from ipyrefine.render.escape import html_prose, html_text, plain
from ipyrefine.render.evidence import chips_html, differing_outputs, outputs_html
from ipyrefine.render.header import MOST_STEPS, top_html
from ipyrefine.render.progress import WRITING
from ipyrefine.render.style import STYLE
from ipyrefine.render.text import line_of, sides_html, text_html, whole_html
from ipyrefine.render.view import STATIC, View, about_number, compared_with, first_line

# The two extra classes tell MathJax 3 and 2 to leave the text alone.
_CLASSES = "ipyrefine mathjax_ignore tex2jax_ignore"
PARTS = ("top", "notices", "form", "ask", "text", "evidence", "guide", "foot")
_BLANK = re.compile(r"\n([ \t]*)(?=\n)")
FOLDS = ("details", "history", "settings")
_MOST_WARNINGS = 2  # that are shown unfolded
_MOST_NOTES = 12  # findings that are shown unfolded
_CHOICE_CHARACTERS = 60  # of a result that a button shows; its tooltip has all of it
_BUSY = "No answer from the kernel yet. It may be busy, or gone."


def record_html(run: Run, *, note: str = "", panel: str = "") -> str:
    """Return the whole run as one static block that needs neither kernel nor script.

    Args:
        run: the run.
        note: a sentence to put below the header, such as where the accepted text went.
        panel: the id of the panel that takes its place while it is on the page; empty for none.
    """
    about = about_number(run, STATIC)
    parts = [f'<header class="rf-top">{top_html(run, STATIC, about, live=False)}</header>']
    if note:
        parts.append(f'<p class="rf-bar-note">{html_prose(note)}</p>')
    parts.append(_notices(run, told=bool(note)))
    if run.question:
        parts.append(blocks_html(document.question(run.question)))
    above: set[int] = set()  # iterations whose outputs are shown there
    if about is not None:
        parts += [_text(run, STATIC, about, live=False), _evidence(run, STATIC, about, live=False)]
        task = run.task
        above |= differing_outputs(run, about, compared_with(run, STATIC, about)).keys()
        text = whole_html(run.iterations[about].text, task.form, task.language)
        parts.append(f'<div class="rf-whole">{head("Text")}{text}</div>')
    folds = {
        "Details": _details(run, about),
        "History": _history(run)
        + "".join(
            blocks_html([document.version(run, one, with_outputs=one.number not in above)])
            for one in run.iterations
        ),
        "Settings": blocks_html(document.settings(run)[0].blocks),  # type: ignore[union-attr]
    }
    foot = "".join(
        fold(title, f'<div class="rf-body">{body}</div>', name="rf-foot-fold")
        for title, body in folds.items()
        if body
    )
    parts.append(f'<footer class="rf-foot">{foot}</footer>')
    mark = f' data-panel="{html_text(panel)}"' if panel else ""
    # In a Markdown export a blank line would end the HTML.
    body = _BLANK.sub(r"\n\1<i></i>", "".join(parts))
    return (
        f'<div class="{_CLASSES} rf-record"{mark}><style>{STYLE}</style>'
        f'<section class="rf">{body}</section></div>'
    )


def styled(body: str) -> str:
    """Return HTML inside our scoped container, with its style sheet."""
    return f'<div class="{_CLASSES}"><style>{STYLE}</style>{body}</div>'


def panel_html(parts: dict[str, str], panel: str) -> str:
    """Return a whole panel.

    Args:
        parts: the HTML of its parts.
        panel: its id, by which the record beside it is hidden while it is on the page.
    """
    names = {"top": "header", "foot": "footer"}
    body = "".join(
        f'<{names.get(name, "div")} class="rf-{name}" data-part="{name}">{parts[name]}'
        f"</{names.get(name, 'div')}>"
        for name in PARTS
    )
    id_ = html_text(panel)
    hide = f'<style>.rf-record[data-panel="{id_}"]{{display:none}}</style>'
    busy = f'<p class="rf-busy" role="status" hidden>{_BUSY}</p>'
    return (
        f'<div class="{_CLASSES} rf-panel" data-panel="{id_}">{hide}'
        f'<section class="rf" tabindex="-1" aria-label="Refinement">{body}{busy}</section></div>'
    )


def panel_parts(run: Run | None, view: View, note: str = "") -> dict[str, str]:
    """Return the HTML of each part of a panel.

    Args:
        run: the run; None before its first event.
        view: what the user looks at.
        note: a message to the user; empty for none.
    """
    empty = dict.fromkeys(PARTS, "")
    said = f'<p class="rf-note" role="alert">{html_prose(note)}</p>' if note else ""
    if run is None:
        pill = badge(labels.Label("…", "Starting", "busy"))
        return empty | {"top": f'<div class="rf-row" role="status">{pill}</div>', "notices": said}
    about = about_number(run, view)
    shows_stream = labels.running(run) and run.stage in WRITING and view.shown is None
    if shows_stream:
        body = _stream(run, view)
    elif about is not None:
        body = _text(run, view, about, live=True)
    else:
        body = ""
    return empty | {
        "top": top_html(run, view, about, live=True),
        "notices": said + _notices(run),
        "form": form_html(run, view, about),
        "ask": _share_bar(view) + (_ask(run.question, view) if run.question else ""),
        "text": body,
        "evidence": "" if about is None or shows_stream else _evidence(run, view, about, live=True),
        "guide": _guide(run, view, about),
        "foot": _foot(run, view, about),
    }


def _notices(run: Run, *, told: bool = False) -> str:
    """Return why the run stopped, unless that was told or its verdict says so, and the warnings."""
    parts = []
    plain_reasons = (
        StopReason.PASSED, StopReason.OVERRIDDEN, StopReason.QUESTION, StopReason.UNJUDGED, None
    )  # fmt: skip
    if run.iterations and not told and run.stop_reason not in plain_reasons:
        parts.append(f'<p class="rf-why">{html_prose(run.message)}</p>')
    warnings = [w for w in run.warnings if not document.is_remark(w)]
    shown = [f'<p class="rf-note">⚠ {html_prose(one)}</p>' for one in warnings]
    parts += shown[-_MOST_WARNINGS:]
    if hidden := shown[:-_MOST_WARNINGS]:
        parts.append(fold(labels.count(len(hidden), "earlier warning"), "".join(hidden)))
    return "".join(parts)


def _ask(question: Question, view: View) -> str:
    """Return the question, with a button for each answer."""
    answers = []
    for number, choice in enumerate(question.choices, start=1):
        result = " ".join(plain(choice.result).split())
        short = result if len(result) <= _CHOICE_CHARACTERS else f"{result[:_CHOICE_CHARACTERS]}…"
        word = "raise " if choice.raises else ""
        body = f"{word}<code>{html_text(short)}</code> · {labels.count(choice.votes, 'draft')}"
        title = f"Make it an example of the task: {labels.choice_text(choice)}"
        answers.append(button("", "answer", body=body, title=title, choice=number))
    if view.form == "answer":
        answers.append(
            '<span class="rf-inline" data-form="answer">'
            + field("result", "Your answer", focus=True, hint="a value as Python, or an exception")
            + button("Answer", "answer", submit=True)
            + button("Cancel", "open", kind="rf-ghost", hotkey="Escape")
            + "</span>"
        )
    else:
        answers.append(open_button("something else…", "answer", kind="rf-ghost"))
    setup = fold("Before it runs", output(question.setup)) if question.setup.strip() else ""
    call = f"<code>{html_text(question.call)}</code>"
    return f'<p>What should {call} give?</p><div class="rf-answers">{"".join(answers)}</div>{setup}'


def _share_bar(view: View) -> str:
    """Return the question whether servers may be sent what was withheld, while it is open."""
    if not (view.sharing.asks and view.withheld):
        return ""
    return f'<div class="rf-share" data-key="share">{share_choice(view)}</div>'


def _stream(run: Run, view: View) -> str:
    """Return the pane that the page fills with the text while it is written."""
    if not view.streaming:
        return '<p class="rf-quiet rf-empty">Waiting for the model…</p>'
    title = '<p class="rf-quiet rf-empty">Thinking…</p>' if view.streaming == "thinking" else ""
    kind = "rf-code" if run.task.form == "code" and view.streaming == "text" else "rf-prose"
    return (
        f'{title}<div class="rf-stream {kind}" tabindex="0" role="region" '
        'aria-label="The text as it is written">'
        '<pre class="rf-gutter" aria-hidden="true" data-gutter></pre>'
        "<pre><code data-stream></code></pre></div>"
    )


def _text(run: Run, view: View, number: int, *, live: bool) -> str:
    """Return an iteration's text: its difference first, with the findings where they belong."""
    iteration = run.iterations[number]
    form, language = run.task.form, run.task.language
    parts = []
    if iteration.failure:
        parts.append(blocks_html([document.failure(iteration.failure)]))
    other = compared_with(run, view, number)
    old = None if other is None else run.iterations[other].text
    if other is not None and other != number - 1:
        parts.append(f'<p class="rf-quiet rf-empty">Compared with {run.mention(other)}.</p>')
    pinned = _pin(run, iteration, old, view, live=live)
    if old is not None and view.sides and live:
        parts.append(sides_html(old, iteration.text, form, language))
        rest = [note for notes in pinned.lines.values() for note in notes] + pinned.rest
    else:
        revert = None
        if live and old is not None:

            def revert(hunk: int) -> str:
                return button(
                    "Revert",
                    "revert",
                    kind="rf-revert",
                    title="Revert this change; the text is checked again.",
                    body="" if form == "code" else '<span aria-label="Revert">↶</span>',
                    iteration=number,
                    other=other,
                    hunk=hunk,
                )

        if not live and old is None and not pinned.lines:
            return "".join(pinned.rest)  # the text itself is shown whole
        parts.append(
            text_html(
                iteration.text, form, language, old=old, notes=pinned.lines,
                quotes=pinned.quotes, revert=revert,
            )
        )  # fmt: skip
        rest = pinned.rest
    body = "".join(parts)
    folded = rest[_MOST_NOTES:]
    more = fold(labels.count(len(folded), "more finding"), "".join(folded)) if folded else ""
    return f'<div class="rf-pane">{body}</div>{"".join(rest[:_MOST_NOTES])}{more}'


def _evidence(run: Run, view: View, number: int, *, live: bool) -> str:
    """Return what a text's verdict rests on, and what its code printed, returned and drew."""
    other = compared_with(run, view, number)
    return chips_html(run, number, live=live) + outputs_html(run, number, other)


class _Pinned(NamedTuple):
    """Findings as HTML.

    Attributes:
        lines: those with a place, by the line of the text below which they belong.
        rest: those without one.
        quotes: the excerpts that the findings quote.
    """

    lines: dict[int, list[str]]
    rest: list[str]
    quotes: tuple[str, ...]


def _pin(run: Run, iteration: Iteration, old: str | None, view: View, *, live: bool) -> _Pinned:
    """Place the findings that stand, and those that this text settles."""
    lines: dict[int, list[str]] = {}
    rest: list[str] = []
    quotes: list[str] = []
    before = () if iteration.parent is None else run.iterations[iteration.parent].findings
    stood = {f.id for f in before if f.actionable}
    claims = {change.finding: change.summary for change in iteration.changes}
    for finding in document.ranked(iteration.findings):
        fixed = finding.status is Status.RESOLVED and finding.id in stood
        if finding.doubtful or not (finding.actionable or fixed):
            continue
        html = _finding(
            finding, view, iteration, live=live, fixed=fixed, claim=claims.get(finding.id, "")
        )
        place = line_of(iteration.text, finding.quote)
        if place is None and fixed and old is not None and run.task.form == "code":
            place = _successor(old, iteration.text, line_of(old, finding.quote))
        if place is None:
            rest.append(html)
        else:
            lines.setdefault(place, []).append(html)
            quotes += [] if fixed else [finding.quote]
    return _Pinned(lines, rest, tuple(quotes))


def _successor(old: str, new: str, line: int | None) -> int | None:
    """Return the line of the new text that took the place of a line of the old one.

    Without a line, it is that of the only change, if there is only one.
    """
    compared = rows(old, new)
    changes = {row.hunk for row in compared if row.hunk is not None}
    if line is None:
        hunk = changes.pop() if len(changes) == 1 else None
    else:
        hunk = next((row.hunk for row in compared if row.old == line), None)
    added = [row.new for row in compared if row.hunk == hunk and row.new is not None]
    return added[-1] if hunk is not None and added else None


def _finding(
    finding: Finding, view: View, iteration: Iteration, *, live: bool, fixed: bool, claim: str
) -> str:
    """Return a finding as a note in the margin of the text."""
    passed = bool(iteration.verdict and iteration.verdict.passed)
    minor = finding.severity is not Severity.BLOCKING
    kind = "rf-fixed" if fixed else "rf-minor" if minor else ""
    lead = "✓ Fixed" if fixed else html_text(finding.id)
    by = labels.check_name(finding.check or finding.criterion)
    words = [] if fixed or not minor else ["suggestion" if passed else "minor"]
    words += ["back again"] if finding.status is Status.REGRESSED else []
    words += ["yours" if finding.author == "user" and by != OWN else "", by]
    who = html_prose(" · ".join(filter(None, words)))
    body = f"<b>{lead}</b> · {html_prose(finding.problem)} <small>· {who}</small>"
    if finding.input.strip():
        expected = f", expected <code>{html_text(finding.expected)}</code>"
        body += f"<br><small>Shown by <code>{html_text(finding.input)}</code>"
        body += f"{expected if finding.expected else ''}</small>"
    if finding.fix and not fixed:
        body += f"<br><small>Fix: {html_prose(finding.fix)}</small>"
    if claim and fixed:
        body += f" <small>· {html_prose(first_line(claim))}</small>"
    if not live or fixed:
        return f'<div class="rf-finding {kind}"><div>{body}</div></div>'
    if (view.form, view.finding) == ("dismiss", finding.id):
        acts = (
            '<span class="rf-inline" data-form="dismiss">'
            + field("reason", "Reason (optional)", focus=True)
            + button("Dismiss", "dismiss", submit=True, finding=finding.id)
            + button("Cancel", "open", kind="rf-ghost", hotkey="Escape")
            + "</span>"
        )
    else:
        acts = button("Act on it", "act", title="Revise the text for this finding alone.",
                       finding=finding.id, iteration=iteration.number, fields="guide")  # fmt: skip
        if not finding.binding:
            acts += open_button("Dismiss", "dismiss", finding=finding.id)
        acts += open_button("Edit", "finding", finding=finding.id)
    return (
        f'<div class="rf-finding {kind}" data-key="{html_text(finding.id)}"><div>{body}</div>'
        f'<span class="rf-acts rf-small">{acts}</span></div>'
    )


def _guide(run: Run, view: View, about: int | None) -> str:
    """Return the field for guidance, and the button that sends it."""
    if about is None:
        return ""
    running = labels.running(run)
    needs = view.form == "needs-work"
    hint = "Guidance for the next revision (optional)"
    if needs:
        hint = "What needs work? (optional)"
    key = f"words-{view.revision}"
    field = (
        f'<textarea name="words" rows="1" data-key="{key}" data-focus="words" data-enter '
        f'aria-label="{hint}" placeholder="{hint}"></textarea>'
    )
    if needs:
        send = button("Needs work", "needs-work", kind="rf-next", submit=True, iteration=about,
                       sure=1)  # fmt: skip
        send += button("Cancel", "open", kind="rf-ghost", hotkey="Escape")
    elif running:
        title = "The next revision takes it into account."
        send = button("Add guidance", "guide", submit=True, title=title)
    else:
        send = (
            '<label class="rf-count" title="How many more revisions Continue allows">'
            f'<input type="number" name="revisions" min="1" max="9" value="1" '
            f'data-key="count-{view.revision}" aria-label="Revisions"> more</label>'
        )
        send += continue_button(run, about, kind="").replace(' data-hotkey="c"', " data-submit")
    return f'<div class="rf-inline rf-guide-row" data-form="guide">{field}{send}</div>'


def _foot(run: Run, view: View, about: int | None) -> str:
    """Return the folds; a closed one is empty until somebody opens it."""
    bodies = {
        "details": lambda: _details(run, about),
        "history": lambda: _history(run) + _go_to(run),
        "settings": lambda: blocks_html(document.settings(run)[0].blocks),  # type: ignore[union-attr]
    }
    folds = "".join(
        f'<details class="rf-foot-fold" data-fold="{name}"{" open" if name in view.folds else ""}>'
        f'<summary>{name.capitalize()}</summary><div class="rf-body">'
        f"{bodies[name]() if name in view.folds else ''}</div></details>"
        for name in FOLDS
    )
    return folds + open_button("? keys", "keys", kind="rf-ghost")


def _go_to(run: Run) -> str:
    """Return the field that shows any of many iterations."""
    if len(run.iterations) <= MOST_STEPS:
        return ""
    last = len(run.iterations) - 1
    return (
        '<div class="rf-inline" data-form="show"><label class="rf-field"><span>Go to iteration'
        f'</span><input type="number" name="number" min="0" max="{last}" value="{last}" data-enter>'
        f"</label>{button('Show', 'show', submit=True)}</div>"
    )


def _details(run: Run, about: int | None) -> str:
    """Return what a text's verdict rests on, in full."""
    blocks: list[document.Block] = [
        document.Paragraph(f"Interpreted as: {labels.interpretation(run.setup)}", "quiet")
    ]
    if about is not None:
        iteration = run.iterations[about]
        blocks += document.reason(iteration)
        blocks += document.checks(iteration)
        blocks += document.judgement(iteration)
        blocks += document.claims(run, iteration)
        blocks += document.findings(iteration, run.task.form)
        blocks += document.notes(iteration)
    return blocks_html(blocks)


def _history(run: Run) -> str:
    """Return what the user did, the scores, and what each stage consumed."""
    decisions = [document.Paragraph(labels.decision_sentence(run, one)) for one in run.decisions]
    ended = [document.Paragraph(run.message, "quiet")] if run.message and run.stop_reason else []
    remarks = [document.Paragraph(w, "quiet") for w in run.warnings if document.is_remark(w)]
    return blocks_html([*remarks, *decisions, *ended, *document.scores(run), *document.usage(run)])
