"""Request builders: one a stage, stable part first so that a prefix cache serves it.

The system message (task, criteria, checklist) is the same in every stage of a run, so that a
server that caches prompt prefixes reads it once. Text that a model or a user wrote stands
between marks that carry a nonce and is declared to be material, never instruction.
"""

import json
from collections.abc import Iterable
from typing import Any

from ipyrefine.core import material, schemas
from ipyrefine.core.events import Stage
from ipyrefine.core.ledger import CHECKLIST
from ipyrefine.core.material import Mark
from ipyrefine.core.ports import Message, Request
from ipyrefine.core.prompts import (
    ANEW,
    CUT_REPLY,
    EARLIER,
    FORMAT,
    GIVE,
    PLANNED,
    REPAIR,
    REVISE,
    SHAPES,
    THINK,
    Prompts,
    fill,
    with_format,
    with_shape,
)
from ipyrefine.core.records import Finding, Task
from ipyrefine.core.runs import Iteration, Run
from ipyrefine.core.stopping import to_act_on

SAMPLED = 0.8  # temperature of further candidates and critics: as CodeT's (arXiv 2207.10397)


class Requests:
    """Builds the requests of a run.

    Args:
        prompts: what each stage is told.
        mark: gives the mark that an untrusted text stands between.
    """

    def __init__(self, prompts: Prompts, mark: Mark) -> None:
        self._prompts, self._mark = prompts, mark

    def draft(self, run: Run, candidate: int = 0) -> Request:
        """Ask for a first text, outside of any JSON.

        Args:
            run: the run.
            candidate: which of several it is; those after the first are sampled, to differ.
        """
        task = _task(run)
        template = with_format(self._prompts.draft, task.form)
        prompt = fill(template, **_ask(run), **_think(run), **_format(run))
        request = self._request(run, "draft", prompt, (), temperature=run.limits.temperature)
        return _another(request, "candidate", candidate) if candidate else request

    def critique(self, run: Run, iteration: Iteration, critic: int = 0) -> Request:
        """Ask for the findings on one text, by a schema with bounded lists.

        Args:
            run: the run.
            iteration: the text.
            critic: which of several it is; those after the first are sampled, to differ.
        """
        task = _task(run)
        look = f"; look at {', '.join(task.categories)}" if task.categories else ""
        schema = schemas.critique(task, run.limits.min_findings)
        about = {
            "text": material.shown(iteration.text, run.limits.max_eval_chars, self._mark),
            "evidence": material.evidence(iteration, self._mark),
            "dismissed": material.dismissed(run),
            "count": str(run.limits.min_findings),
        }
        template = with_shape(self._prompts.critique)
        prompt = fill(template, shape=_shape(schema), categories=look, **about)
        request = self._structured(run, "critique", prompt, about, schema)
        return _another(request, "critic", critic) if critic else request

    def judge(self, run: Run, iteration: Iteration) -> Request:
        """Ask a judge for scores, new findings, and which open findings are fixed."""
        task, standing = _task(run), reviewed(iteration)
        questions = EARLIER  # asked where there are none, too, as the words before the text stay
        if task.checklist:
            questions += "Answer each question of the checklist by its number, yes as true. "
        about = {
            "text": material.shown(iteration.text, run.limits.max_eval_chars, self._mark),
            "evidence": material.evidence(iteration, self._mark),
            "findings": material.listed("Weaknesses found in an earlier version", standing),
            "dismissed": material.dismissed(run),
            "precedents": material.precedents(run, self._mark),
        }
        shape = _shape(schemas.any_judgement(task))
        prompt = fill(with_shape(self._prompts.judge), shape=shape, questions=questions, **about)
        schema = schemas.judgement(task, standing)
        return self._structured(run, "judge", prompt, about, schema, name="judgement")

    def revise(self, run: Run, base: Iteration) -> Request:
        """Ask for a better text than ``base``, with a note of what changed for each finding."""
        tried = [i for i in run.iterations if i.parent == base.number and i.verdict]
        whole = run.limits.memory == "all"
        own = _from_user(run, base) or self._prompts.revise != REVISE
        if not own and not whole and (_repeated(base, tried) or _fruitless(run, base)):
            return self._anew(run, base)
        about = {
            "text": material.envelope(base.text, self._mark),
            **self._found(run, base, "Findings to act on"),
            "rejected": material.attempts(run, base, self._mark)
            if whole
            else material.rejected(tried, self._mark),
        }
        template = with_format(self._prompts.revise, _task(run).form)
        prompt = fill(template, **_format(run), **about)
        temperature = run.limits.temperature
        if tried:  # a greedy model would only repeat what already failed (arXiv 2506.11930)
            temperature = max(temperature, min(0.4 + 0.2 * len(tried), 1.0))
        return self._request(run, "revise", prompt, about.values(), temperature=temperature)

    def _anew(self, run: Run, base: Iteration) -> Request:
        """Ask for another first text, with what is wrong with ``base`` but not its words.

        Small models repeat a text that they are shown, or its mistake, whatever is said against it.
        """
        about = self._found(run, base, "Its findings")
        prompt = fill(ANEW, **_ask(run), **about)
        request = self._request(
            run, "revise", prompt, about.values(), temperature=run.limits.temperature
        )
        return _another(request, "anew", len(run.iterations))

    def _found(self, run: Run, base: Iteration, title: str) -> dict[str, str]:
        """What a revision is told of a text: the evidence, and the findings to act on."""
        findings = to_act_on(run, base)
        return {
            "evidence": material.evidence(base, self._mark, findings),
            "findings": material.listed(title, findings),
        }

    def gate(self, run: Run, first: Iteration, second: Iteration) -> Request:
        """Ask which of two texts is better."""
        most = run.limits.max_eval_chars
        about = {
            "first": material.shown(first.text, most, self._mark),
            "second": material.shown(second.text, most, self._mark),
        }
        schema = schemas.preference()
        prompt = fill(with_shape(self._prompts.gate), shape=_shape(schema), **about)
        return self._structured(run, "gate", prompt, about, schema, name="preference")

    def _request(
        self, run: Run, purpose: Stage, prompt: str, about: Iterable[str], **options: Any
    ) -> Request:
        task = _task(run)
        criteria = (criterion.name for criterion in task.criteria)
        own = (text for stage in run.prompts.items() for text in stage)
        return Request(
            messages=(self._system(task), Message(role="user", content=prompt)),
            max_tokens=run.limits.max_tokens,
            seed=run.limits.seed,
            purpose=purpose,
            given=(task.text, *criteria, *task.checklist, *own, *about),
            **options,
        )

    def _structured(
        self,
        run: Run,
        purpose: Stage,
        prompt: str,
        about: dict[str, str],
        schema: dict[str, Any],
        *,
        name: str = "",
    ) -> Request:
        """A request for JSON, in the shape that the prompt has told already."""
        return self._request(
            run,
            purpose,
            prompt,
            about.values(),
            json_schema=schema,
            schema_name=name or purpose,
        )

    def _system(self, task: Task) -> Message:
        items = "".join(f"\n{n}. {item}" for n, item in enumerate(task.checklist, start=1))
        head = "\n\nChecklist; a finished text answers each of these with yes:"
        content = fill(
            self._prompts.system,
            kind="piece of Python code" if task.form == "code" else "text",
            task=task.text,
            criteria="\n".join(f"- {c.name}: {c.definition}" for c in task.criteria),
            checklist=head + items if items else "",
        )
        return Message(role="system", content=content)


def reviewed(iteration: Iteration) -> tuple[Finding, ...]:
    """The findings a judge is asked about; checks and the checklist close their own."""
    return tuple(
        f for f in iteration.actionable if f.author != "check" and f.criterion != CHECKLIST
    )


def repair(run: Run, request: Request, reply: str, problem: str) -> Request:
    """Ask once more after a reply that could not be read."""
    shape = SHAPES["json" if request.json_schema else _task(run).form]
    again = (
        Message(role="assistant", content=reply[:CUT_REPLY] or "(empty)"),
        Message(role="user", content=fill(REPAIR, problem=problem, shape=shape)),
    )
    return request.model_copy(
        update={
            "messages": request.messages + again,
            "given": (*request.given, reply[:CUT_REPLY]),
        }
    )


def _another(request: Request, kind: str, number: int) -> Request:
    """The same request for one more reply beside the first, sampled so that it differs."""
    return request.model_copy(
        update={
            "temperature": max(request.temperature, SAMPLED),
            "seed": None if request.seed is None else request.seed + number,
            "given": (*request.given, f"{kind} {number}"),
        }
    )


def _repeated(base: Iteration, tried: Iterable[Iteration]) -> bool:
    """Whether a revision of a text came to nothing but that text again."""
    return any(i.text == base.text and not i.flaw for i in tried)


def _fruitless(run: Run, base: Iteration) -> bool:
    """Whether code is one of several first texts that all miss a check, with no word of the user's.

    Weak models gain less from mending code than from sampling it again (arXiv 2306.09896): shown
    what missed an example, the embedded one mended it in 0 of 18 tries; anew, it did in 9 of 33.
    """
    if base.parent is not None or _task(run).form != "code":
        return False
    firsts = [i for i in run.iterations if i.parent is None]
    missed = all(any(e.required and e.passed is False for e in i.evidence) for i in firsts)
    said = any(finding.author == "user" for finding in base.findings)
    return missed and len(firsts) > 1 and not said


def _from_user(run: Run, iteration: Iteration) -> bool:
    """Whether the user wrote a text, or one that it was revised from."""
    while iteration.author != "user" and iteration.parent is not None:
        iteration = run.iterations[iteration.parent]
    return iteration.author == "user"


def _task(run: Run) -> Task:
    assert run.task is not None, "a run without a task has not started"
    return run.task


def _shape(schema: dict[str, Any]) -> str:
    """A schema in words, as some servers ignore the field for it."""
    shape = json.dumps(schema, separators=(",", ":"))
    return f"Reply with one JSON object that follows this schema:\n{shape}"


def _ask(run: Run) -> dict[str, str]:
    task = _task(run)
    planned = task.plan and task.form == "prose"
    return {"ask": fill(PLANNED, task=task.text) if planned else GIVE[task.form]}


def _think(run: Run) -> dict[str, str]:
    return {"think": fill(THINK[_task(run).form], task=_task(run).text)}


def _format(run: Run) -> dict[str, str]:
    return {"format": FORMAT[_task(run).form]}
