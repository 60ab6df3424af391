"""What a critic or an evaluator on a server answers."""

from kit import READY, critique, finding
from openai_server import Body


def is_critic(body: Body) -> bool:
    """Return whether a request asks for a critique."""
    asked = [turn["content"] for turn in body["messages"] if turn["role"] == "user"]
    return '"ready"' in asked[0]


def criticises(*, ready: bool) -> str:
    """Return the reply of a critic who takes a text for ready, or names one fault."""
    return READY if ready else critique(finding("It is not there yet."))
