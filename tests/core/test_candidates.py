"""Several drafts: no more than it takes, in order, compared, and continued from the best."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from all_at_once import AllAtOnce, cancel
from kit import (
    EVALUATED,
    evaluated,
    finish,
    judgement,
    refinement,
    replies_read,
    staged,
    stages,
    text,
    without_deltas,
)

from ipyrefine.core.events import DraftReady, EvidenceReady, TextDelta
from ipyrefine.core.model import Evidence, Limits, Outcome, StopReason, Task, Usage
from ipyrefine.core.ports import Check, Reply
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.reducer import replay
from ipyrefine.errors import ModelError, Unreachable
from ipyrefine.providers.scripted import ScriptedModel

THREE = Limits(candidates=3, critique="never")


def version(number: int) -> str:
    return text(f"version {number}")


class Looks:
    """A check that finds what a function says of a text, and of those it is compared with."""

    name = "looks"

    def __init__(self, find: Callable[..., dict[str, Any]], others: Sequence[str] = ()) -> None:
        self._find, self._others = find, others

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, **self._find(text, *self._others))


class Compares(Looks):
    """The same, of a check that compares drafts."""

    name = "compares"

    def among(self, others: Sequence[str], left: int = 0) -> Check:
        return Compares(self._find, others)


LONGEST = Looks(lambda text: {"passed": True, "score": min(1.0, len(text) / 20)})
SILENT = Compares(lambda *_: {"passed": None, "drafts": "agree"})


def wants(wanted: str) -> Looks:
    """A check that is settled by one text alone."""
    return Looks(lambda text: {"passed": text == wanted, "decisive": True})


def neighbours(content: int, final: int = -1) -> Compares:
    """A check that is content with so many others, or says that further ones change nothing."""
    return Compares(
        lambda _, *others: {
            "passed": True,
            "score": 1.0,
            "decisive": len(others) >= content,
            "drafts": "differ" if len(others) == final else "open",
        }
    )


async def test_candidates_are_asked_for_at_once_and_given_in_their_order() -> None:
    judge = ScriptedModel([judgement(9)] * 3)
    loop = evaluated(AllAtOnce(3, version), judge=judge, limits=THREE)
    events = await finish(loop)
    drafts = [e.text for e in events if isinstance(e, DraftReady)]
    assert drafts == ["version 0", "version 1", "version 2"]
    assert [i.parent for i in loop.state.iterations] == [None, None, None]
    assert loop.state.stop_reason is StopReason.PASSED
    deltas = [e for e in events if isinstance(e, TextDelta) and e.stage == "draft"]
    streamed = [e.iteration for e in deltas]
    assert streamed == sorted(streamed), "only one text streams at a time"


@pytest.mark.parametrize(
    ("checks", "prompts", "drafts"),
    [
        ([SILENT], Prompts(), 1),
        ([SILENT], EVALUATED, 3),
        ([SILENT, wants("version 9")], Prompts(), 3),
        ([SILENT, wants("version 0")], Prompts(), 1),
        ([neighbours(9, final=1)], EVALUATED, 2),
    ],
    ids=["nothing", "an evaluator", "a check that fails", "a check that passes", "a comparison"],
)
async def test_drafts_that_could_not_change_the_outcome_are_not_written(
    checks: list[Check], prompts: Prompts, drafts: int
) -> None:
    replies = [version(number) for number in range(3)]
    judge = ScriptedModel([judgement(9)] * 3)
    limits = Limits(candidates=3, critique="never", max_revisions=0)
    loop = evaluated(replies, judge=judge, checks=checks, limits=limits, prompts=prompts)
    await finish(loop)
    assert len(loop.state.drafts) == drafts


async def test_the_checks_that_do_not_compare_run_once_on_each_candidate() -> None:
    limits = THREE.model_copy(update={"candidates": 5})
    replies = [text("x" * n) for n in (3, 9, 5, 4, 8)]
    loop = refinement(replies, checks=[LONGEST, neighbours(9)], limits=limits)
    events = await finish(loop)
    found = [(e.iteration, e.evidence.name) for e in events if isinstance(e, EvidenceReady)]
    assert sorted(n for n, name in found if name == "looks") == [0, 1, 2, 3, 4]
    assert [n for n, name in found if name == "compares"].count(0) == 4
    assert all(len(i.evidence) == 2 for i in loop.state.iterations)
    assert loop.state.text == "x" * 9


async def test_where_nothing_decides_the_draft_that_its_checks_say_most_for_is_the_best() -> None:
    texts = [text("short"), text("a longer one"), text("mid one")]
    loop = refinement(texts, checks=[LONGEST], limits=THREE)
    events = await finish(loop)
    assert loop.state.text == "a longer one"
    assert stages(events) == ["draft", "check", "draft", "check", "check"]
    assert all(i.verdict.outcome is Outcome.NOT_JUDGED for i in loop.state.iterations if i.verdict)


async def test_when_no_candidate_can_be_had_the_run_fails_and_going_on_asks_anew() -> None:
    down: list[Any] = [Unreachable("No server.")] * 3
    loop = evaluated(
        [*down, text("one"), text("two"), text("three"), *[judgement(9)] * 3], limits=THREE
    )
    await finish(loop)
    assert isinstance(loop.error, ModelError)
    assert loop.state.stop_reason is StopReason.FAILED
    await finish(loop)
    assert len(loop.state.iterations) == 3
    assert loop.state.stop_reason is StopReason.PASSED


async def test_each_candidate_has_its_own_usage() -> None:
    replies = [
        Reply(text=text(f"version {n}"), usage=Usage(calls=1, prompt_tokens=10 + n))
        for n in (0, 1, 2)
    ]
    loop = evaluated(replies, checks=[neighbours(2)], limits=THREE)
    await finish(loop)
    assert [i.usage.prompt_tokens for i in loop.state.iterations] == [10, 11, 12]


async def test_a_run_that_compares_step_by_step_is_cut_anywhere_and_asks_nothing_twice() -> None:
    checks = [neighbours(9)]
    replies = {
        "draft": [text("one"), text("two"), text("three")],
        "judge": [judgement(3), judgement(9), judgement(5)],
    }
    whole = evaluated(replies, checks=checks, limits=THREE)
    events = without_deltas(await finish(whole))
    for cut in range(1, len(events)):
        stored = events[:cut]
        model = staged(replies, replies_read(stored))
        loop = evaluated(model, checks=checks, limits=THREE, run=replay(stored))
        await finish(loop)
        assert loop.state.usage.calls == whole.state.usage.calls == 6, cut
        assert [i.text for i in loop.state.iterations] == ["one", "two", "three"]
        assert loop.state.text == "two"
        assert loop.state.verdict.outcome is Outcome.PASS


async def test_cancelling_in_the_middle_closes_every_stream() -> None:
    model = AllAtOnce(4, version)  # it waits for a fourth request that never comes
    loop = evaluated(model, limits=THREE)
    await cancel(loop, model, 3)
    assert loop.state.stop_reason is StopReason.CANCELLED
