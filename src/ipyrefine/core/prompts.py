"""What the model is asked: the text of each stage with named places, and the requests made of it.

A user may replace the text of a stage. A place is a name in braces. Places are filled in one pass:
braces inside an inserted text, and names that are not places, stay as they are.

`PLACES` lists those of each stage; `APPENDED` says what becomes of the others.

The task comes first, then the text and what running it showed, and last the stage's own words. So
the prompts of all stages begin alike, and a server that caches what it has read, as the embedded
one does, has little to read again. Text that a model or a user wrote stands in a fence: between
tags that carry a nonce, declared to be material and never instruction.
"""

import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import unified_diff
from importlib.resources import files
from typing import Any

from ipyrefine.core.expectations import contested
from ipyrefine.core.findings import SCOPE, dismissed, first_line, up_for_review
from ipyrefine.core.model import (
    Evidence,
    Finding,
    Form,
    Output,
    Record,
    Repeats,
    Stage,
    Task,
)
from ipyrefine.core.policy import (
    EVIDENCE_CHARACTERS,
    REPAIR_CHARACTERS,
    standing,
    to_act_on,
    token_limit,
)
from ipyrefine.core.ports import Message, Request
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Level, output_texts, withhold
from ipyrefine.errors import UsageError, did_you_mean

# The places of each stage's prompt, as `%%refine?` shows them.
PLACES = {
    "system": "heads every prompt of a run: {task}; {criteria}, a line each; {checklist}; {kind}, "
    "which is code or text",
    "draft": "{ask} for a text; or in parts, {think} first and {format} of the reply",
    "critique": "{text}; {evidence} of the checks; {tests} to write; {count} findings, or {least} "
    "as words; {categories} to look at; {findings} that were open before; what changed "
    "as {difference}; tests that are {contested}; {dismissed} findings; {shape} of the reply",
    "judge": "your evaluator: {text}; {criteria}; {evidence}; {findings} that stood before and "
    "{dismissed} ones; {shape} of the reply: PASS, NEEDS_IMPROVEMENT or FAIL, then feedback",
    "revise": "{text}; {evidence}; {findings} to act on; {rejected} attempts; {format}",
}
APPENDED = (
    "What a prompt has no place for (findings, evidence, attempts) is added at its end. So is "
    "a critic's {shape}, and {format}, unless a writer's prompt asks for \"Response: …\" or JSON "
    'with a "response". An evaluator may answer PASS, a score, or JSON with either and "feedback".'
)

_TEXTS = tomllib.loads((files("ipyrefine.core") / "prompts.toml").read_text("utf-8"))
_STAGES: dict[str, str] = _TEXTS["stages"]
_PARTS: dict[str, str] = _TEXTS["parts"]
_FORMS: dict[Form, dict[str, str]] = {"code": _TEXTS["code"], "prose": _TEXTS["prose"]}
SAMPLED = 0.8  # temperature of further drafts, as CodeT's (arXiv 2207.10397)

_WHOLE_LINES, _WHOLE_CHARACTERS = 80, 4_000  # of a text that is revised as a whole
_REQUIRED_PLACES = {
    "system": ("task",),
    "critique": ("text",),
    "judge": ("text",),
    "revise": ("text",),
}
SCORE: str = _TEXTS["score"]["judge"]  # the evaluator of a run with a target and none of its own
_PLACE = re.compile(r"\{(\w+)\}")


class Prompts(Record):
    """One text per stage; see the head of this module for the places each may have.

    Attributes:
        system: heads every call.
        draft: asks for a draft.
        critique: asks for findings.
        judge: asks the user's evaluator for its verdict; empty where there is none.
        revise: asks for a better text.
    """

    system: str = _STAGES["system"]
    draft: str = _STAGES["draft"]
    critique: str = _STAGES["critique"]
    judge: str = ""
    revise: str = _STAGES["revise"]

    @classmethod
    def build(cls, own: Mapping[str, Any]) -> "Prompts":
        """Build prompts with the user's own for some stages.

        Args:
            own: the user's prompts by stage.

        Raises:
            UsageError: there is no such stage, a prompt is no text, or lacks a place it needs.
        """
        for stage, prompt in own.items():
            if stage not in cls.model_fields:
                stages = ", ".join(cls.model_fields)
                hint = did_you_mean(str(stage), cls.model_fields)
                raise UsageError(f"There is no stage {stage!r} to prompt: {stages}.{hint}")
            if not isinstance(prompt, str) or not prompt.strip():
                raise UsageError(f"The prompt for {stage} must be a text, not {prompt!r:.40}.")
        prompts = cls.model_validate(dict(own))
        prompts.require_places()
        return prompts

    def require_places(self) -> None:
        """Refuse prompts that would leave out what a stage is about.

        Raises:
            UsageError: a prompt lacks a place it needs.
        """
        for stage, names in _REQUIRED_PLACES.items():
            prompt = getattr(self, stage)
            for name in names:
                if prompt and name not in _PLACE.findall(prompt):
                    raise UsageError(f"The prompt for {stage} needs {{{name}}} somewhere in it.")

    def own(self) -> dict[str, str]:
        """Return the prompts that differ from the built-in ones, by stage."""
        return {
            stage: prompt
            for stage, prompt in self.model_dump().items()
            if prompt != type(self).model_fields[stage].default
        }


def fill(prompt: str, **places: object) -> str:
    """Put values in their places, in one pass; nothing inside a value is a place.

    >>> fill("{a} and {b} and {c}", a="{b}", b=2)
    '{b} and 2 and {c}'
    """
    return _PLACE.sub(lambda m: str(places.get(m[1], m[0])), prompt)


_OWN_FORMAT = re.compile(r"\bresponse\b\W{0,3}:", re.IGNORECASE)


def _with_shape(prompt: str) -> str:
    """Make sure that a prompt says what its JSON looks like."""
    return prompt if "{shape}" in prompt else f"{prompt}\n\n{{shape}}"


def _with_format(prompt: str) -> str:
    """Make sure that a prompt says how the text is to be marked."""
    says = "{format}" in prompt or "{ask}" in prompt or _OWN_FORMAT.search(prompt) is not None
    return prompt if says else f"{prompt}\n\n{{format}}"


def _fill_all(template: str, about: Mapping[str, str], **places: str) -> str:
    """Fill a prompt, and add at its end what it has no place for."""
    missing = [text for name, text in about.items() if f"{{{name}}}" not in template]
    return fill(template, **about, **places) + "".join(missing)


# The fence around untrusted text

Nonce = Callable[[str], str]

# Our own tags, and those by which chat templates tell who speaks: many servers read them as such
# wherever they stand.
_LOOK_ALIKE = re.compile(
    r"<(?=\W*material|\|\w{1,40}\|>|(?:start|end)_of_turn>)|\[(?=/?INST\])", re.IGNORECASE
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


def fence(text: str, nonce: Nonce) -> str:
    """Put untrusted text between tags it cannot forge; look-alikes inside are broken up."""
    mark = nonce(text)
    return f"<material-{mark}>\n{_neutralise(text)}\n</material-{mark}>"


def _neutralise(text: str) -> str:
    return _LOOK_ALIKE.sub(lambda match: f"{match[0]} ", text)


def _line(text: str) -> str:
    """Return a model's words as one line, so that they cannot pass for a part of the prompt."""
    return _neutralise(" ".join(text.split()))


# What prompts are filled with


def _whole_request(task: Task, fenced: Callable[[str], str] = str) -> str:
    """Return the request with what it is about.

    Args:
        task: the task.
        fenced: fences a text that the request does not state.
    """
    materials = (f"{head}\n{fenced(text)}" for head, text in _materials(task))
    return "\n\n".join([task.request, *materials])


def _materials(task: Task) -> list[tuple[str, str]]:
    """Return what a task is about, each kind as its head and its text."""
    variables = "\n".join(m.text for m in task.materials if m.kind == "variable")
    cells = "\n\n".join(m.text for m in task.materials if m.kind == "cells")
    parts = [(_FORMS[task.form]["variables"], variables), (_PARTS["cells"], cells)]
    return [(head, text) for head, text in parts if text]


def _evidence(iteration: Iteration, nonce: Nonce, listed: Sequence[Finding] = ()) -> str:
    """Return what the checks found, fenced: a text that runs may print what it likes.

    Args:
        iteration: the text it is about.
        nonce: makes the nonce.
        listed: findings that the prompt lists as well, whose words it need not repeat.
    """
    known = tuple(line.strip() for finding in listed for line in finding.problem.splitlines())
    told = (
        e for e in iteration.conclusive if e.grounds or e.outputs or e.results or "\n" in e.detail
    )
    return _fence_evidence((_result(e, known, e.outputs) for e in told), nonce)


def _fence_evidence(results: Iterable[str], nonce: Nonce) -> str:
    text = "\n".join(results)
    return f"\n\nWhat the checks found by running it:\n{fence(text, nonce)}" if text else ""


def _result(evidence: Evidence, known: tuple[str, ...] = (), outputs: Iterable[Output] = ()) -> str:
    """Return a check's result with its detail, cut, without the lines that are known."""
    lines = [line for line in evidence.detail.splitlines() if not line.strip().endswith(known)]
    text = "\n".join([*lines, *output_texts(outputs)])[:EVIDENCE_CHARACTERS]
    return f"- {evidence.name}: {'passed' if evidence.passed else 'FAILED'}. {text}".rstrip()


def _list_findings(title: str, findings: Sequence[Finding]) -> str:
    if not findings:
        return ""
    lines = [
        f"- {f.id} ({f.severity}, {f.criterion})"
        + (f' at "{_line(f.quote)}"' if f.quote else "")
        + f": {_line(f.problem)}"
        + (f" Fix: {_line(f.fix)}" if f.fix else "")
        for f in findings
    ]
    return f"\n\n{title}:\n" + "\n".join(lines)


def _rejected(tried: Sequence[Iteration], nonce: Nonce) -> str:
    """Name what was already tried from the same text, so that it is not tried again."""
    if not tried:
        return ""
    recent = [i.number for i in tried if not i.failure][-2:]
    lines = []
    for iteration in tried[-_REASONS:]:  # in order, so that the next prompt only adds to this one
        lines.append(f"- {_line(_fate(iteration)) or 'no better'}")
        if iteration.number in recent:
            lines.append(fence(iteration.text[:_EXCERPT], nonce))
    return "\n\nEarlier revisions of it were no better. Take another way than these:\n" + "\n".join(
        lines
    )


def _attempts(run: Run, base: Iteration, nonce: Nonce) -> str:
    """Return every earlier attempt with its feedback, the oldest first."""
    parts = []
    for iteration in run.iterations:
        if iteration.number == base.number or iteration.failure or iteration.verdict is None:
            continue
        score = iteration.verdict.score
        head = f"Attempt {iteration.number}" + ("" if score is None else f", scored {score:.2f}")
        findings = _list_findings("Its feedback", iteration.findings)
        feedback = findings.strip() or _line(_fate(iteration))
        parts.append(f"{head}:\n{fence(iteration.text, nonce)}\n{feedback}")
    return "\n\nEarlier attempts:\n\n" + "\n\n".join(parts) if parts else ""


def _fate(iteration: Iteration) -> str:
    """Return why a text was not taken: the first of what failed, differs or was found; or nothing.

    Evidence is read as it stands in the iteration: what the server may not see was left out of it.
    """
    because = iteration.verdict.because if iteration.verdict else None
    unchanged = isinstance(because, Repeats) and because.of_parent
    repeats = "The revision changed nothing." if unchanged else "It repeats an earlier text."
    open_findings = [f for f in iteration.findings if f.actionable]
    reasons = (
        iteration.failure,
        repeats if isinstance(because, Repeats) else "",
        *(f"{e.name} failed: {first_line(e.detail)}" for e in iteration.evidence if e.failed),
        *(first_line(e.detail) for e in iteration.evidence if e.drafts == "differ"),
        *(f"{f.criterion}: {f.problem}" for f in open_findings if f.blocks),
        *(f.problem for f in open_findings),
    )
    return next((reason for reason in reasons if reason), "")


def _contested(run: Run) -> str:
    """Name the critic's tests that the reviser calls wrong, each with the reason."""
    lines = [f"- {one.name}: {_line(one.contest)}" for one in contested(run.expectations)]
    head = "The writer contests these tests of yours, with a reason from the task:"
    return "\n\n" + "\n".join([head, *lines]) if lines else ""


def _dismissed(run: Run) -> str:
    """Name what the user set aside, so that it is not raised again."""
    lines = [
        f"- {_line(f.problem)}" + (f" (because: {_line(f.reason)})" if f.reason else "")
        for f in dismissed(run)
    ]
    return "\n\nSettled already, not to be named again:\n" + "\n".join(lines) if lines else ""


# The requests


class Requests:
    """Builds the requests of a run: one per stage, the stable part first.

    Args:
        prompts: the text of each stage.
        nonce: makes the nonce of a fence.
        schema: the JSON schema of the text, to which servers can hold the writer.
        replayed: the stages that recordings answer, to which nothing is sent.
        names: words of the checks that may be sent at any level.

    Attributes:
        level: what the servers are sent of what code computed.
    """

    def __init__(
        self,
        prompts: Prompts,
        nonce: Nonce,
        schema: dict[str, Any] | None = None,
        *,
        level: Level = "structure",
        replayed: Collection[str] = (),
        names: str = "",
    ) -> None:
        self._prompts, self._nonce, self._schema = prompts, nonce, schema
        self.level, self._replayed, self._names = level, replayed, names

    def draft(self, run: Run, candidate: int = 0) -> Request:
        """Ask for a draft, outside of any JSON.

        Args:
            run: the run.
            candidate: which of several it is; those after the first are sampled, to differ.
        """
        return self._shared(run, lambda run: self._draft(run, candidate))

    def critique(self, run: Run, iteration: Iteration) -> Request:
        """Ask for the findings on one text, by a schema with bounded lists."""
        return self._shared(run, lambda run: self._critique(run, run.iterations[iteration.number]))

    def judge(self, run: Run, iteration: Iteration) -> Request:
        """Ask the user's evaluator what it says of a text, in the user's own words."""
        return self._shared(run, lambda run: self._judge(run, run.iterations[iteration.number]))

    def revise(self, run: Run, base: Iteration) -> Request:
        """Ask for a better text than ``base``, with a note of what changed for each finding."""
        return self._shared(run, lambda run: self._revise(run, run.iterations[base.number]))

    def _shared(self, run: Run, build: Callable[[Run], Request]) -> Request:
        """Build a request with what the level allows; the one way to a model."""
        if self.level != "structure":
            return build(run)
        request = build(withhold(run, self._names))
        if request.purpose not in self._replayed:
            return request
        return build(run).model_copy(update={"guarded": request.messages})

    def _draft(self, run: Run, candidate: int) -> Request:
        template = _with_format(self._prompts.draft)
        think = _think(run)
        prompt = fill(template, ask=_ask(run), think=think, format=_format(run.task))
        options = self._constraint(self._prompts.draft == _STAGES["draft"])
        options["temperature"] = run.limits.temperature
        request = self._request(run, Stage.DRAFT, prompt, (), **options)
        return _resampled(request, "candidate", candidate) if candidate else request

    def _critique(self, run: Run, iteration: Iteration) -> Request:
        task = run.task
        categories = f"; look at {', '.join(task.categories)}" if task.categories else ""
        standing = up_for_review(iteration)
        about = {
            "text": fence(iteration.text, self._nonce),
            "evidence": _evidence(iteration, self._nonce),
            "findings": _list_findings("Open in the text before this one", standing),
            "contested": _contested(run),
            "dismissed": _dismissed(run),
            "difference": self._difference(run, iteration),
        }
        count = run.limits.min_findings
        tests = _PARTS["tests"] if task.is_python else ""
        names = task.categories or tuple(c.name for c in task.criteria)
        places = {
            "categories": categories,
            "count": str(count),
            "least": f"at least {count}" if count else "the",
            "names": ", ".join(dict.fromkeys([*names, SCOPE])),
            "rest": " that no run can show" if tests else "",
            "fixed": _PARTS["fixed"] if standing else "",
            "upheld": _PARTS["upheld"] if contested(run.expectations) else "",
            "tests": tests,
        }
        shape = fill(_PARTS["critique"], **places)
        prompt = _fill_all(_with_shape(self._prompts.critique), about, shape=shape, **places)
        inputs = (*about.values(), *([str(count)] if count else []))
        return self._request(run, Stage.CRITIQUE, prompt, inputs)

    def _difference(self, run: Run, iteration: Iteration) -> str:
        """Return what a revision changed, as a unified diff; empty for a draft."""
        if iteration.parent is None:
            return ""
        old, new = run.iterations[iteration.parent].text, iteration.text
        lines = list(unified_diff(old.splitlines(), new.splitlines(), "", "", "", "", 2, ""))[2:]
        changed = fence("\n".join(lines), self._nonce)
        return f"\n\nWhat changed:\n{changed}" if lines else ""

    def _judge(self, run: Run, iteration: Iteration) -> Request:
        standing = up_for_review(iteration)
        about = {
            "text": fence(iteration.text, self._nonce),
            "evidence": _evidence(iteration, self._nonce),
            "findings": _list_findings("Weaknesses found in an earlier version", standing),
            "dismissed": _dismissed(run),
        }
        places = {"criteria": _criteria(run.task), "shape": _TEXTS["shapes"]["verdict"]}
        prompt = _fill_all(self._prompts.judge, about, **places)
        return self._request(run, Stage.JUDGE, prompt, about.values())

    def _revise(self, run: Run, base: Iteration) -> Request:
        tried = [i for i in run.iterations if i.parent == base.number and i.verdict]
        whole = run.limits.memory == "all"
        own = _from_user(run, base) or not self._mends
        if not own and not whole and _writes_anew(run, base, tried):
            return self._rewrite(run, base)
        about = {
            "text": fence(base.text, self._nonce),
            **self._feedback(run, base, "Findings to act on"),
            "rejected": _attempts(run, base, self._nonce)
            if whole
            else _rejected(tried, self._nonce),
        }
        by_edits = self._asks_for_edits(run, base)
        template = _PARTS["edits"] if by_edits else _with_format(self._prompts.revise)
        if self._mends and not run.setup.revise_anew:
            template = template.replace("{findings}", "{findings}" + _PARTS["contest"])
        prompt = _fill_all(template, about, format=_format(run.task))
        temperature = run.limits.temperature
        if tried:  # a greedy model would only repeat what already failed (arXiv 2506.11930)
            temperature = max(temperature, min(0.4 + 0.2 * len(tried), 1.0))
        options = self._constraint(self._mends)
        if by_edits:
            options["schema_name"] = "edits"
        return self._request(
            run, Stage.REVISE, prompt, about.values(), temperature=temperature, **options
        )

    @property
    def _mends(self) -> bool:
        """Whether revisions are asked for by the built-in prompt."""
        return self._prompts.revise == _STAGES["revise"]

    def _asks_for_edits(self, run: Run, base: Iteration) -> bool:
        """Return whether a revision is asked for as edits: of a long text, but for own prompts.

        Four edits of 3,700 words take 257 tokens as edits and 5,224 as the whole text.
        """
        own = self._schema or not self._mends
        long = base.text.count("\n") >= _WHOLE_LINES or len(base.text) > _WHOLE_CHARACTERS
        return long and not own and not run.setup.revise_anew and run.limits.revise != "anew"

    def _rewrite(self, run: Run, base: Iteration) -> Request:
        """Ask for the text anew, with what is wrong with ``base`` but not its words.

        Small models repeat a text that they are shown, or its mistake, whatever the findings say.
        """
        about = self._feedback(run, base, "Its findings")
        prompt = fill(_PARTS["rewrite"], ask=_ask(run), **about)
        options = self._constraint() | {"temperature": run.limits.temperature}
        request = self._request(run, Stage.REVISE, prompt, about.values(), **options)
        return _resampled(request, "anew", len(run.iterations))

    def _feedback(self, run: Run, base: Iteration, title: str) -> dict[str, str]:
        """Return the evidence on a text, and the findings to act on."""
        findings = to_act_on(run, base)
        return {
            "evidence": _evidence(base, self._nonce, findings),
            "findings": _list_findings(title, findings),
        }

    def _request(
        self, run: Run, stage: Stage, prompt: str, about: Iterable[str], **options: Any
    ) -> Request:
        criteria = (criterion.name for criterion in run.task.criteria)
        own = (text for item in run.setup.prompts.items() for text in item)
        return Request(
            messages=(self._system(run.task), Message(role="user", content=prompt)),
            max_tokens=token_limit(run),
            seed=run.limits.seed,
            purpose=stage,
            inputs=(_whole_request(run.task), *criteria, *run.task.checklist, *own, *about),
            **{"schema_name": stage.value, **options},
        )

    def _constraint(self, built_in: bool = True) -> dict[str, Any]:
        """Return the options that hold a writer to the schema, unless the prompt is the user's."""
        if not (self._schema and built_in):
            return {}
        return {"json_schema": self._schema, "schema_name": "text", "strict": False}

    def _system(self, task: Task) -> Message:
        items = "".join(f"\n{n}. {item}" for n, item in enumerate(task.checklist, start=1))
        head = "\n\nChecklist; a finished text answers each of these with yes:"
        content = fill(
            self._prompts.system,
            kind=fill(_FORMS[task.form]["kind"], language=task.language_name),
            task=_whole_request(task, lambda text: fence(text, self._nonce)),
            criteria=_criteria(task),
            checklist=head + items if items else "",
        )
        return Message(role="system", content=content)


def _criteria(task: Task) -> str:
    return "\n".join(f"- {one.name}: {one.definition}" for one in task.criteria)


def repair(run: Run, request: Request, reply: str, problem: str) -> Request:
    """Ask once more after a reply that could not be read."""
    kind = "own" if request.purpose == Stage.JUDGE else ""
    if request.json_schema:
        kind = "json"
    elif request.schema_name == "edits":
        kind = "edits"
    shape = _TEXTS["shapes"][kind] if kind else _FORMS[run.task.form]["shape"]
    shape = fill(shape, tag=run.task.language)
    quoted = reply[:REPAIR_CHARACTERS]
    turns = (
        Message(role="assistant", content=quoted or "(empty)"),
        Message(role="user", content=fill(_PARTS["repair"], problem=problem, shape=shape)),
    )
    return request.model_copy(
        update={
            "messages": request.messages + turns,
            "guarded": request.guarded and request.guarded + turns,
            "inputs": (*request.inputs, quoted),
        }
    )


def _resampled(request: Request, kind: str, number: int) -> Request:
    """Return the same request for one more reply besides the first, sampled so that it differs."""
    return request.model_copy(
        update={
            "temperature": max(request.temperature, SAMPLED),
            "seed": None if request.seed is None else request.seed + number,
            "inputs": (*request.inputs, f"{kind} {number}"),
        }
    )


def _repeated(base: Iteration, tried: Iterable[Iteration]) -> bool:
    """Return whether a revision of a text was only that text again."""
    return any(i.text == base.text and not i.failure for i in tried)


def _gained_nothing(run: Run, base: Iteration) -> bool:
    """Return whether a text is a revision that ranks no better than what it was revised from."""
    if base.parent is None:
        return False
    old, new = standing(run, run.iterations[base.parent]), standing(run, base)
    return old is not None and new is not None and new <= old


def _writes_anew(run: Run, base: Iteration, tried: Sequence[Iteration]) -> bool:
    """Return whether a revision starts from the task rather than from the text.

    Weak models gain less from mending a text than from sampling it again (arXiv 2306.09896): shown
    what code missed of an example, the embedded one mended it in 0 of 18 tries; anew, it did in 13
    of 45. Of 41 prose drafts that kept too little of what was asked, edits mended 2, samples 6.
    """
    if run.limits.revise != "auto":
        return run.limits.revise == "anew"
    if _repeated(base, tried):
        return True
    failed = [evidence for evidence in base.evidence if evidence.failed]
    user_asks = any(finding.author == "user" for finding in base.actionable)
    if user_asks or not failed:
        return False
    if any(evidence.basis == "function" for evidence in failed):
        return False
    edited = _gained_nothing(run, base) or any(not iteration.failure for iteration in tried)
    if edited or run.setup.revise_anew:
        return True
    all_missed = all(any(e.failed for e in draft.evidence) for draft in run.drafts)
    several = base.parent is None and all_missed and len(run.drafts) > 1
    return several and run.task.form != "prose"


def _from_user(run: Run, iteration: Iteration) -> bool:
    """Return whether the user wrote a text, or one that it was revised from."""
    while iteration.author != "user" and iteration.parent is not None:
        iteration = run.iterations[iteration.parent]
    return iteration.author == "user"


def _think(run: Run) -> str:
    """Ask for a plan first; of a weak model a short one, with the task told once more."""
    thought = "plan" if run.setup.revise_anew else "think"
    return fill(_FORMS[run.task.form][thought], task=run.task.request)


def _ask(run: Run) -> str:
    if run.task.plan and run.task.form == "prose":
        return f"{_think(run)}\n{_format(run.task)}"
    return _give("Give", run.task)


def _format(task: Task) -> str:
    return _give("Then give", task)


def _give(verb: str, task: Task) -> str:
    """Say how the text is to be marked; a cell works on the notebook's variables."""
    names = [m.name for m in task.materials if m.kind == "variable"][:_NAMED]
    if task.form == "code" and names:
        return fill(_PARTS["cell"], verb=verb, names=", ".join(f"`{name}`" for name in names))
    language = {"language": task.language_name, "tag": task.language}
    return fill(_FORMS[task.form]["give"], verb=verb, **language)
