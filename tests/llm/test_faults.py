"""Every fault of a model server: one clear sentence, nothing lost, and the next turn works."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from spoken_chat.errors import ChatError
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.settings import Settings
from tests.support import openai_server as scripted
from tests.support.openai_chats import SECRET, talking_to, text_and_fault, text_of
from tests.support.openai_server import Answer, say

FAULTS: list[tuple[Callable[[], Answer], str, str]] = [
    (lambda: scripted.refuse(500, "boom"), "llm_server_error", "500 (boom)"),
    (lambda: scripted.refuse(503), "llm_server_error", "503"),
    (lambda: scripted.refuse(429, "slow down"), "llm_busy", "slow down"),
    (lambda: scripted.refuse(401, f"Incorrect key {SECRET}"), "llm_key", "--api-key"),
    (lambda: scripted.refuse(403), "llm_key", "--api-key"),
    (lambda: scripted.refuse(404, "The model `scripted` does not exist."), "llm_model_missing", "it serves scripted"),
    (lambda: scripted.refuse(422, f"temperature {SECRET}"), "llm_refused", "temperature ***"),
    (scripted.context_overflow_vllm, "llm_context_overflow", "no longer fits"),
    (scripted.context_overflow_llama_cpp, "llm_context_overflow", "no longer fits"),
    (scripted.context_overflow_openai, "llm_context_overflow", "no longer fits"),
    (scripted.no_vision_vllm, "llm_no_vision", "cannot see"),
    (scripted.no_vision_vllm_limit, "llm_no_vision", "cannot see"),
    (scripted.no_vision_llama_cpp, "llm_no_vision", "cannot see"),
    (lambda: say(), "llm_empty", "no text"),
    (lambda: say(" ", "\n"), "llm_empty", "no text"),
    (lambda: Answer(ending=scripted.Ending.DROP, headers_at=None), "llm_dropped", "before it answered"),
    (lambda: scripted.json_answer({"choices": []}), "llm_malformed", "application/json"),
    (lambda: scripted.json_answer({"error": {"message": "dead", "code": 500}}), "llm_server_error", "dead"),
    (lambda: Answer((scripted.Piece(b"<html>"),), content_type="text/html"), "llm_malformed", "text/html"),
    (lambda: scripted.say_bytes(b'data: {"choices":[{"delta":{"content":7}}]}\n\n'), "llm_malformed", "7"),
    (lambda: scripted.say_bytes(b"data: [1]\n\n"), "llm_malformed", "[1]"),
]


@pytest.mark.parametrize(("answer", "code", "words"), FAULTS)
async def test_each_fault_is_told_in_one_sentence(answer: Callable[[], Answer], code: str, words: str) -> None:
    async with talking_to(answer(), llm_api_key=SECRET) as (chat, _):
        text, fault = await text_and_fault(chat)
    assert (text.strip(), fault.code) == ("", code)
    assert words in fault.message
    assert fault.message.endswith(".") and "\n" not in fault.message
    assert SECRET not in fault.message + repr(fault.details)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (scripted.hang_mid_stream, "llm_stalled"),
        (scripted.drop_mid_stream, "llm_dropped"),
        (scripted.end_without_finish, "llm_dropped"),
        (scripted.malformed_event, "llm_malformed"),
        (scripted.error_in_stream, "llm_server_error"),
    ],
)
async def test_text_received_before_a_fault_is_kept_and_the_next_turn_works(
    answer: Callable[..., Answer], code: str
) -> None:
    async with talking_to(answer("Hel", "lo"), say("Again."), llm_token_timeout=0.3) as (chat, _):
        text, fault = await text_and_fault(chat)
        assert (text, fault.code) == ("Hello", code)
        assert await text_of(chat) == "Again."


@pytest.mark.parametrize("answer", [scripted.hang_before_headers, scripted.hang_before_first_token])
async def test_a_server_that_sends_no_token_is_left(answer: Callable[[], Answer]) -> None:
    async with talking_to(answer(), llm_first_token_timeout=0.3) as (chat, server):
        text, fault = await text_and_fault(chat)
        assert (text, fault.code) == ("", "llm_timeout")
        await asyncio.wait_for((await server.chat()).disconnected.wait(), 5)


async def test_pings_are_not_tokens() -> None:
    pings = tuple(scripted.Piece(b": ping\n\n", at=number * 0.05) for number in range(40))
    async with talking_to(Answer(pings), llm_first_token_timeout=0.3) as (chat, _):
        assert (await text_and_fault(chat))[1].code == "llm_timeout"


async def test_an_error_inside_the_stream_is_recognised_by_its_wording() -> None:
    answer = scripted.error_in_stream(message="This model's maximum context length is 4096 tokens.", code=400)
    async with talking_to(answer) as (chat, _):
        assert (await text_and_fault(chat))[1].code == "llm_context_overflow"


async def test_a_refused_connection_names_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: nobody else can take the port
        port = taken.getsockname()[1]
        chat = OpenAIChat(Settings(llm_model="any"), base_url=f"http://127.0.0.1:{port}")
        _, fault = await text_and_fault(chat)
        await chat.aclose()
    assert fault.code == "llm_unreachable"
    assert f"http://127.0.0.1:{port}/v1" in fault.message and "refused" in fault.message


async def test_a_host_name_that_does_not_resolve_is_told_as_such() -> None:
    chat = OpenAIChat(Settings(), base_url="http://user:pass@nowhere.invalid:8000/v1")
    with pytest.raises(ChatError) as caught:
        await chat.connect()
    await chat.aclose()
    assert caught.value.code == "llm_unreachable"
    assert "host name" in caught.value.message and "nowhere.invalid:8000" in caught.value.message
    assert "pass" not in caught.value.message


async def test_a_server_without_the_api_is_told_from_one_without_the_model() -> None:
    async with talking_to(scripted.refuse(404), models=scripted.refuse(404), llm_model="mine") as (chat, _):
        assert (await text_and_fault(chat))[1].code == "llm_not_openai"


async def test_a_server_restarted_with_another_model_is_asked_again() -> None:
    async with talking_to(say("One."), scripted.refuse(404), say("Two.")) as (chat, server):
        await text_of(chat)
        server.models = scripted.model_list({"id": "other"})
        fault = (await text_and_fault(chat))[1]
        assert "it serves other" in fault.message
        assert await text_of(chat) == "Two."
        assert server.chats[-1].body["model"] == "other"


async def test_a_connection_closed_while_idle_is_replaced() -> None:
    async with talking_to(say("One."), Answer(ending=scripted.Ending.DROP, headers_at=None), say("Two.")) as (chat, _):
        assert await text_of(chat) == "One."
        assert await text_of(chat) == "Two."


async def test_request_fields_that_a_hosted_server_refuses_are_left_out_from_then_on() -> None:
    async with talking_to(
        scripted.refuse(400, "Unknown parameter: 'chat_template_kwargs'."),
        scripted.refuse(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        say("One."),
    ) as (chat, server):
        assert [await text_of(chat), await text_of(chat)] == ["One.", "One."]
        bodies = [request.body for request in server.chats]
    assert len(bodies) == 4
    assert "chat_template_kwargs" not in bodies[-1]
    assert "max_tokens" not in bodies[-1]
    assert bodies[-1]["max_completion_tokens"] == Settings().llm_max_tokens


async def test_a_server_that_keeps_complaining_is_not_asked_for_ever() -> None:
    async with talking_to(scripted.refuse(400, "'chat_template_kwargs' is odd")) as (chat, server):
        assert (await text_and_fault(chat))[1].code == "llm_refused"
        assert len(server.chats) == 2
