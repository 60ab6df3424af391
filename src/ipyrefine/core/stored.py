"""Read what this version of ipyrefine stored, and refuse what another one did.

Records, the journal's events and recordings hold the `VERSION` of their fields, and every field but
those of points and results that have their defaults. A changed field or default needs a new
version. Whoever wants to read older files upgrades their JSON in `require_current`, which every
reader calls.
"""

import json
from typing import Any

from ipyrefine.core.events import EVENT, Event
from ipyrefine.core.run import Run

VERSION = 15


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
    if version != VERSION:
        raise OtherVersion(f"version {version}, not {VERSION}")


def read_record(data: dict[str, Any]) -> Run:
    """Return the run of its JSON with its ``version``.

    Raises:
        OtherVersion: another version wrote it.
        ValueError: it is not a run.
    """
    fields = dict(data)
    require_current(fields.pop("version", None))
    return Run.model_validate(fields)


def read_event(data: Any, version: object) -> Event:
    """Return the event of its JSON, which a version wrote.

    Raises:
        OtherVersion: another version wrote it.
        ValueError: it is not an event.
    """
    require_current(version)
    return EVENT.validate_python(data)
