"""What the model is asked: the text of each stage with named places, and the requests made of it.

A user may replace the text of a stage. A place is a name in braces. Places are filled in one pass:
braces inside an inserted text, and names that are not places, stay as they are.

The task comes first, then the text and what running it showed, and last the stage's own words. So
the prompts of all stages begin alike, and a server that caches what it has read, as the embedded
one does, has little to read again. Text that a model or a user wrote stands in a fence: between
tags that carry a nonce, declared to be material and never instruction.
"""

import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.resources import files
from itertools import groupby
from typing import Any

from pydantic import Field

from ipyrefine.core.alignment import unified_diff
from ipyrefine.core.effects import has_to_be_wanted, sentence
from ipyrefine.core.evaluations import Scored, read_scales
from ipyrefine.core.forms import FORMS
from ipyrefine.core.model import Form, Material, Record, Stage, Task, one_line
from ipyrefine.core.points import (
    SCOPE,
    dismissed,
    first_line,
    left_open,
    lost_sections,
    up_for_review,
)
from ipyrefine.core.policy import (
    EVIDENCE_CHARACTERS,
    REPAIR_CHARACTERS,
    estimate_tokens,
    may_answer,
    to_act_on,
    token_limit,
)
from ipyrefine.core.ports import Message, Request
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Level, output_texts, visible
from ipyrefine.core.table import Cell
from ipyrefine.core.testing import is_critics
from ipyrefine.core.unsourced import rests_on_sources
from ipyrefine.errors import UsageError, did_you_mean

_TEXTS = tomllib.loads((files("ipyrefine.core") / "prompts.toml").read_text("utf-8"))
PLACES: dict[str, str] = _TEXTS["places"]  # of each stage's prompt, as `%%refine?` shows them
_CODE = tomllib.loads((files("ipyrefine") / "profiles/code.toml").read_text("utf-8"))
# What library code is held to, and no cell.
_LIBRARY = {*_CODE["checklist"], *(one["definition"] for one in _CODE["criteria"].values())}
APPENDED: str = _TEXTS["appended"]  # what becomes of the others
_STAGES: dict[str, str] = _TEXTS["stages"]
_PARTS: dict[str, str] = _TEXTS["parts"]
_FORMS: dict[Form, dict[str, str]] = {"code": _TEXTS["code"], "prose": _TEXTS["prose"]}
_ROWS: dict[Form, str] = {"code": "code", "prose": "words"}  # of `FORMS`
_WORD = 8  # tokens of a reply that is one word
SAMPLED = 0.8  # temperature of further drafts, as CodeT's (arXiv 2207.10397)

_WHOLE_LINES, _WHOLE_CHARACTERS = 80, 4_000  # of a text that is revised as a whole
_LONG = 1_000  # tokens of a revision that its critic reads without the user's draft
SCORE: str = _TEXTS["score"]["judge"]  # the evaluator of a run with a target and none of its own
_PLACE = re.compile(r"\{(\w+)\}")
_TEXT = re.compile(r"\{(?:text|content|response|solution|answer|code|output)(?:\.\w+)?\}")
_FEEDBACK = re.compile(r"\{feedback(?:\.\w+)?\}")
_PLACES = {name for line in PLACES.values() for name in _PLACE.findall(line)}


class Prompts(Record):
    """One text per stage; see the head of this module for the places each may have."""

    system: str = _STAGES["system"]  # heads every call
    draft: str = _STAGES["draft"]
    critique: str = _STAGES["critique"]
    judge: str = ""  # of the user's evaluator; empty where there is none
    # Its words for Yes and No where they aren't PASS and FAIL, and its scale, as "1 to 10".
    yes: str = Field(default="", alias="pass")
    fail: str = ""
    scale: str = ""
    revise: str = _STAGES["revise"]
    verify: str = ""  # what a critic of a revision is asked last, if anything

    @classmethod
    def build(cls, own: Mapping[str, Any]) -> "Prompts":
        """Build prompts with the user's own for some stages.

        Raises:
            UsageError: there is no such stage, or a prompt is no text.
        """
        known, read = cls().model_dump(by_alias=True), dict(own)
        if isinstance(own.get("scale"), tuple | list) and len(own["scale"]) == 2:
            read["scale"] = "{} to {}".format(*own["scale"])
        for stage, prompt in read.items():
            if stage not in known:
                stages = ", ".join(known)
                hint = did_you_mean(str(stage), known)
                raise UsageError(f"There is no stage {stage!r} to prompt: {stages}.{hint}")
            if not isinstance(prompt, str) or not prompt.strip():
                raise UsageError(f"The prompt for {stage} must be a text, not {prompt!r:.40}.")
            if stage == "scale" and not read_scales(prompt):
                raise UsageError(f'The scale is like (1, 10) or "1 to 10", not {prompt!r:.40}.')
        return cls.model_validate(read)

    @property
    def unfilled(self) -> list[str]:
        """Name the places of the user's prompts that nothing fills, in a sentence for each."""
        return [
            f"Nothing fills {{{name}}} in your prompt for {stage}. It is sent as it stands."
            for stage, prompt in self.own().items()
            for name in dict.fromkeys(re.findall(r"\{(\w+(?:\.\w+)?)\}", _usual_places(prompt)))
            if name not in _PLACES
        ]

    def own(self) -> dict[str, str]:
        """Return the prompts that differ from the built-in ones, by stage."""
        known = type(self)().model_dump(by_alias=True)
        own = self.model_dump(by_alias=True)
        return {name: text for name, text in own.items() if text != known[name]}

    def is_own(self, stage: Stage) -> bool:
        """Return True if a stage has a prompt of the user's, which is sent as it stands."""
        if stage is Stage.JUDGE:
            return self.judge != SCORE
        if stage is Stage.REVISE and self.revise == _STAGES[stage]:
            stage = Stage.DRAFT
        writes = stage in (Stage.DRAFT, Stage.REVISE)
        return writes and not str(getattr(self, stage)).startswith(_STAGES[stage])


def _usual_places(prompt: str) -> str:
    """Return a prompt with our names for places that other loops call ``{response.code}``."""
    return _FEEDBACK.sub("{feedback}", _TEXT.sub("{text}", prompt))


def fill(prompt: str, **places: object) -> str:
    """Put values in their places, in one pass; nothing inside a value is a place.

    >>> fill("{a} and {b} and {c}", a="{b}", b=2)
    '{b} and 2 and {c}'
    """
    return _PLACE.sub(lambda m: str(places.get(m[1], m[0])), prompt)


def _fill_all(template: str, about: Mapping[str, str], **places: str) -> str:
    """Fill a prompt, and add at its end what it has no place for."""
    missing = [text for name, text in about.items() if f"{{{name}}}" not in template]
    added = (text if text[:1] in ("\n", "") else f"\n\n{text}" for text in missing)
    return fill(template, **{**dict.fromkeys(_PLACES, ""), **about, **places}) + "".join(added)


# The fence around untrusted text

Nonce = Callable[[str], str]

# Our own tags, and those by which chat templates tell who speaks: many servers read them as such
# wherever they stand.
_LOOK_ALIKE = re.compile(
    r"<(?=[^\w<]*material|\|\w{1,40}\|>|(?:start|end)_of_turn>)|\[(?=/?INST\])", re.IGNORECASE
)
_EXCERPT = 2_000  # characters of an earlier text that is quoted next to the one at hand
_NAMED = 8  # variables that a prompt names once more
_REASONS = 6  # earlier revisions whose fate a prompt tells; it must not grow with the run


def make_nonce(secret: bytes) -> Nonce:
    """Return the function that makes the nonce of a text from it and a run's secret.

    Nobody can write a text that holds its own nonce, even who has seen those of other texts; and
    a text that comes again has the same one, so that a server need not read it again.
    """

    def nonce(text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=secret, digest_size=4).hexdigest()

    return nonce


# Bidirectional marks, zero-width characters and tags: a model reads them, a person does not.
# ZWJ and ZWNJ stay, as scripts and emoji need them.
INVISIBLE = re.compile(
    "[\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)


def fence(text: str, nonce: Nonce) -> str:
    """Put untrusted text between tags it cannot forge; look-alikes inside are broken up."""
    mark = nonce(text)
    return f"<material-{mark}>\n{_neutralise(text)}\n</material-{mark}>"


def _neutralise(text: str) -> str:
    return _LOOK_ALIKE.sub(lambda match: f"{match[0]} ", text)


def _line(text: str) -> str:
    """Return a model's words as one line, so that they cannot pass for a part of the prompt."""
    return _neutralise(one_line(text))


# What prompts are filled with


def only_named(materials: Iterable[Material], named: Collection[str]) -> tuple[Material, ...]:
    """Return the material that the user asked for, which alone may stand beside an own prompt."""
    return tuple(m for m in materials if m.kind in ("cells", "rules") or m.name in named)


def _whole_request(task: Task, fenced: Callable[[str], str] = str) -> str:
    form: Form = "code" if task.is_python else "prose"
    kinds: dict[str, tuple[str, ...]] = {
        _PARTS["rules"]: ("\n\n", "rules"),
        _FORMS[form]["variables"]: ("\n", "variable", "names"),
        _PARTS["cells"]: ("\n\n", "cells", "definitions"),
    }
    about = [
        f"{head}\n{fenced(text)}"
        for head, (apart, *wanted) in kinds.items()
        if (text := apart.join(one.text for one in task.materials if one.kind in wanted))
    ]
    return "\n\n".join([task.request, *about])


def _evidence(run: Run, iteration: Iteration, nonce: Nonce, listed: Sequence[Cell] = ()) -> str:
    """Return what the checks found, fenced; what the listed points say is not repeated."""
    repeats = tuple(line.strip() for one in listed for line in one.words.splitlines())
    results, ids = [], {effect: id_ for id_, effect in iteration.effects.items()}
    for one in run.evidence(iteration):
        tells = one.grounds or one.outputs or one.effects or "\n" in one.shows
        if one.passed is not None and (tells or one.basis == "critique"):
            lines = [line for line in one.shows.splitlines() if not line.strip().endswith(repeats)]
            lines += [f"{ids[effect]}: {sentence(effect)}." for effect in one.effects]
            found = cut_middle("\n".join(lines), EVIDENCE_CHARACTERS)
            room = max(0, EVIDENCE_CHARACTERS - len(found))
            if outputs := "\n".join(output_texts(one.outputs))[:room]:
                found = f"{found}\n{outputs}".lstrip()
            word = "passed" if one.passed else "FAILED"
            results.append(f"- {one.name}: {word}. {found}".rstrip())
    text = "\n".join(results)
    return f"\n\nWhat the checks found by running it:\n{fence(text, nonce)}" if text else ""


def cut_middle(text: str, limit: int) -> str:
    """Return a text with its middle left out where it is longer than a limit.

    The start of its first line and that of its last one stay: they name an error.
    """
    if len(text) <= limit:
        return text
    end = text.rstrip().rpartition("\n")[2][: limit // 4] or text[-limit // 4 :]
    start = text[: limit - len(end)]
    return f"{start}\n[{len(text) - len(start) - len(end):,} characters left out]\n{end}"


def _list_points(title: str, cells: Sequence[Cell]) -> str:
    if not cells:
        return ""
    lines = []
    for cell in cells:
        one = cell.point
        about = one.words if is_critics(one) else one.criterion
        about = ", ".join(filter(None, ("blocking" if cell.weighs else "minor", about)))
        words = _line(cell.words)
        if one.source == "evaluator":  # its words stay as it wrote them
            words = _neutralise("\n  ".join(cell.words.strip().splitlines()))
        lines.append(
            f"- {one.id} ({about})"
            + (f' at "{_line(one.place)}"' if one.place else "")
            + f": {words}"
            + (f" Fix: {_line(one.fix)}" if one.fix else "")
            + (" You contested it; the critic stands by it." if one.upheld else "")
        )
    return f"\n\n{title}:\n" + "\n".join(lines)


def _undecided(run: Run, iteration: Iteration) -> str:
    """List what the task leaves open, for a reviser to decide as long as the user has not."""
    lines = [
        f"- {one.id}: {_line(one.words)}"
        + (f" ({_line(' / '.join(one.options))})" if one.options else "")
        for one in left_open(run, iteration)
    ]
    return "\n\n" + "\n".join([_PARTS["undecided"], *lines]) if lines else ""


def _actionable(run: Run, iteration: Iteration) -> list[Cell]:
    return [one for one in run.cells(iteration) if one.actionable]


def _rejected(run: Run, tried: Sequence[Iteration], nonce: Nonce) -> str:
    recent = [i.number for i in tried if not i.failure][-2:]
    lines = [""]  # below a head
    for iteration in tried[-_REASONS:]:  # in order, so that the next prompt only adds to this one
        lines.append(f"- {_line(_fate(run, iteration)) or 'no better'}")
        if iteration.number in recent:
            lines.append(fence(iteration.text[:_EXCERPT], nonce))
    return "\n".join(lines) if tried else ""


def _attempts(run: Run, base: Iteration, nonce: Nonce) -> str:
    parts = []
    for iteration in _tried(run, base):
        score = iteration.verdict.score if iteration.verdict else None
        head = f"Attempt {iteration.number}" + ("" if score is None else f", scored {score:.2f}")
        listed = _list_points("Its feedback", _actionable(run, iteration))
        feedback = listed.strip() or _line(_fate(run, iteration))
        parts.append(f"{head}:\n{fence(iteration.text, nonce)}\n{feedback}")
    return "\n\nEarlier attempts:\n\n" + "\n\n".join(parts) if parts else ""


def _tried(run: Run, base: Iteration) -> list[Iteration]:
    others = (i for i in run.iterations if i.number != base.number and not i.failure)
    return [iteration for iteration in others if iteration.verdict]


# What the user's own prompts are filled with: texts as they stand


def _attempt(text: str, feedback: str) -> str:
    return f"- {_neutralise(text)}" + (f"\nFeedback: {feedback}" if feedback else "")


def _feedback(cells: Sequence[Cell]) -> str:
    """Return points as their authors wrote them; each author's stand in a paragraph."""
    paragraphs = []
    for _, group in groupby(
        cells,
        lambda one: (
            one.point.source,
            one.point.check,
            "" if one.point.check or is_critics(one.point) else one.point.kind,
        ),
    ):
        items = [f"{one.words} {one.point.fix}".strip() for one in group]
        paragraphs.append("\n".join(f"- {i}" for i in items) if len(items) > 1 else items[0])
    return _neutralise("\n\n".join(paragraphs))


def _fate(run: Run, iteration: Iteration) -> str:
    """Return why a text was not taken: the first of what failed or was found; or nothing.

    Evidence is read as it stands in the iteration: what the server may not see was left out of it.
    """
    why, read = iteration.verdict.why if iteration.verdict else "", iteration.reading
    same = {"unchanged": "The revision changed nothing.", "repeats": "It repeats an earlier text."}
    left, failed = _actionable(run, iteration), [e for e in run.evidence(iteration) if e.failed]
    reasons = (
        iteration.failure,
        same.get(why, ""),
        f"Lost: {read.lost}" if read and read.compared == "worse" and read.lost else "",
        *(f"{one.name} failed: {first_line(one.shows)}" for one in failed),
        *(f"{one.point.criterion}: {one.words}" for one in left if one.blocks),
        *(one.words for one in left),
    )
    return next((reason for reason in reasons if reason), "")


def _contested(run: Run, iteration: Iteration, nonce: Nonce) -> str:
    lines = []
    for one in run.tests:
        if one.unanswered:  # what it says stands nowhere else, as it is not counted now
            lines += [f"- {one.words}: {_line(one.contests[-1])}", fence(one.code, nonce)]
    said = (one.point for one in up_for_review(run, iteration) if one.point.unanswered)
    lines += [f"- {one.id}: {_line(one.contests[-1])}" for one in said]
    head = "The writer contests these claims of yours, with a reason from the task:"
    return "\n\n" + "\n".join([head, *lines]) if lines else ""


def _dismissed(run: Run) -> str:
    lines = [
        f"- {_line(one.words)}" + (f" (because: {_line(one.reason)})" if one.reason else "")
        for one in dismissed(run)
        if not is_critics(one)  # no text is tried on it any more
    ]
    return "\n\nSettled already, not to be named again:\n" + "\n".join(lines) if lines else ""


# The requests


def _within_level(make: Callable[..., Request]) -> Callable[..., Request]:
    """Have a request built with what the level allows: the one way to a model."""

    @wraps(make)
    def build(self: "Requests", run: Run, *about: Any) -> Request:
        sent = visible(run, self.level)
        request = make(self, sent, *about)
        if sent == run or request.purpose not in self.replayed:
            return request
        return make(self, run, *about).replace(guarded=request.messages)

    return build


@dataclass
class Requests:
    """Builds the requests of a run: one per stage, the stable part first."""

    prompts: Prompts
    nonce: Nonce
    schema: dict[str, Any] | None = None  # of the text, to which servers can hold the writer
    level: Level = "structure"  # what the servers are sent of what code computed
    replayed: Collection[str] = ()  # stages that recordings answer, to which nothing is sent
    named: Collection[str] = ()  # variables that the user asked for

    def samples(self, run: Run, base: Iteration) -> bool:
        """Return True if a draft is sampled from the task in place of a revision of ``base``.

        Measured of the embedded model: shown the code that missed an example, it mended it in 0 of
        18 tries (0 to 19 %); from the task, it was right in 13 of 45 (16 to 44 %). Of 41 texts of
        prose that kept too little, edits mended 2 (1 to 17 %), samples 6 (6 to 29 %).
        """
        first = base
        while first.author != "user" and first.parent is not None:
            first = run.iterations[first.parent]
        if first.author == "user" or not self._built_in or run.limits.memory == "all":
            return False
        if run.limits.revise != "auto":
            return run.limits.revise == "sample"
        failed = [evidence for evidence in run.evidence(base) if evidence.failed]
        asked = any(one.point.by_user for one in _actionable(run, base))
        own = any(evidence.basis == "function" for evidence in failed)
        return run.setup.weak_editor and bool(failed) and not asked and not own

    def choose(self, run: Run) -> Request:
        """Ask for code or words, by examples; a weak writer needs them."""
        texts = _TEXTS["choose"]
        turns = [Message(role="system", content=texts["system"])]
        for form, task in (*texts["examples"], ("", run.task.request)):
            turns.append(Message(role="user", content=fill(texts["ask"], task=task)))
            turns += [Message(role="assistant", content=form)] if form else []
        return Request(
            messages=tuple(turns),
            max_tokens=_WORD,
            temperature=0.0,
            seed=run.limits.seed,
            purpose=Stage.CHOOSE,
            inputs=(run.task.request,),
        )

    @_within_level
    def draft(self, run: Run) -> Request:
        """Ask for a draft, outside of any JSON."""
        template, task = self.prompts.draft, run.task
        think = _FORMS[task.form]["think"]
        kinds = [one.profile for one in run.setup.words.tasks[1:]] if run.setup.words else []
        words = fill(_PARTS["words"], kinds="|".join(kinds)) if run.setup.words else ""
        words = ("" if run.setup.weak_editor else _PARTS["chosen"]) + words
        places = {"ask": _ask(run) + words, "think": think}
        places["format"] = _give("Then give", run) + words
        options = self._constraint(self.prompts.draft == _STAGES["draft"])
        options["temperature"] = _temperature(run)
        if self.prompts.is_own(Stage.DRAFT):
            return self._own(run, Stage.DRAFT, template, None, (), places, **options)
        return self._request(run, Stage.DRAFT, _fill_all(template, {}, **places), (), **options)

    @_within_level
    def critique(self, run: Run, number: int) -> Request:
        """Ask what is wrong with an iteration's text."""
        task, iteration = run.task, run.iterations[number]
        categories = f"; look at {', '.join(task.categories)}" if task.categories else ""
        standing = up_for_review(run, iteration)
        ours = "critique" not in run.setup.prompts
        # Of a long text, what a revision changed says more than the text that it began with.
        whole = iteration.parent is None or estimate_tokens(len(iteration.text)) < _LONG
        original = self._original(run, iteration, ours) if whole else ""
        about = {
            "text": self._text(run, iteration, INVISIBLE.sub("", iteration.text), original),
            "evidence": _evidence(run, iteration, self.nonce),
            "findings": _list_points("Open in the text before this one", standing),
            "contested": _contested(run, iteration, self.nonce),
            "dismissed": _dismissed(run),
            "difference": self._difference(run, iteration),
        }
        count = run.limits.min_findings
        space = _PARTS["space"]
        if task.variables:
            held = (one for e in iteration.evidence for one in e.held)
            answer = _PARTS["last_value"] * any(one.tells and not one.name for one in held)
            places = {"names": _names(task), "name": task.variables[0], "answer": answer}
            space = fill(_PARTS["cell_space"], **places)
        tests = fill(_PARTS["tests"], space=space) if task.is_python else ""
        names = dict.fromkeys([*(task.categories or [c.name for c in task.criteria]), SCOPE])
        weighty = [id_ for id_, one in iteration.effects.items() if has_to_be_wanted(one)]
        places = {
            "original": original,
            "categories": categories,
            "count": str(count),
            "least": f"at least {count}" if count else "the",
            "criterion": "" if task.variables else f'"criterion" ({", ".join(names)}), ',
            "rest": " that no run can show" if tests else "",
            "when": "if it passes all your tests" if tests else "as it is",
            "fixed": _PARTS["fixed"] if standing else "",
            "unsourced": _PARTS["unsourced"] if rests_on_sources(run) else "",
            "data": fill(_PARTS["data"], names=", ".join(weighty)) if weighty else "",
            "upheld": _PARTS["upheld"] if about["contested"] else "",
            "compared": _PARTS["compared"] if about["difference"] else "",
            "tests": tests,
            "input": _PARTS["input"] if tests else "",
            "test": _PARTS["test"] if tests else "",
        }
        shape, template = fill(_PARTS["critique"], **places), _usual_places(self.prompts.critique)
        if iteration.parent is not None and self.prompts.verify:
            template += f"\n\n{fill(_PARTS['verify'], words=self.prompts.verify)}"
        template = template if "{shape}" in template else f"{template}\n\n{{shape}}"
        places["task"] = task.request
        prompt = _fill_all(template, about, shape=shape, **places)
        prompt += _PARTS["answer"] * may_answer(run)
        inputs = (*about.values(), *([str(count)] if count else []), *filter(None, [original]))
        return self._request(run, Stage.CRITIQUE, prompt, inputs)

    @_within_level
    def explain(self, run: Run, number: int, question: str) -> Request:
        """Ask a question of the user's about an iteration's text."""
        iteration = run.iterations[number]
        about = (fence(iteration.text, self.nonce), _evidence(run, iteration, self.nonce), question)
        places = dict(zip(("text", "evidence", "question"), about, strict=True))
        return self._request(run, Stage.EXPLAIN, fill(_PARTS["explain"], **places), about)

    def _original(self, run: Run, iteration: Iteration, ours: bool) -> str:
        """Return the user's draft; empty for a weak writer.

        In a template of ours it always comes first, so that a server reads it once in a run.
        """
        draft = run.setup.draft
        same = iteration.text == draft and not ours
        if draft is None or same or run.setup.weak_editor:
            return ""
        return f"{_PARTS['original']}\n\n{fence(draft, self.nonce)}\n\n"

    def _text(self, run: Run, iteration: Iteration, text: str, original: str) -> str:
        """Return a text as a prompt holds it, where the user's draft may stand already."""
        same = original and iteration.text == run.setup.draft
        return _PARTS["unchanged"] if same else fence(text, self.nonce)

    def _difference(self, run: Run, iteration: Iteration) -> str:
        """Return what a revision changed, as a unified diff, and lost; empty for a draft."""
        if iteration.parent is None:
            return ""
        old, new = run.iterations[iteration.parent].text, iteration.text
        changed = unified_diff(old, new)
        lost = [
            f"- {_line(one.name)}: {f'{one.after} of {one.before} words' if one.after else 'gone'}"
            for one in lost_sections(run, iteration)
        ]
        more = "\n".join(["", "", _PARTS["losses"], *lost]) if lost else ""
        return f"\n\nWhat changed:\n{fence(changed, self.nonce)}{more}" if changed else ""

    @_within_level
    def judge(self, run: Run, number: int) -> Request:
        """Ask the user's evaluator what it says of a text, in the user's own words."""
        iteration = run.iterations[number]
        read = INVISIBLE.sub("", iteration.text)[: run.limits.max_eval_chars]
        standing = up_for_review(run, iteration)
        said = [one for one in standing if one.point.source == "you"]
        gone = ' ("fixed" in your reply: the ids of those that are gone)' if said else ""
        about = {
            "text": fence(read, self.nonce),
            "evidence": _evidence(run, iteration, self.nonce),
            "findings": _list_points(f"Weaknesses found in an earlier version{gone}", standing),
            "dismissed": _dismissed(run),
        }
        if self.prompts.is_own(Stage.JUDGE):
            iteration = iteration.replace(text=read)
            places = {**about, "shape": _with_words(run, FORMS["evaluator"].shape)}
            return self._own(run, Stage.JUDGE, self.prompts.judge, iteration, said, places)
        prompt, schema = _fill_all(self.prompts.judge, about), Scored.model_json_schema()
        return self._request(run, Stage.JUDGE, prompt, about.values(), json_schema=schema)

    def _own(
        self,
        run: Run,
        stage: Stage,
        template: str,
        iteration: Iteration | None,
        cells: Sequence[Cell],
        places: Mapping[str, str],
        **options: Any,
    ) -> Request:
        """Fill in the user's prompt, and append what it has no place for."""
        shown = only_named(run.task.materials, self.named)
        run = run.replace(setup=run.setup.replace(task=run.task.replace(materials=shown)))
        template = _usual_places(template) if iteration else template
        found = set(_PLACE.findall(template))
        task, text = _whole_request(run.task), _neutralise(iteration.text if iteration else "")
        attempts, feedback, added = "", _feedback(cells), []
        if stage is Stage.REVISE and iteration:
            has_text = "text" in found
            earlier = _tried(run, iteration) if run.limits.memory == "all" else []
            tried = [_attempt(one.text, _feedback(_actionable(run, one))) for one in earlier]
            attempts = "\n\n".join(tried if has_text else [*tried, _attempt(text, feedback)])
            if attempts and not found & {"attempts", "context"}:
                added.append(f"Previous attempts:\n{attempts}")
            if has_text and feedback and not found & {"feedback", "findings"}:
                added.append(f"Feedback: {feedback}")
        elif cells:
            feedback = _list_points("Open from an earlier version", cells).strip()
            added += [feedback] * (not found & {"feedback", "findings"})
        if "task" not in found:
            added.append(f"{'Original task' if stage is Stage.JUDGE else 'Task'}: {task}")
        if stage is Stage.JUDGE and "text" not in found:
            added.append(f"Content to evaluate: {text}")
        content = _fill_all(
            template,
            {},
            **{
                **places,
                "criteria": _criteria(run.task),
                "task": task,
                "text": text,
                "attempts": attempts,
                "feedback": feedback,
                "context": attempts and f"Previous attempts:\n{attempts}",
            },
        )
        prompt, about = "\n".join([content, *added]), (text, feedback, attempts)
        request = self._request(run, stage, prompt, about, **options)
        ours = int(self.prompts.system == _STAGES["system"])  # which would stand beside theirs
        form = "evaluator" if stage is Stage.JUDGE else "own"
        return request.replace(messages=request.messages[ours:], form=form)

    @_within_level
    def revise(self, run: Run, number: int) -> Request:
        """Ask for a better text than an iteration's, with a note for each point."""
        base, cells = run.iterations[number], to_act_on(run, run.iterations[number])
        options = self._constraint(self._built_in)
        about = {"evidence": _evidence(run, base, self.nonce, cells)}
        if self.samples(run, base):
            about["findings"] = _list_points("Its findings", cells)
            prompt = fill(_PARTS["rewrite"], ask=_ask(run), **about)
            options["temperature"] = _temperature(run)
            request = self._request(run, Stage.REVISE, prompt, about.values(), **options)
            return resampled(run, request, len(run.iterations))
        tried = [i for i in run.iterations if i.parent == number and i.verdict]
        if run.limits.memory == "all":
            earlier = recorded = _attempts(run, base, self.nonce)
        else:
            fates = _rejected(run, tried, self.nonce)
            head = _PARTS["another" if run.setup.weak_editor else "rejected"]
            earlier, recorded = (f"\n\n{one}{fates}" if fates else "" for one in (head, ""))
        original = self._original(run, base, self._built_in)
        about = {"text": self._text(run, base, base.text, original), **about}
        about["findings"] = _list_points("Findings to act on", cells) + _undecided(run, base)
        about["rejected"] = earlier
        if self.prompts.is_own(Stage.REVISE):
            template = self.prompts.revise
            template = self.prompts.draft if template == _STAGES["revise"] else template
            places = {**about, "rejected": earlier, "original": original, "ask": _ask(run)}
            places |= {"format": _give("Then give", run, revised=True)}
            warmth = {"temperature": _temperature(run, _warmth(tried))}
            return self._own(run, Stage.REVISE, template, base, cells, places, **warmth)
        template = self.prompts.revise
        if self._edits(run, base.text):
            template, options["form"] = _PARTS["edits"], "edits"
        if self._built_in and not run.setup.weak_editor:
            template = template.replace("{findings}", "{findings}" + _PARTS["contest"])
        asked = _give("Then give", run, revised=True)
        prompt = _fill_all(template, about, original=original, format=asked)
        prompt += _PARTS["answer"] * may_answer(run)
        options["temperature"] = _temperature(run, _warmth(tried))
        about["rejected"] = recorded  # a recorded reply outlives another head
        inputs = (*about.values(), *filter(None, [original]))
        return self._request(run, Stage.REVISE, prompt, inputs, **options)

    def adds_to(self, stage: Stage) -> bool:
        """Return True if the user's template, added to our prompt for a stage, says what to do."""
        own = getattr(self.prompts, stage)
        return own.removeprefix(_STAGES[stage]) not in ("", own)

    @property
    def _built_in(self) -> bool:
        return self.prompts.revise == _STAGES["revise"] and not self.prompts.is_own(Stage.REVISE)

    def _edits(self, run: Run, text: str) -> bool:
        """Return True if a revision is asked for as edits: of a long text, without own prompts.

        Four edits of 3,700 words take 257 tokens as edits and 5,224 as the whole text.
        """
        long = text.count("\n") >= _WHOLE_LINES or len(text) > _WHOLE_CHARACTERS
        return long and self._built_in and not self.schema and not run.setup.weak_editor

    def _request(
        self, run: Run, stage: Stage, prompt: str, about: Iterable[str], **options: Any
    ) -> Request:
        criteria = (criterion.name for criterion in run.task.criteria)
        own = (text for item in run.setup.prompts.items() for text in item)
        writes = "either" if run.setup.words else _ROWS[run.task.form]
        form = {Stage.CRITIQUE: "critic", Stage.JUDGE: "score"}.get(stage, writes)
        return Request(
            messages=(self._system(run, stage), Message(role="user", content=prompt)),
            max_tokens=token_limit(run),
            seed=run.limits.seed,
            purpose=stage,
            inputs=(_whole_request(run.task), *criteria, *run.task.checklist, *own, *about),
            **{"form": form, **options},
        )

    def _constraint(self, built_in: bool = True) -> dict[str, Any]:
        if not (self.schema and built_in):
            return {}
        return {"json_schema": self.schema, "form": "data"}

    def _system(self, run: Run, stage: Stage) -> Message:
        task, prompt, own = run.task, self.prompts.system, self.prompts.is_own(stage)
        if run.setup.weak_editor and prompt == _STAGES["system"]:
            prompt = _PARTS["small"]
        elif task.is_python and task.variables:
            said = {*task.checklist, *(one.definition for one in task.criteria)}
            prompt = prompt.partition("\n\nIt is judged on:" if said <= _LIBRARY else "\0")[0]
        items = "".join(f"\n{n}. {item}" for n, item in enumerate(task.checklist, start=1))
        head = "\n\nChecklist; a finished text answers each of these with yes:"
        content = fill(
            prompt if "{task}" in prompt or own else f"{prompt}\n\nTask: {{task}}",
            kind=one_line(fill(_FORMS[task.form]["kind"], language=task.language_name)),
            task=_whole_request(task, lambda text: fence(text, self.nonce)),
            criteria=_criteria(task),
            checklist=head + items if items else "",
        )
        return Message(role="system", content=content)


def _temperature(run: Run, least: float = 0.0) -> float | None:
    """Return a writer's temperature: none, unless one is asked for or the writer is a weak one."""
    asked = run.limits.temperature
    if asked is None and not run.setup.weak_editor:
        return None
    return max(asked or 0.0, least)


def _warmth(tried: Sequence[Iteration]) -> float:
    """Return what a revision needs at least: greedily written it would repeat what failed.

    See arXiv 2506.11930.
    """
    return min(0.4 + 0.2 * len(tried), 1.0) if tried else 0.0


def _criteria(task: Task) -> str:
    return "\n".join(f"- {one.name}: {one.definition}" for one in task.criteria)


def repair(run: Run, request: Request, reply: str, problem: str) -> Request:
    """Ask once more after a reply that missed its form."""
    shape = _with_words(run, FORMS[request.form].shape)
    return _ask_again(request, reply, fill(_PARTS["repair"], problem=problem, shape=shape))


def _with_words(run: Run, shape: str) -> str:
    words = {"tag": run.task.language, "pass": "PASS", "fail": "FAIL"}
    return fill(shape, **words | run.setup.prompts)


def mend(request: Request, reply: str, problems: Iterable[str]) -> Request:
    """Ask a critic once more for tests that fail in their own lines."""
    return _ask_again(
        request, reply, fill(_PARTS["mend"], problem=_neutralise("\n".join(problems)))
    )


def _ask_again(request: Request, reply: str, words: str) -> Request:
    quoted = reply[:REPAIR_CHARACTERS]
    turns = (
        Message(role="assistant", content=quoted or "(empty)"),
        Message(role="user", content=words),
    )
    return request.replace(
        messages=request.messages + turns,
        guarded=request.guarded and request.guarded + turns,
        inputs=(*request.inputs, quoted),
    )


def resampled(run: Run, request: Request, number: int = 1) -> Request:
    """Return the same request for one more reply besides the first, sampled so that it differs."""
    return request.replace(
        temperature=_temperature(run, SAMPLED),
        seed=None if request.seed is None else request.seed + number,
        inputs=(*request.inputs, f"anew {number}"),
    )


def _names(task: Task) -> str:
    return ", ".join(f"`{name}`" for name in task.variables[:_NAMED])


def _ask(run: Run) -> str:
    if run.task.plan and run.task.form == "prose":
        return f"{_FORMS['prose']['think']}\n{_give('Then give', run)}"
    return _give("Give", run)


def _give(verb: str, run: Run, *, revised: bool = False) -> str:
    """Say how the text is to be marked; a cell works on the notebook's variables."""
    task, weak = run.task, run.setup.weak_editor
    form, part = _FORMS[task.form], "give" if task.language or task.form == "prose" else "open"
    if task.is_python and task.variables:
        form, part = _PARTS, "cell" if weak else "revised" if revised else "next_cell"
    places = {"language": task.language_name, "tag": task.language or "python"}
    return fill(form[part], verb=verb, names=_names(task), **places)
