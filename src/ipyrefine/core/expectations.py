"""What a text should give: tests that a critic wrote, which every text of the run is tried on."""

import ast
import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from copy import copy
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import chain, takewhile
from typing import Any, Literal, NamedTuple, TypeGuard
from unicodedata import normalize

from pydantic import Field

from ipyrefine.core.model import (
    SUITE,
    Claim,
    Evidence,
    Fault,
    Finding,
    Record,
    Severity,
    Status,
    Tally,
    TestResult,
)
from ipyrefine.core.syntax import ERRORS, names_bound, names_used, parse, try_parse

_QUOTED = re.compile(
    r"(?<!\w)'([^']+)'(?!\w)|"
    + "|".join(
        f"{pair[0]}([^{pair[1:]}]+)[{pair[1:]}]"
        for pair in (
            '""',
            "``",
            "“”",
            "„“”",
            "\u2018\u2019",
            "\u201a\u2018",
            "«»",
            "»«",
            "\u2039\u203a",
            "「」",
            "『』",
        )
    )
)
_ELLIPSIS = re.compile(r"\.{3,}|\[[\s.]*\]")
_LETTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # of scripts without spaces
_SENTENCE = re.compile(rf"(?:[:!?;]|(?<!\.)\.(?!\.))(?=[\s{_LETTER}]|$)|。|\n")
_CLAUSE = re.compile(rf"{_SENTENCE.pattern}|[()\[\]\u2013—→⇒]|\s(?:[-/|]|[-=]>)\s")
_WORD = re.compile(rf"[{_LETTER}]|(?<!\w)-?\d+(?:[.,]\d+)*|[^\W{_LETTER}]+(?:'[^\W{_LETTER}]+)*")
_LEAST, _SHARE = 3, 0.6  # words of a quote; what such a letter counts of one
_NEAR, _FEW, _SPREAD = 6 / 7, 4, 1.5  # of a quote: words that stand there, from how many, how far
_PLAIN = str.maketrans(
    {
        **dict.fromkeys('*_`#>"“”„«»「」『』', ""),
        **dict.fromkeys("\u2018\u2019", "'"),
        "\u00a0": " ",
    }
)
_TEST = re.compile(r"^[^\S\n]*(?:async\s+)?def\s+(test\w*)", re.MULTILINE)
_CLAIM = re.compile(r"^\s*(?:assert\b|>>> )", re.MULTILINE)
_QUOTED_TESTS = 3  # of those that fail, as code
MAX_OF_CRITIQUE = 12
MAX_OF_RUN = 40
MAX_CODE = 10_000  # characters of a test


class Expectation(Claim):
    """A pytest function that says what a text should give."""

    name: str  # the function's name, once in the run
    code: str = Field(max_length=MAX_CODE)  # the function, with what it needs before it
    # The module that it is run in, where that has more than `code`; else empty.
    module: str = Field(default="", max_length=MAX_CODE)
    quote: str = ""  # its docstring, which quotes the words of the task behind it
    # Whether these words stand in the task. Only such a test can fail a text; another one
    # that fails is a question.
    grounded: bool = False
    # Whether a text that does nothing passes it as well: then only a failure counts.
    vacuous: bool = False
    # Why no text is tried on it; empty where texts are.
    untried: Literal["", "long", "many", "broken", "no_suite"] = ""
    reason: str = ""  # in words, where its own lines are broken
    computed: bool = False  # whether its critic saw what code computed from variables or files
    fault: Fault | None = None  # the reason as data, where that was computed
    status: Literal[Status.OPEN, Status.DISMISSED] = Status.OPEN  # open, or dismissed by the user
    iteration: int = 0  # the text that it was written for


Comparison = Literal["better", "same", "worse"]


class Critique(Record):
    """What a critic says of a text."""

    # The weaknesses that no run can show, the worst first; then what the task leaves open.
    findings: tuple[Finding, ...] = ()
    expectations: tuple[Expectation, ...] = ()  # the tests it wrote
    ready: bool | None = None  # whether it takes the text for finished; None where it doesn't say
    reason: str = ""  # what that rests on, in a sentence
    upheld: tuple[str, ...] = ()  # the contested claims that it stands by
    dropped: tuple[str, ...] = ()  # ids of the contested findings that it lets go
    # A revision next to the text that it was made from, as a whole, and what was lost with it.
    compared: Comparison | None = None
    lost: str = ""
    fixed: tuple[str, ...] = ()  # ids of earlier findings that the text no longer has
    failure: str = ""  # why the reply could not be read; empty where it could

    @property
    def weaknesses(self) -> list[Finding]:
        """Its findings, without what only asks."""
        return [finding for finding in self.findings if not finding.asks]


def read_tests(source: str, beside: Iterable[str] = (), text: str = "") -> list[Expectation]:
    """Return the tests of a piece of Python, each with its module.

    They are functions named ``test…``, such methods of classes, functions without arguments that
    assert something, and assertions outside of functions. A source that is not Python, or asserts
    what nothing can run, is one test, which cannot be tried.

    `beside` are other pieces of the reply, for what this one does not define; copies of what `text`
    defines are left out.
    """
    names = _TEST.findall(source) or ["test_block"] * bool(_CLAIM.search(source))
    try:
        return _read_tests(parse(source), source, beside, try_parse(text) or ast.Module([], []))
    except SyntaxError as error:
        reason = f"It is not Python. Line {error.lineno}: {error.msg}."
        return [_broken(name, source, reason) for name in names[:1]]
    except ERRORS:
        return [_broken(name, "", "It is nested too deeply.") for name in names[:1]]


def _read_tests(
    tree: ast.Module, source: str, beside: Iterable[str], text: ast.Module
) -> list[Expectation]:
    own, whole = set[str]().union(*map(names_bound, text.body)), set[str]()
    with suppress(RecursionError):  # nobody copies what is so deep
        whole = {*map(ast.unparse, text.body)}
    body = [
        one
        for one in tree.body
        if not (_is_definition(one) and one.name in own) and ast.unparse(one) not in whole
    ]
    units, others = _split(body, source.splitlines())
    units = units[:MAX_OF_RUN]
    if not units:
        asserts = body == tree.body and any(map(_asserts, body))
        reason = "Nothing in it can be run as a test."
        return [_broken("test_block", source, reason)] if asserts else []
    known = own.union(*map(names_bound, body))
    pieces = (try_parse(piece) or ast.Module([], []) for piece in beside)
    further = [one for piece in pieces for one in _split(piece.body, ())[1]]
    further = [one for one in further if not names_bound(one) & known]
    here = [*others, *(unit.node for unit in units)]
    others = [*needed(here, further)[: -len(here)], *others]
    module, tests = "\n\n".join(map(ast.unparse, others)), list[Expectation]()
    for name, node, quote in units:
        code = "\n\n".join(map(ast.unparse, needed([node], others)))
        test = Expectation(name=name, code=code[:MAX_CODE], quote=quote)
        if len(code) > MAX_CODE:
            test = test.replace(untried="long")
        elif len(module) <= MAX_CODE:
            test = test.replace(module=module)
        tests.append(test)
    return tests


def _broken(name: str, source: str, reason: str) -> Expectation:
    return Expectation(name=name, code=source[:MAX_CODE], untried="broken", reason=reason)


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _is_definition(node: ast.AST) -> TypeGuard[_Function | ast.ClassDef]:
    return isinstance(node, _Function | ast.ClassDef)


def _is_test(node: ast.AST) -> TypeGuard[_Function]:
    return isinstance(node, _Function) and node.name.startswith("test") and not _is_fixture(node)


def _is_fixture(node: _Function) -> bool:
    return any("fixture" in ast.unparse(one) for one in node.decorator_list)


def _asserts(node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Assert)
        or (isinstance(one, ast.Call) and ast.unparse(one.func).endswith(("raises", ".fail")))
        for one in ast.walk(node)
    )


class _Unit(NamedTuple):
    """A test as one statement: a function, or a class with a single one of its tests."""

    name: str
    node: ast.stmt
    quote: str


def _split(body: Sequence[ast.stmt], lines: Sequence[str]) -> tuple[list[_Unit], list[ast.stmt]]:
    """Return the tests of a module, and its other statements."""
    units, others, loose = list[_Unit](), list[ast.stmt](), list[ast.stmt]()
    uses = Counter(name for one in body if _is_definition(one) for name in names_used(one))
    main = list[ast.stmt]()
    for node in body:
        if isinstance(node, ast.ClassDef) and (tests := [*filter(_is_test, node.body)]):
            rest = [one for one in node.body if one not in tests]
            for test in tests:
                alone = copy(node)
                alone.body = [*rest, test]
                quote = _quote(test, lines) or _quote(node, lines)
                units.append(_Unit(test.name, alone, quote))
        elif _is_test(node) or (_is_check(node) and not uses[node.name]):
            units.append(_Unit(node.name, node, _quote(node, lines)))
        elif _is_definition(node) or isinstance(node, ast.Import | ast.ImportFrom):
            others.append(node)
        elif isinstance(node, ast.If) and "__name__" in names_used(node.test):
            main += node.body
        else:
            loose.append(node)
    checks = {one.name for one in others if isinstance(one, _Function) and _asserts(one)}
    if any(_is_claim(one, checks) for one in main):
        loose += main
    claims = [one for one in loose if _is_claim(one, checks)]
    rest = [one for one in loose if not _is_claim(one, checks)]
    if all(isinstance(one, ast.Assign | ast.AnnAssign) for one in rest):
        units += [_as_test([one], lines) for one in claims]
        others += rest
    elif claims:  # what stands between them may change what they are about
        units.append(_as_test(loose, lines))
    else:
        others += rest
    return units, sorted(others, key=lambda one: one.lineno)


def _is_check(node: ast.stmt) -> TypeGuard[_Function]:
    """Return True if a function asserts something and needs no argument."""
    if not isinstance(node, _Function) or _is_fixture(node) or not _asserts(node):
        return False
    return bool(node.decorator_list) or len(node.args.args) <= len(node.args.defaults)


def _is_claim(node: ast.stmt, checks: Collection[str]) -> bool:
    """Return True if a statement outside of functions asserts something."""
    match node:
        case ast.Expr(value=ast.Compare()):
            return True
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))) if name in checks:
            return True
    return _asserts(node)


def _as_test(nodes: Sequence[ast.stmt], lines: Sequence[str]) -> _Unit:
    """Return statements as a test, which is named after what it calls."""
    parts = [part for node in nodes for part in ast.walk(node)]
    called = (one.func for one in parts if isinstance(one, ast.Call))
    names = (one.id for one in called if isinstance(one, ast.Name))
    name = f"test_{next((one for one in names if not hasattr(builtins, one)), 'claim')}"
    waits = any(isinstance(one, ast.Await | ast.AsyncFor | ast.AsyncWith) for one in parts)
    test: Any = parse(f"{'async ' * waits}def {name}(): pass").body[0]
    test.body = [
        ast.Assert(one.value) if isinstance(one, ast.Expr) and isinstance(one.value, ast.Compare)
        else one
        for one in nodes
    ]  # fmt: skip
    return _Unit(name, test, " / ".join(filter(None, (_quote(one, lines) for one in nodes))))


def _quote(node: ast.stmt, lines: Sequence[str]) -> str:
    """Return the words behind a test: its docstring or message, else the comments at it."""
    words = ""
    if _is_definition(node):
        words = ast.get_docstring(node) or ""
    elif isinstance(node, ast.Assert) and isinstance(node.msg, ast.Constant):
        words = str(node.msg.value)
    if not words:
        top = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))]) - 1
        above = [*takewhile(lambda line: line.lstrip().startswith("#"), reversed(lines[:top]))]
        end = node.body[0].lineno - 1 if _is_definition(node) else node.end_lineno or top
        inside = [line[line.find("#") :] for line in lines[top:end] if "#" in line]
        words = "\n".join(line.strip("# ") for line in (*reversed(above), *inside))
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n|\n\s*[-*•]\s", words))
    quote = " / ".join(filter(None, parts))
    whole = _QUOTED.fullmatch(quote)
    return next(filter(None, whole.groups())) if whole else quote


def needed(nodes: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return pieces of code after the statements that bind what they read, and what these read.

    A piece that is itself among the others keeps its place there.
    """
    wanted, found = set[str]().union(*map(_names_read, nodes)), list[ast.stmt]()
    growing = True
    while growing:
        growing = False
        for other in others:
            binds = names_bound(other) & wanted or "pytestmark" in names_bound(other)
            if other not in found and (binds or other in nodes or "autouse" in _words(other)):
                found.append(other)
                wanted |= _names_read(other)
                growing = True
    return [one for one in others if one in found] + [one for one in nodes if one not in others]


def _names_read(node: ast.stmt) -> set[str]:
    names = names_used(node) | {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    fixtures = (one for one in calls if re.search("fixtures?$|value$", ast.unparse(one.func)))
    return names.union(*map(_words, fixtures))


def _words(node: ast.AST) -> set[str]:
    """Return the strings of a piece of code, and the names of its keyword arguments."""
    parts = [*ast.walk(node)]
    words = {str(one.value) for one in parts if isinstance(one, ast.Constant)}
    return words | {one.arg for one in parts if isinstance(one, ast.keyword) and one.arg}


def name_apart(
    tests: Iterable[Expectation], earlier: Iterable[Expectation], iteration: int
) -> tuple[Expectation, ...]:
    """Rename new tests that have an earlier one's name; leave out those that say the same.

    Texts are tried on at most 12 tests of a critique, and on 40 of a run.
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
        code = test.code if name == test.name else _renamed(test.code, name)
        taken.add(name)
        codes.add(_body(test.code))
        fresh.append(test.replace(name=name, code=code, iteration=iteration))
    return tuple(fresh)


def _body(code: str) -> str:
    tree = try_parse(code)
    if tree is None or not (test := _function(tree)):
        return code
    if ast.get_docstring(test):
        test.body = test.body[1:] or [ast.Pass()]
    test.name = "test"
    return ast.unparse(tree)


def _renamed(code: str, new: str) -> str:
    tree = try_parse(code)
    if tree is None or not (test := _function(tree)):  # it is not tried
        return code
    test.name = new
    return ast.unparse(tree)


def _function(tree: ast.Module) -> _Function | None:
    """Return the function of a test, which stands last, also in a class."""
    last: ast.AST | None = tree.body[-1] if tree.body else None
    last = last.body[-1] if isinstance(last, ast.ClassDef) else last
    return last if isinstance(last, _Function) else None


def rests_on(task: str, docstring: str) -> bool:
    """Return True if a docstring, a clause of it or words that it quotes stand in a task.

    They stand there in their order, and are at least three, or a whole sentence of the task. Case,
    marks, an ending and few words left out do not count, and what an ellipsis leaves out may be
    anything.
    """
    docstring = normalize("NFKC", docstring)
    quoted = (next(filter(None, one)) for one in _QUOTED.findall(docstring))
    words, sentences = _read_task(task)
    for clause in (docstring, *quoted, *_CLAUSE.split(docstring)):
        parts = [*filter(None, map(_split_words, _ELLIPSIS.split(clause)))]
        found = tuple(chain.from_iterable(parts))
        size = sum(_SHARE if re.match(f"[{_LETTER}]", one) else 1 for one in found)
        size += bool(re.search("[=→⇒]|->", clause))  # with its result an example is short
        if (size >= _LEAST and _stand(words, parts)) or (len(found) > 1 and found in sentences):
            return True
    return False


@lru_cache(maxsize=2)
def _read_task(task: str) -> tuple[tuple[str, ...], frozenset[tuple[str, ...]]]:
    sentences = [*map(_split_words, _SENTENCE.split(normalize("NFKC", task)))]
    return tuple(chain.from_iterable(sentences)), frozenset(sentences)


def _split_words(text: str) -> tuple[str, ...]:
    flat = text.casefold().replace("\u2019", "'")
    return tuple(word for one in _WORD.findall(flat) if (word := one.strip("_")))


def _stand(words: Sequence[str], parts: Iterable[Sequence[str]]) -> bool:
    """Return True if words hold parts one after another, each nearly without a gap."""
    start = 0
    for part in parts:
        places = (n for n, word in enumerate(words) if n >= start and word[:3] == part[0][:3])
        start = next(filter(None, (_end(words, place, part) for place in places)), 0)
        if not start:
            return False
    return True


def _end(words: Sequence[str], start: int, part: Sequence[str]) -> int:
    """Return where a part ends that starts at a place in words; 0 if none does."""
    left = [*reversed(part)]
    for place in range(start, min(start + int(_SPREAD * len(part)), len(words))):
        if _is_same_word(words[place], left[-1]):
            left.pop()
            if not left:
                return place + 1
        elif place == start:
            return 0
    return 0


def _is_same_word(one: str, other: str) -> bool:
    """Return True if two words differ at most in an ending: ``return`` and ``returns``."""
    if one == other or not (one.isalpha() and other.isalpha()):
        return one == other
    one, other = sorted((one.replace("ies", "y"), other.replace("ies", "y")), key=len)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return same > 2 and len(other) - same < 3 and (same == len(one) or same > max(3, len(one) - 2))


def contains_quote(text: str, quote: str, *, near: bool = True) -> bool:
    """Return True if a text contains a quote, compared loosely.

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


@lru_cache(maxsize=16)  # a critique quotes one text many times
def _flatten(text: str) -> str:
    return " ".join(text.translate(_PLAIN).casefold().split()).strip(" .,;:")


@lru_cache(maxsize=16)
def _words_in(text: str) -> tuple[list[str], frozenset[str]]:
    words = text.split()
    return words, frozenset(words)


def _is_near(text: str, words: str) -> bool:
    wanted, (there, known) = words.split(), _words_in(text)
    if len(wanted) < _FEW or sum(word in known for word in wanted) < _NEAR * len(wanted):
        return False
    found = SequenceMatcher(None, there, wanted, autojunk=False).get_matching_blocks()[:-1]
    if not found or found[-1].a + found[-1].size - found[0].a > _SPREAD * len(wanted):
        longest = max((block.size for block in found), default=0)
        return longest >= _NEAR * len(wanted)
    return sum(block.size for block in found) >= _NEAR * len(wanted)


def in_force(expectations: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """Return the tests that texts are tried on: those that can be, and are not dismissed."""
    return tuple(one for one in expectations if one.status is Status.OPEN and not one.untried)


def counts(test: Expectation) -> bool:
    """Return True if a text that fails a test cannot pass.

    The words it rests on stand in the task, and no reviser contests it, or only once and in vain.
    """
    return test.grounded and test.undoubted


def is_open_claim(test: Expectation) -> bool:
    """Return True if a text that fails a test cannot pass yet: it counts, or its answer waits."""
    return counts(test) or (test.grounded and (test.unanswered or test.disputed))


def contested(expectations: Iterable[Expectation]) -> tuple[Expectation, ...]:
    """Return the tests that a critic has still to answer for."""
    return tuple(one for one in in_force(expectations) if one.unanswered)


def suite_evidence(
    expectations: Iterable[Expectation], results: Sequence[TestResult], seconds: float = 0.0
) -> Evidence:
    """Return the results of the tests as evidence.

    It fails where a test fails that counts. It says nothing where none of those could be tried.
    A pass that an empty text shares does not count. A failing test that a reviser contests is a
    finding too, which waits for the critic or the user.
    """
    tests = {one.name: one for one in expectations}
    counting = {name: one for name, one in tests.items() if counts(one)}
    idle = {one.name for one in expectations if one.vacuous}
    results = [one.replace(counts=not (one.passed and one.name in idle)) for one in results]
    tried = [one for one in results if one.passed is not None and one.counts]
    tried = [one for one in tried if one.name in counting]
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
                fault=one.fault and one.fault.replace(about=one.name),
                author="check",
                contests=tests[one.name].contests,
                contest=tests[one.name].contest,
                upheld=tests[one.name].upheld,
            )
            for one in open_claims
        ),
    )
