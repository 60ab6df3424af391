"""Try a critic's finding on code: run the call by which it says that a result is wrong."""

import ast
from collections.abc import Mapping

from ipyrefine.checks.evaluation import Evaluation, holds
from ipyrefine.core.model import Finding, Task
from ipyrefine.core.stated import Example, stated_examples
from ipyrefine.core.syntax import is_literal, try_parse, try_parse_expression
from ipyrefine.errors import CheckNotRun

_SECONDS = 5.0
_LONGEST = 10_000  # characters of a call, or of what it should give


class Trial:
    """Runs a finding's input in the sandbox and compares what comes out with what it expects.

    What the task states about the same call counts, not what the finding says of it.

    Args:
        files: files to put next to the text, such as `kernel.variables.Variables.files`.
    """

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self._files = dict(files or {})

    async def __call__(self, finding: Finding, text: str, task: Task) -> bool | None:
        """Return whether the input shows the problem; None where it cannot be tried."""
        call = _normalise(finding.input)
        stated = [e for e in stated_examples(task) if not e.setup and _normalise(e.source) == call]
        example = stated[0] if stated else _example(call, finding.expected)
        if example is None or not _uses_only(call, text):
            return None
        evaluation = Evaluation(text, seconds=_SECONDS, files=self._files)
        try:
            (outcome,) = await evaluation.outcomes((example,))
        except CheckNotRun:
            return None
        return None if evaluation.absence else not holds(example, outcome)


def _example(call: str, expected: str) -> Example | None:
    """Return the example that a finding claims; None where its parts are not Python."""
    if not call or len(expected) > _LONGEST:
        return None
    words = expected.strip().removeprefix("raises ").strip()
    if words.isidentifier() and words.endswith(("Error", "Exception", "StopIteration")):
        return Example(source=call, expected=words, kind="raises")
    if not is_literal(words):
        return None
    return Example(source=call, expected=words, kind="equals")


def _normalise(source: str) -> str:
    """Return a call as Python writes it; empty for anything else, and for a very long one."""
    if len(source) > _LONGEST:
        return ""
    node = try_parse_expression(source.strip().removeprefix(">>> "))
    return ast.unparse(node) if isinstance(node, ast.Call) else ""


def _uses_only(call: str, text: str) -> bool:
    """Return whether a call uses no name but those that a text defines at its top level.

    What a critic writes must not open a file or start a program by itself.
    """
    tree, expression = try_parse(text), try_parse_expression(call)
    if tree is None or expression is None:
        return False
    kinds = (ast.FunctionDef, ast.ClassDef)
    defined = {node.name for node in tree.body if isinstance(node, kinds)}
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return bool(names) and names <= defined
