"""The findings of one text as controls: tick, dismiss, edit, add."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ipyrefine.core.records import Finding, Severity
from ipyrefine.core.runs import Decision, Iteration, Run
from ipyrefine.notebook.actions import button
from ipyrefine.render.parts import finding_html
from ipyrefine.session.deciding import own_finding

if TYPE_CHECKING:
    import ipywidgets

Click = Callable[["ipywidgets.Button", Callable[[], None]], None]
_FIT = {"description_width": "initial"}


class Ledger:
    """What still stands against a text, and the user's say in it.

    Args:
        click: connects a button with what it does.
        send: hands a decision over; ``words`` says whether it takes the user's words along.
    """

    def __init__(self, click: Click, send: Callable[..., None]) -> None:
        from ipywidgets import HTML, HBox, VBox

        self._click, self._send = click, send
        self._number: int | None = None
        self._shown: tuple[Finding, ...] = ()
        self._ticks: dict[str, Any] = {}
        self._editing = ""
        self._rows = VBox()
        self._revise = button("Revise with these", "Act on what is ticked.", key="r")
        self._more = button("Add a finding", "Name a weakness of your own.")
        self._form: _Form | None = None
        self._criteria: tuple[str, ...] = ()
        title = HTML('<p class="rf-head"><strong>Act on</strong></p>')
        buttons = HBox([self._revise, self._more])
        buttons.add_class("rf-actions")
        self.widget: Any = VBox([title, self._rows, buttons])
        self.widget.add_class("rf-ledger")
        click(self._revise, self._select)
        click(self._more, lambda: self._open(None))

    @property
    def ticked(self) -> tuple[str, ...]:
        """Ids of the findings the next revision is to act on."""
        return tuple(id_ for id_, tick in self._ticks.items() if tick.value)

    def update(self, run: Run, number: int | None) -> None:
        """Show what stands against a text; ticks survive as long as their findings do."""
        iteration = None if number is None else run.iterations[number]
        self.widget.layout.display = None if iteration and iteration.verdict else "none"
        standing = _standing(iteration)
        self._criteria = tuple(c.name for c in run.task.criteria) if run.task else ()
        if (standing, number) == (self._shown, self._number):
            return
        # Rows that still hold stay the very same widgets: the user may be at one of them.
        rows = dict(zip(self._shown, self._rows.children, strict=True))
        kept = rows if number == self._number else {}
        self._shown, self._number = standing, number
        form = run.task.form if run.task else "prose"
        text = iteration.text if iteration else ""
        self._rows.children = [kept.get(f) or self._row(f, form, text) for f in standing]
        for row in set(rows.values()) - set(self._rows.children):
            dispose(row)
        self._ticks = {f.id: self._ticks[f.id] for f in standing}

    def _row(self, finding: Finding, form: Any, about: str) -> Any:
        from ipywidgets import HTML, Checkbox, HBox

        before = self._ticks.get(finding.id)
        tick = Checkbox(
            value=before is None or before.value,
            indent=False,
            description=finding.id,
            tooltip=f"Whether the next revision acts on {finding.id}.",
        )
        edit = button("Edit", f"Say {finding.id} in your own words.")
        drop = button("Dismiss", f"Set {finding.id} aside for good, for the reason given below.")
        drop.disabled = finding.binding
        self._ticks[finding.id] = tick
        self._click(edit, lambda: self._open(finding))
        self._click(drop, lambda: self._dismiss(finding))
        text = HTML(finding_html(finding, form, about))
        text.add_class("rf-grow")
        row = HBox([tick, text, edit, drop])
        row.add_class("rf-actions")
        return row

    def _select(self) -> None:
        self._send(Decision(kind="select", iteration=self._number, findings=self.ticked))

    def _dismiss(self, finding: Finding) -> None:
        self._send(Decision(kind="dismiss", iteration=self._number, findings=(finding.id,)))

    def _open(self, finding: Finding | None) -> None:
        self._editing = finding.id if finding else ""
        if self._form is None:  # made only now: every field costs the panel's first paint
            self._form = _Form()
            self._click(self._form.save, self._add)
            self._click(self._form.cancel, self._form.close)
            self.widget.children = (*self.widget.children, self._form.widget)
        self._form.open(finding, self._criteria)

    def _add(self) -> None:
        assert self._form is not None, "its own button was clicked"
        finding = self._form.finding(self._editing)
        self._send(Decision(kind="add", iteration=self._number, finding=finding), words=False)
        self._form.close()


class _Form:
    """The fields of one finding."""

    def __init__(self) -> None:
        from ipywidgets import Dropdown, HBox, Text, VBox

        self._severity = Dropdown(
            options=[str(s) for s in Severity], description="Severity", style=_FIT,
            tooltip="A blocking finding keeps the text from passing.",
        )  # fmt: skip
        self._criterion = Dropdown(
            options=["yours"], description="Criterion", style=_FIT, tooltip="What it falls under."
        )
        self._problem = Text(description="Problem", tooltip="What is wrong.", style=_FIT)
        self._quote = Text(
            description="Quote", tooltip="The words it is about, as they stand.", style=_FIT
        )
        self._fix = Text(description="Fix", tooltip="What would mend it (optional).", style=_FIT)
        self.save = button("Save finding", "Put it on the list.")
        self.cancel = button("Cancel", "Leave the list as it is.")
        first, last = HBox([self._severity, self._criterion]), HBox([self.save, self.cancel])
        for row in (first, last):
            row.add_class("rf-actions")
        fields = [self._problem, self._quote, self._fix]
        for field in fields:
            field.add_class("rf-field")
        self.widget: Any = VBox([first, *fields, last])

    def open(self, finding: Finding | None, criteria: tuple[str, ...]) -> None:
        """Show the form, filled with a finding or empty; `criteria` are those to choose from."""
        self._criterion.options = [*criteria, "yours"]
        self._problem.value = finding.problem if finding else ""
        self._quote.value = finding.quote if finding else ""
        self._fix.value = finding.fix if finding else ""
        self._severity.value = str(finding.severity if finding else Severity.BLOCKING)
        known = finding is not None and finding.criterion in self._criterion.options
        self._criterion.value = finding.criterion if finding and known else "yours"
        self.widget.layout.display = None

    def close(self) -> None:
        """Take the form off the panel."""
        self.widget.layout.display = "none"

    def finding(self, id_: str) -> Finding:
        """What was filled in."""
        return own_finding(
            self._problem.value.strip(),
            id=id_,
            criterion=self._criterion.value,
            quote=self._quote.value,
            fix=self._fix.value.strip(),
            severity=Severity(self._severity.value),
        )


def _standing(iteration: Iteration | None) -> tuple[Finding, ...]:
    return iteration.actionable if iteration and iteration.verdict else ()


def dispose(widget: Any) -> None:
    """Close a widget, what it holds, and the layout and style that each widget owns."""
    children = getattr(widget, "children", ())
    # The outermost goes first: it takes the rest off the screen at once, instead of bit by bit.
    for owned in (widget, widget.layout, getattr(widget, "style", None)):
        if owned is not None:
            owned.close()
    for child in children:
        dispose(child)
