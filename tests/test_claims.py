"""A critic's claims are run: a test that fails blocks, stays, and is run on every later text."""

import json
from typing import Any

import pytest
from kit import CODE, code, refinement, text, told, written

from ipyrefine import api, refine
from ipyrefine.checks import from_record
from ipyrefine.checks.suite import Suite
from ipyrefine.core.decisions import Continue
from ipyrefine.core.engine import Refinement
from ipyrefine.core.model import Budget, Limits, Outcome, Stage, StopReason, Task
from ipyrefine.core.testing import is_critics
from ipyrefine.kernel import masking
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.html import record_html
from ipyrefine.sandbox.sandbox import run_parts

TASK = CODE.model_copy(
    update={"text": "Write last(xs): the last item of a list, or None if it is empty."}
)
WRONG = "def last(xs):\n    return xs[-1]"
RENAMED = "def last(items):\n    return items[-1]"
RIGHT = "def last(xs):\n    return xs[-1] if xs else None"
EMPTY = 'def test_empty():\n    """None if it is empty"""\n    assert last([]) is None\n'
TUPLE = 'def test_tuple():\n    """Tuples are lists, too."""\n    assert last((1, 2)) == [2]\n'
READY = (
    '```json\n{"findings": [], "ready": true, "because": "It holds.", '
    '"fixed": ["f1"], "upheld": []}\n```'
)


RAN: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def each_text_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tests on the same text give the same, so that one process is enough for them."""

    async def run_once(*args: Any, **options: Any) -> Any:
        key = repr((args, options))
        if key not in RAN:
            RAN[key] = await run_parts(*args, **options)
        return RAN[key]

    monkeypatch.setattr(masking, "run_parts", run_once)


def critique(*tests: str) -> str:
    return f"It breaks.\n```python\n{''.join(tests)}```\n{READY}"


def criticised(*critiques: str, drafts: tuple[str, ...] = (WRONG, RIGHT), **limits: Any) -> Any:
    """A refinement whose writer writes these texts, and whose critic is soon content."""
    return by_stage([code(drafts[0])], [*critiques, *[READY] * 3], map(code, drafts[1:]), **limits)


def by_stage(
    drafts: Any, critiques: Any, revisions: Any, task: Task = TASK, **limits: Any
) -> Refinement:
    stages = (Stage.DRAFT, Stage.CRITIQUE, Stage.REVISE)
    replies = dict(zip(stages, map(list, (drafts, critiques, revisions)), strict=True))
    suite = Suite() if task.form == "code" else None
    return refinement(replies, task, suite=suite, limits=Limits(**limits))


def suites(loop: Refinement) -> list[dict[str, bool | None]]:
    """What each text's tests gave, by their names."""
    return [
        {p.words: r.passed for p, r in loop.state.cells(one) if is_critics(p) and not p.dropped}
        for one in loop.state.iterations
    ]


def asked(loop: Any) -> list[str]:
    return [request.purpose for request in loop.model.requests]


def last_prompt(loop: Any, number: int = -1) -> str:
    return str(loop.model.requests[number].messages[-1].content)


async def test_a_failing_test_blocks_is_sent_to_the_reviser_and_run_on_the_revision():
    loop = criticised(critique(EMPTY))
    run = await loop.run()
    assert suites(loop) == [{"test_empty": False}, {"test_empty": True}]
    assert asked(loop)[2] == "revise"
    assert "IndexError" in last_prompt(loop, 2)
    assert "None if it is empty" in last_prompt(loop, 2)
    assert (run.text, run.stop_reason) == (RIGHT, StopReason.PASSED)


async def test_a_test_may_rest_on_what_the_user_asked_for_later():
    loop = criticised(READY, critique(TUPLE), drafts=(RIGHT, RENAMED))
    await loop.run()
    loop.decide(Continue(guidance="Tuples are lists, too."))
    await loop.run()
    assert suites(loop)[-1] == {"test_tuple": False}
    assert is_critics(told(loop.state, -1)[-1].point)


INT = 'def test_list():\n    """the last item of a list"""\n    assert last([2.0]) is 2\n'


async def test_a_resumed_run_tries_its_tests_on_the_variables_too():
    rates = {"rates": [1, 2, 3]}
    summed = 'def test_sum():\n    """the sum of `rates`"""\n    assert total() == 6\n'
    wrong, right = (f"def total():\n    return {word}(rates)" for word in ("max", "sum"))
    run = await refine(
        "Write total(), which returns the sum of `rates`.",
        model=ScriptedModel([code(wrong), critique(summed)]),
        variables=rates,
        profile="code",
        max_revisions=0,
        journal=False,
    )
    again = api.resume(
        run,
        model=ScriptedModel([code(right), READY]),
        checks=from_record(run.setup.checks, variables=rates),
        variables=rates,
    )
    again.decide(Continue(revisions=1))
    await again.run()
    assert suites(again) == [{"test_sum": False}, {"test_sum": True}]


async def test_a_new_error_in_one_word_of_a_sentence_blocks():
    before = "You have thirty days to send the parcel back to us."
    after = before.replace("thirty", "sixty")
    wrong = {"criterion": "tone", "place": after, "problem": "It is thirty.", "blocks": True}
    first = critique_of({"criterion": "tone", "place": "", "problem": "Flat.", "blocks": True})
    replies = {
        Stage.CRITIQUE: [first, critique_of(wrong, fixed=["f1"])],
        Stage.REVISE: [text(after)],
    }
    run = await refinement(replies, draft=before, limits=Limits(max_revisions=1)).run()
    assert run.iterations[1].verdict.outcome is Outcome.NEEDS_IMPROVEMENT


def critique_of(*findings: dict[str, Any], **fields: Any) -> str:
    """A critic's reply with findings, who takes the text for not ready."""
    return json.dumps({"findings": findings, "ready": False, "because": "No.", **fields})


MAIL = "Come on Friday at nine. Bring the keys."
VAGUE = {"criterion": "clarity", "task": "the keys", "problem": "Which keys?", "blocks": True}


def mail(*critiques: str, revisions: list[str], **limits: Any) -> Refinement:
    task = TASK.replace(text="Ask for the keys.", form="prose")
    return by_stage([text(MAIL)], critiques, revisions, task=task, **limits)


async def test_a_revision_that_the_critic_calls_worse_leaves_its_parent_the_best():
    worse = critique_of(VAGUE, than_before="worse", lost="The time is gone.")
    shorter = text("Come on Friday. Bring the keys.")
    loop = mail(critique_of(VAGUE), worse, revisions=[shorter], max_revisions=1)
    run = await loop.run()
    assert run.text == MAIL
    assert "worse than the draft: The time is gone." in record_html(run)


TYPO = EMPTY.replace("[]", "no_items")
MOCKED = TYPO.replace("test_empty()", "test_empty(mocker)")


def fenced(*tests: str) -> str:
    return f"```python\n{''.join(tests)}```"


@pytest.mark.parametrize(
    "broken",
    [TYPO, MOCKED, EMPTY.replace("():", "("), f"{EMPTY}\n@slow\n{INT}"],
    ids=["a name", "a fixture", "no Python", "a decorator of another"],
)
async def test_a_test_that_fails_in_its_own_lines_is_mended_by_its_critic(broken):
    named = broken.replace("@slow\n", "") if "@slow" in broken else EMPTY
    loop = criticised(critique(broken), fenced(named), max_revisions=0)
    run = await loop.run()
    assert asked(loop) == ["draft", "critique", "critique"]
    assert "fail in their own lines" in last_prompt(loop)
    assert suites(loop)[0]["test_empty"] is False
    assert not any(one.dropped for one in written(run))
    assert run.repairs == 1


async def test_a_test_that_its_critic_does_not_mend_is_dropped_with_the_reason():
    loop = criticised(critique(TYPO, TUPLE), fenced(TYPO), drafts=(RIGHT,))
    run = await loop.run()
    assert asked(loop) == ["draft", "critique", "critique"]
    assert suites(loop) == [{"test_tuple": False}]
    [dropped] = [one for one in written(run) if one.dropped]
    assert (dropped.words, dropped.dropped) == ("test_empty", "broken")
    assert "name 'no_items' is not defined" in dropped.reason
    assert "name &#39;no_items&#39; is not defined" in record_html(run)


async def test_no_test_is_mended_once_no_reply_may_be_asked_for_again_or_the_budget_forbids_it():
    loop = by_stage(["", code(RIGHT)], ["?", critique(TYPO), fenced(EMPTY)], [], max_revisions=0)
    spent = criticised(critique(TYPO), drafts=(RIGHT,), budget=Budget(calls=2))
    for one in (loop, spent):
        assert [test.dropped for test in written(await one.run())] == ["broken"]
    assert asked(loop) == ["draft", "draft", "critique", "critique"]
    assert "JSON object" in last_prompt(loop), "a critique that cannot be read is asked for as one"
    assert spent.state.iterations[0].reading


async def test_a_mended_test_is_not_paid_for_twice():
    loop = criticised(critique(TYPO), fenced(EMPTY), max_revisions=0)
    seen: list[Any] = []
    await loop.run(lambda event, run: seen.append(run))
    cut = next(run for run in reversed(seen) if len(run.replies) == 2)
    again = refinement({Stage.CRITIQUE: []}, TASK, suite=Suite(), run=cut)
    run = await again.run()
    assert [one.code for one in written(run)] == [one.code for one in written(loop.state)]
    assert run.usage.calls == loop.state.usage.calls
