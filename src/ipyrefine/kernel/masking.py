"""Keep secrets from a model: it is sent placeholders, and its replies get the secrets back."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Literal

from ipyrefine.core.ports import Delta, Message, Model, Notice, Reply, Request
from ipyrefine.kernel.redaction import find_secrets, replace_secrets

_PLACEHOLDER = re.compile(r"MASKED_SECRET_\d{1,4}")
_UNFINISHED = re.compile(r"M(?:[A-Z_]{0,12}|ASKED_SECRET_\d{0,4})\Z")  # at the end of a piece
_Kind = Literal["text", "thinking"]
_RARE = 6  # characters of a secret that no other word is likely to be
_LEAST = 4  # of one that is hidden where a text quotes it


class Masked:
    """A model that is sent every text without the secrets in it.

    The run's texts may state secrets, which later ones repeat. `placeholders` stand for them.
    """

    def __init__(self, inner: Model, *texts: str) -> None:
        self.inner = inner
        self.placeholders: dict[str, str] = {}
        self._words = set[str]()  # those that a reply holds outside of quotes
        for text in texts:
            self._hide(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self.inner.name

    async def stream(self, request: Request) -> AsyncIterator[Delta | Notice | Reply]:
        """Stream the reply to the request without its secrets, which are put back into it."""
        inside_json, waiting = request.json_schema is not None, dict[_Kind, str]()
        masked = await self._mask(request)
        async with aclosing(self.inner.stream(masked)) as parts:  # type: ignore[type-var]
            async for part in parts:
                if isinstance(part, Delta):
                    text = waiting.pop(part.kind, "") + part.text
                    if self.placeholders and (match := _UNFINISHED.search(text[-20:])):
                        waiting[part.kind] = match[0]
                        text = text.removesuffix(match[0])
                    if text:
                        yield Delta(kind=part.kind, text=self._fill(text, inside_json))
                    continue
                for kind, text in waiting.items():
                    yield Delta(kind=kind, text=self._fill(text, inside_json))
                waiting.clear()
                if isinstance(part, Reply):
                    filled = [self._fill(text, inside_json) for text in (part.text, part.thinking)]
                    part = part.model_copy(update={"text": filled[0], "thinking": filled[1]})
                yield part

    async def _mask(self, request: Request) -> Request:
        masked = dict[str, tuple[Message, ...]]()
        for field in ("messages", "guarded"):
            for message in getattr(request, field) or ():
                await asyncio.sleep(0)  # a long text takes a while, and others have their turn
                hidden = message.model_copy(update={"content": self._hide(message.content)})
                masked[field] = (*masked.get(field, ()), hidden)
        return request.model_copy(update=masked)

    def _hide(self, text: str) -> str:
        text = replace_secrets(text, lambda secret: self._placeholder(secret, text))
        for secret, placeholder in self.placeholders.items():
            is_number = secret.isdecimal() and len(secret) >= _RARE
            if is_rare(secret) or is_number or secret in self._words:
                text = re.sub(pattern_of(secret), placeholder, text)
            elif len(secret) >= _LEAST:
                quoted = rf"(?<=[\"']){re.escape(secret)}(?=[\"'])"
                text = re.sub(quoted, placeholder, text)
        return text

    def _placeholder(self, secret: str, text: str) -> str:
        if secret not in self.placeholders:
            taken = {*_PLACEHOLDER.findall(text), *self.placeholders.values()}
            names = (f"MASKED_SECRET_{n}" for n in range(1, 10_000))
            self.placeholders[secret] = next(name for name in names if name not in taken)
        return self.placeholders[secret]

    def _fill(self, text: str, inside_json: bool) -> str:
        secrets = {placeholder: secret for secret, placeholder in self.placeholders.items()}

        def fill(match: re.Match[str]) -> str:
            secret = secrets.get(match[0], match[0])
            beside = text[max(0, match.start() - 1) : match.start()] + text[match.end() :][:1]
            if not is_rare(secret) and re.search(r"\w", beside):
                return match[0]  # within a word nobody would know the secret again
            if not re.fullmatch(r"[\"']{2}", beside):
                self._words.add(secret)
            return json.dumps(secret)[1:-1] if inside_json else secret

        return _PLACEHOLDER.sub(fill, text)


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
