"""The tree of a run's texts: which was written from which, once they are more than one line."""

from collections.abc import Iterator

from ipyrefine.core.runs import Iteration, Run
from ipyrefine.render import labels as words
from ipyrefine.render.escape import html_text
from ipyrefine.render.parts import more


def tree_lines(run: Run, since: int = 0) -> list[str]:
    """One line per iteration, drawn below the one it was written from; empty without branches.

    A line of descent stays in one column, so that fifty revisions in a row need no more width.

    Args:
        run: the run.
        since: number of the first iteration to name; those before it are left out.
    """
    children: dict[int | None, list[Iteration]] = {}
    for iteration in run.iterations[since:]:
        parent = iteration.parent
        shown = parent is not None and parent >= since
        children.setdefault(parent if shown else None, []).append(iteration)
    if all(len(below) < 2 for below in children.values()):
        return []
    return [f"{prefix}{_name(run, i)}" for prefix, i in _walk(children)]


def tree_html(run: Run, since: int = 0) -> str:
    """The tree as a foldable part, unfolded; empty without branches."""
    lines = tree_lines(run, since)
    if not lines:
        return ""
    drawn = html_text("\n".join(lines))
    body = f'<pre class="rf-text rf-tree" tabindex="0"><code>{drawn}</code></pre>'
    return more("Which text was written from which", body, open=True)


def _walk(children: dict[int | None, list[Iteration]]) -> Iterator[tuple[str, Iteration]]:
    """Every iteration with the strokes before it, children after their parent."""
    # A stack instead of recursion: a run may be longer than Python nests calls.
    stack = [("", "", root) for root in reversed(children.get(None, []))]
    while stack:
        stroke, beneath, iteration = stack.pop()
        yield stroke, iteration
        below = children.get(iteration.number, [])
        if len(below) == 1:
            stack.append((beneath, beneath, below[0]))
            continue
        last = len(below) - 1
        stack += [
            (
                beneath + ("└─ " if n == last else "├─ "),
                beneath + ("   " if n == last else "│  "),
                i,
            )
            for n, i in reversed([*enumerate(below)])
        ]


def _name(run: Run, iteration: Iteration) -> str:
    """An iteration in a few words; its place says what it was written from."""
    name = words.iteration_name(iteration).partition(" (from")[0]
    score = iteration.verdict.score if iteration.verdict else None
    symbol = words.verdict_label(iteration.verdict).symbol
    best = " ★ best" if iteration.number == run.best else ""
    return f"{name} · {symbol} {words.score(score)}{best}"
