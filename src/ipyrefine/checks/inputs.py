"""Make further inputs for a function, from the calls a task states and from annotated types."""

import ast
import math
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ipyrefine.core.stated import Example, fenced_python
from ipyrefine.core.syntax import ERRORS, try_parse, try_parse_expression
from ipyrefine.kernel.magics import python_part

MAX_INPUTS = 60
_SEEDS = 40  # calls that are varied
_MAX_CALL = 2_000  # characters
_MAX_CONSTANT, _MAX_CONSTANT_LENGTH = 1_000, 20  # of a constant that is put into calls
_MAX_ITEMS = 6  # items of a sequence that are left out of it, or left alone, one at a time
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# A function with the types of its arguments, in a sentence.
_HEAD = re.compile(r"(?<![\w.])([A-Za-z_]\w*\([^()\n:]{1,60}:[^()\n]{1,200}\))")
_VALUES: dict[str, Sequence[Any]] = {
    "int": (7, 12, 3),
    "float": (2.5, 10.0, 0.75),
    "bool": (True, False, True),
    "str": ("hello world", "Abc 12", "zxya"),
    "list": ([7, 12, 3], [3, 12, 7, 7], [7, 12]),
    "dict": ({"hello world": 7, "Abc 12": 12, "zxya": 3}, {"hello world": 7}, {"zxya": 3}),
}
_ITEMS = ((0, 1, 2), (2, 1, 0, 0), (0, 1))  # which of a type's values are in each list


class _Call(NamedTuple):
    """A call of a name with literal arguments, the last of them by their keywords."""

    name: str
    arguments: tuple[Any, ...]
    keywords: tuple[str, ...] = ()
    setup: str = ""

    @property
    def source(self) -> str:
        first = len(self.arguments) - len(self.keywords)
        words = [*[""] * first, *(f"{word}=" for word in self.keywords)]
        arguments = [f"{w}{a!r}" for w, a in zip(words, self.arguments, strict=True)]
        return f"{self.name}({', '.join(arguments)})"

    def replace(self, place: int, value: Any) -> "_Call":
        arguments = (*self.arguments[:place], value, *self.arguments[place + 1 :])
        return self._replace(arguments=arguments)


def further_inputs(examples: Sequence[Example], texts: Sequence[str] = ()) -> tuple[Example, ...]:
    """Return calls like those of the examples, with other arguments and without a result.

    The changes depend on the type, as in EvalPlus (arXiv 2305.01210): small steps for numbers; for
    a sequence the empty one, shorter, longer, rotated and reversed ones, and it without one of its
    items or with that one alone. Arguments of one type are also changed together and reversed, as
    some must have the same length, and arguments of several examples are mixed.

    Code branches where it compares with a constant, and other inputs rarely reach that (constant
    seeding, Fraser and Arcuri, doi 10.1109/ICST.2012.54): the small numbers and short strings of
    `texts` are put in place of arguments too.

    Returns:
        At most 60 calls, and 60 more with constants, none of them stated; always the same for the
        same examples and texts.
    """
    calls = [call for example in examples if (call := _read_call(example))]
    values = sorted({*_constants(texts)}, key=repr)
    varied = (variant for call in calls[:_SEEDS] for variant in _variants(call, calls[:_SEEDS]))
    seeded = (
        call.replace(place, changed)
        for call in calls
        for place, argument in enumerate(call.arguments)
        for value in values
        for changed in _seed(argument, value)
    )
    stated = {call.source for call in calls}
    inputs = dict[Example, None]()
    for made in varied, seeded:
        fresh = [example for example in _as_examples(made) if example.source not in stated]
        few = len(fresh) <= MAX_INPUTS
        inputs |= dict.fromkeys(fresh if few else random.Random(0).sample(fresh, MAX_INPUTS))
    return tuple(inputs)


def is_edge_case(example: Example, stated: Sequence[Example]) -> bool:
    """Return True if a call asks for what the task may leave open, so that right texts differ.

    One of its arguments is 0, 1 or negative, empty or a single item, and smaller than any that the
    task states in its place; or a string has a kind of character (a capital, a digit, a
    space) that no string stated in its place has.
    """
    call = _read_call(example)
    if call is None:
        return False
    places = zip(*_alike(call, filter(None, map(_read_call, stated))), strict=True)
    return any(
        (_size(argument) <= 1 and _size(argument) < min(map(_size, place)))
        or _kinds(argument) - set().union(*map(_kinds, place))
        for argument, place in zip(call.arguments, places, strict=True)
    )


def first_calls(task_text: str) -> tuple[Example, ...]:
    """Return three calls of the last unwritten function in the task's fenced Python.

    Without one it is the first that the task's words give with types: ``f(n: int) -> bool``. None
    are returned where an argument's annotation isn't plain (numbers, strings, and lists, tuples or
    dicts of these).
    """
    functions = [
        node
        for tree in fenced_python(task_text)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and all(map(_is_filler, node.body))
    ]
    heads = (try_parse(f"def {head}: ...") for head in _HEAD.findall(_FENCE.sub("", task_text)))
    inline = (tree.body[0] for tree in heads if tree)
    function = functions[-1] if functions else next(inline, None)
    if not isinstance(function, ast.FunctionDef):
        return ()
    every = function.args
    needed = [
        one for one, default in zip(every.kwonlyargs, every.kw_defaults, strict=True) if not default
    ]
    parameters = (*every.posonlyargs, *every.args, *needed)
    if not parameters or every.vararg or every.kwarg:
        return ()
    words = tuple(one.arg for one in needed)
    with suppress(KeyError, TypeError):  # an annotation is not plain
        rows = [tuple(_value_of(one.annotation, n) for one in parameters) for n in range(3)]
        return tuple(_as_examples(_Call(function.name, row, words) for row in rows))
    return ()


def _read_call(example: Example) -> _Call | None:
    match try_parse_expression(example.source):
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
            words = tuple(one.arg or "**" for one in keywords)
            values = [*arguments, *(one.value for one in keywords)]
            with suppress(*ERRORS):  # an argument is not a literal
                return _Call(name, tuple(map(ast.literal_eval, values)), words, example.setup)
    return None


def _as_examples(calls: Iterable[_Call]) -> list[Example]:
    """Return calls that are not too long as examples without a result, each once."""
    sources = {call.source: call.setup for call in calls}
    return [
        Example(source=source, expected="", kind="equals", setup=setup)
        for source, setup in sources.items()
        if len(source) <= _MAX_CALL
    ]


def _alike(call: _Call, calls: Iterable[_Call]) -> list[tuple[Any, ...]]:
    key = (call.name, len(call.arguments), call.keywords)
    return [one.arguments for one in calls if (one.name, len(one.arguments), one.keywords) == key]


def _variants(call: _Call, calls: Sequence[_Call]) -> Iterator[_Call]:
    """Yield a call with one argument changed, all of them, or one from another call."""
    arguments = call.arguments
    for place, value in enumerate(arguments):
        for changed in _changes(value):
            yield call.replace(place, changed)
    if len(arguments) < 2:
        return
    if len(set(map(type, arguments))) == 1:
        yield call._replace(arguments=arguments[::-1])
        for together in zip(*map(_changes, arguments), strict=False):
            yield call._replace(arguments=together)
    for others in _alike(call, calls):
        for place, value in enumerate(others):
            yield call.replace(place, value)


def _changes(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1, value - 1, value + 2, value // 2, 2 * value + 1, 0, 1]
        case float():
            return [value + 0.5, -value, value * 10, 0.0, value + 1, value / 2]
        case str():
            return [*_rearrange(value), value.swapcase(), f" {value}"]
        case list() | tuple():
            first = [type(value)([one, *value[1:]]) for v in value[:1] for one in _changes(v)[:3]]
            return [*_rearrange(value), *first]
        case dict():
            return [{}, *({k: v for k, v in value.items() if k != key} for key in value)]
    return []


def _rearrange(value: Any) -> list[Any]:
    """Return the sequences that a sequence's own items make, the empty one first."""
    half, rotated = len(value) // 2, value[1:] + value[:1]
    places = range(min(len(value), _MAX_ITEMS))
    without = [value[:n] + value[n + 1 :] for n in places]
    alone = [value[n : n + 1] for n in places]
    whole = [value[:0], value[:-1], value[::-1], value + value, value[half:], rotated]
    return [*whole, *without, *alone]


def _constants(texts: Sequence[str]) -> Iterator[Any]:
    """Yield the numbers up to 1,000 and the short strings of code; a docstring is none of them."""
    for tree in filter(None, (try_parse(python_part(text).code) for text in texts)):
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            match node:
                case ast.Constant(value=bool()):
                    pass
                case ast.Constant(value=int() | float() as value) if abs(value) <= _MAX_CONSTANT:
                    yield value
                case ast.Constant(value=str(value)) if id(node) not in alone:
                    if len(value) <= _MAX_CONSTANT_LENGTH:
                        yield value


def _seed(argument: Any, value: Any) -> Iterator[Any]:
    """Yield an argument's replacements by a constant of its type, or of its first item's.

    A string is also put behind another one, as a further word where that has several.
    """
    if type(argument) is type(value):
        yield value
        if isinstance(value, int):
            yield from (value - 1, value + 1)
        elif isinstance(value, str):
            yield argument + " " * (" " in argument) + value
    elif isinstance(argument, list | tuple) and argument:
        yield from (type(argument)([new, *argument[1:]]) for new in _seed(argument[0], value))


def _kinds(value: Any) -> set[str]:
    return set(map(unicodedata.category, value)) if isinstance(value, str) else set()


def _size(value: Any) -> float:
    """Return a number itself, the length of a collection, and infinity for anything else."""
    if isinstance(value, str | list | tuple | dict):
        return len(value)
    return value if type(value) in (int, float) else math.inf


def _is_filler(node: ast.stmt) -> bool:
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass)


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
