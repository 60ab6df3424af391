"""The loop in a terminal: events as lines while it runs, and a question when it stops."""

import shutil
import sys

from ipyrefine.core.decisions import Accept, Continue, Decision, Override
from ipyrefine.core.events import Event, Stopped, TextDelta
from ipyrefine.core.model import Outcome, Stage, StopReason
from ipyrefine.core.run import Run
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import event_text
from ipyrefine.session.session import Session

QUESTION = "[a]ccept, [c]ontinue, mark as [p]ass, [n]eeds work, or Enter to leave it: "


class Transcript:
    """Prints events: streamed text as it comes, everything else in lines."""

    def __init__(self) -> None:
        self._mid_line = False

    def __call__(self, event: Event, run: Run) -> None:
        """Print an event that has something to print."""
        if isinstance(event, TextDelta):
            if event.stage in (Stage.DRAFT, Stage.REVISE):
                print(plain(event.text), end="", flush=True)
                self._mid_line = not event.text.endswith("\n")
            return
        columns = shutil.get_terminal_size().columns
        text = event_text(event, run, columns=columns, colour=sys.stdout.isatty())
        # The terminal has echoed the ^C that interrupted it.
        echoed = isinstance(event, Stopped) and event.reason is StopReason.CANCELLED
        if text:
            print("\n" * (self._mid_line or echoed) + text, flush=True)
            self._mid_line = False


async def ask(session: Session) -> None:
    """Ask a user at a terminal what to do with the text, and carry it out until it is settled."""
    while sys.stdin.isatty() and session.run.text and not session.interrupted:
        try:
            answer = input(QUESTION).strip()  # noqa: ASYNC250 - nothing else runs at the prompt
        except (EOFError, KeyboardInterrupt):
            print()
            return
        decision = read_answer(answer)
        if decision is None:
            return
        session.decide(decision)
        await session.go()
        if decision.settles:
            return


def read_answer(answer: str) -> Decision | None:
    """Read an answer: its first letter, then an iteration, a reason or guidance."""
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
