"""Make text written by a model, a user or a check harmless wherever it is shown.

Everything that was not written by ipyrefine itself passes through one of these functions.
"""

import html
import re

# What a reader cannot see, or what acts on a terminal: C0 and C1 controls, bidirectional
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


def _shown(match: re.Match[str]) -> str:
    """A visible stand-in for one hidden character."""
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩"


def plain(s: str) -> str:
    r"""Show controls, escapes, bidi marks and invisible characters as visible symbols.

    ``\n`` and ``\t`` are kept, ``\r\n`` becomes ``\n``; the result can be encoded as UTF-8 and
    cannot move a terminal's cursor, set its colours or reorder what is read.
    """
    return _HIDDEN.sub(_shown, s.replace("\r\n", "\n"))


def without_colours(s: str) -> str:
    """Drop ANSI colour sequences, as test runners write them; other escapes stay for `plain`."""
    return _SGR.sub("", s)


def html_text(s: str) -> str:
    """Text for an HTML element's content or a quoted attribute's value; never markup."""
    return html.escape(plain(s), quote=True)


def html_prose(s: str) -> str:
    """Text for HTML outside ``<pre>``: line breaks kept, and no formula for a typesetter to find.

    Viewers that typeset TeX look for delimiters inside one text node, so each ``$`` and
    backslash gets a node of its own.
    """
    shown = _MATH.sub(lambda m: f"<span>{m.group()}</span>", html_text(s))
    return shown.replace("\n", "<br>")


def fence(s: str, lang: str = "") -> str:
    """A Markdown code block whose fence is longer than any run of backticks in the text.

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
    """Text that Markdown, HTML in Markdown, autolinks and math leave as it is, on one line.

    Line breaks become ``<br>``, so it fits a list item, a table cell or a paragraph.
    """
    return "<br>".join(_markdown_line(line) for line in plain(s).strip("\n").split("\n"))


def _markdown_line(line: str) -> str:
    """One line of `markdown_text`."""
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
