"""What a user can decide: one class per decision, with its fields, rules, sentence and parser.

A new decision is one class here, its effect in `reducer`, one button and one command.
"""

import builtins
import re
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import Field, TypeAdapter

from ipyrefine.core.model import (
    MAX_ITERATIONS,
    Clarification,
    Count,
    Criterion,
    Finding,
    Outcome,
    Question,
    Record,
    Score,
    Severity,
    named_criteria,
)
from ipyrefine.core.syntax import is_literal
from ipyrefine.errors import UsageError

if TYPE_CHECKING:
    from ipyrefine.core.run import Run

OWN = "yours"  # criterion of a finding that the user filed under none
_FINDING_ID = re.compile(r"f\d+,?")
_TARGET = re.compile(r"[01]?\.?\d+")


class _Decision(Record):
    """Base of all decisions.

    Attributes:
        is_remark: whether it leaves an earlier ruling (accepted, passed) in force.
        asks_for_revision: whether it asks for one more revision.
    """

    is_remark: ClassVar[bool] = False
    asks_for_revision: ClassVar[bool] = False

    @property
    def settles(self) -> bool:
        """Whether it ends the run: a text was accepted, or passed against its verdict."""
        return False

    @property
    def revision_requested(self) -> bool:
        """Whether this very decision asks for one more revision."""
        return self.asks_for_revision and not self.settles

    def check(self, run: "Run") -> None:
        """Refuse what cannot be carried out on a run.

        Raises:
            UsageError: there is no such text or finding, or a part is missing.
        """
        _require_text(run)
        _require_iteration(run, getattr(self, "iteration", None))

    def sentence(self) -> str:
        """Return what the user did, in one sentence; their own words are quoted as they are."""
        raise NotImplementedError

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read the words after ``%refine COMMAND``.

        Args:
            run: the run that the decision is about.
            words: the words; the list may be consumed.

        Raises:
            UsageError: a word is missing or means nothing here.
        """
        raise NotImplementedError


class Accept(_Decision):
    """Take a text as the result.

    Attributes:
        iteration: which text; None for the chosen one.
        reason: why, in the user's words.
    """

    kind: Literal["accept"] = "accept"
    iteration: Count | None = None
    reason: str = ""

    @property
    def settles(self) -> bool:
        """It always ends the run."""
        return True

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You accepted {_text_name(self.iteration)}{_quoted(self.reason)}"

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``[k]``."""
        number = parse_iteration(run, words)
        if number is None and run.chosen:
            number = run.chosen.number
        return cls(iteration=number)


class Override(_Decision):
    """Replace a verdict by the user's own; other than PASS asks for a revision.

    Attributes:
        iteration: which text; None for the chosen one.
        outcome: the verdict to give instead.
        reason: why; other than PASS, a blocking finding of the user's.
    """

    asks_for_revision: ClassVar[bool] = True
    kind: Literal["override"] = "override"
    iteration: Count | None = None
    outcome: Outcome
    reason: str = ""

    @property
    def settles(self) -> bool:
        """Whether the text was passed."""
        return self.outcome is Outcome.PASS

    @property
    def verdict_reason(self) -> str:
        """The sentence that the verdict carries from now on."""
        return self.reason or f"Marked {'PASS' if self.settles else 'as needs work'} by you."

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        outcome = self.outcome.value.replace("_", " ")
        which = _text_name(self.iteration)
        return f"You marked {which} {outcome}{_quoted(self.reason)}"

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``pass|fail [k] [reason]``; a number that more than one word follows is a reason."""
        word = words.pop(0) if words else ""
        if word not in ("pass", "fail"):
            raise UsageError(
                'Say which: %refine override pass "reason", or override fail "reason".'
            )
        outcome = Outcome.PASS if word == "pass" else Outcome.NEEDS_IMPROVEMENT
        is_number = bool(words) and words[0].isdigit() and len(words) <= 2
        number = parse_iteration(run, words) if is_number else None
        return cls(iteration=number, outcome=outcome, reason=" ".join(words))


class Continue(_Decision):
    """Allow more revisions.

    Attributes:
        revisions: how many more.
        guidance: what the next revision should do.
    """

    asks_for_revision: ClassVar[bool] = True
    kind: Literal["continue"] = "continue"
    revisions: int = Field(default=1, ge=1, le=MAX_ITERATIONS)
    guidance: str = ""

    def check(self, run: "Run") -> None:
        """Refuse guidance for a text that is still to be written."""
        if run.iterations or self.guidance:
            super().check(run)

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        count = f"{self.revisions} more revision{'' if self.revisions == 1 else 's'}"
        return f"You allowed {count}{_quoted(self.guidance)}"

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``[n] [guidance]``."""
        return cls(revisions=_parse_count(words), guidance=" ".join(words))


class Branch(_Decision):
    """Continue from a chosen text.

    Attributes:
        iteration: the text to revise next.
        revisions: how many more revisions are allowed.
        guidance: what the next revision should do.
    """

    asks_for_revision: ClassVar[bool] = True
    kind: Literal["branch"] = "branch"
    iteration: Count
    revisions: int = Field(default=1, ge=1, le=MAX_ITERATIONS)
    guidance: str = ""

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You continued from {_text_name(self.iteration)}{_quoted(self.guidance)}"

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``k [n] [guidance]``."""
        number = parse_iteration(run, words)
        if number is None:
            raise UsageError("Say which iteration to branch from.")
        return cls(iteration=number, revisions=_parse_count(words), guidance=" ".join(words))


class Select(_Decision):
    """Have the next revision act on chosen findings only.

    Attributes:
        findings: their ids.
        iteration: the text to revise; None for the chosen one.
        guidance: what else the revision should do.
    """

    asks_for_revision: ClassVar[bool] = True
    kind: Literal["select"] = "select"
    findings: tuple[str, ...]
    iteration: Count | None = None
    guidance: str = ""

    def check(self, run: "Run") -> None:
        """Refuse ids that the run does not have."""
        super().check(run)
        _require_findings(run, self.findings, "select")

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You chose {', '.join(self.findings)} to act on{_quoted(self.guidance)}"

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``f1 f2 [guidance]``."""
        return cls(findings=_parse_ids(words), guidance=" ".join(words))


class Guide(_Decision):
    """Say what the next revision should do; it becomes a blocking finding.

    Attributes:
        guidance: the user's words.
    """

    is_remark: ClassVar[bool] = True
    kind: Literal["guide"] = "guide"
    guidance: str

    def check(self, run: "Run") -> None:
        """Refuse empty guidance."""
        super().check(run)
        if not self.guidance.strip():
            raise UsageError('The guidance is empty: %refine guide "shorter, please".')

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You gave guidance{_quoted(self.guidance)}"

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read the guidance."""
        return cls(guidance=" ".join(words))


class Edit(_Decision):
    """Put the user's own text beside the others, to be verified like any.

    Attributes:
        iteration: the text it was made from; None for the chosen one.
        text: the edited text.
    """

    kind: Literal["edit"] = "edit"
    iteration: Count | None = None
    text: str

    def check(self, run: "Run") -> None:
        """Refuse an empty text."""
        super().check(run)
        if not self.text.strip():
            raise UsageError("The edited text is empty.")

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You edited {_text_name(self.iteration)}."


class Dismiss(_Decision):
    """Set findings aside for good.

    Attributes:
        findings: their ids.
        reason: why, in the user's words.
    """

    is_remark: ClassVar[bool] = True
    kind: Literal["dismiss"] = "dismiss"
    findings: tuple[str, ...]
    reason: str = ""

    def check(self, run: "Run") -> None:
        """Refuse ids that the run does not have, and findings that a check rests on."""
        super().check(run)
        _require_findings(run, self.findings, "dismiss")
        for finding in run.findings:
            if finding.id in self.findings and finding.binding:
                raise UsageError(
                    f"{finding.id} comes from the check {finding.check} and cannot be dismissed. "
                    "Override the verdict instead."
                )

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You dismissed {', '.join(self.findings)}{_quoted(self.reason)}"

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``f1 f2 [reason]``."""
        return cls(findings=_parse_ids(words), reason=" ".join(words))


class Drop(_Decision):
    """Leave out a demand on a text's form that was read wrongly; no text is held to it any more.

    Attributes:
        demand: the name of its check: ``length:<=120 words``.
    """

    kind: Literal["drop"] = "drop"
    demand: str

    def check(self, run: "Run") -> None:
        """Refuse what is not checked, and checks of more than the form."""
        super().check(run)
        demands = run.demands
        if self.demand not in demands:
            known = ", ".join(demands) or "none"
            raise UsageError(f"There is no demand {self.demand!r}. This run has: {known}.")

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You dropped the demand {self.demand}."

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read the name of the demand's check."""
        return cls(demand=" ".join(words))


class Add(_Decision):
    """Add a finding of the user's own; one with a known id replaces that one.

    Attributes:
        finding: the finding; its author and status are set when it is taken up.
        iteration: the text that its quote must be in; None for the chosen one.
    """

    is_remark: ClassVar[bool] = True
    kind: Literal["add"] = "add"
    finding: Finding
    iteration: Count | None = None

    def check(self, run: "Run") -> None:
        """Refuse a finding without a problem, or with a quote that is not in the text."""
        super().check(run)
        if not self.finding.problem.strip():
            raise UsageError("A finding needs a problem in words.")
        text = run.chosen if self.iteration is None else run.iterations[self.iteration]
        if text and not contains_quote(text.text, self.finding.quote):
            raise UsageError(f"The quoted words are not in {run.mention(text.number)}.")

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You added a finding: {self.finding.problem}"

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``[f1] [blocking|minor] "problem" ["quote"] ["fix"]``; f1 is reworded."""
        ids = _parse_ids(words, most=1)
        before = next((f for f in run.findings if f.id in ids), None)
        if ids and not before:
            raise UsageError(f"There is no finding {ids[0]!r} in this run.")
        severity = before.severity if before else Severity.BLOCKING
        if words and words[0] in tuple(Severity):
            severity = Severity(words.pop(0))
        if not 1 <= len(words) <= 3:
            raise UsageError(
                'Put the finding in quotes: %refine add "the problem" ["words of the text"] '
                '["the fix"], or %refine add f2 "…" to reword f2.'
            )
        kept = ["", before.quote if before else "", before.fix if before else ""][len(words) :]
        problem, quote, fix = [*words, *kept]
        finding = Finding(
            id="".join(ids),
            criterion=before.criterion if before else OWN,
            severity=severity,
            quote=quote,
            problem=problem,
            fix=fix,
            author="user",
        )
        return cls(finding=finding)


class Rubric(_Decision):
    """Change what texts are judged on; all of them are judged again.

    Attributes:
        criteria: the new criteria; empty keeps those there are.
        target: the new target score; None keeps the one there is.
    """

    kind: Literal["rubric"] = "rubric"
    criteria: tuple[Criterion, ...] = ()
    target: Score | None = None

    def check(self, run: "Run") -> None:
        """Refuse a rubric that changes nothing."""
        if not self.criteria and self.target is None:
            raise UsageError("A new rubric needs criteria or a target.")

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        changes = []
        if self.criteria:
            changes.append(f"criteria {', '.join(c.name for c in self.criteria)}")
        if self.target is not None:
            changes.append(f"target {self.target:.2f}")
        return f"You changed the rubric: {'; '.join(changes)}."

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``a,b,c [target]``."""
        target = float(words.pop()) if words and _TARGET.fullmatch(words[-1]) else None
        return cls.build(run, " ".join(words), target)

    @classmethod
    def build(cls, run: "Run", names: str, target: float | None) -> Self:
        """Build a rubric from criteria written as ``a, b, c`` and the score that passes.

        Raises:
            UsageError: the target is no score.
        """
        if target is not None and not 0 <= target <= 1:
            raise UsageError(f"The target is a score from 0 to 1, not {target:g}.")
        listed = [name.strip() for name in names.split(",") if name.strip()]
        return cls(criteria=named_criteria(listed, run.task.criteria), target=target)


class Answer(_Decision):
    """Answer the question that the drafts disagree about; it becomes an example of the task.

    Attributes:
        choice: which of the results, from 1; None for one of the user's own.
        result: the user's own: a value as Python, or the name of an exception.
    """

    kind: Literal["answer"] = "answer"
    choice: int | None = Field(default=None, ge=1, le=MAX_ITERATIONS)
    result: str = ""

    def check(self, run: "Run") -> None:
        """Refuse an answer without a question, and one that is neither a value nor an error."""
        super().check(run)
        if run.question is None:
            raise UsageError("There is no question to answer in this run.")
        choices = run.question.choices
        if self.choice is not None and self.choice > len(choices):
            raise UsageError(f"The question has answers 1 to {len(choices)}, not {self.choice}.")
        if self.choice is None and not (_exception_name(self.result) or is_literal(self.result)):
            raise UsageError(
                "Answer with the number of a result, a value as Python, or the name of an "
                'exception: %refine answer 1, or %refine answer "ValueError".'
            )

    def clarification(self, question: Question) -> Clarification:
        """Return the example that the answer adds to the task."""
        if self.choice is not None:
            choice = question.choices[self.choice - 1]
            result, raises = choice.result, choice.raises
        else:
            name = _exception_name(self.result)
            result, raises = name or self.result.strip(), bool(name)
        return Clarification(call=question.call, result=result, raises=raises, setup=question.setup)

    def sentence(self) -> str:
        """Return the decision in one sentence."""
        return f"You answered {self.result or f'with result {self.choice}'}."

    @classmethod
    def parse(cls, run: "Run", words: list[str]) -> Self:
        """Read ``k``, or a value or exception in quotes."""
        answer = " ".join(words).strip()
        choices = len(run.question.choices) if run.question else 0
        # A number names a choice, unless there is none of that number.
        if answer.isdecimal() and 1 <= int(answer) <= choices:
            return cls(choice=int(answer))
        return cls(result=answer)


_EXCEPTION = re.compile(r"(?:raises?\s+)?([A-Za-z_][\w.]*)", re.IGNORECASE)


def _exception_name(words: str) -> str:
    """Return the exception that an answer names, like ``raises ValueError``; else empty."""
    match = _EXCEPTION.fullmatch(words.strip())
    name = match[1].rpartition(".")[2] if match else ""
    kind = getattr(builtins, name, None)
    builtin = isinstance(kind, type) and issubclass(kind, Exception)
    return name if builtin or name.endswith(("Error", "Exception")) else ""


Decision = Annotated[
    Accept
    | Answer
    | Override
    | Continue
    | Branch
    | Select
    | Guide
    | Edit
    | Dismiss
    | Drop
    | Add
    | Rubric,
    Field(discriminator="kind"),
]
DECISION: TypeAdapter[Decision] = TypeAdapter(Decision)

# What `%refine` offers by name; `edit` reads a variable, a cell or an editor first.
COMMANDS: dict[str, type[_Decision]] = {
    "accept": Accept,
    "add": Add,
    "answer": Answer,
    "branch": Branch,
    "continue": Continue,
    "dismiss": Dismiss,
    "drop": Drop,
    "guide": Guide,
    "override": Override,
    "rubric": Rubric,
    "select": Select,
}


def parse_iteration(run: "Run", words: list[str]) -> int | None:
    """Read an iteration's number from the first word and remove it; None without a word.

    Raises:
        UsageError: there is no such iteration.
    """
    if not words:
        return None
    word = words.pop(0)
    if not word.isdecimal() or len(word) > 9:
        raise UsageError(f"{word[:40]!r} is not the number of an iteration. {_range(run)}")
    _require_iteration(run, int(word))
    return int(word)


_MARKS = "\"'`. \N{HORIZONTAL ELLIPSIS}\N{LEFT DOUBLE QUOTATION MARK}"
_MARKS += "\N{RIGHT DOUBLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}"
_MARKS += "\N{RIGHT SINGLE QUOTATION MARK}"


def contains_quote(text: str, quote: str) -> bool:
    """Return whether a text contains a quote, loose about white space and marks around it.

    An empty quote is about something missing, and is in every text. One of marks alone, such as
    ``…``, quotes nothing unless these very marks are in the text.
    """
    flat = " ".join(text.split())
    words = " ".join(quote.split())
    bare = words.strip(_MARKS)
    return words in flat or (bool(bare) and bare in flat)


def _parse_ids(words: list[str], most: int | None = None) -> tuple[str, ...]:
    ids: list[str] = []
    while words and len(ids) != most and _FINDING_ID.fullmatch(words[0]):
        ids.append(words.pop(0).rstrip(","))
    return tuple(ids)


def _parse_count(words: list[str]) -> int:
    if not (words and words[0].isdecimal()):
        return 1
    return min(max(1, int(words.pop(0)[:9])), MAX_ITERATIONS)


def _require_text(run: "Run") -> None:
    if not run.iterations:
        raise UsageError("There is no text yet to decide on. Continue first.")


def _require_iteration(run: "Run", number: int | None) -> None:
    if number is not None and not 0 <= number < len(run.iterations):
        raise UsageError(f"There is no iteration {number}. {_range(run)}")


def _range(run: "Run") -> str:
    return f"This run has iterations 0 to {len(run.iterations) - 1}."


def _require_findings(run: "Run", ids: tuple[str, ...], verb: str) -> None:
    if not ids:
        raise UsageError(f"Say which findings to {verb}.")
    known = {finding.id for finding in run.findings}
    for id_ in ids:
        if id_ not in known:
            raise UsageError(f"There is no finding {id_!r} in this run.")


def _text_name(iteration: int | None) -> str:
    if iteration is None:
        return "the best text"
    return f"revision {iteration}" if iteration else "the draft"


def _quoted(words: str) -> str:
    return f": {words}" if words else "."
