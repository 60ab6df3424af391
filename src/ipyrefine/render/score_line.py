"""The score over the iterations: blocks for text, a small drawing for HTML."""

from collections.abc import Iterator, Sequence

_BLOCKS = "▁▂▃▄▅▆▇█"
_TOP, _BOTTOM, _HEIGHT = 24.0, 56.0, 88
_LEFT, _STEP, _RIGHT = 24.0, 56.0, 84.0
_LABELS = 12


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
    end = _LEFT + _STEP * (len(scores) - 1)
    width = round(end + _RIGHT)
    body = [
        f"<title>{_title(scores, target, best, first)}</title>",
        f'<line class="rf-target" x1="8" x2="{end + 16:g}" y1="{_y(target):.1f}" '
        f'y2="{_y(target):.1f}" stroke="currentColor" stroke-dasharray="4 4" opacity=".55"/>',
        f'<text x="{end + 22:g}" y="{_y(target) + 4:.1f}" opacity=".8">target {target:.2f}</text>',
        *_segments(scores),
        *_dots(scores, best, _y(target), first),
    ]
    return (
        f'<svg class="rf-scores" role="img" viewBox="0 0 {width} {_HEIGHT}" width="{width}" '
        f'height="{_HEIGHT}" font-size="11" fill="currentColor">{" ".join(body)}</svg>'
    )


def _x(index: int) -> float:
    """Where an iteration stands."""
    return _LEFT + _STEP * index


def _y(score: float) -> float:
    """Where a score stands."""
    return _BOTTOM - (_BOTTOM - _TOP) * score


def _title(scores: Sequence[float | None], target: float, best: int | None, first: int) -> str:
    """The drawing in words."""
    since = f" from {first} on" if first else ""
    shown = ", ".join("none" if s is None else f"{s:.2f}" for s in scores)
    star = "" if best is None else f"; best: iteration {best}"
    return f"Score per iteration{since}: {shown}; target {target:.2f}{star}."


def _segments(scores: Sequence[float | None]) -> Iterator[str]:
    """The line between neighbours that both have a score."""
    for i in range(1, len(scores)):
        a, b = scores[i - 1], scores[i]
        if a is not None and b is not None:
            yield (
                f'<line x1="{_x(i - 1):g}" y1="{_y(a):.1f}" x2="{_x(i):g}" y2="{_y(b):.1f}" '
                'stroke="var(--rf-accent, currentColor)" stroke-width="2"/>'
            )


def _dots(
    scores: Sequence[float | None], best: int | None, target: float, first: int
) -> Iterator[str]:
    """A dot with its score and, at the foot, its number; the best has a ring and a star."""
    for i, score in enumerate(scores):
        x, y, is_best = _x(i), _y(score or 0.0), first + i == best
        if score is None:
            yield (
                f'<circle cx="{x:g}" cy="{y:.1f}" r="4" fill="none" stroke="currentColor" '
                'stroke-dasharray="2 2"/>'
            )
        else:
            yield f'<circle cx="{x:g}" cy="{y:.1f}" r="4" fill="var(--rf-accent, currentColor)"/>'
        if is_best:
            yield (
                f'<circle class="rf-best" cx="{x:g}" cy="{y:.1f}" r="7.5" fill="none" '
                'stroke="var(--rf-accent, currentColor)" stroke-width="1.5"/>'
            )
        if len(scores) <= _LABELS or i in (0, len(scores) - 1) or is_best:
            yield from _labels(x, first + i, score, is_best, y, target)


def _labels(
    x: float, number: int, score: float | None, best: bool, y: float, target: float
) -> Iterator[str]:
    """A dot's score, above it unless the target's line runs there, and its number."""
    shown = "\N{EN DASH}" if score is None else f"{score:.2f}"
    weight = ' font-weight="600"' if best else ""
    at = y + 20 if y - 24 < target < y - 8 else y - 12
    yield (
        f'<text x="{x:g}" y="{at:.1f}" text-anchor="middle"{weight}>'
        f"{'★ ' if best else ''}{shown}</text>"
    )
    yield (
        f'<text x="{x:g}" y="{_HEIGHT - 4}" text-anchor="middle" opacity=".7" '
        f'aria-hidden="true">{number}</text>'
    )
