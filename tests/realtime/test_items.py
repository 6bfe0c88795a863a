"""Items over the official client: images, told history, cutting, deleting, showing."""

import base64

import pytest

from tests.support.realtime import Client, Wire, encoded, picture, said, tone, wire


async def test_an_image_goes_with_the_words_beside_it(server: Wire) -> None:
    async with server.client() as client:
        await client.write(picture(), said("What is this?"))
        await client.send("response.create")
        await client.next("response.done")
        shown = client.of("conversation.item.added")[0]["item"]["content"]
    image, text = server.engines.brain.requests[-1][-1]["content"]
    assert image["image_url"]["url"].startswith("data:image/jpeg;base64,") and text["text"] == "What is this?"
    assert shown == [{"type": "input_image"}, {"type": "input_text", "text": "What is this?"}]


async def test_the_last_image_goes_with_the_next_utterance_even_when_that_is_spoken(server: Wire) -> None:
    async with server.client() as client:
        await client.configure(audio={"input": {"turn_detection": {"type": "server_vad", "silence_duration_ms": 300}}})
        await client.write(picture("red"))
        await client.write(picture("blue"))
        await client.speak(0.6)
        await client.silence_until(client.next("response.done"))
        content = server.engines.brain.requests[-1][-1]["content"]
        images = [part for part in content if part["type"] == "image_url"]
        assert len(images) == 1
        await client.ask("And now?")
    assert server.engines.brain.requests[-1][-1]["content"] == "And now?", "the image was used up"


async def test_a_deleted_image_is_not_sent(server: Wire) -> None:
    async with server.client() as client:
        item_id = await client.write(picture())
        await client.send("conversation.item.delete", item_id=item_id)
        await client.next("conversation.item.deleted")
        await client.ask("hello")
    assert server.engines.brain.requests[-1][-1]["content"] == "hello"


async def test_sound_goes_on_while_an_image_is_read_and_the_answer_waits_for_it(server: Wire) -> None:
    async with server.client() as client:
        await client.by_hand()
        parts = [picture(), said("What is this?")]
        await client.send("conversation.item.create", item={"type": "message", "role": "user", "content": parts})
        await client.sound(0.5)
        await client.send("response.create")
        await client.next("response.done")
    assert len(server.engines.brain.requests[-1][-1]["content"]) == 2


async def test_what_was_said_before_can_be_told(server: Wire) -> None:
    async with server.client() as client:
        await client.write(said("I am Ann."))
        await client.write({"type": "output_text", "text": "Hello Ann."}, role="assistant")
        await client.ask("Who am I?")
    asked = [message["content"] for message in server.engines.brain.requests[-1][-3:]]
    assert asked == ["I am Ann.", "Hello Ann.", "Who am I?"]


async def test_an_assistants_message_without_a_users_is_refused(server: Wire) -> None:
    async with server.client() as client:
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]}
        assert (await client.refused("conversation.item.create", item=item))["code"] == "history_order"
        await client.write({"type": "input_audio", "audio": encoded(tone(0.5))})
        assert (await client.refused("conversation.item.create", item=item))["code"] == "history_sound"


async def test_told_history_can_be_deleted(server: Wire) -> None:
    async with server.client() as client:
        await client.write(said("I am Ann."))
        item_id = await client.write({"type": "output_text", "text": "Hello Ann."}, role="assistant")
        await client.send("conversation.item.delete", item_id=item_id)
        await client.next("conversation.item.deleted")
        await client.next("conversation.item.deleted")
        await client.ask("Who am I?")
    assert "Ann" not in str(server.engines.brain.requests[-1])


async def test_deleting_an_item_takes_its_whole_exchange_out_of_the_history(server: Wire) -> None:
    async with server.client() as client:
        user = await client.write(said("secret"))
        await client.send("response.create")
        response = (await client.next("response.done"))["response"]
        await client.send("conversation.item.delete", item_id=user)
        deleted = {(await client.next("conversation.item.deleted"))["item_id"] for _ in range(2)}
        assert deleted == {user, response["output"][0]["id"]}
        assert (await client.refused("conversation.item.retrieve", item_id=user))["code"] == "item_not_found"
        await client.ask("What did I say?")
    assert "secret" not in str(server.engines.brain.requests[-1])


async def test_a_waiting_message_can_be_deleted_and_a_running_one_cannot(server: Wire) -> None:
    server.engines.brain.gap = 0.2
    async with server.client() as client:
        waiting = await client.write(said("one"))
        await client.send("conversation.item.delete", item_id=waiting)
        await client.next("conversation.item.deleted")
        running = await client.write(said("two"))
        await client.send("response.create")
        await client.next("response.created")
        assert (await client.refused("conversation.item.delete", item_id=running))["code"] == "item_in_use"
        await client.next("response.done")
    assert server.engines.brain.requests[-1][-1]["content"] == "two"


async def replied(client: Client) -> str:
    """The item of a reply that plays."""
    return str((await client.ask("hello"))["output"][0]["id"])


async def test_history_keeps_what_was_heard_of_a_truncated_reply(server: Wire) -> None:
    async with server.client() as client:
        item_id = await replied(client)
        await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=1000)
        truncated = await client.next("conversation.item.truncated")
        assert truncated["audio_end_ms"] == 1000 and truncated["item_id"] == item_id
        await client.send("conversation.item.retrieve", item_id=item_id)
        item = (await client.next("conversation.item.retrieved"))["item"]
        await client.ask("and?")
    assert item["content"][0]["transcript"] == "Hello to you."
    assert server.engines.brain.requests[-1][-2]["content"] == "[happy] Hello to you."


async def test_truncating_a_reply_that_still_runs_stops_it(server: Wire) -> None:
    server.engines.brain.gap = 0.4
    async with server.client() as client:
        await client.write(said("hello"))
        await client.send("response.create")
        delta = await client.next("response.output_audio.delta")
        item_id = delta["item_id"]
        await client.send("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=500)
        response = (await client.next("response.done"))["response"]
        await client.next("conversation.item.truncated")
    assert response["status"] == "cancelled"


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"item_id": "none", "audio_end_ms": 1}, "item_not_found"),
        ({"audio_end_ms": -1}, "invalid_value"),
        ({"content_index": 3, "audio_end_ms": 1}, "invalid_value"),
        ({}, "missing_required_parameter"),
        ({"audio_end_ms": "soon"}, "invalid_value"),
    ],
)
async def test_a_truncation_that_cannot_be_is_refused(server: Wire, fields: dict[str, object], code: str) -> None:
    async with server.client() as client:
        item_id = await replied(client)
        error = await client.refused("conversation.item.truncate", **{"item_id": item_id, **fields})
    assert error["code"] == code


async def test_a_written_reply_cannot_be_truncated_and_stays_in_the_history(server: Wire) -> None:
    async with server.client() as client:
        response = await client.ask("hello", output_modalities=["text"])
        fields = {"item_id": response["output"][0]["id"], "content_index": 0, "audio_end_ms": 0}
        assert (await client.refused("conversation.item.truncate", **fields))["code"] == "item_not_truncatable"
        await client.ask("and?")
    assert server.engines.brain.requests[-1][-2]["content"] == "[happy] Hello to you. All is well."


async def test_a_users_message_cannot_be_truncated(server: Wire) -> None:
    async with server.client() as client:
        item_id = await client.write(said("hello"))
        error = await client.refused("conversation.item.truncate", item_id=item_id, content_index=0, audio_end_ms=1)
    assert error["code"] == "item_not_truncatable"


async def test_items_stand_in_order_and_know_the_one_before(server: Wire) -> None:
    async with server.client() as client:
        first = await client.write(said("one"), id="mine-1")
        assert first == "mine-1"
        await client.write(said("two"))
        before = [event["previous_item_id"] for event in client.of("conversation.item.added")]
        assert before == [None, "mine-1"]
        same = {"type": "message", "role": "user", "id": "mine-1", "content": [said("x")]}
        assert (await client.refused("conversation.item.create", item=same))["code"] == "item_exists"
        new = {"type": "message", "role": "user", "content": [said("x")]}
        for previous, code in [("mine-1", "item_order_unsupported"), ("none", "item_not_found")]:
            error = await client.refused("conversation.item.create", item=new, previous_item_id=previous)
            assert error["code"] == code


@pytest.mark.parametrize(
    "item, code",
    [
        ({"type": "message", "role": "system", "content": [said("Be rude.")]}, "item_unsupported"),
        ({"type": "function_call_output", "call_id": "1", "output": "{}"}, "item_unsupported"),
        ({"type": "message", "role": "user", "content": []}, "nothing_said"),
        ({"type": "message", "role": "user", "content": [said("   ")]}, "nothing_said"),
        ({"type": "message", "role": "user", "content": [{"type": "input_text"}]}, "missing_required_parameter"),
        ({"type": "message", "role": "user", "content": [{"type": "item_reference"}]}, "content_unsupported"),
        ({"type": "message", "role": "user", "content": [said("x" * 4001)]}, "text_too_long"),
        ({"type": "message", "role": "user", "content": [said("\ud800")]}, "invalid_value"),
        ({"type": "message", "role": "user", "content": "hello"}, "invalid_value"),
        ({"type": "message", "role": "user", "id": "x" * 200, "content": [said("hello")]}, "invalid_value"),
        ({"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": "AAA="}]}, "nothing_heard"),
    ],
)  # fmt: skip
async def test_an_item_that_cannot_be_used_is_refused(server: Wire, item: dict[str, object], code: str) -> None:
    async with server.client() as client:
        error = await client.refused("conversation.item.create", item=item)
        assert error["code"] == code and error["type"] == "invalid_request_error"
        assert (await client.ask("hello"))["status"] == "completed", "the connection stays usable"


@pytest.mark.parametrize(
    "url, code",
    [
        ("https://example.org/cat.png", "image_url_unsupported"),
        ("file:///etc/passwd", "image_url_unsupported"),
        ("data:image/png,plain", "image_url_unsupported"),
        ("data:image/png;base64,!!!", "invalid_base64"),
        ("data:image/png;base64," + base64.b64encode(b"no image").decode(), "image_unreadable"),
        ("data:image/png;base64," + base64.b64encode(bytes(200_000)).decode(), "image_too_large"),
        ("data:image/png;base64,", "image_empty"),
    ],
)
async def test_an_image_that_cannot_be_used_is_refused(url: str, code: str) -> None:
    with wire(image_max_bytes=100_000) as server:
        async with server.client() as client:
            content = [{"type": "input_image", "image_url": url}]
            item = {"type": "message", "role": "user", "content": content}
            assert (await client.refused("conversation.item.create", item=item))["code"] == code


async def test_what_may_wait_is_bounded(server: Wire) -> None:
    async with server.client() as client:
        for _ in range(2):
            await client.write(said("x" * 1900))
        item = {"type": "message", "role": "user", "content": [said("x" * 300)]}
        assert (await client.refused("conversation.item.create", item=item))["code"] == "text_too_long"
        for _ in range(62):
            await client.write(said("y"))
        item = {"type": "message", "role": "user", "content": [said("y")]}
        assert (await client.refused("conversation.item.create", item=item))["code"] == "too_many_items"
