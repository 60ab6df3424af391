"""When a run stops and how its calls are made."""

from typing import Literal

from pydantic import Field

from ipyrefine.core.records import Record, Score


class Budget(Record):
    """Upper bounds on what a run may consume; None means unbounded.

    Attributes:
        tokens: prompt and completion tokens.
        calls: model requests.
        prompt_tokens: those the model reads.
        completion_tokens: those the model writes.
        cost: US dollars.
        seconds: wall time since the run started.
    """

    tokens: int | None = Field(default=None, gt=0)
    prompt_tokens: int | None = Field(default=None, gt=0)
    completion_tokens: int | None = Field(default=None, gt=0)
    calls: int | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)


class Limits(Record):
    """When a run stops and how its calls are made.

    Attributes:
        max_iterations: revisions allowed after the first text (0: one text, one verdict).
        target: score 0..1 a passing text must reach.
        patience: revisions in a row without a better best before the run stops.
        min_findings: findings a critique must name.
        max_eval_chars: characters of the text the judge sees.
        max_tokens: completion tokens allowed per call.
        temperature: sampling temperature of drafts and revisions; critique and judge use 0.
        seed: sampling seed passed to the server, or None.
        delta: gain in score, 0..1, up to which a better text still counts as no progress.
        candidates: first texts to write, each from the task alone; with checks, at most, and
            only as many as it takes to settle it. The best is gone on with.
        critics: critiques of one text to ask for at once; what they name is acted on once.
        step: whether to pause for the user after every verdict.
        gate: whether a better-scored text must also win a comparison in both orders.
        memory: whether a reviser sees the best text and what failed from it, or all attempts.
        every_critique: whether each text is criticised, even if its judge named weaknesses.
        budget: upper bounds on consumption.
    """

    max_iterations: int = Field(default=4, ge=0)
    target: Score = 0.8
    patience: int = Field(default=2, ge=1)
    min_findings: int = Field(default=3, ge=0)
    max_eval_chars: int = Field(default=32_768, gt=0)
    max_tokens: int = Field(default=2_048, gt=0)
    temperature: float = Field(default=0.0, ge=0, le=2)
    seed: int | None = None
    delta: Score = 0.0
    candidates: int = Field(default=1, ge=1, le=16)
    critics: int = Field(default=1, ge=1, le=8)
    step: bool = False
    gate: bool = False
    memory: Literal["best", "all"] = "best"
    every_critique: bool = False
    budget: Budget = Budget()
