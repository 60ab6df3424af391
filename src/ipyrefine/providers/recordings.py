"""Recordings: what a model said, call by call, as a small JSON file.

A call is known by what it is about (`Request.given`), its stage and how it samples, not by its
place in the run nor by our wording. So calls may run at the same time, a step may be left out,
and a reworded prompt of ours leaves a recording good; another task, text, finding, guidance or
prompt of the user's is another call. What differs between two equal runs is not looked at: the
marks around material, addresses in memory, times, and the order in which checks finish.
"""

import datetime
import hashlib
import json
import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from ipyrefine.core.ports import Request
from ipyrefine.core.records import Finish, Record
from ipyrefine.core.usage import Price, Usage
from ipyrefine.errors import UsageError

_PASSING = re.compile(r"(?<=material-)[0-9a-f]+|0x[0-9a-f]+|\b\d+(\.\d+)? ?s\b")


class Piece(Record):
    """A piece of a reply.

    Attributes:
        after: seconds since the piece before it, or since the request.
        text: its text.
        kind: whether it is thinking.
    """

    after: float
    text: str
    kind: Literal["text", "thinking"] = "text"


class Call(Record):
    """One request and what came of it.

    Attributes:
        purpose: the stage that asked.
        key: what the request is known by, see `key_of`.
        model: who answered.
        pieces: the reply as it came.
        finish: how it ended.
        usage: what it consumed.
    """

    purpose: str
    key: str
    model: str
    pieces: tuple[Piece, ...]
    finish: Finish = "stop"
    usage: Usage

    def said(self, kind: Literal["text", "thinking"]) -> str:
        """The whole of its text, or of its thinking."""
        return "".join(piece.text for piece in self.pieces if piece.kind == kind)


class Source(Record):
    """A model that was recorded: its name, the sha256 of its weights if known, and its price."""

    name: str
    weights: str = ""
    price: Price | None = None


class Recording(Record):
    """What models said in one or more runs.

    Attributes:
        format: the version of this form.
        ipyrefine: the version that it was made with.
        date: the day it was made, ISO 8601.
        models: who was asked.
        calls: the calls, in the order they ended.
    """

    format: Literal[1] = 1
    ipyrefine: str
    date: str
    models: tuple[Source, ...] = ()
    calls: tuple[Call, ...] = ()

    def with_call(self, call: Call, source: Source) -> "Recording":
        """The same with one call more."""
        known = {one.name for one in self.models}
        models = self.models if source.name in known else (*self.models, source)
        return self.model_copy(update={"calls": (*self.calls, call), "models": models})


def begun() -> Recording:
    """An empty recording, made here and today."""
    today = datetime.datetime.now(datetime.UTC).date()
    return Recording(ipyrefine=version("ipyrefine"), date=today.isoformat())


def key_of(request: Request) -> str:
    """What a request is known by: a digest of what it is about and how it samples."""
    about = request.given or tuple(message.content for message in request.messages)
    settled = [sorted(_PASSING.sub("", text).splitlines()) for text in about]
    asked = [request.purpose, request.temperature, request.seed, settled]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]


def read(path: Path) -> Recording:
    """Read a recording.

    Raises:
        UsageError: the file is not there, or is no recording that this version reads.
    """
    try:
        return Recording.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"There is no recording {path}: name one that is there, or make it with "
            "IPYREFINE_RECORD=1 and a live model."
        ) from None
    except OSError as error:
        raise UsageError(f"The recording {path} cannot be read ({error.strerror}).") from None
    except ValidationError:
        raise UsageError(f"{path} is no recording that this version of ipyrefine reads.") from None


def write(path: Path, recording: Recording) -> None:
    """Write a recording whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    content = recording.model_dump(mode="json", exclude_defaults=True) | {"format": 1}
    beside = path.with_suffix(".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        os.replace(beside, path)
    except OSError as error:
        raise UsageError(f"The recording {path} cannot be written ({error.strerror}).") from None
