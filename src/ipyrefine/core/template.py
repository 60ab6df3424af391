# ruff: noqa: RUF001
"""The pasted template: a cell with ``[ITERATION n]`` headings is a task and four stages."""

import re
from typing import Literal

from ipyrefine.core.model import Record
from ipyrefine.core.prompts import Prompts

Part = Literal["draft", "critique", "revise", "verify"]

_NUMBERS = {
    number: n
    for n, numbers in enumerate(
        (
            "one|ein|eine|einen|un|une|una|uno|um|uma|одну|одно|一",
            "two|zwei|deux|dos|dois|duas|два|две|两|二",
            "three|drei|trois|tres|três|три|三",
            "four|vier|quatre|cuatro|quatro|четыре|四",
            "five|fünf|cinq|cinco|пять|五",
            "six|sechs|seis|шесть|六",
        ),
        start=1,
    )
    for number in numbers.split("|")
}
_HEADING = re.compile(
    r"^[^\w\[\n]*(?P<open>\[)?\s*(?:ITERATION|IT[ÉE]RATION|ITERACI[OÓ]N|ITERAÇÃO|ИТЕРАЦИЯ|迭代|反復|第)"
    rf"\s*#?(?P<number>\d{{1,2}}|{'|'.join(_NUMBERS)})\s*(?:轮|次)?"
    r"(?P<label>(?(open)[^\]\n]*|(?=[^\S\n]*(?:[:：*—–-]|$))))(?(open)\])(?P<rest>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_UNREAD = re.compile(
    r"^[^\w\[\n]*\[\s*(?:ITERATION|STEP|PHASE|PASS|ROUND)\b[^\]\n]*\]", re.IGNORECASE | re.MULTILINE
)
_ITEM = re.compile(
    r"^[^\S\n]*(?:(?:[-*\N{BULLET}]|\d+[.)])[^\S\n]+(?:\[[ xX]?\]\s*|[☐☑□✓]\s*)?|[☐☑□✓]\s*"
    r"|\[[ xX]?\]\s*)(\S.*)$",
    re.MULTILINE,
)
_NUMBER = rf"(\d{{1,2}}(?!\d)|\b(?:{'|'.join(_NUMBERS)})\b|[一二三四五六两])"
_RANGE = r"(?:\s*(?:[-–—~]|to|or|bis|oder|à|ou|a|o|до|到|至)\s*(?:\d{1,2}|[^\W\d]{3,6})\b)?"
_COUNT = re.compile(
    rf"(?<![\dA-Za-z.]){_NUMBER}{_RANGE}\s*[个處处つ]?\s*(?:[\w-]+\s+){{0,2}}"
    r"(?:weakness|gap|issue|problem|flaw|fault|risk|concern|error|shortcoming|improvement"
    r"|schw[äa]che|l[üu]cke|mangel|mängel|fehler|faiblesse|lacune|problème|défaut|erreur"
    r"|debilidad|fallo|defecto|error|fraqueza|falha|lacuna|недостат|проблем|слаб|ошиб"
    r"|缺点|缺陷|弱点|问题|不足|問題|欠点)",
    re.IGNORECASE,
)
_LEAST = re.compile(
    r"(?:\b(?:min(?:imum|destens|imal|\.)?|at least|no fewer than|au moins|al menos|como mínimo"
    rf"|pelo menos|no mínimo|не менее|минимум)|至少|最低|少なくとも)\s*:?\s*{_NUMBER}"
    r"(?=\s*(?:[).,;:!。）]|$))",
    re.IGNORECASE,
)
_CATEGORIES = re.compile(
    r"\b(?:in|on)\b(?: the following(?: \w+)?| these \w+)?\s*:"
    r"(?P<list>(?:\s*^[^\S\n]*[-*\N{BULLET}].*$)+|[^.\n]+)",
    re.MULTILINE,
)
_TITLE = re.compile(r"\s*(?:#{1,6}\s.*|\*\*[^*]+\*\*\W*|[=-]{3,}|>.*|\|.*|.*[:：])?\s*")
_SEPARATOR = re.compile(r",?(?<!\s)\s+and\s+|,|^[^\S\n]*[-*\N{BULLET}]\s+", re.MULTILINE)
_QUOTES = " .\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
_FENCED = re.compile(
    r"^(?P<marks>`{3,}(?!`)|~{3,}(?!~))[^\n]*\n(?P<inside>.*?)^(?P=marks)[^\S\n]*$", re.M | re.S
)
_LATER = "\n\nIn a later round:\n"
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
        lines = self.critique.partition(_LATER)[0].splitlines()
        found = [_COUNT.findall(line) or _LEAST.findall(line)[:1] for line in lines]
        numbers = (number.lower() for line in found for number in line)
        return sum(_NUMBERS.get(number, 0) or int(number) for number in numbers)

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
    def unread(self) -> tuple[str, ...]:
        """What looks like a heading of a stage, and was not read as one."""
        whole = "\n".join((self.task, self.draft, self.critique, self.revise, self.verify))
        return tuple(dict.fromkeys(one.strip() for one in _UNREAD.findall(whole)))

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

    A heading's own words say which stage it is (draft, critique, rewrite, verify); else what is
    asked below it, if it is beyond the fourth; else its number. A title above is part of the task.
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
        place = len(headings) > len(_ORDER) and ("last" if heading is headings[-1] else "one")
        part = _part(heading, beside if labels else "", words, place or "")
        parts[part] = f"{parts[part]}{_LATER}{words}" if part in parts else words
    above = body[: headings[0].start()].strip()
    task = above or parts.get("draft", "")
    if above and all(map(_TITLE.fullmatch, above.splitlines())) and parts.get("draft"):
        titles = (line.strip("#*=->| \t") for line in above.splitlines())
        title = "\n".join(line for line in titles if line and line[-1] not in ":：")
        task = f"{title}\n\n{parts['draft']}".strip()
        parts["draft"] = task
    return Template(task=task, **parts) if task else None


def _part(heading: re.Match[str], rest: str, words: str, place: str) -> Part:
    """Return the stage of a heading, by the words below it and those beside it, if a label.

    `place` is whether it is the last, or one, of more than four.
    """
    named = _named(f"{heading['label']} {rest}".lower())
    number = heading["number"].lower()
    n = _NUMBERS.get(number, 0) or int(number)
    if len(named) == 1:
        return named[0]
    if n < len(_ORDER) or not place:
        return _ORDER[min(max(n, 1), len(_ORDER)) - 1]
    asked = _named(words.partition("\n")[0].partition(".")[0].lower())
    if place == "last":
        return "verify"
    return asked[0] if len(asked) == 1 else "critique" if n % 2 == 0 else "revise"


def _named(words: str) -> list[Part]:
    return [part for part, pattern in _WORDS.items() if re.search(pattern, words)]
