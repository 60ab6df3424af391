"""The header of a panel and of a record: verdict, basis, buttons, and the timeline."""

from ipyrefine.core.model import Outcome, Stage, StopReason
from ipyrefine.core.policy import to_act_on
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import labels
from ipyrefine.render.blocks import badge
from ipyrefine.render.controls import button, continue_button, menu, open_button, selectable
from ipyrefine.render.escape import html_prose, html_text
from ipyrefine.render.evidence import phrase
from ipyrefine.render.progress import WRITING
from ipyrefine.render.view import View, compared_with, first_line

MOST_STEPS = 9  # of the timeline, without the gaps
_PLACES = {
    "insert": ("Insert a cell below", "Put the text into a new cell below."),
    "replace": ("Replace this cell", "Put the text in place of the cell; undo brings it back."),
    "none": ("Keep the variable only", "Leave the notebook's cells as they are."),
}


def top_html(run: Run, view: View, about: int | None, *, live: bool) -> str:
    """Return the header: what holds, what it rests on, what can be done; then the timeline."""
    busy = live and labels.running(run)
    pill, basis = _stage(run, view) if busy else _verdict(run, about)
    right = _actions(run, view, about) if live else ""
    used = [labels.seconds(run.seconds)] if run.seconds else []
    used += labels.usage_parts(run.usage, 0.0)
    meta = _clock(run, view) if busy else " · ".join(used)
    bar = ""
    if busy:
        share = (len(run.iterations) + 0.5) / (run.allowed_revisions + 2)
        bar = f'<div class="rf-bar" aria-hidden="true"><span style="width:{min(share, 1):.0%}">'
        bar += "</span></div>"
    announced = ' role="status" aria-live="polite"' if live else ""
    return (
        f'<div class="rf-row"><div class="rf-status"{announced}>'
        f'{pill} <span class="rf-basis">{basis}</span></div>{right}</div>'
        f'<div class="rf-row">{_timeline(run, view, about, live=live)}{_share_chip(view)}'
        f' <span class="rf-meta">{_kind(run, view) if live else ""}{meta}</span></div>'
        f"{_silence(view) if busy else ''}{bar}"
    )


def _kind(run: Run, view: View) -> str:
    """Return the chip that names the kind of text, and starts the run again as the other."""
    name = labels.form_name(run.task)
    if not view.can_switch:
        return f'<span class="rf-chip">{html_text(name)}</span> '
    other = labels.other_form(run.task)
    title = f"Interpreted as {name}. Start again as {other}."
    return button(f"{name} ▾", "switch", kind="rf-chip", title=title) + " "


def _share_chip(view: View) -> str:
    """Return a chip that says what leaves this machine; it opens what may be changed about it."""
    phrase = labels.sharing_phrase(view.sharing)
    title = "What a model's server is sent of what your code computed"
    return button(phrase, "open", kind="rf-chip", title=title, name="share") if phrase else ""


def _stage(run: Run, view: View) -> tuple[str, str]:
    """Return the stage under way, and what it is about."""
    assert run.stage is not None, "only called while a stage runs"
    name = labels.Label("", labels.STAGES[run.stage], "busy")
    pill = f'<strong class="rf-badge rf-busy-pill">{html_text(name.word)}</strong>'
    subject = html_text(run.name(view.under_way))
    if run.stage is Stage.REVISE and run.iterations:
        base = run.iterations[-1] if run.head is None else run.iterations[run.head]
        problems = [finding.problem for finding in to_act_on(run, base)]
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            subject = html_prose(first_line(problems[0])) + more
    return pill, subject


def _clock(run: Run, view: View) -> str:
    """Return how far the run is, its clock and its pace; the page keeps them going."""
    limit = ""
    if view.under_way:
        limit = f"revision {view.under_way} of {max(run.allowed_revisions, view.under_way)} · "
    left = labels.budget_left(run)
    return (
        f'{limit}<span data-clock="{view.seconds:.1f}">{labels.seconds(view.seconds)}</span>'
        f"<span data-rate>{html_text(view.rate)}</span>{f' · {left}' if left else ''}"
    )


def _silence(view: View) -> str:
    """Return for how long nothing has come, and the button that ends the wait; empty until then."""
    if not view.silence:
        return ""
    title = "Stop now and keep the best text so far."
    clock = f'<span data-clock="{view.silence:.1f}">{labels.seconds(view.silence)}</span>'
    stop = button("Stop", "stop", title=title)
    return f'<div class="rf-row rf-small"><span>No reply for {clock} ·</span>{stop}</div>'


def _verdict(run: Run, about: int | None) -> tuple[str, str]:
    """Return the verdict on a text, and what it rests on."""
    if about is None:
        stopped = run.stop_reason is not None
        label = labels.Label("✗", "STOPPED", "bad") if stopped else labels.verdict_label(None)
        return badge(label), html_prose(run.message)
    iteration = run.iterations[about]
    verdict = iteration.verdict
    label = labels.verdict_label(verdict, iteration.evidence)
    if verdict is None:
        return badge(label), ""
    label = label._replace(word=label.word.partition(" · ")[0].partition(", over")[0])
    if verdict.over_failed_check:
        label = label._replace(symbol="⚠", kind="warn")
    return badge(label), _basis(run, iteration)


def _basis(run: Run, iteration: Iteration) -> str:
    """Return what a verdict rests on, in words, with what counts set in bold."""
    verdict = iteration.verdict
    assert verdict is not None, "only called for a verdict"
    if verdict.basis == "user":
        failed = [f"{e.name} failed" for e in iteration.evidence if e.failed]
        over = f", though {', '.join(failed)}" if verdict.over_failed_check else ""
        reason = iteration.override.reason if iteration.override else ""
        return html_prose(f"marked by you{over}{f': {first_line(reason)}' if reason else ''}")
    if verdict.outcome is Outcome.NOT_JUDGED:
        return html_prose(first_line(verdict.reason))
    if run.question and not verdict.passed and verdict.basis == "agreement":
        call = html_text(run.question.call)
        return f"drafts disagree on <code>{call}</code>, and the task doesn't say"
    relevant = [
        e
        for e in iteration.conclusive
        if (e.passed if verdict.passed else e.failed) and e.required and e.grounds
    ]
    phrases = [phrase(e) for e in relevant]
    fallback = html_text(labels.basis_label(verdict, iteration.evidence))
    if verdict.is_opinion:
        number = verdict.score if verdict.opinion is None else verdict.opinion
        opinion = "judge's opinion" + ("" if number is None else f", {labels.score(number)}")
        if verdict.passed and phrases:
            return f"{', '.join(phrases)}; the rest is the {html_text(opinion)}"
        phrases = [html_text(opinion)]
    if verdict.passed or relevant:
        return ", ".join(phrases) or fallback
    return (
        ": ".join(filter(None, [*phrases[:1], html_prose(first_line(verdict.reason))])) or fallback
    )


def _actions(run: Run, view: View, about: int | None) -> str:
    """Return the buttons of the header: those that can do something now."""
    running = labels.running(run)
    iteration = None if about is None else run.iterations[about]
    verdict = iteration.verdict if iteration else None
    passed = bool(verdict and verdict.passed)
    buttons = []
    if iteration is not None:
        runs = bool(verdict and verdict.only_ran) and not running
        main = "rf-go" if (passed or runs) and not running else ""
        if runs:  # what it gives is for the user to see
            word, title, place = "Accept and run", _run_title(view), "run"
        else:
            word = "Accept" if passed or verdict is None or running else "Accept anyway"
            title, place = f"Take this text as the result. {_PLACES[view.place][1]}", None
        accept = button(
            word, "accept", kind=main, title=title, hotkey="a", iteration=about, place=place
        )
        buttons.append(f'<span class="rf-split">{accept}{_accept_menu(view, about, main)}</span>')
    if running:
        title = "Stop now and keep the best text so far."
        buttons.append(button("Stop", "stop", title=title, hotkey="s"))
    elif iteration is not None:
        if verdict is not None and (passed or verdict.outcome is Outcome.NOT_JUDGED):
            title = "Override the verdict, and say what is missing."
            buttons.append(
                button("Needs work", "needs-work", kind="rf-wide-only", title=title, hotkey="n",
                        iteration=about, fields="guide")
            )  # fmt: skip
        buttons.append(continue_button(run, about, kind="" if passed or runs else "rf-next"))
    elif run.stop_reason is not None:
        buttons.append(continue_button(run, about, kind="rf-next", word="Try again"))
    if run.stop_reason is StopReason.PAUSED:
        title = "Let this be the end; the best text is kept."
        buttons.append(button("Stop", "stop", kind="rf-wide-only", title=title, hotkey="s"))
    buttons.append(_more_menu(run, view, about))
    return f'<span class="rf-acts">{"".join(buttons)}</span>'


def _accept_menu(view: View, about: int | None, kind: str) -> str:
    """Return the menu of where an accepted text can go."""
    items = [
        button(name, "accept", title=title, iteration=about, place=place)
        + ('<span class="rf-tick" aria-hidden="true">✓</span>' if place == view.place else "")
        for place, (name, title) in _PLACES.items()
    ]
    title = _run_title(view)
    items.append(button("Accept and run", "accept", title=title, iteration=about, place="run"))
    return menu("▾", "Where the accepted text goes", items, f"rf-b {kind}")


def _run_title(view: View) -> str:
    where = "in place of the cell" if view.place_to_run == "replace" else "into a new cell below"
    return f"Put the text {where}, and run that cell."


def _more_menu(run: Run, view: View, about: int | None) -> str:
    """Return the menu of what is done less often."""
    items: list[str] = []
    running = labels.running(run)
    if about is not None:
        iteration = run.iterations[about]
        items.append(button("Copy the text", "copy", iteration=about))
        items.append(open_button("Edit the text…", "edit", hotkey="e"))
        if iteration.verdict:
            if not iteration.verdict.passed:
                title = "Override the verdict: the text is good enough."
                items.append(
                    button("Mark as pass", "pass", title=title, hotkey="p", iteration=about,
                            fields="guide")
                )  # fmt: skip
            title = "Override the verdict, and say what is missing."
            items.append(
                button("Mark as needs work", "needs-work", title=title, hotkey="n",
                        iteration=about, fields="guide")
            )  # fmt: skip
            items.append(open_button("Add a finding…", "finding"))
            if selectable(iteration):
                items.append(open_button("Choose findings to act on…", "select", hotkey="r"))
        if compared_with(run, view, about) is not None or view.best:
            items.append(
                button("Show as one column" if view.sides else "Show side by side", "sides")
            )
        if view.best or (run.best not in (None, about, iteration.parent)):
            word = "the previous text" if view.best else "the best text"
            items.append(button(f"Compare with {word}", "compare"))
    items.append(open_button("Change the rubric…", "rubric"))
    if view.can_change_model and not running:
        items.append(open_button("Continue with another model…", "model"))
    if view.has_prompts:
        items.append(open_button("Show what was sent", "sent"))
    items.append(open_button("Keys", "keys", hotkey="?"))
    title = "Close the panel; the record stays."
    word = "Close"
    if running:
        word, title = "Stop and close", "Stop the run, keep the best text, and close the panel."
    items.append(button(word, "close", title=title))
    return menu("⋯", "More", items, "rf-b rf-ghost")


def _timeline(run: Run, view: View, about: int | None, *, live: bool) -> str:
    """Return the iterations in a row; of many, the first, the best, the shown and the last."""
    total = len(run.iterations)
    writing = live and labels.running(run) and run.stage in WRITING
    steps = []
    before = -1
    for number in _visible(total, run.best, about):
        if number > before + 1:
            middle = (number + before) // 2
            hidden = number - before - 1
            gap = labels.count(hidden, "more iteration")
            steps.append(
                f"<li>{button('⋯', 'show', kind='rf-step', title=gap, iteration=middle)}</li>"
                if live
                else f"<li>⋯ {hidden}</li>"
            )
        before = number
        current = number == about and not (writing and view.shown is None)
        steps.append(_step(run, number, current, live=live))
    if writing:
        name = html_text(run.name(view.under_way))
        now = f'<i class="rf-dot rf-now" aria-hidden="true"></i>{name}'
        state = ' aria-current="step"' if view.shown is None else ""
        steps.append(
            f'<li><button type="button" class="rf-step rf-on" data-action="follow"{state}>{now}'
            "</button></li>"
        )
    elif live and labels.running(run) and view.shown is not None:
        steps.append(f"<li>{button('Follow', 'follow', kind='rf-step')}</li>")
    return f'<ol class="rf-steps">{"".join(steps)}</ol>'


def _visible(total: int, best: int | None, about: int | None) -> list[int]:
    """Return the numbers of the iterations that a timeline has room for."""
    if total <= MOST_STEPS:
        return list(range(total))
    near = () if about is None else (about - 1, about, about + 1)
    wanted = {0, total - 2, total - 1, *near} | ({best} if best is not None else set())
    return sorted(n for n in wanted if 0 <= n < total)


def _step(run: Run, number: int, current: bool, *, live: bool) -> str:
    """Return one step of the timeline."""
    iteration = run.iterations[number]
    label = labels.iteration_label(iteration)
    parts = [f'<i class="rf-dot rf-{label.kind}" aria-hidden="true"></i>']
    parts.append(html_text(run.name(number)))
    if iteration.parent is not None and iteration.parent != number - 1:
        parts.append(f'<small title="revised from {iteration.parent}">⑂ {iteration.parent}</small>')
    if number == run.best and len(run.iterations) > 1:
        parts.append('<span title="best so far">★</span>')
    if iteration.failure:
        parts.append(f'<span title="{labels.NO_NEW_TEXT.word}">⚠</span>')
    body = " ".join(parts)
    if not live:
        return f'<li><span class="rf-step{" rf-on" if current else ""}">{body}</span></li>'
    word = html_text(label.word if iteration.verdict else "not verified")
    state = ' aria-current="step"' if current else ""
    return (
        f'<li><button type="button" class="rf-step{" rf-on" if current else ""}" title="{word}" '
        f'data-action="show" data-iteration="{number}"{state}>{body}</button></li>'
    )
