"""Languages of code: their names, as people, fences and pygments write them, and how code looks."""

import ast
import re

from ipyrefine.core.fences import Fence, read_fences
from ipyrefine.core.syntax import try_parse

# What a fence calls a text that isn't code.
NO_CODE = frozenset({"markdown", "md", "none", "plain", "plaintext", "text", "txt"})
_ALIASES = {
    "c#": "csharp", "c++": "cpp", "f#": "fsharp", "golang": "go", "ipython": "python",
    "js": "javascript", "kt": "kotlin", "node": "javascript", "node.js": "javascript",
    "py": "python", "python3": "python", "rb": "ruby", "rs": "rust", "sh": "bash",
    "ts": "typescript",
}  # fmt: skip
# The languages that are not written as their name with a capital.
_SPELLED = ("CSS", "HTML", "JavaScript", "JSON", "PHP", "SQL", "TypeScript", "XML", "YAML")
_NAMES = {"cpp": "C++", "csharp": "C#", "fsharp": "F#", **{n.lower(): n for n in _SPELLED}}
_CALLS = re.compile(r"[\w)\]'\"][(\[]")  # or takes an item
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


def pygments_name(language: str) -> str:
    """Return the name of a language in the way that pygments writes it: ``C++`` is ``cpp``."""
    name = language.strip().lower()
    return _ALIASES.get(name, name)


def language_name(language: str) -> str:
    """Return the name of a language as people write it: ``cpp`` is ``C++``."""
    return _NAMES.get(language, language.capitalize())


def read_fence(text: str) -> Fence | None:
    """Return the one fenced block of code that a text is, with its language as tag, or None."""
    match read_fences(text.strip()):
        case [one] if one.closed and one.end - one.start == len(text.strip()):
            code = one._replace(tag=pygments_name(one.tag), text=one.text.strip("\n"))
            return None if code.tag in {"", *NO_CODE} else code
    return None


def is_python(text: str) -> bool:
    """Return True if a text is Python: with a statement, or an expression that no prose is.

    That is a call or an item as code writes them, without a space before the bracket.
    """
    tree = try_parse(text)
    if tree is None or any(not isinstance(node, ast.Expr) for node in tree.body):
        return tree is not None
    calls = any(isinstance(one, ast.Call | ast.Subscript) for one in ast.walk(tree))
    return calls and _CALLS.search(text) is not None


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


def language_of(draft: str) -> str:
    """Return the language of an existing text that is code: its fence says it, or its syntax."""
    fenced = read_fence(draft)
    return fenced.tag if fenced else code_language(draft) or "python"
