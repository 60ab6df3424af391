"""Each loop of the page on other loops, `docs/loops.md`, runs as it stands there.

It does in a kernel: its Python is a cell, and so is its `%%refine`.
What it sends is that loop's own composition, or else what it sends without a notebook.
"""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kernel import Kernel
from kit import READY, code, critique, finding, text
from openai_server import Answer, ScriptedServer

from ipyrefine import refine
from ipyrefine.providers.scripted import ScriptedModel

PAGE = (Path(__file__).parents[2] / "docs/loops.md").read_text("utf-8")
LINES = re.findall(r"^\|.*?`(%%refine .+?)`", PAGE, re.MULTILINE)
SHOWN = re.findall(
    r"^###[^`]+(?:```python\n([^`]+)```[^`]+)?```\n(%%refine .+?)\n```", PAGE, re.M | re.S
)
JAVA = "public class Stack {\n    // push, pop and getMin: O(1)\n}"
WORST, LOWEST = ("def worst(grades):\n    return " + one for one in ("grades[0]", "min(grades)"))
STACK, FAST = ("class Stack:\n    " + one for one in ("items = []", "lows = []"))
MAIL = "Dear gardener, our can never drips."


def listed(*actions: str) -> str:
    return json.dumps({"feedback": actions, "done": not actions})


def generates(space: dict[str, Any], task: str, attempt: str = "", feedback: str = "") -> str:
    """How those loops put a generator's prompt together."""
    context = f"\nPrevious attempts:\n- {attempt}\nFeedback: {feedback}" if attempt else ""
    return f"{space['GENERATOR_PROMPT']}{context}\nTask: {task}"


def evaluates(space: dict[str, Any], task: str, text: str) -> str:
    """How those loops put an evaluator's prompt together."""
    return f"{space['EVALUATOR_PROMPT']}\nOriginal task: {task}\nContent to evaluate: {text}"


def lists(space: dict[str, Any], task: str, text: str) -> str:
    return f"{space['ACTIONS']}\nOriginal task: {task}".replace("{text}", text)


class Loop(NamedTuple):
    """What a loop of the page is replied to, and what comes of it."""

    replies: list[str]
    text: str
    sent: Callable[[dict[str, Any], str], dict[int, str]]  # its loop's own prompts, by the call
    options: Callable[[dict[str, Any]], dict[str, Any]] | None = None  # the same line, in Python


LOOPS = [
    Loop(
        [
            f"Thoughts: A list.\n\nResponse:\n{STACK}",
            '{"evaluation": "FAIL", "feedback": "it keeps no minimum"}',
            f"Thoughts: Two lists.\n\nResponse:\n{FAST}",
            '{"evaluation": "PASS", "feedback": ""}',
        ],
        FAST,
        lambda space, task: {
            0: generates(space, task),
            1: evaluates(space, task, STACK),
            2: generates(space, task, STACK, "it keeps no minimum"),
            3: evaluates(space, task, FAST),
        },
    ),
    Loop(
        [code(WORST), listed("Use min", "Say what grades are"), code(LOWEST), listed()],
        LOWEST,
        lambda space, task: {n: lists(space, task, one) for n, one in ((1, WORST), (3, LOWEST))},
        lambda space: {"prompts": space["mine"], "base": "latest", "max_revisions": 3},
    ),
    Loop(
        [text("Click to remove all items"), text("Empty the cart")],
        "Empty the cart",
        lambda *_: {},
        lambda space: {
            **{"checks": [space["score"]], "target": 0.9},
            **{"max_revisions": 3, "patience": 3, "delta": 0.01},
        },
    ),
    Loop(
        [
            json.dumps({"thoughts": "In Java.", "response": JAVA}),
            "<evaluation>PASS</evaluation>\n<feedback></feedback>",
        ],
        JAVA,
        lambda space, task: {0: generates(space, task), 1: evaluates(space, task, JAVA)},
    ),
    Loop(
        [
            text("Dear you, buy it."),
            critique(finding("No name is given"), finding("Nothing of the can")),
            text(MAIL, "f1: named\nf2: told"),
            READY,
        ],
        MAIL,
        lambda *_: {},
        lambda _: {"max_revisions": 1},
    ),
]


def words_of(content: str) -> str:
    """A prompt without what is by chance."""
    return re.sub(r"(?<=material-)\w+", "", content)


def test_every_loop_runs_as_it_stands_and_sends_what_its_own_does(tmp_path):
    assert [cell.partition("\n")[0] for _, cell in SHOWN] == LINES
    assert all(f"{own}\n{cell}".strip().count("\n") < 10 for own, cell in SHOWN)
    with ScriptedServer() as server:
        server.then(*(Answer(reply) for loop in LOOPS for reply in loop.replies))
        env = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "IPYREFINE_HOME"), str(tmp_path))
        with Kernel(env | {"OPENAI_BASE_URL": server.base_url, "IPYREFINE_MODEL": "a"}) as kernel:
            kernel.run("%load_ext ipyrefine")
            for (own, refined), loop in zip(SHOWN, LOOPS, strict=True):
                for cell in ("%reset -f", own, "limit = 10\nprint(limit)", refined):
                    reply = kernel.run(cell)
                    assert reply["status"] == "ok", reply
                results = eval(kernel.value("[refined_run.stop_reason.value, refined]"))
                assert results == ["passed", loop.text]
        assert not any("response_format" in body for body in server.bodies[:4])
        asked = [[words_of(one["content"]) for one in body["messages"]] for body in server.bodies]
    for (own, refined), loop in zip(SHOWN, LOOPS, strict=True):
        space: dict[str, Any] = {}
        exec(own, space)
        task = refined.partition("\n")[2]
        expected = {number: [prompt] for number, prompt in loop.sent(space, task).items()}
        if loop.options:  # some prompts are ours: as without a notebook
            model = ScriptedModel(loop.replies)
            asyncio.run(refine(task, model=model, **loop.options(space)))
            ours = [[words_of(m.content) for m in one.messages] for one in model.requests]
            expected = dict(enumerate(ours)) | expected
        assert {number: asked.pop(0) for number, _ in enumerate(loop.replies)} == expected
    assert not asked
