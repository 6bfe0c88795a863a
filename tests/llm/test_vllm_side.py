"""What the client does where the server is a vLLM: it reads ahead, counts, and notes what the cache should hold."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spoken_chat.errors import ChatError
from spoken_chat.llm import Message, StreamEnd
from spoken_chat.llm.cached_prefix import CachedPrefix
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.persona import load_personas
from spoken_chat.session import ChatSession
from spoken_chat.settings import ROOT, Settings
from spoken_chat.stages import Stages
from spoken_chat.turn import Turn, Utterance
from tests.support.engines import ScriptedRecognizer
from tests.support.openai_server import ScriptedServer, say
from tests.support.scripted_vllm import OPENING, ScriptedVllm, common, rendered

PREFIX: Message = {"role": "system", "content": "You are Robin. " * 20}
PERSONA = load_personas(ROOT / "persona")["robin"]


@asynccontextmanager
async def chatting(server: ScriptedServer, **settings: Any) -> AsyncIterator[OpenAIChat]:
    """A client that has asked `server` what it is."""
    async with server:
        chat = OpenAIChat(Settings(**settings), base_url=server.base_url)
        try:
            await chat.connect()
            yield chat
        finally:
            await chat.aclose()


async def end_of(chat: OpenAIChat, messages: list[Message]) -> StreamEnd:
    events = [event async for event in chat.stream(messages)]
    assert isinstance(events[-1], StreamEnd)
    return events[-1]


async def say_in(session: ChatSession, chat: OpenAIChat, text: str) -> Turn:
    turn, events = await session.take(Stages(ScriptedRecognizer(), chat, None), Utterance(text=text))
    async for _ in events:
        continue
    return turn


async def test_reading_ahead_ends_where_the_users_words_will_come() -> None:
    server = ScriptedVllm()
    messages = [PREFIX, {"role": "user", "content": ""}]
    async with chatting(server) as chat:
        usage = await chat.read(messages)
    (read,) = server.read
    assert read == rendered(messages, opened=False) and not read.endswith(OPENING)
    assert usage is not None and usage.prompt_tokens == len(read)
    (request,) = server.chats
    assert request.body["max_tokens"] == 1 and request.body["stream"] is False
    assert request.body["chat_template_kwargs"] == {"enable_thinking": False}


async def test_elsewhere_reading_ahead_waits_for_the_first_word_and_closes_the_stream() -> None:
    server = ScriptedServer(say("One", " two", " three", step=0.05))
    async with chatting(server) as chat:
        assert await chat.read([PREFIX, {"role": "user", "content": ""}]) is None
        (request,) = server.chats
        await request.disconnected.wait()
        assert request.body["stream"] is True and "add_generation_prompt" not in request.body


async def test_a_prompt_whose_bytes_fit_is_not_counted() -> None:
    server = ScriptedVllm(window=4000)
    async with chatting(server, llm_max_tokens=100) as chat:
        await end_of(chat, [PREFIX, {"role": "user", "content": "x" * 1000}])
    assert [request.path for request in server.requests] == ["/v1/models", "/v1/chat/completions"]


async def test_a_prompt_near_the_window_is_counted_and_sent_when_it_fits() -> None:
    server = ScriptedVllm(window=1500)
    messages = [PREFIX, {"role": "user", "content": "好" * 600}]  # 1800 bytes, 600 tokens
    async with chatting(server, llm_max_tokens=100) as chat:
        await end_of(chat, messages)
        await end_of(chat, [*messages, {"role": "assistant", "content": "y"}, {"role": "user", "content": "z"}])
    paths = [request.path for request in server.requests]
    assert paths.count("/tokenize") == 1, "what was counted once is not counted again"
    assert paths.count("/v1/chat/completions") == 2


async def test_a_prompt_that_leaves_no_room_for_the_reply_never_reaches_the_server() -> None:
    server = ScriptedVllm(window=1500)
    async with chatting(server, llm_max_tokens=100) as chat:
        with pytest.raises(ChatError) as caught:
            await end_of(chat, [PREFIX, {"role": "user", "content": "1" * 1200}])
    assert caught.value.code == "llm_context_overflow" and server.chats == []


async def test_an_image_is_counted_as_the_most_that_it_can_be() -> None:
    server = ScriptedVllm(window=2000)
    image = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + "A" * 100_000}}
    messages = [PREFIX, {"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}]
    async with chatting(server, llm_max_tokens=100) as chat:
        await end_of(chat, messages)
    assert "/tokenize" not in [request.path for request in server.requests], "its bytes are no tokens"


async def test_a_conversation_that_outgrows_the_window_goes_on_without_its_oldest_part() -> None:
    server = ScriptedVllm(window=3000)
    async with chatting(server, llm_max_tokens=100) as chat:
        session = ChatSession(PERSONA, PERSONA.voices[0], budget=10**6)
        for number in range(8):
            turn = await say_in(session, chat, f"{number} " + "42" * 200)
            assert turn.status == "completed", turn.error
    assert max(len(prompt) for prompt in server.prompts) <= 2900
    assert session.conversation.first_visible > 0


async def test_a_prompt_that_misses_the_prefix_in_the_cache_is_told() -> None:
    server = ScriptedVllm()
    messages = [PREFIX, {"role": "user", "content": "Hi."}]
    async with chatting(server) as chat:
        chat.prefixes.hold(PREFIX["content"], CachedPrefix(288))
        cold, warm = await end_of(chat, messages), await end_of(chat, messages)
    assert cold.usage is not None and cold.usage.prefix_missed is True
    assert warm.usage is not None and warm.usage.prefix_missed is False
    assert warm.usage.cached_tokens is not None and warm.usage.cached_tokens >= 288


async def test_where_nobody_knows_what_the_cache_should_hold_nothing_is_said_of_a_miss() -> None:
    async with chatting(ScriptedVllm()) as chat:
        end = await end_of(chat, [PREFIX, {"role": "user", "content": "Hi."}])
    assert end.usage is not None and end.usage.prefix_missed is None


async def test_a_padded_prefix_is_padded_in_every_request_and_nothing_else_is() -> None:
    server = ScriptedVllm()
    messages = [PREFIX, {"role": "user", "content": "Hi."}]
    async with chatting(server) as chat:
        chat.prefixes.hold(PREFIX["content"], CachedPrefix(None, "\n . . ."))
        await chat.read(messages)
        await end_of(chat, messages)
        await end_of(chat, [{"role": "system", "content": "Another."}, messages[1]])
    contents = [request.body["messages"][0]["content"] for request in server.chats]
    assert contents == [PREFIX["content"] + "\n . . ."] * 2 + ["Another."]
    assert messages[0] == PREFIX, "what the conversation keeps is not changed"


async def test_on_the_wire_every_request_of_every_user_begins_with_the_same_bytes() -> None:
    server = ScriptedVllm()
    async with chatting(server) as chat:
        for name in ("Ann", "Bob 🦜"):
            session = ChatSession(PERSONA, PERSONA.voices[0], budget=8000)
            for text in (f"I am {name}.", "Who am I?"):
                await say_in(session, chat, text)
    bodies = [request.raw for request in server.chats]
    texts = [body.decode() for body in bodies]
    shared = texts[0][: min(common(texts[0], text) for text in texts[1:])]
    assert len(bodies) == 4
    start = shared.index('"messages":')
    opening = rendered([{"role": "system", "content": PERSONA.prefix}], opened=False)
    assert all(prompt.startswith(opening) for prompt in server.prompts), "nothing stands before the prefix"
    assert len(shared) - start > len(PERSONA.prefix)
    for user, _ in PERSONA.examples:
        assert user in shared
