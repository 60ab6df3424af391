"""What a user may rewrite: the text itself by hand, and what it is judged by."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ipyrefine.core.runs import Decision, Run
from ipyrefine.notebook.actions import button
from ipyrefine.session.deciding import rubric

if TYPE_CHECKING:
    import ipywidgets

_FIT = {"description_width": "initial"}
HELP = """\
<p class="rf-head"><strong>Keys</strong>, while the focus is on the panel and not in a field</p>
<table class="rf-table"><tr><th scope="row">a</th><td>Accept</td></tr>
<tr><th scope="row">c</th><td>Continue</td></tr>
<tr><th scope="row">r</th><td>Revise with these</td></tr>
<tr><th scope="row">p</th><td>Pass anyway</td></tr>
<tr><th scope="row">n</th><td>Not yet</td></tr>
<tr><th scope="row">e</th><td>Edit the text</td></tr>
<tr><th scope="row">s</th><td>Stop</td></tr>
<tr><th scope="row">?</th><td>this help</td></tr></table>
<p class="rf-quiet">Tab goes from control to control. Keys need the JupyterLab extension that comes
with the package; every button is a command too: <code>%refine accept</code>,
<code>%refine continue 2 "shorter"</code>, …</p>"""


class Rewriting:
    """Foldable forms: the text, the rubric, and the list of keys.

    Args:
        click: connects a button with what it does.
        send: hands a decision over.
        number: gives the iteration the panel is about.
    """

    def __init__(
        self,
        click: Callable[["ipywidgets.Button", Callable[[], None]], None],
        send: Callable[..., None],
        number: Callable[[], int | None],
    ) -> None:
        from ipywidgets import HBox, VBox

        self._click, self._send, self._number, self._run = click, send, number, Run()
        self.edit = button(
            "Edit text", "Change the text by hand; it becomes an iteration.", key="e"
        )
        self.rubric = button("Rubric", "Change the criteria or the target; texts are re-scored.")
        self.help = button("?", "The keys of this panel.", key="?")
        buttons = HBox([self.edit, self.rubric, self.help])
        buttons.add_class("rf-actions")
        self._forms: dict[str, Any] = {}
        self.widget: Any = VBox([buttons])
        click(self.edit, lambda: self._toggle("edit"))
        click(self.rubric, lambda: self._toggle("rubric"))
        click(self.help, lambda: self._toggle("help"))

    def update(self, run: Run) -> None:
        """Keep the run that the forms are about."""
        self._run = run
        self.edit.disabled = not run.iterations
        self.rubric.disabled = run.task is None

    def _make(self, name: str) -> None:
        """Make a form when it is first opened: every field costs the panel's first paint."""
        from ipywidgets import HTML

        makers: dict[str, Callable[[], Any]] = {
            "edit": self._edit_form,
            "rubric": self._rubric_form,
            "help": lambda: HTML(HELP),
        }
        self._forms[name] = form = makers[name]()
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
        apply = button("Apply rubric", "Judge by these from now on; re-score the history.")
        self._click(apply, self._apply)
        target = HBox([self._target, apply])
        target.add_class("rf-actions")
        return VBox([self._criteria, target])

    def _toggle(self, name: str) -> None:
        if name not in self._forms:
            self._make(name)
        opening = self._forms[name].layout.display == "none"
        number = self._number()
        if opening and name == "edit" and number is not None:
            self._text.value = self._run.iterations[number].text
        if opening and name == "rubric" and self._run.task:
            self._criteria.value = ", ".join(c.name for c in self._run.task.criteria)
            self._target.value = self._run.limits.target
        self._show(name if opening else "")

    def _show(self, name: str) -> None:
        for known, form in self._forms.items():
            form.layout.display = None if known == name else "none"

    def _save(self) -> None:
        text = self._text.value
        self._send(Decision(kind="edit", iteration=self._number(), text=text), words=False)
        self._show("")

    def _apply(self) -> None:
        decision = rubric(self._run, self._criteria.value, self._target.value)
        self._send(decision, words=False)
        self._show("")
