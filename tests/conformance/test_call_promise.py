"""The promise on calls: two a text at most with an evaluator of the user's or a target.

Half of that with a function, and one more where critiques are asked for; whatever the judge says,
and whatever it leaves out.
"""

import json
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kit import READY, critique, finding, text

from ipyrefine import refine
from ipyrefine.core.model import StopReason
from ipyrefine.core.policy import MAX_REPAIRS
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.say import bounds

TARGET = 0.9


class Opinion(NamedTuple):
    """What a judge thinks of one text.

    Attributes:
        score: 0..10.
        remarks: what it names; often nothing.
        fixed: earlier findings that it no longer sees.
    """

    score: int
    remarks: Sequence[str]
    fixed: Sequence[str]

    @property
    def passes(self) -> bool:
        return self.score >= TARGET * 10


opinions = st.builds(
    Opinion,
    score=st.integers(0, 10),
    remarks=st.lists(st.sampled_from(["too dull", "no name", "curt"]), max_size=2, unique=True),
    fixed=st.lists(st.sampled_from(["f1", "f2", "f3"]), max_size=3, unique=True),
)
histories = st.lists(opinions, min_size=5, max_size=5)


def evaluation(opinion: Opinion) -> str:
    said = "PASS" if opinion.passes else "FAIL" if opinion.score < 3 else "NEEDS_IMPROVEMENT"
    return json.dumps({"evaluation": said, "feedback": "; ".join(opinion.remarks)})


def word(opinion: Opinion) -> str:
    return "PASS" if opinion.passes else f"FAIL {' '.join(opinion.remarks)}"


def actions(opinion: Opinion) -> str:
    return json.dumps({"feedback": opinion.remarks, "done": opinion.passes})


def score(opinion: Opinion) -> str:
    feedback = {"feedback": opinion.remarks} if opinion.remarks else {}
    return json.dumps({"score": opinion.score / 10, **feedback})


def number(opinion: Opinion) -> str:
    return f"{opinion.score / 10}"


SHAPES: dict[str, tuple[Callable[[Opinion], str], str]] = {
    "an evaluation": (evaluation, "{text}: PASS or FAIL, as JSON?"),
    "a word": (word, "{text}: PASS or FAIL?"),
    "actions and done": (actions, "{text}: what is to be done, in JSON?"),
    "a score and feedback": (score, "{text}: score it, in JSON."),
    "a number": (number, "{text}: a score from 0 to 1."),
}
UNREADABLE = ("", "Hm.", "{", "Score: 0,8 or 0,9", "Perhaps it passes.")


@pytest.mark.parametrize("revisions", range(5))
async def test_replies_that_cannot_be_read_cost_two_more_calls_and_the_run_says_so(revisions):
    judge = ScriptedModel(UNREADABLE[n % len(UNREADABLE)] for n in range(99))
    run = await refined(revisions, judge=judge, prompts={"judge": "{text}: PASS or FAIL?"})
    most = 2 * (1 + revisions)
    assert run.usage.calls <= most + MAX_REPAIRS
    assert f"{most} calls (+ 2 if replies can't be read)" in bounds(run)


whatever_is_said = given(history=histories, revisions=st.integers(0, 4))
so_often = settings(max_examples=10, deadline=None, derandomize=True, phases=[Phase.generate])


async def refined(revisions: int, **options: Any) -> Run:
    """A run of as many texts as it takes, or as are allowed."""
    writer = ScriptedModel(text(f"text {n}") for n in range(9))
    options = {"profile": "prose", "criteria": ["tone"], "max_revisions": revisions, **options}
    return await refine("Greet.", model=writer, journal=False, **options)


def assert_promised(run: Run, history: Sequence[Opinion], revisions: int, each: int) -> None:
    """At most so many calls a text; and no text fewer than there was room for."""
    assert run.usage.calls <= each * (1 + revisions)
    verdicts = [opinion.passes for opinion in history[: 1 + revisions]]
    wanted = verdicts.index(True) + 1 if True in verdicts else 1 + revisions
    assert len(run.iterations) == wanted
    assert run.usage.calls == each * wanted
    ended = StopReason.PASSED if True in verdicts else StopReason.REVISIONS
    assert run.stop_reason is ended


@pytest.mark.parametrize("shape", SHAPES)
@whatever_is_said
@so_often
async def test_with_a_judge_each_text_costs_two_calls_at_most(shape, history, revisions):
    reply, prompt = SHAPES[shape]
    judge = ScriptedModel(map(reply, history))
    run = await refined(revisions, judge=judge, target=TARGET, prompts={"judge": prompt})
    assert_promised(run, history, revisions, each=2)


@whatever_is_said
@so_often
async def test_with_a_critic_each_text_costs_two_calls_at_most(history, revisions):
    def read(opinion: Opinion) -> str:
        blocking = (finding(remark) for remark in opinion.remarks)
        return READY if opinion.passes else critique(*blocking, finding(f"Still no {next(new)}."))

    new = count()
    critic = ScriptedModel(map(read, history))
    run = await refined(revisions, judge=critic, patience=None)
    assert_promised(run, history, revisions, each=2)


RESULTS: dict[str, Callable[[Opinion], Any]] = {
    "a score": lambda one: one.score / 10,
    "a pair": lambda one: ("PASS" if one.passes else "FAIL", "; ".join(one.remarks)),
    "a bool": lambda one: one.passes,
    "feedback": lambda one: "" if one.passes else "; ".join(["change it", *one.remarks]),
    "a dict": lambda one: {"score": one.score / 10, "feedback": list(one.remarks)},
    "actions and done": lambda one: {"done": one.passes, "feedback": list(one.remarks)},
}


@pytest.mark.parametrize("result", RESULTS)
@whatever_is_said
@so_often
async def test_with_a_function_each_text_costs_one_call(result, history, revisions):
    left = map(RESULTS[result], history)
    run = await refined(revisions, checks=[lambda text: next(left)], target=TARGET)
    assert_promised(run, history, revisions, each=1)
