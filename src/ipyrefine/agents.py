"""Tools for agents: a look at code on copies of an open notebook's variables.

Jupyter's own MCP server finds them by an entry point and runs them in the server's process;
``ipyrefine mcp`` serves them over standard input and output, and asks the servers that run here.
The kernel is asked in silence: no output, name, count or history is left in the notebook.
"""

import ast
import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from ipyrefine.errors import UsageError

TOOLS = ["ipyrefine.agents:look", "ipyrefine.agents:check"]  # as Jupyter's MCP server reads them
_SECONDS = 20.0  # after which an answer is given up
_BUSY = "The kernel of {} is running a cell. Nothing was looked at; ask again when it is done."
_NO_ANSWER = "The kernel of {} gave no answer in {:g} seconds. Nothing was looked at."
_MISSING = (
    "ipyrefine is not installed in the kernel of {0}. Run `%pip install ipyrefine` in a cell of it."
)
_NOT_OPEN = "{} is not open in a running kernel. Open: {}."
_CHECK = (
    "Run this in a shell: `ipyrefine check {0}`. It runs all cells for real in a fresh kernel and "
    "says which outputs are not as saved. This tool runs none, as no sandbox holds a whole kernel."
)


class _Notebook(NamedTuple):
    """A notebook that is open in a kernel.

    Attributes:
        path: its file, with all folders resolved.
        kernel: the kernel's id.
        state: what its server last heard of it: ``idle``, ``busy``, ``starting``.
    """

    path: str
    kernel: str
    state: str


async def look(notebook: str, code: str | list[str]) -> str:
    """Say what code would give and do to the data of an open notebook; nothing there changes.

    It runs on copies of the notebook's variables, in a sandbox. Call it before you write or run a
    cell that reads, joins, filters, fills or drops, and to see anything: `look(nb, "df.head()")`.

    Args:
        notebook: the path of a notebook that is open in a kernel.
        code: a cell, or several that run one after the other.

    Returns:
        The error, rows that are gone, values that changed, files that would be written, what was
        not followed, and the value of the last line: at most 2,000 characters.
    """
    open_here = [one async for one in _open_notebooks()]
    wanted = os.path.realpath(notebook)  # noqa: ASYNC240 - it blocks for no longer than a stat
    found = [one for one in open_here if one.path == wanted]
    if not found:  # an agent may name it as its server does
        named = [one for one in open_here if one.path.endswith(os.sep + notebook.lstrip("./"))]
        found = named if len(named) == 1 else []
    if not found:
        listed = ", ".join(one.path for one in open_here) or "none"
        return _NOT_OPEN.format(notebook, listed)
    one = found[0]
    if one.state == "busy":
        return _BUSY.format(notebook)
    try:
        async with asyncio.timeout(_SECONDS), _client(one.kernel) as client:
            return await _ask(client, notebook, code)
    except (TimeoutError, RuntimeError, OSError):
        return _NO_ANSWER.format(notebook, _SECONDS)


async def check(notebook: str) -> str:
    """Say how to run a whole notebook and compare what it gives with what is saved.

    Args:
        notebook: its path.
    """
    return _CHECK.format(notebook)


def serve() -> None:
    """Serve the tools over standard input and output until that is closed.

    Raises:
        UsageError: the package mcp is missing.
    """
    try:
        try:
            from mcp.server import MCPServer as Server  # from version 2 on
        except ImportError:
            from mcp.server.fastmcp import FastMCP as Server
    except ImportError:
        raise UsageError('This needs the package mcp: `pip install "ipyrefine[mcp]"`.') from None
    server = Server("ipyrefine")
    for tool in (look, check):
        server.tool()(tool)
    server.run("stdio")


def skill() -> str:
    """Return what an agent has to know of the tools, as the text of a skill."""
    return (files("ipyrefine") / "skill/SKILL.md").read_text("utf-8").rstrip()


async def ask(client: Any, look: str) -> dict[str, Any]:
    """Return a kernel's answer to an expression, as Jupyter has it; nothing is left behind.

    Args:
        client: an asynchronous client of the kernel.
        look: the expression.
    """
    sent = client.execute("", silent=True, store_history=False, user_expressions={"look": look})
    while (reply := await client.get_shell_msg())["parent_header"].get("msg_id") != sent:
        pass
    return dict(reply["content"].get("user_expressions", {}).get("look", {}))


async def _ask(client: Any, notebook: str, code: str | list[str]) -> str:
    asked = f"str(__import__('ipyrefine').look({code!r}, get_ipython().user_ns))"
    answer = await ask(client, asked)
    if answer.get("status") == "ok":
        return str(ast.literal_eval(answer["data"]["text/plain"]))
    if answer.get("ename") in ("ModuleNotFoundError", "AttributeError"):
        return _MISSING.format(notebook)
    return f"{answer.get('ename', 'No answer')}: {answer.get('evalue', '')}".rstrip(": ")


# Where notebooks are open


def _server() -> Any:
    """Return the server that this process is; None where it is another process."""
    with suppress(ImportError):
        from jupyter_server.serverapp import ServerApp

        return ServerApp.instance() if ServerApp.initialized() else None
    return None


async def _open_notebooks() -> AsyncIterator[_Notebook]:
    if server := _server():
        root = server.contents_manager.root_dir
        for one in _read_sessions(await server.session_manager.list_sessions(), root):
            yield one
        return
    for one in await asyncio.to_thread(lambda: [*_of_running_servers()]):
        yield one


def _of_running_servers() -> Iterator[_Notebook]:
    import urllib.request

    from jupyter_core.paths import jupyter_runtime_dir

    for file in Path(jupyter_runtime_dir()).glob("jpserver-*.json"):
        with suppress(OSError, ValueError, KeyError):  # another program's file, a server that ended
            server = json.loads(file.read_text("utf-8"))
            headers = {"Authorization": f"token {server.get('token', '')}"}
            request = urllib.request.Request(f"{server['url']}api/sessions", headers=headers)
            with urllib.request.urlopen(request, timeout=5) as reply:
                yield from _read_sessions(json.load(reply), server["root_dir"])


def _read_sessions(sessions: Any, root: str) -> Iterator[_Notebook]:
    for one in sessions:
        if one["type"] == "notebook" and one.get("kernel"):
            path = os.path.realpath(os.path.join(root, one["path"]))
            yield _Notebook(path, one["kernel"]["id"], one["kernel"].get("execution_state", ""))


@asynccontextmanager
async def _client(kernel: str) -> AsyncIterator[Any]:
    from jupyter_client.asynchronous.client import AsyncKernelClient
    from jupyter_client.connect import find_connection_file

    if server := _server():
        client = AsyncKernelClient()
        client.load_connection_info(server.kernel_manager.get_kernel(kernel).get_connection_info())
    else:
        client = AsyncKernelClient(connection_file=find_connection_file(f"kernel-{kernel}.json"))
        client.load_connection_file()
    client.start_channels(iopub=False, stdin=False, hb=False)
    try:
        yield client
    finally:
        client.stop_channels()
