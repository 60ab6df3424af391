"""A server that reads only the start or the end of a prompt: what it then says settles nothing."""

from typing import Any

import pytest
from kit import NO_FINDINGS, READY, TASK, ended, text

from ipyrefine.core.model import Limits, Outcome, Usage
from ipyrefine.core.ports import Reply, Request
from ipyrefine.core.prompts import Prompts

ENGLISH = "The quick brown fox jumps over the lazy dog, and nobody minds that it does. "
GERMAN = "Die Geschwindigkeitsbegrenzung auf Autobahnen bleibt eine Angelegenheit der Länder. "
CODE = "        self.accumulated_results[identifier] = compute_value(identifier, default=None)\n"
CHINESE = "敏捷的棕色狐狸跳过了懒惰的狗,没有人在意。"
LIMITS = Limits(max_revisions=0, critique="always")
NUMBERS = "its server read only 2,050 of about"


def counted(reply: Any, tokens: int, cached: int | None = None) -> Any:
    """A reply whose server says that it read so many tokens."""

    def answer(request: Request) -> Reply:
        words = reply(request) if callable(reply) else reply
        usage = Usage(calls=1, prompt_tokens=tokens, cached_tokens=cached, completion_tokens=9)
        return Reply(text=words, usage=usage)

    return answer


OWN = {"prompts": Prompts(judge="Score it from 0 to 1.")}


@pytest.mark.parametrize(
    ("words", "reply", "options"),
    [*((words, READY, {}) for words in (ENGLISH, GERMAN, CODE, CHINESE)), (ENGLISH, "1.0", OWN)],
    ids=["en", "de", "code", "zh", "an evaluator"],
)
async def test_a_reader_that_read_half_a_text_passes_nothing(words, reply, options):
    draft = words * (16_000 // len(words))
    loop = await ended([counted(reply, 2_050)], draft=draft, limits=LIMITS, **options)
    assert loop.state.iterations[0].verdict.outcome is Outcome.NOT_JUDGED
    assert sum(NUMBERS in one for one in loop.state.warnings) == 1
    assert loop.state.usage.calls == 1


async def test_a_writer_that_read_half_its_prompt_is_warned_about():
    task = TASK.replace(text=ENGLISH * 210)
    loop = await ended([counted(text("Hello"), 2_050), READY], task, limits=LIMITS)
    assert loop.state.text == "Hello"
    assert sum(NUMBERS in one for one in loop.state.warnings) == 1


@pytest.mark.parametrize(
    ("tokens", "cached"),
    [(0, None), (0, 0), (3_300, None), (2_900, 0), (300, 3_000), (4, None), (9_000, 0)],
)
@pytest.mark.parametrize("words", [ENGLISH, CODE], ids=["en", "code"])
async def test_a_prompt_that_was_read_gives_no_warning(words, tokens, cached):
    draft = words * (13_000 // len(words))
    loop = await ended([counted(READY, tokens, cached)], draft=draft, limits=LIMITS)
    assert loop.state.warnings == ()
    assert loop.state.stop_reason == "passed"


async def test_a_server_that_counts_only_what_is_new_gives_no_warning():
    """The second prompt starts with the first one, which it may have kept."""
    replies = [counted("Fine.", 3_300), counted(NO_FINDINGS[0], 400)]
    loop = await ended(replies, draft=ENGLISH * 170, limits=LIMITS)
    assert not any("read only" in one for one in loop.state.warnings)
