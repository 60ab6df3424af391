"""Apply ``schema.json`` to ``value.json``, in a process that can be stopped."""

import json
import re
import sys
from itertools import islice

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
    validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
    first = islice(validator.iter_errors(value), _MAX_ERRORS)
    errors = sorted(first, key=lambda error: list(map(str, error.path)))
    with open("report.json", "w", encoding="utf-8") as file:
        faults = [f"{error.json_path[:_WIDTH]}: {error.message[:_WIDTH]}" for error in errors]
        json.dump(faults, file)


if __name__ == "__main__":
    main()
