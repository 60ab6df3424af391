"""Figures in prose are those of docs/measured.md, whose tables are what the benches print."""

import re
from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import Any

import pytest
from numbers_in_words import numbers_in_words

ROOT = Path(__file__).parents[1]
PRINTED = ROOT / "bench/kept/printed"
MEASURED = (ROOT / "docs/measured.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
# What made the tables of a section.
MADE_BY = {
    "Lost rows": ["lost_rows"],
    "Answers": ["answers-mbpp", "answers-mbpp-slips"],
    "HumanEval": ["humaneval", "humaneval-seven"],
    "MBPP+": ["mbpp", "mbpp-seven", "mbpp-vote"],
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


def in_prose(text: str) -> set[str]:
    """The numbers that a page states outside of its tables, code and quotes, words among them."""
    prose = re.sub(r"(?m)^\|.*$", "", re.sub(r'"[^"]*"', "", figures(text)))
    return numbers(prose) | {str(one) for one in numbers_in_words(prose)}


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


# What follows from the tables of a section, and what is no result: bounds, prices, a year.
DERIVED = {
    "HumanEval": {"0.06", "0.75", "1.4", "163"},
    "MBPP+": {"0.02", "1.1"},
    "What a task takes": {"2026"},
}


@pytest.mark.parametrize("name", MADE_BY)
def test_the_numbers_of_a_section_s_prose_are_printed_or_follow_from_what_is(name):
    """In digits or in words. What can't be made again stands under "Measured once"."""
    known = numbers(printed(*MADE_BY[name])) | numbers(" ".join(map(str, tables(sections()[name]))))
    small = {str(n) for n in range(2, 9)}  # "three columns", "two cores"
    assert in_prose(sections()[name]) - known - DERIVED.get(name, set()) - small == set()


def test_ratios_and_small_p_values_follow_from_the_tables():
    for name, ratio in (("humaneval-seven", "1.4"), ("mbpp-seven", "1.1")):
        [row] = [r for r in next(tables(printed(name))) if r[0] == "completion tokens"]
        resampled, ours = (int(cell.replace(",", "")) for cell in row[-2:])
        assert f"{ours / resampled:.1f}" == ratio
    assert "(p = 0.062)" in printed("humaneval")
    assert "p = 0.016)" in printed("mbpp-seven")
    deals = [comb(73, k) * comb(80, 10 - k) / comb(153, 10) for k in range(11)]
    assert f"{sum(p for p in deals if p <= deals[4] * 1.000001):.2f}" == "0.75"


def test_the_parts_that_a_sentence_counts_are_no_more_than_its_total():
    """ "Of the 18 final texts, 5 are the first draft, 1 another draft, and 12 an edit." """
    text = re.sub(r"\s*\([^)]*\)", "", figures(MEASURED))
    found = re.findall(r"\bOf (?:the )?(\d+)\b([^.:|%]+)[.:]", text)
    assert len(found) >= 2
    for total, rest in found:
        parts = [int(one) for one in re.findall(r"(?:^|, (?:and )?)(\d+)\b", rest)]
        assert sum(parts) <= int(total), rest
        if "other" not in rest.replace("another", ""):
            assert sum(parts) in (0, int(total)), rest


def test_means_are_totals_divided_by_their_tasks():
    [table] = tables(sections()["What a task takes"])
    for (name, _, tasks, seconds, cents), total in zip(
        table[1:], (1_563, 1_353, 4.06), strict=True
    ):
        mean = float(seconds) if name != "by hand" else float(cents)
        assert mean == pytest.approx(total / int(tasks), abs=0.5 if name != "by hand" else 0.005)


def test_every_interval_is_the_exact_one(interval):
    shares = re.findall(r"(\d+) of (\d+): (\d+) % \((\d+) to (\d+)\)", MEASURED)
    assert len(shares) > 30
    for share in shares:
        held, of, percent, low, high = map(int, share)
        assert (f"{100 * held / of:.0f}", interval(held, of)) == (str(percent), (low, high)), share


def test_a_share_without_its_total_is_one_of_its_sections(interval):
    words = {"Nine": 9}
    for name, text in sections().items():
        known = {int(n.replace(",", "")) for n in numbers(text) if "." not in n}
        known |= {n for word, n in words.items() if word in text}
        for share in re.findall(r"(?<!of )\b(\d+): (\d+) % \((\d+) to (\d+)\)", text):
            held, percent, low, high = map(int, share)
            totals = [n for n in known if 0 < n <= 500 and n >= held]
            assert any(
                (f"{100 * held / n:.0f}", interval(held, n)) == (str(percent), (low, high))
                for n in totals
            ), (name, share)


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


def test_the_readme_s_figures_are_those_of_the_tables(interval):
    told = figures(README.split("\n## Measured\n")[1].split("\n## ")[0])
    told += figures("**Cost of a task." + README.split("**Cost of a task.")[1].split("\n\n")[0])
    words = {str(one) for one in numbers_in_words(told)}
    assert (numbers(told) | words) - numbers(MEASURED) == {"95"} - numbers(MEASURED)
    assert len(numbers(told)) > 25
    for held, of, low, high in re.findall(r"(\d+) of (\d+)\D*?\((\d+) to (\d+) %\)", told):
        assert interval(int(held), int(of)) == (int(low), int(high))


@pytest.mark.parametrize(
    "name", [path.name for path in ROOT.glob("docs/*.md") if path.name != "measured.md"]
)
def test_no_other_page_states_a_share_that_no_table_has(name):
    page = figures((ROOT / "docs" / name).read_text("utf-8"))
    shares = re.findall(r"\d+ of \d+|[\d.]+ %", page)
    assert [share for share in shares if share not in MEASURED] == []
