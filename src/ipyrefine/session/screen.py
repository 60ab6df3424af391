"""The loop in a terminal: a screen for a run, and a question when it stops."""

import asyncio
import shutil
import sys
import time
from typing import Any

from ipyrefine.core.actions import ACTIONS, parse_decision
from ipyrefine.core.coach import open_puzzle
from ipyrefine.core.decisions import Decision
from ipyrefine.core.events import DraftReady, Event, FormChosen, RunStarted, TextDelta
from ipyrefine.core.model import Form
from ipyrefine.core.ports import Clock
from ipyrefine.core.results import example_asked, rows
from ipyrefine.core.run import Run
from ipyrefine.core.typed import confirmations
from ipyrefine.errors import UsageError
from ipyrefine.render import say
from ipyrefine.render.progress import Progress
from ipyrefine.render.terminal import cells, clip, event_text, wrap
from ipyrefine.session.commands import show
from ipyrefine.session.session import Session

QUESTION = "[a]ccept, [c]ontinue, [p]ass, [n]eeds work, [s]how, or Enter to leave it: "
PREDICTION = "What does it give? Or Enter to leave it: "
# What may be answered, and the command that it stands for.
ANSWERS: dict[str, list[str]] = {
    name: ACTIONS[name].typed.split() or [name]
    for name in ("accept", "continue", "pass", "needs-work", "show")
} | {"quit": []}
_TICK = 0.25  # seconds between two updates of the line that moves
_PROMPT_LINES = 2
_PIPE_LINES = 80  # of the screen of a stopped run, where nothing limits it
_HINTED = set[Form]()  # of what kinds of text this process has said how to switch to the other


class Transcript:
    """Prints a run: a line or two for each text, and at its stop one screen.

    On a terminal, a line below shows the stage under way and the end of what is being written. It
    is rewritten in place, and erased before anything else is printed.

    Args:
        clock: monotonic seconds.
        tick: seconds between two updates of that line.
        below: lines to leave free below the screen of a stopped run.
        can_switch: whether `%refine continue as` can start the run again as the other kind of text,
            which is said once for each kind.
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

    def __call__(self, event: Event, run: Run) -> None:
        """Print an event that has something to print."""
        self._progress.take(event)
        if isinstance(event, TextDelta):
            return
        size, tty = shutil.get_terminal_size(), is_terminal(sys.stdout)
        rows = size.lines - self._below if tty else _PIPE_LINES
        text = event_text(event, run, columns=size.columns, rows=rows, colour=tty)
        tells_form = isinstance(event, RunStarted | FormChosen | DraftReady) and not run.setup.words
        if text and self._can_switch and tells_form and run.task.form not in _HINTED:
            _HINTED.add(run.task.form)
            text += "\n" + clip(say.switch_hint(run.task), size.columns)
        if text:
            self._erase()
            print(text, flush=True)
        self._keep_ticking(run)

    def _keep_ticking(self, run: Run) -> None:
        """Draw the line that moves, and again each tick until the run stops."""
        if self._ticking:
            self._ticking.cancel()
            self._ticking = None
        line = self._progress.line(run)
        if not line or not is_terminal(sys.stdout):
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
            return  # nothing can move it: the next event draws it again
        self._ticking = loop.call_later(self._tick, self._keep_ticking, run)

    def _erase(self) -> None:
        """Erase the line that moves, with blanks, as not every terminal knows a code for it."""
        if self._status:
            # Two more for the ^C that the terminal echoes.
            width = min(cells(self._status) + 2, shutil.get_terminal_size().columns - 1)
            print(f"\r{' ' * width}\r", end="", flush=True)
            self._status = ""


def is_terminal(stream: Any) -> bool:
    """Return True for a stream that people type into or read; a program may have replaced it."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # None or an object of the user's, or closed
        return False


async def ask(session: Session) -> None:
    """Ask a user at a terminal what to do with the text, and carry it out until it is settled."""
    while is_terminal(sys.stdin) and (run := session.run).text and not session.interrupted:
        found = rows(run, run.chosen)
        shown = max((n for n, one in enumerate(found, start=1) if not one.conditions), default=0)
        if run.setup.coach and open_puzzle(run) is None:
            return
        numbers = f"1 to {shown}" if shown > 1 else "1"
        choices = f"{numbers} if that result is right, 1=VALUE if not, " if shown else ""
        if run.chosen and example_asked(run.chosen, found):
            choices = "1=VALUE for what it should give, "
        try:
            question = PREDICTION if run.setup.coach else choices + QUESTION
            *above, last = wrap(question.strip(), shutil.get_terminal_size().columns - 1)
            print(*above, sep="\n", end="\n" * bool(above))
            answer = input(f"{last} ")  # noqa: ASYNC250 - nothing else runs here
        except (EOFError, KeyboardInterrupt):
            print("\nLeft undecided. The best text is kept.")
            return
        try:
            coached = run.setup.coach and answer.strip()
            words = ["should", answer] if coached else read_answer(answer)
            if not words:
                return
            if words[0] == "show":
                print(show(run, words[1:]))
                continue
            if words[0] == "right":
                decision: Decision = confirmations(run, words[1:])[0]
            else:
                decision = parse_decision(run, words[0], words[1:])
            if words[:2] == ["override", "improve"] and not getattr(decision, "reason", ""):
                reason = input("What needs work? ")  # noqa: ASYNC250
                decision = decision.replace(reason=reason.strip())
            session.decide(decision)
        except UsageError as error:
            print(error)
            continue
        except (EOFError, KeyboardInterrupt):
            print()
            continue
        await session.go()
        if decision.settles:
            return


def read_answer(answer: str) -> list[str]:
    """Return the words of the command that an answer stands for; none to leave the text.

    Args:
        answer: what the user typed: a key of `ANSWERS` or its start, then what it takes; a number
            says that this result is right, and ``1=VALUE`` what it should be.

    Raises:
        UsageError: it is none of these.
    """
    answer = answer.strip()
    number, sign, result = answer.partition("=")
    if number.strip().isdecimal():
        return ["should", number.strip(), result.strip()] if sign else ["right", number.strip()]
    name, *args = answer.split() or ["quit"]
    command = next((words for one, words in ANSWERS.items() if one.startswith(name.lower())), None)
    if command is None:
        raise UsageError(
            f"{name!r} is not an answer here. Type a letter in brackets, or Enter to leave it."
        )
    if command[-1:] == ["improve"] and args[:1] == ["work"]:
        args = args[1:]
    return [*command, *args] if command else []
