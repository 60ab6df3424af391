# ruff: noqa: RUF001
"""Find the checks that a task's own words ask for: its examples, and the length of its answer.

Of a request in English only the length of the whole answer is read, at the end of its clause: a
demand that nobody made would fail a text that is right.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.core.ports import Check
from ipyrefine.core.stated import stated_examples
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.kernel.variables import Copies

_NAMES = ("examples", "results", "run", "constraints")


class Demands(NamedTuple):
    """What a task demands of its text."""

    checks: tuple[Check, ...] = ()
    phrases: tuple[str, ...] = ()  # for people: ``3 examples``, or the name of a check


NOTHING = Demands()


def find_demands(
    task: Task,
    checks: Sequence[Check],
    *,
    without: Sequence[str] = (),
    copies: Copies | None = None,
    runs: bool = False,
) -> Demands:
    """Return the checks of what a task states, in addition to the present ones.

    Names in `without` are left out; ``all`` leaves out all. `runs` says that the text is run on the
    copies of the notebook's variables.

    Raises:
        UsageError: a name to leave out is not one of these checks.
    """
    check_names(without)
    if "all" in without or task.is_foreign:
        return NOTHING
    if task.form != "code":
        present = {check.name for check in checks}
        wanted = () if "constraints" in without else read_lengths(task.text)
        missing = tuple(name for name in wanted if name not in present)
        return Demands(resolve(missing, {}), missing)
    from ipyrefine.checks.evaluation import Examples
    from ipyrefine.checks.python import RunOnCopies, RunsCleanly
    from ipyrefine.checks.rows import Results

    kinds = {"examples": Examples, "results": Results, "run": RunsCleanly}
    named = {n for n, kind in kinds.items() if any(isinstance(one, kind) for one in checks)}
    named -= set(without)
    left, unseen = kinds.keys() - named - set(without), runs and "run" in without
    count = 0 if "examples" in without else len(stated_examples(task))
    phrases = (f"{count} example{'' if count == 1 else 's'}",) if count else ()
    found = list[Check]()
    # Where the task states none, the user may still confirm some, and undefined names are found.
    if "examples" in left and (count or not unseen):
        found.append(Examples(copies=copies))
    # A cell's run says what it defines and changes.
    if "results" in left and not (unseen or "run" in named):
        found.append(Results(copies=copies))
    if runs and "run" in left:
        found.append(RunOnCopies(copies=copies))
    return Demands(tuple(found), phrases)


def check_names(names: Sequence[str]) -> None:
    """Raise a UsageError for a name of no check that a task may add."""
    for name in names:
        if name not in (*_NAMES, "all"):
            known, hint = ", ".join(_NAMES), did_you_mean(name, _NAMES)
            raise UsageError(f"--no-check takes {known} or all, not {name!r}.{hint}")


_MAX_REQUEST = 10_000  # characters that are read
_STRAIGHT = str.maketrans("“”„‘’\u00a0", '"""\'\' ')
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_N = r"\d{1,6}"
_VERB = (
    r"(?:(?:re)?write|create|compose|draft|give|produce|explain|describe|summari[sz]e|tell|list|"
    r"answer|reply|respond|compare|outline|shorten|cut|condense|halve|rephrase|suggest|translate)"
)
_TASK, _IT = rf"(?:(?:can|could|would|will) you |please )*{_VERB} ", r"(?:it|(?:the|your|this) \w+)"
_BOUNDS = {  # how people bound a length, and how the check `length` does
    r"at most|(?:no|not) (?:more|longer) than|up to|within|(?:a )?max(?:imum)?\.?(?: of)?|"
    r"(?:not|n't|never) exceed|or (?:less|fewer)": "<=",
    r"(?:fewer|less|shorter) than|under|below": "<",
    r"at least|no (?:fewer|less|shorter) than|(?:a )?min(?:imum)?\.?(?: of)?|or more": ">=",
    r"exactly|between": "",
}
_PATTERNS = {
    "quote": r"```.*?(?:```|\Z)|\"[^\"]{1,2000}\"|(?<!\w)'[^'\n]{1,300}'(?!\w)",
    # Where the text that a request brings along begins.
    "material": r"(?:\b(?:this|these|following|below)\b[^.:\n]{0,60}|(?:^|\n)(?:text|email|draft|"
    r"input)):|\b(?:following|below|this|these|attached)\b[^\n]{0,300}\n\s*\n|"
    r"(?<!requirements)(?<!rules):\s*\n",
    "end": r"(?<!max)(?<!min)[.!?;](?=\s|$)|\n(?:\s*(?:[-*•]|\d{1,2}[.)])\s)?",
    "amount": rf"(?:({'|'.join(_BOUNDS)}) )?\b({_N})(?: ?(?:-|–|to|and|or) ?({_N}))?[ -]"
    r"(word|sentence|paragraph|bullet|line|character)(?:s| points?)?\b"
    r"(?: (or (?:less|fewer|more)|(?:max|min)(?:imum)?|at (?:most|least)(?= *(?:$|[.,:)]))))?",
    # What stands before an amount: its topic may stand behind it, or its clause ends with it.
    "direct": rf"{_TASK}(?:me |us )?(?:an? (?:(?:\w+ ){{1,2}}of )?)?",
    "whole": rf"(?:(?:and|but|please) )*(?:in |use |(?:keep|limit) {_IT} (?:to |at |within )?|"
    rf"{_IT} (?:must|should|may) (?:be |have )?|{_TASK}(?:(?!(?:(?:and|then) {_VERB}|that|which|"
    r"who|whose|where|how|says?|not)\b)\S+ )*(?:in|into|within|as|to) )?",
    "behind": r" *(?:$|[.,:)]|and\b)",
    # What makes an amount a wish or a part's, and what asks for several texts.
    "doubt": r"\b(?:^for|each|every|per|both|if|when|unless|ideally|preferably|titles?|headlines?|"
    r"headings?|subject|first|second|last|opening|closing|introduction|conclusion|sections?)\b|"
    r"^.{1200}",
    "several": rf"\bfor (?:each|every|both)\b|\b(?:{_VERB}|me|with|and|by) (?:several|a few|"
    rf"(?!1\b){_N})\b",
}
_READ = {name: re.compile(pattern, re.DOTALL) for name, pattern in _PATTERNS.items()}


@lru_cache(maxsize=64)
def read_lengths(request: str) -> tuple[str, ...]:
    """Return the checks of the lengths that a request in English demands of its whole answer."""
    text = _READ["quote"].sub("*", request[:_MAX_REQUEST].translate(_STRAIGHT)).lower()
    text = text[: found.end()] if (found := _READ["material"].search(text)) else text
    text = re.sub(rf"\b(?:{'|'.join(_NUMBERS)})\b", lambda m: f"{_NUMBERS.index(m[0]) + 1}", text)
    text, names = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text), list[str]()
    several = _READ["several"].search(_READ["amount"].sub("", text))
    for sentence in () if several else map(str.strip, _READ["end"].split(text)):
        for match in () if _READ["doubt"].search(sentence) else _READ["amount"].finditer(sentence):
            before, (first, low, high, unit, then) = sentence[: match.start()], match.groups()
            before, bound = before.rpartition(", ")[2], first or then or ""
            ends = _READ["behind"].match(sentence, match.end())
            whole = (ends and _READ["whole"].fullmatch(before)) or _READ["direct"].fullmatch(before)
            # Of words it is an estimate, and of lines what a paragraph fills.
            counted = high if unit in ("word", "character") else before and unit != "line"
            if whole and (bound or counted):
                sign = next((one for said, one in _BOUNDS.items() if re.fullmatch(said, bound)), "")
                size = "-".join(sorted((low, high), key=int)) if high else f"{sign}{low}"
                names += [f"length:{size} {unit}{'' if size == '1' else 's'}"]
    return tuple(dict.fromkeys(names))
