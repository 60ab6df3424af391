# ruff: noqa: RUF001
"""What a model writes may be endless or the same sign again and again: it is read all the same."""

import difflib
import json
import random
import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from kit import READY, ended, told

from ipyrefine.core.alignment import unified_diff
from ipyrefine.core.critiques import read_critique
from ipyrefine.core.edits import apply, losses, read_edits
from ipyrefine.core.evaluations import read_evaluation
from ipyrefine.core.forms import Asked, read_either, read_own, read_words
from ipyrefine.core.model import Limits, Task
from ipyrefine.core.points import read_notes
from ipyrefine.core.prompts import fence
from ipyrefine.errors import ReplyError

SIZE = 20_000
TASK = Task(text="a b", form="code")
MOMENT_S = 10.0  # of processor time: what takes far more than linear time takes minutes
SIGNS = (
    *(" ", "\n", "{", "[{", "{,", "`", "```\n", "<", "<<<<<<<\n=======\n"),
    *("<<<<<<<\na\n=======\nb\n", "<find>", "<find>a</find>\n<replace>", "<tests>"),
    *("<response>", "<text>\n", "</thoughts>", "Response:\n"),
    *("[", "| ", "- a\n", "  - a\n", "~~~\n", "```\nx\n```\n", "{'a': ", '{"a": "b" c" ', "问题："),
    *("*", "# ", "f1:", "f1:\n", '"', '{"a":', '{"a":1},', "a\n\n", "not ", "1/"),
)
READERS: dict[str, Callable[[str], Any]] = {
    "prose": lambda reply: read_words(reply, Asked(TASK)),
    "code": lambda reply: read_either(reply, Asked(TASK, base=reply, chooses=True)),
    "own": lambda reply: read_own(reply, Asked(TASK, base="x = 1")),
    "edits": read_edits,
    "critique": lambda reply: read_critique(reply, "a b"),
    "notes": lambda reply: read_notes(reply, ["f1"]),
    "evaluation": lambda reply: read_evaluation(reply),
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


async def test_of_a_critique_of_over_100_kb_the_end_is_read_and_the_user_is_told():
    loop = await ended([f"{'So long. ' * 20_000}\n{READY}"], draft="Dear all, hello.")
    assert loop.state.verdict.passed
    assert f"{180_001 + len(READY):,} characters" in loop.state.warnings[0]
    short = await ended([f"{'So long. ' * 10_000}\n{READY}"], draft="Dear all, hello.")
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
    changed, misses = apply(text, edits)
    found = [int((re.search(r"(\d+) times", miss) or ["", 0])[1]) for miss in misses]
    assert (changed, found) == (new, times)


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
