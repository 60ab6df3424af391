"""The tools for agents, on a real kernel that a server on loopback tells of."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from jupyter_client import KernelManager

from ipyrefine import agents

SETUP = """import pandas as pd
orders = pd.DataFrame({'id': range(6), 'shop': list('ABACBD')})
towns = pd.DataFrame({'shop': ['A', 'B'], 'town': ['Ulm', 'Jena']})"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A notebook that is open in a kernel: what its server tells, its client and its file."""
    folder = tmp_path_factory.mktemp("served")
    runtime = folder / "runtime"
    runtime.mkdir()
    session = {
        "type": "notebook",
        "path": "sales/x.ipynb",
        "kernel": {"id": "k", "execution_state": "idle"},
    }

    class Sessions(BaseHTTPRequestHandler):
        def do_GET(self):
            allowed = self.headers["Authorization"] == "token s3"
            self.send_response(200 if allowed else 403)
            self.end_headers()
            self.wfile.write(json.dumps([session]).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Sessions)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    told = {"url": url, "token": "s3", "root_dir": str(folder)}
    (runtime / "jpserver-1.json").write_text(json.dumps(told))
    (runtime / "jpserver-mcp-1.json").write_text("{}")
    kernel = KernelManager(connection_file=str(runtime / "kernel-k.json"))
    kernel.start_kernel()
    client = kernel.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        client.execute_interactive(SETUP, timeout=60)
        yield session, client, folder / "sales/x.ipynb"
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
        server.shutdown()
        server.server_close()


@pytest.fixture
def opened(served, monkeypatch):
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(served[2].parents[1] / "runtime"))
    return served


def look(notebook, code):
    return asyncio.run(agents.look(str(notebook), code))


def test_a_look_tells_what_code_does_to_the_kernels_data(opened):
    assert "2 of 6 rows of `orders` are gone" in look(opened[2], "orders.merge(towns)")
    assert look("sales/x.ipynb", ["n = len(orders)", "n"]).endswith("The answer: 6")


def test_a_look_leaves_no_name_count_or_history(opened):
    _, client, path = opened
    look(path, "left = 3")
    reply = client.execute("", user_expressions={"seen": "('left' in globals(), len(In))"})
    while (said := client.get_shell_msg(timeout=60))["parent_header"].get("msg_id") != reply:
        pass
    assert said["content"]["user_expressions"]["seen"]["data"]["text/plain"] == "(False, 2)"


def test_a_notebook_that_is_not_open_is_answered_with_those_that_are(opened):
    assert look("y.ipynb", "1") == f"y.ipynb is not open in a running kernel. Open: {opened[2]}."


def test_a_busy_kernel_is_not_waited_for(opened):
    session, _, path = opened
    session["kernel"]["execution_state"] = "busy"
    assert "is running a cell" in look(path, "1")
    session["kernel"]["execution_state"] = "idle"


def test_a_kernel_without_ipyrefine_is_told_how_to_get_it(opened):
    _, client, path = opened
    client.execute_interactive("import sys; sys.modules['ipyrefine'] = None", timeout=60)
    assert "%pip install ipyrefine" in look(path, "1")
    client.execute_interactive("del sys.modules['ipyrefine']", timeout=60)
