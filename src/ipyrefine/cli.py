"""`ipyrefine`: the loop, its models and its runs on the command line."""

import argparse
import asyncio
import glob
import io
import json
import keyword
import os
import shutil
import sys
from collections.abc import Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nbformat

from ipyrefine import agents, notebook_check
from ipyrefine.core.model import Outcome, StopReason
from ipyrefine.core.run import Run
from ipyrefine.core.syntax import NO_VALUE, read_literal
from ipyrefine.demo import notebooks, run_demo
from ipyrefine.errors import Interrupted, RefineError, UsageError, did_you_mean
from ipyrefine.journal.store import Journal
from ipyrefine.providers import weights
from ipyrefine.render import blocks, say
from ipyrefine.render.escape import plain
from ipyrefine.session import classroom
from ipyrefine.session.export import export
from ipyrefine.session.history import MAX_LISTED, history
from ipyrefine.session.record import (
    ACCEPT,
    DECIDED,
    KEY,
    NOTEBOOK,
    listed,
    load,
    member,
    stored_records,
    write_file,
)

PASSED, UNMET, FAILED, NOT_JUDGED, NOTHING = range(5)  # exit statuses of `run`
_STATUS = (
    "Exit status: 0 when every %%refine cell passed or its text was accepted, 1 when one did not, "
    "2 when a cell failed or the notebook could not be executed, 3 when none failed to pass but at "
    "least one was not judged, 4 when there was no %%refine cell."
)
_CHECKED = (
    "Cells run for real, in the notebook's folder, and once more where something differs. What "
    "differs between two runs is chance. Exit status: 0 when nothing differs (chance, never "
    "run and nothing saved are only told), 1 when a cell differs or failed, 2 when a notebook "
    "could not be run."
)
_HANDED = (
    "A solution is a fold (<details>) whose summary has that word, or a cell with the tag "
    "`solution`. Recordings, data, pictures and modules that the rest names go along."
)
_INJECTED = "injected-parameters"  # the tag that papermill uses
_nbformat: Any = nbformat  # it carries no types


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    for stream in (sys.stdout, sys.stderr):  # a pipe on Windows takes some 250 characters
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        word, command = unknown[0], options.parser
        problem = f"unexpected argument {word!r}."
        if word.startswith("-"):
            hint = did_you_mean(word, command._option_string_actions)
            problem = f"there is no option {word}.{hint}"
        command.error(f"{problem} `{command.prog} --help` lists what it takes.")
    try:
        return int(options.action(options) or 0)
    except (Interrupted, KeyboardInterrupt) as error:
        print(f"ipyrefine: {str(error) or 'Interrupted.'}", file=sys.stderr)
        return 130
    except RefineError as error:
        print(f"ipyrefine: {error}", file=sys.stderr)
        return int(options.failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ipyrefine", description="Refine texts with a language model, and manage the runs."
    )
    parser.add_argument("--version", action="version", version=f"ipyrefine {version('ipyrefine')}")
    parser.set_defaults(failed=1, parser=parser, action=lambda _: parser.print_help())
    commands = parser.add_subparsers(metavar="COMMAND")

    def add_command(name: str, summary: str, **options: Any) -> argparse.ArgumentParser:
        description = f"{summary[0].upper()}{summary[1:]}."
        return commands.add_parser(name, help=summary, description=description, **options)

    demo = add_command("demo", "refine a sample task in the terminal or in JupyterLab")
    demo.add_argument("--lab", action="store_true", help="open the first notebook in JupyterLab")
    demo.add_argument(
        "--replay", action="store_true", help="replay a recorded run, without a model or a key"
    )
    demo.add_argument("-m", "--model", help="the model; by default the configured one")
    demo.add_argument(
        "-n", "--max-revisions", type=int, default=4, metavar="N",
        help="revisions allowed after the draft (4)",
    )  # fmt: skip
    demo.set_defaults(action=run_demo)

    summary = "fetch and verify the weights of an embedded model"
    pull = add_command("pull", summary, epilog=weights.ORIGIN)
    names = f"the model: {', '.join(weights.WEIGHTS)} ({weights.DEFAULT})"
    pull.add_argument("name", nargs="?", default=weights.DEFAULT, help=names)
    pull.set_defaults(action=lambda options: print(weights.pull(options.name)))

    run = add_command("run", "execute a notebook without a browser", epilog=_STATUS)
    run.add_argument("notebook", type=Path, help="the notebook to execute")
    run.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=VALUE",
        help="set a variable to a Python literal or a text, after the cell tagged `parameters` or "
        "else before the first; may be repeated",
    )  # fmt: skip
    where = "where to write it with its outputs (NOTEBOOK.refined.ipynb)"
    run.add_argument("-o", "--output", type=Path, help=where)
    taken = "accept each run's best text, unless it needs improvement"
    run.add_argument("--accept", choices=["best"], help=taken)
    run.set_defaults(action=_run, failed=FAILED)

    listing = add_command("history", "list the runs in the journal")
    listing.add_argument("search", nargs="*", help="words in the name or the task")
    number = f"runs to list ({MAX_LISTED})"
    listing.add_argument("-n", "--number", type=int, default=MAX_LISTED, help=number)
    listing.set_defaults(action=lambda it: print(history(" ".join(it.search), it.number)))

    writing = add_command("export", "write a run as JSON, or its tests")
    writing.add_argument("run", help="the run's name or number, as `ipyrefine history` lists it")
    writing.add_argument("file", help="where to write it: FILE.json, or .py for tests")
    writing.add_argument("--force", action="store_true", help="replace an existing file")
    writing.set_defaults(action=_export)

    checking = add_command(
        "check", "run notebooks and compare what they give with what is saved", epilog=_CHECKED
    )
    checking.add_argument("notebooks", nargs="+", help="the notebooks")
    checking.add_argument("--json", action="store_true", help="print the results as JSON")
    unlooked = "do not look before each cell what it does to data, which takes a second each"
    checking.add_argument("--no-account", action="store_true", help=unlooked)
    allowed = f"that a cell may run ({notebook_check.CELL_SECONDS})"
    checking.add_argument(
        "--seconds", type=float, default=notebook_check.CELL_SECONDS, metavar="S", help=allowed
    )
    checking.set_defaults(action=_check, failed=notebook_check.NOT_RUN)

    serving = add_command("mcp", "serve a look at open notebooks to agents, over stdio")
    told = "print what an agent has to know instead, as a skill (SKILL.md)"
    serving.add_argument("--skill", action="store_true", help=told)
    serving.set_defaults(action=lambda it: print(agents.skill()) if it.skill else agents.serve())

    giving = add_command(
        "handout", "copy notebooks for a lab, without solutions and outputs", epilog=_HANDED
    )
    giving.add_argument("notebooks", nargs="+", help="numbers of ours (01 05), or files")
    giving.add_argument("-o", "--output", type=Path, default=Path("lab"), help="the folder (lab)")
    giving.set_defaults(
        action=lambda it: print(*classroom.handout(map(_find, it.notebooks), it.output), sep="\n")
    )

    reporting = add_command("report", "list the runs in notebooks that were handed in")
    reporting.add_argument("notebooks", nargs="+", help="the notebooks: folder/*.ipynb")
    table = "write a table for a spreadsheet, too"
    reporting.add_argument("--csv", type=Path, metavar="FILE", help=table)
    reporting.set_defaults(action=_report)

    for command in commands.choices.values():
        command.set_defaults(parser=command)
    return parser


def _export(options: argparse.Namespace) -> None:
    print(export(Journal().get(options.run).run, options.file, force=options.force))


def _paths(words: Iterable[str]) -> list[str]:
    """Return files by their names and patterns, which not every shell expands."""
    found = ([] if os.path.exists(word) else sorted(glob.glob(word)) for word in words)
    return [path for word, paths in zip(words, found, strict=True) for path in paths or [word]]


def _check(options: argparse.Namespace) -> int:
    found = {}
    if not options.json:
        print("The cells run for real, each in the folder of its notebook.", flush=True)
    for path in _paths(options.notebooks):
        found[path] = asyncio.run(
            notebook_check.check(path, seconds=options.seconds, account=not options.no_account)
        )
        if not options.json:
            print(plain(f"{path}: {found[path]}"), flush=True)
    if options.json:
        listed = {path: one.model_dump() for path, one in found.items()}
        print(json.dumps(listed, indent=2))
    return int(not all(one.holds for one in found.values()))


def _find(word: str) -> Path:
    """Return a notebook by its file, or one of ours by its number."""
    if not word.isdecimal():
        return Path(word)
    for path in notebooks().glob(f"{int(word):02}-*.ipynb"):
        return path
    raise UsageError(f"There is no notebook {word}. `ipyrefine demo --lab` shows them.")


def _report(options: argparse.Namespace) -> int:
    rows = classroom.report([*map(Path, _paths(options.notebooks))])
    if options.csv:
        classroom.write_csv(rows, options.csv)
    print(classroom.report_text(rows, shutil.get_terminal_size().columns))
    return int(any(one["problem"] for one in rows))


# ipyrefine run


def _run(options: argparse.Namespace) -> int:
    """Execute a notebook, write it with its outputs, and return what its verdicts come to.

    Raises:
        UsageError: the notebook or a parameter cannot be used, or a cell failed; the notebook is
            written as far as it got.
    """
    notebook = notebook_check.read_notebook(options.notebook)
    values = dict(map(read_parameter, options.parameter))
    if values:
        inject_parameters(notebook, values)
    output = options.output or options.notebook.with_suffix(".refined.ipynb")
    write = partial(write_file, output)
    write(f"{_nbformat.writes(notebook)}\n")  # or not, before anything runs and costs
    try:
        execute(notebook, options.notebook, accept=options.accept or "")
    finally:
        write(f"{_nbformat.writes(notebook)}\n")
    runs = load(output)
    print("\n".join([*map(summarize, range(len(runs)), runs), plain(f"Written to {output}.")]))
    if not runs:
        nothing = "Nothing was refined: {} has no %%refine cell that left a record."
        print(plain(f"ipyrefine: {nothing.format(options.notebook)}"), file=sys.stderr)
        return NOTHING
    return exit_status(runs)


def exit_status(runs: Iterable[Run]) -> int:
    """Return the exit status for these runs: passed, unmet, or not judged."""
    open_verdicts = [run.verdict for run in runs if not run.converged]
    if not open_verdicts:
        return PASSED
    judged = [v for v in open_verdicts if v is None or v.outcome is not Outcome.NOT_JUDGED]
    return UNMET if judged else NOT_JUDGED


def read_parameter(text: str) -> tuple[str, Any]:
    """Read ``NAME=VALUE``; the value is a Python literal, else text.

    Raises:
        UsageError: the name is not one of a variable.
    """
    name, equals, value = text.partition("=")
    if not (equals and name.isidentifier()) or keyword.iskeyword(name):
        raise UsageError(f"-p {text!r}: write NAME=VALUE with the name of a variable.")
    parsed = read_literal(value)
    return name, value if parsed is NO_VALUE else parsed


def inject_parameters(notebook: Any, values: dict[str, Any]) -> None:
    """Add a cell that sets parameters, in place of an earlier one, as papermill does."""
    source = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    cell = _nbformat.v4.new_code_cell(source, metadata={"tags": [_INJECTED]})
    if "id" not in (notebook.cells or [cell])[0]:
        del cell["id"]  # older notebooks have none
    kept = [one for one in notebook.cells if _INJECTED not in _tags(one)]
    tagged = [number for number, one in enumerate(kept, start=1) if "parameters" in _tags(one)]
    kept.insert(tagged[0] if tagged else 0, cell)
    notebook.cells = kept


def _tags(cell: Any) -> Iterable[str]:
    return listed(member(cell.metadata, "tags"))


def execute(notebook: Any, path: Path, *, accept: str = "") -> None:
    """Execute a notebook's cells in a kernel of its own, which finds decided runs in its file.

    Args:
        notebook: as nbformat has it; its decided cells get a tag, by which others pass over them.
        path: its file.
        accept: ``best`` to accept the best text of each run that needs no improvement.

    Raises:
        UsageError: nbclient or the kernel is missing, a cell failed, or the kernel died.
    """
    try:
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, DeadKernelError
    except ImportError:
        raise UsageError(
            'Executing notebooks needs nbclient and ipykernel: `pip install "ipyrefine[run]"`.'
        ) from None
    from jupyter_client.kernelspec import NoSuchKernel
    from tqdm import tqdm

    with tqdm(total=len(notebook.cells), unit="cell", desc="Executing") as bar:

        def complete(cell: Any, cell_index: int) -> None:
            bar.update(cell_index + 1 - bar.n)

        client = NotebookClient(
            notebook,
            on_cell_complete=complete,
            resources={"metadata": {"path": str(path.parent)}},
            config=notebook_check.encrypted(),
        )
        # Shown again, decided cells give later ones their texts; other programs pass over them.
        decided = [one for one in notebook.cells if member(member(one.metadata, KEY), "skips")]
        for one in decided:
            one.metadata["tags"] = [tag for tag in _tags(one) if tag != notebook_check.SKIPPED]
        try:
            client.execute(env=os.environ | {NOTEBOOK: os.path.abspath(path), ACCEPT: accept})
        except CellExecutionError as error:
            reason = ": ".join(filter(None, (error.ename, error.evalue)))
            outputs = notebook.cells[bar.n - 1].outputs
            said = [one.text.strip() for one in outputs if one.get("name") == "stderr"]
            raise UsageError(f"Cell {bar.n} failed: {'. '.join([reason, *said[-1:]])}") from None
        except UnicodeEncodeError:  # JSON can write what is no character
            cell = f"Cell {bar.n + 1} holds a character that is none"
            raise UsageError(f"{cell}. Type the place again in JupyterLab.") from None
        except DeadKernelError:
            raise UsageError(f"The kernel died in cell {bar.n}.") from None
        except NoSuchKernel as error:
            raise UsageError(f"There is no kernel {error.name!r} here. Install it.") from None
        finally:
            for cell in notebook.cells:
                records = stored_records({"cells": [{**cell, "metadata": {}}]})
                stops = {member(one.record, "stop_reason") for one in records}
                if cell in decided or not stops.isdisjoint(DECIDED):
                    cell.metadata["tags"] = [*dict.fromkeys([*_tags(cell), notebook_check.SKIPPED])]
                    ours = cell.metadata.get(KEY)
                    kept = ours if isinstance(ours, dict) else {}
                    cell.metadata[KEY] = {**kept, "skips": True}
        bar.update(len(notebook.cells) - bar.n)


def summarize(number: int, run: Run) -> str:
    """Return a run's verdict in one line, why it stopped without one, and what to clarify."""
    stop = say.STOPS[run.stop_reason] if run.stop_reason else "unfinished"
    line = f"{number}: {say.verdict(run, run.chosen)}"
    if run.stop_reason not in (StopReason.PASSED, StopReason.ANSWERED, StopReason.UNJUDGED):
        line += f" · {stop}"
    found = blocks.results(run, run.chosen) if run.chosen else []
    asked = next((one for one in found if one.choices), None)
    return plain(f"{line}\n   To confirm: {asked}" if asked else line)
