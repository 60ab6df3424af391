"""The facts of a stored run as plain JSON, and how it is resumed: for the files of any version.

Only this file knows the classes of the loop; the files and their expectations do not.
"""

from pathlib import Path
from time import monotonic
from typing import Any

import golden

from ipyrefine.api import finish, resume
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.run import Run
from ipyrefine.journal.writer import Recorder
from ipyrefine.providers.replay import RecordedModel


def facts(run: Run) -> dict[str, Any]:
    """Return what a run holds, in words that no class has to know."""
    setup = run.setup
    return {
        "task": run.task.text,
        "form": run.task.form,
        "criteria": [criterion.name for criterion in run.task.criteria],
        "checklist": list(run.task.checklist),
        "limits": run.limits.model_dump(mode="json", exclude_defaults=True),
        "default_limits": Limits() == run.limits,
        "checks": list(setup.checks),
        "draft": setup.draft,
        "prompts": setup.prompts,
        "price": setup.price and [setup.price.prompt, setup.price.completion],
        "iterations": len(run.iterations),
        "texts": [one.text for one in run.iterations],
        "thoughts": [one.thoughts for one in run.iterations],
        "authors": [one.author for one in run.iterations],
        "parents": [one.parent for one in run.iterations],
        "evidence": [[[e.name, e.passed, e.decisive] for e in i.evidence] for i in run.iterations],
        "verdicts": [
            i.verdict and [i.verdict.outcome.value, i.verdict.score] for i in run.iterations
        ],
        "bases": [i.verdict and i.verdict.basis for i in run.iterations],
        "doubtful": sorted({f.id for i in run.iterations for f in i.findings if f.doubtful}),
        "findings": [{f.id: f.status.value for f in i.findings} for i in run.iterations],
        "problems": {f.id: f.problem for i in run.iterations for f in i.findings},
        "changes": [[c.finding for c in i.changes] for i in run.iterations],
        "compared": [[i.comparisons, i.lost_comparison] for i in run.iterations],
        "lost": run.failed_drafts,
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
    """Return what a resumed or replayed run led to."""
    known = facts(run)
    names = ("texts", "verdicts", "findings", "best", "chosen", "decisions", "stop_reason")
    return {name: known[name] for name in names}


async def resumed(run: Run, how: dict[str, Any], journal: Recorder | None = None) -> dict[str, Any]:
    """Resume a run to the end of its script; return its outcome, and how many calls that took."""
    writer = golden.Script(how["replies"])
    judge = golden.Script(how["judge"], "judge") if "judge" in how else None
    checks = golden.checks(how.get("checks", ()))
    loop = resume(run, model=writer.model, judge=judge and judge.model, checks=checks)
    await _through(loop, how, journal)
    scripts = [script for script in (writer, judge) if script]
    assert not any(script.left for script in scripts), "some replies were not asked for"
    asked = sum(len(script.requests) for script in scripts)
    assert loop.state.usage.calls == run.usage.calls + asked
    return {"calls": asked, **outcome(loop.state)}


async def replayed(run: Run, path: Path) -> dict[str, Any]:
    """Play a run's task again, by a recording alone; its checks give the evidence they gave.

    The built-in judge is asked in another shape since version 3, so that its replies are not found.
    """
    given = [e.model_dump() for iteration in run.iterations for e in iteration.evidence]
    scripts = [
        {"name": name, "evidence": [e for e in given if e["name"] == name]}
        for name in run.setup.checks
    ]
    loop = Refinement(
        run.task,
        model=RecordedModel(path),
        checks=golden.checks(scripts),
        limits=run.limits,
        prompts=Prompts.build(run.setup.prompts),
        clock=monotonic,
    )
    await loop.run()
    led_to = outcome(loop.state)
    return {name: led_to[name] for name in ("texts", "verdicts", "best", "stop_reason")} | {
        "error": loop.error and str(loop.error).partition(" the recording ")[0]
    }


async def _through(loop: Refinement, how: dict[str, Any], journal: Recorder | None) -> None:
    for step in how.get("rounds", [[]]):
        for decision in golden.decisions(step):
            loop.decide(decision)
        await finish(loop, journal)
