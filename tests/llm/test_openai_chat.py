"""OpenAIChat against a scripted server over real sockets: the text, the counts, the stamps, and closing."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing

import pytest

from spoken_chat.llm import RequestSent, StreamEnd, TextDelta, Usage
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.settings import Settings
from tests.support import openai_server as scripted
from tests.support.openai_chats import MESSAGES, SECRET, events_of, talking_to, text_of
from tests.support.openai_server import Answer, ScriptedServer, say


async def test_a_reply_is_streamed_with_its_counts() -> None:
    async with talking_to(say("Hel", "lo.")) as (chat, _):
        sent, *deltas, end = await events_of(chat)
    assert isinstance(sent, RequestSent)
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["Hel", "lo."]
    assert isinstance(end, StreamEnd)
    assert end.usage == Usage(prompt_tokens=100, completion_tokens=8, cached_tokens=96)
    assert end.finish_reason == "stop"


async def test_stamps_are_in_order_on_the_given_clock() -> None:
    ticks = itertools.count(100.0)
    async with ScriptedServer(say("One", " two", step=0.02)) as server:
        chat = OpenAIChat(Settings(), base_url=server.base_url, clock=lambda: next(ticks))
        events = await events_of(chat)
        await chat.aclose()
    stamps = [event.at for event in events]
    assert stamps[0] == 100.0
    assert stamps == sorted(stamps)
    assert stamps[1] < stamps[2]


async def test_the_request_asks_for_a_stream_with_usage_and_without_thinking() -> None:
    async with talking_to(say("Yes."), llm_temperature=0.3, llm_max_tokens=64, llm_api_key=SECRET) as (chat, server):
        await events_of(chat)
        request = server.chats[0]
    assert request.body == {
        "model": scripted.MODEL,
        "messages": MESSAGES,
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.3,
        "max_tokens": 64,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert request.headers["accept-encoding"] == "identity"


async def test_two_replies_and_the_model_list_share_one_connection() -> None:
    async with talking_to(say("One."), say("Two.")) as (chat, server):
        await chat.connect()
        assert [await text_of(chat), await text_of(chat)] == ["One.", "Two."]
        assert server.connections == 1
        assert len(server.requests) == 3


async def test_the_model_is_the_first_that_the_server_lists_and_is_asked_for_once() -> None:
    models = scripted.model_list({"id": "first"}, {"id": "second"})
    async with talking_to(say("Yes."), models=models) as (chat, server):
        assert chat.name == ""
        await text_of(chat)
        await text_of(chat)
        assert chat.name == "first"
        assert [request.body["model"] for request in server.chats] == ["first", "first"]
        assert len(server.requests) - len(server.chats) == 1


async def test_several_tokens_in_a_chunk_are_one_delta_and_counted_by_the_server() -> None:
    async with talking_to(scripted.Schedule(tokens=5, first_ms=1, step_ms=1, per_chunk=2).answer()) as (chat, _):
        _, *deltas, end = await events_of(chat)
    assert [len(delta.text.split()) for delta in deltas if isinstance(delta, TextDelta)] == [2, 2, 1]
    assert isinstance(end, StreamEnd) and end.usage is not None
    assert end.usage.completion_tokens == 5


async def test_counts_that_the_server_does_not_give_are_none() -> None:
    async with talking_to(say("Yes.", usage=b""), say("Yes.", usage=scripted.usage_event(7, 3))) as (chat, _):
        silent = (await events_of(chat))[-1]
        partial = (await events_of(chat))[-1]
    assert isinstance(silent, StreamEnd) and silent.usage is None
    assert isinstance(partial, StreamEnd) and partial.usage == Usage(7, 3, None)


async def test_a_stream_with_a_finish_reason_but_without_done_is_complete() -> None:
    async with talking_to(scripted.say_bytes(scripted.delta("Yes."), scripted.delta(finish="stop"))) as (chat, _):
        assert isinstance((await events_of(chat))[-1], StreamEnd)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
async def test_comments_and_both_line_ends_are_read(line_end: bytes) -> None:
    body = b": ping\n\n" + scripted.delta("Yes.") + scripted.delta(finish="stop") + scripted.DONE
    async with talking_to(scripted.say_bytes(body.replace(b"\n", line_end))) as (chat, _):
        assert await text_of(chat) == "Yes."


async def test_a_character_split_over_tcp_segments_arrives_whole() -> None:
    async with talking_to(scripted.split_character("你好😀。")) as (chat, _):
        assert await text_of(chat) == "你好😀。"


async def test_a_surrogate_pair_split_over_events_is_joined() -> None:
    async with talking_to(scripted.split_surrogates()) as (chat, _):
        _, *deltas, _ = await events_of(chat)
    assert [delta.text for delta in deltas if isinstance(delta, TextDelta)] == ["Hi ", "😀!"]


async def test_a_half_character_at_the_end_cannot_break_what_comes_after() -> None:
    half = b'data: {"choices":[{"index":0,"delta":{"content":"Hi \\ud83d"},"finish_reason":"stop"}]}\n\n'
    async with talking_to(scripted.say_bytes(half + scripted.DONE)) as (chat, _):
        assert await text_of(chat) == "Hi \ufffd"


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
async def test_thinking_before_the_reply_is_not_part_of_it(field: str) -> None:
    answer = scripted.reasoning_then_content(["They greet", " me."], ["\n\n", "Hello."], field)
    async with talking_to(answer) as (chat, _):
        assert await text_of(chat) == "\n\nHello."
        assert await text_of(chat) == "\n\nHello."


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
async def test_a_reply_filed_under_reasoning_is_the_reply(field: str) -> None:
    async with talking_to(say("Hel", "lo.", field=field, step=0.02)) as (chat, _):
        _, first, second, end = await events_of(chat)
    assert isinstance(first, TextDelta) and isinstance(second, TextDelta)
    assert first.text + second.text == "Hello."
    assert first.at < second.at <= end.at


async def test_a_server_that_files_replies_under_reasoning_is_streamed_from_the_second_reply_on() -> None:
    async with talking_to(
        say("One.", field="reasoning"),
        Answer((scripted.Piece(scripted.delta(reasoning="Two")),), ending=scripted.Ending.HANG),
    ) as (chat, _):
        assert await text_of(chat) == "One."
        async with aclosing(chat.stream(MESSAGES)) as stream:
            assert isinstance(await anext(stream), RequestSent)
            delta = await anext(stream)
    assert isinstance(delta, TextDelta) and delta.text == "Two"


async def test_content_after_reasoning_takes_that_back() -> None:
    async with talking_to(
        say("One.", field="reasoning"),
        scripted.reasoning_then_content(["Hm."], ["Two."]),
        scripted.reasoning_then_content(["Hm."], ["Three."]),
    ) as (chat, _):
        replies = [await text_of(chat) for _ in range(3)]
    assert replies == ["One.", "Hm.Two.", "Three."]


async def test_thinking_cut_by_its_length_teaches_nothing() -> None:
    cut = scripted.say_bytes(scripted.delta(reasoning="Hm, let me"), scripted.delta(finish="length") + scripted.DONE)
    async with talking_to(cut, scripted.reasoning_then_content(["Hm."], ["Two."])) as (chat, _):
        await text_of(chat)
        assert await text_of(chat) == "Two."


@pytest.mark.parametrize(
    "answer",
    [scripted.hang_before_headers(), scripted.hang_before_first_token(), scripted.hang_mid_stream("Hel", "lo")],
    ids=["before headers", "before the first token", "mid-stream"],
)
async def test_cancelling_the_turn_closes_the_stream_at_the_server(answer: Answer) -> None:
    async with talking_to(answer, llm_model=scripted.MODEL) as (chat, server):
        turn = asyncio.create_task(text_of(chat))
        request = await asyncio.wait_for(server.chat(), 5)
        await asyncio.sleep(0.05)  # let what was sent arrive, so that the turn waits where the test says
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await asyncio.wait_for(request.disconnected.wait(), 5)
        assert not request.finished.is_set()


async def test_closing_the_generator_mid_stream_closes_the_stream_at_the_server() -> None:
    async with talking_to(scripted.hang_mid_stream("Hel", "lo"), say("Next.")) as (chat, server):
        async with aclosing(chat.stream(MESSAGES)) as stream:
            events = [await anext(stream) for _ in range(2)]
        assert isinstance(events[-1], TextDelta)
        await asyncio.wait_for(server.chats[0].disconnected.wait(), 5)
        assert await text_of(chat) == "Next."


async def test_closing_the_generator_while_the_request_is_under_way_closes_the_connection() -> None:
    async with talking_to(scripted.hang_before_headers()) as (chat, server):
        async with aclosing(chat.stream(MESSAGES)) as stream:
            assert isinstance(await anext(stream), RequestSent)
            request = await asyncio.wait_for(server.chat(), 5)
        await asyncio.wait_for(request.disconnected.wait(), 5)


async def test_closing_the_generator_at_once_leaves_no_task_behind() -> None:
    async with talking_to(scripted.hang_before_headers(), llm_model="any") as (chat, _):
        before = asyncio.all_tasks()
        async with aclosing(chat.stream(MESSAGES)) as stream:
            await anext(stream)
        assert asyncio.all_tasks() <= before
