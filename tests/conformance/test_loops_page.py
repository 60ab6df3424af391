"""Each line of the page on other loops, `docs/loops.md`, runs as it stands there.

It does in IPython's terminal, with prompts and an evaluator as that loop has them.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from kit import READY, code, critique, finding, text
from openai_server import Answer, ScriptedServer

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
# Of each line: what the notebook holds before it, what stands below it, the replies, the result.
CELLS: list[tuple[str, str, list[str], str]] = [
    (
        f'mine = {{"draft": "{GENERATOR}", "judge": "{EVALUATOR}"}}',
        TASK,
        [generated(WORST), said("FAIL", "it is the first"), generated(LOWEST), said("PASS")],
        LOWEST,
    ),
    (
        f'mine = {{"judge": """{ACTIONS}"""}}',
        TASK,
        [code(WORST), listed("Use min", "Say what xs is"), code(LOWEST), listed()],
        LOWEST,
    ),
    (
        "def score(text, context):\n    return 0.95 if 'min' in text else 0.5",
        TASK,
        [code(WORST), code(LOWEST)],
        LOWEST,
    ),
    (
        f'mine = {{"draft": "{GENERATOR}", "judge": "{EVALUATOR}"}}',
        "用Java实现一个类 Worst",
        [json.dumps({"thoughts": "In Java.", "response": JAVA}), said("PASS")],
        JAVA,
    ),
    (
        "",
        TEMPLATE,
        [
            text("Dear you, buy it."),
            critique(finding("No name is given"), finding("Nothing of the can")),
            text(MAIL, "f1: named\nf2: told"),
            READY,
        ],
        MAIL,
    ),
]
RESULT = "print('RESULT', [str(refined_run.stop_reason), refined])"


def cells() -> list[str]:
    """The cells of all lines: what is there before, the line with what stands below, its result."""
    lines = [
        (before, f"{line}\n{task}", RESULT)
        for line, (before, task, *_) in zip(LINES, CELLS, strict=True)
    ]
    return ["%load_ext ipyrefine", *(cell for parts in lines for cell in parts if cell)]


def test_every_line_runs_as_it_stands(tmp_path):
    assert len(LINES) == len(CELLS)
    driver = tmp_path / "driver.py"
    driver.write_text(
        f"for cell in {cells()!r}:\n    get_ipython().run_cell(cell).raise_error()\n", "utf-8"
    )
    command = [sys.executable, "-m", "IPython", "--quick", "--colors=NoColor", str(driver)]
    with ScriptedServer() as server:
        server.then(*(Answer(reply) for cell in CELLS for reply in cell[2]))
        env = {**os.environ, "OPENAI_BASE_URL": server.base_url, "IPYREFINE_MODEL": "scripted"}
        ended = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        asked = len(server.requests)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    results = [eval(line) for line in re.findall(r"RESULT (\[.*\])", ended.stdout)]
    assert results == [["passed", text] for *_, text in CELLS]
    assert asked == sum(len(cell[2]) for cell in CELLS)
