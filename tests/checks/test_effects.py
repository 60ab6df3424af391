"""What code does to the notebook's data: said of the copies, and never done to the data itself."""

import os
import pickle
import sys
from typing import Any

import pandas
import pytest

from ipyrefine.checks import resolve
from ipyrefine.core.model import Task
from ipyrefine.kernel.variables import Variables, find

TASK = Task(text="Clean it.", form="code")


def frame() -> pandas.DataFrame:
    return pandas.DataFrame({"city": ["a", "b", "c"], "price": ["1", "2", "x"], "n": [1, 2, 3]})


async def test_the_account_of_data_takes_nothing_of_a_texts_time() -> None:
    text = (
        "import pandas\nn = len(df)\na = pandas.DataFrame({'x': range(300_000)})\n"
        "globals().update({f'a{n}': a for n in range(40)})"  # two seconds to look at
    )
    (check,) = resolve(["run seconds=1"], {}, variables=Variables({"df": frame()}))
    evidence = await check(text, TASK)
    assert evidence.passed, evidence.detail


# What has to run as it does elsewhere, though its steps are noted.
SAME = """
assert df.iloc[:, 0].size == len(df.loc[0:2, 'n']) == 3
class C:
    class dt:
        hour = 3
match 3:
    case C.dt.hour: ok = 1
assert ok
C.dt.hour = 4
del C.dt.hour
class Odd:
    def merge(self, *a): return 5
    def __getattr__(self, n): raise KeyError
    def __len__(self): raise KeyError
    def __eq__(self, o): raise KeyError
odd = Odd()
assert odd.merge(odd) == 5
def f(n): return n * max([f(n - 1), 1]) if n else 1
assert f(4) == 24
import inspect, pandas
assert 'on' in inspect.signature(pandas.DataFrame.join).parameters
"""
ALIKE = [
    SAME,
    "from __future__ import annotations\nimport typing\ndef f(x: list[max]) -> list[min]: ...\n"
    "assert f.__annotations__ == {'x': 'list[max]', 'return': 'list[min]'}",
    "import warnings\nimport pandas as pd\nwith warnings.catch_warnings(record=True) as got:\n"
    "    warnings.simplefilter('always')\n    pd.to_datetime(df.price, errors='coerce')\n"
    "assert [(one.filename, one.lineno) for one in got] == [(__file__, 5)]",
    "import pandas as pd, traceback\ntry:\n    df.merge(df, on='none')\nexcept KeyError as error:\n"
    "    frames = traceback.extract_tb(error.__traceback__)\n"
    "    assert frames[0].lineno == 3 and 'pandas' in frames[1].filename",
    f"x = [{' + '.join(['1'] * 600)}, len(df)]\nassert x[0] == 600",
]


@pytest.mark.parametrize("text", ALIKE)
async def test_noting_steps_changes_nothing_of_a_run(text: str) -> None:
    (check,) = resolve(["run seconds=120"], {}, variables=Variables({"df": frame()}))
    evidence = await check(text, TASK)
    assert evidence.passed, evidence.detail


ATTACKS = [
    "{0}.clear()",
    "{0}.append(66)",
    "{0}[0] = 66",
    "{0}['a'] = 66",
    "{0}.a = 66",
    "del {0}[0]",
    "del {0}.a",
    "{0}.__dict__.clear()",
    "{0}.__class__ = int",
    "import gc\nfor r in gc.get_referrers({0}):\n    r.clear()",
    "import ctypes\nctypes.memset(id({0}), 0, 0)",
]
OTHERS = [
    "df.drop(df.index, inplace=True)",
    "df.iloc[:, :] = None",
    "import sys\nsys.modules['__main__'].__dict__.clear()",
    "import builtins\nbuiltins.len = None",
    "import sys\nsys._getframe().f_back.f_globals.clear()",
    "import pandas\npandas.DataFrame.__repr__ = None",
    "import os\nos.environ.clear()",
    "import sys\nsys.path.clear()",
    "import os\nos.chdir('/')",
    "raise SystemExit",
]
TARGETS = ["df", "xs", "fn.__globals__"]
SNIPPETS = [attack.format(target) for target in TARGETS for attack in ATTACKS] + OTHERS
RUN_EACH = """
import os, pickle
SNIPPETS = {snippets!r}
changed = 0
for snippet in SNIPPETS:
    pid = os.fork()  # so that no snippet keeps the next one from harm
    if pid:
        changed += os.waitpid(pid, 0)[1] != 0
        continue
    space, leave, dump = globals(), os._exit, pickle.dumps
    values = df, xs, d, obj.__dict__
    before = dump(values)
    try:
        exec(snippet, space)
    except BaseException:
        pass
    try:
        same = dump(values) == before
    except BaseException:
        same = False
    leave(0 if same else 1)
assert changed >= len(SNIPPETS) // 10, f"only {{changed}} did harm to the copies"
"""
NOTEBOOK = """
import pandas
class Thing:
    pass
obj = Thing()
obj.a = [1]
def fn(x=[1]):
    return xs, x
xs = [[1], 2]
d = {"a": [1]}
"""


def facts(space: dict[str, Any]) -> dict[str, Any]:
    """Everything of a namespace that could change, as values that compare."""
    fn, obj = space["fn"], space["obj"]
    return {
        "ids": {name: id(value) for name, value in space.items()},
        "data": pickle.dumps([space["df"], space["xs"], space["d"], obj.a]),
        "function": (fn.__code__, pickle.dumps(fn.__defaults__), sorted(fn.__globals__)),
        "class": sorted({*vars(type(obj))} - {"__slotnames__"}),  # a cache of pickle's
        "environment": dict(os.environ),
        "path": list(sys.path),
        "folder": os.getcwd(),
    }


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each snippet has a process of its own")
async def test_no_code_that_is_checked_changes_the_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ipyrefine.kernel.variables.sandbox_is_closed", lambda: True)
    space: dict[str, Any] = {"__name__": "__main__", "df": frame()}
    exec(NOTEBOOK, space)
    before = facts(space)
    used = find(space, draft="df, xs, d, obj, fn")
    (check,) = resolve(["run seconds=120"], {}, variables=used)
    evidence = await check(RUN_EACH.format(snippets=SNIPPETS), TASK)
    assert evidence.passed, evidence.detail
    assert facts(space) == before
