"""The benches' own parts: what they keep, replay, grade and compute."""

import ast
import asyncio
import difflib
import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "bench"))

pytest.importorskip("tqdm")

import arms
import code_tasks
import judge
import loops
import measure
import submissions

from ipyrefine.core.model import Choice, Limits, Question, Usage
from ipyrefine.core.ports import Message, Reply, Request
from ipyrefine.providers.scripted import ScriptedModel


def request(content, **fields):
    return Request(messages=(Message(role="user", content=content),), **fields)


def replies(path, *answers):
    return measure.Replies("m", path, ask=bool(answers), choose=lambda _: ScriptedModel(answers))


async def test_a_reply_is_kept_at_once_with_its_probabilities_and_usage(tmp_path):
    path = tmp_path / "kept.jsonl"
    usage = Usage(calls=1, prompt_tokens=7, cached_tokens=5, completion_tokens=2)
    said = Reply(text="yes no", probabilities=(0.75, None), usage=usage)
    await measure.complete(replies(path, said), request("a", answers=2))
    again = await measure.complete(replies(path), request("a", answers=2))
    assert again.model_copy(update={"usage": usage}) == said
    assert again.usage.model_copy(update={"seconds": 0.0}) == usage
    assert again.usage.seconds > 0


async def test_a_replay_names_what_it_lacks_and_asks_nobody(tmp_path):
    model = replies(tmp_path / "kept.jsonl")
    with pytest.raises(measure.MissingReply, match="lacks a judge reply"):
        await measure.complete(model, request("a", purpose="judge"))
    with pytest.raises(SystemExit, match=r"after 3 of 9 cases.*--ask"):
        raise_stop(model)
    assert not (tmp_path / "kept.jsonl").exists()


def raise_stop(model):
    try:
        measure.stop(model, 3, 9)
    except SystemExit as error:
        raise SystemExit(" ".join(str(error).split())) from None


async def test_a_line_cut_by_a_stop_is_asked_for_again(tmp_path):
    path = tmp_path / "kept.jsonl"
    await measure.complete(replies(path, "one"), request("a"))
    path.write_text(path.read_text("utf-8")[:-20], "utf-8")
    await measure.complete(replies(path, "two"), request("a"))
    assert (await measure.complete(replies(path), request("a"))).text == "two"


def test_a_request_is_known_by_what_the_model_is_sent():
    one = request("<material-1a2b>x</material-1a2b> <f at 0x7f12ab34cd56>", purpose="judge")
    other = request("<material-99ff>x</material-99ff> <f at 0x7f0000000000>", inputs=("x",))
    assert measure.hash_request(one) == measure.hash_request(other)
    assert measure.hash_request(one) != measure.hash_request(one.model_copy(update={"answers": 1}))
    assert measure.hash_request(one) != measure.hash_request(one.model_copy(update={"seed": 1}))


MBPP = {
    "task_id": "own",
    "prompt": '"""\nReturn the pairs.\nassert pairs([1]) == [(1, 1)]\n"""\n',
    "entry_point": "pairs",
    "atol": 0,
    "cases": [[[[1]], [[1, 1]]], [[[0.1, 0.2]], [0.1, 0.3]]],
}
PAIRS = "def pairs(x):\n    return [(1, 1)] if x == [1] else [{}]\n"


@pytest.mark.parametrize(
    ("text", "solves"),
    [
        (PAIRS.format("0.1, 0.1 + 0.2"), True),
        (PAIRS.format("0.1, 0.3001"), False),
        (PAIRS.format("0.1"), False),
        ("raise SystemExit(0)", False),
        ("", False),
    ],
)
async def test_hidden_cases_are_compared_with_a_tolerance_for_floats(text, solves):
    assert await code_tasks.Mbpp(MBPP).solves(text) is solves


async def test_results_are_compared_as_sets_where_the_stated_assert_does_so():
    fields = {"entry_point": "f", "atol": 0, "cases": [[["b a"], ["a", "b"]]], "task_id": "own/1"}
    ordered = code_tasks.Mbpp({**fields, "prompt": "Split.\nassert f('b') == ['b']"})
    unordered = code_tasks.Mbpp({**fields, "prompt": "Split.\nassert set(f('b')) == {'b'}"})
    for text in ("def f(s):\n    return set(s.split())", "def f(s):\n    return s.split()"):
        assert await unordered.solves(text)
    assert not await ordered.solves("def f(s):\n    return s.split()")
    assert not await unordered.solves("def f(s):\n    return [s]")


async def test_a_unit_test_file_decides_on_a_module():
    tests = (
        "import unittest\nfrom own import f\n\nclass T(unittest.TestCase):\n"
        "    def test_f(self):\n        self.assertEqual(f(2), 4)\n"
    )
    fields = {"slug": "own", "module": "own", "tests": tests, "instructions": "Square.", "stub": ""}
    case = code_tasks.Exercism({**fields, "solution": ""})
    assert await case.solves("def f(x):\n    return x * x\n")
    assert not await case.solves("def f(x):\n    return x\n")
    assert not await case.solves("raise SystemExit(0)")


async def test_a_question_is_answered_where_the_reference_knows():
    question = Question(call="pairs([1])", choices=(Choice(result="[(1, 1)]"),))
    assert await code_tasks.Mbpp(MBPP).answer(question) == "[(1, 1)]"
    unknown = question.model_copy(update={"call": "pairs([5])"})
    assert await code_tasks.Mbpp(MBPP).answer(unknown) is None
    assert await code_tasks.evaluate("def f(x):\n    return x[0]\n", QUESTION) == "IndexError"


QUESTION = Question(call="f(empty)", setup="empty = []", choices=(Choice(result="None"),))


async def test_arms_share_the_draft_and_each_pays_for_it(tmp_path):
    path = tmp_path / "kept.jsonl"
    right = "```python\n" + PAIRS.format("0.1, 0.3") + "```"
    wrong = "```python\ndef pairs(x):\n    return []\n```"
    model = replies(path, wrong, right, right)
    plan = arms.Plan(("examples decisive",), Limits(max_revisions=1, candidates=2))
    row = await arms.run_case(code_tasks.Mbpp(MBPP), model, plan)
    assert (row.draft.solved, row.resampling.solved, row.loop.solved) == (False, True, True)
    assert row.resampling.accepted
    assert row.loop.accepted
    assert row.visible
    assert row.loop.usage.calls == row.resampling.usage.calls == 2
    assert model.asked == 2
    assert "| solved | 0 of 1: 0.0 % (0.0 to 0.0) | 1 of 1" in arms.report([row], "own")


WRONG = "```python\ndef pairs(x):\n    return []\n```"
RIGHT = f"```python\n{PAIRS.format('0.1, 0.3')}```"
FAILED = '{"evaluation": "FAIL", "feedback": "It returns no pairs."}'
PASSED = '{"evaluation": "PASS", "feedback": ""}'
WEAK = '{{"criterion": "unclear code", "severity": "blocking", "quote": "[]", "problem": "{}"}}'
WEAKNESSES = ", ".join(map(WEAK.format, ("no pairs", "ignores x", "no docstring")))
LOOP_REPLIES = {
    "until PASS": (WRONG, FAILED, RIGHT, PASSED),
    "feedback lists": (
        WRONG,
        '{"feedback": ["Return the pairs."], "done": false}',
        RIGHT,
        '{"feedback": [], "done": true}',
    ),
    "scored": (
        WRONG,
        '{"score": 0.2, "feedback": "It returns no pairs."}',
        RIGHT,
        '{"score": 0.95, "feedback": ""}',
    ),
    "evaluator-optimizer": (
        f"Thoughts: none\nResponse: {WRONG}",
        FAILED,
        f"Thoughts: pairs\nResponse: {RIGHT}",
        PASSED,
    ),
    "four phases": (WRONG, f'{{"findings": [{WEAKNESSES}]}}', RIGHT, PASSED),
}


@pytest.mark.parametrize("name", loops.LOOPS)
async def test_a_well_known_loop_ends_when_its_own_evaluator_is_content(name, tmp_path):
    model = replies(tmp_path / "kept.jsonl", *LOOP_REPLIES[name])
    outcome = await loops.run_loop(name, code_tasks.Mbpp(MBPP), model)
    assert (outcome.solved, outcome.accepted) == (True, True)
    assert (outcome.usage.calls, model.asked) == (4, 4)


def test_an_arm_counts_the_tasks_before_the_first_that_lacks_a_reply(tmp_path):
    path, case = tmp_path / "kept.jsonl", code_tasks.Mbpp(MBPP)
    writer = replies(path, *LOOP_REPLIES["until PASS"])
    asyncio.run(loops.run_loop("until PASS", case, writer))
    other = code_tasks.Mbpp({**MBPP, "prompt": "Return the triples."})
    found = loops.run_arms([case, other, case], replies(path))
    loops.write(tmp_path / "data" / "loops.json", "m", found)
    written = json.loads((tmp_path / "data" / "loops.json").read_text("utf-8"))["loops"]
    assert {name: row["tasks"] for name, row in written.items() if row["tasks"]} == {
        "until PASS": 1
    }
    tokens = found["until PASS"][0].usage.tokens
    counts = {"tasks": 1, "solved": 1, "accepted": 1, "wrong": 0, "tokens": tokens}
    assert written["until PASS"] == counts


def test_a_text_that_nothing_decides_on_counts_as_accepted():
    wrong = arms.Outcome(solved=False, accepted=None, usage=Usage(prompt_tokens=3))
    refused = arms.Outcome(solved=False, accepted=False, usage=Usage(completion_tokens=4))
    counts = loops.count([wrong, refused])
    assert counts == {"tasks": 2, "solved": 0, "accepted": 1, "wrong": 1, "tokens": 7}


def test_the_area_under_the_curve_counts_ties_half():
    assert judge.auroc([(0.9, True), (0.1, False)]) == 1
    assert judge.auroc([(0.5, True), (0.5, False)]) == 0.5
    assert judge.auroc([(0.5, True), (0.5, False), (0.2, True)]) == 0.25
    assert judge.auroc([(0.5, True)]) == 0.5


DIVIDE = """
def divide(a, b):
    if b == 0:
        raise ValueError("zero")
    return a // b
"""
DIVIDE_TESTS = """
import unittest
from divide import divide

class DivideTest(unittest.TestCase):
    def test_all(self):
        self.assertEqual(divide(6, 3), 2)
        self.assertEqual(divide(*[6, 2]), 3)
        self.assertEqual(divide(9, 3), 3)

    def test_zero(self):
        with self.assertRaises(ValueError):
            divide(1, 0)
"""


def test_a_teachers_examples_are_plain_calls_of_the_tests_and_one_that_raises():
    case = {"module": "divide", "tests": DIVIDE_TESTS}
    assert submissions.examples(case, first=True) == [">>> divide(6, 3)\n2"]
    assert submissions.examples(case, first=False) == [
        ">>> divide(6, 3)\n2",
        ">>> divide(9, 3)\n3",
        ">>> divide(1, 0)\nTraceback (most recent call last):\nValueError",
    ]
    other = DIVIDE_TESTS.replace("divide(6, 3)", "divide(6, len([1]))").replace("9, 3", "9, b=3")
    assert submissions.examples(case | {"tests": other}, first=False) == []


def test_mutants_are_the_solution_and_texts_with_one_change_each():
    first, *rest = submissions.mutants(DIVIDE, 20)
    assert first == ast.unparse(ast.parse(DIVIDE))
    assert len({first, *rest}) == len(rest) + 1 == 7
    assert first.replace("a // b", "a * b") in rest
    for text in rest:
        pairs = difflib.unified_diff(first.splitlines(), text.splitlines(), n=0, lineterm="")
        assert sum(line.startswith("-") for line in pairs) == 2  # the head of the diff, and a line
    assert len(submissions.mutants(DIVIDE, 3)) == 4


def test_a_spread_ruling_is_wrong_where_a_member_differs_from_its_representative():
    right = [True, True, False, False, True]
    spread = submissions.spread_of([(0, (0, 1, 2)), (3, (3, 4))], right)
    assert spread == submissions.Spread(submissions=5, groups=2, lenient=1, strict=1)
    assert spread.spread == 3
