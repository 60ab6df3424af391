"""While a reply streams, its text is told from its thoughts as it is at the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyrefine.core.replies import Splitter, written

CODE = """\
First the plan.

```python
def least(items):

    best = None
    \t
    return best


print(least([]))
```
"""
PROSE = """\
A plan: warm, short.
<text>
Dear all,

a < b, and <textual> is no mark.

</text>
"""


def streamed(form: str, reply: str, sizes: list[int]) -> dict[str, str]:
    """What a splitter tells of a reply that comes in pieces of these sizes."""
    splitter, told, at = Splitter(form), {"text": "", "thinking": ""}, 0  # type: ignore[arg-type]
    for size in [*sizes, len(reply)]:
        for kind, piece in splitter.feed(reply[at : at + size]):
            told[kind] += piece
        at += size
    return told


@pytest.mark.parametrize(("form", "reply"), [("code", CODE), ("prose", PROSE)])
@given(sizes=st.lists(st.integers(1, 9), max_size=60))
def test_what_streams_as_text_is_what_the_reply_s_text_will_be(
    form: str, reply: str, sizes: list[int]
) -> None:
    """Blank lines in it, whatever pieces it comes in, are neither lost nor an end of it."""
    told, end = streamed(form, reply, sizes), written(reply, form)  # type: ignore[arg-type]
    assert told["text"].strip("\n") == end.text
    assert told["thinking"].strip() == end.thoughts
