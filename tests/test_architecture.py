"""The direction of imports, and what may be imported when."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ipyrefine

SOURCE = Path(ipyrefine.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
BELOW = {
    "errors": set(),
    "core": {"errors"},
    "profiles": {"core", "errors"},
    "providers": {"core", "errors"},
    "checks": {"core", "errors"},
    "render": {"core", "errors"},
    "journal": {"core", "errors"},
    "running": {"journal", "core", "errors"},
    "compose": {"running", "journal", "profiles", "providers", "checks", "core", "errors"},
    "resuming": {"compose", "core", "errors"},
    "batch": {"resuming", "compose", "running", "journal", "checks", "core", "errors"},
    "session": {
        *("resuming", "compose", "running", "journal", "render", "profiles", "providers"),
        *("checks", "core", "errors", "notebook"),
    },
}
BELOW["notebook"] = {*BELOW["session"], "session"}
BELOW["cli"] = {*BELOW["session"], "session", "batch"}
BELOW["__main__"] = {"cli"}


def imports(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downward_only(path: Path) -> None:
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("ipyrefine.")}
    assert ours - {room} <= BELOW[room]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_one_file_imports_openai(path: Path) -> None:
    vendors = {name.split(".")[0] for name in imports(path)}
    assert "openai" not in vendors or path == SOURCE / "providers" / "openai.py"


def test_the_ground_floor_imports_the_standard_library_and_pydantic_only() -> None:
    outside = {
        name.split(".")[0] for path in (SOURCE / "core").glob("*.py") for name in imports(path)
    }
    assert outside - set(sys.stdlib_module_names) <= {"pydantic", "ipyrefine"}


LOADED = (
    "from IPython.core.interactiveshell import InteractiveShell as S; "
    "S.instance().extension_manager.load_extension('ipyrefine')"
)
HEAVY = {"openai", "ipywidgets", "nbformat", "xllamacpp", "pandas", "distributed", "tqdm"}


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [("import ipyrefine.core.engine", HEAVY), (LOADED, HEAVY | {"pydantic"})],
    ids=["import", "load"],
)
def test_importing_and_loading_stay_light(statement: str, heavy: set[str]) -> None:
    code = f"{statement}\nimport sys\nassert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_exported_name_is_listed_in_order_and_resolves() -> None:
    assert ipyrefine.__all__ == sorted(ipyrefine.__all__)
    for name in ipyrefine.__all__:
        assert getattr(ipyrefine, name) is not None
