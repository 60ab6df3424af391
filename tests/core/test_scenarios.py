"""Runs as lines: what is replied and decided, and what each text comes to.

Each is run whole, and cut after its saves and replies: it goes on to the same end, and no reply
that came is paid for twice. And whatever is said, no run passes in which a No was the last word.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import (
    CODE,
    EVALUATED,
    READY,
    TASK,
    Finds,
    calls,
    clock,
    code,
    critique,
    finding,
    finish,
    judgement,
    prompts,
    refinement,
    replies_read,
    staged,
    text,
    told,
    without_deltas,
    written,
)

from ipyrefine.core.decisions import Add, Continue, Criteria, Decision, Dismiss, Edit, Override
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import CallEnded, CritiqueReady, Event, Stopped
from ipyrefine.core.model import Limits, Outcome, Stage, Task, Words
from ipyrefine.core.ports import Reply
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.reducer import replay
from ipyrefine.core.run import Run
from ipyrefine.core.table import Point, Result
from ipyrefine.core.testing import is_critics
from ipyrefine.errors import Unreachable
from ipyrefine.render import say
from ipyrefine.render.blocks import claims_of
from ipyrefine.render.blocks import told as told_of

QUOTES = ("it doubles numbers", "Negative numbers give 0", "Text gives an empty text")
ASK = CODE.replace(text=f"Write f(x): {'. '.join(QUOTES)}.")
BODIES = [f"def f(x):\n    return {one}" for one in ("x", "2 * x", "max(0, x)", "abs(x)", "None")]
X, DOUBLE, ZERO, *_ = BODIES
LONG = ZERO + "".join(f"\n    # {n}" for n in range(12))
ALWAYS = Limits(max_revisions=1, critique="always")
KEEP = "t1: KEEP: the task does not ask for that"
ALL_HELD = {"passed": True, "decisive": True, "basis": "examples"}


@dataclass
class Scenario:
    """A run as a line.

    Attributes:
        replies: by stage, in order.
        verdicts: of each text, what it comes to and on what, or why not.
        stop: why the run ends.
        text: the text that is kept, by its number.
        options: as for `Refinement` and `Setup`; a check is what it finds of each text.
        missed: the texts that a critic's tests are missed by; None for one they cannot be tried on.
        decided: what is decided, one at each stop.
    """

    replies: Mapping[str, Sequence[Any]]
    verdicts: str
    stop: str
    text: int
    options: Mapping[str, Any] = field(default_factory=dict)
    missed: Mapping[str, bool | None] = field(default_factory=dict)
    decided: tuple[Decision, ...] = ()


def pytest_of(number: int, quote: str) -> str:
    return f'def test_{number}():\n    """{quote}"""\n    assert f({number}) == {number}\n'


def critic(ready: Any = True, *findings: Any, tests: Sequence[str] = (), **fields: Any) -> str:
    """A critic's reply."""
    block = "```python\n" + "\n".join(tests) + "```\n" if tests else ""
    said = {"findings": findings, "because": f"Its word: {ready}.", **fields}
    return block + json.dumps(said if ready is None else {**said, "ready": ready})


def weak(problem: str, place: str = "", *, blocks: bool = True) -> dict[str, Any]:
    return {"problem": problem, "place": place, "task": "it doubles numbers", "blocks": blocks}


NEG = pytest_of(1, "Negative numbers give 0")
WILD = pytest_of(2, "It also takes complex numbers, as everybody knows.")
TWO = pytest_of(2, "it doubles numbers")
LENGTHY = TWO + f"    assert f(2) != '{'9' * 10_000}'\n"
OLD, HINT = weak("no name"), weak("a comma", blocks=False)
SHOWN = {**weak("wrong below zero"), "test": "test_1"}
ROOM = {"options": {"limits": Limits(max_revisions=3)}}
COLD, FAILED = Override(outcome=Outcome.FAIL, reason="It lacks warmth."), "fail user"
FLAT = finding("flat", "Hello")
WORDS = {"task": CODE, "words": Words(tasks=(TASK,)), "prompts": EVALUATED}
SCORED = {"task": TASK, "prompts": EVALUATED, "limits": Limits(max_revisions=2, min_findings=1)}
STILL_FLAT: dict[str, list[Any]] = {
    "draft": [text("Hello")],
    "judge": [judgement(5), judgement(4), judgement(3)],
    "critique": [critique(FLAT)],
    "revise": [text("Hi"), text("Ho")],
}
STALE = "needs_improvement evaluator, needs_improvement evaluator, needs_improvement evaluator"


def more(**then: Any) -> dict[str, list[Any]]:
    return {stage: [*STILL_FLAT[stage], *then.get(stage, ())] for stage in STILL_FLAT}


def by_critic(
    drafts: Sequence[str],
    said: Sequence[str],
    verdicts: str,
    stop: str,
    kept: int = 0,
    revised: Sequence[str] = (),
    **more: Any,
) -> Scenario:
    """A run on code that a critic reads."""
    options = {"task": ASK, "limits": Limits(max_revisions=len(revised)), **more.pop("options", {})}
    replies = {"draft": [code(one) for one in drafts], "critique": said, "revise": revised}
    return Scenario(replies, verdicts, stop, kept, options, **more)


ANSWER = '<text kind="answer">\nIt drops rows.\n</text>'
ASKED = {"task": CODE.replace(text="why dropna?"), "draft": "df = df.dropna()"}

SCENARIOS = {
    # In words
    "a question about a text, answered by who reads it": Scenario(
        {"critique": [ANSWER]}, "none", "answered", 0, ASKED
    ),
    "a question about a text, answered by who would revise it": Scenario(
        {"revise": [ANSWER]}, "not_judged none no_critic", "answered", 0,
        {**ASKED, "wish": "why dropna?"},
    ),
    # By an evaluator
    "a critique says what a score leaves open": Scenario(
        {
            "draft": [text("Hello")],
            "judge": [judgement(5), judgement(7), judgement(10)],
            "critique": [critique(finding("too short", "Hello"))],
            "revise": [text("Hello there"), text("Hello there, friend")],
        },
        "needs_improvement evaluator, needs_improvement evaluator, pass evaluator",
        "passed", 2, SCORED,
    ),
    "an evaluator who is asked again": Scenario(
        {
            "draft": [text("Hello")],
            "judge": ["no json", judgement(5), "none again", "nor now", judgement(9)],
            "critique": [critique(FLAT)],
            "revise": [text("Hello there"), text("Hi there")],
        },
        "needs_improvement evaluator, needs_improvement none, pass evaluator",
        "passed", 2, SCORED,
    ),
    "a revision that is cut off": Scenario(
        {
            "draft": [text("Hello")],
            "judge": [judgement(5), judgement(9)],
            "critique": [critique(FLAT)],
            "revise": [Reply(text="<text>Hel", finish="length"), text("Hi there")],
        },
        "needs_improvement evaluator, needs_improvement evaluator, pass evaluator",
        "passed", 2, SCORED,
    ),
    "a critique that cannot be read": Scenario(
        {
            "draft": [text("Hello")],
            "judge": [judgement(5), judgement(9)],
            "critique": ["{", "["],
            "revise": [text("Hi there")],
        },
        "needs_improvement evaluator, pass evaluator", "passed", 1, SCORED,
    ),
    "words that nothing marks, after a reply that is neither": Scenario(
        {"draft": ["", "Hello, friend."], "judge": [judgement(9)]},
        "pass evaluator", "passed", 0, WORDS,
    ),
    "code where words were possible": Scenario(
        {"draft": [code("x = 1")], "judge": [judgement(9)]}, "pass evaluator", "passed", 0, WORDS
    ),
    "a weak writer is asked for code or words": Scenario(
        {"choose": ["words"], "draft": ["Hello"], "judge": [judgement(9)]},
        "pass evaluator", "passed", 0, {**WORDS, "weak_editor": True},
    ),
    # What is decided at a stop
    "you go on with words of yours": Scenario(
        more(revise=[text("Dear friend")], judge=[judgement(10, fixed=["f3"])]),
        f"{STALE}, pass evaluator", "passed", 3, SCORED, decided=(Continue(guidance="Warmer."),),
    ),
    "your edit is judged as one more": Scenario(
        more(judge=[judgement(10)]),
        f"{STALE}, pass evaluator", "passed", 3, SCORED, decided=(Edit(text="Hey you"),),
    ),
    "your verdict has it revised": Scenario(
        more(revise=[text("Hey")], judge=[judgement(10, fixed=["f3"])]),
        f"needs_improvement user, {STALE.partition(', ')[2]}, pass evaluator", "passed", 3, SCORED,
        decided=(Override(outcome=Outcome.NEEDS_IMPROVEMENT, reason="Too stiff."),),
    ),
    "a lower target takes no call": Scenario(
        STILL_FLAT, "needs_improvement evaluator, pass evaluator, pass evaluator", "passed", 1,
        SCORED, decided=(Criteria(target=0.3),),
    ),
    "what you dismiss no longer blocks": Scenario(
        STILL_FLAT, STALE, "revisions", 0, SCORED,
        decided=(Dismiss(points=("f2",), reason="It is meant so."),),
    ),
    # By a critic: nothing passes over a No
    "it is ready": by_critic([X], [READY], "pass critique", "passed"),
    "a bare no": by_critic([X], [critic(False)], "not_judged none not_ready", "unjudged"),
    "a no beside a suggestion": by_critic(
        [X], [critic(False, weak("a comma", blocks=False))],
        "not_judged none not_ready", "unjudged",
    ),
    "a no though its tests pass": by_critic(
        [X], [critic(False, tests=[NEG])], "not_judged none not_ready", "unjudged"
    ),
    "a no beside a test that rests on nothing": by_critic(
        [X], [critic(False, tests=[WILD])], "not_judged none not_ready", "unjudged",
        missed={X: False},
    ),
    "a test that rests on nothing only asks": by_critic(
        [X], [critic(tests=[WILD])], "pass critique", "passed", missed={X: False}
    ),
    "no tests can be run": by_critic(
        [X], [critic(False, tests=[NEG])], "not_judged none not_ready", "unjudged",
        options={"suite": None},
    ),
    "a test that waits": by_critic(
        [X], [critic(tests=[NEG])], "not_judged none not_tried", "unjudged", missed={X: None}
    ),
    "a test that is no python": by_critic(
        [X], [critic(tests=["def test_1(:\n"])] * 2, "not_judged none not_tried", "unjudged"
    ),
    "a no for what it could have named before is acted on": by_critic(
        [X],
        [critic(False, weak("no name")), critic(False, weak("old", "return"), fixed=["f1"]),
         critic(False, weak("nit", "return", blocks=False), fixed=["f2"]), critic(fixed=["f3"])],
        "needs_improvement critique, needs_improvement critique, not_judged none not_ready, "
        "pass critique", "passed", 3,
        revised=[code(DOUBLE), code(ZERO), code(LONG)],
    ),
    "what it could have named before is a suggestion once it is ready": by_critic(
        [X],
        [critic(False, weak("no name")), critic(True, weak("old", "return"), fixed=["f1"])],
        "needs_improvement critique, pass critique", "passed", 1, revised=[code(DOUBLE)], **ROOM,
    ),
    "it says no in other words each time": by_critic(
        [X], [critic(False, because=one) for one in ("Dull.", "Odd.", "Wrong.")],
        ", ".join(["not_judged none not_ready"] * 3), "unjudged", 2,
        revised=[code(DOUBLE), code(ZERO)],
    ),
    "it says no again without a finding": by_critic(
        [X], [critic(False)] * 2, "not_judged none not_ready, not_judged none not_ready",
        "plateau", 1, revised=[code(DOUBLE)], **ROOM,
    ),
    **{
        f"it leaves open what it said, {how}": by_critic(
            [X], [critic(False, OLD), again],
            "needs_improvement critique, needs_improvement critique",
            "plateau", 1, revised=[code(DOUBLE)], **ROOM,
        )
        for how, again in {
            "and names it again": critic(False, OLD),
            "and also as mended": critic(True, OLD, fixed=["f1"]),
            "as it mends nothing": critic(fixed=[]),
            "as it doesn't say": critic(),
            "as it names others": critic(fixed=["f9", "t1"]),
        }.items()
    },
    "a test that is contested twice": by_critic(
        [X], [critic(tests=[NEG]), critic(upheld=["test_1"])],
        "not_judged none disputed, not_judged none unchanged, not_judged none unchanged",
        "unjudged", 0,
        revised=[code(X, KEEP), code(X, KEEP)], missed={X: False},
    ),
    "a contest that nobody answered": by_critic(
        [X], [critic(tests=[NEG]), "hm", "hm"],
        "not_judged none disputed, not_judged none disputed", "unjudged", 1,
        revised=[code(ZERO, KEEP)], missed={X: False, ZERO: False},
    ),
    "a no though the examples hold": by_critic(
        [X], [critic(False)], "not_judged none not_ready", "unjudged",
        options={"checks": lambda text: ALL_HELD, "limits": ALWAYS.replace(max_revisions=0)},
    ),
    "a no is acted on until its reader takes it back": by_critic(
        [X], [critic(False), critic()], "not_judged none not_ready, pass critique", "passed", 1,
        revised=[code(DOUBLE)],
    ),
    **{
        f"all that it names is a test that passes then, {how}": by_critic(
            [X], [said], "needs_improvement critique, pass tested", "passed", 1,
            revised=[code(ZERO)], missed={X: False},
        )
        for how, said in {
            "a no": critic(False, tests=[NEG]),
            "ready": critic(tests=[NEG]),
            "a finding that names its test": critic(False, SHOWN, tests=[NEG]),
        }.items()
    },
    "a later revision passes the last of its tests": by_critic(
        [X], [critic(False, SHOWN, tests=[NEG])],
        "needs_improvement critique, needs_improvement critique, pass tested", "passed", 2,
        revised=[code(DOUBLE), code(ZERO)], missed={X: False, DOUBLE: False},
    ),
    **{
        f"its tests pass then, and it is read again: {why}": by_critic(
            [X], [said, again], f"needs_improvement critique, {verdict}", stop, 1,
            revised=[revised], **{"missed": {X: False}, **more},
        )
        for why, said, revised, again, verdict, stop, more in (
            ("a finding names no test", critic(False, OLD, tests=[NEG]), code(ZERO),
             critic(fixed=["f1"]), "pass critique", "passed", {}),
            ("a suggestion names no test", critic(False, HINT, tests=[NEG]), code(ZERO),
             READY, "pass critique", "passed", {}),
            ("a finding names a test that passed", critic(False, SHOWN, tests=[NEG, TWO]),
             code(ZERO), critic(fixed=["f1"]), "pass critique", "passed",
             {"missed": {X: False, ("test_1", X): True}}),
            ("a test could not be tried", critic(False, tests=[NEG, LENGTHY]), code(ZERO),
             critic(False), "not_judged none not_ready", "unjudged", {}),
            ("it is another text", critic(tests=[NEG]), code(LONG), READY,
             "pass critique", "passed", {}),
            ("it has another signature", critic(tests=[NEG]), code(ZERO.replace("x", "y")), READY,
             "pass critique", "passed", {}),
            ("all are read", critic(tests=[NEG]), code(ZERO), READY, "pass critique", "passed",
             {"options": {"limits": ALWAYS}}),
            ("by your own prompt", critic(tests=[NEG]), code(ZERO), READY, "pass critique",
             "passed", {"options": {"prompts": Prompts(critique="Read {text}")}}),
        )
    },
    "its tests pass then, but you said no": by_critic(
        [X], [critic(tests=[NEG]), critic()], f"{FAILED}, needs_improvement critique",
        "revisions", 1, revised=[code(ZERO)], missed={X: False},
        options={"limits": Limits(max_revisions=0)}, decided=(COLD,),
    ),
    "you speak after its tests pass": by_critic(
        [X], [critic(tests=[NEG]), critic(False, fixed=[])],
        "needs_improvement critique, needs_improvement none, needs_improvement critique",
        "revisions", 2, revised=[code(ZERO), code(DOUBLE)], missed={X: False},
        options={"limits": Limits(max_revisions=1)},
        decided=(Continue(guidance="Warmer.", revisions=1),),
    ),
    "it only writes tests, and is asked for its word": by_critic(
        [X], [f"```python\n{NEG}```\n", critic()], "pass critique", "passed"
    ),
    "its tests count though it is asked for its word": by_critic(
        [X], [f"```python\n{NEG}```\n", critic()], "needs_improvement critique", "revisions",
        missed={X: False},
    ),
    "it only writes tests, twice": by_critic(
        [X], [f"```python\n{NEG}```\n"] * 2, "not_judged none unreadable", "unjudged"
    ),
    "its no is not passed over where it could not be read again": by_critic(
        [X], [critic(True, weak("no name")), "hm", "hm"],
        "needs_improvement confirmed, not_judged none unreadable", "revisions", 0,
        revised=[code(DOUBLE)],
        options={"checks": lambda text: {**ALL_HELD, "basis": "confirmed"}, "limits": ALWAYS},
    ),
    "it lets a contested test go": by_critic(
        [X], [critic(tests=[NEG]), critic(upheld=[])],
        "pass critique, pass critique",
        "passed", 1, revised=[code(ZERO, KEEP)], missed={X: False, ZERO: False},
    ),
    **{
        f"it doesn't say whether it upholds {name}": by_critic(
            [X], [said, critic(**answer)],
            "not_judged none disputed, not_judged none disputed", "unjudged", 1,
            revised=[code(ZERO, kept)], missed={X: False, ZERO: False},
        )
        for name, said, kept in (
            ("a test", critic(tests=[NEG]), KEEP), ("a finding", critic(False, OLD), "f1: KEEP: so")
        )
        for answer in ({}, {"upheld": None})
    },
    "you dismiss its no": by_critic(
        [X], [critic(False)], "pass critique", "passed", decided=(Dismiss(points=("f1",)),)
    ),
    "you dismiss one of two disputed claims that its no rests on, then the other": by_critic(
        [X],
        [critic(False, weak("no name"), tests=[NEG]), *[critic(False, upheld=["f1", "t1"])] * 2],
        "pass critique, pass critique, pass critique", "passed", 2,
        revised=[code(X, f"f1: KEEP: so\n{KEEP}"), code(X + "  #", f"f1: KEEP: so\n{KEEP}")],
        missed={X: False, X + "  #": False},
        decided=(Dismiss(points=("f1",)), Dismiss(points=("t1",))),
    ),
    "it is ready and upholds what its writer contests": by_critic(
        [X], [critic(False, weak("no name")), critic(True, upheld=["f1"])],
        "needs_improvement critique, needs_improvement critique", "revisions", 1,
        revised=[code(DOUBLE, "f1: KEEP: so")],
    ),
    "it is ready and leaves one of your two wishes open": by_critic(
        [X], [READY, critic(True, fixed=["f1"])],
        "needs_improvement critique, needs_improvement critique", "revisions", 1,
        revised=[code(DOUBLE)], options={"limits": Limits(max_revisions=0)},
        decided=(
            Add(point=Point(words="Double it.")), Continue(guidance="Name it g.", revisions=1),
        ),
    ),
    **{
        f"your no, after which {name}": by_critic(
            [X], [READY, said], f"{FAILED}, {verdict}", stop, 1,
            revised=[code(DOUBLE)], **ROOM, decided=(COLD,),
        )
        for name, said, verdict, stop in (
            ("a critic names it", critic(fixed=["f1"]), "pass critique", "passed"),
            ("a critic names nothing", critic(fixed=[]), "needs_improvement critique", "plateau"),
            ("a critic doesn't say", critic(), "needs_improvement critique", "plateau"),
            ("a critic names another", critic(fixed=["f2"]), "needs_improvement critique",
             "plateau"),
            ("a critic names it and says it again",
             critic(True, weak("it lacks  warmth."), fixed=["f1"]),
             "needs_improvement critique", "plateau"),
        )
    },
    **{
        f"your no, after which your evaluator says {said}": Scenario(
            {"draft": [text("Hi")], "judge": ["PASS", said], "revise": [text("Ho")]},
            f"{FAILED}, {verdict}", stop, 1,
            {"prompts": Prompts(judge="Say PASS or FAIL: {content}")}, decided=(COLD,),
        )
        for said, verdict, stop in (
            ("PASS", "needs_improvement evaluator", "plateau"),
            ('{"evaluation": "PASS"}', "needs_improvement evaluator", "plateau"),
            ('{"evaluation": "PASS", "fixed": ["f2"]}', "needs_improvement evaluator", "plateau"),
            ('{"evaluation": "PASS", "fixed": "f1"}', "needs_improvement evaluator", "plateau"),
            ('{"evaluation": "PASS", "fixed": ["f1"]}', "pass evaluator", "passed"),
        )
    },
    "you pass it over its no": by_critic(
        [X], [critic(False)], "pass user", "overridden", decided=(Override(outcome=Outcome.PASS),)
    ),
    "a suggestion that you dismiss takes no no back": by_critic(
        [X], [critic(False, weak("wrong"), weak("a comma", blocks=False))], "pass critique",
        "passed", decided=(Dismiss(points=("f2",)), Dismiss(points=("f1",))),
    ),
    "evidence alone": by_critic(
        [X], [], "pass examples", "passed",
        options={"checks": lambda text: ALL_HELD, "limits": Limits(critique="never")},
    ),
}  # fmt: skip


class Found:
    """A check: what a function finds of each text."""

    name = "found"

    def __init__(self, find: Callable[[str], dict[str, Any]]) -> None:
        self._find = find

    async def __call__(self, text: str, task: Task) -> Result:
        return Result(name=self.name, **self._find(text))


class Suite:
    """A critic's tests, which a text misses or is not tried on: all of them, or one by its name."""

    def __init__(self, missed: Mapping[Any, bool | None]) -> None:
        self._missed = missed

    async def __call__(self, tests: Sequence[Point], text: str, task: Task) -> dict[str, Result]:
        whole = self._missed.get(text, True)
        ends = {one.words: self._missed.get((one.words, text), whole) for one in tests}
        return {name: Result(passed=passed, shows="It is 1") for name, passed in ends.items()}


def begin(one: Scenario, stored: Sequence[Event] = ()) -> Refinement:
    """A run that goes on from what is stored, with the replies that are not paid for."""
    find = one.options.get("checks", lambda text: {"passed": None, "shows": "looked"})
    options = {"suite": Suite(one.missed), **one.options, "checks": [Found(find)]}
    return refinement(
        staged(one.replies, replies_read(stored)),
        run=replay(stored) if stored else None,
        nonce=lambda _: "n",
        clock=clock(),
        **options,
    )


async def play(one: Scenario, loop: Refinement) -> list[Event]:
    """Run to the end, with what is still to be decided at each stop."""
    events = await finish(loop)
    for number, decision in enumerate(one.decided):
        if len(loop.state.decisions) <= number:
            loop.decide(decision)
            events += await finish(loop)
    return without_deltas(events)


def verdict_of(iteration: Any) -> str:
    if (verdict := iteration.verdict) is None:
        return "none"
    why = verdict.why if verdict.outcome is Outcome.NOT_JUDGED else ""
    return f"{verdict.outcome.value.lower()} {verdict.basis} {why}".strip()


def timeless(value: Any) -> Any:
    """A dumped run without seconds."""
    if isinstance(value, dict):
        return {key: timeless(part) for key, part in value.items() if key != "seconds"}
    return [timeless(part) for part in value] if isinstance(value, (tuple, list)) else value


def same(run: Run) -> Any:
    return timeless(run.model_dump())


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_run_comes_to_its_verdicts_whole_and_cut_anywhere(name):
    one = SCENARIOS[name]
    whole = begin(one)
    events = await play(one, whole)
    run = whole.state
    verdicts = ", ".join(map(verdict_of, run.iterations))
    assert (verdicts, run.stop_reason, run.chosen.number) == (one.verdicts, one.stop, one.text)
    paid = {stage: len(replies) for stage, replies in one.replies.items() if replies}
    assert calls(events) == paid
    for cut in range(len(name) % 2, len(events) + 1, 2):  # every second: rows share their stages
        stored = events[:cut]
        resumed = begin(one, stored)
        rest = await play(one, resumed)
        assert resumed.error is None, cut
        assert same(resumed.state) == same(run), cut
        assert calls([*stored, *rest]) == paid, cut
        assert resumed.state == replay([*stored, *rest])


async def test_a_run_that_ends_without_another_critique_says_so():
    loop = begin(SCENARIOS["all that it names is a test that passes then, a no"])
    await finish(loop)
    said = say.verdict(loop.state, loop.state.chosen)
    assert str(said.label) == "○ CRITIC'S TESTS PASS"
    assert said.sentence == "Every finding's test passes; scripted did not read it again."
    assert loop.state.message == "Every finding's test passes on revision 1."


async def test_a_draft_that_could_not_be_read_is_asked_for_anew():
    failed = refinement([text(""), text("")])
    events = await finish(failed)
    assert isinstance(events[-1], Stopped)
    again = refinement([text("Hello"), READY], run=replay(events))
    await finish(again)
    assert again.state.text == "Hello"


async def test_a_repair_that_could_not_be_sent_is_all_that_is_asked_again():
    broken = refinement([text("Hello"), "no json", Unreachable("gone")])
    await finish(broken)
    again = refinement([READY], run=broken.state)
    await finish(again)
    assert again.state.usage.calls == 2 + 1 + 1, "what was paid, what failed, what is asked now"


async def test_a_critic_is_shown_the_test_of_its_that_a_writer_contests():
    loop = begin(SCENARIOS["a test that is contested twice"])
    await finish(loop)
    [_, again] = prompts(loop, Stage.CRITIQUE)
    assert f"- test_1: the task does not ask for that\n<material-n>\n{NEG}".rstrip() in again
    [claim] = claims_of(loop.state, loop.state.iterations[1])
    assert claim.text.endswith("→ left as it is: the task does not ask for that")


async def test_your_evaluator_is_sent_your_no_and_else_its_prompt_alone():
    one = SCENARIOS["your no, after which your evaluator says PASS"]
    loop = begin(one)
    await play(one, loop)
    [alone, told] = prompts(loop, Stage.JUDGE)
    no = "Open from an earlier version:\n- f1 (blocking, guidance): It lacks warmth."
    assert told.replace("Ho", "Hi") == alone.replace("\nOriginal", f"\n{no}\nOriginal")


async def test_what_was_said_of_a_draft_is_not_shown_as_said_of_its_unread_revision():
    replies = {**STILL_FLAT, "judge": [judgement(5, FLAT), Unreachable("Gone.")]}
    loop = begin(Scenario(replies, "", "", 0, SCORED))
    with suppress(Unreachable):
        await finish(loop)
    draft, revision = loop.state.iterations
    assert told_of(loop.state, draft) == "flat"
    assert told_of(loop.state, revision) == "not read"


async def test_a_run_that_continues_is_not_called_stopped():
    broken = refinement([Unreachable("gone")])
    await finish(broken)
    again = refinement([text("Hello"), READY], run=broken.state)
    reasons = []
    await finish(again, lambda event, run: reasons.append((event.type, run.stop_reason)))
    assert {reason for kind, reason in reasons if kind != "stopped"} == {None}


# Whatever they say
YES, NO, UNREAD = (True, "yes"), (False, "no", "false"), (None, "almost", "not yet")
MORE = "".join(f"\n    x = x + {n}" for n in range(9))
HOLDS = Result(name="examples", **ALL_HELD)

words = st.sampled_from([*YES, *NO, *UNREAD])
places = st.sampled_from(["", "return", "def f(x)"])
weaknesses = st.builds(
    lambda said, place, test, blocks: {**weak(said, place, blocks=blocks), "test": test},
    st.sampled_from(["no name", "too slow", "wrong type"]),
    places,
    st.sampled_from(["", "test_1", "test_2", "test_3"]),
    st.booleans(),
)
passages = st.sampled_from([*QUOTES, "as everybody knows it"])
tried = st.builds(pytest_of, st.integers(1, 3), passages)
named = st.lists(st.sampled_from(["f1", "f2", "test_1", "test_2"]), max_size=3)
critiques = st.one_of(
    st.builds(
        lambda ready, found, written, upheld, fixed: (
            ready,
            critic(ready, *found, tests=written, upheld=upheld, fixed=fixed),
        ),
        words,
        st.lists(weaknesses, max_size=2),
        st.lists(tried, max_size=2),
        named,
        named,
    ),
    st.builds(
        lambda ready, written: (ready, critic(ready, tests=written)),
        st.sampled_from([*YES, *NO]),
        st.lists(tried, min_size=1, max_size=2),
    ),
    st.just((None, "hm")),
)
bodies = st.sampled_from([*BODIES, *(body + MORE for body in BODIES[:2])])
revisions = st.builds(
    lambda body, kept: code(body, "\n".join(f"{id_}: KEEP: it is right" for id_ in kept)),
    bodies,
    st.lists(st.sampled_from(["f1", "f2", "f3"]), max_size=2, unique=True),
)
results = st.dictionaries(
    st.tuples(st.sampled_from([f"test_{n}" for n in (1, 2, 3)]), bodies),
    st.sampled_from([True, False, None]),
    max_size=10,
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    draft=bodies,
    said=st.lists(critiques, min_size=12, max_size=12),
    revised=st.lists(revisions, min_size=1, max_size=4),
    outcomes=results,
    missed=st.booleans(),
    holds=st.sampled_from([None, None, HOLDS, HOLDS.replace(basis="confirmed")]),
    critique=st.sampled_from(["auto", "auto", "always"]),
)
async def test_no_run_passes_in_which_a_no_was_the_last_word(
    draft, said, revised, outcomes, missed, holds, critique
):
    if missed:  # by the draft, whatever it tests
        outcomes |= {(f"test_{n}", draft): False for n in (1, 2, 3)}
    one = refinement(
        {"draft": [code(draft)], "critique": [reply for _, reply in said], "revise": revised},
        ASK,
        suite=Suite(outcomes),
        checks=[Finds(holds)] if holds else [],
        limits=Limits(max_revisions=len(revised), critique=critique),
    )
    words = {reply: word for word, reply in said}
    word, last = dict[str, Any](), ""

    def hear(event: Event, run: Run) -> None:
        nonlocal last
        if isinstance(event, CallEnded) and event.stage == Stage.CRITIQUE:
            last = event.text
        elif isinstance(event, CritiqueReady) and not event.critique.reading.failure:
            word[run.iterations[event.iteration].text] = words[last]

    run = await one.run(hear)
    if not (run.verdict and run.verdict.passed and run.chosen):
        return
    read, no = run.chosen, (*NO, *UNREAD[1:])
    while read.text not in word and read.parent is not None:
        read = run.iterations[read.parent]
    if read is run.chosen:
        assert word.get(read.text) not in no
    elif holds is None or word.get(read.text) in no:  # what it named are tests that pass now
        open_then = [one for one in told(run, read.number) if one.is_open and not one.asks]
        failed = [one.point.words for one in open_then if is_critics(one.point)]
        assert failed
        others = (one.point for one in open_then if one.point.kind != "reading")  # its bare no
        assert all(one.test in failed or is_critics(one) for one in others)
        assert not any(one.is_open and not one.asks for one in told(run))
    if holds is None:
        assert read.text in word
        assert (read is run.chosen) == (run.verdict.basis == "critique")
    for test in written(run):
        stands = test.blocking and test.upheld is not False and not test.dropped
        if stands:
            assert outcomes.get((test.words, run.text), True) is True
    assert not any(f.blocks or (f.is_open and f.point.disputed) for f in told(run))


criteria = ("correctness", "complexity", "style")
said_of_each = st.tuples(*[st.sampled_from(["PASS", "FAIL", "NEEDS_IMPROVEMENT"])] * 3)
shapes = st.sampled_from(
    [
        lambda pairs: "\n".join(f"{n}. {k}: {v}" for n, (k, v) in enumerate(pairs, 1)),
        lambda pairs: "\n".join(f"- **{k}**: {v} (as asked)" for k, v in pairs),
        lambda pairs: (
            "| what | verdict |\n|---|---|\n" + "\n".join(f"| {k} | {v} |" for k, v in pairs)
        ),
        lambda pairs: json.dumps({k: {"verdict": v} for k, v in pairs}),
        lambda pairs: json.dumps([{"criterion": k, "verdict": v} for k, v in pairs]),
        lambda pairs: "\n".join(json.dumps({"criterion": k, "verdict": v}) for k, v in pairs),
        lambda pairs: " ".join(f"The {k} is a {v}, I would say." for k, v in pairs),
    ]
)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(verdicts=st.lists(said_of_each, min_size=2, max_size=2), shape=shapes)
async def test_no_run_passes_in_which_an_evaluator_says_no_of_one_criterion(verdicts, shape):
    replies = [shape([*zip(criteria, one, strict=True)]) for one in verdicts]
    one = refinement(
        {
            "draft": [text("Hi")],
            "judge": [lambda request: replies["Ho" in request.messages[-1].content]] * 4,
            "revise": [text("Ho")],
        },
        prompts=Prompts(judge="By each criterion, judge: {content}"),
        limits=Limits(max_revisions=1),
    )
    run = await one.run()
    heard = dict(zip(("Hi", "Ho"), verdicts, strict=True))
    assert not any(
        i.verdict.passed and set(heard[i.text]) != {"PASS"} for i in run.iterations if i.verdict
    )
