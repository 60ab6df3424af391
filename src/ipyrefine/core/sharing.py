"""Decide what a model's server is sent of what code computed from the notebook's variables.

At the level `structure` a prompt says how the code failed and where, in words that the server has
anyway: those of the code, of the task and of the variables' structure. Whatever is not known to be
one of them is left out, so that a check which words its result differently sends less, never more.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple, get_args

from ipyrefine.core.expectations import suite_evidence
from ipyrefine.core.model import (
    SUITE,
    Evidence,
    Figure,
    Finding,
    Output,
    Printed,
    TableValue,
    Task,
    TestResult,
    Value,
    on_conditions,
)
from ipyrefine.core.plain_code import without_data
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import NO_VALUE, is_literal, read_literal, try_parse_expression

Level = Literal["structure", "code", "outputs", "values"]
LEVELS: tuple[Level, ...] = get_args(Level)  # the strictest first

KEPT_HERE = (
    "Outputs stay here: of what your code computed from variables or files, the model's server is "
    "sent types, shapes and lines. %refine share shows what was kept."
)
LOOK_KEPT_HERE = "It was not run: what the variables hold stays on the user's machine."

_OUTPUT_CHARACTERS = 500  # of one output of checked code
_LINE = 2_000  # characters of a line that are looked at
_LINE_NUMBER = re.compile(r"\(line (\d{1,5})\)")
_FRAME = re.compile(r"line \d{1,5}(?:, in [\w<>]{1,80})?")
_SHAPE = r"[\d,]{1,13} rows × [\d,]{1,9} columns"
_EFFECT = re.compile(rf"(\w+): (?:new, )?{_SHAPE}(?: → {_SHAPE})?")
# What checks, Python and pandas say by themselves, whatever the data.
_PHRASES = r"""
It runs without an error|It runs on copies of|It ends without defining
It exited with status \d{1,3} before its end|It ended the process before its end
It did not end within|It was stopped, because it|seconds of processor time
used too much memory|printed without end|In the sandbox it (?:fails differently|does not fail)
cannot be called from a running event loop|This event loop is already running
The (?:code does|tests do) not load|expected\b|, got\b|, raised\b|, as expected|passed$|skipped,
\d{1,4} of \d{1,4} (?:stated examples hold|tests pass)
It gives what (?:the other draft gives|most of the \d{1,4} other drafts give)
on all of \d{1,4} further inputs|the drafts differ|where \d{1,4} of \d{1,4} drafts agree
\(\d{1,4} of \d{1,4} inputs differ\)|\d{1,4} drafts were compared, without a quorum
\bline \d{1,4}\b(?: of the tests)?|what the code to fix raised in the notebook
new columns|columns gone|types: |nulls added
could not convert string to|invalid literal for int\(\) with base 10
object has no attribute|object is not (?:callable|iterable|subscriptable)
object does not support item assignment|unsupported operand type\(s\) for
not supported between instances of|can only concatenate|is not defined
referenced before assignment|division by zero|list index out of range
missing \d required positional arguments?|got an unexpected keyword argument
takes \d positional arguments? but \d (?:was|were) given
(?:not enough|too many) values to unpack|unhashable type|has no len\(\)
The truth value of an? (?:Series|DataFrame|array|Index) is ambiguous
No module named|cannot import name|are in the \[(?:columns|index)\]|not in index|out of bounds
maximum recursion depth exceeded|does not match length of index
All arrays must be of the same length|cannot reindex on an axis with duplicate labels
Columns must be same length as key|No such file or directory|invalid syntax
[Uu]nknown format|does not match format
^Failed: DID NOT RAISE|^did not end\.
"""
_PARAMETERS = re.compile(r"^\[\S*\] ")  # of a test that has some, which may be values
# What pytest says below a comparison.
_BELOW = re.compile(
    r" (?:\+ {1,2}where|Differing|Omitting|At index|(?:Left|Right|Extra|Full) \w+) "
)
_FIXED = "|".join(_PHRASES.strip().splitlines())
_PIECE = re.compile(rf"(?P<fixed>{_FIXED})|\w+|[^\w\s]{{4,}}|\s{{2,}}|…")
_UNKNOWN = re.compile(r"""['"]?…(?:[^\w…]*…)*['"]?""")
_TYPES = re.compile(
    r"bool|bytes|complex|dict|float|frozenset|int|list|object|range|set|str|tuple|NoneType|"
    r"DataFrame|Series|Index|ndarray|Timestamp|Timedelta|NaT|[uU]?[iI]nt(?:8|16|32|64)|"
    r"[fF]loat(?:32|64)|datetime64|timedelta64|category|string|String|Utf8|Boolean|Categorical"
)


class Sharing(NamedTuple):
    """What the servers of a run are sent.

    Attributes:
        level: ``structure``, ``code`` (of cells above, without data), ``outputs`` (what code
            printed, returned and raised, too) or ``values`` (those of the variables, and cells as
            they are).
        servers: the addresses of those that this is about: not on this machine, or of any where
            the user set less than ``values``; the user's own model is named instead.
        asks: whether the user may still be asked to send more.
    """

    level: Level = "structure"
    servers: tuple[str, ...] = ()
    asks: bool = False


def is_computed(run: Run) -> bool:
    """Return whether a run holds anything that code computed from variables or files."""
    return any(m.computed for m in run.task.materials) or any(
        e.computed for i in run.iterations for e in i.evidence
    )


def withhold(run: Run, level: Level, names: str = "") -> Run:
    """Return a run as prompts may show it at a level.

    Below `values` the code of other cells is sent without its data, and at `structure` not at all;
    nor is what variables hold that nobody named. Below `outputs` everything that a prompt takes
    from computed evidence is replaced, too: details, outputs, the findings of its checks, the
    reasons of verdicts, answers to its questions.

    Args:
        run: the run.
        level: the level.
        names: further words that may be sent, such as those in the user's tests.
    """
    if level == "values":
        return run
    run = _without_values(run, level)
    if level == "outputs" or not is_computed(run):
        return run
    words = _Words(run, names)
    setup = run.setup.replace(task=words.task(run.task))
    return run.replace(setup=setup, iterations=tuple(map(words.iteration, run.iterations)))


def _without_values(run: Run, level: Level) -> Run:
    materials = tuple(
        one.replace(text=one.text.partition("\n")[0].rstrip(":"), computed=False)
        if one.kind == "variable" and one.computed
        else one.replace(text=_plain_code(run))
        if one.kind == "definitions"
        else one
        for one in run.task.materials
        if one.kind != "definitions" or (level != "structure" and _plain_code(run))
    )
    if materials == run.task.materials:
        return run
    task = run.task.replace(materials=materials)
    return run.replace(setup=run.setup.replace(task=task))


def _plain_code(run: Run) -> str:
    shown = "\n".join(m.text for m in run.task.materials if m.kind == "variable")
    code = "\n\n".join(m.text for m in run.task.materials if m.kind == "definitions")
    return without_data(code, shown)


def next_level(run: Run, level: Level) -> Level | None:
    """Return the level that would send more of a run than the present one; None where none would.

    One above it sends only the code of cells, as long as nothing was computed.
    """
    if level in ("structure", "code") and is_computed(run):
        return "outputs"
    return "code" if level == "structure" and _plain_code(run) else None


def withheld(run: Run, level: Level = "structure") -> str:
    """Return the text that prompts lack now at a level below `outputs`; empty for none.

    That is of the task, and of the latest text that something was computed for.
    """
    code = _plain_code(run) if level == "structure" else ""
    run = _without_values(run, level)
    words = _Words(run)
    parts = [code] if code else []
    parts += [m.text for m in run.task.materials if m.computed and words.text(m.text) != m.text]
    for iteration in reversed(run.iterations):
        computed = [e for e in iteration.evidence if e.computed]
        sent = {line for e in words.iteration(iteration).evidence for line in e.detail.splitlines()}
        lines = [line for e in computed for line in _full_lines(e) if line not in sent]
        if lines:
            return "\n".join([*parts, *lines])
    return "\n".join(parts)


def output_texts(outputs: Iterable[Output], limit: int = _OUTPUT_CHARACTERS) -> list[str]:
    """Return what code printed, returned and drew as texts, cut: a figure is one phrase."""
    texts = []
    for output in outputs:
        match output:
            case Printed():
                texts.append(f"It printed:\n{output.text[:limit]}")
            case Value():
                texts.append(f"The value of its last expression:\n{output.text[:limit]}")
            case TableValue():
                rows = [(output.index, *output.columns)]
                rows += [(n, *row) for n, row in zip(output.labels, output.rows, strict=True)]
                drawn = "\n".join(" | ".join(row) for row in rows)[:limit]
                texts.append(
                    f"The value of its last expression is {output.phrase}, which starts:\n{drawn}"
                )
            case Figure():
                texts.append(f"It drew {output.phrase}.")
    return texts


def _full_lines(evidence: Evidence) -> Iterator[str]:
    yield from filter(str.strip, evidence.detail.splitlines())
    for text in output_texts(evidence.outputs):
        yield from text.splitlines()


def _shape(output: Output) -> str:
    match output:
        case Printed():
            return "It printed text."
        case TableValue() | Figure():
            verb = "drew" if isinstance(output, Figure) else "ends with"
            return f"It {verb} {output.phrase}."
        case Value():
            value = read_literal(output.text) if is_literal(output.text) else NO_VALUE
            if value is NO_VALUE:
                return "It ends with an object."
            size = f" of length {len(value)}" if hasattr(value, "__len__") else ""
            return f"It ends with a value of type {type(value).__name__}{size}."
    raise TypeError(output)


def _compared(line: str) -> Iterator[str]:
    """Yield the types of the two values that a failed assertion compares, if it states them."""
    tree = try_parse_expression(_BELOW.split(line.partition("assert ")[2], maxsplit=1)[0])
    for side in (tree.left, tree.comparators[0]) if isinstance(tree, ast.Compare) else ():
        if (value := read_literal(ast.unparse(side))) is not NO_VALUE:
            yield _type_of(value)


def _type_of(value: object) -> str:
    """Return a value's type, with those of its items and its length: ``list[int] of length 2``."""
    name = type(value).__name__
    if not isinstance(value, list | tuple | dict | set | frozenset | str | bytes):
        return name
    parts = [] if isinstance(value, str | bytes) else [list(value)]
    parts += [list(value.values())] if isinstance(value, dict) else []
    held = [" | ".join(sorted({type(one).__name__ for one in part})) for part in parts if part]
    inner = f"[{', '.join(held)}]" if held else ""
    return f"{name}{inner} of length {len(value)}"


@lru_cache(maxsize=64)  # long texts stand in many prompts
def _words_of(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


class _Words:
    """The words that the server has already, and texts reduced to them.

    Args:
        run: the run.
        names: further words.
    """

    def __init__(self, run: Run, names: str = "") -> None:
        self._run, self._names = run, names
        self._checks = {e.name for i in run.iterations for e in i.evidence if e.computed}
        self._code = [i.text for i in run.iterations] + [run.setup.draft or ""]

    def _texts(self) -> Iterator[str]:
        run, task = self._run, self._run.task
        yield from (*self._code, self._names, task.text, *task.checklist, *task.categories)
        yield from run.setup.checks
        yield from (f"{one.name} {one.definition}" for one in task.criteria)
        yield from (one.text for one in task.materials if not one.computed)
        yield from (one.result for one in task.clarifications if not one.computed)
        yield from (one.code for one in run.expectations)
        for one in run.findings:
            if one.author != "check":
                yield from (one.problem, one.fix, one.demand, one.criterion)

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(exception_names()).union(*map(_words_of, self._texts()))

    def task(self, task: Task) -> Task:
        """Return a task with its computed materials, and results chosen from drafts', reduced."""
        answers = tuple(one.replace(result=self.line(one.result)) for one in task.clarifications)
        materials = tuple(
            one.replace(text=self.text(one.text)) if one.computed else one for one in task.materials
        )
        return task.replace(clarifications=answers, materials=materials)

    def iteration(self, iteration: Iteration) -> Iteration:
        """Return an iteration with everything that rests on computed evidence reduced."""
        theirs = [f for f in iteration.findings if f.check in self._checks]
        if not theirs and not any(e.computed for e in iteration.evidence):
            return iteration
        return iteration.replace(
            evidence=tuple(
                self._evidence(e, iteration.text) if e.computed else e for e in iteration.evidence
            ),
            findings=tuple(
                self._finding(f, iteration) if f in theirs else f for f in iteration.findings
            ),
        )

    def _evidence(self, evidence: Evidence, text: str) -> Evidence:
        if evidence.name == SUITE:  # a model wrote the tests, and knows them
            results = [one.replace(line=self._result(one)) for one in evidence.results]
            shown = suite_evidence(self._run.expectations, results).detail
        else:
            shown = self.text(evidence.detail)
        ran_on = on_conditions(evidence.conditions)
        lines = [f"It ran {ran_on}." if ran_on else "", shown, *map(_shape, evidence.outputs)]
        source = text.splitlines()
        if evidence.passed is False and (place := _LINE_NUMBER.search(evidence.detail)):
            number = int(place[1])
            if 0 < number <= len(source):
                lines.append(f"line {number}: {source[number - 1].strip()[:200]}")
        detail = "\n".join(line for line in lines if line)
        return evidence.replace(detail=detail, outputs=(), findings=(), results=())

    def _result(self, result: TestResult) -> str:
        """Return what a test shows: its exception, and the types that it compares."""
        line = _PARAMETERS.sub("", result.line)
        if not line.startswith("AssertionError"):
            return self.line(line)
        if len(types := list(_compared(line))) == 2:
            return f"AssertionError: {types[0]} compared with {types[1]}"
        value = read_literal(result.gives.result) if result.gives else NO_VALUE
        return "AssertionError" + ("" if value is NO_VALUE else f": it gives {_type_of(value)}")

    def _finding(self, finding: Finding, iteration: Iteration) -> Finding:
        if finding.check == SUITE:
            results = [r for e in iteration.evidence if e.name == SUITE for r in e.results]
            alone = TestResult(name=finding.criterion, passed=False, line=finding.problem)
            shown = (one for one in results if (one.name, one.line) == (alone.name, alone.line))
            return finding.replace(problem=self._result(next(shown, alone)))
        texts = {n: self.text(getattr(finding, n)) for n in ("problem", "fix", "criterion")}
        return finding.replace(**texts)

    def text(self, text: str) -> str:
        """Return a text with each of its lines reduced."""
        return "\n".join(map(self.line, text.splitlines()))

    def line(self, line: str) -> str:
        """Return a line with everything but the server's own words replaced by an ellipsis."""
        place, _, source = line.partition(": ")
        if _FRAME.fullmatch(place) and source and any(source in one for one in self._code):
            return line
        effect = _EFFECT.match(line)
        end = effect.end() if effect and effect[1] in self._known else 0
        used = set[str]()  # each word once: those that come again could be an alphabet

        def keep(piece: re.Match[str]) -> str:
            word = piece[0]
            if piece["fixed"] or _TYPES.fullmatch(word):
                return word
            if word in self._known and word not in used:
                used.add(word)
                return word
            return " " if word.isspace() else "…"

        return line[:end] + _UNKNOWN.sub("…", _PIECE.sub(keep, line[end:_LINE])).rstrip()


def exception_names() -> set[str]:
    """Return the names of the exceptions of Python and of the packages that are loaded here."""
    names, left = set[str](), list[type]([BaseException])
    while left:
        kind = left.pop()
        if kind.__module__ != "__main__":  # the notebook may have named one after a value
            names.add(kind.__name__)
        left += type.__subclasses__(kind)
    return names
