"""`%%refine` where its caller cannot await: in other magics, scripts, threads and programs."""

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.utils.capture import capture_output
from kernel import Kernel, until
from openai_server import Answer, ScriptedServer
from shells import run_cell, scripted_shell

from ipyrefine.errors import UsageError

CODE = "```python\ndef inc(n):\n    return n + 1\n```"
TASK = "Write inc(n), in words that need no sandbox."
OPTIONS = "-p prose --set as=task --critique never"
CELL = f"%%refine {OPTIONS}\n{TASK}"
CALL = f"get_ipython().run_cell_magic('refine', {OPTIONS!r}, {TASK!r})"


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Any:
    return scripted_shell(monkeypatch, [CODE] * 4)


@pytest.fixture(autouse=True)
def no_coroutine_is_dropped() -> Iterator[None]:
    """A coroutine that nobody awaited warns where it is dropped; here that is an error."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    assert [str(w.message) for w in heard if "never awaited" in str(w.message)] == []


async def run_from_a_running_loop(shell: Any, cell: str) -> Any:
    return shell.run_cell(cell)


def run(shell: Any, cell: str) -> Any:
    return shell.run_cell(cell)


def run_inside_a_program(shell: Any, cell: str) -> Any:
    return asyncio.run(run_from_a_running_loop(shell, cell))


@pytest.fixture(params=[run, run_cell, run_inside_a_program], ids=lambda way: way.__name__)
def runner(request: pytest.FixtureRequest) -> Any:
    """A way to run a cell."""
    return request.param


@pytest.mark.parametrize(
    ("outer", "printed"),
    [("", "return n + 1"), ("%%time\n", "Wall time: "), ("%%capture out\n", "")],
)
def test_a_cell_is_refined_inside_another_magic_that_does_its_own_part(
    shell, runner, outer, printed
):
    with capture_output() as captured:
        runner(shell, outer + CELL).raise_error()
    assert "return n + 1" in shell.user_ns["refined"]
    assert printed in captured.stdout
    if not printed:
        assert captured.stdout == ""
        assert "return n + 1" in str(shell.user_ns["out"])


def test_timeit_says_what_to_use_instead_and_refines_nothing(shell, runner):
    error = runner(shell, f"%%timeit\n{CELL}").error_in_exec
    assert isinstance(error, UsageError)
    assert str(error) == "%%timeit would refine the cell several times. Use %%time."
    assert "refined" not in shell.user_ns


@pytest.mark.parametrize(
    "cell", [f"def go():\n    {CALL}\ngo()\n'inc' in refined", f"x = {CALL}\n'inc' in refined"]
)
def test_a_synchronous_caller_has_the_text_when_the_call_returns(shell, runner, cell):
    result = runner(shell, cell)
    result.raise_error()
    assert result.result is True


# In a real kernel


def reply(body: dict[str, Any]) -> Answer:
    stalls = any("Stall" in message["content"] for message in body["messages"])
    return Answer(CODE, chunk=4, stall_after=3) if stalls else Answer(CODE)


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(reply) as running:
        yield running


def settings(server: ScriptedServer, home: str) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": server.base_url,
        "IPYREFINE_MODEL": "m",
        **dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "IPYREFINE_HOME"), home),
    }


@pytest.fixture(scope="module")
def kernel(server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with Kernel(settings(server, str(tmp_path_factory.mktemp("kernel")))) as running:
        running.run("%load_ext ipyrefine")
        yield running


def test_a_kernel_refines_where_nothing_can_be_awaited(kernel):
    for cell in (f"%%time\n{CELL}", f"x = {CALL}"):
        kernel.run("refined = ''")
        assert kernel.run(cell)["status"] == "ok"
        assert "return n + 1" in kernel.value("refined")
    kernel.run("%refine accept")
    assert kernel.value("refined_run.stop_reason.value") == "'accepted'"


def test_an_interrupt_ends_a_blocking_run(kernel, server):
    server.requests.clear()
    server.left.clear()
    request = kernel.start(f"%%time\n{CELL} Stall.")
    until(lambda: server.requests)
    kernel.interrupt()
    content = kernel.finish(request)
    assert (content["status"], content["ename"]) == ("error", "Interrupted")
    assert server.left.wait(20)
    assert kernel.value("refined_run.stop_reason.value") == "'cancelled'"


# In IPython.embed, typed into a pseudo-terminal
