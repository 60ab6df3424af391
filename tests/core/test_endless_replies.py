# ruff: noqa: RUF001
"""What a model writes may be endless or the same sign again and again: it is read all the same."""

import difflib
import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from kit import READY, ended, told

from ipyrefine.core.alignment import changed_lines, compare, unified_diff
from ipyrefine.core.critiques import parse_critique
from ipyrefine.core.edits import Edit, apply, losses, read_edits
from ipyrefine.core.evaluations import parse_evaluation
from ipyrefine.core.fields import json_objects
from ipyrefine.core.model import Limits, Task
from ipyrefine.core.points import read_notes
from ipyrefine.core.prompts import fence
from ipyrefine.core.replies import parse_text
from ipyrefine.errors import ReplyError

SIZE = 20_000
MOMENT_S = 1.0  # of processor time; in more than linear time, a reply takes many times as long
SIGNS = (
    *(" ", "\n", "{", "[{", "{,", "`", "```\n", "<", "<<<<<<<\n=======\n"),
    *("<<<<<<<\na\n=======\nb\n", "<find>", "<find>a</find>\n<replace>", "<tests>"),
    *("<response>", "<text>\n"),
    *("[", "| ", "- a\n", "  - a\n", "~~~\n", "```\nx\n```\n", "{'a': ", '{"a": "b" c" ', "问题："),
    *("*", "# ", "f1:", "f1:\n", '"', '{"a":', '{"a":1},', "a\n\n", "not ", "1/"),
)
READERS: dict[str, Callable[[str], Any]] = {
    "prose": lambda reply: parse_text(reply, "prose"),
    "code": lambda reply: parse_text(reply, "code", own=True, task=Task(text="a b")),
    "edits": read_edits,
    "critique": lambda reply: parse_critique(reply, "a b"),
    "notes": lambda reply: read_notes(reply, ["f1"]),
    "evaluation": lambda reply: parse_evaluation(reply),
    "fence": lambda reply: fence(reply, lambda _: "abc"),
    "sections": lambda reply: losses(reply, f"x{reply}"),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reply_of_one_sign_again_and_again_is_read_or_refused_in_a_moment(reader):
    heads = ("", "<find>a") if reader == "edits" else ("",)
    for reply in (head + (sign * SIZE)[:SIZE] for sign in SIGNS for head in heads):
        began = time.process_time()
        with suppress(ReplyError):
            READERS[reader](reply)
        assert time.process_time() - began < MOMENT_S, reply[:40]


@pytest.mark.parametrize(
    ("reply", "objects"),
    [
        ('{"a": 1}', [{"a": 1}]),
        ('Sets {x} and {y: 1}, then {"a": {"b": [1, 2,],},}.', [{"a": {"b": [1, 2]}}]),
        ('{"a": {"b": 1} and {"c": 2}', [{"b": 1}, {"c": 2}]),
        ('{"a": "one\ntwo, }"}', [{"a": "one\ntwo, }"}]),
        ("{ }", [{}]),
        ("{" * SIZE + '{"a": 1}', [{"a": 1}]),
        ("{" + " " * SIZE + '"a": 1}', [{"a": 1}]),
    ],
)
def test_json_is_found_in_whatever_stands_around_it(reply, objects):
    assert [value for _, value in json_objects(reply)] == objects


async def test_of_a_critique_of_over_100_kb_the_end_is_read_and_the_user_is_told():
    loop = await ended(["So long. " * 20_000 + READY], draft="Dear all, hello.")
    assert loop.state.verdict.passed
    assert f"{180_000 + len(READY):,} characters" in loop.state.warnings[0]
    short = await ended(["So long. " * 10_000 + READY], draft="Dear all, hello.")
    assert short.state.warnings == ()


async def test_of_a_critique_60_findings_are_read_and_the_user_is_told():
    named = [{"problem": f"Word{n} and thing{n} are unclear."} for n in range(800)]
    said = json.dumps({"findings": named, "ready": False})
    loop = await ended([said] * 3, draft="Dear all, hello.", limits=Limits(max_revisions=0))
    kept = [one.words for one in told(loop.state, 0)]
    assert kept == [one["problem"] for one in named[:60]]
    assert any("60 findings" in one for one in loop.state.warnings)


# Edits of long texts

LETTER = "\n\n".join(
    f"Paragraph {n} tells of the {n}th visit. It was {n % 7} degrees, and nobody knew why "
    f"the door of house {n * 37 % 1_009} stood open." + " They left." * (n % 3)
    for n in range(2_000)
)
CODE = "\n".join(
    f"def step_{n}(value, scale={n}):\n    if value > {n}:\n        return value * scale\n"
    f"    total_{n} = [one + value for one in range({n})]\n    return total_{n}\n\n"
    for n in range(1_500)
)
PARAGRAPH = LETTER.split("\n\n")[1_234]
MISQUOTES = {
    "a word is another": (LETTER, PARAGRAPH.replace("nobody", "somebody"), PARAGRAPH),
    "letters are swapped": (LETTER, PARAGRAPH.replace("degrees", "degeres"), PARAGRAPH),
    "a sentence is missing": (LETTER, PARAGRAPH.replace("It was 2 degrees, and ", ""), PARAGRAPH),
    "a line of code is missing": (
        CODE,
        "def step_777(value, scale=777):\n        return value * scale\n    total_777 = []",
        "def step_777(value, scale=777):\n    if value > 777:",
    ),
    "another indentation, and a typo": (
        CODE,
        "total_777 = [one + valeu for one in range(777)]",
        "    total_777 = [one + value for one in range(777)]",
    ),
    "a line among thousands that are alike": (
        "x = 1\n" * 30_000 + "y = 20\n" + "x = 1\n" * 30_000,
        "y = 21",
        "y = 20",
    ),
    "in one line, which is quoted in part": (
        LETTER.replace("\n\n", " "),
        "the door of house 271 stood wide open",
        "house 271 stood open",
    ),
    "other characters": (
        "一二三四五六七\n" * 900 + "春眠暁を覚えず\n" * 2,
        "春眠暁を覚えて",
        "春眠暁を覚えず",
    ),
}


@pytest.mark.parametrize("case", MISQUOTES)
def test_where_an_edit_misses_the_lines_most_like_it_are_quoted(case):
    text, find, expected = MISQUOTES[case]
    changed, (miss,) = apply(text, [Edit(find, "")])
    assert changed == text
    assert expected in miss.nearest
    assert len(miss.nearest) <= 2_500


def test_a_misquoted_passage_of_any_length_is_answered_with_its_first_lines():
    find = LETTER[20_000:160_000].replace("Paragraph 300", "Passage 300")
    _, (miss,) = apply(LETTER, [Edit(find, "")])
    assert LETTER[20_050:20_200].strip() in miss.nearest


def test_nothing_is_quoted_for_a_piece_that_is_like_no_line():
    _, (miss,) = apply("one two\n" * 9, [Edit("四五六七", "")])
    assert (miss.times, miss.nearest) == (0, "")


def test_hundreds_of_edits_are_made_in_a_long_text_each_in_its_place():
    named = LETTER.split("\n\n")[::10]
    loose = [Edit("  ".join(one.split()), f"New {n}.") for n, one in enumerate(named)]
    changed, misses = apply(LETTER, loose)
    assert misses == []
    assert changed.split("\n\n")[::10] == [f"New {n}." for n in range(len(named))]
    assert changed.split("\n\n")[1::10] == LETTER.split("\n\n")[1::10]


@pytest.mark.parametrize(
    ("text", "edits", "new", "times"),
    [
        ("a b\nc", [("a b", "x y"), ("x y", "z")], "z\nc", []),  # of what an earlier one made
        ("a b\na", [("a b", "x"), ("a", "y")], "x\ny", []),  # once only after an earlier one
        ("a b c", [("a b", "x"), ("b c", "y")], "x c", [0]),  # no two of the same words
        ("a\na\na", [("a\na", "x")], "a\na\na", [2]),  # they overlap
        ("a b", [("", "x"), (" \n", "x"), ("a", "y")], "y b", [0, 0]),  # nothing to look for
    ],
)
def test_edits_meet_one_another(text, edits, new, times):
    changed, misses = apply(text, [Edit(*one) for one in edits])
    assert (changed, [miss.times for miss in misses]) == (new, times)


# Comparisons


def test_texts_are_compared_as_difflib_does():
    seeded = random.Random(0)
    for _ in range(50):
        lines = seeded.choices(["a", "b", "", "c d", "e"], k=seeded.randint(0, 40))
        other = [*lines]
        for _ in range(seeded.randint(0, 4)):
            other.insert(seeded.randint(0, len(other)), seeded.choice(["a", "x", ""]))
        old, new = "\n".join(lines), "\n".join(other)
        theirs = difflib.unified_diff(old.splitlines(), new.splitlines(), n=2, lineterm="")
        assert unified_diff(old, new) == "\n".join([*theirs][2:])


@pytest.mark.parametrize("line", ["", "x", "{n}", "{n % 50}"], ids=["blank", "same", "own", "few"])
def test_endless_texts_are_compared_line_by_line(line):
    old = [line.replace("{n}", str(n)).replace("{n % 50}", str(n % 50)) for n in range(20_000)]
    new = [*old[:100], "an added line", *old[100:15_000], "changed", *old[15_001:]]
    codes = compare(old, new)
    built = [part for code in codes for part in new[code[3] : code[4]]]
    assert built == new
    assert all(old[a:b] == new[c:d] for tag, a, b, c, d in codes if tag == "equal")
    assert codes[0] == ("equal", 0, 100, 0, 100)
    assert changed_lines("\n".join(old), "\n".join(new)) >= 1


def test_what_two_long_texts_have_only_once_stays_where_both_are_full_of_repeats():
    old = [one for n in range(3_000) for one in (f"heading {n}", "", "- item", "- item", "")]
    new = [one for one in old if one != "heading 1500"]
    new.insert(9_000, "a new line")
    changed = [(tag, old[a:b], new[c:d]) for tag, a, b, c, d in compare(old, new) if tag != "equal"]
    assert changed == [("delete", ["heading 1500"], []), ("insert", [], ["a new line"])]


def test_a_lost_section_among_thousands_is_named():
    heads = [f"## Part {n}\n\n" + " ".join(f"word{n}x{k}" for k in range(30)) for n in range(900)]
    new = [*heads[:450], *heads[451:]]
    seeded = random.Random(0)
    seeded.shuffle(new)
    assert [one.name for one in losses("\n\n".join(heads), "\n\n".join(new))] == ["Part 450"]
    unlike = "\n\n".join(f"Other{n} words{n} all{n} over{n}." for n in range(1_900))
    assert len(losses("\n\n".join(heads), unlike)) == 900
