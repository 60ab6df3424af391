"""Finished runs, one for each state that a panel is read in."""

from typing import Any

from png import picture

from ipyrefine.core.effects import sentence
from ipyrefine.core.model import (
    Basis,
    Effect,
    Figure,
    FirstRows,
    Form,
    Outcome,
    Printed,
    Setup,
    Stage,
    StopReason,
    Table,
    Task,
    Usage,
    Value,
    Verdict,
)
from ipyrefine.core.run import Call, Iteration, Run
from ipyrefine.core.table import Point, Reading, Result

HELD, USED = Result(passed=True), Usage(calls=2, prompt_tokens=2000, completion_tokens=742)
GONE = Effect(
    kind="gone",
    name="merged",
    of="orders",
    column="customer",
    count=17,
    total=1204,
    values=("88", "91"),
    cause="unmatched",
    other="customers",
)
_TOWNS = Table(
    columns=("amount",), index="town", labels=("Bonn", "Kiel"), rows=(("1,204.50",), ("310.00",)),
    height=2, width=1,
)  # fmt: skip


def make(*texts: Iteration, points: Any = (), form: Form = "code", **fields: Any) -> Run:
    """Return a run of some texts, by default one that passed with the last of them."""
    task = Task(text="Write average(grades).", form=form)
    fields = {"best": len(texts) - 1, "stop_reason": StopReason.PASSED} | fields
    return Run(
        setup=Setup(task=task, model="gpt-5", judge="gpt-5"),
        iterations=texts,
        points={one.id: one for one in points},
        calls=(Call(stage=Stage.DRAFT, iteration=0, usage=USED),),
        seconds=31.0,
        **fields,
    )


def judged(outcome: Outcome, basis: Basis, why: Any, **fields: Any) -> Verdict:
    """Return a verdict without a score."""
    return Verdict(outcome=outcome, score=None, basis=basis, why=why, **fields)


RAN = judged(Outcome.NOT_JUDGED, "run", "only_ran")
FOUND_NOTHING = judged(Outcome.PASS, "critique", "nothing_found", point="gpt-5")
PASSES = judged(Outcome.PASS, "examples", "checks_passed")


def needs(line: str, point: str = "", why: Any = "test_failed") -> Verdict:
    """Return the verdict that a text needs improvement."""
    return judged(Outcome.NEEDS_IMPROVEMENT, "critique", why, point=point, line=line)


def data_run(
    *effects: Effect,
    asked: Any = (),
    outputs: Any = (_TOWNS,),
    verdict: Verdict = RAN,
    **fields: Any,
) -> Run:
    """Return a run on tables, with what became of them; `asked` are those it is asked about."""
    evidence = Result(
        name="run on copies", passed=True, basis="run", outputs=outputs, effects=effects, **fields
    )
    points = [
        Point(id=f"f{n}", kind="fact", words=sentence(one), blocking=False, effect=one)
        for n, one in enumerate(asked, start=1)
    ]
    text = Iteration(
        number=0,
        text='merged = orders.merge(customers, on="customer")\nmerged.groupby("town").sum()',
        evidence=(evidence,),
        results={one.id: Result(passed=False) for one in points},
        verdict=verdict,
    )
    stop = StopReason.UNJUDGED if verdict is RAN else StopReason.PASSED
    return make(text, points=points, stop_reason=stop)


def _to_check(*effects: Effect, **fields: Any) -> Run:
    return data_run(*effects, asked=effects, verdict=FOUND_NOTHING, **fields)


def _test(id_: str, call: str, value: str, quote: str = "") -> Point:
    code = f"def test_{id_}():\n    assert {call} == {value}"
    return Point(id=id_, source="critic", kind="test", words=f"test_{id_}", code=code, quote=quote)


def _average() -> Run:
    error = "raises ZeroDivisionError"
    fails = Result(passed=False, shows="raises ZeroDivisionError", gives=error)
    small, minor = Result(passed=False), {"p4": Result(passed=False)}
    points = [
        _test("p1", "average([])", "0", "an average of grades"),
        _test("p2", "average([1, None, 3])", "2", "leaves out the missing"),
        Point(id="p3", words="Name the unit.", criterion="clarity", fix="Add it."),
        Point(id="p4", words="A docstring would help.", blocking=False, criterion="clarity"),
    ]
    rows = (
        Result(call="average([True, 2])", gives="1.5"),
        Result(call="average([5])", gives="5.0", rivals=("5", "None")),
        Result(call="average([0.1])", gives="0.1"),
    )
    results: list[dict[str, Result]] = [
        {"p1": fails, "p2": fails, "p3": small} | minor,
        {"p1": fails, "p2": HELD, "p3": HELD} | minor,
        {"p1": HELD, "p2": HELD, "p3": HELD} | minor,
    ]
    said = ("None is added.", "But an empty list divides by zero.", "Every demand is met.")
    codes = ("sum(grades)", "sum(known) / len(known)", "sum(known) / len(known) if known else 0")
    verdicts = (needs("a", "p2"), needs("average([]) gave ZeroDivisionError", "p1"), PASSES)
    texts = [
        Iteration(
            number=n,
            parent=n - 1 if n else None,
            text=f"def average(grades):\n    known = [*grades]\n    return {codes[n]}",
            evidence=(
                Result(
                    name="examples",
                    passed=n == 2,
                    basis="examples",
                    decisive=True,
                    tallies={"example": (1 + (n == 2), 2)},
                    rows=rows if n == 2 else (),
                    shows="" if n == 2 else "average([]) raises ZeroDivisionError",
                ),
            ),
            results=results[n],
            verdict=verdicts[n],
            reading=Reading(ready=n == 2, reason=said[n]),
        )
        for n in range(3)
    ]
    return make(*texts, points=points)


def _mail() -> Run:
    first = (
        "Dear Ms. Ortega,\n\nYour parcel came four days late, and we would like to extend our "
        "sincere apologies for any inconvenience.\n\nBest regards,\nAnn"
    )
    points = [
        Point(id="f1", words="Apologise plainly.", place="sincere apologies", quote="plain words"),
        Point(id="f2", kind="fact", blocking=False, words="“four days late” stands in no source",
              place="four days late"),
        Point(id="f3", words="Name the date.", place="Your parcel came", fix="Say when it came."),
    ]  # fmt: skip
    missed = Result(passed=False)
    draft = Iteration(
        number=0, text=first, results={"f1": missed, "f2": missed},
        verdict=needs("Apologise plainly.", "f1", "open"),
        reading=Reading(ready=False, reason="The apology is a formula."),
    )  # fmt: skip
    formula = "would like to extend our sincere apologies for any inconvenience"
    revised = Iteration(
        number=1, parent=0, text=first.replace(formula, "are sorry"),
        results={"f1": HELD, "f2": missed, "f3": missed},
        verdict=needs("Name the date.", "f3", "open"),
        reading=Reading(ready=False, reason="Plain and short."),
    )  # fmt: skip
    return make(draft, revised, points=points, form="prose")


def ten_texts(number: int = 10) -> Run:
    """Return a run of many texts."""
    points = [_test(f"p{n}", f'slug("x{n}")', f'"x-{n}"') for n in range(14)]
    fails = Result(passed=False, shows="x", gives='"rger-co"')
    texts = [
        Iteration(
            number=n,
            parent=n - 1 if n else None,
            text=f"def slug(s):\n    return s.lower()[:{n}]",
            results={
                one.id: fails if at == 0 or (at + n) % 3 == 0 else HELD
                for at, one in enumerate(points)
            },
            verdict=needs('slug("x0") gives "rger-co"', "p0"),
            reading=Reading(ready=False, reason=f"Umlauts are cut off in text {n}. More is said."),
        )
        for n in range(number)
    ]
    stopped = {"stop_reason": StopReason.REVISIONS, "message": "All revisions are used."}
    return make(*texts, points=points, best=number - 3, **stopped)


def _evaluated() -> Run:
    words = ["Say whom it is for.", "One term is left undefined.", "Clear throughout."]
    points = [
        Point(id=f"e{n}", source="evaluator", words=said, criterion="feedback")
        for n, said in enumerate(words)
    ]
    scores = (0.72, 0.86, 0.91)
    texts = [
        Iteration(
            number=n,
            parent=n - 1 if n else None,
            text=f"A test that needs {n} words.",
            evaluation=Reading(score=score, says=None),
            results={f"e{n}": Result(passed=False)},
            verdict=Verdict(
                outcome=Outcome.PASS if n else Outcome.NEEDS_IMPROVEMENT, score=score,
                basis="evaluator", why="scored",
            ),
        )
        for n, score in enumerate(scores)
    ]  # fmt: skip
    return make(*texts, points=points, form="prose")


def _example() -> Run:
    row = Result(call="moving_average([1, 2, 3], 2)", gives="[1.5, 2.5]", source="own")
    evidence = Result(name="run", passed=True, basis="run", rows=(row,))
    text = "def moving_average(xs, n):\n    return xs"
    draft = Iteration(number=0, text=text, evidence=(evidence,), verdict=RAN)
    return make(draft, stop_reason=StopReason.UNJUDGED)


def _question() -> Run:
    asked = Point(
        id="q1", kind="question", criterion="left open", blocking=False,
        words="What should an empty list give?", options=("0", "an error"),
    )  # fmt: skip
    text = Iteration(
        number=0, text="def average(xs):\n    return sum(xs)", results={"q1": Result(passed=False)},
        verdict=FOUND_NOTHING,
    )  # fmt: skip
    return make(text, points=[asked])


FILLED = Effect(kind="filled", name="orders", column="amount", count=12, after="0", line=3)
WARNING = Effect(kind="warning", cause="FutureWarning", after="use x", line=2)
FIRST = FirstRows(name="log", rows=12_000_000, of=410_000_000)
_FIGURE = Figure(png=picture(64, 48), axes=("x 0 to 3; y 1 to 5",))
_RTL = Effect(
    kind="gone", name="نتيجة", of="طلبات", column="زبون", count=17, total=1204,
    values=("عمر",), cause="unmatched", other="زبائن",
)  # fmt: skip
AVERAGE, MAIL = _average(), _mail()
STATES: dict[str, Run] = {
    "runs": data_run(GONE),
    "one to check": _to_check(GONE),
    "three to check": _to_check(GONE, FILLED, WARNING, outputs=(Value(text="16"),)),
    "first rows": data_run(Effect(kind="unchanged", name="log", line=1), conditions=(FIRST,)),
    "figure": data_run(GONE, outputs=(_FIGURE, Printed(text="a\nb\nc"))),
    "function": AVERAGE,
    "needs improvement": AVERAGE.replace(
        iterations=AVERAGE.iterations[:2], best=1, stop_reason=StopReason.REVISIONS,
        message="All revisions are used.",
    ),
    "mail": MAIL,
    "evaluator": _evaluated(),
    "ten texts": ten_texts(),
    "example": _example(),
    "question": _question(),
    "right to left": _to_check(_RTL, outputs=(Value(text="'שלום'"),)),
    "failed": make(
        stop_reason=StopReason.FAILED, best=None,
        message="Your API key was refused (HTTP 401).", warnings=("The cell was cut.",),
    ),
}  # fmt: skip
"""What a panel may show, by name."""
