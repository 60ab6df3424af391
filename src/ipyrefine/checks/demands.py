"""Read the literal demands out of a request in English.

A demand is read where its sentence directs the writer ("Use …", "Your answer must …") and the
answer itself is what it is about. Quoted passages, code, and the text that a request brings along
("Rewrite the following email: …") are never read. Whatever is vague, conditional or about
something else is left to the judge. Every pattern is bounded, so a request of any kind is read in
time linear in its length.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import NamedTuple

from ipyrefine.checks.constraints import LANGUAGES, Constraint

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
    r"|(?<![\w'])'[^'\n]{1,300}'(?!\w)"
    r"|`[^`\n]{1,300}`"
)
_STRAIGHT = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "\u00a0": " "})  # noqa: RUF001


def _words(text: str) -> list[str]:
    return text.split()


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
    r"introduction|lyrics|words|lecture|toast|blurb|whole thing|length|sentence|template|product"
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
    r"write|rewrite|re-?write|re-?create|create|compose|draft|make|give|generate|produce|prepare|"
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
_DIRECTIVE = re.compile(
    rf"^\W{{0,8}}{_OPENER}(?:{_VERBS})\b"
    r"|\b(?:can|could|would|will) you\b"
    rf"|(?:\bplease|:) (?:{_VERBS})\b|(?:,|;|\band) (?:{_VERBS}) (?:your|the (?:entire|whole)|it)\b"
    r"|\b(?:i|we)(?: just| only| really)? (?:need|want|would like|would love|am looking|"
    r"was hoping|do not want|don't want|expect|require|'d like)\b|\b(?:i|we)'d like\b"
    rf"|\b(?:your|the|this|my) (?:[\w-]+ ){{0,4}}?(?:{_ANSWER}|words?|letters?|phrases?|keywords?|"
    r"[\w-]+)(?: \([^)]{1,60}\))? "
    r"(?:should|must|needs?|has to|have to|is to|shall|may not|can ?not|can't|will|may only)\b"
    r"|\b(?:it|there|you|they|that) (?:also )?"
    r"(?:should|must|needs? to|has to|have to|may not|may only|can ?not|can't|shall)\b"
    rf"|\b(?:words?|letters?|phrases?|keywords?|sections|paragraphs|parts) (?:{Q}[, ]{{0,2}}|"
    r"[\w-]+[, ]{1,2}|are |with ){0,12}(?:should|must|needs? to|have to|has to|separated)\b",
    re.IGNORECASE,
)
_NARRATIVE = re.compile(
    r"^\W{0,8}(?:\d{1,2}[.)] {0,2})?(?:(?:i|we|he|she|they|you) (?:\w+ )?"
    r"(?:wrote|have written|had|read|said|made|got|told|found|know|think|saw|noticed|used)\b"
    r"|(?:my|our|his|her|their) (?!response|answer|entire|whole)\w+|if|when|whenever|unless|"
    r"in case|suppose|whether|for (?:each|every)|each|every|once you)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"^\W{0,8}(?:\d{1,2}[.)] {0,2})?(?:how|what|why|who|whom|whose|which|where|when|is|are|am|"
    r"was|were|do|does|did|has|"
    r"have|should|shall)\b",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:ideally|preferably|if possible|maybe|perhaps|try to|feel free|optional(?:ly)?|"
    r"recommended|if you (?:can|like|want)|it would be (?:nice|good|great)|for example, you)\b",
    re.IGNORECASE,
)
_MATERIAL = re.compile(
    r"\b(?:following|below|this|these|that follows|here is|here's)\b[^.\n]{0,60}?"
    rf"\b(?:{_TEXT}|review|conversation|dialogue|data|draft|statement|notes|content|code|excerpt|"
    r"minutes|comment|question|prompt|feedback|ticket|log|bio|resume|ad|tagline|joke|riddle)\b"
    r"[^.\n]{0,80}(?:[.:]|$)|\b(?:original|input|context|passage|text|article|source|transcript|"
    r"email|synopsis)\s{0,2}:",
    re.IGNORECASE,
)
_REPEAT = re.compile(r"\b(?:repeat|restate|copy)\b", re.IGNORECASE)


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
        line_end = masked.find("\n", match.end())
        line_end = len(masked) if line_end < 0 else line_end
        rest = masked[match.end() : line_end].strip()
        if match[0].rstrip().endswith(":") and rest:
            if re.match(Q, rest):  # the text is quoted, and so hidden already
                continue
            if re.match(rf"(?:{NUM}|[\w']+)(?:,| and| or)", rest):  # a list of words
                continue
            return masked[: match.end()]
        following = masked[line_end:].lstrip()
        if re.match(rf"{Q}|[*<\[]", following) or _REPEAT.search(match[0]):
            continue
        if not match[0].rstrip().endswith(":") and "\n\n" not in masked[match.end() :]:
            continue
        if _REPEAT.search(masked[: match.start()][-80:]):
            continue
        blank = masked.find("\n\n", match.end())
        cut = match.end() if match[0].rstrip().endswith(":") else blank
        if cut < 0:
            continue
        # A last paragraph that speaks of "your response" is the request again.
        tail = masked.rfind("\n\n")
        again = tail > cut and re.match(
            r"\s*(?:please )?(?:your (?:entire |whole )?(?:response|answer|reply|output)\b|"
            r"in your response\b)",
            masked[tail:],
            re.IGNORECASE,
        )
        return masked[:cut] + (masked[tail:] if again else "")
    return masked


_BREAK = re.compile(rf"(?<=[.!?;])[ \t]+(?=[A-Z\d({Q[1:-1]}])|[;\n]")
_QUOTED_STOP = re.compile(rf"({Q})[ \t]+(?=(?:No|Do|Your|The|Use|Make|Don't|Nothing|In|It) )")


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


_FRAGMENT = re.compile(
    r"^\W{0,6}(?:length\b|(?:word|character) (?:limit|count)\b|format\b|must |should |"
    r"max(?:imum)?\.?|min(?:imum)?\.?|at (?:least|most)|no |all |only |exactly|not |"
    r"nothing |between |up to |fewer |less |more |under |without |in |json|\d|"
    rf"(?:{NUM}) )",
    re.IGNORECASE,
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
_COUNT = re.compile(
    rf"(?<![\w.$-]){_AMOUNT}(?P<gap>[ -](?:(?:different|separate|short|long|full|complete|markdown|"
    rf"distinct|concise|total|clear|simple) ){{0,2}}){_UNIT}{_SUFFIX}",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"(?:\bnot|n't|\bno|\bnever|\bnothing|\bwithout)(?: [\w']+){0,4} ?$", re.IGNORECASE
)


def _bounds(match: re.Match[str], before: str) -> tuple[int, int | None] | None:
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


# Counts of words, sentences, paragraphs, lines, bullets and characters

_FRAME = re.compile(
    r"(?:^|[,;:(–-]|\b(?:with|in|into|using|use|uses|of|within|to|be|contain(?:s|ing)?|"  # noqa: RUF001
    r"include(?:s|"
    r"d)?|including|have|has|having|write|writes|provide|give|me|generate|list|create|compose|add|"
    r"produce|draft|make|answer|respond|reply|limit|name|only|and|also|but|it|is|are|that's|than|a|"
    r"length|just|want|need|exceed|consist(?:s|ing)? of|your|anything|something|nothing|one|it's|"
    r"may|not|should be|must be|the|by|as|or|points|for|text))[ (]{0,2}$",
    re.IGNORECASE,
)
_LOCAL = re.compile(
    r"\b(?:who|whom|whose|where|when|while|how to (?:write|make|compose|draft|create|structure))\b"
    r"(?:\W+\w+){0,6}\W*$"
    r"|\bhow to (?:write|compose|draft|structure|edit|format)\b"
    r"|\b(?:in|on|for|to|by) which\b"
    r"|\b(?:was|were|had|did|used|wrote|limited|said|says|say|tells|told|asks|called)\b"
    r"(?:\W+\w+){0,3}\W*$"
    r"|\b(?:may|might|could)(?! not\b| you\b| only\b)(?:\W+\w+){0,3}\W*$"
    r"|\b(?:each(?! separated)|every|per|any)\b(?:\W+\w+){0,8}\W*$"
    r"|\b(?:about|around|approximately|roughly|nearly|almost|like|such as|e\.g\.|i\.e\.|first|last|"
    r"next|opening|previous|following|another|these|those|other|of the)\W*$",
    re.IGNORECASE,
)
_OF_OTHERS = re.compile(
    rf"\b(?:{_PART}|{_TEXT})\b(?: (?:that|which))?(?: (?:is|are|be|should be|must be|with|of|has|"
    r"have|having|contains?|containing|includes?|including|under|up|using|to|must|should|shall|"
    r"must "
    r"have|should have|must contain|should contain)){1,2} ?$",
    re.IGNORECASE,
)
_HEAD_OBJECT = re.compile(
    rf"^\W{{0,8}}{_OPENER}(?:(?:can|could|would|will) you (?:please )?)?"
    r"(?:i(?: would|'d)? (?:need|want|like) )?"
    r"(?:write|compose|draft|create|make|give|generate|produce|prepare|provide|craft|invent|need|"
    r"come up with|want)? ?(?:me |us |up )?(?:an?|the|one|two|your|my) "
    r"(?:(?!(?:with|of|in|that|which|and|about|for|to|on|from|by|whose) )[\w-]+ ){0,4}"
    r"(?:[\w-]+)(?: about(?: (?!with |and |of )[\w-]+){1,8})? ?"
    r"(?:(?:that|which) )?(?:is |are |has |have |with |of |in |contains |containing |using |to |"
    r"includes |including )?$",
    re.IGNORECASE,
)
_COMPOUND_HEAD = re.compile(
    r"(?:\b(?:write|compose|draft|create|make|give|generate|produce|prepare|provide|craft|need|"
    r"want|"
    r"like|come up with)(?: me| us| up)? (?:an?|one|the|your) (?:[\w-]+,? ){0,3}|"
    r"\b(?:in|as|into|with) an? (?:[\w-]+ ){0,2})$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"^ ?(?:per\b|each (?!separated)|(?:or so|ish)\b|a (?:day|line|minute)|apart|of (?!text)|"
    r"(?:or|and) (?:phrases|numbers)|from\b|away|long (?:article|essay|book|story)|limit\b|below|"
    r"above|old)",
    re.IGNORECASE,
)
# "Write 2 sentences on dogs and a list of cats": the whole may have more than 2 sentences.
_AND_MORE = re.compile(
    rf"^[^.;(]{{0,50}}?\b(?:and|plus|then)(?: then)? (?:an?|another|{NUM})[ -]", re.IGNORECASE
)
_SECOND = re.compile(
    r"\b(?:and|plus) (?:an?|another|the|one) (?:[\w-]+ ){1,4}(?:of|with|in|using) $", re.IGNORECASE
)
_AFTER_WORDS = re.compile(
    r"^ (?:that|which|in (?:all|capital|upper|lower|\w+ case|bold|french|german|spanish|italics|"
    r"each|every|the)|starting|beginning|ending|related|to describe|are|is|were|was|you)",
    re.IGNORECASE,
)
_AFTER_PART = re.compile(
    r"^ (?:about|on|describing|explaining|that|which|from|at the|before|after|introducing|listing|"
    r"summari[sz]ing|to|in the)\b",
    re.IGNORECASE,
)
_KIND_OF_UNIT = {
    "word": "words",
    "sent": "sentences",
    "para": "paragraphs",
    "line": "lines",
    "bull": "bullets",
    "char": "characters",
}


def _read_counts(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    for match in _COUNT.finditer(text):
        before, after = text[: match.start()], text[match.end() : match.end() + 60]
        bounds = _bounds(match, before)
        kind = _KIND_OF_UNIT[match["unit"].lower()[:4]]
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
    if _LOCAL.search(before) or _AFTER.match(after):
        return False
    if bounds[1] is not None and kind != "bullets":
        bare = bounds[0] in (-1, bounds[1])
        twice = re.search(rf"\b{match['unit'][:4]}[^.;]{{0,60}}\band $", before, re.IGNORECASE)
        if _AND_MORE.search(after) or _SECOND.search(before) or (bare and twice):
            return False
    tail = before[-200:]
    compound = match["gap"].startswith("-") or (
        not match["unit"].lower().endswith("s")
        and match["number"].lower() not in ("1", "one", "a single")
        and bounds[0] < 0
    )
    if compound:
        head = _COMPOUND_HEAD.search(tail)
        return (
            bool(head)
            and bool(re.match(r"[ -]\w", after))
            and bool(
                re.match(
                    r"^\W{0,8}" + _OPENER + "(?:" + _VERBS + r"|i|can|could|would)\b", before, re.I
                )
            )
            and not re.search(r"\b(?:of|from|about|for|to) an? (?:[\w-]+ )?$", tail)
        )
    if not before.strip(" -*•"):
        return bool(
            re.match(
                r"^\s*(?:[,.;:!)(]|$|please|max|min|or|in (?:total|length|all|english)|and|"
                r"total|only)",
                after,
                re.IGNORECASE,
            )
        )
    if not _FRAME.search(tail):
        return False
    if kind in ("words", "characters") and _AFTER_WORDS.match(after):
        return False
    if _OF_OTHERS.search(tail) and not _HEAD_OBJECT.match(before) and not _has_subject(tail):
        return False
    if re.search(r"\b(?:that|which) (?:has|have|contains?|includes?|is|are) $", tail) and re.search(
        rf"\b(?:about|of) (?:an?|the) (?:\w+ )?(?:{_TEXT}|{_PART}) (?:that|which) \w+ $", tail
    ):
        return False
    if re.search(r"\b(?:contains|has|includes|uses|is|are) $", tail) and not re.search(
        r"\b(?:(?:that|which|and|it) (?:also )?|(?:sure|ensure)(?: that)? (?:your|"
        r"the) (?:\w+ ){1,3})"
        r"(?:contains|has|includes|uses|is|are) $",
        tail,
    ):
        return False
    partial = bounds[1] is not None and kind != "words"
    adds = re.search(r"\b(?:include|add|insert|mention|put)s? $", tail, re.IGNORECASE)
    return not (partial and adds and _AFTER_PART.match(after))


def _has_subject(tail: str) -> bool:
    """Return whether the answer is the subject just before: "your response must contain"."""
    return bool(
        re.search(
            r"\b(?:keep|limit|restrict|cut|trim) "
            r"(?:it|(?:your|the|this|my)(?: [\w-]+){1,3}) (?:to|within|under) $"
            rf"|\b(?:your|the|this|my|it) ?(?:(?:entire|whole|final|full) )?(?:{_ANSWER})?"
            r" ?(?:(?:should|must|needs? to|has to|have to|is to|shall)(?: only)? "
            r"(?:be|have|contain|include|consist of|use|exceed)(?: in)? )$",
            tail,
            re.IGNORECASE,
        )
    )


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
_FORBID = re.compile(
    rf"\b{_NEGATIVE} (?:ever )?(?P<verb>{_USE} |(?:the use|use|usage|using|mention) of )?"
    rf"(?P<the>{_THE})(?P<noun>{_NOUN})?(?: like)?:? ?{_LIST}(?={_WHERE}| {_TIMES})",
    re.IGNORECASE,
)
_REQUIRE = re.compile(
    rf"\b(?P<verb>{_USE}|mentioning|with) (?P<the>{_THE})(?P<noun>{_NOUN}):? ?{_LIST}"
    rf"(?:(?={_WHERE})|(?=\s{{0,2}}{_TIMES}))",
    re.IGNORECASE,
)
_MENTION = re.compile(
    rf"\b(?P<verb>include|includes|contain|contains|mention|mentions|mentioning|incorporate|"
    rf"say|use) "
    rf"(?P<terms>{Q}(?:(?:, ?(?:and )?| and ){Q}){{0,30}})(?={_WHERE}| {_TIMES})",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    rf"\b(?:the |both )?(?P<the>{_THE})(?P<noun>{_NOUN}) {_LIST} "
    r"(?:(?P<aux>should|must|needs? to|has to|have to|shall|can|may|does|do|doesn't|don't|"
    r"shouldn't|mustn't|can ?not|can't)"
    r"(?P<not> ?not| never)? )?(?:also )?(?:be |been )?"
    r"(?P<occur>appears?|used?|included?|mentioned|occurs?|shows? up|present|be found|found)\b"
    rf"(?: (?:in|throughout) (?:your|the) (?:[\w-]+ ?){{1,3}},?)?(?: at all)?(?: {_TIMES})?",
    re.IGNORECASE,
)
_TIMES_AFTER = re.compile(
    rf"^,?(?: (?:should |must )?(?:to )?(?:appears? )?(?:in|throughout) (?:your|the) "
    rf"(?:[\w-]+ ){{0,2}}[\w-]+,?)? ?{_TIMES}",
    re.IGNORECASE,
)
_ADVERBS = {"once": 1, "twice": 2, "thrice": 3}


def _times_of(match: re.Match[str] | None, before: str) -> tuple[int, int | None] | None:
    """Return how often something is demanded; a bare "twice" is read as at least twice."""
    if match is None or not match["times"]:
        return None
    if match["adverb"]:
        number = _ADVERBS[match["adverb"].lower()]
        negated = bool(_NEGATED.search(before))
        return _adverb_bounds(match["times"].lower(), number, negated)
    bounds = _bounds(match, before)
    return (bounds[1] or 0, None) if bounds and bounds[0] < 0 else bounds


def _adverb_bounds(times: str, number: int, negated: bool) -> tuple[int, int | None] | None:
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


_OPENS = re.compile(
    r"\b(?:start|begin|open|end|finish|close|conclude|sign|answer|respond|reply|"
    r"replace)\w*\b[^.]{0,60}$",
    re.IGNORECASE,
)
_PLAYS = re.compile(r"\b(?:play|pun|rhym\w*|associat\w*|do|begin\w*|synonym\w*)\W*$", re.IGNORECASE)
# "sentence one" and "phrase structure" name no word; without quotes only these do.
_NAMING = re.compile(r"(?:key ?)?words?$|terms?$|phrases?$", re.IGNORECASE)


def _read_terms(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    taken: list[tuple[int, int]] = []

    def free(match: re.Match[str]) -> bool:
        if any(match.start() < end and start < match.end() for start, end in taken):
            return False
        taken.append(match.span())
        return True

    for match in _PASSIVE.finditer(text):
        terms = _terms(sentence, match["terms"], _naming(match))
        before = text[: match.start()]
        if not terms or _nested(before) or (not match["aux"] and not _assures(before)):
            continue
        if (
            match["aux"]
            and match["aux"].lower() in ("can", "may", "do", "does")
            and not match["not"]
        ):
            continue
        denied = match["not"] or (match["aux"] or "").lower().endswith(("n't", "cannot", "can not"))
        bounds = _times_of(match, "not" if denied else "")
        if denied:
            bounds = bounds if match["times"] else (0, 0)
        elif not match["times"]:
            bounds = (1, None)
        if bounds and free(match):
            yield from _contained(terms, bounds)
    for match in _FORBID.finditer(text):
        terms = _terms(sentence, match["terms"], _naming(match))
        if not terms or _nested(text[: match.start()]):
            continue
        if not (
            match["verb"] or match[0].lower().startswith(("avoid", "without", "exclude", "omit"))
        ):
            continue
        bounds = _times_of(_TIMES_AFTER.match(text[match.end() :]), "not")
        if free(match):
            exceeds = _TIMES_AFTER.match(text[match.end() :])
            if exceeds and bounds is None:
                continue
            yield from _contained(terms, bounds or (0, 0))
    for pattern in (_REQUIRE, _MENTION):
        for match in pattern.finditer(text):
            noun = _naming(match) if pattern is _REQUIRE else None
            before = text[: match.start()]
            terms = _terms(sentence, match["terms"], noun)
            if not terms or _nested(before) or _NEGATED.search(before):
                continue
            if match["verb"].lower() == "with" and (_OPENS.search(before) or _PLAYS.search(before)):
                continue
            if (
                pattern is _MENTION
                and match["verb"].lower() in ("use", "say")
                and not _imperative(before)
            ):
                continue
            if re.search(
                r"\b(?:any|either|one|some) (?:of )?", match.groupdict().get("the") or "", re.I
            ):
                continue
            after = _TIMES_AFTER.match(text[match.end() :])
            bounds = _times_of(after, "") if after else (1, None)
            if bounds and free(match):
                yield from _contained(terms, bounds)


def _naming(match: re.Match[str]) -> str | None:
    noun = match["noun"]
    return noun if noun and _NAMING.search(noun) else None


def _nested(before: str) -> bool:
    """Return whether a clause just before speaks of somebody or something else."""
    return bool(
        re.search(
            r"\b(?:who|whom|whose|where|when|if|why|people|titled|called|each|every|named)\b"
            r"(?:\W+\w+){0,4}\W*$|\bhow to\b(?:\W+\w+){0,3}\W*$|\b(?:may|might|could)\W*$",
            before,
            re.IGNORECASE,
        )
    )


def _imperative(before: str) -> bool:
    return bool(re.search(r"(?:^|[.,;:]|\b(?:and|please|also|to|must|should))\s*$", before, re.I))


def _assures(before: str) -> bool:
    return bool(re.search(r"\b(?:sure|ensure|that|have)\W*$", before, re.IGNORECASE))


def _contained(terms: Iterable[str], bounds: tuple[int, int | None]) -> Iterator[Constraint]:
    low, high = bounds
    for term in terms:
        yield Constraint("contains", low, high, (term,))


# Letters, punctuation and case

_LETTER = re.compile(rf"\bletters? (?P<letter>{Q}|[A-Za-z](?![\w']))", re.IGNORECASE)
_LETTER_TIMES = re.compile(
    rf"^(?: (?:should|must|needs? to|has to|have to|will|can|may))?(?P<not> ?not| never|n't)?"
    r"(?: (?:only|be used|be included|show up|shows up|appears?|occurs?|used|present|is used|be))*"
    r"(?: in (?:your|the) (?:[\w-]+ ){0,2}?[\w-]+)?"
    rf",?(?: (?:with )?{_TIMES})?",
    re.IGNORECASE,
)
_EXCLAIM = re.compile(
    rf"\b{_AMOUNT} (?P<mark>exclamation (?:marks?|points?)|question marks?|commas?|semicolons?|"
    rf"hyphens?)",
    re.IGNORECASE,
)
_MARK_OF = {"c": ",", "e": "!", "q": "?", "s": ";", "h": "-"}
_NO_MARK = re.compile(
    rf"\b(?:{_NEGATIVE}|no|zero)(?: (?:{_USE}|the|any|use|usage|of|even|a|single|be|there|or|"
    r"all|from|have)){0,6} "
    r"(?P<mark>commas?|exclamation (?:marks?|points?)|question marks?|semicolons?|hyphens?|"
    r"em[- ]dash(?:es)?)\b"
    r"|\bcomma-free\b",
    re.IGNORECASE,
)
_FILL = (
    r"(?: (?:of|the|letters?|in|your|entire|whole|response|answer|reply|output|text|it|be|is|are|"
    r"should|must|to|use|written|using|english|and|all|only|small|words|a)){0,10},? "
)
_SPREAD = r"\b(?:all|only|entirely|completely|everything|in|be|use|using)"
_LOWER = re.compile(
    rf"{_SPREAD}{_FILL}(?:lower ?-?case|small letters)\b|^\W{{0,3}}lower ?-?case only\b"
    rf"|\b(?:{_NEGATIVE}|no)(?: (?:use|any|contain|include|a|single|letter|have|using)){{0,4}} "
    r"(?:capital letters?|capitals|capitali[sz]ation|upper ?-?case)\b(?! words)"
    r"|\bnot a single letter\b[\w ]{0,60}\bcapitali[sz]ed\b",
    re.IGNORECASE,
)
_UPPER = re.compile(
    rf"{_SPREAD}{_FILL}(?:upper ?-?case|capital letters|capitals|caps)\b"
    r"|\bcapitali[sz]e (?:all|every|each)(?: of)?(?: your| the)? (?:words|letters?|word)\b"
    rf"|\b(?:{_NEGATIVE}|no)(?: (?:use|any|contain|include|a|single|letter|have|using)){{0,4}} "
    r"lower ?-?case\b",
    re.IGNORECASE,
)
_CAPITAL_WORDS = re.compile(
    r"\b(?:words?|phrases)\b(?: or phrases?)?[\w ]{0,20}\b(?:all[ -])?(?:capital letters|"
    r"capitals|caps|"
    r"upper ?-?case|capitali[sz]ed)\b|\b(?:all[ -]caps|capitali[sz]ed|all[ -]capital|"
    r"fully capitali[sz]ed)"
    r" words?\b|\b(?:capital|upper ?-?case) words?\b",
    re.IGNORECASE,
)
_ANY_TIMES = re.compile(rf"\b{_TIMES}", re.IGNORECASE)
_ANY_AMOUNT = re.compile(
    rf"\b{_AMOUNT} (?:(?:different|unique|fully|all|full) ){{0,2}}(?:words?|capital|"
    rf"capitali[sz]ed|upper|all[ -]ca)",
    re.IGNORECASE,
)


def _read_letters(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    for match in _LETTER.finditer(text):
        letter = match["letter"]
        letter = sentence.unquote(letter) if re.fullmatch(Q, letter) else letter
        before, after = text[: match.start()], text[match.end() :]
        if len(letter) != 1 or letter.isspace() or _nested(before):
            continue
        if re.match(r" ?(?:through|to|and|or|until|,|-|–)", after):  # noqa: RUF001
            continue
        if re.search(
            r"\b(?:about|of|starts?|begins?|ends?|starting|beginning|ending|"
            r"with)(?: with)?(?: the| a)? $",
            before,
            re.I,
        ) and not re.search(r"\b(?:without|use of|using)\b[\w ]{0,10}$", before, re.I):
            continue
        tail = _LETTER_TIMES.match(after)
        denied = bool(tail and tail["not"]) or bool(_NEGATED.search(before))
        denied = denied or bool(re.search(r"\b(?:avoid|omit)(?: using)?(?: the)? $", before, re.I))
        bounds = _times_of(tail, "not" if denied else "")
        if bounds is None and (tail is None or not tail["times"]):
            required = re.search(rf"\b{_USE}(?: the| a)? $", before, re.IGNORECASE)
            bounds = (0, 0) if denied else (1, None) if required else None
        if bounds:
            yield Constraint("letters", *bounds, (letter.lower(),))


def _read_marks(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    for match in _NO_MARK.finditer(text):
        if not _nested(text[: match.start()]) and not re.match(
            r" (?:after|before|between|in the (?:title|first)|splice)", text[match.end() :]
        ):
            mark = (match["mark"] or "comma").lower()
            yield Constraint(
                "punctuation", 0, 0, ("—" if mark.startswith("em") else _MARK_OF[mark[0]],)
            )
    for match in _EXCLAIM.finditer(text):
        bounds = _bounds(match, text[: match.start()])
        if bounds and not _nested(text[: match.start()]):
            low, high = bounds
            if low < 0:
                low, high = high or 0, None
            yield Constraint("punctuation", low, high, (_MARK_OF[match["mark"][0].lower()],))


def _read_case(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    words = _CAPITAL_WORDS.search(text)
    if words and not re.match(r"capitali[sz]e (?:all|every)", words[0], re.I):
        amount = _ANY_AMOUNT.search(text) or _ANY_TIMES.search(text)
        if amount and abs(amount.start() - words.start()) < 150:
            before = text[: amount.start()]
            bounds = (
                _times_of(amount, before)
                if "times" in amount.groupdict()
                else _bounds(amount, before)
            )
            if bounds:
                low, high = bounds
                yield Constraint("capitalised words", *((high or 0, None) if low < 0 else bounds))
            return
    part = re.compile(
        rf"\b(?:{_PART}|first letter|words?|name|keywords?)\b(?! in the|"
        rf" should be in english)[^,.]{{0,20}}$",
        re.I,
    )
    for kind, pattern in (("lowercase", _LOWER), ("uppercase", _UPPER)):
        match = pattern.search(text)
        if not match or _nested(text[: match.start()]):
            continue
        if re.match(
            r" (?:words?|for (?:the )?(?:title|heading|emphasis)|at the|titles?|headings?)",
            text[match.end() :],
            re.I,
        ):
            continue
        if part.search(text[: match.start()]) and not _has_whole(text):
            continue
        owner = re.search(r"\b(?:all|the|any|these|those) ([\w-]+) $", text[: match.start()], re.I)
        if owner and not re.fullmatch(rf"{_ANSWER}|letters", owner[1], re.IGNORECASE):
            continue
        yield Constraint(kind)
        return


def _has_whole(text: str) -> bool:
    return bool(re.search(rf"\b(?:entire|whole|all of|your (?:{_ANSWER}))\b", text, re.IGNORECASE))


# Start, end and format

_OPENING = r"(?:your |the |this |my )?(?:entire |whole )?(?:[\w-]+ ){0,2}?(?:it |them )?"
_START = re.compile(
    rf"\b(?:start|begin|open|starts|begins) {_OPENING}(?:with|by saying)"
    rf"(?: exactly)?(?: the)?(?: exact)?(?: {_NOUN})?(?: exactly)?:? ?(?P<term>{Q})",
    re.IGNORECASE,
)
_END = re.compile(
    rf"\b(?:end|finish|close|conclude|sign off|ends|finishes|closes|concludes) {_OPENING}"
    rf"(?:with|by saying|in)(?: exactly)?(?: the| this| these)?(?: exact)?(?: (?:{_NOUN}|"
    rf"statement|question|"
    rf"line))?(?: exactly| as is)?:?\s{{0,3}}(?P<term>{Q})",
    re.IGNORECASE,
)
_END_BARE = re.compile(
    rf"\b(?:end|finish|close|conclude) {_OPENING}with(?: the|"
    rf" this)? exact (?:{_NOUN})(?: of)?:?\s{{0,3}}"
    r"(?P<term>[A-Z][^\n.?!:]{2,120}[.?!]?)(?:\s|$)",
    re.IGNORECASE,
)
_END_NEXT = re.compile(
    rf"\b(?:end|finish|close|conclude) {_OPENING}with(?: the| this)?(?: exact)?(?: {_NOUN})?:\s*$",
    re.IGNORECASE,
)
_OTHER_END = re.compile(
    r"\b(?:each|every|paragraphs?|lines?|sentences?|stanzas?|sections?|words?|title|verses?|"
    r"postscript|post script|p\.s|names?)\b[\w ,]{0,40}$",
    re.IGNORECASE,
)
_NTH = {
    word: number
    for number, word in enumerate(
        _words("first second third fourth fifth sixth seventh eighth ninth tenth"),
        start=1,
    )
}
_ORDINAL = rf"(?P<nth>\d{{1,2}}(?:st|nd|rd|th)|{'|'.join(_NTH)})"
_FIRST_WORD = (
    re.compile(
        rf"\b{_ORDINAL} paragraph (?:must|should|has to|needs to|shall) (?:start|begin) with "
        rf"(?:the )?(?:word )?(?P<term>{_ITEM})(?={_WHERE})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:start|begin) (?:the |your )?{_ORDINAL} paragraph with (?:the )?(?:word )?"
        rf"(?P<term>{_ITEM})(?={_WHERE})",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\bfirst word of (?:the )?{_ORDINAL} paragraph (?:must|should|has to) be (?:the word )?"
        rf"(?P<term>{_ITEM})(?={_WHERE})",
        re.IGNORECASE,
    ),
)


def _read_ends(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    for kind, pattern in (("start", _START), ("end", _END)):
        for match in pattern.finditer(text):
            before = text[: match.start()]
            if _OTHER_END.search(before) or _OTHER_END.search(match[0][:-1].partition("with")[0]):
                continue
            if (
                _nested(before)
                or _NEGATED.search(before)
                or (
                    re.search(r"\b(?:that|which) $", before)
                    and not re.search(rf"\b(?:{_ANSWER}) (?:that|which) $", before, re.IGNORECASE)
                )
            ):
                continue
            term = sentence.unquote(match["term"])
            if re.match(r" or\b", text[match.end() :]):
                continue
            yield Constraint(kind, terms=(term,))
    bare = _END_BARE.search(text)
    if bare and not re.search(Q, bare["term"]) and not _OTHER_END.search(text[: bare.start()]):
        yield Constraint("end", terms=(bare["term"].strip(),))
    if _END_NEXT.search(text) and not _OTHER_END.search(text[:60].partition("with")[0]):
        following = (
            sentence.request[sentence.start + len(text) :].strip().partition("\n")[0].strip()
        )
        if 0 < len(following) <= 200:
            yield Constraint("end", terms=(_unmask(following, sentence.quotes).strip('"'),))
    for pattern in _FIRST_WORD:
        for match in pattern.finditer(text):
            nth = match["nth"].lower()
            place = _NTH.get(nth) or int(re.sub(r"\D", "", nth))
            term = match["term"]
            term = sentence.unquote(term) if re.fullmatch(Q, term) else term
            if place and term and len(term.split()) == 1:
                yield Constraint("first word", terms=(term,), place=place)


_WRAPPED = re.compile(
    r"\b(?:wrap|wrapped|enclose|enclosed|put|surround|surrounded|be)\b(?P<what>[^.\n]{0,60}?) "
    r"(?:with|in|inside|within|by) (?:a pair of )?(?:double[ -](?:quotation marks|quotes|"
    r"quotation)|"
    r"quotation marks|double-quotes)",
    re.IGNORECASE,
)
_TITLE = re.compile(
    r"\b(?:title|name)\b[^.\n]{0,80}\b(?:double (?:angular|angle|angled) brackets|<<)"
    r"|\btitle\b[^.\n]{0,80}<<[^<>\n]{1,60}>>"
    r"|\b(?:double (?:angular|angle|angled) brackets)[^.\n]{0,40}\btitle\b",
    re.IGNORECASE,
)
_HIGHLIGHT = re.compile(
    r"\b(?:highlight|highlighted|italici[sz]e|italici[sz]ed|emphasi[sz]e|bold)\b", re.IGNORECASE
)
_HIGHLIGHT_COUNT = re.compile(
    rf"\b{_AMOUNT} (?:(?:text|different|key|important|highlighted|separate|main|\w+) ){{0,2}}"
    r"(?:sections?|phrases?|parts?|words?|portions?|texts?|sentences?|highlights|pieces?|"
    r"items?|ideas?|points?)\b",
    re.IGNORECASE,
)
_STARRED = re.compile(r"\*[^*\n]{1,80}\*|\bmarkdown\b|\basterisks?\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    rf"\b(?:{_AMOUNT}|(?P<one>an?)) (?:\w+ ){{0,2}}placeholders?\b", re.IGNORECASE
)
_SECTION_COUNT = re.compile(
    rf"\b{_AMOUNT} (?:\w+ ){{0,1}}(?:sections?|parts?|paragraphs?|stanzas?|chapters?)\b",
    re.IGNORECASE,
)
_SECTION_NAME = re.compile(
    rf"\b(?:with|as|named|called|labell?ed|headed|marked|be|like|by|"
    rf"form)\b[^.\n]{{0,30}}?(?P<name>{Q}|(?i:section|chapter|part|paragraph|day|verse|"
    rf"step) ?(?:x|1|i|n)\b)",
    re.IGNORECASE,
)
_POSTSCRIPT = re.compile(r"\b(?P<mark>P\.? ?P\.? ?S\b\.?|P\. ?S\.?)", re.IGNORECASE)
_RESPONSES = re.compile(
    r"\b(?P<count>two|2)\b[^.\n]{0,80}(?:responses|answers|versions|poems|songs|critiques|"
    r"jokes|stories|limericks|"
    r"haikus|movies|slogans|tweets|options|pitches|letters|emails|ads|riddles|descriptions|"
    r"variants|paragraphs|"
    r"\w+s)\b",
    re.IGNORECASE,
)
_SEPARATED = re.compile(r"\b(?:separat\w*|divid\w*|split|delimit\w*)\b", re.IGNORECASE)
_THREE = re.compile(
    r"(?<!\*)\*\*\*(?!\*)|\b(?:3|three) (?:aste?risks?|asterisk symbols?|stars)\b", re.I
)
_SIX = re.compile(r"(?<!\*)\*{6}(?!\*)|\b(?:6|six) (?:aste?risks?|asterisk symbols?|stars)\b", re.I)
_JSON = re.compile(
    r"\b(?:in|as|into|using|to|is|be|contain(?:s|ing)?|with|return|output|valid)\b"
    r"(?: (?:an?|the|one|just|only|single|valid|proper|raw|pure|strict|well-formed|entire|"
    r"block|of|be|form|format)){0,5} json\b"
    r"(?! (?:schemas?|parsers?|files?|librar\w+|apis?|path|with (?:yaml|xml)))",
    re.IGNORECASE,
)
_JSON_VERB = re.compile(
    r"\b(?:wrap|respon\w+|answer|output|return|format|provide|give|reply|write|print|produce|"
    r"generate|"
    r"entire|everything|present|list|put|use|json format)\b",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\b(?:answer|respond|reply|choose|pick|say|return|output)\b(?P<how>[^.\n]{0,90}?)"
    rf":? ?(?P<terms>{Q}(?:(?:, ?(?:and |or )?| or | / |/|,){Q}){{1,9}})",
    re.IGNORECASE,
)


def _read_format(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    wrapped = _WRAPPED.search(text)
    if wrapped and re.search(
        rf"\b(?:response|answer|reply|output|it|everything|entire|whole|{_ANSWER})\b",
        text[max(0, wrapped.start() - 60) : wrapped.end()],
        re.IGNORECASE,
    ):
        part = re.search(rf"\b(?:{_PART}|each|every|keywords?|words?)\b", wrapped["what"], re.I)
        if (not part or _has_whole(wrapped["what"])) and not _nested(text[: wrapped.start()]):
            yield Constraint("quotes")
    if _TITLE.search(text) and not _NEGATED.search(text[: _TITLE.search(text).start()]):  # type: ignore[union-attr]
        yield Constraint("title")
    yield from _read_highlights(text)
    for match in _PLACEHOLDER.finditer(text):
        if "[" not in text and "bracket" not in text:
            break
        before = text[: match.start()]
        if match["one"] and not re.search(r"\b(?:include|add|contain|use|with|have) $", before):
            continue
        bounds = (1, None) if match["one"] else _bounds(match, before)
        if bounds:
            low, high = bounds
            yield Constraint("placeholders", *((high or 0, None) if low < 0 else bounds))
    marks = list(_POSTSCRIPT.finditer(text))
    if (
        marks
        and re.search(
            r"\b(?:add|include|postscript|post script|starts?|starting|with|write|have|finish|"
            r"end)\b",
            text,
            re.I,
        )
        and not _NEGATED.search(text[: marks[0].start()])
    ):
        letters = re.sub(r"\W", "", marks[-1]["mark"]).upper()
        yield Constraint("postscript", terms=("P.P.S" if letters == "PPS" else "P.S.",))
    json = _JSON.search(text)
    if (
        json
        and _JSON_VERB.search(text)
        and not _nested(text[: json.start()])
        and not re.search(
            r"\b(?:script|program|function|code|app|tool|api|endpoint|parse|convert|how to|learn|"
            r"library|between|use of|explain|describe|compare)\b",
            text[: json.start()],
            re.I,
        )
    ):
        yield Constraint("json")
    yield from _read_choice(sentence)


def _read_highlights(text: str) -> Iterator[Constraint]:
    if not (_HIGHLIGHT.search(text) and _STARRED.search(text)):
        return
    count = _HIGHLIGHT_COUNT.search(text)
    if count:
        bounds = _bounds(count, text[: count.start()])
        if bounds:
            low, high = bounds
            yield Constraint("highlights", *((high or 0, None) if low < 0 else (low, high)))


def _read_choice(sentence: _Sentence) -> Iterator[Constraint]:
    for match in _CHOICE.finditer(sentence.text):
        limited = re.search(
            r"\b(?:one of|following (?:options|phrases|answers))\b", match["how"], re.I
        )
        spare = re.sub(r"\W|with|using|by|saying|only|either", "", match["how"])
        joined = re.search(rf"or ?{Q}$", match["terms"])
        if limited or (not spare and joined):
            terms = tuple(sentence.unquote(one) for one in re.findall(Q, match["terms"]))
            if all(terms):
                yield Constraint("choice", terms=terms)


def _read_parts(sentence: _Sentence) -> Iterator[Constraint]:
    """Read parts that a row of asterisks separates; their number may be in another sentence."""
    text, request = sentence.text, sentence.request
    near = request[max(0, sentence.start - 200) : sentence.start + len(text) + 200]
    separated = _SEPARATED.search(text)
    if separated:
        if _SIX.search(near) and not _THREE.search(text):
            whole = request[max(0, sentence.start - 400) : sentence.start + len(text)]
            if _RESPONSES.search(whole):
                yield Constraint("responses", 2, 2, ("******",))
        elif _THREE.search(near):
            whole = request[max(0, sentence.start - 600) : sentence.start + len(text)]
            mark = len(whole) - len(text) + separated.start()
            counts = [one for one in _SECTION_COUNT.finditer(whole) if not _marked(whole, one)]
            if counts:
                nearest = min(counts, key=lambda one: abs(one.start() - mark))
                bounds = _bounds(nearest, whole[: nearest.start()])
                if bounds:
                    low, high = bounds
                    yield Constraint("parts", high if low < 0 and high else low, high, ("***",))
    named = re.search(r"\bsections?\b", text, re.I) and _SECTION_NAME.search(text)
    if named and not _THREE.search(near):
        name = named["name"]
        name = sentence.unquote(name) if re.fullmatch(Q, name) else name
        stem = re.fullmatch(r"([A-Za-z]+) ?(?:X|x|1|I|i|N|n)?", name)
        whole = request[max(0, sentence.start - 300) : sentence.start + len(text) + 100]
        counts = list(_SECTION_COUNT.finditer(whole))
        if stem and counts:
            bounds = _bounds(counts[-1], whole[: counts[-1].start()])
            if bounds:
                low, high = bounds
                yield Constraint("sections", high if low < 0 and high else low, None, (stem[1],))


def _marked(text: str, match: re.Match[str]) -> bool:
    """Return whether counted sections are those to highlight."""
    return bool(_HIGHLIGHT.search(text[max(0, match.start() - 30) : match.start()]))


# Language

_NAMES = {name.lower(): code for code, name in LANGUAGES.items()} | {
    "farsi": "fa",
    "filipino": "tl",
}
_NAMED = "|".join(_NAMES)
_LANGUAGE = re.compile(
    rf"\b(?:in|using|into|to)(?: only)?(?: the)? (?P<name>{_NAMED})(?: language)?\b", re.IGNORECASE
)
_ONLY = re.compile(rf"\b(?:only(?: in| using| use)?|use only)(?: the)? (?P<name>{_NAMED})\b", re.I)
_WHOLLY = re.compile(
    r"\bno other languages?\b|\bonly\b|\b(?:entire|whole)(?:ly)?\b|\b(?:respond|reply|answer)\b"
    r"|\b(?:response|answer|reply|output)\b",
    re.IGNORECASE,
)


def _read_language(sentence: _Sentence) -> Iterator[Constraint]:
    text = sentence.text
    match = _ONLY.search(text) or _LANGUAGE.search(text)
    if not match or not _WHOLLY.search(text) or _nested(text[: match.start()]):
        return
    names = {name.lower() for name in re.findall(rf"\b(?:{_NAMED}|english)\b", text, re.I)}
    if len(names) == 1 and find_spec("langdetect"):
        yield Constraint("language", terms=(_NAMES[match["name"].lower()],))


# The request repeated

_REPEATS = re.compile(
    r"\b(?:repeat|restate)\b[^.\n]{0,60}?\b(?:request|prompt|question|query|sentence above|"
    r"above|below|"
    r"instructions?)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\b(?:first|before|word for word|without (?:any )?chang\w*|exactly|"
    r"at the (?:very )?(?:start|beginning)|start by)\b",
    re.IGNORECASE,
)
_ABOUT_REPEAT = re.compile(
    r"\b(?:repeat|repeating|do not (?:say|output|change|add)|don't (?:say|output|change|add)|"
    r"word for word|"
    r"then give your answer|does not include this)\b",
    re.IGNORECASE,
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
    _read_language,
)
