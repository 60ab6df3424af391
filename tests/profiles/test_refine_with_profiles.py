"""`refine` in Python takes profiles, checks by name, a checklist and variables."""

from pathlib import Path
from typing import Any

import pytest

from ipyrefine import Limits, refine
from ipyrefine.core.run import Run
from ipyrefine.errors import Unreachable, UsageError
from ipyrefine.providers.scripted import ScriptedModel

CODE = "```python\ndef total():\n    return sum(prices)\n```"


async def ran(*replies: str, **options: Any) -> Run:
    """The run of a model that cannot be reached once its replies are used up."""
    model = ScriptedModel([*replies, Unreachable("It is gone.")])
    try:
        return await refine("Write it.", model=model, **options)
    except Unreachable as error:
        run: Run = error.run
        return run


async def test_a_check_by_name_runs_the_code_with_the_variables() -> None:
    run = await ran(
        CODE,
        limits=Limits(max_revisions=0),
        checks=["run"],
        variables={"prices": []},
        profile="code",
    )
    assert [(e.name, e.passed) for e in run.iterations[0].evidence] == [("run", True)]


@pytest.mark.parametrize("kind", ["dict", "file"])
async def test_a_profile_is_a_dict_or_a_file(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "witty.toml"
    path.write_text('[criteria]\nwit = "It makes one smile."\n[limits]\nmax_revisions = 0\n')
    own = {"criteria": {"wit": "It makes one smile."}, "limits": {"max_revisions": 0}}
    run = await ran("<text>\nHa.\n</text>", profile=own if kind == "dict" else path)
    assert run.task is not None
    assert [c.name for c in run.task.criteria] == ["wit"]
    assert run.limits.max_revisions == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"profile": "cod"}, "Did you mean code?"),
        ({"checks": ["rnu"]}, "Did you mean run?"),
        ({"checks": [3]}, "must be a function or a name"),
        ({"variables": {"api_key": "sk-abcdefghijklmnop"}}, "looks like a secret"),
    ],
)
async def test_what_cannot_be_used_is_refused_before_any_call(
    options: dict[str, Any], said: str
) -> None:
    model = ScriptedModel([])
    with pytest.raises(UsageError, match=said.replace("?", r"\?")):
        await refine("Write it.", model=model, **options)
    assert model.requests == []
