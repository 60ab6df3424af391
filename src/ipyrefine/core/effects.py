"""What running a text did to data, in words: one sentence for people, prompts and records."""

from ipyrefine.core.model import Effect

# By which data are lost or changed, so that somebody has to want them.
WEIGHTY = (
    "gone",
    "repeated",
    "reordered",
    "ignored",
    "filled",
    "overwritten",
    "missing",
    "changed",
)
_FEW = 3  # values in a sentence


def sentence(effect: Effect) -> str:
    """Return what happened, with names in backticks, like ``17 of 1,204 rows of `orders` …``.

    What an effect does not have is left out.
    """
    name, of, column = (f"`{one}`" for one in (effect.name, effect.of, effect.column))
    rows = f"{effect.count:,} of {effect.total:,} rows of {of if effect.of else name}"
    here = f" in {name}" if effect.name and effect.of else ""
    there = f" in {name}" if effect.name else ""
    which, before, after = _some(effect), effect.before, effect.after
    match effect.kind:
        case "gone":
            whose = "their" if effect.count != 1 else "its"
            verb = "are" if effect.count != 1 else "is"
            why = {
                "unmatched": f": {whose} {column}{which} is not in `{effect.other}`",
                "missing": f": {whose} {column} is missing",
                "repeats": f": {'they repeat' if effect.count != 1 else 'it repeats'} another row",
            }.get(effect.cause, f": {column}{which}" if which else "")
            return f"{rows} {verb} gone{here}{why}"
        case "repeated":
            why = f": {column}{which} is in `{effect.other}` more than once" * bool(effect.other)
            return f"{rows} are{here or ' there'} more than once{why}"
        case "reordered":
            return f"{name} has its rows in another order"
        case "ignored":
            return f"{rows} have no {column} and are left out"
        case "filled":
            how = f", with {after}" if after else ""
            return f"{effect.count:,} missing values of {column}{there} are filled{how}"
        case "overwritten":
            how = f" ({before} → {after})" if before else ""
            values_ = f"{effect.count:,} of {effect.total:,} known values of {column}"
            return f"{values_}{there} are overwritten{how}"
        case "missing":
            return f"{effect.count:,} of {effect.total:,} values of {column}{there} are missing"
        case "type":
            return f"{column}{there}: {before} → {after}"
        case "total" if before and after:
            return f"sum of {column}: {before} in {of}, {after}{there}"
        case "total":
            return f"the sum of {column} in {of} is not the sum{there}"
        case "text":
            return f"the numbers of {column} in {of} are text"
        case "zone":
            return f"the times of {column} in {of} are in {after}"
        case "columns":
            listed = ", ".join(f"`{one}`" for one in effect.values)
            word = "has no column" if effect.cause == "gone" else "has a new column"
            return f"{name} {word}{'s' * (effect.count > 1)}: {listed}"
        case "new":
            return f"{name} is new: {after}"
        case "changed":
            return f"{name}: {before} → {after}" if before and after else f"{name} is changed"
        case "unchanged":
            return f"{name} is unchanged, though line {effect.line} stores into it"
        case "answer":
            return {
                "none": "The answer is None",
                "nan": "The answer is nan",
                "empty": "The answer is empty",
                "missing": "All values of the answer are missing",
                "nothing": "It gives nothing and changes nothing",
            }.get(effect.cause, "")
        case "warning":
            place = f" in line {effect.line}" if effect.line else ""
            return f"{effect.cause}{place}" + (f": {after}" if after else "")
    raise TypeError(effect.kind)


def remedy(effect: Effect) -> str:
    """Return what a revision does that leaves data as they were: ``Keep all 1,204``."""
    match effect.kind:
        case "gone" | "ignored":
            return f"Keep all {effect.total:,}"
        case "repeated":
            return "Keep each once"
        case "reordered":
            return "Keep the order"
        case "changed":
            return f"Leave `{effect.name}` as it is"
    return "Leave them as they were"


def _some(effect: Effect) -> str:
    shown = ", ".join(effect.values[:_FEW])
    more = (
        " …" if len(effect.values) > _FEW or (shown and effect.count > len(effect.values)) else ""
    )
    return f" ({shown}{more})" if shown else ""
