"""What code would touch, as far as it names it."""

from typing import Any

import pytest
from kit import CODE, Finds, code, critique, finish, refinement
from surfaces import SURFACES

from ipyrefine.core.effects import effects
from ipyrefine.core.model import Evidence
from ipyrefine.core.ports import Check
from ipyrefine.render.terminal import record_text


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("requests.get('https://a.example/x')", ["reaches https://a.example/x"]),
        ("URL = 'https://a.example'\nrequests.post(url=URL)", ["reaches https://a.example"]),
        ("pd.read_csv(f'data/{year}.csv')", ["reads data/{year}.csv"]),
        ("df.to_parquet('a.parquet')", ["writes a.parquet"]),
        ("df.to_sql('orders', con)", ["writes table orders"]),
        ("with open('log', 'a') as f: f.write('a.b')", ["writes log"]),
        ("open('log').read()", ["reads log"]),
        ("Path('a.md').write_text('Hello.')", ["writes a.md"]),
        ("os.remove('a')\nshutil.move('b', 'c')", ["writes a", "writes b"]),
        ("con.execute('DELETE FROM orders WHERE id = 1')", ["writes table orders"]),
        (
            "pd.read_sql('select * from a join b using (id)', con)",
            ["reads table a", "reads table b"],
        ),
        ("subprocess.run(['git', 'push'])", ["runs git push"]),
        ("def f():\n    open('a', 'w')", []),
        ("'a.b'.replace('a', 'b')\njson.loads('{}')\nprint('open')", []),
        ("df.to_csv(path)", []),
        ("not Python", []),
    ],
)
def test_what_code_names_and_would_touch_is_found(source: str, expected: list[str]) -> None:
    assert [f"{one.verb} {one.what}" for one in effects(source)] == expected


async def rendered(render: Any, *checks: Check) -> str:
    loop = refinement([code("df.to_csv('orders.csv')"), critique()], CODE, checks=checks)
    await finish(loop)
    return str(render(loop.state))


@pytest.mark.parametrize("render", SURFACES)
async def test_every_surface_shows_what_a_cell_would_touch_that_was_not_run(render: Any) -> None:
    assert "Not run; what it would touch" in await rendered(render)


async def test_of_a_cell_that_a_check_ran_nothing_is_said() -> None:
    assert "would touch" not in await rendered(
        record_text, Finds(Evidence(name="run", passed=True, basis="run"))
    )
