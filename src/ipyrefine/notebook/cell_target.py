"""Putting a text into a notebook cell: by payload while it runs, by the front-end afterwards."""

import asyncio
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from ipyrefine.core.records import Record
from ipyrefine.errors import UsageError
from ipyrefine.notebook.channel import Channel, open_channel

TARGET = "ipyrefine.cells"
PATIENCE = 8.0  # seconds; a page without our half answers at once, a busy one may take a while
_HEARS = (7, 4)  # the first ipykernel that handles comm messages while a cell awaits

# nbformat's own pattern. VS Code sends a URI here, which names no cell of the notebook's file.
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")


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
            active one; else empty.
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
    """Id of the notebook cell that is running; None where the front-end does not say."""
    cell_id = _parent().get("metadata", {}).get("cellId")
    return cell_id if isinstance(cell_id, str) and _CELL_ID.fullmatch(cell_id) else None


def source_cell_text() -> str | None:
    """Text of the notebook cell that is running, as its front-end holds it; None outside a kernel.

    It is what `put_text` wants as ``expected_source``.
    """
    code = _parent().get("content", {}).get("code")
    return code if isinstance(code, str) else None


def answered_while_running() -> bool:
    """Whether this kernel hears a front-end's answer while a cell runs; older ones queue it."""
    try:
        import ipykernel._version as known
    except ImportError:
        return False
    return known.version_info[:2] >= _HEARS


def _parent() -> dict[str, Any]:
    """The request that the kernel is working on; empty outside a kernel."""
    from IPython import get_ipython

    get_parent = getattr(get_ipython(), "get_parent", None)
    return get_parent() or {} if get_parent else {}


def payload_insert(shell: Shell, text: str, *, replace: bool = False) -> None:
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
    op_id: str | None = None,
    timeout: float = PATIENCE,  # noqa: ASYNC109 - a silent front-end is a result here, not an exception
    comm_factory: Callable[..., Channel] | None = None,
) -> Placed:
    """Ask the notebook's front-end to put a text into a cell, and wait for its answer.

    The front-end does it in JupyterLab 4 and Notebook 7 through the extension in this package, as
    one step that its Undo takes back, and does not run the cell.

    Args:
        text: the cell's new text.
        cell_id: the cell to insert below, or to replace; when it is None or gone, an insertion goes
            below the active cell and a replacement is refused.
        op: add a cell, or replace the text of ``cell_id``.
        cell_type: type of an added cell.
        expected_source: the text ``cell_id`` must still hold for a replacement.
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
    }
    return (await _ask(request, timeout, comm_factory)).placed


async def read_text(
    cell_id: str,
    *,
    timeout: float = PATIENCE,  # noqa: ASYNC109 - as in `put_text`
    comm_factory: Callable[..., Channel] | None = None,
) -> str | None:
    """Ask the notebook's front-end what a cell holds now; None where it cannot say.

    Args:
        cell_id: the cell.
        timeout: seconds to wait for an answer.
        comm_factory: as for `put_text`.
    """
    request = {"op": "read", "op_id": uuid.uuid4().hex, "cell_id": cell_id}
    return (await _ask(request, timeout, comm_factory)).text


class _Answer(NamedTuple):
    """What the front-end said."""

    placed: Placed
    text: str | None = None


async def _ask(
    request: Mapping[str, Any], seconds: float, comm_factory: Callable[..., Channel] | None
) -> _Answer:
    """Send a request and wait for its answer; a silent front-end is an answer too."""
    channel = open_channel(TARGET, request, comm_factory)
    if channel is None:
        return _Answer(Placed(how="unavailable", reason="no-kernel"))
    try:
        async with asyncio.timeout(seconds):
            return await _answer(channel)
    except TimeoutError:
        return _Answer(Placed(how="unavailable", reason="timeout"))
    finally:
        channel.close()


async def _answer(channel: Channel) -> _Answer:
    """Wait for the front-end's first word on a comm; a front-end without our half closes it."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[_Answer] = loop.create_future()

    def settle(said: _Answer) -> None:
        if not answer.done():
            answer.set_result(said)

    def hand_over(said: _Answer) -> None:
        # A front-end may send comm messages over a subshell, which is another thread.
        loop.call_soon_threadsafe(settle, said)

    channel.on_msg(lambda message: hand_over(_read(message)))
    gone = _Answer(Placed(how="unavailable", reason="closed"))
    channel.on_close(lambda _: hand_over(gone))
    return await answer


def _read(message: Mapping[str, Any]) -> _Answer:
    """Read a front-end's answer; one that cannot be read counts as a refusal."""
    try:
        data = message["content"]["data"]
        placed = Placed(how=data["how"], cell_id=data["cell_id"], reason=data["reason"])
        text = data.get("text")
        return _Answer(placed, text if isinstance(text, str) else None)
    except (AttributeError, KeyError, TypeError, ValueError):
        return _Answer(Placed(how="refused", reason="error"))
