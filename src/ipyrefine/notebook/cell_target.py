"""Insert accepted text into a notebook cell and report where it went.

While a cell runs, its reply can carry the text. Otherwise the page's half of ipyrefine,
`labextension/static/cells.js`, inserts it and says what it did (`put_text`).
"""

import asyncio
import re
import uuid
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeGuard

from pydantic import ConfigDict, Field

from ipyrefine.core.decisions import Destination
from ipyrefine.core.model import Form, Record
from ipyrefine.core.typed import Place
from ipyrefine.errors import UsageError
from ipyrefine.notebook.waiting import caller_waits
from ipyrefine.render.formatting import keep_line_breaks

COMM_TARGET = "ipyrefine.cells"
TIMEOUT = 8.0  # seconds; a page without our half answers at once, a busy one may take a while
_HEARS_COMMS = (7, 4)  # the first ipykernel that handles comm messages while a cell awaits

# nbformat's own pattern. VS Code sends a URI here, which names no cell of the notebook's file.
CELL_ID = r"^[a-zA-Z0-9_-]{1,64}$"


class Origin(NamedTuple):
    """The cell that a text is from.

    Attributes:
        source: what it holds, or held when the run began.
        head: what stays above the text when that replaces it.
    """

    cell_id: str
    source: str
    head: str = ""


class CellTarget:
    """The cell a run was started in, and where its text goes from there.

    Args:
        shell: the IPython shell.
        variable: the variable that holds the text, for when no cell can be reached.
        place: where the text goes unless the user says otherwise; by default in place of the cell
            that it is from, or into a new one.
        origin: the cell it is from; the running one by default.

    Attributes:
        cell_id: id of the cell that ran it; None where the front-end does not say.
        origin: the cell the text is from, if that is known.
        fits: whether the text is of the kind that its cell was started for; another kind never
            takes the place of a cell that the user named.
    """

    def __init__(
        self,
        shell: Any,
        variable: str,
        place: Place | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._shell, self._variable = shell, variable
        self._named = origin is not None
        self._place: Place = place or ("replace" if origin else "insert")
        self.fits = True
        self.cell_id = source_cell_id()
        if origin is None and self.cell_id:
            origin = Origin(self.cell_id, source_cell_text() or "")
        self.origin = origin
        self._holder: Origin | None = None  # the cell with the text, as it was put there
        self._text = ""  # what it was before its line breaks became Markdown's

    @property
    def place(self) -> Place:
        """Where the text goes unless the user says otherwise."""
        return self._place if self.fits or not self._named else "insert"

    @property
    def place_to_run(self) -> Place:
        """Where a text goes that is to run: into the cell that the user named, or a new one."""
        return "replace" if self._named and self.fits else "insert"

    def head(self, destination: Destination | None = None) -> str:
        """Return the lines above a text in the cell that it replaces; empty for a new cell."""
        place = self.place_to_run if destination == "run" else destination or self.place
        return self.origin.head if self.origin and place == "replace" else ""

    @property
    def holder(self) -> str:
        """The id of the cell that a text was put into; empty where that is not known."""
        return self._holder.cell_id if self._holder else ""

    async def read_back(self) -> str | None:
        """Return the source of the cell that a text was put into; None where that is unknown."""
        cell = await read_cell(self.holder) if self._holder else None
        if not (cell and self._holder):
            return None
        source = str(cell.text)
        if self._holder.source == source:
            source = self._text
        elif self._holder.source != self._text:
            source = source.replace("  \n", "\n")
        return source.removeprefix(self._holder.head)

    async def add_below(self, source: str, *, executing: bool) -> str:
        """Put code into a new cell below the one with the text, and say where it is."""
        cell_id = self.holder or self.cell_id
        asks = cell_id is not None and (not executing or hears_comms_while_running())
        if asks and (await put_text(source, cell_id=cell_id, op="insert")).ok:
            return "The tests are in a new cell below the text."
        if not executing:
            raise UsageError("No cell can be added here. Run %refine tests below.")
        self._shell.set_next_input(source)
        return "The tests are in the next cell."

    async def put(
        self, text: str, *, form: Form, executing: bool, destination: Destination | None = None
    ) -> str:
        """Put a text into a cell and return one sentence that says where it is.

        A second text takes the place of the first in the cell that was added for it, while that is
        as it was; a destination that says ``insert`` adds another cell.
        """
        place = self.place_to_run if destination == "run" else destination or self.place
        if place == "none":
            return f"The text is in `{self._variable}`."
        origin = self.origin if place == "replace" else None
        head = origin.head if origin else ""
        text = head + text
        if origin and text.strip("\n") == origin.source.strip("\n"):
            text = origin.source
        shown = keep_line_breaks(text) if form == "prose" and not origin else text
        running = source_cell_id() if executing else None
        placed = Placed(how="unavailable", reason="no-kernel")
        goals = [origin]
        if not origin and destination != "insert" and self._holder != self.origin:
            goals = [*filter(None, [self._holder]), None]
        reachable = self.cell_id is not None and (not executing or hears_comms_while_running())
        for goal in goals if reachable else ():
            placed = await put_text(
                shown,
                cell_id=goal.cell_id if goal else running or self.cell_id,
                op="replace" if goal else "insert",
                cell_type="code" if form == "code" else "markdown",
                expected_source=goal.source if goal else None,
                run=destination == "run",
            )
            if placed.ok:
                break
        if placed.how == "unavailable" and (executing or self.cell_id is None):
            # The reply can replace only the running cell, which may not be the source.
            replace = place == "replace" and running == (origin and origin.cell_id)
            self._shell.set_next_input(text, replace=replace)
            return "The text replaces the cell." if replace else "The text is in the next cell."
        if placed.ok and placed.cell_id:
            self._holder, self._text = Origin(placed.cell_id, shown, head), text
            self.origin = self._holder if origin else self.origin
        ran = placed.reason == "ran"
        match placed.how:
            case "inserted":
                return f"The text is in a new cell below{', which runs now' * ran}."
            case "replaced" if ran and origin and text == origin.source:
                return "The cell runs now."
            case "replaced":
                runs = ", and the cell runs now" * ran
                return f"The text replaced the cell's source{runs}; undo brings it back."
            case "already":
                return "The text is in a cell already."
        changed = placed.reason == "changed"
        kept = "The cell has changed since, so it was left as it is. " if changed else ""
        return (
            f"{kept}The text is in `{self._variable}`; "
            "run `%refine accept insert` to put it into a new cell."
        )


# The running cell


def source_cell_id() -> str | None:
    """Return the id of the running notebook cell; None where the front-end does not say."""
    cell_id = _parent().get("metadata", {}).get("cellId")
    return cell_id if is_cell_id(cell_id) else None


def is_cell_id(value: object) -> TypeGuard[str]:
    """Return True if a value is the id of a cell in the notebook's file."""
    return isinstance(value, str) and re.fullmatch(CELL_ID, value) is not None


def source_cell_text() -> str | None:
    """Return the text of the running cell, as its editor shows it; None outside a kernel."""
    code = _parent().get("content", {}).get("code")
    return code.replace("\r\n", "\n") if isinstance(code, str) else None


def button_press() -> str:
    """Return the id of the button press that made the running cell; empty for other cells."""
    ours = _parent().get("metadata", {}).get("ipyrefine")
    return str(ours.get("press", "")) if isinstance(ours, dict) else ""


def is_headless() -> bool:
    """Return True if the running cell comes from a program that nobody sits before (nbclient)."""
    return _parent().get("content", {}).get("allow_stdin") is False


def hears_comms_while_running() -> bool:
    """Return True if a page can be asked while a cell runs; older kernels queue comm messages."""
    if caller_waits() or is_headless():
        return False
    try:
        import ipykernel._version as ipykernel_version
    except ImportError:
        return False
    return ipykernel_version.version_info[:2] >= _HEARS_COMMS


def _parent() -> dict[str, Any]:
    """Return the request that the kernel is working on; empty outside a kernel."""
    from IPython import get_ipython

    get_parent = getattr(get_ipython(), "get_parent", None)
    return get_parent() or {} if get_parent else {}


# What the front-end is asked


class Placed(Record):
    """The front-end's answer: the outcome of putting a text into a cell, or what it was asked for.

    Attributes:
        how: ``inserted`` as a new cell; ``replaced`` a cell's text; ``already`` there, from the
            same ``op_id``; ``read``, when it was asked for; ``refused`` by the front-end;
            ``unavailable``: no front-end that can do it has answered.
        cell_id: id of the cell that holds the text now; None when no cell does.
        reason: why it was refused (``changed``, ``no-cell``, ``read-only``, ``no-notebook``,
            ``error``) or is unavailable (``no-kernel``, ``closed``, ``timeout``); with
            ``inserted``, ``no-cell`` when the named cell is gone and the text went below the
            active one; with ``inserted`` or ``replaced``, ``ran`` when the cell runs; else empty.
        text: with ``read``, the source of a cell.
        cells: with ``read``, the sources of all cells in their order; empty for those of no code.
        errors: with ``read``, its outputs that are errors, as nbformat has them.
    """

    model_config = ConfigDict(extra="ignore")  # a page says more

    how: Literal["inserted", "replaced", "already", "read", "refused", "unavailable"]
    cell_id: str | None = Field(default=None, pattern=CELL_ID)
    reason: str = ""
    text: str | None = None
    cells: tuple[str, ...] = ()
    errors: tuple[dict[str, str], ...] = ()

    @property
    def ok(self) -> bool:
        """Whether a cell holds the text now."""
        return self.how in ("inserted", "replaced", "already")


async def put_text(
    text: str,
    *,
    cell_id: str | None,
    op: Literal["insert", "replace"] = "insert",
    cell_type: Literal["code", "markdown"] = "code",
    expected_source: str | None = None,
    run: bool = False,
    op_id: str = "",
) -> Placed:
    """Ask the notebook's front-end to put a text into a cell, and wait for its answer.

    The front-end does it in JupyterLab 4 and Notebook 7 through the extension in this package, as
    one step that its Undo takes back, and runs the cell only when asked to. One that cannot do it
    is a result, and raises nothing.

    Args:
        text: the cell's new text.
        cell_id: the cell to insert below, or to replace; when it is None or gone, an insertion goes
            below the active cell and a replacement is refused.
        op: add a cell, or replace the text of ``cell_id``.
        cell_type: type of an added cell.
        expected_source: the text ``cell_id`` must still hold for a replacement.
        run: whether to run the cell then.
        op_id: names the request, so that asking again cannot do it twice; a fresh one if empty.
    """
    asked = {"text": text, "cell_type": cell_type, "expected_source": expected_source, "run": run}
    return await _ask(op, cell_id, op_id, **asked)


async def read_cell(cell_id: str | None) -> Placed | None:
    """Return a cell's text and errors from the front-end; None where it cannot say."""
    asks = is_cell_id(cell_id) and hears_comms_while_running()
    answer = await _ask("read", cell_id) if asks else None
    return answer if answer and answer.text is not None else None


async def notebook_cells(cell_id: str | None) -> tuple[str, ...]:
    """Return the sources of all cells of a cell's notebook; none where they are not known."""
    cell = await read_cell(cell_id)
    return cell.cells if cell else ()


async def keep_settings(values: Mapping[str, Any]) -> None:
    """Have JupyterLab keep settings of ours for later kernels, if it can."""
    await _ask("settings", None, settings=values)


async def _ask(op: str, cell_id: str | None, op_id: str = "", **more: Any) -> Placed:
    """Send a request and wait for the first answer; one that never comes is an answer too."""
    import comm

    request = {"op": op, "op_id": op_id or uuid.uuid4().hex, "cell_id": cell_id, **more}
    channel = comm.create_comm(target_name=COMM_TARGET, data=request)
    if isinstance(channel, comm.DummyComm):
        return Placed(how="unavailable", reason="no-kernel")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Placed] = loop.create_future()

    def settle(answer: Placed) -> None:
        if not future.done():
            future.set_result(answer)

    def hand_over(answer: Placed) -> None:
        # A front-end may send comm messages over a subshell, which is another thread.
        loop.call_soon_threadsafe(settle, answer)

    channel.on_msg(lambda message: hand_over(_read(message)))
    closed = Placed(how="unavailable", reason="closed")  # a page without our half does so
    channel.on_close(lambda _: hand_over(closed))
    try:
        async with asyncio.timeout(TIMEOUT):
            return await future
    except TimeoutError:
        return Placed(how="unavailable", reason="timeout")
    finally:
        channel.close()


def _read(message: Mapping[str, Any]) -> Placed:
    """Read a front-end's answer; an unreadable one counts as a refusal."""
    try:
        return Placed.model_validate(message["content"]["data"])
    except (KeyError, TypeError, ValueError):
        return Placed(how="refused", reason="error")
