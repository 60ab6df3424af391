"""What `agreement` asks where drafts disagree, and when further drafts are of no use."""

import pytest

from ipyrefine.checks.agreement import Agreement
from ipyrefine.core.model import Choice, Clarification, Evidence, Question, Task

TEXT = "Write middle(xs), the median.\n>>> middle([3, 1, 2])\n2\n>>> middle([5, 4, 9])\n5\n"
TASK = Task(text=TEXT, form="code")
LOWER = "def middle(xs):\n    return sorted(xs)[(len(xs) - 1) // 2] if xs else None"
UPPER = "def middle(xs):\n    return sorted(xs)[len(xs) // 2] if xs else None"
MEAN = (
    "def middle(xs):\n    xs, n = sorted(xs), len(xs)\n"
    "    return xs[n // 2] if n % 2 else (xs[n // 2 - 1] + xs[n // 2]) / 2"
)


async def compare(*drafts: str, task: Task = TASK, left: int = 0) -> list[Evidence]:
    check = Agreement()
    return [
        await check.among([*drafts[:n], *drafts[n + 1 :]], left)(draft, task)
        for n, draft in enumerate(drafts)
    ]


async def ask(*drafts: str, task: Task = TASK) -> Question | None:
    return (await compare(*drafts, task=task))[0].question


async def test_drafts_without_a_quorum_differ_and_ask_about_one_input():
    evidence = await compare(LOWER, UPPER, MEAN)
    for one in evidence:
        facts = (one.passed, one.decisive, one.drafts, one.basis)
        assert facts == (None, False, "differ", "agreement")
        assert "2 of 2 stated examples hold" in one.detail
    question, *others = (one.question for one in evidence)
    assert question is not None
    for one, other in zip(evidence[1:], others, strict=True):
        assert other == question.replace(own=other and other.own), one.detail
    results = {choice.result for choice in question.choices}
    assert {one and one.own and one.own.result for one in (question, *others)} == results
    assert question.call in evidence[0].detail.splitlines()[0]
    assert len(results) == 3
    assert {choice.votes for choice in question.choices} == {1}


async def test_the_question_names_the_shortest_of_the_inputs_that_separate_best():
    question = await ask(LOWER, UPPER)
    assert question is not None
    assert question.call == "middle([1, 2])"
    assert question.choices == (Choice(result="1"), Choice(result="2"))


async def test_an_exception_is_asked_about_by_its_name_also_where_all_drafts_raise_it():
    raises = "def middle(xs):\n    a, b, c = sorted(xs)\n    return b"
    question = await ask(LOWER, raises)
    assert question is not None
    assert Choice(result="ValueError", raises=True) in question.choices
    question = await ask(raises, raises)
    assert question is not None
    assert question.choices == (Choice(result="ValueError", raises=True, votes=2),)


async def test_drafts_that_agree_but_for_an_edge_case_pass_and_ask_about_it():
    evidence = await compare(MEAN, MEAN.replace("xs, n =", "if not xs: return None\n    xs, n ="))
    for one in evidence:
        assert (one.passed, one.decisive, one.drafts) == (True, True, "agree")
        assert one.question is not None
        assert one.question.call == "middle([])"
        assert {c.result for c in one.question.choices} == {"None", "IndexError"}
        assert "Open: middle([]): the drafts differ: None (1), raises IndexError (1)" in one.detail
    assert await ask(MEAN, MEAN) is None


@pytest.mark.parametrize("clarified", ["1", "1.5"])
async def test_an_answer_is_a_stated_example_that_the_drafts_are_compared_by(clarified):
    answer = Clarification(call="middle([1, 2])", result=clarified)
    task = TASK.model_copy(update={"clarifications": (answer,)})
    evidence = await compare(LOWER, UPPER, MEAN, task=task)
    meets = [
        draft == {"1": LOWER, "2": UPPER, "1.5": MEAN}[clarified] for draft in (LOWER, UPPER, MEAN)
    ]
    assert [e.passed for e in evidence] == meets
    assert [e.decisive for e in evidence if e.passed] == [True]
    assert all(e.question is None for e in evidence)


async def test_where_the_user_says_that_it_raises_drafts_that_raise_alike_are_no_doubt():
    task = Task(text="Write f(x), 100 over x minus 10.\n>>> f(30)\n5.0\n>>> f(15)\n20.0\n")
    refuses = "def f(x):\n    if x < 16 and x != 15: raise ValueError\n    return 100 / (x - 10)"
    assert (await compare(refuses, refuses, task=task))[0].drafts == "differ"
    answer = Clarification(call="f(14)", result="ValueError", raises=True)
    answered = task.model_copy(update={"clarifications": (answer,)})
    assert (await compare(refuses, refuses, task=answered))[0].decisive


async def test_it_is_final_once_the_leader_cannot_be_overtaken():
    for left, final in ((1, True), (3, False)):
        *leaders, _, minority = await compare(LOWER, LOWER, LOWER, LOWER, UPPER, left=left)
        assert all(e.passed for e in leaders)
        assert minority.passed is False
        assert [e.drafts != "open" for e in leaders] == [final] * 3, left
        assert (minority.drafts != "open") is (left < 3)


F = Task(text="Write f(x).\n>>> f(7)\n0\n", form="code")
OBJECT = "class Thing: pass\ndef f(x):\n    return Thing() if x != 7 else 0"
ODD_NAME = (
    "E = type('<b>x</b> ' * 99, (Exception,), {})\ndef f(x):\n    if x != 7: raise E\n    return 0"
)


@pytest.mark.parametrize("hostile", [OBJECT, ODD_NAME], ids=["object", "name"])
async def test_what_cannot_be_written_down_as_a_result_is_not_asked_about(hostile):
    plain = "def f(x):\n    return x - 7"
    check = Agreement(seconds=2).among([hostile])
    assert (await check(plain, F)).question is None
    zero = "def f(x):\n    return 0"
    question = (await Agreement(seconds=2).among([hostile, zero])(plain, F)).question
    assert question is not None
    assert sorted(len(choice.result) < 4 for choice in question.choices) == [True, True]
