"""A notebook cell's text as a task or a draft, and what goes back into the cell."""

from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from shells import NO_HISTORY

from ipyrefine.errors import UsageError
from ipyrefine.notebook.cell_source import read_code_cell


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance(config=NO_HISTORY)
    InteractiveShell.clear_instance()


@pytest.mark.parametrize(
    "source",
    [
        "x = 1",
        "df.groupby('a').sum()",
        "[1, 2]",
        "%matplotlib inline\nimport numpy",
        "!ls\nf()",
        "for i in range(3)\n    print(i)",
        "def f(:\n    pass",
        "x = [1, 2",
        "print 'hello'",
        "import os; os.listdir(",
        "# add them\na + b",
    ],
)
def test_code_is_a_draft_also_where_it_is_broken(shell: Any, source: str) -> None:
    cell = read_code_cell(source, shell)
    assert (cell.text, cell.is_draft, cell.head) == (source, True, "")


@pytest.mark.parametrize(
    "source",
    [
        "Write inc(n). inc(1) == 2",
        "Return the median of xs\n\n>>> median([1, 2, 4])\n2",
        "Sort the people by age, then by name.",
        "sort the people by age",
        "'''Write a stack.'''",
    ],
)
def test_words_are_a_task_that_the_code_replaces(shell: Any, source: str) -> None:
    cell = read_code_cell(source, shell)
    assert (cell.text, cell.is_draft, cell.head) == (source, False, "")


def test_comments_are_a_task_and_stay_above_its_code(shell: Any) -> None:
    cell = read_code_cell("# Write inc(n).\n#\n# >>> inc(1)\n# 2\n", shell)
    assert (cell.text, cell.is_draft) == ("Write inc(n).\n\n>>> inc(1)\n2", False)
    assert cell.head == "# Write inc(n).\n#\n# >>> inc(1)\n# 2\n\n"


@pytest.mark.parametrize(
    ("magic", "language"),
    [
        ("%%time", None),
        ("%%capture out", None),
        ("%%bash", "bash"),
        ("%%R", "r"),
        ("%%html", "html"),
    ],
)
def test_a_magics_line_stays_above_the_code_of_its_language(
    shell: Any, magic: str, language: str | None
) -> None:
    cell = read_code_cell(f"{magic}\nbody\n", shell)
    assert cell == ("body\n", True, f"{magic}\n", language, None)


def test_a_magic_whose_body_is_no_code_is_refused(shell: Any) -> None:
    with pytest.raises(UsageError, match="A %%writefile cell can't be refined"):
        read_code_cell("%%writefile a.txt\nHello", shell)
