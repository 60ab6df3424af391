"""Profiles: what a kind of text is judged by, as data in the TOML files beside this one."""

from ipyrefine.core.records import Task
from ipyrefine.profiles.choose import is_python, looks_like_code, of_draft, of_task
from ipyrefine.profiles.finding import NAMES, builtin, find
from ipyrefine.profiles.records import Profile, named_criteria

__all__ = [
    "NAMES",
    "Profile",
    "builtin",
    "choose",
    "find",
    "is_python",
    "looks_like_code",
    "named_criteria",
    "task",
]


def choose(text: str = "", *, draft: str | None = None, schema: bool = False) -> Profile:
    """Choose a built-in profile.

    Args:
        text: the request; with a draft, what it should become.
        draft: the text to start from.
        schema: whether the text is checked against a schema, which only data is.
    """
    if schema:
        return builtin()["data"]
    if draft is None:
        return builtin()[of_task(text)]
    name = of_draft(draft)
    if name == "prose" and text.strip():
        # A goal may say what the draft is; but a text that is no Python is not code.
        name = {"code": "prose"}.get(named := of_task(text), named)
    return builtin()[name]


def task(
    text: str,
    *,
    profile: str | None = None,
    criteria: tuple[str, ...] = (),
    checklist: tuple[str, ...] = (),
) -> Task:
    """Make a task from a request in the user's words.

    Args:
        text: the request.
        profile: a profile's name; by default the one the request's words suggest.
        criteria: the criteria to judge on, instead of the profile's: names of its criteria, or
            short descriptions of other ones.
        checklist: yes/no questions, instead of the profile's.

    Raises:
        UsageError: there is no such profile.
    """
    chosen = find(profile) if profile else choose(text)
    return chosen.task(text, criteria=criteria, checklist=checklist)
