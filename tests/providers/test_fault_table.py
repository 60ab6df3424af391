"""The fault table: what a whole run makes of each failure of its server, on a real socket.

Each fault has one outcome: asked again after a pause, asked for less, asked once more, or the run
stops with the best text and a sentence. It never hangs, and a fault never makes a PASS.
"""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from faulty import GOOD, STAGES, Trial
from openai_server import Answer, Failure, ScriptedServer

from ipyrefine import errors
from ipyrefine.core.runs import Budget, Limits, Run, StopReason
from ipyrefine.providers import transport
from ipyrefine.providers.openai import OpenAIModel

CERTIFICATE = Path(__file__).parents[1] / "support" / "self_signed.pem"
BUSY = {"error": {"message": "later"}}
TRANSIENT = {
    "408": Failure(408, BUSY),
    "409": Failure(409, BUSY),
    "429": Failure(429, BUSY),
    "429 with Retry-After": Failure(429, BUSY, {"Retry-After": "3"}),
    "500": Failure(500, BUSY),
    "502": Failure(502, "<html>Bad gateway</html>"),
    "503": Failure(503, BUSY),
    "529": Failure(529, BUSY),
}
FINAL: dict[str, tuple[Failure, type[errors.ModelError], str]] = {
    "307": (
        Failure(307, "", {"Location": "http://127.0.0.1:9/v2?secret=1"}),
        errors.RequestRejected,
        "give that one as the base URL",
    ),
    "400": (Failure(400, BUSY), errors.RequestRejected, "choose another model"),
    "401": (Failure(401, BUSY), errors.AccessDenied, "set OPENAI_API_KEY"),
    "402": (Failure(402, BUSY), errors.RateLimited, "top it up"),
    "403": (Failure(403, BUSY), errors.AccessDenied, "check what the key may do"),
    "404": (Failure(404, BUSY), errors.ModelNotFound, "check the model's name"),
    "413": (Failure(413, BUSY), errors.RequestRejected, "choose another model"),
    "429 with an hour to wait": (
        Failure(429, BUSY, {"Retry-After": "3600"}),
        errors.RateLimited,
        "wait a little",
    ),
    "429 without credit": (
        Failure(429, {"error": {"code": "insufficient_quota", "message": "over"}}),
        errors.RateLimited,
        "top it up",
    ),
}
BROKEN: dict[str, tuple[Answer, type[errors.ModelError], str]] = {
    "malformed SSE": (
        Answer(raw=b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\ndata: {"cho\n\n'),
        errors.ServerFailed,
        "check the base URL",
    ),
    "no SSE at all": (Answer(raw=b"\x00\x01\x02" * 99), errors.ServerFailed, "check the base URL"),
    "invalid UTF-8": (Answer(raw=b"data: {}\xff\xfe\n\n"), errors.ServerFailed, "check the base"),
    "a page instead": (
        Answer(raw=b"<html>Welcome</html>", content_type="text/html"),
        errors.ServerFailed,
        "check the base URL",
    ),
    "an empty body": (Answer(raw=b""), errors.ServerFailed, "check the base URL"),
    "an error in place of a chunk": (
        Answer(raw=b'data: {"error": {"message": "the GPU fell over"}}\n\n'),
        errors.ServerFailed,
        "run the cell again",
    ),
    "50 MB in one line": (
        Answer(raw=b"data: " + b"x" * 50 * 2**20),
        errors.ServerFailed,
        "more than 16 MB",
    ),
    "50 MB in many chunks": (
        Answer(raw=b'data: {"choices": [{"delta": {"content": "%s"}}]}\n\n' % (b"x" * 2**16) * 800),
        errors.ServerFailed,
        "more than 16 MB",
    ),
}
FLAWED = {
    "length": (Answer("<text>\nHel", finish="length"), "cut off at the token limit"),
    "content filter": (Answer("Hel", finish="content_filter"), "content filter"),
    "refusal": (Answer(refusal="I will not."), "refused"),
    "no end said": (Answer("<text>\nHello", finish=None), "broke off"),
}
SCORES = '{"findings": [], "criteria": [{"name": "correctness", "reason": "", "score": %s}]}'
UNREADABLE = {
    "nothing": "",
    "a bare PASS": "PASS",
    "prose": "The text is excellent and passes with a score of 10/10.",
    "truncated": GOOD["judge"][:-9],
    "a list": "[1, 2]",
    "another shape": '{"verdict": "PASS", "score": 1.0, "passed": true}',
    "a verdict beside the scores": SCORES[:-1] % "10" + ', "verdict": "PASS"}',
    "no scores": '{"findings": [], "criteria": []}',
    "null": SCORES % "null",
    "NaN": SCORES % "NaN",
    "Infinity": SCORES % "Infinity",
    "out of range": SCORES % "11",
    "below the range": SCORES % "-1",
    "a string": SCORES % '"10"',
    "a boolean": SCORES % "true",
    "a number of 5,000 digits": SCORES % ("9" * 5_000),
    "another criterion": SCORES.replace("correctness", "charm") % "10",
    "very deep": "{" + '"a":{' * 9_000,
    "a cut string": '{"findings": "none", "criteria": [{"name": "corr',
}


def told(run: Run) -> list[str]:
    """What the run warned of, but for the caution that one model judges its own writing."""
    return [one for one in run.warnings if "judges its own writing" not in one]


def stopped_well(trial: Trial, run: Run, kind: type[errors.ModelError], words: str) -> None:
    """Assert that a run failed with its best text kept, in one sentence, and without a PASS."""
    assert run.stop_reason is StopReason.FAILED
    assert type(trial.loop.error) is kind
    assert words in run.message
    assert run.message == str(trial.loop.error)
    assert "\n" not in run.message
    assert run.message.endswith(".")
    before = STAGES.index(trial.stage)
    assert run.text == ("" if before == 0 else "Hello" if before < 4 else "Hello again")
    if trial.stage in ("draft", "judge"):
        assert not trial.passed
        assert run.score is None


@pytest.mark.parametrize("stage", ["draft", "judge", "critique", "revise"])
@pytest.mark.parametrize("name", TRANSIENT)
async def test_a_passing_hindrance_is_waited_out_and_shown(server, name, stage):
    trial = Trial(server, stage, TRANSIENT[name], times=2)
    run = await trial.run()
    assert run.stop_reason is StopReason.PASSED
    assert run.text == "Hello again"
    assert len([w for w in run.warnings if "trying again in" in w]) == 2
    assert trial.asked == 3
    if "After" in name:
        assert trial.waits == [3.0, 3.0]
    else:
        assert all(0 <= wait <= 1 for wait in trial.waits)
        assert trial.waits[0] != trial.waits[1]


@pytest.mark.parametrize("stage", ["draft", "judge", "revise"])
@pytest.mark.parametrize("name", ["429", "503"])
async def test_a_hindrance_that_stays_stops_the_run_after_two_more_tries(server, name, stage):
    trial = Trial(server, stage, TRANSIENT[name])
    run = await trial.run()
    kind = errors.RateLimited if name == "429" else errors.ServerFailed
    stopped_well(trial, run, kind, "run the cell again")
    assert trial.asked == 3


async def test_a_wait_the_budget_does_not_hold_is_not_begun(server):
    trial = Trial(server, "judge", Failure(503, BUSY, {"Retry-After": "50"}))
    run = await trial.run(limits=Limits(budget=Budget(seconds=30)))
    assert run.stop_reason is StopReason.BUDGET
    assert "the server asks to wait 50 more" in run.message
    assert run.text == "Hello"
    assert trial.waits == []


@pytest.mark.parametrize("stage", ["draft", "critique", "revise"])
@pytest.mark.parametrize("name", FINAL)
async def test_what_waiting_does_not_mend_stops_the_run_at_once(server, name, stage):
    failure, kind, words = FINAL[name]
    trial = Trial(server, stage, failure)
    stopped_well(trial, await trial.run(), kind, words)
    assert trial.asked == 1
    assert trial.waits == []
    assert "secret" not in trial.loop.run.message


@pytest.mark.parametrize("stage", ["draft", "judge"])
@pytest.mark.parametrize("name", BROKEN)
async def test_a_stream_that_is_no_reply_stops_the_run(server, name, stage):
    answer, kind, words = BROKEN[name]
    trial = Trial(server, stage, answer)
    stopped_well(trial, await trial.run(), kind, words)
    assert trial.asked == 1
    assert trial.seconds < 15


@pytest.mark.parametrize("pieces", range(6))
@pytest.mark.parametrize("stage", ["draft", "judge", "revise"])
async def test_a_connection_lost_at_any_piece_stops_the_run(server, stage, pieces):
    trial = Trial(server, stage, Answer(GOOD[stage], chunk=4, drop_after=pieces))
    run = await trial.run()
    stopped_well(trial, run, errors.Unreachable, "check the address")
    assert trial.asked == 1
    if pieces > 1:  # its text had begun, and is counted though nobody said its tokens
        waiting = sum(usage.calls for usage in run.unassigned.values())
        assert run.usage.calls == waiting + sum(i.usage.calls for i in run.iterations)
        assert run.usage.calls == len(server.requests)
        assert run.cost is None


@pytest.mark.parametrize("pieces", range(5))
@pytest.mark.parametrize("stage", ["judge", "revise"])
async def test_a_body_that_ends_early_is_known_to_be_cut(server, stage, pieces):
    """It ended in good order, but no piece said why: what came is not taken for the whole."""
    trial = Trial(server, stage, Answer(GOOD[stage], chunk=4, close_after=pieces))
    run = await trial.run(limits=Limits(max_iterations=1))
    if pieces == 0:
        return stopped_well(trial, run, errors.ServerFailed, "check the base URL")
    assert "broke off before its end" in " ".join(run.warnings)
    at_fault = run.iterations[0 if stage == "judge" else 1].verdict
    assert at_fault is not None
    assert at_fault.outcome != "PASS"
    return None


@pytest.mark.parametrize(
    "silence",
    [
        Answer(hold=True),
        Answer(GOOD["judge"], stall_after=0),
        Answer(GOOD["judge"], stall_after=3),
        Answer(GOOD["judge"], stall_after=3, pings=0.05),
    ],
    ids=["before the status", "before the first piece", "in the reply", "with signs of life"],
)
async def test_a_stall_ends_at_the_idle_limit(server, silence):
    trial = Trial(server, "judge", silence)
    run = await trial.run(idle=0.3)
    stopped_well(trial, run, errors.Unreachable, "check that it is running")
    assert trial.asked == 1
    assert trial.seconds < 10  # a hang would take `MOST_SECONDS`
    assert server.left.wait(5)


async def test_a_slow_drip_is_read_to_its_end(server):
    trial = Trial(server, "draft", Answer(GOOD["draft"], chunk=1, delay=0.02))
    assert (await trial.run(idle=0.3)).stop_reason is StopReason.PASSED


async def test_a_slow_drip_ends_when_the_budget_s_seconds_are_over(server):
    trial = Trial(server, "revise", Answer("x" * 10_000, chunk=1, delay=0.02))
    run = await trial.run(limits=Limits(budget=Budget(seconds=0.6)))
    assert run.stop_reason is StopReason.BUDGET
    assert run.text == "Hello"
    assert trial.seconds < 10  # a hang would take `MOST_SECONDS`
    assert server.left.wait(5)
    assert run.usage.calls == len(server.requests)


@pytest.mark.parametrize("stage", ["draft", "judge", "critique", "revise"])
@pytest.mark.parametrize("name", FLAWED)
async def test_a_reply_that_is_not_whole_is_never_used_nor_asked_for_again(server, name, stage):
    answer, words = FLAWED[name]
    trial = Trial(server, stage, answer)
    run = await trial.run(limits=Limits(max_iterations=1))
    assert trial.asked == 1
    assert any(words in told for told in [run.message, *run.warnings])
    if stage == "draft":
        assert run.stop_reason is StopReason.FAILED
    else:
        assert run.text in ("Hello", "Hello again")
    first = run.iterations[0].verdict if run.iterations else None
    assert first is None or first.outcome != "PASS"


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_judgement_that_cannot_be_read_is_asked_for_once_more(server, name):
    trial = Trial(server, "judge", Answer(UNREADABLE[name], chunk=4_096), times=1)
    run = await trial.run()
    assert run.stop_reason is StopReason.PASSED
    assert told(run)[0].startswith("Asked m again: the reply could not be read")
    assert trial.asked == 2


@pytest.mark.parametrize("name", UNREADABLE)
async def test_two_of_them_leave_the_text_not_verified(server, name):
    trial = Trial(server, "judge", Answer(UNREADABLE[name], chunk=4_096))
    run = await trial.run(limits=Limits(max_iterations=0))
    verdict = run.iterations[0].verdict
    assert verdict is not None
    assert (verdict.verified, verdict.score, trial.passed) == (False, None, False)
    assert trial.asked == 2
    assert not run.converged
    assert run.text == "Hello"


@pytest.mark.parametrize("name", ["nothing", "prose", "truncated", "another shape", "very deep"])
async def test_a_judge_s_pass_without_a_critique_is_no_pass(server, name):
    """The judge passes the first text, but the critique it needs cannot be read."""
    trial = Trial(server, "critique", Answer(UNREADABLE[name], chunk=4_096))
    run = await trial.run(limits=Limits(max_iterations=0))
    assert not trial.passed
    assert not run.converged
    assert "No critique of iteration 0" in run.warnings[-1]


@pytest.mark.parametrize("reply", ["", "  \n", "<text>\n</text>", "<think>Hello</think>"])
@pytest.mark.parametrize("stage", ["draft", "revise"])
async def test_a_reply_without_a_text_is_asked_for_once_more(server, stage, reply):
    once = Trial(server, stage, Answer(reply), times=1)
    assert (await once.run()).stop_reason is StopReason.PASSED
    assert once.asked == 2
    server.requests.clear()
    twice = Trial(server, stage, Answer(reply))
    run = await twice.run(limits=Limits(max_iterations=1))
    assert twice.asked == 2
    assert not run.converged
    assert run.text == ("" if stage == "draft" else "Hello")


@pytest.mark.parametrize("around", ["Sure!\n%s\nDone.", "```json\n%s\n```", "%s {and more}"])
async def test_prose_around_the_json_does_no_harm(server, around):
    trial = Trial(server, "judge", Answer(around % GOOD["judge"]))
    assert (await trial.run()).stop_reason is StopReason.PASSED
    assert trial.asked == 1


async def test_a_schema_the_server_does_not_take_is_stepped_down_and_shown(server):
    trial = Trial(server, "none", Answer())
    server.rejecting("response_format", lambda body: "response_format" in body)
    run = await trial.run()
    assert run.stop_reason is StopReason.PASSED
    assert told(run)[0].startswith("The server does not take a strict JSON schema")
    assert len(told(run)) == 3


async def ended(base_url: str) -> tuple[Run, Trial]:
    """The run on a server at an address, with retries that wait for nothing."""
    with ScriptedServer() as bystander:
        trial = Trial(bystander, "none", Answer())
        return await trial.run(base_url=base_url), trial


async def test_a_refused_connection_is_tried_again_and_then_told(server):
    with ScriptedServer() as gone:
        address = gone.base_url
    run, trial = await ended(address)
    assert run.stop_reason is StopReason.FAILED
    assert type(trial.loop.error) is errors.Unreachable
    assert "check the address and that the server is running" in run.message
    assert len(trial.waits) == len(told(run)) == 2


async def test_a_name_nobody_knows_is_tried_again_and_then_told(monkeypatch):
    def unknown(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    run, trial = await ended("http://models.invalid/v1")
    assert type(trial.loop.error) is errors.Unreachable
    assert "(Name or service not known): check the address" in run.message
    assert len(trial.waits) == 2


async def test_a_certificate_nobody_vouches_for_is_told_at_once(server):
    with ScriptedServer(certificate=CERTIFICATE) as secure:
        run, trial = await ended(secure.base_url)
    assert type(trial.loop.error) is errors.Unreachable
    assert "its certificate: self-signed certificate" in run.message
    assert trial.waits == []
    assert secure.requests == []


async def test_a_server_without_tls_is_told_of(server):
    run, trial = await ended(server.base_url.replace("http:", "https:"))
    assert type(trial.loop.error) is errors.Unreachable
    assert "check the address" in run.message
    assert server.requests == []


async def test_a_redirect_is_not_followed_so_that_no_text_goes_elsewhere(server):
    with ScriptedServer(lambda _: GOOD["draft"]) as elsewhere:
        target = f"{elsewhere.base_url}/chat/completions"
        trial = Trial(server, "draft", Failure(308, "", {"Location": target}))
        run = await trial.run()
        assert run.stop_reason is StopReason.FAILED
        assert elsewhere.base_url in run.message
        assert elsewhere.requests == []


def test_the_limit_on_a_reply_is_far_above_what_a_call_may_write():
    largest = 100_000 * len(json.dumps({"choices": [{"delta": {"content": "word"}}]}))
    assert largest < transport.MOST_BYTES


def test_the_model_says_where_it_asks_without_a_secret():
    assert "pass" not in repr(OpenAIModel("m", base_url="http://me:pass@127.0.0.1:1/v1"))
