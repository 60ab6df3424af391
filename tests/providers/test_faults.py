"""What becomes of each failure: as an error of ours, and in a whole run on a real socket.

In a run each failure has one outcome: the request is repeated after a pause, the server is asked
for less, the model is asked once more, or the run stops with its best text and one sentence. A run
never hangs, and a failure never makes a PASS.
"""

import inspect
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
from ipyrefine.providers.faults import NotCompletions, Refusal, Refused, model_error
from ipyrefine.providers.openai import OpenAIModel

KEY = "sk-very-secret"
CERTIFICATE = Path(__file__).parents[1] / "support" / "self_signed.pem"
BUSY = {"error": {"message": "later"}}
FINAL: dict[str, tuple[Failure, type[errors.ModelError], str]] = {
    "400": (Failure(400, BUSY), errors.RequestRejected, "choose another model"),
    "402": (Failure(402, BUSY), errors.RateLimited, "Top it up"),
    "403": (Failure(403, BUSY), errors.AccessDenied, "Check what the key may do"),
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
    "500 that is final": (
        Failure(500, BUSY, {"x-should-retry": "false"}),
        errors.ServerFailed,
        "HTTP 500",
    ),
}
BROKEN: dict[str, tuple[Answer, type[errors.ModelError], str]] = {
    "a reply without end": (
        Answer(
            raw=b'{"choices": ["', beat=b"x" * 2**20, beat_seconds=0,
            content_type="application/json",
        ),
        errors.ServerFailed,
        "more than 16 MB",
    ),
    "a lost connection": (
        Answer(GOOD["draft"], chunk=4, drop_after=3),
        errors.Unreachable,
        "Check the address",
    ),
}  # fmt: skip
FLAWED = {
    "length": (Answer("<text>\nHel", finish="length"), "cut off at the token limit"),
    "content filter": (Answer("Hel", finish="content_filter"), "content filter"),
    "refusal": (Answer(refusal="I will not."), "refused"),
    "no finish reason": (Answer("<text>\nHello", finish=None), "broke off"),
}
UNREADABLE = {
    "nothing": "",
    "prose": "The text is excellent, it passes.",
    "very deep": "{" + '"a":{' * 9_000,
}


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
    """Yield the exception classes that modules export, and everything below them."""
    for module in modules:
        for value in (getattr(module, name) for name in module.__all__):
            if isinstance(value, type) and issubclass(value, Exception):
                yield from with_subclasses(value)


def with_subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for below in kind.__subclasses__():
        yield from with_subclasses(below)


VENDOR = sorted(
    set(exported(openai, httpx2)) - {openai.InvalidWebhookSignatureError},  # no request raises it
    key=lambda kind: f"{kind.__module__}.{kind.__name__}",
)


def make(kind: type[Exception]) -> Exception:
    """Return a vendor error, made from a value for each argument of its constructor."""
    request = httpx2.Request("POST", "http://h/v1")
    values = {
        "message": "it went wrong",
        "request": request,
        "response": httpx2.Response(getattr(kind, "status_code", 500), request=request),
        "body": {"message": f"it went wrong with {KEY}"},
        "completion": openai.types.chat.ChatCompletion.model_construct(usage=None),
        "unsent_messages": [],
        "symbol": "Engine",
    }
    taken = inspect.signature(kind.__init__).parameters
    return kind(**{name: value for name, value in values.items() if name in taken})


@pytest.mark.parametrize("kind", VENDOR, ids=lambda kind: kind.__name__)
def test_every_vendor_error_becomes_one_of_ours(kind):
    error = model_error(make(kind), server="http://h/v1", model="m", secrets=(KEY,))
    assert isinstance(error, errors.ModelError)
    assert type(error) is not errors.ModelError
    assert re.search(r"\. [A-Z].*\.$", str(error)), "it says what to do"
    assert KEY not in str(error)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (make(openai.APITimeoutError), errors.Unreachable),
        (make(openai.APIConnectionError), errors.Unreachable),
        (make(openai.APIError), errors.ServerFailed),
        (httpx2.ReadTimeout("slow"), errors.Unreachable),
        (httpx2.ConnectError("no"), errors.Unreachable),
        (httpx2.DecodingError("bad gzip"), errors.ServerFailed),
        (TimeoutError(), errors.Unreachable),
        (NotCompletions(), errors.ServerFailed),
        (RecursionError(), errors.ServerFailed),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_the_client_raises_keeps_its_meaning(error, expected):
    assert type(model_error(error, server="http://h/v1", model="m")) is expected


async def test_a_base_url_that_only_the_client_rejects_is_an_error_of_ours(request_text):
    model = OpenAIModel("m", base_url="http://\u0131../v1", api_key=KEY)
    with pytest.raises(errors.Unreachable, match=r"is not a valid address .*\. Check"):
        await anext(model.stream(request_text))


def test_every_status_becomes_an_error_with_advice():
    for status in (*range(300, 600), 999):
        refused = Refused(Refusal(status, "no", "no", {}))
        error = model_error(refused, server="http://h/v1", model="m")
        assert type(error) is not errors.ModelError, status
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
    refused = Refused(Refusal(307, "", "", {"location": location}))
    assert message in str(model_error(refused, server="http://h/v1", model="m"))


# --- a whole run


@pytest.mark.parametrize(
    ("stage", "failure"),
    [
        *(("draft", Failure(status, BUSY)) for status in (408, 409, 429, 500, 503, 529)),
        *((stage, Failure(502, "<html>Bad</html>")) for stage in ("judge", "critique", "revise")),
    ],
)
async def test_a_transient_failure_is_retried_and_shown(server, stage, failure):
    trial = Trial(server, stage, failure, times=2)
    assert_retried(trial, await trial.run())
    assert all(0 <= wait <= 1 for wait in trial.waits)
    assert trial.waits[0] != trial.waits[1]


async def test_a_wait_the_budget_does_not_hold_is_not_begun(server):
    trial = Trial(server, "judge", Failure(503, BUSY, {"Retry-After": "50"}))
    run = await trial.run(limits=Limits(budget=Budget(seconds=30)))
    assert run.stop_reason is StopReason.BUDGET
    assert "the server asks to wait 50 more" in run.message
    assert run.text == "Hello"
    assert trial.waits == []


@pytest.mark.parametrize("name", FINAL)
async def test_a_failure_that_waiting_does_not_mend_stops_the_run_at_once(server, name):
    failure, kind, words = FINAL[name]
    trial = Trial(server, "critique", failure)
    assert_stopped(trial, await trial.run(), kind, words)
    assert (trial.asked, trial.waits) == (1, [])
    assert "secret" not in trial.loop.state.message


@pytest.mark.parametrize("name", BROKEN)
async def test_a_stream_that_is_no_reply_stops_the_run(server, name):
    answer, kind, words = BROKEN[name]
    trial = Trial(server, "judge", answer)
    assert_stopped(trial, await trial.run(), kind, words)
    assert trial.asked == 1
    assert trial.seconds < 15


@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_a_connection_lost_at_any_piece_stops_the_run_and_is_counted(server, pieces):
    """It counts as a call, though the server never counted its tokens."""
    trial = Trial(server, "revise", Answer(GOOD["revise"], chunk=4, drop_after=pieces))
    run = await trial.run()
    assert_stopped(trial, run, errors.Unreachable, "Check the address")
    assert trial.asked == 1
    if pieces > 1:  # then it had begun
        unassigned = sum(usage.calls for usage in run.pending_usage.values())
        assert run.usage.calls == unassigned + sum(i.usage.calls for i in run.iterations)
        assert run.usage.calls == len(server.requests)
        assert run.cost is None


@pytest.mark.parametrize("pieces", [1, 4])
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
    "silence", [Answer(hold=True), Answer(GOOD["judge"], stall_after=3)], ids=["held", "begun"]
)
async def test_a_stall_ends_at_the_idle_limit(server, silence):
    trial = Trial(server, "judge", silence)
    run = await trial.run(idle=0.3)
    assert_stopped(trial, run, errors.Unreachable, "Check that it is running")
    assert trial.asked == 1
    assert trial.seconds < 10  # a hang would take `MOST_SECONDS`
    assert server.left.wait(5)


async def test_a_slow_drip_ends_with_the_budget_s_seconds(server):
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
async def test_an_unreadable_judgement_is_requested_once_more_and_then_its_words_are_feedback(
    server, name
):
    once = Trial(server, "judge", Answer(UNREADABLE[name], chunk=4_096), times=1)
    run = await once.run()
    assert run.stop_reason is StopReason.PASSED
    assert run.warnings[0].startswith("Asked m again: the reply could not be read")
    assert once.asked == 2
    server.requests.clear()
    twice = Trial(server, "judge", Answer(UNREADABLE[name], chunk=4_096))
    run = await twice.run(limits=Limits(max_revisions=0))
    verdict = run.iterations[0].verdict
    assert verdict is not None
    words = UNREADABLE[name].strip()
    problems = [finding.problem for finding in run.iterations[0].actionable]
    assert (verdict.outcome, verdict.score) == (
        (Outcome.NEEDS_IMPROVEMENT, None) if words else (Outcome.NOT_JUDGED, None)
    )
    assert run.stop_reason is (StopReason.REVISIONS if words else StopReason.UNJUDGED)
    assert problems == [words] * bool(words)
    assert not twice.passed
    assert not run.converged
    assert (twice.asked, run.text) == (2, "Hello")


@pytest.mark.parametrize("reply", ["", "<text>\n</text>", "<think>Hello</think>"])
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


# --- connections


async def run_on(base_url: str) -> tuple[Run, Trial]:
    """Return the run on the server at an address, with retries that do not wait."""
    with ScriptedServer() as bystander:
        trial = Trial(bystander, "none", Answer())
        run = await trial.run(base_url=base_url)
    assert run.stop_reason is StopReason.FAILED
    assert type(trial.loop.error) is errors.Unreachable
    return run, trial


async def test_a_refused_connection_is_retried_and_then_reported(server):
    with ScriptedServer() as gone:
        address = gone.base_url
    run, trial = await run_on(address)
    assert "(connection refused). Check the address, and that the server is running." in run.message
    assert len(trial.waits) == 2
    assert run.warnings == ()  # the error says it once


async def test_an_unknown_host_is_retried_and_then_reported(monkeypatch):
    def unknown(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    run, trial = await run_on("http://models.invalid/v1")
    assert "(Name or service not known). Check the address" in run.message
    assert len(trial.waits) == 2


async def test_a_self_signed_certificate_is_reported_at_once(server):
    with ScriptedServer(certificate=CERTIFICATE) as secure:
        run, trial = await run_on(secure.base_url)
    assert "its certificate: self-signed certificate" in run.message
    assert trial.waits == []
    assert secure.requests == []


async def test_a_server_without_tls_is_reported(server):
    run, _ = await run_on(server.base_url.replace("http:", "https:"))
    assert "Check the address" in run.message
    assert server.requests == []
