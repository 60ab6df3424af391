"""The static record: one output that says it all without a kernel."""

from typing import Any

from ipyrefine.loop.runs import Run
from ipyrefine.render.html import record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.text import record_text

MIME = "application/vnd.ipyrefine.run+json"


def bundle(run: Run, *, note: str = "", folded: bool = False) -> dict[str, Any]:
    """Make the MIME bundle of a run: plain text, Markdown, HTML and the run itself.

    Args:
        run: the run.
        note: a sentence the HTML says first.
        folded: whether the HTML takes one line until it is opened.
    """
    return {
        "text/plain": record_text(run),
        "text/markdown": record_markdown(run),
        "text/html": record_html(run, note=note, folded=folded),
        MIME: run.model_dump(mode="json"),
    }


class RecordDisplay:
    """Shows the record when a run stops, and keeps that one output up to date afterwards."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, run: Run, *, note: str = "", folded: bool = False) -> None:
        """Put the record of a stopped run into the cell's output; arguments as for `bundle`."""
        from IPython.display import display

        data = bundle(run, note=note, folded=folded)
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
