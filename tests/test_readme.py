"""What the README promises is there."""

import re
from pathlib import Path
from typing import Any

import ipyrefine
from ipyrefine.core.prompts import PLACES
from ipyrefine.notebook.options import limits, parse, parser
from ipyrefine.profiles import NAMES
from ipyrefine.session.commands import COMMANDS

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_every_option_of_the_magic_is_in_the_table_and_no_other() -> None:
    table = README.split("## Options of `%%refine`")[1].split("\n\n")[1]
    named = set(re.findall(r"`(--?[a-z-]+)`", table))
    assert named == set(parser().options)


def test_the_places_of_prompts_are_those_of_the_help() -> None:
    table = README.split("### Your own prompts")[1].split("\n\n")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE))
    assert {stage: set(re.findall(r"{(\w+)}", row)) for stage, row in rows.items()} == {
        stage: set(re.findall(r"{(\w+)}", places)) for stage, places in PLACES.items()
    }


def test_every_loop_has_three_lines_and_a_cell_that_can_be_parsed() -> None:
    section = README.split("## Coming from another loop")[1].split("\n## ")[0]
    loops = re.split(r"^\*\*.+\*\*$", section, flags=re.MULTILINE)[1:]
    assert len(loops) == 5
    for loop in loops:
        assert len(re.findall(r"^- ", loop, re.MULTILINE)) == 3
        lines = re.findall(r"`%%refine (.+?)`", loop)
        assert lines
        for line in lines:
            assert limits(parse(line), {}).max_revisions >= 1


def test_every_command_is_named() -> None:
    lists = {"models", "profiles"}  # their names say what they list
    for command in set(COMMANDS) - lists:
        assert re.search(rf"`(%refine )?{command}\b", README), command


def test_every_profile_is_named() -> None:
    assert all(f"`{name}`" in README for name in NAMES)


def test_its_pictures_are_there() -> None:
    pictures = re.findall(r"!\[[^]]*\]\(((?!http)[^)]+)\)", README)
    assert pictures
    assert all((Path(__file__).parents[1] / picture).is_file() for picture in pictures)


def test_its_two_commands_are_what_the_checks_run() -> None:
    script = (Path(__file__).parents[1] / ".ci/run").read_text("utf-8")
    assert 'pip install -e ".[test]" && pytest' in README
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
    assert run.iterations[0].findings[0].problem.startswith("It has 1 lines.")


def test_every_notebook_is_listed_and_every_link_leads_somewhere() -> None:
    root = Path(__file__).parents[1]
    linked = re.findall(r"\]\(((?!http|#)[^)]+)\)", README)
    headings = re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= anchors
    assert all((root / link).exists() for link in linked)
    assert {str(path.relative_to(root)) for path in root.glob("notebooks/*.ipynb")} <= set(linked)


def test_every_module_has_an_owner_line() -> None:
    rooms = Path(ipyrefine.__file__).parent.iterdir()
    for room in rooms:
        if room.stem.startswith("__") or room.name in ("errors.py", "py.typed"):
            continue
        assert f"`{room.name}{'/' if room.is_dir() else ''}`" in README, room.name
