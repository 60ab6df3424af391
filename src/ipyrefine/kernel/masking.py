"""Keep secrets from a model: it is sent placeholders, and its replies get the secrets back."""

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


class Masked:
    """A model that is sent every text without the secrets in it.

    Args:
        inner: the model that answers.
    """

    def __init__(self, inner: Model) -> None:
        self.inner = inner
        self._placeholders: dict[str, str] = {}  # by secret

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def name(self) -> str:
        """Name for people and records."""
        return self.inner.name

    async def stream(self, request: Request) -> AsyncIterator[Delta | Notice | Reply]:
        """Stream the reply to the request without its secrets, which are put back into it."""
        inside_json, waiting = request.json_schema is not None, dict[_Kind, str]()
        async with aclosing(self.inner.stream(self._mask(request))) as parts:  # type: ignore[type-var]
            async for part in parts:
                if isinstance(part, Delta):
                    text = waiting.pop(part.kind, "") + part.text
                    if self._placeholders and (match := _UNFINISHED.search(text[-20:])):
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

    def _mask(self, request: Request) -> Request:
        masked = {
            field: tuple(Message(role=m.role, content=self._hide(m.content)) for m in messages)
            for field in ("messages", "guarded")
            if (messages := getattr(request, field))
        }
        return request.model_copy(update=masked)

    def _hide(self, text: str) -> str:
        text = replace_secrets(text, lambda secret: self._placeholder(secret, text))
        for secret, placeholder in self._placeholders.items():
            if len(secret) >= _RARE and not secret.isalpha():
                text = text.replace(secret, placeholder)
        return text

    def _placeholder(self, secret: str, text: str) -> str:
        if secret not in self._placeholders:
            taken = {*_PLACEHOLDER.findall(text), *self._placeholders.values()}
            names = (f"MASKED_SECRET_{n}" for n in range(1, 10_000))
            self._placeholders[secret] = next(name for name in names if name not in taken)
        return self._placeholders[secret]

    def _fill(self, text: str, inside_json: bool) -> str:
        secrets = {placeholder: secret for secret, placeholder in self._placeholders.items()}
        if inside_json:
            secrets = {name: json.dumps(secret)[1:-1] for name, secret in secrets.items()}
        return _PLACEHOLDER.sub(lambda match: secrets.get(match[0], match[0]), text)


def count_secrets(*texts: str | None) -> int:
    """Return how many secrets some texts state."""
    return len({secret for text in texts for secret in find_secrets(text or "")})
