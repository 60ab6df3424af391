"""Compare six well-known loops with ours on HumanEval, and keep the counts.

``python bench/loops.py [--tasks A-B] [--ask]`` (needs the extras ``local`` and ``bench``).
A single draft, resampling and our loop are those of ``code_tasks.py humaneval``. The six are
rebuilt with options, as the README says for each: in five the writer is its own evaluator, and
nothing is run; self-debugging runs the task's examples, and the writer explains its code before it
mends it (arXiv 2304.05128). Tasks and kept replies are those of ``code_tasks.py``.

An arm counts the tasks before the first one for which a reply was not kept. Counting later ones
would favour tasks that need few replies.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import arms
import code_tasks
import measure
from measure import Meter, Replies

from ipyrefine.api import build
from ipyrefine.core.model import Limits, StopReason
from ipyrefine.core.ports import Model

DATA = Path(__file__).parent / "kept/loops.json"
PLAN = arms.Plan(Limits())
T = TypeVar("T")
OURS = {"one draft": "draft", "resampling": "resampling", "ours": "loop"}

_EVALUATE = """\
Evaluate this code for the task. Is it correct, and are all requirements met?

{text}

Reply with JSON: {{"evaluation": "PASS", "NEEDS_IMPROVEMENT" or "FAIL", "feedback": "…"}}"""
_DOCUMENTED = _EVALUATE.replace("met?", "met? Is each function documented?")
_LIST = """\
List the actions that would improve this code, and say whether it is done.

{text}

Reply with JSON: {{"feedback": ["action", …], "done": true or false}}"""
_SCORE = """\
Score this code from 0 to 1: how well does it do the task?

{text}

Reply with JSON: {{"score": 0.7, "feedback": "…"}}"""
_THINK = """\
Think first, then write the code. Reply with

Thoughts: what matters here, in two lines
Response: the code"""
_PHASES = """

[ITERATION 1: DRAFT]
Write the first version.
[ITERATION 2: CRITIQUE]
Name at least three weaknesses in correctness, edge cases and clarity.
[ITERATION 3: REWRITE]
Rewrite it, and say what you changed for each weakness.
[ITERATION 4: VERIFY]
- [ ] Does it do what the task asks?
- [ ] Are empty and smallest inputs handled?
"""
_EXPLAIN = """\
This code misses an example of the task.

{text}

{findings}

Explain it line by line, and say where it goes wrong. Then give the complete code, mended, in one
block that starts with ```python and ends with ```."""
# What `build` takes for each; `suffix` is pasted below the task. Without `examples` nothing is run.
LOOPS: dict[str, dict[str, Any]] = {
    "until PASS": {
        "prompts": {"judge": _EVALUATE},
        "limits": {"max_revisions": 3, "patience": None, "memory": "all"},
    },
    "feedback lists": {
        "prompts": {"judge": _LIST},
        "limits": {"max_revisions": 3, "patience": None, "base": "latest"},
    },
    "scored": {
        "prompts": {"judge": _SCORE},
        "limits": {"max_revisions": 3, "patience": 3, "target": 0.9, "delta": 0.01},
    },
    "evaluator-optimizer": {
        "prompts": {"draft": _THINK, "judge": _DOCUMENTED},
        "limits": {"max_revisions": 3, "patience": None, "memory": "all"},
    },
    "four phases": {
        "prompts": {"judge": _EVALUATE},
        "limits": {"max_revisions": 1},
        "suffix": _PHASES,
    },
    "self-debugging": {
        "prompts": {"revise": _EXPLAIN},
        "limits": {"max_revisions": 3, "patience": None, "revise": "edit"},
        "examples": True,
    },
}


async def run_loop(name: str, case: arms.Case, model: Model) -> arms.Outcome:
    """Run one of the six loops on a case."""
    options, meter = LOOPS[name], Meter(model)
    refinement = build(
        case.text + options.get("suffix", ""),
        model=meter,
        profile=case.profile,
        prompts=options["prompts"],
        no_checks=["agreement", "results"] if options.get("examples") else ["all"],
        limits=Limits(max_tokens=1_024, seed=0, **options["limits"]),
    )
    run = await refinement.run()
    solved = bool(run.iterations) and await case.solves(run.text)
    return arms.Outcome(solved, run.stop_reason is StopReason.PASSED, meter.usage, run.text)


def run_arms(cases: Sequence[arms.Case], model: Replies) -> dict[str, list[arms.Outcome]]:
    """Return each arm's outcomes, up to the first case for which a reply is missing."""
    rows = _collect("draft, resampling, ours", cases, model, lambda one: _run_ours(one, model))
    found = {name: [row[place] for row in rows] for place, name in enumerate(OURS)}
    for name in LOOPS:
        found[name] = _collect(name, cases, model, partial(run_loop, name, model=model))
    return found


async def _run_ours(case: arms.Case, model: Model) -> list[arms.Outcome]:
    row = await arms.run_case(case, model, PLAN)
    return [row.arms[arm] for arm in OURS.values()]


def _collect(
    what: str, cases: Sequence[Any], model: Replies, run_case: Callable[[Any], Awaitable[T]]
) -> list[T]:
    model.missing = ""
    return measure.collect(what, cases, model, run_case, lambda rows: f"{len(rows)} done")


def count(outcomes: Sequence[arms.Outcome]) -> dict[str, int]:
    """Return what an arm's outcomes add up to; where nothing decides, all texts are accepted."""
    accepted = [one for one in outcomes if one.accepted is not False]
    return {
        "tasks": len(outcomes),
        "solved": sum(one.solved for one in outcomes),
        "accepted": len(accepted),
        "wrong": sum(not one.solved for one in accepted),
        "tokens": sum(one.usage.tokens for one in outcomes),
    }


def write(path: Path, model: str, found: Mapping[str, Sequence[arms.Outcome]]) -> None:
    """Write the counts, an arm a line."""
    lines = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(count(some))}" for name, some in found.items()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"model": {json.dumps(model)}, "loops": {{\n{lines}\n}}}}\n', "utf-8")


def main() -> None:
    """Run all arms, print the counts and write them."""
    options = measure.parser(__doc__).parse_args()
    cases = code_tasks.load("humaneval", options.data, options.tasks)
    replies = measure.kept_replies("humaneval", options)
    found = run_arms(cases, replies)
    heads = ["loop", "tasks", "solved", "accepted", "wrong", "tokens"]
    print(measure.table(heads, [(name, *count(some).values()) for name, some in found.items()]))
    write(DATA, replies.name, found)


if __name__ == "__main__":
    main()
