"""Ask for the next cell of notebooks by the loop and by what peers send, and print the table.

``python bench/peers.py --out DIR [--each N] [--draw SEED] [--ask]`` needs the extra ``local``
and the package ``dseval``, which the README says how to install. `sessions` says how the loop is
asked. Of each set the first N questions that can be asked are taken, in an order drawn with a seed.
The arms have the same model and questions:

- description: one reply to the question with the structure and first values of all variables and
  the code of the last cells.
- conversation: one reply to the earlier questions and their reference answers as turns of a
  conversation, and the question.
- loop: ``%%refine`` as it comes.

Peers run nothing and accept nothing, so a text of theirs is only solved or not. Replies are kept
in DIR/replies.jsonl or ``--replies``; without ``--ask`` one that is missing ends the bench. Each
result is a line of DIR/peers.jsonl, so a bench that was stopped goes on where it was. To let a
changed loop answer anew, give another ``--out`` and the ``--replies`` of the first.
"""

import asyncio
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import measure
import sessions
from measure import Meter, MissingReply, Replies
from sessions import CODE, RIGHT, SETS, Question, Results, counted, of_set, share, why_not_run

from ipyrefine.core.ports import Message, Request

MODEL = "qwen2.5-coder-0.5b"
_MAX_TOKENS = 1_024  # completion tokens of a reply
_VARIABLES, _CELLS = 6_000, 3_000  # characters in the prompt
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_ARMS = ("description", "conversation", "loop")

_NEXT_CELL = """\
You write the next cell of a Jupyter notebook. Its variables and its last cells are below. Answer \
the question with Python code in one block that starts with ```python and ends with ```. The last \
line is the expression whose value is asked for; nothing is printed. Variables that are there are \
used and not made again, and they stay as they are unless the question asks to change them."""
_CODE_ONLY = "Answer with Python code only, without any words before or after it."


def describe(space: Mapping[str, Any]) -> str:
    """Return all variables with their structure and first values."""
    lines = []
    for name, value in space.items():
        if name.startswith("_") or isinstance(value, CODE):
            continue
        kind = type(value).__name__
        if kind == "DataFrame":
            columns = ", ".join(f"{column} ({dtype})" for column, dtype in value.dtypes.items())
            head = value.head(5).to_string(max_colwidth=20, max_cols=12)
            text = f"{kind} of {len(value):,} rows; columns: {columns}; its first rows:\n{head}"
        else:
            shape = getattr(value, "shape", None)
            text = f"{kind}{f' of shape {shape}' if shape else ''}: {str(value)[:300]}"
        lines.append(f"- {name}: {text}")
    return "\n".join(lines)[:_VARIABLES]


def by_description(question: Question) -> list[Message]:
    """Return a request that describes the notebook."""
    code = ""
    for _, cell in reversed(question.cells):  # as many of the last ones as there is room for
        if code and len(code) + len(cell) > _CELLS:
            break
        code = f"```python\n{cell[:_CELLS]}\n```\n{code}"
    described = describe(question.world.namespace)
    words = f"Variables:\n{described}\n\nLast cells:\n{code}\nQuestion: {question.text}"
    return [Message(role="system", content=_NEXT_CELL), Message(role="user", content=words)]


def by_conversation(question: Question) -> list[Message]:
    """Return a request at the end of the conversation so far."""
    turns = list[Message]()
    for asked, cell in question.cells:
        if asked is not None:
            turns.append(Message(role="user", content=f"{asked}\n\n{_CODE_ONLY}"))
            turns.append(Message(role="assistant", content=f"```python\n{cell}\n```"))
    return [*turns, Message(role="user", content=f"{question.text}\n\n{_CODE_ONLY}")]


def ask(question: Question, model: Replies, may_ask: bool) -> dict[str, Any]:
    """Return what a question comes to in all arms.

    Raises:
        MissingReply: a reply was not kept, and the model may not be asked.
    """
    arms = dict[str, Any]()
    for name, write in (("description", by_description), ("conversation", by_conversation)):
        meter, messages = Meter(model), tuple(write(question))
        request = Request(messages=messages, max_tokens=_MAX_TOKENS, temperature=0.0, seed=0)
        text = asyncio.run(measure.complete(meter, request)).text
        found = _FENCE.search(text)
        usage = meter.usage.model_dump(mode="json")
        arms[name] = {"text": found[1] if found else text, "usage": usage}
    use = f"use_kept({model.name!r}, {str(model.path)!r}, {may_ask})"
    arms["loop"] = sessions.refine(question, use)
    if missing := arms["loop"]["missing"]:
        raise MissingReply(f"{model.path} lacks {missing} for {question.name}. Add --ask.")
    for arm in arms.values():
        arm["verdict"] = sessions.judge(question, arm["text"])
    first = "".join(arms["loop"]["texts"][:1])
    arms["loop"]["draft"] = sessions.judge(question, first)
    return {"needed": question.needed, **arms}


# The tables.


def solves(row: Mapping[str, Any], arm: str) -> bool:
    """Return whether an arm's text is right."""
    return bool(row[arm]["verdict"] == RIGHT)


def report(results: Results, model: str) -> str:
    """Return all tables."""
    rows = results.usable

    def solved(some: Sequence[Any]) -> list[str]:
        drafts = share(some, lambda row: row["loop"]["draft"] == RIGHT)
        return [drafts, *(share(some, lambda row, arm=arm: solves(row, arm)) for arm in _ARMS)]

    def used(arm: str, *names: str) -> int:
        return sum(row[arm]["usage"][name] or 0 for row in rows for name in names)

    def usage(*names: str) -> list[str]:
        return ["", *(f"{used(arm, *names):,}" for arm in _ARMS)]

    def of_loop(cell: str) -> list[str]:
        return [*[""] * len(_ARMS), cell]

    tokens = ("prompt_tokens", "completion_tokens")
    described = max(1, used("description", *tokens))
    ratios = [f"{used(arm, *tokens) / described:.2f}" for arm in _ARMS]
    accepted = [row for row in rows if row["loop"]["stop"] == "passed"]
    of_data = [row for row in rows if row["needed"]]
    run = share(of_data, lambda row: not why_not_run(row["loop"], row["needed"]))
    lines = [
        ["solved", *solved(rows)],
        *([f"solved, {name}", *solved(of_set(rows, name))] for name in SETS),
        [
            "right but for how it is given, beside them",
            "",
            *(sum(row[arm]["verdict"] == "PRESENTATION_ERROR" for row in rows) for arm in _ARMS),
        ],
        ["accepted", *of_loop(f"{len(accepted)} of {len(rows)}")],
        ["wrong among accepted", *of_loop(share(accepted, lambda row: not solves(row, "loop")))],
        ["run on the data, where they are needed", *of_loop(run)],
        ["calls", *usage("calls")],
        ["prompt tokens", *usage(tokens[0])],
        ["completion tokens", *usage(tokens[1])],
        ["all tokens, to those of the description", "", *ratios],
    ]
    pairs = [
        f"against {arm}, "
        + measure.paired(rows, lambda r: solves(r, "loop"), lambda r, arm=arm: solves(r, arm))
        for arm in _ARMS[:-1]
    ]
    ends = Counter(f"{row['loop']['stop']}: {row['loop']['verdict']}" for row in rows)
    return "\n\n".join(
        [
            f"## {model}: {len(rows)} questions; {len(results.rows) - len(rows)} are unusable",
            measure.table(["", "the loop's first draft", *_ARMS], lines),
            f"The loop solves, {'; '.join(pairs)}. Intervals: 95 %, exact.",
            counted("how the loop stopped, and its text", ends),
        ]
    )


def main() -> None:
    """Run what is missing and print the table."""
    parser = sessions.options(__doc__)
    parser.set_defaults(model=MODEL)
    parser.add_argument("--draw", type=int, default=7, metavar="SEED", help="of the order")
    parser.add_argument("--each", type=int, default=15, metavar="N", help="questions of a set")
    options = parser.parse_args()
    results = Results(options.out.resolve() / "peers.jsonl")
    if not options.table:
        asked = sessions.Sessions((options.data / "dseval").resolve())
        path: Path = options.replies or options.out / "replies.jsonl"
        model = Replies(options.model, path.resolve(), ask=options.ask)

        def answer(question: Question) -> dict[str, Any]:
            return ask(question, model, options.ask)

        try:
            for name in asked.draw(options.draw):
                taken = len(of_set(results.usable, name.partition("/")[0]))
                if taken < options.each and options.only in name:
                    sessions.collect(
                        asked, [name], results, lambda one: ask(one, model, options.ask)
                    )
        except MissingReply as error:
            sys.exit(f"Stopped after {len(results.usable)} questions: {error}")
    print(report(results, options.model))


if __name__ == "__main__":
    main()
