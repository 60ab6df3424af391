"""A run as Markdown that reads well on GitHub and as a plain file."""

import html
import re
from collections.abc import Iterable, Iterator

from ipyrefine.core.run import Run
from ipyrefine.render import document, labels
from ipyrefine.render.diff import text_diff
from ipyrefine.render.escape import plain

_BACKTICKS = re.compile(r"`+")
_MATH = re.compile(r"[$\\]")
_MARKUP = re.compile(r"[*_`\[\]{}|~!^@]|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.", re.I)
_LINE_START = re.compile(r"^(\d*)([-+#=.)])")


def record_markdown(run: Run) -> str:
    """Return the whole run as one document."""
    return _markdown(document.record(run)) + "\n"


def parts(run: Run) -> Iterator[tuple[int | None, str]]:
    """Yield the task, every iteration with its number, and the result, in order."""
    yield None, _titled("Task", document.settings(run))
    for iteration in run.iterations:
        version = document.version(run, iteration)
        yield iteration.number, _titled(str(version), version.blocks)
    gives = document.results(run, run.chosen) if run.chosen else []
    outcome = [document.summary(run), *document.notices(run), *gives, *document.result(run)]
    yield None, _titled("Result", outcome)


def _titled(title: str, blocks: Iterable[document.Block]) -> str:
    return f"## {markdown_text(title)}\n\n{_markdown(blocks)}"


def _markdown(blocks: Iterable[document.Block]) -> str:
    return "\n\n".join(filter(None, map(_block, blocks)))


def _block(block: document.Block) -> str:
    match block:
        case document.Paragraph(kind="words"):
            return fence(block.text, "text")
        case document.Paragraph():
            lead = f"**{markdown_text(block.lead)}** " if block.lead else ""
            sign = "> ⚠ " if block.kind in ("warning", "flaw") else ""
            return f"{sign}{lead}{markdown_text(block.text)}".rstrip()
        case document.Text(old=None):
            language = labels.language(block.text, block.form, block.language)
            return fence(block.text, language or "text")
        case document.Text():
            return _bold(block.title, _difference(block))
        case document.Output():
            return _bold(block.title, fence(block.text, "text"))
        case document.Items():
            return _bold(block.title, "\n".join(map(_item, block.items)))
        case document.Table():
            return _fold(block.title, _table(block.head, block.rows))
        case document.Picture():
            return "<br>".join(
                [f"*{markdown_text(block.sentence)}*", *map(markdown_text, block.axes)]
            )
        case document.Results():
            return _bold(block.title, "\n".join(map(_result, block.rows)))
        case document.Section():
            return _fold(str(block), _markdown(block.blocks))


def _bold(title: str, body: str) -> str:
    return f"**{markdown_text(title)}**\n\n{body}"


def _fold(title: str, body: str) -> str:
    """Return a ``<details>`` element; blank lines around the body let Markdown in again."""
    summary = html.escape(plain(title))
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _difference(block: document.Text) -> str:
    diff = text_diff(block.old or "", block.text, form=block.form)
    if block.old == block.text or not diff:
        return "No change to the text."
    return fence(diff, "diff" if block.form == "code" else "text")


def _item(item: document.Item) -> str:
    head = markdown_text(", ".join(map(str, item.labels))) if item.labels else ""
    name = f"**{markdown_text(item.name)}**" if item.name else ""
    title = ": ".join(part for part in (head, name) if part)
    title += f" · {markdown_text(item.note)}" if item.note else ""
    text = markdown_text(item.text)
    separator = " " if text.startswith("→") else ": "
    lines = [separator.join(part for part in (title, text) if part)]
    quote = f"“{markdown_text(item.quote)}”" if item.quote else ""
    lines += [quote] if quote else []
    lines += [f"Task: “{markdown_text(item.demand)}”"] if item.demand else []
    lines += [f"Fix: {markdown_text(item.fix)}"] if item.fix else []
    row = f"- {'<br>'.join(lines)}"
    return f"{row}\n\n{fence(item.detail, 'text')}\n" if item.detail.strip() else row


def _result(one: document.Result) -> str:
    """Return a result as a list item, with its table below."""
    line = f"- {markdown_text(str(one))}"
    tables = [_block(block) for block in one.output]
    return "\n\n".join([line, *tables, ""]) if tables else line


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; the first column is aligned to the left, the others to the right."""
    head = list(head)
    ruler = ["---", *["--:"] * (len(head) - 1)]
    # A number stays readable in the plain file.
    lines = [
        [cell if cell.replace(".", "").isdecimal() else markdown_text(cell) for cell in row]
        for row in (head, *rows)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], ruler, *lines[1:]))


def fence(text: str, language: str = "") -> str:
    """Return a Markdown code block whose fence is longer than any run of backticks inside.

    Args:
        text: the block's content.
        language: info string; anything but letters, digits, ``+``, ``-`` and ``_`` is dropped.
    """
    body = plain(text)
    longest = max((len(run) for run in _BACKTICKS.findall(body)), default=0)
    marks = "`" * max(3, longest + 1)
    info = re.sub(r"[^A-Za-z0-9+_-]", "", language)
    return f"{marks}{info}\n{body}{'' if body.endswith(chr(10)) or not body else chr(10)}{marks}"


def markdown_text(text: str) -> str:
    """Escape text for one line of Markdown: no markup, HTML, autolink or math is left.

    Line breaks become ``<br>``, so it fits a list item, a table cell or a paragraph.
    """
    return "<br>".join(_line(line) for line in plain(text).strip("\n").split("\n"))


def _line(line: str) -> str:
    body = line.lstrip(" \t")
    indent = len(line[: len(line) - len(body)].expandtabs(4))
    escaped = [_MARKUP.sub(r"\\\g<0>", html.escape(one, quote=False)) for one in _MATH.split(body)]
    escaped[0] = _LINE_START.sub(r"\1\\\2", escaped[0])
    # A backslash before $ is not enough: some viewers look for math before and after Markdown.
    spans = [f"<span>&#{ord(mark)};</span>" for mark in _MATH.findall(body)]
    pairs = zip(escaped, [*spans, ""], strict=True)
    return "&nbsp;" * indent + "".join(text + span for text, span in pairs)
