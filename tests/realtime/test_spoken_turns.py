"""Speech over the official client: by hand, with a fixed silence, with the smart-turn model, spoken over, dropped."""

import asyncio

import pytest

from tests.support.engines import chat_error
from tests.support.realtime import Client, Wire, encoded, picture, said, tone

FIXED = {"type": "server_vad", "silence_duration_ms": 300}


async def fixed(client: Client, **more: object) -> None:
    """End a turn after 300 ms of silence."""
    await client.configure(audio={"input": {"turn_detection": {**FIXED, **more}}})


async def test_sound_committed_by_hand_is_answered_when_asked(server: Wire) -> None:
    async with server.client() as client:
        await client.by_hand()
        since = len(client.events)
        await client.sound(1.0)
        await client.sdk.input_audio_buffer.commit()
        item_id = (await client.next("input_audio_buffer.committed"))["item_id"]
        await client.sdk.response.create()
        response = (await client.next("response.done"))["response"]
        timeline = await client.next("turn.timeline")
    assert client.kinds(since)[:6] == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.delta",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
    ]
    heard = client.of("conversation.item.input_audio_transcription.completed")[0]
    assert heard["item_id"] == item_id and heard["transcript"] == "what is your name"
    assert heard["usage"] == {"type": "duration", "seconds": pytest.approx(1.0, abs=0.04)}
    assert response["status"] == "completed" and timeline["turn"]["kind"] == "push_to_talk"
    assert len(server.engines.ears.heard[0]) / 16_000 == pytest.approx(1.0, abs=0.04)


async def test_without_words_a_response_asked_for_fails_and_says_why(server: Wire) -> None:
    server.engines.ears.text = ""
    async with server.client() as client:
        await client.by_hand()
        await client.sound(1.0)
        await client.send("input_audio_buffer.commit")
        await client.send("response.create")
        response = (await client.next("response.done"))["response"]
    assert client.of("conversation.item.input_audio_transcription.completed")[0]["transcript"] == ""
    assert response["status"] == "failed" and response["status_details"]["error"]["code"] == "nothing_heard"


async def test_recognition_that_fails_is_told_of_the_item_too(server: Wire) -> None:
    server.engines.ears.fault = chat_error("asr_failed")
    async with server.client() as client:
        await client.by_hand()
        await client.sound(1.0)
        await client.send("input_audio_buffer.commit")
        await client.send("response.create")
        response = (await client.next("response.done"))["response"]
    failed = client.of("conversation.item.input_audio_transcription.failed")[0]
    assert failed["error"]["code"] == response["status_details"]["error"]["code"] == "asr_failed"


async def test_a_commit_without_sound_is_refused_and_a_cleared_buffer_is_empty(server: Wire) -> None:
    async with server.client() as client:
        await client.by_hand()
        await client.sound(1.0)
        await client.send("input_audio_buffer.clear")
        await client.next("input_audio_buffer.cleared")
        assert (await client.refused("input_audio_buffer.commit"))["code"] == "nothing_heard"


async def test_a_pause_ends_a_turn_and_its_answer_begins_unasked(server: Wire) -> None:
    async with server.client() as client:
        await fixed(client)
        since = len(client.events)
        await client.speak(0.4, 0.0)
        await client.speak(0.8)
        await client.silence_until(client.next("response.done"))
        timeline = await client.next("turn.timeline")
    kinds = [kind for kind in client.kinds(since) if not kind.endswith("transcription.delta")]
    assert kinds[:9] == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "conversation.item.input_audio_transcription.completed",
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
    ]
    started = client.of("input_audio_buffer.speech_started")[0]
    stopped = client.of("input_audio_buffer.speech_stopped")[0]
    assert started["audio_start_ms"] == pytest.approx(400 - 300, abs=70), "the pre-roll included"
    assert stopped["audio_end_ms"] == pytest.approx(1200 + 300, abs=70), "the silence included"
    assert started["item_id"] == stopped["item_id"] == client.of("input_audio_buffer.committed")[0]["item_id"]
    assert timeline["turn"]["kind"] == "hands_free"
    assert timeline["turn"]["metrics"]["endpoint_delay_ms"] > 250


async def test_the_smart_turn_model_ends_a_turn_that_sounds_finished_soon(server: Wire) -> None:
    async with server.client() as client:
        await client.configure(audio={"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "low"}}})
        await client.speak(0.8)
        await client.silence_until(client.next("response.done"))
    stopped = client.of("input_audio_buffer.speech_stopped")[0]
    assert stopped["audio_end_ms"] < 800 + 1000, "not the 3 s that an unfinished turn may wait"


async def test_what_was_understood_so_far_is_told_and_only_grows(server: Wire) -> None:
    async with server.client() as client:
        await fixed(client)
        await client.speak(2.0)
        await client.silence_until(client.next("response.done"))
    deltas = client.of("conversation.item.input_audio_transcription.delta")
    completed = client.of("conversation.item.input_audio_transcription.completed")[0]
    assert "".join(event["delta"] for event in deltas) == completed["transcript"] == "what is your name"


async def test_an_utterance_without_words_gets_no_response_and_leaves_no_item(server: Wire) -> None:
    server.engines.ears.text = ""
    async with server.client() as client:
        await fixed(client)
        await client.speak(0.8)
        deleted = await client.silence_until(client.next("conversation.item.deleted"))
        assert (await client.refused("conversation.item.retrieve", item_id=deleted["item_id"]))[
            "code"
        ] == "item_not_found"
    assert client.of("conversation.item.input_audio_transcription.completed")[0]["transcript"] == ""
    assert client.of("response.created") == [] and client.of("turn.timeline") == []


async def test_without_automatic_answers_an_utterance_waits_for_its_response(server: Wire) -> None:
    async with server.client() as client:
        await fixed(client, create_response=False)
        await client.speak(0.8)
        await client.silence_until(client.next("conversation.item.done"))
        assert client.of("response.created") == []
        await client.send("response.create")
        await client.next("response.done")
    assert client.of("conversation.item.input_audio_transcription.completed")[0]["transcript"] == "what is your name"


async def test_speech_over_the_reply_cancels_it_and_is_answered_itself(server: Wire) -> None:
    server.engines.mouth.seconds = 4.0
    server.engines.brain.gap = 0.6
    async with server.client() as client:
        await fixed(client)
        await client.speak(0.8)
        first = await client.silence_until(client.next("response.output_audio.delta"))
        await client.speak(1.2, 0.0)
        await client.speak(1.0)
        done = await client.silence_until(client.next("response.done"))
        await client.silence_until(client.next("response.created"))
    assert client.of("output_audio_buffer.cleared")[0]["response_id"] == first["response_id"]
    details = done["response"]["status_details"]
    assert details["type"] == "completed" or details["reason"] == "turn_detected"
    assert len(client.of("input_audio_buffer.speech_started")) == 2


async def test_speech_that_goes_on_soon_takes_its_reply_back(server: Wire) -> None:
    server.engines.brain.first = 0.5
    async with server.client() as client:
        await fixed(client)
        await client.speak(0.8)
        await client.silence_until(client.next("response.created"))
        await client.speak(0.6)
        await client.silence_until(client.next("response.done", where=_completed))
        timelines = await client.next("turn.timeline")
    first, second = [event["item_id"] for event in client.of("input_audio_buffer.committed")]
    assert first in [event["item_id"] for event in client.of("conversation.item.deleted")]
    assert client.of("response.done")[0]["response"]["status_details"]["reason"] == "turn_detected"
    assert len(client.of("turn.timeline")) == 1, "what was taken back is no turn"
    assert timelines["turn"]["reopened"] == 1 and second != first
    assert len(server.engines.ears.heard[-1]) > len(server.engines.ears.heard[0])


def _completed(event: dict) -> bool:
    return event["response"]["status"] == "completed"


async def test_sound_can_be_a_message_with_words_beside_it(server: Wire) -> None:
    async with server.client() as client:
        audio = {"type": "input_audio", "audio": encoded(tone(0.5))}
        item_id = await client.write(audio, said("in one word"))
        await client.send("response.create")
        await client.next("response.done")
    heard = client.of("conversation.item.input_audio_transcription.completed")[0]
    assert heard["item_id"] == item_id and heard["transcript"] == "what is your name"
    assert heard["usage"]["seconds"] == 0.5
    assert server.engines.brain.requests[-1][-1]["content"] == "what is your name in one word"
    assert len(server.engines.ears.heard[0]) == 8_000


async def test_sound_and_messages_that_wait_are_answered_together(server: Wire) -> None:
    async with server.client() as client:
        await client.by_hand()
        await client.sound(0.5)
        await client.send("input_audio_buffer.commit")
        await client.next("conversation.item.done")
        await client.write(said("in one word"))
        await client.send("response.create")
        await client.next("response.done")
        assert (await client.refused("response.create"))["code"] == "nothing_said"
    assert server.engines.brain.requests[-1][-1]["content"] == "what is your name in one word"
    heard = client.of("conversation.item.input_audio_transcription.completed")
    assert [event["transcript"] for event in heard] == ["what is your name"]


async def test_each_of_several_committed_sounds_gets_word_of_its_transcription(server: Wire) -> None:
    async with server.client() as client:
        await client.by_hand()
        names = []
        for number in range(1, 4):
            await client.sound(0.5)
            await client.send("input_audio_buffer.commit")
            await client.next("conversation.item.done")
            names.append(client.of("input_audio_buffer.committed")[number - 1]["item_id"])
        await client.send("response.create")
        await client.next("response.done")
    (heard,) = client.of("conversation.item.input_audio_transcription.completed")
    assert heard["item_id"] == names[-1]
    elsewhere = client.of("conversation.item.input_audio_transcription.failed")
    assert [event["item_id"] for event in elsewhere] == names[:-1]
    assert all(event["error"]["code"] == "transcribed_together" for event in elsewhere)
    assert all(names[-1] in event["error"]["message"] for event in elsewhere)


async def test_a_commit_in_the_middle_of_speech_leaves_no_item_without_word_of_it(server: Wire) -> None:
    async with server.client() as client:
        await fixed(client)
        await client.speak(0.8)
        await client.send("input_audio_buffer.commit")
        await client.next("input_audio_buffer.committed")
        await client.speak(0.8)
        await client.silence_until(client.next("response.done"))
    committed = {event["item_id"] for event in client.of("input_audio_buffer.committed")}
    told = [
        event["item_id"]
        for kind in ("completed", "failed")
        for event in client.of(f"conversation.item.input_audio_transcription.{kind}")
    ]
    assert len(committed) == 2 and sorted(told) == sorted(committed)


async def test_what_is_being_said_when_detection_is_switched_off_waits_for_the_commit(server: Wire) -> None:
    async with server.client() as client:
        await fixed(client)
        await client.speak(0.8)
        started = await client.next("input_audio_buffer.speech_started")
        await client.by_hand()
        await client.speak(0.5)
        await client.send("input_audio_buffer.commit")
        await client.send("response.create")
        response = (await client.next("response.done"))["response"]
    assert response["status"] == "completed"
    assert [event["item_id"] for event in client.of("input_audio_buffer.committed")] == [started["item_id"]]
    assert len(server.engines.ears.heard[-1]) / 16_000 >= 1.2


async def test_a_client_learns_from_the_response_that_its_image_was_not_seen(server: Wire) -> None:
    server.engines.brain.vision = False
    async with server.client() as client:
        await client.write(picture(), said("what is it?"))
        await client.send("response.create")
        response = (await client.next("response.done"))["response"]
        plain = await client.ask("and now?")
    (sentence,) = response["metadata"].values()
    assert "only your words were sent" in sentence
    assert plain["metadata"] is None


async def test_several_people_talk_at_once_each_with_their_own_conversation(server: Wire) -> None:
    async def talk(number: int) -> str:
        async with server.client() as client:
            await fixed(client)
            await client.speak(0.6)
            await client.silence_until(client.next("response.done"))
            await client.ask(f"number {number}")
            return str(client.of("session.created")[0]["session"]["id"])

    sessions = await asyncio.gather(*(talk(number) for number in range(4)))
    assert len(set(sessions)) == 4
    asked = [request[-1]["content"] for request in server.engines.brain.requests]
    for number in range(4):
        request = server.engines.brain.requests[asked.index(f"number {number}")]
        assert [message["content"] for message in request if message["role"] == "user"][-2:] == [
            "what is your name",
            f"number {number}",
        ]
    await server.nothing_left()
