"""The checks of a text's form: length and json."""

import time

import pytest

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError

TASK = Task(text="t")


async def checked(name: str, text: str) -> Result:
    (check,) = resolve([name], {})
    return await check(text, TASK)


@pytest.mark.parametrize(
    ("bounds", "text", "passed", "message"),
    [
        ("<=3 words", "a b c", True, "It has 3 words."),
        ("<=3 words", "a b c d", False, "4 words: 1 too many, as at most 3 words are asked for."),
        ("< 3 words", "a b c", False, "1 too many"),
        (">2 words", "a b", False, "1 too few, as at least 3 words"),
        ("2-4 chars", "abcde", False, "5 characters: 1 too many, as 2 to 4 characters"),
        ("2 to 4 characters", "abc", True, "3 characters"),
        ("1,000 chars", "a" * 1000, True, "1,000 characters"),
        (">=2 lines", "a", False, "It has 1 line: 1 too few"),
        ("3 lines", "a\nb\n\nc\n", True, "3 lines"),  # as of a poem's, and of a letter's
        ("2 paragraphs", "a\nb\n\nc\n", True, "2 paragraphs"),
        ("3 words", "* Don't – well-known\n*** 3", True, "3 words"),  # noqa: RUF001
        ("2 bullets", "So:\n* a\n  - b", True, "2 bullets"),
        ("=1 word", "", False, "0 words: 1 too few, as exactly 1 word are asked for."),
        # Words that are joined without a space count apart.
        ("3 words", "either/or/both", True, "3 words"),
        ("3 words", "one\u200btwo\u2060three", True, "3 words"),
        ("4 words", "The end.Then more", True, "4 words"),
        ("4 words", "60 km/h on example.com", True, "4 words"),
        ("2 words", "see https://example.com/some/page", True, "2 words"),
        ("3 words", "one—two—three", True, "3 words"),
        ("3 words", "1,204 items x,y", True, "3 words"),
    ],
)
async def test_length(bounds, text, passed, message):
    evidence = await checked(f"length:{bounds}", text)
    assert evidence.passed is passed
    assert message in evidence.shows


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", 0),
        ("It is so. it was so. It", 3),
        ("Mr. J. Wu, e.g. me, paid 3.5 euros. Fine...", 2),
        ("She said no. He is 30. So am I. Salt, oil, etc. is on p. x. Eat, drink, etc. Go.", 6),
        ('"Why?" he asked. "Go!" Then he left.', 3),
        ("好。 是。", 2),
        ("The end.Then more.And more", 3),
        ("一つ目です。二つ目です。「三つ目。」", 3),
        ("He uses example.com and 3.14.", 1),
    ],
)
async def test_sentences(text, sentences):
    assert (await checked(f"length:{sentences} sentences", text)).passed


@pytest.mark.parametrize("unit", ["sentences", "bullets"])
@pytest.mark.parametrize("text", ["." * 500_000, "* \n" * 200_000])
async def test_a_hostile_text_is_measured_soon(unit, text):
    began = time.process_time()
    await checked(f"length:>1 {unit}", text)
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("name", "text", "passed", "message"),
    [
        ("json", '```json\n{"a": 1}\n```', True, "It is JSON."),
        ("json", "{a}", False, "It is not JSON: "),
    ],
)
async def test_json(name, text, passed, message):
    evidence = await checked(name, text)
    assert (evidence.passed, evidence.score) == (passed, float(passed))
    assert message in evidence.shows


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("length:short", "needs bounds like"),
        ("length:5-2 words", "allows no length at all"),
        ("length", "needs more, as in 'length:"),
        ("test:mine", "Did you mean tests:"),
        ("toen", "Did you mean tone?"),
        ("run:fast", "There is no check 'run:fast'"),
    ],
)
def test_a_check_that_cannot_be_made_is_refused_with_a_sentence(name, message):
    def tone(text: str) -> bool:
        return True

    with pytest.raises(UsageError) as raised:
        resolve([name], {"tone": tone})
    assert message in str(raised.value)
