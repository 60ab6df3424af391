"""Make further inputs for a function, from the calls a task states and from annotated types."""

import ast
import math
import random
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


class _Call(NamedTuple):
    """A call of a name with literal arguments."""

    name: str
    arguments: tuple[Any, ...]
    setup: str = ""

    @property
    def source(self) -> str:
        """Return the call as Python."""
        return f"{self.name}({', '.join(map(repr, self.arguments))})"


def further_inputs(examples: Sequence[Example]) -> tuple[Example, ...]:
    """Return calls like those of the examples, with other arguments and without a result.

    The changes depend on the type, as in EvalPlus (arXiv 2305.01210): small steps for numbers; for
    a sequence the empty one, shorter, longer, rotated and reversed ones, and it without one of its
    items or with that one alone. Arguments of one type are also changed together and reversed, as
    some must have the same length, and arguments of several examples are mixed.

    Args:
        examples: what the task states; only calls of a name with literal arguments are changed.

    Returns:
        At most 60 calls, none of them stated, always the same for the same examples.
    """
    calls = [call for example in examples if (call := _read_call(example))]
    seeds = calls[:_SEEDS]
    inputs = _as_examples(
        call._replace(arguments=arguments) for call in seeds for arguments in _variants(call, seeds)
    )
    stated = {call.source for call in calls}
    fresh = [example for example in inputs if example.source not in stated]
    return tuple(random.Random(0).sample(fresh, MAX_INPUTS) if len(fresh) > MAX_INPUTS else fresh)


def constant_inputs(examples: Sequence[Example], texts: Sequence[str]) -> tuple[Example, ...]:
    """Return calls like those of the examples, with constants of the code in place of arguments.

    Code branches where it compares with a constant, and other inputs rarely reach that (constant
    seeding, Fraser and Arcuri, doi 10.1109/ICST.2012.54).

    Args:
        examples: as for `further_inputs`.
        texts: the code; only small numbers and short strings in it count.

    Returns:
        At most 60 calls, always the same for the same examples and texts.
    """
    values = sorted({*_constants(texts)}, key=repr)
    inputs = _as_examples(
        call._replace(arguments=_replace(call.arguments, place, changed))
        for call in filter(None, map(_read_call, examples))
        for place, argument in enumerate(call.arguments)
        for value in values
        for changed in _seed(argument, value)
    )
    return tuple(random.Random(0).sample(inputs, min(MAX_INPUTS, len(inputs))))


def _as_examples(calls: Iterable[_Call]) -> list[Example]:
    """Return calls that are not too long as examples without a result, each once."""
    sources = {call.source: call.setup for call in calls}
    return [
        Example(source=source, expected="", kind="equals", setup=setup)
        for source, setup in sources.items()
        if len(source) <= _MAX_CALL
    ]


def _constants(texts: Sequence[str]) -> Iterator[Any]:
    """Yield the numbers up to 1,000 and the short strings of code; a docstring is none of them."""
    for text in texts:
        if (tree := try_parse(python_part(text).code)) is None:
            continue
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
        rest = argument[1:]
        yield from (type(argument)([new, *rest]) for new in _seed(argument[0], value))


def is_edge_case(example: Example, stated: Sequence[Example]) -> bool:
    """Return whether a call asks for what the task may leave open, so that right texts differ.

    One of its arguments is 0, 1 or negative, empty or a single item, and smaller than any that the
    task states in its place; or a string has a kind of character (a capital, a digit, a
    space) that no string stated in its place has.

    Args:
        example: one of the further inputs.
        stated: the examples they were made from.
    """
    call = _read_call(example)
    if call is None:
        return False
    calls = [other for one in stated if (other := _read_call(one))]
    places = [*zip(*_alike(call, calls), strict=True)]
    sizes = [(_size(a), min(map(_size, p))) for a, p in zip(call.arguments, places, strict=True)]
    if any(size <= 1 and size < smallest for size, smallest in sizes):
        return True
    pairs = zip(call.arguments, places, strict=True)
    return any(_kinds(argument) - set().union(*map(_kinds, place)) for argument, place in pairs)


def _kinds(value: Any) -> set[str]:
    """Return the kinds of characters in a string; none for anything else."""
    return set(map(unicodedata.category, value)) if isinstance(value, str) else set()


def _size(value: Any) -> float:
    """Return a number itself, the length of a collection, and infinity for anything else."""
    if isinstance(value, str | list | tuple | dict):
        return len(value)
    return value if type(value) in (int, float) else math.inf


def _read_call(example: Example) -> _Call | None:
    match try_parse_expression(example.source):
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            with suppress(*ERRORS):  # an argument is not a literal
                return _Call(name, tuple(map(ast.literal_eval, arguments)), example.setup)
    return None


def _alike(call: _Call, calls: Sequence[_Call]) -> list[tuple[Any, ...]]:
    """Return the arguments of all calls of the same function with as many arguments."""
    key = (call.name, len(call.arguments))
    return [other.arguments for other in calls if (other.name, len(other.arguments)) == key]


def _variants(call: _Call, calls: Sequence[_Call]) -> Iterator[tuple[Any, ...]]:
    """Yield the changed arguments of a call: one, all of them, or one from another call."""
    arguments = call.arguments
    for place, value in enumerate(arguments):
        for changed in _changes(value):
            yield _replace(arguments, place, changed)
    if len(arguments) < 2:
        return
    if len(set(map(type, arguments))) == 1:
        yield arguments[::-1]
        yield from zip(*map(_changes, arguments), strict=False)
    for others in _alike(call, calls):
        for place, value in enumerate(others):
            yield _replace(arguments, place, value)


def _replace(arguments: tuple[Any, ...], place: int, value: Any) -> tuple[Any, ...]:
    return (*arguments[:place], value, *arguments[place + 1 :])


def _changes(value: Any) -> list[Any]:
    """Return changed values of the same type."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 2, value // 2, 2 * value + 1, 0, 1]
    if isinstance(value, float):
        return [value + 0.5, -value, value * 10, 0.0, value + 1, value / 2]
    if isinstance(value, str):
        return [*_rearrange(value), value.swapcase(), f" {value}"]
    if isinstance(value, list | tuple):
        first = [type(value)([one, *value[1:]]) for v in value[:1] for one in _changes(v)[:3]]
        return [*_rearrange(value), *first]
    if isinstance(value, dict):
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


_VALUES: dict[str, tuple[Any, ...]] = {
    "int": (7, 12, 3),
    "float": (2.5, 10.0, 0.75),
    "bool": (True, False, True),
    "str": ("hello world", "Abc 12", "zxya"),
}


def first_calls(task_text: str) -> tuple[Example, ...]:
    """Return calls of the last unwritten function in the task's fenced Python.

    Args:
        task_text: the task.

    Returns:
        Three calls, without a result; none where an argument has no annotation or not a plain one
        (numbers, strings, and lists, tuples or dicts of these).
    """
    functions = [
        node
        for tree in fenced_python(task_text)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and all(map(_is_filler, node.body))
    ]
    if not functions:
        return ()
    parameters = functions[-1].args
    columns = [_values_of(one.annotation) for one in (*parameters.posonlyargs, *parameters.args)]
    if parameters.vararg or parameters.kwarg or parameters.kwonlyargs or not all(columns):
        return ()
    rows = zip(*columns, strict=True)
    return tuple(_as_examples(_Call(functions[-1].name, row) for row in rows))


def _is_filler(node: ast.stmt) -> bool:
    """Return whether a statement is a docstring, ``pass`` or ``...``."""
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass)


def _values_of(annotation: ast.expr | None) -> Sequence[Any]:
    """Return three values of an annotated type; none where it is not plain."""
    match annotation:
        case ast.Name(id=name) if name in _VALUES:
            return _VALUES[name]
        case ast.Name(id="list" | "List"):
            return _lists(_VALUES["int"])
        case ast.Name(id="dict" | "Dict"):
            return _dicts(_VALUES["str"], _VALUES["int"])
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _values_of(inner)
        case ast.Subscript(value=ast.Name(id="list" | "List"), slice=inner):
            return _lists(_values_of(inner))
        case ast.Subscript(value=ast.Name(id="dict" | "Dict"), slice=ast.Tuple(elts=[key, value])):
            return _dicts(_values_of(key), _values_of(value))
        case ast.Subscript(value=ast.Name(id="tuple" | "Tuple"), slice=ast.Tuple(elts=parts)):
            columns = [_values_of(part) for part in parts]
            return [*zip(*columns, strict=True)] if all(columns) else ()
    return ()


def _lists(items: Sequence[Any]) -> Sequence[Any]:
    return [list(items), [*items[::-1], items[0]], list(items[:2])] if items else ()


def _dicts(keys: Sequence[Any], values: Sequence[Any]) -> Sequence[Any]:
    with suppress(TypeError):  # unhashable keys, such as lists
        pairs = [*dict(zip(keys, values, strict=False)).items()]
        return [dict(pairs), dict(pairs[:1]), dict(pairs[1:])] if pairs else ()
    return ()
