"""A run with every part filled, and a parser that reports what HTML really contains."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Literal

import pytest

from ipyrefine.core.decisions import Guide
from ipyrefine.core.model import (
    Criterion,
    Outcome,
    Setup,
    StopReason,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.run import Call, Iteration, Run
from ipyrefine.core.table import Point, Reading, Result

_VOID = {"br", "col", "line", "circle", "img", "input"}


class Page(HTMLParser):
    """What an HTML text holds: its tags, its attributes and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.chunks: list[str] = []
        self.open: list[str] = []
        self.balanced = True
        self.feed(html)
        self.close()
        self.balanced &= not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, value or "") for name, value in attrs}
        if tag == "br":
            self.chunks.append("\n")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self.balanced = self.balanced and bool(self.open) and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.chunks.append(data)

    @property
    def text(self) -> str:
        return "".join(self.chunks)


@pytest.fixture(scope="session")
def read_html() -> Callable[[str], Page]:
    """Parse HTML as a browser's tokenizer would."""
    return Page


@pytest.fixture(scope="session")
def read_words() -> Callable[[str], str]:
    """What a person reads of HTML or Markdown, with single spaces."""
    return lambda text: " ".join(Page(re.sub(r"[\\`]", "", text)).text.split())


# Every free field is filled, and remarks have every standing that one may have.
WHOLE = Point(
    id="the id", criterion="the criterion", place="the quote", words="the problem", fix="the fix"
)
MINOR = WHOLE.replace(blocking=False)
POINTS = (
    WHOLE,
    MINOR.replace(id="f2"),
    MINOR.replace(id="f3", source="you"),
    MINOR.replace(id="f4", quote="the demand"),
)
ROW = Result(
    call="the call", gives="the result", rivals=("raises E",),
    setup="the setup", source="critic",
)  # fmt: skip
FAILS = Iteration(
    number=0,
    text="the draft",
    thoughts="the thoughts",
    results={
        "the id": Result(passed=False),
        "f2": Result(passed=True),
        "f3": Result(passed=False),
        "f4": Result(passed=False, again=True),
    },
    reading=Reading(),
    evidence=(
        Result(name="the check", passed=False, score=0.5, shows="the detail"),
        Result(name="schema", passed=None, counts=False),
    ),
    verdict=Verdict(
        outcome=Outcome.FAIL, score=0.42, basis="tests", why="failed", point="c", line="the why",
    ),
)  # fmt: skip
CALLS = tuple(
    Call(stage=stage, iteration=number, usage=Usage(seconds=60.0, **used))
    for stage, number, used in (
        ("judge", 0, {"calls": 2, "prompt_tokens": 1000, "completion_tokens": 234, "cost": 0.0}),
        (
            "revise",
            1,
            {"calls": 3, "prompt_tokens": 2000, "completion_tokens": 222, "cost": 0.0012},
        ),
    )
)
PASSES = Iteration(
    number=1,
    parent=0,
    text="the revised",
    changes={"f2": "the summary"},
    evidence=(Result(name="examples", passed=True, score=1.0, rows=(ROW,)),),
    verdict=Verdict(outcome=Outcome.PASS, score=0.91, basis="tests"),
)
HAS_NO_TEXT = Iteration(number=2, parent=1, text="the revised", failure="the flaw")
TASK = Task(
    text="the task", profile="the profile", checklist=("the item",),
    criteria=(Criterion(name="the named", definition="the definition"),),
)  # fmt: skip


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Run]:
    """Make a finished run of a draft that fails, a revision that passes, and a failed reply."""

    def make(*, draft: str = "the draft", form: Literal["code", "prose"] = "code") -> Run:
        task = TASK.replace(form=form)
        return Run(
            setup=Setup(task=task, model="the model", judge="the judge", checks=("the checkname",)),
            allowed_revisions=4,
            iterations=(FAILS.replace(text=draft), PASSES, HAS_NO_TEXT),
            points={one.id: one for one in POINTS},
            best=1,
            calls=CALLS,
            warnings=("the warning",),
            decisions=(Guide(guidance="the guidance"),),
            stop_reason=StopReason.PASSED,
            message="the message",
            seconds=12.3,
        )

    return make
