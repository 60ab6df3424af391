"""Keep the secrets of a run in one table, with the mask that stands for each of them elsewhere.

A model is sent masks, and its texts get secrets back where they stood. Checked code runs with masks
as well: what it makes of a secret (its length, its letters in another order) no pattern knows.
It runs twice, the second time with something else in their place. What differs then rests on the
secret, and neither counts nor is shown.
"""

import ast
import asyncio
import builtins
import json
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import cache
from itertools import count
from typing import Any, Literal

from ipyrefine.core.addresses import MASK, find_addresses
from ipyrefine.core.model import Form, Stage
from ipyrefine.core.ports import SECRETS, Delta, Message, Model, Notice, Reply, Request
from ipyrefine.core.syntax import read_literal, try_parse, unparse
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.redaction import HIDDEN, find_secrets, replace_secrets
from ipyrefine.kernel.variables import NEEDS_SECRET
from ipyrefine.sandbox.sandbox import Event, FileContent, ProcessResult, describe_failure, run_parts

_NUMBERED = re.compile(rf"({MASK.pattern})_(\d+)_")  # each mask of a text has a number
_WORD = re.compile(rf"[^\s\"'`*()<>\\]{{0,200}}{MASK.pattern}[^\s\"'`*()<>\\]*(?<![.,;:!?])")
_TAG = re.compile(r"<\w")  # of HTML, which may take lines into an address
_RARE = 6  # characters of a secret that no other word is likely to be
_MOST = 100  # masks of a text that are looked at
_SENT = 100  # requests that are kept
_LEAST = 4  # characters of a secret that is hidden between quotes, too
_CODE = re.compile(r"candidate\.py|test_\w+\.py")
_FIELDS = ("setup", "source", "expected")  # of an example
_LISTED = ("changes", "effects")  # of an event: what both runs have counts
_NAME = re.compile(r"([^\W\d]\w*)(?:\.\w+)*")
_START = re.compile(r"[A-Za-z]{2,10}[-_.]|[^:\s]+:")  # as of a token, or a login
_VOLATILE = re.compile(r" at 0x[0-9a-f]+|ipyrefine-\w+")  # addresses, the sandbox's folder


class Secrets:
    """The secrets that the texts of a run state.

    Attributes:
        masks: what stands for each, until `restore` puts it back where it stood.
        sent: the latest requests as the run's models got them, each with its number and the model.
    """

    def __init__(self, *texts: str) -> None:
        self.masks: dict[str, str] = {}
        self.sent: deque[tuple[int, str, Request]] = deque(maxlen=_SENT)
        self.numbers = count(1)
        self._texts, self._places = list[str](), set[str]()
        self._addresses = {one for text in texts for one in find_addresses(text)}
        for text in texts:
            self.hide(text)

    def hide(self, text: str) -> str:
        """Return a text as a model is sent it; its secrets may be put back where they stand."""
        hidden = self.mask(text)
        known = self.mask(MASK.sub("", text))  # where a mask stands already, no secret stood
        self._texts.append(known)
        for *_, statement, place in _find_literals(known):
            self._places |= {statement, place}
        return hidden

    def mask(self, text: str) -> str:
        """Return a text with masks for its secrets, and for those of other texts in it."""
        text = replace_secrets(text, lambda secret: self.mask_of(secret, text))
        for secret, mask in self.masks.items():
            if _is_rare(secret) or (secret.isdecimal() and len(secret) >= _RARE):
                text = re.sub(_pattern_of(secret), mask, text)
            elif len(secret) >= _LEAST:
                text = re.sub(rf"(?<=[\"']){re.escape(secret)}(?=[\"'])", mask, text)
        return text

    def mask_of(self, secret: str, text: str) -> str:
        """Return the mask of a secret in a text, in which no other has it."""
        if secret not in self.masks:
            taken = {*MASK.findall(text), *self.masks.values()}
            names = (f"MASKED_SECRET_{n}" for n in range(1, 10_000))
            self.masks[secret] = next(name for name in names if name not in taken)
        return self.masks[secret]

    def restore(self, text: str, form: Form) -> str:
        """Return a writer's text with secrets put back where they stood; elsewhere masks stay.

        One stood in a statement of Python that is unchanged, and in such a line of prose. Where a
        text names no new address, one also stood in the same argument of the same call, in any
        unchanged line and in the same word of prose; and a name may be given one. In a text with
        more than 100 masks, all stay.
        """
        if len(MASK.findall(text)) > _MOST:
            return text
        familiar, numbers = self._addresses.issuperset(find_addresses(text)), count()
        text = MASK.sub(lambda mask: f"{mask[0]}_{next(numbers)}_", text)
        stood, new = list[str](), list[str]()
        for literal, parent, statement, place in _find_literals(text) if form == "code" else ():
            named = isinstance(parent, ast.Assign | ast.AnnAssign) or "://" in literal
            moved = place in self._places and not isinstance(parent, ast.stmt)
            moved |= named and self._stood(literal[1:-1])  # an address with its own login, too
            (stood if statement in self._places or (familiar and moved) else new).append(literal)
        lines = {line.strip() for one in self._texts for line in one.split("\n")}
        secrets = {mask: secret for secret, mask in self.masks.items()}
        is_prose = form == "prose"
        for line in filter(MASK.search, text.split("\n")):
            if _plain(line).strip() in lines and (familiar or (is_prose and not _TAG.search(text))):
                stood.append(line)
            elif is_prose and familiar:
                # Another one would not be known again among words.
                rare = {mask for mask, secret in secrets.items() if _is_rare(secret)}
                words = (one for one in _WORD.findall(line) if rare.issuperset(MASK.findall(one)))
                stood += filter(self._stood, words)
        kept = {*_NUMBERED.findall("\n".join(stood))} - {*_NUMBERED.findall("\n".join(new))}
        return _NUMBERED.sub(
            lambda mask: secrets.get(mask[1], mask[1]) if mask.groups() in kept else mask[1], text
        )

    def _stood(self, words: str) -> bool:
        return any(_plain(words) in one for one in self._texts)


def _find_literals(code: str) -> Iterator[tuple[str, ast.AST, str, str]]:
    """Yield strings with masks, each with its parent, its statement and its place in that."""
    tree = try_parse(python_part(code).code) if MASK.search(code) else None
    nodes = ast.walk(tree) if tree else ()
    parents = {below: node for node in nodes for below in ast.iter_child_nodes(node)}
    source_of = cache(lambda node: _plain(unparse(node)))  # which takes a while for a long one
    for node in parents:
        if isinstance(node, ast.Constant | ast.JoinedStr) and MASK.search(unparse(node)):
            literal = place = unparse(node)
            above: ast.AST = node
            while not isinstance(above := parents[above], ast.stmt):
                called = unparse(above.func) if isinstance(above, ast.Call) else ""
                place += f" < {type(above).__name__} {called}{getattr(above, 'arg', '')}"
            yield literal, parents[node], source_of(above), _plain(place)


def _plain(text: str) -> str:
    """Return a text without the numbers of its masks."""
    return _NUMBERED.sub(r"\1", text)


def _is_rare(secret: str) -> bool:
    """Return True if a secret is hidden wherever it stands: no other word or number is like it."""
    return len(secret) >= _RARE and not secret.isalpha() and not secret.isdecimal()


def _pattern_of(secret: str) -> str:
    word = re.escape(secret)
    return word if _is_rare(secret) else rf"(?<!\w){word}(?!\w)"


class Masked:
    """A model that is sent every text without the secrets in it, and answers with their masks."""

    def __init__(self, inner: Model, secrets: Secrets) -> None:
        self.inner, self.secrets = inner, secrets

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self.inner.name

    async def stream(self, request: Request) -> AsyncIterator[Delta | Notice | Reply]:
        """Stream the reply to the request without its secrets; what a reader quotes has them."""
        masked, reads = await self._mask(request), request.purpose in (Stage.CRITIQUE, Stage.JUDGE)
        self.secrets.sent.append((next(self.secrets.numbers), self.name, masked))
        async with aclosing(self.inner.stream(masked)) as parts:  # type: ignore[type-var]
            async for part in parts:
                if isinstance(part, Reply) and reads:
                    quoted = self.secrets.restore(part.text, "prose")
                    part = part.model_copy(update={"text": quoted})
                yield part

    async def _mask(self, request: Request) -> Request:
        masked = dict[str, tuple[Message, ...]]()
        for field in ("messages", "guarded"):
            for message in getattr(request, field) or ():
                await asyncio.sleep(0)  # a long text takes a while, and others have their turn
                hidden = self.secrets.mask(message.content)
                hidden = message.model_copy(update={"content": hidden})
                masked[field] = (*masked.get(field, ()), hidden)
        return request.model_copy(update=masked)


# Checked code


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

    async def run(stand_ins: Mapping[str, str]) -> tuple[ProcessResult, list[Event]]:
        asked = [{**one, **{f: _put(one[f], stand_ins) for f in _FIELDS}} for one in examples]
        request: dict[str, Any] = {"examples": asked} if examples else {}
        hidden = {name: _put(files[name], stand_ins) for name in code}
        result, events = await run_parts(kind, {**files, **hidden}, **request, **options)
        return (
            _blanked(result, events, stand_ins, kind == "cell") if stand_ins else (result, events)
        )

    first, second = _stand_ins("\n".join(texts))
    result, events = await run(first)
    if not first:
        return result, events
    other, others = await run(second)
    if MASK.search("".join(texts)):  # it may fail for a mask's sake
        others = [one for one in others if not (one.get("error") or one.get("why"))]
        other = other.replace(exit_code=0 if result.exit_code else other.exit_code)
    if kind != "cell":
        return result, [one if one in others else _needs_secret(one) for one in events]
    if _fault(result, events) != _fault(other, others):
        return result.replace(exit_code=1, limit=None, stderr=NEEDS_SECRET, stdout=""), []
    for name, event in ((n, event) for event in events for n in _LISTED if n in event):
        theirs = [one for other in others for one in other.get(name, ())]
        event[name] = [one for one in event[name] if one in theirs]
    kept = [one for one in events if one in others or any(name in one for name in _LISTED)]
    return result.replace(stdout=result.stdout if result.stdout == other.stdout else ""), kept


def _stand_ins(code: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return two replacements for each secret in code, which differ in form and length.

    The first is its mask, but for a number; a mask that a model left is one, too.
    """
    table = SECRETS.get() or Secrets()
    found = {*find_secrets(code), *table.masks}
    secrets = [one for one in found if one in code and len(one) >= _LEAST]
    # In the place of some stands an expression: ``os.environ``.
    names = ((one, _NAME.fullmatch(one)) for one in secrets)
    known = {*dir(builtins), *sys.stdlib_module_names}
    secrets = [one for one, name in names if not (name and name[1] in known)]
    first = {mask: mask for mask in MASK.findall(code)}
    second = {mask: f"abcdef{mask[7:]}" for mask in first}
    for number, secret in enumerate(sorted(secrets, key=lambda one: (-len(one), one)), start=1):
        if isinstance(read_literal(secret), int | float):
            least = 10 ** (len(secret) - 1) + number
            first[secret], second[secret] = str(least), str(20 * least)
            continue
        lines, start = "\n" * secret.count("\n"), _START.match(secret)
        first[secret] = f"{table.mask_of(secret, code)}{lines}"
        second[secret] = (
            f"{start[0] if start else ''}abcdef0123456789abcdef01234567{number % 100:02}{lines}"
        )
    return first, second


def _put(text: Any, words: Mapping[str, str]) -> Any:
    """Return a text with some words in the place of others; anything else as it is."""
    if not words or not isinstance(text, str):
        return text
    return re.sub("|".join(map(_pattern_of, words)), lambda match: words[match[0]], text)


def _blanked(
    result: ProcessResult, events: list[Event], stand_ins: Mapping[str, str], hides: bool
) -> tuple[ProcessResult, list[Event]]:
    """Return what a run gave, to compare it; of a cell no stand-in is shown."""
    blanks = {one: HIDDEN for one in stand_ins.values() if hides and not one.isdecimal()}
    streams = {name: _put(getattr(result, name), blanks) for name in ("stdout", "stderr")}
    texts = [_VOLATILE.sub("", json.dumps({**event, "token": ""})) for event in events]
    # A row is for the user to confirm: one with a stand-in is left out, as it differs.
    texts = [_put(one, {} if '"changes":' in one else blanks) for one in texts]
    return result.replace(**streams), [json.loads(one) for one in texts]


def _fault(result: ProcessResult, events: list[Event]) -> tuple[Any, ...]:
    how = result.exit_code and _VOLATILE.sub("", describe_failure(result, 1))
    return result.limit, how, [one for one in events if "exit" in one or "failure" in one]


def _needs_secret(event: Event) -> Event:
    if "index" in event:
        return {"event": "done", "index": event["index"], "error": NEEDS_SECRET}
    if "test" in event:
        return {**event, "outcome": "failed", "why": NEEDS_SECRET}
    return {n: NEEDS_SECRET if n in ("error", "fault") else text for n, text in event.items()}
