# ruff: noqa: RUF001
"""Replies → records: where a text begins and ends, also when cut off; schemas and their parsers."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyrefine.core.critiques import parse_critique
from ipyrefine.core.evaluations import parse_evaluation
from ipyrefine.core.model import Form, Task
from ipyrefine.core.replies import Splitter, parse_choice, parse_text, repeats_itself
from ipyrefine.errors import ReplyError

# Texts


SVG = "<svg>\n<text>A</text>\n<text x='1'>B</text>\n</svg>"
INLINE = "SVG draws words with <text>A</text> and shapes with <path>."


@pytest.mark.parametrize(
    ("reply", "text", "thoughts"),
    [
        ("Plan.\n<text>\nHi.\nBye.</text>", "Hi.\nBye.", "Plan."),
        ("Plan.\n<text>\nHi. </text>\n\n", "Hi. ", "Plan."),
        ("<text>\nHi.</text>\n\n<text>\nHi.</text>", "Hi.", ""),
        ("<text>\nHi.</text>\n\n<text>\nHi.\n</text>", "Hi.", ""),
        ("1. Who: all.\n2. Plan: <text>Hi.</text>", "Hi.", "1. Who: all.\n2. Plan:"),
        ("Hi, all.</text>\n", "Hi, all.", ""),
        ("<text>Hi.</text>", "Hi.", ""),
        (f"<text>\n{SVG}\n</text>", SVG, ""),  # the same tags inside it
        (INLINE, INLINE, ""),
        ("Mark it by <text> in front.", "Mark it by <text> in front.", ""),
    ],
)
def test_a_text_ends_at_its_tag_even_if_that_is_not_on_a_line_of_its_own(reply, text, thoughts):
    written = parse_text(reply, "prose")
    assert (written.text, written.thoughts) == (text, thoughts)


# Texts that are cut off


@pytest.mark.parametrize(
    ("reply", "form"),
    [
        ("```python\nx = 1\ny = ", "code"),
        ("```python\nx = 1\n```\nand then\n```python\ny = ", "code"),
        ("x = 1", "code"),
        ("<text>\nHi", "prose"),
        ("Hi", "prose"),
    ],
)
def test_a_cut_text_whose_end_is_not_marked_is_not_whole(reply, form):
    with pytest.raises(ReplyError, match="breaks off"):
        parse_text(reply, form, cut=True)


# Texts as they stream

PROGRAM = """\
First the plan.

```python
def least(items):

    best = None
    \t
    return best


print(least([]))
```
"""
LETTER = """\
A plan: warm, short.
<text>
Dear all,

a < b, and <textual> is no mark.

</text>
"""


def split(form: Form, reply: str, sizes: list[int]) -> dict[str, str]:
    """What a splitter makes of a reply that comes in pieces of these sizes."""
    splitter, joined, start = Splitter(form), {"text": "", "thinking": ""}, 0
    for size in [*sizes, len(reply)]:
        for kind, piece in splitter.feed(reply[start : start + size]):
            joined[kind] += piece
        start += size
    return joined


@pytest.mark.parametrize(("form", "reply"), [("code", PROGRAM), ("prose", LETTER)])
@given(sizes=st.lists(st.integers(1, 9), max_size=60))
def test_what_streams_as_text_is_what_the_reply_s_text_will_be(form, reply, sizes):
    """Blank lines in it, whatever pieces it comes in, are neither lost nor an end of it."""
    streamed, written = split(form, reply, sizes), parse_text(reply, form)
    assert streamed["text"].strip("\n") == written.text
    assert streamed["thinking"].strip() == written.thoughts


# Schemas


@given(
    reply=st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda part: (
            st.lists(part, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["findings", "questions", "tests", "ready", "fixed", "score", "feedback"]
                )
                | st.text(max_size=3),
                part,
                max_size=4,
            )
        ),
        max_leaves=8,
    ).map(json.dumps)
)
def test_no_reply_is_anything_but_read_or_refused(reply):
    parsers = (
        lambda: parse_critique(reply, "Hi"),
        lambda: parse_evaluation(reply),
        lambda: parse_text(reply, "code"),
        lambda: parse_text(reply, "prose"),
    )
    for parse in parsers:
        with suppress(ReplyError):
            parse()


# What prompts of the user's reply to

JAVA = "public class A {\n    int size;\n}"


@pytest.mark.parametrize(
    ("reply", "language"),
    [("x = 1", "java"), (JAVA, "java"), (JAVA, "python")],
)
def test_code_of_another_language_needs_a_fence(reply, language):
    with pytest.raises(ReplyError, match="no code block"):
        parse_text(reply, "code", language=language)
    assert parse_text(reply, "code", language=language, own=True).text == reply


# Replies that go round in circles


LINE = "He was a member of the army and the guard.\n"
TABLE = "".join(f"assert f({n}) == {n * n}, 'square of {chr(97 + n)}'\n" for n in range(26))


@pytest.mark.parametrize(
    ("reply", "circles"),
    [
        (LINE * 20, True), ("".join(f"{n}. {LINE}" for n in range(40)), True),
        (TABLE + LINE * 60, True), (TABLE, False), (LINE * 3, False), ("", False),
    ],
    ids=["a line", "numbered", "at its end", "like lines", "a few times", "nothing"],
)  # fmt: skip
def test_a_reply_repeats_itself_when_its_end_is_one_thing_over_and_over(reply, circles):
    assert repeats_itself(reply) is circles


# Which of several fences is the text


def fenced(*sources: str, tag: str = "python") -> str:
    return "\n\nThen:\n\n".join(f"```{tag}\n{source}\n```" for source in sources)


STACK = "class MinStack:\n    def push(self, x):\n        self.items = [x]"
USAGE = "s = MinStack()\n" + "s.push(1)\n" * 20 + "print(s.items)"
OLD = "def f(x):\n    # It is longer than the new one, and wrong.\n    return 1 / 0"
NEW = "def f(x):\n    return x"
SEVERAL = {
    "a usage example after it": ("Implement push(x)", [STACK, USAGE], STACK),
    "a usage example before it": ("Implement push(x)", [USAGE, STACK], STACK),
    "nothing of it is named": ("Tu es.", [STACK, USAGE], STACK),
    "named in other letters": ("Write a minstack.", [STACK, USAGE], STACK),
    "an old one repeated": ("Write f", [OLD, NEW], NEW),
    "tests after it": ("Write f", [NEW, "def test_f():\n" + "    assert f(1) == 1\n" * 9], NEW),
    "imports apart": (
        "Write area(r).",
        ["import math\nimport re", "def area(r):\n    return math.pi * r"],
        "import math\nimport re\n\ndef area(r):\n    return math.pi * r",
    ),
    "a helper apart": (
        "Write a Tree.",
        ["class Node:\n    pass", "class Tree:\n    root = Node()", "t = Tree()\n" * 9],
        "class Node:\n    pass\n\nclass Tree:\n    root = Node()",
    ),
    "two that are named": (
        "Write classes A and B.",
        ["class A:\n    pass", "class B:\n    pass", "a = A()\nb = B()\n" * 9],
        "class A:\n    pass\n\nclass B:\n    pass",
    ),
    "its data first": (
        "What is the sum of df.a?",
        ["df = pd.DataFrame({'a': [1]})", "df.a.sum()"],
        "df = pd.DataFrame({'a': [1]})\n\ndf.a.sum()",
    ),
    "steps that go on": (
        "What is it by city?",
        ["d = df.dropna()", "d.groupby('city').sum()"],
        "d = df.dropna()\n\nd.groupby('city').sum()",
    ),
    "two ways": ("Sum it.", ["df.a.sum()", "df['a'].agg('sum')  # is longer"], "df.a.sum()"),
    "a variable that is named": ("Compute total.", ["x = [1, 2, 3]", "total = 3"], "total = 3"),
}


@pytest.mark.parametrize(("task", "sources", "text"), SEVERAL.values(), ids=SEVERAL)
def test_of_several_fences_the_text_is_what_the_task_names_never_the_longest(task, sources, text):
    reply = fenced(*sources)
    assert parse_text(reply, "code", task=Task(text=task, form="code")).text == text
    assert parse_choice(reply, task=Task(text=task, form="code")).text == text


def test_the_fence_that_repeats_the_text_to_revise_is_not_its_revision():
    for reply in (fenced(OLD, NEW), fenced(NEW, OLD)):
        assert parse_text(reply, "code", base=OLD).text == NEW


def test_a_fence_of_another_language_is_not_the_text():
    install = f"```bash\npip install {'a' * 99}\n```\n\n"
    output = f"\n\nIt prints:\n```\n{'1 2 3 ' * 30}\n```"
    assert parse_text(f"{install}{fenced('x = 1')}{output}", "code").text == "x = 1"
    java = "public class Stack {\n    void push(int x) {}\n}"
    usage = "Stack s = new Stack();\n" + "s.push(1);\n" * 20
    reply = fenced(usage, java, usage, tag="java")
    task = Task(text="Implement push(x)", form="code", language="java")
    assert parse_text(reply, "code", language="java", task=task).text == java


FENCED = {
    "tildes": "~~~python\n{}\n~~~", "bare tildes": "~~~\n{}\n~~~",
    "four marks": "````python\n{}\n````", "more marks at its end": "```python\n{}\n`````",
    "in Markdown": "````markdown\nSo:\n```python\n{}\n```\n````",
    "beside the last line": "```python\n{}```", "without an end": "```python\n{}",
    "a title": '```python title="a.py"\n{}\n```', "braces": "```{{python}}\n{}\n```",
}  # fmt: skip


@pytest.mark.parametrize("shape", FENCED)
def test_code_is_read_in_whichever_fence(shape):
    code = 'def f():\n    """Marks:\n\n    ```\n    x\n    ```\n    """'
    if shape not in ("in Markdown", "without an end"):
        assert parse_text(f"So:\n\n{FENCED[shape].format(code)}", "code").text == code
    assert parse_text(f"So:\n\n{FENCED[shape].format('x = 1')}", "code").text == "x = 1"


README = "# Tool\n\n```sh\npip install tool\n```\n\nIt runs."


@pytest.mark.parametrize(
    "reply",
    [
        f"```markdown\n{README}\n```",
        f"````md\n{README}\n````",
        f"Here is the README:\n\n```markdown\n{README}\n```\n\nTell me what you think.",
        f"<text>\n```markdown\n{README}\n```\n</text>",
    ],
)
def test_words_in_a_fence_of_markdown_lose_it_and_keep_those_inside(reply):
    assert parse_text(reply, "prose").text == README
    assert parse_choice(reply).text == README
    assert parse_choice(reply).form == "prose"


@pytest.mark.parametrize(
    "words",
    [
        "Dear Ann,\n\nyour number:\n\n```\nnumber 123\n```\n\nBest,\nAda",
        "Hi,\nthe log:\n```text\n" + "a line of it\n" * 9 + "```",
        "```md\n# One\n```\nand\n```md\n# Two\n```",
        "```\nnumber 1\n```\nand\n```\nnumber 2\n```",
    ],
)
def test_words_with_a_fence_in_them_keep_all_of_it(words):
    for reply in (words, f"<text>\n{words}\n</text>"):
        assert parse_text(reply, "prose").text == words
        assert parse_choice(reply).text == words


def test_a_fence_that_the_text_to_revise_has_too_stays():
    old, new = "```md\n# Old\n```", "```md\n# New\n```"
    assert parse_text(new, "prose", base=old).text == new


def test_a_fence_in_a_list_loses_its_indentation_and_what_stands_below_is_thoughts():
    reply = "1. So:\n\n   ```python\n   def f():\n       return 1\n   ```\n2. Done."
    assert parse_text(reply, "code").text == "def f():\n    return 1"
    nested = '````python\ns = """\n```\na\n```\n"""\n````'
    assert parse_text(nested, "code").text == 's = """\n```\na\n```\n"""'
    written = parse_text("Plan.\n```python\nx = 1\n```\nf1: done", "code")
    assert (written.text, written.thoughts) == ("x = 1", "Plan.\n\nf1: done")


# Envelopes

CALLED = '{"name": "Response", "arguments": %s}'
ENVELOPES = {
    "a tool call": CALLED % '{"code": "x = 1"}',
    "arguments as a text": CALLED % r'"{\"code\": \"x = 1\"}"',
    "parameters": '{"name": "Response", "parameters": {"code": "x = 1"}}',
    "a function": '{"type": "function", "function": %s}' % (CALLED % '{"code": "x = 1"}'),
    "a list of calls": "[%s]" % (CALLED % '{"code": "x = 1"}'),
    "a call in tags": "<tool_call>\n%s\n</tool_call>" % (CALLED % '{"code": "x = 1"}'),
    "a schema filled in": '{"properties": {"thoughts": "t", "response": "x = 1"}}',
    "in a fence": '```json\n{"code": "x = 1"}\n```',
    "quotes that are not escaped": '{"thoughts": "a "b"", "response": "x = 1"}',
    "line breaks": '{"thoughts": "a\nb", "response": "\nx = 1\n"}',
    "no end": '{"thoughts": "t", "response": "x = 1',
    "Python's quotes": "{'thoughts': 't', 'response': 'x = 1'}",
    "no quotes": '{thoughts: "t", response: "x = 1"}',
    "typographic quotes": "{“thoughts”: “t”, “response”: “x = 1”}",
    "no comma": '{"thoughts": "t"\n"response": "x = 1"}',
    "a comment": '{"thoughts": "t", // why\n"response": "x = 1"}',
    "three quotes": '{"thoughts": "t", "response": """x = 1"""}',
    "one line": "Thoughts: sum it. Response: x = 1",
    "dashes": "Thoughts - sum it\nResponse - x = 1",
    "Chinese": "思考：求和。\n回答：x = 1",
    "Chinese on one line": "思考：求和。 回答：x = 1",
    "Chinese and a fence": "思考：求和。回答：\n```python\nx = 1\n```",
    "Japanese": "考え：足す。\n回答：x = 1",
    "German": "**Gedanken**: addieren\n\n**Antwort**:\nx = 1",
    "French": "Réflexion : ajouter\n\nRéponse :\nx = 1",
    "Spanish": "## Razonamiento\nsumar\n\n## Respuesta\nx = 1",
    "Portuguese": "Raciocínio: somar\nResposta: x = 1",
    "Russian": "Мысли: сложить\nОтвет: x = 1",
}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("shape", ENVELOPES)
def test_a_text_is_taken_out_of_whichever_envelope(shape, own):
    assert parse_text(ENVELOPES[shape], "code", own=own).text == "x = 1"


@pytest.mark.parametrize(
    "reply",
    [
        '{"a": 1}', '{"note": "x = 1"}', '{"thoughts": "t", "resp', '[{"type": "text"}]',
        '<tool_call>{"name": "f", "arguments": {}}</tool_call>', "```python\n```python\nx = 1\n```",
        "x = 1 +\n~~~\n",
    ],
)  # fmt: skip
def test_an_envelope_without_readable_python_is_asked_for_again(reply):
    for own in (True, False):
        with pytest.raises(ReplyError):
            parse_text(reply, "code", own=own)


def test_prose_that_is_json_is_asked_for_again_unless_the_task_wants_json():
    reply = '{"subject": "Delay", "body": "It is late."}'
    with pytest.raises(ReplyError):
        parse_text(reply, "prose", task=Task(text="Write an email."))
    assert parse_text(reply, "prose", task=Task(text="Write an email as JSON.")).text == reply
    assert parse_text(reply, "prose", base='{"subject": ""}').text == reply
    called = '{"name": "Response", "arguments": {"text": "Hi Ann."}}'
    assert parse_text(called, "prose").text == "Hi Ann."


@pytest.mark.parametrize(
    "reply",
    [
        "{name} is a place, and {a: 1} a set.", '"{"text": …}" is how they write it.',
        "Answer: it is late.", "Notes: a\nCode: b", "回答问题之前，请先思考。",
    ],
)  # fmt: skip
def test_words_that_merely_look_like_an_envelope_stay(reply):
    assert parse_text(reply, "prose").text == reply


@pytest.mark.parametrize("code", ["{c: 1 for c in s}", "[1, 2]", "{**a, 'b': 1}.keys()"])
def test_python_that_begins_like_json_is_python(code):
    assert parse_text(code, "code", own=True).text == code
    assert parse_text(fenced('{"code": "z", "a": 1}'), "code").text == '{"code": "z", "a": 1}'
