"""What the documentation in the code shows is true."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import ipyrefine
from ipyrefine.notebook import options

SOURCE = Path(ipyrefine.__file__).parent
SHOWING = sorted(
    ".".join(("ipyrefine", *path.relative_to(SOURCE).with_suffix("").parts))
    for path in SOURCE.rglob("*.py")
    if re.search(r"^\s*>>> \w+", path.read_text("utf-8"), re.MULTILINE)
    and path.name != "cli.py"  # its prompts are those of a task
)


@pytest.mark.parametrize("name", SHOWING)
def test_the_examples_in_docstrings_hold(name):
    module = import_module(name.removesuffix(".__init__"))
    result = doctest.testmod(module)
    assert result.attempted
    assert result.failed == 0


def test_the_examples_of_the_magics_help_are_options_it_takes():
    lines = re.findall(r"^ *%%refine (.+)$", options.EXAMPLES, re.MULTILINE)
    assert len(lines) >= 3
    for line in lines:
        limits = options.limits(options.parse(line))
        assert limits.max_revisions >= 1
