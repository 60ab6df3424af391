"""Plays the golden scenarios and writes what comes of them: ``python make.py [NAME …]``.

A scenario's inputs are written down here; its events and requests are what the engine gave when
this was run last. Run it only after a change of behaviour that is wanted, and read the difference.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
import golden

TONE = {"name": "tone", "definition": "Friendly."}
BREVITY = {"name": "brevity", "definition": "Short.", "weight": 2.0}
TASK = {"text": "Write a greeting.", "criteria": [TONE]}
CODE = {
    "text": "Write add(a, b).", "profile": "code", "form": "code",
    "criteria": [{"name": "correctness", "definition": "Right for all inputs."}],
}  # fmt: skip
QUIET = {"min_findings": 0}


def text(words: str, notes: str = "") -> str:
    return f"{notes}\n<text>\n{words}\n</text>\n" if notes else f"<text>\n{words}\n</text>\n"


def code(body: str, notes: str = "") -> str:
    return f"{notes}\n```python\n{body}\n```\n".lstrip()


def found(problem: str, quote: str = "", **more: str) -> dict[str, str]:
    known = {"criterion": "tone", "quote": quote, "problem": problem, "fix": f"Mend: {problem}"}
    return {**known, "severity": "blocking", **more}


def criticised(*findings: dict[str, str]) -> str:
    return json.dumps({"findings": findings})


def judged(score: int, *findings: dict[str, str], fixed: tuple[str, ...] = (), **more: Any) -> str:
    names = more.pop("names", ("tone",))
    quote = more.pop("quote", "")
    told: dict[str, Any] = {"findings": findings}
    if fixed:
        told["earlier"] = [{"id": id_, "fixed": True} for id_ in fixed]
    if "answers" in more:
        answers = enumerate(more.pop("answers"), start=1)
        told["checklist"] = [{"item": n, "yes": yes} for n, yes in answers]
    told["criteria"] = [
        {"name": name, "quote": quote, "reason": "so it reads", "score": score} for name in names
    ]
    return json.dumps(told)


def preferred(better: str) -> str:
    return json.dumps({"reason": "it is warmer", "better": better})


def cut(said: str, finish: str = "length") -> dict[str, str]:
    return {"text": said, "finish": finish}


def lost(message: str = "The server is gone.") -> dict[str, str]:
    return {"error": "Unreachable", "message": message}


def check(name: str, *evidence: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "evidence": list(evidence), **more}


FLAT = found("It sounds flat.", "Hello")
COLD = found("It is cold to strangers.")
LONG = found("It runs on for no reason.", "Hello")
MINOR = found("A comma would help.", severity="minor")
UNGROUNDED = found("It shouts.", "words that are nowhere")
MISS = {"passed": False, "score": 0.5, "detail": "add(1, 2)\nexpected 3, got 2"}
HIT = {"passed": True, "score": 1.0, "detail": "2 of 2 examples"}
BAD = code("def add(a, b):\n    return a")
GOOD = code("def add(a, b):\n    return a + b")
FAULTS = [
    {"id": "f0", "criterion": "test_small", "severity": "blocking", "problem": "1 + 2 gave 1",
     "quote": "return a"},
    {"id": "f0", "criterion": "test_big", "severity": "blocking", "problem": "big sums are off"},
]  # fmt: skip

SCENARIOS: dict[str, dict[str, Any]] = {
    "plain-pass": {
        "about": "A first text that one critique and its judge find nothing against passes.",
        "task": {**TASK, "checklist": ["Does it greet?"]},
        "replies": [
            text("Hello, dear friend.", "Who reads it: a friend."),
            judged(9, answers=[True]),
            criticised(
                MINOR,
                found("It has no name.", severity="minor"),
                {**MINOR, "quote": "Hello", "problem": "Hello is plain."},
            ),
        ],
    },
    "revision-then-pass": {
        "about": "A blocking finding is acted on; the claim about it is confirmed; it passes.",
        "task": TASK,
        "limits": QUIET,
        "replies": [
            text("Hello."),
            judged(4, FLAT, UNGROUNDED),
            text("Hello, dear friend!", "f1: warmer words\nf9: nothing of the kind"),
            judged(9, fixed=("f1",)),
        ],
    },
    "critique-after-pass": {
        "about": "A critique blocks a first text that its judge had passed; three are asked for.",
        "task": {**TASK, "categories": ["tone", "facts"]},
        "limits": {"max_iterations": 1},
        "replies": [
            text("Hello."),
            judged(9),
            criticised(FLAT),
            criticised(FLAT, UNGROUNDED),
            text("Hello, dear friend!", "f1: warmer words"),
            judged(10, fixed=("f1",)),
        ],
    },
    "plateau": {
        "about": "Two revisions that are no better end the run; the second is sampled hotter.",
        "task": TASK,
        "limits": {**QUIET, "delta": 0.1, "seed": 7},
        "replies": [
            text("One."),
            judged(5, COLD),
            text("Two."),
            judged(4, COLD),
            text("Three."),
            judged(6, COLD),
        ],
    },
    "rounds-used-up": {
        "about": "The revisions allowed are used before a text passes.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 2, "temperature": 0.3},
        "replies": [
            text("One."),
            judged(3, COLD),
            text("Two."),
            judged(4, COLD),
            text("Three."),
            judged(5, COLD),
        ],
    },
    "no-rounds": {
        "about": "With no revisions allowed a text gets its verdict, which may be FAIL.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [text("One."), judged(1, COLD)],
    },
    "budget-of-calls": {
        "about": "Calls run out before the revision; a decision to go on stops again at once.",
        "task": TASK,
        "limits": {**QUIET, "budget": {"calls": 2}},
        "replies": [text("Hello."), judged(4, FLAT)],
        "rounds": [{"kind": "continue", "rounds": 1}],
    },
    "budget-of-tokens": {
        "about": "Tokens run out after the first text; there is no verdict.",
        "task": TASK,
        "limits": {**QUIET, "budget": {"tokens": 600}},
        "replies": [text("Hello " * 400)],
    },
    "judge-unreadable": {
        "about": "A judge that cannot be read twice leaves a text unverified; the next is read.",
        "task": TASK,
        "limits": {"max_iterations": 1, "min_findings": 1},
        "replies": [text("Hello."), criticised(FLAT), text("Hello, friend!", "f1: warmer")],
        "judge": ["no JSON", '{"criteria": []}', "none again", judged(9, fixed=("f1",))],
    },
    "critique-unreadable": {
        "about": "A text that nobody criticised does not pass; its revision does.",
        "task": TASK,
        "limits": {"max_iterations": 1, "min_findings": 1},
        "replies": [
            text("Hello."),
            judged(9),
            "no JSON",
            '{"findings": 3}',
            text("Hello, friend!"),
            judged(9),
        ],
    },
    "draft-unreadable": {
        "about": "A first text without code is asked for once more, then the run fails.",
        "task": CODE,
        "limits": QUIET,
        "replies": ["I cannot.", "I still cannot."],
    },
    "reply-cut-off": {
        "about": "A revision cut off in its text is lost; one cut off after it is used.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 2},
        "replies": [
            text("Hello."),
            judged(4, FLAT),
            cut("<text>\nHello, dear fr"),
            cut(text("Hello, dear friend!") + "and more"),
            judged(9, fixed=("f1",)),
        ],
    },
    "refused": {
        "about": "A judge that refuses leaves a text unverified, and is not asked again.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [text("Hello."), cut("I will not.", "refused")],
    },
    "failed-check": {
        "about": "A required check fails, so no judge is asked; then it passes and one is.",
        "task": CODE,
        "limits": QUIET,
        "checks": [check("examples", MISS, HIT), check("lint", {"passed": None}, {"passed": None})],
        "replies": [
            BAD,
            code("def add(a, b):\n    return a + b", "f1: adds b"),
            judged(9, names=("correctness",)),
        ],
    },
    "decisive-check": {
        "about": "A decisive check settles verdicts both ways; its faults keep their ids.",
        "task": CODE,
        "limits": {"target": 1.0},
        "checks": [
            check(
                "tests",
                {
                    "passed": False,
                    "score": 0.0,
                    "decisive": True,
                    "findings": FAULTS,
                    "detail": "2 failed",
                },
                {
                    "passed": False,
                    "score": 0.5,
                    "decisive": True,
                    "findings": FAULTS[1:],
                    "detail": "1 failed",
                },
                {"passed": True, "score": 1.0, "decisive": True, "detail": "2 passed"},
            )
        ],
        "replies": [BAD, code("def add(a, b):\n    return a + 2", "f1: adds"), GOOD],
    },
    "check-regresses": {
        "about": "What a check found, was mended, and is there again has regressed.",
        "task": CODE,
        "limits": {"max_iterations": 2, "patience": 9},
        "checks": [
            check(
                "tests",
                {"passed": False, "score": 0.5, "findings": FAULTS[:1]},
                {"passed": False, "score": 0.6, "findings": FAULTS[1:]},
                {"passed": False, "score": 0.7, "findings": FAULTS[:1]},
            )
        ],
        "replies": [
            BAD,
            code("def add(a, b):\n    return a * b"),
            code("def add(a, b):\n    return a\n    # b"),
        ],
    },
    "check-not-required": {
        "about": "A check that is not required fails, and the judge still passes the text.",
        "task": TASK,
        "checks": [
            check(
                "style", {"passed": False, "required": False, "score": 0.2, "detail": "long words"}
            )
        ],
        "limits": {**QUIET},
        "replies": [text("Salutations."), judged(9)],
    },
    "finding-regresses": {
        "about": "What the judge saw mended, and names again, has regressed.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 2, "patience": 9},
        "replies": [
            text("Hello."),
            judged(3, COLD, LONG),
            text("Hello, friend."),
            judged(5, fixed=("f1",)),
            text("Hello, friends."),
            judged(6, COLD, fixed=("f2",)),
        ],
    },
    "empty-claim": {
        "about": "A change of punctuation alone mends nothing, whatever it says or its judge.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 1},
        "replies": [
            text("Hello."),
            judged(5, FLAT),
            text("Hello!", "f1: much warmer"),
            judged(9, fixed=("f1",)),
        ],
    },
    "dismissed": {
        "about": "Dismissing the one thing that blocks lets the text pass without a call.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [text("Hello."), judged(9, COLD)],
        "rounds": [{"kind": "dismiss", "findings": ["f1"], "text": "Strangers never see it."}],
    },
    "dismissed-then-continue": {
        "about": "What was dismissed is not acted on, nor taken up when it is named again.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [
            text("Hello."),
            judged(5, COLD, LONG),
            text("Hi."),
            judged(9, COLD, fixed=("f2",)),
        ],
        "rounds": [
            {"kind": "dismiss", "findings": ["f1"], "text": "Strangers never see it."},
            {"kind": "continue", "rounds": 1},
        ],
    },
    "user-edit": {
        "about": "The user's own text is judged as one more; the loop goes on from it when asked.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [
            text("Hello."),
            judged(4, FLAT),
            judged(6, fixed=("f1",)),
            criticised(COLD),
            text("Hello, dear you!"),
            judged(9, fixed=("f2",)),
        ],
        "rounds": [
            {"kind": "edit", "text": "Hello, you."},
            {"kind": "continue", "rounds": 1},
        ],
    },
    "user-draft": {
        "about": "The user's own first text is judged and revised, and no text is asked for first.",
        "task": TASK,
        "limits": {**QUIET, "every_critique": True},
        "draft": "Hello there.",
        "replies": [
            judged(6),
            criticised(found("It is flat there.", "there")),
            text("Hello, dear friend."),
            judged(9, fixed=("f1",)),
        ],
    },
    "override-pass": {
        "about": "The user passes a text against its verdict; going on shows that to the judge.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [text("Hello."), judged(5, COLD), text("Hello, dear."), judged(9)],
        "rounds": [
            {"kind": "override", "outcome": "PASS", "text": "It is what I want."},
            {"kind": "continue", "rounds": 1},
        ],
    },
    "override-needs-improvement": {
        "about": "The user's reason against a passed text becomes a finding that blocks.",
        "task": TASK,
        "limits": QUIET,
        "replies": [text("Hello."), judged(9), text("Hello, Anna."), judged(9, fixed=("f1",))],
        "rounds": [{"kind": "override", "outcome": "NEEDS_IMPROVEMENT", "text": "Name her."}],
    },
    "continue-with-guidance": {
        "about": "The user's words are a finding of their own until a text meets them.",
        "task": TASK,
        "limits": QUIET,
        "replies": [
            text("Hello."),
            judged(9),
            text("Hello there."),
            judged(9),
            text("Hello, Anna."),
            judged(9, fixed=("f1",)),
        ],
        "rounds": [{"kind": "continue", "rounds": 2, "text": "Name her."}],
    },
    "guide-is-a-remark": {
        "about": "Guidance to a run that had stopped waits for the user to go on.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [text("Hello."), judged(9), text("Hello, Anna."), judged(9, fixed=("f1",))],
        "rounds": [
            {"kind": "guide", "text": "Name her."},
            {"kind": "continue", "rounds": 1},
        ],
    },
    "branch": {
        "about": "A second branch from the first text, beside the best; the best is kept.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 1},
        "replies": [
            text("Hello."),
            judged(4, FLAT),
            text("Hello, friend."),
            judged(6, fixed=("f1",)),
            text("Good day."),
            judged(5, fixed=("f1",)),
            text("Good day, friend."),
            judged(7, fixed=("f1", "f2")),
        ],
        "rounds": [
            {"kind": "branch", "iteration": 0, "rounds": 1},
            {"kind": "branch", "iteration": 0, "rounds": 1, "text": "Keep it formal."},
        ],
    },
    "select": {
        "about": "Only the finding that the user chose is acted on, beside the user's words.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [
            text("Hello."),
            judged(4, COLD, LONG),
            text("Hi."),
            judged(6, fixed=("f2", "f3")),
        ],
        "rounds": [{"kind": "select", "findings": ["f2"], "rounds": 1, "text": "One word only."}],
    },
    "add-and-accept": {
        "about": "A finding of the user's is acted on; then the earlier text is accepted.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [text("Hello."), judged(9), text("Good day."), judged(7, fixed=("f1",))],
        "rounds": [
            [
                {
                    "kind": "add",
                    "finding": {
                        "id": "f0",
                        "criterion": "tone",
                        "severity": "blocking",
                        "quote": "Hello",
                        "problem": "Too casual.",
                    },
                },
                {"kind": "continue", "rounds": 1},
            ],
            {"kind": "accept", "iteration": 0},
        ],
    },
    "rubric": {
        "about": "New criteria and a new target: each text is judged again, then the loop goes on.",
        "task": {**TASK, "criteria": [TONE, BREVITY]},
        "limits": {**QUIET, "max_iterations": 1},
        "replies": [
            text("Hello."),
            judged(4, FLAT, names=("tone", "brevity")),
            text("Hello, friend."),
            judged(6, fixed=("f1",), names=("tone", "brevity")),
            judged(8, names=("brevity",)),
            judged(5, names=("brevity",)),
            criticised({**LONG, "criterion": "brevity"}),
            text("Hi."),
            judged(10, names=("brevity",), fixed=("f2",)),
        ],
        "rounds": [
            {"kind": "rubric", "criteria": [BREVITY], "target": 0.95},
            {"kind": "continue", "rounds": 1},
        ],
    },
    "rubric-target-only": {
        "about": "A lower target alone derives the verdicts anew, without a call.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 0},
        "replies": [text("Hello."), judged(6)],
        "rounds": [{"kind": "rubric", "target": 0.5}],
    },
    "gate-won": {
        "about": "A better-scored text wins both comparisons and becomes the best.",
        "task": TASK,
        "limits": {**QUIET, "gate": True, "max_iterations": 1},
        "replies": [text("Hello."), text("Hello, friend.")],
        "judge": [judged(4, MINOR), judged(9), preferred("second"), preferred("first")],
    },
    "gate-lost": {
        "about": "A better-scored text that loses a comparison is barred; one not read is let by.",
        "task": TASK,
        "limits": {**QUIET, "gate": True, "max_iterations": 2},
        "replies": [text("Hello."), text("Hello, friend."), text("Hello, dear friend.")],
        "judge": [
            judged(4, MINOR),
            judged(6),
            preferred("second"),
            preferred("same"),
            judged(7),
            "no JSON",
            "none again",
            preferred("first"),
        ],
    },
    "candidates": {
        "about": "Three first texts without checks, all written at once; the best is revised.",
        "task": TASK,
        "limits": {**QUIET, "candidates": 3, "max_iterations": 1, "seed": 5},
        "replies": [
            text("One."),
            text("Two."),
            text("Three."),
            judged(4, COLD),
            judged(6, COLD),
            judged(5, COLD),
            text("Four."),
            judged(9, fixed=("f2",)),
        ],
    },
    "candidates-until-settled": {
        "about": "With checks, only as many first texts are written as it takes one to pass.",
        "task": CODE,
        "limits": {"candidates": 5},
        "checks": [check("tests", *[{**MISS, "decisive": True}] * 2, {**HIT, "decisive": True})],
        "replies": [BAD, code("def add(a, b):\n    return b"), GOOD],
    },
    "candidates-compared": {
        "about": "A check that compares first texts asks for two, then three, and looks again.",
        "task": CODE,
        "limits": {"candidates": 3, "max_iterations": 0},
        "checks": [
            check(
                "agreement",
                *[{"passed": None}] * 2,
                *[{"passed": True, "score": s} for s in (1.0, 0.5, 1.0)],
                compares=True,
            )
        ],
        "replies": [
            GOOD,
            BAD,
            code("add = lambda a, b: a + b"),
            judged(7, names=("correctness",)),
            judged(9, names=("correctness",)),
        ],
    },
    "candidates-one-lost": {
        "about": "Of three first texts one cannot be had; the others are gone on with.",
        "task": TASK,
        "limits": {**QUIET, "candidates": 3, "max_iterations": 0},
        "replies": [text("One."), lost(), text("Three."), judged(5), judged(9)],
    },
    "candidates-cut-off": {
        "about": "Of two first texts one is cut off, and the budget leaves out a third.",
        "task": TASK,
        "limits": {**QUIET, "candidates": 3, "max_iterations": 0, "budget": {"calls": 2}},
        "replies": [cut("<text>\nOn"), text("Two.")],
    },
    "critics": {
        "about": "Three critics are asked at once; what two of them name is acted on once.",
        "task": TASK,
        "limits": {"min_findings": 1, "critics": 3, "max_iterations": 1, "seed": 3},
        "replies": [
            text("Hello."),
            judged(9),
            criticised(FLAT),
            criticised({**FLAT, "problem": "Flat."}, COLD),
            criticised(UNGROUNDED),
            text("Hello, friend!", "f1: warmer\nf2: to all"),
            judged(9, fixed=("f1", "f2")),
        ],
    },
    "critics-one-lost": {
        "about": "One of two critics cannot be heard; the other's word is enough.",
        "task": TASK,
        "limits": {"min_findings": 1, "critics": 2, "max_iterations": 1},
        "replies": [
            text("Hello."),
            judged(9),
            lost(),
            criticised(COLD),
            text("Hello, friend!", "f1: to all"),
            judged(9, fixed=("f1",)),
        ],
    },
    "step": {
        "about": "With step the run waits after each verdict, until the user lets it go by.",
        "task": TASK,
        "limits": {**QUIET, "step": True},
        "replies": [
            text("Hello."),
            judged(4, FLAT),
            text("Hello, friend."),
            judged(6, fixed=("f1",)),
            criticised(COLD),
            text("Hello, dear friend."),
            judged(9, fixed=("f2",)),
        ],
        "rounds": [{"kind": "continue"}, {"kind": "continue"}],
    },
    "memory-all": {
        "about": "A reviser is shown all attempts with their feedback.",
        "task": TASK,
        "limits": {**QUIET, "memory": "all", "max_iterations": 2},
        "replies": [
            text("One."),
            judged(4, COLD),
            text("Two."),
            judged(3, COLD),
            text("Three."),
            judged(9, fixed=("f1",)),
        ],
    },
    "own-prompts": {
        "about": "The user's own prompts are on record, and part of what each request is about.",
        "task": TASK,
        "limits": {"min_findings": 1, "max_iterations": 1},
        "prompts": {
            "system": "Task: {task}",
            "draft": "Write it now.",
            "critique": "Find fault in {text}",
            "judge": "Score {text}{findings}",
            "revise": "Better than {text}{findings}{rejected}",
        },
        "replies": [
            text("Hello."),
            judged(9),
            criticised(COLD),
            text("Hi."),
            judged(9, fixed=("f1",)),
        ],
    },
    "twin": {
        "about": "A revision that is an earlier text over again inherits its verdict, and ends it.",
        "task": TASK,
        "limits": {**QUIET, "patience": 9},
        "replies": [
            text("One."),
            judged(4, COLD),
            text("Two."),
            judged(5, COLD),
            text("One."),
        ],
    },
    "written-anew": {
        "about": "After a revision that only repeats its text, it is written anew unseen.",
        "task": TASK,
        "limits": {**QUIET, "seed": 11, "max_iterations": 2},
        "replies": [
            text("One."),
            judged(4, COLD),
            text("One."),
            text("Two."),
            judged(9, fixed=("f1",)),
        ],
    },
    "code-written-anew": {
        "about": "Code is written anew where several first texts all miss a check.",
        "task": CODE,
        "limits": {"candidates": 2, "max_iterations": 1},
        "checks": [check("tests", MISS, MISS, {**HIT, "decisive": True})],
        "replies": [BAD, code("def add(a, b):\n    return b"), GOOD],
    },
    "model-error": {
        "about": "The model fails in the middle; the text is kept, and going on asks for the rest.",
        "task": TASK,
        "limits": QUIET,
        "replies": [
            text("Hello."),
            judged(4, FLAT),
            lost(),
            text("Hello, friend."),
            judged(9, fixed=("f1",)),
        ],
        "rounds": [{"kind": "continue", "rounds": 1}],
    },
    "model-error-again": {
        "about": "The model fails at the first text, then at the judge; it goes on each time.",
        "task": TASK,
        "limits": QUIET,
        "replies": [lost(), text("Hello."), lost("Too many requests."), judged(9)],
        "rounds": [{"kind": "continue"}, []],
    },
    "code-with-thinking": {
        "about": "Code whose model thinks apart; a revision adds a function that nobody asked for.",
        "task": CODE,
        "limits": {**QUIET, "max_iterations": 1},
        "replies": [
            {"text": BAD, "thinking": "Let me see."},
            {
                "text": judged(
                    4,
                    found("b is not added.", "return a", criterion="correctness"),
                    names=("correctness",),
                ),
                "thinking": "Hm.",
            },
            {
                "text": code(
                    "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b",
                    "f1: adds b",
                ),
                "thinking": "Now b.",
            },
            judged(9, names=("correctness",), fixed=("f1",), quote="return a + b"),
        ],
    },
    "judge-overruled": {
        "about": "A passing score that rests on words that are not there is not followed.",
        "task": TASK,
        "limits": {**QUIET, "max_iterations": 1, "max_eval_chars": 12},
        "replies": [
            text("Hello, dear friend of mine."),
            criticised(),
            text("Hello, friend of all."),
        ],
        "judge": [judged(9, quote="warm as the sun"), judged(9, quote="Hello")],
    },
}


def main(names: list[str]) -> None:
    for name, scenario in SCENARIOS.items():
        if names and name not in names:
            continue
        try:
            played = asyncio.run(golden.play(scenario))
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        result = {"events": played.events, "requests": played.requests}
        golden.write(golden.FOLDER / f"{name}.json", scenario | result)
        print(
            f"{name}: {played.run.stop_reason}, {len(played.events)} events, "
            f"{len(played.requests)} requests, {[i.text[:20] for i in played.run.iterations]}, "
            f"best {played.run.best}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
