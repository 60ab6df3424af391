"""The command line, as a process of its own, against a real server or the real model."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from kit import READY
from nbformat.sign import NotebookNotary
from openai_server import ScriptedServer

import ipyrefine
from ipyrefine import cli, demo

AVERAGE = """Missing grades do not count.
```python
def average(grades):
    known = [grade for grade in grades if grade is not None]
    if not known:
        return None
    return sum(known) / len(known)
```"""


STUB = "import os, sys, time\nprint('OPENED', *sys.argv[1:], os.environ.get('IPYREFINE_MODEL'))\n"


def pretend_jupyterlab(folder, monkeypatch, source):
    """Have a module of that name, which says what it was started with."""
    (folder / "jupyterlab.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    monkeypatch.syspath_prepend(folder)


def test_without_a_command_it_prints_help_and_its_version_where_asked(capsys):
    assert cli.main([]) == 0
    out, err = capsys.readouterr()
    assert "refine a sample task" in out
    assert not err
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"ipyrefine {ipyrefine.__version__}\n"


def test_the_demo_uses_the_server_that_is_configured_and_fits_one_screen(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    with ScriptedServer() as server:
        server.then(AVERAGE.replace("len(known)", "len(grades)"), AVERAGE, READY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert cli.main(["demo", "-m", "scripted"]) == 0
    out, err = capsys.readouterr()
    assert not err
    parts = (
        "Interpreted as: task (code), 3 examples",
        "Draft: ✎ NEEDS IMPROVEMENT · average([1, None, 3]): expected 2,",
        "── Revision 1: ✓ PASS · 3 of 3 examples hold ──",
        "Changes from the draft:",
        "len(known)",
        "✓  3 of 3 examples hold",
        "%%refine",
    )
    places = [out.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert len(out.splitlines()) <= 24
    assert max(map(len, out.splitlines())) <= 80


def test_the_demo_replays_a_recorded_run_without_a_model_or_a_key(monkeypatch, capsys):
    monkeypatch.setattr(demo, "SPEED", 500)
    assert cli.main(["demo", "--replay"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "Draft: ✎ NEEDS IMPROVEMENT · average(" in out
    assert "── Draft 2: ✓ PASS · 3 of 3 examples hold" in out
    assert "replay of recording.json" in out
    assert "ipyrefine demo\nNext, in Jupyter" in out
    assert "⚠" not in out
    assert "Live:  ipyrefine demo" in out
    assert cli.main(["demo", "--replay", "-m", "x"]) == 1
    assert capsys.readouterr().err == "ipyrefine: --replay needs no model. Leave out --model.\n"


def test_a_first_run_says_size_time_and_the_alternative_before_it_fetches(tmp_path):
    pytest.importorskip("xllamacpp")
    (tmp_path / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf.download").write_text("in the way")
    env = {"IPYREFINE_MODEL_DIR": str(tmp_path), "HF_HUB_OFFLINE": "1", "PIP_NO_INDEX": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "ipyrefine", "demo", "-m", "qwen2.5-coder-0.5b"],
        env=os.environ | env | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "Fetching qwen2.5-coder-0.5b: 0.5 GB, about 1 min" in done.stdout
    assert "OPENAI_API_KEY,\nor see a recorded run with `ipyrefine demo --replay`" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "cannot be stored" in done.stderr


def test_a_server_that_is_not_there_is_named_once(monkeypatch, capsys):
    with ScriptedServer() as gone:
        monkeypatch.setenv("OPENAI_BASE_URL", gone.base_url)
        monkeypatch.setenv("IPYREFINE_MODEL", "m")
    assert cli.main(["demo"]) == 1
    out, err = capsys.readouterr()
    assert (out + err).count("No connection to") == 1
    assert "trying again" not in out + err


def test_the_notebooks_open_before_any_model_is_fetched(tmp_path, monkeypatch, capfd):
    """They replay recordings, so that a newcomer need not wait for a download."""
    pretend_jupyterlab(tmp_path, monkeypatch, STUB)
    monkeypatch.setenv("IPYREFINE_MODEL_DIR", str(tmp_path))
    assert cli.main(["demo", "--lab", "--model", "qwen2.5-coder-0.5b"]) == 0
    out, err = capfd.readouterr()
    assert not err
    assert "`ipyrefine pull qwen2.5-coder-0.5b` (0.5 GB)" in out
    words = out.splitlines()[-1].split()
    assert (words[0], words[-1]) == ("OPENED", "qwen2.5-coder-0.5b")
    opened = Path(words[1])
    assert opened.name == "00-rows-that-went-missing.ipynb"
    notary = NotebookNotary()
    assert notary.check_signature(nbformat.read(opened, as_version=4)), "it is trusted"
    notary.store.close()
    opened.write_text("{}")
    assert cli.main(["demo", "--lab"]) == 0
    out, _ = capfd.readouterr()
    assert opened.read_text() == "{}", "what the user made of a copy stays"
    assert "Delete one to get a fresh copy" in out
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    assert ("--allow-root" in words) is root
    assert ("Starting it with --allow-root." in out) is root


def test_an_interrupt_is_one_sentence(monkeypatch, capsys):
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_demo", interrupt)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "ipyrefine: Interrupted.\n"


@pytest.mark.parametrize(("words", "sentence"), [
    (["demo", "--modle", "x"], "there is no option --modle. Did you mean --model?"),
    (["run", "a.ipynb", "more"], "unexpected argument 'more'."),
    (["frobnicate"], "usage: ipyrefine"),
])  # fmt: skip
def test_a_line_that_cannot_be_read_is_refused_with_a_sentence(words, sentence, capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)
    assert sentence in capsys.readouterr().err


@pytest.mark.model
def test_the_demo_runs_in_a_terminal_from_an_empty_cache(tmp_path):
    """It fetches the weights with a progress bar, refines on them, and says how to go on."""
    import pexpect

    env = {**os.environ, "IPYREFINE_MODEL_DIR": str(tmp_path), "TERM": "xterm"}
    command = [sys.executable, "-m", "ipyrefine", "demo", "-m", "qwen2.5-coder-0.5b", "-n", "1"]
    terminal = pexpect.spawn(
        command[0], command[1:], env=env, dimensions=(40, 100), timeout=1800, encoding="utf-8"
    )
    for output in ("MB|part", "Writing · draft", "Draft: ", "%%refine", "leave it:"):
        terminal.expect(output)
    terminal.send("\r")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
