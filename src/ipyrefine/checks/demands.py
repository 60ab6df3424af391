"""Read the literal demands out of a request in English.

A demand is read where its sentence directs the writer ("Use …", "Your answer must …") and the
answer itself is what it is about. Quoted passages, code, and the text that a request brings along
("Rewrite the following email: …") are never read. Whatever is vague, conditional or about
something else is left to the judge. Every pattern is bounded, so a request of any kind is read in
time linear in its length.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ipyrefine.checks.constraints import Constraint

_MAX_REQUEST = 20_000  # characters that are read
_MAX_SENTENCE = 1_200
_MAX_QUOTES = 2_000
_MAX_COUNT = 100_000

# A quote is one private-use character while the request is read, so that no pattern looks into it.
_FIRST_QUOTE = 0xE000
Q = "[\ue000-\uf8ff]"
_QUOTES = re.compile(
    r"```[^`]{0,20000}(?:```|$)"
    r'|(?<![\w"])"[^"]{1,4000}"(?!\w)'
    r"|(?<![\w'])'[^'\n]{1,300}'(?!\w)|`[^`\n]{1,300}`"
)
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " "})  # noqa: RUF001


def _words(text: str) -> list[str]:
    return text.split()


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _has(pattern: str, text: str) -> bool:
    """Return whether a text has a pattern somewhere."""
    return bool(re.search(pattern, text, re.IGNORECASE))


def _leads(pattern: str, text: str) -> bool:
    """Return whether a text begins with a pattern."""
    return bool(re.match(pattern, text, re.IGNORECASE))


_NUMBERS = {
    word: number
    for number, word in enumerate(
        _words(
            "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
            "fifteen sixteen seventeen eighteen nineteen twenty"
        ),
        start=1,
    )
} | {"a single": 1, "thirty": 30, "forty": 40, "fifty": 50, "a hundred": 100, "one hundred": 100}
NUM = r"(?:\d{1,3}(?:,\d{3})+|\d{1,6}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"

_ANSWER = (
    r"responses?|answers?|reply|replies|output|result|text|essay|article|(?:blog )?posts?|"
    r"e-?mails?|letter|message|note|memo|poems?|haikus?|limericks?|songs?|rap|story|tale|summary|"
    r"abstract|description|ad|advertisement|advert|ad copy|copy|pitch|proposal|plan|itinerary|"
    r"outline|list|report|review|speech|biography|bio|tweets?|caption|tagline|slogans?|jokes?|"
    r"riddle|dialogue|conversation|script|template|resume|cv|announcement|statement|explanation|"
    r"invitation|recipe|guide|tutorial|rubric|critiques?|piece|paper|document|press release|"
    r"newsletter|page|entry|diary|obituary|translation|version|writing|content|presentation|"
    r"introduction|lyrics|words|lecture|toast|blurb|whole thing|length|sentence|product"
)
# Nouns for the part of an answer, or for a text other than it, that a count may belong to.
_PART = (
    r"titles?|headlines?|subject(?: lines?)?|headings?|headers?|captions?|intro|introduction|"
    r"conclusion|stanzas?|verses?|chorus(?:es)?|bullets?|bullet points?|points?|items?|rows?|"
    r"sections?|paragraphs?|sentences?|lines?|steps?|names?|passwords?|fields?|cells?|chapters?|"
    r"books?|pages?|slides?|options?|examples?|definitions?|descriptions?"
)
_TEXT = (
    r"articles?|essays?|emails?|letters?|posts?|texts?|stor(?:y|ies)|books?|papers?|reports?|"
    r"poems?|songs?|passages?|documents?|abstracts?|tweets?|transcripts?|speech(?:es)?|"
    r"sentences?|paragraphs?|messages?"
)
_VERBS = (
    r"(?:re-?)?write|(?:re-?)?create|compose|draft|make|give|generate|produce|prepare|"
    r"provide|craft|come up|invent|design|develop|build|elaborate|expand|expound|summari[sz]e|"
    r"explain|describe|tell|list|name|answer|respond|reply|return|use|include|contain|keep|limit|"
    r"add|have|put|wrap|enclose|surround|start|begin|open|end|finish|close|conclude|sign|highlight|"
    r"italici[sz]e|bold|emphasi[sz]e|mark|separate|divide|split|format|structure|output|print|"
    r"avoid|"
    r"refrain|ensure|make sure|be sure|do not|don't|do|never|translate|say|help|convert|turn|"
    r"mention|"
    r"incorporate|repeat|restate|criticize|critique|paraphrase|rephrase|edit|improve|shorten|"
    r"simplify|suggest|recommend|propose|pitch|imagine|pretend|act|discuss|compare|choose|pick|"
    r"select|outline|plan|present|show|find|formulate|state|deliver|control|capitali[sz]e|stick|"
    r"stay|note|remember|brainstorm|tldr|argue|analy[sz]e|defend|recite|sing|express|post|send|"
    r"let's|let|be|insert|place|consider|feature|construct|phrase|set|follow|submit"
)
_OPENER = (
    r"(?:(?:please|kindly|also|then|and|but|now|next|finally|first|second|third|lastly|hi|hello|"
    r"just|additionally|moreover|furthermore|so|again|importantly|remember to|note that|"
    r"explicitly|always|only|in (?:your|the) (?:entire |whole |final )?(?:response|answer|"
    r"reply|output|\w+)|"
    r"at the (?:very )?(?:end|beginning)(?: of (?:your|the) [\w ]{1,30})?|"
    r"after (?:your|the) [\w ]{1,20}|before (?:you|your|the|saying|giving)[\w ]{1,40}|"
    r"for this task|note|important|requirements?|constraints?|rules?|request|task|\d{1,2}[.)]|"
    r"[-*•]|in (?:at (?:most|least) |exactly |no more than |fewer than |less than )?[\w-]{1,10} "
    r"[\w ]{1,12}|using only [\w ]{1,20}|without [\w ,]{1,40})[,:]?\s{0,3}){0,4}"
)
_DIRECTIVE = _re(
    rf"^\W{{0,8}}{_OPENER}(?:{_VERBS})\b"
    r"|\b(?:can|could|would|will) you\b"
    rf"|(?:\bplease|:) (?:{_VERBS})\b|(?:,|;|\band) (?:{_VERBS}) (?:your|the (?:entire|whole)|it)\b"
    r"|\b(?:i|we)(?: just| only| really)? (?:need|want|would like|would love|am looking|"
    r"was hoping|do not want|don't want|expect|require|'d like)\b|\b(?:i|we)'d like\b"
    rf"|\b(?:your|the|this|my) (?:[\w-]+ ){{0,4}}?(?:{_ANSWER}|words?|letters?|phrases?|keywords?|"
    r"[\w-]+)(?: \([^)]{1,60}\))? (?:should|must|needs?|has to|have to|is to|shall|may not|"
    r"can ?not|can't|will|may only)\b|\b(?:it|there|you|they|that) (?:also )?(?:should|must|"
    r"needs? to|has to|have to|may not|may only|can ?not|can't|shall)\b"
    rf"|\b(?:words?|letters?|phrases?|keywords?|sections|paragraphs|parts) (?:{Q}[, ]{{0,2}}|"
    r"[\w-]+[, ]{1,2}|are |with ){0,12}(?:should|must|needs? to|have to|has to|separated)\b"
)
_NARRATIVE = _re(
    r"^\W{0,8}(?:\d{1,2}[.)] {0,2})?(?:(?:i|we|he|she|they|you) (?:\w+ )?"
    r"(?:wrote|have written|had|read|said|made|got|told|found|know|think|saw|noticed|used)\b"
    r"|(?:my|our|his|her|their) (?!response|answer|entire|whole)\w+|if|when|whenever|unless|"
    r"in case|suppose|whether|for (?:each|every)|each|every|once you)\b"
)
_QUESTION = _re(
    r"^\W{0,8}(?:\d{1,2}[.)] {0,2})?(?:how|what|why|who|whom|whose|which|where|when|is|are|am|was|"
    r"were|do|does|did|has|have|should|shall)\b"
)
_HEDGE = _re(
    r"\b(?:ideally|preferably|if possible|maybe|perhaps|try to|feel free|optional(?:ly)?|"
    r"recommended|if you (?:can|like|want)|it would be (?:nice|good|great)|for example, you)\b"
)
_MATERIAL = _re(
    r"\b(?:following|below|this|these|that follows|here is|here's)\b[^.\n]{0,60}?"
    rf"\b(?:{_TEXT}|review|conversation|dialogue|data|draft|statement|notes|content|code|excerpt|"
    r"minutes|comment|question|prompt|feedback|ticket|log|bio|resume|ad|tagline|joke|riddle)\b"
    r"[^.\n]{0,80}(?:[.:]|$)|\b(?:original|input|context|passage|text|article|source|transcript|"
    r"email|synopsis)\s{0,2}:"
)
_REPEAT = _re(r"\b(?:repeat|restate|copy)\b")


class _Sentence(NamedTuple):
    """One sentence of the masked request, and what is around it.

    Attributes:
        text: the sentence.
        start: where it begins in the masked request.
        request: the masked request.
        quotes: what the private-use characters stand for.
    """

    text: str
    start: int
    request: str
    quotes: list[str]

    def unquote(self, marker: str) -> str:
        """Return what a quote says, without its marks."""
        return self.quotes[ord(marker) - _FIRST_QUOTE].strip("\"'`").strip()

    def around(self, before: int, after: int = 0) -> str:
        """Return the sentence with so many characters of the request before and after it."""
        start = max(0, self.start - before)
        return self.request[start : self.start + len(self.text) + after]

    def term(self, word: str) -> str:
        """Return a word, or what the quote in its place says."""
        return self.unquote(word) if re.fullmatch(Q, word) else word


def read_demands(request: str) -> Iterator[Constraint]:
    """Yield the demands that a request states, in their order; some may come twice.

    Args:
        request: the request; what is behind its first 20,000 characters is not read.
    """
    masked, quotes = _mask(request[:_MAX_REQUEST])
    readable = _drop_material(masked)
    sentences = [
        _Sentence(text, start, masked, quotes) for text, start in _split_sentences(readable)
    ]
    demands = [one for sentence in sentences if _directs(sentence.text) for one in _read(sentence)]
    parts = any(one.kind in ("parts", "responses") for one in demands)
    for one in _merge(demands):
        # "4 paragraphs … separated by ***" is one demand in two sentences.
        if not (parts and one.kind == "paragraphs"):
            yield one
    yield from _read_repeat(masked, readable, quotes)


def _merge(demands: list[Constraint]) -> Iterator[Constraint]:
    """Yield the demands with "at least" and "at most" of one thing as one; none that contradict."""
    groups: dict[tuple[str, tuple[str, ...], int], list[Constraint]] = {}
    for one in demands:
        terms = tuple(term.casefold() for term in one.terms)
        groups.setdefault((one.kind, terms, one.place), []).append(one)
    for group in groups.values():
        low = max(one.low for one in group)
        high = min((one.high for one in group if one.high is not None), default=None)
        if high is None or low <= high:
            yield replace(group[0], low=low, high=high)


def _mask(request: str) -> tuple[str, list[str]]:
    text = re.sub(Q, " ", request.translate(_STRAIGHT))
    quotes: list[str] = []

    def hide(match: re.Match[str]) -> str:
        if len(quotes) >= _MAX_QUOTES:
            return " "
        quotes.append(match[0])
        return chr(_FIRST_QUOTE + len(quotes) - 1)

    return _QUOTES.sub(hide, text), quotes


def _unmask(text: str, quotes: list[str]) -> str:
    return re.sub(Q, lambda match: quotes[ord(match[0]) - _FIRST_QUOTE], text)


def _drop_material(masked: str) -> str:
    """Return the request with the text that it brings along blanked out."""
    for match in _MATERIAL.finditer(masked):
        line, _, _ = masked[match.end() :].partition("\n")
        introduces, rest = match[0].rstrip().endswith(":"), line.strip()
        if introduces and rest:
            # The text is quoted, and so hidden already, or it is a list of words.
            if re.match(rf"{Q}|(?:{NUM}|[\w']+)(?:,| and| or)", rest):
                continue
            return masked[: match.end()]
        following = masked[match.end() + len(line) :].lstrip()
        blank = masked.find("\n\n", match.end())
        if re.match(rf"{Q}|[*<\[]", following) or _REPEAT.search(match[0]):
            continue
        if not (introduces or blank >= 0):
            continue
        cut = match.end() if introduces else blank
        # A last paragraph that speaks of "your response" is the request again.
        tail = masked.rfind("\n\n")
        again = tail > cut and _leads(
            r"\s*(?:please )?(?:your (?:entire |whole )?(?:response|answer|reply|output)\b|"
            r"in your response\b)",
            masked[tail:],
        )
        return masked[:cut] + (masked[tail:] if again else "")
    return masked


_BREAK = re.compile(rf"(?<=[.!?;])[ \t]+(?=[A-Z\d({Q[1:-1]}])|[;\n]")


def _split_sentences(text: str) -> Iterator[tuple[str, int]]:
    start = 0
    for match in _BREAK.finditer(text):
        # "e.g. Paris" and "P.S. At the end" end no sentence, nor does the number of an item.
        before = text[max(start, match.start() - 6) : match.start()].lower()
        if before.endswith(("e.g.", "i.e.", "p.s.", "mr.", "dr.", "vs.", "max.", "min.")):
            continue
        if re.fullmatch(r"\s*\d{1,2}\.", text[start : match.start()]):
            continue
        yield text[start : match.start()][:_MAX_SENTENCE], start
        start = match.end()
    yield text[start:][:_MAX_SENTENCE], start


_FRAGMENT = _re(
    r"^\W{0,6}(?:length\b|(?:word|character) (?:limit|count)\b|format\b|must |should |"
    r"max(?:imum)?\.?|min(?:imum)?\.?|at (?:least|most)|no |all |only |exactly|not |"
    r"nothing |between |up to |fewer |less |more |under |without |in |json|\d|"
    rf"(?:{NUM}) )"
)
_FINITE = re.compile(r"\b(?:is|are|was|were|has|had|does|did|live|lives|think|say|says)\b")


def _directs(sentence: str) -> bool:
    """Return whether a sentence tells the writer what to do."""
    if _HEDGE.search(sentence) or _NARRATIVE.match(sentence):
        return False
    if _QUESTION.match(sentence) and not re.match(r"^\W{0,8}do (?:not|n't)\b", sentence.lower()):
        return False
    if _DIRECTIVE.search(sentence):
        return True
    return bool(_FRAGMENT.match(sentence)) and not _FINITE.search(sentence)


def _read(sentence: _Sentence) -> Iterator[Constraint]:
    for reader in _READERS:
        yield from reader(sentence)


def _number(word: str) -> int:
    word = word.lower()
    return _NUMBERS[word] if word in _NUMBERS else int(word.replace(",", ""))


# Bounds

_Bounds = tuple[int, int | None] | None  # the least and the greatest count; -1 for a bare number
_MORE = r"more than|over|longer than|greater than|above"
_LESS = r"less than|fewer than|under|below|shorter than"
_BOUNDS = (
    rf"(?:(?P<low>at least|a minimum of|minimum(?: of)?|min\.?|(?:no|not) (?:less|fewer) than)"
    rf"|(?P<high>at (?:the )?most|(?:no|not) (?:more|longer) than|a maximum of|maximum(?: of)?|"
    rf"max\.?(?: of)?|(?:max\.? |maximum )length(?::| of)?|(?:word |character )?limit(?::| of| is)|"
    rf"up to|not exceed(?:ing)?|never exceed|within)"
    rf"|(?P<more>{_MORE})|(?P<less>{_LESS})"
    rf"|(?P<exact>exactly|precisely|only)|(?P<between>between|from)|"
    rf"(?P<vague>about|around|approximately|approx\.?|roughly|nearly|almost|some|circa|~)) ?"
)
_PLAIN = (
    rf"(?P<vague2>(?:about|around|approximately|approx\.?|roughly|some) |~ ?)?"
    rf"(?:(?P<first>{NUM}) ?(?:-|–|to|and|or) ?)?(?P<number>\b{NUM})"  # noqa: RUF001
    r"(?P<plus>\+| ?plus)?(?: or (?:(?P<ormore>more)|(?P<orless>less|fewer)))?"
)
_AMOUNT = rf"(?:{_BOUNDS})?{_PLAIN}"
_UNIT = (
    r"(?P<unit>words?|sentences?|paragraphs?|lines?|bullet ?points?|bullets?|"
    r"bulleted (?:items?|points?)|characters?|chars?)\b"
)
_SUFFIX = (
    r"(?P<suffix>,? (?:or (?:(?P<smore>more|longer|above)|(?P<sless>less|fewer|shorter|under))\b"
    r"|\(?(?:(?P<smax>max(?:imum)?|at (?:the )?most|tops)|(?P<smin>min(?:imum)?|at least))\b\.?\)?"
    rf"(?! ?(?:of )?{NUM})))?"
)
_COUNT = _re(
    rf"(?<![\w.$-]){_AMOUNT}(?P<gap>[ -](?:(?:different|separate|short|long|full|complete|markdown|"
    rf"distinct|concise|total|clear|simple) ){{0,2}}){_UNIT}{_SUFFIX}"
)
_NEGATED = _re(r"(?:\bnot|n't|\bno|\bnever|\bnothing|\bwithout)(?: [\w']+){0,4} ?$")


def _bounds(match: re.Match[str], before: str) -> _Bounds:
    """Return the least and the greatest count that a match demands; None if it is vague."""
    group = match.groupdict()
    if group["vague"] or group["vague2"]:
        return None
    number = _number(group["number"])
    if number > _MAX_COUNT:
        return None
    negated = bool(_NEGATED.search(before))
    more = group["plus"] or group["ormore"] or group.get("smore") or group.get("smin")
    less = group["orless"] or group.get("sless") or group.get("smax")
    if group["first"]:
        low = _number(group["first"])
        exact = not (group["low"] or group["high"] or group["more"] or group["less"])
        return (low, number) if low < number and exact and not negated else None
    if group["between"] or (more and less):
        return None
    if group["more"]:
        return (0, number) if negated else (number + 1, None)
    if group["less"]:
        return (number, None) if negated else (0, max(number - 1, 0))
    if negated:
        return None
    if group["low"] or more:
        return number, None
    if group["high"] or less:
        return 0, number
    return (number, number) if group["exact"] else (-1, number)


def _at_least(bounds: _Bounds) -> _Bounds:
    """Return bounds in which a bare number means at least so many."""
    return (bounds[1] or 0, None) if bounds and bounds[0] < 0 else bounds


# Counts of words, sentences, paragraphs, lines, bullets and characters

_FRAME = _re(
    r"(?:^|[,;:(–-]|\b(?:with|in|into|using|use|uses|of|within|to|be|contain(?:s|ing)?|"  # noqa: RUF001
    r"include(?:s|d)?|including|have|has|having|write|writes|provide|give|me|generate|list|create|"
    r"compose|add|produce|draft|make|answer|respond|reply|limit|name|only|and|also|but|it|is|are|"
    r"that's|than|a|length|just|want|need|exceed|consist(?:s|ing)? of|your|anything|something|"
    r"nothing|one|it's|may|not|should be|must be|the|by|as|or|points|for|text))[ (]{0,2}$"
)
_LOCAL = _re(
    r"\b(?:who|whom|whose|where|when|while|how to (?:write|make|compose|draft|create|"
    r"structure))\b(?:\W+\w+){0,6}\W*$|\bhow to (?:write|compose|draft|structure|edit|format)\b|"
    r"\b(?:in|on|for|to|by) which\b|\b(?:was|were|had|did|used|wrote|limited|said|says|say|tells|"
    r"told|asks|called)\b(?:\W+\w+){0,3}\W*$|\b(?:may|might|could)(?! not\b| you\b|"
    r" only\b)(?:\W+\w+){0,3}\W*$|\b(?:each(?! separated)|every|per|any)\b(?:\W+\w+){0,8}\W*$|"
    r"\b(?:about|around|approximately|roughly|nearly|almost|like|such as|e\.g\.|i\.e\.|first|last|"
    r"next|opening|previous|following|another|these|those|other|of the)\W*$"
)
_OF_OTHERS = _re(
    rf"\b(?:{_PART}|{_TEXT})\b(?: (?:that|which))?(?: (?:is|are|be|should be|must be|with|of|has|"
    r"have|having|contains?|containing|includes?|including|under|up|using|to|must|should|shall|"
    r"must have|should have|must contain|should contain)){1,2} ?$"
)
_HEAD_OBJECT = _re(
    rf"^\W{{0,8}}{_OPENER}(?:(?:can|could|would|will) you (?:please )?)?"
    r"(?:i(?: would|'d)? (?:need|want|like) )?(?:write|compose|draft|create|make|give|generate|"
    r"produce|prepare|provide|craft|invent|need|come up with|want)? ?(?:me |us |up )?(?:an?|the|"
    r"one|two|your|my) (?:(?!(?:with|of|in|that|which|and|about|for|to|on|from|by|"
    r"whose) )[\w-]+ ){0,4}(?:[\w-]+)(?: about(?: (?!with |and |of )[\w-]+){1,8})? ?(?:(?:that|"
    r"which) )?(?:is |are |has |have |with |of |in |contains |containing |using |to |includes |"
    r"including )?$"
)
_COMPOUND_HEAD = _re(
    r"(?:\b(?:write|compose|draft|create|make|give|generate|produce|prepare|provide|craft|need|"
    r"want|like|come up with)(?: me| us| up)? (?:an?|one|the|your) (?:[\w-]+,? ){0,3}|\b(?:in|as|"
    r"into|with) an? (?:[\w-]+ ){0,2})$"
)
_AFTER = _re(
    r"^ ?(?:per\b|each (?!separated)|(?:or so|ish)\b|a (?:day|line|minute)|apart|of (?!text)|"
    r"(?:or|and) (?:phrases|numbers)|from\b|away|long (?:article|essay|book|story)|limit\b|below|"
    r"above|old)"
)
# "Write 2 sentences on dogs and a list of cats": the whole may have more than 2 sentences.
_AND_MORE = _re(rf"^[^.;(]{{0,50}}?\b(?:and|plus|then)(?: then)? (?:an?|another|{NUM})[ -]")
_SECOND = _re(r"\b(?:and|plus) (?:an?|another|the|one) (?:[\w-]+ ){1,4}(?:of|with|in|using) $")
_AFTER_WORDS = _re(
    r"^ (?:that|which|in (?:all|capital|upper|lower|\w+ case|bold|french|german|spanish|italics|"
    r"each|every|the)|starting|beginning|ending|related|to describe|are|is|were|was|you)"
)
_AFTER_PART = _re(
    r"^ (?:about|on|describing|explaining|that|which|from|at the|before|after|introducing|listing|"
    r"summari[sz]ing|to|in the)\b"
)
_ALONE = _re(
    r"^\s*(?:[,.;:!)(]|$|please|max|min|or|in (?:total|length|all|english)|and|total|only)"
)
# The answer is the subject just before: "your response must contain", "keep it within".
_SUBJECT = _re(
    r"\b(?:keep|limit|restrict|cut|trim) "
    r"(?:it|(?:your|the|this|my)(?: [\w-]+){1,3}) (?:to|within|under) $"
    rf"|\b(?:your|the|this|my|it) ?(?:(?:entire|whole|final|full) )?(?:{_ANSWER})?"
    r" ?(?:(?:should|must|needs? to|has to|have to|is to|shall)(?: only)? "
    r"(?:be|have|contain|include|consist of|use|exceed)(?: in)? )$"
)
_ANSWER_CONTAINS = _re(
    r"\b(?:(?:that|which|and|it) (?:also )?|(?:sure|ensure)(?: that)? (?:your|the) (?:\w+ ){1,3})"
    r"(?:contains|has|includes|uses|is|are) $"
)
_KINDS = {
    kind[:4]: kind
    for kind in (
        "words",
        "sentences",
        "paragraphs",
        "lines",
        "bullets",
        "characters",
    )
}  # by the first letters of their unit
_CONTAINS = r"(?:contains|has|includes|uses|is|are) $"


def _read_counts(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    for match in _COUNT.finditer(text):
        before, after = text[: match.start()], text[match.end() : match.end() + 60]
        bounds, kind = _bounds(match, before), _KINDS[match["unit"].lower()[:4]]
        if bounds is None or not _is_of_answer(match, before, after, kind, bounds):
            continue
        low, high = bounds
        if low < 0:  # a bare number: "in 3 bullets" is literal, "200 words" is a rough length
            single = match["number"].lower() == "a single" and re.match(r"[.,;:!?)]|$", after)
            if kind in ("words", "characters") and not single:
                continue
            low = high or 0
        yield Constraint(kind, low, high)


def _is_of_answer(
    match: re.Match[str], before: str, after: str, kind: str, bounds: tuple[int, int | None]
) -> bool:
    """Return whether the whole answer is what is counted."""
    if _LOCAL.search(before) or _AFTER.match(after):
        return False
    if bounds[1] is not None and kind != "bullets":
        bare = bounds[0] in (-1, bounds[1])
        if _AND_MORE.search(after) or _SECOND.search(before):
            return False
        if bare and _has(rf"\b{match['unit'][:4]}[^.;]{{0,60}}\band $", before):
            return False
    tail = before[-200:]
    singular = not match["unit"].lower().endswith("s")
    one = match["number"].lower() in ("1", "one", "a single")
    if match["gap"].startswith("-") or (singular and not one and bounds[0] < 0):
        # "Write a 200-word story"
        return bool(
            _COMPOUND_HEAD.search(tail)
            and re.match(r"[ -]\w", after)
            and _leads(rf"^\W{{0,8}}{_OPENER}(?:{_VERBS}|i|can|could|would)\b", before)
            and not _has(r"\b(?:of|from|about|for|to) an? (?:[\w-]+ )?$", tail)
        )
    if not before.strip(" -*•"):
        return bool(_ALONE.match(after))
    if not _FRAME.search(tail):
        return False
    if kind in ("words", "characters") and _AFTER_WORDS.match(after):
        return False
    if _OF_OTHERS.search(tail) and not _HEAD_OBJECT.match(before) and not _SUBJECT.search(tail):
        return False
    if _has(rf"\b{_CONTAINS}", tail) and not _ANSWER_CONTAINS.search(tail):
        return False
    partial = bounds[1] is not None and kind != "words"
    adds = _has(r"\b(?:include|add|insert|mention|put)s? $", tail)
    return not (partial and adds and _AFTER_PART.match(after))


# Words and phrases

_BARE = r"[A-Za-z][\w'-]{0,30}"
_ITEM = rf"(?:{Q}|{_BARE})"
_LIST = rf"[\[(]? ?(?P<terms>{_ITEM}(?:(?:, ?(?:and |or )?| and | or | & |,){_ITEM}){{0,30}})[\])]?"
_NOUN = (
    r"(?:key ?words?|words?|phrases?|terms?|expressions?|names?|sentences?|strings?|"
    r"words? or phrases?)\b"
)
_THE = (
    rf"(?:(?:any|all|both|either|each|every|one|some|the|these|this|those|following|exact|of|"
    rf"specific|single|english|actual|keyword|key|{NUM}) ){{0,5}}"
)
_USE = (
    r"(?:include|includes|including|contain|contains|containing|use|uses|using|mention|mentions|"
    r"mentioning|incorporate|incorporates|incorporating|feature|say|saying|have|has|having|add|"
    r"write|employ)"
)
_TIMES = (
    rf"(?P<times>(?:{_BOUNDS})?(?:(?P<adverb>once|twice|thrice)\b(?: or more)?|{_PLAIN} times?\b))"
)
_WHERE = (
    r"(?:\s{0,2}[.,;:!?)\]]| [-–—] |$|\s{0,2}\n|"  # noqa: RUF001
    r" (?:in|to|into|throughout|within|anywhere|"
    r"at|somewhere|on|and|but|for|about|as|while|with|when|should|must|appears?|is|are|does|do|will|no|exactly|less|fewer|more)\b)"
)
_NEGATIVE = (
    r"(?:do(?:es)? not|don't|doesn't|must not|mustn't|should not|shouldn't|cannot|can not|can't|"
    r"may not|never|without|avoid|exclude|refrain from|omit|not to|not)"
)
_STOP = frozenset(
    _words(
        "a an the that this these those you your we our in on of or and for from with to count "
        "counts limit limits which like such below above choice order class cloud search "
        "processor problem should must not is are was were be by at as it its only most least "
        "more less some any all but if list"
    )
)
_FORBID = _re(
    rf"\b{_NEGATIVE} (?:ever )?(?P<verb>{_USE} |(?:the use|use|usage|using|mention) of )?"
    rf"(?P<the>{_THE})(?P<noun>{_NOUN})?(?: like)?:? ?{_LIST}(?={_WHERE}| {_TIMES})"
)
_REQUIRE = _re(
    rf"\b(?P<verb>{_USE}|mentioning|with) (?P<the>{_THE})(?P<noun>{_NOUN}):? ?{_LIST}"
    rf"(?:(?={_WHERE})|(?=\s{{0,2}}{_TIMES}))"
)
_MENTION = _re(
    rf"\b(?P<verb>include|includes|contain|contains|mention|mentions|mentioning|incorporate|say|"
    rf"use) (?P<terms>{Q}(?:(?:, ?(?:and )?| and ){Q}){{0,30}})(?={_WHERE}| {_TIMES})"
)
_PASSIVE = _re(
    rf"\b(?:the |both )?(?P<the>{_THE})(?P<noun>{_NOUN}) {_LIST} "
    r"(?:(?P<aux>should|must|needs? to|has to|have to|shall|can|may|does|do|doesn't|don't|"
    r"shouldn't|mustn't|can ?not|can't)"
    r"(?P<not> ?not| never)? )?(?:also )?(?:be |been )?"
    r"(?P<occur>appears?|used?|included?|mentioned|occurs?|shows? up|present|be found|found)\b"
    rf"(?: (?:in|throughout) (?:your|the) (?:[\w-]+ ?){{1,3}},?)?(?: at all)?(?: {_TIMES})?"
)
_TIMES_AFTER = _re(
    rf"^,?(?: (?:should |must )?(?:to )?(?:appears? )?(?:in|throughout) (?:your|the) "
    rf"(?:[\w-]+ ){{0,2}}[\w-]+,?)? ?{_TIMES}"
)
_ADVERBS = {"once": 1, "twice": 2, "thrice": 3}


def _times_of(match: re.Match[str] | None, before: str) -> _Bounds:
    """Return how often something is demanded; a bare "twice" is read as at least twice."""
    if match is None or not match["times"]:
        return None
    if match["adverb"]:
        number = _ADVERBS[match["adverb"].lower()]
        negated = bool(_NEGATED.search(before))
        return _adverb_bounds(match["times"].lower(), number, negated)
    return _at_least(_bounds(match, before))


def _adverb_bounds(times: str, number: int, negated: bool) -> _Bounds:
    if re.match(_MORE, times):
        return (0, number) if negated else (number + 1, None)
    if re.match(_LESS, times):
        return (number, None) if negated else (0, number - 1)
    if times.startswith(("at most", "max", "no more", "not more", "up to")):
        return 0, number
    if negated or times.startswith(("about", "around", "nearly", "roughly", "some")):
        return None
    if times.startswith(("exactly", "only", "precisely")):
        return number, number
    return number, None


def _terms(sentence: _Sentence, listed: str, noun: str | None) -> list[str]:
    """Return the words that a list names.

    The list ends at the first item that is no term. What came before counts only if it is quoted.
    """
    items = re.findall(rf"{Q}|{_BARE}", listed)
    # "keywords a, b and c": the joining words are no items.
    items = [one for one in items if one.lower() not in ("and", "or")]
    terms = []
    for one in items:
        if re.fullmatch(Q, one):
            terms.append(sentence.unquote(one))
        elif noun and one.lower() not in _STOP:
            terms.append(one)
        else:
            return terms if terms and all(re.fullmatch(Q, each) for each in items[:1]) else []
    return [term for term in terms if 0 < len(term) <= 200]


_OPENS = _re(
    r"\b(?:start|begin|open|end|finish|close|conclude|sign|answer|respond|reply|"
    r"replace)\w*\b[^.]{0,60}$"
)
_PLAYS = _re(r"\b(?:play|pun|rhym\w*|associat\w*|do|begin\w*|synonym\w*)\W*$")
# "sentence one" and "phrase structure" name no word; without quotes only these do.
_NAMING = _re(r"(?:key ?)?words?$|terms?$|phrases?$")


def _read_terms(sentence: _Sentence) -> Iterator[Constraint]:
    """Read the words to use and to avoid; of patterns that overlap the first in the list counts."""
    text, taken = sentence.text, list[tuple[int, int]]()
    for pattern, read in (
        (_PASSIVE, _passive_bounds),
        (_FORBID, _forbidden_bounds),
        (_REQUIRE, _required_bounds),
        (_MENTION, _required_bounds),
    ):
        for match in pattern.finditer(text):
            terms = _terms(sentence, match["terms"], _naming(match))
            before, after = text[: match.start()], text[match.end() :]
            if not terms or _nested(before):
                continue
            bounds = read(match, before, _TIMES_AFTER.match(after))
            if bounds and not any(match.start() < e and b < match.end() for b, e in taken):
                taken.append(match.span())
                yield from (Constraint("contains", *bounds, (term,)) for term in terms)


def _passive_bounds(match: re.Match[str], before: str, _: re.Match[str] | None) -> _Bounds:
    """Return the bounds of "the word … should (not) appear …"."""
    aux = (match["aux"] or "").lower()
    denied = bool(match["not"]) or aux.endswith(("n't", "cannot", "can not"))
    if aux in ("can", "may", "do", "does") and not denied:
        return None
    if not aux and not _has(r"\b(?:sure|ensure|that|have)\W*$", before):
        return None
    if match["times"]:
        return _times_of(match, "not" if denied else "")
    return (0, 0) if denied else (1, None)


def _forbidden_bounds(match: re.Match[str], _: str, times: re.Match[str] | None) -> _Bounds:
    """Return the bounds of "do not use …", "avoid …"."""
    if not match["verb"] and not _leads("avoid|without|exclude|omit", match[0]):
        return None
    return _times_of(times, "not") if times else (0, 0)


def _required_bounds(match: re.Match[str], before: str, times: re.Match[str] | None) -> _Bounds:
    """Return the bounds of "include …"; only an order may say "use" or "say" without a noun."""
    group, verb = match.groupdict(), match["verb"].lower()
    if _NEGATED.search(before):
        return None
    if verb == "with" and (_OPENS.search(before) or _PLAYS.search(before)):
        return None
    if "noun" not in group and verb in ("use", "say") and not _IMPERATIVE.search(before):
        return None
    if _has(r"\b(?:any|either|one|some) (?:of )?", group.get("the") or ""):
        return None
    return _times_of(times, "") if times else (1, None)


_IMPERATIVE = _re(r"(?:^|[.,;:]|\b(?:and|please|also|to|must|should))\s*$")


def _naming(match: re.Match[str]) -> str | None:
    noun = match.groupdict().get("noun")
    return noun if noun and _NAMING.search(noun) else None


def _nested(before: str) -> bool:
    """Return whether a clause just before speaks of somebody or something else."""
    return _has(
        r"\b(?:who|whom|whose|where|when|if|why|people|titled|called|each|every|named)\b"
        r"(?:\W+\w+){0,4}\W*$|\bhow to\b(?:\W+\w+){0,3}\W*$|\b(?:may|might|could)\W*$",
        before,
    )


# Letters, punctuation and case

_LETTER = _re(rf"\bletters? (?P<letter>{Q}|[A-Za-z](?![\w']))")
_LETTER_TIMES = _re(
    rf"^(?: (?:should|must|needs? to|has to|have to|will|can|may))?(?P<not> ?not| never|n't)?"
    r"(?: (?:only|be used|be included|show up|shows up|appears?|occurs?|used|present|is used|be))*"
    r"(?: in (?:your|the) (?:[\w-]+ ){0,2}?[\w-]+)?"
    rf",?(?: (?:with )?{_TIMES})?"
)
_EXCLAIM = _re(
    rf"\b{_AMOUNT} (?P<mark>exclamation (?:marks?|points?)|question marks?|commas?|semicolons?|"
    rf"hyphens?)"
)
_MARK_OF = {"c": ",", "e": "!", "q": "?", "s": ";", "h": "-"}
_NO_MARK = _re(
    rf"\b(?:{_NEGATIVE}|no|zero)(?: (?:{_USE}|the|any|use|usage|of|even|a|single|be|there|or|"
    r"all|from|have)){0,6} (?P<mark>commas?|exclamation (?:marks?|points?)|question marks?|"
    r"semicolons?|hyphens?|em[- ]dash(?:es)?)\b|\bcomma-free\b"
)
_FILL = (
    r"(?: (?:of|the|letters?|in|your|entire|whole|response|answer|reply|output|text|it|be|is|are|"
    r"should|must|to|use|written|using|english|and|all|only|small|words|a)){0,10},? "
)
_SPREAD = r"\b(?:all|only|entirely|completely|everything|in|be|use|using)"
_LOWER = _re(
    rf"{_SPREAD}{_FILL}(?:lower ?-?case|small letters)\b|^\W{{0,3}}lower ?-?case only\b"
    rf"|\b(?:{_NEGATIVE}|no)(?: (?:use|any|contain|include|a|single|letter|have|using)){{0,4}} "
    r"(?:capital letters?|capitals|capitali[sz]ation|upper ?-?case)\b(?! words)"
    r"|\bnot a single letter\b[\w ]{0,60}\bcapitali[sz]ed\b"
)
_UPPER = _re(
    rf"{_SPREAD}{_FILL}(?:upper ?-?case|capital letters|capitals|caps)\b"
    r"|\bcapitali[sz]e (?:all|every|each)(?: of)?(?: your| the)? (?:words|letters?|word)\b"
    rf"|\b(?:{_NEGATIVE}|no)(?: (?:use|any|contain|include|a|single|letter|have|using)){{0,4}} "
    r"lower ?-?case\b"
)
_CAPITAL_WORDS = _re(
    r"\b(?:words?|phrases)\b(?: or phrases?)?[\w ]{0,20}\b(?:all[ -])?(?:capital letters|capitals|"
    r"caps|upper ?-?case|capitali[sz]ed)\b|\b(?:all[ -]caps|capitali[sz]ed|all[ -]capital|"
    r"fully capitali[sz]ed) words?\b|\b(?:capital|upper ?-?case) words?\b"
)
_ANY_TIMES = _re(rf"\b{_TIMES}")
_ANY_AMOUNT = _re(
    rf"\b{_AMOUNT} (?:(?:different|unique|fully|all|full) ){{0,2}}(?:words?|capital|"
    rf"capitali[sz]ed|upper|all[ -]ca)"
)


def _read_letters(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    for match in _LETTER.finditer(text):
        letter = sentence.term(match["letter"])
        before, after = text[: match.start()], text[match.end() :]
        if len(letter) != 1 or letter.isspace() or _nested(before):
            continue
        if _leads(r" ?(?:through|to|and|or|until|,|-|–)", after):  # noqa: RUF001
            continue
        named = _has(
            r"\b(?:about|of|starts?|begins?|ends?|starting|beginning|ending|with)"
            r"(?: with)?(?: the| a)? $",
            before,
        )
        if named and not _has(r"\b(?:without|use of|using)\b[\w ]{0,10}$", before):
            continue
        tail = _LETTER_TIMES.match(after)
        denied = bool(tail and tail["not"]) or bool(_NEGATED.search(before))
        denied = denied or _has(r"\b(?:avoid|omit)(?: using)?(?: the)? $", before)
        bounds = _times_of(tail, "not" if denied else "")
        if bounds is None and (tail is None or not tail["times"]):
            required = _has(rf"\b{_USE}(?: the| a)? $", before)
            bounds = (0, 0) if denied else (1, None) if required else None
        if bounds:
            yield Constraint("letters", *bounds, (letter.lower(),))


def _read_marks(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    for match in _NO_MARK.finditer(text):
        inside = _leads(
            r" (?:after|before|between|in the (?:title|first)|splice)", text[match.end() :]
        )
        if not inside and not _nested(text[: match.start()]):
            mark = (match["mark"] or "comma").lower()
            mark = "—" if mark.startswith("em") else _MARK_OF[mark[0]]
            yield Constraint("punctuation", 0, 0, (mark,))
    for match in _EXCLAIM.finditer(text):
        before = text[: match.start()]
        bounds = _at_least(_bounds(match, before))
        if bounds and not _nested(before):
            yield Constraint("punctuation", *bounds, (_MARK_OF[match["mark"][0].lower()],))


_PART_JUST_BEFORE = _re(
    rf"\b(?:{_PART}|first letter|words?|name|keywords?)\b(?! in the| should be in english)"
    r"[^,.]{0,20}$"
)


def _read_case(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    words = _CAPITAL_WORDS.search(text)
    if words and not _leads(r"capitali[sz]e (?:all|every)", words[0]):
        amount = _ANY_AMOUNT.search(text) or _ANY_TIMES.search(text)
        if amount and abs(amount.start() - words.start()) < 150:
            read = _times_of if "times" in amount.groupdict() else _bounds
            bounds = _at_least(read(amount, text[: amount.start()]))
            if bounds:
                yield Constraint("capitalised words", *bounds)
            return
    for kind, pattern in (("lowercase", _LOWER), ("uppercase", _UPPER)):
        match = pattern.search(text)
        if not match or _nested(before := text[: match.start()]):
            continue
        if _leads(
            r" (?:words?|for (?:the )?(?:title|heading|emphasis)|at the|titles?|headings?)",
            text[match.end() :],
        ):
            continue
        if _PART_JUST_BEFORE.search(before) and not _has_whole(text):
            continue
        owner = re.search(r"\b(?:all|the|any|these|those) ([\w-]+) $", before, re.IGNORECASE)
        if owner and not re.fullmatch(rf"{_ANSWER}|letters", owner[1], re.IGNORECASE):
            continue
        yield Constraint(kind)
        return


def _has_whole(text: str) -> bool:
    return _has(rf"\b(?:entire|whole|all of|your (?:{_ANSWER}))\b", text)


# Start, end and format

_OPENING = r"(?:your |the |this |my )?(?:entire |whole )?(?:[\w-]+ ){0,2}?(?:it |them )?"
_START = _re(
    rf"\b(?:start|begin|open|starts|begins) {_OPENING}(?:with|by saying)"
    rf"(?: exactly)?(?: the)?(?: exact)?(?: {_NOUN})?(?: exactly)?:? ?(?P<term>{Q})"
)
_END = _re(
    rf"\b(?:end|finish|close|conclude|sign off|ends|finishes|closes|concludes) {_OPENING}(?:with|"
    rf"by saying|in)(?: exactly)?(?: the| this| these)?(?: exact)?(?: (?:{_NOUN}|statement|"
    rf"question|line))?(?: exactly| as is)?:?\s{{0,3}}(?P<term>{Q})"
)
_END_BARE = _re(
    rf"\b(?:end|finish|close|conclude) {_OPENING}with(?: the|"
    rf" this)? exact (?:{_NOUN})(?: of)?:?\s{{0,3}}"
    r"(?P<term>[A-Z][^\n.?!:]{2,120}[.?!]?)(?:\s|$)"
)
_END_NEXT = _re(
    rf"\b(?:end|finish|close|conclude) {_OPENING}with(?: the| this)?(?: exact)?(?: {_NOUN})?:\s*$"
)
_OTHER_END = _re(
    r"\b(?:each|every|paragraphs?|lines?|sentences?|stanzas?|sections?|words?|title|verses?|"
    r"postscript|post script|p\.s|names?)\b[\w ,]{0,40}$"
)
_NTH = {
    word: number
    for number, word in enumerate(
        _words("first second third fourth fifth sixth seventh eighth ninth tenth"),
        start=1,
    )
}
_ORDINAL = rf"(?P<nth>\d{{1,2}}(?:st|nd|rd|th)|{'|'.join(_NTH)})"
_FIRST_WORD = tuple(
    _re(rf"\b{lead} (?:the )?(?:word )?(?P<term>{_ITEM})(?={_WHERE})")
    for lead in (
        rf"{_ORDINAL} paragraph (?:must|should|has to|needs to|shall) (?:start|begin) with",
        rf"(?:start|begin) (?:the |your )?{_ORDINAL} paragraph with",
        rf"first word of (?:the )?{_ORDINAL} paragraph (?:must|should|has to) be",
    )
)


def _read_ends(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    for kind, pattern in (("start", _START), ("end", _END)):
        for match in pattern.finditer(text):
            before, opening = text[: match.start()], match[0][:-1].partition("with")[0]
            if _OTHER_END.search(before) or _OTHER_END.search(opening):
                continue
            relative = _has(r"\b(?:that|which) $", before)
            if relative and not _has(rf"\b(?:{_ANSWER}) (?:that|which) $", before):
                continue
            if _nested(before) or _NEGATED.search(before) or _leads(r" or\b", text[match.end() :]):
                continue
            yield Constraint(kind, terms=(sentence.unquote(match["term"]),))
    bare = _END_BARE.search(text)
    if bare and not re.search(Q, bare["term"]) and not _OTHER_END.search(text[: bare.start()]):
        yield Constraint("end", terms=(bare["term"].strip(),))
    if _END_NEXT.search(text) and not _OTHER_END.search(text[:60].partition("with")[0]):
        rest = sentence.request[sentence.start + len(text) :]
        following = rest.strip().partition("\n")[0].strip()
        if 0 < len(following) <= 200:
            yield Constraint("end", terms=(_unmask(following, sentence.quotes).strip('"'),))
    for match in (match for pattern in _FIRST_WORD for match in pattern.finditer(text)):
        nth, term = match["nth"].lower(), sentence.term(match["term"])
        place = _NTH.get(nth) or int(re.sub(r"\D", "", nth))
        if place and len(term.split()) == 1:
            yield Constraint("first word", terms=(term,), place=place)


_WRAPPED = _re(
    r"\b(?:wrap|wrapped|enclose|enclosed|put|surround|surrounded|be)\b(?P<what>[^.\n]{0,60}?) "
    r"(?:with|in|inside|within|by) (?:a pair of )?(?:double[ -](?:quotation marks|quotes|"
    r"quotation)|"
    r"quotation marks|double-quotes)"
)
_TITLE = _re(
    r"\b(?:title|name)\b[^.\n]{0,80}\b(?:double (?:angular|angle|angled) brackets|<<)"
    r"|\btitle\b[^.\n]{0,80}<<[^<>\n]{1,60}>>"
    r"|\b(?:double (?:angular|angle|angled) brackets)[^.\n]{0,40}\btitle\b"
)
_HIGHLIGHT = _re(r"\b(?:highlight|highlighted|italici[sz]e|italici[sz]ed|emphasi[sz]e|bold)\b")
_HIGHLIGHT_COUNT = _re(
    rf"\b{_AMOUNT} (?:(?:text|different|key|important|highlighted|separate|main|\w+) ){{0,2}}"
    r"(?:sections?|phrases?|parts?|words?|portions?|texts?|sentences?|highlights|pieces?|"
    r"items?|ideas?|points?)\b"
)
_STARRED = _re(r"\*[^*\n]{1,80}\*|\bmarkdown\b|\basterisks?\b")
_PLACEHOLDER = _re(rf"\b(?:{_AMOUNT}|(?P<one>an?)) (?:\w+ ){{0,2}}placeholders?\b")
_SECTION_COUNT = _re(
    rf"\b{_AMOUNT} (?:\w+ ){{0,1}}(?:sections?|parts?|paragraphs?|stanzas?|chapters?)\b"
)
_SECTION_NAME = _re(
    rf"\b(?:with|as|named|called|labell?ed|headed|marked|be|like|by|"
    rf"form)\b[^.\n]{{0,30}}?(?P<name>{Q}|(?i:section|chapter|part|paragraph|day|verse|"
    rf"step) ?(?:x|1|i|n)\b)"
)
_POSTSCRIPT = _re(r"\b(?P<mark>P\.? ?P\.? ?S\b\.?|P\. ?S\.?)")
_RESPONSES = _re(
    r"\b(?P<count>two|2)\b[^.\n]{0,80}(?:responses|answers|versions|poems|songs|critiques|jokes|"
    r"stories|limericks|haikus|movies|slogans|tweets|options|pitches|letters|emails|ads|riddles|"
    r"descriptions|variants|paragraphs|\w+s)\b"
)
_SEPARATED = _re(r"\b(?:separat\w*|divid\w*|split|delimit\w*)\b")
_THREE = _re(r"(?<!\*)\*\*\*(?!\*)|\b(?:3|three) (?:aste?risks?|asterisk symbols?|stars)\b")
_SIX = _re(r"(?<!\*)\*{6}(?!\*)|\b(?:6|six) (?:aste?risks?|asterisk symbols?|stars)\b")
_JSON = _re(
    r"\b(?:in|as|into|using|to|is|be|contain(?:s|ing)?|with|return|output|valid)\b(?: (?:an?|the|"
    r"one|just|only|single|valid|proper|raw|pure|strict|well-formed|entire|block|of|be|form|"
    r"format)){0,5} json\b(?! (?:schemas?|parsers?|files?|librar\w+|apis?|path|with (?:yaml|xml)))"
)
_JSON_TOPIC = _re(
    r"\b(?:script|program|function|code|app|tool|api|endpoint|parse|convert|how to|learn|library|"
    r"between|use of|explain|describe|compare)\b"
)
_ADDS = _re(
    r"\b(?:add|include|postscript|post script|starts?|starting|with|write|have|finish|end)\b"
)
_JSON_VERB = _re(
    r"\b(?:wrap|respon\w+|answer|output|return|format|provide|give|reply|write|print|produce|"
    r"generate|entire|everything|present|list|put|use|json format)\b"
)
_CHOICE = _re(
    r"\b(?:answer|respond|reply|choose|pick|say|return|output)\b(?P<how>[^.\n]{0,90}?)"
    rf":? ?(?P<terms>{Q}(?:(?:, ?(?:and |or )?| or | / |/|,){Q}){{1,9}})"
)


def _read_format(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    wrapped = _WRAPPED.search(text)
    if wrapped and not _nested(text[: wrapped.start()]):
        around = text[max(0, wrapped.start() - 60) : wrapped.end()]
        part = _has(rf"\b(?:{_PART}|each|every|keywords?|words?)\b", wrapped["what"])
        whole = _has(rf"\b(?:it|everything|entire|whole|{_ANSWER})\b", around)
        if whole and (not part or _has_whole(wrapped["what"])):
            yield Constraint("quotes")
    title = _TITLE.search(text)
    if title and not _NEGATED.search(text[: title.start()]):
        yield Constraint("title")
    count = _HIGHLIGHT_COUNT.search(text)
    if count and _HIGHLIGHT.search(text) and _STARRED.search(text):
        bounds = _at_least(_bounds(count, text[: count.start()]))
        if bounds:
            yield Constraint("highlights", *bounds)
    for match in _PLACEHOLDER.finditer(text) if "[" in text or "bracket" in text else ():
        before = text[: match.start()]
        if match["one"]:
            added = _has(r"\b(?:include|add|contain|use|with|have) $", before)
            bounds = (1, None) if added else None
        else:
            bounds = _at_least(_bounds(match, before))
        if bounds:
            yield Constraint("placeholders", *bounds)
    marks = list(_POSTSCRIPT.finditer(text))
    if marks and _ADDS.search(text) and not _NEGATED.search(text[: marks[0].start()]):
        letters = re.sub(r"\W", "", marks[-1]["mark"]).upper()
        yield Constraint("postscript", terms=("P.P.S" if letters == "PPS" else "P.S.",))
    json = _JSON.search(text)
    if json and _JSON_VERB.search(text):
        before = text[: json.start()]
        if not _nested(before) and not _JSON_TOPIC.search(before):
            yield Constraint("json")
    for match in _CHOICE.finditer(text):
        limited = _has(r"\b(?:one of|following (?:options|phrases|answers))\b", match["how"])
        spare = re.sub(r"\W|with|using|by|saying|only|either", "", match["how"])
        terms = tuple(map(sentence.unquote, re.findall(Q, match["terms"])))
        if (limited or (not spare and _has(rf"or ?{Q}$", match["terms"]))) and all(terms):
            yield Constraint("choice", terms=terms)


def _read_parts(sentence: _Sentence) -> Iterator[Constraint]:
    """Read parts that a row of asterisks separates; their number may be in another sentence."""
    text = sentence.text
    separated, near = _SEPARATED.search(text), sentence.around(200, 200)
    if separated and _SIX.search(near) and not _THREE.search(text):
        if _RESPONSES.search(sentence.around(400)):
            yield Constraint("responses", 2, 2, ("******",))
    elif separated and _THREE.search(near):
        whole = sentence.around(600)
        mark = len(whole) - len(text) + separated.start()
        counts = [
            one
            for one in _SECTION_COUNT.finditer(whole)
            # Sections to highlight are no parts.
            if not _HIGHLIGHT.search(whole[max(0, one.start() - 30) : one.start()])
        ]
        nearest = min(counts, key=lambda one: abs(one.start() - mark), default=None)
        bounds = _bounds(nearest, whole[: nearest.start()]) if nearest else None
        if bounds:
            low, high = bounds
            yield Constraint("parts", high if low < 0 and high else low, high, ("***",))
    named = _SECTION_NAME.search(text) if _has(r"\bsections?\b", text) else None
    if named and not _THREE.search(near):
        stem = re.fullmatch(r"([A-Za-z]+) ?(?:X|x|1|I|i|N|n)?", sentence.term(named["name"]))
        whole = sentence.around(300, 100)
        counts = list(_SECTION_COUNT.finditer(whole))
        bounds = _bounds(counts[-1], whole[: counts[-1].start()]) if counts else None
        if stem and bounds:
            low, high = bounds
            yield Constraint("sections", high if low < 0 and high else low, None, (stem[1],))


# The request repeated

_REPEATS = _re(
    r"\b(?:repeat|restate)\b[^.\n]{0,60}?\b(?:request|prompt|question|query|sentence above|above|"
    r"below|instructions?)\b"
)
_FIRST = _re(
    r"\b(?:first|before|word for word|without (?:any )?chang\w*|exactly|"
    r"at the (?:very )?(?:start|beginning)|start by)\b"
)
_ABOUT_REPEAT = _re(
    r"\b(?:repeat|repeating|do not (?:say|output|change|add)|don't (?:say|output|change|add)|"
    r"word for word|then give your answer|does not include this)\b"
)


def _read_repeat(masked: str, readable: str, quotes: list[str]) -> Iterator[Constraint]:
    """Read the demand to repeat the request first: everything but the sentences on repeating."""
    found = _REPEATS.search(readable)
    if not found:
        return
    starts = [(text, start) for text, start in _split_sentences(masked)]
    about = [(text, start) for text, start in starts if _ABOUT_REPEAT.search(text)]
    here = [text for text, start in about if start <= found.start() <= start + len(text)]
    if (
        not here
        or not _FIRST.search(here[0])
        or re.search(r"\bonly (?:contains|includes)\b", masked)
    ):
        return
    first, last = about[0], about[-1]
    end = last[1] + len(last[0])
    before, after = masked[: first[1]].strip(), masked[end:].strip(" .)\n")
    prompt = before if len(before) >= len(after) else masked[end:].strip()
    if (before and after) or not 0 < len(prompt) <= 4_000:
        return  # which of the two is the request is open
    yield Constraint("repeat", terms=(_unmask(prompt, quotes),))


_READERS = (
    _read_counts,
    _read_terms,
    _read_letters,
    _read_marks,
    _read_case,
    _read_ends,
    _read_format,
    _read_parts,
)
