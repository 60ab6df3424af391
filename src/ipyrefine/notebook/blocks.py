"""The iterations of a panel, one block each; what did not change is neither made nor sent again."""

from typing import TYPE_CHECKING, Any

from ipyrefine.loop.records import Task
from ipyrefine.loop.runs import Iteration, Run
from ipyrefine.notebook.ledger import dispose
from ipyrefine.render.html import INLINE, View, iteration_html

if TYPE_CHECKING:
    import ipywidgets


class Blocks:
    """The iterations of a run; the latest and the best are unfolded."""

    def __init__(self) -> None:
        from ipywidgets import VBox

        self.widget: ipywidgets.VBox = VBox()
        self._shown: list[Iteration | None] = []
        self._unfolded: tuple[int | None, int | None] = (None, None)  # the best, the latest
        self._task: Task | None = None
        self._view = INLINE

    def update(self, run: Run, view: View) -> None:
        """Show a run.

        Args:
            run: the run.
            view: how its texts are compared.
        """
        self._resize(len(run.iterations))
        before, unfolded = self._unfolded, (run.best, len(run.iterations) - 1)
        turned = {*before} ^ {*unfolded}
        if before[0] != run.best:
            turned |= {before[0], run.best}  # the star moves, also between two unfolded ones
        every = (run.task, view) != (self._task, self._view) or (view.best and run.best in turned)
        blocks: tuple[Any, ...] = self.widget.children
        changed = {i.number for i, b in zip(run.iterations, self._shown, strict=True) if i is not b}
        for iteration in run.iterations:
            number = iteration.number
            if every or number in changed or number in turned or iteration.parent in changed:
                blocks[number].value = iteration_html(
                    run, number, open=number in unfolded, view=view
                )
        self._shown = list(run.iterations)
        self._unfolded, self._task, self._view = unfolded, run.task, view

    def _resize(self, count: int) -> None:
        from ipywidgets import HTML

        blocks = self.widget.children
        if len(blocks) == count:
            return
        added = [HTML() for _ in range(count - len(blocks))]
        self.widget.children = (*blocks[:count], *added)
        for block in blocks[count:]:
            dispose(block)
        self._shown = [*self._shown[:count], *(None for _ in added)]
