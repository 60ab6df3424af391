"""The iterations of a panel, one block each; what did not change is neither made nor sent again."""

from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING

from ipyrefine.core.records import Task
from ipyrefine.core.runs import Iteration, Run
from ipyrefine.notebook.ledger import dispose
from ipyrefine.render.html import INLINE, View, iteration_html

if TYPE_CHECKING:
    import ipywidgets

_GROUP = 50  # blocks in a box: for one more block, its box is listed anew, and not all there are


class Blocks:
    """The iterations of a run; the latest and the best are unfolded."""

    def __init__(self) -> None:
        from ipywidgets import VBox

        self.widget: ipywidgets.VBox = VBox()
        self._blocks: list[ipywidgets.HTML] = []
        self._shown: tuple[Iteration, ...] = ()
        self._unfolded: tuple[int | None, int | None] = (None, None)  # the best, the latest
        self._task: Task | None = None
        self._view = INLINE

    def update(self, run: Run, view: View) -> None:
        """Show a run.

        Args:
            run: the run.
            view: how its texts are compared.
        """
        unfolded = (run.best, len(run.iterations) - 1)
        if len(run.iterations) < len(self._blocks):
            self._clear()
        self._grow(len(run.iterations))
        for number in self._touched(run, view, unfolded):
            html = iteration_html(run, number, open=number in unfolded, view=view)
            self._blocks[number].value = html
        self._shown, self._unfolded = run.iterations, unfolded
        self._task, self._view = run.task, view

    def _clear(self) -> None:
        """Drop every block, as the run was started over."""
        boxes, self.widget.children = self.widget.children, ()
        for box in boxes:
            dispose(box)
        self._blocks, self._shown, self._unfolded = [], (), (None, None)

    def _grow(self, count: int) -> None:
        from ipywidgets import HTML, VBox

        if count == len(self._blocks):
            return
        self._blocks += [HTML() for _ in range(count - len(self._blocks))]
        groups = [self._blocks[start : start + _GROUP] for start in range(0, count, _GROUP)]
        boxes = self.widget.children
        if boxes:
            boxes[-1].children = groups[len(boxes) - 1]
        if len(groups) > len(boxes):
            self.widget.children = (*boxes, *map(VBox, groups[len(boxes) :]))

    def _touched(self, run: Run, view: View, unfolded: tuple[int | None, int]) -> Iterable[int]:
        """The iterations that look different now."""
        turned = {*self._unfolded} ^ {*unfolded}
        if self._unfolded[0] != run.best:
            turned |= {self._unfolded[0], run.best}  # the star moves, also between unfolded ones
        every = (run.task, view) != (self._task, self._view)
        if every or (view.best and run.best in turned):
            return range(len(run.iterations))
        pairs = zip_longest(run.iterations, self._shown)
        changed = {number for number, (now, before) in enumerate(pairs) if now is not before}
        compared = {i.number for i in run.iterations if i.parent in changed} if changed else set()
        return sorted(changed | compared | {n for n in turned if n is not None and n >= 0})
