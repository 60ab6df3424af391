"""Drives a notebook in JupyterLab or Notebook 7 through Chromium."""

import itertools
import json
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import nbformat
import pytest
from nbformat import v4
from openai_server import ScriptedServer

App = Literal["lab", "notebook"]
APPS = pytest.mark.parametrize("app", ["lab", "notebook"])
WAIT_MS = 60_000
STARS = '.jp-Cell.jp-mod-active .jp-cell-toolbar [data-jp-item-name="refine"]'
FIELD = ".ipyrefine-ask input"

# The panel in front, in JupyterLab and in Notebook 7 alike.
PANEL = "const panel = window.jupyterapp?.shell?.currentWidget;"
_EMPTY = """async () => {
  const { shell, commands } = window.jupyterapp;
  for (const one of [...shell.widgets("main")]) one.dispose();
  await commands.execute("apputils:dismiss-notification");
}"""


class Server(NamedTuple):
    """A running notebook server and the directories it is confined to."""

    url: str
    token: str
    home: Path

    @property
    def notebooks(self) -> Path:
        return self.home / "notebooks"

    def add_kernel(self, name: str, env: Mapping[str, str]) -> None:
        """Add a Python kernel with its own environment variables."""
        kernel = self.home / "data/kernels" / name
        kernel.mkdir(parents=True)
        spec = {
            "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": name,
            "language": "python",
            "env": dict(env),
        }
        (kernel / "kernel.json").write_text(json.dumps(spec))

    def request(self, method: str, path: str) -> Any:
        """Call the server's REST interface."""
        request = urllib.request.Request(
            f"{self.url}/{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.loads(reply.read() or b"null")


class Lab:
    """Notebooks in JupyterLab or Notebook 7; `page` is the one opened last.

    Each application has one window for all tests, as loading it takes longer than most of them.
    """

    _numbers = itertools.count(1)

    def __init__(self, server: Server, browser: Any) -> None:
        self.server = server
        self.page: Any = None
        self.path = Path()
        self._browser = browser
        self._kept: dict[App, Any] = {}
        self._pages: list[Any] = []

    async def open(
        self,
        cells: Sequence[str | nbformat.NotebookNode],
        *,
        app: App = "lab",
        width: int = 1280,
        height: int = 900,
        model: ScriptedServer | None = None,
        env: Mapping[str, str] | None = None,
        own_window: bool = False,
    ) -> Any:
        """Write a notebook of code cells, open it and wait for its kernel; return the page.

        A test that changes its window for good has one of its own.
        """
        asked = {"OPENAI_BASE_URL": model.base_url, "IPYREFINE_MODEL": "scripted"} if model else {}
        self._write(cells, asked | dict(env or {}))
        page = self._kept.get(app)
        if own_window or page is None or page.is_closed():
            page = await self.open_again(app=app, width=width, height=height)
            if not own_window:
                self._kept[app] = page
            return page
        self.page = page
        await page.set_viewport_size({"width": width, "height": height})
        await (self._show() if app == "lab" else self._load(app))
        return page

    async def start(
        self, model: ScriptedServer, *cells: str, wait: bool = True, **options: Any
    ) -> Any:
        """Open a notebook that loads the extension in a first cell, and run the one after it."""
        page = await self.open(["%load_ext ipyrefine", *cells], model=model, **options)
        await self.run_and_wait(0)
        await (self.run_and_wait(1) if wait else self.run(1))
        return page

    def _write(self, cells: Sequence[str | nbformat.NotebookNode], env: Mapping[str, str]) -> None:
        number = next(self._numbers)
        kernel = "python3"
        if env:
            kernel = f"python3-{number}"
            journal = {"IPYREFINE_HOME": str(self.server.home / f"journal{number}")}
            self.server.add_kernel(kernel, journal | dict(env))
        spec = {"name": kernel, "display_name": kernel, "language": "python"}
        # With no kernel named, the application would ask for one in a dialog.
        book = v4.new_notebook()
        book.cells = [v4.new_code_cell(c) if isinstance(c, str) else c for c in cells]
        book.metadata["kernelspec"] = spec
        self.path = self.server.notebooks / f"book{number}.ipynb"
        # Not validated, as a file from somebody else may be anything.
        self.path.write_text(json.dumps(book), "utf-8")

    async def open_beside(self, cells: Sequence[str]) -> None:
        """Open one more notebook in the same JupyterLab window, and bring it to the front."""
        self._write(cells, {})
        await self._show()

    async def _show(self) -> None:
        await self.evaluate(
            "await window.jupyterapp.serviceManager.kernelspecs.refreshSpecs();"
            "await window.jupyterapp.commands.execute('docmanager:open', {path: arg});",
            self.path.name,
        )
        await self.wait_for("panel?.context?.path === arg", self.path.name)
        await self.wait_open()

    async def open_again(self, *, app: App = "lab", width: int = 1280, height: int = 900) -> Any:
        """Open the same notebook in one more window, and make that the current page."""
        context = await self._browser.new_context(viewport={"width": width, "height": height})
        context.set_default_timeout(WAIT_MS)
        self.page = await context.new_page()
        self._pages.append(self.page)
        await self._load(app)
        return self.page

    async def _load(self, app: App) -> None:
        place = "lab/tree" if app == "lab" else "notebooks"
        address = f"{self.server.url}/{place}/{self.path.name}?token={self.server.token}&reset"
        await self.page.goto(address)
        await self.wait_open()

    async def wait_open(self) -> None:
        """Wait until the notebook is shown and its kernel has nothing to do."""
        await self.wait_for("panel?.content?.model && panel.content.widgets.length > 0")
        await self.wait_idle()

    async def wait_for(self, condition: str, argument: Any = None) -> None:
        """Wait until a JavaScript condition on `panel` and `arg` holds."""
        await self.page.wait_for_function(
            f"(arg) => {{ {PANEL} return {condition}; }}", arg=argument, timeout=WAIT_MS
        )

    async def wait_source(self, index: int, text: str) -> None:
        """Wait until a cell's text is this."""
        source = "panel.content.model.sharedModel.cells[arg[0]]?.getSource()"
        await self.wait_for(f"{source} === arg[1]", [index, text])

    async def wait_cells(self, count: int) -> None:
        """Wait until the notebook has so many cells."""
        await self.wait_for("panel.content.model.cells.length === arg", count)

    async def wait_closed(self) -> None:
        """Wait until no panel is shown."""
        await self.wait_for("!document.querySelector('.rf-panel')")

    async def wait_idle(self) -> None:
        """Wait until the kernel has nothing to do."""
        await self.wait_for("panel?.sessionContext?.session?.kernel?.status === 'idle'")

    async def evaluate(self, body: str, argument: Any = None) -> Any:
        """Run the body of a JavaScript function of `panel` and `arg` in the page."""
        return await self.page.evaluate(f"async (arg) => {{ {PANEL} {body} }}", argument)

    async def command(self, name: str) -> None:
        """Execute a command of the application."""
        await self.evaluate("await window.jupyterapp.commands.execute(arg);", name)

    async def select(self, index: int) -> None:
        """Make a cell the active one."""
        await self.evaluate(
            "panel.content.deselectAll(); panel.content.activeCellIndex = arg;"
            "await panel.content.scrollToItem(arg);",
            index,
        )

    async def run(self, index: int) -> None:
        """Run a cell without waiting for its end."""
        await self.select(index)
        await self.evaluate("void window.jupyterapp.commands.execute('notebook:run-cell');")

    async def run_and_wait(self, index: int) -> None:
        """Run a cell and wait for its end."""
        await self.select(index)
        await self.command("notebook:run-cell")
        await self.wait_idle()

    async def restart_kernel(self) -> None:
        """Restart the kernel, without the dialog that asks for confirmation."""
        await self.evaluate("await panel.sessionContext.session.kernel.restart();")
        await self._wait_new_kernel()

    async def change_kernel(self, name: str) -> None:
        """Go on with a kernel of another name."""
        await self.evaluate("await panel.sessionContext.changeKernel({name: arg});", name)
        await self._wait_new_kernel()

    async def _wait_new_kernel(self) -> None:
        # The application asks a new kernel once how it is; the answer is lost when the server is
        # not listening to that kernel yet, and nothing would ever say that it is idle. In one run
        # of hundreds no further question was answered either: after 20 s, connect anew.
        await self.evaluate(
            "const kernel = () => panel.sessionContext.session?.kernel;"
            "for (let n = 1; kernel()?.status !== 'idle'; n++) {"
            "  void (n % 40 ? kernel()?.requestKernelInfo() : kernel()?.reconnect());"
            "  await new Promise((done) => setTimeout(done, 500));"
            "}"
        )

    async def cell_sources(self) -> list[str]:
        """Every cell's text."""
        return await self.evaluate(
            "return panel.content.model.sharedModel.cells.map((cell) => cell.getSource());"
        )

    async def set_source(self, index: int, text: str) -> None:
        """Replace a cell's text."""
        await self.evaluate(
            "panel.content.model.sharedModel.cells[arg[0]].setSource(arg[1]);", [index, text]
        )

    async def cell_ids(self) -> list[str]:
        """Every cell's id."""
        return await self.evaluate(
            "return panel.content.model.sharedModel.cells.map((cell) => cell.getId());"
        )

    async def active_index(self) -> int:
        """Index of the active cell."""
        return await self.evaluate("return panel.content.activeCellIndex;")

    async def outputs_text(self, index: int) -> str:
        """What a person reads in a cell's outputs."""
        return await self.evaluate(
            "const area = panel.content.widgets[arg].outputArea;"
            "return area ? area.node.innerText.trim() : '';",
            index,
        )

    async def wait_output(self, index: int, text: str) -> None:
        """Wait until a cell's outputs contain a text."""
        await self.wait_for(
            "panel.content.widgets[arg[0]]?.outputArea?.node.innerText.includes(arg[1])",
            [index, text],
        )

    async def press_stars(self, index: int) -> None:
        """Press the button that refines, in a cell's toolbar."""
        await self.select(index)
        await self.page.locator(STARS).locator("button, jp-button").first.click()

    async def ask(self, words: str = "") -> None:
        """Write what is to change into the line that opens then, or nothing in particular."""
        await self.page.locator(FIELD).fill(words)
        await self.page.locator(FIELD).press("Enter")

    async def assert_accessible(self, context: str = ".rf-panel") -> None:
        """Assert that axe finds nothing serious in the panel, or elsewhere, in either theme."""
        from axe_playwright_python.async_playwright import Axe

        for theme in ("JupyterLab Dark", "JupyterLab Light"):
            change = "await window.jupyterapp.commands.execute('apputils:change-theme', arg);"
            await self.evaluate(change, {"theme": theme})
            await self.wait_for("document.body.dataset.jpThemeName === arg", theme)
            found = (await Axe().run(self.page, context=context)).response["violations"]
            serious = [v for v in found if v["impact"] in ("serious", "critical")]
            assert not serious, [(v["id"], [n["html"] for n in v["nodes"]][:3]) for v in serious]

    async def click_button(self, name: str) -> None:
        """Click the widget button with this label."""
        await self.page.locator(".jp-OutputArea").get_by_role("button", name=name).first.click()

    def panel(self, selector: str = "", text: str = "") -> Any:
        """Return what matches in the panel on the page; with a text, what has it."""
        found = self.page.locator(f".jp-OutputArea .rf-panel {selector}".rstrip())
        return found.filter(has_text=text).first if text else found.first

    async def coloured(self) -> list[str]:
        """Return the words of the panels' coloured buttons that can be seen."""
        return await self.page.evaluate(
            "() => [...document.querySelectorAll('.rf-panel :is(.rf-go, .rf-check, .rf-next)')]"
            ".filter((one) => one.checkVisibility() && !one.closest('.rf-menu'))"
            ".map((one) => one.innerText)"
        )

    async def press(self, action: str, *, menu: str = "", **data: str) -> None:
        """Click the panel's control with these `data-`; one in a menu, by its label, is shown."""
        if menu:
            await self.panel(f'.rf-menu > button[aria-label="{menu}"]').click()
        wanted = "".join(f'[data-{name}="{value}"]' for name, value in data.items())
        place = ".rf-menu[open] li " if menu else ""
        await self.panel(f'{place}[data-action="{action}"]{wanted}').click()

    async def unfold(self, name: str) -> None:
        """Open one of the folds at the panel's foot and wait for what is in it."""
        await self.panel(f'[data-action="fold"][data-name="{name}"]').click()
        await self.panel(".rf-body > *").wait_for()

    async def wait_verdict(self, word: str) -> None:
        """Wait until the panel has stopped with this verdict."""
        await self.panel(".rf-badge", word).wait_for()
        await self.panel('[data-action="continue"]').wait_for()

    async def screenshot(self, path: str | Path) -> None:
        """Write a picture of the window."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=path)

    async def clear(self) -> None:
        """Close the notebooks, end the kernels, and close all windows but one per application."""
        for app, page in [*self._kept.items()]:
            if page.is_closed() or await page.locator(".jp-Dialog").count():
                del self._kept[app]
            elif app == "lab":
                await page.evaluate(_EMPTY)
            else:
                await page.goto("about:blank")
        for page in self._pages:
            if page not in self._kept.values():
                await page.context.close()
        self._pages = [*self._kept.values()]
        for kernel in self.server.request("GET", "api/kernels"):
            self.server.request("DELETE", f"api/kernels/{kernel['id']}")

    async def close(self) -> None:
        """Close the windows and end the kernels."""
        self._kept.clear()
        await self.clear()
