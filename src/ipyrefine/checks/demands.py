"""Read the literal demands out of a request in English: sizes, words, and JSON.

Only what is beyond doubt is read: what a directive, or a sentence of its own, puts on the whole
answer. Anything vague, conditional, about a part, or in a text that the request brings along is
left alone, as a demand that nobody made would fail a text that is right.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

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

_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
_NUMBERS = {word: number for number, word in enumerate(_WORDS, 1)} | {"twelve": 12, "a single": 1}
_NUM = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,6}}|{'|'.join(_NUMBERS)})"
_AMOUNT = re.compile(
    r"(?:(?:(?P<most>at most|(?:no|not|don't|never) (?:\w+ )?(?:more|longer) than|up to|within|"
    r"max(?:imum)?\.?(?: of)?|(?:not|n't|never) exceed)|(?P<less>fewer than|less than|under|below)|"
    r"(?P<least>at least|(?:no|not) (?:fewer|less) than|min(?:imum)?\.?(?: of)?)|"
    r"(?P<more>more than|over)|(?P<exact>exactly|precisely|only|just)|between|from) )?"
    rf"\b(?P<n>{_NUM})(?: ?(?:-|–|to|or|and) ?(?P<m>{_NUM}))?"  # noqa: RUF001
    r"(?P<alt>\+| or (?:more|less|fewer))?[ -]"
    r"(?:(?!more|other|extra|further|additional|of|the)\w+ )?"
    r"(?P<unit>word|sentence|paragraph|bullet|character)(?:s| points?)?\b"
    r"(?P<after> (?:or (?:more|less|fewer)|at (?:most|least)|max(?:imum)?|min(?:imum)?)\b"
    r"(?!\.? (?:of )?\d))?"
)

_VERB = (
    r"(?:re)?write|create|compose|draft|give|produce|provide|prepare|generate|explain|describe|"
    r"summari[sz]e|tell|list|answer|reply|respond|return|compare|outline|shorten|rephrase|say|"
    r"name|suggest|propose|translate|discuss|make|add|show|argue|state|invent|expand|cut|turn|"
    r"reword|paraphrase|condense|trim"
)
_ANSWER = (
    r"(?:(?:your|the|this)(?: whole| entire| final)? (?:answer|reply|response|output|result|text|"
    r"post|email|letter|message|note|essay|article|story|poem|summary|abstract|bio|tweet|report|"
    r"review|description|piece)|it|everything)"
)
_MUST = r"(?:must|should|shall|may|can|has to|needs to|is to)"
_CLAUSE = r"(?:^|[,;] (?:and |but )?|\band |\bbut |\bplease )"
_VERBS = re.compile(rf"(?:^|[,:] |\band |\bthen |\bplease |\byou )(?:{_VERB})\b")
_YOU = re.compile(r"(?:please )?(?:can|could|would|will) you\b")
_TASK = re.compile(rf"(?:(?:can|could|would|will) you |please )*(?:{_VERB})\b|i (?:need|want)\b")
# What makes an amount or a word another's than the whole answer's, wherever in its sentence.
_DOUBT = re.compile(
    r"\b(?:^for|if|when|unless|each|every|per|apiece|both|questions|ideally|preferably|possibly|"
    r"try|aim|maybe|perhaps|around|approximately|roughly|nearly|almost|or so|instead|e\.g|i\.e|"
    r"for example|titles?|headlines?|headings?|subject|captions?|first|second|third|last|opening|"
    r"closing|introduction|conclusion|stanzas?|verses?|steps?|sections?|columns?|rows?|fields?|"
    r"functions?|scripts?|programs?|code|prompts?)\b|~|\babout (?=\d)"
)
# Where an amount is one on the whole answer: alone, the object of a verb or the predicate of the
# answer, or, in the only task of a request, behind a preposition or the noun that is asked for.
_ALONE = re.compile(
    r"^(?:(?:length|limit|size|format|(?:word|character) (?:limit|count)): ?)?"
    r"(?:(?:and|but|please|in|with|use|using|do|i need|i want)\b ?)*$"
)
_OBJECT = re.compile(
    rf"{_CLAUSE}(?:(?:write|use|give|produce|answer|reply|respond|return|keep|limit|stay|restrict|"
    rf"expand|cut|shorten|trim|condense)\b(?: me| us| this| {_ANSWER})?|"
    rf"{_ANSWER} {_MUST}(?: be| have| contain| use| run| stay)*)"
    r"(?: in| with| to| at| within| only| an?)* ?$"
)
_NOUN = re.compile(rf"^(?:{_VERB})(?: me)? (?:an?|the) (?:[\w-]+ ){{1,3}}(?:of|with) $")
_PLACE = re.compile(r"(?:\b(?:in|into|within|as|using)|,(?: and)?) $|\($")
_NESTED = re.compile(
    r"\b(?:that|which|who|whose|where|why|says|saying|said|how to|not|never)\b|n't\b"
)
# What makes it an amount of a part.
_OTHER = re.compile(
    r"^ (?:with|from|of|in (?:all )?(?:capital|upper|lower|bold|italic))\b|"
    rf"\b(?:and|then) (?:an?|the|another|{_NUM})\b"
)
_ABOUT = re.compile(r" (?:about|on|for|to|as)\b")
_PLURAL = re.compile(r"\b(?:sentences|paragraphs|bullets|points|items|lines|answers)\b")
_SEVERAL = re.compile(
    rf"\b(?:{_VERB})(?: me| us)? (?:a few|several|some|(?!a single|one\b|1\b){_NUM}) "
    r"(?:\w+ ){0,2}?(?!words|sentences|paragraphs|characters|bullet)\w+s\b|"
    r"\b(?:each|every|both|questions)\b"
)
_TERMS = (
    r"(?:(?:any of )?(?:the |these )?(?:exact )?(?:words?|phrases?|terms?|names?|keywords?):? )?"
    rf"(?P<terms>{_Q}(?:(?:,|,? and|,? or) {_Q})*)(?=[.,;!:)]|\s*$|"
    rf" (?:(?:in|throughout) (?:it|(?:your|the) \w+)|anywhere|somewhere|and(?! {_Q}))\b)"
)
_WITH = re.compile(rf"(?:(?:{_CLAUSE}|\b{_MUST} )(?:include|mention|use|contain)|, with) {_TERMS}")
_WITHOUT = re.compile(
    rf"(?:\bwithout|(?:{_CLAUSE}|{_ANSWER} {_MUST} )(?:avoid|(?:do not|don't|not|never) "
    rf"(?:use|mention|include|contain|say|write)))(?: using| mentioning| saying)? {_TERMS}"
)
_JSON = re.compile(
    r"(?:^|[,;] |\band |\bplease |\b(?:can|could) you )"
    r"(?:(?:return|respond|answer|reply|output|give|provide|format|write|produce)(?: me)?"
    rf"(?: {_ANSWER})?|{_ANSWER} {_MUST} be|format:)?"
    r"(?: ?(?:only|just|as|in|with|an?|one|valid|single|plain|raw))* ?\bjson"
    r"(?: objects?| array| list| format| only)?(?=[.,;:!?]|$)"
)

_Bounds = tuple[int, int | None]  # the least and the most


@lru_cache(maxsize=64)
def read_demands(request: str) -> tuple[str, ...]:
    """Return the checks of what a request in English literally demands, by their names.

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
        for unit, bounds in _sizes(sentence, tasks):
            if not several or unit == "bullet":
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
        if sentence.endswith("?") and not _YOU.match(sentence):
            # "Answer in one word: is it?" is a directive, and "Is it one word?" none.
            sentence = sentence.rpartition(":")[0]
        if len(sentence) <= _MAX_SENTENCE:
            yield sentence, own


def _sizes(sentence: str, tasks: int) -> Iterator[tuple[str, _Bounds]]:
    """Yield the units and bounds that a sentence puts on the whole answer."""
    is_task, end = bool(_TASK.match(sentence)), 0
    single = tasks == 1 and is_task and len(_VERBS.findall(sentence)) < 2
    for match in _AMOUNT.finditer(sentence):
        before, after = sentence[: match.start()], sentence[match.end() :]
        placed = _NOUN.match(before) or (_PLACE.search(before) and not _NESTED.search(before))
        whole = _ALONE.match(before) or _OBJECT.search(before) or (single and placed)
        # "A list, 3 bullets, 8 words" and "short paragraphs, 3 sentences" are open, and so are
        # "Write a letter. Two sentences about me." and "Use two sentences, then give an example."
        part = _PLURAL.search(before, end) or (match["unit"] != "bullet" and "bullet" in sentence)
        part = part or _OTHER.search(after) or (tasks > is_task and _ABOUT.match(after))
        part = part or (tasks and _VERBS.search(after))
        end = match.end()
        if whole and not part and (bounds := _bounds(match, before)):
            yield match["unit"], bounds


def _bounds(match: re.Match[str], before: str) -> _Bounds | None:
    """Return the least and the most that an amount allows; None where it is an estimate."""
    low, *high = (_NUMBERS.get(n) or int(n.replace(",", "")) for n in match.group("n", "m") if n)
    words = f"{match['alt'] or ''}{match['after'] or ''}"
    if high:
        return (low, high[0]) if low <= high[0] else None
    if match["most"] or re.search("less|fewer|most|max", words):
        return 0, low
    if match["less"]:
        return 0, low - 1
    if match["least"] or words:
        return low, None
    if match["more"]:
        return low + 1, None
    plain = match["unit"] in ("word", "character") and not match["exact"]
    few = low <= 10 and re.search(r"\b(?:in|with) $", before)
    end = re.match(r" ?(?:[.,:;!?]|$)", match.string[match.end() :])
    return (low, low) if not plain or (few and end) else None


def _merge(unit: str, bounds: list[_Bounds]) -> Iterator[str]:
    """Yield what several bounds on one unit come to; nothing where they contradict each other."""
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
            either = name == "with" and " or " in match["terms"]
            if either or _NESTED.search(sentence[: match.start()]):
                continue
            at = sentence.count(_Q, 0, match.start("terms"))
            for term in quotes[at : at + match["terms"].count(_Q)]:
                if 0 < len(term) <= _MAX_TERM and "\n" not in term:
                    yield f"{name}:{term}"
