"""A run as Markdown in parts, one for each stage it went through."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ipyrefine.core.runs import Iteration, Run
from ipyrefine.render import labels as words
from ipyrefine.render.escape import fence, markdown_text
from ipyrefine.render.markdown import (
    artifact,
    change_item,
    check_blocks,
    finding_item,
    heading,
    summary_line,
    text_blocks,
    titled_list,
)

Name = Literal["task", "draft", "revise", "check", "judge", "critique", "result"]


class Part(NamedTuple):
    """One stage of one iteration; None for what is about the whole run."""

    stage: Name
    iteration: int | None
    markdown: str


def parts(run: Run) -> Iterator[Part]:
    """Give the task, every stage of every iteration, and the result, in order."""
    task = run.task
    if task is not None:
        rules = " · ".join(markdown_text(rule) for rule in words.rules(run))
        yield Part("task", None, _joined("## Task", fence(task.text, "text"), rules))
    for iteration in run.iterations:
        yield from _iteration(run, iteration)
    sentence = words.stop_sentence(run)
    decisions = [markdown_text(words.decision_sentence(one)) for one in run.decisions]
    warnings = [f"> ⚠ {markdown_text(warning)}" for warning in run.warnings]
    told = [summary_line(run), markdown_text(sentence), *decisions, *warnings]
    chosen = artifact(run, run.text) if run.chosen else ""
    yield Part("result", None, _joined("## Result", *told, chosen))


def _iteration(run: Run, iteration: Iteration) -> Iterator[Part]:
    number, verdict = iteration.number, iteration.verdict
    known = words.problems(run, iteration)
    changes = [change_item(change, known) for change in iteration.changes]
    flaw = iteration.flaw and f"> ⚠ The model gave no usable text: {markdown_text(iteration.flaw)}"
    yield Part(
        "draft" if iteration.parent is None else "revise",
        number,
        _joined(
            f"## {markdown_text(heading(run, iteration))}",
            flaw,
            *text_blocks(run, iteration),
            titled_list("Changed for each finding", changes),
        ),
    )
    if iteration.evidence:
        yield Part("check", number, _joined(*check_blocks(iteration)))
    if verdict is not None:
        scores = [
            f"**{markdown_text(c.name)}** {words.score(c.score)} {markdown_text(c.reason)}".rstrip()
            for c in verdict.criteria
        ]
        label = f"**{words.verdict_label(verdict)}** {words.score(verdict.score)}"
        why = markdown_text(verdict.why)
        yield Part("judge", number, _joined(label, why, titled_list("Criteria", scores)))
    if iteration.findings:
        findings = [finding_item(f) for f in words.ranked(iteration.findings)]
        yield Part("critique", number, titled_list("Findings", findings))


def _joined(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block)
