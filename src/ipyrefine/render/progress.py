"""What the stage under way has taken so far, for the line that moves while a user waits."""

from collections import deque

from ipyrefine.core.events import CallEnded, Event, StageStarted, Stopped, TextDelta, Warned
from ipyrefine.core.model import Stage
from ipyrefine.core.policy import estimate_tokens
from ipyrefine.core.ports import Clock
from ipyrefine.core.run import Run
from ipyrefine.render import labels

WRITING = (Stage.DRAFT, Stage.REVISE)  # the stages whose replies are texts for people
SILENCE = 20.0  # seconds without a reply that a user is told of
_TAIL = 200  # characters
_WINDOW = 5.0  # seconds over which the pace is measured


class Progress:
    """Counts the seconds and the tokens of the stage under way.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stage: StageStarted | None = None
        self._began = clock()
        self._heard: float | None = None  # when the awaited reply last grew
        self._tokens = self._characters = 0
        self._tail = ""
        self._pieces: deque[tuple[float, int]] = deque()

    def take(self, event: Event) -> None:
        """Count an event."""
        match event:
            case StageStarted():
                self._stage, self._began = event, self._clock()
                self._heard = None if event.stage is Stage.CHECK else self._began
                self._tokens = self._characters = 0
                self._tail = ""
                self._pieces.clear()
            case TextDelta():
                self._heard = self._clock()
                self._characters += len(event.text)
                self._pieces.append((self._clock(), len(event.text)))
                if event.stage in WRITING:
                    self._tail = (self._tail + event.text)[-_TAIL:]
            case CallEnded():
                # The reply's own count replaces the estimate.
                self._tokens += event.usage.completion_tokens
                self._characters = 0
                # Other drafts may still be under way.
                self._heard = self._clock() if event.stage is Stage.DRAFT else None
            case Warned() if self._stage and self._stage.stage is not Stage.CHECK:
                self._heard = self._clock()  # it is asked again
            case Stopped():
                self._stage = self._heard = None

    @property
    def tokens(self) -> int:
        """Tokens the model wrote in this stage; of a reply that streams, an estimate."""
        return self._tokens + estimate_tokens(self._characters)

    @property
    def rate(self) -> int:
        """Tokens a second over the last seconds, an estimate; 0 until it can be told."""
        now = self._clock()
        while self._pieces and self._pieces[0][0] < now - _WINDOW:
            self._pieces.popleft()
        span = now - self._pieces[0][0] if self._pieces else 0.0
        if span < 1.0:
            return 0
        return round(estimate_tokens(sum(size for _, size in self._pieces)) / span)

    @property
    def silence(self) -> float | None:
        """Seconds since the awaited reply last grew; None while none is awaited."""
        return None if self._heard is None else self._clock() - self._heard

    def line(self, run: Run) -> str:
        """Return stage, seconds and tokens, like ``Evaluating · draft · 3 s · 6 tokens``.

        While a text is written, its latest line follows; while nothing comes, for how long. It is
        empty when no stage is under way.
        """
        if self._stage is None:
            return ""
        stage = labels.STAGES[self._stage.stage]
        parts = [
            stage,
            labels.under_way(run, self._stage.iteration),
            f"{self._clock() - self._began:.0f} s",
        ]
        parts += [labels.count(self.tokens, "token")] if self.tokens else []
        if (self.silence or 0.0) >= SILENCE:
            parts.append(f"no reply for {self.silence:.0f} s · Ctrl-C stops it")
        written = [line.strip() for line in self._tail.splitlines() if line.strip()]
        return " · ".join(parts + written[-1:])
