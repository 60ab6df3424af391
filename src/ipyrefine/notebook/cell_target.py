"""Insert accepted text into a notebook cell and report where it went.

While a cell runs, its reply can carry the text (`insert_with_reply`). Otherwise the page's half of
ipyrefine, `labextension/static/cells.js`, inserts it and says what it did (`put_text`).
"""

import asyncio
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard

from ipyrefine.core.model import Form, Record
from ipyrefine.errors import UsageError
from ipyrefine.notebook.blocking import caller_waits
from ipyrefine.session.commands import Place

COMM_TARGET = "ipyrefine.cells"
TIMEOUT = 8.0  # seconds; a page without our half answers at once, a busy one may take a while
_HEARS_COMMS = (7, 4)  # the first ipykernel that handles comm messages while a cell awaits

# nbformat's own pattern. VS Code sends a URI here, which names no cell of the notebook's file.
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class Origin(NamedTuple):
    """The cell that a text is from.

    Attributes:
        cell_id: its id.
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
        where: into a new cell, in place of the cell it is from, or into the variable only.
        origin: the cell it is from; the running one by default.

    Attributes:
        where: as above; the user may change it.
        run_after: whether to run the cell once the text is in it.
        cell_id: id of the cell that ran it; None where the front-end does not say.
        place_to_run: where a text goes that is to run: into the cell that it is from, where that
            is another than the running one, else into a new one.
    """

    def __init__(
        self,
        shell: Any,
        variable: str,
        where: Place = "insert",
        origin: Origin | None = None,
    ) -> None:
        self._shell, self._variable = shell, variable
        self.where = where
        self.run_after = False
        self.cell_id = source_cell_id()
        self.place_to_run: Place = "insert" if origin is None else "replace"
        if origin is None and self.cell_id:
            origin = Origin(self.cell_id, source_cell_text() or "")
        self._origin = origin
        self._holder: str | None = None

    @property
    def head(self) -> str:
        """What stays above the text in the cell that it replaces; empty for another place."""
        return self._origin.head if self._origin and self.where == "replace" else ""

    async def read_back(self) -> str | None:
        """Return what the cell that a text was put into holds now; None where that is unknown."""
        text = await read_text(self._holder) if self._holder else None
        return text and text.removeprefix(self.head)

    async def put(self, text: str, *, form: Form, executing: bool) -> str:
        """Put a text into a cell and return one sentence that says where it is.

        Args:
            text: the text.
            form: whether it is code or prose, which becomes a Markdown cell.
            executing: whether a cell of this shell runs now, whose reply can carry the text.
        """
        if self.where == "none":
            return f"The text is in `{self._variable}`."
        text = self.head + text
        running = source_cell_id() if executing else None
        placed = await self._ask_front_end(text, form, running, executing=executing)
        self._holder = placed.cell_id if placed.ok else self._holder
        if placed.how == "unavailable" and (executing or self.cell_id is None):
            return self._send_with_reply(text, running)
        match placed.how:
            case "inserted" if placed.reason == "ran":
                return "The text is in a new cell below, which runs now."
            case "inserted":
                return "The text is in a new cell below."
            case "replaced":
                assert self._origin is not None, "only a known cell is replaced"
                self._origin = self._origin._replace(source=text)
                runs = ", and the cell runs now" * (placed.reason == "ran")
                return f"The text replaced the cell's source{runs}; undo brings it back."
            case "already":
                return "The text is in a cell already."
        changed = placed.reason == "changed"
        kept = "The cell has changed since, so it was left as it is. " if changed else ""
        return (
            f"{kept}The text is in `{self._variable}`; "
            "run `%refine apply insert` to put it into a new cell."
        )

    async def _ask_front_end(
        self, text: str, form: Form, running: str | None, *, executing: bool
    ) -> "Placed":
        """Have the front-end put the text, which confirms it, wherever it can answer."""
        if self.cell_id is None or (executing and not hears_comms_while_running()):
            return Placed(how="unavailable", reason="no-kernel")
        origin = self._origin if self.where == "replace" else None
        return await put_text(
            text,
            cell_id=origin.cell_id if origin else running or self.cell_id,
            op="replace" if origin else "insert",
            cell_type="code" if form == "code" else "markdown",
            expected_source=origin.source if origin else None,
            run=self.run_after,
        )

    def _send_with_reply(self, text: str, running: str | None) -> str:
        """Send the text with the running cell's reply, which no front-end confirms."""
        # The reply can replace only the running cell, which may not be the source.
        source = self._origin and self._origin.cell_id
        replace = self.where == "replace" and running == source
        insert_with_reply(self._shell, text, replace=replace)
        return "The text replaces the cell." if replace else "The text is in the next cell."


class Placed(Record):
    """What became of a text that was to go into a cell.

    Attributes:
        how: ``inserted`` as a new cell; ``replaced`` a cell's text; ``already`` there, from the
            same ``op_id``; ``read``, when it was asked for; ``refused`` by the front-end;
            ``unavailable``: no front-end that can do it has answered.
        cell_id: id of the cell that holds the text now; None when no cell does.
        reason: why it was refused (``changed``, ``no-cell``, ``read-only``, ``no-notebook``,
            ``error``) or is unavailable (``no-kernel``, ``closed``, ``timeout``); with
            ``inserted``, ``no-cell`` when the named cell is gone and the text went below the
            active one; with ``inserted`` or ``replaced``, ``ran`` when the cell runs; else empty.
    """

    how: Literal["inserted", "replaced", "already", "read", "refused", "unavailable"]
    cell_id: str | None = None
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether a cell holds the text now."""
        return self.how in ("inserted", "replaced", "already")


class Shell(Protocol):
    """The part of an IPython shell that is used here."""

    def set_next_input(self, s: str, replace: bool = False) -> None:
        """Put a text into the next, or the running, input."""


def source_cell_id() -> str | None:
    """Return the id of the running notebook cell; None where the front-end does not say."""
    cell_id = _parent().get("metadata", {}).get("cellId")
    return cell_id if is_cell_id(cell_id) else None


def is_cell_id(value: object) -> TypeGuard[str]:
    """Return whether a value is the id of a cell in the notebook's file."""
    return isinstance(value, str) and _CELL_ID.fullmatch(value) is not None


def source_cell_text() -> str | None:
    """Return the text of the running notebook cell, as its front-end holds it.

    It is what `put_text` wants as ``expected_source``; None outside a kernel.
    """
    code = _parent().get("content", {}).get("code")
    return code if isinstance(code, str) else None


def button_press() -> str:
    """Return what names the press of a button that made the running cell; empty for any other."""
    ours = _parent().get("metadata", {}).get("ipyrefine")
    return str(ours.get("press", "")) if isinstance(ours, dict) else ""


def hears_comms_while_running() -> bool:
    """Return whether this kernel hears comm messages while a cell runs; older ones queue them."""
    if caller_waits():
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


def insert_with_reply(shell: Shell, text: str, *, replace: bool = False) -> None:
    """Put a text into a cell with the reply to the cell that is running.

    It works only until that cell ends (a later call takes effect with the next cell that runs),
    only when it ends without an error, and the front-end does not confirm it.

    Args:
        shell: the IPython shell.
        text: the cell's text.
        replace: replace the running cell's text instead of adding a cell below it.
    """
    shell.set_next_input(text, replace=replace)


async def put_text(
    text: str,
    *,
    cell_id: str | None,
    op: Literal["insert", "replace"] = "insert",
    cell_type: Literal["code", "markdown"] = "code",
    expected_source: str | None = None,
    run: bool = False,
    op_id: str | None = None,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - a silent front-end is a result here, not an exception
    comm_factory: "Callable[..., Channel] | None" = None,
) -> Placed:
    """Ask the notebook's front-end to put a text into a cell, and wait for its answer.

    The front-end does it in JupyterLab 4 and Notebook 7 through the extension in this package, as
    one step that its Undo takes back, and runs the cell only when asked to.

    Args:
        text: the cell's new text.
        cell_id: the cell to insert below, or to replace; when it is None or gone, an insertion goes
            below the active cell and a replacement is refused.
        op: add a cell, or replace the text of ``cell_id``.
        cell_type: type of an added cell.
        expected_source: the text ``cell_id`` must still hold for a replacement.
        run: whether to run the cell then.
        op_id: names the request, so that asking again cannot do it twice; a fresh one when None.
        timeout: seconds to wait for an answer.
        comm_factory: makes the comm from ``target_name`` and ``data``; Jupyter's own when None.

    Returns:
        What became of the text; never raises for a front-end that cannot do it.

    Raises:
        UsageError: a replacement without ``cell_id`` or ``expected_source``.
    """
    if op == "replace" and (cell_id is None or expected_source is None):
        raise UsageError("To replace a cell, give its id and the text it is expected to hold.")
    request = {
        "op": op,
        "op_id": op_id or uuid.uuid4().hex,
        "cell_id": cell_id,
        "text": text,
        "cell_type": cell_type,
        "expected_source": expected_source,
        "run": run,
    }
    return (await _ask(request, timeout, comm_factory)).placed


async def read_text(
    cell_id: str,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - as in `put_text`
    comm_factory: "Callable[..., Channel] | None" = None,
) -> str | None:
    """Ask the notebook's front-end what a cell holds now; None where it cannot say.

    Args:
        cell_id: the cell.
        timeout: seconds to wait for an answer.
        comm_factory: as for `put_text`.
    """
    cell = await read_cell(cell_id, timeout=timeout, comm_factory=comm_factory)
    return None if cell is None else cell["source"]


async def read_cell(
    cell_id: str,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - as in `put_text`
    comm_factory: "Callable[..., Channel] | None" = None,
) -> dict[str, Any] | None:
    """Ask the notebook's front-end for a cell; None where it cannot say.

    Args:
        cell_id: the cell.
        timeout: seconds to wait for an answer.
        comm_factory: as for `put_text`.

    Returns:
        A dict with ``source``, a text, and ``outputs``, as for `read_cells_above`.
    """
    request = {"op": "read", "op_id": uuid.uuid4().hex, "cell_id": cell_id}
    answer = await _ask(request, timeout, comm_factory)
    if answer.text is None:
        return None
    cell = answer.cells[0] if answer.cells else None
    outputs = cell.get("outputs") if isinstance(cell, dict) else None
    known = [one for one in outputs if isinstance(one, dict)] if isinstance(outputs, list) else []
    return {"source": answer.text, "outputs": known}


async def read_cells_above(
    cell_id: str,
    count: int,
    *,
    timeout: float = TIMEOUT,  # noqa: ASYNC109 - as in `put_text`
    comm_factory: "Callable[..., Channel] | None" = None,
) -> list[Any] | None:
    """Ask the notebook's front-end for the cells above a cell; None where it cannot say.

    Args:
        cell_id: the cell.
        count: how many, at most; the nearest ones, in their order.
        timeout: seconds to wait for an answer.
        comm_factory: as for `put_text`.

    Returns:
        A dict for each, with ``type``, ``source`` and ``outputs``, these as in a notebook's file.
    """
    request = {"op": "above", "op_id": uuid.uuid4().hex, "cell_id": cell_id, "count": count}
    return (await _ask(request, timeout, comm_factory)).cells


class _Answer(NamedTuple):
    """The front-end's answer."""

    placed: Placed
    text: str | None = None
    cells: list[Any] | None = None


async def _ask(
    request: Mapping[str, Any], seconds: float, comm_factory: "Callable[..., Channel] | None"
) -> _Answer:
    """Send a request and wait for its answer; a silent front-end is an answer too."""
    channel = open_channel(COMM_TARGET, request, comm_factory)
    if channel is None:
        return _Answer(Placed(how="unavailable", reason="no-kernel"))
    try:
        async with asyncio.timeout(seconds):
            return await _answer(channel)
    except TimeoutError:
        return _Answer(Placed(how="unavailable", reason="timeout"))
    finally:
        channel.close()


async def _answer(channel: "Channel") -> _Answer:
    """Wait for the front-end's first message on a comm; one without our half closes it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Answer] = loop.create_future()

    def settle(answer: _Answer) -> None:
        if not future.done():
            future.set_result(answer)

    def hand_over(answer: _Answer) -> None:
        # A front-end may send comm messages over a subshell, which is another thread.
        loop.call_soon_threadsafe(settle, answer)

    channel.on_msg(lambda message: hand_over(_read(message)))
    closed = _Answer(Placed(how="unavailable", reason="closed"))
    channel.on_close(lambda _: hand_over(closed))
    return await future


def _read(message: Mapping[str, Any]) -> _Answer:
    """Read a front-end's answer; an unreadable one counts as a refusal."""
    try:
        data = message["content"]["data"]
        placed = Placed(how=data["how"], cell_id=data["cell_id"], reason=data["reason"])
        if placed.cell_id is not None and not is_cell_id(placed.cell_id):
            raise ValueError
        text, cells = data.get("text"), data.get("cells")
        return _Answer(
            placed,
            text if isinstance(text, str) else None,
            cells if isinstance(cells, list) else None,
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return _Answer(Placed(how="refused", reason="error"))


class Channel(Protocol):
    """The part of a Jupyter comm that is used to talk with the page's half of ipyrefine."""

    comm_id: str

    def on_msg(self, callback: Callable[[dict[str, Any]], None]) -> None:
        """Call back with every message."""

    def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None:
        """Call back when the other side closes."""

    def send(self, data: dict[str, Any]) -> None:
        """Send a message to every page on the kernel."""

    def close(self) -> None:
        """Close both sides; nothing happens when it is closed already."""


def open_channel(
    target: str,
    data: Mapping[str, Any],
    comm_factory: Callable[..., Channel] | None = None,
) -> Channel | None:
    """Open a comm; return None where there is no kernel to carry it.

    Args:
        target: the name that the page's half listens to.
        data: the first message.
        comm_factory: makes the comm from ``target_name`` and ``data``; Jupyter's own when None.
    """
    import comm

    channel: Channel = (comm_factory or comm.create_comm)(target_name=target, data=dict(data))
    return None if isinstance(channel, comm.DummyComm) else channel
