"""What the JupyterLab extension adds to the application, and that it clashes with nothing there."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ipyrefine

EXTENSION = Path(ipyrefine.__file__).parent / "notebook/labextension"
SCHEMA = json.loads((EXTENSION / "schemas/ipyrefine/cells.json").read_text())
ACCEL = {"keys": ("Ctrl", "Cmd"), "macKeys": ("Cmd",), "winKeys": ("Ctrl",), "linuxKeys": ("Ctrl",)}


def chords(shortcuts: list[dict[str, Any]]) -> Iterator[frozenset[str]]:
    """The first chord of each shortcut, as the keys held together on each platform."""
    for shortcut in shortcuts:
        for field, accels in ACCEL.items():
            for keys in shortcut.get(field, [])[:1]:
                for accel in accels:
                    yield frozenset(keys.replace("Accel", accel).split())


def test_no_shortcut_is_one_of_the_applications():
    jupyterlab = pytest.importorskip("jupyterlab.commands")
    schemas = Path(jupyterlab.get_app_dir()) / "schemas"
    shipped = [json.loads(path.read_text("utf-8")) for path in schemas.rglob("*.json")]
    taken = {keys for schema in shipped for keys in chords(schema.get("jupyter.lab.shortcuts", []))}
    assert len(taken) > 50, "the shipped shortcuts were not found"
    ours = set(chords(SCHEMA["jupyter.lab.shortcuts"]))
    assert ours == {frozenset(keys.split()) for keys in ("Alt R", "Alt Shift R", "Alt P", "Alt K")}
    assert not ours & taken


def test_every_command_of_the_schema_is_one_that_the_extension_adds():
    scripts = [path.read_text("utf-8") for path in (EXTENSION / "static").glob("*.js")]
    added = re.findall(r'addCommand\("([\w:-]+)"', "".join(scripts))
    named = re.findall(r'"command": "([\w:-]+)"', json.dumps(SCHEMA))
    assert set(named) == set(added)


def test_the_schema_is_the_one_of_the_plugin():
    plugin = re.search(r'id: "([\w-]+):(\w+)"', (EXTENSION / "static/extension.js").read_text())
    assert plugin is not None
    assert (EXTENSION / f"schemas/{plugin[1]}/{plugin[2]}.json").is_file()
    package = json.loads((EXTENSION / "package.json").read_text())
    assert (package["name"], package["jupyterlab"]["schemaDir"]) == (plugin[1], "schemas")


def test_the_extension_is_installed_where_jupyterlab_looks_and_has_the_projects_version():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    (source, target), (styles, beside) = shared.items()
    package = json.loads((root / source / "package.json").read_text())
    assert target == f"share/jupyter/labextensions/{package['name']}"
    assert package["version"] == project["project"]["version"]
    assert (root / styles).is_file()
    assert beside == f"{target}/static/run.css", "style.js loads it from there"
    entry = root / source / package["jupyterlab"]["_build"]["load"]
    imported = re.findall(r'"(\w+\.js)"', entry.read_text())
    assert imported
    assert all((entry.parent / name).is_file() for name in imported)
