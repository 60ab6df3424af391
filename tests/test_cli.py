"""The command line, as a process of its own, against a real server or the real model."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import nbformat
import pytest
from kit import READY
from nbformat.sign import NotebookNotary
from openai_server import ScriptedServer

from ipyrefine import cli, demo

AVERAGE = """Missing grades do not count.
```python
def average(grades):
    known = [grade for grade in grades if grade is not None]
    if not known:
        return None
    return sum(known) / len(known)
```"""


def ipyrefine(*words: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "ipyrefine", *words]
    environment = {**os.environ, "COLUMNS": "80", **(env or {})}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_without_a_command_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    out, err = capsys.readouterr()
    assert "refine a sample task" in out
    assert not err


def test_the_demo_uses_the_server_that_is_configured_and_fits_one_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with ScriptedServer() as server:
        server.then(AVERAGE.replace("len(known)", "len(grades)"), AVERAGE, READY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert cli.main(["demo", "-m", "scripted"]) == 0
    out, err = capsys.readouterr()
    assert not err
    parts = (
        "Interpreted as: task (code), 3 examples",
        "Draft: ✎ NEEDS IMPROVEMENT · examples failed\n  average([1, None, 3]): expected 2,",
        "── Revision 1: ✓ PASS · 3 examples ──",
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


def test_the_demo_replays_a_recorded_run_without_a_model_or_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SPEED", 500)
    assert cli.main(["demo", "--replay"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "Draft: ✎ NEEDS IMPROVEMENT · examples failed" in out
    assert "── Draft 2: ✓ PASS · 3 examples" in out
    assert "replay of recording.json" in out
    assert "ipyrefine demo\nNext, in Jupyter" in out
    assert "⚠" not in out
    assert "Live:  ipyrefine demo" in out
    assert cli.main(["demo", "--replay", "-m", "x"]) == 1
    assert capsys.readouterr().err == "ipyrefine: --replay needs no model. Leave out --model.\n"


def test_a_first_run_says_size_time_and_the_alternative_before_it_fetches(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    env = {"IPYREFINE_MODEL_DIR": str(tmp_path), "HF_HUB_OFFLINE": "1", "PIP_NO_INDEX": "1"}
    (tmp_path / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf.download").write_text("in the way")
    code, out, err = ipyrefine("demo", "-m", "qwen2.5-coder-0.5b", env=env)
    assert code == 1
    assert "Fetching qwen2.5-coder-0.5b: 0.5 GB, about 1 min" in out
    assert "OPENAI_API_KEY,\nor see a recorded run with `ipyrefine demo --replay`" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "cannot be stored" in err


def test_a_server_that_is_not_there_is_named_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with ScriptedServer() as gone:
        monkeypatch.setenv("OPENAI_BASE_URL", gone.base_url)
        monkeypatch.setenv("IPYREFINE_MODEL", "m")
    assert cli.main(["demo"]) == 1
    out, err = capsys.readouterr()
    assert (out + err).count("No connection to") == 1
    assert "trying again" not in out + err


def test_the_notebooks_open_before_any_model_is_fetched(tmp_path: Path) -> None:
    """They replay recordings, so that a newcomer need not wait for a download."""
    (tmp_path / "jupyterlab.py").write_text(
        "import os, sys\nprint('OPENED', *sys.argv[1:], os.environ.get('IPYREFINE_MODEL'))"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    env = {"PYTHONPATH": path, "IPYREFINE_MODEL_DIR": str(tmp_path)}
    code, out, err = ipyrefine("demo", "--lab", "--model", "qwen2.5-coder-0.5b", env=env)
    assert (code, err) == (0, "")
    assert "`ipyrefine pull qwen2.5-coder-0.5b` (0.5 GB)" in out
    words = out.splitlines()[-1].split()
    assert (words[0], words[-1]) == ("OPENED", "qwen2.5-coder-0.5b")
    opened = Path(words[1])
    assert opened.name == "00-rows-that-went-missing.ipynb"
    assert NotebookNotary().check_signature(nbformat.read(opened, as_version=4)), "it is trusted"
    opened.write_text("{}")
    code, out, _ = ipyrefine("demo", "--lab", env=env)
    assert code == 0
    assert opened.read_text() == "{}", "what the user made of a copy stays"
    assert "Delete one to get a fresh copy" in out
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    assert ("--allow-root" in words) is root
    assert ("Starting it with --allow-root." in out) is root


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_is_for_jupyterlab_to_answer(tmp_path: Path) -> None:
    """The demo neither kills it nor prints a word of its own."""
    (tmp_path / "jupyterlab.py").write_text(
        "import time\n"
        "try:\n"
        "    print('READY', flush=True)\n"
        "    time.sleep(60)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(0.3)\n"
        "    print('ENDED IN ORDER', flush=True)\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    output_path = tmp_path / "output"
    with (
        output_path.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-m", "ipyrefine", "demo", "--lab"],
            env=os.environ | {"PYTHONPATH": path},
            stdout=output,
            stderr=output,
            start_new_session=True,
            # A test run that was started in the background hands its deafness to Ctrl-C on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as demo,
    ):
        while "READY\n" not in output_path.read_text():
            assert demo.poll() is None
            time.sleep(0.05)
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        assert demo.wait(timeout=180) == 0
    assert output_path.read_text().partition("READY\n")[2] == "ENDED IN ORDER\n"


def test_an_interrupt_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run_demo", interrupt)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "ipyrefine: Interrupted.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["demo", "--modle", "x"], "there is no option --modle. Did you mean --model?"),
        (["run", "a.ipynb", "more"], "unexpected argument 'more'."),
        (["frobnicate"], "usage: ipyrefine"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_with_a_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(words)
    assert sentence in capsys.readouterr().err


@pytest.mark.model
def test_the_demo_runs_in_a_terminal_from_an_empty_cache(tmp_path: Path) -> None:
    """It fetches the weights with a progress bar, refines on them, and says how to go on."""
    import pexpect

    env = {**os.environ, "IPYREFINE_MODEL_DIR": str(tmp_path), "TERM": "xterm"}
    command = [sys.executable, "-m", "ipyrefine", "demo", "-m", "qwen2.5-coder-0.5b", "-n", "1"]
    terminal = pexpect.spawn(
        command[0], command[1:], env=env, dimensions=(40, 100), timeout=1800, encoding="utf-8"
    )
    for output in ("MB", "Writing · draft", "Draft: ", "%%refine", "leave it:"):
        terminal.expect(output)
    terminal.send("\r")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
