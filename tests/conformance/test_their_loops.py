"""What people with another loop have in hand, row by row: replies, evaluators, tasks, drafts.

Each row is one behaviour, under the letter of its system (see CONTRIBUTING). The inputs have the
shapes that those systems' models and functions have.
"""

import asyncio
import dataclasses
import enum
import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from kit import code
from own_prompts import EVALUATOR, GENERATOR, STACK, outcomes, problems
from pydantic import BaseModel

from ipyrefine import refine
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel

JAVA_TASK = "用Java实现一个计数器类 Counter, 要有文档。"
MAIL_TASK = "Write a short email that asks Ann for the report."
CODE = "class MinStack:\n    def push(self, x):\n        self.items.append((x, self.low(x)))"
JAVA = (
    '/** Counts. */\npublic class Counter {\n    private int count = 0;\n    String s = "a\\n";\n}'
)
MAIL = "Dear Ann,\n\nplease send me the report.\n\nBest,\nBob"
PLAN = "I keep the minimum beside each item."


READ_ONCE: dict[str, Any] = {"max_revisions": 0, "no_checks": ["all"], "journal": False}


async def generated(reply: str, task: str = STACK, **prompts: str) -> Run:
    """The run of one reply of a generator, by default with its own prompt."""
    own = prompts or {"draft": GENERATOR}
    checks, model = [lambda text: True], ScriptedModel([reply])
    return await refine(task, model=model, checks=checks, prompts=own, **READ_ONCE)


async def evaluated(*replies: str, prompt: str = EVALUATOR, **options: Any) -> Run:
    """The run of one text that an evaluator with its own prompt reads."""
    model, judge = ScriptedModel([code(CODE)]), ScriptedModel(replies)
    options = {**READ_ONCE, "judge": judge, **options}
    return await refine(STACK, model=model, prompts={"judge": prompt}, **options)


async def checked(function: Callable[..., Any], **options: Any) -> Run:
    """The run of one text that a function of the user's evaluates."""
    options = {**READ_ONCE, **options}
    return await refine(STACK, model=ScriptedModel([code(CODE)]), checks=[function], **options)


# A, B, D: what a generator writes


def shapes(text: str, language: str = "") -> dict[str, str]:
    """The shapes in which generators write their thoughts and a response."""
    both = json.dumps({"thoughts": PLAN, "response": text})
    fenced, raw = (
        f"```{language}\n{text}\n```",
        f'{{"thoughts": "{PLAN}",\n "response": "{text}"}}',
    )
    return {
        "words": f"Thoughts: {PLAN}\n\nResponse:\n{text}",
        "words, fenced": f"Thoughts: {PLAN}\n\nResponse:\n{fenced}",
        "headings": f"## Thoughts\n{PLAN}\n\n## Response\n{text}",
        "bold": f"**Thoughts:**\n{PLAN}\n\n**Response:**\n{text}",
        "numbered": f"1. Thoughts:\n{PLAN}\n\n2. Response:\n{text}",
        "words before": f"Sure, I will do that.\n\nThoughts: {PLAN}\n\nResponse:\n{text}",
        "tags": f"<thoughts>{PLAN}</thoughts>\n<response>\n{text}\n</response>",
        "a tag for thinking": f"<thinking>{PLAN}</thinking>\n\n{fenced}",
        "JSON": both,
        "JSON in a fence": f"```json\n{both}\n```",
        "JSON after words": f"Here is my solution:\n\n{both}",
        "JSON, raw line breaks": raw,
        "JSON, further keys": json.dumps({"thoughts": PLAN, "response": text, "confidence": 0.9}),
        "JSON, a fence inside": json.dumps({"thoughts": PLAN, "response": fenced}),
        "tildes": f"Thoughts: {PLAN}\n\nResponse:\n~~~\n{text}\n~~~",
    }


IN_JAVA = ("words", "words, fenced", "JSON", "JSON in a fence")
IN_PROSE = ("words", "headings", "tags", "JSON", "JSON, raw line breaks")
ALONE = {
    "the response alone": f"Response:\n{CODE}",
    "the response alone, fenced": f"**Response:**\n```python\n{CODE}\n```",
    "JSON of a response": json.dumps({"response": CODE}),
    "code": CODE,
    "a fence": f"Here you are.\n\n```python\n{CODE}\n```\n\nI hope it helps.",
}


@pytest.mark.parametrize("shape", shapes(CODE))
async def test_a_generators_thoughts_are_told_from_its_response(shape):
    run = await generated(shapes(CODE, "python")[shape])
    assert (run.text, run.usage.calls) == (CODE, 1)
    assert PLAN in run.iterations[0].thoughts


@pytest.mark.parametrize("shape", ALONE)
async def test_a_generator_may_give_the_response_alone(shape):
    run = await generated(ALONE[shape])
    assert (run.text, run.usage.calls) == (CODE, 1)


@pytest.mark.parametrize("own", [{"draft": GENERATOR}, {"revise": "Mend it."}], ids=["own", "ours"])
async def test_a_such_words_in_the_text_itself_are_part_of_it(own):
    prompt = f'PROMPT = """\nThoughts:\n[a plan]\n\nResponse:\n[it]\n"""\nPAIR = {shapes(CODE)}'
    assert (await generated(code(prompt), **own)).text == prompt


@pytest.mark.parametrize("shape", [*IN_JAVA, "bare"])
async def test_d_a_java_class_stays_java(shape):
    run = await generated({"bare": JAVA, **shapes(JAVA, "java")}[shape], JAVA_TASK)
    assert (run.text, run.task.language, run.task.form) == (JAVA, "java", "code")
    assert run.usage.calls == 1


@pytest.mark.parametrize("shape", [*IN_PROSE, "the response alone", "plain"])
async def test_a_prose_is_read_in_the_same_shapes(shape):
    alone = {"the response alone": f"Response:\n{MAIL}", "plain": MAIL}
    run = await generated({**shapes(MAIL), **alone}[shape], MAIL_TASK)
    assert (run.text, run.task.form, run.usage.calls) == (MAIL, "prose", 1)


# A, B, D: what an evaluator writes

WHY = "pop is linear"
FAIL = f'{{"evaluation": "FAIL", "feedback": "{WHY}"}}'
PASSED = {
    "JSON": '{"evaluation": "PASS", "feedback": ""}',
    "no feedback": '{"evaluation": "PASS", "feedback": null}',
    "pass is true": '{"pass": true, "feedback": ""}',
    "done": '{"feedback": [], "done": true}',
    "the word": "PASS",
    "the word, bold": "**PASS**",
    "reasons first": "All operations are O(1).\n\nVerdict: PASS",
}
FAILED = {
    "JSON": FAIL,
    "words before": f"I see.\n{FAIL}",
    "a number beside the word": FAIL.replace(", ", ', "score": 3, '),
    "a verdict": f'{{"verdict": "FAIL", "feedback": "{WHY}"}}',
    "nested": f'{{"evaluation": {{"verdict": "FAIL", "feedback": "{WHY}"}}}}',
    "another object quoted": f'{FAIL}\n\nReturn `{{"status": "PASS"}}` instead.',
    "the word and why": f"FAIL: {WHY}",
    "labelled": f"Evaluation: FAIL\nFeedback: {WHY}",
    "labelled, feedback first": f"Feedback: {WHY}\nVerdict: FAIL",
    "criteria in JSON": f'{{"speed": {{"verdict": "FAIL", "feedback": "{WHY}"}}, "style": "PASS"}}',
    "criteria, line by line": (
        f'{{"name": "speed", "verdict": "FAIL", "feedback": "{WHY}"}}\n'
        '{"name": "style", "verdict": "PASS", "feedback": ""}'
    ),
    "tags": f"<evaluation>FAIL</evaluation>\n<feedback>{WHY}</feedback>",
}
NEEDED = {
    "JSON": FAIL.replace("FAIL", "NEEDS_IMPROVEMENT"),
    "passed is false": f'{{"passed": false, "feedback": "{WHY}"}}',
    "the word on a line": f"NEEDS_IMPROVEMENT\n{WHY}",
}


@pytest.mark.parametrize("shape", PASSED)
async def test_an_evaluators_pass_is_read(shape):
    run = await evaluated(PASSED[shape])
    assert (outcomes(run), run.usage.calls) == (["PASS"], 2)


@pytest.mark.parametrize(
    ("outcome", "reply"),
    [("FAIL", reply) for reply in FAILED.values()]
    + [("NEEDS_IMPROVEMENT", reply) for reply in NEEDED.values()],
    ids=[*(f"fail: {shape}" for shape in FAILED), *(f"needs: {shape}" for shape in NEEDED)],
)
async def test_an_evaluators_word_and_feedback_are_read(outcome, reply):
    run = await evaluated(reply)
    assert (outcomes(run), problems(run), run.usage.calls) == ([outcome], [WHY], 2)


@pytest.mark.parametrize(
    ("reply", "feedback"),
    [
        ('{"evaluation": "FAIL", "feedback": "one\ntwo"}', ["one\ntwo"]),
        ('{"feedback": ["Add hints", "Add docs"], "done": false}', ["Add hints", "Add docs"]),
        (
            '{"feedback": ["Write what push(x) does", "Write what pop() does"], "done": false}',
            ["Write what push(x) does", "Write what pop() does"],
        ),
        (f"The code is short, but {WHY}.\n\nVerdict: FAIL", [f"The code is short, but {WHY}."]),
    ],
    ids=["raw line breaks", "a list", "actions that share their words", "reasons first"],
)
async def test_all_that_an_evaluator_says_is_feedback(reply, feedback):
    assert problems(await evaluated(reply)) == feedback


DENIED = [
    f"PASS? No. {WHY}.", f"PASS: no, {WHY}", f"2 of 3 criteria: PASS, but {WHY}",
    f"PASS\n\nActually no: {WHY}", f"{WHY}。不是 PASS", f'{{"evaluation": "PASS - {WHY}"}}',
]  # fmt: skip


@pytest.mark.parametrize("reply", DENIED)
async def test_a_pass_that_is_denied_is_none(reply):
    run = await evaluated(reply, reply)
    assert (outcomes(run), run.usage.calls) == (["NOT_JUDGED"], 3)
    assert problems(run) == [reply]


# C: scores

OF_TEN = "Rate it from 1 to 10."
SCORES: dict[str, tuple[str, str, float]] = {
    "JSON": ("Score it.", '{"score": 0.85}', 0.85),
    "bare": ("Score it from 0 to 1.", "0.85", 0.85),
    "of ten": (OF_TEN, "8/10", 0.8),
    "of five": ("Rate it.", "4 out of 5", 0.8),
    "per cent": ("Rate it.", "Score: 85%", 0.85),
    "the prompt's scale": (OF_TEN, "8", 0.8),
    "the prompt's scale, JSON": ("Score it (0-10).", '{"score": 8, "feedback": "ok"}', 0.8),
    "the prompt's scale, of a hundred": ("A score between 0 and 100, please.", "Score: 85", 0.85),
    "one of ten is the worst": (OF_TEN, '{"score": 1}', 0.1),
    "tags": (OF_TEN, "<score>8</score><feedback>ok</feedback>", 0.8),
    "reasons first": (OF_TEN, "It has 3 methods and 2 flaws.\nScore: 8", 0.8),
}


@pytest.mark.parametrize("shape", SCORES)
async def test_c_a_score_is_read_on_the_scale_that_is_named(shape):
    prompt, reply, score = SCORES[shape]
    run = await evaluated(reply, prompt=prompt, target=0.95)
    assert run.score_history == (pytest.approx(score),)
    assert run.usage.calls == 2


@pytest.mark.parametrize("reply", ["8", '{"score": 11}', '{"score": -1}', '{"score": NaN}', "110%"])
async def test_c_a_number_that_fits_no_named_scale_is_asked_about_once(reply):
    run = await evaluated(reply, "0.8", prompt="Score it.", target=0.9)
    assert (run.score_history, run.usage.calls) == ((0.8,), 3)


# Functions as evaluators


class Evaluation(BaseModel):
    evaluation: Literal["PASS", "NEEDS_IMPROVEMENT", "FAIL"]
    feedback: str


class Word(enum.Enum):
    PASS = "PASS"
    FAIL = "FAIL"


class Number(enum.Enum):
    PASS = 1
    FAIL = 3


class Text(enum.StrEnum):
    PASS = enum.auto()
    FAIL = enum.auto()


@dataclasses.dataclass
class Data:
    evaluation: Any
    feedback: str


class Feedback(BaseModel):
    feedback: list[str]
    done: bool


RESULTS: dict[str, Any] = {
    "a pair": ("FAIL", WHY),
    "a dict": {"evaluation": "FAIL", "feedback": WHY},
    "JSON": json.dumps({"evaluation": "FAIL", "feedback": WHY}),
    "pydantic": Evaluation(evaluation="FAIL", feedback=WHY),
    "a dataclass": Data("FAIL", WHY),
    "an enum by name": Data(Number.FAIL, WHY),
    "an enum of texts": Data(Text.FAIL, WHY),
    "by criterion": {"speed": {"verdict": "FAIL", "feedback": WHY}, "style": "PASS"},
    "a list by criterion": [{"verdict": "PASS"}, {"verdict": "FAIL", "feedback": WHY}],
}


@pytest.mark.parametrize("shape", RESULTS)
async def test_a_a_functions_word_keeps_its_kind(shape):
    run = await checked(lambda text: RESULTS[shape])
    assert (outcomes(run), problems(run)) == (["FAIL"], [WHY])


@pytest.mark.parametrize("result", [["PASS", "FAIL", "PASS"], ("PASS", "FAIL"), (0.95, "FAIL")])
async def test_a_one_fail_among_a_functions_words_is_a_fail(result):
    assert outcomes(await checked(lambda text: result)) == ["FAIL"]


async def test_c_a_functions_score_may_have_a_decimal_comma():
    assert (await checked(lambda text: {"score": "0,85"})).score_history == (0.85,)


@pytest.mark.parametrize(
    "result",
    [
        Word.PASS, Number.PASS, Text.PASS, "PASS", ("PASS", ""), Feedback(feedback=[], done=True),
        0.95,
    ],
    ids=str,
)  # fmt: skip
async def test_a_a_functions_pass_passes(result):
    run = await checked(lambda text: result, target=0.9)
    assert (outcomes(run), run.usage.calls) == (["PASS"], 1)


async def test_b_a_functions_list_keeps_every_action():
    items = ["Add a docstring to push(x)", "Add a docstring to pop()"]
    said = Feedback(feedback=items, done=False)
    assert problems(await checked(lambda text: said)) == items


def in_a_loop(text: str) -> float:
    async def inner() -> float:
        await asyncio.sleep(0)
        return 0.95

    return asyncio.run(inner())


async def later(text: str, context: object) -> float:
    return 0.95


def with_keyword(text: str, *, scale: float = 0.95) -> float:
    return scale


@pytest.mark.parametrize(
    "function",
    [lambda text: 0.95, lambda text, _: 0.95, later, in_a_loop, with_keyword],
    ids=["sync", "with the task", "async", "runs a loop", "with a keyword"],
)
async def test_c_an_evaluator_may_be_sync_or_async_and_take_the_task(function):
    run = await checked(function, target=0.9)
    assert (run.score_history, run.stop_reason, run.usage.calls) == ((0.95,), "passed", 1)


# D: tasks and texts in other languages


@pytest.mark.parametrize(
    ("task", "language"),
    [
        ("用Java实现一个Stack类", "java"),
        ("Schreib eine Java-Klasse Stack mit push und pop.", "java"),
        ("Escribe una función en SQL que sume las ventas.", "sql"),
        ("Implement a Stack class in Java.", "java"),
        ("Write a shell script that counts lines.", "bash"),
    ],
)
async def test_d_the_task_may_be_in_any_language(task, language):
    run = await generated(f"```{language}\nx\n```", task, revise="Mend it.")
    assert (run.task.form, run.task.language, run.text) == ("code", language, "x")


DRAFTS = {
    "java": JAVA,
    "typescript": "interface User {\n  name: string;\n}\n\nexport function hi(u: User): string {\n"
    "  return `Hi ${u.name}`;\n}",
    "javascript": "function add(a, b) {\n  return a + b;\n}\n\nconsole.log(add(1, 2));",
    "go": 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hi")\n}',
    "rust": 'fn main() {\n    let mut n = 0;\n    n += 1;\n    println!("{}", n);\n}',
    "sql": "SELECT name, SUM(amount) AS total\nFROM sales\nWHERE year = 2024\nGROUP BY name;",
    "bash": '#!/bin/bash\nfor f in *.txt; do\n  wc -l "$f"\ndone',
    "cpp": "#include <iostream>\n\nint main() {\n    std::cout << 1;\n    return 0;\n}",
}


async def kept(draft: str, task: str = "") -> Run:
    """The run of a draft of the user's that nothing is said against."""
    checks = [lambda text: True]
    return await refine(task, draft=draft, model=ScriptedModel([]), checks=checks, max_revisions=0)


@pytest.mark.parametrize("language", DRAFTS)
async def test_d_a_draft_without_a_fence_stays_code(language):
    run = await kept(DRAFTS[language], "Improve it.")
    assert (run.task.form, run.task.language, run.text) == ("code", language, DRAFTS[language])


@pytest.mark.parametrize(
    "draft",
    [
        MAIL,
        "Select a table from the list; where you sit is up to you.",
        "We import fruit from Spain. Let me know; I am in the office.",
        "# Heading\n\n- one\n- two; three\n\nSome words (in brackets) and more.",
        "The function of the heart is to pump blood through the body;\nthe lungs return it.",
    ],
)
async def test_d_prose_stays_prose(draft):
    assert (await kept(draft)).task.form == "prose"
