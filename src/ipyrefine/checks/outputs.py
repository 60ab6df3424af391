"""Read what code printed, returned and drew in the sandbox: within bounds, without secrets."""

import ast
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import islice

from pydantic import TypeAdapter, ValidationError

from ipyrefine.core.model import MAX_OUTPUT, MAX_OUTPUTS, Fault, Output, Printed, Value
from ipyrefine.core.syntax import try_parse
from ipyrefine.kernel.redaction import clean, tidy
from ipyrefine.sandbox.sandbox import Event, field_of

Import = tuple[str, list[str]]

IMPORT_SECONDS = 20.0  # of processor time, for what a text imports and for drawing its figure
_OUTPUT = TypeAdapter(Output)
_MAX_IMPORTS = 50
# Words of code that draws, by matplotlib or by what is built on it.
_DRAWS = re.compile(r"matplotlib|plt|plot|hist|seaborn")


def read_outputs(events: Iterable[Event], printed: str) -> tuple[Output, ...]:
    """Return the outputs in a report and on standard output, those within their bounds."""
    found = []
    reported = field_of(events, "outputs")
    for one in reported if isinstance(reported, list) else ():
        try:
            found.append(_OUTPUT.validate_python(tidy(one)))
        except (ValidationError, RecursionError):
            continue  # only the text can have written that
    text = clean(printed.strip("\n").rstrip(), MAX_OUTPUT)
    if text and not any(isinstance(one, Value) and one.text == text for one in found):
        found.insert(0, Printed(text=text))
    return tuple(found[:MAX_OUTPUTS])


def read_fault(event: Event, about: str = "") -> Fault:
    """Return how a text failed, as a part of the program reports it; of a test, or an example.

    Its line is the last one of the text that the failure went through.
    """
    raised, frames = event.get("raised") or "", event.get("frames") or ()
    lines = [event.get("line")] if "outcome" not in event else []
    lines += [one[1] for one in frames if one[:1] == ["candidate.py"]]
    fields = {
        "raised": raised[0] if isinstance(raised, list) else raised,
        "line": next(reversed(lines), 0) or 0,
        "compared": event.get("compared") or (),
    }
    try:
        return Fault.model_validate({"about": about, **fields})
    except (ValidationError, IndexError):  # only the text can have written that
        return Fault(about=about)


def imports_of(code: str) -> list[Import]:
    """Return the packages that code imports, each with the names it takes from it.

    They are imported before the time of a check counts. The standard library is not among them.
    """
    found: list[Import] = []
    tree = try_parse(code)
    if tree is None:
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append((node.module, [a.name for a in node.names if a.name != "*"]))
    if _DRAWS.search(code) and find_spec("matplotlib"):
        found.append(("matplotlib.pyplot", []))
    foreign = (one for one in found if one[0].partition(".")[0] not in sys.stdlib_module_names)
    return list(islice(foreign, _MAX_IMPORTS))
