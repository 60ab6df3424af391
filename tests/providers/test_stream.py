"""What is read of a reply: thoughts apart from the answer, in whatever shape a server sends it.

The shapes are those of public documents and threads (OpenAI, Mistral, OpenRouter, LiteLLM, Ollama,
vLLM, gpt-oss, Gemma); none was tried with the real server.
"""

import json
from time import process_time

import pytest
from openai_server import Answer, reply_of

from ipyrefine.core.ports import Reply
from ipyrefine.providers.openai import OpenAIModel
from ipyrefine.providers.stream import Assembly, split_thoughts

CODE = "```python\ndef f():\n    return 1\n```"
LONGER = "```python\ndef f():\n    # the wrong one, and much longer\n    return 2\n```"
CHANNEL = "<|start|>assistant<|channel|>"
MARKED = [
    ("<think>t</think>A", "t", "A"),
    ("<reasoning>\nt\n</reasoning>\nA", "t", "A"),
    ("[THINK]t[/THINK]A", "t", "A"),
    ("<think>still", "still", ""),
    ("<think>The tag `</think>` ends it.</think>A", "The tag `</think>` ends it.", "A"),
    # the template opened them
    ("t\n</think>\n\nA", "t", "A"),
    ("t. </think> The answer", "t.", "The answer"),
    ('I don\'t "see".\n</think>\n{"score": 8}', 'I don\'t "see".', '{"score": 8}'),
    (f"Try\n{LONGER}\nno.\n</think>\n\n{CODE}", f"Try\n{LONGER}\nno.", CODE),
    (
        "<text>\nno\n</text>\n</think>\n<text>\nA\n</text>",
        "<text>\nno\n</text>",
        "<text>\nA\n</text>",
    ),
    ("t\n</think>\nIn prose </think>\n\nstays", "t", "In prose </think>\n\nstays"),
    # channels
    (f"<|channel|>analysis<|message|>t<|end|>{CHANNEL}final<|message|>A<|return|>", "t", "A"),
    (f"t<|end|>{CHANNEL}final <|constrain|>json<|message|>{{}}", "t", "{}"),
    ("<|channel>thought\nt<channel|>A", "t", "A"),
    # control tokens
    ("<think>t</think>A<|im_end|>\n<|endoftext|>", "t", "A"),
]
ABOUT_MARKS = [
    "Hello, world.\n",
    "  indented at the start",
    "The <think> tag opens and the </think> tag closes thoughts.",
    "The closing tag (</think>) ends thoughts. So does </think>.",
    "Split it:\n```python\nx = s.split('</think>')[-1]\n```\n",
    "# the tag </think>\nx = 1\n",
    "<text>\nThe template opens it.\n</think>\nends it.\n</text>",
    json.dumps({"text": f"{'word ' * 50}\n</think>\nthen", "n": 1}),
    "<thoughts>what I plan</thoughts>\n<response>A</response>",
    "print('<|im_end|>')",
    "",
]


def test_what_is_left_without_thoughts_and_control_tokens_is_the_answer(subtests):
    for content, thoughts, answer in MARKED:
        with subtests.test(content):
            thinking, text = split_thoughts(content)
            assert (thinking.strip(), text) == (thoughts, answer)


def test_an_answer_that_is_about_marks_of_thoughts_stays_as_it_is(subtests):
    for content in ABOUT_MARKS:
        with subtests.test(content):
            assert split_thoughts(content) == ("", content)


def streamed_to(assembly: Assembly, content: str, chunk: int) -> dict[str, str]:
    """Return what is shown of a reply that comes in pieces."""
    shown = {"thinking": "", "text": ""}
    for start in range(0, len(content), chunk):
        delta = {"content": content[start : start + chunk]}
        for part in assembly.feed({"choices": [{"delta": delta}]}):
            shown[part.kind] += part.text
    return shown


@pytest.mark.parametrize("chunk", [1, 3, 7, 1_000])
def test_a_streamed_reply_is_the_same_as_a_whole_one(request_text, chunk):
    for content in (*(content for content, *_ in MARKED), *ABOUT_MARKS):
        assembly = Assembly(request_text)
        shown = streamed_to(assembly, content, chunk)
        thinking, text = split_thoughts(content)
        assert (assembly.reply(1).thinking, assembly.reply(1).text) == (thinking.strip(), text)
        if not thinking:
            assert text in shown["thinking"] + shown["text"] or len(text) < 120


def test_a_mark_repeated_over_and_over_does_not_hold_up_the_reader(subtests):
    for piece in (
        *("<think>", "</think>", "<think></think>", "<think>\n```\n</think><think>\n```\n"),
        *("<|channel|>", "`", "` `` ", "```x\n", "```\n~~~\n", "<text>\n", "</s>", "<|a|>"),
        *("analysis", "a </think> b", '"a ', "<think ", "a" + " " * 50 + "</think> x", "\n "),
    ):
        with subtests.test(piece):
            content, began = piece * (100_000 // len(piece)), process_time()
            thinking, text = split_thoughts(content)
            assert process_time() - began < 10
            assert text in content
            assert len(thinking) + len(text) <= len(content)


# --- parts, fields, tool calls


PARTS = [
    ([{"type": "output_text", "text": "A"}, {"type": "text", "text": {"value": "B"}}], "", "AB"),
    (["A", "B"], "", "AB"),
    ([{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, "A"], "t", "A"),
    ([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]}, "A"], "t", "A"),
    ([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "A"}], "", "A"),
    ({"type": "text", "text": "<think>t</think>A"}, "t", "A"),
]


async def reply_to(server, request, answer: Answer) -> Reply:
    server.then(answer)
    return await reply_of(OpenAIModel("m", base_url=server.base_url), request)


def whole(message: dict, finish: str = "stop") -> Answer:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    return Answer(raw=json.dumps(body).encode(), content_type="application/json")


def streamed(*deltas: dict, finish: str = "stop", last: dict | None = None) -> Answer:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"delta": {}, "finish_reason": finish, **(last or {})}]})
    return Answer(raw=b"".join(b"data: %s\n\n" % json.dumps(c).encode() for c in chunks))


async def test_content_in_parts_is_read_streamed_and_whole(server, request_text, subtests):
    for content, thoughts, answer in PARTS:
        parts = content if isinstance(content, list) else [content]
        for sent in (
            whole({"content": content}),
            streamed(*({"content": [part]} for part in parts)),
        ):
            with subtests.test(content, sent=sent.raw):
                reply = await reply_to(server, request_text, sent)
                assert (reply.thinking, reply.text, reply.finish) == (thoughts, answer, "stop")


async def test_a_reply_that_is_repeated_whole_at_the_end_of_its_stream_is_read_once(
    server, request_text
):
    answer = streamed({"content": "A"}, last={"message": {"content": "A"}})
    assert (await reply_to(server, request_text, answer)).text == "A"


async def test_a_refusal_among_parts_is_a_refusal(server, request_text):
    part = {"type": "refusal", "refusal": "I can't."}
    reply = await reply_to(server, request_text, whole({"content": [part]}))
    assert (reply.text, reply.finish) == ("I can't.", "refused")
