"""A scripted model's part in the Stack task: a wrong draft, a right revision, good marks."""

from typing import Any

from judging import is_critic
from kit import READY

STACK = (
    "Implement a Stack with push(x), pop() and getMin(), all O(1).\n\n"
    ">>> s = Stack(); s.push(2); s.push(1); s.push(3)\n>>> s.getMin()\n1\n"
    ">>> s.pop()\n3\n>>> s.pop()\n1\n>>> s.getMin()\n2\n"
)
LINEAR = '''Plan: keep the items in a list and look for the least one.
```python
class Stack:
    """A stack that knows its least item."""

    def __init__(self):
        self.items = []

    def push(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop()

    def getMin(self):
        return max(self.items)
```'''
CONSTANT = '''f1: compare with the least item so far on every push
```python
class Stack:
    """A stack that knows its least item; every method takes constant time."""

    def __init__(self):
        self.items = []

    def push(self, x):
        least = min(x, self.items[-1][1]) if self.items else x
        self.items.append((x, least))

    def pop(self):
        return self.items.pop()[0]

    def getMin(self):
        return self.items[-1][1]
```'''


def reply(body: dict[str, Any]) -> str:
    """Answer as a model would that mends its mistake once it is shown the failing example."""
    asked = body["messages"][-1]["content"]
    if is_critic(body):
        return READY
    return CONSTANT if "Here is the text." in asked else LINEAR
