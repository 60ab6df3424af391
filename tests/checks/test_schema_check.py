"""`schema:NAME`: JSON that a model or a schema accepts, and the object it then is."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field, RootModel

from ipyrefine.checks import resolve
from ipyrefine.checks.schema import Schema
from ipyrefine.core.model import Task
from ipyrefine.errors import UsageError

TASK = Task(text="t")


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)


@dataclass
class Pair:
    a: int
    b: int


JSON_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}
GOOD = '{"name": "Anna", "age": 3}'
SPACE = {"Person": Person, "plain": JSON_SCHEMA, "people": list[Person], "Pair": Pair}


def made(name: str) -> Schema:
    (check,) = resolve([f"schema:{name}"], SPACE)
    assert isinstance(check, Schema)
    return check


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("Person", GOOD, Person(name="Anna", age=3)),
        ("Person", f"```json\n{GOOD}\n```", Person(name="Anna", age=3)),
        ("plain", GOOD, {"name": "Anna", "age": 3}),
        ("people", f"[{GOOD}]", [Person(name="Anna", age=3)]),
        ("Pair", '{"a": 1, "b": 2}', Pair(1, 2)),
    ],
)
async def test_a_text_that_follows_it_becomes_an_object(name, text, value):
    check = made(name)
    evidence = await check(text, TASK)
    assert (evidence.passed, evidence.points) == (True, ())
    assert check.value(text) == value


@pytest.mark.parametrize("name", ["Person", "plain"])
@pytest.mark.parametrize(
    ("text", "score", "message", "places"),
    [
        ("Anna is 3", 0.0, "It is not JSON", set()),
        (f"Here it is: {GOOD}", 0.0, "It is not JSON", set()),
        ('{"name": "Anna", "age": -1}', 0.5, "$.age: ", {"$.age"}),
        ('{"name": 3, "age": "x"}', 1 / 3, "$.name: ", {"$.name", "$.age"}),
    ],
)
async def test_each_fault_is_listed_and_a_finding_under_its_place(
    name, text, score, message, places
):
    evidence = await made(name)(text, TASK)
    assert (evidence.passed, evidence.score) == (False, score)
    assert message in evidence.shows
    assert {one.criterion for one in evidence.points} == (places or {f"schema:{name}"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": [1, NaN]}', "It is not JSON: NaN is not a JSON number"),
        ('{"a": 1e999}', "It is not JSON: 1e999 is not a JSON number"),
        ('{"a": 1, "a": 2}', "It is not JSON: the key 'a' is repeated"),
        ('{"a": 1' + "0" * 5_000 + "}", "It is not JSON: Exceeds the limit"),
        ('{"a": ' * 5_000 + "1" + "}" * 5_000, "recursion"),
        ('{"a": 1,}', "It is not JSON: "),
        ('{"a": 0x1F}', "It is not JSON: "),
    ],
)
async def test_what_only_lenient_readers_take_for_json_is_a_fault(text, message):
    evidence = await Schema(RootModel[Any])(text, TASK)
    assert evidence.passed is False
    assert message in evidence.shows
    assert len(evidence.shows) < 500


@pytest.mark.parametrize(
    ("pattern", "text", "passes"),
    [
        ("^[a-z]+$", '"abc\\n"', False),
        ("^[a-z]+$", '"abc"', True),
        (r"^[a$]+\$$", '"a$$"', True),
    ],
)
async def test_a_pattern_ends_where_json_schema_says(pattern, text, passes):
    assert (await Schema({"type": "string", "pattern": pattern})(text, TASK)).passed is passes


async def test_a_text_with_countless_faults_or_endless_names_is_evidence():
    schema = {"items": {"type": "string"}}
    many = json.dumps([*range(50_000)])
    evidence = await Schema(schema, seconds=30)(many, TASK)
    assert evidence.passed is False
    assert "$[0]: " in evidence.shows
    assert (evidence.score or 0) < 0.01


async def test_a_pattern_that_never_ends_is_stopped():
    check = Schema({"type": "string", "pattern": "^(a+)+$"}, seconds=0.5)
    evidence = await check('"' + "a" * 50 + '!"', TASK)
    assert evidence.passed is False
    assert "did not end within 0.5 seconds" in evidence.shows


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Persn", "Did you mean Person"),
        ("number", "needs a pydantic model or a JSON schema"),
        ("bad", "is not a JSON schema at type: "),
        ("unwritable", "is not a JSON schema: "),
        ("opaque", "has a type without a JSON schema"),
    ],
)
def test_what_is_no_schema_is_refused_with_a_sentence(name, message):
    space = {
        **SPACE,
        "number": 3,
        "bad": {"type": "strnig"},
        "unwritable": {"const": {1, 2}},
        "opaque": type("Opaque", (), {}),
    }
    with pytest.raises(UsageError) as raised:
        resolve([f"schema:{name}"], space)
    assert message in str(raised.value)
