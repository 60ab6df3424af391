"""Decide what a model's server is sent of what code computed from the notebook's variables.

At the level `structure` a prompt says how the code failed and where, in words that the server has
anyway: those of the code, of the task and of the variables' structure. Whatever is not known to be
one of them is left out, so that a check which words its result differently sends less, never more.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal, NamedTuple, get_args

from ipyrefine.core.decisions import Answer
from ipyrefine.core.model import Evidence, Figure, Finding, Output, Printed, TableValue, Task, Value
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.syntax import NO_VALUE, is_literal, read_literal

Level = Literal["structure", "outputs", "values"]
LEVELS: tuple[Level, ...] = get_args(Level)  # the strictest first

KEPT_HERE = (
    "Outputs stay here: of what your code computed from variables or files, the model's server is "
    "sent types, shapes and lines. %refine share shows what was kept."
)

_OUTPUT_CHARACTERS = 500  # of one output of checked code
_PIECES = 24  # words and phrases of one line
_LINE = 2_000  # characters of a line that are looked at
_GAP = "…"
_WORD = re.compile(r"\w+")
_LINE_NUMBER = re.compile(r"\(line (\d{1,5})\)")
_FRAME = re.compile(r"line \d{1,5}(?:, in [\w<>]{1,80})?")
_EFFECT = re.compile(
    r"(\w+): (?:new, )?[\d,]{1,13} rows × [\d,]{1,9} columns"
    r"(?: → [\d,]{1,13} rows × [\d,]{1,9} columns)?"
)
# Between two pieces that are kept; anything else there could be data, too.
_JOINT = re.compile(r" ?[.,:;=()'\"\[\]]{0,2} ?['\"(\[]?")

# What checks, Python and pandas say by themselves, whatever the data.
_FIXED = re.compile(
    r"It runs without an error|It runs on copies of|It ends without defining|"
    r"It exited with status \d{1,3} before its end|It ended the process before its end|"
    r"It did not end within|It was stopped, because it|seconds of processor time|"
    r"used too much memory|printed without end|beside the main thread|"
    r"In the sandbox it fails differently|The code does not load|The tests do not load|"
    r": expected\b|, got\b|, raised\b|, as expected|: passed$|: skipped, |"
    r"\d{1,4} of \d{1,4} (?:stated examples hold|tests pass)|"
    r"It gives what (?:the other draft gives|most of the \d{1,4} other drafts give)|"
    r"on all of \d{1,4} further inputs|: the drafts differ: |where \d{1,4} of \d{1,4} drafts agree|"
    r"\(\d{1,4} of \d{1,4} inputs differ\)|\d{1,4} drafts were compared, without a quorum|"
    r"\(line \d{1,4}(?: of the tests)?\)|^line \d{1,4}: |"
    r"^\[what the code to fix raised in the notebook\]$|"
    r"new columns: |columns gone: |types: |nulls added: |"
    r"could not convert string to|invalid literal for int\(\) with base 10|"
    r"object has no attribute|object is not (?:callable|iterable|subscriptable)|"
    r"object does not support item assignment|unsupported operand type\(s\) for|"
    r"not supported between instances of|can only concatenate|is not defined|"
    r"referenced before assignment|division by zero|list index out of range|"
    r"missing \d required positional arguments?|got an unexpected keyword argument|"
    r"takes \d positional arguments? but \d (?:was|were) given|"
    r"(?:not enough|too many) values to unpack|unhashable type|has no len\(\)|"
    r"The truth value of an? (?:Series|DataFrame|array|Index) is ambiguous|"
    r"No module named|cannot import name|"
    r"are in the \[(?:columns|index)\]|not in index|out of bounds|"
    r"maximum recursion depth exceeded|does not match length of index|"
    r"All arrays must be of the same length|cannot reindex on an axis with duplicate labels|"
    r"Columns must be same length as key|No such file or directory|invalid syntax|"
    r"[Uu]nknown format|does not match format",
    re.MULTILINE,
)
_TYPES = re.compile(
    r"bool|bytes|complex|dict|float|frozenset|int|list|object|range|set|str|tuple|NoneType|"
    r"DataFrame|Series|Index|ndarray|Timestamp|Timedelta|NaT|[uU]?[iI]nt(?:8|16|32|64)|"
    r"[fF]loat(?:32|64)|datetime64|timedelta64|category|string|String|Utf8|Boolean|Categorical"
)


class Sharing(NamedTuple):
    """What the servers of a run are sent.

    Attributes:
        level: ``structure``, ``outputs`` (what code printed, returned and raised) or ``values``
            (those of the variables that the cell uses, too).
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


def withhold(run: Run, names: str = "") -> Run:
    """Return a run as prompts may show it at the level `structure`.

    Everything that a prompt takes from computed evidence is replaced: details, outputs, the
    findings of its checks, the reasons of verdicts, answers to its questions.

    Args:
        run: the run.
        names: further words that may be sent, such as those in the user's tests.
    """
    if not is_computed(run):
        return run
    words = _Words(run, names)
    return run.model_copy(
        update={
            "setup": run.setup.model_copy(update={"task": words.task(run.task)}),
            "iterations": tuple(map(words.iteration, run.iterations)),
        }
    )


def withheld(run: Run) -> str:
    """Return the text that prompts lack now at the level `structure`; empty for none.

    That is of the task, and of the latest text that something was computed for.
    """
    words = _Words(run)
    parts = [m.text for m in run.task.materials if m.computed and words.text(m.text) != m.text]
    for iteration in reversed(run.iterations):
        computed = [e for e in iteration.evidence if e.computed]
        lines = [line for e in computed for line in _full_lines(e) if words.line(line) != line]
        if lines:
            return "\n".join([*parts, *lines])
    return "\n".join(parts)


def output_texts(outputs: Iterable[Output]) -> list[str]:
    """Return what code printed, returned and drew as texts, cut: a figure is one phrase."""
    texts = []
    for output in outputs:
        match output:
            case Printed():
                texts.append(f"It printed:\n{output.text[:_OUTPUT_CHARACTERS]}")
            case Value():
                texts.append(
                    f"The value of its last expression:\n{output.text[:_OUTPUT_CHARACTERS]}"
                )
            case TableValue():
                rows = [(output.index, *output.columns)]
                rows += [(n, *row) for n, row in zip(output.labels, output.rows, strict=True)]
                drawn = "\n".join(" | ".join(row) for row in rows)[:_OUTPUT_CHARACTERS]
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
    """Return what an output is, without what it holds."""
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

    @cached_property
    def _texts(self) -> list[str]:
        run, task = self._run, self._run.task
        texts = [
            *self._code,
            self._names,
            task.text,
            *task.checklist,
            *task.categories,
            *run.setup.checks,
        ]
        texts += [f"{one.name} {one.definition}" for one in task.criteria]
        texts += [one.text for one in task.materials if not one.computed]
        texts += [one.result for one in run.decisions if isinstance(one, Answer)]  # as typed
        texts += [
            f"{f.problem} {f.fix} {f.demand} {f.criterion}"
            for f in run.findings
            if f.author != "check"
        ]
        texts += [one.code for one in run.expectations]
        return texts

    @cached_property
    def _text(self) -> str:
        return "\n".join(map(_squeeze, self._texts))

    @cached_property
    def _known(self) -> frozenset[str]:
        found = {word for text in self._texts for word in _WORD.findall(text)}
        return frozenset(found | exception_names())

    def _knows(self, word: str) -> bool:
        return word in self._known or _TYPES.fullmatch(word) is not None

    def task(self, task: Task) -> Task:
        """Return a task with its computed materials, and results chosen from drafts', reduced."""
        answers = tuple(
            one.model_copy(update={"result": self.line(one.result)}) for one in task.clarifications
        )
        materials = tuple(
            one.model_copy(update={"text": self.text(one.text)}) if one.computed else one
            for one in task.materials
        )
        return task.model_copy(update={"clarifications": answers, "materials": materials})

    def iteration(self, iteration: Iteration) -> Iteration:
        """Return an iteration with everything that rests on computed evidence reduced."""
        theirs = [f for f in iteration.findings if f.check in self._checks]
        if not theirs and not any(e.computed for e in iteration.evidence):
            return iteration
        return iteration.model_copy(
            update={
                "evidence": tuple(
                    self._evidence(e, iteration.text) if e.computed else e
                    for e in iteration.evidence
                ),
                "findings": tuple(
                    self._finding(f) if f in theirs else f for f in iteration.findings
                ),
            }
        )

    def _evidence(self, evidence: Evidence, text: str) -> Evidence:
        lines = [self.text(evidence.detail), *map(_shape, evidence.outputs)]
        source = text.splitlines()
        if evidence.passed is False and (place := _LINE_NUMBER.search(evidence.detail)):
            number = int(place[1])
            if 0 < number <= len(source):
                lines.append(f"line {number}: {source[number - 1].strip()[:200]}")
        detail = "\n".join(line for line in lines if line)
        return evidence.model_copy(
            update={"detail": detail, "outputs": (), "findings": (), "results": ()}
        )

    def _finding(self, finding: Finding) -> Finding:
        names = ("problem", "fix", "criterion")
        return finding.model_copy(update={n: self.text(getattr(finding, n)) for n in names})

    def text(self, text: str) -> str:
        """Return a text with each of its lines reduced."""
        return "\n".join(map(self.line, text.splitlines()))

    def line(self, line: str) -> str:
        """Return a line with everything but the server's own words replaced by an ellipsis."""
        place, _, source = line.partition(": ")
        if _FRAME.fullmatch(place) and source and any(source in one for one in self._code):
            return line
        if (effect := _EFFECT.match(line)) and effect[1] in self._known:
            return effect[0] + self._reduce(line[effect.end() :])
        return self._reduce(line)

    def _reduce(self, line: str) -> str:
        line = line[:_LINE]
        kept, end = "", 0
        for start, stop in sorted(self._pieces(line))[:_PIECES]:
            kept += _bridge(line[end:start]) + line[start:stop]
            end = stop
        return (kept + _bridge(line[end:])).rstrip()

    def _pieces(self, line: str) -> Iterator[tuple[int, int]]:
        """Yield the spans that may be sent: fixed phrases, and words in the order of a known text.

        Each is sent once, as pieces that come again could be the letters of an alphabet.
        """
        seen = set[str]()
        fixed = [match.span() for match in _FIXED.finditer(line)]
        yield from fixed
        words = [
            match
            for match in _WORD.finditer(line)
            if not any(start < match.end() and match.start() < stop for start, stop in fixed)
        ]
        while words:
            first, *words = words
            if not self._knows(first[0]):
                continue
            stop = first.end()
            while words and self._knows(words[0][0]):
                if _squeeze(line[first.start() : words[0].end()]) not in self._text:
                    break
                stop = words.pop(0).end()
            if (piece := line[first.start() : stop]) not in seen:
                seen.add(piece)
                yield first.start(), stop


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _bridge(gap: str) -> str:
    """Return what stands between two pieces: at most a joint, else an ellipsis."""
    if _JOINT.fullmatch(gap):
        return gap
    before = ": " if gap[:1] == ":" else " " if gap[:1].isspace() else ""
    return f"{before}{_GAP}{' ' if gap[-1:].isspace() else ''}"


def exception_names() -> set[str]:
    """Return the names of the exceptions of Python and of the packages that are loaded here."""
    names, left = set[str](), list[type]([BaseException])
    while left:
        kind = left.pop()
        if kind.__module__ != "__main__":  # the notebook may have named one after a value
            names.add(kind.__name__)
        left += type.__subclasses__(kind)
    return names
