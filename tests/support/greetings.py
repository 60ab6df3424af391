"""Many small tasks, and a scripted server that does them: a text that fails, one that passes."""

import json
import re
import threading
from collections import Counter
from typing import Any

from kit import text
from openai_server import Answer, Body, Failure

from ipyrefine.core.model import Limits

CALLS = 4  # of a task: draft, judge, revise, judge
LIMITS = Limits(max_revisions=2, critique="never")


def tasks(count: int) -> list[str]:
    return [f"Greet person {number} of the list." for number in range(count)]


def options(base_url: str) -> dict[str, Any]:
    """What `refine` needs to do the tasks on a server that `Greeter` answers for."""
    return {
        "model": "greeter",
        "base_url": base_url,
        "profile": "prose",
        "criteria": ["tone"],
        "limits": LIMITS,
        "prompts": {"judge": "How good is it, as JSON with a score?\n{text}"},
    }


class Greeter:
    """Answers by the request alone, and counts how often each was made.

    `broken` tasks are refused.
    """

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self.broken = set[str]()
        self._lock = threading.Lock()

    def __call__(self, body: Body) -> Answer | Failure:
        request = json.dumps(body["messages"])
        with self._lock:
            self.asked[re.sub(r"\b[0-9a-f]{8}\b", "NONCE", request)] += 1
        if any(task in request for task in self.broken):
            return Failure(401, {"error": {"message": "no such key"}})
        revised = "Version 1" in request
        if "How good is it" in request:
            return Answer('{"score": 0.99}' if revised else '{"score": 0.4}')
        return Answer(text("Version 1" if "Version 0" in request else "Version 0"))
