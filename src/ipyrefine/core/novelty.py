"""What a revision has that the text that was read has not, so that it is read again."""

import ast
import re

from ipyrefine.core.alignment import compare
from ipyrefine.core.run import Iteration
from ipyrefine.core.syntax import FUNCTION, tree_of, unparse


def is_new(text: Iteration, read: Iteration) -> bool:
    """Return True if a text shows or is more than the one that was read.

    It shows an effect, a condition, a column or a type that that one does not, lacks one of its
    signatures, or over half of the words of either are not in the other.
    """
    if not _shown(text) <= _shown(read) or not _signatures(read.text) <= _signatures(text.text):
        return True
    words = [re.findall(r"\w+", one.text) for one in (read, text)]
    shared = sum(end - start for tag, start, end, *_ in compare(*words) if tag == "equal")
    return 2 * shared < max(map(len, words))


def _shown(text: Iteration) -> set[object]:
    found: set[object] = {*text.conditions, *(one.key for one in text.effects.values())}
    for held in (one for evidence in text.evidence for one in evidence.held):
        found |= {(held.name, "", held.type), *((held.name, c.name, c.type) for c in held.columns)}
    return found


def _signatures(source: str) -> set[tuple[str, str]]:
    nodes = ast.walk(tree_of(source))
    functions = (one for one in nodes if isinstance(one, FUNCTION))
    return {(one.name, unparse(one.args)) for one in functions}
