"""The direction of imports between the rooms, and what may be imported when."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ipyrefine

SOURCE = Path(ipyrefine.__file__).parent
SIDE_BY_SIDE = {"profiles", "providers", "sandbox", "kernel", "checks", "render", "journal"}
# What each room may import besides itself. `__init__` is the façade and may import all of them.
BELOW = {
    "errors": set[str](),
    "folders": {"errors"},
    "core": {"errors"},
    **{room: {"core", "errors"} for room in SIDE_BY_SIDE},
    "kernel": {"sandbox", "core", "errors"},
    "checks": {"kernel", "sandbox", "core", "errors"},
    "providers": {"core", "errors", "folders"},
    "journal": {"core", "errors", "folders"},
    "profiles": {"core", "errors", "folders"},
    "api": {*SIDE_BY_SIDE, "core", "errors"},
    "session": {*SIDE_BY_SIDE, "api", "core", "errors", "folders"},
    "batch": {*SIDE_BY_SIDE, "api", "core", "errors"},
    "notebook": {*SIDE_BY_SIDE, "session", "api", "core", "errors"},
    "looks": {*SIDE_BY_SIDE, "core", "errors"},
    "notebook_check": {*SIDE_BY_SIDE, "agents", "looks", "session", "core", "errors"},
    "agents": {"errors"},
    "cli": {
        *SIDE_BY_SIDE,
        "agents",
        "notebook_check",
        "session",
        "batch",
        "api",
        "core",
        "errors",
        "demo",
    },
    "demo": {*SIDE_BY_SIDE, "session", "api", "core", "errors", "folders"},
    "__main__": {"cli"},
}
OPENAI = {"providers/openai.py"}  # the client


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def imports() -> list[tuple[Path, str]]:
    """Every import in our sources, wherever in the file it stands: the file and the name."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found += [(path, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path.relative_to(SOURCE)}: imports are absolute here"
                found += [(path, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def imports_between_rooms() -> Iterator[tuple[Path, str, str]]:
    """Every import from one room into another: the file, the other room and the name."""
    for path, name in imports():
        package, _, rest = name.partition(".")
        other = rest.partition(".")[0]
        if package == "ipyrefine" and room_of(path) not in ("__init__", other):
            yield path, other, name


def test_every_room_has_its_place_in_the_table():
    rooms = {room_of(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert rooms == set(BELOW), "a new room needs its line, and one that is gone has none"


def test_imports_point_downward_only():
    upward = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path, other, name in imports_between_rooms()
        if other not in BELOW.get(room_of(path), ())
    ]
    assert upward == [], "say in BELOW what the room may use, or move the code"


def test_no_files_import_each_other_in_a_circle():
    """Within a room as between rooms; an import inside of a function counts too."""
    files = {
        ".".join(("ipyrefine", *path.relative_to(SOURCE).with_suffix("").parts)): path
        for path in SOURCE.rglob("*.py")
        if path.stem != "__init__"
    }
    names = {path: module for module, path in files.items()}
    graph: dict[str, set[str]] = {module: set() for module in files}
    for path, name in imports():
        imported = name if name in files else name.rpartition(".")[0]
        if path in names and imported in files:
            graph[names[path]].add(imported)
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    ("folder", "names"), [(SOURCE, "*.py"), (Path(__file__).parent, "test_*.py")]
)
def test_no_two_files_have_the_same_name(folder, names):
    """Pytest imports tests by their names alone."""
    found = Counter(path.name for path in folder.rglob(names) if path.stem != "__init__")
    assert [name for name, uses in found.items() if uses > 1] == []


def test_the_core_imports_the_standard_library_pydantic_and_our_errors_only():
    allowed = {*sys.stdlib_module_names, "pydantic", "ipyrefine"}
    outside = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for path, name in imports()
        if room_of(path) == "core" and name.partition(".")[0] not in allowed
    ]
    assert outside == []


def test_openai_is_imported_where_its_requests_are_made_only():
    users = {path for path, name in imports() if name.partition(".")[0] == "openai"}
    assert {path.relative_to(SOURCE).as_posix() for path in users} <= OPENAI


HEAVY = {"anywidget", "ipywidgets", "nbformat"}
HEAVY |= {"httpx2", "openai", "pandas", "tqdm", "xllamacpp"}
STEPS = {
    "import ipyrefine": HEAVY | {"IPython", "pydantic"},
    "from IPython.core.interactiveshell import InteractiveShell as S\n"
    "S.instance().extension_manager.load_extension('ipyrefine')": HEAVY | {"pydantic"},
    "import ipyrefine.api, ipyrefine.providers.replay": HEAVY | {"genai_prices"},
}


def test_importing_and_loading_stay_light():
    """The package, then the extension, then a recording: in one process, the lightest first."""
    code = "import sys\n" + "".join(
        f"{step}\nprint(*{heavy} & sys.modules.keys())\n" for step, heavy in STEPS.items()
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout.split() == []
