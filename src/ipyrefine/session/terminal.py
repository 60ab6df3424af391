"""The loop in a terminal: events as lines while it runs, and a question when it stops."""

import shutil
import sys
from typing import Any

from ipyrefine.core.events import Event, Stopped, TextDelta
from ipyrefine.core.records import Outcome
from ipyrefine.core.runs import Decision, Run, StopReason
from ipyrefine.render.escape import plain
from ipyrefine.render.transcript import event_text

QUESTION = "[a]ccept, [c]ontinue, [p]ass anyway, [n]ot yet, or Enter to leave it: "


class Transcript:
    """Prints events: streamed text as it comes, everything else in lines."""

    def __init__(self) -> None:
        self._mid_line = False

    def __call__(self, event: Event, run: Run) -> None:
        """Print one event, if it says anything."""
        if isinstance(event, TextDelta):
            if event.stage in ("draft", "revise"):
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


async def ask(cell: Any) -> None:
    """Ask what to do with the text, if there is a person to ask; loops go on as decided."""
    while sys.stdin.isatty() and cell.session.run.text and not cell.session.interrupted:
        try:
            answer = input(QUESTION).strip()  # noqa: ASYNC250 - nothing else runs at the prompt
        except (EOFError, KeyboardInterrupt):
            print()
            return
        decision = answered(answer)
        if decision is None:
            return
        cell.decide(decision)
        await cell.session.go()
        if decision.kind == "accept" or decision.outcome is Outcome.PASS:
            return


def answered(answer: str) -> Decision | None:
    """Read an answer: its first letter, then a reason or guidance."""
    letter, _, text = answer.partition(" ")
    match letter.lower()[:1]:
        case "a":
            return Decision(kind="accept", iteration=int(text) if text.isdigit() else None)
        case "c":
            return Decision(kind="continue", rounds=1, text=text)
        case "p":
            return Decision(kind="override", outcome=Outcome.PASS, text=text)
        case "n":
            return Decision(kind="override", outcome=Outcome.NEEDS_IMPROVEMENT, text=text)
    return None
