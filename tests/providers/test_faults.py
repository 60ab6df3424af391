"""What becomes of each failure: as an error of ours, and in a whole run on a real socket.

In a run each failure has one outcome: the request is repeated after a pause, the server is asked
for less, the model is asked once more, or the run stops with its best text and one sentence. A run
never hangs, and a failure never makes a PASS.
"""

import re
import socket
import tomllib
from pathlib import Path
from typing import Any

import httpx2
import pytest
from faulty import GOOD, STAGES, Trial
from openai_server import Answer, Behaviour, Failure, ScriptedServer, items_of, reply_of

from ipyrefine import errors
from ipyrefine.core.model import Budget, Limits, Outcome, StopReason
from ipyrefine.core.ports import Notice
from ipyrefine.core.run import Run
from ipyrefine.errors import UsageError
from ipyrefine.providers import servers
from ipyrefine.providers.faults import Refused, model_error
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.servers import Capabilities, recall

KEY = "sk-very-secret"
CERTIFICATE = Path(__file__).parents[1] / "support" / "self_signed.pem"
BUSY = {"error": {"message": "later"}}
ANSWERS = tomllib.loads(Path(__file__).with_name("server_answers.toml").read_text("utf-8"))
FLAWED = {
    "length": (Answer("<text>\nHel", finish="length"), "cut off at the token limit"),
    "content filter": (Answer("Hel", finish="content_filter"), "content filter"),
    "refusal": (Answer(refusal="I will not."), "refused"),
    "no finish reason": (Answer("<text>\nHello", finish=None), "broke off before its end"),
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


# --- an answer


def sent(row: dict[str, Any]) -> Behaviour:
    body = row["body"].encode()
    if row["status"] != 200:
        return Failure(row["status"], body, row.get("headers", {}))
    kind = "application/json" if row.get("whole") else "text/event-stream"
    return Answer(raw=body, content_type=kind)


@pytest.mark.parametrize("row", ANSWERS["ends"], ids=lambda row: row["says"][:50])
async def test_what_waiting_does_not_mend_ends_a_request_in_a_line_without_the_key(
    server, request_text, row
):
    server.default = lambda _: sent(row)
    with pytest.raises(errors.ModelError) as caught:
        await reply_of(OpenAIModel("m", base_url=server.base_url, api_key=KEY), request_text)
    message = str(caught.value)
    assert (type(caught.value).__name__, row["says"] in message) == (row["raises"], True), message
    assert KEY not in message
    assert len(message.splitlines()) == 1
    assert len(server.requests) == row.get("asked", 1)
    assert recall(server.base_url, "m", "{}") == Capabilities(), "nothing is learnt of it"


async def test_a_passing_failure_is_waited_for_as_long_as_the_server_says_wherever_it_does(
    server, request_text, waits, subtests
):
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    model = OpenAIModel("m", base_url=server.base_url, sleep=sleep)
    for row in ANSWERS["waits"]:
        with subtests.test(row["body"]):
            waits.clear()
            server.then(sent(row), "at last")
            notice, *_, reply = await items_of(model, request_text)
            assert (reply.text, "trying again in" in notice.text) == ("at last", True)
            (waited,) = waits
            assert waited == row["seconds"] if "seconds" in row else 0 <= waited <= 0.5


async def test_what_is_refused_is_left_out_and_known_for_the_session(
    server, request_json, subtests
):
    for row in ANSWERS["refused"]:
        with subtests.test(row["body"]):
            servers.BY_SERVER.clear()
            server.requests.clear()
            server.default = lambda body, row=row: sent(row) if row["has"] in body else "ok"
            for _ in range(2):
                model = OpenAIModel("m", base_url=server.base_url)
                items = await items_of(model, request_json)
                asked = {"seed", "temperature"}.intersection(row["without"])
                told = " ".join(item.text for item in items if isinstance(item, Notice))
                assert all(name in told for name in asked), "in every run"
            first, *rest = server.bodies
            assert [sorted({*first} - {*body}) for body in rest] == [row["without"]] * 2


@pytest.mark.parametrize(
    ("answer", "words", "again"),
    [
        ('data: {"error": {"code": 502, "message": "is gone"}}', "gone", True),
        ('data: {"choices": [{"de', "protocol", True),
        (Answer("Hello", chunk=2, drop_after=2), "No connection to", True),
        ('data: {"error": {"code": 400, "message": "is long"}}', "long", False),
        (Answer("Hello", chunk=2, stall_after=2), "nothing new for too long", False),
    ],
)
async def test_a_broken_stream_says_whether_asking_again_may_help(
    server, request_text, answer, words, again
):
    begun = 'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'
    if isinstance(answer, str):
        answer = Answer(raw=f"{begun}{answer}\n\n".encode())
    server.then(answer)
    with pytest.raises(errors.ModelError, match=words) as caught:
        await reply_of(OpenAIModel("m", base_url=server.base_url, timeout=0.3), request_text)
    assert (caught.value.broke_off, len(server.requests)) == (again, 1)


def test_every_status_and_exception_becomes_an_error_with_advice():
    for cause in (
        *(Refused(f"no {KEY}", status) for status in (*range(300, 600), 999)),
        *(httpx2.ReadTimeout("slow"), httpx2.ConnectError("no"), TimeoutError(), RecursionError()),
    ):
        error = model_error(cause, server="http://h/v1", model="m", secrets=(KEY,))
        assert type(error) is not errors.ModelError, cause
        assert KEY not in str(error)
        assert re.search(r"\. [A-Z].*\.$", str(error)), "it says what to do"


# --- a whole run


async def test_a_wait_the_budget_does_not_hold_is_not_begun(server):
    trial = Trial(server, "judge", Failure(503, BUSY, {"Retry-After": "50"}))
    run = await trial.run(limits=Limits(budget=Budget(seconds=30)))
    assert run.stop_reason is StopReason.BUDGET
    assert "the server asks to wait 50 more" in run.message
    assert run.text == "Hello"
    assert trial.waits == []


@pytest.mark.parametrize("pieces", [0, 3])
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


async def test_a_reply_without_a_text_is_requested_once_more(server):
    words = "the model thought, but gave no answer"
    trial = Trial(server, "draft", Answer("", reasoning="Hm, 5 or 6?"))
    run = await trial.run()
    assert run.warnings[0].startswith(f"Asked m again: {words}")
    assert words in run.message
    assert trial.asked == 2


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
