"""Profiles: what a kind of text is read for, as data in the TOML files next to this one."""

import json
import os
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from ipyrefine.core.languages import code_language, read_fence
from ipyrefine.core.model import Aims, Criterion, Limits, Task, named_criteria, refused
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.folders import read_file

_FOLDER = files("ipyrefine.profiles")
NAMES = tuple(
    sorted(
        file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml")
    )
)
_HEADER = re.compile(r"\s*subject:[^\n]+\n", re.IGNORECASE)  # of an email


class Profile(Aims):
    """What a kind of text is written and criticised by.

    Attributes:
        name: its name.
        summary: what it is for, in one sentence.
        form: ``code`` (Python) or ``prose`` (any other text).
        criteria: what a text is read for: a table of names with a definition, or a list of
            criteria.
        categories: kinds of weakness a critique looks for.
        checklist: yes/no questions a finished text answers with yes.
        plan: whether prose is planned in a few lines before it is written; code never is.
        limits: thresholds that hold unless the user sets others.
        or_words: whether its writer may find that the task wants words and not code.
    """

    name: str = Field(min_length=1)
    summary: str = ""
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    limits: Limits = Limits()
    or_words: bool = False

    @field_validator("criteria", mode="before")
    @classmethod
    def _list_criteria(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return [
            {"name": name, **(said if isinstance(said, Mapping) else {"definition": said})}
            for name, said in value.items()
        ]

    @model_validator(mode="after")
    def _require_distinct_names(self) -> Self:
        names = [criterion.name for criterion in self.criteria]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"the criterion {twice!r} is there twice")
        return self

    def limited(self, limits: Limits | None = None) -> Limits:
        """Return limits, with the profile's own for those left unset.

        A number of revisions that the user sets is used up: no patience ends the run before. A
        target that the user sets makes a scored loop, in which the score alone decides.
        """
        own = limits.model_dump(exclude_unset=True) if limits else {}
        profile = self.limits.model_dump(exclude_unset=True)
        implied = {"patience": Limits().patience, "critique": "auto", **profile}
        if "max_revisions" in own:
            implied["patience"] = None
        if "target" in own:
            implied["critique"] = "never"
        return Limits.model_validate(profile | implied | own)

    def task(
        self,
        text: str,
        *,
        criteria: tuple[str, ...] = (),
        checklist: tuple[str, ...] | None = None,
        categories: tuple[str, ...] = (),
        language: str = "python",
    ) -> Task:
        """Return the task of a request.

        Criteria are names of the profile's, or short descriptions of new ones; with criteria of
        your own the profile's checklist is left out.
        """
        if checklist is None:
            checklist = () if criteria else self.checklist
        return Task(
            text=text,
            profile=self.name,
            form=self.form,
            criteria=named_criteria(criteria, self.criteria) or self.criteria,
            categories=categories or self.categories,
            checklist=checklist,
            plan=self.plan,
            language=language,
        )


# Itself, its fields, its TOML file, or its name.
ProfileLike = str | Path | Mapping[str, Any] | Profile


@cache
def builtin() -> Mapping[str, Profile]:
    """Return the built-in profiles by name: one for each TOML file next to this module."""
    contents = {name: _FOLDER.joinpath(f"{name}.toml").read_text("utf-8") for name in NAMES}
    return MappingProxyType(
        {name: Profile(name=name, **tomllib.loads(text)) for name, text in contents.items()}
    )


def find(
    profile: ProfileLike,
    namespace: Mapping[str, Any] | None = None,
) -> Profile:
    """Return a profile.

    Args:
        profile: the profile itself, a dict of its fields, a TOML file's path, or a name: of a
            variable in the namespace, else of a built-in profile.
        namespace: the user's variables.

    Raises:
        UsageError: there is none of that name, or it is not valid.
    """
    if isinstance(profile, Profile):
        return profile
    if isinstance(profile, Mapping):
        return _validate(profile, "The profile", name="own")
    if isinstance(profile, Path) or profile.endswith(".toml"):
        return _read(Path(profile).expanduser())
    variable = (namespace or {}).get(profile)
    if isinstance(variable, Profile):
        return variable
    if isinstance(variable, Mapping):
        return _validate(variable, f"The profile {profile!r}", name=profile)
    if profile in NAMES:
        return builtin()[profile]
    raise UsageError(_unknown(profile, namespace or {}))


def name_by_draft(text: str) -> str:
    """Return the name of the profile that fits an existing text."""
    if fenced := read_fence(text):
        return "data" if fenced.tag == "json" else "code"
    if code_language(text):
        return "code"
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(text), dict | list):
            return "data"
    return "email" if _HEADER.match(text) else "prose"


def _unknown(name: str, namespace: Mapping[str, Any]) -> str:
    if name in namespace:
        kind = type(namespace[name]).__name__
        return f"The profile {name!r} is a variable of type {kind}; a profile is a dict."
    own = [n for n, value in namespace.items() if isinstance(value, Mapping)]
    return (
        f"There is no profile {name!r}.{did_you_mean(name, [*NAMES, *own], n=2)} "
        f"Use {', '.join(NAMES)}, a dict, or a TOML file."
    )


def _read(path: Path) -> Profile:
    if not os.path.exists(path):
        hint = did_you_mean(str(path), map(str, path.parent.glob("*.toml")))
        raise UsageError(f"There is no profile file {str(path)!r}.{hint}")
    read = read_file(path)
    try:
        content = tomllib.loads(read.decode("utf-8-sig"))  # as editors on Windows write it
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The profile file {str(path)!r} is not TOML: {error}.") from None
    return _validate(content, f"The profile file {str(path)!r}", name=path.stem)


def _validate(content: Mapping[str, Any], subject: str, *, name: str) -> Profile:
    try:
        return Profile.model_validate({"name": name, **content})
    except ValidationError as error:
        raise UsageError(f"{subject} is not valid: {refused(error, 'it')}") from None
    except TypeError:
        raise UsageError(f"{subject} is not valid: its keys must be text.") from None
