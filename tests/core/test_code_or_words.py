"""The writer says whether a task wants code or words, and the run becomes one for that."""

from typing import Any

import pytest
from kit import CODE, TASK, Finds, code, finish, in_order, refinement, text

from ipyrefine import refine
from ipyrefine.core.decisions import Criteria
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import TextDelta
from ipyrefine.core.forms import Asked, Splitter, parse_form, read_either
from ipyrefine.core.model import Criterion, Limits, Words
from ipyrefine.core.table import Result

# Replies


@pytest.mark.parametrize(
    ("tag", "asked", "language"),
    [
        ("python", "python", ""), ("python3", "python", ""), ("", "python", ""),
        ("sql", "python", "sql"), ("C++", "python", "cpp"), ("json", "python", "json"),
        ("java", "java", ""), ("python", "java", "python"),
    ],
)  # fmt: skip
def test_the_fence_of_a_reply_says_the_language_of_its_code(tag, asked, language):
    asked_for = Asked(CODE.replace(language=asked), chooses=True)
    written = read_either(f"```{tag}\nx = 1\n```", asked_for)
    assert (written.form, written.language) == ("code", language)


@pytest.mark.parametrize(
    ("reply", "form"),
    [("words", "prose"), (" Words.", "prose"), ("`words`", "prose"), ("code", "code"), ("", "code"),
     ("hm", "code"), ("In words: no", "code")],
)  # fmt: skip
def test_whatever_is_not_the_word_words_means_code(reply, form):
    assert parse_form(reply) == form


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("\n<text>\nHi,\n```python\nx\n```\n</text>\n", "\nHi,\n```python\nx\n```\n"),
        ("```python\nx = 1\n```\n", "x = 1\n"),
    ],
)
def test_words_stream_as_the_text_from_their_first_line_on(reply, shown, size):
    splitter = Splitter("code")
    chunks = [reply[i : i + size] for i in range(0, len(reply), size)]
    parts = [part for chunk in chunks for part in splitter.feed(chunk)]
    assert "".join(words for kind, words in parts if kind == "text") == shown.lstrip("\n")


# Runs

CHECKS = [Finds(Result(name=name, passed=True)) for name in ("own", "short", "runs")]
WORDS = Words(tasks=(TASK,), checks=("short",), demands=("short",))


OPEN = CODE.replace(language="")
NEVER = Limits(critique="never")


def loop_of(*replies: str, **options: Any) -> Refinement:
    """A run on code that may become one of words; nobody reads it."""
    options = {"words": Words(tasks=(TASK,)), "limits": NEVER, **options}
    return refinement([*replies], OPEN, **options)


@pytest.mark.parametrize(
    ("reply", "form", "language", "checks", "streamed"),
    [
        (text("It is a copy."), "prose", TASK.language, ("own", "short"), "It is a copy.\n"),
        (code("x = 1"), "code", "python", ("own", "runs"), "x = 1\n"),
        ("```sql\nSELECT 1\n```", "code", "sql", ("own",), "SELECT 1\n"),
    ],
)
async def test_the_run_has_the_form_language_and_checks_of_what_its_writer_answers(
    reply, form, language, checks, streamed
):
    loop = loop_of(reply, words=WORDS, own=("own",), checks=CHECKS)
    deltas = [one for one in await finish(loop) if isinstance(one, TextDelta)]
    run = loop.state
    assert (run.task.form, run.task.language, run.setup.checks) == (form, language, checks)
    assert run.setup.words is None
    assert {one.name for one in run.iterations[0].evidence} == {*checks}
    assert "".join(one.text for one in deltas if one.kind == "text") == streamed


async def test_criteria_changed_before_the_draft_hold_for_words_too():
    wit = (Criterion(name="wit", definition="It is funny."),)
    loop = loop_of(text("Ha."))
    loop.decide(Criteria(criteria=wit))
    await finish(loop)
    assert loop.state.task.criteria == wit


async def test_a_question_in_words_is_answered_with_prose_and_its_own_demands():
    task = "Why does `df[df.x > 1]['y'] = 0` not change df? Answer in at most 20 words."
    run = await refine(
        task, model=in_order([text("It is a copy.")]), journal=False, critique="never"
    )
    assert (run.task.form, run.task.profile) == ("prose", "prose")
    assert run.setup.checks == ("length:<=20 words",)
    assert run.text == "It is a copy."


@pytest.mark.parametrize(
    ("opening", "kind"),
    [
        ("<text>", ""), ('<text kind="email">', "email"), ("<text kind=email>", "email"),
        ("<text email>", "email"), ('<text kind="answer|email|rfc">', "answer"),
    ],
)  # fmt: skip
def test_words_may_name_their_kind(opening, kind):
    written = read_either(f"{opening}\nHi Ann,\n</text>", Asked(CODE, chooses=True))
    assert (written.text, written.form, written.kind) == ("Hi Ann,", "prose", kind)
    pieces = [*Splitter("code").feed(f"{opening}\nHi Ann,\n</text>\n")]
    assert [text for name, text in pieces if name == "text"] == ["Hi Ann,\n"]


async def test_a_run_is_of_the_kind_that_its_writer_names():
    email = TASK.replace(profile="email")
    loop = loop_of('<text kind="email">\nHi.\n</text>', words=Words(tasks=(TASK, email)))
    await finish(loop)
    assert (loop.state.task.profile, loop.state.text) == ("email", "Hi.")
