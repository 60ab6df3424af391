"""Apply ``schema.json`` to ``value.json``, in a process that can be stopped."""

import json

from jsonschema import validators

_WIDTH = 300


def main() -> None:
    """Write the errors as a list of sentences to ``report.json``."""
    with open("schema.json", encoding="utf-8") as file:
        schema = json.load(file)
    with open("value.json", encoding="utf-8") as file:
        value = json.load(file)
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    validator = kind(schema, format_checker=kind.FORMAT_CHECKER)
    errors = sorted(validator.iter_errors(value), key=lambda error: list(map(str, error.path)))
    with open("report.json", "w", encoding="utf-8") as file:
        json.dump([f"{error.json_path}: {error.message[:_WIDTH]}" for error in errors], file)


if __name__ == "__main__":
    main()
