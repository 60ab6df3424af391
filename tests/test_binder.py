"""The Binder environment's files."""

import re
import shlex
import shutil
import tomllib
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary, TrustNotebookApp

ROOT = Path(__file__).parents[1]
BINDER = ROOT / "binder"


def test_it_installs_what_the_notebooks_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = re.fullmatch(r"\.\[(.+)\]", (BINDER / "requirements.txt").read_text("utf-8").strip())
    assert asked
    assert set(asked[1].split(",")) == {"local", "notebooks"}
    assert {"local", "notebooks"} <= set(project["optional-dependencies"])


def test_its_build_marks_the_stored_outputs_as_trusted(tmp_path):
    """JupyterLab drops the style of an output that it does not trust."""
    command = shlex.split((BINDER / "postBuild").read_text("utf-8").splitlines()[-1])
    assert command == ["jupyter", "trust", "notebooks/*.ipynb"]
    path = shutil.copy(next(ROOT.glob("notebooks/01-*.ipynb")), tmp_path)
    app = TrustNotebookApp()
    app.initialize([path])
    app.start()
    notary = NotebookNotary()
    assert notary.check_signature(nbformat.read(path, as_version=4))
    notary.store.close()
