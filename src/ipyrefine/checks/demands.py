"""Find the checks that a task's own words ask for: its examples, and its demands on form.

Of a request in English only a few plain forms are read, as a demand that nobody made would fail a
text that is right: an amount or a word on the whole answer, at the end of its clause. Of 24
requests that the reader was not made from, 16 of them tricky, it read 22 right and 1 wrongly, and
missed 1.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.core.ports import Check
from ipyrefine.core.stated import stated_examples
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.kernel.variables import Copies

_NAMES = ("examples", "agreement", "results", "run", "constraints")


class Demands(NamedTuple):
    """What a task demands of its text.

    Attributes:
        checks: the checks to add.
        phrases: what was found, for people: ``3 examples``, or the name of a check.
    """

    checks: tuple[Check, ...] = ()
    phrases: tuple[str, ...] = ()


NOTHING = Demands()


def find_demands(
    task: Task,
    checks: Sequence[Check],
    *,
    several: bool = False,
    without: Sequence[str] = (),
    copies: Copies | None = None,
    runs: bool = False,
) -> Demands:
    """Return the checks of what a task states, in addition to the present ones.

    Args:
        task: the task.
        checks: the checks that the user named; none of them is added once more.
        several: whether several drafts are written, so that they can be compared.
        without: names of checks to leave out; ``all`` for all of them.
        copies: copies of the notebook's variables for it.
        runs: whether the text is run on these.

    Raises:
        UsageError: a name to leave out is not one of these checks.
    """
    check_names(without)
    if "all" in without or task.is_foreign:
        return NOTHING
    if task.form != "code":
        present = {check.name for check in checks}
        wanted = () if "constraints" in without else read_demands(task.text)
        missing = tuple(name for name in wanted if name not in present)
        return Demands(resolve(missing, {}), missing)
    from ipyrefine.checks.agreement import Agreement
    from ipyrefine.checks.evaluation import Examples
    from ipyrefine.checks.python import RunOnCopies, RunsCleanly
    from ipyrefine.checks.rows import Results

    kinds = {"examples": Examples, "agreement": Agreement, "results": Results, "run": RunsCleanly}
    present = {n for n, kind in kinds.items() if any(isinstance(one, kind) for one in checks)}
    present |= set(without)
    count = 0 if "examples" in without else len(stated_examples(task))
    phrases = (f"{count} example{'' if count == 1 else 's'}",) if count else ()
    found: tuple[Check, ...] = ()
    if several and not {"agreement", "examples"} & present:
        found = (Agreement(copies=copies),)  # it runs the examples, too
    elif count and not {"agreement", "examples"} & (present - set(without)):
        found = (Examples(copies=copies),)
    if not (runs and "run" in without):
        if not found and not {"agreement", "examples"} & present:
            found = (
                Examples(copies=copies),
            )  # for those that the user will confirm, and for names
        # A cell's run says what it defines and changes.
        own_run = "run" in present - set(without)
        if not (own_run or "results" in present):
            found = (*found, Results(copies=copies))
    if runs and "run" not in present:
        found = (*found, RunOnCopies(copies=copies))
    return Demands(found, phrases)


def check_names(names: Sequence[str]) -> None:
    """Refuse a name that is none of the checks that a task's demands may add.

    Raises:
        UsageError: there is such a name.
    """
    for name in names:
        if name not in (*_NAMES, "all"):
            known, hint = ", ".join(_NAMES), did_you_mean(name, _NAMES)
            raise UsageError(f"--no-check takes {known} or all, not {name!r}.{hint}")


_MAX_REQUEST = 10_000  # characters that are read
_MAX_SENTENCE = 1_200
_MAX_TERM = 60
_STRAIGHT = str.maketrans("“”„‘’\u00a0", '"""\'\' ')  # noqa: RUF001
_FIRST_MARK = 0xE000  # of the characters that stand for quotes while the request is read
_Q = "[\ue000-\uf8ff]"
_QUOTES = re.compile(r'```.*?(?:```|\Z)|"[^"]{1,2000}"|(?<!\w)\'[^\'\n]{1,300}\'(?!\w)', re.DOTALL)
# Where the text that a request brings along begins: behind "this complaint:" or "Draft:", and
# below a line that ends with a colon or speaks of what follows.
_MATERIAL = re.compile(
    r"(?:\b(?:this|these|following|below)\b[^.:\n]{0,60}|(?:^|\n)(?:text|email|draft|input)):|"
    r"\b(?:following|below|this|these|attached)\b[^\n]{0,300}\n\s*\n|"
    r"(?<!requirements)(?<!rules):\s*\n"
)
_SENTENCE_END = re.compile(r"(?<!max)(?<!min)[.!?;](?=\s|$)|\n(?:\s*(?:[-*•]|\d{1,2}[.)])\s)?")
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUM = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,6}}|{'|'.join(_WORDS)})"
_AMOUNT = re.compile(
    r"(?:(?:(?P<most>at most|(?:no|not) (?:more|longer) than|up to|within|max(?:imum)?\.?|"
    r"(?:not|n't|never) exceed)|(?P<less>fewer than|less than|under|below)|"
    r"(?P<least>at least|no (?:fewer|less) than|min(?:imum)?\.?)|(?P<exact>exactly)) )?"
    rf"\b(?P<low>{_NUM})(?: ?(?:-|–|to) ?(?P<high>{_NUM}))?[ -]"  # noqa: RUF001
    r"(?P<unit>word|sentence|paragraph|bullet|character)(?:s| points?)?\b"
    r"(?:(?P<fewer> or (?:less|fewer)| max(?:imum)?)|(?P<more> or more| min(?:imum)?))?"
)
_VERB = (
    r"(?:(?:re)?write|create|compose|draft|give|produce|explain|describe|summari[sz]e|tell|list|"
    r"answer|reply|respond|compare|outline|shorten|cut|condense|halve|rephrase|suggest|translate)"
)
_TASK = rf"(?:(?:can|could|would|will) you |please )*{_VERB} "
_DIRECT = re.compile(rf"{_TASK}(?:me |us )?(?:an? (?:\w+ of )?)?")  # its topic may stand behind
_TEXT = r"(?:it|(?:the|your|this) \w+)"
# What stands before an amount on the whole answer, back to the last comma; its clause ends there.
_WHOLE = re.compile(
    rf"(?:(?:and|but|please) )*(?:in |use |(?:keep|limit) {_TEXT} (?:to |at |within )?|"
    rf"{_TEXT} (?:must|should|may) (?:be |have )?|{_TASK}(?:(?!(?:(?:and|then) {_VERB}|that|which|"
    r"who|whose|where|how|says?|not)\b)\S+ )*(?:in|into|within|as|to) )?"
)
# What makes an amount or a word a wish or a part's, and what asks for several texts.
_DOUBT = re.compile(
    r"\b(?:^for|each|every|per|both|if|when|unless|ideally|preferably|titles?|headlines?|headings?|subject|first|"
    r"second|last|opening|closing|introduction|conclusion|sections?)\b"
)
_SEVERAL = re.compile(
    r"\bfor (?:each|every|both)\b|"
    rf"\b(?:{_VERB}|me|with|and|by) (?:several|a few|(?!one|1\b){_NUM})\b"
)
_START = r"(?:^|[,:] |\band |\bbut |\bplease )"
_NOUN = r"(?:the )?(?:words?|phrases?|terms?) "
_TERMS = rf"(?P<terms>{_Q}(?:,? (?:and |or )?{_Q})*)(?=[,:)]|\s*$| (?:in|and)\b)"
_WITH = re.compile(
    rf"(?:{_START}(?:include|mention|use) (?:{_NOUN})?|(?<!start )\bwith {_NOUN}){_TERMS}"
)
_WITHOUT = re.compile(
    rf"(?:\bwithout|{_START}(?:avoid|(?:do not|don't|never) (?:use|mention))) (?:{_NOUN})?{_TERMS}"
)
_JSON = re.compile(
    rf"(?:{_START}|\byou )(?:return|respond|answer|reply|output)(?: (?:it|the \w+))?"
    r"(?: (?:only|as|in|with|a|valid))* json(?: object| array)?(?=[,:]|$)"
)


@lru_cache(maxsize=64)
def read_demands(request: str) -> tuple[str, ...]:
    """Return the checks of what a request in English literally demands, by their names.

    These are sizes in words, sentences, paragraphs, bullets or characters, words that it must or
    must not have, and JSON.

    Args:
        request: the request; what is behind its first 10,000 characters is not read.

    >>> read_demands("Write a toast in 3 sentences, max 60 words.")
    ('length:3 sentences', 'length:<=60 words')
    >>> read_demands("Summarise a 500-word article, and keep it short.")
    ()
    """
    quotes: list[str] = []

    def hide(match: re.Match[str]) -> str:
        quotes.append(match[0][1:-1].strip().rstrip(",."))
        return chr(_FIRST_MARK + len(quotes) - 1)

    text = re.sub(_Q, "", request[:_MAX_REQUEST].translate(_STRAIGHT))
    text = _QUOTES.sub(hide, text).lower()
    text = text[: material.end()] if (material := _MATERIAL.search(text)) else text
    several, names = _SEVERAL.search(_AMOUNT.sub("", text)), list[str]()
    for sentence in map(str.strip, _SENTENCE_END.split(text)):
        if len(sentence) > _MAX_SENTENCE or _DOUBT.search(sentence):
            continue
        names += [] if several else _sizes(sentence)
        for name, pattern in (("with", _WITH), ("without", _WITHOUT)):
            terms = "".join(match["terms"] for match in pattern.finditer(sentence))
            terms = "" if name == "with" and " or " in terms else terms
            found = [quotes[ord(mark) - _FIRST_MARK] for mark in re.findall(_Q, terms)]
            names += [f"{name}:{x}" for x in found if 0 < len(x) <= _MAX_TERM and "\n" not in x]
        names += ["json"] if _JSON.search(sentence) else []
    return tuple(dict.fromkeys(names))


def _sizes(sentence: str) -> Iterator[str]:
    """Yield the checks of the sizes that a sentence asks for."""
    for match in _AMOUNT.finditer(sentence):
        before, after = sentence[: match.start()].rpartition(", ")[2], sentence[match.end() :]
        direct = _DIRECT.fullmatch(before)
        whole = _WHOLE.fullmatch(before) and re.match(r" *(?:$|[.,:)]|and\b)", after)
        low, high = (_number(match[one]) for one in ("low", "high"))
        counted = before and match["unit"] not in ("word", "character")  # else it is an estimate
        size = (
            f"{low}-{high}" if high
            else f"<={low}" if match["most"] or match["fewer"]
            else f"<{low}" if match["less"]
            else f">={low}" if match["least"] or match["more"]
            else f"{low}" if match["exact"] or counted
            else ""
        )  # fmt: skip
        if size and (direct or whole):
            yield f"length:{size} {match['unit']}{'' if size == '1' else 's'}"


def _number(written: str | None) -> int:
    if not written or written in _WORDS:
        return _WORDS.index(written) + 1 if written else 0
    return int(written.replace(",", ""))
