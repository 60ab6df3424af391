"""The loop in a terminal: events as lines while it runs, and a question when it stops."""

import asyncio
import shutil
import sys
import time

from ipyrefine.core.decisions import Accept, Answer, Continue, Decision, Override
from ipyrefine.core.events import Event, Stopped, TextDelta
from ipyrefine.core.model import Outcome, StopReason
from ipyrefine.core.ports import Clock
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.render.escape import plain
from ipyrefine.render.progress import WRITING, Progress
from ipyrefine.render.terminal import cells, clip, event_text
from ipyrefine.session.session import Session

QUESTION = "[a]ccept, [c]ontinue, mark as [p]ass, [n]eeds work, or Enter to leave it: "
_TICK = 0.25  # seconds between two updates of the line that moves
_QUIET = 0.5  # seconds without streamed text after which that line is drawn


class Transcript:
    """Prints events: streamed text as it comes, everything else in lines.

    On a terminal, a line below the output shows the stage under way while nothing streams. It is
    rewritten in place, and erased before anything else is printed.

    Args:
        clock: monotonic seconds.
        tick: seconds between two updates of that line.
    """

    def __init__(self, *, clock: Clock = time.monotonic, tick: float = _TICK) -> None:
        self._clock, self._tick = clock, tick
        self._progress = Progress(clock)
        self._mid_line = False
        self._status = ""
        self._wrote = clock()
        self._ticking: asyncio.Handle | None = None

    def __call__(self, event: Event, run: Run) -> None:
        """Print an event that has something to print."""
        self._progress.take(event)
        if isinstance(event, TextDelta):
            if event.stage in WRITING:
                self._erase()
                print(plain(event.text), end="", flush=True)
                self._mid_line = not event.text.endswith("\n")
                self._wrote = self._clock()
            return
        columns = shutil.get_terminal_size().columns
        text = event_text(event, run, columns=columns, colour=sys.stdout.isatty())
        # The terminal has echoed the ^C that interrupted it.
        echoed = isinstance(event, Stopped) and event.reason is StopReason.CANCELLED
        if text:
            self._erase()
            print("\n" * (self._mid_line or echoed) + text, flush=True)
            self._mid_line = False
        self._keep_ticking(run)

    def _keep_ticking(self, run: Run) -> None:
        """Draw the line that moves, and again each tick until the run stops."""
        if self._ticking:
            self._ticking.cancel()
            self._ticking = None
        line = self._progress.line(run)
        if not line or not sys.stdout.isatty():
            self._erase()
            return
        if not self._mid_line and self._clock() - self._wrote >= _QUIET:
            line = clip(line, shutil.get_terminal_size().columns - 1)
            if line != self._status:
                self._erase()
                print(line, end="", flush=True)
                self._status = line
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # nothing can move it: the next event draws it anew
        self._ticking = loop.call_later(self._tick, self._keep_ticking, run)

    def _erase(self) -> None:
        """Erase the line that moves, with blanks, as not every terminal knows a code for it."""
        if self._status:
            print(f"\r{' ' * cells(self._status)}\r", end="", flush=True)
            self._status = ""


async def ask(session: Session) -> None:
    """Ask a user at a terminal what to do with the text, and carry it out until it is settled."""
    while sys.stdin.isatty() and session.run.text and not session.interrupted:
        try:
            answer = input(_prompt(session.run)).strip()  # noqa: ASYNC250 - nothing else runs here
        except (EOFError, KeyboardInterrupt):
            print()
            return
        try:
            decision = read_answer(answer, session.run)
            if decision is None:
                return
            session.decide(decision)
        except UsageError as error:
            print(error)
            continue
        await session.go()
        if decision.settles:
            return


def _prompt(run: Run) -> str:
    """Return what the user is asked; a question of the drafts comes first."""
    if run.question is None:
        return QUESTION
    return f"1 to {len(run.question.choices)} or =VALUE to answer, {QUESTION}"


def read_answer(answer: str, run: Run) -> Decision | None:
    """Read an answer: its first letter, then an iteration, a reason or guidance.

    Args:
        answer: what the user typed; a number or ``=VALUE`` answers a question of the drafts.
        run: the run it is about.
    """
    if run.question is not None and (answer.isdecimal() or answer.startswith("=")):
        return Answer.parse(run, [answer.removeprefix("=")])
    letter, _, words = answer.partition(" ")
    match letter.lower()[:1]:
        case "a":
            return Accept(iteration=int(words) if words.isdecimal() else None)
        case "c":
            return Continue(guidance=words)
        case "p":
            return Override(outcome=Outcome.PASS, reason=words)
        case "n":
            return Override(outcome=Outcome.NEEDS_IMPROVEMENT, reason=words)
    return None
