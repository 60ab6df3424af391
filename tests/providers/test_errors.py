"""What becomes of each failure: as an error of ours, and in a whole run on a real socket.

In a run each failure has one outcome: the request is repeated after a pause, the server is asked
for less, the model is asked once more, or the run stops with its best text and one sentence. A run
never hangs, and a failure never makes a PASS.
"""

import inspect
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import openai
import openai.lib.azure
import pytest
from faulty import GOOD, STAGES, Trial
from openai_server import Answer, Failure, ScriptedServer

from ipyrefine import errors
from ipyrefine.core.model import Budget, Limits, Outcome, StopReason
from ipyrefine.core.run import Run
from ipyrefine.providers.faults import (
    MAX_REPLY_BYTES,
    Refusal,
    model_error,
    refusal_error,
)
from ipyrefine.providers.openai import OpenAIModel

KEY = "sk-very-secret"
CERTIFICATE = Path(__file__).parents[1] / "support" / "self_signed.pem"
BUSY = {"error": {"message": "later"}}
TRANSIENT = {
    "408": Failure(408, BUSY),
    "409": Failure(409, BUSY),
    "429": Failure(429, BUSY),
    "500": Failure(500, BUSY),
    "502": Failure(502, "<html>Bad gateway</html>"),
    "503": Failure(503, BUSY),
    "529": Failure(529, BUSY),
}
FINAL: dict[str, tuple[Failure, type[errors.ModelError], str]] = {
    "307": (
        Failure(307, "", {"Location": "http://127.0.0.1:9/v2?secret=1"}),
        errors.RequestRejected,
        "Give that one as the base URL",
    ),
    "400": (Failure(400, BUSY), errors.RequestRejected, "choose another model"),
    "401": (Failure(401, BUSY), errors.AccessDenied, "Set OPENAI_API_KEY"),
    "402": (Failure(402, BUSY), errors.RateLimited, "Top it up"),
    "403": (Failure(403, BUSY), errors.AccessDenied, "Check what the key may do"),
    "404": (Failure(404, BUSY), errors.ModelNotFound, "Check the model's name"),
    "413": (Failure(413, BUSY), errors.RequestRejected, "choose another model"),
    "429 with an hour to wait": (
        Failure(429, BUSY, {"Retry-After": "3600"}),
        errors.RateLimited,
        "Wait a little",
    ),
    "429 without credit": (
        Failure(429, {"error": {"code": "insufficient_quota", "message": "over"}}),
        errors.RateLimited,
        "Top it up",
    ),
}
BROKEN: dict[str, tuple[Answer, type[errors.ModelError], str]] = {
    "malformed SSE": (
        Answer(raw=b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\ndata: {"cho\n\n'),
        errors.ServerFailed,
        "Check the base URL",
    ),
    "no SSE at all": (Answer(raw=b"\x00\x01\x02" * 99), errors.ServerFailed, "Check the base URL"),
    "invalid UTF-8": (Answer(raw=b"data: {}\xff\xfe\n\n"), errors.ServerFailed, "Check the base"),
    "a page instead": (
        Answer(raw=b"<html>Welcome</html>", content_type="text/html"),
        errors.ServerFailed,
        "Check the base URL",
    ),
    "an empty body": (Answer(raw=b""), errors.ServerFailed, "Check the base URL"),
    "an error in place of a chunk": (
        Answer(raw=b'data: {"error": {"message": "the GPU fell over"}}\n\n'),
        errors.ServerFailed,
        "Run the cell again",
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
UNREADABLE = {
    "nothing": "",
    "white space": " \n\t",
    "prose": "The text is excellent and passes with a score of 10/10.",
    "truncated": GOOD["judge"][:-4],
    "numbers": "1 1 1 1 1 1",
    "a number of 5,000 digits": "9" * 5_000,
    "a list": "[1, 2]",
    "another shape": '{"passed": true}',
    "very deep": "{" + '"a":{' * 9_000,
    "very many": "yes " * 4_000,
}


def warnings_of(run: Run) -> list[str]:
    """Return the run's warnings without the caution that the writer is also the judge."""
    return [one for one in run.warnings if "are the same model" not in one]


def assert_stopped(trial: Trial, run: Run, kind: type[errors.ModelError], words: str) -> None:
    """Assert that a run failed with its best text kept, in one sentence, and without a PASS."""
    assert run.stop_reason is StopReason.FAILED
    assert type(trial.loop.error) is kind
    assert words in run.message
    assert run.message == str(trial.loop.error)
    assert "\n" not in run.message
    assert run.message.endswith(".")
    before = STAGES.index(trial.stage)
    assert run.text == ("" if before == 0 else "Hello" if before < 4 else "Hello again")
    before_the_verdict = trial.stage in ("draft", "judge")
    assert not (before_the_verdict and trial.passed)
    assert run.score is None or not before_the_verdict


def assert_retried(trial: Trial, run: Run) -> None:
    """Assert that a run passed after two retries, which it warned of."""
    assert run.stop_reason is StopReason.PASSED
    assert run.text == "Hello again"
    assert len([w for w in run.warnings if "trying again in" in w]) == 2
    assert trial.asked == 3


# --- the table


def exported(*modules: ModuleType) -> Iterator[type[Exception]]:
    """Yield the exception classes that modules export."""
    for module in modules:
        for value in (getattr(module, name) for name in module.__all__):
            if isinstance(value, type) and issubclass(value, Exception):
                yield value


def with_subclasses(*bases: type[Exception]) -> Iterator[type[Exception]]:
    """Yield classes and everything below them."""
    for base in bases:
        yield base
        yield from with_subclasses(*base.__subclasses__())


VENDOR = sorted(
    set(with_subclasses(*exported(openai, httpx2)))
    - {openai.InvalidWebhookSignatureError},  # no request raises it
    key=lambda kind: f"{kind.__module__}.{kind.__name__}",
)


def make(kind: type[Exception]) -> Exception:
    """Return a vendor error, made from a value for each argument of its constructor."""
    status = getattr(kind, "status_code", 500)
    request = httpx2.Request("POST", "http://h/v1")
    values = {
        "message": "it went wrong",
        "request": request,
        "response": httpx2.Response(status, request=request),
        "body": {"message": f"it went wrong with {KEY}"},
        "completion": openai.types.chat.ChatCompletion.model_construct(usage=None),
        "unsent_messages": [],
        "symbol": "Engine",
    }
    taken = inspect.signature(kind.__init__).parameters
    return kind(**{name: value for name, value in values.items() if name in taken})


@pytest.mark.parametrize("kind", VENDOR, ids=lambda kind: kind.__name__)
def test_every_vendor_error_becomes_one_of_ours(kind):
    error = model_error(make(kind), server="http://h/v1", model="m", secret=KEY)
    assert isinstance(error, errors.ModelError)
    assert type(error) is not errors.ModelError
    assert str(error).endswith(".")
    assert re.search(r"\. [A-Z].*\.$", str(error)), "it says what to do"
    assert KEY not in str(error)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (openai.APITimeoutError, errors.Unreachable),
        (openai.APIConnectionError, errors.Unreachable),
        (openai.AuthenticationError, errors.AccessDenied),
        (openai.PermissionDeniedError, errors.AccessDenied),
        (openai.NotFoundError, errors.ModelNotFound),
        (openai.RateLimitError, errors.RateLimited),
        (openai.BadRequestError, errors.RequestRejected),
        (openai.ConflictError, errors.RequestRejected),
        (openai.UnprocessableEntityError, errors.RequestRejected),
        (openai.InternalServerError, errors.ServerFailed),
        (openai.APIResponseValidationError, errors.ServerFailed),
        (openai.APIError, errors.ServerFailed),
    ],
)
def test_the_errors_servers_cause_keep_their_meaning(kind, expected):
    assert type(model_error(make(kind), server="http://h/v1", model="m")) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (httpx2.ReadTimeout("slow"), errors.Unreachable),
        (httpx2.ConnectError("no"), errors.Unreachable),
        (httpx2.DecodingError("bad gzip"), errors.ServerFailed),
        (TimeoutError(), errors.Unreachable),
        (json.JSONDecodeError("no JSON", "", 0), errors.ServerFailed),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_is_raised_below_the_client_keeps_its_meaning(error, expected):
    assert type(model_error(error, server="http://h/v1", model="m")) is expected


async def test_a_base_url_that_only_the_client_rejects_is_an_error_of_ours(request_text):
    model = OpenAIModel("m", base_url="http://\u0131../v1", api_key=KEY)
    with pytest.raises(errors.Unreachable, match=r"is not a valid address .*\. Check"):
        await anext(model.stream(request_text))


@pytest.mark.parametrize("status", [*range(300, 600), 600, 999])
def test_every_status_becomes_an_error_with_advice(status):
    refusal = Refusal(status, "", "", "no", {})
    error = refusal_error(refusal, server="http://h/v1", model="m", secret="")
    assert type(error) is not errors.ModelError
    assert re.search(r"\. [A-Z].*\.$", str(error)), "it says what to do"


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("https://me:pass@new/v1?key=1", "redirects to another address (to https://new/v1)."),
        ("/v2", "redirects to another address."),
        ("http://new:port/v1", "redirects to another address."),
    ],
)
def test_a_redirect_names_its_target_without_secrets(location, message):
    refusal = Refusal(307, "", "", "", {"location": location})
    error = refusal_error(refusal, server="http://h/v1", model="m", secret="")
    assert message in str(error)


# --- a whole run


@pytest.mark.parametrize("stage", ["draft", "judge", "critique", "revise"])
@pytest.mark.parametrize("name", TRANSIENT)
async def test_a_transient_failure_is_retried_and_shown(server, name, stage):
    trial = Trial(server, stage, TRANSIENT[name], times=2)
    assert_retried(trial, await trial.run())
    assert all(0 <= wait <= 1 for wait in trial.waits)
    assert trial.waits[0] != trial.waits[1]


@pytest.mark.parametrize("stage", ["draft", "judge", "critique", "revise"])
async def test_a_retry_waits_as_long_as_the_server_asks(server, stage):
    trial = Trial(server, stage, Failure(429, BUSY, {"Retry-After": "3"}), times=2)
    assert_retried(trial, await trial.run())
    assert trial.waits == [3.0, 3.0]


@pytest.mark.parametrize("stage", ["draft", "judge", "revise"])
@pytest.mark.parametrize("name", ["429", "503"])
async def test_a_failure_that_stays_stops_the_run_after_two_retries(server, name, stage):
    trial = Trial(server, stage, TRANSIENT[name])
    run = await trial.run()
    kind = errors.RateLimited if name == "429" else errors.ServerFailed
    assert_stopped(trial, run, kind, "the cell again")
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
async def test_a_failure_that_waiting_does_not_mend_stops_the_run_at_once(server, name, stage):
    failure, kind, words = FINAL[name]
    trial = Trial(server, stage, failure)
    assert_stopped(trial, await trial.run(), kind, words)
    assert trial.asked == 1
    assert trial.waits == []
    assert "secret" not in trial.loop.state.message


@pytest.mark.parametrize("stage", ["draft", "judge"])
@pytest.mark.parametrize("name", BROKEN)
async def test_a_stream_that_is_no_reply_stops_the_run(server, name, stage):
    answer, kind, words = BROKEN[name]
    trial = Trial(server, stage, answer)
    assert_stopped(trial, await trial.run(), kind, words)
    assert trial.asked == 1
    assert trial.seconds < 15


@pytest.mark.parametrize("pieces", range(6))
@pytest.mark.parametrize("stage", ["draft", "judge", "revise"])
async def test_a_connection_lost_at_any_piece_stops_the_run(server, stage, pieces):
    trial = Trial(server, stage, Answer(GOOD[stage], chunk=4, drop_after=pieces))
    run = await trial.run()
    assert_stopped(trial, run, errors.Unreachable, "Check the address")
    assert trial.asked == 1


@pytest.mark.parametrize("pieces", range(2, 6))
@pytest.mark.parametrize("stage", ["draft", "judge", "revise"])
async def test_a_lost_reply_that_had_begun_is_counted(server, stage, pieces):
    """It counts as a call, though the server never counted its tokens."""
    run = await Trial(server, stage, Answer(GOOD[stage], chunk=4, drop_after=pieces)).run()
    unassigned = sum(usage.calls for usage in run.pending_usage.values())
    assert run.usage.calls == unassigned + sum(i.usage.calls for i in run.iterations)
    assert run.usage.calls == len(server.requests)
    assert run.cost is None


@pytest.mark.parametrize("stage", ["judge", "revise"])
async def test_a_body_that_ends_at_once_stops_the_run(server, stage):
    trial = Trial(server, stage, Answer(GOOD[stage], chunk=4, close_after=0))
    run = await trial.run(limits=Limits(max_revisions=1))
    assert_stopped(trial, run, errors.ServerFailed, "Check the base URL")


@pytest.mark.parametrize("pieces", range(1, 5))
@pytest.mark.parametrize("stage", ["judge", "revise"])
async def test_a_body_that_ends_early_is_known_to_be_incomplete(server, stage, pieces):
    """The connection closed in good order, but no chunk gave a finish reason."""
    trial = Trial(server, stage, Answer(GOOD[stage], chunk=4, close_after=pieces))
    run = await trial.run(limits=Limits(max_revisions=1))
    assert "broke off before its end" in " ".join(run.warnings)
    verdict = run.iterations[0 if stage == "judge" else 1].verdict
    assert verdict is not None
    assert verdict.outcome != "PASS"


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
    assert_stopped(trial, run, errors.Unreachable, "Check that it is running")
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
async def test_an_incomplete_reply_is_never_used_nor_requested_again(server, name, stage):
    answer, words = FLAWED[name]
    trial = Trial(server, stage, answer)
    run = await trial.run(limits=Limits(max_revisions=1))
    assert trial.asked == 1
    assert any(words in message for message in [run.message, *run.warnings])
    assert (run.text == "") == (stage == "draft")
    assert run.text in ("", "Hello", "Hello again")
    assert stage != "draft" or run.stop_reason is StopReason.FAILED
    first = run.iterations[0].verdict if run.iterations else None
    assert first is None or first.outcome != "PASS"


@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_unreadable_judgement_is_requested_once_more(server, name):
    trial = Trial(server, "judge", Answer(UNREADABLE[name], chunk=4_096), times=1)
    run = await trial.run()
    assert run.stop_reason is StopReason.PASSED
    assert warnings_of(run)[0].startswith("Asked m again: the reply could not be read")
    assert trial.asked == 2


@pytest.mark.parametrize("name", UNREADABLE)
async def test_two_unreadable_judgements_leave_the_text_unverified(server, name):
    trial = Trial(server, "judge", Answer(UNREADABLE[name], chunk=4_096))
    run = await trial.run(limits=Limits(max_revisions=0))
    verdict = run.iterations[0].verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.basis, verdict.score) == (Outcome.NOT_JUDGED, "none", None)
    assert run.stop_reason is StopReason.UNJUDGED
    assert not trial.passed
    assert trial.asked == 2
    assert not run.converged
    assert run.text == "Hello"


@pytest.mark.parametrize("reply", ["", "  \n", "<text>\n</text>", "<think>Hello</think>"])
@pytest.mark.parametrize("stage", ["draft", "revise"])
async def test_a_reply_without_a_text_is_requested_once_more(server, stage, reply):
    once = Trial(server, stage, Answer(reply), times=1)
    assert (await once.run()).stop_reason is StopReason.PASSED
    assert once.asked == 2
    server.requests.clear()
    twice = Trial(server, stage, Answer(reply))
    run = await twice.run(limits=Limits(max_revisions=1))
    assert twice.asked == 2
    assert not run.converged
    assert run.text == ("" if stage == "draft" else "Hello")


@pytest.mark.parametrize("around", ["Sure!\n%s\nDone.", "```json\n%s\n```", "%s {and more}"])
async def test_prose_around_the_json_does_no_harm(server, around):
    trial = Trial(server, "critique", Answer(around % GOOD["critique"]))
    assert (await trial.run()).stop_reason is StopReason.PASSED
    assert trial.asked == 1


async def run_on(base_url: str) -> tuple[Run, Trial]:
    """Return the run on the server at an address, with retries that do not wait."""
    with ScriptedServer() as bystander:
        trial = Trial(bystander, "none", Answer())
        return await trial.run(base_url=base_url), trial


async def test_a_refused_connection_is_retried_and_then_reported(server):
    with ScriptedServer() as gone:
        address = gone.base_url
    run, trial = await run_on(address)
    assert run.stop_reason is StopReason.FAILED
    assert type(trial.loop.error) is errors.Unreachable
    assert "(connection refused). Check the address, and that the server is running." in run.message
    assert len(trial.waits) == 2
    assert warnings_of(run) == []  # the error says it once


async def test_an_unknown_host_is_retried_and_then_reported(monkeypatch):
    def unknown(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    run, trial = await run_on("http://models.invalid/v1")
    assert type(trial.loop.error) is errors.Unreachable
    assert "(Name or service not known). Check the address" in run.message
    assert len(trial.waits) == 2


async def test_a_self_signed_certificate_is_reported_at_once(server):
    with ScriptedServer(certificate=CERTIFICATE) as secure:
        run, trial = await run_on(secure.base_url)
    assert type(trial.loop.error) is errors.Unreachable
    assert "its certificate: self-signed certificate" in run.message
    assert trial.waits == []
    assert secure.requests == []


async def test_a_server_without_tls_is_reported(server):
    run, trial = await run_on(server.base_url.replace("http:", "https:"))
    assert type(trial.loop.error) is errors.Unreachable
    assert "Check the address" in run.message
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
    assert largest < MAX_REPLY_BYTES
