"""What becomes of each failure: as an error of ours, and in a whole run on a real socket.

In a run each failure has one outcome: the request is repeated after a pause, the server is asked
for less, the model is asked once more, or the run stops with its best text and one sentence. A run
never hangs, and a failure never makes a PASS.
"""

import re
import socket
from pathlib import Path

import httpx2
import openai
import pytest
from faulty import GOOD, STAGES, Trial
from openai_server import Answer, Failure, ScriptedServer, reply_of

from ipyrefine import errors
from ipyrefine.core.model import Budget, Limits, Outcome, StopReason
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.providers.faults import NotCompletions, Refusal, Refused, model_error
from ipyrefine.providers.openai import OpenAIModel

KEY = "sk-very-secret"
CERTIFICATE = Path(__file__).parents[1] / "support" / "self_signed.pem"
REQUEST = httpx2.Request("POST", "http://h/v1")
BUSY = {"error": {"message": "later"}}
ENDLESS = Answer(
    raw=b'{"choices": ["', beat=b"x" * 2**20, beat_seconds=0, content_type="application/json"
)
FLAWED = {
    "length": (Answer("<text>\nHel", finish="length"), "cut off at the token limit"),
    "content filter": (Answer("Hel", finish="content_filter"), "content filter"),
    "refusal": (Answer(refusal="I will not."), "refused"),
    "no finish reason": (Answer("<text>\nHello", finish=None), "broke off before its end"),
    "early end": (Answer("<text>\nHello", chunk=4, close_after=3), "broke off before its end"),
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


# --- the table


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (openai.APITimeoutError(REQUEST), errors.Unreachable),
        (openai.APIConnectionError(request=REQUEST), errors.Unreachable),
        (openai.APIError(f"wrong {KEY}", REQUEST, body=None), errors.ServerFailed),
        (httpx2.ReadTimeout("slow"), errors.Unreachable),
        (httpx2.ConnectError("no"), errors.Unreachable),
        (httpx2.DecodingError("bad gzip"), errors.ServerFailed),
        (TimeoutError(), errors.Unreachable),
        (NotCompletions(), errors.ServerFailed),
        (RecursionError(), errors.ServerFailed),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_the_client_raises_keeps_its_meaning_without_the_key(error, expected):
    ours = model_error(error, server="http://h/v1", model="m", secrets=(KEY,))
    assert type(ours) is expected
    assert KEY not in str(ours)


async def test_a_base_url_that_only_the_client_rejects_is_an_error_of_ours(request_text):
    model = OpenAIModel("m", base_url="http://\u0131../v1", api_key=KEY)
    with pytest.raises(errors.Unreachable, match=r"is not a valid address .*\. Check"):
        await anext(model.stream(request_text))


def test_every_status_becomes_an_error_with_advice():
    for status in (*range(300, 600), 999):
        refused = Refused(Refusal(status, "no"))
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
    refused = Refused(Refusal(307, headers={"location": location}))
    assert message in str(model_error(refused, server="http://h/v1", model="m"))


# --- a whole run


async def test_a_transient_failure_is_retried_and_shown(server, subtests):
    bad = Failure(502, "<html>Bad</html>")
    for stage, failure in (
        *(("draft", Failure(status, BUSY)) for status in (408, 409, 429, 500, 529)),
        *((stage, bad) for stage in ("judge", "critique", "revise")),
    ):
        with subtests.test(stage, status=failure.status):
            server.requests.clear()
            trial = Trial(server, stage, failure, times=2)
            run = await trial.run()
            assert (run.stop_reason, run.text) == (StopReason.PASSED, "Hello again")
            assert trial.asked == 3
            assert len([w for w in run.warnings if "trying again in" in w]) == 2
            assert all(0 <= wait <= 1 for wait in trial.waits)
            assert trial.waits[0] != trial.waits[1]


async def test_a_wait_the_budget_does_not_hold_is_not_begun(server):
    trial = Trial(server, "judge", Failure(503, BUSY, {"Retry-After": "50"}))
    run = await trial.run(limits=Limits(budget=Budget(seconds=30)))
    assert run.stop_reason is StopReason.BUDGET
    assert "the server asks to wait 50 more" in run.message
    assert run.text == "Hello"
    assert trial.waits == []


@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_a_connection_lost_at_any_piece_is_asked_again_once_and_both_are_counted(
    server, pieces
):
    """It counts as a call, though the server never counted its tokens."""
    lost = Answer(GOOD["revise"], chunk=4, drop_after=pieces)
    once = Trial(server, "revise", lost, times=1)
    run = await once.run()
    assert (run.stop_reason, run.text, once.asked) == (StopReason.PASSED, "Hello again", 2)
    begun = pieces > 1
    assert ("Asked m again: the reply broke off before its end." in run.warnings) == begun
    assert run.usage.calls == len(server.requests) - (not begun)
    server.requests.clear()
    twice = Trial(server, "revise", lost)
    run = await twice.run()
    assert_stopped(twice, run, errors.Unreachable, "Check the address")
    assert twice.asked == (2 if begun else 3)  # as where there is no connection
    if begun:
        unassigned = sum(usage.calls for usage in run.pending_usage.values())
        assert run.usage.calls == unassigned + sum(i.usage.calls for i in run.iterations)
        assert run.usage.calls == len(server.requests)
        assert run.cost is None


@pytest.mark.parametrize(
    "silence", [Answer(hold=True), Answer(GOOD["judge"], stall_after=3)], ids=["held", "begun"]
)
async def test_a_stall_ends_at_the_idle_limit(server, silence):
    trial = Trial(server, "judge", silence)
    run = await trial.run(idle=0.3)
    assert_stopped(trial, run, errors.Unreachable, "Check that it runs")
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


@pytest.mark.parametrize("name", FLAWED)
async def test_an_incomplete_reply_is_never_used_and_one_that_broke_off_is_asked_for_once_more(
    server, name, subtests
):
    answer, words = FLAWED[name]
    broke = "broke off" in words
    for stage in ("draft", "judge", "critique", "revise"):
        with subtests.test(stage):
            server.requests.clear()
            trial = Trial(server, stage, answer)
            run = await trial.run(limits=Limits(max_revisions=1))
            assert trial.asked == 1 + broke
            assert any(words in message for message in [run.message, *run.warnings])
            assert (run.stop_reason is StopReason.FAILED) == (run.text == "") == (stage == "draft")
            assert run.text in ("", "Hello", "Hello again")
            verdicts = {i.number: i.verdict for i in run.iterations if i.verdict}
            passed = [n for n, one in verdicts.items() if one.outcome is Outcome.PASS]
            assert passed == [1] * (stage in ("judge", "critique")), "only a whole text passes"
            if broke:
                server.requests.clear()
                assert (await Trial(server, stage, answer, times=1).run()).text == "Hello again"


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Answer("<text>\n</text>"), "the reply could not be read"),
        (Answer("<think>Hello</think>"), "the model thought, but gave no answer"),
        (Answer("", reasoning="Hm, 5 or 6?"), "the model thought, but gave no answer"),
    ],
)
async def test_a_reply_without_a_text_is_requested_once_more(server, reply, words):
    once = Trial(server, "draft", reply, times=1)
    run = await once.run()
    assert (run.stop_reason, once.asked) == (StopReason.PASSED, 2)
    assert run.warnings[0].startswith(f"Asked m again: {words}")
    server.requests.clear()
    twice = Trial(server, "draft", reply)
    assert words in (await twice.run()).message
    assert twice.asked == 2


# --- connections


async def run_on(base_url: str, server: ScriptedServer) -> Trial:
    """Return a run that found no server at an address, with retries that do not wait."""
    trial = Trial(server, "none", Answer())
    run = await trial.run(base_url=base_url)
    assert run.stop_reason is StopReason.FAILED
    assert type(trial.loop.error) is errors.Unreachable
    assert server.requests == []
    return trial


async def test_a_server_that_is_not_there_is_asked_again_and_then_reported(server, monkeypatch):
    with ScriptedServer() as gone:
        address = gone.base_url
    trial = await run_on(address, server)
    run = trial.loop.state
    assert "(connection refused). Check the address, and that the server is running." in run.message
    assert len(trial.waits) == 2
    assert run.warnings == ()  # the error says it once

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    trial = await run_on("http://models.invalid/v1", server)
    assert "(Name or service not known). Check the address" in trial.loop.state.message
    assert len(trial.waits) == 2


async def test_a_self_signed_certificate_is_reported_at_once(server):
    with ScriptedServer(certificate=CERTIFICATE) as secure:
        trial = await run_on(secure.base_url, server)
    assert "its certificate: self-signed certificate" in trial.loop.state.message
    assert "set SSL_CERT_FILE to the file" in trial.loop.state.message
    assert (trial.waits, secure.requests) == ([], [])


async def test_a_certificate_that_the_environment_names_is_trusted(request_text, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    monkeypatch.setattr("httpx2.create_ssl_context", httpx2.create_ssl_context.__wrapped__)
    with ScriptedServer(lambda _: "Hello", certificate=CERTIFICATE) as secure:
        model = OpenAIModel("m", base_url=secure.base_url)
        reply = await reply_of(model, request_text)
    assert reply.text == "Hello"


@pytest.mark.parametrize("content", [None, "x"])
def test_certificates_that_cannot_be_read_are_a_sentence(tmp_path, monkeypatch, content):
    path = tmp_path / "ca.pem"
    if content:
        path.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    monkeypatch.setattr("httpx2.create_ssl_context", httpx2.create_ssl_context.__wrapped__)
    with pytest.raises(UsageError, match=r"SSL_CERT_FILE can't be read \(.*or unset it\."):
        OpenAIModel("m", base_url="http://127.0.0.1:1/v1")


async def test_a_server_without_tls_is_reported(server):
    trial = await run_on(server.base_url.replace("http:", "https:"), server)
    assert "Check the address" in trial.loop.state.message
