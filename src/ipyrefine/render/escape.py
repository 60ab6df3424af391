"""Make text from models, users and checks harmless: nothing in it acts on a terminal or a page.

Every text that ipyrefine did not write itself passes through `plain`. Templates escape HTML.
"""

import re

# Invisible characters, and those that control a terminal: C0 and C1 controls, bidirectional
# overrides and isolates, line separators, zero-width marks, tag characters, lone surrogates.
# ZWJ, ZWNJ and variation selectors stay: scripts and emoji need them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
_BACKTICKS = re.compile(r"`+")


def plain(text: str) -> str:
    r"""Return text with controls, escapes, bidi marks and invisible characters made visible.

    ``\n`` and ``\t`` stay, ``\r\n`` becomes ``\n``. The result can be encoded as UTF-8 and cannot
    move a terminal's cursor, set its colours or reorder the line.
    """
    return _HIDDEN.sub(_symbol, text.replace("\r\n", "\n"))


def _symbol(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    return f"⟨U+{code:04X}⟩"


def strip_colours(text: str) -> str:
    """Remove the ANSI colours that test runners write; other escapes are left to `plain`."""
    return _SGR.sub("", text)


def fence(text: str, language: str = "") -> str:
    """Return a Markdown code block whose fence is longer than any run of backticks inside."""
    body = plain(text)
    longest = max(map(len, _BACKTICKS.findall(body)), default=0)
    marks = "`" * max(3, longest + 1)
    info = re.sub(r"[^A-Za-z0-9+_-]", "", language)
    return f"{marks}{info}\n{body}{'' if body.endswith(chr(10)) or not body else chr(10)}{marks}"
