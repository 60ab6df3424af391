"""Make further inputs for a function, from the calls a task states and from annotated types."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, product, zip_longest
from operator import itemgetter
from typing import Any, NamedTuple

from ipyrefine.core.stated import Example, fenced_python, read_examples
from ipyrefine.core.syntax import ERRORS, try_parse, try_parse_expression, unparse
from ipyrefine.kernel.magics import python_part

MAX_INPUTS = 60
_SEEDS = 40  # calls that are varied
_MAX_CALL = 2_000  # characters
_MAX_CONSTANT, _MAX_CONSTANT_LENGTH = 1_000, 20  # of a constant that is put into calls
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
_TYPES = ("int", "list", "table", "list[tuple[str, int]]", "str", "list[str]", "dict")
_MOST_TRIED = 24  # calls of code without types, of which the first that gives something is shown


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


def further_inputs(examples: Sequence[Example], texts: Sequence[str] = ()) -> tuple[Example, ...]:
    """Return natural inputs, and calls of the examples with constants of some texts in them.

    Code branches where it compares with a constant, and other inputs rarely reach that (constant
    seeding, Fraser and Arcuri, doi 10.1109/ICST.2012.54).

    Returns:
        At most 60 of each, none of them stated.
    """
    values = sorted({*_constants(texts)}, key=repr)
    seeded = _as_examples(
        call.replace(place, changed)
        for call in filter(None, map(_read_call, examples))
        for place, argument in enumerate(call.arguments)
        for value in values
        for changed in _seed(argument, value)
    )
    stated, inputs = {one.call for one in examples}, dict[Example, None]()
    for made in natural_inputs(examples), seeded:
        fresh = (one for one in made if one.call not in stated)
        inputs |= dict.fromkeys(islice(fresh, MAX_INPUTS))
    return tuple(inputs)


def natural_inputs(examples: Sequence[Example]) -> tuple[Example, ...]:
    """Return calls that a person would try next to those of the examples, the most telling first.

    One argument changes at a time, to a value of its kind: none, several, another one, an odd one,
    a single one. Arguments of one length change together.
    """
    calls = [call for example in examples[:_SEEDS] if (call := _read_call(example))]
    calls.sort(key=lambda one: -len(one.source))
    stated, ranked = {call.source for call in calls}, list[tuple[tuple[int, ...], _Call]]()
    for number, call in enumerate(calls):
        tries = [*map(_tries, call.arguments)]
        sizes = {len(one) if isinstance(one, list | tuple) else -1 for one in call.arguments}
        if len(sizes) == 1 and -1 not in sizes:
            made = [[call._replace(arguments=one)] for one in zip(*tries, strict=False)]
        else:
            places = [[call.replace(p, one) for one in ones] for p, ones in enumerate(tries)]
            made = [[*filter(None, ones)] for ones in zip_longest(*places)]
        for kind, ones in enumerate(made):
            # Of each kind the next argument comes first, of the longest example.
            ranked += [((number, (p - kind) % len(ones), kind), one) for p, one in enumerate(ones)]
    ranked.sort(key=itemgetter(0))
    found = _as_examples(one for _, one in ranked)
    return tuple(one for one in found if one.call not in stated)


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
    parameters = _parameters(function.args, optional=True)
    if not parameters or function.args.vararg or function.args.kwarg:
        return ()
    words = tuple(one.name for one in parameters if one.by_word)
    with suppress(KeyError, TypeError):  # an annotation is not plain
        rows = [_values_of([one.type for one in parameters], n) for n in range(3)]
        return tuple(_as_examples(_Call(function.name, row, words) for row in rows))
    return ()


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
    shown = filter(None, map(_read_call, read_examples(ast.get_docstring(function) or "")))
    first, *others = _guesses(parameters := _parameters(function.args), function.name)
    quoted = _QUOTED.findall(task_text) if len(parameters) == 1 else []
    likely = [*shown, first, *(first.replace(0, one) for one in quoted)]
    return tuple(_as_examples([*likely, *others])[:_MOST_TRIED])


class _Parameter(NamedTuple):
    name: str
    type: ast.expr | None = None
    by_word: bool = False


def _parameters(every: ast.arguments, *, optional: bool = False) -> list[_Parameter]:
    """Return what a call has to give, with `optional` also what it may give by its place."""
    placed = [*every.posonlyargs, *every.args]
    if not optional:
        placed = placed[: max(0, len(placed) - len(every.defaults))]
    pairs = zip(every.kwonlyargs, every.kw_defaults, strict=True)
    words = [_Parameter(one.arg, one.annotation, True) for one, default in pairs if not default]
    return [*(_Parameter(one.arg, one.annotation) for one in placed), *words]


def _guesses(parameters: Sequence[_Parameter], name: str) -> list[_Call]:
    """Return calls with values for some parameters, of the likeliest types first."""
    few = round(200 ** (1 / max(1, len(parameters))))  # types of each, as all combine
    types = [_types_of(one)[:few] for one in parameters]
    ways = sorted(product(*(range(len(one)) for one in types)), key=lambda way: (sum(way), way))
    words = tuple(one.name for one in parameters if one.by_word)
    return [
        _Call(name, _values_of([one[n] for one, n in zip(types, way, strict=True)], 0), words)
        for way in ways[:_MOST_TRIED]
    ]


def _types_of(one: _Parameter) -> list[ast.expr]:
    likely = (kind for names, kind in _LIKELY if re.fullmatch(names, one.name.lower()))
    types = dict.fromkeys([next(likely, "int"), *_TYPES])
    found = [ast.parse(kind, mode="eval").body for kind in types]
    with suppress(KeyError, TypeError):  # the annotation is not plain
        _value_of(one.type, 0)
        found[:0] = filter(None, [one.type])
    return found


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
    sources = {call.source: call.setup for call in calls}
    return [
        Example(call=source, setup=setup)
        for source, setup in sources.items()
        if len(source) <= _MAX_CALL
    ]


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


def _values_of(annotations: Sequence[ast.expr | None], number: int) -> tuple[Any, ...]:
    """Return values for some arguments; those of one type differ.

    Raises:
        KeyError, TypeError: an annotation is not plain.
    """
    types = [unparse(one) if one else "" for one in annotations]
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
