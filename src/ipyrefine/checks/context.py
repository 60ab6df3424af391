"""What a check that is named on a line is made from."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Context(NamedTuple):
    """What checks are made from.

    Attributes:
        namespace: the user's variables.
        target: the score that passes, for functions that return one.
        files: the files that bring the variables into a sandbox.
        labels: how values that code run there returns are called, by their marks.
        names: the names that code run there may use without defining them.
    """

    namespace: Mapping[str, Any]
    target: float
    files: Mapping[str, bytes]
    labels: Mapping[str, str]
    names: Iterable[str]
