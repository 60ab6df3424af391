"""A run with every part filled, and a parser that reports what HTML really contains."""

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any, Literal

import pytest

from ipyrefine.core.decisions import Guide
from ipyrefine.core.model import (
    Change,
    CheckFailed,
    Choice,
    Criterion,
    Evidence,
    Finding,
    Outcome,
    Question,
    Setup,
    Severity,
    Status,
    StopReason,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run

Say = Callable[[str], str]
_VOID = {"br", "line", "circle", "img", "input"}


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
        self.balanced = self.balanced and not self.open

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


def _findings(say: Say) -> tuple[Finding, ...]:
    """Findings of every status, with every free field filled by `say`."""
    common: dict[str, Any] = {
        "criterion": say("criterion"),
        "quote": say("quote"),
        "problem": say("problem"),
        "fix": say("fix"),
    }
    return (
        Finding(id=say("id"), severity=Severity.BLOCKING, **common),
        Finding(id="f2", severity=Severity.MINOR, status=Status.RESOLVED, **common),
        Finding(id="f3", severity=Severity.MINOR, author="user", **common),
        Finding(
            id="f4",
            severity=Severity.MINOR,
            status=Status.REGRESSED,
            demand=say("demand"),
            **common,
        ),
    )


def _question(say: Say) -> Question:
    return Question(
        call=say("call"),
        choices=(Choice(result=say("result"), votes=2), Choice(result="E", raises=True)),
        setup=say("setup"),
    )


def _iterations(say: Say) -> tuple[Iteration, ...]:
    """A draft that fails and a revision that passes."""
    failed = Evidence(name=say("check"), passed=False, score=0.5, detail=say("detail"))
    nothing = Evidence(name="schema", passed=None, required=False)
    return (
        Iteration(
            number=0,
            text=say("draft"),
            thoughts=say("thoughts"),
            findings=_findings(say),
            critiqued=True,
            evidence=(failed, nothing),
            verdict=Verdict(
                outcome=Outcome.FAIL,
                score=0.42,
                basis="tests",
                because=CheckFailed(name="c", line=say("why")),
                required_passed=False,
            ),
            usage=Usage(calls=2, prompt_tokens=1000, completion_tokens=234, seconds=65.2),
        ),
        Iteration(
            number=1,
            parent=0,
            text=say("revised"),
            changes=(Change(finding="f2", summary=say("summary")),),
            evidence=(Evidence(name="examples", passed=True, score=1.0, question=_question(say)),),
            verdict=Verdict(outcome=Outcome.PASS, score=0.91, basis="tests"),
        ),
        Iteration(number=2, parent=1, text=say("revised"), failure=say("flaw")),
    )


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Run]:
    """Make a finished run whose free text fields all say what `say` makes of their names."""

    def make(
        say: Say = lambda field: f"the {field}", form: Literal["code", "prose"] = "code"
    ) -> Run:
        criteria = (Criterion(name=say("named"), definition=say("definition")),)
        task = Task(
            text=say("task"),
            form=form,
            profile=say("profile"),
            criteria=criteria,
            checklist=(say("item"),),
        )
        setup = Setup(task=task, model=say("model"), judge=say("judge"), checks=(say("checkname"),))
        return Run(
            setup=setup,
            allowed_revisions=4,
            iterations=_iterations(say),
            best=1,
            usage=Usage(
                calls=5, prompt_tokens=3000, completion_tokens=456, seconds=60.0, cost=0.0012
            ),
            question=_question(say),
            warnings=(say("warning"),),
            decisions=(Guide(guidance=say("guidance")),),
            stop_reason=StopReason.PASSED,
            message=say("message"),
            seconds=12.3,
        )

    return make
