"""A terminal shows that work goes on, and nothing of that reaches a pipe."""

import asyncio
import io
import sys

import pytest

from ipyrefine.core.decisions import Answer, Continue, Override
from ipyrefine.core.events import (
    CallEnded,
    DraftReady,
    Event,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
)
from ipyrefine.core.model import Choice, Outcome, Question, Setup, StopReason, Task, Usage
from ipyrefine.core.reducer import apply
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.session.screen import Show, Transcript, read_answer

SETUP = Setup(task=Task(text="Write."), model="m", judge="m")


class Terminal(io.StringIO):
    """Standard output that claims to be a terminal, or not."""

    def __init__(self, *, tty: bool) -> None:
        super().__init__()
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty


class Clock:
    """Seconds that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def show(transcript: Transcript, run: Run, *events: Event) -> Run:
    for event in events:
        run = apply(run, event)
        transcript(event, run)
    return run


def terminal(monkeypatch: pytest.MonkeyPatch, *, tty: bool) -> Terminal:
    out = Terminal(tty=tty)
    monkeypatch.setattr(sys, "stdout", out)
    return out


def screen(output: str) -> list[str]:
    """The lines that are left on a screen that only knows carriage returns."""
    lines = []
    for line in output.split("\n"):
        left = ""
        for part in line.split("\r"):
            left = part + left[len(part) :]
        lines.append(left.rstrip())
    return lines


async def drawn(out: Terminal, end: str) -> None:
    """Wait until the last line of the screen ends with these words."""
    async with asyncio.timeout(10):
        while not screen(out.getvalue())[-1].endswith(end):  # noqa: ASYNC110 - what draws sets no event
            await asyncio.sleep(0.01)


WAITING = [
    RunStarted(setup=SETUP),
    StageStarted(stage="draft", iteration=0),
    DraftReady(text="Hello"),
    StageStarted(stage="critique", iteration=0),
]
END = Stopped(reason=StopReason.REVISIONS, message="All used.")


async def test_a_line_moves_while_the_model_is_silent_and_is_gone_before_the_next_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, clock = terminal(monkeypatch, tty=True), Clock()
    transcript = Transcript(clock=clock, tick=0.01)
    run = Run.begin(SETUP)
    for event in WAITING:
        clock.now += 1
        run = show(transcript, run, event)
    for seconds in (1, 2):
        clock.now += 1
        await drawn(out, f"Critiquing · draft · {seconds} s")
    raw = TextDelta(stage="critique", iteration=0, text='{"findings": [' * 10)
    run = show(transcript, run, raw)
    await drawn(out, "Critiquing · draft · 2 s · 35 tokens")
    assert "findings" not in out.getvalue()
    show(transcript, run, END)
    shown = screen(out.getvalue())
    assert not [line for line in shown if line.startswith("Critiquing ·")]
    length = len(out.getvalue())
    await asyncio.sleep(0.03)
    assert len(out.getvalue()) == length


async def test_a_pipe_gets_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    out, clock = terminal(monkeypatch, tty=False), Clock()
    transcript = Transcript(clock=clock, tick=0.01)
    run = Run.begin(SETUP)
    for event in WAITING:
        clock.now += 1
        run = show(transcript, run, event)
    await asyncio.sleep(0.03)
    show(transcript, run, END)
    assert "\r" not in out.getvalue()
    assert "0 s" not in out.getvalue()


async def test_it_shows_the_line_that_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    out, clock = terminal(monkeypatch, tty=True), Clock()
    transcript = Transcript(clock=clock, tick=0.01)
    run = show(transcript, Run.begin(SETUP), *WAITING[:2])
    for piece, line in (("def f():\n    ret", "ret"), ("urn 1\n", "return 1")):
        run = show(transcript, run, TextDelta(stage="draft", iteration=0, text=piece))
        clock.now += 9
        await drawn(out, f"tokens · {line}")
    assert screen(out.getvalue())[-1].startswith("Writing · draft · 18 s")
    show(transcript, run, CallEnded(stage="draft", iteration=0, usage=Usage()), END)


def test_a_number_or_a_value_at_the_prompt_answers_the_question() -> None:
    question = Question(call="f([])", choices=(Choice(result="None"), Choice(result="0")))
    run = Run.begin(SETUP).model_copy(update={"question": question})
    assert read_answer("2", run) == Answer(choice=2)
    assert read_answer("=ValueError", run) == Answer(result="ValueError")
    assert read_answer("c shorter", run) == Continue(guidance="shorter")
    with pytest.raises(UsageError):
        read_answer("2", Run.begin(SETUP))


def test_a_word_at_the_prompt_is_an_action_or_the_start_of_its_name() -> None:
    run = Run.begin(SETUP)
    needs = Override(outcome=Outcome.NEEDS_IMPROVEMENT, reason="too cold")
    assert read_answer("needs work too cold", run) == needs
    assert read_answer("show diff", run) == Show(["diff"])
    assert read_answer("", run) is read_answer("q", run) is None
    for typo in ("cancel", "x"):
        with pytest.raises(UsageError, match=r"is not an answer here\. Type a letter in brackets"):
            read_answer(typo, run)
