"""Read a critic's reply: tests, findings, questions, and whether the text is ready."""

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, get_args

from ipyrefine.core.expectations import (
    Comparison,
    Critique,
    Expectation,
    contains_quote,
    read_tests,
)
from ipyrefine.core.findings import (
    drop_known,
    ground,
    regress,
    same,
    up_for_review,
    weigh,
    with_ids,
)
from ipyrefine.core.model import Finding, Severity
from ipyrefine.core.replies import json_objects
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import NO_VALUE
from ipyrefine.errors import ReplyError

_BLOCK = re.compile(
    r"```(?P<language>[\w+-]*)[^\S\n]*\n(?P<code>.*?)(?:^[^\S\n]*```|\Z)", re.DOTALL | re.MULTILINE
)
_TAGGED = re.compile(r"<(?:tests|expectations)>(?P<code>.*?)(?:</|\Z)", re.DOTALL | re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(?P<item>.+)$")
_HEADING = re.compile(
    r"^[\s*#_>-]*(?P<name>findings|questions|verdict|ready|not ready)\b(?P<mark>\W*)(?P<rest>.*)$",
    re.IGNORECASE,
)
# All that says Yes, alone or with further sentences after it; anything else is a No.
_YES = re.compile(
    r"\W*(?:yes|true|ready|pass(?:ed|es)?|approved?|accept(?:ed)?|ok(?:ay)?|ja|oui|s[ií]|да|是|はい)"
    r"[*_`\"'\s]*(?:[.!。！]|\Z)",  # noqa: RUF001
    re.IGNORECASE,
)
# What a field of a finding may be called.
_PROBLEM = ("problem", "issue", "weakness", "description", "finding")
_PLACE = ("place", "quote", "where", "location")
_DEMAND = ("task", "demand", "requirement")
_FIX = ("fix", "suggestion", "remedy")
MAX_POINTS = 60  # findings, questions and tests that a critique may have
_KEYS = {"findings", "questions", "ready", "tests", "expectations", "sources"}
_FIELD = "$."  # starts the criterion of a finding about the source of a field's value


def parse_critique(reply: str, text: str, source: str | None = None) -> Critique:
    """Read a critique in whichever readable form it comes.

    Tests are the functions named ``test…`` in blocks of Python, in a ``<tests>`` tag or in a field
    of the JSON object. The rest stands in a JSON object, or under headings with lists. A finding
    whose place is not in the text stays without a place. A field of data whose value rests on words
    that its source does not contain is a finding.

    Args:
        reply: what the model wrote.
        text: the text it is about.
        source: what the task is about, where the text is data by a schema.

    Raises:
        ReplyError: nothing of it can be read.
    """
    fields = _json_fields(reply)
    tests = _tests(reply, fields, text)
    if not fields:
        fields = _listed_fields(reply)
    if not fields and not tests:
        raise ReplyError("it holds neither tests nor a JSON object with findings")
    spoken = _words(fields.get("than_before")).lower()
    compared = [one for one in get_args(Comparison) if one in spoken]
    said = fields.keys() & {"ready", "verdict", "findings"}
    findings = [_finding(item) for item in _items(fields.get("findings"))]
    if source is not None and isinstance(sources := fields.get("sources"), dict):
        data = _read_json(text)
        named = {str(path): words for path, words in sources.items()}
        findings += [_unsourced(p, w, source) for p, w in named.items() if not _is_empty(data, p)]
    return Critique(
        findings=ground((one for one in findings if one), text),
        expectations=tuple(tests),
        questions=tuple(filter(None, map(_question, _items(fields.get("questions")))))[:MAX_POINTS],
        ready=_ready(fields.get("ready", fields.get("verdict"))),
        reason=_words(fields.get("because") or fields.get("reason")),
        fixed=tuple(filter(None, map(_words, _items(fields.get("fixed"))))),
        upheld=tuple(filter(None, map(_words, _items(fields.get("upheld"))))),
        compared=compared[0] if len(compared) == 1 else None,
        lost=_words(fields.get("lost")),
        failure="" if said else "it does not say whether the text is ready",
    )


def parse_tests(reply: str, text: str) -> list[Expectation]:
    """Read the tests of a reply about a text, in whichever readable form they come."""
    return _tests(reply, _json_fields(reply), text)


def _tests(reply: str, fields: Mapping[str, Any], text: str) -> list[Expectation]:
    blocks = [m for m in _BLOCK.finditer(reply) if m["language"].lower() in ("python", "py", "")]
    sources = [m["code"] for m in (*blocks, *_TAGGED.finditer(reply))]
    tests = fields.get("tests") or fields.get("expectations")
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
    """Return the last JSON object of a reply that has a critique's fields; empty without one."""
    found = [one for _, one in json_objects(reply) if _KEYS & one.keys()]
    return found[-1] if found else {}


def _listed_fields(reply: str) -> dict[str, Any]:
    """Read the fields from headings with lists below them; empty without such headings."""
    fields: dict[str, Any] = {}
    section, asked = "", False
    for line in filter(str.strip, reply.splitlines()):
        if heading := _HEADING.match(line):
            section, rest = heading["name"].lower(), heading["rest"]
            if section in ("findings", "questions"):
                fields.setdefault(section, [])
                continue
            # "Ready." says it by itself; after "Ready:" and "Verdict:" an answer follows.
            says = section == "ready" and heading["mark"][:1] in (".", "!")
            asked = not (rest or says)
            fields["ready"] = section if says or (asked and section == "ready") else rest
            fields["because"] = rest
            if section == "not ready":
                fields["ready"], asked = False, False
        elif section in ("findings", "questions") and (item := _ITEM.match(line)):
            fields[section].append(item["item"])
        elif asked:
            fields["ready"] = fields["because"] = line.strip()
            asked = False
    return fields


def _items(value: object) -> list[Any]:
    """Return a list's items: one more than are read tells that there are more."""
    return value[: MAX_POINTS + 1] if isinstance(value, list) else []


def _finding(item: object) -> Finding | None:
    item = item if isinstance(item, dict) else {"problem": item}
    problem = _first(item, _PROBLEM)
    if not problem:
        return None
    blocks = item.get("blocks", item.get("blocking", _words(item.get("severity")) != "minor"))
    return Finding(
        criterion=_words(item.get("criterion")).removeprefix(_FIELD),
        severity=Severity.BLOCKING if blocks is True or blocks == "true" else Severity.MINOR,
        demand=_first(item, _DEMAND),
        quote=_first(item, _PLACE, flat=False),
        problem=problem,
        fix=_first(item, _FIX),
    )


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NO_VALUE


def _is_empty(value: Any, path: str) -> bool:
    """Return whether a field of data holds nothing, which no words of a source need to give."""
    try:
        for step in re.findall(r"[^.\[\]$]+", path):
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (ValueError, LookupError, TypeError):
        return False
    return value in (None, "", [], {})


def _unsourced(path: str, words: object, source: str) -> Finding | None:
    """Return a finding where the words behind a field's value do not stand in its source."""
    path, quote = path.removeprefix("$").lstrip("."), _words(words)
    if quote and contains_quote(source, quote):
        return None
    return Finding(
        criterion=f"{_FIELD}{path}",
        severity=Severity.BLOCKING,
        quote=f'"{re.split(r"[.[]", path)[-1]}"' if "]" not in path[-1:] else "",
        problem=f"{path}: “{quote}” is not in the source." if quote else f"{path} has no source.",
        fix="Take the value from the source, or leave it out.",
    )


def _first(item: Mapping[str, Any], names: tuple[str, ...], *, flat: bool = True) -> str:
    return next((words for name in names if (words := _words(item.get(name), flat=flat))), "")


def _question(item: object) -> str:
    if not isinstance(item, dict):
        return _words(item)
    options = " / ".join(map(_words, _items(item.get("options"))))
    question = _words(item.get("question"))
    return f"{question} ({options})" if question and options else question


def _ready(value: object) -> bool | None:
    if isinstance(value, str):
        return bool(_YES.match(value))
    return None if value is None else value is True


def _words(value: object, *, flat: bool = True) -> str:
    words = value if isinstance(value, str) else ""
    return " ".join(words.split()) if flat else words.strip("\n")


def together(first: Critique, again: Critique) -> Critique:
    """Return what a critic says in two replies about one text: no weakness and no No is lost."""
    longer, shorter = sorted((again, first), key=lambda one: -len(one.findings))
    left = (f for f in shorter.findings if not any(same(f, other) for other in longer.findings))
    word = next((one for one in (first, again) if one.ready is False), again)
    if word.ready is None:
        word = first
    return longer.replace(
        findings=(*longer.findings, *left),
        expectations=first.expectations + again.expectations,
        questions=tuple(dict.fromkeys(first.questions + again.questions)),
        ready=word.ready,
        reason=word.reason,
        upheld=tuple(dict.fromkeys(first.upheld + again.upheld)),
        failure=first.failure and again.failure,
    )


def settle(run: Run, base: Iteration, critique: Critique) -> tuple[Critique, tuple[str, ...]]:
    """Return a critique with what becomes of its findings in the run.

    Args:
        run: the run.
        base: the text it is about.
        critique: as it was read, with those of its tests that the run takes.

    Returns:
        The critique with the new findings, by their ids, those that are fixed, and the contested
        ones that it stands by or lets go; and the ids of resolved findings that it names again.
    """
    named = critique.findings
    parent = None if base.parent is None else run.iterations[base.parent]
    new = weigh(drop_known(run, named, base.findings), base, parent)
    regressed = tuple(f.id for f in base.findings if regress(f, named).status is not f.status)
    fixed = critique.fixed
    if critique.ready:  # what blocks cannot be handed over, so that none of it is left
        standing = (f.id for f in up_for_review(base) if f.blocks or f.disputed or not fixed)
        fixed = tuple(dict.fromkeys([*fixed, *standing]))
    unsourced = [f for f in named if f.criterion.startswith(_FIELD)]
    named_again = {f.id for f in base.findings if any(same(f, other) for other in unsourced)}
    fixed = tuple(one for one in fixed if one not in named_again)
    waiting = [f for f in base.findings if f.is_open and f.unanswered and f.author != "check"]
    again = {f.id for f in waiting if any(same(f, other) for other in named)}
    upheld = tuple(dict.fromkeys([*critique.upheld, *sorted(again)]))
    dropped = tuple(f.id for f in waiting if f.id not in upheld and not critique.failure)
    findings = with_ids(run, new)
    settled = critique.replace(findings=findings, fixed=fixed, upheld=upheld, dropped=dropped)
    return settled, regressed
