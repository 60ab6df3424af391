"""`refine` in Python: its options, and single limits among them."""

import re
from dataclasses import fields
from inspect import getdoc, signature
from pathlib import Path
from typing import Any

import pandas
import pytest
from judging import is_critic
from kit import READY, text
from openai_server import ScriptedServer
from states import STATES

from ipyrefine import Budget, Limits, Task, choose_model, refine, refine_many, table
from ipyrefine.api import Options, build, resume
from ipyrefine.core.decisions import Continue
from ipyrefine.core.model import Outcome
from ipyrefine.errors import UsageError
from ipyrefine.providers.local import LocalModel
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.session.record import record_text

PROSE: dict[str, Any] = {"profile": "prose", "criteria": ["tone"]}


def test_a_single_limit_wins_over_limits_given_as_a_whole():
    limits = Limits(target=0.5, max_revisions=3, critique="never")
    loop = build("Greet.", model=ScriptedModel([]), limits=limits, max_revisions=0, **PROSE)
    assert (loop.state.limits.target, loop.state.limits.max_revisions) == (0.5, 0)


@pytest.mark.parametrize(("options", "facts"), [
    ({"profile": "prose"}, (True, True)),
    ({"profile": "code"}, (True, True)),
    ({"profile": "prose", "judge": ScriptedModel([], name="gpt-9")}, (False, True)),
    ({"profile": "prose", "limits": Limits(critique="always")}, (False, True)),
], ids=["prose", "code", "another critic", "asked for all the same"])  # fmt: skip
def test_a_weak_model_does_not_criticise_and_its_texts_are_written_anew(options, facts):
    for name, expected in (("qwen2.5-coder-1.5b", facts), ("gpt-9", (False, False))):
        setup = build("Greet.", model=ScriptedModel([], name=name), **options).state.setup
        assert (setup.weak_critic, setup.weak_editor) == expected


async def test_a_server_s_model_may_write_as_much_as_it_needs_where_nobody_limits_it():
    def allowed(**options: Any) -> int | None:
        model = OpenAIModel("m", base_url="http://127.0.0.1:1/v1")
        return build("Greet.", **{"model": model, **options}).state.limits.max_tokens

    own = {"form": "prose", "criteria": {"tone": "Warm."}, "limits": {"max_tokens": 99}}
    embedded = LocalModel(Path("m.gguf"), name="m")
    assert allowed() is None
    assert allowed(profile="microcopy") is None  # 1,024 leave no room for hidden reasoning
    assert allowed(limits=Limits(max_tokens=2_048)) == 2_048
    assert allowed(profile=own) == 99
    assert allowed(model=embedded) == 2_048
    assert allowed(model=embedded, profile="microcopy") == 1_024


async def test_a_run_continued_with_a_strong_model_is_criticised_and_edited_again():
    weak, strong = (ScriptedModel([], name=name) for name in ("qwen2.5-coder-1.5b", "gpt-9"))
    run = build("Greet.", model=weak, **PROSE).state
    setup = resume(run, model=strong).state.setup
    assert (setup.weak_critic, setup.weak_editor) == (False, False)


DRAFT = "def inc(x):\n    return x + {}"
LOOK: dict[str, Any] = {"limits": Limits(max_revisions=0), "journal": False}


@pytest.mark.parametrize(("task", "added", "outcome"), [
    ("", 1, Outcome.NOT_JUDGED),
    ("Write inc(x). inc(1) == 2", 1, Outcome.PASS),
    ("Write inc(x). inc(1) == 2", 2, Outcome.NEEDS_IMPROVEMENT),
])  # fmt: skip
async def test_a_draft_that_is_not_revised_is_looked_at_without_a_model(task, added, outcome):
    run = await refine(task, draft=DRAFT.format(added), **LOOK)
    assert run.verdict.outcome is outcome
    assert (run.usage.calls, run.warnings, run.message.count("model")) == (0, (), 0)
    assert "model" not in record_text(run).replace("without a model", "")
    [item] = await refine_many([{"text": task, "draft": DRAFT.format(added)}], **LOOK)
    assert item.verdict.outcome is outcome


async def test_a_function_scores_a_draft_without_a_model_or_its_price():
    checks, limits = [lambda text: len(text) / 10], {"target": 0.9, "budget": {"cost": 0.1}}
    run = await refine("", draft="Hello", checks=checks, **limits, **LOOK)
    assert (run.score_history, run.usage.calls) == ((0.5,), 0)


def test_every_option_is_described_where_it_is_declared():
    described = re.findall(r"^    (\w+): ", getdoc(Options) or "", re.MULTILINE)
    assert described == [one.name for one in fields(Options)]


async def test_a_task_s_own_options_leave_those_of_all_as_they_are():
    with ScriptedServer(lambda body: READY if is_critic(body) else text("Hi")) as s:
        options = {"base_url": s.base_url, "model": "m", "api_key": "sk-all", **PROSE}
        own = [{"text": "Greet."}, {"text": "Part.", "api_key": "sk-own", "model": "m"}]
        await refine_many(own, at_once=1, journal=False, progress=False, **options)
        keys = [one.headers["authorization"] for one in s.requests]
    assert keys == ["Bearer sk-all"] * 2 + ["Bearer sk-own"] * 2


async def test_a_run_goes_on_with_all_that_its_options_say():
    with ScriptedServer(lambda body: READY if is_critic(body) else text("Hi")) as s:
        options = {"base_url": s.base_url, "effort": "low", "extra": {"top_k": 20}}
        given = {**options, "draft": "one\ntwo", "lines": (2, 2), "share": "all"}
        first = build("Greet.", model="m", **given, **PROSE)
        again = resume(first.state, **given)
        other = resume(first.state, model="other", **given)
        for loop, name in ((again, "m"), (other, "other")):
            assert (loop.model.name, loop.state.setup.model) == (name, name)
            assert loop.selection is not None
            assert loop.selection.lines == (2, 2)
            assert loop.sharing == first.sharing
            loop.decide(Continue())
            await loop.run()
        fields_of = {(b["model"], b["reasoning_effort"], b["top_k"]) for b in s.bodies}
        assert fields_of == {("m", "low", 20), ("other", "low", 20)}


SERVED = {"model": "m", "base_url": "http://127.0.0.1:1/v1"}
BAD = {
    "a limit out of range": ({"limits": {"target": 80}}, "target: input should be less"),
    "limits that are none": ({"limits": 3}, "limits: must be a dict, not 3."),
    "no such option": ({"colour": "red"}, "refine has no option 'colour'."),
    "another loop's": ({"max_cost": 1}, "refine has no option 'max_cost'. Did you mean budget?"),
    "a model": ({"model": 42}, "model is a name, or an object with `name` and `stream`, not 42."),
    "a model without a name": ({"model": type("M", (), {"stream": 1, "name": None})()}, "model is"),
    "a key": ({"api_key": b"sk-secret"}, "api_key is a text, or a function that returns it."),
    "a check": ({"checks": [3]}, "A check must be a function or a name, not 3."),
    "a check's name": ({"checks": [type("C", (), {"name": 3})()]}, "A check must be a function"),
    "criteria": ({"criteria": [3]}, "criteria is a list of texts, not [3]."),
    "cells": ({"cells": "df"}, "cells is a list of `Material`, not ['d', 'f']."),
    "a draft": ({"draft": 3}, "draft is a text, not 3."),
    "a secret": ({"variables": {"api_key": "sk-abcdefghijklmnop"}}, "looks like a secret"),
    "prompts": ({"prompts": 3}, "prompts is a dict of prompts by stage, not 3."),
    "lines": ({"lines": (1, 2, 3), "draft": "a"}, "lines is a pair of line numbers"),
    "a profile": ({"profile": 3}, "profile is a name, a dict or a file, not 3."),
    "a whole profile as its name": ({"profile": "x" * 10_000}, "x…x"),
    "a timeout": ({"timeout": "a"}, "timeout is a number of seconds, not 'a'."),
    "no time": ({**SERVED, "timeout": 0}, "timeout"),
    "an effort": ({**SERVED, "effort": "hard"}, "effort"),
}


@pytest.mark.parametrize(("options", "words"), BAD.values(), ids=BAD)
def test_an_option_that_cannot_be_used_is_one_sentence(options, words):
    with pytest.raises(UsageError, match=re.escape(words)) as raised:
        build("Do it.", **{"model": ScriptedModel([]), **options})
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1_100


@pytest.mark.parametrize("options", [
    {"journal": 3},
    {"journal": "no"},
    {"name": 3},
    {"on_event": 3},
])  # fmt: skip
async def test_so_is_one_that_is_not_the_builder_s_before_a_model_is_asked(options):
    model, name = ScriptedModel([]), next(iter(options))
    with pytest.raises(UsageError, match=f"{name} is "):
        await refine("Greet.", model=model, **options)
    own, shared = ({}, options) if name == "name" else (options, {})
    with pytest.raises(UsageError, match=f"{name} is "):
        await refine_many([{"text": "Greet.", **own}], model=model, **shared)
    assert model.requests == []


@pytest.mark.parametrize("options", [{"at_once": "8"}, {"on_item": 3}, {"name": ["a"]}])
async def test_so_is_one_of_many(options):
    with pytest.raises(UsageError, match=f"{next(iter(options))} is a "):
        await refine_many(["Greet."], model=ScriptedModel([]), **options)


@pytest.mark.parametrize("arguments", [("1", "pass"), (1.5, "fail"), (1, ["pass"]), (1, "pass", 3)])
async def test_so_is_a_ruling(arguments):
    texts = await table("f(1) == 2", ["def f(x): return 2"], progress=False)
    with pytest.raises(UsageError):
        await texts.rule(*arguments)


async def test_a_text_whose_lines_end_as_on_windows_is_taken_with_a_cells():
    reply = "Here:\r\n```python\r\ndef f(x):\r\n    return 2\r\n```\r\n"
    options = {"profile": "code", "critique": "never", "max_revisions": 0}
    run = await refine("Write f.", model=ScriptedModel([reply]), **options)
    assert run.text == "def f(x):\n    return 2"


def test_an_option_may_be_given_as_an_iterator():
    loop = build("Greet.", model=ScriptedModel([]), profile="prose", criteria=iter(["tone"]))
    assert [one.name for one in loop.state.task.criteria] == ["tone"]


def test_so_is_a_limit_and_a_task():
    with pytest.raises(UsageError, match="target: input should be less"):
        Limits(target=80)
    with pytest.raises(UsageError, match=r"seconds: input should be greater than 0, not -1\."):
        Budget(seconds=-1)
    with pytest.raises(UsageError, match=r"Limits has no 'bogus'\."):
        Limits(bogus=1)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"A task is a text, not 3\."):
        build(3)  # type: ignore[arg-type]


async def test_so_is_what_is_no_name_and_no_list():
    wrong: Any = 3
    with pytest.raises(UsageError, match=r"A model's name is a text, not 3\."):
        choose_model(wrong)
    with pytest.raises(UsageError, match=r"The texts are a list, or texts by name, not 3\."):
        await table("Do it.", wrong)
    for wrong in (3, "Do it.", {"ann": "Do it."}, pandas.DataFrame({"text": ["Do it."]})):
        kind = type(wrong).__name__
        with pytest.raises(UsageError, match=f"The tasks are a list or a column, not {kind}"):
            await refine_many(wrong)
    with pytest.raises(UsageError, match="Task 0 has no text"):
        await refine_many([3], model=ScriptedModel([]))  # type: ignore[list-item]
    with pytest.raises(UsageError, match=r"text is missing\."):
        Task()  # type: ignore[call-arg]


def test_a_single_check_or_criterion_may_stand_for_a_list():
    loop = build("Do it.", model=ScriptedModel([]), checks="run", criteria="tone")
    assert [one.name for one in loop.checks][:1] == ["run"]
    assert [one.name for one in loop.state.task.criteria] == ["tone"]


def test_help_names_every_option_and_limit():
    for function in (refine, build, resume):
        names = {*signature(function).parameters}
        assert names >= {*Limits.model_fields, *(one.name for one in fields(Options))}
        assert all(f"{name}: " in str(function.__doc__) for name in ("share", "min_findings"))


@pytest.mark.parametrize(("state", "shown"), [
    ("evaluator", "Run(verdict='PASS', stop_reason='passed', iterations=3, "
     "text='A test that needs 2 words.')"),
    ("failed", "Run(verdict=None, stop_reason='failed', iterations=0, text='')"),
])  # fmt: skip
def test_a_run_at_the_end_of_a_cell_is_a_line(state, shown):
    assert repr(STATES[state]) == shown
