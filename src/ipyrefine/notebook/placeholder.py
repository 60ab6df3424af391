"""What a cell shows before anything heavy is loaded, and the loading while nobody waits."""

import asyncio
import contextlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ipyrefine.render.style import STYLE

STARTING = "Starting…"
NO_FRONT_END = (
    "This front-end shows no ipywidgets: `%refine` gives the panel's commands, "
    "and the record of the run follows here."
)
NO_IPYWIDGETS = (
    "The panel needs ipywidgets (`pip install ipywidgets`); without it the run is shown as a "
    "plain record when it stops, and `%refine` steers it."
)
_UNSHOWN = {"-q", "--quiet", "--plain"}
# In the order in which a cell comes to need them; each is one pause of the kernel's loop.
_NEEDED = (
    *("ipyrefine.session.commands", "ipyrefine.notebook.starting", "ipywidgets"),
    *("ipyrefine.notebook.panel", "httpx2", "openai", "ipyrefine.providers.openai"),
)
_PAUSE = 0.1  # seconds between two of them


class Opening:
    """The place of a panel in a cell's output, which has one line until the panel is there."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self) -> None:
        """Say that the cell starts; takes milliseconds, where the panel can take a second."""
        from IPython.display import display

        line = f'<p role="status" class="rf-quiet">{STARTING}</p>'
        html = f'<div class="ipyrefine"><style>{STYLE}</style>{line}</div>'
        data = {"text/html": html, "text/plain": STARTING}
        self._handle = display(data, raw=True, display_id=True)

    def fill(self, widget: Any) -> None:
        """Put a widget there; a front-end that cannot show it says what to do instead."""
        from IPython.display import display

        self._put({**widget._repr_mimebundle_(), "text/plain": NO_FRONT_END}, display)

    def clear(self) -> None:
        """Take the line away, unless there is none or a widget is in its place."""
        if self._handle is not None:
            self._put({"text/html": "", "text/plain": ""}, None)

    def _put(self, data: dict[str, Any], display: Callable[..., Any] | None) -> None:
        if self._handle is not None:
            self._handle.update(data, raw=True)
            self._handle = None
        elif display:
            display(data, raw=True)


def may_show_a_panel(ui: str, line: str, *, cell_id: bool) -> bool:
    """Whether a cell will show a panel, from what is known without reading its options.

    Args:
        ui: as configured.
        line: the cell's options.
        cell_id: whether a front-end named the cell.
    """
    return (ui == "widgets" or (ui == "auto" and cell_id)) and not _UNSHOWN & {*line.split()}


def warm_up() -> None:
    """Load what the first cell will need, piece by piece, while the kernel has nothing to do."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return  # a plain shell: nothing is ever idle there
    names = iter(_NEEDED)

    def one() -> None:
        if name := next(names, ""):
            # Whatever is amiss is told where it is needed.
            with contextlib.suppress(Exception):
                import_module(name)
            loop.call_later(_PAUSE, one)

    loop.call_later(_PAUSE, one)
