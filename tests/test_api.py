"""`refine` in Python: its options, and single limits among them."""

import re
from inspect import getdoc
from pathlib import Path
from typing import Any

import pytest
from judging import is_critic
from kit import READY, text
from kit import judgement as judged
from openai_server import Answer, ScriptedServer

from ipyrefine import Limits, refine
from ipyrefine.api import build, resume
from ipyrefine.errors import Unreachable, UsageError
from ipyrefine.providers.local import LocalModel
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.scripted import ScriptedModel

PROSE: dict[str, Any] = {"profile": "prose", "criteria": ["tone"]}


async def test_a_single_limit_wins_over_limits_given_as_a_whole() -> None:
    limits = Limits(target=0.5, max_revisions=3, critique="never")
    model = ScriptedModel([text("Hello"), judged(4)])
    run = await refine("Greet.", model=model, limits=limits, max_revisions=0, **PROSE)
    assert (run.limits.target, run.limits.max_revisions) == (0.5, 0)


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"profile": "prose"}, (True, True)),
        ({"profile": "code"}, (True, True)),
        ({"profile": "prose", "judge": ScriptedModel([], name="gpt-9")}, (False, True)),
        ({"profile": "prose", "limits": Limits(critique="always")}, (False, True)),
    ],
    ids=["prose", "code", "another critic", "asked for all the same"],
)
def test_a_weak_model_does_not_criticise_and_its_texts_are_written_anew(
    options: dict[str, Any], facts: tuple[bool, bool]
) -> None:
    for name, expected in (("qwen2.5-coder-1.5b", facts), ("gpt-9", (False, False))):
        setup = build("Greet.", model=ScriptedModel([], name=name), **options).state.setup
        assert (setup.weak_critic, setup.weak_editor) == expected


async def test_a_server_s_model_may_write_as_much_as_it_needs_where_nobody_limits_it() -> None:
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


async def test_a_run_continued_with_another_kind_of_model_has_that_kind_s_limit() -> None:
    served = OpenAIModel("m", base_url="http://127.0.0.1:1/v1")
    embedded = LocalModel(Path("m.gguf"), name="m")
    for first, then in ((served, embedded), (embedded, served)):
        run = build("Greet.", model=first, **PROSE).state
        begun = build("Greet.", model=then, **PROSE).state.limits
        assert resume(run, model=then).state.limits == begun
    run = build("Greet.", model=embedded, limits=Limits(max_tokens=99), **PROSE).state
    assert resume(run, model=served).state.limits.max_tokens == 99


async def test_a_run_continued_with_a_strong_model_is_criticised_and_edited_again() -> None:
    weak, strong = (ScriptedModel([], name=name) for name in ("qwen2.5-coder-1.5b", "gpt-9"))
    run = build("Greet.", model=weak, **PROSE).state
    setup = resume(run, model=strong).state.setup
    assert (setup.weak_critic, setup.weak_editor) == (False, False)


async def test_effort_and_extra_fields_and_the_timeout_reach_writer_and_critic() -> None:
    with ScriptedServer(lambda body: READY if is_critic(body) else text("Hi")) as s:
        options: dict[str, Any] = {"base_url": s.base_url, "model": "m", "judge": "j"}
        options |= {"effort": "low", "extra": {"top_k": 20}, "timeout": 30}
        await refine("Greet.", **options, journal=False, **PROSE)
        assert {body["model"] for body in s.bodies} == {"m", "j"}
        assert {(body["reasoning_effort"], body["top_k"]) for body in s.bodies} == {("low", 20)}
        s.default = lambda body: Answer(hold=True)
        with pytest.raises(Unreachable):
            await refine("Greet.", **{**options, "timeout": 0.2}, journal=False, **PROSE)


@pytest.mark.parametrize(
    "options", [{"effort": "hard"}, {"extra": {"stream": False}}, {"timeout": 0}]
)
async def test_settings_of_a_server_that_cannot_be_used_are_refused(
    options: dict[str, Any],
) -> None:
    with pytest.raises(UsageError):
        await refine("Greet.", model="m", base_url="http://127.0.0.1:1/v1", **options)


def test_its_help_lists_every_limit() -> None:
    listed = set(re.findall(r"``(\w+)``", getdoc(refine) or ""))
    assert set(Limits.model_fields) <= listed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tarfet": 0.9}, "refine has no option 'tarfet'. Did you mean target?"),
        ({"colour": "red"}, "refine has no option 'colour'."),
        ({"target": 5}, "target: input should be less than or equal to 1, not 5."),
        ({"budget": {"calls": 0}}, "budget.calls: input should be greater than 0, not 0."),
        ({"profile": "cod"}, "Did you mean code?"),
        ({"checks": ["rnu"]}, "Did you mean run?"),
        ({"checks": [3]}, "must be a function or a name"),
        ({"variables": {"api_key": "sk-abcdefghijklmnop"}}, "looks like a secret"),
    ],
)
async def test_an_option_that_cannot_be_used_is_refused_in_words_before_any_call(
    options: dict[str, Any], words: str
) -> None:
    model = ScriptedModel([])
    with pytest.raises(UsageError) as raised:
        await refine("Greet.", model=model, **options)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert model.requests == []
