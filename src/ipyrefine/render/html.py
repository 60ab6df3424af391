"""A run as HTML: the record, the parts of a panel, and the text while it is written.

Lists and paragraphs come first, so a record reads well in viewers that drop all style.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ipyrefine.core.model import Finding, Form, Question
from ipyrefine.core.run import Run
from ipyrefine.render import document, labels
from ipyrefine.render.chart import svg
from ipyrefine.render.diff import html_diff
from ipyrefine.render.escape import html_code, html_prose, html_text, strip_colours
from ipyrefine.render.style import STYLE, pane_class

# The two extra classes tell MathJax 3 and 2 to leave the record alone.
OPEN = '<div class="ipyrefine mathjax_ignore tex2jax_ignore">'
CLOSE = "</div>"
TAIL_CHARACTERS = 1_000
TAIL_LINES = 20
_DOT = ' <span class="rf-quiet">·</span> '
_PARAGRAPHS = {
    "plain": "",
    "message": ' class="rf-message"',
    "warning": ' class="rf-note"',
    "flaw": ' class="rf-note rf-flaw"',
    "quiet": ' class="rf-quiet"',
}


class View(NamedTuple):
    """How an iteration's text is compared.

    Attributes:
        best: with the best iteration instead of its parent.
        sides: side by side instead of in one column.
    """

    best: bool = False
    sides: bool = False


INLINE = View()


def record_html(run: Run, *, note: str = "", folded: bool = False) -> str:
    """Return the whole run as one static block.

    Args:
        run: the run.
        note: a sentence to put below the summary, such as where the accepted text went.
        folded: whether it takes one line until it is opened, as below a live panel.
    """
    body = _html(document.record(run, note))
    if folded:
        body = (
            '<details class="rf-record"><summary>Run summary</summary>'
            f'<div class="rf-body">{body}</div></details>'
        )
    return styled(body)


def styled(body: str) -> str:
    """Return HTML inside our scoped container, with its style sheet."""
    return f"{OPEN}<style>{STYLE}</style>{body}{CLOSE}"


def summary_line(run: Run) -> str:
    """Return the summary line: verdict or stage, score, best iteration, usage, stop reason."""
    return _html([document.summary(run)])


def notices_html(run: Run) -> str:
    """Return why the run stopped, the user's decisions and the warnings."""
    return _html(document.notices(run))


def score_html(run: Run) -> str:
    """Return chart, version history and criterion scores, from the second verdict on."""
    return _html(document.scores(run))


def spent_html(run: Run) -> str:
    """Return calls, tokens, time and cost of each stage, folded."""
    return _html(document.usage(run))


def task_html(run: Run) -> str:
    """Return the task with its criteria, checklist and limits, folded."""
    return _html(document.settings(run))


def iteration_html(
    run: Run,
    number: int,
    *,
    open: bool = False,  # noqa: A002 - HTML's word
    view: View = INLINE,
) -> str:
    """Return one iteration as a foldable block.

    Args:
        run: the run.
        number: the iteration's number.
        open: whether the block starts unfolded.
        view: how its text is compared.

    Raises:
        IndexError: the run has no such iteration.
    """
    iteration = run.iterations[number]
    other = run.best if view.best and run.best != number else None
    return _version(document.version(run, iteration, other), open, view.sides)


def finding_html(finding: Finding, form: Form, text: str = "", *, passed: bool = False) -> str:
    """Return one finding.

    Args:
        finding: the finding.
        form: how its text is written.
        text: the text it is about, to show its quote in context.
        passed: whether that text passes, so that a minor finding is a suggestion.
    """
    return _item(document.finding_item(finding, form, text, passed=passed))


def question_html(question: Question) -> str:
    """Return a question as a sentence, with what runs before its input."""
    call = f"<code>{html_text(question.call)}</code>"
    setup = _fold("Before it runs", _output(question.setup)) if question.setup.strip() else ""
    return (
        f'<p class="rf-head"><strong>Question</strong></p><p>What should {call} give? '
        f"The drafts disagree, and the task doesn't say.</p>{setup}"
    )


def stage_html(stage: str, iteration: int, allowed: int) -> str:
    """Return the stage under way, which a screen reader announces.

    Args:
        stage: name of the stage.
        iteration: number of the iteration.
        allowed: revisions allowed in all.
    """
    name = html_text(labels.stage_name(stage, iteration, allowed))
    return f'<strong role="status" aria-live="polite">{name}</strong>'


def time_html(run: Run, tokens: int = 0) -> str:
    """Return a run's time so far and the rest of its budget.

    Args:
        run: the run.
        tokens: what the model has written in the stage under way.
    """
    written = labels.count(tokens, "token") if tokens else ""
    parts = (labels.seconds(run.seconds), written, labels.budget_left(run))
    return html_text("".join(f"· {part} " for part in parts if part))


def stream_html(id_: str, *, thinking: bool = False) -> str:
    """Return the pane that the page's script fills with a streamed text.

    Args:
        id_: the id of the stream.
        thinking: whether the text is the model's thinking.
    """
    pane = f'class="rf-text rf-wrap rf-stream" data-stream="{html_text(id_)}" tabindex="0"'
    return f"{_thinking(thinking)}<pre {pane}><code></code></pre>"


def tail_html(text: str, *, thinking: bool = False) -> str:
    """Return the last lines of a text, for a page that has no script to stream it.

    Args:
        text: the text so far, or more of its end than fits.
        thinking: whether the text is the model's thinking.
    """
    tail = "\n".join(text[-TAIL_CHARACTERS:].split("\n")[-TAIL_LINES:])
    body = ("⋯\n" if len(tail) < len(text) else "") + html_text(tail)
    pane = f'<pre class="rf-text rf-wrap rf-tail" tabindex="0"><code>{body}</code></pre>'
    return f"{_thinking(thinking)}{pane}"


def _thinking(thinking: bool) -> str:
    """Return the line above a model's thinking."""
    return '<p class="rf-quiet">Thinking…</p>' if thinking else ""


def _html(blocks: Iterable[document.Block], sides: bool = False) -> str:
    """Return blocks as HTML."""
    return "".join(_block(block, sides) for block in blocks)


def _block(block: document.Block, sides: bool) -> str:
    """Return one block as HTML."""
    match block:
        case document.Summary():
            return _summary(block)
        case document.Paragraph(kind="words"):
            return f'<div class="rf-text rf-prose">{html_prose(block.text)}</div>'
        case document.Paragraph():
            symbol = "⚠ " if block.kind in ("warning", "flaw") else ""
            lead = f"<strong>{symbol}{html_prose(block.lead)}</strong> " if block.lead else symbol
            return f"<p{_PARAGRAPHS[block.kind]}>{lead}{html_prose(block.text)}</p>"
        case document.Text():
            return (_head(block.title) if block.title else "") + _text(
                block.text, block.form, block.language
            )
        case document.Difference():
            diff = html_diff(block.old, block.new, block.form, block.language, sides=sides)
            full = _fold("Full text", _text(block.new, block.form, block.language))
            return f"{_head(f'Difference from iteration {block.other}')}{diff}{full}"
        case document.Output():
            return _fold(block.title, _output(block.text))
        case document.Items():
            return _items(block)
        case document.Table():
            return _fold(block.title, _table(block))
        case document.Scores():
            first = block.iterations[0].number
            chart = svg(block.values, block.target, block.best, first=first)
            note = f'<p class="rf-quiet">{html_text(block.omission)}</p>'
            return chart + (note if block.omission else "")
        case document.Tree():
            lines = html_text("\n".join(block.lines))
            pane = f'<pre class="rf-text rf-tree" tabindex="0"><code>{lines}</code></pre>'
            return _fold(block.title, pane, open=True)
        case document.Section():
            return _fold(block.title, _html(block.blocks))
        case document.Version():
            return _version(block)


def _summary(block: document.Summary) -> str:
    """Return the summary line."""
    head = f"<strong>{html_text(block.stage)}…</strong>" if block.stage else _badge(block.label)
    parts = (f"<span>{html_text(part)}</span>" for part in block.parts)
    return f'<p class="rf-summary">{_DOT.join([head, *parts])}</p>'


def _version(
    block: document.Version,
    open: bool = False,  # noqa: A002 - HTML's word
    sides: bool = False,
) -> str:
    """Return an iteration, folded under its heading."""
    heading = [f"<strong>{html_text(block.name)}</strong>"]
    heading += [_badge(block.label)] if block.label else []
    heading += [f'<span class="rf-number">{html_text(block.score)}</span>'] if block.score else []
    if block.best:
        heading.append(f'<span class="rf-star">{labels.BEST}</span>')
    if block.flawed:
        heading.append(_chip(labels.NO_NEW_TEXT))
    return (
        f'<details class="rf-iteration"{" open" if open else ""}>'
        f"<summary>{' '.join(heading)}</summary>"
        f'<div class="rf-body">{_html(block.blocks, sides)}</div></details>'
    )


def _items(block: document.Items) -> str:
    """Return a titled list."""
    rows = "".join(
        f'<li class="rf-done">{_item(item)}</li>' if item.settled else f"<li>{_item(item)}</li>"
        for item in block.items
    )
    body = f'<ul class="rf-rows">{rows}</ul>'
    return _fold(block.title, body) if block.folded else _head(block.title) + body


def _item(item: document.Item) -> str:
    """Return the content of a row."""
    line = [_chip(label) for label in item.labels]
    line += [f"<strong>{html_prose(item.name)}</strong>"] if item.name else []
    line += [f'<span class="rf-quiet">{html_prose(item.note)}</span>'] if item.note else []
    line += [_meter(item.score)] if item.score is not None else []
    line += [_chip(labels.doubtful(item.doubt))] if item.doubt else []
    if not item.name:  # a question is one line
        line.append(f"<span>{html_prose(item.text)}</span>")
        return f'<div class="rf-line rf-flat">{" ".join(line)}</div>'
    body = f'<div class="rf-line">{" ".join(line)}</div>'
    body += f"<p>{html_prose(item.text)}</p>" if item.text else ""
    body += _quote(item) if item.quote else ""
    body += _example(*item.example)
    body += f"<p><strong>Fix:</strong> {html_prose(item.fix)}</p>" if item.fix else ""
    if item.detail.strip():
        failed = any(label.kind == "bad" for label in item.labels)
        body += _fold("Details", _output(item.detail), open=failed)
    return body


def _example(call: str, expected: str) -> str:
    """Return the input that shows a finding, with what it should give."""
    if not call.strip():
        return ""
    result = f", expected <code>{html_text(expected)}</code>" if expected else ""
    return f"<p><strong>Shown by:</strong> <code>{html_text(call)}</code>{result}</p>"


def _quote(item: document.Item) -> str:
    """Return a quote with its context, folded where nobody has to act on it."""
    if item.form == "code":
        quote = f'<pre class="rf-quote"><code>{html_text(item.quote)}</code></pre>'
    else:
        quote = f'<blockquote class="rf-quote">{html_prose(item.quote)}</blockquote>'
    if item.settled:
        return _fold("Quote", quote)
    return f'<div class="rf-quoted">{quote}{_context(item.quote, item.source)}</div>'


def _context(quote: str, text: str) -> str:
    """Return the quote marked among the lines around it; folded, and shown on hover."""
    start = text.find(quote)
    if start < 0:
        return ""
    before, after = text[:start].split("\n"), text[start + len(quote) :].split("\n")
    around = [html_text("\n".join(lines)) for lines in (before[-2:], after[:2])]
    lines = f"<mark>{html_text(quote)}</mark>".join(around)
    pane = f'<pre class="rf-text rf-wrap" tabindex="0"><code>{lines}</code></pre>'
    return f'<div class="rf-place">{_fold(f"In context, line {len(before)}", pane)}</div>'


def _text(text: str, form: Form, language: str) -> str:
    """Return a draft or revision: highlighted code, or prose with its line breaks."""
    if not text.strip():
        return '<p class="rf-quiet">The text is empty.</p>'
    if form == "prose":
        pane = f'<div class="rf-text rf-prose{pane_class(text)}">{html_prose(text)}</div>'
    else:
        code = html_code(text, labels.language(text, form, language))
        # Without <code> a parser drops a newline that directly follows <pre>.
        pane = (
            f'<pre class="rf-text rf-code{pane_class(text)}" tabindex="0"><code>{code}</code></pre>'
        )
    # The button stays hidden where the labextension is not there to act on it.
    return f'<div class="rf-held">{pane}<button type="button" class="rf-copy">Copy</button></div>'


def _output(text: str) -> str:
    """Return program output: wrapped, in a fixed-width font, without its colours."""
    body = html_text(strip_colours(text))
    return f'<pre class="rf-text rf-wrap" tabindex="0"><code>{body}</code></pre>'


def _table(block: document.Table) -> str:
    """Return a table that scrolls sideways when it is wide."""
    head = "".join(
        f'<th scope="col">{html_prose(cell)}</th>' if cell else "<td></td>" for cell in block.head
    )
    rows = "".join(
        f'<tr><th scope="row">{html_prose(row[0])}</th>'
        + "".join(f"<td>{html_prose(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in block.rows
    )
    return f'<div class="rf-wide"><table class="rf-table"><tr>{head}</tr>{rows}</table></div>'


def _badge(label: labels.Label) -> str:
    """Return a verdict."""
    hollow = " rf-hollow" if label.hollow else ""
    return f'<strong class="rf-badge rf-{label.kind}{hollow}">{html_text(str(label))}</strong>'


def _chip(label: labels.Label) -> str:
    """Return a small label."""
    return f'<span class="rf-chip rf-{label.kind}">{html_text(str(label))}</span>'


def _meter(score: float) -> str:
    """Return a score as a bar and a number."""
    bar = (
        f'<span class="rf-meter" aria-hidden="true"><span style="width:{score:.0%}"></span></span>'
    )
    return f'{bar} <span class="rf-number">{labels.score(score)}</span>'


def _head(title: str) -> str:
    """Return a heading; no ``<h*>``, which would fill a notebook's table of contents."""
    return f'<p class="rf-head"><strong>{html_text(title)}</strong></p>'


def _fold(title: str, body: str, *, open: bool = False) -> str:  # noqa: A002 - HTML's word
    """Return a foldable part."""
    state = " open" if open else ""
    return f'<details class="rf-more"{state}><summary>{html_text(title)}</summary>{body}</details>'
