"""Each line of the page on other loops, `docs/loops.md`, runs as it stands there.

It does in a kernel, with prompts and an evaluator as that loop has them, in cells above.
What it sends is that loop's own composition, or else what it sends without a notebook.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kernel import Kernel
from kit import READY, code, critique, finding, text
from openai_server import Answer, ScriptedServer

from ipyrefine import refine
from ipyrefine.providers.scripted import ScriptedModel

PAGE = (Path(__file__).parents[2] / "docs/loops.md").read_text("utf-8")
LINES = re.findall(r"^\|.*?`(%%refine .+?)`", PAGE, re.MULTILINE)
GENERATOR = "Solve the task, and mind the feedback.\\n\\nThoughts: a plan\\nResponse: the code"
EVALUATOR = "Is it right and fast? Say PASS, NEEDS_IMPROVEMENT or FAIL, and why, as JSON only."
ACTIONS = "How can this be better?\\n<code>\\n{text}\\n</code>\\nSet done if it need not be."
TEMPLATE = """\
[ITERATION 1]
Draft an email to plant owners about our watering can.

[ITERATION 2]
Name 2 weaknesses.

[ITERATION 3]
Rewrite it without them.

[ITERATION 4]
Is it ready? If not, what is missing?
"""
WORST = "def worst(xs):\n    return xs[0]"
LOWEST = "def worst(xs):\n    return min(xs)"
TASK = "Write `worst(xs)`, the lowest grade of xs."


def generated(written: str, plan: str = "I look at each.") -> str:
    return f"Thoughts: {plan}\n\nResponse:\n{written}"


def said(outcome: str, feedback: str = "") -> str:
    return json.dumps({"evaluation": outcome, "feedback": feedback})


def listed(*actions: str) -> str:
    return json.dumps({"feedback": actions, "done": not actions})


JAVA = "public class Worst {\n    static int of(int[] xs) { return xs[0]; }\n}"
MAIL = "Dear gardener, our can never drips."
MINE = f"""
limit = 10
RUBRIC = "Say PASS, NEEDS_IMPROVEMENT or FAIL"
GENERATOR_PROMPT = "{GENERATOR}"
EVALUATOR_PROMPT = f"Is it right and fast? {{RUBRIC}}, and why, as JSON only."
mine = {{"draft": GENERATOR_PROMPT, "judge": EVALUATOR_PROMPT}}
print(len(EVALUATOR_PROMPT), limit)
"""
SCORE = """
LOW = 0.5
def score(text, context):
    return 0.95 if 'min' in text else LOW
score("xs[0]", None)
"""


class Loop(NamedTuple):
    """A line of the page: what the notebook holds before it, and what comes of it."""

    before: str
    task: str
    replies: list[str]
    text: str
    options: dict[str, Any] | None = None  # the same line, in Python
    sent: Mapping[int, str] | None = None  # its loop's own prompts, by the number of the call


def generates(task: str, attempt: str = "", feedback: str = "") -> str:
    """How those loops put a generator's prompt together."""
    context = f"\nPrevious attempts:\n- {attempt}\nFeedback: {feedback}" if attempt else ""
    return f"{GENERATOR}{context}\nTask: {task}".replace("\\n", "\n")


def evaluates(task: str, text: str, prompt: str = EVALUATOR) -> str:
    """How those loops put an evaluator's prompt together."""
    return f"{prompt}\nOriginal task: {task}\nContent to evaluate: {text}"


IN_JAVA = "用Java实现一个类 Worst"
LOOPS = [
    Loop(
        MINE,
        TASK,
        [generated(WORST), said("FAIL", "it is the first"), generated(LOWEST), said("PASS")],
        LOWEST,
        sent={
            0: generates(TASK),
            1: evaluates(TASK, WORST),
            2: generates(TASK, WORST, "it is the first"),
            3: evaluates(TASK, LOWEST),
        },
    ),
    Loop(
        f'ACTIONS = """{ACTIONS}"""\nmine = dict(judge=ACTIONS)',
        TASK,
        [code(WORST), listed("Use min", "Say what xs is"), code(LOWEST), listed()],
        LOWEST,
        {"prompts": {"judge": ACTIONS.replace("\\n", "\n")}, "base": "latest", "max_revisions": 3},
        {
            n: f"{ACTIONS}\nOriginal task: {TASK}".replace("\\n", "\n").replace("{text}", text)
            for n, text in ((1, WORST), (3, LOWEST))
        },
    ),
    Loop(
        SCORE,
        TASK,
        [code(WORST), code(LOWEST)],
        LOWEST,
        {
            "checks": [lambda text, context: 0.95 if "min" in text else 0.5],
            **{"target": 0.9, "max_revisions": 3, "patience": 3, "delta": 0.01},
        },
    ),
    Loop(
        MINE,
        IN_JAVA,
        [json.dumps({"thoughts": "In Java.", "response": JAVA}), said("PASS")],
        JAVA,
        sent={0: generates(IN_JAVA), 1: evaluates(IN_JAVA, JAVA)},
    ),
    Loop(
        MINE,
        TEMPLATE,
        [
            text("Dear you, buy it."),
            critique(finding("No name is given"), finding("Nothing of the can")),
            text(MAIL, "f1: named\nf2: told"),
            READY,
        ],
        MAIL,
        {"max_revisions": 1},
    ),
]


def words_of(content: str) -> str:
    """A prompt without what is by chance, and without the name of the check that is a lambda."""
    return re.sub(r"(?<=material-)\w+", "", content).replace("<lambda>", "score")


def test_every_line_runs_as_it_stands_and_sends_what_its_loop_does(tmp_path):
    with ScriptedServer() as server:
        server.then(*(Answer(reply) for loop in LOOPS for reply in loop.replies))
        env = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "IPYREFINE_HOME"), str(tmp_path))
        with Kernel(env | {"OPENAI_BASE_URL": server.base_url, "IPYREFINE_MODEL": "a"}) as kernel:
            kernel.run("%load_ext ipyrefine")
            for line, loop in zip(LINES, LOOPS, strict=True):
                for cell in ("%reset -f", loop.before, f"{line}\n{loop.task}"):
                    reply = kernel.run(cell)
                    assert reply["status"] == "ok", reply
                results = eval(kernel.value("[refined_run.stop_reason.value, refined]"))
                assert results == ["passed", loop.text]
        asked = [[words_of(one["content"]) for one in body["messages"]] for body in server.bodies]
    for loop in LOOPS:
        expected = {number: [prompt] for number, prompt in (loop.sent or {}).items()}
        if loop.options:  # some prompts are ours: as without a notebook
            model = ScriptedModel(loop.replies)
            asyncio.run(refine(loop.task, model=model, **loop.options))
            ours = [[words_of(m.content) for m in one.messages] for one in model.requests]
            expected = dict(enumerate(ours)) | expected
        assert {number: asked.pop(0) for number, _ in enumerate(loop.replies)} == expected
    assert not asked
