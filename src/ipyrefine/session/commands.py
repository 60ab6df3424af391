"""`%refine COMMAND`: the panel's decisions for every front-end, and what else a user can ask for.

A new decision needs a line in `USAGE` and a case in `parse_decision`.
"""

import difflib
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from ipyrefine.core import decisions
from ipyrefine.core.findings import answer
from ipyrefine.core.model import (
    MAX_ITERATIONS,
    Finding,
    Form,
    Outcome,
    Row,
    Severity,
    named_criteria,
)
from ipyrefine.core.results import expect, read_expectation, read_result, rows
from ipyrefine.core.run import Run
from ipyrefine.core.sharing import next_level, withheld
from ipyrefine.errors import UsageError, did_you_mean
from ipyrefine.journal.store import Journal
from ipyrefine.profiles import builtin
from ipyrefine.render import labels
from ipyrefine.render.diff import text_diff
from ipyrefine.render.escape import plain
from ipyrefine.render.terminal import DETAILS, details_text, record_text
from ipyrefine.session import history
from ipyrefine.session.export import export, suite_source
from ipyrefine.session.session import Session

Place = Literal["insert", "replace", "none"]
PLACES: tuple[Place, ...] = get_args(Place)
ANSWERS = ("once", "always", "never")  # on what a server may be sent

# What may follow each command, and what it does, on one line of a screen.
USAGE = {
    "accept": ("[k] [insert|replace|none]", "take the best text, or text k"),
    "override": ("pass|fail [k] [reason]", "give the verdict yourself"),
    "continue": ("[from k] [n] [guidance]", "revise again; f1 f2 only; as code|prose"),
    "right": ("1 3", "say that these results are right"),
    "should": ('2 "VALUE"', 'what a result should be; "f(x) == y"; q1 …'),
    "dismiss": ("f1 [reason]", "drop a finding, or a demand by its name"),
    "add": ('"problem" ["quote"] ["fix"]', "add a finding; add f1 … changes one"),
    "edit": ("[VARIABLE|criteria a,b]", "put in your own text, or other criteria"),
    "fix": ("[OPTIONS]", "fix the cell that failed, as %%refine would"),
    "show": ("[k|PART|profiles|models]", "print the run, a text or a part of it"),
    "diff": ("[i j]", "print what changed between two texts"),
    "tests": ("[below]", "print the run's tests, or put them below"),
    "export": ("[tests] FILE [NAME]", "write a run, or its tests, into a file"),
    "history": ("[search]", "list earlier runs"),
    "resume": ("[NAME | FILE.ipynb [k]]", "continue an earlier run"),
    "forget": ("NAME|--all", "erase runs from the journal"),
    "share": ("[once|always|never]", "show what no server was sent, or send it"),
    "stop": ("", "stop the run and keep the best text"),
    "close": ("", "stop the run and close its panel"),
}
# What people may type for a command, and what to type instead.
_SYNONYMS = {
    "apply": "accept insert",
    "branch": "continue from 0",
    "confirm": "right 1",
    "drop": "dismiss CHECK",
    "expect": 'should 1 "VALUE"',
    "guide": 'continue "guidance"',
    "kind": "continue as prose",
    "predict": "should VALUE",
    "select": "continue f1",
}
COMMANDS = tuple(sorted(USAGE))
_NEED_TEXT = ("diff", "edit", "right", "should", "show", "tests")


class CellTarget(Protocol):
    """Where the text of a cell goes."""

    async def read_back(self) -> str | None:
        """Return what the cell that a text was put into holds now; None if that is not known."""


class Cell(Protocol):
    """The cell of a run, as far as commands need it."""

    shell: Any
    session: Session
    cell_target: CellTarget

    async def carry_out(self, decision: decisions.Decision) -> None:
        """Take a decision and wait for the next stop."""

    async def start_again(self, form: Form | None = None) -> None:
        """Start again as code or as prose, and wait for the next stop."""

    async def explain(self, question: str, number: int) -> str:
        """Ask about a text, which is kept with the answer, and return that nothing was revised."""

    def share(self, answer: str) -> str:
        """Take an answer on what servers are sent and return what holds, in a sentence."""

    async def add_tests(self) -> str:
        """Put the run's tests into a cell and return where they went, in a sentence."""

    def close(self) -> None:
        """Stop the run and close its panel."""


class Magics(Protocol):
    """The magics, as far as commands need them."""

    latest: Cell | None

    async def resume(self, words: list[str]) -> None:
        """Resume the earlier run that the words name."""

    async def fix(self, words: list[str]) -> None:
        """Fix the cell that failed; the words are options."""


def usage() -> str:
    """Return the commands, one a line, with what may follow each and what it does."""
    lines = [f"  {f'{name} {words}':<33} {does}" for name, (words, does) in USAGE.items()]
    head = "%%refine refines a cell (see %%refine?). Then decide with %refine COMMAND:"
    return "\n".join([head, *lines])


async def run_command(magics: Magics, words: list[str]) -> None:
    """Carry out one command.

    Raises:
        UsageError: there is no such command, no run yet, or a word means nothing here.
        RefineError: what ended the run that the command started.
    """
    name, *args = words or [""]
    if words and name not in USAGE:
        raise UsageError(f"There is no command {name!r}.{_instead(name)} %refine lists them.")
    match name:
        case "":
            print(usage())
        case "show" if args in (["profiles"], ["models"]):
            print(_profiles() if args == ["profiles"] else _models())
        case "history":
            print(history.history(" ".join(args)))
        case "forget":
            print(_forget(args))
        case "export":
            print(_export(magics.latest, args))
        case "resume":
            await magics.resume(args)
        case "fix":
            await magics.fix(args)
        case _ if magics.latest:
            await _steer(magics.latest, name, args)
        case _:
            raise UsageError("There is no run yet. Start one with a %%refine cell.")


def _instead(typed: str) -> str:
    """Return what to type for a word that is no command; empty if nothing is near."""
    known = {name: name for name in COMMANDS}
    for name, (words, _) in USAGE.items():
        if name != "continue":  # its words stand behind others
            known |= {word: f"{name} {word}" for word in re.findall(r"\b[a-z]{3,}\b", words)}
    known |= {part: f"show {part}" for part in DETAILS} | {name: name for name in COMMANDS}
    known |= _SYNONYMS
    near = difflib.get_close_matches(typed, known, n=1)
    if not near:
        return ""
    meant = f"%refine {known[near[0]]}"
    return f" Type {meant}." if near[0] == typed else f" Did you mean {meant}?"


async def _steer(cell: Cell, name: str, args: list[str]) -> None:
    run = cell.session.run
    changes_criteria = name == "edit" and args[:1] == ["criteria"] and len(args) > 1
    if name in _NEED_TEXT and not (run.iterations or changes_criteria):
        raise UsageError("There is no text yet. Write one with %refine continue.")
    match name:
        case "stop" | "close":
            cell.session.stop() if name == "stop" else cell.close()
            await cell.session.settle()
        case "show":
            print(show(run, args))
        case "diff":
            print(_diff(run, args))
        case "share":
            print(cell.share(" ".join(args)) if args else _withheld(cell))
        case "tests" if args in ([], ["below"]):
            print(await cell.add_tests() if args else plain(suite_source(run)))
        case "tests":
            raise UsageError("Use %refine tests, or %refine tests below.")
        case "right":
            for decision in confirmations(run, args):
                await cell.carry_out(decision)
        case "edit" if not changes_criteria:
            await cell.carry_out(await _edit(cell, args))
        case "continue" if args in (["as", "code"], ["as", "prose"]):
            await cell.start_again("code" if args[1] == "code" else "prose")
        case _:
            typed = parse_decision(run, name, args)
            if asked := question_in(run, typed):
                note = await cell.explain(*asked)
                print(plain(cell.session.run.explanations[-1].answer), note, sep="\n\n")
            else:
                await cell.carry_out(typed)


# Decisions


_FINDING_ID = re.compile(r"[fq]\d+,?")
_TARGET = re.compile(r"[01]?\.?\d+")


def parse_decision(run: Run, name: str, words: list[str]) -> decisions.Decision:
    """Read a decision from the words after ``%refine NAME``; the list is consumed.

    Raises:
        UsageError: a word is missing or means nothing here.
    """
    match name:
        case "accept":
            destination, number = _parse_place(words), parse_iteration(run, words)
            if number is None and run.chosen:
                number = run.chosen.number
            return decisions.Accept(iteration=number, destination=destination)
        case "override":
            return _parse_override(run, words)
        case "continue":
            return _parse_continue(run, words)
        case "dismiss" if words and not _FINDING_ID.fullmatch(words[0]):
            return decisions.Drop(demand=" ".join(words))
        case "dismiss":
            return decisions.Dismiss(findings=_parse_ids(words), reason=" ".join(words))
        case "add":
            return decisions.Add(finding=_parse_finding(run, words))
        case "edit":
            target = float(words.pop()) if _TARGET.fullmatch(words[-1]) else None
            return change_criteria(run, " ".join(words[1:]), target)
        case "should":
            return _parse_expectation(run, words)
    raise ValueError(f"{name} decides nothing")


def question_in(run: Run, decision: decisions.Decision) -> tuple[str, int] | None:
    """Return the question that guidance asks, and the text that it is about; None for neither."""
    number = run.chosen.number if run.chosen else None
    match decision:
        case decisions.Branch(guidance=words):
            number = decision.iteration
        case decisions.Continue(guidance=words) | decisions.Guide(guidance=words):
            pass
        case _:
            return None
    asks = run.stop_reason and words.rstrip().endswith(("?", "？"))  # noqa: RUF001
    return (words, number) if asks and number is not None else None


def _parse_override(run: Run, words: list[str]) -> decisions.Override:
    """Read ``pass|fail [k] [reason]``; a number that names no text may begin a reason."""
    word = words.pop(0) if words else ""
    if word not in ("pass", "fail"):
        raise UsageError('Say which: %refine override pass "reason", or override fail "reason".')
    outcome = Outcome.PASS if word == "pass" else Outcome.NEEDS_IMPROVEMENT
    number = _leading_text(run, words)
    return decisions.Override(iteration=number, outcome=outcome, reason=" ".join(words))


def _parse_continue(run: Run, words: list[str]) -> decisions.Decision:
    """Read ``[from k] [n] [guidance]``, or ``f1 f2 [guidance]``."""
    if words == ["from"]:
        raise UsageError("Say which text: %refine continue from 0.")
    if words[:1] == ["from"] and (number := _leading_text(run, rest := words[1:])) is not None:
        more = _parse_count(rest)
        return decisions.Branch(iteration=number, revisions=more, guidance=" ".join(rest))
    known = {finding.id for finding in run.findings}
    ids = _parse_ids(rest := [*words])
    if known.intersection(ids) or (ids and not rest):
        return decisions.Select(findings=ids, guidance=" ".join(rest))
    if words and not words[0].isdecimal() and run.stop_reason is None:
        return decisions.Guide(guidance=" ".join(words))
    return decisions.Continue(revisions=_parse_count(words), guidance=" ".join(words))


def _leading_text(run: Run, words: list[str]) -> int | None:
    """Read and remove a text's name; a number that names none may begin a sentence."""
    rest = [*words]
    if words and _names_text(words[0]):
        try:
            number = parse_iteration(run, rest)
        except UsageError:
            if words[0].isdecimal() and len(words) <= 2:
                raise
        else:
            words[:] = rest
            return number
    return None


def _parse_finding(run: Run, words: list[str]) -> Finding:
    """Read ``[f1] [blocking|minor] "problem" ["quote"] ["fix"]``; f1 is reworded."""
    ids = _parse_ids(words, most=1)
    before = next((f for f in run.findings if f.id in ids), None)
    if ids and not before:
        raise UsageError(f"There is no finding {ids[0]!r} in this run.")
    severity = before.severity if before else Severity.BLOCKING
    if words and words[0] in tuple(Severity):
        severity = Severity(words.pop(0))
    if not 1 <= len(words) <= 3:
        raise UsageError(
            'Put the finding in quotes: %refine add "the problem" ["words of the text"] '
            '["the fix"], or %refine add f2 "…" to reword f2.'
        )
    kept = ["", before.quote if before else "", before.fix if before else ""][len(words) :]
    problem, quote, fix = [*words, *kept]
    return Finding(
        id="".join(ids),
        criterion=before.criterion if before else decisions.OWN,
        severity=severity,
        quote=quote,
        problem=problem,
        fix=fix,
        author="user",
    )


def predict(words: str) -> decisions.Predict:
    """Return the prediction that some words are, or raise a UsageError."""
    choice = read_result(words)
    return decisions.Predict(result=choice.result, raises=choice.raises)


def confirmations(run: Run, words: list[str]) -> list[decisions.Expect]:
    """Return the decisions that some results, by their numbers, are right.

    Raises:
        UsageError: there is no such result, or the drafts give several.
    """
    found = [_numbered_row(run, word) for word in words]
    if not found:
        raise UsageError("Say which results are right: %refine right 1 3.")
    for word, row in zip(words, found, strict=True):
        if row.rivals:
            raise UsageError(
                f"Of result {word} several are possible. Say which is right: "
                f'%refine should {word} "VALUE".'
            )
    return [expect(row) for row in found]


def _parse_expectation(run: Run, words: list[str]) -> decisions.Decision:
    """Read ``2 VALUE``, ``2 ?``, ``f(x) == y``, or a question's id and the answer.

    A student is asked about one input only, so what they type is what their code gives there.
    """
    if len(words) > 1 and (question := next((f for f in run.findings if f.id == words[0]), None)):
        return decisions.Add(finding=answer(question, " ".join(words[1:])))
    if run.setup.coach:
        return predict(" ".join(words))
    if len(words) > 1 and words[0].isdecimal():
        row, result = _numbered_row(run, words[0]), " ".join(words[1:])
        if result == "?":
            return decisions.Retract(call=row.call, setup=row.setup)
        return expect(row, result)
    return read_expectation(" ".join(words))


def _numbered_row(run: Run, word: str) -> Row:
    shown = rows(run, run.chosen) if run.chosen else ()
    if word.isdecimal() and 1 <= int(word) <= len(shown):
        return shown[int(word) - 1]
    known = f"has results 1 to {len(shown)}" if shown else "shows no results to confirm"
    raise UsageError(f"There is no result {word[:40]}: this run {known}.")


def change_criteria(run: Run, names: str, target: float | None) -> decisions.Criteria:
    """Return the change to criteria written as ``a, b, c`` and the score that passes.

    Raises:
        UsageError: the target is not a score.
    """
    if target is not None and not 0 <= target <= 1:
        raise UsageError(f"The target is a score from 0 to 1, not {target:g}.")
    listed = [name.strip() for name in names.split(",") if name.strip()]
    return decisions.Criteria(criteria=named_criteria(listed, run.task.criteria), target=target)


def _names_text(word: str) -> bool:
    return (
        re.fullmatch(r"\d+|(?:your-)?(?:draft|revision|edit)(?:-\d+)?|your", word, re.I) is not None
    )


def parse_iteration(run: Run, words: list[str]) -> int | None:
    """Read an iteration's name from the first words and remove it; None without a word.

    ``draft 2``, ``revision-1`` and ``your edit`` are names; ``0`` is the first text, and another
    number alone names the one iteration that has it in its name.

    Raises:
        UsageError: there is no such iteration, or the number names several.
    """
    if not words:
        return None
    word = words.pop(0).lower()
    if word == "your" and words:
        word = words.pop(0).lower()
    if word in ("draft", "revision", "edit") and words and words[0].isdecimal():
        word += f"-{words.pop(0)}"
    names = [run.name(one.number).lower().replace(" ", "-") for one in run.iterations]
    short = [name.removeprefix("your-") for name in names]
    found = [
        number
        for number, name in enumerate(short)
        if word in (name, names[number], name.rpartition("-")[2]) or (word == "0" and not number)
    ]
    if len(found) == 1:
        return found[0]
    among = ", ".join(short[number] for number in found or range(len(short)))
    raise UsageError(
        f"{word} is more than one text: say which of {among}."
        if found
        else f"There is no text {word[:40]}. This run has {among}."
    )


def _parse_ids(words: list[str], most: int | None = None) -> tuple[str, ...]:
    ids: list[str] = []
    while words and len(ids) != most and _FINDING_ID.fullmatch(words[0]):
        ids.append(words.pop(0).rstrip(","))
    return tuple(ids)


def _parse_count(words: list[str]) -> int:
    if not (words and words[0].isdecimal()):
        return 1
    return min(max(1, int(words.pop(0)[:9])), MAX_ITERATIONS)


# What steers a run without a decision


def show(run: Run, what: list[str]) -> str:
    """Return the whole run, a part of it (a key of `DETAILS`), or an iteration's text.

    Raises:
        UsageError: there is no such part or iteration.
    """
    columns = shutil.get_terminal_size().columns
    if not what:
        return record_text(run, columns)
    if what[0] in DETAILS:
        return details_text(run, what[0], columns)
    if not _names_text(what[0]):
        hint = did_you_mean(what[0], DETAILS) or f" Choose one of {', '.join(DETAILS)}."
        raise UsageError(f"There is no {what[0]!r} to show.{hint}")
    return plain(run.iterations[parse_iteration(run, [*what]) or 0].text)


def _withheld(cell: Cell) -> str:
    sharing = cell.session.refinement.sharing
    more = next_level(cell.session.run, sharing.level) if sharing.servers else None
    text = withheld(cell.session.run, sharing.level) if more else ""
    phrase = labels.sharing_phrase(sharing) or "the models are on this machine"
    holds = f"{phrase[:1].upper()}{phrase[1:]}."
    return f"{plain(text)}\n\n{holds} %refine share once|always|never" if text else holds


def _parse_place(args: list[str]) -> Place | None:
    place = next((place for place in PLACES if args[-1:] == [place]), None)
    if place:
        args.pop()
    return place


def _diff(run: Run, args: list[str]) -> str:
    """Return the diff of two iterations; by default of the best and its parent."""
    first, second = parse_iteration(run, args), parse_iteration(run, args)
    new = run.chosen if second is None else run.iterations[second]
    assert new is not None, "a run with texts has a chosen one"
    base = new.parent if first is None else first
    old = run.iterations[base or 0]
    return text_diff(old.text, new.text, form=run.task.form) or "No change to the text."


async def _edit(cell: Cell, args: list[str]) -> decisions.Edit:
    """Take the user's own text: from a variable, from the cell it was put into, or an editor."""
    run = cell.session.run
    if args:
        text: str | None = _text_variable(args[0], cell.shell.user_ns)
    else:
        text = await cell.cell_target.read_back()
        if text is None and not hasattr(cell.shell, "kernel"):
            text = _open_editor(cell.shell, run.text)
    if text is None:
        raise UsageError(
            "The cell with the text cannot be read here. Put the text into a variable and use "
            "%refine edit NAME."
        )
    return decisions.Edit(iteration=run.chosen.number if run.chosen else None, text=text)


def _text_variable(name: str, namespace: dict[str, Any]) -> str:
    if name not in namespace:
        texts = [n for n, value in namespace.items() if isinstance(value, str) and n[:1] != "_"]
        raise UsageError(f"No variable named {name!r}.{did_you_mean(name, texts)}")
    value = namespace[name]
    if not isinstance(value, str):
        raise UsageError(f"{name!r} is a variable of type {type(value).__name__}, not a text.")
    return value


def _open_editor(shell: Any, text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.py"
        path.write_text(text, "utf-8")
        shell.hooks.editor(str(path))
        return path.read_text("utf-8")


# Commands on the journal, models and profiles


def _forget(args: list[str]) -> str:
    if args == ["--all"]:
        count = Journal().forget_all()
    elif len(args) == 1:
        count = Journal().forget(args[0])
    else:
        raise UsageError("Name the run: %refine forget NAME, or %refine forget --all.")
    return f"{labels.count(count, 'run')} erased from the journal."


def _export(latest: Cell | None, args: list[str]) -> str:
    names = [word for word in args if word != "--force"]
    if names[:1] == ["tests"]:
        del names[0]
        if not names or not names[0].endswith(".py"):
            raise UsageError("Name a file for the tests: %refine export tests test_NAME.py.")
    if not 1 <= len(names) <= 2:
        raise UsageError("Name a file: %refine export FILE.ipynb (or .json, .py) [NAME].")
    file, *name = names
    run = latest.session.run if latest and not name else Journal().get(*name).run
    return f"Written to {export(run, file, force='--force' in args)}."


def _models() -> str:
    from ipyrefine.providers.weights import WEIGHTS, find

    return "\n".join(
        f"{name}: {'downloaded' if find(name) else f'ipyrefine pull {name}'}" for name in WEIGHTS
    )


def _profiles() -> str:
    lines = []
    for one in builtin().values():
        limits = one.limits.model_dump(exclude_unset=True)
        lines.append(f"{one.name}: {one.summary}")
        lines += [f"    {criterion.name}: {criterion.definition}" for criterion in one.criteria]
        lines += [f"    [ ] {question}" for question in one.checklist]
        lines += [f"    {', '.join(f'{k} {v}' for k, v in limits.items())}"] if limits else []
    return "\n".join(lines)
