# ruff: noqa: RUF001
"""Read a critic's reply: tests, findings, questions, and whether the text is ready."""

import ast
import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, get_args

from ipyrefine.core import rank
from ipyrefine.core.fields import ITEM, LABEL, NAMES, by_role, json_objects, plain_name, role
from ipyrefine.core.points import (
    drop_known,
    ground,
    names_again,
    no_source,
    same,
    unasked,
    up_for_review,
    weigh,
    with_ids,
)
from ipyrefine.core.quotes import contains_quote
from ipyrefine.core.results import results_among
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import NO_VALUE, try_parse_expression, unparse
from ipyrefine.core.table import Comparison, Critique, Point, Reading
from ipyrefine.core.testing import is_critics, read_tests
from ipyrefine.core.unsourced import find_unsourced, rests_on_sources
from ipyrefine.errors import ReplyError

_BLOCK = re.compile(
    r"```(?P<language>[\w+-]*)[^\S\n]*\n(?P<code>.*?)(?:^[^\S\n]*```|\Z)", re.DOTALL | re.MULTILINE
)
_TAGGED = re.compile(r"<(?:tests|expectations)>(?P<code>.*?)(?:</|\Z)", re.DOTALL | re.IGNORECASE)
# All that says Yes, alone or with further sentences after it; anything else is a No.
_YES = re.compile(
    r"\W*(?:yes|true|ready|pass(?:ed|es)?|approved?|accept(?:ed)?|ok(?:ay)?|ja|oui|s[ií]|да|是|はい)"
    r"[*_`\"'\s]*(?:[.!。！]|\Z)",
    re.IGNORECASE,
)
_MINOR = re.compile(
    r"(?:minor|low|trivial|cosmetic|nit(?:pick)?|optional|suggestion|niedrig|gering|leicht|mineure?"
    r"|faible|légère?|menor|baj[ao]|leve|baixa?|轻微|低|小|軽微|незначительн\w*|низк\w*"
    r"|false|no|nein|non|não|нет|否)(?!\w)"
)
_NONE = re.compile(
    r"(?:none|nothing|no (?:findings|issues|problems|questions|weaknesses)|n/?a|keine?|nichts"
    r"|aucune?|ningun[ao]|nenhuma?|[无無]|没有|なし|нет)\W*"
)
_NOT_READY = re.compile(
    r"(?:\bnot|n['’]t) (?:yet |quite )?ready\b|\bnicht (?:fertig|bereit)|\bpas (?:encore )?prête?\b"
    r"|\bno est[áa] list[ao]\b|\bnão está pront[ao]\b|未就绪|未完成|\bне готов",
    re.IGNORECASE,
)
_LISTS = ("findings", "questions", "unsourced")
_CLAIMS = ("fixed", "upheld")  # ids of earlier findings, or names of tests
_SECTIONS = ("not ready", "ready", "verdict", *_LISTS, *_CLAIMS, "because", "praise")
_TOP = (*_LISTS, *_CLAIMS, "not ready", "ready", "verdict", "because", "tests", "feedback")
_PARTS = ("problem", "place", "demand", "fix", "severity", "blocks", "criterion")
_INSIDE = re.compile(  # what an item may add in its own line
    rf"(?:^|(?<=[\s(*]))[*_]{{0,3}}({'|'.join(NAMES['fix'] + NAMES['place'] + NAMES['severity'])})"
    r"[*_]{0,3}\s?[:：][*_]{0,3}\s*",
    re.IGNORECASE,
)
_ID = re.compile(r"\b(?:[fqt]\d+|test\w*|\w+_\w+)\b")
_LINES, _LONG = 2_000, 4_000  # of a critique in words; characters of a line
MAX_POINTS = 60  # findings, questions and tests that a critique may have
_MOST_OPTIONS = 5  # of a question
_KEYS = {*_LISTS, "data", "ready", "tests", "sources"}


def parse_critique(reply: str, text: str, source: str | None = None) -> Critique:
    """Read a critique in whichever readable form it comes.

    Tests are the functions named ``test…`` in blocks of Python, in a ``<tests>`` tag or in a field
    of the JSON object. The rest stands in a JSON object or a tool call, under headings or labels
    in any of several languages with lists, in a table, or in words that end with "not ready". A
    finding whose place is not in the text stays without a place. A field of data by a schema whose
    value rests on words that its source does not contain is a finding.

    Raises:
        ReplyError: nothing of it can be read.
    """
    fields = _json_fields(reply)
    tests = _tests(reply, fields, text)
    if not fields:
        fields = _Outline(_BLOCK.sub("", reply), words=not tests).fields
    if not fields and not tests:
        raise ReplyError("it holds neither tests nor a JSON object with findings")
    spoken = _words(fields.get("than_before")).lower()
    compared = [one for one in get_args(Comparison) if one in spoken]
    word = fields.get("ready", fields.get("verdict"))
    said = word is not None or ("findings" in fields and not fields.keys() & {"ready", "verdict"})
    remarks = [_remark(item) for item in _items(fields.get("findings"))]
    remarks += map(_question, _items(fields.get("questions")))
    remarks += _effects(fields.get("data"))
    remarks += map(_fact, _items(fields.get("unsourced")))
    if source is not None and isinstance(sources := fields.get("sources"), dict):
        data = _read_json(text)
        named = {str(path): words for path, words in sources.items()}
        remarks += [_unsourced(p, w, source) for p, w in named.items() if not _is_empty(data, p)]
    return Critique(
        remarks=ground((one for one in remarks if one), text),
        tests=tuple(tests),
        reading=Reading(
            ready=_ready(word),
            reason=_words(fields.get("because") or fields.get("reason")),
            compared=compared[0] if len(compared) == 1 else None,
            lost=_words(fields.get("lost")),
            failure="" if said else "it does not say whether the text is ready",
        ),
        fixed=_ids(fields.get("fixed")),
        upheld=_ids(claims) if isinstance(claims := fields.get("upheld"), list | str) else None,
    )


def parse_tests(reply: str, text: str) -> list[Point]:
    """Read the tests of a reply about a text, in whichever readable form they come."""
    return _tests(reply, _json_fields(reply), text)


def _tests(reply: str, fields: Mapping[str, Any], text: str) -> list[Point]:
    blocks = [m for m in _BLOCK.finditer(reply) if m["language"].lower() in ("python", "py", "")]
    sources = [m["code"] for m in (*blocks, *_TAGGED.finditer(reply))]
    tests = fields.get("tests")
    for item in [tests] if isinstance(tests, str) else _items(tests):
        sources.append(_words(item.get("code") if isinstance(item, dict) else item, flat=False))
    sources = [*islice(dict.fromkeys(sources), MAX_POINTS)]
    found = (
        test
        for source in sources
        for test in read_tests(source, [one for one in sources if one != source], text)
    )
    return [*islice(found, MAX_POINTS)]


def _json_fields(reply: str) -> dict[str, Any]:
    """Return the fields of the JSON objects with a critique, or several with a finding each.

    Of two with the same field the later one counts, but what says No comes after all others.
    """
    objects = [_inner(one) for _, one in json_objects(reply)]
    named = [by_role(one, *_TOP) for one in objects]
    for fields in named:
        if feedback := "findings" not in fields and fields.pop("feedback", None):
            fields["findings"] = feedback
        if "not ready" in fields:
            fields["ready"] = str(fields.pop("not ready")).lower() in ("false", "no")
    whole = [one for one in named if _KEYS & one.keys()]
    alone = [one for one in objects if "problem" in by_role(one, *_PARTS)]
    if alone and not whole:
        said = _Outline(reply, words=False).fields.get("ready")
        return {"findings": alone} | ({} if said is None else {"ready": said})
    found = dict[str, Any]()
    for fields in sorted(whole, key=lambda one: _ready(one.get("ready")) is False):
        found |= fields
    unread = len(re.findall(r"[\"']ready[\"']\s*:", reply)) > sum("ready" in one for one in named)
    if whole and unread and _ready(found.get("ready")) is not False:  # another one may say No
        raise ReplyError("not all of its JSON can be read")
    return found


def _inner(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the object that stands alone in another one."""
    while len(fields) == 1 and isinstance(inner := next(iter(fields.values())), dict):
        if by_role(fields, *_TOP).keys() & _KEYS:
            break
        fields = inner
    return fields


class _Outline:
    """Reads a critique in words: headings and labels, with lists, tables or paragraphs below.

    A deeper bullet, and one that names a part of a finding such as its fix, belongs to the one
    above it. Lists under no heading count where the words say that the text is not ready.

    Its `fields` have the names of the JSON object's. If `words`, sentences that end with "not
    ready" are findings.
    """

    def __init__(self, reply: str, *, words: bool) -> None:
        self.fields: dict[str, Any] = {}
        self._section, self._level, self._margin, self._asked = "", 0, 0, False
        self._item: dict[str, str] | None = None
        self._titled = False  # whether that has a heading of its own, and no more yet
        self._columns: list[str] = []
        self._loose, self._rest = list[Any](), list[str]()
        for line in reply.splitlines()[-_LINES:]:
            line = line[:_LONG]
            if not line.lstrip().startswith("|"):
                self._columns = []
            if re.search(r"\w", line):
                self._read(line)
        last = self._rest[-1] if self._rest else ""
        if "ready" not in self.fields and _NOT_READY.search(last) and words:
            self.fields |= {"ready": False, "because": _plain(self._rest.pop())}
        said_no = _ready(self.fields.get("ready")) is False
        if said_no and "findings" not in self.fields and words:
            found = self._loose or list(map(_plain, self._rest))
            self.fields |= {"findings": found} if found else {}

    def _read(self, line: str) -> None:
        if line.lstrip().startswith("|"):
            self._read_row([_plain(cell) for cell in line.strip().strip("|").split("|")])
            return
        item, label = ITEM.match(line), LABEL.match(line)
        if label and self._take_heading(line, label, item):
            return
        if self._asked:
            self.fields |= {"ready": line.strip(), "because": line.strip()}
            self._asked = False
        elif item:
            self._take_item(item["item"], len(item["indent"].expandtabs(4)))
        elif self._item and (label or line[0].isspace()):
            self._take_part(_plain(line))
        elif self._section in _LISTS and not self._list:
            self._take_item(_plain(line), 0)
        else:
            self._rest.append(line)

    def _take_heading(self, line: str, label: re.Match[str], item: re.Match[str] | None) -> bool:
        """Take a line that opens a section, or says what there is to say in one."""
        name, mark, rest = label["name"], label["mark"][:1], _plain(label["rest"])
        level = len(line) - len(line.lstrip("#"))
        marked = bool(level) or (not item and not rest and (mark in (":", "：") or "**" in line))
        found, none = role(name, *_SECTIONS), _NONE.fullmatch(rest.lower())
        exact = bool(found) and plain_name(name) in NAMES[found]
        if found == "ready" and not exact and (mark in ".!。" or _NOT_READY.search(line)):
            found = ""
        opens = (marked or (mark and mark in ":：?？")) and not (item and rest)
        if found and (exact or opens):
            if item and self._item and role(name, *_PARTS):
                return False
            about = item and self._section == "findings" and not none
            if about and found in ("unsourced", *_CLAIMS):
                return False  # it is what a finding is about
            if found in _CLAIMS and re.search(r"\w{4}|\d", _ID.sub("", rest)) and not none:
                return False  # it says more than which
            self._section, self._level, self._item, self._asked = found, level, None, False
            if found in _LISTS:
                self.fields.setdefault(found, [])
                if rest and not none:
                    self._take_item(rest, 0)
            elif found == "because" or found in _CLAIMS:
                self.fields[found] = rest
            elif found != "praise":
                says = found == "ready" and mark in (".", "!", "。") and exact
                self._asked = not (rest or says) and found != "not ready"
                alone = says or (self._asked and found == "ready")
                self.fields["ready"] = "ready" if alone else rest
                self.fields["because"] = rest
                if found == "not ready":
                    self.fields["ready"] = False
            return True
        if not marked or (self._item and role(name, *_PARTS)):
            return False
        title = _plain(re.sub(r"^[\s#*_]*(?:\d+[.)])?", "", line)).rstrip(":：")
        below = self._section == "findings" and level > self._level
        if below or re.match(r"#+\s*\d", line):
            self._add({"problem": title})
            self._titled, self._margin = True, 0
        else:
            self._section, self._item = "other", None
        return True

    @property
    def _list(self) -> list[Any]:
        return self.fields[self._section] if self._section in _LISTS else self._loose

    def _add(self, item: dict[str, str]) -> None:
        if self._section in ("questions", "unsourced"):
            self._list.append(item["problem"])
        elif self._section in _CLAIMS:
            self.fields[self._section] += f" {item['problem']}"
        elif self._section != "praise" and len(self._list) <= MAX_POINTS:
            self._item = item
            self._list.append(item)

    def _take_item(self, words: str, margin: int) -> None:
        words = words.strip()
        if _NONE.fullmatch(words.lower()):
            return
        named, _ = _part(words) if self._section not in ("questions", "unsourced") else ("", "")
        deeper = self._item is not None and margin > self._margin
        if self._item and self._titled and not named:
            self._item |= {"criterion": self._item["problem"], "problem": ""}
            deeper = True
        if self._item and (self._titled or deeper or named not in ("", "problem", *self._item)):
            self._take_part(words)
            return
        self._margin = margin
        first, *parts = _INSIDE.split(words)
        named, rest = _part(first)
        item = {"problem": _plain(rest if named == "problem" else first).rstrip(" (—–-")}
        for name, value in zip(parts[::2], parts[1::2], strict=True):
            item.setdefault(role(name, *_PARTS), _unquoted(_plain(value).rstrip(" )")))
        self._add(item)

    def _take_part(self, words: str) -> None:
        """Take what a line below an item says of it."""
        assert self._item is not None, "it is below one"
        named, value = _part(words)
        self._titled = False
        if named and (named not in self._item or named == "problem"):
            if named == "problem":
                title = self._item["problem"].rstrip(":.")
                value = f"{title}: {value}" if title else value
            self._item[named] = value
        else:
            self._item["problem"] = f"{self._item['problem']} {_plain(words)}".strip()

    def _read_row(self, cells: list[str]) -> None:
        if not self._columns:
            self._columns = [role(cell, *_PARTS) if cell else "" for cell in cells]
            return
        if not any(self._columns) or all(set(cell) <= set(":- ") for cell in cells):
            return
        if self._section not in _LISTS:
            self._section = "findings"
            self.fields.setdefault("findings", [])
        row = {name: cell for name, cell in zip(self._columns, cells, strict=False) if name}
        unnamed = [c for n, c in zip(self._columns, cells, strict=False) if not n]
        self._add({"problem": max(unnamed, key=len, default=""), **row})


def _part(words: str) -> tuple[str, str]:
    """Return which part of a finding a labelled line gives, and that; or two empty texts."""
    label = LABEL.match(words)
    if not label or not label["rest"] or label["mark"][:1] in (".", "!", "?", "。", "？"):
        return "", ""
    return role(label["name"], *_PARTS), _unquoted(_plain(label["rest"]))


def _unquoted(words: str) -> str:
    match = re.fullmatch(r"`([^`]+)`|[“„«]([^”“»]+)[”“»]|\"([^\"]+)\"", words)
    return next(filter(None, match.groups())).strip() if match else words


def _plain(line: str) -> str:
    """Return a line without its marks of Markdown."""
    return re.sub(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|^[\s>#*+-]+", "", line).strip()


def _ids(value: object) -> tuple[str, ...]:
    """Return the ids and names that a field lists or mentions."""
    said = [one for one in map(_words, _items(value)) if one]
    found = ([one] if one.isidentifier() else _ID.findall(one) for one in said)
    return tuple(one for some in found for one in some if not _NONE.fullmatch(one.lower()))


def _items(value: object) -> list[Any]:
    """Return a list's items: one more than are read tells that there are more."""
    if isinstance(value, dict):
        value = [value] if "problem" in by_role(value, *_PARTS) else [*value.values()]
    value = [value] if isinstance(value, str) and value.strip() else value
    return value[: MAX_POINTS + 1] if isinstance(value, list) else []


def _remark(item: object) -> Point | None:
    named = by_role(item if isinstance(item, dict) else {"problem": item}, *_PARTS)
    problem = _words(named.get("problem"))
    if not problem:
        others = (_words(one) for name, one in named.items() if name not in (*_PARTS, "id"))
        problem = next(filter(None, others), "")
    if not problem:
        return None
    weight = named.get("blocks", named.get("severity"))
    minor = weight is False or bool(_MINOR.match(str(weight).lower().strip()))
    return Point(
        criterion=_words(named.get("criterion")),
        blocking=not minor,
        quote=_words(named.get("demand")),
        place=_words(named.get("place"), flat=False),
        words=problem,
        fix=_words(named.get("fix")),
    )


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NO_VALUE


def _is_empty(value: Any, path: str) -> bool:
    """Return True if a field of data holds nothing, which no words of a source need to give."""
    try:
        for step in re.findall(r"[^.\[\]$]+", path):
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (ValueError, LookupError, TypeError):
        return False
    return value in (None, "", [], {})


def _unsourced(path: str, words: object, source: str) -> Point | None:
    """Return a finding where the words behind a field's value do not stand in its source."""
    path, quote = path.removeprefix("$").lstrip("."), _words(words)
    if quote and contains_quote(source, quote):
        return None
    return Point(
        kind="rule",
        criterion=f"$.{path}",
        place=f'"{re.split(r"[.[]", path)[-1]}"' if "]" not in path[-1:] else "",
        words=f"{path}: “{quote}” is not in the source." if quote else f"{path} has no source.",
        fix="Take the value from the source, or leave it out.",
    )


def _fact(item: object) -> Point | None:
    """Return the question about words that the critic found in no source."""
    named = by_role(item, *_PARTS) if isinstance(item, dict) else {"place": item}
    words = _words(named.get("place", next(iter(named.values()), "")))
    return no_source(words) if words else None


def _question(item: object) -> Point | None:
    if isinstance(item, str):
        question, _, listed = item.strip().removesuffix(")").rpartition(" (")
        several = item.strip().endswith(")") and " / " in listed
        item = {"question": question, "options": listed.split(" / ")} if several else item
    item = item if isinstance(item, dict) else {"question": item}
    options = tuple(filter(None, map(_option, _items(item.get("options")))))[:_MOST_OPTIONS]
    call = try_parse_expression(_words(item.get("call"), flat=False))
    differs = call and not isinstance(call, ast.Constant) and len(results_among(options)) > 1
    problem = _words(item.get("question"))
    if not problem:
        return None
    shown = unparse(call) if call and differs else ""
    fields = {"kind": "question", "criterion": "left open", "blocking": False}
    return Point(words=problem, options=options, call=shown, **fields)


def _option(value: object) -> str:
    """Return an answer in words; a number, null or list of the JSON as Python writes it."""
    return _words(value) if isinstance(value, str) else repr(value)


def _effects(said: object) -> list[Point]:
    """Return what running did to data, by the name that it was told by, with the task's words."""
    if isinstance(said, list):
        items = [by_role(one, *_PARTS) | one for one in said if isinstance(one, dict)]
        named = [(_words(one.get("id")), one.get("demand")) for one in items]
    else:
        named = [*said.items()] if isinstance(said, dict) else []
    return [
        Point(kind="fact", words=name, quote=_words(quote), blocking=False)
        for name, quote in islice(named, MAX_POINTS)
        if re.fullmatch(r"d\d+", name)
    ]


def _ready(value: object) -> bool | None:
    if isinstance(value, str):
        return bool(_YES.match(value))
    return None if value is None else value is True


def _words(value: object, *, flat: bool = True) -> str:
    words = value if isinstance(value, str) else ""
    return " ".join(words.split()) if flat else words.strip("\n")


def together(first: Critique, again: Critique) -> Critique:
    """Return what a critic says in two replies about one text: no weakness and no No is lost."""
    longer, shorter = sorted((again, first), key=lambda one: -len(one.remarks))
    left = (one for one in shorter.remarks if not any(same(one, o) for o in longer.remarks))
    readings = (first.reading, again.reading)
    word = next((one for one in readings if one.ready is False), again.reading)
    if word.ready is None:
        word = first.reading
    failure = first.reading.failure and again.reading.failure
    return longer.replace(
        remarks=(*longer.remarks, *left),
        tests=first.tests + again.tests,
        reading=longer.reading.replace(ready=word.ready, reason=word.reason, failure=failure),
        upheld=again.upheld if first.upheld is None else first.upheld + (again.upheld or ()),
    )


def settle(run: Run, base: Iteration, critique: Critique) -> tuple[Critique, tuple[str, ...]]:
    """Merge a critique, with those of its tests that the run takes, into the run.

    Return it with the new points, by their ids, those that are mended, and the contested ones that
    it stands by or lets go; and the ids of mended points that it names again. Only what it was
    asked about and names as fixed is mended; where it doesn't say what it upholds, it has let
    nothing go.
    """
    named, cells = [one for one in critique.remarks if one.kind != "fact"], run.cells(base)
    facts = [one for one in critique.remarks if one.kind == "fact"]
    if rests_on_sources(run):
        named += map(no_source, find_unsourced(run, base.text, (one.place for one in facts)))
    named += unasked(run, base, facts)
    late = critique.reading.ready and base.parent is not None
    parent = run.iterations[base.parent or 0] if late else None
    verdict = rank.verdict(run, base) if base.verdict else None
    by_evidence = bool(verdict and verdict.passed and verdict.basis != "evaluator")
    known = [one for one in cells if one.point.source != "run"]  # what it asks, a reader decides
    new = weigh(drop_known(run, named, known), parent, by_evidence=by_evidence)
    regressed = tuple(one.id for one in cells if names_again(one, named))
    again = {one.id for one in cells if any(same(one.point, other) for other in named)}
    shown = {one.id for one in up_for_review(run, base)} - again
    open_ids = {one.id for one in cells if one.is_open}
    waiting = {
        id_: one
        for id_, one in run.points.items()
        if one.unanswered and not one.dropped and (is_critics(one) or id_ in open_ids)
    }
    kept = [id_ for id_, one in waiting.items() if {id_, one.words} & {*(critique.upheld or ())}]
    kept = [*dict.fromkeys([*kept, *(id_ for id_ in waiting if id_ in again)])]
    answers = critique.upheld is not None and not critique.reading.failure
    every = with_ids(run.points, [*new, *critique.tests])
    settled = critique.replace(
        remarks=every[: len(new)],
        tests=every[len(new) :],
        fixed=tuple(one for one in critique.fixed if one in shown),
        upheld=tuple(kept),
        dropped=tuple(id_ for id_ in waiting if answers and id_ not in kept),
    )
    return settled, regressed
