from collections.abc import Iterator

import pytest
from openai_server import ScriptedServer

from ipyrefine.core.ports import Message, Request
from ipyrefine.providers import servers


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A server without replies, whose capabilities are unknown, and no key or proxy."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(servers, "BY_SERVER", {})
    with ScriptedServer() as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """The seconds that were waited, without waiting."""
    return []


@pytest.fixture
def request_text() -> Request:
    """A request for free text."""
    words = Message(role="user", content="Say hello to the world.")
    return Request(messages=(words,), temperature=0.0)


@pytest.fixture
def request_json(request_text: Request) -> Request:
    """A request for a JSON reply."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["city", "people"],
        "additionalProperties": False,
    }
    return request_text.model_copy(update={"json_schema": schema, "seed": 7})
