"""What a text should give: tests that a critic wrote, which every text of the run is tried on."""

import ast
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeGuard

from pydantic import Field

from ipyrefine.core.model import (
    SUITE,
    Claim,
    Evidence,
    Finding,
    Record,
    Severity,
    Status,
    Tally,
    TestResult,
)
from ipyrefine.core.syntax import names_bound, names_used, try_parse

_QUOTED = re.compile(
    "[\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}](.+?)"
    "[\"'`\N{RIGHT DOUBLE QUOTATION MARK}\N{RIGHT SINGLE QUOTATION MARK}](?!\\w)"
)
_NEAR, _FEW, _SPREAD = 6 / 7, 4, 1.5  # of a quote: words that stand there, from how many, how far
_PLAIN = str.maketrans(
    {
        **dict.fromkeys('*_`#>"', ""),
        "\N{LEFT DOUBLE QUOTATION MARK}": "",
        "\N{RIGHT DOUBLE QUOTATION MARK}": "",
        "\N{LEFT SINGLE QUOTATION MARK}": "'",
        "\N{RIGHT SINGLE QUOTATION MARK}": "'",
        "\N{NO-BREAK SPACE}": " ",
    }
)
_TEST = re.compile(r"^[^\S\n]*(?:async\s+)?def\s+(test\w*)", re.MULTILINE)
_QUOTED_TESTS = 3  # of those that fail, as code
MAX_OF_CRITIQUE = 12
MAX_OF_RUN = 40
MAX_CODE = 10_000  # characters of a test


class Expectation(Claim):
    """A pytest function that says what a text should give."""

    name: str  # the function's name, once in the run
    code: str = Field(max_length=MAX_CODE)  # the function, with what it needs before it
    quote: str = ""  # its docstring, which quotes the words of the task behind it
    # Whether these words stand in the task. Only such a test can fail a text; another one
    # that fails is a question.
    grounded: bool = False
    # Whether it says nothing of a text: it passes on empty functions as well.
    vacuous: bool = False
    # Why no text is tried on it; empty where texts are.
    untried: Literal["", "long", "many", "broken", "no_suite"] = ""
    status: Literal[Status.OPEN, Status.DISMISSED] = Status.OPEN  # open, or dismissed by the user
    iteration: int = 0  # the text that it was written for


Comparison = Literal["better", "same", "worse"]


class Critique(Record):
    """What a critic says of a text."""

    findings: tuple[Finding, ...] = ()  # the weaknesses that no run can show, the worst first
    expectations: tuple[Expectation, ...] = ()  # the tests it wrote
    questions: tuple[str, ...] = ()  # what the task leaves open, each in a sentence
    ready: bool | None = None  # whether it takes the text for finished; None where it doesn't say
    reason: str = ""  # what that rests on, in a sentence
    upheld: tuple[str, ...] = ()  # the contested claims that it stands by
    dropped: tuple[str, ...] = ()  # ids of the contested findings that it lets go
    # A revision next to the text that it was made from, as a whole, and what was lost with it.
    compared: Comparison | None = None
    lost: str = ""
    fixed: tuple[str, ...] = ()  # ids of earlier findings that the text no longer has
    failure: str = ""  # why the reply could not be read; empty where it could


def read_tests(source: str) -> list[Expectation]:
    """Return the tests of a piece of Python, each with the imports and helpers that it needs.

    Args:
        source: pytest functions, whose docstrings quote the task.

    Returns:
        All of its tests. A source that is not Python is one test, which cannot be tried.
    """
    tree = try_parse(source)
    if tree is None and (names := _TEST.findall(source)):
        return [Expectation(name=names[0], code=source[:MAX_CODE], untried="broken")]
    body = tree.body if tree else []
    others = [one for one in body if not _is_test(one)]
    tests: list[Expectation] = []
    for node in filter(_is_test, body):
        needed = [*_needed(node, others), node]
        try:
            code = "\n\n".join(ast.unparse(one) for one in needed)
        except RecursionError:
            tests.append(Expectation(name=node.name, code="", untried="broken"))
            continue
        quote = " ".join((ast.get_docstring(node) or "").split()).strip("\"' ")
        test = Expectation(name=node.name, code=code[:MAX_CODE], quote=quote)
        tests.append(test.replace(untried="long") if len(code) > MAX_CODE else test)
    return tests


def _is_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _is_test(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return _is_function(node) and node.name.startswith("test")


def _needed(node: ast.stmt, others: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that bind what a piece of code reads, and what these read."""
    wanted, found = names_used(node), set[int]()
    growing = True
    while growing:
        growing = False
        for place, other in enumerate(others):
            if place not in found and names_bound(other) & wanted:
                found.add(place)
                wanted |= names_used(other)
                growing = True
    return [other for place, other in enumerate(others) if place in found]


def name_apart(
    tests: Iterable[Expectation], earlier: Iterable[Expectation], iteration: int
) -> tuple[Expectation, ...]:
    """Return new tests under names that no earlier one has; those that say the same are left out.

    Texts are tried on at most 12 tests of a critique, and on 40 of a run.

    Args:
        tests: the new ones.
        earlier: those that the run has already.
        iteration: the text that the new ones were written for.
    """
    earlier = list(earlier)
    taken, codes = {one.name for one in earlier}, {_body(one.code) for one in earlier}
    room = min(MAX_OF_CRITIQUE, MAX_OF_RUN - sum(not one.untried for one in earlier))
    fresh: list[Expectation] = []
    for test in tests:
        if _body(test.code) in codes:
            continue
        if not test.untried and sum(not one.untried for one in fresh) >= room:
            test = test.replace(untried="many")
        name, number = test.name, 2
        while name in taken:
            name, number = f"{test.name}_{number}", number + 1
        code = test.code if name == test.name else _renamed(test.code, test.name, name)
        taken.add(name)
        codes.add(_body(test.code))
        fresh.append(test.replace(name=name, code=code, iteration=iteration))
    return tuple(fresh)


def _body(code: str) -> str:
    """Return what a test does, apart from its name and its docstring."""
    tree = try_parse(code)
    if tree is None or not tree.body or not _is_function(function := tree.body[-1]):
        return code
    if ast.get_docstring(function):
        function.body = function.body[1:] or [ast.Pass()]
    function.name = "test"
    return ast.unparse(tree)


def _renamed(code: str, old: str, new: str) -> str:
    tree = try_parse(code)
    if tree is None:  # it is not tried
        return code
    for node in tree.body:
        if _is_function(node) and node.name == old:
            node.name = new
    return ast.unparse(tree)


def rests_on(task: str, docstring: str) -> bool:
    """Return whether a task contains a test's docstring, or words quoted in it."""
    quotes = [words for words in _QUOTED.findall(docstring) if len(words.split()) > 1]
    return any(contains_quote(task, words) for words in (docstring, *quotes))


def contains_quote(text: str, quote: str, *, near: bool = True) -> bool:
    """Return whether a text contains a quote, compared loosely.

    White space, case, Markdown and quotation marks do not count. What an ellipsis leaves out may be
    anything. Of four words and more, six in seven have to stand there in their order. An empty
    quote is about something missing, and is in every text; one of marks alone must be there as it
    is. Without ``near``, every word has to.
    """
    parts = [part for part in map(_flatten, re.split(r"\.{3,}|…", quote)) if part]
    if not parts:
        return quote.strip() in text
    flat = _flatten(text)
    return all(part in flat or (near and _is_near(flat, part)) for part in parts)


def _flatten(text: str) -> str:
    return " ".join(text.translate(_PLAIN).casefold().split()).strip(" .,;:")


def _is_near(text: str, words: str) -> bool:
    wanted = words.split()
    if len(wanted) < _FEW:
        return False
    found = SequenceMatcher(None, text.split(), wanted, autojunk=False).get_matching_blocks()[:-1]
    if not found or found[-1].a + found[-1].size - found[0].a > _SPREAD * len(wanted):
        longest = max((block.size for block in found), default=0)
        return longest >= _NEAR * len(wanted)
    return sum(block.size for block in found) >= _NEAR * len(wanted)


def in_force(expectations: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """Return the tests that texts are tried on: not vacuous, and not dismissed."""
    return tuple(
        one
        for one in expectations
        if one.status is Status.OPEN and not (one.vacuous or one.untried)
    )


def counts(test: Expectation) -> bool:
    """Return whether a text that fails a test cannot pass.

    The words it rests on stand in the task, and no reviser contests it, or only once and in vain.
    """
    return test.grounded and test.undoubted


def is_open_claim(test: Expectation) -> bool:
    """Return whether a text that fails a test cannot pass yet: it counts, or its answer waits."""
    return counts(test) or (test.grounded and (test.unanswered or test.disputed))


def contested(expectations: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """Return the tests that a critic has still to answer for."""
    return tuple(one for one in in_force(expectations) if one.unanswered)


def suite_evidence(
    expectations: Iterable[Expectation], results: Sequence[TestResult], seconds: float = 0.0
) -> Evidence:
    """Return what the tests show of a text, as evidence.

    It fails where a test fails that counts. It says nothing where none of those could be tried.
    A failing test that a reviser contests is a finding too, which waits for the critic or the user.
    """
    tests = {one.name: one for one in expectations}
    counting = {name: one for name, one in tests.items() if counts(one)}
    tried = [one for one in results if one.passed is not None and one.name in counting]
    failing = [one for one in tried if not one.passed]
    open_claims = [one for one in results if one.passed is False and is_open_claim(tests[one.name])]
    held = len(tried) - len(failing)
    lines = [f"{one.name} (“{counting[one.name].quote}”): {one.line}" for one in failing]
    lines += [counting[one.name].code for one in failing[:_QUOTED_TESTS]]
    lines += [f"{held} of {len(tried)} tests of the critic's pass."] if tried else []
    return Evidence(
        name=SUITE,
        passed=held == len(tried) if tried else None,
        score=held / len(tried) if tried else None,
        tallies=(Tally(held=held, of=len(tried), noun="test"),) if tried else (),
        detail="\n".join(lines),
        seconds=seconds,
        basis="critique",
        results=tuple(results),
        conditions=tuple(dict.fromkeys(c for one in results for c in one.conditions)),
        findings=tuple(
            Finding(
                criterion=one.name,
                severity=Severity.BLOCKING,
                demand=tests[one.name].quote,
                problem=one.line,
                author="check",
                contests=tests[one.name].contests,
                contest=tests[one.name].contest,
                upheld=tests[one.name].upheld,
            )
            for one in open_claims
        ),
    )
