"""Whether a request is for code or for prose, and in which language its code is."""
# ruff: noqa: RUF001 - Chinese punctuation

import pandas
import pytest

from ipyrefine.api import choose_profile
from ipyrefine.kernel.variables import Variables
from ipyrefine.profiles.recognise import language_of

# A notebook in which the tasks are asked.
FRAME = pandas.DataFrame(
    {"month": [1], "region": ["N"], "product": ["a"], "revenue": [2.0], "date": [3]}
)
VARIABLES = Variables(
    {},
    {
        "df": FRAME,
        "orders": FRAME,
        "customers": FRAME,
        "items": [1, 2],
        "merge_sort": sorted,
        "notes": "…",
    },
)


CODE = [
    "Plot `df` revenue per region",
    "Merge `orders` and `customers` on customer_id",
    "Write a loop that prints every second item of `items`.",
    "Summarise df by month",
    "Write a function that returns an email address from a first and a last name.",
    "Write a SQL query that lists the customers without an order.",
    "Split a text into paragraphs and count the words of each.",
    "Write a class Letter with sender, recipient and body.",
    "Extract the month from the date column as a number",
    "Schreibe eine Funktion, die eine E-Mail-Adresse prüft.",
    "Escribe una función que invierta una lista enlazada.",
    "用Java实现一个Stack类",
    "写一个函数，返回邮件地址的域名",
]
PROSE = [
    "Write a polite email to a supplier whose delivery is two weeks late.",
    "Explain `merge_sort` in one paragraph.",
    "Translate to Spanish: The museum is closed on Mondays.",
    "Write an abstract for a talk about time series, with df as the example.",
    "A haiku about pandas",
    "RFC: move the nightly jobs from cron to a queue",
    "Why is quicksort slower on sorted input?",
    "Write a letter to the landlord: the heating has been broken for a week.",
    "What is the difference between a list and a tuple?",
    "Schreibe eine E-Mail an den Vermieter wegen der kaputten Heizung.",
    "Rédige une lettre de motivation pour un poste d'ingénieur.",
    "Redacta un correo para invitar a Luis a la reunión del lunes.",
    "写一封邮件，感谢客户的支持",
]


@pytest.mark.parametrize(
    ("task", "form"),
    [
        ("Summarise df by month", "code"),
        ("Summarise the plot of Hamlet", "prose"),
        ("What is the mean revenue per region?", "code"),
        ("What is the mean height of adults?", "answer"),
        ("Explain `merge_sort`", "answer"),
        ("Update for the team: dark mode is here", "prose"),
        ("Translate `notes` to Spanish", "prose"),
        ("Describe the trend of the revenue in two sentences", "prose"),
    ],
)
def test_data_of_the_notebook_make_a_request_code_unless_it_asks_for_a_kind_of_prose(
    task: str, form: str
) -> None:
    assert choose_profile(None, task, variables=VARIABLES).name == form


@pytest.mark.parametrize(
    ("task", "language"),
    [
        ("用Java实现一个Stack类", "java"),
        ("Schreibe eine Java-Klasse für Brüche.", "java"),
        ("Rewrite this Python function in Rust.", "rust"),
        ("Schreibe ein Python-Skript, das Java-Dateien zählt.", "python"),
    ],
)
def test_a_language_is_found_in_requests_of_other_tongues(task: str, language: str) -> None:
    assert language_of(task) == language


@pytest.mark.parametrize("task", CODE)
def test_a_task_is_taken_for_code_in_any_language(task: str) -> None:
    assert choose_profile(None, task, variables=VARIABLES).form == "code"


@pytest.mark.parametrize("task", PROSE)
def test_a_task_whose_words_ask_for_prose_is_taken_for_prose(task: str) -> None:
    assert choose_profile(None, task, variables=VARIABLES).form == "prose"
