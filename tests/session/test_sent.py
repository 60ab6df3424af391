"""What was sent to a model, kept for the user to read."""

from kit import greeting

from ipyrefine.session.session import SentLog


async def test_every_request_is_kept_with_its_stage_and_model_in_order():
    log, loop = SentLog(), greeting("Write to Ann.", model="m")
    loop.model = loop.judge = log.watch(loop.model)
    run = await loop.run()
    titles = [title for title, _ in log.prompts]
    assert titles[:2] == ["1 · Writing · m", "2 · Evaluating · m"]
    assert len(titles) == run.usage.calls
    assert all("Write to Ann." in text for _, text in log.prompts)
    assert loop.model.name == "m"
