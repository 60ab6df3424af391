"""The way of a text into a cell, and the sentence that says which way was taken."""

from typing import Any, Literal, get_args

from ipyrefine.core.runs import Run
from ipyrefine.notebook import cell_target as cells

Where = Literal["insert", "replace", "none"]
WHERE: tuple[Where, ...] = get_args(Where)


class Home:
    """The cell a run was started in, and where its text goes from there.

    Args:
        shell: the IPython shell.
        variable: the name the text has in the namespace, for when no cell can be reached.
        where: into a new cell, in place of the source cell, or into the variable only.

    Attributes:
        where: as given, until the user says otherwise.
        cell_id: id of the source cell; None where the front-end does not say.
    """

    def __init__(self, shell: Any, variable: str, where: Where = "insert") -> None:
        self._shell, self._variable = shell, variable
        self.where = where
        self.cell_id = cells.source_cell_id()
        self._source = cells.source_cell_text() or ""
        self._holder: str | None = None

    async def read_back(self) -> str | None:
        """What the cell that a text was put into holds now; None where that cannot be known."""
        return await cells.read_text(self._holder) if self._holder else None

    async def put(self, text: str, run: Run, *, executing: bool) -> str:
        """Put a text into a cell; gives one sentence that says where it is.

        Args:
            text: the text.
            run: the run it comes from.
            executing: whether a cell of this shell runs now, whose reply can carry the text.
        """
        if self.where == "none":
            return f"The text is in `{self._variable}`."
        running = cells.source_cell_id() if executing else None
        placed = await self._ask_front_end(text, run, running, executing=executing)
        self._holder = placed.cell_id if placed.ok else self._holder
        if placed.how == "unavailable" and (executing or self.cell_id is None):
            return self._send_with_reply(text, running)
        match placed.how:
            case "inserted":
                return "The text is in a new cell below."
            case "replaced":
                return "The text replaced the cell's source; undo brings it back."
            case "already":
                return "The text is in a cell already."
        changed = placed.reason == "changed"
        kept = "The cell has changed since, so it was left as it is. " if changed else ""
        return (
            f"{kept}The text is in `{self._variable}`; "
            "run `%refine apply insert` to put it into a new cell."
        )

    async def _ask_front_end(
        self, text: str, run: Run, running: str | None, *, executing: bool
    ) -> cells.Placed:
        """Have the front-end do it, which says whether it did; first wherever it can answer."""
        if self.cell_id is None or (executing and not cells.answered_while_running()):
            return cells.Placed(how="unavailable", reason="no-kernel")
        form = run.task.form if run.task else "code"
        replace = self.where == "replace"
        return await cells.put_text(
            text,
            cell_id=self.cell_id if replace else running or self.cell_id,
            op="replace" if replace else "insert",
            cell_type="code" if form == "code" else "markdown",
            expected_source=self._source if replace else None,
        )

    def _send_with_reply(self, text: str, running: str | None) -> str:
        """Send it along with the running cell's reply, which no front-end confirms."""
        # The reply can replace only the cell that runs, which may not be the source.
        replace = self.where == "replace" and running == self.cell_id
        cells.payload_insert(self._shell, text, replace=replace)
        return "The text replaces the cell." if replace else "The text is in the next cell."
