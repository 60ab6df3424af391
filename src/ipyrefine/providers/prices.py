"""What a call costs: the user's own price, else the maintained list `genai-prices`, else unknown.

The list is data inside an installed package: nothing is fetched. It is read at the first question,
because its import takes a quarter of a second.
"""

from functools import lru_cache

from ipyrefine.core.usage import Price, Usage
from ipyrefine.errors import UsageError

_SAMPLE = 1_000  # tokens that a rate is read from: few, as some prices rise with the prompt


def read_price(text: str) -> Price:
    """Read a price like ``0.15,0.60``: dollars per million prompt and completion tokens.

    Raises:
        UsageError: it is not two amounts.
    """
    try:
        prompt, completion = (float(part.strip().removeprefix("$")) for part in text.split(","))
        return Price(prompt=prompt, completion=completion)
    except ValueError:
        raise UsageError(
            f"The price {text!r} cannot be read: write dollars per million prompt and completion "
            'tokens, as "0.15,0.60".'
        ) from None


@lru_cache(maxsize=64)
def listed(model: str, base_url: str) -> Price | None:
    """Look a model's price up; None when the list does not know the server or the model.

    Args:
        model: the name the server knows it by.
        base_url: the server's address; a price is never guessed from the model's name alone.
    """
    prompt = _calculated(Usage(prompt_tokens=_SAMPLE), model, base_url)
    completion = _calculated(Usage(completion_tokens=_SAMPLE), model, base_url)
    if prompt is None or completion is None:
        return None
    million = 1_000_000 / _SAMPLE
    return Price(prompt=prompt * million, completion=completion * million)


def cost_of(usage: Usage, model: str, base_url: str, own: Price | None = None) -> float | None:
    """Price a call in US dollars; None when the price is not known.

    Args:
        usage: what the call consumed; cached prompt tokens are cheaper where the list says so.
        model: the name the server knows it by.
        base_url: the server's address.
        own: the user's own price, which wins over the list.
    """
    if own is not None:
        return own.cost(usage.prompt_tokens, usage.completion_tokens)
    return _calculated(usage, model, base_url)


def _calculated(usage: Usage, model: str, base_url: str) -> float | None:
    import genai_prices

    cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
    counts = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=cached or None,
    )
    try:
        found = genai_prices.calc_price(counts, model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return None
    return float(found.total_price)
