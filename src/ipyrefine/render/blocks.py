"""Blocks of a run as HTML.

Lists and paragraphs come first, so that it reads well in viewers that drop all style.
"""

from collections.abc import Iterable

from ipyrefine.core.model import Form
from ipyrefine.render import document, labels
from ipyrefine.render.escape import html_prose, html_text, strip_colours
from ipyrefine.render.text import text_html, whole_html

_PARAGRAPHS = {
    "plain": "",
    "message": ' class="rf-message"',
    "warning": ' class="rf-note"',
    "flaw": ' class="rf-note rf-flaw"',
    "quiet": ' class="rf-quiet"',
}


def blocks_html(blocks: Iterable[document.Block]) -> str:
    """Return blocks as HTML."""
    return "".join(map(_block, blocks))


def _block(block: document.Block) -> str:
    """Return one block as HTML."""
    match block:
        case document.Summary():
            return f"<p>{html_text(str(block))}</p>"
        case document.Paragraph(kind="words"):
            return f'<div class="rf-prose rf-pane">{html_prose(block.text)}</div>'
        case document.Paragraph():
            symbol = "⚠ " if block.kind in ("warning", "flaw") else ""
            lead = f"<strong>{symbol}{html_prose(block.lead)}</strong> " if block.lead else symbol
            return f"<p{_PARAGRAPHS[block.kind]}>{lead}{html_prose(block.text)}</p>"
        case document.Text():
            return (head(block.title) if block.title else "") + _text(
                block.text, block.form, block.language
            )
        case document.Difference():
            title = head(f"Difference from iteration {block.other}")
            return title + _text(block.new, block.form, block.language, block.old)
        case document.Output():
            return fold(block.title, output(block.text))
        case document.Items():
            return _items(block)
        case document.Table():
            return fold(block.title, table(block))
        case document.Picture():
            return fold("Figure", picture(block))
        case document.Scores():
            return f'<p class="rf-quiet">{html_text(str(block))}</p>'
        case document.Section():
            return fold(block.title, blocks_html(block.blocks))
        case document.Version():
            return _version(block)


def _version(block: document.Version) -> str:
    """Return an iteration or a group, foldable under its heading."""
    heading = [f"<strong>{html_text(block.name)}</strong>"]
    heading += [badge(block.label)] if block.label else []
    heading += [f'<span class="rf-number">{html_text(block.score)}</span>'] if block.score else []
    if block.best:
        heading.append(f'<span class="rf-star">{labels.BEST}</span>')
    if block.flawed:
        heading.append(chip(labels.NO_NEW_TEXT))
    body = blocks_html(block.blocks)
    state = " open" if block.open else ""
    summary = f"<summary>{' '.join(heading)}</summary>"
    return f'<details class="rf-iteration"{state}>{summary}{body}</details>'


def _items(block: document.Items) -> str:
    """Return a titled list."""
    done = ' class="rf-done"'
    rows = "".join(
        f"<li{done if item.settled else ''}>{item_html(item)}</li>" for item in block.items
    )
    body = f'<ul class="rf-rows">{rows}</ul>'
    return fold(block.title, body) if block.folded else head(block.title) + body


def item_html(item: document.Item) -> str:
    """Return the content of a row."""
    line = [chip(label) for label in item.labels]
    line += [f"<strong>{html_prose(item.name)}</strong>"] if item.name else []
    line += [f'<span class="rf-quiet">{html_prose(item.note)}</span>'] if item.note else []
    line += [_meter(item.score)] if item.score is not None else []
    line += [chip(labels.doubtful(item.doubt))] if item.doubt else []
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
        body += fold("Details", output(item.detail), open=failed)
    return body


def _example(call: str, expected: str) -> str:
    """Return the input that shows a finding, with what it should give."""
    if not call.strip():
        return ""
    result = f", expected <code>{html_text(expected)}</code>" if expected else ""
    return f"<p><strong>Shown by:</strong> <code>{html_text(call)}</code>{result}</p>"


def _quote(item: document.Item) -> str:
    """Return a quote, folded where nobody has to act on it."""
    if item.form == "code":
        quote = f'<pre class="rf-quote"><code>{html_text(item.quote)}</code></pre>'
    else:
        quote = f'<blockquote class="rf-quote">{html_prose(item.quote)}</blockquote>'
    return fold("Quote", quote) if item.settled else quote


def _text(text: str, form: Form, language: str, old: str | None = None) -> str:
    """Return a draft or revision in a pane of its own."""
    if old is None:
        return whole_html(text, form, language)
    return f'<div class="rf-pane">{text_html(text, form, language, old=old)}</div>'


def output(text: str) -> str:
    """Return program output: wrapped, in a fixed-width font, without its colours."""
    body = html_text(strip_colours(text))
    return f'<pre class="rf-text rf-wrap" tabindex="0"><code>{body}</code></pre>'


def picture(block: document.Picture) -> str:
    """Return a picture, no wider than its place, with its caption for who cannot see it."""
    width, height = block.size
    return (
        f'<p class="rf-figure"><img src="data:image/png;base64,{html_text(block.png)}" '
        f'alt="{html_text(block.caption)}" width="{width}" height="{height}"></p>'
    )


def table(block: document.Table) -> str:
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


def badge(label: labels.Label) -> str:
    """Return a verdict."""
    hollow = " rf-hollow" if label.hollow else ""
    return f'<strong class="rf-badge rf-{label.kind}{hollow}">{html_text(str(label))}</strong>'


def chip(label: labels.Label) -> str:
    """Return a small label."""
    return f'<span class="rf-chip rf-{label.kind}">{html_text(str(label))}</span>'


def _meter(score: float) -> str:
    """Return a score as a bar and a number."""
    bar = (
        f'<span class="rf-meter" aria-hidden="true"><span style="width:{score:.0%}"></span></span>'
    )
    return f'{bar} <span class="rf-number">{labels.score(score)}</span>'


def head(title: str) -> str:
    """Return a heading; no ``<h*>``, which would fill a notebook's table of contents."""
    return f'<p class="rf-head"><strong>{html_text(title)}</strong></p>'


def fold(title: str, body: str, *, open: bool = False, name: str = "rf-more") -> str:  # noqa: A002 - HTML's word
    """Return a foldable part.

    Args:
        title: what stands on the fold.
        body: what is in it, as HTML.
        open: whether it starts unfolded.
        name: its class.
    """
    state = " open" if open else ""
    return f'<details class="{name}"{state}><summary>{html_text(title)}</summary>{body}</details>'
