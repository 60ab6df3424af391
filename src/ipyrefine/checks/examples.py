"""The check ``examples``: what the task states as examples holds for the text."""

import ast
import doctest
import json
import re
import secrets
import textwrap

from ipyrefine.checks.python import failure
from ipyrefine.checks.sandbox import run_python
from ipyrefine.loop.records import Evidence, Record, Task

MOST = 40
_LINE = re.compile(
    r"^[\s\-*`]*(?:assert\s+)?(?P<left>.+?)\s*(?:==|->|=>|returns|should return)\s*"
    r"(?P<right>.+?)[\s`,.;]*$"
)

_HARNESS = """\
import ast as _ast, json as _json, math as _math, sys as _sys
_open, _repr, _str, _dumps, _eval, _exec = open, repr, str, _json.dumps, eval, exec
_type, _compile, _literal = type, compile, _ast.literal_eval
_float, _abs, _max, _isinstance, _BaseException = float, abs, max, isinstance, BaseException
_report = _open(_sys.argv.pop(), "w", encoding="utf-8")
def _same(got, want):
    if _repr(got) == want.strip():
        return True
    try:
        a, b = _literal(_repr(got)), _literal(want.strip())
    except _BaseException:
        return False
    if _isinstance(a, _float) or _isinstance(b, _float):
        try:
            return _abs(a - b) <= 1e-9 * _max(1.0, _abs(a), _abs(b))
        except _BaseException:
            return False
    return _type(a) is _type(b) and a == b
def _say(**fields):
    _report.write(_dumps({"nonce": NONCE, **fields}) + "\\n")
    _report.flush()
_space = {"__name__": "candidate"}
try:
    _exec(_compile(TEXT, "text", "exec"), _space)
except _BaseException as error:
    _say(load=_type(error).__name__ + ": " + _str(error)[:300])
    raise
for _i, (_setup, _source, _want) in enumerate(EXAMPLES):
    try:
        if _setup:
            _exec(_compile(_setup, "example", "exec"), _space)
        _got = _eval(_compile(_source, "example", "eval"), _space)
        _say(index=_i, ok=_same(_got, _want), got=_repr(_got)[:300])
    except _BaseException as error:
        _say(index=_i, ok=False, got=_type(error).__name__ + ": " + _str(error)[:300])
"""


class Example(Record):
    """One stated example.

    Attributes:
        setup: statements that come before it, empty for none.
        source: the expression.
        expected: its value, as Python writes it.
    """

    setup: str = ""
    source: str
    expected: str


def extract(task: str) -> tuple[Example, ...]:
    """Find the examples a task states.

    Doctests (``>>>`` with the expected value below) and lines such as ``f(1) == 2``,
    ``assert f(1) == 2``, ``f(1) -> 2`` or ``f(1) returns 2``.
    """
    try:
        sessions = doctest.DocTestParser().get_examples(textwrap.dedent(task))
    except ValueError:  # a doctest with broken indentation
        sessions = []
    found, setup = [], ""
    for session in sessions:
        if not session.want.strip():
            setup += session.source
        elif _is_expression(session.source):
            found.append(
                Example(setup=setup, source=session.source.strip(), expected=session.want.strip())
            )
            setup = ""
    inside_doctests = {line for s in sessions for line in s.source.splitlines()}
    for line in task.splitlines():
        if ">>>" not in line and line.strip() not in inside_doctests:
            found.extend(_stated(line))
    return tuple(found[:MOST])


class Examples:
    """The examples that the task states hold."""

    name = "examples"

    def __init__(self, *, seconds: float = 10.0) -> None:
        self._seconds = seconds

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Run the text with every stated example in a subprocess."""
        examples = extract(task.text)
        if not examples:
            return Evidence(name=self.name, passed=None, detail="The task states no examples.")
        nonce = secrets.token_hex(8)
        program = (
            f"TEXT = {text!r}\nNONCE = {nonce!r}\n"
            f"EXAMPLES = {[(e.setup, e.source, e.expected) for e in examples]!r}\n{_HARNESS}"
        )
        ran = await run_python(program, seconds=self._seconds)
        results = _results(ran.report, nonce)
        lines = [
            line
            for index, example in enumerate(examples)
            if (line := _complaint(example, results.get(index), failure(ran)))
        ]
        if loading := results.get(-1):
            lines = [f"The code does not load: {loading['load']}"]
        good = 0 if loading else len(examples) - len(lines)
        detail = "\n".join([*lines[:10], f"{good} of {len(examples)} stated examples hold."])
        return Evidence(
            name=self.name,
            passed=good == len(examples),
            score=good / len(examples),
            detail=detail,
            seconds=ran.seconds,
        )


def _results(report: str, nonce: str) -> dict[int, dict[str, object]]:
    """Read the harness's own lines; others, that the code may have written, do not count."""
    results: dict[int, dict[str, object]] = {}
    for line in report.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict) and value.get("nonce") == nonce:
            results.setdefault(int(value.get("index", -1)), value)
    return results


def _complaint(example: Example, result: dict[str, object] | None, otherwise: str) -> str:
    if result is None:
        return f"{example.source}: expected {example.expected}, got no result. {otherwise}"
    if result["ok"]:
        return ""
    return f"{example.source}: expected {example.expected}, got {result['got']}"


def _stated(line: str) -> list[Example]:
    """Read examples from a line of prose; several may stand in it, parted by commas."""
    parts = re.split(r"(?<=[\w\])}'\"]),\s+(?=[A-Za-z_]\w*\()|\band\b|;|\.\s", line)
    found = []
    for part in parts:
        match = _LINE.match(part.rpartition(": ")[2])
        if match and _has_call(match["left"]) and _is_value(match["right"]):
            found.append(Example(source=match["left"], expected=_normal(match["right"])))
    return found


def _is_expression(source: str) -> bool:
    try:
        ast.parse(source.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def _has_call(source: str) -> bool:
    if not _is_expression(source):
        return False
    tree = ast.parse(source.strip(), mode="eval")
    return any(isinstance(node, ast.Call) for node in ast.walk(tree))


def _is_value(source: str) -> bool:
    try:
        ast.literal_eval(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def _normal(source: str) -> str:
    return repr(ast.literal_eval(source))
