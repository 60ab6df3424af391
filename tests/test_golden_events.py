"""Each golden scenario gives the events, and makes the requests, that are on file."""

import golden
import pytest


@pytest.mark.parametrize("path", golden.SCENARIOS, ids=lambda path: path.stem)
async def test_a_scenario_gives_its_events_and_makes_its_requests(path):
    scenario = golden.read(path)
    outcome = await golden.play(scenario)
    assert outcome.events == scenario["events"]
    assert outcome.requests == scenario["requests"]


def test_the_scenarios_are_there():
    assert len(golden.SCENARIOS) >= 30
