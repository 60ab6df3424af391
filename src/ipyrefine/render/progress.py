"""While a user waits: the seconds and the tokens of the stage under way."""

from ipyrefine.core.events import CallEnded, Event, StageStarted, Stopped, TextDelta, Warned
from ipyrefine.core.model import Stage
from ipyrefine.core.policy import estimate_tokens
from ipyrefine.core.ports import Clock
from ipyrefine.core.run import Run
from ipyrefine.render import say

WRITING = (Stage.DRAFT, Stage.REVISE)  # the stages whose replies are texts for people
SILENCE = 20.0  # seconds without a reply before a line says so
_TAIL = 200  # characters


class Progress:
    """Counts the seconds and the tokens of the stage under way."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stage: StageStarted | None = None
        self._heard: float | None = None  # when the awaited reply last grew
        self._began = clock()
        self._tokens = self._characters = 0
        self._tail = ""

    def take(self, event: Event) -> None:
        """Count an event."""
        now = self._clock()
        match event:
            case StageStarted():
                self._stage, self._began = event, now
                self._heard = None if event.stage is Stage.CHECK else now
                self._tokens = self._characters = 0
                self._tail = ""
            case TextDelta():
                self._heard = now
                self._characters += len(event.text)
                if event.stage in WRITING:
                    self._tail = (self._tail + event.text)[-_TAIL:]
            case CallEnded():
                # The reply's own count replaces the estimate.
                self._tokens += event.usage.completion_tokens
                self._characters = 0
                self._heard = None
            case Warned() if self._stage and self._stage.stage is not Stage.CHECK:
                self._heard = now  # it is asked again
            case Stopped():
                self._stage = self._heard = None

    @property
    def tokens(self) -> int:
        """Tokens the model wrote in this stage; of a reply that streams, an estimate."""
        return self._tokens + estimate_tokens(self._characters)

    @property
    def silence(self) -> float | None:
        """Seconds since the awaited reply last grew; None while none is awaited."""
        return None if self._heard is None else self._clock() - self._heard

    @property
    def number(self) -> int:
        """The text that the stage under way is about."""
        return self._stage.iteration if self._stage else 0

    @property
    def seconds(self) -> float:
        """Seconds since the stage began; 0 where none is under way."""
        return self._clock() - self._began if self._stage else 0.0

    def line(self, run: Run) -> str:
        """Return stage, seconds and tokens, like ``Evaluating · draft · 3 s · 6 tokens``.

        While a text is written, its latest line follows; while nothing comes, for how long. It is
        empty when no stage is under way.
        """
        if self._stage is None:
            return ""
        parts = [
            say.STAGES[self._stage.stage],
            say.under_way(run, self.number),
            f"{self.seconds:.0f} s",
        ]
        parts += [say.count(self.tokens, "token")] if self.tokens else []
        if (self.silence or 0.0) >= SILENCE:
            parts.append(f"no reply for {self.silence:.0f} s · Ctrl-C stops it")
        written = [line.strip() for line in self._tail.splitlines() if line.strip()]
        return " · ".join(parts + written[-1:])
