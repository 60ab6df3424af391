"""The controls of a panel: accept, override, continue, act on findings, edit text and rubric."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ipyrefine.core.decisions import OWN, Add, Answer, Decision, Dismiss, Edit, Rubric, Select
from ipyrefine.core.model import Choice, Finding, Form, Question, Severity, Status, StopReason
from ipyrefine.core.run import Iteration, Run
from ipyrefine.notebook.cell_target import CellTarget
from ipyrefine.render import labels
from ipyrefine.render.escape import plain
from ipyrefine.render.html import View, finding_html, question_html

if TYPE_CHECKING:
    import ipywidgets

Click = Callable[["ipywidgets.Button", Callable[[], None]], None]
Send = Callable[[Decision], None]
SendWithWords = Callable[[Callable[[str], Decision]], None]

_WORDS = "Guidance, or the reason for an override (optional)"
_CONTINUE = "Allow more revisions, guided by the words above."
_CONTINUE_RUNNING = "While it runs: add revisions, and guidance for the next one."
_WHERE = [("a new cell", "insert"), ("this cell", "replace"), ("the variable only", "none")]
_FIT = {"description_width": "initial"}
_CHOICE_CHARACTERS = 60  # of a result that a button shows; its tooltip has all of it
KEYS = """\
<p class="rf-head"><strong>Keys</strong>, while the focus is on the panel and not in a field</p>
<table class="rf-table"><tr><th scope="row">a</th><td>Accept</td></tr>
<tr><th scope="row">c</th><td>Continue</td></tr>
<tr><th scope="row">r</th><td>Revise with these</td></tr>
<tr><th scope="row">p</th><td>Mark as pass</td></tr>
<tr><th scope="row">n</th><td>Needs work</td></tr>
<tr><th scope="row">e</th><td>Edit text</td></tr>
<tr><th scope="row">s</th><td>Stop</td></tr>
<tr><th scope="row">?</th><td>this help</td></tr></table>
<p class="rf-quiet">Tab moves from control to control. Keys need the JupyterLab extension that comes
with the package; every button is a command too: <code>%refine accept</code>,
<code>%refine continue 2 "shorter"</code>, …</p>"""


def button(name: str, tooltip: str, style: str = "", *, key: str = "") -> "ipywidgets.Button":
    """Return a button.

    Args:
        name: its label.
        tooltip: what it does.
        style: a Jupyter button style, or empty.
        key: the key that presses it where the front-end half of the package is installed.
    """
    from ipywidgets import Button

    title = f"{tooltip} ({key})" if key else tooltip
    widget = Button(description=name, tooltip=title, button_style=style)
    if key:
        widget.add_class(f"rf-key-{'help' if key == '?' else key}")
    return widget


def dispose(widget: Any) -> None:
    """Close a widget, what it holds, and the layout and style that each widget owns."""
    children = getattr(widget, "children", ())
    # The outermost goes first: it takes the rest off the screen at once, instead of bit by bit.
    for part in (widget, widget.layout, getattr(widget, "style", None)):
        if part is not None:
            part.close()
    for child in children:
        dispose(child)


class DiffOptions:
    """How the texts are compared: with which one, and in how many columns.

    Args:
        on_change: called when the user chose otherwise.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        from ipywidgets import Checkbox, Dropdown, HBox

        self.other = Dropdown(
            options=[("the previous", False), ("the best", True)],
            description="Compare with",
            tooltip="The text that each difference is shown against.",
            style=_FIT,
        )
        self.sides = Checkbox(
            description="Side by side",
            indent=False,
            tooltip="Show the old text to the left of the new one.",
        )
        self.widget: Any = HBox([self.other, self.sides])
        self.widget.add_class("rf-actions")
        for control in (self.other, self.sides):
            control.observe(lambda _: on_change(), "value")

    @property
    def view(self) -> View:
        """The user's choice."""
        return View(best=bool(self.other.value), sides=bool(self.sides.value))

    def update(self, run: Run | None) -> None:
        """Appear once there is something to compare."""
        comparable = run is not None and len(run.iterations) > 1
        self.widget.layout.display = None if comparable else "none"


class Actions:
    """The buttons of a run and their fields; they know when they apply, not what they do.

    Args:
        cell_target: where an accepted text goes, for the user to choose; None offers no choice.
    """

    def __init__(self, cell_target: CellTarget | None = None) -> None:
        from ipywidgets import BoundedIntText, Dropdown, HBox, Textarea, VBox

        self.stop = button("Stop", "Stop now and keep the best text so far.", "danger", key="s")
        self.iteration = Dropdown(
            options=[("Best", None)],
            description="Iteration",
            tooltip="The iteration that the buttons are about.",
            style=_FIT,
        )
        self.accept = button("Accept", "Accept this iteration's text.", "success", key="a")
        self.mark_pass = button(
            "Mark as pass", "Override the verdict: the text is good enough.", key="p"
        )
        self.needs_work = button(
            "Needs work", "Override the verdict: the text needs another revision.", key="n"
        )
        self.revisions = BoundedIntText(
            value=1,
            min=1,
            max=9,
            description="Revisions",
            tooltip="How many more revisions Continue allows.",
            style=_FIT,
        )
        self.continue_ = button("Continue", _CONTINUE, key="c")
        self.close = button("Close", "Close the panel; the record stays in the notebook.")
        self.words = Textarea(
            description=_WORDS,
            tooltip=_WORDS,
            placeholder="What should be different, or why",
            rows=2,
            style=_FIT,
        )
        where = [_where_menu(cell_target)] if cell_target else []
        first = HBox([self.iteration, self.accept, *where, self.mark_pass, self.needs_work])
        last = HBox([self.revisions, self.continue_, self.stop, self.close])
        for row in (first, last):
            row.add_class("rf-actions")
        self.words.add_class("rf-words")
        self.widget: Any = VBox([first, self.words, last])

    def update(self, run: Run | None) -> None:
        """Offer the run's iterations, and enable what can be done with it now."""
        count = len(run.iterations) if run else 0
        if len(self.iteration.options) != count + 1:
            kept = self.iteration.value
            self.iteration.options = (
                ("Best", None),
                *((str(number), number) for number in range(count)),
            )
            # By its place: a value of None would leave the menu blank instead of at "Best".
            self.iteration.index = kept + 1 if kept is not None and kept < count else 0
        stop_reason = run.stop_reason if run else None
        running, has_text = stop_reason is None, count > 0
        verified = run is not None and any(i.verdict is not None for i in run.iterations)
        self.stop.disabled = not running and stop_reason is not StopReason.PAUSED
        self.accept.disabled = self.iteration.disabled = not has_text
        can_override = verified or (has_text and not running)
        self.mark_pass.disabled = self.needs_work.disabled = not can_override
        # Before the first draft there is nothing to guide or to revise.
        no_draft = running and not has_text
        self.continue_.disabled = self.revisions.disabled = self.words.disabled = no_draft
        self.continue_.tooltip = _CONTINUE_RUNNING if running else _CONTINUE


def _where_menu(cell_target: CellTarget) -> Any:
    """Return the menu of where an accepted text goes."""
    from ipywidgets import Dropdown

    menu = Dropdown(
        options=_WHERE,
        value=cell_target.where,
        description="into",
        tooltip="Where Accept puts the text.",
        style=_FIT,
    )
    menu.observe(lambda change: setattr(cell_target, "where", change["new"]), "value")
    return menu


class FindingList:
    """The findings that stand against a text: tick, dismiss, edit, add.

    Args:
        click: connects a button with what it does.
        send: hands a decision over.
        send_with_words: hands over a decision that takes the user's words.
    """

    def __init__(self, click: Click, send: Send, send_with_words: SendWithWords) -> None:
        from ipywidgets import HTML, HBox, VBox

        self._click, self._send, self._send_with_words = click, send, send_with_words
        self._number: int | None = None
        self._findings: tuple[Finding, ...] = ()
        self._passed = self._unfolded = False
        self._ticks: dict[str, Any] = {}
        self._edited_id = ""
        self._rows = VBox()
        revise = button("Revise with these", "Act on the ticked findings.", key="r")
        add = button("Add a finding", "Name a weakness yourself.")
        self._form: _FindingForm | None = None
        self._criteria: tuple[str, ...] = ()
        title = HTML('<p class="rf-head"><strong>Act on</strong></p>')
        self._fold = button("Doubtful", "Show the findings that did not hold when they were tried.")
        self._fold.layout.display = "none"
        buttons = HBox([revise, add, self._fold])
        buttons.add_class("rf-actions")
        self.widget: Any = VBox([title, self._rows, buttons])
        self.widget.add_class("rf-ledger")
        click(revise, self._select)
        click(add, lambda: self._open(None))
        click(self._fold, self._toggle_doubtful)

    @property
    def ticked(self) -> tuple[str, ...]:
        """Ids of the findings that the next revision is to act on."""
        return tuple(id_ for id_, tick in self._ticks.items() if tick.value)

    def update(self, run: Run | None, number: int | None) -> None:
        """Show what stands against a text; ticks survive as long as their findings do.

        Args:
            run: the run; None before its first event.
            number: the iteration that the panel is about.
        """
        iteration = run.iterations[number] if run and number is not None else None
        self.widget.layout.display = None if iteration and iteration.verdict else "none"
        findings = _standing(iteration)
        passed = bool(iteration and iteration.verdict and iteration.verdict.passed)
        self._criteria = tuple(c.name for c in run.task.criteria) if run else ()
        if (findings, number, passed) == (self._findings, self._number, self._passed):
            return
        # Rows that still hold stay the very same widgets: the user may be at one of them.
        rows = dict(zip(self._findings, self._rows.children, strict=True))
        kept = rows if (number, passed) == (self._number, self._passed) else {}
        self._findings, self._number, self._passed = findings, number, passed
        form = run.task.form if run else "prose"
        text = iteration.text if iteration else ""
        self._rows.children = [kept.get(f) or self._row(f, form, text) for f in findings]
        for row in set(rows.values()) - set(self._rows.children):
            dispose(row)
        self._ticks = {f.id: self._ticks[f.id] for f in findings}
        self._fold_doubtful()

    def _toggle_doubtful(self) -> None:
        self._unfolded = not self._unfolded
        self._fold_doubtful()

    def _fold_doubtful(self) -> None:
        """Show or hide the rows of doubtful findings, and offer the other."""
        doubtful = 0
        for finding, row in zip(self._findings, self._rows.children, strict=True):
            if finding.doubtful:
                doubtful += 1
                row.layout.display = None if self._unfolded else "none"
        self._fold.description = f"{'Hide' if self._unfolded else 'Show'} {doubtful} doubtful"
        self._fold.layout.display = None if doubtful else "none"

    def _row(self, finding: Finding, form: Form, text: str) -> Any:
        from ipywidgets import HTML, Checkbox, HBox

        earlier = self._ticks.get(finding.id)
        tick = Checkbox(
            value=not finding.doubtful if earlier is None else earlier.value,
            indent=False,
            description=finding.id,
            tooltip=f"Whether the next revision acts on {finding.id}.",
        )
        edit = button("Edit", f"Reword {finding.id}.")
        dismiss = button("Dismiss", f"Dismiss {finding.id} for good, for the reason given below.")
        dismiss.disabled = finding.binding
        self._ticks[finding.id] = tick
        self._click(edit, lambda: self._open(finding))
        self._click(dismiss, lambda: self._dismiss(finding))
        html = HTML(finding_html(finding, form, text, passed=self._passed))
        html.add_class("rf-grow")
        row = HBox([tick, html, edit, dismiss])
        row.add_class("rf-actions")
        return row

    def _select(self) -> None:
        self._send_with_words(
            lambda words: Select(iteration=self._number, findings=self.ticked, guidance=words)
        )

    def _dismiss(self, finding: Finding) -> None:
        self._send_with_words(lambda words: Dismiss(findings=(finding.id,), reason=words))

    def _open(self, finding: Finding | None) -> None:
        self._edited_id = finding.id if finding else ""
        if self._form is None:  # made only now: every field costs the panel's first paint
            self._form = _FindingForm()
            self._click(self._form.save, self._add)
            self._click(self._form.cancel, self._form.close)
            self.widget.children = (*self.widget.children, self._form.widget)
        self._form.open(finding, self._criteria)

    def _add(self) -> None:
        assert self._form is not None, "its own button was clicked"
        self._send(Add(iteration=self._number, finding=self._form.finding(self._edited_id)))
        self._form.close()


def _standing(iteration: Iteration | None) -> tuple[Finding, ...]:
    """Return the findings that a revision can act on, the doubtful ones last."""
    if iteration is None or iteration.verdict is None:
        return ()
    unsettled = (Status.OPEN, Status.REGRESSED)
    doubtful = (f for f in iteration.findings if f.doubtful and f.status in unsettled)
    return (*iteration.actionable, *doubtful)


class QuestionForm:
    """The question that the drafts disagree about: a button per result, and one's own answer.

    Args:
        click: connects a button with what it does.
        send: hands a decision over.
    """

    def __init__(self, click: Click, send: Send) -> None:
        from ipywidgets import VBox

        self._click, self._send = click, send
        self._question: Question | None = None
        self.widget: Any = VBox()
        self.widget.layout.display = "none"

    def update(self, run: Run | None) -> None:
        """Show the run's question, or nothing while there is none."""
        question = run.question if run else None
        if question == self._question:
            return
        self._question = question
        old, self.widget.children = self.widget.children, self._build(question) if question else ()
        self.widget.layout.display = None if question else "none"
        for part in old:
            dispose(part)

    def _build(self, question: Question) -> tuple[Any, ...]:
        from ipywidgets import HTML, HBox, Text

        buttons = [self._choice(n, one) for n, one in enumerate(question.choices, start=1)]
        own = Text(
            description="Your answer",
            placeholder="a value as Python, or an exception",
            tooltip="What it should give instead.",
            style=_FIT,
        )
        answer = button("Answer", "Make your answer an example of the task.")
        self._click(answer, lambda: self._send(Answer(result=own.value.strip())))
        choices, last = HBox(buttons), HBox([own, answer])
        for row in (choices, last):
            row.add_class("rf-actions")
        return HTML(question_html(question)), choices, last

    def _choice(self, number: int, choice: Choice) -> Any:
        result = " ".join(plain(labels.choice_text(choice)).split())
        drafts = labels.count(choice.votes, "draft")
        short = result if len(result) <= _CHOICE_CHARACTERS else f"{result[:_CHOICE_CHARACTERS]}…"
        one = button(f"{short} ({drafts})", f"Make it an example of the task: {result}")
        self._click(one, lambda: self._send(Answer(choice=number)))
        return one


class _FindingForm:
    """The fields of one finding."""

    def __init__(self) -> None:
        from ipywidgets import Dropdown, HBox, Text, VBox

        self._severity = Dropdown(
            options=[str(s) for s in Severity],
            description="Severity",
            style=_FIT,
            tooltip="A blocking finding keeps the text from passing.",
        )
        self._criterion = Dropdown(
            options=[OWN], description="Criterion", style=_FIT, tooltip="What it falls under."
        )
        self._problem = Text(description="Problem", tooltip="What is wrong.", style=_FIT)
        self._quote = Text(
            description="Quote", tooltip="The words it is about, verbatim.", style=_FIT
        )
        self._fix = Text(description="Fix", tooltip="How to fix it (optional).", style=_FIT)
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
        """Show the form.

        Args:
            finding: what to fill it with; None leaves it empty.
            criteria: the criteria to choose from.
        """
        self._criterion.options = [*criteria, OWN]
        self._problem.value = finding.problem if finding else ""
        self._quote.value = finding.quote if finding else ""
        self._fix.value = finding.fix if finding else ""
        self._severity.value = str(finding.severity if finding else Severity.BLOCKING)
        known = finding is not None and finding.criterion in self._criterion.options
        self._criterion.value = finding.criterion if finding and known else OWN
        self.widget.layout.display = None

    def close(self) -> None:
        """Hide the form."""
        self.widget.layout.display = "none"

    def finding(self, id_: str) -> Finding:
        """Return what the user filled in."""
        return Finding(
            id=id_,
            criterion=self._criterion.value,
            severity=Severity(self._severity.value),
            quote=self._quote.value,
            problem=self._problem.value.strip(),
            fix=self._fix.value.strip(),
            author="user",
        )


class EditForms:
    """Foldable forms: the text, the rubric, and the list of keys.

    Args:
        click: connects a button with what it does.
        send: hands a decision over.
        number: returns the iteration the panel is about.
    """

    def __init__(self, click: Click, send: Send, number: Callable[[], int | None]) -> None:
        from ipywidgets import HBox, VBox

        self._click, self._send, self._number = click, send, number
        self._run: Run | None = None
        self.edit = button("Edit text", "Edit the text by hand; it becomes an iteration.", key="e")
        self.rubric = button(
            "Rubric", "Change the criteria or the target; all texts are judged again."
        )
        self.help = button("?", "The keys of this panel.", key="?")
        buttons = HBox([self.edit, self.rubric, self.help])
        buttons.add_class("rf-actions")
        self._forms: dict[str, Any] = {}
        self.widget: Any = VBox([buttons])
        click(self.edit, lambda: self._toggle("edit"))
        click(self.rubric, lambda: self._toggle("rubric"))
        click(self.help, lambda: self._toggle("help"))

    def update(self, run: Run | None) -> None:
        """Keep the run that the forms are about."""
        self._run = run
        self.edit.disabled = run is None or not run.iterations
        self.rubric.disabled = run is None

    def _build(self, name: str) -> None:
        """Build a form when it is first opened: every field costs the panel's first paint."""
        from ipywidgets import HTML

        builders: dict[str, Callable[[], Any]] = {
            "edit": self._edit_form,
            "rubric": self._rubric_form,
            "help": lambda: HTML(KEYS),
        }
        self._forms[name] = form = builders[name]()
        form.layout.display = "none"
        self.widget.children = (*self.widget.children, form)

    def _edit_form(self) -> Any:
        from ipywidgets import Textarea, VBox

        self._text = Textarea(description="Your text", rows=14, style=_FIT, tooltip="The text.")
        self._text.add_class("rf-words")
        self._text.add_class("rf-mono")
        save = button("Save as an iteration", "Have your text checked and judged.")
        self._click(save, self._save)
        return VBox([self._text, save])

    def _rubric_form(self) -> Any:
        from ipywidgets import BoundedFloatText, HBox, Text, VBox

        self._criteria = Text(description="Criteria", style=_FIT, tooltip="As a, b, c.")
        self._criteria.add_class("rf-field")
        self._target = BoundedFloatText(
            min=0, max=1, step=0.05, description="Target", style=_FIT, tooltip="Score that passes."
        )
        apply = button("Apply rubric", "Judge by these from now on, and all texts again.")
        self._click(apply, self._apply)
        target = HBox([self._target, apply])
        target.add_class("rf-actions")
        return VBox([self._criteria, target])

    def _toggle(self, name: str) -> None:
        if name not in self._forms:
            self._build(name)
        opening = self._forms[name].layout.display == "none"
        number = self._number()
        if opening and name == "edit" and self._run and number is not None:
            self._text.value = self._run.iterations[number].text
        if opening and name == "rubric" and self._run:
            self._criteria.value = ", ".join(c.name for c in self._run.task.criteria)
            self._target.value = self._run.limits.target
        self._show(name if opening else "")

    def _show(self, name: str) -> None:
        for known, form in self._forms.items():
            form.layout.display = None if known == name else "none"

    def _save(self) -> None:
        self._send(Edit(iteration=self._number(), text=self._text.value))
        self._show("")

    def _apply(self) -> None:
        assert self._run is not None, "its button is disabled before"
        self._send(Rubric.build(self._run, self._criteria.value, self._target.value))
        self._show("")
