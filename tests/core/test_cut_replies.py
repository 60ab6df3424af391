"""A writer's reply that is cut off after its text had ended gives that text, and says so."""

from collections.abc import AsyncIterator

import pytest
from loop_scripts import TASK, finish, judged, refinement, text, ticking

from ipyrefine.core.engine import Refinement
from ipyrefine.core.ports import Delta, Reply, Request
from ipyrefine.core.records import Finish
from ipyrefine.core.replies import written
from ipyrefine.core.runs import Limits, StopReason
from ipyrefine.core.usage import Usage
from ipyrefine.errors import ReplyError

CODE = TASK.model_copy(update={"form": "code"})
WHOLE = "f1: mend\n```python\nx = 1\n```\nThis code sets x to"


class Cut:
    """A model whose replies end as they are told to."""

    name = "cut"

    def __init__(self, *replies: tuple[str, Finish]) -> None:
        self._replies = iter(replies)

    async def stream(self, request: Request) -> AsyncIterator[Delta | Reply]:
        said, finish = next(self._replies)
        yield Delta(text=said)
        yield Reply(text=said, finish=finish, usage=Usage(calls=1, prompt_tokens=1))


async def test_a_closed_block_before_the_cut_is_the_text() -> None:
    model = Cut((WHOLE, "length"), (judged(9), "stop"))
    loop = Refinement(
        CODE, model=model, clock=ticking(), limits=Limits(max_iterations=0, min_findings=0)
    )
    await finish(loop)
    assert loop.run.text == "x = 1"
    assert loop.run.stop_reason is StopReason.PASSED
    assert any("after the text had ended" in w for w in loop.run.warnings)


async def test_a_revision_is_taken_likewise_and_has_no_flaw() -> None:
    model = Cut(("```python\nx = 0\n```", "stop"), (judged(4), "stop"),
                ('{"findings": []}', "stop"), ('{"findings": []}', "stop"),
                (WHOLE, "length"), (judged(9), "stop"))  # fmt: skip
    loop = Refinement(CODE, model=model, clock=ticking(), limits=Limits(max_iterations=1))
    await finish(loop)
    assert (loop.run.iterations[1].text, loop.run.iterations[1].flaw) == ("x = 1", "")


@pytest.mark.parametrize(
    ("reply", "form"),
    [
        ("```python\nx = 1\ny = ", "code"),
        ("```python\nx = 1\n```\nand then\n```python\ny = ", "code"),
        ("x = 1", "code"),
        ("<text>\nHi", "prose"),
        ("Hi", "prose"),
    ],
)
def test_a_text_whose_end_is_not_marked_is_not_whole(reply: str, form: str) -> None:
    with pytest.raises(ReplyError, match="breaks off"):
        written(reply, form, cut=True)  # type: ignore[arg-type]


@pytest.mark.parametrize("ended", ["incomplete", "refused", "filtered"])
async def test_a_reply_that_ends_in_another_way_gives_no_text(ended: Finish) -> None:
    loop = Refinement(CODE, model=Cut((WHOLE, ended)), clock=ticking())
    await finish(loop)
    assert (loop.run.text, loop.run.stop_reason) == ("", StopReason.FAILED)


async def test_a_cut_text_is_dropped_as_before_and_never_asked_for_again() -> None:
    model = Cut(("```python\nx = 0\n```", "stop"), (judged(4), "stop"),
                ('{"findings": []}', "stop"), ('{"findings": []}', "stop"),
                ("```python\nx = ", "length"))  # fmt: skip
    loop = Refinement(CODE, model=model, clock=ticking(), limits=Limits(max_iterations=1))
    await finish(loop)
    assert "cut off" in loop.run.iterations[1].flaw
    assert loop.run.text == "x = 0"


async def test_a_whole_reply_is_read_as_ever() -> None:
    loop = refinement([text("Hi"), judged(9)], limits=Limits(max_iterations=0, min_findings=0))
    await finish(loop)
    assert not any("after the text" in w for w in loop.run.warnings)
