"""What prompts are filled with: texts, evidence, findings and history, made inert."""

import hashlib
import re
from collections.abc import Callable, Collection, Sequence

from ipyrefine.core import ledger
from ipyrefine.core.prompts import CUT_DETAIL
from ipyrefine.core.records import Finding, Outcome
from ipyrefine.core.runs import Iteration, Run

Mark = Callable[[str], str]

# Our own marks, and those by which chat templates tell who speaks: many servers read them as such
# wherever they stand.
_LOOK_ALIKE = re.compile(
    r"<(?=\W*material|\|\w{1,40}\|>|(?:start|end)_of_turn>)|\[(?=/?INST\])", re.IGNORECASE
)
_SHOWN = 2_000  # characters of an earlier text that is shown beside the one at hand
_REASONS = 6  # earlier revisions whose fate a prompt tells; it must not grow with the run


def marks(secret: bytes) -> Mark:
    """Make the marks of a run of its secret and of the text they stand around.

    Nobody can write a text that holds its own mark, even who has seen those of other texts; and
    a text shown again has the same one, so that a server need not read it again.
    """

    def mark(text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, key=secret, digest_size=4).hexdigest()

    return mark


def envelope(text: str, mark: Mark) -> str:
    """Put untrusted text between marks it cannot forge; look-alikes inside are broken up."""
    nonce = mark(text)
    return f"<material-{nonce}>\n{_inert(text)}\n</material-{nonce}>"


def shown(text: str, most: int, mark: Mark) -> str:
    """A text between marks, cut to a number of characters with the cut said aloud."""
    cut = len(text) - most
    note = f"\n(cut here: {cut:,} more characters are not shown)" if cut > 0 else ""
    return envelope(text[:most], mark) + note


def evidence(iteration: Iteration, mark: Mark, told: Sequence[Finding] = ()) -> str:
    """What the checks found, between marks: a text that runs may print what it likes.

    Args:
        iteration: the text it is about.
        mark: gives the mark.
        told: findings that the prompt lists beside it, whose words it need not say again.
    """
    known = {finding.problem for finding in told}
    lines = [
        f"- {e.name}: {'passed' if e.passed else 'FAILED'}. {_rest(e.detail, known)}".rstrip()
        for e in iteration.telling
    ]
    if not lines:
        return ""
    return "\n\nWhat the checks found by running it:\n" + envelope("\n".join(lines), mark)


def listed(title: str, findings: Sequence[Finding]) -> str:
    """Findings, a line each."""
    if not findings:
        return ""
    lines = [
        f"- {f.id} ({f.severity}, {f.criterion})"
        + (f' at "{_line(f.quote)}"' if f.quote else "")
        + f": {_line(f.problem)}"
        + (f" Fix: {_line(f.fix)}" if f.fix else "")
        for f in findings
    ]
    return f"\n\n{title}:\n" + "\n".join(lines)


def rejected(tried: Sequence[Iteration], mark: Mark) -> str:
    """Name what was already tried from the same text, so that it is not tried again."""
    if not tried:
        return ""
    recent = [i.number for i in tried if not i.flaw][-2:]
    lines = []
    for iteration in tried[-_REASONS:]:  # in order, so that the next prompt only adds to this one
        lines.append(f"- {_line(_why(iteration)) or 'no better'}")
        if iteration.number in recent:
            lines.append(envelope(iteration.text[:_SHOWN], mark))
    return "\n\nEarlier revisions of it were no better. Take another way than these:\n" + "\n".join(
        lines
    )


def attempts(run: Run, base: Iteration, mark: Mark) -> str:
    """Every earlier attempt with its feedback, the oldest first."""
    parts = []
    for iteration in run.iterations:
        if iteration.number == base.number or iteration.flaw or iteration.verdict is None:
            continue
        score = iteration.verdict.score
        head = f"Attempt {iteration.number}" + ("" if score is None else f", scored {score:.2f}")
        findings = listed("Its feedback", [f for f in iteration.findings if f.grounded])
        feedback = findings.strip() or _line(_why(iteration))
        parts.append(f"{head}:\n{envelope(iteration.text, mark)}\n{feedback}")
    return "\n\nEarlier attempts:\n\n" + "\n\n".join(parts) if parts else ""


def dismissed(run: Run) -> str:
    """Name what the user set aside, so that it is not raised again."""
    lines = [
        f"- {_line(f.problem)}" + (f" (because: {_line(f.reason)})" if f.reason else "")
        for f in ledger.dismissed(run)
    ]
    return "\n\nSettled already, not to be named again:\n" + "\n".join(lines) if lines else ""


def precedents(run: Run, mark: Mark) -> str:
    """Show how the user judged texts of this run where they disagreed with the verdict."""
    lines = []
    for iteration in run.iterations:
        if decision := iteration.overridden:
            good = decision.outcome is Outcome.PASS
            said = "It is good enough" if good else "It is not there yet"
            why = f": {_line(decision.text)}" if decision.text else "."
            lines.append(f"{said}{why}\n{envelope(iteration.text[:_SHOWN], mark)}")
    if not lines:
        return ""
    head = "The person it is for has judged these texts; judge in line with that."
    return "\n\n" + "\n".join([head, *lines[-3:]])


def _rest(detail: str, known: Collection[str]) -> str:
    """A check's detail, cut, without the lines that are known."""
    lines = [line for line in detail.splitlines() if line.strip() not in known]
    return "\n".join(lines)[:CUT_DETAIL]


def _why(iteration: Iteration) -> str:
    return iteration.flaw or (iteration.verdict.why if iteration.verdict else "")


def _line(text: str) -> str:
    """A model's words as one line, so that they cannot pass for a part of the prompt."""
    return _inert(" ".join(text.split()))


def _inert(text: str) -> str:
    return _LOOK_ALIKE.sub(lambda match: f"{match[0]} ", text)
