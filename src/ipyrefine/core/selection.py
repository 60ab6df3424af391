"""A part of a draft that may change: everything around it is put back, whatever a model wrote."""

import textwrap
from difflib import SequenceMatcher

from ipyrefine.errors import UsageError

_RECOGNISED = 0.5  # of the lines around the selection, in a text that repeats them


class Selection:
    """Lines of a draft that may change.

    Args:
        draft: the draft.
        lines: the first and the last of them, from 1.

    Attributes:
        lines: as above.

    Raises:
        UsageError: the draft has no such lines.
    """

    def __init__(self, draft: str, lines: tuple[int, int]) -> None:
        self.lines = lines
        self._lines = draft.split("\n")
        first, last = lines
        if not 1 <= first <= last <= len(self._lines):
            count = len(self._lines)
            raise UsageError(f"There are no lines {first}-{last}. The draft has {count}.")
        self._start, self._end = first - 1, last

    @property
    def request(self) -> str:
        """One sentence for the writer, with the first words of the outer lines."""
        chosen = self._lines[self._start : self._end]
        words = [" ".join(line.split()[:4]) for line in chosen if line.strip()] or [""]
        if len(chosen) == 1:
            which = f"line {self._end} ({words[0]!r})"
        else:
            which = f"lines {self._start + 1} to {self._end} (from {words[0]!r} to {words[-1]!r})"
        return f"Change only {which} and repeat all other lines as they are."

    def restore(self, text: str) -> str:
        """Return a text with the lines around the selection put back as they are in the draft.

        Args:
            text: the whole draft with changes, or the selected lines alone.
        """
        before, after = self._lines[: self._start], self._lines[self._end :]
        written = text.split("\n")
        if self._repeats_context(written):
            middle = self._changed_lines(written)
        else:
            middle = self._indent(written)
        return "\n".join([*before, *middle, *after])

    def _repeats_context(self, written: list[str]) -> bool:
        context = [*self._lines[: self._start], *self._lines[self._end :]]
        context = [line.strip() for line in context if line.strip()]
        known = {line.strip() for line in written}
        return sum(line in known for line in context) >= _RECOGNISED * len(context)

    def _changed_lines(self, written: list[str]) -> list[str]:
        """Return what a text has in the place of the selection."""
        start, end = self._start, self._end
        middle = list[str]()
        matcher = SequenceMatcher(None, self._lines, written, autojunk=False)
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            if tag == "equal":
                middle += self._lines[max(i, start) : min(i_end, end)]
            elif tag == "insert" and start <= i <= end:
                middle += written[j:j_end]
            elif tag == "replace" and i < end and start < i_end:
                # Of a change across the border, as many lines as lie beyond it.
                beyond = max(0, i_end - end)
                middle += written[j + max(0, start - i) : j_end - beyond]
        return middle

    def _indent(self, written: list[str]) -> list[str]:
        """Return lines that stand alone, indented as the selection is."""
        chosen = "\n".join(self._lines[self._start : self._end])
        dedented = textwrap.dedent(chosen)
        first = next((line for line in dedented.split("\n") if line.strip()), "")
        indented = next((line for line in chosen.split("\n") if line.strip()), "")
        margin = indented[: len(indented) - len(first)]
        return textwrap.indent(textwrap.dedent("\n".join(written)), margin).split("\n")
