"""Additions that nobody asked for are findings; what can be defended is none."""

import pytest
from loop_scripts import TASK, code, finish, found, judged, refinement, text

from ipyrefine.core.additions import additions, outgrown
from ipyrefine.core.records import Finding, Severity, Status
from ipyrefine.core.runs import Decision, Limits, StopReason

ASKED = "Implement a Stack with push(x), pop() and getMin(), all O(1)."
STACK = """\
class Stack:
    def __init__(self):
        self.items = []

    def push(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop()
"""
METHOD = "\n    def {}(self):\n        return {}\n"


def finding(problem: str, fix: str = "", quote: str = "") -> Finding:
    return Finding(
        id="f1", criterion="x", severity=Severity.MINOR, problem=problem, fix=fix, quote=quote
    )


def named(new: str, *findings: Finding, old: str = STACK, task: str = ASKED) -> list[str]:
    return [f.problem for f in additions(task, findings, old, new, "code")]


@pytest.mark.parametrize(
    ("new", "what"),
    [
        (STACK + METHOD.format("size", "len(self.items)"), "the function Stack.size"),
        (STACK + "\n\ndef reverse(stack):\n    return stack\n", "the function reverse"),
        (STACK + "\n\nclass Queue:\n    def put(self, x): ...\n", "the class Queue"),
        ("import numpy as np\n" + STACK, "the package numpy"),
        (STACK + "\n\nStack().push(1)\n", "statements that run when it is imported"),
        (STACK + "\n\nif __name__ == '__main__':\n    Stack()\n", "statements that run when"),
    ],
)
def test_what_nothing_asks_for_and_nothing_uses_is_named(new: str, what: str) -> None:
    (problem,) = named(new)
    assert what in problem


@pytest.mark.parametrize(
    "new",
    [
        STACK + METHOD.format("getMin", "min(self.items)"),
        STACK + METHOD.format("get_min", "min(self.items)"),
        STACK + METHOD.format("_low", "min(self.items)"),
        STACK + METHOD.format("low", "1") + METHOD.format("getMin", "self.low()"),
        "import heapq\nfrom collections import deque\n" + STACK,
        STACK + "\n\n@register\ndef hook():\n    return 1\n",
        STACK.replace("class Stack:", "class Stack(Base):") + METHOD.format("run", "1"),
        STACK + "\n\nLIMIT = 3\n__all__ = ['size']\n\ndef size(s):\n    return 1\n",
        "not python (",
        STACK,
    ],
    ids=["asked", "spelled otherwise", "private", "used", "standard library", "registered",
         "override", "exported", "no program", "nothing"],
)  # fmt: skip
def test_what_can_be_defended_is_not_named(new: str) -> None:
    assert named(new) == []


def test_what_a_finding_asks_for_is_not_named() -> None:
    new = STACK + METHOD.format("is_empty", "not self.items")
    assert named(new, finding("Callers cannot tell whether it is empty.", "Add is_empty().")) == []
    assert len(named(new, finding("pop fails without items."))) == 1


def test_statements_are_not_named_where_the_task_or_the_text_before_has_them() -> None:
    new = STACK + "\n\nprint(Stack())\n"
    assert named(new, task=ASKED + " Print an empty one.") != named(new)
    assert named(new, old=STACK + "\n\nprint(1)\n") == []


def test_prose_has_no_named_additions() -> None:
    assert additions("Write.", (), "a", "def f(): ...", "prose") == ()


@pytest.mark.parametrize(
    ("findings", "task", "words", "times"),
    [
        ((finding("Too dull.", quote="word"),), "Write.", 110, 2.2),
        ((finding("Too dull.", quote="word"),), "Write.", 100, None),
        ((finding("It lacks a date.", quote="word"),), "Write.", 110, None),
        ((finding("Dull."),), "Write.", 110, None),
        ((), "Expand this.", 110, None),
        ((), "Write.", 110, 2.2),
    ],
)
def test_a_text_outgrows_its_findings_when_none_asks_for_more(
    findings: tuple[Finding, ...], task: str, words: int, times: float | None
) -> None:
    assert outgrown(task, findings, "word " * 50, "word " * words) == times


def test_an_outline_may_grow() -> None:
    assert outgrown("Write.", (), "a b c", "word " * 500) is None


CODE = TASK.model_copy(update={"text": "Write inc(n).", "form": "code"})
INC = "def inc(n):\n    return n + 1"
BOTH = INC + "\n\n\ndef dec(n):\n    return n - 1"


async def test_an_addition_is_a_minor_finding_until_a_revision_leaves_it_out() -> None:
    loop = refinement(
        [code("def inc(n): ..."), judged(4, found("it is empty")),
         code(BOTH), judged(6, found("no docstring here"), fixed=("f1",)),
         code(INC), judged(9, fixed=("f3",))],
        CODE,
    )  # fmt: skip
    await finish(loop)
    added = loop.run.iterations[1].findings[1]
    assert (added.criterion, added.author, added.severity) == ("scope", "check", Severity.MINOR)
    assert added.quote == "def dec(n):"
    now = {f.id: f.status for f in loop.run.iterations[2].findings}
    assert now[added.id] is Status.RESOLVED
    assert loop.run.stop_reason is StopReason.PASSED


async def test_an_addition_does_not_keep_a_text_from_passing_and_can_be_dismissed() -> None:
    loop = refinement(
        [code("def inc(n): ..."), judged(4, found("it is empty")),
         code(BOTH), judged(9, fixed=("f1",))],
        CODE,
    )  # fmt: skip
    await finish(loop)
    assert loop.run.text == BOTH
    assert loop.run.stop_reason is StopReason.PASSED
    assert [f.status for f in loop.run.iterations[1].findings][1] is Status.OPEN
    loop.decide(Decision(kind="dismiss", findings=("f2",)))
    await finish(loop)
    assert loop.run.iterations[1].findings[1].status is Status.DISMISSED


async def test_a_dismissed_addition_is_not_raised_again() -> None:
    loop = refinement(
        [code("def inc(n): ..."), judged(4, found("it is empty")),
         code(BOTH), judged(3, fixed=("f1",)), code(BOTH + "\n\n"), code("x = 1"), judged(3)],
        CODE,
        limits=Limits(max_iterations=1),
    )  # fmt: skip
    await finish(loop)
    loop.decide(Decision(kind="dismiss", findings=("f2",)))
    await finish(loop)
    loop.decide(Decision(kind="branch", iteration=0, rounds=1))
    await finish(loop)
    raised = [f for i in loop.run.iterations for f in i.findings if f.criterion == "scope"]
    assert {f.status for f in raised} == {Status.DISMISSED}


async def test_a_text_that_outgrows_its_findings_is_told_of() -> None:
    short, long = "word " * 50, "other " * 120
    weak = found("too dull", quote="word") | {"fix": "liven it up"}
    loop = refinement(
        [text(short), judged(4, weak), text(long), judged(9, fixed=("f1",))],
    )
    await finish(loop)
    assert any("2.4 times as long" in w for w in loop.run.warnings)
