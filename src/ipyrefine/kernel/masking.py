"""Keep secrets from a model: it is sent masks, and its texts get secrets back where they stood."""

import ast
import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from functools import cache
from itertools import count
from typing import Any

from ipyrefine.core.addresses import MASK, find_addresses
from ipyrefine.core.model import Form, Stage
from ipyrefine.core.ports import Delta, Message, Model, Notice, Reply, Request
from ipyrefine.core.syntax import try_parse, unparse
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.redaction import find_secrets, replace_secrets

_NUMBERED = re.compile(rf"({MASK.pattern})_(\d+)_")  # each mask of a text has a number
_WORD = re.compile(rf"[^\s\"'`*()<>\\]{{0,200}}{MASK.pattern}[^\s\"'`*()<>\\]*(?<![.,;:!?])")
_TAG = re.compile(r"<\w")  # of HTML, which may take lines into an address
_RARE = 6  # characters of a secret that no other word is likely to be
_MOST = 100  # masks of a text that are looked at
_LEAST = 4  # of one that is hidden where a text quotes it


class Masked:
    """A model that is sent every text without the secrets in it.

    The run's texts may state secrets, which later ones repeat. `placeholders` stand for them, in
    its replies too, until `restore` puts them back where they stood.
    """

    def __init__(self, inner: Model, *texts: str) -> None:
        self.inner = inner
        self.placeholders: dict[str, str] = {}
        self._texts, self._places = list[str](), set[str]()
        self._addresses = {one for text in texts for one in find_addresses(text)}
        for text in texts:
            self.hide(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self.inner.name

    async def stream(self, request: Request) -> AsyncIterator[Delta | Notice | Reply]:
        """Stream the reply to the request without its secrets; what a reader quotes has them."""
        masked, reads = await self._mask(request), request.purpose in (Stage.CRITIQUE, Stage.JUDGE)
        async with aclosing(self.inner.stream(masked)) as parts:  # type: ignore[type-var]
            async for part in parts:
                if isinstance(part, Reply) and reads:
                    quoted = self.restore(part.text, "prose")
                    part = part.model_copy(update={"text": quoted})
                yield part

    async def _mask(self, request: Request) -> Request:
        masked = dict[str, tuple[Message, ...]]()
        for field in ("messages", "guarded"):
            for message in getattr(request, field) or ():
                await asyncio.sleep(0)  # a long text takes a while, and others have their turn
                hidden = message.model_copy(update={"content": self._hide(message.content)})
                masked[field] = (*masked.get(field, ()), hidden)
        return request.model_copy(update=masked)

    def hide(self, text: str) -> str:
        """Return a text as a model is sent it; its secrets may be put back where they stand."""
        hidden = self._hide(text)
        known = self._hide(MASK.sub("", text))  # where a mask stands already, no secret stood
        self._texts.append(known)
        for *_, statement, place in _find_literals(known):
            self._places |= {statement, place}
        return hidden

    def _hide(self, text: str) -> str:
        text = replace_secrets(text, lambda secret: self._placeholder(secret, text))
        for secret, placeholder in self.placeholders.items():
            is_number = secret.isdecimal() and len(secret) >= _RARE
            if is_rare(secret) or is_number:
                text = re.sub(pattern_of(secret), placeholder, text)
            elif len(secret) >= _LEAST:
                quoted = rf"(?<=[\"']){re.escape(secret)}(?=[\"'])"
                text = re.sub(quoted, placeholder, text)
        return text

    def _placeholder(self, secret: str, text: str) -> str:
        if secret not in self.placeholders:
            taken = {*MASK.findall(text), *self.placeholders.values()}
            names = (f"MASKED_SECRET_{n}" for n in range(1, 10_000))
            self.placeholders[secret] = next(name for name in names if name not in taken)
        return self.placeholders[secret]

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
            is_same = statement in self._places or (familiar and moved)
            (stood if is_same else new).append(literal)
        lines = {line.strip() for one in self._texts for line in one.split("\n")}
        secrets = {placeholder: secret for secret, placeholder in self.placeholders.items()}
        is_prose = form == "prose"
        for line in filter(MASK.search, text.split("\n")):
            if _plain(line).strip() in lines and (familiar or (is_prose and not _TAG.search(text))):
                stood.append(line)
            elif is_prose and familiar:
                # Another one would not be known again among words.
                rare = {mask for mask, secret in secrets.items() if is_rare(secret)}
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


def is_rare(secret: str) -> bool:
    """Return True if a secret is hidden wherever it stands: no other word or number is like it."""
    return len(secret) >= _RARE and not secret.isalpha() and not secret.isdecimal()


def pattern_of(secret: str) -> str:
    """Return the pattern of a secret in a text."""
    word = re.escape(secret)
    return word if is_rare(secret) else rf"(?<!\w){word}(?!\w)"


def count_secrets(*texts: str | None) -> int:
    """Return how many secrets some texts state."""
    return len({secret for text in texts for secret in find_secrets(text or "")})
