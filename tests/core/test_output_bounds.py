"""What checked code printed, returned and drew is kept within bounds; a picture is one."""

import base64
from typing import Any

import pytest
from png import END, PNG, SIGNATURE, chunk, header, pixels, png
from pydantic import ValidationError

from ipyrefine.core.model import (
    MAX_CELL,
    MAX_COLUMNS,
    MAX_OUTPUT,
    MAX_OUTPUTS,
    MAX_ROWS,
    Evidence,
    Figure,
    Printed,
    TableValue,
    Value,
)
from ipyrefine.core.png import MAX_PNG, MAX_SIDE, png_size

GOOD = png(header(), pixels(), END)
FAKES: dict[str, bytes] = {
    "nothing": b"",
    "a page": b"<html><script>alert(1)</script></html>",
    "a picture of another kind": b"GIF89a" + bytes(20),
    "a signature alone": SIGNATURE,
    "no pixels": png(header(), END),
    "no end": png(header(), pixels()),
    "no header": png(pixels(), END),
    "a header that comes late": png(pixels(), header(), END),
    "two headers": png(header(), header(), pixels(), END),
    "cut off": GOOD[:-1],
    "cut off in a chunk": GOOD[:-20],
    "something behind it": GOOD + b"<script>",
    "a second picture behind it": GOOD + GOOD,
    "a wrong checksum": SIGNATURE + chunk(*header()) + chunk(*pixels(), checksum=0) + chunk(*END),
    "a length beyond its end": SIGNATURE + b"\xff\xff\xff\xffIHDR" + bytes(30),
    "no width": png(header(0, 1), pixels(), END),
    "no height": png(header(1, 0), pixels(), END),
    "too wide": png(header(MAX_SIDE + 1, 1), pixels(), END),
    "too high": png(header(1, 2**32 - 1), pixels(), END),
    "bits that there are not": png(header(bits=3), pixels(), END),
    "colours that there are not": png(header(colours=5), pixels(), END),
    "a short header": png((b"IHDR", header()[1][:-1]), pixels(), END),
    "packed text": png(header(), (b"zTXt", b"a\0\0x"), pixels(), END),
    "an animation": png(header(), (b"acTL", bytes(8)), pixels(), END),
    "a private chunk": png(header(), (b"evIl", b"x"), pixels(), END),
    "too many bytes": png(header(), (b"tEXt", bytes(MAX_PNG)), pixels(), END),
}


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_the_size_of_a_picture_is_read() -> None:
    assert png_size(png(header(640, 480), pixels(640, 480), END)) == (640, 480)
    assert png_size(GOOD) == (1, 1)


@pytest.mark.parametrize("fake", FAKES)
def test_what_is_no_plain_picture_within_bounds_is_refused(fake: str) -> None:
    with pytest.raises(ValueError, match=r"picture|PNG"):
        png_size(FAKES[fake])
    with pytest.raises(ValidationError):
        Figure(png=encode(FAKES[fake]))


LONG = "x" * (MAX_OUTPUT + 1)
TABLE: dict[str, Any] = {
    "columns": ["n"], "labels": ["0"], "rows": [["1"]], "height": 1, "width": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    "output",
    [
        {"kind": "printed", "text": LONG},
        {"kind": "value", "text": LONG},
        {"kind": "page", "text": "x"},
        {"text": "x"},
        {"kind": "printed", "text": "x", "html": "<b>"},
        {"kind": "table", **TABLE, "rows": [["1", "2"]]},
        {"kind": "table", **TABLE, "rows": [["1"], ["2"]]},
        {"kind": "table", **TABLE, "labels": []},
        {"kind": "table", **TABLE, "height": 0},
        {"kind": "table", **TABLE, "width": 0},
        {"kind": "table", **TABLE, "height": -1},
        {"kind": "table", **TABLE, "rows": [["x" * (MAX_CELL + 1)]]},
        {"kind": "table", **TABLE, "columns": ["x" * (MAX_CELL + 1)]},
        {"kind": "table", **TABLE, "rows": [["1"]] * (MAX_ROWS + 1),
         "labels": ["0"] * (MAX_ROWS + 1), "height": 99},
        {"kind": "table", **TABLE, "columns": ["n"] * (MAX_COLUMNS + 1),
         "rows": [["1"] * (MAX_COLUMNS + 1)], "width": 99},
    ],
)  # fmt: skip
def test_an_output_beyond_its_bounds_or_shape_is_refused(output: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Evidence.model_validate({"name": "run", "passed": True, "outputs": [output]})


def test_outputs_are_few_and_written_as_they_are_read() -> None:
    outputs = (
        Printed(text="a\n"), Value(text="1"), TableValue.model_validate(TABLE), Figure(png=PNG),
    )  # fmt: skip
    evidence = Evidence(name="run", passed=True, outputs=outputs)
    assert Evidence.model_validate_json(evidence.model_dump_json()) == evidence
    many = [outputs[0].model_dump()] * (MAX_OUTPUTS + 1)
    with pytest.raises(ValidationError):
        Evidence.model_validate({"name": "run", "passed": True, "outputs": many})
