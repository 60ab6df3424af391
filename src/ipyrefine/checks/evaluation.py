"""Run examples in the sandbox, and compare what came out, as data, outside of it.

The check ``examples`` does so with those that a task states; `core.stated` reads them.
"""

import doctest
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ipyrefine.checks.functions import not_python
from ipyrefine.checks.outputs import read_fault
from ipyrefine.checks.refusals import explain_paths, explain_refusal
from ipyrefine.checks.undefined import NameReader
from ipyrefine.core.model import Condition, Fault, Shape, Task, cut, on_conditions, one_line
from ipyrefine.core.sharing import shape_of
from ipyrefine.core.stated import Example, own_examples, read_examples, stated_examples
from ipyrefine.core.syntax import (
    NO_VALUE,
    equal_values,
    is_literal,
    read_literal,
    try_parse_expression,
)
from ipyrefine.core.table import Noun, Result
from ipyrefine.errors import CheckNotRun
from ipyrefine.kernel.magics import python_part
from ipyrefine.kernel.masking import run_without_secrets
from ipyrefine.kernel.variables import Copies, wants_rows
from ipyrefine.sandbox.sandbox import EXCESSES, Event, FileContent, ProcessResult

_SHARE = 4  # one example may take this fraction of the whole time
_USUAL = 60  # examples that the whole time is for; more of them get more
_WIDTH = 200
_MAX_LISTED = 20  # examples in a detail
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # it tells nobody anything, and differs each time
_TRACEBACK = "Traceback (most recent call last):"
_CHECKER = doctest.OutputChecker()
_CHECKER_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1

Outcome = dict[str, Any]
_TALLY: dict[Noun, str] = {
    "example": "{} of {} stated examples hold.",
    "result": "{} of {} results that the user expects hold.",
}


class Evaluation:
    """Evaluates examples with a text.

    Args:
        text: the code.
        seconds: processor time for up to 60 examples together; one may take a quarter of it.
        copies: copies of the notebook's variables for it.
        waits: seconds that an example may wait; 0 for any time.

    Attributes:
        load_error: why the text does not load, or empty.
        absence: why an example was not run that needs a variable, or empty.
        protection_note: a note for people on what the sandbox did not protect, or empty.
        computed: whether the outcomes may come from the user's variables or files.
    """

    def __init__(self, text: str, *, seconds: float, copies: Copies, waits: float = 0.0) -> None:
        self._waits = waits
        self._text, self._seconds, self._copies = python_part(text).code, seconds, copies
        self.load_error = self.protection_note = self.absence = ""
        self.computed = self._wants_rows = False

    async def outcomes(
        self, examples: tuple[Example, ...], *, required: bool = False
    ) -> list[Outcome]:
        """Return the outcome of each example; with `required`, one that is missed is enough.

        All run in one process; after one that ends the process, the rest run in another.

        Raises:
            CheckNotRun: one waits, or the machine is busy, so that the results say nothing.
        """
        sources = [self._text, *(f"{one.code}\n{one.raises or one.gives}" for one in examples)]
        self.computed = self._copies.may_compute(*sources)
        files = {**await self._copies.files(*sources), "candidate.py": self._text}
        late = {"error": "was not run: no time was left", "absence": "no time was left"}
        outcomes = [late] * len(examples)
        time_left, start = self._seconds * max(1.0, len(examples) / _USUAL), 0
        while start < len(examples) and time_left > 0:
            result, events = await self._run(examples, start, time_left, files)
            stderr = result.stderr if isinstance(result, ProcessResult) else ""
            load = next((e for e in events if e.get("event") == "loaded"), None)
            if load is None:
                if isinstance(result, CheckNotRun):
                    raise result
                load = {"error": _process_end(result, self._seconds)}
            if "error" in load:
                error = _format_error(load)
                self.load_error = f"The code does not load: {shorten(error)}"
                self.absence = self._copies.explain_absence(error, stderr)
                self.absence = self.absence or explain_refusal(load.get("tried"), error, *sources)
                self._wants_rows = wants_rows(error)
                return [{"error": error}] * len(examples)
            for event in events:
                if event.get("event") == "done" and event.get("index") == start:
                    error = str(event.get("error", ""))
                    absence = self._copies.explain_absence(error, stderr)
                    if not absence and not holds(examples[start], event):
                        absence = explain_refusal(event.get("tried"), error, *sources)
                    absence = absence or explain_paths(event.get("tried"))
                    outcomes[start] = {**event, "absence": absence}
                    self.absence = self.absence or absence
                    start += 1
            if isinstance(result, CheckNotRun):
                ran = zip(examples[:start], outcomes, strict=False)
                if not required or all(holds(e, o) for e, o in ran):
                    raise result
                break
            time_left -= result.processor_seconds or result.seconds
            if start < len(examples):
                outcomes[start] = {"error": _process_end(result, self._seconds / _SHARE)}
                start += 1
        return outcomes

    async def results(
        self, examples: tuple[Example, ...], *, required: bool = False
    ) -> list[Result]:
        """Return what the text gives on each example, as `outcomes` does."""
        return list(map(self._result, examples, await self.outcomes(examples, required=required)))

    def _result(self, example: Example, outcome: Outcome) -> Result:
        expected = filter(None, [example.raises or example.gives])
        sources = () if self.load_error else (example.code, *expected)
        needs = self._wants_rows or not self.load_error
        held = holds(example, outcome)
        lack = self._copies.conditions(self._text, *sources) if needs else ()
        absence = outcome.get("absence", self.load_error and self.absence)
        gives, wants = read_gives(outcome), example.gives.strip()
        plain = gives and (example.raises or is_literal(wants))
        return Result(
            call=example.call,
            setup=example.setup,
            gives=gives,
            rivals=(wants,) if plain else (),
            steps=tuple(outcome.get("steps", ())),
            passed=None if lack else held or (None if absence else False),
            not_run=bool(absence),
            # Where nothing is expected, an exception's message.
            shows=format_example(example, outcome) if wants else str(outcome.get("error", "")),
            conditions=lack,
            broken="error" in outcome,
            faults=() if held else (_fault(example, outcome),),
        )

    async def _run(
        self,
        examples: Sequence[Example],
        start: int,
        seconds: float,
        files: Mapping[str, FileContent],
    ) -> tuple[ProcessResult | CheckNotRun, Sequence[Event]]:
        asked = [{**_request(e), "index": n} for n, e in enumerate(examples)][start:]
        each = self._seconds / _SHARE
        try:
            result, events = await run_without_secrets(
                "examples", files, seconds=seconds, each=each, examples=asked, waits=self._waits
            )
        except CheckNotRun as error:
            return error, error.events
        self.protection_note = result.protection_note
        return result, events


class Examples(NameReader):
    """The examples that the task states hold.

    Where no other check runs the text, it also fails one that reads names which nothing defines.

    Args:
        seconds: processor time for all examples together; one may take a quarter of it.
        decisive: whether a pass settles the verdict.
        copies: copies of the notebook's variables for it.
    """

    def __init__(
        self,
        *,
        seconds: float = 10.0,
        decisive: bool = True,
        copies: Copies | None = None,
    ) -> None:
        super().__init__(copies)
        self.name = "examples"
        self._seconds, self._decisive, self._given = seconds, decisive, None

    async def __call__(self, text: str, task: Task) -> Result:
        """Run the text and every example in the sandbox."""
        return await self.or_undefined(await self._try(text, task), text, task)

    async def _try(self, text: str, task: Task) -> Result:
        if task.is_foreign:
            return not_python(self.name, task)
        examples, count = stated_examples(task), len(read_examples(task.text))
        own = own_examples(python_part(text).code) if await self._copies.may_run() else ()
        evaluation = Evaluation(text, seconds=self._seconds, copies=self._copies)
        every = (*examples, *own)
        results = await evaluation.results(every, required=True) if every else []
        # Of its own examples those count that give something else.
        given = [one for one in results[len(examples) :] if one.failed and not one.broken]
        results = results[: len(examples)] + given
        if not results:
            return Result(name=self.name, shows="The task states no examples.", basis="examples")
        # Results on first rows say nothing.
        stated, expected = (
            [one for one in some if not one.conditions]
            for some in (results[:count] + given, results[count : len(examples)])
        )
        ran = [*stated, *expected]
        # First those that are missed.
        ranked = sorted([*expected, *stated], key=lambda one: one.passed is True)
        lines = [one.shows for one in ranked]
        if len(lines) > _MAX_LISTED:
            lines[_MAX_LISTED:] = [f"… and {len(lines) - _MAX_LISTED} more."]
        lines = [evaluation.load_error] if evaluation.load_error else lines
        of_noun: dict[Noun, list[Result]] = {"example": stated, "result": expected}
        tallies = {
            noun: (sum(bool(one.passed) for one in some), len(some))
            for noun, some in of_noun.items()
            if some
        }
        told = [_TALLY[noun].format(*tally) for noun, tally in tallies.items()]
        lines += [one.replace("stated ", "") for one in told] if given else told
        lines += [evaluation.protection_note]
        missed = [one for one in ran if not one.passed]
        absence = evaluation.absence if all(one.not_run for one in missed) else ""
        if partial := tuple(dict.fromkeys(c for one in results for c in one.conditions)):
            some = f"{len(results) - len(ran)} of {len(results)} examples"
            lines.insert(-1 if missed else 0, not_tried(some, partial))
            absence = absence or ("" if missed else "\n".join(lines).rstrip())
        return Result(
            name=self.name,
            passed=None if absence else not missed,
            not_run=bool(absence),
            score=None if absence else (len(ran) - len(missed)) / len(ran),
            shows=absence or "\n".join(lines).rstrip(),
            tallies={} if absence else tallies,
            # One result alone may be the one that is right; of examples the task states all it has.
            decisive=self._decisive and not absence and (count > 0 or task.confirmed),
            basis="confirmed" if task.confirmed else "examples",
            rows=tuple(
                one.on_input(source="example") for one in stated if one.rivals and not one.passed
            ),
            computed=evaluation.computed,
            conditions=partial,
            faults=tuple(fault for one in ranked for fault in one.faults),
        )


def _fault(example: Example, outcome: Outcome) -> Fault:
    """Return how a text misses an example, as data."""
    fault = read_fault(outcome, example.call.strip())
    if "error" in outcome or example.kind == "holds":
        return fault
    stated = read_literal(example.gives.strip())
    expected = _read_shape(outcome.get("expected")) if stated is NO_VALUE else shape_of(stated)
    sides = tuple(filter(None, (_read_shape(outcome), expected)))
    return fault.replace(compared=sides if len(sides) == 2 else ())


def _read_shape(description: Any) -> Shape | None:
    """Return the type and size of a value that the program described."""
    described = description.get("shape") if isinstance(description, dict) else None
    try:
        return Shape.model_validate(described)
    except ValidationError:
        return None


def not_tried(what: str, conditions: Sequence[Condition]) -> str:
    """Return the sentence on tests or examples that ran without all rows."""
    return f"Not tried on all rows: {what} ran {on_conditions(conditions)}."


def format_example(example: Example, outcome: Outcome) -> str:
    """Return an example's expectation and its outcome, in a sentence."""
    source = shorten(example.call)
    claim = f"{source}: expected {shorten(example.raises or example.gives)}"
    if example.raises and holds(example, outcome):
        return f"{source}: raised {shorten(_format_error(outcome))}, as expected"
    if "error" in outcome:
        return f"{claim}, {format_result(outcome)}"
    result = _prompt_output(outcome) if example.kind == "doctest" else outcome.get("repr", "")
    text = shorten(str(result).strip()) or "nothing"
    if holds(example, outcome):
        return f"{source}: {text}, as expected"
    if example.kind == "doctest" and _only_printed(example, outcome):
        return f"{claim}, printed {text} and returned nothing"
    if text == shorten(example.gives):
        # Its repr claims to be what it is not.
        text += f" as the repr of another value, of type {shorten(str(outcome.get('type')))}"
    return f"{claim}, got {text}"


def format_result(outcome: Outcome) -> str:
    """Return an outcome in words: ``gives 2``, ``prints 1``, ``raised KeyError: 0 (line 3)``."""
    if "error" in outcome:
        # The program reports an exception; the other errors already are the end of a sentence.
        return f"{'raised ' * ('event' in outcome)}{shorten(_format_error(outcome))}"
    if _prints(outcome):
        return f"prints {shorten(repr(outcome['stdout']))}"
    return f"gives {shorten(str(outcome.get('repr', '')))}"


def _request(example: Example) -> dict[str, Any]:
    """Return an example as the program reads it; a literal it expects is compared outside."""
    computed = example.kind == "equals" and not (example.raises or is_literal(example.gives))
    return {
        "setup": example.setup,
        "source": example.call,
        "holds": example.kind == "holds",
        "expected": example.gives if computed and example.gives else None,
    }


def _process_end(result: ProcessResult, seconds: float) -> str:
    if result.timed_out or "Timeout (" in result.stderr:
        return f"gave no answer within {seconds:.3g} s"
    if result.limit:
        return f"was stopped: it {EXCESSES[result.limit]}"
    if result.exit_code is not None and result.exit_code < 0:
        return f"was killed by signal {-result.exit_code}"
    return f"ended the process with status {result.exit_code}"


def _format_error(outcome: Outcome) -> str:
    line = outcome.get("line")
    return str(outcome["error"]) + (f" (line {line})" if line else "")


def shorten(text: str, width: int = _WIDTH) -> str:
    """Return a text in one line, cut to a width, without addresses in memory."""
    return cut(_ADDRESS.sub("", one_line(text)), width)


def holds(example: Example, outcome: Outcome) -> bool:
    """Return True if an outcome is what the example expects."""
    if example.kind == "doctest":
        return _output_matches(example, outcome)
    if example.raises:
        return example.raises.strip().rpartition(".")[2] in _raised(outcome)
    if "error" in outcome:
        return False
    expected = read_literal(example.gives)
    if expected is NO_VALUE:
        expected = _decode(outcome.get("expected"))
    # The text's own `==` counts only where the task expects an object of the text's own.
    own = expected is NO_VALUE
    return outcome.get("equal") is True if own else equal_values(_decode(outcome), expected)


def raised_type(outcome: Outcome) -> str:
    """Return the name of the exception that the code raised; empty where it raised none."""
    return next(iter(_raised(outcome)), "")


def _raised(outcome: Outcome) -> list[str]:
    names = outcome.get("raised")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def read_gives(outcome: Outcome) -> str:
    """Return an outcome's value as a literal, or its exception; nothing for anything else.

    Code that prints something and returns None gives what it prints, which is neither.
    """
    if raised := raised_type(outcome):
        return f"raises {raised}" if raised.isidentifier() else ""
    if "error" in outcome or _prints(outcome) or _decode(outcome) is NO_VALUE:
        return ""
    return str(outcome["data"])


def _prints(outcome: Outcome) -> bool:
    return bool(outcome.get("none") and outcome.get("stdout"))


def group_outcomes(outcomes: Sequence[Outcome]) -> tuple[int, ...]:
    """Return for each outcome the place of the first like it: both are errors, or one value.

    Where the value is None, what was printed is compared too.
    """
    values = [_comparable(outcome) for outcome in outcomes]
    places = [next(n for n, one in enumerate(values) if equal_values(one, v)) for v in values]
    return tuple(places)


def _comparable(outcome: Outcome) -> Any:
    if "error" in outcome:
        return "error", ""
    printed = outcome["stdout"] if _prints(outcome) else ""
    value = _decode(outcome)
    if value is not NO_VALUE:
        return printed, value
    return printed, outcome.get("type"), _ADDRESS.sub("", str(outcome.get("repr")))


def _prompt_output(outcome: Outcome) -> str:
    value = "" if outcome.get("none", True) else str(outcome.get("repr", ""))
    return str(outcome.get("stdout", "")) + value


def _output_matches(example: Example, outcome: Outcome) -> bool:
    expected = example.gives.strip()
    if "error" in outcome:
        error = str(outcome["error"])
        kind, colon, message = expected.splitlines()[-1].strip().partition(":")
        kind = kind.rpartition(".")[2]
        same = kind == error.partition(":")[0]
        if colon:
            same = _CHECKER.check_output(f"{kind}:{message}", error, _CHECKER_FLAGS)
        return expected.startswith(_TRACEBACK) and same
    value, literal = _decode(outcome), read_literal(expected)
    if _only_printed(example, outcome):
        return False
    # In a string that is the whole value, dots are dots unless the example says otherwise.
    dots = isinstance(literal, str | bytes) and "..." in expected and "ELLIPSIS" not in example.call
    if not dots and _CHECKER.check_output(expected, _prompt_output(outcome), _CHECKER_FLAGS):
        return True
    if outcome.get("stdout") or value is NO_VALUE or literal is NO_VALUE:
        return False
    # At a prompt True is not 1, though they are equal.
    return isinstance(value, bool) is isinstance(literal, bool) and equal_values(value, literal)


def _only_printed(example: Example, outcome: Outcome) -> bool:
    printed = outcome.get("none") and str(outcome.get("stdout", "")).strip()
    is_value = read_literal(example.gives.strip()) is not NO_VALUE
    call = try_parse_expression(example.call) is not None and "print" not in example.call
    return bool(printed and is_value and call and not example.prints)


def _decode(description: object) -> Any:
    """Return the value that the program described, or `NO_VALUE` if it is not plain data."""
    data = description.get("data") if isinstance(description, dict) else None
    return read_literal(data) if isinstance(data, str) else NO_VALUE
