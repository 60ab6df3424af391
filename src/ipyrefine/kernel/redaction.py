"""Tell secrets by their names and by their looks, and leave them out of texts."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from ipyrefine.core.model import MAX_AXES_LINE, MAX_CELL, MAX_OUTPUT, cut

HIDDEN = "[secret]"

_MAX_NAME = 200  # characters of a name that are looked at
_KEPT = 2_000  # names whose verdict, a secret's or not, is kept
_LIMITS = {"text": MAX_OUTPUT, "axes": MAX_AXES_LINE}  # characters of what has these names
_MIN_KNOWN = 4  # characters of a known secret; a shorter one stands in too many words

# With what people call a password in other languages.
_STRONG = frozenset(
    {
        "apikey", "auth", "credential", "credentials", "creds", "jwt", "passphrase", "passwd",
        "password", "passwords", "pwd", "secret", "secrets", "passwort", "kennwort", "senha",
        "contraseña", "contrasena", "wachtwoord", "lösenord", "adgangskode", "salasana",
        "hasło", "heslo", "şifre", "пароль", "密码", "密碼", "パスワード", "비밀번호",
        "passord", "jelszó", "jelszo", "lozinka", "haslo", "sifre", "geheimnis",
    }
)  # fmt: skip
# Words that also stand for other things, such as a column to sort by.
_WEAK = frozenset(
    {
        "appid", "bearer", "cookie", "cookies", "dsn", "key", "keys", "pw", "sig", "signature",
        "token", "tokens",
    }
)  # fmt: skip
_NUMBERS = frozenset({"pin", "cvv", "cvc", "otp"})  # of four digits or more
# Names that end so are about keys or tokens, and hold none: KeyError, token_count.
_ABOUT = re.compile(
    r"(?i)(?:error|exception|counts?|sizes?|length|len|col(?:umn)?s?|names?|index|(?<!app)ids?|func|types?)$"
)
_PLACE = re.compile(r"(?i)(?:file|path|name|ur[il])$")  # where a secret lies
_WORD = re.compile(r"[^\W\d_a-z]+(?![a-z])|[^\W\d_]?[^\W\d_A-Z]+")
_INSIDE = re.compile(
    r"passwor[dt]|passwd|passphrase|secret(?!ar)|api[_-]?key|credential|mot[_ ]?de[_ ]?passe",
    re.IGNORECASE,
)

# Tokens of a known form. None needs to look far back, so that a long text takes linear time.
_FORMS = (
    r"-----BEGIN [^-\n]{1,60}-----(?:.{0,10000}?-----END [^-\n]{1,60}-----"
    r"|.{0,10000}[\w+/=]{0,100}(?:\r?\n[\w+/=]{1,100})*(?:\s*-----END [^-\n]{1,60}-----)?)"
    r"|(?<![A-Za-z0-9])(?:(?:[spr]k-|[spr]k_(?:live|test)_|gh[opusr]_|github_pat_|glpat-|pypi-"
    r"|xox[a-z]-|shpat_|dop_v1_|SG\.|ya29\.)[\w.-]{8,500}|(?:hf|npm)_[A-Za-z0-9]{8,100})"
    r"|(?<![A-Za-z0-9])dapi[0-9a-f]{32}|(?:AKIA|ASIA)[A-Z0-9]{12,40}|AIza[\w-]{20,60}"
    r"|(?<=hooks\.slack\.com/services/)[\w/]{20,100}|(?<=/api/webhooks/)\d{5,30}/[\w-]{20,100}"
    r"|(?<!\d)\d{8,10}:[\w-]{32,40}(?![\w-])"
    r"|eyJ[\w-]{6,300}\.[\w-]{6,4000}(?:\.[\w-]{0,2000})?"
)
_KNOWN_FORM = re.compile(_FORMS, re.DOTALL)
_KNOWN_BYTES = re.compile(_FORMS.encode(), re.DOTALL)
# Each known form has one of these in it; looking for them is much faster than looking for a form.
_MARKS = (
    b"-----BEGIN", b"sk-", b"pk-", b"rk-", b"k_live_", b"k_test_", b"github_pat_", b"glpat-",
    b"gho_", b"ghp_", b"ghr_", b"ghs_", b"ghu_", b"pypi-", b"xox", b"shpat_", b"dop_v1_", b"SG.",
    b"ya29.", b"hf_", b"npm_", b"AKIA", b"ASIA", b"AIza", b"slack.com/services/", b"eyJ",
    b"api/webhooks/", b"dapi",
)  # fmt: skip
_COLON = re.compile(rb":[\w-]{32}")  # in the form that has none
_QUOTED = r"""(?:"(?:[^"\n\\]|\\.){0,200}"|'(?:[^'\n\\]|\\.){0,200}')"""
# What follows a user's name: in a line for a driver (`user=me password=…`), in an address, and in a
# call such as `login("me", "…")`; and words that these have in them, in small letters.
_LOGINS = (
    (
        ("password=", "passwd=", "pwd="),
        re.compile(
            r"(?i)(?:\b\w{1,40}=[^\s\"';,]{1,100}[ ;]|[\"'])(?:password|passwd|pwd)="
            r"(?P<value>[^\s\"';,(){}]{1,200})(?=[ ;\"'])"
        ),
    ),
    (("://",), re.compile(r"(?<=://)(?P<value>[^/\s:@]{0,100}:[^/\s@]{1,200})(?=@)")),
    (
        ("-u",),
        re.compile(r"(?<!\S)(?:-u|--user)[ =][\w.@-]{1,100}:(?P<value>\S{4,200})"),
    ),
    (
        ("login", "auth", "credential"),
        re.compile(
            r"(?i)(?:(?<![a-z])login|auth(?:handler|enticate)?|credentials?)"
            rf"\s{{0,3}}=?\s{{0,3}}\(\s{{0,9}}{_QUOTED},\s{{0,9}}(?P<value>{_QUOTED})"
        ),
    ),
    (
        ("bearer", "basic"),
        re.compile(
            r"(?i)(?<![a-z])(?P<value>(?:bearer|basic)\s{1,5}(?=[\w+/.~-]{0,99}[\d=])"
            r"[\w+/=.~-]{12,2000})"
        ),
    ),
)
_UUID = re.compile(r"(?i)(?<![0-9a-z])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![0-9a-z])")
_RUN = re.compile(r"[A-Za-z0-9+/]{32,}|[A-Za-z0-9]{16,}")
# A text in quotes that is nothing but letters and digits, and is not called an id.
_LITERAL = re.compile(
    r"""(?P<quote>["'])(?<![iI][dD]=["'])(?<![iI][dD] = ["'])(?P<value>[\w+/=-]{24,200})"""
    r"""(?P=quote)"""
)
# A name, perhaps in quotes or brackets or with a type, and what is assigned to it.
_ASSIGNED = re.compile(
    r"""(?<!\w)(?P<name>mot de passe|[^\W\d][\w-]{0,100})"""
    r"""["'`\])]{0,3}(?::[ \t]{0,5}\w{1,40}(?=[ \t]{0,20}=))?"""
    r"""[ \t]{0,20}(?P<sign>==?|:|\b(?:is|ist|lautet|es|est)\b)[ \t]{0,20}""",
    re.IGNORECASE,
)
_VALUE = re.compile(
    r"""[bfru]{0,2}(?P<quotes>\"{3}|'{3}|["'])(?P<inside>.{0,1000}?)(?P=quotes)"""
    r"""|(?!//)[^\s"',;(){}\[\]`&]{4,500}""",
    re.DOTALL | re.IGNORECASE,
)
_DEFAULT = re.compile(
    r"(?:get|getenv|setenv|putenv|setdefault)\(\s{0,9}[\"'](?P<name>\w{1,100})[\"'],\s{0,9}"
    rf"(?P<value>{_QUOTED})"
)
_PAIRS = re.compile(
    rf"(?<!\w)(\w{{1,40}}(?:, \w{{1,40}}){{1,5}}) = ({_QUOTED}(?:, {_QUOTED}){{1,5}})"
)
# What a person writes in the place of a secret, or names one by.
_PLACEHOLDER = re.compile(
    r"(?i)<.*>|\{.*\}|[$%{].*|.*\.\.\..*|.*…|(.)\1*|(?:change|replace).?me|.*\byour\b.*|your_.*|\[.*"
)


def is_secret_name(name: str, value: object = "") -> bool:
    """Return True if a name is that of a secret: ``api_key``, ``dbPassword``, ``TOKEN``.

    A number named ``max_tokens`` is none, a string may be one.
    """
    name = name[:_MAX_NAME]
    if _names_a_secret(name, _STRONG):
        return True
    words, is_number = _words(name), type(value) in (bool, int, float, complex, type(None))
    if words & _NUMBERS:
        text = str(value) if is_number or type(value) is str else ""
        return not text or (text.isdecimal() and len(text) >= 4)
    run_together = (name.isupper() and name.endswith(("KEY", "TOKEN"))) or name.endswith("_pass")
    return (run_together or bool(words & _WEAK and not _ABOUT.search(name))) and not is_number


def is_secret(text: str) -> bool:
    """Return True if a string looks like a secret: a key, a token, a login, a random string."""
    return (
        next(_spans(text), None) is not None
        or _UUID.search(text) is not None
        or any(_is_random(run[0]) for run in _RUN.finditer(text))
        or (len(text) >= _MIN_KNOWN and text in _environment_secrets())
    )


def has_known_form(text: str | bytes) -> bool:
    """Return True if a text holds a token of a known form (``sk-…``, JWT, PEM)."""
    data = text.encode(errors="ignore") if isinstance(text, str) else text
    has_mark = any(mark in data for mark in _MARKS) or _COLON.search(data) is not None
    return has_mark and _KNOWN_BYTES.search(data) is not None


def is_environment(value: object) -> bool:
    """Return True if a value is the process's environment, or a copy of one."""
    if type(value) is type(os.environ):
        return True
    usual = ("PATH", "HOME", "USER", "LANG", "SHELL", "PWD", "TERM", "HOSTNAME", "USERPROFILE")
    return type(value) is dict and sum(name in value for name in usual) >= 3


def find_secrets(text: str) -> list[str]:
    """Return the secrets that a text states, as `replace_secrets` tells them."""
    return [text[start:stop] for start, stop in _outer_spans(text)]


def replace_secrets(text: str, replacement: Callable[[str], str]) -> str:
    """Return a text with something else in the place of each secret that it states.

    They have a known form, or stand where a secret is written. A hash or an id is none, though it
    may look as random.
    """
    end, parts = 0, []
    for start, stop in _outer_spans(text):
        parts += [text[end:start], replacement(text[start:stop])]
        end = stop
    return "".join([*parts, text[end:]])


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace all secrets in a text, known ones too, and everything that looks random."""
    for secret in sorted({*secrets, *_environment_secrets()}, key=len, reverse=True):
        if len(secret) >= _MIN_KNOWN:
            text = text.replace(secret, HIDDEN)
    text = replace_secrets(text, lambda _: HIDDEN)
    text = _UUID.sub(HIDDEN, text)
    return _RUN.sub(lambda run: HIDDEN if _is_random(run[0]) else run[0], text)


def clean(text: str, limit: int) -> str:
    """Return a text without secrets, its start where it is long."""
    return cut(redact(text[: 2 * limit]), limit)


def tidy(value: Any, limit: int = MAX_CELL) -> Any:
    """Return what a program of the sandbox reports, with each text in it cleaned."""
    if isinstance(value, str):
        return clean(value, limit)
    if isinstance(value, list):
        return [tidy(one, limit) for one in value]
    if isinstance(value, dict):  # a picture's letters look random
        return {n: x if n == "png" else tidy(x, _LIMITS.get(n, limit)) for n, x in value.items()}
    return value


def secret_values(namespace: Mapping[str, Any]) -> list[str]:
    """Return the strings that variables with a secret's name hold."""
    return [
        value
        for name, value in namespace.items()
        if type(value) is str and is_secret_name(name) and len(value) < 10_000
    ]


def _environment_secrets() -> set[str]:
    folders = ("PWD", "OLDPWD")
    return {one for name, one in os.environ.items() if is_secret_name(name) and name not in folders}


def _outer_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where secrets stand, in their order; none overlaps another."""
    end = 0
    for start, stop in sorted(_spans(text), key=lambda span: (span[0], -span[1])):
        if start >= end:
            yield start, (end := stop)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for match in _KNOWN_FORM.finditer(text) if has_known_form(text) else ():
        if not _PLACEHOLDER.fullmatch(match[0]):
            yield match.span()
    low = text.lower()
    for words, pattern in _LOGINS:
        for match in pattern.finditer(text) if any(word in low for word in words) else ():
            quoted = match["value"][0] in "\"'"
            start, end = match.start("value") + quoted, match.end("value") - quoted
            if not _PLACEHOLDER.fullmatch(text, start, end):
                yield start, end
    for match in _LITERAL.finditer(text):
        value = match["value"]
        if not value.islower() and _is_random(value) and not re.fullmatch(r"[0-9A-Fa-f-]+", value):
            yield match.span("value")
    for match in _ASSIGNED.finditer(text):
        name, sign = match["name"], match["sign"]
        found = _VALUE.match(text, match.end()) if is_secret_name(name) else None
        if found is None:
            continue
        inside = "inside" if found["quotes"] else 0
        is_text = bool(found["quotes"]) or name.isupper()
        if sign == "==" and not _names_a_secret(name, _STRONG | {"pw"}):
            continue
        if _is_assigned(name, found[inside], is_text=is_text):
            yield found.span(inside)
    for match in _DEFAULT.finditer(text):
        if _is_assigned(match["name"], match["value"][1:-1]):
            yield match.start("value") + 1, match.end("value") - 1
    for match in _PAIRS.finditer(text) if ' = "' in text or " = '" in text else ():
        for name, one in zip(match[1].split(", "), re.finditer(_QUOTED, match[2]), strict=False):
            if _is_assigned(name, one[0][1:-1]):
                yield match.start(2) + one.start() + 1, match.start(2) + one.end() - 1


def _is_assigned(name: str, value: str, *, is_text: bool = True) -> bool:
    """Return True if what is assigned to a name is a secret.

    Without quotes it may be code, and is no text for certain: `key=column` holds no secret,
    `token=abcd12` does.
    """
    has_digit = any(map(str.isdigit, value))
    if not (value and (is_text or has_digit) and is_secret_name(name, value)):
        return False
    words = _words(name)
    if words & _NUMBERS or _PLACEHOLDER.fullmatch(value):
        return bool(words & _NUMBERS)
    if _PLACE.search(name) or (not has_digit and _names_a_secret(value)):  # {"pw": "pw_field"}
        return has_known_form(value)
    has_letter = any(map(str.isalpha, value))
    if _names_a_secret(name, _STRONG - {"auth"} | {"pw", "pass"}):
        return is_text or has_letter
    # A word that also stands for other things: what it is given must look like chance.
    is_one_word = re.fullmatch(r"[\w+/=%.~-]+", value, re.ASCII) is not None
    is_file = re.search(r"\.[a-z]{2,7}$", value) is not None
    long = len(value) >= (6 if words & {"auth", "token", "bearer", "cookie"} else 16)
    return is_one_word and long and has_digit and has_letter and not is_file


@lru_cache(_KEPT)
def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name[:_MAX_NAME]))


@lru_cache(_KEPT)
def _names_a_secret(text: str, words: frozenset[str] = _STRONG | _WEAK | _NUMBERS) -> bool:
    return bool(_words(text) & words or _INSIDE.search(text[:_MAX_NAME]))


def _is_random(run: str) -> bool:
    """Return True if a run of letters and digits was made by chance: its kinds often change."""
    if not any(map(str.isdigit, run)) or sum(map(str.isalpha, run)) < 4:
        return False
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" for c in run if c.isalnum()]
    return sum(a != b for a, b in pairwise(kinds)) >= len(run) / 4
