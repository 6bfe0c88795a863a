"""The scripted server's schedule, in this process and in one of its own."""

from __future__ import annotations

import time

import httpx
import pytest

from spoken_chat.bench.scripted_server import Schedule, ScriptedServer, ServerProcess
from spoken_chat.llm import StreamEnd, TextDelta, Usage
from spoken_chat.llm.openai_chat import OpenAIChat
from spoken_chat.settings import Settings

MESSAGES = [{"role": "user", "content": "Hi."}]


@pytest.mark.parametrize(
    ("schedule", "chunks", "ms_per_token"),
    [
        (Schedule(), 24, 4.0),
        (Schedule(per_chunk=2), 12, 88 / 23),
        (Schedule(tokens=5, per_chunk=2, step_ms=10), 3, 10.0),
    ],
)
def test_a_schedule_knows_what_a_perfect_client_measures(schedule: Schedule, chunks: int, ms_per_token: float) -> None:
    assert schedule.chunks == chunks
    assert schedule.ms_per_token == pytest.approx(ms_per_token)


def test_pieces_are_due_at_their_times_from_the_request() -> None:
    due = [round(piece.at * 1000) for piece in Schedule(tokens=4, per_chunk=2).answer().pieces]
    assert due == [0, 25, 33, 33]


async def test_no_piece_leaves_before_it_is_due() -> None:
    schedule = Schedule(tokens=4, first_ms=30, step_ms=20)
    async with ScriptedServer(schedule.answer()) as server:
        chat = OpenAIChat(Settings(), base_url=server.base_url)
        sent, *deltas, _ = [event async for event in chat.stream(MESSAGES)]
        await chat.aclose()
    for number, delta in enumerate(deltas):
        assert isinstance(delta, TextDelta)
        assert delta.at - sent.at >= (30 + 20 * number) / 1000


async def test_it_runs_in_a_process_of_its_own() -> None:
    with ServerProcess(Schedule(tokens=6, first_ms=1, step_ms=1, per_chunk=3)) as base_url:
        chat = OpenAIChat(Settings(), base_url=base_url)
        events = [event async for event in chat.stream(MESSAGES)]
        await chat.aclose()
    end = events[-1]
    assert [len(event.text.split()) for event in events if isinstance(event, TextDelta)] == [3, 3]
    assert isinstance(end, StreamEnd) and end.usage == Usage(1212, 6, 1200)


async def test_the_server_lists_the_requests_whose_client_went_away() -> None:
    async with ScriptedServer(Schedule(tokens=1000, step_ms=10).answer()) as server:
        chat = OpenAIChat(Settings(), base_url=server.base_url)
        stream = chat.stream(MESSAGES)
        await anext(stream)
        await anext(stream)
        await stream.aclose()
        await server.chats[0].disconnected.wait()
        async with httpx.AsyncClient() as client:
            ((received, lost),) = (await client.get(f"{server.base_url}/lost")).json()
        await chat.aclose()
    assert received < lost <= time.monotonic()
