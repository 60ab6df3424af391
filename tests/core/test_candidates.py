"""Several drafts: no more than it takes, in order, compared, and continued from the best."""

from collections.abc import Sequence
from typing import Any

import pytest
from all_at_once import AllAtOnce, cancel
from kit import (
    finding,
    finish,
    judgement,
    refinement,
    replies_read,
    scored,
    staged,
    stages,
    text,
    without_deltas,
)

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import (
    DraftFailed,
    DraftReady,
    Event,
    EvidenceReady,
    StageStarted,
    TextDelta,
)
from ipyrefine.core.model import (
    Budget,
    Evidence,
    Limits,
    Outcome,
    StopReason,
    Task,
    Usage,
)
from ipyrefine.core.policy import settled
from ipyrefine.core.ports import Check, Reply
from ipyrefine.core.reducer import replay
from ipyrefine.errors import ModelError, Unreachable
from ipyrefine.providers.scripted import ScriptedModel

THREE = Limits(candidates=3, critique="never")


def version(number: int) -> str:
    return text(f"version {number}")


class Longest:
    """A check that scores a text by its length, and leaves the verdict to the judge."""

    name = "longest"

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=True, score=min(1.0, len(text) / 20))


class Wants:
    """A check that is settled by one text alone."""

    name = "wants"

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=text == self._wanted, decisive=True)


class Neighbours:
    """A check that notes the texts it was given to compare with, and is content with so many.

    With ``final`` of them it says that further ones change nothing.
    """

    name = "neighbours"

    def __init__(
        self,
        content: int = 1,
        others: Sequence[str] = (),
        seen: dict[str, list[str]] | None = None,
        final: int | None = None,
    ) -> None:
        self.seen: dict[str, list[str]] = {} if seen is None else seen
        self._content, self._others, self._final = content, list(others), final

    def beside(self, others: Sequence[str], left: int = 0) -> Check:
        return Neighbours(self._content, others, self.seen, self._final)

    async def __call__(self, text: str, task: Task) -> Evidence:
        self.seen[text] = self._others
        settled, final = len(self._others) >= self._content, len(self._others) == self._final
        return Evidence(
            name=self.name, passed=True, score=1.0, decisive=settled, contested=final, final=final
        )


def at_once(model: AllAtOnce, limits: Limits = THREE) -> Refinement:
    """A run without checks, so that all candidates are wanted, with a judge of its own."""
    judge = ScriptedModel([judgement(9)] * 3)
    return refinement(model, judge=judge, limits=limits)


def drafts_at_once(events: Sequence[Event]) -> list[int]:
    """How many drafts each of the run's stages of drafting brought."""
    counts: list[int] = []
    for event in events:
        if isinstance(event, StageStarted) and event.stage == "draft":
            counts.append(0)
        elif isinstance(event, DraftReady):
            counts[-1] += 1
    return counts


async def test_candidates_are_asked_for_at_once_and_given_in_their_order() -> None:
    model = AllAtOnce(3, version)
    loop = at_once(model)
    events = await finish(loop)
    drafts = [e for e in events if isinstance(e, DraftReady)]
    assert [e.text for e in drafts] == ["version 0", "version 1", "version 2"]
    assert [i.parent for i in loop.state.iterations] == [None, None, None]
    assert loop.state.stop_reason is StopReason.PASSED
    deltas = [e for e in events if isinstance(e, TextDelta) and e.stage == "draft"]
    streamed = [e.iteration for e in deltas]
    assert streamed == sorted(streamed), "only one text streams at a time"


async def test_the_first_candidate_is_greedy_and_the_others_are_sampled_with_other_seeds() -> None:
    model = AllAtOnce(3, version)
    await finish(at_once(model, THREE.model_copy(update={"seed": 7})))
    first, *others = model.requests
    assert (first.temperature, first.seed) == (0.0, 7)
    assert all(request.temperature > 0.5 for request in others)
    assert [request.seed for request in others] == [8, 9]


async def test_every_candidate_is_asked_for_in_the_same_words() -> None:
    model = AllAtOnce(3, version)
    await finish(at_once(model, THREE))
    assert {request.messages for request in model.requests} == {model.requests[0].messages}


async def test_each_candidate_is_compared_with_the_others_and_a_revision_with_all() -> None:
    check = Neighbours(content=3)
    replies = [text("a"), text("b"), text("c"), *[judgement(5, finding("curt"))] * 3, text("d")]
    loop = refinement(replies, checks=[check], limits=THREE)
    await finish(loop)
    assert check.seen == {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"], "d": ["a", "b", "c"]}
    assert loop.state.text == "d"


async def test_no_further_candidate_is_written_once_the_checks_settle_that_one_passes() -> None:
    loop = refinement([text("a")], checks=[Wants("a")], limits=THREE)
    await finish(loop)
    assert [i.text for i in loop.state.iterations] == ["a"]
    assert loop.state.stop_reason is StopReason.PASSED


@pytest.mark.parametrize(
    ("content", "brought"),
    [(0, [1]), (1, [1, 1]), (2, [1, 1, 1]), (3, [1, 1, 1, 2]), (5, [1, 1, 1, 2, 1])],
)
async def test_as_long_as_the_checks_leave_it_open_there_are_more_up_to_an_odd_number(
    content: int, brought: list[int]
) -> None:
    limits = THREE.model_copy(update={"candidates": 6})
    replies = [text(f"version {n}") for n in range(6)]
    loop = refinement(replies, checks=[Neighbours(content)], limits=limits)
    events = await finish(loop)
    assert drafts_at_once(events) == brought
    assert loop.state.stop_reason is StopReason.PASSED


async def test_no_further_candidate_is_written_once_it_could_not_change_the_outcome() -> None:
    limits = THREE.model_copy(update={"candidates": 6})
    replies = [*(text(f"version {n}") for n in range(3)), *[judgement(9)] * 3]
    loop = refinement(replies, checks=[Neighbours(9, final=2)], limits=limits)
    events = await finish(loop)
    assert drafts_at_once(events) == [1, 1, 1]


class Silent:
    """A check that can compare nothing."""

    name = "silent"

    def beside(self, others: Sequence[str], left: int = 0) -> Check:
        return self

    async def __call__(self, text: str, task: Task) -> Evidence:
        return Evidence(name=self.name, passed=None, final=True)


@pytest.mark.parametrize(
    ("checks", "abstains", "drafts"),
    [
        ([Silent()], True, 1),
        ([Silent()], False, 3),
        ([Silent(), Wants("version 9")], True, 3),
        ([Silent(), Wants("version 0")], True, 1),
    ],
    ids=["nothing", "a judge", "a check that fails", "a check that passes"],
)
async def test_drafts_that_nothing_could_tell_apart_are_not_written(
    checks: list[Check], abstains: bool, drafts: int
) -> None:
    replies = [version(number) for number in range(3)]
    judge = ScriptedModel([judgement(9)] * 3)
    limits = Limits(candidates=3, critique="never", max_revisions=0)
    loop = refinement(replies, judge=judge, checks=checks, limits=limits, judge_abstains=abstains)
    await finish(loop)
    assert len(loop.state.drafts) == drafts


async def test_contested_drafts_are_not_settled_by_another_check() -> None:
    limits = THREE.model_copy(update={"candidates": 2, "max_revisions": 0})
    checks = [Neighbours(9, final=1), Wants("a")]
    loop = refinement([text("a"), text("b"), *[judgement(3)] * 2], checks=checks, limits=limits)
    await finish(loop)
    assert not settled(loop.state.iterations[0])


async def test_the_checks_that_do_not_compare_run_once_on_each_candidate() -> None:
    limits = THREE.model_copy(update={"candidates": 5})
    replies = [*(text("x" * n) for n in (3, 9, 5, 4, 8)), judgement(9)]
    loop = refinement(replies, checks=[Longest(), Neighbours(9)], limits=limits)
    events = await finish(loop)
    found = [(e.iteration, e.evidence.name) for e in events if isinstance(e, EvidenceReady)]
    assert sorted(n for n, name in found if name == "longest") == [0, 1, 2, 3, 4]
    assert [n for n, name in found if name == "neighbours"].count(0) == 4
    assert all(len(i.evidence) == 2 for i in loop.state.iterations)
    assert loop.state.text == "x" * 9


async def test_a_first_candidate_that_cannot_be_read_does_not_keep_the_others_away() -> None:
    cut = Reply(text="<text>\nhal", finish="length")
    loop = refinement([cut, text("b"), text("c")], checks=[Wants("b")], limits=THREE)
    events = await finish(loop)
    assert drafts_at_once(events) == [0, 2]
    assert loop.state.text == "b"
    assert loop.state.stop_reason is StopReason.PASSED


async def test_only_the_candidate_that_its_checks_say_most_for_is_judged() -> None:
    texts = [text("short"), text("a longer one"), text("mid one")]
    loop = refinement([*texts, judgement(9)], checks=[Longest()], limits=THREE)
    events = await finish(loop)
    assert loop.state.text == "a longer one"
    assert stages(events) == ["draft", "check", "draft", "check", "check", "judge"]
    others = [i.verdict for i in loop.state.iterations if i.number != 1]
    assert all(v and v.outcome is Outcome.NOT_JUDGED for v in others)
    assert all(v and "Draft 1 does better on the checks." in v.reason for v in others)


async def test_without_checks_every_candidate_is_judged_and_the_best_is_continued_from() -> None:
    texts = [text("one"), text("two"), text("three")]
    loop = refinement([*texts, judgement(5), judgement(9), judgement(7)], limits=THREE)
    await finish(loop)
    assert loop.state.text == "two"
    assert loop.state.score_history == (0.5, 0.9, 0.7)


async def test_candidates_use_up_neither_revisions_nor_patience() -> None:
    loop = scored(0.5, 0.4, 0.3, 0.6, 0.7, target=0.9, candidates=3, max_revisions=2, patience=1)
    await finish(loop)
    assert len(loop.state.drafts) == 3
    assert loop.state.revisions == 2
    assert loop.state.stop_reason is StopReason.REVISIONS


async def test_a_candidate_that_is_cut_off_is_warned_of_and_the_others_go_on() -> None:
    cut = Reply(text="<text>\nhal", finish="length")
    loop = refinement([text("one"), cut, text("three"), judgement(9), judgement(8)], limits=THREE)
    events = await finish(loop)
    assert [i.text for i in loop.state.iterations] == ["one", "three"]
    assert [e.candidate for e in events if isinstance(e, DraftFailed)] == [1]
    assert any("cut off" in warning for warning in loop.state.warnings)
    assert [i.usage.calls for i in loop.state.iterations] == [3, 2]
    assert loop.state.usage.calls == 5


async def test_when_no_candidate_can_be_had_the_run_fails_and_going_on_asks_anew() -> None:
    down: list[Any] = [Unreachable("No server.")] * 3
    loop = refinement(
        [*down, text("one"), text("two"), text("three"), *[judgement(9)] * 3], limits=THREE
    )
    await finish(loop)
    assert isinstance(loop.error, ModelError)
    assert loop.state.stop_reason is StopReason.FAILED
    await finish(loop)
    assert len(loop.state.iterations) == 3
    assert loop.state.stop_reason is StopReason.PASSED


@pytest.mark.parametrize(("calls", "written"), [(1, 1), (2, 2), (9, 3)])
async def test_no_more_candidates_are_asked_for_than_the_budget_allows(
    calls: int, written: int
) -> None:
    texts = [text("one"), text("two"), text("three"), *[judgement(9)] * 3]
    limits = THREE.model_copy(update={"budget": Budget(calls=calls)})
    loop = refinement(texts, limits=limits)
    await finish(loop)
    assert len(loop.state.iterations) == written
    assert loop.state.usage.calls <= calls


async def test_candidates_that_cannot_be_read_are_not_asked_again_beyond_the_budget() -> None:
    limits = THREE.model_copy(update={"budget": Budget(calls=4)})
    loop = refinement([text("")] * 6, limits=limits)
    await finish(loop)
    assert loop.state.usage.calls == 4
    assert loop.state.stop_reason is StopReason.BUDGET


async def test_the_only_candidate_that_the_budget_allows_ends_the_run_if_it_is_refused() -> None:
    limits = THREE.model_copy(update={"budget": Budget(calls=1)})
    loop = refinement([Reply(text="", finish="refused")], limits=limits)
    await finish(loop)
    assert loop.state.stop_reason is StopReason.FAILED
    assert loop.state.message.endswith("gave no draft: the model refused to answer.")
    assert loop.state.usage.calls == 1


async def test_candidates_share_the_tokens_of_the_budget() -> None:
    model = AllAtOnce(3, version)
    await finish(at_once(model, THREE.model_copy(update={"budget": Budget(completion_tokens=300)})))
    assert [request.max_tokens for request in model.requests] == [100, 100, 100]


async def test_each_candidate_has_its_own_usage() -> None:
    replies = [
        Reply(text=text(f"version {n}"), usage=Usage(calls=1, prompt_tokens=10 + n))
        for n in (0, 1, 2)
    ]
    loop = refinement(replies, checks=[Neighbours(content=2)], limits=THREE)
    await finish(loop)
    assert [i.usage.prompt_tokens for i in loop.state.iterations] == [10, 11, 12]


@pytest.mark.parametrize("checks", [[], [Neighbours(9)]], ids=["all at once", "in steps"])
async def test_a_run_cut_anywhere_goes_on_without_asking_twice(checks: list[Check]) -> None:
    replies = {
        "draft": [text("one"), text("two"), text("three")],
        "judge": [judgement(3), judgement(9), judgement(5)],
    }
    whole = refinement(replies, checks=checks, limits=THREE)
    events = without_deltas(await finish(whole))
    for cut in range(1, len(events)):
        stored = events[:cut]
        model = staged(replies, replies_read(stored))
        loop = refinement(model, checks=checks, limits=THREE, run=replay(stored))
        await finish(loop)
        assert loop.state.usage.calls == whole.state.usage.calls == 6, cut
        assert [i.text for i in loop.state.iterations] == ["one", "two", "three"]
        assert loop.state.text == "two"
        assert loop.state.verdict
        assert loop.state.verdict.outcome is Outcome.PASS


async def test_cancelling_in_the_middle_closes_every_stream() -> None:
    model = AllAtOnce(4, version)  # it waits for a fourth request that never comes
    loop = refinement(model, limits=THREE)
    await cancel(loop, model, 3)
    assert loop.state.stop_reason is StopReason.CANCELLED
