"""Figures in prose are those of docs/measured.md, whose tables are what the benches print."""

import json
import re
import tomllib
from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PRINTED = ROOT / "bench/kept/printed"
MEASURED = (ROOT / "docs/measured.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
# What made the tables of a section.
MADE_BY = {
    "Lost rows": ["lost_rows"],
    "Silent bugs": ["silent_bugs", "account_ablation"],
    "Answers": ["answers-mbpp", "answers-mbpp-slips"],
    "HumanEval": ["humaneval"],
    "MBPP+": ["mbpp", "mbpp-vote"],
    "exercism": ["exercism"],
    "IFEval": ["ifeval"],
    "Code or words": ["code_or_words-0.5b", "code_or_words-by-hand"],
    "A strong model, played by hand": ["by_hand"],
    "What a task takes": ["humaneval", "mbpp", "by_hand"],
}
NUMBER = re.compile(r"(?<![\w.,`])\d[\d,]*(?:\.\d+)?(?![\w`])")


def sections() -> dict[str, str]:
    found = re.split(r"^##+ (.+)\n", MEASURED, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def tables(text: str) -> Iterator[list[list[str]]]:
    """Each table as its rows of cells, the head first."""
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        rows = [[cell.strip() for cell in line[1:-2].split("|")] for line in block.splitlines(True)]
        yield [rows[0], *rows[2:]]


def numbers(text: str) -> set[str]:
    return {one.rstrip(",") for one in NUMBER.findall(text)}


def printed(*names: str) -> str:
    return "\n".join((PRINTED / f"{name}.md").read_text("utf-8") for name in names)


@pytest.fixture
def interval(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "bench")
    from measure import exact_interval

    def rounded(held: int, of: int) -> tuple[int, int]:
        low, high = exact_interval(held, of)
        return int(f"{100 * low:.0f}"), int(f"{100 * high:.0f}")

    return rounded


def test_what_is_printed_belongs_to_a_section():
    assert {path.stem for path in PRINTED.glob("*.md")} == {
        n for one in MADE_BY.values() for n in one
    }


@pytest.mark.parametrize("name", MADE_BY)
def test_the_numbers_of_a_section_s_tables_are_what_its_benches_print(name):
    made = numbers(printed(*MADE_BY[name]))
    for head, *rows in tables(sections()[name]):
        theirs = [
            n for n, cell in enumerate(head) if "tests" not in cell and "findings" not in cell
        ]
        for row in rows:
            if row[0] == "verbs":  # what decided before, which is gone
                continue
            shown = numbers(" ".join(row[n] for n in theirs[1:]))
            means = {"19", "37", "0"} if name == "What a task takes" else set()
            assert shown - made - means == set(), row[0]


def test_small_p_values_follow_from_the_tables():
    assert "(p = 0.062)" in printed("humaneval")
    deals = [comb(66, k) * comb(76, 10 - k) / comb(142, 10) for k in range(11)]
    assert f"{sum(p for p in deals if p <= deals[4] * 1.000001):.2f}" == "0.75"


def test_means_are_totals_divided_by_their_tasks():
    [table] = tables(sections()["What a task takes"])
    for (name, _, tasks, seconds, cents), total in zip(
        table[1:], (1_563, 1_353, 3.81), strict=True
    ):
        mean = float(seconds) if name != "by hand" else float(cents)
        assert mean == pytest.approx(total / int(tasks), abs=0.5 if name != "by hand" else 0.005)


def test_every_interval_is_the_exact_one(interval):
    shares = re.findall(r"(\d+) of (\d+): (\d+) % \((\d+) to (\d+)\)", MEASURED)
    assert len(shares) > 30
    for share in shares:
        held, of, percent, low, high = map(int, share)
        assert (f"{100 * held / of:.0f}", interval(held, of)) == (str(percent), (low, high)), share


def test_parts_add_up_to_their_totals():
    checked = 0
    for head, *rows in tables(MEASURED):
        if head[-1] in ("both", "all"):
            for row in rows:
                shares = [re.match(r"(\d+) of (\d+)", cell) for cell in row[1:]]
                assert all(shares), row
                parts = [tuple(map(int, one.groups())) for one in shares if one]
                assert tuple(map(sum, zip(*parts[:-1], strict=True))) == parts[-1], row
                checked += 1
    assert checked > 5


def test_a_wrong_answer_is_stopped_told_or_neither():
    table = next(tables(sections()["What the first two lines tell of public answers"]))
    fates = [row for row in table[1:] if row[0].startswith("wrong ones")]
    for column in range(1, len(table[0])):
        parts = [re.match(r"(\d+) of (\d+)", row[column]) for row in fates]
        held, of = zip(*(map(int, one.groups()) for one in parts if one), strict=True)
        assert {sum(held)} == {*of}


def figures(text: str) -> str:
    """Prose without code, quoted outputs and links."""
    text = re.sub(r"```.*?```|`[^`]*`|^> .*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\]\([^)]*\)", "]", text)


class Figure(str):
    """A number as it was printed, which a format may round."""

    def __format__(self, how: str) -> str:
        return f"{float(self.replace(',', '')):{how}}" if how else self


def figures_at(place: str) -> list[Figure]:
    """The numbers at ``SOURCE | ROW | COLUMN`` of a table, or in the line ``SOURCE | WORDS``.

    The source is what a bench printed, else a section of the page.
    """
    source, *words = place.split(" | ")
    text = printed(source) if (PRINTED / f"{source}.md").exists() else sections()[source]
    lines = [line for line in text.splitlines() if words[0] in line and not words[1:]]
    for head, *rows in tables(text):
        if words[-1] in head:
            lines += [row[head.index(words[-1])] for row in rows if row[0] == words[0]]
    assert len(lines) == 1, place
    return [*map(Figure, NUMBER.findall(lines[0]))]


def sentences(page: str) -> set[str]:
    """The sentences of a page that state a number, outside of tables, code and quotes."""
    text = re.sub(
        r"```.*?```|(?m:^[|#>][^\n]*$)|(?m:^\s*(?:- |\d+\. ))", "\n\n", page, flags=re.DOTALL
    )
    parts = re.split(r"\n\s*\n|(?<=[.!?])\s+(?=[A-Z\d`*\[(])", text)
    spoken = {" ".join(part.split()): re.sub(r'"[^"]*"', "", figures(part)) for part in parts}
    return {sentence for sentence, bare in spoken.items() if NUMBER.search(bare)}


def pages() -> dict[str, str]:
    """What states measurements: the page of them, two parts of the README, and notebooks' cells."""
    measured = README.split("\n## Measured\n")[1].split("\n## ")[0]
    cost = "**Cost of a task." + README.split("**Cost of a task.")[1].split("\n\n")[0]
    found = {"README.md": f"{measured}\n\n{cost}", "docs/measured.md": MEASURED}
    for path in ROOT.glob("notebooks/*.ipynb"):
        cells = ["".join(one["source"]) for one in json.loads(path.read_text("utf-8"))["cells"]]
        if told := [one for one in cells if re.search(r"MBPP\+|HumanEval", one) and one[0] != "%"]:
            found[f"notebooks/{path.name}"] = "\n\n".join(told)
    return found


HELD = tomllib.loads((ROOT / "tests/sentences.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", pages())
def test_each_sentence_with_a_figure_is_the_one_that_its_bench_s_output_fills(name):
    cells = {name: figures_at(place) for name, place in HELD["figures"].items()}
    filled = {one.format(**cells) for one in HELD["sentences"][name]}
    assert sentences(pages()[name]) == filled


def test_a_person_judged_as_many_answers_told_as_the_page_says():
    kept = (ROOT / "bench/kept/known_told.jsonl").read_text("utf-8").splitlines()
    told = sum(json.loads(line)["told"] for line in kept)
    section = "What the first two lines tell of public answers"
    assert figures_at(f"{section} | wrong ones told in the first two lines | all")[0] == str(told)


@pytest.mark.parametrize(
    "name", [path.name for path in ROOT.glob("docs/*.md") if path.name != "measured.md"]
)
def test_no_other_page_states_a_share_that_no_table_has(name):
    page = figures((ROOT / "docs" / name).read_text("utf-8"))
    shares = re.findall(r"\d+ of \d+|[\d.]+ %", page)
    assert [share for share in shares if share not in MEASURED] == []
