"""Goes on with an earlier run where it stopped, for every surface alike."""

from collections.abc import Callable, Sequence
from time import monotonic

from ipyrefine import compose
from ipyrefine.core.engine import Refinement
from ipyrefine.core.ports import Check, Model
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.runs import Run
from ipyrefine.errors import UsageError


def go_on(
    run: Run,
    *,
    model: Model | str | None = None,
    judge: Model | str | None = None,
    base_url: str | None = None,
    api_key: str | Callable[[], str] | None = None,
    checks: Sequence[Check] = (),
) -> Refinement:
    """Build the refinement that goes on with an earlier run where it stopped.

    Args:
        run: the run; its task, limits and draft stand.
        model: writes; by default the model that wrote so far, by its name.
        judge: scores; by default the judge so far.
        base_url: an OpenAI-compatible server for models given by name.
        api_key: its key, as for `compose.compose`.
        checks: the run's checks, made again.

    Raises:
        UsageError: the run has not begun, or its checks are not these.
        NoModel: the model is not to be had here.
    """
    if run.task is None:
        raise UsageError("This run stopped before it began: start it anew with %%refine.")
    names = tuple(check.name for check in checks)
    if names != run.checks:
        raise UsageError(
            f"This run goes on with the checks {', '.join(run.checks) or '(none)'}, "
            f"not with {', '.join(names) or 'none'}: name the same ones."
        )
    judge = judge or (run.judge if run.judge != run.model else None)
    model = model or run.model
    crew = compose.choose_models(model, judge, base_url=base_url, api_key=api_key, price=run.price)
    return Refinement(
        run.task,
        model=crew.model,
        judge=crew.judge,
        checks=checks,
        limits=run.limits,
        draft=run.draft,
        prompts=Prompts.model_validate(run.prompts),
        run=run,
        clock=monotonic,
    )
