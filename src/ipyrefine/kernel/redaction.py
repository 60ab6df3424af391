"""Tell secrets by their names and by their looks, and leave them out of texts."""

import os
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

HIDDEN = "[secret]"

_MAX_NAME = 200  # characters of a name that are looked at
_MIN_KNOWN = 4  # characters of a known secret; a shorter one stands in too many words

_STRONG = frozenset(
    {
        *("apikey", "auth", "credential", "credentials", "creds", "jwt", "passphrase", "passwd"),
        *("password", "passwords", "pwd", "secret", "secrets"),
    }
)
# Words that also stand for other things, such as a column to sort by.
_WEAK = frozenset({"bearer", "cookie", "cookies", "dsn", "key", "keys", "token", "tokens"})
# Names that end so are about keys or tokens, and hold none: KeyError, token_count.
_ABOUT = re.compile(
    r"(?i)(?:error|exception|counts?|sizes?|length|len|col(?:umn)?s?|names?|index|ids?|func|types?)$"
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_INSIDE = re.compile(r"password|passwd|passphrase|secret|api_?key|credential", re.IGNORECASE)

# Tokens of a known form. None needs to look far back, so that a long text takes linear time.
_FORMS = (
    r"-----BEGIN [^-\n]{1,60}-----(?:.{0,10000}?-----END [^-\n]{1,60}-----|.{0,10000})"
    r"|(?<![A-Za-z0-9])(?:[spr]k[-_]|gh[opusr]_|github_pat_|glpat-|hf_|npm_|pypi-|xox[a-z]-"
    r"|shpat_|dop_v1_|SG\.|ya29\.)[\w.-]{8,500}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,40}|AIza[\w-]{20,60}"
    r"|eyJ[\w-]{6,300}\.[\w-]{6,4000}(?:\.[\w-]{0,2000})?"
)
_KNOWN_FORM = re.compile(_FORMS, re.DOTALL)
_KNOWN_BYTES = re.compile(_FORMS.encode(), re.DOTALL)
_LOGIN = re.compile(r"(?<=://)[^/\s:@]{0,100}:[^/\s@]{1,200}(?=@)")
_HEADER = re.compile(r"(?i)(?<![a-z])(?:bearer|basic)\s{1,5}[\w+/=.~-]{12,2000}")
_UUID = re.compile(r"(?i)(?<![0-9a-z])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-z])")
_RUN = re.compile(r"[A-Za-z0-9+/]{32,}|[A-Za-z0-9]{16,}")
# A name, perhaps in quotes or brackets or with a type, and what is assigned to it.
_ASSIGNED = re.compile(
    r"""(?<![\w-])(?P<name>[A-Za-z_][\w-]{0,100})["'\])]{0,3}(?::[ \t]{0,5}\w{1,40})?"""
    r"""[ \t]{0,20}[=:][ \t]{0,20}"""
    r"""(?P<value>[bfru]{0,2}(?P<quotes>\"{3}|'{3}|["'])(?P<inside>.{0,5000}?)(?P=quotes)"""
    r"""|[^\s"',;(){}\[\]]{4,500})""",
    re.DOTALL | re.IGNORECASE,
)


def is_secret_name(name: str, value: object = "") -> bool:
    """Return whether a name is that of a secret: ``api_key``, ``dbPassword``, ``TOKEN``.

    Args:
        name: the name.
        value: what bears it; a number named ``max_tokens`` is none, a string may be one.
    """
    name = name[:_MAX_NAME]
    words = {word.lower() for word in _WORD.findall(name)}
    if words & _STRONG or _INSIDE.search(name):
        return True
    run_together = name.isupper() and name.endswith(("KEY", "TOKEN"))
    weak = run_together or (bool(words & _WEAK) and not _ABOUT.search(name))
    return weak and type(value) not in (bool, int, float, complex, type(None))


def is_secret(text: str) -> bool:
    """Return whether a string looks like a secret: a key, a token, a login, a random string."""
    return (
        has_known_form(text)
        or any(pattern.search(text) for pattern in (_LOGIN, _HEADER, _UUID))
        or any(_is_random(run[0]) for run in _RUN.finditer(text))
        or any(_value_in(match) for match in _ASSIGNED.finditer(text))
        or (len(text) >= _MIN_KNOWN and text in _environment_secrets())
    )


def has_known_form(text: str | bytes) -> bool:
    """Return whether a token of a known form (``sk-…``, JWT, PEM) stands in a text."""
    pattern: re.Pattern[Any] = _KNOWN_BYTES if isinstance(text, bytes) else _KNOWN_FORM
    return pattern.search(text) is not None


def is_environment(value: object) -> bool:
    """Return whether a value is the process's environment, or a copy of one."""
    if type(value) is type(os.environ):
        return True
    usual = ("PATH", "HOME", "USER", "LANG", "SHELL", "PWD", "TERM", "HOSTNAME", "USERPROFILE")
    return type(value) is dict and sum(name in value for name in usual) >= 3


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text with every secret replaced.

    Args:
        text: the text.
        secrets: strings that are known to be secrets.
    """
    for secret in sorted({*secrets, *_environment_secrets()}, key=len, reverse=True):
        if len(secret) >= _MIN_KNOWN:
            text = text.replace(secret, HIDDEN)
    for pattern in (_KNOWN_FORM, _LOGIN, _HEADER, _UUID):
        text = pattern.sub(HIDDEN, text)
    text = _RUN.sub(lambda run: HIDDEN if _is_random(run[0]) else run[0], text)
    return _ASSIGNED.sub(_hide_value, text)


def secret_values(namespace: Mapping[str, Any]) -> list[str]:
    """Return the strings that variables with a secret's name hold."""
    return [
        value
        for name, value in namespace.items()
        if type(value) is str and is_secret_name(name) and len(value) < 10_000
    ]


def _environment_secrets() -> set[str]:
    return {value for name, value in os.environ.items() if is_secret_name(name)}


def _is_random(run: str) -> bool:
    """Return whether a run of letters and digits was made by chance: its kinds often change."""
    if not any(map(str.isdigit, run)) or sum(map(str.isalpha, run)) < 4:
        return False
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in run if c.isalnum()]
    return sum(a != b for a, b in pairwise(kinds)) >= len(run) / 4


def _value_in(match: re.Match[str]) -> str:
    """Return the secret that an assignment in a text states; empty for none."""
    value: str = match["inside"] if match["quotes"] else match["value"]
    if not value or value == HIDDEN or not is_secret_name(match["name"]):
        return ""
    # Without quotes it may be code: `key=column` holds no secret, `TOKEN=abcd` does.
    plain = match["quotes"] or match["name"].isupper() or any(map(str.isdigit, value))
    return value if plain else ""


def _hide_value(match: re.Match[str]) -> str:
    if not _value_in(match):
        return match[0]
    start = match.start("inside" if match["quotes"] else "value") - match.start()
    end = match.end("inside" if match["quotes"] else "value") - match.start()
    return match[0][:start] + HIDDEN + match[0][end:]
