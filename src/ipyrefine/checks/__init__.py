"""Checks: deterministic tests of a text, each of which returns `Evidence`.

A check is a built-in one by its name (`BUILTIN` lists them), or a function of the user's.
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
