"""Find the Markdown in prose: emphasis, code, headings and lists."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Literal, NamedTuple

_LONGEST = 310  # characters of a span
# At most so many characters between two signs, so that no text takes long to read.
_INLINE: tuple[tuple[Literal["code", "strong", "em"], re.Pattern[str]], ...] = (
    ("code", re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,300}?)(?<!`)\1(?!`)")),
    ("strong", re.compile(r"(?<![\w*\\])(\*\*)(?=[^\s*])(.{1,300}?)(?<=[^\s*])\1(?![\w*])")),
    ("strong", re.compile(r"(?<![\w\\])(__)(?=[^\s_])(.{1,300}?)(?<=[^\s_])\1(?!\w)")),
    ("em", re.compile(r"(?<![\w*\\])(\*)(?=[^\s*])([^*]{1,300}?)(?<=[^\s*])\1(?![\w*])")),
    ("em", re.compile(r"(?<![\w\\])(_)(?=[^\s_])([^_]{1,300}?)(?<=[^\s_])\1(?!\w)")),
)
_LINES: tuple[tuple[Literal["", "heading", "item"], re.Pattern[str]], ...] = (
    ("heading", re.compile(r" {0,3}(#{1,6} +)(?=\S)")),
    ("item", re.compile(r"[ \t]*([-*+] )(?=\S)")),
    ("item", re.compile(r"[ \t]*()\d{1,3}[.)] (?=\S)")),
)


class Span(NamedTuple):
    """A stretch of a line; signs are what Markdown does not show, a bullet is one too."""

    start: int
    end: int
    kind: Literal["strong", "em", "code", "sign", "bullet"]


class TextLine(NamedTuple):
    """What a line of Markdown is, and what stands in it."""

    kind: Literal["", "heading", "item", "code"]
    spans: tuple[Span, ...] = ()  # by their starts

    def within(self, start: int, end: int) -> Iterator[Span]:
        """Yield the spans of a stretch of the line, counted from its start."""
        first = bisect_left(self.spans, start - _LONGEST, key=itemgetter(0))
        for span in islice(self.spans, first, bisect_left(self.spans, end, key=itemgetter(0))):
            if span.end > start:
                yield Span(max(span.start - start, 0), min(span.end, end) - start, span.kind)


@lru_cache(maxsize=64)
def read_markdown(text: str) -> tuple[TextLine, ...]:
    """Return the lines of a text.

    Only what means the same wherever it stands is read: no links, tables or HTML.
    """
    lines, fenced = [], False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith("```") and line.count("```") == 1
        fenced ^= is_fence
        lines.append(TextLine("code") if fenced or is_fence else _read_line(line))
    return tuple(lines)


def _read_line(line: str) -> TextLine:
    spans = _inline(line)
    for kind, pattern in _LINES:
        if match := pattern.match(line):
            spans.append(Span(*match.span(1), "bullet" if kind == "item" else "sign"))
            return TextLine(kind, tuple(sorted(spans)))
    return TextLine("", tuple(sorted(spans)))


def _inline(line: str) -> list[Span]:
    spans = []
    for kind, pattern in _INLINE:
        for match in pattern.finditer(line):
            (start, end), (inner, close) = match.span(), match.span(2)
            spans += [Span(inner, close, kind)]
            spans += [Span(start, inner, "sign"), Span(close, end, "sign")]
            if kind == "code":  # nothing in it is emphasis
                line = line[:start] + "x" * (end - start) + line[end:]
    return spans
