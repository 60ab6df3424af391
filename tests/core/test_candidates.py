"""Several drafts: at once or in turn, in order, and continued from the best."""

from collections.abc import Callable
from typing import Any

import pytest
from all_at_once import AllAtOnce, cancel
from kit import (
    decide,
    ended,
    evaluated,
    finish,
    judgement,
    refinement,
    stages,
    text,
)

from ipyrefine.api import build
from ipyrefine.core.decisions import Override
from ipyrefine.core.events import DraftReady, TextDelta
from ipyrefine.core.model import Budget, Limits, Outcome, StopReason, Task
from ipyrefine.core.table import Result
from ipyrefine.errors import ModelError, Unreachable, UsageError
from ipyrefine.providers.scripted import ScriptedModel

THREE = Limits(candidates=3, critique="never")
IN_TURN = THREE.replace(budget=Budget(calls=99))


def version(number: int) -> str:
    return text(f"version {number}")


class Looks:
    """A check that finds what a function says of a text."""

    name = "looks"

    def __init__(self, find: Callable[[str], dict[str, Any]]) -> None:
        self._find = find

    async def __call__(self, text: str, task: Task) -> Result:
        return Result(name=self.name, **self._find(text))


def wants(wanted: str) -> Looks:
    """A check that is settled by one text alone."""
    return Looks(lambda text: {"passed": text == wanted, "decisive": True})


async def test_candidates_are_asked_for_at_once_and_given_in_their_order():
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


@pytest.mark.parametrize("options", [{"limits": IN_TURN}, {"weak_editor": True}], ids=str)
@pytest.mark.parametrize(("wanted", "drafts"), [(0, 1), (1, 2), (2, 3), (9, 3)])
async def test_in_turn_no_more_are_written_once_one_passes(options, wanted, drafts):
    limits = options.get("limits", THREE).replace(max_revisions=0)
    replies = [version(number) for number in range(3)]
    checks = [wants(f"version {wanted}")]
    loop = refinement(replies, checks=checks, **{**options, "limits": limits})
    events = await finish(loop)
    assert len(loop.state.drafts) == drafts
    assert stages(events) == ["draft", "check"] * drafts
    assert loop.state.text == f"version {wanted % 9}"


async def test_in_turn_the_user_has_a_draft_revised_before_others_are_written():
    replies = [version(0), text("revised")]
    loop = await ended(replies, checks=[wants("version 0")], limits=IN_TURN)
    ruling = Override(outcome=Outcome.NEEDS_IMPROVEMENT, reason="It is too short.")
    assert "revise" in stages(await decide(loop, ruling))
    assert [one.parent for one in loop.state.iterations] == [None, 0]


def test_candidates_need_that_there_is_no_draft():
    with pytest.raises(UsageError, match="there is a draft already"):
        build("", draft="x = 1", model=ScriptedModel([]), limits=Limits(candidates=2))


async def test_when_no_candidate_can_be_had_the_run_fails_and_going_on_asks_anew():
    down: list[Any] = [Unreachable("No server.")] * 3
    loop = evaluated([*down, *map(version, range(3)), *[judgement(9)] * 3], limits=THREE)
    await finish(loop)
    assert isinstance(loop.error, ModelError)
    assert loop.state.stop_reason is StopReason.FAILED
    await finish(loop)
    assert len(loop.state.iterations) == 3
    assert loop.state.stop_reason is StopReason.PASSED


async def test_cancelling_in_the_middle_closes_every_stream():
    model = AllAtOnce(4, version)  # it waits for a fourth request that never comes
    loop = evaluated(model, limits=THREE)
    await cancel(loop, model, 3)
    assert loop.state.stop_reason is StopReason.CANCELLED
