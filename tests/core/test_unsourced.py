"""Names, numbers and dates of prose that stand in no source: the user keeps or strikes them."""

from typing import Any

import pytest
from kit import TASK, critique, decide, finding, finish, refinement, text
from surfaces import SURFACES

from ipyrefine.core.decisions import Continue, Dismiss, Select
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Material, Outcome, Task
from ipyrefine.core.unsourced import find_unsourced
from ipyrefine.render.terminal import record_text

EMAIL = (
    "Write Ms. Ortega that parcel 4417 came late; offer a voucher of 10 euros. Sign as Jan Peters."
)
STATUS = "Status: the move to Postgres is 80% done, 12 tables left, blocked by Priya's review."
SENSOR = "Beschreibe den Sensor: misst von -20 bis 60 Grad, 0,5 Grad genau, Hersteller Fjordtech."


@pytest.mark.parametrize(
    ("source", "words", "expected"),
    [
        (
            EMAIL,
            "Dear Ms. Ortega,\n\nParcel 4417 came late. Take this voucher of 10 euros, valid until "
            "31 March 2025, and call Maria Lopez at 555-0199.\n\nYours,\nJan Peters",
            ("31 March 2025", "Maria Lopez", "555-0199"),
        ),
        (STATUS, "The move from MySQL to Postgres is 80% done: 48 moved, 12 left. Priya reviews.",
         ("MySQL", "48")),
        (SENSOR, "Der Sensor von Fjordtech misst bis 60 Grad, auf 0,3 Grad genau. Das Gehäuse hält "
         "3 Jahre.", ("0,3", "3")),
        ("请通知王先生会议改到6月12日", "王先生您好 会议改到6月12日 电话是8801", ("8801",)),
        ("Meet at Hall 4.", "Come to hall 4; see www.hall.example/map or ask info@hall.example.",
         ("www.hall.example/map", "info@hall.example")),
    ],
)  # fmt: skip
def test_what_stands_in_no_source_is_found(
    source: str, words: str, expected: tuple[str, ...]
) -> None:
    assert find_unsourced(words, [source]) == expected


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("It cost 1,200 dollars on 2024-05-17.", "On 17.05.2024 it cost 1200 dollars, or 1.200."),
        ("Ask Iwan Petrow.", "Ask Petrows brother, or mail Petrow's office."),
        (EMAIL, "Dear Ms. Ortega,\n\n[Your Name], {date}\n\n1. Parcel 4417\n2. The voucher\n"),
        (STATUS, "## What Comes Next\n\nRun `sleep 5` before Priya's review. We are 80% done."),
        (STATUS, "Dear Team\n\nThe move is 80% done."),
        (SENSOR, "Der Sensor misst bis 60 Grad und ist mit 0,5 Grad genau. Sag uns Bescheid."),
    ],
    ids=["forms of a number", "forms of a name", "blanks", "headings", "titles", "German nouns"],
)
def test_what_only_looks_like_it_is_left_alone(source: str, words: str) -> None:
    assert find_unsourced(words, [source]) == ()


def test_a_text_full_of_names_says_what_its_writer_knows_and_nothing_is_asked() -> None:
    words = "Read about " + ", then about ".join(f"{year} again" for year in range(1900, 1920))
    assert find_unsourced(words, ["Write about history."]) == ()


DRAFT = "Dear Ms. Ortega, parcel 4417 came 4 days late. Here is a voucher of 10 euros from Leeds."
SHORTER = "Dear Ms. Ortega, parcel 4417 came late. Here is a voucher of 10 euros from Leeds."


async def written(*replies: Any, task: Task | None = None, **setup: Any) -> Refinement:
    task = task or TASK.replace(text=EMAIL)
    loop = refinement([text(DRAFT), *replies], task, **{"limits": Limits(), **setup})
    await finish(loop)
    return loop


def asked(loop: Refinement) -> dict[str, str]:
    return {one.quote: one.id for one in loop.state.chosen.findings if one.asks}


async def test_facts_without_a_source_are_asked_about_and_keep_no_text_from_passing() -> None:
    loop = await written(critique())
    assert [*asked(loop)] == ["4", "Leeds"]
    assert loop.state.verdict.passed


@pytest.mark.parametrize("render", SURFACES)
async def test_every_surface_shows_them_in_their_sentence(render: Any) -> None:
    page = render((await written(critique())).state)
    assert "In no source" in page
    assert "of 10 euros from" in page


async def test_a_revision_for_something_else_leaves_them_to_the_user() -> None:
    fault = critique(finding("too long", "Dear"))
    loop = await written(fault, text(DRAFT + " Yours"), critique(), limits=Limits(max_revisions=1))
    [_, revision] = loop.state.iterations
    assert not set(revision.acted_on) & set(asked(loop).values())


async def test_a_struck_fact_is_taken_out_and_no_text_that_still_has_it_passes() -> None:
    still = DRAFT.replace("Here is", "Take")
    loop = await written(critique(), text(still), critique(), text(SHORTER), critique())
    await decide(loop, Select(findings=(asked(loop)["4"],)))
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT
    await decide(loop, Continue())
    assert loop.state.text == SHORTER
    assert [*asked(loop)] == ["Leeds"]
    assert loop.state.verdict.passed


async def test_a_kept_fact_is_never_asked_about_again() -> None:
    fault = critique(finding("too long", "Dear"))
    loop = await written(critique(), fault, text(DRAFT.replace("came", "arrived")), critique())
    await decide(loop, Dismiss(findings=(asked(loop)["Leeds"],)))
    assert [*asked(loop)] == ["4"]
    await decide(loop, Select(findings=(asked(loop)["4"],)))
    assert "Leeds" not in asked(loop)
    assert "You kept “Leeds”." in record_text(loop.state)


async def test_the_users_own_words_are_a_source() -> None:
    named = text(DRAFT + " Ask Mara Voss.")
    loop = await written(critique(), named, critique())
    await decide(loop, Continue(guidance="Mention Mara Voss of Leeds."))
    assert [*asked(loop)] == ["4"]


@pytest.mark.parametrize(
    ("task", "count"),
    [
        (TASK.replace(text="Write a poem."), 0),
        (TASK.replace(text=EMAIL, profile="story"), 0),
        (
            TASK.replace(
                text="Write to her.",
                materials=(Material(kind="variable", name="x", phrase="x", text=EMAIL),),
            ),
            2,
        ),
    ],
    ids=["no sources", "a story", "what was sent with the task"],
)
async def test_without_sources_nothing_is_asked(task: Task, count: int) -> None:
    assert len(asked(await written(critique(), task=task))) == count


@pytest.mark.parametrize("piece", ["_", "[", "a@", "Word Name ", "# a\n", "it was Abcd.efgh "])
def test_an_endless_text_is_read_in_a_moment(piece: str) -> None:
    assert len(find_unsourced(piece * 20_000, ["Some words."])) <= 1
