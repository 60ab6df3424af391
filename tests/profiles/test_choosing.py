"""Which profile a run has, and which language its code is in."""

from pathlib import Path

import pytest

from ipyrefine.api import choose_profile
from ipyrefine.core.languages import language_of, read_fence
from ipyrefine.providers.replay import RecordedModel
from ipyrefine.providers.scripted import ScriptedModel

DRAFTS = [
    ("def f(x):\n    return x", "code"),
    ('{"name": "Anna"}', "data"),
    ("Subject: delay\n\nHi Anna,\n\nthe parcel is late.", "email"),
    ("The parcel is late.", "prose"),
    ("staff.groupby('team')['salary'].mean()", "code"),
    ("prices.update(new)\nprices", "code"),
    ("äpfel[0]", "code"),
    ("Thanks (again)", "prose"),
    ("well-known", "prose"),
    ("(\nThanks\n)", "prose"),
    ("Explain the class, then write a function.", "prose"),
    ("```python\nx = 1\n```", "code"),
    ("```text\nThe parcel is late.\n```", "prose"),
]


@pytest.mark.parametrize(("draft", "name"), DRAFTS)
def test_a_draft_is_taken_for_what_it_is(draft, name):
    assert choose_profile(None, draft=draft).name == name


WRITER = ScriptedModel(())
RECORDING = RecordedModel(Path("none.json"))


@pytest.mark.parametrize(("options", "form", "chooses"), [
    ({}, "code", True),
    ({"form": "code"}, "code", False),
    ({"form": "prose"}, "prose", False),
    ({"profile": "email"}, "prose", False),
    ({"profile": "code"}, "code", False),
    ({"language": "java"}, "code", False),
    ({"checks": ["run"]}, "code", False),
    ({"checks": ["schema:Person"]}, "prose", False),
    ({"draft": "x = 1"}, "code", False),
    ({"draft": "The parcel is late."}, "prose", False),
    ({"writer": RECORDING}, "code", False),
])  # fmt: skip
def test_the_writer_chooses_the_form_of_a_task_where_nothing_else_says_it(options, form, chooses):
    chosen = choose_profile(options.pop("profile", None), **{"writer": WRITER, **options})
    assert (chosen.form, chosen.or_words) == (form, chooses)


@pytest.mark.parametrize(("draft", "language"), [
    ("```kotlin\nfun f() = 1\n```", "kotlin"),
    ("```C++\nint x;\n```", "cpp"),
    ("def f():\n    return 1", "python"),
    ("public class A {}", "java"),
])  # fmt: skip
def test_a_draft_says_its_language(draft, language):
    assert language_of(draft) == language


@pytest.mark.parametrize(("text", "inside"), [
    ("```java\nclass A {}\n```", ("java", "class A {}")),
    ("\n````js\nlet a = `b`;\n```\n````\n", ("javascript", "let a = `b`;\n```")),
    ("```java\nclass A {}", None),
    ("```\nclass A {}\n```", None),
    ("```markdown\nHi.\n```", None),
    ("```java\nclass A {}\n```\nand\n```java\nclass B {}\n```", None),
    ("Improve:\n```java\nclass A {}\n```", None),
])  # fmt: skip
def test_a_text_that_is_one_fenced_block_is_its_inside(text, inside):
    found = read_fence(text)
    assert (found and (found.tag, found.text)) == inside


def test_a_long_text_is_read_in_no_time():
    assert read_fence("```java\n" * 100_000) is None
