"""Read the cells above the running one, with what they gave, for a model."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ipyrefine.core.model import Material
from ipyrefine.kernel.redaction import redact, secret_values
from ipyrefine.notebook.cell_target import (
    hears_comms_while_running,
    read_cells_above,
    source_cell_id,
)

_SOURCE = 2_000  # characters of a cell's source
_OUTPUT = 800  # characters of all its outputs
_TOTAL = 12_000  # characters of all cells; the nearest ones count first
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Cell(NamedTuple):
    """A cell of the notebook.

    Attributes:
        source: its text.
        outputs: what it printed, gave and raised, as text.
        is_code: whether it is a code cell.
    """

    source: str
    outputs: str = ""
    is_code: bool = True


async def read_context(shell: Any, count: int) -> Material | None:
    """Return the cells above the running one; None where there are none.

    Where the front-end cannot name them, they are the cells that ran last, and the phrase says so.

    Args:
        shell: the IPython shell.
        count: how many, at most.
    """
    cells, name = await _cells_above(count), "cell above"
    if cells is None:
        cells, name = _cells_run(shell, count), "cell that ran last"
    texts = list(_texts(cells[-count:], secret_values(shell.user_ns)))
    if not texts:
        return None
    phrase = f"the {name}" if len(texts) == 1 else f"{len(texts)} {name.replace('cell', 'cells')}"
    return Material(kind="cells", name=name, phrase=phrase, text="\n\n".join(texts))


async def _cells_above(count: int) -> list[Cell] | None:
    """Return the cells that the front-end shows above the running one; None where it cannot say."""
    cell_id = source_cell_id()
    if cell_id is None or not hears_comms_while_running():
        return None
    found = await read_cells_above(cell_id, count)
    if found is None:
        return None
    return [
        Cell(_text(one.get("source")), _outputs(one.get("outputs")), one.get("type") == "code")
        for one in found
        if isinstance(one, dict)
    ]


def _cells_run(shell: Any, count: int) -> list[Cell]:
    """Return the cells that this kernel ran last, the running one left out."""
    history = shell.history_manager
    sources = history.input_hist_raw  # from 1 on; the running cell is the last one
    running = len(sources) - 1
    return [
        Cell(sources[number], _outputs(_stored_outputs(history, number)))
        for number in range(max(1, running - count), running)
    ]


def _stored_outputs(history: Any, number: int) -> Iterator[dict[str, Any]]:
    """Yield what IPython keeps of a cell's outputs, in the form of a notebook's."""
    for output in getattr(history, "outputs", {}).get(number, ()):
        if output.output_type in ("out_stream", "err_stream"):
            yield {"output_type": "stream", "text": output.bundle.get("stream", "")}
        else:
            yield {"output_type": "display_data", "data": output.bundle}
    error = getattr(history, "exceptions", {}).get(number)
    if isinstance(error, dict):
        yield {"output_type": "error", **error}


def _outputs(outputs: Any) -> str:
    """Return a cell's outputs as text, in short."""
    parts = []
    for output in outputs or ():
        match output:
            case {"output_type": "stream", "text": text}:
                parts.append(_text(text))
            case {"output_type": "error"}:
                parts.append(f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}")
            case {"data": {"text/plain": text}}:
                parts.append(_text(text))
    return _ANSI.sub("", "\n".join(part.rstrip("\n") for part in parts if part))


def _text(value: Any) -> str:
    """Return a notebook's text, which may be a list of lines."""
    if isinstance(value, list | tuple):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _texts(cells: Iterable[Cell], secrets: list[str]) -> Iterator[str]:
    """Return cells as text without secrets, as many of the last ones as there is room for."""
    texts, room = list[str](), _TOTAL
    for cell in reversed([cell for cell in cells if cell.source.strip()]):
        # Cut roughly first, so that hiding secrets takes bounded time; a cut secret is hidden too.
        source = _cut(redact(cell.source.strip()[: 2 * _SOURCE], secrets), _SOURCE)
        text = f"[{'code' if cell.is_code else 'markdown'} cell]\n{source}"
        if cell.outputs:
            outputs = redact(cell.outputs[: 2 * _OUTPUT], secrets)
            text += f"\n[its output]\n{_cut(outputs, _OUTPUT)}"
        if len(text) > room:
            break
        room -= len(text)
        texts.append(text)
    return reversed(texts)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[:width]}\n… (cut)"
