"""Words and number formats that every surface shares."""

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from ipyrefine.core.decisions import (
    Accept,
    Add,
    Answer,
    Branch,
    Continue,
    Decision,
    Dismiss,
    Drop,
    Edit,
    Guide,
    Override,
    Rubric,
    Select,
)
from ipyrefine.core.findings import contains_quote
from ipyrefine.core.model import (
    Basis,
    Choice,
    Evidence,
    Finding,
    Form,
    Outcome,
    Question,
    Setup,
    Severity,
    Status,
    StopReason,
    Tally,
    Task,
    Usage,
    Verdict,
)
from ipyrefine.core.policy import forecast
from ipyrefine.core.run import Iteration, Run
from ipyrefine.core.sharing import Sharing

NONE = "\N{EN DASH}"
STAGES = {
    "draft": "Writing",
    "check": "Checking",
    "judge": "Judging",
    "critique": "Critiquing",
    "revise": "Revising",
}
STOPS = {
    StopReason.PASSED: "passed",
    StopReason.PLATEAU: "no improvement",
    StopReason.REVISIONS: "all revisions used",
    StopReason.BUDGET: "budget used up",
    StopReason.QUESTION: "a question for you",
    StopReason.UNJUDGED: "not judged",
    StopReason.CANCELLED: "interrupted",
    StopReason.FAILED: "an error",
    StopReason.ACCEPTED: "accepted by you",
    StopReason.OVERRIDDEN: "marked PASS by you",
    StopReason.PAUSED: "waiting for you",
}


class Label(NamedTuple):
    """A word with a symbol, so that its meaning never rests on colour alone.

    Attributes:
        symbol: one character.
        word: one or a few words.
        kind: the style: ``good``, ``warn``, ``bad``, ``quiet``, ``open``, ``opinion`` (a PASS
            that a judge gave) or ``yours`` (one that the user gave).
        hollow: whether it is drawn as an outline, as no evidence says that the text is right.
    """

    symbol: str
    word: str
    kind: str
    hollow: bool = False

    def __str__(self) -> str:
        """Return symbol and word."""
        return f"{self.symbol} {self.word}"


NO_NEW_TEXT = Label("⚠", "no new text", "bad")
BEST = "★ best"
FINDERS = {"model": "found by the model", "check": "found by a check", "user": "added by you"}
_OUTCOMES = {
    Outcome.PASS: Label("✓", "PASS", "good"),
    Outcome.NEEDS_IMPROVEMENT: Label("✎", "NEEDS IMPROVEMENT", "warn"),
    Outcome.FAIL: Label("✗", "FAIL", "bad"),
    Outcome.NOT_JUDGED: Label("?", "NOT JUDGED", "quiet"),
}
# What a PASS rests on; of a text that does not pass, what it failed.
_BASES: dict[Basis, tuple[str, str]] = {
    "tests": ("tests", "tests failed"),
    "function": ("checks", "a check failed"),
    "schema": ("schema", "schema failed"),
    "examples": ("examples", "examples failed"),
    "agreement": ("drafts agree", "most drafts disagree"),
    "constraints": ("constraints", "constraints failed"),
    "judge": ("judge's opinion", "judge's opinion"),
    "user": ("yours", "yours"),
    "run": ("runs", "run failed"),
    "none": ("", ""),
}
_STATUSES = {
    Status.OPEN: Label("○", "open", "open"),
    Status.RESOLVED: Label("✓", "resolved", "good"),
    Status.DISMISSED: Label(NONE, "dismissed", "quiet"),
    Status.REGRESSED: Label("↩", "regressed", "bad"),
}


def outcome_label(outcome: Outcome) -> Label:
    """Return the label of an outcome."""
    return _OUTCOMES[outcome]


def basis_label(verdict: Verdict, evidence: Iterable[Evidence] = ()) -> str:
    """Return what a verdict rests on: ``3 examples``, ``judge's opinion, 0.81``; empty for nothing.

    Args:
        verdict: the verdict.
        evidence: the checks' results on its text, which say how many examples hold.
    """
    passed, failed = _BASES[verdict.basis]
    if verdict.outcome is Outcome.NOT_JUDGED:
        return passed if verdict.only_ran else ""
    if verdict.is_opinion:
        number = verdict.score if verdict.opinion is None else verdict.opinion
        parts = ["constraints"] if verdict.basis == "constraints" else []
        parts.append("judge's opinion")
        return ", ".join([*parts, *([] if number is None else [score(number)])])
    if not verdict.passed and not verdict.required_passed:
        return failed
    if verdict.basis == "agreement" and not verdict.passed:
        return "drafts disagree"
    if verdict.basis == "examples" and verdict.passed:
        return _count_examples(evidence) or passed
    return passed


def basis_name(basis: str) -> str:
    """Return what verdicts of a basis rest on, in words; empty for nothing."""
    return {str(name): words for name, (words, _) in _BASES.items()}.get(basis, "")


def _count_examples(evidence: Iterable[Evidence]) -> str:
    """Return how many stated examples hold, like ``3 examples``; empty where that is not known."""
    passed = [e for e in evidence if e.basis == "examples" and e.passed]
    tallies = [t for e in passed for t in e.tallies if t.noun == "example"]
    return count(tallies[0].held, "example") if tallies else ""


def verdict_label(
    verdict: Verdict | None, evidence: Iterable[Evidence] = (), findings: Iterable[Finding] = ()
) -> Label:
    """Return the label of a verdict with what it rests on, like ``✓ PASS · 3 examples``.

    Where nothing but findings keeps a text from passing, it names them: ``1 open finding``.

    Only evidence is drawn in full green. A judge's or the user's verdict has a symbol of its own,
    so that nobody needs colour to see the difference.

    Args:
        verdict: the verdict; None before there is one.
        evidence: the checks' results on its text.
        findings: the findings of its text.
    """
    if verdict is None:
        return Label("?", "NOT VERIFIED", "quiet")
    label = _OUTCOMES[verdict.outcome]
    if verdict.basis == "user":
        over = ", over a failed check" if verdict.over_failed_check else ""
        label = label._replace(word=f"{label.word} (yours){over}")
        return label._replace(symbol="☑", kind="yours") if verdict.passed else label
    if verdict.required_passed and verdict.outcome is Outcome.NEEDS_IMPROVEMENT:
        blocking = sum(finding.blocks for finding in findings)
        if blocking and verdict.stated in (None, Outcome.PASS):
            return label._replace(word=f"{label.word} · {count(blocking, 'open finding')}")
    basis = basis_label(verdict, evidence)
    label = label._replace(word=" · ".join(part for part in (label.word, basis) if part))
    if verdict.is_opinion and verdict.passed:
        return label._replace(symbol="○", kind="opinion", hollow=True)
    return label._replace(hollow=verdict.is_opinion or verdict.only_ran)


def iteration_label(iteration: Iteration | None) -> Label:
    """Return the label of an iteration's verdict with what it rests on."""
    if iteration is None:
        return verdict_label(None)
    return verdict_label(iteration.verdict, iteration.evidence, iteration.findings)


def score_beside(verdict: Verdict | None) -> str:
    """Return the score to show beside a verdict's label; empty where the label has it, or none."""
    if verdict is None or verdict.is_opinion or verdict.score is None:
        return ""
    return score(verdict.score)


def doubt(finding: Finding, text: str) -> str:
    """Return why a finding is doubtful; empty where it is not.

    Args:
        finding: the finding.
        text: the text it is about.
    """
    if not finding.doubtful:
        return ""
    if finding.quote and not (text and contains_quote(text, finding.quote)):
        return "quote not in the text"
    if finding.input:
        return "its input gave what was expected"
    return "nothing shows it"


def doubtful(reason: str) -> Label:
    """Return the label of a doubtful finding with why it is one."""
    return Label("⚠", f"doubtful: {reason}", "warn")


def choice_text(choice: Choice) -> str:
    """Return what drafts give on an input: ``returns None`` or ``raises ValueError``."""
    return f"{'raises' if choice.raises else 'returns'} {choice.result}"


def question_title(question: Question) -> str:
    """Return a question in one sentence."""
    return f"What should {question.call} give? The drafts disagree, and the task doesn't say."


def severity_label(severity: Severity, *, passed: bool = False) -> Label:
    """Return the label of a severity.

    Args:
        severity: the severity.
        passed: whether the text passes all the same, so that a minor finding is a suggestion.
    """
    if severity is Severity.BLOCKING:
        return Label("■", "blocking", "bad")
    return Label("□", "suggestion" if passed else "minor", "quiet")


def status_label(status: Status) -> Label:
    """Return the label of a finding's status."""
    return _STATUSES[status]


def evidence_label(evidence: Evidence) -> Label:
    """Return the label of a check's result."""
    if evidence.contested:
        return Label("≠", "drafts disagree", "warn")
    if evidence.passed is None:
        return Label("?", "no result", "quiet")
    return Label("✓", "passed", "good") if evidence.passed else Label("✗", "failed", "bad")


def check_name(name: str) -> str:
    """Return a check's name for people: ``tests:suite``, ``at most 120 words``."""
    kind, _, argument = name.removesuffix(" decisive").partition(":")
    if kind == "length":
        return argument.replace("<=", "at most ").replace(">=", "at least ")
    return f'{kind} "{argument}"' if kind in ("with", "without") else name.removesuffix(" decisive")


def evidence_chip(evidence: Evidence) -> str:
    """Return a check's result in a few words: ``✓ examples 4/4``, ``✗ lint``."""
    label, name = evidence_label(evidence), check_name(evidence.name)
    word = "" if evidence.passed is not None and not evidence.contested else f": {label.word}"
    counts = [f"{tally_name(evidence, t)} {t.held}/{t.of}" for t in evidence.tallies]
    return f"{label.symbol} {', '.join(counts) or name}{word}"


def tally_name(evidence: Evidence, tally: Tally) -> str:
    """Return what a check's count is called: ``examples``, or the check's own name."""
    return "examples" if tally.noun == "example" else check_name(evidence.name)


def answer_label(yes: bool) -> Label:
    """Return the label of an answer to a checklist question."""
    return Label("✓", "yes", "good") if yes else Label("✗", "no", "bad")


def score(value: float | None) -> str:
    """Format a score with two decimals; None as a dash."""
    return NONE if value is None else f"{value:.2f}"


def count(number: int, noun: str) -> str:
    """Format a number with its noun, like ``1,204 tokens``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def seconds(value: float) -> str:
    """Format a duration: ``0.3 s``, ``12 s``, ``1 min 05 s`` or ``1 h 02 min``."""
    if value < 0.95:
        return "< 0.1 s" if value < 0.05 else f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def cost(dollars: float | None) -> str:
    """Format a cost in US dollars; zero as ``free``, None as a dash."""
    if dollars is None:
        return NONE
    return _dollars(dollars) if dollars else "free"


def _dollars(amount: float) -> str:
    """Format US dollars: four decimals below one dollar, two from there on."""
    if amount < 0.00005:
        return "< $0.0001" if amount > 0 else "$0"
    return f"${amount:.4f}" if amount < 1 else f"${amount:,.2f}"


def usage_parts(usage: Usage, wall: float | None = None) -> list[str]:
    """Return tokens, seconds and cost as phrases, without what is unknown or zero.

    Args:
        usage: the consumption.
        wall: wall time in seconds; the time spent in calls by default.
    """
    parts = [count(usage.tokens, "token")] if usage.calls else []
    duration = usage.seconds if wall is None else wall
    parts += [seconds(duration)] if duration else []
    return parts + ([_dollars(usage.cost)] if usage.cost and usage.calls else [])


def budget_left(run: Run) -> str:
    """Return the rest of the budget, like ``3,400 tokens left``; empty without a budget."""
    budget, used = run.limits.budget, run.usage
    bounds = (
        (budget.tokens, used.tokens, "token"),
        (budget.prompt_tokens, used.prompt_tokens, "prompt token"),
        (budget.completion_tokens, used.completion_tokens, "completion token"),
        (budget.calls, used.calls, "call"),
    )
    parts = [count(max(0, most - spent), noun) for most, spent, noun in bounds if most is not None]
    if budget.cost is not None and used.cost is not None:
        parts.append(_dollars(max(0.0, budget.cost - used.cost)))
    if budget.seconds is not None:
        parts.append(seconds(max(0.0, budget.seconds - run.seconds)))
    return ", ".join(parts) + " left" if parts else ""


def stage_name(stage: str, iteration: int, allowed: int) -> str:
    """Return the stage under way, like ``Revising · revision 2 of 4``."""
    name = STAGES.get(stage, stage)
    return f"{name} · revision {iteration} of {allowed}" if iteration else f"{name} · draft"


def iteration_name(iteration: Iteration) -> str:
    """Return an iteration's name, like ``Draft`` or ``Revision 2``.

    The number is the one that commands take. Its origin follows unless it is the one before.
    """
    number, parent = iteration.number, iteration.parent
    name = f"{'Draft' if parent is None else 'Revision'}{f' {number}' if number else ''}"
    if iteration.author == "user":
        return f"{name} (your text)"
    branched = parent is not None and parent != number - 1
    return f"{name} (from {parent or 'the draft'})" if branched else name


_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(scores: Iterable[float | None]) -> str:
    """Return one block per iteration, as high as its score 0..1; a dot for a missing score.

    >>> sparkline([0.4, None, 0.7, 1.0])
    '▄·▆█'
    """
    return "".join("·" if s is None else _BLOCKS[min(7, int(s * 8))] for s in scores)


def summary_parts(run: Run) -> list[str]:
    """Return a run's score, best iteration, revisions, usage and stop reason as phrases."""
    number = score_beside(run.verdict)
    parts = [f"score {number}"] if number else []
    if run.chosen is not None:
        accepted = run.best is not None and run.chosen.number != run.best
        name = iteration_name(run.chosen).partition(" (")[0].lower()
        parts.append(f"{'accepted' if accepted else 'best'}: {name}")
        parts.append(f"{run.revisions} of {count(run.allowed_revisions, 'revision')}")
    parts += usage_parts(run.usage, run.seconds)
    if run.stop_reason is not None:
        parts.append(f"stopped: {STOPS[run.stop_reason]}")
    return parts


def running(run: Run) -> bool:
    """Return whether a stage is under way."""
    return bool(run.stage) and run.stop_reason is None


def language(text: str, form: str, language: str = "python") -> str:
    """Return the language to highlight, as pygments names it; empty for prose.

    Args:
        text: the text.
        form: how it is written.
        language: the task's language; data that a task without one asks for is ``json``.
    """
    if form != "code":
        return ""
    if language != "python":
        return language
    head, tail = text.lstrip()[:1], text.rstrip()[-1:]
    return "json" if (head, tail) in (("{", "}"), ("[", "]")) else "python"


def form_name(task: Task) -> str:
    """Return what a task asks for: ``prose``, ``code``, or ``Java code``."""
    return f"{task.language_name} code" if task.is_foreign else task.form


def other_form(task: Task) -> Form:
    """Return the kind of text that a task does not ask for."""
    return "code" if task.form == "prose" else "prose"


def switch_hint(task: Task) -> str:
    """Return how to start again as the other kind of text, for a terminal."""
    other = other_form(task)
    return f"Not {task.form}? Use %refine kind {other}, or next time %%refine -p {other}."


def interpretation(setup: Setup) -> str:
    """Return how a cell was read, what it demands and uses.

    As in ``task (code), 3 examples. Uses df (1,204 × 8), clean()``.
    """
    kind = "draft to improve" if setup.draft is not None else "task"
    phrases = ", ".join(material.phrase for material in setup.task.materials)
    uses = f". Uses {phrases}" if phrases else ""
    return ", ".join([f"{kind} ({form_name(setup.task)})", *map(check_name, setup.demands)]) + uses


def settings(run: Run) -> list[str]:
    """Return a run's profile, models, checks, limits and forecast as phrases."""
    setup, most = run.setup, forecast(run)
    parts = [f"profile {run.task.profile}"]
    parts += [f"language {run.task.language_name}"] if run.task.is_foreign else []
    parts += [model_name(setup.model)] if setup.model else []
    other = setup.judge and setup.judge != setup.model
    parts += [f"judge {model_name(setup.judge, '')}"] if other else []
    parts += [f"checks {', '.join(setup.checks)}"] if setup.checks else []
    parts += [f"target {score(run.limits.target)}", bounds(run)]
    estimate = f"≈ {count(_round_up(most.revision), 'token')} per further revision"
    return [*parts, f"{estimate} ({cost(most.revision_cost)})" if most.revision_cost else estimate]


def bounds(run: Run) -> str:
    """Return the most that a run can consume."""
    most = forecast(run)
    price = "price unknown" if most.cost is None else cost(most.cost)
    revisions = count(run.limits.max_revisions, "revision")
    tokens = count(_round_up(most.tokens), "token")
    return f"at most {revisions}, {count(most.calls, 'call')}, {tokens}, {price}"


def sharing_phrase(sharing: Sharing) -> str:
    """Return what servers elsewhere are sent of what code computed; empty where there are none."""
    words = {"structure": "stay here", "outputs": "are sent", "values": "and values are sent"}
    return f"outputs {words[sharing.level]}" if sharing.servers else ""


def server_name(server: str) -> str:
    """Return the host of a server's address, or what a model of the user's own is called."""
    return urlsplit(server).hostname or server


def sharing_sentence(answer: str, servers: Iterable[str], *, stored: bool) -> str:
    """Return what an answer on sharing means.

    Args:
        answer: ``once``, ``always`` or ``never``.
        servers: the servers' addresses.
        stored: whether it could be kept for later runs.
    """
    names = " and ".join(map(server_name, servers))
    if answer == "once":
        return f"Outputs are sent to {names} for the rest of this run."
    later = "" if stored else " This could not be stored, so it holds for this run only."
    return f"Outputs are {answer} sent to {names}.{later}"


def model_name(name: str, kind: str = "model ") -> str:
    """Return a model's name for people; of a recording, its file.

    Args:
        name: the name as `choose_model` takes it.
        kind: what is put before the name of a model.
    """
    if not name.startswith("recorded:"):
        return f"{kind}{name}"
    file = name.removeprefix("recorded:").replace("\\", "/").rpartition("/")[2]
    return f"replay of {file}"


def _round_up(number: int) -> int:
    """Round up to two significant digits: an estimate should not look like a count."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


def decision_sentence(run: Run, decision: Decision) -> str:
    """Return what a user did, in one sentence; their own words are quoted as they are."""
    number = getattr(decision, "iteration", None)
    text = run.mention(number) if number is not None else "the best text"
    match decision:
        case Accept(reason=words):
            done = f"accepted {text}"
        case Override(outcome=outcome, reason=words):
            done = f"marked {text} {outcome.value.replace('_', ' ')}"
        case Continue(revisions=more, guidance=words):
            done = f"allowed {count(more, 'more revision')}"
        case Branch(guidance=words):
            done = f"continued from {text}"
        case Select(findings=ids, guidance=words):
            done = f"chose {', '.join(ids)} to act on"
        case Guide(guidance=words):
            done = "gave guidance"
        case Dismiss(findings=ids, reason=words):
            done = f"dismissed {', '.join(ids)}"
        case Add(finding=finding):
            done, words = "added a finding", finding.problem
        case Edit():
            done, words = f"edited {text}", ""
        case Drop(demand=demand):
            done, words = f"dropped the demand {demand}", ""
        case Answer(choice=choice, result=result):
            done, words = f"answered {result or f'with result {choice}'}", ""
        case Rubric(criteria=criteria, target=target):
            changes = [f"criteria {', '.join(c.name for c in criteria)}"] if criteria else []
            changes += [] if target is None else [f"target {target:.2f}"]
            done, words = f"changed the rubric: {'; '.join(changes)}", ""
    return f"You {done}{f': {words}' if words else '.'}"
