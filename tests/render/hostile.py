"""Texts that try to act where they are shown."""

from hypothesis import strategies as st

SNIPPETS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<iframe src='javascript:alert(1)'></iframe>",
    '<a href="javascript:alert(1)">x</a>',
    '<button data-commandlinker-command="notebook:run-all" data-commandlinker-args="{}">',
    '"\' onfocus=alert(1) autofocus x="',
    "</pre></code></details></div></style>",
    "<!--",
    "]]>",
    "&lt;&amp;&#60;&nbsp;",
    "\x1b[2J\x1b[31mred\x1b[0m",
    "\x1b]8;;https://evil.test\x07link\x1b]8;;\x07",
    "\x9b31m",
    "\u202egnp.exe\u202c\u2066x\u2069\u200b",
    "\r\n",
    "\r",
    "\x00\x07\x08\x7f\x85\u2028",
    "```",
    "````python",
    "~~~",
    "\n\n",
    "    ",
    "\t",
    "# head",
    "- item",
    "1. one",
    "| a | b |\n|---|---|",
    "[x](javascript:alert(1))",
    "![x](https://evil.test/x.png)",
    "https://evil.test www.evil.test me@evil.test <https://evil.test>",
    "*a* _b_ **c** `d` ~~e~~",
    "$x$ $$y$$ \\(z\\) \\[w\\] \\begin{a}",
    "\\",
    "漢字 emoji 👩‍👩‍👧 e\u0301",
    '{"a": [1]}',
    "def f(x):\n    return '''",
)

texts = st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=12), max_size=6).map("".join)
