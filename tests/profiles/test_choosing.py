"""Which profile a request suggests, and which language its code is in."""
# ruff: noqa: RUF001 - Chinese punctuation

import pandas
import pytest

from ipyrefine.api import choose_profile
from ipyrefine.kernel.variables import Variables
from ipyrefine.profiles.recognise import language_of, read_fence, suggest

TASKS = [
    ("Implement a Stack with push(x), pop() and getMin(), all O(1).", "code"),
    ("Write a function that validates an email address.", "code"),
    ("Refactor this to be async.", "code"),
    ("Double it.\n\n>>> twice(2)\n4", "code"),
    ("Write unit tests for the story generator.", "code"),
    ("Write a short sales email to a dentist about our scheduling software.", "email"),
    ("Please write an email explaining the new class schedule.", "email"),
    ("Write an RFC for rate limiting in our API.", "rfc"),
    ("Extract the names and dates as JSON.\n\nAnna met Bo on 3 May. Write a story.", "data"),
    ("Write an error message for a failed upload.", "microcopy"),
    ("Why is the sky blue?", "answer"),
    ("Explain the difference between a list and a tuple.", "answer"),
    ("Write a limerick about tides.", "story"),
    ("Write a summary of this email thread.", "prose"),
    ("Answer this complaint in three friendly sentences: my parcel came late.", "prose"),
    ("Tell my neighbour, kindly, that the dog barks at night.", "prose"),
    ("fizzbuzz", "code"),
]
DRAFTS = [
    ("", "def f(x):\n    return x", "code"),
    ("", '{"name": "Anna"}', "data"),
    ("", "Hi Anna,\n\nthe parcel is late.\n\nBo", "email"),
    ("", "The parcel is late.", "prose"),
    ("Make it a story in three sentences.", "The parcel is late.", "story"),
    ("Write a story", "def f(x):\n    return x", "code"),
    ("Improve this code", "The class has a method.", "prose"),
    ("", "```python\nx = 1\n```", "code"),
    ("", "```text\nThe parcel is late.\n```", "prose"),
]


@pytest.mark.parametrize(
    ("task", "draft", "name"), [*((task, None, name) for task, name in TASKS), *DRAFTS]
)
def test_a_request_is_taken_for_what_it_asks_for_and_a_draft_for_what_it_is(
    task: str, draft: str | None, name: str
) -> None:
    assert suggest(task, draft=draft).name == name


def test_what_a_schema_checks_is_data() -> None:
    assert suggest("Read the invoice.", schema=True).name == "data"


def test_a_long_body_is_read_in_no_time() -> None:
    body = "write " * 100_000 + "(" * 100_000
    assert suggest(body).name == "code"


# A notebook in which the tasks are asked.
FRAME = pandas.DataFrame({"region": ["N"], "revenue": [2.0], "date": [3]})
FRAMES = dict.fromkeys(["df", "orders", "customers"], FRAME)
VARIABLES = Variables({}, {**FRAMES, "items": [1, 2], "merge_sort": sorted, "notes": "…"})


CODE = [
    "Plot `df` revenue per region",
    "Merge `orders` and `customers` on customer_id",
    "Summarise df by month",
    "What is the mean revenue per region?",
    "Write a function that returns an email address from a first and a last name.",
    "Write a SQL query that lists the customers without an order.",
    "Extract the month from the date column as a number",
    "Schreibe eine Funktion, die eine E-Mail-Adresse prüft.",
    "Escribe una función que invierta una lista enlazada.",
    "用Java实现一个Stack类",
    "写一个函数，返回邮件地址的域名",
]
PROSE = [
    "Summarise the plot of Hamlet",
    "What is the mean height of adults?",
    "Update for the team: dark mode is here",
    "Translate `notes` to Spanish",
    "Describe the trend of the revenue in two sentences",
    "Write a polite email to a supplier whose delivery is two weeks late.",
    "Explain `merge_sort` in one paragraph.",
    "RFC: move the nightly jobs from cron to a queue",
    "Schreibe eine E-Mail an den Vermieter wegen der kaputten Heizung.",
    "Rédige une lettre de motivation pour un poste d'ingénieur.",
    "Redacta un correo para invitar a Luis a la reunión del lunes.",
    "写一封邮件，感谢客户的支持",
]


@pytest.mark.parametrize(
    ("task", "form"), [*((task, "code") for task in CODE), *((task, "prose") for task in PROSE)]
)
def test_data_of_the_notebook_make_a_request_code_unless_it_asks_for_prose_in_any_language(
    task: str, form: str
) -> None:
    assert choose_profile(None, task, variables=VARIABLES).form == form


LANGUAGES = [
    ("Implement a Java class LRUCache with get and put.", "java"),
    ("Write a C++ class Matrix.", "cpp"),
    ("Write a C program that sorts.", "c"),
    ("Write a bash script that renames files.", "bash"),
    ("Implement a stack in Go.", "go"),
    ("Translate this Python function to Java:\n\ndef f(): ...", "java"),
    ("Write a function.", "python"),
    ("Write a Python class that emits Java.", "python"),
    ("Write a function that parses Java stack traces.", "python"),
    ("Write a function that builds an SQL query from a dict.", "python"),
    ("Write a PostgreSQL query: for each customer their latest order.", "sql"),
    ("Write a SQLite-backed cache with get and set.", "python"),
    ("Write a function that moves the disks from A to C.", "python"),
    ("Write a go function that may return None.", "python"),
    ("用Java实现一个Stack类", "java"),
    ("Schreibe eine Java-Klasse für Brüche.", "java"),
    ("Schreibe ein Python-Skript, das Java-Dateien zählt.", "python"),
]


@pytest.mark.parametrize(("text", "language"), LANGUAGES)
def test_the_language_is_the_one_that_a_request_names_for_its_code(text, language) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("draft", "language"),
    [
        ("```kotlin\nfun f() = 1\n```", "kotlin"),
        ("```C++\nint x;\n```", "cpp"),
        ("def f():\n    return 1", "python"),
        ("class A {}", "java"),
    ],
)
def test_a_draft_says_its_language_before_the_goal_does(draft: str, language: str) -> None:
    assert language_of("Make this Java class shorter.", draft) == language


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("```java\nclass A {}\n```", ("java", "class A {}")),
        ("\n````js\nlet a = `b`;\n```\n````\n", ("javascript", "let a = `b`;\n```")),
        ("```java\nclass A {}", None),
        ("```\nclass A {}\n```", None),
        ("```markdown\nHi.\n```", None),
        ("```java\nclass A {}\n```\nand\n```java\nclass B {}\n```", None),
        ("Improve:\n```java\nclass A {}\n```", None),
    ],
)
def test_a_text_that_is_one_fenced_block_is_its_inside(text, inside) -> None:
    assert read_fence(text) == inside


def test_a_long_request_names_its_language_in_no_time() -> None:
    assert language_of("write in " * 100_000) == "python"
    assert read_fence("```java\n" * 100_000) is None
