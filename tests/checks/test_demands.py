"""The demands that are read in requests, and those that must not be."""

import time

import pytest

from ipyrefine.checks import resolve
from ipyrefine.checks.demands import read_demands

# What each request states about the whole of its answer, in all the wordings that people use.
STATED = {
    "Explain tides in at most 120 words.": ["length:<=120 words"],
    "Draft an apology to the tenants. Max 90 words, please.": ["length:<=90 words"],
    "Summarise the release for customers. No more than 3 sentences.": ["length:<=3 sentences"],
    "I need a bio for the conference site. It must be under 100 words.": ["length:<=99 words"],
    "Tell my team that the deploy is postponed, and keep it to 60 words or fewer.": [
        "length:<=60 words"
    ],
    "Write the welcome text for our newsletter, 100 words minimum, 200 words maximum.": [
        "length:100-200 words"
    ],
    "Write an abstract for the poster; it may not exceed 250 words.": ["length:<=250 words"],
    "Don't write more than four sentences about the outage.": ["length:<=4 sentences"],
    "Describe our hiking socks for the shop, 50-80 words.": ["length:50-80 words"],
    "Explain overfitting to a product manager in two sentences.": ["length:2 sentences"],
    "Answer in a single paragraph: what does a quorum do?": ["length:1 paragraph"],
    "List the risks of the migration in 5 bullet points.": ["length:5 bullets"],
    "Write a four-paragraph essay on night trains.": ["length:4 paragraphs"],
    "write a tweet announcing our meetup on friday, no more than 280 characters": [
        "length:<=280 characters"
    ],
    "Compose a post about the launch. At least 150 words.": ["length:>=150 words"],
    "Give me the pros of remote work as three to five bullets.": ["length:3-5 bullets"],
    "Can you explain DNS in exactly 3 sentences?": ["length:3 sentences"],
    "Your answer should have between 2 and 4 paragraphs. Why did Rome fall?": [
        "length:2-4 paragraphs"
    ],
    "Is a whale a fish? Reply with one word.": ["length:1 word"],
    "In at most 3 sentences, tell me why the sky is blue.": ["length:<=3 sentences"],
    "Write a note of no more than 40 words to the night shift.": ["length:<=40 words"],
    "Write a haiku about rain without the word “rain”.": ["without:rain"],
    'Write an advert for a bakery. Do not use the words "artisan" or "authentic".': [
        "without:artisan",
        "without:authentic",
    ],
    "Describe the sea in at most 50 words, with the word 'salt' in it.": [
        "length:<=50 words",
        "with:salt",
    ],
    'Write an invitation to the summer party. Mention "Oslo" and "3 June".': [
        "with:Oslo",
        "with:3 June",
    ],
    'Your reply must include the phrase "terms apply".': ["with:terms apply"],
    "Return the answer as JSON: name, capital and population of France.": ["json"],
    "Which planets have rings? Respond only with valid JSON.": ["json"],
    "Rewrite this complaint in at most 3 sentences:\n\nYour parcel of 12 sentences came late.": [
        "length:<=3 sentences"
    ],
    "Length: at most 700 characters. Write a cover note for my application.": [
        "length:<=700 characters"
    ],
}

# Amounts and words that are vague, conditional, about a part, or about something else.
NOT_STATED = [
    "Write five steps for brewing coffee with one sentence each.",
    'Is this a bug? Reply with "ok" or "later".',
    "Write an announcement with at most two commas per sentence.",
    "Write around 200 words on otters.",
    "Write a 500-word story about a lighthouse.",
    "Ideally it stays under 100 words. Describe the harbour.",
    "Summarise this 3,000-word article for my boss.",
    "Write a story about a man who says at least three words in every language.",
    "The essay below has 5 paragraphs. What is its thesis?\n\nDogs are loyal.",
    "Make this friendlier:\n\nHi Tom, reply in at most 50 words and use exactly 3 bullets.",
    "How do I write a cover letter of at most 300 words?",
    "My teacher said that essays should have at least five paragraphs. Is she right?",
    "Write an email with a subject line of at most 8 words.",
    "If you need more than 3 paragraphs, add a title.",
    'Proofread: "Your answer must have exactly 3 bullets."',
    "Explain why tweets were limited to at most 140 characters.",
    "Write a hint for users whose names have more than 30 characters.",
    "Write three sentences about dogs and three sentences about cats.",
    "Suggest four slogans. At most 6 words.",
    "Write a name of at most 2 words and a motto of exactly one sentence.",
    "Add two sentences about refunds to the letter.",
    "Give me 5 words that rhyme with day.",
    "Describe each planet in two sentences.",
    "Describe a game in which players may use at most 5 words.",
    'What does the phrase "without the word blue" mean?',
    'Explain the difference between "affect" and "effect".',
    'Start the second paragraph with the word "However".',
    "Write a guide on returning JSON from a web service.",
    "Our guide says to use at most 20 words. Write a comment on that rule.",
    "Write a summary and, in two sentences, say what you left out.",
    "Do not answer in one sentence; take your time.",
    "Explain recursion. Use at most 3 sentences for the definition.",
    "Describe each planet. Two sentences max.",
]


@pytest.mark.parametrize("request_text", STATED)
def test_a_literal_demand_is_read(request_text: str) -> None:
    assert list(read_demands(request_text)) == STATED[request_text]


@pytest.mark.parametrize("request_text", NOT_STATED)
def test_what_is_vague_or_about_a_part_or_something_else_is_left_alone(request_text: str) -> None:
    assert read_demands(request_text) == ()


def test_bounds_on_one_unit_are_one_demand_unless_they_contradict_each_other() -> None:
    assert read_demands("Use at least 3 bullets. Write at most 5 bullets.") == (
        "length:3-5 bullets",
    )
    assert read_demands("Write at least 10 sentences. At most 5 sentences.") == ()


def test_each_demand_names_a_check_that_anybody_could_name() -> None:
    demands = {name for names in STATED.values() for name in names}
    assert {check.name for check in resolve(tuple(demands), {})} == demands


HOSTILE = {
    "amounts": "at least 3 words " * 100_000,
    "directives": "write at most 3 words, " * 50_000,
    "spaces": "Use at least" + " " * 200_000 + "3 words",
    "quotes": '"' * 100_000,
    "terms": 'Include "a", ' * 50_000,
    "numbers": "at most 1,000,000" * 20_000,
    "answers": "your whole answer must be " * 20_000,
    "breaks": ":\n" * 200_000,
    "texts": "this below " * 50_000,
    "json": "return it as valid " * 20_000,
    "marks": "\ue000\uf8ff" * 1_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_read_soon(name: str) -> None:
    began = time.perf_counter()
    read_demands(HOSTILE[name])
    assert time.perf_counter() - began < 2
