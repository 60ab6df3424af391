"""What an accepted text gave once its cell ran, compared with what was shown of it.

Nothing of the user's or a model's runs for that: values are only read (`kernel.held`).
"""

import contextlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from ipyrefine.checks.python import RunsCleanly
from ipyrefine.core import same
from ipyrefine.core.model import Difference, Held, Ran
from ipyrefine.core.ports import SECRETS
from ipyrefine.core.run import Iteration
from ipyrefine.core.table import Result
from ipyrefine.errors import RefineError
from ipyrefine.kernel.held import MAX_HELD, hold, is_data, raised_type, raised_words
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.names import IPYTHON, names_defined, names_in_code
from ipyrefine.kernel.variables import Copies
from ipyrefine.notebook.failure import is_ours
from ipyrefine.notebook.waiting import running_loop
from ipyrefine.sandbox.sandbox import HASH_SEED
from ipyrefine.session.session import Session

_MAX_NAMES = 20
_HIDDEN = re.compile(rf"_|(?:{IPYTHON.pattern})\Z")
_ELSEWHERE, _NO_VALUE = re.compile(r"\s*%%timeit\b"), re.compile(r"\s*%%(?:capture|prun)\b")


class AcceptedCell:
    """The cell of an accepted text, until it has run for the first time.

    Args:
        shell: the IPython shell.
        session: the run.
        head: what stands above the text in its cell.
        copies: what the text was run on.
        tell: takes what came of it, once that is known; None once nothing more can.

    Attributes:
        is_over: whether nothing more can come of it.
        old: by name, the earlier values of names that it bound anew; until the next cell runs.
    """

    def __init__(
        self,
        shell: Any,
        session: Session,
        head: str,
        copies: Copies,
        tell: Callable[[Ran | None], None],
    ) -> None:
        run = session.run
        assert run.chosen is not None, "it was accepted"
        self._shell, self._session, self._copies, self._tell = shell, session, copies, tell
        self._text: Iteration = run.chosen
        whole = head + self._text.text
        self._sources = {whole.strip(), self._text.text.strip()}
        part = python_part(whole)
        foreign = whole.lstrip().startswith("%%") and part.code == whole
        self.is_over = foreign or bool(_ELSEWHERE.match(whole))
        last = whole.rstrip().rpartition("\n")[2].strip()
        self._code = python_part(self._text.text).code
        self._binds = names_defined(self._code)[:MAX_HELD]
        ran = (one for one in self._text.evidence if one.basis == "run" and not one.not_run)
        shown = next((one for one in ran if one.passed is not None and not one.conditions), None)
        self._shown: Result | None = shown
        by_name = {one.name for one in shown.held} if shown else set()
        silent = _NO_VALUE.match(whole) or last in {*part.lines, *by_name}
        self._answers = not silent
        taken = copies.taken(self._code)
        self._moment = taken.moment if taken else None
        if changed := taken.folder.changed() if taken else []:
            self._tell(Ran(iteration=self._text.number, how="moved", files=tuple(changed)))
        # While it runs, and nothing ran before.
        self._before: tuple[Held, ...] = ()
        self._new: list[str] = []
        self._has_run = False
        self.old: dict[str, Any] = {}

    @property
    def may_restore(self) -> bool:
        """Whether there may be something to put back once it has run."""
        if self.is_over or self._has_run or self._shown:
            return bool(self.old)
        return any(n in self._space and is_data(self._space[n]) for n in self._binds)

    @property
    def _space(self) -> Mapping[str, Any]:
        space: Mapping[str, Any] = self._shell.user_ns
        return space

    def begin(self, source: str) -> None:
        """Take note of a cell that is about to run."""
        if self.is_over:
            return
        if self._has_run and not is_ours(source):
            self.is_over = True
            self.old.clear()
            self._tell(None)
        elif source.strip() in self._sources and self._shown is None and not self._has_run:
            self._new = [name for name in self._binds if name not in self._space]
            names = dict.fromkeys([*self._binds, *names_in_code(self._code)])
            known = [n for n in names if n in self._space and not _HIDDEN.match(n)]
            self.old = {name: self._space[name] for name in known[:_MAX_NAMES]}
            self._before = hold(self.old)

    def end(self, result: Any) -> None:
        """Compare, where the cell that has run is the text's."""
        if self.is_over or self._has_run or result.info.raw_cell.strip() not in self._sources:
            return
        self._has_run = True
        error = result.error_before_exec or result.error_in_exec
        if self._shown is None:
            self._tell_effects(error)
            return
        self.is_over = True
        if not isinstance(error, Exception | None):  # an interrupt, or an exit
            return
        cells = self._shell.history_manager.input_hist_raw
        since = [""] if self._moment is None else cells[self._moment :]
        if not all(is_ours(one) or one.strip() in self._sources for one in since):
            self._tell(Ran(iteration=self._text.number, how="moved"))
            return
        answer = {"": result.result} if self._answers else {}
        names = [one.name for one in self._shown.held if one.name in self._space]
        now = hold({**answer, **{name: self._space[name] for name in names}})
        shown = [one for one in self._shown.held if one.name or self._answers]
        before = self._shown.faults[0].raised if self._shown.faults else ""
        found: tuple[Difference, ...] = ()
        if raised_type(error) != before:
            found = (Difference(kind="raised", shown=before, now=raised_words(error)),)
        elif not error:
            written = same.files(self._shown.effects)
            found = same.differ((*shown, *written), (*now, *map(_as_it_is, written)))
        differs = any(one.kind != "order" for one in found)
        there = {one.name for one in now}
        count = sum(one.tells for one in shown if one.name in there)
        ran = Ran(
            iteration=self._text.number,
            how="differs" if differs else "same",
            results=0 if error else count,
            differences=found,
            raised=raised_words(error),
        )
        if not differs:
            if count or error:
                self._tell(ran)
            return
        taken = self._copies.taken(self._code)
        loop = running_loop()  # none in a plain shell: nothing can run behind its back
        own = {one.name for one in self._shown.effects}
        if not loop or taken is None or taken.files is None or {*taken.folder.changed()} - own:
            self._tell(ran)
            return
        self._again = loop.create_task(self._tell_if_steady(ran, shown, taken.files))

    async def _tell_if_steady(self, ran: Ran, shown: list[Held], files: Mapping[str, Any]) -> None:
        """Run the text once more on what it was run on, and tell what does not vary by itself."""
        refinement = self._session.refinement
        SECRETS.set(getattr(refinement.model, "secrets", None))
        HASH_SEED.set("random")
        check = next((one for one in refinement.checks if isinstance(one, RunsCleanly)), None)
        again, varies = None, set()
        with contextlib.suppress(RefineError):  # what differs is said all the same
            again = await check(self._text.text, self._session.run.task, files) if check else None
        if again and again.passed is not None and self._shown:
            raised = [one.faults[0].raised if one.faults else "" for one in (again, self._shown)]
            if raised[0] != raised[1]:
                varies = {one.key for one in ran.differences}
            else:
                pairs = (shown, self._shown.effects), (again.held, again.effects)
                varies |= {
                    one.key
                    for one in same.differ(*((*held, *same.files(of)) for held, of in pairs))
                }
        steady = tuple(one for one in ran.differences if one.key not in varies)
        how = "differs" if steady else "varies"
        self._tell(ran.replace(how=how, differences=steady or ran.differences))

    def _tell_effects(self, error: BaseException | None) -> None:
        before, old = self._before, self.old
        held = [one.name for one in before]
        names = [name for name in (*held, *self._new) if name in self._space]
        now = hold({name: self._space[name] for name in names})
        rebound = [name for name in held if self._space.get(name) is not old[name]]
        found = [*same.changes(before, now)]
        said = {one.name for one in found}
        opaque = {one.name for one in now if not one.tells}
        found += [Difference(kind="value", name=n) for n in rebound if n in opaque - said]
        said |= opaque & set(rebound)
        self.old = {name: old[name] for name in rebound if name in said}
        raised = raised_words(error) if isinstance(error, Exception) else ""
        self.is_over = not self.old
        ran = Ran(
            iteration=self._text.number,
            how="first",
            raised=raised,
            differences=tuple(found),
            back=tuple(self.old),
        )
        self._tell(ran if found or raised else None)

    def restore(self) -> Ran | None:
        """Give the names that were bound anew their earlier values; return what is said then."""
        ran, names = self._session.run.ran, tuple(self.old)
        self._shell.user_ns.update(self.old)
        self.old.clear()
        self.is_over = True
        return ran and ran.replace(back=(), restored=names)


def _as_it_is(file: Held) -> Held:
    exists = os.path.exists(file.name)
    return same.file(file.name, os.path.getsize(file.name) if exists else None)
