"""Read what this version of ipyrefine stored, and refuse what another one did.

Records, the journal's events and recordings hold the `VERSION` of their fields, and every field but
those of points and results that have their defaults. A changed field or default needs a new
version, and a line in `_convert`, which makes of older JSON what this version reads.
"""

import json
from typing import Any

from ipyrefine.core.events import EVENT, Event
from ipyrefine.core.run import Run

VERSION = 19
OLDEST = 14  # that is converted
# By the names of fields, what their values are called now.
_RENAMED = {
    "kind": {"branch": "continue", "select": "continue"},
    "why": {"not_read": "no_critic"},
    "source": {"drafts": "input"},
}
_GONE = (
    "candidates",
    "candidate",
    "overruled",
    "required_passed",
    "unit",
    "vacuous",
)  # one of several drafts was a candidate


class OtherVersion(ValueError):
    """Another version of ipyrefine wrote what is stored."""


def parse_json(text: Any, *, strict: bool = True) -> Any:
    """Return the value of stored JSON, a text or bytes.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or, if `strict`, holds NaN or an infinity.
        TypeError: it is neither text nor bytes.
    """
    try:
        return json.loads(text, parse_constant=_refuse if strict else None)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def require_current(version: object) -> None:
    """Refuse what another version wrote, by the version that the stored JSON names.

    Raises:
        OtherVersion: it is the number of another version.
        ValueError: it is not a version's number.
    """
    if type(version) is not int:
        raise ValueError(f"{version!r} is not the number of a version")
    if not OLDEST <= version <= VERSION:
        raise OtherVersion(f"version {version}, not {OLDEST} to {VERSION}")


def _convert(data: Any) -> Any:
    """Return older JSON, of a run or an event, as this version has it."""
    if isinstance(data, list):
        return [*map(_convert, data)]
    if not isinstance(data, dict):
        return data
    found = {name: _convert(one) for name, one in data.items()}
    if "spent" in found:  # a run kept no single calls
        spent = dict(found.pop("spent"))
        found["calls"] = [{"stage": name, "iteration": 0, "usage": spent[name]} for name in spent]
        gone = {"usage", "pending_usage", "unconsumed_replies", "unfinished", "failed_drafts"}
        found = {name: one for name, one in found.items() if name not in gone}
    if "number" in found and "text" in found:
        found.pop("usage", None)
    if "usage" in found and "stage" in found:  # a call
        found.pop("warnings", None)
    if "how" in found:  # a cell's first run told effects
        found.pop("effects", None)
    if isinstance(found.get("head"), str):  # a column was no value
        found["text"] = found.pop("head")
    for name in _GONE:
        found.pop(name, None)
    for name, values in _RENAMED.items():
        if (value := found.get(name)) in [*values]:
            found[name] = values[value]
    return found


def read_record(data: dict[str, Any]) -> Run:
    """Return the run of its JSON with its ``version``.

    Raises:
        OtherVersion: another version wrote it.
        ValueError: it is not a run.
    """
    fields = dict(data)
    version = fields.pop("version", None)
    require_current(version)
    return Run.model_validate(fields if version == VERSION else _convert(fields))


def read_event(data: Any, version: object) -> Event:
    """Return the event of its JSON, which a version wrote.

    Raises:
        OtherVersion: another version wrote it.
        ValueError: it is not an event.
    """
    require_current(version)
    return EVENT.validate_python(data if version == VERSION else _convert(data))
