"""The check ``agreement``: independent drafts give the same results on the same inputs.

Stated examples are few, and a wrong text often meets them all. Texts written independently from the
task rarely make the same mistake: where most of them give one result, that result is probably right
(CodeT, arXiv 2207.10397; MBR-Exec, arXiv 2204.11454). A text that misses a stated example is known
to be wrong, so its results on other inputs do not count.
"""

import ast
import math
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from copy import copy
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from ipyrefine.checks.evaluation import (
    Evaluation,
    Example,
    Outcome,
    format_error,
    same_outcome,
    shorten,
)
from ipyrefine.checks.examples import Examples, extract, fenced_python
from ipyrefine.checks.functions import not_python
from ipyrefine.core.model import Evidence, Task

if TYPE_CHECKING:
    from ipyrefine.checks.registry import Context

MAX_INPUTS = 60

_MIN_CONCLUSIVE = 5  # inputs with a clear majority before agreement settles a verdict
_CONCLUSIVE_PER_OPEN = 8  # and so many for each input that leaves open what is right
_MIN_DRAFTS = 3  # drafts that must give a result where no stated example vouches for any of them
_DETAIL_LINES = 3
_CACHE_SIZE = 64  # texts whose results are remembered

K = TypeVar("K")
V = TypeVar("V")


class Agreement:
    """The task's examples hold, and on further inputs most drafts give what the text gives.

    The inputs are the calls of the examples with other arguments, and only drafts that meet the
    examples are compared. Where no example is stated, the inputs are made from the annotated types
    of the function whose head the task gives, and at least three drafts must give one result.

    An input is conclusive where one result has more than half of the texts behind it and is no
    error. Other inputs tell nothing of a text; they show that something is wrong, unless they are
    edge cases (`is_edge_case`). With more than one of them for each eight conclusive inputs, no
    verdict is settled.

    The score is the share of the conclusive inputs on which the text agrees; where these are too
    few, the share of the drafts that give the text's results.

    Args:
        seconds: wall time for all inputs of one text.
        decisive: whether a pass settles the verdict without a judge; None to let the number of
            conclusive inputs decide.
        files: files to put beside the text, such as `ipyrefine.checks.variables.sandbox_files`.
        others: the other drafts.
    """

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        decisive: bool | None = None,
        files: Mapping[str, bytes] | None = None,
        others: Sequence[str] = (),
    ) -> None:
        self.name = "agreement"
        self._seconds, self._decisive = seconds, decisive
        self._files, self._others = dict(files or {}), tuple(others)
        self._outcome_cache: dict[tuple[str, tuple[Example, ...]], list[Outcome]] = {}
        self._example_cache: dict[tuple[str, str], Evidence] = {}

    @classmethod
    def from_argument(cls, argument: str, context: "Context", **settings: Any) -> Self:
        """Build the check ``agreement``, which takes no argument."""
        return cls(files=context.files, **settings)

    def beside(self, others: Sequence[str]) -> "Agreement":
        """Return the same check, with the drafts to compare a text with."""
        check = copy(self)  # it shares the caches
        check._others = tuple(others)
        return check

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the stated examples, then the further inputs with every draft."""
        if task.is_foreign:
            return not_python(self.name, task)
        start = monotonic()
        stated = extract(task.text) or first_calls(task.text)
        inputs = further_inputs(stated)
        examples = await self._check_examples(text, task)
        others = await self._valid_drafts(task) if inputs and examples.passed is not False else []
        if not others:
            decisive = bool(self._decisive) and bool(examples.passed)
            update = {"name": self.name, "seconds": monotonic() - start, "decisive": decisive}
            return examples.model_copy(update=update)
        outcomes = [await self._outcomes(draft, inputs) for draft in (text, *others)]
        drafts = len(outcomes)
        comparisons = [
            _compare(example, results) for example, *results in zip(inputs, *outcomes, strict=True)
        ]
        majority = drafts // 2 + 1
        quorum = max(majority, _MIN_DRAFTS) if examples.passed is None else majority
        conclusive = [c for c in comparisons if c.votes >= quorum and not c.is_error]
        against = [comparison for comparison in conclusive if not comparison.agrees]
        open_inputs = [
            comparison.example
            for comparison in comparisons
            if comparison.is_error or comparison.votes < majority
        ]
        doubts = len([example for example in open_inputs if not is_edge_case(example, stated)])
        enough = len(conclusive) >= max(_MIN_CONCLUSIVE, _CONCLUSIVE_PER_OPEN * doubts)
        return Evidence(
            name=self.name,
            passed=None if examples.passed is None and not conclusive else not against,
            score=1 - len(against) / len(conclusive) if enough else _support(comparisons, drafts),
            detail=f"{_format(conclusive, against, len(others))}\n{examples.detail}",
            seconds=monotonic() - start,
            decisive=enough if self._decisive is None else self._decisive,
        )

    async def _valid_drafts(self, task: Task) -> list[str]:
        """Return the other drafts, except those that miss a stated example."""
        results = [await self._check_examples(other, task) for other in self._others]
        return [o for o, r in zip(self._others, results, strict=True) if r.passed is not False]

    async def _check_examples(self, text: str, task: Task) -> Evidence:
        check = Examples(seconds=self._seconds, files=self._files)
        return await _cached(self._example_cache, (text, task.text), lambda: check(text, task))

    async def _outcomes(self, text: str, inputs: tuple[Example, ...]) -> list[Outcome]:
        evaluation = Evaluation(text, seconds=self._seconds, files=self._files)
        return await _cached(
            self._outcome_cache, (text, inputs), lambda: evaluation.outcomes(inputs)
        )


async def _cached(cache: dict[K, V], key: K, compute: Callable[[], Awaitable[V]]) -> V:
    """Return a cached value, or compute it and drop the oldest ones."""
    if key not in cache:
        while len(cache) >= _CACHE_SIZE:
            del cache[next(iter(cache))]
        cache[key] = await compute()
    return cache[key]


class _Comparison(NamedTuple):
    """The results of all texts for one input, the checked text's first."""

    example: Example
    agrees: bool
    own_votes: int  # texts that give what the checked text gives
    own_result: str
    usual_result: str
    votes: int  # texts that give the usual result
    is_error: bool  # whether the usual result is an error


def _compare(example: Example, outcomes: Sequence[Outcome]) -> _Comparison:
    votes = [sum(same_outcome(one, other) for other in outcomes) for one in outcomes]
    own, usual = outcomes[0], outcomes[votes.index(max(votes))]
    return _Comparison(
        example=example,
        agrees=same_outcome(own, usual),
        own_votes=votes[0],
        own_result=_format_result(own),
        usual_result=_format_result(usual),
        votes=max(votes),
        is_error="error" in usual,
    )


def _support(comparisons: Sequence[_Comparison], drafts: int) -> float:
    """Return the share of the drafts, 0..1, that give a text's results, where most do not fail.

    Where agreement settles nothing, the text with the most support is the likeliest to be right.
    """
    shares = [c.own_votes / drafts for c in comparisons if not c.is_error]
    return sum(shares) / len(shares) if shares else 1.0


def _format_result(outcome: Outcome) -> str:
    if "error" in outcome:
        return f"raised {shorten(format_error(outcome))}"
    return f"gives {shorten(str(outcome.get('repr', '')))}"


def _format(conclusive: Sequence[_Comparison], against: Sequence[_Comparison], others: int) -> str:
    if not conclusive:
        return "On no further input do most of the drafts give one result."
    if not against:
        drafts = (
            "the other draft gives" if others == 1 else f"most of the {others} other drafts give"
        )
        return f"It gives what {drafts} on all of {len(conclusive)} further inputs."
    lines = [
        f"{shorten(c.example.source)}: {c.own_result}, where {c.votes} of {others + 1} drafts "
        f"agree: {c.usual_result}"
        for c in against[:_DETAIL_LINES]
    ]
    lines[0] = f"{lines[0]} ({len(against)} of {len(conclusive)} inputs differ)"
    return "\n".join(lines)


# Further inputs: the stated calls with other arguments.

_MAX_CALL = 2_000  # characters
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
    inputs: dict[str, Example] = {}
    for call in calls:
        for arguments in _variants(call, calls):
            source = call._replace(arguments=arguments).source
            if len(source) <= _MAX_CALL:
                inputs[source] = Example(
                    source=source, expected="", kind="equals", setup=call.setup
                )
    stated = {call.source for call in calls}
    fresh = [example for source, example in inputs.items() if source not in stated]
    return tuple(random.Random(0).sample(fresh, MAX_INPUTS) if len(fresh) > MAX_INPUTS else fresh)


def is_edge_case(example: Example, stated: Sequence[Example]) -> bool:
    """Return whether a call asks for what the task may leave open, so that right texts differ.

    One of its arguments is 0, 1 or negative, empty or a single item, and smaller than any that the
    task states in its place.

    Args:
        example: one of the further inputs.
        stated: the examples they were made from.
    """
    call = _read_call(example)
    if call is None:
        return False
    calls = [other for one in stated if (other := _read_call(one))]
    places = zip(*_alike(call, calls), strict=True)
    sizes = [(_size(a), min(map(_size, p))) for a, p in zip(call.arguments, places, strict=True)]
    return any(size <= 1 and size < smallest for size, smallest in sizes)


def _size(value: Any) -> float:
    """Return a number itself, the length of a collection, and infinity for anything else."""
    if isinstance(value, str | list | tuple | dict):
        return len(value)
    return value if type(value) in (int, float) else math.inf


def _read_call(example: Example) -> _Call | None:
    try:
        node = ast.parse(example.source.strip(), mode="eval").body
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            arguments = tuple(map(ast.literal_eval, node.args))
            return _Call(node.func.id, arguments, example.setup)
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        pass  # an argument is no literal
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
    if isinstance(value, bool) or value is None:
        return [not value] if isinstance(value, bool) else []
    if isinstance(value, int):
        return [value + 1, value - 1, value + 2, value // 2, 2 * value + 1, 0, 1]
    if isinstance(value, float):
        return [value + 0.5, -value, value * 10, 0.0, value + 1, value / 2]
    if isinstance(value, str | list | tuple):
        return [*_rearrange(value), *_change_items(value)]
    if isinstance(value, dict):
        return [{}, *({k: v for k, v in value.items() if k != key} for key in value)]
    return []


def _rearrange(value: Any) -> list[Any]:
    """Return the sequences that a sequence's own items make, the empty one first."""
    half, rotated = len(value) // 2, value[1:] + value[:1]
    places = range(min(len(value), _MAX_ITEMS))
    without = [value[:n] + value[n + 1 :] for n in places]
    alone = [value[n : n + 1] for n in places]
    return [
        value[:0], value[:-1], value[::-1], value + value, value[half:], rotated, *without, *alone,
    ]  # fmt: skip


def _change_items(value: Any) -> list[Any]:
    """Return a sequence with its first item changed, or a string with other case or a space."""
    if isinstance(value, str):
        return [value.swapcase(), f" {value}"]
    if not value:
        return []
    return [type(value)([changed, *value[1:]]) for changed in _changes(value[0])[:3]]


# First inputs: calls by annotated types, where no example is stated.

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
        if isinstance(node, ast.FunctionDef) and _is_unwritten(node)
    ]
    return _calls_of(functions[-1]) if functions else ()


def _is_unwritten(function: ast.FunctionDef) -> bool:
    """Return whether a function consists of a docstring, ``pass`` or ``...`` only."""
    return all(
        isinstance(node, ast.Pass)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in function.body
    )


def _calls_of(function: ast.FunctionDef) -> tuple[Example, ...]:
    parameters = function.args
    if parameters.vararg or parameters.kwarg or parameters.kwonlyargs:
        return ()
    annotations = [p.annotation for p in (*parameters.posonlyargs, *parameters.args)]
    columns = [_values_of(annotation) for annotation in annotations]
    if not columns or not all(columns):
        return ()
    sources = [_Call(function.name, row).source for row in zip(*columns, strict=True)]
    return tuple(Example(source=source, expected="", kind="equals") for source in sources)


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
    try:
        whole = dict(zip(keys, values, strict=False))
    except TypeError:
        return ()  # unhashable keys, such as lists
    return [whole, dict([*whole.items()][:1]), dict([*whole.items()][1:])] if whole else ()
