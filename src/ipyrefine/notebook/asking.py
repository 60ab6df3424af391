"""From a cell's options and body to its refinement."""

import argparse
import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from ipyrefine import checks, profiles
from ipyrefine.checks import variables
from ipyrefine.checks.schema import Schema
from ipyrefine.compose import choose_profile, compose
from ipyrefine.core.engine import Refinement
from ipyrefine.core.ports import Check
from ipyrefine.core.runs import Run
from ipyrefine.errors import UsageError
from ipyrefine.notebook import options as opts


def refinement(
    magics: Any, options: argparse.Namespace, body: str
) -> tuple[Refinement, tuple[Check, ...]]:
    """Build the refinement a cell asks for, and its checks.

    Args:
        magics: the configured magics, with their shell.
        options: the cell's options.
        body: the cell below them.

    Raises:
        UsageError: an option or the body cannot be used; no model was called.
        NoModel: no model is configured.
    """
    space = magics.shell.user_ns
    drafted = options.draft or (not options.task and profiles.is_python(body))
    if options.goal and not drafted:
        raise UsageError(
            "--goal says what a draft should become, and this cell is a task: put it into the "
            "cell, or add --draft if the cell is the text to improve."
        )
    text = (options.goal or "") if drafted else body.strip()
    draft = body.strip("\n") if drafted else None
    chosen = choose_profile(
        options.profile, text, draft=draft, checks=options.check, namespace=space
    )
    limits = chosen.limited(opts.limits(options, _configured(magics)))
    passed = variables.gather(options.var, space)
    resolved = checks.resolve(options.check, space, target=limits.target, variables=passed)
    built = compose(
        text,
        model=options.model or magics.model or None,
        judge=options.judge or magics.judge or None,
        base_url=options.base_url or magics.base_url or None,
        price=options.price or magics.price or None,
        checks=resolved,
        profile=chosen,
        criteria=opts.parts(options.criteria or ""),
        checklist=_checklist(options.checklist, space),
        variables=passed,
        draft=draft,
        limits=limits,
        prompts=_prompts(options.prompts, space),
    )
    return built, resolved


def result(run: Run, resolved: Sequence[Check]) -> Any:
    """What a run leaves in its variable: the text, or for data the object a schema accepted."""
    if run.task and run.task.profile == "data" and run.chosen:
        accepted = {evidence.name for evidence in run.chosen.evidence if evidence.passed}
        for check in resolved:
            if isinstance(check, Schema) and check.name in accepted:
                return check.value(run.text)
    return run.text


def _configured(magics: Any) -> dict[str, Any]:
    named = {name: getattr(magics, name) for name in ("max_iterations", "target", "patience")}
    return {name: value for name, value in named.items() if value is not None}


def _checklist(given: str | None, space: Mapping[str, Any]) -> tuple[str, ...]:
    """The questions of a variable (a list of texts, or a text of lines), or those given.

    Raises:
        UsageError: there is no such variable, or it holds no questions.
    """
    if given is None:
        return ()
    if not given.isidentifier():
        return opts.parts(given)
    value = _variable("--checklist", given, space)
    lines = value.splitlines() if isinstance(value, str) else value
    if not isinstance(lines, list | tuple) or not all(isinstance(x, str) for x in lines):
        raise UsageError(f"--checklist: {given} must be a list of yes/no questions.")
    questions = tuple(line.strip() for line in lines if line.strip())
    if not questions:
        raise UsageError(f"--checklist: {given} holds no questions.")
    return questions


def _prompts(given: str | None, space: Mapping[str, Any]) -> Mapping[str, str] | None:
    """The user's own prompts by stage.

    Raises:
        UsageError: there is no such variable, or it is no dict.
    """
    if given is None:
        return None
    value = _variable("--prompts", given, space)
    if not isinstance(value, Mapping) or not value:
        raise UsageError(f"--prompts: {given} must be a dict of prompts by stage.")
    return value


def _variable(option: str, name: str, space: Mapping[str, Any]) -> Any:
    if name not in space:
        near = difflib.get_close_matches(name, [n for n in space if n[:1] != "_"], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"{option}: there is no variable {name!r}.{hint}")
    return space[name]
