"""`%%refine` and its options in a real shell without a kernel, on a scripted model."""

from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.oinspect import getdoc
from kit import READY
from shells import run_cell, scripted_shell
from traitlets.config import Config

from ipyrefine.errors import UsageError
from ipyrefine.notebook import magic, options

CODE = "```python\ndef inc(n):\n    return n + 1\n```"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    replies = [CODE, READY, CODE, READY]
    return scripted_shell(monkeypatch, replies)


@pytest.mark.parametrize(
    ("budget", "bounds"),
    [
        ("20k tokens, 30 calls, $0.05, 2 min",
         {"tokens": 20_000, "calls": 30, "cost": 0.05, "seconds": 120}),
        ("10k prompt tokens, 5k completion tokens, 12k tokens",
         {"prompt_tokens": 10_000, "completion_tokens": 5_000, "tokens": 12_000}),
        ("10k input tokens, 5 K Output Tokens",
         {"prompt_tokens": 10_000, "completion_tokens": 5_000}),
    ],
)  # fmt: skip
def test_a_budget_reads_tokens_of_each_side_calls_money_and_time(budget, bounds):
    assert options.parse_budget(budget).model_dump(exclude_none=True) == bounds


@pytest.mark.parametrize(
    ("budget", "sentence"),
    [
        ("10k prompt", "'10k prompt' is not an amount"),
        ("5 prompt calls", "is not an amount"),
        ("-1 tokens", "is not an amount"),
        ("0 calls", "is not an amount"),
        ("$0", "is not an amount"),
        ("1.2.3 s", "is not an amount"),
        ("5k tokens, 6k tokens", "--budget bounds the tokens twice"),
        ("5k input tokens, 6k prompt tokens", "bounds the prompt tokens twice"),
    ],
)
def test_a_budget_that_cannot_be_read_names_the_part(budget, sentence):
    with pytest.raises(UsageError, match=sentence):
        options.parse_budget(budget)


def test_its_documentation_lists_the_options_and_where_the_commands_are(shell):
    text = getdoc(shell.find_cell_magic("refine")) or ""
    assert "--max-revisions" in text
    assert "%refine?" in text


@pytest.mark.parametrize(("name", "value"), [
    ("share", "everything"),
    ("journal", "no"),
    ("set", {"target": 9}),
])  # fmt: skip
def test_a_configuration_that_cannot_be_used_is_a_sentence(shell, name, value):
    shell.config = Config({"Refine": {name: value}})
    with pytest.raises(UsageError, match=rf"(?s){name}.*Mend it in ipython_config\.py"):
        magic.load(shell)


@pytest.mark.parametrize(
    ("typed", "status"), [("%%refine -n 1\n", "incomplete"), ("%%refine\nWrite f.\n\n", "complete")]
)
def test_a_terminal_waits_for_the_body_and_ends_at_a_blank_line(shell, typed, status):
    assert shell.check_complete(typed)[0] == status


@pytest.mark.parametrize("above", ["", "# Exercise 3\n", "\n# Exercise 3\n  # it's hard\n\n"])
def test_below_comments_or_none_doctests_reach_the_task_as_they_were_written(shell, above):
    run_cell(shell, f"{above}%%refine -c examples\nWrite inc(n).\n\n>>> inc(1)\n2\n")
    assert shell.user_ns["refined_run"].task.text == "Write inc(n).\n\n>>> inc(1)\n2"


def completions(shell: Any, typed: str) -> set[str]:
    """What a line becomes by each completion that every matcher of the shell offers."""
    shell.Completer.use_jedi = False  # loading it takes a second or two
    with provisionalcompleter():
        found = list(shell.Completer.completions(typed, len(typed)))
    return {typed[: c.start] + c.text for c in found}


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("%%refine --ch", ["--change", "--check"]),
        ("%%refine -c ex", ["examples"]),
        ("%%refine -p pro", ["prose"]),
        ("%%refine --var pri", ["prices"]),
        ("%%refine --apply r", ["replace"]),
        ("%%refine -m qwen2.5-coder-0", ["qwen2.5-coder-0.5b"]),
        ("%%refine --set effort=", ["effort=low", "effort=medium", "effort=high"]),
        ("%refine acc", ["accept"]),
        ("%%refine --set te", ["temperature="]),
        ("%%refine --evaluator qwen2.5-coder-0", ["qwen2.5-coder-0.5b"]),
        ("%refine fix --set quiet=yes --apply r", ["replace"]),
    ],
)
def test_tab_offers_options_fitting_values_and_commands_and_nothing_else(shell, typed, offered):
    shell.user_ns.update(mine=lambda text: True, mine_too={"criteria": {}}, prices=[1])
    word = typed.split(" ")[-1].lstrip("'")
    assert completions(shell, typed) == {typed.removesuffix(word) + text for text in offered}


@pytest.mark.parametrize(
    "typed",
    ["%%refine --max-revisions ", "%%refine --budget ", "%%refine --budget '20k to",
     "%%refine --goal ",
     "%%refine --set name=ma", "%%refine --set temperature=", "%%refine xyz", "%refine xyz",
     "%refine show 1 "],
)  # fmt: skip
def test_where_nothing_fits_tab_changes_nothing(shell, typed):
    assert completions(shell, typed) == {typed}


@pytest.mark.parametrize("typed", ["%%lo", "%%refine -n 3\npri", "x = 1\n%%refi", "pri"])
def test_elsewhere_tab_works_as_before(shell, typed):
    assert {"print", "%%look", "%%refine"} & {
        line.split("\n")[-1] for line in completions(shell, typed)
    }
