"""The check ``schema:NAME``: the text is JSON that a pydantic model or a JSON schema accepts."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from ipyrefine.checks.faults import MOST, fault
from ipyrefine.checks.python import failure
from ipyrefine.checks.sandbox import run_python
from ipyrefine.core.records import Evidence, Finding, Task
from ipyrefine.errors import UsageError

_PROGRAM = Path(__file__).parent / "programs" / "schema.py"
_SECONDS = 10.0
_SHOWN = 100
_REPORT = "report.json"
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(?P<inside>.*)\n[ \t]*```", re.DOTALL)


class Schema:
    """The text is one JSON value that a schema accepts.

    A JSON schema is applied in a process of its own, as its patterns may take years; a pydantic
    model is the user's own code and is applied here.

    Args:
        schema: a JSON schema, or what pydantic can validate: a model, a dataclass, a TypedDict,
            or a type made of those (``list[Person]``).
        label: how the user calls it.

    Raises:
        UsageError: it is neither, or not a valid one.
    """

    def __init__(self, schema: Any, *, label: str = "") -> None:
        self.name = f"schema:{label or getattr(schema, '__name__', 'schema')}"
        self._adapter = None if isinstance(schema, dict | bool) else _adapter(schema, self.name)
        self._schema = schema if self._adapter is None else self._adapter.json_schema()
        if self._adapter is None:
            _verify(schema, self.name)
        # Asked for "a value that follows this schema", small models write the schema again.
        asked = (
            "The text is one JSON value with the values themselves, as this schema describes them"
        )
        self.requirement = f"{asked}:\n{json.dumps(self._schema, ensure_ascii=False)}"

    async def __call__(self, text: str, task: Task) -> Evidence:
        """Validate the text."""
        began = monotonic()
        try:
            json.loads(_bare(text))
        except (ValueError, RecursionError) as error:
            faults, score = [f"It is not JSON: {error}"], 0.0
        else:
            faults = self._faults(text) if self._adapter else await self._against_schema(text)
            score = 1 / (1 + len(faults))
        return Evidence(
            name=self.name,
            passed=not faults,
            score=score,
            detail="\n".join(faults[:MOST]) or "It follows the schema.",
            seconds=monotonic() - began,
            findings=tuple(_finding(self.name, said) for said in faults[:MOST]),
        )

    def value(self, text: str) -> Any:
        """The validated object of a text that passed: the model's instance, or plain data.

        Raises:
            ValueError: the text does not follow the schema.
        """
        bare = _bare(text)
        return self._adapter.validate_json(bare) if self._adapter else json.loads(bare)

    def _faults(self, text: str) -> list[str]:
        try:
            self.value(text)
        except ValidationError as error:
            return [_told(e["loc"], e["msg"], e["input"]) for e in error.errors()]
        except Exception as error:  # a validator is the user's code
            return [f"The schema raised {type(error).__name__}: {error}"]
        return []

    async def _against_schema(self, text: str) -> list[str]:
        ran = await run_python(
            _PROGRAM.read_text("utf-8"),
            seconds=_SECONDS,
            files={"schema.json": json.dumps(self._schema), "value.json": _bare(text)},
            collect=_REPORT,
        )
        if ran.exit_code != 0:
            return [f"It could not be validated: {failure(ran, _SECONDS)}"]
        faults: list[str] = json.loads(ran.collected)
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
        said = str(error).partition("\n")[0].rstrip(".")
        raise UsageError(f"The check {name!r} has a type without a JSON schema: {said}.") from None
    return adapter


def _verify(schema: Any, name: str) -> None:
    from jsonschema import SchemaError, validators

    try:
        json.dumps(schema)
        validators.validator_for(schema, default=validators.Draft202012Validator).check_schema(
            schema
        )
    except SchemaError as error:
        where = ".".join(str(part) for part in error.path)
        at = f" at {where}" if where else ""
        raise UsageError(f"The check {name!r} is no JSON schema{at}: {error.message}.") from None
    except (TypeError, ValueError) as error:
        raise UsageError(f"The check {name!r} is no JSON schema: {error}.") from None


def _bare(text: str) -> str:
    """The text without a code fence around the whole of it."""
    match = _FENCED.fullmatch(text.strip())
    return match["inside"] if match else text.strip()


def _told(place: Iterable[Any], message: str, got: Any) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    value = repr(got)
    shown = value if len(value) <= _SHOWN else value[: _SHOWN - 1] + "…"
    return f"${path}: {message}, got {shown}"


def _finding(name: str, said: str) -> Finding:
    """A fault by its place, by which it is known again in the next text."""
    return fault(said.partition(": ")[0] if said.startswith("$") else name, said)
