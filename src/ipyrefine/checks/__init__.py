"""Checks: deterministic tests of a text, each of which returns `Evidence`.

A check is a built-in one by its name (`BUILTIN` lists them), or the user's own function.

Checks find mistakes; they do not stop a text that was written to deceive them, which is read before
it is accepted. Results are compared as data outside of the process that the text runs in. A test
that the text skips, or ends early, has failed; the user's own skips are counted apart, and where
all are skipped nothing was run. Under ``run`` an exit before the end fails, and so does an
exception in a thread. ``lint`` obeys no comment of the text, and ``schema`` reads JSON strictly (no
``NaN``, no repeated keys). That code runs settles nothing, and neither does a length, a string or a
pattern alone.
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
