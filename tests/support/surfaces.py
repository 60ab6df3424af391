"""The surfaces that show a run, each as a function that returns its text."""

from collections.abc import Callable

from ipyrefine.core.run import Run
from ipyrefine.render.html import View, panel_parts, record_html
from ipyrefine.render.terminal import record_text


def panel_html(run: Run, **view: object) -> str:
    """Return the whole panel."""
    return "".join(panel_parts(run, View(**view)).values())


SURFACES: tuple[Callable[[Run], str], ...] = (
    record_text,
    record_html,
    panel_html,
)
