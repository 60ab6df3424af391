"""The options of `%%refine`: what their help says besides the options themselves."""

import re

from ipyrefine.core.prompts import APPENDED, PLACES, Prompts
from ipyrefine.notebook import options

PLACE = re.compile(r"\{(\w+)\}")


def test_the_help_lists_every_stages_places():
    section = options.parser().format_help().split("\nprompts:\n")[1]
    words = " ".join(section.split())
    for stage, places in PLACES.items():
        assert f"{stage} {places}" in words
    assert APPENDED in words


def test_the_list_of_places_is_that_of_the_prompts():
    assert set(PLACES) == set(Prompts.model_fields)
    for stage, prompt in Prompts():
        assert set(PLACE.findall(prompt)) <= set(PLACE.findall(PLACES[stage]))


def test_the_help_has_no_line_that_a_terminal_would_wrap(monkeypatch):
    """The table of checks aside, which keeps one line for each."""
    monkeypatch.setenv("COLUMNS", "80")
    text = options.parser().format_help()
    table = text.split("\nchecks:\n")[1].split("\n\n")[0]
    assert all(len(line) < 80 for line in text.replace(table, "").split("\n"))
