"""What a user wants changed in a text of their own is done at once, and read afterwards."""

from typing import Any

import pytest
from kit import CODE, READY, code, critique, finding, refinement

from ipyrefine.core.events import StageStarted
from ipyrefine.core.model import Limits, Stage, StopReason
from ipyrefine.core.run import Run

DRAFT = "def has(xs, x):\n    return x in list(xs)"
BETTER = code("def has(xs, x):\n    return x in set(xs)")


async def stages_of(replies: Any, **options: Any) -> tuple[list[Stage], Run]:
    seen: list[Stage] = []
    loop = refinement(
        replies, CODE.replace(text="Make it O(1)."), draft=DRAFT, wish="Make it O(1).", **options
    )

    def note(event: Any, run: Run) -> None:
        if isinstance(event, StageStarted):
            seen.append(event.stage)

    return seen, await loop.run(note)


async def test_the_draft_is_revised_unread_and_the_revision_is_read() -> None:
    stages, run = await stages_of({"revise": [BETTER], "critique": [READY]})
    assert stages == [Stage.REVISE, Stage.CRITIQUE]
    assert run.usage.calls == 2
    assert run.stop_reason is StopReason.PASSED
    assert run.text.endswith("set(xs)")


async def test_a_critic_who_misses_it_has_the_text_revised_again() -> None:
    again = critique(finding("It still walks through a list."))
    stages, run = await stages_of(
        {"revise": [code(DRAFT + "  #"), BETTER], "critique": [again, READY]}
    )
    assert stages == [Stage.REVISE, Stage.CRITIQUE, Stage.REVISE, Stage.CRITIQUE]
    assert run.text.endswith("set(xs)")


async def test_a_critique_that_is_always_wanted_comes_first() -> None:
    stages, _ = await stages_of(
        {"critique": [critique(finding("Slow.")), READY], "revise": [BETTER]},
        limits=Limits(critique="always"),
    )
    assert stages == [Stage.CRITIQUE, Stage.REVISE, Stage.CRITIQUE]


@pytest.mark.parametrize("weak", [True, False])
async def test_a_writer_that_is_too_weak_to_criticise_changes_it_all_the_same(weak: bool) -> None:
    stages, run = await stages_of({"revise": [BETTER]}, weak_critic=True, weak_editor=weak)
    assert stages == [Stage.REVISE]
    assert run.text.endswith("set(xs)")
    assert run.stop_reason is StopReason.UNJUDGED
