"""A model whose replies are kept in a file, so that a long measurement can be cut and go on."""

import hashlib
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import cache
from pathlib import Path

from ipyrefine.core.ports import Delta, Model, Notice, Reply, Request


class Kept:
    """Answers a request that was made before with the reply it got then.

    Args:
        name: the model who is asked otherwise.
        choose: finds that model; not called where every reply is known.
        path: where the replies are kept, a line of JSON each.
    """

    def __init__(self, name: str, choose: Callable[[str], Model], path: Path) -> None:
        self.name, self._path = name, path
        self._choose = cache(choose)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self._known = {said["key"]: said for line in lines if (said := _read(line))}

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Notice | Reply, None]:
        """Give the reply in one piece; its usage holds the seconds it took at first."""
        key = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
        if key not in self._known:
            began, reply = time.perf_counter(), Reply(text="", finish="incomplete")
            model = self._choose(self.name)
            async with aclosing(model.stream(request)) as parts:  # type: ignore[type-var]
                async for part in parts:
                    if isinstance(part, Reply):
                        reply = part
            self._keep(key, reply, time.perf_counter() - began)
        known = self._known[key]
        reply = Reply.model_validate(known["reply"])
        usage = reply.usage.model_copy(update={"seconds": known["seconds"]})
        yield Delta(text=reply.text)
        yield reply.model_copy(update={"usage": usage})

    def _keep(self, key: str, reply: Reply, seconds: float) -> None:
        said = {"key": key, "seconds": seconds, "reply": reply.model_dump(mode="json")}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")
        self._known[key] = said


def _read(line: str) -> dict[str, object] | None:
    try:
        return dict(json.loads(line))
    except ValueError:
        return None  # cut in the middle
