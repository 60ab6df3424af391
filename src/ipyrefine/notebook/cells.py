"""Puts text into a notebook cell, by whichever way the front-end offers."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from typing import Any, Literal

from ipyrefine.loop.records import Record

TARGET = "ipyrefine.cells"


class Placed(Record):
    """What a front-end did with a text.

    Attributes:
        how: inserted, replaced, already (a second tab had done it), refused, or unavailable.
        cell_id: the cell the text is in.
        reason: why it was refused.
    """

    how: Literal["inserted", "replaced", "already", "refused", "unavailable"]
    cell_id: str = ""
    reason: str = ""


def source_cell_id(shell: Any) -> str | None:
    """Give the id of the cell that is executing; None where the front-end does not tell."""
    try:
        cell_id = shell.get_parent()["metadata"].get("cellId")
    except (AttributeError, KeyError, TypeError):
        return None
    return str(cell_id) if cell_id else None


def payload_insert(shell: Any, text: str, *, replace: bool = False) -> None:
    """Hand a text over with the executing cell's reply: it becomes the next cell."""
    shell.set_next_input(text, replace=replace)


async def put_text(
    text: str,
    *,
    cell_id: str,
    op: Literal["insert", "replace"] = "insert",
    cell_type: Literal["code", "markdown"] = "code",
    expected_source: str | None = None,
    timeout: float = 2.0,
    comm_factory: Callable[..., Any] | None = None,
) -> Placed:
    """Ask the JupyterLab extension to put a text into a cell, and wait for its answer.

    Args:
        text: the new cell's source.
        cell_id: the cell to insert below, or to replace.
        op: what to do.
        cell_type: type of an inserted cell.
        expected_source: for ``replace``: what the cell must hold still, or it is refused.
        timeout: seconds to wait for an answer.
        comm_factory: opens a comm; the kernel's own by default.
    """
    if comm_factory is None:
        from comm import create_comm as comm_factory  # type: ignore[no-redef]
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Placed] = loop.create_future()
    comm = comm_factory(  # type: ignore[misc]
        target_name=TARGET,
        data={
            "op": op,
            "op_id": uuid.uuid4().hex,
            "cell_id": cell_id,
            "cell_type": cell_type,
            "text": text,
            "expected_source": expected_source,
        },
    )

    def settle(placed: Placed) -> None:
        if not answer.done():
            answer.set_result(placed)

    def hear(message: dict[str, Any]) -> None:
        # With subshells a message may come on another thread.
        loop.call_soon_threadsafe(settle, _read(message["content"]["data"]))

    comm.on_msg(hear)
    comm.on_close(lambda _: loop.call_soon_threadsafe(settle, Placed(how="unavailable")))
    try:
        async with asyncio.timeout(timeout):
            return await answer
    except TimeoutError:
        return Placed(how="unavailable")
    finally:
        with contextlib.suppress(Exception):  # the front-end may have closed it first
            comm.close()


def _read(data: dict[str, Any]) -> Placed:
    how = data.get("how") if data.get("ok") else "refused"
    if how not in ("inserted", "replaced", "already", "refused"):
        how = "unavailable"
    return Placed(
        how=how, cell_id=str(data.get("cell_id") or ""), reason=str(data.get("reason") or "")
    )
