"""What the engine needs from outside: a model, checks, consumers of events, and a clock."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Protocol

from pydantic import Field

from ipyrefine.core.events import Event
from ipyrefine.core.model import Delta as Delta
from ipyrefine.core.model import Finish, Price, Record, Task, Usage
from ipyrefine.core.run import Run
from ipyrefine.core.table import Point, Result


class Message(Record):
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


class Request(Record):
    """One model call."""

    messages: tuple[Message, ...]  # the stable part first
    json_schema: dict[str, Any] | None = None  # that the reply must follow; None for free text
    max_tokens: int = 2_048  # completion tokens
    temperature: float | None = None  # None: the server's own
    seed: int | None = None
    purpose: str = ""  # the stage that asks
    form: str = "code"  # what the reply has to be: a row of `forms.FORMS`
    # What it is about, apart from our wording: the task, the texts, the findings, own prompts.
    inputs: tuple[str, ...] = ()
    # The conversation without what code computed from variables or files, for a server elsewhere
    # that answers in place of a recording; empty where it may have the messages.
    guarded: tuple[Message, ...] = Field(default=(), exclude=True)


def estimate_usage(request: Request, characters: int) -> Usage:
    """Return the usage of a call whose tokens nobody counted: a quarter of the characters."""
    prompt = sum(len(message.content) for message in request.messages)
    read, wrote = (max(1, round(count / 4)) for count in (prompt, characters))
    return Usage(calls=1, prompt_tokens=read, completion_tokens=wrote)


class Notice(Record):
    """Something the user should know about a call under way: a retry, a fallback."""

    text: str  # one sentence; empty where only the wait counts
    wait: float = 0.0  # seconds until the call goes on


class Reply(Record):
    """A finished reply.

    It ends with ``stop``; ``length`` (token limit); ``refused``; ``filtered`` (content filter); or
    ``incomplete`` (the stream ended without saying how).
    """

    text: str  # without thinking
    thinking: str = ""  # reasoning that the server sent apart from the text
    finish: Finish = "stop"
    capped: bool = False  # whether it was cut off at a limit of the server's, below the request's
    usage: Usage = Usage(calls=1)

    @property
    def pieces(self) -> tuple[Delta, ...]:
        """All of it as it would stream."""
        return Delta(kind="thinking", text=self.thinking), Delta(text=self.text)


# What a model streams: pieces and notices, and at the end the reply.
Stream = AsyncGenerator[Delta | Notice | Reply, None]


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


# Those of the run that is under way here, which checks don't run: a `kernel.masking.Secrets`.
SECRETS: ContextVar[Any] = ContextVar("SECRETS", default=None)


def price_of(model: Model) -> Price | None:
    """Return a model's ``price`` if it has one; None when unknown."""
    price = getattr(model, "price", None)
    return price if isinstance(price, Price) else None


class Check(Protocol):
    """A deterministic test of a text; a fault in the text is evidence, never an exception."""

    @property
    def name(self) -> str:
        """Name for people and records."""

    async def __call__(self, text: str, task: Task) -> Result:
        """Check one text against the task."""


class Suite(Protocol):
    """Runs the tests that a critic wrote."""

    async def __call__(self, tests: Sequence[Point], text: str, task: Task) -> dict[str, Result]:
        """Run the tests on a text, and return what each shows, by their names."""


# Takes every event, and the run with it applied, after it took effect; the loop waits for it.
Consumer = Callable[[Event, Run], Awaitable[None] | None]


class Journal(Protocol):
    """Stores every event before it is shown."""

    async def __call__(self, event: Event, run: Run) -> None:
        """Write an event; pieces of a reply may be left out.

        Raises:
            JournalError: it could not be written.
        """

    def postpone(self, event: Event) -> None:
        """Keep an event for the next write."""

    def close(self) -> None:
        """Let go of the file; a further event opens it again."""


Clock = Callable[[], float]  # monotonic seconds
