"""Make text from models, users and checks harmless on every surface.

Every text that ipyrefine did not write itself passes through one of these functions.
"""

import html
import re
from functools import lru_cache

# Invisible characters, and those that control a terminal: C0 and C1 controls, bidirectional
# overrides and isolates, line separators, zero-width marks, tag characters, lone surrogates.
# ZWJ, ZWNJ and variation selectors stay: scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
_MATH = re.compile(r"[$\\]")
_BACKTICKS = re.compile(r"`+")
_MARKDOWN = re.compile(r"[*_`\[\]{}|~!^@]|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.", re.I)
_LINE_START = re.compile(r"^(\d*)([-+#=.)])")
# Highlighting longer code takes more time than it is worth.
_MAX_HIGHLIGHTED = 60_000  # characters


def _symbol(match: re.Match[str]) -> str:
    """Return a visible symbol for one hidden character."""
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩"


def plain(s: str) -> str:
    r"""Return text with controls, escapes, bidi marks and invisible characters made visible.

    ``\n`` and ``\t`` stay, ``\r\n`` becomes ``\n``. The result can be encoded as UTF-8 and cannot
    move a terminal's cursor, set its colours or reorder the line.
    """
    return _HIDDEN.sub(_symbol, s.replace("\r\n", "\n"))


def strip_colours(s: str) -> str:
    """Remove the ANSI colours that test runners write; other escapes are left to `plain`."""
    return _SGR.sub("", s)


def html_text(s: str) -> str:
    """Escape text for the content of an HTML element or a quoted attribute value."""
    return html.escape(plain(s), quote=True)


def html_prose(s: str) -> str:
    """Escape text for HTML outside ``<pre>``, with line breaks kept and TeX disarmed.

    Viewers that typeset TeX look for delimiters within one text node, so each ``$`` and backslash
    gets a node of its own.
    """
    escaped = _MATH.sub(lambda m: f"<span>{m.group()}</span>", html_text(s))
    return escaped.replace("\n", "<br>")


@lru_cache(maxsize=256)
def html_code(text: str, language: str) -> str:
    """Escape code for ``<pre>``, with ``<span class="rf-t-…">`` around its tokens.

    Args:
        text: the code.
        language: a pygments lexer name; empty for no highlighting. Code in a language that
            pygments does not know, or without pygments, is escaped but not highlighted.
    """
    code = plain(text)
    if not language or len(code) > _MAX_HIGHLIGHTED:
        return html_text(code)
    try:
        from pygments import highlight  # type: ignore[import-untyped]
        from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]
        from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
        from pygments.util import ClassNotFound  # type: ignore[import-untyped]
    except ImportError:
        return html_text(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return html_text(code)
    body = str(highlight(code, lexer, HtmlFormatter(nowrap=True, classprefix="rf-t-")))
    # The formatter adds a newline to a last line that has none.
    return body if code.endswith("\n") else body.removesuffix("\n")


def fence(s: str, lang: str = "") -> str:
    """Return a Markdown code block whose fence is longer than any run of backticks inside.

    Args:
        s: the block's content.
        lang: info string; anything but letters, digits, ``+``, ``-`` and ``_`` is dropped.
    """
    body = plain(s)
    longest = max((len(run) for run in _BACKTICKS.findall(body)), default=0)
    marks = "`" * max(3, longest + 1)
    info = re.sub(r"[^A-Za-z0-9+_-]", "", lang)
    return f"{marks}{info}\n{body}{'' if body.endswith(chr(10)) or not body else chr(10)}{marks}"


def markdown_text(s: str) -> str:
    """Escape text for one line of Markdown: no markup, HTML, autolink or math is left.

    Line breaks become ``<br>``, so it fits a list item, a table cell or a paragraph.
    """
    return "<br>".join(_markdown_line(line) for line in plain(s).strip("\n").split("\n"))


def _markdown_line(line: str) -> str:
    """Escape one line for `markdown_text`."""
    body = line.lstrip(" \t")
    indent = len(line[: len(line) - len(body)].expandtabs(4))
    parts = _MATH.split(body)
    marks = _MATH.findall(body)
    escaped = [_MARKDOWN.sub(r"\\\g<0>", html.escape(part, quote=False)) for part in parts]
    escaped[0] = _LINE_START.sub(r"\1\\\2", escaped[0])
    # A backslash before $ is not enough: some viewers look for math before and after Markdown.
    spans = [f"<span>&#{ord(mark)};</span>" for mark in marks]
    pairs = zip(escaped, [*spans, ""], strict=True)
    return "&nbsp;" * indent + "".join(text + span for text, span in pairs)
