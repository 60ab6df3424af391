"""A finding that only states a score is a chip."""

import pytest

from ipyrefine.core.model import Finding, Severity
from ipyrefine.core.run import Iteration
from ipyrefine.render.document import is_bare


@pytest.mark.parametrize(
    ("problem", "bare"),
    [
        ("Score: 6/10", True),
        ("The clarity is 0.5 of 1.", True),
        ("2 of 3 paragraphs are cold", False),
        ("- " * 20_000, False),  # which is read in a moment
    ],
)
def test_a_score_alone_is_told_from_a_finding(problem: str, bare: bool) -> None:
    finding = Finding(criterion="tone", severity=Severity.MINOR, problem=problem)
    assert is_bare(finding, Iteration(number=0, text="Hello.")) is bare
