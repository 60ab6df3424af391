"""What a person looks at: which iteration, compared with what, with which form and folds open."""

from typing import NamedTuple

from ipyrefine.core.run import Run
from ipyrefine.core.sharing import Sharing
from ipyrefine.render import labels
from ipyrefine.render.escape import plain
from ipyrefine.render.progress import WRITING


class View(NamedTuple):
    """What a person looks at.

    Attributes:
        shown: the iteration to show; None follows the run.
        best: whether texts are compared with the best one instead of their parent.
        sides: whether they stand side by side.
        form: which form is open; empty for none.
        finding: the finding that the form is about; empty for none.
        folds: the names of the open folds.
        place: where an accepted text goes: ``insert``, ``replace`` or ``none``.
        place_to_run: where it goes when it is to run: ``insert`` or ``replace``.
        seconds: what the run has taken up to now.
        rate: how fast the model writes, in words.
        silence: seconds without a reply, once they are many; else 0.
        under_way: the iteration that the stage under way is about.
        streaming: what streams: ``text``, ``thinking``, or empty.
        has_prompts: whether it is known what was sent to models.
        prompts: what was sent, as title and text, while that is shown.
        can_change_model: whether the run can go on with another model.
        can_switch: whether the run can start again as the other kind of text.
        revision: changes whenever typed words were taken.
        sharing: what servers are sent of what code computed, where there is such.
        withheld: the text that they are not sent, while that is shown.
    """

    shown: int | None = None
    best: bool = False
    sides: bool = False
    form: str = ""
    finding: str = ""
    folds: frozenset[str] = frozenset()
    place: str = "insert"
    place_to_run: str = "insert"
    seconds: float = 0.0
    rate: str = ""
    silence: float = 0.0
    under_way: int = 0
    streaming: str = ""
    has_prompts: bool = False
    prompts: tuple[tuple[str, str], ...] = ()
    can_change_model: bool = False
    can_switch: bool = False
    revision: int = 0
    sharing: Sharing = Sharing()
    withheld: str = ""


STATIC = View()


def about_number(run: Run, view: View) -> int | None:
    """Return the iteration that the panel shows and its buttons are about; None before any."""
    if not run.iterations:
        return None
    if view.shown is not None and view.shown < len(run.iterations):
        return view.shown
    if labels.running(run) and run.stage not in WRITING:
        return len(run.iterations) - 1
    return run.chosen.number if run.chosen else len(run.iterations) - 1


def compared_with(run: Run, view: View, number: int) -> int | None:
    """Return the iteration that a text is compared with; None where it is shown alone."""
    iteration = run.iterations[number]
    if view.best and run.best is not None and run.best != number:
        return run.best
    return iteration.parent


def first_line(text: str) -> str:
    """Return the first line of a text."""
    return plain(text).strip().partition("\n")[0]
