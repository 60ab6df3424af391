"""What model calls consume, and what that costs."""

from pydantic import Field

from ipyrefine.core.records import Record


class Usage(Record):
    """What model calls consumed.

    Attributes:
        calls: number of requests.
        prompt_tokens: tokens read by the model.
        cached_tokens: those of them served from a prefix cache; None when the server did not say.
        completion_tokens: tokens written by the model.
        seconds: wall time spent in the calls.
        cost: US dollars; None when the price is not known.
    """

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int | None = None
    completion_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = None

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: "Usage") -> "Usage":
        """Sum two usages; an unknown part stays unknown unless the other side counted none."""
        return Usage(
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=_sum_known(self, other, "cached_tokens"),
            completion_tokens=self.completion_tokens + other.completion_tokens,
            seconds=self.seconds + other.seconds,
            cost=_sum_known(self, other, "cost"),
        )


class Price(Record):
    """What a model charges, in US dollars per million tokens.

    Attributes:
        prompt: for tokens it reads.
        completion: for tokens it writes.
    """

    prompt: float = Field(ge=0, allow_inf_nan=False)
    completion: float = Field(ge=0, allow_inf_nan=False)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Price a number of tokens, in US dollars."""
        spent = self.prompt * prompt_tokens + self.completion * completion_tokens
        return spent / 1_000_000


def _sum_known(a: Usage, b: Usage, field: str) -> "int | float | None":
    """Sum a field of two usages: None as soon as a side that made calls does not know it."""
    parts = [getattr(side, field) for side in (a, b) if side.calls]
    if any(part is None for part in parts):
        return None
    return sum(parts) if parts else None
