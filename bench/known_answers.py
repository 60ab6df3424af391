"""Let known answers be the drafts of runs in notebooks, and print what was run, seen and stopped.

``python bench/known_answers.py --out DIR [--only TEXT] [--judge | --read]`` needs no model, and the
package ``dseval``, which the README says how to install. `sessions` says how a question is asked.
The draft is a published answer of gpt-3.5 to it, right or wrong, and a critic finds nothing.

The first table says what was run on the notebook's data and what was stopped, that is, fails a
check that a text must pass; the last, of which variables that the reference reads the writer was
shown what they hold. Right is what DSEval publishes and finds today as well: it was made for a
pandas before 3, so some verdicts have changed.

The second says of wrong answers that are not stopped whether the first two lines (the answer, then
what happened to data) tell it. A person judged that one by one, in ``kept/known_told.jsonl``:
``id``, the ``lines`` that were read, ``told`` and ``why``. ``--judge`` prints what is not judged
yet, or was with other lines, in that form with ``told`` open, beside the question, the answer, the
reference and all that is shown of the result. Of right ones the table says how many show a fact
there that may be a fault or asked for.

``--read`` lets a reader at a server judge some right ones of DIR, drawn by their names: 12 of which
something happened to data that somebody has to want, and 8 others, all such that a critic reads.
``--model`` names the reader (``by-hand``, whose replies a person wrote from the prompts alone, are
kept); ``--ask``, with ``OPENAI_BASE_URL`` in the environment, asks for what is missing. It then
also answers what comes after the critique, such as revisions.

Each result is a line of DIR/known.jsonl, or known_read.jsonl, so a bench that was stopped goes on
where it was. ``IPYREFINE_NO_FORK=1`` in the environment reaches the kernels;
use another ``--out`` for it.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import facts
import measure
import sessions
from measure import MissingReply, Replies
from sessions import RIGHT, SETS, Question, Results, counted, of_set, share, why_not_run

from ipyrefine.core.effects import has_to_be_wanted

_EXCEPTION = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning))\b")
_KINDS = ("right", "wrong", "changed")
_KEPT = Path(__file__).parent / "kept"
_FIRST = 2  # lines that everybody reads
_READ = (12, 8)  # right answers for a reader: with a fact that somebody has to want, and without


def ask(question: Question, answer: Mapping[str, str]) -> dict[str, Any]:
    """Return what became of a known answer as the draft of a run."""
    code = answer["code"]
    today = sessions.judge(question, code)
    found = sessions.refine(question, f"use_known({code!r})")
    known = {"published": answer["verdict"], "today": today, "needed": question.needed}
    asked = {"question": question.text, "reference": question.reference, "code": code}
    return {**known, **asked, **found}


def read(question: Question, answer: Mapping[str, str], reader: Replies, ask: bool) -> Any:
    """Return what became of a known answer that a reader judged.

    Raises:
        MissingReply: a reply was not kept, and the reader may not be asked.
    """
    use = f"use_read({answer['code']!r}, {reader.name!r}, {str(reader.path)!r}, {ask})"
    found = sessions.refine(question, use)
    if missing := found["missing"]:
        raise MissingReply(f"{reader.path} lacks {missing} for {question.name}. Add --ask.")
    return {**answer, **found, "today": sessions.judge(question, found["text"])}


def kind(row: Mapping[str, Any]) -> str:
    """Return whether an answer is right, wrong, or its verdict has changed."""
    today, published = row["today"] == RIGHT, row["published"] == RIGHT
    return "changed" if today != published else "right" if today else "wrong"


def stopped_by(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the kind of the first check that the draft fails, and its first line."""
    for one in row["evidence"]:
        if one["counts"] and one["passed"] is False:
            words = "\n".join([*one["problems"], one["shows"]]).strip()
            line = words.partition("\n")[0]
            if not one["name"].startswith("run"):
                return one["name"], line
            if "is not defined" in words:
                return "undefined name", line
            found = _EXCEPTION.search(words)
            return f"run: {found[1]}" if found else "run", line
    return None


def first_lines(row: Mapping[str, Any]) -> list[str]:
    """Return the first lines of what is shown of an answer that ran."""
    return [words for words, _ in facts.lines_of(row)[:_FIRST]]


class Judged:
    """What a person judged, one by one: whether the first lines tell that an answer is wrong."""

    def __init__(self) -> None:
        path = _KEPT / "known_told.jsonl"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self._rows = {row["id"]: row for row in map(json.loads, lines)}

    def told(self, row: Mapping[str, Any]) -> bool | None:
        """Return whether they do; None where these lines were not judged."""
        lines, kept = first_lines(row), self._rows.get(row["id"], {})
        if not lines:
            return False
        return kept["told"] if kept.get("lines") == lines else None

    def open(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what is left to judge, in the form of the file."""
        names = ("id", "question", "code", "reference", "outputs")
        return [
            {n: row[n] for n in names} | {"lines": first_lines(row), "told": None, "why": ""}
            for row in rows
            if kind(row) == "wrong" and not stopped_by(row) and self.told(row) is None
        ]


def shown_names(row: Mapping[str, Any]) -> set[str]:
    """Return the needed names of which the writer was shown what they hold.

    That is a material of its own, or a line of one that begins as a variable's description does.
    """
    kept = [one for one in row["materials"] if one["text"].strip()]
    names = {one["name"] for one in kept if one["kind"] == "variable"}
    lines = [line for one in kept for line in one["text"].splitlines()]
    return {n for n in row["needed"] if n in names or any(x.startswith(f"{n} (") for x in lines)}


def shows_all(row: Mapping[str, Any]) -> bool:
    """Return whether the writer was shown all that the reference needs."""
    return shown_names(row) == {*row["needed"]}


def coverage(rows: Sequence[dict[str, Any]]) -> str:
    """Return which of the needed variables the writer was shown, by set."""
    heads = [
        *("", "questions shown all that they need", "shown nothing of it", "names shown"),
        "characters of the prompt",
    ]
    lines = []
    for name in (*SETS, ""):
        some = of_set(rows, name)
        names = [one in shown_names(row) for row in some for one in row["needed"]]
        length = sum(len(row["prompt"]) for row in some) // max(1, len(some))
        nothing = f"{sum(not shown_names(row) for row in some)} of {len(some)}"
        lines.append([name or "all", share(some, shows_all), nothing, share(names, bool), length])
    return measure.table(heads, lines)


def report(results: Results) -> str:
    """Return all tables."""
    rows, judged = results.usable, Judged()
    of_data = [row for row in rows if row["needed"]]
    kinds = {name: [row for row in rows if kind(row) == name] for name in _KINDS}

    def was_run(row: Mapping[str, Any]) -> bool:
        return not why_not_run(row, row["needed"])

    def line(
        name: str, some: Sequence[dict[str, Any]], holds: Callable[[Any], object]
    ) -> list[str]:
        parts = [of_set(some, one) for one in SETS]
        cells = [f"{sum(bool(holds(row)) for row in part)} of {len(part)}" for part in parts]
        return [name, *cells, share(some, holds)]

    lines = [
        line("run, of those whose question needs data", of_data, was_run),
        line("run, of all", rows, was_run),
        line("wrong ones stopped", kinds["wrong"], stopped_by),
        line("right ones stopped", kinds["right"], stopped_by),
        line("changed ones stopped", kinds["changed"], stopped_by),
    ]
    wrong, right = kinds["wrong"], kinds["right"]
    left = [row for row in wrong if not stopped_by(row)]

    def fate(told: bool | None) -> Callable[[Any], bool]:
        return lambda row: row in left and judged.told(row) is told

    def has_fact(row: Mapping[str, Any]) -> bool:
        return facts.doubted(row, _FIRST)

    fates = [
        line("wrong ones stopped", wrong, stopped_by),
        line("wrong ones told in the first two lines", wrong, fate(True)),
        line("wrong ones neither", wrong, fate(False)),
        line("wrong ones not judged yet", wrong, fate(None)),
        line("wrong ones with a fact on rows or values there", wrong, has_fact),
        line("right ones stopped", right, stopped_by),
        line("right ones with a fact on rows or values there", right, has_fact),
    ]
    reasons = Counter(filter(None, (why_not_run(row, row["needed"]) for row in of_data)))
    causes = Counter(found[0] for row in kinds["wrong"] if (found := stopped_by(row)))
    listed = [
        [row["id"], row["published"], row["today"], *map(measure.short, found)]
        for name in ("right", "changed")
        for row in kinds[name]
        if (found := stopped_by(row))
    ]
    counts = Counter((kind(row), row["stop"], row["shown"]) for row in rows)
    ends = sorted(([*key, count] for key, count in counts.items()), key=lambda one: -one[-1])
    seconds = sorted(row["seconds"] for row in rows)
    middle = seconds[len(seconds) // 2] if seconds else 0
    return "\n\n".join(
        [
            f"## Known answers: {len(rows)} of {len(results.rows)} questions are usable",
            measure.table(["", *SETS, "all"], lines),
            "## What the first two lines tell",
            measure.table(["", *SETS, "all"], fates),
            counted("why one that needs data was not run", reasons),
            counted("a wrong one was stopped by", causes),
            "Those that were stopped, though they are right at least by one verdict:",
            measure.table(["question", "published", "today", "by", "first line"], listed),
            measure.table(["answer", "stop", "shown", "questions"], ends),
            f"Seconds of the runs: {sum(seconds):,.0f}, {middle} at the median.",
            "## Coverage of the questions that need data",
            coverage(of_data),
        ]
    )


def weighty(row: Mapping[str, Any]) -> list[str]:
    """Return what happened to data that somebody has to want."""
    return [words for words, one in facts.lines_of(row) if one and has_to_be_wanted(one)]


def to_read(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the right answers that a reader judges; each is in or out by its own name."""
    own = (row for row in rows if kind(row) == "right" and row["usage"]["calls"] > 1)
    drawn = sorted(own, key=lambda row: random.Random(row["id"]).random())
    of_each = [row for row in drawn if weighty(row)], [row for row in drawn if not weighty(row)]
    return [row["id"] for some, n in zip(of_each, _READ, strict=True) for row in some[:n]]


def report_read(rows: Sequence[dict[str, Any]]) -> str:
    """Return how right answers end with a reader."""

    def is_amber(row: Mapping[str, Any]) -> bool:
        return "TO CHECK" in row["shown"]

    def is_stopped(row: Mapping[str, Any]) -> bool:
        return len(row["texts"]) > 1 or row["shown"].startswith(("✎", "✗")) or bool(stopped_by(row))

    heads = ["question", "facts to ask for", "texts", "shown", "the last text"]
    lines = [
        [row["id"], len(weighty(row)), len(row["texts"]), row["shown"], row["today"]]
        for row in rows
    ]
    ends = [
        ["amber", share(rows, is_amber)],
        ["stopped or revised", share(rows, is_stopped)],
        ["one of these", share(rows, lambda row: is_amber(row) or is_stopped(row))],
        ["right at the end", share(rows, lambda row: row["today"] == RIGHT)],
    ]
    return "\n\n".join(
        [
            f"## Read: {len(rows)} right answers",
            measure.table(["", "answers"], ends),
            measure.table(heads, lines),
        ]
    )


def main() -> None:
    """Run what is missing and print the tables."""
    parser = sessions.options(__doc__)
    parser.add_argument("--judge", action="store_true", help="only print what is left to judge")
    parser.add_argument("--read", action="store_true", help="let a reader judge right ones")
    options = parser.parse_args()
    folder, out = (options.data / "dseval").resolve(), options.out.resolve()
    results, done = Results(out / "known.jsonl"), Results(out / "known_read.jsonl")
    if not (options.table or options.judge):
        asked = sessions.Sessions(folder)
        answers = {row["id"]: row for row in measure.load_cases(folder, "known_answers")}
        if options.read:
            path = options.replies or _KEPT / f"known_read-{options.model}.jsonl"
            reader = Replies(options.model, path.resolve())
            names = [name for name in to_read(results.usable) if options.only in name]
            read_one = lambda one: read(one, answers[one.name], reader, options.ask)  # noqa: E731
            sessions.collect(asked, names, done, read_one)
        else:
            names = [name for name in asked.names if name in answers and options.only in name]
            sessions.collect(asked, names, results, lambda one: ask(one, answers[one.name]))
    if options.judge:
        for row in Judged().open(results.usable):
            print(json.dumps(row, ensure_ascii=False))
    else:
        print(report_read(done.usable) if options.read else report(results))


if __name__ == "__main__":
    main()
