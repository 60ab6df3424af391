"""A run as a file of its own."""

import json

import pytest
from kit import finished

import ipyrefine
from ipyrefine.core.stored import VERSION
from ipyrefine.errors import UsageError
from ipyrefine.session.export import export


async def test_an_exported_run_is_read_back_whole(tmp_path):
    run = await finished()
    path = export(run, tmp_path / "run.json")
    assert ipyrefine.load(path) == [run]
    exported = {"ipyrefine": {"run": json.loads(path.read_text())}}  # by an older version
    path.write_text(json.dumps({"nbformat": 4, "cells": [], "metadata": exported}))
    assert ipyrefine.load(path) == [run]


async def test_an_existing_file_is_replaced_only_by_force(tmp_path):
    run = await finished()
    path = export(run, tmp_path / "run.json")
    path.write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        export(run, path)
    assert path.read_text() == "mine"
    assert json.loads(export(run, path, force=True).read_text())["version"] == VERSION


@pytest.mark.parametrize(("name", "said"), [("run.pdf", "ending"), ("no/run.json", "cannot be")])
async def test_a_place_that_cannot_be_written_is_named(tmp_path, name, said):
    run = await finished()
    with pytest.raises(UsageError, match=said):
        export(run, tmp_path / name)
