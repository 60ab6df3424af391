"""A run as HTML: the parts of a panel, and the record, which is the same without controls."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ipyrefine.core.actions import ACTIONS
from ipyrefine.core.decisions import OWN, Expect, Retract
from ipyrefine.core.model import Price, Stage, StopReason
from ipyrefine.core.policy import to_act_on
from ipyrefine.core.rank import rival_of
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Sharing
from ipyrefine.render import coaching, document, gives, labels, words
from ipyrefine.render.blocks import Block, Item
from ipyrefine.render.diff import (
    Stretch,
    highlight_html,
    lay_out,
    line_of,
    prose_html,
    rows,
    side_by_side,
    text_lines,
)
from ipyrefine.render.escape import plain
from ipyrefine.render.formatting import prose, sentence_html
from ipyrefine.render.progress import WRITING, seconds_of

PARTS = ("top", "notices", "form", "ask", "text", "results", "evidence", "guide", "foot")
FOLDS = ("details", "history", "settings")
_MOST_STEPS = 9  # of the timeline, without the gaps
_MOST_COLUMNS = 3  # of outputs that differ
_BLANK = re.compile(r"\n([ \t]*)(?=\n)")
_KEYS = {row.key: row.button.rstrip("…") for row in ACTIONS.values() if row.key} | {
    "y": "On a result: right",
    "n": "Needs work; on a result: not right",
    "↑ ↓": "Previous and next result",
    "j k": "Next and previous change",
    ".": "Next finding, with what can be done about it",
    "g": "Go to the guidance",
    "Esc": "Close a menu or a form",
    "?": "These keys; on a result: don't know, go on",
}
# Stops that the verdict speaks for.
_TOLD = (
    *(StopReason.PASSED, StopReason.OVERRIDDEN, StopReason.UNJUDGED, StopReason.ACCEPTED),
    None,
)


class View(NamedTuple):
    """What a person looks at."""

    iteration: int | None = None  # the one to show; None follows the run
    best: bool = False  # whether texts are compared with the best one instead of their parent
    sides: bool = False  # whether they stand side by side
    form: str = ""  # which form is open; empty for none
    finding: str = ""  # the finding that the form is about; empty for none
    folds: frozenset[str] = frozenset()  # the names of the open folds
    place: str = "insert"  # where an accepted text goes: `insert`, `replace` or `none`
    place_to_run: str = "insert"  # where it goes when it is to run: `insert` or `replace`
    seconds: float = 0.0  # what the run has taken up to now
    stage_seconds: float = 0.0  # what the stage under way has taken
    usual: float = 0.0  # seconds that the model's calls for it usually take; 0 where unknown
    rate: str = ""  # how fast the model writes, in words
    silence: float = 0.0  # seconds without a reply, once they are many; else 0
    under_way: int = 0  # the iteration that the stage under way is about
    streaming: str = ""  # what streams: `text`, `thinking`, or empty
    prompts: tuple[tuple[str, str], ...] = ()  # what was sent, as title and text
    can_change_model: bool = False  # whether the run can go on with another model
    models: Mapping[str, Price | None] = {}  # those at hand, while one is chosen
    # Whether the run can start again: as the other kind of text, or with other names.
    can_restart: bool = False
    asks_to_run: bool = False  # whether the user is asked if code may run that can't be shut in
    unseen: tuple[str, ...] = ()  # names that were left out
    has_tests: bool = False  # whether the run has tests to put into a cell
    revision: int = 0  # changes whenever typed words were taken
    sharing: Sharing = Sharing()  # what servers are sent of what code computed, where there is such
    withheld: str = ""  # the text that they are not sent, while that is shown
    more: str = ""  # the level that would send it
    back: tuple[str, ...] = ()  # names whose values from before the cell ran can be put back
    reads_behind: bool = False  # whether a critic still reads the text that was accepted
    # What the user said of results and the run has not taken up yet.
    waiting: tuple[Expect | Retract, ...] = ()


def record_html(run: Run, *, note: str = "", panel: str = "") -> str:
    """Return the whole run as one static block that needs neither kernel nor script.

    A panel's id hides it while that panel is on the page.
    """
    context = _context(run, View(), note, live=False)
    context |= {"panel": panel, "question": document.rival(run, context["about"])}
    html = _render("coach_record" if run.setup.coach else "record", context)
    # In a Markdown export a blank line would end the HTML.
    return _BLANK.sub(r"\n\1<i></i>", html)


def blocks_html(blocks: Iterable[Block]) -> str:
    """Return blocks as HTML with its style sheet."""
    return _render("blocks_page", {"found": blocks})


def panel_html(parts: dict[str, str], panel: str) -> str:
    """Return a whole panel; its id hides the record next to it while it is on the page."""
    safe = {name: Markup(parts[name]) for name in PARTS}
    return _render("panel", {"parts": safe, "panel": panel})


def panel_parts(run: Run | None, view: View, note: str = "") -> dict[str, str]:
    """Return the HTML of each part of a panel; a run may be None before its first event."""
    if run is None:
        empty = dict.fromkeys(PARTS, "")
        context = {"note": note, "live": True, "stop_message": "", "warnings": []}
        return empty | {"top": _render("starting", {}), "notices": _render("notices", context)}
    context = _context(run, view, note, live=True)
    if run.setup.coach:
        top = "top" if context["running"] else "coach"
        empty = dict.fromkeys(PARTS, "")
        return empty | {"top": _render(top, context), "notices": _render("notices", context)}
    if run.stop_reason is StopReason.ACCEPTED:
        shown = PARTS if "receipt" in view.folds else ("notices",)
        parts = {name: _render(name, context) if name in shown else "" for name in PARTS}
        return parts | {"top": _render("receipt", context), "guide": "", "ask": ""}
    return {name: _render(name, context) for name in PARTS}


def about_number(run: Run, view: View) -> int | None:
    """Return the iteration that the panel shows and its buttons are about; None before any."""
    if not run.iterations:
        return None
    if view.iteration is not None and 0 <= view.iteration < len(run.iterations):
        return view.iteration
    if labels.running(run) and run.stage not in WRITING:
        return len(run.iterations) - 1
    return run.chosen.number if run.chosen else len(run.iterations) - 1


@cache
def style() -> str:
    """Return the style sheet, without comments, indents and blank lines."""
    css = (files("ipyrefine.render") / "run.css").read_text("utf-8")
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
        "MOST_STEPS": _MOST_STEPS,
        "OWN": OWN,
        "STYLE": Markup(style()),
        "WRITING": WRITING,
        "actions": ACTIONS,
        "keys": _KEYS,
        "labels": labels,
        "words": words,
        "seconds_of": seconds_of,
    }
    environment.filters |= {
        "code": highlight_html,
        "sentence": sentence_html,
        "compare": lambda block: _stretches(block.text, block.old, block.form, block.language),
        "kind": lambda block: type(block).__name__,
        "prose": lambda value: prose(str(value)),
        "written": lambda value: prose_html(str(value)),
    }
    return environment


def _render(name: str, context: dict[str, Any]) -> str:
    return _templates().get_template(f"{name}.html").render(context).strip()


def _context(run: Run, view: View, note: str, *, live: bool) -> dict[str, Any]:
    number = about_number(run, view)
    about = None if number is None else run.iterations[number]
    running = labels.running(run)
    context: dict[str, Any] = {
        "run": run,
        "view": view,
        "live": live,
        "note": note,
        "about": about,
        "running": running,
        "streaming": running and run.stage in WRITING and view.iteration is None and live,
        "base": None,
        "other": None,
        "rival": None,
        "selectable": [],
        "data_questions": [],
        "accounts": {},
        "results": [],
        "unfinished": document.unfinished(run),
        "explained": [one for one in run.explanations if one.iteration == number][-1:],
        "stop_message": "",
        "asked": coaching.asked(run),
        "said": coaching.said(run) if run.setup.coach else [],
        "warnings": [one.text for one in document.warnings(run, about) if one.kind == "warning"],
        "criteria": [criterion.name for criterion in run.task.criteria],
        "edited": run.points.get(view.finding or ""),
    }
    told = run.stop_reason in _TOLD or run.setup.coach or run.setup.is_look
    if run.iterations and not told and (live or not note):
        # The header says what is still open.
        open_ = about and about.verdict and about.verdict.why in ("open", "open_over_score")
        context["stop_message"] = run.message if open_ else words.stop_sentence(run)
    if about:
        claims = document.reading(run, about)
        context |= _text_context(run, view, about, live=live) | {
            "failure": document.failure(about),
            "checks": document.checks(run, about, suite=not claims),
            "claims": claims,
            "rival": rival_of(run, about),
            "selectable": [one for one in run.cells(about) if one.actionable],
        }
    context |= _top_context(run, view, about, live=live)
    context["folds"] = {
        name: [] if live and name not in view.folds else _fold(name, run, about, context)
        for name in FOLDS
    }
    return context


def _top_context(run: Run, view: View, about: Iteration | None, *, live: bool) -> dict[str, Any]:
    # Texts that have a verdict keep it while they are tried on one more result.
    tries = run.stage is Stage.CHECK and all(one.verdict for one in run.iterations)
    busy = live and labels.running(run) and not tries
    decided = run.stop_reason is StopReason.ACCEPTED or (
        run.stop_reason is StopReason.OVERRIDDEN and not live
    )
    reading = live and words.awaits_reading(run, about)
    said = words.verdict(run, about)
    if decided:
        said = words.receipt(run, reading=view.reads_behind)
    basis, base = said.phrases, None
    if busy and run.stage is Stage.REVISE and run.iterations:
        base = run.iterations[-1 if run.head is None else run.head]
    if busy and not reading:
        basis = [("", run.name(view.under_way))]
        if problems := [_first_line(one.words) for one in to_act_on(run, base)] if base else []:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            basis = [("", problems[0] + more)]
    used = [labels.seconds(run.seconds)] if run.seconds else []
    return {
        "base": base,
        "busy": busy,
        "reading": reading,
        "amber": words.is_amber(run),
        "decided": decided,
        "label": said.title,
        "basis": basis,
        "remark": labels.lenient_evaluator(run),
        "used": [*used, *labels.usage_parts(run.usage, 0.0)],
        "progress": min(1, (len(run.iterations) + 0.5) / (run.allowed_revisions + 2)),
        "steps": _steps(run, about),
    }


def _first_line(text: str) -> str:
    return plain(text).strip().partition("\n")[0]


def _steps(run: Run, about: Iteration | None) -> list[tuple[int, int]]:
    """Return the iterations that the timeline shows, and how many it leaves out before each.

    Of many, it shows the first, the best, the last, and those around the one that is looked at.
    """
    total, number = len(run.iterations), about.number if about else 0
    visible = {*range(total)}
    if total > _MOST_STEPS:
        visible &= {0, total - 2, total - 1, run.best, number - 1, number, number + 1}
    return [(after - before - 1, after) for before, after in pairwise([-1, *sorted(visible)])]


def _text_context(run: Run, view: View, about: Iteration, *, live: bool) -> dict[str, Any]:
    form, language = run.task.form, run.task.language
    other = about.parent
    if view.best and run.best is not None and run.best != about.number:
        other = run.best
    old = None if other is None else run.iterations[other].text
    pinned = _pin(run, about, old)
    revert = None
    if live and old is not None:
        make: Any = _templates().get_template("controls.html").module

        def revert(hunk: int) -> str:
            return str(make.revert_button(about.number, other, hunk))

    columns: list[Any] = []
    if old is not None and view.sides and live and form == "code":
        placed = [note for notes in pinned.lines.values() for note in notes]
        pinned = Pinned({}, [*placed, *pinned.rest])
        columns = [*side_by_side(old, about.text, language)]
    outputs = gives.outputs(about)
    return {
        "data_questions": gives.data_questions(run, about),
        "accounts": _accounts(run, about, other),
        "results": gives.results(run, about, view.waiting),
        "other": other,
        "pinned": pinned,
        "columns": columns,
        "lost": document.lost(run, about) if other == about.parent else [],
        "unchanged": old is not None and plain(old) == plain(about.text),
        "parts": _stretches(about.text, old, form, language, pinned, revert),
        "same_outputs": bool(outputs)
        and other is not None
        and gives.outputs(run.iterations[other]) == outputs,
        # In a live panel, a click drops a demand that was read wrongly.
        "drops": {
            labels.check_chip(one): one.name
            for one in about.evidence
            if live and one.name in run.demands
        },
    }


class Note(NamedTuple):
    """A finding as a note in the margin of a text."""

    item: Item  # the finding
    fixed: bool  # whether this text settles it
    claim: str  # what the reviser says it did for it
    binding: bool  # whether it cannot be dismissed by itself


class Pinned(NamedTuple):
    """Findings by the line of the text below which they belong, and those without a place."""

    lines: dict[int, list[Note]]
    rest: list[Note]


def _pin(run: Run, about: Iteration, old: str | None) -> Pinned:
    pinned = Pinned({}, [])
    for cell in document.ranked(document.margin(run, about)):
        point, fixed = cell.point, cell.result.passed is True and not cell.point.dropped
        item = document.finding_item(run, about, cell)
        note = Note(item, fixed, _first_line(about.changes.get(cell.id, "")), point.binding)
        place = line_of(about.text, point.place)
        if place is None and fixed and old is not None and run.task.form == "code":
            place = _successor(old, about.text, line_of(old, point.place))
        (pinned.rest if place is None else pinned.lines.setdefault(place, [])).append(note)
    return pinned


def _successor(old: str, new: str, line: int | None) -> int | None:
    """Return the line of the new text that took the place of a line of the old one.

    Without a line, it is that of the only change, if there is only one.
    """
    compared = rows(old, new)
    changes = {row.hunk for row in compared if row.hunk is not None}
    if line is None:
        hunk = changes.pop() if len(changes) == 1 else None
    else:
        hunk = next((row.hunk for row in compared if row.old == line), None)
    added = [row.new for row in compared if row.hunk == hunk and row.new is not None]
    return added[-1] if hunk is not None and added else None


def _stretches(
    text: str,
    old: str | None,
    form: str,
    language: str,
    pinned: Pinned | None = None,
    revert: Any = None,
) -> list[Stretch]:
    notes = pinned.lines if pinned else {}
    quotes = [one.item.quote for some in notes.values() for one in some if not one.fixed]
    before = text if old is None else old
    lines = text_lines(text, before, form, language, quotes, revert)  # type: ignore[arg-type]
    return [*lay_out(lines, notes, whole=old is None)]


def _accounts(run: Run, about: Iteration, other: int | None) -> dict[int, list[Block]]:
    """Return what a text gives, next to other iterations whose outputs differ.

    A draft is compared with the other drafts.
    """
    own = gives.outputs(about)
    others = run.drafts if other is None else [run.iterations[other]]
    found = {about.number: own}
    for one in others if own else ():
        outputs = gives.outputs(one)
        if outputs and outputs not in found.values() and len(found) < _MOST_COLUMNS:
            found[one.number] = outputs
    texts = (run.iterations[number] for number in found)
    columns = {
        one.number: gives.account(run, one, alone=one.number != about.number) for one in texts
    }
    return columns if columns[about.number] else {}


def _fold(name: str, run: Run, about: Iteration | None, context: dict[str, Any]) -> list[Block]:
    if name == "settings":
        return document.settings(run)
    if name == "details":
        return document.details(run, about)
    above = context["accounts"]  # shown there
    versions = (
        document.version(run, one, with_text=one is not about, with_outputs=one.number not in above)
        for one in run.iterations
    )
    return [*document.history(run, about), *(() if context["live"] else versions)]
