"""No run passes in which a No was the last word, whatever critics, writers and tests say."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import CODE, Finds, code, finish, refinement, text, told, written

from ipyrefine.checks.suite import Suite
from ipyrefine.core.engine import Refinement
from ipyrefine.core.events import CritiqueReady, Event
from ipyrefine.core.model import Limits, Outcome, StopReason, Task
from ipyrefine.core.prompts import Prompts
from ipyrefine.core.run import Run
from ipyrefine.core.table import Evidence, Point, Result
from ipyrefine.render.words import verdict as verdict_words

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

    async def __call__(self, tests: Sequence[Point], text: str, task: Task) -> dict[str, Result]:
        ends = {one.words: self.table.get((one.words, text), True) for one in tests}
        return {name: Result(passed=passed, shows="It is 1") for name, passed in ends.items()}

    async def vacuous(self, tests: Any, text: str) -> frozenset[str]:
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
HOLDS = Evidence(name="examples", passed=True, decisive=True, basis="examples")
KEEP = "t1: KEEP: the task does not ask for that"


async def test_a_check_that_could_not_run_keeps_a_text_from_passing_on_the_others() -> None:
    absent = Evidence(name="tests:mine", passed=None, not_run=True, detail="It needs the network.")
    run = await ended([code(X)], [critic()], checks=[Finds(HOLDS), Finds(absent)])
    assert (run.verdict.outcome, run.verdict.why) == (Outcome.NOT_JUDGED, "not_run")


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
    said = verdict_words(one.state, one.state.iterations[0]).sentence
    assert said.endswith("f(-1): the critic expects 0, the text gives -1.")
    assert one.state.stop_reason is StopReason.UNJUDGED


@pytest.mark.parametrize("reply", ["hm", critic()])
async def test_what_the_user_confirmed_passes_whether_or_not_a_critic_could_read_it(
    reply: str,
) -> None:
    confirmed = HOLDS.replace(basis="confirmed", name="examples")
    run = await ended([code(X)], [reply, reply], checks=[Finds(confirmed)])
    assert (run.verdict.outcome, run.verdict.basis) == (Outcome.PASS, "confirmed")
    phrases = " ".join(part for pair in verdict_words(run, run.chosen).phrases for part in pair)
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


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
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
            while words[-1] == "unread" and not event.critique.reading.failure:
                words.append(next(spoken)[0])  # it was asked again
            if event.critique.reading.failure:
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
    for test in written(run):
        stands = test.blocking and test.upheld is not False and not test.dropped
        if stands:
            assert outcomes.get((test.words, run.text), True) is True
    assert not any(f.blocks or (f.is_open and f.point.disputed) for f in told(run))


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


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
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
