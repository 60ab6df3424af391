"""What a student sees of a run on their own code (`ipyrefine.core.coach`), in words."""

from ipyrefine.core.coach import open_puzzle, predictions, unmet
from ipyrefine.core.model import Attempt, bare
from ipyrefine.core.results import gives_same
from ipyrefine.core.run import Run
from ipyrefine.render import words
from ipyrefine.render.blocks import Block, Item, Items, Paragraph, Text

_MISSES = "Your code misses the task on one input."
_PREDICT = "What does it give? Predict it: a value as Python, or the name of an exception."


def record(run: Run) -> list[Block]:
    """Return the blocks of a student's whole run, as `document.record` does of any other."""
    label = Paragraph("", lead=str(words.verdict(run, run.chosen).label))
    own = [Text(run.chosen.text, "code", title="Your code")] if run.chosen else []
    return [label, *asked(run), *said(run), *own]


def asked(run: Run) -> list[Block]:
    """Return the input whose result a student is to predict; nothing where none is left."""
    found = open_puzzle(run)
    if found is None:
        return []
    return [Paragraph(_PREDICT, lead=_MISSES), Text(found.code, "code")]


def said(run: Run) -> list[Block]:
    """Return what a student predicted, and once nothing is left to predict, what else is said."""
    blocks, also = list[Block](), list[str]()
    if run.chosen and open_puzzle(run) is None:
        change = predictions(run) and run.verdict and not run.verdict.passed
        again = "Change your code, and run the cell again."
        reason = words.verdict(run, run.chosen).sentence
        blocks.append(Paragraph(again if change else reason))
        also += [f"“{quote}”" for quote in unmet(run)]
        left = [one for one in run.cells(run.chosen) if one.actionable and one.point.by_model]
        left = [one for one in left if change or one.words not in reason]
        also += [one.words for one in sorted(left, key=lambda one: not one.weighs)]
    made = [
        Item(name=one.code.replace("\n", "; "), text=_sentence(one))
        for one in run.attempts
        if one.predicted
    ]
    listed = {
        "Look at this too": [Item(text=one) for one in also],
        "Your predictions": made,
    }
    return [*blocks, *(Items(title, tuple(found)) for title, found in listed.items() if found)]


def _sentence(attempt: Attempt) -> str:
    right = gives_same(attempt.predicted, attempt.gives)
    gives = ", and so it is" if right else f"; it gives {bare(attempt.gives)}"
    quote = f": “{attempt.quote}”" if attempt.quote else "."
    wanted = f"The task wants {bare(attempt.expected)}{quote}"
    return f"You predicted {bare(attempt.predicted)}{gives}. {wanted}"
