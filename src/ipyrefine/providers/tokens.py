"""A rough token count, for replies whose server does not count."""

_CHARS_PER_TOKEN = 4


def estimate_tokens(chars: int) -> int:
    """Estimate the tokens in a text of `chars` characters: a quarter, rounded, at least 1."""
    return max(1, round(chars / _CHARS_PER_TOKEN))
