"""The Binder environment's files, and the badge that opens it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import nbformat
from nbformat.sign import NotebookNotary

import ipyrefine

ROOT = Path(__file__).parents[1]
BINDER = ROOT / "binder"


def test_it_installs_what_the_notebooks_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = re.fullmatch(r"\.\[(.+)\]", (BINDER / "requirements.txt").read_text("utf-8").strip())
    assert asked
    assert set(asked[1].split(",")) == {"local", "notebooks"}
    assert {"local", "notebooks"} <= set(project["optional-dependencies"])


def test_the_badge_opens_a_notebook_that_shows_its_run_before_it_is_executed() -> None:
    badge = re.search(
        r"\((https://mybinder\.org/v2/\S+)\)", (ROOT / "README.md").read_text("utf-8")
    )
    assert badge
    [opened] = parse_qs(urlsplit(badge[1]).query)["urlpath"]
    assert opened.startswith("lab/tree/")
    path = ROOT / opened.removeprefix("lab/tree/")
    assert ipyrefine.load(path)


def test_its_build_marks_the_stored_outputs_as_trusted(tmp_path: Path) -> None:
    """JupyterLab drops the style of an output that it does not trust."""
    path = shutil.copy(next(ROOT.glob("notebooks/01-*.ipynb")), tmp_path)
    command = (BINDER / "postBuild").read_text("utf-8").splitlines()[-1]
    assert "notebooks/*.ipynb" in command
    subprocess.run(
        ["bash", "-c", command.replace("notebooks/", f"{tmp_path}/")],
        env=os.environ
        | {
            "JUPYTER_DATA_DIR": str(tmp_path),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
        check=True,
        timeout=60,
    )
    notary = NotebookNotary(data_dir=str(tmp_path))
    assert notary.check_signature(nbformat.read(path, as_version=4))
