"""Show the Markdown in prose as what it means: emphasis, code, headings and lists.

Only what means the same wherever it stands is read: no links, tables or HTML. Every character
stays; Markdown's signs are there, to be copied, but not shown.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from markupsafe import Markup, escape

from ipyrefine.render.escape import plain

_MATH = re.compile(r"[$\\]")
# At most so many characters between two signs, so that no text takes long to read.
_INLINE = re.compile(
    r"(?<!`)(?P<code>`{1,3})(?!`)(.{1,300}?)(?<!`)(?P=code)(?!`)"
    r"|(?<![\w*\\])(?P<stars>\*\*)(?=[^\s*])(.{1,300}?)(?<=[^\s*])(?P=stars)(?![\w*])"
    r"|(?<![\w\\])(?P<lines>__)(?=[^\s_])(.{1,300}?)(?<=[^\s_])(?P=lines)(?!\w)"
    r"|(?<![\w*\\])(?P<star>\*)(?=[^\s*])([^*]{1,300}?)(?<=[^\s*])(?P=star)(?![\w*])"
    r"|(?<![\w\\])(?P<line>_)(?=[^\s_])([^_]{1,300}?)(?<=[^\s_])(?P=line)(?!\w)"
)
_NAME = re.compile(r"`([^`\n]+)`|(“[^“”`\n]+”)")
_HEADING = re.compile(r" {0,3}#{1,6} +(?=\S)")
_ITEM = re.compile(r"([ \t]*)([-*+] )(?=\S)")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
# A heading, a row of a table, a line below a title, HTML, code: breaks mean nothing there.
_BLOCK = re.compile(r" {0,3}(?:#{1,6} |\||[=-]+\s*$|<|```|~~~)|(?: {4}|\t)")
_NUMBERED = re.compile(r"[ \t]*\d{1,3}[.)] (?=\S)")


def prose(text: str) -> Markup:
    """Return text as HTML outside ``<pre>``, with its line breaks, and nothing to typeset as TeX.

    Viewers look for TeX within one text node, so each ``$`` and backslash gets its own.
    """
    html = _MATH.sub(r"<span>\g<0></span>", str(escape(plain(text))))
    return Markup(html.replace("\n", "<br>"))


def sentence_html(text: str) -> Markup:
    """Return a sentence as HTML, with what stands in backticks as code.

    A name or a quote has a direction of its own, so one in Arabic turns nothing around it.
    """

    def set_apart(found: re.Match[str]) -> str:
        return f"<bdi>{found[2]}</bdi>" if found[2] else f'<code dir="auto">{found[1]}</code>'

    return Markup(_NAME.sub(set_apart, str(prose(text))))


def markdown_lines(text: str, quotes: Sequence[str] = ()) -> Iterator[Markup]:
    """Yield the lines of a text as HTML, with passages of it marked."""
    fenced = False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith("```") and line.count("```") == 1
        fenced ^= is_fence
        if fenced or is_fence:
            yield _wrap("code", mark(line, quotes, prose), "rf-block") if line else Markup()
        elif heading := _HEADING.match(line):
            rest = _mark_behind(heading, quotes)
            yield _wrap("strong", _sign(heading[0]) + rest, "rf-h")
        elif item := _ITEM.match(line):
            rest = _mark_behind(item, quotes)
            yield _wrap("span", prose(item[1]) + _sign(item[2], " rf-bullet") + rest, "rf-li")
        else:
            html = mark(line, quotes, _inline)
            yield _wrap("span", html, "rf-li") if _NUMBERED.match(line) else html


def keep_line_breaks(text: str) -> str:
    """Return prose as Markdown that shows its line breaks, as the panel does."""
    lines, fenced = text.split("\n"), False
    for n, (line, after) in enumerate(pairwise(lines)):
        fenced ^= bool(_FENCE.match(line))
        if not (fenced or _BLOCK.match(line) or line.endswith("\\")) and after.strip():
            lines[n] = f"{line.rstrip()}  " if line.strip() else line
    return "\n".join(lines)


def find_quote(text: str, quotes: Sequence[str]) -> str:
    """Return the first of some passages that a text holds; empty for none."""
    return next((quote for quote in quotes if quote and quote in text), "")


def mark(text: str, quotes: Sequence[str], render: Callable[[str], Markup] = prose) -> Markup:
    """Return text as HTML, with the first passage that it holds marked."""
    quote = find_quote(text, quotes)
    if not quote:
        return render(text)
    before, _, after = text.partition(quote)
    return render(before) + _wrap("mark", render(quote)) + render(after)


def _mark_behind(sign: re.Match[str], quotes: Sequence[str]) -> Markup:
    bare = [quote.removeprefix(sign[0].lstrip()) for quote in quotes]
    return mark(sign.string[sign.end() :], bare, _inline)


def _inline(text: str) -> Markup:
    parts, at = [], 0
    for found in _INLINE.finditer(text):
        sign, inner = (group for group in found.groups() if group is not None)
        tag = "code" if sign[0] == "`" else "strong" if len(sign) == 2 else "em"
        body = _wrap(tag, prose(inner) if tag == "code" else _inline(inner))
        parts += [prose(text[at : found.start()]), _sign(sign), body, _sign(sign)]
        at = found.end()
    return Markup("").join([*parts, prose(text[at:])])


def _sign(sign: str, kind: str = "") -> Markup:
    return _wrap("span", prose(sign), f"rf-md{kind}")


def _wrap(tag: str, html: Markup, kind: str = "") -> Markup:
    name = f' class="{kind}"' if kind else ""
    return Markup(f"<{tag}{name}>{html}</{tag}>")
