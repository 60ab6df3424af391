"""A run as Markdown that reads well on GitHub and as a plain file."""

from collections.abc import Iterable

from ipyrefine.core.records import Change, CriterionScore, Evidence, Finding
from ipyrefine.core.runs import Iteration, Run
from ipyrefine.render import labels as words
from ipyrefine.render import verified
from ipyrefine.render.chart import sparkline
from ipyrefine.render.diff import text_diff
from ipyrefine.render.escape import fence, html_text, markdown_text, without_colours


def record_markdown(run: Run) -> str:
    """The whole run: verdict and chosen text first, then a table and one block per iteration."""
    blocks = [summary_line(run)]
    sentence = words.stop_sentence(run)
    if sentence:
        blocks.append(markdown_text(sentence))
    if run.chosen is not None:
        blocks.append(artifact(run, run.text))
    blocks += [f"> ⚠ {markdown_text(warning)}" for warning in run.warnings]
    blocks += [markdown_text(words.decision_sentence(d)) for d in run.decisions]
    if run.task is not None:
        rules = " · ".join(markdown_text(rule) for rule in words.rules(run))
        blocks += _folded("Task and rules", [fence(run.task.text, "text"), rules])
    if run.iterations:
        blocks.append(_table(run))
    for iteration in run.iterations:
        blocks += _folded(heading(run, iteration), _iteration(run, iteration))
    return "\n\n".join(blocks) + "\n"


def summary_line(run: Run) -> str:
    """The line at the top; its verdict stands out."""
    first, *rest = words.summary_text(run).split(" · ")
    return " · ".join([f"**{markdown_text(first)}**", *map(markdown_text, rest)])


def artifact(run: Run, text: str) -> str:
    """A text in a fence, so that none of its markup acts."""
    form = run.task.form if run.task else "prose"
    return fence(text, words.language(text, form) or "text")


def _folded(summary: str, blocks: Iterable[str]) -> list[str]:
    """A ``<details>`` block; blank lines around its parts let Markdown in again."""
    head = f"<details><summary>{html_text(summary)}</summary>"
    return [head, *(block for block in blocks if block), "</details>"]


def heading(run: Run, iteration: Iteration) -> str:
    """An iteration in one line."""
    items = [words.iteration_name(iteration)]
    if iteration.verdict is not None:
        items.append(str(words.verdict_label(iteration.verdict)))
        items.append(words.score(iteration.verdict.score))
    items += ["★ best"] if iteration.number == run.best else []
    return " · ".join(items + (["⚠ no new text"] if iteration.flaw else []))


def _table(run: Run) -> str:
    """All iterations at a glance."""
    scores = sparkline([i.verdict.score if i.verdict else None for i in run.iterations])
    rows = [
        f"| Iteration | Verdict | Score {scores} | Open findings | Tokens | Time |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for it in run.iterations:
        star = " ★" if it.number == run.best else ""
        score = words.score(it.verdict.score if it.verdict else None)
        unresolved = sum(finding.actionable for finding in it.findings)
        rows.append(
            f"| {it.number}{star} | {words.verdict_label(it.verdict)} | {score} | {unresolved} "
            f"| {it.usage.tokens:,} | {words.seconds(it.usage.seconds)} |"
        )
    return "\n".join(rows)


def _iteration(run: Run, iteration: Iteration) -> Iterable[str]:
    """The blocks of one iteration."""
    verdict = iteration.verdict
    if verdict is not None and verdict.why:
        by = "**Your verdict:** " if verdict.author == "user" else ""
        yield by + markdown_text(verdict.why)
    if iteration.flaw:
        yield f"> ⚠ **The model gave no usable text:** {markdown_text(iteration.flaw)}"
    yield from text_blocks(run, iteration)
    known = words.problems(run, iteration)
    yield titled_list(
        "Changed for each finding", [change_item(c, known) for c in iteration.changes]
    )
    yield from check_blocks(iteration)
    criteria = verdict.criteria if verdict else ()
    yield titled_list("Criteria", [criterion_item(one) for one in criteria])
    answers = verdict.checklist if verdict else ()
    yield titled_list(
        f"Checklist: {verified.met(answers)}",
        [
            f"{verified.answer_label(one.yes)}: {markdown_text(one.question)}"
            for one in sorted(answers, key=lambda one: one.yes)
        ],
    )
    yield titled_list("Findings", [finding_item(f) for f in words.ranked(iteration.findings)])
    if iteration.thoughts.strip():
        yield "**Thoughts of the writer**"
        yield fence(iteration.thoughts, "text")
    yield " · ".join(words.usage_parts(iteration.usage))


def text_blocks(run: Run, iteration: Iteration) -> Iterable[str]:
    """The text, or for a revision what it changed."""
    if iteration.parent is None:
        yield artifact(run, iteration.text)
    elif not iteration.flaw:
        form = run.task.form if run.task else "prose"
        old = run.iterations[iteration.parent].text
        yield f"**Difference from iteration {iteration.parent}**"
        diff = text_diff(old, iteration.text, form=form)
        same = old == iteration.text or not diff
        yield (
            "No change to the text." if same else fence(diff, "diff" if form == "code" else "text")
        )


def titled_list(title: str, items: list[str]) -> str:
    """A titled list; empty without items."""
    return "\n".join([f"**{title}**\n", *(f"- {item}" for item in items)]) if items else ""


def criterion_item(score: CriterionScore) -> str:
    """One criterion's score as a list item, with the reason and the words it rests on."""
    said = [f"**{markdown_text(score.name)}** {words.score(score.score)}"]
    said += [markdown_text(part) for part in (score.reason, verified.cited(score.quote)) if part]
    return " ".join(said if score.grounded else [*said, f"({words.UNGROUNDED})"])


def finding_item(finding: Finding) -> str:
    """One finding as a list item."""
    marks = [words.severity_label(finding.severity), words.status_label(finding.status)]
    marks += [] if finding.grounded else [words.UNGROUNDED]
    notes = ", ".join(str(mark) for mark in marks)
    by = "" if finding.author == "model" else f", {words.FINDERS[finding.author]}"
    lines = [
        f"**{markdown_text(finding.id)}** *{markdown_text(finding.criterion) or words.NONE}* "
        f"({notes}{by}): {markdown_text(finding.problem)}"
    ]
    lines += [f"“{markdown_text(finding.quote)}”"] if finding.quote else []
    lines += [f"Fix: {markdown_text(finding.fix)}"] if finding.fix else []
    return "<br>".join(lines)


def change_item(change: Change, problems: dict[str, str]) -> str:
    """One claim of a revision as a list item."""
    problem = problems.get(change.finding, "")
    about = f" {markdown_text(problem)}" if problem else ""
    mark = "" if change.confirmed else f" ({words.UNCONFIRMED})"
    return f"**{markdown_text(change.finding)}**{about} → {markdown_text(change.summary)}{mark}"


def check_blocks(iteration: Iteration) -> Iterable[str]:
    """The checks' results, each followed by its detail."""
    if iteration.evidence:
        yield "**Checks**"
    for one in iteration.evidence:
        yield _check(one)
        if one.detail.strip():
            yield fence(without_colours(one.detail).strip("\n"), "text")


def _check(evidence: Evidence) -> str:
    """One check's result in one line."""
    notes = " · ".join(verified.evidence_notes(evidence))
    return f"{verified.evidence_label(evidence)}: **{markdown_text(evidence.name)}** · {notes}"
