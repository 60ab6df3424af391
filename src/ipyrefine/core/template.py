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
_ITEM = re.compile(r"^[^\S\n]*[-*\N{BULLET}][^\S\n]+(?:\[[ xX]?\]\s*)?(\S.*)$", re.MULTILINE)
_NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_COUNT = re.compile(
    rf"\b(\d|{'|'.join(_NUMBERS)})\s+(?:[\w-]+\s+){{0,2}}"
    r"(?:weakness|gap|issue|problem|flaw|fault|risk|concern|error)",
    re.IGNORECASE,
)
_CATEGORIES = re.compile(
    r"\b(?:in|on)\b(?: the following(?: \w+)?| these \w+)?\s*:"
    r"(?P<list>(?:\s*^[^\S\n]*[-*\N{BULLET}].*$)+|[^.\n]+)",
    re.MULTILINE,
)
_SEPARATOR = re.compile(r",?(?<!\s)\s+and\s+|,|^[^\S\n]*[-*\N{BULLET}]\s+", re.MULTILINE)
_QUOTES = " .\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
_FENCED = re.compile(
    r"^(?P<marks>`{3,}(?!`)|~{3,}(?!~))[^\n]*\n(?P<inside>.*?)^(?P=marks)[^\S\n]*$", re.M | re.S
)
_LABEL = 3  # words of a heading's label, at most
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
        """How many weaknesses the critique asks for: all its numbers next to a word for them."""
        found = (match[1].lower() for match in _COUNT.finditer(self.critique))
        return sum(_NUMBERS.get(number, 0) or int(number) for number in found)

    @property
    def categories(self) -> tuple[str, ...]:
        """What the critique looks at, as in ``weaknesses in: accuracy, clarity``."""
        match = _CATEGORIES.search(self.critique)
        names = _SEPARATOR.split(match["list"].strip()) if match else []
        return tuple(bare for name in names if (bare := name.strip().strip(_QUOTES)))

    @property
    def placeholders(self) -> tuple[str, ...]:
        """What was left unfilled, as ``[task]`` or ``[draft/outline]``."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(f"{self.task}\n{self.draft}")))

    @property
    def checklist(self) -> tuple[str, ...]:
        """The items of the verification, to be answered with yes."""
        return tuple(map(str.strip, _ITEM.findall(self.verify)))

    def prompts(self, base: Prompts | None = None) -> Prompts:
        """Add the user's words to the prompts of their stages."""
        base = base or Prompts()
        asked = self.draft if self.draft != self.task else ""
        head = f"The first version was asked for in these words:\n{asked}" if asked else ""
        words_of = {
            "draft": asked,
            "critique": "\n\n".join(filter(None, (head, self.critique))),
            "revise": "\n\n".join(filter(None, (head, self.revise))),
        }
        update = {
            stage: f"{getattr(base, stage)}\n\nFor this stage in particular:\n{words}"
            for stage, words in words_of.items()
            if words
        }
        return base.replace(**update, verify=self.verify)


def read_template(body: str) -> Template | None:
    """Read a template; None when the text has fewer than two ``[ITERATION n]`` headings.

    A heading's own words say which stage it is (draft, critique, rewrite, verify), else its
    number does.
    """
    if len(_HEADING.findall(body)) < 2:
        return None
    for fenced in _FENCED.finditer(body):
        if len(_HEADING.findall(fenced["inside"])) > 1:
            body = f"{body[: fenced.start()]}\n{fenced['inside']}\n{body[fenced.end() :]}"
            break
    headings = list(_HEADING.finditer(body))
    ends = [heading.start() for heading in headings[1:]] + [len(body)]
    parts: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=True):
        below, beside = body[heading.end() : end].strip(), heading["rest"].strip(" \t:*_#-.")
        labels = bool(below) and len(beside.split()) <= _LABEL
        words = below if labels else f"{heading['rest'].strip(' :*_')}\n{below}".strip()
        part = _part(heading, beside if labels else "")
        parts[part] = f"{parts.get(part, '')}\n{words}".strip()
    task = body[: headings[0].start()].strip() or parts.get("draft", "")
    return Template(task=task, **parts) if task else None


def _part(heading: re.Match[str], rest: str) -> Part:
    label = f"{heading['label']} {rest}".lower()
    named: list[Part] = [part for part, words in _WORDS.items() if re.search(words, label)]
    return named[0] if len(named) == 1 else _ORDER[int(heading["number"]) - 1]
