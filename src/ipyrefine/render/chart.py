"""Charts of a run: score sparkline, score line as SVG, and version history."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import labels

_BLOCKS = "▁▂▃▄▅▆▇█"
_TOP, _BOTTOM, _HEIGHT = 24.0, 56.0, 88
_LEFT, _STEP, _RIGHT = 24.0, 56.0, 84.0
_MAX_LABELS = 12  # with more scores the chart grows no wider and only a few have a label
_LABEL_WIDTH = 48.0


def sparkline(scores: Sequence[float | None]) -> str:
    """Return one block per iteration, as high as its score 0..1; a dot for a missing score.

    >>> sparkline([0.4, None, 0.7, 1.0])
    '▄·▆█'
    """
    return "".join("·" if s is None else _BLOCKS[min(7, int(s * 8))] for s in scores)


def svg(scores: Sequence[float | None], target: float, best: int | None, *, first: int = 0) -> str:
    """Return a chart with a dot per score, a dashed target line and a ring around the best.

    A missing score is a hollow dot on the base line and a gap in the line. Spaces between the
    labels keep them readable where a viewer drops the drawing but keeps its text.

    Args:
        scores: score 0..1 per iteration, None where there is none.
        target: score 0..1 that a text needs to pass.
        best: number of the best iteration, or None.
        first: number of the first iteration.
    """
    if not scores:
        return ""
    dots = _positions(scores, best, first)
    end = dots[-1].x
    width = round(end + _RIGHT)
    body = [
        f"<title>{_title(scores, target, best, first)}</title>",
        f'<line class="rf-target" x1="8" x2="{end + 16:g}" y1="{_y(target):.1f}" '
        f'y2="{_y(target):.1f}" stroke="currentColor" stroke-dasharray="4 4" opacity=".55"/>',
        f'<text x="{end + 22:g}" y="{_y(target) + 4:.1f}" opacity=".8">target {target:.2f}</text>',
        *_segments(dots),
        *_dots(dots, _y(target)),
    ]
    return (
        f'<svg class="rf-scores" role="img" viewBox="0 0 {width} {_HEIGHT}" width="{width}" '
        f'height="{_HEIGHT}" font-size="11" fill="currentColor">{" ".join(body)}</svg>'
    )


class _Dot(NamedTuple):
    """One score in the drawing."""

    x: float
    y: float
    number: int
    score: float | None
    best: bool


def _positions(scores: Sequence[float | None], best: int | None, first: int) -> list[_Dot]:
    """Return the dots, closer together the more there are."""
    step = min(_STEP, _STEP * (_MAX_LABELS - 1) / max(1, len(scores) - 1))
    return [
        _Dot(round(_LEFT + step * i, 1), _y(score or 0.0), first + i, score, first + i == best)
        for i, score in enumerate(scores)
    ]


def _y(score: float) -> float:
    """Return the height of a score."""
    return _BOTTOM - (_BOTTOM - _TOP) * score


def _title(scores: Sequence[float | None], target: float, best: int | None, first: int) -> str:
    """Describe the chart in words."""
    since = f" from {first} on" if first else ""
    values = ", ".join("none" if s is None else f"{s:.2f}" for s in scores)
    star = "" if best is None else f"; best: iteration {best}"
    return f"Score per iteration{since}: {values}; target {target:.2f}{star}."


def _segments(dots: Sequence[_Dot]) -> Iterator[str]:
    """Yield the lines between neighbours that both have a score."""
    for a, b in pairwise(dots):
        if a.score is not None and b.score is not None:
            yield (
                f'<line x1="{a.x:g}" y1="{a.y:.1f}" x2="{b.x:g}" y2="{b.y:.1f}" '
                'stroke="var(--rf-accent, currentColor)" stroke-width="2"/>'
            )


def _dots(dots: Sequence[_Dot], target: float) -> Iterator[str]:
    """Yield each dot with its labels; the best has a ring."""
    with_label = _with_label(dots)
    for dot in dots:
        at = f'cx="{dot.x:g}" cy="{dot.y:.1f}"'
        if dot.score is None:
            yield f'<circle {at} r="4" fill="none" stroke="currentColor" stroke-dasharray="2 2"/>'
        else:
            yield f'<circle {at} r="4" fill="var(--rf-accent, currentColor)"/>'
        if dot.best:
            yield (
                f'<circle class="rf-best" {at} r="7.5" fill="none" '
                'stroke="var(--rf-accent, currentColor)" stroke-width="1.5"/>'
            )
        if dot in with_label:
            yield from _labels(dot, target)


def _with_label(dots: Sequence[_Dot]) -> Sequence[_Dot]:
    """Return the dots to label: all of them, or of many the best, the first and the last."""
    if len(dots) <= _MAX_LABELS:
        return dots
    best = [dot for dot in dots if dot.best]
    ends = (dots[0], dots[-1])
    return best + [e for e in ends if all(abs(e.x - dot.x) > _LABEL_WIDTH for dot in best)]


def _labels(dot: _Dot, target: float) -> Iterator[str]:
    """Yield a dot's score, below it where the target line is in the way, and its number."""
    weight = ' font-weight="600"' if dot.best else ""
    at = dot.y + 20 if dot.y - 24 < target < dot.y - 8 else dot.y - 12
    yield (
        f'<text x="{dot.x:g}" y="{at:.1f}" text-anchor="middle"{weight}>'
        f"{'★ ' if dot.best else ''}{labels.score(dot.score)}</text>"
    )
    yield (
        f'<text x="{dot.x:g}" y="{_HEIGHT - 4}" text-anchor="middle" opacity=".7" '
        f'aria-hidden="true">{dot.number}</text>'
    )


def version_history(run: Run, since: int = 0) -> list[str]:
    """Return one line per iteration, drawn below its parent; empty without branches.

    A line of descent stays in one column, so fifty revisions in a row take no extra width.

    Args:
        run: the run.
        since: number of the first iteration to include.
    """
    children: dict[int | None, list[Iteration]] = {}
    for iteration in run.iterations[since:]:
        parent = iteration.parent
        included = parent is not None and parent >= since
        children.setdefault(parent if included else None, []).append(iteration)
    if all(len(siblings) < 2 for siblings in children.values()):
        return []
    return [f"{prefix}{_entry(run, i)}" for prefix, i in _walk(children)]


def _walk(children: dict[int | None, list[Iteration]]) -> Iterator[tuple[str, Iteration]]:
    """Yield every iteration with its branch lines, children after their parent."""
    # A stack instead of recursion: a run may be longer than Python nests calls.
    stack = [("", "", root) for root in reversed(children.get(None, []))]
    while stack:
        branch, indent, iteration = stack.pop()
        yield branch, iteration
        below = children.get(iteration.number, [])
        if len(below) == 1:
            stack.append((indent, indent, below[0]))
            continue
        last = len(below) - 1
        stack += [
            (indent + ("└─ " if n == last else "├─ "), indent + ("   " if n == last else "│  "), i)
            for n, i in reversed([*enumerate(below)])
        ]


def _entry(run: Run, iteration: Iteration) -> str:
    """Return an iteration's line, without its parent, which its place shows."""
    name = labels.iteration_name(iteration).partition(" (from")[0]
    score = iteration.verdict.score if iteration.verdict else None
    symbol = labels.iteration_label(iteration).symbol
    best = f" {labels.BEST}" if iteration.number == run.best else ""
    return f"{name} · {symbol} {labels.score(score)}{best}"
