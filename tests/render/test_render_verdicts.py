"""Every surface says what a verdict rests on, and how far that can be trusted."""

import pytest

from ipyrefine.checks.examples import Examples
from ipyrefine.core.events import CallEnded, StageStarted, Stopped, TextDelta
from ipyrefine.core.model import (
    Choice,
    Evidence,
    Finding,
    Outcome,
    Question,
    Setup,
    Severity,
    StopReason,
    Tally,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import labels
from ipyrefine.render.html import panel_parts, record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.progress import Progress
from ipyrefine.render.style import STYLE
from ipyrefine.render.terminal import event_text, record_text
from ipyrefine.render.view import View

EVERY = [record_text, record_html, record_markdown]
PASS, NEEDS, FAIL = Outcome.PASS, Outcome.NEEDS_IMPROVEMENT, Outcome.FAIL
HELD = Evidence(
    name="examples",
    passed=True,
    basis="examples",
    detail="f(1): 1\n3 of 3 stated examples hold.",
    tallies=(Tally(held=3, of=3, noun="example"),),
)
OPINION = Verdict(outcome=PASS, score=0.81, basis="judge", opinion=0.81)
RAN = Verdict(
    outcome=Outcome.NOT_JUDGED,
    score=None,
    basis="run",
    reason="Runs; nobody checked what it gives.",
)
MEDIAN = Question(
    call="median([])",
    choices=(Choice(result="None", votes=2), Choice(result="ValueError", raises=True)),
)


def run_of(verdict, *, evidence=(), findings=(), question=None):
    """A stopped run of one text."""
    setup = Setup(task=Task(text="Write."))
    iteration = Iteration(
        number=0, text="the text", verdict=verdict, evidence=evidence, findings=findings
    )
    best = None if verdict is None else 0
    return Run(setup=setup, iterations=(iteration,), best=best, question=question)


@pytest.mark.parametrize(
    ("verdict", "label"),
    [
        (Verdict(outcome=PASS, score=1, basis="tests"), "✓ PASS · tests"),
        (Verdict(outcome=PASS, score=1, basis="function"), "✓ PASS · checks"),
        (Verdict(outcome=PASS, score=1, basis="schema"), "✓ PASS · schema"),
        (Verdict(outcome=PASS, score=1, basis="examples"), "✓ PASS · 3 examples"),
        (Verdict(outcome=PASS, score=1, basis="agreement"), "✓ PASS · drafts agree"),
        (Verdict(outcome=PASS, score=1, basis="constraints"), "✓ PASS · constraints"),
        (OPINION, "○ PASS · judge's opinion, 0.81"),
        (
            OPINION.model_copy(update={"basis": "constraints"}),
            "○ PASS · constraints, judge's opinion, 0.81",
        ),
        (Verdict(outcome=PASS, score=None, basis="judge"), "○ PASS · judge's opinion"),
        (
            Verdict(outcome=NEEDS, score=0.6, basis="judge"),
            "✎ NEEDS IMPROVEMENT · judge's opinion, 0.60",
        ),
        (
            Verdict(outcome=NEEDS, score=0, basis="tests", required_passed=False),
            "✎ NEEDS IMPROVEMENT · tests failed",
        ),
        (
            Verdict(outcome=NEEDS, score=0.5, basis="agreement"),
            "✎ NEEDS IMPROVEMENT · drafts disagree",
        ),
        (
            Verdict(outcome=NEEDS, score=0.5, basis="agreement", required_passed=False),
            "✎ NEEDS IMPROVEMENT · most drafts disagree",
        ),
        (Verdict(outcome=PASS, score=1, basis="user"), "☑ PASS (yours)"),
        (
            Verdict(outcome=PASS, score=0, basis="user", required_passed=False),
            "☑ PASS (yours), over a failed check",
        ),
        (Verdict(outcome=FAIL, score=1, basis="user"), "✗ FAIL (yours)"),
        (
            Verdict(outcome=NEEDS, score=0, basis="run", required_passed=False),
            "✎ NEEDS IMPROVEMENT · run failed",
        ),
        (RAN, "? NOT JUDGED · runs"),
        (Verdict(outcome=Outcome.NOT_JUDGED, score=None), "? NOT JUDGED"),
    ],
)
def test_a_verdict_names_its_basis_on_every_surface(verdict, label, read_html):
    run = run_of(verdict, evidence=(HELD,))
    assert str(labels.verdict_label(verdict, (HELD,))) == label
    assert record_text(run, 100).startswith(label)
    assert record_markdown(run).startswith(f"**{label}**")
    html = record_html(run)
    pill = read_html(html.partition("<header")[2].partition("</strong>")[0] + "</strong>").text
    word = label.partition(" · ")[0].partition(", over")[0]
    warns = word.replace("☑", "⚠")  # over a failed check it doesn't look like a pass
    assert pill.partition(">")[2] == (warns if verdict.over_failed_check else word)


def test_code_that_only_ran_is_hollow_and_is_offered_to_be_accepted_and_run(read_html):
    message = f"{RAN.reason} Accept the text, or say what you need and continue."
    run = run_of(RAN).model_copy(update={"stop_reason": StopReason.UNJUDGED, "message": message})
    assert labels.iteration_label(run.chosen).hollow
    parts = panel_parts(run, View(place="replace", place_to_run="replace"))
    assert read_html(parts["top"] + parts["notices"]).text.count(RAN.reason) == 1
    first, *_ = parts["top"].split("<button")[1:]
    assert 'data-action="accept"' in first
    assert 'data-place="run"' in first
    assert ">Accept and run<" in first


async def test_the_number_of_examples_is_what_the_check_found():
    task = Task(text="Write inc(n). inc(1) == 2, so:\n\ninc(1) == 2\ninc(2) == 3", form="code")
    found = await Examples(decisive=True)("def inc(n): return n + 1", task)
    verdict = Verdict(outcome=PASS, score=1, basis="examples")
    evidence = found.model_copy(update={"basis": "examples"})
    assert labels.basis_label(verdict, (evidence,)) == "2 examples"
    assert labels.basis_label(verdict) == "examples"


def test_a_text_that_only_findings_keep_from_passing_says_how_many():
    blocking = Finding(id="f1", criterion="c", severity=Severity.BLOCKING, problem="Wrong.")
    others = (
        blocking.model_copy(update={"id": "f2", "severity": Severity.MINOR}),
        blocking.model_copy(update={"id": "f3", "verified": "no"}),
    )
    high = Verdict(outcome=NEEDS, score=1, basis="judge", opinion=1)

    def label(verdict, *findings):
        return str(labels.iteration_label(run_of(verdict, findings=findings).iterations[0]))

    assert label(high, blocking, *others) == "✎ NEEDS IMPROVEMENT · 1 open finding"
    assert label(high, *others) == "✎ NEEDS IMPROVEMENT · judge's opinion, 1.00"
    failed = high.model_copy(update={"basis": "tests", "required_passed": False, "opinion": None})
    assert label(failed, blocking) == "✎ NEEDS IMPROVEMENT · tests failed"
    by_word = high.model_copy(update={"stated": NEEDS})
    assert label(by_word, blocking) == "✎ NEEDS IMPROVEMENT · judge's opinion, 1.00"


def test_an_opinion_and_a_ruling_do_not_look_like_evidence():
    looks = {
        name: record_html(run_of(verdict)).partition('class="rf-badge ')[2].partition('"')[0]
        for name, verdict in (
            ("evidence", Verdict(outcome=PASS, score=1, basis="tests")),
            ("opinion", OPINION),
            ("yours", Verdict(outcome=PASS, score=1, basis="user")),
        )
    }
    assert looks == {"evidence": "rf-good", "opinion": "rf-opinion rf-hollow", "yours": "rf-yours"}
    assert all(f".{name}" in STYLE for name in ("rf-opinion", "rf-hollow", "rf-yours"))


@pytest.mark.parametrize("render", EVERY)
def test_a_score_that_the_label_has_is_not_said_again(render, read_html):
    assert read_html(render(run_of(OPINION))).text.count("0.81") == 2  # run and iteration


# Findings


def doubtful(**fields):
    """A finding that did not hold."""
    fields = {"criterion": "correctness", "severity": Severity.BLOCKING, "problem": "x", **fields}
    return Finding(id="f1", verified="no", **fields)


@pytest.mark.parametrize(
    ("finding", "reason"),
    [
        (doubtful(quote="no such words"), "quote not in the text"),
        (doubtful(quote="the text", input="f(1)"), "its input gave what was expected"),
        (doubtful(input="f(1)", expected="1"), "its input gave what was expected"),
        (doubtful(), "nothing shows it"),
    ],
)
@pytest.mark.parametrize("render", EVERY)
def test_a_doubtful_finding_is_set_apart_with_why(render, finding, reason):
    output = render(run_of(OPINION, findings=(finding,)))
    assert "Doubtful" in output
    assert f"doubtful: {reason}" in output
    assert "Findings" not in output


@pytest.mark.parametrize("render", EVERY)
def test_the_input_that_shows_a_finding_is_shown_with_what_it_should_give(render, read_html):
    finding = Finding(
        id="f1",
        criterion="correctness",
        severity=Severity.BLOCKING,
        problem="Empty lists fail.",
        verified="yes",
        input="median(())",
        expected="None",
    )
    shown = read_html(render(run_of(OPINION, findings=(finding,)))).text
    assert "Shown by: median(()), expected None" in shown.replace("**", "")


@pytest.mark.parametrize("render", EVERY)
def test_a_minor_finding_on_a_text_that_passes_is_a_suggestion(render):
    finding = Finding(id="f1", criterion="style", severity=Severity.MINOR, problem="Long.")
    passed = Verdict(outcome=PASS, score=1, basis="examples")
    assert "□ suggestion" in render(run_of(passed, findings=(finding,)))
    failed = Verdict(outcome=NEEDS, score=0, basis="examples", required_passed=False)
    assert "□ minor" in render(run_of(failed, findings=(finding,)))


# The question


@pytest.mark.parametrize("render", EVERY)
def test_the_record_lists_a_question_as_what_to_clarify(render, read_html):
    verdict = Verdict(outcome=NEEDS, score=0.5, basis="agreement")
    shown = read_html(render(run_of(verdict, question=MEDIAN))).text.replace("\\", "")
    assert "To clarify:" in shown
    assert "median([])" in shown
    assert "returns None (2 drafts)" in shown
    assert "raises ValueError (1 draft)" in shown
    assert "%refine answer 1" in shown


def test_the_terminal_asks_with_numbered_answers():
    run = run_of(Verdict(outcome=NEEDS, score=0.5, basis="agreement"), question=MEDIAN)
    run = run.model_copy(update={"stop_reason": StopReason.QUESTION})
    output = event_text(Stopped(reason=StopReason.QUESTION, message=""), run, columns=100)
    assert "1 · returns None (2 drafts)\n2 · raises ValueError (1 draft)" in output
    assert "%refine answer 1" in output


def test_drafts_that_were_compared_and_differ_are_no_check_without_work():
    contested = Evidence(name="agreement", passed=None, contested=True)
    assert str(labels.evidence_label(contested)) == "≠ drafts disagree"
    contested = contested.model_copy(update={"passed": True})
    assert str(labels.evidence_label(contested)) == "≠ drafts disagree"


# Waiting


def test_progress_counts_the_seconds_and_tokens_of_a_stage():
    now = 10.0
    progress, run = Progress(lambda: now), run_of(None)
    assert progress.line(run) == ""
    progress.take(StageStarted(stage="critique", iteration=0))
    now = 13.4
    assert progress.line(run) == "Critiquing · draft · 3 s"
    progress.take(TextDelta(stage="critique", iteration=0, text="x" * 40))
    assert progress.line(run) == "Critiquing · draft · 3 s · 10 tokens"
    progress.take(CallEnded(stage="critique", iteration=0, usage=Usage(completion_tokens=12)))
    assert progress.line(run) == "Critiquing · draft · 3 s · 12 tokens"
    progress.take(StageStarted(stage="judge", iteration=0))
    assert progress.line(run) == "Judging · draft · 0 s"
    now += 20
    assert progress.line(run) == "Judging · draft · 20 s · no reply for 20 s · Ctrl-C stops it"
    progress.take(TextDelta(stage="judge", iteration=0, text="yes!"))
    assert progress.line(run) == "Judging · draft · 20 s · 1 token"
    progress.take(Stopped(reason=StopReason.PASSED, message=""))
    assert progress.line(run) == ""


def test_words_of_a_check_that_look_like_a_count_are_no_count():
    tone = Evidence(name="tone", passed=False, detail="2 of 3 paragraphs are cold")
    assert labels.evidence_chip(tone) == "✗ tone"
