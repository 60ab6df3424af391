"""What the README, CONTRIBUTING, the benches' README and the docstrings they lead to promise."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from kit import told

import ipyrefine
from ipyrefine.core.actions import commands as listed
from ipyrefine.notebook.magic import Refine
from ipyrefine.notebook.options import limits, parse, parser
from ipyrefine.sandbox import sandbox
from ipyrefine.session.commands import usage

ROOT = Path(__file__).parents[1]
PAGES = {
    name: (ROOT / name).read_text("utf-8")
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "bench/README.md",
        "notebooks/README.md",
        "notebooks/GLOSSARY.md",
    )
}
README, CONTRIBUTING, BENCHES, TEACHERS, _ = PAGES.values()
LOOPS = ("generator_evaluator", "feedback_lists", "scored_loop", "chain_of_thought", "four_phases")


def section(page: str, heading: str) -> str:
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def help_text() -> str:
    """What `%%refine?` shows."""
    return str(Refine.refine.getdoc())


def test_every_option_of_the_magic_is_in_its_help_and_no_other() -> None:
    lines = re.findall(r"^  -.+$", help_text().split("\nexamples:\n")[0], re.MULTILINE)
    named = {name for line in lines for name in re.findall(r"(?:^  |, )(--?[a-z-]+)", line)}
    assert named == set(parser().options)


def test_the_table_of_options_has_each_purpose_with_options_of_it() -> None:
    rows = re.findall(
        r"^\| ([a-z ]+) \| (.*`.*) \|$", section(README, "Options by purpose"), re.MULTILINE
    )
    groups = {
        group.title: {name for action in group._group_actions for name in action.option_strings}
        for group in parser()._action_groups
        if group._group_actions
    }
    assert [title for title, _ in rows] == [*groups]
    for title, row in rows:
        named = set(re.findall(r"`(--?[a-z][a-z-]*)", row))
        named |= set(re.findall(r"`--?[a-z][^`]* (--[a-z-]+)", row))
        assert named
        assert named <= groups[title]


def test_every_loop_has_a_row_and_its_tests_say_what_differs() -> None:
    table = section(README, "Coming from another loop").split("\n\n")[1]
    rows = table.splitlines()[2:]
    assert len(rows) == len(LOOPS)
    for row, name in zip(rows, LOOPS, strict=True):
        path = f"tests/conformance/test_{name}.py"
        assert f"({path})" in row
        assert f"({path})" in CONTRIBUTING
        said = ast.get_docstring(ast.parse((ROOT / path).read_text("utf-8"))) or ""
        assert re.findall(r"^- (Your loop:|Here:|By default)", said, re.MULTILINE) == [
            "Your loop:",
            "Here:",
            "By default",
        ]
        one_line = re.findall(r"`%%refine (.+?)`", row)
        lines = one_line + re.findall(r"`%%refine (.+?)`", " ".join(said.split()))
        assert one_line
        assert len(lines) > len(one_line)
        for line in lines:
            assert limits(parse(line)).max_revisions is not None


def test_every_command_is_named_in_the_help_and_the_readmes_exist() -> None:
    commands = usage()
    for command in listed():
        assert re.search(rf"^  {command}\b", commands, re.MULTILINE), command
    named = set(re.findall(r"`%refine (\w+)", "".join(PAGES.values())))
    assert {"accept", "override", "continue", "right", "resume"} <= named <= set(listed())


def test_its_commands_are_what_the_checks_run() -> None:
    script = (ROOT / ".ci/run").read_text("utf-8")
    for page in (README, CONTRIBUTING):
        assert 'pip install -e ".[test]" && pytest' in page
    assert 'pip install -e ".[test]" && pytest' in script
    assert 'pip install -e ".[local]" && ipyrefine demo' in README


async def test_its_python_examples_work_together() -> None:
    """The profile, the check and the provider it shows make a run."""
    space: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, space)
    run = await ipyrefine.refine(
        "One line.",
        model=space["Echo"](),
        profile=space["haiku"],
        checks=[space["three_lines"]],
        journal=False,
    )
    assert run.text == "One line."
    assert [criterion.name for criterion in run.task.criteria] == ["image", "season"]
    assert told(run, 0)[0].words.startswith("It has 1 lines.")


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name: str) -> None:
    page = PAGES[name]
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) <= anchors
    links = re.findall(r"\]\(((?!http|#)[^)]+)\)", page)
    assert all(((ROOT / name).parent / link).exists() for link in links)


def test_every_notebook_is_listed() -> None:
    linked = set(re.findall(r"\]\((notebooks/[^)]+)\)", README))
    assert {str(path.relative_to(ROOT)) for path in ROOT.glob("notebooks/*.ipynb")} <= linked
    rows = re.findall(r"^\| \[\d\d\]\(([^)]+)\) \|", TEACHERS, re.MULTILINE)
    assert rows == sorted(path.name for path in ROOT.glob("notebooks/*.ipynb"))


def test_every_bench_has_a_line() -> None:
    for path in (ROOT / "bench").glob("*.py"):
        if '__name__ == "__main__"' in path.read_text("utf-8"):
            assert f"| `{path.name}` |" in BENCHES, path.name


def test_the_page_on_security_has_the_sandboxs_table() -> None:
    rows = [line for line in (sandbox.__doc__ or "").splitlines() if line.startswith("|")]
    assert "\n".join(rows) in (ROOT / "SECURITY.md").read_text("utf-8")


def test_the_citation_has_the_projects_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
