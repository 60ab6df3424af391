"""Profiles as data: the built-in ones, and a user's own."""

import os
import sys
from pathlib import Path

import pytest

from ipyrefine import build, profiles
from ipyrefine.core.model import Limits
from ipyrefine.errors import UsageError
from ipyrefine.providers.scripted import ScriptedModel

OWN = {"criteria": {"wit": "It makes one smile.", "length": {"definition": "Short."}}}


@pytest.mark.parametrize("name", profiles.NAMES)
def test_a_built_in_profile_says_all_that_a_loop_asks_of_it(name):
    profile = profiles.builtin()[name]
    assert 3 <= len(profile.criteria) <= 5
    assert all(
        c.definition.endswith(".") and c.definition.count(".") == 1 for c in profile.criteria
    )
    assert 3 <= len(profile.checklist) <= 5
    assert all(question.endswith("?") for question in profile.checklist)
    assert len(profile.categories) >= 4
    assert profile.summary.endswith(".")


def test_a_profiles_own_target_leaves_critiques_on_and_the_users_switches_them_off():
    profile = profiles.find("data")
    assert profile.limited().critique == "auto"
    assert profile.limited(Limits(target=0.5)).critique == "never"
    assert profile.limited(Limits(target=0.5, critique="always")).critique == "always"


def test_a_dict_or_a_toml_file_is_a_profile_that_hides_a_built_in_one(tmp_path):
    own = profiles.find("email", {"email": OWN})
    assert (own.name, [c.name for c in own.criteria]) == ("email", ["wit", "length"])
    assert own.criteria[1].definition == "Short."
    path = tmp_path / "limerick.toml"
    path.write_text('[criteria]\nwit = "It makes one smile."\n[limits]\ntarget = 0.7\n')
    read = profiles.find(str(path))
    assert (read.name, read.limited().target) == ("limerick", 0.7)


@pytest.mark.parametrize(("name", "message"), [
    ("emial", "Did you mean email?"),
    ("wity", "Did you mean witty?"),
    ("number", "is a variable of type int; a profile is a dict"),
    ("nowhere.toml", "There is no profile file 'nowhere.toml'."),
])  # fmt: skip
def test_an_unknown_name_gets_a_sentence_with_near_matches(name, message):
    with pytest.raises(UsageError) as raised:
        profiles.find(name, {"witty": OWN, "number": 3})
    assert message in str(raised.value)


@pytest.mark.parametrize(("content", "message"), [
    ({}, "criteria is missing."),
    ({"criterai": {"wit": "x"}, **OWN}, "it has no 'criterai'."),
    ({**OWN, "limits": {"target": 5}}, "limits.target: input should be less than"),
    ({**OWN, "checklist": "Is it short?"}, "checklist: input should be a valid tuple"),
    ({**OWN, "form": "poem"}, "form: input should be 'code' or 'prose'"),
])  # fmt: skip
def test_a_profile_that_is_not_valid_gets_a_sentence_that_names_the_fault(content, message):
    with pytest.raises(UsageError) as raised:
        profiles.find("mine", {"mine": content})
    assert "The profile 'mine'" in str(raised.value)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices of POSIX")
def test_what_never_ends_is_not_read_as_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (str(tmp_path / "pipe.toml"), str(tmp_path), "/dev/zero"):
        for options, what in (
            ({"profile": Path(path)}, "is not a file"),
            ({"model": f"recorded:{path}"}, "is not a file"),
            ({"checks": ["tests:t"], "namespace": {"t": Path(path)}}, "no readable file"),
        ):
            with pytest.raises(UsageError, match=what):
                build("Write f.", **{"model": ScriptedModel([]), **options})


def test_a_file_that_is_not_toml_is_refused_by_its_name(tmp_path):
    path = tmp_path / "x.toml"
    path.write_text("criteria = [")
    with pytest.raises(UsageError, match=r"x\.toml' is not TOML"):
        profiles.find(path)
    with pytest.raises(UsageError, match=r"Did you mean .*x\.toml"):
        profiles.find(tmp_path / "xx.toml")
    path.write_text("criteria = " + "[" * 3_000)
    with pytest.raises(UsageError, match=r"x\.toml' is not TOML"):
        profiles.find(path)


def test_a_file_of_an_editor_on_windows_is_read(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xef\xbb\xbf[criteria]\r\ntone = 'Warm.'\r\n")
    assert profiles.find(path).criteria[0].definition == "Warm."
