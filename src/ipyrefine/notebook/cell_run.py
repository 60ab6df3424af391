"""A cell's run: its session, what shows it, its variables, and where its text goes."""

import argparse
import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ipyrefine import api
from ipyrefine.checks.schema import Schema
from ipyrefine.core.actions import Fields, row_of
from ipyrefine.core.after import words as words_after
from ipyrefine.core.decisions import Accept, Continue, Decision, Destination
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import CellRan, Event, StageStarted, Stopped
from ipyrefine.core.model import Form, Outcome, Ran, StopReason
from ipyrefine.core.ports import Check, Model
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import Level, withheld
from ipyrefine.core.typed import PLACES
from ipyrefine.errors import Interrupted, ModelError, RefineError, UsageError, describe
from ipyrefine.journal.writer import Recorder
from ipyrefine.kernel.folder import above_of
from ipyrefine.kernel.variables import NOT_RUN_HERE, Copies
from ipyrefine.notebook.after_run import AcceptedCell
from ipyrefine.notebook.cell_source import CellKey
from ipyrefine.notebook.cell_target import CellTarget, Origin
from ipyrefine.notebook.in_cell import hunks
from ipyrefine.notebook.waiting import (
    NO_ANYWIDGET,
    Placeholder,
    caller_waits,
    run_to_end,
    running_loop,
)
from ipyrefine.providers.choose import mark_asked, models_at_hand
from ipyrefine.providers.servers import Key, remember_about
from ipyrefine.render import say
from ipyrefine.render.escape import fence, plain
from ipyrefine.session.commands import ANSWERS
from ipyrefine.session.export import kept_suite, suite_source
from ipyrefine.session.record import ACCEPT, DECIDED, RecordDisplay
from ipyrefine.session.session import Session, sent_prompts

_NO_KEY = CellKey()
_HEARD_S = 0.02  # in which a message that waits reaches us


class Made(NamedTuple):
    """A refinement, the journal that stores its events, if any, and what it was made with."""

    refinement: Refinement
    journal: Recorder | None
    options: api.Options


class CellRun:
    """A refinement in a cell, with its panel or transcript, its record and its variables.

    Args:
        magics: the configured magics, with their shell.
        args: the options.
        made: what runs.
        placeholder: the panel's place in the output, where there is one.
        origin: the cell that the text is from, where that is another one.
        key: what the cell is recognised by when it runs again.
        begin: makes its run as code or as prose; None where it can't be switched.
        shown: whether the run is displayed as it goes.
        aside: whether it is only shown: it binds no names and is not the latest run.

    Attributes:
        shell: the IPython shell.
        session: runs the refinement.
        cell_target: where its text goes.
        panel: the panel; None when none is on screen.
    """

    def __init__(
        self,
        magics: Any,
        args: argparse.Namespace,
        made: Made,
        placeholder: Placeholder | None = None,
        *,
        origin: Origin | None = None,
        key: CellKey = _NO_KEY,
        begin: Callable[[Form], Awaitable[Made]] | None = None,
        shown: bool = True,
        aside: bool = False,
    ) -> None:
        self.shell, self._magics, self.aside = magics.shell, magics, aside
        refinement, journal, self._options = made
        self.session = Session(refinement, [self._update], journal)
        self._args = args
        self._number = len(self.shell.history_manager.input_hist_raw) - 1  # of its cell
        self._variable = args.output or "refined"
        place = args.apply if args.apply in PLACES else None
        self.cell_target = CellTarget(self.shell, self._variable, place, origin)
        self._key = key
        self._setup: Any = None  # the form that sets up a model, while it is open
        self._asks_setup = False
        self._begin, self._form = begin, refinement.state.task.form
        self.panel: Any = None
        self._record = RecordDisplay()
        self._note = ""  # what the record says of how the panel was closed
        self._executing = False
        self._accepted: AcceptedCell | None = None
        self._telling: asyncio.Future[None] | None = None
        self._inserting: asyncio.Future[None] | None = None
        plain = args.plain or args.quiet or os.environ.get("IPYREFINE_UI") == "plain"
        named = magics.ui == "auto" and self.cell_target.cell_id is not None
        # No click would arrive where the caller waits.
        self._uses_panel = (magics.ui == "widgets" or named) and not (plain or caller_waits())
        if shown and self._uses_panel:
            self._open_panel(placeholder or Placeholder())
        elif shown and not self._args.quiet and not hasattr(self.shell, "kernel"):
            from ipyrefine.session.screen import Transcript

            self.session.displays.append(
                Transcript(can_switch=begin is not None and not (self._is_look or args.coach))
            )

    async def go(self) -> None:
        """Run to the loop's stop, with the text in the namespace on every exit.

        Raises:
            UsageError: it should run in the background, and there is no panel.
            Interrupted: the user interrupted the cell.
            RefineError: what ended the run early.
        """
        if self._args.background:
            if self.panel is None:
                raise UsageError("--background needs the panel, which only a notebook shows.")
            self.session.start()
            return
        with self._cell_executes():
            await self.session.go()
            in_terminal = not (self._args.quiet or self.panel or hasattr(self.shell, "kernel"))
            if in_terminal and not self._is_look and self._args.apply in (None, "ask"):
                from ipyrefine.session.screen import ask

                await ask(self.session)
            run = self.session.run
            takes = os.environ.get(ACCEPT) == "best" and run.stop_reason not in DECIDED
            if takes and run.verdict and run.verdict.outcome is not Outcome.NEEDS_IMPROVEMENT:
                self.decide(Accept(destination="none"))
                await self.session.go()
            if self._args.apply in ("insert", "replace") and self.session.run.text:
                self._finish(await self._place())
            await self._settle()
        self._raise_failure()

    async def resume(self) -> None:
        """Continue an earlier run; one that was accepted is only shown, its text not inserted."""
        if self.session.run.stop_reason is StopReason.ACCEPTED:
            self._set_variables(self.session.run)
            self._finish()
        else:
            await self.go()

    def show_again(self, note: str) -> None:
        """Show the record of a run that is decided in the cell that runs now."""
        self._set_variables(self.session.run)
        self._record, self._note = RecordDisplay(), note
        self._show_record()

    async def carry_out(self, decision: Decision) -> None:
        """Take a decision from a cell of its own, and show its result there.

        Raises:
            UsageError: it cannot be carried out; nothing has changed.
            Interrupted: the user interrupted the cell.
            RefineError: what ended the run early.
        """
        self.decide(decision)
        await self._steer(shown=not isinstance(decision, Accept))

    async def _steer(self, *, shown: bool = True) -> None:
        with self._cell_executes():
            if shown and self._uses_panel and self.panel is None:
                self._open_panel(Placeholder())
            await self.session.go()
            await self._settle()
        self._raise_failure()

    async def perform(self, action: str, fields: Fields) -> str:
        """Do as `act` from a cell of its own, to its end; errors also as for `carry_out`."""
        said = self.act(action, fields)
        if isinstance(said, str):
            return said
        if action == "switch":
            await said
            await self._steer()
            return ""
        with self._cell_executes():
            return await said or ""

    async def _explain(self, question: str, number: int) -> str:
        self._set_variables(await self.session.explain(number, question))
        self._show_record()
        return "Nothing was revised. Leave out the question mark to have it revised."

    async def _place(self, place: Destination | None = None) -> str:
        run, form = self.session.run, self.session.run.task.form
        text = run.text
        if run.task.is_foreign and not self.cell_target.head(place):  # no code cell could run it
            text, form = fence(text, run.task.language), "prose"
        return await self.cell_target.put(
            text, form=form, executing=self._executing, destination=place
        )

    def decide(self, decision: Decision) -> None:
        """Take a decision from the panel or the terminal; raises as `Session.decide` does."""
        self._note = ""
        if self._is_look and row_of(decision).revises and not decision.settles:
            self._use_model(self._options.model)  # the one that is configured by now, if any
            self._asks_setup = not self.session.refinement.state.setup.model
        self.session.decide(decision)

    def act(self, action: str, fields: Fields) -> str | Awaitable[str | None]:
        """Do one of `ACTIONS` that is no decision; return what there is to say, now or later.

        Raises:
            UsageError: it can't be done now, or a field means nothing here.
            RefineError: a model is not here, or failed.
        """
        name, task = fields.get("name", ""), self.session.run.task
        match action:
            case "stop":
                self.session.stop()
                return "Stopping…"
            case "close":
                self.close()
            case "share":
                return self._share_more(name)
            case "model":  # whoever reads stays
                if not (model := fields["model"].strip()):
                    raise UsageError("Name the model to continue with.")
                if self.session.running:
                    raise UsageError("Stop the run first, then continue with another model.")
                self._use_model(model)
                self.decide(Continue(guidance=fields.get("words", "").strip()))
            case "setup" if self._setup:
                waits: Awaitable[str] = self._setup.act(action, fields)
                return waits
            case "switch":  # by default, to the other kind of text
                form = name or say.other_form(task)
                if form == task.form:
                    raise UsageError(f"This run is for {form} already.")
                how = f"This run cannot be switched. Start a %%refine cell with -p {form}."
                return self._restart(form, how)
            case "see":
                left_out = self._args.no_var
                changed = [one for one in left_out if one != name]
                self._args.no_var = changed if len(changed) < len(left_out) else [*left_out, name]
                self._args.var = [one for one in self._args.var if one != name]
                return self._restart(task.form, f"Start a %%refine cell with --no-var {name}.")
            case "tests":
                source = suite_source(self.session.run, "cell")
                return self.cell_target.add_below(source, executing=self._executing)
            case "back" if self._accepted and (ran := self._accepted.restore()):
                self._tell(ran)
            case "ask":
                return self._explain(fields["words"], fields["iteration"])
            case "unconfined" | "above" as setting:
                value = int(name) if setting == "above" else name == "yes"
                setattr(self._args, setting, value)
                self._magics.set = {**self._magics.set, setting: value}
                if self._is_look and value:
                    return self._restart(task.form)
                return "This holds from the next text on."
        return ""

    def offers(self, form: str) -> dict[str, Any]:
        """Return what a panel can offer now while a form is open, and which one is then."""
        refinement = self.session.refinement
        shown = [one for text in self.session.run.iterations for one in text.evidence]
        has_models = form == "model"
        if self._asks_setup:
            form, self._asks_setup = "server", False
        if self._setup and (self._setup.closed or form != "server"):
            form = "" if form == "server" else form
            self._setup = None
        elif form == "server" and self._setup is None:
            from ipyrefine.notebook.setup import Setup

            failed = self.session.run.stop_reason is StopReason.FAILED
            self._setup = Setup(
                self._magics,
                changed=lambda: self.panel.draw() if self.panel else None,
                finish=self._use_setup,
                word="Use it and try again" if failed else "Use it",
                url=self._options.base_url or "",
                model=self.session.run.setup.model,
            )
        return {
            "form": form,
            "setup": self._setup,
            "can_change_model": True,
            "has_tests": any(kept_suite(self.session.run)),
            "models": models_at_hand(refinement.model, refinement.judge) if has_models else {},
            "can_restart": self._begin is not None and not self._is_look,
            "unseen": tuple(one for one in self._args.no_var if one != "all"),
            "asks_to_run": self._args.unconfined is None
            and any(one.shows == NOT_RUN_HERE for one in shown),
            "asks_above": max(
                (above_of(one.shows) for one in shown if self._args.above is None), default=0
            ),
            "run": self.session.journal.number if self.session.journal else "",
            "prompts": tuple(sent_prompts(refinement.model)),
            "sharing": refinement.sharing,
            "back": tuple(self._accepted.old) if self._accepted else (),
            "place": self.cell_target.place,
            "place_to_run": self.cell_target.place_to_run,
        }

    def origin(self, number: int | None) -> dict[str, Any] | None:
        """Return the cell that the draft is from, and what a text would change there."""
        run, base = self.session.run, self.cell_target.origin
        if base is None or run.setup.draft is None or run.setup.coach:
            return None
        text = run.iterations[number] if number is not None else None
        changed = text and text.text != run.setup.draft  # more than the magic's line
        fits = changed and (base.head or not run.task.is_foreign)
        return {
            "cell": base.cell_id,
            "type": "code" if run.task.form == "code" else "markdown",
            "base": base.source,
            "hunks": hunks(base.source, base.head + text.text) if text and fits else [],
            "iteration": number,
        }

    def close(self) -> None:
        """Stop the loop and close the panel; the record stays."""
        note = self._note if self.session.run.stop_reason is StopReason.ACCEPTED else ""
        if self.session.running:  # a pause stays one, to be resumed
            self.session.stop()
            note = f"Stopped and closed. The best text so far is in `{self._variable}`."
        self._finish(note)

    def _use_setup(self, how: str) -> None:
        """Have the run go on with what was set up; one that failed goes on at once."""
        if how != "use":
            return
        magics = self._magics
        self._options = replace(
            self._options,
            model=magics.model,
            judge=magics.judge or magics.model,
            base_url=magics.base_url or None,
            api_key=Key(),
        )
        if self.session.running:
            return
        self._use_model(magics.model)
        if self.session.run.stop_reason is StopReason.FAILED:
            self.decide(Continue())

    def _use_model(self, name: Model | str | None) -> None:
        run, before = self.session.run, self._options
        checks = [c for c in self.session.refinement.checks if c.name in run.setup.checks]
        judge = before.judge or before.model or run.setup.judge or None
        self._options = replace(before, model=name, judge=judge, checks=checks)
        earlier: Any = self.session.refinement.model
        self.session.refinement = api.make(run, self._options)
        model: Any = self.session.refinement.model  # what was sent is listed with what was before
        model.secrets.sent, model.secrets.numbers = earlier.secrets.sent, earlier.secrets.numbers

    async def _restart(self, form: Form, otherwise: str = "") -> None:
        """Stop the run, and start its cell again; `otherwise` says how, where that can't be."""
        if self._begin is None:
            raise UsageError(otherwise)
        refinement, journal, self._options = await self._begin(form)
        self._note = ""
        self.session.restart(refinement, journal)

    def _share_more(self, answer: str) -> str:
        """Take the user's answer on what the run's servers are sent, and say what holds now."""
        sharing = self.session.refinement.sharing
        if answer not in ANSWERS:
            raise UsageError(f"%refine share takes {', '.join(ANSWERS)}, not {answer!r}.")
        if not sharing.servers:
            raise UsageError("The models of this run are on this machine: nothing leaves it.")
        level: Level = "structure" if answer == "never" else "all"
        # The other answers hold for later kernels, too.
        servers = () if answer == "once" else sharing.servers
        kept = [remember_about(server, share=level) for server in servers]
        self.session.refinement.sharing = sharing._replace(level=level, asks=False)
        return say.sharing_sentence(answer, sharing.servers, stored=all(kept))

    @property
    def _is_look(self) -> bool:
        return self.session.run.setup.is_look

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs or is on screen."""
        return self.panel is None and not self.session.running

    def shows_same_run(self, other: "CellRun") -> bool:
        """Return True if two cells show the same run of the journal."""
        ours, theirs = self.session.journal, other.session.journal
        return bool(ours and theirs and ours.number and ours.number == theirs.number)

    # Displays

    def _open_panel(self, placeholder: Placeholder) -> None:
        """Show the panel in the output of the running cell, or say why there is none."""
        from ipyrefine.notebook.panel import Panel

        try:
            self.panel = Panel(self)
        except ImportError:
            self._uses_panel = False
            print(NO_ANYWIDGET)
            return
        placeholder.fill(self.panel.widget)
        self._place_of_panel = placeholder
        self.session.displays.append(self.panel.show)

    def _update(self, event: Event, run: Run) -> None:
        self.cell_target.fits = run.task.form == self._form
        if isinstance(event, CellRan):
            self.shell.user_ns["refined_run"] = run
            self._show_record()
        if self.panel and isinstance(event, StageStarted):
            self._show_record()  # of a page that is saved now, or whose kernel goes
        if not isinstance(event, Stopped):
            return
        if self.panel is not None and withheld(run):
            mark_asked(self.session.refinement.sharing.servers)
        self._set_variables(run)
        error = self.session.refinement.error
        self._asks_setup = self._panel_tells and bool(getattr(error, "asks_setup", False))
        failed = event.reason is StopReason.FAILED and not self._panel_tells
        if failed and not run.iterations and self._executing:
            self._close_panel()  # the cell's error says all there is to say
            return
        self._show_record()
        if self._key.cell and self.session.journal is None and event.reason in DECIDED:
            self._magics.decided[self._key.cell] = self
        if event.reason is StopReason.ACCEPTED:
            place = run.ruling.destination if isinstance(run.ruling, Accept) else None
            if run.task.is_python:  # what its cell gives is compared at its first run
                head = self.cell_target.head(place)
                cell = AcceptedCell(self.shell, self.session, head, self.copies, self._tell)
                if self._accepted:
                    self._accepted.is_over = True
                self._accepted = self._magics.expect(cell)
            self._inserting = asyncio.ensure_future(self._insert_accepted(place))

    def _set_variables(self, run: Run) -> None:
        if self.aside:
            return
        self._magics.given.append((self._number, run.text))
        self.shell.user_ns["refined_run"] = run
        self.shell.user_ns[self._variable] = _result(run, self.session.refinement.checks)

    async def _insert_accepted(self, place: Destination | None) -> None:
        """Put the accepted text into a cell, unless that was declined, and close the panel."""
        try:
            note = await self._place(place)
        except Exception as error:  # after a click nobody awaits this, so the record says it
            note = (
                f"The text could not be put into a cell ({describe(error)}). It is in "
                f"`{self._variable}`."
            )
        # The panel closes last: its many messages would keep the front-end from answering in time.
        self._finish(note, may_wait=True)

    # The cell of the accepted text

    @property
    def copies(self) -> Copies:
        """What its texts are run on."""
        return self._options.variables.copies

    def _tell(self, ran: Ran | None) -> None:
        """Keep what came of the accepted text's run, if anything, and show it."""
        if running_loop():
            self._telling = asyncio.ensure_future(self._add(ran))
        else:
            run_to_end(self._add(ran))

    async def _add(self, ran: Ran | None) -> None:
        await self.session.settle()  # the cell may run as the acceptance is still being stored
        if self.session.run.stop_reason is not StopReason.ACCEPTED:
            return
        if ran:
            with contextlib.suppress(RefineError):  # the run holds it, stored or not
                await self.session.add(CellRan(ran=ran))
            if not hasattr(self.shell, "kernel"):
                print(plain(words_after(ran)))
        run = self.session.run
        if self.panel and run.stop_reason is StopReason.ACCEPTED and not self.session.running:
            self._finish(self._note, may_wait=True)

    async def _settle(self) -> None:
        """Wait until the accepted text is in its cell, and the page's word on it was read."""
        if self._inserting:
            await self._inserting
        if self.panel is not None:
            # ipykernel 7.4 gives the next cell's end to this one where a widget's message is
            # handled as this one ends; the next then looks as if it ran for ever.
            await asyncio.sleep(_HEARD_S)

    def _finish(self, note: str = "", *, may_wait: bool = False) -> None:
        """Close the panel for good, unless values may still be put back there; the record stays."""
        self._note = note
        if may_wait and self.panel and self._accepted and self._accepted.may_restore:
            self.panel.note("")
        else:
            self._close_panel()
        self._show_record()

    def _close_panel(self) -> None:
        if self.panel is not None:
            self.session.displays.remove(self.panel.show)
            self.panel.close()
            self._place_of_panel.clear()
            self.panel = None

    def _show_record(self) -> None:
        if hasattr(self.shell, "kernel"):
            panel = self.panel.id if self.panel is not None else ""
            cell, asked = self.cell_target.holder, self._key.task
            self._record.show(
                self.session.run, note=self._note, panel=panel, cell=cell, asked=asked
            )

    @contextlib.contextmanager
    def _cell_executes(self) -> Iterator[None]:
        """Mark that a cell runs, whose reply can carry a text into the next cell.

        However it ends, the text so far is in its variable.
        """
        self._executing = True
        try:
            yield
        finally:
            self._executing = False
            self._set_variables(self.session.run)

    @property
    def _panel_tells(self) -> bool:
        return self.panel is not None and isinstance(self.session.refinement.error, ModelError)

    def _raise_failure(self) -> None:
        if self.session.interrupted:
            kept = f"the best text so far is in `{self._variable}`"
            text = self.session.run.text or self.session.run.unfinished
            raise Interrupted(f"Interrupted; {kept if text else 'no text yet'}.")
        if self._panel_tells:
            return
        api.raise_failure(self.session.refinement)


def _result(run: Run, checks: Sequence[Check]) -> Any:
    """Return the value of a run's variable: the text, or the object that a schema accepted."""
    if run.task.profile == "data" and run.chosen:
        accepted = {evidence.name for evidence in run.chosen.evidence if evidence.passed}
        for check in checks:
            if isinstance(check, Schema) and check.name in accepted:
                return check.value(run.text)
    return run.text
