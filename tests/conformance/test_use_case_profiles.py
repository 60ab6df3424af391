"""Systems A, D and E: each of their use cases is a profile, and runs through the whole loop.

The writer's first text is weak and its second is good; the critic, also scripted, tells them apart.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import Any, NamedTuple

import pytest
from kit import READY, critique, finding
from pydantic import BaseModel

from ipyrefine import refine
from ipyrefine.checks.schema import Schema
from ipyrefine.core.ports import Request
from ipyrefine.profiles import builtin
from ipyrefine.providers.scripted import ScriptedModel


class Order(BaseModel):
    customer: str
    items: list[str]


def names_it(text: str) -> bool:
    return "Molar" in text


def states_problem(text: str) -> bool:
    return "## Problem" in text.splitlines()


class UseCase(NamedTuple):
    profile: str
    task: str
    weak: str
    good: str
    checks: Sequence[Any] = ()


CASES = [
    UseCase(
        "code",
        "Write has_duplicates(xs) in O(n).\n\nhas_duplicates([1, 1]) == True\n"
        "has_duplicates([]) == False",
        "def has_duplicates(xs):\n    return xs[0] in xs[1:]",
        "def has_duplicates(xs):\n    return len(set(xs)) < len(xs)",
        ["examples"],
    ),
    UseCase(
        "answer",
        "Why is the sky blue, and why are sunsets red?",
        "Because of the air.",
        "Air scatters blue light most. At sunset the way through it is long, so red is left.",
    ),
    UseCase(
        "story",
        "Write a short story in the voice of a tired lighthouse keeper.",
        "Once there was a lighthouse.",
        "The lamp has outlived three keepers. It will outlive this one's knees.",
    ),
    UseCase(
        "data",
        "Extract the order as JSON: Anna wants tea and two rolls.",
        '{"customer": "Anna"}',
        '{"customer": "Anna", "items": ["tea", "roll", "roll"]}',
        [Schema(Order, label="Order")],
    ),
    UseCase(
        "microcopy",
        "Write an error message for a file that is too large to upload; at most 60 characters.",
        "Error 413: the payload of the request exceeds the limit that the server has.",
        "This file is too large. Choose one under 10 MB.",
        ["length:<=60 chars"],
    ),
    UseCase(
        "email",
        "Write a sales email to a dentist about our scheduling software, Molar.",
        "Dear Sir or Madam, we are the leading company.",
        "Subject: Fewer empty chairs\n\nHi Dr Lee,\nMolar fills cancelled slots. Ten minutes?",
        [names_it, "length:<=80 words"],
    ),
    UseCase(
        "rfc",
        "Write an RFC for rate limiting in our public API.",
        "# Rate limiting\nWe should limit rates.",
        "# Rate limiting\n## Problem\nOne client took the API down.\n## Design\nA token bucket.",
        [states_problem],
    ),
]


def scripted(case: UseCase) -> ScriptedModel:
    form = builtin()[case.profile].form
    written = [
        f"```python\n{text}\n```"
        if form == "code"
        else f'<text kind="{case.profile}">\n{text}\n</text>'
        for text in (case.weak, case.good)
    ]

    def reply(request: Request) -> str:
        if request.purpose in ("draft", "revise"):
            return written.pop(0)
        good = case.good in request.messages[-1].content
        return READY if good else critique(finding("It misses the task.", criterion="scope"))

    return ScriptedModel(repeat(reply))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.profile)
async def test_a_use_case_finds_its_profile_which_heads_every_pass_after_the_draft(case):
    model = scripted(case)
    critique = "always" if case.profile == "microcopy" else "auto"  # else it is left to the user
    run = await refine(case.task, model=model, checks=case.checks, critique=critique)
    assert run.task.profile == case.profile
    assert [i.text for i in run.iterations] == [case.weak, case.good]
    assert [i.verdict and i.verdict.passed for i in run.iterations] == [False, True]
    assert (run.stop_reason, run.text) == ("passed", case.good)
    profile = builtin()[case.profile]
    for request in model.requests[1:]:
        head = request.messages[0].content
        assert case.task in head
        assert all(f"{c.name}: {c.definition}" in head for c in profile.criteria)
        assert all(question in head for question in profile.checklist)


def test_data_is_an_object_once_its_schema_accepts_it():
    case = next(case for case in CASES if case.profile == "data")
    assert case.checks[0].value(case.good) == Order(customer="Anna", items=["tea", "roll", "roll"])


async def test_criteria_of_the_users_can_demand_documentation():
    """System D: the evaluator's criteria may demand what the task does not."""
    own = {
        "form": "code",
        "criteria": {"documentation": "Every public name has a docstring with an example."},
    }
    model = scripted(CASES[0])
    run = await refine(CASES[0].task, model=model, checks=["examples"], profile=own)
    assert [c.name for c in run.task.criteria] == ["documentation"]
    assert "Every public name has a docstring" in model.requests[0].messages[0].content
