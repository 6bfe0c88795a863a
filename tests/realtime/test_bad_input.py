"""What clients should not do: each gets one clear error, or a bound, and the conversation goes on."""

import asyncio
import base64
import json
import threading
from functools import partial

import pytest
from websockets.asyncio.client import connect
from websockets.sync.client import connect as connect_in_thread

from spoken_chat.realtime.outbox import Outbox
from tests.support.realtime import Client, Wire, encoded, said, tone, wire


async def still_usable(client: Client) -> None:
    assert (await client.ask("hello"))["status"] == "completed"


@pytest.mark.parametrize(
    "message, code, param",
    [
        ("{", "invalid_json", None),
        ("[" * 100_000, "invalid_json", None),
        ('{"a": ' + "9" * 5000 + "}", "invalid_json", None),
        ("[]", "invalid_event", None),
        ("{}", "missing_required_parameter", "type"),
        ('{"type": 7}', "missing_required_parameter", "type"),
        ('{"type": "transcription_session.update"}', "unknown_event", "type"),
        ('{"type": "input_audio_buffer.append"}', "missing_required_parameter", "audio"),
        ('{"type": "input_audio_buffer.append", "audio": 7}', "invalid_value", "audio"),
        ('{"type": "input_audio_buffer.append", "audio": "*"}', "invalid_base64", "audio"),
        ('{"type": "input_audio_buffer.append", "audio": "\\u4f60"}', "invalid_base64", "audio"),
        ('{"type": "input_audio_buffer.append", "audio": "AAAA"}', "invalid_audio", "audio"),
        ('{"type": "conversation.item.create"}', "missing_required_parameter", "item"),
        ('{"type": "conversation.item.create", "item": {}}', "missing_required_parameter", "item.type"),
        ('{"type": "conversation.item.retrieve", "item_id": "no"}', "item_not_found", "item_id"),
        ('{"type": "conversation.item.delete", "item_id": "no"}', "item_not_found", "item_id"),
        ('{"type": "response.create", "response": {"input": []}}', "out_of_band_unsupported", "response.input"),
        (
            '{"type": "response.create", "response": {"conversation": "none"}}',
            "out_of_band_unsupported",
            "response.conversation",
        ),
        ('{"type": "response.create", "response": {"tools": [{}]}}', "tools_unsupported", "response.tools"),
        (
            '{"type": "response.create", "response": {"output_modalities": ["video"]}}',
            "invalid_value",
            "response.output_modalities",
        ),
        ('{"type": "turn.played", "turn_id": "no", "waited_ms": 1, "playback_ms": 1}', "turn_unknown", None),
        ('{"type": "turn.played", "turn_id": "no", "waited_ms": NaN, "playback_ms": 1}', "invalid_value", "waited_ms"),
    ],
)
async def test_a_malformed_event_is_named_and_the_next_is_obeyed(
    server: Wire, message: str, code: str, param: str | None
) -> None:
    async with server.client() as client:
        await client.sdk.send_raw(message)
        error = (await client.next("error"))["error"]
        assert (error["code"], error["param"], error["type"]) == (code, param, "invalid_request_error")
        assert error["message"].endswith(".")
        await still_usable(client)


async def test_an_error_names_the_event_it_is_about_only_where_that_has_a_usable_id(server: Wire) -> None:
    async with server.client() as client:
        for event_id, named in [("mine", "mine"), ("x" * 500, None), (7, None), ("\ud800", None)]:
            await client.sdk.send_raw(json.dumps({"type": "nothing", "event_id": event_id}))
            assert (await client.next("error"))["error"]["event_id"] == named


async def test_binary_messages_are_refused(server: Wire) -> None:
    async with server.client() as client:
        await client.sdk.send_raw(b'{"type": "response.create"}')
        assert (await client.next("error"))["error"]["code"] == "invalid_event"
        await still_usable(client)


async def test_too_much_sound_in_one_event_is_refused(server: Wire) -> None:
    async with server.client() as client:
        error = await client.refused("input_audio_buffer.append", audio=encoded(tone(15.1)))
        assert error["code"] == "audio_too_long"
        await still_usable(client)


async def test_a_message_that_is_too_long_is_refused() -> None:
    with wire(image_max_bytes=1000, audio_max_seconds=1) as server:
        async with server.client() as client:
            await client.sdk.send_raw(json.dumps({"type": "x", "padding": "y" * 200_000}))
            assert (await client.next("error"))["error"]["code"] == "message_too_big"
            await still_usable(client)


async def test_sound_far_ahead_of_time_is_dropped_with_one_error(server: Wire) -> None:
    async with server.client() as client:
        for _ in range(60):
            await client.sound(1.0, 0.0)
        error = (await client.next("error"))["error"]
        assert error["code"] == "audio_too_fast"
        await still_usable(client)
        assert len(client.of("error")) == 1


async def test_by_hand_the_sound_that_waits_has_a_bound() -> None:
    with wire(audio_max_seconds=5) as server:
        async with server.client() as client:
            await client.by_hand()
            for _ in range(10):
                await client.sound(1.0)
            assert (await client.next("error"))["error"]["code"] == "input_audio_buffer_full"
            await client.send("input_audio_buffer.commit")
            await client.send("response.create")
            await client.next("response.done")
            assert len(client.of("error")) == 1
            await client.sound(1.0)
            await client.send("input_audio_buffer.commit")
            await client.next("input_audio_buffer.committed")
        assert len(server.engines.ears.heard[0]) / 16_000 == pytest.approx(5.0, abs=0.04)


async def test_a_flood_of_events_leaves_others_their_turn(server: Wire) -> None:
    data = json.dumps({"type": "input_audio_buffer.append", "audio": encoded(tone(0.02, 0.0))})
    enough = threading.Event()

    def flood() -> None:
        with connect_in_thread(f"ws://{server.address}/v1/realtime") as raw:
            while not enough.is_set():
                raw.send(data)

    flooding = threading.Thread(target=flood)
    flooding.start()
    async with server.client() as client:
        await still_usable(client)
    assert flooding.is_alive()
    enough.set()
    await asyncio.to_thread(flooding.join)


async def test_a_client_that_never_reads_is_given_up_and_its_turn_is_stopped(
    server: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = partial(Outbox, most_bytes=400_000, stalled_s=0.5)
    monkeypatch.setattr("spoken_chat.realtime.connection.Outbox", small)
    server.engines.mouth.seconds = 200.0
    async with connect(f"ws://{server.address}/v1/realtime", max_queue=1, compression=None) as raw:
        item = {"type": "message", "role": "user", "content": [said("hello")]}
        await raw.send(json.dumps({"type": "conversation.item.create", "item": item}))
        await raw.send(json.dumps({"type": "response.create"}))
        raw.transport.pause_reading()
        await server.until(lambda: bool(server.engines.mouth.requests))
        await server.until(lambda: len(server.registry) == 0)
        raw.transport.abort()
    await server.nothing_left()
    assert server.engines.mouth.running == 0


async def test_a_program_that_vanishes_mid_turn_leaves_no_talk_no_task_and_no_thread(server: Wire) -> None:
    server.engines.brain.gap = 0.5
    async with server.client() as client:
        await still_usable(client)
    await server.nothing_left()
    threads = threading.active_count()
    for stage in ("response.created", "response.output_audio_transcript.delta", "response.output_audio.delta"):
        async with server.client() as client:
            await client.write(said("hello"))
            await client.send("response.create")
            await client.next(stage)
            client.sdk._connection.transport.abort()
        await server.nothing_left()
    assert server.engines.brain.closed >= 2 and server.engines.mouth.running == 0
    assert threading.active_count() <= threads


async def test_a_client_that_vanishes_while_it_speaks_leaves_nothing(server: Wire) -> None:
    async with server.client() as client:
        await client.speak(0.6)
        await client.next("input_audio_buffer.speech_started")
        client.sdk._connection.transport.abort()
    await server.nothing_left()


async def test_a_client_that_vanishes_while_its_image_is_read_leaves_nothing(server: Wire) -> None:
    async with server.client() as client:
        url = "data:image/png;base64," + base64.b64encode(bytes(3_000_000)).decode()
        item = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}]}
        await client.send("conversation.item.create", item=item)
        client.sdk._connection.transport.abort()
    await server.nothing_left()


async def test_an_unforeseen_error_is_told_and_ends_nothing(server: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("unforeseen")

    async with server.client() as client:
        with monkeypatch.context() as patch:
            patch.setattr("spoken_chat.realtime.commands.Commands._delete", broken)
            item_id = await client.write(said("hello"))
            error = await client.refused("conversation.item.delete", item_id=item_id)
        assert (error["code"], error["type"]) == ("event_broken", "server_error")
        await still_usable(client)
