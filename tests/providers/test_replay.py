"""A model that replays the replies of a real one, and the file they are in."""

import asyncio
import json
from pathlib import Path

import pytest
from kit import EVALUATED, TONE, refinement, text
from kit import judgement as judged
from openai_server import ScriptedServer, items_of, reply_of

from ipyrefine import choose_model
from ipyrefine.api import finish
from ipyrefine.core.model import Limits, Task
from ipyrefine.core.ports import Message, Model, Notice, Request
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.run import Run
from ipyrefine.core.stored import VERSION
from ipyrefine.errors import NoModel, UsageError
from ipyrefine.providers.replay import BY_HAND, RecordedModel, read_recording, request_key
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.say import usage_parts

SCRIPT = [text("Hi"), judged(4), text("Hello"), judged(10)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "greeting.json"


async def run_on(
    model: Model, task: str = "Write a greeting.", prompts: Prompts = EVALUATED
) -> Run:
    asked = Task(text=task, criteria=(TONE,))
    limits = Limits(max_revisions=1, critique="never")
    return await finish(refinement(model, asked, limits=limits, prompts=prompts, clock=lambda: 0.0))


async def record(path: Path, *replies: str, task: str = "Write a greeting.") -> Run:
    model = ScriptedModel(replies or SCRIPT, name="scribe")
    return await run_on(RecordedModel(path, live=lambda: model, record=True), task)


def same(one: Run, other: Run) -> bool:
    """Return whether two runs are equal but for their models."""
    different = {"warnings": True, "setup": {"model", "judge", "price"}}
    return one.model_dump(exclude=different) == other.model_dump(exclude=different)


async def test_a_recorded_run_replays_exactly_and_names_its_model(path):
    recorded = await record(path)
    replayed = await run_on(RecordedModel(path))
    assert same(recorded, replayed)
    assert replayed.text == "Hello"
    assert replayed.warnings == recorded.warnings  # a replay is nothing to warn of
    assert replayed.setup.model == f"recorded:{path.as_posix()}"


async def test_a_request_recorded_twice_gets_both_replies_in_turn(path):
    ask = Request(messages=(Message(role="user", content="Roll a die."),), temperature=1.0)
    live = ScriptedModel(["three", "five"])
    recorder = RecordedModel(path, live=lambda: live, record=True)
    for _ in range(2):
        await items_of(recorder, ask)
    model = RecordedModel(path)
    rolled = [(await reply_of(model, ask)).text for _ in range(3)]
    assert rolled == ["three", "five", "three"]


async def test_the_pace_is_the_recorded_one_or_none_at_all(path):
    live = ScriptedModel(["a" * 32], chunk=16, delay=0.51)  # a piece of a recording takes 0.5 s
    ask = Request(messages=(Message(role="user", content="Go."),))
    await items_of(RecordedModel(path, live=lambda: live, record=True), ask)
    after = [piece.after for piece in read_recording(path).calls[0].pieces]
    assert len(after) == 2
    assert min(after) >= 0.5

    async def slept(speed: float) -> list[float]:
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        model = RecordedModel(path, speed=speed, sleep=sleep)
        assert (await reply_of(model, ask)).text == "a" * 32
        return waits

    assert await slept(1) == after
    assert await slept(2) == [seconds / 2 for seconds in after]
    assert await slept(float("inf")) == [0, 0]


async def test_without_a_live_model_a_missing_call_says_what_to_do(path, monkeypatch):
    await record(path)
    model = choose_model(f"recorded:{path}")
    with pytest.raises(NoModel, match="This draft is not in the recording") as error:
        await run_on(model, "Write a farewell.")
    assert "ipyrefine pull" in str(error.value)
    monkeypatch.setenv(
        "IPYREFINE_MODEL", f"recorded:{path}"
    )  # a recording is not a live model either
    with pytest.raises(NoModel, match="This draft is not in the recording"):
        await run_on(choose_model(), "Write a farewell.")


async def test_our_wording_may_change_but_the_users_own_may_not(path, monkeypatch):
    recorded = await record(path)
    monkeypatch.setattr("ipyrefine.core.prompts.fill", _reworded)
    assert same(recorded, await run_on(RecordedModel(path)))
    with pytest.raises(NoModel, match="This draft"):
        await run_on(RecordedModel(path), prompts=Prompts(draft="Greet."))


async def by_hand(path: Path, *replies: str, task: str = "Write a greeting.") -> None:
    model = ScriptedModel(replies or SCRIPT, name=BY_HAND)
    await run_on(RecordedModel(path, live=lambda: model, record=True), task)


@pytest.mark.parametrize(
    ("task", "prompts", "borrowed"),
    [
        ("Write a greeting.", EVALUATED, 0),
        ("Write a warm greeting.", EVALUATED, 4),
        ("Greet", EVALUATED.replace(draft="Greet."), 4),
    ],
    ids=["as recorded", "another task", "another prompt"],
)
async def test_replies_by_hand_answer_what_they_were_not_written_for(path, task, prompts, borrowed):
    await by_hand(path)
    run = await run_on(RecordedModel(path), task, prompts)
    assert run.text == "Hello"
    assert run.usage.for_another == borrowed
    assert [run.usage_of(number).for_another for number in (0, 1)] == [borrowed / 2] * 2
    assert ("written for another" in " ".join(usage_parts(run.usage))) is bool(borrowed)


async def test_an_exact_reply_comes_first_and_those_left_keep_their_order(path):
    await by_hand(path, text("Hi"), judged(4), text("Hello"), judged(4))
    model = RecordedModel(path)
    limits = Limits(max_revisions=2, critique="never")
    asked = Task(text="Write a greeting.", criteria=(TONE,))
    with pytest.raises(NoModel, match="This revise is not in the recording"):
        await finish(refinement(model, asked, limits=limits, prompts=EVALUATED))
    other = RecordedModel(path)
    first, second = (
        Request(messages=(), inputs=("Write a greeting.", words), purpose="judge")
        for words in ("one", "two")
    )
    replies = [await reply_of(other, first), await reply_of(other, second)]
    assert [one.usage.for_another for one in replies] == [1, 1]
    with pytest.raises(NoModel, match="This judge is not in the recording"):
        await reply_of(other, first)


async def test_what_a_model_said_never_answers_another_request(path):
    await record(path)
    await by_hand(path, text("Bye"), judged(10), task="Write a farewell.")
    assert {call.task for call in read_recording(path).calls} == {"", "Write a farewell."}
    run = await run_on(RecordedModel(path), "Write a warm greeting.")
    assert run.text == "Bye"


def _reworded(prompt: str, **places: object) -> str:
    return "Reworded. " + " ".join(map(str, places.values()))


def test_fences_addresses_times_and_the_order_of_lines_are_ignored():
    def key(content: str, **options: object) -> str:
        return request_key(Request(messages=(), inputs=(content,), **options))

    one = "<material-0a1b2c3d>\n- a: got <Stack at 0x7f01>\n- b: passed in 0.12 s\n"
    two = "<material-99887766>\n- b: passed in 3.4s\n- a: got <Stack at 0x9900>\n"
    assert key(one) == key(two)
    assert key(one) != key(one.replace("Stack", "Queue"))
    assert key(one) != key(one, temperature=0.4)
    assert key(one) != key(one, seed=1)
    assert key(one) != key(one, purpose="judge")


async def test_without_the_file_every_request_is_one_for_the_live_model(path):
    live = ScriptedModel(SCRIPT, name="live")
    run = await run_on(RecordedModel(path, live=lambda: live))
    assert run.text == "Hello"
    assert f"There is no recording {path}. live answers instead." in run.warnings
    with pytest.raises(NoModel, match=r"There is no recording .*ipyrefine pull"):
        await run_on(choose_model(f"recorded:{path}"))


def test_what_is_no_recording_is_refused_before_any_call(path):
    for content in (
        *("", "[]", '{"format": 5}', '{"format": "1"}', '{"calls": [{}]}', '{"calls": 3}'),
        "[" * 100_000,
    ):
        path.write_text(content)
        with pytest.raises(UsageError, match="recording"):
            choose_model(f"recorded:{path}")
    path.unlink()
    asyncio.run(record(path))
    for speed in ("fast", "0", "-1", "nan"):
        with pytest.raises(UsageError, match="speed"):
            choose_model(f"recorded:{path}@{speed}")
    content = json.loads(path.read_text("utf-8"))
    for version in (1, VERSION + 1):
        path.write_text(json.dumps(content | {"format": version}))
        with pytest.raises(UsageError, match="Make one with IPYREFINE_RECORD"):
            choose_model(f"recorded:{path}")


async def test_the_environment_makes_a_recording_of_the_configured_model(path, monkeypatch):
    monkeypatch.setenv("IPYREFINE_RECORD", "1")
    monkeypatch.setenv("IPYREFINE_MODEL", "served")
    ask = Request(messages=(Message(role="user", content="Go."),))
    with ScriptedServer() as server:
        server.then("Gone.")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        items = await items_of(choose_model(f"recorded:{path}"), ask)
    assert not any(isinstance(item, Notice) for item in items)
    monkeypatch.delenv("IPYREFINE_RECORD")
    assert await reply_of(choose_model(f"recorded:{path}"), ask) == items[-1]
