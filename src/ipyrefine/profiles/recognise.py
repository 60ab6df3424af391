"""Read what an existing text is: code and in which language, data, an email or other prose."""
# ruff: noqa: RUF001 - Chinese punctuation

import ast
import json
import re
from contextlib import suppress
from typing import NamedTuple

from ipyrefine.core.syntax import NO_CODE, pygments_name, try_parse

_NUMBER = r"(?:an?|one|two|three|four|five|some|\d+|eine?n?|une?|una?)"
# What a request asks for follows one of these; what else it names is there already.
_ASKED = re.compile(
    rf"^(?={_NUMBER} )|\b(?:as|into) (?={_NUMBER} )|\bin (?!an? )(?={_NUMBER} )|\b(?:write|draft|"
    r"compose|prepare|create|make|produce|design|develop|build|implement|code|rewrite|rephrase|"
    r"improve|polish|edit|shorten|translate|generate|propose|suggest|refine|need|want|give|provide|"
    r"come up with|schreib\w*|verfass\w*|entwirf|erstelle?|formuliere|écri\w+|rédige\w*|crée\w*|"
    r"escrib\w+|redact\w+|crea)\b(?: it\b)?|[写拟]",
    re.IGNORECASE,
)
# What follows one of these says what the text is about, and no longer what it is.
_ABOUT = re.compile(
    r"[.:!?](?=\s|$)|[，。；：！？]|(?<![\w-])(?:of|for|about|from|on|in|into|to|with|without|that|"
    r"which|who|whose|as|by|so|using|based|where|when|if|them|over|für|über|mit|von|aus|als|zu[mr]?|"
    r"que|qui|para|pour|por|par|con|avec|sobre|sur|de|del|des|du|en|dans)(?![\w-])",
    re.IGNORECASE,
)
_MAIL = re.compile(r"subject:[^\n]+\n|(?:dear|hi|hello|hey)(?: [\w.'-]+){0,3},\s*\n", re.I)


def name_by_draft(text: str) -> str:
    """Return the name of the profile that fits an existing text."""
    if fenced := read_fence(text):
        return "data" if fenced.language == "json" else "code"
    if code_language(text):
        return "code"
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(text), dict | list):
            return "data"
    return "email" if _MAIL.match(text.lstrip()) else "prose"


def is_python(text: str) -> bool:
    """Return True if a text is Python: with a statement, or an expression that no prose is.

    That is a call or an item as code writes them, without a space before the bracket.
    """
    tree = try_parse(text)
    if tree is None or any(not isinstance(node, ast.Expr) for node in tree.body):
        return tree is not None
    nodes = [one for one in ast.walk(tree) if isinstance(one, ast.Call | ast.Subscript)]
    inner = (one.func if isinstance(one, ast.Call) else one.value for one in nodes)
    lines = [line.encode() for line in text.splitlines()]
    after = {lines[(one.end_lineno or 1) - 1][one.end_col_offset :][:1] for one in inner}
    return not after.isdisjoint((b"(", b"["))


def code_language(text: str) -> str | None:
    """Return the language of a text that is code without a fence, as pygments names it, or None.

    It is code where half of its lines have code's punctuation, and some start as a statement of
    that language does.
    """
    if is_python(text):
        return "python"
    if _SQL.match(text):
        return "sql"
    lines = [line for line in text.splitlines() if line.strip()]
    if 2 * sum(bool(_PUNCTUATED.search(line)) for line in lines) < len(lines):
        return None
    counts = {name: len(re.findall(signs, text, re.MULTILINE)) for name, signs in _SIGNS.items()}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else None


# How requests write languages. Names that are common words too count in capitals only.
_LANGUAGES = {
    "bash": r"(?i:bash|shell script)",
    "c": r"C",
    "cpp": r"(?i:C\+\+)",
    "csharp": r"(?i:C#)",
    "dart": r"Dart",
    "elixir": r"Elixir",
    "css": r"CSS",
    "fsharp": r"(?i:F#)",
    "go": r"(?<=.)Go|(?i:golang)",  # "Go on" asks for none
    "html": r"HTML",
    "javascript": r"(?i:javascript|node\.js)",
    "julia": r"Julia",
    "r": r"R",
    "ruby": r"Ruby",
    "rust": r"Rust",
    "scala": r"Scala",
    # A database by its name is the language only where a query for it is asked for.
    "sql": r"(?i:sql|(?:postgres(?:ql)?|mysql|mariadb|sqlite|bigquery|duckdb|snowflake)"
    r"(?= (?:query|queries|statements?|views?|triggers?|procedures?|migrations?)\b))",
    "swift": r"Swift",
} | {
    name: f"(?i:{name})"
    for name in (
        "clojure", "cobol", "erlang", "fortran", "haskell", "java", "kotlin", "lua", "matlab",
        "ocaml", "perl", "php", "powershell", "prolog", "python", "typescript",
    )
}  # fmt: skip
_SHORT = ("c", "go", "r")  # "C-like", "R-squared"; but German writes "Java-Klasse"
_NAMED = {
    # Chinese sets no spaces around a name.
    name: rf"(?P<{name}>(?<![A-Za-z0-9_.])(?:{words})(?![A-Za-z0-9_+#&{'-' * (name in _SHORT)}]))"
    for name, words in _LANGUAGES.items()
}
_LANGUAGE = re.compile("|".join(_NAMED.values()))
_LONG = "|".join(pattern for name, pattern in _NAMED.items() if name not in "cr")
# "in Java" says what to write; "bugs in Java code" what it is about; "from A to C" neither.
_STATED = re.compile(
    rf"(?:\b(?i:in|into|to|use|using|language:|language is|en|em|nach|на) |[用以] ?)(?:{_LONG})"
    r"(?! (?:code|files?|programs?|projects?|queries|query|scripts?|sources?)\b)"
    r"|\b(?:code|function|implementation|it|library|program|script|this) in "
    rf"(?:{_NAMED['c']}|{_NAMED['r']})"
)
# How lines of code look, and how statements begin that only one language has.
_PUNCTUATED = re.compile(
    r"[{};]\s*$|^[ \t]*(?:[)}\]#]|//|/?\*)|[\w)\]]\(|:=|=>|->|^[ \t]*(?:do|done|fi)$|\s=\s"
)
_SQL = re.compile(
    r"(?s)\s*(?:--[^\n]*\s+)*(?:(?:SELECT\b.*\bFROM|INSERT\s+INTO|UPDATE\b.*\bSET|DELETE\s+FROM|CREATE"
    r"\s+TABLE|WITH\s+\w+\s+AS)\b|(?i:select\b.*\bfrom|insert\s+into|create\s+table)\b.*;\s*\Z)"
)
_SIGNS = {
    "bash": r"^#!.*sh\b|^[ \t]*(?:done|fi|esac)$|^[ \t]*(?:if|while) \[|^[ \t]*for \w+ in .*; *do$",
    "c": r"^#include *<std\w+\.h>|^(?:int|void) \w+\(.*\) *\{|\bprintf\(",
    "cpp": r"^#include *<\w+>|\bstd::|^template *<",
    "csharp": r"^using [\w.]+;|^[ \t]*namespace [\w.]+|\{ get; ",
    "go": r"^package \w+$|^func |\w := ",
    "java": r"^[ \t]*(?:public|private|protected) .*[{(=]|^import java|^package [\w.]+;",
    "javascript": r"^[ \t]*(?:async )?function\b|^[ \t]*(?:const|let) [\w{[].* = |console\.log\(",
    "rust": r"^[ \t]*(?:pub )?(?:fn|impl|struct|mod) .*[{(]|\buse \w+::|\blet mut |\bprintln!\(",
    "typescript": r"^[ \t]*(?:export )?(?:interface|type|function) .*[{=]|: (?:string|number)\b",
}
_EXISTING = re.compile(r"\b(?:the|this|these|my|our|dies\w+|est[ae]|cet|cette)\b|这", re.I)
_FENCED = re.compile(
    r"\A\s*(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]+)[^\n]*\n"
    r"(?P<code>.*?)^(?P=marks)\s*\Z",
    re.MULTILINE | re.DOTALL,
)


class FencedCode(NamedTuple):
    """A fenced block: its language, as pygments names it, and its inside."""

    language: str
    code: str


def read_fence(text: str) -> FencedCode | None:
    """Return the inside of a text that is one fenced block of code and nothing else, or None."""
    fenced = _FENCED.match(text)
    if fenced is None or re.search(rf"^{fenced['marks']}", fenced["code"], re.MULTILINE):
        return None
    language = pygments_name(fenced["language"])
    return None if language in NO_CODE else FencedCode(language, fenced["code"].strip("\n"))


def language_of(text: str, draft: str | None = None) -> str:
    """Return the language of the code that a request asks for, as pygments names it.

    The fence of the draft decides, then the request: ``in Java``, or a language next to what is
    asked for (``a Java class that …``). Else it is Python.
    """
    if fenced := read_fence(draft or ""):
        return fenced.language
    if draft is not None and (written := code_language(draft)):
        return written
    head = " ".join(text[:4_000].split())
    asked = _ASKED.search(head)
    phrase = _ABOUT.split(head[asked.end() if asked else 0 :], maxsplit=1)[0]
    stated = _STATED.search(head)
    found = [_LANGUAGE.search(phrase), stated]
    # "In Java, write a SQL parser"; "translate this Python function to Java"
    if (stated and asked and stated.start() < asked.start()) or _EXISTING.search(phrase):
        found.reverse()
    named = next(filter(None, found), None)
    return str(named.lastgroup) if named else "python"
