"""What the README, `docs/`, CONTRIBUTING and the docstrings they lead to promise."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from IPython.utils.capture import capture_output
from kit import READY, told
from shells import error_of, loaded_shell

import ipyrefine
from ipyrefine.checks import BUILTIN
from ipyrefine.core.actions import commands as listed
from ipyrefine.core.decisions import Accept
from ipyrefine.core.sharing import LEVELS
from ipyrefine.notebook.magic import Refine
from ipyrefine.notebook.options import limits, parse, parser
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.sandbox import sandbox
from ipyrefine.session.commands import usage

ROOT = Path(__file__).parents[1]
NAMES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md")
NAMES += ("notebooks/README.md", "notebooks/GLOSSARY.md")
PAGES = {
    name: (ROOT / name).read_text("utf-8")
    for name in (*NAMES, *(f"docs/{path.name}" for path in sorted(ROOT.glob("docs/*.md"))))
}
README, CONTRIBUTING, _, BENCHES, TEACHERS = [PAGES[name] for name in NAMES[:-1]]
LOOPS = ("generator_evaluator", "feedback_lists", "scored_loop", "chain_of_thought", "four_phases")


def section(page: str, heading: str) -> str:
    return page.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def help_text() -> str:
    """What `%%refine?` shows."""
    return str(Refine.refine.getdoc())


def test_every_option_of_the_magic_is_in_its_help_and_no_other():
    lines = re.findall(r"^  -.+$", help_text().split("\nexamples:\n")[0], re.MULTILINE)
    named = {name for line in lines for name in re.findall(r"(?:^  |, )(--?[a-z-]+)", line)}
    assert named == set(parser().options)


def test_the_table_of_options_has_each_purpose_with_options_of_it():
    rows = re.findall(
        r"^\| ([a-z ]+) \| (.*`.*) \|$",
        section(PAGES["docs/options.md"], "By purpose"),
        re.MULTILINE,
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


def test_every_loop_has_a_row_and_its_tests_say_what_differs():
    rows = [line for line in PAGES["docs/loops.md"].splitlines() if "`%%refine " in line]
    assert len(rows) == len(LOOPS)
    for row, name in zip(rows, LOOPS, strict=True):
        path = f"tests/conformance/test_{name}.py"
        assert f"(../{path})" in row
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


def test_every_command_is_named_in_the_help_and_the_readmes_exist():
    commands = usage()
    for command in listed():
        assert re.search(rf"^  {command}\b", commands, re.MULTILINE), command
    named = set(re.findall(r"`%refine (\w+)", "".join(PAGES.values())))
    assert {"accept", "override", "continue", "right", "resume"} <= named <= set(listed())


def test_its_commands_are_what_the_checks_run():
    script = (ROOT / ".ci/run").read_text("utf-8")
    for page in (README, CONTRIBUTING):
        assert 'pip install -e ".[test]" && pytest' in page
    assert 'pip install -e ".[test]" && pytest' in script
    assert 'pip install -e ".[local]" && ipyrefine demo' in README


def python_of(name: str) -> dict[str, Any]:
    """What the Python on a page defines."""
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.+?)```", PAGES[name], re.DOTALL):
        exec(block, space)
    return space


@pytest.mark.parametrize("name", [name for name, page in PAGES.items() if "```python" in page])
def test_the_python_on_a_page_runs(name):
    assert python_of(name)


async def test_the_profile_the_checks_and_the_model_of_the_docs_make_a_run():
    checks = python_of("docs/checks.md")
    run = await ipyrefine.refine(
        "One line.",
        model=python_of("docs/extending.md")["Echo"](),
        profile=checks["haiku"],
        checks=[checks["three_lines"], checks["evaluate"]],
        max_revisions=0,
        journal=False,
    )
    assert run.text == "One line."
    assert [criterion.name for criterion in run.task.criteria] == ["image", "season"]
    assert {one.words.split(".")[0] for one in told(run, 0)} >= {"It has 1 lines"}
    assert "Thank them for the order." in str(run.iterations[0].evidence)


async def test_the_task_in_python_of_the_docs_returns_what_it_says():
    writes = python_of("docs/options.md")["write"]
    replies = ["```python\ndef inc(x):\n    return x + 1\n```", READY]
    found = await writes("Write inc(x). inc(1) == 2", ScriptedModel(replies))
    assert [str(one) for one in found[1:]] == ["PASS", "passed"]


async def test_the_panel_of_the_docs_hands_on_what_is_accepted():
    space = python_of("docs/extending.md")
    slug = "```python\ndef slug(title):\n    return title.lower().replace(' ', '-')\n```"
    panel, box = space["panel_for"](ScriptedModel([slug, READY]))
    assert panel in box.children
    panel.start()
    await panel.wait()
    panel.decide(Accept())
    await panel.wait()
    assert space["result"].value.startswith("def slug(title)")


def test_the_docs_list_the_checks_and_what_can_be_shared():
    checks = section(PAGES["docs/checks.md"], "Checks")
    assert re.findall(r"^\| `(\w+)", checks, re.MULTILINE) == [one.name for one in BUILTIN.values()]
    leaves = section(PAGES["docs/privacy.md"], "What leaves")
    assert tuple(re.findall(r"^\| `(\w+)` \|", leaves, re.MULTILINE)) == LEVELS


def test_every_public_name_is_in_the_docs_and_no_other():
    table = section(PAGES["docs/extending.md"], "What is public")
    heads = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(heads))) == ipyrefine.__all__
    assert all(getattr(ipyrefine, name) is not None for name in ipyrefine.__all__)


def test_the_first_cell_of_the_readme_says_what_it_promises(monkeypatch):
    """Without a model, in a shell of its own."""
    [frames] = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    [cell] = re.findall(r"```\n(%%look\n.+?)```", README, re.DOTALL)
    promised = re.findall(r"^> (.+?)\\?$", README, re.MULTILINE)
    shell = loaded_shell(monkeypatch)
    shell.run_cell(frames)
    with capture_output() as captured:
        assert error_of(shell, cell) is None
    shown = " ".join(captured.stdout.split())
    assert len(promised) >= 2
    assert [line for line in promised if line not in shown] == []


def test_the_readme_is_short_and_leads_to_every_page():
    assert len(README.splitlines()) <= 95
    pages = {name for name in PAGES if name.startswith("docs/")}
    assert pages <= set(re.findall(r"\]\(([^)#]+)", README))


def anchors_of(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name):
    for link in re.findall(r"\]\(((?!http)[^)]+)\)", PAGES[name]):
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target.read_text("utf-8")), link


def test_every_notebook_is_listed():
    linked = set(re.findall(r"\]\((notebooks/[^)]+)\)", README))
    assert {str(path.relative_to(ROOT)) for path in ROOT.glob("notebooks/*.ipynb")} <= linked
    rows = re.findall(r"^\| \[\d\d\]\(([^)]+)\) \|", TEACHERS, re.MULTILINE)
    assert rows == sorted(path.name for path in ROOT.glob("notebooks/*.ipynb"))


def test_every_bench_has_a_line():
    for path in (ROOT / "bench").glob("*.py"):
        if '__name__ == "__main__"' in path.read_text("utf-8"):
            assert f"| `{path.name}` |" in BENCHES, path.name


def test_the_page_on_security_has_the_sandboxs_table():
    rows = [line for line in (sandbox.__doc__ or "").splitlines() if line.startswith("|")]
    assert "\n".join(rows) in (ROOT / "SECURITY.md").read_text("utf-8")


def test_on_the_package_index_every_link_of_the_readme_and_its_picture_lead_to_a_file():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    page = README
    for one in settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(one["pattern"], one["replacement"], page)
    assert re.findall(r"\]\((?!https://)[^)]+|src=\"(?!https://)[^\"]+", page) == []
    source = settings["project"]["urls"]["Source"]
    raw = source.replace("github.com", "raw.githubusercontent.com")
    paths = re.findall(rf"{re.escape(source)}/blob/HEAD/([^)#]+)", page)
    [picture] = re.findall(rf'src="{re.escape(raw)}/HEAD/([^"]+)', page)
    assert len(paths) == len(re.findall(r"\]\((?!http)", README)) > 20
    assert [one for one in [*paths, picture] if not (ROOT / one).is_file()] == []


def test_the_badge_and_the_demo_open_the_notebook_that_needs_no_model():
    [opened] = re.findall(r"urlpath=lab/tree/notebooks/([\w.-]+)", README)
    assert opened == min(path.name for path in ROOT.glob("notebooks/*.ipynb"))
    assert f'"{opened}"' in (ROOT / "src/ipyrefine/demo/__init__.py").read_text("utf-8")
    assert ipyrefine.load(ROOT / "notebooks" / opened), "it shows its run before it is executed"


def test_the_project_has_one_address_and_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    [badge] = re.findall(r"mybinder\.org/v2/gh/([\w-]+/[\w-]+)/", README)
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {project['version']}\n" in citation
    [cited] = re.findall(r"(?m)^repository-code: (.+)$", citation)
    assert cited == f"https://github.com/{badge}"
    assert all(url.startswith(cited) for url in project["urls"].values())
