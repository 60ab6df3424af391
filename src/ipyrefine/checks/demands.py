"""Find the checks that a task's own words ask for: its examples, and its demands on form.

Of a request in English only what is beyond doubt is read, as a demand that nobody made would fail a
text that is right. Anything vague, conditional, about a part, or in a text that the request brings
along is left alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.core.ports import Check
from ipyrefine.core.stated import stated_examples
from ipyrefine.errors import UsageError, did_you_mean

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
    files: Mapping[str, bytes] | None = None,
    runs: bool = False,
) -> Demands:
    """Return the checks of what a task states, in addition to the present ones.

    Args:
        task: the task.
        checks: the checks that the user named; none of them is added once more.
        several: whether several drafts are written, so that they can be compared.
        without: names of checks to leave out; ``all`` for all of them.
        files: files to put next to checked code, such as `kernel.variables.Variables.files`.
        runs: whether the text is run on these files' copies of variables.

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
    from ipyrefine.checks.python import RunOnCopies
    from ipyrefine.checks.rows import Results

    present = {check.name.split()[0] for check in checks if check.name} | set(without)
    count = 0 if "examples" in without else len(stated_examples(task))
    phrases = (f"{count} example{'' if count == 1 else 's'}",) if count else ()
    found: tuple[Check, ...] = ()
    if several and not {"agreement", "examples"} & present:
        found = (Agreement(files=files),)  # it runs the examples, too
    elif count and not {"agreement", "examples"} & (present - set(without)):
        found = (Examples(files=files),)
    if "results" not in present and not (runs and "run" in without):
        if not found and not {"agreement", "examples"} & present:
            found = (Examples(files=files),)  # for those that the user will confirm
        # A cell's run says what it defines and changes.
        if not runs and "run" not in present - set(without):
            found = (*found, Results(files=files))
    if runs and "run" not in present:
        found, phrases = (*found, RunOnCopies(files=files)), (*phrases, "a run on copies")
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


_MAX_REQUEST = 20_000  # characters that are read
_MAX_SENTENCE = 1_200
_MAX_TERM = 60
_STRAIGHT = str.maketrans("“”„‘’\u00a0\ue000", '"""\'\' \ufffd')  # noqa: RUF001
_Q = "\ue000"  # stands for a quote while the request is read
_QUOTES = re.compile(r'```.*?(?:```|\Z)|"[^"]{1,2000}"|(?<!\w)\'[^\'\n]{1,300}\'(?!\w)', re.DOTALL)
# Where the text that a request brings along begins: behind "this complaint:" or "Draft:", and
# below a line that ends with a colon or speaks of what follows.
_MATERIAL = re.compile(
    r"(?:\b(?:this|these|following|below)\b[^.:\n]{0,60}|(?:^|\n)(?:text|email|draft|input)):|"
    r"\b(?:following|below|this|these|attached)\b[^\n]{0,300}\n\s*\n|"
    r"(?<!requirements)(?<!rules):\s*\n"
)
_BREAK = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!max)(?<!min)[.!](?=\s|$)|(?<=\?)\s|;\s|\n")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s")
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: number for number, word in enumerate(_WORDS, 1)} | {"a single": 1}
_NUM = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,6}}|{'|'.join(_NUMBERS)})"
_AMOUNT = re.compile(
    r"(?:(?:(?P<most>at most|(?:no|not) (?:more|longer) than|up to|within|max(?:imum)?\.?(?: of)?|"
    r"(?:not|n't|never) exceed)|(?P<less>fewer than|less than|under|below)|"
    r"(?P<least>at least|no (?:fewer|less) than|min(?:imum)?\.?(?: of)?)|"
    r"(?P<exact>exactly|precisely)) )?"
    rf"\b(?P<n>{_NUM})(?: ?(?:-|–|to) ?(?P<m>{_NUM}))?[ -]"  # noqa: RUF001
    r"(?P<unit>word|sentence|paragraph|bullet|character)(?:s| points?)?\b"
    r"(?P<after> (?:or (?:more|less|fewer)|max(?:imum)?|min(?:imum)?)\b)?"
)
_VERB = (
    r"(?:re)?write|create|compose|draft|give|produce|provide|prepare|generate|explain|describe|"
    r"summari[sz]e|tell|list|answer|reply|respond|return|compare|outline|shorten|rephrase|say|"
    r"name|suggest|propose|translate|discuss|show|argue|state|expand|cut|condense|trim|halve|reduce|"
    r"tighten"
)
_TASK = re.compile(rf"(?:(?:can|could|would|will) you |please )*(?:{_VERB})\b")
_VERBS = re.compile(rf"(?:^|[,:] |\band |\bthen |\bplease |\byou )(?:{_VERB})\b")
_MUST = (
    r"(?:(?:your|the|this)(?: whole| entire| final)? (?:answer|reply|response|output|text|email|"
    r"letter|message|note|essay|story|poem|summary|report|review|description)|it|everything)"
    r" (?:must|should|shall|may|can|has to|needs to)"
)
# What stands before an amount on the whole answer, back to the last comma.
_WHOLE = re.compile(
    r"(?:(?:and|but|please|in|with|using|use) )*(?:length: |limit: |"
    rf"(?:keep|stay|limit)(?: it| this| the \w+)?(?: to| at| within)? |{_MUST}(?: be| have| use)? |"
    rf"(?:can you |could you )?(?:{_VERB}) (?:.*(?:\b(?:in|into|within|as|to) |\()|"
    r"an? (?:(?:[\w-]+ ){1,3}(?:of|with) )?)?)?"
)
# What makes an amount or a word another's than the whole answer's, wherever in its sentence.
_DOUBT = re.compile(
    r"\b(?:^for|if|when|unless|each|every|per|apiece|both|questions|ideally|preferably|possibly|"
    r"try|aim|maybe|perhaps|around|approximately|roughly|nearly|almost|or so|instead|e\.g|i\.e|"
    r"for example|titles?|headlines?|headings?|subject|captions?|first|second|third|last|opening|"
    r"closing|introduction|conclusion|stanzas?|verses?|steps?|sections?|columns?|rows?|fields?|"
    r"functions?|scripts?|programs?|code|prompts?)\b|~|\babout (?=\d)"
)
_PART = re.compile(r" (?:of|from|with|in (?:all )?(?:capital|upper|lower)|then)\b")
_ABOUT = re.compile(r" (?:about|on|for)\b")  # of a part, unless it says what to write about
_NESTED = re.compile(r"\b(?:that|which|who|whose|where|says|said|how to|not|never)\b|n't\b")
_SEVERAL = re.compile(
    rf"\b(?:{_VERB})(?: me| us)? (?:a few|several|some|(?!a single|one\b|1\b){_NUM}) "
    r"(?:\w+ ){0,2}?(?!words|sentences|paragraphs|characters|bullet)\w+s\b|"
    r"\bfor (?:each|every|both)\b"
)
_NOUN = r"(?:using |saying )?(?:the )?(?:words?|phrases?|terms?):? "
_TERMS = (
    rf"(?P<terms>{_Q}(?:,? (?:and |or )?{_Q})*)"
    r"(?=[.,;!:)]|\s*$| (?:in|anywhere|somewhere|and)\b)"
)
_START = r"(?:^|[,;] |\band |\bbut |\bplease )"
_WITH = re.compile(rf"(?:{_START}(?:include|mention|use) (?:{_NOUN})?|\bwith {_NOUN}){_TERMS}")
_WITHOUT = re.compile(
    rf"(?:\bwithout|{_START}(?:avoid|(?:do not|don't|never) (?:use|mention|include|say|write))) "
    rf"(?:{_NOUN})?{_TERMS}"
)
_JSON = re.compile(
    rf"(?:{_START}|\byou )(?:(?:return|respond|answer|reply|output|give|provide|"
    rf"format|write|produce)(?: me)?(?: (?:it|(?:the|your) \w+))?|{_MUST} be|format:)"
    r"(?: ?(?:only|just|as|in|with|an?|one|valid|single|plain))* ?\bjson"
    r"(?: objects?| array| list| format| only)?(?=[.,;:!?]|$)"
)

_Bounds = tuple[int, int | None]  # the least and the most


@lru_cache(maxsize=64)
def read_demands(request: str) -> tuple[str, ...]:
    """Return the checks of what a request in English literally demands, by their names.

    These are sizes in words, sentences, paragraphs, bullets or characters, words that it must or
    must not have, and JSON.

    Args:
        request: the request; what is behind its first 20,000 characters is not read.

    >>> read_demands("Write a toast in 3 sentences, max 60 words.")
    ('length:3 sentences', 'length:<=60 words')
    >>> read_demands("Summarise a 500-word article, and keep it short.")
    ()
    """
    sentences = list(_sentences(request[:_MAX_REQUEST]))
    tasks = sum(bool(_TASK.match(sentence)) for sentence, _ in sentences)
    several = any(_SEVERAL.search(sentence) for sentence, _ in sentences)
    sizes: dict[str, list[_Bounds]] = {}
    others: list[str] = []
    for sentence, quotes in sentences:
        if _DOUBT.search(sentence):
            continue
        shared = len(_VERBS.findall(sentence)) > 1 or (tasks > 1 and _TASK.match(sentence))
        for unit, bounds in () if several or shared else _sizes(sentence):
            sizes.setdefault(unit, []).append(bounds)
        others += _terms(sentence, quotes)
        others += ["json"] if _JSON.search(sentence) else []
    merged = [one for unit, bounds in sizes.items() for one in _merge(unit, bounds)]
    return tuple(dict.fromkeys([*merged, *others]))


def _sentences(request: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the sentences of a request, in small letters and with their quotes apart."""
    quotes: list[str] = []

    def hide(match: re.Match[str]) -> str:
        quotes.append(match[0][1:-1].strip().rstrip(",."))
        return _Q

    text = _QUOTES.sub(hide, request.translate(_STRAIGHT)).lower()
    material = _MATERIAL.search(text)
    for sentence in _BREAK.split(text[: material.end()] if material else text):
        own = quotes[: sentence.count(_Q)]
        del quotes[: len(own)]
        sentence = _BULLET.sub("", sentence).strip()
        if len(sentence) <= _MAX_SENTENCE and (sentence[-1:] != "?" or _TASK.match(sentence)):
            yield sentence, own


def _sizes(sentence: str) -> Iterator[tuple[str, _Bounds]]:
    """Yield the units and bounds that a sentence puts on the whole answer."""
    for match in _AMOUNT.finditer(sentence):
        before, after = sentence[: match.start()].rpartition(", ")[2], sentence[match.end() :]
        whole = _WHOLE.fullmatch(before) and not _NESTED.search(before)
        part = _PART.match(after) or (_ABOUT.match(after) and not _TASK.match(sentence))
        if whole and not part and (bounds := _bounds(match, before)):
            yield match["unit"], bounds


def _bounds(match: re.Match[str], before: str) -> _Bounds | None:
    """Return the least and the most that an amount allows; None where it may be an estimate."""
    low, *high = (_NUMBERS.get(n) or int(n.replace(",", "")) for n in match.group("n", "m") if n)
    after = match["after"] or ""
    if high:
        return (low, high[0]) if low <= high[0] else None
    if match["most"] or re.search("less|fewer|max", after):
        return 0, low
    if match["less"]:
        return 0, low - 1
    if match["least"] or after:
        return low, None
    placed = re.search(r"\b(?:in|as|into) $|^(?:write|draft|compose) an? $", before)
    counted = placed and match["unit"] not in ("word", "character")
    return (low, low) if match["exact"] or counted else None


def _merge(unit: str, bounds: list[_Bounds]) -> Iterator[str]:
    """Yield several bounds on one unit as one; nothing where they contradict each other."""
    low = max(low for low, _ in bounds)
    high = min((high for _, high in bounds if high is not None), default=None)
    both = len(set(bounds)) == 1 or all(not low or high is None for low, high in bounds)
    if both and (high is None or low <= high):
        size = f"<={high}" if not low else f">={low}" if high is None else f"{low}-{high}"
        size = str(low) if low == high else size
        yield f"length:{size} {unit}{'' if size == '1' else 's'}"


def _terms(sentence: str, quotes: list[str]) -> Iterator[str]:
    """Yield the words that a sentence demands or forbids."""
    for name, pattern in (("with", _WITH), ("without", _WITHOUT)):
        for match in pattern.finditer(sentence):
            if name == "with" and " or " in match["terms"]:
                continue
            at = sentence.count(_Q, 0, match.start("terms"))
            for term in quotes[at : at + match["terms"].count(_Q)]:
                if 0 < len(term) <= _MAX_TERM and "\n" not in term:
                    yield f"{name}:{term}"
