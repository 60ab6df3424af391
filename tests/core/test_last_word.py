"""No run passes in which a No was the last word, whatever critics, writers and tests say."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import CODE, Finds, code, decide, finish, refinement, text

from ipyrefine.checks.suite import Suite
from ipyrefine.core.decisions import Dismiss, Override
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import CritiqueReady, Event
from ipyrefine.core.expectations import Expectation, suite_evidence
from ipyrefine.core.model import Evidence, Limits, Outcome, StopReason, Task, TestResult
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.run import Run
from ipyrefine.render.labels import basis_phrases, because_sentence

ASK = "Write f(x): it doubles numbers. Negative numbers give 0. Text gives an empty text."
TASK = CODE.replace(text=ASK)
BODIES = [f"def f(x):\n    return {n}" for n in ("x", "2 * x", "max(0, x)", "abs(x)", "None")]
LONG = "\n".join(f"    x = x + {n}" for n in range(9))
QUOTES = ("it doubles numbers", "Negative numbers give 0", "Text gives an empty text")
YES, NO = (True, "yes", "Ready."), (False, "no", "almost", "not yet", "needs work", "false")


def pytest_function(number: int, quote: str) -> str:
    return f'def test_{number}():\n    """{quote}"""\n    assert f({number}) == {number}\n'


def critic(
    ready: Any = True, *findings: dict[str, Any], tests: Sequence[str] = (), **fields: Any
) -> str:
    block = "```python\n" + "\n".join(tests) + "```\n" if tests else ""
    data = {"findings": findings, "because": f"Its word: {ready}.", **fields}
    return block + json.dumps(data if ready is None else {**data, "ready": ready})


def weak(problem: str, place: str = "", *, blocks: bool = True) -> dict[str, Any]:
    return {"problem": problem, "place": place, "task": "it doubles numbers", "blocks": blocks}


@dataclass
class Outcomes:
    """A suite whose tests come out on a text as the table says, else pass."""

    table: dict[tuple[str, str], bool | None] = field(default_factory=dict)

    async def __call__(self, tests: Sequence[Expectation], text: str, task: Task) -> Evidence:
        results = [
            TestResult(name=one.name, passed=self.table.get((one.name, text), True), line="It is 1")
            for one in tests
        ]
        return suite_evidence(tests, results)

    async def vacuous(self, expectations: Any, text: str) -> frozenset[str]:
        return frozenset()


def loop(
    drafts: Sequence[str],
    critiques: Sequence[str],
    revisions: Sequence[str] = (),
    outcomes: dict[tuple[str, str], bool | None] | None = None,
    **options: Any,
) -> Refinement:
    limits = Limits(max_revisions=len(revisions), **options.pop("limits", {}))
    replies = {"draft": drafts, "critique": critiques, "revise": revisions}
    return refinement(replies, TASK, suite=Outcomes(outcomes or {}), limits=limits, **options)


async def ended(*args: Any, **options: Any) -> Run:
    one = loop(*args, **options)
    await finish(one)
    return one.state


X, DOUBLE, ZERO, ABSOLUTE, NOTHING = BODIES
NEG = pytest_function(1, QUOTES[1])
WILD = pytest_function(2, "It also takes complex numbers, as everybody knows.")
HOLDS = Evidence(name="examples", passed=True, decisive=True, basis="examples")
LATE = critic(False, weak("old", "return"), fixed=["f1"])
KEEP = "f1: KEEP: the task does not ask for that"


@pytest.mark.parametrize(
    ("scenario", "why"),
    [
        (([code(X)], [critic(False)]), "not_ready"),
        (([code(X)], [critic("almost", weak("a comma", blocks=False))]), "not_ready"),
        (([code(X)], [critic(False, tests=[NEG])]), "not_ready"),
        (([code(X)], [critic(False, tests=[WILD])], (), {("test_2", X): False}), "not_ready"),
        (([code(X)], [critic(tests=[NEG])], (), {("test_1", X): None}), "not_run"),
        (
            (
                [code(X)],
                [
                    critic(False, weak("no name")),
                    critic(False, weak("old", "return"), fixed=["f1"]),
                ],
                [code(DOUBLE)],
            ),
            "not_ready",
        ),
        (
            (
                [code(X)],
                [critic(tests=[NEG]), critic(upheld=["test_1"])],
                [code(X, KEEP), code(X, KEEP)],
                {("test_1", X): False},
            ),
            "disputed",
        ),
        (
            (
                [code(X)],
                [critic(tests=[NEG]), "hm", "hm"],
                [code(ZERO, KEEP)],
                {("test_1", X): False, ("test_1", ZERO): False},
            ),
            "unreadable",
        ),
    ],
    ids=[
        "a bare no",
        "a no beside a suggestion",
        "a no though its tests pass",
        "a no beside a test that rests on nothing",
        "a test that waits",
        "a no for what it could have named before",
        "a test that is contested twice",
        "a contest that nobody answered",
    ],
)
@pytest.mark.parametrize("holds", [False, True], ids=["alone", "though the examples hold"])
async def test_a_text_is_not_judged_while_a_no_is_the_last_word(
    scenario: Any, why: str, holds: bool
) -> None:
    run = await ended(*scenario, checks=[Finds(HOLDS)] if holds else [])
    verdicts = [i.verdict for i in run.iterations if i.verdict]
    assert not any(one.passed for one in verdicts)
    assert run.verdict is not None
    assert run.verdict.outcome is Outcome.NOT_JUDGED
    reasons = {getattr(one.because, "why", "") for one in verdicts}
    assert why in reasons


async def test_a_check_that_could_not_run_keeps_a_text_from_passing_on_the_others() -> None:
    absent = Evidence(name="tests:mine", passed=None, not_run=True, detail="It needs the network.")
    run = await ended([code(X)], [critic()], checks=[Finds(HOLDS), Finds(absent)])
    assert (run.verdict.outcome, run.verdict.because.why) == (Outcome.NOT_JUDGED, "not_run")


async def test_a_critic_that_only_writes_tests_is_asked_for_its_word_and_settles_nothing() -> None:
    only = f"```python\n{NEG}```\n"
    run = await ended([code(X)], [only, critic()])
    assert (run.stop_reason, len(run.expectations)) == (StopReason.PASSED, 1)
    run = await ended([code(X)], [only, only])
    assert (run.verdict.outcome, run.verdict.because.why) == (Outcome.NOT_JUDGED, "unreadable")
    assert len(run.expectations) == 1


async def test_a_no_is_read_again_after_a_small_edit_too() -> None:
    outcomes = {("test_1", X): False}
    said = critic(False, tests=[NEG]), critic(False)
    run = await ended([code(X)], said, [code(ZERO)], outcomes)
    assert run.iterations[1].critiqued
    assert not run.verdict.passed


async def test_a_critic_that_is_content_once_its_tests_pass_need_not_read_a_small_edit() -> None:
    run = await ended([code(X)], [critic(tests=[NEG])], [code(ZERO)], {("test_1", X): False})
    assert (run.usage.calls, run.stop_reason) == (3, StopReason.PASSED)


async def test_what_a_no_says_is_acted_on_until_its_reader_takes_it_back() -> None:
    run = await ended([code(X)], [critic(False), critic()], [code(DOUBLE)])
    assert (run.text, run.stop_reason) == (DOUBLE, StopReason.PASSED)


async def test_a_word_for_a_test_that_its_critic_let_go_counts_for_the_text_that_was_read() -> None:
    outcomes = {("test_1", X): False, ("test_1", ZERO): False}
    said = critic(tests=[NEG]), critic()
    run = await ended([code(X)], said, [code(ZERO, KEEP)], outcomes)
    assert [i.verdict.passed for i in run.iterations] == [False, True]


@pytest.mark.parametrize(
    "take_back",
    [Dismiss(findings=("f1",)), Override(outcome=Outcome.PASS)],
    ids=["dismissed", "overridden"],
)
async def test_the_user_takes_a_no_back(take_back: Any) -> None:
    one = loop([code(X)], [critic(False)])
    await finish(one)
    await decide(one, take_back)
    assert one.state.verdict.passed


async def test_a_suggestion_that_is_dismissed_beside_what_blocks_takes_no_no_back() -> None:
    one = loop([code(X)], [critic(False, weak("wrong"), weak("a comma", blocks=False))])
    await finish(one)
    await decide(one, Dismiss(findings=("f2",)))
    assert not one.state.verdict.passed
    await decide(one, Dismiss(findings=("f1",)))
    assert one.state.verdict.passed


async def test_a_weakness_that_is_named_again_counts_against_both_texts() -> None:
    said = critic(False, weak("It greets nobody by name.")), critic(False, weak("Still no name."))
    run = await ended([code(X)], said, [code(DOUBLE)])
    assert run.text == DOUBLE


async def test_a_dispute_says_what_the_critic_expects_and_what_the_text_gives() -> None:
    body = "    assert f(-1) == 0\n"
    asks = critic(False, tests=[f'def test_1():\n    """{QUOTES[1]}"""\n{body}'])
    upheld = critic(False, upheld=["test_1"])
    one = refinement(
        {"draft": [code(X)], "critique": [asks, upheld], "revise": [code(X, KEEP)] * 2},
        TASK,
        suite=Suite(),
        limits=Limits(max_revisions=2),
    )
    await finish(one)
    said = because_sentence(one.state, one.state.iterations[0].verdict)
    assert said.endswith("f(-1): the critic expects 0, the text gives -1.")
    assert one.state.stop_reason is StopReason.UNJUDGED


@pytest.mark.parametrize("reply", ["hm", critic()])
async def test_what_the_user_confirmed_passes_whether_or_not_a_critic_could_read_it(
    reply: str,
) -> None:
    confirmed = HOLDS.replace(basis="confirmed", name="examples")
    run = await ended([code(X)], [reply, reply], checks=[Finds(confirmed)])
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "confirmed")
    phrases = " ".join(words for pair in basis_phrases(run, run.chosen) for words in pair)
    assert ("nobody read it" in phrases) is (reply == "hm")


# Whatever they say

words = st.sampled_from([*YES, *NO, None])
places = st.sampled_from(["", "return", "def f(x)"])
weaknesses = st.builds(
    weak, st.sampled_from(["no name", "too slow", "wrong type"]), places, blocks=st.booleans()
)
passages = st.sampled_from([*QUOTES, "as everybody knows it"])
tried = st.builds(pytest_function, st.integers(1, 3), passages)
named = st.lists(st.sampled_from(["f1", "f2", "test_1", "test_2"]), max_size=3)
critiques = st.one_of(
    st.builds(
        lambda ready, found, written, upheld, fixed: (
            ready,
            critic(ready, *found, tests=written, upheld=upheld, fixed=fixed),
        ),
        words,
        st.lists(weaknesses, max_size=2),
        st.lists(tried, max_size=2),
        named,
        named,
    ),
    st.just(("unread", "hm")),
)
bodies = st.sampled_from([*BODIES, *(body + "\n" + LONG for body in BODIES[:2])])
revisions = st.builds(
    lambda body, kept: code(body, "\n".join(f"{id_}: KEEP: it is right" for id_ in kept)),
    bodies,
    st.lists(st.sampled_from(["f1", "f2", "f3"]), max_size=2, unique=True),
)
results = st.dictionaries(
    st.tuples(st.sampled_from([f"test_{n}" for n in (1, 2, 3)]), bodies),
    st.sampled_from([True, False, None]),
    max_size=10,
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    draft=bodies,
    said=st.lists(critiques, min_size=12, max_size=12),
    revised=st.lists(revisions, min_size=1, max_size=4),
    outcomes=results,
    holds=st.sampled_from([None, HOLDS, HOLDS.replace(basis="confirmed")]),
    critique=st.sampled_from(["auto", "always"]),
)
async def test_no_run_passes_in_which_a_no_was_the_last_word(
    draft: str, said: Any, revised: Any, outcomes: Any, holds: Any, critique: Any
) -> None:
    one = loop(
        [code(draft)],
        [reply for _, reply in said],
        revised,
        outcomes,
        checks=[Finds(holds)] if holds else [],
        limits={"critique": critique},
    )
    heard: list[tuple[str, Any]] = []
    spoken = iter(said)

    def hear(event: Event, run: Run) -> None:
        if isinstance(event, CritiqueReady):
            words = [next(spoken)[0]]
            while words[-1] == "unread" and not event.critique.failure:
                words.append(next(spoken)[0])  # it was asked again
            if event.critique.failure:
                next(spoken, None)
            else:
                heard.append((run.iterations[event.iteration].text, words[-1]))

    run = await one.run(hear)
    if not (run.verdict and run.verdict.passed and run.chosen):
        return
    word = dict(heard)
    chosen, text = run.chosen, run.text
    while text not in word and chosen.parent is not None:  # a small edit of one that was read
        chosen = run.iterations[chosen.parent]
        text = chosen.text
    assert word.get(text) not in NO
    if holds is None:
        assert text in word
    for test in run.expectations:
        stands = test.grounded and test.upheld is not False and test.status == "open"
        if stands:
            assert outcomes.get((test.name, run.text), True) is True
    assert not any(f.blocks or (f.is_open and f.disputed) for f in run.chosen.findings)


criteria = ("correctness", "complexity", "style")
said_of_each = st.tuples(*[st.sampled_from(["PASS", "FAIL", "NEEDS_IMPROVEMENT"])] * 3)
shapes = st.sampled_from(
    [
        lambda pairs: "\n".join(f"{n}. {k}: {v}" for n, (k, v) in enumerate(pairs, 1)),
        lambda pairs: "\n".join(f"- **{k}**: {v} (as asked)" for k, v in pairs),
        lambda pairs: (
            "| what | verdict |\n|---|---|\n" + "\n".join(f"| {k} | {v} |" for k, v in pairs)
        ),
        lambda pairs: json.dumps({k: {"verdict": v} for k, v in pairs}),
        lambda pairs: json.dumps([{"criterion": k, "verdict": v} for k, v in pairs]),
        lambda pairs: "\n".join(json.dumps({"criterion": k, "verdict": v}) for k, v in pairs),
        lambda pairs: " ".join(f"The {k} is a {v}, I would say." for k, v in pairs),
    ]
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(verdicts=st.lists(said_of_each, min_size=2, max_size=2), shape=shapes)
async def test_no_run_passes_in_which_an_evaluator_says_no_of_one_criterion(
    verdicts: list[tuple[str, ...]], shape: Any
) -> None:
    replies = [shape([*zip(criteria, one, strict=True)]) for one in verdicts]
    one = refinement(
        {
            "draft": [text("Hi")],
            "judge": [lambda request: replies["Ho" in request.messages[-1].content]] * 4,
            "revise": [text("Ho")],
        },
        prompts=Prompts(judge="By each criterion, judge: {content}"),
        limits=Limits(max_revisions=1),
    )
    run = await one.run()
    heard = dict(zip(("Hi", "Ho"), verdicts, strict=True))
    assert not any(
        i.verdict.passed and set(heard[i.text]) != {"PASS"} for i in run.iterations if i.verdict
    )
