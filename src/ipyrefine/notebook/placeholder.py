"""The line a cell shows before the panel is loaded, and the loading while the kernel is idle."""

import asyncio
import contextlib
from importlib import import_module
from typing import Any

STARTING = "Starting…"
# It is also what an export of a notebook shows in the panel's place.
NO_FRONT_END = (
    "The panel needs widgets and a live kernel. `%refine` works without them, "
    "and the run's record follows."
)
NO_ANYWIDGET = (
    "The panel needs anywidget (`pip install anywidget`). Without it you get a plain record "
    "when the run stops, and the `%refine` commands."
)
_PANEL_OFF = {"-q", "--quiet", "--plain"}
# In the order in which a cell needs them; each import is one pause of the kernel's loop.
_MODULES = (
    *("ipyrefine.session.commands", "ipyrefine.notebook.cell_start", "anywidget"),
    *("ipyrefine.notebook.panel", "httpx2", "openai", "ipyrefine.providers.openai"),
)
_PAUSE = 0.1  # seconds between two imports


class Placeholder:
    """A panel's place in a cell's output, which holds one line until the panel is there."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self) -> None:
        """Show that the cell starts; takes milliseconds, where the panel can take a second."""
        from IPython.display import display

        html = f'<p role="status" style="font: 13px system-ui, sans-serif">{STARTING}</p>'
        data = {"text/html": html, "text/plain": STARTING}
        self._handle = display(data, raw=True, display_id=True)

    def fill(self, widget: Any) -> None:
        """Put a widget there; a front-end that cannot show it says what to do instead."""
        from IPython.display import display

        data, metadata = widget._repr_mimebundle_()  # the metadata is Colab's
        put, self._handle = self._handle.update if self._handle else display, None
        put({**data, "text/plain": NO_FRONT_END}, raw=True, metadata=metadata)

    def clear(self) -> None:
        """Remove the line, unless there is none or a widget took its place."""
        if self._handle is not None:
            self._handle.update({"text/html": "", "text/plain": ""}, raw=True)
            self._handle = None


def expects_panel(ui: str, line: str, *, cell_id: bool) -> bool:
    """Return whether a cell will show a panel, judging without parsing its options."""
    return (ui == "widgets" or (ui == "auto" and cell_id)) and not _PANEL_OFF & {*line.split()}


def warm_up() -> None:
    """Import what the first cell will need, piece by piece, while the kernel is idle."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return  # a plain shell is never idle
    names = iter(_MODULES)

    def import_next() -> None:
        if name := next(names, ""):
            # An error is reported where the module is needed.
            with contextlib.suppress(Exception):
                import_module(name)
            loop.call_later(_PAUSE, import_next)

    loop.call_later(_PAUSE, import_next)
