"""Checks: deterministic tests of a text, each of which returns `Evidence`.

A check is a built-in one by its name (`BUILTIN` lists them), or the user's own function.

What a text cannot influence: a computed expected value (``f(xs) == sorted(xs)``) and a condition
(``abs(f(2) - 1.41) < 0.01``) are decided in a process that the text is not in. A test that the text
skips, or ends early, has failed; the user's own skips are counted apart, and where all are skipped
nothing was run. Under ``run`` an exit before the end fails, and so does an exception in a thread.
``lint`` obeys no comment of the text, and ``schema`` reads JSON strictly (no ``NaN``, no repeated
keys). That code runs settles nothing, and neither does a length, a string or a pattern alone.

What it can: the user's tests run in one process with the text, as they must call it. One that
returns an object whose ``==`` is always true passes ``assert f(1) == 2``, and one written against
pytest or this package can forge a report of ``tests`` or ``run``. An example that compares the
text's own objects (``Stack() == Stack()``) is decided by their ``==``. For a text that cannot be
trusted at all, state examples with plain values.
"""

from ipyrefine.checks.registry import (
    BUILTIN,
    form_of,
    from_record,
    help_table,
    is_self_contained,
    needs_reader,
    option_help,
    resolve,
)

__all__ = [
    "BUILTIN",
    "form_of",
    "from_record",
    "help_table",
    "is_self_contained",
    "needs_reader",
    "option_help",
    "resolve",
]
