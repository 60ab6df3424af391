"""`history`, `forget` and `export`: what becomes of runs, on the magic and the command line."""

import argparse
import time
from collections.abc import Sequence

from ipyrefine.core.runs import Run, StopReason
from ipyrefine.errors import UsageError
from ipyrefine.journal.store import Journal, Summary
from ipyrefine.notebook.options import MagicParser
from ipyrefine.render import labels as words
from ipyrefine.render.escape import plain
from ipyrefine.session.export import export

LISTED = 20
COUNTED = 500  # runs that are read to count agreement


def add_history(parser: argparse.ArgumentParser) -> None:
    """Give a parser the arguments of `history`."""
    add = parser.add_argument
    add("search", nargs="*", help="words of the name or the task")
    add("--verdict", default="", help="pass, needs_improvement, fail, or why it stopped")
    add("-m", "--model", default="", help="part of the model's name")
    add("-n", "--number", type=int, default=LISTED, help=f"how many to list at most ({LISTED})")


def history(options: argparse.Namespace, *, now: float | None = None) -> str:
    """List the runs that options choose, as lines.

    Args:
        options: as `add_history` reads them.
        now: seconds since 1970.
    """
    number = max(1, options.number)
    found = Journal().runs(
        " ".join(options.search),
        verdict=options.verdict,
        model=options.model,
        limit=number + 1,
    )
    if not found:
        chosen = options.search or options.verdict or options.model
        return "There is no such run in the journal." if chosen else "The journal holds no run yet."
    now = time.time() if now is None else now
    rows = [_HEAD, *(_row(one, now) for one in found[:number])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    more = [f"There are more: -n {number * 5} lists them."] * (len(found) > number)
    return "\n".join(lines + more)


def agreement() -> str:
    """Say how often judge and user agreed, over the latest runs in the journal."""
    from ipyrefine.session.stats import table

    journal = Journal()
    return table(journal.get(str(one.number)).run for one in journal.runs(limit=COUNTED))


def history_words(given: Sequence[str]) -> str:
    """List runs for the words after `%refine history`."""
    parser = MagicParser(prog="%refine history", add_help=False)
    add_history(parser)
    return history(parser.parse_args(given))


def forget(given: Sequence[str]) -> str:
    """Erase the runs named after `%refine forget`, and say how many."""
    if given == ["--all"]:
        count = Journal().forget_all()
    elif len(given) == 1:
        count = Journal().forget(given[0])
    else:
        raise UsageError("Say which run: %refine forget NAME, or %refine forget --all.")
    return f"{words.count(count, 'run')} erased from the journal."


def export_words(latest: Run | None, given: Sequence[str]) -> str:
    """Write a run for the words after `%refine export`: ``FILE [NAME] [--force]``.

    Args:
        latest: the run of this notebook, written when no name is given.
        given: the words.
    """
    names = [word for word in given if word != "--force"]
    if not 1 <= len(names) <= 2:
        raise UsageError("Say where to: %refine export FILE.ipynb (or .md, .json) [NAME].")
    run = latest if len(names) == 1 and latest is not None else Journal().get(*names[1:]).run
    return f"Written to {export(run, names[0], force='--force' in given)}."


_HEAD = ("", "name", "verdict", "score", "stopped", "texts", "tokens", "last", "model", "task")


def _row(one: Summary, now: float) -> tuple[str, ...]:
    stop = words.STOPS[StopReason(one.stop_reason)] if one.stop_reason else "unfinished"
    return (
        str(one.number),
        plain(one.name),
        (one.outcome or words.NONE).replace("_", " "),
        words.score(one.score),
        stop,
        str(one.iterations),
        f"{one.tokens:,}",
        _ago(now - one.updated),
        plain(one.model),
        plain(one.title)[:60],
    )


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "now"
