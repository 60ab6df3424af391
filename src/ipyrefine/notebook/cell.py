"""One execution of a `%%refine` cell: from its options to its accepted text."""

import os
from typing import Any

from ipyrefine import checks, profiles
from ipyrefine.compose import compose, raise_failure
from ipyrefine.errors import Interrupted, UsageError
from ipyrefine.loop.events import Event, Stopped
from ipyrefine.loop.runs import Decision, Limits, Run, StopReason
from ipyrefine.notebook import cells, options
from ipyrefine.notebook.record import RecordDisplay
from ipyrefine.notebook.session import Session


class CellRun:
    """A cell's refinement, from its options to its accepted text.

    Args:
        magics: the configured magics, with their shell.
        line: the options.
        body: the cell below them.

    Raises:
        UsageError: an option or the body cannot be used; nothing was started.
        NoModel: no model is configured.
    """

    def __init__(self, magics: Any, line: str, body: str) -> None:
        self.shell = magics.shell
        self.options = options.parse(line)
        if not body.strip():
            raise UsageError("The cell is empty: write a task or a draft below %%refine.")
        limits = options.limits(self.options, _configured(magics))
        named = checks.resolve(self.options.check, self.shell.user_ns, target=limits.target)
        drafted = self.options.draft or (not self.options.task and profiles.is_python(body))
        self.refinement = compose(
            (self.options.goal or "") if drafted else body.strip(),
            model=self.options.model or magics.model or None,
            judge=self.options.judge or magics.judge or None,
            base_url=self.options.base_url or magics.base_url or None,
            checks=named,
            profile=self.options.profile,
            criteria=[c.strip() for c in (self.options.criteria or "").split(",") if c.strip()],
            draft=body.strip("\n") if drafted else None,
            limits=limits,
        )
        self.session = Session(self.refinement, [])
        self.record = RecordDisplay()
        self.panel: Any = None
        self.executing = False
        self.cell_id = cells.source_cell_id()
        self.source = cells.source_cell_text() or ""
        self._choose_displays(magics.ui)

    async def go(self) -> None:
        """Run the cell to the loop's stop, with the text in the namespace on every exit.

        Raises:
            Interrupted: the user interrupted the cell.
            ModelError: the model failed.
        """
        self.executing = True
        try:
            await self.session.go()
            if not self.options.quiet and self.panel is None:
                await self._ask_in_terminal()
            if self.options.apply in ("insert", "replace"):
                await self.place(replace=self.options.apply == "replace")
        finally:
            self.executing = False
        self._raise_what_ended_it()

    def close(self) -> None:
        """Stop the loop and close the panel; the record stays."""
        self.session.stop()
        if self.panel is not None:
            self.panel.close()
            self.panel = None

    async def place(self, number: int | None = None, *, replace: bool = False) -> str:
        """Put a text into a cell and say which way was used.

        Args:
            number: the iteration; None for the chosen one.
            replace: whether to replace the source cell instead of inserting below.
        """
        run = self.session.run
        text = run.text if number is None else run.iterations[number].text
        if self.executing or self.cell_id is None:
            cells.payload_insert(self.shell, text, replace=replace)
            return "The text is in the next cell."
        placed = await cells.put_text(
            text,
            cell_id=self.cell_id,
            op="replace" if replace else "insert",
            cell_type="code" if run.task and run.task.form == "code" else "markdown",
            expected_source=self.source if replace else None,
        )
        if placed.how == "inserted":
            return "The text is in a new cell below."
        if placed.how == "replaced":
            return "The text replaced the cell's source."
        if placed.how == "already":
            return "The text is in a cell already."
        name = self.options.output or "refined"
        return f"It is in `{name}`; run `%refine apply` to put it into a cell."

    def _choose_displays(self, ui: str) -> None:
        self.session.shows.append(self._keep)
        ui = "plain" if self.options.plain or self.options.quiet else ui
        widgets = ui == "widgets" or (ui == "auto" and self.cell_id is not None)
        if os.environ.get("IPYREFINE_UI") == "plain":
            widgets = False
        if widgets:
            self._open_panel()
        elif not self.options.quiet and not hasattr(self.shell, "kernel"):
            from ipyrefine.notebook.terminal import Transcript

            self.session.shows.append(Transcript())

    def _open_panel(self) -> None:
        from IPython.display import display

        from ipyrefine.notebook.panel import Panel

        self.panel = Panel(decide=self.decide, stop=self.session.stop, close=self.close)
        display(self.panel.widget)
        self.session.shows.append(self.panel.show)

    def decide(self, decision: Decision) -> None:
        """Take a decision from the panel or a command."""
        self.session.decide(decision)

    def _keep(self, event: Event, run: Run) -> None:
        """Keep the namespace and the record true after every stop."""
        if not isinstance(event, Stopped):
            return
        self.shell.user_ns[self.options.output or "refined"] = run.text
        self.shell.user_ns["refined_run"] = run
        if hasattr(self.shell, "kernel"):
            self.record.show(run)
        if event.reason is StopReason.ACCEPTED:
            self._accepted()

    def _accepted(self) -> None:
        if self.options.apply == "none":
            return
        import asyncio

        async def put() -> None:
            said = await self.place()
            if self.panel is not None:
                self.panel.note(said)

        self._placing = asyncio.ensure_future(put())

    async def _ask_in_terminal(self) -> None:
        if self.options.apply in (None, "ask") and not hasattr(self.shell, "kernel"):
            from ipyrefine.notebook.terminal import ask

            await ask(self)

    def _raise_what_ended_it(self) -> None:
        name = self.options.output or "refined"
        if self.session.interrupted:
            kept = (
                f"the best text so far is in `{name}`" if self.session.run.text else "no text yet"
            )
            raise Interrupted(f"Interrupted; {kept}.")
        raise_failure(self.refinement)


def _configured(magics: Any) -> Limits:
    return Limits(
        max_iterations=magics.max_iterations, target=magics.target, patience=magics.patience
    )
