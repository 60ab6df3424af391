# ruff: noqa: RUF001
"""E. Draft, critique, rewrite, verify: four labelled phases, and the pasted template.

- Your loop: a template with four labelled phases, categories, a minimum number of weaknesses, and a
  checklist.
- Here: `%%refine -n 1`, with the template pasted below it, ``[ITERATION 1]`` to ``[ITERATION 4]``.
  Its categories, numbers and checklist replace the profile's. One pass is four calls; ``-n 3``
  repeats from the critique.
- By default the critic also verifies: it reads the revision with the words of the fourth phase.
  Every text is criticised (``--critique never`` switches that off), and an unfilled
  ``[placeholder]`` is a warning.
"""

import json
import re
from typing import Any

import pytest
from kit import (
    READY,
    TASK,
    actionable,
    critique,
    ended,
    finding,
    judgement,
    prompts,
    requests,
    status,
    text,
    told,
)
from own_prompts import problems, sent
from surfaces import SURFACES

from ipyrefine import refine
from ipyrefine.core.model import Limits, Outcome, StopReason
from ipyrefine.core.run import Run
from ipyrefine.core.template import read_template
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.render.terminal import record_text

REVIEW = "Review the above output. Identify 3 weaknesses or gaps."
LAST = "Final review: Is this production-ready? If not, what's missing?"
PASTED = f"""\
[ITERATION 1]
Create a draft sales email to engineering leads about our build tool

[ITERATION 2]
{REVIEW}

[ITERATION 3]
Rewrite the output addressing all identified weaknesses.

[ITERATION 4]
{LAST}
"""
NAMED = """\
Write a sales email to engineering leads.

[ITERATION 1: DRAFT]
Write the first version without polishing.
[ITERATION 2: CRITIQUE]
Name weaknesses in hook and length.
[ITERATION 3: REWRITE]
Say what you changed for every weakness.
[ITERATION 4: VERIFY]
- [ ] Under 120 words?
- [ ] One call to action?
"""
WEAK = [finding("too dull"), finding("no link here"), finding("wrong year")]
FIXED = ("f1", "f2", "f3")


def last_word(*, ready: bool, because: str) -> str:
    """What the critic answers who verifies that all weaknesses are gone."""
    return json.dumps({"findings": [], "fixed": FIXED, "ready": ready, "because": because})


VERIFIED = last_word(ready=True, because="Nothing is missing.")


async def pasted(cell: str, *replies: Any, **options: Any) -> tuple[Run, ScriptedModel]:
    model = ScriptedModel(replies or (text("a"), critique(*WEAK), text("b", "f1: x"), VERIFIED))
    return await refine(cell, model=model, **options), model


def each_line(pattern: str, cell: str = PASTED) -> str:
    return re.sub(r"^(\[.*\])$", pattern, cell, flags=re.MULTILINE)


TEMPLATES = {
    "as it is": PASTED,
    "in a fence": f"```\n{PASTED}```",
    "in a fence after a task": f"Write an email.\n\n```\n{PASTED}```",
    "quoted": re.sub(r"^", "> ", PASTED, flags=re.MULTILINE),
    "bold": each_line(r"**\1**"),
    "words on the line": PASTED.replace("]\n", "] "),
    "lower case": PASTED.replace("ITERATION", "iteration"),
    "one with its name": PASTED.replace("[ITERATION 2]", "[ITERATION 2: CRITIQUE]"),
    "below a title": f"# Sales email\n\n{PASTED}",
    "headings without brackets": PASTED.replace("[ITERATION ", "## Iteration ").replace("]", ""),
    "French": PASTED.replace("ITERATION", "ITÉRATION"),
    "Chinese": PASTED.replace("ITERATION ", "迭代 "),
}


@pytest.mark.parametrize("shape", TEMPLATES)
async def test_a_pasted_template_is_four_calls_with_its_own_words(shape):
    run, model = await pasted(TEMPLATES[shape])
    assert [r.purpose for r in model.requests] == ["draft", "critique", "revise", "critique"]
    assert (run.text, run.task.form, run.stop_reason) == ("b", "prose", "passed")
    _, first, revise, last = asked = sent(model)
    assert "at least 3 weaknesses" in first
    assert "Identify 3 weaknesses" in first
    assert "addressing all identified weaknesses" in revise
    assert "what's missing?" in last
    assert all("engineering leads" in one for one in asked), "the task heads every pass"
    assert not any("ITERATION" in one.upper() for one in asked)
    assert [run.usage_of(number).calls for number in (0, 1)] == [2, 2]
    assert run.usage.tokens == sum(one.usage.tokens for one in run.calls) > 0
    assert "Nothing is missing." in run.verdict.line


@pytest.mark.parametrize(
    "cell", [NAMED, NAMED.replace("[ITER", "> [ITER")], ids=["plain", "quoted"]
)
async def test_a_template_with_named_phases_and_a_checklist_is_read_too(cell):
    run, model = await pasted(cell)
    for words, asked in zip(
        ("without polishing", "hook and length", "for every weakness", "Under 120 words?"),
        sent(model),
        strict=True,
    ):
        assert words in asked
    assert run.task.checklist == ("Under 120 words?", "One call to action?")


def test_a_phase_is_known_by_its_name_before_its_number():
    template = read_template("T\n[ITERATION 1] CRITIQUE\nA\n[ITERATION 2] rewrite\nB\n")
    assert (template.critique, template.revise, template.draft) == ("A", "B", "")


@pytest.mark.parametrize("body", ["", "Write a poem.", "See [ITERATION 1] of the plan."])
def test_a_text_without_such_headings_is_no_template(body):
    assert read_template(body) is None


@pytest.mark.parametrize(
    ("words", "least"),
    [
        (REVIEW, 3), ("Name three weaknesses.", 3),
        ("- Identify 3 technical weaknesses or unstated assumptions\n- Find 2 gaps in the plan", 5),
        ("1. Identify 3 technical weaknesses\n2. Note any missing concerns", 3),
        ("Identify weaknesses.", 0), ("List at least two problems and at least one risk.", 3),
        ("Identify three to five weaknesses.", 3),
        ("Identify the weaknesses (minimum 3).", 3),
        ("Nenne mindestens drei Schwächen.", 3),
        ("Trouve au moins 3 faiblesses.", 3),
        ("Identifica tres debilidades.", 3), ("Encontre pelo menos 3 fraquezas.", 3),
        ("至少指出3个问题。", 3), ("Найди не менее 3 недостатков.", 3),
        ("Identify weaknesses of at least 50 words.", 0), ("In 2024 errors were found.", 0),
    ],
)  # fmt: skip
async def test_the_least_number_of_weaknesses_is_read(words, least):
    weak = [finding(f"weakness number {n} is there") for n in range(6)]
    cell = PASTED.replace(REVIEW, words)
    run, model = await pasted(cell, text("a"), critique(*weak), text("b"), READY)
    assert run.limits.min_findings == least
    assert words.splitlines()[-1] in sent(model)[1]


ONE, TWO = finding("too dull to be read"), finding("no link to the page")
NOTHING = '{"findings": [], "ready": true, "because": "There are no more."}'


@pytest.mark.parametrize(
    ("first", "again", "kept"),
    [
        (critique(ONE), NOTHING, [ONE]), (critique(ONE), critique(), [ONE]),
        (critique(ONE), critique(ONE, TWO), [ONE, TWO]), (critique(ONE), critique(TWO), [TWO, ONE]),
        (critique(ONE, TWO), critique(ONE), [ONE, TWO]),
        (critique(ONE), "There are no more.", [ONE]), (critique(), critique(ONE), [ONE]),
    ],
    ids=["ready", "none", "more", "another", "fewer", "in words", "late"],
)  # fmt: skip
async def test_a_critic_that_is_asked_for_more_keeps_what_it_named(first, again, kept):
    limits = Limits(max_revisions=0, critique="always", min_findings=3)
    loop = await ended([text("a"), first, again], limits=limits)
    assert [one.words for one in told(loop.state, 0)] == [one["problem"] for one in kept]
    assert loop.state.stop_reason != "passed"
    assert f"The critique names {len(kept)} of 3 findings." in loop.state.warnings


async def test_a_no_stands_though_the_critic_is_asked_for_more():
    limits = Limits(max_revisions=0, critique="always", min_findings=3)
    no = last_word(ready=False, because="The price is missing.")
    loop = await ended([text("a"), no, NOTHING], limits=limits)
    base = loop.state.iterations[0]
    assert (base.reading.ready, base.reading.reason) == (False, "The price is missing.")
    assert loop.state.stop_reason != "passed"


@pytest.mark.parametrize(
    "words",
    [
        "Identify weaknesses in: accuracy, completeness, clarity",
        '"Identify weaknesses in: accuracy, completeness, clarity"',
        "Identify 3 weaknesses in:\n- accuracy\n- completeness\n- clarity",
        "Identify 3 weaknesses in the following areas: accuracy, completeness, clarity.",
    ],
)
async def test_the_categories_are_those_of_the_template(words):
    run, model = await pasted(PASTED.replace(REVIEW, words))
    assert run.task.categories == ("accuracy", "completeness", "clarity")
    assert "accuracy, completeness, clarity" in sent(model)[1]


@pytest.mark.parametrize("kind", ["whole", "words first", "RFC"])
async def test_requirements_are_in_every_pass(kind):
    needs = "Include: problem statement, rollback strategy."
    cell = {
        "whole": PASTED.replace("build tool\n", f"build tool. {needs}\n"),
        "words first": f"Write an email to leads. {needs}\n\n{PASTED}",
        "RFC": PASTED.replace("Create a draft sales email", f"Draft a technical RFC. {needs} For"),
    }[kind]
    _, model = await pasted(cell)
    assert [needs in asked for asked in sent(model)] == [True] * 4


@pytest.mark.parametrize("place", ["[task]", "[draft/outline/initial version]", "[your product]"])
async def test_an_unfilled_placeholder_is_a_warning(place):
    run, _ = await pasted(PASTED.replace("our build tool", place))
    assert any(place in warning for warning in run.warnings)


async def test_a_checklist_is_read_and_its_words_come_last():
    boxes = ("Problem statement is measurable", "Rollback is tested")
    listed = "\n".join(f"- [ ] {box}" for box in boxes)
    words = f"Final review checklist:\n{listed}\n\nIf any is unchecked, specify what's missing."
    run, model = await pasted(PASTED.replace(LAST, words))
    assert run.task.checklist == boxes
    assert ["specify what's missing" in asked for asked in sent(model)] == [False] * 3 + [True]


@pytest.mark.parametrize("mark", ["- [ ] ", "☐ ", "1. ", "* [x] ", "• "])
def test_a_checklist_may_have_any_boxes(mark):
    body = PASTED.replace(LAST, f"Check:\n{mark}It is short.\n{mark}It names a price.")
    assert read_template(body).checklist == ("It is short.", "It names a price.")


SIX = f"""\
{PASTED.replace(LAST, "Review it once more. Find 2 gaps.")}
[ITERATION 5]
Rewrite it without these gaps.

[ITERATION 6]
{LAST}
"""


@pytest.mark.parametrize(
    "cell", [SIX, SIX.replace("5]", "5: REWRITE]").replace("6]", "6 - VERIFY]")]
)
async def test_a_template_of_six_iterations_is_read_to_its_end(cell):
    run, model = await pasted(cell)
    assert (run.limits.min_findings, run.task.form) == (3, "prose")
    _, first, revise, last = asked = sent(model)
    assert first.index("Identify 3 weaknesses") < first.index("Find 2 gaps")
    assert "without these gaps" in revise
    assert "what's missing?" in last
    assert not any("ITERATION" in one.upper() for one in [*asked, *run.warnings])


async def test_a_heading_that_is_not_read_is_a_warning():
    run, _ = await pasted(f"{PASTED}\n[ITERATION last]\nIs it done?\n")
    assert any("[ITERATION last]" in warning for warning in run.warnings)


async def test_a_task_above_the_headings_stays_the_task():
    run, _ = await pasted(f"# Mail\n\nWrite an email to Ann.\n\n{PASTED}")
    assert run.task.text == "# Mail\n\nWrite an email to Ann."


# Verifying


@pytest.mark.parametrize("ready", [True, False])
async def test_the_answer_to_what_is_missing_is_seen_yes_or_no(ready):
    said = last_word(ready=ready, because="The date could be bolder.")
    run, _ = await pasted(PASTED, text("a"), critique(*WEAK), text("b"), said, max_revisions=1)
    assert "The date could be bolder." in run.verdict.line
    assert (run.stop_reason == "passed") is ready
    assert ("The date could be bolder." in problems(run)) is not ready


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("1. Too dull.\n2. No link.\n\n3. Wrong year.", ["Too dull.", "No link.", "Wrong year."]),
        ("It is dull,\nand three years old.", ["It is dull, and three years old."]),
    ],
    ids=["a list", "words"],
)
async def test_a_critique_in_words_is_acted_on(said, found):
    first = [said] * (1 if len(found) == 3 else 2)  # three are asked for
    fixed = json.dumps({"findings": [], "fixed": FIXED, "ready": True})
    run, model = await pasted(PASTED, text("a"), *first, text("b", "f1: x"), fixed)
    assert [one.words for one in told(run, 0)] == found
    revise = next(r for r in model.requests if r.purpose == "revise").messages[-1].content
    assert all(f"- f{n} (blocking): {one}" in revise for n, one in enumerate(found, 1))
    assert (run.text, run.stop_reason) == ("b", "passed")


@pytest.mark.parametrize("revisions", [1, 3])
async def test_a_last_word_in_words_is_asked_for_again_then_shown_as_it_came(revisions):
    last = "This is not production-ready. Missing: the price."
    replies = text("a"), critique(*WEAK), text("b"), last, last
    run, model = await pasted(PASTED, *replies, max_revisions=revisions)
    assert 'one JSON object with "findings" and "ready"' in model.requests[-1].messages[-1].content
    assert (run.verdict.outcome, run.stop_reason) == (Outcome.NOT_JUDGED, "unjudged")
    for render in SURFACES:
        assert last in render(run)
    assert "too dull" not in run.verdict.line


@pytest.mark.parametrize("word", ["almost", "no", False, "not yet"])
async def test_not_ready_never_passes_whatever_its_findings_are_about(word):
    minor = {**finding("The date is small."), "blocks": False}
    for found in ([], [minor]):
        fields = {"findings": found, "fixed": FIXED, "ready": word, "because": "Not yet."}
        said = json.dumps(fields)
        run, _ = await pasted(
            PASTED, text("a"), critique(*WEAK), text("b"), said, said, max_revisions=1
        )
        assert run.stop_reason != "passed"


@pytest.mark.parametrize(
    "notes",
    [
        "1. f1: x\n2. F2 – y\n3. [f3] z",
        "| f1 | x |\n| f2 | y |\n| f3 | z |",
        "f1 and f2: x\nf3 → z",
        "### f1\nx\n### f2\ny\n### f3\nz",
    ],
)
async def test_notes_in_any_list_form_are_no_lack(notes):
    run, _ = await pasted(PASTED, text("a"), critique(*WEAK), text("b", notes), VERIFIED)
    assert [*run.iterations[1].changes] == ["f1", "f2", "f3"]
    assert run.warnings == ()


async def test_the_verification_names_the_unchecked_items():
    task = TASK.model_copy(update={"checklist": ("Is it short?", "Is there a name?")})
    unmet = finding("Is there a name? No.", criterion="checklist")
    loop = await ended([text("a"), critique(unmet)], task, limits=Limits(max_revisions=0))
    assert "2. Is there a name?" in requests(loop)[1].messages[0].content
    assert loop.state.verdict.outcome is Outcome.NEEDS_IMPROVEMENT
    assert "Is there a name?" in loop.state.verdict.line
    assert "Is there a name?" in record_text(loop.state)


# The findings of each text but the last; the price is named in two of them.
PRICE = "The price is wrong"
FOUND = [
    [PRICE, "It sounds stiff", "Nobody is asked for anything"],
    ["The year is missing", "Greeting feels cold", "Two links compete there"],
    [PRICE, "Jokes fall flat", "Signature lacks phone"],
    ["Subject shouts loudly", "Second paragraph rambles", "Date format confuses"],
]
NEW = [FIXED, ("f4", "f5", "f6"), ("f1", "f7", "f8"), ("f9", "f10", "f11")]


async def test_not_ready_is_criticised_again_and_what_returns_is_regressed_and_acted_on():
    mails = [f"Dear lead, this is mail {n}." for n in range(5)]
    readings = [
        judgement(5, *map(finding, problems), fixed=fixed)
        for problems, fixed in zip(FOUND, [(), *NEW], strict=False)
    ]
    replies = zip(map(text, mails), [*readings, judgement(9, fixed=NEW[3])], strict=True)
    run, model = await pasted(PASTED, *(one for pair in replies for one in pair))
    assert (run.text, run.stop_reason) == (mails[4], StopReason.PASSED)
    assert run.usage.calls == 2 * 5, "what verifies a text also says what it still lacks"
    assert [i.parent for i in run.iterations] == [None, 0, 1, 2, 3]
    read = [r.messages[-1].content for r in model.requests if r.purpose == "critique"]
    assert [max(n for n in range(5) if mails[n] in asked) for asked in read] == [0, 1, 2, 3, 4]
    statuses = [
        {one.words: status(one) for one in run.cells(text)}[PRICE] for text in run.iterations
    ]
    assert statuses == ["open", "resolved", "regressed", "resolved", "resolved"]
    revisions = [r.messages[-1].content for r in model.requests if r.purpose == "revise"]
    assert ["- f1 (" in asked for asked in revisions] == [True, False, True, False]


async def test_at_the_cap_the_requirements_are_said_to_be_the_problem():
    replies = [text("v0"), critique(*WEAK)]
    for number in range(1, 5):
        weak = [finding(f"{word} of round {number} here") for word in ("alpha", "beta", "gamma")]
        replies += [text(f"v{number}"), critique(*weak)]
    run, _ = await pasted(PASTED, *replies, max_revisions=4)
    assert run.stop_reason == "revisions"
    assert "say what you need more exactly" in run.message


# Guards


@pytest.mark.parametrize("notes", ["f1: livelier", "f1: livelier\nf2: linked\nf3: 2024"])
async def test_every_fix_has_a_note_of_what_changed_or_its_lack_is_remarked_on(notes):
    run, _ = await pasted(PASTED, text("a"), critique(*WEAK), text("b", notes), VERIFIED)
    changes = [f"{id_}: {said}" for id_, said in run.iterations[1].changes.items()]
    assert changes == notes.splitlines()
    lacking = any("note" in warning and "f2" in warning for warning in run.warnings)
    assert lacking is (len(changes) < 3)


async def test_a_minimum_that_is_missed_is_asked_for_once_and_said():
    one = critique(finding("too dull"))
    run, model = await pasted(PASTED, text("a"), one, one, text("b"), VERIFIED)
    assert [r.purpose for r in model.requests][:3] == ["draft", "critique", "critique"]
    assert any("1 of 3 findings" in warning for warning in run.warnings)
    assert run.text == "b"


async def test_a_cosmetic_fix_is_named_as_one():
    replies = [text("Hi there"), judgement(5, finding("too dull"))]
    replies += [text("hi, there!", "f1: livelier"), judgement(6)]
    loop = await ended(replies, limits=Limits(max_revisions=1))
    assert any("spacing and punctuation only" in warning for warning in loop.state.warnings)


async def test_scope_is_a_category_and_a_quote_that_is_not_in_the_text_is_no_place():
    extra = finding("A joke that nobody asked for.", quote="knock knock", criterion="scope")
    stiff = finding("too stiff", quote="Dear Sir")
    replies = [
        text("Hi, knock knock"), critique(extra, stiff), text("Hi"), judgement(9, fixed=FIXED),
    ]  # fmt: skip
    loop = await ended(replies)
    named = [(one.point.criterion, one.point.place) for one in actionable(loop.state, 0)]
    assert named == [("scope", "knock knock"), ("tone", "")]
    assert "scope" in prompts(loop)[1]
    assert "too stiff" in prompts(loop)[2]
    assert (loop.state.text, loop.state.stop_reason) == ("Hi", StopReason.PASSED)
