"""What a stored run says, as plain JSON, and how it is gone on with: for the files of any version.

Only this file knows the classes of the loop; the files, and what is expected of them, do not.
"""

from pathlib import Path
from time import monotonic
from typing import Any

import golden

from ipyrefine.core.engine import Refinement
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.runs import Limits, Run
from ipyrefine.journal.recorder import Recorder
from ipyrefine.providers.replay import RecordedModel
from ipyrefine.resuming import go_on
from ipyrefine.running import finish


def facts(run: Run) -> dict[str, Any]:
    """What a run holds, in words that no class has to know."""
    assert run.task is not None, "a stored run has begun"
    return {
        "task": run.task.text,
        "form": run.task.form,
        "criteria": [criterion.name for criterion in run.task.criteria],
        "checklist": list(run.task.checklist),
        "limits": run.limits.model_dump(mode="json", exclude_defaults=True),
        "default_limits": Limits() == run.limits,
        "checks": list(run.checks),
        "draft": run.draft,
        "prompts": run.prompts,
        "price": run.price and [run.price.prompt, run.price.completion],
        "iterations": len(run.iterations),
        "texts": [one.text for one in run.iterations],
        "thoughts": [one.thoughts for one in run.iterations],
        "authors": [one.author for one in run.iterations],
        "parents": [one.parent for one in run.iterations],
        "evidence": [[[e.name, e.passed, e.decisive] for e in i.evidence] for i in run.iterations],
        "verdicts": [
            i.verdict and [i.verdict.outcome.value, i.verdict.score] for i in run.iterations
        ],
        "findings": [{f.id: f.status.value for f in i.findings} for i in run.iterations],
        "problems": {f.id: f.problem for i in run.iterations for f in i.findings},
        "changes": [[c.finding for c in i.changes if c.confirmed] for i in run.iterations],
        "compared": [[i.compared, i.barred] for i in run.iterations],
        "lost": run.lost,
        "best": run.best,
        "chosen": run.text,
        "decisions": [decision.kind for decision in run.decisions],
        "stop_reason": run.stop_reason and run.stop_reason.value,
        "message": run.message,
        "warnings": list(run.warnings),
        "usage": {
            "calls": run.usage.calls,
            "prompt_tokens": run.usage.prompt_tokens,
            "completion_tokens": run.usage.completion_tokens,
            "cost": run.usage.cost,
        },
    }


def outcome(run: Run) -> dict[str, Any]:
    """What a run that was gone on with, or replayed, came to."""
    known = facts(run)
    told = ("texts", "verdicts", "findings", "best", "chosen", "decisions", "stop_reason")
    return {name: known[name] for name in told}


async def resumed(run: Run, how: dict[str, Any], kept: Recorder | None = None) -> dict[str, Any]:
    """Go on with a run to the end of its script; what it came to, and how many calls that took."""
    writer = golden.Script(how["replies"])
    judge = golden.Script(how["judge"], "judge") if "judge" in how else None
    checks = golden.checks(how.get("checks", ()))
    loop = go_on(run, model=writer.model, judge=judge and judge.model, checks=checks)
    await _through(loop, how, kept)
    scripts = [script for script in (writer, judge) if script]
    assert not any(script.left for script in scripts), "some replies were not asked for"
    asked = sum(len(script.requests) for script in scripts)
    assert loop.run.usage.calls == run.usage.calls + asked
    return {"calls": asked, **outcome(loop.run)}


async def replayed(run: Run, path: Path) -> dict[str, Any]:
    """Play a run's task again, by a recording alone; its checks say what they said then."""
    assert run.task is not None, "a stored run has begun"
    said = [e.model_dump() for iteration in run.iterations for e in iteration.evidence]
    told = [{"name": n, "evidence": [e for e in said if e["name"] == n]} for n in run.checks]
    loop = Refinement(
        run.task,
        model=RecordedModel(path),
        checks=golden.checks(told),
        limits=run.limits,
        prompts=Prompts.model_validate(run.prompts),
        clock=monotonic,
    )
    return outcome(await finish(loop))


async def _through(loop: Refinement, how: dict[str, Any], kept: Recorder | None) -> None:
    for decided in how.get("rounds", [[]]):
        for decision in golden.decisions(decided):
            loop.decide(decision)
        await finish(loop, kept)
