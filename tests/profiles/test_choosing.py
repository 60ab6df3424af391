"""Which profile a cell's body suggests."""

import pytest

from ipyrefine.profiles.choose import suggest

TASKS = [
    ("Implement a Stack with push(x), pop() and getMin(), all O(1).", "code"),
    ("Write is_prime(n). is_prime(7) == True, is_prime(1) == False", "code"),
    ("Write a function that validates an email address.", "code"),
    ("Write an email validation function.", "code"),
    ("Create a script sending emails to every customer.", "code"),
    ("Write a JSON parser without any library.", "code"),
    ("Refactor this to be async.", "code"),
    ("Double it.\n\n>>> twice(2)\n4", "code"),
    ("Write unit tests for the story generator.", "code"),
    ("Write a short sales email to a dentist about our scheduling software.", "email"),
    ("Draft a polite e-mail declining the meeting.", "email"),
    ("Please write an email explaining the new class schedule.", "email"),
    ("Rewrite this email so that it is shorter.", "email"),
    ("Write an RFC for rate limiting in our API.", "rfc"),
    ("Draft a technical design doc: move the module from REST to gRPC.", "rfc"),
    ("Extract the names and dates as JSON.\n\nAnna met Bo on 3 May. Write a story.", "data"),
    ("Convert this table to JSON:\na b\n1 2", "data"),
    ("Produce a JSON object with the fields name and age.", "data"),
    ("Write an error message for a failed upload.", "microcopy"),
    ("Write three tooltips for the settings page.", "microcopy"),
    ("I need a button label for deleting an account", "microcopy"),
    ("Why is the sky blue?", "answer"),
    ("What is a Python decorator?", "answer"),
    ("How do tides work? Answer in three sentences.", "answer"),
    ("Explain the difference between a list and a tuple.", "answer"),
    ("Write a limerick about tides.", "story"),
    ("Write a short story about a class trip, in the voice of the bus.", "story"),
    ("Write a class trip story.", "story"),
    ("Write an article on urban bees in the voice of a detective.", "story"),
    ("Write a summary of this email thread.", "prose"),
    ("Write a review of this code.", "prose"),
    ("Answer this complaint in three friendly sentences: my parcel came late.", "prose"),
    ("Tell my neighbour, kindly, that the dog barks at night.", "prose"),
    ("", "prose"),
]
DRAFTS = [
    ("def f(x):\n    return x", "", "code"),
    ('{"name": "Anna"}', "", "data"),
    ("Hi Anna,\n\nthe parcel is late.\n\nBo", "", "email"),
    ("Subject: the parcel\n\nIt is late.", "", "email"),
    ("The parcel is late.", "", "prose"),
    ("The parcel is late.", "Make it a story in three sentences.", "story"),
    ("The parcel is late.", "Explain the function of the parcel.", "answer"),
    ("def f(x):\n    return x", "Write a story", "code"),
    ("The class has a method.", "Improve this code", "prose"),
]


@pytest.mark.parametrize(("body", "name"), TASKS)
def test_a_task_is_taken_for_what_it_asks_to_be_written(body: str, name: str) -> None:
    assert suggest(body).name == name


@pytest.mark.parametrize(("draft", "goal", "name"), DRAFTS)
def test_a_draft_is_taken_for_what_it_is(draft: str, goal: str, name: str) -> None:
    assert suggest(goal, draft=draft).name == name


def test_what_a_schema_checks_is_data() -> None:
    assert suggest("Read the invoice.", schema=True).name == "data"


def test_a_long_body_is_read_in_no_time() -> None:
    body = "write " * 100_000 + "(" * 100_000
    assert suggest(body).name == "prose"
