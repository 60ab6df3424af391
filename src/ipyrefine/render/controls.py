"""The controls of a panel as HTML: buttons, menus and fields, and the forms made of them.

Every control carries what it does in ``data-`` attributes, which the page sends back as they are.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from ipyrefine.core.decisions import OWN
from ipyrefine.core.model import Finding, Severity, Status
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import labels
from ipyrefine.render.blocks import fold, head, output
from ipyrefine.render.escape import html_prose, html_text, plain
from ipyrefine.render.view import View

_KEYS = (
    ("a", "Accept"),
    ("c", "Continue"),
    ("n", "Needs work"),
    ("p", "Mark as pass"),
    ("e", "Edit the text"),
    ("r", "Choose findings"),
    ("g", "Go to the guidance"),
    ("s", "Stop"),
    ("Esc", "Close a menu or a form"),
    ("?", "These keys"),
)


def button(
    text: str,
    action: str,
    *,
    kind: str = "",
    title: str = "",
    hotkey: str = "",
    body: str = "",
    submit: bool = False,
    **data: object,
) -> str:
    """Return a button.

    Args:
        text: its label.
        action: what it asks for.
        kind: further classes.
        title: what it does, in a sentence.
        hotkey: the key that presses it.
        body: its label as HTML, in place of the text.
        submit: whether Enter in a field of its form presses it.
        data: what goes with the action.
    """
    if hotkey and len(hotkey) == 1 and title:
        title = f"{title} ({hotkey})"
    attributes = [f'data-action="{action}"']
    attributes += [
        f'data-{name}="{html_text(str(value))}"'
        for name, value in data.items()
        if value is not None
    ]
    attributes += [f'title="{html_text(title)}"'] if title else []
    attributes += [f'data-hotkey="{hotkey}"'] if hotkey else []
    attributes += ["data-submit"] if submit else []
    classes = " ".join(filter(None, ("rf-b", kind)))
    return (
        f'<button type="button" class="{classes}" {" ".join(attributes)}>'
        f"{body or html_text(text)}</button>"
    )


def open_button(
    text: str, form: str, *, finding: str = "", kind: str = "", hotkey: str = ""
) -> str:
    """Return a button that opens a form."""
    data: dict[str, Any] = {"finding": finding} if finding else {}
    return button(text, "open", kind=kind, hotkey=hotkey, name=form, **data)


def menu(word: str, title: str, items: Iterable[str], kind: str) -> str:
    """Return a menu that opens below its button."""
    rows_ = "".join(f"<li>{item}</li>" for item in items)
    return (
        f'<details class="rf-menu"><summary class="{kind}" aria-label="{title}" title="{title}">'
        f"{word}</summary><ul>{rows_}</ul></details>"
    )


def field(name: str, title: str, *, value: str = "", hint: str = "", focus: bool = False) -> str:
    """Return a field for a line of text.

    Args:
        name: what its value is sent as.
        title: what stands before it.
        value: what it holds at first.
        hint: what it shows while it is empty.
        focus: whether the cursor goes there when its form opens.
    """
    focused = f' data-focus="{name}"' if focus else ""
    shown = html_text(plain(value))
    return (
        f'<label class="rf-field"><span>{title}</span><input type="text" name="{name}" '
        f'value="{shown}" placeholder="{hint}" data-enter{focused}></label>'
    )


def select_field(name: str, title: str, options: Sequence[str], chosen: str) -> str:
    """Return a menu of options as a field; arguments as for `field`."""
    listed = "".join(
        f"<option{' selected' if one == chosen else ''}>{html_text(one)}</option>"
        for one in options
    )
    field = f'<select name="{name}">{listed}</select>'
    return f'<label class="rf-field"><span>{title}</span>{field}</label>'


def form_buttons(word: str, action: str, **data: Any) -> str:
    """Return the buttons that end a form."""
    send = button(word, action, kind="rf-next", submit=True, **data) if word else ""
    close = button("Cancel" if word else "Close", "open", hotkey="Escape")
    return f'<div class="rf-acts">{send}{close}</div>'


# Forms


def form_html(run: Run, view: View, about: int | None) -> str:
    """Return the open form, or nothing."""
    match view.form:
        case "edit" if about is not None:
            body = _edit_form(run, about)
        case "finding" if about is not None:
            body = _finding_form(run, view, about)
        case "select" if about is not None:
            body = _select_form(run, about)
        case "rubric":
            body = _rubric_form(run)
        case "model":
            body = field("model", "Model", focus=True, value=run.setup.model)
            body += form_buttons("Continue with it", "model")
        case "sent":
            body = "".join(fold(title, output(text)) for title, text in reversed(view.prompts))
            body = f"{head('What was sent, the latest first')}{body}{form_buttons('', '')}"
        case "share" if view.sharing.servers:
            body = share_choice(view) + form_buttons("", "")
        case "keys":
            body = _keys()
        case _:
            return ""
    return f'<div class="rf-sheet" data-form="{view.form}" data-key="{view.form}">{body}</div>'


def share_choice(view: View) -> str:
    """Return what servers are not sent, with the buttons that say whether they may be."""
    names = html_text(" and ".join(map(labels.server_name, view.sharing.servers)))
    kept = view.sharing.level == "structure"
    title = f"{names} is not sent this:" if kept else f"Outputs are sent to {names}."
    answers = (
        ("once", "Send", "Send outputs for the rest of this run."),
        ("always", "Always to this server", "Send outputs to it in every run from now on."),
        ("never", "Never", "Keep outputs here, in every run, and don't ask again."),
    )
    buttons = "".join(
        button(word, "share", title=tip, name=answer)
        for answer, word, tip in answers
        if kept or answer != "once"
    )
    text = output(view.withheld) if view.withheld else ""
    return f'<p>{title}</p><div class="rf-answers">{buttons}</div>{text}'


def _edit_form(run: Run, about: int) -> str:
    text = plain(run.iterations[about].text)
    lines = min(24, max(6, text.count("\n") + 2))
    mono = " rf-mono" if run.task.form == "code" else ""
    # A line break right after the tag would be dropped.
    return (
        f'<textarea class="rf-edit{mono}" name="text" rows="{lines}" data-focus="text" '
        f'aria-label="Your text">\n{html_text(text)}</textarea>'
        + form_buttons("Save as an iteration", "edit", iteration=about)
    )


def _finding_form(run: Run, view: View, about: int) -> str:
    known = next((f for f in run.findings if f.id == view.finding), None)
    severity = str(known.severity if known else Severity.BLOCKING)
    names = [*(c.name for c in run.task.criteria), OWN]
    criterion = known.criterion if known and known.criterion in names else OWN
    fields = field("problem", "Problem", focus=True, value=known.problem if known else "")
    fields += field("quote", "Quote", value=known.quote if known else "", hint="words of the text")
    fields += field("fix", "Fix", value=known.fix if known else "", hint="optional")
    fields += select_field("severity", "Severity", [str(s) for s in Severity], severity)
    fields += select_field("criterion", "Criterion", names, criterion)
    return fields + form_buttons("Save the finding", "add", iteration=about, finding=view.finding)


def _select_form(run: Run, about: int) -> str:
    iteration = run.iterations[about]
    rows_ = []
    for finding in selectable(iteration):
        ticked = "" if finding.doubtful else " checked"
        doubt = ""
        if finding.doubtful:
            reason = html_text(labels.doubt(finding, iteration.text))
            doubt = f" <small>· doubtful: {reason}</small>"
        rows_.append(
            f'<label class="rf-pick"><input type="checkbox" name="findings" '
            f'value="{html_text(finding.id)}"{ticked}> <span><b>{html_text(finding.id)}</b> · '
            f"{html_prose(finding.problem)}{doubt}</span></label>"
        )
    title = head("Act on")
    return title + "".join(rows_) + form_buttons("Revise with these", "select", iteration=about)


def selectable(iteration: Iteration) -> list[Finding]:
    """Return the findings that a revision can act on, the doubtful ones last."""
    unsettled = (Status.OPEN, Status.REGRESSED)
    doubtful = [f for f in iteration.findings if f.doubtful and f.status in unsettled]
    return [*iteration.actionable, *doubtful]


def _rubric_form(run: Run) -> str:
    names = ", ".join(c.name for c in run.task.criteria)
    fields = field("criteria", "Criteria", focus=True, value=names, hint="as a, b, c")
    target = f"{run.limits.target:g}"
    fields += (
        '<label class="rf-field"><span>Target</span><input type="number" name="target" min="0" '
        f'max="1" step="0.05" value="{target}"></label>'
    )
    note = '<p class="rf-quiet">All texts are judged again.</p>'
    return fields + note + form_buttons("Apply the rubric", "rubric")


def _keys() -> str:
    rows_ = "".join(
        f'<tr><th scope="row"><kbd>{html_text(key)}</kbd></th><td>{name}</td></tr>'
        for key, name in _KEYS
    )
    return (
        f"{head('Keys, while the focus is in the panel and not in a field')}"
        f'<table class="rf-table">{rows_}</table><p class="rf-quiet">Every button is a command '
        "too: <code>%refine accept</code>, <code>%refine continue 2 &quot;shorter&quot;</code>, …"
        f"</p>{form_buttons('', '')}"
    )


def continue_button(run: Run, about: int | None, *, kind: str, word: str = "Continue") -> str:
    """Return the button that goes on, from the text that is shown."""
    chosen = run.chosen.number if run.chosen else None
    title = "Write one more revision, with the guidance below."
    data: dict[str, Any] = {"fields": "guide"}
    if about is not None and about != chosen:
        title = f"Branch: revise {run.mention(about)} next, with the guidance below."
        data["iteration"] = about
    if about is None:
        title = "Ask again."
    return button(word, "continue", kind=kind, title=title, hotkey="c", **data)
