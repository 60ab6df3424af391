"""What a verdict rests on: evidence first, then a judge's opinion, else nothing."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import (
    CODE,
    NO_FINDINGS,
    TASK,
    code,
    critique,
    decide,
    finding,
    finish,
    judgement,
    prompts,
    refinement,
    stages,
    text,
)
from loop_strategies import evidence as any_evidence
from png import PNG

from ipyrefine.core import verdicts
from ipyrefine.core.decisions import Add, Continue, Guide, Override, Select
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import DraftReady, EvidenceReady, RunStarted
from ipyrefine.core.model import (
    Basis,
    Choice,
    CriterionScore,
    Evidence,
    Figure,
    Finding,
    Judgement,
    Limits,
    Outcome,
    Question,
    Setup,
    Severity,
    Stage,
    Status,
    StopReason,
    Task,
    Verdict,
)
from ipyrefine.core.reducer import replay

ONCE = Limits(max_revisions=0, critique="never")
PASS, NEEDS, NOT_JUDGED = Outcome.PASS, Outcome.NEEDS_IMPROVEMENT, Outcome.NOT_JUDGED
QUESTION = Question(call="f([])", choices=(Choice(result="None"), Choice(result="0")))


def found(basis: Basis, passed: bool | None = True, **fields: Any) -> Evidence:
    """Evidence of a check named as its basis; one that passes settles the verdict."""
    fields = {"name": basis, "decisive": bool(passed), "detail": f"{basis} ran", **fields}
    return Evidence(basis=basis, passed=passed, **fields)


class Finds:
    """A check that gives evidence, one after another; the last again and again."""

    def __init__(self, *evidence: Evidence) -> None:
        self.name = evidence[0].name
        self._left = list(evidence)

    async def __call__(self, text: str, task: Task) -> Evidence:
        return self._left.pop(0) if len(self._left) > 1 else self._left[0]


async def first_verdict(*evidence: Evidence, judge: Sequence[Any] = (), **options: Any) -> Verdict:
    """The verdict on one text with this evidence; the judge is asked as often as it has replies."""
    checks = [Finds(one) for one in evidence]
    loop = refinement([text("Hi"), *judge], checks=checks, **{"limits": ONCE, **options})
    await finish(loop)
    assert len(loop.model.requests) == 1 + len(judge)  # type: ignore[attr-defined]
    verdict = loop.state.verdict
    assert verdict is not None
    return verdict


# The table of bases


@pytest.mark.parametrize("basis", ["tests", "function", "schema", "examples", "agreement"])
async def test_evidence_that_settles_a_text_passes_it_without_a_judge(basis: Basis) -> None:
    verdict = await first_verdict(found(basis))
    assert (verdict.outcome, verdict.basis, verdict.score) == (PASS, basis, 1.0)
    assert (verdict.is_opinion, verdict.opinion) == (False, None)
    assert verdict.reason == f"{basis} passed."


@pytest.mark.parametrize("basis", ["tests", "function", "schema", "examples", "constraints"])
async def test_a_required_check_that_fails_is_the_basis_of_the_verdict(basis: Basis) -> None:
    verdict = await first_verdict(found(basis, passed=False, detail="2 of 3\nmore"))
    assert (verdict.outcome, verdict.basis) == (NEEDS, basis)
    assert not verdict.required_passed
    assert verdict.reason == f"{basis} failed: 2 of 3"


@pytest.mark.parametrize(
    ("passed", "basis"),
    [
        (("examples", "agreement"), "agreement"),
        (("examples", "tests"), "tests"),
        (("agreement", "function"), "function"),
        (("examples", "schema"), "schema"),
    ],
)
async def test_of_several_checks_the_strongest_is_the_basis(
    passed: tuple[Basis, ...], basis: Basis
) -> None:
    verdict = await first_verdict(*map(found, passed))
    assert (verdict.outcome, verdict.basis) == (PASS, basis)


async def test_agreement_without_a_quorum_outweighs_examples_that_hold() -> None:
    split = found("agreement", None, contested=True, detail="2 of 4 agree", score=0.5)
    verdict = await first_verdict(found("examples"), split)
    assert (verdict.outcome, verdict.basis, verdict.score) == (NEEDS, "agreement", 0.5)
    assert verdict.reason == "2 of 4 agree"


@pytest.mark.parametrize("basis", ["tests", "function", "schema"])
async def test_the_user_s_own_checks_outweigh_drafts_that_disagree(basis: Basis) -> None:
    split = found("agreement", None, contested=True, detail="2 of 4 agree")
    verdict = await first_verdict(found(basis), split)
    assert (verdict.outcome, verdict.basis) == (PASS, basis)


async def test_drafts_that_disagree_stop_with_the_question_that_tells_them_apart() -> None:
    split = found("agreement", None, contested=True, detail="split", final=True, question=QUESTION)
    loop = refinement([text("Hi")], checks=[Finds(split)], limits=Limits(max_revisions=3))
    events = await finish(loop)
    assert stages(events) == ["draft", "check"], "nobody is asked what the user has to say"
    assert loop.state.stop_reason is StopReason.QUESTION
    assert loop.state.question == QUESTION
    assert "f([])" in loop.state.message


@pytest.mark.parametrize(
    ("score", "outcome", "basis"), [(9, PASS, "constraints"), (5, NEEDS, "judge")]
)
async def test_constraints_that_hold_settle_only_themselves(
    score: int, outcome: Outcome, basis: Basis
) -> None:
    kept = found("constraints", decisive=False)
    verdict = await first_verdict(kept, judge=[judgement(score)])
    assert (verdict.outcome, verdict.basis) == (outcome, basis)
    assert verdict.opinion == score / 10
    assert verdict.is_opinion


@pytest.mark.parametrize("score", [9, 5])
async def test_constraints_never_settle_a_text_whatever_they_say_of_themselves(score: int) -> None:
    kept = found("constraints", name="length:<=120 words", decisive=True)
    verdict = await first_verdict(kept, judge=[judgement(score)])
    assert (verdict.passed, verdict.is_opinion) == (score == 9, True)


async def test_a_right_length_alone_is_not_judged_where_no_judge_is_asked() -> None:
    kept = found("constraints", name="length:<=120 words", decisive=True)
    limits = ONCE.model_copy(update={"opinion": "never"})
    verdict = await first_verdict(kept, limits=limits)
    assert verdict.outcome is NOT_JUDGED
    assert "length:<=120 words" in verdict.reason


async def test_a_check_that_found_nothing_to_check_is_no_basis() -> None:
    verdict = await first_verdict(found("examples", None), judge=[judgement(9)])
    assert (verdict.outcome, verdict.basis) == (PASS, "judge")


RAN = found("run", name="run on copies")
FAILED_RUN = RAN.model_copy(update={"passed": False, "detail": "KeyError: 'a' (line 1)"})


async def test_code_that_only_runs_passes_on_no_evidence_and_spares_no_judge() -> None:
    drawn = RAN.model_copy(update={"outputs": (Figure(png=PNG),)})
    for ran in (RAN, drawn):
        verdict = await first_verdict(ran, judge=[judgement(3)])
        assert (verdict.outcome, verdict.basis) == (NEEDS, "judge")
        limits = ONCE.model_copy(update={"opinion": "never"})
        verdict = await first_verdict(ran, limits=limits)
        assert (verdict.outcome, verdict.basis, verdict.score) == (NOT_JUDGED, "run", None)
        assert verdict.reason == "Runs; nobody checked what it gives."


async def test_code_that_runs_and_was_not_run_by_another_check_says_why() -> None:
    missing = found("tests", None, detail="Not run: it needs the network.")
    verdict = await first_verdict(RAN, missing, limits=ONCE.model_copy(update={"opinion": "never"}))
    assert (verdict.outcome, verdict.basis) == (NOT_JUDGED, "none")
    assert verdict.reason.startswith("Not run: it needs the network.")


async def failing_runs(*errors: str, **limits: Any) -> Refinement:
    """A loop whose texts fail to run with these errors."""
    checks = [Finds(*(FAILED_RUN.model_copy(update={"detail": error}) for error in errors))]
    texts = [text(f"Hi {number}") for number in range(len(errors))]
    limits = {"max_revisions": len(errors) - 1, "critique": "never", **limits}
    loop = refinement(texts, checks=checks, limits=Limits(**limits), draft=None)
    await finish(loop)
    return loop


async def test_code_that_fails_as_its_parent_did_is_no_progress_and_the_last_one_is_shown() -> None:
    loop = await failing_runs(*["KeyError: 'a' (line 1)"] * 4, patience=2)
    assert (loop.state.stop_reason, len(loop.state.iterations)) == (StopReason.PLATEAU, 3)
    assert loop.state.text == "Hi 2"


@pytest.mark.parametrize("later", ["KeyError: 'a' (line {n})", "KeyError: '{n}' (line 1)"])
async def test_code_that_fails_later_or_with_another_error_is_progress(later: str) -> None:
    loop = await failing_runs(*(later.format(n=n) for n in range(1, 6)), patience=1)
    assert (loop.state.stop_reason, len(loop.state.iterations)) == (StopReason.REVISIONS, 5)


async def test_code_that_runs_is_better_than_code_that_fails_whatever_came_later() -> None:
    loop = refinement(
        [text("Hi 0"), text("Hi 1")],
        checks=[Finds(FAILED_RUN, RAN)],
        limits=Limits(opinion="never", critique="never"),
    )
    await finish(loop)
    assert (loop.state.text, loop.state.stop_reason) == ("Hi 1", StopReason.UNJUDGED)
    assert loop.state.message.startswith("Runs; nobody checked what it gives. ")


async def test_code_that_only_runs_stands_in_the_way_of_no_check_that_settles_it() -> None:
    beside = await first_verdict(RAN, found("examples", score=0.9))
    assert beside == await first_verdict(found("examples", score=0.9))


async def test_code_that_does_not_run_passes_on_no_other_evidence() -> None:
    verdict = await first_verdict(FAILED_RUN, found("examples"))
    assert (verdict.outcome, verdict.basis) == (NEEDS, "run")


async def test_a_draft_that_runs_and_passes_on_opinion_is_criticised_all_the_same() -> None:
    replies = [text("Hi"), judgement(9), critique()]
    loop = refinement(replies, checks=[Finds(RAN)], limits=Limits(max_revisions=0))
    await finish(loop)
    assert loop.state.iterations[0].critiqued


async def test_a_user_s_word_is_a_basis_of_its_own() -> None:
    loop = refinement([text("Hi"), judgement(3)], limits=ONCE)
    await finish(loop)
    await decide(loop, Override(outcome=PASS))
    verdict = loop.state.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis, verdict.is_opinion) == (PASS, "user", False)
    assert not verdict.over_failed_check


# A required check that failed is passed by nobody but the user


@given(
    evidence=st.lists(any_evidence, min_size=1, max_size=3),
    score=st.floats(0, 1),
    stated=st.none() | st.sampled_from([PASS, NEEDS]),
)
def test_no_judge_passes_a_text_over_a_failed_check(
    evidence: list[Evidence], score: float, stated: Outcome | None
) -> None:
    evidence = [*evidence, found("tests", passed=False)]
    run = replay(
        [
            RunStarted(setup=Setup(task=TASK, checks=tuple(e.name for e in evidence))),
            DraftReady(text="Hi"),
            *(EvidenceReady(iteration=0, evidence=one) for one in evidence),
        ]
    )
    by_checks = verdicts.from_evidence(run, run.iterations[0])
    tone = CriterionScore(name="tone", score=score)
    judged = Judgement(criteria=(tone,), score=score, stated=stated)
    by_judge = verdicts.from_judgement(run, run.iterations[0], judged)
    assert by_checks is not None
    for verdict in (by_checks.verdict, by_judge.verdict):
        assert not verdict.passed
        assert not verdict.required_passed


async def test_the_user_passes_it_and_the_verdict_says_over_what() -> None:
    loop = refinement(
        [text("Hi")], checks=[Finds(found("tests", passed=False))], limits=Limits(max_revisions=0)
    )
    await finish(loop)
    await decide(loop, Override(outcome=PASS, reason="The test is wrong."))
    verdict = loop.state.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis) == (PASS, "user")
    assert verdict.over_failed_check
    assert loop.state.stop_reason is StopReason.OVERRIDDEN


async def test_a_check_that_is_not_required_keeps_no_text_from_passing() -> None:
    remark = found("function", passed=False, required=False)
    verdict = await first_verdict(remark, judge=[judgement(9)])
    assert (verdict.outcome, verdict.basis, verdict.required_passed) == (PASS, "judge", True)


# Opinion


NEVER = Limits(opinion="never")
ALWAYS = ONCE.model_copy(update={"opinion": "always"})


async def test_an_opinion_beside_evidence_lowers_nothing() -> None:
    verdict = await first_verdict(found("tests"), judge=[judgement(1)], limits=ALWAYS)
    assert (verdict.outcome, verdict.basis, verdict.score) == (PASS, "tests", 1.0)
    assert verdict.opinion == 0.1
    assert [c.score for c in verdict.criteria] == [0.1]
    assert not verdict.is_opinion


async def test_an_opinion_that_cannot_be_read_lowers_nothing_either() -> None:
    loop = refinement([text("Hi"), "good", "fine"], checks=[Finds(found("tests"))], limits=ALWAYS)
    await finish(loop)
    verdict = loop.state.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis, verdict.opinion) == (PASS, "tests", None)
    assert any("was not judged" in warning for warning in loop.state.warnings)


async def test_no_opinion_is_asked_of_a_text_that_a_check_failed() -> None:
    await first_verdict(found("tests", passed=False), limits=ALWAYS)


# Not judged


async def test_without_anything_that_decides_one_critique_and_one_revision_are_made() -> None:
    loop = refinement([text("Hi"), critique(finding("curt")), text("Hi Ann")], limits=NEVER)
    assert stages(await finish(loop)) == ["draft", "critique", "revise"]
    run = loop.state
    assert [i.verdict and i.verdict.outcome for i in run.iterations] == [NOT_JUDGED] * 2
    assert run.verdict is not None
    assert (run.verdict.basis, run.verdict.score) == ("none", None)
    assert run.stop_reason is StopReason.UNJUDGED
    assert run.text == "Hi Ann", "the latest text answers the critique of the one before"
    assert run.message.startswith("Not judged: No judge was asked.")
    assert not run.converged


async def test_a_text_that_is_not_judged_is_revised_once_more_when_the_user_continues() -> None:
    replies = [text("Hi"), critique(finding("curt")), text("Hi Ann"), text("Hi Ann, hello")]
    loop = refinement(replies, limits=NEVER)
    await finish(loop)
    assert stages(await decide(loop, Continue(guidance="longer"))) == ["revise"]
    assert (loop.state.text, loop.state.stop_reason) == ("Hi Ann, hello", StopReason.UNJUDGED)


@pytest.mark.parametrize(
    ("limits", "replies"),
    [
        (NEVER, NO_FINDINGS),
        (Limits(opinion="never", critique="never"), ()),
        (Limits(opinion="never", max_revisions=0), ()),
    ],
    ids=["nothing found", "no critique", "no revision"],
)
async def test_where_nothing_says_what_to_change_it_stops_unjudged_at_once(
    limits: Limits, replies: Sequence[str]
) -> None:
    loop = refinement([text("Hi"), *replies], limits=limits)
    await finish(loop)
    assert (loop.state.text, loop.state.stop_reason) == ("Hi", StopReason.UNJUDGED)


async def test_a_judge_whose_replies_cannot_be_read_leaves_one_revision_too() -> None:
    loop = refinement(
        [text("Hi"), "good", "fine", critique(finding("curt")), text("Hi Ann"), "so", "so"]
    )
    ran = stages(await finish(loop))
    assert ran == ["draft", "judge", "critique", "revise", "judge"]
    assert (loop.state.text, loop.state.stop_reason) == ("Hi Ann", StopReason.UNJUDGED)


async def test_a_judge_that_is_read_again_judges_the_revision() -> None:
    loop = refinement(
        [text("Hi"), "good", "fine", critique(finding("curt", "Hi")), text("Oh"), judgement(9)]
    )
    await finish(loop)
    assert (loop.state.text, loop.state.stop_reason) == ("Oh", StopReason.PASSED)


async def test_a_not_judged_text_says_what_evidence_there_is_beside() -> None:
    kept = found("constraints", decisive=False)
    limits = ONCE.model_copy(update={"opinion": "never"})
    verdict = await first_verdict(kept, limits=limits)
    assert (verdict.outcome, verdict.basis) == (NOT_JUDGED, "none")
    assert verdict.reason == "No judge was asked. Passed: constraints."


async def test_evidence_decides_where_no_opinion_is_asked_for() -> None:
    verdict = await first_verdict(found("tests"), limits=NEVER)
    assert (verdict.outcome, verdict.basis) == (PASS, "tests")


async def test_a_judge_that_is_known_as_unreliable_abstains() -> None:
    verdict = await first_verdict(judge_abstains=True)
    assert (verdict.outcome, verdict.basis) == (NOT_JUDGED, "none")
    assert "too unreliable" in verdict.reason


async def test_its_opinion_decides_nothing_even_if_it_is_asked_for() -> None:
    verdict = await first_verdict(judge=[judgement(9)], judge_abstains=True, limits=ALWAYS)
    assert (verdict.outcome, verdict.basis, verdict.opinion) == (
        NOT_JUDGED,
        "none",
        pytest.approx(0.9),
    )


async def test_nobody_gives_not_judged_as_a_word() -> None:
    assert Outcome.read("not judged") is None
    assert Outcome.read("needs improvement") is NEEDS


# Suggestions


async def test_findings_on_a_text_that_passes_on_evidence_are_suggestions() -> None:
    loop = refinement(
        [text("Hi"), critique(finding("curt", "Hi")), text("Hi Ann")],
        checks=[Finds(found("tests"))],
    )
    await finish(loop)
    assert loop.state.stop_reason is StopReason.PASSED
    assert stages(await decide(loop, Continue())) == ["critique", "revise", "check"]
    draft, revision = loop.state.iterations
    assert [f.severity for f in draft.findings] == [Severity.MINOR]
    assert draft.verdict is not None
    assert draft.verdict.passed
    assert revision.acted_on == ("f1",)


async def test_what_a_critic_found_blocks_no_text_that_evidence_settles_later() -> None:
    check = Finds(found("examples", None), found("examples"))
    loop = refinement(
        [text("Hi"), judgement(5, finding("curt", "Hi")), text("Hi Ann")], checks=[check]
    )
    await finish(loop)
    revision = loop.state.iterations[1]
    curt = next(f for f in revision.findings if f.problem == "curt")
    assert (curt.status, curt.severity) == (Status.OPEN, Severity.MINOR)
    assert (loop.state.text, loop.state.stop_reason) == ("Hi Ann", StopReason.PASSED)


WISH = Finding(criterion="tone", severity=Severity.BLOCKING, problem="Name her.")


@pytest.mark.parametrize(("answer", "outcome"), [((), NEEDS), (("f1",), PASS)])
async def test_what_the_user_asked_for_is_no_suggestion(
    answer: tuple[str, ...], outcome: Outcome
) -> None:
    """Checks do not look at it: the judge is asked whether it is met."""
    loop = refinement(
        [text("Hi"), text("Hi Ann"), judgement(1, fixed=answer)],
        checks=[Finds(found("tests"))],
        limits=Limits(max_revisions=1),
    )
    await finish(loop)
    await decide(loop, Add(finding=WISH))
    await decide(loop, Continue())
    verdict = loop.state.iterations[1].verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis) == (outcome, "tests")
    assert verdict.user_findings_met is bool(answer)


async def test_without_a_judge_a_revision_is_taken_to_meet_what_it_was_written_for() -> None:
    loop = refinement([text("Hi"), text("Hi Ann")], checks=[Finds(found("tests"))], limits=NEVER)
    await finish(loop)
    await decide(loop, Guide(guidance="Name her."))
    await decide(loop, Continue())
    assert (loop.state.text, loop.state.stop_reason) == ("Hi Ann", StopReason.PASSED)
    assert loop.state.iterations[1].findings[0].status is Status.RESOLVED


# Findings are tried before they count


def claim(problem: str, call: str = "", criterion: str = "correctness") -> dict[str, str]:
    """A critic's finding on code."""
    return {**finding(problem, criterion=criterion), "input": call, "expected": "0" if call else ""}


class Tries:
    """A trial that says of each input whether it shows a problem, and keeps what it was given."""

    def __init__(self, shown: dict[str, bool | None]) -> None:
        self.shown, self.tried = shown, list[str]()

    async def __call__(self, finding: Finding, text: str, task: Task) -> bool | None:
        self.tried.append(finding.input)
        return self.shown[finding.input]


SHOWN = Tries({"f(1)": True, "f(2)": False, "f(3)": None})


async def tried(*claims: dict[str, str], task: Task = CODE, **options: Any) -> Refinement:
    """A run of one text that a judge passes and a critic makes these claims about."""
    write = code if task.form == "code" else text
    loop = refinement(
        [write("x = 1"), judgement(9), critique(*claims)],
        task,
        **{"trial": SHOWN, "limits": Limits(max_revisions=0), **options},
    )
    await finish(loop)
    return loop


@pytest.mark.parametrize(
    ("call", "criterion", "verified"),
    [
        ("f(1)", "correctness", "yes"),
        ("f(2)", "correctness", "no"),
        ("f(3)", "correctness", "no"),
        ("", "correctness", "no"),
        ("", "clarity", "untried"),
    ],
    ids=["shown", "not shown", "cannot be tried", "no input", "no wrong result"],
)
async def test_a_wrong_result_counts_only_with_an_input_that_shows_it(
    call: str, criterion: str, verified: str
) -> None:
    loop = await tried(claim("It is wrong.", call, criterion))
    (named,) = loop.state.iterations[0].findings
    assert named.verified == verified
    assert loop.state.verdict is not None
    assert loop.state.verdict.passed is named.doubtful


@pytest.mark.parametrize(
    ("task", "options"),
    [(TASK, {}), (CODE.model_copy(update={"language": "java"}), {}), (CODE, {"trial": None})],
    ids=["prose", "another language", "no trial"],
)
async def test_where_nothing_can_be_run_nothing_is_tried(
    task: Task, options: dict[str, Any]
) -> None:
    before = len(SHOWN.tried)
    loop = await tried(claim("It is wrong."), task=task, **options)
    assert loop.state.iterations[0].findings[0].verified == "untried"
    assert len(SHOWN.tried) == before


async def test_a_finding_whose_quote_is_not_there_is_not_run() -> None:
    before = len(SHOWN.tried)
    loop = await tried({**claim("It is wrong.", "f(1)"), "quote": "y = 2"})
    assert loop.state.iterations[0].findings[0].doubtful
    assert len(SHOWN.tried) == before


async def test_a_doubtful_finding_is_acted_on_only_if_the_user_selects_it() -> None:
    loop = refinement(
        [
            text("Dear Sir"),
            judgement(5, finding("rude", quote="Oi"), finding("stiff", quote="Dear Sir")),
            text("Dear Ann"),
            judgement(6),
            text("Ann"),
            judgement(6),
        ],
        limits=Limits(max_revisions=1),
    )
    await finish(loop)
    rude = next(f for f in loop.state.iterations[0].findings if f.problem == "rude")
    assert (rude.doubtful, rude.blocks, rude.actionable) == (True, False, False)
    assert rude.id not in loop.state.iterations[1].acted_on
    assert "rude" not in prompts(loop, Stage.REVISE)[0]
    await decide(loop, Select(findings=(rude.id,), iteration=0))
    assert "rude" in prompts(loop, Stage.REVISE)[1]
    assert loop.state.iterations[2].acted_on == (rude.id,)


async def test_a_finding_whose_words_are_gone_from_the_text_is_resolved_without_a_question() -> (
    None
):
    loop = refinement(
        [
            text("Dear Sir"),
            judgement(5, finding("stiff", quote="Dear Sir"), finding("no name")),
            text("Hi"),
            judgement(6),
        ],
        limits=Limits(max_revisions=1),
    )
    await finish(loop)
    statuses = {f.problem: f.status for f in loop.state.iterations[1].findings}
    assert statuses["stiff"] is Status.RESOLVED
    assert statuses["no name"] is Status.OPEN
    asked = prompts(loop, Stage.JUDGE)[1]
    assert "no name" in asked
    assert "stiff" not in asked
