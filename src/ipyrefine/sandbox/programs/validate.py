"""Apply ``schema.json`` to ``value.json``, in a process that can be stopped."""

import json
import re
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

_WIDTH = 300
_MAX_ERRORS = 1_000


def main() -> None:
    """Write the errors, at most 1,000, as a list of sentences to ``report.json``."""
    with open("schema.json", encoding="utf-8") as file:
        text = file.read()
    if not re.search(r'"[ui]ri', text):  # the only formats whose grammar takes a second to load
        sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    from jsonschema import validators

    schema = json.loads(text)
    with open("value.json", encoding="utf-8") as file:
        value = json.load(file)
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    kind = validators.extend(kind, {"pattern": _match}, format_checker=kind.FORMAT_CHECKER)
    first = islice(kind(schema, format_checker=kind.FORMAT_CHECKER).iter_errors(value), _MAX_ERRORS)
    errors = sorted(first, key=lambda error: list(map(str, error.path)))
    with open("report.json", "w", encoding="utf-8") as file:
        faults = [f"{error.json_path[:_WIDTH]}: {error.message[:_WIDTH]}" for error in errors]
        json.dump(faults, file)


def _match(_: Any, pattern: str, value: Any, __: Any) -> Iterator[Any]:
    """Yield an error where a pattern is not found; its ``$`` is the very end, as in ECMA 262."""
    from jsonschema import ValidationError

    # An escape and a class of characters stay as they are.
    exact = re.sub(
        r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\$",
        lambda found: found[1] or r"\Z",
        pattern,
        flags=re.DOTALL,
    )
    if isinstance(value, str) and not re.search(exact, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


if __name__ == "__main__":
    main()
