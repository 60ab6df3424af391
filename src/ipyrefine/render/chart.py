"""The score over the iterations: blocks for text, a small drawing for HTML."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

_BLOCKS = "▁▂▃▄▅▆▇█"
_TOP, _BOTTOM, _HEIGHT = 24.0, 56.0, 88
_LEFT, _STEP, _RIGHT = 24.0, 56.0, 84.0
_LABELS = 12  # with more scores than these the drawing grows no wider, and few have a label
_APART = 48.0


def sparkline(scores: Sequence[float | None]) -> str:
    """One block per iteration, its height the score from 0 to 1; a dot where there is none.

    >>> sparkline([0.4, None, 0.7, 1.0])
    '▄·▆█'
    """
    return "".join("·" if s is None else _BLOCKS[min(7, int(s * 8))] for s in scores)


def svg(scores: Sequence[float | None], target: float, best: int | None, *, first: int = 0) -> str:
    """Draw the scores as dots on a line, with the target dashed and the best one ringed.

    A missing score is a hollow dot on the base line and a gap in the line. Spaces between the
    labels keep them readable where a viewer drops the drawing and leaves its text.

    Args:
        scores: score 0..1 per iteration, None where there is none.
        target: score 0..1 a passing text must reach.
        best: number of the best iteration, or None.
        first: number of the iteration that the first score is of.
    """
    if not scores:
        return ""
    dots = _placed(scores, best, first)
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


def _placed(scores: Sequence[float | None], best: int | None, first: int) -> list[_Dot]:
    """The dots, as close together as they have to be."""
    step = min(_STEP, _STEP * (_LABELS - 1) / max(1, len(scores) - 1))
    return [
        _Dot(round(_LEFT + step * i, 1), _y(score or 0.0), first + i, score, first + i == best)
        for i, score in enumerate(scores)
    ]


def _y(score: float) -> float:
    """Where a score stands."""
    return _BOTTOM - (_BOTTOM - _TOP) * score


def _title(scores: Sequence[float | None], target: float, best: int | None, first: int) -> str:
    """The drawing in words."""
    since = f" from {first} on" if first else ""
    shown = ", ".join("none" if s is None else f"{s:.2f}" for s in scores)
    star = "" if best is None else f"; best: iteration {best}"
    return f"Score per iteration{since}: {shown}; target {target:.2f}{star}."


def _segments(dots: Sequence[_Dot]) -> Iterator[str]:
    """The line between neighbours that both have a score."""
    for a, b in pairwise(dots):
        if a.score is not None and b.score is not None:
            yield (
                f'<line x1="{a.x:g}" y1="{a.y:.1f}" x2="{b.x:g}" y2="{b.y:.1f}" '
                'stroke="var(--rf-accent, currentColor)" stroke-width="2"/>'
            )


def _dots(dots: Sequence[_Dot], target: float) -> Iterator[str]:
    """A dot with its score and, at the foot, its number; the best has a ring and a star."""
    labelled = _labelled(dots)
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
        if dot in labelled:
            yield from _labels(dot, target)


def _labelled(dots: Sequence[_Dot]) -> Sequence[_Dot]:
    """All dots, or of many the best, and the first and the last where it leaves room for them."""
    if len(dots) <= _LABELS:
        return dots
    best = [dot for dot in dots if dot.best]
    ends = (dots[0], dots[-1])
    return best + [e for e in ends if all(abs(e.x - dot.x) > _APART for dot in best)]


def _labels(dot: _Dot, target: float) -> Iterator[str]:
    """A dot's score, above it unless the target's line runs there, and its number."""
    shown = "\N{EN DASH}" if dot.score is None else f"{dot.score:.2f}"
    weight = ' font-weight="600"' if dot.best else ""
    at = dot.y + 20 if dot.y - 24 < target < dot.y - 8 else dot.y - 12
    yield (
        f'<text x="{dot.x:g}" y="{at:.1f}" text-anchor="middle"{weight}>'
        f"{'★ ' if dot.best else ''}{shown}</text>"
    )
    yield (
        f'<text x="{dot.x:g}" y="{_HEIGHT - 4}" text-anchor="middle" opacity=".7" '
        f'aria-hidden="true">{dot.number}</text>'
    )
