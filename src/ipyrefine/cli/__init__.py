"""`ipyrefine`: the loop, its models and its runs on the command line."""

import argparse
import difflib
import sys

from ipyrefine.cli import demo, headless
from ipyrefine.errors import RefineError
from ipyrefine.providers import weights


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options, strange = _parser().parse_known_args(arguments)
    if strange:
        options.parser.error(_unknown(strange[0], options.parser))
    try:
        return int(options.action(options))
    except RefineError as error:
        print(f"ipyrefine: {error}", file=sys.stderr)
        return int(options.failed)
    except KeyboardInterrupt:
        print("ipyrefine: interrupted.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ipyrefine", description=__doc__)
    parser.set_defaults(failed=1)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    shown = commands.add_parser("demo", help="refine a task on a real model, here or in JupyterLab")
    demo.add_demo(shown)
    shown.set_defaults(action=demo.demo)
    pull = commands.add_parser("pull", help="fetch the embedded model's weights and verify them")
    pull.add_argument("name", nargs="?", default=weights.DEFAULT, help=", ".join(weights.WEIGHTS))
    pull.set_defaults(action=_pull)
    run = commands.add_parser(
        "run", help="execute a notebook's cells without a browser", epilog=headless.STATUS
    )
    headless.add_run(run)
    run.set_defaults(action=headless.run, failed=headless.FAILED)
    _add_runs(commands)
    for command in commands.choices.values():
        command.set_defaults(parser=command)
    return parser


def _unknown(word: str, command: argparse.ArgumentParser) -> str:
    """Say that a command does not know a word, and what it is near to."""
    known = [option for action in command._actions for option in action.option_strings]
    near = difflib.get_close_matches(word, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    what = f"there is no option {word}." if word.startswith("-") else f"{word!r} is too much."
    return f"{what}{hint} `{command.prog} --help` says what it takes."


def _add_runs(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from ipyrefine.session.history import add_history

    history = commands.add_parser("history", help="list the runs in the journal")
    add_history(history)
    history.set_defaults(action=_history)
    export = commands.add_parser("export", help="write a run to a file")
    export.add_argument("run", help="its name or number, as `ipyrefine history` lists it")
    export.add_argument("file", help="a notebook, Markdown or JSON, by its ending")
    export.add_argument("--force", action="store_true", help="replace the file if there is one")
    export.set_defaults(action=_export)


def _pull(options: argparse.Namespace) -> int:
    print(weights.pull(options.name))
    return 0


def _history(options: argparse.Namespace) -> int:
    from ipyrefine.session.history import history

    print(history(options))
    return 0


def _export(options: argparse.Namespace) -> int:
    from ipyrefine.journal.store import Journal
    from ipyrefine.session.export import export

    print(export(Journal().get(options.run).run, options.file, force=options.force))
    return 0
