"""The lengths that are read in requests, and those that must not be."""

import time

import pytest

from ipyrefine.checks import resolve
from ipyrefine.checks.demands import read_lengths

# What requests state about the whole of their answer, in all the wordings that people use.
STATED = r"""
4 bullets    | Give me 4 bullet points on why we should move to Postgres.
<=40 words   | Please write a pitch for an app, 40 words max.
<=120 words  | Explain tides in at most 120 words.
>=100 words, <=200 words | Write a welcome, 100 words minimum, 200 words maximum.
<=250 words  | Write an abstract for the poster; it may not exceed 250 words.
50-80 words  | Describe our hiking socks for the shop, 50-80 words.
2 sentences  | Explain overfitting to a product manager in two sentences.
3-5 bullets  | Give me the pros of remote work as three to five bullets.
<=3 sentences | In at most 3 sentences, tell me why the sky is blue.
<=40 words   | Write a note of no more than 40 words to the night shift.
50-80 words  | Write a product blurb of between 80 and 50 words.
<12 lines    | Write a poem of under 12 lines.
5 lines      | Write a limerick in exactly five lines.
<=1000 words | Summarise the meeting in a maximum of 1,000 words.
<=3 sentences | Explain DNS in 3 sentences at most.
<280 characters | Keep your answer below 280 characters.
1 sentence   | Give me a one-sentence summary of tides.
<=3 sentences | Rewrite this complaint in at most 3 sentences:\n\n12 sentences came late.
"""

# Amounts and words that are vague, conditional, about a part, or about something else.
NOT_STATED = [
    "Write a FAQ with 5 questions, each answered in at most 40 words.",
    "Write the abstract in at most 200 words, followed by 5 keywords.",
    "Write a story in which a robot says exactly 3 words.",
    'Write a post. Start with the word "Finally".',
    "Write around 200 words on otters.",
    "Write a 500-word story about a lighthouse.",
    "Ideally it stays under 100 words. Describe the harbour.",
    "Summarise this 3,000-word article for my boss.",
    "The essay below has 5 paragraphs. What is its thesis?\n\nDogs are loyal.",
    "Make this friendlier:\n\nHi Tom, reply in at most 50 words and use exactly 3 bullets.",
    "Write an email with a subject line of at most 8 words.",
    'Proofread: "Your answer must have exactly 3 bullets."',
    "Add two sentences about refunds to the letter.",
    'Start the second paragraph with the word "However".',
    "Explain recursion. Use at most 3 sentences for the definition.",
    "Write 100 words under the heading Tea.",
    "Write a 2-3 line note to Bo.",
    "Write a poem in 3 lines.",  # a paragraph is often meant that fills three
    "Rewrite it so that no line has more than 80 characters.",
    "Write two emails of at most 50 words.",
]


@pytest.mark.parametrize("row", STATED.strip().splitlines())
def test_a_length_is_read_as_a_check_that_anybody_could_name(row):
    lengths, _, request = row.replace(r"\n", "\n").partition(" | ")
    demands = read_lengths(request)
    assert [*demands] == [f"length:{one}" for one in lengths.strip().split(", ")]
    assert [check.name for check in resolve(demands, {})] == [*demands]


@pytest.mark.parametrize("request_text", NOT_STATED)
def test_what_is_vague_or_about_a_part_or_something_else_is_left_alone(request_text):
    assert read_lengths(request_text) == ()


HOSTILE = {
    "amounts": "at least 3 words " * 100_000,
    "quotes": '"' * 100_000,
    "breaks": ":\n" * 200_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_read_soon(name):
    began = time.process_time()
    read_lengths(HOSTILE[name])
    assert time.process_time() - began < 10
