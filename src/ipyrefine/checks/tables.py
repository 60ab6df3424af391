"""Try the examples that a task states as tables: run a text on frames, and compare what it gives.

How the text takes the tables, it says itself: as a function's arguments, or as variables.
"""

import ast
import builtins
import math
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from ipyrefine.core.scopes import module_names
from ipyrefine.core.stated import Example
from ipyrefine.core.stated_tables import NULLS, parse_table, read_date
from ipyrefine.core.syntax import ERRORS, names_used, parse, read_literal, unparse

_PANDAS = re.compile(r"\b(?:pandas|pd)\b|\.(?:groupby|merge|i?loc|query|assign|sort_values|isin)\b")
_OTHER = re.compile(r"\bimport (?:polars|pyspark|pyarrow|duckdb)\b")
_KNOWN = frozenset({*dir(builtins), "pd", "np", "plt", "sns"})


def plan(example: Example, code: str) -> Example:
    """Return an example on tables as a text is tried on them; its call is the whole text then.

    The call is empty where the text takes tables in no way.
    """
    untried, tables = example.replace(setup="", call=""), example.call.split(", ")
    try:
        tree, reads = parse(code), module_names(code).reads
    except ERRORS:
        return untried
    if find_spec("pandas") is None or _OTHER.search(code):
        return untried
    named = {_plain(table): table for table in tables}
    free = {one.name for one in reads if not (one.bound or one.inside)} - _KNOWN
    defined = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    taken = {name: named[_plain(name)] for name in sorted(free) if _plain(name) in named}
    called = {name for one in defined for name in names_used(one) - {one.name}}
    usable = [one for one in defined if one.name not in called]
    if not taken and len(usable) == 1 and (call := _call(usable[0], tables)):
        returns = unparse(usable[0].returns or ast.Constant(""))
        in_place = f"\n{tables[0]}" * (returns == "None")
        # The text may have tables of its own, with the same names.
        source = f"{code.rstrip()}\n{example.setup}\n{call}{in_place}"
        return example.replace(call=source, sure="DataFrame" in returns)
    if not taken and len(free) == len(tables) == 1:
        taken = dict(zip(free, tables, strict=True))
    if not taken or (value := _last_value(tree)) is None:
        return untried
    names = (f"{name} = {table}" for name, table in taken.items())
    source = f"{code.rstrip()}\n{value}".rstrip()
    return example.replace(setup="\n".join([example.setup, *names]), call=source)


def _plain(name: str) -> str:
    return name.replace("_", "").lower().removesuffix("df").removesuffix("s") or name


def _call(function: ast.FunctionDef, tables: Sequence[str]) -> str:
    """Return the call of a function with all tables; empty if it takes others."""
    args = [*function.args.posonlyargs, *function.args.args]
    least, names = len(args) - len(function.args.defaults), [_plain(one.arg) for one in args]
    typed = " ".join(unparse(one.annotation) for one in args if one.annotation) or "Any"
    takes = least <= len(tables) <= len(args) and re.search(r"DataFrame|\bAny\b", typed)
    if None in function.args.kw_defaults or not takes:
        return ""
    if {*map(_plain, tables)} == {*names}:
        tables = sorted(tables, key=lambda table: names.index(_plain(table)))
    return f"{function.name}({', '.join(tables)})"


def _last_value(tree: ast.Module) -> str | None:
    """Return the expression for the result of statements; None where it's not known."""
    match tree.body[-1:]:
        case [ast.Expr(value=ast.Call(func=ast.Name(id="print" | "display"), args=[shown]))]:
            return unparse(shown)
        case [ast.Expr(value=value)] if not isinstance(value, ast.Constant):
            return ""
        case [ast.Assign(targets=[target])]:
            while isinstance(target, ast.Subscript | ast.Attribute):
                target = target.value
            return unparse(target)
    return None


def says_something(trial: Example, outcome: Mapping[str, Any], code: str) -> bool:
    """Return True if an outcome says something: on tables, if one was required or came out."""
    if trial.kind != "table":
        return True
    if "error" in outcome:
        return "NameError" not in outcome["raised"] and _PANDAS.search(code) is not None
    return trial.sure or bool(outcome.get("table"))


def difference(example: Example, outcome: Mapping[str, Any]) -> str:
    """Return how a result differs from the table that a task states; empty if it doesn't."""
    if not outcome.get("table"):
        return f"expected a table, got a value of type {outcome.get('type')}"
    (columns, *rows), (names, *left) = parse_table(example.expected.splitlines()), outcome["table"]
    if names != columns:
        return f"expected the columns {', '.join(columns)}, got {', '.join(names)}"
    if len(left) != len(rows):
        return f"expected {len(rows)} row{'' if len(rows) == 1 else 's'}, got {len(left)}"
    for row in rows:
        rivals = left if example.any_order else left[:1]
        if not (found := [one for one in rivals if all(map(_same, row, one))]):
            return f"expected the row {' | '.join(row)}, got {' | '.join(map(str, left[0]))}"
        left.remove(found[0])
    return ""


def _same(stated: str, given: object) -> bool:
    number, decimals = read_literal(stated), len(stated.partition(".")[2])
    if given is None:
        return stated.lower() in NULLS
    if isinstance(given, int | float) and isinstance(number, int | float):
        # A table may show only the first decimals.
        near = 1e-9 + 0.5 * 10**-decimals * bool(decimals)
        return math.isclose(given, number, abs_tol=near)
    shown, date = str(given).strip(), read_date(str(given))
    stated = stated.title() if isinstance(given, bool) else stated
    return shown == stated or (date is not None and date == read_date(stated))
