"""The pasted template: a cell with ``[ITERATION n]`` headings is a task and four stages."""

import re
from typing import Literal

from ipyrefine.core.model import Record
from ipyrefine.core.prompts import Prompts

Part = Literal["draft", "critique", "revise", "verify"]

_HEADING = re.compile(
    r"^[^\w\[\n]*\[\s*ITERATION\s+(?P<number>[1-4])(?P<label>[^\]\n]*)\](?P<rest>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_ITEM = re.compile(r"^\s*[-*\N{BULLET}]\s+(?:\[[ xX]?\]\s*)?(\S.*?)\s*$", re.MULTILINE)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_COUNT = re.compile(
    rf"\b(\d|{'|'.join(_NUMBERS)})\s+(?:[\w-]+\s+){{0,2}}(?:weakness|gap|issue|problem|flaw|fault)",
    re.IGNORECASE,
)
_CATEGORIES = re.compile(r"\b(?:in|on)\s*:\s*([^.\n]+)")
_PLACEHOLDER = re.compile(r"\[(?![xX]?\])(?=[^\W\d])[^\[\]\n]{2,60}\](?!\()")
_WORDS: dict[Part, str] = {
    "critique": r"critique|criticise|criticize|review|feedback|weakness",
    "revise": r"rewrit|revis|improv|fix",
    "verify": r"verif|check|validat",
    "draft": r"\b(?:draft|writ|generat)",
}
_ORDER: tuple[Part, ...] = ("draft", "critique", "revise", "verify")


class Template(Record):
    """A task with the user's own words for some of its stages."""

    task: str  # what is asked, before the first heading (else what the draft's section says)
    draft: str = ""
    critique: str = ""
    revise: str = ""
    verify: str = ""

    @property
    def min_findings(self) -> int:
        """How many weaknesses the critique asks for: its first number next to a word for them."""
        match = _COUNT.search(self.critique)
        return _NUMBERS.get(match[1].lower(), 0) or int(match[1]) if match else 0

    @property
    def categories(self) -> tuple[str, ...]:
        """What the critique looks at, as in ``weaknesses in: accuracy, clarity``."""
        match = _CATEGORIES.search(self.critique)
        names = re.split(r",|\band\b", match[1]) if match else []
        return tuple(name.strip(" .") for name in names if name.strip(" ."))

    @property
    def placeholders(self) -> tuple[str, ...]:
        """What was left unfilled, as ``[task]`` or ``[draft/outline]``."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(f"{self.task}\n{self.draft}")))

    @property
    def checklist(self) -> tuple[str, ...]:
        """The items of the verification, to be answered with yes."""
        return tuple(_ITEM.findall(self.verify))

    def prompts(self, base: Prompts | None = None) -> Prompts:
        """Add the user's words to the prompts of their stages."""
        base = base or Prompts()
        critique = "\n\nOf a revision:\n".join(filter(None, (self.critique, self.verify)))
        words_of = {"draft": self.draft, "critique": critique, "revise": self.revise}
        return base.model_copy(
            update={
                stage: f"{getattr(base, stage)}\n\nFor this stage in particular:\n{words}"
                for stage, words in words_of.items()
                if words and words != self.task
            }
        )


def read_template(body: str) -> Template | None:
    """Read a template; None when the text has fewer than two ``[ITERATION n]`` headings.

    A heading's own words say which stage it is (draft, critique, rewrite, verify), else its
    number does.
    """
    headings = list(_HEADING.finditer(body))
    if len(headings) < 2:
        return None
    ends = [heading.start() for heading in headings[1:]] + [len(body)]
    parts: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=True):
        words = body[heading.end() : end].strip()
        part = _part(heading)
        parts[part] = f"{parts.get(part, '')}\n{words}".strip()
    task = body[: headings[0].start()].strip() or parts.get("draft", "")
    return Template(task=task, **parts) if task else None


def _part(heading: re.Match[str]) -> Part:
    label = f"{heading['label']} {heading['rest']}".lower()
    named: list[Part] = [part for part, words in _WORDS.items() if re.search(words, label)]
    return named[0] if len(named) == 1 else _ORDER[int(heading["number"]) - 1]
