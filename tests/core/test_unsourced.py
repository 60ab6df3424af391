"""Facts of prose that a critic finds in no source: looked up, then kept or struck by the user."""

import json
import time
from typing import Any

import pytest
from kit import TASK, decide, ended, prompts, text, told

from ipyrefine.core.decisions import Continue, Dismiss
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Material, Outcome, Stage, Task
from ipyrefine.core.unsourced import find_unsourced
from ipyrefine.render.terminal import record_text

EMAIL = (
    "Write Ms. Ortega that parcel 4417 came late; offer a voucher of 10 euros. Sign as Jan Peters."
)
DRAFT = "Dear Ms. Ortega, parcel 4417 came 4 days late. Here is a voucher of 10 euros from Leeds."
FACTS = ["4", "Leeds"]
SHORTER = "Dear Ms. Ortega, parcel 4417 came late. Here is a voucher of 10 euros from Leeds."


async def written(*replies: Any, task: Task | None = None, **setup: Any) -> Refinement:
    task = task or TASK.replace(text=EMAIL)
    loop = await ended([text(DRAFT), *replies], task, **{"limits": Limits(), **setup})
    return loop


def asked(loop: Refinement) -> dict[str, str]:
    return {one.point.place: one.id for one in told(loop.state) if one.asks}


def read(*facts: Any, **fields: Any) -> str:
    return json.dumps({"findings": [], "ready": True, "unsourced": [*facts], **fields})


async def test_facts_without_a_source_are_asked_about_and_keep_no_text_from_passing():
    loop = await written(read(*FACTS))
    assert [*asked(loop)] == FACTS
    assert loop.state.verdict.passed
    assert '"unsourced"' in prompts(loop, Stage.CRITIQUE)[0]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (["4417", "10 euros", "Ms. Ortega", "ms. ortega", "Jan Peters"], []),
        (["Bristol", "5 days", ""], []),
        (["came  4\ndays late", "“Leeds.”"], ["came 4 days late", "Leeds"]),
        (["Leed", "Leeds", "Leeds"], ["Leeds"]),
        ([str(n) for n in range(20)], ["4"]),
    ],
    ids=["given", "not in the text", "its spaces and marks", "in part, twice", "numbers"],
)
async def test_what_a_critic_names_is_looked_up(facts, expected):
    assert [*asked(await written(read(*facts)))] == expected


@pytest.mark.parametrize(
    ("source", "words", "facts", "expected"),
    [
        ("It cost 1,200 dollars.", "It cost 1,200 dollars, 200 each.", ["1,200", "200"], ["200"]),
        ("请通知王先生会议改到6月12日", "王先生您好 会议改到6月12日 电话是8801",
         ["王先生", "8801", "6月12日"], ["8801"]),
        ("Ask in Hall 4.", "Come to hall 4; ask info@hall.example or Lee.",
         ["hall 4", "info@hall.example", "Lee"], ["info@hall.example", "Lee"]),
        ("He sleeps; 10.5 kg.", "Lee: 10 kg, 5 kg.", ["Lee", "10", "5"], ["Lee", "10", "5"]),
    ],
)  # fmt: skip
async def test_words_within_a_longer_word_or_number_are_no_source(source, words, facts, expected):
    loop = await ended([text(words), read(*facts)], TASK.replace(text=source), limits=Limits())
    assert [*asked(loop)] == expected


async def test_a_text_full_of_facts_says_what_its_writer_knows_and_nothing_is_asked():
    years = [str(year) for year in range(1900, 1920)]
    loop = await ended([text(f"Read about {', '.join(years)}."), read(*years)], TASK)
    assert not asked(loop)


async def test_a_struck_fact_is_taken_out_and_no_text_that_still_has_it_passes():
    still = DRAFT.replace("Here is", "Take")
    loop = await written(read(*FACTS), text(still), read(), text(SHORTER), read())
    await decide(loop, Continue(points=(asked(loop)["4"],)))
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT
    await decide(loop, Continue())
    assert loop.state.text == SHORTER
    assert [*asked(loop)] == ["Leeds"]
    assert loop.state.verdict.passed


async def test_a_kept_fact_is_never_asked_about_again():
    loop = await written(read(*FACTS), text(DRAFT.replace("came", "arrived")), read(*FACTS))
    await decide(loop, Dismiss(points=(asked(loop)["Leeds"],)))
    assert [*asked(loop)] == ["4"]
    await decide(loop, Continue(points=(asked(loop)["4"],)))
    assert "Leeds" not in asked(loop)
    assert "You kept “Leeds”." in record_text(loop.state)


async def test_the_users_own_words_are_a_source():
    named = text(DRAFT + " Ask Mara Voss.")
    loop = await written(read(*FACTS), named, read("Mara Voss", *FACTS))
    await decide(loop, Continue(guidance="Mention Mara Voss of Leeds."))
    assert [*asked(loop)] == ["4"]


NOTE = Material(kind="variable", name="x", phrase="x", text=EMAIL)


@pytest.mark.parametrize(
    ("task", "count"),
    [
        ({"text": "Write a poem.", "profile": "story"}, 0),
        ({"text": "Who was Ada?", "profile": "answer"}, 0),
        ({"text": "Write a note.", "profile": "email"}, 2),
        ({"text": "Write to her.", "materials": (NOTE,)}, 2),
    ],
    ids=["a story", "an answer", "a note", "what was sent with the task"],
)
async def test_without_sources_nothing_is_asked(task, count):
    loop = await written(read(*FACTS), task=TASK.replace(**task))
    assert len(asked(loop)) == count
    assert ('"unsourced"' in prompts(loop, Stage.CRITIQUE)[0]) is bool(count)


@pytest.mark.parametrize("piece", ["Word 4 ", "4.", "a\n", "4 "])
async def test_an_endless_text_is_read_in_a_moment(piece):
    run = (await written(read())).state
    facts = [piece * 8_000, piece * 10, "5", "4" * 1_000]
    began = time.process_time()
    assert len(find_unsourced(run, piece * 15_000, facts)) <= 2
    assert time.process_time() - began < 10
