"""One execution of a `%%refine` cell: from its options to its accepted text."""

import argparse
import asyncio
import contextlib
import os
from collections.abc import Iterator
from typing import Any

from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import Event, Stopped
from ipyrefine.core.ports import Check
from ipyrefine.core.runs import Decision, Run, StopReason
from ipyrefine.errors import Interrupted, UsageError
from ipyrefine.journal.recorder import Recorder
from ipyrefine.notebook import asking
from ipyrefine.notebook.placeholder import NO_IPYWIDGETS, Opening
from ipyrefine.notebook.placing import WHERE, Home
from ipyrefine.running import raise_failure
from ipyrefine.session.record import RecordDisplay
from ipyrefine.session.session import Session


class CellRun:
    """A cell's refinement, from its options to its accepted text.

    Args:
        magics: the configured magics, with their shell.
        chosen: the options.
        refinement: what runs.
        checks: its checks.
        journal: keeps its events; None for a run that leaves none.
        opening: the panel's place in the output, where one is kept.
    """

    def __init__(
        self,
        magics: Any,
        chosen: argparse.Namespace,
        refinement: Refinement,
        checks: tuple[Check, ...],
        journal: Recorder | None,
        opening: Opening | None = None,
    ) -> None:
        self.shell = magics.shell
        self.options = chosen
        self.refinement = refinement
        self.checks = checks
        self.name = self.options.output or "refined"
        apply = self.options.apply
        self.home = Home(self.shell, self.name, apply if apply in WHERE else "insert")
        self.session = Session(refinement, [], journal)
        self.record = RecordDisplay()
        self.panel: Any = None
        self.executing = False
        self._placing: asyncio.Future[None] | None = None
        self._choose_displays(magics.ui, opening or Opening())

    async def go(self) -> None:
        """Run the cell to the loop's stop, with the text in the namespace on every exit.

        Raises:
            Interrupted: the user interrupted the cell.
            ModelError: the model failed.
        """
        if self.options.background:
            self._start_in_background()
            return
        with self._executing():
            await self.session.go()
            if not self.options.quiet and self.panel is None:
                await self._ask_in_terminal()
            if self.options.apply in ("insert", "replace") and self.session.run.text:
                self._finish(await self.place())
            if self._placing:
                await self._placing
        self._raise_what_ended_it()

    def _start_in_background(self) -> None:
        if self.panel is None:
            raise UsageError("--background needs the panel, which a notebook shows.")
        self.session.start()

    def stop(self) -> None:
        """Stop the loop, or let a pause be the end; the best text so far is kept."""
        self.session.stop()
        self.session.end_pause()

    def close(self) -> None:
        """Stop the loop and close the panel; the record stays."""
        self.session.stop()
        self._finish()

    async def place(self, number: int | None = None) -> str:
        """Put a text into a cell and say which way was used.

        Args:
            number: the iteration; None for the chosen one.
        """
        run = self.session.run
        text = run.text if number is None else run.iterations[number].text
        return await self.home.put(text, run, executing=self.executing)

    @property
    def over(self) -> bool:
        """Whether nothing of it runs or is on screen."""
        return self.panel is None and not self.session.running

    def same_as(self, other: "CellRun") -> bool:
        """Whether two cells show the same run of the journal."""
        ours, theirs = self.session.journal, other.session.journal
        return bool(ours and theirs and ours.number and ours.number == theirs.number)

    def recall(self) -> None:
        """Show a run that was accepted before, as the accepting left it."""
        self._set_variables(self.session.run)
        self._finish()

    async def apply(self, number: int | None = None) -> str:
        """Put a text into a cell from the cell that runs now, and say which way was used."""
        with self._executing():
            return await self.place(number)

    async def steer(self, decision: Decision) -> None:
        """Take a decision given in a cell of its own, and show there what comes of it."""
        if self.widgets and self.panel is None and decision.kind != "accept":
            self.open_panel(Opening())
        with self._executing():
            self.decide(decision)
            await self.session.go()
            if self._placing:
                await self._placing
        self._raise_what_ended_it()

    @contextlib.contextmanager
    def _executing(self) -> Iterator[None]:
        """Mark that a cell runs, whose reply can carry a text into the next cell."""
        self.executing = True
        try:
            yield
        finally:
            self.executing = False

    def open_panel(self, opening: Opening) -> None:
        """Show the panel in the output of the cell that runs now; say so where that cannot be.

        Args:
            opening: its place in the output.
        """
        from ipyrefine.notebook.panel import Panel

        try:
            self.panel = Panel(decide=self.decide, stop=self.stop, close=self.close, home=self.home)
        except ImportError:
            self.widgets = False
            print(NO_IPYWIDGETS)
            return
        opening.fill(self.panel.widget)
        self.session.shows.append(self.panel.show)

    def _choose_displays(self, ui: str, opening: Opening) -> None:
        self.session.shows.append(self._keep)
        ui = "plain" if self.options.plain or self.options.quiet else ui
        self.widgets = ui == "widgets" or (ui == "auto" and self.home.cell_id is not None)
        if os.environ.get("IPYREFINE_UI") == "plain":
            self.widgets = False
        if self.widgets:
            self.open_panel(opening)
        elif not self.options.quiet and not hasattr(self.shell, "kernel"):
            from ipyrefine.session.terminal import Transcript

            self.session.shows.append(Transcript())

    def decide(self, decision: Decision) -> None:
        """Take a decision from the panel or a command."""
        self.session.decide(decision)

    def _keep(self, event: Event, run: Run) -> None:
        """Keep the namespace and the record true after every stop."""
        if not isinstance(event, Stopped):
            return
        self._set_variables(run)
        self._show_record()
        if event.reason is StopReason.ACCEPTED:
            self._placing = asyncio.ensure_future(self._accepted())

    def _set_variables(self, run: Run) -> None:
        self.shell.user_ns[self.name] = asking.result(run, self.checks)
        self.shell.user_ns["refined_run"] = run

    async def _accepted(self) -> None:
        """End the panel, with the text in a cell unless that was declined."""
        # The panel closes last: its many messages would keep the front-end from answering in time.
        self._finish(await self.place())

    def _finish(self, said: str = "") -> None:
        """Close the panel for good; what stays in the notebook is the record."""
        if self.panel is not None:
            self.session.shows.remove(self.panel.show)
            self.panel.close()
            self.panel = None
        self._show_record(said)

    def _show_record(self, said: str = "") -> None:
        if hasattr(self.shell, "kernel") and self.session.run.stop_reason is not None:
            self.record.show(self.session.run, note=said, folded=self.panel is not None)

    async def _ask_in_terminal(self) -> None:
        if self.options.apply in (None, "ask") and not hasattr(self.shell, "kernel"):
            from ipyrefine.session.terminal import ask

            await ask(self)

    def _raise_what_ended_it(self) -> None:
        if self.session.interrupted:
            kept = (
                f"the best text so far is in `{self.name}`"
                if self.session.run.text
                else "no text yet"
            )
            raise Interrupted(f"Interrupted; {kept}.")
        raise_failure(self.refinement)
