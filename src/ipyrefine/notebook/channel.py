"""Jupyter's comms, as far as the page's half of ipyrefine is spoken to over them."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol


class Channel(Protocol):
    """The part of a Jupyter comm that is used here."""

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
    """Open a comm; None where no kernel has put its own kind of comm in place.

    Args:
        target: the name that the page's half listens to.
        data: the first message.
        comm_factory: makes the comm from ``target_name`` and ``data``; Jupyter's own when None.
    """
    import comm

    channel: Channel = (comm_factory or comm.create_comm)(target_name=target, data=dict(data))
    return None if isinstance(channel, comm.DummyComm) else channel
