"""What running a text did to data, in words: one sentence for people, prompts and records."""

from ipyrefine.core.model import Effect, count

# By which data are lost or changed.
_WEIGHTY = (
    "gone", "repeated", "reordered", "filled", "overwritten", "missing", "changed", "read",
)  # fmt: skip
_OF_VALUES = ("overwritten", "missing", "filled", "type")
_FEW = 3  # values in a sentence
_ANSWERS = {
    "none": "{} is None",
    "nan": "{} is nan",
    "inf": "{} is inf",
    "empty": "{} is empty",
    "missing": "All values of {} are missing",
    "nothing": "It gives nothing and changes nothing",
}


def sentence(effect: Effect) -> str:
    """Return what happened, with names in backticks, like ``17 of 1,204 rows of `orders` …``.

    What an effect does not have is left out.
    """
    name = _code(effect.name)
    is_one = effect.count == 1
    verb = _verb(effect.count)
    here = f" in {name}" if effect.name and effect.of else ""
    place = f" in {_code(effect.name or effect.of)}" if effect.name or effect.of else ""
    if effect.kind in _OF_VALUES and effect.of and not (effect.name or effect.line):
        place = " in the answer"  # not where a step found them
    column = f" of {_code(effect.column)}" if effect.column else ""
    before, after = effect.before, effect.after
    share, some = f"{effect.count:,} of {effect.total:,}", _some(effect)
    values = f"{share} values{column}"
    plural, them = ("", "it") if is_one else ("s", "them")
    because = f": {after}" if after else ""
    match effect.kind:
        case "gone" if effect.cause == "kept":
            kept = effect.total - effect.count
            who = (name or "the answer") + " keeps " if effect.of or not effect.name else ""
            return f"{who}{_rows(effect, kept)}" + ("" if who else f" {_verb(kept)} kept")
        case "split":
            parts = (one.rpartition(" ") for one in effect.values)  # each a name and a number
            named = [f"{_code(part) or 'the answer'} ({count})" for part, _, count in parts]
            into = _list(named, "and")
            return f"{_code(effect.of)} is split" + (f" into {into}" if into else "")
        case "gone" if effect.cause == "groups":
            return f"{share} categories{column} {verb} left out: no row has {them}{some}"
        case "gone":
            return f"{_rows(effect)} {verb} gone{here}{_why(effect)}"
        case "repeated":
            key = f"{_code(effect.column)}{some}"
            why = f": {key} is in {_code(effect.other)} more than once" if effect.other else ""
            which = "" if why or not effect.column else f": {key}"
            return f"{_rows(effect)} {verb}{here or ' there'} more than once{why or which}"
        case "reordered":
            return f"{name or 'the answer'} has its rows in another order"
        case "differs":
            key, other = _code(effect.cause), _code(effect.other)
            how = f" ({after}, not {before})" if before else ""
            whose = "that of its" if is_one else "those of their"
            return f"{values}{place} {verb} not {whose} {key} in {other}{how}"
        case "filled":
            whole = f"{effect.count:,} missing value{plural}{column}{place}"
            return f"{whole} {verb} filled" + (f" with {after}" if after else "") + _why(effect)
        case "overwritten":
            how = f" ({before} → {after})" if before else ""
            return f"{share} known values{column}{place} {verb} overwritten{how}"
        case "missing":
            word = verb if effect.cause else f"become{'s' * is_one}"
            why = some if effect.cause in ("new", "read", "") else _why(effect)
            return f"{values}{place} {word} missing{why}"
        case "type":
            what = f"{_code(effect.column)}{place}" if effect.column else name
            return f"{what}: {before} → {after}"
        case "total" if before and after:
            there = f"in {name}" if effect.of and effect.name else "afterwards"
            there = "in the answer" if not effect.name else there
            return f"sum{column}: {before} in {_code(effect.of or effect.name)}, {after} {there}"
        case "total":
            return f"the sum{column} in {_code(effect.of or effect.name)} differs{here}"
        case "text":
            return f"the numbers{column}{place} are text"
        case "zone":
            return f"the times{column}{place} are in {after or 'a zone of their own'}"
        case "columns":
            listed = ", ".join(map(_code, effect.values))
            more = effect.count - len(effect.values)
            listed += f" and {more:,} more" if effect.values and more > 0 else ""
            what = f"column{plural} {listed}".rstrip()
            verb = "no longer has" if effect.cause == "gone" else f"has {'a ' * is_one}new"
            return f"{name} {verb} {what}"
        case "new":
            return f"{name} is {effect.cause or 'new'}: {effect.after}"
        case "changed":
            return f"{name}: {before} → {after}" if before and after else f"{name} is changed"
        case "unchanged":
            return f"{name} is unchanged, though line {effect.line} stores into it"
        case "answer":
            what = f"{_code(effect.column)} in " * bool(effect.column) + (name or "the answer")
            said = _ANSWERS.get(effect.cause, "{} is odd").format(what)
            return f"{said[0].upper()}{said[1:]}"
        case "warning":
            line = f" in line {effect.line}" if effect.line else ""
            return f"{effect.cause}{line}" + (f": {after}" if after else "")
        case "caught":
            times = f", {effect.count:,} times" if effect.count > 1 else ""
            return f"{effect.name} was caught in line {effect.line}{times}"
        case "read" if effect.column:
            return f"{values} of the file {_code(effect.of)} {verb} read as missing{because}"
        case "read":
            rows = f"{effect.count:,} of the {effect.total:,} rows"
            return f"{name or 'the table'} has {rows} of the file {_code(effect.of)}{because}"
        case "input":
            others = _list([*map(_code, effect.values)], "and")
            also = f", and some of {others}" if others else ""
            which = _code(effect.column or effect.of)  # an array has no columns
            return f"Not looked after here: {share} {which} missing{also}"
        case "chance":
            return f"{name or 'the answer'} differs from run to run: no seed is set"
        case "unfollowed":
            what = f"{name or 'the answer'}, {effect.cause}" if effect.cause else ""
            return f"Not followed here: {what or 'there are too many values'}"
        case "file":
            held = effect.count if effect.cause == "write" else effect.total
            return f"would {effect.cause} {name}" + f" ({size(held)})" * (effect.name[-1:] != "/")
    raise TypeError(effect.kind)


def told(effect: Effect) -> str:
    """Return what happened as a whole sentence."""
    said = sentence(effect)
    return f"{said[0].upper()}{said[1:]}."


def has_to_be_wanted(effect: Effect) -> bool:
    """Return whether data were lost or changed; what a file lacks was never there."""
    lost_file = effect.kind == "file" and effect.cause != "write"  # as it is now
    return (effect.kind in _WEIGHTY and effect.cause != "read") or lost_file


def remedy(effect: Effect) -> str:
    """Return what a revision does that leaves data as they were: ``Keep all 1,204``."""
    match effect.kind:
        case "gone":
            return f"Keep all {effect.total:,}"
        case "repeated":
            return "Keep each once"
        case "reordered":
            return "Keep the order"
        case "changed":
            return f"Leave `{effect.name}` as it is"
        case "read":
            return "Read the whole file"
    return "Leave it as it was" if effect.count == 1 else "Leave them as they were"


def size(held: int) -> str:
    """Return a number of bytes in words: ``3.1 kB``."""
    if held < 1_000:
        return count(held, "byte")
    number, units = float(held), ["GB", "MB", "kB"]
    while number >= 1_000 and units:
        number, unit = number / 1_000, units.pop()
    return f"{number:.{int(number < 10)}f}".removesuffix(".0") + f" {unit}"


def _verb(count: int) -> str:
    return "is" if count == 1 else "are"


def _code(name: str) -> str:
    return f"`{name}`" if name else ""


def _rows(effect: Effect, count: int | None = None) -> str:
    of = f" of {_code(effect.of or effect.name)}" if effect.of or effect.name else ""
    number = effect.count if count is None else count
    return f"{number:,} of {effect.total:,} rows{of}"


def _why(effect: Effect) -> str:
    """Return why rows are gone or values are missing, as the end of a sentence."""
    whose = "its" if effect.count == 1 else "their"
    column, which = _code(effect.column), _some(effect)
    other = _code(effect.other) or "the other table"
    match effect.cause:
        case "unmatched" if effect.kind in ("missing", "filled"):
            return f": {'it has' if effect.count == 1 else 'they have'} no row in {other}{which}"
        case "unmatched" | "unused":
            return f": {whose} {column or 'key'}{which} is not in {other}"
        case "spelled":
            return f": {whose} {column}{which} is written in another way in {other}"
        case "missing":
            columns = column or _list([*map(_code, effect.values[:_FEW])], "or")
            have = "it has" if effect.count == 1 else "they have"
            return f": {whose} {columns} is missing" if columns else f": {have} a missing value"
        case "repeats":
            return f": {'it repeats' if effect.count == 1 else 'they repeat'} another"
    return f": {column}{which}".replace(": (", ": ").replace(":  (", " (") if which else ""


def _list(names: list[str], word: str) -> str:
    *others, last = names or [""]
    return f"{', '.join(others)} {word} {last}" if others else last


def _some(effect: Effect) -> str:
    between = "; " if any(", " in one for one in effect.values) else ", "
    shown = between.join(effect.values[:_FEW])
    return f" ({shown}{' …' * (len(effect.values) > _FEW)})" if shown else ""
