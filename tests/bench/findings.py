"""Measure how many of a critic's findings on code are real, before and after they are tried.

``python tests/bench/findings.py [--tasks A-B] [--texts N] [--ask]`` (needs the extras ``local`` and
``bench``). The texts are greedy drafts of HumanEval 0 to 81, as many right ones as wrong ones. Each
is criticised once, as the loop does it. A finding that says that a result is wrong is real if the
reference solution gives on its input what it expects, and the text does not. On a right text such
a finding is always false. Other findings (style, names) are counted, not judged.

Every reply is kept at once, outside of the project.
"""

import asyncio
from typing import NamedTuple

import arms
import code_tasks
import measure
from measure import Replies
from tqdm import tqdm

from ipyrefine.checks.trial import Trial
from ipyrefine.core.findings import claims_wrong_result
from ipyrefine.core.model import Finding, Setup, Task
from ipyrefine.core.prompts import Prompts, Requests, make_nonce
from ipyrefine.core.replies import parse_critique
from ipyrefine.core.run import Iteration, Run
from ipyrefine.errors import ReplyError


class Claim(NamedTuple):
    """A finding that says that a result is wrong.

    Attributes:
        right: whether the text it is about is right.
        grounded: whether its quote is in the text, which is all that was asked before.
        counts: whether it counts once it was tried.
        real: whether it is true.
    """

    right: bool
    grounded: bool
    counts: bool
    real: bool


async def claims_of(
    text: str, right: bool, task: Task, reference: str, model: Replies
) -> tuple[list[Claim], int]:
    """Return what a critic claims of a text, and how many other findings it names."""
    run = Run.begin(Setup(task=task))
    request = Requests(Prompts(), make_nonce(b"")).critique(run, Iteration(number=0, text=text))
    reply = await measure.complete(model, request)
    try:
        findings = parse_critique(reply.text, text).findings
    except ReplyError:
        return [], 0
    claims = [finding for finding in findings if claims_wrong_result(finding)]
    judged = [await _judge(one, text, right, task, reference) for one in claims]
    return judged, len(findings) - len(claims)


async def _judge(claim: Finding, text: str, right: bool, task: Task, reference: str) -> Claim:
    trial = Trial()
    shown = await trial(claim, text, task) if claim.input.strip() else None
    refuted = await trial(claim, reference, task) if claim.input.strip() else None
    real = not right and shown is True and refuted is False
    grounded = not claim.doubtful
    return Claim(right, grounded, grounded and shown is True, real)


async def collect(
    count: int, tasks: str | None, drafts: Replies, model: Replies, folder: object
) -> tuple[list[Claim], int, int]:
    """Return the claims, the other findings, and how many texts were criticised."""
    claims, others, left = list[Claim](), 0, {True: count, False: count}
    cases = code_tasks.load("humaneval", folder, tasks)  # type: ignore[arg-type]
    for case in tqdm(cases, unit="task"):
        draft = await arms.write_draft(case, drafts, arms.Plan())
        right = await case.solves(draft.text) if draft.text else False
        if not draft.text or not left[right]:
            continue
        try:
            found, more = await claims_of(draft.text, right, draft.task, case.reference, model)
        except measure.MissingReply as error:
            print(f"\nStopped: {error}")
            break
        left[right] -= 1
        claims, others = claims + found, others + more
    return claims, others, 2 * count - sum(left.values())


def main() -> None:
    """Criticise the drafts and print the table."""
    parser = measure.parser(__doc__)
    parser.add_argument("--texts", type=int, default=15, help="right texts, and wrong ones (15)")
    options = parser.parse_args()
    drafts = Replies(options.model, measure.replies_path("humaneval", options.model, None))
    path = measure.replies_path("findings", options.model, options.replies)
    model = Replies(options.model, path, ask=options.ask)
    claims, others, texts = asyncio.run(
        collect(options.texts, options.tasks, drafts, model, options.data)
    )
    rows = []
    for name, right in (("right texts", True), ("wrong texts", False)):
        some = [claim for claim in claims if claim.right is right]
        before = [claim for claim in some if claim.grounded]
        after = [claim for claim in some if claim.counts]
        rows.append(
            (
                name,
                len(some),
                f"{sum(claim.real for claim in before)} of {len(before)}",
                f"{sum(claim.real for claim in after)} of {len(after)}",
            )
        )
    heads = ("", "claims of a wrong result", "real before", "real after")
    print(f"\n## Findings, {options.model}, {texts} texts, {others} other findings\n")
    print(measure.table(heads, rows))


if __name__ == "__main__":
    main()
