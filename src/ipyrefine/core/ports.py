"""What the engine needs from outside: a model, checks, consumers of events, and a clock."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from ipyrefine.core.events import Event
from ipyrefine.core.model import Evidence, Finish, Price, Record, Task, Usage
from ipyrefine.core.run import Run


class Message(Record):
    """One chat message.

    Attributes:
        role: who speaks.
        content: the words.
    """

    role: Literal["system", "user", "assistant"]
    content: str


class Request(Record):
    """One model call.

    Attributes:
        messages: the conversation, stable part first.
        json_schema: a flat JSON schema the reply must follow, or None for free text.
        schema_name: a short name for it, as servers want one.
        max_tokens: completion tokens allowed.
        temperature: sampling temperature.
        seed: sampling seed, or None.
        purpose: the stage that asks.
        inputs: what it is about, apart from our wording: the task, the texts, the findings, and
            the user's own prompts.
    """

    messages: tuple[Message, ...]
    json_schema: dict[str, Any] | None = None
    schema_name: str = "reply"
    max_tokens: int = 2_048
    temperature: float = 0.0
    seed: int | None = None
    purpose: str = ""
    inputs: tuple[str, ...] = ()


class Delta(Record):
    """A piece of a reply as it streams; thinking is shown but is never part of the text.

    Attributes:
        kind: what it belongs to.
        text: the piece.
    """

    kind: Literal["text", "thinking"] = "text"
    text: str


class Notice(Record):
    """Something the user should know about a call under way: a retry, a fallback.

    Attributes:
        text: one sentence.
        wait: seconds until the call goes on.
    """

    text: str
    wait: float = 0.0


class Reply(Record):
    """A finished reply.

    Attributes:
        text: the reply, without thinking.
        thinking: reasoning the server sent apart from the text.
        finish: how it ended: ``stop``; ``length`` (token limit); ``refused``; ``filtered``
            (content filter); ``incomplete`` (the stream ended without saying how).
        usage: what the call consumed, ``calls`` included.
    """

    text: str
    thinking: str = ""
    finish: Finish = "stop"
    usage: Usage = Usage(calls=1)


class Model(Protocol):
    """A language model: one method, a stream that ends with exactly one `Reply`.

    It may also have a ``price`` (a `Price`), which a budget in dollars needs.
    """

    @property
    def name(self) -> str:
        """Name for people and records."""

    def stream(self, request: Request) -> AsyncIterator[Delta | Notice | Reply]:
        """Answer a request.

        Raises:
            ModelError: the model or its server failed.
        """


def price_of(model: Model) -> Price | None:
    """Return what a model charges, from its ``price`` if it has one; None when unknown."""
    price = getattr(model, "price", None)
    return price if isinstance(price, Price) else None


class Check(Protocol):
    """A deterministic test of a text; a fault in the text is evidence, never an exception."""

    @property
    def name(self) -> str:
        """Name for people and records."""

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Check one text against the task."""


@runtime_checkable
class ComparingCheck(Check, Protocol):
    """A check that compares a text with the other drafts of its run."""

    def beside(self, others: Sequence[str]) -> Check:
        """Return the check of one text beside others that were written from the same task."""


class Consumer(Protocol):
    """Receives every event after it took effect; the loop waits for it."""

    def __call__(self, event: Event, run: Run) -> Awaitable[None] | None:
        """Take an event.

        Args:
            event: what happened.
            run: the run with the event applied.
        """


class Journal(Protocol):
    """Stores every event before anybody is shown it."""

    async def __call__(self, event: Event, run: Run) -> None:
        """Write an event; pieces of a reply may be left out.

        Raises:
            JournalError: it could not be written.
        """

    def postpone(self, event: Event) -> None:
        """Keep an event for the next write."""

    def close(self) -> None:
        """Let go of the file; a further event opens it again."""


class Clock(Protocol):
    """Monotonic seconds."""

    def __call__(self) -> float:
        """Return the seconds since some fixed moment."""
