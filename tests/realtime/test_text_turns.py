"""Written messages over the official client: the lifecycle of a response, its end, and what can be asked of it."""

import asyncio
import base64

import pytest

from tests.support.engines import chat_error
from tests.support.realtime import Wire, said


async def test_a_written_message_is_answered_aloud_in_the_order_of_the_api(server: Wire) -> None:
    async with server.client() as client:
        assert (await client.next("session.created"))["session"]["model"] == "spoken-chat"
        response = await client.ask("What is your name?")
        await client.next("turn.timeline")
    kinds = client.kinds()
    deltas = ("response.output_audio_transcript.delta", "response.output_audio.delta")
    assert [kind for kind in kinds if kind not in deltas] == [
        "session.created",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "turn.timeline",
    ]
    places = [kinds.index(kind) for kind in deltas]
    assert kinds.index("response.content_part.added") < min(places)
    assert max(places) < kinds.index("response.output_audio.done")
    assert response["status"] == "completed" and response["output_modalities"] == ["audio"]
    text = "".join(event["delta"] for event in client.of("response.output_audio_transcript.delta"))
    assert text == "Hello to you. All is well.", "the mood tag is not part of the transcript"
    assert response["output"][0]["content"] == [{"type": "output_audio", "transcript": text}]
    assert response["usage"] == {
        "input_tokens": 100,
        "output_tokens": 24,
        "total_tokens": 124,
        "input_token_details": {"cached_tokens": 90, "text_tokens": 100},
        "output_token_details": {"text_tokens": 24},
    }
    assert len({event["event_id"] for event in client.events}) == len(client.events)


async def test_all_sound_of_the_reply_comes_in_small_events_the_first_of_them_smaller(server: Wire) -> None:
    async with server.client() as client:
        await client.ask("hello")
    seconds = [len(base64.b64decode(event["delta"])) / 48_000 for event in client.of("response.output_audio.delta")]
    assert sum(seconds) == pytest.approx(2.0, abs=0.001)
    assert seconds[0] <= 0.1 and max(seconds) <= 0.25


async def test_the_timeline_holds_the_record_and_its_figures_as_text(server: Wire) -> None:
    async with server.client() as client:
        await client.ask("hello")
        event = await client.next("turn.timeline")
    assert event["turn"]["kind"] == "typed" and event["turn"]["status"] == "completed"
    assert event["figures"]["ttft_ms"] == f"{event['turn']['metrics']['ttft_ms']:.1f}"
    assert event["figures"]["endpoint_delay_ms"] == "", "what was not measured is blank"
    assert "audio_done" in event["turn"]["marks"], "the marks are all set by then"


async def test_a_program_gets_no_event_of_our_own_but_the_timeline(server: Wire) -> None:
    async with server.client() as client:
        await client.ask("hello")
        await client.next("turn.timeline")
    own = {"turn.started", "turn.progress", "reply.mood", "notice", "conversation.restored"}
    assert not own & set(client.kinds())


async def test_the_conversation_goes_on_and_nothing_of_a_reply_is_lost_that_was_never_played(server: Wire) -> None:
    async with server.client() as client:
        await client.ask("first")
        await client.ask("second")
    last = server.engines.brain.requests[-1]
    assert [message["content"] for message in last[-3:]] == ["first", "[happy] Hello to you. All is well.", "second"]


async def test_a_reply_can_be_written_only(server: Wire) -> None:
    async with server.client() as client:
        session = await client.configure(output_modalities=["text"])
        assert session["output_modalities"] == ["text"]
        response = await client.ask("hello")
    assert client.of("response.output_audio.delta") == []
    text = "".join(event["delta"] for event in client.of("response.output_text.delta"))
    assert response["output"][0]["content"] == [{"type": "output_text", "text": text}]
    assert client.of("response.output_text.done")[0]["text"] == text == "Hello to you. All is well."


async def test_one_response_can_be_written_and_the_next_is_spoken_again(server: Wire) -> None:
    async with server.client() as client:
        written = await client.ask("hello", output_modalities=["text"], instructions="Be rude.")
        spoken = await client.ask("hello")
    assert written["output_modalities"] == ["text"] and spoken["output_modalities"] == ["audio"]
    assert "rude" not in str(server.engines.brain.requests)


async def test_all_messages_since_the_last_response_make_one_turn(server: Wire) -> None:
    async with server.client() as client:
        await client.write(said("one"))
        await client.write(said("two"), said("three"))
        await client.send("response.create")
        await client.next("response.done")
        error = await client.refused("response.create")
    assert server.engines.brain.requests[-1][-1]["content"] == "one\ntwo\nthree"
    assert error["code"] == "nothing_said"


async def test_a_second_response_has_to_wait_for_the_first(server: Wire) -> None:
    server.engines.brain.gap = 0.1
    async with server.client() as client:
        await client.write(said("one"))
        await client.send("response.create")
        await client.next("response.created")
        await client.write(said("two"))
        error = await client.refused("response.create")
        assert error["code"] == "conversation_already_has_active_response"
        await client.next("response.done")
        await client.send("response.create")
        await client.next("response.done")
    assert server.engines.brain.requests[-1][-1]["content"] == "two"


async def test_a_reply_can_be_cancelled_and_its_stream_is_closed(server: Wire) -> None:
    server.engines.brain.gap = 0.3
    async with server.client() as client:
        await client.write(said("one"))
        await client.send("response.create")
        await client.next("response.output_audio_transcript.delta")
        await client.send("response.cancel")
        response = (await client.next("response.done"))["response"]
        timeline = await client.next("turn.timeline")
        await asyncio.sleep(0)
        error = await client.refused("response.cancel")
    assert response["status"] == "cancelled"
    assert response["status_details"] == {"type": "cancelled", "reason": "client_cancelled"}
    assert response["output"][0]["status"] == "incomplete"
    assert server.engines.brain.closed == 1 and timeline["turn"]["status"] == "cancelled"
    assert error["code"] == "response_cancel_not_active"


async def test_clearing_the_output_stops_a_reply_that_plays(server: Wire) -> None:
    async with server.client() as client:
        response = await client.ask("one")
        await client.send("output_audio_buffer.clear")
        cleared = await client.next("output_audio_buffer.cleared")
    assert cleared["response_id"] == response["id"]


async def test_a_failed_reply_says_why(server: Wire) -> None:
    server.engines.brain.fault = chat_error("llm_dropped")
    async with server.client() as client:
        response = await client.ask("one")
    assert response["status"] == "failed"
    assert response["status_details"]["error"] == {
        "type": "server_error",
        "code": "llm_dropped",
        "message": "Something is wrong (llm_dropped); try again.",
    }
    assert response["output"], "what came before the fault is there"


async def test_while_the_models_load_a_response_is_refused_and_its_messages_wait(server: Wire) -> None:
    server.engines.states["llm"].status = "loading"
    async with server.client() as client:
        await client.write(said("one"))
        error = await client.refused("response.create")
        assert error["code"] == "still_loading"
        server.engines.states["llm"].status = "ready"
        await client.send("response.create")
        response = (await client.next("response.done"))["response"]
    assert response["status"] == "completed"


async def test_the_clients_own_helpers_work_unchanged(server: Wire) -> None:
    async with server.client() as client:
        sdk = client.sdk
        await sdk.session.update(
            session={"type": "realtime", "instructions": "Be rude.", "output_modalities": ["text"]}
        )
        await client.next("session.updated")
        await sdk.conversation.item.create(item={"type": "message", "role": "user", "content": [said("hi")]})
        await sdk.response.create()
        response = (await client.next("response.done"))["response"]
        await sdk.conversation.item.retrieve(item_id=response["output"][0]["id"])
        item = (await client.next("conversation.item.retrieved"))["item"]
        await sdk.input_audio_buffer.clear()
        await client.next("input_audio_buffer.cleared")
    assert item["content"][0]["text"] == "Hello to you. All is well."
