"""A run as Markdown that reads well on GitHub and as a plain file."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import document, labels
from ipyrefine.render.diff import text_diff
from ipyrefine.render.escape import fence, html_text, markdown_text, strip_colours


class Part(NamedTuple):
    """One stage of one iteration as Markdown; `iteration` is None for the run as a whole."""

    stage: Literal["task", "draft", "revise", "check", "judge", "critique", "result"]
    iteration: int | None
    markdown: str


def record_markdown(run: Run) -> str:
    """Return the whole run as one document."""
    return _markdown(document.record(run)) + "\n"


def parts(run: Run) -> Iterator[Part]:
    """Yield the task, every stage of every iteration, and the result, in order."""
    for section in document.settings(run):
        assert isinstance(section, document.Section), "settings are one section"
        yield Part("task", None, _titled("## Task", section.blocks))
    for iteration in run.iterations:
        yield from _stages(run, iteration)
    outcome = [document.summary(run), *document.notices(run), *document.result(run)]
    yield Part("result", None, _titled("## Result", outcome))


def _stages(run: Run, iteration: Iteration) -> Iterator[Part]:
    """Yield the stages of one iteration."""
    number, verdict = iteration.number, iteration.verdict
    form = run.task.form
    heading = f"## {markdown_text(str(document.version(run, iteration)))}"
    written = _titled(heading, document.writing(run, iteration))
    yield Part("draft" if iteration.parent is None else "revise", number, written)
    if checks := document.checks(iteration):
        yield Part("check", number, _markdown([*checks, *document.outputs(iteration)]))
    if verdict is not None:
        beside = labels.score_beside(verdict)
        label = f"**{markdown_text(str(labels.iteration_label(iteration)))}** {beside}".rstrip()
        blocks = [*document.reason(iteration), *document.judgement(iteration)]
        yield Part("judge", number, _titled(label, blocks))
    if findings := document.findings(iteration, form):
        yield Part("critique", number, _markdown(findings))


def _titled(title: str, blocks: Iterable[document.Block]) -> str:
    """Return blocks below a first line."""
    return "\n\n".join([title, *map(_block, blocks)])


def _markdown(blocks: Iterable[document.Block]) -> str:
    """Return blocks as Markdown."""
    return "\n\n".join(map(_block, blocks))


def _block(block: document.Block) -> str:
    """Return one block as Markdown."""
    match block:
        case document.Summary():
            first = markdown_text(block.stage or str(block.label))
            return " · ".join([f"**{first}**", *map(markdown_text, block.parts)])
        case document.Paragraph(kind="words"):
            return fence(block.text, "text")
        case document.Paragraph():
            lead = f"**{markdown_text(block.lead)}** " if block.lead else ""
            sign = "> ⚠ " if block.kind in ("warning", "flaw") else ""
            return f"{sign}{lead}{markdown_text(block.text)}".rstrip()
        case document.Text():
            return fence(
                block.text, labels.language(block.text, block.form, block.language) or "text"
            )
        case document.Difference():
            return f"**Difference from iteration {block.other}**\n\n{_difference(block)}"
        case document.Output():
            return f"**{markdown_text(block.title)}**\n\n{fence(strip_colours(block.text), 'text')}"
        case document.Items():
            rows = "\n".join(map(_item, block.items))
            if block.title == document.DOUBTFUL:
                return _fold(block.title, rows)
            return f"**{markdown_text(block.title)}**\n\n{rows}"
        case document.Table():
            return _fold(block.title, _table(block.head, block.rows))
        case document.Picture():
            return f"*{markdown_text(block.caption)}*"
        case document.Scores():
            return f"{_scores(block)}\n\n{block.omission}".rstrip()
        case document.Section():
            return _fold(block.title, _markdown(block.blocks))
        case document.Version():
            return _fold(str(block), _markdown(block.blocks))


def _fold(title: str, body: str) -> str:
    """Return a ``<details>`` element; blank lines around the body let Markdown in again."""
    return f"<details><summary>{html_text(title)}</summary>\n\n{body}\n\n</details>"


def _difference(block: document.Difference) -> str:
    """Return what changed: signed lines for code, marked words for prose."""
    diff = text_diff(block.old, block.new, form=block.form)
    if block.old == block.new or not diff:
        return "No change to the text."
    return fence(diff, "diff" if block.form == "code" else "text")


def _item(item: document.Item) -> str:
    """Return one row as a list item, followed by its program output."""
    head = ", ".join(str(label) for label in item.labels)
    name = f"**{markdown_text(item.name)}**" if item.name else ""
    title = ": ".join(part for part in (head, name) if part)
    title += f" · {markdown_text(item.note)}" if item.note else ""
    title += f" {labels.score(item.score)}" if item.score is not None else ""
    text = markdown_text(item.text)
    separator = " " if text.startswith("→") else ": "
    lines = [separator.join(part for part in (title, text) if part)]
    if item.quote or item.doubt:
        quote = f"“{markdown_text(item.quote)}”" if item.quote else ""
        mark = f"({labels.doubtful(item.doubt)})" if item.doubt else ""
        lines.append(f"{quote} {mark}".strip())
    call, expected = item.example
    if call.strip():
        result = f", expected {markdown_text(expected)}" if expected else ""
        lines.append(f"Shown by: {markdown_text(call)}{result}")
    lines += [f"Fix: {markdown_text(item.fix)}"] if item.fix else []
    row = f"- {'<br>'.join(lines)}"
    return f"{row}\n\n{fence(item.detail, 'text')}\n" if item.detail.strip() else row


def _scores(block: document.Scores) -> str:
    """Return the iterations at a glance."""
    head = (
        "Iteration",
        "Verdict",
        f"Score {labels.sparkline(block.values)}",
        "Open findings",
        "Tokens",
        "Time",
    )
    rows = (
        (
            f"{one.number}{' ★' if one.number == block.best else ''}",
            str(labels.iteration_label(one)),
            labels.score(value),
            str(len(one.actionable)),
            f"{one.usage.tokens:,}",
            labels.seconds(one.usage.seconds),
        )
        for one, value in zip(block.iterations, block.values, strict=True)
    )
    return _table(head, rows)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; the first column is aligned to the left, the others to the right."""
    head = list(head)
    ruler = ["---", *["--:"] * (len(head) - 1)]
    lines = [map(_cell, head), ruler, *(map(_cell, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """Escape a cell; a number stays readable in the plain file."""
    return text if text.replace(".", "").isdecimal() else markdown_text(text)
