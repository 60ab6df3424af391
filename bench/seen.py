"""Count the notebook's data that a model is shown of a peer's questions, and how much is used.

``python bench/seen.py [--data DIR] [SET ...]`` needs no model. The sessions are DSEval's, run cell
by cell in one IPython shell each. For each question the names that the first prompt describes are
held against the data that the reference solution reads; what fails to run here ends its session.
"""

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
from collections import Counter

import measure
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from ipyrefine import api
from ipyrefine.kernel.describe import is_array, is_frame
from ipyrefine.kernel.names import names_in_code
from ipyrefine.notebook import options
from ipyrefine.notebook.cell_source import CellKey, read_source, visible_names
from ipyrefine.notebook.cell_start import make_run
from ipyrefine.providers.scripted import ScriptedModel

_QUESTION = re.compile(r"(?ms)^question:\s*(?:\|\n)?(.*?)(?=^\w+:|\Z)")
_DATA = (list, dict, set, tuple, str, int, float)


def cells(source: str) -> list[tuple[str, str]]:
    """Return the cells of a session, each with its question, which may be empty."""
    found = []
    for cell in re.split(r"(?m)^# %%.*\n", source)[1:]:
        tree = ast.parse(cell)
        asked = _QUESTION.search(ast.get_docstring(tree) or "")
        found.append((asked[1].strip() if asked else "", ast.unparse(tree.body[bool(asked) :])))
    return found


def main() -> None:
    """Print the table."""
    arguments = measure.parser(__doc__)
    arguments.add_argument("sets", nargs="*", default=["so", "leetcode", "exercise", "kaggle"])
    arguments.add_argument("--names", action="store_true", help="print each question's names, too")
    said = arguments.parse_args()
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    api.choose_model = lambda *_, **__: ScriptedModel([])  # type: ignore[assignment]
    shell.extension_manager.load_extension("ipyrefine")
    magics = shell.magics_manager.registry["Refine"]
    totals: dict[str, Counter[str]] = {}
    for row in measure.load_cases(said.data / "dseval", "sessions"):
        if row["set"] in said.sets:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                inputs = said.data.resolve() / "dseval/inputs" / row["set"]
                own = inputs / row["name"]
                os.symlink(own if own.exists() else inputs, "inputs")
                ask(row, shell, magics, totals.setdefault(row["set"], Counter()), said.names)
    sums = {**totals, "all": sum(totals.values(), Counter[str]())}
    names = (
        "questions",
        "need data",
        "covered",
        "by descriptions",
        "described",
        "unused",
        "in a line",
        "characters",
    )
    print(measure.table(["set", *names], [(k, *(v[n] for n in names)) for k, v in sums.items()]))


def ask(row: dict[str, str], shell: object, magics: object, sums: Counter[str], show: bool) -> None:
    """Ask the questions of one session."""
    shell.reset()  # type: ignore[attr-defined]
    for number, (asked, code) in enumerate(cells(row["source"])):
        if asked:
            args, ran = options.parse("", {"journal": False}), shell.history_manager.input_hist_raw
            ran.append("%%refine")  # the cell at hand
            made = make_run(magics, args, read_source(args, asked, shell), CellKey(), form="code")
            ran.pop()
            shown = made.refinement.state.setup.task.materials
            space = visible_names(shell)
            seen = {one.name for one in shown if one.kind == "variable"}
            lines = "".join(one.text for one in shown if one.kind == "names")
            beside = {*re.findall(r"(?m)^(\w+) \(", lines)}
            data = {n for n, v in space.items() if is_frame(v) or is_array(v) or type(v) in _DATA}
            needed = data.intersection(names_in_code(code))
            unused = seen - {*names_in_code(code)}
            sums.update(
                {
                    "questions": 1,
                    "need data": bool(needed),
                    "covered": bool(needed) and needed <= seen | beside,
                    "by descriptions": bool(needed) and needed <= seen,
                    "in a line": len(beside),
                    "described": len(seen),
                    "unused": len(unused),
                    "characters": sum(len(one.structure or one.text) for one in shown),
                }
            )
            if show and (unused or needed - seen - beside):
                name = f"{row['set']}/{row['name']}#{number}"
                print(name, "unused", unused, "missing", needed - seen, "|", asked[:150])
        with contextlib.redirect_stdout(io.StringIO()):
            if not shell.run_cell(code, store_history=True).success:  # type: ignore[attr-defined]
                print(row["set"], row["name"], number, file=sys.stderr)
                return


if __name__ == "__main__":
    main()
