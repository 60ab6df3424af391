# ruff: noqa: RUF001
"""What a critic replies is read in whichever form it comes, and quotes are matched loosely."""

import json

import pytest

from ipyrefine.core.critiques import parse_critique
from ipyrefine.core.quotes import contains_quote, rests_on
from ipyrefine.core.results import claims
from ipyrefine.core.table import Point
from ipyrefine.core.testing import name_apart, read_tests
from ipyrefine.errors import ReplyError

TEST = 'def test_empty():\n    """An empty list gives 0."""\n    assert f([]) == 0\n'
FIELDS = {
    "findings": [
        {"task": "in plain words", "place": "Dear Sir", "problem": "Stiff.", "blocks": False}
    ],
    "questions": [{"question": "What of None?", "options": ["0", "TypeError"]}],
    "ready": False,
    "because": "An empty list is not handled.",
}
DATA = json.dumps(FIELDS)
LISTED = """Findings:
1. Stiff.

**Questions**
- What of None? (0 / TypeError)

Not ready: An empty list is not handled.
"""


@pytest.mark.parametrize(
    "reply",
    [
        f"Let me think.\n\n```python\n{TEST}```\n\n```json\n{DATA}\n```",
        f"<tests>\n{TEST}</tests>\n{DATA}",
        json.dumps({**FIELDS, "tests": [TEST]}),
        json.dumps({**FIELDS, "tests": [{"code": TEST}]}),
        f"It reads {{odd}} and {{'x': 1}}.\n```\n{TEST}```\n{DATA[:-1]},}}",
        f"```python\n{TEST}```\n{LISTED}",
    ],
    ids=["fences", "tags", "json", "json objects", "a trailing comma", "headings"],
)
def test_a_critique_is_read_in_each_form_that_models_write(reply):
    critique = parse_critique(reply, "Dear Sir, hello.")
    assert [one.words for one in critique.tests] == ["test_empty"]
    assert [one.words for one in critique.weaknesses] == ["Stiff."]
    [question] = (one for one in critique.remarks if one.kind == "question")
    assert (question.words, question.options) == ("What of None?", ("0", "TypeError"))
    assert critique.reading.ready is False
    assert critique.reading.reason == "An empty list is not handled."


@pytest.mark.parametrize(
    ("words", "ready"),
    [
        ("Verdict: FAIL. The price is missing.", False), ("Ready? No.", False),
        ("Ready: No \N{EN DASH} the price is missing.", False), ("Verdict: needs work", False),
        ("## Verdict\n\nReject.", False), ("**Verdict:** not ready", False),
        ("Not ready: the price is missing.", False), ("Ready: almost", False),
        ("Ready: yes, but the price is missing", False),
        ("Verdict: ready once the price is there", False), ("Verdict: nein", False),
        ("## Ready\n\nNo, the price is missing.", False), ("Ready: yes", True),
        ("Ready? Yes. All three wishes are there.", True),
        ("Ready. All three wishes are there.", True), ("**Ready**: true", True),
        ("Verdict: PASS", True), ("Verdict: **approved**", True), ("## Verdict\n\nReady.", True),
        ("### Ready\n\n是。", True),
    ],
)  # fmt: skip
def test_only_a_yes_is_a_yes_in_words(words, ready):
    assert parse_critique(f"Findings:\n{words}\n", "x").reading.ready is ready


@pytest.mark.parametrize(
    ("word", "ready"),
    [
        *[(yes, True) for yes in (True, "true", "Yes", "ready", "Yes.", "ja")],
        *[(no, False) for no in (False, "false", "almost", "not yet", "needs work", "", 0, [])],
        ("yes, once the price is there", False),
        ("ready if you add the price", False),
        (None, None),
    ],
)
def test_only_a_yes_is_a_yes_in_json(word, ready):
    assert parse_critique(json.dumps({"findings": [], "ready": word}), "x").reading.ready is ready
    assert parse_critique(json.dumps({"findings": [], "verdict": word}), "x").reading.ready is ready


@pytest.mark.parametrize(
    ("reply", "ready"),
    [
        ('{"findings": [], "not_ready": true}', False),
        ('{"findings": [], "Not yet ready": "the price is missing"}', False),
        ('{"findings": [], "not_ready": false}', True),
        ('{"findings": [], "Ready?": "no"}', False),
        ('{"findings": [], "ready": false # the price is missing\n}', False),
        ('{"findings": [], "ready": false, /* the price */ "because": "x" // is missing\n}', False),
    ],
)
def test_a_no_is_read_under_other_names_and_beside_comments(reply, ready):
    assert parse_critique(reply, "x").reading.ready is ready


NO = '{"findings": [{"problem": "It lacks a price.", "blocks": true}], "ready": false}'


@pytest.mark.parametrize(
    "reply",
    [
        f'{NO}\n\nAs asked: {{"findings": [], "ready": true}}.',
        f'As asked: {{"findings": [], "ready": true}}.\n\n{NO}',
        NO.replace(', "ready": false', "") + '\n{"ready": false}',
    ],
)
def test_of_several_json_objects_no_weakness_and_no_no_is_lost(reply):
    critique = parse_critique(reply, "x")
    assert [one.words for one in critique.weaknesses] == ["It lacks a price."]
    assert critique.reading.ready is False


def test_a_comment_beside_a_weakness_is_no_part_of_it():
    for gap in (" // sure\n", ", // sure\n", " # sure\n", ", /* sure */ "):
        reply = f'{{"findings": [{{"problem": "No price"{gap}"blocks": false}}], "ready": true,}}'
        [found] = parse_critique(reply, "x").weaknesses
        assert (found.words, found.blocking) == ("No price", False)


def test_a_critic_that_leaves_its_word_empty_has_not_said_that_a_text_is_ready():
    reading = parse_critique('{"findings": [], "score": 3, "ready": null}', "x").reading
    assert (reading.ready, reading.failure) == (None, "it does not say whether the text is ready")


def test_a_block_in_another_language_hides_no_test_behind_it():
    shown = 'It gives\n```json\n{"a": 1}\n```\nwhere 2 is asked.\n'
    [test] = parse_critique(f"{shown}```python\n{TEST}```\n{DATA}", "").tests
    assert test.words == "test_empty"


def test_a_finding_keeps_its_demand_and_loses_a_place_that_is_not_there():
    (found,) = parse_critique(DATA, "Hello.").weaknesses
    assert (found.quote, found.place) == ("in plain words", "")
    assert not found.blocking
    (placed,) = parse_critique(DATA, "**Dear** Sir").weaknesses
    assert placed.place == "Dear Sir"


def test_a_finding_blocks_unless_it_says_otherwise_and_an_empty_one_is_none():
    named = [{"problem": "Wrong."}, "Too long.", {"problem": " "}, {"severity": "minor"}]
    found = parse_critique(json.dumps({"findings": named}), "x").remarks
    assert [(one.words, one.blocking) for one in found] == [("Wrong.", True), ("Too long.", True)]


@pytest.mark.parametrize(
    "reply",
    [
        *("", "Looks fine to me.", '{"verdict": 1}', "{", "```python\n1\n```"),
        *("The text is ready.", "Looks good. Ready.", "It is never ready."),
        *("1. One demand\n2. Another", "Summary: the letter asks for a price."),
    ],
)
def test_a_reply_without_a_verdict_is_asked_about(reply):
    with pytest.raises(ReplyError):
        parse_critique(reply, "x")


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("the shortest path", True),
        ("The  Shortest\nPATH", True),
        ("“the shortest `path`”", True),
        ("the shortest … two nodes", True),
        ("return the shortest route between two nodes", True),  # one word of seven differs
        ("a path", False),
        ("the longest route", False),
        ("", True),
    ],
)
def test_a_quote_is_found_loosely(quote, stands):
    assert contains_quote("Return *the shortest* path between two nodes.", quote) is stands


def test_a_test_brings_the_imports_and_helpers_it_needs_and_no_others():
    source = (
        "import math\nimport json\nLIMIT = 3\ndef make(n):\n    return [LIMIT] * n\n\n"
        "def test_one():\n    assert f(make(2)) == 6\n\ndef test_two():\n    assert math.pi\n"
    )
    one, two = read_tests(source)
    assert "LIMIT = 3" in one.code
    assert "import" not in one.code
    assert two.code.startswith("import math\n")


def test_new_tests_have_names_of_their_own_and_repeated_ones_are_left_out():
    known = name_apart(read_tests(TEST), (), 0)
    other = read_tests(TEST.replace("== 0", "is None"))
    again = read_tests(TEST.replace("test_empty", "test_nothing"))
    fresh = name_apart([*other, *again], known, 1)
    assert [(one.words, one.text) for one in fresh] == [("test_empty_2", 1)]
    assert "def test_empty_2" in fresh[0].code


def test_texts_are_tried_on_12_tests_of_a_critique_and_on_40_of_a_run():
    def tests(first: int) -> list[Point]:
        numbers = range(first, first + 15)
        return read_tests("\n".join(f"def test_{n}():\n    assert f({n})\n" for n in numbers))

    run: list[Point] = []
    for number in range(4):
        run += name_apart(tests(15 * number), run, number)
    assert [one.dropped for one in run[:15]] == [""] * 12 + ["many"] * 3
    assert len(run) == 60
    assert sum(not one.dropped for one in run) == 40


def test_a_test_that_cannot_be_run_is_kept_with_the_reason():
    sources = {
        "test_one": "def test_one(:\n    assert f(1)\n",
        "test_two": f"def test_two():\n    assert f('{'1' * 20_000}')\n",
        "test_deep": f"def test_deep():\n    assert f() == {'-' * 900}1\n",
    }
    tests = [test for source in sources.values() for test in read_tests(source)]
    assert [test.words for test in tests if not test.dropped] == ["test_deep"]
    named = {one.words: one.dropped for one in name_apart(tests, (), 0)}
    assert [*named] == [*sources]
    assert (named["test_one"], named["test_two"]) == ("broken", "long")
    deep = Point(kind="test", words="test_deep", code=sources["test_deep"])
    assert claims(tests[-1]) == claims(deep) == ()


FORMS = {
    "a class": (
        "class TestF:\n    def setup_method(self):\n        self.n = 1\n"
        "    def test_one(self):\n        \'\'\'Words.\'\'\'\n        assert f(self.n) == 1\n"
        "    def test_two(self):\n        assert f(2) == 2\n",
        {"test_one": "Words.", "test_two": ""},
    ),
    "unittest": (
        "import unittest\nclass F(unittest.TestCase):\n    \'\'\'Words.\'\'\'\n"
        "    def test_one(self):\n        self.assertEqual(f(1), 1)\n"
        "if __name__ == '__main__':\n    unittest.main()\n",
        {"test_one": "Words."},
    ),
    "bare assertions": (
        "n = 1\n# Words.\nassert f(n) == 1\nassert f(2) == 2, 'More words.'\n"
        "assert f(3) == 3  # The last.\n",
        {"test_f": "Words.", "test_f_2": "More words.", "test_f_3": "The last."},
    ),
    "assertions between statements": (
        "s = Stack()\ns.push(1)\nassert s.pop() == 1\nassert not s\n",
        {"test_Stack": ""},
    ),
    "comparisons": ("f(1) == 1\nf(2) == 2\n", {"test_f": "", "test_f_2": ""}),
    "a function of another name": (
        "def check_one():\n    \'\'\'Words.\'\'\'\n    assert f(1) == 1\n",
        {"check_one": "Words."},
    ),
    "a main block": (
        "def check_one():\n    assert f(1) == 1\n"
        "def same(a, b):\n    assert a == b\n"
        "if __name__ == '__main__':\n    same(f(2), 2)\n    print('fine')\n",
        {"check_one": "", "test_same": ""},
    ),
    "a check that is called": (
        "def check(candidate):\n    assert candidate(1) == 1\ncheck(f)\n",
        {"test_check": ""},
    ),
    "a comment instead of a docstring": (
        "# Words.\ndef test_one():\n    assert f(1) == 1\n", {"test_one": "Words."},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("source", "found"), FORMS.values(), ids=FORMS)
def test_tests_are_read_in_whatever_form_they_are_written(source, found):
    reply = f"```python\n{source}```\n{DATA}"
    tests = name_apart(parse_critique(reply, "def f(x):\n    return x").tests, (), 0)
    assert {one.words: one.quote for one in tests} == found
    assert not any(one.dropped for one in tests)
    for one in tests:
        compile(f"{one.module}\n{one.code}", "test", "exec")


@pytest.mark.parametrize(
    "source",
    [">>> f(1)\n1\n", "def check(candidate):\n    assert candidate(1) == 1\n", "assert f(1) ==\n"],
    ids=["a prompt", "a check that nothing calls", "no Python"],
)
def test_what_cannot_be_run_as_a_test_is_named(source):
    [test] = parse_critique(f"```python\n{source}```\n{DATA}", "x = 1").tests
    assert (test.dropped, bool(test.reason)) == ("broken", True)


def test_code_that_a_critic_quotes_or_proposes_is_no_test():
    text = "def f(x):\n    return x\nassert f(1) == 1\n"
    proposed = "def f(x):\n    assert x\n    return x + 1\n"
    for source in (text, proposed):
        assert not parse_critique(f"```python\n{source}```\n{DATA}", text).tests


def test_a_test_gets_what_another_block_of_the_reply_defines():
    helper = "CASES = [1]\ndef f(x):\n    return 7\n"
    source = "def test_one():\n    assert all(f(n) for n in CASES)\n"
    reply = f"```python\n{helper}```\n```python\n{source}```\n{DATA}"
    [test] = parse_critique(reply, "def f(x):\n    return x").tests
    assert test.module == "CASES = [1]"
    assert test.code.startswith("CASES = [1]\n")


ASKED = """\
Write a function `total(items)`. Return the sum of the squares of all **positive** numbers in a \
list; an empty list gives 0.
- Raise ValueError if an item is not a number.
- Sort the words by length, the longest first, and keep ties in their order.
Such as total([2]) → 4. It adds two numbers.
Gib die Summe aller Zahlen zurück. Leere Listen ergeben 0.
返回列表中所有正数的平方和。空列表返回0。
Renvoie la somme des nombres positifs, sans modifier la liste.
No gaps.
"""
QUOTED = [
    "The task says 'the longest first', so ties keep their order.", 'Task: "an empty list gives 0"',
    "«an empty list gives 0»", "„Gib die Summe aller Zahlen zurück“",
    "「返回列表中所有正数的平方和」", "空列表返回0。", "任务\uff1a空列表返回0",
    '"the longest first" / "keep ties in their order"', "an empty list gives 0: so f([]) is 0",
    "an empty list gives 0 - and not None", "keep ties in their order\n\nSo the first stays first.",
    "Return the sum [...] in a list", "Return the sum of the squares … in a list",
    "Returns the sum of the squares",
    "It raises ValueError: raises ValueError if an item is not a number",
    "Gibt die Summe aller Zahlen zurück", "- Raise ValueError if an item\n  is not a number",
    "positive numbers in a list", "(an empty list gives 0)", "[an empty list gives 0]",
    "RAISE VALUEERROR IF AN ITEM IS NOT A NUMBER!",
    "returns the sum of squares of all positive numbers", "sans modifier la liste",
    "Leere Listen ergeben 0", "[2] → 4", "No gaps",
]  # fmt: skip
NOT_QUOTED = [
    '"the"', '","', "", "…", "Task:", "two numbers", '"two numbers" … must return a list',
    "It adds two lists", "must return a list", "an empty string gives 0",
    "gives 0 … an empty string", "in a list … Write a function", "Ties keep the order of input.",
    "Raise TypeError if an item is not a number", "keep gaps", "-4 numbers in a list", "[2] → 5",
    "返回", "返回字符串", "列表为空时抛出异常", "Die Liste wird sortiert", "renvoie une liste vide",
]  # fmt: skip


@pytest.mark.parametrize(
    ("docstring", "rests"),
    [*((one, True) for one in QUOTED), *((one, False) for one in NOT_QUOTED)],
)
def test_a_test_rests_on_words_of_the_task_in_their_order(docstring, rests):
    [test] = read_tests(f"def test_one():\n    {docstring!r}\n    assert total([]) == 0\n")
    assert rests_on(ASKED, test.quote) is rests


# Critiques in other shapes

STIFF = ("Stiff.", "Write Hi.", "Dear Sir", False)
PRICE = ("The price is missing.", "Name it.", "", True)
TABLE = """\
| # | Problem | Place | Fix | Severity |
|---|---|---|---|---|
| 1 | Stiff. | Dear Sir | Write Hi. | minor |
| 2 | The price is missing. | | Name it. | major |

Ready: no"""
NESTED = """\
Weaknesses:
- Stiff.
  - Fix: Write Hi.
  - Location: "Dear Sir"
  - Severity: minor
- The price is missing.
  - Fix: Name it.

Not ready."""
GIVEN = (
    '[{"description": "Stiff.", "suggestion": "Write Hi.", "location": "Dear Sir", "severity":'
    ' "low"}, {"issue": "The price is missing.", "suggested_fix": "Name it."}]'
)
ARGUMENTS = json.dumps({"findings": json.loads(GIVEN), "ready": "no"})
IN_TEXT = json.dumps({"name": "x", "arguments": ARGUMENTS})
SHAPES = {
    "nested bullets": NESTED,
    "bullets beside each other": NESTED.replace("\n  -", "\n-"),
    "numbers": NESTED.replace("\n- Stiff", "\n1. Stiff").replace("\n- The", "\n2. The"),
    "lines below": NESTED.replace("  - ", "  "),
    "bold": "## Weaknesses\n\n1. **Stiff.**\n   **Fix:** Write Hi.\n   *Place*: “Dear Sir”\n"
    "   Severity: minor\n2. **The price is missing.** (Fix: Name it.)\n\n## Verdict\nNot ready.",
    "labelled problems": NESTED.replace("- Stiff", "- Problem: Stiff")
    .replace("- The", "- **Problem:** The").replace("Weaknesses:\n", ""),
    "a list alone": NESTED.replace("Weaknesses:\n", ""),
    "a list below words": NESTED.replace("Weaknesses:", "I see two things here:"),
    "strengths too": f"Strengths:\n- short\n- on time\n\n{NESTED}",
    "headings": "## Findings\n### Stiff.\n- Fix: Write Hi.\n- Place: Dear Sir\n- Severity: minor\n"
    "### 2. The price is missing.\n- Fix: Name it.\n## Ready\nNo.",
    "a table": TABLE,
    "a table below a heading": f"## Weaknesses\n\n{TABLE}",
    "JSON": f'{{"weaknesses": {GIVEN}, "ready": false}}',
    "JSON inside": f'{{"critique": {{"issues": {GIVEN}, "verdict": "needs work"}}}}',
    "a tool call": f'{{"name": "critique", "arguments": {{"findings": {GIVEN}, "ready": false}}}}',
    "a call in tags": f"<tool_call>\n{IN_TEXT}\n</tool_call>",
    "an object each": "\n".join(map(json.dumps, json.loads(GIVEN))) + "\nNot ready.",
    "broken JSON": f"{{'weaknesses': {GIVEN}, 'ready': False,",
    "German": "Schwächen:\n- Stiff.\n  - Lösung: Write Hi.\n  - Stelle: „Dear Sir“\n"
    "  - Schwere: gering\n- The price is missing.\n  - Vorschlag: Name it.\n\nFertig: nein",
    "French": "Faiblesses :\n- Stiff.\n  - Correction : Write Hi.\n  - Citation : « Dear Sir »\n"
    "  - Gravité : mineure\n- The price is missing.\n  - Correction : Name it.\n\nPrêt : non",
    "Spanish": "## Debilidades\n1. Stiff.\n   - Sugerencia: Write Hi.\n   - Cita: Dear Sir\n"
    "   - Gravedad: baja\n2. The price is missing.\n   - Sugerencia: Name it.\n\nVeredicto: no",
    "Portuguese": "Fraquezas:\n- Stiff.\n  - Correção: Write Hi.\n  - Trecho: Dear Sir\n"
    "  - Gravidade: baixa\n- The price is missing.\n  - Correção: Name it.\n\nPronto: não",
    "Chinese": "问题：\n1. Stiff.\n   - 建议：Write Hi.\n   - 位置：Dear Sir\n   - 严重程度：轻微\n"
    "2. The price is missing.\n   - 建议：Name it.\n\n就绪：否",
    "Japanese": "弱点：\n- Stiff.\n  - 修正：Write Hi.\n  - 場所：Dear Sir\n  - 重要度：低\n"
    "- The price is missing.\n  - 修正：Name it.\n\n準備完了：いいえ",
    "Russian": "Недостатки:\n- Stiff.\n  - Исправление: Write Hi.\n  - Место: Dear Sir\n"
    "  - Серьёзность: низкая\n- The price is missing.\n  - Исправление: Name it.\n\nГотово: нет",
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_a_critique_is_read_as_lists_tables_calls_and_in_other_languages(shape):
    critique = parse_critique(SHAPES[shape], "Dear Sir, hello.")
    found = [(p.words, p.fix, p.place, p.blocking) for p in critique.remarks]
    assert found == [STIFF, PRICE]
    assert (critique.reading.ready, critique.reading.failure) == (False, "")


@pytest.mark.parametrize(
    ("words", "found", "reason"),
    [
        ("No price is named.\n\nIt is not ready.", ["No price is named."], "It is not ready."),
        ("Weaknesses: the price is missing\nNot ready.", ["the price is missing"], ""),
        ("It lacks a price, so it isn't ready.", [], "It lacks a price, so it isn't ready."),
        ('{"evaluation": "FAIL", "feedback": "No price."}', ["No price."], ""),
        ("## Findings\n### Tone\n- stiff\n- long\n\nNot ready.", ["stiff", "long"], ""),
    ],
)
def test_a_critic_may_say_in_words_what_is_missing(words, found, reason):
    critique = parse_critique(words, "x")
    assert [one.words for one in critique.remarks] == found
    assert (critique.reading.ready, critique.reading.reason) == (False, reason)


@pytest.mark.parametrize(
    "words",
    ["Findings: none\nReady: yes", "Weaknesses:\n- None.\n\nReady. All is there.",
     "## Strengths\n- short\n\n## Weaknesses\nKeine.\n\n## Fertig\nJa.",
     '{"weaknesses": [], "done": true}'],
)  # fmt: skip
def test_no_weakness_is_none(words):
    critique = parse_critique(words, "x")
    assert (critique.remarks, critique.reading.ready) == ((), True)


@pytest.mark.parametrize(
    ("value", "blocks"),
    [(True, True), ("true", True), ("yes", True), ("Yes, it does", True), (None, True),
     (False, False), ("false", False), ("No", False), ("no – a detail", False)],
)  # fmt: skip
def test_a_weakness_blocks_unless_that_is_denied(value, blocks):
    reply = json.dumps({"findings": [{"problem": "Wrong.", "blocks": value}]})
    assert [one.blocking for one in parse_critique(reply, "x").remarks] == [blocks]


def test_a_yes_beside_json_that_cannot_be_read_is_asked_about():
    shape = '{"findings": [], "ready": true}'
    with pytest.raises(ReplyError):
        parse_critique(f'{shape}\n{{"findings": [{{"problem": x}}], "ready": false}}', "x")
    assert parse_critique(f"{shape}\n{shape}", "x").reading.ready is True


@pytest.mark.parametrize(
    ("reply", "fixed", "upheld", "weaknesses"),
    [
        ("Findings: none\nFixed: f1 and f2\nReady: yes", ("f1", "f2"), None, 0),
        ("Schwächen: keine\nBehoben: f1\nBereit: ja", ("f1",), None, 0),
        ("Findings\n========\n\n1) Stiff.\n\n-----\nReady: no", (), None, 1),
        ("## Fixed\n- f1 (it greets)\n\n## Upheld\n- test_a\n\nReady: no", ("f1",), ("test_a",), 0),
        ("Fixed: none\nUpheld: none\nReady: no", (), (), 0),
        ("Findings:\n- Fixed: f1 only in part\nReady: no", (), None, 1),
        ('{"fixed": "f1, f2", "upheld": ["f3: it is asked for"], "ready": false}',
         ("f1", "f2"), ("f3",), 0),
    ],
)  # fmt: skip
def test_what_is_mended_and_upheld_is_read_in_words_and_is_no_weakness(
    reply, fixed, upheld, weaknesses
):
    critique = parse_critique(reply, "x")
    assert (critique.fixed, critique.upheld) == (fixed, upheld)
    assert len(critique.weaknesses) == weaknesses
