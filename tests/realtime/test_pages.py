"""A page's connection: events of our own, coming back to a conversation, two tabs of one conversation."""

import asyncio
import json
import time
from dataclasses import replace
from functools import partial

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from spoken_chat.realtime.outbox import Outbox
from spoken_chat.turn import Utterance
from tests.support.realtime import Wire, said, wire

FIXED = {"audio": {"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 300}}}}


async def test_a_page_can_measure_by_its_own_clock_from_where_speech_ended_in_its_sound(server: Wire) -> None:
    token = (await server.open()).token
    async with server.client(token) as client:
        await client.configure(**FIXED)
        await client.speak(0.8)
        started = await client.silence_until(client.next("turn.started"))
        response = (await client.silence_until(client.next("response.done")))["response"]
        timeline = await client.next("turn.timeline")
    assert started["kind"] == "hands_free" and started["turn_id"] == timeline["turn"]["id"]
    assert started["item_id"] == client.of("input_audio_buffer.committed")[0]["item_id"]
    assert started["response_id"] == response["id"]
    assert started["speech_end_ms"] == pytest.approx(800, abs=70)
    assert client.of("reply.mood")[0] == {
        **client.of("reply.mood")[0],
        "turn_id": timeline["turn"]["id"],
        "mood": "happy",
    }


async def test_the_timeline_waits_for_the_report_of_what_was_heard(server: Wire) -> None:
    token = (await server.open()).token
    async with server.client(token) as client:
        await client.write(said("hello"))
        await client.send("response.create")
        started = await client.next("turn.started")
        assert "speech_end_ms" not in started
        await client.next("response.done")
        await client.send("turn.played", turn_id=started["turn_id"], waited_ms=400.5, playback_ms=30)
        timeline = await client.next("turn.timeline")
    metrics = timeline["turn"]["metrics"]
    assert metrics["v2v_ms"] == 400.5 and metrics["playback_ms"] == 30 and timeline["figures"]["v2v_ms"] == "400.5"


async def test_a_report_while_the_turn_runs_is_enough(server: Wire) -> None:
    server.engines.brain.gap = 0.2
    token = (await server.open()).token
    async with server.client(token) as client:
        await client.write(said("hello"))
        await client.send("response.create")
        started = await client.next("turn.started")
        await client.next("response.output_audio.delta")
        await client.send("turn.played", turn_id=started["turn_id"], waited_ms=90, playback_ms=20)
        await client.next("response.done")
        before = time.monotonic()
        timeline = await client.next("turn.timeline")
        assert time.monotonic() - before < 0.5, "not the second that a silent client is waited for"
    assert timeline["turn"]["metrics"]["v2v_ms"] == 90


async def test_a_timeline_comes_though_nobody_says_what_was_heard(server: Wire) -> None:
    token = (await server.open()).token
    async with server.client(token) as client:
        await client.ask("hello")
        timeline = await client.next("turn.timeline")
    assert timeline["turn"]["metrics"]["v2v_ms"] is None


async def test_progress_comes_while_a_turn_runs_and_when_a_figure_changes_later_but_not_in_a_flood(
    server: Wire,
) -> None:
    server.engines.brain.gap = 0.1
    token = (await server.open()).token
    async with server.client(token) as client:
        await client.write(said("hello"))
        await client.send("response.create")
        started = await client.next("turn.started")
        await client.next("turn.timeline")
        while_it_ran = len(client.of("turn.progress"))
        await client.send("turn.played", turn_id=started["turn_id"], waited_ms=400, playback_ms=30)
        later = await client.next("turn.progress", where=lambda event: event["turn"]["metrics"]["v2v_ms"] == 400)
    told = len(client.of("response.output_audio.delta"))
    assert 2 <= while_it_ran < told
    assert later["figures"]["v2v_ms"] == "400.0"


async def test_an_utterance_without_words_is_dropped_for_the_page(server: Wire) -> None:
    server.engines.ears.text = ""
    token = (await server.open()).token
    async with server.client(token) as client:
        await client.configure(**FIXED)
        await client.speak(0.6)
        dropped = await client.silence_until(client.next("input.dropped"))
    assert dropped["reason"] == "nothing_heard"
    assert dropped["item_id"] == client.of("input_audio_buffer.speech_started")[0]["item_id"]


async def test_what_was_said_by_hand_and_not_handed_in_is_dropped_when_listening_changes_back(server: Wire) -> None:
    token = (await server.open()).token
    async with server.client(token) as client:
        await client.configure(**FIXED)
        await client.speak(0.6)
        await client.next("input_audio_buffer.speech_started")
        await client.by_hand()
        assert client.of("input.dropped") == [], "it may still be handed in"
        await client.configure(**FIXED)
    assert [event["reason"] for event in client.of("input.dropped")] == ["cleared"]


async def test_speech_over_the_reply_turns_it_down_before_it_is_cut(server: Wire) -> None:
    server.engines.mouth.seconds = 4.0
    token = (await server.open()).token
    async with server.client(token) as client:
        await client.configure(**FIXED)
        await client.ask("hello")
        await client.speak(0.6, 0.0)
        await client.speak(1.0)
        await client.next("output_audio_buffer.cleared")
        item_id = client.of("response.output_item.done")[0]["item"]["id"]
        await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=300)
        await client.next("conversation.item.truncated")
    ducked = client.of("reply.duck")[0]
    assert ducked["down"] is True
    assert client.events.index(ducked) < client.events.index(client.of("output_audio_buffer.cleared")[0])


async def test_faults_and_notices_come_in_the_language_of_the_page() -> None:
    with wire(phrase=lambda code, _, language: f"{language}: {code}") as server:
        token = (await server.open("zh")).token
        async with server.client(token) as client:
            assert (await client.refused("response.create"))["message"] == "zh: nothing_said"


async def test_a_page_comes_back_to_its_conversation(server: Wire) -> None:
    opened = await server.open()
    async with server.client(opened.token) as client:
        await client.ask("hello")
        await client.speak(0.4, 0.0)
        assert client.of("conversation.restored") == []
    await server.nothing_left(talks=1)
    async with server.client(opened.token) as client:
        await client.next("session.created")
        restored = await client.next("conversation.restored")
        await client.configure(**FIXED)
        await client.speak(0.8)
        started = await client.silence_until(client.next("turn.started"))
        await client.silence_until(client.next("response.done"))
    assert restored["items"][0] == {"role": "user", "text": "hello"}
    assert restored["voice"] == opened.session.voice.name and restored["detection"] == "adaptive"
    assert started["speech_end_ms"] == pytest.approx(800, abs=70), "positions are in this connection's sound"
    assert "hello" in str(server.engines.brain.requests[-1]), "the model still knows"


async def test_a_page_that_vanishes_mid_turn_stops_it_and_may_come_back(server: Wire) -> None:
    server.engines.brain.gap = 0.5
    opened = await server.open()
    async with server.client(opened.token) as client:
        await client.write(said("hello"))
        await client.send("response.create")
        await client.next("response.output_audio_transcript.delta")
        client.sdk._connection.transport.abort()
    await server.nothing_left(talks=1)
    assert opened.session.running is None and server.engines.brain.closed == 1
    async with server.client(opened.token) as client:
        await client.next("conversation.restored")


async def test_a_second_tab_takes_over_and_the_first_is_told(server: Wire) -> None:
    opened = await server.open()
    async with server.client(opened.token) as first:
        await first.next("session.created")
        async with server.client(opened.token) as second:
            await second.next("session.created")
            error = (await first.next("error"))["error"]
            assert error["code"] == "taken_over"
            assert await first.closed() == 4001
            assert (await second.ask("hello"))["status"] == "completed"
    await server.nothing_left(talks=1)


async def test_a_page_that_lost_its_network_need_not_wait_for_its_dead_connection(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spoken_chat.realtime.connection.Outbox", partial(Outbox, stalled_s=3600.0))
    server.engines.mouth.seconds = 200.0
    opened = await server.open()
    url = f"ws://{server.address}/v1/realtime?token={opened.token}"
    async with connect(url, max_queue=1, compression=None) as dead:
        item = {"type": "message", "role": "user", "content": [said("hello")]}
        await dead.send(json.dumps({"type": "conversation.item.create", "item": item}))
        await dead.send(json.dumps({"type": "response.create"}))
        dead.transport.pause_reading()
        await server.until(lambda: bool(server.engines.mouth.requests))
        async with server.client(opened.token) as client:
            await client.next("conversation.restored")
            assert opened.session.running is None
        dead.transport.abort()


async def test_many_tabs_at_once_leave_one(server: Wire) -> None:
    opened = await server.open()

    async def tab() -> bool:
        try:
            async with server.client(opened.token) as client:
                await client.next("session.created")
                return (await client.closed()) != 4001
        except (ConnectionClosed, TimeoutError):
            return False

    tabs = [asyncio.create_task(tab()) for _ in range(5)]
    done: set[asyncio.Task[bool]] = set()
    while len(done) < 4:
        done = {one for one in tabs if one.done()}
        await asyncio.sleep(0.01)
    (left,) = set(tabs) - done
    left.cancel()
    await asyncio.wait([left])
    assert not any(one.result() for one in done)
    await server.nothing_left(talks=1)


async def test_a_conversation_that_was_closed_elsewhere_takes_nothing_more(server: Wire) -> None:
    opened = await server.open()
    async with server.client(opened.token) as client:
        await client.next("session.created")
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(server.registry.drop(opened.token), server.loop))
        await client.send("response.create")
        assert (await client.next("error"))["error"]["code"] == "session_gone"
        assert await client.closed() == 1008
    await server.nothing_left()


async def test_turns_begun_beside_the_connection_are_told_with_items_of_their_own(server: Wire) -> None:
    opened = await server.open()
    async with server.client(opened.token) as client:
        await client.next("session.created")
        asyncio.run_coroutine_threadsafe(opened.talk.say(Utterance(text="from the page")), server.loop)
        started = await client.next("turn.started")
        await client.next("response.done")
    user = client.of("conversation.item.done")[0]["item"]
    assert user["id"] == started["item_id"] and user["content"] == [{"type": "input_text", "text": "from the page"}]


async def test_what_the_pages_settings_changed_is_shown_before_the_next_update(server: Wire) -> None:
    opened = await server.open()
    async with server.client(opened.token) as client:
        await client.configure(**FIXED)
        slid = opened.talk.configure(replace(opened.talk.options, wait=1.2))
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(slid, server.loop))
        first = await client.configure(audio={"input": {"turn_detection": None}})
        second = (await client.next("session.updated"))["session"]
    assert first["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 1200
    assert second["audio"]["input"]["turn_detection"] is None
