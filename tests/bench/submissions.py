"""Group mutants of exercism's solutions by what they do, and print what that saves a teacher.

``python tests/bench/submissions.py [--tasks A-B] [--first]``: no model is asked.

A class is made for each exercise: the reference solution and mutants of it, each with one change (a
comparison, an operator or a constant, a condition negated, a branch dropped). The teacher is
assumed to give exercism's instructions and examples of every function that its tests call: of the
calls with plain values the first, the one in the middle and the last, and one that raises, if any
does (``--first``: only the first, which is often trivial). Exercises whose tests call anything else
are left out. The unit tests are hidden otherwise, and serve as the truth: a ruling that is spread
is wrong for a submission whose tests come out otherwise than its representative's.

A row says what is compared: the results on all inputs, as `ipyrefine.group` does, or only whether
the stated examples hold; the last row counts only the submissions that meet the examples, as the
others are known to be wrong. Mutants are no class: each has a change of its own, where students
repeat each other's mistakes.
"""

import argparse
import ast
import asyncio
import copy
import random
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import measure
from code_tasks import UNITTEST, Exercism, passes
from tqdm import tqdm

import ipyrefine
from ipyrefine.errors import CheckNotRun

_SECONDS = 4.0  # processor time of a submission on all inputs, and of its tests
_TRIES, _STARVED = 20, "machine is busy"
_EQUALITIES = ("self.assertEqual", "self.assertIs")
_TRACEBACK = "Traceback (most recent call last):"
_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.FloorDiv,
    ast.Mod: ast.FloorDiv,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
Change = Callable[[Any], None]
T = TypeVar("T")


class Spread(NamedTuple):
    """What one way to group a class comes to.

    Attributes:
        submissions: how many there are.
        groups: how many rulings they need.
        lenient: how many wrong submissions a right representative passes.
        strict: how many right submissions a wrong representative fails.
    """

    submissions: int
    groups: int
    lenient: int
    strict: int

    @property
    def spread(self) -> int:
        """How many rulings nobody had to give."""
        return self.submissions - self.groups


def examples(case: dict[str, Any], *, first: bool) -> list[str]:
    """Return examples of every function that the tests call, as doctests; none if one has none."""
    tests = ast.parse(case["tests"])
    imports = [node for node in tests.body if isinstance(node, ast.ImportFrom)]
    imported = {a.name for node in imports if node.module == case["module"] for a in node.names}
    found: dict[str, list[str]] = {
        node.func.id: []
        for node in ast.walk(tests)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in imported
    }
    raised: dict[str, str] = {}
    for node in ast.walk(tests):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _EQUALITIES:
            call, expected = node.args[:2]
            if (source := plain_call(call)) and is_plain(expected):
                name = source.partition("(")[0]
                found.get(name, []).append(f">>> {source}\n{ast.literal_eval(expected)!r}")
        elif isinstance(node, ast.With):
            context, body = node.items[0].context_expr, node.body[0]
            if ast.unparse(context).startswith("self.assertRaises(") and isinstance(body, ast.Expr):
                source = plain_call(body.value)
                error = f"{_TRACEBACK}\n{ast.unparse(context.args[0])}"
                raised.setdefault(source.partition("(")[0], f">>> {source}\n{error}")
    stated = []
    for name, calls in found.items():
        if not calls:
            return []
        places = dict.fromkeys([0] if first else [0, len(calls) // 2, len(calls) - 1])
        stated += [calls[place] for place in places]
        stated += [raised[name]] if name in raised and not first else []
    return stated


def plain_call(node: ast.expr) -> str:
    """Return a call of a function with plain values as Python; empty for anything else."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords
    if not is_call or not all(map(is_plain, node.args)):
        return ""
    arguments = (repr(ast.literal_eval(argument)) for argument in node.args)
    return f"{node.func.id}({', '.join(arguments)})"


def is_plain(node: ast.expr) -> bool:
    """Return whether an expression is a literal."""
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def mutants(solution: str, count: int) -> list[str]:
    """Return a solution and at most so many texts that differ from it by one change each."""
    tree = ast.parse(solution)
    nodes = list(ast.walk(tree))
    found = dict.fromkeys([ast.unparse(tree)])
    for place, node in enumerate(nodes):
        for change in _changes(node):
            other = copy.deepcopy(tree)
            change(list(ast.walk(other))[place])
            found[ast.unparse(ast.fix_missing_locations(other))] = None
    first, *rest = found
    return [first, *random.Random(0).sample(rest, min(count, len(rest)))]


def _changes(node: ast.AST) -> Iterator[Change]:
    """Yield what can be changed about a node of a syntax tree."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        operator = _COMPARISONS[type(node.ops[0])]
        yield lambda copied: copied.ops.__setitem__(0, operator())
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in _OPERATORS:
        other = _OPERATORS[type(node.op)]
        yield lambda copied: setattr(copied, "op", other())
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield lambda copied: setattr(copied, "value", copied.value + 1)
        yield lambda copied: setattr(copied, "value", copied.value - 1)
    elif isinstance(node, ast.If):
        yield lambda copied: setattr(copied, "test", ast.UnaryOp(ast.Not(), copied.test))
        yield lambda copied: setattr(copied, "body", [ast.Pass()])
        if node.orelse:
            yield lambda copied: setattr(copied, "orelse", [])


class Measured(NamedTuple):
    """A class: how many submissions are right, and how rulings spread in it, by row."""

    right: int
    by_results: Spread
    by_examples: Spread
    open: Spread


async def measure_class(case: dict[str, Any], count: int, *, first: bool) -> Measured | None:
    """Return what came of a class; None where the teacher can give no examples."""
    stated = examples(case, first=first)
    if not stated:
        return None
    task = "\n\n".join([Exercism(case).text, *stated])
    texts = mutants(case["solution"], count)
    groups = await retry(
        lambda: ipyrefine.group(
            texts,
            task,
            seconds=_SECONDS,
            checks=[f"examples seconds={_SECONDS:.0f}"],
            at_once=2,
            journal=False,
            progress=False,
        ),
        until=lambda groups: not any(_STARVED in group.failure for group in groups),
    )
    right = []
    for text in texts:
        files = {f"{case['module']}.py": text, "hidden.py": case["tests"]}
        right.append(await retry(lambda files=files: passes(UNITTEST, files, _SECONDS)))
    verdicts = [item.passed for item in groups.items]
    by_results = [(group.representative, group.members) for group in groups]
    by_examples = []
    for outcome in dict.fromkeys(verdicts):
        members = [place for place, verdict in enumerate(verdicts) if verdict is outcome]
        by_examples.append((min(members, key=lambda place: len(texts[place])), members))
    met = [one for one in by_results if verdicts[one[0]]]
    spreads = (spread_of(groups, right) for groups in (by_results, by_examples, met))
    return Measured(sum(right), *spreads)


async def retry(work: Callable[[], Awaitable[T]], until: Callable[[T], bool] = lambda _: True) -> T:
    """Return what work comes to, done again while the machine is too busy for it.

    Raises:
        SystemExit: it is still too busy at the last try.
    """
    for _ in range(_TRIES):
        try:
            if until(result := await work()):
                return result
        except CheckNotRun:
            continue
    raise SystemExit("The machine is too busy to run submissions. Try again later.")


def spread_of(groups: Sequence[tuple[int, Sequence[int]]], right: Sequence[bool]) -> Spread:
    """Return what rulings on representatives come to.

    Args:
        groups: of each the representative and the members, by their places.
        right: of each submission, whether it passes the hidden tests.
    """
    pairs = [(right[shown], right[member]) for shown, members in groups for member in members]
    lenient = sum(shown and not own for shown, own in pairs)
    strict = sum(own and not shown for shown, own in pairs)
    return Spread(len(pairs), len(groups), lenient, strict)


def report(name: str, rows: Sequence[Spread]) -> list[str]:
    """Return the row of one way to group: totals, with intervals over the exercises."""

    def rulings(some: Sequence[Spread]) -> float:
        return sum(one.groups for one in some) / max(1, sum(one.submissions for one in some))

    def wrong(some: Sequence[Spread]) -> float:
        spread = sum(one.spread for one in some)
        return 100 * sum(one.lenient + one.strict for one in some) / spread if spread else 0.0

    total = [sum(column) for column in zip(*rows, strict=True)]
    spread = sum(one.spread for one in rows)
    return [
        name,
        str(total[0]),
        str(total[1]),
        measure.interval(rows, rulings, 2),
        f"{total[2] + total[3]} of {spread}: {measure.interval(rows, wrong)}",
        str(total[2]),
    ]


async def run(cases: Sequence[dict[str, Any]], count: int, *, first: bool) -> None:
    """Measure the classes and print the table."""
    classes, left_out = list[Measured](), list[str]()
    for case in tqdm(cases, unit="class"):
        found = await measure_class(case, count, first=first)
        if found is None:
            left_out.append(case["slug"])
            continue
        classes.append(found)
        submissions, groups, *wrong = found.by_results
        line = f"{case['slug']}: {submissions} in {groups} groups, {found.right} right"
        print(f"{line}, spread wrongly {sum(wrong)}", flush=True)
    total = sum(one.by_results.submissions for one in classes)
    right = sum(one.right for one in classes)
    print(f"\n{len(classes)} classes, {total} submissions, {right} of them right.")
    names = ", ".join(left_out) or "none"
    print(f"Left out, as their tests call more than functions of plain values: {names}.\n")
    heads = ["grouped by", "submissions", "rulings", "for each", "spread wrongly", "passed wrongly"]
    lines = [
        report("all results", [one.by_results for one in classes]),
        report("stated examples", [one.by_examples for one in classes]),
        report("all results, where the examples hold", [one.open for one in classes]),
    ]
    print(measure.table(heads, lines))


def main() -> None:
    """Run the bench."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("--data", type=Path, default=measure.DATA, help="where the cases are")
    parser.add_argument("--tasks", metavar="A-B", help="which cases, by their place in the file")
    parser.add_argument("--mutants", type=int, default=15, help="of each solution, at most (15)")
    parser.add_argument("--first", action="store_true", help="state only the first call")
    options = parser.parse_args()
    cases = measure.load_cases(options.data, "exercism")
    places = measure.task_range(options.tasks, f"0-{len(cases) - 1}", len(cases) - 1)
    asyncio.run(run([cases[place] for place in places], options.mutants, first=options.first))


if __name__ == "__main__":
    main()
