"""Faults that a check tells apart, as findings of their own."""

from ipyrefine.core.records import Finding, Severity

MOST = 20  # of one check; a text with more of them needs another text, not a longer list


def fault(criterion: str, problem: str, quote: str = "") -> Finding:
    """A fault that keeps a text from passing.

    Args:
        criterion: what it falls under: a test, a rule, a place.
        problem: what is wrong.
        quote: the words of the text it is about, verbatim.
    """
    return Finding(
        id="f0",
        criterion=criterion,
        severity=Severity.BLOCKING,
        quote=quote,
        problem=problem,
        author="check",
    )
