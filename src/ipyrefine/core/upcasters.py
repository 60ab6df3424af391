"""Bring what an older version stored up to date on reading: one named function per version.

A store writes every field and its version, so that nothing on disk depends on defaults. Version 1
of records and recordings left defaults out: its functions hold them as literals. Stored files are
never rewritten. A new field needs one function here, and its version in `VERSION`.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from ipyrefine.core.events import EVENT, Event
from ipyrefine.core.run import Run

VERSION = 5  # of records, of the journal's events, and of recordings
_Data = dict[str, Any]
_Steps = dict[int, Callable[[_Data], _Data]]


def parse_json(text: Any) -> Any:
    """Return what stored JSON says.

    Args:
        text: the JSON, as text or bytes.

    Raises:
        ValueError: it is no JSON, is nested too deeply, or holds NaN or an infinity.
        TypeError: it is neither text nor bytes.
    """
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def read_record(data: _Data) -> Run:
    """Read a stored run of any version.

    Args:
        data: the run's JSON with its ``version``.

    Raises:
        ValueError: it is no run, or a newer ipyrefine wrote it.
    """
    version = _version(data, "version")
    fields = {name: value for name, value in data.items() if name != "version"}
    return Run.model_validate(_upcast(fields, version, _RECORDS))


def read_event(data: _Data, version: int) -> Event:
    """Read a stored event of any version.

    Args:
        data: the event's JSON.
        version: the version that wrote it.

    Raises:
        ValueError: it is no event, or a newer ipyrefine wrote it.
    """
    return EVENT.validate_python(_upcast(data, version, _EVENTS))


def upcast_recording(data: _Data) -> _Data:
    """Bring a recording's JSON of any version up to date.

    Args:
        data: the recording's JSON with its ``format``.

    Raises:
        ValueError: it is no recording, or a newer ipyrefine wrote it.
    """
    version = _version(data, "format")
    return {**_upcast(data, version, _RECORDINGS), "format": VERSION}


def _version(data: Any, field: str) -> Any:
    """Return what stored JSON says of its version; version 1 said nothing."""
    if not isinstance(data, dict):
        raise ValueError("it is no JSON object")
    return data.get(field, 1)


def _upcast(data: _Data, version: Any, steps: _Steps) -> _Data:
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(f"version {version!r} is not one of 1 to {VERSION}")
    try:
        for number in range(version, VERSION):
            data = steps[number](data)
    except ValidationError:
        raise
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ValueError(f"version {version} cannot be read ({error!r})") from None
    return data


def record_from_1(data: _Data) -> _Data:
    """Bring a run of version 1 to version 2.

    Version 1 left defaults out, had what a run starts from beside its state, decisions of one
    class for all kinds, and several critics.
    """
    return {
        "rules": 1,
        "setup": _setup_from_1(data),
        "iterations": [_iteration_from_1(one) for one in data.get("iterations", ())],
        "best": data.get("best"),
        "stage": _stage_from_1(data.get("stage", "")),
        "usage": _usage_from_1(data.get("usage", {})),
        "spent": {
            _stage_from_1(stage): _usage_from_1(used)
            for stage, used in data.get("spent", {}).items()
        },
        "warnings": data.get("warnings", ()),
        "decisions": [_decision_from_1(one) for one in data.get("decisions", ())],
        "allowed_revisions": data.get("allowed", 0),
        "patience_from": data.get("plateau_from", 0),
        "head": data.get("head"),
        "selected": data.get("selected", ()),
        "awaits_user": data.get("held", False),
        "released": data.get("stepped", 0),
        "stale": data.get("stale", ()),
        "revision_requested": data.get("revise_asked", False),
        "failed_drafts": data.get("lost", 0),
        "pending_usage": {
            number: _usage_from_1(used) for number, used in data.get("unassigned", {}).items()
        },
        "unconsumed_replies": [
            {
                "stage": _stage_from_1(one["stage"]),
                "iteration": one["iteration"],
                "text": one["text"],
                "finish": one["finish"],
                "warnings": one["warnings"],
            }
            for one in data.get("heard", ())
            if one.get("critic", 0) == 0
        ],
        "stop_reason": _stop_reason_from_1(data.get("stop_reason")),
        "message": data.get("message", ""),
        "seconds": data.get("seconds", 0.0),
    }


def event_from_1(data: _Data) -> _Data:
    """Bring an event of version 1 to version 2; its fields were renamed as those of records."""
    event = dict(data)
    match event["type"]:
        case "run_started":
            setup = _setup_from_1(event)
            event = {"type": "run_started", "at": event.get("at", 0.0), "setup": setup}
        case "draft_lost":
            event["type"] = "draft_failed"
            event["reason"] = event.pop("why")
        case "critique_ready":
            verdict = event.pop("reached", None)
            event["verdict"] = event_from_1(verdict) if verdict else None
            event["regressed"] = ()
            event["critique"] = {
                "findings": [_finding_from_1(one) for one in event["critique"]["findings"]]
            }
        case "revision_ready":
            event["failure"] = event.pop("flaw", "")
            event["changes"] = [_change_from_1(one) for one in event.get("changes", ())]
            # What it added beyond the task was a finding of its own; that heuristic is gone.
            event.pop("findings", None)
        case "evidence_ready":
            event["evidence"] = _evidence_from_1(event["evidence"])
        case "verdict_reached":
            event["verdict"] = _verdict_from_1(event["verdict"])
            event["findings"] = [_finding_from_1(one) for one in event.get("findings", ())]
        case "compared":
            event["reason"] = event.pop("why", "")
        case "budget_used":
            event["type"] = "call_ended"
            if event.pop("critic", 0):
                event |= {"text": "", "finish": None}  # only one critic's reply is used now
        case "decided":
            event["decision"] = _decision_from_1(event["decision"])
        case "stopped":
            event["reason"] = _stop_reason_from_1(event["reason"])
    if "stage" in event:
        event["stage"] = _stage_from_1(event["stage"])
    return event


def recording_from_1(data: _Data) -> _Data:
    """Bring a recording of version 1 to version 2; version 1 left defaults out."""
    return {
        **data,
        "models": [
            {"name": one["name"], "weights": one.get("weights", ""), "price": one.get("price")}
            for one in data.get("models", ())
        ],
        "calls": [
            {
                **one,
                "purpose": _stage_from_1(one["purpose"]) or "",
                "pieces": [{**piece, "kind": piece.get("kind", "text")} for piece in one["pieces"]],
                "finish": one.get("finish", "stop"),
                "usage": _usage_from_1(one["usage"]),
            }
            for one in data.get("calls", ())
        ],
    }


def record_from_2(data: _Data) -> _Data:
    """Bring a run of version 2 to version 3.

    Version 2 knew who a verdict came from, not what it rests on, and no questions; a judge's word
    was taken back where its quotes were not in the text.
    """
    return {
        "rules": 2,
        **data,
        "setup": _setup_from_2(data["setup"]),
        "iterations": [_iteration_from_2(one) for one in data["iterations"]],
        "decisions": [_decision_from_2(one) for one in data["decisions"]],
        "question": None,
        "unconsumed_replies": [
            {**one, "probabilities": ()}
            for one in data["unconsumed_replies"]
            if one["stage"] != "judge"  # it answered in another shape
        ],
    }


def event_from_2(data: _Data) -> _Data:
    """Bring an event of version 2 to version 3."""
    event = dict(data)
    match event["type"]:
        case "run_started":
            event["setup"] = _setup_from_2(event["setup"])
        case "critique_ready":
            event.pop("verdict", None)  # a verdict_reached of its own followed
            findings = [_finding_from_2(one) for one in event["critique"]["findings"]]
            event["critique"] = {"findings": findings}
        case "revision_ready":
            event["acted_on"] = ()
        case "evidence_ready":
            event["evidence"] = _evidence_from_2(event["evidence"])
        case "verdict_reached":
            event["verdict"] = _verdict_from_2(event["verdict"])
            event["findings"] = [_finding_from_2(one) for one in event["findings"]]
        case "call_ended":
            event["probabilities"] = ()
            if event["stage"] == "judge":
                event |= {"text": "", "finish": None}  # it answered in another shape
        case "decided":
            event["decision"] = _decision_from_2(event["decision"])
    return event


def recording_from_2(data: _Data) -> _Data:
    """Bring a recording of version 2 to version 3, which keeps probabilities."""
    calls = [{**one, "probabilities": ()} for one in data["calls"]]
    return {**data, "calls": calls}


def record_from_3(data: _Data) -> _Data:
    """Bring a run of version 3 to version 4, which keeps what a task is about by itself."""
    return {**data, "setup": _setup_from_3(data["setup"])}


def event_from_3(data: _Data) -> _Data:
    """Bring an event of version 3 to version 4."""
    if data["type"] != "run_started":
        return data
    return {**data, "setup": _setup_from_3(data["setup"])}


def recording_from_3(data: _Data) -> _Data:
    """Bring a recording of version 3 to version 4, which changed nothing in recordings."""
    return data


def record_from_4(data: _Data) -> _Data:
    """Bring a run of version 4 to version 5, which keeps what checked code printed and drew."""
    iterations = [
        {**one, "evidence": [_evidence_from_4(evidence) for evidence in one["evidence"]]}
        for one in data["iterations"]
    ]
    return {**data, "iterations": iterations}


def event_from_4(data: _Data) -> _Data:
    """Bring an event of version 4 to version 5."""
    if data["type"] != "evidence_ready":
        return data
    return {**data, "evidence": _evidence_from_4(data["evidence"])}


def recording_from_4(data: _Data) -> _Data:
    """Bring a recording of version 4 to version 5, which changed nothing in recordings."""
    return data


_RECORDS: _Steps = {1: record_from_1, 2: record_from_2, 3: record_from_3, 4: record_from_4}
_EVENTS: _Steps = {1: event_from_1, 2: event_from_2, 3: event_from_3, 4: event_from_4}
_RECORDINGS: _Steps = {
    1: recording_from_1,
    2: recording_from_2,
    3: recording_from_3,
    4: recording_from_4,
}


# The parts of version 4, with what version 5 added


def _evidence_from_4(data: _Data) -> _Data:
    return {**data, "outputs": ()}


# The parts of version 3, with what version 4 added


def _setup_from_3(data: _Data) -> _Data:
    return {**data, "task": {**data["task"], "materials": ()}}


# The parts of version 2, with what version 3 added


def _setup_from_2(data: _Data) -> _Data:
    return {
        **data,
        "task": {**data["task"], "clarifications": ()},
        "limits": {**data["limits"], "opinion": "auto", "revise": "auto"},
        "demands": (),
        "reliability": {"calibration": None, "accepted": {}, "revise": "edit"},
    }


def _iteration_from_2(data: _Data) -> _Data:
    verdict = data["verdict"]
    return {
        **data,
        "acted_on": (),
        "findings": [_finding_from_2(one) for one in data["findings"]],
        "evidence": [_evidence_from_2(one) for one in data["evidence"]],
        "verdict": _verdict_from_2(verdict) if verdict else None,
    }


def _finding_from_2(data: _Data) -> _Data:
    finding = {**data, "input": "", "expected": ""}
    finding["verified"] = "untried" if finding.pop("grounded") else "no"
    return finding


def _evidence_from_2(data: _Data) -> _Data:
    return {
        **data,
        "findings": [_finding_from_2(one) for one in data["findings"]],
        "basis": _basis_of_check(data["name"]),
        "contested": False,
        "final": False,
        "question": None,
    }


def _verdict_from_2(data: _Data) -> _Data:
    reason = data["overruled"] or data["reason"]
    outcome, basis = data["outcome"], "judge"
    if data["author"] == "user":
        basis = "user"
    elif not data["verified"]:
        outcome, basis = "NOT_JUDGED", "none"
    elif data["author"] == "check":
        basis = _basis_of_check(re.split(r" passed\.| failed:|, ", reason)[0])
    return {
        "outcome": outcome,
        "score": data["score"],
        "basis": basis,
        "criteria": [
            {"name": one["name"], "score": one["score"], "reason": one["reason"]}
            for one in data["criteria"]
        ],
        "checklist": [{**one, "score": None} for one in data["checklist"]],
        "opinion": data["score"] if data["criteria"] else None,
        "unresolved": data["unresolved"],
        "reason": reason,
        "required_passed": data["required_passed"],
        "user_findings_met": data["user_findings_met"],
        "stated": data["stated"],
    }


def _basis_of_check(name: str) -> str:
    """Return the basis of a check by its name; one that is not built in is a function."""
    bases = {
        "tests": "tests",
        "run": "tests",
        "lint": "tests",
        "schema": "schema",
        "examples": "examples",
        "agreement": "agreement",
        "length": "constraints",
        "contains": "constraints",
        "matches": "constraints",
    }
    return bases.get(re.split(r"[: ]", name)[0], "function")


def _decision_from_2(data: _Data) -> _Data:
    if data["kind"] != "add":
        return data
    return {**data, "finding": _finding_from_2(data["finding"])}


# The parts of version 1, with its defaults


def _setup_from_1(data: _Data) -> _Data:
    task, limits, prompts = data["task"], data.get("limits", {}), dict(data.get("prompts", {}))
    if "gate" in prompts:
        prompts["compare"] = prompts.pop("gate")
    correctness = "It does what the task asks, without errors."
    return {
        "task": {
            "text": task["text"],
            "profile": task.get("profile", "prose"),
            "form": task.get("form", "prose"),
            "criteria": [
                {"weight": 1.0, **one}
                for one in task.get(
                    "criteria", [{"name": "correctness", "definition": correctness}]
                )
            ],
            "categories": task.get("categories", ()),
            "checklist": task.get("checklist", ()),
            "plan": task.get("plan", True),
            "language": "python",
        },
        "limits": {
            "max_revisions": limits.get("max_iterations", 4),
            "target": limits.get("target", 0.8),
            "patience": limits.get("patience", 2),
            "base": "best",
            "critique": "always"
            if limits.get("every_critique", False)
            else ("auto" if limits.get("min_findings", 3) else "never"),
            "verify_drafts": True,
            "min_findings": limits.get("min_findings", 3),
            "max_eval_chars": limits.get("max_eval_chars", 32_768),
            "max_tokens": limits.get("max_tokens", 2_048),
            "temperature": limits.get("temperature", 0.0),
            "seed": limits.get("seed"),
            "delta": limits.get("delta", 0.0),
            "candidates": limits.get("candidates", 1),
            "step": limits.get("step", False),
            "pairwise": limits.get("gate", False),
            "memory": limits.get("memory", "best"),
            "budget": {
                name: limits.get("budget", {}).get(name)
                for name in (
                    "tokens",
                    "prompt_tokens",
                    "completion_tokens",
                    "calls",
                    "cost",
                    "seconds",
                )
            },
        },
        "model": data.get("model", ""),
        "judge": data.get("judge", ""),
        "checks": data.get("checks", ()),
        "compares_drafts": data.get("compares", False),
        "draft": data.get("draft"),
        "prompts": prompts,
        "price": data.get("price"),
    }


def _iteration_from_1(data: _Data) -> _Data:
    verdict, override = data.get("verdict"), data.get("overridden")
    return {
        "number": data["number"],
        "parent": data.get("parent"),
        "text": data["text"],
        "author": data.get("author", "model"),
        "thoughts": data.get("thoughts", ""),
        "failure": data.get("flaw", ""),
        "findings": [_finding_from_1(one) for one in data.get("findings", ())],
        "critiqued": data.get("critiqued", False),
        "changes": [_change_from_1(one) for one in data.get("changes", ())],
        "evidence": [_evidence_from_1(one) for one in data.get("evidence", ())],
        "verdict": _verdict_from_1(verdict) if verdict else None,
        "override": _decision_from_1(override) if override else None,
        "comparisons": data.get("compared", 0),
        "lost_comparison": data.get("barred", False),
        "usage": _usage_from_1(data.get("usage", {})),
    }


def _finding_from_1(data: _Data) -> _Data:
    author, check = data.get("author", "model"), data.get("check", "")
    if author == "check":
        check = check or data["criterion"]  # before checks told faults apart
    if check == "scope":  # of a heuristic that is gone: a judge may close it now
        author, check = "model", ""
    return {
        "id": "" if data["id"] == "f0" else data["id"],
        "criterion": data["criterion"],
        "severity": data["severity"],
        "quote": data.get("quote", ""),
        "problem": data["problem"],
        "fix": data.get("fix", ""),
        "status": data.get("status", "open"),
        "author": author,
        "check": check,
        "grounded": data.get("grounded", True),
        "reason": data.get("reason", ""),
    }


def _change_from_1(data: _Data) -> _Data:
    return {"finding": data["finding"], "summary": data["summary"]}


def _evidence_from_1(data: _Data) -> _Data:
    return {
        "name": data["name"],
        "passed": data["passed"],
        "score": data.get("score"),
        "detail": data.get("detail", ""),
        "seconds": data.get("seconds", 0.0),
        "required": data.get("required", True),
        "decisive": data.get("decisive", False),
        "findings": [_finding_from_1(one) for one in data.get("findings", ())],
        "comparing": data.get("comparing", False),
    }


def _verdict_from_1(data: _Data) -> _Data:
    return {
        "outcome": data["outcome"],
        "score": data["score"],
        "criteria": [
            {
                "name": one["name"],
                "score": one["score"],
                "reason": one.get("reason", ""),
                "quote": one.get("quote", ""),
                "grounded": one.get("grounded", True),
            }
            for one in data.get("criteria", ())
        ],
        "checklist": data.get("checklist", ()),
        "unresolved": data.get("unresolved", ()),
        "reason": data.get("why", ""),
        "author": data.get("author", "model"),
        "verified": data.get("verified", True),
        "required_passed": data.get("required_passed", True),
        "user_findings_met": data.get("user_met", True),
        "overruled": data.get("overruled", ""),
        "stated": None,
    }


def _usage_from_1(data: _Data) -> _Data:
    return {
        "calls": data.get("calls", 0),
        "prompt_tokens": data.get("prompt_tokens", 0),
        "cached_tokens": data.get("cached_tokens"),
        "completion_tokens": data.get("completion_tokens", 0),
        "seconds": data.get("seconds", 0.0),
        "cost": data.get("cost"),
    }


def _decision_from_1(data: _Data) -> _Data:
    kind, text, number = data["kind"], data.get("text", ""), data.get("iteration")
    more = {"revisions": max(1, data.get("rounds", 0)), "guidance": text}
    match kind:
        case "accept":
            return {"kind": kind, "iteration": number, "reason": text}
        case "override":
            outcome = data.get("outcome") or "NEEDS_IMPROVEMENT"
            return {"kind": kind, "iteration": number, "outcome": outcome, "reason": text}
        case "continue" if number is None:
            return {"kind": kind, **more}
        case "continue" | "branch":
            return {"kind": "branch", "iteration": number, **more}
        case "select":
            ids = data.get("findings", ())
            return {"kind": kind, "findings": ids, "iteration": number, "guidance": text}
        case "guide":
            return {"kind": kind, "guidance": text}
        case "edit":
            return {"kind": kind, "iteration": number, "text": text}
        case "dismiss":
            return {"kind": kind, "findings": data.get("findings", ()), "reason": text}
        case "add":
            finding = _finding_from_1(data["finding"])
            return {"kind": kind, "finding": finding, "iteration": number}
        case "rubric":
            criteria = [{"weight": 1.0, **one} for one in data.get("criteria", ())]
            return {"kind": kind, "criteria": criteria, "target": data.get("target")}
    return data


def _stage_from_1(stage: str) -> str | None:
    return {"gate": "compare", "": None}.get(stage, stage)


def _stop_reason_from_1(reason: str | None) -> str | None:
    return {"rounds": "revisions"}.get(reason or "", reason)
