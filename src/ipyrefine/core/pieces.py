"""The pieces of a reply as events, few enough that hearing of them costs next to nothing."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Literal

from ipyrefine.core.events import Stage, TextDelta
from ipyrefine.core.ports import Clock, Delta
from ipyrefine.core.replies import Splitter

FRAME = 1 / 30  # seconds; events that follow each other faster are not told apart by any reader

Kind = Literal["text", "thinking"]


class Pieces:
    """Gathers what a model streams into an event per frame.

    A piece that comes a frame or more after the last event is given at once, so that a slow
    model's words are seen as they come; what comes faster waits for the next piece.

    Args:
        stage: the stage that the reply belongs to.
        iteration: the iteration it is about.
        splitter: tells text from thoughts; None takes all of it as thoughts.
        clock: seconds.
    """

    def __init__(
        self, stage: Stage, iteration: int, splitter: Splitter | None, clock: Clock
    ) -> None:
        self._stage, self._iteration = stage, iteration
        self._splitter, self._clock = splitter, clock
        self._waiting: list[Delta] = []
        self._given = float("-inf")

    def add(self, piece: Delta) -> list[TextDelta]:
        """Take a piece; give the events that are due."""
        self._waiting.append(piece)
        return self.rest() if self._clock() - self._given >= FRAME else []

    def rest(self) -> list[TextDelta]:
        """Give all that waits."""
        self._given = self._clock()
        waiting, self._waiting = self._waiting, []
        told = [
            said
            for kind, text in _joined((piece.kind, piece.text) for piece in waiting)
            for said in self._told(kind, text)
        ]
        return [
            TextDelta(stage=self._stage, iteration=self._iteration, kind=kind, text=text)
            for kind, text in _joined(told)
        ]

    def _told(self, kind: Kind, text: str) -> Iterable[tuple[Kind, str]]:
        if kind == "thinking" or self._splitter is None:
            return [(kind, text)]
        return self._splitter.feed(text)


def _joined(pieces: Iterable[tuple[Kind, str]]) -> list[tuple[Kind, str]]:
    """Neighbours of one kind as one."""
    return [
        (kind, "".join(text for _, text in run)) for kind, run in groupby(pieces, itemgetter(0))
    ]
