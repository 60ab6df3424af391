"""`examples` and `run` against texts that lie about values, and end before they are asked."""

import pytest

from ipyrefine.checks.evaluation import Examples
from ipyrefine.checks.python import RunsCleanly
from ipyrefine.core.model import Task
from ipyrefine.core.table import Result

SORTS = Task(text="Write f.\n\n```python\nxs = [3, 1, 2]\nassert f(xs) == sorted([3, 1, 2])\n```")
LIES = """
class Lie:
    def __init__(self, *a): pass
    def __eq__(self, other): return True
    __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __bool__ = __eq__
    def __hash__(self): return 1
    def __repr__(self): return "[1, 2, 3]"
    def __len__(self): return 3
    def __iter__(self): return iter([1, 2, 3])
"""
# Wrong texts for a task whose expected value must be computed.
WRONG = {
    "an object equal to everything": f"{LIES}\ndef f(xs): return Lie()",
    "a class that claims to be a list": (
        f"{LIES}\nLie.__class__ = property(lambda s: list)\ndef f(xs): return Lie()"
    ),
    "a builtin replaced when called": (
        "def f(xs):\n    import builtins; builtins.sorted = lambda x: 9\n    return 9"
    ),
    "a name of the caller": (
        "def f(xs):\n    import sys\n"
        "    sys._getframe(1).f_globals['sorted'] = lambda x: 9\n    return 9"
    ),
    "the list of the task": "def f(xs):\n    xs[:] = [9]\n    return xs",
    "a harness replaced": (
        "import __main__\n__main__._run = lambda *a: {'equal': True}\n"
        "__main__._describe = lambda v: {'data': ['list', []]}\ndef f(xs): return 9"
    ),
    "a report of nonsense": (
        "import gc, json\nrequest = next(o for o in gc.get_objects() if isinstance(o, dict)\n"
        "    and 'token' in o and 'report' in o)\nwith open(request['report'], 'a') as file:\n"
        "    for event in ({'event': 'loaded'}, {'event': 'done', 'index': 0, 'expected': 3,\n"
        "            'data': ['no'], 'repr': None, 'stdout': 1}):\n"
        "        print(json.dumps({'token': request['token'], **event}), file=file)\n"
        "import os; os._exit(0)"
    ),
    "json replaced": "import json\njson.dumps = lambda *a, **k: '{}'\ndef f(xs): return 9",
    "exits when called": "def f(xs):\n    import os; os._exit(0)",
    "skips": "import unittest\ndef f(xs): raise unittest.SkipTest('x')",
    "interrupts": "def f(xs): raise KeyboardInterrupt",
    "leaves at the exit": "import atexit, os\natexit.register(os._exit, 0)\ndef f(xs): return 9",
    "a generator": "def f(xs): yield from sorted(xs)",
    "nothing": "",
}


@pytest.mark.parametrize("lie", WRONG)
async def test_a_computed_expectation_is_met_by_no_lie(lie):
    evidence = await Examples(seconds=60)(WRONG[lie], SORTS)
    assert evidence.passed is False, evidence.shows


CONDITIONS = Task(
    text="""Write f.

```python
import math
xs = [4]
assert isinstance(f(4), float)
assert abs(f(2) - math.sqrt(2)) < 1e-6
assert f(9) in (3, 3.0)
assert math.isclose(f(xs[0]), 2)
assert f(4) != 3
assert not f(0)
assert len(str(f(4))) > 2
```
"""
)


async def condition(text: str) -> Result:
    return await Examples(seconds=60)(text, CONDITIONS)


async def test_conditions_hold_for_a_right_text_and_tell_a_wrong_one():
    assert "7 of 7 stated examples hold." in (await condition("def f(n): return n ** 0.5")).shows
    evidence = await condition("def f(n): return 3")
    assert "isinstance(f(4), float): expected True, got False" in evidence.shows
    assert "1 of 7 stated examples hold." in evidence.shows


STACK = Task(
    text="""Write Stack and double.

```python
s = Stack()
s.push(1)
assert s.peek() == 1
assert len(s) == 1
assert s == Stack([1])
xs = [1]
assert double(xs) == xs
assert all(double([n]) == [n, n] for n in range(3))
assert s.pop() == double([1])[0] or False
twice = lambda n: [n, n]
assert double([3]) == twice(3)
```
"""
)
RIGHT = """
class Stack:
    def __init__(self, items=()): self.items = list(items)
    def push(self, item): self.items.append(item)
    def peek(self): return self.items[-1]
    def pop(self): return self.items.pop()
    def __len__(self): return len(self.items)
    def __eq__(self, other): return self.items == other.items
def double(xs):
    xs += xs
    return xs
"""


async def test_what_only_the_text_can_compare_is_compared_beside_it():
    evidence = await Examples(seconds=60)(RIGHT, STACK)
    assert evidence.passed, evidence.shows
    wrong = RIGHT.replace("xs += xs", "xs = xs + xs")
    evidence = await Examples(seconds=60)(wrong, STACK)
    assert "double(xs): expected xs, got [1, 1]" in evidence.shows


# `run`

ENDS = {
    "a crash": ("import ctypes; ctypes.string_at(0)", "killed by signal 11"),
    "a flood": ("import os\nwhile True: os.write(2, b'x' * 65536)", "printed without end"),
    "an allocation": ("x = []\nwhile True: x.append(bytes(10**8))", "Memory"),
    "an exit by name": (
        "import sys\nsys.exit()\n1 / 0",
        "exited with status 0 before its end (line 2)",
    ),
    "an exit in a guarded function": (
        "import sys\ndef main(): sys.exit(0)\nif __name__ == '__main__':\n    main()",
        "It exited with status 0 before its end (line 2).",
    ),
    "an exit after a failure that it caught": (
        "import sys\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    sys.exit()",
        "It exited with status 0 before its end (line 5).",
    ),
    "an exit with a message": ("import sys\nsys.exit('no')", "It exited with status 1"),
    "an exit at once": ("import os\nos._exit(0)", "It ended the process before its end."),
    "another program": ("import os\nos.execv('/bin/true', ['true'])", "ended the process before"),
    "a skip": ("import unittest\nraise unittest.SkipTest('x')", "SkipTest: x"),
    "an exit by pytest": ("import pytest\npytest.exit('x', returncode=0)", "Exit: x"),
    "a thread that comes late": (
        "import threading, time\ndef work():\n    time.sleep(0.2)\n    1 / 0\n"
        "threading.Thread(target=work).start()",
        "ZeroDivisionError: division by zero (line 4), next to the main thread.",
    ),
    "no exit handlers": ("import atexit\natexit._clear()", "ended the process before its end"),
    "an exit handler that exits": (
        "import atexit, os\natexit.register(os._exit, 0)",
        "It ended the process before its end.",
    ),
    "a harness replaced": (
        "import __main__, sys\n__main__.write_event = print\nsys.exit(0)\n1 / 0",
        "It exited with status 0",
    ),
    "a report of its own": (
        "import glob, os\nfor name in glob.glob('*'):\n"
        "    if len(name) == 32: open(name, 'a').write('{\"end\": true}\\n')\nos._exit(0)",
        "It ended the process before its end.",
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_a_script_that_does_not_come_to_its_end_fails_with_what_happened(end):
    text, message = ENDS[end]
    evidence = await RunsCleanly(seconds=60)(text, Task(text="Write it."))
    assert evidence.passed is False
    assert message in evidence.shows
    assert len(evidence.shows) < 2_000


@pytest.mark.fresh
async def test_a_script_that_interrupts_itself_fails_with_the_signal():
    evidence = await RunsCleanly()("raise KeyboardInterrupt", Task(text="Write it."))
    assert evidence.passed is False
    assert "signal 2" in evidence.shows


WHOLE = """
import atexit, os, sys, threading
from concurrent.futures import ThreadPoolExecutor as Pool
threading.Thread(target=print, args=[1]).start()
threading.Thread(target=sys.exit).start()
print(Pool().submit(lambda: 1).result())
atexit.register(print, 1)
pid = os.fork()
if not pid: os._exit(0)
os.waitpid(pid, 0)
try:
    exit()
except SystemExit:
    pass
"""


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        "import sys\ndef main(): return 0\nsys.exit(main())",
        "raise SystemExit(0)",
        "import sys\nif __name__ == '__main__':\n    print(1)\n    sys.exit(0)",
        "",
    ],
)
async def test_a_script_that_comes_to_its_end_passes(text):
    evidence = await RunsCleanly(seconds=60)(text, Task(text="Write it."))
    assert evidence.passed, evidence.shows
