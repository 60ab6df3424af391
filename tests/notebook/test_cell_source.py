"""A notebook cell's text as a task or a draft, and what goes back into the cell."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shells import new_shell

from ipyrefine.errors import UsageError
from ipyrefine.notebook import cell_source
from ipyrefine.notebook.cell_source import read_code_cell, read_source
from ipyrefine.notebook.options import parse


@pytest.fixture(scope="module")
def shell() -> Any:
    return new_shell()


CODE = [
    "x = 1",
    "df.groupby('a').sum()",
    "%matplotlib inline\nimport numpy",
    "!ls\nf()",
    "for i in range(3)\n    print(i)",
    "def f(:\n    pass",
    "print 'hello'",
    "import os; os.listdir(",
    "# add them\na + b",
    "df?",
    "?df.groupby",
    "assert xs  # is it right?\n!ls",
    "total = 1  # right?\n%time f()",
    "données.sum()",
    "été = (1 +",
    "x",
]
WORDS = [
    "Write inc(n). inc(1) == 2",
    "Return the median of xs\n\n>>> median([1, 2, 4])\n2",
    "Sort the people by age, then by name.",
    "sort the people by age",
    "'''Write a stack.'''",
    "What is the total amount per town?",
    "Why not?\nWhat is the total per town?",
    "Über den Preis sprechen wir noch.",
    "¿Cuál es el total?",
    "包裹晚了。",
    "写一首诗",
]


@pytest.mark.parametrize("source", CODE + WORDS)
def test_code_is_a_draft_also_where_it_is_broken_and_words_are_a_task(shell, source):
    cell = read_code_cell(source, shell)
    assert (cell.text, cell.is_draft, cell.head) == (source, source in CODE, "")


def test_comments_are_a_task_and_stay_above_its_code(shell):
    cell = read_code_cell("# Write inc(n).\n#\n# >>> inc(1)\n# 2\n", shell)
    assert (cell.text, cell.is_draft) == ("Write inc(n).\n\n>>> inc(1)\n2", False)
    assert cell.head == "# Write inc(n).\n#\n# >>> inc(1)\n# 2\n\n"


@pytest.mark.parametrize(
    ("magic", "language"),
    [
        ("%%time", None),
        ("%%capture r", None),
        ("%%bash", "bash"),
        ("%%R", "r"),
        ("%%html", "html"),
        ("%%script -q perl", "perl"),
        ("%%ipytest -qq", None),
        ("%%px --local", None),
        ("%%writefile -a app.js", "javascript"),
        ("%%writefile app.py", None),
        ("%%nobody_knows", None),
    ],
)
def test_a_magics_line_stays_above_the_code_of_its_language(shell, magic, language):
    cell = read_code_cell(f"{magic}\nbody\n", shell)
    assert cell == ("body\n", True, f"{magic}\n", language, None, "")


@pytest.mark.parametrize(
    ("cell", "language", "profile"),
    [
        ("%%bigquery df\nSELECT name FROM people WHERE age > 3\n", "sql", None),
        ("%%writefile notes.md\n# Plan\n\nThis is what we do first.\n", None, "prose"),
        ("%%writefile notes\nThis is what we do first.\n", None, "prose"),
        ("%%markdown\nThis is what we do first.\n", None, "prose"),
        ("%%px\nimport os\nprint(os.getpid())\n", None, None),
        ("%%ipytest\ndef test_f(:\n    pass\n", None, None),
    ],
)
def test_the_body_below_any_magic_is_a_draft_of_its_kind(shell, cell, language, profile):
    args = parse("--set cell=x")
    source = read_source(args, cell, shell)
    assert (source.is_draft, source.language) == (True, language)
    assert source.head == cell.partition("\n")[0] + "\n"
    assert args.profile == profile


STUBS = [
    'def f(x):\n    """Double x."""\n    # YOUR CODE HERE\n    raise NotImplementedError()',
    "def f(x):\n    # YOUR CODE HERE\n    raise NotImplementedError",
    'import math\n\ndef f(x: int) -> int:\n    """Double x."""\n    ...',
    'async def f(x):\n    """Double x."""',
    'class Stack:\n    def push(self, x):\n        """Put x on top."""\n        pass',
    'def one():\n    return 1\n\ndef f(x):\n    """Add one()."""\n    raise NotImplementedError()',
]
NO_STUBS = [
    "def on_close():\n    pass",
    "class Shape:\n    def area(self):\n        raise NotImplementedError\n\n"
    "class Square(Shape):\n    def area(self):\n        return 1",
    "class Shape(ABC):\n    @abstractmethod\n    def area(self):\n        ...",
    'def f(x):\n    """Double x."""\n    if x:\n        raise NotImplementedError\n    return 0',
    "class Missing(Exception):\n    pass",
    'def f(x):\n    """Double x."""\n    return x + x',
]


@pytest.mark.parametrize("cell", STUBS + NO_STUBS)
@pytest.mark.parametrize("options", ["", "--set cell=x"])
def test_a_stub_is_a_task_that_its_docstring_states_and_no_text_to_improve(shell, cell, options):
    source = read_source(parse(options), cell, shell)
    assert source.is_draft is (cell in NO_STUBS)
    assert cell in source.text
    assert read_source(parse(f"{options} --draft"), cell, shell).text == cell


def test_a_stub_below_words_belongs_to_the_task(shell):
    cell = f"Write f.\n\n{STUBS[0]}"
    source = read_source(parse(""), cell, shell)
    assert (source.text, source.is_draft, source.wish) == (cell, False, "")


def ran(*sources: str, **variables: Any) -> Any:
    """A shell that ran some cells, and then the one that asks."""
    history = SimpleNamespace(input_hist_raw=["", *sources, "%%refine"], outputs={})
    return SimpleNamespace(history_manager=history, user_ns=variables)


# The cells that define what a cell uses, and the user's standing wishes


CHAIN = ("df = read()", "print(df)", "other = 1", "df = df.dropna()", "df.plot()")


@pytest.mark.parametrize(
    ("sources", "names", "own", "text", "phrase"),
    [
        (CHAIN, ["df"], [], "[code cell]\ndf = read()\n\n[code cell]\ndf = df.dropna()",
         "the code of 2 cells"),
        (["def f(x):\n    return 1", "def f(x):\n    return 2", "g = f"], ["f"], [],
         "[code cell]\ndef f(x):\n    return 2", "the code of 1 cell"),
        (["df = load(password='planted', host='db')"], ["df"], [],
         "[code cell]\ndf = load(password='[secret]', host='db')", "the code of 1 cell"),
        (CHAIN, ["absent"], [], None, ""),
        (CHAIN, [], [], None, ""),
        (["df = 1"], ["df"], ["df = 1\n"], None, ""),
        (["from a import df", "%%refine\ndf = 1"], ["df"], [], None, ""),
        ([], ["df"], [], None, ""),
    ],
    ids=["changed on the way", "bound anew", "with a secret", "an unknown name", "no name",
         "in the cell itself", "imported", "no cells"],
)  # fmt: skip
def test_the_cells_that_define_a_name_are_found_without_their_outputs(
    sources, names, own, text, phrase
):
    material = cell_source.read_definitions(ran(*sources, token="by hand", df=1, f=2), names, own)
    assert (material and material.text) == text
    assert not material or material.phrase == phrase


def test_standing_wishes_are_read_from_a_file_of_text_without_its_secrets(tmp_path):
    file = tmp_path / "AGENTS.md"
    assert cell_source.read_rules(str(file)) is None
    file.write_text("Use polars.\nThe password is planted1\n", "utf-8")
    rules = cell_source.read_rules(str(file))
    assert rules
    assert (rules.kind, rules.phrase) == ("rules", "AGENTS.md")
    assert rules.text == "Use polars.\nThe password is [secret]"
    file.write_text(" \n")
    assert cell_source.read_rules(str(file)) is None
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"your standing wishes \(it is not UTF-8\)"):
        cell_source.read_rules(str(file))
    file.write_text("word " * 1_000_000)
    assert len(cell_source.read_rules(str(file)).text) < 20_000
    with pytest.raises(UsageError, match="can't be read as your standing wishes"):
        cell_source.read_rules("\0")


def linked(at: Path, to: Path | str) -> str:
    at.symlink_to(to)
    return at.name


PLANTED = {  # what lies in a stranger's folder, and the name that the user gave
    "a link to the environment": lambda here: linked(here / "AGENTS.md", "/proc/self/environ"),
    "a link to a file": lambda here: linked(here / "AGENTS.md", here.parent / "private.md"),
    "a link to a file beside it": lambda here: linked(here / "AGENTS.md", here / "own.md"),
    "a folder that is a link": lambda here: linked(here / "docs", here.parent) + "/private.md",
    "a folder of the system": lambda here: linked(here / "docs", "/proc/self") + "/environ",
    "a way out and back": lambda here: linked(here / "up", "..") + f"/{here.name}/own.md",
    "a link to nothing": lambda here: linked(here / "AGENTS.md", here / "absent.md"),
    "a pipe": lambda here: os.mkfifo(here / "AGENTS.md") or "AGENTS.md",
    "a link to a pipe": lambda here: (
        os.mkfifo(here / "p") or linked(here / "AGENTS.md", here / "p")
    ),
    "a link to a device": lambda here: linked(here / "AGENTS.md", "/dev/zero"),
    "a folder": lambda here: os.mkdir(here / "AGENTS.md") or "AGENTS.md",
    "nothing": lambda here: "AGENTS.md",
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("whole", [False, True], ids=["below", "whole path"])
@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_standing_wishes_are_read_from_no_link_pipe_or_device(tmp_path, monkeypatch, plant, whole):
    here = tmp_path / "theirs"
    here.mkdir()
    for file in (tmp_path / "private.md", here / "own.md"):
        file.write_text("The user's own words.")
    monkeypatch.chdir(here)
    name = plant(here)
    assert cell_source.read_rules(str(here / name) if whole else name) is None


@pytest.mark.parametrize(
    ("body", "wish"),
    [
        ("Make it O(n).\n\ndef f(xs):\n    return sorted(xs)[0]\n", "Make it O(n)."),
        ("Use pathlib,\nand nothing else.\n\nimport os\n\nhere = os.getcwd()\n",
         "Use pathlib,\nand nothing else."),
        ("Write f.\n\nf(1) == 1\n\ndef f(x):\n    return x\n", "Write f.\n\nf(1) == 1"),
        ("Mend it.\n\nx = [1]\nassert x\n\ny = x[1]\n", "Mend it."),
        ("Mend it.\n\ndef f(): return g()\n\n\ndef g(): return 1\n", "Mend it."),
        ("Write f.\n\nassert f(1)\n\ndef f(x):\n    return x\n", "Write f.\n\nassert f(1)"),
        ("Write f(xs).\n\n>>> f([1])\n1\n", ""),
        ("Write f(xs).\n\nassert f([1]) == 1\n", ""),
        ("Write f(xs), for instance:\n\nf([1]) == 1\n", ""),
        ("x = 1\n\ny = 2\n", ""),
        ("Write f.\n\nIt takes a list.\n", ""),
    ],
)  # fmt: skip
def test_code_below_an_instruction_is_a_draft_that_it_changes(shell, body, wish):
    source = read_source(parse(""), body, shell)
    assert source.wish == wish
    if wish:
        assert source.is_draft
        assert source.text == body.partition(wish)[2].strip("\n")
    assert not read_source(parse("--set as=task"), body, shell).wish
