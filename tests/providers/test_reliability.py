"""What was measured of models' verdicts: the table that ships, and which task it speaks of."""

from typing import Any, get_args

import pytest

from ipyrefine.api import build
from ipyrefine.core.model import Accepted, Basis, Calibration, Form, Reliability, Task
from ipyrefine.providers import reliability
from ipyrefine.providers.reliability import measured
from ipyrefine.providers.scripted import ScriptedModel
from ipyrefine.providers.weights import WEIGHTS

GOOD = {"auroc": 0.8, "slope": 1.5, "intercept": -0.2, "texts": 90}
TABLE: dict[str, Any] = {
    "judges": {"strict": {"code": GOOD, "prose": {**GOOD, "auroc": 0.6}}},
    "accepted": {"writer": {"code": {"examples": {"texts": 180, "wrong": 7, "source": "cases"}}}},
    "revise": {"writer": {"code": "anew"}},
}
CODE = Task(text="Write inc(n).", form="code")
PROSE = Task(text="Greet.", form="prose")


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliability, "_table", lambda: TABLE)


def test_the_table_that_ships_has_the_shape_it_is_read_in():
    shipped = reliability._table()
    assert shipped.keys() == {"judges", "accepted", "revise"}
    for part in shipped.values():
        assert part.keys() <= WEIGHTS.keys(), "each model is one that can be had by this name"
        assert all(forms.keys() <= set(get_args(Form)) for forms in part.values())
    for forms in shipped["judges"].values():
        for one in forms.values():
            assert one.keys() == Calibration.model_fields.keys()
            assert Calibration.model_validate(one).texts > 0
    for forms in shipped["accepted"].values():
        for bases in forms.values():
            assert bases.keys() <= set(get_args(Basis))
            for one in bases.values():
                accepted = Accepted.model_validate(one)
                assert 0 <= accepted.wrong <= accepted.texts
                assert accepted.source
    for forms in shipped["revise"].values():
        assert set(forms.values()) <= {"edit", "anew"}


@pytest.mark.parametrize("task", [CODE, PROSE])
def test_every_model_of_the_table_can_be_asked_about(task):
    for model in WEIGHTS:
        assert isinstance(measured(model, model, task), Reliability)


def test_of_other_models_nothing_is_said():
    assert measured("gpt-9", "gpt-9", CODE) == Reliability()


@pytest.mark.usefixtures("table")
def test_a_calibration_is_the_judges_and_the_rest_the_writers():
    both = measured("writer", "strict", CODE)
    assert both.calibration == Calibration.model_validate(GOOD)
    assert both.accepted["examples"].wrong == 7
    assert both.revise == "anew"
    swapped = measured("strict", "writer", CODE)
    assert swapped == Reliability()


@pytest.mark.usefixtures("table")
def test_each_form_of_text_has_its_own_numbers():
    prose = measured("writer", "strict", PROSE)
    assert prose.calibration is not None
    assert not prose.calibration.reliable
    assert (prose.accepted, prose.revise) == ({}, "edit")


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("language", ["java", "c", "sql"])
def test_code_in_another_language_was_not_measured(language):
    task = CODE.model_copy(update={"language": language})
    assert measured("writer", "strict", task) == Reliability()


@pytest.mark.usefixtures("table")
def test_a_judge_prompt_of_the_users_was_not_measured():
    own = measured("writer", "strict", CODE, own_judge=True)
    assert own.calibration is None
    assert own.accepted, "what the writer's texts were worth on evidence stays what it was"


@pytest.mark.usefixtures("table")
def test_a_refinement_knows_what_was_measured_of_its_models():
    writer, judge = ScriptedModel([], name="writer"), ScriptedModel([], name="strict")
    setup = build("Greet.", model=writer, judge=judge, profile="prose").state.setup
    assert setup.reliability == measured("writer", "strict", PROSE)
    alone = build("Write inc(n).", model=writer, profile="code").state.setup
    assert alone.reliability.calibration is None
    assert alone.reliability.revise == "anew"
    prompts = {"judge": "PASS or FAIL?\n\n{text}"}
    own = build("Greet.", model=writer, judge=judge, profile="prose", prompts=prompts)
    assert own.state.setup.reliability.calibration is None
