"""What a profile holds: criteria, categories, a checklist and thresholds, validated."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from ipyrefine.core.records import Criterion, Record, Task
from ipyrefine.core.runs import Limits


class Profile(Record):
    """What a kind of text is written, criticised and judged by.

    Attributes:
        name: its name.
        summary: what it is for, in one sentence.
        form: ``code`` (Python) or ``prose`` (any other text).
        criteria: what the judge scores: a table of names with a definition, or with
            ``definition`` and ``weight``; or a list of criteria.
        categories: kinds of weakness a critique looks for.
        checklist: yes/no questions a finished text answers with yes.
        plan: whether prose is planned in a few lines before it is written; code never is.
        limits: thresholds that hold unless they are configured or given otherwise.
        artifacts: what a request for it asks to be written, such as ``email``.
        phrases: regular expressions a request for it matches at its start.
    """

    name: str = Field(min_length=1)
    summary: str = ""
    form: Literal["code", "prose"] = "prose"
    criteria: tuple[Criterion, ...] = Field(min_length=1)
    categories: tuple[str, ...] = ()
    checklist: tuple[str, ...] = ()
    plan: bool = True
    limits: Limits = Limits()
    artifacts: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()

    @field_validator("criteria", mode="before")
    @classmethod
    def _criteria_by_name(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return [
            {"name": name, **said}
            if isinstance(said, Mapping)
            else {"name": name, "definition": said}
            for name, said in value.items()
        ]

    @field_validator("phrases")
    @classmethod
    def _are_expressions(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for phrase in value:
            try:
                re.compile(phrase)
            except re.error as error:
                raise ValueError(f"{phrase!r} is no regular expression ({error})") from None
        return value

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [criterion.name for criterion in self.criteria]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(f"the criterion {twice!r} is there twice")
        return self

    def limited(self, limits: Limits | None = None) -> Limits:
        """The limits given, and for those not given the profile's own.

        Args:
            limits: what was configured or given; fields left unset are the profile's to say.
        """
        given = limits.model_dump(exclude_unset=True) if limits else {}
        return Limits.model_validate(self.limits.model_dump(exclude_unset=True) | given)

    def task(
        self, text: str, *, criteria: tuple[str, ...] = (), checklist: tuple[str, ...] = ()
    ) -> Task:
        """Make a task of a request.

        Args:
            text: the request in the user's words.
            criteria: what to judge on instead of the profile's criteria: names of those, or
                short descriptions of other ones.
            checklist: yes/no questions instead of the profile's.
        """
        return Task(
            text=text,
            profile=self.name,
            form=self.form,
            criteria=named_criteria(criteria, self.criteria) or self.criteria,
            categories=self.categories,
            checklist=checklist or self.checklist,
            plan=self.plan,
        )


def named_criteria(names: Iterable[str], known: Iterable[Criterion]) -> tuple[Criterion, ...]:
    """Criteria by name, each once: a known one, or a new one that its name describes.

    Args:
        names: names of known criteria, or short descriptions of other ones.
        known: the criteria that have a definition already.
    """
    defined = {criterion.name: criterion for criterion in known}
    return tuple(
        defined.get(name) or Criterion(name=name, definition=f"How well it does on {name}.")
        for name in dict.fromkeys(names)
    )
