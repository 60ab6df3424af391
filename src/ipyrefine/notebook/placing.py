"""The way of a text into a cell, and the sentence that says which way was taken."""

from typing import Any, Literal

from ipyrefine.loop.runs import Run
from ipyrefine.notebook import cells


class Home:
    """The cell a run was started in, and where its text goes from there.

    Args:
        shell: the IPython shell.
        variable: the name the text has in the namespace, for when no cell can be reached.
    """

    def __init__(self, shell: Any, variable: str) -> None:
        self._shell, self._variable = shell, variable
        self.cell_id = cells.source_cell_id()
        self._source = cells.source_cell_text() or ""
        self._holder: str | None = None

    async def read_back(self) -> str | None:
        """What the cell that a text was put into holds now; None where that cannot be known."""
        return await cells.read_text(self._holder) if self._holder else None

    async def put(self, text: str, run: Run, *, executing: bool, replace: bool) -> str:
        """Put a text into a cell; gives one sentence that says where it is.

        Args:
            text: the text.
            run: the run it comes from.
            executing: whether a cell of this shell runs now, whose reply can carry the text.
            replace: whether it takes the place of the source cell, or goes below it.
        """
        if executing or self.cell_id is None:
            cells.payload_insert(self._shell, text, replace=replace)
            return "The text replaces the cell." if replace else "The text is in the next cell."
        form = run.task.form if run.task else "code"
        kind: Literal["code", "markdown"] = "code" if form == "code" else "markdown"
        placed = await cells.put_text(
            text,
            cell_id=self.cell_id,
            op="replace" if replace else "insert",
            cell_type=kind,
            expected_source=self._source if replace else None,
        )
        self._holder = placed.cell_id if placed.ok else self._holder
        match placed.how:
            case "inserted":
                return "The text is in a new cell below."
            case "replaced":
                return "The text replaced the cell's source; undo brings it back."
            case "already":
                return "The text is in a cell already."
        changed = "The cell has changed since, so it was left as it is. " if replace else ""
        return (
            f"{changed}The text is in `{self._variable}`; "
            "run `%refine apply` to put it into a cell."
        )
