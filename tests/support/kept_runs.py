"""Runs whose replies a person wrote, as a strong model would: slips and wrong tests included."""

from pathlib import Path
from typing import Any

import pandas

from ipyrefine import refine
from ipyrefine.checks import resolve
from ipyrefine.core.run import Run
from ipyrefine.providers.scripted import ScriptedModel

RUNS = sorted((Path(__file__).parents[1] / "by_hand").glob("*.json"))


async def replay(kept: dict[str, Any]) -> tuple[Run, ScriptedModel]:
    """Return a run on its kept replies, and the model that gave them."""
    options = kept.get("options", {})
    if "schema" in kept:
        options["checks"] = resolve(["schema:wanted"], {"wanted": kept["schema"]})
    if "frame" in kept:
        orders = pandas.DataFrame(kept["frame"])
        options["variables"] = {"orders": orders.assign(when=pandas.to_datetime(orders["when"]))}
    model = ScriptedModel(kept["replies"])
    return await refine(kept["task"], model=model, journal=False, **options), model
