"""Every surface shows what a verdict rests on."""

import pytest

from ipyrefine.core.decisions import Override
from ipyrefine.core.model import Outcome, Setup, Task, Usage, Verdict
from ipyrefine.core.run import Iteration, Run
from ipyrefine.render import document, labels
from ipyrefine.render.blocks import blocks_html
from ipyrefine.render.html import record_html
from ipyrefine.render.markdown import record_markdown
from ipyrefine.render.terminal import record_text

EVERY = [record_text, record_html, record_markdown]


@pytest.mark.parametrize("render", EVERY)
def test_a_doubtful_finding_says_why(render, make_run):
    output = render(make_run())
    assert output.count("doubtful: quote not in the text") == 1


@pytest.mark.parametrize("render", EVERY)
def test_every_question_of_the_checklist_is_shown_with_its_answer_and_no_comes_first(
    render, make_run
):
    output = render(make_run())
    assert "Checklist: 1 of 2 met" in output
    assert "✗ no" in output.split("the asked")[0]
    assert output.index("✗ no") < output.index("✓ yes") < output.index("Is it short?")


@pytest.mark.parametrize("render", EVERY)
@pytest.mark.parametrize(
    "words",
    [
        *(
            "Settings",
            "Criteria",
            "Checklist",
            "Checks",
            "Findings",
            "Doubtful",
            "Changes by finding",
        ),
        *("Usage by stage", "Model notes", "the definition", "the item", "the warning"),
        *("You gave guidance: the guidance", "No usable text from the model:", "★ best"),
        *("regressed", "added by you", "no result", "advisory"),
    ],
)
def test_every_surface_has_the_same_parts(render, words, make_run):
    spent = {"judge": Usage(calls=2, prompt_tokens=1500)}
    assert words in render(make_run().model_copy(update={"spent": spent}))


@pytest.mark.parametrize("render", EVERY)
@pytest.mark.parametrize(
    ("text", "sentence"),
    [("", "Marked PASS by you."), ("good enough", "Marked PASS by you: good enough")],
)
def test_a_verdict_of_the_users_is_named_as_such(render, text, sentence, make_run, read_html):
    run = make_run()
    override = Override(iteration=0, outcome=Outcome.PASS, reason=text)
    first = run.iterations[0].model_copy(update={"override": override})
    run = run.model_copy(update={"iterations": (first, *run.iterations[1:])})
    assert sentence in read_html(render(run).replace("**", "")).text


@pytest.mark.parametrize("render", EVERY)
def test_a_free_model_costs_nothing_that_is_worth_a_number(render, make_run, read_html):
    run, free = make_run(), Usage(calls=2, prompt_tokens=1500, cost=0.0)
    text = read_html(render(run.model_copy(update={"usage": free, "spent": {"judge": free}}))).text
    assert "$" not in text
    assert "free" in text


@pytest.mark.parametrize("render", EVERY)
def test_without_a_checklist_none_is_shown(render, make_run):
    run = make_run()
    bare = run.iterations[0].verdict.model_copy(update={"checklist": ()})
    first = run.iterations[0].model_copy(update={"verdict": bare})
    run = run.model_copy(update={"iterations": (first, *run.iterations[1:])})
    assert "Checklist:" not in render(run)


def run_of(*parents):
    verdict = Verdict(outcome=Outcome.NEEDS_IMPROVEMENT, score=0.5)
    iterations = tuple(
        Iteration(number=number, parent=parent, text=f"Text {number}", verdict=verdict)
        for number, parent in enumerate(parents)
    )
    return Run(setup=Setup(task=Task(text="Write.")), iterations=iterations, best=0)


def test_a_sparkline_has_a_block_per_score_as_high_as_it_and_a_dot_for_none():
    assert labels.sparkline([0.0, None, 0.5, 1.0]) == "▁·▅█"


@pytest.mark.parametrize("render", [record_text, record_html])
def test_the_scores_of_a_run_are_one_line_with_the_target(render, make_run, read_html):
    shown = read_html(render(make_run())).text
    assert "Scores ▄█· 0.42 → 0.91 → \N{EN DASH} (target 0.80)" in shown.replace("\n", " ")


def test_a_long_run_shows_its_latest_scores_and_says_so(read_html):
    short, long = (
        read_html(blocks_html(document.scores(run_of(None, *range(n))))).text for n in (60, 900)
    )
    assert "Latest 50 of 901 iterations." in long
    assert len(long) < len(short) + 10
