"""`refine_frame`: a column of tasks in, a table of texts, verdicts, scores and costs out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ipyrefine.batch.refine_many import Item, refine_many
from ipyrefine.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ("text", "verdict", "basis", "score", "cost", "error")


async def refine_frame(
    frame: "DataFrame", column: str, *, drafts: str | None = None, **options: Any
) -> "DataFrame":
    """Refine the tasks in a table's column, as `refine_many` does.

    Args:
        frame: the table.
        column: the column that holds the tasks; an empty cell is an error of its row.
        drafts: the column that holds texts to start from, if any.
        **options: as for `refine_many`.

    Returns:
        A table with the same index: ``text``; ``verdict`` (an outcome such as ``PASS`` or
        ``NOT_JUDGED``, or None); ``basis``, what that rests on, or None; ``score`` 0..1;
        ``cost`` in US dollars, NaN when the price is not known; ``error``, a sentence, or None.

    Raises:
        UsageError: pandas is missing, there is no such column, or as for `refine_many`.
        NoModel: no model is configured.
    """
    _require_pandas()
    for wanted in (column, drafts):
        if wanted is not None and wanted not in frame.columns:
            known = [str(name) for name in frame.columns]
            hint = did_you_mean(wanted, known) or f" It has {', '.join(known)}."
            raise UsageError(f"The table has no column {wanted!r}.{hint}")
    tasks = [{"text": text} for text in column_texts(frame[column])]
    if drafts is not None:
        for task, draft in zip(tasks, column_texts(frame[drafts]), strict=True):
            task |= {"draft": draft} if draft else {}
    return items_frame(await refine_many(tasks, **options), frame.index)


def items_frame(items: Sequence[Item], index: Any) -> "DataFrame":
    """Return items as a table.

    Args:
        items: the results of many tasks.
        index: the table's index.

    Raises:
        UsageError: pandas is missing.
    """
    pandas = _require_pandas()
    return pandas.DataFrame([_row(item) for item in items], index=index, columns=[*COLUMNS])


def _require_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UsageError("Tables need pandas: `pip install pandas`.") from None
    return pandas


def column_texts(column: Any) -> list[str]:
    """Return the texts of a pandas column; a missing one is empty."""
    return [
        "" if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)
    ]


def _row(item: Item) -> dict[str, Any]:
    run = item.run
    return {
        "text": run.text if run else "",
        "verdict": run.verdict.outcome.value if run and run.verdict else None,
        "basis": run.verdict.basis if run and run.verdict else None,
        "score": run.score if run else None,
        "cost": run.cost if run else None,
        "error": str(item.error) if item.error else None,
    }
