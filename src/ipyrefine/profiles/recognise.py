"""Choose a profile from a cell's body: code, unless its words ask for prose.

They do by their first verb (``explain``, ``thank``), unless they use the user's data, or by a kind
of text that they ask for (``write a short letter``). The words are in the profiles' TOML files.
"""
# ruff: noqa: RUF001 - Chinese punctuation

import ast
import json
import re
from collections.abc import Set
from functools import cache
from typing import NamedTuple

from ipyrefine.core.syntax import try_parse
from ipyrefine.profiles import Profile, builtin

_POLITE = re.compile(r"^(?:please|bitte|por favor|s'il te plaît|请|(?:can|could) you)[ ,]*")
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
_NOUN_ENDS = re.compile(r"[,;]|(?:\band|\bor|ing|ed)\b")
# What code is called says nothing of what it is: letter(x), class Email.
_CODE_NAME = re.compile(r"[a-z_]\w*\([^)]*\)|\b(?:class|clase|classe|klasse) \w+")
_MAIL = re.compile(r"subject:[^\n]+\n|(?:dear|hi|hello|hey)(?: [\w.'-]+){0,3},\s*\n", re.I)
_LANGUAGE_CHARACTERS = 4_000  # of a request, where it names a language
_HEAD_CHARACTERS = 400  # of the first paragraph, where a request says what it wants


def suggest(
    text: str = "",
    *,
    draft: str | None = None,
    schema: bool = False,
    data: Set[str] = frozenset(),
) -> Profile:
    """Return the built-in profile that fits a request best.

    Args:
        text: the request; with a draft, what it should become.
        draft: the text to start from.
        schema: whether the text is checked against a schema, which only data is.
        data: names of the variables and of their columns, in lower case; a request that uses one
            is for code, unless it asks for a kind of prose.
    """
    name = "data" if schema else "prose" if draft is None else _name_by_draft(draft)
    if name == "prose":
        by_task = _name_by_task(text, data)
        # A goal may say what the draft is; but a text that is not Python is not code.
        name = by_task if draft is None or by_task != "code" else name
    return builtin()[name]


def _name_by_task(text: str, data: Set[str]) -> str:
    """Return the name of the profile that a request in words suggests."""
    if ">>>" in text:
        return "code"
    head = text.strip().partition("\n\n")[0][:_HEAD_CHARACTERS]
    head = _POLITE.sub("", " ".join(head.lower().split()))
    asked = _name_by_artifact(head)
    if asked in (None, "code", "prose"):
        for name, profile in builtin().items():
            if any(re.match(phrase, head) for phrase in profile.phrases):
                words = re.findall(r"\w+", head) + re.findall(r"\w+", head, re.ASCII)
                uses_data = asked is None and not data.isdisjoint(words)
                return "code" if uses_data or asked == "code" else name
    return asked or "code"


def _name_by_draft(text: str) -> str:
    """Return the name of the profile that fits an existing text."""
    if fenced := read_fence(text):
        return "data" if fenced.language == "json" else "code"
    if code_language(text):
        return "code"
    if _is_json(text):
        return "data"
    return "email" if _MAIL.match(text.lstrip()) else "prose"


def is_python(text: str) -> bool:
    """Return whether a text is Python with a statement beyond bare expressions and names."""
    tree = try_parse(text)
    return tree is not None and any(not isinstance(node, ast.Expr) for node in tree.body)


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


def _name_by_artifact(head: str) -> str | None:
    """Return the name of the profile whose artifact a request asks for.

    An email parser is a parser; but "a script sending emails" asks for a script.
    """
    pattern, names = _artifacts()
    head = _CODE_NAME.sub(" code ", re.sub(r"`[^`(]*`", "", head))
    starts = [one.end() for one in _ASKED.finditer(head)]
    # "Email to Anna", but not "Update the index".
    if (first := pattern.match(head)) and _ABOUT.match(head[first.end() :].lstrip()):
        starts.insert(0, 0)
    for start in starts:
        found, phrase = None, _ABOUT.split(head[start:], maxsplit=1)[0]
        for one in pattern.finditer(phrase):
            if found and _NOUN_ENDS.search(phrase, found.end(), one.start()):
                break
            found = one
        if found:
            return names[found["artifact"]]
    return None


@cache
def _artifacts() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return an expression that finds artifacts, and the profile's name by artifact."""
    names = {
        artifact: name for name, profile in builtin().items() for artifact in profile.artifacts
    }
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    # Chinese has no spaces between words.
    pattern = rf"(?<![a-zà-ÿ0-9_-])(?P<artifact>{words})s?(?![a-zà-ÿ0-9_-]|\.\w)"
    return re.compile(pattern), names


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


# How requests write languages. Names that are common words too count in capitals only.
_LANGUAGES = {
    "bash": r"(?i:bash|shell script)",
    "c": r"C",
    "cpp": r"(?i:C\+\+)",
    "csharp": r"(?i:C#)",
    "css": r"CSS",
    "fsharp": r"(?i:F#)",
    "go": r"Go|(?i:golang)",
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
        "haskell", "java", "kotlin", "lua", "matlab", "perl", "php", "powershell", "python",
        "typescript",
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
    rf"(?:\b(?i:in|into|to|use|language:|en|em|nach|на) |[用以] ?)(?:{_LONG})"
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
_NO_CODE = frozenset({"markdown", "md", "none", "plain", "plaintext", "text", "txt"})
_ALIASES = {
    "c#": "csharp", "c++": "cpp", "f#": "fsharp", "golang": "go", "ipython": "python",
    "js": "javascript", "kt": "kotlin", "node": "javascript", "node.js": "javascript",
    "py": "python", "python3": "python", "rb": "ruby", "rs": "rust", "sh": "bash",
    "ts": "typescript",
}  # fmt: skip


class FencedCode(NamedTuple):
    """What one fenced block holds.

    Attributes:
        language: what its fence names, as pygments does.
        code: its inside.
    """

    language: str
    code: str


def read_fence(text: str) -> FencedCode | None:
    """Return the inside of a text that is one fenced block of code and nothing else, or None."""
    fenced = _FENCED.match(text)
    if fenced is None or re.search(rf"^{fenced['marks']}", fenced["code"], re.MULTILINE):
        return None
    language = pygments_name(fenced["language"])
    return None if language in _NO_CODE else FencedCode(language, fenced["code"].strip("\n"))


def pygments_name(language: str) -> str:
    """Return the name of a language in the way that pygments writes it: ``C++`` is ``cpp``."""
    name = language.strip().lower()
    return _ALIASES.get(name, name)


def language_of(text: str, draft: str | None = None) -> str:
    """Return the language of the code that a request asks for, as pygments names it.

    The fence of the draft decides, then the request: ``in Java``, or a language next to what is
    asked for (``a Java class that …``). Else it is Python.

    Args:
        text: the request.
        draft: the text to start from.
    """
    if fenced := read_fence(draft or ""):
        return fenced.language
    if draft is not None and (written := code_language(draft)):
        return written
    head = " ".join(text[:_LANGUAGE_CHARACTERS].split())
    asked = _ASKED.search(head)
    phrase = _ABOUT.split(head[asked.end() if asked else 0 :], maxsplit=1)[0]
    found = [_LANGUAGE.search(phrase), _STATED.search(head)]
    if _EXISTING.search(phrase):  # "translate this Python function to Java"
        found.reverse()
    named = next(filter(None, found), None)
    return (named.lastgroup if named else None) or "python"
