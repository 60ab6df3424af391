"""A model that says again what a real one said: offline, without a key, the same every time."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from ipyrefine.core.ports import Delta, Model, Notice, Reply, Request, price_of
from ipyrefine.core.usage import Price
from ipyrefine.errors import NoModel, UsageError
from ipyrefine.providers.recordings import Call, Piece, Source, begun, key_of, read, write
from ipyrefine.providers.weights_catalog import WEIGHTS

PREFIX = "recorded:"
_PIECE_S = 0.5  # what a model writes in this time is one piece of a recording


class RecordedModel:
    """Replays a recording; what it does not hold, a live model answers: all, if it is not there.

    ::

        model = ipyrefine.choose_model("recorded:greeting.json")     # as fast as it goes
        model = ipyrefine.choose_model("recorded:greeting.json@1")   # at its own pace

    A request that was recorded more than once gets the replies in their order, then from the
    first again. `recordings` says what a request is known by.

    Args:
        path: the recording, a JSON file.
        speed: times the pace it was recorded at; by default as fast as it goes.
        live: gives the model for requests that are not in the recording, or raises `NoModel`.
        record: whether what the live model says is added to the recording.
        sleep: waits a number of seconds between pieces.

    Raises:
        UsageError: the file is no recording, or the speed is not positive.
    """

    def __init__(
        self,
        path: Path,
        *,
        speed: float = math.inf,
        live: Callable[[], Model] | None = None,
        record: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not speed > 0:
            raise UsageError(f"A recording's speed must be more than 0, not {speed}.")
        self._path, self._speed, self._record, self._sleep = path, speed, record, sleep
        self._recording = read(path) if path.exists() else begun()
        self._make_live = live
        self._live: Model | None = None
        self._served = Counter[str]()
        self._told = False

    @classmethod
    def named(cls, name: str, *, live: Callable[[], Model], record: bool) -> "RecordedModel":
        """Make one of ``recorded:PATH`` or, with a speed, ``recorded:PATH@SPEED``.

        Args:
            name: the name; speed 1 is the pace it was recorded at, 2 twice that.
            live: as for the class.
            record: as for the class.

        Raises:
            UsageError: as for the class, or the speed is no number.
        """
        path, _, speed = name.removeprefix(PREFIX).partition("@")
        try:
            pace = float(speed) if speed else math.inf
        except ValueError:
            raise UsageError(f"{name}: write recorded:PATH@1, with a number as speed.") from None
        return cls(Path(path).expanduser(), speed=pace, live=live, record=record)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._path)!r})"

    @property
    def name(self) -> str:
        """Name for people and records, by which it can be chosen again."""
        return f"{PREFIX}{self._path.as_posix()}"

    @property
    def price(self) -> Price | None:
        """What the recorded model charged; replaying costs nothing."""
        prices = [source.price for source in self._recording.models]
        return prices[0] if prices else None

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Say what the recorded model said, or ask the live one.

        Raises:
            NoModel: the request is not in the recording, and there is no live model.
            ModelError: the live model failed.
        """
        key = key_of(request)
        call = self._next(key)
        if call is not None:
            items = self._replay(call)
        else:
            items = self._ask(self._live or self._need_live(request), request, key)
        async with aclosing(items):
            async for item in items:
                yield item

    def _next(self, key: str) -> Call | None:
        """The next reply to a request; None when the live model is to be asked."""
        calls = [call for call in self._recording.calls if call.key == key]
        turn = self._served[key]
        self._served[key] += 1
        if turn < len(calls):
            return calls[turn]
        return calls[turn % len(calls)] if calls and not self._record else None

    async def _replay(self, call: Call) -> AsyncGenerator[Delta | Notice | Reply, None]:
        if not self._told:
            self._told = True
            yield Notice(text=f"A replay of {call.model}, recorded on {self._recording.date}.")
        for piece in call.pieces:
            await self._sleep(piece.after / self._speed)
            yield Delta(kind=piece.kind, text=piece.text)
        text, thinking = call.said("text"), call.said("thinking")
        yield Reply(text=text, thinking=thinking, finish=call.finish, usage=call.usage)

    async def _ask(
        self, live: Model, request: Request, key: str
    ) -> AsyncGenerator[Delta | Notice | Reply, None]:
        if self._live is None:
            self._live = live
            if not self._record:
                yield Notice(text=f"{self._missing(request)} {live.name} answers instead.")
        pieces, since = list[Piece](), time.monotonic()
        async with aclosing(live.stream(request)) as stream:  # type: ignore[type-var]
            async for item in stream:
                if isinstance(item, Delta):
                    now = time.monotonic()
                    if pieces and now - since < _PIECE_S and pieces[-1].kind == item.kind:
                        pieces[-1] = _joined(pieces[-1], item)
                    else:
                        after = round(now - since, 2)
                        pieces.append(Piece(after=after, text=item.text, kind=item.kind))
                        since = now
                elif isinstance(item, Reply) and self._record:
                    self._keep(live, request, key, pieces, item)
                yield item

    def _keep(
        self, live: Model, request: Request, key: str, pieces: list[Piece], reply: Reply
    ) -> None:
        """Add a call to the file; another model in this process may have added some too."""
        # A model that is loading says so as thinking, which is no part of its reply.
        kept = tuple(p for p in pieces if p.kind == "text" or reply.thinking)
        call = Call(
            purpose=request.purpose,
            key=key,
            model=live.name,
            pieces=kept,
            finish=reply.finish,
            usage=reply.usage,
        )
        weights = WEIGHTS[live.name].sha256 if live.name in WEIGHTS else ""
        source = Source(name=live.name, weights=weights, price=price_of(live))
        current = read(self._path) if self._path.exists() else begun()
        self._recording = current.with_call(call, source)
        write(self._path, self._recording)

    def _need_live(self, request: Request) -> Model:
        try:
            if self._make_live is not None:
                return self._make_live()
        except NoModel as error:
            raise NoModel(f"{self._missing(request)} {error}") from None
        raise NoModel(f"{self._missing(request)} There is no live model to ask.")

    def _missing(self, request: Request) -> str:
        if not self._recording.calls:
            return f"There is no recording {self._path}."
        stage = f"This {request.purpose or 'request'}"
        return (
            f"{stage} is not in the recording {self._path}, because the task, an option or a "
            "decision differs from what was recorded."
        )


def _joined(piece: Piece, more: Delta) -> Piece:
    return piece.model_copy(update={"text": piece.text + more.text})
