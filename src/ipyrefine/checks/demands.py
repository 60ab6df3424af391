# ruff: noqa: RUF001
"""Find the checks that a task's own words ask for: its examples, and the length of its answer.

Of a request in English only the length of the whole answer is read, at the end of its clause: a
demand that nobody made would fail a text that is right.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.core.model import count as counted
from ipyrefine.core.ports import Check
from ipyrefine.core.stated import stated_examples
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.kernel.variables import Copies

_NAMES = ("examples", "results", "run", "constraints")


def find_demands(
    task: Task,
    checks: Sequence[Check],
    *,
    without: Sequence[str] = (),
    copies: Copies | None = None,
    runs: bool = False,
) -> tuple[tuple[Check, ...], tuple[str, ...]]:
    """Return the checks of what a task states, beside the present ones, and its demands in words.

    Names in `without` are left out; ``all`` leaves out all. `runs` says that the text is run on the
    copies of the notebook's variables.

    Raises:
        UsageError: a name to leave out is not one of these checks.
    """
    check_names(without)
    if "all" in without or task.is_foreign:
        return (), ()
    if task.form != "code":
        present = {check.name for check in checks}
        wanted = () if "constraints" in without else read_lengths(task.text)
        missing = tuple(name for name in wanted if name not in present)
        return resolve(missing, {}), missing
    from ipyrefine.checks.evaluation import Examples
    from ipyrefine.checks.python import RunOnCopies, RunsCleanly
    from ipyrefine.checks.rows import Results

    kinds = {"examples": Examples, "results": Results, "run": RunsCleanly}
    named = {n for n, kind in kinds.items() if any(isinstance(one, kind) for one in checks)}
    named -= set(without)
    left, unseen = kinds.keys() - named - set(without), runs and "run" in without
    count = 0 if "examples" in without else len(stated_examples(task))
    phrases = (counted(count, "example"),) if count else ()
    found = list[Check]()
    # Where the task states none, the user may still confirm some, and undefined names are found.
    if "examples" in left and (count or not unseen):
        found.append(Examples(copies=copies))
    # A cell's run says what it defines and changes.
    if "results" in left and not (unseen or "run" in named):
        found.append(Results(copies=copies))
    if runs and "run" in left:
        found.append(RunOnCopies(copies=copies))
    return tuple(found), phrases


def check_names(names: Sequence[str]) -> None:
    """Raise a UsageError for a name of no check that a task may add."""
    for name in names:
        if name not in (*_NAMES, "all"):
            known, hint = ", ".join(_NAMES), did_you_mean(name, _NAMES)
            raise UsageError(f"--no-check takes {known} or all, not {name!r}.{hint}")


# The whole answer's length, as requests in English bound it; a part's, a wish or a topic is none.
_STRAIGHT = str.maketrans("“”„‘’\u00a0", '"""\'\' ')
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_VERB = (
    r"(?:(?:re)?write|create|draft|give|produce|explain|describe|summari[sz]e|tell|list|answer|"
    r"reply|respond|compare|outline|shorten|cut|halve|rephrase|suggest|translate)"
)
_TASK, _IT = rf"(?:(?:can|could|would|will) you |please )*{_VERB} ", r"(?:it|(?:the|your|this) \w+)"
_BOUNDS = {  # how people bound a length, and how the check `length` does
    r"at most|(?:no|not) (?:more|longer) than|up to|within|(?:a )?max(?:imum)?\.?(?: of)?|"
    r"(?:not|n't|never) exceed|or (?:less|fewer)": "<=",
    r"(?:fewer|less|shorter) than|under|below": "<",
    r"at least|no (?:fewer|less|shorter) than|(?:a )?min(?:imum)?\.?(?: of)?|or more": ">=",
    r"exactly|between": "",
}
_QUOTE = re.compile(r"(?s)```.*?(?:```|\Z)|\"[^\"]{1,2000}\"|(?<!\w)'[^'\n]{1,300}'(?!\w)")
_MATERIAL = re.compile(  # where the text that a request brings along begins
    r"(?:\b(?:this|these|following|below)\b[^.:\n]{0,60}|(?:^|\n)(?:text|email|draft|input)):|"
    r"\b(?:following|below|this|these|attached)\b[^\n]{0,300}\n\s*\n|(?<!requirements)(?<!rules):\s*\n"
)
_END = re.compile(r"(?<!max)(?<!min)[.!?;](?=\s|$)|\n(?:\s*(?:[-*•]|\d{1,2}[.)])\s)?")
_AMOUNT = re.compile(
    rf"(?:({'|'.join(_BOUNDS)}) )?\b(\d{{1,6}})(?: ?(?:-|–|to|and|or) ?(\d{{1,6}}))?[ -]"
    r"(word|sentence|paragraph|bullet|line|character)(?:s| points?)?\b"
    r"(?: (or (?:less|fewer|more)|(?:max|min)(?:imum)?|at (?:most|least)(?= *(?:$|[.,:)]))))?"
)
# What stands before an amount: its topic may stand behind it, or its clause ends with it.
_DIRECT = re.compile(rf"{_TASK}(?:me |us )?(?:an? (?:(?:\w+ ){{1,2}}of )?)?")
_WHOLE = re.compile(
    rf"(?:(?:and|but|please) )*(?:in |use |(?:keep|limit) {_IT} (?:to |at |within )?|"
    rf"{_IT} (?:must|should|may) (?:be |have )?|{_TASK}(?:(?!(?:(?:and|then) {_VERB}|that|which|"
    r"who|whose|where|how|says?|not)\b)\S+ )*(?:in|into|within|as|to) )?"
)
_PART = re.compile(
    r"\b(?:^for|each|every|per|both|if|when|unless|ideally|preferably|titles?|headlines?|headings?|"
    r"subject|first|second|last|opening|closing|introduction|conclusion|sections?)\b|^.{1200}"
)
_SEVERAL = re.compile(rf"\b(?:{_VERB}|me|with|and|by) (?:several|a few|(?!1\b)\d{{1,6}})\b")


@lru_cache(maxsize=64)
def read_lengths(request: str) -> tuple[str, ...]:
    """Return the checks of the lengths that a request in English demands of its whole answer."""
    text = _QUOTE.sub("*", request[:10_000].translate(_STRAIGHT)).lower()
    text = text[: found.end()] if (found := _MATERIAL.search(text)) else text
    for number, word in enumerate(_NUMBERS, start=1):
        text = re.sub(rf"\b{word}\b", str(number), text)
    text, names = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text), []
    several = _SEVERAL.search(_AMOUNT.sub("", text))
    for sentence in () if several else map(str.strip, _END.split(text)):
        for match in () if _PART.search(sentence) else _AMOUNT.finditer(sentence):
            first, low, high, unit, then = match.groups()
            before, bound = sentence[: match.start()].rpartition(", ")[2], first or then or ""
            ends = re.match(r" *(?:$|[.,:)]|and\b)", sentence[match.end() :])
            whole = (ends and _WHOLE.fullmatch(before)) or _DIRECT.fullmatch(before)
            # Of words it is an estimate, and of lines what a paragraph fills.
            counted = high if unit in ("word", "character") else before and unit != "line"
            if whole and (bound or counted):
                sign = next((one for said, one in _BOUNDS.items() if re.fullmatch(said, bound)), "")
                size = "-".join(sorted((low, high), key=int)) if high else f"{sign}{low}"
                names += [f"length:{size} {unit}{'' if size == '1' else 's'}"]
    return tuple(dict.fromkeys(names))
