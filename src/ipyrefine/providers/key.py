"""Keep an API key out of everything that prints, logs or records a variable."""

from collections.abc import Callable


class Key:
    """A key, or a callable that returns it; calling it returns the key, printing it shows none.

    Tracebacks may show the variables of every frame (``%xmode Verbose``), so a frame that can
    raise holds this object and never the key itself.

    Args:
        source: the key, a callable that returns it, or None for no key.
    """

    __slots__ = ("_source",)

    def __init__(self, source: str | Callable[[], str] | None = None) -> None:
        self._source = source

    def __call__(self) -> str:
        """Return the key, or an empty string; raises what the callable raises."""
        source = self._source
        return ((source() if callable(source) else source) or "").strip()

    def __bool__(self) -> bool:
        """Return whether there may be a key."""
        return bool(self._source)

    def __repr__(self) -> str:
        return "Key(…)"
