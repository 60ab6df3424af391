"""The ways to solve a HumanEval task that the bench compares, and how an answer is tested."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count
from time import monotonic
from typing import NamedTuple

from ipyrefine.checks.agreement import Agreement
from ipyrefine.checks.examples import Examples
from ipyrefine.checks.sandbox import run_python
from ipyrefine.core import replies
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Limits, Setup, StopReason, Task, Usage
from ipyrefine.core.ports import Delta, Message, Model, Notice, Reply, Request
from ipyrefine.core.prompts import Prompts, Requests, make_nonce
from ipyrefine.core.run import Run
from ipyrefine.errors import ModelError, ReplyError
from ipyrefine.profiles import find

Problem = dict[str, str]

BARE = """\
Evaluate this code for the task. Reply with JSON: evaluation, PASS if it is correct and all its \
requirements are met, else NEEDS_IMPROVEMENT or FAIL; and feedback, one sentence."""
BARE_SCHEMA = {
    "type": "object",
    "properties": {
        "evaluation": {"type": "string", "enum": ["PASS", "NEEDS_IMPROVEMENT", "FAIL"]},
        "feedback": {"type": "string", "maxLength": 300},
    },
    "required": ["evaluation", "feedback"],
    "additionalProperties": False,
}
_SECRET = b"the same marks every time"  # so that a request made before is known again
_TOKENS = 1_024  # completion tokens a reply may take


class Outcome(NamedTuple):
    """What a way came to on a task."""

    solved: bool
    accepted: bool
    usage: Usage


class Draft(NamedTuple):
    """The greedy first text, which all ways start from."""

    text: str
    solved: bool
    visible: bool  # whether a stated example shows that it is wrong
    usage: Usage


class Arm:
    """A model that counts what one way consumed."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name = model.name
        self.usage = Usage()

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Pass the model's reply on."""
        async with aclosing(self._model.stream(request)) as parts:  # type: ignore[type-var]
            async for part in parts:
                if isinstance(part, Reply):
                    self.usage += part.usage
                yield part

    async def ask(self, request: Request) -> Reply:
        """The whole reply."""
        reply = Reply(text="", finish="incomplete")
        async with aclosing(self.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Reply):
                    reply = part
        return reply


def task_text(problem: Problem) -> str:
    """The task as a user would state it."""
    return (
        "Complete this Python function. Give all of it, with the imports and helpers it needs.\n\n"
        f"```python\n{problem['prompt'].strip()}\n```"
    )


async def passes(problem: Problem, text: str) -> bool:
    """Whether an answer passes the task's hidden tests, in the sandbox."""
    head = problem["prompt"].partition(f"def {problem['entry_point']}")[0]
    program = f"{head}\n{text}\n\n{problem['test']}\n\ncheck({problem['entry_point']})\n"
    ran = await run_python(program, seconds=20)
    return ran.exit_code == 0


async def draft_of(problem: Problem, arm: Arm) -> Draft:
    """The greedy draft, with the loop's own prompt."""
    request = _requests().draft(_run(problem))
    text = _text(await arm.ask(request))
    shown = await Examples()(text, Task(text=task_text(problem), form="code"))
    solved = await passes(problem, text)
    # A text without the imports that the hidden tests add misses the examples and is right there.
    return Draft(text, solved, shown.passed is False and not solved, arm.usage)


async def judged_bare(problem: Problem, draft: Draft, arm: Arm) -> Outcome:
    """Let a judge say PASS or not, with nothing else to go by."""
    prompt = f"Task:\n{task_text(problem)}\n\nCode:\n```python\n{draft.text}\n```\n\n{BARE}"
    request = Request(
        messages=(Message(role="user", content=prompt),),
        json_schema=BARE_SCHEMA,
        schema_name="evaluation",
        max_tokens=200,
    )
    said = await arm.ask(request)
    accepted = '"PASS"' in said.text
    return Outcome(draft.solved, accepted, draft.usage + arm.usage)


async def resampled(problem: Problem, draft: Draft, arm: Arm, *, tokens: int) -> Outcome:
    """Sample until a text meets the stated examples, as long as there are tokens.

    Args:
        problem: what is asked.
        draft: the first text.
        arm: who is asked.
        tokens: what the loop consumed on the task.
    """
    requests, run = _requests(), _run(problem)
    task, text, usage = Task(text=task_text(problem), form="code"), draft.text, draft.usage
    numbers = count(1)
    while (await Examples()(text, task)).passed is False:
        if usage.tokens >= tokens:
            return Outcome(draft.solved, False, usage)
        # What the loop asks too is answered by the same sample: chance then favours neither way.
        text = _text(await arm.ask(requests.draft(run, next(numbers))))
        usage = draft.usage + arm.usage
    return Outcome(await passes(problem, text), True, usage)


async def looped(problem: Problem, arm: Arm, candidates: int) -> Outcome:
    """Run our loop as a user would with `--check agreement --candidates N -n 1`."""
    limits = Limits(candidates=candidates, max_revisions=1, max_tokens=_TOKENS, seed=0)
    profile = find("code")
    refinement = Refinement(
        profile.task(task_text(problem)),
        model=arm,
        checks=[Agreement()],
        limits=profile.limited(limits),
        clock=monotonic,
        nonce=make_nonce(_SECRET),
    )
    run = await refinement.run()
    if isinstance(refinement.error, ModelError) and not run.iterations:
        return Outcome(False, False, arm.usage)
    solved = await passes(problem, run.text)
    return Outcome(solved, run.stop_reason is StopReason.PASSED, arm.usage)


def _text(reply: Reply) -> str:
    try:
        return replies.parse_text(reply.text, "code", cut=reply.finish != "stop").text
    except ReplyError:
        return ""


def _run(problem: Problem) -> Run:
    task = find("code").task(task_text(problem))
    limits = Limits(max_tokens=_TOKENS, seed=0)
    return Run.begin(Setup(task=task, limits=limits))


def _requests() -> Requests:
    return Requests(Prompts(), make_nonce(_SECRET))
