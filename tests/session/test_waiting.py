"""A terminal shows that work goes on, and nothing of that reaches a pipe."""

import asyncio
import io
import sys
from collections.abc import Iterator

import pytest
from shells import error_of, scripted_shell

from ipyrefine.core.decisions import Decision, Override
from ipyrefine.core.events import (
    CallEnded,
    DraftReady,
    Event,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
)
from ipyrefine.core.model import Outcome, Setup, StopReason, Task, Usage
from ipyrefine.core.reducer import apply, replay
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.session.screen import Transcript, ask, read_answer
from ipyrefine.session.session import Session

SETUP = Setup(task=Task(text="Write."), model="m", judge="m")


class Terminal(io.StringIO):
    """Standard output that claims to be a terminal, or not."""

    tty = True

    def isatty(self) -> bool:
        return self.tty


class Screen:
    """A run printed by a transcript that ticks without a pause, at a time that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, tty: bool = True) -> None:
        self.out, self.now, self.run = Terminal(), 100.0, Run.begin(SETUP)
        self.out.tty = tty
        monkeypatch.setattr(sys, "stdout", self.out)
        self._transcript = Transcript(clock=lambda: self.now, tick=0)

    def take(self, *events: Event) -> None:
        for event in events:
            self.run = apply(self.run, event)
            self._transcript(event, self.run)

    async def after(self, seconds: float) -> str:
        """Return the last line some seconds later."""
        self.now += seconds
        for _ in range(3):
            await asyncio.sleep(0)
        return self.lines()[-1]

    def lines(self) -> list[str]:
        """Return the lines that are left on a screen that only knows carriage returns."""
        lines = []
        for line in self.out.getvalue().split("\n"):
            left = ""
            for part in line.split("\r"):
                left = part + left[len(part) :]
            lines.append(left.rstrip())
        return lines


WAITING = [
    RunStarted(setup=SETUP),
    StageStarted(stage="draft", iteration=0),
    DraftReady(text="Hello"),
    StageStarted(stage="critique", iteration=0),
]
END = Stopped(reason=StopReason.REVISIONS, message="All used.")


async def test_a_line_moves_while_the_model_is_silent_and_is_gone_before_the_next_output(
    monkeypatch,
):
    screen = Screen(monkeypatch)
    screen.take(*WAITING)
    for seconds in (1, 2):
        assert await screen.after(1) == f"Critiquing · draft · {seconds} s"
    screen.take(TextDelta(stage="critique", iteration=0, text='{"findings": [' * 10))
    assert await screen.after(0) == "Critiquing · draft · 2 s · 35 tokens"
    assert "findings" not in screen.out.getvalue()
    screen.take(END)
    assert not [line for line in screen.lines() if line.startswith("Critiquing ·")]
    length = len(screen.out.getvalue())
    await screen.after(1)
    assert len(screen.out.getvalue()) == length


async def test_a_pipe_gets_nothing_of_it(monkeypatch):
    screen = Screen(monkeypatch, tty=False)
    screen.take(*WAITING)
    await screen.after(1)
    screen.take(END)
    assert "\r" not in screen.out.getvalue()
    assert "Critiquing" not in screen.out.getvalue()


async def test_it_shows_the_line_that_is_being_written(monkeypatch):
    screen = Screen(monkeypatch)
    screen.take(*WAITING[:2])
    for piece, line in (("def f():\n    ret", "ret"), ("urn 1\n", "return 1")):
        screen.take(TextDelta(stage="draft", iteration=0, text=piece))
        assert (await screen.after(9)).endswith(f"tokens · {line}")
    assert screen.lines()[-1].startswith("Writing · draft · 18 s")
    screen.take(CallEnded(stage="draft", iteration=0, usage=Usage()), END)


@pytest.mark.parametrize(("typed", "words"), [
    ("a", ["accept"]),
    ("c 2 shorter", ["continue", "2", "shorter"]),
    ("needs work too cold", ["override", "improve", "too", "cold"]),
    ("show diff", ["show", "diff"]),
    ("", []),
    ("q", []),
    ("2", ["right", "2"]),
    ("2 = ValueError", ["should", "2", "ValueError"]),
    ("1=?", ["should", "1", "?"]),
])  # fmt: skip
def test_an_answer_at_the_prompt_is_a_command_in_short(typed, words):
    assert read_answer(typed) == words


@pytest.mark.parametrize("typo", ["cancel", "x", "=2"])
def test_a_typo_at_the_prompt_is_no_answer(typo):
    with pytest.raises(UsageError, match=r"is not an answer here\. Type a letter in brackets"):
        read_answer(typo)


class Undriven(Session):
    """A run at a prompt, whose decisions are kept and not carried out."""

    def __init__(self, run: Run) -> None:
        self._run, self.interrupted = run, False
        self.decided: list[Decision] = []

    @property
    def run(self) -> Run:
        return self._run

    def decide(self, decision: Decision) -> None:
        self.decided.append(decision)

    async def go(self) -> Run:
        return self._run


@pytest.mark.parametrize(
    ("typed", "reason"),
    [(["n", " too cold "], "too cold"), (["n too cold"], "too cold"), (["n", ""], "")],
)
async def test_what_needs_work_is_asked_for_where_it_was_not_said(monkeypatch, typed, reason):
    answers: Iterator[str] = iter(typed)
    monkeypatch.setattr("builtins.input", lambda _: next(answers, ""))
    monkeypatch.setattr("sys.stdin", Terminal())
    session = Undriven(replay([*WAITING[:3], END]))
    await ask(session)
    assert session.decided == [Override(outcome=Outcome.NEEDS_IMPROVEMENT, reason=reason)]
    assert next(answers, None) is None


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, object(), closed()])
def test_nobody_is_asked_where_a_program_replaced_standard_input(stream, monkeypatch):
    shell = scripted_shell(monkeypatch, ["<text>\nHello!\n</text>"])
    monkeypatch.setattr(sys, "stdin", stream)
    cell = "%%refine --plain -p prose -n 0 --critique never\nGreet."
    assert error_of(shell, cell) is None
    assert shell.user_ns["refined"] == "Hello!"
