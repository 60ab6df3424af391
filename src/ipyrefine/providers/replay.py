"""Record what a model replies, and replay it: offline, without a key, the same every time.

A recording is a small JSON file of calls. A call is known by its content (`Request.inputs`), its
stage and its sampling settings, not by its place in the run nor by the wording of our prompts. So
calls may run at the same time, a stage may be left out, and a recording outlives a reworded
prompt. Another task, draft, finding, guidance or prompt makes another call. What
differs between two equal runs is ignored: the fences around untrusted text, addresses in memory,
times, and the order in which checks finish.

Replies that a person wrote are there to show a loop, so they also answer requests they were not
written for, and their usage says so.
"""

import asyncio
import datetime
import hashlib
import json
import math
import os
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing, suppress
from difflib import SequenceMatcher
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import Field

from ipyrefine.core.model import Finish, Price, Record, Usage
from ipyrefine.core.ports import Delta, Model, Notice, Reply, Request, Stream, price_of
from ipyrefine.core.stored import VERSION, parse_json, require_current
from ipyrefine.errors import NoModel, UsageError
from ipyrefine.folders import read_file

PREFIX = "recorded:"
BY_HAND = "written-by-hand"  # the model of replies that a person wrote
_LONGEST_PAUSE = 3_600.0  # seconds between two pieces
_MAX_FILE = 128 * 2**20  # bytes of a recording
_COMPARED = 1_000  # words of two tasks
_PIECE_SECONDS = 0.5  # what a model writes in this time is one piece of a recording
_VOLATILE = re.compile(r"(?<=material-)[0-9a-f]+|0x[0-9a-f]+|\b\d+(\.\d+)? ?s\b")


class Piece(Delta):
    """A piece of a reply, `after` so many seconds since the piece before it or the request."""

    after: float = Field(ge=0, le=_LONGEST_PAUSE)


class Call(Record):
    """One request and its reply."""

    purpose: str  # the stage of the request
    key: str  # the request's `request_key`
    model: str
    pieces: tuple[Piece, ...]
    finish: Finish
    usage: Usage
    task: str = ""  # what the request is about, where a person wrote the reply

    def joined(self, kind: Literal["text", "thinking"]) -> str:
        """Return its whole text, or its whole thinking."""
        return "".join(piece.text for piece in self.pieces if piece.kind == kind)


class SourceModel(Record):
    """A model that was recorded."""

    name: str
    weights: str  # their sha256; empty if they are not known
    price: Price | None  # None if it is not known


class Recording(Record):
    """The calls of one or more runs."""

    format: int  # its version
    ipyrefine: str  # the version that made it
    date: str  # ISO 8601
    models: tuple[SourceModel, ...] = ()
    calls: tuple[Call, ...] = ()  # in the order they ended


def _no_model() -> Model:
    raise NoModel("Choose a live model.")


class RecordedModel:
    """Replay a recording, and ask a live model for what is not in it.

    ::

        model = ipyrefine.choose_model("recorded:greeting.json")     # as fast as possible
        model = ipyrefine.choose_model("recorded:greeting.json@1")   # at its own pace

    A request that was recorded more than once gets the replies in their order, then from the
    first again. One that was not recorded gets the next reply by hand that is left for its stage,
    if there is one.

    Args:
        path: the recording, a JSON file; every request is for the live model if it is missing.
        speed: a multiple of the recorded pace; by default as fast as possible.
        live: returns the model for requests that are not recorded, or raises `NoModel`.
        record: whether the live model's replies are added to the recording.
        sleep: waits a number of seconds between pieces.

    Attributes:
        replays: says that what it is asked is sent nowhere, unless a live model has to reply.

    Raises:
        UsageError: the file is not a recording, or the speed is not positive.
    """

    replays = True

    def __init__(
        self,
        path: Path,
        *,
        speed: float = math.inf,
        live: Callable[[], Model] = _no_model,
        record: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if not speed > 0:
            raise UsageError(f"A recording's speed must be more than 0, not {speed}.")
        self._path, self._speed, self._record, self._sleep = path, speed, record, sleep
        self._recording = read_recording(path)
        self._make_live = live
        self._live: Model | None = None
        self._replays, self._used = Counter[str](), set[int]()

    @classmethod
    def from_name(cls, name: str, *, live: Callable[[], Model], record: bool) -> "RecordedModel":
        """Return the model for ``recorded:PATH`` or, with a speed, ``recorded:PATH@SPEED``.

        Speed 1 is the recorded pace, 2 is twice as fast; errors as for the class.
        """
        path, _, suffix = name.removeprefix(PREFIX).partition("@")
        try:
            speed = float(suffix) if suffix else math.inf
        except ValueError:
            raise UsageError(f"{name}: write recorded:PATH@1, with a number as speed.") from None
        return cls(Path(path).expanduser(), speed=speed, live=live, record=record)

    @property
    def name(self) -> str:
        """Name for people and records; `choose_model` takes it again."""
        return f"{PREFIX}{self._path.as_posix()}"

    @property
    def source(self) -> str:
        """Name of the model whose replies these are, or of the one to be recorded."""
        if self._recording.models:
            return self._recording.models[0].name
        with suppress(NoModel):
            self._live = self._live or self._make_live()
        return self._live.name if self._live else self.name

    @property
    def price(self) -> Price | None:
        """What the recorded model charged; a replay costs nothing."""
        return self._recording.models[0].price if self._recording.models else None

    async def stream(self, request: Request) -> Stream:
        """Replay the recorded reply, or ask the live model.

        Raises:
            NoModel: the request is not in the recording, and there is no live model.
            ModelError: the live model failed.
        """
        key, calls = request_key(request), self._recording.calls
        places = [place for place, call in enumerate(calls) if call.key == key]
        turn, exact = self._replays[key], bool(places)
        self._replays[key] += 1
        if not (exact or self._record):
            places = self._by_hand(request)
        if turn >= len(places) and (self._record or not places):
            async with aclosing(self._ask(request, key)) as items:
                async for item in items:
                    yield item
            return
        place = places[turn % len(places)] if exact else places[0]
        self._used.add(place)
        call = calls[place]
        usage = call.usage if exact else call.usage.replace(for_another=1)
        for piece in call.pieces:
            await self._sleep(piece.after / self._speed)
            yield piece
        text, thinking = call.joined("text"), call.joined("thinking")
        yield Reply(text=text, thinking=thinking, finish=call.finish, usage=usage)

    def _by_hand(self, request: Request) -> list[int]:
        """Return where the replies by hand are left that fit a request's stage and task best."""
        calls, task = self._recording.calls, "".join(request.inputs[:1]).split()[:_COMPARED]
        about = dict.fromkeys(call.task for call in calls if call.model == BY_HAND)
        alike = {one: SequenceMatcher(None, one.split()[:_COMPARED], task).ratio() for one in about}
        nearest = max(about, key=alike.__getitem__, default=None)
        return [
            place
            for place, call in enumerate(calls)
            if (call.model, call.task, call.purpose) == (BY_HAND, nearest, request.purpose)
            and place not in self._used
        ]

    async def _ask(self, request: Request, key: str) -> Stream:
        # A replay in a browser's Python has nothing that a live model needs.
        from ipyrefine.providers.local import is_local

        live = self._live
        if live is None:
            missing, offline = f"There is no recording {self._path}.", ""
            if self._recording.calls:
                missing = (
                    f"This {request.purpose or 'request'} is not in the recording {self._path}: "
                    "the task, a text, an option or a decision differs."
                )
                offline = " A draft is tried without a model by --draft -n 0 --critique never."
            try:
                live = self._live = self._make_live()
            except NoModel as error:
                raise NoModel(f"{missing}{offline} {error}") from None
            if not self._record:
                yield Notice(text=f"{missing} {live.name} answers instead.")
        sent, pieces, since = request, list[Piece](), time.monotonic()
        if request.guarded and not is_local(live):
            sent = request.model_copy(update={"messages": request.guarded})
        async with aclosing(live.stream(sent)) as stream:  # type: ignore[type-var]
            async for item in stream:
                if isinstance(item, Delta):
                    after = round(time.monotonic() - since, 2)
                    if pieces and after < _PIECE_SECONDS and pieces[-1].kind == item.kind:
                        pieces[-1] = pieces[-1].replace(text=pieces[-1].text + item.text)
                    else:
                        pieces.append(Piece(after=after, text=item.text, kind=item.kind))
                        since = time.monotonic()
                elif isinstance(item, Reply) and self._record:
                    self._save(live, request, key, item, pieces)
                yield item

    def _save(
        self, live: Model, request: Request, key: str, reply: Reply, pieces: Iterable[Piece]
    ) -> None:
        """Add a call to the file, which another model in this process may have changed."""
        call = Call(
            purpose=request.purpose,
            key=key,
            model=live.name,
            # A model that is loading reports it as thinking, which is not of its reply.
            pieces=tuple(one for one in pieces if one.kind == "text" or reply.thinking),
            finish=reply.finish,
            usage=reply.usage,
            task="".join(request.inputs[:1]) if live.name == BY_HAND else "",
        )
        if call.joined("text") != reply.text:  # a mark at its end made thoughts of what it streamed
            pieces = [Piece(after=0, text=one.text, kind=one.kind) for one in reply.pieces]
            call = call.replace(pieces=tuple(pieces))
        recording = read_recording(self._path)
        models = recording.models
        if live.name not in {model.name for model in models}:
            from ipyrefine.providers.weights import WEIGHTS

            sha256 = WEIGHTS[live.name].sha256 if live.name in WEIGHTS else ""
            source = SourceModel(name=live.name, weights=sha256, price=price_of(live))
            models = (*models, source)
        self._recording = recording.replace(calls=(*recording.calls, call), models=models)
        content = json.dumps(self._recording.model_dump(mode="json"), indent=1, ensure_ascii=False)
        draft = self._path.with_suffix(".part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(content + "\n", "utf-8")
            os.replace(draft, self._path)  # whole or not at all
        except OSError as error:
            problem = f"The recording {self._path} cannot be written ({error.strerror})."
            raise UsageError(problem) from None


def request_key(request: Request) -> str:
    """Return a request's key: a digest of its content, stage and sampling settings."""
    content = request.inputs or tuple(message.content for message in request.messages)
    settled = [sorted(_VOLATILE.sub("", text).splitlines()) for text in content]
    identity = [request.purpose, request.temperature or 0.0, request.seed, settled]
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]


def read_recording(path: Path) -> Recording:
    """Return the recording in a file, or a new one; raise a UsageError for another version."""
    if not os.path.exists(path):  # it raises nothing for a name that no file can have
        today = datetime.datetime.now(datetime.UTC).date()
        return Recording(format=VERSION, ipyrefine=version("ipyrefine"), date=today.isoformat())
    content = read_file(path, _MAX_FILE)
    try:
        data = parse_json(content)
        require_current(data.get("format"))
        return Recording.model_validate(data)
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        raise UsageError(
            f"{path} is not a recording that this version of ipyrefine reads. Make one with "
            "IPYREFINE_RECORD=1 and a live model."
        ) from None
