"""Finding a profile by name: the user's own dict or TOML file, or a built-in one."""

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from ipyrefine.core.records import Criterion, Record
from ipyrefine.core.runs import Limits
from ipyrefine.errors import UsageError
from ipyrefine.profiles.records import Profile

NAMES = ("code", "prose", "email", "rfc", "data", "microcopy", "answer", "story")


@cache
def builtin() -> Mapping[str, Profile]:
    """The built-in profiles by name."""
    folder = files("ipyrefine.profiles")
    return MappingProxyType(
        {
            name: Profile(
                name=name,
                **tomllib.loads(folder.joinpath(f"{name}.toml").read_text("utf-8")),
            )
            for name in NAMES
        }
    )


def find(
    given: str | Path | Mapping[str, Any] | Profile, namespace: Mapping[str, Any] | None = None
) -> Profile:
    """Find a profile.

    Args:
        given: the profile itself, a dict of its fields, a TOML file's path, or a name: of a
            variable of the namespace, else of a built-in profile.
        namespace: the user's variables.

    Raises:
        UsageError: there is none of that name, or it is not valid.
    """
    if isinstance(given, Profile):
        return given
    if isinstance(given, Mapping):
        return _validated(given, "The profile", name="own")
    if isinstance(given, Path) or given.endswith(".toml"):
        return _read(Path(given).expanduser())
    own = (namespace or {}).get(given)
    if isinstance(own, Profile):
        return own
    if isinstance(own, Mapping):
        return _validated(own, f"The profile {given!r}", name=given)
    if given in NAMES:
        return builtin()[given]
    raise UsageError(_unknown(given, namespace or {}))


def _unknown(name: str, namespace: Mapping[str, Any]) -> str:
    if name in namespace:
        kind = type(namespace[name]).__name__
        return f"The profile {name!r} is a variable of type {kind}; a profile is a dict."
    own = [n for n, value in namespace.items() if isinstance(value, Mapping) and n[:1] != "_"]
    near = difflib.get_close_matches(name, [*NAMES, *own], n=2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return (
        f"There is no profile {name!r}: use {', '.join(NAMES)}, a dict of the notebook, "
        f"or a TOML file.{hint}"
    )


def _read(path: Path) -> Profile:
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        near = difflib.get_close_matches(path.name, _beside(path), n=1)
        hint = f" Did you mean {path.with_name(near[0])}?" if near else ""
        raise UsageError(f"There is no profile file {str(path)!r}.{hint}") from None
    except OSError as error:
        raise UsageError(
            f"The profile file {str(path)!r} cannot be read: {error.strerror}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The profile file {str(path)!r} is not TOML: {error}.") from None
    return _validated(content, f"The profile file {str(path)!r}", name=path.stem)


def _beside(path: Path) -> list[str]:
    try:
        return [other.name for other in path.parent.glob("*.toml")]
    except OSError:
        return []


def _validated(content: Mapping[str, Any], called: str, *, name: str) -> Profile:
    try:
        return Profile.model_validate({"name": name, **content})
    except ValidationError as error:
        raise UsageError(f"{called} is not valid: {_first(error)}.") from None
    except TypeError:
        raise UsageError(f"{called} is not valid: its keys must be text.") from None


def _first(error: ValidationError) -> str:
    """The first fault in words, with the field it was probably meant to be."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        nested: dict[object, type[Record]] = {"criteria": Criterion, "limits": Limits}
        model = nested.get(first["loc"][0], Profile) if len(first["loc"]) > 1 else Profile
        near = difflib.get_close_matches(str(first["loc"][-1]), list(model.model_fields), n=1)
        if not near and model is Profile:
            inner = difflib.get_close_matches(where, list(Limits.model_fields), n=1)
            near = [f"limits.{name}" for name in inner]
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        return f"{where!r} is not a field of it{hint}"
    if first["type"] in ("missing", "too_short"):
        return f"it has no {where!r}"
    said = first["msg"].removeprefix("Value error, ")
    return f"{where}: {said[:1].lower()}{said[1:]}" if where else said
