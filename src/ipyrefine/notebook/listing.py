"""The table of the profiles, for `%refine profiles`."""

from typing import Any

from IPython.display import display

from ipyrefine.profiles import Profile, builtin


def show_profiles() -> None:
    """Show every built-in profile with its criteria: as Markdown, and as plain text."""
    bundle = {"text/markdown": markdown(), "text/plain": plain()}
    display(bundle, raw=True)


def markdown() -> str:
    """The profiles as a Markdown table."""
    rows = ["| profile | for | criteria | checklist | limits |", "|---|---|---|---|---|"]
    for profile in builtin().values():
        criteria = "<br>".join(f"**{c.name}**: {c.definition}" for c in profile.criteria)
        checklist = "<br>".join(profile.checklist)
        limits = _limits(profile)
        rows.append(
            f"| `{profile.name}` | {profile.summary} | {criteria} | {checklist} | {limits} |"
        )
    return "\n".join(rows)


def plain() -> str:
    """The profiles as lines of text."""
    lines = []
    for profile in builtin().values():
        lines.append(f"{profile.name}: {profile.summary}")
        lines += [f"    {c.name}: {c.definition}" for c in profile.criteria]
        lines += [f"    [ ] {question}" for question in profile.checklist]
        lines += [f"    {said}"] if (said := _limits(profile)) else []
    return "\n".join(lines)


def _limits(profile: Profile) -> str:
    own: dict[str, Any] = profile.limits.model_dump(exclude_unset=True)
    return ", ".join(f"{name} {value}" for name, value in own.items())
