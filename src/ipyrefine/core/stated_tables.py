"""Read the examples that a task states as tables: those that go in, and the one that comes out.

Tables are boxes of ``+---+`` or of line-drawing characters, or Markdown.
"""
# ruff: noqa: RUF001 - punctuation of other languages

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from keyword import iskeyword
from typing import Any

NULLS = frozenset({"", "null", "none", "nan", "nat", "<na>"})
_MAX_CELLS, _MAX_LINES = 5_000, 5_000  # of one table; of a task
_BOX = str.maketrans("│┃║┆┊─━═┄┌┬┐├┼┤└┴┘╔╦╗╠╬╣╚╩╝┏┳┓┣╋┫┗┻┛╞╪╡", "|" * 5 + "-" * 4 + "+" * 30)
_OUT = (
    r"outputs?|expected|results?|ausgaben?|erwartet\w*|ergebnis\w*|sorties?|résultats?|attendue?s?"
    r"|salidas?|saídas?|resultados?|输出|輸出|出力|结果|結果|вывод|результат\w*"
)
_HEADING = re.compile(
    r"(?:(?:an |the )?(?:expected|desired|examples?|samples?|beispiel\w*|ex[ae]mples?|e[jx]emplos?"
    r"|期望|预期|示例|例)\s*\d*\W{0,3})?"
    rf"(?:(?P<i>inputs?|eingaben?|entrées?|entradas?|输入|輸入|入力|ввод)|(?P<o>{_OUT}))\b.{{0,40}}$",
    re.IGNORECASE,
)
_ASKS = re.compile(
    rf"\b(?:{_OUT}|returns?|gives?|want|desired|should|becomes?|soll\w*|devrait|deb[ee])\b", re.I
)
_TABLE = r"(?:table|dataframe|frame|tabelle|tabla|tabela)"
_TITLE = re.compile(
    rf"\b{_TABLE}\s*:?\s*`?(\w+)`?\W*$|(?:^|\W)(\w+)`?\s*(?:{_TABLE}|表)\W*$|`(\w+)`[^`]*$|^(\w+)\W*$",
    re.IGNORECASE,
)
_GENERIC = re.compile(r"an?|the|th[ei]s\w*|that|following|below|above|here|like|data|tables?", re.I)
_ANY_ORDER = re.compile(
    r"any\s+order|order\s+(?:does|is)\s*n[o'’]t\s+(?:matter|important)|beliebiger\s+reihenfolge"
    r"|quel\s+ordre|(?:cualquier|qualquer)\s+orde[nm]|任意顺序|任意順序|任意の順|順不同|любом\s+порядке",
    re.IGNORECASE,
)
_TYPED = re.compile(r"\s*[-*+]\s*`?(\w[\w ]*?)`?\s*[:(–—-]+\s*`?([A-Za-z]\w*)")
_CUT = re.compile(r"\bfirst (?:\w+ )?rows|\bhead\b", re.IGNORECASE)
_TEXT = re.compile(r"n?(?:var)?char|str|object|text|enum|category|uuid|time$", re.IGNORECASE)


def read_tables(text: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of the examples that a task states as tables, in their order."""
    lines = text.translate(_BOX).splitlines()
    types = {m[1]: m[2] for m in map(_TYPED.match, lines) if m}
    any_order = _ANY_ORDER.search(re.sub(r"[*_]", "", text)) is not None
    inputs = dict[str, str]()
    for gap, source in _split(lines) if len(lines) <= _MAX_LINES else ():
        columns, *rows = parse_table(source)
        if len(columns) > 1 and re.match(r"column|field|option|parameter|spalte", columns[0], re.I):
            types |= {row[0]: row[1] for row in rows}
        elif _CUT.search("".join(gap[-1:])) or any({*row} <= {"...", "…", "⋮"} for row in rows):
            inputs = {}
        elif not _is_output(gap, bool(inputs)):
            name = _title(gap) or "df"
            name += str(len(inputs) + 1) * (name in inputs)
            inputs[name] = _frame(columns, rows, types)
        elif inputs:
            yield {
                "setup": "\n".join(["import io, pandas", *map(" = ".join, inputs.items())]),
                "call": ", ".join(inputs),
                "expected": "\n".join(source),
                "any_order": any_order,
            }
            inputs = {}


def _split(lines: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the lines of each table with the plain ones that stand above it."""
    gap, block = list[str](), list[str]()
    for line in (*lines, ""):
        plain = line.strip().lstrip("#>").strip()
        if "|" in plain or (_is_rule(plain) and (block or "+" in plain)):
            block.append(plain)
            continue
        if parse_table(block):
            yield gap, block
            gap = []
        else:
            gap += block
        block = []
        if plain and not plain.startswith(("```", "~~~")):
            gap.append(re.sub(r"^[\s\d.)-]+|\*+|__", "", plain).strip())


def parse_table(lines: Sequence[str]) -> list[list[str]]:
    """Return the rows of the table that some lines are, its columns first; none for no table."""
    plain = [one.removeprefix("|").removesuffix("|") for one in lines if not _is_rule(one)]
    rows = [[cell.strip(" `*") for cell in one.split("|")] for one in plain]
    if len(rows) == len(lines) or not rows:
        return []
    start = int(not rows[0][0])  # after an index, as pandas writes it
    width, names = len(rows[0]), rows[0][start:]
    fits = len(rows) * width <= _MAX_CELLS and all(len(row) == width for row in rows)
    distinct = names and all(names) and len({*names}) == len(names)
    return [row[start:] for row in rows] if fits and distinct else []


def _is_rule(line: str) -> bool:
    return not line.strip("|+-=: ") and ("-" in line or "=" in line)


def _is_output(gap: Sequence[str], follows: bool) -> bool:
    headings = {m.lastgroup for line in gap[-3:] if (m := _HEADING.match(line))}
    asks = follows and not headings and gap and _ASKS.search(gap[-1])
    return headings == {"o"} or bool(asks)


def _title(gap: Sequence[str]) -> str:
    found = _TITLE.search(gap[-1].rstrip(":：= ")) if gap else None
    name = next(filter(None, found.groups()), "") if found else ""
    generic = _GENERIC.fullmatch(name) or _HEADING.match(name)
    return "" if generic or not name.isidentifier() or iskeyword(name) else name


def _frame(columns: list[str], rows: list[list[str]], types: Mapping[str, str]) -> str:
    cells = [["" if one.lower() in NULLS else one for one in row] for row in rows]
    texts, dates = dict[str, str](), list[str]()
    for place, name in enumerate(columns):
        known = [row[place] for row in cells if row[place]]
        if _TEXT.match(types.get(name, "")) or any(re.match(r"0\d", one) for one in known):
            texts[name] = "str"
        elif known and all(map(read_date, known)):
            dates.append(name)
    lines = "\n".join(map("\t".join, [columns, *cells]))
    options = "sep='\\t', quoting=3, skip_blank_lines=False, keep_default_na=False, na_values=['']"
    dtype = f", dtype={texts}" * bool(texts) + f", parse_dates={dates}" * bool(dates)
    return f"pandas.read_csv(io.StringIO({lines!r}), {options}{dtype})"


def read_date(cell: str) -> datetime | None:
    """Return the time that a cell states, as ``2020-01-31`` or ``2020-01-31 10:00:00``."""
    try:
        return datetime.fromisoformat(cell) if "-" in cell else None
    except ValueError:
        return None
