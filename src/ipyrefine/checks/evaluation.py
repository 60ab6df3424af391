"""Run examples in the sandbox and compare the outcomes, out of the tested code's reach."""

import ast
import doctest
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any, Literal

from ipyrefine.checks.sandbox import ProcessResult, load_program, run_python
from ipyrefine.core.model import Record

_SHARE = 4  # one example may take this fraction of the whole time
_WIDTH = 200
_TOLERANCE = 1e-9
_TRACEBACK = "Traceback (most recent call last):"
_NO_VALUE = object()
_CHECKER = doctest.OutputChecker()
_CHECKER_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1

Outcome = dict[str, Any]


class Example(Record):
    """One example.

    Attributes:
        source: what to evaluate.
        expected: for ``doctest`` the output at a prompt, for ``raises`` the exception's name, else
            the expression of the value.
        kind: ``doctest`` (the output is compared), ``equals`` (the value is), ``holds`` (the
            source is true), or ``raises`` (it raises that exception, or one derived from it).
        setup: statements to run before it, empty for none.
    """

    source: str
    expected: str
    kind: Literal["doctest", "equals", "holds", "raises"]
    setup: str = ""


class Evaluation:
    """Evaluates examples with a text.

    Args:
        text: the code.
        seconds: wall time for all examples together; one may take a quarter of it.
        files: files to put beside it, such as `ipyrefine.checks.variables.sandbox_files`.

    Attributes:
        load_error: why the text does not load, or empty.
        network_note: a note for people where the code could reach the network, or empty.
    """

    def __init__(self, text: str, *, seconds: float, files: Mapping[str, bytes]) -> None:
        self._text, self._seconds, self._files = text, seconds, dict(files)
        self.load_error = self.network_note = ""

    async def outcomes(self, examples: tuple[Example, ...]) -> list[Outcome]:
        """Return the outcome of each example.

        All run in one process; after one that ends the process, the rest run in another.
        """
        outcomes: list[Outcome] = [{"error": "was not run: no time was left"} for _ in examples]
        deadline = monotonic() + self._seconds
        index = 0
        while index < len(examples) and (time_left := deadline - monotonic()) > 0:
            result, events = await self._run(examples, index, time_left)
            load = next((e for e in events if e["event"] == "loaded"), None)
            if load is None or "error" in load:
                error = format_error(load) if load else _process_end(result, self._seconds)
                self.load_error = f"The code does not load: {shorten(error)}"
                return [{"error": error}] * len(examples)
            for event in events:
                if event["event"] == "done":
                    outcomes[event["index"]] = event
                    index = event["index"] + 1
            if index < len(examples):
                outcomes[index] = {"error": _process_end(result, self._seconds / _SHARE)}
                index += 1
        return outcomes

    async def _run(
        self, examples: tuple[Example, ...], start: int, seconds: float
    ) -> tuple[ProcessResult, list[Outcome]]:
        token, report = secrets.token_hex(16), secrets.token_hex(16)
        request = {
            "token": token,
            "report": report,
            "seconds": self._seconds / _SHARE,
            "examples": [_request(i, e) for i, e in enumerate(examples) if i >= start],
        }
        files: dict[str, str | bytes] = {
            **self._files,
            "candidate.py": self._text,
            "request.json": json.dumps(request),
        }
        result = await run_python(
            load_program("examples"), seconds=seconds, files=files, report=report
        )
        self.network_note = result.network_note
        return result, _parse_events(result.report, token, range(start, len(examples)))


def _request(index: int, example: Example) -> dict[str, Any]:
    # A process that does not know the expected value cannot fake it.
    secret = example.kind in ("doctest", "raises") or is_literal(example.expected)
    return {
        "index": index,
        "kind": example.kind,
        "setup": example.setup,
        "source": example.source,
        "expected": None if secret else example.expected,
    }


def _parse_events(report: str, token: str, indices: range) -> list[Outcome]:
    """Return the program's own events, in order; lines the text may have written do not count."""
    events: list[Outcome] = []
    following = iter(indices)
    for line in report.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(event, dict) or event.get("token") != token:
            continue
        kind = event.get("event")
        if kind == "loaded" or (kind == "done" and event.get("index") == next(following, None)):
            events.append(event)
    return events


def _process_end(result: ProcessResult, seconds: float) -> str:
    if result.timed_out or "Timeout (" in result.stderr:
        return f"gave no answer within {seconds:.3g} s"
    if result.limit == "output":
        return "was stopped: it printed without end"
    if result.limit == "processes":
        return "was stopped: it started too many processes"
    if result.exit_code is not None and result.exit_code < 0:
        return f"was killed by signal {-result.exit_code}"
    return f"ended the process with status {result.exit_code}"


def format_error(outcome: Outcome) -> str:
    """Return the error of an outcome, with the line of the text that raised it."""
    line = outcome.get("line")
    return str(outcome["error"]) + (f" (line {line})" if line else "")


def shorten(text: str) -> str:
    """Return a text in one line of at most 200 characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _WIDTH else flat[: _WIDTH - 1] + "…"


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
        return equal_values(value, _literal(example.expected))
    expected = _decode(outcome.get("expected", {}))
    # The text's own `==` counts only where the task expects an object of the text's own.
    return outcome.get("equal") is True if expected is _NO_VALUE else equal_values(value, expected)


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


def is_literal(source: str) -> bool:
    """Return whether a source is a Python literal, also of lists and the like."""
    return _literal(source) is not _NO_VALUE


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


def _literal(source: str) -> Any:
    """Return the value of a literal, or `_NO_VALUE` for anything else."""
    try:
        return ast.literal_eval(source.strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return _NO_VALUE


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
    if outcome.get("stdout") or value is _NO_VALUE or not is_literal(expected):
        return False
    # At a prompt True is not 1, though they are equal.
    literal = _literal(expected)
    return isinstance(value, bool) is isinstance(literal, bool) and equal_values(value, literal)


def _matches(expected: str, output: str) -> bool:
    return _CHECKER.check_output(expected, output, _CHECKER_FLAGS)


def _decode(description: Mapping[str, Any]) -> Any:
    """Return the value the examples' program described, or `_NO_VALUE` if it is no plain data."""
    try:
        return _decode_data(description["data"]) if "data" in description else _NO_VALUE
    except (ValueError, TypeError, KeyError, RecursionError):
        return _NO_VALUE


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
