"""A run as HTML: the parts of a panel, and the record, which is the same without controls."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ipyrefine.core.actions import ACTIONS
from ipyrefine.core.decisions import OWN, Expect, Retract
from ipyrefine.core.model import Stage, StopReason
from ipyrefine.core.points import first_line
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Sharing, is_computed, withheld
from ipyrefine.core.table import Cell
from ipyrefine.render import blocks, say
from ipyrefine.render.blocks import Block
from ipyrefine.render.diff import (
    Stretch,
    highlight_html,
    lay_out,
    prose_html,
    text_lines,
)
from ipyrefine.render.escape import plain
from ipyrefine.render.formatting import prose, sentence_html
from ipyrefine.render.progress import SILENCE, WRITING, Progress

PARTS = ("top", "form", "text", "ask", "notices", "results", "evidence", "guide")
_TITLE = 60  # characters of the task that name a panel
_BLANK = re.compile(r"\n([ \t]*)(?=\n)")
_BETWEEN = re.compile(r"(</(?:p|div|details|table)>)\n\s*\n")
_TOKEN = re.compile(r'<span class="rf-t-\w+">([^<]*)</span>')  # its colour is the panel's
_KEYS = {row.key: row.button.rstrip("…") for row in ACTIONS.values() if row.key} | {
    "y": "Yes to the line in focus; elsewhere, to what the header asks",
    "n": "No to it",
    "1 2 …": "Press its first, second … button",
    "Enter": "Press what is in focus; in a field, send it; on a line, go to its buttons",
    "o": "Override the verdict",
    "↑ ↓": "Previous and next line that can be answered, then the texts",
    "← →": "On a text's name: previous and next text; Enter shows it",
    "Home End": "First and last of them",
    ".": "Next check that is missed, with what can be done about it",
    "g": "Go to the guidance",
    "Esc": "Close a menu or a form",
    "?": "These keys; on a result: don't know, go to the next one",
}
_FORMS = ("edit", "finding", "select", "criteria", "model")
# Stops that the verdict speaks for.
_TOLD = (
    StopReason.PASSED, StopReason.OVERRIDDEN, StopReason.UNJUDGED, StopReason.ACCEPTED,
    StopReason.ANSWERED,
    None,
)  # fmt: skip


# What can be done beside looking at a run, by its host; here, nothing.
NOTHING: Mapping[str, Any] = {
    "place": "insert",  # where an accepted text goes: `insert`, `replace` or `none`
    "place_to_run": "insert",  # where it goes when it is to run: `insert` or `replace`
    "run": "",  # the journal's number of it
    "prompts": (),  # what was sent, as title and text
    "can_change_model": False,  # whether the run can go on with another model
    "models": {},  # those at hand, with their prices, while one is chosen
    "can_restart": False,  # as the other kind of text, or with other names
    "asks_to_run": False,  # whether the user is asked if code may run that can't be shut in
    "asks_above": 0,  # how many folders above the notebook's it is asked to let code read
    "unseen": (),  # names that were left out
    "has_tests": False,  # whether the run has tests to put into a cell
    "sharing": Sharing(),  # what servers are sent
    "back": (),  # names whose values from before the cell ran can be put back
    "setup": None,  # the form that sets up a model, while it is open
}


_IDLE = Progress(float)  # no stage is under way, and no time passes


class View(NamedTuple):
    """What a person looks at."""

    iteration: int | None = None  # the one to show; None follows the run
    form: str = ""  # which form is open; empty for none
    finding: str = ""  # the finding that the form is about; empty for none
    folds: frozenset[str] = frozenset()  # the names of the open folds
    progress: Progress = _IDLE  # of the stage under way
    streaming: str = ""  # what streams: `text`, `thinking`, or empty
    revision: int = 0  # changes whenever typed words were taken
    offers: Mapping[str, Any] = NOTHING  # what can be done now beside
    # What the user said of results and the run has not taken up yet.
    waiting: tuple[Expect | Retract, ...] = ()


def record_html(run: Run, *, note: str = "", panel: str = "") -> str:
    """Return the whole run as one static block that needs neither kernel nor script.

    A panel's id hides it while that panel is on the page.
    """
    decided = run.stop_reason in (StopReason.ACCEPTED, StopReason.OVERRIDDEN)
    said = say.receipt(run) if decided else say.verdict(run, run.chosen)
    if say.running(run):
        said = say.UNFINISHED
    context = {
        "label": said.label,
        "basis": "" if run.setup.coach else said.line,
        "decided": decided,
        "note": note,
        "found": blocks.record(run, brief=True),
        "live": False,
    }
    html = _TOKEN.sub(r"\1", _static(_render("record", context), "rf-record", panel))
    # In a Markdown export a blank line would end the HTML.
    return _BLANK.sub(r"\n\1<i></i>", _BETWEEN.sub(r"\1\n", html))


def blocks_html(found: Iterable[Block]) -> str:
    """Return blocks as HTML with its style sheet."""
    page: Any = _templates().get_template("blocks.html").module
    return _static(page.blocks(found).strip())


def _static(body: str, kind: str = "", panel: str = "") -> str:
    context = {"kind": kind, "panel": panel, "body": Markup(body)}
    return _render("static", context | {"sheet": Markup(_sheet("record"))})


def panel_html(parts: dict[str, str], panel: str) -> str:
    """Return a whole panel; its id hides the record next to it while it is on the page."""
    safe = {name: Markup(parts[name]) for name in PARTS}
    return _render("panel", {"parts": safe, "panel": panel})


def panel_parts(run: Run | None, view: View, note: str = "") -> dict[str, str]:
    """Return the HTML of each part of a panel; a run may be None before its first event."""
    context: dict[str, Any] = {"note": note, "stop_message": "", "warnings": []}
    shown = dict(zip(PARTS, PARTS, strict=True))
    if run is None:
        shown = {"top": "starting", "notices": "notices"}
        if view.offers["setup"]:
            context, shown = {"view": view}, {"form": "setup"}
    else:
        context = _context(run, view, note)
        if run.setup.coach:
            shown = {"top": "top" if context["running"] else "coach", "notices": "notices"}
        elif run.stop_reason is StopReason.ACCEPTED:
            shown |= {"top": "receipt", "guide": "", "ask": ""}
            if "receipt" not in view.folds:
                shown = {"top": "receipt", "notices": "notices"}
        elif run.setup.is_look or (run.answered and run.setup.draft):  # the code is the cell's
            shown["text"] = ""
    return {name: _render(shown[name], context) if shown.get(name) else "" for name in PARTS}


def about_number(run: Run, view: View) -> int | None:
    """Return the iteration that the panel shows and its buttons are about; None before any."""
    if not run.iterations:
        return None
    if view.iteration is not None and 0 <= view.iteration < len(run.iterations):
        return view.iteration
    if say.running(run) and run.stage not in WRITING:
        return len(run.iterations) - 1
    return run.chosen.number if run.chosen else len(run.iterations) - 1


def style() -> str:
    """Return the panel's style sheet, without comments, indents and blank lines."""
    return _sheet("run")


@cache
def _sheet(name: str) -> str:
    css = (files("ipyrefine.render") / f"{name}.css").read_text("utf-8")
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)).strip()


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("ipyrefine.render"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if hasattr(value, "__html__") else plain(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        # The two extra classes tell MathJax 3 and 2 to leave the text alone.
        "CLASSES": "ipyrefine mathjax_ignore tex2jax_ignore",
        "LAST_TEXTS": blocks.LAST_TEXTS,
        "OWN": OWN,
        "WRITING": WRITING,
        "actions": ACTIONS,
        "keys": _KEYS,
        "say": say,
    }
    environment.filters |= {
        "code": highlight_html,
        "sentence": sentence_html,
        "compare": lambda block: _stretches(
            block.text, block.old, block.form, block.language, folds=True
        ),
        "kind": lambda block: type(block).__name__,
        "prose": lambda value: prose(str(value)),
        "written": lambda value: prose_html(str(value)),
    }
    return environment


def _render(name: str, context: dict[str, Any]) -> str:
    return _templates().get_template(f"{name}.html").render(context).strip()


def _context(run: Run, view: View, note: str) -> dict[str, Any]:
    number = about_number(run, view)
    about = None if number is None else run.iterations[number]
    sharing = view.offers["sharing"] if is_computed(run) else Sharing()
    asks = sharing.level == "structure" and (sharing.asks or view.form == "share")
    # A form has a main button of its own.
    main = "" if view.offers["setup"] or view.form in _FORMS else "rf-next"
    told = run.stop_reason in _TOLD or run.setup.coach or run.setup.is_look
    context = _top_context(run, view, about)
    context |= {
        "run": run,
        "view": view,
        "live": True,
        "note": note,
        "sharing": sharing,
        "withheld": withheld(run) if asks else "",
        "next": main,
        "go_on": main * (context["main"] == "rf-grey"),
        "unfinished": blocks.unfinished(run),
        "explained": [one for one in run.explanations if one.iteration == number][-1:],
        # The header says what is still open.
        "stop_message": run.message if run.iterations and not told else "",
        "asked": blocks.puzzle(run),
        "said": blocks.predicted(run) if run.setup.coach else [],
        "warnings": [one.text for one in blocks.warnings(run, about) if one.kind == "warning"],
        "criteria": [criterion.name for criterion in run.task.criteria],
        "edited": run.points.get(view.finding or ""),
        "details": blocks.details(run, about) if "details" in view.folds else [],
    }
    if about:
        context |= _text_context(run, view, about)
    return context


def _top_context(run: Run, view: View, about: Iteration | None) -> dict[str, Any]:
    # Texts that have a verdict keep it while they are tried on one more result.
    tries = run.stage is Stage.CHECK and all(one.verdict for one in run.iterations)
    running = say.running(run)
    busy = running and not tries
    decided = run.stop_reason is StopReason.ACCEPTED
    reading = say.awaits_reading(run, about)
    said = say.receipt(run) if decided else say.verdict(run, about)
    base, name = None, run.name(view.progress.number)
    silence = view.progress.silence or 0.0
    colours = _LOOKS if run.setup.is_look else {} if running else _COLOURS
    writes = busy and run.stage in WRITING
    if busy and run.stage is Stage.REVISE and run.iterations:
        base = run.iterations[-1 if run.head is None else run.head]
    return {
        "about": about,
        "running": running,
        "streaming": writes and view.iteration is None,
        "base": base,
        "busy": busy,
        "reading": reading,
        "title": first_line(plain(run.setup.draft or run.task.text))[:_TITLE],
        "main": colours.get(said.label.kind, "rf-grey" if running else "rf-go"),
        "run_word": say.run_button(about) if about else "",
        "runs": run.task.is_python
        and view.offers["place"] != "none"
        and not (about and any(one.basis == "run" and one.failed for one in about.evidence)),
        "silence": silence if silence >= SILENCE else 0.0,
        "label": said.label,
        "basis": name if busy and not reading else said.line,
        "money": say.cost(run.usage.cost) * bool(run.usage.cost),
    }


_COLOURS = {"quiet": "rf-grey", "warn": "rf-check", "bad": "rf-check"}  # of what accepts
_LOOKS = {"quiet": "rf-next", "warn": "rf-check", "bad": ""}  # of what runs the cell


def _text_context(run: Run, view: View, about: Iteration) -> dict[str, Any]:
    form, language = run.task.form, run.task.language
    other = about.parent
    old = None if other is None else run.iterations[other].text
    open_ = [one for one in run.cells(about) if one.is_open and one.point.place]
    own, account = blocks.outputs(about.evidence), blocks.account(run, about, new=False)
    data = blocks.data_questions(run, about)
    grid = blocks.checks(run, about, view.waiting, every="texts" in view.folds)
    rows = [one for block in (*data, *grid) for one in block.lines if one.asks]
    asked = (one for one in rows if one.choices or one.asks == "open")
    asks = next((one for one in asked if not one.word), None)  # the first that buttons settle
    return {
        "data_questions": data,
        "account": account,
        "same_outputs": own
        and other is not None
        and blocks.outputs(run.iterations[other].evidence) == own,
        "other": other,
        "lost": blocks.lost(run, about),
        "unchanged": old is not None and plain(old) == plain(about.text),
        "parts": _stretches(about.text, old, form, language, open_),
        "failure": blocks.failure(about),
        "grid": grid,
        "told": blocks.texts(run, about, whole=False),
        "selectable": [one for one in run.cells(about) if one.actionable],
        "asks": asks,
    }


def _stretches(
    text: str,
    old: str | None,
    form: str,
    language: str,
    found: Sequence[Cell] = (),
    *,
    folds: bool = False,
) -> list[Stretch]:
    quotes = [one.point.place for one in found]
    before = text if old is None else old
    lines = text_lines(text, before, form, language, quotes)  # type: ignore[arg-type]
    return [*lay_out(lines, whole=old is None, folds=folds)]
