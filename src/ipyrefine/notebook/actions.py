"""The buttons and fields below a run on screen."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ipyrefine.core.runs import Run, StopReason
from ipyrefine.notebook.placing import Home
from ipyrefine.render.html import View

if TYPE_CHECKING:
    import ipywidgets

_WORDS = "Guidance, or the reason for an override (optional)"
_MORE = "Allow more revisions, guided by the words above."
_MORE_RUNNING = "While it runs: add revisions and give guidance for the next one."
_WHERE = [("a new cell", "insert"), ("this cell", "replace"), ("the variable only", "none")]
_FIT = {"description_width": "initial"}


class Reading:
    """How the texts are compared: with which one, and in how many columns."""

    def __init__(self, changed: Callable[[], None]) -> None:
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
            control.observe(lambda _: changed(), "value")

    @property
    def view(self) -> View:
        """The choice made."""
        return View(best=bool(self.other.value), sides=bool(self.sides.value))

    def update(self, run: Run) -> None:
        """Show itself once there is something to compare."""
        self.widget.layout.display = None if len(run.iterations) > 1 else "none"


class Actions:
    """The controls of a run; they know when they make sense, not what they lead to.

    Args:
        home: where an accepted text goes, for the user to choose; None offers no choice.
    """

    def __init__(self, home: Home | None = None) -> None:
        from ipywidgets import BoundedIntText, Dropdown, HBox, Textarea, VBox

        self.stop = button("Stop", "Stop now and keep the best text so far.", "danger", key="s")
        self.which = Dropdown(
            options=[("Best", None)],
            description="Iteration",
            tooltip="The iteration that the buttons are about.",
            style=_FIT,
        )
        self.accept = button("Accept", "Take this iteration's text.", "success", key="a")
        self.passed = button(
            "Pass anyway", "Overrule the verdict: the text is good enough.", key="p"
        )
        self.not_yet = button(
            "Not yet", "Overrule the verdict: the text needs another revision.", key="n"
        )
        self.rounds = BoundedIntText(
            value=1,
            min=1,
            max=9,
            description="Rounds",
            tooltip="How many more revisions Continue allows.",
            style=_FIT,
        )
        self.more = button("Continue", _MORE, key="c")
        self.close = button("Close", "Close the panel; the record stays in the notebook.")
        self.words = Textarea(
            description=_WORDS,
            tooltip=_WORDS,
            placeholder="What should be different, or why",
            rows=2,
            style=_FIT,
        )
        chosen = [_where(home)] if home else []
        judge = HBox([self.which, self.accept, *chosen, self.passed, self.not_yet])
        steer = HBox([self.rounds, self.more, self.stop, self.close])
        for row in (judge, steer):
            row.add_class("rf-actions")
        self.words.add_class("rf-words")
        self.widget: Any = VBox([judge, self.words, steer])

    def update(self, run: Run) -> None:
        """Offer the run's iterations, and enable what can be done with it now."""
        count = len(run.iterations)
        if len(self.which.options) != count + 1:
            kept = self.which.value
            self.which.options = (
                ("Best", None),
                *((str(number), number) for number in range(count)),
            )
            # By its place: a value of None would leave the menu blank instead of at "Best".
            self.which.index = kept + 1 if kept is not None and kept < count else 0
        running, any_text = run.stop_reason is None, count > 0
        verified = any(i.verdict is not None for i in run.iterations)
        self.stop.disabled = not running and run.stop_reason is not StopReason.PAUSED
        self.accept.disabled = self.which.disabled = not any_text
        overrides = verified or (any_text and not running)
        self.passed.disabled = self.not_yet.disabled = not overrides
        # Before the first text there is nothing that guidance or more revisions could bear on.
        self.more.disabled = self.rounds.disabled = self.words.disabled = running and not any_text
        self.more.tooltip = _MORE_RUNNING if running else _MORE


def _where(home: Home) -> Any:
    """The choice of where an accepted text goes."""
    from ipywidgets import Dropdown

    menu = Dropdown(
        options=_WHERE,
        value=home.where,
        description="into",
        tooltip="Where Accept puts the text.",
        style=_FIT,
    )
    menu.observe(lambda change: setattr(home, "where", change["new"]), "value")
    return menu


def button(name: str, tooltip: str, style: str = "", *, key: str = "") -> "ipywidgets.Button":
    """A button with a title.

    Args:
        name: what it says.
        tooltip: what it does.
        style: a Jupyter button style, or empty.
        key: the key that presses it where the front-end half of the package is installed.
    """
    from ipywidgets import Button

    said = f"{tooltip} ({key})" if key else tooltip
    made = Button(description=name, tooltip=said, button_style=style)
    if key:
        made.add_class(f"rf-key-{'help' if key == '?' else key}")
    return made
