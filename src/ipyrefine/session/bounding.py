"""Keeps the record in a notebook small: what is left out of a long run, and that it says so."""

from typing import Any

from ipyrefine.core.runs import Iteration, Run

LIMIT = 400_000  # characters of a run's JSON; the renderings beside it grow with it
TEXT_LIMIT = 40_000
DETAIL_LIMIT = 1_000
LEFT_OUT = "(left out of this record)"
WHOLE = "`%refine export FILE.json` writes the whole run."


def bounded(run: Run, limit: int = LIMIT) -> tuple[Run, bool]:
    """Cut a run that is too long for a notebook.

    What goes first helps least: thoughts and long check details, then everything but the verdict
    of the iterations in between. The chosen text, the latest, the one a next revision starts
    from, and their parents stay whole as long as that is enough.

    Args:
        run: the run.
        limit: characters of its JSON.

    Returns:
        The run, with a warning that says what was left out, and whether it can be gone on with:
        not when its own texts had to be cut.
    """
    if _size(run) <= limit:
        return run, True
    short = _mapped(run, _without_asides)
    if _size(short) <= limit:
        return _said(short, "thoughts and long check details are left out"), True
    kept = _needed(run)
    short = _mapped(short, lambda one: one if one.number in kept else _outline(one))
    short = _mapped(short, lambda one: one if one.parent in kept else _rootless(one))
    if _size(short) <= limit:
        return _said(short, "the iterations in between are outlines only"), True
    short = _mapped(short, _clipped)
    asked = short.task and short.task.model_copy(update={"text": _cut(short.task.text, TEXT_LIMIT)})
    short = short.model_copy(
        update={"task": asked, "draft": None, "heard": (), "warnings": short.warnings[-20:]}
    )
    return _said(short, "its texts are cut, so that it cannot be resumed from here"), False


def _size(run: Run) -> int:
    return len(run.model_dump_json(exclude_defaults=True))


def _said(run: Run, what: str) -> Run:
    warning = f"This record was shortened to fit the notebook: {what}. {WHOLE}"
    return run.model_copy(update={"warnings": (*run.warnings, warning)})


def _mapped(run: Run, change: Any) -> Run:
    return run.model_copy(update={"iterations": tuple(map(change, run.iterations))})


def _needed(run: Run) -> set[int | None]:
    """The iterations that are read, or gone on from; of the parents that are left out, None."""
    ends = [one for one in (run.chosen, run.base, *run.iterations[-1:]) if one is not None]
    return {one.number for one in ends} | {one.parent for one in ends} | {0, None}


def _without_asides(iteration: Iteration) -> Iteration:
    evidence = tuple(
        one.model_copy(update={"detail": _cut(one.detail, DETAIL_LIMIT)})
        for one in iteration.evidence
    )
    return iteration.model_copy(update={"thoughts": "", "evidence": evidence})


def _outline(iteration: Iteration) -> Iteration:
    verdict = iteration.verdict and iteration.verdict.model_copy(
        update={
            "criteria": (),
            "checklist": (),
            "why": _cut(iteration.verdict.why, 200),
            "unresolved": (),
        }
    )
    nothing: dict[str, Any] = {"findings": (), "changes": (), "evidence": (), "flaw": ""}
    return iteration.model_copy(
        update={**nothing, "text": LEFT_OUT, "parent": None, "verdict": verdict}
    )


def _rootless(iteration: Iteration) -> Iteration:
    # A difference from a text that is not there would show the whole text as new.
    return iteration.model_copy(update={"parent": None})


def _clipped(iteration: Iteration) -> Iteration:
    findings = iteration.findings[:20]
    return iteration.model_copy(
        update={"text": _cut(iteration.text, TEXT_LIMIT), "findings": findings}
    )


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… (cut: {len(text):,} characters)"
