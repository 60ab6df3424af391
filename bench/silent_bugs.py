# ruff: noqa: E501
"""Look at right cells and at cells with one injected bug that runs, without a model.

``python bench/silent_bugs.py --out DIR [--only TEXT]`` needs no model, but pandas and scikit-learn.
72 pairs are drawn by a seed from data that scikit-learn ships, twelve of each kind: reads (rows or
values that a reader's argument leaves out), missing values, joins, filters, another statistic than
the one that is asked for, and exceptions that are swallowed. They were drawn, and their tells
written, before the code that says what happened to data.

Each cell is the draft of a run that asks nobody, as in ``%%refine --draft -n 0``. A wrong one is
visible if one of its first three lines has one of its `tells`, words that only its bug accounts
for: the number of rows that it loses, the argument that loses them, the exception. A bug that no
line can show, such as the median in place of the mean, has none and counts as not visible. For the
right ones the table says how many are stopped, and every line about them is printed, so that what
is untrue can be counted by a reader.

Each result is a line of DIR/silent_bugs.jsonl, so a bench that was stopped goes on where it was.
``--validate`` runs the pairs here instead: a wrong cell must run and give something else.
"""

import contextlib
import os
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import lost_rows
import measure
import sessions
from facts import lines_of
from sessions import Results, share
from tqdm import tqdm

KINDS = ("reads", "missing values", "joins", "filters", "another statistic", "swallowed exceptions")
SEED, PAIRS = 69, 12  # of each kind
_FIRST = 3  # lines that everybody reads
_START = """import numpy as np
import pandas as pd
from sklearn.datasets import load_{data}

{name} = load_{data}(as_frame=True).frame
{name}.columns = [one.replace(" (cm)", "").replace(" ", "_").replace("/", "_") for one in {name}]
"""
_GROUPS = """{name}["{group}"] = load_{data}().target_names[{name}.pop("target")].astype(object)
"""
# The name, the column of groups, and columns of numbers of each set that is drawn from.
SETS = {
    "iris": ("flowers", "species", ["sepal_length", "sepal_width", "petal_length", "petal_width"]),
    "wine": ("wines", "cultivar", ["alcohol", "malic_acid", "ash", "magnesium", "proline", "hue"]),
    "breast_cancer": (
        "tumours",
        "kind",
        ["mean_radius", "mean_texture", "mean_area", "worst_area", "mean_smoothness"],
    ),
}
Pair = dict[str, Any]


class Draw:
    """A set with the column, the group and the numbers that one pair is about."""

    def __init__(self, dice: random.Random) -> None:
        self.dice, self.data = dice, dice.choice([*SETS])
        self.name, self.group, columns = SETS[self.data]
        self.column, self.other = dice.sample(columns, 2)
        self.start = _START.format(data=self.data, name=self.name)
        self.start += _GROUPS.format(data=self.data, name=self.name, group=self.group)
        space = dict[str, Any]()
        exec(self.start, space)
        self.frame: Any = space[self.name]
        self.rows = len(self.frame)
        self.groups = [*dict.fromkeys(self.frame[self.group])]

    def holes(self) -> tuple[str, int]:
        """Return code that takes values out of the column, and how many it takes."""
        count = self.dice.randint(7, 23)
        seed = self.dice.randint(1, 999)
        code = (
            f"holes = {self.name}.sample({count}, random_state={seed}).index\n"
            f'{self.name}.loc[holes, "{self.column}"] = np.nan\ndel holes\n'
        )
        return code, count

    def mean(self, of: str, how: str = "mean") -> str:
        """Return code for a statistic of the column in each group."""
        return f'{of}.groupby("{self.group}")["{self.column}"].{how}()'

    def file(self, code: str = "") -> str:
        """Return code that puts the rows into a file, which is all that the notebook has."""
        return f'{self.start}{code}{self.name}.to_csv("{self.name}.csv", index=False)\ndel {self.name}\n'


def _of(rows: int, total: int) -> list[str]:
    return [f"{rows:,} of {total:,}", f"{total - rows:,} of {total:,}"]


# The kinds: each yields its task, what the notebook holds, both cells and the tells.


def reads(d: Draw, number: int) -> Pair:
    """One argument of a reader, or one line in front of a loop, leaves rows or values out."""
    file, some = f'"{d.name}.csv"', d.dice.randint(d.rows // 2, d.rows - 10)
    value = d.frame[d.column].round(3).mode()[0]
    least = d.frame[d.column].min()
    numbers = int((d.frame[d.column] == least).sum())
    skipped = d.dice.randint(2, 9)
    arguments: list[tuple[str, list[str]]] = [
        (f"nrows={some}", ["nrows", *_of(some, d.rows)]),
        (f"skiprows=range(1, {skipped + 1})", ["skiprows", *_of(skipped, d.rows)]),
        (f"na_values=[{least}]", ["na_values", f"{numbers:,} of {d.rows:,}"]),
        (f'skipfooter={skipped}, engine="python"', ["skipfooter", *_of(skipped, d.rows)]),
        (f"skiprows=lambda n: n % {skipped} == 1", ["skiprows"]),
        (f'na_values={{"{d.column}": [{least}]}}', ["na_values", f"{numbers:,} of {d.rows:,}"]),
        (f"nrows={d.rows - 1}", ["nrows", *_of(1, d.rows)]),
    ]
    pandas = f"frame = pd.read_csv({file}{{}})\n{d.mean('frame')}\n"
    loops = [
        (
            "import csv\nfrom collections import defaultdict\n\nfound = defaultdict(list)\n"
            f"with open({file}) as lines:\n    rows = csv.DictReader(lines){{}}\n    for row in rows:\n"
            f'        found[row["{d.group}"]].append(float(row["{d.column}"]))\n'
            "{{group: sum(some) / len(some) for group, some in found.items()}}\n"
        ),
    ]
    task = f"What is the mean {d.column} of each {d.group} in {d.name}.csv?"
    if number < 9:
        argument, tells = arguments[number % len(arguments)]
        if "lambda" in argument:
            left = sum(n % skipped == 1 for n in range(1, d.rows + 1))
            tells = [*tells, *_of(left, d.rows)]
        right, wrong = pandas.format(""), pandas.format(f", {argument}")
    else:
        right, wrong = loops[0].format(""), loops[0].format("\n    next(rows)")
        tells = [*_of(1, d.rows)]
    del value
    return {"task": task, "setup": d.file(), "right": right, "wrong": wrong, "tells": tells}


def missing(d: Draw, number: int) -> Pair:
    """Values that are missing are filled, or take rows of other values with them."""
    code, count = d.holes()
    task = f"What is the mean {d.column} of each {d.group}, of those where it is known?"
    right = d.mean(d.name) + "\n"
    other = f'{d.name}.loc[{d.name}.index % {d.dice.randint(5, 9)} == 0, "{d.other}"] = np.nan\n'
    space = dict[str, Any]()
    exec(d.start + code + other, space)
    whole = len(space[d.name].dropna())
    filled = [f"{count:,} missing", f"{count:,} of {d.rows:,}"]
    whole_tells = [*_of(whole, d.rows)]
    column = f'{d.name}["{d.column}"]'
    wrongs: list[tuple[str, list[str], str]] = [
        (f"{d.name} = {d.name}.fillna(0)\n{d.mean(d.name)}\n", filled, ""),
        (f"known = {d.name}.dropna()\n{d.mean('known')}\n", whole_tells, other),
        (f"{column} = {column}.ffill()\n{d.mean(d.name)}\n", filled, ""),
        (f"{column} = {column}.fillna({column}.median())\n{d.mean(d.name)}\n", filled, ""),
        (f"{column} = np.nan_to_num({column})\n{d.mean(d.name)}\n", filled, ""),
        (f"{d.mean(d.name + '.dropna()')}\n", whole_tells, other),
        (f"{d.mean(d.name + '.fillna(0)')}\n", filled, ""),
        (f"{column} = {column}.interpolate()\n{d.mean(d.name)}\n", filled, ""),
        (f"{d.mean(d.name)[:-7]}.apply(lambda some: some.sum() / len(some))\n", filled, ""),
        (f"{d.mean(d.name + '.replace(np.nan, -1)')}\n", filled, ""),
        (f"clean = {d.name}.bfill()\n{d.mean('clean')}\n", filled, ""),
        (
            f'{d.name}.groupby("{d.group}")["{d.column}"].agg(lambda some: np.mean(some.values))\n',
            filled,
            "",
        ),
    ]
    wrong, tells, more = wrongs[number]
    return {
        "task": task,
        "setup": d.start + code + more,
        "right": right,
        "wrong": wrong,
        "tells": tells,
    }


def joins(d: Draw, number: int) -> Pair:
    """A key that the other table lacks, has twice, or writes in another way."""
    lost, kept = d.groups[0], d.groups[1:]
    count = int((d.frame[d.group] == lost).sum())
    twice = int((d.frame[d.group] == kept[0]).sum())
    prices = {one: round(d.dice.uniform(2, 20), 1) for one in d.groups}

    def table(rows: Sequence[tuple[str, float]]) -> str:
        names, values = zip(*rows, strict=True)
        return f'prices = pd.DataFrame({{"{d.group}": {[*names]!r}, "price": {[*values]!r}}})\n'

    lacks = table([(one, prices[one]) for one in kept])
    doubles = table([*prices.items(), (kept[0], prices[kept[0]] + 1)])
    spaces = table([(f" {lost}", prices[lost]), *((one, prices[one]) for one in kept)])
    cases = table([(lost.upper(), prices[lost]), *((one, prices[one]) for one in kept)])
    total = f'(merged["price"] * merged["{d.column}"])'
    unknown = (
        f"Where the price is not known, it is 1. Sum price times {d.column} over all {d.name}."
    )
    first = f"Sum price times {d.column} over all {d.name}; of two prices the first holds."
    alike = f"Sum price times {d.column} over all {d.name}; names may be written in other ways."
    gone, again = [*_of(count, d.rows)], [*_of(twice, d.rows)]
    left = f'merged = {d.name}.merge(prices, on="{d.group}", how="left")\n'
    inner = f'merged = {d.name}.merge(prices, on="{d.group}")\n'
    fill = 'merged["price"] = merged["price"].fillna(1)\n'
    once = f'prices.drop_duplicates("{d.group}")'
    clean = f'prices["{d.group}"] = prices["{d.group}"].str.strip().str.lower()\n'
    lookup = f'{d.name}["{d.group}"].map(prices.set_index("{d.group}")["price"])'
    firsts = left.replace("prices", once)
    plain = f"{total}.sum()\n"
    pairs = [
        (unknown, lacks, left + fill + plain, inner + plain, gone),
        (unknown, lacks, left + fill + plain, left + plain, gone),
        (first, doubles, firsts + plain, left + plain, again),
        (first, doubles, firsts + plain, inner + plain, again),
        (alike, spaces, clean + inner + plain, inner + plain, gone),
        (alike, cases, clean + inner + plain, left + plain, gone),
        (
            unknown,
            lacks,
            f'float(({lookup}.fillna(1) * {d.name}["{d.column}"]).sum())\n',
            f'float(({lookup} * {d.name}["{d.column}"]).sum())\n',
            gone,
        ),
        (
            unknown,
            lacks,
            left + fill + plain,
            f'merged = {d.name}.set_index("{d.group}").join(prices.set_index("{d.group}"), how="inner")\n{plain}',
            gone,
        ),
        (
            f"Put the {d.other} of `more` beside `{d.name}`, by their labels, and give the mean of both.",
            f'more = {d.name}[["{d.other}"]].sort_values("{d.other}")\n{d.name} = {d.name}.drop(columns="{d.other}")\n',
            f'both = {d.name}.join(more)\nboth.groupby("{d.group}")[["{d.column}", "{d.other}"]].mean()\n',
            f'both = {d.name}.assign({d.other}=more["{d.other}"].values)\nboth.groupby("{d.group}")[["{d.column}", "{d.other}"]].mean()\n',
            ["another order", "not those", f"of {d.rows:,} values"],
        ),
        (
            f"Stack `{d.name}` and `more`, and give the mean {d.column} of each {d.group}.",
            f"more = {d.name}.sample({count}, random_state=1)\n{d.name} = {d.name}.drop(more.index)\n",
            f"both = pd.concat([{d.name}, more])\n{d.mean('both')}\n",
            f"both = pd.concat([{d.name}, more, more])\n{d.mean('both')}\n",
            [f"{count:,} of {count:,}", f"{count:,} rows"],
        ),
        (alike, spaces, clean + inner + plain, left + fill + plain, gone),
        (first, doubles, firsts + plain, left.replace("left", "outer") + plain, again),
    ]
    task, more, right, wrong, tells = pairs[number]
    return {"task": task, "setup": d.start + more, "right": right, "wrong": wrong, "tells": tells}


def filters(d: Draw, number: int) -> Pair:
    """Rows are left out, or kept, that the task doesn't say."""
    bound = float(d.frame[d.column].median())
    exact = d.frame.iloc[int(d.frame[d.column].argsort().iloc[d.rows // 2])][d.column]
    few = d.dice.randint(20, d.rows // 2)
    kept = f'{d.name}[{d.name}["{d.column}"] >= {exact}]'
    least = f"What is the mean {d.other} of each {d.group}, where {d.column} is at least {exact}?"
    every = f"What is the mean {d.column} of each {d.group}?"
    other = d.mean("{}").replace(f'["{d.column}"]', f'["{d.other}"]')
    doubled = len(d.frame.drop_duplicates(d.column))
    del bound
    pairs: list[tuple[str, str, str, list[str]]] = [
        (least, other.format(kept), other.format(kept.replace(">=", ">")), []),
        (every, d.mean(d.name), d.mean(f"{d.name}.head({few})"), [*_of(few, d.rows)]),
        (every, d.mean(d.name), d.mean(f"{d.name}.iloc[1:]"), [*_of(1, d.rows)]),
        (
            every,
            d.mean(d.name),
            d.mean(f'{d.name}.drop_duplicates("{d.column}")'),
            [*_of(doubled, d.rows)],
        ),
        (
            every,
            d.mean(d.name),
            f"some = {d.name}.sample(frac=0.9, random_state=1)\n{d.mean('some')}",
            [*_of(round(d.rows * 0.9), d.rows)],
        ),
        (least, other.format(kept), other.format(kept.replace(d.column, d.other)), []),
        (least, other.format(kept), other.format(kept.replace(">=", "<")), []),
        (
            every,
            d.mean(d.name),
            f"{d.name} = {d.name}[:-{few}]\n{d.mean(d.name)}",
            [*_of(few, d.rows)],
        ),
        (
            every,
            d.mean(d.name),
            f'low, high = {d.name}["{d.column}"].quantile([0.05, 0.95])\n'
            f'inside = {d.name}[{d.name}["{d.column}"].between(low, high)]\n{d.mean("inside")}',
            [
                *_of(
                    int(d.frame[d.column].between(*d.frame[d.column].quantile([0.05, 0.95])).sum()),
                    d.rows,
                )
            ],
        ),
        (
            f"What is the mean {d.column} of the {d.group} {d.groups[0]} and of {d.groups[1]}?",
            f'{d.name}[{d.name}["{d.group}"].isin({d.groups[:2]!r})].groupby("{d.group}")["{d.column}"].mean()',
            f'{d.name}[{d.name}["{d.group}"].isin({[d.groups[0], d.groups[1].title()]!r})].groupby("{d.group}")["{d.column}"].mean()',
            [d.groups[1]],
        ),
        (
            f"How many {d.name} have a {d.column} of at least {exact} and a {d.other} above its mean?",
            f'int((({d.name}["{d.column}"] >= {exact}) & ({d.name}["{d.other}"] > {d.name}["{d.other}"].mean())).sum())',
            f'int((({d.name}["{d.column}"] >= {exact}) | ({d.name}["{d.other}"] > {d.name}["{d.other}"].mean())).sum())',
            [],
        ),
        (
            every,
            d.mean(d.name),
            f'{d.name} = {d.name}.drop_duplicates(["{d.group}", "{d.column}"])\n{d.mean(d.name)}',
            [*_of(len(d.frame.drop_duplicates([d.group, d.column])), d.rows)],
        ),
    ]
    task, right, wrong, tells = pairs[number]
    return {
        "task": task,
        "setup": d.start,
        "right": f"{right}\n",
        "wrong": f"{wrong}\n",
        "tells": tells,
    }


def statistics(d: Draw, number: int) -> Pair:
    """Another statistic than the one that is asked for, which no line can show."""
    column = f'{d.name}["{d.column}"]'
    pairs = [
        ("median", d.mean(d.name, "median"), d.mean(d.name)),
        (
            "sample standard deviation",
            d.mean(d.name, "std"),
            f"{d.mean(d.name, 'std')[:-2]}(ddof=0)",
        ),
        ("largest value", d.mean(d.name, "max"), d.mean(d.name, "last")),
        ("number of different values", d.mean(d.name, "nunique"), d.mean(d.name, "count")),
        ("mean of all", f"float({column}.mean())", f"float({d.mean(d.name)}.mean())"),
        ("variance", d.mean(d.name, "var"), d.mean(d.name, "std")),
        ("mean", d.mean(d.name), d.mean(d.name, "median")),
        ("smallest value", d.mean(d.name, "min"), d.mean(d.name, "first")),
        (
            "rank correlation with " + d.other,
            *(
                f'float({column}.corr({d.name}["{d.other}"]{how}))'
                for how in (', method="spearman"', "")
            ),
        ),
        (
            "share of the sum",
            f"{d.mean(d.name, 'sum')} / {column}.sum()",
            f"{d.mean(d.name, 'mean')} / {column}.mean()",
        ),
        (
            "90th percentile",
            f"{d.mean(d.name, 'quantile')[:-1]}0.9)",
            f"{d.mean(d.name, 'max')} * 0.9",
        ),
        (
            "mean, rounded to one digit",
            f"{d.mean(d.name)}.round(1)",
            f"{d.mean(d.name)} // 0.1 * 0.1",
        ),
    ]
    what, right, wrong = pairs[number]
    task = f"What is the {what} of {d.column}" + (
        "?" if "float" in right else f" in each {d.group}?"
    )
    return {
        "task": task,
        "setup": d.start,
        "right": f"{right}\n",
        "wrong": f"{wrong}\n",
        "tells": [],
    }


def swallowed(d: Draw, number: int) -> Pair:
    """An ``except`` of the cell's own hides what it should have handled."""
    count = d.dice.randint(5, 15)
    comma = d.dice.choice([True, False])
    write = 'str(value).replace(".", ",")' if comma else 'f"{value} units"'
    read = 'text.replace(",", ".")' if comma else 'text.removesuffix(" units")'
    setup = (
        f"{d.start}texts = [{write} if n % {count} == 0 else str(value) for n, value in "
        f'enumerate({d.name}["{d.column}"])]\n'
    )
    task = f"`texts` holds the {d.column} of all {d.name} as text, some {'with a comma' if comma else 'with units'}. Give the mean of all."
    right = f"numbers = [float({read}) for text in texts]\nsum(numbers) / len(numbers)\n"
    handlers = ["continue", "number = 0.0", "pass", "number = float('nan')"]
    error = ["ValueError", "Exception", "(ValueError, TypeError)"][number % 3]
    loops = [
        f"numbers = []\nfor text in texts:\n    try:\n        number = float(text)\n    except {error}:\n"
        f"        {handlers[number % 2]}\n    numbers.append(number)\nsum(numbers) / len(numbers)\n",
        f"numbers = []\nfor text in texts:\n    try:\n        numbers.append(float(text))\n    except {error}:\n"
        "        pass\nsum(numbers) / len(numbers)\n",
        f"def number(text):\n    try:\n        return float(text)\n    except {error}:\n        return 0.0\n\n"
        "numbers = [number(text) for text in texts]\nsum(numbers) / len(numbers)\n",
        "import contextlib\n\nnumbers = []\nfor text in texts:\n    with contextlib.suppress(ValueError):\n"
        "        numbers.append(float(text))\nsum(numbers) / len(numbers)\n",
        f"total = count = 0\nfor text in texts:\n    try:\n        total += float(text)\n        count += 1\n"
        f"    except {error} as problem:\n        print('An error occurred')\ntotal / count\n",
    ]
    if number >= 10:
        loops = [
            'numbers = pd.to_numeric(pd.Series(texts), errors="coerce")\nfloat(numbers.mean())\n'
        ]
    wrong = loops[number % len(loops)]
    hit = len(range(0, d.rows, count))
    tells = ["caught", "ValueError", f"{hit:,} of {d.rows:,}"]
    return {"task": task, "setup": setup, "right": right, "wrong": wrong, "tells": tells}


_MAKERS: dict[str, Callable[[Draw, int], Pair]] = dict(
    zip(KINDS, (reads, missing, joins, filters, statistics, swallowed), strict=True)
)


def draw_pairs(only: str = "") -> list[Pair]:
    """Return the pairs whose id, like ``joins-3``, has a text; the draw is the same each time."""
    pairs = []
    for kind, make in _MAKERS.items():
        for number in range(PAIRS):
            draw = Draw(random.Random(f"{SEED} {kind} {number}"))
            name = f"{kind.replace(' ', '-')}-{number + 1}"
            pairs.append({"id": name, "kind": kind, **make(draw, number)})
    return [pair for pair in pairs if only in pair["id"]]


# Running them.


@contextlib.contextmanager
def _folder() -> Iterator[None]:
    """Work in an empty folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _look(pair: Pair, which: str) -> dict[str, Any]:
    with _folder():
        return lost_rows.look({**pair, "code": pair[which]})


def validate(pair: Pair) -> bool:
    """Return whether both cells of a pair run and give something else."""
    found = []
    for which in ("right", "wrong"):
        space = dict[str, Any]()
        with _folder():
            lost_rows.run_cell(pair["setup"], space)
            lost_rows.run_cell(pair[which], space)
        found.append(space["_"])
    return not lost_rows._equal(*found)


def visible(row: Mapping[str, Any], lines: int | None = _FIRST) -> bool:
    """Return whether one of the first lines has one of the tells."""
    some = [text for text, effect in lines_of(row)[:lines] if effect]
    return any(tell in text for text in some for tell in row["tells"])


def report(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rates by kind, and every cell with its first lines."""
    wrong, right = ([row for row in rows if row["which"] == one] for one in ("wrong", "right"))
    kinds = []
    for kind in (*KINDS, "all"):
        its, good = ([r for r in some if kind in (r["kind"], "all")] for some in (wrong, right))
        kinds.append(
            [
                kind,
                share(its, visible),
                share(its, lambda row: visible(row, None)),
                share(its, lambda row: row["stopped"]),
                share(good, lambda row: row["stopped"]),
                share(good, lambda row: any(effect for _, effect in lines_of(row)[:_FIRST])),
            ]
        )
    heads = [
        "kind",
        "visible in the first three lines",
        "visible",
        "stopped",
        "right ones stopped",
        "right ones with a fact in three lines",
    ]
    return "\n\n".join(
        [
            f"## Silent bugs: {len(wrong)} pairs, {sum(row['seconds'] for row in rows):.0f} s",
            measure.table(heads, kinds),
            *(_listed(row) for row in rows),
        ]
    )


def _listed(row: Mapping[str, Any]) -> str:
    lines = [text for text, _ in lines_of(row)]
    seen = ["visible" if visible(row) else "not visible"] if row["which"] == "wrong" else []
    stopped = [f"stopped: {measure.short(row['shows'])}"] if row["stopped"] else []
    head = f"### {' · '.join([row['id'], row['which'], *seen, *stopped])}"
    return "\n".join([head, *(f"  {n}. {one}" for n, one in enumerate(lines[:_FIRST], 1))])


def main() -> None:
    """Run what is missing and print the tables."""
    parser = sessions.options(__doc__)
    parser.add_argument("--validate", action="store_true", help="test the pairs, run nothing else")
    options = parser.parse_args()
    pairs = draw_pairs(options.only)
    warnings.simplefilter("ignore")  # a wrong one may warn
    if options.validate:
        odd = [pair["id"] for pair in pairs if not validate(pair)]
        raise SystemExit(f"Not as they say: {', '.join(odd)}" if odd else None)
    results = Results(options.out.resolve() / "silent_bugs.jsonl")
    both = [(pair, which) for pair in pairs for which in ("right", "wrong")]
    if not options.table:
        for pair, which in tqdm(both, unit="cell"):
            if (name := f"{pair['id']}-{which}") not in results.rows:
                results.add({"id": name, **_look(pair, which)})
    rows = [
        {**results.rows[name], **pair, "which": which}
        for pair, which in both
        if (name := f"{pair['id']}-{which}") in results.rows
    ]
    print(report(rows))


if __name__ == "__main__":
    main()
