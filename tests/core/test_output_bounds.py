"""What checked code printed, returned and drew is kept within bounds; a picture is one."""

import base64
from typing import Any

import pytest
from png import END, PNG, SIGNATURE, header, pixels, png
from pydantic import ValidationError

from ipyrefine.core.model import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_OUTPUT,
    MAX_OUTPUTS,
    MAX_PNG,
    MAX_ROWS,
    MAX_SIDE,
    Figure,
    Printed,
    Table,
    Value,
)
from ipyrefine.core.table import Result

GOOD = png(header(), pixels(), END)
FAKES: dict[str, bytes] = {
    "nothing": b"", "a page": b"<html><script>alert(1)</script></html>",
    "a picture of another kind": b"GIF89a" + bytes(20), "a signature alone": SIGNATURE,
    "cut off": GOOD[:-1], "something behind it": GOOD + b"<script>",
    "no width": png(header(0, 1), pixels(), END),
    "too high": png(header(1, MAX_SIDE + 1), pixels(), END),
    "too many bytes": png(header(), (b"tEXt", bytes(MAX_PNG)), pixels(), END),
}  # fmt: skip


@pytest.mark.parametrize("fake", FAKES)
def test_what_is_not_a_picture_within_bounds_is_refused(fake):
    with pytest.raises(ValidationError):
        Figure(png=base64.b64encode(FAKES[fake]).decode())


TABLE: dict[str, Any] = {
    "kind": "table", "columns": ["n"], "labels": ["0"], "rows": [["1"]], "height": 1, "width": 1,
}  # fmt: skip
WIDE = ["x" * (MAX_CELL + 1)]
BEYOND: dict[str, dict[str, Any]] = {
    "too long": {"kind": "printed", "text": "x" * (MAX_OUTPUT + 1)},
    "no such kind": {"kind": "page", "text": "x"},
    "another field": {"kind": "printed", "text": "x", "html": "<b>"},
    "a long column": TABLE | {"columns": WIDE},
    "a row too wide": TABLE | {"rows": [["1", "2"]]},
    "no labels": TABLE | {"labels": []},
    "no height": TABLE | {"height": 0},
    "no width": TABLE | {"width": 0},
    "a long cell": TABLE | {"rows": [WIDE]},
    "many rows": TABLE
    | {"rows": [["1"]] * (MAX_ROWS + 1), "labels": ["0"] * (MAX_ROWS + 1), "height": 99},
    "many columns": TABLE
    | {"columns": ["n"] * (MAX_COLUMNS + 1), "rows": [["1"] * (MAX_COLUMNS + 1)], "width": 99},
}


@pytest.mark.parametrize("output", BEYOND.values(), ids=BEYOND)
def test_an_output_beyond_its_bounds_or_shape_is_refused(output):
    with pytest.raises(ValidationError):
        Result.model_validate({"name": "run", "passed": True, "outputs": [output]})


def test_outputs_are_few_and_written_as_they_are_read():
    outputs = (
        Printed(text="a\n"), Value(text="1"), Table.model_validate(TABLE), Figure(png=PNG),
    )  # fmt: skip
    evidence = Result(name="run", passed=True, outputs=outputs)
    assert Result.model_validate_json(evidence.model_dump_json()) == evidence
    many = [outputs[0].model_dump()] * (MAX_OUTPUTS + 1)
    with pytest.raises(ValidationError):
        Result.model_validate({"name": "run", "passed": True, "outputs": many})
