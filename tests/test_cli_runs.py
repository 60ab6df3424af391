"""`ipyrefine history | export | run`."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.provisioning import local_provisioner
from kernel import fork_kernel
from kit import READY, finished, text
from kit import greeting as refinement
from openai_server import ScriptedServer

import ipyrefine as package
from ipyrefine import cli
from ipyrefine.core.model import Outcome, StopReason, Verdict
from ipyrefine.errors import UsageError
from ipyrefine.journal.writer import Recorder, default_path
from ipyrefine.session.record import write_file

REFINE = "%%refine -m scripted -p prose --criteria tone --target 0.8 -n 1"


@pytest.fixture
def ipyrefine(capfd, monkeypatch, warm_kernels):
    """The command line, in this process; kernels are forked.

    It returns the exit status, and what was written.
    """
    monkeypatch.setattr(local_provisioner, "launch_kernel", partial(fork_kernel, forked=True))

    def command(*words: str) -> tuple[int, str, str]:
        return cli.main([*words]), *capfd.readouterr()

    return command


def notebook(path: Path, *sources: str, tags: tuple[str, ...] = ()) -> Path:
    v4: Any = nbformat.v4
    cells = [v4.new_code_cell(source) for source in sources]
    if tags:
        cells[0].metadata["tags"] = list(tags)
    path.write_text(json.dumps(v4.new_notebook(cells=cells)), "utf-8")
    return path


@pytest.fixture
async def journalled() -> None:
    await refinement().run(journal=Recorder(default_path(), name="greeting"))


@pytest.mark.usefixtures("journalled")
@pytest.mark.parametrize(("words", "sentence"), [
    (["history", "\udcff"], "No run in the journal matches."),
    (["history", "-n", "-1"], "greeting"),
    (["export", "\udcff", "x.json"], "There is no run '\\udcff' in the journal."),
    (["export", "1", "\udcff\0.json"], "cannot be written (embedded null byte)."),
    (["check", "\0.ipynb"], "cannot be read ("),
    (["report", "x" * 300 + ".ipynb"], "cannot be read (File name too long)."),
])  # fmt: skip
def test_a_name_that_none_can_have_is_a_sentence(ipyrefine, words, sentence):
    _, out, err = ipyrefine(*words)
    assert sentence in out + err


@pytest.mark.usefixtures("journalled")
def test_history_and_export_work_without_a_notebook(ipyrefine, tmp_path):
    status, out, _ = ipyrefine("history", "greeting")
    assert status == 0
    assert "PASS" in out
    file = str(tmp_path / "run.json")
    assert ipyrefine("export", "greeting", file)[0] == 0
    assert package.load(file)[0].text == "Version 1"
    status, _, err = ipyrefine("export", "greeting", file)
    assert status == 1
    assert err.startswith("ipyrefine: ")
    assert "exists" in err
    _, _, err = ipyrefine("export", "99", file)
    assert "`history` lists them" in err, "here as in a cell"


def test_run_executes_a_notebook_and_ends_with_its_verdicts(ipyrefine, monkeypatch, tmp_path):
    good, bad = (f"{REFINE}\nWrite a {word}." for word in ("greeting", "farewell"))
    path = notebook(tmp_path / "x.ipynb", "%load_ext ipyrefine", good, bad, "print(refined, name)")
    with ScriptedServer() as server:
        high, low = (json.dumps({"score": score}) for score in (9, 4))
        server.then(text("Hello"), high, text("Bye"), low, text("Bye, you"), low)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        ended, out, err = ipyrefine("run", str(path), "-p", "name=Ada", "--accept", "best")
    assert ended == 1, err
    assert "Executing: 100%" in err
    assert "WARNING" not in err  # of a kernel that is reached without encryption
    assert "PASS" in out.splitlines()[0]
    assert "PASS" not in out.splitlines()[1]
    executed: Any = nbformat.read(tmp_path / "x.refined.ipynb", as_version=4)
    assert "Ada" in executed.cells[-1].outputs[0].text
    runs = package.load(tmp_path / "x.refined.ipynb")
    assert [(one.text, one.stop_reason == "accepted") for one in runs] == [
        ("Hello", True),
        ("Bye", False),
    ]
    assert ["skip-execution" in one.metadata.get("tags", ()) for one in executed.cells[2:4]] == [
        True,
        False,
    ]


TASK = "%%refine -m scripted -p prose --criteria tone -n 0\nWrite a greeting."


def test_a_cell_that_somebody_accepted_makes_no_call_headless(ipyrefine, monkeypatch, tmp_path):
    path = notebook(tmp_path / "x.ipynb", "%load_ext ipyrefine", TASK, "%refine accept")
    path.write_text(path.read_text().replace('"metadata": {}', '"metadata": {"ipyrefine": "mine"}'))
    saved = tmp_path / "x.refined.ipynb"
    with ScriptedServer() as server:
        server.then(text("Hello"), READY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert ipyrefine("run", str(path))[0] == 0
        asked = len(server.requests)
        assert asked
        assert ipyrefine("run", str(path), "-o", str(tmp_path / "y.ipynb"))[0] == 0  # the journal's
        monkeypatch.setenv("IPYREFINE_HOME", str(tmp_path))  # another machine, with the file
        monkeypatch.delenv("OPENAI_BASE_URL")
        assert ipyrefine("run", str(saved), "-o", str(saved))[0] == 0
        assert len(server.requests) == asked
    decided: Any = nbformat.read(saved, as_version=4)
    tagged = {"tags": ["skip-execution"], "ipyrefine": {"skips": True}}
    assert tagged.items() <= decided.cells[1].metadata.items()
    assert [one.text for one in package.load(saved)] == ["Hello"]


def test_a_name_that_an_undecided_cell_would_give_names_that_cell(ipyrefine, tmp_path):
    cells = ("%load_ext ipyrefine", "%%refine --draft -n 0\nnet = 3", "total = 4", "net + total")
    path = notebook(tmp_path / "x.ipynb", *cells)
    code, _, err = ipyrefine("run", str(path), "-o", str(tmp_path / "y.ipynb"))
    assert (code, err.strip().split("failed: ")[1]) == (
        2,
        "NameError: name 'net' is not defined. "
        "`net` is bound by the text of cell [2], which has not run.",
    )


@pytest.mark.parametrize(("source", "status", "sentence"), [
    ("{}['price']", 2, "Cell 2 failed: KeyError: 'price'"),
    ("import os; os._exit(1)", 2, "kernel died in cell 2"),
    ("'\ud800'", 2, "Cell 2 holds a character that is none"),
    ("print('nothing to refine')", 4, "no %%refine cell"),
])  # fmt: skip
def test_a_failed_cell_ends_with_2_no_refine_cell_with_4_and_both_are_written_as_far_as_they_got(
    ipyrefine, tmp_path, source, status, sentence
):
    path = notebook(tmp_path / "x.ipynb", "print('begun')", source)
    code, _, err = ipyrefine("run", str(path), "-o", str(tmp_path / "out.ipynb"))
    assert code == status
    assert sentence in err
    assert "Traceback" not in err
    executed: Any = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert executed.cells[0].outputs[0].text == "begun\n"


@pytest.mark.parametrize(("words", "sentence"), [
    (["none.ipynb"], "cannot be read"),
    ([__file__], "is no notebook"),
    (["pipe.ipynb"], "is not a file"),
    (["x.ipynb", "-o", "none/out.ipynb"], "cannot be written"),
    (["x.ipynb", "-p", "no value"], "NAME=VALUE"),
    (["x.ipynb", "-p", "class=1"], "NAME=VALUE"),
])  # fmt: skip
def test_what_cannot_be_run_is_an_error_in_words(ipyrefine, monkeypatch, tmp_path, words, sentence):
    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "x.ipynb", "1")
    os.mkfifo("pipe.ipynb")
    executed = list[Any]()
    monkeypatch.setattr(cli, "execute", lambda *_: executed.append(_))
    code, _, err = ipyrefine("run", *words)
    assert code == 2
    assert sentence in err
    assert executed == []  # nothing ran that cannot be written


@pytest.mark.parametrize("change", [
    lambda text: "\ufeff" + text,
    lambda text: text.encode("utf-16"),
    lambda text: text.replace('"metadata": {}', '"metadata": {"score": NaN}'),
    lambda text: text.replace("\n", "\r\n"),
])  # fmt: skip
def test_a_notebook_that_another_tool_wrote_runs_and_is_written(ipyrefine, tmp_path, change):
    path = notebook(tmp_path / "x.ipynb", "print(1)  # end")
    changed = change(path.read_text("utf-8"))
    path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
    code, _, err = ipyrefine("run", str(path), "-o", str(tmp_path / "out.ipynb"))
    assert (code, "no %%refine cell" in err) == (4, True)
    executed: Any = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert executed.cells[0].outputs[0].text == "1\n"


def test_a_full_disk_leaves_what_a_file_held(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "x.json"
    path.write_text("before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(UsageError, match=r"x\.json cannot be written \(File too large\)"):
            write_file(path, "x" * 200)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "before"


def test_parameters_follow_the_tagged_cell_and_replace_earlier_ones(tmp_path):
    path = notebook(tmp_path / "x.ipynb", "n = 1", "print(n)", tags=("parameters",))
    read: Any = nbformat.read(path, as_version=4)
    for value in (2, 3):
        cli.inject_parameters(read, {"n": value})
    assert [cell.source for cell in read.cells] == ["n = 1", "n = 3", "print(n)"]
    nbformat.validate(read)


async def test_not_judged_has_an_exit_status_of_its_own():
    passed = await finished(scores=(10,))
    unmet = await finished(scores=(4,))
    verdict = Verdict(outcome=Outcome.NOT_JUDGED, score=None)
    texts = tuple(one.replace(verdict=verdict) for one in unmet.iterations)
    nothing = unmet.replace(iterations=texts, stop_reason=StopReason.UNJUDGED)
    assert cli.summarize(0, nothing) == "0: ? NOT JUDGED"
    accepted = nothing.replace(stop_reason=StopReason.ACCEPTED)
    assert cli.exit_status([passed, accepted]) == 0
    assert cli.exit_status([passed, nothing]) == 3
    assert cli.exit_status([nothing, unmet]) == 1
