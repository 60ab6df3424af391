"""What no server is sent, as a person sees it in JupyterLab and lets it go."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from judging import is_critic
from kit import READY
from lab_driver import Lab
from openai_server import Answer, ScriptedServer
from stack_task import kernel
from test_panel_in_lab import assert_accessible

OUTPUT = Path(__file__).parents[1] / "output"
SECRET = "Zwolle-7731"
# The cell that makes the frame is sent, so its values are computed there.
FRAME = (
    "import pandas as pd\n"
    "df = pd.DataFrame({'region': [f'Zwolle-{7700 + 31}', 'Oss-92'], 'revenue': [8274.5, 12.25]})"
)
# The server is on this machine, as tests must be; to the run it is elsewhere.
ELSEWHERE = (
    "%load_ext ipyrefine\nimport ipyrefine.providers.choose as sharing\n"
    "sharing.is_local = lambda model: False"
)
TASK = "%%refine -p code -n 1\nTotal `revenue` of `df` per region."
DRAFT = "```python\nprint(df)\nint(df.region[0])\n```"
AGAIN = "f1: mended\n```python\nprint(df)\nfloat(df.region[0])\n```"
FINE = "f1: mended\n```python\ndf.groupby('region').revenue.sum()\n```"


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def model(asked: list[str]) -> Iterator[ScriptedServer]:
    def reply(body: dict[str, Any]) -> Answer:
        asked.append(str(body["messages"]))
        if is_critic(body):
            return Answer(READY)
        return Answer([DRAFT, AGAIN, FINE][min(len(asked), 3) - 1])

    with ScriptedServer(reply) as server:
        yield server


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_outputs_stay_here_until_a_person_sends_them(
    lab: Lab, model: ScriptedServer, asked: list[str], theme: Literal["light", "dark"]
) -> None:
    from axe_playwright_python.async_playwright import Axe

    pytest.importorskip("pandas")
    await lab.open(
        [ELSEWHERE, FRAME, TASK], env=kernel(model), width=1280, height=1000, theme=theme
    )
    for index in range(3):
        await lab.run_and_wait(index)
    await lab.panel('[data-action="share"][data-name="once"]').wait_for()
    assert await lab.panel('[data-action="open"][data-name="share"]').inner_text() == (
        "outputs stay here"
    )
    question = await lab.panel(".rf-ask").inner_text()
    assert SECRET in question
    assert SECRET not in "".join(asked)
    await lab.panel(".rf-top").scroll_into_view_if_needed()
    await lab.screenshot(OUTPUT / f"share-{theme}.png")
    await assert_accessible(Axe(), lab)
    await lab.press("share", name="once")
    await lab.panel('[data-action="open"]', "outputs are sent").wait_for()
    await lab.press("continue")
    await lab.panel(".rf-outputs", "Table").wait_for()
    assert SECRET in "".join(asked)
    await lab.screenshot(OUTPUT / f"shared-{theme}.png")
