"""An accepted cell that runs in a real kernel: its record, its panel, and what is put back."""

from collections.abc import Iterator
from typing import Any

import pytest
from kernel import Kernel, until
from markupsafe import Markup
from openai_server import ScriptedServer

from ipyrefine.kernel.variables import sandbox_is_closed

pytestmark = pytest.mark.skipif(not sandbox_is_closed(), reason="code can't be shut in here")

CELL = "%%refine -p code -n 0 --critique never --set journal=no {}\nDo it."
RECORD = "application/vnd.ipyrefine.run+json"
TEXT = "total = sum(prices)\nprices = prices[:2]\ntotal"
LATEST = "get_ipython().magics_manager.registry['Refine'].latest"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, warm: Any) -> Iterator[Kernel]:
    answer, home = f"```python\n{TEXT}\n```", str(tmp_path_factory.mktemp("kernel"))
    with ScriptedServer(lambda _: answer) as server:
        env = {"IPYREFINE_MODEL": "m", "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": ""}
        folders = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "IPYREFINE_HOME"), home)
        with Kernel({**env, **folders}) as kernel:
            kernel.run(warm.line)
            kernel.run("%load_ext ipyrefine\n%config Refine.ui = 'widgets'\nimport builtins")
            yield kernel


@pytest.fixture
def kernel(running: Kernel) -> Iterator[Kernel]:
    running.run("prices = [10, 20, 30]\nglobals().pop('total', None)")
    yield running
    running.run("builtins.sum = globals().pop('_sum', sum)")


def accept(kernel: Kernel, options: str = "") -> None:
    assert kernel.run(CELL.format(options))["status"] == "ok"
    assert kernel.run("%refine accept none")["status"] == "ok"
    kernel.outputs()


def run_accepted(kernel: Kernel) -> None:
    assert kernel.run(TEXT)["status"] == "ok"
    until(lambda: kernel.value("refined_run.ran is not None") == "True")


def latest_record(kernel: Kernel) -> str:
    shown = [one["data"] for one in kernel.outputs() if RECORD in one.get("data", {})]
    return Markup(shown[-1]["text/html"]).striptags()


def test_the_panel_waits_to_put_back_what_nothing_was_run_on_and_a_click_does(kernel):
    accept(kernel, "--no-check all")
    assert kernel.value(f"{LATEST}.panel is not None") == "True"
    run_accepted(kernel)
    assert kernel.value("refined_run.ran.back") == "('prices',)"
    parts = f"{LATEST}.panel._render()['top']"
    assert kernel.value(f"'Put back' in {parts}, 'values from before' in {parts}") == "(True, True)"
    assert kernel.value("prices") == "[10, 20]"
    click = "{'action': 'back', 'fields': {}}"
    kernel.value(f"{LATEST}.panel._take({click})")
    assert kernel.value("prices") == "[10, 20, 30]"
    until(lambda: kernel.value(f"{LATEST}.panel is None") == "True")
    assert "; prices put back" in latest_record(kernel)


def test_the_next_cell_closes_the_panel_and_keeps_nothing(kernel):
    accept(kernel, "--no-check all")
    run_accepted(kernel)
    kernel.run("pass")
    until(lambda: kernel.value(f"{LATEST}.panel is None") == "True")
    assert kernel.value(f"{LATEST}._accepted.old") == "{}"
