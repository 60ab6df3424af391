"""The options of `%%refine`: their table, what their help says, and what a near-miss says."""

import re
from typing import Any

import pytest
from shells import run_cell, scripted_shell
from traitlets import TraitError

from ipyrefine.core.prompts import APPENDED, PLACES, Prompts
from ipyrefine.errors import UsageError
from ipyrefine.notebook import options

PLACE = re.compile(r"\{(\w+)\}")
# Options that take more than a word, as they are typed, and what that means.
VALUES: dict[str, tuple[str, Any]] = {
    "lines": ("3-7", (3, 7)), "var": ("df", ["df"]), "check": ("run", ["run"]),
    "context": ("5", 5), "target": ("0.9", 0.9), "max-revisions": ("0", 0),
}  # fmt: skip
SET: dict[str, tuple[str, Any]] = {
    "as": ("task", True), "language": ("c++", "c++"), "revise": ("sample", "sample"),
    "base": ("latest", "latest"), "delta": ("0.01", 0.01), "temperature": ("0.7", 0.7),
    "seed": ("1", 1), "max_tokens": ("900", 900), "effort": ("low", "low"),
    "price": ("0.15,0.60", "0.15,0.60"), "timeout": ("60", 60.0), "name": ("letter", "letter"),
    "api_key_env": ("MY_KEY", "MY_KEY"), "journal": ("no", False), "quiet": ("yes", True),
    "unconfined": ("no", False), "cell": ("a1", "a1"), "above": ("1", 1),
}  # fmt: skip


def test_options_and_settings_take_their_value_on_the_line_and_settings_for_all_cells_too():
    assert {*options.SETTINGS} == {*SET}
    nothing = options.parse([])
    for name, (typed, meant) in VALUES.items():
        for words in ([f"--{name}", typed], [f"--{name}={typed}"]):
            assert getattr(options.parse(words), name.replace("-", "_")) == meant
    for name, (typed, meant) in SET.items():
        dest = "task" if name == "as" else name
        for words in (["--set", f"{name}={typed}"], [f"--set={name}={typed}"]):
            assert (name, getattr(options.parse(words), dest)) == (name, meant)
        for value in (typed, meant if name not in ("as", "price") else typed):
            assert (name, getattr(options.parse([], {name: value}), dest)) == (name, meant)
        assert getattr(nothing, dest) != meant, name


def test_the_words_of_other_loops_say_what_they_stand_for():
    text = options.parser().format_help()
    for word, option in (
        ("--max-iterations N", "--max-revisions"),
        ("--generator M", "--model"),
        ("--evaluator M", "--judge"),
    ):
        assert re.search(rf"^  {word} +the same as {option}$", text, re.MULTILINE)
    # It counts what follows the draft, as theirs does.
    assert options.limits(options.parse("--max-iterations 0")).max_revisions == 0


MISSES = [
    ("--temperature 1", "There is no option --temperature. Type --set temperature=1."),
    ("--temprature 1", "Did you mean --set temperature=1?"),
    ("--max-tokens 900", "Type --set max_tokens=900."),
    ("--quiet", "Type --set quiet=yes|no."),
    ("--effort hard", "Type --set effort=hard."),
    ("--price '1, 2'", "Type --set 'price=1, 2'."),
    ("--maxrevisions 3", "Did you mean --max-revisions?"),
    ("nonsense", 'no option nonsense; put a value of several words in quotes like "this". %%'),
    ("--goal Make it fast", "There is no option it; put a value of several words in quotes like"),
    ("--set tempratur=1", "There is no setting tempratur. Did you mean --set temperature=1?"),
    ("--set target=0.8", "There is no setting target. Type --target 0.8."),
    ("--set zzz=1", "There is no setting zzz. %%refine? set lists the settings."),
    ("--set temperature", "Type --set temperature=VALUE."),
    ("--set journal=maybe", "--set journal: invalid choice: 'maybe' (choose from "),
    ("--set cell='a b'", "--set cell: 'a b' is not a cell's id."),
    ("--set temperature=9", "--set temperature: input should be less than or equal to 2, not 9.0."),
    ("-", "There is no option -. %%refine?"),
    ("-- -n 0", "There is no option --. %%refine?"),
    ("--nope", "There is no option --nope. %%refine?"),
    ("--goal “make it fast”", 'quotes like "this".'),
    ("--budget ''", "--budget: '' is not an amount like"),
    ("-o get_ipython", "--output 'get_ipython' is a name of Python or IPython. Choose another."),
    ("-o _", "Choose another."),
    ("-o refined_run", "Choose another."),
]


@pytest.mark.parametrize(("line", "sentence"), MISSES)
def test_a_near_miss_says_what_to_type(line, sentence):
    with pytest.raises(UsageError) as caught:
        options.limits(options.parse(line))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "line", ["--api-key-env {}", "--api-key {}", "--set api_key={}", "--set api_key_env={}"]
)
def test_a_key_that_is_typed_for_its_variable_is_not_repeated(line):
    with pytest.raises(UsageError) as caught:
        options.parse(line.format("sk-1234"))
    assert "sk-1234" not in str(caught.value)
    assert "api_key_env" in str(caught.value)


def test_what_is_set_for_all_cells_gives_way_to_a_cells_own_options():
    everywhere = {"target": 0.8, "patience": "off", "no_check": ["run", "results"], "step": True,
                  "plain": False, "timeout": 60, "max_revisions": 9, "seed": 1}  # fmt: skip
    found = options.parse("-n 3 --set timeout=5 --no-check examples", everywhere)
    assert (found.target, found.patience, found.step, found.plain) == (0.8, "off", True, False)
    assert (found.max_revisions, found.timeout, found.seed) == (3, 5.0, 1)
    assert found.no_check == ["run", "results", "examples"]
    # What contradicts is what one line says.
    assert options.parse("--coach", everywhere).coach


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("{'tempratur': 1}", "Refine.set: There is no option or setting tempratur. Did you mean"),
        ("{'target': 2}", "Refine.set: --target: input should be"),
        ("{3: 4}", "Refine.set: There is no option or setting 3."),
        ("{'draft': 'maybe'}", "Refine.set: draft is True or False, not 'maybe'."),
        ("{'journal': False}", "journal has its own setting: %config Refine.journal."),
        ("{'base_url': 'http://a'}", "base_url has its own setting"),
        ("{'api_key_env': 'OPENAI_API_KEY'}", "api_key_env has its own setting"),
    ],
)
def test_what_cannot_be_set_for_all_cells_is_refused_at_once(
    monkeypatch, capsys, caplog, value, sentence
):
    shell = scripted_shell(monkeypatch, [])
    shell.run_line_magic("config", f"Refine.set = {value}")
    assert sentence in capsys.readouterr().err + caplog.text
    assert shell.magics_manager.registry["Refine"].set == {}


@pytest.mark.parametrize(("name", "value"), [("ui", "plian"), ("context", -1), ("context", 51)])
def test_a_trait_takes_only_what_has_a_meaning(monkeypatch, name, value):
    magics = scripted_shell(monkeypatch, []).magics_manager.registry["Refine"]
    with pytest.raises(TraitError):
        setattr(magics, name, value)


# Help


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("%%refine?", "--max-revisions N"),
        ("%%refine??", "--max-revisions N"),
        ("x = 1\n?%%refine", "--max-revisions N"),
        ("%refine?", "  accept [k]"),
        ("x = 1\n%refine?", "  accept [k]"),
        *(
            (f"{magic}? {topic}", f"{topic}:\n")
            for magic in ("%%refine", "%refine")
            for topic in options.TOPICS
        ),
    ],
)
def test_a_question_mark_prints_the_options_the_commands_or_a_topic(
    monkeypatch, capsys, asked, said
):
    shell = scripted_shell(monkeypatch, [])
    assert run_cell(shell, asked).success
    assert capsys.readouterr().out.count(said) == 1


def test_a_topic_that_there_is_not_says_which_there_are_and_a_text_that_asks_is_left(
    monkeypatch, capsys
):
    shell = scripted_shell(monkeypatch, [])
    for asked, sentence in (("chekcs", "Did you mean checks?"), ("zzz", "There are checks, ")):
        assert sentence in str(run_cell(shell, f"%%refine? {asked}").error_in_exec)
    capsys.readouterr()
    run_cell(shell, "print('''\n%refine?\n%%refine? checks\n''')")
    assert capsys.readouterr().out == "\n%refine?\n%%refine? checks\n\n"


def test_the_help_fits_on_a_screen_and_a_half_and_no_line_of_it_or_of_a_topic_is_wrapped(
    monkeypatch,
):
    monkeypatch.setenv("COLUMNS", "300")
    lines = options.parser().format_help().splitlines()
    assert len(lines) <= 75
    assert set(options.TOPICS) <= set(re.findall(r"\w+", " ".join(lines[-3:])))
    # The table of checks keeps one line for each.
    told = [
        line
        for topic in options.TOPICS
        if topic != "checks"
        for line in options.topic(topic).splitlines()
    ]
    assert [line for line in (*lines, *told) if len(line) > 80] == []


def test_the_help_on_prompts_lists_the_places_of_every_stages_prompt():
    words = " ".join(options.topic("prompts").split())
    assert [one for one in PLACES.items() if " ".join(one) not in words] == []
    assert APPENDED in words
    assert set(PLACES) == set(Prompts.model_fields) - {"yes", "fail", "scale"}
    for stage, places in PLACES.items():
        prompt = getattr(Prompts(), stage)
        assert set(PLACE.findall(prompt)) <= set(PLACE.findall(places))
