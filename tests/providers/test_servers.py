"""What is remembered of servers across kernels."""

from pathlib import Path

import pytest

from ipyrefine.folders import home
from ipyrefine.providers.servers import facts_about, remember_about

URL = "http://127.0.0.1:8123/v1"


def test_facts_about_a_server_are_there_for_the_next_kernel() -> None:
    assert facts_about(URL) == {}
    assert remember_about(URL, share="never")
    assert remember_about(URL, models={"gpt-5": {"rejected": ["logprobs"]}})
    assert facts_about(URL) == {"share": "never", "models": {"gpt-5": {"rejected": ["logprobs"]}}}
    assert facts_about("http://127.0.0.1:9/v1") == {}


def test_none_forgets_a_fact() -> None:
    remember_about(URL, share="never")
    remember_about(URL, share=None)
    assert facts_about(URL) == {}


@pytest.mark.parametrize("content", ["", "{", "[1]", f'{{"{URL}": 3}}', "[" * 100_000, "\0"])
def test_a_damaged_file_says_nothing_and_is_replaced(content: str) -> None:
    home().mkdir(parents=True, exist_ok=True)
    (home() / "servers.json").write_text(content)
    assert facts_about(URL) == {}
    assert remember_about(URL, share="always")
    assert facts_about(URL) == {"share": "always"}


def test_a_folder_that_cannot_be_made_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("IPYREFINE_HOME", str(file))
    assert not remember_about(URL, share="always")
    assert facts_about(URL) == {}
