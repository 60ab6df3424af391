"""Read what an evaluator says of a text: the user's function's result, or a model's reply."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from ipyrefine.core import scores
from ipyrefine.core.fields import NAMES, as_text, json_objects, labelled
from ipyrefine.core.model import Outcome
from ipyrefine.core.table import Critique, Point, Reading
from ipyrefine.errors import ReplyError

# What evaluators call their fields.
_WORDS, _FEEDBACK = NAMES["verdict"], NAMES["feedback"]
_FLAGS = ("done", "pass", "passed", "passes", "approved", "accepted", "acceptable", "ready")
_PROBLEM = ("problem", "issue", "weakness", "action", "suggestion", "description", *_FEEDBACK)
# Fields that describe a criterion, other than its verdict.
_ABOUT = re.compile(
    rf"{'|'.join(_FEEDBACK)}|.*\b(?:name|[ck]rit\w+|aspect|dimension|category|title|id|thoughts?"
    r"|thinking|analysis|rationale|justification|evidence|summary|notes?|remarks?|details?|text"
    r"|task|code|quote|example|description|score|fix)"
)
_EMPTY: tuple[Any, ...] = (None, "", [], ())
_OUTCOMES = {  # the worst last
    Outcome.PASS: r"pass(?:ed|es)?|true|yes|1",
    Outcome.NEEDS_IMPROVEMENT: r"needs? improvements?|false|no|0",
    Outcome.FAIL: r"fail(?:ed|s|ure)?",
}
_PLAIN_LABEL = re.compile(
    rf"{'|'.join((*_WORDS, *_FLAGS))}|my|the|is|in|assessment|result|rating|grade|score"
    r"|résultat|avis|note|resultado|[结結]果|判断"
)

_WORD = r"(?:PASS(?:ED|ES)?|NEEDS?[ _-]IMPROVEMENTS?|FAIL(?:ED|S|URE)?)"
_BAD = re.compile(r"NEEDS?[ _-]IMPROVEMENT|FAIL")
_BAD_PART = re.compile(rf"\{{[^{{}}]*?(?:{_BAD.pattern})")
_SPOKEN = re.compile(rf"(?<![A-Za-z_]){_WORD}(?![A-Za-z_])")
_CHOICES = re.compile(rf"{_WORD}(?:[\s,/|\"'`*]+(?:(?:or|and)[\s\"'`*]*)?{_WORD})+")
_UNTICKED = re.compile(rf"(?:\[\s?\]|☐)[*\s]*{_WORD}")
_ALONE = re.compile(
    rf"(?P<before>[^\w?]*)(?P<word>{_WORD})(?![A-Za-z_?])(?P<after>[^\w?]*)", re.IGNORECASE
)
_UNDONE = re.compile(r"[!≠¬~✗✘❌]|\.\.|…")  # marks next to a PASS that take it back
_CUT = re.compile(
    r"(?<=[.!;\]])\s+|(?P<label>(?<=:)(?:\s+|(?=[A-Z]))|\s+[-–—]+\s+"  # noqa: RUF001
    r"|\s*(?:—|=>|->|→|=|\|)\s*)|[\"'],\s+(?=[\"'])"
)
_MARKS = re.compile(r"[*`☑☒]+|(?<!\w)_+|_+(?!\w)|\[[xX]\]")
_IN_TAGS = re.compile(rf"<(\w[\w -]{{0,40}})>\s*({_WORD})\W*</\1>", re.IGNORECASE)
_ITEM = re.compile(r"(?P<indent>\s*)(?:(?P<bullet>[-*+•])\s|(?P<number>\d+)[.)]\s|\|)(?P<text>.*)")
_LABELLED = re.compile(r"\W*(?P<name>[^\W\d][^:.]{0,40}):\s+\S.*")
_RULE = re.compile(r"(?=.*--)[\s:|-]+")
_HEADING = re.compile(r"#+\s.*|\*\*[^*]+\*\*\W*|.*[:：]")  # noqa: RUF001
_STATED = rf"\b(?:(?:{'|'.join(_WORDS)}|so)\W+)?{_WORD}\b(?!\s*[/|])"
_EDGE = re.compile(
    rf"\A\W*{_STATED}[^\w\n]*|(?:\n|(?<=[.!?;])\s)\W{{0,40}}{_STATED}\W*\Z", re.IGNORECASE
)


class Said(NamedTuple):
    """What an evaluator says of a text.

    Attributes:
        outcome: the verdict that it gives; None where the score decides.
        score: as it gave it, or None.
        of: what a full score is where it says so, else None.
        feedback: what it wants changed: texts, dicts and points.
    """

    outcome: Outcome | None = None
    score: float | None = None
    of: float | None = None
    feedback: tuple[Any, ...] = ()


def parse_evaluation(reply: str, prompt: str = "") -> Critique:
    """Return what a reply of the user's evaluator says; its feedback are remarks without ids.

    It is read in the usual shapes: JSON, tags, labelled lines, lists, tables and words, with
    verdicts, ``done`` or a score, and feedback as a text or a list. It passes where all of its
    verdicts do, or the one that is labelled as the whole. In words a verdict counts where it stands
    by itself: as a line, a sentence or the value of a label. In a sentence it is none, whatever
    that says of it, and a PASS by such words has to be the reply's first or last sentence. The
    prompt may name the scale of scores; else they go from 0 to 1.

    Raises:
        ReplyError: it has none of these shapes, gives overall scores that differ, or one that fits
            no scale that is named.
    """
    said = _from_json(reply) or _from_text(reply)
    if said is None:
        raise ReplyError("it holds no verdict, done or score that stands by itself")
    score = None
    if said.score is not None:
        with suppress(ReplyError) if said.outcome else nullcontext():
            score = scores.scaled(said.score, said.of, prompt, reply)
    points = feedback_points(said.feedback, blocking=said.outcome is not Outcome.PASS)
    return Critique(reading=Reading(says=said.outcome, score=score), remarks=points)


def feedback_points(feedback: Iterable[Any], *, blocking: bool) -> tuple[Point, ...]:
    """Return an evaluator's feedback as remarks, each as it stands."""
    said = filter(None, map(_text, feedback))
    fields = {"source": "evaluator", "criterion": "feedback", "blocking": blocking}
    return tuple(Point(words=one, **fields) for one in said)


def read_fields(fields: Mapping[str, Any]) -> Said | None:
    """Return the meaning of named values, or None if they hold neither a verdict nor a score.

    The verdicts under names of the whole decide. Without one all others have to pass, however deep
    they stand; a score next to them decides if they do.
    """
    while len(fields) == 1 and isinstance(inner := next(iter(fields.values())), dict):
        if not any(map(_rank, inner)):
            break
        fields = inner
    named = {_name(name): value for name, value in fields.items()}
    wholes = {name: value for name, value in named.items() if _rank(name)}
    outcome = _worst(_said(name, value) for name, value in wholes.items())
    if not outcome and any(isinstance(v, str) and _SPOKEN.search(v) for v in wholes.values()):
        return None
    rates = [n for n in scores.SCORES if named.get(n) not in _EMPTY and not _said(n, named[n])]
    score, of = scores.overall_score([(name, named[name]) for name in rates])
    of = of or next(
        (scores.read_number(named[name])[0] for name in scores.OF if name in named), None
    )
    found = _first(named, _FEEDBACK)
    feedback = tuple(found) if isinstance(found, list | tuple) else (found,) * bool(found)
    if outcome is None:
        parts = _parts(fields)
        outcome = _worst(said for said, _ in parts or ())
        if parts is None or (rates and score is None and outcome in (None, Outcome.PASS)):
            return None
        if score is not None and outcome is Outcome.PASS:
            outcome = None
        elif not found:
            feedback = tuple(why for said, why in parts if said is outcome and why)
        if outcome is None and score is None:
            score = scores.mean_score(named)
    if not feedback and outcome is not Outcome.PASS:  # it says why under a name of its own
        words = {n: v for n, v in fields.items() if isinstance(v, str | list | dict)}
        rest = {n: v for n, v in words.items() if not _rank(n) and _name(n) not in scores.OF}
        feedback = (_text(rest),) * any(rest.values())
    return None if outcome is None and score is None else Said(outcome, score, of, feedback)


def read_items(items: Sequence[Any]) -> Said | None:
    """Return the meaning of a list of verdicts, or of dicts with one each; None for other lists."""
    pairs = [(i, read_fields(i) if isinstance(i, dict) else Said(_word(i))) for i in items]
    read = [(item, said) for item, said in pairs if said and said.outcome]
    return _combined(read) if read and len(read) == len(items) else None


def read_outcome(value: Any) -> Outcome | None:
    """Return the verdict that a bool, or one word as a text, gives; None where it gives none."""
    if isinstance(value, bool):
        return Outcome.PASS if value else Outcome.NEEDS_IMPROVEMENT
    word = re.sub(r"[\W_]+", " ", value).strip().lower() if isinstance(value, str) else ""
    return next((one for one, words in _OUTCOMES.items() if re.fullmatch(words, word)), None)


def _said(name: str, value: Any) -> Outcome | None:
    """Return the verdict that a value under a name of the whole gives."""
    if isinstance(value, str):
        number = name not in _FLAGS and value.strip().isdecimal()
        return None if number else read_outcome(value) or _hear(value).outcome
    return None if name in ("score", "rating") else read_outcome(value)


def _worst(outcomes: Iterable[Outcome | None]) -> Outcome | None:
    return max(filter(None, outcomes), key=list(_OUTCOMES).index, default=None)


def _name(name: object) -> str:
    return re.sub(r"[_-]", " ", str(name).lower()).strip()


def _rank(label: object) -> int:
    """Return 2 for a label that is always of the whole, 1 for one that may be, else 0."""
    words = scores.words_of(str(label))
    overall = any(map(scores.OVERALL.fullmatch, words))
    known = all(scores.OVERALL.fullmatch(word) or _PLAIN_LABEL.fullmatch(word) for word in words)
    return (1 + overall) * (known and bool(words))


def _first(named: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((named[n] for n in names if named.get(n) not in _EMPTY), "")


def _parts(fields: Mapping[str, Any]) -> list[tuple[Outcome, Any]] | None:
    """Return all verdicts, each with why; None if a criterion next to one has another value."""
    parts, left = list[tuple[Outcome, Any]](), list[Any]([fields])
    for value in left:
        named = {_name(n): one for n, one in value.items()} if isinstance(value, dict) else {}
        items = list(named.values()) if named else list(value)
        left += [one for one in items if isinstance(one, dict | list | tuple)]
        if not named:
            parts += [(said, "") for item in items if (said := _word(item))]
            continue
        why = _first(named, _FEEDBACK)
        if ranked := _worst(_said(name, one) for name, one in named.items() if _rank(name)):
            parts.append((ranked, why or (value if ranked is not Outcome.PASS else "")))
            continue
        words = {n: v for n, v in named.items() if isinstance(v, str) and not _ABOUT.fullmatch(n)}
        spoken = {name: _hear(one).outcome for name, one in words.items()}
        if any(spoken.values()) and not all(spoken.values()):
            return None
        parts += [
            (said, why or (f"{n}: {words[n]}" if said is not Outcome.PASS else ""))
            for n, said in spoken.items()
            if said
        ]
    return parts


def _word(value: Any) -> Outcome | None:
    return read_outcome(value) if isinstance(value, str) and _ALONE.fullmatch(value) else None


def _combined(read: Sequence[tuple[Any, Said]]) -> Said | None:
    """Return the worst of several; None if they give different scores alone."""
    outcome = _worst(said.outcome for _, said in read)
    score, of = scores.agreed((said.score, said.of) for _, said in read if said.score is not None)
    feedback = list[Any]()
    for item, said in read:
        if said.outcome is outcome:
            itself = len(read) > 1 and isinstance(item, dict) and outcome is not Outcome.PASS
            feedback += said.feedback or [item] * itself
    return Said(outcome, score, of, tuple(feedback)) if outcome or score is not None else None


def _text(item: Any) -> str:
    """Return what an item of feedback says, with what it says beside the problem."""
    if not isinstance(item, dict):
        return str(item or "").strip()
    problem = as_text(_first({_name(name): one for name, one in item.items()}, _PROBLEM)).strip()
    told = {n: str(v) if isinstance(v, bool) else as_text(v).strip() for n, v in item.items()}
    told |= {n: told[n].replace("\n", ", ") for n, v in item.items() if isinstance(v, list)}
    left = [(n, one) for n, one in told.items() if one not in ("", problem)]
    beside = "; ".join(f"{n}: {one}" for n, one in left if not (problem and _rank(n)))
    return f"{problem} ({beside})" if problem and beside else problem or beside


def _from_json(reply: str) -> Said | None:
    found = [(one, reply[max(0, place - 2) : place]) for place, one in json_objects(reply)]
    # A lone object in backticks is one that it quotes.
    bare = [one for one, before in found if not re.search("(?<!`)`$", before)]
    pairs = [(one, read_fields(one)) for one in bare or [one for one, _ in found]]
    read = [(one, said) for one, said in pairs if said]
    overall = [(one, said) for one, said in read if 2 in map(_rank, one)]
    together = _combined(overall or read)
    if read and together is None:
        raise ReplyError("its overall scores differ")
    whole = sum(len(_BAD.findall(str(one))) for one, _ in pairs)
    if together and together.outcome is not Outcome.FAIL and len(_BAD_PART.findall(reply)) > whole:
        raise ReplyError("not all of its JSON can be read")
    unread = any(not said and re.search(_WORD, str(one), re.IGNORECASE) for one, said in pairs)
    if unread and not overall and (together is None or together.outcome in (None, Outcome.PASS)):
        raise ReplyError("not each of its verdicts is PASS, NEEDS_IMPROVEMENT or FAIL")
    return together


def _from_text(reply: str) -> Said | None:
    heard = _hear(reply)
    before, parts = labelled(reply, (*_WORDS, *scores.SCORES, *_FEEDBACK, *_FLAGS))
    feedback = {name: text for name, text in parts if name in _FEEDBACK}
    values = [(name, *text.partition("\n")) for name, text in parts if name not in _FEEDBACK]
    rest = next((more.strip() for *_, more in values if more.strip()), before)
    left = [(name, first) for name, first, *_ in values if not _hear(first).outcome]
    rates = [(name, first) for name, first in left if name in scores.SCORES]
    others = [first for name, first in left if name not in scores.SCORES]
    if heard.outcome is None and any(map(_SPOKEN.search, others)):
        return None
    flags = [read_outcome(first) for first in others]
    outcome, whole = _worst([heard.outcome, *flags]), heard.whole or any(flags)
    score, of = scores.overall_score(rates)
    if rates and score is None and outcome in (None, Outcome.PASS):
        raise ReplyError("its score is not one number, or its overall scores differ")
    if score is not None and outcome is Outcome.PASS and not whole:
        outcome = None
    if outcome is None and score is None:
        told = None if heard.words else scores.score_in_words(reply)
        return told and Said(None, *told[1], (told[0],))
    unread = "\n".join(first for first in others if read_outcome(first) is None)
    why = _first(feedback, _FEEDBACK) or rest or unread
    if not parts or (heard.alone > 1 and not why):
        why = _EDGE.sub("", reply).strip() if heard.alone == 1 else reply.strip()
    return Said(outcome, score, of, (why,))


# Verdicts in words, by their place


class _Verdict(NamedTuple):
    said: Outcome
    rank: int  # of its label
    line: int
    listed: bool
    edge: bool  # whether it is the reply's first or last sentence


_Line = tuple[str, list[_Verdict], re.Match[str] | None, bool]  # and its item, if it is indented


class _Heard(NamedTuple):
    outcome: Outcome | None
    whole: bool  # whether a label says that it is of the whole
    alone: int  # how many verdicts stand by themselves
    words: int  # how many there are in all


def _hear(text: str) -> _Heard:
    """Return the verdict that words give by their place.

    One counts that stands by itself, between line breaks, full stops and marks such as colons; a
    FAIL or NEEDS_IMPROVEMENT also where it starts the reply or what a label stands before. One
    labelled as the whole decides, else the worst. A PASS needs that every other word for a verdict
    stands by itself, and that each item of a list of verdicts has one; as the reply's first or
    last sentence, only that no other word says FAIL or NEEDS_IMPROVEMENT.
    """
    text = scores.plain(text)
    text = _IN_TAGS.sub(_tag_as_label, _UNTICKED.sub("", _CHOICES.sub(_drop_choices, text)))
    words = _SPOKEN.findall(text)
    lines = list(_read_lines([line for line in text.splitlines() if line.strip()]))
    found = [verdict for _, verdicts, *_ in lines for verdict in verdicts]
    ranked = [one for one in found if one.rank]
    overall = [one for one in ranked if one.rank == 2]
    if not overall and len(ranked) == 1 and not (ranked[0].listed and len(found) > 1):
        overall = [one for one in ranked if one is found[-1 if one.line else 0]]
    outcome = _worst(one.said for one in overall or found)
    if not overall and outcome is Outcome.PASS:
        bad = any(not word.startswith("PASS") for word in words)
        edge = any(one.edge for one in found)
        if bad or not (edge or (len(found) >= len(words) and _each_item_has_one(lines))):
            outcome = None
    return _Heard(outcome, bool(overall), len(found), len(words))


def _read_lines(raws: list[str]) -> Iterator[_Line]:
    head = ""
    for place, raw in enumerate(raws):
        if _RULE.fullmatch(raw):
            yield raw, [], None, True
            continue
        item, indented, last = _ITEM.match(raw), raw[0].isspace(), place == len(raws) - 1
        text = " ".join(_MARKS.sub("", item["text"] if item else raw).split()).strip("#> ")
        text = scores.ASIDE.sub("", scores.ASIDE.sub("", text))
        parts, verdicts = [head, "", *_CUT.split(text)], list[_Verdict]()
        for n in range(2, len(parts), 2):
            label = "" if parts[n - 1] is None else parts[n - 2]
            first = place == 0 and n == 2
            if said := _alone(parts[n].strip(), bool(label), first, lax=parts[n] == text):
                edge = (first or (last and n == len(parts) - 1)) and not label and not item
                verdicts.append(_Verdict(said, _rank(label), place, bool(item) or indented, edge))
        head = text if not verdicts and (item or _HEADING.fullmatch(raw.strip())) else ""
        yield text, verdicts, item, indented


def _each_item_has_one(lines: Iterable[_Line]) -> bool:
    """Return True if the lists that hold a verdict hold one in each item, labelled lines too."""
    lists, latest = defaultdict[Any, list[bool]](list), list[bool]()
    labels, sections, ones = list[bool](), 0, 0
    for text, verdicts, item, indented in lines:
        said = bool(verdicts)
        if indented and _RULE.fullmatch(text):  # below a table's head
            del latest[-1:]
            continue
        if item:
            ones += item["number"] == "1"
            kind = ("1.", ones) if item["number"] else (item["bullet"], sections)
            latest = lists[len(item["indent"]), *kind]
            latest.append(said)
            continue
        latest[-1:] = [one or said for one in latest[-1:]]
        sections += not said and not indented
        named = _LABELLED.fullmatch(text)
        if named and not _ABOUT.fullmatch(named["name"].strip().lower()):
            labels.append(said)
    told = [one for one in lists.values() if any(one)] + [labels] * (sum(labels) > 1)
    return all(map(all, told))


def _tag_as_label(match: re.Match[str]) -> str:
    """Return a verdict in tags as a labelled line; in mere markup within a sentence as it is."""
    before = match.string[max(0, match.start() - 80) : match.start()].rpartition("\n")[2].strip()
    own = _rank(match[1]) or not before or before.endswith(">")
    return f"\n{match[1]}: {match[2]}\n" if own else match[0]


def _drop_choices(match: re.Match[str]) -> str:
    """Drop the words for all verdicts one after another, which choose none; keep a table's row."""
    words = _SPOKEN.findall(match[0])
    return "" if "\n" not in match[0] and len(set(words)) == len(words) else match[0]


def _alone(segment: str, labelled: bool, first: bool, *, lax: bool) -> Outcome | None:
    """Return the verdict that a segment is, or that it starts with if it says what is wrong."""
    if match := _ALONE.fullmatch(segment):
        said = read_outcome(match["word"]) if labelled or lax or match["word"].isupper() else None
        undone = _UNDONE.search(match["before"] + match["after"].strip("!"))
        return None if said is Outcome.PASS and undone else said
    match = _ALONE.match(segment) if labelled or first else None
    worse = match and match["word"].isupper() and not match["word"].startswith("PASS")
    return read_outcome(match["word"]) if match and worse else None
