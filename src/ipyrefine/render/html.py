"""A run as HTML: a summary, one foldable block per iteration, a static record."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ipyrefine.core.runs import Iteration, Run
from ipyrefine.render import labels as words
from ipyrefine.render import parts
from ipyrefine.render.chart import sparkline, svg
from ipyrefine.render.diff_html import html_diff
from ipyrefine.render.escape import html_prose, html_text
from ipyrefine.render.style import STYLE
from ipyrefine.render.tree import tree_html

# The two extra classes tell MathJax 3 and 2 that nothing in here is a formula.
OPEN = '<div class="ipyrefine mathjax_ignore tex2jax_ignore">'
CLOSE = "</div>"
_DOT = ' <span class="rf-quiet">·</span> '
_DRAWN = 50  # texts whose scores are drawn: nobody reads more, and each change sends them all


def styled(body: str) -> str:
    """Wrap rendered parts in the scoped container, with its style sheet."""
    return f"{OPEN}<style>{STYLE}</style>{body}{CLOSE}"


def summary_line(run: Run) -> str:
    """One line: verdict or stage, score, best iteration, revisions, usage and stop reason."""
    if words.running(run):
        first = f"<strong>{words.STAGES.get(run.stage, html_text(run.stage))}…</strong>"
    else:
        first = parts.badge(words.verdict_label(run.verdict))
    rest = [f"<span>{html_text(part)}</span>" for part in words.summary_parts(run)]
    return f'<p class="rf-summary">{_DOT.join([first, *rest])}</p>'


def notices_html(run: Run) -> str:
    """What the stop means, what the user decided, and what they were warned of."""
    sentence = words.stop_sentence(run)
    said = [words.decision_sentence(decision) for decision in run.decisions]
    shown = [f"<p>{html_prose(one)}</p>" for one in said if one != sentence]
    if sentence:
        shown.insert(0, f'<p class="rf-message">{html_prose(sentence)}</p>')
    shown += [f'<p class="rf-note">⚠ {html_prose(warning)}</p>' for warning in run.warnings]
    return "".join(shown)


def score_html(run: Run) -> str:
    """The drawing of the latest scores, from the second verdict on."""
    count = len(run.iterations)
    latest = run.iterations[-_DRAWN:]
    if sum(i.verdict is not None for i in latest) < 2:
        return ""
    since = latest[0].number
    scores = [i.verdict.score if i.verdict else None for i in latest]
    drawn = svg(scores, run.limits.target, run.best, first=since)
    if since:
        drawn += f'<p class="rf-quiet">The latest {_DRAWN} of {count:,} texts.</p>'
    return drawn + tree_html(run, since) + _criterion_scores(run, latest)


def spent_html(run: Run) -> str:
    """Calls, tokens, time and cost of every stage, folded."""
    if not run.spent:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{words.STAGES.get(stage, stage)}</th><td>{used.calls}</td>'
        f"<td>{used.prompt_tokens:,}</td><td>{_known(used.cached_tokens)}</td>"
        f"<td>{used.completion_tokens:,}</td>"
        f"<td>{words.seconds(used.seconds)}</td><td>{words.cost(used.cost)}</td></tr>"
        for stage, used in run.spent.items()
    )
    names = ("Stage", "Calls", "Tokens read", "of them cached", "Tokens written", "Time", "Cost")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    table = f'<div class="rf-wide"><table class="rf-table"><tr>{head}</tr>{rows}</table></div>'
    return parts.more("Time, tokens and cost per stage", table)


def _known(tokens: int | None) -> str:
    return words.NONE if tokens is None else f"{tokens:,}"


def _criterion_scores(run: Run, iterations: Sequence[Iteration]) -> str:
    """The scores of every criterion over some iterations, folded."""
    scored = [(i.number, {c.name: c.score for c in i.verdict.criteria})
              for i in iterations if i.verdict and i.verdict.criteria]  # fmt: skip
    if len(scored) < 2 or run.task is None:
        return ""
    columns = "".join(f'<th scope="col">{number}</th>' for number, _ in scored)
    rows = "".join(
        f'<tr><th scope="row">{html_prose(criterion.name)}</th>'
        + "".join(f"<td>{words.score(scores.get(criterion.name))}</td>" for _, scores in scored)
        + f'<td aria-hidden="true">{sparkline([s.get(criterion.name) for _, s in scored])}</td>'
        + "</tr>"
        for criterion in run.task.criteria
    )
    head = f'<tr><th scope="col">Iteration</th>{columns}<td></td></tr>'
    table = f'<div class="rf-wide"><table class="rf-table">{head}{rows}</table></div>'
    return parts.more("Scores per criterion", table)


class View(NamedTuple):
    """How an iteration's text is compared.

    Attributes:
        best: with the best iteration, instead of the one it was revised from.
        sides: side by side, instead of in one column.
    """

    best: bool = False
    sides: bool = False


INLINE = View()


def iteration_html(
    run: Run,
    number: int,
    *,
    open: bool = False,  # noqa: A002 - HTML's word
    view: View = INLINE,
) -> str:
    """One iteration as a foldable block.

    Args:
        run: the run.
        number: the iteration's number.
        open: whether the block starts unfolded.
        view: how its text is compared.

    Raises:
        IndexError: the run has no such iteration.
    """
    iteration = run.iterations[number]
    state = " open" if open else ""
    body = "".join(_body(run, iteration, view))
    return (
        f'<details class="rf-iteration"{state}><summary>{_heading(run, iteration)}</summary>'
        f'<div class="rf-body">{body}</div></details>'
    )


def _heading(run: Run, iteration: Iteration) -> str:
    """What the folded block shows."""
    items = [f"<strong>{words.iteration_name(iteration)}</strong>"]
    if iteration.verdict is not None:
        items.append(parts.badge(words.verdict_label(iteration.verdict)))
        items.append(f'<span class="rf-number">{words.score(iteration.verdict.score)}</span>')
    if iteration.number == run.best:
        items.append('<span class="rf-star">★ best</span>')
    if iteration.flaw:
        items.append('<span class="rf-chip rf-bad">⚠ no new text</span>')
    return " ".join(items)


def _body(run: Run, iteration: Iteration, view: View) -> Iterable[str]:
    """The parts of a block, in reading order: what came out, what it is worth, what is left."""
    verdict = iteration.verdict
    form = run.task.form if run.task else "prose"
    if verdict is not None and verdict.why:
        # A text that was there before has the user's verdict too, but not in their words.
        author = "<strong>Your verdict:</strong> " if iteration.overridden else ""
        yield f"<p>{author}{html_prose(verdict.why)}</p>"
    if iteration.flaw:
        yield (
            '<p class="rf-note rf-flaw"><strong>⚠ The model gave no usable text:</strong> '
            f"{html_prose(iteration.flaw)}</p>"
        )
    yield from _text(run, iteration, view)
    yield parts.changes_html(iteration.changes, words.problems(run, iteration))
    yield parts.evidence_html(iteration.evidence)
    yield parts.criteria_html(verdict.criteria if verdict else (), form)
    yield parts.checklist_html(verdict.checklist if verdict else ())
    yield parts.findings_html(iteration.findings, form, iteration.text)
    if iteration.thoughts.strip():
        yield parts.more("Thoughts of the writer", parts.output_html(iteration.thoughts))
    used = words.usage_parts(iteration.usage)
    if used:
        yield f'<p class="rf-quiet">{" · ".join(used)}</p>'


def _text(run: Run, iteration: Iteration, view: View) -> Iterable[str]:
    """The text: in full for a first one, as a difference with the full text folded for others."""
    form = run.task.form if run.task else "prose"
    full = parts.text_html(iteration.text, form)
    other = compared(run, iteration, view)
    if other is None:
        yield parts.head("Text") + full
        return
    if not iteration.flaw:
        yield parts.head(f"Difference from iteration {other}")
        yield html_diff(run.iterations[other].text, iteration.text, form, sides=view.sides)
    yield parts.more("Full text", full, open=bool(iteration.flaw))


def compared(run: Run, iteration: Iteration, view: View) -> int | None:
    """Which iteration a text is compared with; None for a first text on its own."""
    if view.best and run.best not in (None, iteration.number):
        return run.best
    return iteration.parent


def record_html(run: Run, *, note: str = "", folded: bool = False) -> str:
    """The whole run as one static block: the chosen text first, then how it came about.

    Args:
        run: the run.
        note: a sentence to say first, as where the accepted text went.
        folded: whether it takes one line until it is opened, as below a live panel.
    """
    body = "".join(_record(run, note))
    if folded:
        head = "<summary>Record of this run, for reading without a kernel</summary>"
        body = f'<details class="rf-record">{head}<div class="rf-body">{body}</div></details>'
    return styled(body)


def _record(run: Run, note: str) -> Iterable[str]:
    """The parts of the record, in reading order."""
    form = run.task.form if run.task else "prose"
    yield summary_line(run)
    if note:
        yield f'<p class="rf-message">{html_prose(note)}</p>'
    yield notices_html(run)
    if run.chosen is not None:
        yield parts.text_html(run.text, form)
    yield score_html(run)
    yield spent_html(run)
    yield task_html(run)
    for iteration in run.iterations:
        yield iteration_html(run, iteration.number)


def task_html(run: Run) -> str:
    """What was asked and under which rules, folded."""
    if run.task is None:
        return ""
    body = [f'<div class="rf-text rf-prose">{html_prose(run.task.text)}</div>']
    criteria = "".join(
        f"<li><strong>{html_prose(c.name)}</strong> {html_prose(c.definition)}</li>"
        for c in run.task.criteria
    )
    body.append(f'{parts.head("Criteria")}<ul class="rf-rows">{criteria}</ul>')
    if run.task.checklist:
        items = "".join(f"<li>{html_prose(item)}</li>" for item in run.task.checklist)
        body.append(f'{parts.head("Checklist")}<ul class="rf-rows">{items}</ul>')
    rules = " · ".join(html_prose(rule) for rule in words.rules(run))
    body.append(f'<p class="rf-quiet">{rules}</p>')
    return parts.more("Task and rules", "".join(body))
