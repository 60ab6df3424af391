"""Price a call: by the user's own price, else by the maintained list `genai-prices`.

The list is data in an installed package; nothing is fetched. It is imported on first use, because
that takes a quarter of a second.
"""

from functools import lru_cache

from ipyrefine.core.model import Price, Usage
from ipyrefine.errors import UsageError

_SAMPLE_TOKENS = 1_000  # few, because some prices rise with the length of the prompt


def read_price(text: str) -> Price:
    """Return the price in ``0.15,0.60``: dollars per million prompt and completion tokens.

    Raises:
        UsageError: the text is not two amounts.
    """
    try:
        prompt, completion = (float(part.strip().removeprefix("$")) for part in text.split(","))
        return Price(prompt=prompt, completion=completion)
    except ValueError:
        raise UsageError(
            f"The price {text!r} cannot be read. Write dollars per million prompt and completion "
            'tokens, as "0.15,0.60".'
        ) from None


@lru_cache(maxsize=64)
def listed(model: str, base_url: str) -> Price | None:
    """Return a model's listed price; None if the list does not know the server or the model.

    Args:
        model: the name the server knows it by.
        base_url: the server's address; a price is never guessed from the model's name alone.
    """
    prompt = _listed_cost(Usage(prompt_tokens=_SAMPLE_TOKENS), model, base_url)
    completion = _listed_cost(Usage(completion_tokens=_SAMPLE_TOKENS), model, base_url)
    if prompt is None or completion is None:
        return None
    million = 1_000_000 / _SAMPLE_TOKENS
    return Price(prompt=prompt * million, completion=completion * million)


def cost_of(usage: Usage, model: str, base_url: str, own: Price | None = None) -> float | None:
    """Return what a call costs in US dollars; None if the price is not known.

    Args:
        usage: what the call consumed; cached prompt tokens are cheaper where the list says so.
        model: the name the server knows it by.
        base_url: the server's address.
        own: the user's own price, which wins over the list.
    """
    if own is not None:
        return own.cost(usage.prompt_tokens, usage.completion_tokens)
    return _listed_cost(usage, model, base_url)


def _listed_cost(usage: Usage, model: str, base_url: str) -> float | None:
    import genai_prices

    cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
    counts = genai_prices.Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=cached or None,
    )
    try:
        price = genai_prices.calc_price(counts, model, provider_api_url=base_url)
    except (LookupError, ValueError):
        return None
    return float(price.total_price)
