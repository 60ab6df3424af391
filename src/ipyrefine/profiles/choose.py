"""Choose a profile from a cell's body, by a few conservative rules.

A request names what it wants written soon after its verb ("write a short sales email …"): the
first such artifact decides. A question gets an answer. Words of programming count last, because
prose uses them too. Where no rule applies, the text is prose.
"""

import ast
import json
import re
from functools import cache
from typing import NamedTuple

from ipyrefine.core.syntax import try_parse
from ipyrefine.profiles import Profile, builtin

_VERB = re.compile(
    r"\b(?:write|draft|compose|prepare|create|make|produce|design|develop|build|implement|code|"
    r"rewrite|improve|polish|edit|shorten|generate|propose|refine|need|want)\b"
)
# What follows one of these says what the text is about, and no longer what it is.
_ABOUT = re.compile(
    r"of|for|about|from|on|into?|to|with|without|that|which|who|whose|and|or|as|by|so|using|based|"
    r"where|when|if|it|them|[.;:!?]"
)
_WORD = re.compile(r"[\w'+()/#-]+|[.,;:!?]")
_WORDS = 10  # between the verb of a request and what it wants, at most
_CALL = re.compile(r"\b[A-Za-z_]\w*\([^)\n]{0,200}\)")  # no space before it: prose sets one
_CODE_WORD = re.compile(
    r"algorithm|async|class|code|def|doctest|function|implement|iterator|method|module|o\(1\)|"
    r"o\(n\)|python|recursive|refactor|regex|script|stack"
)
_MAIL = re.compile(r"subject:[^\n]+\n|(?:dear|hi|hello|hey)(?: [\w.'-]+){0,3},\s*\n", re.I)
_LANGUAGE_CHARACTERS = 4_000  # of a request, where it names a language
_HEAD_CHARACTERS = 400  # of the first paragraph, where a request says what it wants


def suggest(text: str = "", *, draft: str | None = None, schema: bool = False) -> Profile:
    """Return the built-in profile that fits a request best.

    Args:
        text: the request; with a draft, what it should become.
        draft: the text to start from.
        schema: whether the text is checked against a schema, which only data is.
    """
    if schema:
        return builtin()["data"]
    if draft is None:
        return builtin()[_name_by_task(text)]
    name = _name_by_draft(draft)
    if name == "prose" and text.strip():
        # A goal may say what the draft is; but a text that is not Python is not code.
        by_goal = _name_by_task(text)
        name = name if by_goal == "code" else by_goal
    return builtin()[name]


def _name_by_task(text: str) -> str:
    """Return the name of the profile that a request in words suggests."""
    head = " ".join(text.strip().partition("\n\n")[0][:_HEAD_CHARACTERS].lower().split())
    if ">>>" in text:
        return "code"
    if name := _name_by_artifact(head):
        return name
    for name, profile in builtin().items():
        if any(re.search(phrase, head) for phrase in profile.phrases):
            return name
    return "code" if looks_like_code(text) else "prose"


def _name_by_draft(text: str) -> str:
    """Return the name of the profile that fits an existing text."""
    if fenced := read_fence(text):
        return "data" if fenced.language == "json" else "code"
    if is_python(text):
        return "code"
    if _is_json(text):
        return "data"
    return "email" if _MAIL.match(text.lstrip()) else "prose"


def looks_like_code(text: str) -> bool:
    """Return whether a request asks for Python: by doctests, calls, or words of programming."""
    words = (word.strip(".,:;!?\"'`") for word in text.lower().split())
    return ">>>" in text or bool(_CALL.search(text)) or any(map(_CODE_WORD.fullmatch, words))


def is_python(text: str) -> bool:
    """Return whether a text is Python with a statement beyond bare expressions and names."""
    tree = try_parse(text)
    return tree is not None and any(not isinstance(node, ast.Expr) for node in tree.body)


def _name_by_artifact(head: str) -> str | None:
    """Return the name of the profile whose artifact a request asks for."""
    names = (_name_by_phrase(head[verb.end() :]) for verb in _VERB.finditer(head))
    return next(filter(None, names), None)


def _name_by_phrase(rest: str) -> str | None:
    """Return the profile of the last artifact in the noun phrase at the start.

    An email parser is a parser; but "a script sending emails" asks for a script.
    """
    artifacts, found, before = _artifacts(), None, ""
    for word in _WORD.findall(rest)[:_WORDS]:
        if word == "it" and not before:
            continue  # "make it a story"
        if _ABOUT.fullmatch(word) or (found and (word == "," or word.endswith(("ing", "ed")))):
            break
        found = artifacts.get(f"{before} {word}") or artifacts.get(word) or found
        before = word
    return found


@cache
def _artifacts() -> dict[str, str]:
    """Return the profile's name by artifact."""
    return {artifact: name for name, profile in builtin().items() for artifact in profile.artifacts}


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


# Names that are common words too count in capitals only.
_LANGUAGES = {
    "bash": r"(?i:bash|shell script)",
    "c": r"C",
    "cpp": r"(?i:C\+\+)",
    "csharp": r"(?i:C#)",
    "css": r"CSS",
    "fsharp": r"(?i:F#)",
    "go": r"Go|(?i:golang)",
    "haskell": r"(?i:haskell)",
    "html": r"HTML",
    "java": r"(?i:java)",
    "javascript": r"(?i:javascript|node\.js)",
    "julia": r"Julia",
    "kotlin": r"(?i:kotlin)",
    "lua": r"(?i:lua)",
    "matlab": r"(?i:matlab)",
    "perl": r"(?i:perl)",
    "php": r"(?i:php)",
    "powershell": r"(?i:powershell)",
    "python": r"(?i:python)",
    "r": r"R",
    "ruby": r"Ruby",
    "rust": r"Rust",
    "scala": r"Scala",
    "sql": r"(?i:sql)",
    "swift": r"Swift",
    "typescript": r"(?i:typescript)",
}
_NAMED = {
    name: rf"(?P<{name}>(?<![\w.])(?:{words})(?![\w+#&-]))" for name, words in _LANGUAGES.items()
}
_LANGUAGE = re.compile("|".join(_NAMED.values()))
_LONG = "|".join(pattern for name, pattern in _NAMED.items() if name not in "cr")
# "in Java" says what to write; "bugs in Java code" what it is about; "from A to C" neither.
_STATED = re.compile(
    rf"\b(?:[Ii]n|[Ii]nto|[Tt]o|[Uu]se|[Ll]anguage:) (?:{_LONG})"
    r"(?! (?:code|files?|programs?|projects?|queries|query|scripts?|sources?)\b)"
    r"|\b(?:code|function|implementation|it|library|program|script|this) in "
    rf"(?:{_NAMED['c']}|{_NAMED['r']})"
)
_FENCED = re.compile(
    r"\A\s*(?P<marks>`{3,}|~{3,})[ \t]*(?P<language>[\w+#.-]+)[^\n]*\n"
    r"(?P<code>.*?)^(?P=marks)\s*\Z",
    re.MULTILINE | re.DOTALL,
)
_NO_CODE = frozenset({"markdown", "md", "none", "plain", "plaintext", "text", "txt"})
_ALIASES = {
    "c#": "csharp",
    "c++": "cpp",
    "f#": "fsharp",
    "golang": "go",
    "ipython": "python",
    "js": "javascript",
    "kt": "kotlin",
    "node": "javascript",
    "node.js": "javascript",
    "py": "python",
    "python3": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "ts": "typescript",
}


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

    The fence of the draft decides, then the request: ``in Java``, or a language beside what is
    asked for (``a Java class that …``). Else it is Python.

    Args:
        text: the request.
        draft: the text to start from.
    """
    if fenced := read_fence(draft or ""):
        return fenced.language
    if draft is not None and is_python(draft):
        return "python"
    head = " ".join(text[:_LANGUAGE_CHARACTERS].split())
    phrases = (_noun_phrase(head[verb.end() :]) for verb in _VERB.finditer(head.lower()))
    named = next(filter(None, map(_LANGUAGE.search, phrases)), None) or _STATED.search(head)
    return (named.lastgroup if named else None) or "python"


def _noun_phrase(rest: str) -> str:
    """Return what a request asks for, up to the word from which on it says what that is about."""
    words = []
    for word in rest.split()[:_WORDS]:
        if _ABOUT.fullmatch(word.lower()):
            break
        words.append(word)
        if word.endswith((".", ",", ":", ";")):
            break
    return " ".join(words)
