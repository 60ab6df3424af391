"""Time what keeps the kernel's event loop from anything else while replies and texts are read.

``python bench/freezes.py [--seconds 20]``: a table in milliseconds of processor time, with a
row for each step and a column for each size of the text or reply. A step that takes longer than so
many seconds is given up. *hostile* is the slowest of replies that are one sign, tag or word again
and again. *loop* is the longest time that the event loop stood still in a run on scripted replies,
with secrets masked: a user's text of that size, a critique, an edit that misses, one that fits, and
a second critique. The last rows draw the panel, once after the edit and once more.
"""

import argparse
import asyncio
import json
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from kit import TASK, finding, judgement, refinement, staged

from ipyrefine.core import edits, evaluations, points
from ipyrefine.core.critiques import read_critique
from ipyrefine.core.forms import Asked, read_code, read_words
from ipyrefine.core.model import Criterion, Setup, Stage, Task
from ipyrefine.core.prompts import Prompts, Requests, fence, make_nonce
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import visible
from ipyrefine.core.table import Cell, Point, Result
from ipyrefine.kernel.masking import Masked, Secrets
from ipyrefine.kernel.redaction import redact, replace_secrets
from ipyrefine.render import diff
from ipyrefine.render.html import View, panel_parts

SIZES = (1_000, 7_000, 28_000, 100_000, 240_000)
UNITS = (
    *(" ", "\n", "{", "[{", "`", "```\n", "<", "<find>", "<find>a</find>\n<replace>", "<tests>"),
    *("<<<<<<<\n=======\n", "<response>", "*", "# ", "f1: ", "f1:\n", '"', '{"a":'),
    *('{"a":1},', "{,", "PASS ", "not ", "1/", "a=", "key: ", "a\n\n"),
)
_RANDOM = random.Random(0)
_WORDS = [
    "".join(_RANDOM.choices("abcdefghijklmnoprstuvw", k=_RANDOM.randint(2, 10)))
    for _ in range(3_000)
]


def prose(size: int) -> str:
    """Return so many characters of prose, in paragraphs of some sentences."""
    paragraphs, length = list[str](), 0
    while length < size:
        sentences = (
            " ".join(_RANDOM.choices(_WORDS, k=_RANDOM.randint(6, 18))).capitalize() + "."
            for _ in range(_RANDOM.randint(3, 8))
        )
        paragraphs.append(" ".join(sentences))
        length += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)[:size]


def code(size: int) -> str:
    """Return about so many characters of Python."""
    parts, length = list[str](), 0
    while length < size:
        a, b, c = _RANDOM.sample(_WORDS, 3)
        number = len(parts)
        parts.append(
            f"def {a}_{number}({b}_, {c}_=1):\n    if {b}_ > {number}:\n        return {c}_\n"
            f"    {a}_ = [{b}_ + one for one in range({number})]\n    return {a}_\n\n"
        )
        length += len(parts[-1]) + 1
    return "\n".join(parts)


class Material:
    """The texts and replies of one size.

    Args:
        size: characters.
    """

    def __init__(self, size: int) -> None:
        self.text, self.code = prose(size), code(size)
        paragraphs = self.text.split("\n\n")
        middle = paragraphs[len(paragraphs) // 2]
        self.edited = self.text.replace(middle, f"{middle} One more sentence is here.")
        self.rewritten = prose(size)
        words = middle.split()
        self.miss = edits.Edit(" ".join([*words[:5], "misquoted", *words[6:]]), "Other words.")
        block = self.text[size // 3 : size // 3 + 8_000].split()
        block[len(block) // 2] = "misquoted"
        self.long_miss = edits.Edit(" ".join(block), "Other words.")
        picked = _RANDOM.sample(paragraphs, min(60, len(paragraphs)))
        self.exact = [edits.Edit(one, "Other words.") for one in picked]
        self.named = [
            {"problem": prose(max(20, size // 60)), "fix": "Mend it.", "severity": "blocking"}
            for _ in range(60)
        ]
        places = [" ".join(one.split()[:12]) for one in picked]
        self.quoting = [{"problem": "It is dull.", "place": one} for one in places]
        self.many = [{"problem": " ".join(_RANDOM.choices(_WORDS, k=9))} for _ in range(size // 80)]

    def run(self) -> Run:
        """Return a run with a draft and a revision of it, 60 findings and evidence."""
        points = {
            f"f{n}": Point(id=f"f{n}", criterion="tone", words=one["problem"])
            for n, one in enumerate(self.named)
        }
        results = dict.fromkeys(points, Result(passed=False))
        found = Result(name="run", passed=False, shows=self.text[:4_000], computed=True)
        task = Task(text="Write it.", criteria=(Criterion(name="tone", definition="Friendly."),))
        run = Run.begin(Setup(task=task, draft=self.text, checks=("run",)))
        first = Iteration(number=0, text=self.text, results=results, author="user")
        second = Iteration(number=1, parent=0, text=self.edited, results=results, evidence=(found,))
        return run.replace(iterations=(first, second), points=points)


Work = Callable[[], Any]


def steps(material: Material) -> dict[str, Work]:
    """Return what the event loop does with a text or a reply of a size, by name."""
    text, edited, run = material.text, material.edited, material.run()
    requests = Requests(Prompts(), make_nonce(b"x" * 32))
    finding_list = json.dumps({"findings": material.named, "ready": False})
    quoting = json.dumps({"findings": material.quoting, "ready": False})
    many = json.dumps({"findings": material.many, "ready": False})
    named = [Point(criterion="a", blocking=False, words=o["problem"]) for o in material.many][:60]
    cells = [Cell(one, Result(passed=False)) for one in named]
    marked = f"f1: done\n<text>\n{text}\n</text>"
    return {
        "reply: prose": lambda: read_words(marked, Asked(Task(text=""))),
        "reply: code": lambda: read_code(f"```python\n{material.code}\n```", Asked(Task(text=""))),
        "reply: critique, 60 findings": lambda: read_critique(finding_list, "a b"),
        "reply: critique, 60 findings with quotes": lambda: read_critique(quoting, text),
        "reply: critique, many findings": lambda: read_critique(many, "a b"),
        "reply: evaluation": lambda: evaluations.read_evaluation(f"{text}\n\nScore: 8/10"),
        "one edit": lambda: edits.apply(text, material.exact[:1]),
        "60 edits": lambda: edits.apply(text, material.exact),
        "a missed edit": lambda: edits.apply(text, [material.miss]),
        "a missed edit of 8 kB": lambda: edits.apply(text, [material.long_miss]),
        "sections lost": lambda: edits.losses(text, edited),
        "findings told apart": lambda: points.drop_known(run, named, cells),
        "secrets masked": lambda: replace_secrets(text, lambda _: "[secret]"),
        "secrets masked in code": lambda: replace_secrets(material.code, lambda _: "[secret]"),
        "output redacted": lambda: redact(text[:2_000]),
        "fence": lambda: fence(text, make_nonce(b"x" * 32)),
        "outputs withheld": lambda: visible(run, "structure"),
        "prompt: critique of a revision": lambda: requests.critique(run, 1),
        "prompt: revision": lambda: requests.revise(run, 1),
        "findings of a text": lambda: points.checked(run, run.iterations[1]),
        "difference by word": lambda: diff.words(text, edited),
        "difference by line": lambda: diff.rows(
            material.code, material.code.replace("_1(", "(", 1)
        ),
        "difference, all is new": lambda: diff.words(text, material.rewritten),
        "prose as HTML": lambda: diff.prose_html(text),
    }


READERS: dict[str, Callable[[str], Any]] = {
    "hostile: prose": lambda reply: read_words(reply, Asked(Task(text=""))),
    "hostile: edits": edits.read_edits,
    "hostile: critique": lambda reply: read_critique(reply, "a b"),
    "hostile: evaluation": evaluations.read_evaluation,
    "hostile: notes": lambda reply: points.read_notes(reply, ()),
    "hostile: fence": lambda reply: fence(reply, make_nonce(b"x" * 32)),
    "hostile: secrets": lambda reply: replace_secrets(reply, lambda _: "[secret]"),
}


class Late(Exception):
    """A step takes too long."""


def timed(work: Work, seconds: float) -> float:
    """Return the processor time of some work in milliseconds; infinite where it takes too long."""

    def stop(*_: object) -> None:
        raise Late

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    start = thread_time()
    try:
        work()
    except Late:
        return float("inf")
    except Exception:  # a reply that cannot be read is refused
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return (thread_time() - start) * 1_000


def slices(work: Callable[[], Any]) -> float:
    """Return the longest processor time of one turn of the event loop, in milliseconds."""
    longest, run = 0.0, asyncio.Handle._run

    def measured(handle: Any) -> None:
        nonlocal longest
        start = thread_time()
        run(handle)
        longest = max(longest, (thread_time() - start) * 1_000)

    asyncio.Handle._run = measured  # type: ignore[method-assign]
    try:
        asyncio.run(work())
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]
    return longest


def refine(material: Material) -> Any:
    """Return a run on scripted replies; see the head of this module."""
    good, bad = material.exact[0], material.miss
    marks = "f1: done\n<find>\n{}\n</find>\n<replace>\n{} \n</replace>"
    script = {
        Stage.CRITIQUE: [judgement(4, finding("It is dull.", good.find[:60])), judgement(9)],
        Stage.REVISE: [marks.format(*bad), marks.format(good.find, f"{good.find} More.")],
    }
    return refinement(Masked(staged(script), Secrets()), TASK, draft=material.text)


def panel(run: Run) -> Any:
    """Draw a panel."""
    return panel_parts(run, View(), "")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    timed(lambda: slices(refine(Material(1_000)).run), seconds)  # what is imported at first
    timed(lambda: panel(Material(1_000).run()), seconds)
    table = dict[str, list[float]]()
    for size in SIZES:
        material = Material(size)
        for name, work in steps(material).items():
            table.setdefault(name, []).append(timed(work, seconds))
        for name, read in READERS.items():
            rows = [timed(lambda: read((unit * size)[:size]), seconds / 4) for unit in UNITS]  # noqa: B023
            table.setdefault(name, []).append(max(rows))
        loop = refine(material)
        table.setdefault("loop", []).append(slices(loop.run))
        for name in ("panel", "panel again"):
            table.setdefault(name, []).append(timed(lambda: panel(loop.state), seconds))  # noqa: B023
    print("| ms | " + " | ".join(f"{size // 1_000} kB" for size in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    for name, times in table.items():
        cells = ("over" if one == float("inf") else f"{one:.0f}" for one in times)
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
