"""The checks ``json``, and ``schema:NAME``: JSON that a pydantic model or a JSON schema accepts."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from ipyrefine.checks import Context
from ipyrefine.checks.evaluation import shorten
from ipyrefine.checks.functions import MAX_FINDINGS, flaw
from ipyrefine.core.model import Task
from ipyrefine.core.points import first_line
from ipyrefine.core.table import Result
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.sandbox.sandbox import describe_failure, load_program, run_python

_VALUE_WIDTH = 100
_PLACE_WIDTH = 200
_FAULT_WIDTH = 700
_REPORT = "report.json"
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(?P<content>.*)\n[ \t]*```", re.DOTALL)


class Json:
    """The text is one JSON value, in a fence or not."""

    name = "json"

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check of ``json``."""
        return cls()

    async def __call__(self, text: str, task: Task) -> Result:
        """Read the text."""
        fault = _not_json(text)
        return Result(
            name=self.name,
            passed=not fault,
            score=float(not fault),
            shows=fault or "It is JSON.",
            basis="constraints",
        )


class Schema:
    """The text is one JSON value that a schema accepts.

    JSON is read strictly: NaN, Infinity, numbers too large for a float and repeated keys, which
    Python's own reader lets pass, are faults. A JSON schema is applied in the sandbox, as its
    patterns may take years; a pydantic model is the user's own code and is applied here.

    Args:
        schema: a JSON schema, or what pydantic can validate: a model, a dataclass, a TypedDict,
            or a type made of those (``list[Person]``).
        label: the user's name for it.
        seconds: wall time that applying a JSON schema may take.
        decisive: whether a pass settles the verdict.

    Raises:
        UsageError: it is neither, or not a valid one.
    """

    def __init__(
        self, schema: Any, *, label: str = "", seconds: float = 10.0, decisive: bool = True
    ) -> None:
        self.name = f"schema:{label or getattr(schema, '__name__', 'schema')}"
        self._seconds, self._decisive = seconds, decisive
        self._adapter = None if isinstance(schema, dict | bool) else _adapter(schema, self.name)
        self._schema = schema if self._adapter is None else self._adapter.json_schema()
        if self._adapter is None:
            _require_valid(schema, self.name)
        self.json_schema = self._schema if isinstance(self._schema, dict) else None
        # Asked for "a value that follows this schema", small models write the schema again.
        request = (
            "The text is one JSON value with the values themselves, as this schema describes them"
        )
        self.requirement = f"{request}:\n{json.dumps(self._schema, ensure_ascii=False)}"

    @classmethod
    def from_argument(cls, argument: str, context: Context, **settings: Any) -> Self:
        """Build the check of ``schema:NAME``.

        Raises:
            UsageError: there is no such variable, or it is not a schema.
        """
        namespace = context.namespace
        if argument not in namespace:
            hint = did_you_mean(argument, namespace)
            raise UsageError(f"There is no schema {argument!r} in the notebook.{hint}")
        return cls(namespace[argument], label=argument, **settings)

    async def __call__(self, text: str, task: Task) -> Result:
        """Validate the text."""
        if fault := _not_json(text):
            faults, score = [fault], 0.0
        else:
            own = self._adapter is not None
            faults = self._validate_here(text) if own else await self._validate_in_sandbox(text)
            score = 1 / (1 + len(faults))
        faults = [shorten(fault, _FAULT_WIDTH) for fault in faults[:MAX_FINDINGS]]
        return Result(
            name=self.name,
            passed=not faults,
            score=score,
            shows="\n".join(faults) or "It follows the schema.",
            decisive=self._decisive,
            basis="schema",
            # A criterion is a place, which identifies it in the next text.
            points=tuple(
                flaw(
                    shorten(one.partition(": ")[0] if one[:1] == "$" else self.name, _PLACE_WIDTH),
                    one,
                )
                for one in faults
            ),
        )

    def value(self, text: str) -> Any:
        """Return the validated object of a text that passed: the model's instance, or plain data.

        Raises:
            ValueError: the text does not follow the schema.
        """
        bare = _strip_fence(text)
        return self._adapter.validate_json(bare) if self._adapter else json.loads(bare)

    def _validate_here(self, text: str) -> list[str]:
        try:
            self.value(text)
        except ValidationError as error:
            return [_format_fault(e["loc"], e["msg"], e["input"]) for e in error.errors()]
        except Exception as error:  # a validator is the user's code
            return [f"The schema raised {type(error).__name__}: {error}"]
        return []

    async def _validate_in_sandbox(self, text: str) -> list[str]:
        result = await run_python(
            load_program("validate"),
            seconds=self._seconds,
            files={"schema.json": json.dumps(self._schema), "value.json": _strip_fence(text)},
            report=_REPORT,
        )
        if result.exit_code != 0:
            return [f"It could not be validated: {describe_failure(result, self._seconds)}"]
        try:
            faults: list[str] = json.loads(result.report)
        except ValueError:
            return ["It could not be validated: the list of its faults is too long."]
        return faults


def _adapter(schema: Any, name: str) -> TypeAdapter[Any]:
    if not isinstance(schema, type) and not hasattr(schema, "__origin__"):
        raise UsageError(
            f"The check {name!r} needs a pydantic model or a JSON schema (a dict), "
            f"not a {type(schema).__name__}."
        )
    try:
        adapter = TypeAdapter[Any](schema)
        adapter.json_schema()
    except PydanticUserError as error:
        message = first_line(str(error)).rstrip(".")
        raise UsageError(
            f"The check {name!r} has a type without a JSON schema: {message}."
        ) from None
    return adapter


def _require_valid(schema: Any, name: str) -> None:
    from jsonschema import SchemaError, validators

    try:
        json.dumps(schema)
        validators.validator_for(schema, default=validators.Draft202012Validator).check_schema(
            schema
        )
    except SchemaError as error:
        where = ".".join(map(str, error.path))
        at = f" at {where}" if where else ""
        raise UsageError(f"The check {name!r} is not a JSON schema{at}: {error.message}.") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"The check {name!r} is not a JSON schema: {error}.") from None


def _strip_fence(text: str) -> str:
    match = _FENCE.fullmatch(text.strip())
    return match["content"] if match else text.strip()


def _not_json(text: str) -> str:
    try:
        read_json(_strip_fence(text))
    except (ValueError, RecursionError) as error:
        return f"It is not JSON: {error}"
    return ""


def read_json(text: str) -> Any:
    """Return a JSON value; NaN, numbers too large for a float and repeated keys are refused.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deeply.
    """
    return json.loads(
        text,
        object_pairs_hook=_read_object,
        parse_constant=_refuse,
        parse_float=lambda one: float(one) if math.isfinite(float(one)) else _refuse(one),
    )


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    for key, count in Counter(key for key, _ in pairs).items():
        if count > 1:
            raise ValueError(f"the key {shorten(repr(key), _VALUE_WIDTH)} is repeated")
    return dict(pairs)


def _refuse(digits: str) -> Any:
    raise ValueError(f"{shorten(digits, _VALUE_WIDTH)} is not a JSON number")


def _format_fault(place: Iterable[Any], message: str, value: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return (
        f"${shorten(path, _PLACE_WIDTH)}: {shorten(message, _FAULT_WIDTH)}, "
        f"got {shorten(repr(value), _VALUE_WIDTH)}"
    )
