"""Make further inputs for a function, from the calls a task states and from annotated types."""

import ast
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, NamedTuple

from ipyrefine.core.stated import Example, fenced_python
from ipyrefine.core.syntax import ERRORS, try_parse, try_parse_expression, unparse

_SEEDS = 40  # calls that are varied
_KINDS = 6  # of changes to a value at most
_MAX_CALL = 2_000  # characters
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# A function with the types of its arguments, in a sentence.
_HEAD = re.compile(r"(?<![\w.])([A-Za-z_]\w*\([^()\n:]{1,60}:[^()\n]{1,200}\))")
_QUOTED = re.compile(r"(?<!\w)['\"“]([^'\"“”\n]{1,40})['\"”](?!\w)")
_VALUES: dict[str, Sequence[Any]] = {
    "int": (2, 1, 3),
    "float": (2.5, 10.0, 0.5),
    "bool": (True, False, True),
    "str": ("pear", "apple", "fig"),
    "list": ([3, 1, 2], [2, 1, 3, 3], [2, 1]),
    "dict": ({"apple": 3, "pear": 2}, {"pear": 2}, {"apple": 1}),
    "table": ([[1, 2], [3, 4]], [[1, 2, 3], [4, 5, 6]], [[5, 6]]),
}
# Of an argument itself; numbers next to a collection stay small.
_ALONE: dict[str, Sequence[Any]] = {
    "int": (5, 2, 10),
    "str": ("hello world", "Anna", "abc 12"),
}
_ITEMS = ((2, 1, 0), (0, 1, 2, 2), (0, 1))  # which of a type's values are in each list
# Which type an argument without one has most likely, by its name; else a number.
_LIKELY = (
    (r"s|.*(?:text|str|word|name|line|sentence|phrase|char|path|url|title|key|mail).*", "str"),
    (r"d|.*(?:dict|map).*", "dict"),
    (r".*[^s]s|.*(?:list|arr|seq|data|matrix).*", "list"),
)
_TYPES = ("int", "list", "table", "str", "dict")  # that others have, all alike


class _Call(NamedTuple):
    """A call of a name with literal arguments, the last of them by their keywords."""

    name: str
    arguments: tuple[Any, ...]
    keywords: tuple[str, ...] = ()
    setup: str = ""

    @property
    def source(self) -> str:
        first = len(self.arguments) - len(self.keywords)
        marks = ("**" if word == "**" else f"{word}=" for word in self.keywords)
        words = [*[""] * first, *marks]
        arguments = [f"{w}{a!r}" for w, a in zip(words, self.arguments, strict=True)]
        return f"{self.name}({', '.join(arguments)})"

    def replace(self, place: int, value: Any) -> "_Call":
        arguments = (*self.arguments[:place], value, *self.arguments[place + 1 :])
        return self._replace(arguments=arguments)


def natural_inputs(examples: Sequence[Example]) -> tuple[Example, ...]:
    """Return calls that a person would try next to those of the examples, the most telling first.

    One argument changes at a time, to a value of its kind: none, several, another one, an odd one,
    a single one. Arguments of one length change together.
    """
    calls = [call for example in examples[:_SEEDS] if (call := _read_call(example))]
    calls.sort(key=lambda one: -len(one.source))
    stated, found = {call.source for call in calls}, []
    for call in calls:
        tries = [*map(_tries, call.arguments)]
        sizes = {len(one) if isinstance(one, list | tuple) else -1 for one in call.arguments}
        if len(sizes) == 1 and -1 not in sizes:
            found += [call._replace(arguments=one) for one in zip(*tries, strict=False)]
            continue
        count = len(tries)  # of each kind the next argument comes first
        found += [
            call.replace(place, tries[place][kind])
            for first, kind in product(range(count), range(_KINDS))
            if kind < len(tries[place := (first + kind) % count])
        ]
    return tuple(one for one in _as_examples(found) if one.call not in stated)


def _tries(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case int():
            return [0, value + 10, value + 1, -value, 1]
        case float():
            return [0.0, round(value + 10, 6), round(value + 0.5, 6), -value, 1.0]
        case str():
            return _tries_of_words(value)
        case list() | tuple():
            kind: Any = type(value)
            some: Any = value[:1]
            odd = (kind([one, *value[1:]]) for first in some for one in _tries(first)[3:4])
            return [kind(), value + some, value[::-1], *odd, some, value[:-1]]
        case dict():
            items = [*value.items()]
            return [{}, dict(items[:1]), dict(items[1:])]
    return []


def _tries_of_words(value: str) -> list[str]:
    other = value.upper() if value != value.upper() else value.lower()
    words = value.split()
    if re.search(r"\d", value) and not value.isdecimal():
        later = re.sub(r"\d{1,9}", lambda n: str(int(n[0]) + 1).zfill(len(n[0])), value)
        return ["", later, value[::-1], other, value[:1]]
    if len(words) < 2:
        return ["", value + value[:1], value[::-1], other, value[:1]]
    return ["", f"{value} {words[0]}", " ".join(words[::-1]), other, words[0]]


def first_calls(task_text: str) -> tuple[Example, ...]:
    """Return three calls of the last unwritten function in the task's fenced Python.

    Without one it is the first that the task's words give with types: ``f(n: int) -> bool``. None
    are returned where an argument's annotation isn't plain (numbers, strings, and lists, tuples or
    dicts of these).
    """
    if (function := _head(task_text)) is None:
        return ()
    parameters, words = _parameters(function.args, optional=True)
    types = [one.annotation for one in parameters if one.annotation and _is_plain(one.annotation)]
    if not types or len(types) < len(parameters) or function.args.vararg or function.args.kwarg:
        return ()
    rows = [_values_of(types, n) for n in range(3)]
    return tuple(_as_examples(_Call(function.name, row, words) for row in rows))


def _head(task_text: str) -> ast.FunctionDef | None:
    functions = [
        node
        for tree in fenced_python(task_text)
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and all(
            isinstance(one, ast.Pass)
            or (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            for one in node.body
        )
    ]
    heads = (try_parse(f"def {head}: ...") for head in _HEAD.findall(_FENCE.sub("", task_text)))
    inline = (tree.body[0] for tree in heads if tree)
    found = functions[-1] if functions else next(inline, None)
    return found if isinstance(found, ast.FunctionDef) else None


def own_calls(code: str, task_text: str) -> tuple[Example, ...]:
    """Return calls that a person might try first of a function in code, the likeliest first.

    Of several functions it is the one that the task names, else the last. Values are of the
    annotated types, else of any, or the task quotes them: only running tells which calls give
    something.
    """
    tree = try_parse(code)
    functions = [one for one in (tree.body if tree else ()) if isinstance(one, ast.FunctionDef)]
    public = [one for one in functions if not one.name.startswith("_")]
    named = [one for one in public if re.search(rf"\b{one.name}\b", task_text)]
    if not public:
        return ()
    function = (named or public)[-1]
    parameters, words = _parameters(function.args)
    plain = [one.annotation if _is_plain(one.annotation) else None for one in parameters]
    likely = [
        next((t for n, t in _LIKELY if re.fullmatch(n, one.arg.lower())), "int")
        for one in parameters
    ]
    ways = [likely, *([kind] * len(parameters) for kind in _TYPES)]
    types = ([one or ast.Name(kind) for one, kind in zip(plain, way, strict=True)] for way in ways)
    first, *others = (_Call(function.name, _values_of(one, 0), words) for one in types)
    quoted = _QUOTED.findall(task_text) if len(parameters) == 1 else []
    return tuple(_as_examples([first, *(first.replace(0, one) for one in quoted), *others]))


def _parameters(
    every: ast.arguments, *, optional: bool = False
) -> tuple[list[ast.arg], tuple[str, ...]]:
    """Return what a call has to give, with `optional` also what it may, and which by keywords."""
    placed = [*every.posonlyargs, *every.args]
    placed = placed[: len(placed) if optional else max(0, len(placed) - len(every.defaults))]
    pairs = zip(every.kwonlyargs, every.kw_defaults, strict=True)
    words = [one for one, default in pairs if not default]
    return [*placed, *words], tuple(one.arg for one in words)


def _is_plain(annotation: ast.expr | None) -> bool:
    with suppress(KeyError, TypeError):
        _value_of(annotation, 0)
        return True
    return False


def _read_call(example: Example) -> _Call | None:
    match try_parse_expression(example.call):
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            words = tuple(one.arg or "**" for one in keywords)
            values = [*arguments, *(one.value for one in keywords)]
            with suppress(*ERRORS):  # an argument is not a literal
                return _Call(name, tuple(map(ast.literal_eval, values)), words, example.setup)
    return None


def _as_examples(calls: Iterable[_Call]) -> list[Example]:
    """Return calls that are not too long as examples without a result, each once."""
    return [
        Example(call=source, setup=setup)
        for source, setup in {call.source: call.setup for call in calls}.items()
        if len(source) <= _MAX_CALL
    ]


def _values_of(annotations: Sequence[ast.expr], number: int) -> tuple[Any, ...]:
    """Return values for some arguments of plain types; those of one type differ."""
    types = [*map(unparse, annotations)]
    turns = [(number + types[:place].count(one)) % 3 for place, one in enumerate(types)]
    found = [_value_of(one, turn) for one, turn in zip(annotations, turns, strict=True)]
    some = any(isinstance(one, str | list | tuple | dict) for one in found)
    for place, turn in enumerate(turns):
        kind = type(found[place]).__name__
        if kind == "str" or (kind == "int" and not some):
            found[place] = _ALONE[kind][turn]
    return tuple(found)


def _value_of(annotation: ast.expr | None, number: int) -> Any:
    """Return one of three values of a plain annotated type, or raise a KeyError or TypeError."""
    match annotation:
        case ast.BinOp(left=first):  # such as `int | None`
            return _value_of(first, number)
        case ast.Name(id=name):
            return _VALUES[name.lower()][number]
        case ast.Subscript(value=ast.Name(id=name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            match name.lower(), parts:
                case "optional", [part]:
                    return _value_of(part, number)
                case "list", [part]:
                    return [_value_of(part, one) for one in _ITEMS[number]]
                case "tuple", _:
                    return tuple(_value_of(part, number) for part in parts)
                case "dict", [key, value]:
                    pairs = ((_value_of(key, n), _value_of(value, n)) for n in _ITEMS[number])
                    return dict(pairs)
    raise KeyError(annotation)
