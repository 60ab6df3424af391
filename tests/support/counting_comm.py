"""Comms that go nowhere and count what they would have sent to a browser."""

import json
from typing import Any

import comm
from comm.base_comm import BaseComm


class Sent:
    """What all comms have sent since they were put in place: messages, and bytes of their JSON."""

    def __init__(self) -> None:
        self.messages = self.bytes = 0

    def install(self) -> "Sent":
        """Take the place of the real comms in this process."""
        sent = self

        class Counting(BaseComm):  # type: ignore[misc]  # it carries no types
            def publish_msg(
                self, msg_type: str, data: Any = None, metadata: Any = None,
                buffers: Any = None, **keys: Any,
            ) -> None:  # fmt: skip
                content = {"comm_id": self.comm_id, "data": data or {}, **keys}
                sent.messages += 1
                sent.bytes += len(json.dumps(content, ensure_ascii=False).encode())

        comm.create_comm = Counting
        return self
