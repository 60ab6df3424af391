"""What a run's servers are sent, as the user sees and settles it in a shell and in the panel."""

from collections.abc import Callable
from typing import Any

import pytest
from shells import Front
from test_panel import Desk, desk  # noqa: F401 - a fixture

from ipyrefine import api
from ipyrefine.core.events import (
    BestChanged,
    DraftReady,
    EvidenceReady,
    RunStarted,
    StageStarted,
    Stopped,
    VerdictReached,
)
from ipyrefine.core.model import Outcome, Printed, Setup, StopReason, Task, Verdict
from ipyrefine.core.sharing import Sharing
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError
from ipyrefine.kernel import variables
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.providers.servers import facts_about

SECRET = "Zwolle-7731-qx"
SERVER = "https://models.example.com/v1"
BROKEN = "first = prices['a']\nraise ValueError(first)"


@pytest.fixture(autouse=True)
def nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipyrefine.providers.choose._asked", set())


class Book(Front):
    """A shell whose every model is one on a server elsewhere."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.shell.user_ns["prices"] = {"a": SECRET}
        self.models: list[ScriptedModel] = []
        monkeypatch.setattr(api, "choose_model", self._choose)
        monkeypatch.setattr(variables, "sandbox_is_closed", lambda: True)

    def _choose(self, *_: Any, **__: Any) -> ScriptedModel:
        texts = [BROKEN + "\n# again", "first = prices['a'][:1]"]
        model = ScriptedModel([f"f1: mended\n```python\n{text}\n```" for text in texts], name="gpt")
        model.base_url = SERVER  # type: ignore[attr-defined]
        self.models.append(model)
        return model

    def fix(self, options: str = "-n 1 --set quiet=yes") -> str:
        return self.run(f"%refine fix --apply none {options}")

    @property
    def sent(self) -> str:
        sent = "\n".join(r.model_dump_json() for one in self.models for r in one.requests)
        assert sent
        return sent


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> Book:
    return Book(monkeypatch)


# In a shell


def test_fix_sends_type_and_line_of_a_traceback_and_says_that_values_stay_here(book):
    book.attempt(BROKEN)
    printed = book.fix("-n 2")
    assert SECRET not in book.sent
    assert "ValueError in line 2: raise ValueError(first)" in book.sent
    assert "values stay here" in " ".join(printed.split())
    assert SECRET in book.last.iterations[0].evidence[0].shows, "the user sees it all"


def test_the_command_shows_what_was_kept_and_sends_it_from_then_on(book):
    book.attempt(BROKEN)
    book.fix()
    assert SECRET in book.run("%refine share")
    with pytest.raises(UsageError, match="once, always, never"):
        book.run("%refine share sometimes")
    assert "models.example.com" in book.run("%refine share once")
    book.run("%refine continue")
    assert SECRET in book.sent
    assert facts_about(SERVER).share is None, "nothing was said of later runs"


# In the panel

TASK = Task(text="Total the prices.", form="code")
HOSTILE = f"<img src=x onerror=alert(1)> {SECRET}</pre><script>"
RAN = Result(
    name="run on copies",
    passed=False,
    shows=f"ValueError: {HOSTILE} (line 1)",
    outputs=(Printed(text=f"<b>{SECRET}</b>"),),
    computed=True,
)
NEEDS = Verdict(
    outcome=Outcome.NEEDS_IMPROVEMENT, score=0.0, why="failed", point="run", line="It fails."
)
EVENTS = [
    RunStarted(setup=Setup(task=TASK, model="gpt", judge="gpt", checks=("run on copies",))),
    StageStarted(stage="draft", iteration=0),
    DraftReady(text="raise ValueError(prices)"),
    StageStarted(stage="check", iteration=0),
    EvidenceReady(iteration=0, evidence=RAN),
    VerdictReached(iteration=0, verdict=NEEDS),
    BestChanged(iteration=0),
    Stopped(reason=StopReason.REVISIONS, message="All revisions are used."),
]
ASKS = Sharing("structure", (SERVER,), asks=True)


class Answers:
    """Takes answers as a cell's run does."""

    def __init__(self) -> None:
        self.sharing, self.given = ASKS, list[str]()

    def take(self, answer: str) -> str:
        self.given.append(answer)
        level: Any = "structure" if answer == "never" else "all"
        self.sharing = ASKS._replace(level=level, asks=False)
        return f"answered {answer}"


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def asking(desk: Callable[..., Desk], answers: Answers) -> Desk:  # noqa: F811
    return desk(*EVENTS, share=answers.take, sharing=lambda: answers.sharing)


def test_the_panel_asks_with_the_very_text_and_says_that_values_stay_here(asking):
    for answer in ("once", "always", "never"):
        assert asking.page.has("share", name=answer)
    html = asking.page.html
    assert "models.example.com" in html
    assert "values stay here" in html
    ask = html.partition("models.example.com")[2]
    assert f"&lt;b&gt;{SECRET}&lt;/b&gt;" in ask
    for tag in ("<img src=x", "<script>", f"<b>{SECRET}"):
        assert tag not in html


@pytest.mark.parametrize(
    ("answer", "says"),
    [("once", "values are sent"), ("always", "values are sent"), ("never", "values stay here")],
)
def test_an_answer_closes_the_question_and_the_chip_says_what_holds(asking, answers, answer, says):
    asking.page.click("share", name=answer)
    assert answers.given == [answer]
    assert says in asking.page.html
    assert not asking.page.has("share")
    if answer == "never":
        asking.page.click("open", name="share")
        assert asking.page.has("share", name="once"), "it can be asked again"
        assert SECRET in asking.page.html


@pytest.mark.parametrize(
    ("sharing", "events"),
    [
        (Sharing("all"), EVENTS),
        (Sharing("structure"), EVENTS),
        (ASKS, [*EVENTS[:4], EVENTS[-1]]),
    ],
    ids=["all on this machine", "structure on this machine", "nothing computed"],
)
def test_where_nothing_was_withheld_the_panel_says_nothing_of_it(desk, sharing, events):  # noqa: F811
    d = desk(*events, sharing=lambda: sharing)
    assert not d.page.has("share")
    assert not d.page.has("open", name="share")
