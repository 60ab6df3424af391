"""The notebooks that come with the source."""

from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
FIRST = FOLDER / "01-first-refine.ipynb"


def test_the_first_notebook_is_there():
    assert FIRST in NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_names_its_kernel_and_carries_no_outputs(path):
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    for cell in code:
        assert cell.outputs == []
        assert cell.execution_count is None


@pytest.mark.model
async def test_the_first_notebook_runs_on_the_embedded_model(tmp_path, monkeypatch):
    """It leaves a record that reads without a kernel, and a text, in an executed notebook."""
    from nbclient import NotebookClient

    monkeypatch.setenv("IPYREFINE_MODEL", "qwen2.5-coder-0.5b")
    notebook = nbformat.read(FIRST, as_version=4)
    client = NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    await client.async_execute()

    def outputs(source: str) -> list[nbformat.NotebookNode]:
        return next(c.outputs for c in notebook.cells if c.source.startswith(source))

    records = [o.data for o in outputs("%%refine") if "text/html" in o.get("data", {})]
    assert records, "the cell left no record"
    for mime in ("text/html", "text/markdown", "text/plain"):
        assert records[-1][mime].strip()
    printed = "".join(o.text for o in outputs("print(refined)") if o.output_type == "stream")
    assert "Stack" in printed
    shown = outputs("refined_run.score_history")[-1].data["text/plain"]
    assert "StopReason" in shown
