"""The panel, driven by events and clicks, without a browser."""

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ipywidgets import Widget

from ipyrefine.core import reducer
from ipyrefine.core.decisions import (
    Accept,
    Add,
    Answer,
    Branch,
    Continue,
    Decision,
    Dismiss,
    Edit,
    Override,
    Rubric,
    Select,
)
from ipyrefine.core.events import (
    BestChanged,
    CritiqueReady,
    Decided,
    DraftReady,
    Event,
    EvidenceReady,
    QuestionAsked,
    RevisionReady,
    RunStarted,
    StageStarted,
    Stopped,
    TextDelta,
    VerdictReached,
    Warned,
)
from ipyrefine.core.model import (
    Change,
    Choice,
    Critique,
    Evidence,
    Finding,
    Outcome,
    Question,
    Setup,
    Severity,
    StopReason,
    Task,
    Verdict,
)
from ipyrefine.core.run import Run
from ipyrefine.notebook.cell_target import CellTarget
from ipyrefine.notebook.panel import Panel

ACTIONS = ("Stop", "Accept", "Mark as pass", "Needs work", "Continue", "Close")
SETUP = Setup(task=Task(text="Say hello."), model="m", judge="m")
OPENING = RunStarted(setup=SETUP)
NEEDS = Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=0.5)
PASS = Verdict(outcome=Outcome.PASS, score=0.9)
FIRST: list[Event] = [
    OPENING,
    StageStarted(stage="draft", iteration=0),
    DraftReady(text="Hello."),
    VerdictReached(iteration=0, verdict=NEEDS),
    BestChanged(iteration=0),
]
SECOND: list[Event] = [
    StageStarted(stage="revise", iteration=1),
    RevisionReady(iteration=1, parent=0, text="Hello, you."),
]
END = Stopped(reason=StopReason.REVISIONS, message="All revisions are used.")


class Desk:
    """A panel with the run it shows, and what its buttons led to."""

    def __init__(self, **options: Any) -> None:
        self.run = Run.begin(SETUP)
        self.decisions: list[Decision] = []
        self.calls: list[str] = []
        options.setdefault("decide", self.decisions.append)
        options.setdefault("stop", lambda: self.calls.append("stop"))
        options.setdefault("close", lambda: self.calls.append("close"))
        self.panel = Panel(**options)

    def show(self, *events: Event) -> None:
        for event in events:
            self.run = reducer.apply(self.run, event)
            self.panel.show(event, self.run)

    def all(self, kind: str) -> list[Any]:
        return [w for w in _below(self.panel.widget) if type(w).__name__ == kind]

    def one(self, kind: str) -> Any:
        (found,) = self.all(kind)
        return found

    def button(self, name: str) -> Any:
        return next(b for b in self.all("Button") if b.description == name)

    def click(self, name: str) -> None:
        assert not self.button(name).disabled
        self.button(name).click()

    @property
    def words(self) -> Any:
        return next(w for w in self.all("Textarea") if w.description.startswith("Guidance"))

    @property
    def iteration_menu(self) -> Any:
        return next(w for w in self.all("Dropdown") if w.description == "Iteration")

    @property
    def enabled(self) -> set[str]:
        return {name for name in ACTIONS if not self.button(name).disabled}

    @property
    def blocks(self) -> list[Any]:
        return [w for w in self.all("HTML") if w.value.startswith('<details class="rf-iteration"')]

    @property
    def page(self) -> str:
        """All the HTML but the style sheet."""
        return "\n".join(w.value for w in self.all("HTML") if not w.value.startswith("<style>"))

    def live(self) -> str:
        return "".join(part.value for part in self.one("Box").children)


def revised(number: int) -> Event:
    return RevisionReady(iteration=number, parent=number - 1, text=f"Hello, {number}.")


def widgets() -> set[str]:
    """The ids of all widgets that are open."""
    return set(Widget.get_manager_state()["state"])


def _below(widget: Any) -> Iterator[Any]:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from _below(child)


@pytest.fixture
def desk() -> Iterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def make(**options: Any) -> Desk:
        desks.append(Desk(**options))
        return desks[-1]

    yield make
    for one in desks:
        one.panel.close()


def test_importing_the_panel_leaves_ipywidgets_unloaded() -> None:
    code = "import sys, ipyrefine.notebook.panel; sys.exit('ipywidgets' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_buttons_are_enabled_as_the_run_allows(desk: Callable[..., Desk]) -> None:
    d = desk()
    assert d.enabled == {"Stop", "Close"}
    d.show(*FIRST[:2])
    assert d.enabled == {"Stop", "Close"}
    d.show(FIRST[2])
    assert d.enabled == {"Stop", "Accept", "Continue", "Close"}
    d.show(FIRST[3])
    assert d.enabled == set(ACTIONS)
    d.show(END)
    assert d.enabled == set(ACTIONS) - {"Stop"}
    d.show(Decided(decision=Accept(iteration=0)))
    d.show(Stopped(reason=StopReason.ACCEPTED, message=""))
    assert d.enabled == set(ACTIONS) - {"Stop"}


def test_after_a_failure_without_any_text_there_is_nothing_to_accept_or_overrule(
    desk: Callable[..., Desk],
) -> None:
    d = desk()
    d.show(OPENING, Stopped(reason=StopReason.FAILED, message="No server."))
    assert d.enabled == {"Continue", "Close"}


def test_every_control_has_a_tooltip(desk: Callable[..., Desk]) -> None:
    d = desk()
    for kind in ("Button", "Dropdown", "BoundedIntText", "Textarea"):
        assert all(w.tooltip for w in d.all(kind))


@pytest.mark.parametrize(
    ("name", "decision"),
    [
        ("Accept", Accept(iteration=0, reason="why")),
        ("Mark as pass", Override(iteration=0, outcome=Outcome.PASS, reason="why")),
        (
            "Needs work",
            Override(iteration=0, outcome=Outcome.NEEDS_IMPROVEMENT, reason="why"),
        ),
        ("Continue", Continue(revisions=3, guidance="why")),
    ],
)
def test_each_button_sends_its_decision_about_the_best_and_clears_the_words(
    desk: Callable[..., Desk], name: str, decision: Decision
) -> None:
    d = desk()
    d.show(*FIRST, *SECOND)
    d.words.value, d.one("BoundedIntText").value = " why\n", 3
    d.click(name)
    assert d.decisions == [decision]
    assert d.words.value == ""


def test_a_chosen_iteration_is_kept_and_decided_on(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*FIRST)
    d.iteration_menu.value = 0
    d.show(*SECOND, VerdictReached(iteration=1, verdict=PASS), BestChanged(iteration=1), END)
    assert d.iteration_menu.options == (("Best", None), ("0", 0), ("1", 1))
    assert d.iteration_menu.label == "0"
    d.click("Accept")
    d.iteration_menu.value = None
    d.click("Accept")
    assert d.decisions == [Accept(iteration=0), Accept(iteration=1)]


def test_the_menu_of_iterations_starts_at_the_best(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*FIRST)
    assert (d.iteration_menu.label, d.iteration_menu.value) == ("Best", None)


def test_where_the_text_goes_is_the_users_choice(desk: Callable[..., Desk]) -> None:
    target = CellTarget(object(), "refined", "replace")
    d = desk(cell_target=target)
    menu = next(w for w in d.all("Dropdown") if w.description == "into")
    assert menu.value == "replace"
    menu.value = "none"
    assert target.where == "none"


def test_a_pause_can_be_ended_with_stop(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*FIRST, Stopped(reason=StopReason.PAUSED, message="Waiting for you."))
    assert d.enabled == set(ACTIONS)


def test_without_a_verdict_the_latest_text_is_accepted(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*FIRST[:3])
    d.click("Accept")
    assert d.decisions == [Accept(iteration=0)]


def test_stop_and_close_call_back(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*FIRST)
    d.click("Stop")
    assert "Stopping…" in d.page
    d.show(END)
    assert "Stopping…" not in d.page
    d.click("Close")
    assert d.calls == ["stop", "close"]


def test_a_failing_callback_becomes_a_note_and_the_words_stay(desk: Callable[..., Desk]) -> None:
    def refuse(_: Decision) -> None:
        raise ValueError("The cell is <b>gone</b>.")

    d = desk(decide=refuse)
    d.show(*FIRST)
    d.words.value = "shorter"
    d.click("Continue")
    assert "The cell is &lt;b&gt;gone&lt;/b&gt;." in d.page
    assert d.words.value == "shorter"


@pytest.mark.parametrize(("draft", "kind"), [(None, "task"), ("x = 1", "draft to improve")])
def test_the_first_line_says_how_the_cell_was_interpreted(
    desk: Callable[..., Desk], draft: str | None, kind: str
) -> None:
    d = desk()
    d.show(RunStarted(setup=SETUP.model_copy(update={"draft": draft})))
    top = d.all("HTML")[1].value
    assert f"<strong>{kind} (prose)</strong>" in top
    assert 'role="status" aria-live="polite"' in top


def test_hostile_text_stays_text_everywhere(desk: Callable[..., Desk]) -> None:
    bad = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>"
    finding = Finding(
        id=bad, criterion=bad, severity=Severity.BLOCKING, quote=bad, problem=bad, fix=bad
    )
    verdict = NEEDS.model_copy(update={"reason": bad})
    d = desk()
    d.show(
        RunStarted(setup=Setup(task=Task(text=bad), model=bad, judge=bad, draft=bad)),
        StageStarted(stage="draft", iteration=0),
        TextDelta(stage="draft", iteration=0, text=bad),
    )
    d.show(Warned(message=bad))  # flushes the live pane
    assert "&lt;script&gt;" in d.live()
    seen = d.page
    d.show(
        DraftReady(text=bad, thoughts=bad),
        EvidenceReady(iteration=0, evidence=Evidence(name=bad, passed=False, detail=bad)),
        CritiqueReady(iteration=0, critique=Critique(findings=(finding,))),
        VerdictReached(iteration=0, verdict=verdict, findings=(finding,)),
        RevisionReady(
            iteration=1,
            parent=0,
            text=bad * 2,
            changes=(Change(finding=bad, summary=bad),),
            failure=bad,
        ),
        Stopped(reason=StopReason.FAILED, message=bad),
    )
    d.panel.note(bad)
    seen += d.page
    assert seen.count("&lt;script&gt;") > 10
    assert "<script" not in seen
    assert "<img" not in seen


def test_only_the_changed_iteration_is_sent_again(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*FIRST, *SECOND)
    sent: list[int] = []
    for number, block in enumerate(d.blocks):
        block.observe(lambda _, number=number: sent.append(number), "value")
    d.show(StageStarted(stage="check", iteration=1), Warned(message="slow"))
    assert sent == []
    d.show(EvidenceReady(iteration=1, evidence=Evidence(name="runs", passed=True)))
    assert sent == [1]


def test_the_latest_and_the_best_iteration_are_unfolded(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*FIRST, *SECOND, RevisionReady(iteration=2, parent=1, text="Hi."))
    unfolded = [block.value.startswith('<details class="rf-iteration" open>') for block in d.blocks]
    assert unfolded == [True, False, True]


def test_the_live_pane_is_there_only_while_a_stage_runs(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(OPENING)
    assert d.live() == ""
    d.show(FIRST[1])
    assert "Writing" in d.live()
    d.show(END)
    assert d.live() == ""


async def test_events_on_each_others_heels_are_drawn_together_and_none_is_lost(
    desk: Callable[..., Desk],
) -> None:
    d = desk(interval=0.05)
    d.show(*FIRST[:2], FIRST[2], StageStarted(stage="check", iteration=0))
    updates: list[str] = []
    d.blocks[0].observe(lambda change: updates.append(change["new"]), "value")
    for number in range(20):
        evidence = Evidence(name=f"check-{number}", passed=True)
        d.show(EvidenceReady(iteration=0, evidence=evidence))
    assert updates == []
    await asyncio.sleep(0.15)
    assert len(updates) == 1
    assert all(f"check-{number}" in updates[0] for number in range(20))


def test_only_the_iterations_that_changed_are_sent_again(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*FIRST, *SECOND)
    third = RevisionReady(iteration=2, parent=1, text="Hello, all of you.")
    d.show(VerdictReached(iteration=1, verdict=NEEDS), third)
    sent: list[str] = []
    for block in d.blocks:
        block.observe(lambda change: sent.append(change["new"]), "value")
    d.show(VerdictReached(iteration=2, verdict=PASS))
    assert len(sent) == 1
    d.show(BestChanged(iteration=2))
    assert len(sent) == 3
    assert "★" not in sent[1]
    assert "★" in sent[2]


async def test_a_click_on_another_thread_is_handled_on_the_loops(
    desk: Callable[..., Desk],
) -> None:
    threads: list[int] = []
    d = desk(stop=lambda: threads.append(threading.get_ident()))
    d.show(*FIRST)
    await asyncio.to_thread(d.click, "Stop")
    await asyncio.sleep(0)
    assert threads == [threading.get_ident()]


async def test_closing_leaves_no_widget_and_shows_nothing_more() -> None:
    before = widgets()
    d = Desk(tick=0.01)
    d.show(*FIRST, *SECOND, TextDelta(stage="revise", iteration=1, text="x"))
    assert len(widgets()) > len(before) + 30
    d.panel.close()
    d.panel.close()
    assert widgets() == before
    d.show(RevisionReady(iteration=2, parent=1, text="Hi."))
    await asyncio.sleep(0.05)
    assert widgets() == before


def test_a_run_started_over_drops_the_iterations_before() -> None:
    before = widgets()
    d = Desk()
    d.show(*FIRST, *SECOND)
    d.show(OPENING)
    assert d.blocks == []
    d.show(*FIRST[1:])
    assert len(d.blocks) == 1
    d.panel.close()
    assert widgets() == before


def test_one_more_text_of_a_long_run_is_shown_last_without_listing_all_before_it_again() -> None:
    d = Desk()
    d.show(*FIRST, *(revised(number) for number in range(1, 120)))
    listed: list[int] = []
    for box in d.all("VBox"):
        box.observe(lambda change: listed.append(len(change["new"])), "children")
    d.show(revised(120))
    shown = [re.findall(r"Hello, \d+", block.value)[-1] for block in d.blocks[1:]]
    assert shown == [f"Hello, {number}" for number in range(1, 121)]
    assert 0 < sum(listed) <= 50
    d.panel.close()


# ---- the findings, the text and the rubric in the user's hands


WEAK = Finding(
    id="f1", criterion="clarity", severity=Severity.MINOR, problem="Flat.", quote="Hello"
)
ROUGH = Finding(id="f2", criterion="clarity", severity=Severity.BLOCKING, problem="Too short.")
LISTED = (
    *FIRST[:3],
    VerdictReached(iteration=0, verdict=NEEDS, findings=(WEAK, ROUGH)),
    BestChanged(iteration=0),
)


def tick(d: Desk, name: str) -> Any:
    return next(w for w in d.all("Checkbox") if w.description == name)


def field(d: Desk, kind: str, name: str) -> Any:
    return next(w for w in d.all(kind) if w.description == name)


def test_a_revision_acts_on_the_findings_that_are_ticked(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*LISTED)
    tick(d, "f1").value = False
    d.words.value = "briefly"
    d.click("Revise with these")
    assert d.decisions == [Select(iteration=0, findings=("f2",), guidance="briefly")]


def test_a_finding_is_dismissed_with_the_reason_in_the_words(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*LISTED)
    d.words.value = "I like it flat"
    d.click("Dismiss")
    assert d.decisions == [Dismiss(findings=("f1",), reason="I like it flat")]
    d.show(Decided(decision=d.decisions[0]))
    assert [w.description for w in d.all("Checkbox") if w.description[0] == "f"] == ["f2"]


def test_a_finding_of_the_users_own_is_added_and_another_one_edited(
    desk: Callable[..., Desk],
) -> None:
    d = desk()
    d.show(*LISTED)
    d.click("Add a finding")
    field(d, "Text", "Problem").value = "No name."
    d.click("Save finding")
    d.click("Edit")
    assert field(d, "Text", "Problem").value == "Flat."
    field(d, "Text", "Problem").value = "Flat and cold."
    d.click("Save finding")
    added, changed = (one.finding for one in d.decisions if isinstance(one, Add))
    assert (added.id, added.problem, added.author) == ("", "No name.", "user")
    assert (changed.id, changed.problem, changed.quote) == ("f1", "Flat and cold.", "Hello")
    d.show(*(Decided(decision=one) for one in d.decisions))
    assert [w.description for w in d.all("Checkbox")[1:]] == ["f1", "f2", "f3"]


def test_the_row_of_a_finding_that_stands_stays_the_same_control(
    desk: Callable[..., Desk],
) -> None:
    d = desk()
    d.show(*LISTED)
    before = tick(d, "f2")
    d.show(Decided(decision=Dismiss(findings=("f1",))))
    assert tick(d, "f2") is before


def test_ticks_survive_while_their_findings_stand(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*LISTED)
    tick(d, "f2").value = False
    d.show(Decided(decision=Dismiss(findings=("f1",))))
    assert tick(d, "f2").value is False


def test_the_text_is_edited_by_hand(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*LISTED)
    d.click("Edit text")
    mine = field(d, "Textarea", "Your text")
    assert mine.value == "Hello."
    mine.value = "Good morning."
    d.click("Save as an iteration")
    assert d.decisions == [Edit(iteration=0, text="Good morning.")]


def test_the_rubric_is_changed(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(*LISTED)
    d.click("Rubric")
    field(d, "Text", "Criteria").value = "warmth, length"
    field(d, "BoundedFloatText", "Target").value = 0.6
    d.click("Apply rubric")
    (decision,) = d.decisions
    assert isinstance(decision, Rubric)
    assert [c.name for c in decision.criteria] == ["warmth", "length"]
    assert decision.target == 0.6


def test_going_on_from_a_chosen_iteration_is_a_branch(desk: Callable[..., Desk]) -> None:
    d = desk()
    d.show(
        *LISTED, *SECOND, VerdictReached(iteration=1, verdict=PASS), BestChanged(iteration=1), END
    )
    d.iteration_menu.value = 0
    d.click("Continue")
    assert d.decisions == [Branch(iteration=0, revisions=1)]


DOUBTFUL = Finding(
    id="f2", criterion="tone", severity=Severity.BLOCKING, problem="Odd.", verified="no"
)


def test_a_doubtful_finding_is_folded_and_can_still_be_acted_on(desk: Callable[..., Desk]) -> None:
    d = desk()
    sure = Finding(id="f1", criterion="tone", severity=Severity.BLOCKING, problem="Flat.")
    verdict = VerdictReached(iteration=0, verdict=NEEDS, findings=(sure, DOUBTFUL))
    d.show(*FIRST[:3], verdict, BestChanged(iteration=0), END)
    ticks = {box.description: box for box in d.all("Checkbox")}
    assert (ticks["f1"].value, ticks["f2"].value) == (True, False)
    row = next(r for r in d.all("HBox") if ticks["f2"] in r.children)
    assert row.layout.display == "none"
    d.click("Show 1 doubtful")
    assert row.layout.display is None
    assert "nothing shows it" in row.children[1].value
    ticks["f2"].value = True
    d.click("Revise with these")
    assert d.decisions == [Select(iteration=0, findings=("f1", "f2"))]
    d.click("Hide 1 doubtful")
    assert row.layout.display == "none"


QUESTION = QuestionAsked(
    question=Question(
        call="median([])",
        choices=(Choice(result="None", votes=2), Choice(result="ValueError", raises=True)),
    )
)


def test_a_question_has_a_button_for_each_result_and_a_field_for_another(
    desk: Callable[..., Desk],
) -> None:
    d = desk()
    d.show(*FIRST, QUESTION, Stopped(reason=StopReason.QUESTION, message="Answer."))
    assert any("median([])" in html.value for html in d.all("HTML"))
    d.click("returns None (2 drafts)")
    d.click("raises ValueError (1 draft)")
    field = next(w for w in d.all("Text") if w.description == "Your answer")
    field.value = " 1 "
    d.click("Answer")
    assert d.decisions == [Answer(choice=1), Answer(choice=2), Answer(result="1")]
    d.show(Decided(decision=Answer(choice=1)))
    assert not [b for b in d.all("Button") if b.description == "Answer"]


def test_a_hostile_result_stays_text_on_its_button(desk: Callable[..., Desk]) -> None:
    d = desk()
    result = "<b>x</b>\u202e" + "y" * 500
    question = Question(call="f('<script>')", choices=(Choice(result=result),))
    d.show(*FIRST, QuestionAsked(question=question))
    names = [b.description for b in d.all("Button") if b.description.startswith("returns")]
    assert len(names[0]) < 90
    assert "\u202e" not in names[0]
    assert not any("<script>" in html.value for html in d.all("HTML"))
