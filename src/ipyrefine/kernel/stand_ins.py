"""Run code without the secrets in it: something else stands in their place.

What code makes of a secret (its length, its letters in another order) no pattern knows again, so
code whose outputs a model may read must not have it. It runs twice, with different stand-ins. What
differs then rests on the secret, and neither counts nor is shown.
"""

import builtins
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ipyrefine.core.addresses import MASK
from ipyrefine.core.ports import MODELS
from ipyrefine.core.syntax import read_literal
from ipyrefine.kernel.masking import Masked, pattern_of
from ipyrefine.kernel.redaction import HIDDEN, find_secrets
from ipyrefine.kernel.variables import NEEDS_SECRET
from ipyrefine.sandbox.sandbox import Event, FileContent, ProcessResult, describe_failure, run_parts

_CODE = re.compile(r"candidate\.py|test_\w+\.py")
_FIELDS = ("setup", "source", "expected")  # of an example
_LISTED = ("changes", "effects")  # of an event: what both runs have counts
_LEAST = 4  # characters of a secret; a shorter one stands in too many words
_NAME = re.compile(r"([^\W\d]\w*)(?:\.\w+)*")
_START = re.compile(r"[A-Za-z]{2,10}[-_.]|[^:\s]+:")  # as of a token, or a login
_VOLATILE = re.compile(r" at 0x[0-9a-f]+|ipyrefine-\w+")  # addresses, the sandbox's folder
_StandIns = Mapping[str, str]  # by secret


async def run_without_secrets(
    kind: Literal["examples", "tests", "cell"],
    files: Mapping[str, FileContent],
    *,
    examples: Sequence[Mapping[str, Any]] = (),
    **options: Any,
) -> tuple[ProcessResult, list[Event]]:
    """Run the parts of a text like `run_parts`, without the secrets that the code holds.

    Raises:
        CheckNotRun: as for `run_parts`.
    """
    code = [name for name in files if _CODE.fullmatch(name)]
    texts = [str(files[name]) for name in code]
    texts += [str(one[field] or "") for one in examples for field in _FIELDS]
    ends = []
    for stand_ins in _stand_ins("\n".join(texts)):
        asked = [{**one, **{f: _hide(one[f], stand_ins) for f in _FIELDS}} for one in examples]
        request: dict[str, Any] = {"examples": asked} if examples else {}
        hidden = {name: _hide(files[name], stand_ins) for name in code}
        result, events = await run_parts(kind, {**files, **hidden}, **request, **options)
        if not stand_ins:
            return result, events
        ends.append(_blanked(result, events, stand_ins if kind == "cell" else {}))
    (result, events), (other, others) = ends
    if MASK.search("".join(str(files[name]) for name in code)):  # it may fail for a mask's sake
        others = [one for one in others if not (one.get("error") or one.get("why"))]
        other = other.replace(exit_code=0 if result.exit_code else other.exit_code)
    if kind == "cell":
        return _common_cell(result, events, other, others)
    return result, [one if one in others else _needs_secret(one) for one in events]


def _blanked(
    result: ProcessResult, events: list[Event], stand_ins: _StandIns
) -> tuple[ProcessResult, list[Event]]:
    blanks = {one: HIDDEN for one in stand_ins.values() if not one.isdecimal()}
    streams = {name: _hide(getattr(result, name), blanks) for name in ("stdout", "stderr")}
    # A row is for the user to confirm: one with a stand-in is left out, as it differs.
    events = [_end(event, {} if "changes" in event else blanks) for event in events]
    return result.replace(**streams), events


def _common_cell(
    result: ProcessResult, events: list[Event], other: ProcessResult, others: list[Event]
) -> tuple[ProcessResult, list[Event]]:
    if _fault(result, events) != _fault(other, others):
        return result.replace(exit_code=1, limit=None, stderr=NEEDS_SECRET, stdout=""), []
    stdout = result.stdout if result.stdout == other.stdout else ""
    for name, event in ((n, event) for event in events for n in _LISTED if n in event):
        theirs = [one for other in others for one in other.get(name, ())]
        event[name] = [one for one in event[name] if one in theirs]
    kept = [one for one in events if one in others or any(name in one for name in _LISTED)]
    return result.replace(stdout=stdout), kept


def _fault(result: ProcessResult, events: list[Event]) -> tuple[Any, ...]:
    how = result.exit_code and _VOLATILE.sub("", describe_failure(result, 1))
    return result.limit, how, [one for one in events if "exit" in one or "failure" in one]


def _end(event: Event, words: Mapping[str, str]) -> Event:
    """Return an event to compare, with other words in the place of stand-ins."""
    text = _VOLATILE.sub("", json.dumps({**event, "token": ""}))
    return json.loads(_hide(text, words))  # type: ignore[no-any-return]


def _needs_secret(event: Event) -> Event:
    if "index" in event:
        return {"event": "done", "index": event["index"], "error": NEEDS_SECRET}
    if "test" in event:
        return {**event, "outcome": "failed", "why": NEEDS_SECRET}
    return {n: NEEDS_SECRET if n in ("error", "fault") else text for n, text in event.items()}


def _stand_ins(code: str) -> tuple[_StandIns, ...]:
    """Return two replacements for each secret, which differ in form and length.

    What a model of the run was sent masked is one, too, and so is a mask that it left.
    """
    known = [one.placeholders for one in MODELS.get() if isinstance(one, Masked)]
    found = {*find_secrets(code)}.union(*known)
    secrets = [one for one in found if one in code and len(one) >= _LEAST and not _is_code(one)]
    first = {mask: mask for mask in MASK.findall(code)}
    second = {mask: f"abcdef{mask[7:]}" for mask in first}
    for number, secret in enumerate(sorted(secrets, key=lambda one: (-len(one), one)), start=1):
        if isinstance(read_literal(secret), int | float):
            least = 10 ** (len(secret) - 1) + number
            first[secret], second[secret] = str(least), str(20 * least)
            continue
        lines = "\n" * secret.count("\n")
        first[secret] = f"MASKED_SECRET_{9_000 + number}{lines}"
        start = _START.match(secret)
        second[secret] = (
            f"{start[0] if start else ''}abcdef0123456789abcdef01234567{number % 100:02}{lines}"
        )
    return (first, second) if first else ({},)


def _is_code(secret: str) -> bool:
    """Return True if a secret's place holds an expression instead: ``os.environ``."""
    name = _NAME.fullmatch(secret)
    return bool(name and (hasattr(builtins, name[1]) or name[1] in sys.stdlib_module_names))


def _hide(text: Any, stand_ins: _StandIns) -> Any:
    if not stand_ins or not isinstance(text, str):
        return text
    pattern = "|".join(map(pattern_of, stand_ins))
    return re.sub(pattern, lambda match: stand_ins[match[0]], text)
