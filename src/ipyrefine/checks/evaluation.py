"""Run examples in the sandbox and compare the outcomes, out of the tested code's reach."""

import ast
import builtins
import doctest
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ipyrefine.core.stated import Example
from ipyrefine.core.syntax import (
    ERRORS,
    NO_VALUE,
    is_literal,
    parse,
    read_literal,
    try_parse_expression,
)
from ipyrefine.errors import CheckNotRun
from ipyrefine.kernel.copies import explain_absence, files_for, may_compute
from ipyrefine.kernel.magics import python_part
from ipyrefine.sandbox.sandbox import EXCESSES, SLACK, ProcessResult, load_program, run_python

_SHARE = 4  # one example may take this fraction of the whole time
_USUAL = 60  # examples that the whole time is for; more of them get more
_WIDTH = 200
_TOLERANCE = 1e-9
_TRACEBACK = "Traceback (most recent call last):"
_CHECKER = doctest.OutputChecker()
_CHECKER_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1

Outcome = dict[str, Any]
Event = dict[str, Any]


class Evaluation:
    """Evaluates examples with a text.

    Args:
        text: the code.
        seconds: processor time for up to 60 examples together; one may take a quarter of it.
        files: files to put next to it, such as `kernel.variables.Variables.files`.

    Attributes:
        load_error: why the text does not load, or empty.
        absence: why an example was not run that needs a variable, or empty.
        protection_note: a note for people on what the sandbox did not protect, or empty.
        computed: whether the outcomes may come from the user's variables or files.
    """

    def __init__(self, text: str, *, seconds: float, files: Mapping[str, bytes]) -> None:
        self._text, self._seconds, self._files = python_part(text).code, seconds, dict(files)
        self.load_error = self.protection_note = self.absence = ""
        self.computed = False
        self._taken: dict[str, str | bytes] = {}
        self._stall: CheckNotRun | None = None

    async def outcomes(
        self, examples: tuple[Example, ...], *, required: bool = False
    ) -> list[Outcome]:
        """Return the outcome of each example.

        All run in one process; after one that ends the process, the rest run in another. Where an
        expected value must be computed, that is done in a process without the text, from the
        plain data that came out. Only what no process without the text can compute is computed
        next to it: then the text's own objects decide whether they are equal.

        Args:
            examples: the examples.
            required: whether the text must meet them all, so that one it misses is enough.

        Raises:
            CheckNotRun: one waits, or the machine is busy, so that nothing can be said.
        """
        sources = [self._text, *(f"{e.setup}\n{e.source}\n{e.expected}" for e in examples)]
        self._taken = files_for(self._files, *sources)
        self.computed = may_compute(self._files, *sources)
        plans = [_plan(example) for example in examples]
        outcomes = await self._evaluate(
            self._text, [_request(e, p) for e, p in zip(examples, plans, strict=True)]
        )
        if self.load_error:
            return outcomes
        left = [n for n, plan in enumerate(plans) if plan.outer and "error" not in outcomes[n]]
        apart = {n: r for n in left if (r := _reference(examples[n], plans[n], outcomes[n]))}
        values = await self._evaluate("", [*apart.values()]) if apart else []
        known = {n: v for n, v in zip(apart, values, strict=True) if "data" in v}
        for n, value in known.items():
            if examples[n].kind == "holds":
                outcomes[n] = {**value, "stdout": outcomes[n].get("stdout", "")}
            else:
                outcomes[n]["expected"] = value
        left = [n for n in left if n not in known]
        requests = [_request(examples[n]) for n in left]
        again = await self._evaluate(self._text, requests) if left else []
        outcomes = [dict(zip(left, again, strict=True)).get(n, o) for n, o in enumerate(outcomes)]
        done = [(e, o) for e, o in zip(examples, outcomes, strict=True) if "event" in o]
        if self._stall and (not required or all(holds(e, o) for e, o in done)):
            raise self._stall
        return outcomes

    async def _evaluate(self, text: str, requests: list[dict[str, Any]]) -> list[Outcome]:
        outcomes: list[Outcome] = [{"error": "was not run: no time was left"} for _ in requests]
        time_left, index = self._seconds * max(1.0, len(requests) / _USUAL), 0
        while index < len(requests) and time_left > 0:
            result, events = await self._run(text, requests, index, time_left)
            load = next((e for e in events if e["event"] == "loaded"), None)
            stderr = "" if isinstance(result, CheckNotRun) else result.stderr
            if load is None:
                if isinstance(result, CheckNotRun):
                    raise result
                load = {"error": _process_end(result, self._seconds)}
            if "error" in load:
                error = format_error(load)
                if text:
                    self.load_error = f"The code does not load: {shorten(error)}"
                self.absence = explain_absence(self._files, error, stderr)
                return [{"error": error}] * len(requests)
            for event in events:
                if event["event"] == "done":
                    outcomes[event["index"]] = event
                    error = str(event.get("error", ""))
                    event["absence"] = explain_absence(self._files, error, stderr)
                    self.absence = self.absence or event["absence"]
                    index = event["index"] + 1
            if isinstance(result, CheckNotRun):
                self._stall = result
                break
            time_left -= result.processor_seconds or result.seconds
            if index < len(requests):
                outcomes[index] = {"error": _process_end(result, self._seconds / _SHARE)}
                index += 1
        return outcomes

    async def _run(
        self, text: str, requests: list[dict[str, Any]], start: int, seconds: float
    ) -> tuple[ProcessResult | CheckNotRun, list[Outcome]]:
        token, report = secrets.token_hex(16), secrets.token_hex(16)
        request = {
            "token": token,
            "report": report,
            "seconds": self._seconds / _SHARE * SLACK,
            "examples": [{**r, "index": n} for n, r in enumerate(requests) if n >= start],
        }
        files: dict[str, str | bytes] = {
            **self._taken,
            "candidate.py": text,
            "request.json": json.dumps(request),
        }
        result: ProcessResult | CheckNotRun
        try:
            result = await run_python(
                load_program("run_examples"), seconds=seconds, files=files, report=report
            )
            self.protection_note = result.protection_note
        except CheckNotRun as error:
            result = error
        return result, _in_order(parse_events(result.report, token), range(start, len(requests)))


class _Plan(NamedTuple):
    """How an example is evaluated.

    Attributes:
        parts: what is evaluated together with the text, in this order.
        outer: what is evaluated without it: the expected value, or what must hold of the parts'
            values, which are `_PART` with their number there; empty for nothing.
        variables: the setup's variables that it uses; evaluating the parts may change them.
    """

    parts: tuple[str, ...]
    outer: str = ""
    variables: tuple[str, ...] = ()


_PART = "_part_"


def _plan(example: Example) -> _Plan:
    computed = bool(example.expected.strip()) and not is_literal(example.expected)
    try:
        bound = bound_names(parse(example.setup))
        if example.kind == "equals" and computed:
            names = {n.id for n in ast.walk(parse(example.expected)) if isinstance(n, ast.Name)}
            return _Plan((example.source,), example.expected, tuple(sorted(names & bound)))
        if example.kind == "holds" and (tree := _divisible(example.source)):
            splitter = _Splitter(bound)
            outer = splitter.visit(tree)
            names = {n.id for n in ast.walk(outer) if isinstance(n, ast.Name)} & bound
            if splitter.parts and not isinstance(outer, ast.Name):
                outside = f"bool({ast.unparse(outer)})"
                return _Plan(tuple(splitter.parts), outside, tuple(sorted(names)))
    except ERRORS:
        pass  # the program says what is wrong with it
    return _Plan((example.source,))


_LAZY = (ast.BoolOp, ast.IfExp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp)
_WHOLE = (*_LAZY, ast.GeneratorExp, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def _divisible(source: str) -> ast.expr | None:
    """Return a condition as a tree; None where a part of it may not be evaluated at all."""
    tree = try_parse_expression(source)
    whole = tree is None or any(isinstance(part, _WHOLE) for part in ast.walk(tree))
    return None if whole else tree


class _Splitter(ast.NodeTransformer):
    """Replace what a condition takes from the text by placeholders.

    Args:
        bound: the names that the setup binds; these, like Python's own, are not the text's.
    """

    def __init__(self, bound: set[str]) -> None:
        self._bound = bound
        self.parts: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        """Return a node with its parts replaced."""
        root = node
        while isinstance(root, ast.Call | ast.Attribute | ast.Subscript):
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name) and not (
            root.id in self._bound or hasattr(builtins, root.id)
        ):
            self.parts.append(ast.unparse(node))
            return ast.Name(f"{_PART}{len(self.parts) - 1}", ast.Load())
        return self.generic_visit(node)


def bound_names(tree: ast.AST) -> set[str]:
    """Return the names that code binds: variables, imports, functions and classes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return names


def _request(example: Example, plan: _Plan | None = None) -> dict[str, Any]:
    """Return an example as the program reads it.

    Args:
        example: the example.
        plan: how it is evaluated; None to compute and compare everything together with the text.
    """
    # A process that does not know the expected value cannot fake it.
    beside = plan is None and example.kind == "equals"
    return {
        "setup": example.setup,
        "parts": plan.parts if plan else [example.source],
        "details": bool(plan and plan.outer),
        "variables": plan.variables if plan else [],
        "holds": example.kind == "holds" and not (plan and plan.outer),
        "expected": example.expected if beside else None,
    }


def _reference(example: Example, plan: _Plan, outcome: Outcome) -> dict[str, Any]:
    """Return what a process without the text is asked; empty if it cannot answer."""
    sources = {}
    try:
        if example.kind == "holds":
            sources = {
                f"{_PART}{n}": result_source(outcome["values"][n]) for n in range(len(plan.parts))
            }
        for name in plan.variables:
            value = outcome["variables"][name]
            if value["type"] not in _CODE:  # what the setup imports or defines is there as well
                sources[name] = result_source(value)
    except (KeyError, TypeError, IndexError, AttributeError):  # the text wrote this report
        return {}
    if not all(sources.values()):
        return {}
    lines = [example.setup, *(f"{name} = {source}" for name, source in sources.items())]
    question = Example(source=plan.outer, expected="", kind="equals", setup="\n".join(lines))
    return _request(question, _Plan((plan.outer,)))


_CODE = ("module", "function", "type", "builtin_function_or_method")


def parse_events(report: str, token: str) -> list[Event]:
    """Return a program's own events; lines that the text may have written do not count."""
    events = []
    for line in report.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and event.get("token") == token:
            events.append(event)
    return events


def _in_order(events: list[Event], indices: range) -> list[Outcome]:
    """Return the events of loading, and of the examples in their order."""
    following = iter(indices)
    return [
        event
        for event in events
        if event.get("event") == "loaded"
        or (event.get("event") == "done" and event.get("index") == next(following, None))
    ]


def _process_end(result: ProcessResult, seconds: float) -> str:
    if result.timed_out or "Timeout (" in result.stderr:
        return f"gave no answer within {seconds:.3g} s"
    if result.limit:
        return f"was stopped: it {EXCESSES[result.limit]}"
    if result.exit_code is not None and result.exit_code < 0:
        return f"was killed by signal {-result.exit_code}"
    return f"ended the process with status {result.exit_code}"


def format_error(outcome: Outcome) -> str:
    """Return the error of an outcome, with the line of the text that raised it."""
    line = outcome.get("line")
    return str(outcome["error"]) + (f" (line {line})" if line else "")


def shorten(text: str, width: int = _WIDTH) -> str:
    """Return a text in one line of at most so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def holds(example: Example, outcome: Outcome) -> bool:
    """Return whether an outcome is what the example expects."""
    if example.kind == "doctest":
        return _output_matches(example.expected.strip(), outcome)
    if example.kind == "raises":
        return example.expected.strip().rpartition(".")[2] in _raised(outcome)
    if "error" in outcome:
        return False
    value = _decode(outcome)
    if is_literal(example.expected):
        return equal_values(value, read_literal(example.expected))
    expected = _decode(outcome.get("expected", {}))
    # The text's own `==` counts only where the task expects an object of the text's own.
    return outcome.get("equal") is True if expected is NO_VALUE else equal_values(value, expected)


def raised_type(outcome: Outcome) -> str:
    """Return the name of the exception that the code raised; empty where it raised none."""
    return next(iter(_raised(outcome)), "")


def _raised(outcome: Outcome) -> list[str]:
    """Return the names of the raised exception's type and its bases; none where nothing raised."""
    names = outcome.get("raised")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def result_source(outcome: Outcome) -> str:
    """Return the Python of a result that is a literal; empty for any other outcome.

    It is written from the data the program described, so that no `repr` of the code's has a say.
    """
    if "error" in outcome or "data" not in outcome:
        return ""
    try:
        source = _source(outcome["data"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""
    return source if is_literal(source) else ""


def group_outcomes(outcomes: Sequence[Outcome]) -> tuple[int, ...]:
    """Return for each outcome the place of the first like it: both are errors, or one value."""
    values = [_decode(outcome) for outcome in outcomes]
    places: list[int] = []
    for place, outcome in enumerate(outcomes):
        for first in dict.fromkeys(places):
            if _is_same(outcomes[first], outcome, values[first], values[place]):
                places.append(first)
                break
        else:
            places.append(place)
    return tuple(places)


def _is_same(one: Outcome, other: Outcome, value: Any, other_value: Any) -> bool:
    if "error" in one or "error" in other:
        return "error" in one and "error" in other
    if "data" in one and "data" in other:
        # Only the loop's own programs write these, so both are plain data.
        return equal_values(value, other_value)
    return (one.get("repr"), one.get("type")) == (other.get("repr"), other.get("type"))


def prompt_output(outcome: Outcome) -> str:
    """Return an outcome as at a prompt: what was printed, then the value unless it is None."""
    value = "" if outcome.get("none", True) else str(outcome.get("repr", ""))
    return str(outcome.get("stdout", "")) + value


def equal_values(a: Any, b: Any) -> bool:
    """Return whether two values are equal; floats may differ by 1e-9, and nan equals itself."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return _equal_numbers(a, b)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal_values, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal_values(a[key], b[key]) for key in a)
    return bool(a == b)


def _equal_numbers(a: float, b: float) -> bool:
    try:
        both_nan = math.isnan(a) and math.isnan(b)
        exact = isinstance(a, int) and isinstance(b, int)
        return a == b or both_nan or (not exact and math.isclose(a, b, abs_tol=_TOLERANCE))
    except OverflowError:  # an integer no float can hold
        return False


def _output_matches(expected: str, outcome: Outcome) -> bool:
    if "error" in outcome:
        last = expected.splitlines()[-1].strip()
        if expected.startswith(_TRACEBACK) and ":" not in last:
            return last.rpartition(".")[2] == str(outcome["error"]).partition(":")[0]
        kind, _, message = last.partition(":")
        error = f"{kind.rpartition('.')[2]}:{message}"
        return expected.startswith(_TRACEBACK) and _matches(error, str(outcome["error"]))
    if _matches(expected, prompt_output(outcome)):
        return True
    value = _decode(outcome)
    if outcome.get("stdout") or value is NO_VALUE or not is_literal(expected):
        return False
    # At a prompt True is not 1, though they are equal.
    literal = read_literal(expected)
    return isinstance(value, bool) is isinstance(literal, bool) and equal_values(value, literal)


def _matches(expected: str, output: str) -> bool:
    return _CHECKER.check_output(expected, output, _CHECKER_FLAGS)


def _decode(description: Mapping[str, Any]) -> Any:
    """Return the value the examples' program described, or `NO_VALUE` if it is not plain data."""
    try:
        return _decode_data(description["data"]) if "data" in description else NO_VALUE
    except (ValueError, TypeError, KeyError, RecursionError):
        return NO_VALUE


def _decode_data(data: Any) -> Any:
    kind, value = data
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](_decode_data(item) for item in value)
    if kind == "dict":
        return {_decode_data(k): _decode_data(v) for k, v in value}
    return _SCALARS[kind](value)


def _source(data: Any) -> str:
    """Return described data as Python; what has no literal, such as nan, comes out as none."""
    kind, value = data
    if kind == "dict":
        return f"{{{', '.join(f'{_source(k)}: {_source(v)}' for k, v in value)}}}"
    if kind not in _COLLECTIONS:
        return repr(_SCALARS[kind](value))
    items = [_source(item) for item in value]
    if kind == "tuple":
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if kind == "list":
        return f"[{', '.join(items)}]"
    if kind == "frozenset":
        return "frozenset(...)"  # which no literal stands for
    return f"{{{', '.join(sorted(items))}}}" if items else "set()"


_COLLECTIONS: dict[str, Callable[..., Any]] = {
    "list": list,
    "tuple": tuple,
    "set": frozenset,
    "frozenset": frozenset,
}
_SCALARS: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "complex": complex,
    "str": str,
    "bytes": bytes.fromhex,
    "constant": {"None": None, "Ellipsis": ...}.__getitem__,
}
