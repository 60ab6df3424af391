"""What the embedded server need not read again, in runs of the whole loop."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from metered import Metered

from ipyrefine.compose import compose
from ipyrefine.core.events import BudgetUsed
from ipyrefine.core.runs import Limits
from ipyrefine.core.usage import Usage
from ipyrefine.profiles import builtin
from ipyrefine.providers import local, weights

TASK = """\
Implement a Stack with push(x), pop() and getMin(), all O(1), without keeping a second list.

>>> s = Stack(); s.push(2); s.push(1); s.getMin()
1
"""
CODE = '''\
class Stack:
    """A stack that knows its least element; version {}."""

    def __init__(self):
        self._items = []

    def push(self, x):
        """Put x on top."""
        least = min(x, self._items[-1][1]) if self._items else x
        self._items.append((x, least))

    def pop(self):
        """Take the top off and return it."""
        return self._items.pop()[0]

    def getMin(self):
        """Return the least element in O(1)."""
        return self._items[-1][1]
'''


def judgement(score: int, number: int) -> str:
    profile = builtin()["code"]
    finding = {"criterion": "clarity", "quote": f"version {number}", "severity": "minor",
               "problem": f"weakness{number} of number{number}", "fix": "Say more."}  # fmt: skip
    names = [criterion.name for criterion in profile.criteria]
    reason = {"quote": "class Stack", "reason": "It does so in part.", "score": score}
    answers = [{"item": n, "yes": True} for n in range(1, len(profile.checklist) + 1)]
    return json.dumps({
        "findings": [finding],
        "checklist": answers,
        "criteria": [{"name": name, **reason} for name in names],
    })  # fmt: skip


def replies(scores: tuple[int, ...]) -> Iterator[str]:
    for number, score in enumerate(scores):
        yield f"f1: say more\n```python\n{CODE.replace('{}', str(number))}```\n"
        yield judgement(score, number)


@pytest.fixture
def path() -> Iterator[Path]:
    found = weights.find(weights.LIGHT)
    if found is None:
        pytest.skip(f"fetch the weights first: ipyrefine pull {weights.LIGHT}")
    yield found
    local._stop_all()


@pytest.mark.model
@pytest.mark.parametrize("scores", [(3, 4, 5, 6), (6, 5, 4, 3)], ids=["better", "stalled"])
async def test_most_of_what_iterations_from_the_second_on_read_comes_from_the_cache(
    scores: tuple[int, ...], path: Path
) -> None:
    limits = Limits(max_iterations=3, patience=9, target=1.0, min_findings=1)
    script = replies(scores)
    model = Metered(path, lambda _: next(script))
    loop = compose(TASK, model=model, limits=limits, profile="code")
    used, calls = Usage(), []
    async for event in loop:
        if isinstance(event, BudgetUsed) and event.iteration >= 2:
            used += event.usage
            calls.append((event.stage, event.usage.prompt_tokens, event.usage.cached_tokens))
    assert [stage for stage, _, _ in calls] == ["revise", "judge"] * 2
    assert used.cached_tokens is not None
    print(f"cached {used.cached_tokens:,} of {used.prompt_tokens:,}: {calls}")
    assert used.cached_tokens >= 0.6 * used.prompt_tokens, calls
