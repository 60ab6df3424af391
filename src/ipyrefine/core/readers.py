"""Who reads a text: whether a critic or an evaluator is to read it, has read it, and decides."""

from typing import Literal

from ipyrefine.core.model import Basis
from ipyrefine.core.points import up_for_review
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.same import is_new
from ipyrefine.core.syntax import is_display
from ipyrefine.core.testing import is_critics

OWN: tuple[Basis, ...] = ("tests", "function")  # the user's, which decide by themselves
_STRONGEST_FIRST: tuple[Basis, ...] = (*OWN, "confirmed", "examples")
State = Literal["none", "plain", "own", "read", "tested", "waits"]
_LONGEST_DISPLAY = 10_000  # characters of code that only shows something


def find_duplicate(run: Run, text: Iteration) -> Iteration | None:
    """Return the earlier iteration with the same text, if any."""
    return next((i for i in run.iterations[: text.number] if i.text == text.text), None)


def basis_of(text: Iteration) -> Basis:
    """Return the strongest basis for a PASS that a text's evidence gives; ``none`` without any.

    Running, following a schema and having the right form are not enough: a wrong text can do all
    of that.
    """
    passed = {e.basis for e in text.evidence if e.passed and e.decisive}
    return next((basis for basis in _STRONGEST_FIRST if basis in passed), "none")


def asks_evaluator(run: Run, text: Iteration) -> bool:
    """Return True if the user's evaluator has still to say what it makes of a text.

    It is not asked where the user's own tests or functions decide.
    """
    failed = any(one.failed and one.basis in OWN for one in text.evidence)
    waits = text.evaluation is None and not (failed or basis_of(text) in OWN)
    return has_evaluator(run) and waits and find_duplicate(run, text) is None


def has_evaluator(run: Run) -> bool:
    """Return True if the user's own prompt evaluates the texts."""
    return "judge" in run.setup.prompts


def reads(run: Run) -> bool:
    """Return True if a critic is there whose word counts."""
    return not run.setup.weak_critic and not has_evaluator(run)


def state_of(run: Run, text: Iteration) -> State:
    """Return where a critic's reading of a text stands.

    It has ``read`` it, and its word decides; unless it has still to answer a reviser. It is not
    asked (``none``) where no critic's word counts, where the text is ``plain``, or where the user's
    ``own`` tests or functions decide, or where it need not be asked again, as all that it named is
    ``tested``. Else it ``waits`` to be read, though the PASS of a text that the user confirmed does
    not wait.
    """
    if not reads(run):
        return "none"
    known = reading_of(run, text)
    if known and not awaits_answer(run, text):
        return "read"
    if run.limits.critique == "never":
        return "none"
    if is_plain(run, text):
        return "plain"
    if basis_of(text) in OWN:
        return "own"
    return "tested" if known is None and _is_tested(run, text) else "waits"


def reading_of(run: Run, text: Iteration) -> Iteration | None:
    """Return the text that holds the latest reading of a text: it, or the same one."""
    read = (i for i in reversed(run.iterations) if i.reading and not i.reading.failure)
    return next((i for i in read if i.text == text.text), None)


def awaits_answer(run: Run, text: Iteration) -> bool:
    """Return True if the critic has still to answer a reviser about a point that a text misses."""
    return any(one.is_open and one.point.unanswered for one in run.cells(text))


def _is_tested(run: Run, text: Iteration) -> bool:
    """Return True if all that a critic named of the text that it read is a test that passes now.

    So it is not asked again, unless the text contests something, has something new, or the user
    says something of it. A No that rests on nothing that is tried stands.
    """
    read = _read_before(run, text)
    if read is None or text.reading or text.contested:
        return False
    if run.limits.critique != "auto" or "critique" in run.setup.prompts:
        return False
    own = [one for one in run.points.values() if is_critics(one) and one.text == read.number]
    missed = {one.id for one in run.cells(read) if one.blocks}
    names = {one.words for one in own if one.id in missed}
    passed = {id_ for id_, one in text.results.items() if one.passed}
    return (
        bool(names)
        and all(one.dropped in ("", "you") for one in own)
        and all(one.id in passed and not one.unanswered for one in run.tests if not one.let_go)
        and all(
            one.point.test in names or one.point.kind == "reading"
            for one in up_for_review(run, text)
        )
        and not is_new(text, read)
    )


def _read_before(run: Run, text: Iteration) -> Iteration | None:
    """Return the last of the texts that one was made from that a critic read; None for none.

    What the user says of one in between, only a reader can answer.
    """
    if text.parent is None or text.sampled:
        return None
    parent = run.iterations[text.parent]
    if parent.override or (parent.reading and parent.reading.failure):
        return None
    return parent if parent.reading else _read_before(run, parent)


def is_plain(run: Run, text: Iteration) -> bool:
    """Return True if a text is left to the user unread: microcopy, or a mere display."""
    if run.limits.critique != "auto":
        return False
    if run.task.profile == "microcopy":
        return True
    return run.task.is_python and len(text.text) <= _LONGEST_DISPLAY and is_display(text.text)
