"""What is stored is read back as it was; what another version stored is refused as such."""

import json
from typing import Any

import pytest
from kit import finish, greeting, without_deltas

from ipyrefine.core.decisions import Continue
from ipyrefine.core.events import Event
from ipyrefine.core.run import Run
from ipyrefine.core.stored import OLDEST, VERSION, OtherVersion, read_event, read_record


async def played() -> tuple[Run, list[Event]]:
    loop = greeting()
    events = without_deltas(await finish(loop))
    return loop.state, events


def dump(run: Run, version: Any = VERSION) -> Any:
    return json.loads(json.dumps({"version": version, **run.model_dump(mode="json")}))


async def test_a_run_and_its_events_are_read_back_as_they_were():
    run, events = await played()
    assert read_record(dump(run)) == run
    assert [read_event(json.loads(e.model_dump_json()), VERSION) for e in events] == events


async def test_another_version_is_refused_as_such_and_what_is_not_one_as_damage():
    run, events = await played()
    for version in (0, OLDEST - 1, VERSION + 1, -1):
        with pytest.raises(OtherVersion):
            read_record(dump(run, version))
        with pytest.raises(OtherVersion):
            read_event(events[0].model_dump(), version)
    for damage in ("5", None, True, 5.0, [1]):
        with pytest.raises(ValueError, match="number of a version") as raised:
            read_record(dump(run, damage))
        assert not isinstance(raised.value, OtherVersion)


async def test_an_older_run_and_its_events_are_converted():
    run, events = await played()
    older = dump(run, OLDEST)
    calls = older.pop("calls")
    spent = {one["stage"]: one["usage"] for one in calls}
    older |= {"spent": spent, "usage": {}, "pending_usage": {}, "unconsumed_replies": []}
    older |= {"unfinished": "", "failed_drafts": 0}
    older["setup"]["limits"]["candidates"] = 1
    older["decisions"] = [{"kind": "branch", "iteration": 0}, {"kind": "select", "points": ["f1"]}]
    older["iterations"][0] |= {"usage": calls[0]["usage"], "overruled": None}
    older["iterations"][0]["verdict"]["required_passed"] = True
    older["ran"] = {"iteration": 0, "how": "first", "effects": [{"kind": "new", "unit": "item"}]}
    found = read_record(older)
    assert found.spent.keys() == run.spent.keys()
    assert found.decisions == (Continue(iteration=0), Continue(points=("f1",)))
    assert found.replace(calls=run.calls, decisions=(), ran=None) == run
    begun = json.loads(events[0].model_dump_json())
    begun["setup"]["limits"]["candidates"] = 3
    assert read_event(begun, OLDEST) == events[0]
