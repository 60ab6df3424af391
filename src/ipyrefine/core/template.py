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
_WORDS: dict[Part, str] = {
    "critique": r"critique|criticise|criticize|review|feedback|weakness",
    "revise": r"rewrit|revis|improv|fix",
    "verify": r"verif|check|validat",
    "draft": r"\b(?:draft|writ|generat)",
}
_ORDER: tuple[Part, ...] = ("draft", "critique", "revise", "verify")


class Template(Record):
    """A task with the user's own words for some of its stages.

    Attributes:
        task: what is asked, before the first heading (else what the draft's section says).
        draft: what the draft's section says.
        critique: what the critique's section says.
        revise: what the revision's section says.
        verify: what the verification's section says.
    """

    task: str
    draft: str = ""
    critique: str = ""
    revise: str = ""
    verify: str = ""

    @property
    def checklist(self) -> tuple[str, ...]:
        """The items of the verification, to be answered with yes."""
        return tuple(_ITEM.findall(self.verify))

    def prompts(self, base: Prompts | None = None) -> Prompts:
        """Add the user's words to the prompts of their stages."""
        base = base or Prompts()
        said = {
            "draft": self.draft,
            "critique": self.critique,
            "revise": self.revise,
            "judge": self.verify,
        }
        return base.model_copy(
            update={
                stage: f"{getattr(base, stage)}\n\nFor this stage in particular:\n{words}"
                for stage, words in said.items()
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
        said = body[heading.end() : end].strip()
        part = _part(heading)
        parts[part] = f"{parts[part]}\n{said}".strip() if part in parts else said
    task = body[: headings[0].start()].strip() or parts.get("draft", "")
    return Template(task=task, **parts) if task else None


def _part(heading: re.Match[str]) -> Part:
    label = f"{heading['label']} {heading['rest']}".lower()
    named: list[Part] = [part for part, words in _WORDS.items() if re.search(words, label)]
    return named[0] if len(named) == 1 else _ORDER[int(heading["number"]) - 1]
