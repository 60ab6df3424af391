"""The loop in a terminal: a screen for a run, and a question when it stops."""

import asyncio
import shutil
import sys
import time
from typing import NamedTuple

from ipyrefine.core.decisions import Accept, Continue, Decision, Override
from ipyrefine.core.events import Event, RunStarted, Stopped, TextDelta
from ipyrefine.core.model import Outcome
from ipyrefine.core.ports import Clock
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.render import labels
from ipyrefine.render.document import Progress
from ipyrefine.render.terminal import (
    cells,
    clip,
    event_text,
)
from ipyrefine.session.commands import parse_answer, parse_iteration, show
from ipyrefine.session.session import Session

QUESTION = "[a]ccept, [c]ontinue, [p]ass, [n]eeds work, [s]how, or Enter to leave it: "
ACTIONS = ("accept", "continue", "pass", "needs", "show", "quit")
_LEFT = "Left undecided. The best text is kept."
_TICK = 0.25  # seconds between two updates of the line that moves
_PROMPT_LINES = 2
_PIPE_LINES = 80  # of that screen, where nothing limits it


class Transcript:
    """Prints a run: a line or two for each text, and at its stop one screen.

    On a terminal, a line below shows the stage under way and the end of what is being written. It
    is rewritten in place, and erased before anything else is printed.

    Args:
        clock: monotonic seconds.
        tick: seconds between two updates of that line.
        below: lines to leave free below the screen of a stopped run.
        can_switch: whether `%refine kind` can start the run again as the other kind of text.
    """

    def __init__(
        self,
        *,
        clock: Clock = time.monotonic,
        tick: float = _TICK,
        below: int = _PROMPT_LINES,
        can_switch: bool = False,
    ) -> None:
        self._tick, self._below, self._can_switch = tick, below, can_switch
        self._progress = Progress(clock)
        self._status = ""
        self._ticking: asyncio.Handle | None = None
        self._printed = 0  # lines since the run began or the user was asked

    def __call__(self, event: Event, run: Run) -> None:
        """Print an event that has something to print."""
        self._progress.take(event)
        if isinstance(event, TextDelta):
            return
        size, tty = shutil.get_terminal_size(), sys.stdout.isatty()
        rows = size.lines - self._printed - self._below if tty else _PIPE_LINES
        text = event_text(event, run, columns=size.columns, rows=rows, colour=tty)
        if text and self._can_switch and isinstance(event, RunStarted):
            text += "\n" + clip(labels.switch_hint(run.task), size.columns)
        if text:
            self._erase()
            print(text, flush=True)
            self._printed += text.count("\n") + 1
        if isinstance(event, Stopped):
            self._printed = 0
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
            # Two more for the ^C that the terminal echoes.
            width = min(cells(self._status) + 2, shutil.get_terminal_size().columns - 1)
            print(f"\r{' ' * width}\r", end="", flush=True)
            self._status = ""


async def ask(session: Session) -> None:
    """Ask a user at a terminal what to do with the text, and carry it out until it is settled."""
    while sys.stdin.isatty() and session.run.text and not session.interrupted:
        try:
            answer = input(_prompt(session.run)).strip()  # noqa: ASYNC250 - nothing else runs here
        except (EOFError, KeyboardInterrupt):
            print(f"\n{_LEFT}")
            return
        try:
            decision = read_answer(answer, session.run)
            if decision is None:
                return
            if isinstance(decision, Show):
                print(show(session.run, decision.what))
                continue
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


class Show(NamedTuple):
    """A wish to see details, which decides nothing; see `show`."""

    what: list[str]


def read_answer(answer: str, run: Run) -> Decision | Show | None:
    """Read an answer: an action or the start of its name, then what it takes.

    Args:
        answer: what the user typed; a number or ``=VALUE`` answers a question of the drafts.
        run: the run it is about.

    Returns:
        The decision, a wish to see details, or None to leave the text undecided.

    Raises:
        UsageError: it is none of these.
    """
    if run.question is not None and (answer.isdecimal() or answer.startswith("=")):
        return parse_answer(run, answer.removeprefix("="))
    name, *args = answer.split() or ["quit"]
    words = answer[len(name) :].strip()
    match next((one for one in ACTIONS if one.startswith(name.lower())), None):
        case "accept":
            return Accept(iteration=parse_iteration(run, args))
        case "continue":
            return Continue(guidance=words)
        case "pass":
            return Override(outcome=Outcome.PASS, reason=words)
        case "needs":
            return Override(
                outcome=Outcome.NEEDS_IMPROVEMENT, reason=words.removeprefix("work").strip()
            )
        case "show":
            return Show(args)
        case "quit":
            return None
    raise UsageError(
        f"{name!r} is not an answer here. Type a letter in brackets, or Enter to leave the text."
    )
